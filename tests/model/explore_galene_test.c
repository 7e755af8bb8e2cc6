/* The explorer on Galene: every state of the fast configurations, and, where rules can be switched
 * off, that it finds what they prevent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/galene/galene.h"
#include "support/explore_family.h"

static void test_fast_configurations_are_sound(void **state)
{
    (void)state;
    explore_family_is_sound(EXPLORE_GALENE, 5);
}

#ifdef HK_MUTANTS
static void test_rules_are_missed(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        uint8_t rule;
    } cases[] = {
        {"galene-writes", GALENE_RULE_ALL_ACKS},      {"galene-writes", GALENE_RULE_ACK_ALWAYS},
        {"galene-writes", GALENE_RULE_LOSER_DONE},    {"galene-writes", GALENE_RULE_OVERTAKEN},
        {"galene-writes", GALENE_RULE_HIGHER},        {"galene-writes", GALENE_RULE_READ_VALID},
        {"galene-writes", GALENE_RULE_UPD_TS},        {"galene-rmws", GALENE_RULE_NACK},
        {"galene-write-rmw", GALENE_RULE_RMW_STEP},   {"galene-w-w-rmw", GALENE_RULE_NAMED},
        {"galene-again", GALENE_RULE_UPD_GENERATION}, {"galene-hot", GALENE_RULE_ENTER_ALL},
        {"galene-hot", GALENE_RULE_REPORT_IDLE},      {"galene-hot", GALENE_RULE_LEAVING},
        {"galene-hot", GALENE_RULE_REPORTED},         {"galene-hot", GALENE_RULE_DROPPED_ALL},
        {"galene-join", GALENE_RULE_REENTER},         {"galene-death", GALENE_RULE_RESCUE_VALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        explore_family_misses(cases[i].config, cases[i].rule, galene_rule_names[cases[i].rule]);
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
