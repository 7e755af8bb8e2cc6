#include "support/explore_family.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void explore(const struct explore_config *config, uint64_t rules_off,
                    struct search_result *result)
{
    struct explore_request request = {.rules_off = rules_off, .bounds = {.states_max = 400000}};
    explore_run(config, &request, result);
}

/* The count of states depends on the code; that there are hardly any would mean that the model does
 * not move. */
void explore_family_is_sound(enum explore_family family, uint32_t at_least)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < explore_count(); i++) {
        const struct explore_config *config = explore_at(i);
        struct search_result result;
        if (config->family != family || !config->fast) {
            continue;
        }
        explore(config, 0, &result);
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
    assert_true(n >= at_least);
}

static void is_sound(void **state)
{
    const struct explore_tested *tested = *state;
    explore_family_is_sound(tested->family, tested->configs_min);
}

#ifdef HK_MUTANTS
static void needs_its_rules(void **state)
{
    const struct explore_tested *tested = *state;
    for (size_t i = 0; i < tested->misses_n; i++) {
        const struct explore_miss *miss = &tested->misses[i];
        const struct explore_config *config = explore_find(miss->config);
        struct search_result result;
        assert_non_null(config);
        explore(config, UINT64_C(1) << miss->rule, &result);
        if (result.end != SEARCH_VIOLATION) {
            print_error("%s without %s: %s\n", miss->config, tested->rule_names[miss->rule],
                        search_end_names[result.end]);
        }
        assert_int_equal(result.end, SEARCH_VIOLATION);
        search_result_deinit(&result);
    }
}
#endif

int explore_family_test(const struct explore_tested *tested)
{
    void *state = (void *)(uintptr_t)tested;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(is_sound, state),
#ifdef HK_MUTANTS
        cmocka_unit_test_prestate(needs_its_rules, state),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
