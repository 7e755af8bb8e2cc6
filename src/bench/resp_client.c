/* Connections of the RESP load: requests out, replies in. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "bench/resp_internal.h"
#include "net/address.h"

#define KEY_AT 18u /* behind "*3\r\n$3\r\nSET\r\n$16\r\n", or the same of a GET */
#define FILL_PIPELINE 64u

uint64_t resp_now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void resp_fail(struct resp_thread *t, const char *why)
{
    if (!t->failed) {
        t->failed = true;
        snprintf(t->why, sizeof t->why, "%s", why);
    }
}

/* ---- Requests ---- */

int resp_template_make(struct resp_load *load)
{
    const struct resp_load_config *c = &load->config;
    char wait[64] = "";
    if (c->wait_replicas > 0) {
        char number[12];
        int n = snprintf(number, sizeof number, "%u", c->wait_replicas);
        snprintf(wait, sizeof wait, "*3\r\n$4\r\nWAIT\r\n$%d\r\n%s\r\n$1\r\n0\r\n", n, number);
    }
    size_t size = 128u + c->value_bytes + sizeof wait;
    load->set = malloc(size);
    if (load->set == NULL) {
        return HK_ERR_NOMEM;
    }
    char *at = (char *)load->set;
    int n = snprintf(at, size, "*3\r\n$3\r\nSET\r\n$%u\r\nkey:%012u\r\n$%u\r\n",
                     RESP_LOAD_KEY_BYTES, 0u, c->value_bytes);
    memset(at + n, 'x', c->value_bytes);
    int more = snprintf(at + n + c->value_bytes, sizeof wait + 2u, "\r\n%s", wait);
    load->set_bytes = (uint32_t)n + c->value_bytes + (uint32_t)more;
    return HK_OK;
}

static void write_key(uint8_t *at, uint64_t number)
{
    for (uint32_t i = RESP_LOAD_KEY_BYTES; i-- > 4;) {
        at[i] = (uint8_t)('0' + number % 10);
        number /= 10;
    }
}

static bool write_request(struct resp_client *c, enum load_kind kind, uint64_t key)
{
    static const char get[] = "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000000\r\n";
    const struct resp_load *load = c->thread->load;
    bool write = kind == LOAD_WRITE;
    uint32_t bytes = write ? load->set_bytes : RESP_GET_BYTES;
    _Static_assert(sizeof get - 1 == RESP_GET_BYTES, "the length of a GET");
    uint8_t *out = stream_reserve(c->stream, bytes);
    if (out == NULL) {
        return false;
    }
    memcpy(out, write ? (const void *)load->set : get, bytes);
    write_key(out + KEY_AT, key);
    stream_commit(c->stream, bytes);
    return true;
}

static void request(struct resp_client *c, uint64_t start_ns)
{
    struct resp_thread *t = c->thread;
    const struct resp_load_config *config = &t->load->config;
    bool fill = t->order == RESP_FILL;
    enum load_kind kind = fill ? LOAD_WRITE : mix_draw(&config->mix, &t->random);
    uint64_t key = fill ? t->fill_next++ : keys_draw(&t->keys, &t->random);
    uint32_t room = config->pipeline > FILL_PIPELINE ? config->pipeline : FILL_PIPELINE;
    if (!write_request(c, kind, key)) {
        resp_fail(t, "no memory for requests");
        return;
    }
    c->under_way[(c->first + c->count) % room] =
        (struct resp_request){.start_ns = start_ns, .kind = kind};
    c->count++;
    t->under_way++;
}

/* ---- When to start ---- */

static bool may_start(const struct resp_thread *t)
{
    if (t->failed) {
        return false;
    }
    /* relaxed: a request more or less. */
    return t->order == RESP_FILL
               ? t->fill_next < t->fill_end
               : t->order == RESP_RUN &&
                     !atomic_load_explicit(&t->load->enough, memory_order_relaxed);
}

static void start_batch(struct resp_client *c)
{
    struct resp_thread *t = c->thread;
    uint32_t batch = t->order == RESP_FILL ? FILL_PIPELINE : t->load->config.pipeline;
    uint64_t now_ns = resp_now_ns();
    for (uint32_t i = 0; i < batch && may_start(t); i++) {
        request(c, now_ns);
    }
}

static void start_those_due(struct resp_thread *t)
{
    uint64_t now_ns = resp_now_ns();
    while (may_start(t) && !list_empty(&t->idle) && schedule_due_ns(&t->schedule) <= now_ns) {
        struct resp_client *c = list_entry(list_pop_front(&t->idle), struct resp_client, idle);
        request(c, schedule_due_ns(&t->schedule));
        schedule_advance(&t->schedule, &t->random);
        if (c->count < t->load->config.pipeline) {
            list_push_back(&t->idle, &c->idle); /* the next one's turn */
        }
    }
}

static bool closed_loop(const struct resp_thread *t)
{
    return t->order == RESP_FILL || t->load->config.rate == 0.0;
}

void resp_clients_start(struct resp_thread *t)
{
    if (!closed_loop(t)) {
        start_those_due(t);
        return;
    }
    for (uint32_t i = 0; i < t->clients_n && may_start(t); i++) {
        if (t->clients[i].count == 0 && t->clients[i].stream != NULL) {
            start_batch(&t->clients[i]);
        }
    }
}

/* ---- Replies ---- */

static void count(struct resp_thread *t, const struct resp_request *r, enum resp_scan_kind reply,
                  bool failed, uint64_t now_ns)
{
    if (t->order == RESP_FILL) {
        atomic_fetch_add_explicit(&t->filled, 1, memory_order_relaxed);
        if (failed) {
            resp_fail(t, t->error[0] != '\0' ? t->error : "a key could not be written");
        }
        return;
    }
    /* relaxed: which run's a reply is may be off by one. */
    if (!atomic_load_explicit(&t->load->measuring, memory_order_relaxed)) {
        return;
    }
    t->run.ops[r->kind]++;
    t->run.failed += failed;
    t->run.missing += r->kind == LOAD_READ && reply == RESP_SCAN_NIL;
    histogram_record(&t->run.latency_ns[r->kind], now_ns - r->start_ns);
}

/* Whether that is no answer to what the oldest request asked. */
static bool is_wrong(const struct resp_client *c, const struct resp_request *r,
                     enum resp_scan_kind reply)
{
    const struct resp_load_config *config = &c->thread->load->config;
    if (r->kind == LOAD_READ) {
        return reply != RESP_SCAN_NIL &&
               !(reply == RESP_SCAN_BULK && c->scan.number == (int64_t)config->value_bytes);
    }
    return c->half
               ? !(reply == RESP_SCAN_NUMBER && c->scan.number >= (int64_t)config->wait_replicas)
               : !(reply == RESP_SCAN_LINE && strcmp(c->scan.line, "+OK") == 0);
}

static void take_reply(struct resp_client *c, enum resp_scan_kind reply, uint64_t now_ns)
{
    struct resp_thread *t = c->thread;
    const struct resp_load_config *config = &t->load->config;
    uint32_t room = config->pipeline > FILL_PIPELINE ? config->pipeline : FILL_PIPELINE;
    struct resp_request *r = &c->under_way[c->first];
    bool failed = is_wrong(c, r, reply);
    if (failed && t->error[0] == '\0') {
        snprintf(t->error, sizeof t->error, "%.*s", (int)(sizeof t->error - 1), c->scan.line);
    }
    if (r->kind == LOAD_WRITE && config->wait_replicas > 0 && !c->half) {
        c->half = true;
        c->half_wrong = failed;
        return;
    }
    count(t, r, reply, failed || c->half_wrong, now_ns);
    c->half = false;
    c->half_wrong = false;
    c->first = (c->first + 1) % room;
    c->count--;
    t->under_way--;
}

static void client_received(void *owner, struct bytes bytes)
{
    struct resp_client *c = owner;
    struct resp_thread *t = c->thread;
    uint64_t now_ns = resp_now_ns();
    t->heard_ns = now_ns;
    for (;;) {
        enum resp_scan_kind reply = resp_scan_next(&c->scan, &bytes);
        if (reply == RESP_SCAN_MORE) {
            break;
        }
        if (reply == RESP_SCAN_WRONG || c->count == 0) {
            resp_fail(t, "the server says what is no reply");
            return;
        }
        take_reply(c, reply, now_ns);
    }
    if (closed_loop(t)) {
        if (c->count == 0) {
            start_batch(c);
        }
    } else if (c->count < t->load->config.pipeline && list_empty(&c->idle)) {
        list_push_back(&t->idle, &c->idle);
    }
}

static void client_closed(void *owner, int error)
{
    struct resp_client *c = owner;
    const char *why = error == 0 ? "a server closed a connection" : strerrordesc_np(error);
    c->stream = NULL;
    list_remove(&c->idle);
    resp_fail(c->thread, why != NULL ? why : "a connection broke");
}

static const struct stream_ops client_ops = {.received = client_received, .closed = client_closed};

/* ---- Connecting ---- */

static int dial(const char *server, char *why, uint32_t size)
{
    struct sockaddr_storage at;
    socklen_t n = 0;
    int one = 1;
    const char *refused = address_resolve(server, &at, &n);
    if (refused != NULL) {
        snprintf(why, size, "%s: %s", server, refused);
        return -1;
    }
    int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)(const void *)&at, n) != 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        snprintf(why, size, "%s: %s", server, strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        return -1;
    }
    if (at.ss_family != AF_UNIX) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    return fd;
}

static int open_client(struct resp_thread *t, struct resp_client *c, uint32_t number)
{
    const struct resp_load_config *config = &t->load->config;
    uint32_t room = config->pipeline > FILL_PIPELINE ? config->pipeline : FILL_PIPELINE;
    c->thread = t;
    list_init(&c->idle);
    c->under_way = calloc(room, sizeof *c->under_way);
    if (c->under_way == NULL) {
        resp_fail(t, "no memory for connections");
        return HK_ERR_NOMEM;
    }
    int fd = dial(config->servers[number % config->servers_n], t->why, sizeof t->why);
    if (fd < 0) {
        t->failed = true;
        return HK_ERR_IO;
    }
    int err = stream_open(t->loop, fd, &client_ops, c, &c->stream);
    if (err != HK_OK) {
        (void)close(fd);
        resp_fail(t, "a connection cannot be watched");
        return err;
    }
    list_push_back(&t->idle, &c->idle);
    return HK_OK;
}

int resp_clients_open(struct resp_thread *t)
{
    const struct resp_load_config *config = &t->load->config;
    uint32_t threads = config->threads;
    t->clients_n = config->connections / threads + (t->index < config->connections % threads);
    t->clients = calloc(t->clients_n, sizeof *t->clients);
    if (t->clients == NULL) {
        resp_fail(t, "no memory for connections");
        return HK_ERR_NOMEM;
    }
    int err = loop_create(config->io, &t->loop);
    if (err != HK_OK) {
        resp_fail(t, "the sockets' loop cannot be made; try --io epoll");
        return err;
    }
    for (uint32_t i = 0; i < t->clients_n && err == HK_OK; i++) {
        err = open_client(t, &t->clients[i], t->index + i * threads);
    }
    return err;
}

void resp_clients_close(struct resp_thread *t)
{
    for (uint32_t i = 0; t->clients != NULL && i < t->clients_n; i++) {
        if (t->clients[i].stream != NULL) {
            stream_close(t->clients[i].stream);
        }
        free(t->clients[i].under_way);
    }
    free(t->clients);
    if (t->loop != NULL) {
        loop_destroy(t->loop);
    }
}
