/* Static sharding with two-phase commit and optimistic validation, as FaRM and FaSST have it: the
 * baseline that Zeus is compared with. docs/protocols/occ.md. The coordinator's side of one
 * transaction as a pure machine, the messages, and where objects are at home; who locks, reads and
 * stores is the node (node/occ*.c). Nothing here survives a crash: benchmarks only. */
#ifndef HORKOS_ENGINE_OCC_OCC_H
#define HORKOS_ENGINE_OCC_OCC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "engine/engine.h"
#include "wire/msg.h"

struct occ_config {
    uint8_t degree; /* replicas of an object; 0: three. At most all nodes */
};

extern const struct engine_ops occ_ops;

/* Where the objects of a slot are: the home, and the backups. configured: not empty. */
uint8_t occ_home(nodeset configured, uint16_t slot);
nodeset occ_backups(nodeset configured, uint8_t home, const struct occ_config *config);

/* ---- The coordinator's machine ---- */

enum occ_state { OCC_IDLE, OCC_EXECUTE, OCC_VALIDATE, OCC_REPLICATE, OCC_STATES };
extern const char *const occ_state_names[OCC_STATES];

/* Plain memory; zero: idle. */
struct occ_txn {
    nodeset homes;   /* other nodes at which objects of it are at home */
    nodeset locks;   /* of them, where some are to be locked */
    nodeset reads;   /* ... and where some are only read */
    nodeset locked;  /* where they are locked, or will be when the message arrives */
    nodeset written; /* evaluated: the other homes of what changes ... */
    nodeset backups; /* ... and the other nodes that are backups of it */
    nodeset waits;   /* whose answers are due */
    uint8_t state;   /* enum occ_state */
    bool refused;
    bool writes;
};

enum occ_fx {
    OCC_FX_EXECUTE,   /* to every node of `to`: lock and read */
    OCC_FX_EVALUATE,  /* everything was read: evaluate, then occ_evaluated */
    OCC_FX_VALIDATE,  /* to `to` */
    OCC_FX_REPLICATE, /* to `to`, and to this node's own store if it is a backup */
    OCC_FX_COMMIT,    /* to `to`; and local objects are stored and unlocked */
    OCC_FX_UNLOCK,    /* to `to`; and local objects that are still locked */
    OCC_FX_DONE,      /* answer */
    OCC_FX_AGAIN,     /* nothing happened: begin once more, after a pause */
};
struct occ_effect {
    uint8_t kind;
    nodeset to;
};
#define OCC_EFFECTS_MAX 4u
struct occ_effects {
    uint32_t n;
    struct occ_effect e[OCC_EFFECTS_MAX];
};

/* Local objects are locked and read. */
void occ_begin(struct occ_txn *t, nodeset homes, nodeset locks, nodeset reads,
               struct occ_effects *fx);
/* EXECUTED, VALIDATED, REPLICATED; good: not refused. What nobody waits for is ignored. */
void occ_answered(struct occ_txn *t, enum occ_state phase, uint8_t from, bool good,
                  struct occ_effects *fx);
/* After OCC_FX_EVALUATE. holds: what was only read here is as it was. written, backups: of what
 * changes, this node not among them; writes: anything does. */
void occ_evaluated(struct occ_txn *t, bool holds, bool writes, nodeset written, nodeset backups,
                   struct occ_effects *fx);
/* Asserts the invariants. */
void occ_check(const struct occ_txn *t);

/* ---- Messages ---- */

enum occ_kind { /* msg.kind. slot, gen: the transaction's, at its coordinator */
                OCC_MSG_EXECUTE = 1, /* value: objects with OCC_LOCK or without; arg: the locker */
                OCC_MSG_EXECUTED,    /* ts: 1, value: versions and values, in that order; or 0 */
                OCC_MSG_VALIDATE,    /* value: objects with versions */
                OCC_MSG_VALIDATED,   /* ts: 1 or 0 */
                OCC_MSG_REPLICATE,   /* value: objects with versions and values */
                OCC_MSG_REPLICATED,
                OCC_MSG_COMMIT, /* as REPLICATE, OCC_LOCK: only to be unlocked; arg: the locker */
                OCC_MSG_UNLOCK, /* value: objects; arg: the locker */
                OCC_MSG_END
};
extern const char *const occ_kind_names[OCC_MSG_END];

#define OCC_VERSION_MAX (1ull << 43) /* of objects in messages */
/* Why the message cannot come from a correct member, or NULL. How large values may be is the
 * store's matter. */
const char *occ_msg_invalid(const struct msg *msg);

enum {
    OCC_LOCK = 0x80,   /* occ_object.flags: to be locked; the rest is KEY_VALUE_FLAGS */
    OCC_ABSENT = 0x40, /* there is no such object (any more) */
};
/* An object in a message's value, one packed behind the other. */
struct occ_object {
    struct bytes key;
    struct bytes value; /* as stored */
    uint64_t version;   /* 0: absent */
    uint8_t flags;
};
uint32_t occ_object_bytes(const struct occ_object *object);
uint8_t *occ_object_put(uint8_t *at, const struct occ_object *object);
/* Takes the next one off `rest`; false: there is none. Of a message that is valid. */
bool occ_object_take(struct bytes *rest, struct occ_object *object_out);

#endif
