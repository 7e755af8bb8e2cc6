/* Places that SCAN tells as numbers: what is found again, what is not, and what they cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/places.h"

static struct bytes text(const char *chars)
{
    return bytes_of(chars, (uint32_t)strlen(chars));
}

static void expect(struct places *places, uint64_t number, const char *place)
{
    struct resp_out out;
    resp_out_init(&out, 1u << 20);
    assert_int_equal(places_find(places, number, &out), place != NULL);
    if (place != NULL) {
        assert_true(bytes_equal(bytes_of(out.at, out.n), text(place)));
    }
    resp_out_deinit(&out);
}

static void test_a_scan(void **state)
{
    (void)state;
    struct places *places = places_create(63, UINT64_MAX - 1);
    assert_non_null(places);
    uint64_t first = places_keep(places, 0, text("b"));
    assert_in_range(first, 1, (UINT64_C(1) << 53) - 1);
    expect(places, first, "b");
    uint64_t second = places_keep(places, first, text("c"));
    expect(places, second, "c");
    expect(places, first, "b"); /* the last call may be repeated ... */
    uint64_t again = places_keep(places, first, text("d"));
    expect(places, again, "d");
    expect(places, second, NULL); /* ... and goes its own way */
    uint64_t third = places_keep(places, again, text(""));
    expect(places, third, "");
    expect(places, again, "d");
    expect(places, first, NULL); /* two calls ago: not taken for a newer one */
    expect(places, 0, NULL);
    expect(places, third ^ UINT64_C(1) << 50, NULL); /* another node's */
    expect(places, UINT64_MAX, NULL);
    places_destroy(places);
}

/* Who goes on is not forgotten for those who do not. */
static void test_many_scans(void **state)
{
    (void)state;
    struct places *places = places_create(1, 7);
    assert_non_null(places);
    uint64_t silent = places_keep(places, 0, text("silent"));
    uint64_t busy = places_keep(places, 0, text("busy"));
    for (uint32_t i = 0; i < PLACES_MAX; i++) {
        assert_int_not_equal(places_keep(places, 0, text("x")), 0);
        busy = places_keep(places, busy, text("busy"));
    }
    expect(places, silent, NULL);
    expect(places, busy, "busy");
    places_destroy(places);
}

static void test_large_places(void **state)
{
    (void)state;
    struct places *places = places_create(1, 7);
    char *large = malloc(65537);
    assert_non_null(places);
    assert_non_null(large);
    memset(large, 'x', 65536);
    large[65536] = '\0';
    uint64_t first = places_keep(places, 0, text(large)), last = 0;
    for (uint32_t i = 1; i < PLACES_BYTES_MAX / 65536; i++) {
        last = places_keep(places, 0, text(large));
    }
    expect(places, first, large);
    uint64_t small = places_keep(places, 0, text("y"));
    expect(places, small, "y");
    expect(places, first, large); /* it was used since; the second was not */
    expect(places, last, large);
    for (uint32_t i = 0; i < PLACES_BYTES_MAX / 65536; i++) {
        small = places_keep(places, small, text(large));
    }
    expect(places, small, large);
    free(large);
    places_destroy(places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_scan),
        cmocka_unit_test(test_many_scans),
        cmocka_unit_test(test_large_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
