/* Operations and answers as messages: what goes in comes out, byte by byte where docs/WIRE.md says
 * so, and what no node sends is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/meta.h"
#include "base/nodeset.h"
#include "engine/op_msg.h"

static const struct op_call sample = {
    .op = {.kind = OP_SET,
           .space = 3,
           .flags = OPF_IFEQ | OPF_GET,
           .key = {(const uint8_t *)"key", 3},
           .value = {(const uint8_t *)"value", 5},
           .arg = {(const uint8_t *)"old", 3},
           .number = -2},
    .slot = 0x01000002,
    .gen = 3,
    .nonce = 0x0a0b0c0d,
    .origin = 5,
    .hops = 2,
    .handed = true,
    .handed_version = 0x1122334455667788,
};

static struct msg encode(const struct op_call *call, uint8_t *room)
{
    struct msg m;
    op_call_encode(call, room, &m);
    m.space = call->op.space;
    return m;
}

static void assert_bytes(struct bytes a, struct bytes b)
{
    assert_int_equal(a.n, b.n);
    if (a.n > 0) {
        assert_memory_equal(a.at, b.at, a.n);
    }
}

static void assert_same(const struct op_call *a, const struct op_call *b)
{
    assert_int_equal(a->op.kind, b->op.kind);
    assert_int_equal(a->op.space, b->op.space);
    assert_int_equal(a->op.flags, b->op.flags);
    assert_int_equal(a->op.number, b->op.number);
    assert_bytes(a->op.key, b->op.key);
    assert_bytes(a->op.value, b->op.value);
    assert_bytes(a->op.arg, b->op.arg);
    assert_int_equal(a->slot, b->slot);
    assert_int_equal(a->gen, b->gen);
    assert_int_equal(a->nonce, b->nonce);
    assert_int_equal(a->origin, b->origin);
    assert_int_equal(a->hops, b->hops);
    assert_int_equal(a->handed, b->handed);
    assert_int_equal(a->handed_version, b->handed_version);
}

static void calls_come_back(void **state)
{
    (void)state;
    uint8_t room[64];
    for (uint32_t i = 0; i < 16; i++) {
        struct op_call call = sample;
        struct op_call back;
        call.op.arg.n = (i & 1) != 0 ? 3 : 0;
        call.op.value.n = (i & 2) != 0 ? 5 : 0;
        call.handed = (i & 4) != 0;
        call.handed_version = call.handed ? sample.handed_version : 0;
        call.op.key.n = (i & 8) != 0 ? 3 : 0;
        uint64_t bytes = op_call_room(&call);
        uint32_t more = (call.op.arg.n > 0 ? 7u : 0u) + (call.handed ? 8u : 0u);
        assert_int_equal(bytes, more == 0 ? 0 : call.op.value.n + more);
        struct msg m = encode(&call, bytes > 0 ? room : NULL);
        assert_null(op_call_decode(&m, &back));
        assert_same(&call, &back);
        if (bytes == 0) {
            assert_ptr_equal(m.value.at, call.op.value.at); /* not copied */
        }
    }
}

static void calls_have_the_layout_of_the_page(void **state)
{
    (void)state;
    uint8_t room[64];
    struct msg m = encode(&sample, room);
    assert_int_equal(m.kind, 0xf2);
    assert_int_equal(m.flags, 0x32);
    assert_int_equal(m.ts, (uint64_t)-2);
    uint64_t flags = OPF_IFEQ | OPF_GET;
    assert_int_equal(m.arg, 0x0a0b0c0d | (uint64_t)OP_SET << 32 | 5ull << 40 | flags << 48);
    static const uint8_t value[] = "valueold\3\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11";
    assert_bytes(m.value, bytes_of(value, sizeof value - 1));
}

static void too_much_is_not_sent(void **state)
{
    (void)state;
    struct op_call call = sample;
    call.op.value.n = MSG_VALUE_MAX - 15;
    assert_int_equal(op_call_room(&call), MSG_VALUE_MAX);
    call.op.value.n++;
    assert_int_equal(op_call_room(&call), UINT64_MAX);
    call.handed = false;
    call.op.arg.n = 0;
    call.op.value.n = MSG_VALUE_MAX;
    assert_int_equal(op_call_room(&call), 0);
    call.op.value.n = UINT32_MAX;
    call.op.arg.n = UINT32_MAX;
    assert_int_equal(op_call_room(&call), UINT64_MAX);
}

static void assert_no_call(struct msg m)
{
    struct op_call back = sample;
    assert_non_null(op_call_decode(&m, &back));
    assert_same(&back, &sample); /* nothing was written */
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    uint8_t room[64];
    struct msg right = encode(&sample, room);
    struct msg m = right;
    m.kind = MSG_ANSWER;
    assert_no_call(m);
    m = right;
    m.flags |= 0x40;
    assert_no_call(m);
    m = right;
    m.flags = CALL_HOPS_MAX + 1;
    assert_no_call(m);
    m = right;
    m.vflags = KEY_DEADLINE;
    assert_no_call(m);
    m = right;
    m.arg |= (uint64_t)NODES_MAX << 40;
    assert_no_call(m);
    for (uint64_t kind = OP_EXPIRED; kind < 256; kind++) {
        m = right;
        m.arg = (m.arg & ~(0xffull << 32)) | kind << 32;
        assert_no_call(m);
    }
    for (uint32_t n = 0; n < 15; n++) {
        m = right;
        m.value = bytes_of(room, n); /* the argument's length is another number then, or cut */
        struct op_call back;
        if (op_call_decode(&m, &back) == NULL) {
            assert_true(back.op.arg.n + back.op.value.n + 12 == n && back.op.arg.n > 0);
        }
    }
    put_u32(room + 8, 0);
    assert_no_call(right);
    put_u32(room + 8, 9);
    assert_no_call(right);
    put_u32(room + 8, UINT32_MAX);
    assert_no_call(right);
}

static struct op_reply back_of(const struct op_reply *reply)
{
    struct msg m;
    struct op_reply back;
    op_reply_encode(reply, &m);
    assert_null(op_reply_decode(&m, &back));
    assert_int_equal(back.kind, reply->kind);
    assert_int_equal(back.slot, reply->slot);
    assert_int_equal(back.gen, reply->gen);
    return back;
}

static void answers_come_back(void **state)
{
    (void)state;
    static const struct answer answers[] = {
        {.kind = ANSWER_OK, .applied = true},
        {.kind = ANSWER_NIL},
        {.kind = ANSWER_NUMBER, .applied = true, .number = INT64_MIN},
        {.kind = ANSWER_VALUE, .value = {(const uint8_t *)"bytes", 5}},
        {.kind = ANSWER_VALUE, .applied = true},
        {.kind = ANSWER_ERROR, .number = HK_ERR_NOMEM},
        {.kind = ANSWER_ERROR, .number = HK_ERR_LOSTSLOT},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct op_reply reply = {.slot = 7, .gen = 8, .answer = answers[i], .version = 9 + i};
        struct op_reply back = back_of(&reply);
        assert_int_equal(back.version, reply.version);
        assert_int_equal(back.answer.kind, answers[i].kind);
        assert_int_equal(back.answer.applied, answers[i].applied);
        assert_int_equal(back.answer.number, answers[i].number);
        assert_bytes(back.answer.value, answers[i].value);
    }
    struct op_reply again = {.kind = OP_REPLY_AGAIN, .slot = 1, .gen = 2};
    (void)back_of(&again);
    struct op_reply on = {
        .kind = OP_REPLY_SENT_ON, .slot = 1, .gen = 2, .to = 63, .hops = 8, .nonce = UINT32_MAX};
    struct op_reply back = back_of(&on);
    assert_int_equal(back.to, 63);
    assert_int_equal(back.hops, 8);
    assert_int_equal(back.nonce, UINT32_MAX);
}

static void assert_no_answer(struct msg m)
{
    struct op_reply back;
    m.kind = m.kind != 0 ? m.kind : MSG_ANSWER;
    assert_non_null(op_reply_decode(&m, &back));
}

static void wrong_answers_are_refused(void **state)
{
    (void)state;
    struct bytes some = {(const uint8_t *)"x", 1};
    assert_no_answer((struct msg){.kind = MSG_CALL});
    assert_no_answer((struct msg){.vflags = KEY_TOMBSTONE});
    assert_no_answer((struct msg){.key = some});
    assert_no_answer((struct msg){.value = some}); /* with "OK" */
    assert_no_answer((struct msg){.flags = ANSWER_NUMBER, .value = some});
    assert_no_answer((struct msg){.flags = 0x20});
    for (uint8_t kind = ANSWER_ERROR + 1; kind < 16; kind++) {
        if (kind != 8) {
            assert_no_answer((struct msg){.flags = kind});
        }
    }
    assert_no_answer((struct msg){.flags = 8 | 0x10});
    assert_no_answer((struct msg){.flags = 8, .value = some});
    assert_no_answer((struct msg){.flags = ANSWER_ERROR, .arg = HK_OK});
    assert_no_answer((struct msg){.flags = ANSWER_ERROR, .arg = 5});
    assert_no_answer((struct msg){.flags = ANSWER_ERROR, .arg = (uint64_t)INT64_MIN});
    assert_no_answer((struct msg){.flags = ANSWER_ERROR | 0x10, .arg = (uint64_t)HK_ERR_BUSY});
    assert_no_answer((struct msg){.flags = 9, .arg = 1});                        /* no hop */
    assert_no_answer((struct msg){.flags = 9, .arg = (CALL_HOPS_MAX + 1) << 8}); /* too many */
    assert_no_answer((struct msg){.flags = 9, .arg = 1 << 8 | NODES_MAX});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_come_back),      cmocka_unit_test(calls_have_the_layout_of_the_page),
        cmocka_unit_test(too_much_is_not_sent), cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(answers_come_back),    cmocka_unit_test(wrong_answers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
