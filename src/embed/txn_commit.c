/* The end of a transaction. One that wrote nothing looks again at what it has read. One whose keys
 * are all here and at rest is committed by this thread, and only its replication is the worker's.
 * Any other goes to the session's worker as a request, which does it in one step if all that was
 * read is still so. */
#include "embed/internal.h"

#include <string.h>

#include "base/clock.h"

/* ---- The request ---- */

static struct op op_of(const struct hk_txn *t, const struct txn_item *item)
{
    struct op op = {.kind = item->deleted ? OP_DELETE : OP_SET,
                    .space = t->space,
                    .flags = item->flags,
                    .key = item->key,
                    .number = item->deadline_ms};
    if (!item->deleted) {
        op.value = item->value;
    }
    return op;
}

static bool make_request(struct hk_txn *t)
{
    struct op *ops = transaction_memory(t, (t->writes_n + 1u) * sizeof *ops);
    struct txn_watch *watches =
        transaction_memory(t, (t->items_n + t->ranges_n + 1u) * sizeof *watches);
    uint32_t ops_n = 0;
    uint32_t watches_n = 0;
    if (ops == NULL || watches == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < t->items_n; i++) {
        const struct txn_item *item = &t->items[i];
        if (item->written) {
            ops[ops_n++] = op_of(t, item);
        }
        if (item->read) {
            watches[watches_n++] = (struct txn_watch){.key = item->key, .version = item->version};
        }
    }
    for (uint32_t i = 0; i < t->ranges_n; i++) {
        watches[watches_n++] = t->ranges[i];
    }
    t->request = (struct txn_request){
        .ops = ops, .watches = watches, .ops_n = ops_n, .watches_n = watches_n};
    return true;
}

/* The slot's is the transaction from here on; on an error it has ended. */
static int submit(struct hk_txn *t, uint32_t slot)
{
    struct hk_session *s = t->session;
    struct op op = {.kind = OP_GET, .space = t->space};
    if (!make_request(t)) {
        operation_free(s, slot);
        transaction_end(t);
        return HK_ERR_NOMEM;
    }
    *local_slot(s->local, slot) =
        (struct local_slot){.op = op, .txn = &t->request, .since_us = t->since_us};
    s->slots[slot].txn = t;
    int err = operation_submit(s, slot);
    if (err != HK_OK) {
        transaction_end(t);
    }
    return err;
}

/* ---- On this thread ---- */

/* The keys as node_commit wants them; NULL: no memory. */
static struct node_commit_key *make_keys(struct hk_txn *t)
{
    struct node_commit_key *keys = transaction_memory(t, t->items_n * sizeof *keys);
    struct op *ops = transaction_memory(t, (t->writes_n + 1u) * sizeof *ops);
    uint32_t ops_n = 0;
    if (keys == NULL || ops == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < t->items_n; i++) {
        const struct txn_item *item = &t->items[i];
        keys[i] = (struct node_commit_key){
            .key = item->key, .watched = item->read, .version = item->version};
        if (item->written) {
            ops[ops_n] = op_of(t, item);
            keys[i].op = &ops[ops_n++];
        }
    }
    return keys;
}

/* Commits it, if this thread can: NODE_COMMIT_ASK: it cannot. The order of a session is that of one
 * pipeline: nothing of it may be under way elsewhere. */
static enum node_commit_answer commit_here(struct hk_txn *t, uint32_t slot)
{
    struct hk_session *s = t->session;
    struct op op = {.kind = OP_GET, .space = t->space};
    if (t->ordered || s->flying_n != s->ahead_n || t->items_n > NODE_COMMIT_KEYS_MAX ||
        t->items_n == 0) {
        return NODE_COMMIT_ASK;
    }
    struct node_commit_key *keys = make_keys(t);
    if (keys == NULL) {
        return NODE_COMMIT_ASK;
    }
    *local_slot(s->local, slot) = (struct local_slot){.op = op};
    enum node_commit_answer answer =
        local_commit(s->local, slot, clock_boot_us(), t->items_n, keys);
    if (answer == NODE_COMMIT_SLOT) {
        s->slots[slot].txn = t;
        operation_ahead(s, slot);
    }
    return answer;
}

/* True: it is on its way, and the slot's. False: it has ended, as *err_out says, and the slot is
 * spare. */
static bool begin_commit(struct hk_txn *t, uint32_t slot, int *err_out)
{
    switch (commit_here(t, slot)) {
    case NODE_COMMIT_ASK:
        *err_out = submit(t, slot);
        return *err_out == HK_OK;
    case NODE_COMMIT_SLOT:
        return true;
    case NODE_COMMIT_DONE:
        *err_out = HK_OK;
        break;
    case NODE_COMMIT_CONFLICT:
        *err_out = HK_ERR_ABORTED;
        break;
    }
    operation_free(t->session, slot);
    transaction_end(t);
    return false;
}

/* Whether it can be ended here, and how: *err_out. */
static bool ends_here(struct hk_txn *t, int *err_out)
{
    uint32_t reads_n = t->ranges_n;
    bool early = false;
    for (uint32_t i = 0; i < t->items_n; i++) {
        reads_n += t->items[i].read;
        early = early || t->items[i].early;
    }
    *err_out = t->err;
    if (t->err != HK_OK) {
        return true;
    }
    if (t->writes_n == 0) {
        /* A single read was right when it was done. */
        *err_out = reads_n > 1 || early ? transaction_look_again(t) : HK_OK;
        if (*err_out != HK_ERR_BUSY) {
            return true;
        }
    }
    if (clock_boot_us() >= t->until_us) {
        *err_out = HK_ERR_TIMEOUT;
        return true;
    }
    return false;
}

/* ---- Waiting, or not ---- */

int hk_txn_commit(struct hk_txn *t)
{
    struct hk_result result = {.err = HK_OK};
    int err;
    if (t == NULL) {
        return HK_ERR_INVALID;
    }
    struct hk_session *s = t->session;
    if (ends_here(t, &err)) {
        transaction_end(t);
        return err;
    }
    bool writes = t->writes_n > 0;
    uint64_t until_us = t->until_us;
    uint32_t slot = operation_slot(s);
    s->slots[slot].into = &result;
    if (!begin_commit(t, slot, &err)) {
        return err;
    }
    if (!operation_wait_until(s, slot, until_us)) {
        return writes ? HK_ERR_UNKNOWN : HK_ERR_TIMEOUT;
    }
    return result.err;
}

int hk_txn_commit_async(struct hk_txn *t, hk_done *done, void *context)
{
    int err;
    if (t == NULL) {
        return HK_ERR_INVALID;
    }
    struct hk_session *s = t->session;
    if (s->async_n == s->async_max) {
        return HK_ERR_FULL;
    }
    if (ends_here(t, &err)) {
        transaction_end(t);
    } else {
        uint32_t slot = operation_slot(s);
        s->slots[slot].done = done;
        s->slots[slot].context = context;
        if (begin_commit(t, slot, &err)) {
            s->async_n++;
            return HK_OK;
        }
    }
    if (err == HK_OK) {
        /* It is over; `done` hears of it as of any other. */
        uint32_t slot = operation_slot(s);
        s->slots[slot].done = done;
        s->slots[slot].context = context;
        s->slots[slot].result = (struct hk_result){.err = HK_OK};
        operation_ready(s, slot);
        s->async_n++;
    }
    return err;
}

int hk_txn_fence(struct hk_session *s, uint32_t timeout_ms)
{
    if (s == NULL) {
        return HK_ERR_INVALID;
    }
    uint64_t until_us = clock_boot_us() + (uint64_t)timeout_ms * 1000u;
    for (;;) {
        (void)hk_session_poll(s, UINT32_MAX);
        if (s->txns_n == 0) {
            return HK_OK;
        }
        uint64_t now_us = clock_boot_us();
        if (now_us >= until_us) {
            return HK_ERR_TIMEOUT;
        }
        (void)local_wait(s->local, until_us - now_us);
    }
}
