/* What somebody sees of an object that has an owner: a client that asks its node, and who stands
 * beside a node, as tests and the simulator do. */
#include "node/own_internal.h"

#include "base/assert.h"
#include "node/txn_internal.h"

int worker_owned_object(struct worker *w, uint32_t space, struct bytes key,
                        struct owned_object *object_out)
{
    uint64_t buffer[2];
    struct store_value v;
    if (space >= SPACES_MAX || node_directory(w->node, space) == NULL || key.n > STORE_KEY_MAX) {
        return HK_ERR_INVALID;
    }
    struct store *store = w->node->spaces[space].store;
    uint64_t hash = store_hash(store, key);
    *object_out = (struct owned_object){.directory = own_directory(&w->view, own_portable(w, key))};
    struct own_entry *entry = &object_out->entry;
    entry->vector.owner = NODE_NONE;
    int err = store_read(w->node->spaces[space].directory, w->directories[space], key, hash, buffer,
                         sizeof buffer, &v);
    HK_ASSERT(err == HK_OK);
    if (v.found) {
        *entry = own_entry_of(&v.meta, v.value);
    }
    object_out->vector = own_masked(&entry->vector, &w->view);
    object_out->degree = own_degree(w, (uint8_t)space, &entry->vector);
    object_out->lost = entry->ts != 0 && own_is_lost(entry, &w->view);
    err = store_read(store, w->threads[space], key, hash, buffer, sizeof buffer, &v);
    object_out->have = (err == HK_OK || err == HK_ERR_TOOBIG) && v.found;
    if (object_out->have) {
        object_out->meta = v.meta;
    }
    return HK_OK;
}

struct store *node_directory(struct node *n, uint32_t space)
{
    return space < SPACES_MAX ? n->spaces[space].directory : NULL;
}

static void look_at(struct store *store, struct store_thread *thread, struct bytes key,
                    uint8_t *buffer, struct store_value *value_out)
{
    *value_out = (struct store_value){.found = false};
    store_online(thread);
    int err =
        store_read(store, thread, key, store_hash(store, key), buffer, STORE_INLINE_MAX, value_out);
    HK_ASSERT(err == HK_OK || !value_out->found);
}

static void look_away(struct store_thread *thread)
{
    store_quiescent(thread);
    store_offline(thread);
}

void node_owned_look(struct node *n, uint32_t space, struct store_thread *data,
                     struct store_thread *entries, struct bytes key, struct owned_look *look_out)
{
    _Alignas(8) uint8_t buffer[STORE_INLINE_MAX];
    struct store_value value;
    HK_ASSERT(node_directory(n, space) != NULL);
    struct worker *w = &n->workers[0];
    uint64_t portable = own_portable(w, key);
    *look_out = (struct owned_look){.directory = own_directory(&w->view, portable)};
    look_at(n->spaces[space].directory, entries, key, buffer, &value);
    if (value.found) {
        look_out->entry = own_entry_of(&value.meta, value.value);
    } else {
        look_out->entry.vector.owner = NODE_NONE;
    }
    look_away(entries);
    look_at(n->spaces[space].store, data, key, buffer, &value);
    look_out->have = value.found;
    look_out->meta = value.meta;
    look_away(data);
    struct worker *own = &n->workers[own_worker(w, portable)];
    const struct own_record *r =
        own_record_find(own, (uint8_t)space, key, store_hash(n->spaces[space].store, key));
    if (r != NULL) {
        look_out->busy = r->busy;
    }
}

static bool partly_acked(const struct commit_pipe *pipe, uint64_t slot)
{
    const struct commit_slot *s = &pipe->slots[slot % COMMIT_SLOTS];
    for (nodeset rest = s->followers; rest != 0; rest &= rest - 1) {
        if (pipe->acked[nodeset_first(rest)] >= slot) {
            return true;
        }
    }
    return false;
}

static void count_own(const struct commit_pipe *pipe, struct pipes_look *look)
{
    for (uint64_t slot = pipe->first; slot < pipe->next; slot++) {
        uint8_t state = pipe->slots[slot % COMMIT_SLOTS].state;
        look->held += state == COMMIT_HELD;
        look->sent += state == COMMIT_SENT;
        look->part += state == COMMIT_SENT && partly_acked(pipe, slot);
    }
}

static void count_followed(const struct commit_pipe *pipe, struct pipes_look *look)
{
    for (uint64_t slot = pipe->first; slot < pipe->next; slot++) {
        bool stored = pipe->slots[slot % COMMIT_SLOTS].stored;
        look->stored += stored && !pipe->dead;
        look->replay += stored && pipe->dead;
        look->replay_part += stored && pipe->dead && partly_acked(pipe, slot);
    }
}

void node_pipes_look(struct node *n, uint32_t space, struct pipes_look *look_out)
{
    *look_out = (struct pipes_look){.held = 0};
    for (uint32_t i = 0; i < n->config.workers; i++) {
        struct txn_space *s = n->workers[i].txns->spaces[space];
        list_each(link, &s->pipes)
        {
            count_own(&list_entry(link, struct txn_pipe, link)->commit, look_out);
        }
        list_each(link, &s->follows)
        {
            count_followed(&list_entry(link, struct txn_pipe, link)->commit, look_out);
        }
    }
}
