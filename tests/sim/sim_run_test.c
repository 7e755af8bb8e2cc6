/* The simulator itself: a run is a function of its seed, and what is wrong is called wrong. That
 * the code under test does well is for sim_seeds_test.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/report.h"
#include "sim/setup.h"
#include "sim/sim.h"

static const struct sim_config plain = {.nodes = 3, .faults = SIM_FAULTS_ALL};

/* The trace of a run; the caller frees it. */
static char *trace_of(uint64_t seed, uint64_t *hash_out)
{
    struct sim_config config = plain;
    struct sim_result result;
    config.trace = tmpfile();
    assert_non_null(config.trace);
    sim_run(&config, seed, &result);
    *hash_out = result.hash;
    sim_result_deinit(&result);
    long length = ftell(config.trace);
    assert_true(length > 10000);
    char *text = calloc(1, (size_t)length + 1);
    assert_non_null(text);
    rewind(config.trace);
    assert_int_equal(fread(text, 1, (size_t)length, config.trace), length);
    fclose(config.trace);
    return text;
}

static void test_same_seed_same_run(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        uint64_t hash_1 = 0;
        uint64_t hash_2 = 0;
        char *trace_1 = trace_of(seed, &hash_1);
        /* Memory that lies elsewhere, and is not clean, changes nothing. */
        void *shift = malloc(12345);
        assert_non_null(shift);
        memset(shift, 0xa5, 12345);
        char *trace_2 = trace_of(seed, &hash_2);
        assert_string_equal(trace_1, trace_2);
        assert_true(hash_1 == hash_2);
        free(shift);
        free(trace_1);
        free(trace_2);
    }
}

/* Tracing may not change what it shows. */
static void test_trace_changes_nothing(void **state)
{
    (void)state;
    uint64_t traced = 0;
    free(trace_of(7, &traced));
    struct sim_result result;
    sim_run(&plain, 7, &result);
    assert_true(result.hash == traced);
    sim_result_deinit(&result);
}

static void test_seeds_differ(void **state)
{
    (void)state;
    struct sim_result a;
    struct sim_result b;
    sim_run(&plain, 1, &a);
    sim_run(&plain, 2, &b);
    assert_true(a.hash != b.hash);
    sim_result_deinit(&a);
    sim_result_deinit(&b);
}

/* One read is recorded wrongly: the history is refused, end to end. */
static void test_bad_history_is_refused(void **state)
{
    (void)state;
    struct sim_config config = plain;
    uint32_t refused = 0;
    config.tamper = true;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim_result result;
        sim_run(&config, seed, &result);
        if (result.verdict == SIM_VIOLATION) {
            refused++;
            assert_true(result.refused.n > 0);
            assert_non_null(strstr(text_string(&result.report), "not linearizable"));
            assert_non_null(strstr(text_string(&result.report), "faults end at"));
        }
        sim_result_deinit(&result);
    }
    /* A few seeds have too few reads of one key that holds unique values. */
    assert_true(refused >= 10);
}

static void test_no_faults_if_none_are_allowed(void **state)
{
    (void)state;
    struct sim_config config = plain;
    config.faults = 0;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct sim_result result;
        sim_run(&config, seed, &result);
        assert_int_equal(result.verdict, SIM_SOUND);
        assert_true(result.stats.fault_kinds == 0);
        assert_true(result.stats.view_changes == 0);
        /* Where memory is short, clients whose writes are refused go elsewhere in mid-operation. */
        bool short_of_memory = strstr(text_string(&result.plan), "  memory ") != NULL;
        /* A command that fails for one of its keys does not say what became of the others. */
        const struct sim_stats *stats = &result.stats;
        assert_true(short_of_memory || stats->ops_unknown <= 2 * stats->ops_failed);
        sim_result_deinit(&result);
    }
}

/* Each kind alone, so that none hides behind another. */
static void test_each_kind_befalls(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind < SIM_FAULTS; kind++) {
        struct sim_config config = plain;
        uint64_t times = 0;
        config.faults = 1u << kind;
        for (uint64_t seed = 1; seed <= 10; seed++) {
            struct sim_result result;
            sim_run(&config, seed, &result);
            assert_int_equal(result.verdict, SIM_SOUND);
            for (uint32_t other = 0; other < SIM_FAULTS; other++) {
                assert_true(other == kind || result.stats.faults[other] == 0);
            }
            times += result.stats.faults[kind];
            sim_result_deinit(&result);
        }
        if (times == 0) {
            print_error("no %s in ten seeds\n", sim_fault_names[kind]);
        }
        assert_true(times > 0);
    }
}

/* Deals of one operation each, on an engine that has no transactions: their history is judged, and
 * a read that is recorded wrongly refused. */
static void test_deals(void **state)
{
    (void)state;
    struct sim_config config = plain;
    uint32_t refused = 0;
    config.trade = true;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim_result result;
        config.tamper = false;
        sim_run(&config, seed, &result);
        assert_int_equal(result.verdict, SIM_SOUND);
        assert_true(result.stats.deals_ok >= 30);
        assert_true(result.stats.deals_ok + result.stats.deals_aborted +
                        result.stats.deals_unknown ==
                    result.stats.deals);
        sim_result_deinit(&result);
        config.tamper = true;
        sim_run(&config, seed, &result);
        refused += strstr(text_string(&result.report), "not strictly serializable") != NULL;
        sim_result_deinit(&result);
    }
    assert_true(refused >= 10);
}

/* Transactions that are said as commands. Without faults nothing may be lost or undone. */
static void test_spoken_deals(void **state)
{
    (void)state;
    struct sim_config config = {.engine = "zeus", .nodes = 3, .faults = 0};
    uint64_t spoken = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct sim_result result;
        sim_run(&config, seed, &result);
        assert_int_equal(result.verdict, SIM_SOUND);
        assert_true(result.stats.deals_spoken < result.stats.deals_ok);
        spoken += result.stats.deals_spoken;
        sim_result_deinit(&result);
    }
    assert_true(spoken >= 500);
}

static void test_report_counts(void **state)
{
    (void)state;
    struct sim_report report;
    sim_report_init(&report, &plain, 3);
    for (uint64_t seed = 3; seed < 6; seed++) {
        struct sim_result result;
        sim_run(&plain, seed, &result);
        sim_report_add(&report, seed, &result);
        sim_result_deinit(&result);
    }
    assert_true(report.seeds == 3 && sim_report_sound(&report));
    assert_true(report.least_ops_ok >= 300 && report.sum.ops_ok >= 900);
    sim_report_add_death(&report, 6, "Aborted");
    assert_true(report.seeds == 4 && !sim_report_sound(&report));
    assert_true(report.findings_n == 1 && report.findings[0].seed == 6);
    assert_non_null(strstr(text_string(&report.findings[0].text), "seed 6: 3 nodes"));
    FILE *to = tmpfile();
    assert_non_null(to);
    sim_report_json(&report, 1.5, to);
    sim_report_text(&report, 1.5, to);
    assert_true(ftell(to) > 500);
    fclose(to);
    sim_report_deinit(&report);
}

/* However many runs were stranded before, a violation is told of. */
static void test_report_keeps_violations(void **state)
{
    (void)state;
    struct sim_report report;
    struct sim_result stranded = {.verdict = SIM_STRANDED};
    struct sim_result violation = {.verdict = SIM_VIOLATION};
    struct sim_shrunk shrunk = {.runs = 7};
    sim_report_init(&report, &plain, 1);
    text_add(&stranded.report, "a majority is gone");
    text_add(&violation.report, "something is broken");
    for (uint64_t seed = 1; seed <= REPORT_FINDINGS_MAX + 5; seed++) {
        sim_report_add(&report, seed, &stranded);
    }
    sim_report_add(&report, 1000, &violation);
    sim_report_add_shrunk(&report, &shrunk);
    assert_int_equal(report.findings_n, REPORT_FINDINGS_MAX);
    const struct sim_finding *finding = &report.findings[0];
    while (finding->seed != 1000) {
        finding++;
        assert_true(finding < report.findings + REPORT_FINDINGS_MAX);
    }
    assert_int_equal(finding->verdict, SIM_VIOLATION);
    assert_string_equal(text_string(&finding->text), "something is broken");
    assert_int_equal(finding->shrunk.runs, 7);
    sim_report_deinit(&report);
    sim_result_deinit(&stranded);
    sim_result_deinit(&violation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_run),
        cmocka_unit_test(test_trace_changes_nothing),
        cmocka_unit_test(test_seeds_differ),
        cmocka_unit_test(test_bad_history_is_refused),
        cmocka_unit_test(test_no_faults_if_none_are_allowed),
        cmocka_unit_test(test_each_kind_befalls),
        cmocka_unit_test(test_deals),
        cmocka_unit_test(test_spoken_deals),
        cmocka_unit_test(test_report_counts),
        cmocka_unit_test(test_report_keeps_violations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
