#include "support/node_bank.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/err.h"
#include "engine/zeus/zeus.h"

enum deed {
    DEED_FILL,     /* sets all accounts */
    DEED_ADD,      /* two additions in one transaction */
    DEED_LOOK,     /* reads two accounts, ... */
    DEED_TRANSFER, /* ... and writes both if they are as they were */
    DEED_AUDIT,    /* reads all */
};

struct bank_client {
    uint32_t session;
    bool open;
    bool waits;
    enum deed deed;
    uint32_t from, to;
    int64_t amount;
    int64_t balances[2];
    struct op ops[BANK_ACCOUNTS_MAX];
    struct txn_watch watches[2];
    char texts[2][32];
    struct txn_request txn;
};

struct bank_worker {
    struct random random;
    struct bank_client clients[BANK_CLIENTS_MAX];
};

struct bank {
    struct bank_config config;
    char keys[BANK_ACCOUNTS_MAX][24];
    struct bank_worker workers[CLUSTER_NODES_MAX][CLUSTER_WORKERS_MAX];
    _Atomic bool fills; /* the next request of node 0 */
    _Atomic bool filled;
    _Atomic bool runs;
    _Atomic uint64_t target; /* of transfers: then nothing more is asked for */
    _Atomic uint64_t open;   /* unanswered requests */
    pthread_mutex_t lock;
    pthread_cond_t still;
    _Atomic uint64_t counts[sizeof(struct bank_counts) / sizeof(uint64_t)];
};

#define COUNT(bank, name)                                                                          \
    atomic_fetch_add(&(bank)->counts[offsetof(struct bank_counts, name) / sizeof(uint64_t)], 1)

static void name_account(struct bank *bank, uint32_t i)
{
    (void)snprintf(bank->keys[i], sizeof bank->keys[i], "account-%u", i);
    if (bank->config.name != NULL) {
        bank->config.name(bank->keys[i], sizeof bank->keys[i], i);
    }
}

struct bank *bank_create(const struct bank_config *config)
{
    struct bank *bank = calloc(1, sizeof *bank);
    assert_non_null(bank);
    assert_true(config->accounts <= BANK_ACCOUNTS_MAX && config->clients <= BANK_CLIENTS_MAX);
    bank->config = *config;
    atomic_store(&bank->target, UINT64_MAX);
    pthread_mutex_init(&bank->lock, NULL);
    pthread_cond_init(&bank->still, NULL);
    for (uint32_t i = 0; i < config->accounts; i++) {
        name_account(bank, i);
    }
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        for (uint32_t k = 0; k < CLUSTER_WORKERS_MAX; k++) {
            random_init(&bank->workers[i][k].random, config->seed + 100 * i + k);
        }
    }
    return bank;
}

void bank_destroy(struct bank *bank)
{
    pthread_mutex_destroy(&bank->lock);
    pthread_cond_destroy(&bank->still);
    free(bank);
}

void bank_open(struct bank *bank, struct cluster *c, uint32_t node)
{
    struct node *n = cluster_node(c, node);
    for (uint32_t k = 0; k < cluster_workers(c, node); k++) {
        for (uint32_t i = 0; i < bank->config.clients; i++) {
            struct bank_client *client = &bank->workers[node][k].clients[i];
            assert_int_equal(worker_session_open(node_worker(n, k), &client->session), HK_OK);
            client->open = true;
            client->waits = false;
        }
    }
}

void bank_forget(struct bank *bank, uint32_t node)
{
    for (uint32_t k = 0; k < CLUSTER_WORKERS_MAX; k++) {
        for (uint32_t i = 0; i < BANK_CLIENTS_MAX; i++) {
            bank->workers[node][k].clients[i].open = false;
            bank->workers[node][k].clients[i].waits = false;
        }
    }
}

static struct bytes key_of(const struct bank *bank, uint32_t account)
{
    return bytes_of(bank->keys[account], (uint32_t)strlen(bank->keys[account]));
}

static void set_text(struct bank_client *c, uint32_t op, uint32_t text, int64_t value)
{
    int n = snprintf(c->texts[text], sizeof c->texts[text], "%lld", (long long)value);
    c->ops[op].kind = OP_SET;
    c->ops[op].value = bytes_of(c->texts[text], (uint32_t)n);
}

/* ---- Requests ---- */

static void fill(struct bank *bank, struct bank_client *c)
{
    for (uint32_t i = 0; i < bank->config.accounts; i++) {
        c->ops[i] = (struct op){.key = key_of(bank, i)};
        set_text(c, i, 0, BANK_MONEY);
    }
    c->deed = DEED_FILL;
    c->txn = (struct txn_request){.ops = c->ops, .ops_n = bank->config.accounts};
}

static void audit(struct bank *bank, struct bank_client *c)
{
    for (uint32_t i = 0; i < bank->config.accounts; i++) {
        c->ops[i] = (struct op){.kind = OP_GET, .key = key_of(bank, i)};
    }
    c->deed = DEED_AUDIT;
    c->txn = (struct txn_request){.ops = c->ops, .ops_n = bank->config.accounts};
}

static uint32_t draw_account(struct bank *bank, struct random *r, uint32_t node, bool local)
{
    uint32_t account = (uint32_t)random_below(r, bank->config.accounts);
    uint32_t nodes = CLUSTER_NODES_MAX;
    if (local && bank->config.accounts >= 2 * nodes) {
        account = account / nodes * nodes + node;
        account = account < bank->config.accounts ? account : node;
    }
    return account;
}

static void begin_transfer(struct bank *bank, struct bank_client *c, struct random *r,
                           uint32_t node)
{
    bool local = random_below(r, 1000) < bank->config.local;
    c->from = draw_account(bank, r, node, local);
    do {
        c->to = draw_account(bank, r, node, local);
    } while (c->to == c->from);
    c->amount = (int64_t)random_below(r, 50) - 25;
    c->ops[0] = (struct op){.kind = OP_ADD, .key = key_of(bank, c->from), .number = -c->amount};
    c->ops[1] = (struct op){.kind = OP_ADD, .key = key_of(bank, c->to), .number = c->amount};
    c->deed = DEED_ADD;
    c->txn = (struct txn_request){.ops = c->ops, .ops_n = 2, .flags = TXN_ALL};
    if (random_below(r, 2) == 0) {
        c->ops[0] = (struct op){.kind = OP_GET, .key = key_of(bank, c->from)};
        c->ops[1] = (struct op){.kind = OP_GET, .key = key_of(bank, c->to)};
        c->deed = DEED_LOOK;
        c->txn.flags = 0;
    }
}

static void end_transfer(struct bank *bank, struct bank_client *c)
{
    c->ops[0] = (struct op){.key = key_of(bank, c->from)};
    c->ops[1] = (struct op){.key = key_of(bank, c->to)};
    set_text(c, 0, 0, c->balances[0] - c->amount);
    set_text(c, 1, 1, c->balances[1] + c->amount);
    c->txn = (struct txn_request){.ops = c->ops, .ops_n = 2, .watches = c->watches, .watches_n = 2};
}

static bool request(void *context, uint32_t node, uint32_t worker, struct request *out)
{
    struct bank *bank = context;
    struct bank_worker *w = &bank->workers[node][worker];
    bool fills = node == 0 && worker == 0 && atomic_load(&bank->fills);
    if (!fills && !atomic_load(&bank->runs)) {
        return false;
    }
    for (uint32_t i = 0; i < bank->config.clients; i++) {
        struct bank_client *c = &w->clients[i];
        if (!c->open || c->waits) {
            continue;
        }
        if (fills) {
            atomic_store(&bank->fills, false);
            fill(bank, c);
        } else if (c->deed == DEED_TRANSFER) {
            end_transfer(bank, c);
        } else if (random_below(&w->random, 1000) < bank->config.audits) {
            audit(bank, c);
        } else {
            begin_transfer(bank, c, &w->random, node);
        }
        c->waits = true;
        atomic_fetch_add(&bank->open, 1);
        *out = (struct request){.session = c->session, .tag = i, .txn = &c->txn};
        return true;
    }
    return false;
}

/* ---- Answers ---- */

static int64_t number_of(const struct answer *answer)
{
    char text[32] = {0};
    assert_int_equal(answer->kind, ANSWER_VALUE);
    assert_true(answer->value.n > 0 && answer->value.n < sizeof text);
    memcpy(text, answer->value.at, answer->value.n);
    return strtoll(text, NULL, 10);
}

static void count_error(struct bank *bank, int64_t err)
{
    if (err == HK_ERR_BUSY) {
        COUNT(bank, busy);
    } else if (err == HK_ERR_UNKNOWN) {
        COUNT(bank, unknown);
    } else if (err == HK_ERR_LOSTSLOT) {
        COUNT(bank, lost);
    } else {
        assert_true(err == HK_ERR_UNAVAILABLE || err == HK_ERR_LOADING);
        COUNT(bank, unavailable);
    }
}

static void add_up(struct bank *bank, const struct reply *reply)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < bank->config.accounts; i++) {
        sum += number_of(&reply->answers[i]);
    }
    assert_int_equal(sum, (int64_t)bank->config.accounts * BANK_MONEY);
    COUNT(bank, audits);
}

static void see(struct bank *bank, struct bank_client *c, const struct reply *reply)
{
    uint32_t accounts[2] = {c->from, c->to};
    for (uint32_t i = 0; i < 2; i++) {
        c->balances[i] = number_of(&reply->answers[i]);
        c->watches[i] =
            (struct txn_watch){.key = key_of(bank, accounts[i]), .version = reply->versions[i]};
        assert_true(reply->versions[i] != 0);
    }
}

static bool reached(struct bank *bank)
{
    return bank_counts(bank).done >= atomic_load(&bank->target);
}

static void answered(struct bank *bank)
{
    if (reached(bank)) {
        atomic_store(&bank->runs, false);
    }
    if (atomic_fetch_sub(&bank->open, 1) == 1 && !atomic_load(&bank->runs)) {
        pthread_mutex_lock(&bank->lock);
        pthread_cond_signal(&bank->still);
        pthread_mutex_unlock(&bank->lock);
    }
}

void bank_await(struct bank *bank, uint64_t transfers, uint32_t seconds)
{
    struct timespec until;
    int err = 0;
    atomic_store(&bank->target, bank_counts(bank).done + transfers);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds;
    pthread_mutex_lock(&bank->lock);
    while (err == 0 && (atomic_load(&bank->runs) || atomic_load(&bank->open) > 0)) {
        err = pthread_cond_timedwait(&bank->still, &bank->lock, &until);
    }
    pthread_mutex_unlock(&bank->lock);
    if (err != 0) {
        struct bank_counts counts = bank_counts(bank);
        fail_msg("%lu transfers, %lu busy, %lu unknown, %lu refused, %lu unanswered",
                 (unsigned long)counts.done, (unsigned long)counts.busy,
                 (unsigned long)counts.unknown, (unsigned long)counts.unavailable,
                 (unsigned long)atomic_load(&bank->open));
    }
}

static void hear(struct bank *bank, struct bank_client *c, enum deed deed,
                 const struct reply *reply)
{
    if (reply->answer.kind == ANSWER_ERROR) {
        count_error(bank, reply->answer.number);
        assert_true(deed != DEED_FILL);
        return;
    }
    if (reply->answer.kind == ANSWER_NIL) {
        assert_int_equal(deed, DEED_TRANSFER);
        COUNT(bank, conflicts);
        return;
    }
    assert_int_equal(reply->answer.kind, ANSWER_OK);
    assert_int_equal(reply->answers_n, c->txn.ops_n);
    if (deed == DEED_AUDIT) {
        add_up(bank, reply);
    } else if (deed == DEED_LOOK) {
        see(bank, c, reply);
        c->deed = DEED_TRANSFER;
    } else {
        atomic_store(&bank->filled, true);
        COUNT(bank, done);
    }
}

static void reply_came(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct bank *bank = context;
    struct bank_client *c = &bank->workers[node][worker].clients[reply->tag];
    enum deed deed = c->deed;
    assert_true(c->waits && c->session == reply->session);
    c->waits = false;
    c->deed = DEED_ADD;
    hear(bank, c, deed, reply);
    answered(bank);
}

struct cluster_client bank_client(struct bank *bank)
{
    return (struct cluster_client){.context = bank, .request = request, .reply = reply_came};
}

static bool is_filled(struct cluster *c, void *context)
{
    struct bank *bank = context;
    (void)c;
    return atomic_load(&bank->filled);
}

void bank_fill(struct bank *bank, struct cluster *c)
{
    atomic_store(&bank->fills, true);
    cluster_until(c, is_filled, bank, 20000000);
}

void bank_run(struct bank *bank, bool on)
{
    atomic_store(&bank->runs, on);
}

bool bank_idle(const struct bank *bank)
{
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        for (uint32_t k = 0; k < CLUSTER_WORKERS_MAX; k++) {
            for (uint32_t j = 0; j < BANK_CLIENTS_MAX; j++) {
                const struct bank_client *c = &bank->workers[i][k].clients[j];
                if (c->open && c->waits) {
                    return false;
                }
            }
        }
    }
    return true;
}

struct bank_counts bank_counts(const struct bank *bank)
{
    struct bank_counts counts;
    uint64_t *out = (uint64_t *)(void *)&counts;
    for (uint32_t i = 0; i < sizeof counts / sizeof *out; i++) {
        out[i] = atomic_load(&bank->counts[i]);
    }
    return counts;
}

/* ---- On a cluster of its own ---- */

#define SECOND 1000000u

struct bank_cluster bank_cluster_open(uint32_t nodes, uint32_t workers,
                                      const struct bank_config *config)
{
    static const struct zeus_config zeus = {.own = {.backoff_us = 200}};
    struct bank_cluster b = {.bank = bank_create(config)};
    struct cluster_config cluster = {.nodes = nodes,
                                     .ops = &zeus_ops,
                                     .engine = &zeus,
                                     .seed = config->seed,
                                     .client = bank_client(b.bank)};
    for (uint32_t i = 0; i < nodes; i++) {
        cluster.workers[i] = workers;
    }
    b.cluster = cluster_create(&cluster);
    cluster_until(b.cluster, cluster_serving, NULL, 10 * SECOND);
    for (uint32_t i = 0; i < nodes; i++) {
        bank_open(b.bank, b.cluster, i);
    }
    bank_fill(b.bank, b.cluster);
    bank_run(b.bank, true);
    return b;
}

void bank_cluster_run(struct bank_cluster *b, uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) {
        cluster_step(b->cluster, 50);
    }
}

static bool is_idle(struct cluster *c, void *context)
{
    (void)c;
    return bank_idle(context);
}

void bank_cluster_close(struct bank_cluster *b)
{
    bank_run(b->bank, false);
    cluster_until(b->cluster, is_idle, b->bank, 20 * SECOND);
    cluster_destroy(b->cluster);
    bank_destroy(b->bank);
}

struct bank_counts bank_threads(const struct cluster_config *cluster,
                                const struct bank_config *config, uint64_t transfers,
                                uint32_t seconds)
{
    struct bank *bank = bank_create(config);
    struct cluster_config with = *cluster;
    with.client = bank_client(bank);
    struct cluster *c = cluster_create(&with);
    cluster_until(c, cluster_serving, NULL, 100 * SECOND);
    for (uint32_t i = 0; i < with.nodes; i++) {
        bank_open(bank, c, i);
    }
    bank_fill(bank, c);
    for (uint32_t i = 0; i < 100; i++) {
        cluster_step(c, 1000); /* nothing is on its way when the clock jumps to the real one */
    }
    bank_run(bank, true);
    cluster_threads(c);
    bank_await(bank, transfers, seconds);
    cluster_join(c);
    struct bank_counts counts = bank_counts(bank);
    print_message("%u nodes, %u workers: %lu transfers, %lu conflicts, %lu audits, %lu busy\n",
                  with.nodes, with.workers[0], (unsigned long)counts.done,
                  (unsigned long)counts.conflicts, (unsigned long)counts.audits,
                  (unsigned long)counts.busy);
    cluster_destroy(c);
    bank_destroy(bank);
    return counts;
}
