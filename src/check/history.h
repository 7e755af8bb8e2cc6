/* Histories of client operations, and their checkers. A history is recorded by whoever drives the
 * clients (simulator, torture); times are of one clock that all clients share. */
#ifndef HORKOS_CHECK_HISTORY_H
#define HORKOS_CHECK_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A key is absent, or it has a value and perhaps a deadline. What a write does to the deadline is
 * in struct history_op; deletions, and whatever finds the key absent, leave none. */
enum history_kind {
    HISTORY_READ,       /* out: the value seen, or absent */
    HISTORY_WRITE,      /* in: the value written */
    HISTORY_DELETE,     /* blind: the key is absent afterwards */
    HISTORY_DELETE_IF,  /* deletes if the value equals expected; ok says whether it did */
    HISTORY_SET_IF,     /* expected -> in; ok says whether the condition held */
    HISTORY_SET_ABSENT, /* sets in if the key is absent (NX); ok says whether it was */
    HISTORY_ADD,        /* absent counts as 0; in: the delta; out: the value after it. Keeps the
                           deadline */
    HISTORY_GETSET,     /* in: the new value; out: the value before, or absent */

    HISTORY_SET_PRESENT,    /* sets in if the key is present (XX); ok says whether it was */
    HISTORY_DELETE_PRESENT, /* DEL with its answer: ok says whether there was something to delete */
    HISTORY_GETDEL,         /* deletes; out: the value before, or absent */
    HISTORY_EXISTS,         /* EXISTS, STRLEN: ok says whether the key is present */
    HISTORY_RMW,            /* any function of the value: it was expected and is now in, both of
                               which the recorder worked out. Of unknown outcome: it turns expected
                               into in, or has no effect */
    HISTORY_EXPIRE,         /* sets the deadline if the key is present; ok says whether it was */
    HISTORY_PERSIST,        /* removes the deadline; ok says whether there was one */
    HISTORY_GETEX,          /* sets or removes the deadline if the key is present; out: the value */
    HISTORY_TTL,            /* out: absent, 0 without a deadline, any other number with one; then
                               deadline says which one, or 0 if that is not known */
};

enum history_outcome {
    HISTORY_OK,      /* returned at end_us with ok/out as given */
    HISTORY_FAILED,  /* certainly did not take effect (an error that says so) */
    HISTORY_UNKNOWN, /* may or may not have taken effect, at any time after begin_us */
};

/* Values are 64-bit numbers; HISTORY_ABSENT stands for a missing key. */
#define HISTORY_ABSENT INT64_MIN

/* The deadline of a write that leaves the deadline that the key has (KEEPTTL). */
#define HISTORY_KEEP UINT64_MAX

/* a comes before b if a.end_us < b.begin_us. Equal times count as concurrent, so a coarse clock
 * makes the checkers weaker and never wrong.
 *
 * A deadline is a name that the recorder gives it: the absolute time if that is known, else any
 * number of its own, such as one more than the operation's. A value with a deadline may expire,
 * once: the key is absent from then on until something sets it. It expires no earlier than
 * not_before_us: an operation that ended before that comes before the expiry. An operation that
 * begins after not_after_us does not find a value with the deadline. Where operations name the same
 * deadline, the widest of their bounds count. Without any deadline all of this is zero. */
struct history_op {
    uint64_t begin_us;
    uint64_t end_us; /* of OK; ignored for the rest. begin_us <= end_us */
    uint64_t key;
    int64_t in;       /* HISTORY_ABSENT where the kind has no input */
    int64_t expected; /* SET_IF, DELETE_IF, RMW: the value before (may be HISTORY_ABSENT) */
    int64_t out;      /* the value returned */
    uint32_t client;
    uint8_t kind;    /* enum history_kind */
    uint8_t outcome; /* enum history_outcome */
    bool ok;         /* the kinds above say what; else unused */
    uint8_t reserved;
    uint64_t deadline;      /* WRITE, SET_*, GETSET, RMW, GETEX: the new one, 0 for none, or
                               HISTORY_KEEP; EXPIRE: the new one; TTL: the one seen; else 0 */
    uint64_t not_before_us; /* of the new deadline: the earliest moment at which the calendar of any
                               node can have reached it */
    uint64_t not_after_us;  /* the latest; 0 or UINT64_MAX: not known */
};

struct history {
    struct history_op *ops;
    size_t n;
};

/* NULL, or why the operation cannot have been recorded by a sound recorder: a kind or outcome out
 * of range, an end before the beginning, a time of UINT64_MAX - 1 or more, HISTORY_ABSENT given as
 * a number to write or add, a DELETE_IF whose in differs from expected and is not
 * HISTORY_ABSENT, or a deadline where the kind has none, or whose bounds contradict each other. The
 * checkers assert that it is NULL. */
const char *history_op_invalid(const struct history_op *op);

/* "READ", "WRITE", ...; "?" for a number that is no kind. */
const char *history_kind_name(uint8_t kind);

/* Writes the operation for people, as "12..40 client 3 key 7: READ -> 5", without a newline. At
 * most size bytes are written, always with a closing NUL if size > 0; returns the length that the
 * whole text has, as snprintf does. */
size_t history_op_print(const struct history_op *op, char *to, size_t size);

/* One operation a line, in the order of the array. */
void history_print(const struct history *history, FILE *to);

enum check_result {
    CHECK_ACCEPTED,
    CHECK_REFUSED,  /* not linearizable; the report names the key and the operations */
    CHECK_TOO_HARD, /* the bound on states was reached: says nothing */
    CHECK_NOMEM,
};

struct check_report {
    uint64_t key;    /* of the first refused key, or the one that was too hard */
    uint64_t states; /* states visited, of all keys together */
    char text[1024]; /* for people: the operations in question, one a line; "" if accepted */
};

/* Registers whose writes all write different values: linearizable in O(n log n) by comparing
 * each value's interval (Gibbons and Korach's zones). Only READ, and WRITE without a deadline; the
 * first value of each key is HISTORY_ABSENT. HISTORY_UNKNOWN writes may be seen or not.
 * CHECK_TOO_HARD when a value is written twice or another kind occurs. */
enum check_result check_registers(const struct history *history, struct check_report *report);

/* Any kinds, split by key: Wing and Gong's search with Lowe's cache of visited states. states_max
 * bounds the states visited per key (0: 50 million). */
enum check_result check_linearizable(const struct history *history, uint64_t states_max,
                                     struct check_report *report);

#endif
