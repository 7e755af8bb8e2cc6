/* Nodes inside one process, used by its threads, meant for the thread sanitizer: reads on the
 * calling thread beside updates, a node that is dropped and made anew under them, and a node that
 * is closed under them. No read is older than what was acknowledged before it began, and every
 * operation is answered. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "support/embed_cluster.h"

#define KEYS 8u
#define THREADS 4u

struct crowd {
    struct embed_cluster cluster;
    _Atomic bool stop;
    _Atomic int64_t acknowledged[KEYS];
    _Atomic int64_t maybe[KEYS]; /* outcomes that nobody knows */
};

struct member {
    struct crowd *crowd;
    uint32_t node;
    uint32_t number;
    pthread_t thread;
    uint64_t reads, read_errors, refused, unknown;
    _Atomic uint64_t updates;
    uint64_t faults;
};

static int64_t number_of(const char *text, size_t n)
{
    char digits[32] = "";
    memcpy(digits, text, n < sizeof digits - 1 ? n : sizeof digits - 1);
    return strtoll(digits, NULL, 10);
}

static void key_name(char name[16], uint32_t key)
{
    snprintf(name, 16, "counter%u", key);
}

/* Batches, whose answers must not be older than what was acknowledged before. */
static void read_all(struct member *m, struct hk_session *s)
{
    char names[KEYS][16];
    char values[KEYS][32];
    int64_t floors[KEYS];
    struct hk_read reads[KEYS];
    for (uint32_t i = 0; i < KEYS; i++) {
        key_name(names[i], i);
        floors[i] = atomic_load(&m->crowd->acknowledged[i]);
        reads[i] = (struct hk_read){
            .key = hk_text(names[i]), .value = values[i], .capacity = sizeof values[i]};
    }
    (void)hk_get_batch(s, reads, KEYS);
    for (uint32_t i = 0; i < KEYS; i++) {
        if (reads[i].err == HK_OK || reads[i].err == HK_ERR_NOTFOUND) {
            m->reads++;
            m->faults += number_of(values[i], reads[i].n) < floors[i];
        } else {
            m->read_errors++;
            m->faults += reads[i].err == HK_ERR_UNKNOWN; /* a read changes nothing */
        }
    }
}

static void add_one(struct member *m, struct hk_session *s, uint32_t key)
{
    char name[16];
    int64_t sum = 0;
    int64_t floor = atomic_load(&m->crowd->acknowledged[key]);
    key_name(name, key);
    int err = hk_add(s, hk_text(name), 1, &sum);
    if (err == HK_OK) {
        atomic_fetch_add(&m->updates, 1);
        m->faults += sum <= floor;
        atomic_fetch_add(&m->crowd->acknowledged[key], 1);
    } else if (err == HK_ERR_UNKNOWN) {
        m->unknown++;
        atomic_fetch_add(&m->crowd->maybe[key], 1);
    } else {
        m->refused++;
    }
}

static void *member_main(void *argument)
{
    struct member *m = argument;
    struct hk_session *s = embed_cluster_session(&m->crowd->cluster, m->node);
    for (uint32_t round = 0; !atomic_load(&m->crowd->stop); round++) {
        read_all(m, s);
        add_one(m, s, (round + m->number) % KEYS);
        if (round % 64 == 63) {
            hk_session_close(s);
            s = embed_cluster_session(&m->crowd->cluster, m->node);
        }
    }
    hk_session_close(s);
    return NULL;
}

static void check_sums(struct crowd *c)
{
    for (uint32_t node = 0; node < c->cluster.nodes_n; node++) {
        struct hk_session *s = embed_cluster_session(&c->cluster, node);
        for (uint32_t i = 0; i < KEYS; i++) {
            char name[16];
            char value[32];
            size_t n = 0;
            key_name(name, i);
            int err = hk_get(s, hk_text(name), value, sizeof value, &n);
            assert_true(err == HK_OK || err == HK_ERR_NOTFOUND);
            int64_t sum = number_of(value, n);
            assert_true(sum >= atomic_load(&c->acknowledged[i]));
            assert_true(sum <= atomic_load(&c->acknowledged[i]) + atomic_load(&c->maybe[i]));
        }
        hk_session_close(s);
    }
}

static void until_wiped(struct crowd *c, uint32_t node, uint32_t times)
{
    uint64_t until_us = clock_boot_us() + EMBED_BOUND_MS * 1000ull;
    while (embed_cluster_wipes(&c->cluster, node) < times) {
        assert_true(clock_boot_us() < until_us);
        (void)sched_yield();
    }
    assert_int_equal(hk_wait_serving(c->cluster.nodes[node], EMBED_BOUND_MS), HK_OK);
}

/* Every thread has made some updates since: its node serves. */
static void until_all_updated(struct member *members, uint64_t more)
{
    uint64_t until_us = clock_boot_us() + EMBED_BOUND_MS * 1000ull;
    for (uint32_t i = 0; i < THREADS; i++) {
        uint64_t wanted = atomic_load(&members[i].updates) + more;
        while (atomic_load(&members[i].updates) < wanted) {
            assert_true(clock_boot_us() < until_us);
            (void)sched_yield();
        }
    }
}

static void nodes_are_wiped_under_their_threads(void **state)
{
    (void)state;
    static struct crowd c;
    static struct member members[THREADS];
    embed_cluster_open(&c.cluster, 3, 2);
    for (uint32_t i = 0; i < THREADS; i++) {
        members[i].crowd = &c;
        members[i].node = i % 3;
        members[i].number = i;
        assert_int_equal(pthread_create(&members[i].thread, NULL, member_main, &members[i]), 0);
    }
    for (uint32_t times = 1; times <= 3; times++) {
        until_all_updated(members, 20);
        embed_cluster_wipe(&c.cluster, 0);
        until_wiped(&c, 0, times);
    }
    until_all_updated(members, 20);
    atomic_store(&c.stop, true);
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(members[i].thread, NULL);
        assert_int_equal(members[i].faults, 0);
        assert_true(members[i].reads > 0);
    }
    check_sums(&c);
    embed_cluster_close(&c.cluster);
}

/* ---- Closing ---- */

struct closing {
    struct embed_cluster *cluster;
    uint32_t node;
    pthread_t thread;
    _Atomic bool *begun;
    uint64_t begun_n, answered;
    uint64_t odd; /* answers that make no sense */
};

static void count_answer(void *context, const struct hk_result *result)
{
    struct closing *c = context;
    c->answered++;
    c->odd += result->err != HK_OK && result->err != HK_ERR_UNAVAILABLE &&
              result->err != HK_ERR_UNKNOWN && result->err != HK_ERR_LOADING;
}

/* Keeps many updates in flight until its node says that it is over. */
static void *closing_main(void *argument)
{
    struct closing *c = argument;
    struct hk_session_options options = {.in_flight_max = HK_IN_FLIGHT_MAX};
    struct hk_session *s;
    char key[24];
    assert_int_equal(hk_session_open(c->cluster->nodes[c->node], &options, &s), HK_OK);
    for (uint64_t i = 0;; i++) {
        snprintf(key, sizeof key, "close-%u", (unsigned)(i % 50));
        int err = hk_put_async(s, hk_text(key), hk_text("value"), NULL, count_answer, c);
        if (err == HK_OK) {
            c->begun_n++;
        } else if (err == HK_ERR_FULL) {
            atomic_store(c->begun, true);
            (void)hk_session_wait(s, 1000);
            (void)hk_session_poll(s, 64);
        } else {
            c->odd += err != HK_ERR_UNAVAILABLE;
            break;
        }
    }
    /* Its node is gone; the session is not. */
    c->odd += hk_get(s, hk_text("close-1"), NULL, 0, NULL) != HK_ERR_UNAVAILABLE;
    c->odd += hk_put(s, hk_text("close-1"), hk_text("x"), NULL) != HK_ERR_UNAVAILABLE;
    hk_session_close(s);
    return NULL;
}

static void close_under_threads(bool now)
{
    struct embed_cluster cluster;
    struct closing threads[THREADS];
    _Atomic bool begun[THREADS];
    embed_cluster_open(&cluster, 3, 2);
    for (uint32_t i = 0; i < THREADS; i++) {
        atomic_init(&begun[i], false);
        threads[i] = (struct closing){.cluster = &cluster, .begun = &begun[i]};
        assert_int_equal(pthread_create(&threads[i].thread, NULL, closing_main, &threads[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        while (!atomic_load(&begun[i])) {
            (void)sched_yield();
        }
    }
    if (now) {
        hk_close_now(cluster.nodes[0]);
    } else {
        hk_close(cluster.nodes[0]);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
        assert_int_equal(threads[i].odd, 0);
        assert_int_equal(threads[i].answered, threads[i].begun_n);
    }
    /* The others go on. */
    struct hk_session *s = embed_cluster_session(&cluster, 1);
    assert_int_equal(hk_wait_serving(cluster.nodes[1], EMBED_BOUND_MS), HK_OK);
    int err;
    do {
        err = hk_put(s, hk_text("after"), hk_text("x"), NULL);
        assert_true(err == HK_OK || err == HK_ERR_UNAVAILABLE || err == HK_ERR_BUSY);
    } while (err != HK_OK);
    hk_session_close(s);
    embed_cluster_start(&cluster, 0);
    assert_int_equal(hk_wait_serving(cluster.nodes[0], EMBED_BOUND_MS), HK_OK);
    embed_cluster_close(&cluster);
}

static void a_node_leaves_under_its_threads(void **state)
{
    (void)state;
    close_under_threads(false);
}

static void a_node_stops_under_its_threads(void **state)
{
    (void)state;
    close_under_threads(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_wiped_under_their_threads),
        cmocka_unit_test(a_node_leaves_under_its_threads),
        cmocka_unit_test(a_node_stops_under_its_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
