#include "sim/heap.h"

#include <stdlib.h>

#include "base/assert.h"

static bool earlier(const struct heap_entry *a, const struct heap_entry *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

void heap_push(struct heap *heap, struct heap_entry entry)
{
    if (heap->n == heap->capacity) {
        heap->capacity = heap->capacity == 0 ? 256 : 2 * heap->capacity;
        heap->at = realloc(heap->at, heap->capacity * sizeof *heap->at);
        HK_ASSERT(heap->at != NULL);
    }
    entry.order = heap->order++;
    size_t i = heap->n++;
    while (i > 0 && earlier(&entry, &heap->at[(i - 1) / 2])) {
        heap->at[i] = heap->at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap->at[i] = entry;
}

bool heap_pop(struct heap *heap, struct heap_entry *entry_out)
{
    if (heap->n == 0) {
        return false;
    }
    *entry_out = heap->at[0];
    struct heap_entry last = heap->at[--heap->n];
    size_t i = 0;
    for (size_t child = 1; child < heap->n; child = 2 * i + 1) {
        if (child + 1 < heap->n && earlier(&heap->at[child + 1], &heap->at[child])) {
            child++;
        }
        if (!earlier(&heap->at[child], &last)) {
            break;
        }
        heap->at[i] = heap->at[child];
        i = child;
    }
    heap->at[i] = last;
    return true;
}

void heap_deinit(struct heap *heap)
{
    free(heap->at);
    *heap = (struct heap){0};
}
