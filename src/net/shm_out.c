/* The sending half of an end. A frame goes straight into the ring while nothing that it may not
 * pass waits and there is room; else it waits in a queue: small view frames in one, all others, in
 * the order of their arrival, in the other. That one is two lists, small frames (in chunks) and
 * large ones (each with the number of bytes of small frames that go first). */
#include "net/shm.h"

#include <stdlib.h>

#include "base/assert.h"
#include "net/shm_state.h"
#include "wire/frame.h"

bool shm_out_waits(const struct shm *shm)
{
    return shm->view.bytes > 0 || shm->small.bytes > 0 || shm->large.first != NULL;
}

bool shm_see_head(struct shm *shm)
{
    /* acquire, as all sequentially consistent loads: what stands before it was read. */
    uint64_t head = atomic_load(&shm->other->head);
    if (head - shm->head_seen > shm->published - shm->head_seen || head % 8 != 0) {
        shm->fault = SHM_POSITION;
        return false;
    }
    shm->head_seen = head;
    return true;
}

static bool has_room(struct shm *shm, uint64_t bytes)
{
    if (shm->ring_bytes - (shm->tail - shm->head_seen) >= bytes) {
        return true;
    }
    return shm_see_head(shm) && shm->ring_bytes - (shm->tail - shm->head_seen) >= bytes;
}

static void write_word(struct shm *shm, uint64_t word)
{
    memcpy(shm->out + (shm->tail & (shm->ring_bytes - 1)), &word, sizeof(word));
}

/* Room for a record with a body of n bytes, its header written; NULL: not now. */
static uint8_t *reserve(struct shm *shm, enum shm_kind kind, uint32_t n)
{
    uint64_t bytes = shm_record_bytes(n);
    uint64_t to_end = shm->ring_bytes - (shm->tail & (shm->ring_bytes - 1));
    if (!has_room(shm, bytes <= to_end ? bytes : to_end + bytes)) {
        return NULL;
    }
    if (bytes > to_end) {
        write_word(shm, shm_word(SHM_PAD, (uint32_t)to_end - SHM_RECORD_HEADER));
        shm->tail += to_end;
    }
    write_word(shm, shm_word(kind, n));
    return shm->out + (shm->tail & (shm->ring_bytes - 1)) + SHM_RECORD_HEADER;
}

/* The record of the last reserve is complete. */
static void commit(struct shm *shm, uint32_t n)
{
    shm->tail += shm_record_bytes(n);
    if (shm->tail - shm->published >= shm->ring_bytes / 4u) {
        /* release: pairs with the look in shm_in.c. If the other side sleeps, shm_flush wakes it;
         * if not, it need not wait for us to have written all. */
        atomic_store_explicit(&shm->own->tail, shm->tail, memory_order_release);
        shm->published = shm->tail;
        shm->untold = true;
    }
}

static bool write_frame(struct shm *shm, struct bytes frame)
{
    uint8_t *out = reserve(shm, SHM_FRAME_WHOLE, frame.n);
    if (out == NULL) {
        return false;
    }
    memcpy(out, frame.at, frame.n);
    commit(shm, frame.n);
    return true;
}

/* ---- The queue ---- */

/* Frames in our own queues were checked when they were queued. */
static uint32_t queued_length(const uint8_t *frame)
{
    uint32_t length = 0;
    enum frame_drop drop = frame_length(bytes_of(frame, FRAME_HEADER), &length);
    HK_ASSERT(drop == FRAME_DROP_NONE);
    return length;
}

static bool may_queue(const struct shm *shm, uint32_t bytes)
{
    return shm->view.bytes + shm->small.bytes + shm->large_bytes + bytes <= shm->queue_max;
}

/* Whole frames from the front of a queue, as far as there is room. */
static void pump_small(struct shm *shm, struct link_queue *queue, uint64_t bytes_max)
{
    while (queue->bytes > 0 && bytes_max > 0) {
        struct bytes front = link_queue_front(queue);
        uint32_t length = queued_length(front.at);
        HK_ASSERT(length <= bytes_max);
        if (!write_frame(shm, bytes_of(front.at, length))) {
            return;
        }
        link_queue_take(queue, length);
        bytes_max -= length;
    }
}

static void pump_large(struct shm *shm)
{
    struct link_large *large = shm->large.first;
    while (large->done < large->bytes) {
        uint32_t left = large->bytes - large->done;
        uint32_t n = left < shm_small_max(shm) ? left : shm_small_max(shm);
        uint8_t *out = reserve(shm, large->done == 0 ? SHM_FIRST : SHM_NEXT, n);
        if (out == NULL) {
            return;
        }
        pieces_copy(&large->pieces, large->done, out, n);
        commit(shm, n);
        large->done += n;
        shm->large_bytes -= n;
    }
    shm->large_end = shm->tail;
    link_large_free(link_larges_pop(&shm->large), &shm->large_held);
}

/* Whether the first of the large frames is next: no small one that was sent before it waits. */
static bool turn_of_large(const struct shm *shm)
{
    return shm->large.first != NULL && shm->large.first->after == shm->small_out;
}

static void pump(struct shm *shm)
{
    uint64_t tail;
    if (shm->fault != SHM_OK) {
        return;
    }
    pump_small(shm, &shm->view, UINT64_MAX);
    do {
        tail = shm->tail;
        if (shm->view.bytes > 0) {
            return;
        }
        if (turn_of_large(shm)) {
            pump_large(shm);
        } else if (shm->small.bytes > 0) {
            uint64_t before = shm->small.bytes;
            uint64_t first_large =
                shm->large.first != NULL ? shm->large.first->after - shm->small_out : UINT64_MAX;
            pump_small(shm, &shm->small, first_large);
            shm->small_out += before - shm->small.bytes;
        }
    } while (shm->tail != tail);
}

static bool queue_large(struct shm *shm, const struct pieces *frame)
{
    struct link_large *large = calloc(1, sizeof(*large));
    if (large == NULL) {
        return false;
    }
    large->pieces = *frame;
    large->bytes = frame->head_bytes + frame->tail.n;
    large->capacity = large->bytes;
    large->after = shm->small_in;
    link_larges_push(&shm->large, large);
    shm->large_bytes += large->bytes;
    shm->large_held += sizeof(*large) + large->capacity;
    pump(shm);
    return true;
}

static bool send_large(struct shm *shm, struct bytes frame)
{
    struct pieces copy = {.head = malloc(frame.n), .head_bytes = frame.n};
    if (copy.head == NULL) {
        return false;
    }
    memcpy(copy.head, frame.at, frame.n);
    if (queue_large(shm, &copy)) {
        return true;
    }
    pieces_free(&copy);
    return false;
}

static bool send_view(struct shm *shm, struct bytes frame)
{
    if (shm->view.bytes == 0 && write_frame(shm, frame)) {
        return true;
    }
    return may_queue(shm, frame.n) && link_queue_append(&shm->view, frame);
}

bool shm_send(struct shm *shm, struct bytes frame)
{
    HK_CHECK(queued_length(frame.at) == frame.n);
    if (shm->fault != SHM_OK) {
        return false;
    }
    if (frame.n > shm_small_max(shm)) {
        return may_queue(shm, frame.n) && send_large(shm, frame);
    }
    if (frame.at[FRAME_AT_KIND] == FRAME_VIEW) {
        return send_view(shm, frame);
    }
    if (!shm_out_waits(shm) && write_frame(shm, frame)) {
        return true;
    }
    if (!may_queue(shm, frame.n) || !link_queue_append(&shm->small, frame)) {
        return false;
    }
    shm->small_in += frame.n;
    return true;
}

bool shm_give(struct shm *shm, struct pieces *frame)
{
    uint32_t bytes = frame->head_bytes + frame->tail.n;
    bool large = bytes > shm_small_max(shm);
    if (large && shm->fault == SHM_OK && may_queue(shm, bytes) && queue_large(shm, frame)) {
        return true;
    }
    /* A ring may be larger than what counts as large elsewhere. */
    uint8_t *whole = large ? NULL : malloc(bytes);
    bool sent = false;
    if (whole != NULL) {
        pieces_copy(frame, 0, whole, bytes);
        sent = shm_send(shm, bytes_of(whole, bytes));
        free(whole);
    }
    pieces_free(frame);
    return sent;
}

void shm_forget(struct shm *shm)
{
    struct link_large *started = NULL;
    link_queue_clear(&shm->small);
    shm->small_out = shm->small_in;
    /* The receiver waits for the rest of what was begun. */
    if (shm->large.first != NULL && shm->large.first->done > 0) {
        started = link_larges_pop(&shm->large);
        started->after = shm->small_out;
    }
    for (struct link_large *large; (large = link_larges_pop(&shm->large)) != NULL;) {
        shm->large_bytes -= large->bytes;
        link_large_free(large, &shm->large_held);
    }
    if (started != NULL) {
        link_larges_push(&shm->large, started);
    }
}

static bool publish(struct shm *shm, uint64_t tail)
{
    atomic_store(&shm->own->tail, tail);
    shm->published = shm->tail;
    shm->untold = false;
    return shm_take_sleeper(shm->other, SHM_ASLEEP);
}

bool shm_has_output(const struct shm *shm)
{
    return shm->tail != shm->published || shm->untold || shm_out_waits(shm);
}

bool shm_flush(struct shm *shm)
{
    if (shm_out_waits(shm)) {
        pump(shm);
    }
    if (shm->fault != SHM_OK || (shm->tail == shm->published && !shm->untold)) {
        return false;
    }
    return publish(shm, shm->tail);
}

bool shm_end(struct shm *shm)
{
    return publish(shm, shm->tail | SHM_TAIL_END);
}

void shm_out_clear(struct shm *shm)
{
    link_queue_clear(&shm->view);
    link_queue_clear(&shm->small);
    for (struct link_large *large; (large = link_larges_pop(&shm->large)) != NULL;) {
        link_large_free(large, &shm->large_held);
    }
    HK_ASSERT(shm->large_held == 0);
}
