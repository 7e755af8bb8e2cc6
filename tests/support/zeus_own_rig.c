#include "support/zeus_own_rig.h"

#include <stdio.h>
#include <string.h>

void own_rig_wrong(struct own_rig *r, const char *what)
{
    if (r->wrong == NULL) {
        r->wrong = what;
    }
}

/* ---- Messages ---- */

static uint8_t lane_of(uint8_t kind)
{
    return kind < OWN_MSG_RECOVERED || kind == OWN_MSG_PUSHED ? OWN_RIG_OBJECT : OWN_RIG_REST;
}

void own_rig_send(struct own_rig *r, uint8_t node, nodeset to, const struct own_rig_message *m)
{
    const struct view *view = &r->nodes[node].view;
    for (nodeset rest = to & view->live; rest != 0; rest &= rest - 1) {
        uint8_t target = nodeset_first(rest);
        struct own_rig_lane *lane = &r->lanes[node][target][lane_of(m->kind)];
        HK_ASSERT(lane->n < OWN_RIG_LANE);
        struct own_rig_message *sent = &lane->messages[(lane->first + lane->n++) % OWN_RIG_LANE];
        *sent = *m;
        sent->epoch = view->epoch;
        sent->from_born = own_rig_born(view, node);
        sent->to_born = own_rig_born(view, target);
        r->sent += target != node && m->kind < OWN_MSG_RECOVERED;
    }
}

/* ---- Effects ---- */

static void send(struct own_rig *r, uint8_t node, const struct own_effect *e)
{
    const struct own_rig_node *n = &r->nodes[node];
    struct own_rig_message m = {.kind = e->code, .ts = e->ts, .arg = n->clock, .body = e->body};
    HK_ASSERT(nodeset_within(e->to, n->view.live) || r->config.rules_off != 0);
    if (e->body.value) {
        bool kept = n->kept && n->kept_version == e->body.version;
        HK_ASSERT(kept || (n->have && n->version == e->body.version) || r->config.rules_off != 0);
        m.value = kept ? n->kept_value : n->value;
        m.body.vflags = m.value == 0 ? KEY_TOMBSTONE : 0;
    }
    own_rig_send(r, node, e->to, &m);
}

static void install(struct own_rig *r, struct own_rig_node *n, uint64_t ts)
{
    bool kept = n->kept && n->kept_version == ts;
    if (n->have && n->version >= ts) {
        return;
    }
    n->have = true;
    n->version = ts;
    n->value = kept ? n->kept_value : 0;
    n->state = ZEUS_VALID;
    n->owned = false;
    n->shut = false;
    (void)r;
}

static void grant(struct own_rig *r, struct own_rig_node *n, uint8_t level)
{
    HK_ASSERT(n->have || r->config.rules_off != 0);
    if (level != OWN_OWNER) {
        n->owned = false;
        return;
    }
    if (!n->owned && n->state == ZEUS_INVALID) {
        n->state = ZEUS_VALID; /* its commit is done: the old owner's ACK waited for that */
    }
    n->owned = true;
}

static void drop(struct own_rig *r, struct own_rig_node *n)
{
    HK_ASSERT(n->commits_n == 0 || r->config.rules_off != 0);
    n->have = false;
    n->owned = false;
    n->shut = false;
    n->version = 0;
    n->value = 0;
    n->state = ZEUS_VALID;
}

static void effect(struct own_rig *r, uint8_t node, const struct own_effect *e,
                   const struct own_rig_message *m)
{
    struct own_rig_node *n = &r->nodes[node];
    switch ((enum own_fx)e->kind) {
    case OWN_FX_SEND:
        send(r, node, e);
        break;
    case OWN_FX_REVOKE:
        n->owned = false;
        break;
    case OWN_FX_GRANT:
        grant(r, n, e->code);
        break;
    case OWN_FX_SHUT:
        n->shut = true;
        break;
    case OWN_FX_OPEN:
        n->shut = false;
        break;
    case OWN_FX_KEEP:
        HK_ASSERT(m != NULL && m->body.value);
        n->kept = true;
        n->kept_version = e->ts;
        n->kept_value = m->value;
        break;
    case OWN_FX_INSTALL:
        install(r, n, e->ts);
        break;
    case OWN_FX_DROP:
        drop(r, n);
        break;
    case OWN_FX_DONE:
        n->dones++;
        n->code = e->code;
        break;
    case OWN_FX_BEHIND:
        break;
    case OWN_FX_COUNT:
        r->counts[e->code]++;
        break;
    }
}

/* ---- Steps ---- */

bool own_rig_busy(const struct own_rig *r, uint8_t node)
{
    return r->nodes[node].commits_n > 0 || r->nodes[node].locked;
}

struct own_event own_rig_event(struct own_rig *r, uint8_t node, enum own_ev kind)
{
    struct own_rig_node *n = &r->nodes[node];
    return (struct own_event){
        .kind = kind,
        .from = node,
        .self = node,
        .recovered = nodeset_within(n->view.live, n->recovered),
        .settled = nodeset_within(n->view.live, n->settled),
        .alive = true,
        .now_us = r->now_us,
        .random = random_next(&r->random),
        .view = &n->view,
        .directory = own_directory(&n->view, r->hash),
        .drivers = own_drivers(&n->view, r->hash),
        .chief = r->chiefs ? own_chief(own_drivers(&n->view, r->hash), r->hash) : 0,
        .waited = n->waited,
        .data = {.version = n->version,
                 .have = n->have,
                 .busy = own_rig_busy(r, node),
                 .tombstone = n->have && n->value == 0},
        .clock = &n->clock,
        .forgot = &n->forgot,
        .seq = &n->seq,
        .config = &r->config,
    };
}

void own_rig_step(struct own_rig *r, uint8_t node, struct own_event *event,
                  const struct own_rig_message *m)
{
    struct own_rig_node *n = &r->nodes[node];
    struct own_effects fx;
    if (r->trace) {
        static const char *const events[] = {"WANT", "MSG", "FREE", "VIEW", "GO", "TIMER"};
        printf("node %u view %u %s %s from %u type %u: ", node, n->view.epoch, events[event->kind],
               m != NULL ? own_kind_names[m->kind] : "", event->from,
               m != NULL ? m->body.request.type : event->want.type);
    }
    own_step(&n->entry, n->recordless ? NULL : &n->busy, event, &fx);
    for (uint32_t i = 0; i < fx.n; i++) {
        if (r->trace) {
            static const char *const names[] = {"SEND", "REVOKE", "GRANT",   "SHUT",
                                                "OPEN", "KEEP",   "INSTALL", "DROP",
                                                "DONE", "BEHIND", "COUNT"};
            printf("%s(%u to %llx ts %llu%s) ", names[fx.e[i].kind], fx.e[i].code,
                   (unsigned long long)fx.e[i].to, (unsigned long long)stamp_version(fx.e[i].ts),
                   fx.e[i].body.value ? " value" : "");
        }
        effect(r, node, &fx.e[i], m);
    }
    if (r->trace) {
        printf("\n");
    }
    if (r->config.rules_off == 0) {
        struct own_data data = own_rig_event(r, node, OWN_EV_FREE).data;
        own_check(&n->entry, n->recordless ? NULL : &n->busy, &data, &n->view, node);
    }
    if (own_idle(&n->busy)) {
        n->kept = false;
        n->busy = (struct own_busy){.ts = 0};
    }
    own_rig_check(r);
}

void own_rig_want(struct own_rig *r, uint8_t node, enum own_type type, uint8_t target)
{
    struct own_event event = own_rig_event(r, node, OWN_EV_WANT);
    event.want = (struct own_request){.type = (uint8_t)type,
                                      .target = target,
                                      .degree = type == OWN_DEGREE ? 2 : 0,
                                      .create = type == OWN_OWNER};
    own_rig_step(r, node, &event, NULL);
}

void own_rig_hand(struct own_rig *r, uint8_t node, uint8_t from, const struct own_rig_message *m)
{
    struct own_rig_node *n = &r->nodes[node];
    uint8_t bytes[OWN_BODY_BYTES + 8] = {0};
    own_body_encode(&m->body, bytes);
    bool tombstone = (m->body.vflags & KEY_TOMBSTONE) != 0;
    uint32_t more = m->body.value && !tombstone ? 8 : 0;
    struct msg msg = {.kind = m->kind,
                      .epoch = m->epoch,
                      .ts = m->ts,
                      .arg = m->arg,
                      .key = bytes_of("k", 1),
                      .value = bytes_of(bytes, OWN_BODY_BYTES + more)};
    const char *invalid = own_msg_invalid(&msg);
    if (invalid != NULL) {
        own_rig_wrong(r, invalid); /* its receiver does not take it */
        return;
    }
    struct own_event event = own_rig_event(r, node, OWN_EV_MSG);
    event.from = from;
    event.alive = m->epoch == n->view.epoch;
    event.msg = &msg;
    own_rig_step(r, node, &event, m);
}

/* ---- Lanes ---- */

static void epoch_message(struct own_rig *r, uint8_t node, uint8_t from,
                          const struct own_rig_message *m)
{
    struct own_rig_node *n = &r->nodes[node];
    if (m->epoch != n->view.epoch) {
        return;
    }
    if (m->kind == OWN_MSG_PUSHED) {
        n->pushed |= nodeset_of(from);
    } else {
        *(m->kind == OWN_MSG_RECOVERED ? &n->recovered : &n->settled) |= nodeset_of(from);
    }
}

static void receive(struct own_rig *r, uint8_t node, uint8_t from, const struct own_rig_message *m)
{
    if (m->kind < OWN_MSG_RECOVERED) {
        own_rig_hand(r, node, from, m);
    } else if (m->kind < OWN_MSG_END) {
        epoch_message(r, node, from, m);
    } else {
        own_rig_commit_message(r, node, from, m);
    }
    own_rig_epoch(r, node);
}

bool own_rig_deliver(struct own_rig *r, uint8_t from, uint8_t to, uint8_t which)
{
    struct own_rig_lane *lane = &r->lanes[from][to][which];
    struct own_rig_node *n = &r->nodes[to];
    if (lane->n == 0) {
        return false;
    }
    struct own_rig_message m = lane->messages[lane->first];
    bool same = !n->crashed && own_rig_born(&n->view, to) == m.to_born;
    if (same && m.epoch > n->view.epoch) {
        return false; /* lanes deliver epoch by epoch */
    }
    lane->first = (lane->first + 1) % OWN_RIG_LANE;
    lane->n--;
    bool member = nodeset_has(n->view.live, from) && own_rig_born(&n->view, from) == m.from_born;
    if (same && member) {
        receive(r, to, from, &m);
    }
    return true;
}

void own_rig_pass(struct own_rig *r, uint8_t from, uint8_t to, uint8_t kind)
{
    const struct own_rig_lane *lane = &r->lanes[from][to][lane_of(kind)];
    if (lane->n == 0 || lane->messages[lane->first].kind != kind) {
        printf("no message of kind %u from %u to %u\n", kind, from, to);
        own_rig_print(r);
        HK_ASSERT(false && "no such message");
    }
    bool delivered = own_rig_deliver(r, from, to, lane_of(kind));
    HK_ASSERT(delivered);
}

void own_rig_run_among(struct own_rig *r, nodeset set, uint8_t lane)
{
    bool some = true;
    while (some) {
        some = false;
        for (uint32_t i = 0; i < (uint32_t)r->n * r->n; i++) {
            uint8_t from = (uint8_t)(i / r->n);
            uint8_t to = (uint8_t)(i % r->n);
            bool both = nodeset_has(set, from) && nodeset_has(set, to);
            some = (both && own_rig_deliver(r, from, to, lane)) || some;
        }
    }
}

void own_rig_lose(struct own_rig *r, uint8_t from, uint8_t to)
{
    r->lanes[from][to][OWN_RIG_OBJECT].n = 0;
}

bool own_rig_run_one(struct own_rig *r)
{
    uint32_t all = (uint32_t)r->n * r->n * OWN_RIG_LANES;
    uint32_t first = (uint32_t)random_below(&r->random, all);
    for (uint32_t i = 0; i < all; i++) {
        uint32_t nth = (first + i) % all;
        if (own_rig_deliver(r, (uint8_t)(nth / OWN_RIG_LANES / r->n),
                            (uint8_t)(nth / OWN_RIG_LANES % r->n),
                            (uint8_t)(nth % OWN_RIG_LANES))) {
            return true;
        }
    }
    return false;
}

void own_rig_run(struct own_rig *r)
{
    while (own_rig_run_one(r)) {
    }
}

bool own_rig_timers(struct own_rig *r)
{
    uint64_t next = UINT64_MAX;
    for (uint8_t i = 0; i < r->n; i++) {
        uint64_t due = r->nodes[i].busy.due_us;
        next = !r->nodes[i].crashed && due != 0 && due < next ? due : next;
    }
    if (next == UINT64_MAX) {
        return false;
    }
    r->now_us = next > r->now_us ? next : r->now_us;
    for (uint8_t i = 0; i < r->n; i++) {
        uint64_t due = r->nodes[i].busy.due_us;
        if (!r->nodes[i].crashed && due != 0 && due <= r->now_us) {
            struct own_event event = own_rig_event(r, i, OWN_EV_TIMER);
            own_rig_step(r, i, &event, NULL);
            own_rig_epoch(r, i);
        }
    }
    return true;
}

void own_rig_place(struct own_rig *r, uint64_t off, uint64_t seed, uint8_t owner, nodeset readers)
{
    own_rig_init(r, 5, 0, off, seed);
    own_rig_want(r, owner, OWN_OWNER, NODE_NONE);
    own_rig_run(r);
    (void)own_rig_commit(r, owner, false);
    own_rig_run(r);
    for (nodeset rest = readers; rest != 0; rest &= rest - 1) {
        own_rig_want(r, nodeset_first(rest), OWN_READER, NODE_NONE);
        own_rig_run(r);
    }
    HK_ASSERT(r->nodes[owner].owned);
}
