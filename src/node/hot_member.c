/* What every member does for the hot set: tells the leader its hottest keys, and lets keys enter
 * and leave whose home it is. It keeps nothing of a change: the leader asks until it is done. */
#include "node/hot_epoch.h"

#include <stdlib.h>

#include "base/assert.h"

#define LIST_MORE 64u
#define LIST_MAX (1u << 21)
#define LIST_KEY_BYTES 40u /* of a list, an entry */
#define LIST_KEY_SPARE (64u * 1024u)

void hot_send(struct worker *w, uint8_t to, const struct msg *msg)
{
    struct msg m = *msg;
    m.kind = MSG_HOT;
    m.epoch = w->view.epoch;
    output_message(w, to, 0, &m);
}

uint64_t hot_member_keys(const struct space *space)
{
    struct store_stats stats;
    store_stats(space->store, &stats);
    return stats.keys > stats.tombstones ? stats.keys - stats.tombstones : 0;
}

/* ---- Lists ---- */

void hot_member_list_free(struct hot_epoch *h)
{
    free(h->list_memory);
    h->list_memory = NULL;
    h->ranked = 0;
    h->fetched = 0;
}

bool hot_member_list(struct worker *w, uint8_t space, struct hot_epoch *h, uint32_t wanted)
{
    uint32_t most = 2 * (wanted < HOT_CACHE_MAX ? wanted : HOT_CACHE_MAX) + LIST_MORE;
    uint64_t entries = (uint64_t)most * hot_samplers(w->node, space);
    entries = entries < LIST_MAX ? entries : LIST_MAX;
    hot_member_list_free(h);
    if (entries == 0) {
        return false;
    }
    uint32_t key_bytes = (uint32_t)entries * LIST_KEY_BYTES + LIST_KEY_SPARE;
    h->list_memory = malloc(hot_tally_bytes((uint32_t)entries, key_bytes));
    if (h->list_memory == NULL) {
        return false;
    }
    hot_tally_init(&h->list, h->list_memory, (uint32_t)entries, key_bytes);
    hot_tally_samplers(w->node, space, w->now_us, most, &h->list);
    /* Lists come once an epoch: each is of a whole one. When none is asked for, time goes on. */
    hot_age(w, space, 2 * w->node->config.spaces[space].hot.epoch_us);
    struct hot_ranking ranking = {.least = 1e-3, .bonus = 1};
    h->ranked = hot_tally_rank(&h->list, most, &ranking);
    return true;
}

static void give_list(struct worker *w, struct hot_epoch *h, const struct msg *ask, uint8_t from)
{
    struct space *space = &w->node->spaces[ask->space];
    if (ask->arg != h->fetched) {
        if (ask->ts != 0 || !hot_member_list(w, ask->space, h, ask->slot)) {
            return; /* the leader goes on without it */
        }
        h->fetched = ask->arg;
    }
    uint64_t keys = hot_member_keys(space);
    uint32_t at = ask->ts < h->ranked ? (uint32_t)ask->ts : h->ranked;
    uint8_t *room = malloc(HOT_LIST_BYTES + MSG_KEY_MAX);
    if (room == NULL) {
        return;
    }
    struct msg m = {.space = ask->space,
                    .flags = HOT_WORD_LIST,
                    .arg = ask->arg,
                    .slot = (uint32_t)keys,
                    .gen = (uint32_t)(keys >> 32)};
    m.value = bytes_of(room, hot_list_pack(&h->list, h->ranked, &at, room));
    m.ts = at < h->ranked ? at : 0;
    hot_send(w, from, &m);
    free(room);
    if (m.ts == 0) {
        hot_member_list_free(h);
    }
}

/* ---- Changes ---- */

static bool cached(struct worker *w, uint8_t space, struct bytes key, uint64_t hash)
{
    struct store_ref ref;
    store_lock(w->node->spaces[space].store, w->threads[space], key, hash, &ref);
    bool is = ref.object != NULL && store_meta(&ref).aux != 0;
    store_unlock(&ref);
    return is;
}

enum hot_answer hot_member_change(struct worker *w, uint8_t space, struct bytes key,
                                  enum hot_code code, uint64_t gen)
{
    struct space *s = &w->node->spaces[space];
    struct slot_home home = homes_of(s, key);
    uint64_t hash = store_hash(s->store, key);
    if (home.home != w->node->config.self || home.state != HOME_STABLE) {
        return HOT_ANSWER_AGAIN; /* the leader's map, or this one, will change */
    }
    enum step_word word = step_hot(w, space, key, hash, code, gen);
    if (word == STEP_BEGUN) {
        word = step_hot(w, space, key, hash, code, gen); /* alone it is over at once */
    }
    if (word != STEP_NOTHING) {
        return HOT_ANSWER_AGAIN;
    }
    return code == HOT_ENTER && !cached(w, space, key, hash) ? HOT_ANSWER_ABSENT : HOT_ANSWER_DONE;
}

static void change(struct worker *w, const struct msg *msg, uint8_t from)
{
    if (msg->ts != HOT_ENTER && msg->ts != HOT_LEAVE) {
        w->stats.node_drops[NODE_DROP_MESSAGE]++;
        return;
    }
    struct msg m = *msg;
    m.flags = HOT_WORD_ANSWER;
    m.value = bytes_of(NULL, 0);
    m.slot = hot_member_change(w, msg->space, msg->key, (enum hot_code)msg->ts, msg->arg);
    hot_send(w, from, &m);
}

void hot_member_message(struct worker *w, struct hot_epoch *h, const struct msg *msg, uint8_t from)
{
    if (from != view_senior(&w->view)) {
        w->stats.node_drops[NODE_DROP_SENDER]++; /* not the leader */
        return;
    }
    if (msg->flags == HOT_WORD_CHANGE) {
        change(w, msg, from);
        return;
    }
    h->settled = msg->gen;
    w->node->spaces[msg->space].hot_keys = msg->slot < HOT_CACHE_MAX ? msg->slot : HOT_CACHE_MAX;
    uint32_t set = msg->value.n == 4 ? get_u32(msg->value.at) : 0;
    w->stats.hot_keys += (uint64_t)set - h->set_told;
    h->set_told = set;
    give_list(w, h, msg, from);
}
