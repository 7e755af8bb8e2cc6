/* Counters under Galene while everything changes: keys enter and leave the hot set again and again,
 * frames are lost, doubled and late, nodes die and come back. Clients at every worker add to the
 * same few counters and read them; each answer is held against what was answered before it was
 * asked for, which for a counter is all that linearizability says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/random.h"
#include "engine/galene/galene.h"
#include "node/internal.h"
#include "support/node_cluster.h"

#define NODES 3u
#define WORKERS 2u
#define CLIENTS 3u /* a worker */
#define DEPTH 4u   /* of a pipeline */
#define COUNTERS 6u
#define SEEN_MAX 65536u
#define SEEDS 6u

static const struct galene_config galene = {.retry_us = 2000, .rescue_us = 50000};

struct counter {
    char key[8];
    int64_t floor;   /* the highest value that was answered */
    uint32_t asked;  /* additions ... */
    uint32_t failed; /* ... of them: with an error that says that nothing was done */
    bool *seen;      /* by value: answered to an addition */
};

struct client {
    uint32_t session;
    uint32_t open;
    struct {
        int64_t floor; /* of the counter, when this was asked for */
        uint8_t counter;
        bool adds;
    } calls[DEPTH];
    uint32_t first; /* the oldest of them */
};

struct churn {
    struct cluster *cluster;
    struct random random;
    struct counter counters[COUNTERS];
    struct client clients[NODES][WORKERS][CLIENTS];
    bool asking;
    uint64_t answers[COUNTERS];
    uint64_t errors, unknown, lost;
    uint32_t draining; /* this node's clients ask for nothing more */
    uint32_t leaving;  /* this node's errors do not count; NODES: all do */
    uint64_t words[3]; /* by enum step_word */
};

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static bool churn_request(void *context, uint32_t node, uint32_t worker,
                          struct request *request_out)
{
    struct churn *churn = context;
    uint32_t i = (uint32_t)random_below(&churn->random, CLIENTS);
    struct client *client = &churn->clients[node][worker][i];
    if (!churn->asking || node == churn->draining || client->open == DEPTH ||
        random_below(&churn->random, 4) == 0) {
        return false;
    }
    uint32_t which = (uint32_t)random_below(&churn->random, COUNTERS);
    struct counter *counter = &churn->counters[which];
    uint32_t place = (client->first + client->open++) % DEPTH;
    bool adds = random_below(&churn->random, 2) == 0;
    client->calls[place].floor = counter->floor;
    client->calls[place].counter = (uint8_t)which;
    client->calls[place].adds = adds;
    counter->asked += adds;
    *request_out = (struct request){
        .session = client->session,
        .tag = i,
        .op = {.kind = adds ? OP_ADD : OP_GET, .key = text(counter->key), .number = 1}};
    return true;
}

static int64_t number_of(const struct answer *answer)
{
    int64_t number = 0;
    if (answer->kind == ANSWER_NUMBER) {
        return answer->number;
    }
    assert_true(answer->kind == ANSWER_NIL || answer->kind == ANSWER_VALUE);
    for (uint32_t i = 0; answer->kind == ANSWER_VALUE && i < answer->value.n; i++) {
        number = number * 10 + (answer->value.at[i] - '0');
    }
    return number;
}

static void churn_reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct churn *churn = context;
    struct client *client = &churn->clients[node][worker][reply->tag];
    uint32_t place = client->first;
    struct counter *counter = &churn->counters[client->calls[place].counter];
    assert_true(client->open > 0);
    client->first = (client->first + 1) % DEPTH;
    client->open--;
    if (reply->answer.kind == ANSWER_ERROR) {
        churn->errors += node != churn->leaving;
        churn->unknown += reply->answer.number == HK_ERR_UNKNOWN;
        churn->lost += reply->answer.number == HK_ERR_LOSTSLOT;
        counter->failed += client->calls[place].adds && reply->answer.number != HK_ERR_UNKNOWN;
        return;
    }
    int64_t number = number_of(&reply->answer);
    if (client->calls[place].adds) {
        assert_true(number > client->calls[place].floor);
        assert_true((uint64_t)number < SEEN_MAX);
        assert_false(counter->seen[number]);
        counter->seen[number] = true;
    } else {
        assert_true(number >= client->calls[place].floor);
    }
    assert_true(number <= counter->asked - counter->failed); /* nothing was done twice */
    churn->answers[client->calls[place].counter]++;
    counter->floor = number > counter->floor ? number : counter->floor;
}

static void open_sessions(struct churn *churn, uint32_t node)
{
    for (uint32_t k = 0; k < WORKERS; k++) {
        for (uint32_t i = 0; i < CLIENTS; i++) {
            struct client *client = &churn->clients[node][k][i];
            memset(client, 0, sizeof *client);
            int err = worker_session_open(node_worker(cluster_node(churn->cluster, node), k),
                                          &client->session);
            assert_int_equal(err, HK_OK);
        }
    }
}

/* The leader's word reaches a counter's home; not always the right one's. */
static void change_hot_set(struct churn *churn, uint64_t generation)
{
    uint32_t node = (uint32_t)random_below(&churn->random, NODES);
    if (!cluster_alive(churn->cluster, node)) {
        return;
    }
    struct node *n = cluster_node(churn->cluster, node);
    struct worker *w = node_worker(n, (uint32_t)random_below(&churn->random, WORKERS));
    struct counter *counter = &churn->counters[random_below(&churn->random, COUNTERS)];
    enum hot_code code = random_below(&churn->random, 3) == 0 ? HOT_LEAVE : HOT_ENTER;
    struct bytes key = text(counter->key);
    if (slot_home_is(homes_of(&n->spaces[0], key), (uint8_t)node)) {
        churn->words[step_hot(w, 0, key, store_hash(n->spaces[0].store, key), code, generation)]++;
    }
}

static struct churn *begin(uint64_t seed, bool ordered, struct hot_config hot)
{
    struct churn *churn = calloc(1, sizeof *churn);
    assert_non_null(churn);
    random_init(&churn->random, seed);
    churn->draining = NODES;
    churn->leaving = NODES;
    struct cluster_config config = {
        .nodes = NODES,
        .workers = {WORKERS, WORKERS, WORKERS},
        .ops = &galene_ops,
        .engine = &galene,
        .ordered = ordered,
        .hot = hot,
        .client = {.context = churn, .request = churn_request, .reply = churn_reply},
        .seed = seed,
    };
    for (uint32_t i = 0; i < COUNTERS; i++) {
        snprintf(churn->counters[i].key, sizeof churn->counters[i].key, "c%u", i);
        churn->counters[i].seen = calloc(SEEN_MAX, sizeof(bool));
        assert_non_null(churn->counters[i].seen);
    }
    churn->cluster = cluster_create(&config);
    cluster_until(churn->cluster, cluster_serving, NULL, 10000000);
    for (uint32_t n = 0; n < NODES; n++) {
        open_sessions(churn, n);
    }
    return churn;
}

static bool all_quiet(struct cluster *c, void *context)
{
    const struct churn *churn = context;
    for (uint32_t n = 0; n < NODES; n++) {
        for (uint32_t i = 0; cluster_alive(c, n) && i < WORKERS * CLIENTS; i++) {
            if (churn->clients[n][i / CLIENTS][i % CLIENTS].open > 0) {
                return false;
            }
        }
    }
    return true;
}

static void end(struct churn *churn)
{
    churn->asking = false;
    cluster_disturb(churn->cluster, (struct cluster_faults){.lost = 0});
    cluster_until(churn->cluster, all_quiet, churn, 10000000);
    cluster_destroy(churn->cluster);
    for (uint32_t i = 0; i < COUNTERS; i++) {
        free(churn->counters[i].seen);
    }
    free(churn);
}

static void run_for(struct churn *churn, uint32_t steps, uint64_t *generation)
{
    for (uint32_t i = 0; i < steps; i++) {
        if (random_below(&churn->random, 2) == 0) {
            change_hot_set(churn, ++*generation);
        }
        cluster_step(churn->cluster, 20 + random_below(&churn->random, 200));
    }
}

static void counters_count_while_keys_come_and_go(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct churn *churn = begin(seed, seed % 3 == 0, (struct hot_config){.misses_max = 4});
        uint64_t generation = 0;
        churn->asking = true;
        if (seed % 2 == 0) {
            cluster_disturb(churn->cluster,
                            (struct cluster_faults){.lost = 20, .doubled = 50, .hasty = 100});
        }
        run_for(churn, 3000, &generation);
        assert_int_equal(churn->errors, 0);
        uint64_t hits = 0;
        uint64_t misses = 0;
        for (uint32_t n = 0; n < NODES; n++) {
            struct node_stats s;
            node_stats(cluster_node(churn->cluster, n), &s);
            hits += s.hits;
            misses += s.misses;
        }
        assert_true(hits > 500 && misses > 500);
        for (uint32_t i = 0; i < COUNTERS; i++) {
            assert_true(churn->answers[i] > 200);
        }
        assert_true(churn->words[STEP_BEGUN] > 50);
        end(churn);
    }
}

/* A node dies in the midst of it. What only it had is lost for good; what is cached lives on. */
static void counters_survive_where_they_are_cached(void **state)
{
    (void)state;
    uint64_t lost = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct churn *churn = begin(seed, seed % 3 == 0, (struct hot_config){.misses_max = 4});
        uint64_t generation = 0;
        churn->asking = true;
        run_for(churn, 1000, &generation);
        uint32_t dead = (uint32_t)random_below(&churn->random, NODES);
        cluster_kill(churn->cluster, dead);
        run_for(churn, 8000, &generation);
        lost += churn->lost;
        uint64_t before[COUNTERS];
        for (uint32_t i = 0; i < COUNTERS; i++) {
            before[i] = churn->answers[i];
        }
        run_for(churn, 1000, &generation);
        uint32_t alive = 0;
        for (uint32_t i = 0; i < COUNTERS; i++) {
            alive += churn->answers[i] > before[i];
        }
        assert_true(alive > 0);
        end(churn);
    }
    assert_true(lost > 0);
}

static bool is_drained(struct churn *churn, uint32_t node)
{
    uint32_t open = 0;
    for (uint32_t k = 0; k < WORKERS; k++) {
        open += worker_under_way(node_worker(cluster_node(churn->cluster, node), k));
        for (uint32_t i = 0; i < CLIENTS; i++) {
            open += churn->clients[node][k][i].open;
        }
    }
    return open == 0;
}

static bool has_left(struct cluster *c, void *context)
{
    return !cluster_alive(c, *(const uint32_t *)context);
}

/* Whether the map of a live node says that the node is some slot's home. */
static bool is_a_home(struct churn *churn, uint32_t node)
{
    for (uint32_t n = 0; n < NODES; n++) {
        for (uint32_t i = 0; cluster_alive(churn->cluster, n) && i < HASH_SLOTS; i++) {
            struct slot_home home = node_home(cluster_node(churn->cluster, n), 0, i);
            if (home.state == HOME_STABLE && home.home == node) {
                return true;
            }
        }
    }
    return false;
}

/* Nodes leave and come back, one after the other. Slots move away and back, their keys with them;
 * what a node has promised to its clients it keeps. */
static void counters_count_while_nodes_leave_and_return(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct churn *churn = begin(seed, seed % 3 == 0, (struct hot_config){.misses_max = 4});
        uint64_t generation = 0;
        uint64_t handed = 0;
        churn->asking = true;
        if (seed % 2 == 0) {
            cluster_disturb(churn->cluster,
                            (struct cluster_faults){.lost = 10, .doubled = 20, .hasty = 50});
        }
        for (uint32_t round = 0; round < 3; round++) {
            uint32_t node = (uint32_t)random_below(&churn->random, NODES);
            run_for(churn, 500, &generation);
            worker_hand_over(node_worker(cluster_node(churn->cluster, node), 0));
            for (uint32_t i = 0; !node_handed_over(cluster_node(churn->cluster, node)); i++) {
                assert_true(i < 500);
                run_for(churn, 100, &generation);
            }
            for (uint32_t n = 0; n < NODES; n++) {
                struct node_stats stats;
                node_stats(cluster_node(churn->cluster, n), &stats);
                handed += stats.handed;
            }
            assert_int_equal(churn->errors, 0);
            churn->draining = node;
            for (uint32_t i = 0; !is_drained(churn, node); i++) {
                assert_true(i < 2000);
                run_for(churn, 1, &generation);
            }
            assert_int_equal(churn->errors, 0);
            churn->leaving = node; /* its clients have to go elsewhere, nobody else's */
            churn->draining = NODES;
            worker_leave(node_worker(cluster_node(churn->cluster, node), 0));
            cluster_until(churn->cluster, has_left, &node, 5000000);
            run_for(churn, 500, &generation);
            cluster_restart(churn->cluster, node);
            open_sessions(churn, node);
            for (uint32_t i = 0; !is_a_home(churn, node); i++) {
                assert_true(i < 500);
                run_for(churn, 100, &generation);
            }
            run_for(churn, 100, &generation);
            churn->leaving = NODES;
            assert_int_equal(churn->lost + churn->errors, 0);
        }
        assert_true(handed > 0);
        end(churn);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_count_while_keys_come_and_go),
        cmocka_unit_test(counters_survive_where_they_are_cached),
        cmocka_unit_test(counters_count_while_nodes_leave_and_return),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
