/* A transaction that is evaluated on rows that were brought to it: its objects, what was found of
 * them, and the answers. What the baseline (occ.c), Lotus's coordinator (lotus.c) and its memory
 * servers (lotus_home.c, of requests that are theirs alone) have in common. Only files of node
 * include it. */
#ifndef HORKOS_NODE_EVALUATE_H
#define HORKOS_NODE_EVALUATE_H

#include "engine/txn.h"
#include "node/internal.h"

/* Memory that is kept from one use to the next. */
struct buffer {
    uint8_t *at;
    uint32_t n, capacity;
};
/* Makes room for that many bytes more, and returns it. Asserts: bounded by its users, and nothing
 * goes on without it. */
uint8_t *buffer_add(struct buffer *b, uint32_t bytes);

struct evaluation {
    struct txn_request request; /* several operations, or `one` */
    struct op one;
    struct txn_object *objects;
    uint16_t *index; /* as txn_objects has it */
    struct answer *answers;
    uint64_t *versions;
    uint32_t objects_n;
    uint32_t scanned_n; /* objects behind objects_n, which only ranges have met */
    uint8_t verdict;    /* enum txn_verdict */
    bool several;
    struct buffer arrays, memory;
};

#endif
