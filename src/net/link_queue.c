#include "net/link_queue.h"

#include <stdlib.h>

#include "base/assert.h"

static void chunk_free(struct link_queue *queue, struct link_chunk *chunk)
{
    queue->held -= sizeof(*chunk) + chunk->capacity;
    free(chunk);
}

void link_queue_clear(struct link_queue *queue)
{
    while (queue->first != NULL) {
        struct link_chunk *next = queue->first->next;

        chunk_free(queue, queue->first);
        queue->first = next;
    }
    if (queue->spare != NULL)
        chunk_free(queue, queue->spare);
    HK_ASSERT(queue->held == 0);
    *queue = (struct link_queue){0};
}

static struct link_chunk *chunk_make(struct link_queue *queue, uint32_t n)
{
    uint32_t capacity = n > LINK_CHUNK ? n : LINK_CHUNK;
    struct link_chunk *chunk = queue->spare;

    if (chunk != NULL && n <= chunk->capacity) {
        queue->spare = NULL;
    } else {
        chunk = malloc(sizeof(*chunk) + capacity);
        if (chunk == NULL)
            return NULL;
        chunk->capacity = capacity;
        queue->held += sizeof(*chunk) + capacity;
    }
    chunk->next = NULL;
    chunk->used = 0;
    chunk->taken = 0;
    return chunk;
}

bool link_queue_append(struct link_queue *queue, struct bytes frames)
{
    struct link_chunk *last = queue->last;

    if (last == NULL || last->capacity - last->used < frames.n) {
        struct link_chunk *chunk = chunk_make(queue, frames.n);

        if (chunk == NULL)
            return false;
        if (last == NULL)
            queue->first = chunk;
        else
            last->next = chunk;
        queue->last = chunk;
        last = chunk;
    }
    memcpy(last->bytes + last->used, frames.at, frames.n);
    last->used += frames.n;
    queue->bytes += frames.n;
    return true;
}

struct bytes link_queue_front(const struct link_queue *queue)
{
    const struct link_chunk *first = queue->first;

    if (first == NULL)
        return bytes_of(NULL, 0);
    return bytes_of(first->bytes + first->taken, first->used - first->taken);
}

void link_queue_take(struct link_queue *queue, uint32_t n)
{
    struct link_chunk *first = queue->first;

    HK_ASSERT(first != NULL && n <= first->used - first->taken);
    first->taken += n;
    queue->bytes -= n;
    if (first->taken < first->used)
        return;
    queue->first = first->next;
    if (queue->first == NULL)
        queue->last = NULL;
    if (queue->spare == NULL && first->capacity == LINK_CHUNK)
        queue->spare = first;
    else
        chunk_free(queue, first);
}
