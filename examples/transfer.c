/* Accounts at three nodes, and payments between them: each is a transaction, so that no money is
 * made and none is lost, whichever threads of whichever nodes pay at the same time, and nobody who
 * adds up all accounts ever sees a payment in part. Most payments of a node are between accounts
 * that it works on: these become its own, and need no message before they commit. */
#include <horkos.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster.h"

#define ACCOUNTS 12 /* a node */
#define MONEY 1000  /* an account, at first */
#define PAYMENTS 500
#define REMOTE 20 /* one payment in so many goes to another node's account */

/* Reads an account; an account that nobody has opened has nothing. */
static int balance(struct hk_txn *txn, int account, int64_t *money_out)
{
    char key[32];
    char text[32];
    size_t n;
    (void)snprintf(key, sizeof key, "account:%d", account);
    int err = hk_txn_get(txn, hk_text(key), text, sizeof text - 1, &n);
    text[n] = '\0';
    *money_out = err == HK_OK ? strtoll(text, NULL, 10) : 0;
    return err == HK_ERR_NOTFOUND ? HK_OK : err;
}

static int set_balance(struct hk_txn *txn, int account, int64_t money)
{
    char key[32];
    char text[32];
    (void)snprintf(key, sizeof key, "account:%d", account);
    (void)snprintf(text, sizeof text, "%" PRId64, money);
    return hk_txn_put(txn, hk_text(key), hk_text(text), NULL);
}

#define NOT_ENOUGH 1 /* an error of our own: the payment does not happen */

struct payment {
    int from, to;
    int64_t amount;
};

/* May run several times, each time from the beginning. */
static int pay(struct hk_txn *txn, void *context)
{
    const struct payment *p = context;
    int64_t from;
    int64_t to;
    int err = balance(txn, p->from, &from);
    err = err == HK_OK ? balance(txn, p->to, &to) : err;
    if (err != HK_OK) {
        return err;
    }
    if (from < p->amount) {
        return NOT_ENOUGH;
    }
    err = set_balance(txn, p->from, from - p->amount);
    return err == HK_OK ? set_balance(txn, p->to, to + p->amount) : err;
}

static int add_up(struct hk_txn *txn, void *context)
{
    int64_t *total = context;
    int err = HK_OK;
    *total = 0;
    for (int i = 0; i < CLUSTER_NODES * ACCOUNTS && err == HK_OK; i++) {
        int64_t money;
        err = balance(txn, i, &money);
        *total += money;
    }
    return err;
}

static int64_t total_seen(struct hk_session *session)
{
    const struct hk_txn_options options = {.flags = HK_TXN_READ_ONLY, .timeout_ms = 60000};
    int64_t total;
    check(hk_txn_run(session, &options, add_up, &total), "add up");
    return total;
}

static void open_accounts(struct hk_session *session, int first)
{
    struct hk_txn *txn;
    check(hk_txn_begin(session, NULL, &txn), "begin");
    for (int i = first; i < first + ACCOUNTS; i++) {
        check(set_balance(txn, i, MONEY), "open an account");
    }
    check(hk_txn_commit(txn), "commit");
}

struct teller {
    struct hk_node *node;
    pthread_t thread;
    int number;
    int paid, refused, unknown;
    int wrong; /* totals that were not all the money */
};

static void *work(void *argument)
{
    struct teller *t = argument;
    const struct hk_session_options space = {.space = HK_SPACE_TRANSACTIONS};
    const struct hk_txn_options options = {.timeout_ms = 60000};
    struct hk_session *session;
    unsigned int seed = (unsigned int)t->number;
    check(hk_session_open(t->node, &space, &session), "open a session");
    for (int i = 0; i < PAYMENTS; i++) {
        int home = i % REMOTE == 0 ? (t->number + 1) % CLUSTER_NODES : t->number;
        struct payment p = {.from = t->number * ACCOUNTS + rand_r(&seed) % ACCOUNTS,
                            .to = home * ACCOUNTS + rand_r(&seed) % ACCOUNTS,
                            .amount = rand_r(&seed) % 300};
        if (p.from == p.to) {
            continue;
        }
        int err = hk_txn_run(session, &options, pay, &p);
        t->paid += err == HK_OK;
        t->refused += err == NOT_ENOUGH;
        t->unknown += err == HK_ERR_UNKNOWN; /* paid or not, but not in part */
        if (err < 0 && err != HK_ERR_UNKNOWN) {
            check(err, "pay");
        }
        if (i % 100 == 0) {
            t->wrong += total_seen(session) != (int64_t)CLUSTER_NODES * ACCOUNTS * MONEY;
        }
    }
    hk_session_close(session);
    return NULL;
}

int main(void)
{
    const struct hk_session_options space = {.space = HK_SPACE_TRANSACTIONS};
    struct cluster cluster;
    struct teller tellers[CLUSTER_NODES];
    struct hk_session *session;
    int paid = 0;
    int refused = 0;
    int wrong = 0;
    cluster_open_transactions(&cluster);
    for (int i = 0; i < CLUSTER_NODES; i++) {
        check(hk_session_open(cluster.nodes[i], &space, &session), "open a session");
        open_accounts(session, i * ACCOUNTS);
        hk_session_close(session);
    }
    for (int i = 0; i < CLUSTER_NODES; i++) {
        tellers[i] = (struct teller){.node = cluster.nodes[i], .number = i};
        if (pthread_create(&tellers[i].thread, NULL, work, &tellers[i]) != 0) {
            perror("pthread_create");
            return 1;
        }
    }
    for (int i = 0; i < CLUSTER_NODES; i++) {
        (void)pthread_join(tellers[i].thread, NULL);
        paid += tellers[i].paid;
        refused += tellers[i].refused;
        wrong += tellers[i].wrong;
    }
    check(hk_session_open(cluster.nodes[0], &space, &session), "open a session");
    int64_t total = total_seen(session);
    hk_session_close(session);
    printf("%d payments, %d refused, %" PRId64 " in all accounts, %d wrong totals on the way\n",
           paid, refused, total, wrong);
    cluster_close(&cluster);
    return total == (int64_t)CLUSTER_NODES * ACCOUNTS * MONEY && wrong == 0 && paid > 0 ? 0 : 1;
}
