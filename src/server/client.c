/* Clients: a socket's stream, the protocol's connection and the node's session, tied together.
 * docs/SERVER.md has the table of a client's states.
 *
 * A client is in one of three lists while it has something to do: runnable; later, after a slice of
 * long work; held, while peers lag so far that new updates have to wait. It is in none while it
 * waits for bytes, for answers, or for its replies to be read. */
#include "server/internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "base/assert.h"
#include "base/clock.h"

#define IDLE_CHECK_US 1000000u
#define CLOSE_POLL_US 10000u

static void touch(struct client *c)
{
    if (list_empty(&c->touched)) {
        list_push_back(&c->worker->touched, &c->touched);
    }
}

static void run(struct client *c)
{
    if (list_empty(&c->run) && !c->stalled && !c->closing) {
        c->turn = 0;
        list_push_back(&c->worker->runnable, &c->run);
    }
}

/* ---- Ends ---- */

/* Everything but the stream, which is gone or about to go. */
static void client_free(struct client *c)
{
    struct server_worker *w = c->worker;
    struct server *s = w->server;
    if (w->node != NULL && c->session != SESSION_NONE) {
        w->by_session[c->session] = NULL;
        worker_session_close(w->node, c->session);
        w->in_flight -= resp_conn_in_flight(c->conn);
    }
    registry_remove(s->registry, c->entry);
    list_remove(&c->link);
    list_remove(&c->run);
    list_remove(&c->touched);
    list_remove(&c->asleep);
    atomic_fetch_sub_explicit(&s->clients_memory, c->memory, memory_order_relaxed);
    atomic_fetch_sub_explicit(&w->clients_n, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&s->clients_n, 1, memory_order_relaxed);
    resp_conn_destroy(c->conn);
    free(c);
}

static void client_abort(struct client *c)
{
    stream_close(c->stream);
    client_free(c);
}

/* Its last replies still go out. */
static void client_finish(struct client *c)
{
    stream_finish(c->stream, CLIENT_LINGER_US);
    client_free(c);
}

/* ---- Callbacks of the stream: inside loop_poll ---- */

static void received(void *owner, struct bytes bytes)
{
    struct client *c = owner;
    if (c->closing || c->worker->node == NULL) {
        return;
    }
    if (!resp_conn_feed(c->conn, bytes)) {
        log_write(c->worker->server->log, LOG_WARN,
                  "client %llu is closed: its input is over its limits, or memory is short",
                  (unsigned long long)c->id);
        client_abort(c);
        return;
    }
    if (!c->paused && !resp_conn_hungry(c->conn)) {
        c->paused = true;
        stream_pause(c->stream);
    }
    run(c);
    touch(c);
}

static void drained(void *owner)
{
    struct client *c = owner;
    if (c->stalled) {
        c->stalled = false;
        run(c);
    }
    touch(c); /* its memory is counted anew; its last replies may have been what left */
}

/* Whoever sends commands and shuts its half still gets their replies. */
static bool ended(void *owner)
{
    struct client *c = owner;
    c->ended = true;
    touch(c);
    return true;
}

static void closed(void *owner, int error)
{
    (void)error;
    client_free(owner);
}

static const struct stream_ops stream_ops = {
    .received = received, .drained = drained, .ended = ended, .closed = closed};

/* ---- Arrivals ---- */

static void refuse(struct server *s, int fd, const char *text)
{
    atomic_fetch_add_explicit(&s->clients_refused, 1, memory_order_relaxed);
    (void)send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)close(fd);
}

static struct server_worker *least_loaded(struct server *s)
{
    struct server_worker *best = &s->workers[0];
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < s->workers_n; i++) {
        uint32_t n = atomic_load_explicit(&s->workers[i].clients_n, memory_order_relaxed);
        if (n < least) {
            least = n;
            best = &s->workers[i];
        }
    }
    return best;
}

void server_client_arrived(void *server, int fd, const char *address, const char *local)
{
    struct server *s = server;
    pthread_mutex_lock(&s->gate_lock); /* only once gate_start has returned */
    pthread_mutex_unlock(&s->gate_lock);
    atomic_fetch_add_explicit(&s->clients_received, 1, memory_order_relaxed);
    uint32_t n = atomic_fetch_add_explicit(&s->clients_n, 1, memory_order_relaxed);
    struct newcomer *newcomer = calloc(1, sizeof *newcomer);
    if (newcomer == NULL || n >= atomic_load_explicit(&s->clients_max, memory_order_relaxed)) {
        free(newcomer);
        atomic_fetch_sub_explicit(&s->clients_n, 1, memory_order_relaxed);
        refuse(s, fd, "-ERR max number of clients reached\r\n");
        return;
    }
    struct server_worker *w = least_loaded(s);
    newcomer->fd = fd;
    (void)strncpy(newcomer->address, address, sizeof newcomer->address - 1);
    (void)strncpy(newcomer->local, local, sizeof newcomer->local - 1);
    atomic_fetch_add_explicit(&w->clients_n, 1, memory_order_relaxed);
    /* The inbox is bounded by the number of clients. */
    pthread_mutex_lock(&w->inbox_lock);
    newcomer->next = w->inbox;
    w->inbox = newcomer;
    pthread_mutex_unlock(&w->inbox_lock);
    atomic_store_explicit(&w->inbox_full, true, memory_order_release);
    loop_wake(w->loop);
}

static struct newcomer *take_inbox(struct server_worker *w)
{
    if (!atomic_load_explicit(&w->inbox_full, memory_order_acquire)) {
        return NULL;
    }
    atomic_store_explicit(&w->inbox_full, false, memory_order_relaxed);
    pthread_mutex_lock(&w->inbox_lock);
    struct newcomer *first = w->inbox;
    w->inbox = NULL;
    pthread_mutex_unlock(&w->inbox_lock);
    return first;
}

static bool client_open(struct server_worker *w, const struct newcomer *newcomer)
{
    struct server *s = w->server;
    struct client *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return false;
    }
    c->worker = w;
    c->id = atomic_fetch_add_explicit(&s->next_client_id, 1, memory_order_relaxed) + 1;
    c->active_us = w->now_us;
    list_init(&c->run);
    list_init(&c->touched);
    list_init(&c->asleep);
    if (resp_conn_create(&w->host, c->id, newcomer->address, newcomer->local, w->now_us,
                         &c->conn) != HK_OK) {
        goto no_conn;
    }
    if (worker_session_open(w->node, &c->session) != HK_OK) {
        goto no_session;
    }
    if (registry_add(s->registry, c->conn, w->index, &c->entry) != HK_OK) {
        goto no_entry;
    }
    if (stream_open(w->loop, newcomer->fd, &stream_ops, c, &c->stream) != HK_OK) {
        goto no_stream;
    }
    w->by_session[c->session] = c;
    list_push_back(&w->clients, &c->link);
    touch(c);
    return true;
no_stream:
    registry_remove(s->registry, c->entry);
no_entry:
    worker_session_close(w->node, c->session);
no_session:
    resp_conn_destroy(c->conn);
no_conn:
    free(c);
    return false;
}

static void uncount(struct server_worker *w)
{
    atomic_fetch_sub_explicit(&w->clients_n, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&w->server->clients_n, 1, memory_order_relaxed);
}

void clients_adopt(struct server_worker *w)
{
    struct newcomer *newcomer = take_inbox(w);
    while (newcomer != NULL) {
        struct newcomer *next = newcomer->next;
        if (!client_open(w, newcomer)) {
            uncount(w);
            refuse(w->server, newcomer->fd, "-ERR max number of clients reached\r\n");
        }
        free(newcomer);
        newcomer = next;
    }
}

bool clients_init(struct server_worker *w)
{
    list_init(&w->clients);
    list_init(&w->runnable);
    list_init(&w->later);
    list_init(&w->held);
    list_init(&w->touched);
    list_init(&w->sleepers);
    w->by_session = calloc(w->server->node_config.sessions_max, sizeof(struct client *));
    return w->by_session != NULL;
}

/* ---- Requests and replies: inside worker_poll ---- */

static void end_of_turn(struct client *c)
{
    c->turn = 0;
    list_remove(&c->run);
    list_push_back(&c->worker->runnable, &c->run);
}

static void wait_for_answer(struct client *c)
{
    list_remove(&c->run);
    c->waiting = true;
    if (!c->worker->updates && resp_conn_in_flight(c->conn) == 0) {
        list_push_back(&c->worker->held, &c->run);
    }
    if (resp_conn_deadline(c->conn) != UINT64_MAX && list_empty(&c->asleep)) {
        list_push_back(&c->worker->sleepers, &c->asleep);
    }
}

uint64_t server_request_bytes(const struct request *request)
{
    const struct txn_request *txn = request->txn;
    uint64_t bytes = request->op.value.n;

    for (uint32_t i = 0; txn != NULL && i < txn->ops_n; i++) {
        bytes += txn->ops[i].value.n;
    }
    return bytes;
}

/* True: *request_out is to be run. */
static bool client_next(struct client *c, struct request *request_out)
{
    struct server_worker *w = c->worker;
    touch(c);
    switch (resp_conn_next(c->conn, w->now_us, w->updates, &request_out->op, &request_out->txn)) {
    case RESP_OP:
        request_out->since_us = resp_conn_since(c->conn);
        w->in_flight++;
        w->handed_bytes += server_request_bytes(request_out);
        /* Whether peers lag is known only once what was handed out is on its way to them. */
        w->updates = w->updates && w->handed_bytes < ROUND_BYTES_MAX;
        if (++c->turn >= TURN_OPS) {
            end_of_turn(c);
        }
        return true;
    case RESP_INPUT:
        list_remove(&c->run);
        return false;
    case RESP_WAIT:
        wait_for_answer(c);
        return false;
    case RESP_AGAIN:
        list_remove(&c->run);
        list_push_back(&w->later, &c->run);
        return false;
    case RESP_CLOSE:
        list_remove(&c->run);
        c->closing = true;
        return false;
    }
    return false;
}

bool clients_request(struct server_worker *w, struct request *request_out)
{
    while (!list_empty(&w->runnable)) {
        struct client *c = list_entry(w->runnable.next, struct client, run);
        if (!worker_session_ready(w->node, c->session)) {
            list_remove(&c->run);
            c->waiting = true;
        } else if (client_next(c, request_out)) {
            request_out->session = c->session;
            request_out->tag = c->id;
            return true;
        }
    }
    return false;
}

void clients_reply(struct server_worker *w, const struct reply *reply)
{
    struct client *c = w->by_session[reply->session];
    HK_ASSERT(c != NULL && c->id == reply->tag);
    w->in_flight--;

    const struct resp_results results = {reply->answers, reply->versions, reply->answers_n};

    resp_conn_answer(c->conn, &reply->answer, reply->answers != NULL ? &results : NULL, w->now_us);
    if (c->waiting) {
        c->waiting = false;
        list_remove(&c->run); /* out of `held`, if it was there */
        run(c);
    }
    touch(c);
}

/* ---- Around the polls ---- */

static void wake_sleepers(struct server_worker *w)
{
    list_each_safe(link, following, &w->sleepers)
    {
        struct client *c = list_entry(link, struct client, asleep);
        uint64_t due = resp_conn_deadline(c->conn);
        if (due <= w->now_us) {
            list_remove(&c->run);
            run(c);
        }
        if (due <= w->now_us || due == UINT64_MAX) {
            list_remove(&c->asleep);
        }
    }
}

static void close_idle(struct server_worker *w)
{
    uint64_t most_us = (uint64_t)w->settings.timeout_s * 1000000u;
    w->idle_check_us = w->now_us + IDLE_CHECK_US;
    list_each_safe(link, following, &w->clients)
    {
        struct client *c = list_entry(link, struct client, link);
        if (w->now_us - c->active_us > most_us && resp_conn_in_flight(c->conn) == 0) {
            log_write(w->server->log, LOG_DEBUG, "client %llu is closed: idle for %u s",
                      (unsigned long long)c->id, w->settings.timeout_s);
            client_finish(c);
        }
    }
}

static void close_killed(struct server_worker *w)
{
    if (!registry_kills(w->server->registry, w->index)) {
        return;
    }
    list_each_safe(link, following, &w->clients)
    {
        struct client *c = list_entry(link, struct client, link);
        if (registry_killed(c->entry)) {
            client_finish(c);
        }
    }
}

void clients_due(struct server_worker *w)
{
    wake_sleepers(w);
    close_killed(w);
    if (w->settings.timeout_s > 0 && w->now_us >= w->idle_check_us) {
        close_idle(w);
    }
}

uint64_t clients_deadline(const struct server_worker *w)
{
    uint64_t due = UINT64_MAX;
    list_each(link, &w->sleepers)
    {
        uint64_t at = resp_conn_deadline(list_entry(link, struct client, asleep)->conn);
        due = at < due ? at : due;
    }
    if (w->settings.timeout_s > 0 && !list_empty(&w->clients) && w->idle_check_us < due) {
        due = w->idle_check_us;
    }
    return due;
}

static bool flush_output(struct client *c)
{
    struct bytes out = resp_conn_output(c->conn);
    if (out.n == 0) {
        return true;
    }
    if (!stream_write(c->stream, out)) {
        return false;
    }
    resp_conn_sent(c->conn, out.n);
    if (c->waiting && resp_conn_in_flight(c->conn) == 0) {
        c->waiting = false; /* a connection with much unread output waits for this */
        run(c);
    }
    return true;
}

static void account(struct client *c)
{
    uint64_t queued = stream_queued(c->stream);
    /* Less than this leaves with the next loop_poll as a rule, and nobody would be told. */
    queued = queued < LOOP_DRAINED_MIN ? 0 : queued;
    uint64_t now = sizeof *c + resp_conn_bytes_held(c->conn) + queued;
    if (now != c->memory) {
        /* Modulo 2^64: it may shrink. */
        atomic_fetch_add_explicit(&c->worker->server->clients_memory, now - c->memory,
                                  memory_order_relaxed);
        c->memory = now;
    }
}

static void set_pause(struct client *c)
{
    if (!c->stalled && stream_queued(c->stream) > QUEUED_MAX) {
        c->stalled = true;
        list_remove(&c->run);
    }
    bool pause = c->stalled || !resp_conn_hungry(c->conn);
    if (pause != c->paused) {
        c->paused = pause;
        if (pause) {
            stream_pause(c->stream);
        } else {
            stream_resume(c->stream);
        }
    }
}

static void count_commands(struct client *c)
{
    struct server_worker *w = c->worker;
    struct resp_conn_info info;
    resp_conn_info(c->conn, &info);
    uint64_t all = atomic_load_explicit(&w->commands, memory_order_relaxed);
    /* relaxed, and no read-modify-write: only this thread writes it. */
    atomic_store_explicit(&w->commands, all + info.commands - c->commands, memory_order_relaxed);
    c->commands = info.commands;
}

/* Its other side sends nothing more, and nothing is left to be done. */
static bool served(const struct client *c)
{
    return c->ended && !c->stalled && !c->waiting && list_empty(&c->run) &&
           resp_conn_in_flight(c->conn) == 0;
}

static void look_after(struct client *c)
{
    bool out = flush_output(c);
    bool over = c->closing || served(c);
    count_commands(c);
    registry_touch(c->entry, c->conn);
    c->active_us = c->worker->now_us;
    account(c);
    if (!out) {
        client_abort(c);
    } else if (over && stream_queued(c->stream) < LOOP_DRAINED_MIN) {
        client_finish(c);
    } else {
        set_pause(c); /* who is over and has much to read yet goes when it is drained */
    }
}

static void report_overfull(const struct client *c)
{
    struct server *s = c->worker->server;
    uint64_t now = c->worker->now_us;
    uint64_t last = atomic_load_explicit(&s->memory_logged_us, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->clients_overfull, 1, memory_order_relaxed);
    if (now - last >= 1000000u &&
        atomic_compare_exchange_strong_explicit(&s->memory_logged_us, &last, now,
                                                memory_order_relaxed, memory_order_relaxed)) {
        log_write(s->log, LOG_WARN,
                  "client %llu with %llu bytes is closed: the buffers of all clients are over "
                  "clients_memory_max (%llu); %llu were closed for this so far",
                  (unsigned long long)c->id, (unsigned long long)c->memory,
                  (unsigned long long)c->worker->settings.clients_memory_max,
                  (unsigned long long)atomic_load(&s->clients_overfull));
    }
}

static struct client *largest(const struct server_worker *w)
{
    struct client *most = NULL;
    list_each(link, &w->clients)
    {
        struct client *c = list_entry(link, struct client, link);
        most = most == NULL || c->memory > most->memory ? c : most;
    }
    return most;
}

/* Closes the largest clients while all together are over the limit. Whoever has no more than its
 * share of the limit stays: then the excess is another worker's, which sees to it when it wakes. */
static void relieve(struct server_worker *w)
{
    struct server *s = w->server;
    uint64_t most = w->settings.clients_memory_max;
    while (atomic_load_explicit(&s->clients_memory, memory_order_relaxed) > most) {
        uint32_t n = atomic_load_explicit(&s->clients_n, memory_order_relaxed);
        struct client *c = largest(w);
        if (c == NULL || c->memory <= most / (n > 0 ? n : 1)) {
            server_wake_all(s);
            return;
        }
        report_overfull(c);
        client_abort(c);
    }
}

void clients_flush(struct server_worker *w)
{
    struct list_link *link;
    while ((link = list_pop_front(&w->touched)) != NULL) {
        look_after(list_entry(link, struct client, touched));
    }
    relieve(w);
}

/* ---- Meetings and the end ---- */

void clients_reopen(struct server_worker *w)
{
    HK_ASSERT(w->in_flight == 0);
    memset(w->by_session, 0, w->server->node_config.sessions_max * sizeof(struct client *));
    list_each(link, &w->clients)
    {
        struct client *c = list_entry(link, struct client, link);
        int err = worker_session_open(w->node, &c->session);
        HK_ASSERT(err == HK_OK); /* as many as there were */
        w->by_session[c->session] = c;
    }
}

void clients_refuse(struct server_worker *w)
{
    static const struct answer gone = {.kind = ANSWER_ERROR, .number = HK_ERR_UNAVAILABLE};
    list_each(link, &w->clients)
    {
        struct client *c = list_entry(link, struct client, link);
        struct op op;
        const struct txn_request *txn;
        c->session = SESSION_NONE;
        while (!c->closing && resp_conn_next(c->conn, w->now_us, true, &op, &txn) == RESP_OP) {
            resp_conn_answer(c->conn, &gone, NULL, w->now_us);
        }
    }
}

static bool flush_all(struct server_worker *w)
{
    bool queued = false;
    list_each_safe(link, following, &w->clients)
    {
        struct client *c = list_entry(link, struct client, link);
        if (!flush_output(c)) {
            client_abort(c);
        } else {
            queued |= stream_queued(c->stream) > 0;
        }
    }
    return queued;
}

void clients_close(struct server_worker *w)
{
    uint64_t until_us = clock_boot_us() + CLIENT_LINGER_US;
    while (flush_all(w) && clock_boot_us() < until_us) {
        (void)loop_poll(w->loop, CLOSE_POLL_US);
    }
    list_each_safe(link, following, &w->clients)
    {
        client_abort(list_entry(link, struct client, link));
    }
}

void clients_deinit(struct server_worker *w)
{
    struct newcomer *newcomer = take_inbox(w);
    while (newcomer != NULL) {
        struct newcomer *next = newcomer->next;
        (void)close(newcomer->fd);
        free(newcomer);
        newcomer = next;
    }
    free(w->by_session);
}
