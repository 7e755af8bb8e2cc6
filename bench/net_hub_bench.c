/* What frames between two ports of one process cost over rings. Prints lines of JSON.
 *
 *   net_hub_bench [--bytes 100] [--burst 1] [--seconds 0.5] [--threads]
 *
 * Without --threads one thread plays both sides: the CPU time of a frame's way, in bursts of so
 * many before each flush. With it two threads play ping-pong, each asking without a pause
 * (spinning), and then sleeping until it is woken. */
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/err.h"
#include "net/hub.h"
#include "net/link.h"
#include "net/port.h"
#include "wire/frame.h"

static uint32_t frame_bytes = 100, burst = 1;
static double seconds = 0.5;

struct side {
    struct hub *hub;
    uint8_t node;
    struct loop *loop;
    struct port *port;
    uint8_t *frame;
    uint64_t trips;
    bool sleeps;
    _Atomic bool *stop;
    pthread_barrier_t *ready;
};

static double clock_s(clockid_t which)
{
    struct timespec t;
    (void)clock_gettime(which, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void lost(void *context, uint8_t node, uint8_t remote, uint8_t local, const char *why)
{
    (void)context, (void)node, (void)remote, (void)local, (void)why;
}

static void side_open(struct side *s)
{
    struct port_config config = {
        .self = s->node,
        .workers = 1,
        .hub = s->hub,
        .window = 4u << 20,
        .queue_max = 128u << 20,
        .congested_at = 64u << 20,
        .lost = lost,
    };
    struct frame f = {
        .version = FRAME_VERSION,
        .kind = FRAME_BATCH,
        .source = s->node,
        .target = 1 - s->node,
        .nonce = 1,
        .target_nonce = 1,
        .body.n = frame_bytes - FRAME_HEADER,
    };
    s->frame = calloc(1, frame_bytes);
    HK_ASSERT(s->frame != NULL && frame_seal(&f, s->frame) == frame_bytes);
    HK_ASSERT(loop_create(LOOP_AUTO, &s->loop) == HK_OK);
    HK_ASSERT(port_create(&config, s->loop, &s->port) == HK_OK);
}

static void side_close(struct side *s)
{
    port_destroy(s->port);
    loop_destroy(s->loop);
    free(s->frame);
}

static void one_thread(struct hub *hub)
{
    struct side a = {.hub = hub, .node = 0}, b = {.hub = hub, .node = 1};
    uint64_t frames = 0;
    side_open(&a);
    side_open(&b);
    port_adopt(a.port);
    port_adopt(b.port);
    double begin = clock_s(CLOCK_THREAD_CPUTIME_ID), spent = 0;
    while (spent < seconds) {
        for (uint32_t round = 0; round < 10000; round++) {
            struct bytes got;
            for (uint32_t i = 0; i < burst; i++) {
                port_send(a.port, bytes_of(a.frame, frame_bytes));
            }
            port_flush(a.port);
            while (port_receive(b.port, &got)) {
                frames++;
            }
        }
        spent = clock_s(CLOCK_THREAD_CPUTIME_ID) - begin;
    }
    printf("{\"what\":\"send and receive, one thread\",\"bytes\":%u,\"burst\":%u,"
           "\"cpu_ns_per_frame\":%.1f}\n",
           frame_bytes, burst, spent * 1e9 / (double)frames);
    side_close(&a);
    side_close(&b);
}

static void *play(void *argument)
{
    struct side *s = argument;
    side_open(s);
    (void)pthread_barrier_wait(s->ready);
    port_adopt(s->port);
    if (s->node == 0) {
        port_send(s->port, bytes_of(s->frame, frame_bytes));
    }
    while (!atomic_load_explicit(s->stop, memory_order_relaxed)) {
        struct bytes got;
        while (port_receive(s->port, &got)) {
            port_send(s->port, bytes_of(s->frame, frame_bytes));
            s->trips++;
        }
        port_flush(s->port);
        if (s->sleeps) {
            (void)loop_poll(s->loop, 100000);
        }
    }
    (void)pthread_barrier_wait(s->ready);
    side_close(s);
    return NULL;
}

static void two_threads(struct hub *hub, bool sleeps)
{
    pthread_barrier_t ready;
    pthread_t threads[2];
    _Atomic bool stop = false;
    struct side sides[2];
    HK_ASSERT(pthread_barrier_init(&ready, NULL, 2) == 0);
    double begin = clock_s(CLOCK_MONOTONIC), cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    for (uint8_t i = 0; i < 2; i++) {
        sides[i] =
            (struct side){.hub = hub, .node = i, .sleeps = sleeps, .stop = &stop, .ready = &ready};
        HK_ASSERT(pthread_create(&threads[i], NULL, play, &sides[i]) == 0);
    }
    struct timespec pause = {.tv_sec = (time_t)seconds,
                             .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    (void)nanosleep(&pause, NULL);
    atomic_store(&stop, true);
    for (uint32_t i = 0; i < 2; i++) {
        HK_ASSERT(pthread_join(threads[i], NULL) == 0);
    }
    double trips = (double)sides[0].trips;
    printf("{\"what\":\"round trip, two threads\",\"bytes\":%u,\"sleeps\":%s,\"us\":%.3f,"
           "\"cpu_us\":%.3f}\n",
           frame_bytes, sleeps ? "true" : "false", (clock_s(CLOCK_MONOTONIC) - begin) * 1e6 / trips,
           (clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e6 / trips);
    (void)pthread_barrier_destroy(&ready);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"bytes", 1, NULL, 'b'},   {"burst", 1, NULL, 'n'}, {"seconds", 1, NULL, 's'},
        {"threads", 0, NULL, 't'}, {NULL, 0, NULL, 0},
    };
    bool threads = false;
    struct hub *hub = NULL;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case 'b':
            frame_bytes = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'n':
            burst = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 's':
            seconds = strtod(optarg, NULL);
            break;
        case 't':
            threads = true;
            break;
        default:
            return 2;
        }
    }
    if (frame_bytes < FRAME_HEADER || frame_bytes > 60000 || burst == 0 || burst > 10000 ||
        !(seconds > 0)) {
        fprintf(stderr, "usage: the head of bench/net_hub_bench.c\n");
        return 2;
    }
    HK_ASSERT(hub_create(HUB_RING_DEFAULT, &hub) == HK_OK);
    if (threads) {
        two_threads(hub, false);
        two_threads(hub, true);
    } else {
        one_thread(hub);
    }
    hub_destroy(hub);
    return 0;
}
