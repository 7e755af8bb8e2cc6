#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/assert.h"
#include "bench/internal.h"

/* What crew_work does at a time. */
#define WORK_NS 1000000u
#define SLEEP_NS 10000000u
/* Operations that do not end after a drain of this length never will. */
#define DRAIN_NS UINT64_C(20000000000)

static enum bench_phase phase_of(const struct bench_cluster *c)
{
    return (enum bench_phase)atomic_load_explicit(&c->phase, memory_order_acquire);
}

/* ---- A thread ---- */

static void wait_while_paused(struct bench_cluster *c)
{
    pthread_mutex_lock(&c->mutex);
    c->waiting++;
    pthread_cond_signal(&c->waits);
    while (phase_of(c) == PHASE_PAUSED) {
        pthread_cond_wait(&c->resumed, &c->mutex);
    }
    c->waiting--;
    pthread_mutex_unlock(&c->mutex);
}

static void serve(struct bench_worker *w)
{
    struct bench_cluster *c = w->cluster;
    for (;;) {
        enum bench_phase phase = phase_of(c);
        if (phase == PHASE_STOP) {
            return;
        }
        if (phase == PHASE_PAUSED) {
            wait_while_paused(c);
        } else if (!drive_round(w)) {
            drive_idle(w);
        }
    }
}

/* Between two barriers the caller's thread makes or destroys what no worker may touch meanwhile. */
static void *thread_main(void *worker)
{
    struct bench_worker *w = worker;
    struct bench_cluster *c = w->cluster;
    (void)prctl(PR_SET_NAME, "bench", 0, 0, 0);
    pthread_mutex_lock(&c->mutex); /* the barrier exists */
    pthread_mutex_unlock(&c->mutex);
    w->error = links_open(w);
    (void)pthread_barrier_wait(&c->barrier); /* crew_start */
    (void)pthread_barrier_wait(&c->barrier); /* crew_open, or crew_halt */
    if (phase_of(c) != PHASE_STOP) {
        w->error = drive_open(w);
        (void)pthread_barrier_wait(&c->barrier);
        serve(w);
    }
    drive_close_reader(w);
    (void)pthread_barrier_wait(&c->barrier); /* crew_halt */
    (void)pthread_barrier_wait(&c->barrier); /* crew_end */
    links_close(w);
    return NULL;
}

/* ---- Beginning and end ---- */

static int first_error(const struct bench_cluster *c)
{
    for (uint32_t i = 0; i < c->workers_n; i++) {
        if (c->workers[i].error != HK_OK) {
            return c->workers[i].error;
        }
    }
    return HK_OK;
}

/* As many as there are take part in the barriers, even if that is not all. */
static int start_threads(struct bench_cluster *c)
{
    pthread_mutex_lock(&c->mutex);
    while (c->threads_n < c->workers_n &&
           pthread_create(&c->workers[c->threads_n].thread, NULL, thread_main,
                          &c->workers[c->threads_n]) == 0) {
        c->threads_n++;
    }
    int err = pthread_barrier_init(&c->barrier, NULL, c->threads_n + 1);
    HK_ASSERT(err == 0);
    pthread_mutex_unlock(&c->mutex);
    (void)pthread_barrier_wait(&c->barrier);
    return c->threads_n == c->workers_n ? first_error(c) : HK_ERR_NOMEM;
}

int crew_start(struct bench_cluster *c)
{
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->resumed, NULL);
    pthread_cond_init(&c->waits, NULL);
    c->started = true;
    if (c->config.threads) {
        return start_threads(c);
    }
    for (uint32_t i = 0; i < c->workers_n; i++) {
        int err = links_open(&c->workers[i]);
        if (err != HK_OK) {
            return err;
        }
    }
    return HK_OK;
}

int crew_open(struct bench_cluster *c)
{
    atomic_store_explicit(&c->phase, PHASE_FORM, memory_order_release);
    if (c->config.threads) {
        (void)pthread_barrier_wait(&c->barrier);
        (void)pthread_barrier_wait(&c->barrier);
        return first_error(c);
    }
    for (uint32_t i = 0; i < c->workers_n; i++) {
        int err = drive_open(&c->workers[i]);
        if (err != HK_OK) {
            return err;
        }
    }
    return HK_OK;
}

static void set_phase(struct bench_cluster *c, enum bench_phase phase)
{
    pthread_mutex_lock(&c->mutex);
    /* release: pairs with the acquires of the workers. */
    atomic_store_explicit(&c->phase, phase, memory_order_release);
    pthread_cond_broadcast(&c->resumed);
    pthread_mutex_unlock(&c->mutex);
}

void crew_halt(struct bench_cluster *c)
{
    if (!c->started) {
        return;
    }
    bool opened = phase_of(c) != PHASE_STOP;
    set_phase(c, PHASE_STOP);
    if (c->config.threads) {
        if (!opened) {
            (void)pthread_barrier_wait(&c->barrier); /* they still wait for crew_open */
        }
        (void)pthread_barrier_wait(&c->barrier);
        return;
    }
    for (uint32_t i = 0; i < c->workers_n; i++) {
        drive_close_reader(&c->workers[i]);
    }
}

void crew_end(struct bench_cluster *c)
{
    if (!c->started) {
        return;
    }
    if (c->config.threads) {
        (void)pthread_barrier_wait(&c->barrier);
        for (uint32_t i = 0; i < c->threads_n; i++) {
            pthread_join(c->workers[i].thread, NULL);
        }
        pthread_barrier_destroy(&c->barrier);
    }
    for (uint32_t i = 0; i < c->workers_n; i++) {
        drive_close(&c->workers[i]);
        links_close(&c->workers[i]);
    }
    pthread_cond_destroy(&c->waits);
    pthread_cond_destroy(&c->resumed);
    pthread_mutex_destroy(&c->mutex);
}

/* ---- Phases ---- */

void crew_enter(struct bench_cluster *c, enum bench_phase phase)
{
    if (phase_of(c) == PHASE_PAUSED) {
        c->pauses_ns += bench_clock_ns() - c->paused_at_ns;
    }
    set_phase(c, phase);
}

static bool drained(const struct bench_cluster *c)
{
    for (uint32_t i = 0; i < c->workers_n; i++) {
        /* acquire: pairs with the release in drive.c. */
        if (atomic_load_explicit(&c->workers[i].counters.in_flight, memory_order_acquire) > 0) {
            return false;
        }
    }
    return true;
}

bool crew_pause(struct bench_cluster *c)
{
    crew_enter(c, PHASE_DRAIN);
    uint64_t until_ns = bench_clock_ns() + DRAIN_NS;
    do {
        crew_work(c, bench_clock_ns() + WORK_NS);
    } while (!drained(c) && bench_clock_ns() < until_ns);
    set_phase(c, PHASE_PAUSED);
    if (c->config.threads) {
        pthread_mutex_lock(&c->mutex);
        while (c->waiting < c->threads_n) {
            pthread_cond_wait(&c->waits, &c->mutex);
        }
        pthread_mutex_unlock(&c->mutex);
    }
    c->paused_at_ns = bench_clock_ns();
    return drained(c);
}

static void sleep_until(uint64_t until_ns)
{
    uint64_t now_ns = bench_clock_ns();
    if (now_ns >= until_ns) {
        return;
    }
    uint64_t left_ns = until_ns - now_ns < SLEEP_NS ? until_ns - now_ns : SLEEP_NS;
    struct timespec t = {.tv_nsec = (long)left_ns};
    (void)nanosleep(&t, NULL);
}

void crew_work(struct bench_cluster *c, uint64_t until_ns)
{
    if (c->config.threads) {
        sleep_until(until_ns);
        return;
    }
    uint64_t now_ns = bench_clock_ns();
    uint64_t end_ns = until_ns < now_ns + WORK_NS ? until_ns : now_ns + WORK_NS;
    struct bench_worker *last = NULL;
    while (now_ns < end_ns) {
        /* A round lasts until the next one begins: no further look at the clock. */
        for (uint32_t i = 0; i < c->workers_n; i++) {
            struct bench_worker *w = &c->workers[i];
            if (c->config.samples != NULL) {
                samples_turn(c->config.samples, w->node);
            }
            (void)drive_round(w);
            if (last != NULL) {
                last->spent_ns += w->begun_ns - last->begun_ns;
            }
            last = w;
        }
        now_ns = c->workers[c->workers_n - 1].now_ns;
    }
}
