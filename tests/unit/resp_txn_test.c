/* MULTI, EXEC, DISCARD, WATCH, UNWATCH and commands over several keys in a space that has
 * transactions. Replies are those of redis-server 7.0 wherever it has some. */
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
#define NIL "*-1\r\n"
#define ABORTED "-EXECABORT Transaction discarded because of previous errors.\r\n"
#define NO_MULTI "-ERR EXEC without MULTI\r\n"

static struct rig rig;

static int set_up(void **state)
{
    (void)state;
    rig_init(&rig);
    rig_expect(&rig, "SELECT 3", OK);
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

static void test_exec(void **state)
{
    (void)state;
    pipeline("MULTI\r\nSET a 1\r\nINCR a\r\nGET a\r\nGET b\r\nMGET a b\r\nDEL a b c\r\nEXISTS a\r\n"
             "EXEC\r\nGET a\r\n",
             OK QUEUED QUEUED QUEUED QUEUED QUEUED QUEUED QUEUED
             "*7\r\n+OK\r\n:2\r\n$1\r\n2\r\n$-1\r\n*2\r\n$1\r\n2\r\n$-1\r\n:1\r\n:0\r\n$-1\r\n");
    assert_int_equal(rig.handed_out, 2); /* the whole transaction is one request */
    pipeline("MULTI\r\nEXEC\r\nEXEC\r\nDISCARD\r\n",
             OK "*0\r\n" NO_MULTI "-ERR DISCARD without MULTI\r\n");
    assert_int_equal(rig.handed_out, 2);
}

/* One command's error is its own reply; the others are carried out. */
static void test_errors(void **state)
{
    (void)state;
    pipeline("MULTI\r\nINCRBY a x\r\nSET a b c\r\nSET a t\r\nINCR a\r\nMSET a\r\nMSET a b c\r\n"
             "SELECT x\r\nSELECT 9\r\nSELECT 3\r\nSETRANGE a -1 x\r\nGET a\r\nDISCARD\r\n",
             OK QUEUED QUEUED QUEUED QUEUED
             "-ERR wrong number of arguments for 'mset' command\r\n" QUEUED QUEUED QUEUED QUEUED
                 QUEUED QUEUED OK);
    pipeline("MULTI\r\nINCRBY a x\r\nSET a b c\r\nSET a t\r\nINCR a\r\nMSET a b c\r\n"
             "SELECT x\r\nSELECT 3\r\nGET a\r\nAPPEND a u\r\nEXEC\r\n",
             OK QUEUED QUEUED QUEUED QUEUED QUEUED QUEUED QUEUED QUEUED QUEUED
             "*9\r\n-ERR value is not an integer or out of range\r\n-ERR syntax error\r\n+OK\r\n"
             "-ERR value is not an integer or out of range\r\n"
             "-ERR wrong number of arguments for 'mset' command\r\n"
             "-ERR value is not an integer or out of range\r\n+OK\r\n$1\r\nt\r\n:2\r\n");
}

static void test_queueing_errors(void **state)
{
    (void)state;
    pipeline("MULTI\r\nSET a 1\r\nGET\r\nSET a 2\r\nEXEC\r\nEXISTS a\r\nEXEC\r\n",
             OK QUEUED "-ERR wrong number of arguments for 'get' command\r\n" QUEUED ABORTED
                       ":0\r\n" NO_MULTI);
    pipeline("MULTI\r\nFOO\r\nCLIENT FOO\r\nEXEC\r\n",
             OK "-ERR unknown command 'FOO', with args beginning with: \r\n"
                "-ERR unknown subcommand 'FOO'. Try CLIENT HELP.\r\n" ABORTED);
    pipeline("MULTI\r\nLPUSH a b\r\nEXEC\r\n",
             OK "-ERR 'lpush' is not supported: horkos keeps strings only\r\n" ABORTED);
    pipeline("MULTI\r\nKEYS *\r\nEXEC\r\nMULTI\r\nCLIENT REPLY OFF\r\nEXEC\r\n",
             OK "-ERR 'keys' cannot stand between MULTI and EXEC\r\n" ABORTED OK
                "-ERR 'client|reply' cannot stand between MULTI and EXEC\r\n" ABORTED);
    pipeline("MULTI\r\nSELECT 0\r\nSET a 1\r\nEXEC\r\nGET a\r\n",
             OK "-ERR SELECT of another space cannot stand between MULTI and EXEC: a transaction "
                "is of one space\r\n" QUEUED ABORTED "$-1\r\n");
    pipeline("MULTI\r\nSET a 1\r\nEXEC foo\r\nEXEC\r\nEXEC foo\r\nGET a\r\n", OK QUEUED
             "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' "
             "command\r\n" NO_MULTI
             "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' "
             "command\r\n$-1\r\n");
    pipeline("MULTI\r\nDISCARD foo\r\nEXEC\r\nMULTI\r\nMULTI x\r\nWATCH\r\nEXEC\r\n",
             OK "-ERR wrong number of arguments for 'discard' command\r\n" ABORTED OK
                "-ERR wrong number of arguments for 'multi' command\r\n"
                "-ERR wrong number of arguments for 'watch' command\r\n" ABORTED);
    assert_int_equal(rig.handed_out, 3); /* EXISTS and GET */
}

/* These are errors, and the transaction goes on. */
static void test_nested(void **state)
{
    (void)state;
    pipeline(
        "MULTI\r\nMULTI\r\nWATCH a\r\nSET a 1\r\nEXEC\r\n",
        OK "-ERR MULTI calls can not be nested\r\n-ERR WATCH inside MULTI is not allowed\r\n" QUEUED
           "*1\r\n+OK\r\n");
}

static void test_discard(void **state)
{
    (void)state;
    pipeline("MULTI\r\nSET a 1\r\nDISCARD\r\nEXISTS a\r\nMULTI\r\nGET\r\nDISCARD\r\nMULTI\r\n"
             "SET a 2\r\nEXEC\r\n",
             OK QUEUED OK ":0\r\n" OK
                          "-ERR wrong number of arguments for 'get' command\r\n" OK OK QUEUED
                          "*1\r\n+OK\r\n");
    pipeline("MULTI\r\nSET a 1\r\nRESET\r\nEXEC\r\n", OK QUEUED "+RESET\r\n" NO_MULTI);
    assert_string_equal(rig_send(&rig, "SELECT 3\r\nMULTI\r\nSET a 1\r\nQUIT\r\nEXEC\r\n"),
                        OK OK QUEUED OK);
    assert_int_equal(rig.last, RESP_CLOSE);
    rig_reconnect(&rig);
    pipeline("SELECT 3\r\nGET a\r\n", OK "$1\r\n2\r\n");
}

static void test_watch(void **state)
{
    (void)state;
    pipeline("SET a 1\r\nWATCH a b\r\nMULTI\r\nSET a 2\r\nEXEC\r\n",
             OK OK OK QUEUED "*1\r\n+OK\r\n");
    rig_expect(&rig, "WATCH a b", OK);
    rig_set(&rig, RIG_ZEUS, "a", "other");
    pipeline("MULTI\r\nSET c 1\r\nEXEC\r\nEXISTS c\r\n", OK QUEUED NIL ":0\r\n");
    /* The watches are over. */
    pipeline("MULTI\r\nSET c 1\r\nEXEC\r\n", OK QUEUED "*1\r\n+OK\r\n");
    /* Its own changes count as well, and a key that comes. */
    pipeline("WATCH a\r\nSET a 3\r\nMULTI\r\nGET a\r\nEXEC\r\n", OK OK OK QUEUED NIL);
    rig_expect(&rig, "WATCH nothing", OK);
    rig_set(&rig, RIG_ZEUS, "nothing", "something");
    pipeline("MULTI\r\nPING\r\nEXEC\r\n", OK QUEUED NIL);
    rig_expect(&rig, "WATCH nothing", OK);
    rig_set(&rig, RIG_ZEUS, "nothing", NULL);
    pipeline("MULTI\r\nEXEC\r\nMULTI\r\nEXEC\r\n", OK NIL OK "*0\r\n");
    pipeline("WATCH a\r\nMULTI\r\nEXEC\r\n", OK OK "*0\r\n");
    (void)rig_call(&rig, "HELLO 3");
    rig_expect(&rig, "WATCH a", OK);
    rig_set(&rig, RIG_ZEUS, "a", "more");
    pipeline("MULTI\r\nGET a\r\nEXEC\r\n", OK QUEUED "_\r\n");
}

/* The first look counts, whatever is watched again. */
static void test_watch_again(void **state)
{
    (void)state;
    rig_expect(&rig, "WATCH a", OK);
    rig_set(&rig, RIG_ZEUS, "a", "1");
    pipeline("WATCH a\r\nWATCH a b\r\nMULTI\r\nGET a\r\nEXEC\r\n", OK OK OK QUEUED NIL);
    rig_expect(&rig, "WATCH a", OK);
    rig_set(&rig, RIG_ZEUS, "a", "2");
    pipeline("UNWATCH\r\nMULTI\r\nGET a\r\nEXEC\r\n", OK OK QUEUED "*1\r\n$1\r\n2\r\n");
    rig_expect(&rig, "WATCH a", OK);
    rig_set(&rig, RIG_ZEUS, "a", "3");
    pipeline("MULTI\r\nDISCARD\r\nMULTI\r\nGET a\r\nEXEC\r\n", OK OK OK QUEUED "*1\r\n$1\r\n3\r\n");
    rig_expect(&rig, "WATCH a", OK);
    rig_set(&rig, RIG_ZEUS, "a", "4");
    /* UNWATCH is queued and comes too late. */
    pipeline("MULTI\r\nUNWATCH\r\nGET a\r\nEXEC\r\n", OK QUEUED QUEUED NIL);
    rig_expect(&rig, "WATCH a", OK);
    rig_set(&rig, RIG_ZEUS, "a", "5");
    pipeline("MULTI\r\nGET\r\nEXEC\r\nMULTI\r\nGET a\r\nEXEC\r\n",
             OK "-ERR wrong number of arguments for 'get' command\r\n" ABORTED OK QUEUED
                "*1\r\n$1\r\n5\r\n");
}

static void test_watch_spaces(void **state)
{
    (void)state;
    pipeline("WATCH a\r\nSELECT 0\r\n", OK OK);
    rig_expect_begin(&rig, "WATCH a", "-ERR 'watch' is not supported in space 0 (engine hermes)");
    rig_set(&rig, 0, "a", "1");
    pipeline("SELECT 3\r\nMULTI\r\nGET a\r\nEXEC\r\n", OK OK QUEUED "*1\r\n$-1\r\n");
    /* Who watches keys of one space may forget them in another; who watches none learns that there
     * is nothing like that here. */
    pipeline("WATCH a\r\nSELECT 0\r\nUNWATCH\r\n", OK OK OK);
    rig_expect_begin(&rig, "UNWATCH", "-ERR 'unwatch' is not supported in space 0");
    rig_set(&rig, RIG_ZEUS, "a", "2");
    pipeline("SELECT 3\r\nMULTI\r\nGET a\r\nEXEC\r\n", OK OK QUEUED "*1\r\n$1\r\n2\r\n");
}

/* What the node says of the watch itself. */
static void test_watch_fails(void **state)
{
    (void)state;
    rig.fail_at = 1;
    rig.fail_with = HK_ERR_UNAVAILABLE;
    rig_expect(&rig, "WATCH a",
               "-CLUSTERDOWN this node has no majority behind it; nothing changed\r\n");
    rig_set(&rig, RIG_ZEUS, "a", "1");
    pipeline("MULTI\r\nGET a\r\nEXEC\r\n", OK QUEUED "*1\r\n$1\r\n1\r\n");
}

static void test_exec_fails(void **state)
{
    (void)state;
    static const struct {
        int err;
        const char *reply;
    } rows[] = {
        {HK_ERR_UNAVAILABLE, "-CLUSTERDOWN this node has no majority behind it; nothing changed"},
        {HK_ERR_UNKNOWN, "-UNKNOWN the outcome is not known: the change may or may not have been "
                         "made"},
        {HK_ERR_BUSY, "-TRYAGAIN others worked with these keys all the time, or it is more than "
                      "can be done in time now; nothing changed"},
        {HK_ERR_TOOBIG, "-ERR the transaction is too large: it writes more than 64 MiB, or more "
                        "than 1024 keys; nothing changed"},
        {HK_ERR_LOSTSLOT, "-LOST the nodes that had this key are gone, and the key with them; "
                          "nothing changed"},
        {HK_ERR_NOMEM, "-OOM command not allowed when used memory > 'maxmemory'."},
    };

    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char replies[256];

        rig.fail_at = rig.answered + 1;
        rig.fail_with = rows[i].err;
        snprintf(replies, sizeof replies, OK QUEUED "%s\r\n" NO_MULTI, rows[i].reply);
        pipeline("MULTI\r\nSET a 1\r\nEXEC\r\nEXEC\r\n", replies);
        rig.fail_at = rig.answered + 1;
        snprintf(replies, sizeof replies, "%s\r\n", rows[i].reply);
        rig_expect(&rig, "MSET a 1 b 2", replies);
    }
}

/* Commands without operations stand in their place. */
static void test_direct(void **state)
{
    (void)state;
    pipeline("MULTI\r\nPING\r\nSET a 1\r\nECHO hello\r\nGET a\r\nCLIENT SETNAME me\r\n"
             "CLIENT GETNAME\r\nSELECT 3\r\nEXEC\r\nCLIENT GETNAME\r\n",
             OK QUEUED QUEUED QUEUED QUEUED QUEUED QUEUED QUEUED
             "*7\r\n+PONG\r\n+OK\r\n$5\r\nhello\r\n$1\r\n1\r\n+OK\r\n$2\r\nme\r\n+OK\r\n"
             "$2\r\nme\r\n");
    rig_expect(&rig, "WATCH a", OK);
    rig_set(&rig, RIG_ZEUS, "a", "2");
    pipeline("MULTI\r\nCLIENT SETNAME you\r\nEXEC\r\nCLIENT GETNAME\r\n",
             OK QUEUED NIL "$2\r\nme\r\n");
    rig.handed_out = 0;
    pipeline("MULTI\r\nPING\r\nPING a b\r\nEXEC\r\n", OK QUEUED QUEUED
             "*2\r\n+PONG\r\n-ERR wrong number of arguments for 'ping' command\r\n");
    assert_int_equal(rig.handed_out, 0);
}

/* Relative deadlines count from EXEC. */
static void test_deadlines(void **state)
{
    (void)state;
    pipeline("MULTI\r\nSET a 1 EX 10\r\n", OK QUEUED);
    rig.wall_us += 5000000;
    pipeline("TTL a\r\nEXPIRE a x\r\nGETEX a PERSIST\r\nTTL a\r\nEXEC\r\n",
             QUEUED QUEUED QUEUED QUEUED
             "*5\r\n+OK\r\n:10\r\n-ERR value is not an integer or out of range\r\n$1\r\n1\r\n"
             ":-1\r\n");
    /* A watched key that is gone at its deadline has changed. */
    pipeline("SET a 1 PX 1000\r\nWATCH a\r\n", OK OK);
    rig.wall_us += 2000000;
    pipeline("MULTI\r\nPING\r\nEXEC\r\n", OK QUEUED NIL);
}

static void test_several_keys(void **state)
{
    (void)state;
    pipeline("MSET a 1 b 2\r\nMGET a b c\r\nEXISTS a a c\r\nTOUCH a b\r\nDEL a c\r\nUNLINK a b\r\n",
             OK "*3\r\n$1\r\n1\r\n$1\r\n2\r\n$-1\r\n:2\r\n:2\r\n:1\r\n:1\r\n");
    assert_int_equal(rig.handed_out, 6);
    pipeline("MSETNX a 1 b 2\r\nMSETNX b 3 c 4\r\nMGET a b c\r\nMSETNX c 1\r\nMSETNX c 1 d 2 e\r\n",
             ":1\r\n:0\r\n*3\r\n$1\r\n1\r\n$1\r\n2\r\n$-1\r\n:1\r\n"
             "-ERR wrong number of arguments for 'msetnx' command\r\n");
    /* A key that is given twice has the last value. */
    pipeline("MSETNX k 1 k 2\r\nGET k\r\nMSET k 3 k 4\r\nGET k\r\n",
             ":1\r\n$1\r\n2\r\n+OK\r\n$1\r\n4\r\n");
    pipeline("MULTI\r\nMSETNX x 1 a 2\r\nMSETNX x 1 y 2\r\nMSETNX x 5\r\nMGET x y\r\nEXEC\r\n",
             OK QUEUED QUEUED QUEUED QUEUED "*4\r\n:0\r\n:1\r\n:0\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
}

static void test_pairs(void **state)
{
    (void)state;
    pipeline("RENAME a b\r\nRENAMENX a b\r\nCOPY a b\r\nRENAME a a\r\nCOPY a a\r\n",
             "-ERR no such key\r\n-ERR no such key\r\n:0\r\n-ERR no such key\r\n"
             "-ERR source and destination objects are the same\r\n");
    pipeline("SET a 1\r\nRENAME a b\r\nMGET a b\r\nSET a 2\r\nRENAMENX a b\r\nRENAMENX a c\r\n"
             "COPY b c\r\nCOPY b d\r\nCOPY b c REPLACE\r\nMGET a b c d\r\nRENAMENX b b\r\n",
             OK OK "*2\r\n$-1\r\n$1\r\n1\r\n" OK ":0\r\n:1\r\n:0\r\n:1\r\n:1\r\n"
                   "*4\r\n$-1\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n:0\r\n");
    pipeline("MULTI\r\nRENAME z z\r\nRENAME z a\r\nCOPY b b\r\nRENAME b z\r\nCOPY z b\r\n"
             "COPY z q DB 3\r\nGET q\r\nEXEC\r\n",
             OK QUEUED QUEUED QUEUED QUEUED QUEUED QUEUED QUEUED
             "*7\r\n-ERR no such key\r\n-ERR no such key\r\n"
             "-ERR source and destination objects are the same\r\n+OK\r\n:1\r\n:1\r\n$1\r\n1\r\n");
    pipeline("COPY b q DB 0\r\n",
             "-ERR COPY to another space is not supported: a transaction is of one space\r\n");
}

/* The same stream in pieces of any size, and answered late, gives the same. */
static void test_cuts(void **state)
{
    static const char stream[] =
        "WATCH a\r\nMULTI\r\nSET a 1\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$4\r\n\r\n\r\n\r\n"
        "MSET c 1 d 2\r\nEXEC\r\nMGET a b c\r\nMSET a 2 b 3\r\nDEL a b\r\n";
    static const char replies[] = OK OK QUEUED QUEUED QUEUED
        "*3\r\n+OK\r\n+OK\r\n+OK\r\n*3\r\n$1\r\n1\r\n$4\r\n\r\n\r\n\r\n$1\r\n1\r\n+OK\r\n:2\r\n";
    uint32_t n = sizeof stream - 1;

    (void)state;
    for (uint32_t piece = 1; piece <= n; piece++) {
        rig.output_n = 0;
        for (uint32_t at = 0; at < n; at += piece) {
            rig_feed(&rig, bytes_of(stream + at, n - at < piece ? n - at : piece));
            if (piece % 2 == 0) {
                (void)rig_run(&rig);
            } else {
                for (int i = 0; i < 4 && rig_next(&rig) != RESP_INPUT; i++) {
                }
            }
        }
        (void)rig_run(&rig);
        assert_string_equal((const char *)rig.output, replies);
        pipeline("DEL c d\r\n", ":2\r\n");
    }
}

/* While updates are held back a transaction that only reads goes on. */
static void test_held_back(void **state)
{
    (void)state;
    rig.updates = false;
    pipeline("MULTI\r\nGET a\r\nEXEC\r\nMGET a b\r\n",
             OK QUEUED "*1\r\n$-1\r\n*2\r\n$-1\r\n$-1\r\n");
    assert_string_equal(rig_send(&rig, "MSET a 1 b 2\r\n"), "");
    assert_int_equal(rig.last, RESP_WAIT);
    rig_feed(&rig, bytes_of("GET a\r\n", 7)); /* moves the input */
    rig.updates = true;
    (void)rig_run(&rig);
    assert_string_equal((const char *)rig.output, OK "$1\r\n1\r\n");
    rig.updates = false;
    assert_string_equal(rig_send(&rig, "MULTI\r\nINCR a\r\nEXEC\r\n"), OK QUEUED);
    assert_int_equal(rig.last, RESP_WAIT);
    rig.updates = true;
    rig.output_n = 0;
    (void)rig_run(&rig);
    assert_string_equal((const char *)rig.output, "*1\r\n:2\r\n");
}

static void test_silent(void **state)
{
    (void)state;
    pipeline("CLIENT REPLY OFF\r\nWATCH a\r\nMULTI\r\nSET a 1\r\nEXEC\r\nMSET b 1 c 2\r\n"
             "CLIENT REPLY ON\r\nMGET a b c\r\n",
             OK "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n2\r\n");
}

static void repeat(char *text, const char *what, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        text += sprintf(text, "%s", what);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

static void test_limits(void **state)
{
    char *text = malloc(1u << 20);

    (void)state;
    assert_non_null(text);
    /* Commands, operations, keys of one command, watches. */
    repeat(text, "GET a\r\n", TXN_OPS_MAX);
    pipeline("MULTI\r\n", OK);
    assert_true(ends_with(rig_send(&rig, text), QUEUED));
    rig_expect(&rig, "GET a", "-ERR a transaction has at most 1024 commands\r\n");
    rig_expect(&rig, "EXEC", ABORTED);
    repeat(text, "MGET a a\r\n", TXN_OPS_MAX / 2);
    pipeline("MULTI\r\n", OK);
    assert_true(ends_with(rig_send(&rig, text), QUEUED));
    assert_true(ends_with(rig_call(&rig, "EXEC"), "$-1\r\n"));
    pipeline("MULTI\r\nSET a 1\r\n", OK QUEUED);
    assert_true(ends_with(rig_send(&rig, text), QUEUED));
    rig_expect(&rig, "EXEC",
               "-EXECABORT Transaction discarded because of: it has more than 1024 operations on "
               "keys\r\n");
    rig_expect(&rig, "EXEC", NO_MULTI);
    strcpy(text, "MGET");
    repeat(text + 4, " a", TXN_OPS_MAX);
    assert_true(ends_with(rig_call(&rig, text), "$-1\r\n"));
    strcat(text, " a");
    rig_expect(&rig, text, "-ERR 'mget' takes at most 1024 keys in this space: it is one step\r\n");
    strcpy(text, "WATCH");
    repeat(text + 5, " a", TXN_OPS_MAX);
    rig_expect(&rig, text, OK);
    rig_expect(&rig, "WATCH b",
               "-ERR a connection watches at most 1024 keys, and no more bytes of them than a "
               "command may have\r\n");
    pipeline("MULTI\r\nGET a\r\nEXEC\r\nWATCH b\r\n", OK QUEUED "*1\r\n$-1\r\n" OK);
    /* What is too large in itself is a command's own error. */
    strcpy(text, "GET ");
    repeat(text + 4, "k", 70000);
    pipeline("MULTI\r\n", OK);
    rig_expect(&rig, text, QUEUED);
    strcpy(text, "MSET x 1 ");
    repeat(text + 9, "k", 70000);
    strcat(text, " 2");
    rig_expect(&rig, text, QUEUED);
    strcpy(text, "RENAME b ");
    repeat(text + 9, "k", 70000);
    rig_expect(&rig, text, QUEUED);
#define TOO_BIG "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"
    pipeline("SET b 1\r\nSETRANGE b 9223372036854775807 x\r\nEXISTS x b\r\nEXEC\r\n",
             QUEUED QUEUED QUEUED "*6\r\n" TOO_BIG TOO_BIG TOO_BIG "+OK\r\n" TOO_BIG ":1\r\n");
    /* Bytes. */
    rig.limits.query_bytes_max = 90;
    pipeline("MULTI\r\nGET aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"
             "GET bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\nGET c\r\nEXEC\r\n",
             OK QUEUED QUEUED "-ERR the transaction is larger than a command may be "
                              "(client-query-buffer-limit)\r\n" ABORTED);
    free(text);
}

/* Memory is given back: what is queued, watched, and what is over. */
static void test_memory(void **state)
{
    char *text = malloc(1u << 20);

    (void)state;
    assert_non_null(text);
    uint64_t idle = resp_conn_bytes_held(rig.conn);

    for (int i = 0; i < 1000; i++)
        (void)rig_send(&rig, "WATCH a b\r\nMULTI\r\nSET a 1\r\nGET b\r\nEXEC\r\nMGET a b\r\n");
    pipeline("\r\n", "");
    assert_true(resp_conn_bytes_held(rig.conn) < idle + 8192);
    repeat(text, "MULTI\r\nMGET a b c d\r\nEXEC\r\n", 1000);
    rig_feed(&rig, bytes_of(text, (uint32_t)strlen(text)));
    while (rig_next(&rig) != RESP_INPUT) {
        if (rig.ops_n > 0)
            rig_answer(&rig);
        assert_true(resp_conn_bytes_held(rig.conn) < idle + (2u << 20));
        rig.output_n = 0;
        rig_take(&rig);
    }
    pipeline("MULTI\r\nGET a\r\n", OK QUEUED);
    strcpy(text, "SET a ");
    repeat(text + 6, "x", 60000);
    strcat(text, "\r\n");
    pipeline(text, QUEUED);
    assert_true(resp_conn_bytes_held(rig.conn) > idle + 60000);
    free(text);
    rig_reconnect(&rig); /* with what is queued */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_exec),         TEST(test_errors),       TEST(test_queueing_errors),
        TEST(test_nested),       TEST(test_discard),      TEST(test_watch),
        TEST(test_watch_again),  TEST(test_watch_spaces), TEST(test_watch_fails),
        TEST(test_exec_fails),   TEST(test_direct),       TEST(test_deadlines),
        TEST(test_several_keys), TEST(test_pairs),        TEST(test_cuts),
        TEST(test_held_back),    TEST(test_silent),       TEST(test_limits),
        TEST(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
