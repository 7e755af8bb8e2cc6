/* One state of the exploration of the view protocol: a few processes, each a real view machine, and
 * the messages between them. A machine takes 20 KB, nearly all of it room for 64 nodes, so a state
 * holds each in a packed form of some hundred bytes; a step unpacks it, calls view_step, and packs
 * it again. Packing is also what makes states finite in number: times are counted in ticks from
 * now, past ones are all equal, and what no later step asks for has one value.
 *
 * Views, which are large and few, are numbered as they are met (view_book.h). */
#ifndef HORKOS_EXPLORE_VIEW_STATE_H
#define HORKOS_EXPLORE_VIEW_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "explore/view_book.h"
#include "view/machine_state.h"

#define VIEWS_NODES_MAX 5u
#define VIEWS_PROCESSES_MAX 6u
#define VIEWS_MESSAGES_MAX 48u
#define VIEWS_ACCEPTS_MAX 12u
#define VIEWS_EPOCHS_MAX 5u
#define VIEWS_NOBODY 0u /* processes are named by their place plus 1 */

/* A tick is the unit of time. Heartbeats, resending and the patience of proposers are shorter than
 * one, so that they are due in every tick; leases are multiples. */
#define VIEWS_TICK_US 64u
#define VIEWS_HEARTBEAT_US 16u
/* What a machine's clock shows in every step: all that a state keeps is relative to it. */
#define VIEWS_NOW_US (UINT64_C(1) << 20)

struct views_ballot {
    uint8_t round;
    uint8_t process; /* place plus 1 */
};

/* struct view_peer; what its heartbeats said lately counts as said just now. */
struct views_peer {
    uint8_t process;    /* place plus 1, VIEWS_NOBODY: nothing known */
    uint8_t heartbeats; /* whether one came */
    uint8_t granted;    /* ticks until the grants given to it run out */
    uint8_t lease;      /* ticks that its grants support this process's lease */
    uint8_t suspected;  /* ticks */
    uint8_t heard;      /* nodes, as all sets here */
    uint8_t configured;
    uint8_t epoch;
    uint8_t admitted;
    uint8_t flags;
    uint8_t left;
    uint8_t kept_generation; /* number */
    uint8_t kept_epoch;
};

enum views_fate {
    VIEWS_FATE_NONE, /* not started: all bytes are 0 */
    VIEWS_FATE_UP,
    VIEWS_FATE_PAUSED, /* takes no step, but may later */
    VIEWS_FATE_OVER,   /* crashed, or told to wipe or to exit: only fate and node are left */
};

struct views_process {
    uint16_t view, accepted_view, held_view, value; /* numbers of views; 0: none */
    uint8_t fate;
    uint8_t node;
    uint8_t kept_generation, kept_epoch; /* what it found kept when it started */
    /* The machine. */
    uint8_t heartbeat; /* ticks until one is due */
    uint8_t beaten;    /* it sent one */
    uint8_t lease;     /* ticks */
    uint8_t drops_from;
    uint8_t wanted;
    uint8_t adopted;
    uint8_t progress, copied, leaving, peer_view, bootstrap_said;
    /* Acceptor. */
    struct views_ballot promised, accepted, held;
    uint8_t drops, quiet, accepted_age, held_until;
    /* Proposer. */
    struct views_ballot ballot, best;
    uint8_t round_seen, need_age, not_before, started_age;
    uint8_t proposed_drops, everybody, promises, acceptances, refusals, phase, flags;
    uint8_t nonces[VIEWS_NODES_MAX];
    /* What the checks remember (view_check.c). */
    uint8_t confirms; /* it would confirm its epoch to an asynchronous read */
    uint8_t member_since, was_shadow, last_epoch;
    uint8_t wedged, wedged_beats;
    uint8_t reserved;
    struct views_peer member[VIEWS_NODES_MAX];
    struct views_peer candidate[VIEWS_NODES_MAX];
};

/* A message on its way. Heartbeats and grants are delivered once, the newest of a sender to a node;
 * all others stay, to be delivered in any order and again, until nobody could make use of them. */
struct views_message {
    uint16_t view;
    uint8_t kind; /* enum view_msg_kind */
    uint8_t from; /* place of the process */
    uint8_t to;   /* node */
    uint8_t epoch;
    uint8_t generation; /* of the frame; number */
    uint8_t instance;
    struct views_ballot ballot, other; /* other: accepted of PROMISE, promised of REFUSE */
    uint8_t age;                       /* ticks since the heartbeat was sent */
    uint8_t holder;                    /* GRANT: process, plus 1 */
    uint8_t drops, configured, heard, flags, admitted;
    uint8_t kept_generation, kept_epoch;
    uint8_t reserved;
};

/* A ballot that processes accepted, so that the checks know of a decision before anybody does. */
struct views_accept {
    uint16_t view;
    struct views_ballot ballot;
    uint8_t by; /* nodes */
    uint8_t reserved;
};

enum views_budget {
    VIEWS_BUDGET_TICKS, /* of time */
    VIEWS_BUDGET_SUSPECTS,
    VIEWS_BUDGET_CRASHES,
    VIEWS_BUDGET_STARTS, /* new processes of a node */
    VIEWS_BUDGET_PAUSES,
    VIEWS_BUDGET_COPIES,
    VIEWS_BUDGET_LEAVES,
    VIEWS_BUDGET_CONFIGURES,
    VIEWS_BUDGET_HINTS,
    VIEWS_BUDGET_WEDGES,
    VIEWS_BUDGET_RUNS,  /* of a single process between two ticks of time */
    VIEWS_BUDGET_DRIFT, /* ticks that the clock of some node misses */
    VIEWS_BUDGETS
};

struct views_state {
    struct views_process process[VIEWS_PROCESSES_MAX];
    struct views_message message[VIEWS_MESSAGES_MAX]; /* in order of bytes; unused ones 0 */
    struct views_accept accept[VIEWS_ACCEPTS_MAX];    /* the same */
    uint16_t decided[VIEWS_EPOCHS_MAX + 1];           /* by epoch; 0: none */
    uint8_t kept_generation[VIEWS_NODES_MAX], kept_epoch[VIEWS_NODES_MAX]; /* by node */
    uint8_t left[VIEWS_BUDGETS];                                           /* still allowed */
    uint8_t processes;
    uint8_t messages;
    uint8_t accepts;
    uint8_t reserved;
};
_Static_assert(sizeof(struct views_process) == offsetof(struct views_process, candidate) +
                                                   VIEWS_NODES_MAX * sizeof(struct views_peer),
               "no padding: states are compared as bytes");
_Static_assert(sizeof(struct views_state) == offsetof(struct views_state, reserved) + 1,
               "no padding");

/* What the machines of a run have in common. */
struct views_times {
    uint32_t lease_us;
    uint32_t margin_us;
    uint32_t suspect_us;
};

/* The nonce of the process at this place, and back; 0 if there is none. */
uint64_t views_nonce(uint32_t place);
/* The configuration with which the process at this place runs. */
void views_config_fill(const struct views_state *state, uint32_t place, uint8_t configured,
                       const struct views_times *times, const struct view_book *book,
                       struct view_config *config_out);
/* The machine as it is at VIEWS_NOW_US. */
void views_unpack(const struct views_state *state, uint32_t place, const struct view_config *config,
                  uint64_t rules_off, const struct view_book *book, struct view_machine *m_out);
/* Leaves fate, node, what was kept at the start and what the checks remember as they are. */
void views_pack(const struct view_machine *m, struct view_book *book, struct views_process *p);
/* One tick later, but for the clock of node `slow` (NODE_NONE: of all). */
void views_age(struct views_state *state, const struct views_times *times, uint8_t slow);

/* Messages. from: its place; generation: number, of the frame. */
void views_message_pack(const struct view_msg *msg, uint32_t from, uint8_t to, uint8_t generation,
                        struct view_book *book, struct views_message *out);
void views_message_unpack(const struct views_state *state, const struct views_message *message,
                          const struct views_times *times, const struct view_book *book,
                          struct view_msg *out);

#endif
