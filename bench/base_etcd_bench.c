/* Load for etcd, which speaks no RESP (`horkos bench --resp` is for what does): PUTs through the
 * JSON gateway of its version 3 API, over connections that each keep a pipeline of requests under
 * way, in a closed loop. Prints one line of JSON: requests a second, latency of a pipeline in us,
 * CPU time of the servers (--pids) per request.
 *
 *   base_etcd_bench --ports 7001,7002,7003 [--connections 50] [--pipeline 1]
 *       [--requests 1000000] [--keys 1000000] [--value 32] [--pids 1,2,3] [--seed 1]
 *
 * Keys are "key:" and 12 digits, uniform. */
#include <arpa/inet.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/histogram.h"
#include "base/random.h"

#define LIST_MAX 16u
#define CONNECTIONS_MAX 1000u
#define REPLY_BYTES (256u * 1024u)

struct connection {
    int fd;
    uint32_t replies_left;
    uint64_t begin_ns;
    char *out;
    uint32_t in_n;
    char in[REPLY_BYTES];
};

struct bench {
    uint32_t ports[LIST_MAX], ports_n, pids[LIST_MAX], pids_n;
    uint32_t connections, pipeline, value;
    uint64_t requests, keys;
    uint64_t issued, done, errors;
    struct random random;
    struct histogram latency;
    struct connection *at;
    char *text;
    int epoll;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- Requests ---- */

static uint32_t base64(const char *from, uint32_t n, char *to)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t used = 0;
    for (uint32_t i = 0; i < n; i += 3) {
        uint32_t left = n - i;
        uint32_t bits = (uint32_t)(uint8_t)from[i] << 16 |
                        (left > 1 ? (uint32_t)(uint8_t)from[i + 1] << 8 : 0) |
                        (left > 2 ? (uint32_t)(uint8_t)from[i + 2] : 0);
        to[used++] = digits[bits >> 18];
        to[used++] = digits[bits >> 12 & 63];
        to[used++] = left > 1 ? digits[bits >> 6 & 63] : '=';
        to[used++] = left > 2 ? digits[bits & 63] : '=';
    }
    to[used] = 0;
    return used;
}

static uint32_t write_request(struct bench *b, char *to)
{
    char key[17];
    char key64[32];
    static char value64[8192];
    static char body[9000];
    uint64_t number = random_below(&b->random, b->keys);
    snprintf(key, sizeof key, "key:%012" PRIu64, number);
    base64(key, 16, key64);
    base64(b->text, b->value, value64);
    int n = snprintf(body, sizeof body, "{\"key\":\"%s\",\"value\":\"%s\"}", key64, value64);
    return (uint32_t)sprintf(
        to, "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", n, body);
}

/* ---- Replies ---- */

static uint32_t http_reply(char *at, uint32_t n, bool *error)
{
    at[n] = 0;
    char *body = strstr(at, "\r\n\r\n");
    char *length = strcasestr(at, "content-length:");
    if (body == NULL) {
        return 0;
    }
    *error = strncmp(at, "HTTP/1.1 200", 12) != 0;
    if (length != NULL && length < body) {
        uint32_t whole = (uint32_t)(body - at) + 4 + (uint32_t)strtoul(length + 15, NULL, 10);
        return whole <= n ? whole : 0;
    }
    char *last = strstr(body, "0\r\n\r\n"); /* chunked */
    return last == NULL ? 0 : (uint32_t)(last - at) + 5;
}

/* ---- The loop ---- */

static void connection_send(struct bench *b, struct connection *c)
{
    uint32_t n = 0;
    uint32_t batch = 0;
    while (batch < b->pipeline && b->issued < b->requests) {
        n += write_request(b, c->out + n);
        b->issued++;
        batch++;
    }
    c->replies_left = batch;
    c->begin_ns = now_ns();
    for (uint32_t sent = 0; sent < n;) {
        ssize_t done = send(c->fd, c->out + sent, n - sent, MSG_NOSIGNAL);
        if (done <= 0) {
            fail("send");
        }
        sent += (uint32_t)done;
    }
}

static void connection_receive(struct bench *b, struct connection *c)
{
    ssize_t got = recv(c->fd, c->in + c->in_n, sizeof c->in - c->in_n - 1, MSG_DONTWAIT);
    if (got <= 0) {
        fail("recv");
    }
    c->in_n += (uint32_t)got;
    uint32_t at = 0;
    while (c->replies_left > 0) {
        bool error = false;
        uint32_t n = http_reply(c->in + at, c->in_n - at, &error);
        if (n == 0) {
            break;
        }
        if (error && b->errors++ == 0) {
            fprintf(stderr, "first error: %.*s\n", (int)n, c->in + at);
        }
        at += n;
        c->replies_left--;
        b->done++;
    }
    memmove(c->in, c->in + at, c->in_n - at);
    c->in_n -= at;
    if (c->replies_left == 0) {
        histogram_record(&b->latency, (now_ns() - c->begin_ns) / 1000);
        if (b->issued < b->requests) {
            connection_send(b, c);
        }
    }
}

static void connect_all(struct bench *b)
{
    for (uint32_t i = 0; i < b->connections; i++) {
        struct connection *c = &b->at[i];
        struct sockaddr_in to = {
            .sin_family = AF_INET,
            .sin_port = htons((uint16_t)b->ports[i % b->ports_n]),
            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        };
        int one = 1;
        c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0) {
            fail("connect");
        }
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        c->out = malloc((size_t)b->pipeline * (b->value * 2 + 400));
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        if (c->out == NULL || epoll_ctl(b->epoll, EPOLL_CTL_ADD, c->fd, &event) != 0) {
            fail("epoll");
        }
    }
}

/* User and system time of the servers in clock ticks. */
static uint64_t servers_ticks(const struct bench *b)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < b->pids_n; i++) {
        char path[64];
        char line[1024];
        uint64_t user = 0;
        uint64_t system = 0;
        snprintf(path, sizeof path, "/proc/%u/stat", b->pids[i]);
        FILE *file = fopen(path, "re");
        if (file == NULL || fgets(line, sizeof line, file) == NULL) {
            fail(path);
        }
        fclose(file);
        const char *rest = strrchr(line, ')');
        if (rest == NULL ||
            sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
                   &user, &system) != 2) {
            fail("stat");
        }
        sum += user + system;
    }
    return sum;
}

static void run(struct bench *b)
{
    struct epoll_event events[64];
    connect_all(b);
    uint64_t ticks = servers_ticks(b);
    uint64_t begin = now_ns();
    for (uint32_t i = 0; i < b->connections && b->issued < b->requests; i++) {
        connection_send(b, &b->at[i]);
    }
    while (b->done < b->requests) {
        int n = epoll_wait(b->epoll, events, 64, 10000);
        if (n <= 0) {
            fail("no answer for 10 s");
        }
        for (int i = 0; i < n; i++) {
            connection_receive(b, &b->at[events[i].data.u32]);
        }
    }
    double seconds = (double)(now_ns() - begin) / 1e9;
    double cpu_s = (double)(servers_ticks(b) - ticks) / (double)sysconf(_SC_CLK_TCK);
    printf("{\"requests\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"per_s\":%.0f,\"p50_us\":%" PRIu64
           ",\"p99_us\":%" PRIu64 ",\"max_us\":%" PRIu64 ",\"servers_cpu_us_per_request\":%.3f}\n",
           b->done, b->errors, (double)b->done / seconds, histogram_percentile(&b->latency, 500000),
           histogram_percentile(&b->latency, 990000), b->latency.max,
           cpu_s * 1e6 / (double)b->done);
}

/* ---- Options ---- */

static uint32_t list(const char *text, uint32_t *to)
{
    uint32_t n = 0;
    for (char *end; *text != 0 && n < LIST_MAX; text = *end == ',' ? end + 1 : end) {
        to[n++] = (uint32_t)strtoul(text, &end, 10);
        if (end == text) {
            fprintf(stderr, "not a list of numbers: %s\n", text);
            exit(2);
        }
    }
    return n;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"ports", 1, NULL, 'p'},    {"connections", 1, NULL, 'c'}, {"pipeline", 1, NULL, 'P'},
        {"requests", 1, NULL, 'n'}, {"keys", 1, NULL, 'K'},        {"value", 1, NULL, 'v'},
        {"pids", 1, NULL, 'i'},     {"seed", 1, NULL, 's'},        {NULL, 0, NULL, 0},
    };
    struct bench b = {
        .connections = 50, .pipeline = 1, .value = 32, .requests = 1000000, .keys = 1000000};
    uint64_t seed = 1;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case 'p':
            b.ports_n = list(optarg, b.ports);
            break;
        case 'c':
            b.connections = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'P':
            b.pipeline = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'n':
            b.requests = strtoull(optarg, NULL, 10);
            break;
        case 'K':
            b.keys = strtoull(optarg, NULL, 10);
            break;
        case 'v':
            b.value = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'i':
            b.pids_n = list(optarg, b.pids);
            break;
        case 's':
            seed = strtoull(optarg, NULL, 10);
            break;
        default:
            return 2;
        }
    }
    if (b.ports_n == 0 || b.connections == 0 || b.connections > CONNECTIONS_MAX ||
        b.pipeline == 0 || b.pipeline > 1000 || b.value == 0 || b.value > 4096 || b.keys == 0) {
        fprintf(stderr, "usage: the head of bench/base_etcd_bench.c\n");
        return 2;
    }
    random_init(&b.random, seed);
    histogram_init(&b.latency);
    b.text = calloc(1, b.value + 1);
    b.at = calloc(b.connections, sizeof *b.at);
    b.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (b.text == NULL || b.at == NULL || b.epoll < 0) {
        fail("start");
    }
    memset(b.text, 'x', b.value);
    run(&b);
    return b.errors == 0 ? 0 : 1;
}
