/* When objects move: a new owner keeps what it got for a quantum, so that what it wanted it for is
 * done, however many others ask; an object that goes back and forth is kept longer each time, up to
 * a bound, so that more is done at each stop. The machine's requests back off by themselves. */
#include "node/own_internal.h"

static const struct owned_config *config_of(const struct worker *w, const struct own_record *r)
{
    return &w->node->config.spaces[r->space].owned;
}

static struct own_back *back_of(const struct worker *w, uint64_t hash)
{
    return &w->own->back[hash & (OWN_SOON_MAX - 1)];
}

void own_policy_gained(struct worker *w, struct own_record *r)
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
    r->hold_until_us = w->now_us + quantum_us;
    list_remove(&r->holds);
    list_push_back(&w->own->holds, &r->holds);
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
