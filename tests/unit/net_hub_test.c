#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net/hub.h"
#include "net/port.h"
#include "support/net_link.h"
#include "wire/frame.h"

#define MIB (1024u * 1024u)

struct member {
    struct port *port;
    uint8_t node, worker;
    uint32_t lost;
    uint8_t lost_node, lost_worker;
};

/* Node 0 with one worker, node 1 with two, on one loop. */
struct rig {
    struct hub *hub;
    struct loop *loop;
    struct member a, b[2];
};

static void lost(void *context, uint8_t node, uint8_t remote_worker, uint8_t local_worker,
                 const char *why)
{
    struct member *m = context;
    assert_int_equal(local_worker, m->worker);
    assert_non_null(why);
    m->lost++;
    m->lost_node = node;
    m->lost_worker = remote_worker;
}

static void member_open(struct rig *rig, struct member *m, uint8_t node, uint8_t worker,
                        uint8_t workers)
{
    struct port_config config = {
        .self = node,
        .worker = worker,
        .workers = workers,
        .hub = rig->hub,
        .window = LINK_WINDOW_MIN,
        .queue_max = FRAME_HEADER + FRAME_BODY_MAX,
        .congested_at = MIB,
        .lost = lost,
        .context = m,
    };
    *m = (struct member){.node = node, .worker = worker};
    assert_int_equal(port_create(&config, rig->loop, &m->port), 0);
}

static void adopt_all(struct rig *rig)
{
    port_adopt(rig->a.port);
    port_adopt(rig->b[0].port);
    port_adopt(rig->b[1].port);
}

static void rig_open(struct rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    assert_int_equal(hub_create(64 * 1024, &rig->hub), 0);
    assert_int_equal(loop_create(LOOP_EPOLL, &rig->loop), 0);
    member_open(rig, &rig->b[0], 1, 0, 2);
    member_open(rig, &rig->a, 0, 0, 1);
    member_open(rig, &rig->b[1], 1, 1, 2);
    adopt_all(rig);
}

static void rig_close(struct rig *rig)
{
    port_destroy(rig->a.port);
    port_destroy(rig->b[0].port);
    port_destroy(rig->b[1].port);
    loop_destroy(rig->loop);
    hub_destroy(rig->hub);
}

static void send_to(struct member *m, uint8_t node, uint8_t worker, enum frame_kind kind,
                    uint32_t bytes, uint64_t id)
{
    uint8_t *frame = net_frame_between(kind, bytes, id, m->node, node, worker);
    port_send(m->port, bytes_of(frame, bytes));
    free(frame);
}

static void expect(struct member *m, uint64_t id)
{
    struct bytes frame;
    assert_true(port_receive(m->port, &frame));
    assert_true(net_frame_intact(frame));
    assert_int_equal(net_frame_id(frame), id);
}

static void expect_none(struct member *m)
{
    struct bytes frame;
    assert_false(port_receive(m->port, &frame));
}

static struct port_stats stats(const struct member *m)
{
    struct port_stats now;
    port_flush(m->port);
    port_stats(m->port, &now);
    return now;
}

static void all_meet_all_of_other_nodes(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    assert_true(port_connected(rig.a.port) == nodeset_of(1));
    assert_true(port_connected(rig.b[0].port) == nodeset_of(0));
    assert_true(port_connected(rig.b[1].port) == nodeset_of(0));
    assert_int_equal(stats(&rig.a).connections, 2);
    assert_int_equal(stats(&rig.b[0]).connections, 1);
    assert_int_equal(port_version(rig.a.port, 1), FRAME_VERSION);
    for (uint32_t i = 0; i < 1000; i++) {
        uint8_t target = (uint8_t)(i * 7); /* reduced modulo two */
        struct member *b = &rig.b[target % 2];
        send_to(&rig.a, 1, target, FRAME_BATCH, 72 + i, i);
        expect_none(b);
        port_flush(rig.a.port);
        expect(b, i);
        expect_none(b);
        send_to(b, 0, 0, FRAME_VIEW, 100, 1000 + i);
        port_flush(b->port);
        expect(&rig.a, 1000 + i);
    }
    expect_none(&rig.a);
    assert_int_equal(stats(&rig.b[0]).outstanding, 0);
    assert_int_equal(stats(&rig.a).bytes_in, 100 * 1000);
    assert_int_equal(stats(&rig.b[0]).bytes_out + stats(&rig.b[1]).bytes_out, 100 * 1000);
    rig_close(&rig);
}

static void connections_take_turns(void **state)
{
    (void)state;
    struct rig rig;
    struct bytes frame;
    rig_open(&rig);
    for (uint32_t i = 0; i < 10; i++) {
        send_to(&rig.b[0], 0, 0, FRAME_BATCH, 100, i);
        send_to(&rig.b[1], 0, 0, FRAME_BATCH, 100, 100 + i);
    }
    port_flush(rig.b[0].port);
    port_flush(rig.b[1].port);
    uint64_t first = 0;
    for (uint32_t i = 0; i < 20; i++) {
        assert_true(port_receive(rig.a.port, &frame));
        uint64_t from = net_frame_id(frame) / 100;
        first = i == 0 ? from : first;
        assert_int_equal(from, i % 2 == 0 ? first : 1 - first);
    }
    expect_none(&rig.a);
    rig_close(&rig);
}

static void a_slow_peer_is_congestion_and_then_a_bound(void **state)
{
    (void)state;
    struct rig rig;
    nodeset both = nodeset_of(0) | nodeset_of(1);
    uint64_t sent = 0, received = 0;
    struct bytes frame;
    rig_open(&rig);
    assert_false(port_congested(rig.a.port, both));
    while (!port_congested(rig.a.port, both)) {
        send_to(&rig.a, 1, 0, FRAME_BATCH, 10000, sent++);
        port_flush(rig.a.port);
    }
    assert_true(sent * 10000 >= MIB && sent * 10000 < MIB + 20000);
    assert_false(port_congested(rig.a.port, nodeset_of(0)));
    assert_int_equal(stats(&rig.a).dropped_full, 0);
    while (stats(&rig.a).dropped_full == 0) {
        send_to(&rig.a, 1, 0, FRAME_BATCH, MIB, sent++);
        assert_true(sent < 1000);
    }
    sent--;
    assert_true(stats(&rig.a).outstanding <= FRAME_HEADER + FRAME_BODY_MAX + 64 * 1024);
    while (received < sent) {
        port_flush(rig.a.port);
        while (port_receive(rig.b[0].port, &frame)) {
            assert_true(net_frame_intact(frame));
            assert_int_equal(net_frame_id(frame), received++);
        }
    }
    assert_false(port_congested(rig.a.port, both));
    assert_int_equal(stats(&rig.a).outstanding, 0);
    rig_close(&rig);
}

static void members_that_left_are_forgotten(void **state)
{
    (void)state;
    struct rig rig;
    struct bytes frame;
    uint32_t received = 0;
    rig_open(&rig);
    for (uint32_t i = 0; i < 100; i++) {
        send_to(&rig.a, 1, 0, FRAME_BATCH, 10000, i);
    }
    send_to(&rig.a, 1, 0, FRAME_VIEW, 100, 100);
    port_members(rig.a.port, nodeset_of(0));
    for (uint32_t i = 0; i < 100; i++) {
        port_flush(rig.a.port);
        while (port_receive(rig.b[0].port, &frame)) {
            received++;
        }
    }
    assert_true(received < 8); /* what was in the ring, and the view's */
    assert_int_equal(net_frame_kind(frame), FRAME_VIEW);
    rig_close(&rig);
}

static void who_leaves_is_missed_and_may_come_again(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    for (uint32_t i = 0; i < 5; i++) {
        send_to(&rig.b[1], 0, 0, FRAME_BATCH, 100, i);
    }
    port_flush(rig.b[1].port);
    send_to(&rig.b[1], 0, 0, FRAME_BATCH, 100, 5); /* not flushed: still it was sent */
    port_destroy(rig.b[1].port);
    for (uint32_t i = 0; i < 6; i++) {
        expect(&rig.a, i);
    }
    assert_int_equal(rig.a.lost, 0);
    expect_none(&rig.a);
    assert_int_equal(rig.a.lost, 0); /* not from within port_receive */
    port_flush(rig.a.port);
    assert_int_equal(rig.a.lost, 1);
    assert_int_equal(rig.a.lost_node, 1);
    assert_int_equal(rig.a.lost_worker, 1);
    assert_int_equal(stats(&rig.a).ended, 1);
    assert_int_equal(stats(&rig.a).connections, 1);
    send_to(&rig.a, 1, 1, FRAME_BATCH, 100, 1);
    assert_int_equal(stats(&rig.a).dropped_unconnected, 1);

    member_open(&rig, &rig.b[1], 1, 1, 2);
    adopt_all(&rig);
    send_to(&rig.a, 1, 1, FRAME_BATCH, 100, 2);
    port_flush(rig.a.port);
    expect(&rig.b[1], 2);
    assert_int_equal(rig.a.lost, 1);
    rig_close(&rig);
}

/* One that came and left before anybody adopted what it offered. */
static void offers_of_who_left_end_at_once(void **state)
{
    (void)state;
    struct rig rig;
    struct member c;
    rig_open(&rig);
    member_open(&rig, &c, 2, 0, 1);
    port_destroy(c.port);
    adopt_all(&rig);
    expect_none(&rig.a);
    port_adopt(rig.a.port);
    assert_int_equal(rig.a.lost, 1);
    assert_int_equal(rig.a.lost_node, 2);
    assert_true(port_connected(rig.a.port) == nodeset_of(1));
    rig_close(&rig);
}

/* A loop does not wait while its ports have frames: else this would hang. */
static void a_loop_with_frames_does_not_wait(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    send_to(&rig.a, 1, 0, FRAME_BATCH, 100, 1);
    port_flush(rig.a.port);
    (void)loop_poll(rig.loop, UINT64_MAX);
    expect(&rig.b[0], 1);
    expect_none(&rig.b[0]);
    port_destroy(rig.b[0].port);
    (void)loop_poll(rig.loop, UINT64_MAX);
    expect_none(&rig.a);
    (void)loop_poll(rig.loop, UINT64_MAX);
    port_flush(rig.a.port);
    assert_int_equal(rig.a.lost, 1);
    (void)loop_poll(rig.loop, 1);
    member_open(&rig, &rig.b[0], 1, 0, 2);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_meet_all_of_other_nodes),
        cmocka_unit_test(connections_take_turns),
        cmocka_unit_test(a_slow_peer_is_congestion_and_then_a_bound),
        cmocka_unit_test(members_that_left_are_forgotten),
        cmocka_unit_test(who_leaves_is_missed_and_may_come_again),
        cmocka_unit_test(offers_of_who_left_end_at_once),
        cmocka_unit_test(a_loop_with_frames_does_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
