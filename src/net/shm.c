#include "net/shm.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "net/shm_state.h"
#include "wire/frame.h"

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "words that two processes share need no lock");

const char *const shm_fault_names[SHM_FAULTS] = {
    [SHM_OK] = "none",           [SHM_POSITION] = "position", [SHM_RECORD] = "record",
    [SHM_FRAGMENT] = "fragment", [SHM_FRAME] = "frame",       [SHM_MEMORY] = "memory",
};

uint64_t shm_area_bytes(uint32_t ring_bytes)
{
    return sizeof(struct shm_area) + 2u * (uint64_t)ring_bytes;
}

void shm_area_init(struct shm_area *area)
{
    for (uint32_t i = 0; i < 2; i++) {
        atomic_init(&area->side[i].tail, 0);
        atomic_init(&area->side[i].head, 0);
        atomic_init(&area->side[i].sleep, 0);
    }
}

int shm_init(struct shm *shm, const struct shm_config *config, struct shm_area *area,
             uint32_t index)
{
    uint32_t n = config->ring_bytes;
    HK_ASSERT(n >= SHM_RING_MIN && n <= SHM_RING_MAX && (n & (n - 1)) == 0 && index < 2);
    HK_ASSERT(config->queue_max >= FRAME_HEADER + FRAME_BODY_MAX);
    *shm = (struct shm){
        .own = &area->side[index],
        .other = &area->side[1 - index],
        .ring_bytes = n,
        .foreign = config->foreign,
        .queue_max = config->queue_max,
        .out = area->rings + (size_t)index * n,
        .in = area->rings + (size_t)(1 - index) * n,
    };
    if (shm->foreign) {
        shm->copy = malloc(shm_small_max(shm));
        if (shm->copy == NULL) {
            return HK_ERR_NOMEM;
        }
    }
    return HK_OK;
}

void shm_deinit(struct shm *shm)
{
    shm_out_clear(shm);
    shm_in_clear(shm);
}

uint32_t shm_small_max(const struct shm *shm)
{
    return shm->ring_bytes / 4u - SHM_RECORD_HEADER;
}

bool shm_sleep(struct shm *shm)
{
    bool waits = shm_out_waits(shm);
    if (shm->fault != SHM_OK || shm->tail != shm->published || shm->untold) {
        return false;
    }
    /* Pairs with shm_take_sleeper. */
    atomic_store(&shm->own->sleep, SHM_ASLEEP | (waits ? SHM_WANTS_ROOM : 0));
    if (shm_pending(shm) || (waits && atomic_load(&shm->other->head) != shm->head_seen)) {
        shm_awake(shm);
        return false;
    }
    return true;
}

void shm_awake(struct shm *shm)
{
    /* relaxed: who still sees the old value wakes somebody who is awake, which does no harm. */
    atomic_store_explicit(&shm->own->sleep, 0, memory_order_relaxed);
}

uint64_t shm_outstanding(const struct shm *shm)
{
    /* relaxed: only a figure. What is no position at all is the next look's business. */
    uint64_t head = atomic_load_explicit(&shm->other->head, memory_order_relaxed);
    uint64_t under_way = shm->tail - head;
    if (under_way > shm->ring_bytes) {
        under_way = shm->tail - shm->head_seen;
    }
    return shm->view.bytes + shm->small.bytes + shm->large_bytes + under_way;
}

bool shm_large_under_way(const struct shm *shm)
{
    /* relaxed: as above; positions differ by less than half their range. */
    uint64_t head = atomic_load_explicit(&shm->other->head, memory_order_relaxed);
    return shm->large.first != NULL || (int64_t)(shm->large_end - head) > 0;
}

uint64_t shm_bytes_held(const struct shm *shm)
{
    return sizeof(*shm) + shm->view.held + shm->small.held + shm->large_held +
           shm->building.capacity + (shm->copy != NULL ? shm_small_max(shm) : 0);
}
