/* The explorer on the ownership of Zeus: every state of the fast configurations, and, where rules
 * can be switched off, that it finds what they prevent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/zeus/own.h"
#include "support/explore_family.h"

static void test_fast_configurations_are_sound(void **state)
{
    (void)state;
    explore_family_is_sound(EXPLORE_OWN, 10);
}

#ifdef HK_MUTANTS
static void test_rules_are_missed(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        uint8_t rule;
    } cases[] = {
        {"own-lost", OWN_RULE_RESULT},         {"own-trim-target", OWN_RULE_OWNER_ACK},
        {"own-race-three", OWN_RULE_ALL_ACKS}, {"own-trim", OWN_RULE_TRIM_ACK},
        {"own-commit", OWN_RULE_PENDING},      {"own-commit", OWN_RULE_HIGHEST_DATA},
        {"own-create", OWN_RULE_VALID_DRIVES}, {"own-race", OWN_RULE_HIGHER_INV},
        {"own-driver-death", OWN_RULE_FIRST},  {"own-replicas-death", OWN_RULE_REPLAY_WAITS},
        {"own-lost", OWN_RULE_REPLAY},         {"own-born", OWN_RULE_ENOUGH},
        {"own-born", OWN_RULE_FRESH},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        explore_family_misses(cases[i].config, cases[i].rule, own_rule_names[cases[i].rule]);
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
