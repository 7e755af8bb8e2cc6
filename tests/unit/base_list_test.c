#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct item {
    int number;
    struct list_link link;
};

static void expect_numbers(const struct list_link *head, const char *digits)
{
    list_each(link, head)
    {
        assert_int_equal(list_entry(link, struct item, link)->number, *digits - '0');
        assert_ptr_equal(link->next->prev, link);
        digits++;
    }
    assert_int_equal(*digits, '\0');
}

static void test_list(void **state)
{
    (void)state;
    struct list_link a, b;
    struct item items[8];
    list_init(&a);
    list_init(&b);
    assert_true(list_empty(&a));
    assert_null(list_pop_front(&a));
    for (int i = 0; i < 8; i++) {
        items[i].number = i;
    }
    list_push_back(&a, &items[1].link);
    list_push_back(&a, &items[2].link);
    list_push_front(&a, &items[0].link);
    list_insert_after(&items[1].link, &items[7].link);
    expect_numbers(&a, "0172");
    list_remove(&items[7].link);
    list_remove(&items[7].link);
    expect_numbers(&a, "012");
    list_append(&b, &a);
    expect_numbers(&a, "");
    expect_numbers(&b, "012");
    list_push_back(&a, &items[3].link);
    list_push_back(&a, &items[4].link);
    list_append(&b, &a);
    list_append(&b, &a);
    expect_numbers(&b, "01234");
    assert_true(list_empty(&a));
    list_each_safe(link, following, &b)
    {
        if (list_entry(link, struct item, link)->number % 2 == 0) {
            list_remove(link);
        }
    }
    expect_numbers(&b, "13");
    assert_ptr_equal(list_pop_front(&b), &items[1].link);
    assert_ptr_equal(list_pop_front(&b), &items[3].link);
    assert_true(list_empty(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
