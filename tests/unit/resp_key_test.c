/* Commands on keys, row by row on one connection, and those that walk through all keys. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "resp/glob.h"
#include "support/resp_rig.h"

#define SYNTAX "-ERR syntax error\r\n"
#define NO_INTEGER "-ERR value is not an integer or out of range\r\n"
#define INVALID(name) "-ERR invalid expire time in '" name "' command\r\n"
#define SEVERAL_IN(name, engine)                                                                   \
    "-ERR '" name "' over several keys would not be atomic in space 0 (engine " engine "); "       \
    "that is for spaces of the engines zeus and lotus; nothing changed\r\n"
#define SEVERAL(name) SEVERAL_IN(name, "hermes")
#define OK "+OK\r\n"
#define NIL "$-1\r\n"

static void test_keys_one_by_one(void **state)
{
    static const struct rig_row rows[] = {
        {"MSET a 1 b 2 c 3", OK}, {"EXISTS a b x a", ":3\r\n"},
        {"TOUCH a x", ":1\r\n"},  {"TYPE a", "+string\r\n"},
        {"TYPE x", "+none\r\n"},  {"DEL a a x", ":1\r\n"},
        {"UNLINK b c", ":2\r\n"}, {"DEL", "-ERR wrong number of arguments for 'del' command\r\n"},
        {"DBSIZE", ":0\r\n"},
    };
    RIG_ROWS(rows);
}

static void test_deadlines(void **state)
{
    static const struct rig_row rows[] = {
        {"TTL a", ":-2\r\n"},
        {"PTTL a", ":-2\r\n"},
        {"EXPIRETIME a", ":-2\r\n"},
        {"EXPIRE a 10", ":0\r\n"},
        {"PERSIST a", ":0\r\n"},
        {"SET a 1", OK},
        {"TTL a", ":-1\r\n"},
        {"EXPIRETIME a", ":-1\r\n"},
        {"PERSIST a", ":0\r\n"},
        {"EXPIRE a 10 XX", ":0\r\n"},
        {"EXPIRE a 10 GT", ":0\r\n"},
        {"EXPIRE a 10 nx", ":1\r\n"},
        {"EXPIRE a 20 NX", ":0\r\n"},
        {"EXPIRE a 20 LT", ":0\r\n"},
        {"EXPIRE a 20 GT XX", ":1\r\n"},
        {"TTL a", ":20\r\n"},
        {"PEXPIRE a 1499", ":1\r\n"},
        {"TTL a", ":1\r\n"},
        {"PTTL a", ":1499\r\n"},
        {"PEXPIRE a 1500", ":1\r\n"},
        {"TTL a", ":2\r\n"},
        {"EXPIRETIME a", ":1700000002\r\n"},
        {"PEXPIRETIME a", ":1700000001500\r\n"},
        {"EXPIREAT a 1700000009", ":1\r\n"},
        {"TTL a", ":9\r\n"},
        {"PEXPIREAT a 1700000000009", ":1\r\n"},
        {"PTTL a", ":9\r\n"},
        {"PERSIST a", ":1\r\n"},
        {"EXPIRE a x", NO_INTEGER},
        {"EXPIRE a 9223372036854775807", INVALID("expire")},
        {"EXPIRE a -9223372036854775808", INVALID("expire")},
        {"PEXPIRE a 9223372036854775807", INVALID("pexpire")},
        {"EXPIREAT a 9223372036854775807", INVALID("expireat")},
        {"EXPIRE a 1 FOO", "-ERR Unsupported option FOO\r\n"},
        {"EXPIRE a 1 NX GT",
         "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n"},
        {"EXPIRE a 1 NX XX",
         "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n"},
        {"EXPIRE a 1 GT LT", "-ERR GT and LT options at the same time are not compatible\r\n"},
        {"EXPIRE a -1", ":1\r\n"},
        {"EXISTS a", ":0\r\n"},
    };
    RIG_ROWS(rows);
}

static void test_two_keys(void **state)
{
    static const struct rig_row rows[] = {
        {"RENAME a a", "-ERR no such key\r\n"},
        {"RENAMENX a a", "-ERR no such key\r\n"},
        {"SET a 1", OK},
        {"RENAME a a", OK},
        {"RENAMENX a a", ":0\r\n"},
        {"RENAME a b", SEVERAL("rename")},
        {"RENAMENX a b", SEVERAL("renamenx")},
        {"COPY a b", SEVERAL("copy")},
        {"COPY a a DB 1 REPLACE", SEVERAL("copy")},
        {"COPY a a", "-ERR source and destination objects are the same\r\n"},
        {"COPY a a DB 0", "-ERR source and destination objects are the same\r\n"},
        {"COPY a b DB 77", "-ERR DB index is out of range\r\n"},
        {"COPY a b DB -1", "-ERR DB index is out of range\r\n"},
        {"COPY a b DB x", NO_INTEGER},
        {"COPY a b DB", SYNTAX},
        {"COPY a b FOO", SYNTAX},
        {"GET a", "$1\r\n1\r\n"},
        {"EXISTS b", ":0\r\n"},
    };
    RIG_ROWS(rows);
}

static void test_object(void **state)
{
    static const struct rig_row rows[] = {
        {"OBJECT ENCODING a", NIL},
        {"OBJECT FREQ a", NIL},
        {"OBJECT IDLETIME a", NIL},
        {"OBJECT REFCOUNT a", NIL},
        {"MEMORY USAGE a", NIL},
        {"SET a 12", OK},
        {"OBJECT encoding a", "$3\r\nint\r\n"},
        {"SET a 0012", OK},
        {"OBJECT ENCODING a", "$6\r\nembstr\r\n"},
        {"SET a 01234567890123456789012345678901234567890123", OK},
        {"OBJECT ENCODING a", "$6\r\nembstr\r\n"},
        {"SET a 012345678901234567890123456789012345678901234", OK},
        {"OBJECT ENCODING a", "$3\r\nraw\r\n"},
        {"OBJECT FREQ a",
         "-ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note "
         "that "
         "when switching between policies at runtime LRU and LFU data will take some time to "
         "adjust.\r\n"},
        {"OBJECT IDLETIME a", "-ERR idle times are not tracked: no key is ever evicted\r\n"},
        {"OBJECT REFCOUNT a", ":1\r\n"},
        {"OBJECT NOSUCH a", "-ERR unknown subcommand 'NOSUCH'. Try OBJECT HELP.\r\n"},
        {"OBJECT ENCODING", "-ERR wrong number of arguments for 'object|encoding' command\r\n"},
        {"OBJECT", "-ERR wrong number of arguments for 'object' command\r\n"},
        {"MEMORY USAGE a", ":110\r\n"},
        {"MEMORY USAGE a SAMPLES 5", ":110\r\n"},
        {"MEMORY USAGE a SAMPLES", SYNTAX},
        {"MEMORY USAGE a SAMPLES x", NO_INTEGER},
        {"MEMORY USAGE a SAMPLES -1", SYNTAX},
        {"WAIT 1 100", ":2\r\n"},
        {"SELECT 1", OK},
        {"WAIT 1 100", ":0\r\n"},
        {"SELECT 0", OK},
        {"WAIT x 100", NO_INTEGER},
        {"WAIT 1 x", "-ERR timeout is not an integer or out of range\r\n"},
        {"WAIT 1 -1", "-ERR timeout is negative\r\n"},
        {"DEBUG SLEEP 0", OK},
        {"DEBUG SLEEP 1.", OK},
        {"DEBUG SLEEP x", "-ERR value is not a valid float\r\n"},
        {"DEBUG SLEEP .", "-ERR value is not a valid float\r\n"},
        {"DEBUG SLEEP 99999999999999999999", "-ERR value is not a valid float\r\n"},
    };
    RIG_ROWS(rows);
}

/* ---- Walks ---- */

static void test_keys(void **state)
{
    static const struct rig_row rows[] = {
        {"KEYS *", "*0\r\n"},
        {"MSET one 1 two 2 three 3 [x] 4", OK},
        {"SET gone 1 PX 1", OK},
        {"SELECT 1", OK},
        {"SET other 1", OK},
        {"SELECT 0", OK},
        {"KEYS t*", "*2\r\n$3\r\ntwo\r\n$5\r\nthree\r\n"},
        {"KEYS [ot][nw][eo]", "*2\r\n$3\r\none\r\n$3\r\ntwo\r\n"},
        {"KEYS \\[*", "*1\r\n$3\r\n[x]\r\n"},
        {"KEYS", "-ERR wrong number of arguments for 'keys' command\r\n"},
        {"SCAN 0 COUNT 100 MATCH t*", "*2\r\n$1\r\n0\r\n*2\r\n$3\r\ntwo\r\n$5\r\nthree\r\n"},
        {"SCAN 0 COUNT 2", "*2\r\n$1\r\n2\r\n*2\r\n$3\r\none\r\n$3\r\ntwo\r\n"},
        {"SCAN 2 COUNT 1", "*2\r\n$1\r\n3\r\n*1\r\n$5\r\nthree\r\n"},
        {"SCAN 18446744073709551615", "*2\r\n$1\r\n0\r\n*0\r\n"},
        {"SCAN 18446744073709551616", "-ERR invalid cursor\r\n"},
        {"SCAN x", "-ERR invalid cursor\r\n"},
        {"SCAN 0 COUNT 0", SYNTAX},
        {"SCAN 0 COUNT x", NO_INTEGER},
        {"SCAN 0 COUNT", SYNTAX},
        {"SCAN 0 FOO 1", SYNTAX},
        {"SCAN 0 TYPE list COUNT 100", "*2\r\n$1\r\n0\r\n*0\r\n"},
        {"SCAN 0 type String count 1 match *", "*2\r\n$1\r\n1\r\n*1\r\n$3\r\none\r\n"},
        {"DEL one", ":1\r\n"},
        {"SELECT 1", OK},
        {"KEYS *", "*1\r\n$5\r\nother\r\n"},
        {"RANDOMKEY", "$5\r\nother\r\n"},
        {"DEL other", ":1\r\n"},
        {"RANDOMKEY", NIL},
    };
    struct rig rig;
    char pattern[RESP_GLOB_MAX + 20];

    (void)state;
    rig_init(&rig);
    rig_call_rows(&rig, rows, 3);
    rig.wall_us += 5000;
    rig_call_rows(&rig, rows + 3, (uint32_t)(sizeof rows / sizeof rows[0]) - 3);
    memset(pattern, 'a', sizeof pattern);
    memcpy(pattern, "KEYS ", 5);
    pattern[5 + RESP_GLOB_MAX] = '\0';
    assert_string_equal(rig_call(&rig, pattern), "*0\r\n");
    pattern[5 + RESP_GLOB_MAX] = 'a';
    pattern[5 + RESP_GLOB_MAX + 1] = '\0';
    assert_string_equal(rig_call(&rig, pattern), "-ERR the pattern is longer than 1024 bytes\r\n");
    rig_deinit(&rig);
}

static void add_keys(struct rig *rig, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char text[64];

        sprintf(text, "SET key:%u %u", i, i);
        assert_string_equal(rig_call(rig, text), OK);
    }
}

/* A scan from the start to the end meets every key; a random one comes from everywhere. */
static void test_scan_all(void **state)
{
    struct rig rig;
    bool seen[200] = {false};
    uint32_t met = 0;
    unsigned long long cursor = 0;

    (void)state;
    rig_init(&rig);
    add_keys(&rig, 200);
    do {
        char text[64];

        sprintf(text, "SCAN %llu", cursor);

        const char *reply = rig_call(&rig, text);

        reply = strstr(reply + 4, "\r\n") + 2;
        cursor = strtoull(reply, NULL, 10);
        for (; (reply = strstr(reply, "key:")) != NULL; reply++) {
            uint32_t key = (uint32_t)strtoul(reply + 4, NULL, 10);

            assert_true(key < 200);
            met += seen[key] ? 0 : 1;
            seen[key] = true;
        }
    } while (cursor != 0);
    assert_int_equal(met, 200);
    rig_deinit(&rig);
}

/* Long work is done in slices, with others in between, and nothing of it leaves before its end. */
static void test_slices(void **state)
{
    struct rig rig;
    uint32_t slices = 0;

    (void)state;
    rig_init(&rig);
    add_keys(&rig, 1000);
    rig.output_n = 0;
    rig_feed(&rig, bytes_of("KEYS *\r\nPING\r\n", 14));
    while (rig_next(&rig) == RESP_AGAIN) {
        slices++;
        assert_int_equal(resp_conn_output(rig.conn).n, 0);
    }
    assert_true(slices >= 10 && slices <= 100);
    rig_take(&rig);
    assert_memory_equal(rig.output, "*1000\r\n$5\r\nkey:0\r\n", 18);
    assert_string_equal((char *)rig.output + rig.output_n - 16, "key:999\r\n+PONG\r\n");

    /* What does not fit is an error, not a closed connection. */
    rig.limits.output_bytes_max = 10000;
    assert_string_equal(rig_call(&rig, "KEYS *"),
                        "-ERR the keys do not fit into one reply; use SCAN\r\n");
    assert_string_equal(
        rig_call(&rig, "KEYS key:99?"),
        "*10\r\n$7\r\nkey:990\r\n$7\r\nkey:991\r\n$7\r\nkey:992\r\n$7\r\nkey:993\r\n"
        "$7\r\nkey:994\r\n$7\r\nkey:995\r\n$7\r\nkey:996\r\n$7\r\nkey:997\r\n"
        "$7\r\nkey:998\r\n$7\r\nkey:999\r\n");
    rig_deinit(&rig);
}

static void test_flush(void **state)
{
    static const struct rig_row rows[] = {
        {"FLUSHDB x", SYNTAX},  {"FLUSHALL SYNC x", SYNTAX},
        {"DBSIZE", ":300\r\n"}, {"SELECT 2", OK},
        {"SET a 1", OK},        {"SELECT 3", OK},
        {"SET b 1", OK},        {"FLUSHDB async", OK},
        {"DBSIZE", ":0\r\n"},   {"SET b 1", OK},
        {"SELECT 0", OK},       {"DBSIZE", ":300\r\n"},
        {"FLUSHALL", OK},       {"DBSIZE", ":0\r\n"},
        {"SELECT 2", OK},       {"DBSIZE", ":0\r\n"},
        {"SELECT 3", OK},       {"DBSIZE", ":0\r\n"},
        {"FLUSHALL SYNC", OK},
    };
    struct rig rig;

    (void)state;
    rig_init(&rig);
    add_keys(&rig, 300);
    rig_call_rows(&rig, rows, (uint32_t)(sizeof rows / sizeof rows[0]));
    rig_deinit(&rig);
}

/* Updates that are held back stop it. An operation that fails ends it, when those in flight with it
 * (of 64 steps, here a key each) are answered. */
static void test_flush_stops(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    add_keys(&rig, 300);
    rig.updates = false;
    assert_string_equal(rig_call(&rig, "FLUSHDB"), "");
    assert_int_equal(rig.last, RESP_WAIT);
    rig.updates = true;
    rig.fail_at = rig.answered + 5;
    rig.fail_with = HK_ERR_UNAVAILABLE;
    assert_string_equal(
        rig_send(&rig, "DBSIZE\r\n"),
        "-CLUSTERDOWN this node has no majority behind it; nothing changed (for one "
        "key; others of the command may be changed)\r\n:237\r\n");
    rig_deinit(&rig);
}

/* A host without these callbacks. */
static void test_unavailable(void **state)
{
    static const struct rig_row rows[] = {
        {"KEYS *", "-ERR 'keys' is not available here\r\n"},
        {"SCAN 0", "-ERR 'scan' is not available here\r\n"},
        {"RANDOMKEY", "-ERR 'randomkey' is not available here\r\n"},
        {"FLUSHALL", "-ERR 'flushall' is not available here\r\n"},
        {"DBSIZE", "-ERR 'dbsize' is not available here\r\n"},
        {"WAIT 0 0", "-ERR 'wait' is not available here\r\n"},
        {"SET a 1", OK},
        {"COPY a b DB 1", "-ERR DB index is out of range\r\n"},
        {"COPY a b", SEVERAL_IN("copy", "unknown")},
    };
    struct rig rig;

    (void)state;
    rig_init(&rig);
    rig.host =
        (struct resp_host){.context = &rig, .wall_us = rig.host.wall_us, .random = rig.host.random};
    rig_reconnect(&rig);
    rig_call_rows(&rig, rows, (uint32_t)(sizeof rows / sizeof rows[0]));
    rig_deinit(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_one_by_one),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_two_keys),
        cmocka_unit_test(test_object),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_scan_all),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_flush),
        cmocka_unit_test(test_flush_stops),
        cmocka_unit_test(test_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
