#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "server/slowlog.h"

static void add(struct slowlog *slowlog, uint64_t took_us)
{
    struct bytes args[] = {bytes_of("SET", 3), bytes_of("a\0b", 3)};
    struct resp_slow slow = {.id = 999,
                             .started_s = 1700000000,
                             .took_us = took_us,
                             .arguments = 2,
                             .args = args,
                             .args_n = 2,
                             .address = "127.0.0.1:5",
                             .name = "ann"};
    slowlog_add(slowlog, &slow);
    memset(args, 0xee, sizeof args); /* what was kept is a copy */
}

static void assert_get(struct slowlog *slowlog, int64_t n, const char *expected, uint32_t bytes)
{
    struct resp_out out;
    resp_out_init(&out, 1 << 20);
    slowlog_get(slowlog, n, &out);
    assert_int_equal(out.n, bytes);
    assert_memory_equal(out.at, expected, bytes);
    resp_out_deinit(&out);
}

#define ENTRY(id, took)                                                                            \
    "*6\r\n:" id "\r\n:1700000000\r\n:" took "\r\n*2\r\n$3\r\nSET\r\n$3\r\na\0b\r\n"               \
    "$11\r\n127.0.0.1:5\r\n$3\r\nann\r\n"
#define GET(slowlog, n, text) assert_get(slowlog, n, text, sizeof(text) - 1)

static void test_ring(void **state)
{
    (void)state;
    struct slowlog *s;
    assert_int_equal(slowlog_create(3, &s), HK_OK);
    assert_int_equal(slowlog_length(s), 0);
    GET(s, -1, "*0\r\n");
    add(s, 10);
    GET(s, -1, "*1\r\n" ENTRY("0", "10"));
    add(s, 11);
    add(s, 12);
    add(s, 13);
    assert_int_equal(slowlog_length(s), 3);
    GET(s, -1, "*3\r\n" ENTRY("3", "13") ENTRY("2", "12") ENTRY("1", "11"));
    GET(s, 2, "*2\r\n" ENTRY("3", "13") ENTRY("2", "12"));
    GET(s, 0, "*0\r\n");
    GET(s, INT64_MAX, "*3\r\n" ENTRY("3", "13") ENTRY("2", "12") ENTRY("1", "11"));

    slowlog_set_max(s, 1);
    GET(s, 10, "*1\r\n" ENTRY("3", "13"));
    slowlog_reset(s);
    assert_int_equal(slowlog_length(s), 0);
    slowlog_set_max(s, 2);
    add(s, 14); /* ids go on */
    GET(s, 10, "*1\r\n" ENTRY("4", "14"));
    slowlog_set_max(s, 0);
    add(s, 15);
    assert_int_equal(slowlog_length(s), 0);
    slowlog_destroy(s);
}

/* Whatever the caller hands over, an entry stays small. */
static void test_cut(void **state)
{
    (void)state;
    static uint8_t big[100000];
    struct bytes args[100];
    struct slowlog *s;
    assert_int_equal(slowlog_create(1, &s), HK_OK);
    memset(big, 'b', sizeof big);
    for (uint32_t i = 0; i < 100; i++) {
        args[i] = bytes_of(big, sizeof big);
    }
    slowlog_add(s, &(struct resp_slow){.arguments = 100, .args = args, .args_n = 100});
    struct resp_out out;
    resp_out_init(&out, 1 << 20);
    slowlog_get(s, -1, &out);
    assert_false(out.failed);
    assert_in_range(out.n, 4000, 8000);
    assert_non_null(strstr((const char *)out.at, "... (69 more arguments)"));
    resp_out_deinit(&out);
    slowlog_destroy(s);
}

#define THREADS 4
#define ADDS 500

static void *add_many(void *context)
{
    for (uint32_t i = 0; i < ADDS; i++) {
        add(context, i);
        if (i % 50 == 0) {
            struct resp_out out;
            resp_out_init(&out, 1 << 20);
            slowlog_get(context, 5, &out);
            resp_out_deinit(&out);
            slowlog_set_max(context, 10 + i % 7);
        }
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct slowlog *s;
    pthread_t threads[THREADS];
    char first[32];
    assert_int_equal(slowlog_create(10, &s), HK_OK);
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, s), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_in_range(slowlog_length(s), 10, 16);
    /* No id was given twice or left out: the newest is the last of all. */
    struct resp_out out;
    resp_out_init(&out, 1 << 20);
    slowlog_get(s, 1, &out);
    int n = snprintf(first, sizeof first, "*1\r\n*6\r\n:%d\r\n", THREADS * ADDS - 1);
    assert_memory_equal(out.at, first, (size_t)n);
    resp_out_deinit(&out);
    slowlog_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
