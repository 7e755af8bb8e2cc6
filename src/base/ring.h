/* Bounded queues between threads, in memory of the caller: one producer (ring_spsc) or many
 * (ring_mpsc), always one consumer. Elements have a fixed size and are copied. At the bound a push
 * answers false and changes nothing; a pop from an empty ring answers false.
 *
 * A push happens before the pop that takes its element, so what the producer wrote before is
 * visible to the consumer after. Positions count up for ever and wrap at 2^32. */
#ifndef HORKOS_BASE_RING_H
#define HORKOS_BASE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"

#define RING_LINE 64
#define RING_CAPACITY_MAX (1u << 30)

static inline bool ring_capacity_valid(uint32_t capacity)
{
    return capacity > 0 && capacity <= RING_CAPACITY_MAX && (capacity & (capacity - 1)) == 0;
}

/* ---- One producer, one consumer ---- */

/* Each side keeps its own position and its last sight of the other's on a line of its own: the
 * lines move between processors only when a ring looks full or empty. */
struct ring_spsc {
    uint8_t *cells;
    uint32_t element_bytes;
    uint32_t capacity;

    _Alignas(RING_LINE) _Atomic uint32_t tail; /* where the producer writes next */
    uint32_t head_seen;                        /* the producer's last sight of head */

    _Alignas(RING_LINE) _Atomic uint32_t head; /* where the consumer reads next */
    uint32_t tail_seen;                        /* the consumer's last sight of tail */
};

/* cells: capacity * element_bytes bytes; capacity a power of two. */
static inline void ring_spsc_init(struct ring_spsc *r, void *cells, uint32_t capacity,
                                  uint32_t element_bytes)
{
    HK_ASSERT(ring_capacity_valid(capacity) && element_bytes > 0);
    r->cells = (uint8_t *)cells;
    r->element_bytes = element_bytes;
    r->capacity = capacity;
    atomic_init(&r->tail, 0);
    atomic_init(&r->head, 0);
    r->head_seen = 0;
    r->tail_seen = 0;
}

static inline uint8_t *ring_spsc_cell(const struct ring_spsc *r, uint32_t position)
{
    return r->cells + (size_t)(position & (r->capacity - 1)) * r->element_bytes;
}

static inline bool ring_spsc_push(struct ring_spsc *r, const void *element)
{
    /* Only this thread writes tail. */
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    if (tail - r->head_seen == r->capacity) {
        /* acquire: pairs with the release in ring_spsc_pop; the cell was read before it is
         * written again. */
        r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
        if (tail - r->head_seen == r->capacity) {
            return false;
        }
    }
    memcpy(ring_spsc_cell(r, tail), element, r->element_bytes);
    /* release: pairs with the acquire in ring_spsc_pop; publishes the cell. */
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
    return true;
}

static inline bool ring_spsc_pop(struct ring_spsc *r, void *element_out)
{
    /* Only this thread writes head. */
    uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    if (head == r->tail_seen) {
        /* acquire: pairs with the release in ring_spsc_push; the cell is there to be read. */
        r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
        if (head == r->tail_seen) {
            return false;
        }
    }
    memcpy(element_out, ring_spsc_cell(r, head), r->element_bytes);
    /* release: pairs with the acquire in ring_spsc_push; gives the cell back. */
    atomic_store_explicit(&r->head, head + 1, memory_order_release);
    return true;
}

/* Whether the consumer would find nothing; any thread may ask, and only the consumer can rely on
 * "not empty". */
static inline bool ring_spsc_empty(const struct ring_spsc *r)
{
    /* acquire both: whoever sees "not empty" also sees what was written before the push. */
    uint32_t head = atomic_load_explicit(&r->head, memory_order_acquire);
    return head == atomic_load_explicit(&r->tail, memory_order_acquire);
}

/* ---- Many producers, one consumer ---- */

/* Every cell has a turn (D. Vyukov's bounded queue): turn == position says "free for the producer
 * of that position", position + 1 says "filled". Producers claim positions by compare-and-swap; a
 * producer that is interrupted between its claim and its fill hides later elements from the
 * consumer until it goes on, but blocks no other producer. */
struct ring_mpsc {
    uint8_t *cells;
    uint32_t element_bytes;
    uint32_t cell_bytes;
    uint32_t capacity;

    _Alignas(RING_LINE) _Atomic uint32_t tail; /* the next position to claim */
    _Alignas(RING_LINE) uint32_t head;         /* the consumer's, nobody else reads it */
};

/* A cell is its turn, then the element, 8-byte aligned. */
#define RING_MPSC_CELL_BYTES(element_bytes) (8u + (((uint32_t)(element_bytes) + 7u) & ~7u))

static inline uint8_t *ring_mpsc_cell(const struct ring_mpsc *r, uint32_t position)
{
    return r->cells + (size_t)(position & (r->capacity - 1)) * r->cell_bytes;
}

static inline _Atomic uint32_t *ring_mpsc_turn(uint8_t *cell)
{
    return (_Atomic uint32_t *)(void *)cell;
}

/* cells: capacity * RING_MPSC_CELL_BYTES(element_bytes) bytes, 8-byte aligned; capacity a power of
 * two of at least 2 (with one cell, "filled" and "free for the next" would be the same turn). */
static inline void ring_mpsc_init(struct ring_mpsc *r, void *cells, uint32_t capacity,
                                  uint32_t element_bytes)
{
    HK_ASSERT(ring_capacity_valid(capacity) && capacity >= 2 && element_bytes > 0);
    r->cells = (uint8_t *)cells;
    r->element_bytes = element_bytes;
    r->cell_bytes = RING_MPSC_CELL_BYTES(element_bytes);
    r->capacity = capacity;
    atomic_init(&r->tail, 0);
    r->head = 0;
    for (uint32_t i = 0; i < capacity; i++) {
        atomic_init(ring_mpsc_turn(ring_mpsc_cell(r, i)), i);
    }
}

static inline bool ring_mpsc_push(struct ring_mpsc *r, const void *element)
{
    /* relaxed: the claim publishes nothing; the turn does. */
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    uint8_t *cell;
    for (;;) {
        cell = ring_mpsc_cell(r, tail);
        /* acquire: pairs with the release in ring_mpsc_pop; the cell was read before it is
         * written again. */
        uint32_t turn = atomic_load_explicit(ring_mpsc_turn(cell), memory_order_acquire);
        if (turn == tail) {
            if (atomic_compare_exchange_weak_explicit(&r->tail, &tail, tail + 1,
                                                      memory_order_relaxed, memory_order_relaxed)) {
                break;
            }
        } else if ((int32_t)(turn - tail) < 0) {
            return false;
        } else {
            tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
        }
    }
    memcpy(cell + 8, element, r->element_bytes);
    /* release: pairs with the acquire in ring_mpsc_pop; publishes the element. */
    atomic_store_explicit(ring_mpsc_turn(cell), tail + 1, memory_order_release);
    return true;
}

static inline bool ring_mpsc_pop(struct ring_mpsc *r, void *element_out)
{
    uint8_t *cell = ring_mpsc_cell(r, r->head);
    /* acquire: pairs with the release in ring_mpsc_push; the element is there to be read. */
    uint32_t turn = atomic_load_explicit(ring_mpsc_turn(cell), memory_order_acquire);
    if (turn != r->head + 1) {
        return false;
    }
    memcpy(element_out, cell + 8, r->element_bytes);
    /* release: pairs with the acquire in ring_mpsc_push; gives the cell to the next round. */
    atomic_store_explicit(ring_mpsc_turn(cell), r->head + r->capacity, memory_order_release);
    r->head++;
    return true;
}

/* Consumer only: whether everything has been popped that was pushed, or was being pushed, before
 * whatever the consumer has seen of the producers; an element that hides behind another producer's
 * unfinished one is not overlooked. */
static inline bool ring_mpsc_drained(struct ring_mpsc *r)
{
    /* acquire: what the consumer knows of a producer's later deeds came with its claim. */
    return atomic_load_explicit(&r->tail, memory_order_acquire) == r->head;
}

/* Consumer only: the position behind everything that had been pushed, or was being pushed, before
 * this look; ring_mpsc_next tells when all that has been popped. */
static inline uint32_t ring_mpsc_claimed(const struct ring_mpsc *r)
{
    /* acquire: what the consumer reads next, a clock perhaps, it reads later. */
    return atomic_load_explicit(&r->tail, memory_order_acquire);
}

/* Consumer only: the position of the next pop. */
static inline uint32_t ring_mpsc_next(const struct ring_mpsc *r)
{
    return r->head;
}

/* Consumer only: whether a pop would find nothing now. */
static inline bool ring_mpsc_empty(const struct ring_mpsc *r)
{
    /* acquire: pairs with the release in ring_mpsc_push, as in a pop. */
    return atomic_load_explicit(ring_mpsc_turn(ring_mpsc_cell(r, r->head)), memory_order_acquire) !=
           r->head + 1;
}

#endif
