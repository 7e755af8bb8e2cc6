/* The balancer's pure parts: where replies end, which keys go together, what moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tools/balance.h"

/* Feeds the bytes in two pieces, for each place to cut; returns how many whole replies there are,
 * UINT32_MAX if it breaks. */
static uint32_t count(const char *text, size_t cut)
{
    struct balance_reply r = {.left = 0};
    size_t n = strlen(text);
    uint32_t whole = 0;
    for (size_t at = 0; at < n;) {
        uint32_t used;
        size_t end = at < cut ? cut : n;
        struct bytes in = bytes_of(text + at, (uint32_t)(end - at));
        enum balance_fed fed = balance_reply_feed(&r, in, &used);
        if (fed == BALANCE_BROKEN) {
            return UINT32_MAX;
        }
        assert_true(used > 0 && used <= in.n && (fed == BALANCE_WHOLE || used == in.n));
        whole += fed == BALANCE_WHOLE;
        at += used;
    }
    return whole;
}

static void replies(const char *text, uint32_t wanted)
{
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        assert_int_equal(count(text, cut), wanted);
    }
}

static void test_replies(void **state)
{
    (void)state;
    replies("+OK\r\n", 1);
    replies("+OK", 0);
    replies("-ERR a longer text than a header's number would be, to the end\r\n:12\r\n", 2);
    replies("$5\r\nhello\r\n$-1\r\n$0\r\n\r\n", 3);
    replies("$13\r\n+OK\r\n*3\r\n:1\r\n\r\n", 1);
    replies("*0\r\n*-1\r\n*2\r\n:1\r\n$1\r\nx\r\n", 3);
    replies("*2\r\n*2\r\n+a\r\n+b\r\n*1\r\n*1\r\n$-1\r\n", 1);
    replies("%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n#t\r\n_\r\n", 2);
    replies("|1\r\n+ttl\r\n:3\r\n$1\r\nv\r\n", 1);
    replies("~1\r\n,1.5\r\n(123456789012345678901234567890\r\n=7\r\ntxt:abc\r\n", 3);
    replies(">2\r\n+message\r\n$1\r\nx\r\n:7\r\n", 1);
    replies(">1\r\n+alone\r\n", 0);
    replies("$3\r\nab", 0);
    replies("x\r\n", UINT32_MAX);
    replies("$-2\r\n", UINT32_MAX);
    replies("$99999999999\r\n", UINT32_MAX);
    replies("*99999999999999\r\n", UINT32_MAX);
    replies("%9223372036854775807\r\n", UINT32_MAX);
    replies("$000000000000000000000000000000005\r\nhello\r\n", UINT32_MAX);
    replies("$five\r\nhello\r\n", UINT32_MAX);
    replies("$5 \r\nhello\r\n", UINT32_MAX);
    replies("*\r\n", UINT32_MAX);
    replies("|-1\r\n:1\r\n", UINT32_MAX);
    replies("*1-\r\n+a\r\n", UINT32_MAX);
    replies("*?\r\n+a\r\n", UINT32_MAX); /* of a length that only the end tells */
}

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static void test_tags(void **state)
{
    static const char *const cases[][2] = {
        {"key", "key"}, {"a{b}c", "b"}, {"{b}", "b"},    {"a{}c", "a{}c"}, {"a{b", "a{b"},
        {"", ""},       {"a}{b}", "b"}, {"{{b}}", "{b"}, {"a{b}{c}", "b"}, {"only{", "only{"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(bytes_equal(balance_tag(text(cases[i][0])), text(cases[i][1])));
    }
    assert_int_equal(balance_group(text("user:{7}:a")), balance_group(text("user:{7}:b")));
    assert_true(balance_group(text("x")) < BALANCE_GROUPS);
}

static void test_plan(void **state)
{
    (void)state;
    uint8_t groups[BALANCE_GROUPS];
    uint64_t load[BALANCE_GROUPS] = {0};
    struct random random;
    random_init(&random, 1);
    memset(groups, BALANCE_NOBODY, sizeof groups);
    assert_int_equal(balance_plan(groups, load, 3, 0, 16, &random), BALANCE_GROUPS);
    uint32_t sums[3] = {0};
    for (uint32_t g = 0; g < BALANCE_GROUPS; g++) {
        assert_true(groups[g] < 3);
        sums[groups[g]]++;
    }
    assert_true(sums[0] > 250 && sums[1] > 250 && sums[2] > 250);
    assert_int_equal(balance_plan(groups, load, 3, 0, 16, &random), 0); /* nothing to do */

    /* All load at one node: it goes away until they are about even; one group stays a group. */
    memset(groups, 0, sizeof groups);
    for (uint32_t g = 0; g < 12; g++) {
        load[g] = 100;
    }
    assert_int_equal(balance_plan(groups, load, 3, 0, 16, &random), 7);
    uint64_t loads[3] = {0};
    for (uint32_t g = 0; g < BALANCE_GROUPS; g++) {
        loads[groups[g]] += load[g];
    }
    assert_true(loads[0] == 500 && loads[1] >= 300 && loads[2] >= 300);
    memset(load, 0, sizeof load);
    load[5] = 100000;
    assert_int_equal(balance_plan(groups, load, 3, 0, 16, &random), 0);

    /* A node that is down has nothing left, whoever is up gets it; nobody up: nothing changes. */
    memset(load, 0, sizeof load);
    assert_true(balance_plan(groups, load, 3, 1, 16, &random) > 0);
    for (uint32_t g = 0; g < BALANCE_GROUPS; g++) {
        assert_true(groups[g] == 1 || groups[g] == 2);
    }
    assert_int_equal(balance_plan(groups, load, 3, 7, 16, &random), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
