#include "net/exposure.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sodium.h>

#include "base/assert.h"
#include "net/memfd.h"

#define NAME "horkos region"
#define WORDS_AT 4096u /* the token stands at its start */

struct exposure {
    _Atomic uint32_t references;
    int fd; /* by which other processes find it; -1: it is another process's */
    uint8_t *at;
    uint64_t bytes; /* mapped */
};

/* NULL: no memory; fd is still the caller's. */
static struct exposure *map(int fd, uint64_t bytes)
{
    struct exposure *e = calloc(1, sizeof(*e));
    void *at = MAP_FAILED;
    if (e != NULL) {
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (at == MAP_FAILED) {
        free(e);
        return NULL;
    }
    atomic_init(&e->references, 1);
    e->fd = -1;
    e->at = at;
    e->bytes = bytes;
    return e;
}

struct exposure *exposure_create(uint64_t bytes)
{
    HK_ASSERT(bytes > 0 && (bytes & 7u) == 0);
    int fd = memfd_make(NAME, WORDS_AT + bytes);
    if (fd < 0) {
        return NULL;
    }
    struct exposure *e = map(fd, WORDS_AT + bytes);
    if (e == NULL) {
        (void)close(fd);
        return NULL;
    }
    e->fd = fd;
    randombytes_buf(e->at, EXPOSURE_TOKEN_BYTES);
    return e;
}

void exposure_hold(struct exposure *e)
{
    /* relaxed: whoever passes it on holds a reference. */
    (void)atomic_fetch_add_explicit(&e->references, 1, memory_order_relaxed);
}

void exposure_let_go(struct exposure *e)
{
    /* What others did before they let go comes before what the last one does. */
    if (e == NULL || atomic_fetch_sub_explicit(&e->references, 1, memory_order_acq_rel) > 1) {
        return;
    }
    (void)munmap(e->at, e->bytes);
    if (e->fd >= 0) {
        (void)close(e->fd);
    }
    free(e);
}

struct region exposure_region(const struct exposure *e)
{
    return (struct region){.words = (_Atomic uint64_t *)(void *)(e->at + WORDS_AT),
                           .bytes = e->bytes - WORDS_AT};
}

void exposure_say(const struct exposure *e, struct exposure_place *place)
{
    HK_ASSERT(e->fd >= 0);
    place->process = (uint32_t)getpid();
    place->descriptor = (uint32_t)e->fd;
    memcpy(place->token, e->at, EXPOSURE_TOKEN_BYTES);
    atomic_store_explicit(&place->there, 1, memory_order_release);
}

struct exposure *exposure_find(const struct exposure_place *place)
{
    uint64_t bytes = 0;
    if (atomic_load_explicit(&place->there, memory_order_acquire) != 1) {
        return NULL;
    }
    int fd = memfd_find(place->process, place->descriptor, NAME, &bytes);
    if (fd < 0) {
        return NULL;
    }
    bool sound = bytes > WORDS_AT && (bytes & 7u) == 0;
    struct exposure *e = sound ? map(fd, bytes) : NULL;
    (void)close(fd);
    /* Seen from another container a process may have the number of another one. */
    if (e != NULL && sodium_memcmp(e->at, place->token, EXPOSURE_TOKEN_BYTES) != 0) {
        exposure_let_go(e);
        e = NULL;
    }
    return e;
}
