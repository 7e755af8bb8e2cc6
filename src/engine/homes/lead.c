/* The slot map, the leader: the senior member of the view (view_senior). It first finds the
 * newest map, then changes it one step at a time. */
#include "engine/homes/internal.h"

#include <string.h>

static nodeset others(const struct homes_step *s)
{
    return s->view->live & ~nodeset_of(s->event->self);
}

/* S13. */
static nodeset able(const struct homes_step *s)
{
    bool roles = homes_rule_on(s, HOMES_RULE_ROLE);
    return s->view->operational & ~(roles ? s->homes->computers : 0);
}

/* Who may get slots. */
static nodeset stayers(const struct homes_step *s)
{
    return able(s) & ~s->homes->leavers;
}

/* Who gets those that are nobody's: if all want to leave somebody has to be their home. Nobody, if
 * all compute. */
static nodeset takers(const struct homes_step *s)
{
    return stayers(s) != 0 ? stayers(s) : able(s);
}

/* Whether a member is the home of anything, or will be. */
static bool has_slots(const uint32_t *map, uint8_t node)
{
    for (uint32_t i = 0; i < HASH_SLOTS; i += homes_run_length(map, i)) {
        struct slot_home h = slot_home_unpack(map[i]);
        bool to = h.state == HOME_MOVING && h.to == node;
        if (to || (h.home == node && h.state != HOME_LOST)) {
            return true;
        }
    }
    return false;
}

/* S12. */
static void free_leavers(struct homes_step *s, const uint32_t *map)
{
    struct homes *h = s->homes;
    for (nodeset rest = h->leavers & ~h->freed; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (!homes_room(s)) {
            h->look = true;
            return;
        }
        if (stayers(s) != 0 && has_slots(map, node)) {
            continue;
        }
        h->freed |= nodeset_of(node);
        if (node == s->event->self) {
            homes_free_here(s);
        } else {
            homes_send(s, HOMES_FREE, node, h->announced, 0);
        }
    }
}

static void announce(struct homes_step *s, uint64_t version)
{
    struct homes *h = s->homes;
    h->phase = HOMES_ANNOUNCE;
    h->announced = version;
    h->sent = 0;
    h->have = 0;
    if (!homes_rule_on(s, HOMES_RULE_FREE)) {
        free_leavers(s, h->next);
    }
}

/* ---- The first map of an epoch ---- */

/* S4: members of a map's epoch were admitted no later. */
static bool gone(const struct homes_step *s, uint8_t node)
{
    bool same = s->view->members[node].admitted <= homes_version_epoch(s->homes->version) ||
                !homes_rule_on(s, HOMES_RULE_PROCESS);
    return !nodeset_has(s->view->live, node) || !same;
}

/* S3, S8, S15. */
static uint32_t after_view(const struct homes_step *s, uint32_t packed)
{
    struct slot_home h = slot_home_unpack(packed);
    if (h.state == HOME_LOST || h.state == HOME_NONE) {
        return packed;
    }
    bool going = h.state == HOME_MOVING && gone(s, h.to);
    if (!gone(s, h.home) && !going) {
        return packed;
    }
    h.to = NODE_NONE;
    if (!gone(s, h.home) && s->config->whole && homes_rule_on(s, HOMES_RULE_KEPT)) {
        h.state = HOME_STABLE;
        return slot_home_pack(h);
    }
    if (h.state == HOME_EMPTYING && !homes_rule_on(s, HOMES_RULE_NAMED)) {
        h.home = nodeset_first(takers(s));
        return slot_home_pack(h);
    }
    h.state = HOME_LOST;
    if (!homes_rule_on(s, HOMES_RULE_LOST)) {
        h.state = HOME_STABLE;
        h.home = nodeset_first(takers(s));
    }
    return slot_home_pack(h);
}

static void announce_first(struct homes_step *s)
{
    struct homes *h = s->homes;
    if (h->version == 0) {
        homes_deal(h->next, takers(s));
    } else {
        for (uint32_t i = 0; i < HASH_SLOTS; i++) {
            h->next[i] = after_view(s, h->map[i]);
        }
    }
    h->moves_since = homes_version(h->epoch, 0);
    h->empties_since = h->moves_since;
    announce(s, h->moves_since);
}

/* S2. The first that has the newest; this member itself if it is among them. */
static uint8_t newest(const struct homes_step *s)
{
    const struct homes *h = s->homes;
    uint8_t best = s->event->self;
    if (!homes_rule_on(s, HOMES_RULE_NEWEST)) {
        return best;
    }
    for (nodeset rest = h->heard; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        best = h->versions[node] > h->versions[best] ? node : best;
    }
    return best;
}

/* S1. */
static void look_if_gathered(struct homes_step *s)
{
    struct homes *h = s->homes;
    bool all = nodeset_within(s->view->live, h->heard);
    if (!all && (homes_rule_on(s, HOMES_RULE_STATES) || !view_majority(s->view, h->heard))) {
        return;
    }
    uint8_t best = newest(s);
    if (best == s->event->self) {
        announce_first(s);
        return;
    }
    h->phase = HOMES_FETCHING;
    h->fetch_from = best;
    h->fetched = h->versions[best];
    homes_send(s, HOMES_FETCH, best, h->fetched, 0);
}

void homes_lead_view(struct homes_step *s)
{
    struct homes *h = s->homes;
    uint8_t self = s->event->self;
    h->phase = HOMES_GATHER;
    h->heard = nodeset_of(self);
    h->have = 0;
    h->versions[self] = h->version;
    h->leavers = h->leaving ? nodeset_of(self) : 0;
    h->computers = s->config->compute ? nodeset_of(self) : 0;
    look_if_gathered(s);
}

/* ---- Messages ---- */

static void on_state(struct homes_step *s)
{
    struct homes *h = s->homes;
    const struct msg *msg = s->event->msg;
    uint8_t from = s->event->from;
    if (h->phase != HOMES_GATHER || nodeset_has(h->heard, from)) {
        homes_drop(s, ENGINE_DROP_STALE);
        return;
    }
    h->heard |= nodeset_of(from);
    h->versions[from] = msg->ts;
    h->leavers |= (msg->flags & HOMES_F_LEAVING) != 0 ? nodeset_of(from) : 0;
    h->computers |= (msg->flags & HOMES_F_COMPUTE) != 0 ? nodeset_of(from) : 0;
    look_if_gathered(s);
}

static void on_run(struct homes_step *s)
{
    struct homes *h = s->homes;
    const struct msg *msg = s->event->msg;
    if (h->phase != HOMES_FETCHING || s->event->from != h->fetch_from || msg->ts != h->fetched) {
        homes_drop(s, ENGINE_DROP_STALE);
        return;
    }
    if (h->coming != msg->ts) {
        h->coming = msg->ts;
        h->come = 0;
    }
    if (homes_take_run(s, true) && (msg->flags & HOMES_F_LAST) != 0) {
        homes_commit(s, msg->ts);
        announce_first(s);
    }
}

static void on_have(struct homes_step *s)
{
    struct homes *h = s->homes;
    if (h->phase != HOMES_WAIT || s->event->msg->ts != h->announced) {
        homes_drop(s, ENGINE_DROP_STALE);
        return;
    }
    h->have |= nodeset_of(s->event->from);
}

/* S9. */
void homes_note_moved(struct homes_step *s, uint8_t node, uint64_t version)
{
    struct homes *h = s->homes;
    if (version < h->moves_since && homes_rule_on(s, HOMES_RULE_MOVED)) {
        return;
    }
    h->moved |= nodeset_of(node);
    h->look = true;
}

void homes_note_purged(struct homes_step *s, uint8_t node, uint64_t version)
{
    struct homes *h = s->homes;
    if (version < h->empties_since) {
        return;
    }
    h->purged |= nodeset_of(node);
    h->look = true;
}

/* S17. */
void homes_note_lost(struct homes_step *s, uint8_t node, uint32_t slot)
{
    struct homes *h = s->homes;
    HK_ASSERT(slot < HASH_SLOTS);
    if (!h->lose) {
        memset(h->losers, NODE_NONE, sizeof h->losers);
        h->lose = true;
    }
    h->losers[slot] = node;
    h->look = true;
}

static void on_wish(struct homes_step *s)
{
    struct homes *h = s->homes;
    uint8_t flags = s->event->msg->flags;
    h->leavers |= (flags & HOMES_F_LEAVING) != 0 ? nodeset_of(s->event->from) : 0;
    h->empty |= (flags & HOMES_F_EMPTY) != 0;
    h->look = true;
}

void homes_lead_message(struct homes_step *s)
{
    const struct msg *msg = s->event->msg;
    switch (homes_kind_of(s)) {
    case HOMES_STATE:
        on_state(s);
        break;
    case HOMES_RUN:
        on_run(s);
        break;
    case HOMES_HAVE:
        on_have(s);
        break;
    case HOMES_MOVED:
        homes_note_moved(s, s->event->from, msg->ts);
        break;
    case HOMES_PURGED:
        homes_note_purged(s, s->event->from, msg->ts);
        break;
    case HOMES_WISH:
        on_wish(s);
        break;
    case HOMES_LOSE:
        homes_note_lost(s, s->event->from, msg->slot);
        break;
    case HOMES_FETCH:
    case HOMES_MAP:
    case HOMES_GO:
    case HOMES_FREE:
    case HOMES_KINDS:
        HK_ASSERT(false && "a leader's");
    }
}

/* ---- Announcing ---- */

/* The first slot from `from` on that the announced map changes; that of an epoch says all. */
static uint32_t changed_from(const struct homes *h, uint32_t from)
{
    if (h->announced == homes_version(h->epoch, 0)) {
        return from;
    }
    while (from < HASH_SLOTS && h->next[from] == h->map[from]) {
        from++;
    }
    return from;
}

static void send_runs(struct homes_step *s)
{
    struct homes *h = s->homes;
    uint32_t first = changed_from(h, h->sent);
    while (first < HASH_SLOTS && homes_room(s)) {
        uint32_t n = homes_run_length(h->next, first);
        h->sent = first + n;
        uint32_t after = changed_from(h, h->sent);
        struct effect *e = effects_add(s->fx, EFF_BCAST);
        e->code = (uint8_t)(s->config->first_kind + HOMES_MAP);
        bool last = after == HASH_SLOTS;
        uint8_t nobody = stayers(s) == 0 ? HOMES_F_NOBODY : 0; /* S16 */
        e->flags = (uint8_t)(last ? HOMES_F_LAST | nobody : 0);
        e->with = EFF_NO_KEY;
        e->set = others(s);
        e->slot = homes_run_pack(first, n);
        e->gen = h->next[first];
        e->ts = h->announced;
        first = after;
    }
    h->sent = first;
}

static void announce_flush(struct homes_step *s)
{
    struct homes *h = s->homes;
    if (others(s) != 0) {
        send_runs(s);
    } else {
        h->sent = HASH_SLOTS;
    }
    if (h->sent < HASH_SLOTS) {
        return;
    }
    h->nobody = stayers(s) == 0;
    homes_commit(s, h->announced);
    bool first = h->announced == homes_version(h->epoch, 0);
    h->phase = first || homes_rule_on(s, HOMES_RULE_ONE) ? HOMES_WAIT : HOMES_QUIET;
    h->look = true;
}

/* S6, S7. */
static void wait_flush(struct homes_step *s)
{
    struct homes *h = s->homes;
    if (h->told_version == h->announced) {
        h->have |= nodeset_of(s->event->self);
    }
    if (!nodeset_within(s->view->live, h->have) || !homes_room(s)) {
        return;
    }
    if (h->announced == homes_version(h->epoch, 0)) {
        h->ready_epoch = h->epoch;
        if (others(s) != 0) {
            struct effect *e = effects_add(s->fx, EFF_BCAST);
            e->code = (uint8_t)(s->config->first_kind + HOMES_GO);
            e->with = EFF_NO_KEY;
            e->set = others(s);
            e->ts = h->announced;
        }
    }
    h->phase = HOMES_QUIET;
    h->look = true;
}

/* ---- Changes ---- */

/* S14. */
static bool gives(const struct homes_step *s)
{
    return s->config->whole && homes_rule_on(s, HOMES_RULE_GIVEN);
}

/* What has come to its end: moves whose home has nothing left, slots that everybody has purged, and
 * those that everybody knows to have been given. */
static bool finish(struct homes_step *s)
{
    struct homes *h = s->homes;
    bool any = false;
    bool purged = nodeset_within(s->view->live, h->purged) || !homes_rule_on(s, HOMES_RULE_PURGED);
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home slot = slot_home_unpack(h->next[i]);
        bool moved = slot.state == HOME_MOVING && nodeset_has(h->moved, slot.home);
        if (!moved && slot.state != HOME_GIVEN && (slot.state != HOME_EMPTYING || !purged)) {
            continue;
        }
        slot.home = moved ? slot.to : slot.home;
        slot.to = NODE_NONE;
        slot.state = moved && gives(s) ? HOME_GIVEN : HOME_STABLE;
        h->next[i] = slot_home_pack(slot);
        any = true;
    }
    return any;
}

/* S17: before moves end, or what is lost would be given to another home as if it were whole. */
static bool lose(struct homes_step *s)
{
    struct homes *h = s->homes;
    bool any = false;
    for (uint32_t i = 0; i < HASH_SLOTS && h->lose; i++) {
        struct slot_home slot = slot_home_unpack(h->next[i]);
        bool has =
            slot.state == HOME_STABLE || slot.state == HOME_MOVING || slot.state == HOME_GIVEN;
        if (h->losers[i] == slot.home && has) {
            slot.state = HOME_LOST;
            slot.to = NODE_NONE;
            h->next[i] = slot_home_pack(slot);
            any = true;
        }
    }
    h->lose = false;
    return any;
}

static bool any_moving(const uint32_t *map)
{
    for (uint32_t i = 0; i < HASH_SLOTS; i += homes_run_length(map, i)) {
        if (slot_home_unpack(map[i]).state == HOME_MOVING) {
            return true;
        }
    }
    return false;
}

/* Composes the next step in `next`; whether there is one. */
static bool compose(struct homes_step *s, uint64_t version)
{
    struct homes *h = s->homes;
    memcpy(h->next, h->map, sizeof h->next);
    bool any = lose(s);
    any = finish(s) || any;
    bool emptied = h->empty && homes_empty(h->next, HOME_LOST, stayers(s));
    emptied = homes_empty(h->next, HOME_NONE, stayers(s)) || emptied; /* S13 */
    if (emptied) {
        h->empties_since = version;
        h->purged = 0;
        any = true;
    }
    h->empty = false;
    /* S11. */
    bool rests = !h->hot || !homes_rule_on(s, HOMES_RULE_HOT);
    if (rests && !any_moving(h->next) && homes_even(h->next, stayers(s))) {
        h->moves_since = version;
        h->moved = 0;
        any = true;
    }
    return any;
}

static void quiet_flush(struct homes_step *s)
{
    struct homes *h = s->homes;
    if (!h->look) {
        return;
    }
    h->look = false;
    if (compose(s, h->version + 1)) {
        announce(s, h->version + 1);
    } else {
        free_leavers(s, h->map);
    }
}

void homes_lead_flush(struct homes_step *s)
{
    switch ((enum homes_phase)s->homes->phase) {
    case HOMES_ANNOUNCE:
        announce_flush(s);
        break;
    case HOMES_WAIT:
        wait_flush(s);
        break;
    case HOMES_QUIET:
        quiet_flush(s);
        break;
    case HOMES_GATHER:
    case HOMES_FETCHING:
    case HOMES_OUT:
    case HOMES_FOLLOW:
    case HOMES_PHASES:
        break;
    }
}
