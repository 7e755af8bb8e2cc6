/* Joining ([H] Recovery): worker 0 of a shadow copies every space, chunk by chunk, from an
 * operational member. The shadow follows all writes since its admission, and a donor answers only
 * when all its workers are in the epoch that admitted the shadow, so nothing falls between: an
 * update that could complete without the shadow is in the donor's store.
 *
 * Where keys have homes a joiner gets nothing by this way: it becomes the home of some (move.c).
 * Where objects have owners it gets their entries (own_epoch.c), and is level when all have come.
 *
 * A chunk is one message, so it comes whole or not at all. The position in the donor's store is
 * {cursor, after}: a walk's cursor (store_walk), and, where one bucket is too large for a chunk,
 * the key hash up to which its items have been sent. */
#include "node/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define ITEM_HEADER 20u /* ts 8, kind 1, flags 1, vflags 1, zero 1, key bytes 4, value bytes 4 */
#define CHUNK_HEADER 8u /* the next `after` */
#define CHUNK_MOST (MSG_VALUE_MAX - 64u)
#define ASK_AGAIN_US 50000u /* doubled at each try */
#define ASK_SHIFT_MAX 6u
#define ASK_TRIES_MAX 8u   /* then another donor is asked */
#define CHUNK_BUCKETS 512u /* walked for one chunk at the most: worker 0 also sends heartbeats */

_Static_assert(CHUNK_HEADER + ITEM_HEADER + STORE_KEY_MAX + (uint64_t)STORE_VALUE_MAX <=
                   MSG_VALUE_MAX,
               "the largest item fits a chunk");

/* ---- Donor ---- */

struct chunk {
    struct worker *worker;
    uint8_t space;
    uint64_t after; /* only items whose hash is above it */
    uint64_t only;  /* 0, or the one hash that is wanted */
    uint64_t least; /* the lowest hash above `after` */
    uint64_t bytes; /* what the items need */
    bool count;     /* measure only */
};

static void chunk_reserve(struct worker *w, uint64_t bytes)
{
    if (bytes <= w->chunk_capacity) {
        return;
    }
    uint64_t capacity =
        bytes > 2u * (uint64_t)w->chunk_capacity ? bytes : 2u * (uint64_t)w->chunk_capacity;
    uint8_t *at = realloc(w->chunk, capacity);
    HK_ASSERT(at != NULL); /* as in output.c: bounded, and there is no honest way on */
    w->chunk = at;
    w->chunk_capacity = (uint32_t)capacity;
}

static void chunk_visit(void *context, struct bytes key, uint64_t hash, const struct key_meta *meta,
                        struct bytes value)
{
    struct chunk *c = context;
    uint64_t bytes = ITEM_HEADER + (uint64_t)key.n + value.n;
    if (hash <= c->after && c->after != 0) {
        return;
    }
    if (c->only != 0 && hash != c->only) {
        return;
    }
    c->bytes += bytes;
    if (hash < c->least) {
        c->least = hash;
    }
    if (c->count) {
        return;
    }
    struct worker *w = c->worker;
    struct msg m = {.space = c->space, .ts = meta->ts};
    chunk_reserve(w, w->chunk_bytes + bytes);
    w->node->spaces[c->space].ops->item(meta, &m);
    uint8_t *p = w->chunk + w->chunk_bytes;
    put_u64(p, meta->ts);
    p[8] = m.kind;
    p[9] = m.flags;
    p[10] = (uint8_t)(meta->flags & KEY_VALUE_FLAGS);
    p[11] = 0;
    put_u32(p + 12, key.n);
    put_u32(p + 16, value.n);
    if (key.n > 0) {
        memcpy(p + ITEM_HEADER, key.at, key.n);
    }
    if (value.n > 0) {
        memcpy(p + ITEM_HEADER + key.n, value.at, value.n);
    }
    w->chunk_bytes += (uint32_t)bytes;
}

/* Packs items from {cursor, after} on until the chunk is large enough; advances both. */
static void chunk_fill(struct worker *w, uint8_t space, uint64_t *cursor, uint64_t *after)
{
    struct store *store = w->node->spaces[space].store;
    struct store_thread *thread = w->threads[space];
    chunk_reserve(w, 2u * w->node->config.chunk_bytes);
    w->chunk_bytes = CHUNK_HEADER;
    uint32_t buckets = CHUNK_BUCKETS;
    do {
        struct chunk c = {
            .worker = w, .space = space, .after = *after, .least = UINT64_MAX, .count = true};
        (void)store_walk(store, thread, *cursor, chunk_visit, &c);
        bool split = c.bytes > CHUNK_MOST / 2;
        if (split && w->chunk_bytes > CHUNK_HEADER) {
            return; /* this bucket gets chunks of its own */
        }
        struct chunk take = {.worker = w,
                             .space = space,
                             .after = *after,
                             .only = split ? c.least : 0,
                             .least = UINT64_MAX};
        uint64_t next = store_walk(store, thread, *cursor, chunk_visit, &take);
        if (split) {
            *after = c.least;
            return;
        }
        *cursor = next;
        *after = 0;
    } while (*cursor != 0 && --buckets > 0 && w->chunk_bytes < w->node->config.chunk_bytes);
}

static bool is_copied(const struct space *space)
{
    return space->ops != NULL && space->homes == NULL && space->directory == NULL &&
           space->brought == NULL;
}

static bool may_donate(const struct worker *w, const struct msg *ask, uint8_t from)
{
    const struct node *n = w->node;
    if (w->index != 0 || from >= NODES_MAX || !w->operational ||
        !is_copied(&n->spaces[ask->space])) {
        return false;
    }
    if (!node_rule_on(n, NODE_RULE_DONOR_EPOCH)) {
        return true;
    }
    return ask->epoch == w->view.epoch && w->view.epoch == n->adopted_told &&
           nodeset_has(w->view.live, from);
}

/* The joiner asks again for a large chunk that is still on its way. */
static bool is_donated(const struct worker *w, const struct msg *ask, uint8_t from)
{
    const struct donated *d = &w->donated;
    return d->to == from && d->space == ask->space && d->cursor == ask->arg &&
           d->after == ask->ts && output_under_way(w, from, d->bytes);
}

static void donate(struct worker *w, const struct msg *ask, uint8_t from)
{
    if (!may_donate(w, ask, from) || is_donated(w, ask, from)) {
        w->stats.node_drops[NODE_DROP_CHUNK]++;
        return;
    }
    uint64_t cursor = ask->arg;
    uint64_t after = ask->ts;
    chunk_fill(w, ask->space, &cursor, &after);
    if (w->chunk_bytes > MSG_VALUE_MAX) {
        /* A value grew between measuring and packing; the joiner asks again. */
        w->stats.node_drops[NODE_DROP_CHUNK]++;
        return;
    }
    put_u64(w->chunk, after);
    struct msg m = {
        .space = ask->space,
        .kind = MSG_CHUNK,
        .slot = (uint32_t)ask->ts,
        .gen = (uint32_t)(ask->ts >> 32),
        .epoch = w->view.epoch,
        .ts = cursor,
        .arg = ask->arg,
        .value = bytes_of(w->chunk, w->chunk_bytes),
    };
    output_message(w, from, 0, &m);
    w->donated = (struct donated){.cursor = ask->arg,
                                  .after = ask->ts,
                                  .bytes = w->chunk_bytes,
                                  .space = ask->space,
                                  .to = from};
}

/* ---- Joiner ---- */

static bool is_shadow(const struct worker *w)
{
    const struct node *n = w->node;
    return view_has(&w->view, n->config.self, n->config.view.nonce) && !w->operational;
}

/* The first space from that one on that is copied; SPACES_MAX: none is. */
static uint8_t copied_from(const struct node *n, uint32_t space)
{
    while (space < SPACES_MAX && !is_copied(&n->spaces[space])) {
        space++;
    }
    return (uint8_t)space;
}

/* Begins again at another donor: cursors mean nothing elsewhere. */
static void choose_donor(struct worker *w)
{
    struct transfer *t = &w->transfer;
    uint32_t n = nodeset_count(w->view.operational);
    nodeset rest = w->view.operational;
    HK_ASSERT(n > 0);
    for (uint64_t skip = random_below(&w->random, n); skip > 0; skip--) {
        rest &= rest - 1;
    }
    t->donor = nodeset_first(rest);
    t->donor_nonce = w->view.members[t->donor].nonce;
    t->cursor = 0;
    t->after = 0;
    t->tries = 0;
    t->space = copied_from(w->node, 0);
}

void transfer_restart(struct worker *w)
{
    struct transfer *t = &w->transfer;
    t->asked_us = 0;
    if (t->donor != NODE_NONE && !view_operational(&w->view, t->donor, t->donor_nonce)) {
        t->donor = NODE_NONE;
    }
}

static bool next_space(const struct node *n, struct transfer *t)
{
    t->space = copied_from(n, t->space + 1u);
    t->cursor = 0;
    t->after = 0;
    return t->space < SPACES_MAX;
}

/* All that is copied has come; level when all that is pushed has, too. */
static void transfer_finish(struct worker *w)
{
    struct view_event event = {.kind = VIEW_EVENT_COPIED};
    w->transfer.copied = true;
    if (own_joined(w)) {
        w->transfer.done = true;
        control_event(w, &event);
    }
}

void transfer_poll(struct worker *w)
{
    struct node *n = w->node;
    struct transfer *t = &w->transfer;
    if (t->done || !is_shadow(w) || n->adopted_told != w->view.epoch || w->view.operational == 0) {
        return;
    }
    if (t->copied || copied_from(n, 0) == SPACES_MAX || !node_rule_on(n, NODE_RULE_COPY_FIRST)) {
        transfer_finish(w);
        return;
    }
    if (w->now_us < transfer_deadline(w)) {
        return;
    }
    if (t->donor == NODE_NONE || t->tries == ASK_TRIES_MAX) {
        choose_donor(w);
    }
    t->tries++;
    struct msg ask = {
        .space = t->space,
        .kind = MSG_CHUNK_ASK,
        .epoch = w->view.epoch,
        .ts = t->after,
        .arg = t->cursor,
    };
    t->asked_us = w->now_us;
    t->epoch = w->view.epoch;
    output_message(w, t->donor, 0, &ask);
}

uint64_t transfer_deadline(const struct worker *w)
{
    const struct transfer *t = &w->transfer;
    if (t->done || t->copied || !is_shadow(w) || w->node->adopted_told != w->view.epoch) {
        return UINT64_MAX;
    }
    uint32_t shift = t->tries < ASK_SHIFT_MAX ? t->tries : ASK_SHIFT_MAX;
    return t->asked_us == 0 ? w->now_us : t->asked_us + ((uint64_t)ASK_AGAIN_US << shift >> 1);
}

/* HK_ERR_CORRUPT: stop here; HK_ERR_NOMEM: the chunk must come again. */
static int take_items(struct worker *w, const struct msg *chunk, uint8_t from)
{
    const struct engine_ops *ops = w->node->spaces[chunk->space].ops;
    struct bytes in = bytes_of(chunk->value.at + CHUNK_HEADER, chunk->value.n - CHUNK_HEADER);
    while (in.n > 0) {
        if (in.n < ITEM_HEADER) {
            return HK_ERR_CORRUPT;
        }
        uint32_t key_n = get_u32(in.at + 12);
        uint32_t value_n = get_u32(in.at + 16);
        if (key_n > MSG_KEY_MAX || value_n > MSG_VALUE_MAX ||
            (uint64_t)ITEM_HEADER + key_n + value_n > in.n) {
            return HK_ERR_CORRUPT;
        }
        struct msg item = {
            .space = chunk->space,
            .kind = in.at[8],
            .flags = in.at[9],
            .vflags = in.at[10],
            .epoch = chunk->epoch,
            .ts = get_u64(in.at),
            .key = bytes_of(in.at + ITEM_HEADER, key_n),
            .value = bytes_of(in.at + ITEM_HEADER + key_n, value_n),
        };
        if (ops->msg_invalid(&item) != NULL || ops->route(&item) != ROUTE_KEY) {
            return HK_ERR_CORRUPT;
        }
        uint64_t hash = store_hash(w->node->spaces[item.space].store, item.key);
        if (input_step(w, &item, hash, from) != HK_OK) {
            return HK_ERR_NOMEM;
        }
        w->stats.chunk_items++;
        in.at += ITEM_HEADER + key_n + value_n;
        in.n -= ITEM_HEADER + key_n + value_n;
    }
    return HK_OK;
}

static bool awaited(const struct worker *w, const struct msg *m, uint8_t from)
{
    const struct transfer *t = &w->transfer;
    uint64_t after = (uint64_t)m->gen << 32 | m->slot;
    return w->index == 0 && !t->done && !t->copied && is_shadow(w) && t->asked_us != 0 &&
           from == t->donor && m->epoch == w->view.epoch && t->epoch == w->view.epoch &&
           m->space == t->space && m->arg == t->cursor && after == t->after &&
           m->value.n >= CHUNK_HEADER;
}

static void take_chunk(struct worker *w, const struct msg *m, uint8_t from)
{
    struct transfer *t = &w->transfer;
    if (!awaited(w, m, from)) {
        w->stats.node_drops[NODE_DROP_CHUNK]++;
        return;
    }
    w->stats.chunks_in++;
    int err = take_items(w, m, from);
    if (err != HK_OK) {
        w->stats.node_drops[err == HK_ERR_NOMEM ? NODE_DROP_MEMORY : NODE_DROP_CHUNK]++;
        return; /* asked for again after a while */
    }
    t->cursor = m->ts;
    t->after = get_u64(m->value.at);
    t->asked_us = 0;
    t->tries = 0;
    if (t->cursor == 0 && t->after == 0 && !next_space(w->node, t)) {
        transfer_finish(w);
    }
}

void transfer_message(struct worker *w, const struct msg *msg, uint8_t from)
{
    if (msg->space >= SPACES_MAX || w->node->spaces[msg->space].ops == NULL) {
        w->stats.node_drops[NODE_DROP_SPACE]++;
    } else if (msg->kind == MSG_CHUNK_ASK) {
        donate(w, msg, from);
    } else if (msg->kind == MSG_CHUNK) {
        take_chunk(w, msg, from);
    } else {
        w->stats.node_drops[NODE_DROP_MESSAGE]++;
    }
}
