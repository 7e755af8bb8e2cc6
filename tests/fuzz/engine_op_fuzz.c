/* op_check and op_evaluate on any operation and any state, held against what every operation must
 * keep. Input, in this order; what is missing at the end counts as zero:
 *
 *   1 kind | 2 flags | 8 number | 8 wall clock | 1 key flags | 2 value's bytes | 2 argument's bytes
 *   | value | argument | the rest: the old value in its stored form */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/meta.h"
#include "engine/op.h"

#define HEADER_BYTES 24u
#define VALUE_MAX 4096u

struct outcome {
    int err;
    struct op_state next;
    struct answer answer;
    bool changed;
};

static struct bytes take(struct bytes *rest, uint32_t n)
{
    struct bytes taken = {rest->at, n < rest->n ? n : rest->n};

    *rest = bytes_of(rest->at + taken.n, rest->n - taken.n);
    return taken;
}

static bool states_equal(const struct op_state *a, const struct op_state *b)
{
    return a->present == b->present && a->deadline_ms == b->deadline_ms &&
           bytes_equal(a->value, b->value);
}

static struct outcome evaluate(const struct op *op, const struct op_state *old, uint64_t wall_ms,
                               uint8_t *scratch, uint32_t scratch_bytes)
{
    static const struct op_state untouched = {true, 77, {(const uint8_t *)"untouched", 9}};
    struct outcome o = {.next = untouched};

    o.err = op_evaluate(op, old, wall_ms, scratch, scratch_bytes, &o.next, &o.answer, &o.changed);
    if (!o.changed)
        HK_ASSERT(states_equal(&o.next, &untouched));
    return o;
}

/* Whatever comes out can be stored and read again. */
static void check_stored(const struct op_state *next)
{
    uint32_t n = op_state_stored_bytes(next);
    uint8_t *stored = malloc(n + (n == 0));
    struct op_state back;
    uint8_t vflags = 0xff;

    HK_ASSERT(stored != NULL);
    HK_ASSERT(op_state_store(next, stored, &vflags) == n);
    HK_ASSERT((vflags & ~KEY_VALUE_FLAGS) == 0);
    HK_ASSERT(op_state_from_stored(bytes_of(stored, n), vflags, &back) == HK_OK);
    HK_ASSERT(states_equal(&back, next));
    free(stored);
}

static void check_outcome(const struct outcome *o, const struct op *op, const struct op_state *old,
                          uint64_t wall_ms)
{
    if (o->err != HK_OK) {
        HK_ASSERT(o->err == HK_ERR_TYPE || o->err == HK_ERR_OVERFLOW);
        HK_ASSERT(op->kind == OP_ADD || op->kind == OP_ADD_FLOAT);
        HK_ASSERT(o->answer.kind == ANSWER_ERROR && o->answer.number == o->err);
        HK_ASSERT(!o->changed);
        return;
    }
    HK_ASSERT(o->answer.kind < ANSWER_ERROR);
    HK_ASSERT(o->answer.applied == o->changed);
    if (!o->changed) {
        HK_ASSERT(op_is_rmw(op) || !op_updates(op));
        return;
    }
    HK_ASSERT(op_updates(op));
    HK_ASSERT(o->next.present || (o->next.deadline_ms == 0 && o->next.value.n == 0));
    check_stored(&o->next);
    /* Nothing is stored that is gone already; a deadline that was kept is not looked at again. */
    if (op_state_expired(&o->next, wall_ms))
        HK_ASSERT(o->next.deadline_ms == old->deadline_ms);
    /* Only those that say so drop or change a deadline. */
    if (op->kind == OP_ADD || op->kind == OP_ADD_FLOAT || op->kind == OP_APPEND ||
        op->kind == OP_SETRANGE)
        HK_ASSERT(o->next.deadline_ms == (old->present ? old->deadline_ms : 0));
}

/* A plain write must not depend on what it replaces: the protocol sends it without having read. */
static void check_blind(const struct outcome *o, const struct op *op, uint64_t wall_ms)
{
    static const struct op_state others[] = {
        {.present = false},
        {true, 0, {(const uint8_t *)"12", 2}},
        {true, INT64_MAX, {NULL, 0}},
    };

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct outcome other = evaluate(op, &others[i], wall_ms, NULL, 0);

        HK_ASSERT(other.err == HK_OK && other.changed && o->changed);
        HK_ASSERT(other.answer.kind == ANSWER_OK && o->answer.kind == ANSWER_OK);
        HK_ASSERT(states_equal(&other.next, &o->next));
    }
}

static void run(const struct op *op, const struct op_state *old, uint64_t wall_ms)
{
    uint64_t needed = op_scratch_bytes(op, old);

    HK_ASSERT(needed <= VALUE_MAX + (uint64_t)old->value.n);

    uint8_t *scratch = malloc((size_t)needed + (needed == 0));

    HK_ASSERT(scratch != NULL);

    struct outcome o = evaluate(op, old, wall_ms, scratch, (uint32_t)needed);

    check_outcome(&o, op, old, wall_ms);
    if (op_updates(op) && !op_is_rmw(op))
        check_blind(&o, op, wall_ms);
    free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t header[HEADER_BYTES] = {0};

    if (size > 1 << 16)
        return 0;

    struct bytes rest = bytes_of(data, (uint32_t)size);
    struct bytes begin = take(&rest, HEADER_BYTES);

    if (begin.n > 0)
        memcpy(header, begin.at, begin.n);

    struct op op = {
        .kind = header[0],
        .flags = get_u16(header + 1),
        .number = (int64_t)get_u64(header + 3),
    };
    uint64_t wall_ms = get_u64(header + 11);
    struct op_state old;

    op.value = take(&rest, get_u16(header + 20));
    op.arg = take(&rest, get_u16(header + 22));
    if (op_check(&op, VALUE_MAX) != HK_OK)
        return 0;
    if (op_state_from_stored(rest, header[19], &old) != HK_OK)
        return 0;
    run(&op, &old, wall_ms);
    return 0;
}
