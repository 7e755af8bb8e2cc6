#include "tools/torture_slots.h"

#define FRESH_US 500000u  /* what a node said before that is not relied on */
#define AGAIN_US 1000000u /* an order may be forgotten when the view changes */

void torture_slots_init(struct torture_slots *slots, const struct torture_options *options,
                        struct torture_cluster *cluster, struct torture_keys *keys,
                        struct torture_bank *bank)
{
    *slots = (struct torture_slots){.cluster = cluster, .keys = keys, .bank = bank};
    random_init(&slots->random, options->seed ^ UINT64_C(0x736c6f7473));
}

void torture_slots_calm(struct torture_slots *slots)
{
    slots->calm = true;
    slots->due_us = 0;
}

void torture_slots_step(struct torture_slots *slots, uint64_t now_us)
{
    struct torture_cluster *c = slots->cluster;
    nodeset sound = torture_cluster_sound(c, now_us > FRESH_US ? now_us - FRESH_US : 1);
    nodeset tellers = 0;
    for (nodeset left = sound; left != 0; left &= left - 1) {
        uint8_t node = nodeset_first(left);
        tellers |= c->node[node].lost > 0 ? nodeset_of(node) : 0;
    }
    if (tellers == 0) {
        slots->due_us = sound != 0 ? 0 : slots->due_us;
        return;
    }
    if (slots->due_us == 0) {
        uint64_t lease_us = c->options->lease_ms * UINT64_C(1000);
        uint64_t patience_us = random_below(&slots->random, 4 * lease_us);
        slots->due_us = now_us + (slots->calm ? 0 : patience_us);
    }
    if (now_us < slots->due_us) {
        return;
    }
    uint8_t node = nodeset_first(tellers);
    if (torture_cluster_can_order(c, node)) {
        if (c->options->tamper != TORTURE_TAMPER_ORDER) {
            /* Before anybody hears of it. */
            slots->no_memory |= !torture_keys_empty(slots->keys, now_us);
            torture_bank_renew(slots->bank, now_us);
        }
        torture_cluster_empty_lost(c, node, now_us);
        slots->orders++;
        slots->due_us = now_us + AGAIN_US;
    }
}
