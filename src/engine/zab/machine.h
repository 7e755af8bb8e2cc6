/* What the files of the ZAB engine share; nobody else includes it (but its tests). The key machine
 * and the flow of an update are in update.c; the worker-wide flow, which is the protocol, in
 * member.c (every member) and leader.c. */
#ifndef HORKOS_ENGINE_ZAB_MACHINE_H
#define HORKOS_ENGINE_ZAB_MACHINE_H

#include "base/assert.h"
#include "engine/engine.h"
#include "engine/zab/messages.h"
#include "engine/zab/rules.h"
#include "engine/zab/zab.h"

/* slot.kind. A slot's epoch is the one in which its update was forwarded, acked its round. */
enum zab_flow {
    ZAB_FLOW_FREE = 0,
    ZAB_FLOW_UPDATE, /* forwarded; ends when its node takes the entry, or when it is lost */
};

/* EFF_FLOW -> EV_KEY beside FLOW_CODE_NUDGE and FLOW_CODE_READY. */
enum {
    ZAB_CODE_DONE = CODE_ENGINE_FIRST, /* this node took the entry */
};

/* What worker 0 is to the epoch that it adopted. */
enum zab_phase {
    ZAB_OUT,      /* no member yet */
    ZAB_FOLLOW,   /* follows the leader */
    ZAB_GATHER,   /* leader: waits for the states of all live members */
    ZAB_FETCHING, /* leader: takes over what a member has and it lacks */
    ZAB_LEAD,     /* leader: has all that any member had, and proposes */
    ZAB_PHASES
};
extern const char *const zab_phase_names[ZAB_PHASES];

/* Entries that a member may be sent beyond what it acknowledged. */
#define ZAB_WINDOW 16384u
/* How far acknowledgements and trims may lag when there is nothing else to say, in entries; a log
 * that is a quarter full does not wait for that. */
#define ZAB_LAG 256u
/* Of the leader's table of conditions: a power of two. */
#define ZAB_TABLE 65536u

/* What the leader knows of a member. */
struct zab_member {
    uint64_t logged; /* acknowledged */
    uint64_t taken;
    uint64_t sent;
    uint32_t level; /* the epoch in which it was level last, as its STATE said */
    uint32_t fresh; /* its STATE said so */
};

/* engine_ops.worker_bytes. All but the first four fields are worker 0's. */
struct zab_worker {
    uint32_t round_epoch; /* every worker: of round */
    uint32_t round; /* every worker: how often it was refused for want of room in that epoch */
    uint32_t open;  /* every worker: its slots in use ... */
    uint32_t stale; /* ... and those of earlier rounds */

    uint32_t epoch;       /* of the adopted view */
    uint32_t level_epoch; /* when it was level last: had all that was logged before */
    uint64_t level_last;  /* where the log ended then */
    nodeset level_configured, level_old; /* the view's configured sets then */
    uint32_t ready_epoch;                /* level, and has taken all that */
    uint32_t serving_since; /* epoch that this incarnation knows its generation since */
    uint64_t generation;
    uint8_t phase; /* enum zab_phase */
    uint8_t fetch_from;
    bool started; /* its log has a beginning */
    bool reserved[5];
    uint64_t last;                   /* entry of the log */
    uint64_t commit;                 /* known to be committed, and at most last */
    uint64_t trim;                   /* entries that are needed no more */
    uint64_t told_last, told_taken;  /* what it told the leader last */
    uint64_t told_commit, told_trim; /* what the leader told last, this one or another */

    /* The leader's. */
    uint32_t led_epoch; /* the last in which it led, if nobody else was the leader since; 0: none */
    nodeset heard;      /* members whose state is known */
    nodeset synced;     /* members that were told that they are level */
    uint64_t floor;     /* where the log ended when it began to lead */
    uint64_t proposed;  /* lockstep: the end of the batch under way */
    uint64_t fetch_end; /* of what it takes over */
    struct zab_member members[NODES_MAX];
    uint32_t rounds[NODES_MAX][ZAB_WORKERS_MAX];
    uint64_t newest[ZAB_TABLE]; /* the newest entry of this leader whose key falls there */
};

/* One step of the worker-wide flow. */
struct zab_step {
    const struct event *event;
    const struct view *view;
    const struct zab_config *config;
    struct zab_worker *worker;
    struct effects *fx;
};

/* ---- update.c ---- */
void zab_key(struct key_meta *meta, void *ext, struct slot *mine, struct slot *spare,
             const struct event *event, struct effects *fx);
void zab_slot_flow(struct slot *mine, const struct event *event, struct effects *fx);

/* ---- member.c ---- */
void zab_flow(struct slot *mine, const struct event *event, struct effects *fx);
bool zab_ready(const void *worker);
/* The next entry joins this node's log. */
void zab_keep(struct zab_step *s, uint64_t entry, uint8_t origin);
/* This member has all that was logged before this epoch, up to last. */
void zab_level(struct zab_step *s, uint64_t last);
/* The log begins behind base. */
void zab_start(struct zab_step *s, uint64_t base);
void zab_take(struct zab_step *s);
void zab_trim(struct zab_step *s, uint64_t trim);

/* ---- leader.c ---- */
void zab_leader_view(struct zab_step *s);
/* FORWARD, STATE and ACK; PROPOSE while it fetches. */
void zab_leader_message(struct zab_step *s);
void zab_leader_flush(struct zab_step *s);

/* ---- Small helpers ---- */

static inline void zab_drop(struct effects *fx, enum engine_drop why)
{
    effects_add(fx, EFF_DROP)->code = (uint8_t)why;
}

/* Rule 1: whether a message of this epoch, from this sender, is taken; else drops it. */
static inline bool zab_admitted(const struct event *event, struct effects *fx)
{
    uint32_t epoch = event->view->epoch;
    if (event->msg->epoch != epoch && zab_rule_on(event->config, ZAB_RULE_EPOCH)) {
        zab_drop(fx, event->msg->epoch < epoch ? ENGINE_DROP_EPOCH_OLD : ENGINE_DROP_EPOCH_NEW);
        if (event->msg->epoch < epoch) {
            effects_add(fx, EFF_BEHIND)->to = event->from;
        }
        return false;
    }
    if (!nodeset_has(event->view->live, event->from)) {
        zab_drop(fx, ENGINE_DROP_SENDER);
        return false;
    }
    return true;
}

static inline uint8_t zab_leader(const struct view *view)
{
    return nodeset_first(view->operational);
}

static inline uint64_t zab_lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t zab_higher(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t zab_log_bytes(const struct zab_config *config)
{
    return config->log_bytes != 0 ? config->log_bytes : ZAB_LOG_BYTES;
}

/* Whether something that may lag behind by now is to be said although nothing else is. */
static inline bool zab_lags(const struct zab_step *s, uint64_t told, uint64_t now)
{
    return now - told >= ZAB_LAG ||
           (now > told && s->event->log_bytes >= zab_log_bytes(s->config) / 4);
}

#endif
