/* Several threads in one ordered index: writers that insert, delete and update, in windows that
 * empty and fill whole leaves, and scanners. Every answer is checked against what must hold:
 *
 * - a stable key is there throughout: every lookup finds it, every scan in either direction meets
 *   it once, in order;
 * - a writer's own keys are changed by nobody else: it knows what each call must answer, and that
 *   its scans meet exactly those that it has inserted and not deleted;
 * - shared keys are inserted, deleted and updated by all writers: each hint that was put in comes
 *   out once, as what a deletion or an update replaced, or is there in the end;
 * - at the end the tree is sound, and when all keys are gone, so is the memory.
 *
 * Bounded in work: writers do a fixed number of steps, scanners go on until the writers are done.
 */
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
#include "base/random.h"
#include "store/tree.h"

#define WRITERS 2u
#define SCANNERS 2u
#define THREADS (WRITERS + SCANNERS)
#define IDS_MAX 8192u
#define KEY_BYTES 200u
#define SHARE 20u    /* scans of each scanner, at least */
#define LOOKUPS 300u /* after each of them */

/* Ids by what is left of a division: 0 stable, 1 shared, others the writers' own in turn. */
#define KINDS 8u

struct wood {
    struct store *store;
    struct tree *tree;
    uint32_t ids;
    uint32_t steps;
    _Atomic uint32_t started;
    _Atomic uint32_t writers_left;
};

struct worker {
    struct wood *wood;
    struct store_thread *thread;
    struct random random;
    uint32_t number;
    uint64_t sequence;
    uint64_t balance;      /* hints put in and taken out of stable and shared keys */
    uint64_t own[IDS_MAX]; /* of own keys: the hint, 0 for none */
    uint64_t scans;
};

static bool is_stable(uint64_t id)
{
    return id % KINDS == 0;
}

static bool is_shared(uint64_t id)
{
    return id % KINDS == 1;
}

static bool is_own(const struct worker *w, uint64_t id)
{
    return id % KINDS > 1 && id % WRITERS == w->number;
}

/* In the order of ids; most are 8 bytes, some are out of line, some inline but longer. */
static struct bytes key_make(uint8_t *at, uint64_t id)
{
    for (uint32_t i = 0; i < 8; i++) {
        at[i] = (uint8_t)(id >> (56u - 8u * i));
    }
    uint32_t n = id % 13 == 5 ? KEY_BYTES : id % 7 == 2 ? 30 : 8;
    memset(at + 8, (int)(id % 251), n - 8);
    return bytes_of(at, n);
}

static uint64_t key_id(struct bytes key)
{
    uint64_t id = 0;
    for (uint32_t i = 0; i < 8; i++) {
        id = id << 8 | key.at[i];
    }
    uint8_t space[KEY_BYTES];
    HK_ASSERT(bytes_equal(key, key_make(space, id)));
    return id;
}

/* Never 0, never the same twice. */
static uint64_t hint_make(struct worker *w, uint64_t id)
{
    return id << 40 | (uint64_t)(w->number + 1u) << 32 | ++w->sequence;
}

static uint64_t hint_id(uint64_t hint)
{
    return hint >> 40;
}

/* ---- Scans ---- */

/* What a scan from a place must meet; at most limit keys. */
static void scan(struct worker *w, uint64_t from, bool forwards, uint64_t limit, bool writer)
{
    struct wood *wood = w->wood;
    uint8_t space[KEY_BYTES];
    struct tree_cursor c;
    struct bytes key;
    uint64_t hint, ids = wood->ids;
    /* Ids from here on, in the direction, are not met yet; ids is the end of both. */
    uint64_t expected = from;
    tree_seek(wood->tree, w->thread, key_make(space, from), false,
              forwards ? TREE_FORWARDS : TREE_BACKWARDS, &c);
    for (uint64_t n = 0; n < limit; n++) {
        bool more = tree_next(&c, &key, &hint);
        uint64_t id = more ? key_id(key) : forwards ? ids : UINT64_MAX;
        if (more) {
            HK_ASSERT(id < ids && hint_id(hint) == id);
            HK_ASSERT(forwards ? id >= expected : id <= expected && expected < ids);
        }
        for (; expected != id; expected = forwards ? expected + 1 : expected - 1) {
            HK_ASSERT(!is_stable(expected));
            HK_ASSERT(!writer || !is_own(w, expected) || w->own[expected] == 0);
        }
        if (!more) {
            return;
        }
        HK_ASSERT(!writer || !is_own(w, id) || w->own[id] == hint);
        expected = forwards ? expected + 1 : expected - 1;
    }
}

/* ---- Writers ---- */

static void change_own(struct worker *w, uint64_t id, bool insert)
{
    struct wood *wood = w->wood;
    uint8_t space[KEY_BYTES];
    struct bytes key = key_make(space, id);
    uint64_t had = w->own[id], out = 0;
    if (insert) {
        uint64_t hint = hint_make(w, id);
        int err = tree_insert(wood->tree, w->thread, key, hint, &out);
        HK_ASSERT(err == (had == 0 ? HK_OK : HK_ERR_CONDITION));
        HK_ASSERT(out == had);
        w->own[id] = had == 0 ? hint : had;
    } else {
        int err = tree_delete(wood->tree, w->thread, key, &out);
        HK_ASSERT(err == (had == 0 ? HK_ERR_NOTFOUND : HK_OK));
        HK_ASSERT(out == had);
        w->own[id] = 0;
    }
}

static void look_own(struct worker *w, uint64_t id)
{
    uint8_t space[KEY_BYTES];
    uint64_t out = 0;
    int err = tree_find(w->wood->tree, w->thread, key_make(space, id), &out);
    HK_ASSERT(err == (w->own[id] == 0 ? HK_ERR_NOTFOUND : HK_OK));
    HK_ASSERT(out == w->own[id]);
}

/* Each hint that goes in changes the balance once, and once more when it comes out. */
static void change_stable(struct worker *w, uint64_t id)
{
    uint8_t space[KEY_BYTES];
    uint64_t hint = hint_make(w, id), old = 0;
    HK_ASSERT(tree_update(w->wood->tree, w->thread, key_make(space, id), hint, &old) == HK_OK);
    HK_ASSERT(hint_id(old) == id);
    w->balance ^= hint ^ old;
}

static void change_shared(struct worker *w, uint64_t id)
{
    struct wood *wood = w->wood;
    uint8_t space[KEY_BYTES];
    struct bytes key = key_make(space, id);
    uint64_t hint = hint_make(w, id), old = 0;
    switch (random_below(&w->random, 3)) {
    case 0:
        if (tree_insert(wood->tree, w->thread, key, hint, &old) == HK_OK) {
            w->balance ^= hint;
        } else {
            HK_ASSERT(hint_id(old) == id);
        }
        return;
    case 1:
        if (tree_update(wood->tree, w->thread, key, hint, &old) == HK_OK) {
            w->balance ^= hint ^ old;
        }
        return;
    default:
        if (tree_delete(wood->tree, w->thread, key, &old) == HK_OK) {
            HK_ASSERT(hint_id(old) == id);
            w->balance ^= old;
        }
        return;
    }
}

static void write_step(struct worker *w, uint32_t step)
{
    struct wood *wood = w->wood;
    uint64_t id = random_below(&w->random, wood->ids);
    /* Phases in which the tree fills up and empties again. */
    bool grow = step / (wood->steps / 6u) % 2u == 0;
    uint64_t what = random_below(&w->random, 100);
    if (what < 2) {
        /* A window of own keys comes or goes. */
        uint64_t end = id + random_below(&w->random, wood->ids / 8u);
        for (; id < end && id < wood->ids; id++) {
            if (is_own(w, id)) {
                change_own(w, id, grow);
            }
        }
    } else if (what < 3) {
        scan(w, id, random_chance(&w->random, 500000), wood->ids / 4u, true);
    } else if (is_stable(id)) {
        change_stable(w, id);
    } else if (is_shared(id)) {
        change_shared(w, id);
    } else if (is_own(w, id)) {
        if (what < 60) {
            change_own(w, id, random_chance(&w->random, grow ? 800000 : 200000));
        } else {
            look_own(w, id);
        }
    }
}

static void write_all(struct worker *w)
{
    for (uint32_t step = 0; step < w->wood->steps; step++) {
        write_step(w, step);
        if (step % 16 == 0) {
            store_quiescent(w->thread);
        }
    }
    atomic_fetch_sub_explicit(&w->wood->writers_left, 1, memory_order_release);
}

/* ---- Scanners ---- */

static void look_anywhere(struct worker *w)
{
    uint8_t space[KEY_BYTES];
    uint64_t id = random_below(&w->random, w->wood->ids), out = 0;
    int err = tree_find(w->wood->tree, w->thread, key_make(space, id), &out);
    HK_ASSERT(err == HK_OK || (err == HK_ERR_NOTFOUND && !is_stable(id)));
    HK_ASSERT(err != HK_OK || hint_id(out) == id);
}

static void scan_all(struct worker *w)
{
    struct wood *wood = w->wood;
    while (w->scans < SHARE ||
           atomic_load_explicit(&wood->writers_left, memory_order_acquire) > 0) {
        bool forwards = w->scans % 2 == 0;
        bool whole = random_chance(&w->random, 300000);
        uint64_t from =
            whole ? (forwards ? 0 : wood->ids - 1) : random_below(&w->random, wood->ids);
        scan(w, from, forwards, whole ? UINT64_MAX : 100, false);
        w->scans++;
        for (uint32_t i = 0; i < LOOKUPS; i++) {
            look_anywhere(w);
        }
        if (w->scans % 32 == 31) {
            store_offline(w->thread);
            sched_yield();
            store_online(w->thread);
        } else {
            store_quiescent(w->thread);
        }
    }
}

/* ---- The test ---- */

static void *run_worker(void *argument)
{
    struct worker *w = argument;
    struct wood *wood = w->wood;
    HK_ASSERT(store_thread_register(wood->store, &w->thread) == HK_OK);
    atomic_fetch_add(&wood->started, 1);
    while (atomic_load(&wood->started) < THREADS) {
        sched_yield();
    }
    if (w->number < WRITERS) {
        write_all(w);
    } else {
        scan_all(w);
    }
    store_thread_unregister(w->thread);
    return NULL;
}

static uint64_t plant_stable(struct wood *wood, struct store_thread *thread)
{
    uint64_t balance = 0;
    for (uint64_t id = 0; id < wood->ids; id += KINDS) {
        uint8_t space[KEY_BYTES];
        HK_ASSERT(tree_insert(wood->tree, thread, key_make(space, id), id << 40, NULL) == HK_OK);
        balance ^= id << 40;
    }
    return balance;
}

/* All is as the workers say, and nothing is left when all is deleted. */
static void check_end(struct wood *wood, struct store_thread *t, struct worker *workers,
                      uint64_t balance, uint64_t empty_bytes)
{
    const char *broken = tree_check(wood->tree);
    if (broken != NULL) {
        fail_msg("%s", broken);
    }
    for (uint32_t i = 0; i < WRITERS; i++) {
        balance ^= workers[i].balance;
    }
    for (uint64_t id = 0; id < wood->ids; id++) {
        uint8_t space[KEY_BYTES];
        uint64_t out = 0;
        int err = tree_delete(wood->tree, t, key_make(space, id), &out);
        if (is_stable(id) || is_shared(id)) {
            assert_true(err == HK_OK || is_shared(id));
            balance ^= out;
        } else {
            assert_int_equal(out, workers[id % WRITERS].own[id]);
        }
    }
    assert_int_equal(balance, 0);
    struct tree_stats stats;
    tree_stats(wood->tree, &stats);
    assert_int_equal(stats.keys, 0);
    assert_int_equal(stats.leaves, 1);
    struct store_stats memory;
    for (uint32_t i = 0; i < 10000; i++) {
        store_quiescent(t);
    }
    store_stats(wood->store, &memory);
    assert_int_equal(memory.retired_bytes, 0);
    assert_int_equal(memory.bytes_used, empty_bytes);
}

static void run_wood(uint32_t ids, uint32_t steps, uint64_t seed)
{
    struct wood wood = {.ids = ids, .steps = steps};
    struct worker *workers = calloc(THREADS, sizeof(*workers));
    assert_non_null(workers);
    struct store_config config = {.seed = seed};
    struct store_thread *t;
    struct store_stats empty;
    assert_int_equal(store_create(&config, &wood.store), HK_OK);
    assert_int_equal(store_thread_register(wood.store, &t), HK_OK);
    assert_int_equal(tree_create(wood.store, t, &wood.tree), HK_OK);
    store_stats(wood.store, &empty);
    uint64_t balance = plant_stable(&wood, t);
    /* It would hold back all reclamation. */
    store_offline(t);
    atomic_store(&wood.writers_left, WRITERS);
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i].wood = &wood;
        workers[i].number = i;
        random_init(&workers[i].random, seed * 100u + i);
        assert_int_equal(pthread_create(&threads[i], NULL, run_worker, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    print_message("%u ids, seed %llu: %llu and %llu scans\n", ids, (unsigned long long)seed,
                  (unsigned long long)workers[WRITERS].scans,
                  (unsigned long long)workers[WRITERS + 1].scans);
    store_online(t);
    check_end(&wood, t, workers, balance, empty.bytes_used);
    tree_destroy(wood.tree, t);
    store_thread_unregister(t);
    store_destroy(wood.store);
    free(workers);
}

static uint64_t first_seed = 1;

/* One leaf, which changes all the time while everybody searches in it. */
static void test_one_leaf(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 2; seed++) {
        run_wood(56, 150000, seed);
    }
}

/* Hundreds of leaves. */
static void test_many_leaves(void **state)
{
    (void)state;
    run_wood(IDS_MAX, 80000, first_seed);
}

/* A handful of leaves: the root splits and collapses, everybody meets everybody. */
static void test_few_leaves(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 4; seed++) {
        run_wood(320, 30000, seed);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_leaf),
        cmocka_unit_test(test_many_leaves),
        cmocka_unit_test(test_few_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
