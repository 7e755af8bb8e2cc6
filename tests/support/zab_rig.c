#include "support/zab_rig.h"

#include <string.h>

static const uint8_t key_names[RIG_KEYS] = {'a', 'b', 'c'};
static const uint8_t some_value[4] = {1, 2, 3, 4};

static void blame(struct rig *r, const char *why)
{
    if (r->violation == NULL) {
        r->violation = why;
    }
}

static uint8_t key_index(const struct msg *msg)
{
    return (uint8_t)(msg->key.at - key_names);
}

static uint32_t value_of(const struct rig_update *u, uint32_t id)
{
    return u->kind == RIG_DELETE ? 0 : id;
}

bool rig_alive(const struct rig *r, uint8_t node)
{
    return r->nodes[node].born != 0 && !r->nodes[node].crashed;
}

const struct view *rig_newest(const struct rig *r)
{
    return &r->views[r->nviews - 1];
}

/* ---- Judging ---- */

/* An entry is taken somewhere: the first time it enters the order, then it must be the same. */
static void judge_take(struct rig *r, uint64_t entry, uint32_t id)
{
    struct rig_update *u = &r->updates[id];
    if (entry <= r->norder) {
        if (r->order[entry] != id) {
            blame(r, "two nodes took different entries of one number");
        }
        return;
    }
    if (entry != r->norder + 1) {
        blame(r, "an entry was taken before the one below it");
        return;
    }
    if (u->entry != 0) {
        blame(r, "an update took effect twice");
    }
    if (u->kind == RIG_RMW && r->values[entry - 1][u->key] != u->base) {
        blame(r, "an RMW replaced a value that it was not computed on");
    }
    for (uint64_t e = 1; e < entry; e++) {
        const struct rig_update *other = &r->updates[r->order[e]];
        if (other->node == u->node && other->born == u->born && other->worker == u->worker &&
            other->session == u->session && other->number > u->number) {
            blame(r, "a session's updates were ordered against its program");
        }
    }
    r->norder = entry;
    r->order[entry] = id;
    u->entry = entry;
    memcpy(r->values[entry], r->values[entry - 1], sizeof r->values[entry]);
    r->values[entry][u->key] = value_of(u, id);
}

/* ---- Effects ---- */

static struct event event_of(struct rig *r, uint8_t node, uint8_t worker, enum ev_kind kind)
{
    struct rig_node *n = &r->nodes[node];
    return (struct event){.kind = kind,
                          .from = NODE_NONE,
                          .self = node,
                          .random = random_next(&r->random),
                          .taken = n->taken,
                          .log_bytes = (n->last + 1 - n->first) * RIG_ENTRY_BYTES,
                          .view = &n->workers[worker].view,
                          .config = &r->config,
                          .worker = &n->workers[worker].zab};
}

static void put(struct rig *r, uint8_t from, uint8_t from_worker, uint8_t to, const struct msg *msg,
                uint32_t update)
{
    uint8_t to_worker = zab_route(msg) == ROUTE_SLOT ? slot_ref_worker(msg->slot) : 0;
    struct rig_lane *lane = &r->lanes[from][from_worker][to][to_worker];
    HK_ASSERT(zab_msg_invalid(msg) == NULL);
    HK_ASSERT(lane->tail - lane->head < RIG_LANE);
    lane->packets[lane->tail++ % RIG_LANE] = (struct rig_packet){
        .msg = *msg,
        .update = update,
        .from_born = r->nodes[from].born,
        .to_born = r->nodes[from].workers[from_worker].view.members[to].admitted};
}

static void send(struct rig *r, uint8_t node, uint8_t worker, const struct effect *e,
                 const struct msg *payload, uint32_t update)
{
    struct msg m = {.kind = e->code,
                    .flags = e->flags,
                    .slot = e->slot,
                    .gen = e->gen,
                    .epoch = r->nodes[node].workers[worker].view.epoch,
                    .ts = e->ts,
                    .arg = e->kind == EFF_SEND ? e->set : 0};
    if ((e->with & EFF_NO_KEY) == 0) {
        m.key = payload->key;
    }
    if ((e->with & EFF_PAYLOAD) != 0) {
        m.value = payload->value;
        m.vflags = payload->vflags;
    }
    nodeset to = e->kind == EFF_SEND ? nodeset_of(e->to) : e->set;
    for (; to != 0; to &= to - 1) {
        put(r, node, worker, nodeset_first(to), &m, update);
    }
}

/* ---- Sessions ---- */

static struct rig_session *session_of(struct rig *r, const struct rig_update *u)
{
    return &r->nodes[u->node].workers[u->worker].sessions[u->session];
}

static void decided(struct rig *r, uint32_t id)
{
    struct rig_update *u = &r->updates[id];
    struct rig_session *s = session_of(r, u);
    u->done = true;
    if (u->entry == 0 || u->entry > r->nodes[u->node].taken + 1) {
        blame(r, "an update is done that its node has not taken");
    }
    s->seen = zab_higher(s->seen, u->entry);
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->updates[i] == id) {
            memmove(&s->updates[i], &s->updates[i + 1], (s->n - i - 1) * sizeof s->updates[0]);
            s->n--;
            return;
        }
    }
    HK_ASSERT(false && "an update that nobody waits for");
}

static void slot_effects(struct rig *r, uint8_t node, uint8_t worker, uint32_t index,
                         const struct effects *fx)
{
    struct rig_worker *w = &r->nodes[node].workers[worker];
    uint32_t id = w->updates[index];
    for (uint32_t i = 0; i < fx->n; i++) {
        switch (fx->e[i].kind) {
        case EFF_REPLY:
            if (fx->e[i].code == REPLY_DONE) {
                decided(r, id);
            } else {
                HK_ASSERT(fx->e[i].code == REPLY_LOST);
                HK_ASSERT(r->updates[id].issued);
                r->updates[id].issued = false;
                r->refusals++;
            }
            break;
        case EFF_CLOSE:
            HK_ASSERT(w->slots[index].kind == ZAB_FLOW_FREE);
            w->slots[index].gen++;
            w->updates[index] = 0;
            break;
        case EFF_DROP:
        case EFF_BEHIND:
            break;
        default:
            HK_ASSERT(false && "an effect that a slot does not have");
        }
    }
}

static void step_slot(struct rig *r, uint8_t node, uint8_t worker, uint32_t ref, uint32_t gen,
                      struct event *event)
{
    uint32_t index = slot_ref_index(ref) - 1;
    struct rig_worker *w = &r->nodes[node].workers[worker];
    struct effects fx = {.n = 0};
    if (index >= RIG_SLOTS || w->slots[index].kind == ZAB_FLOW_FREE || w->slots[index].gen != gen) {
        return; /* it is gone */
    }
    zab_flow(&w->slots[index], event, &fx);
    slot_effects(r, node, worker, index, &fx);
}

static void step_all_slots(struct rig *r, uint8_t node, uint8_t worker, enum ev_kind kind,
                           uint8_t code)
{
    struct rig_worker *w = &r->nodes[node].workers[worker];
    for (uint32_t i = 0; i < RIG_SLOTS; i++) {
        struct event event = event_of(r, node, worker, kind);
        event.code = code;
        step_slot(r, node, worker, w->slots[i].ref, w->slots[i].gen, &event);
    }
}

/* ---- Keys ---- */

static void key_flow(struct rig *r, uint8_t node, uint8_t self, const struct effect *e)
{
    uint8_t worker = slot_ref_worker(e->slot);
    if (worker >= RIG_WORKERS) {
        return;
    }
    struct rig_worker *w = &r->nodes[node].workers[worker];
    if (worker == self) {
        struct event event = event_of(r, node, worker, EV_KEY);
        event.code = e->code;
        step_slot(r, node, worker, e->slot, e->gen, &event);
        return;
    }
    HK_ASSERT(w->mails < sizeof w->mail / sizeof w->mail[0]);
    w->mail[w->mails++] = (struct rig_mail){.slot = e->slot, .gen = e->gen, .code = e->code};
}

static void step_key(struct rig *r, uint8_t node, uint8_t worker, struct event *event,
                     const struct msg *payload, uint32_t update, struct slot *spare)
{
    uint8_t key = key_index(payload);
    struct rig_node *n = &r->nodes[node];
    struct effects fx = {.n = 0};
    struct key_meta meta = n->keys[key].meta;
    zab_key(&meta, NULL, NULL, spare, event, &fx);
    for (uint32_t i = 0; i < fx.n; i++) {
        const struct effect *e = &fx.e[i];
        switch (e->kind) {
        case EFF_APPLY:
            meta.flags = (uint8_t)((meta.flags & ~KEY_VALUE_FLAGS) | payload->vflags);
            n->keys[key].meta = meta;
            n->keys[key].value = value_of(&r->updates[update], update);
            zab_ops.check(&meta, NULL);
            break;
        case EFF_FORGET:
            n->keys[key].meta = zab_ops.blank;
            n->keys[key].value = 0;
            break;
        case EFF_SEND:
            send(r, node, worker, e, payload, update);
            break;
        case EFF_FLOW:
            key_flow(r, node, worker, e);
            break;
        case EFF_ISSUE:
        case EFF_DROP:
        case EFF_BEHIND:
            break;
        default:
            HK_ASSERT(false && "an effect that a key does not have");
        }
    }
}

/* ---- The worker-wide flow ---- */

static void take(struct rig *r, uint8_t node, uint64_t until)
{
    struct rig_node *n = &r->nodes[node];
    HK_ASSERT(until <= n->last);
    while (n->taken < until) {
        struct rig_entry *entry = &n->log[(n->taken + 1) % RIG_ENTRIES];
        judge_take(r, n->taken + 1, entry->update);
        struct event event = event_of(r, node, 0, EV_MSG);
        event.from = node;
        event.msg = &entry->msg;
        step_key(r, node, 0, &event, &entry->msg, entry->update, NULL);
        n->taken++;
    }
}

static void keep(struct rig *r, uint8_t node, const struct effect *e, const struct msg *msg,
                 uint32_t update)
{
    struct rig_node *n = &r->nodes[node];
    HK_ASSERT(e->ts == n->last + 1 && n->last + 1 - n->first < RIG_ENTRIES);
    struct rig_entry *entry = &n->log[++n->last % RIG_ENTRIES];
    entry->msg = *msg;
    entry->msg.kind = e->code;
    entry->msg.flags = e->flags;
    entry->msg.ts = e->ts;
    entry->msg.arg = e->set;
    entry->update = update;
}

static void trim(struct rig *r, uint8_t node, uint64_t entry)
{
    struct rig_node *n = &r->nodes[node];
    HK_ASSERT(entry <= n->taken || entry > n->last || entry < n->first);
    if (entry > n->last) {
        n->last = entry;
        n->taken = entry;
    }
    n->first = zab_higher(n->first, entry + 1);
}

static void send_kept(struct rig *r, uint8_t node, const struct effect *e)
{
    struct rig_node *n = &r->nodes[node];
    for (uint32_t i = 0; i < e->slot; i++) {
        uint64_t number = e->ts + i;
        if (number < n->first || number > n->last) {
            blame(r, "an entry is needed that was trimmed");
            return;
        }
        struct rig_entry *entry = &n->log[number % RIG_ENTRIES];
        struct msg m = entry->msg;
        m.kind = e->code;
        m.epoch = n->workers[0].view.epoch;
        for (nodeset to = e->set; to != 0; to &= to - 1) {
            put(r, node, 0, nodeset_first(to), &m, entry->update);
        }
    }
}

static bool step_wide(struct rig *r, uint8_t node, struct event *event, uint32_t update)
{
    struct effects fx = {.n = 0};
    zab_flow(NULL, event, &fx);
    for (uint32_t i = 0; i < fx.n; i++) {
        const struct effect *e = &fx.e[i];
        switch (e->kind) {
        case EFF_SEND:
        case EFF_BCAST:
            send(r, node, 0, e, event->msg, update);
            break;
        case EFF_KEEP:
            keep(r, node, e, event->msg, update);
            break;
        case EFF_TAKE:
            take(r, node, e->ts);
            break;
        case EFF_TRIM:
            trim(r, node, e->ts);
            break;
        case EFF_SEND_KEPT:
            send_kept(r, node, e);
            break;
        case EFF_DROP:
        case EFF_BEHIND:
            break;
        default:
            HK_ASSERT(false && "an effect that a worker-wide flow does not have");
        }
    }
    return fx.n > 0;
}

void rig_flush(struct rig *r, uint8_t node)
{
    struct rig_node *n = &r->nodes[node];
    if (!rig_alive(r, node) || n->workers[0].view.epoch == 0) {
        return;
    }
    for (uint32_t i = 0;; i++) {
        struct event event = event_of(r, node, 0, EV_FLUSH);
        if (!step_wide(r, node, &event, 0) || r->violation != NULL) {
            break;
        }
        HK_ASSERT(i < 100);
    }
    const struct view *view = &n->workers[0].view;
    if (zab_ready(&n->workers[0].zab)) {
        n->ready_epoch = view->epoch;
        n->serves |= nodeset_has(view->operational, node);
    }
}

/* ---- Lanes ---- */

bool rig_deliver(struct rig *r, uint8_t from, uint8_t from_worker, uint8_t to, uint8_t to_worker)
{
    struct rig_lane *lane = &r->lanes[from][from_worker][to][to_worker];
    struct rig_node *n = &r->nodes[to];
    if (lane->head == lane->tail) {
        return false;
    }
    struct rig_packet *p = &lane->packets[lane->head % RIG_LANE];
    if (rig_alive(r, to) && n->born == p->to_born &&
        p->msg.epoch > n->workers[to_worker].view.epoch) {
        return false; /* a lane holds what is early */
    }
    lane->head++;
    r->steps++;
    const struct view *view = &n->workers[to_worker].view;
    if (!rig_alive(r, to) || n->born != p->to_born || view->epoch == 0) {
        return true;
    }
    struct event event = event_of(r, to, to_worker, EV_MSG);
    bool member = nodeset_has(view->live, from) && view->members[from].admitted == p->from_born;
    event.from = member ? from : NODE_NONE;
    event.msg = &p->msg;
    switch (zab_route(&p->msg)) {
    case ROUTE_KEY:
        n->copied |= 1u << key_index(&p->msg);
        step_key(r, to, to_worker, &event, &p->msg, p->update, NULL);
        break;
    case ROUTE_SLOT:
        step_slot(r, to, to_worker, p->msg.slot, p->msg.gen, &event);
        break;
    case ROUTE_ANY: /* none of ZAB's messages is */
    case ROUTE_WORKER:
        event.key_hash = p->msg.key.n > 0 && !r->collide ? p->msg.key.at[0] : 0;
        step_wide(r, to, &event, p->update);
        break;
    }
    return true;
}

void rig_pass(struct rig *r, uint8_t from, uint8_t to)
{
    const struct rig_lane *lane = &r->lanes[from][0][to][0];
    for (uint32_t n = lane->tail - lane->head; n > 0; n--) {
        (void)rig_deliver(r, from, 0, to, 0);
    }
}

bool rig_mail(struct rig *r, uint8_t node, uint8_t worker)
{
    struct rig_worker *w = &r->nodes[node].workers[worker];
    if (w->mails == 0) {
        return false;
    }
    struct rig_mail mail = w->mail[0];
    memmove(&w->mail[0], &w->mail[1], --w->mails * sizeof w->mail[0]);
    struct event event = event_of(r, node, worker, EV_KEY);
    event.code = mail.code;
    step_slot(r, node, worker, mail.slot, mail.gen, &event);
    return true;
}

bool rig_tell(struct rig *r, uint8_t node, uint8_t worker)
{
    struct rig_node *n = &r->nodes[node];
    struct rig_worker *w = &n->workers[worker];
    if (!rig_alive(r, node) || w->mails > 0 || w->view.epoch == 0 ||
        n->ready_epoch != w->view.epoch || w->ready_told == w->view.epoch) {
        return false;
    }
    step_all_slots(r, node, worker, EV_KEY, FLOW_CODE_READY);
    w->ready_told = w->view.epoch;
    return true;
}

/* ---- Clients ---- */

static struct slot *free_slot(struct rig_worker *w)
{
    for (uint32_t i = 0; i < RIG_SLOTS; i++) {
        if (w->slots[i].kind == ZAB_FLOW_FREE) {
            return &w->slots[i];
        }
    }
    return NULL;
}

static bool issue(struct rig *r, uint32_t id)
{
    struct rig_update *u = &r->updates[id];
    struct rig_node *n = &r->nodes[u->node];
    struct rig_worker *w = &n->workers[u->worker];
    struct slot *spare = free_slot(w);
    if (!rig_may_read(r, u->node) || w->ready_told != w->view.epoch || spare == NULL ||
        !nodeset_has(w->view.operational, u->node)) {
        return false;
    }
    struct msg payload = {.key = bytes_of(&key_names[u->key], 1),
                          .vflags = u->kind == RIG_DELETE ? KEY_TOMBSTONE : 0,
                          .value = bytes_of(some_value, u->kind == RIG_DELETE ? 0 : 4)};
    struct event event = event_of(r, u->node, u->worker, EV_UPDATE);
    event.rmw = u->kind == RIG_RMW;
    u->base = n->keys[u->key].value;
    step_key(r, u->node, u->worker, &event, &payload, id, spare);
    u->issued = spare->kind == ZAB_FLOW_UPDATE;
    w->updates[spare - w->slots] = u->issued ? id : 0;
    return u->issued;
}

/* As may_start in node/session.c: nothing overtakes what is not issued, an RMW is a barrier. */
void rig_issue(struct rig *r, uint8_t node, uint8_t worker)
{
    struct rig_worker *w = &r->nodes[node].workers[worker];
    for (uint32_t i = 0; i < RIG_SESSIONS; i++) {
        struct rig_session *s = &w->sessions[i];
        for (uint32_t k = 0; k < s->n; k++) {
            struct rig_update *u = &r->updates[s->updates[k]];
            bool barrier =
                k > 0 && (u->kind == RIG_RMW || r->updates[s->updates[k - 1]].kind == RIG_RMW);
            bool same = false;
            for (uint32_t j = 0; j < k; j++) {
                same |= r->updates[s->updates[j]].key == u->key;
            }
            if (!u->issued && (barrier || same || !issue(r, s->updates[k]))) {
                break;
            }
        }
    }
}

uint32_t rig_update(struct rig *r, uint8_t node, uint8_t worker, uint8_t session,
                    enum rig_kind kind, uint8_t key)
{
    struct rig_session *s = &r->nodes[node].workers[worker].sessions[session];
    if (!rig_may_read(r, node) || s->n == RIG_SLOTS / RIG_SESSIONS ||
        r->nupdates == RIG_UPDATES - 1) {
        return 0;
    }
    uint32_t id = ++r->nupdates;
    r->updates[id] = (struct rig_update){.kind = (uint8_t)kind,
                                         .key = key,
                                         .node = node,
                                         .worker = worker,
                                         .session = session,
                                         .born = r->nodes[node].born,
                                         .number = ++s->numbers};
    s->updates[s->n++] = id;
    rig_issue(r, node, worker);
    return id;
}

bool rig_may_read(const struct rig *r, uint8_t node)
{
    const struct rig_node *n = &r->nodes[node];
    bool operational = nodeset_has(n->workers[0].view.operational, node);
    return rig_alive(r, node) && operational &&
           (n->serves || !zab_rule_on(&r->config, ZAB_RULE_READY));
}

bool rig_read(struct rig *r, uint8_t node, uint8_t worker, uint8_t session, uint8_t key)
{
    struct rig_node *n = &r->nodes[node];
    struct rig_session *s = &n->workers[worker].sessions[session];
    if (!rig_may_read(r, node) || s->n > 0) {
        return false;
    }
    r->reads++;
    if (r->values[n->taken][key] != n->keys[key].value) {
        blame(r, "a read saw what no prefix of the order holds");
    }
    if (n->taken < s->seen) {
        blame(r, "a session read less than it had seen");
    }
    s->seen = n->taken;
    return true;
}

/* ---- For the other file ---- */

const uint8_t *rig_key_name(uint8_t key)
{
    return &key_names[key];
}

void rig_put_item(struct rig *r, uint8_t from, uint8_t to, const struct msg *item, uint32_t update)
{
    put(r, from, 0, to, item, update);
}

void rig_step_slots_view(struct rig *r, uint8_t node, uint8_t worker)
{
    step_all_slots(r, node, worker, EV_VIEW, 0);
}

void rig_step_view(struct rig *r, uint8_t node)
{
    struct event event = event_of(r, node, 0, EV_VIEW);
    (void)step_wide(r, node, &event, 0);
}

void rig_sweep(struct rig *r, uint8_t node, uint8_t key)
{
    struct rig_node *n = &r->nodes[node];
    if (rig_alive(r, node) && (n->keys[key].meta.flags & KEY_TOMBSTONE) != 0 &&
        n->keys[key].meta.ts != 0 && nodeset_has(n->workers[0].view.operational, node)) {
        struct msg payload = {.key = bytes_of(&key_names[key], 1)};
        struct event event = event_of(r, node, 0, EV_SWEEP);
        step_key(r, node, 0, &event, &payload, 0, NULL);
    }
}
