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

void explore_family_misses(const char *config, uint32_t rule, const char *rule_name)
{
    const struct explore_config *found = explore_find(config);
    struct search_result result;
    assert_non_null(found);
    explore(found, UINT64_C(1) << rule, &result);
    if (result.end != SEARCH_VIOLATION) {
        print_error("%s without %s: %s\n", config, rule_name, search_end_names[result.end]);
    }
    assert_int_equal(result.end, SEARCH_VIOLATION);
    search_result_deinit(&result);
}
