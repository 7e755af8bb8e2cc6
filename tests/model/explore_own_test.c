/* The explorer on the ownership of Zeus: every state of the fast configurations, and, where rules
 * can be switched off, that it finds what they prevent. */
#include "explore/explore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/zeus/own.h"

static void explore(const char *name, uint64_t rules_off, struct search_result *result)
{
    struct explore_request request = {.rules_off = rules_off, .bounds = {.states_max = 400000}};
    const struct explore_config *config = explore_find(name);
    assert_non_null(config);
    explore_run(config, &request, result);
}

/* The count of states depends on the code; that there are hardly any would mean that the model does
 * not move. */
static void test_fast_configurations_are_sound(void **state)
{
    (void)state;
    uint32_t n = 0;
    for (uint32_t i = 0; i < explore_count(); i++) {
        const struct explore_config *config = explore_at(i);
        struct search_result result;
        if (config->family != EXPLORE_OWN || !config->fast) {
            continue;
        }
        explore(config->name, 0, &result);
        if (result.end != SEARCH_COMPLETE) {
            print_error("%s: %s\n%s", config->name, search_end_names[result.end],
                        result.trace == NULL ? "" : result.trace);
        }
        assert_int_equal(result.end, SEARCH_COMPLETE);
        assert_true(result.states > 50);
        assert_true(result.finished > 0);
        assert_true(result.depth > 5);
        search_result_deinit(&result);
        n++;
    }
    assert_true(n >= 10);
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
        {"own-lost", OWN_RULE_REPLAY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct search_result result;
        explore(cases[i].config, UINT64_C(1) << cases[i].rule, &result);
        if (result.end != SEARCH_VIOLATION) {
            print_error("%s without %s: %s\n", cases[i].config, own_rule_names[cases[i].rule],
                        search_end_names[result.end]);
        }
        assert_int_equal(result.end, SEARCH_VIOLATION);
        search_result_deinit(&result);
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
