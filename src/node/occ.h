/* The baseline with static sharding in the node (docs/protocols/occ.md): a coordinator's side of
 * transactions (occ.c) and their objects' side (occ_home.c). Only files of node include it. */
#ifndef HORKOS_NODE_OCC_H
#define HORKOS_NODE_OCC_H

#include "engine/occ/occ.h"
#include "node/evaluate.h"
#include "node/internal.h"

/* What was found of an object, beside struct txn_object. */
struct occ_place {
    uint64_t version;
    uint32_t value_at, value_n;   /* in occ_run.values */
    uint32_t record_at, record_n; /* in occ_run.record: what it becomes */
    nodeset backups;
    uint8_t home;
    uint8_t flags; /* KEY_VALUE_FLAGS, OCC_ABSENT */
    bool lock;
    bool locked; /* here */
};

/* A transaction at its coordinator. */
struct occ_run {
    struct call *call; /* NULL: free */
    struct occ_txn machine;
    uint32_t gen;
    uint32_t locker; /* what its locks say: not 0, and no other transaction's of the cluster */
    struct evaluation evaluation;
    struct occ_place *places;    /* of its objects */
    nodeset homes, locks, reads; /* of other nodes */
    uint64_t wall_ms;            /* at which it is evaluated */
    uint32_t tries;
    bool own_bytes; /* nothing points into the client's request any more */
    bool done;
    struct buffer placed, copy, values, record;
};

/* Of a worker; NULL: no space is sharded. */
struct occs {
    struct occ_run *runs; /* calls_max of them, as worker.calls_memory */
    struct buffer out, values;
    struct occ_object *objects; /* of a message: TXN_OBJECTS_MAX */
    uint64_t *hashes;
    uint64_t clock; /* of versions: above all that were seen */
};

/* ---- occ_home.c: objects in this node's store. False: it is locked by another. ---- */
/* Locks an object, which need not exist, and reads it: *object_out, whose value is appended to
 * values and lies there. */
bool occ_lock(struct worker *w, uint8_t space, struct bytes key, uint64_t hash, uint32_t locker,
              struct buffer *values, struct occ_object *object_out);
bool occ_read(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
              struct buffer *values, struct occ_object *object_out);
/* Whether it is unlocked, and still at that version. */
bool occ_holds(struct worker *w, uint8_t space, struct bytes key, uint64_t hash, uint64_t version);
void occ_unlock(struct worker *w, uint8_t space, struct bytes key, uint64_t hash, uint32_t locker);
/* Stores it, unlocked. */
void occ_store(struct worker *w, uint8_t space, const struct occ_object *object, uint64_t hash);
/* A message to an object's side. */
void occ_home_message(struct worker *w, const struct msg *msg, uint8_t from);

/* ---- occ.c ---- */
void occ_answer_message(struct worker *w, const struct msg *msg, uint8_t from);

#endif
