#include "node/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* ---- Buffers ---- */

uint8_t *buffer_add(struct buffer *b, uint32_t bytes)
{
    if (bytes > b->capacity - b->n) {
        uint64_t capacity = b->capacity < 256 ? 256 : b->capacity;
        while (capacity < (uint64_t)b->n + bytes) {
            capacity *= 2;
        }
        capacity = capacity < UINT32_MAX ? capacity : UINT32_MAX;
        HK_ASSERT(capacity >= (uint64_t)b->n + bytes);
        uint8_t *at = realloc(b->at, capacity);
        HK_ASSERT(at != NULL); /* as of outboxes: bounded, and nothing goes on without it */
        b->at = at;
        b->capacity = (uint32_t)capacity;
    }
    if (bytes == 0) {
        return b->at; /* NULL, perhaps, which must not be moved */
    }
    b->n += bytes;
    return b->at + b->n - bytes;
}

void buffer_trim(struct buffer *b, uint32_t capacity_max)
{
    if (b->capacity > capacity_max) {
        buffer_free(b);
    }
}

void buffer_free(struct buffer *b)
{
    free(b->at);
    *b = (struct buffer){.at = NULL};
}

/* ---- Beginning ---- */

static uint64_t hash_of(const void *context, struct bytes key)
{
    return store_hash(context, key);
}

static void *part(struct buffer *b, size_t bytes)
{
    return buffer_add(b, (uint32_t)((bytes + 7u) & ~(size_t)7u));
}

/* In one piece, whose size is known before; and the objects in another, which ranges make grow. */
static void make_arrays(struct evaluation *e, uint32_t most)
{
    const struct txn_request *q = &e->request;
    uint32_t index_n = 2 * q->ops_n + q->watches_n;
    size_t bytes =
        q->ops_n * (sizeof *e->answers + sizeof *e->versions) + index_n * sizeof *e->index + 8u * 3;
    e->arrays.n = 0;
    memset(buffer_add(&e->arrays, (uint32_t)bytes), 0, bytes);
    e->arrays.n = 0;
    e->answers = part(&e->arrays, q->ops_n * sizeof *e->answers);
    e->versions = part(&e->arrays, q->ops_n * sizeof *e->versions);
    e->index = part(&e->arrays, index_n * sizeof *e->index);
    e->met.n = 0;
    e->objects = (void *)buffer_add(&e->met, most * (uint32_t)sizeof *e->objects);
}

int evaluation_begin(struct evaluation *e, const struct txn_request *request, const struct op *op,
                     const struct store *store)
{
    e->several = request != NULL;
    if (e->several) {
        e->request = *request;
    } else {
        e->one = *op;
        e->request = (struct txn_request){.ops = &e->one, .ops_n = 1};
    }
    const struct txn_request *q = &e->request;
    uint32_t most = 2 * q->ops_n + q->watches_n;
    most = most < TXN_OBJECTS_MAX ? most : TXN_OBJECTS_MAX;
    make_arrays(e, most);
    e->scanned_n = 0;
    e->verdict = TXN_DONE;
    e->objects_n = txn_objects(q, hash_of, store, e->objects, most, e->index);
    if (e->objects_n == UINT32_MAX) {
        e->objects_n = 0;
        return HK_ERR_TOOBIG;
    }
    e->met.n = e->objects_n * (uint32_t)sizeof *e->objects;
    return HK_OK;
}

void evaluation_free(struct evaluation *e)
{
    buffer_free(&e->arrays);
    buffer_free(&e->met);
    buffer_free(&e->memory);
}

/* ---- The request's bytes become the transaction's own ---- */

static void move_bytes(struct bytes *b, uint8_t **rest)
{
    if (b->n > 0) {
        memcpy(*rest, b->at, b->n);
        b->at = *rest;
        *rest += b->n;
    }
}

static uint64_t request_bytes(const struct txn_request *q)
{
    uint64_t n = q->ops_n * sizeof *q->ops + q->watches_n * sizeof *q->watches;
    for (uint32_t i = 0; i < q->ops_n; i++) {
        n += (uint64_t)q->ops[i].key.n + q->ops[i].value.n + q->ops[i].arg.n;
    }
    for (uint32_t i = 0; i < q->watches_n; i++) {
        n += (uint64_t)q->watches[i].key.n + q->watches[i].end.n;
    }
    return n;
}

static void point_to(struct evaluation *e, uint32_t at, struct bytes key)
{
    if (e->index[at] != UINT16_MAX) {
        e->objects[e->index[at]].key = key;
    }
}

void evaluation_own(struct evaluation *e, struct buffer *copy)
{
    struct txn_request *q = &e->request;
    uint64_t n = request_bytes(q);
    HK_ASSERT(n <= UINT32_MAX);
    copy->n = 0;
    struct op *ops = (struct op *)(void *)buffer_add(copy, (uint32_t)n);
    struct txn_watch *watches = (struct txn_watch *)(void *)(ops + q->ops_n);
    uint8_t *rest = (uint8_t *)(watches + q->watches_n);
    for (uint32_t i = 0; i < q->ops_n; i++) {
        ops[i] = q->ops[i];
        move_bytes(&ops[i].key, &rest);
        move_bytes(&ops[i].value, &rest);
        move_bytes(&ops[i].arg, &rest);
        point_to(e, 2 * i, ops[i].key);
        point_to(e, 2 * i + 1, ops[i].arg);
    }
    for (uint32_t i = 0; i < q->watches_n; i++) {
        watches[i] = q->watches[i];
        move_bytes(&watches[i].key, &rest);
        move_bytes(&watches[i].end, &rest);
        point_to(e, 2 * q->ops_n + i, watches[i].key);
    }
    q->ops = ops;
    q->watches = watches;
}

bool evaluation_writes_key(const struct op *op)
{
    /* Of a pair the source is written only if it goes away. */
    return op->kind >= OP_KINDS ? op->kind == TXN_OP_RENAME : op_updates(op);
}

/* ---- Objects ---- */

struct txn_object *evaluation_scanned(struct evaluation *e, struct bytes key)
{
    if (e->scanned_n == TXN_SCANNED_MAX) {
        return NULL;
    }
    uint8_t *at = buffer_add(&e->met, (uint32_t)sizeof *e->objects);
    e->objects = (struct txn_object *)(void *)e->met.at;
    struct txn_object *object = (struct txn_object *)(void *)at;
    *object = (struct txn_object){.key = key};
    e->scanned_n++;
    return object;
}

void evaluation_rescan(struct evaluation *e)
{
    e->met.n -= e->scanned_n * (uint32_t)sizeof *e->objects;
    e->scanned_n = 0;
}

int evaluation_fill(struct txn_object *o, bool absent, uint64_t version, uint8_t vflags,
                    struct bytes value, uint64_t wall_ms)
{
    o->version = absent ? 0 : version;
    o->absence = absent ? version : 0;
    o->changed = false;
    o->expired = false;
    o->state = (struct op_state){.present = false};
    if (absent) {
        return HK_OK;
    }
    int err = op_state_from_stored(value, vflags & KEY_VALUE_FLAGS, &o->state);
    o->expired = err == HK_OK && op_state_expired(&o->state, wall_ms);
    return err;
}

/* ---- Evaluating ---- */

/* Versions of ranges are made of those that their rows had, and what is written has others. */
static void note_ranges(struct evaluation *e)
{
    for (uint32_t i = 0; i < e->request.ops_n; i++) {
        if (e->request.ops[i].kind >= TXN_OP_RANGE) {
            e->versions[i] = txn_range_version(&e->request.ops[i], e->objects,
                                               e->objects_n + e->scanned_n, e->memory.at);
        }
    }
}

int evaluation_run(struct evaluation *e, uint32_t value_bytes_max, uint64_t wall_ms,
                   evaluation_fill_fn *fill, void *context)
{
    if ((e->request.flags & TXN_ACQUIRE) != 0) {
        e->verdict = TXN_DONE;
        memset(e->answers, 0, e->request.ops_n * sizeof *e->answers);
        return HK_OK;
    }
    for (;;) {
        int err = fill(context);
        if (err != HK_OK) {
            return err;
        }
        struct txn_memory memory = {
            .at = e->memory.at, .n = e->memory.capacity, .value_bytes_max = value_bytes_max};
        e->verdict = (uint8_t)txn_evaluate(&e->request, e->objects, e->objects_n + e->scanned_n,
                                           e->index, wall_ms, &memory, e->answers);
        if (e->verdict != TXN_NO_MEMORY) {
            note_ranges(e);
            return HK_OK;
        }
        if (memory.used > UINT32_MAX / 4) {
            return HK_ERR_TOOBIG;
        }
        e->memory.n = 0;
        (void)buffer_add(&e->memory, (uint32_t)memory.used + e->memory.capacity + 64);
    }
}

/* ---- Ends ---- */

static uint64_t version_of(const struct evaluation *e, const struct txn_object *o)
{
    bool absent = o->version == 0 && (e->request.flags & TXN_ABSENCE) != 0;
    return absent ? TXN_ABSENT | o->absence : o->version;
}

/* Of a range: for a watch. */
static uint64_t range_version(const struct evaluation *e, uint32_t i)
{
    bool answered = e->answers[i].kind == ANSWER_PAIRS || e->answers[i].kind == ANSWER_NUMBER;
    return answered ? txn_range_version(&e->request.ops[i], e->objects, e->objects_n + e->scanned_n,
                                        e->memory.at)
                    : 0;
}

void evaluation_versions(struct evaluation *e)
{
    for (uint32_t i = 0; i < e->request.ops_n; i++) {
        if (e->request.ops[i].kind >= TXN_OP_RANGE) {
            e->versions[i] = range_version(e, i);
            continue;
        }
        uint16_t target = e->index[2 * i + 1];
        uint16_t object = target != UINT16_MAX ? target : e->index[2 * i];
        if (object != UINT16_MAX) {
            e->versions[i] = version_of(e, &e->objects[object]);
        }
    }
}

void evaluation_answer(const struct evaluation *e, struct answer *answer_out, uint64_t *version_out)
{
    *version_out = 0;
    *answer_out = (struct answer){.kind = ANSWER_OK};
    if (e->verdict == TXN_CONFLICT) {
        answer_out->kind = ANSWER_NIL;
    } else if (e->verdict == TXN_UNAPPLIED) {
        answer_out->kind = ANSWER_NUMBER;
    } else if (!e->several) {
        *answer_out = e->answers[0];
        *version_out = answer_out->kind == ANSWER_ERROR ? 0 : e->versions[0];
    }
}

void evaluation_reply(const struct evaluation *e, struct reply *reply)
{
    uint8_t kind = reply->answer.kind;
    if (e->several && (kind == ANSWER_OK || kind == ANSWER_NUMBER)) {
        reply->answers = e->answers;
        reply->versions = e->versions;
        reply->answers_n = e->request.ops_n;
    }
}
