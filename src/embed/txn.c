/* Transactions: what they have touched, and what becomes of that. A transaction is the caller's
 * until it ends; from its commit on it belongs to the slot that carries its request, until that is
 * answered. */
#include "embed/internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"

#define TIMEOUT_MS 5000u
#define CHUNK_BYTES (8u * 1024u)
#define ITEMS_MIN 16u
#define PAUSE_US 20u /* at first, at the most: doubles */
#define PAUSE_MOST_US 5000u
#define TTL_MAX (UINT64_C(1) << 52) /* as for hk_put */

_Static_assert(HK_TXN_KEYS_MAX <= TXN_OBJECTS_MAX && HK_TXN_KEYS_MAX <= TXN_OPS_MAX,
               "the node takes as many");

/* ---- Memory ---- */

void *transaction_memory(struct hk_txn *t, size_t n)
{
    struct txn_chunk *c = t->chunks;
    size_t rounded = (n + 15u) & ~(size_t)15u;
    if (c == NULL || c->n - c->used < rounded) {
        size_t most = rounded < CHUNK_BYTES ? CHUNK_BYTES : rounded;
        c = malloc(sizeof *c + most);
        if (c == NULL) {
            return NULL;
        }
        *c = (struct txn_chunk){.next = t->chunks, .n = most};
        t->chunks = c;
    }
    void *at = c->at + c->used;
    c->used += rounded;
    return at;
}

static void free_chunks(struct txn_chunk *c)
{
    while (c != NULL) {
        struct txn_chunk *next = c->next;
        free(c);
        c = next;
    }
}

void transaction_free(struct hk_txn *t)
{
    if (t != NULL) {
        free_chunks(t->chunks);
        free(t->items);
        free(t);
    }
}

void transaction_end(struct hk_txn *t)
{
    if (t == NULL) {
        return;
    }
    struct hk_session *s = t->session;
    if (s->txn_spare != NULL) {
        transaction_free(t);
        return;
    }
    if (t->chunks != NULL && (t->chunks->next != NULL || t->chunks->n > TXN_BYTES_KEPT)) {
        free_chunks(t->chunks);
        t->chunks = NULL;
    } else if (t->chunks != NULL) {
        t->chunks->used = 0;
    }
    s->txn_spare = t;
}

static bool copy(struct hk_txn *t, struct hk_bytes from, struct bytes *to_out)
{
    uint8_t *at = from.n > 0 ? transaction_memory(t, from.n) : NULL;
    if (from.n > 0 && at == NULL) {
        return false;
    }
    if (from.n > 0) {
        memcpy(at, from.at, from.n);
    }
    *to_out = bytes_of(at, (uint32_t)from.n);
    return true;
}

/* ---- Keys ---- */

static struct txn_item *find(struct hk_txn *t, struct bytes key, uint64_t hash)
{
    for (uint32_t i = 0; i < t->items_n; i++) {
        if (t->items[i].hash == hash && bytes_equal(t->items[i].key, key)) {
            return &t->items[i];
        }
    }
    return NULL;
}

struct txn_item *transaction_item(struct hk_txn *t, struct bytes key)
{
    return find(t, key, XXH3_64bits(key.at, key.n));
}

/* HK_OK, HK_ERR_FULL, HK_ERR_NOMEM. */
static int touch(struct hk_txn *t, struct hk_bytes key, struct txn_item **item_out)
{
    uint64_t hash = XXH3_64bits(key.at, key.n);
    *item_out = find(t, bytes_of(key.at, (uint32_t)key.n), hash);
    if (*item_out != NULL) {
        return HK_OK;
    }
    if (t->items_n + t->ranges_n == HK_TXN_KEYS_MAX) {
        return HK_ERR_FULL;
    }
    if (t->items_n == t->items_max) {
        uint32_t most = t->items_max < ITEMS_MIN ? ITEMS_MIN : 2 * t->items_max;
        struct txn_item *items = realloc(t->items, most * sizeof *items);
        if (items == NULL) {
            return HK_ERR_NOMEM;
        }
        t->items = items;
        t->items_max = most;
    }
    struct txn_item *item = &t->items[t->items_n];
    *item = (struct txn_item){.hash = hash};
    if (!copy(t, key, &item->key)) {
        return HK_ERR_NOMEM;
    }
    t->items_n++;
    *item_out = item;
    return HK_OK;
}

/* ---- Beginning and ending ---- */

int hk_txn_begin(struct hk_session *s, const struct hk_txn_options *options,
                 struct hk_txn **txn_out)
{
    uint32_t flags = options != NULL ? options->flags : 0;
    uint32_t timeout_ms =
        options != NULL && options->timeout_ms != 0 ? options->timeout_ms : TIMEOUT_MS;
    if (s == NULL || txn_out == NULL || (flags & ~(uint32_t)HK_TXN_READ_ONLY) != 0 ||
        s->space >= SPACES_MAX || (s->transacts >> s->space & 1u) == 0) {
        return HK_ERR_INVALID;
    }
    struct hk_txn *t = s->txn_spare;
    s->txn_spare = NULL;
    if (t == NULL) {
        t = calloc(1, sizeof *t);
        if (t == NULL) {
            return HK_ERR_NOMEM;
        }
    }
    uint64_t now_us = clock_boot_us();
    *t = (struct hk_txn){.session = s,
                         .since_us = now_us,
                         .until_us = now_us + (uint64_t)timeout_ms * 1000u,
                         .items = t->items,
                         .items_max = t->items_max,
                         .space = (uint8_t)s->space,
                         .read_only = (flags & HK_TXN_READ_ONLY) != 0,
                         .ordered = (s->ordered >> s->space & 1u) != 0,
                         .chunks = t->chunks};
    *txn_out = t;
    return HK_OK;
}

void hk_txn_abort(struct hk_txn *t)
{
    transaction_end(t);
}

/* ---- What it does ---- */

/* An error that ends it. */
static int fails(struct hk_txn *t, int err)
{
    t->err = err;
    return err;
}

static int deliver(bool there, struct bytes from, void *value, size_t capacity, size_t *n_out)
{
    size_t n = there ? from.n : 0;
    if (n_out != NULL) {
        *n_out = n;
    }
    if (!there) {
        return HK_ERR_NOTFOUND;
    }
    if (n > capacity) {
        return HK_ERR_TOOBIG;
    }
    if (n > 0) {
        memcpy(value, from.at, n);
    }
    return HK_OK;
}

int hk_txn_get(struct hk_txn *t, struct hk_bytes key, void *value, size_t capacity, size_t *n_out)
{
    struct txn_item *item;
    if (n_out != NULL) {
        *n_out = 0;
    }
    if (t == NULL || (value == NULL && capacity > 0)) {
        return HK_ERR_INVALID;
    }
    int err = operation_bytes(key, HK_KEY_MAX);
    if (err != HK_OK || t->err != HK_OK) {
        return t->err != HK_OK ? t->err : err;
    }
    err = touch(t, key, &item);
    if (err != HK_OK) {
        return fails(t, err);
    }
    if (item->written) {
        return deliver(!item->deleted, item->value, value, capacity, n_out);
    }
    if (!item->read) {
        err = transaction_fetch(t, item);
        if (err != HK_OK) {
            return fails(t, err);
        }
    }
    return deliver(item->found, item->seen, value, capacity, n_out);
}

/* The item of a key that is to be written: this node's. */
static int prepare(struct hk_txn *t, struct hk_bytes key, struct txn_item **item_out)
{
    int err = t != NULL && !t->read_only ? operation_bytes(key, HK_KEY_MAX) : HK_ERR_INVALID;
    if (err != HK_OK || t->err != HK_OK) {
        return err != HK_OK ? err : t->err;
    }
    err = touch(t, key, item_out);
    if (err == HK_OK && !(*item_out)->written) {
        err = transaction_own(t, *item_out);
    }
    return err == HK_OK ? HK_OK : fails(t, err);
}

static void note_written(struct hk_txn *t, struct txn_item *item, bool deleted)
{
    t->writes_n += !item->written;
    item->written = true;
    item->deleted = deleted;
}

int hk_txn_put(struct hk_txn *t, struct hk_bytes key, struct hk_bytes value,
               const struct hk_put_options *options)
{
    struct txn_item *item;
    struct bytes copied;
    uint64_t ttl_ms = options != NULL ? options->ttl_ms : 0;
    bool keep = options != NULL && options->flags == HK_PUT_KEEP_TTL;
    int err = operation_bytes(value, HK_VALUE_MAX);
    if (err != HK_OK || ttl_ms > TTL_MAX || (options != NULL && options->flags != 0 && !keep)) {
        return err != HK_OK ? err : HK_ERR_INVALID;
    }
    err = prepare(t, key, &item);
    if (err != HK_OK) {
        return err;
    }
    if (!copy(t, value, &copied)) {
        return fails(t, HK_ERR_NOMEM);
    }
    /* A deadline that an earlier write of this transaction has set, or lifted, is what is kept. */
    if (!(keep && item->written && ttl_ms == 0)) {
        item->flags = (uint16_t)((keep ? OPF_KEEPTTL : 0u) | (ttl_ms > 0 ? OPF_DEADLINE : 0u));
        item->deadline_ms = ttl_ms > 0 ? (int64_t)(clock_wall_ms() + ttl_ms) : 0;
    }
    note_written(t, item, false);
    item->value = copied;
    return HK_OK;
}

int hk_txn_delete(struct hk_txn *t, struct hk_bytes key)
{
    struct txn_item *item;
    int err = prepare(t, key, &item);
    if (err == HK_OK) {
        note_written(t, item, true);
        item->flags = 0;
        item->deadline_ms = 0;
    }
    return err;
}

/* ---- Again and again ---- */

static void pause_a_while(struct hk_session *s, uint64_t most_us)
{
    uint64_t us = random_between(&s->random, 1, most_us);
    struct timespec t = {.tv_sec = (time_t)(us / 1000000u),
                         .tv_nsec = (long)(us % 1000000u) * 1000};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

int hk_txn_run(struct hk_session *s, const struct hk_txn_options *options, hk_txn_body *body,
               void *context)
{
    struct hk_txn_options each = options != NULL ? *options : (struct hk_txn_options){.flags = 0};
    uint64_t total_ms = each.timeout_ms != 0 ? each.timeout_ms : TIMEOUT_MS;
    uint64_t since_us = clock_boot_us();
    uint64_t until_us = since_us + total_ms * 1000u;
    uint64_t pause_us = PAUSE_US;
    if (body == NULL) {
        return HK_ERR_INVALID;
    }
    for (;;) {
        struct hk_txn *t;
        int err = hk_txn_begin(s, &each, &t);
        if (err != HK_OK) {
            return err;
        }
        t->since_us = since_us; /* it is as old as the first: the oldest goes first */
        t->until_us = until_us;
        err = body(t, context);
        if (err == HK_OK) {
            err = hk_txn_commit(t);
        } else {
            hk_txn_abort(t);
        }
        uint64_t now_us = clock_boot_us();
        if (err != HK_ERR_ABORTED || now_us >= until_us) {
            return err;
        }
        pause_a_while(s, pause_us < until_us - now_us ? pause_us : until_us - now_us);
        pause_us = pause_us < PAUSE_MOST_US ? 2 * pause_us : pause_us;
    }
}
