/* Batches across transactions: who leads, when one leaves, and when nobody waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/lotus/batch.h"

static const struct batch_config config = {
    .members_min = 3, .requests_max = 5, .wait_us_max = 100, .term = 2};

static void leaves_full_or_in_time(void **state)
{
    (void)state;
    struct batch b;
    batch_init(&b);
    assert_int_equal(batch_add(&b, &config, 8, 1, 1000), BATCH_WAIT);
    assert_int_equal(b.due_us, 1100);
    assert_int_equal(b.leader, 1);
    for (uint32_t i = 2; i < 5; i++) {
        assert_int_equal(batch_add(&b, &config, 8, i, 1000 + i), BATCH_WAIT);
    }
    assert_int_equal(b.due_us, 1100); /* of the first */
    assert_int_equal(batch_add(&b, &config, 8, 5, 1010), BATCH_SEND);
    batch_left(&b, 1010);
    assert_int_equal(b.due_us, UINT64_MAX);
    /* All that are about have come. */
    assert_int_equal(batch_add(&b, &config, 3, 6, 2000), BATCH_WAIT);
    assert_int_equal(batch_add(&b, &config, 3, 7, 2000), BATCH_WAIT);
    assert_int_equal(batch_add(&b, &config, 3, 8, 2000), BATCH_SEND);
    batch_left(&b, 2000);
    assert_int_equal(b.success, BATCH_ONE);
    assert_int_equal(b.timeout, 0);
}

static void leaders_change(void **state)
{
    (void)state;
    struct batch b;
    batch_init(&b);
    static const uint32_t expected[] = {10, 10, 12, 12};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(batch_add(&b, &config, 8, 10 + i, 1000), BATCH_WAIT);
        assert_int_equal(b.leader, expected[i]);
        assert_int_equal(batch_add(&b, &config, 8, 20, 1000), BATCH_WAIT);
        assert_int_equal(b.leader, expected[i]);
        batch_left(&b, 1050);
    }
    /* One that is refused resigns; who is not leading has nothing to resign from. */
    assert_int_equal(batch_add(&b, &config, 8, 30, 1000), BATCH_WAIT);
    batch_refused(&b, 20);
    assert_int_equal(b.leader, 30);
    batch_refused(&b, 30);
    assert_int_equal(b.leader, 0);
    batch_left(&b, 1100);
    assert_int_equal(batch_add(&b, &config, 8, 31, 1200), BATCH_WAIT);
    assert_int_equal(b.leader, 31);
}

static void few_send_alone(void **state)
{
    (void)state;
    struct batch b;
    batch_init(&b);
    for (uint32_t i = 0; i < 200; i++) {
        assert_int_equal(batch_add(&b, &config, 2, 1 + i % 2, i), BATCH_ALONE);
    }
    assert_int_equal(b.requests, 0);
    /* One that was opened when more were about takes the rest along. */
    assert_int_equal(batch_add(&b, &config, 3, 1, 1000), BATCH_WAIT);
    assert_int_equal(batch_add(&b, &config, 2, 2, 1000), BATCH_SEND);
}

/* Nobody comes: they wait for less and less, then not at all, but for a probe; and when others come
 * again a probe finds out. */
static void waiting_in_vain_ends(void **state)
{
    (void)state;
    struct batch b;
    batch_init(&b);
    uint64_t now = 1000;
    uint32_t last = 100, opened = 0;
    while (batch_wait_us(&b, &config) > 0) {
        assert_in_range(batch_wait_us(&b, &config), 1, last);
        last = batch_wait_us(&b, &config);
        assert_int_equal(batch_add(&b, &config, 8, 1, now), BATCH_WAIT);
        assert_int_equal(b.due_us, now + last);
        now = b.due_us;
        batch_left(&b, now);
        opened++;
        assert_in_range(opened, 1, 80);
    }
    uint32_t alone = 0;
    while (batch_add(&b, &config, 8, 1, now) == BATCH_ALONE) {
        alone++;
        assert_in_range(alone, 1, 100);
    }
    assert_true(alone > 10);
    assert_int_equal(batch_add(&b, &config, 8, 2, now), BATCH_WAIT);
    batch_left(&b, now + 1);
    uint32_t steps = 0;
    while (batch_wait_us(&b, &config) < 50) {
        uint32_t word = batch_add(&b, &config, 8, 1, now);
        if (word == BATCH_WAIT) {
            (void)batch_add(&b, &config, 8, 2, now);
            batch_left(&b, now);
        }
        steps++;
        assert_in_range(steps, 1, 1000);
    }
}

static void conflicts_shorten_the_wait(void **state)
{
    (void)state;
    struct batch b;
    batch_init(&b);
    uint32_t before = batch_wait_us(&b, &config);
    for (uint32_t i = 0; i < 4; i++) {
        batch_refused(&b, 1);
    }
    uint32_t after = batch_wait_us(&b, &config);
    assert_true(after < before * 3 / 4 && after > 0);
    for (uint32_t i = 0; i < 60; i++) {
        batch_refused(&b, 1);
    }
    assert_int_equal(batch_wait_us(&b, &config), 0);
    for (uint32_t i = 0; i < 60; i++) {
        batch_done(&b);
    }
    assert_int_equal(batch_wait_us(&b, &config), before);
    assert_int_equal(b.conflict, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_full_or_in_time),
        cmocka_unit_test(leaders_change),
        cmocka_unit_test(few_send_alone),
        cmocka_unit_test(waiting_in_vain_ends),
        cmocka_unit_test(conflicts_shorten_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
