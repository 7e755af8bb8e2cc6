/* Who knows of an object when its directory dies while newcomers are still being sent entries
 * (docs/protocols/zeus.md, R11): its readers, and newcomers that have been sent some; and what
 * nobody must know of an object any more (R13). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/zeus_own_rig.h"

static struct own_rig rig;

/* Five nodes; the directory is nodes 0, 1, 2. */
static struct own_rig *place(uint8_t owner, nodeset readers)
{
    struct own_rig *r = &rig;
    own_rig_place(r, 0, 7, owner, readers);
    return r;
}

static void die(struct own_rig *r, uint8_t node)
{
    own_rig_crash(r, node);
    own_rig_drop(r, node);
    own_rig_adopt_all(r);
    own_rig_run(r);
}

/* It is told of the others, and nobody has heard of it yet. */
static void come(struct own_rig *r, uint8_t node)
{
    own_rig_admit(r, node);
    own_rig_adopt_all(r);
}

static void serve(struct own_rig *r, uint8_t node)
{
    own_rig_run(r);
    bool promoted = own_rig_promote(r, node);
    assert_true(promoted);
    own_rig_adopt_all(r);
    own_rig_run(r);
}

static uint8_t ask(struct own_rig *r, uint8_t node, enum own_type type)
{
    own_rig_want(r, node, type, NODE_NONE);
    assert_null(own_rig_verdict(r));
    return r->nodes[node].code;
}

/* Two of the directory have come back and have been sent nothing when the third, which owns the
 * object, dies. One reader is left. */
static void test_readers_speak(void **state)
{
    (void)state;
    struct own_rig *r = place(2, nodeset_of(4));
    die(r, 0);
    die(r, 1);
    come(r, 0);
    come(r, 1);
    own_rig_crash(r, 2);
    own_rig_drop(r, 2);
    own_rig_adopt_all(r);
    serve(r, 0);
    serve(r, 1);
    uint64_t version = r->nodes[4].version;
    assert_true(r->nodes[4].have);
    assert_int_equal(ask(r, 3, OWN_READER), 0);
    assert_int_equal(ask(r, 0, OWN_OWNER), 0);
    assert_true(r->nodes[0].owned && r->nodes[0].version == version);
    assert_true(r->nodes[3].have && r->nodes[4].have);
}

/* The readers have different entries: the latest counts, which names them all. */
static void test_latest_reader_counts(void **state)
{
    (void)state;
    struct own_rig *r = place(2, nodeset_of(4));
    assert_int_equal(ask(r, 3, OWN_READER), 0);
    assert_true(r->nodes[3].entry.ts > r->nodes[4].entry.ts);
    die(r, 0);
    die(r, 1);
    come(r, 0);
    come(r, 1);
    own_rig_crash(r, 2);
    own_rig_drop(r, 2);
    own_rig_adopt_all(r);
    serve(r, 0);
    serve(r, 1);
    assert_int_equal(r->nodes[1].entry.vector.readers, nodeset_of(3) | nodeset_of(4));
    assert_int_equal(ask(r, 1, OWN_OWNER), 0);
    assert_true(r->nodes[1].owned && r->nodes[1].version == r->nodes[4].version);
}

/* A lost object, which nobody has: only its directory can say so. The one that has the entry dies
 * when it has sent it to one newcomer, and not to the other. */
static void test_newcomers_speak(void **state)
{
    (void)state;
    struct own_rig *r = place(3, 0);
    die(r, 3);
    come(r, 3);
    serve(r, 3);
    die(r, 1);
    die(r, 2);
    come(r, 1);
    come(r, 2);
    own_rig_run_among(r, 0x1f, OWN_RIG_REST);
    own_rig_pass(r, 0, 1, OWN_MSG_ENTRY);
    own_rig_lose(r, 0, 2);
    own_rig_crash(r, 0);
    own_rig_drop(r, 0);
    own_rig_adopt_all(r);
    serve(r, 2);
    serve(r, 1);
    assert_int_equal(ask(r, 2, OWN_READER), OWN_NACK_LOST);
    assert_int_equal(ask(r, 4, OWN_OWNER), OWN_NACK_LOST);
}

/* A DESTROY that a change of view has interrupted is replayed while somebody joins: its end comes
 * to the newcomer before the entry that another sent when it had not heard of the DESTROY. */
static void test_destroyed_stays_so(void **state)
{
    (void)state;
    struct own_rig *r = NULL;
    for (uint64_t seed = 1; seed < 100; seed++) {
        r = place(3, 0);
        die(r, 0);
        (void)own_rig_commit(r, 3, true);
        own_rig_run(r);
        random_init(&r->random, seed);
        own_rig_want(r, 3, OWN_DESTROY, NODE_NONE);
        if (r->nodes[3].busy.driver == 1) {
            break;
        }
    }
    own_rig_pass(r, 3, 1, OWN_MSG_REQ);
    own_rig_lose(r, 1, 2); /* as the view changes */
    own_rig_lose(r, 1, 3);
    come(r, 0);
    for (uint32_t round = 0; round < 20; round++) {
        own_rig_run_among(r, 0x1f, OWN_RIG_REST);
        own_rig_run_among(r, 0x1f & ~nodeset_of(2), OWN_RIG_OBJECT);
        while (own_rig_deliver(r, 1, 2, OWN_RIG_OBJECT) ||
               own_rig_deliver(r, 3, 2, OWN_RIG_OBJECT)) {
        }
        for (uint8_t to = 1; to < 5; to++) {
            while (own_rig_deliver(r, 2, to, OWN_RIG_OBJECT)) {
            }
        }
    }
    assert_true(r->nodes[1].entry.ts == 0 && r->nodes[2].entry.ts == 0);
    serve(r, 0);
    assert_null(own_rig_verdict(r));
    assert_int_equal(ask(r, 4, OWN_READER), OWN_NACK_NONE);
    assert_int_equal(ask(r, 4, OWN_OWNER), 0);
}

/* Whom a change of the configured set has taken an object's directory from, and who has no replica
 * of it, forgets it when the epoch has settled. */
static void test_left_behind(void **state)
{
    (void)state;
    struct own_rig *r = place(3, 0);
    struct own_rig_node *n = &r->nodes[4];
    n->entry = r->nodes[0].entry;
    struct own_event event = own_rig_event(r, 4, OWN_EV_LOOK);
    event.settled = false;
    own_rig_step(r, 4, &event, NULL);
    assert_true(n->entry.ts != 0);
    assert_null(own_rig_verdict(r));
    assert_true(n->entry.ts == 0 && n->forgot >= stamp_version(r->nodes[0].entry.ts));
    assert_true(r->nodes[0].entry.ts != 0 && r->nodes[3].entry.ts != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readers_speak),   cmocka_unit_test(test_latest_reader_counts),
        cmocka_unit_test(test_newcomers_speak), cmocka_unit_test(test_destroyed_stays_so),
        cmocka_unit_test(test_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
