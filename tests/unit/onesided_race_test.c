/* The one-sided baselines, whose verbs are executed word by word in whichever order the seed says:
 * what is read is never half of a node, no key is lost, and locks keep transactions apart. */
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_that_is_built_has_all_its_keys),
        cmocka_unit_test(inserts_that_meet_lose_no_key),
        cmocka_unit_test(locks_keep_transactions_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
