#include "support/check_txns.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define BRUTE_TXNS 10u
#define BRUTE_KEYS 4u
#define BRUTE_LIST 40u
#define OPS_MAX 8u

void txns_init(struct txns *t, enum txn_recording recording, size_t txns_max, size_t ops_max,
               size_t numbers_max)
{
    *t = (struct txns){.txns_max = txns_max, .ops_max = ops_max, .numbers_max = numbers_max};
    t->txns = calloc(txns_max, sizeof *t->txns);
    t->ops = calloc(ops_max, sizeof *t->ops);
    t->numbers = calloc(numbers_max + 1, sizeof *t->numbers);
    HK_ASSERT(t->txns != NULL && t->ops != NULL && t->numbers != NULL);
    t->history = (struct txn_history){.txns = t->txns, .recording = recording};
}

void txns_deinit(struct txns *t)
{
    free(t->txns);
    free(t->ops);
    free(t->numbers);
    *t = (struct txns){0};
}

static struct txn *new_txn(struct txns *t)
{
    HK_ASSERT(t->history.n < t->txns_max);
    struct txn *txn = &t->txns[t->history.n++];
    *txn = (struct txn){.ops = t->ops + t->ops_n};
    return txn;
}

/* Operations belong to the transaction that was added last. */
static struct txn_op *new_op(struct txns *t)
{
    HK_ASSERT(t->ops_n < t->ops_max);
    t->txns[t->history.n - 1].ops_n++;
    return &t->ops[t->ops_n++];
}

static uint64_t *new_numbers(struct txns *t, size_t n)
{
    HK_ASSERT(t->numbers_n + n <= t->numbers_max);
    uint64_t *numbers = t->numbers + t->numbers_n;
    t->numbers_n += n;
    return numbers;
}

/* A copy of a list, with room for more. */
static uint64_t *copy_numbers(struct txns *t, const uint64_t *list, size_t n, size_t more)
{
    uint64_t *copy = new_numbers(t, n + more);
    if (n > 0) {
        memcpy(copy, list, n * sizeof *copy);
    }
    return copy;
}

static uint64_t parse_number(const char **text)
{
    char *end;
    uint64_t number = strtoull(*text, &end, 10);
    HK_ASSERT(end != *text);
    *text = end;
    return number;
}

static bool parse_char(const char **text, char wanted)
{
    bool is = **text == wanted;
    *text += is;
    return is;
}

static void parse_range(struct txns *t, const char **text, struct txn_op *op)
{
    op->end = parse_char(text, '-') ? parse_number(text) : op->key + 1;
    op->reverse = **text == '>';
    op->limit = parse_char(text, '<') || parse_char(text, '>') ? (uint32_t)parse_number(text) : 0;
    op->found = &t->found[t->found_n];
    HK_ASSERT(parse_char(text, '=') && parse_char(text, '{'));
    while (!parse_char(text, '}')) {
        HK_ASSERT(t->found_n < sizeof t->found / sizeof t->found[0]);
        struct txn_found *found = &t->found[t->found_n++];
        found->key = parse_number(text);
        HK_ASSERT(parse_char(text, ':'));
        found->value = parse_number(text);
        op->found_n++;
        (void)parse_char(text, ' ');
    }
}

static void parse_op(struct txns *t, const char **text)
{
    struct txn_op *op = new_op(t);
    *op = (struct txn_op){.kind = **text == 'r'   ? TXN_READ
                                  : **text == 'e' ? TXN_ERASE
                                  : **text == 's' ? TXN_RANGE
                                                  : TXN_WRITE};
    (*text)++;
    op->key = parse_number(text);
    if (op->kind == TXN_RANGE) {
        parse_range(t, text, op);
        return;
    }
    if (op->kind == TXN_ERASE) {
        op->version = parse_char(text, '@') ? parse_number(text) : 0;
        return;
    }
    if (**text != '=') {
        return;
    }
    (*text)++;
    if (**text != '[') {
        op->value = parse_number(text);
        if (**text == '@') {
            (*text)++;
            op->version = parse_number(text);
        }
        return;
    }
    (*text)++;
    op->list = new_numbers(t, 0);
    while (**text != ']') {
        *new_numbers(t, 1) = parse_number(text);
        op->list_n++;
        *text += **text == ' ';
    }
    (*text)++;
}

struct txn *txns_add_as(struct txns *t, enum txn_outcome outcome, uint64_t begin_us,
                        uint64_t end_us, uint32_t client, const char *text)
{
    struct txn *txn = new_txn(t);
    txn->outcome = (uint8_t)outcome;
    txn->begin_us = begin_us;
    txn->end_us = end_us;
    txn->client = client;
    while (*text != '\0') {
        if (*text == ' ') {
            text++;
        } else {
            parse_op(t, &text);
        }
    }
    return txn;
}

struct txn *txns_add(struct txns *t, uint64_t begin_us, uint64_t end_us, uint32_t client,
                     const char *text)
{
    return txns_add_as(t, TXN_COMMITTED, begin_us, end_us, client, text);
}

struct brute_key {
    uint64_t value;
    uint64_t version;
    uint64_t list[BRUTE_LIST];
    uint32_t list_n;
};

struct brute {
    const struct txn_history *history;
    enum txn_level level;
};

/* The version of a write, which perhaps only a read knows. */
static uint64_t version_of(const struct txn_history *history, const struct txn_op *write)
{
    for (size_t i = 0; i < history->n && write->version == 0; i++) {
        const struct txn *txn = &history->txns[i];
        for (uint32_t j = 0; j < txn->ops_n && txn->outcome == TXN_COMMITTED; j++) {
            const struct txn_op *op = &txn->ops[j];
            if (op->kind == TXN_READ && op->key == write->key && op->value == write->value) {
                return op->version;
            }
        }
    }
    return write->version;
}

static bool is_write(const struct txn_op *op)
{
    return op->kind == TXN_WRITE || op->kind == TXN_ERASE;
}

static bool writes_later(const struct txn *txn, uint32_t i)
{
    for (uint32_t j = i + 1; j < txn->ops_n; j++) {
        if (is_write(&txn->ops[j]) && txn->ops[j].key == txn->ops[i].key) {
            return true;
        }
    }
    return false;
}

static bool wrote_before(const struct txn *txn, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++) {
        if (is_write(&txn->ops[j]) && txn->ops[j].key == txn->ops[i].key) {
            return true;
        }
    }
    return false;
}

static bool brute_read(const struct txn_op *op, const struct brute_key *key, bool own,
                       enum txn_recording recording)
{
    if (recording == TXN_LISTS) {
        return op->list_n == key->list_n &&
               (op->list_n == 0 || memcmp(op->list, key->list, op->list_n * sizeof *op->list) == 0);
    }
    return op->value == key->value && (own || key->value == 0 || op->version == key->version);
}

/* Whether some range found what was written. */
static bool was_found(const struct txn_history *history, const struct txn_op *write)
{
    for (size_t i = 0; i < history->n; i++) {
        const struct txn *txn = &history->txns[i];
        for (uint32_t j = 0; j < txn->ops_n && txn->outcome == TXN_COMMITTED; j++) {
            const struct txn_op *op = &txn->ops[j];
            for (uint32_t k = 0; op->kind == TXN_RANGE && k < op->found_n; k++) {
                if (op->found[k].key == write->key && op->found[k].value == write->value) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* A range as people read it: from one of its ends on, key by key, until it has enough. */
static bool brute_range(const struct txn_op *op, const struct brute_key *keys)
{
    uint32_t n = 0;
    for (uint64_t i = 0; i < BRUTE_KEYS && (op->limit == 0 || n < op->limit); i++) {
        uint64_t key = op->reverse ? BRUTE_KEYS - 1 - i : i;
        if (key < op->key || key >= op->end || keys[key].value == 0) {
            continue;
        }
        uint32_t at = op->reverse ? op->found_n - 1 - n : n;
        if (n >= op->found_n || op->found[at].key != key ||
            op->found[at].value != keys[key].value) {
            return false;
        }
        n++;
    }
    return n == op->found_n;
}

/* Runs the transaction; false if a read or a version contradicts it. */
static bool brute_run(const struct brute *b, const struct txn *txn, struct brute_key *keys)
{
    bool lists = b->history->recording == TXN_LISTS;
    struct brute_key before[BRUTE_KEYS];
    memcpy(before, keys, sizeof before);
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        const struct txn_op *op = &txn->ops[i];
        if (op->kind == TXN_RANGE) {
            if (txn->outcome == TXN_COMMITTED && !brute_range(op, keys)) {
                return false;
            }
            continue;
        }
        struct brute_key *key = &keys[op->key];
        if (op->kind == TXN_READ) {
            if (txn->outcome == TXN_COMMITTED &&
                !brute_read(op, key, wrote_before(txn, i), b->history->recording)) {
                return false;
            }
            continue;
        }
        if (lists) {
            HK_ASSERT(key->list_n < BRUTE_LIST);
            key->list[key->list_n++] = op->value;
            continue;
        }
        bool last = !writes_later(txn, i);
        if (op->kind == TXN_ERASE) {
            if (op->version != 0 && op->version <= key->version) {
                return false;
            }
            key->value = 0;
            key->version = op->version != 0 ? op->version : key->version;
            continue;
        }
        uint64_t version = version_of(b->history, op);
        if (last && version == 0 && was_found(b->history, op)) {
            key->value = op->value;
            continue;
        }
        if (last && version == 0) {
            /* Nobody knows where it belongs, so nobody saw it. */
            *key = before[op->key];
            continue;
        }
        if (last && version <= key->version) {
            return false;
        }
        key->value = op->value;
        key->version = last ? version : key->version;
    }
    return true;
}

/* Whether transaction j, which committed, must come before i. */
static bool comes_before(const struct brute *b, size_t j, size_t i)
{
    const struct txn *earlier = &b->history->txns[j];
    const struct txn *txn = &b->history->txns[i];
    switch (b->level) {
    case TXN_SERIALIZABLE:
        break;
    case TXN_SESSION_SERIALIZABLE:
        return earlier->client == txn->client &&
               (earlier->begin_us < txn->begin_us || (earlier->begin_us == txn->begin_us && j < i));
    case TXN_STRICT_SERIALIZABLE:
        return earlier->end_us < txn->begin_us;
    }
    return false;
}

static bool may_be_next(const struct brute *b, uint32_t rest, size_t i)
{
    for (size_t j = 0; j < b->history->n; j++) {
        if ((rest >> j & 1) != 0 && j != i && b->history->txns[j].outcome == TXN_COMMITTED &&
            comes_before(b, j, i)) {
            return false;
        }
    }
    return true;
}

/* The depth is at most BRUTE_TXNS. */
static bool brute_rest(const struct brute *b, uint32_t rest, const struct brute_key *keys)
{
    bool committed_left = false;
    for (size_t i = 0; i < b->history->n; i++) {
        const struct txn *txn = &b->history->txns[i];
        if ((rest >> i & 1) == 0 || txn->outcome == TXN_ABORTED) {
            continue;
        }
        committed_left = committed_left || txn->outcome == TXN_COMMITTED;
        struct brute_key after[BRUTE_KEYS];
        memcpy(after, keys, sizeof after);
        if (may_be_next(b, rest, i) && brute_run(b, txn, after) &&
            brute_rest(b, rest & ~(1u << i), after)) {
            return true;
        }
    }
    return !committed_left;
}

bool txns_brute_accepts(const struct txn_history *history, enum txn_level level)
{
    HK_ASSERT(history->n <= BRUTE_TXNS);
    struct brute_key keys[BRUTE_KEYS] = {0};
    struct brute b = {history, level};
    return brute_rest(&b, (1u << history->n) - 1, keys);
}

/* What the store of a generated history does at one moment. */
struct action {
    uint64_t moment_us;
    struct txn_op *op;
    struct txn *txn;
    bool done; /* the transaction takes effect */
};

struct stored_key {
    uint64_t key;
    uint64_t value;
    uint64_t version;
    uint64_t *list;
    uint32_t list_n;
    uint32_t list_max;
};

struct store {
    struct stored_key *keys; /* numbered from keys_from on; older ones are forgotten */
    uint32_t keys_n;
};

static int compare_actions(const void *left, const void *right)
{
    const struct action *a = left;
    const struct action *b = right;
    if (a->moment_us != b->moment_us) {
        return a->moment_us < b->moment_us ? -1 : 1;
    }
    return (a->op > b->op) - (a->op < b->op);
}

static struct stored_key *stored(struct store *store, uint64_t key)
{
    HK_ASSERT(key < store->keys_n);
    return &store->keys[key];
}

static void act(struct random *r, struct txns *t, struct store *store, const struct action *a)
{
    struct txn_op *op = a->op;
    struct stored_key *key = stored(store, op->key);
    if (op->kind == TXN_READ) {
        if (t->history.recording == TXN_VERSIONS) {
            op->value = key->value;
            op->version = key->version;
        } else {
            op->list = copy_numbers(t, key->list, key->list_n, 0);
            op->list_n = key->list_n;
        }
        return;
    }
    uint64_t version = key->version + 1 + random_below(r, 2);
    if (t->history.recording == TXN_VERSIONS) {
        op->version = version;
    }
    if (!a->done) {
        op->version = random_chance(r, 500000) ? op->version : 0;
        return;
    }
    key->value = op->value;
    key->version = version;
    if (t->history.recording == TXN_LISTS) {
        if (key->list_n == key->list_max) {
            key->list_max = 2 * key->list_max + 8;
            key->list = realloc(key->list, key->list_max * sizeof *key->list);
            HK_ASSERT(key->list != NULL);
        }
        key->list[key->list_n++] = op->value;
    }
    if (a->txn->outcome == TXN_UNKNOWN && random_chance(r, 500000)) {
        op->version = 0;
    }
}

static void draw_txn(struct random *r, const struct txns_generate *g, struct txns *t, uint32_t i,
                     uint64_t *ready_us)
{
    struct txn *txn = new_txn(t);
    txn->client = i % g->clients;
    txn->begin_us = ready_us[txn->client] + random_below(r, g->length_us + 1);
    txn->end_us = txn->begin_us + random_below(r, g->length_us + 1);
    ready_us[txn->client] = txn->end_us + (random_chance(r, 700000) ? 1 : 0);
    if (random_chance(r, g->aborted_ppm)) {
        txn->outcome = TXN_ABORTED;
    } else if (random_chance(r, g->unknown_ppm)) {
        txn->outcome = TXN_UNKNOWN;
    }
    uint32_t ops = 1 + (uint32_t)random_below(r, g->ops);
    uint32_t from = g->keys_from == 0 ? 0 : i / g->keys_from * g->keys;
    for (uint32_t j = 0; j < ops; j++) {
        struct txn_op *op = new_op(t);
        op->key = from + random_below(r, g->keys);
        op->kind = random_chance(r, 500000) ? TXN_READ : TXN_WRITE;
        op->value = op->kind == TXN_WRITE ? (uint64_t)i * OPS_MAX + j + 1 : 0;
    }
}

/* When the transaction's operations happen. */
static void draw_actions(struct random *r, const struct txns_generate *g, struct txn *txn,
                         struct action *actions)
{
    uint64_t length = txn->end_us - txn->begin_us;
    uint64_t early = txn->begin_us + random_below(r, length + 1);
    uint64_t late = early + random_below(r, txn->end_us - early + 1);
    if (txn->outcome == TXN_UNKNOWN) {
        late += random_below(r, 4 * (uint64_t)g->length_us + 1);
    }
    if (g->store == TXNS_LATE && random_chance(r, 300000)) {
        late += random_below(r, 4 * (uint64_t)g->length_us + 1);
    }
    bool done = txn->outcome == TXN_COMMITTED ||
                (txn->outcome == TXN_UNKNOWN && random_chance(r, 500000)) ||
                (txn->outcome == TXN_ABORTED && g->store == TXNS_LOOSE && random_chance(r, 200000));
    for (uint32_t j = 0; j < txn->ops_n; j++) {
        struct txn_op *op = (struct txn_op *)&txn->ops[j];
        uint64_t moment = g->store == TXNS_SNAPSHOT && op->kind == TXN_READ ? early : late;
        if (g->store == TXNS_LOOSE) {
            early += random_below(r, txn->end_us - early + 1);
            moment = early;
        }
        /* Room between for those of one transaction to stay together. */
        actions[j] = (struct action){moment, op, txn, done};
    }
}

/* What a transaction reads that it wrote itself is not the store's. */
static void read_own(struct txn *txn, struct txns *t)
{
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        struct txn_op *op = (struct txn_op *)&txn->ops[i];
        if (op->kind != TXN_READ || !wrote_before(txn, i)) {
            continue;
        }
        uint32_t own = 0;
        for (uint32_t j = 0; j < i; j++) {
            const struct txn_op *write = &txn->ops[j];
            if (write->kind == TXN_WRITE && write->key == op->key) {
                op->value = t->history.recording == TXN_VERSIONS ? write->value : 0;
                op->version = t->history.recording == TXN_VERSIONS ? 1 : 0;
                own++;
            }
        }
        if (t->history.recording == TXN_LISTS) {
            uint64_t *copy = copy_numbers(t, op->list, op->list_n, own);
            op->list = copy;
            for (uint32_t j = 0; j < i; j++) {
                const struct txn_op *write = &txn->ops[j];
                if (write->kind == TXN_WRITE && write->key == op->key) {
                    copy[op->list_n++] = write->value;
                }
            }
        }
    }
}

void txns_generate(struct random *r, const struct txns_generate *g, struct txns *t)
{
    HK_ASSERT(g->ops <= OPS_MAX && g->clients <= 64);
    uint64_t ready_us[64] = {0};
    for (uint32_t i = 0; i < g->txns; i++) {
        draw_txn(r, g, t, i, ready_us);
    }
    struct action *actions = calloc(t->ops_n + 1, sizeof *actions);
    struct store store = {.keys_n = g->keys};
    store.keys_n += g->keys_from == 0 ? 0 : g->txns / g->keys_from * g->keys;
    store.keys = calloc(store.keys_n, sizeof *store.keys);
    HK_ASSERT(actions != NULL && store.keys != NULL);
    size_t n = 0;
    for (uint32_t i = 0; i < g->txns; i++) {
        draw_actions(r, g, &t->txns[i], &actions[n]);
        n += t->txns[i].ops_n;
    }
    qsort(actions, n, sizeof *actions, compare_actions);
    for (size_t i = 0; i < n; i++) {
        act(r, t, &store, &actions[i]);
    }
    if (g->store == TXNS_SNAPSHOT) {
        for (uint32_t i = 0; i < g->txns; i++) {
            read_own(&t->txns[i], t);
        }
    }
    for (uint32_t i = 0; i < store.keys_n; i++) {
        free(store.keys[i].list);
    }
    free(store.keys);
    free(actions);
}

static void corrupt_list(struct random *r, struct txn_op *op, struct txns *t)
{
    uint64_t *copy = copy_numbers(t, op->list, op->list_n, 0);
    op->list = copy;
    uint64_t *at = &copy[random_below(r, op->list_n)];
    switch (random_below(r, 4)) {
    case 0:
        *at = copy[0];
        break;
    case 1:
        *at = 1 + random_below(r, t->history.n * OPS_MAX);
        break;
    default:
        op->list_n--;
        break;
    }
}

static void corrupt_op(struct random *r, struct txn_op *op, struct txns *t)
{
    const struct txn_op *other = &t->ops[random_below(r, t->ops_n)];
    if (t->history.recording == TXN_LISTS) {
        if (op->kind == TXN_READ && op->list_n > 0) {
            corrupt_list(r, op, t);
        }
        return;
    }
    if (op->kind == TXN_READ) {
        bool none = random_chance(r, 200000);
        op->value = none ? 0 : other->value;
        op->version = none ? 0 : other->version;
    } else if (other->version != 0) {
        op->version = other->version;
    }
}

/* Whether a recorder could have written this. */
static bool is_sound(const struct txns *t)
{
    for (size_t i = 0; i < t->history.n; i++) {
        const struct txn *txn = &t->txns[i];
        if (txn_invalid(txn, t->history.recording) != NULL) {
            return false;
        }
        for (uint32_t j = 0; j < txn->ops_n; j++) {
            if (t->history.recording == TXN_VERSIONS && txn->outcome == TXN_COMMITTED &&
                txn->ops[j].kind == TXN_WRITE && txn->ops[j].version == 0) {
                return false;
            }
        }
    }
    return true;
}

void txns_corrupt(struct random *r, struct txns *t)
{
    struct txn *txn = &t->txns[random_below(r, t->history.n)];
    struct txn_op *op = &t->ops[random_below(r, t->ops_n)];
    struct txn txn_before = *txn;
    struct txn_op op_before = *op;
    switch (random_below(r, 6)) {
    case 0:
        txn->outcome = (uint8_t)random_below(r, 3);
        break;
    case 1:
        txn->client = (uint32_t)random_below(r, 3);
        break;
    case 2:
        txn->begin_us = txn->begin_us / 2;
        txn->end_us = txn->begin_us + (txn->end_us - txn->begin_us) / 4;
        break;
    default:
        corrupt_op(r, op, t);
        break;
    }
    if (!is_sound(t)) {
        *txn = txn_before;
        *op = op_before;
    }
}
