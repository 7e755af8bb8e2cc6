/* Lotus: messages between compute servers and memory servers, and what is configured
 * (docs/protocols/lotus.md). Pure. The lock machine is lock.h, two-phase commit commit.h; who
 * touches rows and locks is node/lotus*.c. */
#ifndef HORKOS_ENGINE_LOTUS_LOTUS_H
#define HORKOS_ENGINE_LOTUS_LOTUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "engine/engine.h"
#include "engine/lotus/lock.h"
#include "engine/txn.h"
#include "wire/msg.h"

/* Rules that a HK_MUTANTS build can switch off; those of one lock are lock_rule's. */
enum lotus_rule {
    LOTUS_RULE_CLEANER,      /* N1: the cleaner takes GAP(k) as well */
    LOTUS_RULE_AGAIN,        /* N2: look again after a grant */
    LOTUS_RULE_GAP_INSERT,   /* N3: an insertion takes GAP(p) */
    LOTUS_RULE_GAP_OWN,      /* N3: and GAP(k) if it owns GAP(p) */
    LOTUS_RULE_GAP_STEP,     /* N3: and the ghost is put into it under its latch */
    LOTUS_RULE_GAP_SCAN,     /* N4: scans take gaps, ... */
    LOTUS_RULE_ROW_SCAN,     /* N4: ... and rows */
    LOTUS_RULE_READ_LOCK,    /* reads take S at all */
    LOTUS_RULE_PREPARE_READ, /* C1 */
    LOTUS_RULE_AGE_KEPT,     /* C2; liveness */
    LOTUS_RULE_ABORT_ALL,    /* C3; liveness */
    LOTUS_RULE_ALL_PREPARED, /* C4: all, not the first */
    LOTUS_RULE_FRESH,        /* C5 */
    LOTUS_RULE_NO_TIMEOUT,   /* P1 */
    LOTUS_RULE_OUTCOMES,     /* P2 */
    LOTUS_RULE_EPOCH,        /* P3 */
    LOTUS_RULE_DOUBT_ALL,    /* P4: every other live participant is asked */
    LOTUS_RULE_DOUBT,        /* in doubt: asks; off: aborts at once */
    LOTUS_RULE_PREPARED,     /* P5 */
    LOTUS_RULE_WRITE_FIRST,  /* P6 */
    LOTUS_RULE_GONE,         /* a coordinator that is gone: its tries end; liveness */
    LOTUS_RULE_GOES_ON,      /* P9 */
    LOTUS_RULE_WOUND_TOLD,   /* P7: a parked request of a wounded try is answered; liveness */
    LOTUS_RULE_SCAN_MAP,     /* R1 */
    LOTUS_RULE_UNSURE,       /* C6 */
    LOTUS_RULE_PROCESS,      /* P10 */
    LOTUS_RULE_MOVE_ASKED,   /* M1 */
    LOTUS_RULE_MOVE_TRIES,   /* M2 */
    LOTUS_RULE_MOVE_GAP,     /* M3 */
    LOTUS_RULE_MOVE_KEPT,    /* M4 */
    LOTUS_RULE_MOVE_LEFT,    /* M5 */
    LOTUS_RULE_MOVE_BACK,    /* M6; M7 is the map's (slots_lost, slots_given) */
    LOTUS_RULE_FAR_STORED,   /* F2 */
    LOTUS_RULE_FAR_LOST,     /* F7 */
    LOTUS_RULE_FAR_MOVED,    /* F9 */
    LOTUS_RULES
};
extern const char *const lotus_rule_names[LOTUS_RULES];

struct lotus_config {
    struct lock_config lock; /* the policy */
    bool one_at_a_time;      /* no batching inside a transaction, for comparison */
    bool one_trip_off;       /* requests of one server are executed by their coordinator, too */
    bool hints_off;          /* no hint cache */
    bool across;             /* batching across transactions (batch.h) */
    uint32_t hints_max;      /* of a worker; 0: 65536 */
    uint32_t tries_max;      /* of a memory server's worker; 0: 4096 */
    uint32_t locks_max;      /* requests of a memory server; 0: 1 Mi, of 104 bytes */
    uint32_t try_locks_max;  /* ... of one try; 0: 65536 */
    uint64_t lease_us;       /* of a try that is not prepared; 0: 5 s */
    uint64_t grace_us;       /* a ghost stays at least so long; 0: 10 s */
    uint64_t near_max;  /* of a home, bytes of values that it keeps; 0: all. Else homes are nodes
                                that compute, and the others keep cells */
    uint32_t far_min;   /* smaller values are always near; 0: 64 bytes */
    uint64_t rules_off; /* HK_MUTANTS builds only: bits of enum lotus_rule */
};
static inline bool lotus_rule_on(const struct lotus_config *config, enum lotus_rule rule)
{
#ifdef HK_MUTANTS
    return (config->rules_off >> rule & 1) == 0;
#else
    (void)config, (void)rule;
    return true;
#endif
}

extern const struct engine_ops lotus_ops; /* ENGINE_TABLES */

/* ---- Messages. slot, gen: the try's at its coordinator, echoed. ts: `done` of a coordinator's,
 * the word of an answer. ---- */

/* A slot names its coordinator's worker as well: nodes may have different numbers of workers, and a
 * message goes to the receiver's worker of that number, modulo its own. */
static inline uint32_t lotus_slot(uint32_t worker, uint32_t i)
{
    return worker << 24 | i;
}
static inline uint32_t lotus_slot_worker(uint32_t slot)
{
    return slot >> 24;
}
static inline uint32_t lotus_slot_index(uint32_t slot)
{
    return slot & 0xffffffu;
}

enum lotus_kind {
    LOTUS_MSG_EXECUTE = 1, /* arg: 1: not the first of its try here (P9); value: a head, items */
    LOTUS_MSG_EXECUTED,    /* arg: the server has forgotten no newer version (N8); value: rows */
    LOTUS_MSG_WHOLE,       /* value: a head, a request */
    LOTUS_MSG_FINISH,      /* value: rows to be written */
    LOTUS_MSG_DONE,        /* value: answers (WHOLE, if the word is OK) */
    LOTUS_MSG_PREPARE,     /* arg: number, from 1; value: participants (8 bytes: two or more), rows
                              to be written */
    LOTUS_MSG_PREPARED,
    LOTUS_MSG_COMMIT,
    LOTUS_MSG_ABORT,
    LOTUS_MSG_COMMITTED,
    LOTUS_MSG_ASK,  /* arg: coordinator (8 bits), its worker (8 bits) from bit 0; key: 8 bytes of
                           its nonce. The same of TOLD and RESOLVED */
    LOTUS_MSG_TOLD, /* ts: enum lotus_told */
    LOTUS_MSG_RESOLVED, /* ts: 1: it is an answer, and has none */
    LOTUS_MSG_MAP,      /* from here on: of the map, routed to worker 0 (engine/homes); ... */
    LOTUS_MSG_ROWS = LOTUS_MSG_MAP + 12, /* rows of slots that move from the sender to the receiver.
                           ts: version of the sender's map; arg: number; slot, gen: no newer version
                           was forgotten there (N8); value: rows, or none */
    LOTUS_MSG_TAKEN, /* slot: so many rows of ROWS `arg`, from its first on, are there */
    /* Of far rows. To the worker that arg, the cell's id, names; answers to the one that slot
     * does. */
    LOTUS_MSG_STORE = LOTUS_MSG_MAP + 16, /* value: what the cell is to have */
    LOTUS_MSG_STORED,                     /* ts: enum lotus_stored */
    LOTUS_MSG_FETCH,
    LOTUS_MSG_FETCHED, /* ts: 1: there is no such cell. value: what it has */
    LOTUS_MSG_FORGET,
    LOTUS_MSG_RECALL, /* the sender leaves; arg: 0 */
    LOTUS_MSG_END
};
enum lotus_stored { LOTUS_STORED, LOTUS_STORED_NOMEM, LOTUS_STORED_NO_ROLE, LOTUS_STOREDS };

/* Ids of cells: the worker of their owner, and what that has not used. Never 0. */
static inline uint64_t lotus_cell_id(uint32_t worker, uint64_t number)
{
    return (uint64_t)worker << 56 | number;
}
static inline uint32_t lotus_cell_worker(uint64_t id)
{
    return (uint32_t)(id >> 56);
}

enum lotus_word {
    LOTUS_OK,
    LOTUS_REFUSED, /* died or wounded */
    LOTUS_MOVED,   /* a slot is not here, or moves; of a range: the maps differ */
    LOTUS_BUSY,    /* no room for another try, or another lock */
    LOTUS_TOOBIG,  /* more locks than a try may have, or an answer over the limit of a message */
    LOTUS_NOMEM,
    LOTUS_WORDS
};
enum lotus_told { LOTUS_TOLD_NO, LOTUS_TOLD_PREPARED, LOTUS_TOLD_COMMITTED, LOTUS_TOLDS };

/* Points, ranges, and ranges that are watched. */
#define LOTUS_ITEMS_MAX (TXN_OBJECTS_MAX + TXN_OPS_MAX + TXN_OBJECTS_MAX)
/* Rows that one transaction writes. */
#define LOTUS_WRITES_MAX (TXN_OBJECTS_MAX + TXN_SCANNED_MAX)

/* Why the message cannot come from a correct member, or NULL. Looks at every byte: what takes a
 * message apart may assert. How large rows may be, and whether a request's operations make sense
 * (txn_check), is the store's matter. Fields that a kind does not name are 0. */
const char *lotus_msg_invalid(const struct msg *msg);

/* lock_age.who: number counts the transactions of a worker, 48 bits of it. */
static inline uint64_t lotus_who(uint8_t node, uint8_t worker, uint64_t number)
{
    return (uint64_t)node << 56 | (uint64_t)worker << 48 | (number & UINT64_C(0xffffffffffff));
}

/* What EXECUTE and WHOLE begin with. */
struct lotus_head {
    struct lock_age age;
    uint64_t map; /* version of the coordinator's map; of ranges only */
};
#define LOTUS_HEAD_BYTES 24u
uint8_t *lotus_head_put(uint8_t *at, const struct lotus_head *head);
void lotus_head_take(struct bytes *rest, struct lotus_head *head_out);

enum {
    LOTUS_ITEM_RANGE = 1,
    LOTUS_ITEM_REVERSE = 2, /* a range, from its end */
    LOTUS_ITEM_KEYS = 4,    /* rows without values, but for the 8 bytes of a deadline */
};
struct lotus_item {
    uint8_t mode; /* enum lock_mode of the rows */
    uint8_t flags;
    uint32_t limit;   /* of a range: rows that are no ghosts; 0: none */
    uint32_t room;    /* of a point under X: bytes that its value may come to, if it is new; 0 */
    uint64_t hint;    /* 0: none */
    struct bytes key; /* or the range's start; empty: the first key */
    struct bytes end; /* of a range: its first key is not in it; empty: behind the last key */
};
uint32_t lotus_item_bytes(const struct lotus_item *item);
uint8_t *lotus_item_put(uint8_t *at, const struct lotus_item *item);
/* Takes the next one off `rest`; false: there is none. */
bool lotus_item_take(struct bytes *rest, struct lotus_item *item_out);

/* Whether all keys from start on that are less than end begin with the same tag: they are in one
 * slot, at one server. */
bool lotus_range_slot(struct bytes start, struct bytes end, uint16_t *slot_out);

enum {
    LOTUS_ROW_ABSENT = 0x40, /* there is no such row (any more) */
    LOTUS_ROW_END = 0x80,    /* no row: the item's are over. Every item's rows end so. One byte */
};
struct lotus_row {
    uint8_t flags;    /* KEY_VALUE_FLAGS of the value, and the above */
    uint64_t version; /* absent: of its deletion, or 0. Below TXN_ABSENT */
    uint64_t hint;
    struct bytes key;   /* empty in rows of point items: the item's */
    struct bytes value; /* as stored (op_state_from_stored) */
};
uint32_t lotus_row_bytes(const struct lotus_row *row);
uint8_t *lotus_row_put(uint8_t *at, const struct lotus_row *row);
bool lotus_row_take(struct bytes *rest, struct lotus_row *row_out);

/* A request as a whole: operations (pairs and ranges included), watches, flags (TXN_ACQUIRE is none
 * of them). room: for lotus_request_bytes. What is taken points into `rest` (of WHOLE, behind the
 * head) and into arrays of the caller's, of TXN_OPS_MAX operations and TXN_OBJECTS_MAX watches. */
uint64_t lotus_request_bytes(const struct txn_request *request);
uint8_t *lotus_request_put(uint8_t *at, const struct txn_request *request);
void lotus_request_take(struct bytes rest, uint8_t space, struct op *ops, struct txn_watch *watches,
                        struct txn_request *request_out);

/* DONE of a WHOLE: the verdict (not TXN_NO_MEMORY), and an answer and a version for each operation.
 * With TXN_CONFLICT answers and versions are not looked at. */
uint64_t lotus_answers_bytes(enum txn_verdict verdict, const struct answer *answers, uint32_t n);
uint8_t *lotus_answers_put(uint8_t *at, enum txn_verdict verdict, const struct answer *answers,
                           const uint64_t *versions, uint32_t n);
/* False: they are not answers to n operations. TXN_CONFLICT: all are NIL. */
bool lotus_answers_take(struct bytes rest, uint32_t n, uint8_t *verdict_out,
                        struct answer *answers_out, uint64_t *versions_out);

#endif
