/* What the files of embed share. */
#ifndef HORKOS_EMBED_INTERNAL_H
#define HORKOS_EMBED_INTERNAL_H

#include "horkos.h"

#include "base/random.h"
#include "server/config.h"
#include "server/local.h"
#include "server/server.h"

#define TXN_BYTES_KEPT (64u * 1024u) /* of a transaction that is over, for the next one */
#define OWN_LISTS 256u /* kinds of keys that own updates in flight are told apart by */

struct hk_node {
    struct server *server;
    uint32_t id;
};

/* What belongs to a slot of the session's rings. */
struct hk_slot {
    uint8_t *memory; /* the operation's bytes, of one that does not wait */
    size_t memory_bytes;
    hk_done *done;
    void *context;
    struct hk_result *into; /* who waits for it wants its result there ... */
    struct hk_read *read;   /* ... or here, for a key of a batch; both NULL: `done` gets it */
    struct hk_result result;
    struct hk_txn *txn; /* whose request it is, until it is answered */
    bool ahead;         /* it was committed by this thread, and is to become reliable */
    bool keeps;         /* who waits for it frees it, having looked at its memory */
    bool dropped;       /* nobody waits for it any more */
};

/* Slots are in `spare`, in flight, or in `ready`. */
struct hk_session {
    struct local_session *local;
    uint32_t space;
    uint32_t slots_n;         /* in_flight_max and one for the operation that waits */
    uint32_t async_max;       /* in_flight_max */
    uint32_t async_n;         /* begun, and `done` not called */
    uint32_t waited_n;        /* of those that wait: not answered yet */
    uint32_t updates_n;       /* in flight; each key that a transaction writes counts */
    uint32_t txns_n;          /* transactions in flight */
    uint32_t flying_n;        /* slots that are not answered ... */
    uint32_t ahead_n;         /* ... and those of them that are `ahead` */
    uint32_t dropped_n;       /* operations that are not answered, and that nobody waits for */
    uint32_t transacts;       /* bits of the spaces that have transactions, ... */
    uint32_t ordered;         /* ... and of those whose keys have an order */
    struct hk_txn *txn_spare; /* that is over; its memory serves the next one */
    struct random random;     /* of pauses between tries */
    uint32_t spare_n;
    uint32_t ready_first, ready_n;
    uint8_t spare[LOCAL_SLOTS_MAX];
    uint8_t ready[LOCAL_SLOTS_MAX]; /* answered, in order: a ring */
    uint16_t own[OWN_LISTS];        /* updates in flight, by a hash of their keys */
    struct hk_slot slots[LOCAL_SLOTS_MAX];
};

/* ---- config.c ---- */

/* A node's configuration from the program's. error_out (size bytes) says what is wrong. */
int embed_config(const struct hk_config *from, struct config *config_out, char *error_out,
                 uint32_t size) __attribute__((warn_unused_result));

/* A key that a transaction has touched. */
struct txn_item {
    struct bytes key; /* the transaction's memory, as are all bytes */
    uint64_t hash;
    struct bytes seen;  /* READ, if there was something */
    uint64_t version;   /* READ; 0: there was nothing */
    struct bytes value; /* WRITTEN */
    int64_t deadline_ms;
    uint16_t flags; /* of its OP_SET */
    bool read, found, written, deleted;
    bool early; /* READ, before it was replicated: nobody may be told until it is */
};

struct txn_chunk {
    struct txn_chunk *next;
    size_t n, used;
    _Alignas(16) uint8_t at[];
};

struct hk_txn {
    struct hk_session *session;
    uint64_t since_us; /* clock_boot_us: it began, or the one that it repeats */
    uint64_t until_us;
    struct txn_item *items;
    uint32_t items_n, items_max;
    uint32_t writes_n;
    struct txn_watch *ranges; /* that were read: HK_TXN_RANGES_MAX have room */
    uint32_t ranges_n;
    uint8_t space;
    bool read_only;
    bool ordered; /* its space: no key is this node's own, and none is read by this thread */
    int err;      /* it will not commit: this is why */
    struct txn_chunk *chunks;
    struct txn_request request; /* in its own memory, as are the arrays that it names */
};

/* ---- txn.c ---- */

/* Memory of the transaction, aligned for anything; NULL: none. */
void *transaction_memory(struct hk_txn *t, size_t n);
/* The transaction is over; NULL is ignored. */
void transaction_end(struct hk_txn *t);
void transaction_free(struct hk_txn *t);

/* The key's, if the transaction has touched it. */
struct txn_item *transaction_item(struct hk_txn *t, struct bytes key);

/* ---- txn_read.c ---- */

/* Reads the key, from here or from elsewhere. */
int transaction_fetch(struct hk_txn *t, struct txn_item *item) __attribute__((warn_unused_result));
/* Whether the key is this node's to write; if not, it is brought here. */
int transaction_own(struct hk_txn *t, const struct txn_item *item)
    __attribute__((warn_unused_result));
/* Looks again at all that was read. HK_OK: it was all so at one moment of the look. HK_ERR_ABORTED;
 * HK_ERR_BUSY: only a worker can tell. */
int transaction_look_again(struct hk_txn *t) __attribute__((warn_unused_result));

/* ---- operation.c ---- */

/* Waits for the answer to a slot whose `into` is set. False: the time is over, and the slot is
 * dropped. */
bool operation_wait_until(struct hk_session *s, uint32_t slot, uint64_t until_us);
/* Memory of the slot's own. */
bool operation_memory(struct hk_session *s, uint32_t slot, size_t n);

/* HK_OK, or what is wrong with the bytes of an operation. */
int operation_bytes(struct hk_bytes bytes, size_t most) __attribute__((warn_unused_result));
/* Hands what the slot holds to the worker; on an error the slot is spare again, and its txn the
 * caller's. */
int operation_submit(struct hk_session *s, uint32_t slot) __attribute__((warn_unused_result));
/* The same of a transaction that this thread has committed, which its worker has in hand. */
void operation_ahead(struct hk_session *s, uint32_t slot);
/* The same with an operation. */
int operation_begin(struct hk_session *s, uint32_t slot, const struct op *op, void *buffer,
                    size_t capacity) __attribute__((warn_unused_result));
/* A spare slot; there is one, or will be when what was dropped is answered. */
uint32_t operation_slot(struct hk_session *s);
void operation_free(struct hk_session *s, uint32_t slot);
/* The slot has its result: it waits for hk_session_poll. */
void operation_ready(struct hk_session *s, uint32_t slot);
/* Takes all answers that have come. */
void operation_take(struct hk_session *s);
/* Waits until waited_n is at most that. */
void operation_wait(struct hk_session *s, uint32_t waited_n);
/* Runs an operation to its result. */
int operation_run(struct hk_session *s, const struct op *op, void *buffer, size_t capacity,
                  struct hk_result *result_out) __attribute__((warn_unused_result));
/* Begins one that does not wait: with bytes of its own. */
int operation_start(struct hk_session *s, const struct op *op, void *buffer, size_t capacity,
                    hk_done *done, void *context) __attribute__((warn_unused_result));
/* Whether an update of this session on the key may be in flight. */
bool operation_own(const struct hk_session *s, uint32_t space, struct bytes key);

#endif
