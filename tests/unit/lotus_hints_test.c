/* The hint cache: bounded, the frequently used stay, and what was popular once goes at last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/lotus/hints.h"

static struct hints make(uint32_t most)
{
    struct hints h;
    void *memory = malloc(hints_bytes(most));
    assert_non_null(memory);
    hints_init(&h, memory, most);
    return h;
}

static void found_set_and_forgotten(void **state)
{
    (void)state;
    struct hints h = make(64);
    assert_int_equal(h.sets, 8);
    assert_int_equal(hints_find(&h, 5), 0);
    hints_set(&h, 5, 0); /* of nobody: nothing happens */
    hints_set(&h, 5, 77);
    hints_set(&h, 13, 78); /* of the same set */
    hints_set(&h, 0, 79);  /* a hash of 0 is one as any */
    assert_int_equal(hints_find(&h, 5), 77);
    assert_int_equal(hints_find(&h, 13), 78);
    assert_int_equal(hints_find(&h, 0), 79);
    hints_set(&h, 5, 80);
    assert_int_equal(hints_find(&h, 5), 80);
    assert_int_equal(h.kept, 3);
    hints_set(&h, 5, 0);
    assert_int_equal(hints_find(&h, 5), 0);
    assert_int_equal(h.kept, 2);
    free(h.places);
}

/* At most so many, in a table of any size. */
static void it_is_bounded(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 8, 15, 16, 100, 1000};
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct hints h = make(sizes[i]);
        struct random random;
        random_init(&random, i);
        for (uint32_t k = 0; k < 20000; k++) {
            hints_set(&h, random_next(&random), k + 1);
        }
        uint32_t most = sizes[i] > LFU_WAYS ? sizes[i] : LFU_WAYS;
        assert_in_range(h.kept, most / 2, most);
        assert_int_equal(h.kept, h.sets * LFU_WAYS);
        free(h.places);
    }
}

static void the_frequent_stay(void **state)
{
    (void)state;
    struct hints h = make(LFU_WAYS);
    hints_set(&h, 1, 100);
    for (uint32_t i = 0; i < 50; i++) {
        assert_int_equal(hints_find(&h, 1), 100);
    }
    /* Others come and go in between: it is used now and then, and stays. */
    for (uint64_t k = 0; k < 100; k++) {
        hints_set(&h, 1000 + k, k + 1);
        for (uint32_t i = 0; i < 4; i++) {
            assert_int_equal(hints_find(&h, 1), 100);
        }
    }
    /* Used no more it goes, after so many halvings as its count has bits, and the ties. */
    uint32_t came = 0;
    for (uint64_t k = 0; k < 200 && came == 0; k++) {
        hints_set(&h, 5000 + k, k + 1);
        bool there = false;
        for (uint32_t i = 0; i < LFU_WAYS; i++) {
            there |= h.places[i].key == 1;
        }
        came = there ? 0 : (uint32_t)k + 1;
    }
    assert_in_range(came, 4, 60);
    free(h.places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_set_and_forgotten),
        cmocka_unit_test(it_is_bounded),
        cmocka_unit_test(the_frequent_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
