/* When objects move: a new owner keeps what it got for a quantum, so that what it wanted it for is
 * done, however many others ask; an object that goes back and forth is kept longer each time, up to
 * a bound, so that more is done at each stop. The machine's requests back off by themselves. */
#include "node/own_internal.h"

#define AGES_DIFFER_US 1000u
#define OLDER_HOLDS_US 20000u

static const struct owned_config *config_of(const struct worker *w, const struct own_record *r)
{
    return &w->node->config.spaces[r->space].owned;
}

static struct own_back *back_of(const struct worker *w, uint64_t hash)
{
    return &w->own->back[hash & (OWN_SOON_MAX - 1)];
}

void own_policy_gained(struct worker *w, struct own_record *r, uint64_t version, uint64_t holder_us)
{
    const struct owned_config *config = config_of(w, r);
    struct own_back *back = back_of(w, r->hash);
    uint64_t quantum_us = config->quantum_us;
    bool known = back->hash == r->hash && back->left_us != 0;
    if (known && w->now_us - back->left_us < config->window_us) {
        back->times++;
        for (uint32_t i = 0; i < back->times && quantum_us < config->quantum_most_us; i++) {
            quantum_us *= 2;
        }
    } else if (known) {
        back->times = 0;
    }
    r->contested = known && back->times > 0;
    quantum_us = quantum_us < config->quantum_most_us ? quantum_us : config->quantum_most_us;
    r->hold_until_us = r->hold_most_us = w->now_us + quantum_us;
    r->gained_ts = version;
    r->gained_us = w->now_us;
    r->holder_us = holder_us;
    list_remove(&r->holds);
    list_push_back(&w->own->holds, &r->holds);
}

/* The older goes first: it gets the object when the shortest quantum is over, and need not let it
 * go to who is younger before it is done, at most OLDER_HOLDS_US. That another node's age is off by
 * a message's delay makes two keep what the other wants only if they are as old to within that;
 * such two do not keep it. */
void own_policy_asked(struct worker *w, struct own_record *r, uint64_t asker_us)
{
    uint64_t until_us = 0;
    if (r->hold_until_us == 0 || r->holder_us == UINT64_MAX) {
        return;
    }
    if (asker_us + AGES_DIFFER_US < r->holder_us) {
        until_us = r->gained_us + config_of(w, r)->quantum_us;
        r->hold_until_us = until_us < r->hold_until_us ? until_us : r->hold_until_us;
    } else if (r->holder_us + AGES_DIFFER_US < asker_us) {
        until_us = r->gained_us + OLDER_HOLDS_US;
        r->hold_until_us = until_us > r->hold_until_us ? until_us : r->hold_until_us;
    }
}

/* What was not contested before is let go at once. What goes back and forth is kept a little, for
 * transactions that come one after the other: each of them prolongs it, up to the end. */
void own_policy_used(struct worker *w, struct own_record *r)
{
    uint64_t until_us = r->contested ? w->now_us + config_of(w, r)->quantum_us : 0;
    r->holder_us = UINT64_MAX;
    if (r->hold_until_us == 0) {
        return;
    }
    r->hold_until_us = until_us < r->hold_most_us ? until_us : r->hold_most_us;
    if (r->hold_until_us == 0) {
        list_remove(&r->holds);
    }
}

void own_policy_left(struct worker *w, uint64_t hash)
{
    struct own_back *back = back_of(w, hash);
    if (back->hash != hash) {
        back->hash = hash;
        back->times = 0;
    }
    back->left_us = w->now_us;
}

bool own_policy_contended(const struct worker *w, uint8_t space, uint64_t hash)
{
    const struct own_back *back = back_of(w, hash);
    uint64_t window_us = w->node->config.spaces[space].owned.window_us;
    return back->hash == hash && back->left_us != 0 && w->now_us - back->left_us < window_us;
}

bool own_policy_holds(const struct worker *w, const struct own_record *r, uint8_t type)
{
    return r != NULL && type == OWN_OWNER && w->now_us < r->hold_until_us;
}

/* Few at a time: those whose quantum has begun within the longest one. */
void own_policy_poll(struct worker *w)
{
    list_each_safe(link, following, &w->own->holds)
    {
        struct own_record *r = list_entry(link, struct own_record, holds);
        if (w->now_us < r->hold_until_us) {
            continue;
        }
        r->hold_until_us = 0;
        list_remove(&r->holds);
        if (r->busy.owes) {
            w->stats.own_held++;
            own_step_record(w, r, OWN_EV_FREE);
        } else {
            own_record_settle(w, r);
        }
    }
}

uint64_t own_policy_deadline(const struct worker *w)
{
    uint64_t due = UINT64_MAX;
    list_each(link, &w->own->holds)
    {
        const struct own_record *r = list_entry(link, struct own_record, holds);
        due = r->hold_until_us < due ? r->hold_until_us : due;
    }
    return due;
}
