#include "sim/workload.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/world.h"

#define FILLER_BYTES_MAX 4000u
#define UNKNOWNS_MAX 12u
#define WALL_START_MS INT64_C(1700000000000)

uint32_t workload_add_key(struct world *world, enum key_class class)
{
    struct clients *cs = &world->clients;
    if (cs->keys_n == cs->keys_capacity) {
        cs->keys_capacity = cs->keys_capacity == 0 ? 64 : 2 * cs->keys_capacity;
        cs->keys = realloc(cs->keys, cs->keys_capacity * sizeof *cs->keys);
        HK_ASSERT(cs->keys != NULL);
    }
    sim_key_init(&cs->keys[cs->keys_n], class, cs->keys_n);
    return cs->keys_n++;
}

void workload_doubt(struct world *world, uint32_t key)
{
    struct clients *cs = &world->clients;
    if (++cs->keys[key].unknowns < UNKNOWNS_MAX) {
        return;
    }
    for (uint32_t i = 0; i < world->setup.keys; i++) {
        if (cs->shared[i] == key) {
            cs->shared[i] = workload_add_key(world, cs->keys[key].class);
        }
    }
}

static struct sim_op *add_op(struct world *world, const struct client *client, uint32_t key)
{
    struct clients *cs = &world->clients;
    if (cs->ops_n == cs->ops_capacity) {
        cs->ops_capacity = cs->ops_capacity == 0 ? 1024 : 2 * cs->ops_capacity;
        cs->ops = realloc(cs->ops, cs->ops_capacity * sizeof *cs->ops);
        HK_ASSERT(cs->ops != NULL);
    }
    struct sim_op *op = &cs->ops[cs->ops_n++];
    *op = (struct sim_op){.client = client->id, .connection = client->connection, .key = key};
    op->next = NO_OP;
    op->h = (struct history_op){
        .key = key,
        .client = client->id,
        .in = HISTORY_ABSENT,
        .expected = HISTORY_ABSENT,
        .out = HISTORY_ABSENT,
        .outcome = HISTORY_UNKNOWN,
    };
    return op;
}

/* Gives the operation bytes of its own: key, value and argument, one after another. */
static void set_bytes(struct world *world, struct sim_op *op, struct bytes value, struct bytes arg)
{
    const struct sim_key *key = &world->clients.keys[op->key];
    op->bytes = malloc((size_t)key->n + value.n + arg.n + 1);
    HK_ASSERT(op->bytes != NULL);
    memcpy(op->bytes, key->bytes, key->n);
    op->op.key = bytes_of(op->bytes, key->n);
    if (value.n > 0) {
        memcpy(op->bytes + key->n, value.at, value.n);
        op->op.value = bytes_of(op->bytes + key->n, value.n);
    }
    if (arg.n > 0) {
        memcpy(op->bytes + key->n + value.n, arg.at, arg.n);
        op->op.arg = bytes_of(op->bytes + key->n + value.n, arg.n);
    }
}

static enum history_kind draw_kind(struct world *world, enum key_class class)
{
    const struct mix *m = &world->setup.mix;
    bool more = class != KEY_REGISTER;
    const uint32_t shares[] = {
        [HISTORY_READ] = m->read,
        [HISTORY_WRITE] = m->write,
        [HISTORY_DELETE] = more ? m->erase : 0,
        [HISTORY_DELETE_IF] = more ? m->erase_if : 0,
        [HISTORY_SET_IF] = more ? m->set_if : 0,
        [HISTORY_SET_ABSENT] = more ? m->set_absent : 0,
        [HISTORY_ADD] = class == KEY_COUNTER ? m->add : 0,
        [HISTORY_GETSET] = more ? m->getset : 0,
    };
    uint32_t sum = 0;
    for (uint32_t i = 0; i <= HISTORY_GETSET; i++) {
        sum += shares[i];
    }
    uint64_t at = random_below(&world->chance_clients, sum);
    uint32_t kind = 0;
    while (at >= shares[kind]) {
        at -= shares[kind++];
    }
    return (enum history_kind)kind;
}

/* A value that somebody has seen lately, so that conditions hold often. */
static int64_t draw_expected(struct world *world, const struct sim_key *key)
{
    int64_t recent =
        world->clients.next_value - (int64_t)random_between(&world->chance_clients, 1, 20);
    bool guess = random_chance(&world->chance_clients, 150000);
    return key->value_known && key->value != HISTORY_ABSENT && !guess ? key->value : recent;
}

static void shape_op(struct op *op, enum history_kind kind)
{
    static const struct op shapes[] = {
        [HISTORY_READ] = {.kind = OP_GET},
        [HISTORY_WRITE] = {.kind = OP_SET},
        [HISTORY_DELETE] = {.kind = OP_DELETE},
        [HISTORY_DELETE_IF] = {.kind = OP_DELETE_IF},
        [HISTORY_SET_IF] = {.kind = OP_SET, .flags = OPF_IFEQ},
        [HISTORY_SET_ABSENT] = {.kind = OP_SET, .flags = OPF_NX},
        [HISTORY_ADD] = {.kind = OP_ADD},
        [HISTORY_GETSET] = {.kind = OP_GETSET},
    };
    *op = shapes[kind];
}

static struct sim_op *build(struct world *world, const struct client *client, uint32_t key_index,
                            enum history_kind kind)
{
    struct sim_op *op = add_op(world, client, key_index);
    const struct sim_key *key = &world->clients.keys[key_index];
    uint32_t profile = world->setup.value_profile;
    uint8_t value[VALUE_BYTES_MAX];
    uint8_t arg[VALUE_BYTES_MAX];
    uint32_t value_n = 0;
    uint32_t arg_n = 0;
    op->h.kind = (uint8_t)kind;
    shape_op(&op->op, kind);
    if (kind == HISTORY_DELETE && client->embedded) {
        op->op.flags = OPF_BLIND;
    }
    if (kind == HISTORY_ADD) {
        op->h.in = (int64_t)random_between(&world->chance_clients, 1, 9) - 3;
        op->op.number = op->h.in;
    } else if (kind == HISTORY_WRITE || kind == HISTORY_SET_IF || kind == HISTORY_SET_ABSENT ||
               kind == HISTORY_GETSET) {
        op->h.in = world->clients.next_value++;
        value_n = value_encode(key->class, profile, op->h.in, value);
    }
    if (kind == HISTORY_SET_IF || kind == HISTORY_DELETE_IF) {
        op->h.expected = draw_expected(world, key);
        arg_n = value_encode(key->class, profile, op->h.expected, arg);
    }
    set_bytes(world, op, bytes_of(value, value_n), bytes_of(arg, arg_n));
    return op;
}

/* ---- The client's own key ---- */

static int64_t number_of(int64_t value)
{
    return value == HISTORY_ABSENT ? 0 : value;
}

/* Nobody else uses the key, so every answer follows from those operations of this client that come
 * before; a pipeline that reorders them is found out. */
static void forecast(struct client *client, struct sim_op *op)
{
    const struct history_op *h = &op->h;
    struct forecast *f = &op->forecast;
    int64_t *value = &client->private_value;
    *f = (struct forecast){.given = true, .ok = true, .life = client->life, .out = HISTORY_ABSENT};
    switch ((enum history_kind)h->kind) {
    case HISTORY_READ:
        f->out = *value;
        return;
    case HISTORY_DELETE:
        *value = HISTORY_ABSENT;
        return;
    case HISTORY_DELETE_IF:
        f->ok = *value == h->expected;
        *value = f->ok ? HISTORY_ABSENT : *value;
        return;
    case HISTORY_SET_IF:
        f->ok = *value == h->expected;
        *value = f->ok ? h->in : *value;
        return;
    case HISTORY_SET_ABSENT:
        f->ok = *value == HISTORY_ABSENT;
        *value = f->ok ? h->in : *value;
        return;
    case HISTORY_ADD:
        *value = number_of(*value) + h->in;
        f->out = *value;
        return;
    case HISTORY_WRITE:
        *value = h->in;
        return;
    case HISTORY_GETSET:
        f->out = *value;
        *value = h->in;
        return;
    }
}

static struct sim_op *draw_private(struct world *world, struct client *client)
{
    struct clients *cs = &world->clients;
    if (client->private_key == NO_OP) {
        enum key_class class = client->id % 2 == 0 ? KEY_GENERAL : KEY_COUNTER;
        client->private_key = workload_add_key(world, class);
        client->private_value = HISTORY_ABSENT;
        client->life++;
    }
    struct sim_key *key = &cs->keys[client->private_key];
    key->private = true;
    key->value = client->private_value;
    key->value_known = true;
    struct sim_op *op = build(world, client, client->private_key, draw_kind(world, key->class));
    forecast(client, op);
    return op;
}

/* ---- Operations that histories do not know ---- */

static void draw_extra_op(struct world *world, struct sim_op *op)
{
    static const struct op shapes[] = {
        {.kind = OP_EXISTS},    {.kind = OP_DELETE},
        {.kind = OP_ADD_FLOAT}, {.kind = OP_APPEND},
        {.kind = OP_SETRANGE},  {.kind = OP_EXPIRE},
        {.kind = OP_PERSIST},   {.kind = OP_GETDEL},
        {.kind = OP_GETEX},     {.kind = OP_STRLEN},
        {.kind = OP_DEADLINE},  {.kind = OP_SET, .flags = OPF_DEADLINE},
        {.kind = OP_GET},       {.kind = OP_SET, .flags = OPF_KEEPTTL},
        {.kind = OP_ADD},       {.kind = OP_SET, .flags = OPF_XX | OPF_GET},
    };
    struct random *chance = &world->chance_clients;
    uint8_t bytes[600] = "1";
    uint32_t n = (uint32_t)random_below(chance, 10) == 0 ? 600 : 1;
    struct bytes value = {0};
    struct bytes arg = {0};
    op->op = shapes[random_below(chance, sizeof shapes / sizeof shapes[0])];
    int64_t soon_ms = WALL_START_MS + (int64_t)(world->now_us / 1000) +
                      (int64_t)random_between(chance, 0, 300) - 10;
    switch (op->op.kind) {
    case OP_ADD_FLOAT:
        arg = bytes_of("0.5", 3);
        break;
    case OP_ADD:
        op->op.number = 3;
        break;
    case OP_SETRANGE:
        op->op.number = (int64_t)random_below(chance, 1500);
        value = bytes_of(bytes, n);
        break;
    case OP_APPEND:
        value = bytes_of(bytes, n);
        break;
    case OP_SET:
        value = bytes_of(bytes, n);
        op->op.number = (op->op.flags & OPF_DEADLINE) != 0 ? soon_ms : 0;
        break;
    case OP_EXPIRE:
    case OP_GETEX:
        op->op.number = soon_ms;
        break;
    default:
        break;
    }
    set_bytes(world, op, value, arg);
}

static struct sim_op *draw_extra(struct world *world, const struct client *client)
{
    struct clients *cs = &world->clients;
    uint32_t key = cs->extra_first + (uint32_t)random_below(&world->chance_clients, 3);
    struct sim_op *op = add_op(world, client, key);
    op->extra = true;
    draw_extra_op(world, op);
    return op;
}

/* Once for each filler key: something that joining nodes have to copy. */
static struct sim_op *draw_filler(struct world *world, const struct client *client)
{
    struct clients *cs = &world->clients;
    struct sim_op *op = add_op(world, client, cs->extra_first + 3 + cs->fillers_done++);
    static const uint8_t bytes[FILLER_BYTES_MAX] = "filler";
    op->extra = true;
    op->op = (struct op){.kind = OP_SET};
    HK_ASSERT(world->setup.filler_bytes <= FILLER_BYTES_MAX);
    uint32_t n = (uint32_t)random_between(&world->chance_clients, 6, world->setup.filler_bytes);
    set_bytes(world, op, bytes_of(bytes, n), bytes_of(NULL, 0));
    return op;
}

uint32_t workload_draw(struct world *world, struct client *client)
{
    struct clients *cs = &world->clients;
    const struct setup *s = &world->setup;
    struct random *chance = &world->chance_clients;
    uint64_t what = random_below(chance, 1000);
    struct sim_op *op;
    if (cs->fillers_done < s->filler_keys && random_chance(chance, 300000)) {
        op = draw_filler(world, client);
    } else if (what < s->extra_permille) {
        op = draw_extra(world, client);
    } else if (what < s->extra_permille + s->private_permille) {
        op = draw_private(world, client);
    } else {
        bool hot = random_chance(chance, 1000 * s->skew_permille);
        uint32_t key = cs->shared[hot ? 0 : random_below(chance, s->keys)];
        op = build(world, client, key, draw_kind(world, cs->keys[key].class));
    }
    return (uint32_t)(op - cs->ops);
}

uint32_t workload_read(struct world *world, struct client *client, uint32_t key)
{
    struct sim_op *op = build(world, client, key, HISTORY_READ);
    op->extra = world->clients.keys[key].class == KEY_EXTRA;
    return (uint32_t)(op - world->clients.ops);
}

/* ---- Answers ---- */

static const char *understand_value(struct world *world, struct sim_op *op,
                                    const struct answer *answer)
{
    if (answer->kind == ANSWER_NIL) {
        op->h.out = HISTORY_ABSENT;
        return NULL;
    }
    if (answer->kind != ANSWER_VALUE) {
        return "an answer that is no value";
    }
    enum key_class class = world->clients.keys[op->key].class;
    if (!value_decode(class, world->setup.value_profile, answer->value, &op->h.out)) {
        return "a value that nobody wrote";
    }
    return NULL;
}

static const char *understand_condition(struct sim_op *op, const struct answer *answer)
{
    op->h.ok = answer->applied;
    if (op->h.kind == HISTORY_DELETE_IF) {
        op->h.ok = answer->number == 1;
        return answer->kind == ANSWER_NUMBER && (answer->number == 0 || answer->number == 1)
                   ? NULL
                   : "an answer that is not 0 or 1";
    }
    op->h.ok = answer->kind == ANSWER_OK;
    return answer->kind == ANSWER_OK || answer->kind == ANSWER_NIL
               ? NULL
               : "an answer that is neither OK nor nil";
}

const char *workload_understand(struct world *world, struct sim_op *op, const struct answer *answer)
{
    if (op->extra) {
        return NULL;
    }
    switch ((enum history_kind)op->h.kind) {
    case HISTORY_READ:
    case HISTORY_GETSET:
        return understand_value(world, op, answer);
    case HISTORY_ADD:
        op->h.out = answer->number;
        return answer->kind == ANSWER_NUMBER ? NULL : "an answer that is no number";
    case HISTORY_DELETE_IF:
    case HISTORY_SET_IF:
    case HISTORY_SET_ABSENT:
        return understand_condition(op, answer);
    case HISTORY_WRITE:
        return answer->kind == ANSWER_OK ? NULL : "an answer that is not OK";
    case HISTORY_DELETE:
        return answer->kind == (op->said ? ANSWER_NUMBER : ANSWER_OK)
                   ? NULL
                   : "an answer that does not fit a deletion";
    }
    return "a kind of operation that does not exist";
}
