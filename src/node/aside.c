/* Messages from one worker to another of the same node: a flow's answer, or what is for worker 0's
 * worker-wide flow. They are gathered in one buffer a worker and handed over whole when the poll
 * ends; emptied buffers come back. What may be under way is bounded as slots are: each message
 * belongs to one. */
#include "node/internal.h"

#include <stdlib.h>

#include "base/assert.h"

#define PARCELS_MIN 64u

struct parcel {
    uint8_t *at;
    uint32_t n; /* bytes of messages, behind FRAME_HEADER bytes that are unused */
    uint32_t capacity;
    uint32_t from;
    uint32_t reserved;
};

int aside_init(struct worker *w)
{
    uint32_t workers = w->node->config.workers;
    uint32_t cells = PARCELS_MIN;
    if (workers == 1) {
        return HK_OK;
    }
    while (cells < 8 * workers) {
        cells *= 2;
    }
    size_t bytes = RING_MPSC_CELL_BYTES(sizeof(struct parcel));
    w->aside = calloc(workers, sizeof *w->aside);
    w->parcel_cells = calloc(cells, bytes);
    w->parcel_back_cells = calloc(cells, bytes);
    if (w->aside == NULL || w->parcel_cells == NULL || w->parcel_back_cells == NULL) {
        return HK_ERR_NOMEM;
    }
    ring_mpsc_init(&w->parcels, w->parcel_cells, cells, sizeof(struct parcel));
    ring_mpsc_init(&w->parcels_back, w->parcel_back_cells, cells, sizeof(struct parcel));
    w->aside_ready = true;
    return HK_OK;
}

static void free_parcels(struct ring_mpsc *ring)
{
    struct parcel parcel;
    while (ring_mpsc_pop(ring, &parcel)) {
        free(parcel.at);
    }
}

void aside_deinit(struct worker *w)
{
    if (w->aside_ready) {
        free_parcels(&w->parcels);
        free_parcels(&w->parcels_back);
    }
    for (uint32_t i = 0; w->aside != NULL && i < w->node->config.workers; i++) {
        free(w->aside[i].at);
    }
    free(w->aside);
    free(w->parcel_cells);
    free(w->parcel_back_cells);
}

void aside_add(struct worker *w, uint32_t to, const struct msg *msg)
{
    HK_ASSERT(to < w->node->config.workers && to != w->index);
    output_box_add(&w->aside[to], msg);
    w->aside_pending |= (uint64_t)1 << to;
}

/* Hands a buffer over and takes an emptied one for the next; false: the other has no room now. */
static bool hand_over(struct worker *w, uint32_t to)
{
    struct outbox *box = &w->aside[to];
    struct worker *other = &w->node->workers[to];
    struct parcel parcel = {
        .at = box->at, .n = box->body, .capacity = box->capacity, .from = w->index};
    if (!ring_mpsc_push(&other->parcels, &parcel)) {
        return false;
    }
    *box = (struct outbox){.at = NULL};
    if (ring_mpsc_pop(&w->parcels_back, &parcel)) {
        box->at = parcel.at;
        box->capacity = parcel.capacity;
    }
    worker_poke(other);
    return true;
}

void aside_flush(struct worker *w)
{
    uint64_t left = 0;
    for (uint64_t rest = w->aside_pending; rest != 0; rest &= rest - 1) {
        uint32_t to = (uint32_t)__builtin_ctzll(rest);
        left |= hand_over(w, to) ? 0 : (uint64_t)1 << to;
    }
    w->aside_pending = left;
}

bool aside_wanted(struct worker *w)
{
    return w->aside_ready && !ring_mpsc_empty(&w->parcels);
}

uint32_t aside_take(struct worker *w, uint32_t max)
{
    struct parcel parcel;
    uint32_t n = 0;
    while (w->aside_ready && n < max && ring_mpsc_pop(&w->parcels, &parcel)) {
        control_adopt(w); /* who has passed this on may be in a newer epoch already */
        input_batch(w, bytes_of(parcel.at + FRAME_HEADER, parcel.n), w->node->config.self);
        struct worker *from = &w->node->workers[parcel.from];
        if (parcel.capacity > FRAME_GIVEN || !ring_mpsc_push(&from->parcels_back, &parcel)) {
            free(parcel.at);
        }
        n++;
    }
    return n;
}
