#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "resp/out.h"

static void expect(struct resp_out *out, const char *text)
{
    assert_false(out->failed);
    assert_int_equal(out->n, strlen(text));
    assert_memory_equal(out->at, text, out->n);
    resp_out_reset(out);
}

static void test_both(void **state)
{
    struct resp_out out;

    (void)state;
    resp_out_init(&out, 1 << 20);
    for (int i = 0; i < 2; i++) {
        out.resp3 = i == 1;
        resp_out_simple(&out, "OK");
        expect(&out, "+OK\r\n");
        resp_out_error(&out, "ERR a\r\nb\nc\r\n");
        expect(&out, "-ERR a  b c\r\n");
        resp_out_errorf(&out, "ERR %d '%s'", 5, "x\n");
        expect(&out, "-ERR 5 'x '\r\n");
        resp_out_number(&out, INT64_MIN);
        expect(&out, ":-9223372036854775808\r\n");
        resp_out_bulk(&out, bytes_of("a\0\r\n", 4));
        resp_out_bulk(&out, bytes_of(NULL, 0));
        assert_int_equal(out.n, 16);
        assert_memory_equal(out.at, "$4\r\na\0\r\n\r\n$0\r\n\r\n", 16);
        resp_out_reset(&out);
        resp_out_text(&out, "text");
        expect(&out, "$4\r\ntext\r\n");
        resp_out_array(&out, 4294967295u);
        expect(&out, "*4294967295\r\n");
    }
    resp_out_deinit(&out);
}

static void test_versions(void **state)
{
    static const struct {
        const char *resp2, *resp3;
    } rows[] = {
        {"$-1\r\n", "_\r\n"},
        {"*-1\r\n", "_\r\n"},
        {":1\r\n", "#t\r\n"},
        {":0\r\n", "#f\r\n"},
        {"$4\r\n0.25\r\n", ",0.25\r\n"},
        {"$3\r\ninf\r\n", ",inf\r\n"},
        {"$4\r\n-inf\r\n", ",-inf\r\n"},
        {"$3\r\nnan\r\n", ",nan\r\n"},
        {"*6\r\n", "%3\r\n"},
        {"*3\r\n", "~3\r\n"},
        {"$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"},
        {"*8589934590\r\n", "%4294967295\r\n"},
    };
    struct resp_out out;

    (void)state;
    resp_out_init(&out, 1 << 20);
    for (int i = 0; i < 2; i++) {
        uint32_t row = 0;

        out.resp3 = i == 1;
#define ROW(call)                                                                                  \
    call;                                                                                          \
    expect(&out, out.resp3 ? rows[row].resp3 : rows[row].resp2);                                   \
    row++
        ROW(resp_out_null(&out));
        ROW(resp_out_null_array(&out));
        ROW(resp_out_bool(&out, true));
        ROW(resp_out_bool(&out, false));
        ROW(resp_out_double(&out, 0.25));
        ROW(resp_out_double(&out, strtod("inf", NULL)));
        ROW(resp_out_double(&out, -strtod("inf", NULL)));
        ROW(resp_out_double(&out, strtod("nan", NULL)));
        ROW(resp_out_map(&out, 3));
        ROW(resp_out_set(&out, 3));
        ROW(resp_out_verbatim(&out, bytes_of("hi", 2)));
        ROW(resp_out_map(&out, UINT32_MAX));
#undef ROW
        assert_int_equal(row, sizeof rows / sizeof rows[0]);
    }
    resp_out_deinit(&out);
}

static void test_rewind(void **state)
{
    struct resp_out out;

    (void)state;
    resp_out_init(&out, 100);
    resp_out_number(&out, 1);

    uint32_t mark = out.n;

    resp_out_number(&out, 2);
    resp_out_rewind(&out, mark);
    resp_out_rewind(&out, mark + 10); /* nothing is there to be taken back */
    resp_out_number(&out, 3);
    expect(&out, ":1\r\n:3\r\n");
    resp_out_deinit(&out);
}

/* The bound holds to the byte for raw bytes; behind it nothing is kept and nothing is taken. */
static void test_bound(void **state)
{
    static const uint8_t bytes[2000];
    struct resp_out out;

    (void)state;
    resp_out_init(&out, 1000);
    resp_out_raw(&out, bytes_of(bytes, 999));
    resp_out_raw(&out, bytes_of(bytes, 1));
    assert_false(out.failed);
    assert_int_equal(out.n, 1000);
    assert_true(out.capacity <= 1000);
    resp_out_raw(&out, bytes_of(bytes, 0));
    assert_false(out.failed);
    resp_out_raw(&out, bytes_of(bytes, 1));
    assert_true(out.failed);
    assert_int_equal(out.n, 0);
    assert_int_equal(out.capacity, 0);
    assert_null(out.at);
    resp_out_number(&out, 1);
    resp_out_error(&out, "ERR");
    resp_out_bulk(&out, bytes_of(bytes, 10));
    assert_int_equal(out.n, 0);
    resp_out_deinit(&out);

    resp_out_init(&out, 1000);
    resp_out_bulk(&out, bytes_of(bytes, 2000));
    assert_true(out.failed);
    resp_out_deinit(&out);
}

/* An emptied buffer gives back what a large reply took. */
static void test_reset(void **state)
{
    static const uint8_t bytes[100000];
    struct resp_out out;

    (void)state;
    resp_out_init(&out, 1 << 20);
    resp_out_raw(&out, bytes_of(bytes, sizeof bytes));
    assert_true(out.capacity >= sizeof bytes);
    resp_out_reset(&out);
    assert_true(out.capacity <= 4096);
    resp_out_number(&out, 1);

    uint32_t capacity = out.capacity;

    resp_out_reset(&out);
    assert_int_equal(out.capacity, capacity);
    resp_out_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both),   cmocka_unit_test(test_versions),
        cmocka_unit_test(test_rewind), cmocka_unit_test(test_bound),
        cmocka_unit_test(test_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
