/* What is violated is made small: runs by leaving out faults, clients, keys and time, histories by
 * leaving out operations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/setup.h"
#include "sim/shrink.h"
#include "sim/shrink_history.h"

/* ---- Histories ---- */

static struct history_op op_at(uint64_t begin, uint64_t end, enum history_kind kind, int64_t in,
                               int64_t out)
{
    return (struct history_op){
        .begin_us = begin,
        .end_us = end,
        .kind = (uint8_t)kind,
        .in = in,
        .expected = HISTORY_ABSENT,
        .out = out,
        .ok = true,
        .outcome = HISTORY_OK,
    };
}

static struct history_op wrote(uint64_t begin, uint64_t end, int64_t value)
{
    return op_at(begin, end, HISTORY_WRITE, value, HISTORY_ABSENT);
}

static struct history_op read_at(uint64_t begin, uint64_t end, int64_t value)
{
    return op_at(begin, end, HISTORY_READ, HISTORY_ABSENT, value);
}

static bool is_refused(const struct history *history)
{
    struct check_report report;
    return check_linearizable(history, 0, &report) == CHECK_REFUSED;
}

static bool holds(const struct history *history, enum history_kind kind, int64_t number)
{
    for (size_t i = 0; i < history->n; i++) {
        const struct history_op *op = &history->ops[i];
        if (op->kind == kind && (op->in == number || op->out == number)) {
            return true;
        }
    }
    return false;
}

/* A long history of writes, each seen by two readers; then somebody sees an old value. */
static void test_stale_read(void **state)
{
    (void)state;
    struct history_op ops[400];
    struct history history = {.ops = ops, .n = 0};
    for (uint64_t i = 0; i < 120; i++) {
        ops[history.n++] = wrote(100 * i, 100 * i + 20, (int64_t)i);
        ops[history.n++] = read_at(100 * i + 30, 100 * i + 40, (int64_t)i);
        ops[history.n++] = read_at(100 * i + 50, 100 * i + 60, (int64_t)i);
    }
    ops[100 * 3 + 2].out = 98; /* of 100, though 99 was seen before */
    assert_true(is_refused(&history));
    uint32_t checks = shrink_history(&history, 4000);
    assert_true(checks > 0 && checks < 4000);
    assert_true(is_refused(&history));
    assert_int_equal(history.n, 3);
    assert_true(holds(&history, HISTORY_WRITE, 98));
    assert_true(holds(&history, HISTORY_READ, 98));
}

/* Increments depend on each other from the first to the last, and still only the last matter. */
static void test_lost_increment(void **state)
{
    (void)state;
    struct history_op ops[300];
    struct history history = {.ops = ops, .n = 0};
    for (uint64_t i = 0; i < 100; i++) {
        ops[history.n++] = op_at(100 * i, 100 * i + 20, HISTORY_ADD, 1, (int64_t)i + 1);
        ops[history.n++] = read_at(100 * i + 30, 100 * i + 40, (int64_t)i + 1);
    }
    ops[2 * 90].out = 90; /* the same as the one before */
    assert_true(is_refused(&history));
    (void)shrink_history(&history, 4000);
    assert_true(is_refused(&history));
    assert_true(history.n <= 4);
    assert_true(holds(&history, HISTORY_ADD, 90));
}

/* A value that has expired comes back. Deadlines that can have passed stay in the history. */
static void test_expired_value(void **state)
{
    (void)state;
    struct history_op ops[100];
    struct history history = {.ops = ops, .n = 0};
    for (uint64_t i = 0; i < 20; i++) {
        ops[history.n++] = wrote(100 * i, 100 * i + 20, (int64_t)i);
        ops[history.n++] = read_at(100 * i + 30, 100 * i + 40, (int64_t)i);
    }
    struct history_op fleeting = wrote(2000, 2010, 77);
    fleeting.deadline = 5;
    fleeting.not_before_us = 2050;
    ops[history.n++] = fleeting;
    ops[history.n++] = read_at(2020, 2030, 77);
    ops[history.n++] = read_at(2100, 2110, HISTORY_ABSENT);
    ops[history.n++] = read_at(2120, 2130, 77);
    assert_true(is_refused(&history));
    (void)shrink_history(&history, 4000);
    assert_true(is_refused(&history));
    assert_true(holds(&history, HISTORY_WRITE, 77) && holds(&history, HISTORY_READ, 77));
}

/* A key with a value and perhaps a deadline, as one copy of the data would have it. */
struct model {
    uint32_t chance;
    int64_t value;
    uint64_t deadline, not_before;
};

static uint32_t below(struct model *m, uint32_t n)
{
    m->chance = m->chance * 1103515245u + 12345u;
    return m->chance / 65536u % n;
}

static void put(struct model *m, int64_t value, uint64_t deadline, uint64_t not_before)
{
    m->value = value;
    m->deadline = value == HISTORY_ABSENT ? 0 : deadline;
    m->not_before = value == HISTORY_ABSENT ? 0 : not_before;
}

/* What the operation does and answers. */
static void apply(struct model *m, struct history_op *op)
{
    bool there = m->value != HISTORY_ABSENT;
    bool same = m->value == op->expected;
    uint64_t deadline = op->deadline == HISTORY_KEEP ? m->deadline : op->deadline;
    uint64_t not_before = op->deadline == HISTORY_KEEP ? m->not_before : op->not_before_us;
    switch ((enum history_kind)op->kind) {
    case HISTORY_READ:
        op->out = m->value;
        break;
    case HISTORY_GETEX:
        op->out = m->value;
        put(m, m->value, deadline, not_before);
        break;
    case HISTORY_GETSET:
        op->out = m->value;
        put(m, op->in, deadline, not_before);
        break;
    case HISTORY_GETDEL:
        op->out = m->value;
        put(m, HISTORY_ABSENT, 0, 0);
        break;
    case HISTORY_WRITE:
        put(m, op->in, deadline, not_before);
        break;
    case HISTORY_DELETE_PRESENT:
        op->ok = there;
        put(m, HISTORY_ABSENT, 0, 0);
        break;
    case HISTORY_DELETE_IF:
        op->ok = same;
        put(m, same ? HISTORY_ABSENT : m->value, m->deadline, m->not_before);
        break;
    case HISTORY_SET_IF:
        op->ok = same;
        put(m, same ? op->in : m->value, same ? deadline : m->deadline,
            same ? not_before : m->not_before);
        break;
    case HISTORY_SET_ABSENT:
    case HISTORY_SET_PRESENT:
        op->ok = there == (op->kind == HISTORY_SET_PRESENT);
        if (op->ok) {
            put(m, op->in, deadline, not_before);
        }
        break;
    case HISTORY_ADD:
        put(m, (there ? m->value : 0) + op->in, m->deadline, m->not_before);
        op->out = m->value;
        break;
    case HISTORY_EXISTS:
        op->ok = there;
        break;
    case HISTORY_EXPIRE:
        op->ok = there;
        put(m, m->value, deadline, not_before);
        break;
    case HISTORY_PERSIST:
        op->ok = m->deadline != 0;
        put(m, m->value, 0, 0);
        break;
    case HISTORY_TTL:
        op->out = there ? m->deadline != 0 : HISTORY_ABSENT;
        op->deadline = m->deadline;
        break;
    case HISTORY_DELETE:
    case HISTORY_RMW:
        fail();
    }
}

static struct history_op draw(struct model *m, uint64_t at, bool deadlines)
{
    static const enum history_kind kinds[] = {HISTORY_READ,
                                              HISTORY_READ,
                                              HISTORY_READ,
                                              HISTORY_WRITE,
                                              HISTORY_WRITE,
                                              HISTORY_SET_IF,
                                              HISTORY_GETSET,
                                              HISTORY_ADD,
                                              HISTORY_SET_ABSENT,
                                              HISTORY_SET_PRESENT,
                                              HISTORY_DELETE_PRESENT,
                                              HISTORY_EXISTS,
                                              HISTORY_GETDEL,
                                              HISTORY_DELETE_IF,
                                              HISTORY_TTL,
                                              HISTORY_EXPIRE,
                                              HISTORY_PERSIST,
                                              HISTORY_GETEX};
    uint32_t n = sizeof kinds / sizeof kinds[0] - (deadlines ? 0 : 4);
    enum history_kind kind = kinds[below(m, n)];
    struct history_op op =
        op_at(at - below(m, 8), at + below(m, 8), kind, HISTORY_ABSENT, HISTORY_ABSENT);
    bool sets = kind == HISTORY_WRITE || kind == HISTORY_SET_IF || kind == HISTORY_GETSET ||
                kind == HISTORY_SET_ABSENT || kind == HISTORY_SET_PRESENT;
    op.end_us += below(m, 6) == 0 ? 40 : 0;
    op.in = kind == HISTORY_ADD ? 1 : sets ? (int64_t)below(m, 6) : HISTORY_ABSENT;
    if (kind == HISTORY_SET_IF || kind == HISTORY_DELETE_IF) {
        op.expected = (int64_t)below(m, 6);
    }
    uint32_t what = below(m, 4);
    if (deadlines && sets && what == 1) {
        op.deadline = HISTORY_KEEP;
    } else if (kind == HISTORY_EXPIRE ||
               (deadlines && (sets || kind == HISTORY_GETEX) && what >= 2)) {
        op.deadline = at;
        op.not_before_us = below(m, 3) == 0 ? 1000000 : at + below(m, 60);
    }
    return op;
}

/* A history that one copy of the data explains. */
static void draw_history(struct model *m, struct history *history)
{
    bool deadlines = below(m, 2) == 0;
    uint32_t gap = 6 + 8 * below(m, 3);
    for (uint64_t i = 0; i < 8; i++) {
        uint64_t at = 100 + gap * i;
        struct history_op op = draw(m, at, deadlines);
        bool expired = m->deadline != 0 && m->not_before <= at;
        if (expired && below(m, 2) == 0) {
            put(m, HISTORY_ABSENT, 0, 0);
        }
        bool unknown = below(m, 6) == 0;
        if (!unknown || below(m, 2) == 0) {
            apply(m, &op);
        }
        if (unknown) {
            op.outcome = HISTORY_UNKNOWN;
            op.out = HISTORY_ABSENT;
            op.deadline = op.kind == HISTORY_TTL ? 0 : op.deadline;
        }
        history->ops[history->n++] = op;
    }
}

#define ROUNDS 20000u

/* Each step says: if the shorter history is refused, so was the longer. So no step may be able to
 * make a refused history of one that is accepted; and of one that is refused, something is left. */
static void test_steps_are_sound(void **state)
{
    (void)state;
    struct model model = {.chance = 7};
    uint32_t shorter = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct history_op ops[8];
        struct history history = {.ops = ops, .n = 0};
        put(&model, HISTORY_ABSENT, 0, 0);
        draw_history(&model, &history);
        assert_false(is_refused(&history));
        (void)shrink_history(&history, 4000);
        assert_int_equal(history.n, 8);
        /* One answer is another one. */
        struct history_op *op = &ops[below(&model, 8)];
        op->out = op->kind == HISTORY_READ ? (int64_t)below(&model, 6) : op->out;
        if (op->outcome == HISTORY_OK && is_refused(&history)) {
            (void)shrink_history(&history, 4000);
            assert_true(is_refused(&history));
            shorter += history.n < 8;
        }
    }
    assert_true(shorter > 500);
}

/* ---- Runs ---- */

static void run_here(void *context, const struct sim_config *config, uint64_t seed,
                     struct shrink_outcome *outcome_out)
{
    uint32_t *runs = context;
    struct sim_result result;
    (*runs)++;
    sim_run(config, seed, &result);
    shrink_note(&result, outcome_out);
    sim_result_deinit(&result);
}

static void test_run_becomes_small(void **state)
{
    (void)state;
    const struct sim_config config = {.nodes = 3, .faults = SIM_FAULTS_ALL, .tamper = true};
    uint32_t found = 0;
    for (uint64_t seed = 1; seed <= 12 && found < 3; seed++) {
        struct shrink shrink;
        uint32_t runs = 0;
        if (!shrink_run(&shrink, &config, seed, run_here, NULL, &runs, 100)) {
            continue;
        }
        found++;
        assert_int_equal(shrink.runs, runs);
        assert_true(runs <= 100);
        assert_string_equal(shrink.outcome.rule, shrink.first.rule);
        /* One read is recorded wrongly, whatever the faults. */
        assert_true((shrink.outcome.drawn & ~shrink.config.faults_skip) == 0);
        assert_true(shrink.config.until != 0 && shrink.outcome.steps < shrink.first.steps);
        struct sim_result result;
        sim_run(&shrink.config, seed, &result);
        assert_int_equal(result.verdict, SIM_VIOLATION);
        assert_string_equal(result.rule, shrink.first.rule);
        (void)shrink_history(&result.refused, 4000);
        assert_true(result.refused.n >= 2 && result.refused.n <= 8);
        sim_result_deinit(&result);
    }
    assert_int_equal(found, 3);
}

static void test_sound_run_is_left_alone(void **state)
{
    (void)state;
    const struct sim_config config = {.nodes = 3};
    struct shrink shrink;
    uint32_t runs = 0;
    assert_false(shrink_run(&shrink, &config, 1, run_here, NULL, &runs, 100));
    assert_int_equal(runs, 1);
}

static void test_options_of_a_run(void **state)
{
    (void)state;
    struct sim_config config = {
        .nodes = 5,
        .faults = SIM_FAULTS_ALL,
        .faults_skip = 1u << SIM_FAULT_LOSS | 1u << SIM_FAULT_CRASH,
        .plan_skip = 1u << 0 | 1u << 4,
        .async = SIM_OFF,
        .clients_max = 2,
        .until = 1234,
    };
    struct text text = {0};
    shrink_options(&config, &text);
    assert_string_equal(text_string(&text), " --nodes 5 --no-async --skip-faults loss,crash"
                                            " --skip 0,4 --clients 2 --until 1234");
    text_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stale_read),        cmocka_unit_test(test_lost_increment),
        cmocka_unit_test(test_expired_value),     cmocka_unit_test(test_steps_are_sound),
        cmocka_unit_test(test_run_becomes_small), cmocka_unit_test(test_sound_run_is_left_alone),
        cmocka_unit_test(test_options_of_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
