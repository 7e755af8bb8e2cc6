/* check_sequential: histories that are right, histories that are wrong in one way each, and small
 * random ones against a search that tries everything. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "check/sequential.h"

static struct sequential_op make(uint32_t session, uint64_t begin, uint64_t key, uint8_t kind,
                                 uint64_t version)
{
    return (struct sequential_op){
        .session = session,
        .version = version,
        .h = {.begin_us = begin,
              .end_us = begin + 1,
              .key = key,
              .kind = kind,
              .client = session,
              .in = HISTORY_ABSENT,
              .expected = HISTORY_ABSENT,
              .out = HISTORY_ABSENT},
    };
}

static struct sequential_op set(uint32_t session, uint64_t begin, uint64_t key, int64_t value,
                                uint64_t version)
{
    struct sequential_op op = make(session, begin, key, HISTORY_WRITE, version);
    op.h.in = value;
    return op;
}

static struct sequential_op get(uint32_t session, uint64_t begin, uint64_t key, int64_t value,
                                uint64_t version)
{
    struct sequential_op op = make(session, begin, key, HISTORY_READ, version);
    op.h.out = value;
    return op;
}

static struct sequential_op del(uint32_t session, uint64_t begin, uint64_t key, bool ok,
                                uint64_t version)
{
    struct sequential_op op = make(session, begin, key, HISTORY_DELETE_PRESENT, version);
    op.h.ok = ok;
    return op;
}

static struct sequential_op erase(uint32_t session, uint64_t begin, uint64_t key, uint64_t version)
{
    return make(session, begin, key, HISTORY_DELETE, version);
}

static struct sequential_op add(uint32_t session, uint64_t begin, uint64_t key, int64_t delta,
                                int64_t sum, uint64_t version)
{
    struct sequential_op op = make(session, begin, key, HISTORY_ADD, version);
    op.h.in = delta;
    op.h.out = sum;
    return op;
}

static struct sequential_op unknown(struct sequential_op op)
{
    op.h.outcome = HISTORY_UNKNOWN;
    op.version = 0;
    return op;
}

#define NIL HISTORY_ABSENT
#define ACCEPTED(...) expect(CHECK_ACCEPTED, COUNT(__VA_ARGS__), __VA_ARGS__)
#define REFUSED(...) expect(CHECK_REFUSED, COUNT(__VA_ARGS__), __VA_ARGS__)
#define COUNT(...) (sizeof((struct sequential_op[]){__VA_ARGS__}) / sizeof(struct sequential_op))

static void expect(enum check_result result, size_t n, ...)
{
    struct sequential_op ops[16];
    struct check_report report;
    va_list args;
    assert_true(n <= 16);
    va_start(args, n);
    for (size_t i = 0; i < n; i++) {
        ops[i] = va_arg(args, struct sequential_op);
    }
    va_end(args);
    struct sequential_history history = {ops, n};
    assert_int_equal(check_sequential(&history, &report), result);
    assert_true((report.text[0] != '\0') == (result == CHECK_REFUSED));
}

static void reads_may_lag(void **state)
{
    (void)state;
    ACCEPTED(set(0, 10, 1, 5, 1), set(0, 20, 1, 6, 2), get(1, 30, 1, 5, 1), get(1, 40, 1, 6, 2));
    ACCEPTED(set(0, 10, 1, 5, 1), get(1, 30, 1, NIL, 0), get(1, 40, 1, 5, 1));
    /* Other keys' updates between do no harm. */
    ACCEPTED(set(0, 10, 1, 5, 1), set(0, 20, 2, 6, 2), get(1, 30, 2, 6, 2), get(1, 40, 1, 5, 1));
}

static void a_session_does_not_go_back(void **state)
{
    (void)state;
    REFUSED(set(0, 10, 1, 5, 1), set(0, 20, 1, 6, 2), get(1, 30, 1, 6, 2), get(1, 40, 1, 5, 1));
    /* Neither by way of another key ... */
    REFUSED(set(0, 10, 1, 5, 1), set(0, 20, 1, 6, 2), set(0, 30, 2, 7, 3), get(1, 40, 2, 7, 3),
            get(1, 50, 1, 5, 1));
    /* ... nor past its own update. */
    REFUSED(set(0, 10, 1, 5, 1), set(1, 20, 2, 7, 2), get(1, 40, 1, NIL, 0));
    ACCEPTED(set(1, 5, 2, 7, 1), set(0, 10, 1, 5, 2), get(1, 40, 1, NIL, 0));
    REFUSED(set(0, 10, 1, 5, 3), set(0, 10, 2, 6, 2));
}

static void numbers_are_kept_apart(void **state)
{
    (void)state;
    REFUSED(set(0, 10, 1, 5, 1), set(1, 10, 2, 6, 1));
    REFUSED(set(0, 10, 1, 5, 0));
    REFUSED(set(0, 10, 1, 5, 1), get(1, 20, 2, 5, 1));
    /* A later update has a higher number. */
    REFUSED(set(0, 10, 1, 5, 2), set(1, 20, 2, 6, 1));
    ACCEPTED(set(0, 10, 1, 5, 2), set(1, 11, 2, 6, 1));
}

static void answers_show_what_was_written(void **state)
{
    (void)state;
    REFUSED(set(0, 10, 1, 5, 1), get(1, 20, 1, 6, 1));
    REFUSED(set(0, 10, 1, 5, 1), get(1, 20, 1, NIL, 1));
    REFUSED(set(0, 30, 1, 5, 1), get(1, 20, 1, 5, 1));
    REFUSED(get(1, 20, 1, 5, 1));
    REFUSED(set(0, 10, 1, 5, 1), get(1, 20, 1, 5, 0));
}

static void updates_find_what_was_left(void **state)
{
    (void)state;
    ACCEPTED(add(0, 10, 1, 2, 2, 1), add(1, 20, 1, 3, 5, 2));
    REFUSED(add(0, 10, 1, 2, 2, 1), add(1, 20, 1, 3, 3, 2));
    ACCEPTED(set(0, 10, 1, 5, 1), del(1, 20, 1, true, 2), get(1, 30, 1, NIL, 2));
    ACCEPTED(set(0, 10, 1, 5, 1), del(1, 20, 1, true, 2), get(1, 30, 1, NIL, 0));
    REFUSED(del(1, 20, 1, true, 2));
    ACCEPTED(del(1, 20, 1, false, 0));
}

static void a_deletion_may_be_none(void **state)
{
    (void)state;
    ACCEPTED(set(0, 10, 1, 5, 1), erase(1, 20, 1, 2), erase(1, 30, 1, 2), erase(2, 40, 1, 2));
    ACCEPTED(set(0, 10, 1, 5, 1), erase(1, 20, 1, 2), set(0, 30, 2, 7, 3), erase(2, 40, 1, 2));
    ACCEPTED(erase(1, 20, 1, 0));
    REFUSED(set(0, 10, 1, 5, 1), erase(0, 20, 1, 0));
}

static void a_read_may_have_been_an_update(void **state)
{
    (void)state;
    struct sequential_op touch = get(1, 20, 1, 5, 2);
    touch.perhaps = true;
    ACCEPTED(set(0, 10, 1, 5, 1), touch, get(2, 30, 1, 5, 2), get(0, 40, 1, 5, 1));
    REFUSED(set(0, 10, 1, 5, 1), touch, get(1, 40, 1, 5, 1));
    /* Or it saw one whose outcome nobody knows, and which others saw before. */
    ACCEPTED(unknown(set(0, 10, 1, 5, 0)), get(2, 15, 1, 5, 2), set(1, 16, 2, 7, 3), touch);
    touch.perhaps = false;
    REFUSED(set(0, 10, 1, 5, 1), touch);
}

static void unknown_updates_may_be_seen(void **state)
{
    (void)state;
    ACCEPTED(unknown(set(0, 10, 1, 5, 0)), get(1, 20, 1, 5, 3), get(2, 30, 1, 5, 3));
    ACCEPTED(unknown(set(0, 10, 1, 5, 0)), get(1, 20, 1, NIL, 0));
    REFUSED(unknown(set(0, 10, 1, 5, 0)), get(1, 20, 1, 5, 3), get(2, 30, 1, 5, 4));
    REFUSED(unknown(set(0, 10, 1, 5, 0)), get(1, 20, 1, 6, 3));
    REFUSED(unknown(set(0, 30, 1, 5, 0)), get(1, 20, 1, 5, 3));
    ACCEPTED(set(1, 5, 1, 1, 1), unknown(add(0, 10, 1, 2, 0, 0)), add(1, 20, 1, 4, 7, 3));
    REFUSED(unknown(set(0, 10, 1, 5, 0)), set(2, 11, 1, 6, 2), get(1, 20, 1, 5, 3),
            get(1, 30, 1, 6, 2));
    ACCEPTED(set(0, 10, 1, 5, 1), unknown(erase(0, 20, 1, 0)), get(0, 30, 1, NIL, 0));
}

/* ---- Against a search that tries everything ---- */

#define OPS_MAX 9u
#define LOG_MAX 8u
#define BRUTE_KEYS 2u

struct brute {
    const struct sequential_op *ops;
    size_t n;
    const struct sequential_op *log[LOG_MAX + 1];
    int64_t value[LOG_MAX + 1][BRUTE_KEYS]; /* after each entry */
    uint64_t version[LOG_MAX + 1][BRUTE_KEYS];
};

static bool brute_updates(const struct sequential_op *op)
{
    return op->h.kind == HISTORY_WRITE || op->h.kind == HISTORY_ADD ||
           (op->h.kind == HISTORY_DELETE_PRESENT && (op->h.ok || op->h.outcome != HISTORY_OK));
}

/* Plays the log; an unknown ADD takes whatever it finds. */
static bool brute_play(struct brute *b)
{
    for (uint32_t k = 0; k < BRUTE_KEYS; k++) {
        b->value[0][k] = NIL;
        b->version[0][k] = 0;
    }
    for (uint32_t i = 1; i <= LOG_MAX; i++) {
        memcpy(b->value[i], b->value[i - 1], sizeof b->value[i]);
        memcpy(b->version[i], b->version[i - 1], sizeof b->version[i]);
        const struct sequential_op *op = b->log[i];
        if (op == NULL) {
            continue;
        }
        uint64_t k = op->h.key;
        int64_t old = b->value[i - 1][k];
        bool known = op->h.outcome == HISTORY_OK;
        if (op->h.kind == HISTORY_WRITE) {
            b->value[i][k] = op->h.in;
        } else if (op->h.kind == HISTORY_ADD) {
            b->value[i][k] = (old == NIL ? 0 : old) + op->h.in;
            if (known && b->value[i][k] != op->h.out) {
                return false;
            }
        } else {
            if (old == NIL) {
                return false;
            }
            b->value[i][k] = NIL;
        }
        b->version[i][k] = i;
    }
    return true;
}

static bool brute_time(const struct brute *b)
{
    for (uint32_t i = 1; i <= LOG_MAX; i++) {
        for (uint32_t j = 1; j < i; j++) {
            const struct sequential_op *late = b->log[i];
            const struct sequential_op *early = b->log[j];
            if (late != NULL && early != NULL && late->h.outcome == HISTORY_OK &&
                late->h.end_us < early->h.begin_us) {
                return false;
            }
        }
    }
    return true;
}

static bool brute_answer(const struct brute *b, const struct sequential_op *op, uint32_t p)
{
    int64_t value = b->value[p][op->h.key];
    uint64_t version = b->version[p][op->h.key];
    bool absent = value == NIL;
    /* Tombstones may have been forgotten. */
    if (op->version != version && !(op->version == 0 && absent)) {
        return false;
    }
    if (op->version != 0 && b->log[op->version]->h.begin_us > op->h.end_us) {
        return false;
    }
    return op->h.kind == HISTORY_READ ? value == op->h.out : op->h.ok == !absent;
}

static bool brute_session(const struct brute *b, uint32_t session)
{
    uint32_t position = 0;
    for (size_t i = 0; i < b->n; i++) {
        const struct sequential_op *op = &b->ops[i];
        if (op->session != session || op->h.outcome != HISTORY_OK) {
            continue;
        }
        if (brute_updates(op)) {
            if (op->version <= position) {
                return false;
            }
            position = (uint32_t)op->version;
            continue;
        }
        while (position <= LOG_MAX && !brute_answer(b, op, position)) {
            position++;
        }
        if (position > LOG_MAX) {
            return false;
        }
    }
    return true;
}

static bool brute_try(struct brute *b, size_t next)
{
    for (; next < b->n; next++) {
        const struct sequential_op *op = &b->ops[next];
        if (op->h.outcome == HISTORY_UNKNOWN && brute_updates(op)) {
            break;
        }
    }
    if (next == b->n) {
        return brute_play(b) && brute_time(b) && brute_session(b, 0) && brute_session(b, 1) &&
               brute_session(b, 2);
    }
    if (brute_try(b, next + 1)) {
        return true;
    }
    for (uint32_t i = 1; i <= LOG_MAX; i++) {
        if (b->log[i] == NULL) {
            b->log[i] = &b->ops[next];
            if (brute_try(b, next + 1)) {
                return true;
            }
            b->log[i] = NULL;
        }
    }
    return false;
}

static bool brute_accepts(const struct sequential_op *ops, size_t n)
{
    struct brute b = {.ops = ops, .n = n};
    for (size_t i = 0; i < n; i++) {
        if (ops[i].h.outcome != HISTORY_OK || !brute_updates(&ops[i])) {
            continue;
        }
        if (ops[i].version == 0 || ops[i].version > LOG_MAX || b.log[ops[i].version] != NULL) {
            return false;
        }
        b.log[ops[i].version] = &ops[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (ops[i].version > LOG_MAX) {
            return false;
        }
    }
    return brute_try(&b, 0);
}

/* A history as a log would give it, then perhaps a change. */
static size_t draw(struct random *r, struct sequential_op ops[OPS_MAX])
{
    int64_t value[LOG_MAX + 1][BRUTE_KEYS] = {{NIL, NIL}};
    uint64_t version[LOG_MAX + 1][BRUTE_KEYS] = {{0}};
    uint32_t position[3] = {0};
    uint32_t log = 0;
    size_t n = 3 + (size_t)random_below(r, OPS_MAX - 2);
    for (size_t i = 0; i < n; i++) {
        uint32_t session = (uint32_t)random_below(r, 3);
        uint64_t key = random_below(r, BRUTE_KEYS);
        uint64_t begin = 10 * i + random_below(r, 12);
        if (random_below(r, 2) == 0 && log < LOG_MAX - 1) {
            log++;
            memcpy(value[log], value[log - 1], sizeof value[log]);
            memcpy(version[log], version[log - 1], sizeof version[log]);
            int64_t old = value[log][key];
            uint64_t way = random_below(r, 4);
            if (way == 0 && old != NIL) {
                ops[i] = del(session, begin, key, true, log);
                value[log][key] = NIL;
            } else if (way == 1) {
                ops[i] = add(session, begin, key, 1, (old == NIL ? 0 : old) + 1, log);
                value[log][key] = ops[i].h.out;
            } else {
                ops[i] = set(session, begin, key, (int64_t)(100 + i), log);
                value[log][key] = ops[i].h.in;
            }
            version[log][key] = log;
            if (random_below(r, 5) == 0) {
                ops[i].h.outcome = HISTORY_UNKNOWN;
                ops[i].version = 0;
            } else {
                position[session] = log;
            }
        } else {
            position[session] += (uint32_t)random_below(r, log - position[session] + 1);
            uint32_t p = position[session];
            bool absent = value[p][key] == NIL;
            uint64_t v = absent && random_below(r, 2) == 0 ? 0 : version[p][key];
            ops[i] = random_below(r, 3) == 0 && absent ? del(session, begin, key, false, v)
                                                       : get(session, begin, key, value[p][key], v);
        }
        ops[i].h.end_us = ops[i].h.begin_us + random_below(r, 15);
    }
    if (random_below(r, 3) > 0) {
        struct sequential_op *op = &ops[random_below(r, n)];
        switch (random_below(r, 4)) {
        case 0:
            op->version = op->h.outcome == HISTORY_OK ? random_below(r, log + 2) : 0;
            break;
        case 1:
            op->h.out = op->h.kind == HISTORY_READ ? ops[random_below(r, n)].h.in : op->h.out;
            break;
        case 2:
            op->session = (uint32_t)random_below(r, 3);
            break;
        case 3:
            op->h.begin_us = random_below(r, 100);
            op->h.end_us = op->h.begin_us + random_below(r, 20);
            break;
        }
    }
    return n;
}

/* An update of unknown outcome whose effect only other updates show leaves the checker some room
 * that the search does not have; so there it may accept more, but never less. */
static void agrees_with_the_search(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, 77);
    uint32_t accepted = 0;
    uint32_t refused = 0;
    uint32_t looser = 0;
    for (uint32_t i = 0; i < 60000; i++) {
        struct sequential_op ops[OPS_MAX];
        size_t n = draw(&r, ops);
        struct sequential_history history = {ops, n};
        struct check_report report;
        bool exact = true;
        for (size_t k = 0; k < n; k++) {
            exact = exact && ops[k].h.outcome == HISTORY_OK;
        }
        bool brute = brute_accepts(ops, n);
        bool checker = check_sequential(&history, &report) == CHECK_ACCEPTED;
        accepted += brute;
        refused += !checker;
        if (brute && !checker) {
            for (size_t k = 0; k < n; k++) {
                char text[200];
                (void)history_op_print(&ops[k].h, text, sizeof text);
                print_message("v%llu s%u %s\n", (unsigned long long)ops[k].version, ops[k].session,
                              text);
            }
            print_message("%s", report.text);
        }
        assert_false(brute && !checker);
        assert_false(exact && checker && !brute);
        looser += checker && !brute;
    }
    assert_true(accepted > 10000 && refused > 10000 && looser < 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_may_lag),
        cmocka_unit_test(a_session_does_not_go_back),
        cmocka_unit_test(numbers_are_kept_apart),
        cmocka_unit_test(answers_show_what_was_written),
        cmocka_unit_test(updates_find_what_was_left),
        cmocka_unit_test(a_deletion_may_be_none),
        cmocka_unit_test(a_read_may_have_been_an_update),
        cmocka_unit_test(unknown_updates_may_be_seen),
        cmocka_unit_test(agrees_with_the_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
