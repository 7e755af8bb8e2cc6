/* Histories of transactions, and the checker of their serializability. Like those of operations
 * (history.h) they are recorded by whoever drives the clients, with one clock for all of them. */
#ifndef HORKOS_CHECK_TXN_HISTORY_H
#define HORKOS_CHECK_TXN_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "check/history.h"

/* How the order of a key's writes is known. */
enum txn_recording {
    TXN_VERSIONS, /* every write has its version, and every read says which one it saw */
    TXN_LISTS,    /* a write appends to the key's list, and a read returns all of it */
};

enum txn_outcome {
    TXN_COMMITTED,
    TXN_ABORTED, /* certainly without effect */
    TXN_UNKNOWN, /* took effect as a whole, at any time after begin_us, or never. It did if a
                    transaction that committed saw one of its writes */
};

enum txn_op_kind {
    TXN_READ,
    TXN_WRITE,
    /* Of VERSIONS: */
    TXN_ERASE, /* the key is absent from here on */
    TXN_RANGE, /* reads every key of a range: those that were found, and that the others were
                  absent */
};

/* What a range found of one key. */
struct txn_found {
    uint64_t key;
    uint64_t value; /* a write's number */
};

/* Numbers name what is written; no two writes of a key have the same one. */
struct txn_op {
    uint64_t key;     /* RANGE: the first */
    uint64_t value;   /* WRITE: its number, not 0. READ of VERSIONS: the one seen; 0: absent, of
                         whichever erasure, or from the beginning */
    uint64_t version; /* VERSIONS: later writes of a key have greater ones; not 0 of a write that
                             a committed transaction leaves, nor of a read of one. 0 in a write of
                             unknown outcome: not known, unless a read knows it. 0 in an ERASE: not
                             known; it follows the write that its transaction read before it, and
                             a committed one must have read the key */
    const uint64_t *list; /* READ of LISTS: the numbers seen, the oldest first */
    uint32_t list_n;
    uint8_t kind; /* enum txn_op_kind */
    /* RANGE: keys from `key` on that are less than `end`; of those that were present the first
     * `limit`, or the last (reverse); limit 0: all. */
    bool reverse;
    uint32_t limit;
    uint64_t end;
    const struct txn_found *found; /* by key, rising, in either direction */
    uint32_t found_n;
};

/* The operations stand in the order in which the transaction did them. Of transactions that did not
 * commit only the writes count. */
struct txn {
    const struct txn_op *ops;
    uint32_t ops_n;
    uint32_t client;
    uint64_t begin_us;
    uint64_t end_us; /* of COMMITTED; begin_us <= end_us */
    uint8_t outcome; /* enum txn_outcome */
};

struct txn_history {
    const struct txn *txns;
    size_t n;
    enum txn_recording recording;
};

/* What the order that explains everything must respect besides. */
enum txn_level {
    TXN_SERIALIZABLE,         /* nothing */
    TXN_SESSION_SERIALIZABLE, /* the transactions of a client in the order of their beginnings (if
                                 equal, of the array); but one of unknown outcome may be later than
                                 those that follow it */
    TXN_STRICT_SERIALIZABLE,  /* a before b if a.end_us < b.begin_us */
};

/* Those up to the incompatible order show in single answers, the others are cycles of dependencies.
 * The names are those of Adya's thesis (1999) and of Kingsbury and Alvaro's "Elle" (2020). */
enum txn_anomaly {
    TXN_NONE,
    TXN_GARBAGE_READ,       /* what nobody wrote was read */
    TXN_ABORTED_READ,       /* G1a */
    TXN_INTERMEDIATE_READ,  /* G1b: a write was read that its own transaction had written over */
    TXN_INTERNAL,           /* a transaction contradicts its own reads and writes */
    TXN_DUPLICATE_ELEMENTS, /* a list holds an element twice */
    TXN_INCOMPATIBLE_ORDER, /* two reads show two orders of a key's writes */
    TXN_G0,                 /* dirty write: ww */
    TXN_G1C,                /* circular information flow: ww, wr */
    TXN_G_SINGLE,           /* one rw: read skew, lost update */
    TXN_G2,                 /* more than one rw: write skew */
};

#define TXN_CYCLE_MAX 16u

struct txn_report {
    enum txn_anomaly anomaly;
    enum txn_level needs; /* the weakest level that the history violates */
    uint64_t key;         /* of anomalies that are no cycles */
    size_t cycle_n;       /* transactions in the cycle, or 1 or 2 that contradict each other */
    size_t cycle[TXN_CYCLE_MAX]; /* the first of them, as indices into the history */
    size_t nodes;                /* of the graph, and its edges */
    size_t edges;
    char text[4096]; /* for people; "" if accepted */
};

/* NULL, or why the transaction cannot have been recorded by a sound recorder: a kind or an outcome
 * out of range, an end before the beginning, a time of UINT64_MAX - 1 or more, a write of 0, a
 * list that is NULL and not empty, a read of VERSIONS of which only one of value and version is 0,
 * a range that found what is not in it, too much, or not in order. The checker asserts that it is
 * NULL. */
const char *txn_invalid(const struct txn *txn, enum txn_recording recording);

/* "G-single", "duplicate elements", ...; "?" for a number that is no anomaly. */
const char *txn_anomaly_name(enum txn_anomaly anomaly);

/* Writes the transaction for people, as "T3 12..40 client 3: read 7 -> 5, write 7 = 6"; as snprintf
 * does. A long one is cut. */
size_t txn_print(const struct txn_history *history, size_t i, char *to, size_t size);
void txn_history_print(const struct txn_history *history, FILE *to);

/* Whether one order of the committed transactions, and of those of unknown outcome that were seen,
 * explains every read, and agrees with the order of each key's writes and with the level. Exact, in
 * O(n log n) for n reads, writes and elements of lists, as long as the versions of all writes that
 * took effect are known: a write of unknown version that no read knows is in no order, and where a
 * key may have been erased by one, that it was absent says nothing. Which erasure an absent key
 * shows is found out (docs/CHECKERS.md, "Ranges and erasures").
 * CHECK_REFUSED: report->anomaly is set. CHECK_TOO_HARD: two writes have the same number, a
 * committed one has no version, or nothing tells which erasures were seen; the text says what. */
enum check_result check_transactions(const struct txn_history *history, enum txn_level level,
                                     struct txn_report *report);

#endif
