#include "hot/plan.h"

#include "base/assert.h"

uint32_t hot_plan(struct hot_tally *tally, uint32_t keys_max, double sample,
                  struct hot_change *changes, uint32_t changes_max)
{
    HK_ASSERT(sample > 0);
    struct hot_ranking ranking = {
        .least = HOT_PLAN_LEAST * sample,
        .bonus = HOT_PLAN_BONUS,
        .slack = HOT_PLAN_SAMPLES * sample,
    };
    /* What is left out here is either marked, and leaves, or did not make it. */
    uint32_t chosen = hot_tally_rank(tally, keys_max, &ranking);
    uint32_t n = 0;
    for (uint32_t i = 0; i < tally->used && n < changes_max; i++) {
        struct hot_rate r = hot_tally_at(tally, i);
        if (r.marked && !hot_tally_chosen(tally, i)) {
            changes[n++] = (struct hot_change){.key = r.key, .hash = r.hash, .enter = false};
        }
    }
    for (uint32_t i = 0; i < chosen && n < changes_max; i++) {
        struct hot_rate r = hot_tally_ranked(tally, i);
        if (!r.marked) {
            changes[n++] = (struct hot_change){.key = r.key, .hash = r.hash, .enter = true};
        }
    }
    return n;
}
