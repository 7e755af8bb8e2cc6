#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "wire/lane.h"

/* A body of a head and some bytes, as docs/WIRE.md gives the offsets. */
#define BODY_BYTES (LANE_HEAD + 1u)

static const struct lane_head sample = {
    .sequence = 0x0706050403020100,
    .acked = 0x0f0e0d0c0b0a0908,
    .life = 0x13121110,
    .acked_lane = 0x14,
    .acks = true,
    .gap = true,
};

static void a_head_lies_as_documented(void **state)
{
    static const uint8_t expected[LANE_HEAD] = {0,    1,    2,    3,    4,    5,    6,    7,
                                                8,    9,    0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
                                                0x10, 0x11, 0x12, 0x13, 0x14, 3,    0,    0};
    uint8_t out[LANE_HEAD];
    (void)state;
    lane_head_encode(&sample, out);
    assert_memory_equal(out, expected, LANE_HEAD);
}

static void a_head_survives(void **state)
{
    uint8_t body[BODY_BYTES] = {0};
    struct lane_head head;
    (void)state;
    lane_head_encode(&sample, body);
    assert_null(lane_head_decode(bytes_of(body, BODY_BYTES), &head));
    assert_memory_equal(&head, &sample, sizeof head);

    struct lane_head alone = {.life = 1, .acks = true, .acked = 9};
    lane_head_encode(&alone, body);
    assert_null(lane_head_decode(bytes_of(body, LANE_HEAD), &head));
    assert_int_equal(head.sequence, 0);
    assert_int_equal(head.acked, 9);
    assert_false(head.gap);

    struct lane_head plain = {.sequence = 1, .life = 1};
    lane_head_encode(&plain, body);
    assert_null(lane_head_decode(bytes_of(body, BODY_BYTES), &head));
    assert_false(head.acks);
}

/* The sample with one byte changed. */
static const char *with_byte(uint32_t at, uint8_t byte)
{
    uint8_t body[BODY_BYTES] = {0};
    struct lane_head head;
    lane_head_encode(&sample, body);
    body[at] = byte;
    return lane_head_decode(bytes_of(body, BODY_BYTES), &head);
}

static const char *of_head(const struct lane_head *given, uint8_t flags, uint32_t n)
{
    uint8_t body[BODY_BYTES] = {0};
    struct lane_head head;
    lane_head_encode(given, body);
    body[21] = flags;
    return lane_head_decode(bytes_of(body, n), &head);
}

static void what_nobody_writes_is_refused(void **state)
{
    uint8_t body[BODY_BYTES] = {0};
    struct lane_head head;
    struct lane_head plain = {.sequence = 1, .life = 1};
    struct lane_head alone = {.life = 1, .acks = true};
    (void)state;
    lane_head_encode(&sample, body);
    for (uint32_t n = 0; n < LANE_HEAD; n++) {
        assert_non_null(lane_head_decode(bytes_of(body, n), &head));
    }
    assert_non_null(lane_head_decode(bytes_of(body, LANE_HEAD), &head)); /* no message */
    assert_null(with_byte(20, LANE_WORKERS - 1));
    assert_non_null(with_byte(20, LANE_WORKERS));
    assert_non_null(with_byte(21, 4));
    assert_non_null(with_byte(21, 2)); /* a gap, an acknowledgement, and not the flag for it */
    assert_non_null(with_byte(22, 1));
    assert_non_null(with_byte(23, 1));
    assert_null(of_head(&plain, 0, BODY_BYTES));
    assert_non_null(of_head(&plain, 2, BODY_BYTES));
    assert_non_null(of_head(&alone, 1, BODY_BYTES)); /* messages without a place */
    assert_non_null(of_head(&alone, 0, LANE_HEAD));  /* says nothing */
    memset(body + 16, 0, 4);
    assert_non_null(lane_head_decode(bytes_of(body, BODY_BYTES), &head)); /* no life */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_lies_as_documented),
        cmocka_unit_test(a_head_survives),
        cmocka_unit_test(what_nobody_writes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
