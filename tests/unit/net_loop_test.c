/* The loop's contract, on every backend: bytes in and out, pausing, ends and closings, bounds of
 * buffers and queues. One thread drives both ends. */
#include "support/net_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"

#define MIB (1024u * 1024u)

/* Whether the other side has closed. */
static bool peer_closed(int fd)
{
    uint8_t byte;
    ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return n == 0 || (n < 0 && errno != EAGAIN);
}

static bool descriptor_closed(int fd)
{
    return fcntl(fd, F_GETFD) < 0;
}

static void close_plainly(int fd)
{
    assert_int_equal(close(fd), 0);
}

/* ---- Bytes ---- */

static void echo(struct loop *loop, int fds[2], uint64_t bytes, struct random *r)
{
    struct net_loop_conn conn;
    uint64_t sent = 0, back = 0;
    net_loop_open(&conn, loop, fds[0]);
    conn.echo = true;
    NET_LOOP_UNTIL(loop, back == bytes)
    {
        net_loop_write(fds[1], &sent, bytes, (size_t)random_below(r, 40000));
        assert_false(net_loop_read(fds[1], &back, (size_t)random_below(r, 40000)));
    }
    assert_int_equal(conn.received, bytes);
    assert_int_equal(stream_queued(conn.stream), 0);
    assert_int_equal(conn.closed, 0);
    stream_close(conn.stream);
    (void)loop_poll(loop, 0);
    assert_true(peer_closed(fds[1]));
    assert_int_equal(close(fds[1]), 0);
}

static void test_echo(void **state)
{
    struct loop *loop = net_loop_create(state);
    struct random r;
    random_init(&r, 1);
    for (int small = 0; small < 2; small++) {
        int fds[2];
        net_loop_pair_unix(fds, small ? 1 : 0);
        echo(loop, fds, small ? 300000 : 3000000, &r);
        net_loop_pair_tcp(fds, small ? 4096 : 0);
        echo(loop, fds, small ? 300000 : 3000000, &r);
    }
    loop_destroy(loop);
}

/* Everything queued at once; the other side reads with pauses, so the kernel is full often. */
static void test_large_output(void **state)
{
    struct loop *loop = net_loop_create(state);
    struct net_loop_conn conn;
    int fds[2];
    uint64_t back = 0;
    net_loop_pair_tcp(fds, 0);
    net_loop_open(&conn, loop, fds[0]);
    for (uint32_t i = 0; i < 64; i++) {
        net_loop_queue(&conn, MIB - 1 + i % 3);
    }
    assert_int_equal(stream_queued(conn.stream), conn.written);
    uint64_t queued = stream_queued(conn.stream);
    NET_LOOP_UNTIL(loop, back == conn.written)
    {
        assert_true(stream_queued(conn.stream) <= queued);
        queued = stream_queued(conn.stream);
        assert_false(net_loop_read(fds[1], &back, 3 * MIB));
    }
    NET_LOOP_UNTIL(loop, conn.drained > 0)
    {
    }
    assert_int_equal(conn.drained, 1);
    assert_int_equal(stream_queued(conn.stream), 0);
    /* What is kept for the next is little. */
    assert_true(loop->spare_bytes <= LOOP_SPARE_MAX);
    loop_destroy(loop);
    assert_int_equal(close(fds[1]), 0);
}

/* Output that was added while a send waited for room comes after it, and none is lost however much
 * of it the kernel takes at a time. */
static void test_output_grows_while_sending(void **state)
{
    struct loop *loop = net_loop_create(state);
    struct random r;
    random_init(&r, 7);
    for (int tcp = 0; tcp < 2; tcp++) {
        struct net_loop_conn conn;
        int fds[2];
        uint64_t back = 0;
        (tcp ? net_loop_pair_tcp : net_loop_pair_unix)(fds, 4096);
        net_loop_open(&conn, loop, fds[0]);
        NET_LOOP_UNTIL(loop, conn.written > 4 * MIB)
        {
            if (stream_queued(conn.stream) < MIB) {
                net_loop_queue(
                    &conn, (uint32_t)random_below(&r, random_chance(&r, 100000) ? 100000 : 500));
            }
            assert_false(net_loop_read(fds[1], &back, (size_t)random_below(&r, 9000)));
            if (random_chance(&r, 200000)) {
                NET_LOOP_UNTIL(loop, stream_queued(conn.stream) == 0)
                {
                    assert_false(net_loop_read(fds[1], &back, 100000));
                }
            }
        }
        NET_LOOP_UNTIL(loop, back == conn.written)
        {
            assert_false(net_loop_read(fds[1], &back, 100000));
        }
        stream_close(conn.stream);
        assert_int_equal(close(fds[1]), 0);
    }
    loop_destroy(loop);
}

/* Small outputs that the kernel takes at once are not reported; large ones are, each once. */
static void test_drained(void **state)
{
    struct loop *loop = net_loop_create(state);
    struct net_loop_conn conn;
    int fds[2];
    uint64_t back = 0;
    net_loop_pair_tcp(fds, 0);
    net_loop_open(&conn, loop, fds[0]);
    for (uint32_t i = 0; i < 10; i++) {
        net_loop_queue(&conn, 100);
        assert_int_equal(loop_poll(loop, 0), 0);
        assert_int_equal(stream_queued(conn.stream), 0);
        NET_LOOP_UNTIL(loop, back == conn.written)
        {
            assert_false(net_loop_read(fds[1], &back, MIB));
        }
    }
    assert_int_equal(conn.drained, 0);
    for (uint32_t i = 1; i <= 10; i++) {
        net_loop_queue(&conn, LOOP_DRAINED_MIN);
        /* It does not wait, for there is something to tell. */
        assert_int_equal(loop_poll(loop, UINT64_MAX), 1);
        assert_int_equal(conn.drained, i);
        NET_LOOP_UNTIL(loop, back == conn.written)
        {
            assert_false(net_loop_read(fds[1], &back, MIB));
        }
    }
    /* A reservation alone sends nothing. */
    assert_non_null(stream_reserve(conn.stream, 10));
    assert_int_equal(stream_queued(conn.stream), 0);
    assert_int_equal(loop_poll(loop, 0), 0);
    loop_destroy(loop);
    assert_int_equal(close(fds[1]), 0);
}

/* ---- Pausing ---- */

static void test_pause(void **state)
{
    struct loop *loop = net_loop_create(state);
    for (int tcp = 0; tcp < 2; tcp++) {
        struct net_loop_conn conn;
        int fds[2];
        uint64_t sent = 0;
        (tcp ? net_loop_pair_tcp : net_loop_pair_unix)(fds, 0);
        net_loop_open(&conn, loop, fds[0]);
        NET_LOOP_UNTIL(loop, conn.received == 1000)
        {
            net_loop_write(fds[1], &sent, 1000, 1000);
        }
        for (uint32_t round = 0; round < 20; round++) {
            stream_pause(conn.stream);
            (void)loop_poll(loop, 0);
            uint64_t before = conn.received;
            net_loop_write(fds[1], &sent, sent + 300000, 300000);
            for (uint32_t i = 0; i < 20; i++) {
                assert_int_equal(loop_poll(loop, 100), 0);
            }
            assert_int_equal(conn.received, before);
            stream_resume(conn.stream);
            if (round % 2 == 0) {
                NET_LOOP_UNTIL(loop, conn.received == sent)
                {
                }
            } else {
                /* Also back and forth, with something under way. */
                (void)loop_poll(loop, 0);
                stream_pause(conn.stream);
                stream_resume(conn.stream);
                (void)loop_poll(loop, 0);
            }
        }
        NET_LOOP_UNTIL(loop, conn.received == sent)
        {
        }
        stream_close(conn.stream);
        assert_int_equal(close(fds[1]), 0);
    }
    loop_destroy(loop);
}

static void pause_it(struct net_loop_conn *conn)
{
    stream_pause(conn->stream);
}

/* A pause in the midst of a flood: what comes afterwards is bounded, and the sender is held up. */
static void test_pause_while_flooded(void **state)
{
    struct loop *loop = net_loop_create(state);
    struct net_loop_conn conn;
    int fds[2];
    uint64_t sent = 0;
    net_loop_pair_tcp(fds, 0);
    net_loop_open(&conn, loop, fds[0]);
    conn.on_received = pause_it;
    net_loop_write(fds[1], &sent, 64 * MIB, 64 * MIB);
    for (uint32_t i = 0; i < 50; i++) {
        (void)loop_poll(loop, 100);
        net_loop_write(fds[1], &sent, 64 * MIB, 64 * MIB);
    }
    assert_in_range(conn.received, 1, 8 * MIB);
    assert_true(sent < 64 * MIB);
    conn.on_received = NULL;
    stream_resume(conn.stream);
    NET_LOOP_UNTIL(loop, conn.received == 64 * MIB)
    {
        net_loop_write(fds[1], &sent, 64 * MIB, 64 * MIB);
    }
    loop_destroy(loop);
    assert_int_equal(close(fds[1]), 0);
}

/* A paused stream neither spins nor loses what came before the end. */
static void test_pause_and_end(void **state)
{
    struct loop *loop = net_loop_create(state);
    struct net_loop_conn conn;
    int fds[2];
    uint64_t sent = 0;
    net_loop_pair_tcp(fds, 0);
    net_loop_open(&conn, loop, fds[0]);
    stream_pause(conn.stream);
    (void)loop_poll(loop, 0);
    net_loop_write(fds[1], &sent, 50000, 50000);
    assert_int_equal(close(fds[1]), 0);
    (void)loop_poll(loop, 0);
    (void)loop_poll(loop, 0);
    uint64_t start_us = clock_boot_us();
    assert_int_equal(loop_poll(loop, 20000), 0);
    assert_true(clock_boot_us() - start_us >= 20000);
    stream_resume(conn.stream);
    NET_LOOP_UNTIL(loop, conn.closed > 0)
    {
    }
    assert_int_equal(conn.received, sent);
    assert_int_equal(conn.error, 0);
    loop_destroy(loop);
}

/* ---- Ends ---- */

static void test_end_and_reset(void **state)
{
    struct loop *loop = net_loop_create(state);
    for (int reset = 0; reset < 2; reset++) {
        struct net_loop_conn conn;
        int fds[2];
        uint64_t sent = 0;
        net_loop_pair_tcp(fds, 0);
        net_loop_open(&conn, loop, fds[0]);
        NET_LOOP_UNTIL(loop, conn.received == 10)
        {
            net_loop_write(fds[1], &sent, 10, 10);
        }
        if (reset) {
            net_loop_reset(fds[1]);
        } else {
            assert_int_equal(close(fds[1]), 0);
        }
        NET_LOOP_UNTIL(loop, conn.closed > 0)
        {
        }
        assert_int_equal(conn.error, reset ? ECONNRESET : 0);
        assert_int_equal(descriptor_closed(fds[0]), 1);
    }
    loop_destroy(loop);
}

/* A peer that is gone while we only send. */
static void test_send_to_the_dead(void **state)
{
    struct loop *loop = net_loop_create(state);
    for (int paused = 0; paused < 2; paused++) {
        struct net_loop_conn conn;
        int fds[2];
        net_loop_pair_tcp(fds, 4096);
        net_loop_open(&conn, loop, fds[0]);
        if (paused) {
            stream_pause(conn.stream);
        }
        net_loop_queue(&conn, MIB);
        (void)loop_poll(loop, 0);
        (void)loop_poll(loop, 0);
        assert_true(stream_queued(conn.stream) > 0);
        net_loop_reset(fds[1]);
        NET_LOOP_UNTIL(loop, conn.closed > 0)
        {
        }
        assert_true(conn.error == ECONNRESET || conn.error == EPIPE);
        assert_int_equal(descriptor_closed(fds[0]), 1);
    }
    loop_destroy(loop);
}

static void echo_more(struct net_loop_conn *conn)
{
    net_loop_queue(conn, 3 * MIB);
}

/* The other side says that it will send nothing more, and still gets what was answered. */
static void test_output_after_the_end(void **state)
{
    struct loop *loop = net_loop_create(state);
    struct net_loop_conn conn;
    int fds[2];
    uint64_t sent = 0, back = 0;
    net_loop_pair_tcp(fds, 4096);
    net_loop_open(&conn, loop, fds[0]);
    conn.on_received = echo_more;
    net_loop_write(fds[1], &sent, 10, 10);
    assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
    bool over = false;
    NET_LOOP_UNTIL(loop, over)
    {
        over = net_loop_read(fds[1], &back, MIB);
    }
    assert_int_equal(conn.closed, 1);
    assert_int_equal(conn.error, 0);
    assert_int_equal(back, conn.written);
    assert_int_equal(descriptor_closed(fds[0]), 1);
    assert_int_equal(close(fds[1]), 0);
    loop_destroy(loop);
}

static bool go_on(struct net_loop_conn *conn)
{
    return conn->stream != NULL;
}

/* The other side has shut its half, and the owner answers for a while yet. */
static void test_half_open(void **state)
{
    struct loop *loop = net_loop_create(state);
    for (int broken = 0; broken < 2; broken++) {
        struct net_loop_conn conn;
        int fds[2];
        uint64_t sent = 0, back = 0;
        net_loop_pair_tcp(fds, 4096);
        net_loop_open(&conn, loop, fds[0]);
        conn.on_ended = go_on;
        net_loop_write(fds[1], &sent, 10, 10);
        assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
        NET_LOOP_UNTIL(loop, conn.ended > 0)
        {
        }
        assert_int_equal(conn.received, sent);
        (void)loop_poll(loop, 0);
        /* It is said once, and the loop can sleep. */
        uint64_t start_us = clock_boot_us();
        assert_int_equal(loop_poll(loop, 20000), 0);
        assert_true(clock_boot_us() - start_us + 1 >= 20000);
        net_loop_queue(&conn, MIB);
        if (broken) {
            (void)loop_poll(loop, 0);
            net_loop_reset(fds[1]);
            NET_LOOP_UNTIL(loop, conn.closed > 0)
            {
            }
            assert_true(conn.error == ECONNRESET || conn.error == EPIPE);
        } else {
            bool over = false;
            NET_LOOP_UNTIL(loop, over)
            {
                over = net_loop_read(fds[1], &back, MIB);
                if (conn.drained > 0 && conn.stream != NULL) {
                    stream_finish(conn.stream, NET_LOOP_PATIENCE_US);
                    conn.stream = NULL;
                }
            }
            assert_int_equal(back, conn.written);
            assert_int_equal(conn.closed, 0);
            assert_int_equal(close(fds[1]), 0);
        }
        assert_int_equal(conn.ended, 1);
        assert_int_equal(descriptor_closed(fds[0]), 1);
    }
    loop_destroy(loop);
}

static bool close_at_the_end(struct net_loop_conn *conn)
{
    stream_close(conn->stream);
    conn->stream = NULL;
    return conn->echo;
}

static bool finish_at_the_end(struct net_loop_conn *conn)
{
    stream_finish(conn->stream, NET_LOOP_PATIENCE_US);
    conn->stream = NULL;
    return conn->echo;
}

/* The owner ends the stream while it is told of the end, whatever it answers then. */
static void test_close_at_the_end(void **state)
{
    struct loop *loop = net_loop_create(state);
    for (int which = 0; which < 4; which++) {
        struct net_loop_conn conn;
        int fds[2];
        uint64_t back = 0;
        bool finishes = which >= 2;
        net_loop_pair_tcp(fds, 4096);
        net_loop_open(&conn, loop, fds[0]);
        conn.on_ended = finishes ? finish_at_the_end : close_at_the_end;
        conn.echo = which % 2 == 0;
        net_loop_queue(&conn, MIB);
        assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
        bool over = false;
        NET_LOOP_UNTIL(loop, over)
        {
            over = net_loop_read(fds[1], &back, MIB);
        }
        assert_int_equal(back == conn.written, finishes);
        assert_int_equal(conn.ended, 1);
        assert_int_equal(conn.closed, 0);
        assert_int_equal(descriptor_closed(fds[0]), 1);
        assert_int_equal(close(fds[1]), 0);
    }
    loop_destroy(loop);
}

/* ---- Closing from within ---- */

static void close_it(struct net_loop_conn *conn)
{
    struct stream *s = conn->stream;
    if (conn->closed == 0) {
        conn->stream = NULL;
    }
    stream_close(s);
}

static void test_close_within_callbacks(void **state)
{
    struct loop *loop = net_loop_create(state);
    for (int which = 0; which < 3; which++) {
        struct net_loop_conn conn;
        int fds[2];
        uint64_t sent = 0, back = 0;
        net_loop_pair_tcp(fds, 0);
        net_loop_open(&conn, loop, fds[0]);
        conn.on_received = which == 0 ? close_it : NULL;
        conn.on_drained = which == 1 ? close_it : NULL;
        conn.on_closed = which == 2 ? close_it : NULL;
        net_loop_write(fds[1], &sent, 200000, 200000);
        net_loop_queue(&conn, 100000);
        bool over = false, shut = false;
        NET_LOOP_UNTIL(loop, over)
        {
            over = net_loop_read(fds[1], &back, MIB);
            if (which == 2 && back == conn.written && !shut) {
                assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
                shut = true;
            }
        }
        assert_null(conn.stream);
        assert_int_equal(conn.closed, which == 2);
        assert_int_equal(descriptor_closed(fds[0]), 1);
        assert_int_equal(close(fds[1]), 0);
    }
    loop_destroy(loop);
}

static struct net_loop_conn *victim;

static void close_the_other(struct net_loop_conn *conn)
{
    (void)conn;
    if (victim->stream != NULL) {
        stream_close(victim->stream);
        victim->stream = NULL;
    }
}

/* Both have something in the same round; the first closes the second, and the other way round. */
static void test_close_another_within_a_callback(void **state)
{
    struct loop *loop = net_loop_create(state);
    for (int which = 0; which < 2; which++) {
        struct net_loop_conn conns[2];
        int fds[2][2];
        for (int i = 0; i < 2; i++) {
            net_loop_pair_tcp(fds[i], 0);
            net_loop_open(&conns[i], loop, fds[i][0]);
        }
        victim = &conns[1 - which];
        conns[which].on_received = close_the_other;
        (void)loop_poll(loop, 0);
        for (int i = 0; i < 2; i++) {
            uint64_t sent = 0;
            net_loop_write(fds[i][1], &sent, 200000, 200000);
        }
        NET_LOOP_UNTIL(loop, conns[which].received == 200000)
        {
        }
        assert_null(victim->stream);
        assert_int_equal(victim->closed, 0);
        (void)loop_poll(loop, 0);
        assert_int_equal(descriptor_closed(fds[1 - which][0]), 1);
        stream_close(conns[which].stream);
        assert_int_equal(close(fds[0][1]), 0);
        assert_int_equal(close(fds[1][1]), 0);
    }
    loop_destroy(loop);
}

/* ---- Finishing ---- */

static void test_finish_delivers(void **state)
{
    struct loop *loop = net_loop_create(state);
    for (uint32_t queued = 0; queued < 3; queued++) {
        struct net_loop_conn conn;
        int fds[2];
        uint64_t sent = 0, back = 0;
        net_loop_pair_tcp(fds, 0);
        net_loop_open(&conn, loop, fds[0]);
        /* The other side has sent what nobody will read: a plain close would answer with a reset,
         * which may overtake the output. */
        net_loop_write(fds[1], &sent, 100000, 100000);
        stream_pause(conn.stream);
        const uint32_t sizes[] = {0, 1000, 8 * MIB};
        net_loop_queue(&conn, sizes[queued]);
        stream_finish(conn.stream, NET_LOOP_PATIENCE_US);
        bool over = false;
        NET_LOOP_UNTIL(loop, over)
        {
            over = net_loop_read(fds[1], &back, MIB);
        }
        assert_int_equal(back, conn.written);
        uint8_t byte;
        assert_int_equal(recv(fds[1], &byte, 1, MSG_DONTWAIT), 0);
        assert_int_equal(descriptor_closed(fds[0]), 0);
        assert_int_equal(close(fds[1]), 0);
        NET_LOOP_UNTIL(loop, descriptor_closed(fds[0]))
        {
        }
        assert_int_equal(conn.received, 0);
        assert_int_equal(conn.closed + conn.drained, 0);
    }
    loop_destroy(loop);
}

static void test_finish_gives_up(void **state)
{
    struct loop *loop = net_loop_create(state);
    for (int read_all = 0; read_all < 2; read_all++) {
        struct net_loop_conn conn;
        int fds[2];
        uint64_t back = 0;
        net_loop_pair_tcp(fds, 4096);
        net_loop_open(&conn, loop, fds[0]);
        net_loop_queue(&conn, read_all ? 100 : MIB);
        uint64_t start_us = clock_boot_us();
        stream_finish(conn.stream, 30000);
        NET_LOOP_UNTIL(loop, descriptor_closed(fds[0]))
        {
            if (read_all) {
                (void)net_loop_read(fds[1], &back, MIB);
            }
        }
        uint64_t took_us = clock_boot_us() - start_us;
        assert_in_range(took_us, 30000, 10000000);
        assert_int_equal(conn.closed + conn.drained, 0);
        assert_int_equal(close(fds[1]), 0);
    }
    /* The time to give up also ends a long wait. */
    struct net_loop_conn conn;
    int fds[2];
    net_loop_pair_tcp(fds, 4096);
    net_loop_open(&conn, loop, fds[0]);
    stream_finish(conn.stream, 30000);
    uint64_t start_us = clock_boot_us();
    NET_LOOP_UNTIL(loop, descriptor_closed(fds[0]))
    {
        (void)loop_poll(loop, NET_LOOP_PATIENCE_US);
    }
    assert_in_range(clock_boot_us() - start_us, 30000, NET_LOOP_PATIENCE_US / 2);
    assert_int_equal(close(fds[1]), 0);
    loop_destroy(loop);
}

static void test_finish_meets_a_reset(void **state)
{
    struct loop *loop = net_loop_create(state);
    for (uint32_t queued = 0; queued <= MIB; queued += MIB) {
        struct net_loop_conn conn;
        int fds[2];
        net_loop_pair_tcp(fds, 4096);
        net_loop_open(&conn, loop, fds[0]);
        net_loop_queue(&conn, queued);
        stream_finish(conn.stream, UINT64_MAX);
        (void)loop_poll(loop, 0);
        net_loop_reset(fds[1]);
        NET_LOOP_UNTIL(loop, descriptor_closed(fds[0]))
        {
        }
        assert_int_equal(conn.closed + conn.drained, 0);
    }
    loop_destroy(loop);
}

/* ---- Time ---- */

static void test_timeouts(void **state)
{
    struct loop *loop = net_loop_create(state);
    struct net_loop_conn conn;
    int fds[2];
    net_loop_pair_tcp(fds, 0);
    net_loop_open(&conn, loop, fds[0]);
    (void)loop_poll(loop, 0);
    const uint64_t timeouts_us[] = {0, 1, 50, 700, 1000, 1500, 20000};
    for (size_t i = 0; i < sizeof(timeouts_us) / sizeof(timeouts_us[0]); i++) {
        uint64_t start_us = clock_boot_us();
        assert_int_equal(loop_poll(loop, timeouts_us[i]), 0);
        uint64_t took_us = clock_boot_us() - start_us;
        /* Two clocks that run alike, one of them cut to microseconds. */
        assert_true(took_us + 1 >= timeouts_us[i]);
        assert_true(took_us < timeouts_us[i] + 5000000);
    }
    loop_destroy(loop);
    assert_int_equal(close(fds[1]), 0);
}

/* A wake-up before the wait ends it, once; one that fell into a poll that did not wait counts for
 * the next that does. */
static void test_wake_before(void **state)
{
    struct loop *loop = net_loop_create(state);
    loop_wake(loop);
    loop_wake(loop);
    assert_int_equal(loop_poll(loop, UINT64_MAX), 0);
    uint64_t start_us = clock_boot_us();
    assert_int_equal(loop_poll(loop, 20000), 0);
    assert_true(clock_boot_us() - start_us + 1 >= 20000);
    loop_wake(loop);
    assert_int_equal(loop_poll(loop, 0), 0);
    assert_int_equal(loop_poll(loop, UINT64_MAX), 0);
    loop_destroy(loop);
}

/* A thread that never waits sees what arrives all the same, and what it queues goes out. */
static void test_busy(void **state)
{
    struct loop *loop = net_loop_create(state);
    struct net_loop_conn conn;
    int fds[2];
    uint64_t sent = 0, back = 0;
    net_loop_pair_tcp(fds, 0);
    net_loop_open(&conn, loop, fds[0]);
    conn.echo = true;
    for (uint64_t round = 1; round <= 200; round++) {
        net_loop_write(fds[1], &sent, round * 100, 100);
        uint64_t end_us = clock_boot_us() + NET_LOOP_PATIENCE_US;
        while (back < sent) {
            (void)loop_poll(loop, 0);
            assert_false(net_loop_read(fds[1], &back, MIB));
            assert_true(clock_boot_us() < end_us);
        }
    }
    assert_int_equal(close(fds[1]), 0);
    while (conn.closed == 0) {
        (void)loop_poll(loop, 0);
    }
    loop_destroy(loop);
}

/* ---- Many ---- */

#define CROWD 1500u /* more than buffers, more than submissions in one go */

static void test_crowd(void **state)
{
    if (!net_loop_descriptors(2 * CROWD + 50)) {
        skip();
    }
    struct loop *loop = net_loop_create(state);
    struct net_loop_conn *conns = calloc(CROWD, sizeof(*conns));
    int(*fds)[2] = calloc(CROWD, sizeof(*fds));
    uint64_t *back = calloc(CROWD, sizeof(*back));
    assert_true(conns != NULL && fds != NULL && back != NULL);
    for (uint32_t i = 0; i < CROWD; i++) {
        net_loop_pair_unix(fds[i], 0);
        net_loop_open(&conns[i], loop, fds[i][0]);
        conns[i].echo = true;
    }
    (void)loop_poll(loop, 0);
    for (uint64_t round = 1; round <= 5; round++) {
        /* All at once, and each time another length, up to more than a buffer. */
        uint64_t total = round * round * round * 300;
        for (uint32_t i = 0; i < CROWD; i++) {
            uint64_t sent = back[i];
            net_loop_write(fds[i][1], &sent, total, MIB);
            assert_int_equal(sent, total);
        }
        uint32_t done = 0;
        NET_LOOP_UNTIL(loop, done == CROWD)
        {
            done = 0;
            for (uint32_t i = 0; i < CROWD; i++) {
                assert_false(net_loop_read(fds[i][1], &back[i], MIB));
                done += back[i] == total;
            }
        }
    }
    /* Half of them end; the rest is still open when the loop goes. */
    uint32_t closed = 0;
    for (uint32_t i = 0; i < CROWD; i += 2) {
        assert_int_equal(close(fds[i][1]), 0);
    }
    NET_LOOP_UNTIL(loop, closed == CROWD / 2)
    {
        closed = 0;
        for (uint32_t i = 0; i < CROWD; i += 2) {
            closed += conns[i].closed;
        }
    }
    loop_destroy(loop);
    for (uint32_t i = 1; i < CROWD; i += 2) {
        assert_true(peer_closed(fds[i][1]));
        assert_int_equal(close(fds[i][1]), 0);
    }
    free(conns);
    free(fds);
    free(back);
}

/* More completions than their queue has room for: first of sends that come out short, then of
 * ends. */
static void test_completions_overflow(void **state)
{
    const uint32_t count = 9000, bytes = 6000;
    if (!net_loop_descriptors(2 * count + 50)) {
        skip();
    }
    struct loop *loop = net_loop_create(state);
    struct net_loop_conn *conns = calloc(count, sizeof(*conns));
    int(*fds)[2] = calloc(count, sizeof(*fds));
    uint64_t *back = calloc(count, sizeof(*back));
    assert_true(conns != NULL && fds != NULL && back != NULL);
    for (uint32_t i = 0; i < count; i++) {
        net_loop_pair_unix(fds[i], 1);
        net_loop_open(&conns[i], loop, fds[i][0]);
    }
    (void)loop_poll(loop, 0);
    for (uint32_t i = 0; i < count; i++) {
        net_loop_queue(&conns[i], bytes);
    }
    (void)loop_poll(loop, 0);
    assert_in_range(stream_queued(conns[0].stream), 1, bytes - 1);
    uint32_t done = 0;
    NET_LOOP_UNTIL(loop, done == count)
    {
        done = 0;
        for (uint32_t i = 0; i < count; i++) {
            assert_false(net_loop_read(fds[i][1], &back[i], MIB));
            done += back[i] == bytes;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(close(fds[i][1]), 0);
    }
    uint32_t closed = 0;
    NET_LOOP_UNTIL(loop, closed == count)
    {
        closed = 0;
        for (uint32_t i = 0; i < count; i++) {
            closed += conns[i].closed;
        }
    }
    loop_destroy(loop);
    free(conns);
    free(fds);
    free(back);
}

/* One stream brings more than all buffers hold before anybody looks. */
static void test_buffers_run_out(void **state)
{
    struct loop *loop = net_loop_create(state);
    enum { STREAMS = 8 };
    struct net_loop_conn conns[STREAMS];
    int fds[STREAMS][2];
    uint64_t sent[STREAMS] = {0};
    const uint64_t total = 8 * MIB;
    for (int i = 0; i < STREAMS; i++) {
        net_loop_pair_tcp(fds[i], 0);
        net_loop_open(&conns[i], loop, fds[i][0]);
        net_loop_write(fds[i][1], &sent[i], total, MIB);
    }
    uint32_t done = 0;
    NET_LOOP_UNTIL(loop, done == STREAMS)
    {
        done = 0;
        for (int i = 0; i < STREAMS; i++) {
            net_loop_write(fds[i][1], &sent[i], total, 4 * MIB);
            done += conns[i].received == total;
        }
    }
    loop_destroy(loop);
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(close(fds[i][1]), 0);
    }
}

/* Streams come and go in every way, at random; memory is for the address sanitizer to judge. */
static void test_coming_and_going(void **state)
{
    struct loop *loop = net_loop_create(state);
    enum { STREAMS = 24 };
    struct net_loop_conn conns[STREAMS] = {0};
    int peers[STREAMS];
    uint64_t sent[STREAMS], back[STREAMS];
    struct random r;
    random_init(&r, 11);
    for (uint32_t step = 0; step < 30000; step++) {
        uint32_t i = (uint32_t)random_below(&r, STREAMS);
        struct net_loop_conn *conn = &conns[i];
        if (conn->loop == NULL) {
            int fds[2];
            (random_chance(&r, 300000) ? net_loop_pair_tcp : net_loop_pair_unix)(
                fds, random_chance(&r, 500000) ? 4096 : 0);
            net_loop_open(conn, loop, fds[0]);
            conn->echo = random_chance(&r, 500000);
            peers[i] = fds[1];
            sent[i] = back[i] = 0;
        } else if (conn->stream == NULL || random_chance(&r, 30000)) {
            (random_chance(&r, 200000) ? net_loop_reset : close_plainly)(peers[i]);
            NET_LOOP_UNTIL(loop, conn->stream == NULL)
            {
                stream_resume(conn->stream);
            }
            conn->loop = NULL;
        } else if (random_chance(&r, 40000)) {
            stream_close(conn->stream);
            conn->stream = NULL;
        } else if (random_chance(&r, 40000)) {
            stream_finish(conn->stream, random_below(&r, 2000));
            conn->stream = NULL;
        } else if (random_chance(&r, 200000)) {
            (random_chance(&r, 500000) ? stream_pause : stream_resume)(conn->stream);
        } else if (random_chance(&r, 300000)) {
            if (!conn->echo && stream_queued(conn->stream) < MIB) {
                net_loop_queue(
                    conn, (uint32_t)random_below(&r, random_chance(&r, 50000) ? 300000 : 1000));
            }
        } else if (random_chance(&r, 500000)) {
            uint64_t more = random_below(&r, random_chance(&r, 100000) ? 300000 : 1000);
            if (!conn->echo || sent[i] - back[i] < MIB) {
                net_loop_write(peers[i], &sent[i], sent[i] + more, (size_t)more);
            }
        } else {
            (void)net_loop_read(peers[i], &back[i], (size_t)random_below(&r, 100000));
        }
        if (random_chance(&r, 300000)) {
            (void)loop_poll(loop, random_below(&r, 20) == 0 ? 100 : 0);
        }
    }
    loop_destroy(loop);
    for (uint32_t i = 0; i < STREAMS; i++) {
        if (conns[i].loop != NULL) {
            assert_int_equal(close(peers[i]), 0);
        }
    }
}

/* What the kernel says about a stream that is gone does not reach the next of the same number. */
static void test_numbers(void **state)
{
    struct loop *loop = net_loop_create(state);
    struct net_loop_conn conn;
    int fds[2];
    net_loop_pair_tcp(fds, 0);
    net_loop_open(&conn, loop, fds[0]);
    struct stream *first = conn.stream;
    uint32_t slot = first->slot, generation = stream_generation(first);
    assert_ptr_equal(loop_stream(loop, slot, generation), first);
    (void)loop_poll(loop, 0);
    stream_close(first);
    (void)loop_poll(loop, 0);
    (void)loop_poll(loop, 0);
    assert_null(loop_stream(loop, slot, generation));
    assert_int_equal(close(fds[1]), 0);
    net_loop_pair_tcp(fds, 0);
    net_loop_open(&conn, loop, fds[0]);
    assert_int_equal(conn.stream->slot, slot);
    assert_null(loop_stream(loop, slot, generation));
    assert_ptr_equal(loop_stream(loop, slot, generation + 1), conn.stream);
    assert_null(loop_stream(loop, loop->slots_count, 0));
    loop_destroy(loop);
    assert_int_equal(close(fds[1]), 0);
}

/* ---- Unmaking ---- */

/* Streams in every state, with requests that the kernel has, has not yet, or is about to finish. */
static void test_destroy_with_all_under_way(void **state)
{
    for (uint32_t polls = 0; polls < 4; polls++) {
        struct loop *loop = net_loop_create(state);
        enum { STREAMS = 60 };
        struct net_loop_conn conns[STREAMS];
        int fds[STREAMS][2];
        for (uint32_t i = 0; i < STREAMS; i++) {
            uint64_t sent = 0;
            (i % 2 ? net_loop_pair_tcp : net_loop_pair_unix)(fds[i], i % 3 ? 4096 : 0);
            net_loop_open(&conns[i], loop, fds[i][0]);
            if (i % 5 == 0) {
                net_loop_queue(&conns[i], i % 10 ? 100 : 4 * MIB);
            }
            if (i % 7 == 0) {
                net_loop_write(fds[i][1], &sent, 1000, 1000);
            }
            if (i % 11 == 0) {
                stream_pause(conns[i].stream);
            }
            if (i % 13 == 0) {
                stream_finish(conns[i].stream, 10000000);
            } else if (i % 17 == 0) {
                stream_close(conns[i].stream);
            }
        }
        for (uint32_t i = 0; i < polls; i++) {
            (void)loop_poll(loop, i == 2 ? 1000 : 0);
        }
        loop_wake(loop);
        loop_destroy(loop);
        for (uint32_t i = 0; i < STREAMS; i++) {
            uint64_t back = 0;
            assert_true(net_loop_read(fds[i][1], &back, 8 * MIB));
            assert_int_equal(conns[i].closed, 0);
            assert_int_equal(close(fds[i][1]), 0);
        }
    }
}

int main(void)
{
    static const struct net_loop_case cases[] = {
        {"echo", test_echo},
        {"large output", test_large_output},
        {"output grows while sending", test_output_grows_while_sending},
        {"drained", test_drained},
        {"pause", test_pause},
        {"pause while flooded", test_pause_while_flooded},
        {"pause and end", test_pause_and_end},
        {"end and reset", test_end_and_reset},
        {"send to the dead", test_send_to_the_dead},
        {"output after the end", test_output_after_the_end},
        {"half open", test_half_open},
        {"close at the end", test_close_at_the_end},
        {"close within callbacks", test_close_within_callbacks},
        {"close another within a callback", test_close_another_within_a_callback},
        {"finish delivers", test_finish_delivers},
        {"finish gives up", test_finish_gives_up},
        {"finish meets a reset", test_finish_meets_a_reset},
        {"timeouts", test_timeouts},
        {"wake before", test_wake_before},
        {"busy", test_busy},
        {"crowd", test_crowd},
        {"completions overflow", test_completions_overflow},
        {"buffers run out", test_buffers_run_out},
        {"coming and going", test_coming_and_going},
        {"numbers", test_numbers},
        {"destroy with all under way", test_destroy_with_all_under_way},
    };
    return net_loop_run("net_loop", cases, sizeof(cases) / sizeof(cases[0]));
}
