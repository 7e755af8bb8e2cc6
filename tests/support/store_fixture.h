/* One store and a few registered threads, and the short way to write, read and remove a key: what
 * every test of the store begins with. All functions fail the test on an unexpected error. */
#ifndef HORKOS_TESTS_SUPPORT_STORE_FIXTURE_H
#define HORKOS_TESTS_SUPPORT_STORE_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

#define FIXTURE_THREADS 3u

struct fixture {
    struct store *store;
    struct store_thread *threads[FIXTURE_THREADS]; /* all used by the test's one thread */
    struct store_thread *thread;                   /* the one that the functions below use */
    uint64_t buffer[STORE_INLINE_MAX / 8];
};

void fixture_open(struct fixture *f, const struct store_config *config);
void fixture_close(struct fixture *f);

struct bytes text(const char *s);
struct key_meta stamp(uint64_t ts);

/* store_lock, store_set, store_unlock; answers store_set's. */
int put(struct fixture *f, struct bytes key, uint64_t ts, struct bytes value, bool force);
void must_put(struct fixture *f, struct bytes key, uint64_t ts, struct bytes value);
void drop(struct fixture *f, struct bytes key);

/* Into f->buffer. */
struct store_value get(struct fixture *f, struct bytes key);
void expect(struct fixture *f, struct bytes key, uint64_t ts, struct bytes value);
void expect_absent(struct fixture *f, struct bytes key);

struct store_stats stats_of(struct fixture *f);
/* Enough quiescent states of all threads for everything retired to be reclaimed. */
void settle(struct fixture *f);

#endif
