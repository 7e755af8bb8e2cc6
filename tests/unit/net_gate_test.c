#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "net/gate.h"

#define PEERS_MAX 256u
#define PATIENCE_S 20

/* A gate and all that it called back with. */
struct side {
    struct gate_config config;
    struct gate *gate;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct handshake_peer peers[PEERS_MAX];
    int peer_fds[PEERS_MAX];
    uint32_t peers_n;
    int client_fds[PEERS_MAX];
    char client_address[256], client_local[256];
    uint32_t clients_n;
    char reports[8192];
};

static void on_client(void *context, int fd, const char *address, const char *local)
{
    struct side *s = context;
    pthread_mutex_lock(&s->lock);
    assert_true(s->clients_n < PEERS_MAX);
    s->client_fds[s->clients_n++] = fd;
    (void)snprintf(s->client_address, sizeof s->client_address, "%s", address);
    (void)snprintf(s->client_local, sizeof s->client_local, "%s", local);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void on_peer(void *context, int fd, const struct handshake_peer *peer)
{
    struct side *s = context;
    pthread_mutex_lock(&s->lock);
    assert_true(s->peers_n < PEERS_MAX);
    s->peer_fds[s->peers_n] = fd;
    s->peers[s->peers_n++] = *peer;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void on_report(void *context, const char *text)
{
    struct side *s = context;
    pthread_mutex_lock(&s->lock);
    size_t n = strlen(s->reports);
    (void)snprintf(s->reports + n, sizeof s->reports - n, "%s\n", text);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until done says so, at most so long. Counters move without a callback, so it looks again
 * every few milliseconds. */
static bool await_for(struct side *s, bool (*done)(struct side *s, uint64_t n), uint64_t n,
                      int64_t most_ms)
{
    int64_t end_ms = now_ms() + most_ms;
    bool good;
    pthread_mutex_lock(&s->lock);
    while (!(good = done(s, n)) && now_ms() < end_ms) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 5000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        (void)pthread_cond_timedwait(&s->changed, &s->lock, &until);
    }
    pthread_mutex_unlock(&s->lock);
    return good;
}

static bool await(struct side *s, bool (*done)(struct side *s, uint64_t n), uint64_t n)
{
    return await_for(s, done, n, PATIENCE_S * 1000);
}

static bool has_peers(struct side *s, uint64_t n)
{
    return s->peers_n >= n;
}

static bool has_clients(struct side *s, uint64_t n)
{
    return s->clients_n >= n;
}

static bool has_report(struct side *s, uint64_t lines)
{
    for (const char *p = s->reports; *p != '\0'; p++) {
        lines -= lines > 0 && *p == '\n';
    }
    return lines == 0;
}

static uint64_t refusals(struct side *s)
{
    struct gate_stats stats;
    uint64_t n = 0;
    gate_stats(s->gate, &stats);
    for (uint32_t i = 0; i < HANDSHAKE_REFUSALS; i++) {
        n += stats.refused[i];
    }
    return n + stats.timed_out + stats.crowded;
}

static bool has_refused(struct side *s, uint64_t n)
{
    return refusals(s) >= n;
}

static bool has_failed(struct side *s, uint64_t n)
{
    struct gate_stats stats;
    gate_stats(s->gate, &stats);
    return stats.calls_failed >= n;
}

/* Below the ports that the kernel gives to outgoing connections: else one of another test might
 * have it before it is listened on. Each is returned once. */
static uint16_t free_port(void)
{
    static uint32_t next;
    for (uint32_t tries = 0; tries < 20000; tries++) {
        uint16_t port = (uint16_t)(10000 + ((uint32_t)getpid() * 61 + next++) % 20000);
        struct sockaddr_in at = {.sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fd >= 0);
        bool is_free = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
        (void)close(fd);
        if (is_free) {
            return port;
        }
    }
    fail_msg("no port is free");
    return 0;
}

static struct gate_address loopback(uint16_t port)
{
    struct gate_address address;
    (void)snprintf(address.text, sizeof address.text, "127.0.0.1:%u", port);
    return address;
}

static int dial(uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static bool has_closed(struct side *s, uint64_t port)
{
    int fd = dial((uint16_t)port);
    (void)s;
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd < 0;
}

static bool has_unlinked(struct side *s, uint64_t n)
{
    (void)n;
    return access(s->config.client_listen[1].text + strlen("unix:"), F_OK) != 0;
}

/* Whether the other side closes, without a byte. */
static bool closes(int fd)
{
    uint8_t byte;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    bool closed = poll(&wait, 1, PATIENCE_S * 1000) == 1 && read(fd, &byte, 1) <= 0;
    (void)close(fd);
    return closed;
}

static uint32_t open_files(void)
{
    uint32_t n = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        n++;
    }
    (void)closedir(folder);
    return n;
}

static struct side *side_make(uint8_t node, uint8_t workers)
{
    struct side *s = calloc(1, sizeof *s);
    assert_non_null(s);
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    s->config.self.cluster = 77;
    s->config.self.node = node;
    s->config.self.workers = workers;
    memset(s->config.self.key, 5, sizeof s->config.self.key);
    s->config.nodes = nodeset_of(node);
    s->config.backoff_min_us = 1000;
    s->config.backoff_max_us = 50000;
    s->config.handshake_us = 10000000;
    s->config.handshakes_max = 64;
    s->config.user_timeout_ms = 5000;
    s->config.client = on_client;
    s->config.peer = on_peer;
    s->config.report = on_report;
    s->config.context = s;
    return s;
}

static void side_start(struct side *s)
{
    char error[512] = "";
    if (gate_start(&s->config, error, sizeof error, &s->gate) != HK_OK) {
        fail_msg("%s", error);
    }
}

static void side_stop(struct side *s)
{
    if (s->gate != NULL) {
        gate_stop(s->gate);
    }
    for (uint32_t i = 0; i < s->peers_n; i++) {
        if (s->peer_fds[i] >= 0) {
            (void)close(s->peer_fds[i]);
        }
    }
    for (uint32_t i = 0; i < s->clients_n; i++) {
        (void)close(s->client_fds[i]);
    }
    (void)pthread_mutex_destroy(&s->lock);
    (void)pthread_cond_destroy(&s->changed);
    free(s);
}

/* Two sides that know each other; not started. */
static void pair_make(uint8_t workers_0, uint8_t workers_1, struct side **low, struct side **high)
{
    uint16_t ports[2] = {free_port(), free_port()};
    *low = side_make(3, workers_0);
    *high = side_make(9, workers_1);
    for (uint32_t i = 0; i < 2; i++) {
        struct side *s = i == 0 ? *low : *high;
        s->config.nodes = nodeset_of(3) | nodeset_of(9);
        s->config.peers[i == 0 ? 9 : 3] = loopback(ports[1 - i]);
        s->config.peer_listen = loopback(ports[i]);
    }
}

/* Bytes go both ways over a connection that was handed on, and both ends have the same keys. */
static void assert_linked(struct side *a, uint32_t i, struct side *b)
{
    const struct handshake_peer *p = &a->peers[i];
    for (uint32_t j = 0; j < b->peers_n; j++) {
        const struct handshake_peer *q = &b->peers[j];
        if (memcmp(p->keys.send, q->keys.receive, SESSION_KEY_BYTES) != 0) {
            continue;
        }
        char byte = 0;
        struct pollfd wait = {.fd = b->peer_fds[j], .events = POLLIN};
        assert_memory_equal(p->keys.receive, q->keys.send, SESSION_KEY_BYTES);
        assert_int_equal(p->worker, q->local_worker);
        assert_int_equal(p->local_worker, q->worker);
        assert_int_equal(p->node, b->config.self.node);
        assert_int_equal(q->node, a->config.self.node);
        assert_int_equal(p->workers, b->config.self.workers);
        assert_int_equal(q->workers, a->config.self.workers);
        assert_int_equal(write(a->peer_fds[i], "x", 1), 1);
        assert_int_equal(poll(&wait, 1, PATIENCE_S * 1000), 1);
        assert_int_equal(read(b->peer_fds[j], &byte, 1), 1);
        assert_int_equal(byte, 'x');
        assert_int_equal(fcntl(b->peer_fds[j], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
        int nodelay = 0;
        socklen_t n = sizeof nodelay;
        assert_int_equal(getsockopt(b->peer_fds[j], IPPROTO_TCP, TCP_NODELAY, &nodelay, &n), 0);
        assert_true(nodelay != 0);
        return;
    }
    fail_msg("nobody has the other end of connection %u", i);
}

static void test_addresses(void **state)
{
    (void)state;
    assert_null(gate_address_invalid("127.0.0.1:1"));
    assert_null(gate_address_invalid("node-1.example_x:65535"));
    assert_null(gate_address_invalid("[::1]:7001"));
    assert_null(gate_address_invalid("unix:/tmp/x y.sock"));
    static const char *const wrong[][2] = {
        {"", "the port is missing: host:port, [v6]:port or unix:/path"},
        {"host", "the port is missing: host:port, [v6]:port or unix:/path"},
        {"host:", "the port must be 1 to 65535"},
        {"host:0", "the port must be 1 to 65535"},
        {"host:01", "the port must be 1 to 65535"},
        {"host:65536", "the port must be 1 to 65535"},
        {"host:99999999999", "the port must be 1 to 65535"},
        {"host:1x", "the port must be 1 to 65535"},
        {":1", "the host must be a name or an address in numbers"},
        {"a b:1", "the host must be a name or an address in numbers"},
        {"a/b:1", "the host must be a name or an address in numbers"},
        {"::1:7001", "an IPv6 address stands in brackets: [v6]:port"},
        {"[]:1", "between the brackets must be an IPv6 address in numbers"},
        {"[host]:1", "between the brackets must be an IPv6 address in numbers"},
        {"unix:x", "the path behind unix: must begin with /"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *why = gate_address_invalid(wrong[i][0]);
        assert_non_null(why);
        assert_string_equal(why, wrong[i][1]);
    }
    char text[GATE_ADDRESS_MAX + 10];
    memset(text, 'a', sizeof text);
    memcpy(text, "unix:/", 6);
    text[6 + 107] = '\0';
    assert_non_null(gate_address_invalid(text));
    text[6 + 106] = '\0';
    assert_null(gate_address_invalid(text));
    memset(text, 'a', sizeof text);
    text[sizeof text - 3] = ':';
    text[sizeof text - 1] = '\0';
    assert_string_equal(gate_address_invalid(text), "an address has at most 279 bytes");
    text[256] = ':';
    text[257] = '1';
    text[258] = '\0';
    assert_string_equal(gate_address_invalid(text), "a host has at most 255 bytes");
}

static int option_of(int fd, int level, int option)
{
    int value = -1;
    socklen_t n = sizeof value;
    assert_int_equal(getsockopt(fd, level, option, &value, &n), 0);
    return value;
}

static void test_clients(void **state)
{
    (void)state;
    uint32_t files = open_files();
    struct side *s = side_make(0, 1);
    uint16_t port = free_port();
    char folder[] = "/tmp/horkos-gate-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct gate_address listens[2] = {loopback(port)};
    (void)snprintf(listens[1].text, sizeof listens[1].text, "unix:%s/s", folder);
    s->config.client_listen = listens;
    s->config.client_listens = 2;
    side_start(s);

    char expected[256];
    int fd = dial(port);
    assert_true(fd >= 0);
    assert_true(await(s, has_clients, 1));
    struct sockaddr_in own;
    socklen_t n = sizeof own;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &n), 0);
    (void)snprintf(expected, sizeof expected, "127.0.0.1:%u", ntohs(own.sin_port));
    assert_string_equal(s->client_address, expected);
    assert_string_equal(s->client_local, listens[0].text);
    assert_int_equal(fcntl(s->client_fds[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    assert_int_equal(option_of(s->client_fds[0], SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_int_equal(option_of(s->client_fds[0], IPPROTO_TCP, TCP_KEEPIDLE), 300);
    assert_int_equal(option_of(s->client_fds[0], IPPROTO_TCP, TCP_NODELAY), 1);
    (void)close(fd);

    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct stat about;
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s/s", folder);
    assert_int_equal(stat(un.sun_path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0770);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof un), 0);
    assert_true(await(s, has_clients, 2));
    (void)snprintf(expected, sizeof expected, "%s/s:0", folder);
    assert_string_equal(s->client_address, expected);
    assert_string_equal(s->client_local, expected);
    (void)close(fd);

    struct gate_stats stats;
    gate_stats(s->gate, &stats);
    assert_int_equal(stats.clients, 2);

    /* Draining: the ports are closed, at most a round later. */
    gate_refuse_clients(s->gate);
    assert_true(await(s, has_closed, port));
    assert_true(await(s, has_unlinked, 0));
    side_stop(s);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(open_files(), files);
}

/* A socket that a dead process left is taken over; one that is in use, or a file, is not. */
static void test_unix_path_in_use(void **state)
{
    (void)state;
    char error[512] = "", expected[512];
    char folder[] = "/tmp/horkos-gate-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct gate_address listen;
    (void)snprintf(listen.text, sizeof listen.text, "unix:%s/s", folder);
    struct side *a = side_make(0, 1), *b = side_make(0, 1);
    a->config.client_listen = b->config.client_listen = &listen;
    a->config.client_listens = b->config.client_listens = 1;

    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s/s", folder);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof un), 0);
    (void)close(fd);
    side_start(a);
    assert_int_equal(gate_start(&b->config, error, sizeof error, &b->gate), HK_ERR_IO);
    (void)snprintf(expected, sizeof expected,
                   "cannot listen on %s: Address already in use; another process has this path: "
                   "stop it, or choose another in [clients] listen",
                   listen.text);
    assert_string_equal(error, expected);
    side_stop(a);

    fd = open(un.sun_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    (void)close(fd);
    assert_int_equal(gate_start(&b->config, error, sizeof error, &b->gate), HK_ERR_IO);
    assert_string_equal(error, expected);
    assert_int_equal(unlink(un.sun_path), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(gate_start(&b->config, error, sizeof error, &b->gate), HK_ERR_IO);
    (void)snprintf(expected, sizeof expected,
                   "cannot listen on %s: No such file or directory; make the folder, or correct "
                   "the path in [clients] listen",
                   listen.text);
    assert_string_equal(error, expected);
    side_stop(b);
}

static void test_port_in_use(void **state)
{
    (void)state;
    char error[512] = "", expected[512];
    uint32_t files = open_files();
    uint16_t port = free_port();
    struct gate_address listens[2] = {loopback(free_port()), loopback(port)};
    struct side *a = side_make(0, 1), *b = side_make(0, 1);
    a->config.peer_listen = listens[1];
    b->config.client_listen = listens;
    b->config.client_listens = 2;
    side_start(a);
    assert_int_equal(gate_start(&b->config, error, sizeof error, &b->gate), HK_ERR_IO);
    (void)snprintf(
        expected, sizeof expected,
        "cannot listen on 127.0.0.1:%u: Address already in use; another process has this "
        "port: stop it, or choose another in [clients] listen",
        port);
    assert_string_equal(error, expected);
    b->config.client_listens = 1;
    b->config.peer_listen = listens[1];
    assert_int_equal(gate_start(&b->config, error, sizeof error, &b->gate), HK_ERR_IO);
    (void)snprintf(
        expected, sizeof expected,
        "cannot listen on 127.0.0.1:%u: Address already in use; another process has this "
        "port: stop it, or choose another in [node] peer_listen or [peers]",
        port);
    assert_string_equal(error, expected);
    (void)snprintf(listens[0].text, sizeof listens[0].text, "192.0.2.1:7001");
    assert_int_equal(gate_start(&b->config, error, sizeof error, &b->gate), HK_ERR_IO);
    assert_string_equal(error,
                        "cannot listen on 192.0.2.1:7001: Cannot assign requested address; this "
                        "machine has no such address: correct it in [clients] listen");
    side_stop(a);
    side_stop(b);
    assert_int_equal(open_files(), files);
}

static void connect_all(uint8_t low_workers, uint8_t high_workers)
{
    uint32_t files = open_files();
    struct side *low, *high;
    uint32_t all = (uint32_t)low_workers * high_workers;
    pair_make(low_workers, high_workers, &low, &high);
    side_start(high);
    side_start(low);
    assert_true(await(low, has_peers, all));
    assert_true(await(high, has_peers, all));
    bool seen[HANDSHAKE_WORKERS_MAX][HANDSHAKE_WORKERS_MAX] = {{false}};
    for (uint32_t i = 0; i < all; i++) {
        const struct handshake_peer *p = &low->peers[i];
        assert_false(seen[p->local_worker][p->worker]);
        seen[p->local_worker][p->worker] = true;
        assert_linked(low, i, high);
    }
    /* The first asks for the number of workers. */
    assert_int_equal(low->peers[0].worker, 0);
    assert_int_equal(low->peers[0].local_worker, 0);

    struct gate_stats stats;
    gate_stats(low->gate, &stats);
    assert_int_equal(stats.peers, all);
    assert_int_equal(stats.calls, all);
    assert_int_equal(stats.calls_failed, 0);
    gate_stats(high->gate, &stats);
    assert_int_equal(stats.peers, all);
    assert_int_equal(stats.calls, 0);
    assert_int_equal(refusals(high), 0);
    assert_string_equal(low->reports, "");
    assert_string_equal(high->reports, "");
    side_stop(low);
    side_stop(high);
    assert_int_equal(open_files(), files);
}

static void test_connects_all_pairs(void **state)
{
    (void)state;
    connect_all(1, 1);
    connect_all(3, 2);
    connect_all(1, 5);
    connect_all(16, 9);
}

static void forget_peer(struct side *s, uint32_t i)
{
    pthread_mutex_lock(&s->lock);
    (void)close(s->peer_fds[i]);
    s->peer_fds[i] = -1;
    pthread_mutex_unlock(&s->lock);
}

static void test_reconnects(void **state)
{
    (void)state;
    struct side *low, *high;
    pair_make(2, 2, &low, &high);
    side_start(high);
    side_start(low);
    assert_true(await(low, has_peers, 4));
    /* Soon and again: slower each time, but it comes. */
    for (uint32_t n = 4; n < 10; n++) {
        struct handshake_peer p = low->peers[n - 1];
        forget_peer(low, n - 1);
        gate_lost(low->gate, p.node, p.worker, p.local_worker);
        gate_lost(low->gate, p.node, p.worker, p.local_worker);
        assert_true(await(low, has_peers, n + 1));
        assert_int_equal(low->peers[n].worker, p.worker);
        assert_int_equal(low->peers[n].local_worker, p.local_worker);
        assert_true(await(high, has_peers, n + 1));
        assert_linked(low, n, high);
    }
    /* What is not ours to call, or stands nowhere, changes nothing. */
    gate_lost(high->gate, 3, 0, 0);
    gate_lost(low->gate, 9, 63, 1);
    gate_lost(low->gate, 50, 0, 0);
    side_stop(high);

    /* The other side has gone, and comes back with more workers. */
    struct side *again = side_make(9, 3);
    again->config.nodes = low->config.nodes;
    again->config.peers[3] = low->config.peer_listen;
    again->config.peer_listen = low->config.peers[9];
    struct gate_stats before;
    gate_stats(low->gate, &before);
    for (uint8_t r = 0; r < 2; r++) {
        for (uint8_t l = 0; l < 2; l++) {
            gate_lost(low->gate, 9, r, l);
        }
    }
    assert_true(await(low, has_failed, before.calls_failed + 3));
    assert_true(await(low, has_report, 1));
    side_start(again);
    assert_true(await(again, has_peers, 6));
    assert_true(await(low, has_peers, 16));
    char expected[1024];
    (void)snprintf(
        expected, sizeof expected,
        "node 9 at %.99s cannot be reached: Connection refused; is it running, and is its "
        "address in [peers] right? This node goes on trying\nnode 9 at %.99s is reached "
        "again\n",
        low->config.peers[9].text, low->config.peers[9].text);
    assert_string_equal(low->reports, expected);
    for (uint32_t i = 10; i < 16; i++) {
        assert_linked(low, i, again);
    }
    side_stop(low);
    side_stop(again);
}

/* A link was cut, one side gave the connection up meanwhile, and the other has nothing to send: it
 * notices all the same, or the pair would stay without a connection for ever. */
static void test_notices_silent_end(void **state)
{
    (void)state;
    struct side *sides[2];
    pair_make(1, 1, &sides[0], &sides[1]);
    side_start(sides[1]);
    side_start(sides[0]);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(await(sides[i], has_peers, 1));
        int fd = sides[i]->peer_fds[0];
        assert_int_equal(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
        assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 1);
        assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL), 1);
        assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 5000);
    }
    /* A socket in repair is closed without a word. Only root may do that. */
    int yes = 1;
    if (setsockopt(sides[1]->peer_fds[0], IPPROTO_TCP, TCP_REPAIR, &yes, sizeof yes) == 0) {
        forget_peer(sides[1], 0);
        struct pollfd wait = {.fd = sides[0]->peer_fds[0], .events = POLLIN};
        assert_int_equal(poll(&wait, 1, PATIENCE_S * 1000), 1);
        assert_true((wait.revents & (POLLERR | POLLHUP)) != 0);
    }
    side_stop(sides[0]);
    side_stop(sides[1]);
}

/* The bytes of a HELLO that a node with this self would send. */
static uint32_t hello_of(const struct handshake_self *self, uint8_t node, uint8_t worker,
                         uint8_t *out)
{
    struct handshake h;
    uint8_t nonce[HANDSHAKE_NONCE_BYTES];
    memset(nonce, 0x55, sizeof nonce);
    return handshake_call(&h, self, nonce, node, worker, 0, out);
}

static void assert_refused(struct side *s, uint16_t port, const uint8_t *bytes, uint32_t n,
                           enum handshake_refusal refusal)
{
    struct gate_stats before, after;
    gate_stats(s->gate, &before);
    uint64_t had = refusals(s);
    int fd = dial(port);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_true(closes(fd));
    assert_true(await(s, has_refused, had + 1));
    gate_stats(s->gate, &after);
    assert_int_equal(after.refused[refusal], before.refused[refusal] + 1);
    assert_int_equal(after.peers, before.peers);
}

static uint16_t port_of(const struct gate_address *address)
{
    return (uint16_t)atoi(strrchr(address->text, ':') + 1);
}

static void test_strangers(void **state)
{
    (void)state;
    uint32_t files = open_files();
    struct side *low, *high;
    uint8_t bytes[4096];
    pair_make(1, 2, &low, &high);
    side_start(high);
    uint16_t port = port_of(&high->config.peer_listen);
    for (uint32_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 37 + 11);
    }
    assert_refused(high, port, bytes, sizeof bytes, HANDSHAKE_MAGIC);
    static const char browser[] =
        "GET / HTTP/1.1\r\nHost: somebody.example\r\nUser-Agent: a browser of "
        "many words and numbers\r\nAccept: */*\r\n\r\n";
    assert_refused(high, port, (const uint8_t *)browser, sizeof browser - 1, HANDSHAKE_MAGIC);

    struct handshake_self self = low->config.self;
    uint32_t n;
    self.key[0] ^= 1;
    n = hello_of(&self, 9, 0, bytes);
    assert_refused(high, port, bytes, n, HANDSHAKE_PROOF);
    self = low->config.self;
    self.cluster++;
    n = hello_of(&self, 9, 0, bytes);
    assert_refused(high, port, bytes, n, HANDSHAKE_CLUSTER);
    self = low->config.self;
    self.node = 4; /* not configured */
    n = hello_of(&self, 9, 0, bytes);
    assert_refused(high, port, bytes, n, HANDSHAKE_NODE);
    self.node = 11; /* one that this node would call, and not the other way round */
    n = hello_of(&self, 9, 0, bytes);
    assert_refused(high, port, bytes, n, HANDSHAKE_NODE);
    self = low->config.self;
    n = hello_of(&self, 8, 0, bytes); /* meant for another */
    assert_refused(high, port, bytes, n, HANDSHAKE_NODE);
    n = hello_of(&self, 9, 2, bytes);
    assert_refused(high, port, bytes, n, HANDSHAKE_WORKER);

    /* Who hangs up. */
    uint64_t had = refusals(high);
    int fd = dial(port);
    (void)close(fd);
    assert_true(await(high, has_refused, had + 1));

    /* All in one report, or two when this took over a second. */
    assert_true(await(high, has_report, 1));
    assert_non_null(strstr(high->reports, " to the peer port w"));
    assert_non_null(strstr(high->reports, " refused in the last minute: "));
    assert_non_null(strstr(high->reports, "magic"));
    assert_non_null(strstr(high->reports, "; last from 127.0.0.1:"));
    /* Nobody was disturbed. */
    side_start(low);
    assert_true(await(low, has_peers, 2));
    assert_true(await(high, has_peers, 2));
    assert_linked(low, 0, high);
    side_stop(low);
    side_stop(high);
    assert_int_equal(open_files(), files);
}

/* One who has listened to a handshake sends its bytes again: HELLO is well-formed, so it gets an
 * ANSWER, but the PROOF of another session proves nothing. */
static void test_replayed(void **state)
{
    (void)state;
    struct side *low, *high;
    uint8_t hello[HANDSHAKE_MESSAGE_MAX], answer[HANDSHAKE_MESSAGE_MAX];
    uint8_t proof[HANDSHAKE_MESSAGE_MAX];
    struct handshake h;
    uint8_t nonce[HANDSHAKE_NONCE_BYTES] = {1};
    pair_make(1, 1, &low, &high);
    side_start(high);
    uint16_t port = port_of(&high->config.peer_listen);

    uint32_t hello_n = handshake_call(&h, &low->config.self, nonce, 9, 0, 0, hello);
    uint32_t answer_n = handshake_wants(&h);
    int fd = dial(port);
    assert_int_equal(write(fd, hello, hello_n), hello_n);
    assert_int_equal(recv(fd, answer, answer_n, MSG_WAITALL), answer_n);
    uint32_t proof_n = handshake_input(&h, answer, proof);
    assert_int_equal(h.state, HANDSHAKE_DONE);
    /* One byte at a time is as good. */
    for (uint32_t i = 0; i < proof_n; i++) {
        assert_int_equal(write(fd, proof + i, 1), 1);
    }
    assert_true(await(high, has_peers, 1));

    int replay = dial(port);
    assert_int_equal(write(replay, hello, hello_n), hello_n);
    assert_int_equal(recv(replay, answer, answer_n, MSG_WAITALL), answer_n);
    assert_int_equal(write(replay, proof, proof_n), proof_n);
    assert_true(closes(replay));
    assert_true(await(high, has_refused, 1));
    struct gate_stats stats;
    gate_stats(high->gate, &stats);
    assert_int_equal(stats.refused[HANDSHAKE_PROOF], 1);
    assert_int_equal(stats.peers, 1);
    (void)close(fd);
    side_stop(low);
    side_stop(high);
}

/* Silence ends; a crowd is sent away at the door, and a node gets in when the crowd has gone. */
static void test_silence_and_crowd(void **state)
{
    (void)state;
    struct side *low, *high;
    struct gate_stats stats;
    int fds[8];
    pair_make(1, 1, &low, &high);
    high->config.handshakes_max = 4;
    high->config.handshake_us = 700000; /* all eight come in that time */
    side_start(high);
    uint16_t port = port_of(&high->config.peer_listen);
    for (uint32_t i = 0; i < 8; i++) {
        fds[i] = dial(port);
        assert_true(fds[i] >= 0);
    }
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(closes(fds[i]));
    }
    gate_stats(high->gate, &stats);
    assert_int_equal(stats.timed_out, 4);
    assert_int_equal(stats.crowded, 4);
    side_start(low);
    assert_true(await(low, has_peers, 1));
    assert_true(await(high, has_peers, 1));
    assert_true(await(high, has_report, 1));
    assert_non_null(strstr(high->reports, "4 silent, "));
    assert_non_null(strstr(high->reports, " too many at once; last from 127.0.0.1:"));
    side_stop(low);
    side_stop(high);
}

/* Silent strangers on every place do not keep a node out, however long they may stay. */
static void test_crowd_makes_room(void **state)
{
    (void)state;
    struct side *low, *high;
    struct gate_stats stats;
    int fds[6];
    pair_make(1, 1, &low, &high);
    high->config.handshakes_max = 4;
    high->config.handshake_us = 600000000;
    side_start(high);
    for (uint32_t i = 0; i < 6; i++) {
        fds[i] = dial(port_of(&high->config.peer_listen));
        assert_true(fds[i] >= 0);
    }
    side_start(low);
    assert_true(await(low, has_peers, 1));
    assert_true(await(high, has_peers, 1));
    /* Those that had been silent longest had to go. */
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(closes(fds[i]));
    }
    gate_stats(high->gate, &stats);
    assert_int_equal(stats.timed_out, 0);
    assert_true(stats.crowded >= 3);
    side_stop(low);
    side_stop(high);
    for (uint32_t i = 3; i < 6; i++) {
        assert_true(closes(fds[i]));
    }
}

/* A peer that we call and that does not prove itself. */
static void test_calls_a_stranger(void **state)
{
    (void)state;
    static const struct {
        const char *says;
        uint8_t cluster, key;
    } cases[] = {
        {"it hung up during the handshake: compare [cluster] name and key_file, and [peers], on "
         "both nodes; its log says more",
         1, 0},
        {"it hung up during the handshake: compare [cluster] name and key_file, and [peers], on "
         "both nodes; its log says more",
         0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct side *low, *high;
        char expected[512];
        pair_make(1, 1, &low, &high);
        high->config.self.cluster += cases[i].cluster;
        high->config.self.key[9] ^= cases[i].key;
        side_start(high);
        side_start(low);
        assert_true(await(low, has_report, 1));
        (void)snprintf(expected, sizeof expected,
                       "node 9 at %s cannot be reached: %s; is it running, and is its address in "
                       "[peers] right? This node goes on trying\n",
                       low->config.peers[9].text, cases[i].says);
        assert_string_equal(low->reports, expected);
        assert_int_equal(low->peers_n, 0);
        assert_int_equal(high->peers_n, 0);
        side_stop(low);
        side_stop(high);
    }
}

static int listen_in_silence(uint16_t port, int backlog)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

/* A server that takes connections and never says anything: the call is given up. */
static void test_calls_silence(void **state)
{
    (void)state;
    struct side *low, *high;
    pair_make(1, 1, &low, &high);
    int fd = listen_in_silence(port_of(&low->config.peers[9]), 64);
    low->config.handshake_us = 200000;
    side_start(low);
    assert_true(await(low, has_report, 1));
    assert_true(has_failed(low, 3));
    assert_non_null(strstr(low->reports, "it took the connection and said nothing"));
    (void)close(fd);
    side_stop(low);
    side_stop(high);

    /* With a full queue the kernel does not even answer: that ends, too. */
    pair_make(1, 1, &low, &high);
    fd = listen_in_silence(port_of(&low->config.peers[9]), 1);
    low->config.handshake_us = 20000;
    side_start(low);
    assert_true(await(low, has_failed, 30));
    (void)close(fd);
    side_stop(low);
    side_stop(high);
}

static void test_names(void **state)
{
    (void)state;
    struct side *low, *high;
    pair_make(2, 1, &low, &high);
    uint16_t port = port_of(&low->config.peers[9]);
    (void)snprintf(low->config.peers[9].text, GATE_ADDRESS_MAX, "localhost:%u", port);
    (void)snprintf(high->config.peer_listen.text, GATE_ADDRESS_MAX, "localhost:%u", port);
    side_start(high);
    side_start(low);
    assert_true(await(low, has_peers, 2));
    side_stop(low);
    side_stop(high);

    /* Names under .invalid do not exist, whoever is asked. */
    pair_make(1, 1, &low, &high);
    (void)snprintf(low->config.peers[9].text, GATE_ADDRESS_MAX, "nowhere.invalid:1");
    side_start(low);
    assert_true(await(low, has_report, 1));
    assert_non_null(strstr(low->reports, "node 9 at nowhere.invalid:1 cannot be reached: "));
    side_stop(low);
    side_stop(high);
}

/* No descriptors are left: newcomers wait in the kernel, the gate does not spin, says so once, and
 * takes them when there are some again. */
static void test_no_descriptors(void **state)
{
    (void)state;
    struct side *s = side_make(0, 1);
    uint16_t port = free_port();
    struct gate_address listen = loopback(port);
    struct rlimit before, low;
    s->config.client_listen = &listen;
    s->config.client_listens = 1;
    side_start(s);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = (rlim_t)fd + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int connected = connect(fd, (struct sockaddr *)&at, sizeof at);
    bool reported = await(s, has_report, 1);
    uint32_t taken = s->clients_n;
    clock_t used = clock();
    bool waits = !await_for(s, has_clients, 1, 500);
    used = clock() - used;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(connected, 0);
    assert_true(reported);
    assert_int_equal(taken, 0);
    assert_true(waits);
    assert_true(used < CLOCKS_PER_SEC / 4); /* a thread that spins uses twice that */
    assert_true(await(s, has_clients, 1));
    char expected[512];
    (void)snprintf(expected, sizeof expected,
                   "cannot accept connections on %s: Too many open files; raise the limit of open "
                   "files (ulimit -n, LimitNOFILE), or lower clients_max\n",
                   listen.text);
    assert_string_equal(s->reports, expected);
    (void)close(fd);
    side_stop(s);
}

/* Stopped in the middle of everything. */
static void test_stop_in_flight(void **state)
{
    (void)state;
    uint32_t files = open_files();
    for (uint32_t round = 0; round < 20; round++) {
        struct side *low, *high;
        int fds[6];
        pair_make(4, 4, &low, &high);
        side_start(high);
        side_start(low);
        uint16_t port = port_of(&high->config.peer_listen);
        for (uint32_t i = 0; i < 6; i++) {
            fds[i] = dial(port);
        }
        assert_true(await(low, has_peers, round % 16));
        gate_lost(low->gate, 9, 0, 0);
        if (round % 2 == 0) {
            side_stop(low);
            side_stop(high);
        } else {
            side_stop(high);
            side_stop(low);
        }
        for (uint32_t i = 0; i < 6; i++) {
            (void)close(fds[i]);
        }
    }
    assert_int_equal(open_files(), files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_unix_path_in_use),
        cmocka_unit_test(test_port_in_use),
        cmocka_unit_test(test_connects_all_pairs),
        cmocka_unit_test(test_reconnects),
        cmocka_unit_test(test_notices_silent_end),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_replayed),
        cmocka_unit_test(test_silence_and_crowd),
        cmocka_unit_test(test_crowd_makes_room),
        cmocka_unit_test(test_calls_a_stranger),
        cmocka_unit_test(test_calls_silence),
        cmocka_unit_test(test_no_descriptors),
        cmocka_unit_test(test_stop_in_flight),
        /* Last: a look-up may end later than its test, and frees a descriptor then. */
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
