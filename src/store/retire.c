#include "store/retire.h"

#include "base/assert.h"

#define RETIRE_BLOB ((retire_item)1)

static bool item_is_blob(retire_item item)
{
    return (item & RETIRE_BLOB) != 0;
}

static struct object *item_object(retire_item item)
{
    return (struct object *)(uintptr_t)item;
}

static struct blob *item_blob(retire_item item)
{
    return (struct blob *)(uintptr_t)(item & ~RETIRE_BLOB);
}

static retire_item item_next(retire_item item)
{
    return item_is_blob(item) ? item_blob(item)->link : object_link(item_object(item));
}

static void item_set_next(retire_item item, retire_item next)
{
    if (item_is_blob(item)) {
        item_blob(item)->link = next;
    } else {
        object_kill(item_object(item), next);
    }
}

/* What the item keeps from being used again. */
static size_t item_bytes(retire_item item)
{
    if (item_is_blob(item)) {
        return memory_charge_of(blob_allocated(item_blob(item)->bytes));
    }
    const struct object *o = item_object(item);
    const struct blob *blob = object_blob(o);
    size_t bytes = memory_charge_of(object_allocated(o));
    return blob == NULL ? bytes : bytes + memory_charge_of(blob_allocated(blob->bytes));
}

static void item_free(retire_item item, struct memory_cache *cache)
{
    struct blob *blob;
    if (item_is_blob(item)) {
        blob = item_blob(item);
    } else {
        struct object *o = item_object(item);
        blob = object_blob(o);
        memory_give(cache, o, object_allocated(o));
    }
    if (blob != NULL) {
        memory_give(cache, blob, blob_allocated(blob->bytes));
    }
}

static void count(_Atomic int64_t *counter, int64_t n)
{
    /* relaxed: one writer at a time; readers want no more than a number. */
    int64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + n, memory_order_relaxed);
}

/* Puts all of source in front of target. */
static void list_join(struct retire_list *target, struct retire_list *source)
{
    if (source->first == 0) {
        return;
    }
    if (target->first == 0) {
        *target = *source;
    } else {
        item_set_next(source->last, target->first);
        target->first = source->first;
    }
    *source = (struct retire_list){0, 0};
}

static void retire_push(struct retire *r, retire_item item)
{
    count(&r->bytes, (int64_t)item_bytes(item));
    item_set_next(item, r->open.first);
    r->open.first = item;
    if (r->open.last == 0) {
        r->open.last = item;
    }
}

void retire_object(struct retire *r, struct object *o)
{
    retire_push(r, (retire_item)(uintptr_t)o);
}

void retire_blob(struct retire *r, struct blob *blob)
{
    retire_push(r, (retire_item)(uintptr_t)blob | RETIRE_BLOB);
}

static void retire_adopt(struct retire *r, struct retire_orphans *orphans)
{
    /* relaxed: a hint; the lock orders what is behind it. */
    if (atomic_load_explicit(&orphans->bytes, memory_order_relaxed) <= 0) {
        return;
    }
    spin_lock(&orphans->lock);
    int64_t bytes = atomic_load_explicit(&orphans->bytes, memory_order_relaxed);
    list_join(&r->open, &orphans->list);
    atomic_store_explicit(&orphans->bytes, 0, memory_order_relaxed);
    spin_unlock(&orphans->lock);
    count(&r->bytes, bytes);
}

static void retire_free_due(struct retire *r, struct memory_cache *cache)
{
    for (uint32_t i = 0; i < RETIRE_FREED_MAX && r->due.first != 0; i++) {
        retire_item item = r->due.first;
        r->due.first = item_next(item);
        count(&r->bytes, -(int64_t)item_bytes(item));
        item_free(item, cache);
    }
    if (r->due.first == 0) {
        r->due.last = 0;
    }
}

void retire_poll(struct retire *r, struct retire_orphans *orphans, struct epoch *epoch,
                 uint32_t slot, struct memory_cache *cache)
{
    if (r->sealed.first == 0) {
        retire_adopt(r, orphans);
        if (r->open.first != 0) {
            r->sealed = r->open;
            r->open = (struct retire_list){0, 0};
            r->stamp = epoch_seal(epoch);
            /* This thread is quiescent after the seal, too: alone, it frees at once. */
            epoch_quiescent(epoch, slot);
        }
    }
    if (r->sealed.first != 0 && epoch_passed(epoch, r->stamp)) {
        list_join(&r->due, &r->sealed);
    }
    if (r->due.first != 0) {
        retire_free_due(r, cache);
    }
}

void retire_close(struct retire *r, struct retire_orphans *orphans)
{
    if (r->open.first == 0 && r->sealed.first == 0 && r->due.first == 0) {
        return;
    }
    spin_lock(&orphans->lock);
    list_join(&orphans->list, &r->open);
    list_join(&orphans->list, &r->sealed);
    list_join(&orphans->list, &r->due);
    int64_t bytes = atomic_load_explicit(&r->bytes, memory_order_relaxed);
    count(&orphans->bytes, bytes);
    spin_unlock(&orphans->lock);
    atomic_store_explicit(&r->bytes, 0, memory_order_relaxed);
}
