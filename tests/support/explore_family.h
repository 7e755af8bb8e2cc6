/* What is asked of every family of the explorer's configurations. */
#ifndef HORKOS_TESTS_EXPLORE_FAMILY_H
#define HORKOS_TESTS_EXPLORE_FAMILY_H

#include "explore/explore.h"

/* Its fast configurations, of which there are at least so many, are complete, sound, and no model
 * that stands still. */
void explore_family_is_sound(enum explore_family family, uint32_t at_least);
/* Without the rule the configuration shows a violation. Builds with mutants only. */
void explore_family_misses(const char *config, uint32_t rule, const char *rule_name);

#endif
