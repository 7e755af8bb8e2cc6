#include "net/gate.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "net/gate_internal.h"

#define EVENTS 64

static void wake(struct gate *gate)
{
    HK_ASSERT(eventfd_write(gate->wake_fd, 1) == 0);
}

static void handle(struct gate *gate, const struct epoll_event *event, uint64_t now_us)
{
    eventfd_t ignored;
    switch (*(const enum gate_source *)event->data.ptr) {
    case SOURCE_WAKE:
        (void)eventfd_read(gate->wake_fd, &ignored);
        gate_calls_lost(gate, now_us);
        break;
    case SOURCE_LISTENER:
        gate_accept(gate, event->data.ptr, now_us);
        break;
    case SOURCE_SESSION:
        gate_session_event(gate, event->data.ptr, event->events, now_us);
        break;
    }
}

/* Listeners last: a newcomer may take a session's place, and by then no event is left that is about
 * one. Otherwise a session ends only in its own event. */
static void handle_all(struct gate *gate, const struct epoll_event *events, int n, uint64_t now_us)
{
    const struct epoll_event *listening[GATE_LISTENERS_MAX];
    uint32_t listening_n = 0;
    for (int i = 0; i < n; i++) {
        if (*(const enum gate_source *)events[i].data.ptr == SOURCE_LISTENER) {
            listening[listening_n++] = &events[i];
        } else {
            handle(gate, &events[i], now_us);
        }
    }
    for (uint32_t i = 0; i < listening_n; i++) {
        handle(gate, listening[i], now_us);
    }
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What time alone brings about; returns when there is more. */
static uint64_t tick(struct gate *gate, uint64_t now_us)
{
    gate_resume(gate, now_us);
    gate_sessions_expire(gate, now_us);
    uint64_t next_us = gate_calls_begin(gate, now_us);
    gate_summarize(gate, now_us);
    /* Only now, as the calls that began have deadlines, too. */
    next_us = sooner(next_us, gate_sessions_deadline(gate));
    return sooner(next_us, sooner(gate->summary_due_us, gate->resume_us));
}

static int wait_ms(uint64_t now_us, uint64_t next_us)
{
    if (next_us == UINT64_MAX) {
        return -1;
    }
    uint64_t ms = next_us <= now_us ? 0 : (next_us - now_us + 999u) / 1000u;
    return ms > 60000u ? 60000 : (int)ms;
}

static void *run(void *context)
{
    struct gate *gate = context;
    struct epoll_event events[EVENTS];
    while (!atomic_load_explicit(&gate->stop, memory_order_relaxed)) {
        if (atomic_load_explicit(&gate->refuse_clients, memory_order_relaxed)) {
            gate_unlisten(gate, true);
        }
        uint64_t now_us = clock_boot_us();
        uint64_t next_us = tick(gate, now_us);
        int n = epoll_wait(gate->epoll_fd, events, EVENTS, wait_ms(now_us, next_us));
        HK_ASSERT(n >= 0 || errno == EINTR);
        now_us = clock_boot_us();
        handle_all(gate, events, n, now_us);
    }
    return NULL;
}

static void end_sessions(struct gate *gate, struct list_link *sessions)
{
    list_each_safe(link, following, sessions)
    {
        gate_session_destroy(gate, list_entry(link, struct gate_session, link));
    }
}

static void destroy(struct gate *gate)
{
    end_sessions(gate, &gate->callers);
    end_sessions(gate, &gate->strangers);
    gate_unlisten(gate, false);
    gate_calls_deinit(gate);
    if (gate->wake_fd >= 0) {
        (void)close(gate->wake_fd);
    }
    if (gate->epoll_fd >= 0) {
        (void)close(gate->epoll_fd);
    }
    sodium_memzero(gate, sizeof *gate);
    free(gate);
}

static bool config_valid(const struct gate_config *config)
{
    bool valid = config->self.node < NODES_MAX && nodeset_has(config->nodes, config->self.node) &&
                 config->self.workers >= 1 && config->self.workers <= HANDSHAKE_WORKERS_MAX &&
                 config->backoff_min_us > 0 && config->backoff_min_us <= config->backoff_max_us &&
                 config->handshake_us > 0 && config->handshakes_max > 0 && config->client != NULL &&
                 config->peer != NULL && config->report != NULL;
    for (uint8_t node = 0; node < NODES_MAX; node++) {
        if (nodeset_has(config->nodes, node) && node != config->self.node) {
            valid = valid && gate_address_invalid(config->peers[node].text) == NULL;
        }
    }
    return valid;
}

/* The gate takes no signals: they are the owner's. */
static int start_thread(struct gate *gate)
{
    sigset_t all, before;
    HK_ASSERT(sigfillset(&all) == 0);
    HK_ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    int error = pthread_create(&gate->thread, NULL, run, gate);
    HK_ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return error;
}

static int prepare(struct gate *gate, char *error_out, uint32_t size)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &gate->wake_source};
    gate->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    gate->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (gate->epoll_fd < 0 || gate->wake_fd < 0 ||
        epoll_ctl(gate->epoll_fd, EPOLL_CTL_ADD, gate->wake_fd, &event) != 0) {
        (void)snprintf(error_out, size, "cannot wait for connections: %s", strerror(errno));
        return HK_ERR_IO;
    }
    int error = gate_calls_init(gate);
    if (error != HK_OK) {
        (void)snprintf(error_out, size, "%s", hk_err_text(error));
        return error;
    }
    error = gate_listen(gate, error_out, size);
    if (error != HK_OK) {
        return error;
    }
    gate->config.client_listen = NULL; /* the caller's, and not needed any more */
    error = start_thread(gate);
    if (error != 0) {
        (void)snprintf(error_out, size, "cannot start a thread: %s", strerror(error));
        return HK_ERR_IO;
    }
    return HK_OK;
}

int gate_start(const struct gate_config *config, char *error_out, uint32_t size,
               struct gate **gate_out)
{
    uint64_t seed;
    HK_ASSERT(config_valid(config));
    struct gate *gate = calloc(1, sizeof *gate);
    if (gate == NULL) {
        (void)snprintf(error_out, size, "no memory");
        return HK_ERR_NOMEM;
    }
    gate->config = *config;
    gate->epoll_fd = -1;
    gate->wake_fd = -1;
    gate->wake_source = SOURCE_WAKE;
    gate->resume_us = UINT64_MAX;
    gate->summary_due_us = UINT64_MAX;
    list_init(&gate->callers);
    list_init(&gate->strangers);
    randombytes_buf(&seed, sizeof seed);
    random_init(&gate->random, seed);
    int error = prepare(gate, error_out, size);
    if (error != HK_OK) {
        destroy(gate);
        return error;
    }
    *gate_out = gate;
    return HK_OK;
}

void gate_refuse_clients(struct gate *gate)
{
    atomic_store_explicit(&gate->refuse_clients, true, memory_order_relaxed);
    wake(gate);
}

void gate_stop(struct gate *gate)
{
    atomic_store_explicit(&gate->stop, true, memory_order_relaxed);
    wake(gate);
    HK_ASSERT(pthread_join(gate->thread, NULL) == 0);
    destroy(gate);
}

void gate_lost(struct gate *gate, uint8_t node, uint8_t remote_worker, uint8_t local_worker)
{
    HK_ASSERT(node < NODES_MAX && remote_worker < HANDSHAKE_WORKERS_MAX &&
              local_worker < HANDSHAKE_WORKERS_MAX);
    atomic_fetch_or_explicit(&gate->lost[node * HANDSHAKE_WORKERS_MAX + local_worker],
                             UINT64_C(1) << remote_worker, memory_order_relaxed);
    wake(gate);
}

static uint64_t read_count(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void gate_stats(const struct gate *gate, struct gate_stats *stats_out)
{
    stats_out->clients = read_count(&gate->count.clients);
    stats_out->peers = read_count(&gate->count.peers);
    stats_out->calls = read_count(&gate->count.calls);
    stats_out->calls_failed = read_count(&gate->count.calls_failed);
    for (uint32_t i = 0; i < HANDSHAKE_REFUSALS; i++) {
        stats_out->refused[i] = read_count(&gate->count.refused[i]);
    }
    stats_out->timed_out = read_count(&gate->count.timed_out);
    stats_out->crowded = read_count(&gate->count.crowded);
}
