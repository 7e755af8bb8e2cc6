/* A transaction at its coordinator ([Z] 5.8's baseline; FaSST's phases). The table of states is in
 * docs/protocols/occ.md; what is not in it is an answer that nobody waits for. */
#include "engine/occ/occ.h"

#include "base/assert.h"
#include "base/slot.h"

const char *const occ_state_names[OCC_STATES] = {
    [OCC_IDLE] = "Idle",
    [OCC_EXECUTE] = "Execute",
    [OCC_VALIDATE] = "Validate",
    [OCC_REPLICATE] = "Replicate",
};

#define DEGREE_DEFAULT 3u

/* ---- Placement ---- */

static uint8_t nth(nodeset set, uint32_t n)
{
    for (; n > 0; n--) {
        set &= set - 1;
    }
    return nodeset_first(set);
}

uint8_t occ_home(nodeset configured, uint16_t slot)
{
    HK_ASSERT(configured != 0);
    return nth(configured, (uint32_t)slot * nodeset_count(configured) / HASH_SLOTS);
}

nodeset occ_backups(nodeset configured, uint8_t home, const struct occ_config *config)
{
    uint32_t n = nodeset_count(configured);
    uint32_t degree = config->degree != 0 ? config->degree : DEGREE_DEFAULT;
    uint32_t at = nodeset_count(configured & (nodeset_of(home) - 1u));
    nodeset set = 0;
    for (uint32_t i = 1; i < degree && i < n; i++) {
        set |= nodeset_of(nth(configured, (at + i) % n));
    }
    return set;
}

/* ---- Steps ---- */

static void add(struct occ_effects *fx, enum occ_fx kind, nodeset to)
{
    HK_ASSERT(fx->n < OCC_EFFECTS_MAX);
    fx->e[fx->n++] = (struct occ_effect){.kind = (uint8_t)kind, .to = to};
}

/* The only writer of the state. */
static void enter(struct occ_txn *t, enum occ_state state, nodeset waits)
{
    t->state = (uint8_t)state;
    t->waits = waits;
    t->refused = false;
}

static void give_up(struct occ_txn *t, struct occ_effects *fx)
{
    add(fx, OCC_FX_UNLOCK, t->locked);
    t->locked = 0;
    enter(t, OCC_IDLE, 0);
    add(fx, OCC_FX_AGAIN, 0);
}

/* Decided, and the backups have it: it cannot be undone any more. */
static void finish(struct occ_txn *t, struct occ_effects *fx)
{
    if (t->writes) {
        add(fx, OCC_FX_COMMIT, t->written);
    }
    /* What is not written after all, here as well. */
    add(fx, OCC_FX_UNLOCK, t->locked & ~t->written);
    t->locked = 0;
    enter(t, OCC_IDLE, 0);
    add(fx, OCC_FX_DONE, 0);
}

static void decided(struct occ_txn *t, struct occ_effects *fx)
{
    if (!t->writes || t->backups == 0) {
        finish(t, fx);
        return;
    }
    enter(t, OCC_REPLICATE, t->backups);
    add(fx, OCC_FX_REPLICATE, t->backups);
}

void occ_begin(struct occ_txn *t, nodeset homes, nodeset locks, nodeset reads,
               struct occ_effects *fx)
{
    HK_ASSERT(t->state == OCC_IDLE && ((locks | reads) & ~homes) == 0);
    *t = (struct occ_txn){.homes = homes, .locks = locks, .reads = reads};
    if (homes == 0) {
        add(fx, OCC_FX_EVALUATE, 0);
        return;
    }
    enter(t, OCC_EXECUTE, homes);
    add(fx, OCC_FX_EXECUTE, homes);
}

void occ_answered(struct occ_txn *t, enum occ_state phase, uint8_t from, bool good,
                  struct occ_effects *fx)
{
    if (t->state != phase || !nodeset_has(t->waits, from)) {
        return;
    }
    t->waits &= ~nodeset_of(from);
    t->refused = t->refused || !good;
    if (phase == OCC_EXECUTE && good) {
        t->locked |= t->locks & nodeset_of(from);
    }
    if (t->waits != 0) {
        return;
    }
    if (t->refused) {
        HK_ASSERT(phase != OCC_REPLICATE);
        give_up(t, fx);
    } else if (phase == OCC_EXECUTE) {
        add(fx, OCC_FX_EVALUATE, 0);
    } else if (phase == OCC_VALIDATE) {
        decided(t, fx);
    } else {
        finish(t, fx);
    }
}

void occ_evaluated(struct occ_txn *t, bool holds, bool writes, nodeset written, nodeset backups,
                   struct occ_effects *fx)
{
    HK_ASSERT(t->waits == 0 && (t->state == OCC_IDLE || t->state == OCC_EXECUTE));
    HK_ASSERT((written & ~t->locked) == 0);
    t->writes = writes;
    t->written = written;
    t->backups = backups;
    if (!holds) {
        give_up(t, fx);
    } else if (t->reads != 0 && nodeset_count(t->homes) > 1) {
        enter(t, OCC_VALIDATE, t->reads);
        add(fx, OCC_FX_VALIDATE, t->reads);
    } else {
        decided(t, fx);
    }
}

void occ_check(const struct occ_txn *t)
{
    HK_ASSERT(t->state < OCC_STATES);
    HK_ASSERT(t->state != OCC_IDLE || t->waits == 0);
    HK_ASSERT((t->locked & ~t->locks) == 0);
    HK_ASSERT(t->state == OCC_EXECUTE || t->state == OCC_IDLE || t->locked == t->locks);
    HK_ASSERT(t->state != OCC_REPLICATE || (t->writes && (t->waits & ~t->backups) == 0));
}

/* ---- As the node sees it ---- */

static enum engine_route occ_route(const struct msg *msg)
{
    (void)msg;
    return ROUTE_ANY;
}

static void occ_check_key(const struct key_meta *meta, const void *ext)
{
    (void)ext;
    /* Only transactions read: they ask the home. */
    HK_ASSERT((meta->flags & KEY_READABLE) == 0);
}

const struct engine_ops occ_ops = {
    .name = "occ",
    .port_needs = PORT_ORDERED,
    .traits = ENGINE_SHARDED,
    .blank = {.flags = 0},
    .route = occ_route,
    .msg_invalid = occ_msg_invalid,
    .check = occ_check_key,
};
