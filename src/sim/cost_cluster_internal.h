/* What the files of the cost model's cluster share. Nobody else includes it. */
#ifndef HORKOS_SIM_COST_CLUSTER_INTERNAL_H
#define HORKOS_SIM_COST_CLUSTER_INTERNAL_H

#include "base/random.h"
#include "load/work.h"
#include "node/node.h"
#include "sim/cost_cluster.h"

#define COST_PS_PER_NS 1000u
#define COST_PS_PER_US 1000000u
#define COST_NEVER UINT64_MAX

/* A frame on its way. */
struct cost_parcel {
    struct cost_parcel *next;
    uint64_t at_ps; /* in an inbox: when it can be seen */
    uint32_t n;
    uint8_t from, to, worker; /* of the target */
    uint8_t bytes[];
};

struct cost_list { /* first in, first out */
    struct cost_parcel *first, *last;
};

struct cost_session {
    uint64_t key; /* its bytes are the request's */
    uint64_t issued_ps;
    uint32_t session; /* of the worker */
    bool busy, write;
    bool goes_on;               /* its transaction has another step */
    struct txn_request request; /* where transactions are played */
    struct work_txn *txn;       /* NULL: single operations */
};

struct cost_worker {
    struct cost_side *side;
    struct worker *worker;
    uint32_t index;
    struct cost_list inbox; /* by at_ps */
    struct cost_list outbox;
    struct cost_parcel *current; /* what receive has handed out last */
    struct node_stats before;    /* as the poll began */
    uint64_t packets;            /* posted or taken in this poll */
    uint64_t txns, txn_ops;      /* begun in this poll */
    uint64_t looks_before;       /* worker_looks as the poll began */
    uint64_t fill_next;          /* transactions: of its place's objects */
    struct work_txn *txn_memory;
    uint64_t now_ps;            /* of the poll */
    uint64_t busy_ps;           /* since the run began */
    double part_ns[COST_PARTS]; /* likewise, of engines with tables */
    uint64_t wake_ps;           /* when it polls next; COST_NEVER: when something comes */
    uint32_t token;             /* of the event that is planned for wake_ps */
    bool polling, asleep;
    struct cost_session sessions[COST_WINDOW_MAX];
    uint32_t idle[COST_WINDOW_MAX]; /* ring of sessions that have nothing in flight */
    uint32_t idle_first, idle_n;
    uint32_t offered; /* of them, what this poll may still take */
};

struct cost_side {
    struct cost_cluster *cluster;
    struct node *node;
    uint8_t index;
    bool dead;
    struct cost_worker *workers;
};

enum cost_event_kind { COST_EVENT_WAKE, COST_EVENT_REACH };

struct cost_event {
    uint64_t at_ps;
    uint64_t order;
    enum cost_event_kind kind;
    uint32_t token;
    struct cost_worker *worker;
    struct cost_parcel *parcel;
};

struct cost_cluster {
    struct cost_setup setup;
    struct cost_load load;
    struct cost_cpu cpu;
    struct cost_wire wire;
    struct keys keys;
    struct random random;       /* of the clients */
    struct random random_delay; /* of what is held back */
    struct cost_side sides[NODES_MAX];
    struct cost_event *heap;
    size_t heap_n, heap_capacity;
    uint64_t order;
    uint64_t now_ps;
    uint64_t from_ps, until_ps; /* of the run's measured part */
    bool filling;               /* sessions write the keys from fill_next on, each once */
    uint64_t fill_next, filled;
    uint64_t objects;  /* transactions: that exist at first */
    struct work *work; /* NULL: single operations */
    uint8_t *value;
    struct cost_result *result;
};

/* Whether rows are on memory servers, and whether the node is one. */
static inline bool cost_tables(const struct cost_cluster *c)
{
    return (c->setup.engine->traits & ENGINE_TABLES) != 0;
}
static inline bool cost_is_memory(const struct cost_side *side)
{
    const struct cost_setup *s = &side->cluster->setup;
    return s->memory == 0 || side->index >= s->nodes - s->memory;
}
/* Whether clients are on the node in this run. */
static inline bool cost_is_client(const struct cost_side *side)
{
    const struct cost_setup *s = &side->cluster->setup;
    uint32_t clients = side->cluster->load.clients;
    return side->index < s->nodes - s->memory && (clients == 0 || side->index < clients);
}

/* Whether keys have homes. */
static inline bool cost_homed(const struct cost_cluster *c)
{
    return (c->setup.engine->traits & ENGINE_HOMED) != 0;
}

/* ---- cost_cluster.c: events ---- */
void cost_plan(struct cost_cluster *c, struct cost_event event);
/* Virtual time goes on up to until_ps. */
void cost_advance(struct cost_cluster *c, uint64_t until_ps);
/* The worker polls at at_ps, if it is not to poll earlier anyway. */
void cost_wake(struct cost_worker *w, uint64_t at_ps);

/* How many requests the worker's clients begin now. */
static inline uint32_t cost_offer(const struct cost_worker *w)
{
    return w->idle_n >= w->side->cluster->load.batch ? w->idle_n : 0;
}

/* ---- cost_worker.c: what a node's worker sees of the model ---- */
void cost_env(struct cost_side *side, struct env *env_out);
/* One poll, and the time that it took. */
uint64_t cost_poll(struct cost_worker *w);
/* All idle sessions within the load's window may issue; after a change of the load. */
void cost_sessions_reset(struct cost_worker *w);

/* ---- cost_work.c: transactions ---- */
/* Adds what a poll has cost so far beyond frames and packets to its parts. Returns their sum. */
double cost_work_ns(const struct cost_worker *w, double parts[COST_PARTS]);
int cost_work_create(struct cost_cluster *c);
int cost_work_open(struct cost_worker *w);
/* All objects are written, each at its home, and have all their replicas. */
int cost_work_fill(struct cost_cluster *c);
/* False: nothing is left to be filled in. */
bool cost_work_request(struct cost_worker *w, struct cost_session *s, struct request *out);
/* What came of a transaction: whether it failed, and whether it was only refused. True: it goes on
 * with another step. */
bool cost_work_reply(struct cost_worker *w, struct cost_session *s, const struct reply *reply,
                     bool *failed_out, bool *refused_out);

/* ---- cost_start.c: nodes, views, keys ---- */
#define COST_CLUSTER_ID 1u
static inline uint64_t cost_nonce(uint8_t node)
{
    return node + 1u; /* nobody comes back as another incarnation */
}
int cost_start(struct cost_cluster *c);

#endif
