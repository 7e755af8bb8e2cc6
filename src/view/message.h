/* The messages of the view protocol: fixed-width structs, one for each kind, and their encoding.
 * A frame around them carries cluster, generation, sender and incarnation (src/wire); a message
 * repeats none of these, the machine gets them in its event. */
#ifndef HORKOS_VIEW_MESSAGE_H
#define HORKOS_VIEW_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/nodeset.h"
#include "view/view.h"

/* Ballots order by round, then node, then nonce: no two processes ever use the same one. All
 * zero: no ballot. */
struct view_ballot {
    uint64_t round;
    uint64_t nonce;
    uint8_t node;
    uint8_t reserved[7];
};
_Static_assert(sizeof(struct view_ballot) == 24, "no hidden padding");

/* Below 0 if a comes before b, 0 if they are the same ballot, else above 0. */
int view_ballot_compare(const struct view_ballot *a, const struct view_ballot *b);

static inline bool view_ballot_none(const struct view_ballot *b)
{
    return b->round == 0;
}

enum view_msg_kind {
    VIEW_MSG_HEARTBEAT = 1, /* to every configured node: alive; a request for a grant or to join */
    VIEW_MSG_GRANT = 2,     /* answer to a heartbeat: counts towards the sender's lease */
    VIEW_MSG_VIEW = 3,      /* a decided view */
    VIEW_MSG_ASK = 4,       /* the sender holds only `epoch`; it wants the receiver's view */
    VIEW_MSG_PREPARE = 5,   /* Paxos phase one ... */
    VIEW_MSG_PROMISE = 6,
    VIEW_MSG_ACCEPT = 7, /* ... and phase two */
    VIEW_MSG_ACCEPTED = 8,
    VIEW_MSG_REFUSE = 9, /* answer to PREPARE or ACCEPT: promised higher, or busy with another */
};

enum view_heartbeat_flag {
    VIEW_HEARTBEAT_COPIED = 1,    /* this shadow holds every key and is in `epoch` */
    VIEW_HEARTBEAT_LEAVING = 2,   /* it stopped serving for good: its grants are given back */
    VIEW_HEARTBEAT_BOOTSTRAP = 4, /* its operator said --bootstrap */
    VIEW_HEARTBEAT_FLAGS = 7,
};

struct view_heartbeat {
    uint64_t sent_us;   /* the sender's clock; rises with every heartbeat, so it numbers them */
    nodeset heard;      /* nodes that the sender has heard lately */
    nodeset configured; /* the sender's configuration file */
    uint64_t kept_generation; /* what its state file kept; 0, 0: nothing */
    uint32_t kept_epoch;
    uint32_t admitted; /* epoch that admitted the sender; 0: it asks to be admitted */
    uint8_t flags;     /* enum view_heartbeat_flag */
    uint8_t reserved[7];
};
_Static_assert(sizeof(struct view_heartbeat) == 48, "no hidden padding");

struct view_grant {
    uint64_t holder;   /* nonce of the process that is granted */
    uint64_t sent_us;  /* of the heartbeat that this answers */
    uint32_t lease_us; /* what the granter counts, from receipt */
    uint8_t reserved[4];
};
_Static_assert(sizeof(struct view_grant) == 24, "no hidden padding");

enum view_prepare_flag {
    VIEW_PREPARE_BOOTSTRAP = 1, /* an operator said --bootstrap: kept state does not forbid */
    VIEW_PREPARE_RECOVER = 2,   /* an operator said recover: `configured` are the survivors */
    VIEW_PREPARE_FLAGS = 3,
};

struct view_prepare {
    struct view_ballot ballot;
    nodeset drops;      /* members that the proposal would drop; promising stops grants to them */
    nodeset configured; /* first view, recover: the nodes that must all agree; else 0 */
    uint32_t instance;  /* the epoch that is to be decided */
    uint8_t flags;      /* enum view_prepare_flag */
    uint8_t reserved[3];
};
_Static_assert(sizeof(struct view_prepare) == 48, "no hidden padding");

struct view_promise {
    struct view_ballot ballot;
    struct view_ballot accepted; /* none: nothing accepted, and view is zero */
    uint32_t instance;
    uint8_t reserved[4];
    struct view view;
};

struct view_accept {
    struct view_ballot ballot;
    uint32_t instance;
    uint8_t reserved[4];
    struct view view;
};

struct view_accepted {
    struct view_ballot ballot;
    uint32_t instance;
    uint8_t reserved[4];
};

struct view_refuse {
    struct view_ballot ballot;   /* the ballot that is refused */
    struct view_ballot promised; /* what the acceptor has promised */
    uint32_t instance;
    uint8_t reserved[4];
};

struct view_msg {
    uint8_t kind; /* enum view_msg_kind */
    uint8_t reserved[3];
    uint32_t epoch; /* of the decided view that the sender holds; 0: none */
    union {
        struct view_heartbeat heartbeat;
        struct view_grant grant;
        struct view view; /* VIEW_MSG_VIEW */
        struct view_prepare prepare;
        struct view_promise promise;
        struct view_accept accept;
        struct view_accepted accepted;
        struct view_refuse refuse;
    };
};
_Static_assert(sizeof(struct view_promise) == 56 + sizeof(struct view), "no hidden padding");
_Static_assert(sizeof(struct view_accept) == 32 + sizeof(struct view), "no hidden padding");
_Static_assert(sizeof(struct view_accepted) == 32, "no hidden padding");
_Static_assert(sizeof(struct view_refuse) == 56, "no hidden padding");
_Static_assert(sizeof(struct view_msg) == 8 + sizeof(struct view_promise), "no hidden padding");

const char *view_msg_name(uint8_t kind);

/* NULL, or why no process that follows the protocol sends such a message. */
const char *view_msg_invalid(const struct view_msg *msg);

/* Little-endian. encode: msg must be valid; returns the length. decode: HK_ERR_CORRUPT for bytes
 * that no encode writes (trailing ones, too) and for an invalid message; all of msg_out is then
 * indeterminate. What decode gives encodes to the same bytes. */
#define VIEW_MSG_ENCODED_MAX (64u + VIEW_ENCODED_MAX)
uint32_t view_msg_encode(const struct view_msg *msg, uint8_t out[VIEW_MSG_ENCODED_MAX]);
int view_msg_decode(struct bytes in, struct view_msg *msg_out) __attribute__((warn_unused_result));

#endif
