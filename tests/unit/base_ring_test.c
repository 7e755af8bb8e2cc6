#include "base/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"

struct element {
    uint64_t number;
    uint32_t check;
};

static void test_spsc_is_a_bounded_queue(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity <= 64; capacity *= 2) {
        struct element cells[64];
        struct ring_spsc ring;
        struct random r;
        uint64_t pushed = 0, popped = 0;
        random_init(&r, capacity);
        ring_spsc_init(&ring, cells, capacity, sizeof(cells[0]));
        for (uint32_t i = 0; i < 20000; i++) {
            assert_int_equal(ring_spsc_empty(&ring), pushed == popped);
            if (random_below(&r, 100) < (i / 200 % 2 == 0 ? 70u : 30u)) {
                struct element e = {pushed, (uint32_t)pushed * 3};
                bool room = pushed - popped < capacity;
                assert_int_equal(ring_spsc_push(&ring, &e), room);
                pushed += room;
            } else {
                struct element e = {0};
                bool some = pushed > popped;
                assert_int_equal(ring_spsc_pop(&ring, &e), some);
                assert_true(!some || (e.number == popped && e.check == (uint32_t)popped * 3));
                popped += some;
            }
        }
    }
}

static void test_mpsc_is_a_bounded_queue(void **state)
{
    (void)state;
    for (uint32_t capacity = 2; capacity <= 64; capacity *= 2) {
        _Alignas(8) uint8_t cells[64 * RING_MPSC_CELL_BYTES(sizeof(struct element))];
        struct ring_mpsc ring;
        struct random r;
        uint64_t pushed = 0, popped = 0;
        random_init(&r, capacity);
        ring_mpsc_init(&ring, cells, capacity, sizeof(struct element));
        for (uint32_t i = 0; i < 20000; i++) {
            assert_int_equal(ring_mpsc_empty(&ring), pushed == popped);
            if (random_below(&r, 100) < (i / 200 % 2 == 0 ? 70u : 30u)) {
                struct element e = {pushed, (uint32_t)pushed * 3};
                bool room = pushed - popped < capacity;
                assert_int_equal(ring_mpsc_push(&ring, &e), room);
                pushed += room;
            } else {
                struct element e = {0};
                bool some = pushed > popped;
                assert_int_equal(ring_mpsc_pop(&ring, &e), some);
                assert_true(!some || (e.number == popped && e.check == (uint32_t)popped * 3));
                popped += some;
            }
        }
    }
}

static void test_positions_wrap(void **state)
{
    (void)state;
    uint16_t cells[4];
    struct ring_spsc spsc;
    ring_spsc_init(&spsc, cells, 4, sizeof(cells[0]));
    atomic_store(&spsc.head, UINT32_MAX - 5);
    atomic_store(&spsc.tail, UINT32_MAX - 5);
    spsc.head_seen = spsc.tail_seen = UINT32_MAX - 5;

    _Alignas(8) uint8_t mpsc_cells[4 * RING_MPSC_CELL_BYTES(2)];
    struct ring_mpsc mpsc;
    ring_mpsc_init(&mpsc, mpsc_cells, 4, 2);
    uint32_t start = UINT32_MAX - 7;
    mpsc.head = start;
    atomic_store(&mpsc.tail, start);
    for (uint32_t i = 0; i < 4; i++) {
        atomic_store(ring_mpsc_turn(ring_mpsc_cell(&mpsc, start + i)), start + i);
    }
    for (uint16_t i = 0; i < 20; i += 4) {
        uint16_t out;
        for (uint16_t j = i; j < i + 4; j++) {
            assert_true(ring_spsc_push(&spsc, &j) && ring_mpsc_push(&mpsc, &j));
        }
        assert_false(ring_spsc_push(&spsc, &i));
        assert_false(ring_mpsc_push(&mpsc, &i));
        for (uint16_t j = i; j < i + 4; j++) {
            assert_true(ring_spsc_pop(&spsc, &out) && out == j);
            assert_true(ring_mpsc_pop(&mpsc, &out) && out == j);
        }
        assert_false(ring_spsc_pop(&spsc, &out));
        assert_false(ring_mpsc_pop(&mpsc, &out));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spsc_is_a_bounded_queue),
        cmocka_unit_test(test_mpsc_is_a_bounded_queue),
        cmocka_unit_test(test_positions_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
