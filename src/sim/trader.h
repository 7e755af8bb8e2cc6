/* Traders: clients that ask for transactions, in a space whose engine has them (ENGINE_OWNED,
 * ENGINE_TABLES). Each
 * has a session with a worker, as a thread of the process itself would, and several deals under way
 * in it; or it speaks over a connection (teller.h). A deal is one transaction, or one operation
 * that is as good as one.
 *
 * Traded keys hold numbers that are written once, so that the history of all deals can be held
 * against strict serializability. Accounts hold money: what is paid from one to another is never
 * more nor less in all. */
#ifndef HORKOS_SIM_TRADER_H
#define HORKOS_SIM_TRADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check/txn_history.h"
#include "engine/txn.h"
#include "node/node.h"
#include "sim/machine.h"
#include "sim/setup.h"
#include "sim/value.h"

struct resp_conn;
struct world;

/* The tags of deals; below are those of operations (client.h). */
#define DEAL_TAG UINT32_C(0x80000000)
/* Beside it: what a deal asks for before its own request (teller.h). */
#define DEAL_AHEAD UINT32_C(0x40000000)
#define DEAL_OPS_MAX 12u
#define TRADED_MAX 16u
#define ACCOUNTS_MAX 6u
#define DEAL_FIRST_NUMBER INT64_C(1000)
#define ACCOUNT_MONEY INT64_C(1000) /* in each when the bank opens */

enum deal_kind {
    DEAL_GET, /* one operation, no transaction */
    DEAL_SET, /* the same */
    DEAL_READ,
    DEAL_WRITE,
    DEAL_MIXED, /* reads some keys, writes others, and some of the same */
    DEAL_LOOK,  /* reads, and then ... */
    DEAL_SWAP,  /* ... writes if what was read still holds */
    DEAL_CLAIM, /* writes all if none of them exists */
    DEAL_FETCH, /* brings ownership here */
    /* Where rows are in tables. */
    DEAL_RANGE, /* one range or two, and a few keys */
    DEAL_FILL,  /* looks at a range, and writes into it */
    DEAL_ERASE, /* reads keys, and deletes them */
    DEAL_CLEAR, /* looks at a range, and deletes it */
    DEAL_SPAN,  /* looks at a range, and then ... */
    DEAL_HOLD,  /* ... writes if it is still as it was */
    /* The bank's. */
    DEAL_OPEN,    /* money into all accounts, if none exists */
    DEAL_PAY,     /* less here and more there */
    DEAL_PEEK,    /* reads two accounts, and then ... */
    DEAL_MOVE,    /* ... writes both anew, or all into one and the other is closed */
    DEAL_RENAME,  /* an account gets another name, if that is free */
    DEAL_AUDIT,   /* reads all accounts */
    DEAL_CONTROL, /* the same, and writes something: it needs to own them */
    DEAL_KINDS
};
extern const char *const deal_kind_names[DEAL_KINDS];

enum deal_state { DEAL_QUEUED, DEAL_TAKEN, DEAL_ANSWERED, DEAL_OVER };

/* Of a range, and what it found: traded keys, or accounts. */
struct deal_range {
    uint32_t first, end; /* keys */
    uint32_t limit;      /* 0: none */
    bool reverse;
    bool answered;
    uint32_t n;
    struct txn_found found[TRADED_MAX + ACCOUNTS_MAX]; /* by key */
};

/* What an operation of a deal saw or wrote. */
struct deal_item {
    int64_t number; /* that a write of a traded key writes; of accounts: read */
    uint32_t key;   /* traded keys, then accounts */
    bool there;     /* read: something was stored */
    bool gone;      /* deletion: something was there */
    uint64_t version;
};

struct deal {
    uint32_t index;
    uint32_t trader;
    uint32_t connection; /* of the trader */
    enum deal_kind kind;
    enum deal_state state;
    struct op ops[DEAL_OPS_MAX];
    struct txn_watch watches[DEAL_OPS_MAX];
    struct txn_request request;
    struct deal_item items[DEAL_OPS_MAX];   /* of ops */
    struct deal_item watched[DEAL_OPS_MAX]; /* of watches: what an earlier deal had read */
    uint8_t *bytes[DEAL_OPS_MAX];           /* of values; owned */
    /* Of operations that are ranges, and of watches; owned. NULL: it is none. */
    struct deal_range *ranges[DEAL_OPS_MAX];
    struct deal_range *held[DEAL_OPS_MAX];
    int err;
    enum txn_outcome outcome; /* when it is over */
    bool given;               /* a worker has seen it */
    /* Of a trader that speaks (teller.h). */
    bool said;                   /* to the connection */
    bool ahead;                  /* the versions of its keys are to be asked for first */
    bool row;                    /* all or none of its writes are done */
    uint32_t lines;              /* replies in front of its own */
    uint64_t seen[DEAL_OPS_MAX]; /* versions of watches, as WATCH saw them */
    bool alone;                  /* one operation, no transaction */
    uint64_t queued_us;          /* virtual */
    uint64_t taken_us;           /* virtual; 0: not yet */
    uint64_t arrived_step;
    uint64_t begin_us, end_us; /* in the history's time; 0: not taken */
};

struct trader {
    uint32_t id;
    uint8_t machine;
    uint32_t worker;
    uint32_t session; /* SESSION_NONE: not open */
    uint32_t connection;
    uint32_t window;
    uint32_t ring[WINDOW_MAX]; /* deals under way, the oldest first */
    uint32_t ring_first, ring_n;
    uint32_t quota, tries;
    uint64_t patience_us; /* 0: as long as it takes */
    uint64_t backoff_until_us;
    bool scheduled;
    bool ready;
    bool moving;
    bool reader; /* at the end: reads everything once */
    bool speaks;
    bool waits;             /* the connection, for answers */
    bool watches;           /* WATCH has been answered */
    struct resp_conn *conn; /* NULL: none */
    uint32_t read_n;
    uint32_t ok_calm;
    uint32_t next; /* a deal that follows from what another one has read; NO_OP */
};

struct trade_key {
    uint8_t bytes[SIM_KEY_BYTES];
    uint32_t n;
    struct tampering tampering; /* for tests */
    uint64_t tampered_version;
};

struct traders {
    struct trader at[TRADERS_MAX + SIM_NODES_MAX];
    uint32_t n;
    struct deal **deals; /* each stays where it is */
    size_t deals_n, deals_capacity;
    struct trade_key keys[TRADED_MAX + ACCOUNTS_MAX];
    struct trade_key edges[2]; /* behind all traded keys, and behind all accounts */
    int64_t next_number;
    uint64_t opened_us; /* in the history's time: the bank was open from here on; 0: not so */
    bool tampered;
};

void traders_init(struct world *world);
void traders_deinit(struct world *world);
bool traders_on(const struct world *world);
/* Everybody has something to do. */
void traders_round(struct world *world, uint32_t deals);
/* All data is gone. */
void traders_forget(struct world *world);
void trader_act(struct world *world, uint32_t trader);
void deal_impatient(struct world *world, uint32_t deal);
/* As crowd_top_up, crowd_read_all, crowd_idle. */
bool traders_top_up(struct world *world, uint32_t each);
void traders_read_all(struct world *world);
bool traders_idle(const struct world *world);
void traders_explain(const struct world *world, struct text *why);

/* ---- For machines ---- */
void traders_prepare(struct machine *machine, uint32_t worker);
bool traders_request(struct machine *machine, uint32_t worker, struct request *request_out);
void traders_reply(struct machine *machine, uint32_t worker, const struct reply *reply);
void traders_answered(struct world *world, uint32_t deal);
void traders_follow(struct machine *from, struct machine *to);
void traders_lost(struct machine *machine);

/* ---- deal.c ---- */

/* The next deal of a trader. */
struct deal *deal_draw(struct world *world, struct trader *trader);
/* Of a reader: the part-th one; NULL: there is no more. */
struct deal *deal_read_all(struct world *world, struct trader *trader, uint32_t part);
/* What the answer says: fills in items. NULL, or what is wrong with it. */
const char *deal_understand(struct world *world, struct deal *deal, const struct reply *reply);
/* Committed: what follows from it, or NULL. */
struct deal *deal_follow(struct world *world, struct trader *trader, const struct deal *deal);
bool deal_updates(const struct deal *deal);
/* Whether it changes that key. */
bool deal_writes(const struct deal *deal, uint32_t key);
void deal_describe(const struct deal *deal, char *to, size_t size);
void deal_destroy(struct deal *deal);

/* The parts of deal.c that deal_range.c needs. */
struct deal *deal_add(struct world *world, const struct trader *trader, enum deal_kind kind);
struct op *deal_add_op(struct world *world, struct deal *deal, uint32_t key, enum op_kind kind);
void deal_add_read(struct world *world, struct deal *deal, uint32_t key);
struct op *deal_add_write(struct world *world, struct deal *deal, uint32_t key);

/* ---- deal_range.c: where rows are in tables ---- */

bool deal_has_ranges(const struct world *world);
enum deal_kind deal_range_draw(struct world *world);
void deal_range_fill(struct world *world, struct deal *deal);
/* Adds a range over all keys from `first` on that are less than `end`; kind: TXN_OP_RANGE, ... */
struct deal_range *deal_range_add(struct world *world, struct deal *deal, uint32_t kind,
                                  uint32_t first, uint32_t end);
/* What the answer to operation i says. NULL, or what is wrong with it. */
const char *deal_range_understand(const struct world *world, struct deal *deal, uint32_t i,
                                  const struct answer *answer, uint64_t version);
struct deal *deal_range_follow(struct world *world, struct trader *trader, const struct deal *span);
/* Whether the range has looked at that key. */
bool deal_range_covers(const struct deal_range *range, uint32_t key);

/* ---- deal_judge.c ---- */

/* A deal is over, and committed: the bank's books. */
void deal_account(struct world *world, const struct deal *deal);
/* Of that life of the world. */
void deal_judge(struct world *world, uint32_t life);

#endif
