/* Asking whether a rule of the protocol holds: a constant, except in builds with HK_MUTANTS. */
#ifndef HORKOS_ENGINE_CRAQ_RULES_H
#define HORKOS_ENGINE_CRAQ_RULES_H

#include <stdbool.h>

#include "engine/craq/craq.h"

#ifdef HK_MUTANTS
static inline bool craq_rule_on(const struct craq_config *config, enum craq_rule rule)
{
    return (config->rules_off >> rule & 1) == 0;
}
#else
static inline bool craq_rule_on(const struct craq_config *config, enum craq_rule rule)
{
    (void)config;
    (void)rule;
    return true;
}
#endif

#endif
