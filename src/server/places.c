/* A number is, from its highest bits on: 6 of the node, 37 of a generation, 10 of the entry: 53 in
 * all, since clients keep it as a double. Every place has a generation of its own, so that a number
 * that was told long ago is not taken for a newer one of the same scan. */
#include "server/places.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define ENTRY_BITS 10u
#define GENERATION_BITS 37u
_Static_assert(PLACES_MAX == 1u << ENTRY_BITS, "all entries can be named");

struct place {
    uint64_t generation; /* 0: none */
    uint8_t *at;
    uint32_t n;
};

struct entry {
    struct place places[2];
    uint64_t used; /* 0: never; else by `uses` */
};

struct places {
    pthread_mutex_t lock;
    uint64_t node, generation, uses;
    uint64_t bytes;
    struct entry entries[PLACES_MAX];
};

struct places *places_create(uint8_t node, uint64_t random)
{
    struct places *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return NULL;
    }
    if (pthread_mutex_init(&p->lock, NULL) != 0) {
        free(p);
        return NULL;
    }
    p->node = node;
    p->generation = random;
    return p;
}

static void forget_place(struct places *p, struct place *place)
{
    p->bytes -= place->n;
    free(place->at);
    *place = (struct place){.generation = 0};
}

static void forget(struct places *p, struct entry *entry)
{
    forget_place(p, &entry->places[0]);
    forget_place(p, &entry->places[1]);
    entry->used = 0;
}

void places_destroy(struct places *p)
{
    if (p == NULL) {
        return;
    }
    for (uint32_t i = 0; i < PLACES_MAX; i++) {
        forget(p, &p->entries[i]);
    }
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

static struct place *find(struct places *p, uint64_t number, struct entry **entry_out)
{
    struct entry *entry = &p->entries[number % PLACES_MAX];
    uint64_t generation = number >> ENTRY_BITS & ((UINT64_C(1) << GENERATION_BITS) - 1);
    *entry_out = entry;
    if (number >> (ENTRY_BITS + GENERATION_BITS) != p->node || generation == 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (entry->places[i].generation == generation) {
            return &entry->places[i];
        }
    }
    return NULL;
}

/* The one that was used the longest ago, but for `kept`. `free_too`: one that is in no use comes
 * first. */
static struct entry *oldest(struct places *p, bool free_too, const struct entry *kept)
{
    struct entry *found = NULL;
    for (uint32_t i = 0; i < PLACES_MAX; i++) {
        struct entry *entry = &p->entries[i];
        if (entry != kept && (free_too || entry->used != 0) &&
            (found == NULL || entry->used < found->used)) {
            found = entry;
        }
    }
    HK_ASSERT(found != NULL);
    return found;
}

static uint64_t next_generation(struct places *p)
{
    do {
        p->generation = (p->generation + 1) & ((UINT64_C(1) << GENERATION_BITS) - 1);
    } while (p->generation == 0);
    return p->generation;
}

uint64_t places_keep(struct places *p, uint64_t number, struct bytes key)
{
    uint8_t *at = malloc(key.n > 0 ? key.n : 1);
    HK_ASSERT(key.n <= PLACES_BYTES_MAX / 8);
    if (at == NULL) {
        return 0;
    }
    if (key.n > 0) {
        memcpy(at, key.at, key.n);
    }
    (void)pthread_mutex_lock(&p->lock);
    struct entry *entry;
    struct place *last = find(p, number, &entry);
    if (last == NULL) {
        entry = oldest(p, true, NULL);
        forget(p, entry);
        last = &entry->places[1];
    }
    struct place *place = &entry->places[last == &entry->places[0] ? 1 : 0];
    forget_place(p, place);
    while (p->bytes + key.n > PLACES_BYTES_MAX) {
        forget(p, oldest(p, false, entry));
    }
    *place = (struct place){.generation = next_generation(p), .at = at, .n = key.n};
    p->bytes += key.n;
    entry->used = ++p->uses;
    uint64_t told = p->node << (ENTRY_BITS + GENERATION_BITS) | place->generation << ENTRY_BITS |
                    (uint64_t)(entry - p->entries);
    (void)pthread_mutex_unlock(&p->lock);
    return told;
}

bool places_find(struct places *p, uint64_t number, struct resp_out *place_out)
{
    struct entry *entry;
    (void)pthread_mutex_lock(&p->lock);
    struct place *place = find(p, number, &entry);
    if (place != NULL) {
        entry->used = ++p->uses;
        resp_out_raw(place_out, bytes_of(place->at, place->n));
    }
    (void)pthread_mutex_unlock(&p->lock);
    return place != NULL;
}
