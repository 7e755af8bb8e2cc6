/* The log of a space whose engine keeps one (docs/ENGINE.md): whole messages, numbered without
 * gaps, on worker 0. Entries stand in blocks in the form that goes over the wire, so that they are
 * sent without being encoded again. Memory comes from malloc in blocks that are used again; a log
 * that has reached its length allocates nothing. Its bound is the engine's business
 * (event.log_bytes).
 *
 * Threads: worker 0's. */
#ifndef HORKOS_NODE_LOG_H
#define HORKOS_NODE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "wire/msg.h"

#define LOG_BLOCK_BYTES (256u * 1024u) /* an entry that needs more has a block of its own */
#define LOG_BLOCKS_SPARE 16u           /* that are kept for later when a log gets shorter */

struct log_block {
    struct log_block *next;
    uint64_t last; /* entry in it */
    uint32_t used;
    uint32_t capacity;
    uint8_t bytes[];
};

struct log_place {
    uint8_t *at;     /* the encoded message */
    uint64_t before; /* bytes of all entries before it since the log began */
};

struct log {
    uint64_t first; /* lowest entry that it holds; last + 1: none */
    uint64_t last;
    uint64_t taken;           /* up to here entries have stepped their keys */
    struct log_place *places; /* of entry e: places[e % capacity]; a power of two */
    uint64_t capacity;
    uint64_t bytes; /* of all entries since the log began */
    struct log_block *oldest, *newest;
    struct log_block *spare;
    uint32_t spares;
};

/* An empty log that begins with entry 1. */
void log_init(struct log *log);
void log_deinit(struct log *log);

/* Appends entry last + 1. Aborts the process if malloc refuses, as every bounded buffer of the node
 * does. */
void log_keep(struct log *log, const struct msg *msg);
/* The bytes of a held entry; good until it is trimmed. */
struct bytes log_bytes(const struct log *log, uint64_t entry);
/* Forgets entries up to there; a log that ends below is empty afterwards and goes on behind. */
void log_trim(struct log *log, uint64_t entry);

static inline bool log_holds(const struct log *log, uint64_t entry)
{
    return entry >= log->first && entry <= log->last;
}

/* Bytes of the entries that it holds. */
static inline uint64_t log_size(const struct log *log)
{
    return log->first > log->last
               ? 0
               : log->bytes - log->places[log->first & (log->capacity - 1)].before;
}

#endif
