#include "bench/resp_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct resp_scan scan;

/* What comes out when the text arrives in pieces of `piece` bytes; at most 16 replies. */
static uint32_t feed(const char *text, size_t n, size_t piece, enum resp_scan_kind kinds[16])
{
    uint32_t count = 0;
    memset(&scan, 0, sizeof scan);
    for (size_t at = 0; at < n; at += piece) {
        size_t size = at + piece < n ? piece : n - at;
        uint8_t *exact = malloc(size); /* so that a sanitizer sees who reads past it */
        assert_non_null(exact);
        memcpy(exact, text + at, size);
        struct bytes input = bytes_of(exact, (uint32_t)size);
        for (enum resp_scan_kind kind; (kind = resp_scan_next(&scan, &input)) != RESP_SCAN_MORE;) {
            assert_true(count < 16);
            kinds[count++] = kind;
            if (kind == RESP_SCAN_WRONG) {
                free(exact);
                return count;
            }
        }
        assert_int_equal(input.n, 0);
        free(exact);
    }
    return count;
}

static void all_kinds_in_pieces_of_all_sizes(void **state)
{
    (void)state;
    static const char text[] = "+OK\r\n$5\r\nhe\r\no\r\n:42\r\n$-1\r\n"
                               "-ERR no\r\n$0\r\n\r\n:-7\r\n+\r\n";
    static const enum resp_scan_kind expected[] = {
        RESP_SCAN_LINE,  RESP_SCAN_BULK, RESP_SCAN_NUMBER, RESP_SCAN_NIL,
        RESP_SCAN_ERROR, RESP_SCAN_BULK, RESP_SCAN_NUMBER, RESP_SCAN_LINE,
    };
    for (size_t piece = 1; piece < sizeof text; piece++) {
        enum resp_scan_kind kinds[16];
        assert_int_equal(feed(text, sizeof text - 1, piece, kinds), 8);
        assert_memory_equal(kinds, expected, sizeof expected);
    }
}

static void numbers_and_texts_are_told(void **state)
{
    (void)state;
    enum resp_scan_kind kinds[16];
    assert_int_equal(feed(":42\r\n", 5, 5, kinds), 1);
    assert_int_equal(scan.number, 42);
    assert_int_equal(feed(":-42\r\n", 6, 6, kinds), 1);
    assert_int_equal(scan.number, -42);
    assert_int_equal(feed("$3\r\nabc\r\n", 9, 9, kinds), 1);
    assert_int_equal(scan.number, 3);
    assert_int_equal(feed("-ERR go away\r\n", 14, 3, kinds), 1);
    assert_string_equal(scan.line, "-ERR go away");
}

static void a_bulk_string_is_not_kept(void **state)
{
    (void)state;
    enum resp_scan_kind kinds[16];
    char *text = malloc(1000100);
    assert_non_null(text);
    int head = snprintf(text, 100, "$1000000\r\n");
    memset(text + head, '\n', 1000000);
    memcpy(text + head + 1000000, "\r\n+OK\r\n", 7);
    assert_int_equal(feed(text, (size_t)head + 1000007, 4096, kinds), 2);
    assert_int_equal(kinds[0], RESP_SCAN_BULK);
    assert_int_equal(kinds[1], RESP_SCAN_LINE);
    free(text);
}

static void what_is_no_reply_is_wrong(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "*1\r\n",
        "HTTP/1.1 200 OK\r\n",
        "\r\n",
        "+OK\n",
        ":x\r\n",
        ":\r\n",
        "$-2\r\n",
        "$\r\n",
        "$1x\r\n",
        ":1 \r\n",
        "$99999999999999999999\r\n",
        ":-\r\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        enum resp_scan_kind kinds[16];
        assert_int_equal(feed(wrong[i], strlen(wrong[i]), 1, kinds), 1);
        assert_int_equal(kinds[0], RESP_SCAN_WRONG);
    }
    /* A line without an end. */
    char endless[2 * RESP_SCAN_LINE_MAX];
    memset(endless, 'x', sizeof endless);
    for (size_t piece = 1; piece <= sizeof endless; piece += 100) {
        enum resp_scan_kind kinds[16];
        assert_int_equal(feed(endless, sizeof endless, piece, kinds), 1);
        assert_int_equal(kinds[0], RESP_SCAN_WRONG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_in_pieces_of_all_sizes),
        cmocka_unit_test(numbers_and_texts_are_told),
        cmocka_unit_test(a_bulk_string_is_not_kept),
        cmocka_unit_test(what_is_no_reply_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
