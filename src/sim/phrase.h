/* Phrases: the forms of commands that clients use, what each means for a history, and how its reply
 * is understood. Every data command of the command table has at least one. */
#ifndef HORKOS_SIM_PHRASE_H
#define HORKOS_SIM_PHRASE_H

#include <stdbool.h>
#include <stdint.h>

#include "check/history.h"
#include "engine/op.h"
#include "sim/sim.h"

/* Keys that one command names at most. */
#define PHRASE_PARTS_MAX 3u

/* Bits of enum key_class. */
#define ON_REGISTER (1u << KEY_REGISTER)
#define ON_COUNTER (1u << KEY_COUNTER)
#define ON_GENERAL (1u << KEY_GENERAL)
#define ON_LENGTH (1u << KEY_LENGTH)
#define ON_FILLER (1u << KEY_FILLER)
#define ON_EXTRA (1u << KEY_EXTRA)

/* How the reply is read. Those before HEARS_SPOKEN are the same for a reply and for the answer that
 * an operation without a command gets. */
enum hears {
    HEARS_OK,       /* OK, or 1 or 0 for a deletion that was blind */
    HEARS_VALUE,    /* the value, or nil: the value before */
    HEARS_SUM,      /* a number: the sum */
    HEARS_DECIMAL,  /* the same as text */
    HEARS_HELD,     /* OK, or nil if the condition did not hold */
    HEARS_ONE,      /* 1, or 0 if the condition did not hold */
    HEARS_UNSET,    /* SET NX GET: the value that stood in the way, or nil */
    HEARS_SET,      /* SET XX GET: the value before, or nil if there was none */
    HEARS_COMPARED, /* SET IFEQ GET: the value before, or nil */
    HEARS_LENGTH,   /* of the value; 0 if there is none */
    HEARS_END,      /* SETRANGE: how long the value is now */
    HEARS_ONE_NX,   /* EXPIRE on conditions: what 0 says depends on them */
    HEARS_ONE_XX,
    HEARS_DEADLINE,  /* in ms since 1970, -1, -2 */
    HEARS_SPOKEN,    /* no reply */
    HEARS_TYPE,      /* string or none */
    HEARS_REFERENCE, /* OBJECT REFCOUNT: 1 or nil */
    HEARS_ENCODING,  /* int, embstr, raw or nil */
    HEARS_UNTRACKED, /* an error if the key exists, else nil */
    HEARS_RENAMED,   /* to itself: OK or 0 if the key exists, else an error */
    HEARS_RANGE,     /* the whole value; empty if there is none */
    HEARS_HEAD,      /* its first 8 bytes */
    HEARS_USAGE,     /* MEMORY USAGE */
    HEARS_PTTL,      /* ms that are left, -1, -2 */
    HEARS_SECONDS,   /* TTL, EXPIRETIME: something, -1, -2 */
    HEARS_ANYTHING,  /* no error that does not fit */
    HEARS_TEXT,      /* a quiet phrase: what the row says */
};

/* A phrase that changes no key and asks for none. */
#define PHRASE_QUIET 255u
/* Of enum history_kind. */
#define PHRASE_KINDS (HISTORY_TTL + 1u)

struct phrase {
    /* Words. %k: the key (HEARS_RENAMED: twice), %v: a value, %e: a value to compare with, %n: an
     * amount, %m: the amount with the other sign, %o: an offset, %a: so many bytes as the amount
     * is, %f: a fraction; a deadline: %T in seconds, %M in milliseconds from now, %S and %A the
     * same since 1970. */
    const char *words;
    uint8_t kind;        /* enum history_kind, or PHRASE_QUIET */
    uint8_t op;          /* enum op_kind that it becomes */
    uint16_t flags;      /* enum op_flag of that */
    uint8_t classes;     /* of keys */
    uint8_t hears;       /* enum hears */
    uint8_t share;       /* of all phrases of its kind that fit */
    bool several;        /* may name more keys: each is an operation of its own */
    const char *replies; /* quiet: how its replies begin, one after the other, apart by spaces */
};

extern const struct phrase phrases[];
extern const uint32_t phrases_n;
_Static_assert(PHRASE_QUIET > HISTORY_TTL, "a kind of its own");

/* The command of a phrase as COMMAND LIST writes it: "get", "object|encoding". */
#define PHRASE_COMMAND_BYTES 32u
void phrase_command(uint32_t phrase, char name_out[PHRASE_COMMAND_BYTES]);
/* Whether the words name something by this letter. */
bool phrase_has(const struct phrase *phrase, char letter);
/* Whether it sets a deadline. */
bool phrase_has_deadline(const struct phrase *phrase);

#endif
