/* The explorer on Lotus's two-phase commit: every state of the fast configurations, and, where
 * rules can be switched off, that it finds what they prevent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/lotus/lotus.h"
#include "support/explore_family.h"

static void test_fast_configurations_are_sound(void **state)
{
    (void)state;
    explore_family_is_sound(EXPLORE_LOTUS, 8);
}

#ifdef HK_MUTANTS
static void test_rules_are_missed(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        uint8_t rule;
    } cases[] = {
        {"lotus-reader", LOTUS_RULE_PREPARE_READ}, {"lotus-three", LOTUS_RULE_ABORT_ALL},
        {"lotus-commit", LOTUS_RULE_ALL_PREPARED}, {"lotus-death", LOTUS_RULE_NO_TIMEOUT},
        {"lotus-death", LOTUS_RULE_OUTCOMES},      {"lotus-deaths", LOTUS_RULE_EPOCH},
        {"lotus-deaths", LOTUS_RULE_DOUBT_ALL},    {"lotus-death", LOTUS_RULE_DOUBT},
        {"lotus-death", LOTUS_RULE_GONE},          {"lotus-deaths", LOTUS_RULE_UNSURE},
        {"lotus-joins", LOTUS_RULE_PROCESS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        explore_family_misses(cases[i].config, cases[i].rule, lotus_rule_names[cases[i].rule]);
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
