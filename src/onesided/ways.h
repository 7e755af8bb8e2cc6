/* Which of many nodes a cache keeps: places in sets of WAYS, the least frequently used of its set
 * makes room, and what was used long ago counts less, because the others of the set age whenever
 * one leaves. The nodes themselves are the caller's, by number of place. The rule is
 * engine/lotus/lfu.h's, which the model and Lotus's hints have; here a place may also be busy. */
#ifndef HORKOS_ONESIDED_WAYS_H
#define HORKOS_ONESIDED_WAYS_H

#include <stdbool.h>
#include <stdint.h>

#define WAYS 8u

struct way {
    uint64_t id; /* + 1; 0: free */
    uint32_t uses;
    bool dirty; /* changed since it came */
    bool busy;  /* stays, whatever comes */
};

struct ways {
    struct way *places;
    uint64_t sets;
};

/* At least WAYS places; at most `places`, if that is more. False: no memory. */
bool ways_open(struct ways *ways, uint64_t places);
void ways_close(struct ways *ways);
/* One that is kept, which counts as a use; NULL: it is not. */
struct way *ways_look(const struct ways *ways, uint64_t id);
/* A new one. *left_out: what stood in its place; its id is 0 if nothing did. NULL: all of its set
 * are busy, and nothing has changed. */
struct way *ways_admit(struct ways *ways, uint64_t id, bool dirty, struct way *left_out);

#endif
