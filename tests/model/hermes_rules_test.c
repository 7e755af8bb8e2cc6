/* Each rule of docs/protocols/hermes.md by the execution that breaks without it: machines driven by
 * hand, message by message. With the rule nothing may go wrong; in a build with HK_MUTANTS the same
 * execution with the rule switched off must show the fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/hermes_rig.h"

static struct rig rig;

/* What went wrong, or NULL. */
static const char *verdict(const struct rig *r)
{
    return r->violation;
}

static const char *unless(const struct rig *r, bool good, const char *fault)
{
    return r->violation != NULL ? r->violation : good ? NULL : fault;
}

static struct rig *begin(uint8_t n, enum rig_start start, uint64_t rules_off)
{
    rig_init(&rig, n, start, rules_off, 1);
    return &rig;
}

/* The INV of an update to one node, and its ACK back. */
static void inv_ack(struct rig *r, uint8_t from, uint8_t to, uint32_t update)
{
    rig_pass(r, from, to, HERMES_INV, update);
    rig_pass(r, to, from, HERMES_ACK, update);
}

/* Node 2 left and came back as a shadow; all know it. */
static void rejoin_as_shadow(struct rig *r)
{
    rig_crash(r, 2);
    rig_drop(r, 2);
    rig_admit(r, 2);
    for (uint8_t i = 0; i < r->n; i++) {
        rig_adopt(r, i);
    }
}

static void promote(struct rig *r, uint8_t node)
{
    rig_promote(r, node);
    for (uint8_t i = 0; i < r->n; i++) {
        rig_adopt(r, i);
    }
}

/* Three members agree to forget the tombstone; then only node 0 does. */
static void forget_at_0(struct rig *r)
{
    for (uint8_t i = 0; i < 3; i++) {
        rig_sweep(r, i);
    }
    rig_advance(r, 2 * RIG_GRACE_US);
    rig_sweep(r, 0);
    for (uint8_t i = 1; i < 3; i++) {
        rig_pass(r, 0, i, HERMES_FORGET_ASK, 0);
        rig_pass(r, i, 0, HERMES_FORGET_REPORT, 0);
    }
    for (uint8_t i = 1; i < 3; i++) {
        rig_pass(r, 0, i, HERMES_FORGET, 0);
    }
    rig_advance(r, 2 * RIG_GRACE_US);
    rig_sweep(r, 0);
    assert_int_equal(r->nodes[0].meta.ts, 0);
    assert_int_not_equal(r->nodes[1].meta.ts, 0);
}

/* ---- Rule 1 ---- */

/* One node's ACK, twice, is not two nodes' ACKs. */
static const char *ack_set(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    rig_pass(r, 0, 1, HERMES_INV, w);
    rig_copy(r, 1, 0, HERMES_ACK, w);
    rig_pass(r, 1, 0, HERMES_ACK, w);
    return verdict(r);
}

/* A late ACK of the slot's last life. The slot's generation refuses it as well, so the rig routes
 * without it. */
static const char *ack_ts(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    r->ignore_gen = true;
    uint32_t w1 = rig_update(r, 0, RIG_WRITE);
    rig_pass(r, 0, 1, HERMES_INV, w1);
    rig_copy(r, 1, 0, HERMES_ACK, w1);
    inv_ack(r, 0, 2, w1);
    rig_pass(r, 0, 1, HERMES_VAL, w1);
    uint32_t w2 = rig_update(r, 0, RIG_WRITE);
    inv_ack(r, 0, 2, w2);
    rig_pass(r, 1, 0, HERMES_ACK, w1);
    return verdict(r);
}

/* ---- Rule 2 ---- */

/* A node of the old view writes; a member of the new view, which has just given a joining node the
 * old value, must not acknowledge. */
static const char *epoch(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    rig_crash(r, 2);
    rig_drop(r, 2);
    rig_adopt(r, 0);
    rig_adopt(r, 1);
    rig_admit(r, 2);
    rig_adopt(r, 1);
    rig_chunk(r, 1, 2);
    rig_pass(r, 1, 2, HERMES_ITEM, 0);
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    inv_ack(r, 0, 1, w);
    promote(r, 2);
    return verdict(r);
}

/* The coordinator completes in the old epoch and has discarded the update when its VAL meets a
 * follower that is in the new one. */
static const char *val_any_epoch(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    inv_ack(r, 0, 2, w);
    inv_ack(r, 0, 1, w);
    rig_crash(r, 2);
    rig_drop(r, 2);
    rig_adopt(r, 1);
    rig_pass(r, 0, 1, HERMES_VAL, w);
    return unless(r, rig_readable(r, 1), "the follower stays Invalid and nobody replays");
}

/* ---- Rule 3 ---- */

/* A follower's timer replays the write of a coordinator that lives, which meets INV and VAL at its
 * own timestamp in Write. */
static const char *write_val(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    rig_pass(r, 0, 1, HERMES_INV, w);
    rig_pass(r, 0, 2, HERMES_INV, w);
    rig_lose(r, 1, 0, HERMES_ACK);
    rig_lose(r, 2, 0, HERMES_ACK);
    rig_prod(r, 1);
    inv_ack(r, 1, 0, w);
    inv_ack(r, 1, 2, w);
    rig_pass(r, 1, 0, HERMES_VAL, w);
    bool told = r->updates[w].decided && rig_readable(r, 0) && rig_readable(r, 1);
    return unless(r, told && rig_settle(r), "the coordinator's client never hears");
}

/* ---- Rule 4 ---- */

static const char *ack_same(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t w1 = rig_update(r, 0, RIG_WRITE);
    uint32_t w2 = rig_update(r, 1, RIG_WRITE);
    inv_ack(r, 0, 1, w1);
    inv_ack(r, 0, 2, w1);
    if (!rig_readable(r, 0)) {
        return unless(r, rig_settle(r), "does not settle");
    }
    uint32_t rmw = rig_update(r, 0, RIG_RMW);
    inv_ack(r, 1, 0, w2);
    inv_ack(r, 1, 2, w2);
    inv_ack(r, 0, 1, rmw);
    inv_ack(r, 0, 2, rmw);
    return verdict(r);
}

/* The member that overtook a write dies before anybody else heard of it. */
static const char *trans_replay(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    (void)rig_update(r, 0, RIG_WRITE);
    uint32_t w2 = rig_update(r, 2, RIG_WRITE);
    rig_pass(r, 2, 0, HERMES_INV, w2);
    rig_crash(r, 2);
    rig_drop(r, 2);
    rig_adopt(r, 0);
    rig_adopt(r, 1);
    return unless(r, rig_settle(r), "a key in Trans waits for ever");
}

/* ---- Rule 5 ---- */

static const char *ack_reset(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t r1 = rig_update(r, 0, RIG_RMW);
    uint32_t r2 = rig_update(r, 1, RIG_RMW);
    inv_ack(r, 0, 2, r1);
    rig_pass(r, 1, 2, HERMES_INV, r2);
    rig_crash(r, 1);
    rig_drop(r, 1);
    rig_adopt(r, 0);
    rig_adopt(r, 2);
    rig_park(r, 2);
    inv_ack(r, 2, 0, r2);
    return verdict(r);
}

/* A write was seen, then deleted, the tombstone forgotten; its coordinator, which heard of neither
 * end, sends it again. Agreed forgetting waits for this coordinator, so it is off throughout. */
static const char *no_stale(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    rig_pass(r, 0, 1, HERMES_INV, w);
    rig_pass(r, 0, 2, HERMES_INV, w);
    rig_prod(r, 2);
    inv_ack(r, 2, 0, w);
    inv_ack(r, 2, 1, w);
    rig_pass(r, 2, 1, HERMES_VAL, w);
    uint32_t d = rig_update(r, 1, RIG_DELETE);
    inv_ack(r, 1, 0, d);
    inv_ack(r, 1, 2, d);
    rig_pass(r, 1, 2, HERMES_VAL, d);
    rig_lose_all(r);
    for (uint32_t i = 0; i < 2; i++) {
        rig_sweep(r, 1);
        rig_sweep(r, 2);
        rig_advance(r, 2 * RIG_GRACE_US);
    }
    rig_timer(r, 0, FLOW_UPDATE);
    rig_pass(r, 0, 1, HERMES_INV, 0);
    rig_pass(r, 0, 2, HERMES_INV, 0);
    rig_crash(r, 0);
    rig_drop(r, 0);
    rig_adopt(r, 1);
    rig_adopt(r, 2);
    rig_park(r, 1);
    rig_pass(r, 1, 2, HERMES_INV, 0);
    rig_pass(r, 2, 1, HERMES_ACK, 0);
    return verdict(r);
}

/* ---- Rule 6 ---- */

/* Rule 6c makes this one redundant, so that is off throughout. */
static const char *cid_trigger(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t r1 = rig_update(r, 0, RIG_RMW);
    uint32_t r2 = rig_update(r, 1, RIG_RMW);
    rig_pass(r, 1, 2, HERMES_INV, r2);
    rig_pass(r, 0, 2, HERMES_INV, r1);
    rig_pass(r, 2, 0, HERMES_INV, r2); /* the answer makes node 2 the last sender at node 0 */
    rig_crash(r, 2);
    rig_drop(r, 2);
    rig_adopt(r, 0);
    rig_park(r, 0);
    rig_adopt(r, 1);
    rig_lose(r, 1, 0, HERMES_INV);
    inv_ack(r, 0, 1, r2);
    rig_lose(r, 0, 1, HERMES_VAL);
    if (rig_readable(r, 0)) {
        uint32_t w = rig_update(r, 0, RIG_WRITE);
        inv_ack(r, 0, 1, w);
        rig_pass(r, 0, 1, HERMES_VAL, w);
    }
    return unless(r, rig_settle(r), "does not settle");
}

static const char *lost_valid(uint64_t off)
{
    struct rig *r = begin(5, RIG_START_VALUE, off);
    uint32_t rmw = rig_update(r, 0, RIG_RMW);
    uint32_t w = rig_update(r, 1, RIG_WRITE);
    rig_pass(r, 0, 2, HERMES_INV, rmw);
    rig_pass(r, 1, 0, HERMES_INV, w);
    rig_crash(r, 0);
    rig_crash(r, 1);
    rig_drop(r, 0);
    rig_drop(r, 1);
    for (uint8_t i = 2; i < 5; i++) {
        rig_adopt(r, i);
    }
    rig_park(r, 2);
    inv_ack(r, 2, 3, rmw);
    inv_ack(r, 2, 4, rmw);
    return unless(r, rig_settle(r), "does not settle");
}

static const char *no_own_ack(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t rmw = rig_update(r, 0, RIG_RMW);
    rig_pass(r, 0, 1, HERMES_INV, rmw);
    rig_pass(r, 0, 2, HERMES_INV, rmw);
    rig_lose(r, 1, 0, HERMES_ACK);
    rig_lose(r, 2, 0, HERMES_ACK);
    rig_prod(r, 1);
    inv_ack(r, 1, 2, rmw);
    inv_ack(r, 1, 0, rmw);
    rig_lose(r, 1, 0, HERMES_VAL);
    if (rig_readable(r, 1)) {
        uint32_t w = rig_update(r, 1, RIG_WRITE);
        inv_ack(r, 1, 0, w);
        inv_ack(r, 1, 2, w);
        rig_pass(r, 1, 0, HERMES_VAL, w);
    }
    return unless(r, rig_settle(r), "does not settle");
}

/* ---- Rule 7 ---- */

static const char *o3_writes(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    r->config.ack_to_all = true;
    uint32_t rmw = rig_update(r, 0, RIG_RMW);
    rig_pass(r, 0, 1, HERMES_INV, rmw);
    rig_pass(r, 0, 2, HERMES_INV, rmw);
    rig_pass(r, 1, 2, HERMES_ACK_ALL, rmw);
    if (rig_readable(r, 2)) {
        uint32_t w = rig_update(r, 2, RIG_WRITE);
        inv_ack(r, 2, 0, w);
        inv_ack(r, 2, 1, w);
        rig_pass(r, 2, 0, HERMES_VAL, w);
    }
    return unless(r, rig_settle(r), "does not settle");
}

/* Node 1 saw node 2's ACK; node 2 died and came back without the write. Its old ACK must not count
 * when the coordinator sends the write again. */
static const char *o3_epoch(uint64_t off)
{
    struct rig *r = begin(5, RIG_START_VALUE, off);
    r->config.ack_to_all = true;
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    rig_pass(r, 0, 1, HERMES_INV, w);
    rig_pass(r, 0, 2, HERMES_INV, w);
    rig_pass(r, 2, 1, HERMES_ACK_ALL, w);
    rig_crash(r, 2);
    rig_drop(r, 2);
    rig_crash(r, 3);
    rig_drop(r, 3);
    rig_admit(r, 2);
    rig_adopt(r, 4);
    rig_chunk(r, 4, 2);
    rig_pass(r, 4, 2, HERMES_ITEM, 0);
    rig_promote(r, 2);
    rig_crash(r, 4);
    rig_drop(r, 4);
    rig_adopt(r, 0);
    rig_adopt(r, 1);
    rig_adopt(r, 2);
    rig_pass(r, 0, 1, HERMES_INV, w); /* those of the older epochs are dropped */
    rig_pass(r, 0, 1, HERMES_INV, w);
    rig_pass(r, 0, 1, HERMES_INV, w);
    return unless(r, rig_settle(r), "does not settle");
}

/* ---- Rule 8 ---- */

static const char *cid(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t w1 = rig_update(r, 2, RIG_WRITE);
    rig_pass(r, 2, 1, HERMES_INV, w1);
    rejoin_as_shadow(r);
    rig_chunk(r, 0, 2);
    rig_pass(r, 0, 2, HERMES_ITEM, 0);
    promote(r, 2);
    rig_lose_all(r);
    uint32_t w2 = rig_update(r, 2, RIG_WRITE);
    inv_ack(r, 2, 0, w2);
    inv_ack(r, 2, 1, w2);
    rig_pass(r, 2, 1, HERMES_VAL, w2);
    return verdict(r);
}

/* ---- Rule 9 ---- */

static const char *chunk_higher(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    rejoin_as_shadow(r);
    rig_chunk(r, 1, 2);
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    inv_ack(r, 0, 1, w);
    inv_ack(r, 0, 2, w);
    rig_pass(r, 0, 2, HERMES_VAL, w);
    rig_pass(r, 1, 2, HERMES_ITEM, 0);
    promote(r, 2);
    return unless(r, rig_settle(r), "does not settle");
}

static const char *chunk_state(uint64_t off)
{
    struct rig *r = begin(4, RIG_START_VALUE, off);
    rejoin_as_shadow(r);
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    rig_pass(r, 0, 1, HERMES_INV, w);
    rig_chunk(r, 1, 2);
    rig_pass(r, 1, 2, HERMES_ITEM, 0);
    promote(r, 2);
    return unless(r, rig_settle(r), "does not settle");
}

/* ---- Rule 10 ---- */

static const char *all_acks(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    inv_ack(r, 0, 1, w);
    for (uint32_t i = 0; i < 20; i++) {
        rig_advance(r, RIG_MLT_US);
        rig_timer(r, 0, FLOW_UPDATE);
    }
    if (r->violation == NULL) {
        assert_false(r->updates[w].decided); /* no time-out completes it ... */
        rig_crash(r, 2);
        rig_drop(r, 2);
        rig_adopt(r, 0);
        rig_adopt(r, 1);
        rig_lose_all(r);
        rig_timer(r, 0, FLOW_UPDATE);
        inv_ack(r, 0, 1, w);
        assert_true(r->updates[w].decided); /* ... a view without the silent node does */
    }
    return verdict(r);
}

/* ---- Rule 11 ---- */

static const char *answer_valid(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t w0 = rig_update(r, 0, RIG_WRITE);
    uint32_t w2 = rig_update(r, 2, RIG_WRITE);
    inv_ack(r, 2, 0, w2);
    inv_ack(r, 2, 1, w2);
    rig_pass(r, 2, 1, HERMES_VAL, w2);
    rig_lose(r, 2, 0, HERMES_VAL);
    rig_pass(r, 0, 1, HERMES_INV, w0);
    rig_pass(r, 1, 0, HERMES_INV, w2);
    return unless(r, rig_readable(r, 0) && r->updates[w0].decided,
                  "the answered node waits for a timer");
}

/* ---- Rule 12 ---- */

static const char *first(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_TOMBSTONE, off);
    forget_at_0(r);
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    rig_pass(r, 0, 1, HERMES_INV, w);
    rig_pass(r, 1, 0, HERMES_INV, 0);
    rig_pass(r, 1, 0, HERMES_ACK, w);
    inv_ack(r, 0, 2, w);
    return unless(r, rig_settle(r), "does not settle");
}

/* Node 0 forgets alone, acknowledges a first update, and turns Valid at the tombstone again. */
static const char *agreed_forget(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_TOMBSTONE, off);
    for (uint8_t i = 0; i < 3; i++) {
        rig_sweep(r, i);
    }
    rig_advance(r, 2 * RIG_GRACE_US);
    rig_sweep(r, 1);
    rig_sweep(r, 0);
    uint32_t u = rig_update(r, 1, RIG_WRITE);
    uint32_t v = rig_update(r, 0, RIG_WRITE);
    rig_pass(r, 1, 0, HERMES_INV, u);
    rig_pass(r, 0, 2, HERMES_INV, v);
    rig_pass(r, 2, 0, HERMES_INV, 0);
    rig_pass(r, 0, 1, HERMES_ACK, u);
    rig_sweep(r, 2);
    rig_advance(r, 2 * RIG_GRACE_US);
    rig_sweep(r, 2);
    rig_timer(r, 1, FLOW_UPDATE);
    inv_ack(r, 1, 2, u);
    return unless(r, rig_settle(r), "does not settle");
}

/* A chunk with the tombstone is under way for longer than two graces. */
static const char *shadow_forget(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_TOMBSTONE, off);
    r->no_life = true;
    rejoin_as_shadow(r);
    rig_chunk(r, 1, 2);
    rig_sweep(r, 0);
    rig_sweep(r, 1);
    rig_advance(r, 2 * RIG_GRACE_US);
    rig_sweep(r, 0);
    for (uint8_t i = 1; i < 3; i++) {
        rig_pass(r, 0, i, HERMES_FORGET_ASK, 0);
        rig_pass(r, i, 0, HERMES_FORGET_REPORT, 0);
    }
    rig_pass(r, 0, 1, HERMES_FORGET, 0);
    rig_advance(r, 2 * RIG_GRACE_US);
    rig_sweep(r, 0);
    rig_sweep(r, 1);
    uint32_t u = rig_update(r, 0, RIG_WRITE);
    inv_ack(r, 0, 1, u);
    inv_ack(r, 0, 2, u);
    rig_pass(r, 0, 2, HERMES_VAL, u);
    rig_pass(r, 1, 2, HERMES_ITEM, 0);
    promote(r, 2);
    return unless(r, rig_settle(r), "does not settle");
}

/* One member has forgotten before the shadow came, another has not; the key's next life reaches the
 * shadow before the old tombstone does. */
static const char *chunk_reported(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_TOMBSTONE, off);
    forget_at_0(r);
    rejoin_as_shadow(r);
    rig_chunk(r, 1, 2);
    uint32_t u = rig_update(r, 0, RIG_WRITE);
    inv_ack(r, 0, 2, u);
    inv_ack(r, 0, 1, u);
    rig_pass(r, 0, 2, HERMES_VAL, u);
    rig_pass(r, 1, 2, HERMES_ITEM, 0);
    promote(r, 2);
    return unless(r, rig_settle(r), "does not settle");
}

/* A process is paused with the last ACK of a replay in its queue, and is dropped; the key is
 * deleted and forgotten, and its next life issues the same timestamp again. Then it goes on. */
static const char *val_member(uint64_t off)
{
    struct rig *r = begin(4, RIG_START_NOTHING, off);
    r->first_cid = true;
    r->no_life = true; /* what lies in the queue of a paused process is not the network's */
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    inv_ack(r, 0, 1, w);
    inv_ack(r, 0, 2, w);
    inv_ack(r, 0, 3, w);
    rig_prod(r, 2);
    for (uint8_t i = 0; i < 4; i++) {
        rig_pass(r, 2, i, HERMES_INV, w);
    }
    rig_pass(r, 0, 1, HERMES_VAL, w);
    rig_pass(r, 0, 3, HERMES_VAL, w);
    rig_pass(r, 1, 2, HERMES_ACK, w);
    rig_pass(r, 3, 2, HERMES_ACK, w);
    rig_drop(r, 2);
    rig_adopt(r, 0);
    rig_adopt(r, 1);
    rig_adopt(r, 3);
    uint32_t d = rig_update(r, 0, RIG_DELETE);
    for (uint8_t i = 1; i < 4; i += 2) {
        inv_ack(r, 0, i, d);
    }
    rig_pass(r, 0, 1, HERMES_VAL, d);
    rig_pass(r, 0, 3, HERMES_VAL, d);
    for (uint32_t turn = 0; turn < 4; turn++) {
        for (uint8_t i = 0; i < 4; i++) {
            rig_sweep(r, i);
            rig_pass(r, 0, i, HERMES_FORGET_ASK, d);
            rig_pass(r, i, 0, HERMES_FORGET_REPORT, d);
            rig_pass(r, 0, i, HERMES_FORGET, d);
        }
        rig_advance(r, 2 * RIG_GRACE_US);
    }
    uint32_t u = rig_update(r, 0, RIG_WRITE);
    assert_true(r->updates[u].ts == r->updates[w].ts);
    rig_pass(r, 0, 1, HERMES_INV, u);
    rig_pass(r, 0, 2, HERMES_ACK, w);
    rig_pass(r, 2, 1, HERMES_VAL, w);
    return verdict(r);
}

/* ---- What the thesis itself says ---- */

static const char *step(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    uint32_t rmw = rig_update(r, 1, RIG_RMW);
    inv_ack(r, 1, 2, rmw);
    inv_ack(r, 1, 0, rmw);
    rig_pass(r, 1, 0, HERMES_VAL, rmw);
    inv_ack(r, 0, 1, w);
    inv_ack(r, 0, 2, w);
    return unless(r, rig_settle(r), "does not settle");
}

static const char *read_valid(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    rig_pass(r, 0, 1, HERMES_INV, w);
    return verdict(r);
}

static const char *val_ts(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t w1 = rig_update(r, 0, RIG_WRITE);
    inv_ack(r, 0, 1, w1);
    inv_ack(r, 0, 2, w1);
    rig_pass(r, 0, 1, HERMES_VAL, w1);
    uint32_t w2 = rig_update(r, 0, RIG_WRITE);
    rig_pass(r, 0, 2, HERMES_INV, w2);
    rig_pass(r, 0, 2, HERMES_VAL, w1);
    return verdict(r);
}

static const char *replay(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    uint32_t w = rig_update(r, 2, RIG_WRITE);
    rig_pass(r, 2, 0, HERMES_INV, w);
    rig_crash(r, 2);
    rig_drop(r, 2);
    return unless(r, rig_settle(r), "a dead coordinator's update blocks the key");
}

/* A node that was dropped and does not know it reads asynchronously. */
static const char *check(uint64_t off)
{
    struct rig *r = begin(3, RIG_START_VALUE, off);
    rig_drop(r, 0);
    rig_adopt(r, 1);
    rig_adopt(r, 2);
    rig_check(r, 0);
    for (uint8_t i = 1; i < 3; i++) {
        rig_pass(r, 0, i, HERMES_CHECK, 0);
        rig_pass(r, i, 0, HERMES_CHECK_OK, 0);
    }
    return unless(r, r->nodes[0].reads_done == 0, "a stale read");
}

/* ---- Each of them ---- */

#define BIT(rule) (1ull << HERMES_RULE_##rule)

static void judge(const char *(*run)(uint64_t), uint64_t without, uint64_t rule)
{
    const char *fault = run(without);
    if (fault != NULL) {
        print_message("with the rule: %s\n", fault);
        rig_print(&rig);
    }
    assert_null(fault);
#ifdef HK_MUTANTS
    fault = run(without | rule);
    print_message("without the rule: %s\n", fault != NULL ? fault : "nothing");
    assert_non_null(fault);
#else
    (void)rule;
#endif
}

#define RULE_TEST(run, without, rule)                                                              \
    static void test_##run(void **state)                                                           \
    {                                                                                              \
        (void)state;                                                                               \
        judge(run, without, BIT(rule));                                                            \
    }

RULE_TEST(ack_set, 0, ACK_SET)
RULE_TEST(ack_ts, 0, ACK_TS)
RULE_TEST(epoch, 0, EPOCH)
RULE_TEST(val_any_epoch, 0, VAL_ANY_EPOCH)
RULE_TEST(write_val, 0, WRITE_VAL)
RULE_TEST(ack_same, 0, ACK_SAME)
RULE_TEST(trans_replay, 0, TRANS_REPLAY)
RULE_TEST(ack_reset, 0, ACK_RESET)
RULE_TEST(no_stale, BIT(AGREED_FORGET), NO_STALE)
RULE_TEST(cid_trigger, BIT(NO_OWN_ACK), CID_TRIGGER)
RULE_TEST(lost_valid, 0, LOST_VALID)
RULE_TEST(no_own_ack, 0, NO_OWN_ACK)
RULE_TEST(o3_writes, 0, O3_WRITES)
RULE_TEST(o3_epoch, 0, O3_EPOCH)
RULE_TEST(cid, 0, CID)
RULE_TEST(chunk_higher, 0, CHUNK_HIGHER)
RULE_TEST(chunk_state, 0, CHUNK_STATE)
RULE_TEST(all_acks, 0, ALL_ACKS)
RULE_TEST(answer_valid, 0, ANSWER_VALID)
RULE_TEST(first, 0, FIRST)
RULE_TEST(agreed_forget, 0, AGREED_FORGET)
RULE_TEST(shadow_forget, 0, SHADOW_FORGET)
RULE_TEST(chunk_reported, 0, CHUNK_REPORTED)
RULE_TEST(val_member, 0, VAL_MEMBER)
RULE_TEST(step, 0, STEP)
RULE_TEST(read_valid, 0, READ_VALID)
RULE_TEST(val_ts, 0, VAL_TS)
RULE_TEST(replay, 0, REPLAY)
RULE_TEST(check, 0, CHECK)

/* ---- What has no switch ---- */

/* Rule 3, the other half: an RMW's coordinator does not acknowledge a replay of it, and its VAL
 * ends the replay. */
static void test_inv_in_write_rmw(void **state)
{
    (void)state;
    struct rig *r = begin(3, RIG_START_VALUE, 0);
    uint32_t rmw = rig_update(r, 0, RIG_RMW);
    rig_pass(r, 0, 1, HERMES_INV, rmw);
    rig_pass(r, 0, 2, HERMES_INV, rmw);
    rig_prod(r, 1);
    rig_pass(r, 1, 0, HERMES_INV, rmw);
    assert_int_equal(rig_find(r, 0, 1, HERMES_ACK, rmw), -1);
    rig_pass(r, 1, 0, HERMES_ACK, rmw);
    rig_pass(r, 2, 0, HERMES_ACK, rmw);
    assert_true(r->updates[rmw].decided);
    rig_pass(r, 0, 1, HERMES_VAL, rmw);
    assert_true(rig_readable(r, 1));
    assert_true(rig_settle(r));
}

/* Rule 7: ACKs that come before their INV are kept. */
static void test_early_acks(void **state)
{
    (void)state;
    struct rig *r = begin(3, RIG_START_VALUE, 0);
    r->config.ack_to_all = true;
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    rig_pass(r, 0, 1, HERMES_INV, w);
    rig_pass(r, 1, 2, HERMES_ACK_ALL, w);
    rig_pass(r, 0, 2, HERMES_INV, w);
    assert_true(rig_readable(r, 2)); /* half a round trip after the INV, without a VAL */
    rig_pass(r, 2, 1, HERMES_ACK_ALL, w);
    assert_true(rig_readable(r, 1));
    rig_pass(r, 1, 0, HERMES_ACK, w);
    rig_pass(r, 2, 0, HERMES_ACK, w);
    assert_true(r->updates[w].decided);
    assert_int_equal(rig_find(r, 0, 1, HERMES_VAL, w), -1);
    assert_true(rig_settle(r));
}

/* [H] 4.3.6: a majority confirms; a node that accepted a value for the next epoch is silent. */
static void test_check_majority(void **state)
{
    (void)state;
    struct rig *r = begin(5, RIG_START_VALUE, 0);
    r->nodes[1].confirms = false;
    rig_check(r, 0);
    rig_copy(r, 0, 1, HERMES_CHECK, 0);
    assert_int_equal(rig_find(r, 1, 0, HERMES_CHECK_OK, 0), -1);
    rig_pass(r, 0, 2, HERMES_CHECK, 0);
    rig_copy(r, 2, 0, HERMES_CHECK_OK, 0);
    rig_pass(r, 2, 0, HERMES_CHECK_OK, 0);
    assert_int_equal(r->nodes[0].reads_done, 0);
    rig_lose(r, 0, 3, HERMES_CHECK);
    rig_timer(r, 0, FLOW_CHECK);
    rig_pass(r, 0, 3, HERMES_CHECK, 0);
    rig_pass(r, 3, 0, HERMES_CHECK_OK, 0);
    assert_int_equal(r->nodes[0].reads_done, 1);

    rig_check(r, 0); /* its epoch ends first: read again */
    rig_drop(r, 4);
    rig_adopt(r, 0);
    assert_int_equal(r->nodes[0].reads_lost, 1);
}

/* Rule 13, the engine's part: a completion that the node held back is asked for again by a nudge,
 * and only if it still holds in the epoch of then. */
static void test_nudge(void **state)
{
    (void)state;
    struct rig *r = begin(3, RIG_START_VALUE, 0);
    r->gate = true;
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    inv_ack(r, 0, 1, w);
    inv_ack(r, 0, 2, w);
    assert_false(r->updates[w].decided);
    rig_crash(r, 2);
    rig_drop(r, 2);
    rig_adopt(r, 0);
    rig_nudge(r, 0);
    assert_false(r->updates[w].decided); /* its ACKs were of the old epoch */
    rig_adopt(r, 1);
    rig_pass(r, 0, 1, HERMES_VAL, w);
    inv_ack(r, 0, 1, w);
    assert_false(r->updates[w].decided);
    rig_nudge(r, 0);
    assert_true(r->updates[w].decided);
    assert_true(rig_settle(r));
}

/* An outcome waits in the mailbox while ACKs, timers and views reach its slot (invariant I4). */
static void test_late_mail(void **state)
{
    (void)state;
    struct rig *r = begin(3, RIG_START_VALUE, 0);
    r->mail_waits = true;
    uint32_t w0 = rig_update(r, 0, RIG_WRITE);
    uint32_t w2 = rig_update(r, 2, RIG_WRITE);
    rig_pass(r, 0, 1, HERMES_INV, w0);
    inv_ack(r, 2, 0, w2);
    inv_ack(r, 2, 1, w2);
    rig_pass(r, 2, 0, HERMES_VAL, w2);
    assert_int_equal(r->nodes[0].mails, 1);
    assert_int_equal(r->nodes[0].meta.owner, 0);
    uint32_t w3 = rig_update(r, 0, RIG_WRITE); /* in another slot */
    rig_pass(r, 1, 0, HERMES_ACK, w0);
    rig_timer_slot(r, 0, 1);
    rig_crash(r, 2);
    rig_drop(r, 2);
    rig_adopt(r, 0);
    rig_adopt(r, 1);
    assert_false(r->updates[w0].decided);
    rig_mail(r, 0);
    assert_true(r->updates[w0].decided);
    assert_false(r->updates[w3].decided);
    assert_true(rig_settle(r));
}

/* Forgetting from end to end, and that a member that forgot late loses to the key's next life. */
static void test_forget(void **state)
{
    (void)state;
    struct rig *r = begin(3, RIG_START_TOMBSTONE, 0);
    forget_at_0(r);
    uint32_t u = rig_update(r, 0, RIG_WRITE);
    inv_ack(r, 0, 1, u);
    inv_ack(r, 0, 2, u);
    assert_true(r->updates[u].decided);
    assert_true(rig_settle(r));
    assert_int_equal(r->nodes[1].value, u);
}

/* The asker has forgotten alone: the others find out among themselves. */
static void test_forget_backup(void **state)
{
    (void)state;
    struct rig *r = begin(3, RIG_START_TOMBSTONE, 0);
    forget_at_0(r);
    r->nodes[1].meta.flags &= (uint8_t)~KEY_AGREED; /* as if FORGET had been lost */
    r->nodes[2].meta.flags &= (uint8_t)~KEY_AGREED;
    for (uint32_t i = 0; i < 16; i++) {
        rig_advance(r, RIG_GRACE_US);
        rig_sweep(r, 1);
        rig_sweep(r, 2);
        assert_true(rig_settle(r));
    }
    assert_int_equal(r->nodes[1].meta.ts, 0);
    assert_int_equal(r->nodes[2].meta.ts, 0);
}

/* A member that missed FORGET asks again while the key's next life, at the others, issues the
 * tombstone's timestamp anew: its question proves nothing about that. */
static void test_forget_next_life(void **state)
{
    (void)state;
    struct rig *r = begin(3, RIG_START_NOTHING, 0);
    r->first_cid = true;
    uint32_t w = rig_update(r, 0, RIG_WRITE);
    inv_ack(r, 0, 1, w);
    inv_ack(r, 0, 2, w);
    uint32_t d = rig_update(r, 0, RIG_DELETE);
    inv_ack(r, 0, 1, d);
    inv_ack(r, 0, 2, d);
    rig_pass(r, 0, 1, HERMES_VAL, d);
    rig_pass(r, 0, 2, HERMES_VAL, d);
    forget_at_0(r);
    rig_sweep(r, 2);
    assert_int_equal(r->nodes[2].meta.ts, 0);
    r->nodes[1].meta.flags &= (uint8_t)~KEY_AGREED; /* as if FORGET had been lost */
    rig_advance(r, 4 * RIG_GRACE_US);
    rig_sweep(r, 1);

    w = rig_update(r, 0, RIG_WRITE);
    inv_ack(r, 0, 1, w);
    inv_ack(r, 0, 2, w);
    uint32_t again = rig_update(r, 0, RIG_DELETE);
    assert_int_equal(r->updates[again].ts, r->updates[d].ts);
    assert_true(rig_pass(r, 1, 0, HERMES_FORGET_ASK, 0));
    assert_false(r->updates[again].decided); /* nobody else has it */
    rig_pass(r, 0, 2, HERMES_INV, again);
    assert_true(rig_pass(r, 1, 2, HERMES_FORGET_ASK, 0));
    assert_false(rig_readable(r, 2)); /* node 1 has not got it */
    assert_true(rig_settle(r));
    assert_null(r->violation);
}

/* The VAL of a tombstone is lost: nobody reads the key, so the sweep has to notice. */
static void test_forget_lost_val(void **state)
{
    (void)state;
    struct rig *r = begin(3, RIG_START_VALUE, 0);
    uint32_t d = rig_update(r, 0, RIG_DELETE);
    inv_ack(r, 0, 1, d);
    inv_ack(r, 0, 2, d);
    rig_lose(r, 0, 1, HERMES_VAL);
    rig_sweep(r, 1);
    inv_ack(r, 1, 0, d);
    inv_ack(r, 1, 2, d);
    assert_true(rig_readable(r, 1));
}

#define ONE(run) cmocka_unit_test(test_##run)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(ack_set),
        ONE(ack_ts),
        ONE(epoch),
        ONE(val_any_epoch),
        ONE(write_val),
        ONE(ack_same),
        ONE(trans_replay),
        ONE(ack_reset),
        ONE(no_stale),
        ONE(cid_trigger),
        ONE(lost_valid),
        ONE(no_own_ack),
        ONE(o3_writes),
        ONE(o3_epoch),
        ONE(cid),
        ONE(chunk_higher),
        ONE(chunk_state),
        ONE(all_acks),
        ONE(answer_valid),
        ONE(first),
        ONE(agreed_forget),
        ONE(shadow_forget),
        ONE(chunk_reported),
        ONE(val_member),
        ONE(step),
        ONE(read_valid),
        ONE(val_ts),
        ONE(replay),
        ONE(check),
        ONE(inv_in_write_rmw),
        ONE(early_acks),
        ONE(check_majority),
        ONE(nudge),
        ONE(late_mail),
        ONE(forget),
        ONE(forget_backup),
        ONE(forget_next_life),
        ONE(forget_lost_val),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
