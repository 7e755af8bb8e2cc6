/* The workloads' mixes, populations and shares, against the published ones. */
#include "load/work.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "engine/txn.h"

/* ---- A store of its own: what exists, and numbers ---- */

#define BUCKETS (1u << 22)

struct row {
    uint64_t key; /* 0: free */
    int64_t number;
    bool exists;
};

static struct row *rows;

static struct row *row_of(struct bytes key)
{
    assert_int_equal(key.n, WORK_KEY_BYTES);
    uint64_t k = get_u64(key.at);
    uint64_t at = k * UINT64_C(0x9e3779b97f4a7c15) >> 42;
    while (rows[at].key != 0 && rows[at].key != k) {
        at = (at + 1) % BUCKETS;
    }
    rows[at].key = k;
    return &rows[at];
}

static struct answer do_op(const struct op *op)
{
    struct row *r = row_of(op->key);
    struct answer a = {.kind = ANSWER_NIL};
    switch (op->kind) {
    case OP_GET:
        a.kind = r->exists ? ANSWER_VALUE : ANSWER_NIL;
        break;
    case OP_SET:
        a.applied = r->exists || (op->flags & OPF_XX) == 0;
        a.kind = a.applied ? ANSWER_OK : ANSWER_NIL;
        break;
    case OP_DELETE:
        a = (struct answer){.kind = ANSWER_NUMBER, .number = r->exists, .applied = r->exists};
        r->exists = false;
        break;
    case TXN_OP_COPY: {
        struct row *target = row_of(op->arg);
        a.applied = r->exists && !target->exists;
        target->exists = target->exists || a.applied;
        a.kind = ANSWER_NUMBER;
        a.number = a.applied;
        break;
    }
    case OP_ADD:
        r->number += op->number;
        a = (struct answer){.kind = ANSWER_NUMBER, .number = r->number, .applied = true};
        break;
    default:
        assert_true(op->kind == OP_GETSET || op->kind == OP_SETRANGE);
        assert_true(r->exists);
        a = (struct answer){.kind = ANSWER_VALUE, .applied = true};
        break;
    }
    if (a.applied && (op->kind == OP_SET || op->kind == OP_ADD)) {
        r->exists = true;
    }
    return a;
}

/* TXN_ALL is only looked at where nothing was changed by what did not apply. */
static bool run_txn(const struct work_txn *txn, struct answer answers[WORK_OPS_MAX])
{
    bool applied = true;
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        answers[i] = do_op(&txn->ops[i]);
        applied = applied && answers[i].applied;
    }
    return applied || (txn->flags & TXN_ALL) == 0;
}

static struct work *begin(const struct work_config *config)
{
    struct work *w;
    memset(rows, 0, BUCKETS * sizeof *rows);
    assert_null(work_config_wrong(config));
    assert_int_equal(work_create(config, &w), HK_OK);
    struct work_txn *txn = malloc(sizeof *txn);
    assert_non_null(txn);
    for (uint32_t place = 0; place < config->nodes * config->workers; place++) {
        for (uint64_t i = 0; i < work_fill_count(w); i++) {
            if (work_fill(w, place, i, txn)) {
                struct answer a[WORK_OPS_MAX];
                assert_int_equal(txn->ops_n, 1);
                assert_false(txn->remote);
                assert_int_equal(work_home(txn->ops[0].key, config->nodes),
                                 place / config->workers);
                /* Once each. */
                assert_false(row_of(txn->ops[0].key)->exists);
                assert_true(run_txn(txn, a));
            }
        }
    }
    free(txn);
    return w;
}

struct seen {
    uint64_t all, of[WORK_TYPES_MAX], succeeded[WORK_TYPES_MAX], remote, remote_of[WORK_TYPES_MAX];
    uint64_t leaves; /* transactions of type 2 whose last object is another node's */
    int64_t sum;     /* of what transactions of two accounts add */
};

static bool crosses(const struct work *w, const struct work_txn *txn, uint32_t place)
{
    const struct work_config *c = work_config(w);
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        if (work_home(txn->ops[i].key, c->nodes) != place / c->workers) {
            return true;
        }
    }
    return false;
}

static struct seen draw(struct work *w, uint64_t n, uint64_t seed)
{
    struct seen s = {0};
    struct random random;
    struct work_txn *txn = malloc(sizeof *txn);
    const struct work_config *c = work_config(w);
    assert_non_null(txn);
    random_init(&random, seed);
    for (uint64_t i = 0; i < n; i++) {
        struct answer answers[WORK_OPS_MAX];
        uint32_t place = (uint32_t)(i % (c->nodes * c->workers));
        work_draw(w, place, &random, txn);
        bool applied = run_txn(txn, answers);
        assert_in_range(txn->type, 0, work_types(w) - 1);
        assert_int_equal(txn->remote, crosses(w, txn, place));
        s.all++;
        s.of[txn->type]++;
        s.succeeded[txn->type] += work_succeeded(w, txn, applied, answers);
        s.remote += txn->remote;
        s.leaves += txn->type == 2 &&
                    work_home(txn->ops[txn->ops_n - 1].key, c->nodes) != place / c->workers;
        s.remote_of[txn->type] += txn->remote;
        for (uint32_t k = 0; txn->ops[0].kind == OP_ADD && k < txn->ops_n; k++) {
            s.sum += txn->ops[k].number;
        }
        work_done(w, place, txn, true);
    }
    free(txn);
    return s;
}

static void assert_share(uint64_t part, uint64_t all, double share, double off)
{
    double x = (double)part / (double)all;
    if (fabs(x - share) > off) {
        fail_msg("%.4f, not %.4f", x, share);
    }
}

/* ---- The tests ---- */

static void every_workload_has_the_remote_share_that_is_asked_for(void **state)
{
    (void)state;
    static const double shares[] = {0.0, 1.0, 5.0, 20.0, 100.0};
    for (uint32_t kind = 0; kind < WORK_REMOTE_KINDS; kind++) {
        for (uint32_t i = 0; i < 5; i++) {
            struct work_config config = work_defaults((enum work_kind)kind);
            config.objects = 2000;
            config.hot = 100;
            config.workers = 2;
            config.remote = shares[i];
            config.shift = 0;
            struct work *w = begin(&config);
            struct seen s = draw(w, 60000, kind * 10 + i);
            if (kind == WORK_HANDOVERS) {
                assert_share(s.leaves, s.of[2], shares[i] / 100.0, 0.015);
            } else {
                assert_share(s.remote, s.all, shares[i] / 100.0, 0.01);
            }
            work_destroy(w);
        }
    }
}

static void one_node_has_nothing_elsewhere(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind < WORK_REMOTE_KINDS; kind++) {
        for (double remote = -1.0; remote <= 100.0; remote += 101.0) {
            struct work_config config = work_defaults((enum work_kind)kind);
            config.objects = 1000;
            config.hot = 100;
            config.nodes = 1;
            config.remote = remote;
            struct work *w = begin(&config);
            assert_int_equal(draw(w, 20000, 1).remote, 0);
            work_destroy(w);
        }
    }
}

static void smallbank_has_its_mix_and_makes_no_money(void **state)
{
    (void)state;
    static const double mix[] = {0.15, 0.15, 0.15, 0.25, 0.15, 0.15};
    struct work_config config = work_defaults(WORK_SMALLBANK);
    config.objects = 20000;
    struct work *w = begin(&config);
    struct seen s = draw(w, 200000, 3);
    for (uint32_t type = 0; type < 6; type++) {
        assert_share(s.of[type], s.all, mix[type], 0.005);
        assert_int_equal(s.succeeded[type], s.of[type]);
    }
    /* Transactions of two accounts add nothing; each deposit or saving 50.5 in the mean. */
    assert_share((uint64_t)s.sum, s.of[2] + s.of[4], 50.5, 0.5);
    work_destroy(w);
}

static void nine_of_ten_accounts_are_hot(void **state)
{
    (void)state;
    struct work_config config = work_defaults(WORK_SMALLBANK);
    config.remote = 0.0;
    struct work *w;
    assert_int_equal(work_create(&config, &w), HK_OK);
    struct random random;
    struct work_txn *txn = malloc(sizeof *txn);
    assert_non_null(txn);
    random_init(&random, 5);
    uint32_t hot = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        work_draw(w, 1, &random, txn);
        hot += (get_u32(txn->ops[0].key.at + 4) & 0xfffffffu) % 25 == 0;
    }
    /* Of the other accounts one in 25 stands where a hot one does. */
    assert_share(hot, 100000, 0.904, 0.005);
    free(txn);
    work_destroy(w);
}

/* [Z] measured 0.81, 1.40 and 1.88 % of the transactions on Venmo's graph. */
static void the_payment_graph_has_venmos_remote_shares(void **state)
{
    (void)state;
    static const struct {
        uint32_t nodes;
        double percent;
    } measured[] = {{3, 0.81}, {6, 1.40}, {9, 1.88}};
    for (uint32_t i = 0; i < 3; i++) {
        struct work_config config = work_defaults(WORK_SMALLBANK);
        config.nodes = measured[i].nodes;
        struct work *w;
        assert_int_equal(work_create(&config, &w), HK_OK);
        struct seen s = draw(w, 400000, 7);
        assert_share(s.remote, s.all, measured[i].percent / 100.0, 0.0008);
        assert_int_equal(s.remote_of[2] + s.remote_of[4] + s.remote_of[5], 0);
        work_destroy(w);
    }
}

static void tatp_has_its_mix_and_its_gaps(void **state)
{
    (void)state;
    static const double mix[] = {0.35, 0.10, 0.35, 0.02, 0.14, 0.02, 0.02};
    struct work_config config = work_defaults(WORK_TATP);
    struct work *w = begin(&config);
    /* As often as changes the rows little, then long enough for them to be those of the mix. */
    for (uint32_t round = 0; round < 2; round++) {
        struct seen s = draw(w, round == 0 ? 400000 : 2000000, round);
        for (uint32_t type = 0; type < 7; type++) {
            double count = (double)s.of[type];
            double expected = work_type_success(w, type);
            assert_share(s.of[type], s.all, mix[type], 0.003);
            assert_share(s.succeeded[type], s.of[type], expected,
                         0.004 + 5.0 * sqrt(expected * (1.0 - expected) / count));
        }
        assert_int_equal(s.succeeded[0], s.of[0]);
    }
    work_destroy(w);
}

static void handovers_are_as_many_as_asked_for(void **state)
{
    (void)state;
    static const double percent[] = {2.5, 5.0};
    for (uint32_t i = 0; i < 2; i++) {
        struct work_config config = work_defaults(WORK_HANDOVERS);
        config.objects = 20000;
        config.handovers = percent[i];
        struct work *w = begin(&config);
        struct seen s = draw(w, 400000, i);
        assert_share(s.of[2], s.of[0] + s.of[1], percent[i] / 100.0, 0.002);
        /* Each that starts finishes. */
        assert_in_range(s.of[2] - s.of[3], 0, 3 * 256);
        assert_share(s.of[0], s.of[0] + s.of[1], 0.5, 0.1);
        /* One direction of four leads over each of two borders, 16 stations apart; whoever goes
         * home goes along the band. */
        assert_share(s.leaves, s.of[2], 1.5 / 32, 0.5 / 32);
        assert_true(s.remote_of[3] > 0);
        work_destroy(w);
    }
}

/* Whoever crossed a border is served on the other side, and is asked for nowhere else. */
static void a_phone_is_at_one_place(void **state)
{
    (void)state;
    struct work_config config = work_defaults(WORK_HANDOVERS);
    config.objects = 300;
    config.handovers = 50.0;
    struct work *w = begin(&config);
    static uint32_t place_of[3][300], moves, served_abroad;
    memset(place_of, 0xff, sizeof place_of);
    struct random random;
    struct work_txn *txn = malloc(sizeof *txn);
    assert_non_null(txn);
    random_init(&random, 11);
    for (uint32_t i = 0; i < 300000; i++) {
        uint32_t place = i % 3;
        work_draw(w, place, &random, txn);
        uint32_t home = work_home(txn->ops[0].key, 3);
        uint32_t *at = &place_of[home][get_u32(txn->ops[0].key.at + 4)];
        if (*at != UINT32_MAX && *at != place) {
            assert_int_equal(txn->type, 3); /* handover finish: it has come */
            moves++;
        }
        served_abroad += txn->type < 2 && home != place;
        *at = place;
        /* Some are given up: then nothing has changed. */
        work_done(w, place, txn, txn->type != 2 || random_below(&random, 10) != 0);
    }
    assert_true(moves > 500);
    assert_true(served_abroad > 1000);
    free(txn);
    work_destroy(w);
}

static void popularity_moves_on(void **state)
{
    (void)state;
    struct work_config config = work_defaults(WORK_VOTER);
    config.objects = 20000;
    config.shift = 1000;
    struct work *w = begin(&config);
    /* All places are at the same round: three rounds of 1000 transactions each. */
    assert_int_equal(draw(w, 3000, 1).remote, 0);
    struct seen shifted = draw(w, 6000, 2);
    /* 1 / H(20, 0.99) of the votes are for the first contestant. */
    assert_share(shifted.remote, shifted.all, 0.276, 0.03);
    assert_int_equal(draw(w, 3000, 3).remote, 0);
    work_destroy(w);
}

static void ycsb_has_its_requests(void **state)
{
    (void)state;
    struct work_config config = work_defaults(WORK_YCSB);
    config.objects = 1000;
    config.writes = 30.0;
    struct work *w = begin(&config);
    struct random random;
    struct work_txn *txn = malloc(sizeof *txn);
    assert_non_null(txn);
    random_init(&random, 1);
    uint32_t writes = 0, seen[1000] = {0}, most = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        work_draw(w, 0, &random, txn);
        assert_int_equal(txn->ops_n, 16);
        for (uint32_t k = 0; k < 16; k++) {
            writes += txn->ops[k].kind == OP_SET;
            uint32_t id = get_u32(txn->ops[k].key.at + 4);
            most = ++seen[id] > most ? seen[id] : most;
        }
    }
    assert_share(writes, 160000, 0.30, 0.01);
    /* 1 / H(1000, 0.9) */
    assert_share(most, 160000, 0.0925, 0.003);
    free(txn);
    work_destroy(w);
}

static uint32_t number_of(struct bytes key)
{
    return (uint32_t)key.at[4] << 24 | (uint32_t)key.at[5] << 16 | (uint32_t)key.at[6] << 8 |
           key.at[7];
}

/* What a core workload draws: kinds of operations, and how often the most popular record. */
struct core {
    uint32_t of[256], most;
    uint64_t requests;
};

static struct core draw_core(struct work *w, uint32_t n, uint32_t per_place)
{
    static uint32_t seen[3][1000];
    struct core c = {0};
    struct random random;
    struct work_txn *txn = malloc(sizeof *txn);
    const struct work_config *config = work_config(w);
    assert_non_null(txn);
    memset(seen, 0, sizeof seen);
    random_init(&random, 1);
    for (uint32_t i = 0; i < n; i++) {
        work_draw(w, i % 3, &random, txn);
        for (uint32_t k = 0; k < txn->ops_n; k++) {
            const struct op *op = &txn->ops[k];
            uint32_t home = work_home(op->key, 3), number = number_of(op->key);
            c.of[op->kind]++;
            assert_true(number < per_place + 100000);
            if (number < per_place && ++seen[home][number] > c.most) {
                c.most = seen[home][number];
            }
            /* No record twice, but to be read before it is written. */
            for (uint32_t j = 0; j < k; j++) {
                assert_true(!bytes_equal(txn->ops[j].key, op->key) ||
                            (config->kind == WORK_YCSB_F && j + 1 == k));
            }
        }
        c.requests += config->requests;
        work_done(w, i % 3, txn, true);
    }
    free(txn);
    return c;
}

static void the_core_workloads_have_their_requests(void **state)
{
    (void)state;
    static const struct {
        enum work_kind kind;
        double reads, writes, inserts, scans;
    } all[] = {
        {WORK_YCSB_A, 0.5, 0.5, 0, 0},   {WORK_YCSB_B, 0.95, 0.05, 0, 0},
        {WORK_YCSB_C, 1.0, 0, 0, 0},     {WORK_YCSB_D, 0.95, 0, 0.05, 0},
        {WORK_YCSB_E, 0, 0, 0.05, 0.95}, {WORK_YCSB_F, 1.0, 0.5, 0, 0},
    };
    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct work_config config = work_defaults(all[i].kind);
        config.objects = 1000;
        struct work *w;
        assert_int_equal(work_create(&config, &w), HK_OK);
        struct core c = draw_core(w, 160000 / config.requests, 1000);
        assert_share(c.of[OP_GET], c.requests, all[i].reads, 0.01);
        assert_share(c.of[OP_SETRANGE], c.requests, all[i].writes, 0.01);
        assert_share(c.of[OP_SET], c.requests, all[i].inserts, 0.01);
        assert_share(c.of[TXN_OP_RANGE], c.requests, all[i].scans, 0.01);
        /* 1 / H(3000, 0.9) where each request draws; once a transaction where none is redrawn. */
        assert_true(all[i].kind == WORK_YCSB_D || c.most > c.requests / 25);
        work_destroy(w);
    }
}

/* One value instead of columns; a popular record's neighbours are popular, or not. */
static void records_are_whole_and_neighbours_if_asked_for(void **state)
{
    (void)state;
    for (uint32_t neighbours = 0; neighbours < 2; neighbours++) {
        struct work_config config = work_defaults(WORK_YCSB_A);
        config.objects = 1000;
        config.columns = 1;
        config.requests = 32;
        config.neighbours = neighbours != 0;
        struct work *w;
        struct random random;
        struct work_txn *txn = malloc(sizeof *txn);
        assert_non_null(txn);
        assert_int_equal(work_create(&config, &w), HK_OK);
        random_init(&random, 2);
        uint32_t first = 0, all = 0;
        for (uint32_t i = 0; i < 1000; i++) {
            work_draw(w, 0, &random, txn);
            assert_int_equal(txn->ops_n, 32);
            for (uint32_t k = 0; k < 32; k++) {
                first += number_of(txn->ops[k].key) < 10;
                all++;
                assert_true(txn->ops[k].kind == OP_GET ||
                            (txn->ops[k].kind == OP_SET && txn->ops[k].value.n == 1000));
            }
        }
        /* The 30 most popular of 3000 take a third; any 30 a hundredth. */
        assert_true(neighbours != 0 ? first > all / 4 : first < all / 10);
        free(txn);
        work_destroy(w);
    }
}

/* Readers of the latest find what has been answered, also while older inserts are not. */
static void the_latest_are_there(void **state)
{
    (void)state;
    struct work_config config = work_defaults(WORK_YCSB_D);
    config.nodes = 1;
    config.objects = 100;
    config.requests = 8;
    struct work *w;
    struct random random;
    struct work_txn *txns = calloc(64, sizeof *txns);
    bool *there = calloc(20000, sizeof *there), drawn[64] = {false};
    uint32_t most = 0;
    assert_non_null(txns);
    assert_non_null(there);
    assert_int_equal(work_create(&config, &w), HK_OK);
    memset(there, true, 100);
    random_init(&random, 3);
    for (uint32_t i = 0; i < 20000; i++) {
        struct work_txn *txn = &txns[random_below(&random, 64)];
        if (drawn[txn - txns]) {
            for (uint32_t k = 0; k < txn->ops_n; k++) {
                uint32_t number = number_of(txn->ops[k].key);
                assert_true(number < 20000);
                there[number] = there[number] || txn->ops[k].kind == OP_SET;
            }
            work_done(w, 0, txn, true);
        }
        work_draw(w, 0, &random, txn);
        drawn[txn - txns] = true;
        for (uint32_t k = 0; k < txn->ops_n; k++) {
            uint32_t number = number_of(txn->ops[k].key);
            assert_true(txn->ops[k].kind != OP_GET || there[number]);
            most = number > most ? number : most;
        }
    }
    assert_true(most > 5000);
    free(txns);
    free(there);
    work_destroy(w);
}

static void the_same_seed_draws_the_same(void **state)
{
    (void)state;
    struct work_txn *a = malloc(sizeof *a), *b = malloc(sizeof *b);
    assert_non_null(a);
    assert_non_null(b);
    for (uint32_t kind = 0; kind < WORK_KINDS; kind++) {
        struct work_config config = work_defaults((enum work_kind)kind);
        struct work *v, *w;
        struct random r, s;
        assert_int_equal(work_create(&config, &v), HK_OK);
        assert_int_equal(work_create(&config, &w), HK_OK);
        random_init(&r, 9);
        random_init(&s, 9);
        for (uint32_t i = 0; i < 2000; i++) {
            work_draw(v, i % 3, &r, a);
            work_draw(w, i % 3, &s, b);
            assert_int_equal(a->type, b->type);
            assert_int_equal(a->ops_n, b->ops_n);
            for (uint32_t k = 0; k < a->ops_n; k++) {
                assert_true(a->ops[k].kind == b->ops[k].kind &&
                            bytes_equal(a->ops[k].key, b->ops[k].key));
            }
            work_done(v, i % 3, a, true);
            work_done(w, i % 3, b, true);
        }
        work_destroy(v);
        work_destroy(w);
    }
    free(a);
    free(b);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct work *w;
    struct work_config config = work_defaults(WORK_YCSB);
    config.requests = 33;
    assert_non_null(work_config_wrong(&config));
    assert_int_equal(work_create(&config, &w), HK_ERR_INVALID);
    config = work_defaults(WORK_SMALLBANK);
    config.hot = config.objects + 1;
    assert_non_null(work_config_wrong(&config));
    config = work_defaults(WORK_TATP);
    config.objects = 63;
    assert_non_null(work_config_wrong(&config));
    config = work_defaults(WORK_TATP);
    config.remote = 100.5;
    assert_non_null(work_config_wrong(&config));
    config = work_defaults(WORK_YCSB_A);
    config.requests = 33;
    assert_non_null(work_config_wrong(&config));
    config = work_defaults(WORK_YCSB_A);
    config.columns = 0;
    assert_non_null(work_config_wrong(&config));
    config = work_defaults(WORK_YCSB_A);
    config.remote = 5.0;
    assert_non_null(work_config_wrong(&config));
    config = work_defaults(WORK_YCSB_E);
    config.scan = 1001;
    assert_non_null(work_config_wrong(&config));
    config = work_defaults(WORK_TPCC);
    config.warehouses = 0;
    assert_non_null(work_config_wrong(&config));
    config = work_defaults(WORK_TPCC);
    config.customers = 3001;
    assert_non_null(work_config_wrong(&config));
}

static int open_rows(void **state)
{
    (void)state;
    rows = malloc(BUCKETS * sizeof *rows);
    return rows == NULL;
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
        cmocka_unit_test(every_workload_has_the_remote_share_that_is_asked_for),
        cmocka_unit_test(one_node_has_nothing_elsewhere),
        cmocka_unit_test(smallbank_has_its_mix_and_makes_no_money),
        cmocka_unit_test(nine_of_ten_accounts_are_hot),
        cmocka_unit_test(the_payment_graph_has_venmos_remote_shares),
        cmocka_unit_test(tatp_has_its_mix_and_its_gaps),
        cmocka_unit_test(handovers_are_as_many_as_asked_for),
        cmocka_unit_test(a_phone_is_at_one_place),
        cmocka_unit_test(popularity_moves_on),
        cmocka_unit_test(ycsb_has_its_requests),
        cmocka_unit_test(the_core_workloads_have_their_requests),
        cmocka_unit_test(records_are_whole_and_neighbours_if_asked_for),
        cmocka_unit_test(the_latest_are_there),
        cmocka_unit_test(the_same_seed_draws_the_same),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, open_rows, close_rows);
}
