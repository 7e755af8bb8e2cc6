/* What a cluster that is measured says when a run of it means nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/bench.h"
#include "engine/hermes/hermes.h"
#include "node/internal.h"

static void a_node_that_is_thrown_out_spoils_the_run(void **state)
{
    (void)state;
    const struct bench_config config = {
        .engine = &hermes_ops,
        .nodes = 3,
        .workers = 1,
        .port = BENCH_SHM,
        .keys = {.n = 1000},
        .mix = {.writes = 20},
        .key_bytes = 8,
        .value_bytes = 32,
        .in_flight = 16,
        .seed = 1,
    };
    struct bench_cluster *c = NULL;
    const char *why = NULL;
    uint64_t now_us;
    struct bench_run *run = malloc(sizeof *run);
    assert_non_null(run);
    assert_int_equal(bench_cluster_create(&config, &c, &why), HK_OK);
    bench_cluster_run(c, 0.01, 0.02, run);
    assert_int_equal(run->failed, 0);
    assert_int_equal(run->view_changes, 0);
    /* What the view machine says to a process that was away for longer than a lease. */
    bench_cluster_node(c, &now_us)->wipe = true;
    bench_cluster_run(c, 0.01, 0.02, run);
    assert_true(run->view_changes > 0);
    bench_cluster_destroy(c);
    free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_is_thrown_out_spoils_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
