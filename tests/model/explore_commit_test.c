/* The explorer on the reliable commit of Zeus: every state of the fast configurations, and, where
 * rules can be switched off, that it finds what they prevent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/zeus/commit.h"
#include "support/explore_family.h"

static void test_fast_configurations_are_sound(void **state)
{
    (void)state;
    explore_family_is_sound(EXPLORE_COMMIT, 5);
}

#ifdef HK_MUTANTS
static void test_rules_are_missed(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        uint8_t rule;
    } cases[] = {
        {"commit-follower", COMMIT_RULE_VAL_ANY_EPOCH},
        {"commit-death", COMMIT_RULE_INV_MEMBER},
        {"commit-death", COMMIT_RULE_PARTIAL},
        {"commit-pipes-death", COMMIT_RULE_OWN_PIPE},
        {"commit-death", COMMIT_RULE_DURABLE},
        {"commit-death", COMMIT_RULE_WHOLE},
        {"commit-death", COMMIT_RULE_VERSION},
        {"commit-death", COMMIT_RULE_VAL_VERSION},
        {"commit-partial", COMMIT_RULE_ALL_ACKS},
        {"commit-death", COMMIT_RULE_REPLAY},
        {"commit-replicas", COMMIT_RULE_ORDER},
        {"commit-follower", COMMIT_RULE_MASK},
        {"commit-takeover", COMMIT_RULE_RECOVERED},
        {"commit-again", COMMIT_RULE_AGAIN},
        {"commit-pipes-death", COMMIT_RULE_READ},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        explore_family_misses(cases[i].config, cases[i].rule, commit_rule_names[cases[i].rule]);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast_configurations_are_sound),
#ifdef HK_MUTANTS
        cmocka_unit_test(test_rules_are_missed),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
