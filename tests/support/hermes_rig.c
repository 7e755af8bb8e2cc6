#include "support/hermes_rig.h"

#include <stdio.h>
#include <string.h>

#include "support/hermes_history.h"

/* ---- Small helpers ---- */

static uint32_t born(const struct view *view, uint8_t node)
{
    return view->members[node].admitted;
}

const struct view *rig_newest(const struct rig *r)
{
    return &r->views[r->nviews - 1];
}

bool rig_leased(const struct rig *r, uint8_t node)
{
    const struct view *mine = &r->nodes[node].view;
    return !r->nodes[node].crashed && nodeset_has(rig_newest(r)->operational, node) &&
           nodeset_has(mine->operational, node) && born(mine, node) == born(rig_newest(r), node);
}

bool rig_readable(const struct rig *r, uint8_t node)
{
    return (r->nodes[node].meta.flags & KEY_READABLE) != 0;
}

static struct event event_of(struct rig *r, uint8_t node, enum ev_kind kind)
{
    struct rig_node *n = &r->nodes[node];
    return (struct event){.kind = kind,
                          .from = NODE_NONE,
                          .self = node,
                          .confirms = n->confirms,
                          .now_us = r->now_us,
                          .random = r->first_cid ? 0 : random_next(&r->random),
                          .key_hash = 7,
                          .local_hash = 7,
                          .view = &n->view,
                          .config = &r->config,
                          .worker = &n->worker};
}

/* ---- Messages into the bag ---- */

static struct rig_message *bag_add(struct rig *r)
{
    for (uint32_t i = 0; i < RIG_MESSAGES; i++) {
        if (!r->bag[i].used) {
            return &r->bag[i];
        }
    }
    /* A full bag loses the oldest: the network may. */
    struct rig_message *oldest = &r->bag[0];
    for (uint32_t i = 1; i < RIG_MESSAGES; i++) {
        if (r->bag[i].sent_us < oldest->sent_us) {
            oldest = &r->bag[i];
        }
    }
    return oldest;
}

static void post(struct rig *r, uint8_t from, uint8_t to, const struct msg *msg, uint32_t update)
{
    const struct view *view = &r->nodes[from].view;
    struct rig_message *m = bag_add(r);
    *m = (struct rig_message){.msg = *msg,
                              .sent_us = r->now_us,
                              .update = update,
                              .from_born = born(view, from),
                              .to_born = born(view, to),
                              .from = from,
                              .to = to,
                              .used = true};
}

static uint32_t update_with_ts(const struct rig *r, uint64_t ts)
{
    for (uint32_t i = r->nupdates; i-- > 1;) {
        if (r->updates[i].ts == ts) {
            return i;
        }
    }
    return 0;
}

static uint8_t value_flags(const struct rig *r, uint32_t update)
{
    return update == 0 || r->updates[update].kind == RIG_DELETE ? KEY_TOMBSTONE : 0;
}

/* As the node does: a message carries the value that the key holds. The mutant that sends an old
 * update again would have kept its old value, so the rig looks that up. */
static void emit(struct rig *r, uint8_t node, const struct effect *e)
{
    static const uint8_t bytes[8];
    const struct rig_node *n = &r->nodes[node];
    struct msg msg = {.kind = e->code,
                      .flags = e->flags,
                      .slot = e->slot,
                      .gen = e->gen,
                      .epoch = n->view.epoch,
                      .ts = e->ts};
    uint32_t update = 0;
    if ((e->with & EFF_NO_KEY) == 0) {
        msg.key = bytes_of("k", 1);
    }
    if ((e->with & EFF_VALUE) != 0) {
        update = e->ts == n->meta.ts ? n->value : update_with_ts(r, e->ts);
        msg.vflags = value_flags(r, update);
        msg.value = bytes_of(bytes, (msg.vflags & KEY_TOMBSTONE) != 0 ? 0 : sizeof bytes);
    }
    nodeset set = e->kind == EFF_SEND ? nodeset_of(e->to) : e->set;
    for (nodeset rest = set; rest != 0; rest &= rest - 1) {
        uint8_t to = nodeset_first(rest);
        HK_ASSERT(to < r->n && to != node);
        post(r, node, to, &msg, update);
    }
}

/* ---- Steps ---- */

static void flow_step(struct rig *r, uint8_t node, uint32_t slot, struct event *event);

static int free_slot(const struct rig_node *n)
{
    for (uint32_t i = 1; i < RIG_SLOTS; i++) {
        if (n->slots[i].kind == FLOW_FREE) {
            return (int)i;
        }
    }
    return -1;
}

static void tell_flow(struct rig *r, uint8_t node, const struct effect *e)
{
    struct rig_node *n = &r->nodes[node];
    bool outcome =
        e->code == FLOW_CODE_DONE || e->code == FLOW_CODE_OVERTAKEN || e->code == FLOW_CODE_LOST;
    if (outcome && r->mail_waits) {
        HK_ASSERT(n->mails < RIG_MAILS);
        n->mail[n->mails++] = (struct rig_mail){.slot = e->slot, .code = e->code};
        return;
    }
    struct event event = event_of(r, node, EV_KEY);
    event.code = e->code;
    flow_step(r, node, slot_ref_index(e->slot), &event);
}

static void key_effects(struct rig *r, uint8_t node, const struct effects *fx)
{
    struct rig_node *n = &r->nodes[node];
    for (uint32_t i = 0; i < fx->n; i++) {
        const struct effect *e = &fx->e[i];
        switch ((enum eff_kind)e->kind) {
        case EFF_SEND:
        case EFF_BCAST:
            emit(r, node, e);
            break;
        case EFF_FLOW:
            tell_flow(r, node, e);
            break;
        case EFF_PARK:
            n->parked++;
            break;
        case EFF_WAKE:
            n->parked = 0;
            break;
        case EFF_APPLY:
        case EFF_FORGET:
        case EFF_DROP:
        case EFF_BEHIND:
            break;
        case EFF_KEY:
        case EFF_REPLY:
        case EFF_CLOSE:
        case EFF_ISSUE:
        case EFF_ASK:
        case EFF_KEEP:
        case EFF_TAKE:
        case EFF_TRIM:
        case EFF_SEND_KEPT:
        case EFF_HOLD:
        case EFF_LATER:
        case EFF_LOST:
        case EFF_HOME:
        case EFF_LEFT:
            HK_ASSERT(false && "no effect of Hermes' key machine");
        }
    }
}

/* payload: the update whose value EFF_APPLY stores; for EV_UPDATE also the one that is issued. */
static void key_step(struct rig *r, uint8_t node, struct event *event, struct slot *mine,
                     uint32_t payload)
{
    struct rig_node *n = &r->nodes[node];
    int spare = event->kind == EV_MSG ? -1 : free_slot(n);
    struct effects fx = {.n = 0};
    r->steps++;
    hermes_ops.key(&n->meta, NULL, mine, spare < 0 ? NULL : &n->slots[spare], event, &fx);
    for (uint32_t i = 0; i < fx.n; i++) {
        if (fx.e[i].kind == EFF_APPLY) {
            n->value = payload;
            n->meta.flags = (uint8_t)((n->meta.flags & ~KEY_VALUE_FLAGS) | value_flags(r, payload));
        } else if (fx.e[i].kind == EFF_FORGET) {
            n->value = 0;
        }
    }
    if (event->kind == EV_UPDATE && spare >= 0 && n->slots[spare].kind == FLOW_UPDATE) {
        n->operation[spare] = payload;
        r->updates[payload].ts = n->meta.ts;
    }
    hermes_ops.check(&n->meta, NULL);
    history_step(r, node);
    key_effects(r, node, &fx);
    history_check(r);
}

static void operation_ends(struct rig *r, uint8_t node, uint32_t slot, uint8_t code)
{
    struct rig_node *n = &r->nodes[node];
    if (n->slots[slot].kind == FLOW_CHECK || n->operation[slot] == 0) {
        n->reads_done += code == REPLY_DONE;
        n->reads_lost += code == REPLY_LOST;
        return;
    }
    uint32_t update = n->operation[slot];
    n->operation[slot] = 0;
    r->updates[update].decided = true;
    if (code == REPLY_DONE || code == REPLY_OVERTAKEN) {
        history_done(r, node, update);
    } else if (r->updates[update].kind == RIG_RMW) {
        history_aborted(r, node, update);
    } else {
        n->again = update;
    }
}

static void close_slot(struct rig_node *n, uint32_t slot)
{
    uint32_t ref = n->slots[slot].ref;
    uint32_t gen = n->slots[slot].gen + 1;
    HK_ASSERT(n->operation[slot] == 0);
    n->gated[slot] = false;
    n->slots[slot] = (struct slot){.ref = ref, .gen = gen};
}

static void flow_effects(struct rig *r, uint8_t node, uint32_t slot, uint8_t kind,
                         const struct effects *fx)
{
    struct rig_node *n = &r->nodes[node];
    uint32_t gen = n->slots[slot].gen;
    for (uint32_t i = 0; i < fx->n; i++) {
        const struct effect *e = &fx->e[i];
        if (e->kind == EFF_KEY) {
            if (e->code == KEY_CODE_COMPLETE && r->gate && kind == FLOW_UPDATE) {
                n->gated[slot] = true;
                continue;
            }
            struct event event = event_of(r, node, EV_FLOW);
            event.code = e->code;
            key_step(r, node, &event, &n->slots[slot], 0);
            if (n->slots[slot].gen != gen) {
                return;
            }
        } else if (e->kind == EFF_REPLY) {
            operation_ends(r, node, slot, e->code);
        } else if (e->kind == EFF_CLOSE) {
            close_slot(n, slot);
            return;
        } else if (e->kind == EFF_SEND || e->kind == EFF_BCAST) {
            emit(r, node, e);
        } else {
            HK_ASSERT(e->kind == EFF_DROP || e->kind == EFF_BEHIND);
        }
    }
}

static void flow_step(struct rig *r, uint8_t node, uint32_t slot, struct event *event)
{
    struct slot *mine = slot == 0 ? NULL : &r->nodes[node].slots[slot];
    struct effects fx = {.n = 0};
    r->steps++;
    uint8_t kind = mine != NULL ? mine->kind : FLOW_FREE;
    hermes_ops.flow(mine, event, &fx);
    flow_effects(r, node, slot, kind, &fx);
    history_check(r);
}

/* ---- Clients ---- */

static uint32_t issue(struct rig *r, uint8_t node, enum rig_kind kind, uint32_t prev)
{
    struct rig_node *n = &r->nodes[node];
    HK_ASSERT(r->nupdates < RIG_UPDATES);
    HK_ASSERT(rig_readable(r, node) && !n->crashed);
    uint32_t id = r->nupdates++;
    r->updates[id] = (struct rig_update){
        .kind = kind, .first = n->value == 0, .base = n->value, .prev = prev, .issued = r->nhist};
    struct event event = event_of(r, node, EV_UPDATE);
    event.rmw = kind == RIG_RMW;
    key_step(r, node, &event, NULL, id);
    return id;
}

uint32_t rig_update(struct rig *r, uint8_t node, enum rig_kind kind)
{
    return issue(r, node, kind, 0);
}

void rig_again(struct rig *r, uint8_t node)
{
    struct rig_node *n = &r->nodes[node];
    if (n->again != 0 && rig_readable(r, node) && rig_leased(r, node) &&
        r->nupdates < RIG_UPDATES) {
        uint32_t lost = n->again;
        n->again = 0;
        (void)issue(r, node, r->updates[lost].kind, lost);
    }
}

void rig_park(struct rig *r, uint8_t node)
{
    if (!rig_readable(r, node) && !r->nodes[node].crashed) {
        struct event event = event_of(r, node, EV_READ);
        key_step(r, node, &event, NULL, 0);
    }
}

void rig_prod(struct rig *r, uint8_t node)
{
    if (!r->nodes[node].crashed) {
        struct event event = event_of(r, node, EV_TIMER);
        key_step(r, node, &event, NULL, 0);
    }
}

void rig_check(struct rig *r, uint8_t node)
{
    int slot = free_slot(&r->nodes[node]);
    HK_ASSERT(slot > 0);
    struct event event = event_of(r, node, EV_READ);
    flow_step(r, node, (uint32_t)slot, &event);
}

/* ---- Messages out of the bag ---- */

int rig_find(const struct rig *r, uint8_t from, uint8_t to, uint8_t kind, uint32_t update)
{
    int found = -1;
    for (int i = 0; i < (int)RIG_MESSAGES; i++) {
        const struct rig_message *m = &r->bag[i];
        if (m->used && m->from == from && m->to == to && m->msg.kind == kind &&
            (update == 0 || m->msg.ts == r->updates[update].ts) &&
            (found < 0 || m->sent_us < r->bag[found].sent_us)) {
            found = i;
        }
    }
    return found;
}

static void deliver_chunk(struct rig *r, const struct rig_message *m)
{
    struct rig_node *n = &r->nodes[m->to];
    bool same = m->msg.epoch == n->view.epoch;
    if (same && !nodeset_has(n->view.operational, m->to)) {
        n->copied = true;
    }
}

static void route(struct rig *r, const struct rig_message *m)
{
    struct rig_node *n = &r->nodes[m->to];
    struct event event = event_of(r, m->to, EV_MSG);
    bool member = nodeset_has(n->view.live, m->from) && born(&n->view, m->from) == m->from_born;
    event.from = member ? m->from : NODE_NONE;
    event.msg = &m->msg;
    const char *invalid = hermes_ops.msg_invalid(&m->msg);
    HK_ASSERT(invalid == NULL);
    uint32_t slot = slot_ref_index(m->msg.slot);
    switch (hermes_ops.route(&m->msg)) {
    case ROUTE_KEY:
        key_step(r, m->to, &event, NULL, m->update);
        break;
    case ROUTE_WORKER:
    case ROUTE_ANY:
        flow_step(r, m->to, 0, &event);
        break;
    case ROUTE_SLOT:
        if (n->slots[slot].kind != FLOW_FREE &&
            (n->slots[slot].gen == m->msg.gen || r->ignore_gen)) {
            flow_step(r, m->to, slot, &event);
        }
        break;
    }
}

void rig_deliver(struct rig *r, int message, bool keep)
{
    struct rig_message m = r->bag[message];
    HK_ASSERT(m.used);
    r->bag[message].used = keep;
    struct rig_node *n = &r->nodes[m.to];
    if (n->crashed || born(&n->view, m.to) != m.to_born) {
        return;
    }
    if (!m.empty_chunk) {
        route(r, &m);
    }
    if (m.empty_chunk || m.msg.kind == HERMES_ITEM) {
        deliver_chunk(r, &m);
    }
}

bool rig_pass(struct rig *r, uint8_t from, uint8_t to, uint8_t kind, uint32_t update)
{
    int message = rig_find(r, from, to, kind, update);
    if (message >= 0) {
        rig_deliver(r, message, false);
    }
    return message >= 0;
}

bool rig_copy(struct rig *r, uint8_t from, uint8_t to, uint8_t kind, uint32_t update)
{
    int message = rig_find(r, from, to, kind, update);
    if (message >= 0) {
        rig_deliver(r, message, true);
    }
    return message >= 0;
}

void rig_lose(struct rig *r, uint8_t from, uint8_t to, uint8_t kind)
{
    int message;
    while ((message = rig_find(r, from, to, kind, 0)) >= 0) {
        r->bag[message].used = false;
    }
}

void rig_lose_all(struct rig *r)
{
    for (uint32_t i = 0; i < RIG_MESSAGES; i++) {
        r->bag[i].used = false;
    }
}

/* ---- Time ---- */

void rig_advance(struct rig *r, uint64_t us)
{
    r->now_us += us;
    for (uint32_t i = 0; i < RIG_MESSAGES; i++) {
        if (!r->no_life && r->now_us - r->bag[i].sent_us >= RIG_GRACE_US) {
            r->bag[i].used = false;
        }
    }
}

void rig_timer_slot(struct rig *r, uint8_t node, uint32_t slot)
{
    if (!r->nodes[node].crashed && r->nodes[node].slots[slot].kind != FLOW_FREE) {
        struct event event = event_of(r, node, EV_TIMER);
        flow_step(r, node, slot, &event);
    }
}

void rig_timer(struct rig *r, uint8_t node, uint8_t kind)
{
    for (uint32_t i = 1; i < RIG_SLOTS; i++) {
        if (kind == FLOW_FREE || r->nodes[node].slots[i].kind == kind) {
            rig_timer_slot(r, node, i);
        }
    }
}

void rig_sweep(struct rig *r, uint8_t node)
{
    struct rig_node *n = &r->nodes[node];
    if (!n->crashed && n->meta.ts != 0) {
        struct event event = event_of(r, node, EV_SWEEP);
        key_step(r, node, &event, NULL, 0);
    }
}

void rig_mail(struct rig *r, uint8_t node)
{
    struct rig_node *n = &r->nodes[node];
    while (n->mails > 0 && !n->crashed) {
        struct rig_mail mail = n->mail[0];
        n->mails--;
        memmove(&n->mail[0], &n->mail[1], n->mails * sizeof mail);
        struct event event = event_of(r, node, EV_KEY);
        event.code = mail.code;
        flow_step(r, node, slot_ref_index(mail.slot), &event);
    }
}

void rig_nudge(struct rig *r, uint8_t node)
{
    struct rig_node *n = &r->nodes[node];
    bool gate = r->gate;
    r->gate = false;
    for (uint32_t i = 1; i < RIG_SLOTS && !n->crashed; i++) {
        if (n->gated[i] && n->slots[i].kind != FLOW_FREE) {
            n->gated[i] = false;
            struct event event = event_of(r, node, EV_KEY);
            event.code = FLOW_CODE_NUDGE;
            flow_step(r, node, i, &event);
        }
    }
    r->gate = gate;
}

/* ---- Views ---- */

static struct view *next_view(struct rig *r)
{
    HK_ASSERT(r->nviews < RIG_VIEWS);
    struct view *view = &r->views[r->nviews++];
    *view = r->views[r->nviews - 2];
    view->epoch++;
    return view;
}

void rig_drop(struct rig *r, uint8_t node)
{
    struct view *view = next_view(r);
    view->live &= ~nodeset_of(node);
    view->operational &= ~nodeset_of(node);
    view->members[node] = (struct view_member){.nonce = 0};
    history_check(r);
}

static void member_new(struct view *view, uint8_t node, uint8_t role)
{
    view->members[node] = (struct view_member){.nonce = (uint64_t)view->epoch << 8 | node,
                                               .admitted = view->epoch,
                                               .cid_first = view->next_cid,
                                               .cid_count = RIG_CIDS,
                                               .role = role};
    view->next_cid += RIG_CIDS;
    view->live |= nodeset_of(node);
}

/* The old incarnation's operations are never answered. */
static void forget_operations(struct rig *r, uint8_t node)
{
    struct rig_node *n = &r->nodes[node];
    for (uint32_t i = 1; i < RIG_SLOTS; i++) {
        r->updates[n->operation[i]].decided = true;
        n->operation[i] = 0;
    }
    n->again = 0;
}

static void node_new(struct rig *r, uint8_t node)
{
    struct rig_node *n = &r->nodes[node];
    forget_operations(r, node);
    memset(n, 0, sizeof *n);
    n->meta = hermes_ops.blank;
    n->confirms = true;
    for (uint32_t i = 1; i < RIG_SLOTS; i++) {
        n->slots[i].ref = slot_ref(0, i);
        n->slots[i].gen = 1;
    }
}

void rig_admit(struct rig *r, uint8_t node)
{
    struct view *view = next_view(r);
    member_new(view, node, VIEW_ROLE_SHADOW);
    node_new(r, node);
    r->nodes[node].view = *view;
}

void rig_promote(struct rig *r, uint8_t node)
{
    struct view *view = next_view(r);
    view->members[node].role = VIEW_ROLE_OPERATIONAL;
    view->operational |= nodeset_of(node);
    history_check(r);
}

void rig_adopt_epoch(struct rig *r, uint8_t node, uint32_t epoch)
{
    struct rig_node *n = &r->nodes[node];
    const struct view *view = &r->views[epoch - 1];
    if (n->crashed || epoch <= n->view.epoch || !nodeset_has(view->live, node) ||
        born(view, node) != born(&n->view, node)) {
        return;
    }
    n->view = *view;
    for (uint32_t i = 1; i < RIG_SLOTS; i++) {
        if (n->slots[i].kind != FLOW_FREE) {
            struct event event = event_of(r, node, EV_VIEW);
            flow_step(r, node, i, &event);
        }
    }
    history_step(r, node); /* a shadow that became operational may be read from now on */
    history_check(r);
}

void rig_adopt(struct rig *r, uint8_t node)
{
    rig_adopt_epoch(r, node, rig_newest(r)->epoch);
}

void rig_crash(struct rig *r, uint8_t node)
{
    r->nodes[node].crashed = true;
    forget_operations(r, node);
}

void rig_chunk(struct rig *r, uint8_t donor, uint8_t shadow)
{
    struct rig_node *d = &r->nodes[donor];
    struct rig_node *s = &r->nodes[shadow];
    if (d->crashed || !nodeset_has(d->view.operational, donor) || d->view.epoch != s->view.epoch) {
        return; /* donors answer only in the requester's epoch */
    }
    static const uint8_t bytes[8];
    struct msg msg = {.epoch = d->view.epoch, .ts = d->meta.ts, .key = bytes_of("k", 1)};
    hermes_ops.item(&d->meta, &msg);
    msg.vflags = value_flags(r, d->value);
    msg.value = bytes_of(bytes, (msg.vflags & KEY_TOMBSTONE) != 0 ? 0 : sizeof bytes);
    struct rig_message *m = bag_add(r);
    *m = (struct rig_message){.msg = msg,
                              .sent_us = r->now_us,
                              .update = d->value,
                              .from_born = born(&d->view, donor),
                              .to_born = born(&s->view, shadow),
                              .from = donor,
                              .to = shadow,
                              .used = true,
                              .empty_chunk = d->meta.ts == 0};
}

/* ---- Whole runs ---- */

void rig_init(struct rig *r, uint8_t n, enum rig_start start, uint64_t rules_off, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    HK_ASSERT(n <= RIG_NODES);
    r->n = n;
    r->now_us = 1000 * RIG_GRACE_US;
    r->config = (struct hermes_config){
        .mlt_us = RIG_MLT_US, .grace_us = RIG_GRACE_US, .rules_off = rules_off};
    random_init(&r->random, seed);
    struct view *view = &r->views[0];
    r->nviews = 1;
    *view = (struct view){.epoch = 1, .next_cid = 1};
    for (uint8_t i = 0; i < n; i++) {
        member_new(view, i, VIEW_ROLE_OPERATIONAL);
        view->configured |= nodeset_of(i);
        view->operational |= nodeset_of(i);
    }
    r->nupdates = 2;
    r->updates[0].decided = true;
    r->updates[1] = (struct rig_update){.kind = start == RIG_START_VALUE ? RIG_WRITE : RIG_DELETE,
                                        .ts = stamp_make(4, 1),
                                        .decided = true};
    uint32_t value = start == RIG_START_NOTHING ? 0 : 1;
    for (uint8_t i = 0; i < n; i++) {
        node_new(r, i);
        r->nodes[i].view = *view;
        bool forgot = start == RIG_START_FORGETTING && random_chance(&r->random, 500000);
        if (value != 0 && !forgot) {
            r->nodes[i].value = value;
            r->nodes[i].meta.ts = r->updates[1].ts;
            r->nodes[i].meta.flags = KEY_READABLE | value_flags(r, 1);
            if (start == RIG_START_FORGETTING) {
                r->nodes[i].meta.flags |= KEY_REPORTED | KEY_AGREED;
            }
        }
    }
    r->hist[0] = value;
    r->nhist = 1;
}

static bool nil(const struct rig *r, uint32_t update)
{
    return update == 0 || r->updates[update].kind == RIG_DELETE;
}

static bool settled(const struct rig *r)
{
    const struct view *view = rig_newest(r);
    uint8_t one = nodeset_first(view->operational);
    for (nodeset rest = view->live; rest != 0; rest &= rest - 1) {
        const struct rig_node *n = &r->nodes[nodeset_first(rest)];
        uint32_t value = r->nodes[one].value;
        bool same = n->value == value || (nil(r, n->value) && nil(r, value));
        if (n->meta.state != HERMES_VALID || !same || n->parked != 0) {
            return false;
        }
        for (uint32_t i = 1; i < RIG_SLOTS; i++) {
            if (n->slots[i].kind != FLOW_FREE) {
                return false;
            }
        }
    }
    for (uint32_t i = 1; i < r->nupdates; i++) {
        if (!r->updates[i].decided) {
            return false;
        }
    }
    return true;
}

static void deliver_all(struct rig *r)
{
    /* Deliveries add messages, so this goes on until a whole round finds none. */
    for (uint32_t rounds = 0, found = 1; found > 0 && rounds < 64; rounds++) {
        found = 0;
        for (int i = 0; i < (int)RIG_MESSAGES; i++) {
            if (r->bag[i].used) {
                rig_deliver(r, i, false);
                found++;
            }
        }
    }
}

bool rig_settle(struct rig *r)
{
    r->mail_waits = false;
    r->gate = false;
    for (uint8_t i = 0; i < r->n; i++) {
        rig_adopt(r, i);
    }
    for (uint32_t round = 0; round < 24; round++) {
        deliver_all(r);
        if (settled(r) || r->violation != NULL) {
            return r->violation == NULL;
        }
        rig_advance(r, RIG_MLT_US);
        for (uint8_t i = 0; i < r->n; i++) {
            rig_mail(r, i);
            rig_nudge(r, i);
            rig_timer(r, i, FLOW_FREE);
            rig_park(r, i);
            rig_prod(r, i);
        }
    }
    return false;
}

void rig_print(const struct rig *r)
{
    printf("epoch %u live %llx operational %llx\n", rig_newest(r)->epoch,
           (unsigned long long)rig_newest(r)->live, (unsigned long long)rig_newest(r)->operational);
    for (uint8_t i = 0; i < r->n; i++) {
        const struct rig_node *n = &r->nodes[i];
        printf("node %u%s epoch %u %s value %u ts %llu.%u owner %u flags %x aux %x parked %u "
               "again %u\n",
               i, n->crashed ? " crashed" : "", n->view.epoch, hermes_state_names[n->meta.state],
               n->value, (unsigned long long)stamp_version(n->meta.ts), stamp_cid(n->meta.ts),
               n->meta.owner, n->meta.flags, n->meta.aux, n->parked, n->again);
        for (uint32_t k = 1; k < RIG_SLOTS; k++) {
            const struct slot *slot = &n->slots[k];
            if (slot->kind != FLOW_FREE) {
                printf("  slot %u kind %u ts %llu.%u acked %llx epoch %u operation %u\n", k,
                       slot->kind, (unsigned long long)stamp_version(slot->ts), stamp_cid(slot->ts),
                       (unsigned long long)slot->acked, slot->epoch, n->operation[k]);
            }
        }
    }
    for (uint32_t i = 1; i < r->nupdates; i++) {
        printf("update %u kind %u ts %llu.%u base %u%s\n", i, r->updates[i].kind,
               (unsigned long long)stamp_version(r->updates[i].ts), stamp_cid(r->updates[i].ts),
               r->updates[i].base, r->updates[i].decided ? "" : " open");
    }
    printf("history");
    for (uint32_t i = 0; i < r->nhist; i++) {
        printf(" %u", r->hist[i]);
    }
    printf("\n");
}
