/* Transactions of several threads on the same accounts, which travel between three nodes or are all
 * at one: commits that wait and commits that do not, and audits that must always find all the
 * money. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "base/random.h"
#include "support/embed_cluster.h"
#include "support/embed_money.h"

#define NODES 3u
#define THREADS 2u /* a node */
#define ACCOUNTS 6u
#define MONEY 1000
#define PAYMENTS 60u

static struct embed_cluster cluster;

static const struct hk_txn_options patient = {.timeout_ms = EMBED_BOUND_MS};
static const struct hk_txn_options reading = {.flags = HK_TXN_READ_ONLY,
                                              .timeout_ms = EMBED_BOUND_MS};

struct teller {
    pthread_t thread;
    struct hk_session *session;
    struct random random;
    uint32_t paid, aborted, wrong, failed;
};

static void finished(void *context, const struct hk_result *result)
{
    struct teller *t = context;
    t->paid += result->err == HK_OK;
    t->aborted += result->err == HK_ERR_ABORTED;
    t->failed += result->err != HK_OK && result->err != HK_ERR_ABORTED;
}

/* Begins a commit and goes on. */
static void pay_async(struct teller *t, struct embed_payment *p)
{
    struct hk_txn *txn = NULL;
    int err = hk_txn_begin(t->session, &patient, &txn);
    if (err == HK_OK) {
        err = embed_money_pay(txn, p);
    }
    if (err != HK_OK) {
        hk_txn_abort(txn);
    } else {
        err = hk_txn_commit_async(txn, finished, t);
    }
    t->aborted += err == HK_ERR_ABORTED;
    t->failed += err != HK_OK && err != HK_ERR_ABORTED;
    (void)hk_session_poll(t->session, UINT32_MAX);
}

static void *work(void *argument)
{
    struct teller *t = argument;
    for (uint32_t i = 0; i < PAYMENTS; i++) {
        struct embed_payment p = {.from = (uint32_t)random_below(&t->random, ACCOUNTS),
                                  .amount = (int)random_below(&t->random, 100)};
        p.to = (p.from + 1 + (uint32_t)random_below(&t->random, ACCOUNTS - 1)) % ACCOUNTS;
        if (i % 3 == 0) {
            pay_async(t, &p);
            continue;
        }
        int err = hk_txn_run(t->session, &patient, embed_money_pay, &p);
        t->paid += err == HK_OK;
        t->failed += err != HK_OK;
        struct embed_total total = {.accounts = ACCOUNTS};
        if (i % 5 == 0) {
            t->failed += hk_txn_run(t->session, &reading, embed_money_add_up, &total) != HK_OK;
            t->wrong += total.money != (int)ACCOUNTS * MONEY;
        }
    }
    t->failed += hk_txn_fence(t->session, EMBED_BOUND_MS) != HK_OK;
    return NULL;
}

/* All tellers at `at` nodes of `nodes`: at one, every account is local, and most of what they do
 * they commit themselves, in each other's way. */
static void pay_and_audit(uint32_t nodes, uint32_t at)
{
    struct teller tellers[NODES * THREADS];
    uint32_t paid = 0;
    uint32_t aborted = 0;
    embed_cluster_open_engine(&cluster, nodes, 2, "zeus");
    for (uint32_t i = 0; i < NODES * THREADS; i++) {
        tellers[i] = (struct teller){.session = embed_cluster_session(&cluster, i % at)};
        random_init(&tellers[i].random, i + 1);
    }
    struct hk_txn *t = NULL;
    assert_int_equal(hk_txn_begin(tellers[0].session, &patient, &t), HK_OK);
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        assert_int_equal(embed_money_write(t, i, MONEY), HK_OK);
    }
    assert_int_equal(hk_txn_commit(t), HK_OK);
    for (uint32_t i = 0; i < NODES * THREADS; i++) {
        assert_int_equal(pthread_create(&tellers[i].thread, NULL, work, &tellers[i]), 0);
    }
    for (uint32_t i = 0; i < NODES * THREADS; i++) {
        assert_int_equal(pthread_join(tellers[i].thread, NULL), 0);
    }
    for (uint32_t i = 0; i < NODES * THREADS; i++) {
        struct embed_total total = {.accounts = ACCOUNTS};
        assert_int_equal(tellers[i].failed, 0);
        assert_int_equal(tellers[i].wrong, 0);
        assert_int_equal(hk_txn_run(tellers[i].session, &reading, embed_money_add_up, &total),
                         HK_OK);
        assert_int_equal(total.money, (int)ACCOUNTS * MONEY);
        paid += tellers[i].paid;
        aborted += tellers[i].aborted;
        hk_session_close(tellers[i].session);
    }
    print_message("%u payments, %u that were not tried again\n", paid, aborted);
    assert_true(paid >= NODES * THREADS * PAYMENTS / 2);
    embed_cluster_close(&cluster);
}

static void test_money(void **state)
{
    (void)state;
    pay_and_audit(NODES, NODES);
}

static void test_money_at_one_node(void **state)
{
    (void)state;
    pay_and_audit(NODES, 1);
    pay_and_audit(1, 1);
}

/* ---- A node that forgets everything while its threads commit ---- */

#define WIPES 3u

struct flood {
    pthread_t thread;
    struct hk_session *session;
    _Atomic bool stop;
    _Atomic uint64_t happened;
    uint64_t begun, answered, odd;
};

static void flooded(void *context, const struct hk_result *result)
{
    struct flood *f = context;
    f->answered++;
    atomic_fetch_add(&f->happened, result->err == HK_OK ? 1u : 0u);
    f->odd += result->err != HK_OK && result->err != HK_ERR_UNKNOWN &&
              result->err != HK_ERR_UNAVAILABLE && result->err != HK_ERR_ABORTED &&
              result->err != HK_ERR_LOADING && result->err != HK_ERR_TIMEOUT;
}

static void *flood(void *argument)
{
    struct flood *f = argument;
    for (int i = 0; !atomic_load(&f->stop); i++) {
        struct hk_txn *t = NULL;
        if (hk_txn_begin(f->session, &patient, &t) != HK_OK) {
            f->odd++;
            break;
        }
        int err = embed_money_write(t, (uint32_t)i % ACCOUNTS, i);
        if (err != HK_OK) {
            hk_txn_abort(t);
            continue;
        }
        err = hk_txn_commit_async(t, flooded, f);
        f->begun += err == HK_OK;
        if (err == HK_ERR_FULL) {
            hk_txn_abort(t);
            (void)hk_session_wait(f->session, 100);
        }
        (void)hk_session_poll(f->session, UINT32_MAX);
    }
    f->odd += hk_txn_fence(f->session, EMBED_BOUND_MS) != HK_OK;
    return NULL;
}

/* Some more have happened: the node serves, and its thread commits. */
static void until_happened(struct flood *f, uint64_t more)
{
    uint64_t until_us = clock_boot_us() + EMBED_BOUND_MS * 1000ull;
    uint64_t wanted = atomic_load(&f->happened) + more;
    while (atomic_load(&f->happened) < wanted) {
        assert_true(clock_boot_us() < until_us);
        (void)sched_yield();
    }
}

/* Every commit that was begun has one answer, that it has happened or that nobody knows, also if it
 * was on its way to a node that is no more; and the node that comes after it goes on. */
static void test_wipe(void **state)
{
    (void)state;
    struct flood f = {.begun = 0};
    embed_cluster_open_engine(&cluster, NODES, 1, "zeus");
    f.session = embed_cluster_session(&cluster, 0);
    assert_int_equal(pthread_create(&f.thread, NULL, flood, &f), 0);
    for (uint32_t times = 1; times <= WIPES; times++) {
        until_happened(&f, 20);
        embed_cluster_wipe(&cluster, 0);
        uint64_t until_us = clock_boot_us() + EMBED_BOUND_MS * 1000ull;
        while (embed_cluster_wipes(&cluster, 0) < times) {
            assert_true(clock_boot_us() < until_us);
            (void)sched_yield();
        }
        assert_int_equal(hk_wait_serving(cluster.nodes[0], EMBED_BOUND_MS), HK_OK);
    }
    until_happened(&f, 20);
    atomic_store(&f.stop, true);
    assert_int_equal(pthread_join(f.thread, NULL), 0);
    assert_int_equal(f.odd, 0);
    assert_int_equal(f.answered, f.begun);
    struct embed_payment p = {.from = 0, .to = 1, .amount = 1};
    assert_int_equal(hk_txn_run(f.session, &patient, embed_money_pay, &p), HK_OK);
    print_message("%llu commits, %llu happened\n", (unsigned long long)f.begun,
                  (unsigned long long)atomic_load(&f.happened));
    hk_session_close(f.session);
    embed_cluster_close(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_money),
        cmocka_unit_test(test_money_at_one_node),
        cmocka_unit_test(test_wipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
