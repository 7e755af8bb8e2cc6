/* Several pure ownership machines over one object, each with entry, record and data, and lanes
 * between them: the test says which lane delivers when, who learns which view, who crashes, comes
 * back, and what is wanted. The rig does what the node does with effects (docs/protocols/zeus.md),
 * keeps count of who has RECOVERED and SETTLED, and has a reliable commit of its own, as small as
 * ownership can be judged with: one object, slots in order, replays of the dead. After every step
 * it asks what must hold at any moment. */
#ifndef HORKOS_TESTS_SUPPORT_ZEUS_OWN_RIG_H
#define HORKOS_TESTS_SUPPORT_ZEUS_OWN_RIG_H

#include "base/random.h"
#include "engine/zeus/own_machine.h"
#include "engine/zeus/zeus.h"

#define OWN_RIG_NODES 5u
#define OWN_RIG_LANE 256u
#define OWN_RIG_VIEWS 32u
#define OWN_RIG_VALUES 256u
#define OWN_RIG_COMMITS 8u /* that an owner has under way */
#define OWN_RIG_STORED 32u /* of other owners, at a member */

/* Kinds beside those of ownership: the rig's reliable commit. */
enum { OWN_RIG_R_INV = OWN_MSG_END, OWN_RIG_R_ACK, OWN_RIG_R_VAL };

/* Ownership's messages, but RECOVERED and SETTLED, travel in lane 0, all else in lane 1: they pass
 * each other. */
enum { OWN_RIG_OBJECT, OWN_RIG_REST, OWN_RIG_LANES };

struct own_rig_commit {
    uint64_t version;
    uint32_t value;
    uint32_t born; /* of the coordinator */
    uint32_t epoch;
    nodeset followers;
    nodeset acked;
    uint8_t coordinator;
    bool replays;  /* a follower's, in the coordinator's place */
    bool answered; /* a client hears of its end: the object has had a reader (R15, R17) */
};

struct own_rig_message {
    uint8_t kind;
    uint32_t epoch;
    uint64_t ts;
    uint64_t arg;
    struct own_body body;
    uint32_t value; /* the number of the commit whose value it carries; 0: of none */
    struct own_rig_commit commit;
    uint32_t from_born;
    uint32_t to_born;
};

struct own_rig_lane {
    struct own_rig_message messages[OWN_RIG_LANE];
    uint32_t first, n;
};

struct own_rig_node {
    struct own_entry entry;
    struct own_busy busy;
    struct view view; /* the one that it has adopted */
    /* The data. */
    uint64_t version;
    uint32_t value; /* 0: a tombstone */
    bool have;
    bool owned; /* ZEUS_OWNED */
    bool shut;  /* ZEUS_SHUT */
    uint8_t state;
    bool locked; /* a transaction holds it */
    /* The kept value. */
    uint64_t kept_version;
    uint32_t kept_value;
    bool kept;
    /* Commits under way, and those of others that are stored here; in order. */
    struct own_rig_commit commits[OWN_RIG_COMMITS];
    struct own_rig_commit stored[OWN_RIG_STORED];
    uint32_t commits_n, stored_n;
    /* Of each coordinator, the last commit that is done with here. */
    struct own_rig_commit past[OWN_RIG_NODES];
    /* Who has said what of the adopted epoch. */
    nodeset recovered, settled, pushed;
    uint32_t went_recovered, went_settled; /* epochs in which it went on */
    uint64_t clock;
    uint64_t forgot;
    uint32_t seq;
    uint16_t waited; /* what its requests say of themselves */
    uint32_t dones;  /* requests that have ended */
    uint8_t code;    /* how the last one did */
    bool crashed;
    bool recordless; /* own_step gets no record */
};

/* What a commit was made from, and by whom. */
struct own_rig_base {
    uint64_t version;
    uint32_t born;
    uint8_t node;
};

struct own_rig {
    struct own_config config;
    struct random random;
    uint64_t now_us;
    uint64_t hash; /* of the object's key */
    uint8_t n;
    struct own_rig_node nodes[OWN_RIG_NODES];
    struct view views[OWN_RIG_VIEWS]; /* views[0] has epoch 1 */
    uint32_t nviews;
    struct own_rig_lane lanes[OWN_RIG_NODES][OWN_RIG_NODES][OWN_RIG_LANES];
    uint32_t values; /* the last commit's number */
    struct own_rig_base bases[OWN_RIG_VALUES];
    uint64_t reliable; /* highest version that a client has been told of */
    uint64_t sent;     /* messages of ownership between nodes */
    uint64_t counts[OWN_COUNTERS];
    const char *wrong; /* the first thing that was not as it must be */
    bool chiefs;       /* requests that meet others go to the chief; else to any driver */
    bool trace;        /* every step is printed */
};

/* n nodes in epoch 1, all operational and settled, none with anything. With at least three nodes
 * the directory of the object is nodes 0, 1, 2, unless `hash` says otherwise (0: it does not). */
void own_rig_init(struct own_rig *r, uint8_t n, uint64_t hash, uint64_t rules_off, uint64_t seed);

/* ---- What a node does ---- */
void own_rig_want(struct own_rig *r, uint8_t node, enum own_type type, uint8_t target);
/* A local commit, of a value or (true) of a deletion, of an owner, or of the transaction that holds
 * the object, which ends with it; its number. 0: it may not. */
uint32_t own_rig_commit(struct own_rig *r, uint8_t node, bool deletion);
/* Five nodes, begun anew; one owns the object, which has been written, and some read it. */
void own_rig_place(struct own_rig *r, uint64_t off, uint64_t seed, uint8_t owner, nodeset readers);
void own_rig_lock(struct own_rig *r, uint8_t node, bool locked);

/* ---- Lanes ---- */
/* Delivers the oldest message of a lane; false if there is none, or it is early. */
bool own_rig_deliver(struct own_rig *r, uint8_t from, uint8_t to, uint8_t lane);
/* The same; asserts that it is of this kind. */
void own_rig_pass(struct own_rig *r, uint8_t from, uint8_t to, uint8_t kind);
/* Delivers all that the nodes of the set say to each other in this lane. */
void own_rig_run_among(struct own_rig *r, nodeset set, uint8_t lane);
/* What is in the lane of objects is lost. No lane loses anything: it stands for a fault. */
void own_rig_lose(struct own_rig *r, uint8_t from, uint8_t to);
bool own_rig_run_one(struct own_rig *r);
/* Delivers everything that can be, in no particular order. */
void own_rig_run(struct own_rig *r);
/* The next instant at which some timer is due comes; false: none is. */
bool own_rig_timers(struct own_rig *r);
/* Hands a node a message from a member, whatever it says. */
void own_rig_hand(struct own_rig *r, uint8_t node, uint8_t from, const struct own_rig_message *m);

/* ---- Views: decided globally, adopted node by node ---- */
const struct view *own_rig_newest(const struct own_rig *r);
void own_rig_crash(struct own_rig *r, uint8_t node);
void own_rig_drop(struct own_rig *r, uint8_t node);
void own_rig_admit(struct own_rig *r, uint8_t node); /* a new incarnation, as a shadow */
/* The shadow serves; false: it has not been sent all entries. */
bool own_rig_promote(struct own_rig *r, uint8_t node);
void own_rig_adopt(struct own_rig *r, uint8_t node); /* the newest view */
void own_rig_adopt_all(struct own_rig *r);
/* Whether clients are served: a view without a node is decided only when its lease has ended. */
bool own_rig_serves(const struct own_rig *r, uint8_t node);

/* What everybody does in the end: adopts, delivers, waits. NULL, or what is not as it should be at
 * rest. */
const char *own_rig_settle(struct own_rig *r);
/* NULL, or what went wrong at any time. */
const char *own_rig_verdict(struct own_rig *r);
void own_rig_print(const struct own_rig *r);

/* ---- Between the rig's files ---- */
void own_rig_step(struct own_rig *r, uint8_t node, struct own_event *event,
                  const struct own_rig_message *m);
struct own_event own_rig_event(struct own_rig *r, uint8_t node, enum own_ev kind);
void own_rig_send(struct own_rig *r, uint8_t node, nodeset to, const struct own_rig_message *m);
void own_rig_check(struct own_rig *r);
void own_rig_wrong(struct own_rig *r, const char *what);
void own_rig_commit_message(struct own_rig *r, uint8_t node, uint8_t from,
                            const struct own_rig_message *m);
void own_rig_commit_view(struct own_rig *r, uint8_t node);
/* Says RECOVERED and SETTLED when it is so, and acts on what others have said. */
void own_rig_epoch(struct own_rig *r, uint8_t node);
bool own_rig_busy(const struct own_rig *r, uint8_t node);

static inline uint32_t own_rig_born(const struct view *view, uint8_t node)
{
    return view->members[node].admitted;
}

#endif
