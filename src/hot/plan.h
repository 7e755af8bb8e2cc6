/* Which keys shall enter the hot set and which leave it, when the lists of all members are in.
 *
 * The set changes only where that is worth it: a key in the set is displaced by one that is clearly
 * hotter (a quarter, and more than chance gives), and nothing leaves while there is room. Rates at
 * the edge of the set differ by less than chance does; without this, keys would go in and out all
 * the time, and each change stalls a key for two round trips. */
#ifndef HORKOS_HOT_PLAN_H
#define HORKOS_HOT_PLAN_H

#include "hot/tally.h"

#define HOT_PLAN_BONUS 1.25
#define HOT_PLAN_SAMPLES 4.0 /* chance: so many samples more or less */
#define HOT_PLAN_LEAST 2.0   /* a key that was sampled less often does not enter */

/* One change. The key is the tally's. */
struct hot_change {
    struct bytes key;
    uint64_t hash;
    bool enter;
};

/* tally: the keys of the set as it is are marked, and were before the lists came, so that they have
 * room; then the lists. keys_max: how many the set may hold. sample: the rate that one sample of
 * the lists' keys stands for. Writes at most changes_max changes, leaves first, and returns their
 * number; with 2 * keys_max, or as many as the tally has entries, that is all. */
uint32_t hot_plan(struct hot_tally *tally, uint32_t keys_max, double sample,
                  struct hot_change *changes, uint32_t changes_max);

#endif
