/* The engines that this program has, by name: for configurations and command lines. */
#ifndef HORKOS_NODE_ENGINES_H
#define HORKOS_NODE_ENGINES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/craq/craq.h"
#include "engine/engine.h"
#include "engine/galene/galene.h"
#include "engine/hermes/hermes.h"
#include "engine/lotus/lotus.h"
#include "engine/occ/occ.h"
#include "engine/zab/zab.h"
#include "engine/zeus/zeus.h"

/* The configuration of a space's engine, whichever it is: what space_config.engine points to. */
union engines_config {
    struct hermes_config hermes;
    struct zab_config zab;
    struct craq_config craq;
    struct galene_config galene;
    struct zeus_config zeus;
    struct occ_config occ;
    struct lotus_config lotus;
};

/* What people may choose, in terms that are common to the engines; an engine leaves aside what does
 * not concern it. */
struct engines_options {
    uint64_t mlt_us;   /* message-loss timeout */
    uint64_t grace_us; /* far above the life of any message */
    bool ack_to_all;   /* hermes: [H] O3 */
    bool lockstep;     /* zab: total order in rounds of all members */
    uint8_t degree;    /* zeus, occ: replicas of an object; 0: max(3, minority + 1) */
    struct lotus_config lotus;
};
void engines_configure(const struct engine_ops *ops, const struct engines_options *options,
                       union engines_config *config_out);

/* The name of a kind of message that node_stats.homed_messages counts; NULL: none. */
const char *engines_homed_kind(uint32_t kind);

/* The same of node_stats.owned_messages. */
const char *engines_owned_kind(uint32_t kind);

/* NULL: there is no engine of that name. */
const struct engine_ops *engines_find(const char *name);
/* The i-th, in the order in which they are listed to people; NULL past the last. */
const struct engine_ops *engines_at(uint32_t i);

#endif
