/* Hermes, the key machine: what a follower does with INV, ACK_ALL, VAL and a chunk's item ([H]
 * 4.2.2 F_INV, F_ACK, F_VAL; 4.3 O3; 4.3.5 F_RMW-ACK; 4.3.3 recovery). Rules are those of
 * docs/protocols/hermes.md. */
#include "engine/hermes/machine.h"

/* ---- [H] O3: the set of ACKs seen for the stored ts, in key_meta.aux ----
 *
 * The low bits are the set, by rank among the configured nodes; the bits above them are the low
 * bits of the epoch in which it was gathered. A set of another epoch counts for nothing: a member
 * may have been replaced by a process that lacks the update. Three configured nodes leave 13 bits,
 * twelve leave 4, and the background sweep discards old sets, so that a tag cannot come round. */

static uint16_t o3_tag(const struct view *view)
{
    uint32_t n = nodeset_count(configured_of(view));
    return (uint16_t)(view->epoch << n);
}

/* A set of nodes as bits by rank. */
static uint16_t o3_ranks(const struct view *view, nodeset set)
{
    nodeset configured = configured_of(view);
    uint32_t ranks = 0;
    for (nodeset rest = set & configured; rest != 0; rest &= rest - 1) {
        nodeset below = (nodeset_of(nodeset_first(rest)) - 1) & configured;
        ranks |= 1u << nodeset_count(below);
    }
    return (uint16_t)ranks;
}

static uint16_t o3_seen(const struct key_step *s)
{
    uint32_t mask = (1u << nodeset_count(configured_of(s->view))) - 1;
    if ((s->meta->aux & ~mask) != o3_tag(s->view) && rule_on(s->config, HERMES_RULE_O3_EPOCH)) {
        return 0;
    }
    return (uint16_t)(s->meta->aux & mask);
}

static void o3_add(struct key_step *s, nodeset from)
{
    s->meta->aux = (uint16_t)(o3_tag(s->view) | o3_seen(s) | o3_ranks(s->view, from));
}

static bool o3_complete(const struct key_step *s)
{
    uint16_t live = o3_ranks(s->view, s->view->live);
    return (o3_seen(s) & live) == live;
}

/* ACKs that came before their INV are kept, or a follower that is served in another order would
 * wait for ever: nobody sends them again. */
static void early_keep(struct key_step *s)
{
    const struct event *event = s->event;
    struct early_ack *early = &s->worker->early[event->local_hash % EARLY_ACKS];
    if (early->hash != event->local_hash || early->ts != event->msg->ts ||
        early->epoch != event->msg->epoch) {
        *early = (struct early_ack){
            .hash = event->local_hash, .ts = event->msg->ts, .epoch = event->msg->epoch};
    }
    early->from |= nodeset_of(event->from);
}

static nodeset early_take(const struct key_step *s)
{
    const struct early_ack *early = &s->worker->early[s->event->local_hash % EARLY_ACKS];
    bool same = early->hash == s->event->local_hash && early->ts == s->meta->ts &&
                (early->epoch == s->view->epoch || !rule_on(s->config, HERMES_RULE_O3_EPOCH));
    return same ? early->from : 0;
}

/* Whether the update that the message carries is acknowledged to all (rule 7). */
static bool o3_covers(const struct key_step *s, const struct msg *msg)
{
    bool plain = (msg->flags & (HERMES_F_RMW | HERMES_F_FIRST)) == 0 ||
                 !rule_on(s->config, HERMES_RULE_O3_WRITES);
    return (msg->flags & HERMES_F_ACK_ALL) != 0 && plain && o3_possible(s->view);
}

/* ---- F_INV ---- */

/* What timestamp comparisons use: 0 where the message proves that the stored tombstone may go. */
static uint64_t local_ts(const struct key_step *s, const struct msg *msg)
{
    return hermes_forgettable(s, msg) ? 0 : s->meta->ts;
}

/* Takes ts, value, flags and state of a newer update together (I3). */
static void apply(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    const struct msg *msg = s->event->msg;
    if (meta->state == HERMES_WRITE && pending_special(meta) &&
        !rule_on(s->config, HERMES_RULE_LOST_VALID)) {
        hermes_end_pending(s,
                           FLOW_CODE_LOST); /* the fault to be shown: told before it is certain */
    }
    meta->ts = msg->ts;
    meta->flags &= (uint8_t) ~(KEY_VALUE_FLAGS | KEY_RMW | KEY_FIRST | KEY_REPORTED);
    meta->flags |= msg->vflags & KEY_VALUE_FLAGS;
    if ((msg->flags & HERMES_F_RMW) != 0) {
        meta->flags |= KEY_RMW;
    }
    if ((msg->flags & HERMES_F_FIRST) != 0) {
        meta->flags |= KEY_FIRST;
    }
    if (meta->owner == 0) {
        meta->flags &= (uint8_t)~KEY_AGREED;
    }
    meta->aux = rule_on(s->config, HERMES_RULE_CID_TRIGGER) ? 0 : s->event->from;
    hermes_set_state(meta, s->config, hermes_invalid_state(meta));
    effects_add(s->fx, EFF_APPLY);
}

/* F_ACK. Under O3 the ACK goes to everybody, and with the INV, which is its sender's ACK, the
 * receiver may have them all. */
static void acknowledge(struct key_step *s)
{
    const struct event *event = s->event;
    const struct msg *msg = event->msg;
    struct key_meta *meta = s->meta;
    struct effect *e = effects_add(s->fx, EFF_SEND);
    e->code = HERMES_ACK;
    e->to = event->from;
    e->with = EFF_NO_KEY;
    e->slot = msg->slot;
    e->gen = msg->gen;
    e->ts = msg->ts;
    if (meta->state == HERMES_VALID) {
        meta->aux = 0; /* a tombstone's age starts anew with what was sent about it */
    }
    if (!o3_covers(s, msg) || meta->state == HERMES_WRITE) {
        return;
    }
    nodeset rest = others_of(event) & ~nodeset_of(event->from);
    if (rest != 0) {
        e = effects_add(s->fx, EFF_BCAST);
        e->code = HERMES_ACK_ALL;
        e->set = rest;
        e->ts = msg->ts;
    }
    if (meta->state != HERMES_VALID && meta->ts == msg->ts) {
        o3_add(s, nodeset_of(event->self) | nodeset_of(event->from) | early_take(s));
        if (o3_complete(s)) {
            hermes_turn_valid(s);
        }
    }
}

static void inv_above(struct key_step *s)
{
    const struct msg *msg = s->event->msg;
    apply(s);
    if ((msg->flags & HERMES_F_ANSWER) == 0) {
        acknowledge(s);
    } else if ((msg->flags & HERMES_F_VALID) != 0) {
        hermes_turn_valid(s); /* rule 11 */
    }
}

static void inv_equal(struct key_step *s)
{
    const struct msg *msg = s->event->msg;
    struct key_meta *meta = s->meta;
    if ((msg->flags & HERMES_F_ANSWER) != 0) {
        if ((msg->flags & HERMES_F_VALID) != 0 && meta->state != HERMES_VALID) {
            hermes_turn_valid(s);
        } else {
            hermes_drop(s->fx, ENGINE_DROP_STALE);
        }
    } else if (meta->state == HERMES_WRITE && pending_special(meta) &&
               rule_on(s->config, HERMES_RULE_NO_OWN_ACK)) {
        /* Rule 6c: somebody replays the RMW that is pending here. An ACK could commit it behind
         * our back; if it commits here, the VAL tells. */
        hermes_drop(s->fx, ENGINE_DROP_STALE);
    } else {
        acknowledge(s);
    }
}

/* Rule 4: never acknowledged. Write and Replay need no answer: the INV of the local ts has been
 * sent to this sender and is sent again until it is acknowledged. */
static void inv_below(struct key_step *s)
{
    const struct msg *msg = s->event->msg;
    struct key_meta *meta = s->meta;
    if ((msg->flags & HERMES_F_ANSWER) != 0) {
        hermes_drop(s->fx, ENGINE_DROP_STALE);
    } else if ((msg->flags & (HERMES_F_RMW | HERMES_F_FIRST)) == 0 &&
               !rule_on(s->config, HERMES_RULE_ACK_SAME)) {
        acknowledge(s);
    } else if (meta->state == HERMES_WRITE || meta->state == HERMES_REPLAY) {
        hermes_drop(s->fx, ENGINE_DROP_STALE);
    } else {
        if (meta->state == HERMES_VALID) {
            meta->aux = 0;
        }
        hermes_send_answer(s, s->event->from);
    }
}

static void f_inv(struct key_step *s)
{
    const struct msg *msg = s->event->msg;
    uint64_t local = local_ts(s, msg);
    if (msg->ts > local) {
        inv_above(s);
    } else if (msg->ts == local) {
        inv_equal(s);
    } else {
        inv_below(s);
    }
}

/* ---- ACK_ALL ([H] O3) ---- */

static void f_ack_all(struct key_step *s)
{
    const struct msg *msg = s->event->msg;
    struct key_meta *meta = s->meta;
    if (msg->ts > meta->ts) {
        early_keep(s);
        return;
    }
    bool counts = msg->ts == meta->ts && meta->state != HERMES_VALID &&
                  meta->state != HERMES_WRITE && o3_possible(s->view) &&
                  rule_on(s->config, HERMES_RULE_CID_TRIGGER);
    /* The stored flags say whether acknowledging to all was meant for this update. */
    if ((meta->flags & (KEY_RMW | KEY_FIRST)) != 0 && rule_on(s->config, HERMES_RULE_O3_WRITES)) {
        counts = false;
    }
    if (!counts) {
        hermes_drop(s->fx, ENGINE_DROP_STALE);
        return;
    }
    o3_add(s, nodeset_of(s->event->from));
    if (o3_complete(s)) {
        hermes_turn_valid(s);
    }
}

/* ---- F_VAL ---- */

/* A VAL needs no epoch (rule 2): that every member of its sender's view had this ts stays true. Its
 * sender has to be a member still, or a process that was dropped long ago could prove the ts of a
 * forgotten life of the key. */
static void f_val(struct key_step *s)
{
    const struct msg *msg = s->event->msg;
    struct key_meta *meta = s->meta;
    if (msg->epoch != s->view->epoch && !rule_on(s->config, HERMES_RULE_VAL_ANY_EPOCH)) {
        hermes_drop(s->fx, ENGINE_DROP_EPOCH_OLD);
        return;
    }
    if (!nodeset_has(s->view->live, s->event->from) && rule_on(s->config, HERMES_RULE_VAL_MEMBER)) {
        hermes_drop(s->fx, ENGINE_DROP_SENDER);
        return;
    }
    bool same = msg->ts == meta->ts || !rule_on(s->config, HERMES_RULE_VAL_TS);
    if (meta->state == HERMES_VALID || !same) {
        hermes_drop(s->fx, ENGINE_DROP_STALE);
    } else if (meta->state == HERMES_WRITE && !rule_on(s->config, HERMES_RULE_WRITE_VAL)) {
        /* The fault to be shown: a VAL treated as if only followers got any. */
        hermes_set_state(meta, s->config, HERMES_VALID);
    } else {
        hermes_turn_valid(s);
    }
}

/* ---- Items of a chunk (rule 9) ---- */

static void f_item(struct key_step *s)
{
    const struct msg *msg = s->event->msg;
    struct key_meta *meta = s->meta;
    bool newer = msg->ts > local_ts(s, msg);
    if ((msg->flags & HERMES_F_REPORTED) != 0 && rule_on(s->config, HERMES_RULE_CHUNK_REPORTED)) {
        /* Some member may have forgotten this tombstone already and begun the key's next life,
         * whose timestamps are lower: whatever is here is not older. */
        newer = meta->ts == 0;
    }
    if (!rule_on(s->config, HERMES_RULE_CHUNK_HIGHER)) {
        newer = true;
    }
    if (!newer) {
        hermes_drop(s->fx, ENGINE_DROP_STALE);
        return;
    }
    apply(s);
    if ((msg->flags & HERMES_F_VALID) != 0 || !rule_on(s->config, HERMES_RULE_CHUNK_STATE)) {
        hermes_turn_valid(s);
        if ((msg->flags & HERMES_F_REPORTED) != 0) {
            meta->flags |= KEY_REPORTED;
        }
    }
}

void hermes_follower_message(struct key_step *s)
{
    uint8_t kind = s->event->msg->kind;
    if (kind == HERMES_VAL) {
        f_val(s);
    } else if (!hermes_admitted(s->event, s->fx)) {
        return;
    } else if (kind == HERMES_INV) {
        f_inv(s);
    } else if (kind == HERMES_ACK_ALL) {
        f_ack_all(s);
    } else {
        f_item(s);
    }
}
