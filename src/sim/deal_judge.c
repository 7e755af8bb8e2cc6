/* What all deals of a life amount to: their history, and the bank's books. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
    const struct deal_range *range = deal->ranges[0];
    for (uint32_t i = 0; range == NULL && i < n; i++) {
        some = some || deal->items[i].there;
        money += deal->items[i].there ? deal->items[i].number : 0;
    }
    for (uint32_t i = 0; range != NULL && i < range->n; i++) {
        some = true;
        money += (int64_t)range->found[i].value;
    }
    bool before = world->traders.opened_us == 0 || deal->begin_us <= world->traders.opened_us;
    uint32_t life = world->lives_n - 1;
    if (deal->end_us > lost_money_us(world, life) || deal->end_us > homed_money_us(world, life)) {
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

/* A history under construction. */
struct gathering {
    struct world *world;
    uint32_t life;
    struct versions versions;
    struct txn *txns;
    struct txn_op *ops;
    struct txn_found *found;
    size_t txns_n, ops_n, found_n;
    size_t txns_most, ops_most, found_most;
};

/* Where keys have homes a key that was emptied is another key from then on: the operator has given
 * its slot up, and nobody can have seen of it what had been before. Which of them a deal met that
 * overlaps with the emptying nobody knows. */
struct segments {
    uint32_t first, last;
};
#define SEGMENT_KEYS 64u /* between two numbers of the same key */

/* Whether a key may be missing because the operator gave it up. To leave out what is seen of it
 * then proves no less about the rest. */
static bool may_be_emptied(const struct world *world, const struct deal *deal, uint32_t key,
                           uint32_t life, bool writes)
{
    uint64_t end_us = deal->state == DEAL_OVER ? deal->end_us : UINT64_MAX;
    return (writes ? deal->begin_us : end_us) > lost_traded_us(world, key, life);
}

static struct segments segments_of(const struct gathering *g, const struct deal *deal, uint32_t key)
{
    struct segments at = {0};
    bool over = deal->state == DEAL_OVER && deal->outcome == TXN_COMMITTED;
    uint64_t begin_us;
    uint64_t end_us;
    for (uint32_t i = 0; homed_window(g->world, key, g->life, i, &begin_us, &end_us); i++) {
        at.first += end_us != 0 && end_us <= deal->begin_us;
        at.last += begin_us < (over ? deal->end_us : UINT64_MAX);
    }
    return at;
}

static void add_op(struct gathering *g, struct txn_op op)
{
    HK_ASSERT(g->ops_n < g->ops_most);
    g->ops[g->ops_n++] = op;
}

/* What was found of one key: a range of it alone, whose row needs no version. */
static void add_found(struct gathering *g, uint64_t key, uint64_t value)
{
    HK_ASSERT(g->found_n < g->found_most);
    struct txn_found *found = &g->found[g->found_n];
    *found = (struct txn_found){key, value};
    g->found_n += value != 0;
    add_op(
        g,
        (struct txn_op){
            .kind = TXN_RANGE, .key = key, .end = key + 1, .found = found, .found_n = value != 0});
}

/* A read of a traded key; number 0: it was absent. ranged: by a range. */
static void add_read(struct gathering *g, const struct deal *deal, uint32_t key, int64_t number,
                     uint64_t version, bool ranged)
{
    struct segments at = segments_of(g, deal, key);
    if (key >= g->world->setup.traded || at.first != at.last ||
        may_be_emptied(g->world, deal, key, g->life, false)) {
        return;
    }
    uint64_t numbered = key + (uint64_t)SEGMENT_KEYS * at.first;
    if (ranged || (number != 0 && version == 0)) {
        add_found(g, numbered, (uint64_t)number);
    } else {
        add_op(g, (struct txn_op){.kind = TXN_READ,
                                  .key = numbered,
                                  .value = (uint64_t)number,
                                  .version = number != 0 ? version : 0});
    }
}

/* A deal of its own, which may have happened. */
static void add_perhaps(struct gathering *g, const struct deal *deal, struct txn_op op)
{
    HK_ASSERT(g->txns_n + 1 < g->txns_most && g->ops_n < g->ops_most);
    struct txn_op *ops = &g->ops[--g->ops_most]; /* from the other end */
    *ops = op;
    g->txns[--g->txns_most] = (struct txn){.ops = ops,
                                           .ops_n = 1,
                                           .client = deal->trader,
                                           .begin_us = deal->begin_us,
                                           .outcome = TXN_UNKNOWN};
}

/* number 0: the key is erased. */
static void add_change(struct gathering *g, const struct deal *deal, uint32_t key, int64_t number,
                       uint64_t version)
{
    struct segments at = segments_of(g, deal, key);
    if (key >= g->world->setup.traded || may_be_emptied(g->world, deal, key, g->life, true)) {
        return;
    }
    for (uint32_t i = at.first; i <= at.last; i++) {
        struct txn_op op = {.kind = number == 0 ? TXN_ERASE : TXN_WRITE,
                            .key = key + (uint64_t)SEGMENT_KEYS * i,
                            .value = (uint64_t)number,
                            .version = version};
        if (at.first == at.last) {
            add_op(g, op);
        } else {
            add_perhaps(g, deal, op);
        }
    }
}

/* What it found of each key that it looked at. */
static void add_range(struct gathering *g, const struct deal *deal, const struct deal_range *r)
{
    uint32_t next = 0;
    for (uint32_t key = r->first; key < r->end; key++) {
        if (deal_range_covers(r, key)) {
            bool found = next < r->n && r->found[next].key == key;
            add_read(g, deal, key, found ? (int64_t)r->found[next].value : 0, 0, true);
            next += found;
        }
    }
}

/* A deletion of a range deletes what the range in front of it found; of one whose answer nobody
 * heard, whatever was there. */
static void list_range(struct gathering *g, const struct deal *deal, uint32_t i)
{
    const struct deal_range *r = deal->ranges[i];
    bool committed = deal->outcome == TXN_COMMITTED;
    if (deal->ops[i].kind != TXN_OP_RANGE_DELETE) {
        if (committed) {
            add_range(g, deal, r);
        }
        return;
    }
    uint32_t next = 0;
    for (uint32_t key = r->first; key < r->end; key++) {
        bool found = next < r->n && r->found[next].key == key;
        next += found;
        if (!committed || found) {
            add_change(g, deal, key, 0, 0);
        }
    }
}

static void list_op(struct gathering *g, const struct deal *deal, uint32_t i)
{
    const struct deal_item *item = &deal->items[i];
    bool committed = deal->outcome == TXN_COMMITTED;
    uint64_t version = item->version;
    switch (deal->ops[i].kind) {
    case OP_SET:
        if (deal->kind == DEAL_CLAIM) {
            /* That it was written says that it had not been there. */
            add_read(g, deal, item->key, 0, 0, false);
        }
        add_change(g, deal, item->key, item->number, committed ? version : 0);
        break;
    case OP_DELETE:
        if (!committed || item->gone) {
            add_change(g, deal, item->key, 0, 0);
        }
        break;
    case OP_GET:
        if (deal_writes(deal, item->key) && !find_version(&g->versions, item, &version) &&
            !deal_has_ranges(g->world)) {
            break;
        }
        if (committed) {
            add_read(g, deal, item->key, item->there ? item->number : 0, version, false);
        }
        break;
    default:
        break;
    }
}

/* Reads and writes of traded keys; what was watched was read at the moment of the deal, if that
 * took effect. */
static void list_ops(struct gathering *g, const struct deal *deal)
{
    for (uint32_t i = 0; i < deal->request.watches_n; i++) {
        const struct deal_item *item = &deal->watched[i];
        if (deal->outcome == TXN_COMMITTED && deal->held[i] != NULL) {
            add_range(g, deal, deal->held[i]);
        } else if (deal->outcome == TXN_COMMITTED) {
            add_read(g, deal, item->key, item->there ? item->number : 0, item->version, false);
        }
    }
    for (uint32_t i = 0; deal->kind != DEAL_FETCH && i < deal->request.ops_n; i++) {
        if (deal->ranges[i] != NULL) {
            list_range(g, deal, i);
        } else {
            list_op(g, deal, i);
        }
    }
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

/* At most so many, one for each key and segment that an operation can be about. */
static void gathering_init(struct gathering *g)
{
    const struct traders *ts = &g->world->traders;
    uint64_t begin_us;
    uint64_t end_us;
    size_t segments = 1;
    size_t width = deal_has_ranges(g->world) ? TRADED_MAX : 1;
    for (uint32_t key = 0; key < g->world->setup.traded; key++) {
        uint32_t n = 0;
        while (homed_window(g->world, key, g->life, n, &begin_us, &end_us)) {
            n++;
        }
        segments = n + 1 > segments ? n + 1 : segments;
    }
    g->ops_most = ts->deals_n * 3 * DEAL_OPS_MAX * width * segments + 1;
    g->txns_most = ts->deals_n + (segments > 1 ? g->ops_most : 0) + 2;
    g->found_most = deal_has_ranges(g->world) ? g->ops_most : 1;
    g->txns = calloc(g->txns_most, sizeof *g->txns);
    g->ops = calloc(g->ops_most, sizeof *g->ops);
    g->found = calloc(g->found_most, sizeof *g->found);
    g->versions.n = (size_t)(ts->next_number - DEAL_FIRST_NUMBER);
    g->versions.at = calloc(g->versions.n + 1, sizeof *g->versions.at);
    HK_ASSERT(g->txns != NULL && g->ops != NULL && g->found != NULL && g->versions.at != NULL);
    for (size_t i = 0; i < ts->deals_n; i++) {
        note_versions(g->world, ts->deals[i], &g->versions);
    }
}

static void add_deal(struct gathering *g, const struct deal *deal)
{
    size_t first = g->ops_n;
    bool over = deal->state == DEAL_OVER;
    list_ops(g, deal);
    if (g->ops_n == first) {
        return;
    }
    HK_ASSERT(g->txns_n < g->txns_most);
    struct txn *txn = &g->txns[g->txns_n++];
    *txn = (struct txn){.ops = g->ops + first,
                        .ops_n = (uint32_t)(g->ops_n - first),
                        .client = deal->trader,
                        .begin_us = deal->begin_us,
                        .end_us = deal->end_us,
                        .outcome = (uint8_t)(over ? deal->outcome : TXN_UNKNOWN)};
    const char *invalid = txn_invalid(txn, TXN_VERSIONS);
    if (invalid != NULL) {
        char text[300];
        deal_describe(deal, text, sizeof text);
        world_violation(g->world, "a deal that no history can hold: %s: %s", invalid, text);
        g->txns_n--;
    }
}

void deal_judge(struct world *world, uint32_t life)
{
    struct gathering g = {.world = world, .life = life};
    gathering_init(&g);
    size_t txns_all = g.txns_most;
    for (size_t i = 0; i < world->traders.deals_n; i++) {
        if (is_wanted(world, world->traders.deals[i], life)) {
            add_deal(&g, world->traders.deals[i]);
        }
    }
    memmove(g.txns + g.txns_n, g.txns + g.txns_most, (txns_all - g.txns_most) * sizeof *g.txns);
    struct txn_history history = {
        .txns = g.txns, .n = g.txns_n + txns_all - g.txns_most, .recording = TXN_VERSIONS};
    if (!world_broken(world) || world->result->verdict != SIM_VIOLATION) {
        judge(world, &history);
    }
    if (world->result->verdict == SIM_VIOLATION && trace_wanted(&world->trace)) {
        txn_history_print(&history, world->trace.to);
    }
    free(g.versions.at);
    free(g.found);
    free(g.ops);
    free(g.txns);
}
