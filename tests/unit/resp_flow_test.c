/* How much a connection asks for at once, and what it holds while others decide how fast it goes:
 * clients that read slowly, values of any size, replies that nobody wants. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/resp_rig.h"

#define MIB (1024u * 1024u)

static struct rig rig;
static char *large; /* of 64 MiB */

static int set_up(void **state)
{
    (void)state;
    rig_init(&rig);
    rig.value_max = 64 * MIB;
    rig.limits = (struct resp_limits){.bulk_bytes_max = 64 * MIB,
                                      .arguments_max = 1024 * 1024,
                                      .query_bytes_max = 128 * MIB,
                                      .output_bytes_max = 256 * MIB};
    large = malloc(64 * MIB);
    assert_non_null(large);
    memset(large, 'v', 64 * MIB);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_deinit(&rig);
    free(large);
    return 0;
}

static void feed(const char *text)
{
    rig_feed(&rig, bytes_of(text, (uint32_t)strlen(text)));
}

/* Feeds SET of a value of so many bytes. */
static void feed_set(const char *key, uint32_t bytes)
{
    char head[100];

    (void)snprintf(head, sizeof head, "*3\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$%u\r\n", strlen(key), key,
                   bytes);
    feed(head);
    rig_feed(&rig, bytes_of(large, bytes));
    feed("\r\n");
}

static void set(const char *key, uint32_t bytes)
{
    feed_set(key, bytes);
    assert_int_equal(rig_run(&rig), RESP_INPUT);
}

/* One poll: all that is handed out is answered, then all that may leave does. Returns the most
 * bytes that were held. */
static uint64_t poll(uint32_t *most_ops)
{
    uint64_t held = 0;

    while (rig_next(&rig) == RESP_OP) {
    }
    if (rig.ops_n > *most_ops)
        *most_ops = rig.ops_n;
    while (rig.ops_n > 0)
        rig_answer(&rig);
    held = resp_conn_bytes_held(rig.conn);
    rig.output_n = 0;
    rig_take(&rig);
    return held;
}

/* A pipeline of reads: the output of the client that takes it between the polls is bounded. */
static uint64_t read_all(uint32_t reads, const char *command, uint64_t *bytes_out,
                         uint32_t *ops_out)
{
    uint64_t most = 0;

    *bytes_out = 0;
    *ops_out = 0;
    for (uint32_t i = 0; i < reads; i++)
        feed(command);
    do {
        uint64_t held = poll(ops_out);

        most = held > most ? held : most;
        *bytes_out += rig.output_n;
    } while (rig.last != RESP_INPUT && rig.last != RESP_CLOSE);
    assert_int_equal(rig.last, RESP_INPUT);
    return most;
}

static void test_large_reads(void **state)
{
    uint64_t bytes = 0;
    uint32_t ops = 0;

    (void)state;
    set("a", 8 * MIB);
    assert_true(read_all(200, "GET a\r\n", &bytes, &ops) < 64 * MIB);
    assert_int_equal(bytes, 200ull * (8 * MIB + 2 + 10));
    assert_true(ops <= 3);
}

/* Also those of the largest size, and as the first thing that a connection asks for. */
static void test_largest_reads(void **state)
{
    uint64_t bytes = 0;
    uint32_t ops = 0;

    (void)state;
    set("a", 64 * MIB);
    rig_reconnect(&rig);
    (void)read_all(6, "GET a\r\n", &bytes, &ops);
    assert_int_equal(bytes, 6ull * (64 * MIB + 2 + 11));
    assert_int_equal(ops, 3);
    (void)read_all(6, "GETRANGE a 0 -1\r\n", &bytes, &ops);
    assert_int_equal(ops, 1);
}

/* Small answers soon make it as many as ever; writes were never fewer. */
static void test_small_reads(void **state)
{
    uint64_t bytes = 0;
    uint32_t ops = 0;

    (void)state;
    set("a", 8 * MIB);
    (void)read_all(10, "GET a\r\n", &bytes, &ops);
    (void)read_all(1000, "GET b\r\n", &bytes, &ops);
    assert_int_equal(ops, RESP_IN_FLIGHT_MAX);
    (void)read_all(3, "GET a\r\n", &bytes, &ops);
    (void)read_all(300, "SET b 1\r\n", &bytes, &ops);
    assert_int_equal(ops, RESP_IN_FLIGHT_MAX);
    (void)read_all(1, "SET a 1 GET\r\n", &bytes, &ops);
    (void)read_all(8, "SET b 1 GET\r\n", &bytes, &ops);
    assert_true(ops <= 3);
}

/* While a MiB of finished replies waits nothing is handed out, not even of a command that has
 * begun. */
static void test_unread(void **state)
{
    (void)state;
    set("a", 700 * 1024);
    rig_reconnect(&rig);
    feed("GET a\r\nGET a\r\nMGET b a b c d\r\n");
    for (int i = 0; i < 3; i++)
        assert_int_equal(rig_next(&rig), RESP_OP);
    assert_int_equal(rig_next(&rig), RESP_WAIT);
    rig_answer(&rig);
    rig_answer(&rig);
    assert_int_equal(rig_next(&rig), RESP_WAIT);
    rig_answer(&rig);
    assert_int_equal(rig_next(&rig), RESP_WAIT);
    rig.output_n = 0;
    rig_take(&rig);
    assert_int_equal(rig_next(&rig), RESP_OP);
    assert_int_equal(rig_run(&rig), RESP_INPUT);
}

/* Replies that nobody wants cost no memory. */
static void test_silent_reads(void **state)
{
    (void)state;
    set("a", 8 * MIB);
    rig.output_n = 0;
    rig_take(&rig);
    assert_string_equal(rig_send(&rig, "CLIENT REPLY OFF\r\n"), "");
    for (int i = 0; i < 20; i++) {
        feed("GET a\r\nMGET a a\r\nCOMMAND\r\nGETRANGE a 0 -1\r\n");
        do {
            while (rig_next(&rig) == RESP_OP) {
            }
            while (rig.ops_n > 0)
                rig_answer(&rig);
        } while (rig.last != RESP_INPUT);
    }
    assert_int_equal(resp_conn_output(rig.conn).n, 0);
    assert_true(resp_conn_bytes_held(rig.conn) < 40 * 1024);
    assert_string_equal(rig_send(&rig, "CLIENT REPLY ON\r\nGET b\r\n"), "+OK\r\n$-1\r\n");
}

/* A large command's buffer goes although the next command has begun. */
static void test_input_shrinks(void **state)
{
    char get[] = "GET bb\r\n";

    (void)state;
    feed_set("a", 8 * MIB);
    feed("GE");
    rig.output_n = 0;
    assert_int_equal(rig_run(&rig), RESP_INPUT);
    assert_string_equal((char *)rig.output, "+OK\r\n");
    assert_true(resp_conn_bytes_held(rig.conn) <= MIB + 40 * 1024);
    assert_string_equal(rig_send(&rig, get + 2), "$-1\r\n");

    /* Nor does one stay that is held back behind a large one: its bytes move along. */
    feed_set("a", 8 * MIB);
    assert_int_equal(rig_next(&rig), RESP_OP);
    rig.updates = false;
    feed("*5\r\n$4\r\nMSET\r\n$1\r\nx\r\n$1\r\n1\r\n$1\r\ny\r\n$1\r\n2\r\nGET x\r\n");
    assert_int_equal(rig_run(&rig), RESP_WAIT);
    assert_true(resp_conn_bytes_held(rig.conn) <= MIB + 40 * 1024);
    feed("GET y\r\n");
    rig.updates = true;
    rig.output_n = 0;
    assert_int_equal(rig_run(&rig), RESP_INPUT);
    assert_string_equal((char *)rig.output, "+OK\r\n$1\r\n1\r\n$1\r\n2\r\n");
}

/* A pattern and keys that take long to compare: others get their turn in between. */
static void test_long_patterns(void **state)
{
    char pattern[1001], command[1100];
    uint32_t slices = 0;

    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        char head[64];

        memset(large, 'a', 60000);
        (void)snprintf(large, 8, "%06u", i);
        large[6] = 'a';
        (void)snprintf(head, sizeof head, "*3\r\n$3\r\nSET\r\n$60000\r\n");
        feed(head);
        rig_feed(&rig, bytes_of(large, 60000));
        feed("\r\n$1\r\nv\r\n");
    }
    assert_int_equal(rig_run(&rig), RESP_INPUT);
    memset(pattern, 'a', 1000);
    pattern[0] = '*';
    pattern[999] = 'b';
    pattern[1000] = '\0';
    (void)snprintf(command, sizeof command, "KEYS %s\r\n", pattern);
    feed(command);
    while (rig_next(&rig) == RESP_AGAIN)
        slices++;
    assert_int_equal(rig.last, RESP_INPUT);
    assert_in_range(slices, 19, 21);
    (void)snprintf(command, sizeof command, "SCAN 0 COUNT 1000 MATCH %s\r\n", pattern);
    feed(command);
    for (slices = 0; rig_next(&rig) == RESP_AGAIN;)
        slices++;
    assert_in_range(slices, 19, 21);
    rig.output_n = 0;
    rig_take(&rig);
    assert_string_equal((char *)rig.output, "*0\r\n*2\r\n$1\r\n0\r\n*0\r\n");
}

/* The connection may end with whatever it has in flight. */
static void test_destroyed_in_flight(void **state)
{
    (void)state;
    feed("SET a 1\r\nMGET a b c d e f g\r\n");
    while (rig_next(&rig) == RESP_OP) {
    }
    assert_int_equal(rig.ops_n, 4);
    rig_reconnect(&rig);
    feed("FLUSHALL\r\n");
    while (rig_next(&rig) == RESP_AGAIN) {
    }
    rig_reconnect(&rig);
    assert_string_equal(rig_send(&rig, "PING\r\n"), "+PONG\r\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_large_reads),   TEST(test_largest_reads),       TEST(test_small_reads),
        TEST(test_unread),        TEST(test_silent_reads),        TEST(test_input_shrinks),
        TEST(test_long_patterns), TEST(test_destroyed_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
