/* The receiving half of an end: frames out of the ring. Every word that the other side wrote is
 * read once and then checked. */
#include "net/shm.h"

#include <stdlib.h>

#include "net/shm_state.h"
#include "wire/frame.h"

/* A step over one record. */
enum taken { TAKEN_FRAME, TAKEN_NO_FRAME, TAKEN_FAULT };

static enum taken at_fault(struct shm *shm, enum shm_fault fault)
{
    shm->fault = fault;
    return TAKEN_FAULT;
}

bool shm_pending(struct shm *shm)
{
    if (shm->fault != SHM_OK || shm->ended) {
        return false;
    }
    return shm->head + shm->lent != shm->tail_seen ||
           atomic_load(&shm->other->tail) != shm->tail_seen;
}

/* Looks how far the other side has written. False: nothing new. */
static bool see_tail(struct shm *shm)
{
    /* acquire, as all sequentially consistent loads: what stands before it may be read. */
    uint64_t word = atomic_load(&shm->other->tail);
    uint64_t tail = word & ~(uint64_t)SHM_TAIL_END;
    if (tail % 8 != 0 || tail - shm->head > shm->ring_bytes - (shm->head - shm->released)) {
        shm->fault = SHM_POSITION;
        return false;
    }
    shm->tail_seen = tail;
    shm->ended = word != tail && tail == shm->head;
    return tail != shm->head;
}

static void building_free(struct shm *shm)
{
    free(shm->building.at);
    memset(&shm->building, 0, sizeof(shm->building));
}

/* Tells the other side how much it may write again. True: it sleeps and waits for that. */
static bool publish_head(struct shm *shm)
{
    atomic_store(&shm->own->head, shm->head);
    shm->released = shm->head;
    return shm_take_sleeper(shm->other, SHM_WANTS_ROOM);
}

/* What was handed out goes. */
static bool release(struct shm *shm)
{
    shm->head += shm->lent;
    shm->lent = 0;
    if (shm->building.at != NULL && shm->building.done == shm->building.bytes) {
        building_free(shm);
    }
    return shm->head - shm->released >= shm->ring_bytes / 4u && publish_head(shm);
}

static bool grow(struct shm *shm, uint32_t needed)
{
    if (needed <= shm->building.capacity) {
        return true;
    }
    uint64_t capacity = 2u * (uint64_t)needed;
    if (capacity > shm->building.bytes) {
        capacity = shm->building.bytes;
    }
    uint8_t *at = realloc(shm->building.at, capacity);
    if (at == NULL) {
        return false;
    }
    shm->building.at = at;
    shm->building.capacity = (uint32_t)capacity;
    return true;
}

static enum taken take_next(struct shm *shm, struct bytes body, struct bytes *frame_out)
{
    uint32_t left = shm->building.bytes - shm->building.done;
    uint32_t most = shm_small_max(shm);
    if (shm->building.at == NULL || body.n != (left < most ? left : most)) {
        return at_fault(shm, SHM_FRAGMENT);
    }
    if (!grow(shm, shm->building.done + body.n)) {
        return at_fault(shm, SHM_MEMORY);
    }
    memcpy(shm->building.at + shm->building.done, body.at, body.n);
    shm->building.done += body.n;
    if (body.n < left) {
        return TAKEN_NO_FRAME;
    }
    *frame_out = bytes_of(shm->building.at, shm->building.bytes);
    return TAKEN_FRAME;
}

static enum taken take_first(struct shm *shm, struct bytes body, struct bytes *frame_out)
{
    uint32_t length = 0;
    if (shm->building.at != NULL || body.n != shm_small_max(shm)) {
        return at_fault(shm, SHM_FRAGMENT);
    }
    /* Only now is it certain that it is as long as a header; and its bytes are read once. */
    uint8_t *at = malloc(body.n);
    if (at == NULL) {
        return at_fault(shm, SHM_MEMORY);
    }
    memcpy(at, body.at, body.n);
    if (frame_length(bytes_of(at, body.n), &length) != FRAME_DROP_NONE) {
        free(at);
        return at_fault(shm, SHM_FRAME);
    }
    shm->building.at = at;
    shm->building.capacity = body.n;
    shm->building.bytes = length;
    shm->building.done = body.n;
    (void)frame_out;
    return length > body.n ? TAKEN_NO_FRAME : at_fault(shm, SHM_FRAGMENT);
}

static enum taken take_whole(struct shm *shm, struct bytes body, struct bytes *frame_out)
{
    uint32_t length = 0;
    if (body.n < FRAME_HEADER || body.n > shm_small_max(shm)) {
        return at_fault(shm, SHM_RECORD);
    }
    if (shm->foreign) {
        memcpy(shm->copy, body.at, body.n);
        body.at = shm->copy;
    }
    if (frame_length(body, &length) != FRAME_DROP_NONE || length != body.n) {
        return at_fault(shm, SHM_FRAME);
    }
    *frame_out = body;
    return TAKEN_FRAME;
}

/* The record at head; *bytes_out: how many bytes it has. */
static enum taken take_record(struct shm *shm, uint64_t *bytes_out, struct bytes *frame_out)
{
    uint64_t place = shm->head & (shm->ring_bytes - 1);
    /* relaxed: see_tail has said that it may be read; atomic, so that it is read once. */
    uint64_t word = atomic_load_explicit((const _Atomic uint64_t *)(const void *)(shm->in + place),
                                         memory_order_relaxed);
    uint32_t n = (uint32_t)word;
    uint64_t bytes = shm_record_bytes(n);
    struct bytes body = bytes_of(shm->in + place + SHM_RECORD_HEADER, n);
    if (bytes > shm->tail_seen - shm->head || bytes > shm->ring_bytes - place) {
        return at_fault(shm, SHM_RECORD);
    }
    *bytes_out = bytes;
    switch (word >> 32) {
    case SHM_PAD:
        return bytes == shm->ring_bytes - place ? TAKEN_NO_FRAME : at_fault(shm, SHM_RECORD);
    case SHM_FRAME_WHOLE:
        return take_whole(shm, body, frame_out);
    case SHM_FIRST:
        return take_first(shm, body, frame_out);
    case SHM_NEXT:
        return take_next(shm, body, frame_out);
    default:
        return at_fault(shm, SHM_RECORD);
    }
}

bool shm_receive(struct shm *shm, struct bytes *frame_out, bool *wake_out)
{
    *wake_out = false;
    if (shm->fault != SHM_OK || shm->ended) {
        return false;
    }
    *wake_out = release(shm);
    /* A ring's worth of fragments is enough for one call. */
    for (uint64_t done = 0; done < shm->ring_bytes;) {
        uint64_t bytes = 0;
        if (shm->head == shm->tail_seen && !see_tail(shm)) {
            break;
        }
        switch (take_record(shm, &bytes, frame_out)) {
        case TAKEN_FRAME:
            shm->lent = bytes;
            return true;
        case TAKEN_NO_FRAME:
            shm->head += bytes;
            done += bytes;
            *wake_out |= shm->head - shm->released >= shm->ring_bytes / 4u && publish_head(shm);
            break;
        case TAKEN_FAULT:
            return false;
        }
    }
    if (shm->fault == SHM_OK && shm->head != shm->released) {
        *wake_out |= publish_head(shm);
    }
    return false;
}

void shm_in_clear(struct shm *shm)
{
    building_free(shm);
    free(shm->copy);
    shm->copy = NULL;
}
