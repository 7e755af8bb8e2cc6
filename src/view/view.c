/* Views as data: who may follow whom, and how a view is written on the wire. The checks here are
 * the last line of defence of every process: an acceptor accepts no view that fails them. */
#include "view/view.h"

#include <stddef.h>

#include "base/assert.h"
#include "base/err.h"
#include "view/rules.h"

#define HEADER_BYTES 48u
#define MEMBER_BYTES 19u
_Static_assert(HEADER_BYTES + NODES_MAX * MEMBER_BYTES <= VIEW_ENCODED_MAX, "fits its bound");
_Static_assert(sizeof(struct view) == 56 + NODES_MAX * sizeof(struct view_member),
               "no padding: views are compared as bytes");

uint8_t view_senior(const struct view *view)
{
    uint8_t senior = NODE_NONE;
    for (nodeset rest = view->operational; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (senior == NODE_NONE || view->members[node].admitted < view->members[senior].admitted) {
            senior = node;
        }
    }
    return senior;
}

uint8_t view_cid_owner(const struct view *view, uint32_t cid)
{
    for (nodeset rest = view->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        const struct view_member *member = &view->members[node];
        /* Unsigned: a cid below cid_first becomes a huge number. */
        if (cid - member->cid_first < member->cid_count) {
            return node;
        }
    }
    return NODE_NONE;
}

bool view_majority(const struct view *view, nodeset part)
{
    return nodeset_majority(part, view->configured) &&
           (view->configured_old == 0 || nodeset_majority(part, view->configured_old));
}

static bool member_zero(const struct view_member *member)
{
    static const struct view_member zero;
    return memcmp(member, &zero, sizeof zero) == 0;
}

static const char *member_invalid(const struct view *view, uint8_t node)
{
    static const uint8_t zero[sizeof view->members[0].reserved];
    const struct view_member *member = &view->members[node];

    if (member->nonce == 0) {
        return "member without a nonce";
    }
    if (member->admitted == 0 || member->admitted > view->epoch) {
        return "member admitted in no epoch up to this one";
    }
    if (member->cid_count == 0 || member->cid_first == 0 || member->cid_first > view->next_cid ||
        member->cid_count > view->next_cid - member->cid_first) {
        return "member's c_ids outside those handed out";
    }
    if (member->role != VIEW_ROLE_SHADOW && member->role != VIEW_ROLE_OPERATIONAL) {
        return "member without a role";
    }
    if ((member->role == VIEW_ROLE_OPERATIONAL) != nodeset_has(view->operational, node)) {
        return "operational set differs from the roles";
    }
    if (memcmp(member->reserved, zero, sizeof zero) != 0) {
        return "member's reserved bytes are not zero";
    }
    return NULL;
}

static bool cids_overlap(const struct view *view)
{
    for (nodeset a = view->live; a != 0; a &= a - 1) {
        const struct view_member *one = &view->members[nodeset_first(a)];
        for (nodeset b = a & (a - 1); b != 0; b &= b - 1) {
            const struct view_member *two = &view->members[nodeset_first(b)];
            if (one->cid_first < two->cid_first + two->cid_count &&
                two->cid_first < one->cid_first + one->cid_count) {
                return true;
            }
        }
    }
    return false;
}

const char *view_invalid(const struct view *view)
{
    if (view->epoch == 0 || view->generation == 0) {
        return "view without an epoch or a generation";
    }
    if (view->generation_old == view->generation) {
        return "generation that ends itself";
    }
    if (view->next_cid > VIEW_CIDS_MAX) {
        return "more c_ids than there are";
    }
    if (view->configured == 0 || view->configured == view->configured_old) {
        return "configured sets empty or equal";
    }
    if (!nodeset_within(view->live, view->configured | view->configured_old)) {
        return "live member that is not configured";
    }
    if (view->operational == 0 || !nodeset_within(view->operational, view->live)) {
        return "nobody operational, or operational but not live";
    }
    /* Where rules can be switched off the simulator must be able to send such a view. */
    if (!VIEW_RULES_SWITCHABLE && !view_majority(view, view->live)) {
        return "live members hold no majority";
    }
    for (uint8_t node = 0; node < NODES_MAX; node++) {
        if (!nodeset_has(view->live, node)) {
            if (!member_zero(&view->members[node])) {
                return "member that is not live";
            }
            continue;
        }
        const char *why = member_invalid(view, node);
        if (why != NULL) {
            return why;
        }
    }
    return cids_overlap(view) ? "overlapping c_ids" : NULL;
}

static bool member_stays(const struct view *base, const struct view *next, uint8_t node)
{
    return nodeset_has(base->live, node) && nodeset_has(next->live, node) &&
           base->members[node].nonce == next->members[node].nonce &&
           base->members[node].admitted == next->members[node].admitted;
}

nodeset view_dropped(const struct view *base, const struct view *next)
{
    nodeset dropped = 0;
    for (nodeset rest = base->operational; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (!member_stays(base, next, node)) {
            dropped |= nodeset_of(node);
        }
    }
    return dropped;
}

/* A configured set changes only through a view that names both sets (rule 6), and by recover. */
static bool configured_follows(const struct view *base, const struct view *next)
{
    if (next->generation != base->generation) {
        return next->configured_old == 0 &&
               nodeset_within(next->configured, base->configured | base->configured_old);
    }
    if (next->configured == base->configured) {
        return next->configured_old == base->configured_old || next->configured_old == 0;
    }
    return base->configured_old == 0 && next->configured_old == base->configured;
}

const char *view_succession_invalid(const struct view *base, const struct view *next)
{
    if (next->epoch != base->epoch + 1) {
        return "epoch does not follow";
    }
    if (next->next_cid < base->next_cid) {
        return "c_ids handed out again";
    }
    if (base->epoch == 0) {
        return next->live == next->configured && next->operational == next->live &&
                       next->configured_old == 0 && next->generation_old == 0
                   ? NULL
                   : "first view that is not all configured nodes, operational";
    }
    if (next->generation == base->generation ? next->generation_old != base->generation_old
                                             : next->generation_old != base->generation) {
        return "generation does not follow";
    }
    if (!configured_follows(base, next)) {
        return "configured set changed without naming the old one";
    }
    for (nodeset rest = next->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        const struct view_member *now = &next->members[node];
        if (member_stays(base, next, node)) {
            const struct view_member *was = &base->members[node];
            if (now->cid_first != was->cid_first || now->cid_count != was->cid_count ||
                now->role < was->role) {
                return "member that stays but changed its c_ids or lost its role";
            }
        } else if (now->admitted != next->epoch || now->role != VIEW_ROLE_SHADOW ||
                   now->cid_first < base->next_cid) {
            return "new member that is no fresh shadow";
        }
    }
    return NULL;
}

uint32_t view_encode(const struct view *view, uint8_t out[VIEW_ENCODED_MAX])
{
    uint8_t *p = out + HEADER_BYTES;

    HK_CHECK(view_invalid(view) == NULL);
    put_u64(out, view->generation);
    put_u64(out + 8, view->generation_old);
    put_u32(out + 16, view->epoch);
    put_u32(out + 20, view->next_cid);
    put_u64(out + 24, view->configured);
    put_u64(out + 32, view->configured_old);
    put_u64(out + 40, view->live);
    for (nodeset rest = view->live; rest != 0; rest &= rest - 1) {
        const struct view_member *member = &view->members[nodeset_first(rest)];
        put_u64(p, member->nonce);
        put_u32(p + 8, member->admitted);
        put_u32(p + 12, member->cid_first);
        put_u16(p + 16, member->cid_count);
        p[18] = member->role;
        p += MEMBER_BYTES;
    }
    return (uint32_t)(p - out);
}

int view_decode(struct bytes in, struct view *view_out, uint32_t *used_out)
{
    if (in.n < HEADER_BYTES) {
        return HK_ERR_CORRUPT;
    }
    memset(view_out, 0, sizeof *view_out);
    view_out->generation = get_u64(in.at);
    view_out->generation_old = get_u64(in.at + 8);
    view_out->epoch = get_u32(in.at + 16);
    view_out->next_cid = get_u32(in.at + 20);
    view_out->configured = get_u64(in.at + 24);
    view_out->configured_old = get_u64(in.at + 32);
    view_out->live = get_u64(in.at + 40);
    uint32_t used = HEADER_BYTES + nodeset_count(view_out->live) * MEMBER_BYTES;
    if (in.n < used) {
        return HK_ERR_CORRUPT;
    }
    const uint8_t *p = in.at + HEADER_BYTES;
    for (nodeset rest = view_out->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        struct view_member *member = &view_out->members[node];
        member->nonce = get_u64(p);
        member->admitted = get_u32(p + 8);
        member->cid_first = get_u32(p + 12);
        member->cid_count = get_u16(p + 16);
        member->role = p[18];
        if (member->role == VIEW_ROLE_OPERATIONAL) {
            view_out->operational |= nodeset_of(node);
        }
        p += MEMBER_BYTES;
    }
    *used_out = used;
    return view_invalid(view_out) == NULL ? HK_OK : HK_ERR_CORRUPT;
}
