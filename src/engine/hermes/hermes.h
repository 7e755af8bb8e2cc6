/* Hermes ([H] 4.2.2 to 4.3.6) as an engine: see docs/protocols/hermes.md. */
#ifndef HORKOS_ENGINE_HERMES_HERMES_H
#define HORKOS_ENGINE_HERMES_HERMES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

enum hermes_state {
    HERMES_VALID = 0,
    HERMES_INVALID,
    HERMES_WRITE,
    HERMES_TRANS,
    HERMES_REPLAY,
    HERMES_STATES
};

struct hermes_config {
    uint64_t mlt_us;    /* message-loss timeout ([H] 4.3.3) */
    uint64_t grace_us;  /* far above the life of any message: tombstones wait this long, twice */
    bool ack_to_all;    /* [H] O3; of no effect with more than 12 configured nodes */
    uint64_t rules_off; /* HK_MUTANTS builds only: bits of enum hermes_rule */
};

enum hermes_rule {
    HERMES_RULE_EPOCH,          /* 2: INV, ACK and chunks of another epoch are ignored */
    HERMES_RULE_VAL_ANY_EPOCH,  /* 2: a keyed VAL needs no epoch (liveness) */
    HERMES_RULE_ACK_SAME,       /* 4: an INV below the local ts is never ACKed */
    HERMES_RULE_ACK_TS,         /* 1: ACKs count only for the slot's own ts */
    HERMES_RULE_ACK_SET,        /* 1: ACKs are a set, not a count */
    HERMES_RULE_ACK_RESET,      /* 5: a change of view discards ACKs */
    HERMES_RULE_NO_STALE,       /* 5: an overtaken or lost update is never sent again */
    HERMES_RULE_CID_TRIGGER,    /* 6a: replay by the death of ts.c_id's owner (switch off: of the
                                   last sender, kept for the mutant in aux) */
    HERMES_RULE_LOST_VALID,     /* 6b: lost is said only once Valid at a higher ts */
    HERMES_RULE_NO_OWN_ACK,     /* 6c: no ACK to a replay of the own pending RMW */
    HERMES_RULE_O3_WRITES,      /* 7: ACKs to all cover plain writes only */
    HERMES_RULE_O3_EPOCH,       /* 7: under O3 the INV counts as an ACK only in its epoch */
    HERMES_RULE_CID,            /* 8: c_ids of this incarnation only */
    HERMES_RULE_CHUNK_HIGHER,   /* 9: a chunk's item applies only if its ts is higher */
    HERMES_RULE_CHUNK_STATE,    /* 9: an item that was not Valid arrives Invalid */
    HERMES_RULE_ALL_ACKS,       /* 10: all live members, not a majority; no time-out completes */
    HERMES_RULE_ANSWER_VALID,   /* 11: an answering INV says whether it is Valid */
    HERMES_RULE_FIRST,          /* 12: first updates carry a flag and are treated like RMWs */
    HERMES_RULE_AGREED_FORGET,  /* 12: tombstones go by agreement of all members */
    HERMES_RULE_SHADOW_FORGET,  /* 12: not while the view has a shadow */
    HERMES_RULE_STEP,           /* [H] C_TS: a write adds 2 to the version, an RMW 1 */
    HERMES_RULE_READ_VALID,     /* a read is served only in Valid */
    HERMES_RULE_VAL_TS,         /* a VAL counts only at the local ts */
    HERMES_RULE_REPLAY,         /* the update of a dead coordinator is replayed (liveness) */
    HERMES_RULE_TRANS_REPLAY,   /* 4: a key in Trans can be replayed (liveness) */
    HERMES_RULE_WRITE_VAL,      /* 3: a VAL in Write completes the pending update (liveness) */
    HERMES_RULE_CHUNK_REPORTED, /* 12: a chunk's reported tombstone fills only an empty entry */
    HERMES_RULE_VAL_MEMBER,     /* 2, 12: a VAL counts only from a member of the receiver's view */
    HERMES_RULE_CHECK,          /* [H] 4.3.6: a majority confirms asynchronous reads */
    HERMES_RULES
};
extern const char *const hermes_rule_names[HERMES_RULES];
extern const char *const hermes_state_names[HERMES_STATES];

extern const struct engine_ops hermes_ops;

#endif
