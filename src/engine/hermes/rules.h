/* Asking whether a rule of the protocol holds. In builds with HK_MUTANTS a configuration names the
 * rules that a test switched off, so that the test can show the fault that each of them prevents;
 * in every other build the answer is the constant true and the compiler removes the question. */
#ifndef HORKOS_ENGINE_HERMES_RULES_H
#define HORKOS_ENGINE_HERMES_RULES_H

#include <stdbool.h>

#include "engine/hermes/hermes.h"

#ifdef HK_MUTANTS
static inline bool rule_on(const struct hermes_config *config, enum hermes_rule rule)
{
    return (config->rules_off >> rule & 1) == 0;
}

static inline bool rules_all_on(const struct hermes_config *config)
{
    return config->rules_off == 0;
}
#else
static inline bool rule_on(const struct hermes_config *config, enum hermes_rule rule)
{
    (void)config;
    (void)rule;
    return true;
}

static inline bool rules_all_on(const struct hermes_config *config)
{
    (void)config;
    return true;
}
#endif

#endif
