/* TPC-C's transactions on a store of the test's own, several at a time: their mix, what they find,
 * and the conditions of consistency, which a store that loses something breaks. */
#include "load/work_tpcc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

/* ---- Rows in the order of their keys ---- */

struct row {
    uint8_t key[TPCC_KEY_MAX];
    uint32_t key_n, value_n;
    uint8_t value[TPCC_BALANCE_BYTES];
    uint64_t version;
};

static struct row **rows;
static uint32_t rows_n, rows_capacity;
static uint64_t clock;

static int compare(struct bytes a, struct bytes b)
{
    int x = memcmp(a.at, b.at, a.n < b.n ? a.n : b.n);
    return x != 0 ? x : (a.n > b.n) - (a.n < b.n);
}

static struct bytes key_of(const struct row *r)
{
    return bytes_of(r->key, r->key_n);
}

/* The first row that is not below the key. */
static uint32_t find(struct bytes key)
{
    uint32_t low = 0, high = rows_n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (compare(key_of(rows[middle]), key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct row *look(struct bytes key)
{
    uint32_t at = find(key);
    return at < rows_n && compare(key_of(rows[at]), key) == 0 ? rows[at] : NULL;
}

static struct row *insert(struct bytes key)
{
    uint32_t at = find(key);
    if (rows_n == rows_capacity) {
        rows_capacity = rows_capacity == 0 ? 1024 : 2 * rows_capacity;
        rows = realloc(rows, rows_capacity * sizeof *rows);
        assert_non_null(rows);
    }
    memmove(&rows[at + 1], &rows[at], (rows_n++ - at) * sizeof *rows);
    rows[at] = calloc(1, sizeof **rows);
    assert_non_null(rows[at]);
    assert_in_range(key.n, 1, TPCC_KEY_MAX);
    memcpy(rows[at]->key, key.at, key.n);
    rows[at]->key_n = key.n;
    return rows[at];
}

static void erase(struct bytes key)
{
    uint32_t at = find(key);
    free(rows[at]);
    memmove(&rows[at], &rows[at + 1], (--rows_n - at) * sizeof *rows);
}

static void erase_all(void)
{
    for (uint32_t i = 0; i < rows_n; i++) {
        free(rows[i]);
    }
    rows_n = 0;
}

/* ---- Transactions on them ---- */

static uint8_t pairs[1 << 18];
static uint32_t pairs_n;

static uint64_t scan(struct bytes from, struct bytes to, int64_t limit, uint32_t flags,
                     struct answer *a)
{
    uint32_t low = find(from), high = find(to);
    uint64_t digest = 1;
    bool reverse = (flags & TXN_OPF_REVERSE) != 0;
    *a = (struct answer){.kind = ANSWER_PAIRS, .value = bytes_of(pairs + pairs_n, 0)};
    for (uint32_t i = low; i < high && (limit == 0 || a->number < limit); i++) {
        const struct row *r = rows[reverse ? high - 1 - (i - low) : i];
        uint32_t n = (flags & TXN_OPF_KEYS) != 0 ? 0 : r->value_n;
        assert_true(pairs_n + 8 + r->key_n + n <= sizeof pairs);
        put_u32(pairs + pairs_n, r->key_n);
        put_u32(pairs + pairs_n + 4, n);
        memcpy(pairs + pairs_n + 8, r->key, r->key_n);
        memcpy(pairs + pairs_n + 8 + r->key_n, r->value, n);
        pairs_n += 8 + r->key_n + n;
        a->value.n += 8 + r->key_n + n;
        a->number++;
        digest = digest * UINT64_C(0x9e3779b97f4a7c15) + r->version;
    }
    return digest;
}

static bool holds(const struct txn_watch *watch)
{
    struct answer a;
    if (watch->range) {
        return scan(watch->key, watch->end, watch->limit, watch->flags, &a) == watch->version;
    }
    const struct row *r = look(watch->key);
    return (r != NULL ? r->version : 0) == watch->version;
}

static void write_row(struct row *r, uint32_t at, struct bytes value)
{
    assert_true(at + value.n <= sizeof r->value);
    memcpy(r->value + at, value.at, value.n);
    r->value_n = at + value.n > r->value_n ? at + value.n : r->value_n;
    r->version = clock;
}

static uint64_t do_op(const struct op *op, struct answer *a)
{
    struct row *r = look(op->key);
    char text[24];
    *a = (struct answer){.kind = ANSWER_OK, .applied = true};
    switch (op->kind) {
    case OP_GET:
        *a = (struct answer){.kind = r != NULL ? ANSWER_VALUE : ANSWER_NIL,
                             .value = r != NULL ? bytes_of(r->value, r->value_n) : bytes_of("", 0)};
        return r != NULL ? r->version : 0;
    case OP_SET:
        r = r != NULL ? r : insert(op->key);
        r->value_n = 0;
        write_row(r, 0, op->value);
        break;
    case OP_SETRANGE:
        assert_non_null(r); /* what is overwritten in part is there */
        write_row(r, (uint32_t)op->number, op->value);
        break;
    case OP_ADD:
        assert_non_null(r);
        r->value[r->value_n] = '\0';
        snprintf(text, sizeof text, "%lld", atoll((char *)r->value) + (long long)op->number);
        r->value_n = 0;
        write_row(r, 0, bytes_of(text, (uint32_t)strlen(text)));
        break;
    case OP_DELETE:
        assert_non_null(r);
        erase(op->key);
        break;
    default:
        assert_int_equal(op->kind, TXN_OP_RANGE);
        return scan(op->key, op->arg, op->number, op->flags, a);
    }
    return clock;
}

static struct answer answers[WORK_OPS_MAX];
static uint64_t versions[WORK_OPS_MAX];

/* False: a watch did not hold. */
static bool run_step(const struct work_txn *txn)
{
    pairs_n = 0;
    clock++;
    for (uint32_t i = 0; i < txn->watches_n; i++) {
        if (!holds(&txn->watches[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        versions[i] = do_op(&txn->ops[i], &answers[i]);
    }
    return true;
}

/* ---- A run ---- */

#define SESSIONS 12u
#define PLACES 2u

struct seen {
    uint64_t all, of[WORK_TYPES_MAX], succeeded[WORK_TYPES_MAX], remote[WORK_TYPES_MAX], again;
    uint64_t steps_most;
};

static struct work *begin(void)
{
    struct work_config config = work_defaults(WORK_TPCC);
    struct work *w;
    config.nodes = PLACES;
    config.objects = 200;
    config.warehouses = 2;
    config.customers = 30;
    assert_null(work_config_wrong(&config));
    assert_int_equal(work_create(&config, &w), HK_OK);
    struct work_txn *txn = malloc(sizeof *txn);
    assert_non_null(txn);
    for (uint32_t place = 0; place < PLACES; place++) {
        for (uint64_t i = 0; i < work_fill_count(w); i++) {
            if (work_fill(w, place, i, txn)) {
                assert_int_equal(txn->ops_n, 1);
                assert_null(look(txn->ops[0].key));
                assert_int_equal(work_home(txn->ops[0].key, PLACES), place);
                assert_true(run_step(txn));
            }
        }
    }
    free(txn);
    return w;
}

static const char *check(const struct work *w)
{
    struct tpcc_check *c;
    uint32_t where = 0;
    assert_int_equal(tpcc_check_create(w, &c), HK_OK);
    for (uint32_t i = 0; i < rows_n; i++) {
        assert_true(tpcc_check_row(c, key_of(rows[i]), bytes_of(rows[i]->value, rows[i]->value_n)));
    }
    const char *wrong = tpcc_check_end(c, &where);
    tpcc_check_destroy(c);
    return wrong;
}

static void end_of(struct work *w, uint32_t place, const struct work_txn *txn, bool applied,
                   struct seen *s)
{
    s->all++;
    s->of[txn->type]++;
    s->succeeded[txn->type] += work_succeeded(w, txn, applied, answers);
    s->remote[txn->type] += txn->remote;
    work_done(w, place, txn, true);
}

/* Sessions take steps in any order: what one has read may have changed when it writes. */
static struct seen run(struct work *w, uint64_t n, uint64_t seed)
{
    struct seen s = {0};
    struct random random;
    struct work_txn *txns = calloc(SESSIONS, sizeof *txns);
    uint64_t steps[SESSIONS] = {0};
    bool busy[SESSIONS] = {false};
    assert_non_null(txns);
    random_init(&random, seed);
    while (s.all < n) {
        uint32_t i = (uint32_t)random_below(&random, SESSIONS), place = i % PLACES;
        if (!busy[i]) {
            work_draw(w, place, &random, &txns[i]);
            busy[i] = true;
            steps[i] = 0;
        }
        const struct txn_request request = {.ops = txns[i].ops,
                                            .watches = txns[i].watches,
                                            .ops_n = txns[i].ops_n,
                                            .watches_n = txns[i].watches_n};
        assert_int_equal(txn_check(&request, 4096), HK_OK); /* a node takes it */
        bool held = run_step(&txns[i]);
        enum work_step step = work_next(w, place, &txns[i], held, answers, versions);
        s.steps_most = ++steps[i] > s.steps_most ? steps[i] : s.steps_most;
        s.again += step == WORK_AGAIN;
        if (step == WORK_OVER) {
            end_of(w, place, &txns[i], held, &s);
            busy[i] = false;
        }
        steps[i] = step == WORK_AGAIN ? 0 : steps[i];
    }
    free(txns);
    return s;
}

static void assert_near(double x, double expected, double off)
{
    if (fabs(x - expected) > off) {
        fail_msg("%.4f, not %.4f", x, expected);
    }
}

static void the_population_is_consistent(void **state)
{
    (void)state;
    struct work *w = begin();
    assert_null(check(w));
    /* Ten districts of 30 customers, who have an order each, 9 of which are new. */
    uint32_t of[128] = {0};
    for (uint32_t i = 0; i < rows_n; i++) {
        of[rows[i]->key[4]]++;
    }
    assert_int_equal(of['W'], 4);
    assert_int_equal(of['D'], 40);
    assert_int_equal(of['C'], 1200);
    assert_int_equal(of['N'], 1200);
    assert_int_equal(of['O'], 1200);
    assert_int_equal(of['Q'], 360);
    assert_int_equal(of['S'], 800);
    assert_int_equal(of['I'], 400);
    assert_near(of['L'] / 1200.0, 10.0, 0.4);
    erase_all();
    work_destroy(w);
}

static void a_run_keeps_it_consistent(void **state)
{
    (void)state;
    static const double shares[] = {0.45, 0.43, 0.04, 0.04, 0.04};
    struct work *w = begin();
    struct seen s = run(w, 20000, 7);
    for (uint32_t type = 0; type < 5; type++) {
        double n = (double)s.of[type];
        assert_near(n / (double)s.all, shares[type], 0.015);
        /* Only invalid items roll back. */
        assert_near((double)s.succeeded[type] / n, type == 0 ? 0.99 : 1.0, type == 0 ? 0.006 : 0.0);
    }
    assert_true(s.again > 100);
    assert_in_range(s.steps_most, 4, 6);
    /* Each of ten lines in a hundred, and each payment in seven, of three other warehouses two on
     * the other node. */
    assert_near((double)s.remote[0] / (double)s.of[0], 0.064, 0.01);
    assert_near((double)s.remote[1] / (double)s.of[1], 0.10, 0.01);
    assert_int_equal(s.remote[3], 0);
    assert_null(check(w));
    erase_all();
    work_destroy(w);
}

static struct row *any_row(char table, uint32_t skip)
{
    for (uint32_t i = 0; i < rows_n; i++) {
        if (rows[i]->key[4] == (uint8_t)table && skip-- == 0) {
            return rows[i];
        }
    }
    fail();
    return NULL;
}

/* What is lost, or done twice, shows. */
static void what_is_wrong_is_found(void **state)
{
    (void)state;
    static const struct {
        char table;
        uint32_t skip;
        bool lost;
        const char *found; /* the condition's number */
    } all[] = {{'L', 100, true, "6"}, {'O', 50, true, "6"},  {'Q', 3, true, "5"},
               {'H', 9, true, "10"},  {'Y', 0, false, "1"},  {'E', 4, false, "9"},
               {'D', 2, false, "2"},  {'B', 77, false, "10"}};
    struct work *w = begin();
    (void)run(w, 2000, 3);
    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct row *r = any_row(all[i].table, all[i].skip), before = *r;
        struct bytes key = key_of(&before);
        uint32_t at = all[i].table == 'D' ? 4 : 0;
        assert_null(check(w));
        if (all[i].lost) {
            erase(key);
        } else {
            r->value[at] ^= 1;
        }
        const char *wrong = check(w);
        assert_non_null(wrong);
        assert_memory_equal(wrong, all[i].found, strlen(all[i].found));
        if (all[i].lost) {
            *insert(key) = before;
        } else {
            r->value[at] ^= 1;
        }
    }
    assert_null(check(w));
    erase_all();
    work_destroy(w);
}

/* Transactions that do not watch lose each other's orders: the test can fail. */
static void without_watches_it_breaks(void **state)
{
    (void)state;
    struct work *w = begin();
    struct random random;
    struct work_txn *a = malloc(sizeof *a), *b = malloc(sizeof *b);
    assert_non_null(a);
    assert_non_null(b);
    random_init(&random, 5);
    do {
        work_draw(w, 0, &random, a);
    } while (a->type != 0 || a->kept.tpcc.lines[a->kept.tpcc.lines_n - 1].i == 200);
    memcpy(b, a, sizeof *b);
    for (uint32_t i = 0; i < b->ops_n; i++) {
        b->ops[i].key.at = b->memory + (b->ops[i].key.at - a->memory);
    }
    for (struct work_txn *t = a; t != NULL; t = t == a ? b : NULL) {
        assert_true(run_step(t));
        assert_int_equal(work_next(w, 0, t, true, answers, versions), WORK_MORE);
    }
    assert_true(run_step(a));
    assert_false(run_step(b)); /* it watches the district */
    b->watches_n = 0;
    assert_true(run_step(b));
    erase_all();
    work_destroy(w);
    free(a);
    free(b);
}

static int close_rows(void **state)
{
    (void)state;
    free(rows);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_population_is_consistent),
        cmocka_unit_test(a_run_keeps_it_consistent),
        cmocka_unit_test(what_is_wrong_is_found),
        cmocka_unit_test(without_watches_it_breaks),
    };
    return cmocka_run_group_tests(tests, NULL, close_rows);
}
