#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/shm.h"
#include "support/net_link.h"
#include "support/net_port.h"

#define BOUND_US 20000000u
#define MIB (1024u * 1024u)
#define RING (256u * 1024u)

/* Of the two messages, docs/NET.md. */
#define MESSAGE 64u
#define COVERED 48u
enum { OFFER = 1, TAKEN, REFUSED };

/* Node 0 calls, node 1 answers; on one loop. */
struct rig {
    struct loop *loop;
    struct net_port a, b;
    uint64_t until_us;
};

static void rig_open(struct rig *rig, void **state)
{
    memset(rig, 0, sizeof(*rig));
    assert_int_equal(loop_create(*(const enum loop_kind *)*state, &rig->loop), 0);
    net_port_open(&rig->a, rig->loop, 0, 0, 1);
    net_port_open(&rig->b, rig->loop, 1, 0, 1);
    rig->until_us = clock_boot_us() + BOUND_US;
}

static void rig_close(struct rig *rig)
{
    net_port_close(&rig->a);
    net_port_close(&rig->b);
    loop_destroy(rig->loop);
}

static void rig_round(struct rig *rig)
{
    assert_true(clock_boot_us() < rig->until_us);
    port_flush(rig->a.port);
    port_flush(rig->b.port);
    (void)loop_poll(rig->loop, 1000);
    port_adopt(rig->a.port);
    port_adopt(rig->b.port);
}

static struct port_stats stats(const struct net_port *p)
{
    struct port_stats now;
    port_flush(p->port);
    port_stats(p->port, &now);
    return now;
}

static void offer(struct net_port *p, int fd, const struct net_port *a, const struct net_port *b)
{
    struct handshake_peer peer = net_port_peer(a, b, p == b, 1);
    peer.shm = true;
    peer.caller = p == a;
    port_offer(p->port, fd, &peer);
    port_adopt(p->port);
}

static void rig_join(struct rig *rig)
{
    int fds[2];
    net_socket_pair(fds);
    offer(&rig->a, fds[0], &rig->a, &rig->b);
    offer(&rig->b, fds[1], &rig->a, &rig->b);
    assert_int_equal(stats(&rig->a).connections, 0); /* not before both agree */
    while (port_connected(rig->a.port) == 0 || port_connected(rig->b.port) == 0) {
        rig_round(rig);
    }
}

static void send_to(struct net_port *p, uint8_t node, enum frame_kind kind, uint32_t bytes,
                    uint64_t id)
{
    uint8_t *frame = net_frame_between(kind, bytes, id, p->node, node, 0);
    port_send(p->port, bytes_of(frame, bytes));
    free(frame);
}

static void expect(struct rig *rig, struct net_port *p, uint64_t id)
{
    struct bytes frame;
    while (!port_receive(p->port, &frame)) {
        rig_round(rig);
    }
    assert_true(net_frame_intact(frame));
    assert_int_equal(net_frame_id(frame), id);
}

static void frames_go_through_memory(void **state)
{
    struct rig rig;
    rig_open(&rig, state);
    rig_join(&rig);
    assert_int_equal(stats(&rig.a).shared, 1);
    assert_int_equal(stats(&rig.b).shared, 1);
    assert_int_equal(rig.a.fallbacks + rig.b.fallbacks, 0);
    for (uint32_t i = 0; i < 2000; i++) {
        send_to(&rig.a, 1, FRAME_BATCH, 72 + i % 3000, i);
        send_to(&rig.b, 0, FRAME_BATCH, 72 + i % 5000, 10000 + i);
        port_flush(rig.a.port);
        port_flush(rig.b.port);
        expect(&rig, &rig.b, i);
        expect(&rig, &rig.a, 10000 + i);
    }
    for (uint32_t i = 0; i < 5; i++) {
        send_to(&rig.a, 1, FRAME_BATCH, MIB + i, i);
    }
    for (uint32_t i = 0; i < 5; i++) {
        expect(&rig, &rig.b, i);
    }
    rig_close(&rig);
}

static void the_end_is_noticed_after_the_frames(void **state)
{
    struct rig rig;
    rig_open(&rig, state);
    rig_join(&rig);
    for (uint32_t i = 0; i < 5; i++) {
        send_to(&rig.b, 0, FRAME_BATCH, 100, i);
    }
    net_port_close(&rig.b);
    net_port_open(&rig.b, rig.loop, 1, 0, 1);
    while (rig.a.lost == 0) {
        rig_round(&rig);
    }
    for (uint32_t i = 0; i < 5; i++) {
        expect(&rig, &rig.a, i);
    }
    assert_false(port_receive(rig.a.port, &(struct bytes){0}));
    assert_int_equal(rig.a.lost, 1);
    assert_int_equal(stats(&rig.a).connections, 0);
    rig_join(&rig);
    send_to(&rig.a, 1, FRAME_BATCH, 100, 9);
    expect(&rig, &rig.b, 9);
    rig_close(&rig);
}

static void newer_connections_take_the_place(void **state)
{
    struct rig rig;
    int fds[2];
    rig_open(&rig, state);
    net_socket_pair(fds);
    offer(&rig.a, fds[0], &rig.a, &rig.b); /* nobody answers */
    rig_join(&rig);
    assert_int_equal(rig.a.lost, 0);
    rig_join(&rig); /* in the place of one that stands */
    send_to(&rig.a, 1, FRAME_BATCH, 100, 9);
    expect(&rig, &rig.b, 9);
    assert_int_equal(stats(&rig.a).connections, 1);
    net_socket_pair(fds); /* one that still opens when the port goes */
    offer(&rig.a, fds[0], &rig.a, &rig.b);
    rig_close(&rig);
}

/* ---- A peer that is played by hand ---- */

static void seal(uint8_t *message, uint8_t type, const uint8_t key[SESSION_KEY_BYTES])
{
    memcpy(message, "HKSM", 4);
    message[4] = type;
    assert_int_equal(
        crypto_generichash(message + COVERED, 16, message, COVERED, key, SESSION_KEY_BYTES), 0);
}

static void say(int fd, const uint8_t *message, uint32_t bytes)
{
    assert_int_equal(send(fd, message, bytes, MSG_NOSIGNAL), bytes);
}

static void hear(struct rig *rig, int fd, uint8_t message[MESSAGE])
{
    ssize_t n;
    while ((n = recv(fd, message, MESSAGE, 0)) < 0) {
        rig_round(rig);
    }
    assert_int_equal(n, MESSAGE);
    assert_memory_equal(message, "HKSM", 4);
}

/* The port b with an offer at its socket: refused, and over tcp. */
static void refused_offer(void **state, uint32_t ring_bytes, uint32_t process, int segment,
                          const uint8_t token[16])
{
    struct rig rig;
    int fds[2];
    uint8_t message[MESSAGE] = {0};
    rig_open(&rig, state);
    net_socket_pair(fds);
    struct handshake_peer us = net_port_peer(&rig.a, &rig.b, false, 1);
    offer(&rig.b, fds[1], &rig.a, &rig.b);
    put_u32(message + 8, ring_bytes);
    put_u32(message + 12, process);
    put_u32(message + 16, (uint32_t)segment);
    memcpy(message + 24, token, 16);
    seal(message, OFFER, us.keys.send);
    say(fds[0], message, 10); /* in two pieces */
    rig_round(&rig);
    say(fds[0], message + 10, MESSAGE - 10);
    hear(&rig, fds[0], message);
    assert_int_equal(message[4], REFUSED);
    assert_int_equal(rig.b.fallbacks, 1);
    assert_int_equal(stats(&rig.b).connections, 1);
    assert_int_equal(stats(&rig.b).shared, 0);
    (void)close(fds[0]);
    rig_close(&rig);
}

static int make_segment(const char *name, uint32_t bytes, int seals, const uint8_t token[16])
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0);
    assert_int_equal(pwrite(fd, token, 16, 0), 16);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void offers_that_are_refused(void **state)
{
    static const uint8_t token[16] = "sixteen bytes..", other[16] = "another sixteen";
    uint32_t us = (uint32_t)getpid();
    uint32_t bytes = 4096 + (uint32_t)shm_area_bytes(RING) / 4096 * 4096 + 4096;
    int good = make_segment("horkos rings", bytes, F_SEAL_SHRINK, token);
    int shrinks = make_segment("horkos rings", bytes, F_SEAL_GROW, token);
    int small = make_segment("horkos rings", bytes - 4096, F_SEAL_SHRINK, token);
    int named = make_segment("something else", bytes, F_SEAL_SHRINK, token);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    refused_offer(state, 0, 0, 0, token); /* the peer has none */
    refused_offer(state, 1, us, good, token);
    refused_offer(state, RING + 4096, us, good, token);
    refused_offer(state, SHM_RING_MIN / 2, us, good, token);
    refused_offer(state, SHM_RING_MAX * 2, us, good, token);
    refused_offer(state, UINT32_MAX, us, good, token);
    refused_offer(state, RING * 2, us, good, token);
    refused_offer(state, RING, us, shrinks, token);
    refused_offer(state, RING, us, small, token);
    refused_offer(state, RING, us, named, token);
    refused_offer(state, RING, us, null, token);
    refused_offer(state, RING, us, 100000, token);
    refused_offer(state, RING, 0, good, token);
    refused_offer(state, RING, UINT32_MAX, good, token);
    refused_offer(state, RING, us, good, other);
    (void)close(good);
    (void)close(shrinks);
    (void)close(small);
    (void)close(named);
    (void)close(null);
}

/* What only looks like an offer ends the connection. */
static void forged_offers(void **state)
{
    for (uint32_t i = 0; i < 4; i++) {
        struct rig rig;
        int fds[2];
        uint8_t message[MESSAGE + 1] = {0};
        rig_open(&rig, state);
        net_socket_pair(fds);
        struct handshake_peer us = net_port_peer(&rig.a, &rig.b, false, i == 0 ? 2 : 1);
        offer(&rig.b, fds[1], &rig.a, &rig.b);
        seal(message, i == 1 ? TAKEN : OFFER, us.keys.send);
        message[2] = i == 2 ? 'X' : message[2];
        say(fds[0], message, i == 3 ? MESSAGE + 1 : MESSAGE);
        while (rig.b.lost == 0) {
            rig_round(&rig);
        }
        assert_int_equal(stats(&rig.b).connections, 0);
        (void)close(fds[0]);
        rig_close(&rig);
    }
}

static void answers(void **state)
{
    static const struct {
        uint8_t type, session;
        bool stands, shared;
    } cases[] = {
        {REFUSED, 1, true, false},  {TAKEN, 1, true, true},   {TAKEN, 2, false, false},
        {REFUSED, 2, false, false}, {OFFER, 1, false, false}, {0, 1, false, false},
    };
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig rig;
        int fds[2];
        uint8_t message[MESSAGE];
        rig_open(&rig, state);
        net_socket_pair(fds);
        struct handshake_peer us = net_port_peer(&rig.a, &rig.b, true, cases[i].session);
        offer(&rig.a, fds[0], &rig.a, &rig.b);
        hear(&rig, fds[1], message);
        assert_int_equal(message[4], OFFER);
        assert_int_equal(get_u32(message + 8), RING);
        assert_int_equal(get_u32(message + 12), getpid());
        memset(message, 0, sizeof(message));
        seal(message, cases[i].type, us.keys.send);
        say(fds[1], message, MESSAGE);
        while (rig.a.lost + stats(&rig.a).connections == 0) {
            rig_round(&rig);
        }
        assert_int_equal(stats(&rig.a).connections, cases[i].stands);
        assert_int_equal(stats(&rig.a).shared, cases[i].shared);
        assert_int_equal(rig.a.fallbacks, cases[i].stands && !cases[i].shared);
        (void)close(fds[1]);
        while (rig.a.lost == 0) {
            rig_round(&rig);
        }
        rig_close(&rig);
    }
}

/* Positions that lie end the connection and nothing else. */
static void a_peer_that_lies(void **state)
{
    struct rig rig;
    int fds[2];
    uint8_t message[MESSAGE];
    char path[64];
    rig_open(&rig, state);
    net_socket_pair(fds);
    struct handshake_peer us = net_port_peer(&rig.a, &rig.b, true, 1);
    offer(&rig.a, fds[0], &rig.a, &rig.b);
    hear(&rig, fds[1], message);
    (void)snprintf(path, sizeof(path), "/proc/%u/fd/%u", get_u32(message + 12),
                   get_u32(message + 16));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    uint8_t *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(at != MAP_FAILED);
    assert_int_equal(ftruncate(fd, 0), -1); /* sealed */
    memset(message, 0, sizeof(message));
    seal(message, TAKEN, us.keys.send);
    say(fds[1], message, MESSAGE);
    while (stats(&rig.a).connections == 0) {
        rig_round(&rig);
    }
    memset(at + 4096 + 192, 0x77, 8); /* the tail of side 1 */
    while (rig.a.lost == 0) {
        assert_false(port_receive(rig.a.port, &(struct bytes){0}));
        rig_round(&rig);
    }
    assert_string_equal(rig.a.why, shm_fault_names[SHM_POSITION]);
    assert_int_equal(stats(&rig.a).faults, 1);
    (void)munmap(at, 8192);
    (void)close(fd);
    (void)close(fds[1]);
    rig_close(&rig);
}

int main(void)
{
    static enum loop_kind kinds[] = {LOOP_EPOLL, LOOP_AUTO};
    int failed = sodium_init() < 0;
    for (uint32_t i = 0; i < 2; i++) {
        void *kind = &kinds[i];
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(frames_go_through_memory, kind),
            cmocka_unit_test_prestate(the_end_is_noticed_after_the_frames, kind),
            cmocka_unit_test_prestate(newer_connections_take_the_place, kind),
            cmocka_unit_test_prestate(offers_that_are_refused, kind),
            cmocka_unit_test_prestate(forged_offers, kind),
            cmocka_unit_test_prestate(answers, kind),
            cmocka_unit_test_prestate(a_peer_that_lies, kind),
        };
        failed += cmocka_run_group_tests_name(loop_kind_name(kinds[i]), tests, NULL, NULL);
    }
    return failed;
}
