#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "net/shm.h"
#include "net/shm_state.h"
#include "support/net_link.h"

#define RING 4096u
#define MIB (1024u * 1024u)

/* Two ends of one area. */
struct pair {
    struct shm_area *area;
    struct shm a, b;
};

static void pair_open(struct pair *pair, uint32_t ring_bytes, bool foreign)
{
    struct shm_config config = {
        .ring_bytes = ring_bytes, .queue_max = NET_QUEUE_MAX, .foreign = foreign};
    pair->area = aligned_alloc(SHM_LINE, shm_area_bytes(ring_bytes));
    assert_non_null(pair->area);
    memset(pair->area, 0xee, shm_area_bytes(ring_bytes));
    shm_area_init(pair->area);
    assert_int_equal(shm_init(&pair->a, &config, pair->area, 0), 0);
    assert_int_equal(shm_init(&pair->b, &config, pair->area, 1), 0);
}

static void pair_close(struct pair *pair)
{
    shm_deinit(&pair->a);
    shm_deinit(&pair->b);
    free(pair->area);
}

static bool foreign_of(void **state)
{
    return *(const bool *)*state;
}

static bool send_frame(struct shm *shm, enum frame_kind kind, uint32_t bytes, uint64_t id)
{
    uint8_t *frame = net_frame_make(kind, bytes, id);
    bool sent = shm_send(shm, bytes_of(frame, bytes));
    free(frame);
    return sent;
}

static void flush(struct shm *shm)
{
    bool wake = shm_flush(shm);
    (void)wake; /* nobody sleeps for long here */
}

static void expect(struct shm *shm, uint64_t id)
{
    struct bytes frame;
    bool wake = false;
    assert_true(shm_receive(shm, &frame, &wake));
    assert_true(net_frame_intact(frame));
    assert_int_equal(net_frame_id(frame), id);
}

static void expect_none(struct shm *shm)
{
    struct bytes frame;
    bool wake = false;
    assert_false(shm_receive(shm, &frame, &wake));
}

static void expect_fault(struct shm *shm, enum shm_fault fault)
{
    expect_none(shm);
    assert_string_equal(shm_fault_names[shm->fault], shm_fault_names[fault]);
    assert_false(shm_pending(shm));
    expect_none(shm);
}

/* Frames of all lengths in both directions, through many turns of the ring. */
static void frames_arrive_in_order(void **state)
{
    struct pair p;
    struct random random;
    uint64_t sent[2] = {0, 0}, received[2] = {0, 0};
    pair_open(&p, RING, foreign_of(state));
    random_init(&random, 1);
    for (uint32_t round = 0; round < 4000; round++) {
        bool back = random_below(&random, 2) == 1;
        struct shm *from = back ? &p.b : &p.a, *to = back ? &p.a : &p.b;
        for (uint64_t n = random_below(&random, 6); n > 0; n--) {
            uint32_t bytes = FRAME_HEADER + 8 + (uint32_t)random_below(&random, 400);
            assert_true(send_frame(from, FRAME_BATCH, bytes, sent[back]++));
        }
        flush(from);
        for (uint64_t n = random_below(&random, 8); n > 0 && shm_pending(to); n--) {
            struct bytes frame;
            bool wake = false;
            if (shm_receive(to, &frame, &wake)) {
                assert_true(net_frame_intact(frame));
                assert_int_equal(net_frame_id(frame), received[back]++);
            }
        }
    }
    for (uint32_t back = 0; back < 2; back++) {
        struct shm *from = back ? &p.b : &p.a, *to = back ? &p.a : &p.b;
        while (received[back] < sent[back]) {
            flush(from);
            while (shm_pending(to) && received[back] < sent[back]) {
                expect(to, received[back]++);
            }
            expect_none(to);
        }
        assert_int_equal(shm_outstanding(from), 0);
    }
    assert_true(sent[0] * 300 > 100 * RING);
    pair_close(&p);
}

static void nothing_is_seen_before_the_flush(void **state)
{
    struct pair p;
    pair_open(&p, RING, foreign_of(state));
    assert_false(shm_has_output(&p.a));
    assert_true(send_frame(&p.a, FRAME_BATCH, 100, 1));
    assert_true(shm_has_output(&p.a));
    assert_false(shm_pending(&p.b));
    flush(&p.a);
    assert_false(shm_has_output(&p.a));
    assert_true(shm_pending(&p.b));
    expect(&p.b, 1);
    pair_close(&p);
}

static void a_frame_stays_until_the_next_call(void **state)
{
    struct pair p;
    struct bytes frame;
    bool wake = false;
    pair_open(&p, RING, foreign_of(state));
    assert_true(send_frame(&p.a, FRAME_BATCH, 900, 0));
    flush(&p.a);
    assert_true(shm_receive(&p.b, &frame, &wake));
    for (uint32_t i = 1; i < 100; i++) { /* far more than fits */
        assert_true(send_frame(&p.a, FRAME_BATCH, 900, i));
        flush(&p.a);
    }
    assert_true(net_frame_intact(frame));
    assert_int_equal(net_frame_id(frame), 0);
    for (uint32_t i = 1; i < 100; i++) {
        expect(&p.b, i);
        flush(&p.a);
    }
    pair_close(&p);
}

/* All frames but those of the view arrive in the order in which they were sent, large ones too. */
static void large_frames_keep_their_place(void **state)
{
    static const uint32_t lengths[] = {1000, 5000, 200, 300, 100000, 1016, 1017, 2032, 2033, 100};
    struct pair p;
    uint32_t count = sizeof(lengths) / sizeof(lengths[0]), at = 0, heartbeats = 0;
    pair_open(&p, RING, foreign_of(state));
    assert_int_equal(shm_small_max(&p.a), 1016);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(send_frame(&p.a, FRAME_BATCH, lengths[i], i));
    }
    assert_true(shm_large_under_way(&p.a));
    assert_true(send_frame(&p.a, FRAME_VIEW, 200, 1000));
    while (at < count) {
        struct bytes frame;
        bool wake = false;
        flush(&p.a);
        while (shm_receive(&p.b, &frame, &wake)) {
            assert_true(net_frame_intact(frame));
            if (net_frame_kind(frame) == FRAME_VIEW) {
                assert_true(at < 5); /* it passed the queue */
                heartbeats++;
            } else {
                assert_int_equal(net_frame_id(frame), at);
                assert_int_equal(frame.n, lengths[at]);
                at++;
            }
        }
    }
    assert_int_equal(heartbeats, 1);
    assert_false(shm_large_under_way(&p.a));
    assert_int_equal(shm_outstanding(&p.a), 0);
    pair_close(&p);
}

static void a_large_frame_is_under_way_until_it_is_let_go(void **state)
{
    struct pair p;
    pair_open(&p, RING, foreign_of(state));
    assert_true(send_frame(&p.a, FRAME_BATCH, 1500, 1));
    flush(&p.a);
    assert_true(shm_large_under_way(&p.a));
    expect(&p.b, 1);
    assert_true(shm_large_under_way(&p.a));
    assert_true(shm_bytes_held(&p.b) > 1500);
    expect_none(&p.b);
    assert_false(shm_large_under_way(&p.a));
    assert_true(shm_bytes_held(&p.b) < 1500 + sizeof(struct shm));
    pair_close(&p);
}

static void given_frames_arrive_and_are_let_go(void **state)
{
    struct pair p;
    uint32_t held = 0;
    uint8_t *frame = net_frame_make(FRAME_BATCH, MIB, 3);
    pair_open(&p, RING, foreign_of(state));
    struct pieces pieces = net_pieces(frame, MIB, 100, &held);
    assert_int_equal(held, 1);
    assert_true(shm_give(&p.a, &pieces));
    struct bytes got;
    bool wake = false;
    while (!shm_receive(&p.b, &got, &wake)) {
        flush(&p.a);
    }
    assert_true(net_frame_intact(got));
    assert_int_equal(got.n, MIB);
    assert_int_equal(held, 0);
    pieces = net_pieces(frame, MIB, 100, &held);
    assert_true(shm_give(&p.a, &pieces));
    pair_close(&p);
    assert_int_equal(held, 0);
    /* In a ring in which it is a small one. */
    pair_open(&p, 8 * MIB, foreign_of(state));
    pieces = net_pieces(frame, MIB, 100, &held);
    assert_true(shm_give(&p.a, &pieces));
    assert_int_equal(held, 0);
    flush(&p.a);
    expect(&p.b, 3);
    pair_close(&p);
    free(frame);
}

/* The queue has a bound, at which frames are refused; what was taken arrives. */
static void full_is_refused(void **state)
{
    struct pair p;
    uint32_t taken = 0;
    pair_open(&p, RING, foreign_of(state));
    p.a.queue_max = 100000;
    while (send_frame(&p.a, FRAME_BATCH, 1000, taken)) {
        taken++;
    }
    assert_true(taken >= 100 && taken <= 104);
    assert_true(shm_outstanding(&p.a) > 99000);
    assert_true(shm_outstanding(&p.a) <= 100000 + RING);
    assert_false(send_frame(&p.a, FRAME_BATCH, 5000, 0));
    assert_false(send_frame(&p.a, FRAME_VIEW, 1000, 0));
    assert_int_equal(p.a.fault, SHM_OK);
    for (uint32_t i = 0; i < taken; i++) {
        flush(&p.a);
        expect(&p.b, i);
    }
    flush(&p.a);
    expect_none(&p.b);
    assert_int_equal(shm_outstanding(&p.a), 0);
    pair_close(&p);
}

static void forgetting_keeps_what_was_begun(void **state)
{
    struct pair p;
    struct bytes frame;
    bool wake = false;
    uint64_t ids[8];
    uint32_t count = 0;
    pair_open(&p, RING, foreign_of(state));
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(send_frame(&p.a, FRAME_BATCH, 600, i));
    }
    assert_true(send_frame(&p.a, FRAME_BATCH, 20000, 10)); /* partly out */
    assert_true(send_frame(&p.a, FRAME_BATCH, 20000, 11));
    assert_true(send_frame(&p.a, FRAME_BATCH, 600, 12));
    assert_true(send_frame(&p.a, FRAME_VIEW, 600, 13));
    shm_forget(&p.a);
    for (uint32_t i = 0; i < 100; i++) {
        flush(&p.a);
        while (shm_receive(&p.b, &frame, &wake)) {
            assert_true(net_frame_intact(frame) && count < 8);
            ids[count++] = net_frame_id(frame);
        }
    }
    assert_int_equal(count, 6);
    assert_true(ids[0] == 0 && ids[1] == 1 && ids[2] == 2 && ids[3] == 3);
    assert_true((ids[4] == 13 && ids[5] == 10) || (ids[4] == 10 && ids[5] == 13));
    assert_true(send_frame(&p.a, FRAME_BATCH, 600, 14));
    flush(&p.a);
    expect(&p.b, 14);
    assert_int_equal(shm_outstanding(&p.a) / RING, 0);
    pair_close(&p);
}

static void the_end_comes_after_the_frames(void **state)
{
    struct pair p;
    pair_open(&p, RING, foreign_of(state));
    assert_true(send_frame(&p.a, FRAME_BATCH, 100, 1));
    assert_true(send_frame(&p.a, FRAME_BATCH, 100, 2));
    assert_false(shm_end(&p.a)); /* nobody sleeps */
    assert_true(shm_pending(&p.b));
    expect(&p.b, 1);
    expect(&p.b, 2);
    assert_true(shm_pending(&p.b));
    expect_none(&p.b);
    assert_true(p.b.ended);
    assert_false(shm_pending(&p.b));
    assert_int_equal(p.b.fault, SHM_OK);
    pair_close(&p);
}

/* ---- Sleeping ---- */

static void who_sleeps_is_to_be_woken_once(void **state)
{
    struct pair p;
    pair_open(&p, RING, foreign_of(state));
    assert_true(send_frame(&p.a, FRAME_BATCH, 100, 1));
    assert_false(shm_flush(&p.a)); /* awake */
    assert_false(shm_sleep(&p.b)); /* there is a frame */
    expect(&p.b, 1);
    expect_none(&p.b);
    assert_true(shm_sleep(&p.b));
    assert_true(send_frame(&p.a, FRAME_BATCH, 100, 2));
    assert_true(shm_flush(&p.a));
    assert_true(send_frame(&p.a, FRAME_BATCH, 100, 3));
    assert_false(shm_flush(&p.a)); /* it was told */
    shm_awake(&p.b);
    expect(&p.b, 2);
    expect(&p.b, 3);
    expect_none(&p.b);
    assert_true(shm_sleep(&p.b));
    assert_true(shm_end(&p.a));
    pair_close(&p);
}

/* Frames that became visible on the way, without a look at the sleeper, are told with the flush. */
static void early_publication_does_not_lose_a_wake_up(void **state)
{
    struct pair p;
    pair_open(&p, RING, foreign_of(state));
    assert_true(shm_sleep(&p.b));
    uint32_t sent = 0;
    while (!p.a.untold) {
        assert_true(send_frame(&p.a, FRAME_BATCH, 504, sent++)); /* two records are a quarter */
    }
    assert_true(p.a.tail == p.a.published);
    assert_true(shm_has_output(&p.a));
    assert_false(shm_sleep(&p.a)); /* not before all was told */
    assert_true(shm_flush(&p.a));
    pair_close(&p);
}

static void who_waits_for_room_is_woken(void **state)
{
    struct pair p;
    struct bytes frame;
    bool wake = false, woken = false;
    uint32_t sent = 0, received = 0;
    pair_open(&p, RING, foreign_of(state));
    while (p.a.small.bytes == 0) {
        assert_true(send_frame(&p.a, FRAME_BATCH, 504, sent++));
    }
    flush(&p.a);
    assert_true(shm_sleep(&p.a));
    while (shm_receive(&p.b, &frame, &wake)) {
        assert_int_equal(net_frame_id(frame), received++);
        assert_false(wake && woken);
        woken |= wake;
    }
    woken |= wake;
    assert_true(woken);
    shm_awake(&p.a);
    flush(&p.a);
    while (received < sent) {
        expect(&p.b, received++);
    }
    /* Who waits for nothing sleeps on. */
    expect_none(&p.b);
    assert_true(shm_sleep(&p.a));
    assert_true(send_frame(&p.b, FRAME_BATCH, 504, 1));
    assert_true(shm_flush(&p.b));
    shm_awake(&p.a);
    /* Room that came before it slept. */
    while (p.a.small.bytes == 0) {
        assert_true(send_frame(&p.a, FRAME_BATCH, 504, sent++));
    }
    flush(&p.a);
    expect(&p.a, 1);
    expect_none(&p.a);
    while (shm_receive(&p.b, &frame, &wake)) {
        assert_false(wake);
    }
    assert_false(shm_sleep(&p.a));
    pair_close(&p);
}

/* ---- A peer that keeps no rule ---- */

static void put_record(struct shm *b, uint64_t at, uint64_t word, const void *body, uint32_t n)
{
    uint8_t *ring = (uint8_t *)(uintptr_t)b->in;
    memcpy(ring + at, &word, sizeof(word));
    memcpy(ring + at + SHM_RECORD_HEADER, body, n);
}

/* Publishes a tail as the other side would. */
static void put_tail(struct shm *b, uint64_t tail)
{
    atomic_store(&b->other->tail, tail);
}

static void positions_that_cannot_be(void **state)
{
    static const uint64_t tails[] = {RING + 8, 4, 12, 2, 3, UINT64_MAX, UINT64_MAX - 7, 1u << 31};
    for (uint32_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        struct pair p;
        pair_open(&p, RING, foreign_of(state));
        put_tail(&p.b, tails[i]);
        expect_fault(&p.b, SHM_POSITION);
        assert_false(send_frame(&p.b, FRAME_BATCH, 100, 1));
        pair_close(&p);
    }
    static const uint64_t heads[] = {RING + 8, 4, UINT64_MAX, UINT64_MAX - 7, 1u << 31};
    for (uint32_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct pair p;
        pair_open(&p, RING, foreign_of(state));
        assert_true(send_frame(&p.a, FRAME_BATCH, 100, 1));
        flush(&p.a);
        atomic_store(&p.b.own->head, heads[i]);
        assert_true(shm_outstanding(&p.a) <= RING);
        for (uint32_t n = 0; n < 100 && p.a.fault == SHM_OK; n++) {
            (void)send_frame(&p.a, FRAME_BATCH, 1000, 1);
            flush(&p.a);
        }
        assert_int_equal(p.a.fault, SHM_POSITION);
        assert_false(shm_sleep(&p.a));
        pair_close(&p);
    }
    /* A tail that goes back. */
    struct pair p;
    pair_open(&p, RING, foreign_of(state));
    assert_true(send_frame(&p.a, FRAME_BATCH, 100, 1));
    assert_true(send_frame(&p.a, FRAME_BATCH, 100, 2));
    flush(&p.a);
    expect(&p.b, 1);
    expect(&p.b, 2);
    put_tail(&p.b, 8);
    expect_fault(&p.b, SHM_POSITION);
    pair_close(&p);
}

static void one_record(void **state, uint64_t word, enum shm_fault fault)
{
    struct pair p;
    uint8_t *frame = net_frame_make(FRAME_BATCH, 2000, 1);
    pair_open(&p, RING, foreign_of(state));
    put_record(&p.b, 0, word, frame, 2000);
    put_tail(&p.b, 2048);
    expect_fault(&p.b, fault);
    pair_close(&p);
    free(frame);
}

static void records_that_cannot_be(void **state)
{
    one_record(state, 0, SHM_RECORD);
    one_record(state, UINT64_MAX, SHM_RECORD);
    one_record(state, shm_word(5, 100), SHM_RECORD);
    one_record(state, shm_word(SHM_FRAME_WHOLE, 0), SHM_RECORD);
    one_record(state, shm_word(SHM_FRAME_WHOLE, FRAME_HEADER - 1), SHM_RECORD);
    one_record(state, shm_word(SHM_FRAME_WHOLE, 1017), SHM_RECORD); /* larger than one piece */
    one_record(state, shm_word(SHM_FRAME_WHOLE, 2041), SHM_RECORD); /* past the tail */
    one_record(state, shm_word(SHM_FRAME_WHOLE, UINT32_MAX), SHM_RECORD);
    one_record(state, shm_word(SHM_FRAME_WHOLE, 1000), SHM_FRAME); /* not its frame's length */
    one_record(state, shm_word(SHM_PAD, 8), SHM_RECORD);           /* not to the ring's end */
    one_record(state, shm_word(SHM_PAD, RING - 8), SHM_RECORD);
    one_record(state, shm_word(SHM_NEXT, 1016), SHM_FRAGMENT);
    one_record(state, shm_word(SHM_FIRST, 1015), SHM_FRAGMENT);
    one_record(state, shm_word(SHM_FIRST, 100), SHM_FRAGMENT);
}

static void fragments_that_do_not_fit(void **state)
{
    struct {
        uint32_t bytes;  /* of the frame */
        uint64_t second; /* the record after its first fragment */
        enum shm_fault fault;
    } cases[] = {
        {2000, shm_word(SHM_NEXT, 983), SHM_FRAGMENT},
        {2000, shm_word(SHM_NEXT, 985), SHM_FRAGMENT},
        {2000, shm_word(SHM_NEXT, 0), SHM_FRAGMENT},
        {2000, shm_word(SHM_FIRST, 1016), SHM_FRAGMENT},
        {3000, shm_word(SHM_NEXT, 1015), SHM_FRAGMENT},
        {1000, shm_word(SHM_NEXT, 1016), SHM_FRAGMENT}, /* that was no large frame */
    };
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pair p;
        uint8_t *frame = net_frame_make(FRAME_BATCH, cases[i].bytes, 1);
        uint8_t *rest = calloc(1, 2048);
        pair_open(&p, RING, foreign_of(state));
        put_record(&p.b, 0, shm_word(SHM_FIRST, 1016), frame, 1000);
        put_record(&p.b, 1024, cases[i].second, rest, 1016);
        put_tail(&p.b, 2048);
        expect_fault(&p.b, cases[i].fault);
        pair_close(&p);
        free(frame);
        free(rest);
    }
    /* No frame begins there; nothing is allocated for what is only announced. */
    struct pair p;
    uint8_t garbage[1016];
    memset(garbage, 0xcc, sizeof(garbage));
    pair_open(&p, RING, foreign_of(state));
    put_record(&p.b, 0, shm_word(SHM_FIRST, 1016), garbage, 1016);
    put_tail(&p.b, 1024);
    expect_fault(&p.b, SHM_FRAME);
    assert_true(shm_bytes_held(&p.b) <= sizeof(struct shm) + 1016);
    pair_close(&p);
}

/* A flood of padding, or fragments without an end, does not hold a call for ever. */
static void a_call_ends(void **state)
{
    struct pair p;
    struct bytes frame;
    bool wake = false;
    uint32_t calls = 0;
    pair_open(&p, RING, foreign_of(state));
    assert_true(send_frame(&p.a, FRAME_BATCH, MIB, 1));
    flush(&p.a);
    while (!shm_receive(&p.b, &frame, &wake)) {
        assert_int_equal(p.b.fault, SHM_OK);
        flush(&p.a);
        calls++;
    }
    assert_true(calls >= MIB / RING - 1);
    pair_close(&p);
}

/* Any bytes at all in the memory between them. */
static void random_memory_is_borne(void **state)
{
    struct random random;
    random_init(&random, 7);
    for (uint32_t round = 0; round < 3000; round++) {
        struct pair p;
        struct bytes frame;
        bool wake = false;
        pair_open(&p, RING, foreign_of(state));
        (void)send_frame(&p.a, FRAME_BATCH, 72 + (uint32_t)random_below(&random, 3000), 1);
        (void)send_frame(&p.a, FRAME_BATCH, 72 + (uint32_t)random_below(&random, 300), 2);
        flush(&p.a);
        for (uint32_t hits = 0; hits < 8; hits++) {
            uint8_t *ring = (uint8_t *)(uintptr_t)p.b.in;
            uint64_t at = random_below(&random, 4) == 0 ? 1024 + random_below(&random, 16)
                                                        : random_below(&random, RING);
            ring[at] = (uint8_t)random_next(&random);
        }
        if (random_below(&random, 3) == 0) {
            put_tail(&p.b, random_below(&random, RING + 16));
        }
        for (uint32_t n = 0; n < 10000 && shm_pending(&p.b); n++) {
            if (shm_receive(&p.b, &frame, &wake)) {
                assert_true(frame.n >= FRAME_HEADER && frame.n <= FRAME_HEADER + FRAME_BODY_MAX);
                uint32_t sum = 0; /* every byte is there to be read */
                for (uint32_t i = 0; i < frame.n; i++) {
                    sum += frame.at[i];
                }
                assert_true(sum < UINT32_MAX);
            }
            flush(&p.a);
        }
        assert_true(shm_bytes_held(&p.b) < 2 * RING + sizeof(struct shm));
        pair_close(&p);
    }
}

int main(void)
{
    static bool both[] = {false, true};
    int failed = 0;
    for (uint32_t i = 0; i < 2; i++) {
        void *foreign = &both[i];
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(frames_arrive_in_order, foreign),
            cmocka_unit_test_prestate(nothing_is_seen_before_the_flush, foreign),
            cmocka_unit_test_prestate(a_frame_stays_until_the_next_call, foreign),
            cmocka_unit_test_prestate(large_frames_keep_their_place, foreign),
            cmocka_unit_test_prestate(a_large_frame_is_under_way_until_it_is_let_go, foreign),
            cmocka_unit_test_prestate(given_frames_arrive_and_are_let_go, foreign),
            cmocka_unit_test_prestate(full_is_refused, foreign),
            cmocka_unit_test_prestate(forgetting_keeps_what_was_begun, foreign),
            cmocka_unit_test_prestate(the_end_comes_after_the_frames, foreign),
            cmocka_unit_test_prestate(who_sleeps_is_to_be_woken_once, foreign),
            cmocka_unit_test_prestate(early_publication_does_not_lose_a_wake_up, foreign),
            cmocka_unit_test_prestate(who_waits_for_room_is_woken, foreign),
            cmocka_unit_test_prestate(positions_that_cannot_be, foreign),
            cmocka_unit_test_prestate(records_that_cannot_be, foreign),
            cmocka_unit_test_prestate(fragments_that_do_not_fit, foreign),
            cmocka_unit_test_prestate(a_call_ends, foreign),
            cmocka_unit_test_prestate(random_memory_is_borne, foreign),
        };
        failed += cmocka_run_group_tests_name(both[i] ? "foreign memory" : "own memory", tests,
                                              NULL, NULL);
    }
    return failed;
}
