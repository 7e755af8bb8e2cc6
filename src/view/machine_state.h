/* The state of the view machine. It is plain memory without pointers or hidden padding: memcpy
 * copies a machine, and equal machines are equal bytes. Only src/view writes it. */
#ifndef HORKOS_VIEW_MACHINE_STATE_H
#define HORKOS_VIEW_MACHINE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "base/random.h"
#include "view/machine.h"
#include "view/message.h"
#include "view/view.h"

/* What this process knows of another one, by its heartbeats; times are this process's clock. */
struct view_peer {
    uint64_t nonce;              /* 0: nothing known */
    uint64_t sent_us;            /* number of its latest heartbeat (its clock) */
    uint64_t heard_us;           /* when that came */
    uint64_t since_us;           /* when it was first heard */
    uint64_t hears_us;           /* when its heartbeats last said that it hears this node */
    uint64_t again_us;           /* when its latest silence, either way, ended */
    uint64_t suspected_until_us; /* VIEW_EVENT_SUSPECT */
    uint64_t granted_until_us;   /* the grants given to it run until then */
    uint64_t lease_until_us;     /* its grants support this process's lease until then */
    uint64_t kept_generation;    /* the rest as its heartbeat said */
    nodeset heard;
    nodeset configured;
    uint32_t kept_epoch;
    uint32_t epoch;
    uint32_t admitted;
    uint8_t flags;
    uint8_t left; /* it gave its lease up: nothing is granted to it, or waited for, any more */
    uint8_t reserved[2];
};
_Static_assert(sizeof(struct view_peer) == 112, "no hidden padding");

/* The acceptor's part of Paxos instance view.epoch + 1. */
struct view_acceptor {
    struct view_ballot promised;
    struct view_ballot accepted;
    struct view_ballot held;   /* a phase-two request that waits for grants to run out (rule 2) */
    nodeset drops;             /* whom the promised or held proposal drops */
    uint64_t quiet_until_us;   /* until then: drops counts, and other proposers are refused */
    uint64_t accepted_us;      /* when */
    uint64_t held_until_us;    /* when the held request should be looked at again */
    struct view accepted_view; /* zero if nothing is accepted */
    struct view held_view;
};
_Static_assert(sizeof(struct view_acceptor) == 104 + 2 * sizeof(struct view), "no padding");

enum view_phase {
    VIEW_PHASE_IDLE,
    VIEW_PHASE_PREPARE, /* phase one: collects promises */
    VIEW_PHASE_ACCEPT,  /* phase two: collects acceptances of value */
};

/* What a view change is to do; see view_plan_make. */
struct view_plan {
    nodeset drops;
    nodeset admits;
    nodeset promotes;
    nodeset configured; /* of the next view */
    nodeset configured_old;
};

/* The proposer's part of instance view.epoch + 1. */
struct view_proposer {
    struct view_ballot ballot;
    struct view_ballot best; /* the highest accepted ballot that a promise reported */
    uint64_t round_seen;     /* no ballot up to this round is tried */
    uint64_t need_us;        /* since when there is something to change; 0: nothing */
    uint64_t not_before_us;  /* back-off after a ballot that failed */
    uint64_t started_us;     /* of the phase */
    uint64_t resend_us;
    uint64_t start_us;   /* when the next ballot starts; UINT64_MAX: there is no need for one */
    uint64_t generation; /* recover: the new generation; else 0 */
    nodeset drops;       /* as phase one named them */
    nodeset everybody;   /* first view, recover: the nodes that must all agree; else 0 */
    nodeset promised;
    nodeset accepted;
    nodeset refused;
    uint32_t lost; /* ballots that failed in a row */
    uint8_t phase; /* enum view_phase */
    uint8_t flags; /* enum view_prepare_flag */
    uint8_t reserved[2];
    uint64_t nonces[NODES_MAX]; /* first view: who promised */
    struct view value;          /* phase one: what best accepted; phase two: what is proposed */
};
_Static_assert(sizeof(struct view_proposer) == 152 + NODES_MAX * 8 + sizeof(struct view),
               "no padding");

struct view_machine {
    struct view_config config;
    struct random random;
    uint64_t rules_off; /* HK_MUTANTS builds; else 0 */

    struct view view;           /* decided; epoch 0: none */
    uint64_t now_us;            /* of the last step */
    uint64_t heartbeat_at_us;   /* when the next heartbeat is due */
    uint64_t heartbeat_sent_us; /* number of the last heartbeat */
    uint64_t lease_until_us;
    uint64_t drops_from_us;      /* rule 3: before this time no drop is accepted */
    nodeset wanted;              /* VIEW_EVENT_CONFIGURE: what the operator asked for; else 0 */
    nodeset survivors;           /* VIEW_EVENT_RECOVER: whom the operator named; else 0 */
    uint64_t survivors_until_us; /* then the order is forgotten */
    uint32_t adopted;            /* the epoch that all workers are in */
    uint8_t progress;            /* every worker made progress since the last heartbeat */
    uint8_t copied;
    uint8_t leaving;
    uint8_t gone;           /* told to wipe or to exit: no step changes anything any more */
    uint8_t peer_view;      /* a peer holds a view: this process joins, and forms none */
    uint8_t bootstrap_said; /* some node's operator said --bootstrap */
    uint8_t keeps; /* VIEW_EVENT_TICK: members that are configured no more may not be dropped yet */
    uint8_t reserved[5];
    uint64_t ignored[VIEW_IGNORED_REASONS]; /* messages and requests, by enum view_ignored */

    struct view_acceptor acceptor;
    struct view_proposer proposer;
    struct view_peer member[NODES_MAX]; /* the process that the view names; self: the lease only */
    struct view_peer candidate[NODES_MAX]; /* a process of the node that the view does not name */
};

#endif
