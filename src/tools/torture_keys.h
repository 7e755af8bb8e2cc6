/* The keys of a torture and the histories of what clients did to them. A few keys are open, and
 * hot. A key that is old enough, or of which too much is undecided, makes room for a new one: it
 * gets no new operations, is read once more when those under way are over, and is then judged.
 * So no history is long, and all of them together take a bounded amount of memory. */
#ifndef HORKOS_TOOLS_TORTURE_KEYS_H
#define HORKOS_TOOLS_TORTURE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/random.h"
#include "check/history.h"
#include "tools/torture_options.h"

enum torture_class {
    TORTURE_REGISTER, /* only read and written; values of many lengths */
    TORTURE_COUNTER,  /* read and added to */
    TORTURE_GENERAL,  /* all kinds of operations */
    TORTURE_CLASSES,
};

enum torture_key_state {
    KEY_OPEN,
    KEY_ENDING,  /* gets no new operations; those under way end */
    KEY_READING, /* the closing read is under way */
    KEY_CLOSED,  /* with the judge, or judged */
};

struct torture_key {
    uint64_t id;
    enum torture_class class;
    enum torture_key_state state;
    struct history_op *ops; /* NULL: no longer needed */
    size_t n, capacity;
    uint64_t born_us;
    uint32_t under_way;
    uint32_t unknowns; /* updates whose outcome nobody learned */
    uint32_t tries;    /* closing reads that failed */
    bool seen_known;   /* by any client */
    int64_t seen;
    bool last_known; /* by the closing read; settled if no update is undecided */
    int64_t last;
    bool emptied;        /* its slot may have been emptied, as its history says; so registers, too,
                            may have been deleted */
    uint64_t emptied_us; /* the same happened after its closing read had begun, and its history does
                            not say so; 0: it did not */
    struct torture_key *next; /* in a list of the judge */
    /* The judge's words. */
    bool judged;
    bool undecided; /* too hard, at one time at least */
    enum check_result verdict;
    uint64_t states;
    char *text; /* NULL, or why it was refused */
};

#define TORTURE_NAME_BYTES 48u
/* Between two values that are written: what is added to one never reaches the next. */
#define TORTURE_VALUE_GAP 1000000

struct torture_keys {
    struct torture_key **all; /* by id */
    size_t n, capacity;
    uint64_t open[TORTURE_KEYS_MAX]; /* ids */
    uint32_t open_n;
    uint64_t first_unclosed; /* all before it are closed */
    uint64_t kept_first;     /* no history is kept of keys before it, but of open ones */
    size_t kept_ops;         /* in histories of judged keys */
    uint64_t forgotten;      /* histories that had to go for want of room */
    int64_t next_value;
};

bool torture_keys_init(struct torture_keys *keys, uint32_t open);
void torture_keys_deinit(struct torture_keys *keys);

/* An open key; the first ones are taken more often. Replaces it if it has had enough. NULL: no
 * memory. */
struct torture_key *torture_keys_pick(struct torture_keys *keys, struct random *random,
                                      uint64_t now_us);
/* No key is open any longer. */
void torture_keys_end(struct torture_keys *keys);
/* A key that waits for its closing read, and is KEY_READING from now on; or NULL. Keys without hope
 * become closed without one. closed_out: such a key, or NULL. */
struct torture_key *torture_keys_to_read(struct torture_keys *keys,
                                         struct torture_key **closed_out);
bool torture_keys_all_closed(const struct torture_keys *keys);

/* Adds to the history. False: no memory. */
bool torture_key_record(struct torture_key *key, const struct history_op *op);
/* The operator is about to give lost slots up: any key may be deleted from now on, once. False: no
 * memory. */
bool torture_keys_empty(struct torture_keys *keys, uint64_t now_us);
/* Lets the histories that are kept say so of keys that were closed then. False: no memory. */
bool torture_keys_note_emptied(struct torture_keys *keys);
/* The judge accepted it: its history stays only if an undecided update, or the lack of a closing
 * read, lets its value be in doubt. */
void torture_keys_judged(struct torture_keys *keys, struct torture_key *key);

/* For tests: makes the closing read one of a value that was certainly overwritten before. False:
 * the history has none. */
bool torture_key_tamper(struct torture_key *key);

/* The name of a key, and the bytes that stand for a number as its value. */
struct bytes torture_key_name(const struct torture_key *key, char name[TORTURE_NAME_BYTES]);
#define TORTURE_VALUE_BYTES 6144u
struct bytes torture_value(enum torture_class class, int64_t number, char to[TORTURE_VALUE_BYTES]);
/* False if no number has these bytes. */
bool torture_value_parse(enum torture_class class, struct bytes value, int64_t *number_out);

#endif
