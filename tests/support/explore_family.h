/* What is asked of every family of the explorer's configurations. */
#ifndef HORKOS_TESTS_EXPLORE_FAMILY_H
#define HORKOS_TESTS_EXPLORE_FAMILY_H

#include <stddef.h>

#include "explore/explore.h"

/* Its fast configurations, of which there are at least so many, are complete, sound, and no model
 * that stands still. */
void explore_family_is_sound(enum explore_family family, uint32_t at_least);
/* What a test program asks of a family. */
struct explore_tested {
    enum explore_family family;
    uint32_t configs_min; /* fast configurations, at least */
    const char *const *rule_names;
    /* Rules, each with a configuration that shows a violation without it: builds with mutants look
     * whether it does. */
    const struct explore_miss {
        const char *config;
        uint32_t rule;
    } * misses;
    size_t misses_n;
};
/* The whole program: how many of its tests fail. */
int explore_family_test(const struct explore_tested *tested);

#endif
