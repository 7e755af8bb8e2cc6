/* What the files of the slot map share: homes.c (every member), lead.c (the leader), share.c (who
 * gets what), messages.c. */
#ifndef HORKOS_ENGINE_HOMES_INTERNAL_H
#define HORKOS_ENGINE_HOMES_INTERNAL_H

#include "base/assert.h"
#include "engine/homes/homes.h"

/* One step. */
struct homes_step {
    struct homes *homes;
    const struct event *event;
    const struct view *view;
    struct effects *fx;
    const struct homes_config *config;
};

#ifdef HK_MUTANTS
static inline bool homes_rule_on(const struct homes_step *s, enum homes_rule rule)
{
    return (s->config->rules_off >> rule & 1) == 0;
}
#else
static inline bool homes_rule_on(const struct homes_step *s, enum homes_rule rule)
{
    (void)s;
    (void)rule;
    return true;
}
#endif

static inline uint64_t homes_version(uint32_t epoch, uint32_t n)
{
    return (uint64_t)epoch << 32 | n;
}

static inline uint32_t homes_version_epoch(uint64_t version)
{
    return (uint32_t)(version >> 32);
}

/* ---- Runs on the wire: first in the lower 14 bits, count - 1 in the next 14 ---- */

#define HOMES_RUN_BITS 14u
_Static_assert(HASH_SLOTS == 1u << HOMES_RUN_BITS, "a run's fields hold every slot");

static inline uint32_t homes_run_pack(uint32_t first, uint32_t count)
{
    return first | (count - 1) << HOMES_RUN_BITS;
}

static inline uint32_t homes_run_first(uint32_t run)
{
    return run & (HASH_SLOTS - 1);
}

static inline uint32_t homes_run_count(uint32_t run)
{
    return (run >> HOMES_RUN_BITS & (HASH_SLOTS - 1)) + 1;
}

/* How many slots from `first` on have the same home, at least 1. */
uint32_t homes_run_length(const uint32_t *map, uint32_t first);

static inline bool homes_room(const struct homes_step *s)
{
    return s->fx->n < EFFECTS_MAX;
}

static inline uint8_t homes_leader(const struct view *view)
{
    return view_senior(view);
}

static inline bool homes_leads(const struct homes_step *s)
{
    return s->homes->phase >= HOMES_GATHER;
}

static inline enum homes_kind homes_kind_of(const struct homes_step *s)
{
    return (enum homes_kind)(s->event->msg->kind - s->config->first_kind);
}

static inline void homes_drop(struct homes_step *s, enum engine_drop why)
{
    effects_add(s->fx, EFF_DROP)->code = (uint8_t)why;
}

/* A message with nothing but its version and flags. */
void homes_send(struct homes_step *s, enum homes_kind kind, uint8_t to, uint64_t version,
                uint8_t flags);
/* next, as it has come in or was announced, is the map. */
void homes_commit(struct homes_step *s, uint64_t version);
/* The next run of next. Whether it fits; it is noted then. */
bool homes_take_run(struct homes_step *s, bool whole);
void homes_free_here(struct homes_step *s);

/* ---- lead.c ---- */
void homes_lead_view(struct homes_step *s);
/* STATE, RUN, HAVE, MOVED, PURGED, WISH, LOSE. */
void homes_lead_message(struct homes_step *s);
void homes_lead_flush(struct homes_step *s);
/* What a member says, this one or another. */
void homes_note_moved(struct homes_step *s, uint8_t node, uint64_t version);
void homes_note_purged(struct homes_step *s, uint8_t node, uint64_t version);
void homes_note_lost(struct homes_step *s, uint8_t node, uint32_t slot);

/* ---- share.c ---- */
/* All slots, evenly, in one run each. No takers: they are nobody's. */
void homes_deal(uint32_t *map, nodeset takers);
/* Slots in that state, which are nobody's, are emptied for those of the takers that have least.
 * Whether there were any. */
bool homes_empty(uint32_t *map, enum home_state state, nodeset takers);

#endif
