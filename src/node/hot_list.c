#include "node/hot_list.h"

#include "base/assert.h"

#define ENTRY 12u   /* bytes before the key: its length, its rate */
#define UNIT 1000.0 /* rates travel in thousandths of an operation a second */

uint32_t hot_list_pack(const struct hot_tally *t, uint32_t ranked, uint32_t *at, uint8_t *room)
{
    uint32_t n = 0;
    while (*at < ranked) {
        struct hot_rate r = hot_tally_ranked(t, *at);
        if (n > 0 && n + ENTRY + r.key.n > HOT_LIST_BYTES) {
            break;
        }
        put_u32(room + n, r.key.n);
        put_u64(room + n + 4, (uint64_t)(r.least * UNIT));
        if (r.key.n > 0) {
            memcpy(room + n + ENTRY, r.key.at, r.key.n);
        }
        n += ENTRY + r.key.n;
        (*at)++;
    }
    return n;
}

bool hot_list_next(struct bytes *value, struct bytes *key_out, double *rate_out)
{
    if (value->n < ENTRY || get_u32(value->at) > value->n - ENTRY) {
        return false;
    }
    *key_out = bytes_of(value->at + ENTRY, get_u32(value->at));
    *rate_out = (double)get_u64(value->at + 4) / UNIT;
    uint32_t used = ENTRY + key_out->n;
    *value = bytes_of(value->at + used, value->n - used);
    return true;
}
