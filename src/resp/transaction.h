/* Transactions of a connection: what stands between MULTI and EXEC, what WATCH has seen, and a
 * command over several keys that is one step. Memory only: the commands' bytes, the operations that
 * they become, and the request that a node gets (engine/txn.h). step.c says when what happens. */
#ifndef HORKOS_RESP_TRANSACTION_H
#define HORKOS_RESP_TRANSACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "engine/txn.h"
#include "resp/internal.h"
#include "resp/out.h"

/* Bytes that grow; what points into them does so by offset. */
struct txn_bytes {
    uint8_t *at;
    uint32_t n, capacity;
};

/* Keys that WATCH has seen, all of one space. */
struct txn_watches {
    uint32_t space;
    uint32_t n, capacity;
    struct txn_watched {
        uint32_t at, n; /* of the key, in `keys` */
        uint64_t version;
    } * watched;
    struct txn_bytes keys;
};

/* One command of a transaction. */
struct txn_command {
    const struct resp_command *command;
    resp_answer_fn *answered;   /* of its operations, if it has some */
    int64_t a, b;               /* as in its flight */
    uint32_t words_at, words_n; /* its arguments */
    uint32_t ops_n;             /* its operations, which follow those of the command before it */
    uint32_t text_at, text_n;   /* without operations: its reply, an error; or, if there is none, */
    bool direct;                /* it is served when the replies are written */
};

enum txn_kind {
    TXN_SINGLE, /* one command over several keys */
    TXN_EXEC,   /* commands between MULTI and EXEC: an array of replies */
    TXN_WATCH,  /* reads the versions of keys */
};

struct conn_txn {
    struct conn_txn *next; /* of those that are over, until their bytes may go */
    enum txn_kind kind;
    bool aborted;          /* a command could not be queued: EXEC will refuse */
    bool values;           /* operations answer values, ... */
    bool updates;          /* ... and may change keys */
    bool overfull;         /* while it is collected: there are too many operations, or no memory */
    uint8_t op_kind;       /* of the first operation: chooses the words of an error */
    uint32_t collected;    /* the command that is being collected */
    uint32_t queued_bytes; /* of its commands as they came */
    uint64_t counted;      /* of its memory, what the connection has counted */
    struct txn_bytes bytes;
    struct conn_word *words; /* places in `bytes` */
    uint32_t words_n, words_capacity;
    struct txn_command *commands;
    uint32_t commands_n, commands_capacity;
    struct op *ops;
    uint32_t ops_n, ops_capacity;
    struct resp_out texts;
    struct txn_watch *watches;
    struct txn_watches watched; /* owns the bytes of `watches` */
    struct txn_request request;
};

/* NULL: no memory. */
struct conn_txn *conn_txn_create(enum txn_kind kind) __attribute__((warn_unused_result));
/* NULL is ignored. */
void conn_txn_destroy(struct conn_txn *txn);
/* Memory that it holds. */
uint64_t conn_txn_bytes(const struct conn_txn *txn);

/* Adds a command with a copy of its arguments, a zero byte behind each: with it an argument is the
 * key right behind itself. False: no memory. */
bool conn_txn_queue(struct conn_txn *txn, const struct resp_conn *conn)
    __attribute__((warn_unused_result));
/* Adds a command whose arguments nobody needs any more; NULL: no memory. */
struct txn_command *conn_txn_command(struct conn_txn *txn, const struct resp_command *command)
    __attribute__((warn_unused_result));
/* Adds an operation of the last command. False: there are too many, or no memory. */
bool conn_txn_add(struct conn_txn *txn, const struct op *op) __attribute__((warn_unused_result));
/* Copies bytes into the transaction's own and returns where they are; UINT32_MAX: no memory. */
uint32_t conn_txn_keep(struct conn_txn *txn, struct bytes bytes)
    __attribute__((warn_unused_result));
/* Takes over what was watched, which is then empty. False: no memory. */
bool conn_txn_watch(struct conn_txn *txn, struct txn_watches *watches)
    __attribute__((warn_unused_result));
/* Makes the request out of all that was added, which stands still from here on. */
void conn_txn_seal(struct conn_txn *txn);

/* The arguments of a queued command, as conn_argument finds them. */
struct conn_words conn_txn_words(const struct conn_txn *txn, const struct txn_command *command);

/* Adds a key. False: no memory. */
bool txn_watches_add(struct txn_watches *watches, struct bytes key, uint64_t version)
    __attribute__((warn_unused_result));
bool txn_watches_have(const struct txn_watches *watches, struct bytes key);
/* Forgets all. */
void txn_watches_clear(struct txn_watches *watches);
uint64_t txn_watches_bytes(const struct txn_watches *watches);

#endif
