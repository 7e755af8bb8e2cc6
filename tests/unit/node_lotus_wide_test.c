/* Many wide ranges at a time (P11 of docs/protocols/lotus.md): a poll does a part of them only, and
 * memory stays bounded where they are read and where they are brought together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/lotus/lotus.h"
#include "support/node_desk.h"

#define MIB (1u << 20)
#define ROWS 12u /* of a MiB: one range brings so many */
#define RANGES 12u

static struct desk desk;
static struct cluster *c;
static char value[MIB];

static void open_desk(uint32_t nodes, const struct lotus_config *lotus)
{
    struct cluster_config config = {.nodes = nodes, .ops = &lotus_ops, .engine = lotus, .seed = 9};
    config.sessions_max = 64;
    for (uint32_t i = 0; i < nodes; i++) {
        config.workers[i] = 1;
    }
    desk_start(&desk, &config);
    c = desk.cluster;
}

static struct node_stats stats_of(uint32_t node)
{
    struct node_stats s;
    node_stats(cluster_node(c, node), &s);
    return s;
}

static void set(const char *key, uint32_t bytes)
{
    struct op op = desk_set(key, "");
    op.value = bytes_of(value, bytes);
    struct request request = {.op = op};
    uint32_t tag = desk_hand(&desk, 0, desk.sessions[0], &request);
    assert_int_equal(desk_answer(&desk, tag).kind, ANSWER_OK);
}

/* A {tag} whose keys are at that node, with ROWS of a MiB. */
static void fill(uint32_t node, char tag[4])
{
    char key[16];
    for (char letter = 'a';; letter++) {
        assert_true(letter <= 'z');
        uint64_t before = stats_of(node).home_wholes;
        (void)snprintf(tag, 4, "{%c}", letter);
        (void)snprintf(key, sizeof key, "%s00", tag);
        set(key, 1);
        if (stats_of(node).home_wholes > before) {
            break;
        }
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        (void)snprintf(key, sizeof key, "%s%02u", tag, i);
        set(key, MIB);
    }
}

/* Hands in `n` times the same range, each by a client of its own. Returns the first's tag. */
static uint32_t ask(uint32_t node, const struct txn_request *txn, uint32_t n)
{
    struct request request = {.txn = txn};
    uint32_t first = desk_hand(&desk, node, desk_session(&desk, node), &request);
    for (uint32_t i = 1; i < n; i++) {
        (void)desk_hand(&desk, node, desk_session(&desk, node), &request);
    }
    return first;
}

/* The server reads a little in each poll, and no more than can leave while nobody takes it. */
static void a_server_reads_with_measure(void **state)
{
    struct lotus_config lotus = {.lock.policy = LOCK_WOUND_WAIT};
    char tag[4], end[4];
    (void)state;
    open_desk(2, &lotus);
    fill(0, tag);
    (void)snprintf(end, sizeof end, "%c%c~", tag[0], tag[1]);
    struct op range = {.kind = TXN_OP_RANGE, .key = desk_text(tag), .arg = desk_text(end)};
    struct txn_request txn = {.ops = &range, .ops_n = 1};
    uint64_t before = stats_of(0).home_read, most = 0, all = before;
    uint32_t first = ask(1, &txn, RANGES);
    cluster_step(c, 100);
    cluster_step(c, 100);
    cluster_stall(c, 1, 0, true);
    for (uint32_t i = 0; i < 100; i++) {
        uint64_t now = stats_of(0).home_read;
        most = now - all > most ? now - all : most;
        all = now;
        cluster_step(c, 100);
    }
    assert_in_range(most, 1, 18);                 /* 8 MiB of messages, 8 of work, and two rows */
    assert_in_range(all - before, 60, 80 + ROWS); /* 64 MiB under way, and a whole answer */
    cluster_stall(c, 1, 0, false);
    for (uint32_t i = 0; i < RANGES; i++) {
        assert_int_equal(desk_answer(&desk, first + i).kind, ANSWER_OK);
    }
    assert_int_equal(stats_of(0).home_read - before, RANGES * ROWS);
    cluster_destroy(c);
}

/* A range over both servers waits for one of them: its coordinator keeps what the other has sent,
 * up to 256 MiB of all together. Who is refused begins again, and is answered like all. */
static void a_coordinator_keeps_with_measure(void **state)
{
    struct lotus_config lotus = {.lock.policy = LOCK_WOUND_WAIT};
    const uint32_t n = 256 / ROWS + 3;
    char tag[4];
    (void)state;
    open_desk(3, &lotus);
    fill(0, tag);
    struct op range = {.kind = TXN_OP_RANGE, .key = desk_text(tag), .arg = desk_text("~")};
    struct txn_request txn = {.ops = &range, .ops_n = 1};
    cluster_stall(c, 2, 0, true);
    uint32_t first = ask(1, &txn, n);
    for (uint32_t i = 0; i < 100; i++) {
        cluster_step(c, 200);
    }
    assert_int_equal(stats_of(1).txn_aborts, 0); /* all wait for node 2 */
    cluster_stall(c, 2, 0, false);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(desk_answer(&desk, first + i).kind, ANSWER_OK);
    }
    assert_in_range(stats_of(1).txn_aborts, 3, 1000);
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_reads_with_measure),
        cmocka_unit_test(a_coordinator_keeps_with_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
