/* Slots as Redis Cluster computes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/nodeset.h"
#include "base/slot.h"

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

/* The check value of CRC16/XMODEM, and what CLUSTER KEYSLOT answers for some keys. */
static void test_values_are_those_of_redis_cluster(void **state)
{
    (void)state;
    assert_int_equal(slot_crc16(text("123456789")), 0x31c3);
    assert_int_equal(slot_of_key(text("foo")), 12182);
    assert_int_equal(slot_of_key(text("bar")), 5061);
    assert_int_equal(slot_of_key(text("")), 0);
}

static void test_a_tag_alone_counts(void **state)
{
    (void)state;
    assert_int_equal(slot_of_key(text("{foo}.1")), slot_of_key(text("foo")));
    assert_int_equal(slot_of_key(text("a{foo}b{bar}")), slot_of_key(text("foo")));
    assert_int_equal(slot_of_key(text("{{foo}")), slot_of_key(text("{foo")));
    /* An empty tag, or none that is closed, is no tag. */
    assert_int_equal(slot_of_key(text("{}foo")), slot_crc16(text("{}foo")) % HASH_SLOTS);
    assert_int_equal(slot_of_key(text("a{foo")), slot_crc16(text("a{foo")) % HASH_SLOTS);
    assert_int_equal(slot_of_key(text("}foo{")), slot_crc16(text("}foo{")) % HASH_SLOTS);
}

static void test_a_home_survives_packing(void **state)
{
    (void)state;
    struct slot_home h = {.home = 7, .to = NODE_NONE, .state = HOME_MOVING};
    struct slot_home back = slot_home_unpack(slot_home_pack(h));
    assert_int_equal(back.home, 7);
    assert_int_equal(back.to, NODE_NONE);
    assert_int_equal(back.state, HOME_MOVING);
    assert_true(slot_home_is(back, 7));
    back.state = HOME_LOST;
    assert_false(slot_home_is(back, 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_those_of_redis_cluster),
        cmocka_unit_test(test_a_tag_alone_counts),
        cmocka_unit_test(test_a_home_survives_packing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
