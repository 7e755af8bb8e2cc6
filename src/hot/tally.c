#include "hot/tally.h"

#include "base/assert.h"

#define NONE UINT32_MAX

struct hot_entry {
    uint64_t hash;
    double count;  /* of the lists that had it ... */
    double error;  /* ... and theirs */
    double floors; /* of the same lists */
    double score;  /* while they are ranked */
    uint32_t key_at;
    uint32_t key_n;
    uint32_t list; /* the last one that had it; 0: none */
    bool marked;
    bool chosen; /* by the last ranking */
    uint8_t reserved[2];
};

static uint32_t index_size(uint32_t entries)
{
    uint32_t n = 4;
    while (n < 2 * entries) {
        n *= 2;
    }
    return n;
}

size_t hot_tally_bytes(uint32_t entries, uint32_t key_bytes)
{
    HK_ASSERT(entries > 0 && entries <= HOT_ENTRIES_MAX && key_bytes <= HOT_KEY_BYTES_MAX);
    return entries * (sizeof(struct hot_entry) + sizeof(uint32_t)) +
           (size_t)index_size(entries) * sizeof(uint32_t) + key_bytes;
}

void hot_tally_init(struct hot_tally *t, void *memory, uint32_t entries, uint32_t key_bytes)
{
    uint8_t *at = memory;
    HK_ASSERT(hot_tally_bytes(entries, key_bytes) > 0);
    *t = (struct hot_tally){.entries = entries, .key_bytes = key_bytes};
    t->mask = index_size(entries) - 1;
    t->entry = (struct hot_entry *)(void *)at;
    at += entries * sizeof *t->entry;
    t->order = (uint32_t *)(void *)at;
    at += entries * sizeof *t->order;
    t->index = (uint32_t *)(void *)at;
    at += ((size_t)t->mask + 1) * sizeof *t->index;
    t->keys = at;
    hot_tally_clear(t);
}

void hot_tally_clear(struct hot_tally *t)
{
    t->refused = 0;
    t->used = 0;
    t->end = 0;
    t->list = 0;
    t->weight = 1;
    t->floor = 0;
    t->floors = 0;
    for (uint32_t i = 0; i <= t->mask; i++) {
        t->index[i] = NONE;
    }
}

static struct bytes key_of(const struct hot_tally *t, const struct hot_entry *e)
{
    return bytes_of(t->keys + e->key_at, e->key_n);
}

static uint32_t index_find(const struct hot_tally *t, struct bytes key, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & t->mask;
    while (t->index[i] != NONE) {
        const struct hot_entry *e = &t->entry[t->index[i]];
        if (e->hash == hash && bytes_equal(key_of(t, e), key)) {
            break;
        }
        i = (i + 1) & t->mask;
    }
    return i;
}

/* The key's entry, made if need be; NULL: no room. */
static struct hot_entry *entry_of(struct hot_tally *t, struct bytes key, uint64_t hash)
{
    uint32_t i = index_find(t, key, hash);
    if (t->index[i] != NONE) {
        return &t->entry[t->index[i]];
    }
    if (t->used == t->entries || key.n > t->key_bytes - t->end) {
        t->refused++;
        return NULL;
    }
    struct hot_entry *e = &t->entry[t->used];
    *e = (struct hot_entry){.hash = hash, .key_at = t->end, .key_n = key.n};
    if (key.n > 0) {
        memcpy(t->keys + t->end, key.at, key.n);
    }
    t->end += key.n;
    t->index[i] = t->used++;
    return e;
}

void hot_tally_mark(struct hot_tally *t, struct bytes key, uint64_t hash)
{
    struct hot_entry *e = entry_of(t, key, hash);
    if (e != NULL) {
        e->marked = true;
    }
}

void hot_tally_list(struct hot_tally *t, double weight, uint32_t floor)
{
    HK_ASSERT(weight > 0 && weight < 1e300);
    t->list++;
    t->weight = weight;
    t->floor = weight * floor;
    t->floors += t->floor;
}

void hot_tally_add_rate(struct hot_tally *t, struct bytes key, uint64_t hash, double least,
                        double most)
{
    struct hot_entry *e = entry_of(t, key, hash);
    if (e == NULL || e->list == t->list) {
        return;
    }
    e->list = t->list;
    e->count += most;
    e->error += most > least ? most - least : 0;
    e->floors += t->floor;
}

void hot_tally_add(struct hot_tally *t, struct bytes key, uint64_t hash, uint32_t count,
                   uint32_t error)
{
    uint32_t certain = error < count ? count - error : 0;
    hot_tally_add_rate(t, key, hash, t->weight * certain, t->weight * count);
}

void hot_tally_sketch(struct hot_tally *t, const struct hot_sketch *s, double weight, uint32_t most,
                      uint64_t (*rehash)(const void *context, struct bytes key),
                      const void *context)
{
    uint32_t at = HOT_FIRST;
    struct hot_count c;
    hot_tally_list(t, weight, hot_sketch_cut(s, most));
    for (uint32_t i = 0; i < most && hot_sketch_next(s, &at, &c); i++) {
        hot_tally_add(t, c.key, rehash != NULL ? rehash(context, c.key) : c.hash, c.count, c.error);
    }
}

struct hot_rate hot_tally_at(const struct hot_tally *t, uint32_t i)
{
    HK_ASSERT(i < t->used);
    const struct hot_entry *e = &t->entry[i];
    double missing = t->floors - e->floors;
    return (struct hot_rate){
        .key = key_of(t, e),
        .hash = e->hash,
        .most = e->count + (missing > 0 ? missing : 0),
        .least = e->count - e->error,
        .marked = e->marked,
    };
}

bool hot_tally_find(const struct hot_tally *t, struct bytes key, uint64_t hash,
                    struct hot_rate *rate_out)
{
    uint32_t i = t->index[index_find(t, key, hash)];
    if (i == NONE) {
        return false;
    }
    *rate_out = hot_tally_at(t, i);
    return true;
}

/* ---- Ranking: the k best in a heap whose top is the worst of them ---- */

static bool better(const struct hot_tally *t, uint32_t a, uint32_t b)
{
    double x = t->entry[a].score;
    double y = t->entry[b].score;
    return x > y || (x == y && a < b);
}

static void swap(struct hot_tally *t, uint32_t i, uint32_t j)
{
    uint32_t was = t->order[i];
    t->order[i] = t->order[j];
    t->order[j] = was;
}

static void sift_down(struct hot_tally *t, uint32_t i, uint32_t n)
{
    for (;;) {
        uint32_t worst = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++) {
            if (better(t, t->order[worst], t->order[child])) {
                worst = child;
            }
        }
        if (worst == i) {
            return;
        }
        swap(t, i, worst);
        i = worst;
    }
}

static void heapify(struct hot_tally *t, uint32_t n)
{
    for (uint32_t i = n / 2; i > 0; i--) {
        sift_down(t, i - 1, n);
    }
}

/* How an entry ranks; negative: not at all. */
static double score(const struct hot_rate *r, const struct hot_ranking *ranking)
{
    if (r->marked) {
        return r->least * ranking->bonus + ranking->slack;
    }
    return r->least >= ranking->least ? r->least : -1;
}

uint32_t hot_tally_rank(struct hot_tally *t, uint32_t k, const struct hot_ranking *ranking)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->used; i++) {
        struct hot_rate r = hot_tally_at(t, i);
        t->entry[i].score = score(&r, ranking);
        t->entry[i].chosen = false;
        if (t->entry[i].score < 0 || k == 0) {
            continue;
        }
        if (n < k) {
            t->order[n++] = i;
            if (n == k) {
                heapify(t, n);
            }
        } else if (better(t, i, t->order[0])) {
            t->order[0] = i;
            sift_down(t, 0, n);
        }
    }
    if (n < k) {
        heapify(t, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        t->entry[t->order[i]].chosen = true;
    }
    for (uint32_t left = n; left > 1; left--) {
        swap(t, 0, left - 1);
        sift_down(t, 0, left - 1);
    }
    return n;
}

struct hot_rate hot_tally_ranked(const struct hot_tally *t, uint32_t i)
{
    HK_ASSERT(i < t->used);
    return hot_tally_at(t, t->order[i]);
}

bool hot_tally_chosen(const struct hot_tally *t, uint32_t i)
{
    HK_ASSERT(i < t->used);
    return t->entry[i].chosen;
}
