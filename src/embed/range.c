/* Ranges of ordered spaces: asked for as a transaction of one operation, whose answer is taken out
 * of its slot before anybody sees a row, so that who is called may use the session. In a
 * transaction what it has written itself is merged in, and the commit holds if the range still has
 * the same keys and versions. */
#include "embed/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"

#define BUFFER_BYTES (16u * 1024u) /* for an answer; a longer one comes again */
#define FLAGS_ALL ((uint32_t)HK_RANGE_REVERSE | (uint32_t)HK_RANGE_KEYS)

_Static_assert(sizeof(struct op) % 8 == 0 && sizeof(struct txn_request) % 8 == 0, "aligned");
_Static_assert(HK_RANGE_ROWS_MAX == TXN_SCANNED_MAX, "what a transaction may meet");

/* ---- Asking ---- */

/* What came: an answer in memory that is to be freed. */
struct rows {
    uint8_t *memory;
    struct bytes pairs;
    int64_t number;
    uint64_t version;
};

static void put(uint8_t **at, struct bytes from, struct bytes *to_out)
{
    if (from.n > 0) {
        memcpy(*at, from.at, from.n);
    }
    *to_out = bytes_of(*at, from.n);
    *at += from.n;
}

/* The slot's memory: operation, request, bounds, then room for the answer. */
static bool fill_slot(struct hk_session *s, uint32_t slot, const struct op *op, uint64_t since_us,
                      size_t room)
{
    size_t head = sizeof(struct op) + sizeof(struct txn_request);
    size_t bounds = (size_t)op->key.n + op->arg.n;
    if (!operation_memory(s, slot, head + bounds + room)) {
        return false;
    }
    struct op *own = (struct op *)(void *)s->slots[slot].memory;
    struct txn_request *request = (struct txn_request *)(void *)(own + 1);
    uint8_t *at = s->slots[slot].memory + head;
    *own = *op;
    put(&at, op->key, &own->key);
    put(&at, op->arg, &own->arg);
    *request = (struct txn_request){.ops = own, .ops_n = 1};
    *local_slot(s->local, slot) = (struct local_slot){.op = {.kind = OP_GET, .space = op->space},
                                                      .txn = request,
                                                      .since_us = since_us,
                                                      .single = true,
                                                      .buffer = at,
                                                      .capacity = room};
    return true;
}

/* One request, with so much room for the answer. HK_ERR_TOOBIG and *needed_out more than that: it
 * is that long. */
static int ask_once(struct hk_session *s, const struct op *op, uint64_t since_us, uint64_t until_us,
                    size_t room, size_t *needed_out, struct rows *rows_out)
{
    struct hk_result result = {.err = HK_OK};
    *needed_out = 0;
    if (clock_boot_us() >= until_us) {
        return HK_ERR_TIMEOUT;
    }
    uint32_t slot = operation_slot(s);
    struct hk_slot *mine = &s->slots[slot];
    if (!fill_slot(s, slot, op, since_us, room)) {
        operation_free(s, slot);
        return HK_ERR_NOMEM;
    }
    const uint8_t *at = local_slot(s->local, slot)->buffer;
    mine->into = &result;
    mine->keeps = true;
    int err = operation_submit(s, slot);
    if (err != HK_OK) {
        return err;
    }
    if (!operation_wait_until(s, slot, until_us)) {
        return HK_ERR_TIMEOUT;
    }
    *needed_out = result.n;
    if (result.err == HK_OK) {
        *rows_out = (struct rows){.memory = mine->memory,
                                  .pairs = bytes_of(at, (uint32_t)result.n),
                                  .number = result.number,
                                  .version = result.version};
        mine->memory = NULL;
        mine->memory_bytes = 0;
    }
    operation_free(s, slot);
    return result.err;
}

static int ask(struct hk_session *s, const struct op *op, uint64_t since_us, uint64_t until_us,
               struct rows *rows_out)
{
    size_t room = op->kind == TXN_OP_RANGE ? BUFFER_BYTES : 0;
    size_t needed;
    for (;;) {
        int err = ask_once(s, op, since_us, until_us, room, &needed, rows_out);
        if (err != HK_ERR_TOOBIG || needed <= room) {
            return err;
        }
        room = needed;
    }
}

/* ---- What is asked ---- */

static bool is_ordered(const struct hk_session *s, uint32_t space)
{
    return space < SPACES_MAX && (s->ordered >> space & 1u) != 0;
}

/* An empty start is the first key, an empty end none. */
static int make_op(uint32_t space, enum txn_pair_kind kind, struct hk_bytes start,
                   struct hk_bytes end, const struct hk_range_options *options, struct op *op_out)
{
    uint32_t flags = options != NULL ? options->flags : 0;
    uint32_t limit = options != NULL ? options->limit : 0;
    int err = operation_bytes(start, HK_KEY_MAX);
    err = err == HK_OK ? operation_bytes(end, HK_KEY_MAX) : err;
    if (err != HK_OK || (flags & ~FLAGS_ALL) != 0 || limit > HK_RANGE_ROWS_MAX) {
        return err != HK_OK ? err : HK_ERR_INVALID;
    }
    *op_out = (struct op){
        .kind = (uint8_t)kind,
        .space = (uint8_t)space,
        .flags = (uint16_t)(((flags & HK_RANGE_REVERSE) != 0 ? TXN_OPF_REVERSE : 0u) |
                            ((flags & HK_RANGE_KEYS) != 0 ? TXN_OPF_KEYS : 0u)),
        .key = bytes_of(start.at, (uint32_t)start.n),
        .arg = bytes_of(end.at, (uint32_t)end.n),
        .number = limit,
    };
    return HK_OK;
}

static struct hk_bytes given(struct bytes bytes)
{
    return hk_bytes(bytes.at, bytes.n);
}

/* ---- Outside of transactions ---- */

/* One request of the session's space. That others were in the way all the time is no transaction's
 * end here. */
static int run(struct hk_session *s, enum txn_pair_kind kind, struct hk_bytes start,
               struct hk_bytes end, const struct hk_range_options *options, struct rows *rows_out)
{
    struct op op;
    if (s == NULL || !is_ordered(s, s->space)) {
        return HK_ERR_INVALID;
    }
    int err = make_op(s->space, kind, start, end, options, &op);
    err = err == HK_OK ? ask(s, &op, clock_boot_us(), UINT64_MAX, rows_out) : err;
    return err == HK_ERR_ABORTED ? HK_ERR_BUSY : err;
}

int hk_range(struct hk_session *s, struct hk_bytes start, struct hk_bytes end,
             const struct hk_range_options *options, hk_row *row, void *context)
{
    struct rows rows = {.memory = NULL};
    struct bytes key, value;
    if (row == NULL) {
        return HK_ERR_INVALID;
    }
    int err = run(s, TXN_OP_RANGE, start, end, options, &rows);
    while (err == HK_OK && txn_pair_take(&rows.pairs, &key, &value)) {
        err = row(context, given(key), given(value));
    }
    free(rows.memory);
    return err;
}

static int count(struct hk_session *s, enum txn_pair_kind kind, struct hk_bytes start,
                 struct hk_bytes end, uint32_t limit, uint64_t *n_out)
{
    const struct hk_range_options options = {.limit = limit};
    struct rows rows = {.memory = NULL};
    int err = run(s, kind, start, end, &options, &rows);
    if (n_out != NULL) {
        *n_out = err == HK_OK ? (uint64_t)rows.number : 0;
    }
    free(rows.memory);
    return err;
}

int hk_range_count(struct hk_session *s, struct hk_bytes start, struct hk_bytes end,
                   uint64_t *n_out)
{
    return count(s, TXN_OP_RANGE_COUNT, start, end, 0, n_out);
}

int hk_range_delete(struct hk_session *s, struct hk_bytes start, struct hk_bytes end,
                    uint32_t limit, uint64_t *n_out)
{
    return count(s, TXN_OP_RANGE_DELETE, start, end, limit, n_out);
}

/* ---- In a transaction ---- */

static bool is_within(const struct op *op, struct bytes key)
{
    return bytes_compare(key, op->key) >= 0 && (op->arg.n == 0 || bytes_compare(key, op->arg) < 0);
}

static int by_key(const void *a, const void *b)
{
    const struct txn_item *x = *(const struct txn_item *const *)a;
    const struct txn_item *y = *(const struct txn_item *const *)b;
    return bytes_compare(x->key, y->key);
}

static int by_key_down(const void *a, const void *b)
{
    return by_key(b, a);
}

/* What the transaction has written in the range, in its direction; NULL: no memory. deletes_out: of
 * them. */
static struct txn_item **own_writes(struct hk_txn *t, const struct op *op, uint32_t *n_out,
                                    uint32_t *deletes_out)
{
    struct txn_item **own = malloc((t->items_n + 1u) * sizeof(struct txn_item *));
    *n_out = *deletes_out = 0;
    for (uint32_t i = 0; own != NULL && i < t->items_n; i++) {
        struct txn_item *item = &t->items[i];
        if (item->written && is_within(op, item->key)) {
            own[(*n_out)++] = item;
            *deletes_out += item->deleted;
        }
    }
    if (own != NULL) {
        bool down = (op->flags & TXN_OPF_REVERSE) != 0;
        qsort(own, *n_out, sizeof(struct txn_item *), down ? by_key_down : by_key);
    }
    return own;
}

/* The range as it was asked for, for the commit. */
static int note_range(struct hk_txn *t, const struct op *op, uint64_t version)
{
    if (t->ranges_n == HK_TXN_RANGES_MAX || t->items_n + t->ranges_n == HK_TXN_KEYS_MAX) {
        return HK_ERR_FULL;
    }
    if (t->ranges == NULL) {
        t->ranges = transaction_memory(t, HK_TXN_RANGES_MAX * sizeof *t->ranges);
    }
    uint8_t *at = transaction_memory(t, (size_t)op->key.n + op->arg.n + 1u);
    if (t->ranges == NULL || at == NULL) {
        return HK_ERR_NOMEM;
    }
    struct txn_watch *watch = &t->ranges[t->ranges_n++];
    *watch = (struct txn_watch){.version = version,
                                .range = true,
                                .flags = op->flags & TXN_OPF_REVERSE,
                                .limit = (uint32_t)op->number};
    put(&at, op->key, &watch->key);
    put(&at, op->arg, &watch->end);
    return HK_OK;
}

/* A row of the answer that the transaction has read before is as it was then. */
static bool as_read(struct hk_txn *t, const struct op *op, struct bytes key, struct bytes value)
{
    const struct txn_item *item = transaction_item(t, key);
    return item == NULL || !item->read ||
           (item->found && ((op->flags & TXN_OPF_KEYS) != 0 || bytes_equal(item->seen, value)));
}

/* A row that is to be told: its bytes are the answer's, or the transaction's. */
struct row {
    struct bytes key, value;
};

/* Merges what came and what the transaction has written, up to the limit. rows_out: room for all.
 * HK_ERR_ABORTED: something that was read before is not so any more. */
static int merge(struct hk_txn *t, const struct op *op, struct bytes pairs,
                 struct txn_item *const *own, uint32_t own_n, uint64_t limit, struct row *rows_out,
                 uint32_t *n_out)
{
    bool down = (op->flags & TXN_OPF_REVERSE) != 0;
    struct row came = {.key = {NULL, 0}};
    bool more = txn_pair_take(&pairs, &came.key, &came.value);
    uint32_t i = 0;
    *n_out = 0;
    while ((more || i < own_n) && (limit == 0 || *n_out < limit)) {
        int order = !more ? -1 : i == own_n ? 1 : bytes_compare(own[i]->key, came.key);
        order = down && more && i < own_n ? -order : order;
        if (order <= 0) {
            struct bytes value =
                (op->flags & TXN_OPF_KEYS) != 0 ? bytes_of(NULL, 0) : own[i]->value;
            if (!own[i]->deleted) {
                rows_out[(*n_out)++] = (struct row){own[i]->key, value};
            }
            i++;
        } else {
            rows_out[(*n_out)++] = came;
        }
        if (order >= 0) {
            if (!as_read(t, op, came.key, came.value)) {
                return HK_ERR_ABORTED;
            }
            more = txn_pair_take(&pairs, &came.key, &came.value);
        }
    }
    return HK_OK;
}

/* All rows of the range as the transaction sees it, in memory that is to be freed; they are good as
 * long as *answer_out is. */
static int read_range(struct hk_txn *t, struct op *op, struct rows *answer_out,
                      struct row **rows_out, uint32_t *n_out)
{
    uint64_t limit = (uint64_t)op->number;
    uint32_t own_n, deletes;
    struct txn_item **own = own_writes(t, op, &own_n, &deletes);
    if (own == NULL) {
        return HK_ERR_NOMEM;
    }
    /* As many more as it may have deleted itself. */
    if (limit > 0) {
        op->number += deletes;
        op->number = op->number < HK_RANGE_ROWS_MAX ? op->number : (int64_t)HK_RANGE_ROWS_MAX;
    }
    int err = ask(t->session, op, t->since_us, t->until_us, answer_out);
    if (err == HK_OK) {
        err = note_range(t, op, answer_out->version);
    }
    if (err == HK_OK) {
        *rows_out = malloc(((size_t)answer_out->number + own_n + 1u) * sizeof **rows_out);
        err = *rows_out == NULL
                  ? HK_ERR_NOMEM
                  : merge(t, op, answer_out->pairs, own, own_n, limit, *rows_out, n_out);
    }
    free(own);
    return err;
}

int hk_txn_range(struct hk_txn *t, struct hk_bytes start, struct hk_bytes end,
                 const struct hk_range_options *options, hk_row *row, void *context)
{
    struct rows answer = {.memory = NULL};
    struct row *rows = NULL;
    uint32_t n = 0;
    struct op op;
    if (t == NULL || row == NULL || !is_ordered(t->session, t->space)) {
        return HK_ERR_INVALID;
    }
    int err = make_op(t->space, TXN_OP_RANGE, start, end, options, &op);
    if (err != HK_OK || t->err != HK_OK) {
        return err != HK_OK ? err : t->err;
    }
    err = read_range(t, &op, &answer, &rows, &n);
    if (err != HK_OK && err != HK_ERR_TOOBIG) {
        t->err = err;
    }
    for (uint32_t i = 0; err == HK_OK && i < n; i++) {
        err = row(context, given(rows[i].key), given(rows[i].value));
    }
    free(rows);
    free(answer.memory);
    return err;
}

struct deletion {
    struct hk_txn *txn;
    uint64_t n;
};

static int delete_row(void *context, struct hk_bytes key, struct hk_bytes value)
{
    struct deletion *d = context;
    (void)value;
    int err = hk_txn_delete(d->txn, key);
    d->n += err == HK_OK;
    return err;
}

int hk_txn_range_delete(struct hk_txn *t, struct hk_bytes start, struct hk_bytes end,
                        uint32_t limit, uint64_t *n_out)
{
    const struct hk_range_options options = {.limit = limit, .flags = HK_RANGE_KEYS};
    struct deletion d = {.txn = t};
    int err = hk_txn_range(t, start, end, &options, delete_row, &d);
    if (n_out != NULL) {
        *n_out = d.n;
    }
    return err;
}
