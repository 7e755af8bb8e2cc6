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
    OP_EXISTS,   /* answers 1 or 0 */
    OP_SET,      /* with OPF_ flags */
    OP_DELETE,   /* answers 1 or 0; with OPF_BLIND a plain write that answers nothing */
    OP_DELETE_IF,/* deletes if the value equals arg; answers 1 or 0 */
    OP_ADD,      /* integer delta; absent counts as 0; answers the sum */
    OP_ADD_FLOAT,/* arg: decimal text of the increment; answers the new text */
    OP_APPEND,   /* answers the new length */
    OP_SETRANGE, /* number: offset; pads with zero bytes; answers the new length */
    OP_EXPIRE,   /* number: deadline in ms since 1970, with OPF_NX/XX/GT/LT; answers 1 or 0 */
    OP_PERSIST,  /* answers 1 or 0 */
    OP_GETSET,   /* answers the old value */
    OP_GETDEL,   /* answers the old value */
    OP_GETEX,    /* number: deadline (0: persist, OPF_KEEPTTL: leave); answers the value */
    OP_STRLEN,
    OP_DEADLINE, /* answers the deadline in ms, -1 without one, -2 if absent */
    OP_EXPIRED,  /* the node's own: deletes if the value's deadline is `number` and has passed */
    OP_KINDS
};

enum op_flag {
    OPF_NX = 1 << 0,      /* SET: only if absent; EXPIRE: only without a deadline */
    OPF_XX = 1 << 1,      /* SET: only if present; EXPIRE: only with a deadline */
    OPF_IFEQ = 1 << 2,    /* SET: only if the value equals arg */
    OPF_GET = 1 << 3,     /* SET: answer the old value */
    OPF_KEEPTTL = 1 << 4, /* SET: keep the deadline */
    OPF_DEADLINE = 1 << 5,/* SET: number is the new deadline in ms since 1970 */
    OPF_BLIND = 1 << 6,   /* DELETE: no answer wanted */
    OPF_GT = 1 << 7,
    OPF_LT = 1 << 8,
};

struct op {
    uint8_t kind; /* enum op_kind */
    uint8_t space;
    uint16_t flags;     /* enum op_flag */
    struct bytes key;
    struct bytes value; /* SET, APPEND, SETRANGE, GETSET */
    struct bytes arg;   /* IFEQ, DELETE_IF, ADD_FLOAT */
    int64_t number;     /* ADD, SETRANGE, EXPIRE, ... */
};

/* Whether it may change the key; whether the new value or the answer depends on the old one (then
 * it is an RMW for the protocol; the rest are plain writes). */
bool op_updates(const struct op *op);
bool op_is_rmw(const struct op *op);

/* HK_ERR_INVALID or HK_ERR_TOOBIG for what no store could hold (lengths, flag combinations). */
int op_check(const struct op *op, uint32_t value_bytes_max) __attribute__((warn_unused_result));

enum answer_kind {
    ANSWER_OK,
    ANSWER_NIL,     /* absent, or a condition that did not hold */
    ANSWER_VALUE,   /* bytes */
    ANSWER_NUMBER,
    ANSWER_ERROR,   /* number is an enum hk_err */
};

struct answer {
    uint8_t kind; /* enum answer_kind */
    bool applied; /* the operation changed the key (a condition held) */
    int64_t number;
    struct bytes value; /* into the old value, the operation, or scratch */
};

/* What a key holds: absent (tombstone or no entry), or bytes (the deadline cut off). */
struct op_state {
    bool present;
    uint64_t deadline_ms; /* 0: none */
    struct bytes value;
};

/* Evaluates op on the old state (not expired: the node sees to that). changed_out says whether an
 * update follows; then *next is the new state. next->value may point into op, old or scratch
 * (capacity scratch_bytes; HK_ERR_TOOBIG if it does not suffice). *answer is what the client hears
 * if the update commits, or at once if nothing changes. Errors leave next alone. */
int op_evaluate(const struct op *op, const struct op_state *old, uint64_t wall_ms,
                uint8_t *scratch, uint32_t scratch_bytes, struct op_state *next,
                struct answer *answer, bool *changed_out) __attribute__((warn_unused_result));

#endif
