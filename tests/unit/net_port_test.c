#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/link_state.h"
#include "net/port.h"
#include "support/net_link.h"
#include "support/net_port.h"

#define BOUND_US 20000000u
#define MIB (1024u * 1024u)

/* Node 0 with one worker of three, node 1 with both of its two, on one loop. */
struct rig {
    struct loop *loop;
    struct net_port a, b[2];
    uint64_t until_us;
};

static void rig_open(struct rig *rig, enum loop_kind kind)
{
    memset(rig, 0, sizeof(*rig));
    assert_int_equal(loop_create(kind, &rig->loop), 0);
    net_port_open(&rig->a, rig->loop, 0, 2, 3);
    net_port_open(&rig->b[0], rig->loop, 1, 0, 2);
    net_port_open(&rig->b[1], rig->loop, 1, 1, 2);
    rig->until_us = clock_boot_us() + BOUND_US;
}

static void rig_close(struct rig *rig)
{
    net_port_close(&rig->a);
    net_port_close(&rig->b[0]);
    net_port_close(&rig->b[1]);
    loop_destroy(rig->loop);
}

/* One round of all workers, but for what they receive. */
static void rig_round(struct rig *rig)
{
    assert_true(clock_boot_us() < rig->until_us);
    port_flush(rig->a.port);
    port_flush(rig->b[0].port);
    port_flush(rig->b[1].port);
    (void)loop_poll(rig->loop, 1000);
    port_adopt(rig->a.port);
    port_adopt(rig->b[0].port);
    port_adopt(rig->b[1].port);
}

static void rig_lost(struct rig *rig, const struct net_port *p, uint32_t lost)
{
    while (p->lost < lost)
        rig_round(rig);
    assert_int_equal(p->lost, lost);
}

static void send_to(struct net_port *p, uint8_t node, uint8_t worker, enum frame_kind kind,
                    uint32_t bytes, uint64_t id)
{
    uint8_t *frame = net_frame_between(kind, bytes, id, p->node, node, worker);

    port_send(p->port, bytes_of(frame, bytes));
    free(frame);
}

static struct bytes receive(struct rig *rig, struct net_port *p)
{
    struct bytes frame;

    while (!port_receive(p->port, &frame))
        rig_round(rig);
    assert_true(net_frame_intact(frame));
    return frame;
}

static struct port_stats stats(const struct net_port *p)
{
    struct port_stats now;

    port_flush(p->port);
    port_stats(p->port, &now);
    return now;
}

static enum loop_kind kind_of(void **state)
{
    return *(const enum loop_kind *)*state;
}

static void frames_go_to_their_worker(void **state)
{
    struct rig rig;

    rig_open(&rig, kind_of(state));
    net_port_join(&rig.a, &rig.b[0], 1);
    net_port_join(&rig.a, &rig.b[1], 2);
    assert_true(port_connected(rig.a.port) == nodeset_of(1));
    assert_true(port_connected(rig.b[1].port) == nodeset_of(0));
    for (uint32_t i = 0; i < 100; i++) {
        uint8_t target = (uint8_t)(i * 7); /* reduced modulo two */
        struct net_port *b = &rig.b[target % 2];

        send_to(&rig.a, 1, target, FRAME_BATCH, 64 + 100 * i, i);
        assert_int_equal(net_frame_id(receive(&rig, b)), i);
        send_to(b, 0, 2, FRAME_VIEW, 100, 1000 + i);
        assert_int_equal(net_frame_id(receive(&rig, &rig.a)), 1000 + i);
    }
    /* Node 0 has three workers, of which one is connected. */
    send_to(&rig.b[0], 0, 5, FRAME_BATCH, 100, 7);
    assert_int_equal(net_frame_id(receive(&rig, &rig.a)), 7);
    send_to(&rig.b[0], 0, 4, FRAME_BATCH, 100, 8);
    assert_int_equal(stats(&rig.b[0]).dropped_unconnected, 1);
    assert_int_equal(stats(&rig.a).connections, 2);
    assert_true(stats(&rig.a).bytes_in > 0 && stats(&rig.a).bytes_out > 0);
    rig_close(&rig);
}

static void large_frames_arrive(void **state)
{
    struct rig rig;
    uint32_t beats = 0, seen = 0, large = 0;

    rig_open(&rig, kind_of(state));
    net_port_join(&rig.a, &rig.b[0], 1);
    for (uint32_t i = 0; i < 3; i++)
        send_to(&rig.a, 1, 0, FRAME_BATCH, 12 * MIB + i, i);
    while (large < 3) {
        struct bytes frame;

        send_to(&rig.a, 1, 0, FRAME_VIEW, 200, beats++);
        rig_round(&rig);
        while (port_receive(rig.b[0].port, &frame)) {
            assert_true(net_frame_intact(frame));
            if (net_frame_kind(frame) == FRAME_VIEW)
                assert_int_equal(net_frame_id(frame), seen++);
            else
                assert_int_equal(net_frame_id(frame), large++);
        }
    }
    assert_true(seen > 3);
    while (seen < beats)
        assert_int_equal(net_frame_id(receive(&rig, &rig.b[0])), seen++);
    rig_close(&rig);
}

static void given_frames_arrive(void **state)
{
    struct rig rig;
    uint32_t held = 0;
    uint8_t *frame = net_frame_between(FRAME_BATCH, MIB, 3, 0, 1, 0);

    rig_open(&rig, kind_of(state));
    struct pieces pieces = net_pieces(frame, MIB, 100, &held);
    port_give(rig.a.port, &pieces);
    assert_int_equal(held, 0);
    assert_int_equal(stats(&rig.a).dropped_unconnected, 1);
    assert_false(port_large_under_way(rig.a.port, 1, 0));
    net_port_join(&rig.a, &rig.b[0], 1);
    pieces = net_pieces(frame, MIB, 100, &held);
    port_give(rig.a.port, &pieces);
    assert_true(port_large_under_way(rig.a.port, 1, 0));
    assert_false(port_large_under_way(rig.a.port, 1, 1));
    assert_int_equal(net_frame_id(receive(&rig, &rig.b[0])), 3);
    assert_int_equal(held, 0);
    while (port_large_under_way(rig.a.port, 1, 0)) {
        struct bytes none;

        assert_false(port_receive(rig.b[0].port, &none));
        rig_round(&rig);
    }
    /* More than the queue takes. */
    for (uint32_t i = 0; stats(&rig.a).dropped_full == 0; i++) {
        assert_true(i < 1000);
        pieces = net_pieces(frame, MIB, 100, &held);
        port_give(rig.a.port, &pieces);
    }
    rig_close(&rig);
    assert_int_equal(held, 0);
    free(frame);
}

/* What had arrived before the end is received; then nobody is there, until there is again. */
static void connection_ends_and_comes_again(void **state)
{
    struct rig rig;
    struct net_port b;

    rig_open(&rig, kind_of(state));
    net_port_open(&b, rig.loop, 1, 0, 1);
    net_port_join(&rig.a, &b, 1);
    /* Until both have said their windows. */
    send_to(&rig.a, 1, 0, FRAME_BATCH, 100, 1);
    while (stats(&rig.a).outstanding == 0 || !port_receive(b.port, &(struct bytes){0})) {
        port_flush(b.port);
        rig_round(&rig);
    }
    for (uint32_t i = 0; i < 50; i++)
        send_to(&b, 0, 2, FRAME_BATCH, 1000, i);
    port_flush(b.port);
    while (stats(&rig.a).bytes_in < 50000)
        rig_round(&rig);
    assert_int_equal(net_frame_id(receive(&rig, &rig.a)), 0);
    net_port_close(&b);
    rig_lost(&rig, &rig.a, 1);
    assert_int_equal(rig.a.lost_node, 1);
    assert_int_equal(rig.a.lost_worker, 0);
    assert_true(port_connected(rig.a.port) == 0);
    assert_int_equal(stats(&rig.a).connections, 0);
    assert_int_equal(stats(&rig.a).ended, 1);
    assert_int_equal(stats(&rig.a).faults, 0);
    for (uint32_t i = 1; i < 50; i++)
        assert_int_equal(net_frame_id(receive(&rig, &rig.a)), i);
    assert_false(port_receive(rig.a.port, &(struct bytes){0}));
    send_to(&rig.a, 1, 0, FRAME_BATCH, 100, 2);
    assert_int_equal(stats(&rig.a).dropped_unconnected, 1);

    net_port_join(&rig.a, &rig.b[0], 3);
    send_to(&rig.a, 1, 0, FRAME_BATCH, 100, 3);
    assert_int_equal(net_frame_id(receive(&rig, &rig.b[0])), 3);
    rig_close(&rig);
}

static void newer_connection_takes_the_place(void **state)
{
    struct rig rig;

    rig_open(&rig, kind_of(state));
    net_port_join(&rig.a, &rig.b[0], 1);
    net_port_join(&rig.a, &rig.b[0], 2);
    send_to(&rig.a, 1, 0, FRAME_BATCH, 100, 1);
    assert_int_equal(net_frame_id(receive(&rig, &rig.b[0])), 1);
    /* Two offers before one is adopted: the first one's socket is closed. */
    int first = net_port_offer_half(&rig.a, &rig.b[0], 3);
    int second = net_port_offer_half(&rig.a, &rig.b[0], 4);
    uint8_t byte;
    ssize_t n;

    while ((n = recv(first, &byte, 1, 0)) < 0)
        rig_round(&rig);
    assert_int_equal(n, 0);
    while ((n = recv(second, &byte, 1, 0)) < 0)
        rig_round(&rig);
    assert_int_equal(n, 1);
    assert_int_equal(stats(&rig.a).connections, 1);
    assert_int_equal(rig.a.lost, 0);
    /* The other end of what was replaced is told that it is gone. */
    rig_lost(&rig, &rig.b[0], 1);
    (void)close(first);
    (void)close(second);
    rig_close(&rig);
}

static void garbage_ends_only_its_connection(void **state)
{
    struct rig rig;
    uint8_t garbage[1000];

    rig_open(&rig, kind_of(state));
    net_port_join(&rig.a, &rig.b[1], 1);

    int other = net_port_offer_half(&rig.a, &rig.b[0], 2);

    memset(garbage, 0xcc, sizeof(garbage));
    assert_int_equal(send(other, garbage, sizeof(garbage), MSG_NOSIGNAL), sizeof(garbage));
    rig_lost(&rig, &rig.a, 1);
    assert_string_equal(rig.a.why, link_fault_names[LINK_RECORD]);
    assert_int_equal(rig.a.lost_worker, 0);
    (void)close(other);

    /* A well-formed opening without the key. */
    other = net_port_offer_half(&rig.a, &rig.b[0], 2);
    memset(garbage, 0, sizeof(garbage));
    garbage[RECORD_AT_BODY_BYTES] = RECORD_OPEN_BODY;
    garbage[RECORD_AT_KIND] = RECORD_OPEN;
    garbage[RECORD_HEADER + 2] = 8;
    assert_int_equal(send(other, garbage, 100, MSG_NOSIGNAL), 100);
    rig_lost(&rig, &rig.a, 2);
    assert_string_equal(rig.a.why, link_fault_names[LINK_MAC]);
    (void)close(other);
    assert_int_equal(stats(&rig.a).faults, 2);
    assert_int_equal(stats(&rig.a).connections, 1);

    send_to(&rig.a, 1, 1, FRAME_BATCH, 100, 1);
    assert_int_equal(net_frame_id(receive(&rig, &rig.b[1])), 1);
    rig_close(&rig);
}

static void slow_peer_is_congestion(void **state)
{
    struct rig rig;
    nodeset both = nodeset_of(0) | nodeset_of(1);
    uint32_t sent = 0;

    rig_open(&rig, kind_of(state));
    net_port_join(&rig.a, &rig.b[0], 1);
    assert_false(port_congested(rig.a.port, both));
    /* Nobody receives at b. */
    while (!port_congested(rig.a.port, both)) {
        send_to(&rig.a, 1, 0, FRAME_BATCH, 10000, sent++);
        assert_true(sent < 200);
        rig_round(&rig);
    }
    assert_true(sent > 90);
    assert_false(port_congested(rig.a.port, nodeset_of(0)));
    assert_true(stats(&rig.a).outstanding >= MIB);
    /* It takes all, and the congestion ends although it has nothing to say. */
    for (uint32_t i = 0; i < sent; i++)
        assert_int_equal(net_frame_id(receive(&rig, &rig.b[0])), i);
    while (stats(&rig.a).outstanding >= LINK_CREDIT_LAG)
        rig_round(&rig);
    assert_false(port_congested(rig.a.port, both));
    /* The queue has a bound. */
    for (uint32_t i = 0; i < 70; i++)
        send_to(&rig.a, 1, 0, FRAME_BATCH, MIB, i);
    assert_int_equal(stats(&rig.a).dropped_full, 6);
    /* A node that is no member any more: what waits goes, but for what is under way. */
    rig_round(&rig);
    assert_true(stats(&rig.a).outstanding > 60 * MIB);
    port_members(rig.a.port, both);
    assert_true(stats(&rig.a).outstanding > 60 * MIB);
    send_to(&rig.a, 1, 0, FRAME_VIEW, 100, 77);
    port_members(rig.a.port, nodeset_of(0));
    assert_true(stats(&rig.a).outstanding <= MIB + LINK_WINDOW_MIN + 100);
    while (net_frame_kind(receive(&rig, &rig.b[0])) != FRAME_VIEW)
        continue;
    rig_close(&rig);
}

/* A peer that gives credit for everything and reads nothing: what has left the link is what the
 * kernel takes and a little more, so that view frames need not wait behind the rest. All of it goes
 * when the peer reads. */
static void little_waits_in_the_stream(void **state)
{
    struct rig rig;
    struct net_forger forger = {.consumed = 0};
    struct net_wire wire = {0};
    const uint32_t frames = 60;
    uint64_t out, read = 0;
    uint8_t *sink = malloc(MIB);

    rig_open(&rig, kind_of(state));
    assert_non_null(sink);

    int other = net_port_offer_half(&rig.a, &rig.b[0], 1);

    link_mac_init(&forger.mac, net_port_peer(&rig.a, &rig.b[0], false, 1).keys.receive);
    net_forge_open(&forger, &wire, LINK_WINDOW_MAX);
    assert_int_equal(send(other, wire.at, wire.n, MSG_NOSIGNAL), wire.n);
    while (stats(&rig.a).bytes_in < wire.n)
        rig_round(&rig);
    for (uint32_t i = 0; i < frames; i++)
        send_to(&rig.a, 1, 0, FRAME_BATCH, MIB, i);
    do {
        out = stats(&rig.a).bytes_out;
        for (uint32_t i = 0; i < 10; i++)
            rig_round(&rig);
    } while (stats(&rig.a).bytes_out > out);
    assert_true(out < frames / 2 * MIB); /* the kernel's buffers have far less */
    while (read < (uint64_t)frames * MIB) {
        ssize_t n = recv(other, sink, MIB, 0);

        if (n > 0)
            read += (uint64_t)n;
        else
            rig_round(&rig);
    }
    (void)close(other);
    net_wire_clear(&wire);
    free(sink);
    rig_close(&rig);
}

static void connections_take_turns(void **state)
{
    struct rig rig;
    struct bytes frame;

    rig_open(&rig, kind_of(state));
    net_port_join(&rig.a, &rig.b[0], 1);
    net_port_join(&rig.a, &rig.b[1], 2);
    for (uint32_t i = 0; i < 20; i++) {
        send_to(&rig.b[0], 0, 2, FRAME_BATCH, 1000, 0);
        send_to(&rig.b[1], 0, 2, FRAME_BATCH, 1000, 1);
    }
    while (stats(&rig.a).bytes_in < 40000)
        rig_round(&rig);
    assert_true(port_receive(rig.a.port, &frame));
    uint64_t last = net_frame_id(frame);
    for (uint32_t i = 1; i < 40; i++) {
        assert_true(port_receive(rig.a.port, &frame));
        assert_true(net_frame_id(frame) != last);
        last = net_frame_id(frame);
    }
    assert_false(port_receive(rig.a.port, &frame));
    rig_close(&rig);
}

/* The gate's thread offers, somebody reads figures, the worker goes on meanwhile. */
struct offering {
    struct net_port *a, *b;
    _Atomic bool done;
    uint32_t offers;
};

static void *offer_often(void *context)
{
    struct offering *offering = context;

    for (uint32_t i = 0; i < offering->offers; i++) {
        int fds[2];
        struct handshake_peer of_a = net_port_peer(offering->a, offering->b, false, (uint8_t)i);
        struct handshake_peer of_b = net_port_peer(offering->a, offering->b, true, (uint8_t)i);
        struct port_stats now;

        net_socket_pair(fds);
        port_offer(offering->a->port, fds[0], &of_a);
        port_offer(offering->b->port, fds[1], &of_b);
        port_stats(offering->a->port, &now);
        assert_true(now.connections <= 1);
    }
    atomic_store(&offering->done, true);
    return NULL;
}

static void offers_come_from_another_thread(void **state)
{
    struct rig rig;
    struct bytes frame;
    struct offering offering = {.a = &rig.a, .b = &rig.b[0], .offers = 200};
    pthread_t thread;
    uint64_t id = 0;

    rig_open(&rig, kind_of(state));
    assert_int_equal(pthread_create(&thread, NULL, offer_often, &offering), 0);
    while (!atomic_load(&offering.done)) {
        send_to(&rig.a, 1, 0, FRAME_BATCH, 1000, id++);
        rig_round(&rig);
        while (port_receive(rig.b[0].port, &frame))
            assert_true(net_frame_intact(frame));
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    /* The last offers match, and both are taken up. */
    rig_round(&rig);
    send_to(&rig.a, 1, 0, FRAME_BATCH, 1000, UINT64_MAX);
    while (net_frame_id(receive(&rig, &rig.b[0])) != UINT64_MAX)
        continue;
    rig_close(&rig);
}

/* A port that goes closes what it was offered and what it has. */
static void destroy_closes_all(void **state)
{
    struct rig rig;
    uint8_t byte;
    ssize_t n;

    rig_open(&rig, kind_of(state));

    int standing = net_port_offer_half(&rig.a, &rig.b[0], 1);

    port_adopt(rig.a.port);

    int offered = net_port_offer_half(&rig.a, &rig.b[1], 2);
    uint32_t zeros = 0;

    net_port_close(&rig.a);
    net_port_open(&rig.a, rig.loop, 0, 2, 3);
    while ((n = recv(standing, &byte, 1, 0)) != 0) {
        zeros += n > 0;
        rig_round(&rig);
    }
    while (recv(offered, &byte, 1, 0) != 0)
        rig_round(&rig);
    assert_int_equal(zeros, 0);
    (void)close(standing);
    (void)close(offered);
    rig_close(&rig);
}

int main(void)
{
    static const enum loop_kind kinds[] = {LOOP_EPOLL, LOOP_AUTO};
    int failed = 0;

    if (sodium_init() < 0)
        return 1;
    for (size_t i = 0; i < 2; i++) {
        void *kind = (void *)(uintptr_t)&kinds[i];
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(frames_go_to_their_worker, kind),
            cmocka_unit_test_prestate(large_frames_arrive, kind),
            cmocka_unit_test_prestate(given_frames_arrive, kind),
            cmocka_unit_test_prestate(connection_ends_and_comes_again, kind),
            cmocka_unit_test_prestate(newer_connection_takes_the_place, kind),
            cmocka_unit_test_prestate(garbage_ends_only_its_connection, kind),
            cmocka_unit_test_prestate(slow_peer_is_congestion, kind),
            cmocka_unit_test_prestate(little_waits_in_the_stream, kind),
            cmocka_unit_test_prestate(connections_take_turns, kind),
            cmocka_unit_test_prestate(offers_come_from_another_thread, kind),
            cmocka_unit_test_prestate(destroy_closes_all, kind),
        };

        failed += cmocka_run_group_tests_name(loop_kind_name(kinds[i]), tests, NULL, NULL);
    }
    return failed;
}
