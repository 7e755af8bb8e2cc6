/* The one-sided baselines, whose verbs are executed word by word in whichever order the seed says:
 * what is read is never half of a node, no key is lost, and locks keep transactions apart. */
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "onesided/txn.h"
#include "onesided/tree.h"

#define NODES 3u
#define BYTES (4u << 20)
#define THREADS_MAX 8u

/* One thread's posting: verbs of one node in their order, words of one verb in any. */
struct runner {
    struct posting post;
    struct posting done;
    uint32_t at[NODES_MAX];    /* the verb that is next at a node; post.n: none */
    uint64_t words[NODES_MAX]; /* of it that are done, if it has so few; else a count */
    uint32_t order[NODES_MAX][ONE_NODE_WORDS_MAX + 8];
    uint64_t wakes; /* the tick from which it goes on */
    bool busy;
};

static uint32_t next_verb(const struct posting *p, uint32_t node, uint32_t from)
{
    while (from < p->n && remote_node(p->verbs[from].at) != node)
        from++;
    return from;
}

static void load_verb(struct runner *r, uint32_t node, struct random *random)
{
    uint32_t words = r->at[node] < r->post.n ? r->post.verbs[r->at[node]].words : 0;
    r->words[node] = 0;
    assert_true(words <= ONE_NODE_WORDS_MAX + 8);
    for (uint32_t i = 0; i < words; i++) {
        uint32_t j = (uint32_t)random_below(random, i + 1);
        r->order[node][i] = r->order[node][j];
        r->order[node][j] = i;
    }
}

static void start(struct runner *r, uint64_t tick, struct random *random)
{
    for (uint32_t i = 0; i < NODES; i++) {
        r->at[i] = next_verb(&r->post, i, 0);
        load_verb(r, i, random);
    }
    r->wakes = tick + r->post.delay_ns / 100;
    r->busy = true;
}

/* A word of the next verb at one of its nodes; false: all is done. */
static bool work(struct runner *r, const struct memory *memory, struct random *random)
{
    uint32_t ready[NODES], n = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        if (r->at[i] < r->post.n)
            ready[n++] = i;
    }
    if (n == 0)
        return false;
    uint32_t node = ready[random_below(random, n)];
    struct verb *v = &r->post.verbs[r->at[node]];
    if (v->kind == VERB_READ || v->kind == VERB_WRITE) {
        memory_apply_word(memory, v, r->order[node][r->words[node]++]);
        if (r->words[node] < v->words)
            return true;
    } else {
        memory_apply(memory, v);
    }
    r->at[node] = next_verb(&r->post, node, r->at[node] + 1);
    load_verb(r, node, random);
    return true;
}

/* What a thread does when its posting is done; fills post. False: the thread is over. */
typedef bool go_on(void *context, uint32_t thread, const struct posting *done,
                   struct posting *post);

static void play(const struct memory *memory, uint32_t threads, uint64_t seed, go_on *step,
                 void *context)
{
    struct runner *runners = calloc(threads, sizeof *runners);
    bool over[THREADS_MAX] = {false};
    struct random random;
    uint32_t left = threads;
    assert_non_null(runners);
    random_init(&random, seed);
    for (uint64_t tick = 0; left > 0; tick++) {
        uint32_t i = (uint32_t)random_below(&random, threads);
        struct runner *r = &runners[i];
        assert_true(tick < 200u * 1000 * 1000);
        if (over[i] || (r->busy && tick < r->wakes))
            continue;
        if (r->busy && work(r, memory, &random))
            continue;
        r->done = r->post;
        r->post.n = 0;
        r->post.delay_ns = 0;
        if (!step(context, i, &r->done, &r->post)) {
            over[i] = true;
            left--;
            continue;
        }
        start(r, tick, &random);
    }
    free(runners);
}

/* ---- The tree ---- */

#define PER_THREAD 60u

struct inserting {
    struct one_tree tree;
    struct one_cache *caches[THREADS_MAX];
    struct one_insert inserts[THREADS_MAX];
    struct one_walk walks[THREADS_MAX];
    uint32_t next[THREADS_MAX];
    bool walking[THREADS_MAX];
    struct random random;
    uint32_t threads;
    bool every; /* thread i looks for every key that it has put */
};

static uint64_t key_of(uint32_t thread, uint32_t i)
{
    return 10 + ((uint64_t)i * 7919 + (uint64_t)thread * 104729) % 100003;
}

static bool insert_on(void *context, uint32_t thread, const struct posting *done,
                      struct posting *post)
{
    struct inserting *s = context;
    struct one_insert *in = &s->inserts[thread];
    struct one_walk *walk = &s->walks[thread];
    if (s->walking[thread]) {
        if (!one_walk_step(walk, &s->tree, s->caches[thread], post))
            return true;
        assert_true(walk->found);
        assert_int_equal(walk->value, walk->key * 3);
        s->walking[thread] = false;
    } else if (s->next[thread] > 0) {
        if (!one_insert_step(in, &s->tree, s->caches[thread], done, post))
            return true;
        /* One of its own keys must be there. */
        one_walk_begin(walk, key_of(thread, (uint32_t)random_below(&s->random, s->next[thread])),
                       0);
        s->walking[thread] = true;
        if (!one_walk_step(walk, &s->tree, s->caches[thread], post))
            return true;
    }
    if (s->next[thread] == PER_THREAD)
        return false;
    uint64_t key = key_of(thread, s->next[thread]++);
    one_insert_begin(in, key, key * 3);
    assert_false(one_insert_step(in, &s->tree, s->caches[thread], done, post));
    return true;
}

static void insert_with(uint32_t node_words, uint64_t copies, uint64_t seed)
{
    struct memory memory;
    struct inserting *s = calloc(1, sizeof *s);
    const uint64_t first[] = {5, 50000}, values[] = {15, 150000};
    assert_non_null(s);
    assert_true(memory_open(&memory, NODES, BYTES));
    one_tree_build(&s->tree, &memory, node_words, 64, first, values, 2, 0.7);
    random_init(&s->random, seed);
    s->threads = 5;
    for (uint32_t i = 0; i < s->threads; i++) {
        s->caches[i] = one_cache_new(&s->tree, copies);
        assert_non_null(s->caches[i]);
    }
    play(&memory, s->threads, seed, insert_on, s);

    uint64_t nodes[ONE_LEVELS_MAX];
    assert_true(one_tree_count(&s->tree, &memory, nodes) > 1);
    for (uint32_t i = 0; i < s->threads; i++) { /* all keys, by a cache that is old */
        for (uint32_t j = 0; j < s->threads * PER_THREAD; j++) {
            struct posting post = {.n = 0};
            one_walk_begin(&s->walks[i], key_of(j / PER_THREAD, j % PER_THREAD), 0);
            while (!one_walk_step(&s->walks[i], &s->tree, s->caches[i], &post)) {
                for (uint32_t k = 0; k < post.n; k++)
                    memory_apply(&memory, &post.verbs[k]);
                post.n = 0;
            }
            assert_true(s->walks[i].found);
        }
        one_cache_free(s->caches[i]);
    }
    memory_close(&memory);
    free(s);
}

static void inserts_that_meet_lose_no_key(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        insert_with(16, 1000, seed);
        insert_with(16, 4, seed);
        insert_with(32, 0, seed);
    }
}

static void a_tree_that_is_built_has_all_its_keys(void **state)
{
    (void)state;
    enum { N = 5000 };
    static uint64_t keys[N], values[N];
    static struct one_walk walk;
    struct memory memory;
    struct one_tree tree;
    for (uint32_t i = 0; i < N; i++) {
        keys[i] = 3 + 2u * i;
        values[i] = i;
    }
    assert_true(memory_open(&memory, NODES, BYTES));
    one_tree_build(&tree, &memory, 32, 4096, keys, values, N, 0.7);
    struct one_cache *cache = one_cache_new(&tree, 64);
    assert_non_null(cache);
    for (uint32_t i = 0; i < 2 * N + 10; i++) {
        struct posting post = {.n = 0};
        one_walk_begin(&walk, i, 0);
        while (!one_walk_step(&walk, &tree, cache, &post)) {
            for (uint32_t k = 0; k < post.n; k++)
                memory_apply(&memory, &post.verbs[k]);
            post.n = 0;
        }
        bool there = i >= 3 && i % 2 == 1 && i < 3 + 2 * N;
        assert_int_equal(walk.found, there);
        if (there)
            assert_int_equal(walk.value, (i - 3) / 2);
    }
    assert_true(one_cache_stats(cache).hits > one_cache_stats(cache).misses);
    one_cache_free(cache);
    memory_close(&memory);
}

/* ---- Transactions ---- */

#define ACCOUNTS 6u
#define TXNS 40u
#define VALUE_WORDS 4u

struct banking {
    struct one_tree tree;
    struct one_config config;
    struct one_cache *caches[THREADS_MAX];
    struct one_hints hints[THREADS_MAX];
    struct one_txn txns[THREADS_MAX];
    uint32_t left[THREADS_MAX];
    bool running[THREADS_MAX];
    struct random random;
    uint64_t clock;
    uint64_t aborts;
    uint64_t checks;
};

static void draw(struct banking *b, uint32_t thread)
{
    struct one_txn *t = &b->txns[thread];
    bool transfers = random_below(&b->random, 3) > 0;
    uint32_t n = transfers ? 2 : ACCOUNTS;
    uint64_t first = random_below(&b->random, ACCOUNTS);
    uint64_t step = 1 + random_below(&b->random, ACCOUNTS - 1);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t account = transfers ? (first + i * step) % ACCOUNTS : (first + i) % ACCOUNTS;
        t->requests[i].key = 100 + account;
        t->requests[i].write = transfers;
    }
    one_txn_begin(t, ++b->clock, n);
}

/* Every word of a value is the same; transfers keep the sum. */
static void use(struct banking *b, struct one_txn *t)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        uint64_t *value = t->requests[i].record + ONE_RECORD_HEAD;
        for (uint32_t j = 1; j < VALUE_WORDS; j++)
            assert_int_equal(value[j], value[0]);
        sum += value[0];
        if (t->requests[i].write) {
            for (uint32_t j = 0; j < VALUE_WORDS; j++)
                value[j] += i == 0 ? 1u : UINT64_MAX;
        }
    }
    if (t->n == ACCOUNTS) {
        assert_int_equal(sum, ACCOUNTS * 1000u);
        b->checks++;
    }
}

static bool bank_on(void *context, uint32_t thread, const struct posting *done,
                    struct posting *post)
{
    struct banking *b = context;
    struct one_txn *t = &b->txns[thread];
    for (;;) {
        if (!b->running[thread]) {
            if (b->left[thread] == 0)
                return false;
            b->left[thread]--;
            b->running[thread] = true;
            draw(b, thread);
        }
        switch (one_txn_step(t, done, post)) {
        case ONE_POSTED:
            return true;
        case ONE_READY:
            use(b, t);
            break;
        case ONE_FINISHED:
            assert_false(t->absent);
            b->aborts += t->tries;
            b->running[thread] = false;
            break;
        }
    }
}

static void bank_with(enum one_policy policy, bool overlap, uint64_t hints, uint64_t seed,
                      uint64_t *aborts)
{
    struct memory memory;
    struct banking *b = calloc(1, sizeof *b);
    uint64_t keys[ACCOUNTS], at[ACCOUNTS];
    const uint32_t threads = 5;
    assert_non_null(b);
    assert_true(memory_open(&memory, NODES, BYTES));
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        keys[i] = 100 + i;
        at[i] = remote_of(i % NODES, 4096 + 8u * 16 * i);
        atomic_store(memory_word(&memory, at[i] + 8), keys[i]);
        for (uint32_t j = 0; j < VALUE_WORDS; j++)
            atomic_store(memory_word(&memory, at[i] + 16 + 8u * j), 1000);
    }
    one_tree_build(&b->tree, &memory, 16, 1u << 16, keys, at, ACCOUNTS, 0.7);
    random_init(&b->random, seed);
    b->config = (struct one_config){
        .policy = (uint8_t)policy, .overlap = overlap, .value_words = VALUE_WORDS};
    for (uint32_t i = 0; i < threads; i++) {
        b->caches[i] = one_cache_new(&b->tree, 16);
        assert_non_null(b->caches[i]);
        assert_true(one_hints_open(&b->hints[i], hints));
        b->txns[i] = (struct one_txn){.config = &b->config,
                                      .tree = &b->tree,
                                      .cache = b->caches[i],
                                      .hints = &b->hints[i],
                                      .random = &b->random};
        b->left[i] = TXNS;
    }
    play(&memory, threads, seed, bank_on, b);
    assert_true(b->checks > 0);
    *aborts += b->aborts;
    for (uint32_t i = 0; i < threads; i++) {
        one_cache_free(b->caches[i]);
        one_hints_close(&b->hints[i]);
    }
    for (uint32_t i = 0; i < ACCOUNTS; i++) /* nothing is locked any more */
        assert_int_equal(atomic_load(memory_word(&memory, at[i])) & ~ONE_LOCK_AGE, 0);
    memory_close(&memory);
    free(b);
}

static void locks_keep_transactions_apart(void **state)
{
    uint64_t aborts = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        for (uint32_t policy = 0; policy < ONE_POLICIES; policy++) {
            bank_with((enum one_policy)policy, false, 0, seed, &aborts);
            bank_with((enum one_policy)policy, true, 16, seed, &aborts);
        }
    }
    assert_true(aborts > 100);
}

/* ---- Keys that have no record yet ---- */

#define PLACES 20u
#define ROOM 80u

/* All locks of a transaction are held when it is ready, so that is where it stands in the order:
 * what it has read must be what those before it have left. */
struct filling {
    struct one_tree tree;
    struct one_config config;
    struct one_room rooms[THREADS_MAX];
    struct one_cache *caches[THREADS_MAX];
    struct one_hints hints[THREADS_MAX];
    struct one_txn txns[THREADS_MAX];
    uint32_t left[THREADS_MAX];
    bool running[THREADS_MAX];
    struct random random;
    uint64_t clock, model[PLACES]; /* what was written last; 0: nothing */
    uint64_t aborts, absences, inserted, fulls;
};

static void draw_filling(struct filling *f, uint32_t thread)
{
    struct one_txn *t = &f->txns[thread];
    uint32_t n = 1 + (uint32_t)random_below(&f->random, 4);
    uint64_t first = random_below(&f->random, PLACES);
    for (uint32_t i = 0; i < n; i++) {
        t->requests[i].key = 100 + (first + 3 * i) % PLACES;
        t->requests[i].write = random_chance(&f->random, 300000);
    }
    one_txn_begin(t, ++f->clock, n);
}

static void judge_filling(struct filling *f, struct one_txn *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        struct one_request *r = &t->requests[i];
        uint64_t *value = r->record + ONE_RECORD_HEAD, *model = &f->model[r->key - 100];
        assert_int_equal(r->ghost, *model == 0);
        f->absences += r->ghost && !r->write;
        f->inserted += r->ghost && r->write;
        for (uint32_t j = 0; j < VALUE_WORDS; j++) {
            assert_true(r->ghost || value[j] == *model);
            value[j] = r->write ? t->age : value[j];
        }
        *model = r->write ? t->age : *model;
    }
}

static bool fill_on(void *context, uint32_t thread, const struct posting *done,
                    struct posting *post)
{
    struct filling *f = context;
    struct one_txn *t = &f->txns[thread];
    for (;;) {
        if (!f->running[thread]) {
            if (f->left[thread] == 0)
                return false;
            f->left[thread]--;
            f->running[thread] = true;
            draw_filling(f, thread);
        }
        switch (one_txn_step(t, done, post)) {
        case ONE_POSTED:
            return true;
        case ONE_READY:
            judge_filling(f, t);
            break;
        case ONE_FINISHED:
            assert_false(t->absent);
            f->fulls += t->full;
            f->aborts += t->tries;
            f->running[thread] = false;
            break;
        }
    }
}

/* Every key that was written, and no lock. */
static void judge_tree(struct filling *f, const struct memory *memory)
{
    struct one_walk *walk = calloc(1, sizeof *walk);
    assert_non_null(walk);
    for (uint64_t key = 100; key < 100 + PLACES; key++) {
        struct posting post = {.n = 0};
        one_walk_begin(walk, key, 0);
        while (!one_walk_step(walk, &f->tree, f->caches[0], &post)) {
            for (uint32_t i = 0; i < post.n; i++)
                memory_apply(memory, &post.verbs[i]);
            post.n = 0;
        }
        assert_true(walk->found || f->model[key - 100] == 0);
        if (walk->found) {
            uint64_t word = atomic_load(memory_word(memory, walk->value + 8));
            assert_int_equal(word, f->model[key - 100] == 0 ? key | ONE_GHOST : key);
            assert_int_equal(atomic_load(memory_word(memory, walk->value)) & ~ONE_LOCK_AGE, 0);
            assert_int_equal(atomic_load(memory_word(memory, walk->value + 16)),
                             f->model[key - 100]);
        }
    }
    free(walk);
}

static void fill_with(enum one_policy policy, bool overlap, uint32_t records, uint64_t seed,
                      struct filling *f)
{
    struct memory memory;
    uint64_t counts[] = {f->aborts, f->absences, f->inserted, f->fulls};
    const uint64_t key = 107, at = remote_of(0, 4096);
    const uint32_t threads = 5;
    memset(f, 0, sizeof *f);
    f->aborts = counts[0], f->absences = counts[1], f->inserted = counts[2], f->fulls = counts[3];
    assert_true(memory_open(&memory, NODES, BYTES));
    f->model[key - 100] = 1;
    atomic_store(memory_word(&memory, at + 8), key);
    for (uint32_t j = 0; j < VALUE_WORDS; j++)
        atomic_store(memory_word(&memory, at + 16 + 8u * j), 1);
    one_tree_build(&f->tree, &memory, 16, 1u << 16, &key, &at, 1, 0.7);
    random_init(&f->random, seed);
    f->config = (struct one_config){
        .policy = (uint8_t)policy, .overlap = overlap, .value_words = VALUE_WORDS};
    for (uint32_t i = 0; i < threads; i++) {
        struct one_room *room = &f->rooms[i];
        *room =
            (struct one_room){.nodes = NODES, .record_bytes = 8u * (ONE_RECORD_HEAD + VALUE_WORDS)};
        for (uint32_t j = 0; j < NODES; j++) {
            room->next[j] = one_tree_take(&f->tree, &memory, j, records * room->record_bytes);
            room->end[j] = room->next[j] + records * room->record_bytes;
        }
        f->caches[i] = one_cache_new(&f->tree, 16);
        assert_non_null(f->caches[i]);
        assert_true(one_hints_open(&f->hints[i], seed % 2 == 0 ? 16 : 0));
        f->txns[i] = (struct one_txn){.config = &f->config,
                                      .tree = &f->tree,
                                      .cache = f->caches[i],
                                      .hints = &f->hints[i],
                                      .random = &f->random,
                                      .room = room};
        f->left[i] = TXNS;
    }
    play(&memory, threads, seed, fill_on, f);
    judge_tree(f, &memory);
    for (uint32_t i = 0; i < threads; i++) {
        one_cache_free(f->caches[i]);
        one_hints_close(&f->hints[i]);
    }
    memory_close(&memory);
}

static void absent_keys_are_rows_as_any(void **state)
{
    struct filling *f = calloc(1, sizeof *f);
    (void)state;
    assert_non_null(f);
    for (uint64_t seed = 1; seed <= 25; seed++) {
        for (uint32_t policy = 0; policy < ONE_POLICIES; policy++) {
            fill_with((enum one_policy)policy, false, ROOM, seed, f);
            fill_with((enum one_policy)policy, true, ROOM, seed, f);
        }
    }
    assert_true(f->aborts > 100 && f->absences > 100 && f->inserted > 500);
    assert_int_equal(f->fulls, 0);
    free(f);
}

static void without_room_nothing_happens(void **state)
{
    struct filling *f = calloc(1, sizeof *f);
    (void)state;
    assert_non_null(f);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        fill_with(ONE_NO_WAIT, false, 0, seed, f);
        fill_with(ONE_WAIT_DIE, true, 0, seed, f);
    }
    assert_true(f->fulls > 100 && f->inserted == 0);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_that_is_built_has_all_its_keys),
        cmocka_unit_test(inserts_that_meet_lose_no_key),
        cmocka_unit_test(locks_keep_transactions_apart),
        cmocka_unit_test(absent_keys_are_rows_as_any),
        cmocka_unit_test(without_room_nothing_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
