/* What a seed stands for: every parameter of a run, drawn before it starts. */
#ifndef HORKOS_SIM_SETUP_H
#define HORKOS_SIM_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "engine/engine.h"
#include "engine/lotus/lotus.h"
#include "node/node.h"
#include "sim/sim.h"
#include "sim/text.h"

#define PLAN_MAX SIM_PLAN_MAX
#define ROUNDS_MAX 64u
#define CLIENTS_MAX 24u
#define KEYS_MAX 8u
#define TRADERS_MAX 12u
#define WINDOW_MAX 8u

/* What a fault waits for after its time has come: the moments at which the protocol of views is
 * most easily hurt. If it does not come soon, the fault begins all the same. */
enum fault_cue {
    CUE_NONE,
    CUE_PREPARE, /* somebody is asked to promise the next view */
    CUE_ACCEPT,  /* somebody is asked to accept it */
    CUE_VIEW,    /* a first process holds a new view */
    CUE_DROP,    /* the same, of a view that drops a member */
    CUE_ADMIT,   /* ... that lets one in */
    CUE_JOINT,   /* ... that is of two configured sets */
    CUE_CHUNK,   /* a joiner asks for a part of the data */
    CUES
};
extern const char *const fault_cue_names[CUES];

/* One entry of the fault plan. Times are virtual. */
struct fault {
    enum sim_fault kind;
    bool off; /* left out (sim_config.plan_skip, faults_skip) */
    enum fault_cue cue;
    uint64_t at_us;
    uint64_t after_us; /* after its cue */
    uint64_t lasts_us;
    uint8_t node;      /* whom it befalls; BRIDGE: one end */
    uint8_t other;     /* BRIDGE: the other end */
    uint8_t worker;    /* STALL */
    bool mid;          /* CRASH, PAUSE: in mid-operation, some output of a poll not yet out */
    bool stale;        /* STALL: between reading the clock and polling */
    bool within;       /* STALL: in the middle of a poll, between two of its inputs */
    bool deaf;         /* ZOMBIE: the old process hears nobody while it stands still, and only
                          `side` afterwards */
    bool spares_old;   /* PARTITION, ONEWAY, BRIDGE: old processes do not notice */
    bool outwards;     /* ONEWAY: what the node sends is lost; else what it is sent */
    bool reboot;       /* CRASH, LEAVE: the machine restarts, so that its clock starts anew */
    nodeset side;      /* PARTITION, ONEWAY: the nodes on the other side; MAJORITY: who survives,
                          if that is no majority */
    nodeset adds;      /* RESIZE: nodes that shall be configured ... */
    nodeset removes;   /* ... and that shall not */
    uint64_t step_us;  /* CLOCK, DRIFT: by how much the clock steps forward */
    uint32_t permille; /* CRASH in mid-operation: how much of the poll's output still leaves;
                          STORM: frames lost */
    uint32_t factor;   /* SLOW: how much longer a poll takes */
};

/* Probabilities in parts per million, for each frame. */
struct weather {
    uint32_t loss_ppm;
    uint32_t duplicate_ppm;
    uint32_t reorder_ppm;
    uint32_t corrupt_ppm;
    uint32_t spike_ppm;
    uint64_t base_us; /* each frame takes base_us + [0, jitter_us] */
    uint64_t jitter_us;
    uint64_t spike_us;                              /* a spike adds up to this */
    uint8_t slowness[SIM_NODES_MAX][SIM_NODES_MAX]; /* of a link: base and jitter times so much */
    uint64_t late_us; /* a reordered or duplicated frame comes up to this later */
};

struct setup_clock {
    int64_t offset_us;
    int32_t rate_ppm;    /* how much faster than virtual time */
    int64_t wall_ms;     /* how far the calendar is off ... */
    uint64_t jump_at_us; /* ... and when it jumps by how much */
    int64_t jump_ms;
};

/* What clients do: shares of each kind of operation, of their sum. */
struct mix {
    uint32_t read, write, erase, erase_if, set_if, set_absent, add, getset;
};

struct setup {
    uint64_t seed;
    const struct engine_ops *engine;
    bool sequential;   /* of the engine: reads may lag, and answers name their places in a log */
    uint32_t nodes;    /* configured at first */
    uint32_t machines; /* and spare ones */
    uint32_t workers;  /* of the node that has the most */
    uint32_t workers_of[SIM_NODES_MAX];
    uint32_t ops;
    uint32_t drawn; /* kinds of fault that are in force */
    bool o3;
    bool async;
    bool clocks_differ;
    bool drift; /* beyond the margin: leases say nothing */
    bool versions;
    uint8_t version_max[SIM_NODES_MAX]; /* of the frames that the first process of a node knows */
    bool gentle;                        /* no frame lives long */
    bool blackout;                      /* in the end all nodes lose their power at once */
    /* Node and protocol. */
    uint64_t lease_us, margin_us, heartbeat_us, suspect_us;
    uint64_t mlt_us, grace_us, answer_us, no_lease_us, parked_us, sweep_us;
    uint32_t max_events, calls_max, flows_max, chunk_bytes, rmw_tries_max;
    uint16_t cids;
    uint64_t poll_gap_us; /* a worker that has work polls again after 1 .. this */
    /* Of engines whose keys have homes. */
    struct hot_config hot;
    uint64_t
        favour_us; /* the key that clients like best is another one after so long; 0: it stays */
    /* Of engines with transactions; traders 0: none. */
    uint32_t traders;
    uint32_t traded;       /* keys whose history is checked */
    uint32_t accounts;     /* of the bank */
    bool trade_tag;        /* all their keys have one tag, and are on one memory server */
    uint32_t trade_window; /* deals that a trader has under way at most */
    uint32_t round_deals;  /* of each trader in each round */
    uint8_t degree;        /* of the space; 0: as many replicas as the protocol thinks best */
    struct owned_config owned;
    struct lotus_config lotus;
    uint8_t roles[SIM_NODES_MAX]; /* enum node_role */
    /* Faults. */
    struct weather weather;
    struct setup_clock clocks[SIM_NODES_MAX];
    struct fault plan[PLAN_MAX];
    uint32_t plan_n;
    /* Clients. */
    uint64_t rounds[ROUNDS_MAX]; /* when clients have something to do */
    uint32_t rounds_n;
    uint32_t clients;
    uint32_t round_ops;  /* of each client in each round */
    uint32_t window_max; /* operations that a client has under way at most */
    uint64_t think_us;   /* between two operations: [0, think_us] */
    uint32_t keys;
    uint32_t registers;        /* the first of them are only read and written */
    uint32_t counters;         /* the next hold decimal numbers */
    uint32_t skew_permille;    /* of operations that go to the first key */
    uint32_t private_permille; /* that go to a key of the client's own */
    uint32_t extra_permille;   /* that are of kinds unknown to histories, on extra keys */
    uint64_t memory_max;       /* of each node's store; 0: no limit */
    uint32_t filler_bytes;
    uint32_t filler_keys;   /* written once, so that joins have something to copy */
    uint32_t value_profile; /* 0: small, 1: medium, 2: up to blobs */
    struct mix mix;
    /* Ends. */
    uint64_t life_us;     /* no frame lives longer */
    uint64_t horizon_us;  /* faults end here */
    uint64_t liveness_us; /* and within this everything must be well */
};

void setup_draw(const struct sim_config *config, uint64_t seed, struct setup *setup_out);
void setup_print(const struct setup *setup, struct text *to);
void fault_print(const struct fault *fault, struct text *to);

#endif
