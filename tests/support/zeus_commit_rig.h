/* Several nodes of two workers each, a few objects, and the pure machine of reliable commit on each
 * worker: the test says who commits what, which lane delivers when, which worker adopts which view,
 * who crashes. The rig does what the node does with effects; ownership, which has its own machine
 * and tests, is an oracle here that does at once what docs/protocols/zeus.md allows. It keeps a
 * history of what clients were told and saw, and judges it: strictly serializable, all or nothing,
 * nothing lost of which a client was told, pipelines survive as prefixes, replicas agree. */
#ifndef HORKOS_TESTS_SUPPORT_ZEUS_COMMIT_RIG_H
#define HORKOS_TESTS_SUPPORT_ZEUS_COMMIT_RIG_H

#include "base/random.h"
#include "engine/zeus/commit.h"

#define CRIG_NODES 5u
#define CRIG_WORKERS 2u
#define CRIG_OBJECTS 4u
#define CRIG_TXNS 512u
#define CRIG_VIEWS 32u
#define CRIG_LANE 512u
#define CRIG_PIPES 24u /* that a worker follows */

/* A transaction reads all objects that it touches, and writes some of them, or none. */
struct crig_txn {
    uint8_t node, worker;
    uint32_t born;               /* of the node's process */
    uint64_t slot;               /* of its pipeline; 0: it writes nothing */
    uint32_t reads;              /* bits of objects */
    uint32_t writes;             /* of them */
    uint32_t seen[CRIG_OBJECTS]; /* whose value it read; 0: the first */
    uint64_t seen_version[CRIG_OBJECTS];
    uint64_t version[CRIG_OBJECTS]; /* that it wrote */
    bool told;                      /* its client: it is done */
    uint64_t begin, end;
};

struct crig_message {
    enum commit_kind kind;
    struct commit_name name;
    struct commit_inv inv; /* ACK, VAL: slot alone */
    uint32_t txn, objects; /* INV: what it carries */
    uint32_t epoch;
    uint32_t from_born, to_born;
};

struct crig_lane {
    struct crig_message messages[CRIG_LANE];
    uint32_t first, n;
};

struct crig_stored {
    uint32_t txn;
    uint32_t objects;
};

struct crig_pipe {
    struct commit_pipe pipe;
    struct crig_stored stored[COMMIT_SLOTS];
    bool used;
};

struct crig_worker {
    struct view view; /* the one that it has adopted */
    struct crig_pipe own;
    struct crig_pipe followed[CRIG_PIPES];
    uint32_t recovered; /* the last epoch in which it said so */
};

enum crig_state { CRIG_VALID, CRIG_WRITE, CRIG_INVALID };

struct crig_replica {
    uint64_t version;
    uint32_t value; /* the transaction that wrote it */
    uint8_t state;
    uint8_t pipe; /* WRITE */
    bool have;
    uint64_t read[CRIG_WORKERS]; /* the last slot of each pipeline here that read it (C12) */
};

struct crig_node {
    struct crig_worker workers[CRIG_WORKERS];
    struct crig_replica objects[CRIG_OBJECTS];
    uint32_t born; /* the epoch that admitted its process */
    bool crashed;
};

/* Who holds an object, as own_vector. */
struct crig_vector {
    nodeset readers;
    uint32_t epoch;
    uint8_t owner;
};

struct crig {
    struct commit_config config;
    struct random random;
    uint8_t n;
    struct crig_node nodes[CRIG_NODES];
    struct crig_vector vectors[CRIG_OBJECTS];
    struct view views[CRIG_VIEWS];
    uint32_t nviews;
    struct crig_lane lanes[CRIG_NODES][CRIG_NODES][CRIG_WORKERS]; /* from, to */
    struct crig_txn txns[CRIG_TXNS];                              /* from 1 */
    uint32_t ntxns;
    uint64_t clock;
    uint64_t deliveries, replays, moves, takeovers, told;
    const char *why; /* the first thing that went wrong */
};

/* n nodes in epoch 1; object i belongs to node i mod n, all others read it. */
void crig_init(struct crig *r, uint8_t n, uint64_t rules_off, uint64_t seed);
/* Only at the start. */
void crig_place(struct crig *r, uint32_t object, uint8_t owner, nodeset readers);

/* ---- Clients: the transaction's number, 0 if that is not possible now ---- */
uint32_t crig_commit(struct crig *r, uint8_t node, uint8_t worker, uint32_t writes, uint32_t reads);
uint32_t crig_read(struct crig *r, uint8_t node, uint32_t objects);

/* ---- Lanes ---- */
/* Delivers the oldest message; false if there is none, or it is of a view that comes. */
bool crig_deliver(struct crig *r, uint8_t from, uint8_t to, uint8_t worker);
/* The same; asserts that it is of this kind. */
void crig_pass(struct crig *r, uint8_t from, uint8_t to, uint8_t worker, enum commit_kind kind);
/* The last messages of a lane are gone (their sender has crashed); keep: how many stay. */
void crig_lose(struct crig *r, uint8_t from, uint8_t to, uint8_t worker, uint32_t keep);
bool crig_run_one(struct crig *r);
void crig_run(struct crig *r);

/* ---- Members ---- */
const struct view *crig_newest(const struct crig *r);
void crig_crash(struct crig *r, uint8_t node);
/* The view changes: without the node; with a new process of the node. Nobody has adopted it yet. */
void crig_drop(struct crig *r, uint8_t node);
void crig_admit(struct crig *r, uint8_t node);
void crig_adopt(struct crig *r, uint8_t node, uint8_t worker);
void crig_adopt_all(struct crig *r);
/* A worker forgets the pipelines of which it stores nothing. */
void crig_forget(struct crig *r, uint8_t node, uint8_t worker);

/* ---- Ownership; false: not now ---- */
bool crig_recovered(const struct crig *r); /* all have */
bool crig_move(struct crig *r, uint32_t object, uint8_t to);
bool crig_take_over(struct crig *r, uint32_t object, uint8_t to);
bool crig_add_reader(struct crig *r, uint32_t object, uint8_t node);
/* The live nodes that hold the object by its vector, the owner included. */
nodeset crig_holders(const struct crig *r, uint32_t object);

/* ---- The end ---- */
/* Who crashed is dropped, everybody adopts, everything is delivered. NULL, or what went wrong. */
const char *crig_settle(struct crig *r);
void crig_print(const struct crig *r);

/* ---- Between the rig's files ---- */
const char *crig_judge(struct crig *r);
bool crig_live(const struct crig *r, uint8_t node); /* runs, and is a member of the newest view */

#endif
