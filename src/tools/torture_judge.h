/* Judges histories in a thread of its own while the torture goes on. */
#ifndef HORKOS_TOOLS_TORTURE_JUDGE_H
#define HORKOS_TOOLS_TORTURE_JUDGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/torture_keys.h"

struct torture_judge {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool runs;
    bool ends;                              /* under the lock, as all below */
    struct torture_key *given, *given_last; /* a list in the order in which they came */
    struct torture_key *judged;
    uint64_t under_way; /* given and not taken back */
};

bool torture_judge_start(struct torture_judge *judge);
/* Waits for the history that it is judging; the others stay as they are. */
void torture_judge_stop(struct torture_judge *judge);

/* The key is the judge's until it is taken back. */
void torture_judge_give(struct torture_judge *judge, struct torture_key *key);
/* A key with verdict, states and text; NULL: none is ready. */
struct torture_key *torture_judge_take(struct torture_judge *judge);
bool torture_judge_idle(struct torture_judge *judge);
/* So much waits that no more should be recorded for it. */
bool torture_judge_behind(struct torture_judge *judge);

#endif
