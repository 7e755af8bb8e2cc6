/* What all deals of a life amount to: their history, and the bank's books. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "check/txn_history.h"
#include "sim/world.h"

static bool audits(const struct deal *deal)
{
    return deal->kind == DEAL_AUDIT || deal->kind == DEAL_CONTROL;
}

static void audit(struct world *world, const struct deal *deal)
{
    uint32_t n = world->setup.accounts;
    int64_t money = 0;
    bool some = false;
    for (uint32_t i = 0; i < n; i++) {
        some = some || deal->items[i].there;
        money += deal->items[i].there ? deal->items[i].number : 0;
    }
    bool before = world->traders.opened_us == 0 || deal->begin_us <= world->traders.opened_us;
    if (deal->end_us > lost_money_us(world, world->lives_n - 1)) {
        return;
    }
    world->result->stats.audits++;
    if (money != ACCOUNT_MONEY * n && (some || !before)) {
        char text[300];
        deal_describe(deal, text, sizeof text);
        world_violation(world, "an audit finds %" PRId64 " instead of %" PRId64 ": %s", money,
                        ACCOUNT_MONEY * n, text);
    }
}

void deal_account(struct world *world, const struct deal *deal)
{
    struct traders *ts = &world->traders;
    if (deal->kind == DEAL_OPEN && ts->opened_us == 0) {
        ts->opened_us = deal->end_us;
    }
    if (audits(deal)) {
        audit(world, deal);
    }
}

/* ---- The history ---- */

static bool is_wanted(const struct world *world, const struct deal *deal, uint32_t life)
{
    uint64_t from = world->lives[life];
    uint64_t to = life + 1 < world->lives_n ? world->lives[life + 1] : UINT64_MAX / 2;
    return deal->begin_us > 2 * from && deal->begin_us <= 2 * to;
}

/* The version under which each number was written, as far as anybody knows: by number from FIRST
 * on. */
struct versions {
    uint64_t *at;
    size_t n;
};

static void note_version(struct versions *versions, const struct deal_item *item)
{
    size_t i = (size_t)(item->number - DEAL_FIRST_NUMBER);
    if (i < versions->n && item->version != 0) {
        versions->at[i] = item->version;
    }
}

static void note_versions(const struct world *world, const struct deal *deal,
                          struct versions *versions)
{
    for (uint32_t i = 0; deal->outcome == TXN_COMMITTED && i < deal->request.ops_n; i++) {
        const struct deal_item *item = &deal->items[i];
        bool writes = deal->ops[i].kind == OP_SET;
        bool reads = deal->ops[i].kind == OP_GET && item->there;
        if (item->key < world->setup.traded && deal->kind != DEAL_FETCH &&
            (writes || (reads && !deal_writes(deal, item->key)))) {
            note_version(versions, item);
        }
    }
}

/* A read of a key that its own deal writes. Its answer names the version of the write; that of what
 * it saw follows from the number. False: nobody knows it. */
static bool find_version(const struct versions *versions, const struct deal_item *item,
                         uint64_t *version_out)
{
    size_t i = (size_t)(item->number - DEAL_FIRST_NUMBER);
    *version_out = item->there && i < versions->n ? versions->at[i] : 0;
    return !item->there || *version_out != 0;
}

/* Whether a key may be missing because the operator gave it up. To leave out what is seen of it
 * then proves no less about the rest. */
static bool may_be_emptied(const struct world *world, const struct deal *deal, uint32_t key,
                           uint32_t life, bool writes)
{
    uint64_t end_us = deal->state == DEAL_OVER ? deal->end_us : UINT64_MAX;
    return (writes ? deal->begin_us : end_us) > lost_traded_us(world, key, life);
}

/* Reads and writes of traded keys; what was watched was read at the moment of the deal, if that
 * took effect. Returns how many. */
static uint32_t list_ops(const struct world *world, const struct deal *deal, uint32_t life,
                         const struct versions *versions, struct txn_op *ops_out)
{
    bool committed = deal->outcome == TXN_COMMITTED;
    uint32_t n = 0;
    for (uint32_t i = 0; i < deal->request.watches_n; i++) {
        const struct deal_item *item = &deal->watched[i];
        if (item->key < world->setup.traded &&
            !may_be_emptied(world, deal, item->key, life, false)) {
            ops_out[n++] = (struct txn_op){.kind = TXN_READ,
                                           .key = item->key,
                                           .value = item->there ? (uint64_t)item->number : 0,
                                           .version = item->version};
        }
    }
    for (uint32_t i = 0; deal->kind != DEAL_FETCH && i < deal->request.ops_n; i++) {
        const struct deal_item *item = &deal->items[i];
        bool writes = deal->ops[i].kind == OP_SET;
        if (item->key >= world->setup.traded ||
            may_be_emptied(world, deal, item->key, life, writes)) {
            continue;
        }
        if (deal->kind == DEAL_CLAIM && !may_be_emptied(world, deal, item->key, life, false)) {
            /* That it was written says that it had not been there. */
            ops_out[n++] = (struct txn_op){.kind = TXN_READ, .key = item->key};
        }
        uint64_t version = item->version;
        if (!writes && deal_writes(deal, item->key) && !find_version(versions, item, &version)) {
            continue;
        }
        ops_out[n++] = (struct txn_op){
            .kind = writes ? TXN_WRITE : TXN_READ,
            .key = item->key,
            .value = writes || item->there ? (uint64_t)item->number : 0,
            .version = committed ? version : 0,
        };
    }
    return n;
}

static void judge(struct world *world, const struct txn_history *history)
{
    struct txn_report *report = calloc(1, sizeof *report);
    HK_ASSERT(report != NULL);
    enum check_result result = check_transactions(history, TXN_STRICT_SERIALIZABLE, report);
    world->result->stats.states += report->edges;
    if (result == CHECK_REFUSED) {
        world_violation(world,
                        "the history of transactions is not strictly serializable; times are "
                        "steps, doubled: %s\n%s",
                        txn_anomaly_name(report->anomaly), report->text);
    } else if (result != CHECK_ACCEPTED) {
        world_end(world, SIM_TOO_HARD, "the history of transactions cannot be checked: %s",
                  report->text);
    }
    free(report);
}

void deal_judge(struct world *world, uint32_t life)
{
    const struct traders *ts = &world->traders;
    struct txn *txns = calloc(ts->deals_n + 1, sizeof *txns);
    struct txn_op *ops = calloc(ts->deals_n * 3 * DEAL_OPS_MAX + 1, sizeof *ops);
    struct txn_history history = {.txns = txns, .recording = TXN_VERSIONS};
    HK_ASSERT(txns != NULL && ops != NULL);
    struct versions versions = {.n = (size_t)(ts->next_number - DEAL_FIRST_NUMBER)};
    versions.at = calloc(versions.n + 1, sizeof *versions.at);
    HK_ASSERT(versions.at != NULL);
    for (size_t i = 0; i < ts->deals_n; i++) {
        note_versions(world, ts->deals[i], &versions);
    }
    size_t used = 0;
    for (size_t i = 0; i < ts->deals_n; i++) {
        const struct deal *deal = ts->deals[i];
        uint32_t n =
            is_wanted(world, deal, life) ? list_ops(world, deal, life, &versions, ops + used) : 0;
        if (n == 0) {
            continue;
        }
        bool over = deal->state == DEAL_OVER;
        struct txn *txn = &txns[history.n++];
        *txn = (struct txn){.ops = ops + used,
                            .ops_n = n,
                            .client = deal->trader,
                            .begin_us = deal->begin_us,
                            .end_us = deal->end_us,
                            .outcome = (uint8_t)(over ? deal->outcome : TXN_UNKNOWN)};
        const char *invalid = txn_invalid(txn, TXN_VERSIONS);
        if (invalid != NULL) {
            char text[300];
            deal_describe(deal, text, sizeof text);
            world_violation(world, "a deal that no history can hold: %s: %s", invalid, text);
            history.n--;
        }
        used += n;
    }
    if (!world_broken(world) || world->result->verdict != SIM_VIOLATION) {
        judge(world, &history);
    }
    if (world->result->verdict == SIM_VIOLATION && trace_wanted(&world->trace)) {
        txn_history_print(&history, world->trace.to);
    }
    free(versions.at);
    free(ops);
    free(txns);
}
