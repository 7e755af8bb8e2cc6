/* The search on small models whose numbers are known. */
#include "explore/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "explore/states.h"

/* ---- Two counters that go up to a limit: a grid ---- */

struct grid {
    uint32_t limit;
    uint32_t forbidden; /* the sum that is a violation; UINT32_MAX: none */
    bool forbid_step;   /* told by the step to it, not by the state */
};

struct grid_state {
    uint32_t x;
    uint32_t y;
};

static void grid_begin(const void *self, void *state_out)
{
    (void)self;
    memset(state_out, 0, sizeof(struct grid_state));
}

static void grid_expand(const void *self, const void *state, struct search *search)
{
    const struct grid *grid = self;
    const struct grid_state *at = state;
    for (uint64_t action = 0; action < 2; action++) {
        struct grid_state next = *at;
        next.x += action == 0;
        next.y += action == 1;
        if (next.x <= grid->limit && next.y <= grid->limit) {
            bool bad = grid->forbid_step && next.x + next.y == grid->forbidden;
            search_emit(search, &next, action, bad ? "a forbidden step" : NULL);
        }
    }
}

static const char *grid_broken(const void *self, const void *state)
{
    const struct grid *grid = self;
    const struct grid_state *at = state;
    bool bad = !grid->forbid_step && at->x + at->y == grid->forbidden;
    return bad ? "a forbidden sum" : NULL;
}

static bool grid_finished(const void *self, const void *state)
{
    const struct grid *grid = self;
    const struct grid_state *at = state;
    return at->x == grid->limit && at->y == grid->limit;
}

static void grid_describe(const void *self, const void *before, const void *after, uint64_t action,
                          FILE *to)
{
    (void)self;
    (void)before;
    const struct grid_state *at = after;
    fprintf(to, "%s to %u,%u", action == 0 ? "right" : "up", at->x, at->y);
}

static struct search_model grid_model(const struct grid *grid)
{
    return (struct search_model){.self = grid,
                                 .state_bytes = sizeof(struct grid_state),
                                 .begin = grid_begin,
                                 .expand = grid_expand,
                                 .broken = grid_broken,
                                 .finished = grid_finished,
                                 .describe = grid_describe};
}

static void search_grid(const struct grid *grid, struct search_bounds bounds,
                        struct search_result *result)
{
    struct search_model model = grid_model(grid);
    search_run(&model, &bounds, NULL, NULL, result);
}

static void test_all_states_are_visited_once(void **state)
{
    (void)state;
    struct grid grid = {.limit = 9, .forbidden = UINT32_MAX};
    struct search_result r;
    search_grid(&grid, (struct search_bounds){0}, &r);
    assert_int_equal(r.end, SEARCH_COMPLETE);
    assert_int_equal(r.states, 100);
    assert_int_equal(r.steps, 180);
    assert_int_equal(r.depth, 18);
    assert_int_equal(r.finished, 1);
    assert_int_equal(r.frontier, 0);
    assert_null(r.broken);
    assert_null(r.trace);
    search_result_deinit(&r);
}

/* More states than the tables have room for at first. */
static void test_tables_grow(void **state)
{
    (void)state;
    struct grid grid = {.limit = 499, .forbidden = UINT32_MAX};
    struct search_result r;
    search_grid(&grid, (struct search_bounds){0}, &r);
    assert_int_equal(r.end, SEARCH_COMPLETE);
    assert_int_equal(r.states, 250000);
    assert_int_equal(r.depth, 998);
    search_result_deinit(&r);
}

static void test_bounds(void **state)
{
    (void)state;
    struct grid grid = {.limit = 499, .forbidden = UINT32_MAX};
    struct search_result r;
    search_grid(&grid, (struct search_bounds){.states_max = 1000}, &r);
    assert_int_equal(r.end, SEARCH_BOUND);
    assert_int_equal(r.states, 1000);
    assert_true(r.frontier > 0);
    search_result_deinit(&r);

    /* Depths 0 to 9 are expanded, so those up to 10 are visited. */
    search_grid(&grid, (struct search_bounds){.depth_max = 10}, &r);
    assert_int_equal(r.end, SEARCH_BOUND);
    assert_int_equal(r.states, 66);
    assert_int_equal(r.depth, 9);
    assert_int_equal(r.frontier, 11);
    search_result_deinit(&r);

    search_grid(&grid, (struct search_bounds){.memory_max = 3 << 20}, &r);
    assert_int_equal(r.end, SEARCH_BOUND);
    assert_true(r.states > 1000 && r.states < 250000);
    search_result_deinit(&r);

    /* A bound that is not reached changes nothing. */
    grid.limit = 9;
    search_grid(&grid, (struct search_bounds){.states_max = 100, .depth_max = 19}, &r);
    assert_int_equal(r.end, SEARCH_COMPLETE);
    search_result_deinit(&r);
}

static void test_time_is_bounded(void **state)
{
    (void)state;
    struct grid grid = {.limit = UINT32_MAX / 4, .forbidden = UINT32_MAX};
    struct search_result r;
    search_grid(&grid, (struct search_bounds){.seconds_max = 1}, &r);
    assert_int_equal(r.end, SEARCH_BOUND);
    assert_true(r.seconds >= 1.0);
    search_result_deinit(&r);
}

static void count_calls(const struct search_result *so_far, void *context)
{
    assert_true(so_far->states > 0);
    ++*(uint32_t *)context;
}

static void test_progress_is_told(void **state)
{
    (void)state;
    struct grid grid = {.limit = UINT32_MAX / 4, .forbidden = UINT32_MAX};
    struct search_model model = grid_model(&grid);
    struct search_bounds bounds = {.seconds_max = 2};
    struct search_result r;
    uint32_t calls = 0;
    search_run(&model, &bounds, count_calls, &calls, &r);
    assert_in_range(calls, 1, 3);
    search_result_deinit(&r);
}

static uint32_t lines_of(const char *text)
{
    uint32_t n = 0;
    for (; *text != '\0'; text++) {
        n += *text == '\n';
    }
    return n;
}

static void test_a_violation_has_the_shortest_trace(void **state)
{
    (void)state;
    for (uint32_t by_step = 0; by_step < 2; by_step++) {
        struct grid grid = {.limit = 100, .forbidden = 7, .forbid_step = by_step == 1};
        struct search_result r;
        search_grid(&grid, (struct search_bounds){0}, &r);
        assert_int_equal(r.end, SEARCH_VIOLATION);
        assert_string_equal(r.broken, by_step == 1 ? "a forbidden step" : "a forbidden sum");
        assert_non_null(r.trace);
        assert_int_equal(lines_of(r.trace), 8); /* and one line that says what is broken */
        assert_non_null(strstr(r.trace, "  1  right to 1,0\n"));
        assert_non_null(strstr(r.trace, "  7  right to 7,0\n"));
        assert_non_null(strstr(r.trace, r.broken));
        search_result_deinit(&r);
    }
}

static void test_the_beginning_may_be_broken(void **state)
{
    (void)state;
    struct grid grid = {.limit = 3, .forbidden = 0};
    struct search_result r;
    search_grid(&grid, (struct search_bounds){0}, &r);
    assert_int_equal(r.end, SEARCH_VIOLATION);
    assert_int_equal(r.states, 0);
    assert_string_equal(r.trace, "     a forbidden sum\n");
    search_result_deinit(&r);
}

/* ---- Jugs of 3 and 5 litres: 4 litres take six steps, and 16 of the 24 states can be had ---- */

struct jugs {
    uint8_t in[2];
};
static const uint8_t jug_sizes[2] = {3, 5};
static const uint8_t four = 4;
static const uint8_t never = 9;

static void jugs_begin(const void *self, void *state_out)
{
    (void)self;
    memset(state_out, 0, sizeof(struct jugs));
}

static void jugs_expand(const void *self, const void *state, struct search *search)
{
    (void)self;
    for (uint64_t jug = 0; jug < 2; jug++) {
        struct jugs next = *(const struct jugs *)state;
        next.in[jug] = jug_sizes[jug];
        search_emit(search, &next, jug, NULL);

        next = *(const struct jugs *)state;
        next.in[jug] = 0;
        search_emit(search, &next, 2 + jug, NULL);

        next = *(const struct jugs *)state;
        uint8_t room = (uint8_t)(jug_sizes[1 - jug] - next.in[1 - jug]);
        uint8_t poured = next.in[jug] < room ? next.in[jug] : room;
        next.in[jug] = (uint8_t)(next.in[jug] - poured);
        next.in[1 - jug] = (uint8_t)(next.in[1 - jug] + poured);
        search_emit(search, &next, 4 + jug, NULL);
    }
}

static const char *jugs_broken(const void *self, const void *state)
{
    const struct jugs *jugs = state;
    return jugs->in[1] == *(const uint8_t *)self ? "measured" : NULL;
}

static void jugs_describe(const void *self, const void *before, const void *after, uint64_t action,
                          FILE *to)
{
    static const char *const words[3] = {"fill", "empty", "pour"};
    (void)self;
    (void)before;
    const struct jugs *jugs = after;
    fprintf(to, "%s: %u %u", words[action / 2], jugs->in[0], jugs->in[1]);
}

static void search_jugs(const uint8_t *wanted, struct search_result *result)
{
    struct search_model model = {.self = wanted,
                                 .state_bytes = sizeof(struct jugs),
                                 .begin = jugs_begin,
                                 .expand = jugs_expand,
                                 .broken = jugs_broken,
                                 .describe = jugs_describe};
    struct search_bounds bounds = {.states_max = 0};
    search_run(&model, &bounds, NULL, NULL, result);
}

static void test_a_known_shortest_execution(void **state)
{
    (void)state;
    struct search_result r;
    search_jugs(&never, &r);
    assert_int_equal(r.end, SEARCH_COMPLETE);
    assert_int_equal(r.states, 16);
    search_result_deinit(&r);

    search_jugs(&four, &r);
    assert_int_equal(r.end, SEARCH_VIOLATION);
    assert_string_equal(r.trace, "  1  fill: 0 5\n"
                                 "  2  pour: 3 2\n"
                                 "  3  empty: 0 2\n"
                                 "  4  pour: 2 0\n"
                                 "  5  fill: 2 5\n"
                                 "  6  pour: 3 4\n"
                                 "     measured\n");
    search_result_deinit(&r);
}

/* ---- The queue of states ---- */

static void fill_state(struct random *random, uint8_t *state, size_t n)
{
    uint64_t zeros_of_eight = random_below(random, 9);
    for (size_t i = 0; i < n; i++) {
        bool zero = random_below(random, 8) < zeros_of_eight;
        state[i] = zero ? 0 : (uint8_t)random_below(random, 256);
    }
}

static void test_states_come_out_as_they_went_in(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 8, 255, 256, 513, 4000, 70000};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t n = sizes[s];
        uint8_t *expected = malloc(n);
        uint8_t *got = malloc(n);
        struct random in, out;
        struct states states;
        assert_true(expected != NULL && got != NULL);
        random_init(&in, s);
        random_init(&out, s);
        states_init(&states, n);
        uint64_t put = 0, taken = 0;
        for (uint32_t round = 0; round < 40; round++) {
            for (uint64_t i = 0; i < 10 + round % 7; i++, put++) {
                fill_state(&in, expected, n);
                assert_true(states_put(&states, expected));
            }
            for (uint64_t i = 0; i < 10 && taken < put; i++, taken++) {
                fill_state(&out, expected, n);
                states_take(&states, got);
                assert_memory_equal(expected, got, n);
            }
            assert_int_equal(states.n, put - taken);
        }
        states_deinit(&states);
        assert_int_equal(states.bytes, 0);
        free(expected);
        free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_states_are_visited_once),
        cmocka_unit_test(test_tables_grow),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_time_is_bounded),
        cmocka_unit_test(test_progress_is_told),
        cmocka_unit_test(test_a_violation_has_the_shortest_trace),
        cmocka_unit_test(test_the_beginning_may_be_broken),
        cmocka_unit_test(test_a_known_shortest_execution),
        cmocka_unit_test(test_states_come_out_as_they_went_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
