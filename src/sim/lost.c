#include "sim/lost.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sim/world.h"

void lost_deinit(struct world *world)
{
    free(world->losses.keys);
    free(world->losses.at);
}

void lost_forget(struct world *world)
{
    struct losses *l = &world->losses;
    for (uint32_t i = 0; i < l->keys_capacity; i++) {
        l->keys[i] = (struct lost_key){.ever = l->keys[i].ever};
    }
    for (uint32_t i = 0; i < TRADED_MAX + ACCOUNTS_MAX; i++) {
        l->traded[i] = (struct lost_key){.ever = l->traded[i].ever};
    }
    l->first_us = 0;
}

/* ---- What is seen ---- */

static struct lost_key *lost_at(struct world *world, uint32_t key)
{
    struct losses *l = &world->losses;
    uint32_t clients = world->clients.keys_n;
    if (key >= clients) {
        return &l->traded[key - clients];
    }
    if (l->keys_capacity < clients) {
        l->keys = realloc(l->keys, 2 * clients * sizeof *l->keys);
        HK_ASSERT(l->keys != NULL);
        while (l->keys_capacity < 2 * clients) {
            l->keys[l->keys_capacity++] = (struct lost_key){.holders = 0};
        }
    }
    return &l->keys[key];
}

/* From the moment at which it was last held: nobody saw when the last replica went. */
static void give_up(struct world *world, uint32_t key, struct lost_key *k)
{
    struct losses *l = &world->losses;
    uint32_t clients = world->clients.keys_n;
    if (l->n == l->capacity) {
        l->capacity = l->capacity == 0 ? 64 : 2 * l->capacity;
        l->at = realloc(l->at, l->capacity * sizeof *l->at);
        HK_ASSERT(l->at != NULL);
    }
    l->at[l->n++] = (struct given_up){
        .key = key >= clients ? key - clients : key,
        .life = world->lives_n - 1,
        .traded = key >= clients,
        .begin_us = k->held_us == 0 ? 2 * world->lives[world->lives_n - 1] + 2 : k->held_us,
    };
    if (key < clients) {
        crowd_forget_key(world, key);
    }
}

static void note_lost(struct world *world, uint32_t key, struct lost_key *k)
{
    struct losses *l = &world->losses;
    struct bytes bytes = owned_key(world, key);
    k->lost = true;
    k->ever = true;
    trace_line(world, "key %.*s is lost; nodes %" PRIx64 " had it", (int)bytes.n,
               (const char *)bytes.at, k->holders);
    if (l->ordered == world->lives_n) {
        give_up(world, key, k); /* an order may be carried out later */
    }
    operator_wake(world);
}

void lost_note(struct world *world, uint32_t key)
{
    nodeset holders = 0;
    enum owned_fate fate = owned_fate(world, owned_key(world, key), &holders);
    struct lost_key *k = lost_at(world, key);
    if (fate == OWNED_LOST && !k->lost) {
        note_lost(world, key, k);
    } else if (fate == OWNED_HELD) {
        k->lost = false;
        k->holders = holders;
        k->held_us = 2 * world->step;
    } else if (fate == OWNED_NEVER) {
        k->lost = false;
        k->holders = 0;
    }
}

bool lost_any(const struct world *world)
{
    const struct losses *l = &world->losses;
    bool any = false;
    for (uint32_t i = 0; i < l->keys_capacity && i < world->clients.keys_n; i++) {
        any = any || l->keys[i].lost;
    }
    for (uint32_t i = 0; i < TRADED_MAX + ACCOUNTS_MAX; i++) {
        any = any || l->traded[i].lost;
    }
    return any;
}

bool lost_ever(const struct world *world, uint32_t key)
{
    const struct losses *l = &world->losses;
    uint32_t clients = world->clients.keys_n;
    return key >= clients ? l->traded[key - clients].ever
                          : key < l->keys_capacity && l->keys[key].ever;
}

/* ---- The operator ---- */

static void order(struct world *world, struct machine *m)
{
    struct losses *l = &world->losses;
    trace_line(world, "the operator gives up lost objects, at node %u", m->id);
    for (uint32_t i = 0; i < owned_keys(world) && l->ordered != world->lives_n; i++) {
        struct lost_key *k = lost_at(world, i);
        if (k->lost) {
            give_up(world, i, k);
        }
    }
    l->ordered = world->lives_n;
    worker_empty_lost(node_worker(m->node, 0), 0);
    machine_notice(m, 0);
}

bool lost_look(struct world *world)
{
    struct losses *l = &world->losses;
    const struct view *newest = ghost_newest(world);
    struct machine *who = NULL;
    uint64_t lease_us = world->setup.lease_us;
    for (uint32_t i = 0; i < owned_keys(world); i++) {
        lost_note(world, i);
    }
    if (!lost_any(world)) {
        l->first_us = 0;
        return false;
    }
    if (l->first_us == 0) {
        l->first_us = world->now_us;
        l->order_us = world->now_us + random_between(&world->chance_faults, 0, 2 * lease_us);
    }
    for (uint8_t i = 0; newest != NULL && i < world->setup.machines; i++) {
        struct machine *m = &world->machines[i];
        if (owned_may_answer(world, newest, m) && m->state == MACHINE_UP && m->busy == 0 &&
            m->trap == TRAP_NONE) {
            who = m;
        }
    }
    if (who != NULL && (world->now_us >= l->order_us || world->phase != PHASE_SAFETY)) {
        order(world, who);
        l->order_us = world->now_us + 2 * lease_us;
    }
    return true;
}

/* An object that is created and not written yet may be on that node alone, if its degree is 1. */
void lost_check_leave(struct world *world, const struct machine *m)
{
    nodeset left = nodeset_of(m->id);
    for (uint8_t i = 0; i < world->setup.machines; i++) {
        left |= world->machines[i].leaving ? nodeset_of(i) : 0;
    }
    for (uint32_t i = 0; world->setup.degree != 1 && i < owned_keys(world); i++) {
        struct bytes key = owned_key(world, i);
        nodeset holders = 0;
        if (owned_fate(world, key, &holders) == OWNED_HELD && nodeset_has(holders, m->id) &&
            nodeset_within(holders, left)) {
            world_violation(world, "node %u may leave, and nobody who stays has key %.*s", m->id,
                            (int)key.n, (const char *)key.at);
        }
    }
}

/* ---- Histories ---- */

bool lost_emptied(const struct world *world, uint32_t key, uint32_t life)
{
    for (size_t i = 0; i < world->losses.n; i++) {
        const struct given_up *g = &world->losses.at[i];
        if (!g->traded && g->key == key && g->life == life) {
            return true;
        }
    }
    return false;
}

size_t lost_deletions(const struct world *world, uint32_t life, uint32_t client,
                      struct history_op *ops_out)
{
    size_t n = 0;
    for (size_t i = 0; i < world->losses.n; i++) {
        const struct given_up *g = &world->losses.at[i];
        if (!g->traded && g->life == life) {
            ops_out[n++] = (struct history_op){
                .begin_us = g->begin_us,
                .key = g->key,
                .in = HISTORY_ABSENT,
                .expected = HISTORY_ABSENT,
                .out = HISTORY_ABSENT,
                .client = client,
                .kind = HISTORY_DELETE,
                .outcome = HISTORY_UNKNOWN,
            };
        }
    }
    return n;
}

static uint64_t earliest(const struct world *world, uint32_t first, uint32_t last, uint32_t life)
{
    uint64_t from_us = UINT64_MAX;
    for (size_t i = 0; i < world->losses.n; i++) {
        const struct given_up *g = &world->losses.at[i];
        if (g->traded && g->key >= first && g->key <= last && g->life == life &&
            g->begin_us < from_us) {
            from_us = g->begin_us;
        }
    }
    return from_us;
}

uint64_t lost_traded_us(const struct world *world, uint32_t key, uint32_t life)
{
    return earliest(world, key, key, life);
}

uint64_t lost_money_us(const struct world *world, uint32_t life)
{
    uint32_t first = world->setup.traded;
    return earliest(world, first, first + world->setup.accounts - 1, life);
}
