#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "resp/glob.h"
#include "resp/parse.h"

static const struct resp_limits limits = {
    .bulk_bytes_max = 1 << 20,
    .arguments_max = 100000,
    .query_bytes_max = 2 << 20,
    .output_bytes_max = 1 << 20,
};

/* Parses a stream that arrives in pieces of `piece` bytes and writes what comes out as text:
 * "[arg][arg] ..." a command, "!error" at the end, "..." if more is missing. Each piece is in
 * memory of its own size, so that a sanitizer sees reads beyond what has arrived. */
static char *parse_all(const struct resp_limits *with, const char *stream, uint32_t n,
                       uint32_t piece)
{
    struct resp_parser parser;
    char *text = calloc(1, 4 * (size_t)n + 400);
    uint8_t *input = NULL;
    uint32_t arrived = 0, have = 0, used = 0;
    size_t at = 0;

    assert_non_null(text);
    resp_parser_init(&parser);
    for (;;) {
        enum resp_parsed parsed = resp_parse(&parser, with, input, have, &used);

        if (parsed == RESP_MALFORMED) {
            at += (size_t)sprintf(text + at, "!%s", parser.error);
            break;
        }
        if (parsed == RESP_PARTIAL) {
            assert_true(parser.need > have);
            if (arrived == n) {
                at += (size_t)sprintf(text + at, "...");
                break;
            }

            uint32_t more = n - arrived < piece ? n - arrived : piece;
            uint8_t *grown = malloc(have + more);

            assert_non_null(grown);
            if (have > 0)
                memcpy(grown, input, have);
            memcpy(grown + have, stream + arrived, more);
            free(input);
            input = grown;
            have += more;
            arrived += more;
            continue;
        }
        assert_true(used > 0 && used <= have);
        for (uint32_t i = 0; i < parser.n; i++) {
            struct bytes argument = resp_argument(&parser, bytes_of(input, used), i);

            assert_true(argument.at >= input && argument.at + argument.n <= input + used);
            at += (size_t)sprintf(text + at, "[");
            memcpy(text + at, argument.at, argument.n);
            at += argument.n;
            at += (size_t)sprintf(text + at, "]");
        }
        at += (size_t)sprintf(text + at, " ");
        have -= used;
        memmove(input, input + used, have);
        resp_parser_reset(&parser);
    }
    resp_parser_deinit(&parser);
    free(input);
    return text;
}

/* The same for every cut of the stream. */
static void expect_with(const struct resp_limits *with, const char *stream, const char *wanted)
{
    uint32_t n = (uint32_t)strlen(stream);

    for (uint32_t piece = n > 2000 ? n : 1; piece <= n; piece++) {
        char *text = parse_all(with, stream, n, piece);

        assert_string_equal(text, wanted);
        free(text);
    }
}

static void expect(const char *stream, const char *wanted)
{
    expect_with(&limits, stream, wanted);
}

static void test_multibulk(void **state)
{
    (void)state;
    expect("*1\r\n$4\r\nPING\r\n", "[PING] ...");
    expect("*2\r\n$3\r\nGET\r\n$0\r\n\r\n*1\r\n$1\r\nx\r\n", "[GET][] [x] ...");
    expect("*3\r\n$3\r\nSET\r\n$12\r\n0123456789ab\r\n$4\r\n\r\n$*\r\n",
           "[SET][0123456789ab][\r\n$*] ...");
    expect("*0\r\n*-1\r\n*-9\r\n*1\r\n$1\r\na\r\n", "   [a] ...");
    expect("*2\r\n$1\r\na\r\n$5\r\nab", "...");
    /* Redis does not look at the two bytes behind an argument, nor at the one behind '\r'. */
    expect("*1\rx$1\rxaxx*1\r\n$1\r\nb\r\n", "[a] [b] ...");
}

static void test_malformed(void **state)
{
    (void)state;
    expect("*x\r\n", "!Protocol error: invalid multibulk length");
    expect("*\r\n", "!Protocol error: invalid multibulk length");
    expect("*01\r\n", "!Protocol error: invalid multibulk length");
    expect("*1000000\r\n", "!Protocol error: invalid multibulk length");
    expect("*99999999999999999999999\r\n", "!Protocol error: invalid multibulk length");
    expect("*2147483648\r\n", "!Protocol error: invalid multibulk length");
    expect("*1\r\n$\r\n", "!Protocol error: invalid bulk length");
    expect("*1\r\n$-1\r\n", "!Protocol error: invalid bulk length");
    expect("*1\r\n$x\r\n", "!Protocol error: invalid bulk length");
    expect("*1\r\n$1048577\r\n", "!Protocol error: invalid bulk length");
    expect("*1\r\n$4294967296\r\n", "!Protocol error: invalid bulk length");
    expect("*1\r\nx4\r\n", "!Protocol error: expected '$', got 'x'");
    expect("*1\r\n*1\r\n", "!Protocol error: expected '$', got '*'");
    expect("*1\r\n:99999999999999999999\r\n", "!Protocol error: expected '$', got ':'");
    expect("*2\r\n$1\r\na\r\n\r\n", "!Protocol error: expected '$', got '\r'");
    expect("*3\r\n$1048576\r\n", "...");
}

/* Whole commands are limited, not only their parts. */
static void test_query_limit(void **state)
{
    struct resp_limits small = limits;

    (void)state;
    small.query_bytes_max = 30;
    expect_with(&small, "*2\r\n$4\r\n0123\r\n$8\r\n01234567\r\n", "[0123][01234567] ...");
    expect_with(&small, "*2\r\n$4\r\n0123\r\n$12\r\n01", "!Protocol error: too big query");
    expect_with(&small, "*2\r\n$1048576\r\n", "!Protocol error: too big query");
}

static void test_stranger(void **state)
{
    (void)state;
    expect_with(&resp_limits_stranger, "*10\r\n$1\r\n", "...");
    expect_with(&resp_limits_stranger, "*11\r\n",
                "!Protocol error: unauthenticated multibulk length");
    expect_with(&resp_limits_stranger, "*2147483648\r\n",
                "!Protocol error: invalid multibulk length");
    expect_with(&resp_limits_stranger, "*1\r\n$16384\r\n", "...");
    expect_with(&resp_limits_stranger, "*1\r\n$16385\r\n",
                "!Protocol error: unauthenticated bulk length");
    expect_with(&resp_limits_stranger, "*1\r\n$4294967296\r\n",
                "!Protocol error: invalid bulk length");
}

static void test_inline(void **state)
{
    (void)state;
    expect("PING\r\n", "[PING] ...");
    expect("PING\nGET  a \t b\r\n\r\n\n  \r\nx\r\n", "[PING] [GET][a][b]    [x] ...");
    expect("set \"a b\" 'c d'\r\n", "[set][a b][c d] ...");
    expect("set foo\"bar baz\" x'y'\r\n", "[set][foobar baz][xy] ...");
    expect("\"\\x41\\x4a\\xzz\\n\\r\\t\\b\\a\\q\\\"\\\\\"\r\n", "[AJxzz\n\r\t\b\aq\"\\] ...");
    expect("'it\\'s \\n \"'\r\n", "[it's \\n \"] ...");
    expect("\"\" ''\r\n", "[][] ...");
    expect("set a $5\r\n", "[set][a][$5] ...");
    expect("\"a\"b\r\n", "!Protocol error: unbalanced quotes in request");
    expect("\"a\r\n", "!Protocol error: unbalanced quotes in request");
    expect("'a\\'\r\n", "!Protocol error: unbalanced quotes in request");
    expect("\"a\\\"\r\n", "!Protocol error: unbalanced quotes in request");
}

/* A zero byte is a byte like others; Redis would wait for the line's end until 64 KiB are there. */
static void test_inline_zero(void **state)
{
    static const char stream[] = "a b\0c\r\nd\n";
    static const char wanted[] = "[a][b\0c] [d] ...";
    char *text = parse_all(&limits, stream, sizeof stream - 1, 3);

    (void)state;
    assert_memory_equal(text, wanted, sizeof wanted);
    free(text);
}

static char *repeat(char c, uint32_t n)
{
    char *text = malloc(n + 3);

    assert_non_null(text);
    memset(text, c, n);
    memcpy(text + n, "\r\n", 3);
    return text;
}

/* Lines without an end: an error once 64 KiB are there, whether the end is behind them or not. */
static void test_long_lines(void **state)
{
    static const struct {
        char c;
        const char *head, *wanted;
    } rows[] = {
        {'a', "", "!Protocol error: too big inline request"},
        {'1', "*", "!Protocol error: too big mbulk count string"},
        {'1', "*1\r\n$", "!Protocol error: too big bulk count string"},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *tail = repeat(rows[i].c, RESP_INLINE_MAX + 1);
        char *stream = malloc(RESP_INLINE_MAX + 100);

        assert_non_null(stream);
        for (uint32_t whole = 0; whole < 2; whole++) {
            uint32_t n = (uint32_t)sprintf(stream, "%s%s", rows[i].head, tail) - (whole ? 0 : 2);

            for (uint32_t piece = 997; piece < 2 * n; piece += 60000) {
                char *text = parse_all(&limits, stream, n, piece);

                assert_string_equal(text, rows[i].wanted);
                free(text);
            }
        }
        free(stream);
        free(tail);
    }

    char *longest = repeat('a', RESP_INLINE_MAX - 1);
    char *text = parse_all(&limits, longest, RESP_INLINE_MAX + 1, RESP_INLINE_MAX + 1);

    assert_int_equal(strlen(text), RESP_INLINE_MAX - 1 + 6);
    free(text);
    free(longest);
}

/* Memory for arguments grows with those that came, and is given back. */
static void test_many_arguments(void **state)
{
    struct resp_parser parser;
    uint32_t count = 100000, n = 0, used = 0;
    char *stream = malloc(count * 8 + 100);

    (void)state;
    assert_non_null(stream);
    n = (uint32_t)sprintf(stream, "*%u\r\n", count);
    resp_parser_init(&parser);
    assert_int_equal(resp_parse(&parser, &limits, (uint8_t *)stream, n, &used), RESP_PARTIAL);
    assert_int_equal(parser.capacity, 0);
    for (uint32_t i = 0; i < count; i++)
        n += (uint32_t)sprintf(stream + n, "$1\r\nx\r\n");
    assert_int_equal(resp_parse(&parser, &limits, (uint8_t *)stream, n, &used), RESP_PARSED);
    assert_int_equal(used, n);
    assert_int_equal(parser.n, count);
    assert_true(parser.capacity <= 2 * count);
    resp_parser_reset(&parser);
    assert_int_equal(parser.capacity, 0);
    resp_parser_deinit(&parser);
    free(stream);
}

static bool matches(const char *pattern, const char *text, bool any_case)
{
    return resp_glob_match(bytes_of(pattern, (uint32_t)strlen(pattern)),
                           bytes_of(text, (uint32_t)strlen(text)), any_case);
}

static void test_glob(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool wanted;
    } rows[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"**", "abc", true},
        {"a*", "abc", true},
        {"*c", "abc", true},
        {"*b", "abc", false},
        {"a*c", "ac", true},
        {"a*b*c", "aXbXbYc", true},
        {"a*b*c", "aXcXb", false},
        {"?", "a", true},
        {"?", "", false},
        {"h?llo", "hello", true},
        {"h[ae]llo", "hallo", true},
        {"h[ae]llo", "hillo", false},
        {"h[^e]llo", "hello", false},
        {"h[^e]llo", "hallo", true},
        {"[a-c]", "b", true},
        {"[c-a]", "b", true},
        {"[a-c]", "d", false},
        {"[a-]", "-", false},
        {"[\\]]", "]", true},
        {"[a", "a", true},
        {"[]", "]", false},
        {"[^]", "x", true},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"a\\", "a\\", true},
        {"[a-]", "^", true},
        {"[a-", "-", true},
        {"*?*?*", "ab", true},
        {"*?*?*", "a", false},
        {"A", "a", false},
        {"*\\?", "ab?", true},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (matches(rows[i].pattern, rows[i].text, false) != rows[i].wanted)
            fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].text);
    }
    assert_true(matches("MAX[M-O]*", "maxMemory", true));
    assert_true(matches("max\\Memory", "MAXmemory", true));
    assert_false(matches("max", "maximum", true));
}

/* What makes matchers with recursion take for ever is done in pattern times text steps. */
static void test_glob_bounded(void **state)
{
    char pattern[RESP_GLOB_MAX + 1];
    char *text = repeat('a', 65536);

    (void)state;
    for (uint32_t i = 0; i < RESP_GLOB_MAX; i++)
        pattern[i] = i % 2 == 0 ? '*' : 'a';
    pattern[RESP_GLOB_MAX - 1] = 'b';
    assert_false(resp_glob_match(bytes_of(pattern, RESP_GLOB_MAX), bytes_of(text, 65536), false));
    pattern[RESP_GLOB_MAX - 1] = 'a';
    assert_true(resp_glob_match(bytes_of(pattern, RESP_GLOB_MAX), bytes_of(text, 65536), false));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_multibulk),   cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_query_limit), cmocka_unit_test(test_stranger),
        cmocka_unit_test(test_inline),      cmocka_unit_test(test_inline_zero),
        cmocka_unit_test(test_long_lines),  cmocka_unit_test(test_many_arguments),
        cmocka_unit_test(test_glob),        cmocka_unit_test(test_glob_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
