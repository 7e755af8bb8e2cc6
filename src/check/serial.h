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
    uint32_t txn;
    uint32_t op;
};

struct written {
    uint64_t value;
    uint64_t version; /* of VERSIONS; 0: not known */
    uint32_t txn;
    uint32_t position; /* in the order of the key's writes, from 1; 0: in none */
    bool last;         /* of its transaction to the key */
};

/* What a transaction saw of the others' writes of a key. */
struct saw {
    const struct txn_op *op; /* LISTS: its last read of the key, whose list is the longest */
    uint32_t txn;
    uint32_t list_n;   /* LISTS: without its own elements, which stand behind the others */
    uint32_t position; /* of the last write that it saw; 0: none */
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
    bool *live; /* transaction -> it took effect */
    struct graph graph;
};

/* Each step returns CHECK_ACCEPTED to go on; else the report is made. */

/* Fills in accesses, keys, reads and writes: each transaction agrees with itself. */
enum check_result serial_read(struct serial *s);
/* Fills in what the reads saw, and which transactions took effect: serial_versions.c, _lists.c. */
enum check_result serial_resolve_versions(struct serial *s, struct key_part *key);
enum check_result serial_resolve_lists(struct serial *s, struct key_part *key);
/* Fills in the order and all positions, when all keys are resolved. Lists have them already. */
enum check_result serial_order_versions(struct serial *s, struct key_part *key);
/* Builds and seals the graph. */
enum check_result serial_connect(struct serial *s);

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
