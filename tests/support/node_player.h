/* Random transactions on a table's few keys, played by one holder a step at a time, and what they
 * must have read. Under strict two-phase locking the order of commits is a serial order, if each
 * takes its place in it while it has all its locks: then everything that a transaction read is what
 * a sorted map, to which those before it were applied, holds at its place. */
#ifndef HORKOS_TESTS_SUPPORT_NODE_PLAYER_H
#define HORKOS_TESTS_SUPPORT_NODE_PLAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "node/lotus_table.h"

#define PLAY_KEYS 8u /* "a" to "h" */
#define PLAY_STEPS_MAX 5u

enum play_kind { PLAY_READ, PLAY_WRITE, PLAY_DELETE, PLAY_SCAN, PLAY_SCAN_DELETE };

struct play_step {
    enum play_kind kind;
    uint8_t key;   /* or where a scan begins */
    uint8_t end;   /* of a scan; PLAY_KEYS: no end */
    uint8_t limit; /* 0: none */
    bool reverse;
    /* What it read: a value, 0 for absent; of a scan, keys in the order met, and their values. */
    uint8_t rows_n;
    uint8_t keys[PLAY_KEYS];
    uint64_t values[PLAY_KEYS];
};

struct play {
    struct play_step steps[PLAY_STEPS_MAX];
    uint32_t steps_n;
    uint64_t place; /* in the order of commits, from 1 */
};

struct play_model {
    uint64_t values[PLAY_KEYS]; /* 0: absent */
};
/* Whether all that it read is as the model is, before it. */
bool play_is_right(const struct play_model *model, const struct play *play);
void play_apply(struct play_model *model, const struct play *play);

enum player_state { PLAYER_RUNS, PLAYER_WAITS, PLAYER_PREPARED };

/* Zero but for the first four and the holder's status: at the beginning. */
struct player {
    struct lotus_table *table;
    struct store_thread *thread;
    struct random *random;
    uint64_t age_who;
    struct lotus_holder holder;

    struct play play;
    uint32_t at;
    uint64_t age;
    enum player_state state;
    bool begun;
    bool tried; /* keeps its transaction and its age */
    struct lotus_scan scan;
    uint64_t refused;
    const char *broken;
    uint64_t buffer[STORE_INLINE_MAX / 8u];
};

/* The next step; PREPARED: player_commit is due. age: for a new transaction. */
void player_turn(struct player *p, uint64_t age);
/* Takes the place, writes and ends; the play stays as it is until the next turn. */
void player_commit(struct player *p, uint64_t place, uint64_t now_us);
void player_stop(struct player *p);

#endif
