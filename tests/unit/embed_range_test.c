/* Ranges of the public API, alone and in transactions, on three nodes that have the rows between
 * them: what each call answers, what a transaction sees of its own, and what ends it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/embed_cluster.h"
#include "support/embed_money.h"

static struct embed_cluster cluster;
static struct hk_session *s, *other; /* of nodes 0 and 1 */

static int open_three(void **state)
{
    (void)state;
    embed_cluster_open_engine(&cluster, 3, 2, "lotus");
    s = embed_cluster_session(&cluster, 0);
    other = embed_cluster_session(&cluster, 1);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    hk_session_close(s);
    hk_session_close(other);
    embed_cluster_close(&cluster);
    return 0;
}

static int empty(void **state)
{
    (void)state;
    return hk_range_delete(s, hk_text(""), hk_text(""), 0, NULL);
}

static void put(struct hk_session *session, const char *key, const char *value)
{
    assert_int_equal(hk_put(session, hk_text(key), hk_text(value), NULL), HK_OK);
}

static void put_all(const char *const *keys)
{
    for (; *keys != NULL; keys++) {
        put(s, *keys, *keys);
    }
}

static struct hk_txn *begin(void)
{
    const struct hk_txn_options options = {.timeout_ms = EMBED_BOUND_MS};
    struct hk_txn *t = NULL;
    assert_int_equal(hk_txn_begin(s, &options, &t), HK_OK);
    return t;
}

static int txn_put(struct hk_txn *t, const char *key, const char *value)
{
    return hk_txn_put(t, hk_text(key), hk_text(value), NULL);
}

/* ---- What was told ---- */

struct told {
    char text[512]; /* "a=1 b=2 " */
    uint32_t most;  /* rows; then it ends the reading with 7 */
};

static int tell(void *context, struct hk_bytes key, struct hk_bytes value)
{
    struct told *told = context;
    size_t n = strlen(told->text);
    if (told->most-- == 0) {
        return 7;
    }
    (void)snprintf(told->text + n, sizeof told->text - n, "%.*s=%.*s ", (int)key.n,
                   (const char *)key.at, (int)value.n, (const char *)value.at);
    return HK_OK;
}

static const struct hk_range_options *options_of(uint32_t flags, uint32_t limit)
{
    static struct hk_range_options options;
    options = (struct hk_range_options){.flags = flags, .limit = limit};
    return &options;
}

static void expect(struct hk_session *session, const char *start, const char *end, uint32_t flags,
                   uint32_t limit, const char *text)
{
    struct told told = {.most = UINT32_MAX};
    assert_int_equal(
        hk_range(session, hk_text(start), hk_text(end), options_of(flags, limit), tell, &told),
        HK_OK);
    assert_string_equal(told.text, text);
}

static void expect_in(struct hk_txn *t, const char *start, const char *end, uint32_t flags,
                      uint32_t limit, const char *text)
{
    struct told told = {.most = UINT32_MAX};
    assert_int_equal(
        hk_txn_range(t, hk_text(start), hk_text(end), options_of(flags, limit), tell, &told),
        HK_OK);
    assert_string_equal(told.text, text);
}

static int range_in(struct hk_txn *t, const char *start, const char *end)
{
    struct told told = {.most = UINT32_MAX};
    return hk_txn_range(t, hk_text(start), hk_text(end), NULL, tell, &told);
}

/* ---- Alone ---- */

static void test_alone(void **state)
{
    static const char *const keys[] = {"c", "a", "b", "ab", "d", NULL};
    uint64_t n = 0;
    (void)state;
    put_all(keys);
    expect(s, "", "", 0, 0, "a=a ab=ab b=b c=c d=d ");
    expect(other, "ab", "c", 0, 0, "ab=ab b=b ");
    expect(other, "", "", HK_RANGE_REVERSE, 2, "d=d c=c ");
    expect(s, "b", "", HK_RANGE_KEYS, 0, "b= c= d= ");
    expect(s, "", "b", 0, 1, "a=a ");
    expect(s, "x", "", 0, 0, "");
    expect(s, "c", "a", 0, 0, "");
    assert_int_equal(hk_range_count(other, hk_text("a"), hk_text("b"), &n), HK_OK);
    assert_int_equal(n, 2);
    assert_int_equal(hk_range_delete(s, hk_text("ab"), hk_text(""), 2, &n), HK_OK);
    assert_int_equal(n, 2);
    expect(other, "", "", 0, 0, "a=a c=c d=d ");
    assert_int_equal(hk_range_delete(s, hk_text(""), hk_text(""), 0, NULL), HK_OK);
    expect(other, "", "", 0, 0, "");
}

static void test_the_reader_ends_it(void **state)
{
    static const char *const keys[] = {"a", "b", "c", NULL};
    struct told told = {.most = 2};
    (void)state;
    put_all(keys);
    assert_int_equal(hk_range(s, hk_text(""), hk_text(""), NULL, tell, &told), 7);
    assert_string_equal(told.text, "a=a b=b ");
    struct hk_txn *t = begin();
    told = (struct told){.most = 1};
    assert_int_equal(hk_txn_range(t, hk_text(""), hk_text(""), NULL, tell, &told), 7);
    assert_string_equal(told.text, "a=a ");
    assert_int_equal(txn_put(t, "d", "1"), HK_OK); /* the transaction goes on */
    assert_int_equal(hk_txn_commit(t), HK_OK);
}

static void test_large_answers(void **state)
{
    static char value[100000];
    struct told told = {.most = UINT32_MAX};
    char key[16];
    (void)state;
    memset(value, 'v', sizeof value);
    for (uint32_t i = 0; i < 10; i++) {
        (void)snprintf(key, sizeof key, "large:%u", i);
        assert_int_equal(hk_put(s, hk_text(key), hk_bytes(value, sizeof value), NULL), HK_OK);
    }
    assert_int_equal(hk_range(other, hk_text(""), hk_text(""), NULL, tell, &told), HK_OK);
    struct hk_txn *t = begin();
    assert_int_equal(hk_txn_range(t, hk_text(""), hk_text(""), NULL, tell, &told), HK_OK);
    assert_int_equal(hk_txn_commit(t), HK_OK);
}

static void test_arguments(void **state)
{
    struct told told = {.most = UINT32_MAX};
    struct hk_bytes none = hk_text("");
    (void)state;
    assert_int_equal(hk_range(NULL, none, none, NULL, tell, &told), HK_ERR_INVALID);
    assert_int_equal(hk_range(s, none, none, NULL, NULL, NULL), HK_ERR_INVALID);
    assert_int_equal(hk_range(s, hk_bytes(NULL, 1), none, NULL, tell, &told), HK_ERR_INVALID);
    assert_int_equal(hk_range(s, none, none, options_of(4, 0), tell, &told), HK_ERR_INVALID);
    assert_int_equal(hk_range(s, none, none, options_of(0, HK_RANGE_ROWS_MAX + 1), tell, &told),
                     HK_ERR_INVALID);
    hk_session_space(s, 9);
    assert_int_equal(hk_range(s, none, none, NULL, tell, &told), HK_ERR_INVALID);
    hk_session_space(s, 0);
}

/* ---- In transactions ---- */

static void test_own_writes(void **state)
{
    static const char *const keys[] = {"b", "d", "f", "h", NULL};
    uint64_t n = 0;
    (void)state;
    put_all(keys);
    struct hk_txn *t = begin();
    assert_int_equal(txn_put(t, "a", "1"), HK_OK);
    assert_int_equal(txn_put(t, "d", "2"), HK_OK);
    assert_int_equal(txn_put(t, "e", "3"), HK_OK);
    assert_int_equal(hk_txn_delete(t, hk_text("b")), HK_OK);
    assert_int_equal(hk_txn_delete(t, hk_text("g")), HK_OK);
    assert_int_equal(txn_put(t, "z", "4"), HK_OK);
    expect_in(t, "", "", 0, 0, "a=1 d=2 e=3 f=f h=h z=4 ");
    expect_in(t, "", "", HK_RANGE_REVERSE, 0, "z=4 h=h f=f e=3 d=2 a=1 ");
    expect_in(t, "b", "z", 0, 2, "d=2 e=3 "); /* what it deleted does not count */
    expect_in(t, "b", "z", HK_RANGE_REVERSE | HK_RANGE_KEYS, 3, "h= f= e= ");
    expect_in(t, "b", "c", 0, 0, "");
    assert_int_equal(hk_txn_range_delete(t, hk_text("e"), hk_text("h"), 0, &n), HK_OK);
    assert_int_equal(n, 2);
    expect_in(t, "", "", 0, 0, "a=1 d=2 h=h z=4 ");
    assert_int_equal(hk_txn_commit(t), HK_OK);
    expect(other, "", "", 0, 0, "a=1 d=2 h=h z=4 ");
}

/* What another does between a range and its transaction's commit. */
static void test_what_ends_it(void **state)
{
    static const char *const keys[] = {"b", "d", "f", NULL};
    static const struct {
        const char *key, *value; /* NULL: deleted */
        int wanted;
    } cases[] = {
        {"c", "new", HK_ERR_ABORTED}, /* a phantom */
        {"d", "other", HK_ERR_ABORTED},
        {"d", NULL, HK_ERR_ABORTED},
        {"a", "new", HK_OK},
        {"f", "other", HK_OK}, /* its end is not in it */
        {"bb", NULL, HK_OK},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_all(keys);
        struct hk_txn *t = begin();
        assert_int_equal(range_in(t, "b", "f"), HK_OK);
        assert_int_equal(txn_put(t, "x", "1"), HK_OK);
        if (cases[i].value != NULL) {
            put(other, cases[i].key, cases[i].value);
        } else {
            (void)hk_delete(other, hk_text(cases[i].key));
        }
        assert_int_equal(hk_txn_commit(t), cases[i].wanted);
        assert_int_equal(hk_range_delete(other, hk_text(""), hk_text(""), 0, NULL), HK_OK);
    }
}

/* It read as far as its limit, and no further. */
static void test_limits_watch_what_was_read(void **state)
{
    static const char *const keys[] = {"a", "b", "c", "d", NULL};
    (void)state;
    put_all(keys);
    struct hk_txn *t = begin();
    expect_in(t, "", "", 0, 2, "a=a b=b ");
    put(other, "c", "other");
    assert_int_equal(txn_put(t, "x", "1"), HK_OK);
    assert_int_equal(hk_txn_commit(t), HK_OK);
    t = begin();
    expect_in(t, "", "", 0, 2, "a=a b=b ");
    put(other, "aa", "new");
    assert_int_equal(txn_put(t, "x", "2"), HK_OK);
    assert_int_equal(hk_txn_commit(t), HK_ERR_ABORTED);
}

static void test_read_only(void **state)
{
    static const char *const keys[] = {"a", "b", NULL};
    char value[8];
    (void)state;
    put_all(keys);
    struct hk_txn *t = begin();
    assert_int_equal(range_in(t, "", ""), HK_OK);
    put(other, "c", "new");
    assert_int_equal(hk_txn_commit(t), HK_OK); /* one look is of one moment */
    t = begin();
    assert_int_equal(range_in(t, "", ""), HK_OK);
    put(other, "a", "newer");
    assert_int_equal(hk_txn_get(t, hk_text("b"), value, sizeof value, NULL), HK_OK);
    assert_int_equal(hk_txn_commit(t), HK_ERR_ABORTED);
    t = begin();
    assert_int_equal(hk_txn_get(t, hk_text("a"), value, sizeof value, NULL), HK_OK);
    put(other, "a", "newest");
    assert_int_equal(range_in(t, "", ""), HK_ERR_ABORTED); /* it is not what was read */
    hk_txn_abort(t);
}

static void test_bounds(void **state)
{
    (void)state;
    struct hk_txn *t = begin();
    for (uint32_t i = 0; i < HK_TXN_RANGES_MAX; i++) {
        assert_int_equal(range_in(t, "a", "b"), HK_OK);
    }
    assert_int_equal(range_in(t, "a", "b"), HK_ERR_FULL);
    assert_int_equal(hk_txn_commit(t), HK_ERR_FULL);
}

/* ---- Several nodes at once ---- */

#define ACCOUNTS 8u
#define PAYMENTS 60u
#define MONEY 100

struct teller {
    pthread_t thread;
    struct hk_session *session;
    unsigned int seed;
    uint32_t failed, wrong;
};

static int add(void *context, struct hk_bytes key, struct hk_bytes value)
{
    char text[16];
    (void)key;
    (void)snprintf(text, sizeof text, "%.*s", (int)value.n, (const char *)value.at);
    *(int *)context += atoi(text);
    return HK_OK;
}

static int add_up(struct hk_txn *t, void *context)
{
    *(int *)context = 0;
    return hk_txn_range(t, hk_text("account "), hk_text("account!"), NULL, add, context);
}

static void *pay(void *argument)
{
    struct teller *teller = argument;
    const struct hk_txn_options options = {.timeout_ms = EMBED_BOUND_MS};
    for (uint32_t i = 0; i < PAYMENTS; i++) {
        uint32_t from = (uint32_t)rand_r(&teller->seed) % ACCOUNTS;
        struct embed_payment p = {
            .from = from,
            .to = (from + 1 + (uint32_t)rand_r(&teller->seed) % (ACCOUNTS - 1)) % ACCOUNTS,
            .amount = rand_r(&teller->seed) % 20};
        int total = 0;
        teller->failed += hk_txn_run(teller->session, &options, embed_money_pay, &p) != HK_OK;
        if (i % 10 == 0) {
            teller->failed += hk_txn_run(teller->session, &options, add_up, &total) != HK_OK;
            teller->wrong += total != (int)ACCOUNTS * MONEY;
        }
    }
    return NULL;
}

/* Everybody works with the same few rows, and adds all of them up as a range. */
static void test_money(void **state)
{
    struct teller tellers[3];
    int total = 0;
    (void)state;
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        char key[24];
        (void)snprintf(key, sizeof key, "account %u", i);
        put(s, key, "100");
    }
    for (uint32_t i = 0; i < 3; i++) {
        tellers[i] = (struct teller){.session = embed_cluster_session(&cluster, i), .seed = i + 1};
        assert_int_equal(pthread_create(&tellers[i].thread, NULL, pay, &tellers[i]), 0);
    }
    for (uint32_t i = 0; i < 3; i++) {
        (void)pthread_join(tellers[i].thread, NULL);
        hk_session_close(tellers[i].session);
        assert_int_equal(tellers[i].failed, 0);
        assert_int_equal(tellers[i].wrong, 0);
    }
    assert_int_equal(hk_range(s, hk_text("account "), hk_text("account!"), NULL, add, &total),
                     HK_OK);
    assert_int_equal(total, (int)ACCOUNTS * MONEY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_alone, empty),
        cmocka_unit_test_setup(test_the_reader_ends_it, empty),
        cmocka_unit_test_setup(test_large_answers, empty),
        cmocka_unit_test_setup(test_arguments, empty),
        cmocka_unit_test_setup(test_own_writes, empty),
        cmocka_unit_test_setup(test_what_ends_it, empty),
        cmocka_unit_test_setup(test_limits_watch_what_was_read, empty),
        cmocka_unit_test_setup(test_read_only, empty),
        cmocka_unit_test_setup(test_bounds, empty),
        cmocka_unit_test_setup(test_money, empty),
    };
    return cmocka_run_group_tests(tests, open_three, close_all);
}
