/* What stays near: what makes room is told, with its mark; a mark is gone when a place is new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/lotus/lfu.h"

static void what_makes_room_is_told(void **state)
{
    (void)state;
    struct lfu_place set[LFU_WAYS] = {{.key = 0}}, left;
    for (uint64_t k = 0; k < LFU_WAYS; k++) {
        assert_null(lfu_find(set, k)); /* a key of 0 is none while its place is free */
        lfu_admit(set, k, k + 100, &left)->mark = (uint32_t)k + 1;
        assert_int_equal(left.value, 0);
    }
    for (uint64_t k = 0; k < LFU_WAYS; k++) {
        for (uint32_t i = 0; i < 4 && k != 5; i++) {
            assert_ptr_equal(lfu_use(set, k), &set[k]);
        }
    }
    assert_int_equal(lfu_find(set, 5)->uses, 1);
    assert_int_equal(lfu_find(set, 4)->uses, 5);
    const struct lfu_place *came = lfu_admit(set, 77, 1, &left);
    assert_ptr_equal(came, &set[5]);
    assert_int_equal(left.key, 5);
    assert_int_equal(left.value, 105);
    assert_int_equal(left.mark, 6);
    assert_int_equal(came->mark, 0);
    assert_int_equal(came->uses, 1);
    assert_int_equal(set[4].uses, 2); /* the others have aged */
    assert_null(lfu_use(set, 5));
}

static void a_count_has_an_end(void **state)
{
    (void)state;
    struct lfu_place set[LFU_WAYS] = {{.key = 1, .value = 1, .uses = UINT32_MAX}};
    assert_int_equal(lfu_use(set, 1)->uses, UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_makes_room_is_told),
        cmocka_unit_test(a_count_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
