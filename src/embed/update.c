/* Updates: the program's arguments become an operation of the node. */
#include "embed/internal.h"

#include "base/clock.h"

/* A deadline this far ahead still fits the number that it is kept in. */
#define TTL_MAX (UINT64_C(1) << 52)

/* How an update is carried out. */
struct how {
    bool wait;
    hk_done *done;
    void *context;
    int64_t *number_out; /* of one that waits; NULL: nobody wants it */
};

static const struct how waiting = {.wait = true};

static int carry_out(struct hk_session *s, const struct op *op, const struct how *how)
{
    if (!how->wait) {
        return operation_start(s, op, NULL, 0, how->done, how->context);
    }
    struct hk_result result;
    int err = operation_run(s, op, NULL, 0, &result);
    if (err == HK_OK && how->number_out != NULL) {
        *how->number_out = result.number;
    }
    return err;
}

static int fill(struct hk_session *s, enum op_kind kind, struct hk_bytes key, struct op *op_out)
{
    if (s == NULL || s->space >= SPACES_MAX) {
        return HK_ERR_INVALID;
    }
    *op_out = (struct op){.kind = (uint8_t)kind,
                          .space = (uint8_t)s->space,
                          .key = bytes_of(key.at, (uint32_t)key.n)};
    return operation_bytes(key, HK_KEY_MAX);
}

static int add_options(struct op *op, const struct hk_put_options *options, uint32_t allowed)
{
    if (options == NULL) {
        return HK_OK;
    }
    if ((options->flags & ~allowed) != 0 || options->ttl_ms > TTL_MAX) {
        return HK_ERR_INVALID;
    }
    uint32_t flags = 0;
    flags |= (options->flags & HK_PUT_IF_ABSENT) != 0 ? OPF_NX : 0;
    flags |= (options->flags & HK_PUT_IF_PRESENT) != 0 ? OPF_XX : 0;
    flags |= (options->flags & HK_PUT_KEEP_TTL) != 0 ? OPF_KEEPTTL : 0;
    if (options->ttl_ms > 0) {
        flags |= OPF_DEADLINE;
        op->number = (int64_t)(clock_wall_ms() + options->ttl_ms);
    }
    op->flags = (uint16_t)(op->flags | flags);
    return HK_OK;
}

static int put(struct hk_session *s, struct hk_bytes key, struct hk_bytes value,
               const struct hk_put_options *options, const struct how *how)
{
    struct op op;
    int err = fill(s, OP_SET, key, &op);
    err = err == HK_OK ? operation_bytes(value, HK_VALUE_MAX) : err;
    op.value = bytes_of(value.at, (uint32_t)value.n);
    if (err == HK_OK) {
        err = add_options(&op, options, HK_PUT_IF_ABSENT | HK_PUT_IF_PRESENT | HK_PUT_KEEP_TTL);
    }
    return err == HK_OK ? carry_out(s, &op, how) : err;
}

int hk_put(struct hk_session *s, struct hk_bytes key, struct hk_bytes value,
           const struct hk_put_options *options)
{
    return put(s, key, value, options, &waiting);
}

int hk_put_async(struct hk_session *s, struct hk_bytes key, struct hk_bytes value,
                 const struct hk_put_options *options, hk_done *done, void *context)
{
    struct how how = {.done = done, .context = context};
    return put(s, key, value, options, &how);
}

static int erase(struct hk_session *s, struct hk_bytes key, const struct how *how)
{
    struct op op;
    int err = fill(s, OP_DELETE, key, &op);
    return err == HK_OK ? carry_out(s, &op, how) : err;
}

int hk_delete(struct hk_session *s, struct hk_bytes key)
{
    return erase(s, key, &waiting);
}

int hk_delete_async(struct hk_session *s, struct hk_bytes key, hk_done *done, void *context)
{
    struct how how = {.done = done, .context = context};
    return erase(s, key, &how);
}

static int compare_and_set(struct hk_session *s, struct hk_bytes key, struct hk_bytes expected,
                           struct hk_bytes value, const struct hk_put_options *options,
                           const struct how *how)
{
    struct op op;
    int err = fill(s, OP_SET, key, &op);
    err = err == HK_OK ? operation_bytes(expected, HK_VALUE_MAX) : err;
    err = err == HK_OK ? operation_bytes(value, HK_VALUE_MAX) : err;
    op.flags = OPF_IFEQ;
    op.arg = bytes_of(expected.at, (uint32_t)expected.n);
    op.value = bytes_of(value.at, (uint32_t)value.n);
    err = err == HK_OK ? add_options(&op, options, HK_PUT_KEEP_TTL) : err;
    return err == HK_OK ? carry_out(s, &op, how) : err;
}

int hk_compare_and_set(struct hk_session *s, struct hk_bytes key, struct hk_bytes expected,
                       struct hk_bytes value, const struct hk_put_options *options)
{
    return compare_and_set(s, key, expected, value, options, &waiting);
}

int hk_compare_and_set_async(struct hk_session *s, struct hk_bytes key, struct hk_bytes expected,
                             struct hk_bytes value, const struct hk_put_options *options,
                             hk_done *done, void *context)
{
    struct how how = {.done = done, .context = context};
    return compare_and_set(s, key, expected, value, options, &how);
}

static int compare_and_delete(struct hk_session *s, struct hk_bytes key, struct hk_bytes expected,
                              const struct how *how)
{
    struct op op;
    int err = fill(s, OP_DELETE_IF, key, &op);
    err = err == HK_OK ? operation_bytes(expected, HK_VALUE_MAX) : err;
    op.arg = bytes_of(expected.at, (uint32_t)expected.n);
    return err == HK_OK ? carry_out(s, &op, how) : err;
}

int hk_compare_and_delete(struct hk_session *s, struct hk_bytes key, struct hk_bytes expected)
{
    return compare_and_delete(s, key, expected, &waiting);
}

int hk_compare_and_delete_async(struct hk_session *s, struct hk_bytes key, struct hk_bytes expected,
                                hk_done *done, void *context)
{
    struct how how = {.done = done, .context = context};
    return compare_and_delete(s, key, expected, &how);
}

static int add(struct hk_session *s, struct hk_bytes key, int64_t delta, const struct how *how)
{
    struct op op;
    int err = fill(s, OP_ADD, key, &op);
    op.number = delta;
    return err == HK_OK ? carry_out(s, &op, how) : err;
}

int hk_add(struct hk_session *s, struct hk_bytes key, int64_t delta, int64_t *sum_out)
{
    struct how how = {.wait = true, .number_out = sum_out};
    return add(s, key, delta, &how);
}

int hk_add_async(struct hk_session *s, struct hk_bytes key, int64_t delta, hk_done *done,
                 void *context)
{
    struct how how = {.done = done, .context = context};
    return add(s, key, delta, &how);
}
