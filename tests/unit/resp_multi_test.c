/* MULTI is refused, and what may have been meant as its transaction does not run. */
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

#define REFUSED                                                                                    \
    "-ERR 'multi' is not supported in space 0 (engine hermes): transactions are for spaces of "    \
    "the engines zeus and lotus\r\n"
#define NOT_RUN "-ERR not run: the MULTI before it was refused\r\n"
#define ABORTED "-EXECABORT Transaction discarded because of previous errors.\r\n"
#define OPEN_US 1000000u

static struct rig rig;

static int set_up(void **state)
{
    (void)state;
    rig_init(&rig);
    rig.awake = true;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_deinit(&rig);
    return 0;
}

static const char pipeline[] =
    "SET a 1\r\nMULTI\r\nSET a 2\r\nINCR b\r\nEXEC\r\nGET a\r\nGET b\r\n";
static const char replies[] = "+OK\r\n" REFUSED NOT_RUN NOT_RUN ABORTED "$1\r\n1\r\n$-1\r\n";

static void test_pipeline(void **state)
{
    (void)state;
    assert_string_equal(rig_send(&rig, pipeline), replies);
    assert_int_equal(rig.last, RESP_INPUT);
    assert_int_equal(resp_conn_deadline(rig.conn), UINT64_MAX);
}

/* The rest of a pipeline may come long after MULTI's reply has left: it does not run either. */
static void test_cuts(void **state)
{
    uint32_t n = sizeof pipeline - 1;

    (void)state;
    for (uint32_t piece = 1; piece <= n; piece++) {
        rig.output_n = 0;
        for (uint32_t at = 0; at < n; at += piece) {
            rig_feed(&rig, bytes_of(pipeline + at, n - at < piece ? n - at : piece));
            (void)rig_run(&rig);
            rig.now_us += 1000;
        }
        assert_string_equal((const char *)rig.output, replies);
    }
}

static void test_one_by_one(void **state)
{
    (void)state;
    assert_string_equal(rig_call(&rig, "MULTI"), REFUSED);
    assert_int_equal(rig.last, RESP_WAIT);
    assert_int_equal(resp_conn_deadline(rig.conn), rig.now_us + OPEN_US);
    rig.now_us += 10;
    assert_string_equal(rig_call(&rig, "SET a 2"), NOT_RUN);
    assert_int_equal(resp_conn_deadline(rig.conn), rig.now_us - 10 + OPEN_US);
    assert_string_equal(rig_call(&rig, "EXEC"), ABORTED);
    assert_int_equal(rig.last, RESP_INPUT);
    assert_string_equal(rig_call(&rig, "GET a"), "$-1\r\n");
    assert_string_equal(rig_call(&rig, "EXEC"), "-ERR EXEC without MULTI\r\n");
}

/* Nothing but the four ends of it runs, whatever it is. */
static void test_nothing_runs(void **state)
{
    static const char *const words[] = {
        "SET a 1",    "GET a",     "MGET a b", "MULTI",     "WATCH a",         "UNWATCH",
        "PING",       "SELECT 1",  "HELLO 3",  "NOSUCH x",  "CLIENT REPLY ON", "GET",
        "CLIENT bad", "FLUSHALL",  "KEYS *",   "SET a b x", "AUTH a b",        "SHUTDOWN NOW",
        "LPUSH a b",  "SUBSCRIBE", "INFO",     "",
    };

    (void)state;
    assert_string_equal(rig_call(&rig, "MULTI"), REFUSED);
    for (uint32_t i = 0; words[i][0] != '\0'; i++)
        assert_string_equal(rig_call(&rig, words[i]), NOT_RUN);
    assert_int_equal(rig.handed_out, 0);
    assert_string_equal(rig_send(&rig, "\r\n\r\n"), "");
    assert_string_equal(rig_call(&rig, "EXEC"), ABORTED);
    assert_string_equal(rig_call(&rig, "CLIENT REPLY ON"), "+OK\r\n");
}

static void test_discard(void **state)
{
    (void)state;
    assert_string_equal(rig_send(&rig, "MULTI\r\nSET a 1\r\nDISCARD\r\nDISCARD\r\nEXISTS a\r\n"),
                        REFUSED NOT_RUN "+OK\r\n-ERR DISCARD without MULTI\r\n:0\r\n");
}

static void test_reset(void **state)
{
    (void)state;
    assert_string_equal(rig_send(&rig, "HELLO 3\r\nMULTI\r\nSET a 1\r\nRESET\r\nGET a\r\n") +
                            rig.output_n - strlen(NOT_RUN "+RESET\r\n$-1\r\n"),
                        NOT_RUN "+RESET\r\n$-1\r\n");
    assert_int_equal(rig.last, RESP_INPUT);
}

static void test_quit(void **state)
{
    (void)state;
    assert_string_equal(rig_send(&rig, "MULTI\r\nSET a 1\r\nQUIT\r\nSET a 2\r\n"),
                        REFUSED NOT_RUN "+OK\r\n");
    assert_int_equal(rig.last, RESP_CLOSE);
    assert_int_equal(rig.handed_out, 0);
}

/* Who sends something else than an end of it gets a new connection after a second, not errors for
 * ever; and so does who sends nothing. Until then nothing runs, however steadily it comes. */
static void test_time(void **state)
{
    (void)state;
    assert_string_equal(rig_call(&rig, "MULTI"), REFUSED);
    for (int i = 0; i < 99; i++) {
        rig.now_us += OPEN_US / 100;
        assert_string_equal(rig_call(&rig, "INCR a"), NOT_RUN);
    }
    rig.now_us += OPEN_US / 100;
    assert_string_equal(rig_call(&rig, "INCR a"), "");
    assert_int_equal(rig.last, RESP_CLOSE);
    assert_int_equal(rig.handed_out, 0);

    rig_reconnect(&rig);
    rig.awake = false;
    assert_string_equal(rig_send(&rig, "MULTI\r\nSET a"), REFUSED);
    assert_int_equal(rig.last, RESP_CLOSE);
}

/* Output that nobody takes does not keep it open either. */
static void test_time_unread(void **state)
{
    static char many[100 * 9 + 1];

    (void)state;
    for (int i = 0; i < 100; i++)
        strcat(many, "INCR aa\r\n");
    rig_feed(&rig, bytes_of("MULTI\r\n", 7));
    for (int i = 0; i < 1000 && rig_next(&rig) != RESP_WAIT; i++) {
    }
    while (resp_conn_hungry(rig.conn)) {
        rig_feed(&rig, bytes_of(many, 900));
        while (rig_next(&rig) == RESP_AGAIN) {
        }
    }
    assert_int_equal(rig.last, RESP_WAIT);
    rig.now_us += OPEN_US;
    assert_int_equal(rig_next(&rig), RESP_CLOSE);
    assert_int_equal(rig.handed_out, 0);
}

/* The refusal itself need not be wanted. */
static void test_silent(void **state)
{
    (void)state;
    assert_string_equal(
        rig_send(&rig, "CLIENT REPLY SKIP\r\nMULTI\r\nSET a 1\r\nEXEC\r\nGET a\r\n"),
        NOT_RUN ABORTED "$-1\r\n");
    assert_string_equal(rig_send(&rig, "CLIENT REPLY OFF\r\nMULTI\r\nSET a 1\r\nEXEC\r\n"
                                       "CLIENT REPLY ON\r\nGET a\r\n"),
                        "+OK\r\n$-1\r\n");
}

/* MULTI waits for what is in flight before it, and that is answered as ever. */
static void test_in_flight(void **state)
{
    (void)state;
    rig_feed(&rig, bytes_of("SET a 1\r\nMULTI\r\nSET a 2\r\nEXEC\r\n", 32));
    assert_int_equal(rig_next(&rig), RESP_OP);
    assert_int_equal(rig_next(&rig), RESP_WAIT);
    assert_int_equal(rig_next(&rig), RESP_WAIT);
    rig.output_n = 0;
    (void)rig_run(&rig);
    assert_string_equal((const char *)rig.output, "+OK\r\n" REFUSED NOT_RUN ABORTED);
    assert_int_equal(rig.handed_out, 1);
}

/* A stranger's MULTI says nothing about the time after AUTH; a joining node refuses it as any. */
static void test_not_served(void **state)
{
    (void)state;
    rig.serving = HK_ERR_LOADING;
    assert_string_equal(rig_send(&rig, "MULTI\r\n"), REFUSED);
    rig.serving = HK_OK;
    assert_string_equal(rig_send(&rig, "SET a 1\r\nEXEC\r\n"), NOT_RUN ABORTED);

    rig.password = "sesame";
    rig_reconnect(&rig);
    assert_string_equal(rig_send(&rig, "MULTI\r\nAUTH sesame\r\nGET a\r\n"),
                        "-NOAUTH Authentication required.\r\n+OK\r\n$-1\r\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_pipeline),    TEST(test_cuts),   TEST(test_one_by_one), TEST(test_nothing_runs),
        TEST(test_discard),     TEST(test_reset),  TEST(test_quit),       TEST(test_time),
        TEST(test_time_unread), TEST(test_silent), TEST(test_in_flight),  TEST(test_not_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
