/* Messages of Lotus on hostile bytes: what is taken for valid can be taken apart without an
 * assertion, points into the message, and says the same when it is made again. Input: messages, as
 * docs/WIRE.md has them. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "engine/lotus/lotus.h"

static void points_into(const struct msg *m, struct bytes b)
{
    HK_ASSERT(b.n == 0 || (b.at >= m->value.at && b.at + b.n <= m->value.at + m->value.n));
}

/* `at` has been made of all of the message's value but for what stands before `from`. */
static void same(const struct msg *m, uint32_t from, const uint8_t *again, const uint8_t *at)
{
    struct bytes rest = bytes_of(m->value.at + from, m->value.n - from);
    HK_ASSERT(bytes_equal(bytes_of(again, (uint32_t)(at - again)), rest));
}

static void check_items(const struct msg *m, uint8_t *again)
{
    struct bytes rest = m->value;
    struct lotus_head head;
    struct lotus_item item;
    lotus_head_take(&rest, &head);
    uint8_t *at = lotus_head_put(again, &head);
    while (lotus_item_take(&rest, &item)) {
        points_into(m, item.key);
        points_into(m, item.end);
        uint8_t *before = at;
        at = lotus_item_put(at, &item);
        HK_ASSERT((uint32_t)(at - before) == lotus_item_bytes(&item));
    }
    same(m, 0, again, at);
}

static void check_rows(const struct msg *m, uint32_t from, uint8_t *again)
{
    struct bytes rest = bytes_of(m->value.at + from, m->value.n - from);
    struct lotus_row row;
    uint8_t *at = again;
    while (lotus_row_take(&rest, &row)) {
        points_into(m, row.key);
        points_into(m, row.value);
        uint8_t *before = at;
        at = lotus_row_put(at, &row);
        HK_ASSERT((uint32_t)(at - before) == lotus_row_bytes(&row));
    }
    same(m, from, again, at);
}

static void check_request(const struct msg *m, uint8_t *again)
{
    static struct op ops[TXN_OPS_MAX];
    static struct txn_watch watches[TXN_OBJECTS_MAX];
    struct txn_request request;
    struct bytes rest = m->value;
    struct lotus_head head;
    lotus_head_take(&rest, &head);
    lotus_request_take(rest, m->space, ops, watches, &request);
    HK_ASSERT(lotus_request_bytes(&request) == rest.n);
    for (uint32_t i = 0; i < request.ops_n; i++) {
        points_into(m, ops[i].key);
        points_into(m, ops[i].value);
        points_into(m, ops[i].arg);
        HK_ASSERT(ops[i].space == m->space);
    }
    same(m, LOTUS_HEAD_BYTES, again, lotus_request_put(again, &request));
}

static void check_answers(const struct msg *m, uint8_t *again)
{
    static struct answer answers[TXN_OPS_MAX];
    static uint64_t versions[TXN_OPS_MAX];
    uint8_t verdict = 0;
    uint32_t n = 0;
    if (m->ts != LOTUS_OK || m->value.n == 0) {
        return;
    }
    while (!lotus_answers_take(m->value, n, &verdict, answers, versions)) {
        HK_ASSERT(n < TXN_OPS_MAX);
        n++;
    }
    for (uint32_t i = 0; i < n; i++) {
        points_into(m, answers[i].value);
    }
    HK_ASSERT(lotus_answers_bytes((enum txn_verdict)verdict, answers, n) == m->value.n);
    same(m, 0, again, lotus_answers_put(again, (enum txn_verdict)verdict, answers, versions, n));
}

static void check(const struct msg *m)
{
    uint8_t *again = malloc(m->value.n + 1u);
    HK_ASSERT(again != NULL && m->kind < LOTUS_MSG_END);
    switch (m->kind) {
    case LOTUS_MSG_EXECUTE:
        check_items(m, again);
        break;
    case LOTUS_MSG_EXECUTED:
    case LOTUS_MSG_FINISH:
        check_rows(m, 0, again);
        break;
    case LOTUS_MSG_PREPARE:
        check_rows(m, 8, again);
        break;
    case LOTUS_MSG_WHOLE:
        check_request(m, again);
        break;
    case LOTUS_MSG_DONE:
        check_answers(m, again);
        break;
    default:
        HK_ASSERT(m->value.n == 0);
        break;
    }
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct msg m;
    uint32_t used;
    if (size > 1 << 20) {
        return 0;
    }
    for (struct bytes rest = bytes_of(data, (uint32_t)size);
         rest.n > 0 && msg_decode(rest, &m, &used) == HK_OK;
         rest = bytes_of(rest.at + used, rest.n - used)) {
        if (m.kind < LOTUS_MSG_MAP && lotus_msg_invalid(&m) == NULL) {
            check(&m);
        }
    }
    return 0;
}
