/* Asking whether a rule of the protocol holds: a constant, except in builds with HK_MUTANTS. */
#ifndef HORKOS_ENGINE_GALENE_RULES_H
#define HORKOS_ENGINE_GALENE_RULES_H

#include <stdbool.h>

#include "engine/galene/galene.h"

#ifdef HK_MUTANTS
static inline bool galene_rule_on(const struct galene_config *config, enum galene_rule rule)
{
    return (config->rules_off >> rule & 1) == 0;
}
#else
static inline bool galene_rule_on(const struct galene_config *config, enum galene_rule rule)
{
    (void)config;
    (void)rule;
    return true;
}
#endif

#endif
