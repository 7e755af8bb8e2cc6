#include "explore/states.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define BLOCK_BYTES (256u * 1024u)
#define RUN_MAX 255u

struct states_block {
    struct states_block *next;
    size_t used;
    size_t capacity;
    uint8_t at[];
};

void states_init(struct states *states, size_t state_bytes)
{
    *states = (struct states){.state_bytes = state_bytes};
}

void states_deinit(struct states *states)
{
    while (states->first != NULL) {
        struct states_block *next = states->first->next;
        free(states->first);
        states->first = next;
    }
    states_init(states, states->state_bytes);
}

/* Eight bytes at a time: a mask of those that are not zero, and these; for zeros alone the empty
 * mask and a number, of how many such words follow each other. The last word may be short. */
#define WORD 8u

static size_t packed_max(size_t bytes)
{
    return (bytes / WORD + 1) * (WORD + 2);
}

static uint64_t load_word(const uint8_t *state, size_t at, size_t n)
{
    uint64_t word = 0;
    memcpy(&word, state + at, n - at < WORD ? n - at : WORD);
    return word;
}

static size_t pack_word(uint64_t word, uint8_t *out)
{
    size_t used = 1;
    out[0] = 0;
    for (uint32_t i = 0; i < WORD; i++) {
        uint8_t byte = (uint8_t)(word >> (8 * i));
        out[0] = (uint8_t)(out[0] | (byte != 0 ? 1u << i : 0u));
        out[used] = byte;
        used += byte != 0;
    }
    return used;
}

static size_t pack(const uint8_t *state, size_t n, uint8_t *out)
{
    size_t used = 0;
    for (size_t at = 0; at < n;) {
        uint64_t word = load_word(state, at, n);
        at += WORD;
        if (word != 0) {
            used += pack_word(word, out + used);
            continue;
        }
        uint8_t zeros = 1;
        while (at < n && zeros < RUN_MAX && load_word(state, at, n) == 0) {
            at += WORD;
            zeros++;
        }
        out[used] = 0;
        out[used + 1] = zeros;
        used += 2;
    }
    return used;
}

static size_t unpack(const uint8_t *in, uint8_t *state, size_t n)
{
    size_t used = 0;
    memset(state, 0, n);
    for (size_t at = 0; at < n;) {
        uint32_t mask = in[used++];
        if (mask == 0) {
            at += (size_t)in[used++] * WORD;
            continue;
        }
        for (uint32_t i = 0; i < WORD; i++) {
            if (((uint32_t)mask >> i & 1u) != 0) {
                HK_ASSERT(at + i < n);
                state[at + i] = in[used++];
            }
        }
        at += WORD;
    }
    return used;
}

static struct states_block *add_block(struct states *states)
{
    size_t most = packed_max(states->state_bytes);
    size_t capacity = most > BLOCK_BYTES ? most : BLOCK_BYTES;
    struct states_block *block = malloc(sizeof *block + capacity);
    if (block == NULL) {
        return NULL;
    }
    *block = (struct states_block){.capacity = capacity};
    if (states->last != NULL) {
        states->last->next = block;
    } else {
        states->first = block;
    }
    states->last = block;
    states->bytes += sizeof *block + capacity;
    return block;
}

bool states_put(struct states *states, const void *state)
{
    struct states_block *block = states->last;
    if (block == NULL || block->capacity - block->used < packed_max(states->state_bytes)) {
        block = add_block(states);
        if (block == NULL) {
            return false;
        }
    }
    block->used += pack(state, states->state_bytes, block->at + block->used);
    HK_ASSERT(block->used <= block->capacity);
    states->n++;
    return true;
}

void states_take(struct states *states, void *state_out)
{
    HK_ASSERT(states->n > 0);
    struct states_block *block = states->first;
    if (states->read == block->used) {
        states->first = block->next;
        states->bytes -= sizeof *block + block->capacity;
        free(block);
        block = states->first;
        states->read = 0;
    }
    states->read += unpack(block->at + states->read, state_out, states->state_bytes);
    states->n--;
}
