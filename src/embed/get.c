/* Reads: on the calling thread where the node allows it, else through a worker. */
#include "embed/internal.h"

#include <string.h>

#include "base/assert.h"
#include "base/clock.h"

/* What a thread read itself becomes the caller's. */
static int deliver(const struct node_read *read, void *value, size_t capacity, size_t *n_out)
{
    *n_out = 0;
    if (read->answer == NODE_READ_ABSENT) {
        return HK_ERR_NOTFOUND;
    }
    *n_out = read->value.n;
    if (read->value.n > capacity) {
        return HK_ERR_TOOBIG;
    }
    if (read->value.n > 0) {
        memcpy(value, read->value.at, read->value.n);
    }
    return HK_OK;
}

/* False: a worker has to be asked. */
static bool read_here(struct hk_session *s, struct bytes key, void *value, size_t capacity,
                      struct hk_result *result_out)
{
    struct node_read read = {.key = key};
    if (operation_own(s, s->space, key)) {
        return false;
    }
    struct node_reader *reader = local_enter(s->local);
    if (reader == NULL) {
        return false;
    }
    node_read(reader, s->space, clock_boot_us(), 1, &read);
    bool answered = read.answer != NODE_READ_ASK;
    if (answered) {
        result_out->err = deliver(&read, value, capacity, &result_out->n);
        result_out->version = read.version;
    }
    local_leave(s->local);
    return answered;
}

static struct op op_get(const struct hk_session *s, struct bytes key)
{
    return (struct op){.kind = OP_GET, .space = (uint8_t)s->space, .key = key};
}

static int check(const struct hk_session *s, struct hk_bytes key, const void *value,
                 size_t capacity)
{
    if (s == NULL || s->space >= SPACES_MAX || (value == NULL && capacity > 0)) {
        return HK_ERR_INVALID;
    }
    return operation_bytes(key, HK_KEY_MAX);
}

int hk_get(struct hk_session *s, struct hk_bytes key, void *value, size_t capacity, size_t *n_out)
{
    struct hk_result result = {.err = check(s, key, value, capacity)};
    if (result.err == HK_OK) {
        struct bytes k = bytes_of(key.at, (uint32_t)key.n);
        if (!read_here(s, k, value, capacity, &result)) {
            struct op op = op_get(s, k);
            result.err = operation_run(s, &op, value, capacity, &result);
        }
    }
    if (n_out != NULL) {
        *n_out = result.n;
    }
    return result.err;
}

int hk_get_async(struct hk_session *s, struct hk_bytes key, void *value, size_t capacity,
                 hk_done *done, void *context)
{
    int err = check(s, key, value, capacity);
    if (err != HK_OK) {
        return err;
    }
    struct bytes k = bytes_of(key.at, (uint32_t)key.n);
    struct hk_result result = {.err = HK_OK};
    if (s->async_n == s->async_max) {
        return HK_ERR_FULL;
    }
    if (!read_here(s, k, value, capacity, &result)) {
        struct op op = op_get(s, k);
        return operation_start(s, &op, value, capacity, done, context);
    }
    uint32_t slot = operation_slot(s);
    s->slots[slot].done = done;
    s->slots[slot].context = context;
    s->slots[slot].result = result;
    s->async_n++;
    operation_ready(s, slot);
    return HK_OK;
}

/* ---- Batches ---- */

#define ASKED INT32_MAX /* hk_read.err of a key that goes to a worker */

/* Reads what this thread can of up to NODE_READ_MAX keys; the others' err becomes ASKED. */
static void read_some(struct hk_session *s, struct hk_read *reads, uint32_t n)
{
    struct node_read here[NODE_READ_MAX];
    uint8_t of[NODE_READ_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct bytes key = bytes_of(reads[i].key.at, (uint32_t)reads[i].key.n);
        reads[i].n = 0;
        reads[i].version = 0;
        reads[i].err = check(s, reads[i].key, reads[i].value, reads[i].capacity);
        if (reads[i].err == HK_OK && operation_own(s, s->space, key)) {
            reads[i].err = ASKED;
        } else if (reads[i].err == HK_OK) {
            here[count].key = key;
            of[count++] = (uint8_t)i;
        }
    }
    struct node_reader *reader = count > 0 ? local_enter(s->local) : NULL;
    if (reader != NULL) {
        node_read(reader, s->space, clock_boot_us(), count, here);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct hk_read *read = &reads[of[i]];
        if (reader == NULL || here[i].answer == NODE_READ_ASK) {
            read->err = ASKED;
        } else {
            read->err = deliver(&here[i], read->value, read->capacity, &read->n);
            read->version = here[i].version;
        }
    }
    if (reader != NULL) {
        local_leave(s->local);
    }
}

/* Asks a worker for the rest, as many at a time as there are slots. */
static void ask_rest(struct hk_session *s, struct hk_read *reads, size_t n)
{
    uint32_t waited_n = s->waited_n;
    for (size_t i = 0; i < n; i++) {
        if (reads[i].err != ASKED) {
            continue;
        }
        if (s->spare_n == 0) {
            operation_wait(s, s->waited_n - 1);
        }
        struct op op = op_get(s, bytes_of(reads[i].key.at, (uint32_t)reads[i].key.n));
        uint32_t slot = operation_slot(s);
        s->slots[slot].read = &reads[i];
        int err = operation_begin(s, slot, &op, reads[i].value, reads[i].capacity);
        if (err == HK_OK) {
            s->waited_n++;
        } else {
            reads[i].err = err;
        }
    }
    operation_wait(s, waited_n);
}

int hk_get_batch(struct hk_session *s, struct hk_read *reads, size_t n)
{
    if (s == NULL || (reads == NULL && n > 0)) {
        return HK_ERR_INVALID;
    }
    int first = HK_OK;
    for (size_t i = 0; i < n; i += NODE_READ_MAX) {
        uint32_t part = n - i < NODE_READ_MAX ? (uint32_t)(n - i) : NODE_READ_MAX;
        read_some(s, reads + i, part);
        ask_rest(s, reads + i, part);
        for (size_t k = i; k < i + part && first == HK_OK; k++) {
            first = reads[k].err != HK_ERR_NOTFOUND ? reads[k].err : HK_OK;
        }
    }
    return first;
}
