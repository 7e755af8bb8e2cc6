/* A small cluster of real nodes in virtual time: what users are promised, one step at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/node_cluster.h"

static const struct hermes_config hermes = {.mlt_us = 10000, .grace_us = 2000000};

static struct cluster *three(uint32_t workers)
{
    struct cluster_config config = {
        .nodes = 3, .workers = {workers, workers, workers}, .hermes = hermes, .seed = 5};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    return c;
}

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static struct cluster_answer set(struct cluster *c, uint32_t node, const char *key,
                                 const char *value)
{
    struct op op = {.kind = OP_SET, .key = text(key), .value = text(value)};
    return cluster_call(c, node, &op);
}

static struct cluster_answer get(struct cluster *c, uint32_t node, const char *key)
{
    struct op op = {.kind = OP_GET, .key = text(key)};
    return cluster_call(c, node, &op);
}

static struct cluster_answer add(struct cluster *c, uint32_t node, const char *key, int64_t delta)
{
    struct op op = {.kind = OP_ADD, .key = text(key), .number = delta};
    return cluster_call(c, node, &op);
}

static void assert_value(struct cluster_answer a, const char *expected)
{
    assert_int_equal(a.kind, ANSWER_VALUE);
    assert_int_equal(a.n, strlen(expected));
    assert_memory_equal(a.value, expected, a.n);
}

static void a_write_is_read_everywhere(void **state)
{
    (void)state;
    struct cluster *c = three(1);
    for (uint32_t i = 0; i < 3; i++) {
        char value[16];
        snprintf(value, sizeof value, "v%u", i);
        assert_int_equal(set(c, i, "a", value).kind, ANSWER_OK);
        for (uint32_t k = 0; k < 3; k++) {
            assert_value(get(c, k, "a"), value);
        }
    }
    assert_int_equal(get(c, 1, "nothing").kind, ANSWER_NIL);
    cluster_destroy(c);
}

static void replies_say_which_version(void **state)
{
    (void)state;
    struct cluster *c = three(1);
    uint64_t first = set(c, 0, "a", "1").version;
    assert_int_not_equal(first, 0);
    uint64_t second = add(c, 1, "a", 1).version;
    assert_true(second > first);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(get(c, i, "a").version, second);
        assert_int_equal(get(c, i, "nothing").version, 0);
    }
    struct op unchanged = {.kind = OP_SET, .flags = OPF_NX, .key = text("a"), .value = text("3")};
    assert_int_equal(cluster_call(c, 2, &unchanged).version, second);
    struct op wrong = {.kind = OP_ADD, .key = text("b"), .number = 1};
    assert_int_equal(set(c, 0, "b", "text").kind, ANSWER_OK);
    struct cluster_answer a = cluster_call(c, 1, &wrong);
    assert_int_equal(a.kind, ANSWER_ERROR);
    assert_int_equal(a.version, 0);
    cluster_destroy(c);
}

static void updates_compute_on_the_newest_value(void **state)
{
    (void)state;
    struct cluster *c = three(1);
    for (int64_t i = 1; i <= 30; i++) {
        struct cluster_answer a = add(c, (uint32_t)(i % 3), "n", 1);
        assert_int_equal(a.kind, ANSWER_NUMBER);
        assert_int_equal(a.number, i);
    }
    struct op del = {.kind = OP_DELETE, .key = text("n")};
    assert_int_equal(cluster_call(c, 2, &del).number, 1);
    assert_int_equal(cluster_call(c, 0, &del).number, 0);
    assert_int_equal(get(c, 1, "n").kind, ANSWER_NIL);
    assert_int_equal(add(c, 1, "n", 7).number, 7);
    struct op type = {.kind = OP_ADD, .key = text("s"), .number = 1};
    assert_int_equal(set(c, 0, "s", "word").kind, ANSWER_OK);
    struct cluster_answer a = cluster_call(c, 2, &type);
    assert_int_equal(a.kind, ANSWER_ERROR);
    assert_int_equal(a.number, HK_ERR_TYPE);
    cluster_destroy(c);
}

static void large_values_travel(void **state)
{
    (void)state;
    static char big[300000];
    struct cluster *c = three(2);
    memset(big, 'x', sizeof big);
    struct op op = {.kind = OP_SET, .key = text("big"), .value = bytes_of(big, sizeof big)};
    assert_int_equal(cluster_call(c, 0, &op).kind, ANSWER_OK);
    struct op len = {.kind = OP_STRLEN, .key = text("big")};
    assert_int_equal(cluster_call(c, 2, &len).number, sizeof big);
    struct op append = {.kind = OP_APPEND, .key = text("big"), .value = text("yz")};
    assert_int_equal(cluster_call(c, 1, &append).number, sizeof big + 2);
    assert_int_equal(cluster_call(c, 2, &len).number, sizeof big + 2);
    cluster_destroy(c);
}

static void a_dead_member_is_dropped_and_comes_back(void **state)
{
    (void)state;
    struct cluster *c = three(2);
    for (uint32_t i = 0; i < 200; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%u", i);
        assert_int_equal(set(c, i % 3, key, key).kind, ANSWER_OK);
    }
    cluster_kill(c, 1);
    uint64_t before = cluster_now(c);
    assert_int_equal(set(c, 0, "k7", "new").kind, ANSWER_OK);
    /* The write waits for the drop: a lease and little more. */
    assert_true(cluster_now(c) - before < 300000);
    assert_value(get(c, 2, "k7"), "new");
    cluster_restart(c, 1);
    cluster_until(c, cluster_serving, NULL, 10000000);
    assert_value(get(c, 1, "k7"), "new");
    for (uint32_t i = 8; i < 200; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%u", i);
        assert_value(get(c, 1, key), key);
    }
    cluster_destroy(c);
}

static void a_minority_refuses(void **state)
{
    (void)state;
    struct cluster *c = three(1);
    assert_int_equal(set(c, 0, "a", "1").kind, ANSWER_OK);
    cluster_kill(c, 0);
    cluster_kill(c, 1);
    struct cluster_answer a = set(c, 2, "a", "2");
    assert_int_equal(a.kind, ANSWER_ERROR);
    for (int i = 0; i < 20; i++) {
        cluster_step(c, 100000);
    }
    a = get(c, 2, "a");
    assert_int_equal(a.kind, ANSWER_ERROR);
    assert_int_equal(a.number, HK_ERR_UNAVAILABLE);
    cluster_destroy(c);
}

static void values_expire_everywhere_at_once(void **state)
{
    (void)state;
    struct cluster *c = three(1);
    struct op op = {.kind = OP_SET,
                    .flags = OPF_DEADLINE,
                    .key = text("e"),
                    .value = text("soon gone"),
                    .number = (int64_t)(*cluster_wall_ms(c) + 300)};
    assert_int_equal(cluster_call(c, 0, &op).kind, ANSWER_OK);
    assert_value(get(c, 1, "e"), "soon gone");
    for (int i = 0; i < 40; i++) {
        cluster_step(c, 10000);
    }
    assert_int_equal(get(c, 2, "e").kind, ANSWER_NIL);
    assert_int_equal(get(c, 0, "e").kind, ANSWER_NIL);
    cluster_destroy(c);
}

/* An update whose new value is a piece of the old one: every member must get the bytes that the
 * coordinator stored. */
static void a_value_outlives_its_deadline_unharmed(void **state)
{
    (void)state;
    static char value[964];
    struct cluster *c = three(1);
    for (uint32_t i = 0; i < sizeof value; i++) {
        value[i] = (char)('a' + i % 23);
    }
    struct op op = {.kind = OP_SET,
                    .flags = OPF_DEADLINE,
                    .key = text("p"),
                    .value = bytes_of(value, sizeof value),
                    .number = (int64_t)(*cluster_wall_ms(c) + 1000000)};
    struct op persist = {.kind = OP_PERSIST, .key = text("p")};
    struct op expire = {.kind = OP_EXPIRE, .key = text("p"), .number = op.number};
    assert_int_equal(cluster_call(c, 0, &op).kind, ANSWER_OK);
    for (uint32_t round = 0; round < 3; round++) {
        assert_int_equal(cluster_call(c, round, round % 2 == 0 ? &persist : &expire).number, 1);
        for (uint32_t i = 0; i < 3; i++) {
            struct cluster_answer a = get(c, i, "p");
            assert_int_equal(a.n, sizeof value);
            assert_memory_equal(a.value, value, sizeof value);
        }
    }
    cluster_destroy(c);
}

/* The sweep's own deletion of an expired value ends when that value is there no more. */
static void an_expiry_that_comes_too_late_ends(void **state)
{
    (void)state;
    struct cluster *c = three(1);
    assert_int_equal(set(c, 0, "x", "stays").kind, ANSWER_OK);
    struct op expired = {.kind = OP_EXPIRED, .key = text("x"), .number = 5};
    assert_false(cluster_call(c, 1, &expired).applied);
    assert_value(get(c, 2, "x"), "stays");
    cluster_destroy(c);
}

static bool nothing_stored(struct cluster *c, void *context)
{
    (void)context;
    for (uint32_t i = 0; i < 3; i++) {
        struct store_stats s;
        store_stats(node_store(cluster_node(c, i), 0), &s);
        if (s.keys != 0) {
            return false;
        }
    }
    return true;
}

static void tombstones_are_forgotten_by_all(void **state)
{
    (void)state;
    struct cluster *c = three(1);
    for (uint32_t i = 0; i < 20; i++) {
        char key[16];
        snprintf(key, sizeof key, "t%u", i);
        assert_int_equal(set(c, i % 3, key, "x").kind, ANSWER_OK);
        struct op del = {.kind = OP_DELETE, .key = text(key)};
        assert_int_equal(cluster_call(c, (i + 1) % 3, &del).number, 1);
    }
    cluster_until(c, nothing_stored, NULL, 60000000);
    assert_int_equal(set(c, 1, "t3", "again").kind, ANSWER_OK);
    assert_value(get(c, 2, "t3"), "again");
    cluster_destroy(c);
}

static void asynchronous_reads_need_a_majority(void **state)
{
    (void)state;
    struct cluster_config config = {
        .nodes = 3, .workers = {1, 1, 1}, .hermes = hermes, .async_reads = true, .seed = 9};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    assert_int_equal(set(c, 0, "a", "1").kind, ANSWER_OK);
    assert_value(get(c, 1, "a"), "1");
    cluster_cut(c, 0, 2, true);
    cluster_cut(c, 1, 2, true);
    cluster_cut(c, 2, 0, true);
    cluster_cut(c, 2, 1, true);
    struct cluster_answer a = get(c, 2, "a");
    assert_int_equal(a.kind, ANSWER_ERROR);
    assert_value(get(c, 1, "a"), "1");
    cluster_destroy(c);
}

/* Reads whose confirmation never came leave nothing behind that goes on asking. */
static void unconfirmed_reads_leave_no_flow(void **state)
{
    (void)state;
    struct cluster_config config = {
        .nodes = 3, .workers = {1, 1, 1}, .hermes = hermes, .async_reads = true, .seed = 10};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    for (uint32_t i = 1; i < 3; i++) {
        cluster_cut(c, 0, i, true);
        cluster_cut(c, i, 0, true);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(get(c, 0, "a").kind, ANSWER_ERROR);
    }
    struct node_stats before;
    struct node_stats after;
    for (int i = 0; i < 20; i++) {
        cluster_step(c, 50000); /* a flow ends at its next timer */
    }
    node_stats(cluster_node(c, 0), &before);
    for (int i = 0; i < 100; i++) {
        cluster_step(c, 20000);
    }
    node_stats(cluster_node(c, 0), &after);
    assert_int_equal(after.messages_out, before.messages_out);
    cluster_destroy(c);
}

/* A donor with a large and empty index walks it in pieces: it has heartbeats to send. */
static void a_donation_goes_in_small_steps(void **state)
{
    (void)state;
    struct cluster_config config = {
        .nodes = 3, .workers = {1, 1, 1}, .hermes = hermes, .keys_expected = 200000, .seed = 6};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    assert_int_equal(set(c, 0, "a", "1").kind, ANSWER_OK);
    cluster_kill(c, 1);
    cluster_until(c, cluster_serving, NULL, 10000000);
    cluster_restart(c, 1);
    cluster_until(c, cluster_serving, NULL, 20000000);
    struct node_stats stats;
    node_stats(cluster_node(c, 1), &stats);
    assert_true(stats.chunks_in > 20);
    assert_value(get(c, 1, "a"), "1");
    cluster_destroy(c);
}

/* ---- Large values ---- */

#define LARGE_BYTES (600u * 1024u)
#define MOVED_MOST (8u << 20) /* by operations in one poll, before the last one */

/* Asks for the same operation `left` times and counts the answers. */
struct asker {
    struct op op;
    uint32_t session;
    uint32_t left, answers;
    uint8_t kind; /* of the last answer */
};

static bool ask(void *context, uint32_t node, uint32_t worker, struct request *request_out)
{
    struct asker *a = context;
    if (node != 0 || worker != 0 || a->left == 0) {
        return false;
    }
    a->left--;
    *request_out = (struct request){.session = a->session, .op = a->op};
    return true;
}

static void hear(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct asker *a = context;
    (void)node;
    (void)worker;
    a->answers++;
    a->kind = reply->answer.kind;
}

static struct cluster *large_cluster(struct asker *asker)
{
    struct cluster_config config = {
        .nodes = 3, .workers = {1, 1, 1}, .hermes = hermes, .seed = 5, .gives = true};
    if (asker != NULL) {
        config.client = (struct cluster_client){asker, ask, hear};
    }
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    if (asker != NULL) {
        struct worker *w = node_worker(cluster_node(c, 0), 0);
        assert_int_equal(worker_session_open(w, &asker->session), HK_OK);
    }
    return c;
}

static uint8_t *large_value(uint8_t first)
{
    uint8_t *value = malloc(LARGE_BYTES);
    assert_non_null(value);
    for (uint32_t i = 0; i < LARGE_BYTES; i++) {
        value[i] = (uint8_t)(first + i % 251);
    }
    return value;
}

static bool answered(struct cluster *c, void *context)
{
    const struct asker *a = context;
    (void)c;
    return a->left == 0 && a->answers > 0;
}

/* They leave without a copy, and stay what they were while the key goes on (cluster_destroy sees to
 * that, when the nodes are gone). */
static void large_values_are_given_away(void **state)
{
    (void)state;
    struct cluster *c = large_cluster(NULL);
    for (uint32_t i = 0; i < 6; i++) {
        uint8_t *value = large_value((uint8_t)i);
        struct op op = {
            .kind = OP_SET, .key = text("large"), .value = bytes_of(value, LARGE_BYTES - i)};
        uint32_t given = cluster_given(c);
        assert_int_equal(cluster_call(c, i % 3, &op).kind, ANSWER_OK);
        assert_int_equal(cluster_given(c), given + 2);
        free(value);
        for (uint32_t k = 0; k < 3; k++) {
            assert_int_equal(get(c, k, "large").n, LARGE_BYTES - i);
        }
    }
    struct op del = {.kind = OP_DELETE, .key = text("large")};
    assert_int_equal(cluster_call(c, 1, &del).number, 1);
    for (uint32_t i = 0; i < 100; i++) {
        cluster_step(c, 1000);
    }
    assert_int_equal(get(c, 2, "large").kind, ANSWER_NIL);
    assert_int_equal(set(c, 0, "small", "value").kind, ANSWER_OK);
    assert_int_equal(cluster_given(c), 12);
    cluster_destroy(c);
}

/* What is on its way is not sent again, nor is anybody suspected who cannot have it yet. */
static void large_values_are_waited_for(void **state)
{
    (void)state;
    uint8_t *value = large_value(1);
    struct asker asker = {
        .op = {.kind = OP_SET, .key = text("large"), .value = bytes_of(value, LARGE_BYTES)}};
    struct cluster *c = large_cluster(&asker);
    struct node_status before, after;
    node_status(cluster_node(c, 0), cluster_now(c), &before);
    cluster_delay_large(c, true);
    asker.left = 1;
    for (uint32_t i = 0; i < 2000; i++) {
        cluster_step(c, 1000); /* ten leases, 200 times mlt */
    }
    assert_int_equal(asker.answers, 0);
    assert_int_equal(cluster_given(c), 2);
    cluster_delay_large(c, false);
    cluster_until(c, answered, &asker, 2000000);
    assert_int_equal(asker.kind, ANSWER_OK);
    assert_int_equal(cluster_given(c), 4);
    node_status(cluster_node(c, 0), cluster_now(c), &after);
    assert_int_equal(after.view.epoch, before.view.epoch);
    cluster_destroy(c);
    free(value);
}

/* ... but not for ever: what says that it is on its way may be wrong. */
static void large_values_are_sent_again_in_the_end(void **state)
{
    (void)state;
    uint8_t *value = large_value(1);
    struct asker asker = {
        .op = {.kind = OP_SET, .key = text("large"), .value = bytes_of(value, LARGE_BYTES)}};
    struct cluster *c = large_cluster(&asker);
    cluster_delay_large(c, true);
    asker.left = 1;
    for (uint32_t i = 0; i < 6000; i++) {
        cluster_step(c, 1000);
    }
    assert_true(cluster_given(c) > 2);
    cluster_destroy(c);
    free(value);
}

/* A poll that would move too much stops early, says so, and is asked for again at once. */
static void a_poll_moves_a_bounded_number_of_bytes(void **state)
{
    (void)state;
    uint8_t *value = large_value(1);
    struct asker asker = {
        .op = {.kind = OP_SET, .key = text("large"), .value = bytes_of(value, LARGE_BYTES)}};
    struct cluster *c = large_cluster(&asker);
    struct worker *w = node_worker(cluster_node(c, 0), 0);
    asker.left = 1;
    cluster_until(c, answered, &asker, 1000000);
    asker.op = (struct op){.kind = OP_GET, .key = text("large")};
    asker.answers = 0;
    asker.left = 40;
    uint32_t polls = 0;
    while (asker.answers < 40) {
        uint32_t answers = asker.answers;
        struct poll_result r = worker_poll(w, cluster_now(c), 64);
        assert_true(asker.answers > answers);
        assert_true(asker.answers - answers <= MOVED_MOST / LARGE_BYTES + 1);
        assert_int_equal((r.flags & POLL_LONG) != 0, asker.answers < 40);
        if (asker.answers < 40) {
            assert_true(worker_deadline(w) <= cluster_now(c));
        }
        polls++;
    }
    assert_in_range(polls, 40 * LARGE_BYTES / MOVED_MOST, 40 * LARGE_BYTES / MOVED_MOST + 1);
    cluster_destroy(c);
    free(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_is_read_everywhere),
        cmocka_unit_test(replies_say_which_version),
        cmocka_unit_test(updates_compute_on_the_newest_value),
        cmocka_unit_test(large_values_travel),
        cmocka_unit_test(large_values_are_given_away),
        cmocka_unit_test(large_values_are_waited_for),
        cmocka_unit_test(large_values_are_sent_again_in_the_end),
        cmocka_unit_test(a_poll_moves_a_bounded_number_of_bytes),
        cmocka_unit_test(a_dead_member_is_dropped_and_comes_back),
        cmocka_unit_test(a_minority_refuses),
        cmocka_unit_test(values_expire_everywhere_at_once),
        cmocka_unit_test(a_value_outlives_its_deadline_unharmed),
        cmocka_unit_test(an_expiry_that_comes_too_late_ends),
        cmocka_unit_test(tombstones_are_forgotten_by_all),
        cmocka_unit_test(asynchronous_reads_need_a_majority),
        cmocka_unit_test(unconfirmed_reads_leave_no_flow),
        cmocka_unit_test(a_donation_goes_in_small_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
