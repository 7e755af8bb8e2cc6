/* Rings between threads: each element arrives once, whole, and in the order of its producer, and
 * what the producer wrote before the push is seen after the pop. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/ring.h"

#define ELEMENTS 100000u /* of each producer */
#define PRODUCERS 3u
#define CAPACITY 16u

struct element {
    uint64_t producer;
    uint64_t number;
    const uint64_t *note; /* plain memory that the push publishes */
};

static struct ring_spsc spsc;
static struct ring_mpsc mpsc;
static struct element spsc_cells[CAPACITY];
static _Alignas(8) uint8_t mpsc_cells[CAPACITY * RING_MPSC_CELL_BYTES(sizeof(struct element))];
static uint64_t notes[PRODUCERS][ELEMENTS];

static void produce(uint64_t producer, bool (*push)(const struct element *))
{
    for (uint64_t i = 0; i < ELEMENTS; i++) {
        notes[producer][i] = i * 7 + producer;
        struct element e = {producer, i, &notes[producer][i]};
        while (!push(&e)) {
            sched_yield();
        }
    }
}

static bool push_spsc(const struct element *e)
{
    return ring_spsc_push(&spsc, e);
}

static bool push_mpsc(const struct element *e)
{
    return ring_mpsc_push(&mpsc, e);
}

static void *run_spsc(void *argument)
{
    produce((uintptr_t)argument, push_spsc);
    return NULL;
}

static void *run_mpsc(void *argument)
{
    produce((uintptr_t)argument, push_mpsc);
    return NULL;
}

static bool pop_spsc(struct element *e)
{
    return ring_spsc_pop(&spsc, e);
}

static bool pop_mpsc(struct element *e)
{
    return ring_mpsc_pop(&mpsc, e);
}

static void consume(uint32_t producers, void *(*run)(void *), bool (*pop)(struct element *))
{
    pthread_t threads[PRODUCERS];
    uint64_t next[PRODUCERS] = {0};
    for (uint32_t i = 0; i < producers; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i), 0);
    }
    for (uint64_t n = 0; n < (uint64_t)producers * ELEMENTS;) {
        struct element e;
        if (!pop(&e)) {
            sched_yield();
            continue;
        }
        HK_ASSERT(e.producer < producers && e.number == next[e.producer]);
        HK_ASSERT(*e.note == e.number * 7 + e.producer);
        next[e.producer]++;
        n++;
    }
    for (uint32_t i = 0; i < producers; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    struct element e;
    assert_false(pop(&e));
}

static void test_spsc(void **state)
{
    (void)state;
    ring_spsc_init(&spsc, spsc_cells, CAPACITY, sizeof(struct element));
    consume(1, run_spsc, pop_spsc);
}

static void test_mpsc(void **state)
{
    (void)state;
    ring_mpsc_init(&mpsc, mpsc_cells, CAPACITY, sizeof(struct element));
    consume(PRODUCERS, run_mpsc, pop_mpsc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spsc),
        cmocka_unit_test(test_mpsc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
