/* Galene ([G] chapter 3) as an engine: see docs/protocols/galene.md. */
#ifndef HORKOS_ENGINE_GALENE_GALENE_H
#define HORKOS_ENGINE_GALENE_GALENE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

enum galene_state {
    GALENE_NONE = 0, /* no entry */
    GALENE_HOME,     /* the only copy, at its home */
    GALENE_ENTERING, /* at the home: the others make entries */
    GALENE_VALID,
    GALENE_INVALID,
    GALENE_WRITE,
    GALENE_DROPPING, /* at the home: the others drop their entries */
    GALENE_MOVING,   /* at the old home: the new one is getting it */
    GALENE_LOST,     /* cached; its last writer died before anybody had the value */
    GALENE_STATES
};

struct galene_config {
    uint64_t retry_us;  /* members that have not reported are asked to again after this */
    uint64_t rescue_us; /* a question about an orphan ends after this, and may be asked again */
    uint64_t rules_off; /* HK_MUTANTS builds only: bits of enum galene_rule */
};

enum galene_rule {
    GALENE_RULE_ACK_ALWAYS,     /* K2: a losing INV is ACKed too (liveness) */
    GALENE_RULE_LOSER_DONE,     /* K3: an overtaken write completes (liveness) */
    GALENE_RULE_OVERTAKEN,      /* 8: an overtaken write is neither stored nor sent */
    GALENE_RULE_ALL_ACKS,       /* 7: of all live members */
    GALENE_RULE_HIGHER,         /* 4: an INV is taken only if its timestamp is higher */
    GALENE_RULE_READ_VALID,     /* 2: a cached key is read only in Valid */
    GALENE_RULE_RMW_STEP,       /* K4: an RMW adds 1 to the version, a write 2 */
    GALENE_RULE_NACK,           /* K4: who knows a higher timestamp refuses an RMW */
    GALENE_RULE_NAMED,          /* K4: ... and names it to a write, which is the loser then */
    GALENE_RULE_NEWCOMERS,      /* K5: members of a newer view get the INV and are waited for */
    GALENE_RULE_UPD_TS,         /* K6: an UPD counts only at its own timestamp ... */
    GALENE_RULE_UPD_GENERATION, /* K6: ... and generation */
    GALENE_RULE_INV_GENERATION, /* 6: an INV of another generation changes nothing */
    GALENE_RULE_CID,            /* K8: c_ids are this incarnation's virtual ids */
    GALENE_RULE_ENTER_ALL,      /* N1: readable only when all have an entry */
    GALENE_RULE_REPORT_IDLE,    /* N3: a node reports only when Valid and idle */
    GALENE_RULE_LEAVING,        /* N4: nothing is started after LEAVE */
    GALENE_RULE_REPORTED,       /* N5: the home waits until it is Valid at what was reported */
    GALENE_RULE_DROPPED_ALL,    /* N6: the home resumes only when all have dropped */
    GALENE_RULE_REENTER,        /* E5: a cached key leaves before it enters anew */
    GALENE_RULE_KEEPER,         /* V4: only who let a key enter lets it leave */
    GALENE_RULE_MOVE_STALL,     /* V6: the old home stalls until the new one has the key */
    GALENE_RULE_MOVE_DEAD,      /* V7: a key whose new home died meanwhile is gone */
    GALENE_RULE_RESCUE,         /* D3: an orphan asks (liveness) */
    GALENE_RULE_RESCUE_ALL,     /* D3: it is lost only if nobody is Valid */
    GALENE_RULE_RESCUE_VALID,   /* D3: only who is Valid at its timestamp answers with a value */
    GALENE_RULES
};
extern const char *const galene_rule_names[GALENE_RULES];
extern const char *const galene_state_names[GALENE_STATES];

extern const struct engine_ops galene_ops;

#endif
