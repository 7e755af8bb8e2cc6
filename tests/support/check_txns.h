/* Histories of transactions to check: a short way to write one down, random ones of stores that
 * isolate well or badly, and a judge that knows nothing of the checker. */
#ifndef HORKOS_TEST_CHECK_TXNS_H
#define HORKOS_TEST_CHECK_TXNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "check/txn_history.h"

/* A history and the memory that it refers to. */
struct txns {
    struct txn_history history;
    struct txn *txns;
    struct txn_op *ops;
    uint64_t *numbers; /* of lists */
    size_t txns_max;
    size_t ops_n;
    size_t ops_max;
    size_t numbers_n;
    size_t numbers_max;
    struct txn_found found[128]; /* of ranges */
    size_t found_n;
};

void txns_init(struct txns *t, enum txn_recording recording, size_t txns_max, size_t ops_max,
               size_t numbers_max);
void txns_deinit(struct txns *t);

/* Adds a committed transaction. text: "r7=0 r7=5@2 w7=6@3 r8=[] r8=[1 2] w8=3": reads and writes of
 * key 7 with values and their versions (0 stands for none), and of key 8 with lists. "e7", "e7@9":
 * an erasure. "s2-9={3:17 5:20}", "s2-9<2={...}", "s2-9>2={...}": a range; the first two that are
 * there; the last two. */
struct txn *txns_add(struct txns *t, uint64_t begin_us, uint64_t end_us, uint32_t client,
                     const char *text);
/* The same with another outcome; reads need no answer. */
struct txn *txns_add_as(struct txns *t, enum txn_outcome outcome, uint64_t begin_us,
                        uint64_t end_us, uint32_t client, const char *text);

/* Tries every order of at most 10 transactions on at most 4 keys from 0 on. */
bool txns_brute_accepts(const struct txn_history *history, enum txn_level level);

enum txns_store {
    TXNS_ATOMIC,   /* each transaction at one moment between its begin and its end */
    TXNS_LATE,     /* each at one moment, which need not be in its time */
    TXNS_SNAPSHOT, /* reads at one moment, writes at a later one */
    TXNS_LOOSE,    /* each read and write at a moment of its own */
};

struct txns_generate {
    enum txn_recording recording;
    enum txns_store store;
    uint32_t txns;
    uint32_t clients;
    uint32_t keys;
    uint32_t keys_from; /* > 0: every that many transactions, new keys */
    uint32_t ops;       /* at most, of one transaction */
    uint32_t length_us;
    uint32_t aborted_ppm;
    uint32_t unknown_ppm;
};

/* Fills in t, which is empty and has room for what comes: a read of a list copies it. */
void txns_generate(struct random *r, const struct txns_generate *g, struct txns *t);
/* Changes an answer, a version, an outcome or a time. */
void txns_corrupt(struct random *r, struct txns *t);

#endif
