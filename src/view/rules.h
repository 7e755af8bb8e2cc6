/* Asking whether a rule holds. In builds with HK_MUTANTS a machine carries the set of rules that a
 * test switched off, so that the test can show the fault that the rule prevents; in every other
 * build the answer is the constant true and the compiler removes the question. */
#ifndef HORKOS_VIEW_RULES_H
#define HORKOS_VIEW_RULES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef HK_MUTANTS
#define VIEW_RULES_SWITCHABLE true
#else
#define VIEW_RULES_SWITCHABLE false
#endif

/* rules_off: bit i switches off the enum view_rule i. */
static inline bool view_rule_in(uint64_t rules_off, unsigned rule)
{
    return !VIEW_RULES_SWITCHABLE || (rules_off >> rule & 1) == 0;
}

#endif
