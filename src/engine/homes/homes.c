/* The slot map, every member: which map it has, by which its node acts, what it says.
 *
 * docs/protocols/slots.md has the rules S1.. with the execution behind each, the messages
 * and the table; [G] has no such protocol.
 *
 * Invariants:
 *   I1  map is complete as of version, or version is 0.
 *   I2  Maps of members of one epoch that have maps of that epoch differ by at most one step (S6).
 *   I3  If any member was ready in an epoch, all its members have a map of it (S7).
 *   I4  A slot that is STABLE has all its keys at its home, by whichever member's map (S1 to S9).
 *
 *               all heard, newest is its own           announced       had by all
 *   GATHER --------------------------------> ANNOUNCE ----------> WAIT ----------> QUIET
 *      |          it has fetched the newest     ^  ^                                  |
 *      +----------> FETCHING -------------------+  +----------------------------------+
 */
#include "engine/homes/homes.h"

#include <string.h>

#include "engine/homes/internal.h"

/* ---- Small helpers ---- */

uint32_t homes_run_length(const uint32_t *map, uint32_t first)
{
    uint32_t n = 1;
    while (first + n < HASH_SLOTS && map[first + n] == map[first]) {
        n++;
    }
    return n;
}

void homes_send(struct homes_step *s, enum homes_kind kind, uint8_t to, uint64_t version,
                uint8_t flags)
{
    struct effect *e = effects_add(s->fx, EFF_SEND);
    e->code = (uint8_t)(s->config->first_kind + kind);
    e->to = to;
    e->flags = flags;
    e->with = EFF_NO_KEY;
    e->ts = version;
}

void homes_commit(struct homes_step *s, uint64_t version)
{
    struct homes *h = s->homes;
    memcpy(h->map, h->next, sizeof h->map);
    h->version = version;
    h->coming = 0;
    h->told = 0;
    h->answering = false;
    h->moving = false;
    for (uint32_t i = 0; i < HASH_SLOTS; i += homes_run_length(h->map, i)) {
        h->moving |= slot_home_unpack(h->map[i]).state == HOME_MOVING;
    }
    if (!homes_rule_on(s, HOMES_RULE_READY) && homes_version_epoch(version) == h->epoch) {
        h->ready_epoch = h->epoch;
    }
}

bool homes_ready(const struct homes *h)
{
    return h->epoch != 0 && h->ready_epoch == h->epoch;
}

bool homes_quiet(const struct homes *h)
{
    return h->phase == HOMES_QUIET && !h->moving;
}

/* ---- A map that comes in ---- */

static void apply_early(struct homes *h, uint32_t first, uint32_t count)
{
    memcpy(&h->map[first], &h->next[first], count * sizeof h->map[0]);
    h->told = 0;
    h->told_version = 0;
}

bool homes_take_run(struct homes_step *s, bool whole)
{
    struct homes *h = s->homes;
    const struct msg *msg = s->event->msg;
    uint32_t first = homes_run_first(msg->slot);
    uint32_t count = homes_run_count(msg->slot);
    bool last = (msg->flags & HOMES_F_LAST) != 0;
    bool fits =
        whole ? first == h->come && last == (first + count == HASH_SLOTS) : first >= h->come;
    if (!fits) {
        h->coming = 0;
        homes_drop(s, ENGINE_DROP_INVALID);
        return false;
    }
    for (uint32_t i = first; i < first + count; i++) {
        h->next[i] = msg->gen;
    }
    h->come = first + count;
    if (!homes_rule_on(s, HOMES_RULE_WHOLE)) {
        apply_early(h, first, count);
    }
    return true;
}

/* S5. */
static void on_map(struct homes_step *s)
{
    struct homes *h = s->homes;
    const struct msg *msg = s->event->msg;
    bool whole = msg->ts == homes_version(h->epoch, 0);
    if (whole ? h->version >= msg->ts : h->version != msg->ts - 1) {
        homes_drop(s, ENGINE_DROP_STALE);
        return;
    }
    if (h->coming != msg->ts) {
        h->coming = msg->ts;
        h->come = 0;
        if (!whole) {
            memcpy(h->next, h->map, sizeof h->next);
        }
    }
    if (homes_take_run(s, whole) && (msg->flags & HOMES_F_LAST) != 0) {
        h->nobody = (msg->flags & HOMES_F_NOBODY) != 0;
        homes_commit(s, msg->ts);
    }
}

static void on_fetch(struct homes_step *s)
{
    struct homes *h = s->homes;
    if (s->event->msg->ts != h->version) {
        homes_drop(s, ENGINE_DROP_STALE);
        return;
    }
    h->answering = true;
    h->answered = 0;
}

void homes_free_here(struct homes_step *s)
{
    struct homes *h = s->homes;
    if (h->leaving && !h->left) {
        h->left = true;
        effects_add(s->fx, EFF_LEFT);
    }
}

static void on_go(struct homes_step *s)
{
    struct homes *h = s->homes;
    if (homes_version_epoch(h->version) != h->epoch) {
        homes_drop(s, ENGINE_DROP_INVALID);
        return;
    }
    h->ready_epoch = h->epoch;
}

/* ---- Messages ---- */

/* Whether a message of this epoch, from this sender, is taken; else drops it. */
static bool admitted(struct homes_step *s)
{
    const struct event *event = s->event;
    uint32_t epoch = s->view->epoch;
    if (event->msg->epoch != epoch) {
        bool old = event->msg->epoch < epoch;
        homes_drop(s, old ? ENGINE_DROP_EPOCH_OLD : ENGINE_DROP_EPOCH_NEW);
        if (old) {
            effects_add(s->fx, EFF_BEHIND)->to = event->from;
        }
        return false;
    }
    if (s->homes->phase == HOMES_OUT || !nodeset_has(s->view->live, event->from) ||
        event->from == event->self) {
        homes_drop(s, ENGINE_DROP_SENDER);
        return false;
    }
    return true;
}

static void on_leader_says(struct homes_step *s)
{
    if (homes_leads(s) || s->event->from != homes_leader(s->view)) {
        homes_drop(s, ENGINE_DROP_SENDER);
        return;
    }
    switch (homes_kind_of(s)) {
    case HOMES_FETCH:
        on_fetch(s);
        break;
    case HOMES_MAP:
        on_map(s);
        break;
    case HOMES_GO:
        on_go(s);
        break;
    case HOMES_FREE:
        homes_free_here(s);
        break;
    case HOMES_STATE:
    case HOMES_RUN:
    case HOMES_HAVE:
    case HOMES_MOVED:
    case HOMES_PURGED:
    case HOMES_WISH:
    case HOMES_LOSE:
    case HOMES_KINDS:
        HK_ASSERT(false && "not a leader's");
    }
}

static void on_message(struct homes_step *s)
{
    if (!admitted(s)) {
        return;
    }
    switch (homes_kind_of(s)) {
    case HOMES_FETCH:
    case HOMES_MAP:
    case HOMES_GO:
    case HOMES_FREE:
        on_leader_says(s);
        break;
    case HOMES_STATE:
    case HOMES_RUN:
    case HOMES_HAVE:
    case HOMES_MOVED:
    case HOMES_PURGED:
    case HOMES_WISH:
    case HOMES_LOSE:
        if (homes_leads(s)) {
            homes_lead_message(s);
        } else {
            homes_drop(s, ENGINE_DROP_SENDER);
        }
        break;
    case HOMES_KINDS:
        homes_drop(s, ENGINE_DROP_INVALID);
        break;
    }
}

/* ---- What the node says ---- */

static void on_slots(struct homes_step *s)
{
    struct homes *h = s->homes;
    const struct event *event = s->event;
    uint8_t leader = homes_leader(s->view);
    bool follows = h->phase == HOMES_FOLLOW;
    bool now = homes_version_epoch(event->ts) == h->epoch;
    switch ((enum slots_code)event->code) {
    case SLOTS_MOVED:
        if (homes_leads(s) && now) {
            homes_note_moved(s, event->self, event->ts);
        } else if (follows && now) {
            homes_send(s, HOMES_MOVED, leader, event->ts, 0);
        }
        break;
    case SLOTS_PURGED:
        if (homes_leads(s) && now) {
            homes_note_purged(s, event->self, event->ts);
        } else if (follows && now) {
            homes_send(s, HOMES_PURGED, leader, event->ts, 0);
        }
        break;
    case SLOTS_LEAVE:
        h->leaving = true;
        if (follows) {
            homes_send(s, HOMES_WISH, leader, 0, HOMES_F_LEAVING);
        } else if (homes_leads(s)) {
            h->leavers |= nodeset_of(event->self);
            h->look = true;
        } else {
            homes_free_here(s); /* no member, and nobody's home */
        }
        break;
    case SLOTS_EMPTY:
        if (follows) {
            homes_send(s, HOMES_WISH, leader, 0, HOMES_F_EMPTY);
        } else if (homes_leads(s)) {
            h->empty = true;
            h->look = true;
        }
        break;
    case SLOTS_LOST:
        if (homes_leads(s)) {
            homes_note_lost(s, event->self, (uint32_t)event->ts);
        } else if (follows) {
            homes_send(s, HOMES_LOSE, leader, 0, 0);
            s->fx->e[s->fx->n - 1].slot = (uint32_t)event->ts;
        }
        break;
    case SLOTS_HOT:
        h->hot = event->ts != 0;
        h->look = true;
        break;
    }
}

/* ---- What is said when a poll ends ---- */

/* The node's table follows the map. Until it does it bears the version that it had: it may be newer
 * than that, never older. */
static void tell_node(struct homes_step *s)
{
    struct homes *h = s->homes;
    while (h->told_version != h->version && homes_room(s)) {
        uint32_t n = homes_run_length(h->map, h->told);
        struct effect *e = effects_add(s->fx, EFF_HOME);
        e->gen = h->told;
        e->slot = n;
        e->set = h->map[h->told];
        e->flags = h->nobody ? HOME_FX_NOBODY : 0;
        h->told += n;
        if (h->told == HASH_SLOTS) {
            h->told_version = h->version;
        }
        e->ts = h->told_version;
    }
}

static void answer_fetch(struct homes_step *s)
{
    struct homes *h = s->homes;
    while (h->answering && homes_room(s)) {
        uint32_t n = homes_run_length(h->map, h->answered);
        bool last = h->answered + n == HASH_SLOTS;
        homes_send(s, HOMES_RUN, homes_leader(s->view), h->version, last ? HOMES_F_LAST : 0);
        s->fx->e[s->fx->n - 1].slot = homes_run_pack(h->answered, n);
        s->fx->e[s->fx->n - 1].gen = h->map[h->answered];
        h->answered += n;
        h->answering = !last;
    }
}

static void say_have(struct homes_step *s)
{
    struct homes *h = s->homes;
    if (h->told_version == h->version && h->said_version != h->version &&
        homes_version_epoch(h->version) == h->epoch && homes_room(s)) {
        h->said_version = h->version;
        homes_send(s, HOMES_HAVE, homes_leader(s->view), h->version, 0);
    }
}

static void flush(struct homes_step *s)
{
    struct homes *h = s->homes;
    uint8_t phase;
    uint64_t told;
    do {
        phase = h->phase;
        told = h->told_version;
        tell_node(s);
        if (phase == HOMES_FOLLOW) {
            answer_fetch(s);
            say_have(s);
        } else if (homes_leads(s)) {
            homes_lead_flush(s);
        }
    } while (homes_room(s) && (h->phase != phase || h->told_version != told));
}

/* ---- A new epoch ---- */

static void on_view(struct homes_step *s)
{
    struct homes *h = s->homes;
    uint8_t self = s->event->self;
    h->epoch = s->view->epoch;
    h->coming = 0;
    h->answering = false;
    h->leavers = 0;
    h->freed = 0;
    h->moved = 0;
    h->purged = 0;
    h->empty = false;
    h->lose = false;
    h->look = false;
    h->phase = HOMES_OUT;
    if (!nodeset_has(s->view->live, self)) {
        return;
    }
    if (homes_leader(s->view) == self) {
        homes_lead_view(s);
        return;
    }
    h->phase = HOMES_FOLLOW;
    homes_send(
        s, HOMES_STATE, homes_leader(s->view), h->version,
        (uint8_t)((h->leaving ? HOMES_F_LEAVING : 0) | (s->config->compute ? HOMES_F_COMPUTE : 0)));
}

void homes_step(struct homes *h, const struct event *event, const struct homes_config *config,
                struct effects *fx)
{
    struct homes_step s = {
        .homes = h, .event = event, .view = event->view, .fx = fx, .config = config};
    switch (event->kind) {
    case EV_VIEW:
        on_view(&s);
        break;
    case EV_MSG:
        on_message(&s);
        break;
    case EV_SLOTS:
        on_slots(&s);
        break;
    case EV_FLUSH:
        flush(&s);
        break;
    case EV_READ:
    case EV_UPDATE:
    case EV_TIMER:
    case EV_FLOW:
    case EV_KEY:
    case EV_SWEEP:
    case EV_HOT:
    case EV_MOVE:
        HK_ASSERT(false && "not an event of the slot map");
    }
}
