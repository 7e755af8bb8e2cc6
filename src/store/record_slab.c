/* The cells of records: slabs by size class, their numbers, the lists of free cells. */
#include <string.h>

#include "base/assert.h"
#include "store/record_state.h"

_Static_assert(SLAB_SPAN_BYTES % RECORD_SLAB_BYTES == 0, "a span is cut without rest");

static struct record_page *page_create(struct store_thread *thread)
{
    struct record_page *page = memory_take(&thread->memory, sizeof(*page), MEMORY_NORMAL);
    if (page != NULL) {
        memset(page, 0, sizeof(*page));
    }
    return page;
}

int records_create(struct store *store, struct store_thread *thread, struct records **records_out)
{
    struct records *r = memory_take(&thread->memory, sizeof(*r), MEMORY_NORMAL);
    if (r == NULL) {
        return HK_ERR_NOMEM;
    }
    HK_ASSERT(slab_class_of(RECORD_BYTES_MAX) < RECORD_CLASSES);
    memset(r, 0, sizeof(*r));
    r->root = page_create(thread);
    if (r->root == NULL) {
        memory_give(&thread->memory, r, sizeof(*r));
        return HK_ERR_NOMEM;
    }
    r->store = store;
    spin_init(&r->lock);
    for (uint32_t i = 0; i < RECORD_CLASSES; i++) {
        spin_init(&r->classes[i].lock);
        r->cells_of[i] = RECORD_SLAB_BYTES / slab_class_bytes(i);
    }
    *records_out = r;
    return HK_OK;
}

bool record_cell_at(const struct records *records, uint64_t slot, struct record_cell *cell_out)
{
    uint64_t slab = slot >> RECORD_CELL_BITS;
    uint32_t number = (uint32_t)slot & ((1u << RECORD_CELL_BITS) - 1u);
    if (slab >= RECORD_SLABS_MAX) {
        return false;
    }
    /* acquire, both: pair with the releases in slab_publish. */
    uint64_t page = atomic_load_explicit(&records->root->entries[slab / RECORD_PAGE_SLABS],
                                         memory_order_acquire);
    if (page == 0) {
        return false;
    }
    uint64_t entry = atomic_load_explicit(
        &((struct record_page *)(uintptr_t)page)->entries[slab % RECORD_PAGE_SLABS],
        memory_order_acquire);
    uint32_t class = (uint32_t)entry % RECORD_SLAB_BYTES;
    if (entry == 0 || number >= records->cells_of[class]) {
        return false;
    }
    uint32_t bytes = slab_class_bytes(class);
    uint8_t *at = (uint8_t *)(uintptr_t)(entry - class) + (size_t)number * bytes;
    *cell_out = (struct record_cell){
        .record = (struct record *)(void *)at, .class = class, .words = bytes / 8u};
    return true;
}

/* ---- Taking a slab: under records->lock ---- */

static bool slab_has_page(struct records *r, struct store_thread *thread, uint64_t slab)
{
    _Atomic uint64_t *at = &r->root->entries[slab / RECORD_PAGE_SLABS];
    /* relaxed: under the lock. */
    if (atomic_load_explicit(at, memory_order_relaxed) != 0) {
        return true;
    }
    struct record_page *page = page_create(thread);
    if (page == NULL) {
        return false;
    }
    /* release: pairs with the acquire in record_cell_at; the page is empty. */
    atomic_store_explicit(at, (uint64_t)(uintptr_t)page, memory_order_release);
    return true;
}

/* Zeroed memory, charged; NULL when there is none. */
static uint8_t *slab_memory(struct records *r, struct store_thread *thread)
{
    if (!memory_charge(&thread->memory, RECORD_SLAB_BYTES, MEMORY_NORMAL)) {
        return NULL;
    }
    if (r->span_left == 0) {
        /* Spans for uses of their own were never anything else, so they are zeroed. */
        r->span = slab_take_span(&r->store->memory.slabs);
        if (r->span == NULL) {
            memory_discharge(&thread->memory, RECORD_SLAB_BYTES);
            return NULL;
        }
        r->span_left = SLAB_SPAN_BYTES;
    }
    uint8_t *at = r->span;
    r->span += RECORD_SLAB_BYTES;
    r->span_left -= RECORD_SLAB_BYTES;
    return at;
}

static void slab_publish(struct records *r, uint64_t slab, uint8_t *at, uint32_t class)
{
    struct record_page *page = (struct record_page *)(uintptr_t)atomic_load_explicit(
        &r->root->entries[slab / RECORD_PAGE_SLABS], memory_order_relaxed);
    uint64_t address = (uint64_t)(uintptr_t)at;
    HK_ASSERT(address % RECORD_SLAB_BYTES == 0);
    /* release: pairs with the acquire in record_cell_at; the memory is zeroed. */
    atomic_store_explicit(&page->entries[slab % RECORD_PAGE_SLABS], address | class,
                          memory_order_release);
    atomic_store_explicit(&r->slabs_n, slab + 1u, memory_order_relaxed);
    atomic_fetch_add_explicit(&r->cells_n, r->cells_of[class], memory_order_relaxed);
}

/* Under the class's lock. */
static bool class_add_slab(struct records *r, struct store_thread *thread, uint32_t class)
{
    struct record_class *c = &r->classes[class];
    spin_lock(&r->lock);
    uint64_t slab = atomic_load_explicit(&r->slabs_n, memory_order_relaxed);
    uint8_t *at = NULL;
    if (slab < RECORD_SLABS_MAX && slab_has_page(r, thread, slab)) {
        at = slab_memory(r, thread);
    }
    if (at != NULL) {
        slab_publish(r, slab, at, class);
        c->fresh = slab << RECORD_CELL_BITS;
        c->fresh_end = c->fresh + r->cells_of[class];
    }
    spin_unlock(&r->lock);
    return at != NULL;
}

/* ---- Cells ---- */

static void count(_Atomic int64_t *counter, int64_t n)
{
    /* relaxed: under the class's lock; statistics want no more than a number. */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

int record_cell_take(struct records *records, struct store_thread *thread, size_t bytes,
                     uint64_t *slot_out, struct record_cell *cell_out)
{
    uint32_t class = slab_class_of(bytes);
    struct record_class *c = &records->classes[class];
    spin_lock(&c->lock);
    if (c->free != 0) {
        *slot_out = c->free - 1u;
        HK_ASSERT(record_cell_at(records, *slot_out, cell_out));
        /* relaxed: written under the same lock. */
        c->free = atomic_load_explicit(&cell_out->record->lengths, memory_order_relaxed);
    } else if (c->fresh < c->fresh_end || class_add_slab(records, thread, class)) {
        *slot_out = c->fresh++;
        HK_ASSERT(record_cell_at(records, *slot_out, cell_out));
    } else {
        spin_unlock(&c->lock);
        return HK_ERR_NOMEM;
    }
    count(&c->live, 1);
    spin_unlock(&c->lock);
    return HK_OK;
}

void record_cell_give(struct records *records, uint64_t slot, const struct record_cell *cell)
{
    struct record_class *c = &records->classes[cell->class];
    /* relaxed: the caller's own; nobody else changes what is not live. */
    uint64_t version = atomic_load_explicit(&cell->record->version, memory_order_relaxed);
    spin_lock(&c->lock);
    count(&c->live, -1);
    if (version_generation(version) == RECORD_GENERATION_MAX) {
        atomic_fetch_add_explicit(&c->spent, 1, memory_order_relaxed);
    } else {
        /* release: as all data of a cell, for readers that are late. */
        atomic_store_explicit(&cell->record->lengths, c->free, memory_order_release);
        c->free = slot + 1u;
    }
    spin_unlock(&c->lock);
}

void records_stats(const struct records *records, struct record_stats *stats_out)
{
    int64_t live = 0;
    uint64_t spent = 0;
    /* relaxed: each number is right by itself. */
    for (uint32_t i = 0; i < RECORD_CLASSES; i++) {
        live += atomic_load_explicit(&records->classes[i].live, memory_order_relaxed);
        spent += atomic_load_explicit(&records->classes[i].spent, memory_order_relaxed);
    }
    *stats_out = (struct record_stats){
        .records = live > 0 ? (uint64_t)live : 0,
        .cells = atomic_load_explicit(&records->cells_n, memory_order_relaxed),
        .slabs = atomic_load_explicit(&records->slabs_n, memory_order_relaxed),
        .spent = spent,
    };
}
