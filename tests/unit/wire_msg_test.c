#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/meta.h"
#include "wire/msg.h"

/* Offsets as docs/WIRE.md gives them; the tests hold numbers, so that a changed layout shows. */
enum {
    AT_VFLAGS = 3,
    AT_KEY_BYTES = 32,
    AT_VALUE_BYTES = 36,
};

static const struct msg sample = {
    .space = 1,
    .kind = 2,
    .flags = 3,
    .vflags = KEY_DEADLINE,
    .slot = 0x04050607,
    .gen = 0x08090a0b,
    .epoch = 0x0c0d0e0f,
    .ts = 0x1011121314151617,
    .arg = 0x18191a1b1c1d1e1f,
    .key = {(const uint8_t *)"key", 3},
    .value = {(const uint8_t *)"deadlinevalue", 13},
};

static void assert_same(const struct msg *a, const struct msg *b)
{
    assert_int_equal(a->space, b->space);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->vflags, b->vflags);
    assert_int_equal(a->slot, b->slot);
    assert_int_equal(a->gen, b->gen);
    assert_int_equal(a->epoch, b->epoch);
    assert_true(a->ts == b->ts);
    assert_true(a->arg == b->arg);
    assert_true(bytes_equal(a->key, b->key));
    assert_true(bytes_equal(a->value, b->value));
}

/* A header whose lengths say what they are told to, in front of `rest` zero bytes, in memory of
 * exactly that size, so that the address sanitizer sees a read past it. */
static int decode_lengths(uint32_t key_bytes, uint32_t value_bytes, uint8_t vflags, uint32_t rest)
{
    uint8_t *in = calloc(1, MSG_HEADER + (size_t)rest);
    struct msg m;
    uint32_t used = 0;

    assert_non_null(in);
    in[AT_VFLAGS] = vflags;
    put_u32(in + AT_KEY_BYTES, key_bytes);
    put_u32(in + AT_VALUE_BYTES, value_bytes);

    int err = msg_decode(bytes_of(in, MSG_HEADER + rest), &m, &used);

    if (err == HK_OK) {
        assert_int_equal(used, MSG_HEADER + key_bytes + value_bytes);
        assert_ptr_equal(m.key.at, in + MSG_HEADER);
        assert_ptr_equal(m.value.at, in + MSG_HEADER + key_bytes);
    } else {
        assert_int_equal(used, 0);
    }
    free(in);
    return err;
}

static void layout_is_documented(void **state)
{
    static const uint8_t expected[] = "\x01\x02\x03\x04"
                                      "\x07\x06\x05\x04"
                                      "\x0b\x0a\x09\x08"
                                      "\x0f\x0e\x0d\x0c"
                                      "\x17\x16\x15\x14\x13\x12\x11\x10"
                                      "\x1f\x1e\x1d\x1c\x1b\x1a\x19\x18"
                                      "\x03\x00\x00\x00"
                                      "\x0d\x00\x00\x00"
                                      "keydeadlinevalue";
    uint8_t out[sizeof expected - 1];
    (void)state;

    assert_int_equal(KEY_DEADLINE, 4);
    assert_int_equal(msg_size(&sample), sizeof out);
    msg_encode(&sample, out);
    assert_memory_equal(out, expected, sizeof out);
}

static void round_trip_at_any_alignment(void **state)
{
    uint8_t out[128];
    (void)state;

    for (uint32_t at = 0; at < 16; at++) {
        struct msg m;
        uint32_t used = 0;

        msg_encode(&sample, out + at);
        assert_int_equal(msg_decode(bytes_of(out + at, sizeof out - at), &m, &used), HK_OK);
        assert_int_equal(used, msg_size(&sample));
        assert_same(&m, &sample);
        assert_ptr_equal(m.key.at, out + at + MSG_HEADER);
    }
}

static void several_follow_each_other(void **state)
{
    uint8_t out[512];
    struct msg sent[4] = {sample, sample, sample, sample};
    uint32_t n = 0;
    (void)state;

    sent[1].key = (struct bytes){NULL, 0}; /* an ACK */
    sent[1].value = (struct bytes){NULL, 0};
    sent[1].vflags = 0;
    sent[2].value = (struct bytes){NULL, 0}; /* a deletion */
    sent[2].vflags = KEY_TOMBSTONE;
    for (int i = 0; i < 4; i++) {
        msg_encode(&sent[i], out + n);
        n += msg_size(&sent[i]);
    }

    struct bytes rest = bytes_of(out, n);

    for (int i = 0; i < 4; i++) {
        struct msg m;
        uint32_t used = 0;

        assert_int_equal(msg_decode(rest, &m, &used), HK_OK);
        assert_same(&m, &sent[i]);
        rest = bytes_of(rest.at + used, rest.n - used);
    }
    assert_int_equal(rest.n, 0);
}

static void value_may_stand_in_place(void **state)
{
    uint8_t expected[64];
    uint8_t out[64];
    struct msg m = sample;
    (void)state;

    msg_encode(&sample, expected);
    m.value.at = out + MSG_HEADER + m.key.n;
    memcpy(out + MSG_HEADER + m.key.n, sample.value.at, sample.value.n);
    msg_encode(&m, out);
    assert_memory_equal(out, expected, msg_size(&m));
}

static void every_truncation_is_corrupt(void **state)
{
    uint8_t whole[64];
    (void)state;

    msg_encode(&sample, whole);
    for (uint32_t n = 0; n < msg_size(&sample); n++) {
        uint8_t *in = malloc(n + 1); /* of nothing, malloc may give NULL */
        struct msg m = {.kind = 99};
        uint32_t used = 7;

        assert_non_null(in);
        memcpy(in, whole, n);
        assert_int_equal(msg_decode(bytes_of(in, n), &m, &used), HK_ERR_CORRUPT);
        assert_int_equal(m.kind, 99);
        assert_int_equal(used, 7);
        free(in);
    }
}

static void lengths_are_limited(void **state)
{
    (void)state;
    assert_int_equal(decode_lengths(0, 0, 0, 0), HK_OK);
    assert_int_equal(decode_lengths(MSG_KEY_MAX, 1, 0, MSG_KEY_MAX + 1), HK_OK);
    assert_int_equal(decode_lengths(MSG_KEY_MAX + 1, 0, 0, MSG_KEY_MAX + 1), HK_ERR_CORRUPT);
    assert_int_equal(decode_lengths(0, MSG_VALUE_MAX, 0, MSG_VALUE_MAX), HK_OK);
    assert_int_equal(decode_lengths(0, MSG_VALUE_MAX + 1, 0, MSG_VALUE_MAX + 1), HK_ERR_CORRUPT);
}

static void lengths_do_not_wrap(void **state)
{
    (void)state;
    assert_int_equal(decode_lengths(UINT32_MAX, 0, 0, 8), HK_ERR_CORRUPT);
    assert_int_equal(decode_lengths(0, UINT32_MAX, 0, 8), HK_ERR_CORRUPT);
    assert_int_equal(decode_lengths(8, UINT32_MAX, 0, 8), HK_ERR_CORRUPT);
    assert_int_equal(decode_lengths(8, UINT32_MAX - MSG_HEADER - 8 + 1, 0, 8), HK_ERR_CORRUPT);
    assert_int_equal(decode_lengths(5, 4, 0, 8), HK_ERR_CORRUPT);
    assert_int_equal(decode_lengths(9, 0, 0, 8), HK_ERR_CORRUPT);
}

static void vflags_fit_the_value(void **state)
{
    (void)state;
    assert_int_equal(decode_lengths(3, 0, KEY_TOMBSTONE, 3), HK_OK);
    assert_int_equal(decode_lengths(3, 1, KEY_TOMBSTONE, 4), HK_ERR_CORRUPT);
    assert_int_equal(decode_lengths(3, 8, KEY_DEADLINE, 11), HK_OK);
    assert_int_equal(decode_lengths(3, 7, KEY_DEADLINE, 10), HK_ERR_CORRUPT);
    assert_int_equal(decode_lengths(3, 8, KEY_DEADLINE | KEY_TOMBSTONE, 11), HK_ERR_CORRUPT);
    assert_int_equal(decode_lengths(3, 0, KEY_DEADLINE | KEY_TOMBSTONE, 3), HK_ERR_CORRUPT);
    for (unsigned bit = 1; bit < 256; bit <<= 1) {
        if ((bit & KEY_VALUE_FLAGS) == 0)
            assert_int_equal(decode_lengths(3, 8, (uint8_t)bit, 11), HK_ERR_CORRUPT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_documented),
        cmocka_unit_test(round_trip_at_any_alignment),
        cmocka_unit_test(several_follow_each_other),
        cmocka_unit_test(value_may_stand_in_place),
        cmocka_unit_test(every_truncation_is_corrupt),
        cmocka_unit_test(lengths_are_limited),
        cmocka_unit_test(lengths_do_not_wrap),
        cmocka_unit_test(vflags_fit_the_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
