/* What clients say: every data command of the command table, most of it in checked histories. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "resp/command.h"
#include "sim/calendar.h"
#include "sim/phrase.h"
#include "sim/report.h"

#define SEEDS 200u
/* Of each command, in so many seeds. */
#define LEAST 10u

/* Of the table; a new one wants a phrase. */
#define DATA_COMMANDS 44u

static struct sim_report report;

static int run_all(void **state)
{
    (void)state;
    const struct sim_config config = {.nodes = 3, .faults = SIM_FAULTS_ALL};
    sim_report_init(&report, &config, 1);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_result result;
        sim_run(&config, seed, &result);
        sim_report_add(&report, seed, &result);
        sim_result_deinit(&result);
    }
    return 0;
}

static int forget_all(void **state)
{
    (void)state;
    sim_report_deinit(&report);
    return 0;
}

static uint64_t times_said(const char *parent, const char *name)
{
    char full[2 * PHRASE_COMMAND_BYTES];
    uint64_t sum = 0;
    snprintf(full, sizeof full, "%s%s%s", parent, parent[0] == '\0' ? "" : "|", name);
    for (uint32_t i = 0; i < phrases_n; i++) {
        char command[PHRASE_COMMAND_BYTES];
        phrase_command(i, command);
        sum += strcmp(command, full) == 0 ? report.sum.phrases[i] : 0;
    }
    if (sum < LEAST) {
        print_error("%s was said %u times\n", full, (unsigned)sum);
    }
    return sum;
}

/* Ranges are for spaces with tables, whose traders ask the node itself (sim/trader.c); what their
 * commands say is resp_range_test's. */
static bool is_range(const struct resp_command *command)
{
    return strcmp(command->name, "range") == 0 || strcmp(command->name, "rangecount") == 0 ||
           strcmp(command->name, "delrange") == 0;
}

static void test_every_data_command_is_said(void **state)
{
    (void)state;
    uint32_t n = 0;
    for (uint32_t i = 0; i < resp_command_count(); i++) {
        const struct resp_command *command = resp_command_at(i);
        if ((command->flags & RESP_DATA) != 0 && !is_range(command)) {
            n++;
            assert_true(times_said("", command->name) >= LEAST);
        }
        for (uint32_t j = 0; j < command->subcommands_n; j++) {
            const struct resp_command *sub = &command->subcommands[j];
            if ((sub->flags & RESP_DATA) != 0) {
                n++;
                assert_true(times_said(command->name, sub->name) >= LEAST);
            }
        }
    }
    assert_int_equal(n, DATA_COMMANDS);
}

static void test_every_phrase_is_said(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < phrases_n; i++) {
        if (report.sum.phrases[i] == 0) {
            print_error("never said: %s\n", phrases[i].words);
        }
        assert_true(report.sum.phrases[i] > 0);
    }
}

/* What a phrase is about is a command of the table, unless it is there to be refused. */
static void test_phrases_are_commands(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < phrases_n; i++) {
        char name[PHRASE_COMMAND_BYTES];
        phrase_command(i, name);
        if (phrases[i].kind != PHRASE_QUIET && name[0] != '\0') {
            assert_non_null(resp_command_find_full(bytes_of(name, (uint32_t)strlen(name))));
        }
    }
}

static void test_most_is_in_histories(void **state)
{
    (void)state;
    const struct sim_stats *s = &report.sum;
    assert_true(s->ops_ok > 50000);
    /* Of all answers, in a hundred fewer than six only the form is checked. */
    assert_true(s->ops_extra * 100 < (s->ops + s->ops_extra) * 6);
}

static void test_calendar(void **state)
{
    (void)state;
    struct calendar calendar = {0};
    assert_true(calendar_earliest(&calendar, 5) == UINT64_MAX);
    assert_true(calendar_latest(&calendar, 5) == UINT64_MAX);
    calendar_note(&calendar, 10, 100, 200);
    calendar_note(&calendar, 11, 100, 200); /* nothing new */
    calendar_note(&calendar, 20, 150, 300);
    calendar_note(&calendar, 30, 90, 250); /* one was set back */
    calendar_note(&calendar, 40, 160, 320);
    assert_int_equal(calendar.n, 4);
    assert_true(calendar_earliest(&calendar, 200) == 10);
    assert_true(calendar_earliest(&calendar, 201) == 20);
    assert_true(calendar_earliest(&calendar, 310) == 40);
    assert_true(calendar_earliest(&calendar, 321) == UINT64_MAX);
    assert_true(calendar_latest(&calendar, 90) == 10);
    assert_true(calendar_latest(&calendar, 95) == 40);
    assert_true(calendar_latest(&calendar, 160) == 40);
    assert_true(calendar_latest(&calendar, 161) == UINT64_MAX);
    calendar_deinit(&calendar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_data_command_is_said),
        cmocka_unit_test(test_every_phrase_is_said),
        cmocka_unit_test(test_phrases_are_commands),
        cmocka_unit_test(test_most_is_in_histories),
        cmocka_unit_test(test_calendar),
    };
    return cmocka_run_group_tests(tests, run_all, forget_all);
}
