/* Lotus's lock table over all small programs: what is sound, and, where rules can be switched off,
 * how many of the programs of three transactions over two locks can wait for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "explore/lotus_locks.h"
#include "support/explore_family.h"

#define PROGRAMS 1728u /* (4 + 8)^3 */

static void test_fast_configurations_are_sound(void **state)
{
    (void)state;
    explore_family_is_sound(EXPLORE_LOCKS, 4);
}

static struct locks_count count(enum lock_policy policy, bool servers, uint64_t rules_off,
                                bool invariants)
{
    struct locks_setup setup = {.policy = (uint8_t)policy,
                                .txns = 3,
                                .locks = 2,
                                .asks = 2,
                                .shared = true,
                                .servers = servers};
    struct search_bounds bounds = {.states_max = 0};
    struct search_result result;
    struct locks_count counted = locks_search(&setup, rules_off, invariants, &bounds, &result);
    assert_int_equal(counted.programs, PROGRAMS);
    search_result_deinit(&result);
    return counted;
}

/* The configurations above have wound_wait on two servers, the others on one. */
static void test_servers_apart_change_nothing(void **state)
{
    (void)state;
    struct locks_count counted = count(LOCK_WAIT_DIE, true, 0, true);
    assert_int_equal(counted.stuck, 0);
    assert_int_equal(counted.broken, 0);
}

#ifdef HK_MUTANTS
#define OFF(rule) (UINT64_C(1) << LOCK_RULE_##rule)

static void test_what_each_variant_of_the_policies_costs(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        enum lock_policy policy;
        bool servers;
        uint64_t off;
        uint32_t stuck;
    } rows[] = {
        {"wait_die, the youngest first", LOCK_WAIT_DIE, false,
         OFF(OLDEST) | OFF(BEHIND) | OFF(KILL) | OFF(KILL_LATE), 0},
        {"wait_die, the oldest first", LOCK_WAIT_DIE, false,
         OFF(BEHIND) | OFF(KILL) | OFF(KILL_LATE), 177},
        {"wait_die, figure 3(b)", LOCK_WAIT_DIE, false, OFF(KILL) | OFF(KILL_LATE), 125},
        {"wait_die, the younger die at promotion", LOCK_WAIT_DIE, false, OFF(KILL), 0},
        {"wait_die, the younger die when an older one comes", LOCK_WAIT_DIE, false, 0, 0},
        {"wound_wait, at once", LOCK_WOUND_WAIT, false, 0, 0},
        {"wound_wait, lazily", LOCK_WOUND_WAIT, true, 0, 0},
        {"wound_wait, the youngest first", LOCK_WOUND_WAIT, false, OFF(OLDEST), 358},
        {"wound_wait, owners alone", LOCK_WOUND_WAIT, false, OFF(WAITERS), 55},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct locks_count counted = count(rows[i].policy, rows[i].servers, rows[i].off, false);
        print_message("%-50s %4u of %u\n", rows[i].what, counted.stuck, counted.programs);
        assert_int_equal(counted.stuck, rows[i].stuck);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast_configurations_are_sound),
        cmocka_unit_test(test_servers_apart_change_nothing),
#ifdef HK_MUTANTS
        cmocka_unit_test(test_what_each_variant_of_the_policies_costs),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
