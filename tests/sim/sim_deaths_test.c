/* Every role dies in every state of both machines of Zeus: the cases come from the two tables
 * (sim/death.h), and each run is held against everything that the simulator checks: the history of
 * transactions, the bank, single keys, replicas, and that all is well in the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/death.h"
#include "sim/sim.h"

/* Runs of a case until one meets it: mostly one or two; about twenty of the rarest, a request to
 * destroy that is put off. */
#define TRIES 60u
/* Every change of what runs do moves which seeds meet a case; of the rarest there may be none. */
#define MISSED_MAX 2u

struct sum {
    uint32_t met, runs, deaths;
};

/* Other deaths besides, without which nobody replays or waits for the others. */
static const uint32_t besides[] = {1u << SIM_FAULT_CRASH | 1u << SIM_FAULT_LOSS,
                                   1u << SIM_FAULT_CRASH};

static void die(uint32_t which, struct sum *sum)
{
    char name[DEATH_NAME_BYTES];
    uint32_t deaths = 0;
    uint32_t least = death_nodes(which);
    death_name(which, name);
    for (uint32_t i = 0; i < TRIES && deaths == 0; i++) {
        struct sim_config config = {
            .engine = "zeus",
            .nodes = least == 3 && (which + i) % 6 == 0 ? 5 : least,
            .ops = 30,
            .clients_max = 2,
            .keys_max = 2,
            .faults = besides[i % 2],
            .death = which,
        };
        struct sim_result result;
        sim_run(&config, 100 * which + i, &result);
        if (result.verdict != SIM_SOUND) {
            print_error("%s, seed %u of %u nodes: %s\n", name, 100 * which + i, config.nodes,
                        text_string(&result.report));
        }
        assert_int_equal(result.verdict, SIM_SOUND);
        deaths += (uint32_t)result.stats.deaths;
        sum->runs++;
        sim_result_deinit(&result);
    }
    if (deaths == 0) {
        printf("not met in %u runs: %s\n", TRIES, name);
    }
    sum->met += deaths > 0;
    sum->deaths += deaths;
}

static void test_every_role_dies_in_every_state(void **state)
{
    (void)state;
    struct sum sum = {0};
    for (uint32_t i = 1; i <= death_cases(); i++) {
        die(i, &sum);
    }
    printf("%u cases of the two tables, %u met; %u runs, in which %u processes died there\n",
           death_cases(), sum.met, sum.runs, sum.deaths);
    assert_true(sum.met + MISSED_MAX >= death_cases());
}

static void test_names(void **state)
{
    (void)state;
    assert_true(death_cases() >= 50);
    for (uint32_t i = 1; i <= death_cases(); i++) {
        char name[DEATH_NAME_BYTES];
        death_name(i, name);
        assert_int_equal(death_find(name), i);
        assert_in_range(death_nodes(i), death_before(i) == 0 ? 3 : 5, SIM_NODES_MAX);
    }
    assert_int_equal(death_find("owner sleeps"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_every_role_dies_in_every_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
