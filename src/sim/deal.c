#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/world.h"

#define PAID_MAX 40
/* A trader's deals that only read name so many keys at most. */
#define KEYS_OF_DEAL 4u

const char *const deal_kind_names[DEAL_KINDS] = {
    [DEAL_GET] = "get",         [DEAL_SET] = "set",       [DEAL_READ] = "read",
    [DEAL_WRITE] = "write",     [DEAL_MIXED] = "mixed",   [DEAL_LOOK] = "look",
    [DEAL_SWAP] = "swap",       [DEAL_CLAIM] = "claim",   [DEAL_FETCH] = "fetch",
    [DEAL_RANGE] = "range",     [DEAL_FILL] = "fill",     [DEAL_ERASE] = "erase",
    [DEAL_CLEAR] = "clear",     [DEAL_SPAN] = "span",     [DEAL_HOLD] = "hold",
    [DEAL_OPEN] = "open",       [DEAL_PAY] = "pay",       [DEAL_PEEK] = "peek",
    [DEAL_MOVE] = "move",       [DEAL_RENAME] = "rename", [DEAL_AUDIT] = "audit",
    [DEAL_CONTROL] = "control",
};

bool deal_updates(const struct deal *deal)
{
    for (uint32_t i = 0; i < deal->request.ops_n; i++) {
        uint32_t kind = deal->ops[i].kind;
        bool looks = kind == TXN_OP_RANGE || kind == TXN_OP_RANGE_COUNT;
        if (!looks && (kind >= OP_KINDS || op_updates(&deal->ops[i]))) {
            return true;
        }
    }
    return false;
}

void deal_describe(const struct deal *deal, char *to, size_t size)
{
    size_t n = (size_t)snprintf(to, size, "trader %" PRIu32 " deal %" PRIu32 ": %s", deal->trader,
                                deal->index, deal_kind_names[deal->kind]);
    for (uint32_t i = 0; i < deal->request.ops_n && n < size; i++) {
        const struct deal_range *r = deal->ranges[i];
        if (r != NULL) {
            n += (size_t)snprintf(to + n, size - n,
                                  " %" PRIu32 "..%" PRIu32 "%s%" PRIu32 "{%" PRIu32, r->first,
                                  r->end, r->reverse ? ">" : "<", r->limit, r->n);
            for (uint32_t j = 0; j < r->n && n < size; j++) {
                n += (size_t)snprintf(to + n, size - n, " %" PRIu64 "=%" PRIu64, r->found[j].key,
                                      r->found[j].value);
            }
            n += n < size ? (size_t)snprintf(to + n, size - n, "}") : 0;
            continue;
        }
        n += (size_t)snprintf(to + n, size - n, " %" PRIu32 "=%" PRId64 "@%" PRIx64,
                              deal->items[i].key, deal->items[i].number, deal->items[i].version);
    }
}

void deal_destroy(struct deal *deal)
{
    for (uint32_t i = 0; i < DEAL_OPS_MAX; i++) {
        free(deal->bytes[i]);
        free(deal->ranges[i]);
        free(deal->held[i]);
    }
    free(deal);
}

/* ---- What to ask ---- */

struct deal *deal_add(struct world *world, const struct trader *trader, enum deal_kind kind)
{
    struct traders *ts = &world->traders;
    if (ts->deals_n == ts->deals_capacity) {
        ts->deals_capacity = ts->deals_capacity == 0 ? 256 : 2 * ts->deals_capacity;
        ts->deals = realloc(ts->deals, ts->deals_capacity * sizeof(struct deal *));
        HK_ASSERT(ts->deals != NULL);
    }
    struct deal *deal = calloc(1, sizeof *deal);
    HK_ASSERT(deal != NULL && ts->deals_n < DEAL_AHEAD);
    deal->index = (uint32_t)ts->deals_n;
    deal->trader = trader->id;
    deal->kind = kind;
    deal->outcome = TXN_UNKNOWN;
    deal->request.ops = deal->ops;
    deal->request.watches = deal->watches;
    ts->deals[ts->deals_n++] = deal;
    return deal;
}

struct op *deal_add_op(struct world *world, struct deal *deal, uint32_t key, enum op_kind kind)
{
    const struct trade_key *k = &world->traders.keys[key];
    uint32_t i = deal->request.ops_n++;
    HK_ASSERT(i < DEAL_OPS_MAX);
    deal->items[i] = (struct deal_item){.key = key};
    deal->ops[i] = (struct op){.kind = (uint8_t)kind, .key = bytes_of(k->bytes, k->n)};
    return &deal->ops[i];
}

static void give_value(struct deal *deal, uint32_t i, const uint8_t *at, uint32_t n)
{
    deal->bytes[i] = malloc((size_t)n + 1);
    HK_ASSERT(deal->bytes[i] != NULL);
    memcpy(deal->bytes[i], at, n);
    deal->ops[i].value = bytes_of(deal->bytes[i], n);
}

void deal_add_read(struct world *world, struct deal *deal, uint32_t key)
{
    (void)deal_add_op(world, deal, key, OP_GET);
}

struct op *deal_add_write(struct world *world, struct deal *deal, uint32_t key)
{
    uint8_t value[VALUE_BYTES_MAX];
    uint32_t i = deal->request.ops_n;
    struct op *op = deal_add_op(world, deal, key, OP_SET);
    int64_t number = world->traders.next_number++;
    deal->items[i].number = number;
    give_value(deal, i, value,
               value_encode(KEY_GENERAL, world->setup.value_profile, number, value));
    return op;
}

/* Sets an account to so much money. */
static struct op *add_money(struct world *world, struct deal *deal, uint32_t key, int64_t money)
{
    char text[24];
    uint32_t i = deal->request.ops_n;
    struct op *op = deal_add_op(world, deal, key, OP_SET);
    int n = snprintf(text, sizeof text, "%" PRId64, money);
    give_value(deal, i, (const uint8_t *)text, (uint32_t)n);
    return op;
}

static void add_watch(struct world *world, struct deal *deal, const struct deal_item *item)
{
    const struct trade_key *k = &world->traders.keys[item->key];
    uint32_t i = deal->request.watches_n++;
    HK_ASSERT(i < DEAL_OPS_MAX);
    deal->watches[i] =
        (struct txn_watch){.key = bytes_of(k->bytes, k->n), .version = item->version};
    deal->watched[i] = *item;
}

static bool chance(struct world *world, uint32_t permille)
{
    return random_chance(&world->chance_traders, 1000 * permille);
}

static uint32_t below(struct world *world, uint32_t n)
{
    return (uint32_t)random_below(&world->chance_traders, n);
}

/* Different traded keys, in any order; returns how many. */
static uint32_t draw_keys(struct world *world, uint32_t most, uint32_t keys_out[TRADED_MAX])
{
    uint32_t n = world->setup.traded;
    for (uint32_t i = 0; i < n; i++) {
        keys_out[i] = i;
    }
    for (uint32_t i = n; i-- > 1;) {
        uint32_t other = below(world, i + 1);
        uint32_t kept = keys_out[i];
        keys_out[i] = keys_out[other];
        keys_out[other] = kept;
    }
    most = most < n ? most : n;
    return 1 + below(world, most);
}

static uint32_t account(const struct world *world, uint32_t i)
{
    return world->setup.traded + i;
}

/* Two accounts. */
static void draw_accounts(struct world *world, uint32_t *from_out, uint32_t *to_out)
{
    uint32_t n = world->setup.accounts;
    uint32_t from = below(world, n);
    *from_out = account(world, from);
    *to_out = account(world, (from + 1 + below(world, n - 1)) % n);
}

static void fill_mixed(struct world *world, struct deal *deal)
{
    uint32_t keys[TRADED_MAX];
    uint32_t n = draw_keys(world, KEYS_OF_DEAL, keys);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t what = below(world, 4);
        if (what != 0) {
            deal_add_read(world, deal, keys[i]);
        }
        if (what != 1) {
            deal_add_write(world, deal, keys[i]);
        }
        if (what == 3) {
            deal_add_read(world, deal, keys[i]);
        }
    }
}

static void fill_pay(struct world *world, struct deal *deal)
{
    uint32_t from;
    uint32_t to;
    draw_accounts(world, &from, &to);
    int64_t amount = 1 + (int64_t)below(world, PAID_MAX);
    deal_add_op(world, deal, from, OP_ADD)->number = -amount;
    if (chance(world, 400)) {
        deal_add_write(world, deal, below(world, world->setup.traded));
    }
    deal_add_op(world, deal, to, OP_ADD)->number = amount;
    deal->request.flags |= chance(world, 300) ? TXN_STOP : 0u;
}

static void fill_accounts(struct world *world, struct deal *deal, bool open)
{
    uint32_t n = world->setup.accounts;
    if (!open && deal_has_ranges(world) && chance(world, 500)) {
        (void)deal_range_add(world, deal, TXN_OP_RANGE, account(world, 0), account(world, n));
        return;
    }
    for (uint32_t i = 0; i < world->setup.accounts; i++) {
        if (open) {
            add_money(world, deal, account(world, i), ACCOUNT_MONEY)->flags = OPF_NX;
        } else {
            deal_add_read(world, deal, account(world, i));
        }
    }
}

static void fill_keys(struct world *world, struct deal *deal, uint32_t most)
{
    uint32_t keys[TRADED_MAX];
    uint32_t n = draw_keys(world, most, keys);
    for (uint32_t i = 0; i < n; i++) {
        bool writes =
            deal->kind == DEAL_SET || deal->kind == DEAL_WRITE || deal->kind == DEAL_CLAIM;
        if (writes) {
            deal_add_write(world, deal, keys[i])->flags = deal->kind == DEAL_CLAIM ? OPF_NX : 0;
        } else {
            deal_add_read(world, deal, keys[i]);
        }
    }
    if (deal->kind == DEAL_WRITE && chance(world, 100)) {
        deal_add_write(world, deal, keys[0]); /* what it wrote before nobody may see */
    }
}

static void fill(struct world *world, struct deal *deal)
{
    uint32_t from;
    uint32_t to;
    switch (deal->kind) {
    case DEAL_GET:
    case DEAL_SET:
        fill_keys(world, deal, 1);
        break;
    case DEAL_READ:
    case DEAL_WRITE:
    case DEAL_LOOK:
        fill_keys(world, deal, KEYS_OF_DEAL);
        break;
    case DEAL_CLAIM:
        deal->request.flags = TXN_ALL;
        fill_keys(world, deal, KEYS_OF_DEAL);
        break;
    case DEAL_FETCH:
        deal->request.flags = TXN_ACQUIRE;
        fill_keys(world, deal, KEYS_OF_DEAL);
        break;
    case DEAL_MIXED:
        fill_mixed(world, deal);
        break;
    case DEAL_OPEN:
        deal->request.flags = TXN_ALL;
        fill_accounts(world, deal, true);
        break;
    case DEAL_PAY:
        fill_pay(world, deal);
        break;
    case DEAL_PEEK:
        draw_accounts(world, &from, &to);
        deal_add_read(world, deal, from);
        deal_add_read(world, deal, to);
        break;
    case DEAL_RENAME:
        draw_accounts(world, &from, &to);
        {
            struct op *op = deal_add_op(world, deal, from, OP_GET);
            op->kind = TXN_OP_RENAME;
            op->flags = OPF_NX;
            op->arg = bytes_of(world->traders.keys[to].bytes, world->traders.keys[to].n);
        }
        break;
    case DEAL_CONTROL:
        fill_accounts(world, deal, false);
        deal_add_write(world, deal, below(world, world->setup.traded));
        break;
    case DEAL_AUDIT:
        fill_accounts(world, deal, false);
        break;
    case DEAL_RANGE:
    case DEAL_FILL:
    case DEAL_ERASE:
    case DEAL_CLEAR:
    case DEAL_SPAN:
        deal_range_fill(world, deal);
        break;
    case DEAL_SWAP:
    case DEAL_MOVE:
    case DEAL_HOLD:
    case DEAL_KINDS:
        HK_ASSERT(false);
    }
}

static enum deal_kind draw_kind(struct world *world)
{
    static const uint8_t shares[DEAL_KINDS] = {
        [DEAL_GET] = 6,     [DEAL_SET] = 6,  [DEAL_READ] = 14,  [DEAL_WRITE] = 12,
        [DEAL_MIXED] = 18,  [DEAL_LOOK] = 8, [DEAL_CLAIM] = 3,  [DEAL_FETCH] = 2,
        [DEAL_PAY] = 12,    [DEAL_PEEK] = 6, [DEAL_RENAME] = 2, [DEAL_AUDIT] = 8,
        [DEAL_CONTROL] = 3,
    };
    uint32_t sum = 0;
    for (uint32_t i = 0; i < DEAL_KINDS; i++) {
        sum += shares[i];
    }
    uint32_t at = below(world, sum);
    uint32_t kind = 0;
    while (at >= shares[kind]) {
        at -= shares[kind++];
    }
    return (enum deal_kind)kind;
}

/* Some deals have no command. */
static void translate(struct deal *deal)
{
    deal->request.flags = 0;
    if (deal->kind == DEAL_FETCH) {
        deal->kind = DEAL_READ;
    } else if (deal->kind == DEAL_CLAIM && deal->request.ops_n == 1) {
        deal->kind = DEAL_WRITE;
        deal->ops[0].flags = 0;
    }
}

struct deal *deal_draw(struct world *world, struct trader *trader)
{
    struct traders *ts = &world->traders;
    if (trader->next != NO_OP) {
        struct deal *deal = ts->deals[trader->next];
        trader->next = NO_OP;
        return deal;
    }
    bool ranges = deal_has_ranges(world);
    enum deal_kind kind = ranges ? deal_range_draw(world) : draw_kind(world);
    bool plain = !ranges && (world->setup.engine->traits & ENGINE_OWNED) == 0;
    if (plain) {
        kind = chance(world, 500) ? DEAL_GET : DEAL_SET;
    } else if (kind >= DEAL_OPEN && ts->opened_us == 0) {
        kind = DEAL_OPEN;
    }
    struct deal *deal = deal_add(world, trader, kind);
    fill(world, deal);
    if (trader->speaks) {
        translate(deal);
    }
    return deal;
}

struct deal *deal_read_all(struct world *world, struct trader *trader, uint32_t part)
{
    bool ranges = deal_has_ranges(world);
    bool plain = !ranges && (world->setup.engine->traits & ENGINE_OWNED) == 0;
    if (part > 1 || (part == 1 && plain)) {
        return NULL;
    }
    struct deal *deal = deal_add(world, trader,
                                 plain       ? DEAL_GET
                                 : part == 0 ? DEAL_READ
                                             : DEAL_AUDIT);
    if (part == 0 && ranges) {
        (void)deal_range_add(world, deal, TXN_OP_RANGE, 0, world->setup.traded);
    }
    for (uint32_t i = 0; part == 0 && !ranges && i < (plain ? 1 : world->setup.traded); i++) {
        deal_add_read(world, deal, i);
    }
    if (part == 1) {
        fill_accounts(world, deal, false);
    }
    return deal;
}

/* ---- What came of it ---- */

bool deal_writes(const struct deal *deal, uint32_t key)
{
    for (uint32_t i = 0; i < deal->request.ops_n; i++) {
        uint32_t kind = deal->ops[i].kind;
        const struct deal_range *r = deal->ranges[i];
        bool meets = r != NULL ? kind == TXN_OP_RANGE_DELETE && deal_range_covers(r, key)
                               : kind != OP_GET && deal->items[i].key == key;
        if (meets) {
            return true;
        }
    }
    return false;
}

/* own: the deal writes the key as well; then the version is that of its own write. */
static const char *understand_read(const struct world *world, struct deal_item *item,
                                   const struct answer *answer, bool own)
{
    item->there = answer->kind == ANSWER_VALUE;
    if (answer->kind == ANSWER_NIL) {
        return item->version == 0 || own ? NULL : "a version of what is not there";
    }
    if (!item->there) {
        return "an answer that is no value";
    }
    enum key_class class = item->key < world->setup.traded ? KEY_GENERAL : KEY_COUNTER;
    if (!value_decode(class, world->setup.value_profile, answer->value, &item->number)) {
        return "a value that nobody wrote";
    }
    return item->version != 0 || own ? NULL : "no version of what is there";
}

static const char *understand_one(const struct world *world, struct deal *deal, uint32_t i,
                                  const struct answer *answer, uint64_t version)
{
    struct deal_item *item = &deal->items[i];
    if (deal->ranges[i] != NULL) {
        return deal_range_understand(world, deal, i, answer, version);
    }
    item->version = version;
    item->gone =
        deal->ops[i].kind == OP_DELETE && answer->kind == ANSWER_NUMBER && answer->number == 1;
    switch (deal->ops[i].kind) {
    case OP_GET:
        return understand_read(world, item, answer, deal_writes(deal, item->key));
    case OP_ADD:
        return answer->kind == ANSWER_NUMBER ? NULL : "a sum that is no number";
    case TXN_OP_RENAME:
        return answer->kind == ANSWER_NUMBER ||
                       (answer->kind == ANSWER_ERROR && answer->number == HK_ERR_NOTFOUND)
                   ? NULL
                   : "an answer that is none to a change of name";
    case OP_DELETE:
        if (deal->kind == DEAL_ERASE && i > 0 && deal->items[i - 1].there != item->gone) {
            return "a deletion that does not see what was read before it";
        }
        return answer->kind == ANSWER_OK || answer->kind == ANSWER_NUMBER
                   ? NULL
                   : "an answer that is none to a deletion";
    default:
        if (answer->kind != ANSWER_OK) {
            return "an answer that is not OK";
        }
        return version != 0 ? NULL : "no version of what was written";
    }
}

static bool none_applied(const struct reply *reply)
{
    bool none = true;
    for (uint32_t i = 0; i < reply->answers_n; i++) {
        none = none && !reply->answers[i].applied;
    }
    return none;
}

const char *deal_understand(struct world *world, struct deal *deal, const struct reply *reply)
{
    const struct answer *answer = &reply->answer;
    if (deal->alone) {
        deal->outcome = TXN_COMMITTED;
        return understand_one(world, deal, 0, answer, reply->version);
    }
    bool nothing =
        answer->kind == ANSWER_NIL || (answer->kind == ANSWER_NUMBER && answer->number == 0);
    if (nothing) {
        deal->outcome = TXN_ABORTED;
        bool may = answer->kind == ANSWER_NIL ? deal->request.watches_n > 0
                                              : (deal->request.flags & (TXN_ALL | TXN_STOP)) != 0;
        return may ? NULL : "an answer that fits no transaction of this form";
    }
    if (answer->kind != ANSWER_OK) {
        return "an answer that is none to a transaction";
    }
    deal->outcome = TXN_COMMITTED;
    if (deal->kind == DEAL_FETCH) {
        return NULL;
    }
    if (reply->answers_n != deal->request.ops_n) {
        return "another number of answers than of operations";
    }
    if (deal->row && !reply->answers[0].applied) {
        deal->outcome = TXN_ABORTED;
        return none_applied(reply) ? NULL : "a part of what is done as a whole";
    }
    const char *wrong = NULL;
    for (uint32_t i = 0; wrong == NULL && i < reply->answers_n; i++) {
        wrong = understand_one(world, deal, i, &reply->answers[i], reply->versions[i]);
    }
    return wrong;
}

/* What was looked at is written anew, if it is still so. */
static struct deal *follow_look(struct world *world, struct trader *trader, const struct deal *look)
{
    struct deal *deal = deal_add(world, trader, DEAL_SWAP);
    for (uint32_t i = 0; i < look->request.ops_n; i++) {
        add_watch(world, deal, &look->items[i]);
        if (i == 0 || chance(world, 600)) {
            deal_add_write(world, deal, look->items[i].key);
        }
    }
    return deal;
}

static struct deal *follow_peek(struct world *world, struct trader *trader, const struct deal *peek)
{
    const struct deal_item *from = &peek->items[0];
    const struct deal_item *to = &peek->items[1];
    int64_t has = from->there ? from->number : 0;
    int64_t then = to->there ? to->number : 0;
    bool closes = has >= 0 && chance(world, 400);
    int64_t amount = closes ? has : 1 + (int64_t)below(world, PAID_MAX);
    struct deal *deal = deal_add(world, trader, DEAL_MOVE);
    add_watch(world, deal, from);
    add_watch(world, deal, to);
    if (closes) {
        deal_add_op(world, deal, from->key, OP_DELETE)->flags = OPF_BLIND;
    } else {
        add_money(world, deal, from->key, has - amount);
    }
    add_money(world, deal, to->key, then + amount);
    return deal;
}

struct deal *deal_follow(struct world *world, struct trader *trader, const struct deal *deal)
{
    switch ((uint32_t)deal->kind) {
    case DEAL_LOOK:
        return follow_look(world, trader, deal);
    case DEAL_PEEK:
        return follow_peek(world, trader, deal);
    case DEAL_SPAN:
        return deal_range_follow(world, trader, deal);
    default:
        return NULL;
    }
}
