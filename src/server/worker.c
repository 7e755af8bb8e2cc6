/* A worker's thread. A round: wait for sockets (everything that was queued leaves in the same
 * system call), take the time, poll the node, hand its answers to the streams. */
#include "server/internal.h"

#include <errno.h>

#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "base/assert.h"
#include "base/clock.h"

#define STATUS_US 1000u /* how old a worker's idea of the view may be while it has work */
#define STATUS_TOLD_US 10000u

void server_wake_all(struct server *s)
{
    for (uint32_t i = 0; i < s->workers_n; i++) {
        loop_wake(s->workers[i].loop);
    }
}

/* ---- What a worker knows of the view ---- */

static void read_status(struct server_worker *w)
{
    node_status(w->server->node, w->now_us, &w->status);
    w->status_us = w->now_us;
    w->status_fresh = true;
    if (w->status.view.epoch != w->epoch_seen) {
        w->epoch_seen = w->status.view.epoch;
        port_members(w->port, w->status.view.live);
    }
}

const struct node_status *server_status(struct server_worker *w)
{
    if (!w->status_fresh) {
        read_status(w);
    }
    return &w->status;
}

/* ---- Making and unmaking, on the thread itself: loops belong to the thread that made them ---- */

static void connection_lost(void *context, uint8_t node, uint8_t remote_worker,
                            uint8_t local_worker, const char *why)
{
    struct server_worker *w = context;
    struct server *s = w->server;
    log_write(s->log, LOG_INFO, "the connection with node %u worker %u is lost: %s", node,
              remote_worker, why);
    gate_lost(s->gate, node, remote_worker, local_worker);
}

static void no_shared_memory(void *context, uint8_t node, uint8_t remote_worker, const char *why)
{
    struct server_worker *w = context;
    log_write(
        w->server->log, LOG_WARN,
        "no shared memory with node %u worker %u, so over TCP: %s; set peer_transport = tcp if "
        "that is as it should be",
        node, remote_worker, why);
}

static uint64_t congested_at(const struct config *c)
{
    uint64_t part = c->peer_queue_max / 16u;
    return part > c->peer_window ? part : c->peer_window;
}

static int open_worker(struct server_worker *w)
{
    const struct config *c = &w->server->config;
    int err = loop_create(c->io, &w->loop);
    if (err != HK_OK) {
        w->start_errno = errno;
        return err;
    }
    struct port_config port = {
        .self = c->id,
        .worker = (uint8_t)w->index,
        .window = c->peer_window,
        .queue_max = c->peer_queue_max,
        .congested_at = congested_at(c),
        .lost = connection_lost,
        .fallback = no_shared_memory,
        .context = w,
    };
    return port_create(&port, w->loop, &w->port);
}

static void close_worker(struct server_worker *w)
{
    if (w->port != NULL) {
        port_destroy(w->port);
    }
    if (w->loop != NULL) {
        loop_destroy(w->loop);
    }
}

/* ---- A round ---- */

static void take_settings(struct server_worker *w)
{
    /* acquire: pairs with the release in server_setup_apply. */
    uint32_t version = atomic_load_explicit(&w->server->config_version, memory_order_acquire);
    if (version != w->settings_version) {
        w->settings_version = version;
        server_settings_read(w->server, &w->settings);
    }
}

static void may_update(struct server_worker *w, enum server_phase phase)
{
    w->updates = phase != SERVER_DRAINING && !port_congested(w->port, w->status.view.live);
    w->handed_bytes = 0;
    if (w->updates) {
        list_append(&w->runnable, &w->held);
    }
}

/* A node without a free call asks nobody; a call's end will come as an event. */
static bool may_ask(const struct server_worker *w)
{
    return (!list_empty(&w->runnable) || locals_waiting(w)) && w->asked > 0;
}

/* Polls until nobody has anything to do that can be done now. The time is read again only if a
 * session of this process has asked for something since; from sockets nothing has arrived. Returns
 * the polls' flags; more_out: a poll left something undone. */
static uint32_t poll_node(struct server_worker *w, bool *more_out)
{
    uint32_t flags = 0;
    bool full = false;
    for (uint32_t i = 0; i < POLLS_MAX && flags == 0 && (i == 0 || full || may_ask(w)); i++) {
        w->asked = 0;
        if (i > 0 && locals_look(w)) {
            w->now_us = clock_boot_us();
        }
        struct poll_result result = worker_poll(w->node, w->now_us, POLL_EVENTS);
        flags |= result.flags;
        full = result.events >= POLL_EVENTS;
        if (result.events > 0) {
            w->busy_us = w->now_us;
        }
    }
    *more_out = full;
    return flags;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t time_to_wait(const struct server_worker *w)
{
    uint64_t due = sooner(worker_deadline(w->node), clients_deadline(w));
    if (w->index == 0) {
        due = sooner(due, w->server->leave_until_us);
        due = sooner(due, w->server->hand_look_us);
        if (w->now_us < w->server->drain_until_us) {
            due = sooner(due, w->server->drain_until_us);
        }
        /* The log shall hear of a change soon, not only with the next heartbeat. */
        due = w->status_fresh ? due : sooner(due, w->now_us + STATUS_TOLD_US);
    }
    if (due == UINT64_MAX) {
        return UINT64_MAX;
    }
    return due > w->now_us ? due - w->now_us : 0;
}

static void wait_for_work(struct server_worker *w, bool more)
{
    uint64_t wait_us = more ? 0 : time_to_wait(w);
    if (w->now_us - w->busy_us < w->settings.spin_us) {
        wait_us = 0;
    }
    bool asleep = wait_us > 0 && worker_sleep(w->node);
    (void)loop_poll(w->loop, asleep ? wait_us : 0);
    if (asleep) {
        worker_awake(w->node);
    }
}

/* False: the thread shall end. */
static bool serve_round(struct server_worker *w)
{
    struct server *s = w->server;
    /* acquire: pairs with the release of whoever called for a meeting. */
    if (atomic_load_explicit(&s->meeting, memory_order_acquire)) {
        server_meet(w);
    }
    enum server_phase phase =
        (enum server_phase)atomic_load_explicit(&s->phase, memory_order_acquire);
    if (phase == SERVER_STOPPING) {
        return false;
    }
    take_settings(w);
    clients_adopt(w);
    locals_adopt(w);
    port_adopt(w->port);
    (void)locals_look(w);
    w->now_us = clock_boot_us();
    w->status_fresh = false;
    if (w->now_us - w->status_us >= STATUS_US) {
        read_status(w);
    }
    may_update(w, phase);
    clients_due(w);
    bool more = false;
    uint32_t flags = poll_node(w, &more);
    list_append(&w->runnable, &w->later);
    locals_flush(w);
    clients_flush(w); /* who has sent much may go on */
    more = more || may_ask(w) || w->handed_bytes >= ROUND_BYTES_MAX;
    if (phase == SERVER_DRAINING) {
        /* release: pairs with the acquire in drained (control.c). */
        atomic_store_explicit(&w->in_flight_told, w->in_flight + worker_under_way(w->node) + 1,
                              memory_order_release);
    }
    if (w->index == 0) {
        control_round(w, flags);
    }
    port_flush(w->port);
    wait_for_work(w, more);
    return true;
}

static void tell_supervisor(struct server *s)
{
    (void)eventfd_write(s->events_fd, 1);
}

/* ---- The thread ---- */

void *server_worker_main(void *worker)
{
    struct server_worker *w = worker;
    struct server *s = w->server;
    char name[16] = "horkos/";
    name[7] = (char)('0' + w->index / 10);
    name[8] = (char)('0' + w->index % 10);
    (void)prctl(PR_SET_NAME, name, 0, 0, 0);
    w->start_error = open_worker(w);
    (void)pthread_mutex_lock(&s->stage_lock);
    s->threads_up++;
    (void)pthread_cond_broadcast(&s->stage_changed);
    (void)pthread_mutex_unlock(&s->stage_lock);
    if (server_await(s, SERVER_STARTING) == SERVER_GOES) {
        w->node = node_worker(s->node, w->index);
        while (serve_round(w)) {
        }
        server_end_node(w);
        clients_close(w);
        atomic_fetch_add_explicit(&s->workers_done, 1, memory_order_release);
        tell_supervisor(s);
        (void)server_await(s, SERVER_GOES);
    }
    close_worker(w);
    return NULL;
}
