/* The hot set of a cluster of three nodes: it holds the keys that take the most operations, follows
 * popularity within two epochs, spreads the load, and survives its leader. Virtual time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/galene/galene.h"
#include "node/hot_epoch.h"
#include "support/node_cluster.h"

#define NODES 3u
#define KEYS 10000u
#define CACHE 100u
#define EXPONENT 0.99
#define STEP_US 100u
#define PER_POLL 4u
#define EPOCH_US 200000u
#define RING 64u

struct client {
    uint32_t session;
    bool open;
    uint32_t unanswered;
    uint32_t left; /* of this step */
    char key[RING][16];
    uint32_t next;
};

struct load {
    struct cluster *c;
    struct random random;
    double sums[KEYS + 1]; /* of the first ranks' weights */
    uint32_t shift;        /* the hottest ranks are the keys from here on */
    uint32_t written;      /* keys, before the load begins */
    uint32_t node_of_writer;
    struct client clients[NODES];
    uint64_t errors;
    bool may_fail;
};

static struct galene_config galene = {.retry_us = 2000, .rescue_us = 20000};

/* The hottest CACHE ranks change places with the keys from `shift` on. */
static uint32_t key_of_rank(const struct load *l, uint32_t rank)
{
    if (rank < CACHE) {
        return l->shift + rank;
    }
    return rank >= l->shift && rank < l->shift + CACHE ? rank - l->shift : rank;
}

static uint32_t draw(struct load *l)
{
    double u = (double)(random_next(&l->random) >> 11) * 0x1p-53 * l->sums[KEYS];
    uint32_t low = 0;
    uint32_t high = KEYS;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        *(l->sums[middle] <= u ? &low : &high) = middle;
    }
    return key_of_rank(l, low);
}

static bool request(void *context, uint32_t node, uint32_t worker, struct request *request_out)
{
    struct load *l = context;
    struct client *client = &l->clients[node];
    if (worker != 0 || !client->open || client->left == 0 || client->unanswered >= RING) {
        return false;
    }
    client->left--;
    client->unanswered++;
    char *text = client->key[client->next++ % RING];
    bool filling = l->written < KEYS;
    uint32_t key = filling ? l->written++ : draw(l);
    bool writes = filling || random_below(&l->random, 100) < 2;
    *request_out =
        (struct request){.session = client->session, .op = {.kind = writes ? OP_SET : OP_GET}};
    request_out->op.key = bytes_of(text, (uint32_t)snprintf(text, 16, "key-%u", key));
    if (writes) {
        request_out->op.value = bytes_of("value", 5);
    }
    return true;
}

static void reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct load *l = context;
    (void)worker;
    l->clients[node].unanswered--;
    bool failed = reply->answer.kind == ANSWER_ERROR || reply->answer.kind == ANSWER_NIL;
    l->errors += failed;
    assert_true(!failed || l->may_fail);
}

static void open_client(struct load *l, uint32_t node)
{
    struct client *client = &l->clients[node];
    memset(client, 0, sizeof *client);
    assert_int_equal(
        worker_session_open(node_worker(cluster_node(l->c, node), 0), &client->session), HK_OK);
    client->open = true;
}

static void run(struct load *l, uint64_t us)
{
    for (uint64_t end = cluster_now(l->c) + us; cluster_now(l->c) < end;) {
        for (uint32_t i = 0; i < NODES; i++) {
            l->clients[i].left = PER_POLL;
        }
        cluster_step(l->c, STEP_US);
    }
}

static struct load *begin(struct hot_config hot)
{
    struct load *l = calloc(1, sizeof *l);
    assert_non_null(l);
    random_init(&l->random, 5);
    for (uint32_t i = 0; i < KEYS; i++) {
        l->sums[i + 1] = l->sums[i] + pow(i + 1, -EXPONENT);
    }
    struct cluster_config config = {.nodes = NODES,
                                    .workers = {2, 3, 1},
                                    .ordered = true,
                                    .ops = &galene_ops,
                                    .engine = &galene,
                                    .hot = hot,
                                    .client = {l, request, reply},
                                    .seed = 3};
    l->c = cluster_create(&config);
    cluster_until(l->c, cluster_serving, NULL, 10000000);
    for (uint32_t i = 0; i < NODES; i++) {
        open_client(l, i);
    }
    while (l->written < KEYS) {
        run(l, 10000);
    }
    run(l, 50000);
    return l;
}

static void end(struct load *l)
{
    l->may_fail = true; /* what is under way */
    cluster_destroy(l->c);
    free(l);
}

/* What happened on the nodes since the last look. */
struct figures {
    double hit_rate;
    double busiest; /* node's executed operations, by the mean of those that live */
    uint64_t epochs, enters, leaves;
};

static struct figures look(struct load *l, struct node_stats *before)
{
    struct figures f = {0};
    double hits = 0;
    double all = 0;
    double done = 0;
    double most = 0;
    uint32_t alive = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        struct node_stats now;
        if (!cluster_alive(l->c, i)) {
            continue;
        }
        node_stats(cluster_node(l->c, i), &now);
        double here = (double)(now.hits - before[i].hits);
        double home = (double)(now.at_home - before[i].at_home);
        double others = (double)(now.forwarded_in - before[i].forwarded_in);
        hits += here;
        all += here + home + (double)(now.misses - before[i].misses);
        done += here + home + others;
        most = here + home + others > most ? here + home + others : most;
        f.epochs += now.hot_epochs - before[i].hot_epochs;
        f.enters += now.hot_enters - before[i].hot_enters;
        f.leaves += now.hot_leaves - before[i].hot_leaves;
        before[i] = now;
        alive++;
    }
    f.hit_rate = hits / all;
    f.busiest = most / (done / alive);
    return f;
}

static double best(const struct load *l)
{
    return l->sums[CACHE] / l->sums[KEYS];
}

static const struct hot_config usual = {.cache_keys = CACHE, .epoch_us = EPOCH_US, .sample = 2};

static void the_hottest_keys_are_cached(void **state)
{
    (void)state;
    struct node_stats before[NODES] = {{0}};
    struct load *l = begin(usual);
    run(l, 5 * EPOCH_US);
    (void)look(l, before);
    run(l, 5 * EPOCH_US);
    struct figures f = look(l, before);
    print_message("hit rate %.4f, computed %.4f; busiest node %.3f of the mean; %llu epochs, %llu "
                  "keys entered\n",
                  f.hit_rate, best(l), f.busiest, (unsigned long long)f.epochs,
                  (unsigned long long)f.enters);
    assert_true(f.hit_rate > best(l) - 0.02 && f.hit_rate < best(l) + 0.02);
    assert_true(f.busiest < 1.1);
    assert_in_range(f.epochs, 4, 6);
    for (uint32_t i = 0; i < NODES; i++) {
        assert_in_range(before[i].hot_keys, CACHE - 5, CACHE);
    }
    /* The same popularity: nearly the same set. */
    assert_in_range(f.enters, 0, CACHE / 2);
    end(l);
}

static void a_shift_is_followed_within_two_epochs(void **state)
{
    (void)state;
    struct node_stats before[NODES] = {{0}};
    struct load *l = begin(usual);
    run(l, 5 * EPOCH_US);
    for (uint32_t round = 1; round <= 4; round++) {
        /* At different moments of an epoch. */
        run(l, EPOCH_US + round * EPOCH_US / 4);
        (void)look(l, before);
        l->shift = round * 2000;
        run(l, EPOCH_US / 10);
        struct figures at_once = look(l, before);
        run(l, EPOCH_US * 19 / 10);
        struct figures during = look(l, before);
        run(l, EPOCH_US);
        struct figures after = look(l, before);
        print_message("hit rate %.3f at once, %.3f after two epochs (computed %.3f); busiest node "
                      "%.3f, %.3f\n",
                      at_once.hit_rate, after.hit_rate, best(l), during.busiest, after.busiest);
        assert_true(at_once.hit_rate < best(l) / 2);
        assert_true(after.hit_rate > best(l) - 0.03);
        assert_true(during.busiest < 1.3 && after.busiest < 1.3);
    }
    end(l);
}

static bool leader_is(struct cluster *c, void *context)
{
    const uint32_t *node = context;
    struct node_status status;
    node_status(cluster_node(c, *node), cluster_now(c), &status);
    return nodeset_first(status.view.operational) == *node;
}

static void a_successor_knows_the_set(void **state)
{
    (void)state;
    struct node_stats before[NODES] = {{0}};
    struct load *l = begin(usual);
    run(l, 5 * EPOCH_US + EPOCH_US / 2);
    (void)look(l, before);
    l->may_fail = true;
    l->clients[0].open = false;
    cluster_kill(l->c, 0);
    uint32_t successor = 1;
    cluster_until(l->c, leader_is, &successor, 5000000);
    run(l, EPOCH_US);
    struct figures f = look(l, before);
    run(l, 2 * EPOCH_US);
    f = look(l, before);
    print_message("hit rate %.3f under the successor\n", f.hit_rate);
    assert_in_range(before[1].hot_keys, CACHE / 2, CACHE);
    assert_true(f.epochs >= 1);
    assert_true(f.hit_rate > best(l) - 0.05);
    /* It goes on leading. */
    l->shift = 3000;
    run(l, 2 * EPOCH_US);
    (void)look(l, before);
    run(l, EPOCH_US);
    f = look(l, before);
    print_message("hit rate %.3f after a shift under the successor\n", f.hit_rate);
    /* A third of the new keys had their home at the dead node, and are lost. */
    assert_true(f.hit_rate > best(l) / 2);
    end(l);
}

static void a_newcomer_gets_all_entries(void **state)
{
    (void)state;
    struct node_stats before[NODES] = {{0}};
    struct load *l = begin(usual);
    run(l, 5 * EPOCH_US);
    l->may_fail = true;
    l->clients[2].open = false;
    cluster_kill(l->c, 2);
    run(l, 3 * EPOCH_US);
    cluster_restart(l->c, 2);
    cluster_until(l->c, cluster_serving, NULL, 20000000);
    open_client(l, 2);
    run(l, 3 * EPOCH_US);
    memset(&before[2], 0, sizeof before[2]);
    (void)look(l, before);
    struct node_stats from = before[2];
    run(l, EPOCH_US);
    (void)look(l, before);
    double hits = (double)(before[2].hits - from.hits);
    double all = hits + (double)(before[2].at_home - from.at_home + before[2].misses - from.misses);
    print_message("hit rate of the newcomer %.3f\n", hits / all);
    assert_true(hits / all > best(l) - 0.05);
    end(l);
}

static void none_is_cached_if_so_configured(void **state)
{
    (void)state;
    struct node_stats before[NODES] = {{0}};
    struct hot_config off = usual;
    off.off = true;
    struct load *l = begin(off);
    run(l, 3 * EPOCH_US);
    struct figures f = look(l, before);
    assert_true(f.hit_rate < 1e-9);
    assert_int_equal(f.epochs, 0);
    end(l);
}

/* Without a number the set has a thousandth of the keys, and 64 at the least. */
static void the_size_follows_the_keys(void **state)
{
    (void)state;
    struct node_stats before[NODES] = {{0}};
    struct hot_config config = usual;
    config.cache_keys = 0;
    struct load *l = begin(config);
    run(l, 5 * EPOCH_US);
    (void)look(l, before);
    for (uint32_t i = 0; i < NODES; i++) {
        assert_in_range(before[i].hot_keys, 60, 64);
    }
    end(l);
}

static uint64_t any(struct random *random)
{
    switch (random_below(random, 4)) {
    case 0:
        return random_below(random, 4);
    case 1:
        return UINT64_MAX - random_below(random, 4);
    case 2:
        return random_next(random) & UINT32_MAX;
    default:
        return random_next(random);
    }
}

/* Words of the hot set from everybody, at any moment, with anything in them. */
static void nonsense_does_no_harm(void **state)
{
    (void)state;
    struct node_stats before[NODES] = {{0}};
    struct load *l = begin(usual);
    struct random random;
    random_init(&random, 23);
    for (uint32_t i = 0; i < 20000; i++) {
        uint8_t value[200];
        char key[16];
        for (uint32_t j = 0; j < sizeof value; j++) {
            value[j] = (uint8_t)(random_chance(&random, 700000) ? 0 : random_next(&random));
        }
        struct worker *w = node_worker(cluster_node(l->c, i % NODES), 0);
        struct msg m = {.kind = MSG_HOT,
                        .flags = (uint8_t)random_below(&random, HOT_WORDS + 2),
                        .epoch = w->view.epoch - random_chance(&random, 100000),
                        .slot = (uint32_t)any(&random) & 0xfffff,
                        .gen = (uint32_t)any(&random),
                        .ts = any(&random),
                        .arg = any(&random),
                        .value = bytes_of(value, (uint32_t)random_below(&random, sizeof value))};
        m.key = bytes_of(key, (uint32_t)snprintf(key, sizeof key, "key-%u",
                                                 (uint32_t)random_below(&random, KEYS + 10)));
        struct hot_epoch *h = w->node->spaces[0].hot;
        if (random_chance(&random, 300000)) {
            m.arg = h->leads ? h->round : h->fetched;
        }
        if (m.flags == HOT_WORD_ASK && random_chance(&random, 990000)) {
            m.slot = 100;
        }
        if (m.flags == HOT_WORD_ASK) {
            m.gen = h->settled; /* whose newcomers are forgotten is the leader's business */
        }
        hot_message(w, &m, (uint8_t)random_below(&random, NODES + 1));
        if (i % 20 == 0) {
            run(l, STEP_US);
        }
    }
    run(l, 6 * EPOCH_US);
    (void)look(l, before);
    run(l, 2 * EPOCH_US);
    assert_true(look(l, before).hit_rate > best(l) - 0.03);
    end(l);
}

static void lists_travel_in_parts(void **state)
{
    (void)state;
    static uint8_t key[70000];
    struct hot_tally t;
    uint32_t entries = 3000;
    void *memory = malloc(hot_tally_bytes(entries, 300000));
    uint8_t *room = malloc(HOT_LIST_BYTES + MSG_KEY_MAX);
    assert_non_null(memory);
    assert_non_null(room);
    hot_tally_init(&t, memory, entries, 300000);
    hot_tally_list(&t, 1, 0);
    for (uint32_t i = 0; i < entries; i++) {
        uint32_t n = i % 1000 == 7 ? MSG_KEY_MAX : i % 50;
        put_u32(key, i);
        hot_tally_add(&t, bytes_of(key, n < 4 ? 4 : n), i, entries - i, 0);
    }
    struct hot_ranking ranking = {.bonus = 1};
    uint32_t ranked = hot_tally_rank(&t, entries, &ranking);
    assert_int_equal(ranked, entries);
    uint32_t seen = 0;
    for (uint32_t at = 0; at < ranked;) {
        uint32_t from = at;
        struct bytes value = bytes_of(room, hot_list_pack(&t, ranked, &at, room));
        struct bytes one;
        double rate;
        assert_true(at > from && value.n <= HOT_LIST_BYTES + MSG_KEY_MAX);
        while (hot_list_next(&value, &one, &rate)) {
            assert_int_equal(get_u32(one.at), seen);
            assert_true(fabs(rate - (entries - seen)) < 0.01);
            seen++;
        }
        assert_int_equal(value.n, 0);
        assert_int_equal(seen, at);
    }
    assert_int_equal(seen, entries);
    free(room);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hottest_keys_are_cached),
        cmocka_unit_test(a_shift_is_followed_within_two_epochs),
        cmocka_unit_test(a_successor_knows_the_set),
        cmocka_unit_test(a_newcomer_gets_all_entries),
        cmocka_unit_test(nonsense_does_no_harm),
        cmocka_unit_test(lists_travel_in_parts),
        cmocka_unit_test(none_is_cached_if_so_configured),
        cmocka_unit_test(the_size_follows_the_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
