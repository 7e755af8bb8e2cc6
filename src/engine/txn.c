#include "engine/txn.h"

#include <stddef.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/meta.h"
#include "engine/txn_range.h"
#include "wire/msg.h"

#define TABLE_SLOTS 2048u /* of the table that finds equal keys; a power of 2 above the objects */
#define SCANNED_MAX 8u    /* so few objects are compared one by one */
#define NONE UINT16_MAX

_Static_assert(TABLE_SLOTS > TXN_OBJECTS_MAX, "there is a free slot");

static bool is_pair(const struct op *op)
{
    return op->kind == TXN_OP_RENAME || op->kind == TXN_OP_COPY;
}

/* Whether it may change an object. */
static bool updates(const struct op *op)
{
    return range_is(op) ? op->kind == TXN_OP_RANGE_DELETE : is_pair(op) || op_updates(op);
}

/* ---- Checking ---- */

static int check_pair(const struct op *op)
{
    uint16_t allowed = op->kind == TXN_OP_RENAME ? OPF_NX : OPF_XX;
    if ((op->flags & ~allowed) != 0 || op->number != 0 || op->value.n != 0) {
        return HK_ERR_INVALID;
    }
    return op->key.n > MSG_KEY_MAX || op->arg.n > MSG_KEY_MAX ? HK_ERR_TOOBIG : HK_OK;
}

static bool is_row(const struct op *op)
{
    return op->kind == OP_SET && (op->flags & TXN_OPF_ROW) != 0;
}

/* Of a row, and whatever may stand in one. */
static bool may_be_in_row(const struct op *op)
{
    return op->kind == OP_SET && (op->flags & ~TXN_OPF_ROW) == OPF_NX;
}

static int check_op(const struct op *op, uint32_t value_bytes_max)
{
    if (is_pair(op)) {
        return check_pair(op);
    }
    if (range_is(op)) {
        return range_check(op);
    }
    if (is_row(op)) {
        struct op alone = *op;
        alone.flags &= (uint16_t)~TXN_OPF_ROW;
        return may_be_in_row(op) ? check_op(&alone, value_bytes_max) : HK_ERR_INVALID;
    }
    if (op->value.n > value_bytes_max || op->arg.n > value_bytes_max) {
        return HK_ERR_TOOBIG;
    }
    return op_check(op, value_bytes_max);
}

int txn_check(const struct txn_request *txn, uint32_t value_bytes_max)
{
    const uint32_t flags = TXN_ALL | TXN_STOP | TXN_ACQUIRE | TXN_ABSENCE;
    uint64_t bytes = 0;
    if ((txn->flags & ~flags) != 0 || txn->ops_n + (uint64_t)txn->watches_n == 0) {
        return HK_ERR_INVALID;
    }
    if (txn->ops_n > TXN_OPS_MAX || txn->watches_n > TXN_OBJECTS_MAX) {
        return HK_ERR_TOOBIG;
    }
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        const struct op *op = &txn->ops[i];
        bool follows = !is_row(op) || (i + 1 < txn->ops_n && may_be_in_row(op + 1));
        int err = op->space != txn->ops[0].space || !follows ? HK_ERR_INVALID
                                                             : check_op(op, value_bytes_max);
        if (err != HK_OK) {
            return err;
        }
        bytes += (uint64_t)op->key.n + op->value.n + op->arg.n;
    }
    for (uint32_t i = 0; i < txn->watches_n; i++) {
        int err = range_check_watch(&txn->watches[i]);
        if (err != HK_OK) {
            return err;
        }
        bytes += (uint64_t)txn->watches[i].key.n + txn->watches[i].end.n;
    }
    /* What it writes has to fit one message. */
    return bytes > MSG_VALUE_MAX ? HK_ERR_TOOBIG : HK_OK;
}

bool txn_updates(const struct txn_request *txn)
{
    if ((txn->flags & TXN_ACQUIRE) != 0) {
        return true;
    }
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        if (updates(&txn->ops[i])) {
            return true;
        }
    }
    return false;
}

/* ---- Which objects ---- */

/* The objects that were found so far; above SCANNED_MAX of them also by their hashes. */
struct finder {
    struct txn_object *objects;
    uint32_t n;
    uint32_t most;
    bool hashed;
    uint16_t table[TABLE_SLOTS]; /* number of an object + 1; 0: free */
};

static uint16_t *slot_of(struct finder *f, struct bytes key, uint64_t hash)
{
    for (uint64_t at = hash;; at++) {
        uint16_t *slot = &f->table[at % TABLE_SLOTS];
        if (*slot == 0 ||
            (f->objects[*slot - 1u].hash == hash && bytes_equal(f->objects[*slot - 1u].key, key))) {
            return slot;
        }
    }
}

static void begin_table(struct finder *f)
{
    memset(f->table, 0, sizeof f->table);
    f->hashed = true;
    for (uint32_t i = 0; i < f->n; i++) {
        *slot_of(f, f->objects[i].key, f->objects[i].hash) = (uint16_t)(i + 1);
    }
}

static uint32_t scan(const struct finder *f, struct bytes key, uint64_t hash)
{
    uint32_t i = 0;
    while (i < f->n && !(f->objects[i].hash == hash && bytes_equal(f->objects[i].key, key))) {
        i++;
    }
    return i;
}

/* The object of a key, made if it is new; NONE: there is no room. */
static uint16_t find(struct finder *f, struct bytes key, uint64_t hash)
{
    uint16_t *slot = NULL;
    if (!f->hashed && f->n > SCANNED_MAX) {
        begin_table(f);
    }
    if (f->hashed) {
        slot = slot_of(f, key, hash);
        if (*slot != 0) {
            return *slot - 1;
        }
    } else {
        uint32_t i = scan(f, key, hash);
        if (i < f->n) {
            return (uint16_t)i;
        }
    }
    if (f->n == f->most) {
        return NONE;
    }
    f->objects[f->n] = (struct txn_object){.key = key, .hash = hash};
    f->n++;
    if (slot != NULL) {
        *slot = (uint16_t)f->n;
    }
    return (uint16_t)(f->n - 1);
}

/* False: there is no room. */
static bool mention(struct finder *f, struct bytes key, bool is_one, txn_hash_fn *hash,
                    const void *context, uint16_t *index_out)
{
    *index_out = is_one ? find(f, key, hash(context, key)) : NONE;
    return !is_one || *index_out != NONE;
}

uint32_t txn_objects(const struct txn_request *txn, txn_hash_fn *hash, const void *context,
                     struct txn_object *objects_out, uint32_t most, uint16_t *index_out)
{
    struct finder f;
    HK_ASSERT(most <= TXN_OBJECTS_MAX);
    f.objects = objects_out;
    f.n = 0;
    f.most = most;
    f.hashed = false;
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        const struct op *op = &txn->ops[i];
        if (!mention(&f, op->key, !range_is(op), hash, context, &index_out[2 * i]) ||
            !mention(&f, op->arg, is_pair(op), hash, context, &index_out[2 * i + 1])) {
            return UINT32_MAX;
        }
    }
    for (uint32_t i = 0; i < txn->watches_n; i++) {
        const struct txn_watch *watch = &txn->watches[i];
        uint16_t *index = &index_out[2 * txn->ops_n + i];
        if (!mention(&f, watch->key, !watch->range, hash, context, index)) {
            return UINT32_MAX;
        }
    }
    return f.n;
}

/* ---- Evaluating ---- */

static void answer_error(struct answer *answer, int err)
{
    *answer = (struct answer){.kind = ANSWER_ERROR, .number = err};
}

static void change(struct txn_object *object, const struct op_state *next)
{
    object->state = *next;
    object->changed = true;
}

static void rename_object(const struct op *op, struct txn_object *source, struct txn_object *target,
                          struct answer *answer)
{
    bool unless = (op->flags & OPF_NX) != 0;
    if (!source->state.present) {
        answer_error(answer, HK_ERR_NOTFOUND);
        return;
    }
    *answer = (struct answer){.kind = unless ? ANSWER_NUMBER : ANSWER_OK};
    if (unless && target->state.present) {
        return;
    }
    answer->applied = true;
    answer->number = unless ? 1 : 0;
    if (source != target) {
        struct op_state absent = {.present = false};
        change(target, &source->state);
        change(source, &absent);
    }
}

static void copy_object(const struct op *op, const struct txn_object *source,
                        struct txn_object *target, struct answer *answer)
{
    if (source == target) {
        answer_error(answer, HK_ERR_INVALID);
        return;
    }
    *answer = (struct answer){.kind = ANSWER_NUMBER};
    if (!source->state.present || (target->state.present && (op->flags & OPF_XX) == 0)) {
        return;
    }
    answer->applied = true;
    answer->number = 1;
    change(target, &source->state);
}

/* False: the memory does not suffice; `used` counts what it would have taken. */
static bool evaluate_single(const struct op *op, struct txn_object *object, uint64_t wall_ms,
                            struct txn_memory *memory, struct answer *answer)
{
    struct op_state next;
    bool changed = false;
    uint64_t bytes = op_scratch_bytes(op, &object->state);
    bool grows = op->kind == OP_APPEND || op->kind == OP_SETRANGE;
    if (grows && bytes > memory->value_bytes_max) {
        answer_error(answer, HK_ERR_TOOBIG);
        return true;
    }
    uint64_t at = memory->used;
    memory->used += bytes;
    if (memory->used > memory->n) {
        return false;
    }
    int err = op_evaluate(op, &object->state, wall_ms, bytes > 0 ? memory->at + at : NULL,
                          (uint32_t)bytes, &next, answer, &changed);
    if (err == HK_OK && changed) {
        change(object, &next);
    }
    return true;
}

static bool watch_holds(const struct txn_watch *watch, const struct txn_object *object)
{
    uint64_t seen = watch->version & ~TXN_ABSENT;
    if (object->version != 0 && !object->expired) {
        return watch->version == object->version;
    }
    if ((watch->version & TXN_ABSENT) == 0) {
        return watch->version == 0;
    }
    bool untouched = seen == 0 && stamp_cid(object->absence) == 0;
    return object->absence == seen || untouched;
}

static bool watches_hold(const struct txn_request *txn, const struct txn_object *objects,
                         const uint16_t *index, const struct txn_ranges *ranges)
{
    bool hold = true;
    for (uint32_t i = 0; i < txn->watches_n && hold; i++) {
        const struct txn_watch *watch = &txn->watches[i];
        hold = watch->range ? range_watch_holds(ranges, watch)
                            : watch_holds(watch, &objects[index[2 * txn->ops_n + i]]);
    }
    return hold;
}

/* Whether an operation's answer ends it all. */
static bool stops(const struct txn_request *txn, const struct op *op, const struct answer *answer)
{
    bool error = answer->kind == ANSWER_ERROR;
    return ((txn->flags & TXN_STOP) != 0 && error) ||
           ((txn->flags & TXN_ALL) != 0 && (error || (updates(op) && !answer->applied)));
}

static void forget_changes(struct txn_object *objects, uint32_t objects_n)
{
    for (uint32_t i = 0; i < objects_n; i++) {
        objects[i].changed = false;
    }
}

/* The operations from `first` on that are one row, and whether all their objects are absent. */
static uint32_t row_of(const struct txn_request *txn, uint32_t first,
                       const struct txn_object *objects, const uint16_t *index, bool *absent_out)
{
    uint32_t n = 0;
    *absent_out = true;
    do {
        *absent_out &= !objects[index[2 * (first + n)]].state.present;
        n++;
    } while (is_row(&txn->ops[first + n - 1]));
    return n;
}

/* All of a row, or none. An object that two of them set has the value of the last. */
static void evaluate_row(const struct op *ops, uint32_t n, struct txn_object *objects,
                         const uint16_t *index, bool absent, struct answer *answers)
{
    for (uint32_t i = 0; i < n && absent; i++) {
        const struct op_state next = {.present = true, .value = ops[i].value};
        change(&objects[index[2 * i]], &next);
        answers[i] = (struct answer){.kind = ANSWER_OK, .applied = true};
    }
}

/* One operation that is no row; false: the memory does not suffice. */
static bool evaluate_op(const struct op *op, struct txn_object *objects, const uint16_t *index,
                        struct txn_ranges *ranges, uint64_t wall_ms, struct txn_memory *memory,
                        struct answer *answer)
{
    if (range_is(op)) {
        return range_evaluate(ranges, op, memory, answer);
    }
    struct txn_object *object = &objects[index[0]];
    if (op->kind == TXN_OP_RENAME) {
        rename_object(op, object, &objects[index[1]], answer);
    } else if (op->kind == TXN_OP_COPY) {
        copy_object(op, object, &objects[index[1]], answer);
    } else {
        return evaluate_single(op, object, wall_ms, memory, answer);
    }
    return true;
}

static enum txn_verdict evaluate_ops(const struct txn_request *txn, struct txn_object *objects,
                                     const uint16_t *index, struct txn_ranges *ranges,
                                     uint64_t wall_ms, struct txn_memory *memory,
                                     struct answer *answers)
{
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        answers[i] = (struct answer){.kind = ANSWER_NIL};
    }
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        const struct op *op = &txn->ops[i];
        const uint16_t *mine = index + 2 * (size_t)i;
        if (is_row(op)) {
            bool absent;
            uint32_t n = row_of(txn, i, objects, index, &absent);
            evaluate_row(op, n, objects, mine, absent, &answers[i]);
            i += n - 1;
        } else if (!evaluate_op(op, objects, mine, ranges, wall_ms, memory, &answers[i])) {
            return TXN_NO_MEMORY;
        }
        if (stops(txn, op, &answers[i])) {
            return TXN_UNAPPLIED;
        }
    }
    return TXN_DONE;
}

enum txn_verdict txn_evaluate(const struct txn_request *txn, struct txn_object *objects,
                              uint32_t objects_n, const uint16_t *index, uint64_t wall_ms,
                              struct txn_memory *memory, struct answer *answers_out)
{
    struct txn_ranges ranges = {.n = 0};
    HK_ASSERT((txn->flags & TXN_ACQUIRE) == 0);
    memory->used = 0;
    forget_changes(objects, objects_n);
    if (range_any(txn) && !range_begin(&ranges, objects, objects_n, memory)) {
        return TXN_NO_MEMORY;
    }
    if (!watches_hold(txn, objects, index, &ranges)) {
        return TXN_CONFLICT;
    }
    for (uint32_t i = 0; i < objects_n; i++) {
        if (objects[i].expired) {
            objects[i].state = (struct op_state){.present = false};
        }
    }
    enum txn_verdict verdict =
        evaluate_ops(txn, objects, index, &ranges, wall_ms, memory, answers_out);
    if (verdict != TXN_DONE) {
        forget_changes(objects, objects_n);
    }
    /* The answers say that they are absent: nobody may find them afterwards, whose calendar is
     * behind. */
    for (uint32_t i = 0; i < objects_n; i++) {
        if (objects[i].expired && !objects[i].changed) {
            objects[i].state = (struct op_state){.present = false};
            objects[i].changed = true;
        }
    }
    return verdict;
}
