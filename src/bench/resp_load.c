/* Threads of the RESP load, and what they are told to do. The caller's thread gives an order and
 * waits until every thread has carried it out. */
#include "bench/resp_load.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "bench/resp_internal.h"

#define SILENCE_NS 10000000000u /* a server that says nothing for so long is given up */
#define LOOK_US 100000u         /* how often a thread that waits for replies looks at the clock */
#define STEP_NS 2000000         /* how often the caller's thread looks */

/* ---- A thread ---- */

static void begin(struct resp_thread *t, enum resp_order order)
{
    const struct resp_load *load = t->load;
    const struct resp_load_config *c = &load->config;
    uint64_t now_ns = resp_now_ns();
    t->order = order;
    t->heard_ns = now_ns;
    if (order == RESP_FILL) {
        t->fill_next = c->keys.n * t->index / c->threads;
        t->fill_end = c->keys.n * (t->index + 1u) / c->threads;
    } else if (order == RESP_RUN) {
        memset(&t->run, 0, sizeof t->run);
        for (uint32_t i = 0; i < LOAD_KINDS; i++) {
            histogram_init(&t->run.latency_ns[i]);
        }
        if (c->rate > 0.0) {
            schedule_init(&t->schedule, c->rate / c->threads, c->even, now_ns, &t->random);
        }
    }
}

static bool is_done(const struct resp_thread *t)
{
    if (t->failed) {
        return true;
    }
    switch (t->order) {
    case RESP_FILL:
        return t->fill_next == t->fill_end && t->under_way == 0;
    case RESP_RUN:
        /* acquire: pairs with the release in resp_load_run; nothing is counted any more. */
        return atomic_load_explicit(&t->load->enough, memory_order_acquire) && t->under_way == 0;
    case RESP_REST:
    case RESP_END:
        break;
    }
    return true;
}

static uint64_t time_to_wait_us(const struct resp_thread *t)
{
    if (t->order == RESP_REST) {
        return UINT64_MAX;
    }
    if (t->order == RESP_FILL || t->load->config.rate == 0.0 || list_empty(&t->idle)) {
        return LOOK_US;
    }
    uint64_t now_ns = resp_now_ns(), due_ns = schedule_due_ns(&t->schedule);
    uint64_t wait_us = due_ns > now_ns ? (due_ns - now_ns) / 1000u : 0;
    return wait_us < LOOK_US ? wait_us : LOOK_US;
}

static void work(struct resp_thread *t)
{
    uint32_t seen = 0;
    while (t->order != RESP_END) {
        /* acquire: pairs with the release in give_order. */
        uint32_t number = atomic_load_explicit(&t->load->number, memory_order_acquire);
        if (number != seen) {
            seen = number;
            begin(t, (enum resp_order)atomic_load(&t->load->order));
        }
        if (!t->failed) {
            resp_clients_start(t);
        }
        if (t->under_way > 0 && resp_now_ns() - t->heard_ns > SILENCE_NS) {
            resp_fail(t, "no reply for 10 seconds");
        }
        if (t->order != RESP_END && is_done(t)) {
            t->order = RESP_REST;
            /* release: pairs with the acquire in all_done; what the order left is there. */
            atomic_store_explicit(&t->done, seen, memory_order_release);
        }
        if (t->order != RESP_END) {
            (void)loop_poll(t->loop, time_to_wait_us(t));
        }
    }
}

static void *thread_main(void *argument)
{
    struct resp_thread *t = argument;
    (void)prctl(PR_SET_TIMERSLACK, 1000u, 0, 0, 0);
    if (resp_clients_open(t) == HK_OK) {
        atomic_store_explicit(&t->done, 1, memory_order_release);
        work(t);
    } else {
        atomic_store_explicit(&t->done, UINT32_MAX, memory_order_release);
    }
    resp_clients_close(t);
    return NULL;
}

/* ---- Orders ---- */

static void nap(void)
{
    struct timespec step = {.tv_nsec = STEP_NS};
    (void)nanosleep(&step, NULL);
}

/* Whether all threads have done the order of this number; *failed_out: one that cannot go on. */
static bool all_done(const struct resp_load *load, uint32_t number,
                     const struct resp_thread **failed_out)
{
    bool all = true;
    *failed_out = NULL;
    for (uint32_t i = 0; i < load->config.threads; i++) {
        const struct resp_thread *t = &load->threads[i];
        uint32_t done = atomic_load_explicit(&t->done, memory_order_acquire);
        if (done < number) {
            all = false;
        } else if (t->failed) {
            *failed_out = t;
        }
    }
    return all;
}

static void wake_all(struct resp_load *load)
{
    for (uint32_t i = 0; i < load->config.threads; i++) {
        if (load->threads[i].loop != NULL) {
            loop_wake(load->threads[i].loop);
        }
    }
}

static uint32_t give_order(struct resp_load *load, enum resp_order order)
{
    atomic_store(&load->order, order);
    /* release: pairs with the acquire in work. */
    uint32_t number = atomic_fetch_add_explicit(&load->number, 1, memory_order_release) + 1;
    wake_all(load);
    return number;
}

static int wait_done(struct resp_load *load, uint32_t number, char *why, uint32_t size)
{
    const struct resp_load_config *c = &load->config;
    const struct resp_thread *failed = NULL;
    while (!all_done(load, number, &failed)) {
        nap();
        if (c->progress != NULL && atomic_load(&load->order) == RESP_FILL) {
            uint64_t filled = 0;
            for (uint32_t i = 0; i < c->threads; i++) {
                filled += atomic_load_explicit(&load->threads[i].filled, memory_order_relaxed);
            }
            c->progress(c->context, filled, c->keys.n);
        }
    }
    if (failed == NULL) {
        return HK_OK;
    }
    snprintf(why, size, "%s", failed->why);
    return HK_ERR_IO;
}

static void end_threads(struct resp_load *load)
{
    const struct resp_thread *failed = NULL;
    while (!all_done(load, 1, &failed)) {
        nap(); /* they still connect */
    }
    (void)give_order(load, RESP_END);
    for (uint32_t i = 0; i < load->config.threads; i++) {
        if (load->threads[i].started) {
            (void)pthread_join(load->threads[i].id, NULL);
        }
    }
}

static int start_threads(struct resp_load *load, char *why, uint32_t size)
{
    const struct resp_load_config *c = &load->config;
    for (uint32_t i = 0; i < c->threads; i++) {
        struct resp_thread *t = &load->threads[i];
        t->load = load;
        t->index = i;
        list_init(&t->idle);
        keys_init(&t->keys, &c->keys);
        random_init(&t->random, c->seed * 1000003u + i);
        t->started = pthread_create(&t->id, NULL, thread_main, t) == 0;
        if (!t->started) {
            /* The others are never told to begin. */
            snprintf(why, size, "no thread: %s", strerror(errno));
            load->config.threads = i;
            return HK_ERR_NOMEM;
        }
    }
    return wait_done(load, 1, why, size);
}

int resp_load_create(const struct resp_load_config *config, char *why_out, uint32_t size,
                     struct resp_load **load_out)
{
    HK_ASSERT(config->servers_n > 0 && config->threads > 0 && config->mix.rmws == 0.0);
    HK_ASSERT(config->connections >= config->threads && config->pipeline > 0);
    struct resp_load *load = calloc(1, sizeof *load);
    if (load == NULL) {
        snprintf(why_out, size, "out of memory");
        return HK_ERR_NOMEM;
    }
    load->config = *config;
    atomic_init(&load->number, 1);
    int err = resp_template_make(load);
    if (err == HK_OK) {
        err = start_threads(load, why_out, size);
    } else {
        snprintf(why_out, size, "out of memory");
        load->config.threads = 0;
    }
    if (err == HK_OK && config->fill) {
        err = wait_done(load, give_order(load, RESP_FILL), why_out, size);
    }
    if (err != HK_OK) {
        resp_load_destroy(load);
        return err;
    }
    *load_out = load;
    return HK_OK;
}

void resp_load_destroy(struct resp_load *load)
{
    if (load != NULL) {
        end_threads(load);
        free(load->set);
        free(load);
    }
}

/* ---- CPU time ---- */

static double client_cpu(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* User and system time of a process, in clock ticks. */
static bool process_ticks(uint32_t pid, uint64_t *ticks_out)
{
    char path[64], line[1024];
    uint64_t user = 0, kernel = 0;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool read = fgets(line, sizeof line, file) != NULL;
    (void)fclose(file);
    const char *rest = read ? strrchr(line, ')') : NULL;
    if (rest == NULL ||
        sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user,
               &kernel) != 2) {
        return false;
    }
    *ticks_out = user + kernel;
    return true;
}

static int servers_cpu(const struct resp_load *load, double *seconds_out, char *why, uint32_t size)
{
    const struct resp_load_config *c = &load->config;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->pids_n; i++) {
        uint64_t ticks = 0;
        if (!process_ticks(c->pids[i], &ticks)) {
            snprintf(why, size, "there is no process %u", c->pids[i]);
            return HK_ERR_IO;
        }
        sum += ticks;
    }
    *seconds_out = c->pids_n > 0 ? (double)sum / (double)sysconf(_SC_CLK_TCK) : (double)NAN;
    return HK_OK;
}

/* ---- A run ---- */

/* False: a thread has failed. */
static bool pass_time(const struct resp_load *load, uint32_t number, double seconds)
{
    uint64_t end_ns = resp_now_ns() + (uint64_t)(seconds * 1e9);
    while (resp_now_ns() < end_ns) {
        const struct resp_thread *failed = NULL;
        (void)all_done(load, number, &failed);
        if (failed != NULL) {
            return false;
        }
        uint64_t now_ns = resp_now_ns();
        uint64_t left_ns = end_ns > now_ns ? end_ns - now_ns : 0;
        struct timespec step = {.tv_nsec = left_ns < 20000000u ? (long)left_ns : 20000000};
        (void)nanosleep(&step, NULL);
    }
    return true;
}

static void add_up(struct resp_load *load, struct resp_run *run)
{
    for (uint32_t i = 0; i < LOAD_KINDS; i++) {
        histogram_init(&run->latency_ns[i]);
    }
    for (uint32_t i = 0; i < load->config.threads; i++) {
        const struct resp_thread *t = &load->threads[i];
        for (uint32_t kind = 0; kind < LOAD_KINDS; kind++) {
            run->ops[kind] += t->run.ops[kind];
            histogram_merge(&run->latency_ns[kind], &t->run.latency_ns[kind]);
        }
        run->failed += t->run.failed;
        run->missing += t->run.missing;
        if (load->error[0] == '\0') {
            memcpy(load->error, t->error, sizeof load->error);
        }
    }
}

int resp_load_run(struct resp_load *load, double warmup_seconds, double seconds,
                  struct resp_run *run_out, char *why_out, uint32_t size)
{
    double servers_before = 0.0, servers_after = 0.0;
    memset(run_out, 0, sizeof *run_out);
    atomic_store(&load->measuring, false);
    atomic_store(&load->enough, false);
    uint32_t number = give_order(load, RESP_RUN);
    bool goes = pass_time(load, number, warmup_seconds);
    int err = servers_cpu(load, &servers_before, why_out, size);
    double client_before = client_cpu();
    uint64_t begin_ns = resp_now_ns();
    atomic_store(&load->measuring, true);
    goes = goes && err == HK_OK && pass_time(load, number, seconds);
    atomic_store(&load->measuring, false);
    run_out->seconds = (double)(resp_now_ns() - begin_ns) / 1e9;
    run_out->client_cpu_seconds = client_cpu() - client_before;
    if (goes) {
        err = servers_cpu(load, &servers_after, why_out, size);
    }
    run_out->servers_cpu_seconds = servers_after - servers_before;
    /* release: pairs with the acquire in is_done. */
    atomic_store_explicit(&load->enough, true, memory_order_release);
    wake_all(load);
    int waited = wait_done(load, number, why_out, size);
    if (waited == HK_OK) {
        add_up(load, run_out);
    }
    return err != HK_OK ? err : waited;
}

const char *resp_load_error(const struct resp_load *load)
{
    return load->error;
}
