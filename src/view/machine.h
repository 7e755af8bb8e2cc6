/* The view protocol as a pure state machine: an event and the time come in, effects go out.
 * Paxos instance e+1 is run by the processes of view e; leases are granted by heartbeats.
 * No I/O, no clock, no allocation; the machine is plain memory, so that it can be copied.
 * docs/protocols/view.md holds the rules, by number, with what goes wrong without each. */
#ifndef HORKOS_VIEW_MACHINE_H
#define HORKOS_VIEW_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "base/random.h"
#include "view/message.h"
#include "view/view.h"

struct view_config {
    uint8_t self;
    uint64_t nonce;     /* random boot number of this incarnation; never 0 */
    nodeset configured; /* the nodes of the configuration file, self included */
    uint32_t lease_us; /* what a granter grants, counted from the receipt of the heartbeat; lowering
                            it needs a stop of the whole cluster */
    uint32_t margin_us; /* the holder counts lease_us - margin_us from sending (drift and delay) */
    uint32_t heartbeat_us;
    uint32_t suspect_us; /* silence after which a member is suspected */
    uint16_t cids_per_member;
    bool bootstrap; /* the operator's --bootstrap: form a first view although state was kept */
    /* What the state file kept (rule 5); 0, 0 on a first start. */
    uint64_t kept_generation;
    uint32_t kept_epoch;
    uint64_t seed; /* for ballots' back-off and new generations */
};

enum view_event_kind {
    VIEW_EVENT_TICK,      /* time passed; healthy says that every worker made progress since the
                             last tick (rule 10) */
    VIEW_EVENT_MESSAGE,   /* a view message from node `from`, incarnation `nonce` */
    VIEW_EVENT_SUSPECT,   /* `node` left INVs unacknowledged for a lease: suspected for a lease from
                             now even if its heartbeats go on, so repeat it while that lasts. Not
                             for a reset connection: silence is noticed before grants run out */
    VIEW_EVENT_COPIED,    /* this shadow holds every key: it may be promoted */
    VIEW_EVENT_ADOPTED,   /* all workers of this node are in epoch `epoch` (rule 9) */
    VIEW_EVENT_LEAVE,     /* SIGTERM: give the lease up for ever and ask to be dropped */
    VIEW_EVENT_CONFIGURE, /* the operator's new configured set (rule 6) */
    VIEW_EVENT_RECOVER,   /* the operator says that of the configured nodes only `configured` are
                             left: form a new generation of them without a majority */
    VIEW_EVENT_HINT,      /* `node` sent protocol messages of an older epoch: tell it the view */
};

struct view_event {
    enum view_event_kind kind;
    uint64_t now_us; /* CLOCK_BOOTTIME */
    uint8_t node;    /* MESSAGE: sender; SUSPECT, HINT: whom */
    bool healthy;
    bool keeps; /* TICK: what members hold that are configured no more is not elsewhere yet; they
                   stay as long as those who might drop them say so */
    uint32_t epoch;
    uint64_t nonce;      /* MESSAGE: the sender's incarnation, as its frame says */
    uint64_t generation; /* MESSAGE: the sender's generation, as its frame says; 0: none yet */
    nodeset configured;
    const struct view_msg *msg;
};

enum view_effect_kind {
    VIEW_EFFECT_SEND,    /* msg to node `to` */
    VIEW_EFFECT_INSTALL, /* view_current is new (this process need not be in it): workers adopt it,
                            then VIEW_EVENT_ADOPTED */
    VIEW_EFFECT_WIPE, /* a view without this incarnation was learned: wipe the store and come back
                            as a new incarnation (rule 8); this machine does nothing any more */
    VIEW_EFFECT_LEFT, /* the same for a process that asked to leave: it may exit */
    VIEW_EFFECT_PERSIST, /* keep view_current's {generation, epoch} before anything else leaves the
                            node; it comes before what this step sends about that view */
};

struct view_effect {
    enum view_effect_kind kind;
    uint8_t to;
    struct view_msg msg;
};

/* A step sends at most two broadcasts and a few answers. */
#define VIEW_EFFECTS_MAX (2u * NODES_MAX + 8u)
struct view_effects {
    uint32_t n;
    struct view_effect e[VIEW_EFFECTS_MAX];
};

/* Why a message or an operator's request was ignored; counted, for metrics. */
enum view_ignored {
    VIEW_IGNORED_GENERATION, /* another generation of the cluster, or this node itself */
    VIEW_IGNORED_OLD,        /* a heartbeat or grant that a newer one overtook */
    VIEW_IGNORED_INSTANCE,   /* of an instance that is decided, or not yet open here */
    VIEW_IGNORED_VOTER,      /* this process, or the sender, has no vote in the instance */
    VIEW_IGNORED_BALLOT,     /* an answer to a ballot that is over */
    VIEW_IGNORED_INVALID,    /* a proposal that cannot follow the view */
    VIEW_IGNORED_STRANGER,   /* a grant by or for a process that the view does not name */
    VIEW_IGNORED_OPERATOR,   /* CONFIGURE or RECOVER that does not fit */
    VIEW_IGNORED_REASONS
};

struct view_machine; /* defined in view/machine_state.h; caller-owned plain memory */

/* NULL, or why no machine can run with this configuration. */
const char *view_config_invalid(const struct view_config *config);
/* The configuration must be valid. */
void view_init(struct view_machine *m, const struct view_config *config, uint64_t now_us);
/* The only dispatcher. Appends to fx, which the caller has emptied. Messages for which fx has no
 * room are lost, as the network may lose them; other effects always fit. Time never runs back. */
void view_step(struct view_machine *m, const struct view_event *event, struct view_effects *fx);

/* The decided view that this process holds; epoch 0: none. */
const struct view *view_current(const struct view_machine *m);
/* The end of the lease (exclusive) by this process's clock: it may take up an operation at `now`
 * only if now < view_lease_until. 0 while it is no operational member. */
uint64_t view_lease_until(const struct view_machine *m);
/* Rule 7: whether this process may confirm `epoch` to an asynchronous read: it is a
 * member in that epoch and accepted no value for the next one. */
bool view_confirms(const struct view_machine *m, uint32_t epoch);
/* When view_step wants the next TICK at the latest. */
uint64_t view_deadline(const struct view_machine *m);

enum view_status {
    VIEW_STATUS_FORMING,  /* no view: waits for every configured node */
    VIEW_STATUS_REFUSING, /* no view, and kept state or a peer's view forbids to form one */
    VIEW_STATUS_JOINING,  /* no member yet, or a shadow */
    VIEW_STATUS_SERVING,  /* operational and leased (as of the last step) */
    VIEW_STATUS_NO_LEASE, /* operational, but without a lease */
    VIEW_STATUS_LEAVING,
    VIEW_STATUS_LOST, /* a member, but those that it hears are no majority: if the others do not
                         come back, only the operator's recover helps */
};
enum view_status view_status(const struct view_machine *m, uint64_t now_us);
const char *view_status_name(enum view_status status);
/* How often the machine ignored something for this reason. */
uint64_t view_ignored_count(const struct view_machine *m, enum view_ignored why);

/* NULL, or the invariant of the machine that does not hold (machine.c numbers them). */
const char *view_broken(const struct view_machine *m);
/* Asserts that all of them do (after every step in simulation). */
void view_check(const struct view_machine *m);

/* Rules that can be switched off in a HK_MUTANTS build, each a bit; in every other build the
 * rules are constants and cannot be switched. */
enum view_rule {
    VIEW_RULE_GRANTS_FIRST,      /* 1: accept a drop only when its grants have run out */
    VIEW_RULE_PROMISE_DROPS,     /* 2: a promise stops grants to those whom the proposal drops */
    VIEW_RULE_MEMBERS_VOTE,      /* 3: only members of the view vote in the next instance */
    VIEW_RULE_MEMBERS_GRANT,     /* 3: an unadmitted process grants nothing */
    VIEW_RULE_ADMISSION_WAIT,    /* 3: for one grant after admission, accept no drop */
    VIEW_RULE_GRANT_EPOCH,       /* 4: a grant needs a heartbeat of at least the own epoch */
    VIEW_RULE_GRANT_INCARNATION, /* 4: a grant names the incarnation */
    VIEW_RULE_GRANT_MEMBERS,     /* 4: a lease counts only grants of members of the own view */
    VIEW_RULE_ACCEPT_ENDS_LEASE, /* 4: accepting a view without itself ends a node's lease */
    VIEW_RULE_FIRST_VIEW_ALL,    /* 5: the first view needs every configured node */
    VIEW_RULE_KEPT_STATE,        /* 5: kept state refuses to form a first view */
    VIEW_RULE_JOINT_MAJORITY,    /* 6: majorities of both configured sets */
    VIEW_RULE_LIVE_MAJORITY,     /* 7: live members hold a majority */
    VIEW_RULE_CONFIRM,           /* 7: no confirmation after accepting the next epoch */
    VIEW_RULE_WIPE,              /* 8: a dropped incarnation wipes itself */
    VIEW_RULE_NO_READMIT,        /* 8: a dropped incarnation is never admitted again */
    VIEW_RULE_ADOPTED,           /* 9: promotion and donation need all workers in the epoch */
    VIEW_RULE_HEALTHY,           /* 10: heartbeats need progress of every worker */
    VIEW_RULES
};
extern const char *const view_rule_names[VIEW_RULES];
/* HK_MUTANTS builds only; the set is a field of the machine, so that one process can hold both. */
void view_switch_off(struct view_machine *m, enum view_rule rule);

#endif
