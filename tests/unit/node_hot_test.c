/* Which keys are hot on a node: samples of workers and of readers, rates, their decay. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/read.h"
#include "support/node_cluster.h"

#define KEYS 1000u
#define STEP_US 100u
#define PER_POLL 4u

/* Clients of node 0 that draw keys with frequencies as 1 / rank, one GET after another. */
struct load {
    struct cluster *c;
    struct random random;
    uint32_t sessions[CLUSTER_WORKERS_MAX];
    uint32_t left; /* of this step */
    bool on;
    uint64_t taken[KEYS];
    char key[8][16];
    uint32_t next;
};

static uint32_t draw(struct random *random)
{
    double u = (double)(random_next(random) >> 11) * 0x1p-53;
    uint32_t i = (uint32_t)pow(KEYS, u) - 1;
    return i < KEYS ? i : KEYS - 1;
}

static bool request(void *context, uint32_t node, uint32_t worker, struct request *request_out)
{
    struct load *l = context;
    if (node != 0 || !l->on || l->left == 0) {
        return false;
    }
    l->left--;
    uint32_t i = draw(&l->random);
    char *key = l->key[l->next++ % 8];
    l->taken[i]++;
    *request_out = (struct request){
        .session = l->sessions[worker],
        .op = {.kind = OP_GET, .key = bytes_of(key, (uint32_t)snprintf(key, 16, "key-%u", i))}};
    return true;
}

static void reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    (void)context;
    (void)node;
    (void)worker;
    assert_int_equal(reply->answer.kind, ANSWER_NIL);
}

static void begin(struct load *l, uint32_t workers, struct hot_config hot)
{
    memset(l, 0, sizeof *l);
    random_init(&l->random, 5);
    struct cluster_config config = {.nodes = 2,
                                    .workers = {workers, 1},
                                    .hermes = {.mlt_us = 10000, .grace_us = 2000000},
                                    .hot = hot,
                                    .client = {l, request, reply},
                                    .seed = 3};
    l->c = cluster_create(&config);
    cluster_until(l->c, cluster_serving, NULL, 10000000);
    for (uint32_t i = 0; i < workers; i++) {
        assert_int_equal(
            worker_session_open(node_worker(cluster_node(l->c, 0), i), &l->sessions[i]), HK_OK);
    }
}

static void run(struct load *l, uint64_t us)
{
    for (uint64_t end = cluster_now(l->c) + us; cluster_now(l->c) < end;) {
        l->left = PER_POLL;
        cluster_step(l->c, STEP_US);
    }
}

struct listed {
    uint32_t n;
    uint32_t key[NODE_HOTKEYS_MAX];
    uint64_t rate[NODE_HOTKEYS_MAX];
};

static void note(void *context, struct bytes key, uint64_t rate)
{
    struct listed *l = context;
    char text[16] = {0};
    assert_true(l->n < NODE_HOTKEYS_MAX && key.n < sizeof text);
    memcpy(text, key.at, key.n);
    assert_int_equal(sscanf(text, "key-%u", &l->key[l->n]), 1);
    l->rate[l->n++] = rate;
}

static struct listed list(struct load *l, uint32_t node, uint32_t count)
{
    struct listed listed = {.n = 0};
    assert_int_equal(
        node_hotkeys(cluster_node(l->c, node), 0, cluster_now(l->c), count, note, &listed), HK_OK);
    for (uint32_t i = 1; i < listed.n; i++) {
        assert_true(listed.rate[i] <= listed.rate[i - 1]);
    }
    return listed;
}

/* The hottest ten, at their rates, give or take what a sample may be off: five standard errors. */
static void expect_rates(struct load *l, const struct listed *listed, double sample, double seconds)
{
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t key = listed->key[i];
        double expected = (double)l->taken[key] / seconds;
        double off = 5 * sqrt(expected * sample / seconds) + 2 * sample / seconds;
        assert_in_range(key, 0, 15);
        if (fabs((double)listed->rate[i] - expected) > off) {
            print_message("key %u: %llu a second, %f were made\n", key,
                          (unsigned long long)listed->rate[i], expected);
            fail();
        }
    }
}

static void rates_are_those_of_the_clients(void **state)
{
    (void)state;
    struct load l;
    begin(&l, 2, (struct hot_config){0});
    l.on = true;
    run(&l, 900000);
    struct listed listed = list(&l, 0, 20);
    assert_int_equal(listed.n, 20);
    assert_int_equal(listed.key[0], 0);
    assert_int_equal(listed.key[1], 1);
    expect_rates(&l, &listed, 16, 0.9);
    /* Nobody asked the other node. */
    assert_int_equal(list(&l, 1, 20).n, 0);
    /* After several epochs the same: counts and the time that they belong to are halved alike. */
    run(&l, 5300000);
    listed = list(&l, 0, 10);
    expect_rates(&l, &listed, 16, 6.2);
    cluster_destroy(l.c);
}

static void everything_is_counted_if_asked(void **state)
{
    (void)state;
    struct load l;
    begin(&l, 1, (struct hot_config){.sample = 1, .epoch_us = 100000000});
    uint64_t from = cluster_now(l.c);
    l.on = true;
    run(&l, 500000);
    struct listed listed = list(&l, 0, NODE_HOTKEYS_MAX);
    assert_int_equal(listed.n, NODE_HOTKEYS_MAX);
    double seconds = (double)(cluster_now(l.c) - from) / 1e6;
    for (uint32_t i = 0; i < 100; i++) {
        double made = (double)l.taken[listed.key[i]] / seconds;
        assert_true(fabs((double)listed.rate[i] - made) <= made / 100 + 1);
    }
    cluster_destroy(l.c);
}

static void what_is_long_ago_fades(void **state)
{
    (void)state;
    struct load l;
    begin(&l, 1, (struct hot_config){.epoch_us = 200000});
    l.on = true;
    run(&l, 1000000);
    uint64_t before = list(&l, 0, 1).rate[0];
    l.on = false;
    run(&l, 1000000);
    struct listed after = list(&l, 0, 1);
    assert_true(after.n == 0 || after.rate[0] < before / 16);
    l.on = true;
    run(&l, 1000000);
    after = list(&l, 0, 1);
    assert_in_range(after.rate[0], before * 2 / 3, before * 3 / 2);
    cluster_destroy(l.c);
}

static void readers_are_counted_as_well(void **state)
{
    (void)state;
    struct load l;
    struct node_reader *r;
    begin(&l, 1, (struct hot_config){.sample = 2, .epoch_us = 100000000});
    assert_int_equal(node_reader_open(cluster_node(l.c, 0), &r), HK_OK);
    uint64_t reads = 0;
    uint64_t from = cluster_now(l.c);
    for (uint32_t step = 0; step < 2000; step++) {
        static const uint32_t batches[] = {1, 3, 16, NODE_READ_MAX};
        struct node_read batch[NODE_READ_MAX];
        char keys[NODE_READ_MAX][16];
        uint32_t n = batches[step % 4];
        for (uint32_t i = 0; i < n; i++) {
            uint32_t key = draw(&l.random);
            l.taken[key]++;
            batch[i].key = bytes_of(keys[i], (uint32_t)snprintf(keys[i], 16, "key-%u", key));
        }
        node_read(r, 0, cluster_now(l.c), n, batch);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(batch[i].answer, NODE_READ_ABSENT);
        }
        reads += n;
        cluster_step(l.c, STEP_US);
    }
    assert_int_equal(reads, 42000);
    struct listed listed = list(&l, 0, 10);
    assert_int_equal(listed.n, 10);
    expect_rates(&l, &listed, 32, (double)(cluster_now(l.c) - from) / 1e6);
    node_reader_close(r);
    assert_int_equal(list(&l, 0, 10).n, 0);
    cluster_destroy(l.c);
}

static void questions_have_their_bounds(void **state)
{
    (void)state;
    struct load l;
    struct listed none = {.n = 0};
    begin(&l, 1, (struct hot_config){0});
    struct node *n = cluster_node(l.c, 0);
    assert_int_equal(node_hotkeys(n, 0, 0, NODE_HOTKEYS_MAX + 1, note, &none), HK_ERR_INVALID);
    assert_int_equal(node_hotkeys(n, 1, 0, 1, note, &none), HK_ERR_INVALID);
    assert_int_equal(node_hotkeys(n, SPACES_MAX, 0, 1, note, &none), HK_ERR_INVALID);
    assert_int_equal(node_hotkeys(n, 0, 0, 0, note, &none), HK_OK);
    assert_int_equal(node_hotkeys(n, 0, 0, 10, note, &none), HK_OK);
    assert_int_equal(none.n, 0);
    cluster_destroy(l.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_those_of_the_clients),
        cmocka_unit_test(everything_is_counted_if_asked),
        cmocka_unit_test(what_is_long_ago_fades),
        cmocka_unit_test(readers_are_counted_as_well),
        cmocka_unit_test(questions_have_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
