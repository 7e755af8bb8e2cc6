/* What transactions see: of this node's memory, on the calling thread; what is not there is brought
 * here by a worker. */
#include "embed/internal.h"

#include <string.h>

#include "base/clock.h"

#define BUFFER_BYTES 1024u /* for a value that comes from a worker; longer ones come again */
#define LOOKS_MAX 4u       /* at a key that was brought here, and was gone again */

_Static_assert(sizeof(struct op) % 8 == 0 && sizeof(struct txn_request) % 8 == 0, "aligned");

/* ---- Here ---- */

static bool keep(struct hk_txn *t, struct txn_item *item, struct bytes value)
{
    uint8_t *at = value.n > 0 ? transaction_memory(t, value.n) : NULL;
    if (value.n > 0 && at == NULL) {
        return false;
    }
    if (value.n > 0) {
        memcpy(at, value.at, value.n);
    }
    item->seen = bytes_of(at, value.n);
    return true;
}

static void note_read(struct txn_item *item, bool found, uint64_t version)
{
    item->read = true;
    item->found = found;
    item->version = found ? version : 0;
}

/* HK_OK; HK_ERR_BUSY: only a worker can tell; HK_ERR_NOMEM. */
static int read_here(struct hk_txn *t, struct txn_item *item)
{
    struct hk_session *s = t->session;
    struct node_read read = {.key = item->key};
    struct node_reader *reader =
        operation_own(s, t->space, item->key) ? NULL : local_enter(s->local);
    if (reader == NULL) {
        return HK_ERR_BUSY;
    }
    node_read_early(reader, t->space, clock_boot_us(), 1, &read);
    int err = read.answer == NODE_READ_ASK ? HK_ERR_BUSY : HK_OK;
    if (err == HK_OK && read.answer == NODE_READ_FOUND && !keep(t, item, read.value)) {
        err = HK_ERR_NOMEM;
    }
    local_leave(s->local);
    if (err == HK_OK) {
        note_read(item, read.answer == NODE_READ_FOUND, read.version);
        item->early = read.early;
    }
    return err;
}

static bool is_owned(struct hk_txn *t, const struct txn_item *item)
{
    struct node_read read = {.key = item->key};
    struct node_reader *reader = local_enter(t->session->local);
    if (reader == NULL) {
        return false;
    }
    node_read(reader, t->space, clock_boot_us(), 1, &read);
    local_leave(t->session->local);
    return read.owned;
}

/* ---- Through a worker: with memory of the slot, which may outlive the transaction ---- */

/* A slot with room for so many bytes, and the key in front of them. */
static int take_slot(struct hk_txn *t, const struct txn_item *item, size_t room, uint32_t *slot_out,
                     struct bytes *key_out)
{
    struct hk_session *s = t->session;
    if (clock_boot_us() >= t->until_us) {
        return HK_ERR_TIMEOUT;
    }
    uint32_t slot = operation_slot(s);
    size_t key_bytes = ((size_t)item->key.n + 15u) & ~(size_t)15u;
    if (!operation_memory(s, slot, key_bytes + room)) {
        operation_free(s, slot);
        return HK_ERR_NOMEM;
    }
    uint8_t *at = s->slots[slot].memory + room;
    if (item->key.n > 0) {
        memcpy(at, item->key.at, item->key.n);
    }
    *key_out = bytes_of(at, item->key.n);
    *slot_out = slot;
    return HK_OK;
}

/* Reads with a buffer of that size. HK_ERR_TOOBIG: *n_out is the value's. */
static int ask(struct hk_txn *t, struct txn_item *item, size_t room, size_t *n_out)
{
    struct hk_session *s = t->session;
    struct hk_result result = {.err = HK_OK};
    struct op op = {.kind = OP_GET, .space = t->space};
    uint32_t slot;
    int err = take_slot(t, item, room, &slot, &op.key);
    if (err != HK_OK) {
        return err;
    }
    s->slots[slot].into = &result;
    s->slots[slot].keeps = true;
    *local_slot(s->local, slot) = (struct local_slot){
        .op = op, .since_us = t->since_us, .buffer = s->slots[slot].memory, .capacity = room};
    err = operation_submit(s, slot);
    if (err != HK_OK) {
        return err;
    }
    if (!operation_wait_until(s, slot, t->until_us)) {
        return HK_ERR_TIMEOUT;
    }
    *n_out = result.n;
    if (result.err == HK_OK || result.err == HK_ERR_NOTFOUND) {
        struct bytes value = bytes_of(s->slots[slot].memory, (uint32_t)result.n);
        note_read(item, result.err == HK_OK, result.version);
        err = keep(t, item, value) ? HK_OK : HK_ERR_NOMEM;
    } else {
        err = result.err == HK_ERR_BUSY ? HK_ERR_ABORTED : result.err;
    }
    operation_free(s, slot);
    return err;
}

static int ask_worker(struct hk_txn *t, struct txn_item *item)
{
    size_t n = BUFFER_BYTES;
    int err;
    do {
        err = ask(t, item, n, &n);
    } while (err == HK_ERR_TOOBIG);
    return err;
}

/* The key becomes this node's. */
static int acquire(struct hk_txn *t, const struct txn_item *item)
{
    struct hk_session *s = t->session;
    struct hk_result result = {.err = HK_OK};
    struct op op = {.kind = OP_GET, .space = t->space};
    uint32_t slot;
    int err = take_slot(t, item, sizeof op + sizeof(struct txn_request), &slot, &op.key);
    if (err != HK_OK) {
        return err;
    }
    struct op *ops = (struct op *)(void *)s->slots[slot].memory;
    struct txn_request *request = (struct txn_request *)(void *)(ops + 1);
    *ops = op;
    *request = (struct txn_request){.ops = ops, .ops_n = 1, .flags = TXN_ACQUIRE};
    *local_slot(s->local, slot) =
        (struct local_slot){.op = op, .txn = request, .since_us = t->since_us};
    s->slots[slot].into = &result;
    err = operation_submit(s, slot);
    if (err == HK_OK && !operation_wait_until(s, slot, t->until_us)) {
        return HK_ERR_TIMEOUT;
    }
    return err == HK_OK ? result.err : err;
}

/* ---- Looking again ---- */

/* What another look at a key that was read says. HK_ERR_BUSY: nothing. */
static int judge(const struct txn_item *item, const struct node_read *read)
{
    bool differs = read->version != item->version;
    /* What is not replicated is the same, but nobody may be told. */
    int same = read->early ? HK_ERR_BUSY : HK_OK;
    switch ((enum node_read_answer)read->answer) {
    case NODE_READ_FOUND:
        return item->found && !differs ? same : HK_ERR_ABORTED;
    case NODE_READ_ABSENT:
        return item->found ? HK_ERR_ABORTED : same;
    case NODE_READ_ASK:
        break;
    }
    /* Something newer is under way, and nothing can stop it. */
    return item->found && read->version != 0 && differs ? HK_ERR_ABORTED : HK_ERR_BUSY;
}

static int look_at_some(struct hk_txn *t, struct txn_item *const *items, uint32_t n)
{
    struct hk_session *s = t->session;
    struct node_read reads[NODE_READ_MAX];
    int worst = HK_OK;
    for (uint32_t i = 0; i < n; i++) {
        reads[i] = (struct node_read){.key = items[i]->key};
    }
    struct node_reader *reader = local_enter(s->local);
    if (reader == NULL) {
        return HK_ERR_BUSY;
    }
    node_read_early(reader, t->space, clock_boot_us(), n, reads);
    local_leave(s->local);
    for (uint32_t i = 0; i < n && worst != HK_ERR_ABORTED; i++) {
        bool own = operation_own(s, t->space, items[i]->key);
        int err = own ? HK_ERR_BUSY : judge(items[i], &reads[i]);
        worst = err != HK_OK ? err : worst;
    }
    return worst;
}

int transaction_look_again(struct hk_txn *t)
{
    struct txn_item *some[NODE_READ_MAX];
    uint32_t n = 0;
    int worst = HK_OK;
    if (t->ordered) {
        return HK_ERR_BUSY;
    }
    for (uint32_t i = 0; i < t->items_n && worst != HK_ERR_ABORTED; i++) {
        if (t->items[i].read) {
            some[n++] = &t->items[i];
        }
        if (n > 0 && (n == NODE_READ_MAX || i + 1 == t->items_n)) {
            int err = look_at_some(t, some, n);
            worst = err != HK_OK ? err : worst;
            n = 0;
        }
    }
    return worst;
}

/* ---- What the transaction asks ---- */

int transaction_own(struct hk_txn *t, const struct txn_item *item)
{
    if (t->ordered || operation_own(t->session, t->space, item->key) || is_owned(t, item)) {
        return HK_OK; /* of one's own that is under way the commit comes behind it */
    }
    return acquire(t, item);
}

/* A transaction that may write needs all that it touches to be this node's in the end, so it brings
 * at once what is not here. */
static int fetch(struct hk_txn *t, struct txn_item *item)
{
    if (t->ordered) {
        return ask_worker(t, item);
    }
    int err = read_here(t, item);
    if (!t->read_only && !operation_own(t->session, t->space, item->key)) {
        for (uint32_t i = 0; err == HK_ERR_BUSY && i < LOOKS_MAX && !is_owned(t, item); i++) {
            err = acquire(t, item);
            err = err == HK_OK ? read_here(t, item) : err;
        }
    }
    return err == HK_ERR_BUSY ? ask_worker(t, item) : err;
}

int transaction_fetch(struct hk_txn *t, struct txn_item *item)
{
    int err = fetch(t, item);
    /* So that it never works with values that were not there together. One look costs little as
     * long as it is one batch; the commit looks at all in any case. */
    if (err == HK_OK && t->items_n > 1 && t->items_n <= NODE_READ_MAX) {
        err = transaction_look_again(t) == HK_ERR_ABORTED ? HK_ERR_ABORTED : HK_OK;
    }
    return err;
}
