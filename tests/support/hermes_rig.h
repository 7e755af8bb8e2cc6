/* Several pure Hermes machines, one key, and a bag of messages, driven by hand: the test says which
 * message is delivered when, who learns which view, who crashes. The rig does what the node does
 * with effects (docs/ENGINE.md) and keeps a history that the protocol does not see, by which it
 * judges every step with the properties of the specification. */
#ifndef HORKOS_TESTS_SUPPORT_HERMES_RIG_H
#define HORKOS_TESTS_SUPPORT_HERMES_RIG_H

#include "base/random.h"
#include "engine/hermes/machine.h"

#define RIG_NODES 5u
#define RIG_SLOTS 24u
#define RIG_MESSAGES 512u
#define RIG_UPDATES 64u
#define RIG_VIEWS 32u
#define RIG_MAILS 32u
#define RIG_CIDS 2u

#define RIG_MLT_US 1000u
#define RIG_GRACE_US 1000000u

enum rig_kind { RIG_WRITE, RIG_DELETE, RIG_RMW };

/* An update as the history knows it. Update 0 is "no entry", update 1 the value at the start. */
struct rig_update {
    enum rig_kind kind;
    bool first;
    uint32_t base;   /* what it replaced at its coordinator */
    uint32_t prev;   /* the lost update that it is another try of */
    uint32_t issued; /* length of the history then */
    uint64_t ts;
    bool decided; /* its coordinator told the client, or died */
};

struct rig_message {
    struct msg msg;
    uint64_t sent_us;
    uint32_t update;    /* whose value it carries */
    uint32_t from_born; /* incarnations: the epoch that admitted them */
    uint32_t to_born;
    uint8_t from;
    uint8_t to;
    bool used;
    bool empty_chunk; /* a chunk of a donor that has no entry; msg is unused */
};

struct rig_mail {
    uint32_t slot;
    uint8_t code;
};

struct rig_node {
    struct key_meta meta;
    uint32_t value; /* the update whose value is stored */
    struct view view;
    struct slot slots[RIG_SLOTS];
    uint32_t operation[RIG_SLOTS]; /* the update that waits for this slot; 0: none */
    bool gated[RIG_SLOTS];         /* a completion was held back */
    struct hermes_worker worker;
    struct rig_mail mail[RIG_MAILS];
    uint32_t mails;
    uint32_t again;  /* a lost first update that is to be tried again; 0: none */
    uint32_t parked; /* operations that wait for the key */
    bool crashed;
    bool copied; /* a shadow that has every chunk */
    bool confirms;
    uint32_t reads_done; /* asynchronous reads: confirmed, and refused */
    uint32_t reads_lost;
};

struct rig {
    struct hermes_config config;
    struct random random;
    uint64_t now_us;
    uint8_t n;
    struct rig_node nodes[RIG_NODES];
    struct view views[RIG_VIEWS]; /* views[0] has epoch 1 */
    uint32_t nviews;
    struct rig_message bag[RIG_MESSAGES];
    struct rig_update updates[RIG_UPDATES];
    uint32_t nupdates;
    bool mail_waits; /* outcomes lie in the mailbox until rig_mail is called */
    bool gate;       /* completions are held back until rig_nudge is called */
    bool no_life;    /* messages live for ever, against the assumption of rule 12 */
    bool first_cid;  /* every update takes the first c_id of its member */
    bool ignore_gen; /* answers reach slots whatever their generation */

    /* History: updates in the order in which they could first be read anywhere. */
    uint32_t hist[RIG_UPDATES];
    uint32_t nhist;
    struct {
        uint32_t update;
        uint32_t at;
    } done[RIG_UPDATES];
    uint32_t ndone;
    uint32_t aborted[RIG_UPDATES];
    uint32_t naborted;
    const char *violation; /* the first property that was broken */
    uint64_t steps;
};

enum rig_start {
    RIG_START_VALUE,
    RIG_START_TOMBSTONE,
    RIG_START_NOTHING,
    RIG_START_FORGETTING, /* an agreed tombstone: some have forgotten it, some have not yet */
};

/* n nodes in epoch 1, all operational, all Valid at the start value. */
void rig_init(struct rig *r, uint8_t n, enum rig_start start, uint64_t rules_off, uint64_t seed);

/* ---- Clients ---- */
/* Issues an update at a readable key; its id. */
uint32_t rig_update(struct rig *r, uint8_t node, enum rig_kind kind);
/* Tries the node's lost first update again. */
void rig_again(struct rig *r, uint8_t node);
/* A read or an update that finds the key not readable. */
void rig_park(struct rig *r, uint8_t node);
void rig_prod(struct rig *r, uint8_t node); /* a parked operation waited long */
/* Starts an asynchronous read. */
void rig_check(struct rig *r, uint8_t node);
bool rig_readable(const struct rig *r, uint8_t node);

/* ---- Messages ---- */
/* The oldest message of that kind between the two, or -1. update 0: any; else only about its ts. */
int rig_find(const struct rig *r, uint8_t from, uint8_t to, uint8_t kind, uint32_t update);
/* Delivers a message; keep leaves it in the bag for another delivery. */
void rig_deliver(struct rig *r, int message, bool keep);
/* Delivers the oldest such message if there is one. */
bool rig_pass(struct rig *r, uint8_t from, uint8_t to, uint8_t kind, uint32_t update);
bool rig_copy(struct rig *r, uint8_t from, uint8_t to, uint8_t kind,
              uint32_t update);                                       /* keeps it */
void rig_lose(struct rig *r, uint8_t from, uint8_t to, uint8_t kind); /* all of them */
void rig_lose_all(struct rig *r);

/* ---- Time ---- */
void rig_advance(struct rig *r, uint64_t us);
/* Fires the timers of a node's flows: of one kind (enum hermes_flow), or of all (0). */
void rig_timer(struct rig *r, uint8_t node, uint8_t kind);
void rig_timer_slot(struct rig *r, uint8_t node, uint32_t slot);
void rig_sweep(struct rig *r, uint8_t node);
/* Delivers a node's mail, and nudges what was held back. */
void rig_mail(struct rig *r, uint8_t node);
void rig_nudge(struct rig *r, uint8_t node);

/* ---- Views: decided globally, adopted node by node ---- */
const struct view *rig_newest(const struct rig *r);
void rig_drop(struct rig *r, uint8_t node);
void rig_admit(struct rig *r, uint8_t node); /* a new incarnation, as a shadow; it adopts */
void rig_promote(struct rig *r, uint8_t node);
void rig_adopt(struct rig *r, uint8_t node); /* the newest view */
void rig_adopt_epoch(struct rig *r, uint8_t node, uint32_t epoch);
void rig_crash(struct rig *r, uint8_t node);
/* A donor answers a shadow of its epoch: the item, or that there is none. */
void rig_chunk(struct rig *r, uint8_t donor, uint8_t shadow);
bool rig_leased(const struct rig *r, uint8_t node);

/* Delivers everything and runs all timers until nothing changes: whether every operation was
 * decided, every slot is free and every member Valid at the same update. */
bool rig_settle(struct rig *r);

/* What stands where, for the eyes of whoever looks into a failing seed. */
void rig_print(const struct rig *r);

#endif
