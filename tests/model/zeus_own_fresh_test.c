/* An object that was created and never had a reader is gone with its owner as if it had never been
 * (R17); one that had a reader is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/zeus_own_rig.h"

static struct own_rig rig;

/* Node 4, which is no directory node, has created the object; `readers` have followed. */
static struct own_rig *create(uint8_t degree, nodeset readers)
{
    own_rig_init(&rig, 5, 0, 0, 7);
    rig.config.degree = degree;
    own_rig_want(&rig, 4, OWN_OWNER, NODE_NONE);
    own_rig_run(&rig);
    for (nodeset rest = readers; rest != 0; rest &= rest - 1) {
        own_rig_want(&rig, nodeset_first(rest), OWN_READER, NODE_NONE);
        own_rig_run(&rig);
    }
    assert_true(rig.nodes[4].owned);
    return &rig;
}

static void lose(struct own_rig *r, uint8_t node)
{
    own_rig_crash(r, node);
    own_rig_drop(r, node);
    assert_null(own_rig_settle(r));
}

static uint8_t ask(struct own_rig *r, uint8_t node, enum own_type type)
{
    own_rig_want(r, node, type, NODE_NONE);
    assert_null(own_rig_settle(r));
    return r->nodes[node].code;
}

static void test_never_written(void **state)
{
    (void)state;
    struct own_rig *r = create(0, 0);
    assert_true((r->nodes[0].entry.vector.degree & OWN_FRESH) != 0);
    lose(r, 4);
    assert_int_equal(ask(r, 3, OWN_READER), OWN_NACK_NONE);
    assert_int_equal(ask(r, 3, OWN_OWNER), 0);
    assert_true(r->nodes[3].owned && r->nodes[3].have);
}

/* Who wanted to create it is dead before anybody knows the result. */
static void test_creation_ends_by_replay(void **state)
{
    (void)state;
    own_rig_init(&rig, 5, 0, 0, 7);
    struct own_rig *r = &rig;
    r->config.degree = 0;
    own_rig_want(r, 4, OWN_OWNER, NODE_NONE);
    own_rig_pass(r, 4, r->nodes[4].busy.driver, OWN_MSG_REQ);
    own_rig_run_among(r, 7, OWN_RIG_OBJECT);
    lose(r, 4);
    assert_int_equal(ask(r, 1, OWN_READER), OWN_NACK_NONE);
    assert_int_equal(ask(r, 1, OWN_OWNER), 0);
}

static void test_lost(void **state)
{
    (void)state;
    struct own_rig *r = create(0, nodeset_of(3));
    assert_true((r->nodes[0].entry.vector.degree & OWN_FRESH) == 0);
    lose(r, 3);
    lose(r, 4);
    assert_int_equal(ask(r, 1, OWN_OWNER), OWN_NACK_LOST);
    assert_int_equal(ask(r, 1, OWN_READER), OWN_NACK_LOST);
    /* Where one replica is enough it may have been written. */
    r = create(1, 0);
    lose(r, 4);
    assert_int_equal(ask(r, 1, OWN_OWNER), OWN_NACK_LOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never_written),
        cmocka_unit_test(test_creation_ends_by_replay),
        cmocka_unit_test(test_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
