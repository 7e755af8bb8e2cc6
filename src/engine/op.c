#include "engine/op.h"

#include <stddef.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/meta.h"
#include "engine/op_number.h"
#include "wire/msg.h"

#define DEADLINE_BYTES ((uint32_t)sizeof(uint64_t))
#define NUMBER_ROOM 8u /* digits, and a sign */

/* What each kind is. */
struct op_rule {
    bool updates;
    bool writes;    /* op.value becomes (part of) the stored value */
    uint16_t flags; /* those that mean something */
};
static const struct op_rule rules[OP_KINDS] = {
    [OP_GET] = {.updates = false},
    [OP_EXISTS] = {.updates = false},
    [OP_SET] = {.updates = true,
                .writes = true,
                .flags = OPF_NX | OPF_XX | OPF_IFEQ | OPF_GET | OPF_KEEPTTL | OPF_DEADLINE},
    [OP_DELETE] = {.updates = true, .flags = OPF_BLIND},
    [OP_DELETE_IF] = {.updates = true},
    [OP_ADD] = {.updates = true},
    [OP_ADD_FLOAT] = {.updates = true},
    [OP_APPEND] = {.updates = true, .writes = true},
    [OP_SETRANGE] = {.updates = true, .writes = true},
    [OP_EXPIRE] = {.updates = true, .flags = OPF_NX | OPF_XX | OPF_GT | OPF_LT},
    [OP_PERSIST] = {.updates = true},
    [OP_GETSET] = {.updates = true, .writes = true},
    [OP_GETDEL] = {.updates = true},
    [OP_GETEX] = {.updates = true, .flags = OPF_KEEPTTL},
    [OP_STRLEN] = {.updates = false},
    [OP_DEADLINE] = {.updates = false},
    [OP_EXPIRED] = {.updates = true},
};

static bool has(const struct op *op, uint16_t flags)
{
    return (op->flags & flags) != 0;
}

/* Whether more than one of the flags is set. */
static bool has_several(const struct op *op, uint16_t flags)
{
    uint16_t set = op->flags & flags;

    return (set & (set - 1)) != 0;
}

bool op_updates(const struct op *op)
{
    HK_ASSERT(op->kind < OP_KINDS);
    if (op->kind == OP_GETEX && has(op, OPF_KEEPTTL))
        return false;
    return rules[op->kind].updates;
}

bool op_is_rmw(const struct op *op)
{
    if (op->kind == OP_SET)
        return has(op, OPF_NX | OPF_XX | OPF_IFEQ | OPF_GET | OPF_KEEPTTL);
    if (op->kind == OP_DELETE)
        return !has(op, OPF_BLIND);
    return op_updates(op);
}

uint32_t op_room(const struct op *op)
{
    switch (op->kind) {
    case OP_SET:
        return op->value.n + (has(op, OPF_DEADLINE) ? DEADLINE_BYTES : 0);
    case OP_GETSET:
    case OP_APPEND:
        return op->value.n;
    case OP_SETRANGE:
        return op->value.n > 0 ? (uint32_t)op->number + op->value.n : 0;
    case OP_ADD:
    case OP_ADD_FLOAT:
        return NUMBER_ROOM;
    default:
        return 0;
    }
}

static bool flags_fit(const struct op *op)
{
    if ((op->flags & ~rules[op->kind].flags) != 0)
        return false;
    if (op->kind == OP_SET)
        return !has_several(op, OPF_NX | OPF_XX | OPF_IFEQ) &&
               !has_several(op, OPF_KEEPTTL | OPF_DEADLINE);
    if (op->kind == OP_EXPIRE)
        return !has_several(op, OPF_GT | OPF_LT) && !has_several(op, OPF_NX | OPF_XX) &&
               !(has(op, OPF_NX) && has(op, OPF_GT | OPF_LT));
    return true;
}

static bool number_fits(const struct op *op)
{
    if (op->kind == OP_SET && has(op, OPF_DEADLINE))
        return op->number > 0;
    if (op->kind == OP_GETEX)
        return has(op, OPF_KEEPTTL) ? op->number == 0 : op->number >= 0;
    if (op->kind == OP_SETRANGE)
        return op->number >= 0;
    if (op->kind == OP_EXPIRED)
        return op->number > 0;
    return true; /* a deadline before 1970 has passed, and any number can be added */
}

int op_check(const struct op *op, uint32_t value_bytes_max)
{
    if (op->kind >= OP_KINDS || !flags_fit(op) || !number_fits(op))
        return HK_ERR_INVALID;
    if (op->key.n > MSG_KEY_MAX)
        return HK_ERR_TOOBIG;
    if (rules[op->kind].writes && op->value.n > value_bytes_max)
        return HK_ERR_TOOBIG;
    /* Nothing at any offset is allowed: it writes nothing. */
    if (op->kind == OP_SETRANGE && op->value.n > 0 &&
        op->number > (int64_t)(value_bytes_max - op->value.n))
        return HK_ERR_TOOBIG;
    return HK_OK;
}

int op_state_from_stored(struct bytes stored, uint8_t key_flags, struct op_state *state)
{
    uint64_t deadline_ms = 0;

    if ((key_flags & KEY_TOMBSTONE) != 0) {
        if (stored.n > 0 || (key_flags & KEY_DEADLINE) != 0)
            return HK_ERR_CORRUPT;
        *state = (struct op_state){.present = false};
        return HK_OK;
    }
    if ((key_flags & KEY_DEADLINE) != 0) {
        if (stored.n < DEADLINE_BYTES)
            return HK_ERR_CORRUPT;
        deadline_ms = get_u64(stored.at);
        /* Zero says "none", and clients are told deadlines as signed numbers. */
        if (deadline_ms == 0 || deadline_ms > INT64_MAX)
            return HK_ERR_CORRUPT;
        stored = bytes_of(stored.at + DEADLINE_BYTES, stored.n - DEADLINE_BYTES);
    }
    *state = (struct op_state){.present = true, .deadline_ms = deadline_ms, .value = stored};
    return HK_OK;
}

uint32_t op_state_stored_bytes(const struct op_state *state)
{
    if (!state->present)
        return 0;
    HK_ASSERT(state->value.n <= UINT32_MAX - DEADLINE_BYTES);
    return state->value.n + (state->deadline_ms != 0 ? DEADLINE_BYTES : 0);
}

uint32_t op_state_store(const struct op_state *state, uint8_t *out, uint8_t *vflags_out)
{
    if (!state->present) {
        *vflags_out = KEY_TOMBSTONE;
        return 0;
    }

    uint32_t before = state->deadline_ms != 0 ? DEADLINE_BYTES : 0;

    /* The value moves first: where they overlap, the deadline would be written over it. */
    if (state->value.n > 0 && state->value.at != out + before)
        memmove(out + before, state->value.at, state->value.n);
    if (before > 0)
        put_u64(out, state->deadline_ms);
    *vflags_out = before > 0 ? KEY_DEADLINE : 0;
    return op_state_stored_bytes(state);
}

bool op_state_expired(const struct op_state *state, uint64_t wall_ms)
{
    return state->present && state->deadline_ms != 0 && state->deadline_ms <= wall_ms;
}

/* One evaluation: what op_evaluate was given, and what comes out. Starts as "no change, nil". */
struct evaluation {
    const struct op *op;
    const struct op_state *old;
    uint64_t wall_ms;
    uint8_t *scratch;
    uint32_t scratch_bytes;
    struct op_state next;
    struct answer answer;
    bool changed;
};

static void answer_number(struct evaluation *e, int64_t number)
{
    e->answer.kind = ANSWER_NUMBER;
    e->answer.number = number;
}

/* The old value, or nil. */
static void answer_old(struct evaluation *e)
{
    if (e->old->present) {
        e->answer.kind = ANSWER_VALUE;
        e->answer.value = e->old->value;
    } else {
        e->answer.kind = ANSWER_NIL;
    }
}

static void change(struct evaluation *e, struct op_state next)
{
    e->next = next;
    e->changed = true;
}

static void change_delete(struct evaluation *e)
{
    change(e, (struct op_state){.present = false});
}

/* A new value under the old deadline. */
static void change_value(struct evaluation *e, struct bytes value)
{
    uint64_t deadline_ms = e->old->present ? e->old->deadline_ms : 0;

    change(e, (struct op_state){.present = true, .deadline_ms = deadline_ms, .value = value});
}

/* The value under a new deadline (0: none). One that has passed deletes the key at once: to store
 * what is gone already would only mean one more update, when somebody meets it. */
static void change_deadline(struct evaluation *e, struct bytes value, int64_t deadline_ms)
{
    struct op_state next = {.present = true, .value = value};

    if (deadline_ms < 0) {
        change_delete(e);
        return;
    }
    next.deadline_ms = (uint64_t)deadline_ms;
    if (op_state_expired(&next, e->wall_ms))
        change_delete(e);
    else
        change(e, next);
}

static bool old_equals(const struct evaluation *e, struct bytes value)
{
    return e->old->present && bytes_equal(e->old->value, value);
}

static void evaluate_set(struct evaluation *e)
{
    const struct op *op = e->op;

    if (has(op, OPF_GET))
        answer_old(e);
    if ((has(op, OPF_NX) && e->old->present) || (has(op, OPF_XX) && !e->old->present) ||
        (has(op, OPF_IFEQ) && !old_equals(e, op->arg)))
        return;
    if (has(op, OPF_KEEPTTL))
        change_value(e, op->value);
    else
        change_deadline(e, op->value, has(op, OPF_DEADLINE) ? op->number : 0);
    if (!has(op, OPF_GET))
        e->answer.kind = ANSWER_OK;
}

static void evaluate_delete(struct evaluation *e)
{
    bool deletes = e->old->present;

    if (has(e->op, OPF_BLIND)) {
        change_delete(e);
        e->answer.kind = ANSWER_OK;
        return;
    }
    if (e->op->kind == OP_DELETE_IF)
        deletes = old_equals(e, e->op->arg);
    if (e->op->kind == OP_EXPIRED)
        deletes =
            op_state_expired(e->old, e->wall_ms) && e->old->deadline_ms == (uint64_t)e->op->number;
    if (deletes)
        change_delete(e);
    answer_number(e, deletes ? 1 : 0);
}

static int evaluate_add(struct evaluation *e)
{
    uint8_t text[OP_INTEGER_TEXT_MAX];
    int64_t sum = 0;

    if (e->old->present && !op_integer_parse(e->old->value, &sum))
        return HK_ERR_TYPE;
    if (__builtin_add_overflow(sum, e->op->number, &sum))
        return HK_ERR_OVERFLOW;

    uint32_t n = op_integer_format(sum, text);

    if (n > e->scratch_bytes)
        return HK_ERR_TOOBIG;
    memcpy(e->scratch, text, n);
    change_value(e, bytes_of(e->scratch, n));
    answer_number(e, sum);
    return HK_OK;
}

static int evaluate_add_float(struct evaluation *e)
{
    static const uint8_t zero[] = {'0'};
    uint8_t text[OP_DECIMAL_SUM_MAX];
    struct bytes old = e->old->present ? e->old->value : bytes_of(zero, sizeof zero);
    uint32_t n = 0;
    int err = op_decimal_add(old, e->op->arg, text, &n);

    if (err != HK_OK)
        return err;
    if (n > e->scratch_bytes)
        return HK_ERR_TOOBIG;
    memcpy(e->scratch, text, n);
    change_value(e, bytes_of(e->scratch, n));
    e->answer.kind = ANSWER_VALUE;
    e->answer.value = e->next.value;
    return HK_OK;
}

/* APPEND writes at the end of what is there, SETRANGE at its offset; a gap becomes zero bytes. */
static int evaluate_write_at(struct evaluation *e)
{
    struct bytes old = e->old->present ? e->old->value : (struct bytes){NULL, 0};
    struct bytes value = e->op->value;
    uint64_t offset = e->op->kind == OP_APPEND ? old.n : (uint64_t)e->op->number;

    if (value.n == 0) {
        /* SETRANGE of nothing is no update and creates no key; APPEND of nothing is and does. */
        if (e->op->kind == OP_APPEND)
            change_value(e, old);
        answer_number(e, old.n);
        return HK_OK;
    }

    uint64_t bytes = op_scratch_bytes(e->op, e->old);

    if (bytes == 0) { /* APPEND to nothing */
        change_value(e, value);
        answer_number(e, value.n);
        return HK_OK;
    }
    if (bytes > e->scratch_bytes)
        return HK_ERR_TOOBIG;
    if (old.n > 0)
        memcpy(e->scratch, old.at, old.n);
    if (offset > old.n)
        memset(e->scratch + old.n, 0, offset - old.n);
    memcpy(e->scratch + offset, value.at, value.n);
    change_value(e, bytes_of(e->scratch, (uint32_t)bytes));
    answer_number(e, (int64_t)bytes);
    return HK_OK;
}

uint64_t op_scratch_bytes(const struct op *op, const struct op_state *old)
{
    uint64_t old_bytes = old->present ? old->value.n : 0;

    if (op->kind == OP_ADD)
        return OP_INTEGER_TEXT_MAX;
    if (op->kind == OP_ADD_FLOAT)
        return OP_DECIMAL_SUM_MAX;
    if (op->value.n == 0)
        return 0;
    if (op->kind == OP_APPEND)
        return old_bytes == 0 ? 0 : old_bytes + op->value.n;
    if (op->kind == OP_SETRANGE) {
        uint64_t end = (uint64_t)op->number + op->value.n;
        return end > old_bytes ? end : old_bytes;
    }
    return 0;
}

/* Redis's conditions: a key without a deadline counts as one that lives for ever, except that NX
 * and XX ask whether there is one. */
static bool expire_holds(const struct op *op, const struct op_state *old)
{
    bool has_deadline = old->deadline_ms != 0;
    int64_t deadline_ms = (int64_t)old->deadline_ms;

    if (!old->present || (has(op, OPF_NX) && has_deadline) || (has(op, OPF_XX) && !has_deadline))
        return false;
    if (has(op, OPF_GT) && (!has_deadline || op->number <= deadline_ms))
        return false;
    return !has(op, OPF_LT) || !has_deadline || op->number < deadline_ms;
}

static void evaluate_expire(struct evaluation *e)
{
    bool holds = expire_holds(e->op, e->old);

    /* Here 0 is a moment that has passed, not "none". */
    if (holds)
        change_deadline(e, e->old->value, e->op->number == 0 ? -1 : e->op->number);
    answer_number(e, holds ? 1 : 0);
}

static void evaluate_persist(struct evaluation *e)
{
    bool holds = e->old->present && e->old->deadline_ms != 0;

    if (holds)
        change_deadline(e, e->old->value, 0);
    answer_number(e, holds ? 1 : 0);
}

static void evaluate_getex(struct evaluation *e)
{
    answer_old(e);
    if (!e->old->present || has(e->op, OPF_KEEPTTL))
        return;
    if (e->op->number == 0 && e->old->deadline_ms == 0)
        return; /* nothing to persist */
    change_deadline(e, e->old->value, e->op->number);
}

static void evaluate_deadline(struct evaluation *e)
{
    if (!e->old->present)
        answer_number(e, -2);
    else if (e->old->deadline_ms == 0)
        answer_number(e, -1);
    else
        answer_number(e, (int64_t)e->old->deadline_ms);
}

/* The only dispatcher. */
static int evaluate(struct evaluation *e)
{
    switch ((enum op_kind)e->op->kind) {
    case OP_GET:
        answer_old(e);
        return HK_OK;
    case OP_EXISTS:
        answer_number(e, e->old->present ? 1 : 0);
        return HK_OK;
    case OP_SET:
        evaluate_set(e);
        return HK_OK;
    case OP_DELETE:
    case OP_DELETE_IF:
    case OP_EXPIRED:
        evaluate_delete(e);
        return HK_OK;
    case OP_ADD:
        return evaluate_add(e);
    case OP_ADD_FLOAT:
        return evaluate_add_float(e);
    case OP_APPEND:
    case OP_SETRANGE:
        return evaluate_write_at(e);
    case OP_EXPIRE:
        evaluate_expire(e);
        return HK_OK;
    case OP_PERSIST:
        evaluate_persist(e);
        return HK_OK;
    case OP_GETSET:
        answer_old(e);
        change_deadline(e, e->op->value, 0);
        return HK_OK;
    case OP_GETDEL:
        answer_old(e);
        if (e->old->present)
            change_delete(e);
        return HK_OK;
    case OP_GETEX:
        evaluate_getex(e);
        return HK_OK;
    case OP_STRLEN:
        answer_number(e, e->old->present ? e->old->value.n : 0);
        return HK_OK;
    case OP_DEADLINE:
        evaluate_deadline(e);
        return HK_OK;
    case OP_KINDS:
        break;
    }
    return HK_ERR_INVALID;
}

int op_evaluate(const struct op *op, const struct op_state *old, uint64_t wall_ms, uint8_t *scratch,
                uint32_t scratch_bytes, struct op_state *next, struct answer *answer,
                bool *changed_out)
{
    struct evaluation e = {
        .op = op,
        .old = old,
        .wall_ms = wall_ms,
        .scratch = scratch,
        .scratch_bytes = scratch_bytes,
        .answer = {.kind = ANSWER_NIL},
    };

    HK_ASSERT(op->kind < OP_KINDS && flags_fit(op) && number_fits(op));

    int err = evaluate(&e);

    if (err != HK_OK) {
        *answer = (struct answer){.kind = ANSWER_ERROR, .number = err};
        *changed_out = false;
        return err;
    }
    if (e.changed)
        *next = e.next;
    e.answer.applied = e.changed;
    *answer = e.answer;
    *changed_out = e.changed;
    return HK_OK;
}
