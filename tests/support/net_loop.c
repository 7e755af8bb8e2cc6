#include "support/net_loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/random.h"

struct net_loop_backend {
    const char *name;
    const struct loop_backend *backend;
};
static const struct net_loop_backend backends[] = {
    {"io_uring", &loop_backend_uring},
    {"io_uring before 6.1", &loop_backend_uring_coop},
    {"epoll", &loop_backend_epoll},
};
#define BACKENDS (sizeof(backends) / sizeof(backends[0]))
#define CASES_MAX 64u

int net_loop_run(const char *group, const struct net_loop_case *cases, size_t count)
{
    static struct CMUnitTest tests[CASES_MAX * BACKENDS];
    static char names[CASES_MAX * BACKENDS][128];
    size_t n = 0;
    for (size_t b = 0; b < BACKENDS; b++) {
        for (size_t i = 0; i < count && i < CASES_MAX; i++) {
            snprintf(names[n], sizeof(names[n]), "%s (%s)", cases[i].name, backends[b].name);
            /* cmocka hands the state over as it is; nobody writes to it. */
            tests[n] = (struct CMUnitTest){
                .name = names[n],
                .test_func = cases[i].run,
                .initial_state = (void *)(uintptr_t)&backends[b],
            };
            n++;
        }
    }
    return _cmocka_run_group_tests(group, tests, n, NULL, NULL);
}

/* Whether this system lets anybody have a ring, on a kernel that has all that the loop needs. */
static bool uring_is_there(void)
{
    struct utsname name;
    long params[64] = {0};
    if (uname(&name) != 0 || strtol(name.release, NULL, 10) < 6) {
        return false;
    }
    const char *minor = strchr(name.release, '.');
    if (strtol(name.release, NULL, 10) == 6 && (minor == NULL || strtol(minor + 1, NULL, 10) < 1)) {
        return false;
    }
    long fd = syscall(SYS_io_uring_setup, 1, params);
    if (fd >= 0) {
        (void)close((int)fd);
    }
    return fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EACCES);
}

struct loop *net_loop_create(void **state)
{
    const struct net_loop_backend *b = (const struct net_loop_backend *)*state;
    struct loop *loop = NULL;
    int err = loop_create_backend(b->backend, &loop);
    if (err != HK_OK && b->backend->kind == LOOP_URING && !uring_is_there()) {
        skip();
    }
    assert_int_equal(err, HK_OK);
    assert_int_equal(loop_kind(loop), b->backend->kind);
    return loop;
}

/* ---- Sockets ---- */

static void set_buffers(int fd, int buffer)
{
    if (buffer != 0) {
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)), 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)), 0);
    }
}

void net_loop_pair_unix(int fds_out[2], int buffer)
{
    int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
    assert_int_equal(socketpair(AF_UNIX, type, 0, fds_out), 0);
    set_buffers(fds_out[0], buffer);
    set_buffers(fds_out[1], buffer);
}

void net_loop_pair_tcp(int fds_out[2], int buffer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int one = 1;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    set_buffers(listener, buffer);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    fds_out[1] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(fds_out[1] >= 0);
    set_buffers(fds_out[1], buffer);
    /* On loopback the connection is complete when connect returns. */
    assert_true(connect(fds_out[1], (struct sockaddr *)&address, size) == 0 ||
                errno == EINPROGRESS);
    fds_out[0] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(fds_out[0] >= 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(setsockopt(fds_out[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
    }
    assert_int_equal(close(listener), 0);
}

void net_loop_reset(int fd)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    assert_int_equal(close(fd), 0);
}

bool net_loop_descriptors(uint32_t count)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < count && limit.rlim_max >= count) {
        limit.rlim_cur = count;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    }
    return limit.rlim_cur >= count;
}

/* ---- The stream of bytes ---- */

#define PERIOD 65521u

static const uint8_t *period(void)
{
    static uint8_t bytes[PERIOD];
    if (bytes[0] == 0) {
        struct random r;
        random_init(&r, 1);
        for (size_t i = 0; i < PERIOD; i++) {
            bytes[i] = (uint8_t)random_next(&r);
        }
        bytes[0] = 1;
    }
    return bytes;
}

void net_loop_fill(uint8_t *to, uint64_t at, size_t n)
{
    while (n > 0) {
        size_t from = (size_t)(at % PERIOD);
        size_t run = n < PERIOD - from ? n : PERIOD - from;
        memcpy(to, period() + from, run);
        to += run;
        at += run;
        n -= run;
    }
}

bool net_loop_matches(const uint8_t *bytes, uint64_t at, size_t n)
{
    while (n > 0) {
        size_t from = (size_t)(at % PERIOD);
        size_t run = n < PERIOD - from ? n : PERIOD - from;
        if (memcmp(bytes, period() + from, run) != 0) {
            return false;
        }
        bytes += run;
        at += run;
        n -= run;
    }
    return true;
}

bool net_loop_read(int fd, uint64_t *at, size_t most)
{
    static uint8_t bytes[256 * 1024];
    while (most > 0) {
        ssize_t n = recv(fd, bytes, most < sizeof(bytes) ? most : sizeof(bytes), MSG_DONTWAIT);
        if (n <= 0) {
            return n == 0 || errno != EAGAIN;
        }
        assert_true(net_loop_matches(bytes, *at, (size_t)n));
        *at += (uint64_t)n;
        most -= (size_t)n;
    }
    return false;
}

void net_loop_write(int fd, uint64_t *at, uint64_t end, size_t most)
{
    static uint8_t bytes[256 * 1024];
    while (most > 0 && *at < end) {
        size_t n = most < sizeof(bytes) ? most : sizeof(bytes);
        n = n < end - *at ? n : (size_t)(end - *at);
        net_loop_fill(bytes, *at, n);
        ssize_t sent = send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent <= 0) {
            assert_int_equal(errno, EAGAIN);
            return;
        }
        *at += (uint64_t)sent;
        most -= (size_t)sent;
    }
}

/* ---- An owner ---- */

static void conn_received(void *owner, struct bytes bytes)
{
    struct net_loop_conn *conn = (struct net_loop_conn *)owner;
    assert_true(bytes.n > 0 && bytes.n <= LOOP_RECEIVE_MAX);
    assert_int_equal(conn->closed, 0);
    assert_non_null(conn->stream);
    assert_true(net_loop_matches(bytes.at, conn->received, bytes.n));
    conn->received += bytes.n;
    if (conn->echo) {
        assert_true(stream_write(conn->stream, bytes));
        conn->written += bytes.n;
    }
    if (conn->on_received != NULL) {
        conn->on_received(conn);
    }
}

static void conn_drained(void *owner)
{
    struct net_loop_conn *conn = (struct net_loop_conn *)owner;
    assert_non_null(conn->stream);
    assert_int_equal(stream_queued(conn->stream), 0);
    conn->drained++;
    if (conn->on_drained != NULL) {
        conn->on_drained(conn);
    }
}

static void conn_closed(void *owner, int error)
{
    struct net_loop_conn *conn = (struct net_loop_conn *)owner;
    assert_non_null(conn->stream);
    assert_int_equal(conn->closed, 0);
    conn->closed++;
    conn->error = error;
    if (conn->on_closed != NULL) {
        conn->on_closed(conn);
    }
    conn->stream = NULL;
}

static bool conn_ended(void *owner)
{
    struct net_loop_conn *conn = (struct net_loop_conn *)owner;
    assert_non_null(conn->stream);
    assert_int_equal(conn->closed + conn->ended, 0);
    conn->ended++;
    return conn->on_ended != NULL && conn->on_ended(conn);
}

const struct stream_ops net_loop_ops = {
    .received = conn_received,
    .drained = conn_drained,
    .ended = conn_ended,
    .closed = conn_closed,
};

void net_loop_open(struct net_loop_conn *conn, struct loop *loop, int fd)
{
    *conn = (struct net_loop_conn){.loop = loop};
    assert_int_equal(stream_open(loop, fd, &net_loop_ops, conn, &conn->stream), HK_OK);
    assert_int_equal(stream_fd(conn->stream), fd);
}

void net_loop_queue(struct net_loop_conn *conn, uint32_t n)
{
    uint8_t *at = stream_reserve(conn->stream, n);
    assert_non_null(at);
    net_loop_fill(at, conn->written, n);
    stream_commit(conn->stream, n);
    conn->written += n;
}
