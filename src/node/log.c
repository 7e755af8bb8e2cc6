#include "node/log.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define PLACES_FIRST 1024u

void log_init(struct log *log)
{
    memset(log, 0, sizeof *log);
    log->first = 1;
}

static void free_blocks(struct log_block *block)
{
    while (block != NULL) {
        struct log_block *next = block->next;
        free(block);
        block = next;
    }
}

void log_deinit(struct log *log)
{
    free_blocks(log->oldest);
    free_blocks(log->spare);
    free(log->places);
    log_init(log);
}

static struct log_place *place_of(const struct log *log, uint64_t entry)
{
    return &log->places[entry & (log->capacity - 1)];
}

static void grow_places(struct log *log)
{
    uint64_t capacity = log->capacity > 0 ? 2 * log->capacity : PLACES_FIRST;
    struct log_place *places = malloc(capacity * sizeof *places);
    HK_ASSERT(places != NULL); /* bounded as the log is, and there is no honest way on */
    for (uint64_t e = log->first; e <= log->last; e++) {
        places[e & (capacity - 1)] = *place_of(log, e);
    }
    free(log->places);
    log->places = places;
    log->capacity = capacity;
}

static struct log_block *new_block(struct log *log, uint32_t bytes)
{
    struct log_block *block = log->spare;
    if (bytes <= LOG_BLOCK_BYTES && block != NULL) {
        log->spare = block->next;
        log->spares--;
    } else {
        uint32_t capacity = bytes > LOG_BLOCK_BYTES ? bytes : LOG_BLOCK_BYTES;
        block = malloc(sizeof *block + capacity);
        HK_ASSERT(block != NULL); /* as above */
        block->capacity = capacity;
    }
    block->next = NULL;
    block->used = 0;
    block->last = 0;
    if (log->newest != NULL) {
        log->newest->next = block;
    } else {
        log->oldest = block;
    }
    log->newest = block;
    return block;
}

void log_keep(struct log *log, const struct msg *msg)
{
    uint32_t n = msg_size(msg);
    uint32_t room = (n + 7u) & ~7u;
    struct log_block *block = log->newest;
    if (block == NULL || room > block->capacity - block->used) {
        block = new_block(log, room);
    }
    if (log->last + 1 - log->first == log->capacity) {
        grow_places(log);
    }
    uint64_t entry = ++log->last;
    uint8_t *at = block->bytes + block->used;
    msg_encode(msg, at);
    block->used += room;
    block->last = entry;
    *place_of(log, entry) = (struct log_place){.at = at, .before = log->bytes};
    log->bytes += n;
}

struct bytes log_bytes(const struct log *log, uint64_t entry)
{
    HK_ASSERT(log_holds(log, entry));
    const struct log_place *place = place_of(log, entry);
    uint64_t end = entry == log->last ? log->bytes : place_of(log, entry + 1)->before;
    return bytes_of(place->at, (uint32_t)(end - place->before));
}

static void drop_oldest(struct log *log)
{
    struct log_block *block = log->oldest;
    log->oldest = block->next;
    if (log->oldest == NULL) {
        log->newest = NULL;
    }
    if (block->capacity == LOG_BLOCK_BYTES && log->spares < LOG_BLOCKS_SPARE) {
        block->next = log->spare;
        log->spare = block;
        log->spares++;
    } else {
        free(block);
    }
}

void log_trim(struct log *log, uint64_t entry)
{
    if (entry < log->first) {
        return;
    }
    HK_ASSERT(entry <= log->taken || entry > log->last);
    if (entry > log->last) {
        log->last = entry;
        log->taken = entry;
    }
    log->first = entry + 1;
    while (log->oldest != NULL && log->oldest->last <= entry) {
        drop_oldest(log);
    }
}
