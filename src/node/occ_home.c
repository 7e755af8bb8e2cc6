/* The objects' side of the baseline: locks, reads and stores, for this node's own transactions and
 * for messages of others. key_meta.owner is the lock: the locker's number. What is locked before it
 * exists is a tombstone without a version. */
#include "node/occ.h"

#include <string.h>

#include "base/assert.h"

static void see_version(struct worker *w, uint64_t version)
{
    uint64_t counter = stamp_version(version);
    w->occs->clock = counter > w->occs->clock ? counter : w->occs->clock;
}

/* The value's bytes move to `values`, where they stay when the lock is gone. */
static void keep(struct worker *w, const struct key_meta *meta, struct bytes value,
                 struct buffer *values, struct occ_object *o)
{
    see_version(w, meta->ts);
    o->version = meta->ts;
    o->flags = (meta->flags & KEY_TOMBSTONE) != 0 ? OCC_ABSENT : meta->flags & KEY_VALUE_FLAGS;
    o->value = bytes_of(NULL, 0);
    if ((meta->flags & KEY_TOMBSTONE) == 0 && value.n > 0) {
        uint8_t *at = buffer_add(values, value.n);
        memcpy(at, value.at, value.n);
        o->value = bytes_of(at, value.n);
    }
}

bool occ_lock(struct worker *w, uint8_t space, struct bytes key, uint64_t hash, uint32_t locker,
              struct buffer *values, struct occ_object *o)
{
    struct store_ref ref;
    struct key_meta meta = {.flags = KEY_TOMBSTONE};
    struct bytes value = {NULL, 0};
    bool free_here = true;
    store_lock(w->node->spaces[space].store, w->threads[space], key, hash, &ref);
    if (ref.object != NULL) {
        meta = store_meta(&ref);
        value = store_value_of(&ref, w->scratch, STORE_INLINE_MAX);
        free_here = meta.owner == 0;
    }
    if (free_here) {
        keep(w, &meta, value, values, o);
        meta.owner = locker;
        if (ref.object != NULL) {
            store_set_meta(&ref, &meta);
        } else {
            free_here = store_set(&ref, &meta, value, true) == HK_OK;
        }
    }
    store_unlock(&ref);
    return free_here;
}

bool occ_read(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
              struct buffer *values, struct occ_object *o)
{
    struct store_value v = {.found = false};
    int err = store_read(w->node->spaces[space].store, w->threads[space], key, hash, w->scratch,
                         STORE_INLINE_MAX, &v);
    HK_ASSERT(err == HK_OK);
    if (!v.found) {
        *o = (struct occ_object){.flags = OCC_ABSENT};
        return true;
    }
    if (v.meta.owner != 0) {
        return false;
    }
    keep(w, &v.meta, v.value, values, o);
    return true;
}

bool occ_holds(struct worker *w, uint8_t space, struct bytes key, uint64_t hash, uint64_t version)
{
    struct store_value v = {.found = false};
    int err = store_read(w->node->spaces[space].store, w->threads[space], key, hash, w->scratch,
                         STORE_INLINE_MAX, &v);
    HK_ASSERT(err == HK_OK);
    return v.found ? v.meta.owner == 0 && v.meta.ts == version : version == 0;
}

void occ_unlock(struct worker *w, uint8_t space, struct bytes key, uint64_t hash, uint32_t locker)
{
    struct store_ref ref;
    store_lock(w->node->spaces[space].store, w->threads[space], key, hash, &ref);
    if (ref.object != NULL) {
        struct key_meta meta = store_meta(&ref);
        if (meta.owner == locker && meta.ts == 0) {
            store_remove(&ref);
        } else if (meta.owner == locker) {
            meta.owner = 0;
            store_set_meta(&ref, &meta);
        }
    }
    store_unlock(&ref);
}

void occ_store(struct worker *w, uint8_t space, const struct occ_object *o, uint64_t hash)
{
    struct store_ref ref;
    see_version(w, o->version);
    store_lock(w->node->spaces[space].store, w->threads[space], o->key, hash, &ref);
    if ((o->flags & OCC_ABSENT) == 0) {
        struct key_meta meta = {.ts = o->version, .flags = o->flags & KEY_VALUE_FLAGS};
        int err = store_set(&ref, &meta, o->value, true);
        HK_ASSERT(err == HK_OK); /* store_config.force_any */
    } else if (ref.object != NULL) {
        store_remove(&ref);
    }
    store_unlock(&ref);
}

/* ---- Messages ---- */

static void answer(struct worker *w, const struct msg *msg, uint8_t from, enum occ_kind kind,
                   bool good, struct bytes value)
{
    struct msg m = {
        .space = msg->space,
        .kind = (uint8_t)kind,
        .slot = msg->slot,
        .gen = msg->gen,
        .epoch = w->view.epoch,
        .ts = good,
        .value = good ? value : bytes_of(NULL, 0),
    };
    output_message(w, from, (uint8_t)w->index, &m);
}

/* The objects of a message, and their keys on the way to the cache. */
static uint32_t take_objects(struct worker *w, const struct msg *msg)
{
    struct occs *occs = w->occs;
    struct store *store = w->node->spaces[msg->space].store;
    struct bytes rest = msg->value;
    uint32_t n = 0;
    while (occ_object_take(&rest, &occs->objects[n])) {
        occs->hashes[n] = store_hash(store, occs->objects[n].key);
        store_prefetch_bucket(store, occs->hashes[n]);
        n++;
    }
    for (uint32_t i = 0; i < n && n > 1; i++) {
        store_prefetch_object(store, occs->hashes[i]);
    }
    return n;
}

/* Locks first, then reads, then, if there were several reads, another look at each (O2). */
static bool execute(struct worker *w, const struct msg *msg, uint32_t n, struct buffer *values)
{
    struct occs *occs = w->occs;
    uint32_t locker = (uint32_t)msg->arg, reads = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < n; i++) {
            struct occ_object *o = &occs->objects[i];
            bool lock = (o->flags & OCC_LOCK) != 0;
            struct occ_object found = {.version = 0};
            if (lock != (pass == 0)) {
                continue;
            }
            uint32_t at = values->n;
            if (lock ? !occ_lock(w, msg->space, o->key, occs->hashes[i], locker, values, &found)
                     : !occ_read(w, msg->space, o->key, occs->hashes[i], values, &found)) {
                return false;
            }
            reads += !lock;
            o->version = found.version;
            o->flags = (uint8_t)(found.flags | (lock ? OCC_LOCK : 0));
            /* The buffer may move: for now only where it stands counts. */
            o->value = (struct bytes){(const uint8_t *)(uintptr_t)at, found.value.n};
        }
    }
    for (uint32_t i = 0; i < n && reads > 1; i++) {
        const struct occ_object *o = &occs->objects[i];
        if ((o->flags & OCC_LOCK) == 0 &&
            !occ_holds(w, msg->space, o->key, occs->hashes[i], o->version)) {
            return false;
        }
    }
    return true;
}

static void unlock_all(struct worker *w, const struct msg *msg, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        occ_unlock(w, msg->space, w->occs->objects[i].key, w->occs->hashes[i], (uint32_t)msg->arg);
    }
}

static void take_execute(struct worker *w, const struct msg *msg, uint8_t from)
{
    struct occs *occs = w->occs;
    uint32_t n = take_objects(w, msg);
    struct buffer *values = &occs->values;
    values->n = 0;
    if (!execute(w, msg, n, values)) {
        unlock_all(w, msg, n);
        answer(w, msg, from, OCC_MSG_EXECUTED, false, bytes_of(NULL, 0));
        return;
    }
    occs->out.n = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct occ_object o = occs->objects[i];
        o.key = bytes_of(NULL, 0);
        o.value = bytes_within(values->at, (uintptr_t)o.value.at, o.value.n);
        o.flags &= (uint8_t)~OCC_LOCK;
        (void)occ_object_put(buffer_add(&occs->out, occ_object_bytes(&o)), &o);
    }
    answer(w, msg, from, OCC_MSG_EXECUTED, true, bytes_of(occs->out.at, occs->out.n));
}

static void take_validate(struct worker *w, const struct msg *msg, uint8_t from)
{
    uint32_t n = take_objects(w, msg);
    bool holds = true;
    for (uint32_t i = 0; i < n && holds; i++) {
        const struct occ_object *o = &w->occs->objects[i];
        holds = occ_holds(w, msg->space, o->key, w->occs->hashes[i], o->version);
    }
    answer(w, msg, from, OCC_MSG_VALIDATED, holds, bytes_of(NULL, 0));
}

/* False, and nothing is done: a value is larger than this space's can be. */
static bool store_all(struct worker *w, const struct msg *msg)
{
    uint32_t n = take_objects(w, msg);
    uint32_t most = w->node->config.spaces[msg->space].store.value_bytes_max + 8; /* a deadline */
    for (uint32_t i = 0; i < n; i++) {
        if (w->occs->objects[i].value.n > most) {
            w->stats.engine_drops[ENGINE_DROP_INVALID]++;
            return false;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct occ_object *o = &w->occs->objects[i];
        if ((o->flags & OCC_LOCK) != 0) {
            occ_unlock(w, msg->space, o->key, w->occs->hashes[i], (uint32_t)msg->arg);
        } else {
            occ_store(w, msg->space, o, w->occs->hashes[i]);
        }
    }
    return true;
}

void occ_home_message(struct worker *w, const struct msg *msg, uint8_t from)
{
    switch ((enum occ_kind)msg->kind) {
    case OCC_MSG_EXECUTE:
        take_execute(w, msg, from);
        break;
    case OCC_MSG_VALIDATE:
        take_validate(w, msg, from);
        break;
    case OCC_MSG_REPLICATE:
        if (store_all(w, msg)) {
            answer(w, msg, from, OCC_MSG_REPLICATED, true, bytes_of(NULL, 0));
        }
        break;
    case OCC_MSG_COMMIT:
        (void)store_all(w, msg);
        break;
    case OCC_MSG_UNLOCK:
        unlock_all(w, msg, take_objects(w, msg));
        break;
    case OCC_MSG_EXECUTED:
    case OCC_MSG_VALIDATED:
    case OCC_MSG_REPLICATED:
    case OCC_MSG_END:
        break;
    }
}
