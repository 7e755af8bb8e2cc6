/* Changing: under the lock of the key's bucket. */
#include "store/state.h"

/* Keys that a thread counts before it tells growth. */
#define WRITE_FOLD_KEYS 8
/* Splits that one insert may do: more than WRITE_FOLD_KEYS keys ask for, so that threads which were
 * turned away by the grow lock catch up. */
#define WRITE_SPLITS_MAX 4u

void store_lock(struct store *store, struct store_thread *thread, struct bytes key, uint64_t hash,
                struct store_ref *ref_out)
{
    HK_CHECK(thread->store == store);
    HK_CHECK(epoch_is_online(&store->epoch, thread->slot));
    HK_ASSERT(!thread->locked);
    struct bucket *first = index_lock(&store->index, hash);
    thread->locked = true;
    thread->looks++;
    *ref_out = (struct store_ref){
        .store = store,
        .thread = thread,
        .key = key,
        .hash = hash,
        .bucket = first,
        .object = index_find_locked(first, key, hash),
    };
}

void store_unlock(struct store_ref *ref)
{
    struct store_thread *thread = ref->thread;
    index_unlock(ref->bucket);
    thread->locked = false;
    if (thread->grow_due) {
        thread->grow_due = false;
        index_grow(&ref->store->index, &thread->memory, WRITE_SPLITS_MAX);
    }
}

struct key_meta store_meta(const struct store_ref *ref)
{
    return object_meta(ref->object);
}

struct bytes store_value_of(const struct store_ref *ref, void *buffer, uint32_t capacity)
{
    /* Under the lock nobody writes the value, so it need not be copied. */
    (void)buffer;
    (void)capacity;
    return object_value(ref->object);
}

void *store_hold(const struct store_ref *ref)
{
    struct blob *blob = object_blob(ref->object);
    if (blob == NULL || blob_allocated(blob->bytes) <= SLAB_CELL_MAX) {
        return NULL;
    }
    memory_own(blob);
    return blob;
}

void store_release(void *hold)
{
    memory_disown(hold);
}

/* An entry came (1) or went (-1). */
static void write_count_key(struct store_thread *thread, int32_t n)
{
    thread_count(&thread->keys, n);
    thread->unfolded += n;
    if (thread->unfolded >= WRITE_FOLD_KEYS || thread->unfolded <= -WRITE_FOLD_KEYS) {
        thread->grow_due = thread->unfolded > 0;
        thread_fold_keys(thread);
    }
}

static int64_t is_tombstone(const struct key_meta *meta)
{
    return (meta->flags & KEY_TOMBSTONE) != 0;
}

static void write_count_tombstone(const struct store_ref *ref, int64_t before, int64_t after)
{
    if (before != after) {
        thread_count(&ref->thread->tombstones, after - before);
    }
}

void store_set_meta(struct store_ref *ref, const struct key_meta *meta)
{
    struct key_meta before = object_meta(ref->object);
    object_write_meta(ref->object, meta);
    write_count_tombstone(ref, is_tombstone(&before), is_tombstone(meta));
}

/* A filled blob; NULL when there is no memory. */
static struct blob *write_blob(struct store_thread *thread, struct bytes value,
                               enum memory_limit limit)
{
    struct blob *blob = memory_take(&thread->memory, blob_allocated(value.n), limit);
    if (blob != NULL) {
        blob->link = 0;
        blob->bytes = value.n;
        memcpy(blob_at(blob), value.at, value.n);
    }
    return blob;
}

/* A filled object that nobody sees yet, which owns blob if that is not NULL. */
static struct object *write_object(const struct store_ref *ref, const struct key_meta *meta,
                                   struct bytes value, struct blob *blob, enum memory_limit limit)
{
    struct object *o = memory_take(&ref->thread->memory, object_bytes(ref->key.n, value.n), limit);
    if (o != NULL) {
        object_fill(o, ref->key, meta, value, blob);
    }
    return o;
}

/* A new entry for a key that has none. */
static int write_insert(struct store_ref *ref, const struct key_meta *meta, struct bytes value,
                        struct blob *blob, enum memory_limit limit)
{
    struct store_thread *thread = ref->thread;
    struct object *o = write_object(ref, meta, value, blob, limit);
    if (o == NULL) {
        return HK_ERR_NOMEM;
    }
    _Atomic uint64_t *entry = index_room(&ref->store->index, &thread->memory, ref->bucket, limit);
    if (entry == NULL) {
        memory_give(&thread->memory, o, object_bytes(ref->key.n, value.n));
        return HK_ERR_NOMEM;
    }
    index_point(entry, o, ref->hash);
    ref->object = o;
    write_count_key(thread, 1);
    write_count_tombstone(ref, 0, is_tombstone(meta));
    return HK_OK;
}

/* Whether a value of that length fits the object's cell as if it had been made for it. */
static bool write_fits_in_place(const struct store_ref *ref, size_t value_bytes)
{
    if (object_value(ref->object).n == value_bytes) {
        return true;
    }
    size_t now = object_allocated(ref->object);
    size_t then = object_bytes(ref->key.n, value_bytes);
    return now == then || memory_charge_of(now) == memory_charge_of(then);
}

static void write_in_place(struct store_ref *ref, const struct key_meta *meta, struct bytes value,
                           struct blob *blob)
{
    struct blob *old_blob = object_blob(ref->object);
    object_write(ref->object, meta, value, blob);
    if (old_blob != NULL) {
        retire_blob(&ref->thread->retire, old_blob);
    }
}

/* The entry of the locked object. */
static _Atomic uint64_t *write_entry(const struct store_ref *ref)
{
    return index_locate(ref->bucket, ref->key, ref->hash);
}

/* The key's entry gets another object. */
static int write_replace(struct store_ref *ref, const struct key_meta *meta, struct bytes value,
                         struct blob *blob, enum memory_limit limit)
{
    struct object *old = ref->object;
    struct object *o = write_object(ref, meta, value, blob, limit);
    if (o == NULL) {
        return HK_ERR_NOMEM;
    }
    index_point(write_entry(ref), o, ref->hash);
    retire_object(&ref->thread->retire, old);
    ref->object = o;
    return HK_OK;
}

/* Bytes of an object together with its blob, as they are charged. */
static size_t write_charge_of(size_t key_bytes, size_t value_bytes)
{
    size_t charge = memory_charge_of(object_bytes(key_bytes, value_bytes));
    return object_value_is_blob(value_bytes)
               ? charge + memory_charge_of(blob_allocated(value_bytes))
               : charge;
}

/* How far a write may go. The old and the new value are both in use for a while: what does not grow
 * may borrow for that. */
static enum memory_limit write_limit(const struct store_ref *ref, size_t value_bytes, bool force)
{
    if (force) {
        return MEMORY_HEADROOM;
    }
    if (ref->object == NULL) {
        return MEMORY_NORMAL;
    }
    size_t now = write_charge_of(ref->key.n, object_value(ref->object).n);
    return write_charge_of(ref->key.n, value_bytes) > now ? MEMORY_NORMAL : MEMORY_HEADROOM;
}

/* As store_set, for a value whose blob, if it needs one, is there; one that needs none does not fit
 * in place. */
static int write_value(struct store_ref *ref, const struct key_meta *meta, struct bytes value,
                       struct blob *blob, enum memory_limit limit)
{
    if (ref->object == NULL) {
        return write_insert(ref, meta, value, blob, limit);
    }
    struct key_meta before = object_meta(ref->object);
    int err = HK_OK;
    if (blob != NULL && write_fits_in_place(ref, value.n)) {
        write_in_place(ref, meta, value, blob);
    } else {
        err = write_replace(ref, meta, value, blob, limit);
    }
    if (err == HK_OK) {
        write_count_tombstone(ref, is_tombstone(&before), is_tombstone(meta));
    }
    return err;
}

int store_set(struct store_ref *ref, const struct key_meta *meta, struct bytes value, bool force)
{
    if (ref->key.n > STORE_KEY_MAX || value.n > ref->store->value_bytes_max) {
        return HK_ERR_TOOBIG;
    }
    bool blob_needed = object_value_is_blob(value.n);
    if (!blob_needed && ref->object != NULL && write_fits_in_place(ref, value.n)) {
        /* The usual case, and it allocates nothing: the limit does not matter. */
        struct key_meta before = object_meta(ref->object);
        write_in_place(ref, meta, value, NULL);
        write_count_tombstone(ref, is_tombstone(&before), is_tombstone(meta));
        return HK_OK;
    }
    enum memory_limit limit = write_limit(ref, value.n, force);
    if (!blob_needed) {
        return write_value(ref, meta, value, NULL, limit);
    }
    struct blob *blob = write_blob(ref->thread, value, limit);
    if (blob == NULL) {
        return HK_ERR_NOMEM;
    }
    int err = write_value(ref, meta, value, blob, limit);
    if (err != HK_OK) {
        memory_give(&ref->thread->memory, blob, blob_allocated(value.n));
    }
    return err;
}

void store_remove(struct store_ref *ref)
{
    struct store_thread *thread = ref->thread;
    if (ref->object == NULL) {
        return;
    }
    struct key_meta before = object_meta(ref->object);
    index_clear(&ref->store->index, &thread->memory, ref->bucket, write_entry(ref));
    retire_object(&thread->retire, ref->object);
    ref->object = NULL;
    write_count_key(thread, -1);
    write_count_tombstone(ref, is_tombstone(&before), 0);
}
