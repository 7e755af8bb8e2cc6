/* Ports of several threads that meet in a hub, or share segments as processes do: frames arrive
 * whole and in order while both sides race, and no wake-up is lost. Loops wait for ever each time,
 * so one lost wake-up hangs the test; a watch ends it then. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/random.h"
#include "net/hub.h"
#include "net/port.h"
#include "net/shm.h"
#include "support/net_link.h"
#include "support/net_port.h"

#define NODES 3u
#define PATIENCE_S 120u

struct crowd;

struct member {
    struct crowd *crowd;
    uint8_t node;
    pthread_t thread;
    struct loop *loop;
    struct port *port;
    uint64_t sent[NODES], received[NODES];
    uint64_t faults;
    bool done;
};

struct crowd {
    struct hub *hub;
    enum loop_kind kind;
    pthread_barrier_t barrier;
    uint64_t frames;    /* that each sends to each */
    uint64_t window;    /* how many of them may be unanswered */
    uint32_t bytes_max; /* of a frame */
    _Atomic uint32_t done;
    struct member members[NODES];
};

static void lost(void *context, uint8_t node, uint8_t remote_worker, uint8_t local_worker,
                 const char *why)
{
    (void)context, (void)node, (void)remote_worker, (void)local_worker, (void)why;
}

static void send_some(struct member *m, struct random *random)
{
    struct crowd *c = m->crowd;
    for (uint8_t to = 0; to < NODES; to++) {
        /* Each answers each frame with one of its own, so what has come says what has arrived. */
        while (to != m->node && m->sent[to] < c->frames &&
               m->sent[to] < m->received[to] + c->window) {
            uint32_t bytes = FRAME_HEADER + 8 + (uint32_t)random_below(random, c->bytes_max);
            uint8_t *frame = net_frame_between(FRAME_BATCH, bytes, m->sent[to]++, m->node, to, 0);
            port_send(m->port, bytes_of(frame, bytes));
            free(frame);
        }
    }
}

static void receive_all(struct member *m)
{
    struct bytes frame;
    while (port_receive(m->port, &frame)) {
        uint8_t from = frame.at[15];
        bool right =
            from < NODES && net_frame_intact(frame) && net_frame_id(frame) == m->received[from];
        m->faults += !right;
        m->received[from < NODES ? from : 0]++;
    }
}

static bool complete(const struct member *m)
{
    for (uint32_t i = 0; i < NODES; i++) {
        if (i != m->node && (m->sent[i] < m->crowd->frames || m->received[i] < m->crowd->frames)) {
            return false;
        }
    }
    return true;
}

/* Connections over segments between all of them, as a gate would offer them. */
static void join_all(struct crowd *c)
{
    for (uint8_t a = 0; a < NODES; a++) {
        for (uint8_t b = (uint8_t)(a + 1); b < NODES; b++) {
            struct net_port pa = {.node = a, .workers = 1}, pb = {.node = b, .workers = 1};
            struct handshake_peer of_a = net_port_peer(&pa, &pb, false, (uint8_t)(10 * a + b));
            struct handshake_peer of_b = net_port_peer(&pa, &pb, true, (uint8_t)(10 * a + b));
            int fds[2];
            of_a.shm = of_b.shm = true;
            of_a.caller = true;
            net_socket_pair(fds);
            port_offer(c->members[a].port, fds[0], &of_a);
            port_offer(c->members[b].port, fds[1], &of_b);
        }
    }
}

static void *serve(void *argument)
{
    struct member *m = argument;
    struct crowd *c = m->crowd;
    struct random random;
    struct port_config config = {
        .self = m->node,
        .workers = 1,
        .hub = c->hub,
        .window = LINK_WINDOW_MIN,
        .queue_max = NET_QUEUE_MAX,
        .congested_at = NET_QUEUE_MAX,
        .lost = lost,
    };
    random_init(&random, m->node);
    bool made = loop_create(c->kind, &m->loop) == 0 && port_create(&config, m->loop, &m->port) == 0;
    m->faults += !made;
    (void)pthread_barrier_wait(&c->barrier); /* all are there */
    if (c->hub == NULL && m->node == 0) {
        join_all(c);
    }
    while (made && atomic_load(&c->done) < NODES) {
        port_adopt(m->port);
        receive_all(m);
        if (nodeset_count(port_connected(m->port)) == NODES - 1) {
            send_some(m, &random);
        }
        port_flush(m->port);
        if (!m->done && complete(m)) {
            m->done = true;
            if (atomic_fetch_add(&c->done, 1) == NODES - 1) {
                for (uint32_t i = 0; i < NODES; i++) {
                    loop_wake(c->members[i].loop);
                }
            }
        }
        (void)loop_poll(m->loop, UINT64_MAX);
    }
    (void)pthread_barrier_wait(&c->barrier); /* nobody wakes a loop that is gone */
    port_destroy(m->port);
    loop_destroy(m->loop);
    return NULL;
}

/* ring_bytes: of a hub; 0: segments. */
static void run(enum loop_kind kind, uint32_t ring_bytes, uint64_t frames, uint64_t window,
                uint32_t bytes_max)
{
    struct crowd c = {.kind = kind, .frames = frames, .window = window, .bytes_max = bytes_max};
    alarm(PATIENCE_S);
    if (ring_bytes > 0) {
        assert_int_equal(hub_create(ring_bytes, &c.hub), 0);
    }
    assert_int_equal(pthread_barrier_init(&c.barrier, NULL, NODES), 0);
    for (uint8_t i = 0; i < NODES; i++) {
        c.members[i].crowd = &c;
        c.members[i].node = i;
        assert_int_equal(pthread_create(&c.members[i].thread, NULL, serve, &c.members[i]), 0);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(pthread_join(c.members[i].thread, NULL), 0);
        assert_int_equal(c.members[i].faults, 0);
        assert_true(complete(&c.members[i]));
    }
    assert_int_equal(pthread_barrier_destroy(&c.barrier), 0);
    hub_destroy(c.hub);
    alarm(0);
}

/* Everybody sleeps before nearly each frame. */
static void one_by_one(void **state)
{
    (void)state;
    run(LOOP_EPOLL, 64 * 1024, 5000, 1, 100);
    run(LOOP_AUTO, 64 * 1024, 5000, 1, 100);
}

/* The ring is full most of the time: senders sleep until there is room. */
static void full_rings(void **state)
{
    (void)state;
    run(LOOP_EPOLL, SHM_RING_MIN, 5000, 1000, 900);
    run(LOOP_AUTO, SHM_RING_MIN, 5000, 1000, 3000);
}

static void large_frames(void **state)
{
    (void)state;
    run(LOOP_AUTO, SHM_RING_MIN, 200, 4, 100000);
}

/* Woken by a byte on the socket; the rings of segments have 256 KiB. */
static void segments(void **state)
{
    (void)state;
    run(LOOP_EPOLL, 0, 5000, 1, 100);
    run(LOOP_AUTO, 0, 5000, 1, 100);
    run(LOOP_AUTO, 0, 2000, 1000, 60000);
    run(LOOP_AUTO, 0, 20, 4, 1000000);
}

/* ---- Coming and going while others send ---- */

struct visitor {
    struct hub *hub;
    _Atomic bool stop;
    uint64_t rounds;
};

static void *come_and_go(void *argument)
{
    struct visitor *v = argument;
    struct loop *loop = NULL;
    if (loop_create(LOOP_EPOLL, &loop) != 0) {
        return NULL;
    }
    while (!atomic_load(&v->stop)) {
        struct port_config config = {
            .self = 1,
            .workers = 1,
            .hub = v->hub,
            .window = LINK_WINDOW_MIN,
            .queue_max = NET_QUEUE_MAX,
            .congested_at = NET_QUEUE_MAX,
            .lost = lost,
        };
        struct port *port = NULL;
        struct bytes frame;
        if (port_create(&config, loop, &port) != 0) {
            break;
        }
        port_adopt(port);
        while (!port_receive(port, &frame) && !atomic_load(&v->stop)) {
            port_flush(port);
            (void)loop_poll(loop, UINT64_MAX);
            port_adopt(port);
        }
        port_destroy(port);
        v->rounds++;
    }
    loop_destroy(loop);
    return NULL;
}

static void ports_come_and_go(void **state)
{
    (void)state;
    struct visitor v = {.rounds = 0};
    struct loop *loop = NULL;
    struct port *port = NULL;
    pthread_t thread;
    alarm(PATIENCE_S);
    assert_int_equal(hub_create(SHM_RING_MIN, &v.hub), 0);
    assert_int_equal(loop_create(LOOP_EPOLL, &loop), 0);
    struct port_config config = {
        .self = 0,
        .workers = 1,
        .hub = v.hub,
        .window = LINK_WINDOW_MIN,
        .queue_max = NET_QUEUE_MAX,
        .congested_at = NET_QUEUE_MAX,
        .lost = lost,
    };
    assert_int_equal(port_create(&config, loop, &port), 0);
    assert_int_equal(pthread_create(&thread, NULL, come_and_go, &v), 0);
    uint8_t *frame = net_frame_between(FRAME_BATCH, 100, 1, 0, 1, 0);
    struct port_stats stats = {.ended = 0};
    while (stats.ended < 300) {
        struct bytes none;
        port_adopt(port);
        if (port_connected(port) != 0) {
            port_send(port, bytes_of(frame, 100));
        }
        assert_false(port_receive(port, &none));
        port_flush(port);
        port_stats(port, &stats);
        (void)loop_poll(loop, stats.ended < 300 && stats.connections == 0 ? UINT64_MAX : 0);
    }
    free(frame);
    atomic_store(&v.stop, true);
    port_destroy(port); /* wakes the other, if it is there */
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(v.rounds >= 300);
    loop_destroy(loop);
    hub_destroy(v.hub);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_by_one),        cmocka_unit_test(full_rings),
        cmocka_unit_test(large_frames),      cmocka_unit_test(segments),
        cmocka_unit_test(ports_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
