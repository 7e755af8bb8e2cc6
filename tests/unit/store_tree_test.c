/* The ordered index by one thread: what each function answers, keys of every kind, scans from
 * everywhere, the memory that comes back, and the faults that copies of this algorithm are known
 * for. The check of invariants is tested too: each invariant is broken by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "store/state.h"
#include "store/tree_state.h"
#include "support/store_tree.h"

#define MANY 20000u

static const struct store_config plain = {.seed = 5};

static void test_answers(void **state)
{
    (void)state;
    struct grove g;
    grove_open(&g, &plain);
    uint64_t out = 7;
    expect_no_hint(&g, text("a"));
    assert_int_equal(tree_update(g.tree, g.thread, text("a"), 1, &out), HK_ERR_NOTFOUND);
    assert_int_equal(tree_delete(g.tree, g.thread, text("a"), &out), HK_ERR_NOTFOUND);
    plant(&g, text("b"), 2);
    assert_int_equal(tree_insert(g.tree, g.thread, text("b"), 3, &out), HK_ERR_CONDITION);
    assert_int_equal(out, 2);
    expect_hint(&g, text("b"), 2);
    assert_int_equal(tree_update(g.tree, g.thread, text("b"), UINT64_MAX, &out), HK_OK);
    assert_int_equal(out, 2);
    expect_hint(&g, text("b"), UINT64_MAX);
    assert_int_equal(tree_update(g.tree, g.thread, text("b"), 0, NULL), HK_OK);
    expect_hint(&g, text("b"), 0);
    assert_int_equal(tree_delete(g.tree, g.thread, text("b"), NULL), HK_OK);
    expect_no_hint(&g, text("b"));
    assert_int_equal(grove_stats(&g).keys, 0);
    grove_close(&g);
}

static void test_bounds_of_keys(void **state)
{
    (void)state;
    static uint8_t long_key[STORE_KEY_MAX + 1];
    struct grove g;
    grove_open(&g, &plain);
    uint64_t out;
    struct bytes none = bytes_of(NULL, 0), over = bytes_of(long_key, STORE_KEY_MAX + 1);
    assert_int_equal(tree_insert(g.tree, g.thread, none, 1, NULL), HK_ERR_INVALID);
    assert_int_equal(tree_find(g.tree, g.thread, none, &out), HK_ERR_INVALID);
    assert_int_equal(tree_update(g.tree, g.thread, none, 1, NULL), HK_ERR_INVALID);
    assert_int_equal(tree_delete(g.tree, g.thread, none, NULL), HK_ERR_INVALID);
    assert_int_equal(tree_insert(g.tree, g.thread, over, 1, NULL), HK_ERR_TOOBIG);
    assert_int_equal(tree_find(g.tree, g.thread, over, &out), HK_ERR_TOOBIG);
    struct bytes longest = bytes_of(long_key, STORE_KEY_MAX);
    plant(&g, longest, 9);
    expect_hint(&g, longest, 9);
    expect_no_hint(&g, bytes_of(long_key, STORE_KEY_MAX - 1));
    grove_close(&g);
}

/* Zeros and nothing but zeros: only the lengths tell these keys apart. */
static void test_prefixes_of_each_other(void **state)
{
    (void)state;
    static uint8_t zeros[400];
    struct grove g;
    grove_open(&g, &plain);
    for (uint32_t n = 400; n >= 1; n--) {
        plant(&g, bytes_of(zeros, n), n);
    }
    expect_sound(&g);
    for (uint32_t n = 1; n <= 400; n++) {
        expect_hint(&g, bytes_of(zeros, n), n);
    }
    struct tree_cursor c;
    struct bytes key;
    uint64_t hint, n = 0;
    tree_seek(g.tree, g.thread, bytes_of(NULL, 0), false, TREE_FORWARDS, &c);
    while (tree_next(&c, &key, &hint)) {
        assert_int_equal(hint, ++n);
        assert_int_equal(key.n, n);
    }
    assert_int_equal(n, 400);
    for (n = 1; n <= 400; n += 2) {
        uproot(&g, bytes_of(zeros, (uint32_t)n), n);
    }
    for (n = 1; n <= 400; n++) {
        if (n % 2 == 0) {
            expect_hint(&g, bytes_of(zeros, (uint32_t)n), n);
        } else {
            expect_no_hint(&g, bytes_of(zeros, (uint32_t)n));
        }
    }
    grove_close(&g);
}

/* Every length around what is inline, with tails that differ only in the last byte. */
static void test_long_keys(void **state)
{
    (void)state;
    static uint8_t at[5000];
    static const uint32_t lengths[] = {1,   3,   4,   5,   8,   11,  12,   13,  126,
                                       127, 128, 129, 130, 300, 301, 4000, 5000};
    struct grove g;
    grove_open(&g, &plain);
    memset(at, 'x', sizeof(at));
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            for (uint32_t last = 0; last < 256; last += 5) {
                at[lengths[i] - 1] = (uint8_t)last;
                struct bytes key = bytes_of(at, lengths[i]);
                if (round == 0) {
                    plant(&g, key, lengths[i] * 256u + last);
                } else {
                    uproot(&g, key, lengths[i] * 256u + last);
                    expect_no_hint(&g, key);
                }
            }
            at[lengths[i] - 1] = 'x';
            expect_sound(&g);
            store_quiescent(g.thread);
        }
    }
    assert_int_equal(grove_stats(&g).leaves, 1);
    grove_close(&g);
}

static void fill_numbers(struct grove *g, uint64_t n, uint64_t step)
{
    uint8_t space[8];
    for (uint64_t i = 0; i < n; i++) {
        plant(g, number_key(space, i * step), i);
    }
}

/* Known fault: a miss that is said to be a hit, beside, between and behind all keys. */
static void test_misses_are_misses(void **state)
{
    (void)state;
    struct grove g;
    uint8_t space[8];
    grove_open(&g, &plain);
    fill_numbers(&g, MANY, 3);
    for (uint64_t i = 0; i < MANY; i++) {
        expect_hint(&g, number_key(space, 3 * i), i);
        expect_no_hint(&g, number_key(space, 3 * i + 1));
        expect_no_hint(&g, number_key(space, 3 * i + 2));
    }
    expect_no_hint(&g, number_key(space, UINT64_MAX));
    grove_close(&g);
}

/* ---- Scans ---- */

/* Walks from a place to the end and expects numbers from, from + step, ... */
static void expect_walk(struct grove *g, uint64_t from, bool exclusive,
                        enum tree_direction direction, uint64_t first, uint64_t step, uint64_t n)
{
    uint8_t space[8], other[8];
    struct tree_cursor c;
    struct bytes key;
    uint64_t hint, seen = 0, expected = first;
    tree_seek(g->tree, g->thread, number_key(space, from), exclusive, direction, &c);
    while (seen < n) {
        assert_true(tree_next(&c, &key, &hint));
        assert_true(bytes_equal(key, number_key(other, expected)));
        expected += direction == TREE_FORWARDS ? step : (uint64_t)0 - step;
        seen++;
    }
}

/* Known fault: a scan that ends with the leaf that it began in. From each key and each gap. */
static void test_scans_cross_leaves(void **state)
{
    (void)state;
    struct grove g;
    grove_open(&g, &plain);
    fill_numbers(&g, 2000, 2);
    for (uint64_t i = 0; i < 1000; i++) {
        expect_walk(&g, 2 * i, false, TREE_FORWARDS, 2 * i, 2, 500);
        expect_walk(&g, 2 * i, true, TREE_FORWARDS, 2 * i + 2, 2, 500);
        expect_walk(&g, 2 * i + 1, false, TREE_FORWARDS, 2 * i + 2, 2, 500);
        uint64_t j = 3998 - 2 * i;
        expect_walk(&g, j, false, TREE_BACKWARDS, j, 2, 500);
        expect_walk(&g, j, true, TREE_BACKWARDS, j - 2, 2, 500);
        expect_walk(&g, j + 1, false, TREE_BACKWARDS, j, 2, 500);
    }
    grove_close(&g);
}

static void test_scans_end(void **state)
{
    (void)state;
    struct grove g;
    uint8_t space[8];
    struct tree_cursor c;
    struct bytes key, none = bytes_of(NULL, 0);
    uint64_t hint, n;
    grove_open(&g, &plain);
    for (uint32_t d = 0; d < 2; d++) {
        tree_seek(g.tree, g.thread, none, false, (enum tree_direction)d, &c);
        assert_false(tree_next(&c, &key, &hint));
        assert_false(tree_next(&c, &key, &hint));
    }
    fill_numbers(&g, MANY, 1);
    for (uint32_t d = 0; d < 2; d++) {
        tree_seek(g.tree, g.thread, none, false, (enum tree_direction)d, &c);
        for (n = 0; tree_next(&c, &key, &hint); n++) {
            assert_int_equal(hint, d == 0 ? n : MANY - 1 - n);
        }
        assert_int_equal(n, MANY);
        assert_false(tree_next(&c, &key, &hint));
    }
    tree_seek(g.tree, g.thread, number_key(space, MANY), false, TREE_FORWARDS, &c);
    assert_false(tree_next(&c, &key, &hint));
    tree_seek(g.tree, g.thread, number_key(space, 0), true, TREE_BACKWARDS, &c);
    assert_false(tree_next(&c, &key, &hint));
    grove_close(&g);
}

/* What is peeked at comes later, and there is something to peek at nearly always. */
static void test_peeking(void **state)
{
    (void)state;
    struct grove g;
    struct tree_cursor c;
    struct bytes key;
    uint64_t hint, later, peeked = 0;
    grove_open(&g, &plain);
    tree_seek(g.tree, g.thread, bytes_of(NULL, 0), false, TREE_FORWARDS, &c);
    assert_false(tree_peek(&c, 0, &later));
    fill_numbers(&g, 1000, 1);
    for (uint32_t d = 0; d < 2; d++) {
        tree_seek(g.tree, g.thread, bytes_of(NULL, 0), false, (enum tree_direction)d, &c);
        for (uint64_t n = 0; n < 1000; n++) {
            for (uint32_t ahead = 0; ahead < 10; ahead++) {
                if (tree_peek(&c, ahead, &later)) {
                    assert_int_equal(later, d == 0 ? n + ahead : 999 - n - ahead);
                    peeked++;
                }
            }
            assert_true(tree_next(&c, &key, &hint));
        }
        assert_false(tree_next(&c, &key, &hint));
        assert_false(tree_peek(&c, 0, &later));
    }
    assert_true(peeked > 2 * 1000 * 9);
    grove_close(&g);
}

/* What a cursor gave still comes next: it says so as long as its leaf is as it was, and never of
 * the step to another leaf. */
static void test_a_cursor_knows_what_holds(void **state)
{
    (void)state;
    struct grove g;
    struct tree_cursor c;
    struct bytes key;
    uint64_t hint, held = 0;
    grove_open(&g, &plain);
    fill_numbers(&g, 1000, 1);
    for (uint32_t d = 0; d < 2; d++) {
        tree_seek(g.tree, g.thread, bytes_of(NULL, 0), false, (enum tree_direction)d, &c);
        while (tree_next(&c, &key, &hint)) {
            held += tree_holds(&c);
        }
        assert_true(tree_holds(&c));
    }
    assert_true(held > 2 * 900 && held < 2 * 1000);
    tree_seek(g.tree, g.thread, bytes_of(NULL, 0), false, TREE_FORWARDS, &c);
    assert_true(tree_next(&c, &key, &hint) && tree_holds(&c));
    assert_int_equal(tree_insert(g.tree, g.thread, bytes_of("\0", 1), 1, NULL), HK_OK);
    assert_false(tree_holds(&c));
    assert_true(tree_next(&c, &key, &hint));
    assert_false(tree_holds(&c));
    grove_close(&g);
}

/* The tree changes below a cursor: what was there throughout is met, in order, once. */
static void walk_while_changing(enum tree_direction direction, bool shrinking)
{
    struct grove g;
    uint8_t space[8];
    struct tree_cursor c;
    struct bytes key;
    uint64_t hint, kept = 0, n = 6000;
    bool forwards = direction == TREE_FORWARDS;
    grove_open(&g, &plain);
    fill_numbers(&g, n, 4);
    tree_seek(g.tree, g.thread, bytes_of(NULL, 0), false, direction, &c);
    /* In front of the cursor all keys but every 64th go, or others come between them. */
    for (uint64_t i = 0, last = UINT64_MAX; tree_next(&c, &key, &hint); i++) {
        uint64_t id = 0;
        for (uint32_t j = 0; j < 8; j++) {
            id = id << 8 | key.at[j];
        }
        assert_true(last == UINT64_MAX || (forwards ? id > last : id < last));
        last = id;
        kept += id % 256 == 0;
        for (uint64_t j = 0; j < 20 && i % 10 == 0; j++) {
            uint64_t other = forwards ? id / 4 + 2 + i % 7 * 20 + j : id / 4 - 2 - i % 7 * 20 - j;
            if (other >= n) {
                continue;
            }
            int err = HK_OK;
            if (!shrinking) {
                err = tree_insert(g.tree, g.thread, number_key(space, 4 * other + 1), other, NULL);
                assert_true(err == HK_OK || err == HK_ERR_CONDITION);
            } else if (other % 64 != 0) {
                err = tree_delete(g.tree, g.thread, number_key(space, 4 * other), NULL);
                assert_true(err == HK_OK || err == HK_ERR_NOTFOUND);
            }
        }
    }
    assert_int_equal(kept, (n + 63) / 64);
    grove_close(&g);
}

static void test_scans_of_a_changing_tree(void **state)
{
    (void)state;
    walk_while_changing(TREE_FORWARDS, true);
    walk_while_changing(TREE_FORWARDS, false);
    walk_while_changing(TREE_BACKWARDS, true);
    walk_while_changing(TREE_BACKWARDS, false);
}

/* Behind the leaf that a cursor has copied nothing is of yesterday: the next leaf was merged into
 * others meanwhile, keys are gone, hints are new. */
static void test_scans_leave_dead_leaves(void **state)
{
    (void)state;
    for (uint32_t d = 0; d < 2; d++) {
        struct grove g;
        uint8_t space[8], other[8];
        struct tree_cursor c;
        struct bytes key;
        uint64_t hint, n, met = 0;
        grove_open(&g, &plain);
        fill_numbers(&g, MANY, 1);
        tree_seek(g.tree, g.thread, bytes_of(NULL, 0), false, (enum tree_direction)d, &c);
        assert_true(tree_next(&c, &key, &hint));
        for (uint64_t i = 0; i < MANY; i++) {
            (void)number_key(space, i);
            if (i % 64 != 0) {
                uproot(&g, bytes_of(space, 8), i);
            } else {
                assert_int_equal(tree_update(g.tree, g.thread, bytes_of(space, 8), i + 70000, NULL),
                                 HK_OK);
            }
        }
        for (n = 0; tree_next(&c, &key, &hint); n++) {
            if (n >= TREE_SLOTS_MAX) {
                assert_int_equal(hint % 64, 70000 % 64);
                assert_true(bytes_equal(key, number_key(other, hint - 70000)));
                met++;
            }
        }
        assert_true(met > MANY / 64 - TREE_SLOTS_MAX);
        grove_close(&g);
    }
}

/* ---- Merges ---- */

/* Known fault: a merge that leaves separators behind, so that keys which come back are put where
 * nobody looks for them. Whole ranges go and come back, in many places and sizes. */
static void test_separators_after_merges(void **state)
{
    (void)state;
    struct grove g;
    uint8_t space[8];
    struct random r;
    random_init(&r, 11);
    grove_open(&g, &plain);
    fill_numbers(&g, MANY, 1);
    for (uint32_t round = 0; round < 60; round++) {
        uint64_t from = random_below(&r, MANY), n = random_below(&r, MANY - from);
        for (uint64_t i = from; i < from + n; i++) {
            uproot(&g, number_key(space, i), i);
        }
        expect_sound(&g);
        for (uint64_t i = 0; i < 200; i++) {
            uint64_t id = random_below(&r, MANY);
            if (id < from || id >= from + n) {
                expect_hint(&g, number_key(space, id), id);
            } else {
                expect_no_hint(&g, number_key(space, id));
            }
        }
        /* Back in the other order. */
        for (uint64_t i = from + n; i > from; i--) {
            plant(&g, number_key(space, i - 1), i - 1);
        }
        for (uint64_t i = from; i < from + n; i++) {
            expect_hint(&g, number_key(space, i), i);
        }
        store_quiescent(g.thread);
    }
    grove_close(&g);
}

/* In order, backwards, every other first, at random: one empty leaf is left, and all memory. */
static void test_memory_comes_back(void **state)
{
    (void)state;
    struct grove g;
    uint8_t space[8];
    static uint64_t order[MANY];
    struct random r;
    random_init(&r, 3);
    grove_open(&g, &plain);
    uint64_t empty = stats_of(&g.fixture).bytes_used;
    for (uint32_t way = 0; way < 4; way++) {
        fill_numbers(&g, MANY, 1);
        assert_true(grove_stats(&g).levels > 2);
        for (uint64_t i = 0; i < MANY; i++) {
            order[i] = way == 0   ? i
                       : way == 1 ? MANY - 1 - i
                       : way == 2 ? (i < MANY / 2 ? 2 * i : 2 * (i - MANY / 2) + 1)
                                  : i;
        }
        for (uint64_t i = MANY - 1; way == 3 && i > 0; i--) {
            uint64_t j = random_below(&r, i + 1), id = order[i];
            order[i] = order[j];
            order[j] = id;
        }
        for (uint64_t i = 0; i < MANY; i++) {
            uproot(&g, number_key(space, order[i]), order[i]);
            if (i % 1000 == 0) {
                expect_sound(&g);
                store_quiescent(g.thread);
            }
        }
        struct tree_stats stats = grove_stats(&g);
        assert_int_equal(stats.keys, 0);
        assert_int_equal(stats.leaves, 1);
        assert_int_equal(stats.inners, 0);
        assert_int_equal(stats.levels, 1);
        settle(&g.fixture);
        assert_int_equal(stats_of(&g.fixture).bytes_used, empty);
    }
    grove_close(&g);
}

/* A tenth of the keys, everywhere, keeps a tenth of the leaves, or a few more. */
static void test_a_thinned_tree_shrinks(void **state)
{
    (void)state;
    struct grove g;
    uint8_t space[8];
    grove_open(&g, &plain);
    fill_numbers(&g, MANY, 1);
    uint64_t leaves = grove_stats(&g).leaves;
    for (uint64_t i = 0; i < MANY; i++) {
        if (i % 10 != 0) {
            uproot(&g, number_key(space, i), i);
        }
    }
    assert_true(grove_stats(&g).leaves <= leaves * 4 / 10);
    for (uint64_t i = 0; i < MANY; i += 10) {
        expect_hint(&g, number_key(space, i), i);
    }
    grove_close(&g);
}

/* Ascending keys fill their leaves, three words a key in the last one, which has no prefix; the
 * others leave a third of each free, about. */
static void test_leaves_are_filled(void **state)
{
    (void)state;
    struct grove g;
    uint8_t space[8];
    grove_open(&g, &plain);
    fill_numbers(&g, MANY, 1);
    uint64_t full = grove_stats(&g).leaves;
    assert_true(full <= MANY / (TREE_NODE_WORDS / 3) + 1);
    grove_close(&g);
    grove_open(&g, &plain);
    for (uint64_t i = 0; i < MANY; i++) {
        plant(&g, number_key(space, i * 7919 % MANY), i);
    }
    assert_true(grove_stats(&g).leaves < full * 2);
    grove_close(&g);
}

/* ---- Memory that cannot be had ---- */

/* Leaves the thread exactly that many bytes. */
static void allow(struct grove *g, uint64_t bytes)
{
    struct memory *memory = &g->fixture.store->memory;
    struct memory_cache *cache = &g->thread->memory;
    atomic_fetch_sub(&memory->granted, cache->grant);
    cache->grant = 0;
    memory->max = bytes == UINT64_MAX ? UINT64_MAX : atomic_load(&memory->granted) + bytes;
    memory->grant_bytes = 0;
}

/* Keys of 2,000 bytes that differ at their end: long separators, a few per cent of each insertion
 * is a split, some of them split all levels. Each insertion is tried with every amount of memory
 * until it succeeds; before that nothing may change. */
static void test_no_memory_at_every_point(void **state)
{
    (void)state;
    enum { N = 9000, BYTES = 2000 };
    static uint8_t at[BYTES];
    struct grove g;
    uint32_t refused = 0;
    grove_open(&g, &plain);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t id = i * 61 % N;
        put_u32(at + BYTES - 4, id);
        /* Odd ones differ at their beginning as well, and are short. */
        struct bytes key = bytes_of(id % 2 == 0 ? at : at + BYTES - 12, id % 2 == 0 ? BYTES : 12);
        struct tree_stats before = grove_stats(&g);
        for (uint64_t bytes = 0;; bytes += 1024) {
            allow(&g, bytes);
            int err = tree_insert(g.tree, g.thread, key, id, NULL);
            if (err == HK_OK) {
                break;
            }
            assert_int_equal(err, HK_ERR_NOMEM);
            refused++;
            assert_int_equal(grove_stats(&g).keys, before.keys);
            expect_no_hint(&g, key);
            if (i % 200 == 0) {
                expect_sound(&g);
            }
        }
        allow(&g, UINT64_MAX);
        expect_hint(&g, key, id);
    }
    assert_true(refused > N);
    assert_true(grove_stats(&g).levels >= 3);
    expect_sound(&g);
    /* Deleting needs none. */
    for (uint32_t id = 0; id < N; id++) {
        put_u32(at + BYTES - 4, id);
        allow(&g, 0);
        uproot(&g, bytes_of(id % 2 == 0 ? at : at + BYTES - 12, id % 2 == 0 ? BYTES : 12), id);
    }
    allow(&g, UINT64_MAX);
    assert_int_equal(grove_stats(&g).leaves, 1);
    grove_close(&g);
}

static void test_tree_create_without_memory(void **state)
{
    (void)state;
    struct grove g;
    struct tree *tree;
    grove_open(&g, &plain);
    for (uint64_t bytes = 0;; bytes += 64) {
        allow(&g, bytes);
        int err = tree_create(g.fixture.store, g.thread, &tree);
        if (err == HK_OK) {
            assert_true(bytes > TREE_NODE_BYTES);
            break;
        }
        assert_int_equal(err, HK_ERR_NOMEM);
    }
    allow(&g, UINT64_MAX);
    tree_destroy(tree, g.thread);
    grove_close(&g);
}

/* A store with a limit: full, thinned, full again. */
static void test_memory_limit(void **state)
{
    (void)state;
    struct grove g;
    uint8_t space[8];
    struct store_config config = {.seed = 5, .memory_max = 2u * 1024u * 1024u};
    grove_open(&g, &config);
    uint64_t n[2] = {0, 0};
    for (uint32_t round = 0; round < 2; round++) {
        while (tree_insert(g.tree, g.thread, number_key(space, n[round]), n[round], NULL) ==
               HK_OK) {
            n[round]++;
        }
        assert_true(n[round] > 50000);
        expect_sound(&g);
        assert_true(stats_of(&g.fixture).bytes_used <= config.memory_max);
        for (uint64_t i = 0; i < n[round]; i++) {
            uproot(&g, number_key(space, i), i);
            store_quiescent(g.thread);
        }
        settle(&g.fixture);
    }
    assert_true(n[1] >= n[0] - 100);
    grove_close(&g);
}

/* ---- The check ---- */

static struct tree_node *first_leaf(struct tree *tree)
{
    struct tree_node *n = node_at(word_get(&tree->root));
    while (shape_level(word_get(&n->shape)) > 0) {
        n = node_at(word_get(&n->link));
    }
    return n;
}

/* Exchanges a word for another, and expects the check to name the invariant. */
static void break_word(struct grove *g, _Atomic uint64_t *word, uint64_t bad, const char *name)
{
    uint64_t good = word_get(word);
    word_put(word, bad);
    const char *broken = tree_check(g->tree);
    assert_non_null(broken);
    if (strncmp(broken, name, 2) != 0) {
        fail_msg("expected %s: %s", name, broken);
    }
    word_put(word, good);
    expect_sound(g);
}

static void test_the_check_finds_faults(void **state)
{
    (void)state;
    struct grove g;
    uint8_t space[16];
    grove_open(&g, &plain);
    for (uint64_t i = 0; i < 3000; i++) {
        put_u64(space + 8, i);
        (void)number_key(space, i);
        plant(&g, bytes_of(space, 16), i);
    }
    struct tree_node *leaf = first_leaf(g.tree), *root = node_at(word_get(&g.tree->root));
    struct tree_node *next = node_at(word_get(&leaf->link));
    uint64_t shape = word_get(&leaf->shape), cell = word_get(&leaf->words[0]);
    uint32_t count = shape_count(shape), heap = shape_heap(shape), prefix = shape_prefix(shape);
    break_word(&g, &leaf->words[0], word_get(&leaf->words[2]), "T3");
    break_word(&g, &leaf->words[0], cell | (uint64_t)UINT32_MAX << 32, "T1");
    break_word(&g, &next->shape, word_get(&next->shape) - ((uint64_t)1 << SHAPE_PREFIX_AT), "T2");
    break_word(&g, &leaf->shape, shape_make(count, TREE_NODE_WORDS + 1, 0, 0, prefix), "T3");
    break_word(&g, &leaf->shape, shape_make(count, 2 * count - 1, 0, 0, prefix), "T3");
    break_word(&g, &leaf->shape, shape_make(count, heap, 1, 0, prefix), "T3");
    break_word(&g, &leaf->shape, shape_make(count, heap, 0, 1, prefix), "T4");
    break_word(&g, &root->words[1], word_get(&root->words[3]), "T4");
    break_word(&g, &root->link, node_address(root), "T4");
    break_word(&g, &leaf->link, word_get(&next->link), "T5");
    break_word(&g, &leaf->high, 0, "T8");
    break_word(&g, &leaf->latch.word, word_get(&leaf->latch.word) | LATCH_LOCKED, "T7");
    break_word(&g, &next->latch.word, word_get(&next->latch.word) | LATCH_OBSOLETE, "T7");
    break_word(&g, &g.tree->latch.word, LATCH_LOCKED, "T7");
    tree_count(&g.tree->counts[3].keys, 1);
    assert_memory_equal(tree_check(g.tree), "T6", 2);
    tree_count(&g.tree->counts[5].keys, -1);
    tree_count(&g.tree->counts[3].leaves, 1);
    assert_memory_equal(tree_check(g.tree), "T6", 2);
    tree_count(&g.tree->counts[3].leaves, -1);
    grove_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_bounds_of_keys),
        cmocka_unit_test(test_prefixes_of_each_other),
        cmocka_unit_test(test_long_keys),
        cmocka_unit_test(test_misses_are_misses),
        cmocka_unit_test(test_scans_cross_leaves),
        cmocka_unit_test(test_scans_end),
        cmocka_unit_test(test_peeking),
        cmocka_unit_test(test_a_cursor_knows_what_holds),
        cmocka_unit_test(test_scans_of_a_changing_tree),
        cmocka_unit_test(test_scans_leave_dead_leaves),
        cmocka_unit_test(test_separators_after_merges),
        cmocka_unit_test(test_memory_comes_back),
        cmocka_unit_test(test_a_thinned_tree_shrinks),
        cmocka_unit_test(test_leaves_are_filled),
        cmocka_unit_test(test_no_memory_at_every_point),
        cmocka_unit_test(test_tree_create_without_memory),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_the_check_finds_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
