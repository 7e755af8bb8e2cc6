/* What will happen in a simulated world, ordered by time: a binary heap. Entries of the same time
 * come out in the order in which they went in, so that a run depends on nothing but its seed. */
#ifndef HORKOS_SIM_HEAP_H
#define HORKOS_SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_entry {
    uint64_t at_us;
    uint64_t order; /* set by heap_push */
    void *what;     /* the owner's; never compared */
    uint32_t kind;  /* the owner's, like a, b and token */
    uint32_t a;
    uint32_t b;
    uint32_t token;
};

struct heap {
    struct heap_entry *at;
    size_t n;
    size_t capacity;
    uint64_t order;
};

void heap_push(struct heap *heap, struct heap_entry entry);
/* Takes the earliest entry out; false when there is none. */
bool heap_pop(struct heap *heap, struct heap_entry *entry_out);
void heap_deinit(struct heap *heap);

#endif
