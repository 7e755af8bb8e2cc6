/* An operation that goes to a worker: its slot, its bytes, its result. */
#include "embed/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/hash.h"

#define WAIT_US 1000000u
#define MEMORY_MIN 256u
#define MEMORY_KEPT (64u * 1024u) /* more than that is given back when the operation is over */

int operation_bytes(struct hk_bytes bytes, size_t most)
{
    if (bytes.at == NULL && bytes.n > 0) {
        return HK_ERR_INVALID;
    }
    return bytes.n > most ? HK_ERR_TOOBIG : HK_OK;
}

/* ---- Keys with own updates in flight ---- */

static uint8_t own_list(uint32_t space, struct bytes key)
{
    return (uint8_t)(XXH3_64bits(key.at, key.n) + space);
}

bool operation_own(const struct hk_session *s, uint32_t space, struct bytes key)
{
    return s->updates_n > 0 && s->own[own_list(space, key)] > 0;
}

/* ---- Slots ---- */

uint32_t operation_slot(struct hk_session *s)
{
    while (s->spare_n == 0) {
        HK_ASSERT(s->dropped_n > 0);
        (void)local_wait(s->local, WAIT_US);
        operation_take(s);
    }
    uint32_t slot = s->spare[--s->spare_n];
    s->slots[slot].done = NULL;
    s->slots[slot].into = NULL;
    s->slots[slot].read = NULL;
    s->slots[slot].txn = NULL;
    s->slots[slot].ahead = false;
    s->slots[slot].keeps = false;
    s->slots[slot].dropped = false;
    return slot;
}

void operation_free(struct hk_session *s, uint32_t slot)
{
    struct hk_slot *mine = &s->slots[slot];
    if (mine->memory_bytes > MEMORY_KEPT) {
        free(mine->memory);
        mine->memory = NULL;
        mine->memory_bytes = 0;
    }
    s->spare[s->spare_n++] = (uint8_t)slot;
}

void operation_ready(struct hk_session *s, uint32_t slot)
{
    s->ready[(s->ready_first + s->ready_n++) % LOCAL_SLOTS_MAX] = (uint8_t)slot;
}

/* What is written from here on until it is answered, or was. */
static void note_update(struct hk_session *s, uint8_t list, bool begins)
{
    s->own[list] = (uint16_t)(s->own[list] + (begins ? 1 : -1));
    s->updates_n += begins ? 1u : -1u;
}

static void note_updates(struct hk_session *s, uint32_t slot, bool begins)
{
    const struct local_slot *local = local_slot(s->local, slot);
    const struct hk_txn *t = s->slots[slot].txn;
    if (local->txn == NULL && local->committed.nonce == 0 && op_updates(&local->op)) {
        note_update(s, own_list(local->op.space, local->op.key), begins);
    }
    for (uint32_t i = 0; t != NULL && i < t->request.ops_n; i++) {
        note_update(s, own_list(t->space, t->request.ops[i].key), begins);
    }
    s->txns_n += t == NULL ? 0 : begins ? 1u : -1u;
}

int operation_submit(struct hk_session *s, uint32_t slot)
{
    int err = local_submit(s->local, slot);
    if (err != HK_OK) {
        operation_free(s, slot);
    } else {
        note_updates(s, slot, true);
        s->flying_n++;
    }
    return err;
}

void operation_ahead(struct hk_session *s, uint32_t slot)
{
    note_updates(s, slot, true);
    s->slots[slot].ahead = true;
    s->flying_n++;
    s->ahead_n++;
}

int operation_begin(struct hk_session *s, uint32_t slot, const struct op *op, void *buffer,
                    size_t capacity)
{
    struct local_slot *local = local_slot(s->local, slot);
    *local = (struct local_slot){.op = *op, .buffer = buffer, .capacity = capacity};
    return operation_submit(s, slot);
}

/* ---- Results ---- */

static int condition_error(const struct op *op)
{
    switch (op->kind) {
    case OP_SET:
    case OP_DELETE_IF:
        return HK_ERR_CONDITION;
    default:
        return HK_ERR_NOTFOUND;
    }
}

/* NIL: a watch did not hold. The node has tried long enough when it says BUSY. */
static int txn_error(const struct answer *a)
{
    if (a->kind == ANSWER_ERROR) {
        return a->number == HK_ERR_BUSY ? HK_ERR_ABORTED : (int)a->number;
    }
    return a->kind == ANSWER_OK ? HK_OK : HK_ERR_ABORTED;
}

static struct hk_result result_of(const struct local_slot *local)
{
    const struct answer *a = &local->answer;
    struct hk_result r = {.err = HK_OK, .version = local->version};
    if (local->txn != NULL && local->single) {
        r.err = a->kind == ANSWER_ERROR ? txn_error(a) : HK_OK;
        r.number = a->number;
        r.n = a->value.n;
        r.err = r.err == HK_OK && r.n > local->capacity ? HK_ERR_TOOBIG : r.err;
        return r;
    }
    if (local->txn != NULL || local->committed.nonce != 0) {
        r.err = txn_error(a);
        return r;
    }
    switch ((enum answer_kind)a->kind) {
    case ANSWER_OK:
        break;
    case ANSWER_NIL:
        r.err = condition_error(&local->op);
        break;
    case ANSWER_VALUE:
        r.n = a->value.n;
        r.err = r.n > local->capacity ? HK_ERR_TOOBIG : HK_OK;
        break;
    case ANSWER_NUMBER:
        r.number = a->number;
        if (a->number == 0 && (local->op.kind == OP_DELETE || local->op.kind == OP_DELETE_IF)) {
            r.err = condition_error(&local->op);
        }
        break;
    case ANSWER_ERROR:
        r.err = (int)a->number;
        break;
    case ANSWER_PAIRS:
        r.err = HK_ERR_INVALID; /* ranges are asked for in transactions */
        break;
    }
    return r;
}

void operation_take(struct hk_session *s)
{
    uint32_t slot;
    while (local_take(s->local, &slot)) {
        struct local_slot *local = local_slot(s->local, slot);
        struct hk_slot *mine = &s->slots[slot];
        struct hk_result result = result_of(local);
        note_updates(s, slot, false);
        s->flying_n--;
        s->ahead_n -= mine->ahead;
        transaction_end(mine->txn);
        if (mine->dropped) {
            s->dropped_n--;
            operation_free(s, slot);
            continue;
        }
        if (mine->into == NULL && mine->read == NULL) {
            mine->result = result;
            operation_ready(s, slot);
            continue;
        }
        if (mine->into != NULL) {
            *mine->into = result;
        } else {
            mine->read->err = result.err;
            mine->read->n = result.n;
            mine->read->version = result.version;
        }
        s->waited_n--;
        if (!mine->keeps) {
            operation_free(s, slot);
        }
    }
}

void operation_wait(struct hk_session *s, uint32_t waited_n)
{
    while (s->waited_n > waited_n) {
        (void)local_wait(s->local, WAIT_US);
        operation_take(s);
    }
}

bool operation_wait_until(struct hk_session *s, uint32_t slot, uint64_t until_us)
{
    uint32_t waited_n = s->waited_n++;
    while (s->waited_n > waited_n) {
        uint64_t now_us = clock_boot_us();
        if (now_us >= until_us) {
            s->slots[slot].into = NULL;
            s->slots[slot].dropped = true;
            s->dropped_n++;
            s->waited_n--;
            return false;
        }
        uint64_t left_us = until_us - now_us;
        (void)local_wait(s->local, left_us < WAIT_US ? left_us : WAIT_US);
        operation_take(s);
    }
    return true;
}

int operation_run(struct hk_session *s, const struct op *op, void *buffer, size_t capacity,
                  struct hk_result *result_out)
{
    uint32_t slot = operation_slot(s);
    uint32_t waited_n = s->waited_n;
    s->slots[slot].into = result_out;
    int err = operation_begin(s, slot, op, buffer, capacity);
    if (err != HK_OK) {
        *result_out = (struct hk_result){.err = err};
        return err;
    }
    s->waited_n++;
    operation_wait(s, waited_n);
    return result_out->err;
}

/* ---- Operations that do not wait ---- */

bool operation_memory(struct hk_session *s, uint32_t slot, size_t bytes)
{
    struct hk_slot *mine = &s->slots[slot];
    if (bytes <= mine->memory_bytes) {
        return true;
    }
    size_t n = bytes < MEMORY_MIN ? MEMORY_MIN : bytes;
    free(mine->memory);
    mine->memory = malloc(n);
    mine->memory_bytes = mine->memory != NULL ? n : 0;
    return mine->memory != NULL;
}

static struct bytes copied(uint8_t **at, struct bytes from)
{
    struct bytes to = bytes_of(*at, from.n);
    if (from.n > 0) {
        memcpy(*at, from.at, from.n);
    }
    *at += from.n;
    return to;
}

int operation_start(struct hk_session *s, const struct op *op, void *buffer, size_t capacity,
                    hk_done *done, void *context)
{
    if (s->async_n == s->async_max) {
        return HK_ERR_FULL;
    }
    uint32_t slot = operation_slot(s);
    struct hk_slot *mine = &s->slots[slot];
    struct op own = *op;
    if (!operation_memory(s, slot, (size_t)op->key.n + op->value.n + op->arg.n)) {
        operation_free(s, slot);
        return HK_ERR_NOMEM;
    }
    uint8_t *at = mine->memory;
    own.key = copied(&at, op->key);
    own.value = copied(&at, op->value);
    own.arg = copied(&at, op->arg);
    mine->done = done;
    mine->context = context;
    int err = operation_begin(s, slot, &own, buffer, capacity);
    s->async_n += err == HK_OK;
    return err;
}
