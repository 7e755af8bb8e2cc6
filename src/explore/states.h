/* Where a search keeps whole states between two depths: first in, first out, all of one size.
 * States are mostly zeros, which are packed away; the blocks are freed as they are emptied. */
#ifndef HORKOS_EXPLORE_STATES_H
#define HORKOS_EXPLORE_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct states_block;

struct states {
    size_t state_bytes;
    struct states_block *first;
    struct states_block *last;
    size_t read; /* bytes of the first block that were taken out */
    uint64_t n;
    uint64_t bytes; /* of all blocks */
};

void states_init(struct states *states, size_t state_bytes);
void states_deinit(struct states *states);
/* False if there is no memory; then nothing was added. */
bool states_put(struct states *states, const void *state) __attribute__((warn_unused_result));
/* The oldest; asserts that there is one. */
void states_take(struct states *states, void *state_out);

#endif
