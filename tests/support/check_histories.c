#include "support/check_histories.h"

#include <stdlib.h>

#include "base/assert.h"

#define BRUTE_MAX 16u

struct history_op op_of(enum history_kind kind, uint64_t begin_us, uint64_t end_us, int64_t in,
                        int64_t expected, int64_t out, bool ok)
{
    return (struct history_op){
        .begin_us = begin_us,
        .end_us = end_us,
        .key = 1,
        .in = in,
        .expected = expected,
        .out = out,
        .client = 1,
        .kind = (uint8_t)kind,
        .outcome = HISTORY_OK,
        .ok = ok,
    };
}

struct history_op op_read(uint64_t begin_us, uint64_t end_us, int64_t out)
{
    return op_of(HISTORY_READ, begin_us, end_us, ABSENT, ABSENT, out, false);
}

struct history_op op_write(uint64_t begin_us, uint64_t end_us, int64_t in)
{
    return op_of(HISTORY_WRITE, begin_us, end_us, in, ABSENT, ABSENT, false);
}

struct history_op op_delete(uint64_t begin_us, uint64_t end_us)
{
    return op_of(HISTORY_DELETE, begin_us, end_us, ABSENT, ABSENT, ABSENT, false);
}

struct history_op op_delete_if(uint64_t begin_us, uint64_t end_us, int64_t expected, bool ok)
{
    return op_of(HISTORY_DELETE_IF, begin_us, end_us, ABSENT, expected, ABSENT, ok);
}

struct history_op op_set_if(uint64_t begin_us, uint64_t end_us, int64_t expected, int64_t in,
                            bool ok)
{
    return op_of(HISTORY_SET_IF, begin_us, end_us, in, expected, ABSENT, ok);
}

struct history_op op_set_absent(uint64_t begin_us, uint64_t end_us, int64_t in, bool ok)
{
    return op_of(HISTORY_SET_ABSENT, begin_us, end_us, in, ABSENT, ABSENT, ok);
}

struct history_op op_add(uint64_t begin_us, uint64_t end_us, int64_t in, int64_t out)
{
    return op_of(HISTORY_ADD, begin_us, end_us, in, ABSENT, out, false);
}

struct history_op op_getset(uint64_t begin_us, uint64_t end_us, int64_t in, int64_t out)
{
    return op_of(HISTORY_GETSET, begin_us, end_us, in, ABSENT, out, false);
}

struct history_op op_unknown(struct history_op op)
{
    op.outcome = HISTORY_UNKNOWN;
    return op;
}

struct history_op op_failed(struct history_op op)
{
    op.outcome = HISTORY_FAILED;
    return op;
}

struct history_op op_of_key(struct history_op op, uint64_t key)
{
    op.key = key;
    return op;
}

int64_t register_apply(struct history_op *op, int64_t value)
{
    op->out = ABSENT;
    op->ok = false;
    switch ((enum history_kind)op->kind) {
    case HISTORY_READ:
        op->out = value;
        return value;
    case HISTORY_WRITE:
        return op->in;
    case HISTORY_DELETE:
        return ABSENT;
    case HISTORY_DELETE_IF:
        op->ok = value == op->expected;
        return op->ok ? ABSENT : value;
    case HISTORY_SET_IF:
        op->ok = value == op->expected;
        return op->ok ? op->in : value;
    case HISTORY_SET_ABSENT:
        op->ok = value == ABSENT;
        return op->ok ? op->in : value;
    case HISTORY_ADD:
        if (__builtin_add_overflow(value == ABSENT ? 0 : value, op->in, &op->out)) {
            op->out = ABSENT;
        }
        return op->out == ABSENT ? value : op->out;
    case HISTORY_GETSET:
        op->out = value;
        return op->in;
    }
    HK_ASSERT(false);
    return value;
}

static bool same_answer(const struct history_op *a, const struct history_op *b)
{
    switch ((enum history_kind)a->kind) {
    case HISTORY_ADD:
        return a->out == b->out && b->out != ABSENT;
    case HISTORY_READ:
    case HISTORY_GETSET:
        return a->out == b->out;
    case HISTORY_DELETE_IF:
    case HISTORY_SET_IF:
    case HISTORY_SET_ABSENT:
        return a->ok == b->ok;
    case HISTORY_WRITE:
    case HISTORY_DELETE:
        break;
    }
    return true;
}

/* Whether operation i may come before all others in rest. */
static bool may_be_next(const struct history *history, uint32_t rest, size_t i)
{
    for (size_t j = 0; j < history->n; j++) {
        const struct history_op *other = &history->ops[j];
        if ((rest >> j & 1) != 0 && other->outcome == HISTORY_OK &&
            other->end_us < history->ops[i].begin_us) {
            return false;
        }
    }
    return true;
}

/* Whether an order of the operations of one key in rest explains them, from this value on. The
 * depth is at most BRUTE_MAX. */
static bool brute_rest(const struct history *history, uint32_t rest, int64_t value)
{
    bool returned_left = false;
    for (size_t i = 0; i < history->n; i++) {
        const struct history_op *op = &history->ops[i];
        if ((rest >> i & 1) == 0) {
            continue;
        }
        returned_left = returned_left || op->outcome == HISTORY_OK;
        struct history_op run = *op;
        int64_t after = register_apply(&run, value);
        if (may_be_next(history, rest, i) &&
            (op->outcome == HISTORY_UNKNOWN || same_answer(op, &run)) &&
            brute_rest(history, rest & ~(1u << i), after)) {
            return true;
        }
    }
    return !returned_left;
}

bool brute_accepts(const struct history *history)
{
    HK_ASSERT(history->n <= BRUTE_MAX);
    uint32_t done = 0;
    for (size_t first = 0; first < history->n; first++) {
        uint32_t key = 0;
        for (size_t i = first; i < history->n; i++) {
            bool same = history->ops[i].key == history->ops[first].key;
            key |= same ? 1u << i : 0;
        }
        if ((done & key) != 0) {
            continue;
        }
        done |= key;
        uint32_t rest = key;
        for (size_t i = 0; i < history->n; i++) {
            if (history->ops[i].outcome == HISTORY_FAILED) {
                rest &= ~(1u << i);
            }
        }
        if (!brute_rest(history, rest, ABSENT)) {
            return false;
        }
    }
    return true;
}

static int64_t gap_of(const struct generate *g)
{
    return g->value_gap == 0 ? 1 : g->value_gap;
}

static int64_t random_input(struct random *r, const struct generate *g, uint32_t i)
{
    int64_t input = g->values == 0 ? (int64_t)i + 1 : (int64_t)random_below(r, (uint64_t)g->values);
    return input * gap_of(g);
}

/* Some deltas are negative if the values have gaps, so that sums go both ways between them. */
static int64_t random_delta(struct random *r, const struct generate *g)
{
    int64_t delta = (int64_t)random_below(r, g->values == 0 ? 9 : (uint64_t)g->values);
    return g->value_gap == 0 ? delta : delta - 1;
}

/* What a condition compares with: likely to hold now and then. */
static int64_t random_expected(struct random *r, const struct generate *g, int64_t value)
{
    if (g->values != 0 && random_chance(r, 600000)) {
        int64_t expected = (int64_t)random_below(r, (uint64_t)g->values + 1);
        return expected == g->values ? ABSENT : expected * gap_of(g);
    }
    return random_chance(r, 700000) ? value : 0;
}

static uint8_t random_kind(struct random *r, const struct generate *g)
{
    uint8_t kind;
    do {
        kind = (uint8_t)random_below(r, HISTORY_GETSET + 1);
    } while ((g->kinds >> kind & 1) == 0);
    return kind;
}

/* When each client can go on; a client whose answer was lost counts as a new one at once. */
struct clock {
    uint64_t ready_us[64];
};

static int compare_effects(const void *left, const void *right)
{
    const struct history_op *a = left;
    const struct history_op *b = right;
    /* expected holds the moment of effect until the register runs. */
    return (a->expected > b->expected) - (a->expected < b->expected);
}

/* Draws begin, moment of effect and end for all operations, and sorts them by effect. */
static void draw_times(struct random *r, const struct generate *g, struct history_op *ops)
{
    struct clock clock = {0};
    HK_ASSERT(g->clients <= sizeof clock.ready_us / sizeof clock.ready_us[0]);
    for (uint32_t i = 0; i < g->ops; i++) {
        uint32_t client = i % g->clients;
        uint64_t begin = clock.ready_us[client] + random_below(r, g->length_us + 1);
        uint64_t effect = begin + random_below(r, g->length_us / 2 + 1);
        uint64_t end = effect + random_below(r, g->length_us / 2 + 1);
        ops[i] = (struct history_op){.begin_us = begin, .end_us = end, .client = client};
        if (random_chance(r, g->unknown_ppm)) {
            ops[i].outcome = HISTORY_UNKNOWN;
            effect += random_below(r, 4 * (uint64_t)g->length_us + 1);
        } else if (random_chance(r, g->failed_ppm)) {
            ops[i].outcome = HISTORY_FAILED;
        }
        ops[i].expected = (int64_t)effect;
        clock.ready_us[client] = end;
    }
    qsort(ops, g->ops, sizeof *ops, compare_effects);
}

void generate_history(struct random *r, const struct generate *g, struct history_op *ops)
{
    draw_times(r, g, ops);
    HK_ASSERT(g->keys <= 64);
    int64_t at[64];
    for (uint32_t i = 0; i < g->keys; i++) {
        at[i] = ABSENT;
    }
    for (uint32_t i = 0; i < g->ops; i++) {
        struct history_op *op = &ops[i];
        op->key = random_below(r, g->keys);
        int64_t *value = &at[op->key];
        op->kind = random_kind(r, g);
        op->in = op->kind == HISTORY_ADD ? random_delta(r, g) : random_input(r, g, i);
        op->expected = random_expected(r, g, *value);
        if (op->kind == HISTORY_READ || op->kind == HISTORY_DELETE ||
            op->kind == HISTORY_DELETE_IF) {
            op->in = ABSENT;
        }
        bool lost = op->outcome == HISTORY_UNKNOWN && random_chance(r, 500000);
        int64_t after = register_apply(op, *value);
        if (op->outcome != HISTORY_FAILED && !lost) {
            *value = after;
        }
    }
}

void corrupt_history(struct random *r, const struct generate *g, struct history *history)
{
    struct history_op *op = &history->ops[random_below(r, history->n)];
    const struct history_op *other = &history->ops[random_below(r, history->n)];
    switch (random_below(r, 5)) {
    case 0:
        op->out = other->out;
        break;
    case 1:
        op->ok = !op->ok;
        break;
    case 2:
        op->begin_us += random_below(r, 2 * (uint64_t)g->length_us + 1);
        op->end_us = op->end_us < op->begin_us ? op->begin_us : op->end_us;
        break;
    case 3:
        op->end_us = op->begin_us + random_below(r, op->end_us - op->begin_us + 1);
        break;
    default:
        op->out = random_chance(r, 200000) ? ABSENT : random_input(r, g, 0);
        break;
    }
}
