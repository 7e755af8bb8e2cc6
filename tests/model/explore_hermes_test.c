/* The explorer on Hermes: every state of the fast configurations, and, where rules can be switched
 * off, that it finds what they prevent. */
#include "explore/explore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/hermes/hermes.h"

static void explore(const struct explore_config *config, uint64_t rules_off, uint64_t states_max,
                    struct search_result *result)
{
    struct explore_request request = {.rules_off = rules_off, .bounds = {.states_max = states_max}};
    explore_run(config, &request, result);
}

static void test_names_are_unique(void **state)
{
    (void)state;
    assert_true(explore_count() > 10);
    for (uint32_t i = 0; i < explore_count(); i++) {
        assert_ptr_equal(explore_find(explore_at(i)->name), explore_at(i));
    }
    assert_null(explore_at(explore_count()));
    assert_null(explore_find("no such configuration"));
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
        if (config->family != EXPLORE_HERMES || !config->fast) {
            continue;
        }
        explore(config, 0, 1000000, &result);
        if (result.end != SEARCH_COMPLETE) {
            print_error("%s: %s\n%s", config->name, search_end_names[result.end],
                        result.trace == NULL ? "" : result.trace);
        }
        assert_int_equal(result.end, SEARCH_COMPLETE);
        assert_true(result.states > 50);
        assert_true(result.finished > 10);
        assert_true(result.depth > 5);
        search_result_deinit(&result);
        n++;
    }
    assert_true(n >= 10);
}

static void test_a_bound_is_told(void **state)
{
    (void)state;
    struct search_result result;
    explore(explore_find("two-writes"), 0, 100, &result);
    assert_int_equal(result.end, SEARCH_BOUND);
    assert_int_equal(result.states, 100);
    search_result_deinit(&result);
}

static void test_runs_are_repeatable(void **state)
{
    (void)state;
    struct search_result a, b;
    explore(explore_find("join"), 0, 0, &a);
    explore(explore_find("join"), 0, 0, &b);
    assert_int_equal(a.states, b.states);
    assert_int_equal(a.steps, b.steps);
    assert_int_equal(a.finished, b.finished);
    search_result_deinit(&a);
    search_result_deinit(&b);
}

#ifdef HK_MUTANTS
static void test_rules_are_missed(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        uint8_t rule;
        uint8_t steps; /* of the shortest execution that shows it */
    } cases[] = {
        {"two-writes", HERMES_RULE_ALL_ACKS, 3},
        {"two-writes", HERMES_RULE_ACK_SET, 4},
        {"two-writes", HERMES_RULE_READ_VALID, 2},
        {"two-writes", HERMES_RULE_VAL_TS, 8},
        {"write-rmw", HERMES_RULE_STEP, 7},
        {"two-rmws", HERMES_RULE_NO_OWN_ACK, 0},
        {"w-w-rmw", HERMES_RULE_ACK_SAME, 0},
        {"join-forget", HERMES_RULE_FIRST, 0},
        {"crash", HERMES_RULE_REPLAY, 0},
        {"crash", HERMES_RULE_WRITE_VAL, 0},
        {"crash-trans", HERMES_RULE_TRANS_REPLAY, 0},
        {"crash-rmw", HERMES_RULE_EPOCH, 0},
        {"crash-rmw", HERMES_RULE_ACK_RESET, 0},
        {"crash-rmw", HERMES_RULE_LOST_VALID, 8},
        {"rejoin", HERMES_RULE_CID, 0},
        {"join", HERMES_RULE_CHUNK_HIGHER, 0},
        {"join", HERMES_RULE_CHUNK_STATE, 5},
        {"join-forgotten", HERMES_RULE_CHUNK_REPORTED, 0},
        {"second-life", HERMES_RULE_VAL_MEMBER, 3},
        {"o3", HERMES_RULE_O3_WRITES, 8},
        {"o3-rejoin", HERMES_RULE_O3_EPOCH, 12},
        {"async", HERMES_RULE_CHECK, 9},
        {"delete-first", HERMES_RULE_AGREED_FORGET, 10},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct search_result result;
        const struct explore_config *config = explore_find(cases[i].config);
        assert_non_null(config);
        explore(config, UINT64_C(1) << cases[i].rule, 200000, &result);
        if (result.end != SEARCH_VIOLATION) {
            print_error("%s does not show %s\n", cases[i].config, hermes_rule_names[cases[i].rule]);
        }
        assert_int_equal(result.end, SEARCH_VIOLATION);
        assert_non_null(result.trace);
        assert_non_null(strstr(result.trace, result.broken));
        if (cases[i].steps != 0) {
            assert_int_equal(result.depth + 1, cases[i].steps);
        }
        search_result_deinit(&result);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_unique),
        cmocka_unit_test(test_fast_configurations_are_sound),
        cmocka_unit_test(test_a_bound_is_told),
        cmocka_unit_test(test_runs_are_repeatable),
#ifdef HK_MUTANTS
        cmocka_unit_test(test_rules_are_missed),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
