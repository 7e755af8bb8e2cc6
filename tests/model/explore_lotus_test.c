/* The explorer on Lotus's two-phase commit: every state of the fast configurations, and, where
 * rules can be switched off, that it finds what they prevent. */
#include "engine/lotus/lotus.h"
#include "support/explore_family.h"

static const struct explore_miss misses[] = {
    {"lotus-reader", LOTUS_RULE_PREPARE_READ}, {"lotus-three", LOTUS_RULE_ABORT_ALL},
    {"lotus-commit", LOTUS_RULE_ALL_PREPARED}, {"lotus-death", LOTUS_RULE_NO_TIMEOUT},
    {"lotus-death", LOTUS_RULE_OUTCOMES},      {"lotus-deaths", LOTUS_RULE_EPOCH},
    {"lotus-deaths", LOTUS_RULE_DOUBT_ALL},    {"lotus-death", LOTUS_RULE_DOUBT},
    {"lotus-death", LOTUS_RULE_GONE},          {"lotus-deaths", LOTUS_RULE_UNSURE},
    {"lotus-joins", LOTUS_RULE_PROCESS},
};

int main(void)
{
    static const struct explore_tested tested = {
        .family = EXPLORE_LOTUS,
        .configs_min = 8,
        .rule_names = lotus_rule_names,
        .misses = misses,
        .misses_n = sizeof misses / sizeof misses[0],
    };
    return explore_family_test(&tested);
}
