/* What must hold. The machine's own assertions are made while it steps; here is what transactions
 * and their clients must see:
 *
 *   agree     whoever may read has the newest version that is done, and of one transaction
 *   durable   what clients were told is on every replica, or something later is
 *   closed    what is done has read only what is done, or stored by who will finish it
 *   whole     who reads all objects sees a transaction whole, and sees it if it sees what overwrote
 *             what the transaction has read
 *   rest      where nothing is under way nothing is stored, and all objects are reliable */
#include <string.h>

#include "explore/commit_model.h"

bool commits_readable(const struct commits_world *w, uint8_t node, uint8_t object)
{
    const struct commits_object *o = &w->nodes[node].objects[object];
    return commits_alive(w, node) && o->have && o->state == ZEUS_VALID;
}

static uint8_t newest_done(const struct commits_world *w, uint8_t object)
{
    uint8_t newest = 0;
    for (uint32_t i = 0; i < COMMITS_TXS; i++) {
        const struct commits_tx *t = &w->txs[i];
        newest = t->done && t->wrote[object] > newest ? t->wrote[object] : newest;
    }
    return newest;
}

static const char *object_broken(const struct commits_world *w, uint8_t object)
{
    uint8_t tx = UINT8_MAX;
    for (uint8_t i = 0; i < COMMITS_NODES; i++) {
        const struct commits_object *o = &w->nodes[i].objects[object];
        if (!commits_readable(w, i, object)) {
            continue;
        }
        if (o->version != newest_done(w, object)) {
            return "somebody would answer a version that is not the newest";
        }
        if (tx != UINT8_MAX && tx != o->tx) {
            return "one version has two values";
        }
        tx = o->tx;
    }
    return NULL;
}

static bool stored(const struct commits_world *w, const struct commits_tx *t)
{
    for (uint8_t i = 0; i < COMMITS_NODES; i++) {
        const struct commits_pipe *p = &w->nodes[i].pipes[t->pipe];
        if (commits_alive(w, i) && p->known && t->slot >= p->first && t->slot < p->next &&
            (p->stored[t->slot - 1] || i == t->node)) {
            return true;
        }
    }
    return false;
}

/* All replicas of something that it wrote are gone. */
static bool gone(const struct commits_model *model, const struct commits_world *w,
                 const struct commits_tx *t)
{
    for (uint8_t i = 0; i < COMMITS_OBJECTS; i++) {
        if (t->wrote[i] != 0 && (model->setup->replicas[i] & w->live[w->nviews - 1]) == 0) {
            return true;
        }
    }
    return false;
}

static const char *tx_broken(const struct commits_model *model, const struct commits_world *w,
                             const struct commits_tx *t)
{
    for (uint8_t i = 0; i < COMMITS_TXS; i++) {
        const struct commits_tx *other = &w->txs[i];
        if (t->done && (t->seen >> i & 1) != 0 && !other->done && !stored(w, other) &&
            !gone(model, w, other)) {
            return "a transaction that is done has read what never was";
        }
    }
    for (uint8_t i = 0; i < COMMITS_NODES; i++) {
        for (uint8_t k = 0; k < COMMITS_OBJECTS && t->told; k++) {
            const struct commits_object *o = &w->nodes[i].objects[k];
            if (commits_alive(w, i) && o->have && o->version < t->wrote[k]) {
                return "a client was told of a transaction that a replica does not have";
            }
        }
    }
    return NULL;
}

/* C12: by who reads all objects at one moment. */
static bool whole(const struct commits_world *w, uint8_t node, const struct commits_tx *t)
{
    bool must = t->done;
    for (uint8_t k = 0; k < COMMITS_OBJECTS; k++) {
        const struct commits_object *o = &w->nodes[node].objects[k];
        bool overwritten = t->read[k] != 0 && t->wrote[k] == 0 && o->version >= t->read[k];
        must = must || (overwritten && (stored(w, t) || t->done));
    }
    for (uint8_t k = 0; k < COMMITS_OBJECTS; k++) {
        if (must && w->nodes[node].objects[k].version < t->wrote[k]) {
            return false;
        }
    }
    return true;
}

const char *commits_broken(const void *self, const void *state)
{
    const struct commits_model *model = self;
    const struct commits_world *w = state;
    const char *broken = NULL;
    for (uint8_t i = 0; i < COMMITS_OBJECTS && broken == NULL; i++) {
        broken = object_broken(w, i);
    }
    for (uint8_t i = 0; i < w->begun && broken == NULL; i++) {
        broken = tx_broken(model, w, &w->txs[i]);
        for (uint8_t node = 0; node < COMMITS_NODES && broken == NULL; node++) {
            if (commits_readable(w, node, 0) && commits_readable(w, node, 1) &&
                !whole(w, node, &w->txs[i])) {
                broken = "what one node reads is not serializable";
            }
        }
    }
    return broken;
}

bool commits_at_rest(const struct commits_world *w)
{
    for (uint8_t i = 0; i < COMMITS_NODES; i++) {
        const struct commits_node *n = &w->nodes[i];
        if (!commits_alive(w, i)) {
            continue;
        }
        if (n->recovered != n->epoch) {
            return false;
        }
        for (uint8_t k = 0; k < COMMITS_OBJECTS; k++) {
            if (n->objects[k].have && n->objects[k].state != ZEUS_VALID) {
                return false;
            }
        }
        for (uint8_t k = 0; k < COMMITS_PIPES; k++) {
            if (n->pipes[k].known && n->pipes[k].first != n->pipes[k].next) {
                return false;
            }
        }
    }
    return true;
}

bool commits_finished(const void *self, const void *state)
{
    const struct commits_model *model = self;
    const struct commits_world *w = state;
    return w->begun == model->setup->txs && w->nmessages == 0 && commits_at_rest(w);
}
