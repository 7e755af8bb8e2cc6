/* What the files of src/resp share: the connection itself, and the helpers that commands are served
 * with. conn.c owns the state machine (docs/RESP.md has its table); commands_*.c serve.
 *
 * A serve function is called once its command has the right number of arguments, its user may give
 * it, and, unless it is RESP_DATA, everything before it is answered. It does one of four things:
 *
 *   it writes its reply, whole, to &conn->out;
 *   it starts operations on keys (conn_operation, conn_operations), whose answers make the reply;
 *   it starts a transaction (conn_transaction), whose answer makes the reply;
 *   it starts work in slices (conn_work), whose last slice writes the reply;
 *   it asks to be woken (conn_sleep) and writes its reply then.
 *
 * A RESP_DATA function may be called again from the start before it has any effect, when it wrote a
 * reply although operations of earlier commands are unanswered: so it changes nothing but by
 * operations. No serve function keeps pointers to arguments beyond its return.
 *
 * Between MULTI and EXEC nothing is served. RESP_DATA functions are called at EXEC, for the
 * operations that they start or the error that they write; RESP_MULTI functions when the replies
 * are written, so that they may do nothing but write one. */
#ifndef HORKOS_RESP_INTERNAL_H
#define HORKOS_RESP_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "engine/op.h"
#include "resp/command.h"
#include "resp/conn.h"
#include "resp/host.h"
#include "resp/out.h"
#include "resp/parse.h"

/* How much of the first key a command in flight remembers, for SLOWLOG. */
#define FLIGHT_KEY_MAX 32u

struct resp_flight;
struct conn_txn; /* resp/transaction.h */
struct txn_watches;

/* An operation of this command was answered, with no error; flight->left counts those that are
 * still to come, so it is 0 in the last call. Writes to conn->out. */
typedef void resp_answer_fn(struct resp_conn *conn, struct resp_flight *flight,
                            const struct answer *answer);
/* Makes operation number `index` of the command that is being served, out of its arguments. */
typedef void resp_operation_fn(struct resp_conn *conn, uint32_t index, struct op *op_out);

/* A data command whose operations are not all answered. */
struct resp_flight {
    const struct resp_command *command;
    resp_answer_fn *answered;
    uint64_t started_us;
    int64_t a, b;         /* what `answered` needs to know: bounds, a sum, a unit */
    uint32_t left;        /* operations without an answer, handed out or not */
    uint32_t all;         /* operations of the whole command */
    struct conn_txn *txn; /* it is one request, a transaction: left and all are 1 */
    uint32_t together;  /* not 0: its so many operations shall be one request, which is made when it
                            is handed out */
    uint32_t arguments; /* for SLOWLOG */
    int error;          /* the first that was answered, or HK_OK ... */
    uint16_t error_slot; /* ... and the answer's slot */
    uint8_t kind;        /* enum op_kind of its operations: chooses the words of an error */
    bool silent;         /* CLIENT REPLY OFF or SKIP: no reply */
    bool partly;         /* it failed, and other keys of the command may be changed */
    bool values;         /* its operations answer values, which may be large */
    uint8_t key_n;       /* of `key` */
    uint32_t key_bytes;  /* of the whole key */
    uint8_t key[FLIGHT_KEY_MAX];
};

/* Where an argument is, and all of a command that are not in the input. */
struct conn_word {
    uint32_t at, n;
};
struct conn_words {
    const uint8_t *base;
    const struct conn_word *words;
    uint32_t n;
};

enum conn_state {
    CONN_READY,      /* between two commands */
    CONN_HELD,       /* a command is found and waits until all before it are answered */
    CONN_OPERATIONS, /* a data command has operations that are not handed out yet */
    CONN_WORK,       /* a command works in slices */
    CONN_SLEEPING,   /* a command waits for a time */
    CONN_CLOSING,    /* nothing more is served; what is in flight is still answered */
};

/* One slice of long work. STEP_OPERATION hands out *op_out, whose bytes stay good until the next
 * resp_conn_feed and whose answer is given to conn->work.answered (errors included); not while
 * conn->may_update is false, if it updates, nor while conn_has_room is false. STEP_TRANSACTION does
 * the same with conn->work.txn, which is sealed and goes to multi_over once it is answered. */
enum conn_step { STEP_DONE, STEP_AGAIN, STEP_OPERATION, STEP_TRANSACTION, STEP_WAIT };
typedef enum conn_step conn_step_fn(struct resp_conn *conn, struct op *op_out);

struct conn_work {
    conn_step_fn *step;
    void (*answered)(struct resp_conn *conn, const struct answer *answer,
                     const struct resp_results *results);
    struct conn_txn *txn; /* handed out, or about to be */
    uint64_t cursor;
    uint64_t count;       /* keys that were seen */
    uint64_t limit;       /* enough of them */
    uint64_t steps;       /* of the walk */
    uint64_t compared;    /* bytes of keys times bytes of the pattern, in this slice */
    uint32_t found;       /* keys in `keys` */
    uint32_t at;          /* FLUSH: of the next key to be deleted; SCAN: argument of the pattern */
    uint32_t space, to;   /* the space that is walked, and the last one */
    bool any;             /* every key is meant, whatever its name */
    bool none;            /* no key is meant, whatever its name */
    bool ending;          /* the walk is at its end */
    bool wrapped;         /* RANDOMKEY: it started anew behind the end */
    int error;            /* the first that an operation was answered ... */
    uint16_t error_slot;  /* ... and the answer's slot */
    struct bytes pattern; /* into the input; set anew with every slice */
    struct resp_out keys;
    /* In spaces whose keys have an order: the walk's place and its next keys (walk.c). */
    struct resp_out place, piece;
    uint32_t asked; /* keys in one piece */
    bool fetched;   /* piece is there */
    bool deletes;   /* what is met is deleted in the same step */
};

struct resp_conn {
    const struct resp_host *host;
    uint64_t id, created_us, last_us;
    uint64_t now_us; /* of the call that runs */
    enum conn_state state;

    /* Bytes from `at` on belong to the command that is served or comes next; those before it to
     * operations handed out since the last feed. */
    uint8_t *input;
    uint32_t input_n, input_capacity;
    uint32_t at;
    uint32_t used; /* length of the command that is served; 0 between two */
    struct resp_parser parser;

    /* Bytes before `sent` have left, those before `ready` may leave. The oldest unfinished command
     * writes behind `ready`, nobody else does. */
    struct resp_out out;
    uint32_t sent, ready;

    /* Data commands in flight: a ring, the oldest at flights_at. */
    struct resp_flight *flights;
    uint32_t flights_at, flights_n, flights_capacity;
    uint32_t in_flight; /* operations handed out and not answered */
    /* Of those, the ones that answer values; and how large such an answer is lately. */
    uint32_t values_in_flight, value_expected;

    /* The command that is served. */
    const struct resp_command *command; /* kept after its end, for resp_conn_info */
    uint64_t started_us;
    bool silent;    /* its reply is not wanted */
    bool malformed; /* CONN_HELD: the stream cannot be followed; parser.error says why */
    bool unknown_subcommand;
    bool may_update; /* as resp_conn_next was told */
    struct op op;    /* the next operation to be handed out, if op_made */
    bool op_made;
    uint32_t op_index;
    resp_operation_fn *make;
    struct conn_work work;
    uint64_t wake_us; /* CONN_SLEEPING */
    void (*woken)(struct resp_conn *conn);

    /* Between MULTI and EXEC: what is queued. Watches are there from WATCH's answer to EXEC. */
    struct conn_txn *multi;
    struct txn_watches *watches;
    uint64_t since_us; /* WATCH was said first of all tries for what EXEC shall do; 0: it was not */
    /* Commands of a transaction are served for their operations, which go to `collects`, and their
     * flight's numbers to `collected`; or for their reply. Then arguments are these. */
    const struct conn_words *words;
    struct conn_txn *collects;
    struct resp_flight collected;
    /* Transactions that are over, whose bytes are good until the next feed, and their memory. */
    struct conn_txn *over;
    uint64_t over_bytes;
    uint64_t txn_bytes; /* memory of all transactions */
    bool rested;        /* resp_conn_next answered RESP_AGAIN */

    /* A MULTI was refused, so what follows may have been meant as a transaction: nothing runs until
     * its end is seen, and the connection closes at multi_until_us if that does not come. */
    bool multi_refused;
    uint64_t multi_until_us;

    /* What AUTH, HELLO, SELECT, CLIENT and RESET change. */
    bool authenticated;
    bool close;      /* after the reply of the command that is served */
    bool reply_off;  /* CLIENT REPLY OFF */
    bool reply_skip; /* CLIENT REPLY SKIP: the next command is silent */
    bool no_evict, no_touch;
    uint32_t space;
    char user[RESP_USER_MAX + 1];
    char name[RESP_NAME_MAX + 1];
    char library[RESP_NAME_MAX + 1];
    char library_version[RESP_NAME_MAX + 1];
    char command_name[64]; /* of `command`, as "client|list"; made when somebody asks */
    char *address, *local;
    uint64_t commands;
};

const struct resp_limits *conn_limits(const struct resp_conn *conn);
/* For a new connection: nothing is known about the size of its answers. */
void conn_expect_any(struct resp_conn *conn);
/* All of the output has left, or was taken back. */
void conn_empty_output(struct resp_conn *conn);

/* Arguments of the command that is served, its name being number 0. */
static inline uint32_t conn_arguments(const struct resp_conn *conn)
{
    return conn->words == NULL ? conn->parser.n : conn->words->n;
}
static inline struct bytes conn_argument(const struct resp_conn *conn, uint32_t index)
{
    if (conn->words != NULL) {
        const struct conn_word *word = &conn->words->words[index];

        return bytes_of(conn->words->base + word->at, word->n);
    }
    return resp_argument(&conn->parser, bytes_of(conn->input + conn->at, conn->used), index);
}
/* Whether an argument is this word (which is in lower case), in any case. */
bool conn_argument_is(const struct resp_conn *conn, uint32_t index, const char *word);
/* An integer as Redis takes it; false, after writing `-ERR value is not an integer or out of
 * range`, if it is none. */
bool conn_integer(struct resp_conn *conn, uint32_t index, int64_t *number_out)
    __attribute__((warn_unused_result));
/* The text in lower case equals word. */
bool bytes_are(struct bytes text, const char *word);

/* -ERR syntax error */
void conn_syntax_error(struct resp_conn *conn);
/* "wrong number of arguments" of the command that is served. */
void conn_arity_error(struct resp_conn *conn);
/* "unknown subcommand", for argument 1 of a container. */
void conn_subcommand_error(struct resp_conn *conn);
/* "unknown command" of whatever the client sent. */
void conn_unknown_error(struct resp_conn *conn);
/* A command that its host does not offer. */
void conn_unavailable_error(struct resp_conn *conn);
/* A command over several keys at once, in a space whose engine changes keys one by one; one of
 * ranges, where keys have no order. */
void conn_several_keys_error(struct resp_conn *conn);
void conn_no_order_error(struct resp_conn *conn);
/* The words for an error of an operation; partly: other keys of the command may be changed. */
void conn_operation_error(struct resp_out *out, int error, uint8_t op_kind, bool partly);
/* The same of an ANSWER_ERROR, which may name more than the error. */
void conn_answer_error(struct resp_conn *conn, const struct answer *answer, uint8_t op_kind,
                       bool partly);
/* "get", or "client|list". Good until the next call for this connection. */
const char *conn_command_name(struct resp_conn *conn, const struct resp_command *command);

/* Starts a command of one operation, whose space is set here. Returns its flight, for a and b. */
struct resp_flight *conn_operation(struct resp_conn *conn, const struct op *op,
                                   resp_answer_fn *answered);
/* The same for n > 0 operations of one kind. In a space with transactions they are one step, or an
 * error if they are too many; elsewhere they are handed out one after another as there is room. */
void conn_operations(struct resp_conn *conn, uint32_t n, resp_operation_fn *make,
                     resp_answer_fn *answered);
/* Starts a transaction, which is the connection's from here on, sealed. Returns its flight, for
 * `answered` (of a TXN_SINGLE), a and b. */
struct resp_flight *conn_transaction(struct resp_conn *conn, struct conn_txn *txn);
/* Whether the space that is selected has transactions, and whether its keys have an order. */
bool conn_has_transactions(const struct resp_conn *conn);
bool conn_is_ordered(const struct resp_conn *conn, uint32_t space);
/* Whether an operation, or one between two objects, may change a key, or answers a value. */
bool conn_op_updates(const struct op *op);
bool conn_answers_value(const struct op *op);
bool conn_has_room(const struct resp_conn *conn);
/* Starts work in slices; the caller fills conn->work (which is zero) but for step. */
void conn_work(struct resp_conn *conn, conn_step_fn *step);
/* Lets nothing run until EXEC, DISCARD, RESET or QUIT comes, or the connection closes. */
void conn_refuse_multi(struct resp_conn *conn);
/* The transaction that is queued is dropped, and the watches are. */
void conn_end_multi(struct resp_conn *conn);
/* Calls `woken`, which writes the reply, once now_us has reached until_us. */
void conn_sleep(struct resp_conn *conn, uint64_t until_us, void (*woken)(struct resp_conn *conn));

#endif
