/* Reads on a thread that is no worker's: what they answer themselves, and what they leave to a
 * worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/read.h"
#include "support/node_cluster.h"

static const struct hermes_config hermes = {.mlt_us = 10000, .grace_us = 2000000};

static struct cluster *start(uint32_t nodes, bool async_reads)
{
    struct cluster_config config = {.nodes = nodes,
                                    .workers = {1, 1, 1},
                                    .hermes = hermes,
                                    .async_reads = async_reads,
                                    .seed = 11};
    return cluster_create(&config);
}

static struct cluster *serving(uint32_t nodes)
{
    struct cluster *c = start(nodes, false);
    cluster_until(c, cluster_serving, NULL, 10000000);
    return c;
}

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static void run(struct cluster *c, uint32_t node, struct op op)
{
    assert_int_not_equal(cluster_call(c, node, &op).kind, ANSWER_ERROR);
}

static struct node_reader *reader_of(struct cluster *c, uint32_t node)
{
    struct node_reader *r = NULL;
    assert_int_equal(node_reader_open(cluster_node(c, node), &r), HK_OK);
    return r;
}

static struct node_read read_at(struct cluster *c, struct node_reader *r, const char *key,
                                uint64_t now_us)
{
    (void)c;
    struct node_read read = {.key = text(key), .answer = 99};
    node_read(r, 0, now_us, 1, &read);
    return read;
}

static struct node_read read_now(struct cluster *c, struct node_reader *r, const char *key)
{
    return read_at(c, r, key, cluster_now(c));
}

static void assert_found(struct node_read read, const char *value)
{
    assert_int_equal(read.answer, NODE_READ_FOUND);
    assert_int_equal(read.value.n, strlen(value));
    assert_memory_equal(read.value.at, value, read.value.n);
    assert_true(read.version > 0);
}

static void every_node_answers_the_newest_value(void **state)
{
    (void)state;
    struct cluster *c = serving(3);
    struct node_reader *readers[3];
    uint64_t version = 0;
    for (uint32_t i = 0; i < 3; i++) {
        readers[i] = reader_of(c, i);
        assert_int_equal(read_now(c, readers[i], "a").answer, NODE_READ_ABSENT);
    }
    for (uint32_t i = 0; i < 6; i++) {
        char value[8];
        snprintf(value, sizeof value, "v%u", i);
        run(c, i % 3, (struct op){.kind = OP_SET, .key = text("a"), .value = text(value)});
        cluster_step(c, 100); /* VALs arrive */
        for (uint32_t k = 0; k < 3; k++) {
            assert_found(read_now(c, readers[k], "a"), value);
        }
        assert_true(read_now(c, readers[0], "a").version > version);
        version = read_now(c, readers[0], "a").version;
        assert_true(read_now(c, readers[2], "a").version == version);
    }
    run(c, 1, (struct op){.kind = OP_DELETE, .key = text("a")});
    cluster_step(c, 100);
    assert_int_equal(read_now(c, readers[0], "a").answer, NODE_READ_ABSENT);
    for (uint32_t i = 0; i < 3; i++) {
        node_reader_close(readers[i]);
    }
    cluster_destroy(c);
}

static void a_batch_is_as_many_single_reads(void **state)
{
    (void)state;
    static char large[STORE_INLINE_MAX + 100];
    char names[NODE_READ_MAX][16];
    struct cluster *c = serving(1);
    memset(large, 'x', sizeof large);
    for (uint32_t i = 0; i < NODE_READ_MAX; i++) {
        snprintf(names[i], sizeof names[i], "key%u", i);
        uint32_t n = i == 7 ? (uint32_t)sizeof large : 1 + i * 15;
        if (i % 5 != 0) {
            large[0] = (char)('a' + i % 26);
            run(c, 0,
                (struct op){.kind = OP_SET, .key = text(names[i]), .value = bytes_of(large, n)});
        }
    }
    struct node_reader *r = reader_of(c, 0);
    for (uint32_t n = 1; n <= NODE_READ_MAX; n++) {
        struct node_read reads[NODE_READ_MAX];
        for (uint32_t i = 0; i < n; i++) {
            reads[i] = (struct node_read){.key = text(names[i])};
        }
        node_read(r, 0, cluster_now(c), n, reads);
        for (uint32_t i = 0; i < n; i++) {
            if (i % 5 == 0) {
                assert_int_equal(reads[i].answer, NODE_READ_ABSENT);
                continue;
            }
            large[0] = (char)('a' + i % 26);
            assert_int_equal(reads[i].answer, NODE_READ_FOUND);
            assert_int_equal(reads[i].value.n, i == 7 ? sizeof large : 1 + i * 15);
            assert_memory_equal(reads[i].value.at, large, reads[i].value.n);
        }
    }
    node_reader_close(r);
    cluster_destroy(c);
}

/* Without a lease others may have decided a view without this node. */
static void without_a_lease_a_worker_is_asked(void **state)
{
    (void)state;
    struct cluster *c = start(3, false);
    struct node_reader *early = reader_of(c, 0);
    assert_int_equal(read_now(c, early, "a").answer, NODE_READ_ASK);
    cluster_until(c, cluster_serving, NULL, 10000000);
    run(c, 0, (struct op){.kind = OP_SET, .key = text("a"), .value = text("1")});
    struct node_status status;
    node_status(cluster_node(c, 0), cluster_now(c), &status);
    assert_found(read_at(c, early, "a", status.lease_until_us - 1), "1");
    assert_int_equal(read_at(c, early, "a", status.lease_until_us).answer, NODE_READ_ASK);
    struct node_read several[2] = {{.key = text("a")}, {.key = text("b")}};
    node_read(early, 0, status.lease_until_us, 2, several);
    assert_int_equal(several[0].answer, NODE_READ_ASK);
    assert_int_equal(several[1].answer, NODE_READ_ASK);
    /* It leaves: the lease is given up at once, long before it would have run out. */
    worker_leave(node_worker(cluster_node(c, 0), 0));
    assert_int_equal(read_now(c, early, "a").answer, NODE_READ_ASK);
    node_reader_close(early);
    cluster_destroy(c);
}

static bool cut_off(struct cluster *c, void *context)
{
    struct node_status status;
    (void)context;
    node_status(cluster_node(c, 0), cluster_now(c), &status);
    return status.status != VIEW_STATUS_SERVING;
}

static void a_node_that_is_cut_off_stops_answering(void **state)
{
    (void)state;
    struct cluster *c = serving(3);
    struct node_reader *r = reader_of(c, 0);
    run(c, 0, (struct op){.kind = OP_SET, .key = text("a"), .value = text("1")});
    for (uint32_t i = 1; i < 3; i++) {
        cluster_cut(c, 0, i, true);
        cluster_cut(c, i, 0, true);
    }
    assert_found(read_now(c, r, "a"), "1");
    cluster_until(c, cut_off, NULL, 2000000);
    assert_int_equal(read_now(c, r, "a").answer, NODE_READ_ASK);
    node_reader_close(r);
    cluster_destroy(c);
}

/* As an update that lacks acknowledgements leaves it. */
static void set_unreadable(struct cluster *c, uint32_t node, const char *key)
{
    struct store *store = node_store(cluster_node(c, node), 0);
    struct store_thread *thread = worker_store_thread(node_worker(cluster_node(c, node), 0), 0);
    struct store_ref ref;
    store_lock(store, thread, text(key), store_hash(store, text(key)), &ref);
    struct key_meta meta = store_meta(&ref);
    meta.flags &= (uint8_t)~KEY_READABLE;
    store_set_meta(&ref, &meta);
    store_unlock(&ref);
}

static void a_key_under_way_is_left_to_a_worker(void **state)
{
    (void)state;
    struct cluster *c = serving(3);
    struct node_reader *r0 = reader_of(c, 0);
    struct node_reader *r1 = reader_of(c, 1);
    run(c, 0, (struct op){.kind = OP_SET, .key = text("a"), .value = text("old")});
    cluster_step(c, 100);
    assert_found(read_now(c, r1, "a"), "old");
    set_unreadable(c, 0, "a");
    struct node_read reads[2] = {{.key = text("a")}, {.key = text("b")}};
    node_read(r0, 0, cluster_now(c), 2, reads);
    assert_int_equal(reads[0].answer, NODE_READ_ASK);
    assert_int_equal(reads[1].answer, NODE_READ_ABSENT);
    assert_int_equal(read_now(c, r0, "a").answer, NODE_READ_ASK);
    assert_found(read_now(c, r1, "a"), "old");
    node_reader_close(r0);
    node_reader_close(r1);
    cluster_destroy(c);
}

static void deadlines_are_cut_off_and_kept(void **state)
{
    (void)state;
    struct cluster *c = serving(1);
    struct node_reader *r = reader_of(c, 0);
    uint64_t deadline = *cluster_wall_ms(c) + 500;
    run(c, 0,
        (struct op){.kind = OP_SET,
                    .key = text("a"),
                    .value = text("soon over"),
                    .flags = OPF_DEADLINE,
                    .number = (int64_t)deadline});
    assert_found(read_now(c, r, "a"), "soon over");
    *cluster_wall_ms(c) = deadline - 1;
    assert_found(read_now(c, r, "a"), "soon over");
    *cluster_wall_ms(c) = deadline;
    /* Only a worker can run the delete that an expiry is. */
    assert_int_equal(read_now(c, r, "a").answer, NODE_READ_ASK);
    node_reader_close(r);
    cluster_destroy(c);
}

static void other_spaces_are_left_to_a_worker(void **state)
{
    (void)state;
    struct cluster *c = start(3, true);
    cluster_until(c, cluster_serving, NULL, 10000000);
    struct node_reader *r = reader_of(c, 0);
    assert_int_equal(read_now(c, r, "a").answer, NODE_READ_ASK); /* a majority has to confirm it */
    struct node_read read = {.key = text("a")};
    node_read(r, 1, cluster_now(c), 1, &read); /* does not exist */
    assert_int_equal(read.answer, NODE_READ_ASK);
    node_read(r, SPACES_MAX, cluster_now(c), 1, &read);
    assert_int_equal(read.answer, NODE_READ_ASK);
    node_reader_close(r);
    cluster_destroy(c);
}

static uint64_t retired_after_replacing(struct cluster *c)
{
    static char large[STORE_INLINE_MAX * 4];
    struct store_stats stats;
    for (uint32_t i = 0; i < 20; i++) {
        run(c, 0,
            (struct op){.kind = OP_SET, .key = text("a"), .value = bytes_of(large, sizeof large)});
        cluster_step(c, 10);
    }
    store_stats(node_store(cluster_node(c, 0), 0), &stats);
    return stats.retired_bytes;
}

/* What an online reader may still look at is kept; offline, or calling, it holds nothing back. */
static void an_idle_reader_goes_offline(void **state)
{
    (void)state;
    struct cluster *c = serving(1);
    struct node_reader *r = reader_of(c, 0);
    (void)read_now(c, r, "a");
    uint64_t held = retired_after_replacing(c);
    assert_true(held >= 10 * STORE_INLINE_MAX * 4);
    node_reader_offline(r);
    assert_true(retired_after_replacing(c) < held / 4);
    node_reader_online(r);
    struct node_read read = read_now(c, r, "a");
    assert_int_equal(read.answer, NODE_READ_FOUND);
    assert_int_equal(read.value.n, STORE_INLINE_MAX * 4);
    node_reader_close(r);
    assert_true(retired_after_replacing(c) < held / 4);
    cluster_destroy(c);
}

static void there_is_a_bound(void **state)
{
    (void)state;
    struct cluster *c = serving(1);
    struct node_reader *readers[STORE_THREADS_MAX];
    uint32_t n = 0;
    while (node_reader_open(cluster_node(c, 0), &readers[n]) == HK_OK) {
        n++;
        assert_true(n < STORE_THREADS_MAX);
    }
    assert_int_equal(n, STORE_THREADS_MAX - 1);
    struct node_reader *more;
    assert_int_equal(node_reader_open(cluster_node(c, 0), &more), HK_ERR_FULL);
    node_reader_close(readers[3]);
    assert_int_equal(node_reader_open(cluster_node(c, 0), &readers[3]), HK_OK);
    while (n > 0) {
        node_reader_close(readers[--n]);
    }
    cluster_destroy(c);
}

/* As an engine that reads at once what is committed, and lets a session's reads follow its
 * updates. */
static void order_is_promised_or_a_worker_is_asked(void **state)
{
    (void)state;
    struct engine_ops follows = hermes_ops;
    follows.traits |= ENGINE_READS_FOLLOW;
    struct cluster_config config = {
        .nodes = 1, .workers = {1}, .ops = &follows, .hermes = hermes, .seed = 11};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    run(c, 0, (struct op){.kind = OP_SET, .key = text("a"), .value = text("v")});
    struct node_reader *r = reader_of(c, 0);
    assert_int_equal(read_now(c, r, "a").answer, NODE_READ_ASK);
    node_reader_follow(r);
    assert_found(read_now(c, r, "a"), "v");
    node_reader_close(r);
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_answers_the_newest_value),
        cmocka_unit_test(a_batch_is_as_many_single_reads),
        cmocka_unit_test(without_a_lease_a_worker_is_asked),
        cmocka_unit_test(a_node_that_is_cut_off_stops_answering),
        cmocka_unit_test(a_key_under_way_is_left_to_a_worker),
        cmocka_unit_test(deadlines_are_cut_off_and_kept),
        cmocka_unit_test(other_spaces_are_left_to_a_worker),
        cmocka_unit_test(an_idle_reader_goes_offline),
        cmocka_unit_test(there_is_a_bound),
        cmocka_unit_test(order_is_promised_or_a_worker_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
