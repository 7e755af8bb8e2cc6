/* The view protocol explored breadth-first: every fast configuration is searched to its end without
 * a violation and reaches what it is about, and, in HK_MUTANTS builds, for each rule that is
 * switched off some configuration finds the fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "explore/explore.h"
#include "explore/view_model.h"
#include "view/rules.h"

static const struct explore_config *find(const char *name)
{
    const struct explore_config *config = explore_view_configs;
    while (config->name != NULL && strcmp(config->name, name) != 0) {
        config++;
    }
    assert_non_null(config->name);
    return config;
}

static void explore(const struct explore_config *config, uint64_t rules_off,
                    struct search_result *result)
{
    struct explore_request request = {
        .rules_off = rules_off,
        .bounds = {.states_max = 400000, .memory_max = UINT64_C(2) << 30},
    };
    config->run(config, &request, result);
}

static void fast_ones_are_complete(void **state)
{
    (void)state;
    for (const struct explore_config *config = explore_view_configs; config->name != NULL;
         config++) {
        const struct views_config *setup = config->setup;
        struct search_result result;
        if (!config->fast) {
            continue;
        }
        explore(config, 0, &result);
        print_message("%-20s %8ju states, %9ju steps, depth %2u, goal reached in %ju\n",
                      config->name, (uintmax_t)result.states, (uintmax_t)result.steps, result.depth,
                      (uintmax_t)result.finished);
        if (result.end != SEARCH_COMPLETE) {
            print_message("%s: %s\n%s\n", search_end_names[result.end],
                          result.broken != NULL ? result.broken : "",
                          result.trace != NULL ? result.trace : "");
        }
        assert_int_equal(result.end, SEARCH_COMPLETE);
        assert_true(setup->goal == VIEWS_GOAL_NONE ? result.finished == 0 : result.finished > 0);
        search_result_deinit(&result);
    }
}

static void runs_are_equal(void **state)
{
    (void)state;
    struct search_result one, two;
    explore(find("view-shadow"), 0, &one);
    explore(find("view-shadow"), 0, &two);
    assert_true(one.states == two.states && one.steps == two.steps && one.depth == two.depth &&
                one.finished == two.finished);
    search_result_deinit(&one);
    search_result_deinit(&two);
}

/* The margin is what makes a slow clock harmless: one tick beyond it, and the fault is there. So
 * the explorer would notice a lease that is too long, in any build. */
static void drift_beyond_the_margin_is_noticed(void **state)
{
    (void)state;
    struct views_config beyond;
    struct search_result result;
    const struct explore_request request = {.bounds = {.states_max = 400000}};

    memcpy(&beyond, find("view-drift")->setup, sizeof beyond);
    beyond.budget[VIEWS_BUDGET_DRIFT]++;
    views_explore(&beyond, &request, &result);
    assert_int_equal(result.end, SEARCH_VIOLATION);
    assert_string_equal(result.broken, "a lease beside a later view without its holder");
    search_result_deinit(&result);
}

static uint64_t rule(enum view_rule rule)
{
    return (uint64_t)1 << rule;
}

static void each_rule_is_missed(void **state)
{
    (void)state;
    const struct {
        const char *config;
        uint64_t rules_off;
    } mutants[] = {
        {"view-drop", rule(VIEW_RULE_GRANTS_FIRST)},
        {"view-bridge", rule(VIEW_RULE_PROMISE_DROPS)},
        {"view-amnesia", rule(VIEW_RULE_MEMBERS_VOTE)},
        /* Each of the two suffices for safety. */
        {"view-amnesia", rule(VIEW_RULE_MEMBERS_GRANT) | rule(VIEW_RULE_GRANT_MEMBERS)},
        {"view-admission", rule(VIEW_RULE_ADMISSION_WAIT)},
        {"view-zombie", rule(VIEW_RULE_GRANT_EPOCH)},
        {"view-successor", rule(VIEW_RULE_GRANT_INCARNATION)},
        {"view-zombie-known", rule(VIEW_RULE_GRANT_MEMBERS)},
        {"view-drop", rule(VIEW_RULE_ACCEPT_ENDS_LEASE)},
        {"view-boot", rule(VIEW_RULE_FIRST_VIEW_ALL)},
        {"view-kept", rule(VIEW_RULE_KEPT_STATE)},
        {"view-joint", rule(VIEW_RULE_JOINT_MAJORITY)},
        {"view-pair", rule(VIEW_RULE_LIVE_MAJORITY)},
        {"view-drop", rule(VIEW_RULE_CONFIRM)},
        {"view-dropped", rule(VIEW_RULE_WIPE)},
        {"view-dropped", rule(VIEW_RULE_NO_READMIT)},
        {"view-shadow", rule(VIEW_RULE_ADOPTED)},
        {"view-wedge", rule(VIEW_RULE_HEALTHY)},
    };
    uint64_t all = 0;

    if (!VIEW_RULES_SWITCHABLE) {
        skip();
    }
    for (size_t i = 0; i < sizeof mutants / sizeof mutants[0]; i++) {
        struct search_result result;
        explore(find(mutants[i].config), mutants[i].rules_off, &result);
        print_message("%-20s without rules %#jx: %s after %ju states\n", mutants[i].config,
                      (uintmax_t)mutants[i].rules_off,
                      result.broken != NULL ? result.broken : "nothing", (uintmax_t)result.states);
        assert_int_equal(result.end, SEARCH_VIOLATION);
        assert_non_null(result.broken);
        assert_non_null(result.trace);
        search_result_deinit(&result);
        all |= mutants[i].rules_off;
    }
    assert_true(all == rule(VIEW_RULES) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_ones_are_complete),
        cmocka_unit_test(runs_are_equal),
        cmocka_unit_test(drift_beyond_the_margin_is_noticed),
        cmocka_unit_test(each_rule_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
