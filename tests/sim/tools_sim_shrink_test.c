/* Shrinking as the program does it, each run in a process of its own: what dies, or never ends, is
 * shrunk like anything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/mutants.h"
#include "tools/sim_runs.h"

/* The first of the seeds that violates something, shrunk; fails if none does. */
static void shrink_first(const struct sim_config *config, uint64_t seeds, struct sim_shrunk *shrunk)
{
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        if (sim_shrink(config, seed, shrunk)) {
            return;
        }
        sim_shrunk_deinit(shrunk);
    }
    fail();
}

static void test_tampered(void **state)
{
    (void)state;
    const struct sim_config config = {.nodes = 3, .faults = SIM_FAULTS_ALL, .tamper = true};
    struct sim_shrunk shrunk;
    shrink_first(&config, 20, &shrunk);
    assert_true(shrunk.runs > 1 && shrunk.runs <= 150);
    assert_true(shrunk.history.n >= 2 && shrunk.history.n <= 10);
    assert_non_null(strstr(text_string(&shrunk.report), "not linearizable"));
    assert_non_null(strstr(text_string(&shrunk.command), "horkos sim --replay "));
    assert_non_null(strstr(text_string(&shrunk.command), " --until "));
    assert_non_null(strstr(text_string(&shrunk.command), " --tamper"));
    sim_shrunk_deinit(&shrunk);
}

static void test_sound(void **state)
{
    (void)state;
    const struct sim_config config = {.nodes = 3};
    struct sim_shrunk shrunk;
    assert_false(sim_shrink(&config, 1, &shrunk));
    assert_int_equal(shrunk.runs, 0);
    sim_shrunk_deinit(&shrunk);
}

#ifdef HK_MUTANTS
/* An acknowledgement is missing, so some run must show it, and its small run must do so, too. */
static void test_mutant(void **state)
{
    (void)state;
    struct sim_config config = {.nodes = 3, .faults = SIM_FAULTS_ALL};
    struct sim_shrunk shrunk;
    uint32_t mutant = mutant_find("hermes:ack_set");
    assert_true(mutant < mutants_count());
    mutant_switch_off(mutant, &config);
    shrink_first(&config, 100, &shrunk);
    assert_true(shrunk.runs > 1);
    assert_non_null(strstr(text_string(&shrunk.command), " --mutant 'hermes:ack_set'"));
    assert_non_null(strstr(text_string(&shrunk.report), "fault"));
    sim_shrunk_deinit(&shrunk);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tampered),
        cmocka_unit_test(test_sound),
#ifdef HK_MUTANTS
        cmocka_unit_test(test_mutant),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
