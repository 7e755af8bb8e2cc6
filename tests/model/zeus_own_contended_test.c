/* Ownership that several members want at once (R19): who drives, who wins, and where the others
 * go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/zeus_own_rig.h"

#define NODES 3u

static uint8_t chief_of(const struct own_rig *r)
{
    return nodeset_first(own_chief(own_drivers(own_rig_newest(r), r->hash), r->hash));
}

static uint8_t owner(const struct own_rig *r)
{
    return r->nodes[0].entry.vector.owner;
}

/* The object is node 2's, with a value. */
static void start(struct own_rig *r, uint64_t seed)
{
    own_rig_init(r, NODES, 0, 0, seed);
    r->chiefs = true;
    own_rig_want(r, 2, OWN_OWNER, NODE_NONE);
    own_rig_run(r);
    assert_int_equal(owner(r), 2);
}

static void test_the_chief_is_one_of_the_drivers(void **state)
{
    nodeset chiefs = 0;
    (void)state;
    for (uint64_t hash = 1; hash < 200; hash++) {
        nodeset chief = own_chief(7, hash);
        assert_int_equal(nodeset_count(chief), 1);
        assert_true(nodeset_within(chief, 7));
        assert_true(own_chief(chief, hash) == chief);
        chiefs |= chief;
    }
    assert_int_equal(chiefs, 7); /* the work is everybody's */
    assert_int_equal(own_chief(0, 1), 0);
}

/* Both drive their own requests before they hear of each other's: whose waits longer wins, although
 * the other's node, which decides between equal versions, is the higher. */
static void test_of_two_drivers_the_older_wins(void **state)
{
    static const uint16_t ages[][2] = {{0, 0}, {9, 0}, {0, 9}, {9, 8}};
    static const uint8_t winners[] = {1, 0, 1, 0};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        static struct own_rig r;
        start(&r, i + 1);
        for (uint8_t node = 0; node < 2; node++) {
            r.nodes[node].waited = ages[i][node];
            own_rig_want(&r, node, OWN_OWNER, NODE_NONE);
            own_rig_pass(&r, node, node, OWN_MSG_REQ);
            assert_int_equal(r.nodes[node].busy.state, OWN_DRIVE);
        }
        own_rig_pass(&r, 0, 1, OWN_MSG_INV);
        own_rig_pass(&r, 1, 0, OWN_MSG_INV);
        assert_int_equal(r.nodes[winners[i]].busy.state, OWN_DRIVE);
        assert_int_equal(r.nodes[1 - winners[i]].busy.state, OWN_INVALID);
        own_rig_run(&r);
        assert_null(own_rig_verdict(&r));
        assert_null(own_rig_settle(&r));
    }
}

/* Who is beaten at another driver asks the chief at once, without a pause, and only once. */
static void test_who_is_beaten_goes_to_the_chief(void **state)
{
    static struct own_rig r;
    uint8_t other;
    uint8_t loser;
    (void)state;
    start(&r, 1);
    loser = chief_of(&r) == 0 ? 1 : 0;
    other = (uint8_t)(1 - loser);
    r.nodes[other].waited = 100;
    for (uint8_t node = 0; node < 2; node++) {
        own_rig_want(&r, node, OWN_OWNER, NODE_NONE);
        own_rig_pass(&r, node, node, OWN_MSG_REQ);
    }
    own_rig_pass(&r, other, loser, OWN_MSG_INV);
    own_rig_pass(&r, loser, loser, OWN_MSG_ACK); /* its own, of before */
    own_rig_pass(&r, loser, loser, OWN_MSG_NACK);
    assert_int_equal(r.nodes[loser].busy.driver, chief_of(&r));
    assert_int_equal(r.nodes[loser].busy.mine.retry, 1);
    assert_false(r.nodes[loser].busy.waits);
    own_rig_run(&r);
    assert_null(own_rig_settle(&r));
    assert_int_equal(r.nodes[other].dones, 1);
    assert_int_equal(r.nodes[loser].dones, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_chief_is_one_of_the_drivers),
        cmocka_unit_test(test_of_two_drivers_the_older_wins),
        cmocka_unit_test(test_who_is_beaten_goes_to_the_chief),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
