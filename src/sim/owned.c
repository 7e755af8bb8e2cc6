#include "sim/owned.h"

#include <inttypes.h>

#include "base/assert.h"
#include "engine/zeus/zeus.h"
#include "sim/world.h"

/* Keys that are looked at after each poll. */
#define LOOK_KEYS 2u

bool owned_on(const struct world *world)
{
    return (world->setup.engine->traits & ENGINE_OWNED) != 0;
}

uint32_t owned_keys(const struct world *world)
{
    return world->clients.keys_n + world->setup.traded + world->setup.accounts;
}

struct bytes owned_key(const struct world *world, uint32_t key)
{
    if (key < world->clients.keys_n) {
        const struct sim_key *k = &world->clients.keys[key];
        return bytes_of(k->bytes, k->n);
    }
    const struct trade_key *k = &world->traders.keys[key - world->clients.keys_n];
    return bytes_of(k->bytes, k->n);
}

/* ---- An object on all machines ---- */

struct sight {
    struct owned_look look;
    uint64_t value_hash;
    uint32_t value_n;
};

static struct sight see(const struct machine *m, struct bytes key)
{
    _Alignas(8) uint8_t buffer[STORE_INLINE_MAX];
    struct store_value value = {0};
    struct sight sight = {0};
    node_owned_look(m->node, 0, m->eye, m->eye_entries, key, &sight.look);
    struct store *store = node_store(m->node, 0);
    store_online(m->eye);
    int err =
        store_read(store, m->eye, key, store_hash(store, key), buffer, STORE_INLINE_MAX, &value);
    if (err == HK_OK && value.found) {
        sight.value_hash = hash_bytes(&m->world->trace.secret, value.value);
        sight.value_n = value.value.n;
    }
    store_quiescent(m->eye);
    store_offline(m->eye);
    return sight;
}

static bool is_member(const struct view *view, const struct machine *m)
{
    return m->node != NULL && view_has(view, m->id, m->nonce);
}

bool owned_may_answer(const struct world *world, const struct view *view, const struct machine *m)
{
    return m->node != NULL && view_operational(view, m->id, m->nonce) &&
           machine_clock(m, world->now_us) < world->ghost.lease_until_us[m->place];
}

static bool owns(const struct sight *sight)
{
    return sight->look.have && (sight->look.meta.flags & ZEUS_OWNED) != 0;
}

static bool readable(const struct sight *sight)
{
    return sight->look.have && (sight->look.meta.flags & KEY_READABLE) != 0;
}

static bool same_value(const struct sight *a, const struct sight *b)
{
    return a->value_n == b->value_n && a->value_hash == b->value_hash &&
           ((a->look.meta.flags ^ b->look.meta.flags) & KEY_VALUE_FLAGS) == 0;
}

static void print_key(struct bytes key, struct text *to)
{
    uint32_t printable = 0;
    while (printable < key.n && key.at[printable] > ' ' && key.at[printable] < 0x7f) {
        printable++;
    }
    text_add(to, "key %.*s:", (int)printable, (const char *)key.at);
}

static void print_set(nodeset set, struct text *to)
{
    text_add(to, "{");
    for (nodeset rest = set; rest != 0; rest &= rest - 1) {
        text_add(to, "%s%u", rest == set ? "" : " ", nodeset_first(rest));
    }
    text_add(to, "}");
}

static void print_sight(uint8_t node, const struct sight *sight, struct text *to)
{
    const struct owned_look *l = &sight->look;
    text_add(to, " node %u:", node);
    if (l->have) {
        text_add(to, " %" PRIu64 ".%" PRIu32 " state %u flags %x, %" PRIu32 " bytes of %08" PRIx32,
                 stamp_version(l->meta.ts), stamp_cid(l->meta.ts), l->meta.state, l->meta.flags,
                 sight->value_n, (uint32_t)sight->value_hash);
    }
    if (l->entry.ts != 0) {
        text_add(to, " o_ts %" PRIu64 ".%" PRIu32 " owner %u readers ", stamp_version(l->entry.ts),
                 stamp_cid(l->entry.ts), l->entry.vector.owner);
        print_set(l->entry.vector.readers, to);
        text_add(to, " epoch %" PRIu32, l->entry.vector.epoch);
    }
    if (!own_idle(&l->busy)) {
        text_add(to, " busy: %s, wants %u", own_state_names[l->busy.state], l->busy.mine.type);
    }
    text_add(to, ";");
}

/* ---- At any time ---- */

static void compare(struct world *world, struct bytes key, const struct machine *a,
                    const struct sight *mine, const struct machine *b, const struct sight *its)
{
    const char *wrong = NULL;
    if (owns(mine) && owns(its)) {
        wrong = "both own it";
    } else if (readable(mine) && readable(its) && mine->look.meta.ts == its->look.meta.ts &&
               !same_value(mine, its)) {
        wrong = "have one version of it, and different values";
    }
    if (wrong != NULL) {
        struct text text = {0};
        print_key(key, &text);
        print_sight(a->id, mine, &text);
        print_sight(b->id, its, &text);
        world_violation(world, "two members %s: %s", wrong, text_string(&text));
        text_deinit(&text);
    }
}

static void look_at_key(struct world *world, struct bytes key)
{
    const struct view *view = ghost_newest(world);
    struct sight sights[SIM_NODES_MAX];
    const struct machine *who[SIM_NODES_MAX];
    uint32_t n = 0;
    for (uint8_t i = 0; view != NULL && i < world->setup.machines; i++) {
        const struct machine *m = &world->machines[i];
        if (!owned_may_answer(world, view, m) || m->busy > 0) {
            continue; /* who is held up within a poll may hold a lock */
        }
        sights[n] = see(m, key);
        for (uint32_t other = 0; other < n; other++) {
            compare(world, key, who[other], &sights[other], m, &sights[n]);
        }
        who[n++] = m;
    }
}

void owned_polled(struct machine *m)
{
    struct world *world = m->world;
    struct owned *owned = &world->owned;
    if (!owned_on(world) || m->busy > 0) {
        return;
    }
    for (uint32_t i = 0; i < LOOK_KEYS; i++) {
        owned->next_key = (owned->next_key + 1) % owned_keys(world);
        look_at_key(world, owned_key(world, owned->next_key));
        lost_note(world, owned->next_key);
    }
}

/* ---- What can be lost ---- */

/* Members that have the object and count as its replicas, by the newest vector that any of them
 * knows. known_out: whether there is one. */
static nodeset holders(const struct world *world, struct bytes key, bool *known_out)
{
    const struct view *view = ghost_newest(world);
    struct own_entry newest = {.ts = 0};
    nodeset have = 0;
    for (uint8_t i = 0; view != NULL && i < world->setup.machines; i++) {
        const struct machine *m = &world->machines[i];
        struct owned_look look;
        if (!is_member(view, m) || m->busy > 0 || m->leaving) {
            continue;
        }
        node_owned_look(m->node, 0, m->eye, m->eye_entries, key, &look);
        have |= look.have ? nodeset_of(i) : 0;
        newest = look.entry.ts > newest.ts ? look.entry : newest;
    }
    *known_out = newest.ts != 0;
    if (newest.ts == 0) {
        return have;
    }
    struct own_vector vector = own_masked(&newest.vector, view);
    nodeset named = vector.readers | (vector.owner < NODES_MAX ? nodeset_of(vector.owner) : 0);
    return have & named;
}

bool owned_may_lose(const struct world *world, uint8_t node)
{
    for (uint32_t i = 0; owned_on(world) && i < owned_keys(world); i++) {
        bool known = false;
        nodeset have = holders(world, owned_key(world, i), &known);
        if (known && have != 0 && (have & ~nodeset_of(node)) == 0) {
            return false;
        }
    }
    return true;
}

bool owned_whole(const struct world *world, uint8_t node)
{
    for (uint32_t i = 0; i < owned_keys(world); i++) {
        bool known = false;
        nodeset have = holders(world, owned_key(world, i), &known);
        if (known && !nodeset_has(have, node)) {
            return false;
        }
    }
    return true;
}

enum owned_fate owned_fate(const struct world *world, struct bytes key, nodeset *holders_out)
{
    const struct view *view = ghost_newest(world);
    struct own_entry newest = {.ts = 0};
    nodeset have = 0;
    if (view == NULL) {
        return OWNED_UNSEEN;
    }
    for (uint8_t i = 0; i < world->setup.machines; i++) {
        const struct machine *m = &world->machines[i];
        struct owned_look look;
        if (m->busy > 0) {
            return OWNED_UNSEEN;
        }
        if (!is_member(view, m)) {
            continue;
        }
        node_owned_look(m->node, 0, m->eye, m->eye_entries, key, &look);
        have |= look.have ? nodeset_of(i) : 0;
        /* What a reader has kept may be of an object that is forgotten. */
        bool counts = nodeset_has(look.directory, i) && look.entry.ts > newest.ts;
        newest = counts ? look.entry : newest;
    }
    struct own_vector vector = own_masked(&newest.vector, view);
    nodeset named = vector.readers | (vector.owner < NODES_MAX ? nodeset_of(vector.owner) : 0);
    bool fresh = newest.vector.readers == 0 && (newest.vector.degree & OWN_FRESH) != 0;
    *holders_out = have & named;
    if (newest.ts == 0 || fresh) {
        return OWNED_NEVER;
    }
    return named != 0 ? OWNED_HELD : OWNED_LOST;
}

/* ---- In the end ---- */

/* NULL, or what is wrong with one object. */
static const char *unequal(const struct world *world, const struct sight *sights,
                           const uint8_t *nodes, uint32_t n)
{
    const struct view *view = ghost_newest(world);
    nodeset directory = sights[0].look.directory;
    const struct own_entry *entry = NULL;
    const struct sight *first = NULL;
    nodeset have = 0;
    nodeset owners = 0;
    nodeset know = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct owned_look *l = &sights[i].look;
        know |= l->entry.ts != 0 ? nodeset_of(nodes[i]) : 0;
        if (!own_idle(&l->busy)) {
            return "something is still going on";
        }
        have |= l->have ? nodeset_of(nodes[i]) : 0;
        owners |= owns(&sights[i]) ? nodeset_of(nodes[i]) : 0;
        first = first == NULL && l->have ? &sights[i] : first;
        if (nodeset_has(directory, nodes[i])) {
            if (entry != NULL &&
                (entry->ts != l->entry.ts || entry->vector.owner != l->entry.vector.owner ||
                 entry->vector.readers != l->entry.vector.readers)) {
                return "directory nodes have different entries";
            }
            entry = &l->entry;
        }
    }
    if (!nodeset_within(know, directory | have)) {
        return "an entry where nobody has to do with it";
    }
    if (entry == NULL || entry->ts == 0) {
        return have == 0 ? NULL : "a replica without an entry";
    }
    struct own_vector vector = own_masked(&entry->vector, view);
    if (vector.owner == NODE_NONE || owners != nodeset_of(vector.owner)) {
        return "the owner is not the one that the directory names";
    }
    if (have != (vector.readers | owners)) {
        return "others have it than the directory names";
    }
    uint32_t replicas = nodeset_count(have);
    uint32_t degree = vector.degree != 0 ? vector.degree : world->setup.degree;
    uint32_t least = n / 2 + n % 2; /* a minority, and one more */
    degree = degree != 0 ? degree : least > 3 ? least : 3;
    if (replicas != (degree < n ? degree : n)) {
        return replicas < degree ? "too few replicas" : "too many replicas";
    }
    for (uint32_t i = 0; i < n; i++) {
        if (sights[i].look.have && (sights[i].look.meta.ts != first->look.meta.ts ||
                                    !same_value(&sights[i], first) || !readable(&sights[i]))) {
            return "its replicas differ";
        }
    }
    return NULL;
}

bool owned_equal(const struct world *world, struct text *why_out)
{
    struct sight sights[SIM_NODES_MAX];
    uint8_t nodes[SIM_NODES_MAX];
    for (uint32_t key = 0; key < owned_keys(world); key++) {
        struct bytes bytes = owned_key(world, key);
        uint32_t n = 0;
        for (nodeset rest = world->operator.wanted; rest != 0; rest &= rest - 1) {
            nodes[n] = nodeset_first(rest);
            sights[n] = see(&world->machines[nodes[n]], bytes);
            n++;
        }
        const char *wrong = unequal(world, sights, nodes, n);
        if (wrong != NULL) {
            text_add(why_out, " %s: ", wrong);
            print_key(bytes, why_out);
            text_add(why_out, " directory ");
            print_set(sights[0].look.directory, why_out);
            for (uint32_t i = 0; i < n; i++) {
                print_sight(nodes[i], &sights[i], why_out);
            }
            return false;
        }
    }
    return true;
}
