/* A few view machines on a network in one thread: virtual time, clocks that drift, messages that
 * are lost, doubled and delayed, processes that crash, pause and come back. A test either lets
 * time run (view_cluster_run), or steps processes and delivers messages one by one. After every
 * step the cluster checks what the rules promise (agreement, lease safety, live majorities, ...),
 * and keeps the first fault that it finds instead of failing, so that a test can also ask for
 * one. */
#ifndef HORKOS_TESTS_VIEW_CLUSTER_H
#define HORKOS_TESTS_VIEW_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "view/machine_state.h"

#define CLUSTER_NODES_MAX 8u
#define CLUSTER_PROCESSES_MAX 128u
#define CLUSTER_MESSAGES_MAX 8192u
#define CLUSTER_DECIDED_MAX 512u
#define CLUSTER_ACCEPTS_MAX 512u

struct cluster_process {
    struct view_machine machine;
    uint8_t node;
    bool alive;
    bool paused;
    bool wedged;           /* its ticks say that a worker made no progress */
    uint32_t wedged_beats; /* heartbeats sent since then */
    uint64_t beat_us;      /* number of the last one seen */
    bool stuck;            /* its workers never adopt a view */
    bool wiped, left;      /* it was told so */
    uint32_t admitted;     /* the epoch that admitted it, as it last knew; 0: never a member */
    bool shadow;           /* its role as it last knew, in ... */
    uint32_t epoch;        /* ... this view */
    uint64_t tick_at;      /* true time, as all below */
    uint64_t adopt_at;     /* UINT64_MAX: nothing to adopt */
    uint64_t copied_at;
    uint32_t installs;
};

struct cluster_node {
    int64_t clock_offset_us;
    int64_t clock_rate_ppm;
    uint64_t kept_generation;
    uint32_t kept_epoch;
    uint64_t restart_at; /* UINT64_MAX: not planned */
    uint32_t current;    /* index of the newest process */
    bool started;
};

struct cluster_message {
    uint64_t at;
    uint64_t sequence;
    uint64_t nonce;
    uint64_t generation;
    uint32_t from; /* process */
    uint8_t to;    /* node */
    bool used;
    struct view_msg msg;
};

/* A ballot that some process accepted; by counting these the cluster knows what is decided. */
struct cluster_accept {
    uint64_t generation; /* of the view before it */
    struct view_ballot ballot;
    nodeset by;
    struct view view;
};

struct view_cluster {
    uint64_t now;
    uint32_t nodes;
    uint32_t processes;
    struct random random;
    struct view_config config; /* self, nonce and what was kept are filled in for each process */
    uint64_t rules_off;
    /* The network while time runs. */
    uint32_t loss_ppm, twice_ppm, slow_ppm;
    uint32_t delay_us_max, slow_us_max;
    uint32_t adopt_us_max, copy_us_max, return_us_max;
    bool manual;                    /* messages wait for view_cluster_deliver */
    nodeset cut[CLUSTER_NODES_MAX]; /* cut[a] has b: what a sends does not reach b */

    struct cluster_node node[CLUSTER_NODES_MAX];
    struct cluster_process process[CLUSTER_PROCESSES_MAX];
    struct cluster_message message[CLUSTER_MESSAGES_MAX];
    uint32_t heap[CLUSTER_MESSAGES_MAX], heap_n;
    uint32_t free[CLUSTER_MESSAGES_MAX], free_n;
    uint64_t sequence, nonce_next, steps, lost_room;

    struct view decided[CLUSTER_DECIDED_MAX];
    uint64_t decided_at[CLUSTER_DECIDED_MAX];
    uint32_t decided_n;
    struct cluster_accept accepts[CLUSTER_ACCEPTS_MAX];
    uint32_t accepts_n;
    struct view_effects fx;
    const char *violation; /* the first fault found; NULL: none */
    uint32_t violation_process;
};

/* Nodes 0 .. nodes - 1 with usual figures and no process yet. The cluster is some megabytes big:
 * keep it static or allocate it. */
void view_cluster_init(struct view_cluster *c, uint32_t nodes, uint64_t seed);
/* A new process of the node, which knows only what the node kept; gives its index. The older ones
 * of the node go on if they are alive. */
uint32_t view_cluster_start(struct view_cluster *c, uint8_t node);
void view_cluster_wedge(struct view_cluster *c, uint32_t process, bool wedged);
void view_cluster_crash(struct view_cluster *c, uint32_t process);
/* Lets time run: messages travel, timers fire, workers adopt, the wiped come back. */
void view_cluster_run(struct view_cluster *c, uint64_t until);
/* Cuts or mends both directions between two nodes. */
void view_cluster_cut(struct view_cluster *c, uint8_t a, uint8_t b, bool cut);
void view_cluster_mend(struct view_cluster *c);

/* By hand: from now on what is sent waits to be delivered or lost, and nothing happens by itself;
 * what was on its way is lost. Time is moved by adding to `now`. */
void view_cluster_by_hand(struct view_cluster *c);
void view_cluster_event(struct view_cluster *c, uint32_t process, struct view_event event);
void view_cluster_tick(struct view_cluster *c, uint32_t process);
/* Delivers what process `from` sent to `to`'s node and is of one of the kinds (a set of bits
 * 1 << kind), in the order of sending; answers to these wait in turn. Gives how many. */
uint32_t view_cluster_deliver(struct view_cluster *c, uint32_t from, uint32_t to, uint32_t kinds);
/* Loses them instead; ALL for any process. */
#define CLUSTER_ALL UINT32_MAX
uint32_t view_cluster_lose(struct view_cluster *c, uint32_t from, uint32_t to, uint32_t kinds);

/* The process's clock now. */
uint64_t view_cluster_clock(const struct view_cluster *c, uint8_t node);
bool view_cluster_leased(const struct view_cluster *c, uint32_t process);
struct view_machine *view_cluster_machine(struct view_cluster *c, uint8_t node);
/* The decided view of that epoch in the newest generation that has it; NULL: none. */
const struct view *view_cluster_decided(const struct view_cluster *c, uint32_t epoch);
/* All started nodes hold one view in which they are operational, and hold leases. */
bool view_cluster_settled(const struct view_cluster *c);

#endif
