/* RANGE, RANGECOUNT and DELRANGE, alone and between MULTI and EXEC, and the walks through all keys,
 * in a space whose keys have an order. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "support/resp_rig.h"

#define OK "+OK\r\n"
#define QUEUED "+QUEUED\r\n"
#define SYNTAX "-ERR syntax error\r\n"

static struct rig rig;

static int set_up(void **state)
{
    static const char *const keys[] = {"b", "a", "ab", "c", "ba", "aa"};

    (void)state;
    rig_init(&rig);
    rig.ordered = true;
    rig_expect(&rig, "SELECT 3", OK);
    for (uint32_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        rig_set(&rig, RIG_ZEUS, keys[i], keys[i]);
    }
    rig.handed_out = rig.answered = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_deinit(&rig);
    return 0;
}

/* A pipeline of inline commands and all its replies. */
static void pipeline(const char *commands, const char *replies)
{
    const char *got = rig_send(&rig, commands);

    if (strcmp(got, replies) != 0)
        fail_msg("%s\ngot:    %s\nwanted: %s\n", commands, got, replies);
    assert_int_equal(rig.last, RESP_INPUT);
}

/* The keys of a reply of keys and values that are alike, with blanks between them. */
static void keys_are(const char *command, const char *keys)
{
    char reply[1024] = "", pairs[1024] = "", word[16];
    uint32_t n = 0;

    for (const char *at = keys; *at != '\0'; n++) {
        uint32_t length = (uint32_t)strcspn(at, " ");

        assert_true(length < sizeof word);
        for (int twice = 0; twice < 2; twice++) {
            size_t used = strlen(pairs);

            (void)snprintf(pairs + used, sizeof pairs - used, "$%u\r\n%.*s\r\n", length,
                           (int)length, at);
        }
        at += length + (at[length] == ' ' ? 1 : 0);
    }
    (void)snprintf(reply, sizeof reply, "*%u\r\n%s", 2 * n, pairs);
    rig_expect(&rig, command, reply);
}

static void test_bounds(void **state)
{
    (void)state;
    keys_are("RANGE - +", "a aa ab b ba c");
    keys_are("RANGE a b", "a aa ab");
    keys_are("RANGE [a (b", "a aa ab");
    keys_are("RANGE (a [b", "aa ab b");
    keys_are("RANGE (aa +", "ab b ba c");
    keys_are("RANGE - [aa", "a aa");
    keys_are("RANGE - aa", "a");
    keys_are("RANGE aaa bb", "ab b ba");
    keys_are("RANGE b a", "");
    keys_are("RANGE a a", "");
    keys_are("RANGE [a [a", "a");
    keys_are("RANGE + -", "");
    keys_are("RANGE - -", "");
    keys_are("RANGE + +", "");
    keys_are("RANGE [ +", "a aa ab b ba c");
    keys_are("RANGE - [", "");
    keys_are("RANGE x +", "");
    assert_int_equal(rig.handed_out, 17);
}

static void test_any_bytes(void **state)
{
    (void)state;
    rig_set(&rig, RIG_ZEUS, "-", "-");
    rig_set(&rig, RIG_ZEUS, "(", "(");
    rig_set(&rig, RIG_ZEUS, "[", "[");
    rig_set(&rig, RIG_ZEUS, "", "");
    keys_are("RANGE [- [-", "-");
    keys_are("RANGE [[ [[", "[");
    keys_are("RANGE [( [(", "(");
    assert_string_equal(rig_send(&rig, "*3\r\n$5\r\nRANGE\r\n$0\r\n\r\n$1\r\n(\r\n"), "*0\r\n");
    assert_string_equal(rig_send(&rig, "*3\r\n$5\r\nRANGE\r\n$0\r\n\r\n$1\r\n[\r\n"),
                        "*2\r\n$0\r\n\r\n$0\r\n\r\n");
    assert_string_equal(rig_send(&rig, "*3\r\n$5\r\nRANGE\r\n$1\r\n-\r\n$0\r\n\r\n"), "*0\r\n");
    keys_are("RANGE (( a", "- [");
    /* A bound ends where it ends, not at a zero byte. */
    static const char zero[] = "*3\r\n$10\r\nRANGECOUNT\r\n$3\r\n[a\0\r\n$2\r\n[b\r\n";
    assert_string_equal(rig_send_bytes(&rig, bytes_of(zero, sizeof zero - 1)), ":3\r\n");
}

static void test_options(void **state)
{
    (void)state;
    keys_are("RANGE - + LIMIT 2", "a aa");
    keys_are("RANGE - + REV", "c ba b ab aa a");
    keys_are("RANGE - + REV LIMIT 2", "c ba");
    keys_are("RANGE a b limit 1 rev", "ab");
    keys_are("RANGE - + LIMIT 65535", "a aa ab b ba c");
    rig_expect(&rig, "RANGE - + LIMIT 0", "-ERR LIMIT is from 1 to 65535\r\n");
    rig_expect(&rig, "RANGE - + LIMIT 65536", "-ERR LIMIT is from 1 to 65535\r\n");
    rig_expect(&rig, "RANGE - + LIMIT x", "-ERR value is not an integer or out of range\r\n");
    rig_expect(&rig, "RANGE - + LIMIT", SYNTAX);
    rig_expect(&rig, "RANGE - + LIMIT 1 LIMIT 2", SYNTAX);
    rig_expect(&rig, "RANGE - + REV REV", SYNTAX);
    rig_expect(&rig, "RANGE - + FOO", SYNTAX);
    rig_expect(&rig, "DELRANGE - + REV", SYNTAX);
    rig_expect(&rig, "RANGE -", "-ERR wrong number of arguments for 'range' command\r\n");
    rig_expect(&rig, "RANGECOUNT - + LIMIT 1",
               "-ERR wrong number of arguments for 'rangecount' command\r\n");
    rig_expect(&rig, "RANGECOUNT (a b", ":2\r\n");
    rig_expect(&rig, "RANGECOUNT x y", ":0\r\n");
    rig_expect(&rig, "DELRANGE a b LIMIT 2", ":2\r\n");
    rig_expect(&rig, "DELRANGE a b", ":1\r\n");
    keys_are("RANGE - +", "b ba c");
}

static void test_resp3(void **state)
{
    (void)state;
    rig_expect_begin(&rig, "HELLO 3", "%");
    rig_expect(&rig, "RANGE b +",
               "*3\r\n*2\r\n$1\r\nb\r\n$1\r\nb\r\n*2\r\n$2\r\nba\r\n$2\r\nba\r\n*2\r\n$1\r\nc\r\n"
               "$1\r\nc\r\n");
    rig_expect(&rig, "RANGE x +", "*0\r\n");
}

/* Between MULTI and EXEC a range sees what the commands before it did. */
static void test_multi(void **state)
{
    (void)state;
    pipeline("MULTI\r\nSET ac 1\r\nDEL aa\r\nRANGE (a [b LIMIT 2\r\nRANGECOUNT - +\r\n"
             "DELRANGE a (b\r\nRANGE - + REV\r\nRANGE x\r\nEXEC\r\n",
             OK QUEUED QUEUED QUEUED QUEUED QUEUED QUEUED
             "-ERR wrong number of arguments for 'range' command\r\n"
             "-EXECABORT Transaction discarded because of previous errors.\r\n");
    pipeline("MULTI\r\nSET ac 1\r\nDEL aa\r\nRANGE (a [b LIMIT 2\r\nRANGECOUNT - +\r\n"
             "DELRANGE a (b\r\nRANGE - + REV LIMIT 1\r\nRANGE - + LIMIT 0\r\nEXEC\r\n",
             OK QUEUED QUEUED QUEUED QUEUED QUEUED QUEUED QUEUED
             "*7\r\n+OK\r\n:1\r\n*4\r\n$2\r\nab\r\n$2\r\nab\r\n$2\r\nac\r\n$1\r\n1\r\n:6\r\n:3\r\n"
             "*2\r\n$1\r\nc\r\n$1\r\nc\r\n-ERR LIMIT is from 1 to 65535\r\n");
    assert_int_equal(rig.handed_out, 1);
    keys_are("RANGE - +", "b ba c");
}

static void test_watch(void **state)
{
    (void)state;
    pipeline("WATCH a\r\n", OK);
    rig_set(&rig, RIG_ZEUS, "a", "other");
    pipeline("MULTI\r\nDELRANGE - +\r\nEXEC\r\nRANGECOUNT - +\r\n", OK QUEUED "*-1\r\n:6\r\n");
}

static void test_other_spaces(void **state)
{
    (void)state;
    rig_expect(&rig, "SELECT 0", OK);
    rig_expect(&rig, "RANGE - +",
               "-ERR 'range' is not supported in space 0 (engine hermes): keys have an order in "
               "spaces of the engine lotus\r\n");
    rig.ordered = false;
    rig_expect(&rig, "SELECT 3", OK);
    rig_expect(&rig, "DELRANGE - +",
               "-ERR 'delrange' is not supported in space 3 (engine zeus): keys have an order in "
               "spaces of the engine lotus\r\n");
    pipeline("MULTI\r\nRANGECOUNT - +\r\nEXEC\r\n",
             OK QUEUED "*1\r\n-ERR 'rangecount' is not supported in space 3 (engine zeus): keys "
                       "have an order in spaces of the engine lotus\r\n");
}

static void test_errors(void **state)
{
    (void)state;
    rig.fail_at = 1;
    rig.fail_with = HK_ERR_TOOBIG;
    rig_expect(&rig, "RANGE - +",
               "-ERR the range is too large for one step, which meets at most 65535 keys and 64 "
               "MiB, counting up to LIMIT at each memory server: give a LIMIT, or a smaller one; "
               "nothing changed\r\n");
    rig.fail_at = 2;
    rig.fail_with = HK_ERR_LOSTSLOT;
    rig_expect_begin(&rig, "RANGE - +", "-LOSTSLOT 0 the node that had the keys of this slot");
    rig.fail_at = 3;
    rig_expect_begin(&rig, "GET a", "-LOSTSLOT ");
    rig.fail_at = 4;
    rig.fail_with = HK_ERR_INVALID; /* the node says it of an empty key */
    rig_expect(
        &rig, "GET a",
        "-ERR keys of this space (engine lotus) have at least one byte; nothing changed\r\n");
}

/* ---- Walks ---- */

static void set_many(uint32_t n)
{
    char key[32];

    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(key, sizeof key, "key:%04u", i * 7 % n);
        rig_set(&rig, RIG_ZEUS, key, "v");
    }
}

static void test_keys(void **state)
{
    (void)state;
    rig_expect(&rig, "KEYS *",
               "*6\r\n$1\r\na\r\n$2\r\naa\r\n$2\r\nab\r\n$1\r\nb\r\n$2\r\nba\r\n$1\r\nc\r\n");
    rig_expect(&rig, "KEYS ?a", "*2\r\n$2\r\naa\r\n$2\r\nba\r\n");
    set_many(2500);
    /* A pattern that begins with itself is looked for among keys that begin so. */
    rig.handed_out = 0;
    rig_expect(&rig, "KEYS key:00?1",
               "*10\r\n$8\r\nkey:0001\r\n$8\r\nkey:0011\r\n"
               "$8\r\nkey:0021\r\n$8\r\nkey:0031\r\n$8\r\nkey:0041\r\n"
               "$8\r\nkey:0051\r\n$8\r\nkey:0061\r\n$8\r\nkey:0071\r\n"
               "$8\r\nkey:0081\r\n$8\r\nkey:0091\r\n");
    rig_expect(&rig, "SCAN 0 MATCH key:0010 COUNT 1000",
               "*2\r\n$1\r\n0\r\n*1\r\n$8\r\nkey:0010\r\n");
    rig_expect(&rig, "KEYS key:249\\9", "*1\r\n$8\r\nkey:2499\r\n");
    assert_int_equal(rig.handed_out, 3);
    rig_set(&rig, RIG_ZEUS, "\xff\xff", "v");
    rig_expect(&rig, "KEYS \xff*", "*1\r\n$2\r\n\xff\xff\r\n");
    rig_set(&rig, RIG_ZEUS, "\xff\xff", NULL);
    const char *reply = rig_call(&rig, "KEYS *");
    assert_int_equal(strncmp(reply, "*2506\r\n", 7), 0);
    /* In order: each key of the same length is behind the one before it. */
    const char *before = strstr(reply, "key:");
    for (uint32_t n = 1; n < 2500; n++) {
        const char *next = strstr(before + 4, "key:");
        assert_non_null(next);
        assert_true(memcmp(before, next, 8) < 0);
        before = next;
    }
}

/* Answers the cursor; counts keys that begin with "key:" and were not seen yet. */
static uint64_t scan(uint64_t cursor, const char *options, uint8_t *seen, uint32_t *found)
{
    char command[128];

    (void)snprintf(command, sizeof command, "SCAN %llu%s", (unsigned long long)cursor, options);
    const char *reply = rig_call(&rig, command);
    assert_int_equal(strncmp(reply, "*2\r\n$", 5), 0);
    const char *number = strchr(reply + 5, '\n') + 1;
    for (const char *at = strstr(number, "key:"); at != NULL; at = strstr(at + 4, "key:")) {
        uint32_t i = (uint32_t)strtoul(at + 4, NULL, 10);
        *found += seen[i]++ == 0 ? 1 : 0;
    }
    return strtoull(number, NULL, 10);
}

static void test_scan(void **state)
{
    static uint8_t seen[2500];
    uint64_t cursor = 0;
    uint32_t found = 0, calls = 0;

    (void)state;
    set_many(2500);
    memset(seen, 0, sizeof seen);
    do {
        cursor = scan(cursor, "", seen, &found);
        /* What comes and goes beside does not matter. */
        rig_set(&rig, RIG_ZEUS, calls % 2 == 0 ? "key" : "key:2", calls % 3 == 0 ? NULL : "v");
        calls++;
    } while (cursor != 0 && calls < 1000);
    assert_int_equal(found, 2500);
    assert_in_range(calls, 250, 260);
    /* A cursor is good more than once. */
    cursor = scan(0, " COUNT 100", seen, &found);
    uint64_t again = scan(cursor, " COUNT 100", seen, &found);
    assert_int_not_equal(scan(cursor, " COUNT 100", seen, &found), 0);
    assert_int_not_equal(again, 0);
    found = 0;
    memset(seen, 0, sizeof seen);
    calls = 0;
    do {
        cursor = scan(cursor, " MATCH key:?1* COUNT 1000", seen, &found);
        calls++;
    } while (cursor != 0 && calls < 10);
    assert_int_equal(found, 300); /* key:01.. to key:21.. */
    rig_expect_begin(&rig, "SCAN 99", "-ERR this cursor is not known here (any more)");
    rig_expect(&rig, "SCAN x", "-ERR invalid cursor\r\n");
    rig_expect(&rig, "SCAN 0 TYPE hash COUNT 100000", "*2\r\n$1\r\n0\r\n*0\r\n");
}

static void test_randomkey(void **state)
{
    bool seen[256] = {false};

    (void)state;
    for (uint32_t i = 0; i < 400; i++) {
        const char *reply = rig_call(&rig, "RANDOMKEY");
        const char *key = strchr(reply, '\n') + 1;
        assert_int_equal(reply[0], '$');
        seen[(uint8_t)key[0]] = true;
    }
    assert_true(seen['a'] && seen['b'] && seen['c']);
    rig_expect(&rig, "FLUSHDB", OK);
    rig_expect(&rig, "RANDOMKEY", "$-1\r\n");
    rig_set(&rig, RIG_ZEUS, "one", "1");
    for (uint32_t i = 0; i < 20; i++) {
        rig_expect(&rig, "RANDOMKEY", "$3\r\none\r\n");
    }
}

static void test_flush(void **state)
{
    (void)state;
    set_many(2500);
    rig_set(&rig, 0, "other", "1");
    rig.handed_out = 0;
    rig_expect(&rig, "FLUSHDB", OK);
    assert_int_equal(rig.handed_out, 3); /* of 1,024 keys each */
    rig_expect(&rig, "KEYS *", "*0\r\n");
    rig_expect(&rig, "DBSIZE", ":0\r\n");
    set_many(20);
    rig_expect(&rig, "FLUSHALL", OK);
    rig_expect(&rig, "DBSIZE", ":0\r\n");
    rig_expect(&rig, "SELECT 0", OK);
    rig_expect(&rig, "DBSIZE", ":0\r\n");
}

/* Keys so long that a piece is too large are asked for in smaller ones. */
static void test_long_keys(void **state)
{
    (void)state;
    set_many(100);
    rig.fail_at = 1;
    rig.fail_with = HK_ERR_TOOBIG;
    rig_expect_begin(&rig, "KEYS *", "*106\r\n");
    rig.fail_at = rig.answered + 1;
    rig_expect(&rig, "FLUSHDB", OK);
    rig_expect(&rig, "KEYS *", "*0\r\n");
    rig.fail_at = rig.answered + 1;
    rig.fail_with = HK_ERR_UNKNOWN;
    rig_expect_begin(&rig, "FLUSHDB", "-UNKNOWN");
    rig.fail_at = rig.answered + 1;
    rig.fail_with = HK_ERR_BUSY;
    rig_expect_begin(&rig, "SCAN 0", "-TRYAGAIN");
    rig.fail_at = rig.answered + 1;
    rig_expect_begin(&rig, "RANDOMKEY", "-TRYAGAIN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bounds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_any_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_options, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_resp3, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_multi, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_watch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_spaces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_randomkey, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_flush, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_keys, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
