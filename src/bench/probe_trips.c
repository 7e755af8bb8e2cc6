#include "bench/probe_trips.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/ring.h"
#include "bench/internal.h"

#define MESSAGE_BYTES 64u
#define RING_TRIPS 10000u
#define LOOPBACK_TRIPS 5000u
#define CALLS 100000u
#define ROUNDS 5u
/* A spinning thread lets others run if nothing comes for so long. */
#define SPINS 2000u

struct message {
    uint8_t bytes[MESSAGE_BYTES];
};

struct ring_pair {
    struct ring_spsc there, back;
    struct message cells[2][16];
};

static void pair_init(struct ring_pair *p)
{
    ring_spsc_init(&p->there, p->cells[0], 16, MESSAGE_BYTES);
    ring_spsc_init(&p->back, p->cells[1], 16, MESSAGE_BYTES);
}

static void pop(struct ring_spsc *ring, struct message *message)
{
    for (uint32_t i = 1; !ring_spsc_pop(ring, message); i++) {
        if (i % SPINS == 0) {
            (void)sched_yield();
        }
    }
}

static void push(struct ring_spsc *ring, const struct message *message)
{
    bool pushed = ring_spsc_push(ring, message);
    HK_ASSERT(pushed); /* one message is under way */
}

static void *ring_echo(void *pair)
{
    struct ring_pair *p = pair;
    struct message message;
    for (uint32_t i = 0; i < RING_TRIPS; i++) {
        pop(&p->there, &message);
        push(&p->back, &message);
    }
    return NULL;
}

static double per_trip(uint64_t start_ns, uint32_t trips)
{
    return (double)(bench_clock_ns() - start_ns) / trips;
}

static double ring_alone(void)
{
    static struct ring_pair p;
    struct message message = {{0}};
    pair_init(&p);
    uint64_t start_ns = bench_clock_ns();
    for (uint32_t i = 0; i < RING_TRIPS; i++) {
        push(&p.there, &message);
        pop(&p.there, &message);
        push(&p.back, &message);
        pop(&p.back, &message);
    }
    return per_trip(start_ns, RING_TRIPS);
}

static int ring_threads(double *ns_out)
{
    static struct ring_pair p;
    struct message message = {{0}};
    pthread_t thread;
    pair_init(&p);
    if (pthread_create(&thread, NULL, ring_echo, &p) != 0) {
        return HK_ERR_NOMEM;
    }
    uint64_t start_ns = bench_clock_ns();
    for (uint32_t i = 0; i < RING_TRIPS; i++) {
        push(&p.there, &message);
        pop(&p.back, &message);
    }
    *ns_out = fmin(*ns_out, per_trip(start_ns, RING_TRIPS));
    pthread_join(thread, NULL);
    return HK_OK;
}

/* All bytes of a message, one way; false: the connection is gone. */
static bool move(int fd, struct message *message, bool out)
{
    for (uint32_t done = 0; done < MESSAGE_BYTES;) {
        ssize_t n = out ? write(fd, message->bytes + done, MESSAGE_BYTES - done)
                        : read(fd, message->bytes + done, MESSAGE_BYTES - done);
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            return false;
        }
        done += n > 0 ? (uint32_t)n : 0;
    }
    return true;
}

static void *loopback_echo(void *fd)
{
    struct message message;
    int at = *(const int *)fd;
    while (move(at, &message, false) && move(at, &message, true)) {
    }
    return NULL;
}

/* Trips over the pair, with an echo at the other end that ends when our end is closed. */
static int loopback_trips(const int fds[2], double *ns_out)
{
    struct message message = {{0}};
    pthread_t thread;
    int echo = fds[1];
    bool good = true;
    if (pthread_create(&thread, NULL, loopback_echo, &echo) != 0) {
        (void)close(fds[0]);
        return HK_ERR_NOMEM;
    }
    uint64_t start_ns = bench_clock_ns();
    for (uint32_t i = 0; i < LOOPBACK_TRIPS && good; i++) {
        good = move(fds[0], &message, true) && move(fds[0], &message, false);
    }
    *ns_out = fmin(*ns_out, per_trip(start_ns, LOOPBACK_TRIPS));
    (void)close(fds[0]);
    pthread_join(thread, NULL);
    return good ? HK_OK : HK_ERR_IO;
}

static int loopback(double *ns_out)
{
    int fds[2];
    int err = links_socket_pair(fds);
    if (err != HK_OK) {
        return err;
    }
    if (fcntl(fds[0], F_SETFL, 0) == 0 && fcntl(fds[1], F_SETFL, 0) == 0) { /* they block */
        err = loopback_trips(fds, ns_out);
    } else {
        (void)close(fds[0]);
        err = HK_ERR_IO;
    }
    (void)close(fds[1]);
    return err;
}

static double system_call(void)
{
    uint64_t start_ns = bench_clock_ns();
    for (uint32_t i = 0; i < CALLS; i++) {
        (void)syscall(SYS_getppid);
    }
    return per_trip(start_ns, CALLS);
}

static double clock_read(void)
{
    uint64_t sum = 0;
    uint64_t start_ns = bench_clock_ns();
    for (uint32_t i = 0; i < CALLS; i++) {
        sum += bench_clock_ns();
    }
    HK_ASSERT(sum > 0);
    return per_trip(start_ns, CALLS);
}

int probe_trips(struct bench_probe *out)
{
    int err = HK_OK;
    out->ring_round_trip_ns = INFINITY;
    out->ring_round_trip_alone_ns = INFINITY;
    out->loopback_round_trip_ns = INFINITY;
    out->system_call_ns = INFINITY;
    out->clock_read_ns = INFINITY;
    for (uint32_t i = 0; i < ROUNDS && err == HK_OK; i++) {
        out->ring_round_trip_alone_ns = fmin(out->ring_round_trip_alone_ns, ring_alone());
        out->system_call_ns = fmin(out->system_call_ns, system_call());
        out->clock_read_ns = fmin(out->clock_read_ns, clock_read());
        err = ring_threads(&out->ring_round_trip_ns);
        err = err == HK_OK ? loopback(&out->loopback_round_trip_ns) : err;
    }
    return err;
}
