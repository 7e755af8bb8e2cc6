#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/meta.h"
#include "engine/op.h"
#include "wire/msg.h"

#define VALUE_MAX 1000u

/* The wall clock of every evaluation; deadlines are before or after it. */
#define NOW 5000

#define BYTES(s)                                                                                   \
    {                                                                                              \
        (const uint8_t *)(s), sizeof(s) - 1                                                        \
    }

/* States. */
#define ABSENT                                                                                     \
    {                                                                                              \
        .present = false                                                                           \
    }
#define HOLDS(s)                                                                                   \
    {                                                                                              \
        .present = true, .value = BYTES(s)                                                         \
    }
#define UNTIL(ms, s)                                                                               \
    {                                                                                              \
        .present = true, .deadline_ms = (ms), .value = BYTES(s)                                    \
    }

/* Outcomes: what the client hears, and what becomes of the key. */
#define OK .answer = ANSWER_OK
#define NIL .answer = ANSWER_NIL
#define NUMBER(n) .answer = ANSWER_NUMBER, .number = (n)
#define TEXT(s) .answer = ANSWER_VALUE, .value = BYTES(s)
#define FAILS(e) .answer = ANSWER_ERROR, .number = (e)
#define STAYS .changed = false
#define BECOMES .changed = true, .next =

struct row {
    struct op op;
    struct op_state old;
    uint8_t answer;
    int64_t number;
    struct bytes value;
    bool changed;
    struct op_state next;
};

static bool states_equal(const struct op_state *a, const struct op_state *b)
{
    return a->present == b->present && a->deadline_ms == b->deadline_ms &&
           bytes_equal(a->value, b->value);
}

/* What is wrong with the row's evaluation, or NULL. */
static const char *row_wrong(const struct row *row)
{
    static const struct op_state untouched = UNTIL(77, "untouched");
    uint8_t scratch[VALUE_MAX];
    struct op_state next = untouched;
    struct answer answer = {.kind = 99};
    bool changed = !row->changed;
    uint64_t needed = op_scratch_bytes(&row->op, &row->old);

    if (op_check(&row->op, VALUE_MAX) != HK_OK)
        return "op_check refuses it";
    if (needed > sizeof scratch)
        return "it needs too much scratch";

    int err =
        op_evaluate(&row->op, &row->old, NOW, scratch, (uint32_t)needed, &next, &answer, &changed);

    if (answer.kind != row->answer)
        return "kind of answer";
    if (answer.number != row->number)
        return "answered number";
    if (!bytes_equal(answer.value, row->value))
        return "answered value";
    if (err != (row->answer == ANSWER_ERROR ? row->number : HK_OK))
        return "error";
    if (changed != row->changed || answer.applied != row->changed)
        return "changed";
    if (!states_equal(&next, row->changed ? &row->next : &untouched))
        return "next state";
    if (changed && !op_updates(&row->op))
        return "a read changed the key";
    bool number = row->op.kind == OP_ADD || row->op.kind == OP_ADD_FLOAT;
    bool becomes = changed && !row->old.present && next.present;
    if (becomes && !number && op_room(&row->op) != op_state_stored_bytes(&next))
        return "another room";
    return NULL;
}

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *wrong = row_wrong(&rows[i]);
        if (wrong != NULL)
            fail_msg("row %zu: %s", i, wrong);
    }
}
#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void reads(void **state)
{
    static const struct row rows[] = {
        {{.kind = OP_GET}, ABSENT, NIL, STAYS},
        {{.kind = OP_GET}, HOLDS(""), TEXT(""), STAYS},
        {{.kind = OP_GET}, UNTIL(6000, "a\0b"), TEXT("a\0b"), STAYS},
        {{.kind = OP_EXISTS}, ABSENT, NUMBER(0), STAYS},
        {{.kind = OP_EXISTS}, HOLDS(""), NUMBER(1), STAYS},
        {{.kind = OP_STRLEN}, ABSENT, NUMBER(0), STAYS},
        {{.kind = OP_STRLEN}, HOLDS(""), NUMBER(0), STAYS},
        {{.kind = OP_STRLEN}, UNTIL(6000, "four"), NUMBER(4), STAYS},
        {{.kind = OP_DEADLINE}, ABSENT, NUMBER(-2), STAYS},
        {{.kind = OP_DEADLINE}, HOLDS("v"), NUMBER(-1), STAYS},
        {{.kind = OP_DEADLINE}, UNTIL(6000, "v"), NUMBER(6000), STAYS},
        {{.kind = OP_DEADLINE}, UNTIL(INT64_MAX, "v"), NUMBER(INT64_MAX), STAYS},
    };
    (void)state;
    CHECK(rows);
}

#define SET(f)                                                                                     \
    {                                                                                              \
        .kind = OP_SET, .flags = (f), .value = BYTES("new")                                        \
    }
#define SET_IFEQ(f, s)                                                                             \
    {                                                                                              \
        .kind = OP_SET, .flags = OPF_IFEQ | (f), .value = BYTES("new"), .arg = BYTES(s)            \
    }
#define SET_UNTIL(f, ms)                                                                           \
    {                                                                                              \
        .kind = OP_SET, .flags = OPF_DEADLINE | (f), .value = BYTES("new"), .number = (ms)         \
    }

static void set(void **state)
{
    static const struct row rows[] = {
        {SET(0), ABSENT, OK, BECOMES HOLDS("new")},
        {SET(0), HOLDS("old"), OK, BECOMES HOLDS("new")},
        {SET(0), UNTIL(6000, "old"), OK, BECOMES HOLDS("new")},
        {{.kind = OP_SET}, HOLDS("old"), OK, BECOMES HOLDS("")},

        {SET(OPF_NX), ABSENT, OK, BECOMES HOLDS("new")},
        {SET(OPF_NX), HOLDS(""), NIL, STAYS},
        {SET(OPF_XX), ABSENT, NIL, STAYS},
        {SET(OPF_XX), UNTIL(6000, "old"), OK, BECOMES HOLDS("new")},

        {SET_IFEQ(0, "old"), HOLDS("old"), OK, BECOMES HOLDS("new")},
        {SET_IFEQ(0, "old"), HOLDS("older"), NIL, STAYS},
        {SET_IFEQ(0, "old"), HOLDS("olD"), NIL, STAYS},
        {SET_IFEQ(0, ""), HOLDS(""), OK, BECOMES HOLDS("new")},
        {SET_IFEQ(0, ""), ABSENT, NIL, STAYS}, /* absent is not empty */

        {SET(OPF_GET), ABSENT, NIL, BECOMES HOLDS("new")},
        {SET(OPF_GET), UNTIL(6000, "old"), TEXT("old"), BECOMES HOLDS("new")},
        {SET(OPF_GET | OPF_NX), ABSENT, NIL, BECOMES HOLDS("new")},
        {SET(OPF_GET | OPF_NX), HOLDS("old"), TEXT("old"), STAYS},
        {SET(OPF_GET | OPF_XX), ABSENT, NIL, STAYS},
        {SET_IFEQ(OPF_GET, "x"), HOLDS("old"), TEXT("old"), STAYS},
        {SET_IFEQ(OPF_GET, "old"), HOLDS("old"), TEXT("old"), BECOMES HOLDS("new")},

        {SET(OPF_KEEPTTL), ABSENT, OK, BECOMES HOLDS("new")},
        {SET(OPF_KEEPTTL), HOLDS("old"), OK, BECOMES HOLDS("new")},
        {SET(OPF_KEEPTTL), UNTIL(6000, "old"), OK, BECOMES UNTIL(6000, "new")},
        {SET(OPF_KEEPTTL | OPF_XX), UNTIL(6000, "old"), OK, BECOMES UNTIL(6000, "new")},
    };
    (void)state;
    CHECK(rows);
}

static void set_with_a_deadline(void **state)
{
    static const struct row rows[] = {
        {SET_UNTIL(0, 7000), ABSENT, OK, BECOMES UNTIL(7000, "new")},
        {SET_UNTIL(0, 7000), UNTIL(6000, "old"), OK, BECOMES UNTIL(7000, "new")},
        {SET_UNTIL(0, INT64_MAX), ABSENT, OK, BECOMES UNTIL(INT64_MAX, "new")},
        {SET_UNTIL(OPF_NX, 7000), HOLDS("old"), NIL, STAYS},
        {SET_UNTIL(OPF_GET, 7000), HOLDS("old"), TEXT("old"), BECOMES UNTIL(7000, "new")},
        /* What has passed already is not stored to be deleted later. */
        {SET_UNTIL(0, NOW + 1), HOLDS("old"), OK, BECOMES UNTIL(NOW + 1, "new")},
        {SET_UNTIL(0, NOW), HOLDS("old"), OK, BECOMES ABSENT},
        {SET_UNTIL(0, 1), ABSENT, OK, BECOMES ABSENT},
        {SET_UNTIL(OPF_XX, 1), ABSENT, NIL, STAYS},
    };
    (void)state;
    CHECK(rows);
}

#define DELETE_IF(s)                                                                               \
    {                                                                                              \
        .kind = OP_DELETE_IF, .arg = BYTES(s)                                                      \
    }
#define EXPIRED(ms)                                                                                \
    {                                                                                              \
        .kind = OP_EXPIRED, .number = (ms)                                                         \
    }

static void deletes(void **state)
{
    static const struct row rows[] = {
        {{.kind = OP_DELETE}, ABSENT, NUMBER(0), STAYS},
        {{.kind = OP_DELETE}, UNTIL(6000, "v"), NUMBER(1), BECOMES ABSENT},
        {{.kind = OP_DELETE, .flags = OPF_BLIND}, ABSENT, OK, BECOMES ABSENT},
        {{.kind = OP_DELETE, .flags = OPF_BLIND}, HOLDS("v"), OK, BECOMES ABSENT},

        {DELETE_IF("v"), ABSENT, NUMBER(0), STAYS},
        {DELETE_IF(""), ABSENT, NUMBER(0), STAYS},
        {DELETE_IF("v"), HOLDS("w"), NUMBER(0), STAYS},
        {DELETE_IF("v"), HOLDS("v"), NUMBER(1), BECOMES ABSENT},
        {DELETE_IF(""), HOLDS(""), NUMBER(1), BECOMES ABSENT},
        {DELETE_IF("v"), UNTIL(6000, "v"), NUMBER(1), BECOMES ABSENT},

        {EXPIRED(4000), ABSENT, NUMBER(0), STAYS},
        {EXPIRED(4000), HOLDS("v"), NUMBER(0), STAYS},
        {EXPIRED(4000), UNTIL(4000, "v"), NUMBER(1), BECOMES ABSENT},
        {EXPIRED(NOW), UNTIL(NOW, "v"), NUMBER(1), BECOMES ABSENT},
        /* Somebody moved the deadline, or it has not passed by this node's clock. */
        {EXPIRED(4000), UNTIL(4001, "v"), NUMBER(0), STAYS},
        {EXPIRED(NOW + 1), UNTIL(NOW + 1, "v"), NUMBER(0), STAYS},

        {{.kind = OP_GETDEL}, ABSENT, NIL, STAYS},
        {{.kind = OP_GETDEL}, UNTIL(6000, "v"), TEXT("v"), BECOMES ABSENT},
    };
    (void)state;
    CHECK(rows);
}

#define ADD(n)                                                                                     \
    {                                                                                              \
        .kind = OP_ADD, .number = (n)                                                              \
    }

static void add(void **state)
{
    static const struct row rows[] = {
        {ADD(5), ABSENT, NUMBER(5), BECOMES HOLDS("5")},
        {ADD(0), ABSENT, NUMBER(0), BECOMES HOLDS("0")},
        {ADD(-3), HOLDS("2"), NUMBER(-1), BECOMES HOLDS("-1")},
        {ADD(1), HOLDS("-1"), NUMBER(0), BECOMES HOLDS("0")},
        {ADD(1), UNTIL(6000, "41"), NUMBER(42), BECOMES UNTIL(6000, "42")},
        {ADD(INT64_MIN), ABSENT, NUMBER(INT64_MIN), BECOMES HOLDS("-9223372036854775808")},
        {ADD(INT64_MAX), HOLDS("-9223372036854775808"), NUMBER(-1), BECOMES HOLDS("-1")},

        {ADD(1), HOLDS("9223372036854775806"), NUMBER(INT64_MAX),
         BECOMES HOLDS("9223372036854775807")},
        {ADD(1), HOLDS("9223372036854775807"), FAILS(HK_ERR_OVERFLOW), STAYS},
        {ADD(-1), HOLDS("-9223372036854775808"), FAILS(HK_ERR_OVERFLOW), STAYS},
        {ADD(INT64_MIN), HOLDS("-1"), FAILS(HK_ERR_OVERFLOW), STAYS},

        {ADD(1), HOLDS(""), FAILS(HK_ERR_TYPE), STAYS},
        {ADD(1), HOLDS("x"), FAILS(HK_ERR_TYPE), STAYS},
        {ADD(1), HOLDS("007"), FAILS(HK_ERR_TYPE), STAYS},
        {ADD(1), HOLDS("1.0"), FAILS(HK_ERR_TYPE), STAYS},
        {ADD(1), HOLDS("9223372036854775808"), FAILS(HK_ERR_TYPE), STAYS},
    };
    (void)state;
    CHECK(rows);
}

#define ADD_FLOAT(s)                                                                               \
    {                                                                                              \
        .kind = OP_ADD_FLOAT, .arg = BYTES(s)                                                      \
    }

static void add_float(void **state)
{
    static const struct row rows[] = {
        {ADD_FLOAT("1.50"), ABSENT, TEXT("1.5"), BECOMES HOLDS("1.5")},
        {ADD_FLOAT("0.1"), HOLDS("10.50"), TEXT("10.6"), BECOMES HOLDS("10.6")},
        {ADD_FLOAT("-1"), UNTIL(6000, "1"), TEXT("0"), BECOMES UNTIL(6000, "0")},
        {ADD_FLOAT("2.0e2"), HOLDS("5.0e3"), TEXT("5200"), BECOMES HOLDS("5200")},
        {ADD_FLOAT("1"), HOLDS("x"), FAILS(HK_ERR_TYPE), STAYS},
        {ADD_FLOAT("1"), HOLDS(""), FAILS(HK_ERR_TYPE), STAYS},
        {ADD_FLOAT("x"), HOLDS("1"), FAILS(HK_ERR_TYPE), STAYS},
        {ADD_FLOAT("x"), ABSENT, FAILS(HK_ERR_TYPE), STAYS},
        {ADD_FLOAT(""), ABSENT, FAILS(HK_ERR_TYPE), STAYS},
        {ADD_FLOAT("9e308"), HOLDS("9e308"), FAILS(HK_ERR_OVERFLOW), STAYS},
    };
    (void)state;
    CHECK(rows);
}

#define APPEND(s)                                                                                  \
    {                                                                                              \
        .kind = OP_APPEND, .value = BYTES(s)                                                       \
    }
#define SETRANGE(at, s)                                                                            \
    {                                                                                              \
        .kind = OP_SETRANGE, .number = (at), .value = BYTES(s)                                     \
    }

static void append_and_setrange(void **state)
{
    static const struct row rows[] = {
        {APPEND("ab"), ABSENT, NUMBER(2), BECOMES HOLDS("ab")},
        {APPEND("ab"), HOLDS(""), NUMBER(2), BECOMES HOLDS("ab")},
        {APPEND("cd"), HOLDS("ab"), NUMBER(4), BECOMES HOLDS("abcd")},
        {APPEND("cd"), UNTIL(6000, "ab"), NUMBER(4), BECOMES UNTIL(6000, "abcd")},
        {APPEND("ab"), UNTIL(6000, ""), NUMBER(2), BECOMES UNTIL(6000, "ab")},
        /* Nothing appended is an update, and makes the key if there was none. */
        {APPEND(""), ABSENT, NUMBER(0), BECOMES HOLDS("")},
        {APPEND(""), UNTIL(6000, "ab"), NUMBER(2), BECOMES UNTIL(6000, "ab")},

        {SETRANGE(0, "ab"), ABSENT, NUMBER(2), BECOMES HOLDS("ab")},
        {SETRANGE(3, "ab"), ABSENT, NUMBER(5), BECOMES HOLDS("\0\0\0ab")},
        {SETRANGE(1, "XY"), HOLDS("abcd"), NUMBER(4), BECOMES HOLDS("aXYd")},
        {SETRANGE(2, "XYZ"), HOLDS("abcd"), NUMBER(5), BECOMES HOLDS("abXYZ")},
        {SETRANGE(4, "XY"), HOLDS("abcd"), NUMBER(6), BECOMES HOLDS("abcdXY")},
        {SETRANGE(6, "XY"), HOLDS("abcd"), NUMBER(8), BECOMES HOLDS("abcd\0\0XY")},
        {SETRANGE(0, "X"), UNTIL(6000, "ab"), NUMBER(2), BECOMES UNTIL(6000, "Xb")},
        /* Nothing written is no update at any offset, and makes no key. */
        {SETRANGE(0, ""), ABSENT, NUMBER(0), STAYS},
        {SETRANGE(INT64_MAX, ""), ABSENT, NUMBER(0), STAYS},
        {SETRANGE(INT64_MAX, ""), UNTIL(6000, "ab"), NUMBER(2), STAYS},
    };
    (void)state;
    CHECK(rows);
}

static void setrange_pads_up_to_the_limit(void **state)
{
    uint8_t padded[VALUE_MAX] = {0};
    struct row row = {SETRANGE(VALUE_MAX - 1, "X"), HOLDS(""), NUMBER(VALUE_MAX), .changed = true};
    const char *wrong = NULL;
    (void)state;

    padded[VALUE_MAX - 1] = 'X';
    row.next = (struct op_state){.present = true, .value = {padded, VALUE_MAX}};
    wrong = row_wrong(&row);
    if (wrong != NULL)
        fail_msg("%s", wrong);
}

#define EXPIRE(f, ms)                                                                              \
    {                                                                                              \
        .kind = OP_EXPIRE, .flags = (f), .number = (ms)                                            \
    }

static void expire(void **state)
{
    static const struct row rows[] = {
        {EXPIRE(0, 7000), ABSENT, NUMBER(0), STAYS},
        {EXPIRE(0, 7000), HOLDS("v"), NUMBER(1), BECOMES UNTIL(7000, "v")},
        {EXPIRE(0, 7000), UNTIL(8000, "v"), NUMBER(1), BECOMES UNTIL(7000, "v")},
        {EXPIRE(0, NOW + 1), HOLDS("v"), NUMBER(1), BECOMES UNTIL(NOW + 1, "v")},
        {EXPIRE(0, NOW), HOLDS("v"), NUMBER(1), BECOMES ABSENT},
        {EXPIRE(0, 0), HOLDS("v"), NUMBER(1), BECOMES ABSENT},
        {EXPIRE(0, -1), UNTIL(8000, "v"), NUMBER(1), BECOMES ABSENT},
        {EXPIRE(0, INT64_MIN), HOLDS("v"), NUMBER(1), BECOMES ABSENT},
        {EXPIRE(0, -1), ABSENT, NUMBER(0), STAYS},

        {EXPIRE(OPF_NX, 7000), HOLDS("v"), NUMBER(1), BECOMES UNTIL(7000, "v")},
        {EXPIRE(OPF_NX, 7000), UNTIL(8000, "v"), NUMBER(0), STAYS},
        {EXPIRE(OPF_NX, 1), HOLDS("v"), NUMBER(1), BECOMES ABSENT},
        {EXPIRE(OPF_XX, 7000), HOLDS("v"), NUMBER(0), STAYS},
        {EXPIRE(OPF_XX, 7000), UNTIL(8000, "v"), NUMBER(1), BECOMES UNTIL(7000, "v")},

        /* Without a deadline a key lives for ever: nothing is greater, everything is less. */
        {EXPIRE(OPF_GT, 7000), HOLDS("v"), NUMBER(0), STAYS},
        {EXPIRE(OPF_GT, 7000), UNTIL(6999, "v"), NUMBER(1), BECOMES UNTIL(7000, "v")},
        {EXPIRE(OPF_GT, 7000), UNTIL(7000, "v"), NUMBER(0), STAYS},
        {EXPIRE(OPF_GT, 1), UNTIL(7000, "v"), NUMBER(0), STAYS},
        {EXPIRE(OPF_LT, 7000), HOLDS("v"), NUMBER(1), BECOMES UNTIL(7000, "v")},
        {EXPIRE(OPF_LT, 7000), UNTIL(7001, "v"), NUMBER(1), BECOMES UNTIL(7000, "v")},
        {EXPIRE(OPF_LT, 7000), UNTIL(7000, "v"), NUMBER(0), STAYS},
        {EXPIRE(OPF_LT, -1), UNTIL(7000, "v"), NUMBER(1), BECOMES ABSENT},
        {EXPIRE(OPF_LT | OPF_XX, 7000), HOLDS("v"), NUMBER(0), STAYS},
        {EXPIRE(OPF_LT | OPF_XX, 7000), UNTIL(8000, "v"), NUMBER(1), BECOMES UNTIL(7000, "v")},
        {EXPIRE(OPF_GT | OPF_XX, 7000), UNTIL(6000, "v"), NUMBER(1), BECOMES UNTIL(7000, "v")},
    };
    (void)state;
    CHECK(rows);
}

#define GETEX(f, ms)                                                                               \
    {                                                                                              \
        .kind = OP_GETEX, .flags = (f), .number = (ms)                                             \
    }
#define GETSET(s)                                                                                  \
    {                                                                                              \
        .kind = OP_GETSET, .value = BYTES(s)                                                       \
    }

static void persist_getex_getset(void **state)
{
    static const struct row rows[] = {
        {{.kind = OP_PERSIST}, ABSENT, NUMBER(0), STAYS},
        {{.kind = OP_PERSIST}, HOLDS("v"), NUMBER(0), STAYS},
        {{.kind = OP_PERSIST}, UNTIL(6000, "v"), NUMBER(1), BECOMES HOLDS("v")},

        {GETEX(0, 7000), ABSENT, NIL, STAYS},
        {GETEX(0, 7000), HOLDS("v"), TEXT("v"), BECOMES UNTIL(7000, "v")},
        {GETEX(0, 7000), UNTIL(6000, "v"), TEXT("v"), BECOMES UNTIL(7000, "v")},
        {GETEX(0, 1), UNTIL(6000, "v"), TEXT("v"), BECOMES ABSENT},
        {GETEX(0, 0), UNTIL(6000, "v"), TEXT("v"), BECOMES HOLDS("v")},
        {GETEX(0, 0), HOLDS("v"), TEXT("v"), STAYS},
        {GETEX(OPF_KEEPTTL, 0), UNTIL(6000, "v"), TEXT("v"), STAYS},
        {GETEX(OPF_KEEPTTL, 0), ABSENT, NIL, STAYS},

        {GETSET("new"), ABSENT, NIL, BECOMES HOLDS("new")},
        {GETSET("new"), UNTIL(6000, "old"), TEXT("old"), BECOMES HOLDS("new")},
        {GETSET(""), HOLDS(""), TEXT(""), BECOMES HOLDS("")},
    };
    (void)state;
    CHECK(rows);
}

static void kinds_are_told_apart(void **state)
{
    (void)state;
    for (int kind = 0; kind < OP_KINDS; kind++) {
        struct op op = {.kind = (uint8_t)kind};
        bool read = kind == OP_GET || kind == OP_EXISTS || kind == OP_STRLEN || kind == OP_DEADLINE;

        assert_int_equal(op_updates(&op), !read);
        assert_int_equal(op_is_rmw(&op), !read && kind != OP_SET);
    }

    static const uint16_t conditions[] = {OPF_NX, OPF_XX, OPF_IFEQ, OPF_GET, OPF_KEEPTTL};

    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
        struct op op = {.kind = OP_SET, .flags = conditions[i]};
        assert_true(op_is_rmw(&op));
    }
    assert_false(op_is_rmw(&(struct op)SET_UNTIL(0, 7000)));
    assert_false(op_is_rmw(&(struct op){.kind = OP_DELETE, .flags = OPF_BLIND}));
    assert_false(op_updates(&(struct op)GETEX(OPF_KEEPTTL, 0)));
    assert_false(op_is_rmw(&(struct op)GETEX(OPF_KEEPTTL, 0)));
}

static int check(uint8_t kind, uint16_t flags, int64_t number)
{
    struct op op = {.kind = kind, .flags = flags, .number = number};
    return op_check(&op, VALUE_MAX);
}

/* Every combination of flags, against the rule in words: each kind has its own flags, NX, XX and
 * IFEQ exclude each other, so do KEEPTTL and a deadline, and EXPIRE's NX goes with nothing. */
static void flags_are_checked(void **state)
{
    (void)state;
    for (uint16_t flags = 0; flags < 1 << 10; flags++) {
        for (uint8_t kind = 0; kind < OP_KINDS; kind++) {
            uint16_t own = 0;
            bool fits = true;
            int64_t number = kind == OP_GETEX ? 0 : 1;

            if (kind == OP_SET) {
                int conditions = !!(flags & OPF_NX) + !!(flags & OPF_XX) + !!(flags & OPF_IFEQ);
                own = OPF_NX | OPF_XX | OPF_IFEQ | OPF_GET | OPF_KEEPTTL | OPF_DEADLINE;
                fits = conditions <= 1 && !((flags & OPF_KEEPTTL) && (flags & OPF_DEADLINE));
            } else if (kind == OP_DELETE) {
                own = OPF_BLIND;
            } else if (kind == OP_GETEX) {
                own = OPF_KEEPTTL;
            } else if (kind == OP_EXPIRE) {
                own = OPF_NX | OPF_XX | OPF_GT | OPF_LT;
                fits = flags == OPF_NX ||
                       (!(flags & OPF_NX) && !((flags & OPF_GT) && (flags & OPF_LT)));
            }
            fits = fits && (flags & ~own) == 0;
            assert_int_equal(check(kind, flags, number), fits ? HK_OK : HK_ERR_INVALID);
        }
    }
}

static void kinds_and_numbers_are_checked(void **state)
{
    (void)state;
    assert_int_equal(check(OP_KINDS, 0, 0), HK_ERR_INVALID);
    assert_int_equal(check(UINT8_MAX, 0, 0), HK_ERR_INVALID);
    assert_int_equal(check(OP_SET, OPF_DEADLINE, 0), HK_ERR_INVALID);
    assert_int_equal(check(OP_SET, OPF_DEADLINE, -1), HK_ERR_INVALID);
    assert_int_equal(check(OP_GETEX, 0, -1), HK_ERR_INVALID);
    assert_int_equal(check(OP_GETEX, OPF_KEEPTTL, 1), HK_ERR_INVALID);
    assert_int_equal(check(OP_SETRANGE, 0, -1), HK_ERR_INVALID);
    assert_int_equal(check(OP_EXPIRED, 0, 0), HK_ERR_INVALID);
    assert_int_equal(check(OP_EXPIRED, 0, -5), HK_ERR_INVALID);
    assert_int_equal(check(OP_EXPIRE, 0, INT64_MIN), HK_OK);
    assert_int_equal(check(OP_ADD, 0, INT64_MIN), HK_OK);
}

static void sizes_are_checked(void **state)
{
    static uint8_t bytes[MSG_KEY_MAX + 1];
    struct op op = {.kind = OP_GET, .key = {bytes, MSG_KEY_MAX}};
    (void)state;

    assert_int_equal(op_check(&op, VALUE_MAX), HK_OK);
    op.key.n++;
    assert_int_equal(op_check(&op, VALUE_MAX), HK_ERR_TOOBIG);

    static const uint8_t writers[] = {OP_SET, OP_APPEND, OP_GETSET, OP_SETRANGE};

    for (size_t i = 0; i < sizeof writers; i++) {
        op = (struct op){.kind = writers[i], .value = {bytes, VALUE_MAX}};
        assert_int_equal(op_check(&op, VALUE_MAX), HK_OK);
        op.value.n++;
        assert_int_equal(op_check(&op, VALUE_MAX), HK_ERR_TOOBIG);
    }
    op = (struct op){.kind = OP_SETRANGE, .value = {bytes, 10}, .number = VALUE_MAX - 10};
    assert_int_equal(op_check(&op, VALUE_MAX), HK_OK);
    op.number++;
    assert_int_equal(op_check(&op, VALUE_MAX), HK_ERR_TOOBIG);
    op.number = INT64_MAX;
    assert_int_equal(op_check(&op, VALUE_MAX), HK_ERR_TOOBIG);
    /* What is only compared is not stored, and may be any length. */
    op = (struct op){.kind = OP_DELETE_IF, .arg = {bytes, VALUE_MAX + 1}};
    assert_int_equal(op_check(&op, VALUE_MAX), HK_OK);
}

static void too_little_scratch_is_an_error(void **state)
{
    static const struct op ops[] = {APPEND("cd"), SETRANGE(9, "X"), ADD(100), ADD_FLOAT("1.25")};
    static const struct op_state old = HOLDS("10");
    (void)state;

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        for (uint32_t n = 0;; n++) {
            uint8_t *scratch = malloc(n + 1);
            struct op_state next = HOLDS("untouched");
            struct answer answer;
            bool changed = true;

            assert_non_null(scratch);
            assert_true(n <= op_scratch_bytes(&ops[i], &old));
            int err = op_evaluate(&ops[i], &old, NOW, scratch, n, &next, &answer, &changed);
            free(scratch);
            if (err == HK_OK)
                break;
            assert_int_equal(err, HK_ERR_TOOBIG);
            assert_int_equal(answer.kind, ANSWER_ERROR);
            assert_int_equal(answer.number, HK_ERR_TOOBIG);
            assert_false(answer.applied);
            assert_false(changed);
            assert_int_equal(next.value.n, 9);
        }
    }
}

static void scratch_is_told_before_it_is_found(void **state)
{
    static const uint8_t some[1] = {0};
    struct op_state old = {.present = true, .value = {some, UINT32_MAX}};
    struct op op = {.kind = OP_APPEND, .value = {some, UINT32_MAX}};
    (void)state;

    assert_true(op_scratch_bytes(&op, &old) == 2 * (uint64_t)UINT32_MAX);
    op = (struct op){.kind = OP_SETRANGE, .value = {some, UINT32_MAX}, .number = INT64_MAX};
    assert_true(op_scratch_bytes(&op, &old) == (uint64_t)INT64_MAX + UINT32_MAX);
    assert_true(op_scratch_bytes(&(struct op)SET(OPF_GET), &old) == 0);
}

static void stored_form(void **state)
{
    static const uint8_t expected[] = "\x70\x17\0\0\0\0\0\0value";
    static const struct op_state with = UNTIL(6000, "value");
    static const struct op_state without = HOLDS("value");
    static const struct op_state absent = ABSENT;
    uint8_t out[16];
    uint8_t vflags = 0xff;
    struct op_state back;
    (void)state;

    assert_int_equal(op_state_stored_bytes(&with), 13);
    assert_int_equal(op_state_store(&with, out, &vflags), 13);
    assert_int_equal(vflags, KEY_DEADLINE);
    assert_memory_equal(out, expected, 13);
    assert_int_equal(op_state_from_stored(bytes_of(out, 13), vflags, &back), HK_OK);
    assert_true(states_equal(&back, &with));
    assert_ptr_equal(back.value.at, out + 8);

    assert_int_equal(op_state_stored_bytes(&without), 5);
    assert_int_equal(op_state_store(&without, out, &vflags), 5);
    assert_int_equal(vflags, 0);
    assert_int_equal(op_state_from_stored(bytes_of(out, 5), KEY_READABLE | KEY_WAITERS, &back),
                     HK_OK);
    assert_true(states_equal(&back, &without));

    assert_int_equal(op_state_stored_bytes(&absent), 0);
    assert_int_equal(op_state_store(&absent, out, &vflags), 0);
    assert_int_equal(vflags, KEY_TOMBSTONE);
    assert_int_equal(op_state_from_stored(bytes_of(NULL, 0), KEY_TOMBSTONE | KEY_READABLE, &back),
                     HK_OK);
    assert_false(back.present);
}

static void storing_may_overlap(void **state)
{
    (void)state;
    for (uint32_t at = 0; at <= 16; at++) {
        uint8_t buffer[64];
        uint8_t vflags = 0;
        struct op_state from = {.present = true, .deadline_ms = 6000, .value = {buffer + at, 20}};
        struct op_state back;

        memset(buffer, 'x', sizeof buffer);
        memcpy(buffer + at, "abcdefghijklmnopqrst", 20);
        assert_int_equal(op_state_store(&from, buffer, &vflags), 28);
        assert_int_equal(op_state_from_stored(bytes_of(buffer, 28), vflags, &back), HK_OK);
        assert_true(back.deadline_ms == 6000);
        assert_memory_equal(back.value.at, "abcdefghijklmnopqrst", 20);
    }
}

static void contradictions_are_corrupt(void **state)
{
    static const uint8_t zero[8] = {0};
    static const uint8_t last[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    static const uint8_t beyond[8] = {0, 0, 0, 0, 0, 0, 0, 0x80};
    struct op_state to = UNTIL(77, "untouched");
    (void)state;

    assert_int_equal(op_state_from_stored(bytes_of(last, 1), KEY_TOMBSTONE, &to), HK_ERR_CORRUPT);
    assert_int_equal(op_state_from_stored(bytes_of(last, 8), KEY_TOMBSTONE | KEY_DEADLINE, &to),
                     HK_ERR_CORRUPT);
    assert_int_equal(op_state_from_stored(bytes_of(last, 0), KEY_TOMBSTONE | KEY_DEADLINE, &to),
                     HK_ERR_CORRUPT);
    for (uint32_t n = 0; n < 8; n++)
        assert_int_equal(op_state_from_stored(bytes_of(last, n), KEY_DEADLINE, &to),
                         HK_ERR_CORRUPT);
    assert_int_equal(op_state_from_stored(bytes_of(zero, 8), KEY_DEADLINE, &to), HK_ERR_CORRUPT);
    assert_int_equal(op_state_from_stored(bytes_of(beyond, 8), KEY_DEADLINE, &to), HK_ERR_CORRUPT);
    assert_true(to.deadline_ms == 77);
    assert_int_equal(op_state_from_stored(bytes_of(last, 8), KEY_DEADLINE, &to), HK_OK);
    assert_true(to.present && to.deadline_ms == INT64_MAX && to.value.n == 0);
}

static void expired_from_the_deadline_on(void **state)
{
    static const struct op_state with = UNTIL(6000, "v");
    static const struct op_state without = HOLDS("v");
    static const struct op_state absent = ABSENT;
    (void)state;

    assert_false(op_state_expired(&with, 5999));
    assert_true(op_state_expired(&with, 6000));
    assert_true(op_state_expired(&with, UINT64_MAX));
    assert_false(op_state_expired(&without, UINT64_MAX));
    assert_false(op_state_expired(&absent, UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),
        cmocka_unit_test(set),
        cmocka_unit_test(set_with_a_deadline),
        cmocka_unit_test(deletes),
        cmocka_unit_test(add),
        cmocka_unit_test(add_float),
        cmocka_unit_test(append_and_setrange),
        cmocka_unit_test(setrange_pads_up_to_the_limit),
        cmocka_unit_test(expire),
        cmocka_unit_test(persist_getex_getset),
        cmocka_unit_test(kinds_are_told_apart),
        cmocka_unit_test(flags_are_checked),
        cmocka_unit_test(kinds_and_numbers_are_checked),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(too_little_scratch_is_an_error),
        cmocka_unit_test(scratch_is_told_before_it_is_found),
        cmocka_unit_test(stored_form),
        cmocka_unit_test(storing_may_overlap),
        cmocka_unit_test(contradictions_are_corrupt),
        cmocka_unit_test(expired_from_the_deadline_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
