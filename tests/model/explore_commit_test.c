/* The explorer on the reliable commit of Zeus: every state of the fast configurations, and, where
 * rules can be switched off, that it finds what they prevent. */
#include "engine/zeus/commit.h"
#include "support/explore_family.h"

static const struct explore_miss misses[] = {
    {"commit-follower", COMMIT_RULE_VAL_ANY_EPOCH}, {"commit-death", COMMIT_RULE_INV_MEMBER},
    {"commit-death", COMMIT_RULE_PARTIAL},          {"commit-pipes-death", COMMIT_RULE_OWN_PIPE},
    {"commit-death", COMMIT_RULE_DURABLE},          {"commit-death", COMMIT_RULE_WHOLE},
    {"commit-death", COMMIT_RULE_VERSION},          {"commit-death", COMMIT_RULE_VAL_VERSION},
    {"commit-partial", COMMIT_RULE_ALL_ACKS},       {"commit-death", COMMIT_RULE_REPLAY},
    {"commit-replicas", COMMIT_RULE_ORDER},         {"commit-follower", COMMIT_RULE_MASK},
    {"commit-takeover", COMMIT_RULE_RECOVERED},     {"commit-again", COMMIT_RULE_AGAIN},
    {"commit-pipes-death", COMMIT_RULE_READ},
};

int main(void)
{
    static const struct explore_tested tested = {
        .family = EXPLORE_COMMIT,
        .configs_min = 5,
        .rule_names = commit_rule_names,
        .misses = misses,
        .misses_n = sizeof misses / sizeof misses[0],
    };
    return explore_family_test(&tested);
}
