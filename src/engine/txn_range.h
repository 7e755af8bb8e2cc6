/* Ranges inside the evaluation of a transaction (txn.h). Only engine/txn*.c include it. */
#ifndef HORKOS_ENGINE_TXN_RANGE_H
#define HORKOS_ENGINE_TXN_RANGE_H

#include "engine/txn.h"

static inline bool range_is(const struct op *op)
{
    return op->kind >= TXN_OP_RANGE && op->kind < TXN_OP_END;
}

/* HK_ERR_INVALID, HK_ERR_TOOBIG: of an operation that is a range, and of any watch. */
int range_check(const struct op *op) __attribute__((warn_unused_result));
int range_check_watch(const struct txn_watch *watch) __attribute__((warn_unused_result));

/* Whether an operation or a watch is a range. */
bool range_any(const struct txn_request *txn);

/* Zero if the transaction has none. */
struct txn_ranges {
    struct txn_object *objects;
    uint32_t n;
    const uint8_t *order; /* their numbers in the order of their keys, 4 bytes each */
    uint64_t visited;     /* of TXN_VISITED_MAX */
    uint64_t bytes;       /* of answers so far */
};

/* Puts the objects in order, in the first bytes of the memory, of which nothing is used yet. False:
 * there is too little, as of range_evaluate. */
bool range_begin(struct txn_ranges *r, struct txn_object *objects, uint32_t n,
                 struct txn_memory *memory);
bool range_evaluate(struct txn_ranges *r, const struct op *op, struct txn_memory *memory,
                    struct answer *answer);
bool range_watch_holds(const struct txn_ranges *r, const struct txn_watch *watch);

#endif
