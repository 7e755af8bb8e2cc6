/* Messages of Lotus on hostile bytes: what is taken for valid can be taken apart without an
 * assertion, points into the message, says the same when it is made again, and steps a coordinator
 * and a participant, whatever nonsense it says, without breaking their invariants. Input: messages,
 * as docs/WIRE.md has them; the last bits of slot say from whom, of gen what else happens. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "engine/lotus/commit.h"

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

/* ---- The machines ---- */

/* Node 0's transaction at servers 1 to 3, and node 1's part of another one's. */
struct machines {
    struct lotus_config config;
    struct lotus_txn txn;
    struct lotus_part part;
};

static void begin_try(struct machines *m)
{
    struct lotus_effects fx = {.n = 0};
    lotus_ask(&m->txn, 0xe, &fx);
    HK_ASSERT(fx.n == 1);
}

static void check_effects(const struct machines *m, const struct lotus_effects *fx)
{
    HK_ASSERT(fx->n <= LOTUS_EFFECTS_MAX);
    for (uint32_t i = 0; i < fx->n; i++) {
        uint8_t kind = fx->e[i].kind;
        bool last = kind == LOTUS_FX_AGAIN || kind == LOTUS_FX_FAIL || kind == LOTUS_FX_END;
        HK_ASSERT(nodeset_within(fx->e[i].to, 0xe));
        HK_ASSERT(last == (i + 1 == fx->n && m->txn.state == LOTUS_IDLE));
        HK_ASSERT((kind == LOTUS_FX_FAIL) == (fx->e[i].err != HK_OK));
    }
    lotus_txn_check(&m->txn);
}

static void step_coordinator(struct machines *m, const struct msg *msg)
{
    static const uint8_t phases[LOTUS_MSG_MAP] = {
        [LOTUS_MSG_EXECUTED] = LOTUS_EXECUTE,
        [LOTUS_MSG_DONE] = LOTUS_WHOLE,
        [LOTUS_MSG_PREPARED] = LOTUS_PREPARE,
        [LOTUS_MSG_COMMITTED] = LOTUS_COMMIT,
    };
    struct lotus_effects fx = {.n = 0};
    if (phases[msg->kind] == LOTUS_IDLE) {
        return;
    }
    lotus_answered(&m->txn, &m->config, (enum lotus_state)phases[msg->kind],
                   (uint8_t)(msg->slot & 3), (enum lotus_word)msg->ts, &fx);
    check_effects(m, &fx);
    bool next = fx.n > 0 && fx.e[fx.n - 1].kind == LOTUS_FX_NEXT;
    fx.n = 0;
    if (next && (msg->gen & 8) != 0) {
        lotus_give_up(&m->txn, &m->config, HK_ERR_NOMEM, &fx);
    } else if (next) {
        lotus_evaluated(&m->txn, &m->config, msg->gen & m->txn.homes, &fx);
    }
    check_effects(m, &fx);
    fx.n = 0;
    if ((msg->gen & 16) != 0) {
        lotus_gone(&m->txn, &m->config, nodeset_of((uint8_t)(msg->gen & 3)), &fx);
        check_effects(m, &fx);
    }
    fx.n = 0;
    if ((msg->gen & 32) != 0 && m->txn.state != LOTUS_IDLE) {
        HK_ASSERT(lotus_cancel(&m->txn, &fx) == (m->txn.state == LOTUS_IDLE));
        HK_ASSERT(fx.n <= LOTUS_EFFECTS_MAX);
        lotus_txn_check(&m->txn);
    }
    if (m->txn.state == LOTUS_IDLE) {
        begin_try(m);
    }
}

static void step_asked(struct lotus_part *p, const struct msg *msg, struct part_effects *fx)
{
    uint8_t from = (uint8_t)(msg->slot & 3);
    switch (msg->kind) {
    case LOTUS_MSG_PREPARE:
        part_prepare(p, (msg->gen & 1) != 0, msg->arg, get_u64(msg->value.at), 1, fx);
        break;
    case LOTUS_MSG_COMMIT:
        part_commit(p, fx);
        break;
    case LOTUS_MSG_ABORT:
        part_abort(p, fx);
        break;
    case LOTUS_MSG_ASK:
        part_asked(p, fx);
        break;
    case LOTUS_MSG_TOLD:
        part_told(p, from, (enum lotus_told)msg->ts, fx);
        break;
    case LOTUS_MSG_RESOLVED:
        part_resolved(p, from, msg->ts == 1, fx);
        break;
    default:
        break;
    }
}

static void step_participant(struct machines *m, const struct msg *msg)
{
    struct part_effects fx = {.n = 0};
    struct lotus_part *p = &m->part;
    if (msg->kind == LOTUS_MSG_EXECUTE && p->state == PART_RUNNING) {
        part_drop(p, &fx);
    }
    if (msg->kind == LOTUS_MSG_EXECUTE && p->state == PART_FREE) {
        part_begin(p);
    }
    if (msg->kind == LOTUS_MSG_FINISH && p->state == PART_RUNNING) {
        part_finish(p, (msg->gen & 1) != 0, &fx);
    }
    step_asked(p, msg, &fx);
    HK_ASSERT(fx.n <= PART_EFFECTS_MAX);
    part_check(p);
    fx.n = 0;
    if (msg->kind == LOTUS_MSG_COMMIT || msg->kind == LOTUS_MSG_ABORT) {
        part_done(p, &m->config, msg->ts, &fx);
    }
    if ((msg->gen & 16) != 0) {
        part_adopt(p, &m->config, (msg->gen & 32) != 0, nodeset_of((uint8_t)(msg->gen & 3)), &fx);
    }
    HK_ASSERT(fx.n <= PART_EFFECTS_MAX);
    part_check(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct machines machines = {.part = {.state = PART_FREE}};
    struct msg m;
    uint32_t used;
    if (size > 1 << 20) {
        return 0;
    }
    begin_try(&machines);
    for (struct bytes rest = bytes_of(data, (uint32_t)size);
         rest.n > 0 && msg_decode(rest, &m, &used) == HK_OK;
         rest = bytes_of(rest.at + used, rest.n - used)) {
        if (m.kind < LOTUS_MSG_MAP && lotus_msg_invalid(&m) == NULL) {
            check(&m);
            step_coordinator(&machines, &m);
            step_participant(&machines, &m);
        }
    }
    return 0;
}
