/* Names are looked up on short-lived threads: the resolver may take many seconds, and nobody else's
 * connection shall wait for it, nor gate_stop. */
#include "net/gate_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"

struct gate_lookup {
    char address[GATE_ADDRESS_MAX];
    int wake_fd; /* its own */
    const char *why;
    struct sockaddr_storage at;
    socklen_t at_n;
    /* Release by the thread after it wrote the three above; acquire by the gate. */
    atomic_bool done;
    /* Whoever takes it to 0 frees: acquire and release, so that the other's use is over. */
    atomic_uint users;
};

static void release(struct gate_lookup *lookup)
{
    if (atomic_fetch_sub_explicit(&lookup->users, 1, memory_order_acq_rel) == 1) {
        (void)close(lookup->wake_fd);
        free(lookup);
    }
}

static void *run(void *context)
{
    struct gate_lookup *lookup = context;
    lookup->why = address_resolve(lookup->address, &lookup->at, &lookup->at_n);
    atomic_store_explicit(&lookup->done, true, memory_order_release);
    (void)eventfd_write(lookup->wake_fd, 1);
    release(lookup);
    return NULL;
}

struct gate_lookup *gate_lookup_begin(const char *address, int wake_fd)
{
    pthread_t thread;
    pthread_attr_t attributes;
    struct gate_lookup *lookup = calloc(1, sizeof *lookup);
    if (lookup == NULL) {
        return NULL;
    }
    lookup->wake_fd = dup(wake_fd);
    if (lookup->wake_fd < 0) {
        free(lookup);
        return NULL;
    }
    (void)snprintf(lookup->address, sizeof lookup->address, "%s", address);
    atomic_init(&lookup->done, false);
    atomic_init(&lookup->users, 2);
    HK_ASSERT(pthread_attr_init(&attributes) == 0);
    HK_ASSERT(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    int error = pthread_create(&thread, &attributes, run, lookup);
    (void)pthread_attr_destroy(&attributes);
    if (error != 0) {
        (void)close(lookup->wake_fd);
        free(lookup);
        return NULL;
    }
    return lookup;
}

bool gate_lookup_end(struct gate_lookup *lookup, struct sockaddr_storage *at_out, socklen_t *n_out,
                     const char **why_out)
{
    if (!atomic_load_explicit(&lookup->done, memory_order_acquire)) {
        return false;
    }
    *at_out = lookup->at;
    *n_out = lookup->at_n;
    *why_out = lookup->why;
    release(lookup);
    return true;
}

void gate_lookup_abandon(struct gate_lookup *lookup)
{
    release(lookup);
}
