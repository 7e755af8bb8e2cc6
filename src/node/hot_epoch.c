/* The leader of a hot set, worker 0 of the senior member (view_senior): in each epoch it fetches
 * all members' lists, plans, and has the keys' homes change the set (docs/HOTSET.md).
 *
 * H1. The set changes only while the slot map rests, and the map's flow is told so before the first
 *     change and after the last (docs/protocols/galene.md, M6).
 * H2. A change is over when its home says so; until then it is asked again and again, also in
 *     other views: a key that shall leave starts no writes at its home until its sweep frees it.
 * H3. A member that was admitted later than `settled` lacks entries: all keys enter anew, with
 *     other generations. `settled` travels with each round, so that a successor knows.
 * H4. A new leader learns the set from its own store, and says of each key that it stays: its
 *     predecessor may have died before a leave was over. */
#include "node/hot_epoch.h"

#include <stdlib.h>

#include "base/assert.h"
#include "hot/plan.h"

#define OPEN_MAX 256u       /* changes that are under way at a time */
#define LEARN_BUCKETS 1024u /* of a walk, a poll */
#define LEARN_EPOCHS 64u   /* looks again at its own store: what it knows may have gone otherwise */
#define QUIET_US 2000u     /* looks again whether the map rests */
#define AGAIN_US 500u      /* asks again after AGAIN; doubled each time ... */
#define AGAIN_SHIFT_MAX 6u /* ... so often */
#define UNHEARD_US 200000u /* asks again without an answer */
#define LISTS_US_MIN 100000u
#define TALLY_MORE 1024u
#define TALLY_KEY_BYTES 40u
#define TALLY_KEY_SPARE (64u * 1024u)
#define GENERATIONS 65535u /* so many are told apart; a step that shares no factor with that: */
#define GENERATION_STEP 8191u

static struct space *space_of(struct worker *w, uint8_t space)
{
    return &w->node->spaces[space];
}

static const struct hot_config *config_of(const struct worker *w, uint8_t space)
{
    return &w->node->config.spaces[space].hot;
}

/* ---- Making ---- */

int hot_epoch_init(struct space *space, const struct hot_config *config)
{
    if ((space->ops->traits & ENGINE_HOMED) == 0 || config->off || config->exclusive) {
        return HK_OK;
    }
    struct hot_epoch *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return HK_ERR_NOMEM;
    }
    hot_set_init(&h->set);
    list_init(&h->todo);
    list_init(&h->open);
    space->hot = h;
    space->hot_keys = HOT_CACHE_MIN;
    return HK_OK;
}

static void forget_tally(struct hot_epoch *h)
{
    free(h->tally_memory);
    h->tally_memory = NULL;
}

void hot_epoch_deinit(struct space *space)
{
    if (space->hot != NULL) {
        hot_set_clear(&space->hot->set);
        forget_tally(space->hot);
        hot_member_list_free(space->hot);
        free(space->hot);
        space->hot = NULL;
    }
}

/* ---- Leading ---- */

static bool may_lead(const struct worker *w, uint8_t space)
{
    const struct node *n = w->node;
    return w->operational && view_senior(&w->view) == n->config.self &&
           atomic_load_explicit(&n->adopted, memory_order_acquire) == w->view.epoch &&
           ordered_issues(w, space);
}

static void tell_map(struct worker *w, uint8_t space, struct hot_epoch *h, bool changes)
{
    if (h->told != changes) {
        h->told = changes;
        ordered_slots(w, space, SLOTS_HOT, changes);
    }
}

static void count_set(struct worker *w, struct hot_epoch *h)
{
    w->stats.hot_keys += (uint64_t)h->set.n - h->set_told;
    h->set_told = h->set.n;
}

static void learn(struct hot_epoch *h)
{
    hot_set_clear(&h->set);
    list_init(&h->todo);
    list_init(&h->open);
    h->open_n = 0;
    h->leaving = 0;
    h->cursor = 0;
    h->phase = HOT_LEARN;
}

static void lead(struct worker *w, struct hot_epoch *h)
{
    h->leads = true;
    h->epoch = w->view.epoch;
    h->generation = (uint64_t)w->view.epoch * GENERATION_STEP;
    h->says = true;
    learn(h);
}

static void resign(struct worker *w, uint8_t space, struct hot_epoch *h)
{
    h->leads = false;
    learn(h); /* forgets */
    forget_tally(h);
    h->waiting = 0;
    tell_map(w, space, h, false);
}

/* Still the leader, in another view: what was asked is asked again, and lists too. */
static void follow_view(struct worker *w, uint8_t space, struct hot_epoch *h)
{
    h->epoch = w->view.epoch;
    list_each(link, &h->open)
    {
        list_entry(link, struct hot_key, link)->due_us = w->now_us;
    }
    h->next_due_us = w->now_us;
    if (h->phase == HOT_LISTS) {
        forget_tally(h);
        h->waiting = 0;
        h->phase = HOT_REST;
        h->due_us = w->now_us;
    }
    if (h->told) {
        ordered_slots(w, space, SLOTS_HOT, 1);
    }
}

/* ---- Changes ---- */

static void queue(struct hot_epoch *h, struct hot_key *k, enum hot_code code, uint64_t gen)
{
    HK_ASSERT(list_empty(&k->link));
    k->code = (uint8_t)code;
    k->gen = code == HOT_ENTER ? gen : k->gen;
    k->tries = 0;
    k->due_us = 0;
    h->leaving += code == HOT_LEAVE;
    list_push_back(&h->todo, &k->link);
}

static void change_over(struct worker *w, struct hot_epoch *h, struct hot_key *k,
                        enum hot_answer answer)
{
    list_remove(&k->link);
    h->open_n--;
    if (k->code == HOT_LEAVE) {
        h->leaving--;
        w->stats.hot_leaves++;
        hot_set_remove(&h->set, k);
    } else if (answer == HOT_ANSWER_ABSENT) {
        hot_set_remove(&h->set, k);
    } else {
        w->stats.hot_enters++;
    }
    count_set(w, h);
}

static void again(struct worker *w, struct hot_epoch *h, struct hot_key *k)
{
    uint32_t shift = k->tries < AGAIN_SHIFT_MAX ? k->tries : AGAIN_SHIFT_MAX;
    k->tries++;
    k->due_us = w->now_us + ((uint64_t)AGAIN_US << shift);
    h->next_due_us = k->due_us < h->next_due_us ? k->due_us : h->next_due_us;
}

static void answered(struct worker *w, struct hot_epoch *h, struct hot_key *k,
                     enum hot_answer answer)
{
    if (answer == HOT_ANSWER_AGAIN) {
        again(w, h, k);
    } else {
        change_over(w, h, k, answer);
    }
}

/* Asks the home of a key that is in open. */
static void ask_home(struct worker *w, uint8_t space, struct hot_epoch *h, struct hot_key *k)
{
    struct slot_home home = homes_of(space_of(w, space), hot_key_bytes(k));
    if (home.state == HOME_LOST || home.state == HOME_EMPTYING) {
        /* Nobody decides about it any more: it stays cached as long as its slot is not emptied. */
        change_over(w, h, k, k->code == HOT_ENTER ? HOT_ANSWER_ABSENT : HOT_ANSWER_DONE);
        return;
    }
    if (home.state != HOME_STABLE) {
        again(w, h, k);
        return;
    }
    if (home.home == w->node->config.self) {
        answered(w, h, k,
                 hot_member_change(w, space, hot_key_bytes(k), (enum hot_code)k->code, k->gen));
        return;
    }
    struct msg m = {.space = space,
                    .flags = HOT_WORD_CHANGE,
                    .ts = k->code,
                    .arg = k->gen,
                    .key = hot_key_bytes(k)};
    hot_send(w, home.home, &m);
    k->due_us = w->now_us + UNHEARD_US;
    h->next_due_us = k->due_us < h->next_due_us ? k->due_us : h->next_due_us;
}

static void ask_due(struct worker *w, uint8_t space, struct hot_epoch *h)
{
    if (w->now_us < h->next_due_us) {
        return;
    }
    h->next_due_us = UINT64_MAX;
    list_each_safe(link, following, &h->open)
    {
        struct hot_key *k = list_entry(link, struct hot_key, link);
        if (k->due_us <= w->now_us) {
            ask_home(w, space, h, k);
        } else if (k->due_us < h->next_due_us) {
            h->next_due_us = k->due_us;
        }
    }
}

static bool may_ask(const struct hot_epoch *h)
{
    if (list_empty(&h->todo) || h->open_n == OPEN_MAX) {
        return false;
    }
    /* Who enters takes the room of who has left. */
    const struct hot_key *k = list_entry(h->todo.next, struct hot_key, link);
    return k->code == HOT_LEAVE || h->leaving == 0;
}

static void rest(struct worker *w, uint8_t space, struct hot_epoch *h)
{
    h->phase = HOT_REST;
    tell_map(w, space, h, false);
}

static void changes_poll(struct worker *w, uint8_t space, struct hot_epoch *h)
{
    ask_due(w, space, h);
    for (uint32_t i = 0; i < OPEN_MAX && may_ask(h); i++) {
        struct list_link *link = list_pop_front(&h->todo);
        list_push_back(&h->open, link);
        h->open_n++;
        ask_home(w, space, h, list_entry(link, struct hot_key, link));
    }
    if (!list_empty(&h->todo) || h->open_n > 0) {
        return;
    }
    if (h->announces && h->began == w->view.epoch) {
        h->settled = h->began;
    }
    h->announces = false;
    rest(w, space, h);
}

static void begin_changes(struct worker *w, uint8_t space, struct hot_epoch *h)
{
    h->phase = HOT_CHANGE;
    h->began = w->view.epoch;
    h->next_due_us = UINT64_MAX;
    tell_map(w, space, h, true);
}

/* ---- Learning ---- */

struct learner {
    struct worker *w;
    struct hot_epoch *h;
};

static void visit(void *context, struct bytes key, uint64_t hash, const struct key_meta *meta,
                  struct bytes value)
{
    struct learner *l = context;
    struct hot_set *set = &l->h->set;
    (void)value;
    if (meta->aux == 0 || hot_set_find(set, key, hash) != NULL) {
        return;
    }
    struct hot_key *k = hot_set_add(set, key, hash);
    if (k != NULL) {
        k->gen = meta->aux - 1u;
    }
}

static bool has_newcomer(const struct worker *w, const struct hot_epoch *h)
{
    for (nodeset rest = w->view.live; rest != 0; rest &= rest - 1) {
        if (w->view.members[nodeset_first(rest)].admitted > h->settled) {
            return true;
        }
    }
    return false;
}

/* Every key of the set is said again. With a newcomer all enter anew; else each stays as it is. */
static void say_all(struct worker *w, uint8_t space, struct hot_epoch *h)
{
    h->announces = has_newcomer(w, h);
    h->generation++;
    hot_set_each(k, &h->set)
    {
        bool same = k->gen % GENERATIONS == h->generation % GENERATIONS;
        queue(h, k, HOT_ENTER, h->announces ? h->generation + same : k->gen);
    }
    begin_changes(w, space, h);
}

static void learn_poll(struct worker *w, uint8_t space, struct hot_epoch *h)
{
    struct learner l = {w, h};
    struct store *store = space_of(w, space)->store;
    uint32_t buckets = LEARN_BUCKETS;
    do {
        h->cursor = store_walk(store, w->threads[space], h->cursor, visit, &l);
    } while (h->cursor != 0 && --buckets > 0);
    if (h->cursor == 0) {
        h->phase = HOT_REST;
        h->due_us = w->now_us;
        h->learned = 0;
        h->map_version =
            atomic_load_explicit(&space_of(w, space)->map_version, memory_order_acquire);
        count_set(w, h);
    }
}

/* ---- Lists and plans ---- */

static void ask_list(struct worker *w, uint8_t space, struct hot_epoch *h, uint8_t to)
{
    uint8_t set[4];
    put_u32(set, h->set.n);
    struct msg m = {.space = space,
                    .flags = HOT_WORD_ASK,
                    .arg = h->round,
                    .ts = h->from[to],
                    .slot = h->wanted,
                    .gen = h->settled,
                    .value = bytes_of(set, sizeof set)};
    hot_send(w, to, &m);
}

static void own_list(struct worker *w, uint8_t space, struct hot_epoch *h)
{
    const struct space *s = space_of(w, space);
    if (hot_member_list(w, space, h, h->wanted)) {
        hot_tally_list(&h->tally, 1, 0);
        for (uint32_t i = 0; i < h->ranked; i++) {
            struct hot_rate r = hot_tally_ranked(&h->list, i);
            hot_tally_add_rate(&h->tally, r.key, r.hash, r.least, r.most);
        }
    }
    hot_member_list_free(h);
    h->keys = hot_member_keys(s);
}

static void begin_lists(struct worker *w, uint8_t space, struct hot_epoch *h)
{
    uint32_t cache_keys = config_of(w, space)->cache_keys;
    h->wanted = cache_keys != 0 ? cache_keys : space_of(w, space)->hot_keys;
    h->wanted = h->wanted < HOT_CACHE_MAX ? h->wanted : HOT_CACHE_MAX;
    uint32_t entries = h->set.n + 4 * h->wanted + TALLY_MORE;
    uint32_t key_bytes = entries * TALLY_KEY_BYTES + TALLY_KEY_SPARE;
    forget_tally(h);
    h->due_us = h->began_us + config_of(w, space)->epoch_us;
    h->learned++;
    h->tally_memory = malloc(hot_tally_bytes(entries, key_bytes));
    if (h->tally_memory == NULL) {
        return;
    }
    hot_tally_init(&h->tally, h->tally_memory, entries, key_bytes);
    hot_set_each(k, &h->set)
    {
        hot_tally_mark(&h->tally, hot_key_bytes(k), k->hash);
    }
    own_list(w, space, h);
    h->phase = HOT_LISTS;
    h->round = (uint64_t)w->view.epoch << 32 | (uint32_t)++h->rounds;
    h->waiting = w->view.operational & ~nodeset_of(w->node->config.self);
    uint64_t epoch_us = config_of(w, space)->epoch_us;
    h->due_us = w->now_us + (epoch_us > LISTS_US_MIN ? epoch_us : LISTS_US_MIN);
    for (nodeset left = h->waiting; left != 0; left &= left - 1) {
        h->from[nodeset_first(left)] = 0;
        ask_list(w, space, h, nodeset_first(left));
    }
}

/* How many keys the set may have, now that all members have said how many they hold. Each holds the
 * hot ones as well. */
static uint32_t keys_max(struct worker *w, uint8_t space, const struct hot_epoch *h)
{
    uint32_t cache_keys = config_of(w, space)->cache_keys;
    uint64_t copies = (uint64_t)(nodeset_count(w->view.operational) - 1) * h->set.n;
    uint64_t share = (h->keys > copies ? h->keys - copies : 0) / HOT_CACHE_SHARE;
    uint64_t most = cache_keys != 0 ? cache_keys : share > HOT_CACHE_MIN ? share : HOT_CACHE_MIN;
    return (uint32_t)(most < HOT_CACHE_MAX ? most : HOT_CACHE_MAX);
}

static void queue_change(struct hot_epoch *h, const struct hot_change *change)
{
    struct hot_key *k = hot_set_find(&h->set, change->key, change->hash);
    if (!change->enter) {
        HK_ASSERT(k != NULL);
        queue(h, k, HOT_LEAVE, 0);
    } else if ((k = hot_set_add(&h->set, change->key, change->hash)) != NULL) {
        queue(h, k, HOT_ENTER, h->generation);
    }
}

static void plan(struct worker *w, uint8_t space, struct hot_epoch *h)
{
    const struct hot_config *config = config_of(w, space);
    /* A worker's counts are of this time, an epoch and a third of the one before, on average. */
    double sample = 1e6 * config->sample / (1.2 * (double)config->epoch_us);
    uint32_t most = keys_max(w, space, h);
    struct hot_change *changes = malloc(((size_t)h->tally.used + 1) * sizeof *changes);
    space_of(w, space)->hot_keys = most;
    w->stats.hot_epochs++;
    h->generation++;
    if (changes != NULL) {
        uint32_t n = hot_plan(&h->tally, most, sample, changes, h->tally.used);
        for (uint32_t i = 0; i < n; i++) {
            queue_change(h, &changes[i]);
        }
    }
    free(changes);
    forget_tally(h);
    h->due_us = h->began_us + config->epoch_us;
    if (list_empty(&h->todo)) {
        rest(w, space, h);
    } else {
        begin_changes(w, space, h);
    }
}

static uint64_t rest_until(const struct worker *w, const struct hot_epoch *h)
{
    bool now = h->says || has_newcomer(w, h);
    return now || h->due_us < h->look_us ? h->look_us : h->due_us;
}

static void rest_poll(struct worker *w, uint8_t space, struct hot_epoch *h)
{
    struct space *s = space_of(w, space);
    uint64_t version = atomic_load_explicit(&s->map_version, memory_order_acquire);
    if (w->now_us < rest_until(w, h)) {
        return;
    }
    if (!homes_rest(w, space)) {
        h->look_us = w->now_us + QUIET_US;
        return;
    }
    if (version != h->map_version || h->learned >= LEARN_EPOCHS) {
        learn(h); /* keys whose slots have moved have left */
    } else if (h->says || has_newcomer(w, h)) {
        h->says = false;
        say_all(w, space, h);
    } else {
        h->began_us = w->now_us;
        begin_lists(w, space, h);
    }
}

static void take_list(struct worker *w, struct hot_epoch *h, const struct msg *msg, uint8_t from)
{
    if (!h->leads || h->phase != HOT_LISTS || msg->arg != h->round ||
        !nodeset_has(h->waiting, from)) {
        return;
    }
    struct bytes value = msg->value;
    struct bytes key;
    double rate;
    const struct store *store = w->node->spaces[msg->space].store;
    hot_tally_list(&h->tally, 1, 0);
    while (hot_list_next(&value, &key, &rate)) {
        hot_tally_add_rate(&h->tally, key, store_hash(store, key), rate, rate);
    }
    if (msg->ts > h->from[from] && msg->ts < UINT32_MAX && value.n == 0) {
        h->from[from] = (uint32_t)msg->ts;
        ask_list(w, msg->space, h, from);
        return;
    }
    h->keys += msg->slot | (uint64_t)msg->gen << 32;
    h->waiting &= ~nodeset_of(from);
}

void hot_leader_message(struct worker *w, struct hot_epoch *h, const struct msg *msg, uint8_t from)
{
    if (msg->flags == HOT_WORD_LIST) {
        take_list(w, h, msg, from);
        return;
    }
    uint64_t hash = store_hash(w->node->spaces[msg->space].store, msg->key);
    struct hot_key *k = h->leads ? hot_set_find(&h->set, msg->key, hash) : NULL;
    bool asked = h->phase == HOT_CHANGE && k != NULL && !list_empty(&k->link) && k->due_us != 0;
    if (!asked || k->code != msg->ts || k->gen != msg->arg || msg->slot >= HOT_ANSWERS) {
        return; /* it has been answered, or is nonsense */
    }
    answered(w, h, k, (enum hot_answer)msg->slot);
}

/* ---- Outside ---- */

static void poll_space(struct worker *w, uint8_t space, struct hot_epoch *h)
{
    if (!may_lead(w, space)) {
        if (h->leads && (!w->operational || view_senior(&w->view) != w->node->config.self)) {
            resign(w, space, h);
        }
        return;
    }
    if (!h->leads) {
        lead(w, h);
    } else if (h->epoch != w->view.epoch) {
        follow_view(w, space, h);
    }
    switch ((enum hot_phase)h->phase) {
    case HOT_REST:
        rest_poll(w, space, h);
        break;
    case HOT_LEARN:
        learn_poll(w, space, h);
        break;
    case HOT_LISTS:
        if (h->waiting == 0 || w->now_us >= h->due_us) {
            plan(w, space, h);
        }
        break;
    case HOT_CHANGE:
        changes_poll(w, space, h);
        break;
    }
}

void hot_epoch_poll(struct worker *w)
{
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (w->node->spaces[i].hot != NULL && w->view.epoch != 0) {
            poll_space(w, (uint8_t)i, w->node->spaces[i].hot);
        }
    }
}

static uint64_t due(const struct worker *w, uint8_t space, const struct hot_epoch *h)
{
    if (!h->leads || !may_lead(w, space)) {
        return UINT64_MAX;
    }
    switch ((enum hot_phase)h->phase) {
    case HOT_LEARN:
        return w->now_us;
    case HOT_LISTS:
        return h->waiting == 0 ? w->now_us : h->due_us;
    case HOT_CHANGE:
        return may_ask(h) || (h->open_n == 0 && list_empty(&h->todo)) ? w->now_us : h->next_due_us;
    case HOT_REST:
        break;
    }
    return rest_until(w, h);
}

uint64_t hot_epoch_deadline(const struct worker *w)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        const struct hot_epoch *h = w->node->spaces[i].hot;
        uint64_t at = h != NULL ? due(w, (uint8_t)i, h) : UINT64_MAX;
        first = at < first ? at : first;
    }
    return first;
}

/* From any process that speaks as a member: nothing of it is believed but that. */
void hot_message(struct worker *w, const struct msg *msg, uint8_t from)
{
    struct hot_epoch *h = msg->space < SPACES_MAX ? w->node->spaces[msg->space].hot : NULL;
    if (w->index != 0 || h == NULL || msg->flags == 0 || msg->flags >= HOT_WORDS) {
        w->stats.node_drops[NODE_DROP_MESSAGE]++;
    } else if (msg->epoch != w->view.epoch || !nodeset_has(w->view.operational, from)) {
        w->stats.node_drops[NODE_DROP_SENDER]++;
    } else if (msg->flags == HOT_WORD_ASK || msg->flags == HOT_WORD_CHANGE) {
        hot_member_message(w, h, msg, from);
    } else {
        hot_leader_message(w, h, msg, from);
    }
}
