/* What a request costs the thread that owns a loop: an echo server on each backend, one thread, and
 * a client thread that keeps so many messages under way on each of its connections (P1: the next
 * follows the answer; P16: sixteen at a time). Only the CPU time of the server's thread counts, so
 * the client's speed matters little as long as it keeps the server supplied. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "net/loop.h"

#define CONNECTIONS_MAX 1000u
#define BATCH_MAX 65536u
struct options {
    uint32_t connections;
    uint32_t message_bytes;
    uint32_t seconds;
    uint32_t looks; /* polls with timeout 0 that find nothing before the server sleeps */
};

struct server {
    enum loop_kind kind;
    const struct options *options;
    int fds[CONNECTIONS_MAX];
    struct stream *streams[CONNECTIONS_MAX];
    _Atomic bool stop;
    struct loop *loop;
    uint64_t bytes;
    uint64_t polls;
    double cpu_s;
};

/* One connection of the server. */
struct echo {
    struct server *server;
    struct stream *stream;
};

struct client {
    const struct options *options;
    uint32_t pipeline;
    int fds[CONNECTIONS_MAX];
    uint32_t missing[CONNECTIONS_MAX]; /* bytes of the answers under way */
    uint8_t batch[BATCH_MAX];
};

static double thread_cpu_s(void)
{
    struct timespec t;
    HK_ASSERT(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
    fprintf(stderr, "net_loop_bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- The server ---- */

static void received(void *owner, struct bytes bytes)
{
    struct echo *e = (struct echo *)owner;
    e->server->bytes += bytes.n;
    if (!stream_write(e->stream, bytes)) {
        fail("stream_write");
    }
}

static void closed(void *owner, int error)
{
    struct echo *e = (struct echo *)owner;
    (void)error;
    e->stream = NULL;
}

static const struct stream_ops echo_ops = {.received = received, .closed = closed};

static void *serve(void *argument)
{
    struct server *server = (struct server *)argument;
    struct echo *echoes = calloc(server->options->connections, sizeof(*echoes));
    if (echoes == NULL || loop_create(server->kind, &server->loop) != HK_OK) {
        fail("loop_create");
    }
    for (uint32_t i = 0; i < server->options->connections; i++) {
        echoes[i].server = server;
        if (stream_open(server->loop, server->fds[i], &echo_ops, &echoes[i], &echoes[i].stream) !=
            HK_OK) {
            fail("stream_open");
        }
    }
    double start_s = thread_cpu_s();
    uint32_t idle = 0;
    while (!atomic_load(&server->stop)) {
        uint64_t timeout_us = idle < server->options->looks ? 0 : 10000;
        idle = loop_poll(server->loop, timeout_us) == 0 ? idle + 1 : 0;
        server->polls++;
    }
    server->cpu_s = thread_cpu_s() - start_s;
    loop_destroy(server->loop);
    free(echoes);
    return NULL;
}

/* ---- The client ---- */

static void send_batch(struct client *c, uint32_t i)
{
    uint32_t bytes = c->pipeline * c->options->message_bytes;
    ssize_t n = send(c->fds[i], c->batch, bytes, MSG_NOSIGNAL);
    if (n != (ssize_t)bytes) {
        fail("send");
    }
    c->missing[i] = bytes;
}

/* One round: what has answers gets the next batch. */
static void drive(struct client *c, int epoll_fd)
{
    struct epoll_event events[CONNECTIONS_MAX];
    static uint8_t answer[BATCH_MAX];
    int n = epoll_wait(epoll_fd, events, (int)CONNECTIONS_MAX, 10);
    for (int k = 0; k < n; k++) {
        uint32_t i = events[k].data.u32;
        ssize_t got = recv(c->fds[i], answer, sizeof(answer), MSG_DONTWAIT);
        if (got <= 0 || (uint32_t)got > c->missing[i]) {
            fail("recv");
        }
        c->missing[i] -= (uint32_t)got;
        if (c->missing[i] == 0) {
            send_batch(c, i);
        }
    }
}

static void run_client(struct client *c)
{
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) {
        fail("epoll_create1");
    }
    for (uint32_t i = 0; i < c->options->connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fds[i], &event) != 0) {
            fail("epoll_ctl");
        }
        send_batch(c, i);
    }
    uint64_t end_us = clock_boot_us() + c->options->seconds * UINT64_C(1000000);
    while (clock_boot_us() < end_us) {
        drive(c, epoll_fd);
    }
    (void)close(epoll_fd);
}

/* ---- Both ---- */

static void connect_pair(int listener, int *server_out, int *client_out)
{
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    int one = 1;
    *client_out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*client_out < 0 || getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
        connect(*client_out, (struct sockaddr *)&address, size) != 0) {
        fail("connect");
    }
    *server_out = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (*server_out < 0 ||
        setsockopt(*server_out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0 ||
        setsockopt(*client_out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0) {
        fail("accept");
    }
}

static void run(const struct options *options, enum loop_kind kind, uint32_t pipeline)
{
    static struct server server;
    static struct client client;
    memset(&server, 0, sizeof(server));
    memset(&client, 0, sizeof(client));
    server.kind = kind;
    server.options = client.options = options;
    client.pipeline = pipeline;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 16) != 0) {
        fail("listen");
    }
    for (uint32_t i = 0; i < options->connections; i++) {
        connect_pair(listener, &server.fds[i], &client.fds[i]);
    }
    (void)close(listener);
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, &server) != 0) {
        fail("pthread_create");
    }
    run_client(&client);
    atomic_store(&server.stop, true);
    HK_ASSERT(pthread_join(thread, NULL) == 0);
    for (uint32_t i = 0; i < options->connections; i++) {
        (void)close(client.fds[i]);
    }
    double requests = (double)server.bytes / options->message_bytes;
    printf("%-9s P%-3" PRIu32 " %9.0f requests/s %9.0f requests/CPU s %6.2f us CPU/request "
           "%6.1f requests/poll\n",
           loop_kind_name(kind), pipeline, requests / options->seconds, requests / server.cpu_s,
           1e6 * server.cpu_s / requests, requests / (double)server.polls);
}

static uint32_t number(const char *text, uint32_t low, uint32_t high)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0' || n < low || n > high) {
        fprintf(stderr, "net_loop_bench: %s is not a number from %" PRIu32 " to %" PRIu32 "\n",
                text, low, high);
        exit(2);
    }
    return (uint32_t)n;
}

int main(int argc, char **argv)
{
    struct options options = {.connections = 50, .message_bytes = 32, .seconds = 3, .looks = 0};
    int c;
    while ((c = getopt(argc, argv, "c:m:s:l:h")) != -1) {
        switch (c) {
        case 'c':
            options.connections = number(optarg, 1, CONNECTIONS_MAX);
            break;
        case 'm':
            options.message_bytes = number(optarg, 1, 4096);
            break;
        case 's':
            options.seconds = number(optarg, 1, 600);
            break;
        case 'l':
            options.looks = number(optarg, 0, 1000000);
            break;
        default:
            fprintf(stderr, "usage: net_loop_bench [-c connections] [-m message bytes] "
                            "[-s seconds] [-l empty looks before sleeping]\n");
            return c == 'h' ? 0 : 2;
        }
    }
    printf("%" PRIu32 " connections, messages of %" PRIu32 " bytes, %" PRIu32 " s each\n",
           options.connections, options.message_bytes, options.seconds);
    static const uint32_t pipelines[] = {1, 16};
    for (size_t i = 0; i < sizeof(pipelines) / sizeof(pipelines[0]); i++) {
        run(&options, LOOP_EPOLL, pipelines[i]);
        run(&options, LOOP_URING, pipelines[i]);
    }
    return 0;
}
