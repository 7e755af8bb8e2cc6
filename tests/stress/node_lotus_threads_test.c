/* Several workers on one table of a memory server, each with several holders: random transactions
 * over few keys, the cleaner, kills, and somebody who lists locks and entries. What committed must
 * be serial in the order of commits (support/node_player.h), nobody may wait for ever, and in the
 * end all invariants hold and no lock is left.
 *
 * Bounded in work: each worker commits a fixed number of transactions. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "support/node_player.h"

#define WORKERS 3u
#define PLAYERS 4u /* of a worker */
#define STATUSES (WORKERS * PLAYERS)
#define COMMITS 3000u
/* Turns of all workers' waiting without a turn of anybody's: somebody waits for ever. */
#define PATIENCE 20000000u

struct world {
    struct store *store;
    struct lotus_table *table;
    _Atomic bool woken[STATUSES];
    _Atomic uint64_t places; /* in the order of commits */
    _Atomic uint64_t ages;
    _Atomic uint64_t turns;
    _Atomic uint32_t started;
};

struct worker {
    struct world *world;
    struct store_thread *thread;
    struct random random;
    uint32_t number;
    uint32_t commits;
    uint64_t refused;
    struct player players[PLAYERS];
    struct play *plays; /* COMMITS */
};

static void woken(void *context, uint32_t status, uint64_t generation)
{
    struct world *w = context;
    (void)generation;
    HK_ASSERT(status < STATUSES);
    atomic_store(&w->woken[status], true);
}

static void take_turn(struct worker *k, struct player *p)
{
    struct world *w = k->world;
    if (p->state == PLAYER_PREPARED) {
        player_commit(p, atomic_fetch_add(&w->places, 1) + 1u, atomic_load(&w->turns));
        k->plays[k->commits++] = p->play;
    } else {
        atomic_store(&w->woken[p->holder.status], false);
        player_turn(p, atomic_fetch_add(&w->ages, 1) + 1u);
    }
    HK_ASSERT(p->broken == NULL);
}

/* One that may go on; NULL: nobody. */
static struct player *choose(struct worker *k)
{
    uint32_t first = (uint32_t)random_below(&k->random, PLAYERS);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        struct player *p = &k->players[(first + i) % PLAYERS];
        if (p->state != PLAYER_WAITS || atomic_load(&k->world->woken[p->holder.status])) {
            return p;
        }
    }
    return NULL;
}

static void see_lock(void *context, const struct lotus_lock_row *row)
{
    uint32_t *seen = context;
    HK_ASSERT(row->status < STATUSES && row->key.n <= 1 && (row->key.n == 1) != row->infinite);
    (*seen)++;
}

/* What has nothing to do with holders. */
static void look_around(struct worker *k)
{
    struct world *w = k->world;
    uint64_t buffer[LOTUS_NEXT_BYTES / 8u];
    struct lotus_row row;
    uint8_t last = 0;
    uint32_t seen = 0;
    lotus_table_locks(w->table, 1000, see_lock, &seen);
    HK_ASSERT(seen <= STATUSES * 64u);
    while (lotus_table_next(w->table, k->thread, bytes_of(&last, last == 0 ? 0 : 1), last == 0,
                            buffer, &row)) {
        HK_ASSERT(row.key.n == 1 && row.key.at[0] > last);
        last = row.key.at[0];
    }
}

static void work(struct worker *k)
{
    struct world *w = k->world;
    uint64_t turns = 0;
    uint32_t waited = 0;
    while (k->commits < COMMITS) {
        uint64_t what = random_below(&k->random, 1000);
        if (what < 100) {
            (void)lotus_table_clean(w->table, k->thread, atomic_load(&w->turns), 2);
        } else if (what == 100) {
            look_around(k);
        }
        struct player *p = choose(k);
        if (p == NULL) {
            uint64_t now = atomic_load(&w->turns);
            waited = now == turns ? waited + 1u : 0;
            turns = now;
            HK_ASSERT(waited < PATIENCE);
            sched_yield();
        } else if (what < 998) {
            uint64_t refused = p->refused;
            take_turn(k, p);
            atomic_fetch_add(&w->turns, 1);
            if (p->refused != refused) {
                /* Who is in the way may want the processor. */
                sched_yield();
            }
        } else {
            /* Its own: another's generation is not for others to read. */
            (void)lotus_table_wound(w->table, p->holder.status, p->holder.generation);
        }
        store_quiescent(k->thread);
    }
}

static void *run_worker(void *argument)
{
    struct worker *k = argument;
    struct world *w = k->world;
    HK_ASSERT(store_thread_register(w->store, &k->thread) == HK_OK);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        k->players[i] = (struct player){.table = w->table,
                                        .thread = k->thread,
                                        .random = &k->random,
                                        .age_who = k->number * PLAYERS + i + 1u,
                                        .holder.status = k->number * PLAYERS + i};
    }
    atomic_fetch_add(&w->started, 1);
    while (atomic_load(&w->started) < WORKERS) {
        sched_yield();
    }
    work(k);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        k->refused += k->players[i].refused;
        player_stop(&k->players[i]);
    }
    store_thread_unregister(k->thread);
    return NULL;
}

/* The plays of all workers, in their order. */
static void check_order(struct worker *workers)
{
    struct play_model model = {.values = {0}};
    uint32_t at[WORKERS] = {0};
    for (uint64_t place = 1; place <= WORKERS * COMMITS; place++) {
        uint32_t k = 0;
        while (k < WORKERS &&
               (at[k] == workers[k].commits || workers[k].plays[at[k]].place != place)) {
            k++;
        }
        assert_true(k < WORKERS);
        const struct play *play = &workers[k].plays[at[k]++];
        if (!play_is_right(&model, play)) {
            fail_msg("commit %llu, of worker %u, has not read what the serial order gives",
                     (unsigned long long)place, k);
        }
        play_apply(&model, play);
    }
}

static void check_end(struct world *w, struct store_thread *thread)
{
    const char *broken = lotus_table_check(w->table, thread);
    if (broken != NULL) {
        fail_msg("%s", broken);
    }
    struct lotus_table_stats stats;
    lotus_table_stats(w->table, &stats);
    assert_int_equal(stats.locks, 0);
    assert_int_equal(stats.requests, 0);
    print_message("waited %llu, died %llu, wounded %llu, looked again %llu\n",
                  (unsigned long long)stats.waited, (unsigned long long)stats.died,
                  (unsigned long long)stats.wounded, (unsigned long long)stats.looked_again);
}

static void run(enum lock_policy policy, uint64_t seed)
{
    struct world *w = calloc(1, sizeof(*w));
    struct worker *workers = calloc(WORKERS, sizeof(*workers));
    struct lotus_config lotus = {
        .lock.policy = (uint8_t)policy, .locks_max = 1024, .try_locks_max = 64, .grace_us = 50};
    struct store_config memory = {.seed = seed};
    struct store_thread *thread;
    pthread_t threads[WORKERS];
    assert_true(w != NULL && workers != NULL);
    assert_int_equal(store_create(&memory, &w->store), HK_OK);
    assert_int_equal(store_thread_register(w->store, &thread), HK_OK);
    struct lotus_table_config config = {
        .lotus = &lotus, .store = w->store, .statuses_n = STATUSES, .woken = woken, .context = w};
    assert_int_equal(lotus_table_create(&config, thread, &w->table), HK_OK);
    store_offline(thread);
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i].world = w;
        workers[i].number = i;
        workers[i].plays = calloc(COMMITS, sizeof(struct play));
        assert_non_null(workers[i].plays);
        random_init(&workers[i].random, seed * 100u + i);
        assert_int_equal(pthread_create(&threads[i], NULL, run_worker, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        print_message("%s: %llu refused\n", lock_policy_names[policy],
                      (unsigned long long)workers[i].refused);
    }
    store_online(thread);
    check_order(workers);
    check_end(w, thread);
    lotus_table_destroy(w->table, thread);
    store_thread_unregister(thread);
    store_destroy(w->store);
    for (uint32_t i = 0; i < WORKERS; i++) {
        free(workers[i].plays);
    }
    free(workers);
    free(w);
}

static uint64_t first_seed = 1;

static void test_no_wait(void **state)
{
    (void)state;
    run(LOCK_NO_WAIT, first_seed);
}

static void test_wait_die(void **state)
{
    (void)state;
    run(LOCK_WAIT_DIE, first_seed);
}

static void test_wound_wait(void **state)
{
    (void)state;
    run(LOCK_WOUND_WAIT, first_seed);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_wait),
        cmocka_unit_test(test_wait_die),
        cmocka_unit_test(test_wound_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
