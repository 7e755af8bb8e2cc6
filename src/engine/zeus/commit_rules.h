/* Asking whether a rule of reliable commit holds: engine/hermes/rules.h says how that works. */
#ifndef HORKOS_ENGINE_ZEUS_COMMIT_RULES_H
#define HORKOS_ENGINE_ZEUS_COMMIT_RULES_H

#include <stdbool.h>

#include "engine/zeus/commit.h"

#ifdef HK_MUTANTS
static inline bool commit_rule_on(const struct commit_config *config, enum commit_rule rule)
{
    return (config->rules_off >> rule & 1) == 0;
}
#else
static inline bool commit_rule_on(const struct commit_config *config, enum commit_rule rule)
{
    (void)config;
    (void)rule;
    return true;
}
#endif

#endif
