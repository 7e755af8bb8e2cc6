/* Ranges of a transaction. All objects are put in order once; a range is then a piece of that
 * order, found by halving.
 * A pair of a range's answer: lengths of key and value, 4 bytes each; key, value. */
#include "engine/txn_range.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/hash.h"
#include "wire/msg.h"

#define PAIR_HEADER 8u
#define NUMBER_BYTES 4u

/* ---- Pairs ---- */

bool txn_pair_take(struct bytes *rest, struct bytes *key_out, struct bytes *value_out)
{
    if (rest->n < PAIR_HEADER) {
        return false;
    }
    uint32_t key_n = get_u32(rest->at), value_n = get_u32(rest->at + 4);
    uint64_t bytes = PAIR_HEADER + (uint64_t)key_n + value_n;
    if (key_n > MSG_KEY_MAX || bytes > rest->n) {
        return false;
    }
    *key_out = bytes_of(rest->at + PAIR_HEADER, key_n);
    *value_out = bytes_of(rest->at + PAIR_HEADER + key_n, value_n);
    rest->at += bytes;
    rest->n -= (uint32_t)bytes;
    return true;
}

static uint8_t *put_bytes(uint8_t *at, struct bytes b)
{
    if (b.n > 0) {
        memcpy(at, b.at, b.n);
    }
    return at + b.n;
}

static uint8_t *put_pair(uint8_t *at, struct bytes key, struct bytes value)
{
    put_u32(at, key.n);
    put_u32(at + 4, value.n);
    return put_bytes(put_bytes(at + PAIR_HEADER, key), value);
}

/* ---- Checking ---- */

int range_check(const struct op *op)
{
    uint16_t allowed = op->kind == TXN_OP_RANGE ? TXN_OPF_REVERSE | TXN_OPF_KEYS : TXN_OPF_REVERSE;
    if ((op->flags & ~allowed) != 0 || op->value.n != 0 || op->number < 0 ||
        op->number > UINT32_MAX) {
        return HK_ERR_INVALID;
    }
    return op->key.n > MSG_KEY_MAX || op->arg.n > MSG_KEY_MAX ? HK_ERR_TOOBIG : HK_OK;
}

int range_check_watch(const struct txn_watch *watch)
{
    bool more = watch->flags != 0 || watch->limit != 0 || watch->end.n > 0;
    if ((!watch->range && more) || (watch->flags & ~TXN_OPF_REVERSE) != 0) {
        return HK_ERR_INVALID;
    }
    return watch->key.n > MSG_KEY_MAX || watch->end.n > MSG_KEY_MAX ? HK_ERR_TOOBIG : HK_OK;
}

bool range_any(const struct txn_request *txn)
{
    bool any = false;
    for (uint32_t i = 0; i < txn->ops_n && !any; i++) {
        any = range_is(&txn->ops[i]);
    }
    for (uint32_t i = 0; i < txn->watches_n && !any; i++) {
        any = txn->watches[i].range;
    }
    return any;
}

uint32_t txn_range_fetch(const struct txn_request *txn, uint32_t i)
{
    HK_ASSERT(i < txn->ops_n && range_is(&txn->ops[i]));
    uint64_t rows = (uint64_t)txn->ops[i].number;
    for (uint32_t k = 0; k < i && rows > 0; k++) {
        const struct op *before = &txn->ops[k];
        if (before->kind != TXN_OP_RANGE_DELETE) {
            rows += range_is(before) ? 0 : 1;
        } else {
            rows = before->number > 0 ? rows + (uint64_t)before->number : 0;
        }
    }
    return rows <= UINT32_MAX ? (uint32_t)rows : 0;
}

/* ---- The order ---- */

static int compare(struct bytes a, struct bytes b)
{
    uint32_t n = a.n < b.n ? a.n : b.n;
    int order = n > 0 ? memcmp(a.at, b.at, n) : 0;
    return order != 0 ? order : a.n < b.n ? -1 : a.n > b.n;
}

static struct txn_object *nth(const struct txn_ranges *r, const uint8_t *order, uint32_t i)
{
    return &r->objects[get_u32(order + NUMBER_BYTES * (size_t)i)];
}

static bool less(const struct txn_ranges *r, const uint8_t *order, uint32_t a, uint32_t b)
{
    return compare(nth(r, order, a)->key, nth(r, order, b)->key) < 0;
}

static void put_number(uint8_t *order, uint32_t at, uint32_t number)
{
    put_u32(order + NUMBER_BYTES * (size_t)at, number);
}

/* Ranges bring their rows in order, forwards or backwards: such runs are worth finding. Those that
 * fall are turned round. */
static void put_runs(const struct txn_ranges *r, uint8_t *order)
{
    for (uint32_t i = 0, end; i < r->n; i = end) {
        bool falls = i + 1 < r->n && compare(r->objects[i + 1].key, r->objects[i].key) < 0;
        for (end = i + 1; end < r->n; end++) {
            if ((compare(r->objects[end].key, r->objects[end - 1].key) < 0) != falls) {
                break;
            }
        }
        for (uint32_t k = i; k < end; k++) {
            put_number(order, k, falls ? i + end - 1 - k : k);
        }
    }
}

static uint32_t end_of_run(const struct txn_ranges *r, const uint8_t *order, uint32_t i)
{
    for (i = i < r->n ? i + 1 : i; i < r->n && !less(r, order, i, i - 1); i++) {
    }
    return i;
}

/* Merges runs two by two; whether there was but one. */
static bool merge_runs(const struct txn_ranges *r, const uint8_t *from, uint8_t *to)
{
    bool one = true;
    for (uint32_t i = 0, end; i < r->n; i = end) {
        uint32_t middle = end_of_run(r, from, i), a = i, b = middle;
        end = end_of_run(r, from, middle);
        one = one && middle == r->n;
        for (uint32_t k = i; k < end; k++) {
            bool left = a < middle && (b == end || !less(r, from, b, a));
            put_number(to, k, get_u32(from + NUMBER_BYTES * (size_t)(left ? a++ : b++)));
        }
    }
    return one;
}

bool range_begin(struct txn_ranges *r, struct txn_object *objects, uint32_t n,
                 struct txn_memory *memory)
{
    size_t bytes = NUMBER_BYTES * (size_t)n;
    HK_ASSERT(memory->used == 0 && n <= TXN_OBJECTS_MAX + TXN_SCANNED_MAX);
    memory->used = 2 * bytes;
    if (memory->used > memory->n) {
        return false;
    }
    uint8_t *order = memory->at;
    *r = (struct txn_ranges){.objects = objects, .n = n, .order = order};
    if (n > 0) {
        uint8_t *other = order + bytes;
        put_runs(r, order);
        while (!merge_runs(r, order, other)) {
            memcpy(order, other, bytes);
        }
    }
    return true;
}

/* The first in the order whose key is not less. */
static uint32_t lower_bound(const struct txn_ranges *r, struct bytes key)
{
    uint32_t low = 0, high = r->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare(nth(r, r->order, middle)->key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct walk {
    const struct txn_ranges *r;
    uint32_t low, high; /* what is left of the order */
    bool reverse;
};

static struct walk walk_of(const struct txn_ranges *r, struct bytes start, struct bytes end,
                           uint16_t flags)
{
    return (struct walk){.r = r,
                         .low = lower_bound(r, start),
                         .high = end.n == 0 ? r->n : lower_bound(r, end),
                         .reverse = (flags & TXN_OPF_REVERSE) != 0};
}

/* NULL: it is over. */
static struct txn_object *walk_next(struct walk *w)
{
    if (w->low >= w->high) {
        return NULL;
    }
    return nth(w->r, w->r->order, w->reverse ? --w->high : w->low++);
}

/* ---- Versions ---- */

/* All bits of the result depend on all of v (the last steps of splitmix64). */
static uint64_t mix(uint64_t v)
{
    v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
    return v ^ v >> 31;
}

/* Of the rows as they were stored: what operations made of them does not count. A short key is
 * little more than added to the seed: without mix, "b" of version 2 would be "a" of version 3. */
static uint64_t digest(struct walk walk, uint64_t limit)
{
    uint64_t h = 1, n = 0;
    const struct txn_object *o;
    while ((limit == 0 || n < limit) && (o = walk_next(&walk)) != NULL) {
        if (o->version != 0 && !o->expired) {
            h = XXH3_64bits_withSeed(o->key.at, o->key.n, mix(h + o->version));
            n++;
        }
    }
    return h != 0 ? h : 1;
}

bool range_watch_holds(const struct txn_ranges *r, const struct txn_watch *watch)
{
    return watch->version == digest(walk_of(r, watch->key, watch->end, watch->flags), watch->limit);
}

uint64_t txn_range_version(const struct op *range, struct txn_object *objects, uint32_t objects_n,
                           const uint8_t *memory)
{
    HK_ASSERT(range_is(range));
    const struct txn_ranges r = {.objects = objects, .n = objects_n, .order = memory};
    return digest(walk_of(&r, range->key, range->arg, range->flags), (uint64_t)range->number);
}

/* ---- Evaluating ---- */

static struct bytes value_of(const struct op *op, const struct txn_object *o)
{
    return (op->flags & TXN_OPF_KEYS) != 0 ? bytes_of(NULL, 0) : o->state.value;
}

/* What a range will meet: present rows and bytes of their pairs; false: it goes too far. */
static bool measure(struct txn_ranges *r, const struct op *op, uint32_t *rows_out,
                    uint64_t *bytes_out)
{
    struct walk walk = walk_of(r, op->key, op->arg, op->flags);
    const struct txn_object *o;
    *rows_out = 0;
    *bytes_out = 0;
    while ((op->number == 0 || *rows_out < op->number) && (o = walk_next(&walk)) != NULL) {
        if (r->visited == TXN_VISITED_MAX) {
            return false;
        }
        r->visited++;
        if (o->state.present) {
            *rows_out += 1;
            *bytes_out += PAIR_HEADER + (uint64_t)o->key.n + value_of(op, o).n;
        }
    }
    return true;
}

static void put_pairs(const struct txn_ranges *r, const struct op *op, uint32_t rows, uint8_t *at)
{
    struct walk walk = walk_of(r, op->key, op->arg, op->flags);
    while (rows > 0) {
        const struct txn_object *o = walk_next(&walk);
        if (o->state.present) {
            at = put_pair(at, o->key, value_of(op, o));
            rows--;
        }
    }
}

static void delete_rows(const struct txn_ranges *r, const struct op *op, uint32_t rows)
{
    struct walk walk = walk_of(r, op->key, op->arg, op->flags);
    while (rows > 0) {
        struct txn_object *o = walk_next(&walk);
        if (o->state.present) {
            o->state = (struct op_state){.present = false};
            o->changed = true;
            rows--;
        }
    }
}

bool range_evaluate(struct txn_ranges *r, const struct op *op, struct txn_memory *memory,
                    struct answer *answer)
{
    uint32_t rows;
    uint64_t bytes, at = memory->used;
    bool pairs = op->kind == TXN_OP_RANGE;
    bool fits = measure(r, op, &rows, &bytes);
    r->bytes += pairs ? bytes : 0;
    if (!fits || r->bytes > MSG_VALUE_MAX) {
        *answer = (struct answer){.kind = ANSWER_ERROR, .number = HK_ERR_TOOBIG};
        return true;
    }
    *answer = (struct answer){.kind = pairs ? ANSWER_PAIRS : ANSWER_NUMBER, .number = rows};
    if (pairs && rows > 0) {
        memory->used += bytes;
        if (memory->used > memory->n) {
            return false;
        }
        put_pairs(r, op, rows, memory->at + at);
        answer->value = bytes_of(memory->at + at, (uint32_t)bytes);
    } else if (op->kind == TXN_OP_RANGE_DELETE) {
        delete_rows(r, op, rows);
        answer->applied = rows > 0;
    }
    return true;
}
