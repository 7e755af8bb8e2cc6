/* Configuration that every machine reads all the time and that changes now and then: several
 * threads read many keys at once out of their node's memory, while a change made at another node is
 * seen by all of them as soon as it is acknowledged. */
#include <horkos.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

#define FLAGS 1000u
#define BATCH 32u
#define THREADS 2
#define CHANGES 200u

struct reading {
    struct hk_node *node;
    pthread_t thread;
    atomic_bool *stop;
    atomic_uint *version; /* the last one that was acknowledged */
    uint64_t reads;
    uint64_t stale; /* there must be none */
};

static void flag_name(char name[32], unsigned i)
{
    (void)snprintf(name, 32, "flag/%u", i % FLAGS);
}

/* Reads a batch of flags, the last of them one that changes all the time. */
static void read_batch(struct reading *r, struct hk_session *session, unsigned first)
{
    char names[BATCH][32];
    char values[BATCH][16];
    struct hk_read reads[BATCH];
    for (unsigned i = 0; i < BATCH; i++) {
        flag_name(names[i], i + 1 < BATCH ? first + i : 0);
        reads[i] = (struct hk_read){
            .key = hk_text(names[i]), .value = values[i], .capacity = sizeof values[i] - 1};
    }
    unsigned acknowledged = atomic_load(r->version);
    check(hk_get_batch(session, reads, BATCH), "read");
    values[BATCH - 1][reads[BATCH - 1].n] = '\0';
    r->stale += strtoul(values[BATCH - 1], NULL, 10) < acknowledged;
    r->reads += BATCH;
}

static void *read_flags(void *argument)
{
    struct reading *r = argument;
    struct hk_session *session;
    check(hk_session_open(r->node, NULL, &session), "open a session");
    for (unsigned i = 0; !atomic_load(r->stop); i += BATCH) {
        read_batch(r, session, i);
    }
    hk_session_close(session);
    return NULL;
}

/* Many writes are under way at a time: they are begun, and completions are taken when there is no
 * more room. */
static void fill(struct hk_session *session)
{
    for (unsigned i = 0; i < FLAGS; i++) {
        char name[32];
        int err;
        flag_name(name, i);
        while ((err = hk_put_async(session, hk_text(name), hk_text("0"), NULL, check_done,
                                   (void *)"fill")) == HK_ERR_FULL) {
            check(hk_session_wait(session, 10000), "wait for writes");
            (void)hk_session_poll(session, UINT32_MAX);
        }
        check(err, "begin a write");
    }
    while (hk_session_in_flight(session) > 0) {
        check(hk_session_wait(session, 10000), "wait for writes");
        (void)hk_session_poll(session, UINT32_MAX);
    }
}

static void change(struct hk_session *session, atomic_uint *version)
{
    for (unsigned i = 1; i <= CHANGES; i++) {
        char value[16];
        (void)snprintf(value, sizeof value, "%u", i);
        check(hk_put(session, hk_text("flag/0"), hk_text(value), NULL), "change a flag");
        atomic_store(version, i); /* from here on nobody may read an older one */
    }
}

int main(void)
{
    struct cluster cluster;
    struct reading reading[THREADS];
    struct hk_session *session;
    atomic_bool stop = false;
    atomic_uint version = 0;
    uint64_t reads = 0;
    uint64_t stale = 0;
    cluster_open(&cluster);
    check(hk_session_open(cluster.nodes[0], NULL, &session), "open a session");
    fill(session);
    for (int i = 0; i < THREADS; i++) {
        reading[i] =
            (struct reading){.node = cluster.nodes[1 + i % 2], .stop = &stop, .version = &version};
        if (pthread_create(&reading[i].thread, NULL, read_flags, &reading[i]) != 0) {
            perror("pthread_create");
            return 1;
        }
    }
    change(session, &version);
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(reading[i].thread, NULL);
        reads += reading[i].reads;
        stale += reading[i].stale;
    }
    hk_session_close(session);
    printf("%llu reads beside %u changes, %llu of them stale\n", (unsigned long long)reads, CHANGES,
           (unsigned long long)stale);
    cluster_close(&cluster);
    return reads > 0 && stale == 0 ? 0 : 1;
}
