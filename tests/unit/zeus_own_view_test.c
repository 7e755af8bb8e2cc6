/* What a view makes of an object: its directory, who may drive, which part of a vector counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/zeus/own.h"

static struct view view_of(nodeset configured)
{
    struct view view = {.epoch = 7, .configured = configured};
    view.live = view.operational = configured;
    for (nodeset rest = configured; rest != 0; rest &= rest - 1) {
        view.members[nodeset_first(rest)].admitted = 1;
    }
    return view;
}

/* max(3, minority + 1), of those that there are. */
static void test_directory_size(void **state)
{
    static const uint8_t sizes[] = {0, 1, 2, 3, 3, 3, 3, 4, 4, 5, 5, 6};
    (void)state;
    for (uint8_t n = 1; n < sizeof sizes; n++) {
        struct view view = view_of(((nodeset)1 << n) - 1);
        for (uint64_t hash = 0; hash < 200; hash++) {
            nodeset directory = own_directory(&view, hash);
            assert_int_equal(nodeset_count(directory), sizes[n]);
            assert_true(nodeset_within(directory, view.configured));
        }
    }
}

/* All nodes share the work. */
static void test_directory_spread(void **state)
{
    struct view view = view_of(0x3f);
    uint32_t times[6] = {0};
    struct random random;
    (void)state;
    random_init(&random, 1);
    for (uint32_t i = 0; i < 6000; i++) {
        for (nodeset rest = own_directory(&view, random_next(&random)); rest != 0;
             rest &= rest - 1) {
            times[nodeset_first(rest)]++;
        }
    }
    for (uint32_t i = 0; i < 6; i++) {
        assert_in_range(times[i], 2800, 3200);
    }
}

/* A node that comes takes places and gives nobody else one; the same the other way round. */
static void test_directory_moves_little(void **state)
{
    struct view few = view_of(0x1f);
    struct view many = view_of(0x3f);
    (void)state;
    for (uint64_t hash = 0; hash < 1000; hash++) {
        nodeset before = own_directory(&few, hash);
        nodeset after = own_directory(&many, hash);
        assert_true(nodeset_within(after, before | nodeset_of(5)));
    }
}

static void test_directory_changes(void **state)
{
    struct view old = view_of(0x1f);
    struct view view = view_of(0xf);
    (void)state;
    view.configured_old = 0x1f; /* node 4 leaves */
    view.live = view.operational = 0x1f;
    uint32_t new_ones = 0;
    for (uint64_t hash = 0; hash < 200; hash++) {
        nodeset before = own_directory(&old, hash);
        nodeset both = own_directory(&view, hash);
        assert_true(nodeset_within(before, both));
        assert_int_equal(own_drivers(&view, hash), before);
        new_ones += (both & ~before) != 0; /* it has no entry yet */
    }
    assert_true(new_ones > 50);
}

static void test_drivers_serve(void **state)
{
    struct view view = view_of(7);
    (void)state;
    view.operational = 5; /* node 1 is a shadow */
    assert_int_equal(own_directory(&view, 1), 7);
    assert_int_equal(own_drivers(&view, 1), 5);
    view.live = view.operational = 4;
    assert_int_equal(own_directory(&view, 1), 7);
    assert_int_equal(own_drivers(&view, 1), 4);
}

static void test_mask(void **state)
{
    struct view view = view_of(0x1f);
    (void)state;
    view.members[2].admitted = 6; /* a new process */
    view.live = 0xf;              /* node 4 is dead */
    struct own_vector vector = {.readers = 0x16, .epoch = 5, .owner = 0, .degree = 3};
    struct own_vector masked = own_masked(&vector, &view);
    assert_int_equal(masked.readers, 2);
    assert_int_equal(masked.owner, 0);
    assert_int_equal(masked.degree, 3);
    assert_int_equal(masked.epoch, 7);
    vector.owner = 4;
    vector.readers = 4;
    masked = own_masked(&vector, &view);
    assert_int_equal(masked.owner, NODE_NONE);
    assert_int_equal(masked.readers, 0);
    vector.epoch = 6; /* in which node 2's process was a member */
    assert_int_equal(own_masked(&vector, &view).readers, 4);
    static const struct own_vector nothing;
    masked = own_masked(&nothing, &view);
    assert_int_equal(masked.owner, NODE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directory_size),         cmocka_unit_test(test_directory_spread),
        cmocka_unit_test(test_directory_moves_little), cmocka_unit_test(test_directory_changes),
        cmocka_unit_test(test_drivers_serve),          cmocka_unit_test(test_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
