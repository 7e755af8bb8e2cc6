#include "sim/workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/phrase.h"
#include "sim/redis.h"
#include "sim/world.h"

#define UNKNOWNS_MAX 12u
#define WALL_START_MS INT64_C(1700000000000)
/* Beyond all that calendars are off by. */
#define FAR_MS INT64_C(10000000000)
#define EXTRA_KEYS 3u
/* Between written numbers, so that sums of one do not meet another (docs/CHECKERS.md, Bounds). */
#define COUNTER_GAP 1000
#define LENGTH_GAP 128

uint32_t workload_add_key(struct world *world, enum key_class class)
{
    struct clients *cs = &world->clients;
    if (cs->keys_n == cs->keys_capacity) {
        cs->keys_capacity = cs->keys_capacity == 0 ? 64 : 2 * cs->keys_capacity;
        cs->keys = realloc(cs->keys, cs->keys_capacity * sizeof *cs->keys);
        HK_ASSERT(cs->keys != NULL);
    }
    sim_key_init(&cs->keys[cs->keys_n], class, cs->keys_n);
    cs->keys[cs->keys_n].fleeting =
        class != KEY_REGISTER && random_chance(&world->chance_clients, 350000) &&
        !world->setup.sequential; /* what expires has no number for check_sequential */
    return cs->keys_n++;
}

void workload_add_keys(struct world *world)
{
    struct clients *cs = &world->clients;
    const struct setup *s = &world->setup;
    for (uint32_t i = 0; i < s->keys; i++) {
        enum key_class other =
            random_chance(&world->chance_clients, 250000) ? KEY_LENGTH : KEY_GENERAL;
        cs->shared[i] = workload_add_key(world, i < s->registers                 ? KEY_REGISTER
                                                : i < s->registers + s->counters ? KEY_COUNTER
                                                                                 : other);
    }
    cs->extra_first = cs->keys_n;
    for (uint32_t i = 0; i < EXTRA_KEYS + s->filler_keys; i++) {
        workload_add_key(world, i < EXTRA_KEYS ? KEY_EXTRA : KEY_FILLER);
    }
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
    op->parts = 1;
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

/* ---- What to ask ---- */

static void share_deadlines(const struct sim_key *key, uint32_t shares[PHRASE_KINDS])
{
    shares[HISTORY_EXPIRE] = key->fleeting ? 8 : 2;
    shares[HISTORY_PERSIST] = key->fleeting ? 3 : 1;
    shares[HISTORY_GETEX] = key->fleeting ? 4 : 1;
    shares[HISTORY_TTL] = key->fleeting ? 6 : 2;
}

static enum history_kind draw_kind(struct world *world, const struct client *client,
                                   const struct sim_key *key)
{
    const struct mix *m = &world->setup.mix;
    uint32_t shares[PHRASE_KINDS] = {[HISTORY_READ] = m->read, [HISTORY_WRITE] = m->write};
    if (key->class != KEY_REGISTER) {
        shares[HISTORY_DELETE] = client->embedded ? m->erase : 0;
        shares[HISTORY_DELETE_PRESENT] = client->embedded ? m->erase / 2 : m->erase;
        shares[HISTORY_DELETE_IF] = m->erase_if;
        shares[HISTORY_GETDEL] = m->erase_if;
        shares[HISTORY_SET_IF] = m->set_if;
        shares[HISTORY_SET_ABSENT] = m->set_absent;
        shares[HISTORY_SET_PRESENT] = m->set_absent;
        shares[HISTORY_GETSET] = m->getset;
        shares[HISTORY_EXISTS] = m->read / 8;
        share_deadlines(key, shares);
    }
    if (key->class == KEY_COUNTER || key->class == KEY_LENGTH) {
        shares[HISTORY_ADD] = m->add;
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < PHRASE_KINDS; i++) {
        sum += shares[i];
    }
    uint64_t at = random_below(&world->chance_clients, sum);
    uint32_t kind = 0;
    while (at >= shares[kind]) {
        at -= shares[kind++];
    }
    return (enum history_kind)kind;
}

/* Whether what is answered follows from the client's own order alone. */
static bool is_plain(const struct phrase *p)
{
    return p->hears != HEARS_UNSET && p->hears != HEARS_SET && p->hears != HEARS_COMPARED &&
           p->hears != HEARS_ONE_NX && p->hears != HEARS_ONE_XX;
}

/* How often a phrase is drawn for the key; of any kind if kind is PHRASE_KINDS. */
static uint32_t share_of(const struct phrase *p, const struct client *client,
                         const struct sim_key *key, uint32_t kind)
{
    bool fits = (p->classes >> key->class & 1u) != 0 && p->kind != PHRASE_QUIET &&
                (kind == PHRASE_KINDS || p->kind == kind) && (!key->private || is_plain(p)) &&
                (client->embedded ? p->hears < HEARS_SPOKEN : p->words[0] != '\0');
    return fits ? p->share : 0;
}

static uint32_t draw_phrase(struct world *world, const struct client *client,
                            const struct sim_key *key, uint32_t kind)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < phrases_n; i++) {
        sum += share_of(&phrases[i], client, key, kind);
    }
    HK_ASSERT(sum > 0);
    uint64_t at = random_below(&world->chance_clients, sum);
    for (uint32_t i = 0; i < phrases_n; i++) {
        uint32_t share = share_of(&phrases[i], client, key, kind);
        if (at < share) {
            return i;
        }
        at -= share;
    }
    HK_ASSERT(false);
    return 0;
}

/* A value that somebody has seen lately, so that conditions hold often. */
static int64_t draw_expected(struct world *world, const struct sim_key *key)
{
    struct random *chance = &world->chance_clients;
    int64_t back = (int64_t)random_between(chance, 1, 20);
    bool guess = random_chance(chance, 150000);
    bool known = key->value_known && key->value != HISTORY_ABSENT && !guess;
    switch ((uint32_t)key->class) {
    case KEY_COUNTER:
        return known ? key->value : (world->clients.next_value - back) * COUNTER_GAP;
    case KEY_LENGTH:
        return known && key->value > 0 && key->value <= (int64_t)VALUE_BYTES_MAX
                   ? key->value
                   : back * LENGTH_GAP;
    default:
        return known ? key->value : world->clients.next_value - back;
    }
}

static int64_t new_value(struct world *world, const struct sim_key *key)
{
    int64_t number = world->clients.next_value++;
    switch ((uint32_t)key->class) {
    case KEY_COUNTER:
        return number * COUNTER_GAP;
    case KEY_LENGTH:
        return LENGTH_GAP * (1 + number % 8);
    case KEY_FILLER: {
        uint32_t n = (uint32_t)random_between(&world->chance_clients, 8, world->setup.filler_bytes);
        return number + VALUE_FILLER_UNIT * (n - 8);
    }
    default:
        return number;
    }
}

/* ---- What to say ---- */

/* What the words of a phrase stand for. */
struct meaning {
    int64_t amount, offset;
    int64_t for_ms, until_ms; /* a deadline, from now or since 1970 */
    uint8_t value[VALUE_BYTES_MAX], arg[VALUE_BYTES_MAX];
    uint32_t value_n, arg_n;
};

static void draw_deadline(struct world *world, const struct sim_key *key, struct meaning *meaning)
{
    struct random *chance = &world->chance_clients;
    bool soon = key->fleeting && !key->private && random_chance(chance, 750000);
    int64_t now_ms = WALL_START_MS + (int64_t)(world->now_us / 1000);
    meaning->for_ms = soon ? (int64_t)random_between(chance, 1, 250)
                           : FAR_MS + (int64_t)random_between(chance, 0, 1000000);
    meaning->until_ms =
        now_ms + meaning->for_ms - (soon && random_chance(chance, 200000) ? 100 : 0);
}

/* In seconds, a deadline of at least one. */
static int64_t deadline_number(const struct meaning *meaning, char letter)
{
    switch (letter) {
    case 'T':
        return meaning->for_ms / 1000 + 1;
    case 'M':
        return meaning->for_ms;
    case 'S':
        return meaning->until_ms / 1000 + 1;
    default:
        return meaning->until_ms;
    }
}

/* The deadline as the node will understand it. */
static int64_t deadline_of(struct world *world, const struct client *client,
                           const struct phrase *phrase, const struct meaning *meaning)
{
    int64_t wall_ms = (int64_t)machine_wall_ms(&world->machines[client->machine]);
    if (phrase_has(phrase, 'T')) {
        return wall_ms + 1000 * deadline_number(meaning, 'T');
    }
    if (phrase_has(phrase, 'M')) {
        return wall_ms + meaning->for_ms;
    }
    return phrase_has(phrase, 'S') ? 1000 * deadline_number(meaning, 'S') : meaning->until_ms;
}

/* Numbers that a phrase adds or writes at. */
static void draw_amount(struct world *world, const struct phrase *phrase, struct meaning *meaning)
{
    struct random *chance = &world->chance_clients;
    if (phrase_has(phrase, 'a')) {
        meaning->amount = (int64_t)random_between(chance, 1, 20);
        meaning->offset = (int64_t)random_between(chance, 0, 400);
        memset(meaning->value, 0, (size_t)meaning->amount);
        meaning->value_n = (uint32_t)meaning->amount;
    } else if (phrase_has(phrase, 'n') || phrase_has(phrase, 'm')) {
        meaning->amount = (int64_t)random_between(chance, 1, 9) - 3;
    } else {
        meaning->amount = strncmp(phrase->words, "DECR", 4) == 0 ? -1 : 1;
    }
}

/* Fills in the operation and its line of the history, all but the words. */
static void shape(struct world *world, const struct client *client, struct sim_op *op,
                  struct meaning *meaning)
{
    const struct phrase *phrase = &phrases[op->phrase];
    const struct sim_key *key = &world->clients.keys[op->key];
    uint32_t profile = world->setup.value_profile;
    meaning->value_n = meaning->arg_n = 0;
    op->h.kind = phrase->kind;
    op->op = (struct op){.kind = phrase->op, .flags = phrase->flags};
    if (phrase_has(phrase, 'v')) {
        op->h.in = new_value(world, key);
        meaning->value_n = value_encode(key->class, profile, op->h.in, meaning->value);
    }
    if (phrase_has(phrase, 'e')) {
        op->h.expected = draw_expected(world, key);
        meaning->arg_n = value_encode(key->class, profile, op->h.expected, meaning->arg);
    }
    if (phrase->kind == HISTORY_ADD || phrase->hears == HEARS_END) {
        draw_amount(world, phrase, meaning);
        op->h.in = meaning->amount + (phrase->hears == HEARS_END ? meaning->offset : 0);
        op->op.number = phrase->hears == HEARS_END ? meaning->offset
                        : phrase->op == OP_ADD     ? meaning->amount
                                                   : 0;
    }
    if (phrase->op == OP_ADD_FLOAT) {
        meaning->arg_n =
            (uint32_t)snprintf((char *)meaning->arg, sizeof meaning->arg, "%" PRId64 "%s",
                               meaning->amount, phrase_has(phrase, 'f') ? ".5" : "");
    }
    if (phrase_has_deadline(phrase)) {
        draw_deadline(world, key, meaning);
        op->op.number = deadline_of(world, client, phrase, meaning);
    }
    set_bytes(world, op, bytes_of(meaning->value, meaning->value_n),
              bytes_of(meaning->arg, meaning->arg_n));
}

#define WORDS_MAX (2u + 8u * PHRASE_PARTS_MAX)

struct sentence {
    struct bytes words[WORDS_MAX];
    uint32_t n;
    char numbers[4 * PHRASE_PARTS_MAX][24];
    uint32_t numbers_n;
};

static void say_bytes(struct sentence *sentence, struct bytes bytes)
{
    HK_ASSERT(sentence->n < WORDS_MAX);
    sentence->words[sentence->n++] = bytes;
}

static void say_number(struct sentence *sentence, int64_t number)
{
    char *text = sentence->numbers[sentence->numbers_n++];
    HK_ASSERT(sentence->numbers_n <= 4 * PHRASE_PARTS_MAX);
    int n = snprintf(text, sizeof sentence->numbers[0], "%" PRId64, number);
    say_bytes(sentence, bytes_of(text, (uint32_t)n));
}

static void say_meant(struct sentence *sentence, const struct sim_op *op,
                      const struct meaning *meaning, char letter)
{
    switch (letter) {
    case 'k':
        say_bytes(sentence, op->op.key);
        break;
    case 'v':
    case 'a':
        say_bytes(sentence, op->op.value);
        break;
    case 'e':
    case 'f':
        say_bytes(sentence, op->op.arg);
        break;
    case 'n':
        say_number(sentence, meaning->amount);
        break;
    case 'm':
        say_number(sentence, -meaning->amount);
        break;
    case 'o':
        say_number(sentence, meaning->offset);
        break;
    default:
        say_number(sentence, deadline_number(meaning, letter));
        break;
    }
}

/* The words from `at` on, up to a semicolon or the end; returns what follows. */
static const char *say_words(struct sentence *sentence, const char *at, const struct sim_op *op,
                             const struct meaning *meaning)
{
    while (*at != '\0' && *at != ';') {
        size_t n = strcspn(at, " ");
        if (*at == '%') {
            say_meant(sentence, op, meaning, at[1]);
        } else {
            say_bytes(sentence, bytes_of(at, (uint32_t)n));
        }
        at += n;
        at += *at == ' ';
    }
    return *at == ';' ? at + 2 : at;
}

static void add_command(struct sim_op *op, const struct sentence *sentence)
{
    uint8_t *command;
    uint32_t n = redis_command(sentence->words, sentence->n, &command);
    op->command = realloc(op->command, op->command_n + n);
    HK_ASSERT(op->command != NULL);
    memcpy(op->command + op->command_n, command, n);
    op->command_n += n;
    free(command);
}

/* Builds one command: as many operations, one after the other, as there are keys. Returns the
 * first. */
static struct sim_op *build(struct world *world, const struct client *client, uint32_t phrase,
                            const uint32_t *keys, uint32_t parts)
{
    struct clients *cs = &world->clients;
    struct sentence sentence = {.n = 0};
    struct meaning meaning = {.amount = 0};
    const char *words = phrases[phrase].words;
    bool said = !client->embedded;
    size_t first = cs->ops_n;
    if (phrases[phrase].several && said) {
        size_t n = strcspn(words, " ");
        say_bytes(&sentence, bytes_of(words, (uint32_t)n));
        words += n + 1;
    }
    for (uint32_t i = 0; i < parts; i++) {
        struct sim_op *op = add_op(world, client, keys[i]);
        op->phrase = (uint16_t)phrase;
        op->part = (uint8_t)i;
        op->parts = (uint8_t)parts;
        op->extra = cs->keys[keys[i]].class == KEY_EXTRA;
        shape(world, client, op, &meaning);
        if (said) {
            say_words(&sentence, words, op, &meaning);
        }
    }
    if (said) {
        add_command(&cs->ops[first], &sentence);
    }
    world->result->stats.phrases[phrase]++;
    return &cs->ops[first];
}

/* More keys for a command that may name several. */
static uint32_t draw_keys(struct world *world, const struct client *client, uint32_t phrase,
                          uint32_t keys[PHRASE_PARTS_MAX])
{
    struct clients *cs = &world->clients;
    uint32_t room = WINDOW_MAX - client->ring_n;
    uint32_t most = room < PHRASE_PARTS_MAX ? room : PHRASE_PARTS_MAX;
    uint32_t n = 1;
    if (client->embedded || !phrases[phrase].several || most < 2) {
        return 1;
    }
    for (uint64_t wanted = random_between(&world->chance_clients, 1, most); n < wanted; n++) {
        uint32_t key = cs->shared[random_below(&world->chance_clients, world->setup.keys)];
        if ((phrases[phrase].classes >> cs->keys[key].class & 1u) == 0) {
            break;
        }
        keys[n] = key;
    }
    return n;
}

/* ---- The client's own key ---- */

static int64_t number_of(int64_t value)
{
    return value == HISTORY_ABSENT ? 0 : value;
}

/* What becomes of the key's deadline. */
static void forecast_deadline(struct client *client, const struct sim_op *op, bool applied)
{
    if (client->private_value == HISTORY_ABSENT) {
        client->private_lasts = true;
    } else if (applied && op_updates(&op->op) && op->op.kind != OP_ADD &&
               op->op.kind != OP_ADD_FLOAT && (op->op.flags & OPF_KEEPTTL) == 0) {
        client->private_lasts = !phrase_has_deadline(&phrases[op->phrase]);
    }
}

/* Nobody else uses the key, so every answer follows from those operations of this client that come
 * before; a pipeline that reorders them is found out. */
static void forecast(struct client *client, struct sim_op *op)
{
    const struct history_op *h = &op->h;
    struct forecast *f = &op->forecast;
    int64_t *value = &client->private_value;
    bool there = *value != HISTORY_ABSENT;
    *f = (struct forecast){.given = true, .ok = true, .life = client->life, .out = HISTORY_ABSENT};
    switch ((enum history_kind)h->kind) {
    case HISTORY_READ:
    case HISTORY_GETEX:
        f->out = *value;
        break;
    case HISTORY_DELETE:
        *value = HISTORY_ABSENT;
        break;
    case HISTORY_DELETE_PRESENT:
        f->ok = there;
        *value = HISTORY_ABSENT;
        break;
    case HISTORY_GETDEL:
        f->out = *value;
        *value = HISTORY_ABSENT;
        break;
    case HISTORY_DELETE_IF:
        f->ok = *value == h->expected;
        *value = f->ok ? HISTORY_ABSENT : *value;
        break;
    case HISTORY_SET_IF:
        f->ok = *value == h->expected;
        *value = f->ok ? h->in : *value;
        break;
    case HISTORY_SET_ABSENT:
        f->ok = !there;
        *value = f->ok ? h->in : *value;
        break;
    case HISTORY_SET_PRESENT:
        f->ok = there;
        *value = f->ok ? h->in : *value;
        break;
    case HISTORY_ADD:
        *value = number_of(*value) + h->in;
        f->out = *value;
        break;
    case HISTORY_WRITE:
        *value = h->in;
        break;
    case HISTORY_GETSET:
        f->out = *value;
        *value = h->in;
        break;
    case HISTORY_EXISTS:
    case HISTORY_EXPIRE:
        f->ok = there;
        break;
    case HISTORY_PERSIST:
        f->ok = there && !client->private_lasts;
        break;
    case HISTORY_TTL:
        f->out = !there ? HISTORY_ABSENT : client->private_lasts ? 0 : 1;
        break;
    case HISTORY_RMW:
        f->given = false;
        break;
    }
    forecast_deadline(client, op, f->ok);
}

static struct sim_op *draw_private(struct world *world, struct client *client)
{
    struct clients *cs = &world->clients;
    if (client->private_key == NO_OP) {
        enum key_class class = client->id % 2 == 0 ? KEY_GENERAL : KEY_COUNTER;
        client->private_key = workload_add_key(world, class);
        client->private_value = HISTORY_ABSENT;
        client->private_lasts = true;
        client->life++;
    }
    struct sim_key *key = &cs->keys[client->private_key];
    key->private = true;
    key->value = client->private_value;
    key->value_known = true;
    uint32_t phrase = draw_phrase(world, client, key, draw_kind(world, client, key));
    struct sim_op *op = build(world, client, phrase, &client->private_key, 1);
    forecast(client, op);
    return op;
}

/* ---- Operations that histories do not know ---- */

/* A command that asks for no operation. */
static struct sim_op *draw_quiet(struct world *world, const struct client *client)
{
    struct clients *cs = &world->clients;
    uint32_t key = cs->shared[random_below(&world->chance_clients, world->setup.keys)];
    uint32_t sum = 0;
    for (uint32_t i = 0; i < phrases_n; i++) {
        sum += phrases[i].kind == PHRASE_QUIET ? phrases[i].share : 0;
    }
    uint64_t at = random_below(&world->chance_clients, sum);
    uint32_t phrase = 0;
    for (;; phrase++) {
        uint32_t share = phrases[phrase].kind == PHRASE_QUIET ? phrases[phrase].share : 0;
        if (at < share) {
            break;
        }
        at -= share;
    }
    struct sim_op *op = add_op(world, client, key);
    op->phrase = (uint16_t)phrase;
    op->extra = op->quiet = true;
    set_bytes(world, op, bytes_of(NULL, 0), bytes_of(NULL, 0));
    const char *words = phrases[phrase].words;
    while (*words != '\0') {
        struct sentence sentence = {.n = 0};
        words = say_words(&sentence, words, op, NULL);
        add_command(op, &sentence);
        op->replies++;
    }
    world->result->stats.phrases[phrase]++;
    return op;
}

static struct sim_op *draw_extra(struct world *world, const struct client *client)
{
    struct clients *cs = &world->clients;
    if (!client->embedded && random_chance(&world->chance_clients, 500000)) {
        return draw_quiet(world, client);
    }
    uint32_t key = cs->extra_first + (uint32_t)random_below(&world->chance_clients, EXTRA_KEYS);
    uint32_t phrase = draw_phrase(world, client, &cs->keys[key], PHRASE_KINDS);
    return build(world, client, phrase, &key, 1);
}

/* Once for each filler key: something that joining nodes have to copy. */
static struct sim_op *draw_filler(struct world *world, const struct client *client)
{
    struct clients *cs = &world->clients;
    uint32_t key = cs->extra_first + EXTRA_KEYS + cs->fillers_done++;
    uint32_t phrase = draw_phrase(world, client, &cs->keys[key], HISTORY_WRITE);
    return build(world, client, phrase, &key, 1);
}

/* Whoever does not know what became of an update looks, or tries again with another value. */
static bool draw_after_doubt(struct world *world, struct client *client,
                             enum history_kind *kind_out)
{
    uint64_t what = random_below(&world->chance_clients, 10);
    bool again = what >= 6;
    *kind_out = again ? HISTORY_WRITE : HISTORY_READ;
    return what < 8 && (!again || world->clients.keys[client->doubt].class != KEY_FILLER);
}

/* The key that clients like best at the moment. */
static uint32_t favourite(const struct world *world)
{
    const struct setup *s = &world->setup;
    return s->favour_us == 0 ? 0 : (uint32_t)(world->now_us / s->favour_us % s->keys);
}

uint32_t workload_draw(struct world *world, struct client *client)
{
    struct clients *cs = &world->clients;
    const struct setup *s = &world->setup;
    struct random *chance = &world->chance_clients;
    uint64_t what = random_below(chance, 1000);
    enum history_kind kind = HISTORY_READ;
    struct sim_op *op;
    bool doubts = client->doubt != NO_OP && draw_after_doubt(world, client, &kind);
    uint32_t doubt = client->doubt;
    client->doubt = NO_OP;
    if (doubts) {
        op = build(world, client, draw_phrase(world, client, &cs->keys[doubt], kind), &doubt, 1);
    } else if (cs->fillers_done < s->filler_keys && random_chance(chance, 300000)) {
        op = draw_filler(world, client);
    } else if (what < s->extra_permille) {
        op = draw_extra(world, client);
    } else if (what < s->extra_permille + s->private_permille) {
        op = draw_private(world, client);
    } else {
        bool hot = random_chance(chance, 1000 * s->skew_permille);
        uint32_t drawn = hot ? favourite(world) : (uint32_t)random_below(chance, s->keys);
        uint32_t keys[PHRASE_PARTS_MAX] = {cs->shared[drawn]};
        kind = draw_kind(world, client, &cs->keys[keys[0]]);
        uint32_t phrase = draw_phrase(world, client, &cs->keys[keys[0]], kind);
        op = build(world, client, phrase, keys, draw_keys(world, client, phrase, keys));
    }
    return (uint32_t)(op - cs->ops);
}

uint32_t workload_read(struct world *world, struct client *client, uint32_t key)
{
    uint32_t phrase = draw_phrase(world, client, &world->clients.keys[key], HISTORY_READ);
    struct sim_op *op = build(world, client, phrase, &key, 1);
    return (uint32_t)(op - world->clients.ops);
}
