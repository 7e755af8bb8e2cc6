/* The parts of check_transactions: from the recorded reads and writes to the order of each key's
 * writes, from there to a graph of what must come before what. */
#ifndef HORKOS_CHECK_SERIAL_H
#define HORKOS_CHECK_SERIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check/graph.h"
#include "check/txn_history.h"

#define SERIAL_NO_TXN UINT32_MAX

/* A read of a committed transaction, or a write. */
struct access {
    uint64_t key;
    uint64_t value; /* READ and RANGE: what was seen */
    uint32_t txn;
    uint32_t op;
};

struct written {
    uint64_t value;
    uint64_t version; /* of VERSIONS; 0: not known */
    uint32_t txn;
    uint32_t position; /* in the order of the key's writes, from 1; 0: in none */
    bool last;         /* of its transaction to the key */
    bool erases;
    uint64_t after; /* an erasure without a version: the number that its transaction had read */
};

/* What a transaction saw of the others' writes of a key. */
struct saw {
    const struct txn_op *op; /* LISTS: its last read of the key, whose list is the longest */
    uint64_t value;          /* VERSIONS */
    uint64_t version;        /* VERSIONS: 0: absent, or not told (ranges) */
    uint32_t txn;
    uint32_t list_n;   /* LISTS: without its own elements, which stand behind the others */
    uint32_t position; /* of the last write that it saw; 0: none, or one that is in no order */
    uint32_t latest;   /* it may have seen any erasure up to this position, and not before
                          `position`; else the same */
    bool idle;         /* it says nothing: nobody knows what made the key absent */
};

/* Parts of the arrays of struct serial. */
struct key_part {
    uint64_t key;
    size_t accesses;
    size_t accesses_n;
    size_t writes; /* by value */
    size_t writes_n;
    size_t reads;
    size_t reads_n;
    size_t order; /* writes that took effect, in their order, as indices into writes */
    size_t order_n;
    uint64_t wild_us; /* from then on an erasure may have happened that is in no order; UINT64_MAX:
                         there is none */
};

struct serial {
    const struct txn_history *history;
    enum txn_level level;
    struct txn_report *report;
    struct access *accesses;
    struct written *writes;
    struct saw *reads;
    size_t *order;
    struct key_part *keys;
    size_t accesses_n;
    size_t writes_n;
    size_t reads_n;
    size_t order_n;
    size_t keys_n;
    bool *live;         /* transaction -> it took effect */
    uint64_t *universe; /* of ranges: keys that anybody wrote or found, rising; NULL: no range */
    size_t universe_n;
    bool narrowed; /* some read of an absent key has fewer places than by itself */
    struct graph graph;
};

/* Bits EDGES(kind) of the edges that count at this level, but for those of data. */
unsigned serial_edges_of(enum txn_level level);
#define SERIAL_DATA (EDGES(EDGE_WW) | EDGES(EDGE_WR) | EDGES(EDGE_RW) | EDGES(EDGE_TAIL))

/* ---- serial_range.c ---- */

/* Fills in the universe. False without memory. */
bool serial_universe(struct serial *s) __attribute__((warn_unused_result));
/* How many keys a range reads; it appends its accesses if told so. */
size_t serial_range(struct serial *s, uint32_t txn, uint32_t op, bool append);

/* Each step returns CHECK_ACCEPTED to go on; else the report is made. */

/* Fills in accesses, keys, reads and writes: each transaction agrees with itself. */
enum check_result serial_read(struct serial *s);
/* Fills in what the reads saw, and which transactions took effect: serial_versions.c, _lists.c. */
enum check_result serial_resolve_versions(struct serial *s, struct key_part *key);
enum check_result serial_resolve_lists(struct serial *s, struct key_part *key);
/* Fills in the order and all positions, when all keys are resolved. Lists have them already. */
enum check_result serial_order_versions(struct serial *s, struct key_part *key);
/* Builds and seals the graph, anew if there is one. */
enum check_result serial_connect(struct serial *s);
/* serial_absent.c. Which erasures the reads of absent keys can have seen by themselves; then, after
 * the graph was built and has no cycle, by what else is known: more edges, until nothing is open,
 * or there is a cycle. */
void serial_absent_begin(struct serial *s, struct key_part *key);
enum check_result serial_absent(struct serial *s);

/* The write of this number, or NULL. */
struct written *serial_find(const struct serial *s, const struct key_part *key, uint64_t value);
/* CHECK_ACCEPTED if the reader may see the write, which is NULL if nobody made it. */
enum check_result serial_check_seen(struct serial *s, const struct key_part *key, uint32_t reader,
                                    const struct written *write, uint64_t value);

/* CHECK_REFUSED, for one or two transactions that contradict each other or themselves. */
__attribute__((format(printf, 6, 7))) enum check_result serial_refuse(struct serial *s,
                                                                      enum txn_anomaly anomaly,
                                                                      uint64_t key, uint32_t a,
                                                                      uint32_t b,
                                                                      const char *format, ...);
/* CHECK_TOO_HARD, for a recording that is not sound. */
__attribute__((format(printf, 3, 4))) enum check_result serial_give_up(struct serial *s,
                                                                       uint64_t key,
                                                                       const char *format, ...);
/* CHECK_REFUSED: says what the cycle is and which transactions it goes through. needs: the level
 * whose edges it has. */
enum check_result serial_refuse_cycle(struct serial *s, enum txn_anomaly anomaly,
                                      enum txn_level needs, const struct cycle *cycle);

#endif
