#include "store/record.h"

#include <string.h>

#include "base/assert.h"
#include "store/record_state.h"

/* lengths: key 17 bits, value 27 bits, then whether the value is out of line. */
#define LENGTHS_VALUE_AT 17u
#define LENGTHS_KEY_MASK (((uint64_t)1 << LENGTHS_VALUE_AT) - 1u)
#define LENGTHS_VALUE_MASK (((uint64_t)1 << 27) - 1u)
#define LENGTHS_BLOB ((uint64_t)1 << 44)
_Static_assert(STORE_KEY_MAX <= LENGTHS_KEY_MASK && STORE_VALUE_MAX <= LENGTHS_VALUE_MASK,
               "lengths fit");

static uint64_t word_load(const _Atomic uint64_t *word)
{
    /* acquire: pairs with word_store; who sees a later write's word sees the version that it
     * began with (docs/STORE.md, S1). */
    return atomic_load_explicit(word, memory_order_acquire);
}

static void word_store(_Atomic uint64_t *word, uint64_t v)
{
    /* release: pairs with word_load. */
    atomic_store_explicit(word, v, memory_order_release);
}

static bool version_same(const struct record *r, uint64_t version)
{
    /* relaxed: the acquires of the data keep it behind them. */
    return atomic_load_explicit(&r->version, memory_order_relaxed) == version;
}

/* Bytes at, at + 8 of a key or value as they stand in a cell. */
static uint64_t piece(struct bytes b, uint32_t at)
{
    uint64_t word = 0;
    memcpy(&word, b.at + at, b.n - at < 8u ? b.n - at : 8u);
    return word;
}

static uint32_t key_words(uint32_t key_bytes)
{
    return key_bytes > RECORD_KEY_INLINE ? 1u : (key_bytes + 7u) / 8u;
}

/* Whether a value stays in a cell, behind a key. */
static bool value_fits(const struct record_cell *cell, uint32_t key_bytes, uint32_t value_bytes)
{
    return value_bytes <= STORE_INLINE_MAX &&
           RECORD_HEADER_WORDS + key_words(key_bytes) + (value_bytes + 7u) / 8u <= cell->words;
}

/* ---- Blobs ---- */

/* Not filled in yet; 0 past the memory limit. */
static uint64_t blob_create(struct store_thread *thread, uint32_t n)
{
    struct blob *blob = memory_take(&thread->memory, blob_allocated(n), MEMORY_NORMAL);
    if (blob == NULL) {
        return 0;
    }
    *blob = (struct blob){.bytes = n};
    return (uint64_t)(uintptr_t)blob;
}

static struct blob *blob_of(uint64_t address)
{
    return (struct blob *)(uintptr_t)address;
}

static void blob_give(struct store_thread *thread, uint64_t address)
{
    if (address != 0) {
        memory_give(&thread->memory, blob_of(address), blob_allocated(blob_of(address)->bytes));
    }
}

static void blob_retire(struct store_thread *thread, uint64_t address)
{
    if (address != 0) {
        retire_blob(&thread->retire, blob_of(address));
    }
}

static void blob_fill(uint64_t address, uint32_t at, struct bytes bytes)
{
    if (bytes.n > 0) {
        memcpy((uint8_t *)blob_at(blob_of(address)) + at, bytes.at, bytes.n);
    }
}

/* ---- The parts of a cell, by who may write it ---- */

static uint32_t value_bytes(const struct record_value *value)
{
    return value->head.n + value->rest.n;
}

/* Whole words first: the compiler knows how long they are. */
static void put_words(_Atomic uint64_t *words, struct bytes bytes)
{
    uint32_t whole = bytes.n / 8u;
    for (uint32_t i = 0; i < whole; i++) {
        uint64_t word;
        memcpy(&word, bytes.at + 8u * i, sizeof word);
        word_store(&words[i], word);
    }
    if (bytes.n % 8u != 0) {
        word_store(&words[whole], piece(bytes, 8u * whole));
    }
}

/* blob is the value's, filled in; 0 if it stays in the cell. */
static void put_value(struct record *r, uint32_t key_bytes, const struct record_value *value,
                      uint64_t blob)
{
    _Atomic uint64_t *words = record_words(r) + key_words(key_bytes);
    word_store(&r->lengths, key_bytes | (uint64_t)value_bytes(value) << LENGTHS_VALUE_AT |
                                (blob != 0 ? LENGTHS_BLOB : 0));
    if (blob != 0) {
        word_store(words, blob);
        return;
    }
    put_words(words, value->head);
    put_words(words + value->head.n / 8u, value->rest);
}

static void put_key(struct record *r, struct bytes key, uint64_t blob)
{
    _Atomic uint64_t *words = record_words(r);
    if (blob != 0) {
        word_store(words, blob);
        return;
    }
    put_words(words, key);
}

/* The addresses of what is out of line; 0 if nothing is. */
static uint64_t key_blob(const struct record *r)
{
    struct record *own = (struct record *)(uintptr_t)r;
    bool out = (word_load(&r->lengths) & LENGTHS_KEY_MASK) > RECORD_KEY_INLINE;
    return out ? word_load(record_words(own)) : 0;
}

static uint64_t value_blob(const struct record *r)
{
    struct record *own = (struct record *)(uintptr_t)r;
    uint64_t lengths = word_load(&r->lengths);
    uint32_t key_bytes = (uint32_t)(lengths & LENGTHS_KEY_MASK);
    return (lengths & LENGTHS_BLOB) != 0 ? word_load(record_words(own) + key_words(key_bytes)) : 0;
}

/* ---- Checking a hint ---- */

enum has_key { KEY_SAME, KEY_OTHER, KEY_CHANGED };

/* version is what the cell had; the key is compared word by word, or, out of line, in its blob,
 * once it is certain that the address was the record's. */
static enum has_key has_key(const struct record_cell *cell, uint64_t version, struct bytes key)
{
    struct record *r = cell->record;
    uint64_t lengths = word_load(&r->lengths);
    bool same = (lengths & LENGTHS_KEY_MASK) == key.n;
    if (same && key.n > RECORD_KEY_INLINE) {
        uint64_t blob = word_load(record_words(r));
        if (!version_same(r, version)) {
            return KEY_CHANGED;
        }
        return memcmp(blob_at(blob_of(blob)), key.at, key.n) == 0 ? KEY_SAME : KEY_OTHER;
    }
    /* A cell that begins another life may look as if it had a key that is too long for it. */
    same = same && RECORD_HEADER_WORDS + key_words(key.n) + RECORD_VALUE_WORDS_MIN <= cell->words;
    for (uint32_t at = 0; same && at < key.n; at += 8u) {
        same = word_load(&record_words(r)[at / 8u]) == piece(key, at);
    }
    if (same) {
        return KEY_SAME;
    }
    return version_same(r, version) ? KEY_OTHER : KEY_CHANGED;
}

/* Waits for a writer. false: the cell is not in the life that the hint is of. */
static bool read_version(const struct record_cell *cell, uint64_t hint, uint64_t *version_out)
{
    for (uint32_t turns = 0;; spin_wait(&turns)) {
        /* acquire: pairs with the releases of unlock and record_create. */
        uint64_t version = atomic_load_explicit(&cell->record->version, memory_order_acquire);
        if (!version_is_of(version, hint)) {
            return false;
        }
        if ((version & VERSION_WRITING) == 0) {
            *version_out = version;
            return true;
        }
    }
}

bool record_is(const struct records *records, uint64_t hint, struct bytes key)
{
    struct record_cell cell;
    uint64_t version;
    if (!record_cell_at(records, hint_slot(hint), &cell)) {
        return false;
    }
    for (uint32_t turns = 0; read_version(&cell, hint, &version); spin_wait(&turns)) {
        enum has_key has = has_key(&cell, version, key);
        if (has == KEY_SAME && version_same(cell.record, version)) {
            return true;
        }
        if (has == KEY_OTHER) {
            return false;
        }
    }
    return false;
}

_Atomic uint64_t *record_lock(const struct records *records, uint64_t hint)
{
    struct record_cell cell;
    return record_cell_at(records, hint_slot(hint), &cell) ? &cell.record->lock : NULL;
}

void record_prefetch(const struct records *records, uint64_t hint, bool value)
{
    struct record_cell cell;
    if (!record_cell_at(records, hint_slot(hint), &cell)) {
        return;
    }
    uint32_t bytes = value ? cell.words * 8u : 1u;
    for (uint32_t at = 0; at < bytes; at += 64u) {
        __builtin_prefetch((const uint8_t *)cell.record + at);
    }
}

/* Finds the record and keeps other writers out. */
static int lock_record(const struct records *records, uint64_t hint, struct bytes key,
                       struct record_cell *cell_out, uint64_t *version_out)
{
    if (!record_cell_at(records, hint_slot(hint), cell_out)) {
        return HK_ERR_NOTFOUND;
    }
    for (uint32_t turns = 0; read_version(cell_out, hint, version_out); spin_wait(&turns)) {
        uint64_t version = *version_out;
        enum has_key has = has_key(cell_out, version, key);
        if (has == KEY_OTHER) {
            return HK_ERR_NOTFOUND;
        }
        /* acquire: pairs with the release in unlock. The data's releases order this before them. */
        if (has == KEY_SAME && atomic_compare_exchange_strong_explicit(
                                   &cell_out->record->version, &version, version | VERSION_WRITING,
                                   memory_order_acquire, memory_order_relaxed)) {
            return HK_OK;
        }
    }
    return HK_ERR_NOTFOUND;
}

static void unlock(struct record *r, uint64_t version)
{
    /* release: pairs with the acquire in read_version. */
    atomic_store_explicit(&r->version, version, memory_order_release);
}

/* ---- The contract ---- */

static int sizes_invalid(const struct records *records, struct bytes key,
                         const struct record_value *value)
{
    HK_ASSERT(value->head.n % 8u == 0 && value->room <= STORE_INLINE_MAX);
    if (key.n == 0) {
        return HK_ERR_INVALID;
    }
    return key.n > STORE_KEY_MAX || value->head.n > STORE_INLINE_MAX ||
                   (uint64_t)value->head.n + value->rest.n > records->store->value_bytes_max
               ? HK_ERR_TOOBIG
               : HK_OK;
}

static void fill_value(uint64_t blob, const struct record_value *value)
{
    if (blob != 0) {
        blob_fill(blob, 0, value->head);
        blob_fill(blob, value->head.n, value->rest);
    }
}

/* What a new record needs besides its cell. */
static int take_blobs(struct store_thread *thread, struct bytes key,
                      const struct record_value *value, uint64_t *key_out, uint64_t *value_out)
{
    *key_out = *value_out = 0;
    if (key.n > RECORD_KEY_INLINE) {
        *key_out = blob_create(thread, key.n);
        if (*key_out == 0) {
            return HK_ERR_NOMEM;
        }
        blob_fill(*key_out, 0, key);
    }
    if (value_bytes(value) > STORE_INLINE_MAX) {
        *value_out = blob_create(thread, value_bytes(value));
        if (*value_out == 0) {
            blob_give(thread, *key_out);
            return HK_ERR_NOMEM;
        }
        fill_value(*value_out, value);
    }
    return HK_OK;
}

int record_create_parts(struct records *records, struct store_thread *thread, struct bytes key,
                        const struct record_value *value, uint64_t *hint_out)
{
    HK_CHECK(epoch_is_online(&records->store->epoch, thread->slot));
    uint64_t key_out, value_out, slot;
    int err = sizes_invalid(records, key, value);
    if (err == HK_OK) {
        err = take_blobs(thread, key, value, &key_out, &value_out);
    }
    if (err != HK_OK) {
        return err;
    }
    uint32_t value_words = value_out != 0 ? 0 : (value_bytes(value) + 7u) / 8u;
    uint32_t room_words = (value->room + 7u) / 8u;
    value_words = value_words > room_words ? value_words : room_words;
    value_words = value_words > RECORD_VALUE_WORDS_MIN ? value_words : RECORD_VALUE_WORDS_MIN;
    struct record_cell cell;
    size_t bytes = 8u * (size_t)(RECORD_HEADER_WORDS + key_words(key.n) + value_words);
    err = record_cell_take(records, thread, bytes, &slot, &cell);
    if (err != HK_OK) {
        blob_give(thread, key_out);
        blob_give(thread, value_out);
        return err;
    }
    struct record *r = cell.record;
    put_key(r, key, key_out);
    put_value(r, key.n, value, value_out);
    /* relaxed: nobody else writes a cell that is not live. */
    uint64_t version = atomic_load_explicit(&r->version, memory_order_relaxed);
    uint32_t generation = version_generation(version) + 1u;
    version = version_next(version) & (VERSION_LIVE - 1u);
    unlock(r, version | VERSION_LIVE | (uint64_t)generation << VERSION_GENERATION_AT);
    *hint_out = hint_make(slot, generation);
    return HK_OK;
}

int record_create(struct records *records, struct store_thread *thread, struct bytes key,
                  struct bytes value, uint64_t *hint_out)
{
    struct record_value whole = {.rest = value};
    return record_create_parts(records, thread, key, &whole, hint_out);
}

/* Reads a value whose version is checked afterwards; false if no such value can be there. */
static bool copy_value(const struct record_cell *cell, uint32_t key_bytes, void *buffer,
                       uint32_t capacity, uint32_t most, uint64_t *blob_out,
                       struct bytes *value_out)
{
    const _Atomic uint64_t *words = record_words(cell->record) + key_words(key_bytes);
    uint64_t lengths = word_load(&cell->record->lengths);
    uint32_t n = (uint32_t)(lengths >> LENGTHS_VALUE_AT & LENGTHS_VALUE_MASK);
    *blob_out = 0;
    *value_out = bytes_of(buffer, n);
    if ((lengths & LENGTHS_BLOB) != 0) {
        *blob_out = word_load(words);
        return true;
    }
    if (!value_fits(cell, key_bytes, n)) {
        return false;
    }
    n = n < most ? n : most;
    value_out->n = n;
    if (n > capacity) {
        value_out->at = NULL;
        return true;
    }
    for (uint32_t i = 0; i < (n + 7u) / 8u; i++) {
        ((uint64_t *)buffer)[i] = word_load(&words[i]);
    }
    return true;
}

static int read_up_to(const struct records *records, struct store_thread *thread, uint64_t hint,
                      struct bytes key, void *buffer, uint32_t capacity, uint32_t most,
                      struct bytes *value_out)
{
    HK_CHECK(epoch_is_online(&records->store->epoch, thread->slot));
    (void)thread;
    struct record_cell cell;
    uint64_t version, blob;
    if (!record_cell_at(records, hint_slot(hint), &cell)) {
        return HK_ERR_NOTFOUND;
    }
    for (uint32_t turns = 0; read_version(&cell, hint, &version); spin_wait(&turns)) {
        enum has_key has = has_key(&cell, version, key);
        if (has == KEY_OTHER) {
            return HK_ERR_NOTFOUND;
        }
        if (has == KEY_CHANGED ||
            !copy_value(&cell, key.n, buffer, capacity, most, &blob, value_out) ||
            !version_same(cell.record, version)) {
            continue;
        }
        if (blob != 0) {
            /* Checked: it was the record's, so it stays until this thread is quiescent. */
            value_out->at = blob_at(blob_of(blob));
            value_out->n = value_out->n < most ? value_out->n : most;
        }
        return value_out->at == NULL && value_out->n > capacity ? HK_ERR_TOOBIG : HK_OK;
    }
    return HK_ERR_NOTFOUND;
}

int record_read(const struct records *records, struct store_thread *thread, uint64_t hint,
                struct bytes key, void *buffer, uint32_t capacity, struct bytes *value_out)
{
    return read_up_to(records, thread, hint, key, buffer, capacity, UINT32_MAX, value_out);
}

int record_read_head(const struct records *records, struct store_thread *thread, uint64_t hint,
                     struct bytes key, void *buffer, uint32_t most, struct bytes *head_out)
{
    HK_ASSERT(most % 8u == 0);
    return read_up_to(records, thread, hint, key, buffer, most, most, head_out);
}

int record_key(const struct records *records, struct store_thread *thread, uint64_t hint,
               void *buffer, struct bytes *key_out)
{
    HK_CHECK(epoch_is_online(&records->store->epoch, thread->slot));
    (void)thread;
    struct record_cell cell;
    uint64_t version;
    if (!record_cell_at(records, hint_slot(hint), &cell)) {
        return HK_ERR_NOTFOUND;
    }
    for (uint32_t turns = 0; read_version(&cell, hint, &version); spin_wait(&turns)) {
        struct record *r = cell.record;
        uint32_t n = (uint32_t)(word_load(&r->lengths) & LENGTHS_KEY_MASK);
        bool out = n > RECORD_KEY_INLINE;
        uint32_t words = out ? 1 : key_words(n);
        /* A cell that begins another life may look as if it had a key that is too long for it. */
        for (uint32_t i = 0; i < words && RECORD_HEADER_WORDS + i < cell.words; i++) {
            ((uint64_t *)buffer)[i] = word_load(&record_words(r)[i]);
        }
        if (version_same(r, version)) {
            const uint8_t *at = out ? blob_at(blob_of(*(uint64_t *)buffer)) : buffer;
            *key_out = bytes_of(at, n);
            return HK_OK;
        }
    }
    return HK_ERR_NOTFOUND;
}

bool record_fits(const struct records *records, uint64_t hint, uint32_t key_bytes, uint32_t bytes)
{
    struct record_cell cell;
    return record_cell_at(records, hint_slot(hint), &cell) && value_fits(&cell, key_bytes, bytes);
}

void *record_spare_take(struct store_thread *thread, uint32_t bytes)
{
    return blob_of(blob_create(thread, bytes));
}

void record_spare_give(struct store_thread *thread, void *spare)
{
    blob_give(thread, (uint64_t)(uintptr_t)spare);
}

/* The value's memory out of line: the spare if it is large enough. */
static uint64_t take_value(struct store_thread *thread, const struct record_value *value,
                           void **spare)
{
    struct blob *blob = *spare;
    if (blob == NULL || blob->bytes < value_bytes(value)) {
        return blob_create(thread, value_bytes(value));
    }
    *spare = NULL;
    return (uint64_t)(uintptr_t)blob;
}

int record_write_parts(struct records *records, struct store_thread *thread, uint64_t hint,
                       struct bytes key, const struct record_value *value, void **spare)
{
    HK_CHECK(epoch_is_online(&records->store->epoch, thread->slot));
    struct record_cell cell;
    uint64_t version, blob = 0;
    int err = sizes_invalid(records, key, value);
    if (err != HK_OK) {
        return err;
    }
    if (!record_cell_at(records, hint_slot(hint), &cell)) {
        return HK_ERR_NOTFOUND;
    }
    if (!value_fits(&cell, key.n, value_bytes(value))) {
        blob = take_value(thread, value, spare);
        if (blob == 0) {
            return HK_ERR_NOMEM;
        }
        fill_value(blob, value);
    }
    err = lock_record(records, hint, key, &cell, &version);
    if (err != HK_OK) {
        blob_give(thread, blob);
        return err;
    }
    uint64_t old = value_blob(cell.record);
    put_value(cell.record, key.n, value, blob);
    unlock(cell.record, version_next(version));
    blob_retire(thread, old);
    return HK_OK;
}

int record_write(struct records *records, struct store_thread *thread, uint64_t hint,
                 struct bytes key, struct bytes value)
{
    struct record_value whole = {.rest = value};
    void *spare = NULL;
    return record_write_parts(records, thread, hint, key, &whole, &spare);
}

/* The record is the caller's alone, at that version. */
static void end_life(struct records *records, struct store_thread *thread, uint64_t hint,
                     const struct record_cell *cell, uint64_t version)
{
    uint64_t old_key = key_blob(cell->record), old_value = value_blob(cell->record);
    unlock(cell->record, version_next(version) & ~VERSION_LIVE);
    blob_retire(thread, old_key);
    blob_retire(thread, old_value);
    record_cell_give(records, hint_slot(hint), cell);
}

int record_free(struct records *records, struct store_thread *thread, uint64_t hint,
                struct bytes key)
{
    HK_CHECK(epoch_is_online(&records->store->epoch, thread->slot));
    struct record_cell cell;
    uint64_t version;
    int err = lock_record(records, hint, key, &cell, &version);
    if (err == HK_OK) {
        end_life(records, thread, hint, &cell, version);
    }
    return err;
}

void record_drop(struct records *records, struct store_thread *thread, uint64_t hint)
{
    struct record_cell cell;
    uint64_t version;
    HK_ASSERT(record_cell_at(records, hint_slot(hint), &cell) &&
              read_version(&cell, hint, &version));
    end_life(records, thread, hint, &cell, version);
}

uint32_t record_value_max(const struct records *records)
{
    return records->store->value_bytes_max;
}
