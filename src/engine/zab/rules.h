/* Asking whether a rule of the protocol holds: engine/hermes/rules.h says how that works. */
#ifndef HORKOS_ENGINE_ZAB_RULES_H
#define HORKOS_ENGINE_ZAB_RULES_H

#include <stdbool.h>

#include "engine/zab/zab.h"

#ifdef HK_MUTANTS
static inline bool zab_rule_on(const struct zab_config *config, enum zab_rule rule)
{
    return (config->rules_off >> rule & 1) == 0;
}
#else
static inline bool zab_rule_on(const struct zab_config *config, enum zab_rule rule)
{
    (void)config;
    (void)rule;
    return true;
}
#endif

#endif
