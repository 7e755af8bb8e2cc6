/* CRAQ ([H] 4.1 and 4.4, rCRAQ) as an engine: see docs/protocols/craq.md. */
#ifndef HORKOS_ENGINE_CRAQ_CRAQ_H
#define HORKOS_ENGINE_CRAQ_CRAQ_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

enum craq_state {
    CRAQ_CLEAN = 0, /* committed: the whole chain has it, or something newer */
    CRAQ_DIRTY,     /* on its way to the end of the chain */
    CRAQ_STATES
};

struct craq_config {
    uint64_t retry_us;   /* a read whose question met a dirty key starts anew after this */
    uint64_t give_up_us; /* an update that no message ends is unknown after this */
    uint64_t rules_off;  /* HK_MUTANTS builds only: bits of enum craq_rule */
};

enum craq_rule {
    CRAQ_RULE_EPOCH,        /* 1: messages count only in their epoch */
    CRAQ_RULE_END,          /* 2: an update commits at the last of the chain, shadows included */
    CRAQ_RULE_ACK_TS,       /* 3: an ACK counts only at its own timestamp */
    CRAQ_RULE_NOT_DECLARED, /* 4: no new tail declares committed what it holds dirty */
    CRAQ_RULE_REPAIR,       /* 4: what an older epoch left dirty goes through the chain again */
    CRAQ_RULE_QUERY_CLEAN,  /* 5: only a clean key answers a question */
    CRAQ_RULE_READ_CLEAN,   /* 5: only a clean key is read */
    CRAQ_RULE_CONDITION,    /* 6: the head takes an RMW only on the value that it was computed on */
    CRAQ_RULE_HIGHER,       /* 7: a WRITE is stored only if its timestamp is higher */
    CRAQ_RULE_TS_EPOCH,     /* 8: an epoch's timestamps are above those of all older ones */
    CRAQ_RULE_LATE_WRITE,   /* 9: an old epoch's WRITE ends where a newer epoch's value stands */
    CRAQ_RULE_LATE_HEAD,    /* 9: an old epoch's head orders nothing above a newer epoch's value */
    CRAQ_RULE_REPAIR_TS,    /* 10: a repair keeps its timestamp, and is taken only if higher */
    CRAQ_RULE_UNKNOWN,      /* 11: an update that a view change interrupts is not tried again */
    CRAQ_RULE_CHUNK_HIGHER, /* 12: a chunk's item is stored only if its timestamp is higher */
    CRAQ_RULE_CHUNK_STATE,  /* 12: an item that was dirty arrives dirty */
    CRAQ_RULE_AGAIN,        /* 13: what stays dirty for long goes through the chain again */
    CRAQ_RULES
};
extern const char *const craq_rule_names[CRAQ_RULES];
extern const char *const craq_state_names[CRAQ_STATES];

extern const struct engine_ops craq_ops;

#endif
