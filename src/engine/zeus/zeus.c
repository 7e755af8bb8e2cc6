/* Zeus as the node sees it: what it needs of a space, and which of the two machines judges a
 * message. Their steps are called by node/own*.c and node/txn*.c, not through struct engine_ops. */
#include "engine/zeus/zeus.h"

#include "base/assert.h"

static enum engine_route zeus_route(const struct msg *msg)
{
    return msg->kind < COMMIT_MSG_INV && msg->key.n > 0 ? ROUTE_KEY : ROUTE_ANY;
}

static const char *zeus_msg_invalid(const struct msg *msg)
{
    return msg->kind < COMMIT_MSG_INV ? own_msg_invalid(msg) : commit_msg_invalid(msg);
}

static void zeus_check(const struct key_meta *meta, const void *ext)
{
    (void)ext;
    bool readable = meta->state == ZEUS_VALID && (meta->flags & ZEUS_SHUT) == 0;
    HK_ASSERT(meta->state <= ZEUS_INVALID);
    HK_ASSERT(((meta->flags & KEY_READABLE) != 0) == readable);
}

/* Where a key has no entry nothing is known of it: some other node may have it. */
const struct engine_ops zeus_ops = {
    .name = "zeus",
    .port_needs = PORT_ORDERED,
    .traits = ENGINE_OWNED,
    .blank = {.flags = 0},
    .route = zeus_route,
    .msg_invalid = zeus_msg_invalid,
    .check = zeus_check,
};
