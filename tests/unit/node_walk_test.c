/* worker_walk: the keys that clients may see, on every replica. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/node_cluster.h"

#define KEYS 600u
#define CALLS_MAX 100000u

static const struct hermes_config hermes = {.mlt_us = 10000, .grace_us = 2000000};

static struct cluster *three(void)
{
    struct cluster_config config = {.nodes = 3, .workers = {1, 2, 1}, .hermes = hermes, .seed = 11};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    return c;
}

static struct bytes name_of(uint32_t i, char buffer[16])
{
    int n = snprintf(buffer, 16, "key:%u", i);
    return bytes_of(buffer, (uint32_t)n);
}

static void set(struct cluster *c, uint32_t i, uint64_t deadline_ms)
{
    char buffer[16];
    struct op op = {
        .kind = OP_SET,
        .flags = deadline_ms != 0 ? OPF_DEADLINE : 0,
        .key = name_of(i, buffer),
        .value = bytes_of("value", 5),
        .number = (int64_t)deadline_ms,
    };
    assert_int_equal(cluster_call(c, i % 3, &op).kind, ANSWER_OK);
}

static void drop(struct cluster *c, uint32_t i)
{
    char buffer[16];
    struct op op = {.kind = OP_DELETE, .key = name_of(i, buffer)};
    assert_int_equal(cluster_call(c, (i + 1) % 3, &op).number, 1);
}

struct seen {
    uint32_t times[KEYS];
    uint32_t n;
};

static void note(void *context, struct bytes key)
{
    struct seen *seen = context;
    char text[16] = {0};
    unsigned i = KEYS;
    assert_true(key.n < sizeof text);
    memcpy(text, key.at, key.n);
    assert_int_equal(sscanf(text, "key:%u", &i), 1);
    assert_true(i < KEYS);
    seen->times[i]++;
    seen->n++;
}

/* Walks everything; how many calls it took. */
static uint32_t walk(struct cluster *c, uint32_t node, uint32_t worker, struct seen *seen)
{
    struct worker *w = node_worker(cluster_node(c, node), worker);
    uint64_t cursor = 0;
    uint32_t calls = 0;
    memset(seen, 0, sizeof *seen);
    do {
        cursor = worker_walk(w, 0, cursor, note, seen);
        assert_true(++calls < CALLS_MAX);
    } while (cursor != 0);
    return calls;
}

static void every_replica_shows_what_exists(void **state)
{
    (void)state;
    struct cluster *c = three();
    struct seen seen;
    walk(c, 0, 0, &seen);
    assert_int_equal(seen.n, 0);
    for (uint32_t i = 0; i < KEYS; i++) {
        set(c, i, 0);
    }
    for (uint32_t i = 0; i < KEYS; i += 3) {
        drop(c, i);
    }
    cluster_step(c, 1000);
    cluster_step(c, 1000);
    for (uint32_t node = 0; node < 3; node++) {
        uint32_t calls = walk(c, node, node == 1 ? 1 : 0, &seen);
        assert_true(calls > 1); /* a few keys a call, not the whole store */
        for (uint32_t i = 0; i < KEYS; i++) {
            assert_int_equal(seen.times[i], i % 3 == 0 ? 0 : 1);
        }
    }
    cluster_destroy(c);
}

static void what_has_expired_is_gone_at_once(void **state)
{
    (void)state;
    struct cluster *c = three();
    struct seen seen;
    uint64_t soon = *cluster_wall_ms(c) + 60000;
    set(c, 0, soon);
    set(c, 1, soon + 1);
    set(c, 2, 0);
    cluster_step(c, 1000);
    cluster_step(c, 1000);
    walk(c, 2, 0, &seen);
    assert_int_equal(seen.n, 3);
    *cluster_wall_ms(c) = soon; /* nobody has deleted it yet */
    walk(c, 2, 0, &seen);
    assert_int_equal(seen.times[0], 0);
    assert_int_equal(seen.times[1], 1);
    assert_int_equal(seen.times[2], 1);
    cluster_destroy(c);
}

static void a_space_that_does_not_exist_is_empty(void **state)
{
    (void)state;
    struct cluster *c = three();
    struct seen seen = {.n = 0};
    struct worker *w = node_worker(cluster_node(c, 0), 0);
    assert_int_equal(worker_walk(w, 1, 0, note, &seen), 0);
    assert_int_equal(worker_walk(w, SPACES_MAX, 0, note, &seen), 0);
    assert_int_equal(seen.n, 0);
    cluster_destroy(c);
}

/* The walk goes on while the index grows under it: what was there from the start is met. */
static void growth_hides_nothing(void **state)
{
    (void)state;
    struct cluster *c = three();
    struct worker *w = node_worker(cluster_node(c, 0), 0);
    struct seen seen;
    uint64_t cursor = 0;
    uint32_t next = 100;
    memset(&seen, 0, sizeof seen);
    for (uint32_t i = 0; i < 100; i++) {
        set(c, i, 0);
    }
    do {
        cursor = worker_walk(w, 0, cursor, note, &seen);
        for (uint32_t i = 0; i < 20 && next < KEYS; i++) {
            set(c, next++, 0);
        }
    } while (cursor != 0);
    assert_true(next > 200);
    for (uint32_t i = 0; i < 100; i++) {
        assert_true(seen.times[i] >= 1);
    }
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_replica_shows_what_exists),
        cmocka_unit_test(what_has_expired_is_gone_at_once),
        cmocka_unit_test(a_space_that_does_not_exist_is_empty),
        cmocka_unit_test(growth_hides_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
