/* Cells: values of rows that other nodes own and have no room for (docs/protocols/lotus.md, "far
 * rows"). A worker has those whose ids name it. Their memory is the space's store's; those of a
 * process go when the pair's life ends (F9), a few with each poll. */
#include "node/lotus_home.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS_MIN 1024u
#define GONE_MOST 256u /* cells freed in one poll */

struct cell {
    struct cell *next;
    uint64_t id;
    uint32_t bytes; /* which follow */
    uint32_t unused;
};

/* Of one owner's process. */
struct home_cells {
    struct cell **buckets;
    uint64_t buckets_n; /* a power of two */
    uint64_t n;
    uint32_t life;
    struct home_cells *next; /* home_far.dying */
    uint64_t at;             /* dying: buckets below it are empty */
};

static uint64_t hash_of(uint64_t id)
{
    return id * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static struct cell **find(struct home_cells *c, uint64_t id)
{
    struct cell **at = &c->buckets[hash_of(id) & (c->buckets_n - 1)];
    while (*at != NULL && (*at)->id != id) {
        at = &(*at)->next;
    }
    return at;
}

/* More buckets, if there is memory. */
static void grow(struct home_cells *c)
{
    uint64_t n = 2 * c->buckets_n;
    struct cell **buckets = calloc(n, sizeof(struct cell *));
    if (buckets == NULL) {
        return;
    }
    for (uint64_t i = 0; i < c->buckets_n; i++) {
        struct cell *next;
        for (struct cell *cell = c->buckets[i]; cell != NULL; cell = next) {
            struct cell **at = &buckets[hash_of(cell->id) & (n - 1)];
            next = cell->next;
            cell->next = *at;
            *at = cell;
        }
    }
    free(c->buckets);
    c->buckets = buckets;
    c->buckets_n = n;
}

static void count(struct worker *w, const struct home_space *s, bool comes, uint32_t bytes)
{
    struct lotus_space *l = w->node->spaces[s->space].lotus;
    /* relaxed: numbers. */
    atomic_fetch_add_explicit(&l->cells, comes ? 1 : UINT64_MAX, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->cell_bytes, comes ? bytes : (uint64_t)0 - bytes,
                              memory_order_relaxed);
}

static void cell_free(struct worker *w, const struct home_space *s, struct home_cells *c,
                      struct cell **at)
{
    struct cell *cell = *at;
    *at = cell->next;
    c->n--;
    count(w, s, false, cell->bytes);
    store_free(w->threads[s->space], cell, sizeof *cell + cell->bytes);
}

/* ---- Owners ---- */

static void cells_free(struct home_cells *c)
{
    free(c->buckets);
    free(c);
}

/* Of the node's process that is a member; NULL: it has none. */
static struct home_cells *of(struct worker *w, struct home_space *s, uint8_t node, bool make)
{
    struct home_far *far = s->far;
    uint32_t life = lanes_life(w, node);
    if (far->cells[node] != NULL && far->cells[node]->life != life) {
        home_cells_gone(w, s, node);
    }
    struct home_cells *c = far->cells[node];
    if (c == NULL && make) {
        c = calloc(1, sizeof *c);
        struct cell **buckets = c != NULL ? calloc(BUCKETS_MIN, sizeof(struct cell *)) : NULL;
        if (buckets == NULL) {
            free(c);
            return NULL;
        }
        *c = (struct home_cells){.buckets = buckets, .buckets_n = BUCKETS_MIN, .life = life};
        far->cells[node] = c;
    }
    return c;
}

void home_cells_gone(struct worker *w, struct home_space *s, uint8_t node)
{
    struct home_cells *c = s->far->cells[node];
    (void)w;
    if (c != NULL) {
        c->next = s->far->dying;
        s->far->dying = c;
        s->far->cells[node] = NULL;
    }
}

/* Frees up to `most` cells of the first that is dying. */
static void bury(struct worker *w, struct home_space *s, uint32_t most)
{
    struct home_cells *c = s->far->dying;
    for (uint32_t i = 0; i < most && c->at < c->buckets_n; i++) {
        if (c->buckets[c->at] != NULL) {
            cell_free(w, s, c, &c->buckets[c->at]);
        } else {
            c->at++;
        }
    }
    if (c->at == c->buckets_n) {
        s->far->dying = c->next;
        cells_free(c);
    }
}

bool home_cells_poll(struct worker *w, struct home_space *s)
{
    if (s->far->dying != NULL) {
        bury(w, s, GONE_MOST);
    }
    return s->far->dying != NULL;
}

void home_cells_free(struct worker *w, struct home_space *s)
{
    for (uint8_t i = 0; i < NODES_MAX; i++) {
        home_cells_gone(w, s, i);
    }
    while (s->far->dying != NULL) {
        bury(w, s, UINT32_MAX);
    }
}

/* ---- Messages ---- */

static void answer(struct worker *w, const struct msg *msg, uint8_t from, enum lotus_kind kind,
                   uint64_t word, struct bytes value)
{
    struct msg m = {
        .space = msg->space,
        .kind = (uint8_t)kind,
        .slot = msg->slot,
        .gen = msg->gen,
        .epoch = w->view.epoch,
        .ts = word,
        .arg = msg->arg,
        .value = value,
    };
    output_message(w, from, (uint8_t)lotus_slot_worker(msg->slot), &m);
}

static enum lotus_stored store(struct worker *w, struct home_space *s, const struct msg *msg,
                               uint8_t from)
{
    if (w->node->config.role == NODE_ROLE_COMPUTE || s->far == NULL) {
        return LOTUS_STORED_NO_ROLE;
    }
    struct home_cells *c = of(w, s, from, true);
    struct cell *cell =
        c != NULL ? store_alloc(w->threads[s->space], sizeof *cell + msg->value.n, false) : NULL;
    if (cell == NULL) {
        return LOTUS_STORED_NOMEM;
    }
    if (c->n >= c->buckets_n) {
        grow(c);
    }
    struct cell **at = find(c, msg->arg);
    *cell = (struct cell){.next = NULL, .id = msg->arg, .bytes = msg->value.n};
    if (msg->value.n > 0) {
        memcpy(cell + 1, msg->value.at, msg->value.n);
    }
    *at = cell;
    c->n++;
    count(w, s, true, cell->bytes);
    return LOTUS_STORED;
}

void home_cells_message(struct worker *w, struct home_space *s, const struct msg *msg, uint8_t from)
{
    struct home_cells *c = s->far != NULL ? of(w, s, from, false) : NULL;
    struct cell **at = c != NULL ? find(c, msg->arg) : NULL;
    bool found = at != NULL && *at != NULL;
    bool asked = lotus_slot_worker(msg->slot) < WORKERS_MAX;
    if (msg->kind == LOTUS_MSG_FORGET) {
        if (found) {
            cell_free(w, s, c, at);
        }
    } else if (!asked || (msg->kind == LOTUS_MSG_STORE && found)) {
        w->stats.engine_drops[ENGINE_DROP_INVALID]++; /* no owner does so (F1) */
    } else if (msg->kind == LOTUS_MSG_STORE) {
        answer(w, msg, from, LOTUS_MSG_STORED, store(w, s, msg, from), bytes_of(NULL, 0));
    } else {
        answer(w, msg, from, LOTUS_MSG_FETCHED, found ? 0 : 1,
               found ? bytes_of(*at + 1, (*at)->bytes) : bytes_of(NULL, 0));
    }
}
