/* The ordered index against a sorted array that does the same: random operations on keys of
 * several kinds, in phases that grow the tree and phases that take it apart. A failure prints the
 * seed; give it as the first argument (and how many as the second) to run that sequence again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "store/tree_node.h"
#include "support/store_tree.h"

#define KEYS 6000u
#define OPERATIONS 40000u
#define PHASE 4000u
#define SEEDS 8u
#define KEY_BYTES (1u << 22)

struct entry {
    struct bytes key;
    bool exists;
    uint64_t hint;
};

struct world {
    struct random random;
    struct grove grove;
    struct entry entries[KEYS]; /* in order, all different */
    uint32_t n;
    uint64_t present;
    uint8_t bytes[KEY_BYTES];
    uint32_t used;
};

static uint64_t first_seed = 1;
static uint64_t seeds = SEEDS;

/* ---- Keys ---- */

static uint32_t draw(struct world *w, uint64_t n)
{
    return (uint32_t)random_below(&w->random, n);
}

/* Of one of five kinds: many that are prefixes of others; long common beginnings; lengths around
 * what is inline; numbers; and now and then very long ones. */
static uint32_t make_key(struct world *w, uint8_t *at, uint32_t kind)
{
    static const uint8_t few[] = {0, 1, 255};
    uint32_t n;
    switch (kind) {
    case 0:
        n = 1 + draw(w, 14);
        for (uint32_t i = 0; i < n; i++) {
            at[i] = few[draw(w, 3)];
        }
        return n;
    case 1:
        n = 20 + draw(w, 4) * 30;
        memset(at, 'p', n);
        for (uint32_t i = 0; i < 4; i++) {
            at[n - 1 - draw(w, 7)] = few[draw(w, 3)];
        }
        return n;
    case 2:
        n = TREE_KEY_INLINE - 4 + draw(w, 9);
        memset(at, 'q', n);
        for (uint32_t i = 0; i < 3; i++) {
            at[draw(w, n)] = few[draw(w, 3)];
        }
        return n;
    case 3:
        n = draw(w, 50) == 0 ? STORE_KEY_MAX - draw(w, 3) : 600 + draw(w, 300);
        memset(at, 'r', n);
        at[n - 1 - draw(w, n < 1000 ? n : 300)] = (uint8_t)draw(w, 256);
        at[draw(w, n)] = few[draw(w, 3)];
        return n;
    default:
        put_u64(at, random_next(&w->random) & (draw(w, 2) == 0 ? UINT64_MAX : 0xffff));
        return 8;
    }
}

static int entry_compare(const void *a, const void *b)
{
    return bytes_compare(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

static void make_keys(struct world *w)
{
    uint32_t kinds = 1 + draw(w, 31);
    w->n = w->used = 0;
    while (w->n < KEYS && w->used + STORE_KEY_MAX < KEY_BYTES) {
        uint32_t kind = draw(w, 5);
        if ((kinds >> kind & 1u) == 0) {
            continue;
        }
        uint32_t n = make_key(w, w->bytes + w->used, kind);
        w->entries[w->n++] = (struct entry){.key = bytes_of(w->bytes + w->used, n)};
        w->used += n;
    }
    qsort(w->entries, w->n, sizeof(w->entries[0]), entry_compare);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < w->n; i++) {
        if (!bytes_equal(w->entries[i].key, w->entries[kept - 1].key)) {
            w->entries[kept++] = w->entries[i];
        }
    }
    w->n = kept;
}

/* ---- Operations ---- */

static void insert_one(struct world *w, struct entry *e)
{
    uint64_t hint = random_next(&w->random), found = 0;
    int err = tree_insert(w->grove.tree, w->grove.thread, e->key, hint, &found);
    assert_int_equal(err, e->exists ? HK_ERR_CONDITION : HK_OK);
    if (e->exists) {
        assert_int_equal(found, e->hint);
        return;
    }
    e->exists = true;
    e->hint = hint;
    w->present++;
}

static void update_one(struct world *w, struct entry *e)
{
    uint64_t hint = random_next(&w->random), old = 0;
    int err = tree_update(w->grove.tree, w->grove.thread, e->key, hint, &old);
    assert_int_equal(err, e->exists ? HK_OK : HK_ERR_NOTFOUND);
    if (e->exists) {
        assert_int_equal(old, e->hint);
        e->hint = hint;
    }
}

static void delete_one(struct world *w, struct entry *e)
{
    uint64_t old = 0;
    int err = tree_delete(w->grove.tree, w->grove.thread, e->key, &old);
    assert_int_equal(err, e->exists ? HK_OK : HK_ERR_NOTFOUND);
    if (e->exists) {
        assert_int_equal(old, e->hint);
        e->exists = false;
        w->present--;
    }
}

static void find_one(struct world *w, const struct entry *e)
{
    if (e->exists) {
        expect_hint(&w->grove, e->key, e->hint);
    } else {
        expect_no_hint(&w->grove, e->key);
    }
}

/* The first entry in the direction that exists, i included; n at the end. */
static uint32_t next_present(const struct world *w, uint32_t i, bool forwards)
{
    while (i < w->n && !w->entries[i].exists) {
        i = forwards ? i + 1 : i - 1;
    }
    return i < w->n ? i : w->n;
}

/* From a key of the array, or from the start. */
static void scan_some(struct world *w)
{
    bool forwards = draw(w, 2) == 0, exclusive = draw(w, 2) == 0, whole = draw(w, 10) == 0;
    uint32_t from = draw(w, w->n), limit = draw(w, 20) == 0 ? w->n : draw(w, 300);
    struct bytes start = whole ? bytes_of(NULL, 0) : w->entries[from].key;
    uint32_t at = whole ? (forwards ? 0 : w->n - 1) : from;
    if (exclusive && !whole) {
        at = forwards ? at + 1 : at - 1;
    }
    struct tree_cursor c;
    tree_seek(w->grove.tree, w->grove.thread, start, exclusive,
              forwards ? TREE_FORWARDS : TREE_BACKWARDS, &c);
    for (uint32_t i = 0; i <= limit; i++) {
        struct bytes key;
        uint64_t hint;
        at = next_present(w, at, forwards);
        bool more = tree_next(&c, &key, &hint);
        assert_int_equal(more, at < w->n);
        if (!more) {
            return;
        }
        assert_true(bytes_equal(key, w->entries[at].key));
        assert_int_equal(hint, w->entries[at].hint);
        at = forwards ? at + 1 : at - 1;
    }
}

/* A run of neighbours comes or goes. */
static void change_run(struct world *w, bool grow)
{
    uint32_t n = draw(w, 400), from = draw(w, w->n);
    for (uint32_t i = from; i < from + n && i < w->n; i++) {
        if (grow) {
            insert_one(w, &w->entries[i]);
        } else {
            delete_one(w, &w->entries[i]);
        }
    }
}

static void operate(struct world *w, bool grow)
{
    struct entry *e = &w->entries[draw(w, w->n)];
    uint32_t what = draw(w, 100);
    if (what < 45) {
        if (draw(w, 10) < (grow ? 8u : 2u)) {
            insert_one(w, e);
        } else {
            delete_one(w, e);
        }
    } else if (what < 60) {
        update_one(w, e);
    } else if (what < 90) {
        find_one(w, e);
    } else if (what < 99) {
        scan_some(w);
    } else {
        change_run(w, grow);
    }
}

static void check_all(struct world *w)
{
    expect_sound(&w->grove);
    assert_int_equal(grove_stats(&w->grove).keys, w->present);
    for (uint32_t i = 0; i < w->n; i++) {
        find_one(w, &w->entries[i]);
    }
}

static void run_seed(uint64_t seed)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    random_init(&w->random, seed);
    struct store_config config = {.seed = seed};
    grove_open(&w->grove, &config);
    make_keys(w);
    print_message("seed %llu: %u keys of %u bytes on average\n", (unsigned long long)seed, w->n,
                  w->used / w->n);
    uint64_t leaves = 0;
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        operate(w, i / PHASE % 2 == 0);
        if (i % 64 == 0) {
            store_quiescent(w->grove.thread);
        }
        if (i % PHASE == PHASE - 1) {
            check_all(w);
            uint64_t n = grove_stats(&w->grove).leaves;
            leaves = n > leaves ? n : leaves;
        }
    }
    assert_true(leaves > 10);
    for (uint32_t i = 0; i < w->n; i++) {
        delete_one(w, &w->entries[i]);
    }
    check_all(w);
    assert_int_equal(grove_stats(&w->grove).leaves, 1);
    grove_close(&w->grove);
    free(w);
}

static void test_against_sorted_array(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        run_seed(seed);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_sorted_array)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
