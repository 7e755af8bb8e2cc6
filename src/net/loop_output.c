/* Output of streams: one buffer is written while another is sent. They come from the loop and go
 * back as soon as they are empty, so an idle connection holds none, and whoever writes next gets
 * one that is still in the cache. */
#include "net/loop_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* Which list of spares a capacity belongs to; OUTPUT_CLASSES: none, it is too large to keep. */
static uint32_t output_class(size_t capacity)
{
    uint32_t rank = 0;
    while (rank < OUTPUT_CLASSES && ((size_t)OUTPUT_MIN << rank) != capacity) {
        rank++;
    }
    return rank;
}

static uint8_t *output_take(struct loop *loop, size_t capacity)
{
    uint32_t rank = output_class(capacity);
    if (rank == OUTPUT_CLASSES || loop->spares[rank] == NULL) {
        return (uint8_t *)malloc(capacity);
    }
    void *at = loop->spares[rank];
    memcpy(&loop->spares[rank], at, sizeof(void *));
    loop->spare_bytes -= capacity;
    return (uint8_t *)at;
}

static void output_give(struct loop *loop, struct output *o)
{
    uint32_t rank = output_class(o->capacity);
    if (o->capacity == 0) {
        return;
    }
    if (rank == OUTPUT_CLASSES || loop->spare_bytes + o->capacity > LOOP_SPARE_MAX) {
        free(o->at);
    } else {
        memcpy(o->at, &loop->spares[rank], sizeof(void *));
        loop->spares[rank] = o->at;
        loop->spare_bytes += o->capacity;
    }
    *o = (struct output){0};
}

void loop_free_spares(struct loop *loop)
{
    for (uint32_t rank = 0; rank < OUTPUT_CLASSES; rank++) {
        while (loop->spares[rank] != NULL) {
            void *at = loop->spares[rank];
            memcpy(&loop->spares[rank], at, sizeof(void *));
            free(at);
        }
    }
    loop->spare_bytes = 0;
}

static bool output_grow(struct loop *loop, struct output *o, size_t bytes)
{
    size_t capacity = o->capacity == 0 ? OUTPUT_MIN : o->capacity;
    while (capacity - o->end < bytes) {
        if (capacity > SIZE_MAX / 2) {
            return false;
        }
        capacity *= 2;
    }
    uint8_t *at;
    if (o->capacity != 0 && output_class(o->capacity) == OUTPUT_CLASSES) {
        /* Large ones can often grow without a copy. */
        at = (uint8_t *)realloc(o->at, capacity);
        if (at == NULL) {
            return false;
        }
    } else {
        at = output_take(loop, capacity);
        if (at == NULL) {
            return false;
        }
        struct output old = *o;
        if (old.end > 0) {
            memcpy(at, old.at, old.end);
        }
        output_give(loop, &old);
    }
    o->at = at;
    o->capacity = capacity;
    return true;
}

uint8_t *stream_reserve(struct stream *s, uint32_t bytes)
{
    HK_ASSERT(s->state == STREAM_OPEN);
    struct output *o = &s->filling;
    if ((o->capacity == 0 || o->capacity - o->end < bytes) && !output_grow(s->loop, o, bytes)) {
        return NULL;
    }
    return o->at + o->end;
}

void stream_commit(struct stream *s, uint32_t bytes)
{
    HK_ASSERT(s->state == STREAM_OPEN && s->filling.capacity - s->filling.end >= bytes);
    s->filling.end += bytes;
    stream_touch(s);
}

bool stream_write(struct stream *s, struct bytes bytes)
{
    if (bytes.n == 0) {
        return true;
    }
    uint8_t *at = stream_reserve(s, bytes.n);
    if (at == NULL) {
        return false;
    }
    memcpy(at, bytes.at, bytes.n);
    stream_commit(s, bytes.n);
    return true;
}

uint64_t stream_queued(const struct stream *s)
{
    return (s->sending.end - s->sending.begin) + s->filling.end;
}

struct bytes stream_next_output(struct stream *s)
{
    if (s->sending.begin == s->sending.end) {
        output_give(s->loop, &s->sending);
        if (s->filling.end == 0) {
            return bytes_of(NULL, 0);
        }
        s->sending = s->filling;
        s->filling = (struct output){0};
    }
    size_t n = s->sending.end - s->sending.begin;
    return bytes_of(s->sending.at + s->sending.begin, n < SEND_MAX ? (uint32_t)n : SEND_MAX);
}

void stream_sent(struct stream *s, size_t n)
{
    HK_ASSERT(n <= s->sending.end - s->sending.begin);
    s->sending.begin += n;
    if (s->sending.begin == s->sending.end) {
        output_give(s->loop, &s->sending);
    }
    if (s->filling.end == 0) {
        /* Reserved, perhaps, and then not written. */
        output_give(s->loop, &s->filling);
    }
    if (stream_queued(s) > 0) {
        stream_touch(s);
    } else if (s->owed && s->state != STREAM_GONE && list_empty(&s->news)) {
        list_push_back(&s->loop->drained, &s->news);
    }
}

void stream_drop_output(struct stream *s)
{
    output_give(s->loop, &s->filling);
    output_give(s->loop, &s->sending);
}
