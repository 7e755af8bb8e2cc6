#include "support/hermes_history.h"

static bool is_nil(const struct rig *r, uint32_t update)
{
    return update == 0 || r->updates[update].kind == RIG_DELETE;
}

static bool is_rmw(const struct rig *r, uint32_t update)
{
    return update > 1 && r->updates[update].kind == RIG_RMW;
}

/* What a client sees as the same. */
static bool same(const struct rig *r, uint32_t a, uint32_t b)
{
    return a == b || (is_nil(r, a) && is_nil(r, b));
}

static uint32_t last(const struct rig *r)
{
    return r->hist[r->nhist - 1];
}

static bool in_history(const struct rig *r, uint32_t update)
{
    for (uint32_t i = 0; i < r->nhist; i++) {
        if (r->hist[i] == update) {
            return true;
        }
    }
    return false;
}

void history_step(struct rig *r, uint8_t node)
{
    uint32_t value = r->nodes[node].value;
    if (rig_readable(r, node) && rig_leased(r, node) && value != 0 && value != last(r) &&
        r->nhist < RIG_UPDATES) {
        r->hist[r->nhist++] = value;
    }
}

void history_done(struct rig *r, uint8_t node, uint32_t update)
{
    if (rig_leased(r, node) && r->ndone < RIG_UPDATES) {
        r->done[r->ndone].update = update;
        r->done[r->ndone++].at = r->nhist;
    }
}

void history_aborted(struct rig *r, uint8_t node, uint32_t update)
{
    if (rig_leased(r, node)) {
        for (uint32_t u = update; u != 0; u = r->updates[u].prev) {
            r->aborted[r->naborted++] = u;
        }
    }
}

/* Every node that may serve holds the newest value that anyone could read. */
static bool agree(const struct rig *r)
{
    for (uint8_t i = 0; i < r->n; i++) {
        if (rig_leased(r, i) && rig_readable(r, i) && !same(r, r->nodes[i].value, last(r))) {
            return false;
        }
    }
    return true;
}

/* A value once replaced never comes back. */
static bool fresh(const struct rig *r)
{
    for (uint32_t i = 0; i < r->nhist; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (r->hist[i] == r->hist[j]) {
                return false;
            }
        }
    }
    return true;
}

/* An RMW read exactly the value before it. */
static bool atomic(const struct rig *r)
{
    for (uint32_t i = 1; i < r->nhist; i++) {
        if (is_rmw(r, r->hist[i]) && !same(r, r->hist[i - 1], r->updates[r->hist[i]].base)) {
            return false;
        }
    }
    return true;
}

/* What was reported aborted is never seen; an update that was tried again is seen once. */
static bool honest(const struct rig *r)
{
    for (uint32_t i = 0; i < r->naborted; i++) {
        if (in_history(r, r->aborted[i])) {
            return false;
        }
    }
    return true;
}

static bool once(const struct rig *r)
{
    for (uint32_t i = 0; i < r->nhist; i++) {
        uint32_t u = r->hist[i] == 0 ? 0 : r->updates[r->hist[i]].prev;
        for (; u != 0; u = r->updates[u].prev) {
            if (in_history(r, u)) {
                return false;
            }
        }
    }
    return true;
}

static bool nobody_serves(const struct rig *r)
{
    for (uint8_t i = 0; i < r->n; i++) {
        if (rig_leased(r, i) && rig_readable(r, i)) {
            return false;
        }
    }
    return true;
}

/* A completed update was seen; or takes its place unseen just before a plain write that was first
 * seen between its issue and its answer, or right after; or is still ahead of everything. */
static bool durable(const struct rig *r)
{
    for (uint32_t i = 0; i < r->ndone; i++) {
        uint32_t update = r->done[i].update;
        bool holds = in_history(r, update);
        if (!holds && !is_rmw(r, update)) {
            holds = r->done[i].at == r->nhist && nobody_serves(r);
            uint32_t end = r->done[i].at + 1 < r->nhist ? r->done[i].at + 1 : r->nhist;
            for (uint32_t j = r->updates[update].issued; j < end; j++) {
                holds = holds || !is_rmw(r, r->hist[j]);
            }
        }
        if (!holds) {
            return false;
        }
    }
    return true;
}

void history_check(struct rig *r)
{
    if (r->violation != NULL) {
        return;
    }
    if (!agree(r)) {
        r->violation = "agree";
    } else if (!fresh(r)) {
        r->violation = "fresh";
    } else if (!atomic(r)) {
        r->violation = "atomic";
    } else if (!honest(r)) {
        r->violation = "honest";
    } else if (!once(r)) {
        r->violation = "once";
    } else if (!durable(r)) {
        r->violation = "durable";
    }
}
