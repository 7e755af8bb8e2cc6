/* `horkos figures` as people run it: quick figures are made, the same seed gives the same files,
 * and what is asked wrongly is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/tools_figures.h"

static void test_quick_figure(void **state)
{
    (void)state;
    figures_make("--only 4.5", "a");
    char *csv = figures_file("a/figure-4.5.csv");
    assert_int_equal(strncmp(csv, "figure,series,x,y\n4.5,hermes,0,", 31), 0);
    /* Reads alone are what the model is calibrated by. */
    double reads = strtod(csv + 31, NULL);
    assert_true(reads > 970 && reads < 1000);
    assert_non_null(strstr(csv, "\n4.5,hermes,100,"));
    assert_non_null(strstr(csv, "\n4.5,craq,100,"));
    assert_non_null(strstr(csv, "\n4.5,zab,100,"));
    free(csv);
    char *script = figures_file("a/figure-4.5.gp");
    assert_non_null(strstr(script, "figure-4.5.svg"));
    free(script);
    char *out = figures_file("out");
    assert_non_null(strstr(out, "hermes, 1 % writes, MReq/s"));
    assert_null(strstr(out, "not played"));
    free(out);
}

/* Rounds of all members cannot be as fast as a log that waits for a majority only: the curve that
 * stands in for Derecho was once ZAB's own. */
static void test_lockstep_is_played(void **state)
{
    (void)state;
    figures_make("--only 4.9", "f");
    char *csv = figures_file("f/figure-4.9.csv");
    double zab = figures_y(csv, "4.9,zab,32");
    double lockstep = figures_y(csv, "4.9,zab-lockstep,32");
    assert_true(lockstep > 0 && lockstep < zab);
    free(csv);
}

/* Sums alone: whatever the machine, these are the numbers (docs/GALENE_MODEL.md works them out). */
static void test_analytical_figures(void **state)
{
    (void)state;
    figures_make("--only 3.3", "g");
    figures_make("--only 3.1", "g");
    figures_make("--only 3.8", "g");
    figures_make("--only 3.14", "g");
    char *hits = figures_file("g/figure-3.3.csv");
    double hit = figures_y(hits, "3.3,zipf 0.99,0.1");
    assert_true(hit > 63.03 && hit < 63.04);
    free(hits);
    char *load = figures_file("g/figure-3.1.csv");
    double hottest = figures_y(load, "3.1,hottest server in the mean of 100 seeds,128");
    assert_true(hottest > 6.5 && hottest < 7.2);
    free(load);
    char *reads = figures_file("g/figure-3.8.csv");
    double uniform = figures_y(reads, "3.8,uniform by equation 3.5,0.99");
    double cached = figures_y(reads, "3.8,ccKVS by equation 3.3,0.99");
    double base = figures_y(reads, "3.8,base by sums,0.99");
    assert_true(uniform > 234.5 && uniform < 234.7);
    assert_true(cached / uniform > 2.857 && cached / uniform < 2.858);
    assert_true(base > 0.8 * uniform && base < uniform);
    free(reads);
    /* At 128 servers half a percent of writes makes a cache useless. */
    char *servers = figures_file("g/figure-3.14.csv");
    assert_true(figures_y(servers, "3.14,ccKVS 0.2%,128") > figures_y(servers, "3.14,uniform,128"));
    assert_true(figures_y(servers, "3.14,ccKVS 1%,128") < figures_y(servers, "3.14,uniform,128"));
    free(servers);
}

static void test_same_seed_same_file(void **state)
{
    (void)state;
    figures_make("--only 4.7a --seed 5", "b");
    figures_make("--only 4.7a --seed 5", "c");
    figures_make("--only 4.7a --seed 6", "d");
    char *one = figures_file("b/figure-4.7a.csv");
    char *same = figures_file("c/figure-4.7a.csv");
    char *other = figures_file("d/figure-4.7a.csv");
    assert_string_equal(one, same);
    assert_string_not_equal(one, other);
    free(one);
    free(same);
    free(other);
}

static void test_json(void **state)
{
    (void)state;
    figures_make("--only 4.14 --json", "e");
    char *json = figures_file("out");
    assert_non_null(strstr(json, "\"quick\": true"));
    assert_non_null(strstr(json, "\"id\": \"4.14\""));
    assert_non_null(strstr(json, "\"series\": \"hermes-async average\""));
    free(json);
}

static void test_wrong_options(void **state)
{
    (void)state;
    assert_int_equal(figures_run("--quick"), 2);
    assert_int_equal(figures_run("--out /tmp --only 9.9"), 2);
    assert_int_equal(figures_run("--out /proc/no/such/folder --quick --only 4.10"), 1);
    assert_int_equal(figures_run("--list"), 0);
    char *out = figures_file("out");
    assert_non_null(strstr(out, "4.12"));
    free(out);
}

static void test_quick_figure_of_transactions(void **state)
{
    (void)state;
    figures_make("--only 5d --markdown", "w");
    char *csv = figures_file("w/figure-5d.csv");
    assert_true(figures_y(csv, "5d,zeus moves a transaction,0") == 0);
    assert_true(figures_y(csv, "5d,zeus moves a transaction,100") > 0.3);
    assert_true(figures_y(csv, "5d,zeus,0") > figures_y(csv, "5d,zeus,100"));
    assert_true(figures_y(csv, "5d,static,100") > 0);
    /* Two followers, three messages each, or fewer where a pipeline's share. */
    assert_true(figures_y(csv, "5d,zeus messages of a commit,0") < 6.5);
    char *out = figures_file("out");
    assert_non_null(strstr(out, "| remote (%) | 0 | 1 | 5 | 20 | 100 |"));
    assert_non_null(strstr(out, "\n| zeus over static |"));
    free(out);
    free(csv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick_figure),
        cmocka_unit_test(test_lockstep_is_played),
        cmocka_unit_test(test_same_seed_same_file),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_analytical_figures),
        cmocka_unit_test(test_quick_figure_of_transactions),
    };
    return cmocka_run_group_tests(tests, figures_setup, figures_teardown);
}
