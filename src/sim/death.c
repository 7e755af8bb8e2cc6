#include "sim/death.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "engine/zeus/zeus.h"
#include "sim/world.h"

/* Occasions that a run may let pass before it takes one. */
#define PASSED_MAX 3u
/* Keys of whose past something is kept, on each machine. */
#define MEMORY_KEYS 64u

enum role {
    ROLE_REQUESTER,
    ROLE_DRIVER,
    ROLE_ARBITER,
    ROLE_OWNER,
    ROLE_READER,
    ROLE_COORDINATOR,
    ROLE_FOLLOWER,
    ROLES
};
static const char *const role_names[ROLES] = {
    [ROLE_REQUESTER] = "requester", [ROLE_DRIVER] = "driver", [ROLE_ARBITER] = "arbiter",
    [ROLE_OWNER] = "owner",         [ROLE_READER] = "reader", [ROLE_COORDINATOR] = "coordinator",
    [ROLE_FOLLOWER] = "follower",
};

static const char *const type_names[OWN_TYPES] = {
    [OWN_NONE] = "",     [OWN_OWNER] = "OWNER",   [OWN_READER] = "READER",
    [OWN_TRIM] = "TRIM", [OWN_DEGREE] = "DEGREE", [OWN_DESTROY] = "DESTROY",
};

struct death_memory {
    struct owned_look look;
    uint32_t incarnation; /* whose it is: nothing has just ended in a process that has just begun */
};

/* What a case looks at: an object on the machine now and after its poll before, and the machine's
 * pipelines likewise. */
struct scene {
    const struct owned_look *now;
    const struct owned_look *before;
    const struct pipes_look *pipes;
    const struct pipes_look *pipes_before;
    uint8_t self;
};

static bool asked(const struct scene *s)
{
    return s->now->busy.mine_ts == 0 && !s->now->busy.waits;
}

static bool partly_acked(const struct scene *s)
{
    return s->now->busy.mine_ts != 0 && !s->now->busy.waits;
}

static bool waits(const struct scene *s)
{
    return s->now->busy.waits && s->now->busy.mine_due_us == 0;
}

static bool backs_off(const struct scene *s)
{
    return s->now->busy.waits && s->now->busy.mine_due_us != 0;
}

static bool has_best(const struct scene *s)
{
    return s->now->busy.mine_best != 0;
}

/* Its request has just ended well: it has applied it, and of its VALs some may not have left. */
static bool applied(const struct scene *s)
{
    bool gone = s->before->busy.mine.type == OWN_DESTROY && s->now->entry.ts == 0;
    return s->before->busy.mine.type != OWN_NONE && s->now->busy.mine.type == OWN_NONE &&
           (gone || s->now->entry.ts > s->before->entry.ts);
}

static bool pending(const struct scene *s)
{
    return s->now->busy.ts != 0 && !s->now->busy.replays;
}

static bool replays(const struct scene *s)
{
    return s->now->busy.ts != 0 && s->now->busy.replays;
}

static bool owes(const struct scene *s)
{
    return s->now->busy.ts != 0 && s->now->busy.owes;
}

static bool has_acked(const struct scene *s)
{
    return s->now->busy.ts != 0 && !s->now->busy.owes;
}

/* An arbitration that it took part in has just ended. */
static bool settled(const struct scene *s)
{
    return s->before->busy.ts != 0 && s->now->busy.ts == 0;
}

static bool shut(const struct scene *s)
{
    return (s->now->meta.flags & ZEUS_SHUT) != 0;
}

static bool written(const struct scene *s)
{
    return s->now->meta.state == ZEUS_WRITE;
}

static bool wanted(const struct scene *s)
{
    return written(s) && (s->now->meta.flags & ZEUS_WANTED) != 0;
}

static bool invalid(const struct scene *s)
{
    return s->now->meta.state == ZEUS_INVALID;
}

static bool readable(const struct scene *s)
{
    return (s->now->meta.flags & KEY_READABLE) != 0;
}

static bool slot_held(const struct scene *s)
{
    return s->pipes->held > 0;
}

static bool slot_sent(const struct scene *s)
{
    return s->pipes->sent > 0;
}

static bool slots_sent(const struct scene *s)
{
    return s->pipes->sent > 1;
}

static bool slot_part(const struct scene *s)
{
    return s->pipes->part > 0;
}

static bool slot_done(const struct scene *s)
{
    return s->pipes->sent + s->pipes->held < s->pipes_before->sent + s->pipes_before->held;
}

static bool slot_stored(const struct scene *s)
{
    return s->pipes->stored > 0;
}

static bool dropped(const struct scene *s)
{
    return s->pipes->stored < s->pipes_before->stored;
}

static bool replay_part(const struct scene *s)
{
    return s->pipes->replay_part > 0;
}

static bool replay_done(const struct scene *s)
{
    return s->pipes->replay < s->pipes_before->replay;
}

static bool slot_replay(const struct scene *s)
{
    return s->pipes->replay > 0;
}

/* States of the tables, and for which roles and requests they are. typed: one case for each type of
 * request in `types`. */
struct state {
    enum role role;
    const char *name;
    bool (*holds)(const struct scene *scene);
    uint32_t types; /* bits of enum own_type; 0: of no request */
    /* The state in which somebody dies before, with the same request if it is of one; NULL: nobody
     * needs to. */
    const char *before;
    uint32_t nodes; /* 0: any number will do */
};

#define MOVES (1u << OWN_OWNER | 1u << OWN_READER)
#define TRIM (1u << OWN_TRIM)
#define DESTROY (1u << OWN_DESTROY)
#define ALL (MOVES | TRIM | DESTROY)
/* Two may die, and a majority is left. An object has three replicas, so one can be too many. */
#define TWO_DIE 5u
/* ... and of four replicas two are left beside the coordinator and who replays. */
#define TWO_FOLLOW 7u

static const struct state states[] = {
    {ROLE_REQUESTER, "Request", asked, MOVES | DESTROY, NULL, 0},
    {ROLE_REQUESTER, "Request", asked, TRIM, NULL, TWO_DIE},
    {ROLE_REQUESTER, "Request, some ACKs", partly_acked, ALL, NULL, 0},
    {ROLE_REQUESTER, "Request, a value", has_best, MOVES, NULL, 0},
    {ROLE_REQUESTER, "Backoff", backs_off, MOVES, NULL, 0},
    {ROLE_REQUESTER, "Backoff", backs_off, TRIM | DESTROY, NULL, TWO_DIE},
    {ROLE_REQUESTER, "waits for SETTLED", waits, MOVES, NULL, 0},
    {ROLE_REQUESTER, "waits for SETTLED", waits, TRIM | DESTROY, "arbiter Invalid", TWO_DIE},
    {ROLE_REQUESTER, "Valid, applied", applied, MOVES | DESTROY, NULL, 0},
    {ROLE_REQUESTER, "Valid, applied", applied, TRIM, NULL, TWO_DIE},
    {ROLE_DRIVER, "Drive", pending, ALL, NULL, 0},
    {ROLE_DRIVER, "Valid, after", settled, ALL, NULL, 0},
    {ROLE_ARBITER, "Invalid", pending, ALL, NULL, 0},
    {ROLE_ARBITER, "Invalid, replays", replays, MOVES, NULL, 0},
    {ROLE_ARBITER, "Invalid, replays", replays, TRIM | DESTROY, "requester Request, some ACKs",
     TWO_DIE},
    {ROLE_ARBITER, "Valid, after", settled, ALL, NULL, 0},
    {ROLE_OWNER, "owes its ACK", owes, MOVES, NULL, 0},
    {ROLE_OWNER, "has ACKed", has_acked, MOVES, NULL, 0},
    {ROLE_OWNER, "WRITE", written, 0, NULL, 0},
    {ROLE_OWNER, "WRITE, wanted", wanted, 0, NULL, 0},
    {ROLE_OWNER, "VALID", readable, 0, NULL, 0},
    {ROLE_READER, "VALID", readable, 0, NULL, 0},
    {ROLE_READER, "INVALID", invalid, 0, NULL, 0},
    {ROLE_READER, "shut", shut, 0, NULL, 0},
    {ROLE_COORDINATOR, "HELD", slot_held, 0, NULL, 0},
    {ROLE_COORDINATOR, "SENT", slot_sent, 0, NULL, 0},
    {ROLE_COORDINATOR, "SENT, several", slots_sent, 0, NULL, 0},
    {ROLE_COORDINATOR, "SENT, some ACKs", slot_part, 0, NULL, 0},
    {ROLE_COORDINATOR, "done", slot_done, 0, NULL, 0},
    {ROLE_FOLLOWER, "stored", slot_stored, 0, NULL, 0},
    {ROLE_FOLLOWER, "done", dropped, 0, NULL, 0},
    {ROLE_FOLLOWER, "REPLAY", slot_replay, 0, "coordinator SENT, some ACKs", TWO_DIE},
    {ROLE_FOLLOWER, "REPLAY, some ACKs", replay_part, 0, "coordinator SENT, some ACKs", TWO_FOLLOW},
    {ROLE_FOLLOWER, "REPLAY, done", replay_done, 0, "coordinator SENT, some ACKs", TWO_DIE},
};
#define STATES (sizeof states / sizeof states[0])

/* The state of a case, and of which request; NULL past the last. */
static const struct state *case_of(uint32_t which, enum own_type *type_out)
{
    for (size_t i = 0; i < STATES; i++) {
        uint32_t types = states[i].types == 0 ? 1u << OWN_NONE : states[i].types;
        for (uint32_t type = 0; type < OWN_TYPES; type++) {
            if ((types >> type & 1u) != 0 && --which == 0) {
                *type_out = (enum own_type)type;
                return &states[i];
            }
        }
    }
    return NULL;
}

uint32_t death_cases(void)
{
    enum own_type type;
    uint32_t n = 0;
    while (case_of(n + 1, &type) != NULL) {
        n++;
    }
    return n;
}

void death_name(uint32_t which, char name_out[DEATH_NAME_BYTES])
{
    enum own_type type = OWN_NONE;
    const struct state *state = case_of(which, &type);
    HK_ASSERT(state != NULL);
    snprintf(name_out, DEATH_NAME_BYTES, "%s %s%s%s", role_names[state->role], state->name,
             type == OWN_NONE ? "" : " ", type_names[type]);
}

uint32_t death_find(const char *name)
{
    for (uint32_t i = 1; i <= death_cases(); i++) {
        char other[DEATH_NAME_BYTES];
        death_name(i, other);
        if (strcmp(name, other) == 0) {
            return i;
        }
    }
    return 0;
}

uint32_t death_before(uint32_t which)
{
    enum own_type type = OWN_NONE;
    char name[DEATH_NAME_BYTES];
    const struct state *state = case_of(which, &type);
    HK_ASSERT(state != NULL);
    if (state->before == NULL) {
        return 0;
    }
    snprintf(name, sizeof name, "%s%s%s", state->before, type == OWN_NONE ? "" : " ",
             type_names[type]);
    uint32_t before = death_find(name);
    HK_ASSERT(before != 0);
    return before;
}

uint32_t death_nodes(uint32_t which)
{
    enum own_type type = OWN_NONE;
    const struct state *state = case_of(which, &type);
    HK_ASSERT(state != NULL);
    return state->nodes == 0 ? 3 : state->nodes;
}

/* ---- Striking ---- */

void death_init(struct world *world)
{
    struct death *death = &world->death;
    if (world->config->death == 0) {
        return;
    }
    uint32_t before = death_before(world->config->death);
    death->next = before != 0 ? before : world->config->death;
    death->left = (uint32_t)random_below(&world->chance_traders, PASSED_MAX + 1);
    death->memory = calloc((size_t)MACHINES_MAX * MEMORY_KEYS, sizeof *death->memory);
    HK_ASSERT(death->memory != NULL);
}

void death_deinit(struct world *world)
{
    free(world->death.memory);
}

/* Of the request that the state is about. */
static enum own_type type_of(const struct scene *s, enum role role, bool over)
{
    const struct owned_look *l = over ? s->before : s->now;
    return (enum own_type)(role == ROLE_REQUESTER ? l->busy.mine.type : l->busy.request.type);
}

static bool in_role(const struct scene *s, enum role role)
{
    const struct owned_look *l = s->now;
    bool mine = l->have && l->entry.vector.owner == s->self;
    switch (role) {
    case ROLE_REQUESTER:
        return l->busy.mine.type != OWN_NONE || s->before->busy.mine.type != OWN_NONE;
    case ROLE_DRIVER:
        return l->busy.state == OWN_DRIVE ||
               (l->busy.ts == 0 && s->before->busy.state == OWN_DRIVE);
    case ROLE_ARBITER:
        return nodeset_has(l->directory, s->self) && !mine && l->busy.state != OWN_DRIVE &&
               s->before->busy.state != OWN_DRIVE;
    case ROLE_OWNER:
        return mine;
    case ROLE_READER:
        return l->have && !mine;
    case ROLE_COORDINATOR:
    case ROLE_FOLLOWER:
    case ROLES:
        break;
    }
    return true;
}

static bool holds(const struct scene *s, const struct state *state, enum own_type type)
{
    bool over = state->holds == applied || state->holds == settled;
    return in_role(s, state->role) && (type == OWN_NONE || type_of(s, state->role, over) == type) &&
           state->holds(s);
}

/* Looks at the machine as the case does, and keeps what it saw. */
static bool is_there(struct machine *m, const struct state *state, enum own_type type)
{
    struct world *world = m->world;
    struct death *death = &world->death;
    struct death_memory *memory = &death->memory[(size_t)m->place * MEMORY_KEYS];
    struct pipes_look pipes;
    bool there = false;
    node_pipes_look(m->node, 0, &pipes);
    uint32_t keys = owned_keys(world);
    if (memory->incarnation != m->incarnation) {
        memset(memory, 0, MEMORY_KEYS * sizeof *memory);
        death->pipes[m->place] = pipes;
    }
    for (uint32_t i = 0; i < keys && i < MEMORY_KEYS; i++) {
        /* Keys of traders first: there are few, and much is done with them. */
        struct bytes key = owned_key(world, keys - 1 - i);
        struct owned_look now;
        node_owned_look(m->node, 0, m->eye, m->eye_entries, key, &now);
        const struct scene scene = {
            .now = &now,
            .before = &memory[i].look,
            .pipes = &pipes,
            .pipes_before = &death->pipes[m->place],
            .self = m->id,
        };
        there = there || holds(&scene, state, type);
        memory[i] = (struct death_memory){.look = now, .incarnation = m->incarnation};
    }
    death->pipes[m->place] = pipes;
    return there;
}

/* When a new process starts: of who dies first, when others have gone on without it. */
static uint64_t down_us(struct world *world, bool first)
{
    uint64_t lease_us = world->setup.lease_us;
    return first ? random_between(&world->chance_traders, 2 * lease_us, 8 * lease_us)
                 : random_between(&world->chance_traders, 100, 2 * lease_us);
}

bool death_strikes(struct machine *m)
{
    struct world *world = m->world;
    struct death *death = &world->death;
    enum own_type type = OWN_NONE;
    if (world->config->death == 0 || death->done || world->phase != PHASE_SAFETY || m->busy > 0 ||
        m->leaving || m->trap != TRAP_NONE || machine_is_zombie(m)) {
        return false;
    }
    const struct state *state = case_of(death->next, &type);
    HK_ASSERT(state != NULL);
    if (!is_there(m, state, type) || !ghost_may_lose(world, m->id)) {
        return false;
    }
    if (death->left > 0) {
        death->left--;
        return false;
    }
    char name[DEATH_NAME_BYTES];
    death_name(death->next, name);
    trace_line(world, "node %u dies: %s", m->id, name);
    death->done = death->next == world->config->death;
    death->next = world->config->death;
    world->result->stats.deaths += death->done;
    uint64_t back_us = world->now_us + down_us(world, !death->done);
    uint32_t permille = (uint32_t)random_below(&world->chance_traders, 3) * 500;
    world_plan(world, back_us, HAPPENS_RETURN, m->id, 0, 0, NULL);
    machine_kill_midway(m, permille);
    return true;
}
