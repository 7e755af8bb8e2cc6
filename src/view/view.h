/* Views: who the members are, in which epoch, and in which role ([H] 4.3.3; DESIGN: a view of
 * epoch e+1 is decided by single-decree Paxos among the nodes configured in view e). This header
 * holds the plain data that everybody reads; view/machine.h holds the protocol that changes it. */
#ifndef HORKOS_VIEW_VIEW_H
#define HORKOS_VIEW_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/nodeset.h"

enum view_role {
    VIEW_ROLE_NONE = 0,
    VIEW_ROLE_SHADOW = 1, /* follows every write, serves nothing ([H] Recovery) */
    VIEW_ROLE_OPERATIONAL = 2,
};

/* A member is a process, not a node: the incarnation that the view of epoch `admitted` let in. */
struct view_member {
    uint64_t nonce;     /* the incarnation's random boot number */
    uint32_t admitted;  /* epoch that admitted it; together with the node id it names the process */
    uint32_t cid_first; /* its virtual node ids ([H] O1): cid_first .. cid_first + cid_count - 1 */
    uint16_t cid_count;
    uint8_t role; /* enum view_role */
    uint8_t reserved[5];
};
_Static_assert(sizeof(struct view_member) == 24, "no padding: views are compared as bytes");

struct view {
    uint64_t generation;     /* of the cluster: drawn by bootstrap and recover, in every frame */
    uint64_t generation_old; /* the generation that `recover` ended, so that its processes learn
                                that they were left behind; 0: none */
    uint32_t epoch;          /* 0: no view yet */
    uint32_t next_cid;       /* c_ids below it were handed out; never reused */
    nodeset configured;      /* majorities count these */
    nodeset configured_old;  /* while the configured set changes: the set before it; else 0 */
    nodeset live;            /* nodes with a member in this view, in either role */
    nodeset operational;     /* live members that serve */
    struct view_member members[NODES_MAX]; /* by node id; zero where live has no bit */
};

/* c_ids have 20 bits; 0 belongs to nobody. */
#define VIEW_CIDS_MAX (1u << 20)

/* The live member that the c_id belongs to; NODE_NONE: none. */
uint8_t view_cid_owner(const struct view *view, uint32_t cid);

/* The operational member that was admitted first, of several the one with the lowest id: it was
 * there when what the others know came to be. NODE_NONE: nobody is operational. */
uint8_t view_senior(const struct view *view);

/* Whether the process (node, nonce) is a member of the view. */
static inline bool view_has(const struct view *view, uint8_t node, uint64_t nonce)
{
    return nodeset_has(view->live, node) && view->members[node].nonce == nonce;
}

static inline bool view_operational(const struct view *view, uint8_t node, uint64_t nonce)
{
    return view_has(view, node, nonce) && nodeset_has(view->operational, node);
}

/* Whether the set holds a majority of the configured nodes, and of the old set while that
 * changes (rule 6). */
bool view_majority(const struct view *view, nodeset part);

/* NULL, or why this is no view that the protocol decides: members outside the configured sets,
 * overlapping c_ids, live members that hold no majority, nobody operational, ... */
const char *view_invalid(const struct view *view);
/* NULL, or why next cannot follow base (base epoch 0: why it cannot be the first view). */
const char *view_succession_invalid(const struct view *base, const struct view *next);
/* The operational members of base whose process is no member of next. */
nodeset view_dropped(const struct view *base, const struct view *next);

/* Encoding: little-endian, only live members; at most VIEW_ENCODED_MAX bytes. */
#define VIEW_ENCODED_MAX (48u + NODES_MAX * 24u)
uint32_t view_encode(const struct view *view, uint8_t out[VIEW_ENCODED_MAX]);
/* HK_ERR_CORRUPT for anything that no view_encode writes, and for an invalid view. */
int view_decode(struct bytes in, struct view *view_out, uint32_t *used_out)
    __attribute__((warn_unused_result));

#endif
