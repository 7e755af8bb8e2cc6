/* A thread that is asked where it is: in the program, and in whose turn. */
#include "bench/samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"

#define SAMPLES 8u
#define BOUND_US 60000000u

static volatile uint64_t sink;

static __attribute__((noinline)) void work(void)
{
    for (uint32_t i = 0; i < 10000; i++) {
        sink += i;
    }
}

/* Until there are so many more. */
static void asked(struct samples *s, uint32_t n)
{
    uint32_t before, now;
    uint64_t until_us = clock_boot_us() + BOUND_US;
    (void)samples_all(s, &before);
    assert_int_equal(samples_start(s), HK_OK);
    do {
        work();
        (void)samples_all(s, &now);
    } while (now < before + n && clock_boot_us() < until_us);
    samples_stop(s);
    assert_true(now >= before + n);
}

static void notes_where_and_whose(void **state)
{
    struct samples *s;
    uint32_t n = 0, first, inside = 0;
    (void)state;
    assert_int_equal(samples_create(&s), HK_OK);
    asked(s, SAMPLES);
    (void)samples_all(s, &first);
    samples_turn(s, 3);
    asked(s, SAMPLES);
    const struct sample *all = samples_all(s, &n);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(all[i].node == (i < first ? SAMPLES_NOBODY : 3));
        assert_true(all[i].at == 0 || all[i].caller == 0);
        inside += all[i].at != 0;
    }
    assert_true(inside > 0);
    samples_destroy(s);
}

static void notes_nothing_while_it_is_stopped(void **state)
{
    struct samples *s;
    uint32_t n = 0, later = 0;
    (void)state;
    assert_int_equal(samples_create(&s), HK_OK);
    asked(s, 1);
    (void)samples_all(s, &n);
    uint64_t until_us = clock_boot_us() + 20 * SAMPLES_PERIOD_NS / 1000u;
    while (clock_boot_us() < until_us) {
        work();
    }
    (void)samples_all(s, &later);
    assert_int_equal(n, later);
    samples_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_where_and_whose),
        cmocka_unit_test(notes_nothing_while_it_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
