/* The shapes of Lotus' figures that this program reproduces (docs/FIGURES.md has those that it does
 * not, of which nothing is asserted here), in quick runs with the standard seed: four servers of
 * each kind, few records, so many conflicts, and milliseconds, which cut off long tails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/tools_figures.h"

static const char *const policies[] = {"no_wait", "wait_die", "wound_wait"};

/* y of a series with a policy's name in it. */
static double __attribute__((format(printf, 2, 0)))
y_at(const char *csv, const char *series, const char *policy)
{
    char row[96];
    snprintf(row, sizeof row, series, policy);
    return figures_y(csv, row);
}

/* Lotus' points are of four servers of each kind, even in a quick run: what is wrong with a curve's
 * shape shows there. */
static void test_quick_threads_of_lotus(void **state)
{
    (void)state;
    figures_make("--only L5 --markdown", "l");
    char *mixed = figures_file("l/figure-L5a.csv");
    char *reads = figures_file("l/figure-L5c.csv");
    /* Reads alone are in nobody's way: one try each, no wait, and more threads serve more. */
    assert_true(figures_y(reads, "L5c,lotus wound_wait tries,40") < 1.01);
    assert_true(figures_y(reads, "L5c,lotus wound_wait of them waited,40") == 0);
    double few = figures_y(reads, "L5c,lotus wound_wait,8");
    double half = figures_y(reads, "L5c,lotus wound_wait,24");
    assert_true(few < half && half < figures_y(reads, "L5c,lotus wound_wait,40"));
    /* Half of workload A's requests write the same few records. A transaction that found another
     * in its way was tried again, and asked for more than its 16 rows; NO_WAIT never waits. */
    assert_true(figures_y(mixed, "L5a,lotus wound_wait tries,40") > 1.2);
    assert_true(figures_y(mixed, "L5a,lotus wound_wait rows asked for a commit,40") > 16);
    assert_true(figures_y(mixed, "L5a,lotus no_wait of them waited,40") == 0);
    assert_true(figures_y(mixed, "L5a,lotus wait_die of them waited,40") > 0);
    assert_true(figures_y(mixed, "L5a,lotus wound_wait,40") <
                figures_y(reads, "L5c,lotus wound_wait,40"));
    free(mixed);
    free(reads);
    char *out = figures_file("out");
    assert_non_null(strstr(out, "| threads | 8 | 16 | 24 | 32 | 40 |"));
    assert_non_null(strstr(out, "Lotus warmed up for 2 ms, measured for 4."));
    free(out);
}

/* What a memory server has of a machine's 48 threads its compute server lacks. Lotus gains by the
 * second of them, verbs need none. */
static void test_quick_memory_threads(void **state)
{
    (void)state;
    figures_make("--only L17a", "m");
    char *csv = figures_file("m/figure-L17a.csv");
    for (size_t i = 0; i < 3; i++) {
        double one = y_at(csv, "L17a,lotus %s,1", policies[i]);
        assert_true(y_at(csv, "L17a,lotus %s,2", policies[i]) > 1.2 * one);
    }
    assert_true(figures_y(csv, "L17a,one-sided no_wait,1") > 0);
    assert_true(figures_y(csv, "L17a,one-sided no_wait,16") ==
                figures_y(csv, "L17a,one-sided no_wait,1"));
    free(csv);
}

/* Whom nobody makes begin again for long has the lowest tail: WOUND_WAIT. */
static void assert_wound_wait_is_lowest(const char *csv, const char *figure)
{
    char series[32];
    snprintf(series, sizeof series, "%s,lotus %%s,99.9", figure);
    double lowest = y_at(csv, series, "wound_wait");
    assert_true(lowest > 0);
    assert_true(1.2 * lowest < y_at(csv, series, "no_wait"));
    assert_true(1.2 * lowest < y_at(csv, series, "wait_die"));
}

static void test_quick_latency(void **state)
{
    (void)state;
    figures_make("--only L6,L7", "n");
    char *a = figures_file("n/figure-L6a.csv");
    char *b = figures_file("n/figure-L6b.csv");
    char *c = figures_file("n/figure-L6c.csv");
    assert_wound_wait_is_lowest(a, "L6a");
    assert_wound_wait_is_lowest(b, "L6b");
    /* Fewer writes, shorter tails; with none at all policies are one, and few round trips make
     * the mean shorter than what verbs need. */
    for (size_t i = 0; i < 3; i++) {
        assert_true(y_at(a, "L6a,lotus %s mean,95", policies[i]) >
                    1.2 * y_at(b, "L6b,lotus %s mean,95", policies[i]));
        assert_true(1.2 * y_at(c, "L6c,lotus %s,99.9", policies[i]) <
                    y_at(b, "L6b,lotus %s,99.9", policies[i]));
        double mean = y_at(c, "L6c,lotus %s mean,95", policies[i]);
        assert_true(mean > 0 && mean == figures_y(c, "L6c,lotus no_wait mean,95"));
        assert_true(1.5 * mean < figures_y(c, "L6c,one-sided no_wait mean,95"));
        assert_true(1.5 * mean < figures_y(c, "L6c,one-sided wait_die mean,95"));
    }
    free(a);
    free(b);
    free(c);
    /* Conflicts cost traffic. Verbs fetch nodes of the index, each try again; a priority that has
     * to be read and written beside the lock is more of it. */
    char *traffic = figures_file("n/figure-L7.csv");
    for (size_t i = 0; i < 3; i++) {
        double reads = y_at(traffic, "L7,lotus %s,0", policies[i]);
        double writes = y_at(traffic, "L7,lotus %s,50", policies[i]);
        assert_true(reads > 0 && 2 * reads < writes);
        assert_true(4 * reads < figures_y(traffic, "L7,one-sided no_wait,0"));
        assert_true(1.2 * writes < figures_y(traffic, "L7,one-sided no_wait,50"));
    }
    assert_true(figures_y(traffic, "L7,one-sided wait_die,50") >
                figures_y(traffic, "L7,one-sided no_wait,50"));
    free(traffic);
}

static void test_quick_lengths(void **state)
{
    (void)state;
    figures_make("--only L8a,L9", "o");
    char *csv = figures_file("o/figure-L8a.csv");
    assert_true(figures_y(csv, "L8a,one-sided no_wait, relative,4") == 1);
    for (size_t i = 0; i < 3; i++) {
        /* The longer, the more a message carries, and the more Lotus is ahead. */
        double short_ones = y_at(csv, "L8a,lotus %s, relative,4", policies[i]);
        assert_true(1.2 * short_ones < y_at(csv, "L8a,lotus %s, relative,16", policies[i]));
        assert_true(2 * short_ones < y_at(csv, "L8a,lotus %s, relative,32", policies[i]));
        assert_true(y_at(csv, "L8a,lotus %s,4", policies[i]) >
                    2 * y_at(csv, "L8a,lotus %s,16", policies[i]));
    }
    free(csv);
    char *four = figures_file("o/figure-L9a.csv");
    char *many = figures_file("o/figure-L9b.csv");
    assert_wound_wait_is_lowest(four, "L9a");
    assert_wound_wait_is_lowest(many, "L9b");
    free(four);
    free(many);
}

static void test_quick_requests_a_message(void **state)
{
    static const char *const lengths[] = {"1", "2", "4", "8", "16", "32"};
    (void)state;
    figures_make("--only LT1", "p");
    char *csv = figures_file("p/figure-LT1.csv");
    double before[3] = {0, 0, 0};
    for (size_t i = 0; i < 6; i++) {
        double n[3] = {y_at(csv, "LT1,A,%s", lengths[i]), y_at(csv, "LT1,B,%s", lengths[i]),
                       y_at(csv, "LT1,C,%s", lengths[i])};
        for (size_t k = 0; k < 3; k++) {
            assert_true(n[k] > before[k] && n[k] >= 1);
            before[k] = n[k];
        }
        /* Whose transactions conflict find fewer others to share a message with. */
        assert_true(i == 0 || (n[0] < n[1] && n[1] < n[2]));
    }
    /* k requests over four servers: a server that is asked at all is asked k / (4 (1 - 0.75^k)). */
    assert_true(figures_y(csv, "LT1,C rows a message,1") == 1);
    double four = figures_y(csv, "LT1,C rows a message,4");
    assert_true(four > 1.43 && four < 1.50);
    double most = figures_y(csv, "LT1,C rows a message,32");
    assert_true(most > 7.9 && most < 8.1);
    free(csv);
}

/* What batches inside a transaction gain, with WOUND_WAIT. */
static double gain_inside(const char *csv, char workload)
{
    char with[32], without[32];
    snprintf(with, sizeof with, "L10%c,lotus wound_wait,2", workload);
    snprintf(without, sizeof without, "L10%c,lotus wound_wait,1", workload);
    return figures_y(csv, with) / figures_y(csv, without);
}

static void assert_parts(const char *csv, const char *figure)
{
    char index[32], network[32];
    snprintf(index, sizeof index, "%s,index,%%s", figure);
    snprintf(network, sizeof network, "%s,network,%%s", figure);
    /* Hints go around the index and leave the network the largest part; batches make that less. */
    assert_true(2 * y_at(csv, index, "1") < y_at(csv, index, "0"));
    assert_true(y_at(csv, network, "1") > y_at(csv, network, "0"));
    assert_true(y_at(csv, network, "1") > 30);
    assert_true(1.1 * y_at(csv, network, "2") < y_at(csv, network, "1"));
    assert_true(y_at(csv, network, "3") < y_at(csv, network, "2"));
}

static void test_quick_increments(void **state)
{
    (void)state;
    figures_make("--only L10a,L10c,L11,L12", "q");
    char *mixed = figures_file("q/figure-L10a.csv");
    char *reads = figures_file("q/figure-L10c.csv");
    /* One round trip for all locks shortens the time that they are held, so writers gain more. */
    double of_reads = gain_inside(reads, 'c');
    assert_true(of_reads > 1.1 && gain_inside(mixed, 'a') > 1.5 * of_reads);
    assert_true(figures_y(reads, "L10c,lotus wound_wait,1") >
                figures_y(reads, "L10c,lotus wound_wait,0"));
    assert_true(figures_y(reads, "L10c,lotus wound_wait,3") >
                figures_y(reads, "L10c,lotus wound_wait,2"));
    assert_true(figures_y(reads, "L10c,lotus wound_wait good hints (%),0") == 0);
    assert_true(figures_y(reads, "L10c,lotus wound_wait good hints (%),1") > 50);
    free(mixed);
    free(reads);
    char *late = figures_file("q/figure-L11a.csv");
    char *read_late = figures_file("q/figure-L11c.csv");
    for (size_t i = 0; i < 3; i++) {
        assert_true(1.5 * y_at(late, "L11a,lotus %s mean,2", policies[i]) <
                    y_at(late, "L11a,lotus %s mean,1", policies[i]));
        /* Who waits for others waits: across transactions the tail is longer, the mean is not. */
        double mean = y_at(read_late, "L11c,lotus %s mean,2", policies[i]);
        double tail = y_at(read_late, "L11c,lotus %s p99.9,2", policies[i]);
        assert_true(1.1 * mean < y_at(read_late, "L11c,lotus %s mean,1", policies[i]));
        assert_true(tail < y_at(read_late, "L11c,lotus %s p99.9,1", policies[i]));
        assert_true(mean > y_at(read_late, "L11c,lotus %s mean,3", policies[i]));
        assert_true(tail < y_at(read_late, "L11c,lotus %s p99.9,3", policies[i]));
    }
    free(late);
    free(read_late);
    char *parts = figures_file("q/figure-L12a.csv");
    char *read_parts = figures_file("q/figure-L12c.csv");
    assert_parts(parts, "L12a");
    assert_parts(read_parts, "L12c");
    free(parts);
    free(read_parts);
}

/* Batches across transactions fill in C, and are worth more where memory servers are slow; in A
 * they do not fill: most transactions wait for a lock or stand back when another one sends. */
static void test_quick_groups(void **state)
{
    (void)state;
    figures_make("--only L10g", "r");
    char *csv = figures_file("r/figure-L10g.csv");
    double alone = figures_y(csv, "L10g,C lotus wound_wait a frame inside,8");
    assert_true(alone > 1 &&
                2 * alone < figures_y(csv, "L10g,C lotus wound_wait a frame across,8"));
    assert_true(figures_y(csv, "L10g,C lotus wound_wait,8") > 1.05);
    assert_true(figures_y(csv, "L10g,C lotus wound_wait inside,1") >
                2 * figures_y(csv, "L10g,C lotus wound_wait inside,8"));
    for (size_t i = 0; i < 3; i++) {
        double inside = y_at(csv, "L10g,A lotus %s a frame inside,1", policies[i]);
        assert_true(inside > 1);
        assert_true(y_at(csv, "L10g,A lotus %s a frame across,1", policies[i]) < 1.2 * inside);
    }
    free(csv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick_threads_of_lotus),
        cmocka_unit_test(test_quick_memory_threads),
        cmocka_unit_test(test_quick_latency),
        cmocka_unit_test(test_quick_lengths),
        cmocka_unit_test(test_quick_requests_a_message),
        cmocka_unit_test(test_quick_increments),
        cmocka_unit_test(test_quick_groups),
    };
    return cmocka_run_group_tests(tests, figures_setup, figures_teardown);
}
