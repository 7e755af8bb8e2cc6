/* `horkos figures` as people run it: quick figures are made, the same seed gives the same files,
 * and what is asked wrongly is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/horkos-figures-XXXXXX";

static int run(const char *arguments)
{
    char command[1024];
    const char *program = getenv("HORKOS_PROGRAM");
    assert_non_null(program);
    snprintf(command, sizeof command, "'%s' figures %s >%s/out 2>%s/err </dev/null", program,
             arguments, folder, folder);
    int status = system(command);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static char *contents(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    size_t n = fread(text, 1, 65535, file);
    assert_true(n > 0 && n < 65535);
    fclose(file);
    return text;
}

static void make(const char *arguments, const char *sub)
{
    char all[512];
    snprintf(all, sizeof all, "--quick --out %s/%s %s", folder, sub, arguments);
    assert_int_equal(run(all), 0);
}

static void test_quick_figure(void **state)
{
    (void)state;
    make("--only 4.5", "a");
    char *csv = contents("a/figure-4.5.csv");
    assert_int_equal(strncmp(csv, "figure,series,x,y\n4.5,hermes,0,", 31), 0);
    /* Reads alone are what the model is calibrated by. */
    double reads = strtod(csv + 31, NULL);
    assert_true(reads > 970 && reads < 1000);
    assert_non_null(strstr(csv, "\n4.5,hermes,100,"));
    assert_non_null(strstr(csv, "\n4.5,craq,100,"));
    assert_non_null(strstr(csv, "\n4.5,zab,100,"));
    free(csv);
    char *script = contents("a/figure-4.5.gp");
    assert_non_null(strstr(script, "figure-4.5.svg"));
    free(script);
    char *out = contents("out");
    assert_non_null(strstr(out, "hermes, 1 % writes, MReq/s"));
    assert_null(strstr(out, "not played"));
    free(out);
}

static double value_at(const char *csv, const char *line)
{
    const char *at = strstr(csv, line);
    assert_non_null(at);
    return strtod(at + strlen(line), NULL);
}

/* Rounds of all members cannot be as fast as a log that waits for a majority only: the curve that
 * stands in for Derecho was once ZAB's own. */
static void test_lockstep_is_played(void **state)
{
    (void)state;
    make("--only 4.9", "f");
    char *csv = contents("f/figure-4.9.csv");
    double zab = value_at(csv, "\n4.9,zab,32,");
    double lockstep = value_at(csv, "\n4.9,zab-lockstep,32,");
    assert_true(lockstep > 0 && lockstep < zab);
    free(csv);
}

/* Sums alone: whatever the machine, these are the numbers (docs/GALENE_MODEL.md works them out). */
static void test_analytical_figures(void **state)
{
    (void)state;
    make("--only 3.3", "g");
    make("--only 3.1", "g");
    make("--only 3.8", "g");
    make("--only 3.14", "g");
    char *hits = contents("g/figure-3.3.csv");
    double hit = value_at(hits, "\n3.3,zipf 0.99,0.1,");
    assert_true(hit > 63.03 && hit < 63.04);
    free(hits);
    char *load = contents("g/figure-3.1.csv");
    double hottest = value_at(load, "\n3.1,hottest server in the mean of 100 seeds,128,");
    assert_true(hottest > 6.5 && hottest < 7.2);
    free(load);
    char *reads = contents("g/figure-3.8.csv");
    double uniform = value_at(reads, "\n3.8,uniform by equation 3.5,0.99,");
    double cached = value_at(reads, "\n3.8,ccKVS by equation 3.3,0.99,");
    double base = value_at(reads, "\n3.8,base by sums,0.99,");
    assert_true(uniform > 234.5 && uniform < 234.7);
    assert_true(cached / uniform > 2.857 && cached / uniform < 2.858);
    assert_true(base > 0.8 * uniform && base < uniform);
    free(reads);
    /* At 128 servers half a percent of writes makes a cache useless. */
    char *servers = contents("g/figure-3.14.csv");
    assert_true(value_at(servers, "\n3.14,ccKVS 0.2%,128,") >
                value_at(servers, "\n3.14,uniform,128,"));
    assert_true(value_at(servers, "\n3.14,ccKVS 1%,128,") <
                value_at(servers, "\n3.14,uniform,128,"));
    free(servers);
}

static void test_same_seed_same_file(void **state)
{
    (void)state;
    make("--only 4.7a --seed 5", "b");
    make("--only 4.7a --seed 5", "c");
    make("--only 4.7a --seed 6", "d");
    char *one = contents("b/figure-4.7a.csv");
    char *same = contents("c/figure-4.7a.csv");
    char *other = contents("d/figure-4.7a.csv");
    assert_string_equal(one, same);
    assert_string_not_equal(one, other);
    free(one);
    free(same);
    free(other);
}

static void test_json(void **state)
{
    (void)state;
    make("--only 4.14 --json", "e");
    char *json = contents("out");
    assert_non_null(strstr(json, "\"quick\": true"));
    assert_non_null(strstr(json, "\"id\": \"4.14\""));
    assert_non_null(strstr(json, "\"series\": \"hermes-async average\""));
    free(json);
}

static void test_wrong_options(void **state)
{
    (void)state;
    assert_int_equal(run("--quick"), 2);
    assert_int_equal(run("--out /tmp --only 9.9"), 2);
    assert_int_equal(run("--out /proc/no/such/folder --quick --only 4.10"), 1);
    assert_int_equal(run("--list"), 0);
    char *out = contents("out");
    assert_non_null(strstr(out, "4.12"));
    free(out);
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) == 0 ? 0 : -1;
}

/* y of a series at an x that is written as in the file. */
static double y_of(const char *csv, const char *series_and_x)
{
    char row[128];
    snprintf(row, sizeof row, "\n%s,", series_and_x);
    const char *at = strstr(csv, row);
    assert_non_null(at);
    return strtod(at + strlen(row), NULL);
}

static void test_quick_figure_of_transactions(void **state)
{
    (void)state;
    make("--only 5d --markdown", "w");
    char *csv = contents("w/figure-5d.csv");
    assert_true(y_of(csv, "5d,zeus moves a transaction,0") == 0);
    assert_true(y_of(csv, "5d,zeus moves a transaction,100") > 0.3);
    assert_true(y_of(csv, "5d,zeus,0") > y_of(csv, "5d,zeus,100"));
    assert_true(y_of(csv, "5d,static,100") > 0);
    /* Two followers, three messages each, or fewer where a pipeline's share. */
    assert_true(y_of(csv, "5d,zeus messages of a commit,0") < 6.5);
    char *out = contents("out");
    assert_non_null(strstr(out, "| remote (%) | 0 | 1 | 5 | 20 | 100 |"));
    assert_non_null(strstr(out, "\n| zeus over static |"));
    free(out);
    free(csv);
}

/* Lotus' points are of four servers of each kind, even in a quick run: what is wrong with a curve's
 * shape shows there. */
static void test_quick_threads_of_lotus(void **state)
{
    (void)state;
    make("--only L5 --markdown", "l");
    char *mixed = contents("l/figure-L5a.csv");
    char *reads = contents("l/figure-L5c.csv");
    /* Reads alone are in nobody's way: one try each, no wait, and more threads serve more. */
    assert_true(y_of(reads, "L5c,lotus wound_wait tries,40") < 1.01);
    assert_true(y_of(reads, "L5c,lotus wound_wait of them waited,40") == 0);
    double few = y_of(reads, "L5c,lotus wound_wait,8");
    double half = y_of(reads, "L5c,lotus wound_wait,24");
    assert_true(few < half && half < y_of(reads, "L5c,lotus wound_wait,40"));
    /* Half of workload A's requests write the same few records. A transaction that found another
     * in its way was tried again, and asked for more than its 16 rows; NO_WAIT never waits. */
    assert_true(y_of(mixed, "L5a,lotus wound_wait tries,40") > 1.2);
    assert_true(y_of(mixed, "L5a,lotus wound_wait rows asked for a commit,40") > 16);
    assert_true(y_of(mixed, "L5a,lotus no_wait of them waited,40") == 0);
    assert_true(y_of(mixed, "L5a,lotus wait_die of them waited,40") > 0);
    assert_true(y_of(mixed, "L5a,lotus wound_wait,40") < y_of(reads, "L5c,lotus wound_wait,40"));
    free(mixed);
    free(reads);
    char *out = contents("out");
    assert_non_null(strstr(out, "| threads | 8 | 16 | 24 | 32 | 40 |"));
    assert_non_null(strstr(out, "Lotus warmed up for 2 ms, measured for 4."));
    free(out);
}

/* What a memory server has of a machine's 48 threads its compute server lacks. Lotus gains by the
 * second of them, verbs need none. */
static void test_quick_memory_threads(void **state)
{
    (void)state;
    make("--only L17a", "m");
    char *csv = contents("m/figure-L17a.csv");
    static const char *const names[] = {"no_wait", "wait_die", "wound_wait"};
    for (size_t i = 0; i < 3; i++) {
        char one[64], two[64];
        snprintf(one, sizeof one, "L17a,lotus %s,1", names[i]);
        snprintf(two, sizeof two, "L17a,lotus %s,2", names[i]);
        assert_true(y_of(csv, two) > 1.2 * y_of(csv, one));
    }
    assert_true(y_of(csv, "L17a,one-sided no_wait,1") > 0);
    assert_true(y_of(csv, "L17a,one-sided no_wait,16") == y_of(csv, "L17a,one-sided no_wait,1"));
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
        cmocka_unit_test(test_quick_threads_of_lotus),
        cmocka_unit_test(test_quick_memory_threads),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
