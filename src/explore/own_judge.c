/* What must hold. The machine's own assertions are made while it steps; here is what transactions
 * must see:
 *
 *   agree     all that can be read is the newest value that could be read
 *   fresh     a value that was replaced never comes back, and a commit replaces what it saw
 *   owner     one node writes, and knows all who can read
 *   once      a request is carried out once (own_shell.c)
 *   kept      where R15 asks for two replicas, no value that could be read is gone with one node,
 *             and what nobody could read does not count as lost (R17)
 *   rest      where nothing is under way nobody waits, and the directory agrees */
#include <string.h>

#include "base/assert.h"
#include "explore/own_model.h"

bool owns_readable(const struct owns_world *w, uint8_t node)
{
    const struct owns_node *n = &w->nodes[node];
    return owns_alive(w, node) && n->have && n->state == ZEUS_VALID && !n->shut;
}

bool owns_writable(const struct owns_world *w, uint8_t node)
{
    const struct owns_node *n = &w->nodes[node];
    return owns_alive(w, node) && n->have && n->owned && n->state != ZEUS_INVALID;
}

void owns_note(struct owns_shell *shell)
{
    struct owns_world *w = shell->world;
    for (uint8_t i = 0; i < OWNS_NODES; i++) {
        uint8_t value = w->nodes[i].value;
        if (shell->broken != NULL || !owns_readable(w, i) || value == w->last) {
            continue;
        }
        if (((uint32_t)w->seen >> value & 1u) != 0) {
            shell->broken = "a value that was replaced can be read again";
        } else if (value == OWNS_VALUE_NEW && w->seen != 0) {
            shell->broken = "an object that was there is made anew";
        } else if (value > OWNS_VALUE_START && w->base[value - OWNS_VALUE_START - 1] != w->last) {
            shell->broken = "a commit replaced what it had not seen";
        }
        w->seen |= (uint8_t)(1u << value);
        w->last = value;
    }
}

/* Some node has what could be read last, or what is about to replace it. */
static bool is_kept(const struct owns_world *w)
{
    for (uint8_t i = 0; i < OWNS_NODES; i++) {
        if (owns_alive(w, i) && w->nodes[i].have && w->nodes[i].value >= w->last) {
            return true;
        }
    }
    return w->last == OWNS_VALUE_NEW;
}

const char *owns_broken(const void *self, const void *state)
{
    const struct owns_model *model = self;
    const struct owns_world *w = state;
    if (model->setup->enough && !is_kept(w)) {
        return "a value that could be read is gone";
    }
    for (uint8_t i = 0; i < OWNS_NODES; i++) {
        if (owns_readable(w, i) && w->nodes[i].value != w->last) {
            return "somebody would answer a value that is not the newest";
        }
        if (!owns_writable(w, i)) {
            continue;
        }
        const struct view *view = owns_view(model, w, w->nodes[i].epoch);
        struct own_vector v = own_masked(&w->nodes[i].entry.vector, view);
        if (v.owner != i) {
            return "who writes is not the owner by its own entry";
        }
        if (w->commit_epoch != 0 && w->commit_taken != 0 &&
            w->nodes[i].version < w->commit_version) {
            return "who writes has not what a dead owner's commit is about to make of it";
        }
        for (uint8_t k = 0; k < OWNS_NODES; k++) {
            if (k != i && owns_writable(w, k)) {
                return "two write";
            }
            if (k != i && owns_readable(w, k) && !nodeset_has(v.readers, k)) {
                return "somebody reads of whom the owner does not know";
            }
        }
    }
    return NULL;
}

bool owns_directory_agrees(const struct owns_model *model, const struct owns_world *w)
{
    const struct own_vector *known = NULL;
    uint64_t ts = 0;
    for (nodeset rest = model->setup->directory; rest != 0; rest &= rest - 1) {
        const struct owns_node *n = &w->nodes[nodeset_first(rest)];
        if (!owns_alive(w, nodeset_first(rest))) {
            continue;
        }
        if (known != NULL && (n->entry.ts != ts || n->entry.vector.owner != known->owner ||
                              n->entry.vector.readers != known->readers ||
                              n->entry.vector.degree != known->degree)) {
            return false;
        }
        ts = n->entry.ts;
        known = &n->entry.vector;
    }
    struct own_vector v = {.owner = NODE_NONE};
    if (known != NULL && ts != 0) {
        v = own_masked(known, owns_view(model, w, w->nviews));
    }
    for (uint8_t i = 0; i < OWNS_NODES && known != NULL; i++) {
        bool replica = v.owner == i || nodeset_has(v.readers, i);
        if (owns_alive(w, i) &&
            (replica != w->nodes[i].have || (v.owner == i) != w->nodes[i].owned)) {
            return false;
        }
    }
    return true;
}

bool owns_never_was(const struct owns_model *model, const struct owns_world *w)
{
    for (nodeset rest = model->setup->directory; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        const struct own_entry *entry = &w->nodes[node].entry;
        if (!owns_alive(w, node) || entry->ts == 0 || !model->setup->enough) {
            continue;
        }
        struct own_vector v = own_masked(&entry->vector, owns_view(model, w, w->nviews));
        bool lost = v.owner == NODE_NONE && v.readers == 0 && (v.degree & OWN_FRESH) == 0;
        return lost && (w->seen & ~(1u << OWNS_VALUE_NEW)) == 0;
    }
    return false;
}

bool owns_at_rest(const struct owns_world *w, bool timers_count)
{
    for (uint8_t i = 0; i < OWNS_NODES; i++) {
        const struct owns_node *n = &w->nodes[i];
        if (!owns_alive(w, i)) {
            continue;
        }
        if (!own_idle(&n->busy) && (timers_count || n->busy.due_us == 0)) {
            return false;
        }
        if (n->have && (n->state != ZEUS_VALID || n->shut) &&
            (timers_count || own_idle(&n->busy))) {
            return false;
        }
    }
    return true;
}

bool owns_finished(const void *self, const void *state)
{
    const struct owns_model *model = self;
    const struct owns_world *w = state;
    for (uint8_t i = 0; i < OWNS_WANTS; i++) {
        const struct owns_want *want = &model->setup->wants[i];
        if (want->type != OWN_NONE && w->phase[i] != WANT_ENDED && owns_alive(w, want->node)) {
            return false;
        }
    }
    return w->nmessages == 0 && owns_at_rest(w, true);
}
