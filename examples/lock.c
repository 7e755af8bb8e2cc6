/* A lock service: a lock is a key that exists while somebody holds it, with the holder's name as
 * its value and a time after which it is gone by itself. Workers on three nodes take it in turn;
 * one of them dies with it, and the others go on when its time is over.
 *
 * A holder must be done, or renew, before its time is over; what it protects should check the
 * name. */
#include <horkos.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cluster.h"

#define TURNS 20
#define TTL_MS 1000
#define WORKERS 3

struct worker {
    struct hk_node *node;
    pthread_t thread;
    char name[16];
    int turns;
    atomic_int *inside; /* how many hold the lock: never more than one */
    int crowded;
};

static void pause_ms(long ms)
{
    struct timespec t = {.tv_sec = 0, .tv_nsec = ms * 1000000};
    (void)nanosleep(&t, NULL);
}

/* HK_OK; HK_ERR_CONDITION: somebody else holds it. */
static int lock(struct hk_session *session, const char *name)
{
    const struct hk_put_options options = {.flags = HK_PUT_IF_ABSENT, .ttl_ms = TTL_MS};
    return hk_put(session, hk_text("lock"), hk_text(name), &options);
}

/* HK_ERR_CONDITION: it was lost, its time was over. */
static int renew(struct hk_session *session, const char *name)
{
    const struct hk_put_options options = {.ttl_ms = TTL_MS};
    return hk_compare_and_set(session, hk_text("lock"), hk_text(name), hk_text(name), &options);
}

static int unlock(struct hk_session *session, const char *name)
{
    return hk_compare_and_delete(session, hk_text("lock"), hk_text(name));
}

/* After HK_ERR_UNKNOWN the holder's name says how it went. */
static int holds(struct hk_session *session, const char *name)
{
    char holder[16];
    size_t n = 0;
    return hk_get(session, hk_text("lock"), holder, sizeof holder, &n) == HK_OK &&
           n == strlen(name) && memcmp(holder, name, n) == 0;
}

static void take_turn(struct worker *w, struct hk_session *session)
{
    int err = lock(session, w->name);
    if (err == HK_ERR_CONDITION || (err == HK_ERR_UNKNOWN && !holds(session, w->name))) {
        pause_ms(1);
        return;
    }
    check(err == HK_ERR_UNKNOWN ? HK_OK : err, "lock");
    w->crowded += atomic_fetch_add(w->inside, 1) != 0;
    if (w->turns % 5 == 0) {
        check(renew(session, w->name), "renew");
    }
    (void)atomic_fetch_sub(w->inside, 1);
    w->turns++;
    check(unlock(session, w->name), "unlock");
}

static void *work(void *argument)
{
    struct worker *w = argument;
    struct hk_session *session;
    check(hk_session_open(w->node, NULL, &session), "open a session");
    while (w->turns < TURNS) {
        take_turn(w, session);
    }
    hk_session_close(session);
    return NULL;
}

int main(void)
{
    struct cluster cluster;
    struct worker workers[WORKERS];
    struct hk_session *session;
    atomic_int inside = 0;
    int turns = 0;
    int crowded = 0;
    cluster_open(&cluster);
    /* Somebody takes the lock and is never heard of again. */
    check(hk_session_open(cluster.nodes[0], NULL, &session), "open a session");
    check(lock(session, "the dead"), "lock");
    hk_session_close(session);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.node = cluster.nodes[i], .inside = &inside};
        (void)snprintf(workers[i].name, sizeof workers[i].name, "worker %d", i);
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            perror("pthread_create");
            return 1;
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        turns += workers[i].turns;
        crowded += workers[i].crowded;
    }
    printf("the lock was held %d times, %d times by two at once\n", turns, crowded);
    cluster_close(&cluster);
    return turns == WORKERS * TURNS && crowded == 0 ? 0 : 1;
}
