/* A map of hash slots, counted and written as JSON. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "server/internal.h"
#include "server/slots.h"

static struct slot_home homes[HASH_SLOTS];

static void fill(uint32_t from, uint32_t to, struct slot_home home)
{
    for (uint32_t i = from; i <= to; i++) {
        homes[i] = home;
    }
}

static void expect_json(const char *expected)
{
    json_t *j = slots_json(homes);
    assert_non_null(j);
    char *text = json_dumps(j, JSON_COMPACT);
    assert_string_equal(text, expected);
    free(text);
    json_decref(j);
}

static void no_map(void **state)
{
    (void)state;
    fill(0, HASH_SLOTS - 1, (struct slot_home){.home = NODE_NONE, .to = NODE_NONE});
    expect_json("{\"slots\":{\"none\":16384,\"stable\":0,\"moving\":0,\"lost\":0,\"emptying\":0,"
                "\"given\":0},"
                "\"nodes\":[],\"runs\":[{\"from\":0,\"to\":16383,\"state\":\"none\"}]}");
}

static void all_states(void **state)
{
    struct slots_sum sum;
    (void)state;
    fill(0, 7, (struct slot_home){.home = 1, .to = NODE_NONE, .state = HOME_STABLE});
    fill(8, 9, (struct slot_home){.home = 1, .to = 63, .state = HOME_MOVING});
    fill(10, 10, (struct slot_home){.home = 2, .to = NODE_NONE, .state = HOME_LOST});
    fill(11, 12, (struct slot_home){.home = 3, .to = NODE_NONE, .state = HOME_EMPTYING});
    fill(13, HASH_SLOTS - 1, (struct slot_home){.home = 3, .to = NODE_NONE, .state = HOME_STABLE});
    slots_sum(homes, &sum);
    assert_int_equal(sum.by_state[HOME_STABLE], 8 + 16371);
    assert_int_equal(sum.by_state[HOME_MOVING], 2);
    assert_int_equal(sum.by_state[HOME_LOST], 1);
    assert_int_equal(sum.by_state[HOME_EMPTYING], 2);
    /* What is moving is still the old home's; what is lost or emptied is nobody's. */
    assert_int_equal(sum.homed[1], 10);
    assert_int_equal(sum.gives[1], 2);
    assert_int_equal(sum.gets[63], 2);
    assert_int_equal(sum.homed[63], 0);
    assert_int_equal(sum.homed[2], 0);
    assert_int_equal(sum.homed[3], 16371);
    expect_json("{\"slots\":{\"none\":0,\"stable\":16379,\"moving\":2,\"lost\":1,\"emptying\":2,"
                "\"given\":0},"
                "\"nodes\":[{\"id\":1,\"slots\":10,\"gives\":2,\"gets\":0},"
                "{\"id\":3,\"slots\":16371,\"gives\":0,\"gets\":0},"
                "{\"id\":63,\"slots\":0,\"gives\":0,\"gets\":2}],"
                "\"runs\":[{\"from\":0,\"to\":7,\"state\":\"stable\",\"home\":1},"
                "{\"from\":8,\"to\":9,\"state\":\"moving\",\"home\":1,\"next\":63},"
                "{\"from\":10,\"to\":10,\"state\":\"lost\",\"home\":2},"
                "{\"from\":11,\"to\":12,\"state\":\"emptying\",\"home\":3},"
                "{\"from\":13,\"to\":16383,\"state\":\"stable\",\"home\":3}]}");
}

/* Every slot differs from the next: the longest text that there is must fit into one answer. */
static void as_many_runs_as_slots(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        homes[i] =
            (struct slot_home){.home = (uint8_t)(20 + i % 2), .to = 10, .state = HOME_MOVING};
    }
    json_t *j = slots_json(homes);
    assert_int_equal(json_array_size(json_object_get(j, "runs")), HASH_SLOTS);
    char *text = json_dumps(j, JSON_COMPACT);
    assert_true(strlen(text) < 2u << 20);
    free(text);
    json_decref(j);
}

static void numbers_of_spaces(void **state)
{
    uint32_t space = 0;
    (void)state;
    assert_true(server_space_parse(bytes_of("15", 2), &space));
    assert_int_equal(space, 15);
    assert_true(server_space_parse(bytes_of("2", 1), &space));
    assert_int_equal(space, 2);
    assert_false(server_space_parse(bytes_of("16", 2), &space));
    assert_false(server_space_parse(bytes_of("", 0), &space));
    assert_false(server_space_parse(bytes_of("-1", 2), &space));
    assert_false(server_space_parse(bytes_of("002", 3), &space));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_map),
        cmocka_unit_test(all_states),
        cmocka_unit_test(as_many_runs_as_slots),
        cmocka_unit_test(numbers_of_spaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
