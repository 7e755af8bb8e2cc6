/* What the server decides by itself about orders: who may leave, whom recover may name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "server/internal.h"

#define THREE 0x7u

static struct view view_of(nodeset configured, nodeset live, nodeset operational)
{
    struct view view;
    memset(&view, 0, sizeof view);
    view.generation = 7;
    view.epoch = 3;
    view.configured = configured;
    view.live = live;
    view.operational = operational;
    return view;
}

static void a_process_outside_of_the_view_has_no_role(void **state)
{
    (void)state;
    struct view view = view_of(THREE, THREE, 0x3);
    view.members[0].nonce = 11;
    view.members[1].nonce = 22;
    view.members[2].nonce = 33;
    struct view seen = server_view_of(&view, 0, 11);
    assert_memory_equal(&seen, &view, sizeof view);
    assert_string_equal(server_role(&seen, 0), "operational");
    assert_string_equal(server_role(&seen, 2), "shadow");
    /* Node 0 was started again, and the others have not dropped its predecessor yet. */
    seen = server_view_of(&view, 0, 12);
    assert_string_equal(server_role(&seen, 0), "none");
    assert_string_equal(server_role(&seen, 1), "operational");
    assert_false(nodeset_has(seen.live, 0));
    assert_int_equal(seen.live, 0x6);
    seen = server_view_of(&view, 2, 1);
    assert_string_equal(server_role(&seen, 2), "none");
    assert_string_equal(server_role(&seen, 5), "none");
}

static void one_of_three_may_leave(void **state)
{
    (void)state;
    struct view view = view_of(THREE, THREE, THREE);
    assert_true(server_may_leave(&view, 0));
    assert_true(server_may_leave(&view, 2));
}

static void the_second_of_three_may_not(void **state)
{
    (void)state;
    struct view view = view_of(THREE, 0x3, 0x3);
    assert_false(server_may_leave(&view, 0));
    assert_false(server_may_leave(&view, 1));
    assert_true(server_may_leave(&view, 2)); /* it is no member */
    view = view_of(0x3, 0x3, 0x3);
    assert_false(server_may_leave(&view, 0)); /* of two, none */
}

static void the_last_operational_member_may_not(void **state)
{
    (void)state;
    struct view view = view_of(THREE, THREE, 0x1);
    assert_false(server_may_leave(&view, 0)); /* nobody would be left who has the data */
    assert_true(server_may_leave(&view, 1));
}

static void who_is_alone_may_leave(void **state)
{
    (void)state;
    struct view view = view_of(0x1, 0x1, 0x1);
    assert_true(server_may_leave(&view, 0));
    view = view_of(THREE, 0, 0);
    view.epoch = 0;
    assert_true(server_may_leave(&view, 0));
}

static void both_sets_count_while_the_configuration_changes(void **state)
{
    (void)state;
    struct view view = view_of(0x1f, THREE, THREE);
    view.configured_old = THREE;
    assert_false(server_may_leave(&view, 0)); /* two are a majority of three, not of five */
}

static const char *recover(enum view_status status, const struct view *view, nodeset survivors)
{
    struct node_status s;
    memset(&s, 0, sizeof s);
    s.view = *view;
    s.status = status;
    return server_recover_invalid(&s, 0, THREE, survivors);
}

static void recover_fits_after_a_lost_majority(void **state)
{
    (void)state;
    struct view view = view_of(THREE, THREE, THREE);
    assert_null(recover(VIEW_STATUS_LOST, &view, 0x1));
    assert_null(recover(VIEW_STATUS_NO_LEASE, &view, 0x3));
}

static void recover_is_refused_with_a_reason(void **state)
{
    (void)state;
    struct view view = view_of(THREE, THREE, THREE);
    assert_non_null(strstr(recover(VIEW_STATUS_LOST, &view, 0), "name the nodes"));
    assert_non_null(strstr(recover(VIEW_STATUS_LOST, &view, 0x9), "configured"));
    assert_non_null(strstr(recover(VIEW_STATUS_LOST, &view, 0x6), "one of those"));
    assert_non_null(strstr(recover(VIEW_STATUS_SERVING, &view, 0x1), "nothing to recover"));
    assert_non_null(recover(VIEW_STATUS_LEAVING, &view, 0x1));
    view.operational = 0x6;
    assert_non_null(strstr(recover(VIEW_STATUS_LOST, &view, 0x1), "complete copy"));
    view = view_of(THREE, 0x1, 0x1);
    assert_non_null(strstr(recover(VIEW_STATUS_LOST, &view, 0x3), "members"));
    view.epoch = 0;
    assert_non_null(strstr(recover(VIEW_STATUS_REFUSING, &view, 0x1), "--bootstrap"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_outside_of_the_view_has_no_role),
        cmocka_unit_test(one_of_three_may_leave),
        cmocka_unit_test(the_second_of_three_may_not),
        cmocka_unit_test(the_last_operational_member_may_not),
        cmocka_unit_test(who_is_alone_may_leave),
        cmocka_unit_test(both_sets_count_while_the_configuration_changes),
        cmocka_unit_test(recover_fits_after_a_lost_majority),
        cmocka_unit_test(recover_is_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
