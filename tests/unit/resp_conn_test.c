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

static struct rig rig;

static int set_up(void **state)
{
    (void)state;
    rig_init(&rig);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_deinit(&rig);
    return 0;
}

static void feed(const char *text)
{
    rig_feed(&rig, bytes_of(text, (uint32_t)strlen(text)));
}

/* Calls resp_conn_next as long as it hands out operations. */
static enum resp_next take_all(void)
{
    while (rig_next(&rig) == RESP_OP) {
    }
    return rig.last;
}

static void expect_output(const char *wanted)
{
    rig_take(&rig);
    assert_string_equal((const char *)rig.output, wanted);
    rig.output_n = 0;
}

/* As many reads are in flight as possible only once answers are known to be small. */
static void answer_small(void)
{
    for (int i = 0; i < 100; i++)
        (void)rig_send(&rig, "GET nothing\r\n");
    rig.output_n = 0;
    rig.handed_out = rig.answered = 0;
}

/* ---- Order ---- */

static const char mixed[] =
    "SET a 1\r\nGET a\r\nPING\r\nMGET a b\r\nNOSUCH\r\nINCR a\r\nGET a x\r\n"
    "DEL a b a\r\nGET a\r\nPING x\r\n";
static const char mixed_replies[] =
    "+OK\r\n$1\r\n1\r\n+PONG\r\n*2\r\n$1\r\n1\r\n$-1\r\n"
    "-ERR unknown command 'NOSUCH', with args beginning with: \r\n:2\r\n"
    "-ERR wrong number of arguments for 'get' command\r\n:1\r\n$-1\r\n$1\r\nx\r\n";

static void test_pipeline(void **state)
{
    (void)state;
    assert_string_equal(rig_send(&rig, mixed), mixed_replies);
    assert_int_equal(rig.last, RESP_INPUT);
    assert_int_equal(resp_conn_in_flight(rig.conn), 0);
}

/* Replies do not depend on how the stream is cut, nor on when operations are answered. */
static void test_cuts(void **state)
{
    uint32_t n = (uint32_t)strlen(mixed);

    (void)state;
    for (uint32_t piece = 1; piece <= n; piece++) {
        rig.output_n = 0;
        for (uint32_t at = 0; at < n; at += piece) {
            rig_feed(&rig, bytes_of(mixed + at, n - at < piece ? n - at : piece));
            (void)rig_next(&rig);
            if (at % 3 == 0 && rig.ops_n > 0)
                rig_answer(&rig);
            if (at % 5 == 0)
                (void)rig_run(&rig);
        }
        (void)rig_run(&rig);
        assert_string_equal((const char *)rig.output, mixed_replies);
    }
}

/* Operations are handed out before the first is answered, up to what is no data command; nothing
 * leaves before its turn. */
static void test_in_flight(void **state)
{
    (void)state;
    feed("SET a 1\r\nGET a\r\nMGET a b\r\nPING\r\nGET a\r\n");
    assert_int_equal(take_all(), RESP_WAIT);
    assert_int_equal(rig.ops_n, 4);
    expect_output("");
    rig_answer(&rig);
    expect_output("+OK\r\n");
    rig_answer(&rig);
    rig_answer(&rig);
    expect_output("$1\r\n1\r\n"); /* half an MGET stays */
    assert_int_equal(rig_next(&rig), RESP_WAIT);
    rig_answer(&rig);
    expect_output("*2\r\n$1\r\n1\r\n$-1\r\n");
    assert_int_equal(rig_next(&rig), RESP_OP);
    expect_output("+PONG\r\n");
    rig_answer(&rig);
    expect_output("$1\r\n1\r\n");
    assert_int_equal(rig_next(&rig), RESP_INPUT);
}

/* An error of a data command's arguments waits for its turn as well. */
static void test_errors_in_order(void **state)
{
    (void)state;
    feed("GET a\r\nSET a b nonsense\r\nINCRBY a x\r\nGET b\r\n*1\r\nx\r\n");
    assert_int_equal(take_all(), RESP_WAIT);
    assert_int_equal(rig.ops_n, 1);
    expect_output("");
    rig_answer(&rig);
    assert_int_equal(take_all(), RESP_WAIT);
    expect_output("$-1\r\n-ERR syntax error\r\n-ERR value is not an integer or out of range\r\n");
    assert_int_equal(rig.ops_n, 1);
    rig_answer(&rig);
    assert_int_equal(take_all(), RESP_CLOSE);
    expect_output("$-1\r\n-ERR Protocol error: expected '$', got 'x'\r\n");
}

static void test_in_flight_limit(void **state)
{
    (void)state;
    answer_small();
    for (int i = 0; i < 300; i++)
        feed("GET a\r\n");
    assert_int_equal(take_all(), RESP_WAIT);
    assert_int_equal(rig.ops_n, RESP_IN_FLIGHT_MAX);
    rig_answer(&rig);
    assert_int_equal(rig_next(&rig), RESP_OP);
    assert_int_equal(rig_next(&rig), RESP_WAIT);
    assert_int_equal(rig_run(&rig), RESP_INPUT);
    assert_int_equal(rig.output_n, 300 * 5);
    assert_int_equal(rig.answered, 300);
}

/* A command of more operations than may be in flight, whose arguments move while it is served. */
static void test_many_keys(void **state)
{
    char *text = malloc(100000);
    uint32_t n = 0;

    (void)state;
    assert_non_null(text);
    answer_small();
    (void)rig_send(&rig, "SET k5 five\r\nSET k499 last\r\nSET x 1\r\n");
    rig.output_n = 0;
    feed("GET x\r\n");
    n = (uint32_t)sprintf(text, "*501\r\n$4\r\nMGET\r\n");
    for (int i = 0; i < 500; i++) {
        char key[16];

        n += (uint32_t)sprintf(text + n, "$%d\r\nk%d\r\n", sprintf(key, "k%d", i), i);
    }
    rig_feed(&rig, bytes_of(text, n));
    assert_int_equal(take_all(), RESP_WAIT);
    assert_int_equal(rig.ops_n, RESP_IN_FLIGHT_MAX);
    feed("GET x\r\n");
    for (int i = 0; i < 100; i++)
        rig_answer(&rig);
    feed("PING\r\n");
    assert_int_equal(rig_run(&rig), RESP_INPUT);
    assert_int_equal(rig.output_n, 7 + 6 + 498 * 5 + 10 + 10 + 7 + 7);
    assert_memory_equal(rig.output, "$1\r\n1\r\n*500\r\n$-1\r\n", 18);
    assert_non_null(strstr((char *)rig.output, "$-1\r\n$4\r\nfive\r\n$-1\r\n"));
    assert_non_null(strstr((char *)rig.output, "$4\r\nlast\r\n$1\r\n1\r\n+PONG\r\n"));
    free(text);
}

/* ---- Errors of operations ---- */

static void test_error_in_the_middle(void **state)
{
    static const struct {
        const char *command, *error;
    } rows[] = {
        {"MGET a b c d", "-CLUSTERDOWN this node has no majority behind it; nothing changed\r\n"},
        {"DEL a b c d",
         "-CLUSTERDOWN this node has no majority behind it; nothing changed (for one "
         "key; others of the command may be changed)\r\n"},
        {"MSET a 1 b 2 c 3", "-CLUSTERDOWN this node has no majority behind it; nothing changed "
                             "(for one key; others of the command may be changed)\r\n"},
        {"EXISTS a b c d", "-CLUSTERDOWN this node has no majority behind it; nothing changed\r\n"},
        {"TOUCH a b c d", "-CLUSTERDOWN this node has no majority behind it; nothing changed\r\n"},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig.fail_at = rig.answered + 2;
        rig.fail_with = HK_ERR_UNAVAILABLE;
        assert_string_equal(rig_call(&rig, rows[i].command), rows[i].error);
        assert_string_equal(rig_send(&rig, "PING\r\n"), "+PONG\r\n");
    }
}

/* The slot is the one of the key that failed, whichever of the command's it is. */
static void test_lost_slot(void **state)
{
    static const struct {
        const char *command;
        uint32_t at; /* the operation that fails */
        const char *error;
    } rows[] = {
        {"GET foo", 1,
         "-LOSTSLOT 12182 the node that had the keys of this slot is gone, and the keys with it; "
         "nothing changed\r\n"},
        {"MGET foo 123456789 b", 2,
         "-LOSTSLOT 12739 the node that had the keys of this slot is gone, and the keys with it; "
         "nothing changed\r\n"},
        {"MSET foo 1 x{foo}y 2 c 3", 2,
         "-LOSTSLOT 12182 the node that had the keys of this slot is gone, and the keys with it; "
         "nothing changed (for one key; others of the command may be changed)\r\n"},
        {"DEL 123456789", 1,
         "-LOSTSLOT 12739 the node that had the keys of this slot is gone, and the keys with it; "
         "nothing changed\r\n"},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig.fail_at = rig.answered + rows[i].at;
        rig.fail_with = HK_ERR_LOSTSLOT;
        assert_string_equal(rig_call(&rig, rows[i].command), rows[i].error);
        assert_string_equal(rig_send(&rig, "PING\r\n"), "+PONG\r\n");
    }
}

/* After an error the operations that are not handed out yet are not handed out at all. */
static void test_error_stops(void **state)
{
    char words[4000] = "DEL";

    (void)state;
    for (int i = 0; i < 400; i++)
        sprintf(words + strlen(words), " k%d", i);
    rig.fail_at = 1;
    rig.fail_with = HK_ERR_UNKNOWN;

    char *text = rig_multibulk(words);

    feed(text);
    feed("GET k0\r\n");
    free(text);
    assert_int_equal(take_all(), RESP_WAIT);
    rig_answer(&rig);
    assert_int_equal(rig_run(&rig), RESP_INPUT);
    assert_int_equal(rig.answered, RESP_IN_FLIGHT_MAX + 1);
    expect_output(
        "-UNKNOWN the outcome is not known: the change may or may not have been made (for "
        "one key; others of the command may be changed)\r\n$-1\r\n");
}

static void test_error_texts(void **state)
{
    static const struct {
        const char *command;
        int error;
        const char *first;
    } rows[] = {
        {"SET a 1", HK_ERR_NOMEM, "-OOM command not allowed when used memory > 'maxmemory'.\r\n"},
        {"SET a 1", HK_ERR_TOOBIG,
         "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"},
        {"INCR a", HK_ERR_TYPE, "-ERR value is not an integer or out of range\r\n"},
        {"INCR a", HK_ERR_OVERFLOW, "-ERR increment or decrement would overflow\r\n"},
        {"INCRBYFLOAT a 1", HK_ERR_TYPE, "-ERR value is not a valid float\r\n"},
        {"INCRBYFLOAT a 1", HK_ERR_OVERFLOW, "-ERR increment would produce NaN or Infinity\r\n"},
        {"GET a", HK_ERR_UNAVAILABLE, "-CLUSTERDOWN "},
        {"GET a", HK_ERR_LOADING, "-LOADING "},
        {"SET a 1", HK_ERR_UNKNOWN, "-UNKNOWN "},
        {"INCR a", HK_ERR_BUSY, "-TRYAGAIN "},
        {"GET a", HK_ERR_FULL, "-TRYAGAIN "},
        {"GET a", HK_ERR_INVALID, "-ERR invalid argument; nothing changed\r\n"},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig.fail_at = rig.answered + 1;
        rig.fail_with = rows[i].error;

        const char *reply = rig_call(&rig, rows[i].command);

        if (strncmp(reply, rows[i].first, strlen(rows[i].first)) != 0)
            fail_msg("%s: %s", rows[i].command, reply);
    }
}

/* ---- What holds operations back ---- */

static void test_updates_held_back(void **state)
{
    (void)state;
    rig.updates = false;
    feed("GET a\r\nSET a 1\r\nGET a\r\n");
    assert_int_equal(take_all(), RESP_WAIT);
    assert_int_equal(rig.ops_n, 1);
    rig_answer(&rig);
    assert_int_equal(rig_next(&rig), RESP_WAIT);
    expect_output("$-1\r\n");
    /* What is held back lies in the input, and moves with it. */
    for (int i = 0; i < 200; i++)
        feed("GET a\r\n");
    assert_int_equal(rig_next(&rig), RESP_WAIT);
    rig.updates = true;
    assert_int_equal(rig_run(&rig), RESP_INPUT);
    assert_int_equal(rig.output_n, 5 + 201 * 7);
    assert_memory_equal(rig.output, "+OK\r\n$1\r\n1\r\n", 12);
}

static void test_loading(void **state)
{
    (void)state;
    rig.serving = HK_ERR_LOADING;
    assert_string_equal(
        rig_send(&rig, "GET a\r\nCLIENT ID\r\nSET a 1\r\nDBSIZE\r\n"),
        "-LOADING this node is joining and copies the data set; nothing changed\r\n:7\r\n"
        "-LOADING this node is joining and copies the data set; nothing changed\r\n"
        "-LOADING this node is joining and copies the data set; nothing changed\r\n");
    assert_int_equal(rig.answered, 0);
    rig.serving = HK_ERR_UNAVAILABLE; /* the node decides how long it waits */
    assert_string_equal(rig_send(&rig, "GET a\r\n"), "$-1\r\n");
}

/* What goes through the store asks no operation that the node could refuse: it must not take what
 * this node happens to hold for all keys. */
static void test_walks_need_service(void **state)
{
    static const char *const walks[] = {"KEYS *",   "SCAN 0",  "RANDOMKEY",
                                        "FLUSHALL", "FLUSHDB", "DBSIZE"};
    (void)state;
    (void)rig_call(&rig, "SET a 1");
    for (uint32_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
        rig.serving = HK_ERR_UNAVAILABLE;
        rig_expect_begin(&rig, walks[i], "-CLUSTERDOWN ");
        rig.serving = HK_OK;
        rig_expect(&rig, "GET a", "$1\r\n1\r\n");
    }
}

/* The node stops serving between two slices. */
static void test_walks_need_service_throughout(void **state)
{
    static const char *const walks[] = {"KEYS *\r\n", "FLUSHALL\r\n"};
    char set[40];
    (void)state;
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(set, sizeof set, "SET key:%d 1", i);
        (void)rig_call(&rig, set);
    }
    for (uint32_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
        rig.serving = HK_OK;
        rig.output_n = 0;
        feed(walks[i]);
        enum resp_next next = rig_next(&rig);
        assert_true(next == RESP_AGAIN || next == RESP_OP);
        rig.serving = HK_ERR_UNAVAILABLE;
        assert_int_equal(rig_run(&rig), RESP_INPUT);
        assert_true(rig.output_n > 12);
        assert_memory_equal(rig.output, "-CLUSTERDOWN", 12);
        rig_take(&rig);
    }
}

static void test_authentication(void **state)
{
    (void)state;
    rig.password = "secret";
    rig_reconnect(&rig);
    assert_string_equal(rig_send(&rig, "GET a\r\nPING\r\nNOSUCH\r\nGET\r\n"),
                        "-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n"
                        "-ERR unknown command 'NOSUCH', with args beginning with: \r\n"
                        "-ERR wrong number of arguments for 'get' command\r\n");
    assert_string_equal(rig_send(&rig, "*11\r\n"),
                        "-ERR Protocol error: unauthenticated multibulk length\r\n");
    assert_int_equal(rig.last, RESP_CLOSE);
    rig_reconnect(&rig);
    assert_string_equal(rig_send(&rig, "AUTH secret\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$20000\r\n"),
                        "+OK\r\n");
    assert_int_equal(rig.last, RESP_INPUT);
}

static void test_sleep(void **state)
{
    (void)state;
    feed("SET a 1\r\nDEBUG SLEEP 0.25\r\nGET a\r\n");
    assert_int_equal(take_all(), RESP_WAIT);
    assert_int_equal(resp_conn_deadline(rig.conn), UINT64_MAX);
    rig_answer(&rig);
    assert_int_equal(rig_next(&rig), RESP_WAIT);
    assert_int_equal(resp_conn_deadline(rig.conn), rig.now_us + 250000);
    rig.now_us += 249999;
    assert_int_equal(rig_next(&rig), RESP_WAIT);
    expect_output("+OK\r\n");
    rig.now_us += 1;
    assert_int_equal(rig_run(&rig), RESP_INPUT);
    expect_output("+OK\r\n$1\r\n1\r\n");
    assert_int_equal(resp_conn_deadline(rig.conn), UINT64_MAX);
}

static void test_client_reply(void **state)
{
    (void)state;
    assert_string_equal(rig_send(&rig, "CLIENT REPLY OFF\r\nSET a 1\r\nPING\r\nGET\r\nMGET a b\r\n"
                                       "CLIENT REPLY ON\r\nGET a\r\n"),
                        "+OK\r\n$1\r\n1\r\n");
    assert_string_equal(rig_send(&rig,
                                 "CLIENT REPLY SKIP\r\nGET a\r\nGET b\r\nCLIENT REPLY SKIP\r\n"
                                 "PING\r\nPING x\r\n"),
                        "$-1\r\n$1\r\nx\r\n");
}

/* ---- The stream's end ---- */

static void test_malformed(void **state)
{
    static const struct {
        const char *input, *wanted;
    } rows[] = {
        {"*1\r\n$4294967296\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
        {"*1048577\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
        {"*1\r\n\001\r\n", "-ERR Protocol error: expected '$', got '\001'\r\n"},
        {"SET \"a\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(rig_send(&rig, rows[i].input), rows[i].wanted);
        assert_int_equal(rig.last, RESP_CLOSE);
        assert_false(resp_conn_hungry(rig.conn));
        /* What comes behind is not looked at. */
        assert_string_equal(rig_send(&rig, "PING\r\n"), "");
        assert_int_equal(rig.last, RESP_CLOSE);
        rig_reconnect(&rig);
    }
}

/* What is acknowledged before the error is still answered. */
static void test_malformed_waits(void **state)
{
    (void)state;
    feed("SET a 1\r\n*x\r\n");
    assert_int_equal(take_all(), RESP_WAIT);
    expect_output("");
    rig_answer(&rig);
    assert_int_equal(rig_next(&rig), RESP_CLOSE);
    expect_output("+OK\r\n-ERR Protocol error: invalid multibulk length\r\n");
}

static void test_quit(void **state)
{
    (void)state;
    assert_string_equal(rig_send(&rig, "SET a 1\r\nQUIT\r\nSET a 2\r\n"), "+OK\r\n+OK\r\n");
    assert_int_equal(rig.last, RESP_CLOSE);
    assert_int_equal(rig.answered, 1);
}

static void test_http(void **state)
{
    (void)state;
    assert_string_equal(rig_send(&rig, "POST / HTTP/1.1\r\nSET a 1\r\n"), "");
    assert_int_equal(rig.last, RESP_CLOSE);
    rig_reconnect(&rig);
    assert_string_equal(rig_send(&rig, "Host: localhost\r\n"), "");
    assert_int_equal(rig.last, RESP_CLOSE);
    assert_int_equal(rig.answered, 0);
}

/* ---- Memory ---- */

/* Announces much and sends little. */
static void test_announced(void **state)
{
    uint64_t idle = resp_conn_bytes_held(rig.conn);

    (void)state;
    feed("*1000000\r\n$4194304\r\nabc");
    assert_int_equal(rig_next(&rig), RESP_INPUT);
    assert_true(resp_conn_hungry(rig.conn));
    assert_true(resp_conn_bytes_held(rig.conn) < idle + 2048);
}

/* A large value arrives in small pieces: the buffer ends up as large as the command, and goes. */
static void test_large_value(void **state)
{
    static uint8_t piece[10000];
    uint64_t idle = resp_conn_bytes_held(rig.conn), most = 0;

    (void)state;
    memset(piece, 'v', sizeof piece);
    feed("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1000000\r\n");
    for (int i = 0; i < 100; i++) {
        assert_int_equal(rig_next(&rig), RESP_INPUT);
        rig_feed(&rig, bytes_of(piece, sizeof piece));
        if (resp_conn_bytes_held(rig.conn) > most)
            most = resp_conn_bytes_held(rig.conn);
        assert_true(resp_conn_hungry(rig.conn));
    }
    feed("\r\n");
    assert_int_equal(rig_run(&rig), RESP_INPUT);
    expect_output("+OK\r\n");
    assert_true(most < idle + 1000000 + 4096);
    assert_string_equal(rig_send(&rig, "STRLEN a\r\n"), ":1000000\r\n");
    assert_true(resp_conn_bytes_held(rig.conn) < idle + 20000);
}

/* Pipelines without end and nobody who reads the replies: at some point nothing is served. */
static void test_never_reads(void **state)
{
    static char large[100001], blanks[20001];
    uint32_t rounds = 0;

    (void)state;
    memset(large, 'v', sizeof large - 1);
    memset(blanks, ' ', sizeof blanks - 1);
    rig.output_n = 0;
    feed("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$100000\r\n");
    feed(large);
    feed("\r\n");
    (void)rig_run(&rig);
    for (; rounds < 1000 && resp_conn_hungry(rig.conn); rounds++) {
        feed("GET a\r\nPING\r\n");
        feed(blanks);
        feed("\r\n");
        while (rig_next(&rig) == RESP_OP)
            rig_answer(&rig);
    }
    assert_true(rounds < 1000);
    assert_int_equal(rig_next(&rig), RESP_WAIT);
    assert_int_equal(rig.ops_n, 0);
    assert_true(resp_conn_bytes_held(rig.conn) < 6u << 20);
    /* It goes on where it stopped. */
    (void)rig_run(&rig);
    assert_int_equal(rig.last, RESP_INPUT);
    assert_int_equal(rig.output_n, rounds * (100011 + 7) + 5);
}

/* One reply over the limit closes the connection and frees the output, whatever is in flight. */
static void test_output_limit(void **state)
{
    char *value = malloc(500001);

    (void)state;
    assert_non_null(value);
    memset(value, 'v', 500000);
    value[500000] = '\0';
    (void)rig_send(&rig, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$500000\r\n");
    (void)rig_send(&rig, value);
    assert_string_equal(rig_send(&rig, "\r\n"), "+OK\r\n");
    answer_small();
    rig.limits.output_bytes_max = 1200000;
    feed("PING\r\nMGET a a a a\r\nGET a\r\n");
    (void)take_all();
    assert_int_equal(rig.ops_n, 5);
    rig_answer(&rig);
    rig_answer(&rig);
    assert_int_equal(rig_next(&rig), RESP_INPUT);
    rig_answer(&rig);
    assert_int_equal(rig_next(&rig), RESP_CLOSE);
    assert_true(resp_conn_bytes_held(rig.conn) < 16384);
    while (rig.ops_n > 0)
        rig_answer(&rig);
    assert_int_equal(rig_next(&rig), RESP_CLOSE);
    assert_int_equal(resp_conn_output(rig.conn).n, 0);
    assert_true(resp_conn_feed(rig.conn, bytes_of("PING\r\n", 6)));
    free(value);
}

/* Who feeds on although nothing is wanted is told so. */
static void test_fed_on(void **state)
{
    static uint8_t piece[100000];
    struct op op;
    const struct txn_request *txn;
    uint32_t fed = 0;

    (void)state;
    rig.updates = false;
    feed("SET a 1\r\n");
    assert_int_equal(resp_conn_next(rig.conn, 0, false, &op, &txn), RESP_WAIT);
    rig.limits.query_bytes_max = 1 << 20;
    memset(piece, '\n', sizeof piece);
    while (resp_conn_feed(rig.conn, bytes_of(piece, sizeof piece)))
        assert_true(++fed < 20);
    assert_false(resp_conn_hungry(rig.conn));
    assert_true(resp_conn_bytes_held(rig.conn) < 3u << 20);
}

/* ---- What others see ---- */

static uint32_t slow_count;
static char slow_text[300];

static void slow_add(void *context, const struct resp_slow *slow)
{
    (void)context;
    slow_count++;
    slow_text[0] = '\0';
    for (uint32_t i = 0; i < slow->args_n; i++)
        sprintf(slow_text + strlen(slow_text), "%.*s ", (int)slow->args[i].n,
                (const char *)slow->args[i].at);
    sprintf(slow_text + strlen(slow_text), "%u %llu", slow->arguments,
            (unsigned long long)slow->took_us);
}

static int64_t slow_threshold_us(void *context)
{
    (void)context;
    return 1000;
}

static void test_slow(void **state)
{
    (void)state;
    rig.host.slow_add = slow_add;
    rig.host.slow_threshold_us = slow_threshold_us;
    slow_count = 0;
    (void)rig_send(&rig, "GET a\r\n");
    assert_int_equal(slow_count, 0);
    feed("MSET somekey 1 other 2\r\n");
    (void)take_all();
    rig.now_us += 2000;
    (void)rig_run(&rig);
    assert_int_equal(slow_count, 1);
    assert_string_equal(slow_text, "mset somekey 5 2000");
    (void)rig_send(&rig, "debug sleep 0.002\r\n");
    assert_int_equal(slow_count, 2);
    assert_string_equal(slow_text, "debug sleep 0.002 3 2000");
}

static void test_info(void **state)
{
    struct resp_conn_info info;

    (void)state;
    resp_conn_info(rig.conn, &info);
    assert_int_equal(info.id, 7);
    assert_string_equal(info.command, "NULL");
    assert_string_equal(info.address, "127.0.0.1:50000");
    assert_string_equal(info.user, "default");
    assert_int_equal(info.resp, 2);
    rig.now_us += 5;
    (void)rig_send(&rig, "OBJECT HELP\r\nGE");
    resp_conn_info(rig.conn, &info);
    assert_string_equal(info.command, "object|help");
    assert_int_equal(info.commands, 1);
    assert_int_equal(info.input_bytes, 2);
    assert_int_equal(info.last_us, rig.now_us);
    assert_int_equal(info.created_us, rig.now_us - 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_pipeline),
        TEST(test_cuts),
        TEST(test_in_flight),
        TEST(test_errors_in_order),
        TEST(test_in_flight_limit),
        TEST(test_many_keys),
        TEST(test_error_in_the_middle),
        TEST(test_lost_slot),
        TEST(test_error_stops),
        TEST(test_error_texts),
        TEST(test_updates_held_back),
        TEST(test_loading),
        TEST(test_walks_need_service),
        TEST(test_walks_need_service_throughout),
        TEST(test_authentication),
        TEST(test_sleep),
        TEST(test_client_reply),
        TEST(test_malformed),
        TEST(test_malformed_waits),
        TEST(test_quit),
        TEST(test_http),
        TEST(test_announced),
        TEST(test_large_value),
        TEST(test_never_reads),
        TEST(test_output_limit),
        TEST(test_fed_on),
        TEST(test_slow),
        TEST(test_info),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
