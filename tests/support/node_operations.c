#include "support/node_operations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

/* Where the next operation goes, and on which key. */
struct round {
    struct cluster *cluster;
    const char *key;
    uint32_t nodes;
    uint32_t next;
};

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static struct cluster_answer run(struct round *r, struct op op)
{
    op.key = text(r->key);
    return cluster_call(r->cluster, r->next++ % r->nodes, &op);
}

static void assert_value(struct cluster_answer a, const char *expected)
{
    assert_int_equal(a.kind, ANSWER_VALUE);
    assert_int_equal(a.n, strlen(expected));
    assert_memory_equal(a.value, expected, a.n);
}

static void assert_number(struct cluster_answer a, int64_t expected)
{
    assert_int_equal(a.kind, ANSWER_NUMBER);
    assert_int_equal(a.number, expected);
}

static void assert_error(struct cluster_answer a, int err)
{
    assert_int_equal(a.kind, ANSWER_ERROR);
    assert_int_equal(a.number, err);
    assert_int_equal(a.version, 0);
}

static const struct op get = {.kind = OP_GET};

static struct op op_set(const char *value, uint16_t flags)
{
    return (struct op){.kind = OP_SET, .value = text(value), .flags = flags};
}

static struct op op_arg(enum op_kind kind, const char *arg)
{
    return (struct op){.kind = (uint8_t)kind, .arg = text(arg)};
}

static struct op op_number(enum op_kind kind, int64_t number)
{
    return (struct op){.kind = (uint8_t)kind, .number = number};
}

static struct op op_value(enum op_kind kind, const char *value)
{
    return (struct op){.kind = (uint8_t)kind, .value = text(value)};
}

static void conditions(struct round *r)
{
    struct op ifeq = op_set("v2", OPF_IFEQ);
    assert_int_equal(run(r, op_set("v1", OPF_NX)).kind, ANSWER_NIL);
    ifeq.arg = text("wrong");
    struct cluster_answer a = run(r, ifeq);
    assert_int_equal(a.kind, ANSWER_NIL);
    assert_false(a.applied);
    ifeq.arg = text("v0");
    assert_int_equal(run(r, ifeq).kind, ANSWER_OK);
    assert_value(run(r, get), "v2");
}

static void deadlines(struct round *r)
{
    int64_t later = (int64_t)(*cluster_wall_ms(r->cluster) + 1000000);
    struct op set = op_set("v3", OPF_GET | OPF_DEADLINE);
    set.number = later;
    assert_value(run(r, set), "v2");
    assert_number(run(r, op_number(OP_DEADLINE, 0)), later);
    assert_number(run(r, op_number(OP_PERSIST, 0)), 1);
    struct op expire = {.kind = OP_EXPIRE, .number = later, .flags = OPF_NX};
    assert_number(run(r, expire), 1);
    struct op keep = {.kind = OP_GETEX, .flags = OPF_KEEPTTL};
    assert_value(run(r, keep), "v3");
    assert_int_equal(run(r, op_number(OP_GETEX, later + 1)).kind, ANSWER_VALUE);
    assert_int_equal(run(r, op_set("v4", OPF_KEEPTTL)).kind, ANSWER_OK);
    assert_number(run(r, op_number(OP_DEADLINE, 0)), later + 1);
}

static void texts_and_numbers(struct round *r)
{
    struct op range = {.kind = OP_SETRANGE, .value = text("x"), .number = 5};
    assert_number(run(r, op_value(OP_APPEND, "56")), 4);
    assert_number(run(r, range), 6);
    assert_number(run(r, op_number(OP_STRLEN, 0)), 6);
    assert_error(run(r, op_number(OP_ADD, 1)), HK_ERR_TYPE);
    assert_number(run(r, op_arg(OP_DELETE_IF, "v456")), 0);
    assert_int_equal(run(r, op_value(OP_GETSET, "7")).n, 6);
    assert_number(run(r, op_number(OP_ADD, INT64_MIN + 5)), INT64_MIN + 12);
    assert_error(run(r, op_number(OP_ADD, INT64_MIN)), HK_ERR_OVERFLOW);
    assert_int_equal(run(r, op_set("1.5", 0)).kind, ANSWER_OK);
    assert_value(run(r, op_arg(OP_ADD_FLOAT, "0.25")), "1.75");
}

static void deletes(struct round *r)
{
    struct op blind = {.kind = OP_DELETE, .flags = OPF_BLIND};
    assert_number(run(r, op_arg(OP_DELETE_IF, "1.75")), 1);
    assert_int_equal(run(r, op_number(OP_GETDEL, 0)).kind, ANSWER_NIL);
    assert_number(run(r, op_number(OP_DELETE, 0)), 0);
    assert_int_equal(run(r, blind).kind, ANSWER_OK);
    assert_int_equal(run(r, op_set("v", 0)).kind, ANSWER_OK);
    assert_int_equal(run(r, blind).kind, ANSWER_OK);
    assert_int_equal(run(r, op_set("v", OPF_XX)).kind, ANSWER_NIL);
    assert_int_equal(run(r, op_set("v", OPF_NX)).kind, ANSWER_OK);
    assert_value(run(r, op_number(OP_GETDEL, 0)), "v");
    assert_int_equal(run(r, get).kind, ANSWER_NIL);
}

void cluster_every_operation(struct cluster *c, uint32_t nodes, const char *key)
{
    struct round r = {.cluster = c, .key = key, .nodes = nodes};
    assert_int_equal(run(&r, get).kind, ANSWER_NIL);
    assert_number(run(&r, op_number(OP_EXISTS, 0)), 0);
    struct cluster_answer a = run(&r, op_set("v0", 0));
    assert_int_equal(a.kind, ANSWER_OK);
    assert_true(a.applied);
    assert_true(a.version > 0);
    assert_value(run(&r, get), "v0");
    assert_int_equal(run(&r, get).version, a.version);
    conditions(&r);
    deadlines(&r);
    texts_and_numbers(&r);
    deletes(&r);
    struct op wrong = {.kind = OP_SETRANGE, .number = -1, .value = text("x")};
    assert_error(run(&r, wrong), HK_ERR_INVALID);
}
