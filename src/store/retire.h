/* What was unlinked and may still be read: lists that need no memory of their own, freed when every
 * online thread has been quiescent since (docs/STORE.md, S6 and 5). */
#ifndef HORKOS_STORE_RETIRE_H
#define HORKOS_STORE_RETIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/epoch.h"
#include "store/memory.h"
#include "store/object.h"
#include "store/spin.h"

/* Items freed at one quiescent state, at most: a burst of frees delays nobody for long. */
#define RETIRE_FREED_MAX 512u

/* A reference to a dead object or blob: its address, bit 0 set for a blob; 0 ends a list. */
typedef uint64_t retire_item;

struct retire_list {
    retire_item first;
    retire_item last;
};

struct retire {
    struct retire_list open;   /* since the last seal */
    struct retire_list sealed; /* free once stamp has passed */
    struct retire_list due;    /* free */
    uint64_t stamp;
    _Atomic int64_t bytes; /* in all lists; this thread writes it, statistics read it */
};

/* Left by threads that unregistered, for the next that seals. */
struct retire_orphans {
    struct spin lock;
    struct retire_list list;
    _Atomic int64_t bytes; /* above 0: worth taking the lock */
};

/* The object is out of the index; marks it dead. Its blob, if any, goes with it. */
void retire_object(struct retire *r, struct object *o);
/* The blob is no longer any object's value. */
void retire_blob(struct retire *r, struct blob *blob);

/* Called in a quiescent state of the thread at slot, after it was announced: seals, and frees. */
void retire_poll(struct retire *r, struct retire_orphans *orphans, struct epoch *epoch,
                 uint32_t slot, struct memory_cache *cache);

/* Leaves all lists to the store. */
void retire_close(struct retire *r, struct retire_orphans *orphans);

#endif
