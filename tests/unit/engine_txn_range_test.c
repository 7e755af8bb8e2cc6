/* Ranges in transactions: by hand, and random requests against a sorted map that does one operation
 * after the other. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/random.h"
#include "engine/txn.h"
#include "wire/msg.h"

#define NOW 5000u
#define VALUE_MAX 1000u
#define ROWS 48u
#define OPS 12u
#define OBJECTS 128u

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static int order_of(struct bytes a, struct bytes b)
{
    uint32_t n = a.n < b.n ? a.n : b.n;
    int order = n > 0 ? memcmp(a.at, b.at, n) : 0;
    return order != 0 ? order : (int)a.n - (int)b.n;
}

/* ---- The map ---- */

struct row {
    struct bytes key, value;
    uint64_t version, deadline_ms;
};

/* Rows in the order of their keys. Expired ones are in it until `expire`. */
struct map {
    struct row rows[ROWS + OPS];
    uint32_t n;
};

static uint32_t map_find(const struct map *m, struct bytes key, bool *found_out)
{
    uint32_t i = 0;
    while (i < m->n && order_of(m->rows[i].key, key) < 0) {
        i++;
    }
    *found_out = i < m->n && bytes_equal(m->rows[i].key, key);
    return i;
}

static struct row *map_row(struct map *m, struct bytes key)
{
    bool found;
    uint32_t i = map_find(m, key, &found);
    return found ? &m->rows[i] : NULL;
}

static void map_put(struct map *m, const struct row *row)
{
    bool found;
    uint32_t i = map_find(m, row->key, &found);
    if (!found) {
        assert_true(m->n < ROWS + OPS);
        memmove(&m->rows[i + 1], &m->rows[i], (m->n - i) * sizeof m->rows[0]);
        m->n++;
    }
    m->rows[i] = *row;
}

static bool map_delete(struct map *m, struct bytes key)
{
    bool found;
    uint32_t i = map_find(m, key, &found);
    if (found) {
        m->n--;
        memmove(&m->rows[i], &m->rows[i + 1], (m->n - i) * sizeof m->rows[0]);
    }
    return found;
}

static bool row_expired(const struct row *row)
{
    return row->deadline_ms != 0 && row->deadline_ms <= NOW;
}

static void map_expire(struct map *m)
{
    for (uint32_t i = m->n; i > 0; i--) {
        if (row_expired(&m->rows[i - 1])) {
            (void)map_delete(m, m->rows[i - 1].key);
        }
    }
}

/* The first `limit` rows of a range (0: all), in the order of its walk; of a map without expired
 * ones. */
static uint32_t map_range(struct map *m, const struct op *op, uint64_t limit, struct row **rows_out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        struct row *row = &m->rows[(op->flags & TXN_OPF_REVERSE) != 0 ? m->n - 1 - i : i];
        bool in =
            order_of(row->key, op->key) >= 0 && (op->arg.n == 0 || order_of(row->key, op->arg) < 0);
        if (in && (limit == 0 || n < limit)) {
            rows_out[n++] = row;
        }
    }
    return n;
}

/* ---- What the evaluation says of a range ---- */

static void answer_is(const struct answer *a, const struct op *op, struct row *const *rows,
                      uint32_t n)
{
    assert_int_equal(a->number, n);
    if (op->kind != TXN_OP_RANGE) {
        assert_int_equal(a->kind, ANSWER_NUMBER);
        assert_int_equal(a->applied, op->kind == TXN_OP_RANGE_DELETE && n > 0);
        return;
    }
    assert_int_equal(a->kind, ANSWER_PAIRS);
    struct bytes rest = a->value, key, value;
    for (uint32_t i = 0; i < n; i++) {
        assert_true(txn_pair_take(&rest, &key, &value));
        assert_true(bytes_equal(key, rows[i]->key));
        bool keys = (op->flags & TXN_OPF_KEYS) != 0;
        assert_true(keys ? value.n == 0 : bytes_equal(value, rows[i]->value));
    }
    assert_false(txn_pair_take(&rest, &key, &value));
    assert_int_equal(rest.n, 0);
}

/* The operation on the map, and whether the answer is the map's. */
static void step(struct map *m, const struct op *op, const struct answer *a)
{
    struct row *rows[ROWS + OPS], copy;
    struct row *row = map_row(m, op->key);
    switch (op->kind) {
    case OP_GET:
        assert_int_equal(a->kind, row != NULL ? ANSWER_VALUE : ANSWER_NIL);
        assert_true(row == NULL || bytes_equal(a->value, row->value));
        break;
    case OP_SET:
        assert_int_equal(a->kind,
                         (op->flags & OPF_NX) == 0 || row == NULL ? ANSWER_OK : ANSWER_NIL);
        if (a->kind == ANSWER_OK) {
            map_put(m, &(struct row){.key = op->key, .value = op->value});
        }
        break;
    case OP_DELETE:
        assert_int_equal(a->number, map_delete(m, op->key));
        break;
    case TXN_OP_RENAME:
        assert_int_equal(a->kind, row != NULL ? ANSWER_OK : ANSWER_ERROR);
        if (row != NULL) {
            copy = *row;
            copy.key = op->arg;
            (void)map_delete(m, op->key);
            map_put(m, &copy);
        }
        break;
    default:
        answer_is(a, op, rows, map_range(m, op, (uint64_t)op->number, rows));
        for (uint32_t n = op->kind == TXN_OP_RANGE_DELETE ? (uint32_t)a->number : 0; n > 0; n--) {
            (void)map_range(m, op, 1, rows);
            (void)map_delete(m, rows[0]->key);
        }
        break;
    }
}

/* ---- A transaction on rows that are brought to it ---- */

struct world {
    struct random random;
    struct map stored, expected;
    struct txn_request txn;
    struct op ops[OPS];
    struct txn_watch watches[2];
    struct txn_object objects[OBJECTS];
    uint16_t index[2 * OPS + 2];
    struct answer answers[OPS];
    uint32_t n;
    uint8_t bytes[1 << 16];
    struct txn_memory memory;
};

static uint64_t weak_hash(const void *context, struct bytes key)
{
    (void)context;
    return key.n > 0 ? key.at[0] % 2u : 0;
}

static void fill(struct txn_object *o, const struct row *row)
{
    o->version = row->version;
    o->state =
        (struct op_state){.present = true, .deadline_ms = row->deadline_ms, .value = row->value};
    o->expired = row_expired(row);
}

/* As a server sends a row that it has met: once, if the transaction does not name it. */
static void bring(struct world *w, const struct row *row)
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (bytes_equal(w->objects[i].key, row->key)) {
            return;
        }
    }
    assert_true(w->n < OBJECTS);
    w->objects[w->n] = (struct txn_object){.key = row->key};
    fill(&w->objects[w->n++], row);
}

/* Of two servers that have every other key, each sends enough. Expired rows come along or not. */
static void bring_range(struct world *w, const struct op *op, uint64_t limit)
{
    struct map here[2] = {{.n = 0}, {.n = 0}};
    struct row *rows[ROWS + OPS];
    for (uint32_t i = 0; i < w->stored.n; i++) {
        const struct row *row = &w->stored.rows[i];
        if (row_expired(row) && random_below(&w->random, 2) == 0) {
            bring(w, row);
        } else if (!row_expired(row)) {
            map_put(&here[(row->key.n + row->key.at[0]) % 2], row);
        }
    }
    for (uint32_t server = 0; server < 2; server++) {
        uint32_t n = map_range(&here[server], op, limit, rows);
        for (uint32_t i = 0; i < n; i++) {
            bring(w, rows[i]);
        }
    }
}

static void bring_all(struct world *w)
{
    w->n = txn_objects(&w->txn, weak_hash, NULL, w->objects, OBJECTS, w->index);
    assert_true(w->n <= OBJECTS);
    for (uint32_t i = 0; i < w->n; i++) {
        struct row *row = map_row(&w->stored, w->objects[i].key);
        if (row != NULL) {
            fill(&w->objects[i], row);
        }
    }
    for (uint32_t i = 0; i < w->txn.ops_n; i++) {
        if (w->ops[i].kind >= TXN_OP_RANGE) {
            bring_range(w, &w->ops[i], txn_range_fetch(&w->txn, i));
        }
    }
    for (uint32_t i = 0; i < w->txn.watches_n; i++) {
        const struct txn_watch *watch = &w->watches[i];
        const struct op range = {.flags = watch->flags, .key = watch->key, .arg = watch->end};
        bring_range(w, &range, watch->limit);
    }
}

static enum txn_verdict run(struct world *w)
{
    enum txn_verdict verdict = TXN_NO_MEMORY;
    w->memory = (struct txn_memory){.at = w->bytes, .value_bytes_max = VALUE_MAX};
    while (verdict == TXN_NO_MEMORY) {
        bring_all(w);
        verdict = txn_evaluate(&w->txn, w->objects, w->n, w->index, NOW, &w->memory, w->answers);
        assert_true(w->memory.used <= sizeof w->bytes);
        assert_true(verdict != TXN_NO_MEMORY || w->memory.used > w->memory.n);
        w->memory.n = verdict == TXN_NO_MEMORY ? w->memory.used : w->memory.n;
    }
    return verdict;
}

/* The objects say what the map says. */
static void check_objects(struct world *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const struct txn_object *o = &w->objects[i];
        const struct row *row = map_row(&w->expected, o->key);
        assert_int_equal(o->state.present, row != NULL);
        assert_true(row == NULL || bytes_equal(o->state.value, row->value));
        assert_true(o->changed || (o->version != 0) == (row != NULL));
    }
}

/* ---- Random requests ---- */

static const char *const keys[ROWS] = {
    "a",   "aa",  "aaa", "aab", "ab", "aba", "abb", "ac", "b",   "ba",  "baa", "bab",
    "bb",  "bba", "bbb", "bc",  "c",  "ca",  "caa", "cb", "cba", "cc",  "d",   "da",
    "daa", "db",  "dd",  "ddd", "e",  "ea",  "eb",  "f",  "fa",  "fff", "g",   "ga",
    "gg",  "h",   "ha",  "i",   "j",  "ja",  "k",   "ka", "l",   "m",   "n",   "\xff\xff"};
static const char *const values[] = {"", "one", "two", "three", "a longer value than others"};

static struct bytes random_key(struct world *w)
{
    return text(keys[random_below(&w->random, ROWS)]);
}

/* A bound may be none, and no row's key. */
static struct bytes random_bound(struct world *w)
{
    uint64_t which = random_below(&w->random, 4);
    return which == 0 ? text("") : which == 1 ? text("bbc") : random_key(w);
}

static struct bytes random_value(struct world *w)
{
    return text(values[random_below(&w->random, 5)]);
}

static struct op random_range(struct world *w, uint8_t kind)
{
    struct op op = {.kind = kind, .key = random_bound(w), .arg = random_bound(w)};
    op.flags = random_below(&w->random, 2) == 0 ? TXN_OPF_REVERSE : 0;
    op.flags |= kind == TXN_OP_RANGE && random_below(&w->random, 4) == 0 ? TXN_OPF_KEYS : 0;
    op.number = random_below(&w->random, 3) == 0 ? 0 : (int64_t)random_below(&w->random, 6) + 1;
    return op;
}

static struct op random_op(struct world *w)
{
    static const uint8_t kinds[] = {
        OP_GET,        OP_SET,       OP_SET,       OP_DELETE,          OP_DELETE,
        TXN_OP_RENAME, TXN_OP_RANGE, TXN_OP_RANGE, TXN_OP_RANGE_COUNT, TXN_OP_RANGE_DELETE};
    uint8_t kind = kinds[random_below(&w->random, sizeof kinds)];
    struct op op = {.kind = kind, .key = random_key(w)};
    if (kind >= TXN_OP_RANGE) {
        return random_range(w, kind);
    }
    if (kind == OP_SET) {
        op.flags = random_below(&w->random, 2) == 0 ? OPF_NX : 0;
        op.value = random_value(w);
    }
    if (kind == TXN_OP_RENAME) {
        op.arg = random_key(w);
    }
    return op;
}

static void random_rows(struct world *w)
{
    w->stored.n = 0;
    uint64_t density = 1 + random_below(&w->random, 4);
    for (uint32_t i = 0; i < ROWS; i++) {
        struct row row = {.key = text(keys[i]), .value = random_value(w), .version = 100 + i};
        uint64_t lives = random_below(&w->random, 8);
        row.deadline_ms = lives == 0 ? NOW : lives == 1 ? NOW + 1 : 0;
        if (random_below(&w->random, 4) < density) {
            map_put(&w->stored, &row);
        }
    }
}

static void test_random(void **state)
{
    (void)state;
    static struct world w;
    random_init(&w.random, 17);
    for (uint32_t round = 0; round < 20000; round++) {
        random_rows(&w);
        uint32_t n = 1 + (uint32_t)random_below(&w.random, OPS);
        w.txn = (struct txn_request){.ops = w.ops, .ops_n = n};
        for (uint32_t i = 0; i < n; i++) {
            w.ops[i] = random_op(&w);
        }
        assert_int_equal(txn_check(&w.txn, VALUE_MAX), HK_OK);
        assert_int_equal(run(&w), TXN_DONE);
        w.expected = w.stored;
        map_expire(&w.expected);
        for (uint32_t i = 0; i < n; i++) {
            step(&w.expected, &w.ops[i], &w.answers[i]);
        }
        check_objects(&w);
    }
}

static bool same_rows(struct row *const *a, uint32_t a_n, struct row *const *b, uint32_t b_n)
{
    bool same = a_n == b_n;
    for (uint32_t i = 0; i < a_n && same; i++) {
        same = bytes_equal(a[i]->key, b[i]->key) && a[i]->version == b[i]->version;
    }
    return same;
}

/* A range's version holds as long as its rows and their versions are what they were. */
static void test_random_watches(void **state)
{
    (void)state;
    static struct world w;
    static struct map before, after;
    struct row *seen[ROWS + OPS], *now[ROWS + OPS];
    uint32_t held = 0, broken = 0;
    random_init(&w.random, 18);
    for (uint32_t round = 0; round < 5000; round++) {
        random_rows(&w);
        w.txn = (struct txn_request){.ops = w.ops, .ops_n = 2};
        w.ops[0] = random_range(&w, TXN_OP_RANGE);
        w.ops[1] = random_op(&w); /* a version is of what was there before all operations */
        assert_int_equal(run(&w), TXN_DONE);
        const struct op range = w.ops[0];
        uint64_t version = txn_range_version(&range, w.objects, w.n, w.memory.at);
        before = w.stored;
        for (uint64_t changes = random_below(&w.random, 3); changes > 0; changes--) {
            struct bytes key = random_key(&w);
            if (random_below(&w.random, 2) == 0) {
                (void)map_delete(&w.stored, key);
            } else {
                map_put(&w.stored, &(struct row){.key = key, .version = 1000 + changes});
            }
        }
        w.watches[0] = (struct txn_watch){.key = range.key,
                                          .version = version,
                                          .range = true,
                                          .flags = range.flags & TXN_OPF_REVERSE,
                                          .limit = (uint32_t)range.number,
                                          .end = range.arg};
        w.txn = (struct txn_request){.watches = w.watches, .watches_n = 1};
        assert_int_equal(txn_check(&w.txn, VALUE_MAX), HK_OK);
        enum txn_verdict verdict = run(&w);
        after = w.stored;
        map_expire(&before);
        map_expire(&after);
        uint32_t seen_n = map_range(&before, &range, (uint64_t)range.number, seen);
        uint32_t now_n = map_range(&after, &range, (uint64_t)range.number, now);
        bool same = same_rows(seen, seen_n, now, now_n);
        assert_int_equal(verdict, same ? TXN_DONE : TXN_CONFLICT);
        held += same ? 1 : 0;
        broken += same ? 0 : 1;
    }
    assert_true(held > 500 && broken > 500);
}

/* ---- By hand ---- */

static void test_check(void **state)
{
    (void)state;
    struct op op = {.kind = TXN_OP_RANGE, .number = UINT32_MAX};
    struct txn_watch watch = {
        .range = true, .flags = TXN_OPF_REVERSE, .limit = 9, .end = text("z")};
    struct txn_request txn = {.ops = &op, .ops_n = 1, .watches = &watch, .watches_n = 1};
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_OK);
    assert_false(txn_updates(&txn));
    op.flags = TXN_OPF_REVERSE | TXN_OPF_KEYS;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_OK);
    op.kind = TXN_OP_RANGE_DELETE;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    op.flags = TXN_OPF_REVERSE;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_OK);
    assert_true(txn_updates(&txn));
    op.number = -1;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    op.number = (int64_t)UINT32_MAX + 1;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    op.number = 0;
    op.value = text("v");
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    op.value.n = 0;
    op.arg.n = MSG_KEY_MAX + 1;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_TOOBIG);
    op.arg.n = 0;
    watch.end.n = MSG_KEY_MAX + 1;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_TOOBIG);
    watch.end = text("z");
    watch.flags = TXN_OPF_KEYS;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    watch = (struct txn_watch){.key = text("k"), .limit = 1};
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
}

/* Ranges mention no object; a transaction of ranges alone has none, which is not "too many". */
static void test_objects(void **state)
{
    (void)state;
    struct op ops[] = {{.kind = TXN_OP_RANGE, .key = text("a"), .arg = text("b")},
                       {.kind = OP_GET, .key = text("a")}};
    struct txn_watch watch = {.key = text("w"), .range = true};
    struct txn_request txn = {.ops = ops, .ops_n = 1, .watches = &watch, .watches_n = 1};
    struct txn_object objects[2];
    uint16_t index[5];
    assert_int_equal(txn_objects(&txn, weak_hash, NULL, objects, 0, index), 0);
    const uint16_t none[] = {UINT16_MAX, UINT16_MAX, UINT16_MAX};
    assert_memory_equal(index, none, sizeof none);
    txn.ops_n = 2;
    assert_int_equal(txn_objects(&txn, weak_hash, NULL, objects, 2, index), 1);
    const uint16_t one[] = {UINT16_MAX, UINT16_MAX, 0, UINT16_MAX, UINT16_MAX};
    assert_memory_equal(index, one, sizeof one);
    assert_int_equal(txn_objects(&txn, weak_hash, NULL, objects, 0, index), UINT32_MAX);
}

static void test_fetch(void **state)
{
    (void)state;
    struct op ops[] = {
        {.kind = TXN_OP_RANGE, .number = 5}, {.kind = OP_DELETE, .key = text("a")},
        {.kind = TXN_OP_RANGE, .number = 5}, {.kind = TXN_OP_RANGE_DELETE, .number = 3},
        {.kind = TXN_OP_RANGE, .number = 5}, {.kind = TXN_OP_RANGE_DELETE},
        {.kind = TXN_OP_RANGE, .number = 5}, {.kind = TXN_OP_RANGE}};
    struct txn_request txn = {.ops = ops, .ops_n = 8};
    static const uint32_t expected[] = {5, 0, 6, 4, 9, 0, 0, 0};
    for (uint32_t i = 0; i < 8; i++) {
        if (ops[i].kind >= TXN_OP_RANGE) {
            assert_int_equal(txn_range_fetch(&txn, i), expected[i]);
        }
    }
    ops[4].number = UINT32_MAX;
    assert_int_equal(txn_range_fetch(&txn, 4), 0);
}

static void test_pairs_hostile(void **state)
{
    (void)state;
    static const uint8_t at[] = {1, 0, 0, 0, 1, 0, 0, 0, 'k', 'v'};
    static const uint8_t vast[] = {0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
    struct bytes key, value;
    for (uint32_t n = 0; n <= sizeof at; n++) {
        struct bytes rest = bytes_of(at, n);
        assert_int_equal(txn_pair_take(&rest, &key, &value), n == sizeof at);
        assert_int_equal(rest.n, n == sizeof at ? 0 : n);
    }
    struct bytes rest = bytes_of(vast, sizeof vast);
    assert_false(txn_pair_take(&rest, &key, &value));
}

/* All or nothing, with a range that has nothing to delete; and nothing stays deleted. */
static void test_all_or_nothing(void **state)
{
    (void)state;
    static struct world w;
    w.stored.n = 0;
    map_put(&w.stored, &(struct row){.key = text("b"), .version = 7, .value = text("v")});
    w.ops[0] = (struct op){.kind = TXN_OP_RANGE_DELETE, .key = text("a")};
    w.ops[1] = (struct op){.kind = TXN_OP_RANGE_DELETE, .key = text("a")};
    w.txn = (struct txn_request){.ops = w.ops, .ops_n = 2, .flags = TXN_ALL};
    assert_int_equal(run(&w), TXN_UNAPPLIED);
    assert_int_equal(w.answers[0].number, 1);
    assert_int_equal(w.answers[1].number, 0);
    assert_false(w.objects[0].changed);
    w.txn.flags = 0;
    assert_int_equal(run(&w), TXN_DONE);
    assert_true(w.objects[0].changed && !w.objects[0].state.present);
}

/* ---- Bounds ---- */

static struct txn_object *many(uint32_t n)
{
    struct txn_object *objects = calloc(n, sizeof *objects);
    uint8_t *bytes = malloc(n * 4ul);
    assert_non_null(objects);
    assert_non_null(bytes);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = n - 1 - i; /* as a range backwards brings them */
        uint8_t *key = bytes + 4ul * i;
        for (uint32_t b = 0; b < 4; b++) {
            key[b] = (uint8_t)(k >> (24 - 8 * b));
        }
        objects[i] =
            (struct txn_object){.key = bytes_of(key, 4), .version = 1, .state = {.present = true}};
    }
    return objects;
}

static void test_bounds(void **state)
{
    (void)state;
    static struct op ops[32];
    static uint16_t index[64];
    static struct answer answers[32];
    struct txn_request txn = {.ops = ops, .ops_n = 32};
    uint32_t n = TXN_OBJECTS_MAX + TXN_SCANNED_MAX;
    struct txn_object *objects = many(n);
    struct txn_memory memory = {.n = 8ul * n, .value_bytes_max = VALUE_MAX};
    memory.at = malloc(memory.n);
    assert_non_null(memory.at);
    memset(index, 0xff, sizeof index);
    for (uint32_t i = 0; i < 32; i++) {
        ops[i] = (struct op){.kind = TXN_OP_RANGE_COUNT};
    }
    assert_int_equal(txn_evaluate(&txn, objects, n, index, NOW, &memory, answers), TXN_DONE);
    uint32_t full = TXN_VISITED_MAX / n;
    for (uint32_t i = 0; i < 32; i++) {
        assert_int_equal(answers[i].kind, i < full ? ANSWER_NUMBER : ANSWER_ERROR);
        assert_int_equal(answers[i].number, i < full ? (int64_t)n : HK_ERR_TOOBIG);
    }
    free(memory.at);
    uint8_t *large = calloc(1, 1 << 20);
    assert_non_null(large);
    for (uint32_t i = 0; i < n; i++) {
        objects[i].state.value = bytes_of(large, 1 << 20);
    }
    ops[0] = (struct op){.kind = TXN_OP_RANGE, .number = 64};
    ops[1] = (struct op){.kind = TXN_OP_RANGE, .number = 1};
    memory.n = 8ul * n + MSG_VALUE_MAX;
    memory.at = malloc(memory.n);
    assert_non_null(memory.at);
    txn.ops_n = 2;
    assert_int_equal(txn_evaluate(&txn, objects, n, index, NOW, &memory, answers), TXN_DONE);
    assert_int_equal(answers[0].kind, ANSWER_PAIRS);
    assert_int_equal(answers[1].kind, ANSWER_ERROR);
    assert_int_equal(answers[1].number, HK_ERR_TOOBIG);
    free(large);
    free(memory.at);
    free((void *)(uintptr_t)objects[0].key.at);
    free(objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),          cmocka_unit_test(test_objects),
        cmocka_unit_test(test_fetch),          cmocka_unit_test(test_pairs_hostile),
        cmocka_unit_test(test_all_or_nothing), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_random),         cmocka_unit_test(test_random_watches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
