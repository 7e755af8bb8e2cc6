/* rZAB ([H] 4.4.2) as an engine: one leader orders all updates of a space in one log, a majority of
 * the configured nodes commits them, every node reads its own prefix of the log (sequential
 * consistency). See docs/protocols/zab.md. */
#ifndef HORKOS_ENGINE_ZAB_ZAB_H
#define HORKOS_ENGINE_ZAB_ZAB_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

struct zab_config {
    uint64_t log_bytes; /* from so many bytes on the leader takes nothing more into its log; 0:
                           ZAB_LOG_BYTES */
    bool lockstep;      /* the next batch is proposed when every live member has acknowledged and
                           been told to deliver the one before: total order in rounds */
    uint64_t rules_off; /* HK_MUTANTS builds only: bits of enum zab_rule */
};
#define ZAB_LOG_BYTES (64u << 20)

enum zab_rule {
    ZAB_RULE_EPOCH,      /* 1: a message counts only in its epoch */
    ZAB_RULE_MAJORITY,   /* 2: committed is what a majority of the configured nodes has logged */
    ZAB_RULE_COMMITTED,  /* 3: an entry is taken only when it is committed */
    ZAB_RULE_ALL_STATES, /* 4: a leader waits for the state of every live member */
    ZAB_RULE_LONGEST,    /* 4: ... and takes over the longest log */
    ZAB_RULE_LEVEL,      /* 5: a member is sent all that it lacks before anything new */
    ZAB_RULE_WITNESSES,  /* 6: ... and goes on only if a majority can know what was committed */
    ZAB_RULE_LOST_READY, /* 7: an update of an older epoch is lost only when its node is level */
    ZAB_RULE_CONDITION,  /* 8: an RMW is refused if its key may have a newer entry */
    ZAB_RULE_ROUND,      /* 9: a refusal for want of room refuses what follows it as well */
    ZAB_RULE_TRIM_ALL,   /* 10: an entry is trimmed when every live member has taken it */
    ZAB_RULE_BASE,       /* 11: a shadow's log begins where every member has taken all */
    ZAB_RULE_TOMBSTONES, /* 12: a shadow keeps tombstones */
    ZAB_RULE_ITEM_NEWER, /* 12: a copied item applies only if it is newer */
    ZAB_RULE_READY,      /* 13: a promoted member serves once it has taken all that was logged when
                            it became level */
    ZAB_RULE_ROUNDS,     /* 14: lockstep: the next batch waits for all live members */
    ZAB_RULES
};
extern const char *const zab_rule_names[ZAB_RULES];

extern const struct engine_ops zab_ops;

#endif
