/* Several pure ZAB machines, a few keys, and FIFO lanes, driven by hand or at random: the test says
 * what is delivered when, who learns which view, who crashes. The rig does what the node does with
 * effects (docs/ENGINE.md): it holds the logs, gates what is not ready, tries again what was lost,
 * lets a session's reads wait for its updates. It keeps a history that the protocol does not see,
 * by which it judges every step. */
#ifndef HORKOS_TESTS_SUPPORT_ZAB_RIG_H
#define HORKOS_TESTS_SUPPORT_ZAB_RIG_H

#include "base/random.h"
#include "engine/zab/machine.h"

#define RIG_NODES 5u
#define RIG_WORKERS 2u
#define RIG_KEYS 3u
#define RIG_SLOTS 8u
#define RIG_SESSIONS 2u /* a worker */
#define RIG_LANE 512u
#define RIG_ENTRIES 1024u
#define RIG_UPDATES 1024u
#define RIG_VIEWS 64u
#define RIG_ENTRY_BYTES 100u /* what every entry counts for */

enum rig_kind { RIG_WRITE, RIG_DELETE, RIG_RMW };

struct rig_update {
    uint8_t kind; /* enum rig_kind */
    uint8_t key;
    uint8_t node, worker, session;
    uint32_t born;   /* incarnation of the node */
    uint32_t number; /* in its session */
    uint32_t base;   /* RMW: the value that it was computed on */
    uint64_t entry;  /* in the order; 0: none yet */
    bool issued, done;
};

struct rig_packet {
    struct msg msg;
    uint32_t update;
    uint32_t from_born, to_born;
};

struct rig_lane {
    struct rig_packet packets[RIG_LANE];
    uint32_t head, tail;
};

struct rig_mail {
    uint32_t slot, gen;
    uint8_t code;
};

struct rig_session {
    uint32_t updates[RIG_SLOTS]; /* not done, in order */
    uint32_t n;
    uint32_t numbers;
    uint64_t seen; /* its reads and updates so far were of a prefix that long */
};

struct rig_worker {
    struct zab_worker zab;
    struct view view;
    struct slot slots[RIG_SLOTS];
    uint32_t updates[RIG_SLOTS]; /* whose slot it is */
    struct rig_mail mail[64];
    uint32_t mails;
    uint32_t ready_told;
    struct rig_session sessions[RIG_SESSIONS];
};

struct rig_entry {
    struct msg msg;
    uint32_t update;
};

struct rig_node {
    struct rig_worker workers[RIG_WORKERS];
    struct {
        struct key_meta meta;
        uint32_t value; /* update; 0: absent */
    } keys[RIG_KEYS];
    struct rig_entry log[RIG_ENTRIES]; /* of entry e: log[e % RIG_ENTRIES] */
    uint64_t first, last, taken;
    uint32_t ready_epoch;
    uint32_t born;   /* epoch that admitted it; 0: no process */
    uint32_t copied; /* bits of keys whose items came */
    bool crashed, serves;
};

struct rig {
    struct zab_config config;
    struct random random;
    uint8_t n;
    struct rig_node nodes[RIG_NODES];
    struct view views[RIG_VIEWS];
    uint32_t nviews;
    struct rig_lane lanes[RIG_NODES][RIG_WORKERS][RIG_NODES][RIG_WORKERS];

    struct rig_update updates[RIG_UPDATES];
    uint32_t nupdates;
    uint32_t order[RIG_ENTRIES]; /* by entry, as it was first taken by anybody */
    uint64_t norder;
    uint32_t values[RIG_ENTRIES][RIG_KEYS]; /* what the keys hold after each entry */
    bool collide;                           /* all keys share a place of the leader's table */
    const char *violation;
    uint64_t steps, refusals, reads;
};

/* n nodes in epoch 1, all operational; the first views are adopted and everybody is ready. */
void rig_init(struct rig *r, uint8_t n, uint64_t rules_off, uint64_t seed);
/* The same, but nobody has adopted anything. */
void rig_init_cold(struct rig *r, uint8_t n, uint64_t rules_off, uint64_t seed);

/* ---- Clients ---- */
/* An update in a session; its id, 0 if the session or the worker cannot take one now. */
uint32_t rig_update(struct rig *r, uint8_t node, uint8_t worker, uint8_t session,
                    enum rig_kind kind, uint8_t key);
/* Issues what waits to be issued (again), in the order of each session. */
void rig_issue(struct rig *r, uint8_t node, uint8_t worker);
/* Reads a key if the node serves and no update of the session is open; judges what is read. */
bool rig_read(struct rig *r, uint8_t node, uint8_t worker, uint8_t session, uint8_t key);
bool rig_may_read(const struct rig *r, uint8_t node);

/* ---- Lanes ---- */
/* Delivers the oldest packet of a lane; false: there is none, or its epoch is not adopted yet. */
bool rig_deliver(struct rig *r, uint8_t from, uint8_t from_worker, uint8_t to, uint8_t to_worker);
/* All that lies between the workers 0 of two nodes now. */
void rig_pass(struct rig *r, uint8_t from, uint8_t to);
bool rig_mail(struct rig *r, uint8_t node, uint8_t worker);
/* Tells a worker's flows that their node is ready. */
bool rig_tell(struct rig *r, uint8_t node, uint8_t worker);
/* The end of a poll of worker 0. */
void rig_flush(struct rig *r, uint8_t node);

/* ---- Views: decided globally, adopted worker by worker ---- */
const struct view *rig_newest(const struct rig *r);
/* The next view: drops, admits (fresh processes of nodes that have none) and promotes. */
void rig_view(struct rig *r, nodeset drops, nodeset admits, nodeset promotes);
bool rig_may_drop(const struct rig *r, nodeset drops);
void rig_adopt_worker(struct rig *r, uint8_t node, uint8_t worker);
void rig_adopt(struct rig *r, uint8_t node);
void rig_crash(struct rig *r, uint8_t node);
bool rig_alive(const struct rig *r, uint8_t node);
/* A donor's item of a key to a shadow. */
bool rig_chunk(struct rig *r, uint8_t donor, uint8_t shadow, uint8_t key);
void rig_sweep(struct rig *r, uint8_t node, uint8_t key);

/* Delivers, flushes, adopts and issues until nothing changes. */
void rig_run(struct rig *r);
/* Lets n rounds of delivering and flushing pass without adopting or issuing anything. */
void rig_exchange(struct rig *r, uint32_t rounds);
/* rig_run, then: whether all members are level, equal, and every open update was decided. */
bool rig_settle(struct rig *r);
/* Drops the members whose process is gone. */
void rig_end_faults(struct rig *r);
/* One random action; faults: whether crashes and views are among them. */
void rig_random_step(struct rig *r, bool faults);
/* ---- What the two files of the rig share ---- */
const uint8_t *rig_key_name(uint8_t key);
void rig_put_item(struct rig *r, uint8_t from, uint8_t to, const struct msg *item, uint32_t update);
void rig_step_slots_view(struct rig *r, uint8_t node, uint8_t worker);
void rig_step_view(struct rig *r, uint8_t node);

/* Whether the newest view's leader stands still for lack of witnesses (rule 6). */
bool rig_stands_still(const struct rig *r);

#endif
