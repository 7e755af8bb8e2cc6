/* The explorer on the ownership of Zeus: every state of the fast configurations, and, where rules
 * can be switched off, that it finds what they prevent. */
#include "engine/zeus/own.h"
#include "support/explore_family.h"

static const struct explore_miss misses[] = {
    {"own-lost", OWN_RULE_RESULT},         {"own-trim-target", OWN_RULE_OWNER_ACK},
    {"own-race-three", OWN_RULE_ALL_ACKS}, {"own-trim", OWN_RULE_TRIM_ACK},
    {"own-commit", OWN_RULE_PENDING},      {"own-commit", OWN_RULE_HIGHEST_DATA},
    {"own-create", OWN_RULE_VALID_DRIVES}, {"own-race", OWN_RULE_HIGHER_INV},
    {"own-driver-death", OWN_RULE_FIRST},  {"own-replicas-death", OWN_RULE_REPLAY_WAITS},
    {"own-lost", OWN_RULE_REPLAY},         {"own-born", OWN_RULE_ENOUGH},
    {"own-born", OWN_RULE_FRESH},
};

int main(void)
{
    static const struct explore_tested tested = {
        .family = EXPLORE_OWN,
        .configs_min = 10,
        .rule_names = own_rule_names,
        .misses = misses,
        .misses_n = sizeof misses / sizeof misses[0],
    };
    return explore_family_test(&tested);
}
