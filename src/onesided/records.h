/* What the baselines run on: records 0 .. n - 1 at memory servers, a tree that leads to them, and
 * what a compute server keeps of both. */
#ifndef HORKOS_ONESIDED_RECORDS_H
#define HORKOS_ONESIDED_RECORDS_H

#include "load/keys.h"
#include "onesided/txn.h"

struct one_records {
    struct memory memory;
    struct one_tree tree;
};

/* Values are zero; leaves are as full as random insertion leaves them. node_words: 0: 128. exposed:
 * in regions that ports can expose. False: there is not so much memory. */
bool one_records_open(struct one_records *records, uint32_t memories, uint64_t n,
                      uint32_t value_words, uint32_t node_words, bool exposed);
/* Where record i is. */
remote one_record_at(uint32_t memories, uint32_t value_words, uint64_t i);
void one_records_close(struct one_records *records);
/* The same, exposed, with nodes of 1 KB, for insertions: record i has the key one_run_key(i / e,
 * i % e), with e = n / runs, and there is room for `inserts` more records, spread over the
 * memory servers, and for the nodes that they make split. n: a multiple of runs. */
bool one_records_open_runs(struct one_records *records, uint32_t memories, uint64_t n,
                           uint32_t value_words, uint32_t runs, uint64_t inserts);
static inline uint64_t one_run_key(uint64_t run, uint64_t number)
{
    return run << 32 | number;
}
/* Takes room for so many of them, rounded up to as many at each memory server; before anything
 * runs. */
void one_room_open(struct one_room *room, const struct one_records *records, uint32_t value_words,
                   uint64_t inserts);

struct one_server {
    struct one_cache *cache;
    struct one_hints hints;
};

/* part: how large its cache is, as a part of the index's bytes: copies of inner nodes first, hints
 * in what is left. False: no memory. */
bool one_server_open(struct one_server *server, const struct one_records *records, double part);
void one_server_close(struct one_server *server);

/* Draws a transaction of that many requests of different keys, and begins it. */
void one_txn_draw(struct one_txn *txn, uint64_t age, uint32_t requests, uint32_t writes_ppm,
                  const struct keys *keys);

#endif
