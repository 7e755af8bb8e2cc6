#include "server/server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <sodium.h>

#include "base/clock.h"
#include "server/internal.h"
#include "server/state_file.h"

#define ERROR_BYTES 1024u
#define FILES_SPARE 128u /* descriptors beyond those of clients: listeners, peers, log, ... */

/* Why the node cannot start: to who asked for it, and in the log. Without a place to put it that is
 * standard error, unless the log goes there. */
static void complain(const struct server *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void complain(const struct server *s, const char *format, ...)
{
    char text[ERROR_BYTES + 256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (s->options.error != NULL) {
        (void)snprintf(s->options.error, s->options.error_bytes, "%s", text);
    } else if (s->log == NULL || s->config.log_file[0] != '\0') {
        fprintf(stderr, "horkos: %s\n", text);
    }
    if (s->log != NULL && (s->options.error == NULL || s->config.log_file[0] != '\0')) {
        log_write(s->log, LOG_ERROR, "%s", text);
    }
}

/* ---- Start: each step says itself what is wrong ---- */

/* SIGTERM and its like are read from a descriptor by the main thread; no thread is interrupted. */
static bool take_signals(struct server *s)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)signal(SIGPIPE, SIG_IGN);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) == 0) {
        s->signals_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    if (s->signals_fd < 0) {
        complain(s, "cannot take signals: %s", strerror(errno));
        return false;
    }
    return true;
}

/* The node's threads take no signal: handlers run on the threads of whoever set them. What a thread
 * does to itself is not blocked, so that crashes are seen where they happen. */
static void block_signals(sigset_t *before_out)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    sigset_t set;
    (void)sigfillset(&set);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        (void)sigdelset(&set, own[i]);
    }
    (void)pthread_sigmask(SIG_BLOCK, &set, before_out);
}

/* A client is a descriptor; with fewer than configured the limit of clients is lowered. */
static void raise_files(struct server *s)
{
    struct rlimit limit;
    uint64_t wanted = (uint64_t)s->config.clients_max + FILES_SPARE +
                      (uint64_t)nodeset_count(s->config.nodes) * s->config.workers * 2u;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
        return;
    }
    struct rlimit raised = {.rlim_cur = wanted,
                            .rlim_max = limit.rlim_max > wanted ? limit.rlim_max : wanted};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
        return;
    }
    raised = (struct rlimit){.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    (void)setrlimit(RLIMIT_NOFILE, &raised);
    uint64_t over = wanted - raised.rlim_cur;
    s->config.clients_max =
        over < s->config.clients_max ? s->config.clients_max - (uint32_t)over : 1;
    log_write(s->log, LOG_WARN,
              "only %llu files may be open (ulimit -n), so at most %u clients are taken; raise the "
              "limit to %llu for maxclients as configured",
              (unsigned long long)raised.rlim_cur, s->config.clients_max,
              (unsigned long long)wanted);
}

static bool open_log(struct server *s)
{
    const struct config *c = &s->config;
    if (log_open(c->log_file, c->log_level, &s->log) != HK_OK) {
        complain(s, "cannot open the log file %s: %s; name another one in [node] log_file",
                 c->log_file, strerror(errno));
        return false;
    }
    return true;
}

static bool take_state(struct server *s)
{
    const char *path = s->config.state_file;
    int err = state_file_lock(path, &s->state_lock_fd);
    if (err == HK_ERR_FULL) {
        complain(s, "another process runs node %u: it holds %s.lock; stop it first", s->config.id,
                 path);
        return false;
    }
    if (err != HK_OK) {
        complain(s, "cannot lock %s.lock: %s; make its folder, or name another [node] state_file",
                 path, strerror(errno));
        return false;
    }
    err = state_file_read(path, &s->kept_generation, &s->kept_epoch);
    if (err == HK_ERR_CORRUPT) {
        complain(s,
                 "the state file %s makes no sense. It keeps this node from founding a second "
                 "cluster, so it is not ignored: if the cluster's other nodes are up, or if all "
                 "its data may be given up, remove the file and start the node again",
                 path);
        return false;
    }
    if (err != HK_OK) {
        complain(s, "cannot read the state file %s: %s", path, strerror(errno));
        return false;
    }
    return true;
}

static bool make_node(struct server *s)
{
    char error[ERROR_BYTES];
    const char *why = server_setup_node(s, error, sizeof error);
    if (why != NULL) {
        complain(s, "%s%s%s", s->config.path, s->config.path[0] != '\0' ? ": " : "", why);
        return false;
    }
    server_setup_env(s);
    int err = node_create(&s->node_config, &s->env, clock_boot_us(), &s->node);
    if (err != HK_OK) {
        complain(s, "cannot make the node: %s; lower keys_expected or the number of workers",
                 hk_err_text(err));
        return false;
    }
    return true;
}

static bool make_shared(struct server *s)
{
    uint8_t id[RUN_ID_BYTES / 2];
    uint64_t random;
    randombytes_buf(id, sizeof id);
    randombytes_buf(&random, sizeof random);
    (void)sodium_bin2hex(s->run_id, sizeof s->run_id, id, sizeof id);
    if (registry_create(&s->registry) != HK_OK ||
        slowlog_create(s->config.slowlog_max, &s->slowlog) != HK_OK ||
        (s->places = places_create(s->config.id, random)) == NULL) {
        complain(s, "no memory");
        return false;
    }
    s->live = s->config;
    server_setup_apply(s);
    return true;
}

/* ---- Threads ---- */

static bool make_workers(struct server *s)
{
    s->workers = calloc(s->workers_n, sizeof *s->workers);
    if (s->workers == NULL || pthread_barrier_init(&s->meet, NULL, s->workers_n) != 0) {
        complain(s, "no memory for %u workers", s->workers_n);
        return false;
    }
    for (uint32_t i = 0; i < s->workers_n; i++) {
        struct server_worker *w = &s->workers[i];
        uint64_t seed;
        w->server = s;
        w->index = i;
        randombytes_buf(&seed, sizeof seed);
        random_init(&w->random, seed);
        (void)pthread_mutex_init(&w->inbox_lock, NULL);
        server_host_init(w);
        if (!clients_init(w)) {
            complain(s, "no memory for %u clients", s->config.clients_max);
            return false;
        }
    }
    if (s->options.locals && locals_create(s) != HK_OK) {
        complain(s, "no memory for sessions");
        return false;
    }
    return true;
}

enum server_stage server_await(struct server *s, enum server_stage stage)
{
    (void)pthread_mutex_lock(&s->stage_lock);
    while (s->stage <= stage) {
        (void)pthread_cond_wait(&s->stage_changed, &s->stage_lock);
    }
    enum server_stage now = s->stage;
    (void)pthread_mutex_unlock(&s->stage_lock);
    return now;
}

static void set_stage(struct server *s, enum server_stage stage)
{
    (void)pthread_mutex_lock(&s->stage_lock);
    s->stage = stage;
    (void)pthread_cond_broadcast(&s->stage_changed);
    (void)pthread_mutex_unlock(&s->stage_lock);
}

static bool create_threads(struct server *s)
{
    for (; s->threads_n < s->workers_n; s->threads_n++) {
        struct server_worker *w = &s->workers[s->threads_n];
        int err = pthread_create(&w->thread, NULL, server_worker_main, w);
        if (err != 0) {
            complain(s, "cannot start thread %u of %u: %s; lower [node] workers", s->threads_n + 1,
                     s->workers_n, strerror(err));
            return false;
        }
    }
    return true;
}

static bool start_threads(struct server *s)
{
    bool all = create_threads(s);
    /* Loops and ports are there, or an error. */
    (void)pthread_mutex_lock(&s->stage_lock);
    while (s->threads_up < s->threads_n) {
        (void)pthread_cond_wait(&s->stage_changed, &s->stage_lock);
    }
    (void)pthread_mutex_unlock(&s->stage_lock);
    if (!all) {
        return false;
    }
    for (uint32_t i = 0; i < s->workers_n; i++) {
        const struct server_worker *w = &s->workers[i];
        if (w->start_error != HK_OK) {
            complain(s, "cannot make the sockets' loop of worker %u: %s%s%s; try [node] io = epoll",
                     i, hk_err_text(w->start_error), w->start_errno != 0 ? ": " : "",
                     w->start_errno != 0 ? strerror(w->start_errno) : "");
            return false;
        }
    }
    return true;
}

static bool open_gate(struct server *s)
{
    struct gate_config *config = calloc(1, sizeof *config);
    char error[ERROR_BYTES] = "";
    int err = HK_ERR_NOMEM;
    if (config != NULL) {
        server_setup_gate(s, config);
        /* Callbacks wait for the lock until server.gate is set. */
        pthread_mutex_lock(&s->gate_lock);
        err = gate_start(config, error, sizeof error, &s->gate);
        pthread_mutex_unlock(&s->gate_lock);
        sodium_memzero(config, sizeof *config);
        free(config);
    }
    if (err != HK_OK) {
        complain(s, "%s", error[0] != '\0' ? error : hk_err_text(err));
    }
    return err == HK_OK;
}

static void tell_started(const struct server *s)
{
    for (uint32_t i = 0; i < s->config.listens_n; i++) {
        log_write(s->log, LOG_INFO, "clients are taken at %s", s->config.listens[i].text);
    }
    if (nodeset_count(s->config.nodes) > 1) {
        log_write(s->log, LOG_INFO, "peers are taken at %s", s->config.peer_listen.text);
    }
    if (s->options.ready_fd >= 0) {
        ssize_t n;
        do {
            n = write(s->options.ready_fd, "ready\n", 6);
        } while (n < 0 && errno == EINTR);
    }
}

static bool start(struct server *s)
{
    if (!open_log(s)) {
        return false;
    }
    if (sodium_init() < 0) {
        complain(s, "cannot start libsodium: no source of random numbers");
        return false;
    }
    log_write(s->log, LOG_INFO, "horkos %s, node %u of %u, process %ld, %u worker%s",
              HORKOS_VERSION, s->config.id, nodeset_count(s->config.nodes), (long)getpid(),
              s->workers_n, s->workers_n == 1 ? "" : "s");
    s->events_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->events_fd < 0) {
        complain(s, "cannot make an eventfd: %s", strerror(errno));
        return false;
    }
    if (s->config.listens_n > 0) {
        raise_files(s);
    }
    if ((!s->options.locals && !take_signals(s)) || !take_state(s) || !make_node(s) ||
        !make_shared(s) || !make_workers(s)) {
        return false;
    }
    sigset_t before;
    block_signals(&before);
    bool ready = start_threads(s) && open_gate(s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    set_stage(s, ready ? SERVER_GOES : SERVER_FAILED);
    if (ready) {
        tell_started(s);
    }
    return ready;
}

/* ---- The main thread, while the others serve ---- */

static void forced(struct server *s)
{
    log_write(s->log, LOG_WARN, "told to stop twice: stops at once");
    _exit(2);
}

static void on_signal(struct server *s, uint32_t number)
{
    if (number == SIGHUP) {
        log_reopen(s->log);
        log_write(s->log, LOG_INFO, "log opened anew (SIGHUP)");
        return;
    }
    if (atomic_fetch_add(&s->stop_signals, 1) > 0) {
        forced(s);
    }
    log_write(s->log, LOG_INFO, "told to stop by %s", number == SIGINT ? "SIGINT" : "SIGTERM");
    server_stop(s, false);
}

static void take_events(struct server *s)
{
    struct signalfd_siginfo info;
    eventfd_t n;
    while (s->signals_fd >= 0 && read(s->signals_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        on_signal(s, info.ssi_signo);
    }
    (void)eventfd_read(s->events_fd, &n);
}

static void supervise(struct server *s)
{
    struct pollfd fds[2] = {{.fd = s->signals_fd, .events = POLLIN},
                            {.fd = s->events_fd, .events = POLLIN}};
    while (atomic_load_explicit(&s->workers_done, memory_order_acquire) < s->workers_n) {
        (void)poll(fds, 2, -1);
        take_events(s);
    }
}

/* ---- The end ---- */

static void stop_threads(struct server *s)
{
    if (s->gate != NULL) {
        gate_stop(s->gate);
        s->gate = NULL;
    }
    set_stage(s, SERVER_ENDING); /* loops and ports may go */
    for (uint32_t i = 0; i < s->threads_n; i++) {
        (void)pthread_join(s->workers[i].thread, NULL);
    }
}

static void release(struct server *s)
{
    if (s->node != NULL) {
        node_destroy(s->node);
    }
    if (s->locals != NULL) {
        locals_release(s->locals);
    }
    for (uint32_t i = 0; s->workers != NULL && i < s->workers_n; i++) {
        free(s->workers[i].local_by_session);
        if (s->workers[i].server != NULL) {
            clients_deinit(&s->workers[i]);
            (void)pthread_mutex_destroy(&s->workers[i].inbox_lock);
        }
    }
    free(s->workers);
    if (s->registry != NULL) {
        registry_destroy(s->registry);
    }
    if (s->slowlog != NULL) {
        slowlog_destroy(s->slowlog);
    }
    places_destroy(s->places);
    const int fds[] = {s->signals_fd, s->events_fd, s->state_lock_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
    if (s->log != NULL) {
        log_close(s->log);
    }
    sodium_memzero(&s->config, sizeof s->config);
    sodium_memzero(&s->live, sizeof s->live);
    free(s);
}

static struct server *create(const struct config *config, const struct server_options *options)
{
    struct server *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    s->config = *config;
    s->options = *options;
    s->workers_n = config->workers;
    s->signals_fd = s->events_fd = s->state_lock_fd = -1;
    s->started_us = clock_boot_us();
    s->started_wall_ms = clock_wall_ms();
    s->leave_until_us = UINT64_MAX;
    s->hand_look_us = UINT64_MAX;
    s->drain_until_us = UINT64_MAX;
    (void)pthread_rwlock_init(&s->config_lock, NULL);
    (void)pthread_mutex_init(&s->gate_lock, NULL);
    (void)pthread_mutex_init(&s->stage_lock, NULL);
    (void)pthread_cond_init(&s->stage_changed, NULL);
    return s;
}

int server_run(const struct config *config, const struct server_options *options)
{
    struct server *s = create(config, options);
    if (s == NULL) {
        fprintf(stderr, "horkos: no memory\n");
        return 1;
    }
    bool good = start(s);
    if (good) {
        supervise(s);
    }
    stop_threads(s);
    if (good) {
        log_write(s->log, LOG_INFO, "stopped");
        good = !atomic_load(&s->broken);
    }
    release(s);
    return good ? 0 : 1;
}

/* ---- A node inside another program ---- */

int server_open(const struct config *config, const struct server_options *options,
                struct server **server_out)
{
    struct server *s = create(config, options);
    if (s == NULL) {
        return HK_ERR_NOMEM;
    }
    if (!start(s)) {
        stop_threads(s);
        release(s);
        return HK_ERR_IO;
    }
    *server_out = s;
    return HK_OK;
}

void server_close(struct server *s, bool now)
{
    server_stop(s, now);
    supervise(s);
    stop_threads(s);
    log_write(s->log, LOG_INFO, "stopped");
    release(s);
}

struct locals *server_locals(struct server *s)
{
    return s->locals;
}
