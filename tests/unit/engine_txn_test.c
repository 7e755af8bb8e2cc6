#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/err.h"
#include "engine/txn.h"
#include "wire/msg.h"

#define VALUE_MAX 1000u
#define NOW 5000u
#define OBJECTS 64u

/* A transaction on a small world of stored objects, and what becomes of it. */
struct world {
    struct txn_request txn;
    struct txn_object objects[OBJECTS];
    uint16_t index[2 * OBJECTS + OBJECTS];
    struct answer answers[OBJECTS];
    uint8_t bytes[4096];
    struct txn_memory memory;
    uint32_t n;
};

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static uint64_t weak_hash(const void *context, struct bytes key)
{
    (void)context;
    return key.n > 0 ? key.at[0] % 2u : 0; /* many keys share one */
}

static struct op op_of(uint32_t kind, const char *key, const char *value)
{
    struct op op = {.kind = (uint8_t)kind, .key = text(key), .value = text(value)};
    return op;
}

static struct op pair_of(uint32_t kind, const char *source, const char *target, uint16_t flags)
{
    struct op op = {
        .kind = (uint8_t)kind, .flags = flags, .key = text(source), .arg = text(target)};
    return op;
}

static void begin(struct world *w, const struct op *ops, uint32_t ops_n,
                  const struct txn_watch *watches, uint32_t watches_n, uint32_t flags)
{
    memset(w, 0, sizeof *w);
    w->txn = (struct txn_request){
        .ops = ops, .ops_n = ops_n, .watches = watches, .watches_n = watches_n, .flags = flags};
    w->memory =
        (struct txn_memory){.at = w->bytes, .n = sizeof w->bytes, .value_bytes_max = VALUE_MAX};
    assert_int_equal(txn_check(&w->txn, VALUE_MAX), HK_OK);
    w->n = txn_objects(&w->txn, weak_hash, NULL, w->objects, OBJECTS, w->index);
    assert_true(w->n > 0);
}

static struct txn_object *object_of(struct world *w, const char *key)
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (bytes_equal(w->objects[i].key, text(key))) {
            return &w->objects[i];
        }
    }
    fail_msg("no object %s", key);
    return NULL;
}

static void holds(struct world *w, const char *key, const char *value, uint64_t deadline_ms)
{
    struct txn_object *o = object_of(w, key);
    o->version = 7;
    o->state = (struct op_state){.present = true, .deadline_ms = deadline_ms, .value = text(value)};
    o->expired = op_state_expired(&o->state, NOW);
}

static enum txn_verdict run(struct world *w)
{
    return txn_evaluate(&w->txn, w->objects, w->n, w->index, NOW, &w->memory, w->answers);
}

static void becomes(struct world *w, const char *key, const char *value, uint64_t deadline_ms)
{
    const struct txn_object *o = object_of(w, key);
    assert_true(o->changed);
    assert_int_equal(o->state.present, value != NULL);
    if (value != NULL) {
        assert_true(bytes_equal(o->state.value, text(value)));
        assert_int_equal(o->state.deadline_ms, deadline_ms);
    }
}

static void stays(struct world *w, const char *key)
{
    assert_false(object_of(w, key)->changed);
}

static void nothing_happens(const struct world *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        assert_false(w->objects[i].changed);
    }
}

static void answers_number(const struct world *w, uint32_t i, int64_t number)
{
    assert_int_equal(w->answers[i].kind, ANSWER_NUMBER);
    assert_int_equal(w->answers[i].number, number);
}

static void answers_text(const struct world *w, uint32_t i, const char *value)
{
    assert_int_equal(w->answers[i].kind, ANSWER_VALUE);
    assert_true(bytes_equal(w->answers[i].value, text(value)));
}

static void answers_error(const struct world *w, uint32_t i, int err)
{
    assert_int_equal(w->answers[i].kind, ANSWER_ERROR);
    assert_int_equal(w->answers[i].number, err);
}

/* ---- Which objects ---- */

static void test_objects_once_in_order(void **state)
{
    (void)state;
    struct world w;
    struct op ops[] = {op_of(OP_SET, "b", "1"), pair_of(TXN_OP_RENAME, "a", "b", 0),
                       op_of(OP_GET, "a", ""), op_of(OP_GET, "", "")};
    struct txn_watch watches[] = {{.key = text("w")}, {.key = text("a")}};
    begin(&w, ops, 4, watches, 2, 0);
    const uint16_t expected[] = {0, UINT16_MAX, 1, 0, 1, UINT16_MAX, 2, UINT16_MAX, 3, 1};
    assert_int_equal(w.n, 4);
    assert_memory_equal(w.index, expected, sizeof expected);
    assert_true(bytes_equal(w.objects[0].key, text("b")));
    assert_true(bytes_equal(w.objects[3].key, text("w")));
    assert_int_equal(w.objects[1].hash, weak_hash(NULL, text("a")));
    assert_int_equal(txn_objects(&w.txn, weak_hash, NULL, w.objects, 3, w.index), UINT32_MAX);
}

static void test_objects_many(void **state)
{
    (void)state;
    static struct op ops[TXN_OPS_MAX];
    static char keys[TXN_OPS_MAX][8];
    static struct txn_object objects[TXN_OBJECTS_MAX];
    static uint16_t index[2 * TXN_OPS_MAX + 1];
    struct txn_watch more = {.key = text("more")};
    struct txn_request txn = {.ops = ops, .ops_n = TXN_OPS_MAX, .watches = &more};
    for (uint32_t i = 0; i < TXN_OPS_MAX; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "%u", i);
        ops[i] = op_of(OP_GET, keys[i], "");
    }
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_OK);
    assert_int_equal(txn_objects(&txn, weak_hash, NULL, objects, TXN_OBJECTS_MAX, index),
                     TXN_OBJECTS_MAX);
    for (uint32_t i = 0; i < TXN_OPS_MAX; i++) {
        assert_int_equal(index[2 * i], i);
    }
    txn.watches_n = 1;
    assert_int_equal(txn_objects(&txn, weak_hash, NULL, objects, TXN_OBJECTS_MAX, index),
                     UINT32_MAX);
    ops[TXN_OPS_MAX - 1] = op_of(OP_GET, "17", "");
    assert_int_equal(txn_objects(&txn, weak_hash, NULL, objects, TXN_OBJECTS_MAX, index),
                     TXN_OBJECTS_MAX);
    assert_int_equal(index[2 * (TXN_OPS_MAX - 1)], 17);
    assert_int_equal(index[2 * TXN_OPS_MAX], TXN_OBJECTS_MAX - 1);
}

/* ---- Checking ---- */

static void test_check(void **state)
{
    (void)state;
    struct op ops[2] = {op_of(OP_SET, "a", "1"), op_of(OP_GET, "b", "")};
    struct txn_request txn = {.ops = ops, .ops_n = 2};
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_OK);
    assert_true(txn_updates(&txn));
    txn.flags = 64;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    txn.flags = 0;
    ops[1].space = 1;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    ops[1].space = 0;
    assert_int_equal(txn_check(&txn, 0), HK_ERR_TOOBIG);
    ops[0] = pair_of(TXN_OP_COPY, "a", "b", OPF_XX);
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_OK);
    ops[0].flags = OPF_NX;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    ops[0].kind = TXN_OP_RENAME;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_OK);
    ops[0].arg.n = MSG_KEY_MAX + 1;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_TOOBIG);
    ops[0].arg.n = 1;
    ops[0].kind = TXN_OP_END;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    ops[0] = op_of(OP_EXISTS, "a", "");
    assert_false(txn_updates(&txn));
    txn.flags = TXN_ACQUIRE;
    assert_true(txn_updates(&txn));
    txn = (struct txn_request){.ops = ops};
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    txn.ops_n = TXN_OPS_MAX + 1;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_TOOBIG);
}

/* ---- Evaluating ---- */

/* Each kind of operation, on the private copy that the one before left. */
static void test_every_kind_in_order(void **state)
{
    (void)state;
    struct world w;
    struct op ops[] = {
        op_of(OP_GET, "a", ""),
        op_of(OP_SET, "a", "10"),
        {.kind = OP_ADD, .key = text("a"), .number = 5},
        {.kind = OP_ADD_FLOAT, .key = text("a"), .arg = text("0.5")},
        op_of(OP_APPEND, "a", "xy"),
        {.kind = OP_SETRANGE, .key = text("a"), .value = text("Z"), .number = 7},
        op_of(OP_STRLEN, "a", ""),
        {.kind = OP_EXPIRE, .key = text("a"), .number = NOW + 9},
        op_of(OP_DEADLINE, "a", ""),
        op_of(OP_PERSIST, "a", ""),
        op_of(OP_GETSET, "a", "new"),
        {.kind = OP_GETEX, .key = text("a"), .number = NOW + 10},
        op_of(OP_EXISTS, "a", ""),
        {.kind = OP_DELETE_IF, .key = text("a"), .arg = text("old")},
        op_of(OP_GETDEL, "a", ""),
        op_of(OP_DELETE, "a", ""),
        {.kind = OP_EXPIRED, .key = text("a"), .number = 1},
        {.kind = OP_SET, .key = text("a"), .value = text("end"), .flags = OPF_NX},
    };
    begin(&w, ops, sizeof ops / sizeof ops[0], NULL, 0, 0);
    assert_int_equal(w.n, 1);
    assert_int_equal(run(&w), TXN_DONE);
    assert_int_equal(w.answers[0].kind, ANSWER_NIL);
    assert_int_equal(w.answers[1].kind, ANSWER_OK);
    answers_number(&w, 2, 15);
    answers_text(&w, 3, "15.5");
    answers_number(&w, 4, 6);
    answers_number(&w, 5, 8);
    answers_number(&w, 6, 8);
    answers_number(&w, 7, 1);
    answers_number(&w, 8, NOW + 9);
    answers_number(&w, 9, 1);
    assert_int_equal(w.answers[10].kind, ANSWER_VALUE);
    assert_memory_equal(w.answers[10].value.at, "15.5xy\0Z", 8);
    answers_text(&w, 11, "new");
    answers_number(&w, 12, 1);
    answers_number(&w, 13, 0);
    answers_text(&w, 14, "new");
    answers_number(&w, 15, 0);
    answers_number(&w, 16, 0);
    assert_int_equal(w.answers[17].kind, ANSWER_OK);
    becomes(&w, "a", "end", 0);
}

static void test_errors_are_answers(void **state)
{
    (void)state;
    struct world w;
    struct op ops[] = {{.kind = OP_ADD, .key = text("a"), .number = 1}, op_of(OP_SET, "b", "1")};
    begin(&w, ops, 2, NULL, 0, 0);
    holds(&w, "a", "word", 0);
    assert_int_equal(run(&w), TXN_DONE);
    answers_error(&w, 0, HK_ERR_TYPE);
    stays(&w, "a");
    becomes(&w, "b", "1", 0);

    begin(&w, ops, 2, NULL, 0, TXN_STOP);
    holds(&w, "a", "word", 0);
    assert_int_equal(run(&w), TXN_UNAPPLIED);
    answers_error(&w, 0, HK_ERR_TYPE);
    assert_int_equal(w.answers[1].kind, ANSWER_NIL);
    nothing_happens(&w);
}

static void test_all_or_nothing(void **state)
{
    (void)state;
    struct world w;
    struct op ops[] = {op_of(OP_SET, "a", "1"), op_of(OP_GET, "c", ""), op_of(OP_SET, "b", "2")};
    ops[0].flags = OPF_NX;
    ops[2].flags = OPF_NX;
    begin(&w, ops, 3, NULL, 0, TXN_ALL);
    holds(&w, "b", "old", 0);
    assert_int_equal(run(&w), TXN_UNAPPLIED);
    nothing_happens(&w);

    begin(&w, ops, 3, NULL, 0, TXN_ALL);
    assert_int_equal(run(&w), TXN_DONE);
    becomes(&w, "a", "1", 0);
    becomes(&w, "b", "2", 0);
}

/* A row in the midst of others applies whole or not at all, on what was there before it. */
static void test_row(void **state)
{
    (void)state;
    struct world w;
    struct op ops[] = {op_of(OP_DELETE, "a", ""), op_of(OP_SET, "a", "1"), op_of(OP_SET, "b", "2"),
                       op_of(OP_SET, "a", "3"), op_of(OP_GET, "a", "")};
    ops[1].flags = ops[2].flags = OPF_NX | TXN_OPF_ROW;
    ops[3].flags = OPF_NX;
    begin(&w, ops, 5, NULL, 0, 0);
    holds(&w, "a", "old", 9 * NOW);
    assert_int_equal(run(&w), TXN_DONE);
    for (uint32_t i = 1; i < 4; i++) {
        assert_int_equal(w.answers[i].kind, ANSWER_OK);
        assert_true(w.answers[i].applied);
    }
    answers_text(&w, 4, "3");
    becomes(&w, "a", "3", 0);
    becomes(&w, "b", "2", 0);

    begin(&w, ops, 5, NULL, 0, 0);
    holds(&w, "b", "old", 0);
    assert_int_equal(run(&w), TXN_DONE);
    for (uint32_t i = 1; i < 4; i++) {
        assert_int_equal(w.answers[i].kind, ANSWER_NIL);
        assert_false(w.answers[i].applied);
    }
    assert_int_equal(w.answers[4].kind, ANSWER_NIL);
    nothing_happens(&w);

    begin(&w, ops + 1, 3, NULL, 0, TXN_ALL);
    holds(&w, "b", "old", 0);
    assert_int_equal(run(&w), TXN_UNAPPLIED);
    nothing_happens(&w);
}

static void test_row_check(void **state)
{
    (void)state;
    struct op ops[] = {op_of(OP_SET, "a", "1"), op_of(OP_SET, "b", "2")};
    struct txn_request txn = {.ops = ops, .ops_n = 2};
    ops[0].flags = OPF_NX | TXN_OPF_ROW;
    ops[1].flags = OPF_NX;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_OK);
    txn.ops_n = 1; /* nothing follows */
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    txn.ops_n = 2;
    ops[1].flags = 0;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    ops[1] = op_of(OP_GET, "b", "");
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    ops[1] = op_of(OP_SET, "b", "2");
    ops[1].flags = OPF_NX;
    ops[0].flags = TXN_OPF_ROW;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    ops[0].flags = OPF_NX | OPF_GET | TXN_OPF_ROW;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    ops[0] = op_of(OP_DELETE, "a", "");
    ops[0].flags = TXN_OPF_ROW;
    assert_int_equal(txn_check(&txn, VALUE_MAX), HK_ERR_INVALID);
    ops[0] = op_of(OP_SET, "a", "1");
    ops[0].flags = OPF_NX | TXN_OPF_ROW;
    assert_int_equal(txn_check(&txn, 0), HK_ERR_TOOBIG);
}

static void test_rename(void **state)
{
    (void)state;
    struct world w;
    struct op ops[] = {pair_of(TXN_OP_RENAME, "a", "b", 0), op_of(OP_GET, "b", "")};
    begin(&w, ops, 2, NULL, 0, 0);
    holds(&w, "a", "v", NOW + 7);
    holds(&w, "b", "w", 0);
    assert_int_equal(run(&w), TXN_DONE);
    assert_int_equal(w.answers[0].kind, ANSWER_OK);
    assert_true(w.answers[0].applied);
    answers_text(&w, 1, "v");
    becomes(&w, "a", NULL, 0);
    becomes(&w, "b", "v", NOW + 7);

    begin(&w, ops, 2, NULL, 0, 0);
    holds(&w, "b", "w", 0);
    assert_int_equal(run(&w), TXN_DONE);
    answers_error(&w, 0, HK_ERR_NOTFOUND);
    nothing_happens(&w);

    ops[0].flags = OPF_NX;
    begin(&w, ops, 2, NULL, 0, 0);
    holds(&w, "a", "v", 0);
    holds(&w, "b", "w", 0);
    assert_int_equal(run(&w), TXN_DONE);
    answers_number(&w, 0, 0);
    nothing_happens(&w);

    begin(&w, ops, 2, NULL, 0, 0);
    holds(&w, "a", "v", 0);
    assert_int_equal(run(&w), TXN_DONE);
    answers_number(&w, 0, 1);
    becomes(&w, "b", "v", 0);

    ops[0] = pair_of(TXN_OP_RENAME, "a", "a", 0);
    begin(&w, ops, 1, NULL, 0, 0);
    holds(&w, "a", "v", 0);
    assert_int_equal(run(&w), TXN_DONE);
    assert_int_equal(w.answers[0].kind, ANSWER_OK);
    stays(&w, "a");
}

static void test_copy(void **state)
{
    (void)state;
    struct world w;
    struct op ops[] = {pair_of(TXN_OP_COPY, "a", "b", 0), op_of(OP_APPEND, "a", "+")};
    begin(&w, ops, 2, NULL, 0, 0);
    holds(&w, "a", "v", NOW + 7);
    assert_int_equal(run(&w), TXN_DONE);
    answers_number(&w, 0, 1);
    becomes(&w, "b", "v", NOW + 7);
    becomes(&w, "a", "v+", NOW + 7);

    begin(&w, ops, 1, NULL, 0, 0);
    assert_int_equal(run(&w), TXN_DONE);
    answers_number(&w, 0, 0);
    nothing_happens(&w);

    begin(&w, ops, 1, NULL, 0, 0);
    holds(&w, "a", "v", 0);
    holds(&w, "b", "w", 0);
    assert_int_equal(run(&w), TXN_DONE);
    answers_number(&w, 0, 0);
    nothing_happens(&w);

    ops[0].flags = OPF_XX;
    begin(&w, ops, 1, NULL, 0, 0);
    holds(&w, "a", "v", 0);
    holds(&w, "b", "w", 0);
    assert_int_equal(run(&w), TXN_DONE);
    answers_number(&w, 0, 1);
    becomes(&w, "b", "v", 0);
    stays(&w, "a");

    ops[0] = pair_of(TXN_OP_COPY, "a", "a", OPF_XX);
    begin(&w, ops, 1, NULL, 0, 0);
    holds(&w, "a", "v", 0);
    assert_int_equal(run(&w), TXN_DONE);
    answers_error(&w, 0, HK_ERR_INVALID);
    nothing_happens(&w);
}

static void test_watches(void **state)
{
    (void)state;
    struct world w;
    struct op ops[] = {op_of(OP_SET, "a", "1")};
    struct txn_watch watches[] = {{.key = text("w"), .version = 7}, {.key = text("x")}};
    begin(&w, ops, 1, watches, 2, 0);
    holds(&w, "w", "v", 0);
    assert_int_equal(run(&w), TXN_DONE);
    becomes(&w, "a", "1", 0);
    stays(&w, "w");

    begin(&w, ops, 1, watches, 2, 0);
    holds(&w, "w", "v", 0);
    object_of(&w, "w")->version = 8;
    assert_int_equal(run(&w), TXN_CONFLICT);
    nothing_happens(&w);

    begin(&w, ops, 1, watches, 2, 0);
    holds(&w, "w", "v", 0);
    holds(&w, "x", "v", 0);
    assert_int_equal(run(&w), TXN_CONFLICT);

    /* What has expired is gone: the one that was seen alive is a conflict, the other is none. */
    begin(&w, ops, 1, watches, 2, 0);
    holds(&w, "w", "v", NOW);
    assert_int_equal(run(&w), TXN_CONFLICT);
    begin(&w, ops, 1, watches, 2, 0);
    holds(&w, "w", "v", 0);
    holds(&w, "x", "v", NOW);
    assert_int_equal(run(&w), TXN_DONE);
    becomes(&w, "x", NULL, 0);

    /* Watches alone are a read-only transaction. */
    begin(&w, NULL, 0, watches, 2, 0);
    assert_false(txn_updates(&w.txn));
    holds(&w, "w", "v", 0);
    assert_int_equal(run(&w), TXN_DONE);
    nothing_happens(&w);
}

static void test_expired_is_absent(void **state)
{
    (void)state;
    struct world w;
    struct op ops[] = {op_of(OP_GET, "a", ""), op_of(OP_APPEND, "b", "x")};
    begin(&w, ops, 1, NULL, 0, 0);
    holds(&w, "a", "v", NOW);
    assert_int_equal(run(&w), TXN_DONE);
    assert_int_equal(w.answers[0].kind, ANSWER_NIL);
    becomes(&w, "a", NULL, 0); /* who says that it is absent deletes it */

    begin(&w, ops, 2, NULL, 0, 0);
    holds(&w, "a", "v", NOW);
    holds(&w, "b", "v", NOW - 1);
    assert_int_equal(run(&w), TXN_DONE);
    becomes(&w, "a", NULL, 0);
    becomes(&w, "b", "x", 0);
}

static void test_memory(void **state)
{
    (void)state;
    struct world w;
    struct op ops[] = {op_of(OP_APPEND, "a", "xx"), op_of(OP_APPEND, "a", "yy")};
    begin(&w, ops, 2, NULL, 0, 0);
    holds(&w, "a", "0", 0);
    w.memory.n = 0;
    uint32_t tries = 0;
    while (run(&w) == TXN_NO_MEMORY) {
        nothing_happens(&w);
        assert_true(w.memory.used > w.memory.n && w.memory.used <= 8);
        w.memory.n = w.memory.used;
        holds(&w, "a", "0", 0);
        tries++;
    }
    assert_int_equal(tries, 2);
    becomes(&w, "a", "0xxyy", 0);
    answers_number(&w, 0, 3);
    answers_number(&w, 1, 5);

    begin(&w, ops, 2, NULL, 0, 0);
    holds(&w, "a", "0", 0);
    w.memory.value_bytes_max = 4;
    assert_int_equal(run(&w), TXN_DONE);
    answers_number(&w, 0, 3);
    answers_error(&w, 1, HK_ERR_TOOBIG);
    becomes(&w, "a", "0xx", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_once_in_order),
        cmocka_unit_test(test_objects_many),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_every_kind_in_order),
        cmocka_unit_test(test_errors_are_answers),
        cmocka_unit_test(test_all_or_nothing),
        cmocka_unit_test(test_row),
        cmocka_unit_test(test_row_check),
        cmocka_unit_test(test_rename),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_watches),
        cmocka_unit_test(test_expired_is_absent),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
