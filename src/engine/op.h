/* Operations on one key as clients ask for them, and their pure evaluation: old value in, new value
 * and answer out. Engines never see this; the node evaluates an operation on the readable local
 * value and hands the result to the engine as the update's payload ([H] 4.3.5: an RMW computes at
 * its coordinator; the INV carries the result). */
#ifndef HORKOS_ENGINE_OP_H
#define HORKOS_ENGINE_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum op_kind {
    OP_GET,
    OP_EXISTS,    /* answers 1 or 0 */
    OP_SET,       /* with OPF_ flags */
    OP_DELETE,    /* answers 1 or 0; with OPF_BLIND a plain write that answers nothing */
    OP_DELETE_IF, /* deletes if the value equals arg; answers 1 or 0 */
    OP_ADD,       /* integer delta; absent counts as 0; answers the sum */
    OP_ADD_FLOAT, /* arg: decimal text of the increment; answers the new text (op_number.h) */
    OP_APPEND,    /* answers the new length */
    OP_SETRANGE,  /* number: offset; pads with zero bytes; answers the new length */
    OP_EXPIRE,    /* number: deadline in ms since 1970, with OPF_NX/XX/GT/LT; answers 1 or 0 */
    OP_PERSIST,   /* answers 1 or 0 */
    OP_GETSET,    /* answers the old value */
    OP_GETDEL,    /* answers the old value */
    OP_GETEX,     /* number: deadline (0: persist, OPF_KEEPTTL: leave); answers the value */
    OP_STRLEN,
    OP_DEADLINE, /* answers the deadline in ms, -1 without one, -2 if absent */
    OP_EXPIRED,  /* the node's own: deletes if the value's deadline is `number` and has passed */
    OP_KINDS
};

enum op_flag {
    OPF_NX = 1 << 0,       /* SET: only if absent; EXPIRE: only without a deadline */
    OPF_XX = 1 << 1,       /* SET: only if present; EXPIRE: only with a deadline */
    OPF_IFEQ = 1 << 2,     /* SET: only if the value equals arg */
    OPF_GET = 1 << 3,      /* SET: answer the old value */
    OPF_KEEPTTL = 1 << 4,  /* SET: keep the deadline */
    OPF_DEADLINE = 1 << 5, /* SET: number is the new deadline in ms since 1970 */
    OPF_BLIND = 1 << 6,    /* DELETE: no answer wanted */
    OPF_GT = 1 << 7,
    OPF_LT = 1 << 8,
};

struct op {
    uint8_t kind; /* enum op_kind */
    uint8_t space;
    uint16_t flags; /* enum op_flag */
    struct bytes key;
    struct bytes value; /* SET, APPEND, SETRANGE, GETSET */
    struct bytes arg;   /* IFEQ, DELETE_IF, ADD_FLOAT */
    int64_t number;     /* ADD, SETRANGE, EXPIRE, ... */
};

/* Whether it may change the key; whether the new value or the answer depends on the old one (then
 * it is an RMW for the protocol; the rest are plain writes). */
bool op_updates(const struct op *op);
bool op_is_rmw(const struct op *op);

/* Bytes, as stored, that a new key's value comes to by the operation; of a number as many as most
 * need. For whoever makes room early: 0 if the operation sets none, or is a transaction's own. */
uint32_t op_room(const struct op *op);

/* HK_ERR_INVALID for kinds, flags and numbers that mean nothing, HK_ERR_TOOBIG for a key or a value
 * that no store could hold. Operations come from clients through a parser that builds them, so
 * op_evaluate counts on this check and asserts what it relies on. */
int op_check(const struct op *op, uint32_t value_bytes_max) __attribute__((warn_unused_result));

enum answer_kind {
    ANSWER_OK,
    ANSWER_NIL,   /* absent, or a condition that did not hold */
    ANSWER_VALUE, /* bytes */
    ANSWER_NUMBER,
    ANSWER_ERROR, /* number is an enum hk_err */
    ANSWER_PAIRS, /* of a range (txn.h) */
};

struct answer {
    uint8_t kind;  /* enum answer_kind */
    bool applied;  /* the operation changed the key (a condition held) */
    uint16_t slot; /* of HK_ERR_LOSTSLOT: the key's (base/slot.h) */
    int64_t number;
    struct bytes value; /* into the old value, the operation, or scratch */
};

/* What a key holds: absent (tombstone or no entry), or bytes (the deadline cut off). */
struct op_state {
    bool present;
    uint64_t deadline_ms; /* 0: none */
    struct bytes value;
};

/* A stored value is the state's bytes, after 8 bytes of deadline if it has one (KEY_DEADLINE).
 * Reads one: key_flags are key_meta.flags or msg.vflags, of which only KEY_VALUE_FLAGS count;
 * state->value points into stored. HK_ERR_CORRUPT if flags, length and deadline contradict each
 * other; *state is left alone then. */
int op_state_from_stored(struct bytes stored, uint8_t key_flags, struct op_state *state)
    __attribute__((warn_unused_result));

/* The bytes that op_state_store writes; 0 for an absent key. */
uint32_t op_state_stored_bytes(const struct op_state *state);

/* Writes the stored form and its KEY_VALUE_FLAGS; returns op_state_stored_bytes. The value may
 * overlap out anywhere, so a scratch that left 8 bytes in front is stored without a copy. */
uint32_t op_state_store(const struct op_state *state, uint8_t *out, uint8_t *vflags_out);

/* Whether the key's deadline has passed. From that millisecond on the key is as good as gone; the
 * node and OP_EXPIRED must agree on it, or expiring would be tried for ever. */
bool op_state_expired(const struct op_state *state, uint64_t wall_ms);

/* The scratch that op_evaluate needs for op on old, in bytes; 0 for most operations. For APPEND
 * and SETRANGE it is the length of the new value, so that the caller can hold it against its limit
 * before it finds the memory; over 32 bits is possible. */
uint64_t op_scratch_bytes(const struct op *op, const struct op_state *old);

/* Evaluates op on the old state (not expired: the node sees to that). changed_out says whether an
 * update follows; then *next is the new state. next->value may point into op, old or scratch
 * (capacity scratch_bytes; HK_ERR_TOOBIG if it does not suffice; it overlaps neither op nor old).
 * *answer is what the client hears if the update commits, or at once if nothing changes. Errors
 * (HK_ERR_TYPE, HK_ERR_OVERFLOW, HK_ERR_TOOBIG) leave next alone, set changed_out to false, and
 * are in *answer as well. An update is made wherever Redis marks the key as modified, even if the
 * bytes stay what they were. A plain write (not op_is_rmw) gives the same for every old state. */
int op_evaluate(const struct op *op, const struct op_state *old, uint64_t wall_ms, uint8_t *scratch,
                uint32_t scratch_bytes, struct op_state *next, struct answer *answer,
                bool *changed_out) __attribute__((warn_unused_result));

#endif
