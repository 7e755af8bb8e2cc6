/* Ownership ([Z] 5.4) as a pure machine: one object on one member. docs/protocols/zeus.md has the
 * states, the messages and the rules R1 to R19. Stepped by the one worker of the node that the
 * object belongs to (hash mod workers), with the entry's bucket locked. */
#ifndef HORKOS_ENGINE_ZEUS_OWN_H
#define HORKOS_ENGINE_ZEUS_OWN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "view/view.h"
#include "wire/msg.h"

enum own_type { OWN_NONE, OWN_OWNER, OWN_READER, OWN_TRIM, OWN_DEGREE, OWN_DESTROY, OWN_TYPES };

/* Who holds the object. Written in `epoch`, of whose view the mask speaks. */
struct own_vector {
    nodeset readers; /* the owner is not among them */
    uint32_t epoch;
    uint8_t owner;  /* NODE_NONE: nobody */
    uint8_t degree; /* replicas that it shall have; 0: the space's. Beside that OWN_FRESH */
    uint8_t reserved[2];
};
/* It was created and never had a reader, so nothing was written that somebody knows of (R15): with
 * its owner it has never been (R17). */
#define OWN_FRESH 0x80u
static inline uint8_t own_degree_of(const struct own_vector *vector)
{
    return vector->degree & (uint8_t)~OWN_FRESH;
}
/* What the directory store keeps of an object; ts 0: nothing is known of it. */
struct own_entry {
    uint64_t ts; /* o_ts of the last request that was applied here */
    struct own_vector vector;
};
_Static_assert(sizeof(struct own_entry) == 24, "no padding");

/* The part of the vector that still speaks of members of the view (the mask). */
struct own_vector own_masked(const struct own_vector *vector, const struct view *view);

/* The directory of an object: max(3, minority + 1) configured nodes. portable_hash: of its key, the
 * same on every member. */
nodeset own_directory(const struct view *view, uint64_t portable_hash);
/* Those of it that have all entries and may therefore drive and answer NONE: operational, and,
 * while the configured set changes, of the directory by the old set. */
nodeset own_drivers(const struct view *view, uint64_t portable_hash);
/* To whom this member sends its entry of the object (R11): live directory nodes that may not have
 * it, if this member's word counts. base: the view by whose configured sets all directory nodes
 * have entries; masked: the entry's vector. */
nodeset own_pushes(const struct view *view, const struct view *base, uint64_t portable_hash,
                   uint8_t self, const struct own_vector *masked);
/* Of those drivers the one that all members send requests to that meet others (R19); 0: none. */
nodeset own_chief(nodeset drivers, uint64_t portable_hash);

enum own_state { OWN_VALID, OWN_INVALID, OWN_DRIVE };
extern const char *const own_state_names[];

/* What somebody asked for. */
struct own_request {
    uint32_t seq;   /* of the requester: with its node and admission, the request's name */
    uint32_t retry; /* how often it was sent again */
    uint8_t type;   /* enum own_type */
    uint8_t requester;
    uint8_t target;    /* TRIM: whom; else NODE_NONE */
    uint8_t degree;    /* DEGREE */
    bool has_data;     /* the requester holds the value already */
    bool create;       /* OWNER; READER of an object that does not exist: false, answer NONE */
    uint16_t waited;   /* how long somebody has waited for it when it was sent, in units of
                          OWN_WAITED_US: the older goes first (R19) */
    uint32_t admitted; /* the requester's process: the epoch that admitted it */
};

#define OWN_WAITED_US 128u

/* Plain memory; zero when something begins on the object, freed by the node when own_idle. */
struct own_busy {
    /* Arbitration. */
    uint64_t ts; /* o_ts of the pending request; 0: none */
    struct own_vector before;
    struct own_request request;
    nodeset acked;  /* replay: whose ACKs have come */
    nodeset beaten; /* who hears of the end from here: got INVs of this driver that were beaten */
    uint64_t best;  /* replay: highest t_version among them; own request: the same */
    uint32_t epoch; /* in which INV was last taken or sent */
    uint8_t state;  /* enum own_state */
    bool owes;      /* R4: the ACK is due when the data is free */
    bool replays;   /* INVs of this member's own replay are out */
    uint8_t to;     /* owes: whom */

    /* Own request. */
    struct own_request mine; /* type OWN_NONE: none */
    uint64_t mine_ts;        /* o_ts that its ACKs name; 0: none came */
    struct own_vector mine_before;
    nodeset mine_acked;
    nodeset mine_data;  /* of them, those that have the data */
    uint64_t mine_best; /* highest t_version of an ACK's value; the node keeps that value */
    uint64_t due_us;    /* when to look again; 0: never */
    uint32_t mine_epoch;
    uint8_t driver;
    uint8_t tries;    /* NACKs in a row */
    bool waits;       /* for SETTLED, or for mine_due_us, before it is sent (again) */
    bool best_owner;  /* the value of mine_best is the owner's */
    bool stale;       /* pending from before this epoch, or from a replay: to be replayed */
    bool shut;        /* the data may not be read: a TRIM of it is pending, or was */
    bool to_replayer; /* owes: to whom replays, not to the requester */
    uint8_t reserved[1];
    uint64_t mine_due_us;
    uint64_t replay_due_us;
};
bool own_idle(const struct own_busy *busy);

enum own_ev {
    OWN_EV_WANT,  /* this node wants `want`; ignored while an own request is open: ask again when
                     that is DONE. OWN_FX_DONE at once if it has it */
    OWN_EV_MSG,   /* REQ to INVITE, ENTRY; own_msg_invalid(msg) is NULL */
    OWN_EV_FREE,  /* the data is free now, or another moment at which an owed ACK may go */
    OWN_EV_VIEW,  /* the worker adopted event.view */
    OWN_EV_GO,    /* all RECOVERED, or all SETTLED, of this epoch */
    OWN_EV_TIMER, /* busy.due_us passed */
    OWN_EV_LOOK,  /* a walk met the entry: it is forgotten if it says that there is nothing, or is
                     none of this member's business any more (R13) */
};

/* The object's data here, as the store has it. */
struct own_data {
    uint64_t version; /* t_version */
    bool have;
    bool busy; /* a commit is pending, a transaction holds it, or its quantum is not over */
    bool tombstone;
};

struct own_config {
    uint8_t degree;      /* of the space; 0: max(3, minority + 1) */
    uint32_t backoff_us; /* after a NACK; doubles, with jitter, up to 64 times */
    uint64_t rules_off;  /* HK_MUTANTS builds only: bits of enum own_rule */
};

struct own_event {
    enum own_ev kind;
    uint8_t from; /* MSG: a member of event.view */
    uint8_t self;
    bool recovered; /* all live members have RECOVERED the adopted epoch ... */
    bool settled;   /* ... and SETTLED it */
    bool alive;     /* MSG: sent in the adopted epoch. False: of an older one (VAL alone counts) */
    uint64_t now_us;
    uint64_t random;
    const struct view *view;
    nodeset directory; /* own_directory of the adopted view */
    nodeset chief;     /* own_chief of `drivers`; 0: any of them will do */
    bool contended;  /* others want the object as well, as far as the node knows: the chief is asked
                          at once */
    uint16_t waited; /* of a request that is sent in this step: own_request.waited */
    nodeset drivers; /* own_drivers of it; in an epoch that has not settled, only those that were
                          directory nodes by the configured sets of the last one that has */
    struct own_data data;
    const struct msg *msg;
    struct own_request want; /* WANT: type, target, degree, create */
    uint64_t *clock;         /* of this worker (zeus.md, Timestamps); raised, never lowered */
    uint64_t *forgot;        /* highest version of an o_ts that this worker has forgotten (R13) */
    uint32_t *seq;           /* the last one used by this worker; steps may use up one */
    const struct own_config *config;
};

enum own_kind { /* msg.kind */
                OWN_MSG_REQ = 1,
                OWN_MSG_INV,
                OWN_MSG_ACK,
                OWN_MSG_NACK,
                OWN_MSG_VAL,
                OWN_MSG_RESP,
                OWN_MSG_INVITE,
                OWN_MSG_ENTRY,
                OWN_MSG_RECOVERED, /* node-wide, no key; ts: the epoch. The node's own matter, as is
                                      ... */
                OWN_MSG_SETTLED,
                OWN_MSG_PUSHED,
                OWN_MSG_END
};
extern const char *const own_kind_names[OWN_MSG_END];

enum own_nack { OWN_NACK_BUSY = 1, OWN_NACK_EPOCH, OWN_NACK_NONE, OWN_NACK_LOST, OWN_NACK_MOOT };

/* The part of a message that is the machine's; little-endian on the wire, in front of the data's
 * value in msg.value. msg.ts is o_ts, msg.arg the sender's clock. */
struct own_body {
    struct own_vector vector;
    struct own_request request;
    uint64_t version;         /* of the value that follows, or of the sender's data */
    uint32_t vector_admitted; /* reserved for the owner's process; 0 */
    uint8_t nack;             /* enum own_nack */
    bool value;               /* data follows (of a tombstone: no bytes), with the flags vflags */
    bool replay;              /* INV: ACKs come to the sender. ACK: answers such a one */
    bool owner;               /* ACK: the sender was the owner */
    bool data;                /* ACK: the sender holds the data, at `version` */
    uint8_t vflags;           /* KEY_VALUE_FLAGS of the value; the node fills it in. msg.vflags is
                                 0: the bytes of a tombstone's message would contradict it */
    uint8_t reserved[2];
};
#define OWN_BODY_BYTES 64u
#define OWN_VERSION_MAX (1ull << 43) /* of o_ts, t_version and clock, in messages */
void own_body_encode(const struct own_body *body, uint8_t out[OWN_BODY_BYTES]);
/* Why the message cannot come from a correct member, or NULL; then own_body_decode may read it. */
const char *own_msg_invalid(const struct msg *msg);
void own_body_decode(const struct msg *msg, struct own_body *body_out);
/* What follows the body. */
struct bytes own_msg_value(const struct msg *msg);

enum own_fx {
    OWN_FX_SEND,    /* message `code` with `ts` and `body` to every node of `to` (this one included:
                        it comes back as EV_MSG). msg.arg is *clock. body.value: with the value that
                        was kept at version body.version, if one was, else with the data stored here
                        (a tombstone is a value, too) */
    OWN_FX_REVOKE,  /* no new local transaction may begin on the data: this node is no owner for it
                     */
    OWN_FX_GRANT,   /* this node is `code`: OWN_OWNER or OWN_READER, in the vector of the entry */
    OWN_FX_SHUT,    /* the data may not be read (a reader that is being trimmed) */
    OWN_FX_OPEN,    /* it may again */
    OWN_FX_KEEP,    /* the message's value, of version `ts`, is the best so far: keep it beside the
                       busy record, instead of what was kept */
    OWN_FX_INSTALL, /* the value that was kept at version `ts` becomes the data, if the store has
                       none or a lower version; if none was kept at `ts`: a tombstone does */
    OWN_FX_DROP,    /* the data is forgotten */
    OWN_FX_DONE,    /* the own request has ended: `code` is 0 (granted) or an enum own_nack */
    OWN_FX_BEHIND,  /* the sender's epoch is old: the view protocol shall tell it */
    OWN_FX_COUNT,   /* `code`: enum own_counter */
};
enum own_counter {
    OWN_MOVES,
    OWN_READS,
    OWN_NACKS,
    OWN_DEFERRED,
    OWN_REPLAYS,
    OWN_STALE,
    OWN_COUNTERS
};

struct own_effect {
    uint8_t kind; /* enum own_fx */
    uint8_t code;
    nodeset to;
    uint64_t ts;
    struct own_body body;
};
#define OWN_EFFECTS_MAX 12u
struct own_effects {
    uint32_t n;
    struct own_effect e[OWN_EFFECTS_MAX];
};

/* busy NULL: the node has no record left. The step then refuses what would need one (REQ, INV:
 * NACK; WANT: DONE with OWN_NACK_BUSY). An entry whose ts becomes 0 is removed. */
void own_step(struct own_entry *entry, struct own_busy *busy, const struct own_event *event,
              struct own_effects *fx);
/* Asserts the invariants of one object on one member. */
void own_check(const struct own_entry *entry, const struct own_busy *busy,
               const struct own_data *data, const struct view *view, uint8_t self);

/* Rules that a HK_MUTANTS build can switch off, each named in docs/protocols/zeus.md. */
enum own_rule {
    OWN_RULE_RESULT,       /* R1 */
    OWN_RULE_OWNER_ACK,    /* R2: the owner's ACK is waited for */
    OWN_RULE_ALL_ACKS,     /* R2: every live directory node's is */
    OWN_RULE_TRIM_ACK,     /* R2: the target's is */
    OWN_RULE_ONCE,         /* R3 */
    OWN_RULE_PENDING,      /* R4 */
    OWN_RULE_HIGHEST_DATA, /* R5 */
    OWN_RULE_VALID_DRIVES, /* R6 */
    OWN_RULE_HIGHER_INV,   /* R6: a lower INV is not ACKed */
    OWN_RULE_FIRST,        /* R7 */
    OWN_RULE_REPLAY_WAITS, /* R8 */
    OWN_RULE_REPLAY,       /* R8: liveness */
    OWN_RULE_STALE,        /* R9 */
    OWN_RULE_EPOCH,        /* INV and ACK count in their epoch only */
    OWN_RULE_MASK,         /* who was admitted later is no replica */
    OWN_RULE_SHADOW,       /* R11: a shadow does not drive */
    OWN_RULE_CLOCK,        /* R13 */
    OWN_RULE_RESP_AGAIN,   /* a requester that gets RESP again sends VAL again; liveness */
    OWN_RULE_ENOUGH,       /* R15; asked by the node, before a transaction commits */
    OWN_RULE_FRESH,        /* R17 */
    OWN_RULES
};
extern const char *const own_rule_names[OWN_RULES];

#endif
