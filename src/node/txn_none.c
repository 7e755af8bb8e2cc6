/* Stands in for transactions until they are here: nothing is committed, so nothing waits and
 * nothing is left of anybody. */
#include "node/own.h"

void txn_told(struct worker *w, struct own_waiter waiter, uint8_t code)
{
    (void)w;
    (void)waiter;
    (void)code;
}

void txn_message(struct worker *w, const struct msg *msg, uint64_t hash, uint8_t from)
{
    (void)msg;
    (void)hash;
    (void)from;
    w->stats.engine_drops[ENGINE_DROP_INVALID]++;
}

void txn_adopt(struct worker *w)
{
    for (uint32_t rest = w->node->owned; rest != 0; rest &= rest - 1) {
        own_recovered(w, (uint8_t)__builtin_ctz(rest));
    }
}

void txn_poll(struct worker *w)
{
    (void)w;
}

uint64_t txn_deadline(const struct worker *w)
{
    (void)w;
    return UINT64_MAX;
}
