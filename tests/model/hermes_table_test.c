/* Steps the key machine through every cell of its table (table.c), with every combination of the
 * conditions that the cell's input knows, and compares state and effects; and compares the table in
 * docs/protocols/hermes.md with the one in the code. With --print, prints the table for that
 * page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/hermes/machine.h"
#include "support/hermes_print.h"

#define IF(condition) (1u << HERMES_IF_##condition)
#define DO(effect) (1u << HERMES_DO_##effect)

#define EPOCH 5u
#define GRACE_US 1600000u
#define NOW_US (GRACE_US * 10000ull + 1)
#define MINE_REF 5u
#define OTHER_REF 6u
#define SPARE_REF 7u

enum pending { PENDING_NONE, PENDING_PLAIN, PENDING_SPECIAL, PENDINGS };

/* Ways to meet the same condition. */
enum variant {
    VARIANT_PLAIN,
    VARIANT_FORGETTABLE_BELOW, /* a first update meets a reported tombstone with a higher ts ... */
    VARIANT_FORGETTABLE_EQUAL, /* ... or, in the key's next life, with the same */
    VARIANT_RMW,
    VARIANT_FIRST,
    VARIANT_ITEM_REPORTED, /* a reported tombstone meets an empty entry, or a lower one */
    VARIANT_BACKUP,        /* not the lowest node, but four graces have passed */
    VARIANT_OLD_ACKS,      /* a complete ACK set, of an older epoch */
    VARIANTS
};

struct situation {
    enum hermes_input input;
    enum hermes_state state;
    enum pending pending;
    enum variant variant;
    bool waiters;
    uint32_t if_bits;

    struct view view;
    struct hermes_config config;
    struct hermes_worker worker;
    struct key_meta meta;
    struct slot mine;
    struct slot spare;
    struct msg msg;
    struct event event;
    bool uses_mine;
    uint8_t self, other, third;
};

/* How an input looks: the event, and for messages their kind and how their ts compares. */
enum relation { ABOVE = 1, EQUAL, BELOW };

struct shape {
    enum ev_kind event;
    uint8_t kind; /* EV_MSG: enum hermes_kind; EV_FLOW: enum hermes_flow */
    uint8_t code; /* EV_FLOW */
    enum relation ts;
    bool answer;
};

static const struct shape shapes[HERMES_INPUTS] = {
    [HERMES_IN_READ] = {.event = EV_READ},
    [HERMES_IN_UPDATE] = {.event = EV_UPDATE},
    [HERMES_IN_WAITED] = {.event = EV_TIMER},
    [HERMES_IN_SWEEP] = {.event = EV_SWEEP},
    [HERMES_IN_INV_ABOVE] = {EV_MSG, HERMES_INV, 0, ABOVE, false},
    [HERMES_IN_INV_EQUAL] = {EV_MSG, HERMES_INV, 0, EQUAL, false},
    [HERMES_IN_INV_BELOW] = {EV_MSG, HERMES_INV, 0, BELOW, false},
    [HERMES_IN_ANSWER_ABOVE] = {EV_MSG, HERMES_INV, 0, ABOVE, true},
    [HERMES_IN_ANSWER_EQUAL] = {EV_MSG, HERMES_INV, 0, EQUAL, true},
    [HERMES_IN_ANSWER_BELOW] = {EV_MSG, HERMES_INV, 0, BELOW, true},
    [HERMES_IN_ACK_ALL_ABOVE] = {EV_MSG, HERMES_ACK_ALL, 0, ABOVE, false},
    [HERMES_IN_ACK_ALL_EQUAL] = {EV_MSG, HERMES_ACK_ALL, 0, EQUAL, false},
    [HERMES_IN_ACK_ALL_BELOW] = {EV_MSG, HERMES_ACK_ALL, 0, BELOW, false},
    [HERMES_IN_VAL_EQUAL] = {EV_MSG, HERMES_VAL, 0, EQUAL, false},
    [HERMES_IN_VAL_OTHER] = {EV_MSG, HERMES_VAL, 0, ABOVE, false},
    [HERMES_IN_ITEM_NEWER] = {EV_MSG, HERMES_ITEM, 0, ABOVE, false},
    [HERMES_IN_ITEM_NOT_NEWER] = {EV_MSG, HERMES_ITEM, 0, BELOW, false},
    [HERMES_IN_ASK_EQUAL] = {EV_MSG, HERMES_FORGET_ASK, 0, EQUAL, false},
    [HERMES_IN_ASK_OTHER] = {EV_MSG, HERMES_FORGET_ASK, 0, ABOVE, false},
    [HERMES_IN_ASK_EMPTY] = {EV_MSG, HERMES_FORGET_ASK, 0, EQUAL, false},
    [HERMES_IN_FORGET_EQUAL] = {EV_MSG, HERMES_FORGET, 0, EQUAL, false},
    [HERMES_IN_FORGET_OTHER] = {EV_MSG, HERMES_FORGET, 0, BELOW, false},
    [HERMES_IN_OTHER_EPOCH] = {EV_MSG, HERMES_INV, 0, EQUAL, false},
    [HERMES_IN_UPDATE_ACKED] = {EV_FLOW, FLOW_UPDATE, KEY_CODE_COMPLETE, EQUAL, false},
    [HERMES_IN_UPDATE_TIMER] = {EV_FLOW, FLOW_UPDATE, KEY_CODE_RESEND, EQUAL, false},
    [HERMES_IN_UPDATE_VIEW] = {EV_FLOW, FLOW_UPDATE, KEY_CODE_VIEW, EQUAL, false},
    [HERMES_IN_REPLAY_ACKED] = {EV_FLOW, FLOW_REPLAY, KEY_CODE_COMPLETE, EQUAL, false},
    [HERMES_IN_REPLAY_AGAIN] = {EV_FLOW, FLOW_REPLAY, KEY_CODE_VIEW, EQUAL, false},
    [HERMES_IN_COLLECT_ACKED] = {EV_FLOW, FLOW_COLLECT, KEY_CODE_COMPLETE, EQUAL, false},
};

static bool has(const struct situation *s, uint32_t bit)
{
    return (s->if_bits & bit) != 0;
}

static bool is_message(enum hermes_input input)
{
    return shapes[input].event == EV_MSG;
}

/* ---- Building a situation; false where there is none ---- */

static bool pending_fits(enum hermes_state state, enum pending pending)
{
    switch (state) {
    case HERMES_VALID:
        return pending == PENDING_NONE;
    case HERMES_INVALID:
        return pending != PENDING_PLAIN;
    case HERMES_WRITE:
        return pending != PENDING_NONE;
    case HERMES_TRANS:
        return pending == PENDING_PLAIN;
    case HERMES_REPLAY:
    case HERMES_STATES:
        break;
    }
    return true;
}

static bool build_view(struct situation *s)
{
    bool asker_known = s->input == HERMES_IN_SWEEP && has(s, IF(OLD));
    bool low = !asker_known || (has(s, IF(ASKER)) && s->variant != VARIANT_BACKUP);
    if (has(s, IF(ALONE)) && (has(s, IF(SHADOW)) || !low)) {
        return false;
    }
    s->self = low ? 0 : 1;
    s->other = low ? 1 : 0;
    s->third = 2;
    s->view = (struct view){.epoch = EPOCH, .next_cid = 20, .configured = 7};
    s->view.live = has(s, IF(ALONE)) ? nodeset_of(s->self) : 7;
    s->view.operational = s->view.live & ~(has(s, IF(SHADOW)) ? nodeset_of(s->third) : 0);
    for (uint8_t i = 0; i < 3; i++) {
        if (nodeset_has(s->view.live, i)) {
            s->view.members[i] = (struct view_member){
                .nonce = i + 1u, .admitted = 1, .cid_first = 2u * i + 1, .cid_count = 2, .role = 2};
        }
    }
    return true;
}

static uint16_t stamp_before(uint64_t graces)
{
    return (uint16_t)(1 + (NOW_US - graces * GRACE_US - GRACE_US / 8) / (GRACE_US / 16) % 65535);
}

static bool build_tombstone(struct situation *s)
{
    bool always = s->input == HERMES_IN_ASK_EQUAL || s->input == HERMES_IN_FORGET_EQUAL ||
                  s->input == HERMES_IN_COLLECT_ACKED;
    bool tombstone = has(s, IF(TOMBSTONE)) || always;
    bool valid = s->state == HERMES_VALID;
    if ((has(s, IF(OLD)) || has(s, IF(REPORTED)) || has(s, IF(AGREED))) && !(tombstone && valid)) {
        return false;
    }
    if ((has(s, IF(AGREED)) && !has(s, IF(REPORTED)) && s->input != HERMES_IN_SWEEP) ||
        (has(s, IF(ASKER)) && !has(s, IF(OLD)))) {
        return false;
    }
    if (tombstone) {
        s->meta.flags |= KEY_TOMBSTONE;
    }
    if (has(s, IF(REPORTED)) || has(s, IF(AGREED))) {
        s->meta.flags |= KEY_REPORTED;
    }
    if (has(s, IF(AGREED))) {
        s->meta.flags |= KEY_AGREED;
    }
    if (has(s, IF(OLD))) {
        s->meta.aux = stamp_before(s->variant == VARIANT_BACKUP ? 5 : 1);
    }
    return true;
}

static bool build_meta(struct situation *s)
{
    bool special = s->pending == PENDING_SPECIAL;
    bool stored = s->state == HERMES_WRITE ? special : has(s, IF(STORED));
    if (has(s, IF(STORED)) != stored && s->input == HERMES_IN_ACK_ALL_EQUAL) {
        return false;
    }
    uint32_t cid = s->state == HERMES_WRITE ? 2u * s->self + 1 : 2u * s->other + 1;
    if (has(s, IF(ORPHAN))) {
        if (s->state == HERMES_WRITE) {
            return false;
        }
        cid = 17;
    } else if (has(s, IF(ALONE)) && s->state != HERMES_WRITE) {
        cid = 2u * s->self + 1; /* everybody else is dead: only an own c_id has a live owner */
    }
    s->meta = (struct key_meta){.ts = stamp_make(10, cid), .state = (uint8_t)s->state};
    s->meta.flags = (uint8_t)((s->state == HERMES_VALID ? KEY_READABLE : 0) |
                              (s->waiters ? KEY_WAITERS : 0) | (stored ? KEY_RMW : 0));
    if (s->pending != PENDING_NONE) {
        s->meta.owner = OTHER_REF;
        s->meta.flags |= special ? KEY_SPECIAL : 0;
    }
    return build_tombstone(s);
}

/* What stands in key_meta.aux when this set of ACKs was seen: the layout is follower.c's. */
static uint16_t seen(nodeset set)
{
    return (uint16_t)(EPOCH << 3 | set);
}

static bool build_slots(struct situation *s)
{
    s->spare = (struct slot){.ref = SPARE_REF, .gen = 3};
    s->mine = (struct slot){.ref = MINE_REF, .gen = 4, .epoch = EPOCH, .ts = s->meta.ts};
    nodeset others = s->view.live & ~nodeset_of(s->self);
    s->mine.acked = has(s, IF(ACKED)) ? others : others & nodeset_of(s->other);
    if (s->variant == VARIANT_OLD_ACKS) {
        s->mine.acked = others;
        s->mine.epoch = EPOCH - 1;
    }
    s->mine.flags = has(s, IF(RESENT)) ? SLOT_RESENT : 0;
    s->uses_mine = shapes[s->input].event == EV_FLOW;
    if (!s->uses_mine) {
        return s->variant != VARIANT_OLD_ACKS;
    }
    bool acked = has(s, IF(ACKED));
    bool old = s->variant == VARIANT_OLD_ACKS;
    if (old ? acked || shapes[s->input].code != KEY_CODE_COMPLETE : has(s, IF(ALONE)) && !acked) {
        return false;
    }
    bool mine = has(s, IF(MINE));
    s->mine.kind = shapes[s->input].kind;
    if (s->mine.kind == FLOW_REPLAY) {
        s->mine.ts -= s->state == HERMES_REPLAY && !mine ? 1 : 0;
        return !mine || s->state == HERMES_REPLAY;
    }
    if (s->mine.kind == FLOW_COLLECT) {
        s->mine.ts -= mine ? 0 : 1;
        s->meta.flags |= mine ? KEY_REPORTED : 0;
        return !mine || s->state == HERMES_VALID;
    }
    s->mine.ts -= s->state == HERMES_WRITE ? 0 : 1;
    s->meta.owner = mine ? MINE_REF : s->meta.owner;
    return !mine || s->pending != PENDING_NONE;
}

static bool build_ts(struct situation *s)
{
    uint64_t above = s->meta.ts + (1ull << STAMP_CID_BITS);
    uint64_t below = s->meta.ts - (1ull << STAMP_CID_BITS);
    enum relation relation = shapes[s->input].ts;
    s->msg.ts = relation == ABOVE ? above : relation == EQUAL ? s->meta.ts : below;
    if (s->input == HERMES_IN_ITEM_NOT_NEWER) {
        s->msg.ts = s->variant == VARIANT_ITEM_REPORTED ? above
                    : s->variant == VARIANT_RMW         ? s->meta.ts
                                                        : below;
    }
    if (s->variant != VARIANT_FORGETTABLE_BELOW && s->variant != VARIANT_FORGETTABLE_EQUAL) {
        return true;
    }
    s->msg.ts = s->variant == VARIANT_FORGETTABLE_BELOW ? below : s->meta.ts;
    s->meta.flags |= KEY_TOMBSTONE | KEY_REPORTED;
    s->msg.flags |= HERMES_F_FIRST;
    return s->state == HERMES_VALID && !has(s, IF(O3)) && relation == ABOVE &&
           (s->msg.kind == HERMES_INV || s->msg.kind == HERMES_ITEM);
}

static bool build_flags(struct situation *s)
{
    bool answer = shapes[s->input].answer;
    bool carries = s->msg.kind == HERMES_INV || s->msg.kind == HERMES_ITEM;
    if (s->variant == VARIANT_RMW || s->variant == VARIANT_FIRST) {
        if (!carries || has(s, IF(O3))) {
            return false;
        }
        s->msg.flags |= s->variant == VARIANT_RMW ? HERMES_F_RMW : HERMES_F_FIRST;
    }
    s->msg.flags |= answer ? HERMES_F_ANSWER : 0;
    s->msg.flags |= has(s, IF(VALID)) ? HERMES_F_VALID : 0;
    s->msg.flags |= has(s, IF(O3)) ? HERMES_F_ACK_ALL : 0;
    if (s->variant == VARIANT_ITEM_REPORTED) {
        if (s->msg.kind != HERMES_ITEM || (s->input == HERMES_IN_ITEM_NEWER &&
                                           (s->state != HERMES_VALID || !has(s, IF(VALID))))) {
            return false;
        }
        s->msg.flags |= HERMES_F_REPORTED | HERMES_F_VALID;
        s->msg.vflags = KEY_TOMBSTONE;
        if (s->input == HERMES_IN_ITEM_NEWER) {
            s->meta = HERMES_BLANK;
        }
    }
    if (!answer && (s->msg.kind == HERMES_INV || s->msg.kind == HERMES_FORGET_ASK)) {
        s->msg.slot = 9;
        s->msg.gen = 11;
    }
    return true;
}

static bool build_acks_seen(struct situation *s)
{
    bool inv = s->input == HERMES_IN_INV_ABOVE || s->input == HERMES_IN_INV_EQUAL;
    if (s->input == HERMES_IN_UPDATE_ACKED) {
        s->config.ack_to_all = has(s, IF(O3));
        return !has(s, IF(O3)) || s->pending != PENDING_SPECIAL;
    }
    if (inv && has(s, IF(O3)) && s->input == HERMES_IN_INV_EQUAL && s->pending == PENDING_SPECIAL &&
        s->state == HERMES_WRITE) {
        return false;
    }
    if (!has(s, IF(ALL_SEEN))) {
        return true;
    }
    if (s->input == HERMES_IN_INV_ABOVE) {
        s->worker.early[7] = (struct early_ack){
            .hash = 7, .ts = s->msg.ts, .epoch = EPOCH, .from = nodeset_of(s->third)};
        return true;
    }
    if (s->state == HERMES_VALID || s->state == HERMES_WRITE) {
        return false;
    }
    s->meta.aux = seen(inv ? nodeset_of(s->third) : nodeset_of(s->self) | nodeset_of(s->third));
    return true;
}

static bool build_message(struct situation *s)
{
    if (!is_message(s->input)) {
        return s->variant == VARIANT_PLAIN || s->variant == VARIANT_BACKUP ||
               s->variant == VARIANT_OLD_ACKS;
    }
    static const uint8_t bytes[8];
    s->msg = (struct msg){.kind = shapes[s->input].kind, .epoch = EPOCH, .key = bytes_of("k", 1)};
    if (!build_ts(s) || !build_flags(s)) {
        return false;
    }
    if ((s->msg.kind == HERMES_INV || s->msg.kind == HERMES_ITEM) && s->msg.vflags == 0) {
        s->msg.value = bytes_of(bytes, sizeof bytes);
    }
    if (s->input == HERMES_IN_OTHER_EPOCH) {
        s->msg.epoch = has(s, IF(OLDER)) ? EPOCH - 1 : EPOCH + 1;
    }
    if (s->input == HERMES_IN_ASK_EMPTY) {
        s->meta = HERMES_BLANK;
    }
    return s->variant != VARIANT_BACKUP && s->variant != VARIANT_OLD_ACKS &&
           hermes_ops.msg_invalid(&s->msg) == NULL;
}

static bool build(struct situation *s)
{
    memset(&s->worker, 0, sizeof s->worker);
    s->config = (struct hermes_config){.mlt_us = 1000, .grace_us = GRACE_US};
    if (!pending_fits(s->state, s->pending) || !build_view(s) || !build_meta(s) ||
        !build_slots(s) || !build_message(s) || !build_acks_seen(s)) {
        return false;
    }
    if ((s->variant == VARIANT_BACKUP && !has(s, IF(ASKER))) ||
        (s->waiters && s->state == HERMES_VALID)) {
        return false;
    }
    s->event = (struct event){.kind = shapes[s->input].event,
                              .code = shapes[s->input].code,
                              .from = is_message(s->input) ? s->other : NODE_NONE,
                              .self = s->self,
                              .now_us = NOW_US,
                              .local_hash = 7,
                              .view = &s->view,
                              .msg = &s->msg,
                              .config = &s->config,
                              .worker = &s->worker};
    return true;
}

/* ---- Comparing ---- */

static char where[256];

/* Says where the walk is if the comparison fails. */
#define SAME(is, should_be)                                                                        \
    do {                                                                                           \
        if ((uint64_t)(is) != (uint64_t)(should_be)) {                                             \
            print_error("at %s\n", where);                                                         \
        }                                                                                          \
        assert_int_equal(is, should_be);                                                           \
    } while (0)

struct seen {
    uint32_t effects;
    bool done;
    bool lost;
    bool wake;
};

static void see_send(const struct situation *s, const struct effect *e, struct seen *seen)
{
    nodeset others = s->view.live & ~nodeset_of(s->self);
    uint64_t echo = e->code == HERMES_ACK || e->code == HERMES_FORGET_REPORT;
    if (e->kind == EFF_SEND) {
        SAME(e->to, s->other);
        if (echo) {
            SAME(e->slot, s->msg.slot);
            SAME(e->gen, s->msg.gen);
            SAME(e->ts, s->msg.ts);
            SAME(e->with, EFF_NO_KEY);
        }
        seen->effects |= e->code == HERMES_ACK ? DO(ACK) : echo ? DO(FORGET_REPORT) : DO(ANSWER);
        if (!echo) {
            bool valid = s->state == HERMES_VALID;
            SAME(e->code, HERMES_INV);
            SAME(e->with, EFF_VALUE);
            SAME(e->flags & HERMES_F_ANSWER, HERMES_F_ANSWER);
            SAME(e->flags & HERMES_F_VALID, valid ? HERMES_F_VALID : 0);
            SAME(e->ts, s->meta.ts);
        }
        return;
    }
    switch (e->code) {
    case HERMES_INV:
        if (e->slot == SPARE_REF) {
            SAME(e->set, others);
            seen->effects |= DO(INV);
        } else {
            SAME(e->slot, MINE_REF);
            SAME(e->set, others & ~s->mine.acked);
            seen->effects |= DO(INV_REST);
        }
        SAME(e->with, EFF_VALUE);
        SAME(e->flags & (HERMES_F_ANSWER | HERMES_F_VALID), 0);
        break;
    case HERMES_ACK_ALL:
        SAME(e->set, others & ~nodeset_of(s->other));
        seen->effects |= DO(ACK_ALL);
        break;
    case HERMES_VAL:
        SAME(e->set, others);
        seen->effects |= DO(VAL);
        break;
    case HERMES_FORGET_ASK:
        seen->effects |= DO(FORGET_ASK);
        break;
    default:
        SAME(e->code, HERMES_FORGET);
        seen->effects |= DO(FORGET_ALL);
        break;
    }
}

static void see_flow(const struct situation *s, const struct effect *e, struct seen *seen)
{
    switch (e->code) {
    case FLOW_CODE_DONE:
    case FLOW_CODE_OVERTAKEN:
    case FLOW_CODE_LOST:
        if (s->input == HERMES_IN_UPDATE && s->state == HERMES_VALID) {
            SAME(e->slot, SPARE_REF);
        } else {
            SAME(e->slot, s->meta.owner);
        }
        seen->done |= e->code != FLOW_CODE_LOST;
        seen->lost |= e->code == FLOW_CODE_LOST;
        break;
    case FLOW_CODE_NUDGE:
        SAME(e->slot, MINE_REF);
        seen->effects |= DO(NUDGE);
        break;
    default:
        SAME(e->code, FLOW_CODE_GONE);
        SAME(e->slot, MINE_REF);
        seen->effects |= DO(GONE);
        break;
    }
}

static struct seen see(const struct situation *s, const struct effects *fx)
{
    struct seen seen = {0};
    for (uint32_t i = 0; i < fx->n; i++) {
        const struct effect *e = &fx->e[i];
        switch ((enum eff_kind)e->kind) {
        case EFF_SEND:
        case EFF_BCAST:
            see_send(s, e, &seen);
            break;
        case EFF_FLOW:
            see_flow(s, e, &seen);
            break;
        case EFF_APPLY:
            seen.effects |= DO(APPLY);
            break;
        case EFF_FORGET:
            seen.effects |= DO(FORGET);
            break;
        case EFF_PARK:
            seen.effects |= DO(PARK);
            break;
        case EFF_WAKE:
            seen.wake = true;
            break;
        case EFF_DROP:
            seen.effects |= DO(DROP);
            break;
        case EFF_BEHIND:
            seen.effects |= DO(BEHIND);
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
            fail();
        }
    }
    return seen;
}

static enum hermes_state expected_state(const struct situation *s, const struct hermes_row *row)
{
    if (row->next == HERMES_NEXT_SAME) {
        return s->state;
    }
    if (row->next == HERMES_NEXT_INVALID) {
        return s->pending == PENDING_PLAIN ? HERMES_TRANS : HERMES_INVALID;
    }
    return (enum hermes_state)row->next;
}

static void compare(const struct situation *s, const struct hermes_row *row,
                    const struct key_meta *after, const struct effects *fx)
{
    struct seen seen = see(s, fx);
    enum hermes_state next = expected_state(s, row);
    bool applied = (row->effects & DO(APPLY)) != 0;
    bool issued = s->input == HERMES_IN_UPDATE && applied;
    bool turned = next == HERMES_VALID && (s->state != HERMES_VALID || applied);
    uint32_t listed = row->effects & ~DO(DONE);
    SAME(seen.effects, listed);
    SAME(after->state, next);

    /* The pending update ends when the key turns Valid, or where the row says so. */
    bool pending = s->pending != PENDING_NONE || issued;
    bool own = (s->state == HERMES_WRITE && !applied) || issued;
    bool lost = turned && pending && s->pending == PENDING_SPECIAL && !own;
    bool done = (row->effects & DO(DONE)) != 0 || (turned && pending && !lost);
    SAME(seen.done, done);
    SAME(seen.lost, lost);
    if (done || lost) {
        SAME(after->owner, 0);
    } else if (issued) {
        SAME(after->owner, SPARE_REF);
    } else if (next != HERMES_VALID) {
        SAME(after->owner, s->meta.owner);
    }

    bool parked = (row->effects & DO(PARK)) != 0;
    SAME(seen.wake, turned && (s->waiters || parked));
    SAME((after->flags & KEY_WAITERS) != 0, (s->waiters || parked) && !turned);

    if (applied && !issued) {
        SAME(after->ts, s->msg.ts);
        SAME((after->flags & KEY_RMW) != 0, (s->msg.flags & HERMES_F_RMW) != 0);
        SAME((after->flags & KEY_FIRST) != 0, (s->msg.flags & HERMES_F_FIRST) != 0);
        SAME(after->flags & KEY_VALUE_FLAGS, s->msg.vflags);
    } else if (issued) {
        assert_true(after->ts > s->meta.ts);
    } else if ((row->effects & DO(FORGET)) != 0) {
        SAME(after->ts, 0);
    } else {
        SAME(after->ts, s->meta.ts);
        SAME(after->flags & (KEY_RMW | KEY_FIRST | KEY_VALUE_FLAGS),
             s->meta.flags & (KEY_RMW | KEY_FIRST | KEY_VALUE_FLAGS));
    }
    bool asks = (row->effects & DO(FORGET_ASK)) != 0;
    bool slot = (row->effects & DO(INV)) != 0 || issued || asks;
    SAME(s->spare.kind != FLOW_FREE, slot);
    SAME(s->worker.collects, asks);
}

/* ---- The walk ---- */

struct walk {
    uint64_t situations;
    bool cell[HERMES_STATES][HERMES_INPUTS];
    bool row[128];
};

static const struct hermes_row *row_of(const struct situation *s, struct walk *walk)
{
    const struct hermes_row *found = NULL;
    for (uint32_t i = 0; i < hermes_rows_n; i++) {
        const struct hermes_row *row = &hermes_rows[i];
        if (row->input == s->input && (row->states >> s->state & 1) != 0 &&
            (s->if_bits & row->when) == row->when && (s->if_bits & row->unless) == 0) {
            if (found != NULL) {
                print_error("two rows for %s, %s, %x: %td and %u\n", hermes_input_names[s->input],
                            hermes_state_names[s->state], s->if_bits, found - hermes_rows, i);
            }
            assert_null(found);
            found = row;
            walk->row[i] = true;
        }
    }
    return found;
}

static void step(struct situation *s, struct walk *walk)
{
    const struct hermes_row *row = row_of(s, walk);
    if (row == NULL) {
        print_error("no row for %s, %s, pending %d, %x\n", hermes_input_names[s->input],
                    hermes_state_names[s->state], s->pending, s->if_bits);
    }
    assert_non_null(row);
    struct key_meta meta = s->meta;
    struct effects fx = {.n = 0};
    hermes_ops.check(&meta, NULL);
    snprintf(where, sizeof where, "%s, %s, pending %d, variant %d, %x",
             hermes_input_names[s->input], hermes_state_names[s->state], s->pending, s->variant,
             s->if_bits);
    bool spare = is_message(s->input)                                       ? false
                 : s->input == HERMES_IN_UPDATE && s->state == HERMES_VALID ? true
                                                                            : has(s, IF(SPARE));
    hermes_ops.key(&meta, NULL, s->uses_mine ? &s->mine : NULL, spare ? &s->spare : NULL, &s->event,
                   &fx);
    compare(s, row, &meta, &fx);
    hermes_ops.check(&meta, NULL);
    walk->situations++;
    walk->cell[s->state][s->input] = true;
}

static uint32_t known_conditions(enum hermes_input input)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < hermes_rows_n; i++) {
        if (hermes_rows[i].input == input) {
            bits |= hermes_rows[i].when | hermes_rows[i].unless;
        }
    }
    return bits & ~IF(SPECIAL); /* that is what the pending update says */
}

/* Every subset of `bits`. */
static void walk_conditions(struct situation *s, uint32_t bits, struct walk *walk)
{
    uint32_t subset = 0;
    do {
        struct situation copy = *s;
        copy.if_bits = subset | (s->pending == PENDING_SPECIAL ? IF(SPECIAL) : 0);
        if (build(&copy)) {
            step(&copy, walk);
        }
        subset = (subset - bits) & bits;
    } while (subset != 0);
}

static void walk_input(enum hermes_input input, struct walk *walk)
{
    static struct situation s;
    for (int state = 0; state < HERMES_STATES; state++) {
        for (int pending = 0; pending < PENDINGS; pending++) {
            for (int variant = 0; variant < VARIANTS; variant++) {
                for (int waiters = 0; waiters < 2; waiters++) {
                    s = (struct situation){.input = input,
                                           .state = (enum hermes_state)state,
                                           .pending = (enum pending)pending,
                                           .variant = (enum variant)variant,
                                           .waiters = waiters != 0};
                    bool never = input == HERMES_IN_ASK_EMPTY ? state != HERMES_VALID
                                 : input == HERMES_IN_READ    ? state == HERMES_VALID
                                                              : false;
                    if (!never) {
                        walk_conditions(&s, known_conditions(input), walk);
                    }
                }
            }
        }
    }
}

static void test_walk(void **state)
{
    (void)state;
    static struct walk walk;
    uint32_t cells = 0;
    uint32_t walked = 0;
    for (int input = 0; input < HERMES_INPUTS; input++) {
        walk_input((enum hermes_input)input, &walk);
    }
    for (uint32_t i = 0; i < hermes_rows_n; i++) {
        if (!walk.row[i]) {
            print_error("row %u (%s) was never reached\n", i,
                        hermes_input_names[hermes_rows[i].input]);
        }
        assert_true(walk.row[i]);
    }
    for (int input = 0; input < HERMES_INPUTS; input++) {
        uint32_t states = 0;
        for (uint32_t i = 0; i < hermes_rows_n; i++) {
            states |= hermes_rows[i].input == input ? hermes_rows[i].states : 0u;
        }
        for (int from = 0; from < HERMES_STATES; from++) {
            cells += states >> from & 1;
            walked += walk.cell[from][input] && (states >> from & 1) != 0;
        }
    }
    print_message("cells walked %u of %u (%u rows, %llu situations)\n", walked, cells,
                  hermes_rows_n, (unsigned long long)walk.situations);
    assert_int_equal(walked, cells);
}

/* hermes_set_state allows the changes that the rows make, and no others. */
static void test_states(void **state)
{
    (void)state;
    uint8_t next[HERMES_STATES] = {0};
    for (uint32_t i = 0; i < hermes_rows_n; i++) {
        const struct hermes_row *row = &hermes_rows[i];
        bool applies = (row->effects & DO(APPLY)) != 0;
        if (row->next == HERMES_NEXT_SAME || (row->effects & DO(FORGET)) != 0) {
            continue;
        }
        for (int from = 0; from < HERMES_STATES; from++) {
            if ((row->states >> from & 1) == 0) {
                continue;
            }
            if (row->input == HERMES_IN_UPDATE && applies) {
                next[from] |= 1u << HERMES_WRITE; /* alone: Valid again in the same step */
            } else if (applies) {
                /* Turning Valid at a new ts passes through Invalid or Trans. */
                bool trans = from == HERMES_WRITE || from == HERMES_TRANS || from == HERMES_REPLAY;
                bool invalid = from != HERMES_TRANS;
                next[from] |= (uint8_t)((trans ? 1u << HERMES_TRANS : 0) |
                                        (invalid ? 1u << HERMES_INVALID : 0));
            } else {
                next[from] |= (uint8_t)(1u << row->next);
            }
        }
    }
    for (int from = 0; from < HERMES_STATES; from++) {
        assert_int_equal(next[from], hermes_state_table[from].next);
        assert_string_equal(hermes_state_table[from].name, hermes_state_names[from]);
    }
}

static void test_document(void **state)
{
    (void)state;
    const char *page = getenv("HERMES_PAGE");
    FILE *in = fopen(page != NULL ? page : "docs/protocols/hermes.md", "r");
    assert_non_null(in);
    static char text[256 * 1024];
    size_t n = fread(text, 1, sizeof text - 1, in);
    fclose(in);
    text[n] = 0;
    char *begin = strstr(text, HERMES_PRINT_BEGIN);
    char *end = strstr(text, HERMES_PRINT_END);
    assert_non_null(begin);
    assert_non_null(end);
    end[strlen(HERMES_PRINT_END)] = 0;
    static char printed[128 * 1024];
    FILE *out = fmemopen(printed, sizeof printed, "w");
    assert_non_null(out);
    hermes_print_table(out);
    fclose(out);
    if (strcmp(begin, printed) != 0) {
        print_error("the table in docs/protocols/hermes.md is not the code's: run "
                    "scripts/hermes-table\n");
    }
    assert_int_equal(strcmp(begin, printed), 0);
}

/* A message that a correct member cannot have sent is refused with a reason. */
static void test_invalid(void **state)
{
    (void)state;
    struct msg good = {.kind = HERMES_INV,
                       .slot = 1,
                       .epoch = 1,
                       .ts = stamp_make(2, 1),
                       .key = bytes_of("k", 1),
                       .value = bytes_of("12345678", 8)};
    assert_null(hermes_ops.msg_invalid(&good));
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        struct msg m = good;                                                                       \
        change;                                                                                    \
        assert_non_null(hermes_ops.msg_invalid(&m));                                               \
    } while (0)
    REFUSED(m.kind = 0);
    REFUSED(m.kind = HERMES_KIND_END);
    REFUSED(m.kind = 0xef);
    REFUSED(m.epoch = 0);
    REFUSED(m.ts = 0);
    REFUSED(m.ts = stamp_make(2, 0));
    REFUSED(m.ts = stamp_make(0, 1));
    REFUSED(m.ts = UINT64_MAX);
    REFUSED(m.slot = 0);
    REFUSED(m.arg = 1);
    REFUSED(m.flags = HERMES_F_VALID);
    REFUSED(m.flags = HERMES_F_ANSWER);
    REFUSED(m.flags = 0x80);
    REFUSED(m.flags = HERMES_F_REPORTED);
    REFUSED(m.vflags = KEY_TOMBSTONE);
    REFUSED(m.vflags = KEY_READABLE);
    REFUSED(m.vflags = KEY_DEADLINE; m.value.n = 7);
    REFUSED(m.kind = HERMES_VAL);
    REFUSED(m.kind = HERMES_ACK);
    REFUSED(m.kind = HERMES_ITEM);
    REFUSED(m.kind = HERMES_CHECK);
    REFUSED(m.flags = HERMES_F_ANSWER | HERMES_F_ACK_ALL; m.slot = 0);
    REFUSED(m.kind = HERMES_ITEM; m.slot = 0; m.flags = HERMES_F_REPORTED | HERMES_F_VALID);
#undef REFUSED
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--print") == 0) {
        hermes_print_table(stdout);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
