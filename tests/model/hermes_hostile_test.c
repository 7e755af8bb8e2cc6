/* Messages of the right epoch whose sender is no member of the view: a process that was never let
 * in, or whose node left. They change nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/hermes/machine.h"

static void test_senders_outside_the_view(void **state)
{
    (void)state;
    static struct hermes_worker worker;
    const struct hermes_config config = {0};
    struct view view = {.generation = 1,
                        .epoch = 4,
                        .next_cid = 20,
                        .configured = nodeset_of(0) | nodeset_of(1) | nodeset_of(2),
                        .live = nodeset_of(0) | nodeset_of(1),
                        .operational = nodeset_of(0) | nodeset_of(1)};
    const enum hermes_kind kinds[] = {HERMES_INV, HERMES_VAL};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct msg msg = {.kind = (uint8_t)kinds[i], .epoch = 4, .ts = stamp_make(6, 9)};
        struct event event = {.kind = EV_MSG,
                              .from = 2,
                              .self = 0,
                              .view = &view,
                              .msg = &msg,
                              .config = &config,
                              .worker = &worker};
        struct key_meta meta = hermes_ops.blank;
        struct key_meta before = meta;
        struct slot spare = {.ref = 1};
        struct effects fx = {0};
        hermes_ops.key(&meta, NULL, NULL, &spare, &event, &fx);
        assert_memory_equal(&meta, &before, sizeof meta);
        for (uint32_t e = 0; e < fx.n; e++) {
            assert_int_equal(fx.e[e].kind, EFF_DROP);
        }
        /* The same message of a member is taken. */
        event.from = 1;
        fx.n = 0;
        if (kinds[i] == HERMES_INV) {
            hermes_ops.key(&meta, NULL, NULL, &spare, &event, &fx);
            assert_int_equal(meta.ts, msg.ts);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_senders_outside_the_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
