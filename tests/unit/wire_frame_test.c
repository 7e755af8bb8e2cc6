#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/nodeset.h"
#include "wire/frame.h"

/* Offsets as docs/WIRE.md gives them; the tests hold numbers, so that a changed layout shows. */
enum {
    AT_CHECKSUM = 0,
    AT_MAGIC = 8,
    AT_VERSION = 12,
    AT_KIND = 14,
    AT_SOURCE = 15,
    AT_TARGET = 16,
    AT_FLAGS = 19,
    AT_RESERVED = 20,
    AT_BODY_BYTES = 24,
    AT_CLUSTER = 32,
    AT_NONCE = 48,
    AT_TARGET_NONCE = 56,
};

/* The receiver. */
#define CLUSTER 0x2021222324252627u
#define SELF 5
#define NONCE 0x38393a3b3c3d3e3fu

#define BODY "a body of some bytes"
#define BODY_BYTES 20u
#define FRAME_BYTES (FRAME_HEADER + BODY_BYTES)

static struct frame sample(void)
{
    return (struct frame){
        .version = FRAME_VERSION,
        .kind = FRAME_BATCH,
        .source = 4,
        .target = SELF,
        .source_worker = 6,
        .target_worker = 7,
        .epoch = 0x1c1d1e1f,
        .cluster = CLUSTER,
        .generation = 0x28292a2b2c2d2e2f,
        .nonce = 0x3031323334353637,
        .target_nonce = NONCE,
        .body = {NULL, BODY_BYTES},
    };
}

static void seal_sample(uint8_t out[FRAME_BYTES])
{
    struct frame f = sample();

    memset(out, 0xee, FRAME_BYTES);
    memcpy(out + FRAME_HEADER, BODY, BODY_BYTES);
    assert_int_equal(frame_seal(&f, out), FRAME_BYTES);
}

/* Makes the checksum right again after a test changed the frame. */
static void sum(uint8_t *frame, uint32_t n)
{
    put_u64(frame + AT_CHECKSUM, XXH3_64bits(frame + 8, n - 8));
}

static enum frame_drop open_at_receiver(const uint8_t *frame, uint32_t n)
{
    struct frame f = {.source = 99};
    enum frame_drop drop = frame_open(bytes_of(frame, n), CLUSTER, SELF, NONCE, &f);

    if (drop != FRAME_DROP_NONE) /* then nothing is written */
        assert_int_equal(f.source, 99);
    return drop;
}

/* An intact frame that says something else is dropped for what it says. */
static enum frame_drop open_with_byte(uint32_t at, uint8_t byte)
{
    uint8_t frame[FRAME_BYTES];

    seal_sample(frame);
    frame[at] = byte;
    sum(frame, FRAME_BYTES);
    return open_at_receiver(frame, FRAME_BYTES);
}

static enum frame_drop open_with_u64(uint32_t at, uint64_t value, uint8_t kind)
{
    uint8_t frame[FRAME_BYTES];

    seal_sample(frame);
    frame[AT_KIND] = kind;
    put_u64(frame + at, value);
    sum(frame, FRAME_BYTES);
    return open_at_receiver(frame, FRAME_BYTES);
}

static void layout_is_documented(void **state)
{
    static const uint8_t expected[] = "HKOS"
                                      "\x01\x00"
                                      "\x02\x04\x05\x06\x07"
                                      "\x00\x00\x00\x00\x00"
                                      "\x14\x00\x00\x00"
                                      "\x1f\x1e\x1d\x1c"
                                      "\x27\x26\x25\x24\x23\x22\x21\x20"
                                      "\x2f\x2e\x2d\x2c\x2b\x2a\x29\x28"
                                      "\x37\x36\x35\x34\x33\x32\x31\x30"
                                      "\x3f\x3e\x3d\x3c\x3b\x3a\x39\x38" BODY;
    uint8_t frame[FRAME_BYTES];
    (void)state;

    seal_sample(frame);
    assert_int_equal(sizeof expected - 1, FRAME_BYTES - 8);
    assert_memory_equal(frame + 8, expected, FRAME_BYTES - 8);
    assert_true(get_u64(frame) == XXH3_64bits(expected, sizeof expected - 1));
    /* The number itself, so that another hash or another secret shows as well. */
    assert_true(get_u64(frame) == 0x1aa8bfe9f25ee643u);
}

static void round_trip(void **state)
{
    uint8_t frame[FRAME_BYTES];
    struct frame want = sample();
    struct frame f = {0};
    (void)state;

    seal_sample(frame);
    assert_int_equal(frame_open(bytes_of(frame, FRAME_BYTES), CLUSTER, SELF, NONCE, &f),
                     FRAME_DROP_NONE);
    assert_int_equal(f.version, want.version);
    assert_int_equal(f.kind, want.kind);
    assert_int_equal(f.source, want.source);
    assert_int_equal(f.target, want.target);
    assert_int_equal(f.source_worker, want.source_worker);
    assert_int_equal(f.target_worker, want.target_worker);
    assert_false(f.full);
    assert_int_equal(f.epoch, want.epoch);
    assert_true(f.cluster == want.cluster);
    assert_true(f.generation == want.generation);
    assert_true(f.nonce == want.nonce);
    assert_true(f.target_nonce == want.target_nonce);
    assert_int_equal(f.body.n, BODY_BYTES);
    assert_ptr_equal(f.body.at, frame + FRAME_HEADER);
}

static void pieces_make_the_same_frame(void **state)
{
    uint8_t whole[FRAME_HEADER + 3000];
    uint8_t pieces[FRAME_HEADER + 3000];
    struct frame f = sample();
    (void)state;

    for (uint32_t n = 0; n <= 3000; n += n < 300 ? 1 : 271) {
        f.body.n = n;
        for (uint32_t i = 0; i < n; i++)
            whole[FRAME_HEADER + i] = (uint8_t)(i * 7);
        assert_int_equal(frame_seal(&f, whole), FRAME_HEADER + n);
        for (uint32_t head = 0; head <= n; head += 1 + n / 3) {
            memcpy(pieces + FRAME_HEADER, whole + FRAME_HEADER, head);
            struct bytes tail = bytes_of(whole + FRAME_HEADER + head, n - head);

            assert_int_equal(frame_seal_pieces(&f, pieces, tail), FRAME_HEADER + n);
            assert_memory_equal(pieces, whole, FRAME_HEADER + head);
        }
    }
}

static void a_full_member_says_so(void **state)
{
    uint8_t frame[FRAME_BYTES];
    struct frame sent = sample();
    struct frame f = {0};
    (void)state;

    seal_sample(frame);
    sent.full = true;
    frame_seal(&sent, frame);
    assert_int_equal(frame[AT_FLAGS], 1);
    assert_int_equal(frame_open(bytes_of(frame, FRAME_BYTES), CLUSTER, SELF, NONCE, &f),
                     FRAME_DROP_NONE);
    assert_true(f.full);
    for (unsigned bit = 2; bit < 256; bit <<= 1)
        assert_int_equal(open_with_byte(AT_FLAGS, (uint8_t)(bit | 1)), FRAME_DROP_RESERVED);
}

static void a_bare_frame_is_for_ports_that_keep_bytes(void **state)
{
    uint8_t frame[FRAME_BYTES];
    uint8_t pieces[FRAME_BYTES];
    struct frame sent = sample();
    struct frame f = {0};
    (void)state;

    seal_sample(frame);
    sent.bare = true;
    assert_int_equal(frame_seal(&sent, frame), FRAME_BYTES);
    assert_int_equal(get_u64(frame + AT_CHECKSUM), 0);
    memcpy(pieces, frame, FRAME_BYTES);
    assert_int_equal(frame_seal_pieces(&sent, pieces, bytes_of(BODY, BODY_BYTES)), FRAME_BYTES);
    assert_memory_equal(pieces, frame, FRAME_BYTES);
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES), FRAME_DROP_CHECKSUM);
    assert_int_equal(frame_open_bare(bytes_of(frame, FRAME_BYTES), CLUSTER, SELF, NONCE, &f),
                     FRAME_DROP_NONE);
    assert_int_equal(f.body.n, BODY_BYTES);
    assert_int_equal(f.epoch, sent.epoch);

    /* Everything else is checked as ever. */
    assert_int_equal(frame_open_bare(bytes_of(frame, FRAME_BYTES - 1), CLUSTER, SELF, NONCE, &f),
                     FRAME_DROP_SHORT);
    assert_int_equal(frame_open_bare(bytes_of(frame, FRAME_BYTES), CLUSTER, SELF, NONCE + 1, &f),
                     FRAME_DROP_TARGET);
    frame[AT_FLAGS] = 2;
    assert_int_equal(frame_open_bare(bytes_of(frame, FRAME_BYTES), CLUSTER, SELF, NONCE, &f),
                     FRAME_DROP_RESERVED);
}

static void every_length_of_a_small_body(void **state)
{
    (void)state;
    /* XXH3 takes other paths from 17, 129 and 241 bytes on, and in blocks of 1024. */
    for (uint32_t n = 0; n < 2100; n++) {
        uint8_t *frame = calloc(1, FRAME_HEADER + n);
        struct frame f = sample();

        assert_non_null(frame);
        f.body.n = n;
        for (uint32_t i = 0; i < n; i++)
            frame[FRAME_HEADER + i] = (uint8_t)(i * 7 + n);
        assert_int_equal(frame_seal(&f, frame), FRAME_HEADER + n);
        assert_int_equal(open_at_receiver(frame, FRAME_HEADER + n), FRAME_DROP_NONE);
        frame[FRAME_HEADER + n - 1] ^= 0x10;
        assert_int_equal(open_at_receiver(frame, FRAME_HEADER + n), FRAME_DROP_CHECKSUM);
        free(frame);
    }
}

static void the_largest_body(void **state)
{
    uint8_t *frame = calloc(1, FRAME_HEADER + FRAME_BODY_MAX + 1);
    struct frame f = sample();
    uint32_t length = 0;
    (void)state;

    assert_non_null(frame);
    f.body.n = FRAME_BODY_MAX;
    assert_int_equal(frame_seal(&f, frame), FRAME_HEADER + FRAME_BODY_MAX);
    assert_int_equal(open_at_receiver(frame, FRAME_HEADER + FRAME_BODY_MAX), FRAME_DROP_NONE);

    put_u32(frame + AT_BODY_BYTES, FRAME_BODY_MAX + 1);
    assert_int_equal(open_at_receiver(frame, FRAME_HEADER + FRAME_BODY_MAX + 1), FRAME_DROP_LENGTH);
    assert_int_equal(frame_length(bytes_of(frame, FRAME_HEADER), &length), FRAME_DROP_LENGTH);
    free(frame);
}

static void every_flipped_bit_is_refused(void **state)
{
    uint8_t frame[FRAME_BYTES];
    (void)state;

    seal_sample(frame);
    for (uint32_t bit = 0; bit < FRAME_BYTES * 8; bit++) {
        enum frame_drop want = FRAME_DROP_CHECKSUM;

        frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
        enum frame_drop got = open_at_receiver(frame, FRAME_BYTES);

        if (bit / 8 >= AT_MAGIC && bit / 8 < AT_VERSION)
            want = FRAME_DROP_MAGIC;
        else if (bit / 8 >= AT_VERSION && bit / 8 < AT_KIND)
            want = FRAME_DROP_VERSION;
        if (bit / 8 >= AT_BODY_BYTES && bit / 8 < AT_BODY_BYTES + 4)
            assert_true(got == FRAME_DROP_SHORT || got == FRAME_DROP_LENGTH);
        else
            assert_int_equal(got, want);
        frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES), FRAME_DROP_NONE);
}

static void every_truncation_is_short(void **state)
{
    uint8_t whole[FRAME_BYTES];
    (void)state;

    seal_sample(whole);
    for (uint32_t n = 0; n < FRAME_BYTES; n++) {
        uint8_t *frame = malloc(n + 1); /* of nothing, malloc may give NULL */

        assert_non_null(frame);
        memcpy(frame, whole, n);
        assert_int_equal(open_at_receiver(frame, n), FRAME_DROP_SHORT);
        free(frame);
    }
    assert_int_equal(open_at_receiver(NULL, 0), FRAME_DROP_SHORT);
}

static void trailing_bytes_are_refused(void **state)
{
    uint8_t frame[FRAME_BYTES + 1];
    (void)state;

    seal_sample(frame);
    frame[FRAME_BYTES] = 0;
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES + 1), FRAME_DROP_LENGTH);
}

static void strangers_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(open_with_byte(AT_MAGIC, 'h'), FRAME_DROP_MAGIC);
    assert_int_equal(open_with_byte(AT_VERSION, 0), FRAME_DROP_VERSION);
    assert_int_equal(open_with_byte(AT_VERSION, FRAME_VERSION_MAX), FRAME_DROP_NONE);
    assert_int_equal(open_with_byte(AT_VERSION, FRAME_VERSION_MAX + 1), FRAME_DROP_VERSION);
    assert_int_equal(open_with_byte(AT_VERSION + 1, 1), FRAME_DROP_VERSION);
    assert_int_equal(open_with_byte(AT_KIND, 0), FRAME_DROP_KIND);
    assert_int_equal(open_with_byte(AT_KIND, FRAME_VIEW), FRAME_DROP_NONE);
    assert_int_equal(open_with_byte(AT_KIND, FRAME_LANE), FRAME_DROP_NONE);
    assert_int_equal(open_with_byte(AT_KIND, 4), FRAME_DROP_KIND);
    assert_int_equal(open_with_byte(AT_CLUSTER, 0), FRAME_DROP_CLUSTER);
    for (uint32_t at = AT_FLAGS; at < AT_BODY_BYTES; at++)
        assert_int_equal(open_with_byte(at, 0x80), FRAME_DROP_RESERVED);
}

static void nodes_are_checked(void **state)
{
    (void)state;
    assert_int_equal(open_with_byte(AT_SOURCE, 0), FRAME_DROP_NONE);
    assert_int_equal(open_with_byte(AT_SOURCE, NODES_MAX - 1), FRAME_DROP_NONE);
    assert_int_equal(open_with_byte(AT_SOURCE, NODES_MAX), FRAME_DROP_SOURCE);
    assert_int_equal(open_with_byte(AT_SOURCE, NODE_NONE), FRAME_DROP_SOURCE);
    assert_int_equal(open_with_byte(AT_SOURCE, SELF), FRAME_DROP_SOURCE);
    assert_int_equal(open_with_byte(AT_TARGET, SELF + 1), FRAME_DROP_TARGET);
    assert_int_equal(open_with_byte(AT_TARGET, NODE_NONE), FRAME_DROP_TARGET);
}

static void incarnations_are_checked(void **state)
{
    (void)state;
    assert_int_equal(open_with_u64(AT_NONCE, 0, FRAME_BATCH), FRAME_DROP_SOURCE);
    assert_int_equal(open_with_u64(AT_NONCE, 0, FRAME_VIEW), FRAME_DROP_SOURCE);
    assert_int_equal(open_with_u64(AT_TARGET_NONCE, NONCE - 1, FRAME_BATCH), FRAME_DROP_TARGET);
    assert_int_equal(open_with_u64(AT_TARGET_NONCE, NONCE - 1, FRAME_VIEW), FRAME_DROP_TARGET);
    /* Whichever incarnation: only the view protocol may say so. */
    assert_int_equal(open_with_u64(AT_TARGET_NONCE, 0, FRAME_VIEW), FRAME_DROP_NONE);
    assert_int_equal(open_with_u64(AT_TARGET_NONCE, 0, FRAME_BATCH), FRAME_DROP_TARGET);
    assert_int_equal(open_with_u64(AT_TARGET_NONCE, 0, FRAME_LANE), FRAME_DROP_TARGET);
}

/* Everything is wrong at once; mending one thing after the other shows the order of the checks. */
static void checks_have_an_order(void **state)
{
    uint8_t frame[FRAME_BYTES + 1];
    (void)state;

    seal_sample(frame);
    frame[FRAME_BYTES] = 0;
    frame[AT_CHECKSUM] ^= 1;
    frame[AT_MAGIC] ^= 1;
    frame[AT_VERSION] ^= 2;
    frame[AT_KIND] = 99;
    frame[AT_SOURCE] = SELF;
    frame[AT_TARGET] = SELF + 1;
    frame[AT_RESERVED] = 1;
    frame[AT_CLUSTER] ^= 1;

    assert_int_equal(open_at_receiver(frame, FRAME_HEADER - 1), FRAME_DROP_SHORT);
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES + 1), FRAME_DROP_MAGIC);
    frame[AT_MAGIC] ^= 1;
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES + 1), FRAME_DROP_VERSION);
    frame[AT_VERSION] ^= 2;
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES - 1), FRAME_DROP_SHORT);
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES + 1), FRAME_DROP_LENGTH);
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES), FRAME_DROP_CHECKSUM);
    sum(frame, FRAME_BYTES);
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES), FRAME_DROP_RESERVED);
    frame[AT_RESERVED] = 0;
    sum(frame, FRAME_BYTES);
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES), FRAME_DROP_KIND);
    frame[AT_KIND] = FRAME_BATCH;
    sum(frame, FRAME_BYTES);
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES), FRAME_DROP_CLUSTER);
    frame[AT_CLUSTER] ^= 1;
    sum(frame, FRAME_BYTES);
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES), FRAME_DROP_SOURCE);
    frame[AT_SOURCE] = SELF - 1;
    sum(frame, FRAME_BYTES);
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES), FRAME_DROP_TARGET);
    frame[AT_TARGET] = SELF;
    sum(frame, FRAME_BYTES);
    assert_int_equal(open_at_receiver(frame, FRAME_BYTES), FRAME_DROP_NONE);
}

static void a_stream_finds_its_frames(void **state)
{
    uint8_t stream[3 * FRAME_BYTES];
    uint32_t at = 0;
    int found = 0;
    (void)state;

    for (uint32_t i = 0; i < 3; i++)
        seal_sample(stream + i * FRAME_BYTES);
    while (at < sizeof stream) {
        uint32_t length = 0;
        struct bytes rest = bytes_of(stream + at, (uint32_t)sizeof stream - at);

        assert_int_equal(frame_length(rest, &length), FRAME_DROP_NONE);
        assert_int_equal(open_at_receiver(rest.at, length), FRAME_DROP_NONE);
        at += length;
        found++;
    }
    assert_int_equal(found, 3);
    assert_int_equal(at, sizeof stream);

    uint32_t length = 7;

    assert_int_equal(frame_length(bytes_of(stream, FRAME_HEADER - 1), &length), FRAME_DROP_SHORT);
    assert_int_equal(frame_length(bytes_of(stream + 1, FRAME_HEADER), &length), FRAME_DROP_MAGIC);
    stream[AT_VERSION] = FRAME_VERSION_MAX + 1;
    assert_int_equal(frame_length(bytes_of(stream, FRAME_HEADER), &length), FRAME_DROP_VERSION);
    assert_int_equal(length, 7);
}

static void every_drop_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < FRAME_DROPS; i++) {
        assert_non_null(frame_drop_names[i]);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(frame_drop_names[i], frame_drop_names[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_documented),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(a_full_member_says_so),
        cmocka_unit_test(a_bare_frame_is_for_ports_that_keep_bytes),
        cmocka_unit_test(every_length_of_a_small_body),
        cmocka_unit_test(pieces_make_the_same_frame),
        cmocka_unit_test(the_largest_body),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(every_truncation_is_short),
        cmocka_unit_test(trailing_bytes_are_refused),
        cmocka_unit_test(strangers_are_told_apart),
        cmocka_unit_test(nodes_are_checked),
        cmocka_unit_test(incarnations_are_checked),
        cmocka_unit_test(checks_have_an_order),
        cmocka_unit_test(a_stream_finds_its_frames),
        cmocka_unit_test(every_drop_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
