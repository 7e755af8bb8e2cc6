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

struct history_op op_until(struct history_op op, uint64_t deadline, uint64_t not_before_us)
{
    op.deadline = deadline;
    op.not_before_us = not_before_us;
    return op;
}

static struct reg write_to(const struct history_op *op, struct reg before)
{
    uint64_t deadline = op->deadline == HISTORY_KEEP ? before.deadline : op->deadline;
    return (struct reg){op->in, deadline};
}

/* The kinds that are about deadlines alone. */
static struct reg deadline_apply(struct history_op *op, struct reg before)
{
    bool present = before.value != ABSENT;
    struct reg after = before;
    op->out = before.value;
    if (op->kind == HISTORY_TTL) {
        op->out = present ? before.deadline != 0 : ABSENT;
        op->deadline = before.deadline;
    } else if (op->kind == HISTORY_PERSIST) {
        op->ok = before.deadline != 0;
        after.deadline = 0;
    } else if (present && op->deadline != HISTORY_KEEP) {
        op->ok = true;
        after.deadline = op->deadline;
    }
    return after;
}

static struct reg add_apply(struct history_op *op, struct reg before)
{
    if (__builtin_add_overflow(before.value == ABSENT ? 0 : before.value, op->in, &op->out)) {
        op->out = ABSENT;
    }
    return op->out == ABSENT ? before : (struct reg){op->out, before.deadline};
}

struct reg register_apply(struct history_op *op, struct reg before)
{
    const struct reg absent = {ABSENT, 0};
    bool present = before.value != ABSENT;
    op->out = ABSENT;
    op->ok = false;
    switch ((enum history_kind)op->kind) {
    case HISTORY_READ:
        op->out = before.value;
        return before;
    case HISTORY_EXISTS:
        op->ok = present;
        return before;
    case HISTORY_WRITE:
        return write_to(op, before);
    case HISTORY_DELETE:
        return absent;
    case HISTORY_DELETE_PRESENT:
        op->ok = present;
        return absent;
    case HISTORY_GETDEL:
        op->out = before.value;
        return absent;
    case HISTORY_DELETE_IF:
        op->ok = before.value == op->expected;
        return op->ok ? absent : before;
    case HISTORY_SET_IF:
    case HISTORY_RMW:
        op->ok = before.value == op->expected;
        return op->ok ? write_to(op, before) : before;
    case HISTORY_SET_ABSENT:
        op->ok = !present;
        return op->ok ? write_to(op, before) : before;
    case HISTORY_SET_PRESENT:
        op->ok = present;
        return op->ok ? write_to(op, before) : before;
    case HISTORY_ADD:
        return add_apply(op, before);
    case HISTORY_GETSET:
        op->out = before.value;
        return write_to(op, before);
    case HISTORY_EXPIRE:
    case HISTORY_PERSIST:
    case HISTORY_GETEX:
    case HISTORY_TTL:
        return deadline_apply(op, before);
    }
    HK_ASSERT(false);
    return before;
}

/* Whether a, as recorded, is what b, as run, answers. */
static bool same_answer(const struct history_op *a, const struct history_op *b)
{
    switch ((enum history_kind)a->kind) {
    case HISTORY_ADD:
        return a->out == b->out && b->out != ABSENT;
    case HISTORY_READ:
    case HISTORY_GETSET:
    case HISTORY_GETDEL:
    case HISTORY_GETEX:
        return a->out == b->out;
    case HISTORY_TTL:
        return (a->out == ABSENT) == (b->out == ABSENT) && (a->out == 0) == (b->out == 0) &&
               (a->deadline == 0 || a->deadline == b->deadline);
    case HISTORY_DELETE_IF:
    case HISTORY_SET_IF:
    case HISTORY_SET_ABSENT:
    case HISTORY_SET_PRESENT:
    case HISTORY_DELETE_PRESENT:
    case HISTORY_EXISTS:
    case HISTORY_EXPIRE:
    case HISTORY_PERSIST:
        return a->ok == b->ok;
    case HISTORY_RMW:
        return b->ok;
    case HISTORY_WRITE:
    case HISTORY_DELETE:
        break;
    }
    return true;
}

static bool sets(const struct history_op *op, uint64_t key, uint64_t deadline)
{
    return op->key == key && op->kind != HISTORY_TTL && op->outcome != HISTORY_FAILED &&
           op->deadline == deadline;
}

/* Whether the deadline may be reached with the operations in rest still to come. */
static bool may_expire(const struct history *history, uint32_t rest, uint64_t key,
                       uint64_t deadline)
{
    uint64_t not_before = UINT64_MAX;
    uint64_t first_end = UINT64_MAX;
    for (size_t i = 0; i < history->n; i++) {
        const struct history_op *op = &history->ops[i];
        if (sets(op, key, deadline) && op->not_before_us < not_before) {
            not_before = op->not_before_us;
        }
        if ((rest >> i & 1) != 0 && op->outcome == HISTORY_OK && op->end_us < first_end) {
            first_end = op->end_us;
        }
    }
    return not_before <= first_end;
}

/* Whether operation i begins when nothing with the deadline can be left. */
static bool is_too_late(const struct history *history, size_t i, uint64_t deadline)
{
    uint64_t not_after = 0;
    for (size_t j = 0; j < history->n && deadline != 0; j++) {
        const struct history_op *op = &history->ops[j];
        if (sets(op, history->ops[i].key, deadline)) {
            uint64_t last = op->not_after_us == 0 ? UINT64_MAX : op->not_after_us;
            not_after = last > not_after ? last : not_after;
        }
    }
    return deadline != 0 && history->ops[i].begin_us > not_after;
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

/* Whether an order of the operations of one key in rest explains them, from what it holds on. The
 * depth is at most twice BRUTE_MAX. */
static bool brute_rest(const struct history *history, uint32_t rest, uint64_t key, struct reg reg)
{
    bool returned_left = false;
    for (size_t i = 0; i < history->n; i++) {
        const struct history_op *op = &history->ops[i];
        if ((rest >> i & 1) == 0) {
            continue;
        }
        returned_left = returned_left || op->outcome == HISTORY_OK;
        struct history_op run = *op;
        struct reg after = register_apply(&run, reg);
        if (may_be_next(history, rest, i) && !is_too_late(history, i, reg.deadline) &&
            (op->outcome == HISTORY_UNKNOWN || same_answer(op, &run)) &&
            brute_rest(history, rest & ~(1u << i), key, after)) {
            return true;
        }
    }
    return !returned_left || (reg.deadline != 0 && may_expire(history, rest, key, reg.deadline) &&
                              brute_rest(history, rest, key, (struct reg){ABSENT, 0}));
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
        if (!brute_rest(history, rest, history->ops[first].key, (struct reg){ABSENT, 0})) {
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
        kind = (uint8_t)random_below(r, HISTORY_TTL + 1);
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

static bool has_input(uint8_t kind)
{
    return kind == HISTORY_WRITE || kind == HISTORY_SET_IF || kind == HISTORY_SET_ABSENT ||
           kind == HISTORY_ADD || kind == HISTORY_GETSET || kind == HISTORY_SET_PRESENT ||
           kind == HISTORY_RMW;
}

/* Gives the operation, which takes effect at this moment, a deadline now and then; returns when it
 * is reached. */
static uint64_t draw_deadline(struct random *r, const struct generate *g, struct history_op *op,
                              uint64_t effect_us, uint32_t i)
{
    bool may = (has_input(op->kind) && op->kind != HISTORY_ADD) || op->kind == HISTORY_GETEX;
    if (op->kind != HISTORY_EXPIRE && (!may || !random_chance(r, g->deadline_ppm))) {
        if (may && g->deadline_ppm != 0 && random_chance(r, 300000)) {
            op->deadline = HISTORY_KEEP;
        }
        return 0;
    }
    /* A name now and then stands for several deadlines. */
    op->deadline = random_chance(r, 200000) ? 1 + random_below(r, 2) : i + 3;
    uint64_t early = effect_us < g->length_us ? effect_us : g->length_us;
    op->not_before_us = effect_us - early + random_below(r, 4 * (uint64_t)g->length_us + 1);
    uint64_t reached = op->not_before_us + random_below(r, g->length_us + 1);
    if (random_chance(r, 500000)) {
        op->not_after_us = reached + 1 + random_below(r, g->length_us + 1);
    }
    return reached;
}

struct generated_key {
    struct reg reg;
    uint64_t reached_us; /* when the deadline is */
};

static void generate_op(struct random *r, const struct generate *g, struct history_op *op,
                        struct generated_key *keys, uint32_t i)
{
    uint64_t effect_us = (uint64_t)op->expected;
    op->key = random_below(r, g->keys);
    struct generated_key *key = &keys[op->key];
    if (key->reg.deadline != 0 && key->reached_us <= effect_us) {
        key->reg = (struct reg){ABSENT, 0};
    }
    op->kind = random_kind(r, g);
    op->in = op->kind == HISTORY_ADD ? random_delta(r, g) : random_input(r, g, i);
    op->in = has_input(op->kind) ? op->in : ABSENT;
    op->expected = op->kind == HISTORY_RMW ? key->reg.value : random_expected(r, g, key->reg.value);
    uint64_t reached_us = draw_deadline(r, g, op, effect_us, i);
    bool lost = op->outcome == HISTORY_UNKNOWN && random_chance(r, 500000);
    struct reg after = register_apply(op, key->reg);
    if (op->kind == HISTORY_TTL && random_chance(r, 500000)) {
        op->deadline = 0;
    }
    if (op->outcome == HISTORY_FAILED || lost) {
        return;
    }
    bool is_new = op->kind != HISTORY_TTL && after.deadline != 0 && after.deadline == op->deadline;
    /* Where several operations use one name, the condition may have failed on a key that has it. */
    if (is_new && (op->ok || op->kind == HISTORY_WRITE || op->kind == HISTORY_GETSET)) {
        key->reached_us = reached_us;
    }
    key->reg = after;
}

void generate_history(struct random *r, const struct generate *g, struct history_op *ops)
{
    draw_times(r, g, ops);
    HK_ASSERT(g->keys <= 64);
    struct generated_key keys[64];
    for (uint32_t i = 0; i < g->keys; i++) {
        keys[i] = (struct generated_key){.reg = {ABSENT, 0}};
    }
    for (uint32_t i = 0; i < g->ops; i++) {
        generate_op(r, g, &ops[i], keys, i);
    }
}

static void corrupt_deadline(struct random *r, const struct generate *g, struct history_op *op,
                             const struct history_op *other)
{
    switch (random_below(r, 4)) {
    case 0:
        op->not_before_us += 1 + random_below(r, 8 * (uint64_t)g->length_us);
        break;
    case 1:
        op->not_after_us = op->not_before_us;
        break;
    case 2:
        op->deadline = other->deadline;
        break;
    default:
        op->deadline = random_chance(r, 500000) ? 0 : HISTORY_KEEP;
        break;
    }
}

void corrupt_history(struct random *r, const struct generate *g, struct history *history)
{
    struct history_op *op = &history->ops[random_below(r, history->n)];
    const struct history_op *other = &history->ops[random_below(r, history->n)];
    struct history_op before = *op;
    switch (random_below(r, g->deadline_ppm == 0 ? 5 : 7)) {
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
    case 4:
        op->out = random_chance(r, 200000) ? ABSENT : random_input(r, g, 0);
        break;
    default:
        corrupt_deadline(r, g, op, other);
        break;
    }
    if (history_op_invalid(op) != NULL) {
        *op = before;
    }
}
