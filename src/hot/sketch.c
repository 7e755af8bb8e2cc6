/* The stream summary. Counters with the same count hang in one bucket; buckets are a list by count.
 * Counting a key moves its counter to the next bucket, so the keys are always in order, and the
 * smallest is at hand when one has to go.
 *
 * The keys' bytes stand in a log, each behind a head {its counter, its length}. What has to go
 * stays there as a gap; when the end is reached, what is alive moves together. The log is twice as
 * long as what may be alive, so that moving costs no more per byte than appending did.
 *
 * S1. A counter in use is in the index, in the list of one bucket, and owns one record of the log.
 * S2. Buckets in use are not empty, and their counts rise from lowest to highest.
 * S3. No count is below floor. */
#include "hot/sketch.h"

#include "base/assert.h"

#define NONE UINT32_MAX
#define HEAD 8u /* bytes of a record's head */

struct hot_counter {
    uint64_t hash;
    uint32_t key_at; /* of the bytes, in the log */
    uint32_t key_n;
    uint32_t error;
    uint32_t bucket; /* while free: NONE */
    uint32_t next;   /* in its bucket; while free: the next free one */
    uint32_t prev;
};

struct hot_bucket {
    uint32_t count;
    uint32_t first; /* counter; while free: NONE */
    uint32_t next;  /* higher; while free: the next free one */
    uint32_t prev;
};

static uint32_t index_size(uint32_t counters)
{
    uint32_t n = 4;
    while (n < 2 * counters) {
        n *= 2;
    }
    return n;
}

static uint32_t round_up(uint32_t n)
{
    return (n + 7u) & ~7u;
}

size_t hot_sketch_bytes(uint32_t counters, uint32_t key_bytes)
{
    HK_ASSERT(counters > 0 && counters <= HOT_COUNTERS_MAX);
    HK_ASSERT(key_bytes >= HOT_KEY_BYTES_MIN && key_bytes <= HOT_KEY_BYTES_MAX);
    /* While a counter changes its bucket, there may be one bucket more than counters. */
    return counters * sizeof(struct hot_counter) +
           ((size_t)counters + 1) * sizeof(struct hot_bucket) +
           (size_t)index_size(counters) * sizeof(uint32_t) + 2 * (size_t)round_up(key_bytes);
}

void hot_sketch_init(struct hot_sketch *s, void *memory, uint32_t counters, uint32_t key_bytes)
{
    size_t bytes = hot_sketch_bytes(counters, key_bytes);
    uint8_t *at = memory;
    *s = (struct hot_sketch){.counters = counters, .key_bytes = round_up(key_bytes)};
    s->mask = index_size(counters) - 1;
    s->counter = (struct hot_counter *)(void *)at;
    at += counters * sizeof *s->counter;
    s->bucket = (struct hot_bucket *)(void *)at;
    at += ((size_t)counters + 1) * sizeof *s->bucket;
    s->index = (uint32_t *)(void *)at;
    at += ((size_t)s->mask + 1) * sizeof *s->index;
    s->log = at;
    HK_ASSERT(at + 2 * (size_t)s->key_bytes == (uint8_t *)memory + bytes);
    hot_sketch_reset(s);
}

void hot_sketch_reset(struct hot_sketch *s)
{
    s->total = 0;
    s->used = 0;
    s->floor = 0;
    s->live = 0;
    s->end = 0;
    s->lowest = NONE;
    s->highest = NONE;
    s->free_counter = 0;
    s->free_bucket = 0;
    for (uint32_t i = 0; i < s->counters; i++) {
        s->counter[i].bucket = NONE;
        s->counter[i].next = i + 1 < s->counters ? i + 1 : NONE;
    }
    for (uint32_t i = 0; i <= s->counters; i++) {
        s->bucket[i].first = NONE;
        s->bucket[i].next = i < s->counters ? i + 1 : NONE;
    }
    for (uint32_t i = 0; i <= s->mask; i++) {
        s->index[i] = NONE;
    }
}

/* ---- The index: linear probing ---- */

static struct bytes key_of(const struct hot_sketch *s, uint32_t c)
{
    return bytes_of(s->log + s->counter[c].key_at, s->counter[c].key_n);
}

/* Where the key stands, or where it would be put: the index is never full. */
static uint32_t index_find(const struct hot_sketch *s, struct bytes key, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & s->mask;
    while (s->index[i] != NONE) {
        const struct hot_counter *c = &s->counter[s->index[i]];
        if (c->hash == hash && bytes_equal(key_of(s, s->index[i]), key)) {
            break;
        }
        i = (i + 1) & s->mask;
    }
    return i;
}

/* Closes the gap: what stands behind it moves up if it may stand there. */
static void index_remove(struct hot_sketch *s, uint32_t c)
{
    uint32_t gap = (uint32_t)s->counter[c].hash & s->mask;
    while (s->index[gap] != c) {
        gap = (gap + 1) & s->mask;
    }
    for (uint32_t i = (gap + 1) & s->mask; s->index[i] != NONE; i = (i + 1) & s->mask) {
        uint32_t wanted = (uint32_t)s->counter[s->index[i]].hash & s->mask;
        if (((i - wanted) & s->mask) >= ((i - gap) & s->mask)) {
            s->index[gap] = s->index[i];
            gap = i;
        }
    }
    s->index[gap] = NONE;
}

/* ---- The log of keys ---- */

static uint32_t record_bytes(uint32_t key_n)
{
    return HEAD + round_up(key_n);
}

static void log_compact(struct hot_sketch *s)
{
    uint32_t to = 0;
    for (uint32_t at = 0; at < s->end;) {
        uint32_t c = get_u32(s->log + at);
        uint32_t n = record_bytes(get_u32(s->log + at + 4));
        if (c != NONE) {
            memmove(s->log + to, s->log + at, n);
            s->counter[c].key_at = to + HEAD;
            to += n;
        }
        at += n;
    }
    HK_ASSERT(to == s->live);
    s->end = to;
}

static void log_append(struct hot_sketch *s, uint32_t c, struct bytes key)
{
    uint32_t n = record_bytes(key.n);
    if (n > 2 * s->key_bytes - s->end) {
        log_compact(s);
    }
    uint8_t *at = s->log + s->end;
    put_u32(at, c);
    put_u32(at + 4, key.n);
    if (key.n > 0) {
        memcpy(at + HEAD, key.at, key.n);
    }
    s->counter[c].key_at = s->end + HEAD;
    s->counter[c].key_n = key.n;
    s->end += n;
    s->live += n;
}

static void log_remove(struct hot_sketch *s, uint32_t c)
{
    put_u32(s->log + s->counter[c].key_at - HEAD, NONE);
    s->live -= record_bytes(s->counter[c].key_n);
}

/* ---- Buckets ---- */

/* A new bucket behind another one (NONE: as the lowest). */
static uint32_t bucket_new(struct hot_sketch *s, uint32_t below, uint32_t count)
{
    uint32_t b = s->free_bucket;
    HK_ASSERT(b != NONE);
    s->free_bucket = s->bucket[b].next;
    uint32_t above = below == NONE ? s->lowest : s->bucket[below].next;
    s->bucket[b] = (struct hot_bucket){.count = count, .first = NONE, .next = above, .prev = below};
    *(below == NONE ? &s->lowest : &s->bucket[below].next) = b;
    *(above == NONE ? &s->highest : &s->bucket[above].prev) = b;
    return b;
}

static void bucket_free(struct hot_sketch *s, uint32_t b)
{
    uint32_t below = s->bucket[b].prev;
    uint32_t above = s->bucket[b].next;
    *(below == NONE ? &s->lowest : &s->bucket[below].next) = above;
    *(above == NONE ? &s->highest : &s->bucket[above].prev) = below;
    s->bucket[b].first = NONE;
    s->bucket[b].next = s->free_bucket;
    s->free_bucket = b;
}

/* The bucket of a count that stands behind `below`, and not behind what comes next. */
static uint32_t bucket_behind(struct hot_sketch *s, uint32_t below, uint32_t count)
{
    uint32_t above = below == NONE ? s->lowest : s->bucket[below].next;
    if (above != NONE && s->bucket[above].count == count) {
        return above;
    }
    return bucket_new(s, below, count);
}

static void bucket_put(struct hot_sketch *s, uint32_t b, uint32_t c)
{
    uint32_t first = s->bucket[b].first;
    s->counter[c].bucket = b;
    s->counter[c].prev = NONE;
    s->counter[c].next = first;
    if (first != NONE) {
        s->counter[first].prev = c;
    }
    s->bucket[b].first = c;
}

static void bucket_take(struct hot_sketch *s, uint32_t c)
{
    const struct hot_counter *counter = &s->counter[c];
    if (counter->next != NONE) {
        s->counter[counter->next].prev = counter->prev;
    }
    if (counter->prev != NONE) {
        s->counter[counter->prev].next = counter->next;
    } else {
        s->bucket[counter->bucket].first = counter->next;
    }
}

/* ---- Counting ---- */

static void raise(struct hot_sketch *s, uint32_t c)
{
    uint32_t old = s->counter[c].bucket;
    uint32_t count = s->bucket[old].count;
    if (count == UINT32_MAX) {
        return; /* as much as can be said */
    }
    uint32_t above = bucket_behind(s, old, count + 1);
    bucket_take(s, c);
    bucket_put(s, above, c);
    if (s->bucket[old].first == NONE) {
        bucket_free(s, old);
    }
}

/* One of the keys with the smallest count goes. */
static void evict(struct hot_sketch *s)
{
    uint32_t b = s->lowest;
    uint32_t c = s->bucket[b].first;
    s->floor = s->bucket[b].count; /* S3: it was not below */
    index_remove(s, c);
    log_remove(s, c);
    bucket_take(s, c);
    if (s->bucket[b].first == NONE) {
        bucket_free(s, b);
    }
    s->counter[c].bucket = NONE;
    s->counter[c].next = s->free_counter;
    s->free_counter = c;
    s->used--;
    s->evicted++;
}

static void insert(struct hot_sketch *s, struct bytes key, uint64_t hash)
{
    while (s->used == s->counters || record_bytes(key.n) > s->key_bytes - s->live) {
        evict(s);
    }
    uint32_t c = s->free_counter;
    s->free_counter = s->counter[c].next;
    s->counter[c].hash = hash;
    s->counter[c].error = s->floor;
    s->used++;
    log_append(s, c, key);
    s->index[index_find(s, key, hash)] = c;
    /* All counts are floor at the least, so its bucket is the lowest or the next one. */
    uint32_t count = s->floor < UINT32_MAX ? s->floor + 1 : UINT32_MAX;
    bool below = s->lowest != NONE && s->bucket[s->lowest].count < count;
    bucket_put(s, bucket_behind(s, below ? s->lowest : NONE, count), c);
}

void hot_sketch_add(struct hot_sketch *s, struct bytes key, uint64_t hash)
{
    s->total++;
    uint32_t i = index_find(s, key, hash);
    if (s->index[i] != NONE) {
        raise(s, s->index[i]);
    } else if (key.n <= s->key_bytes / HOT_KEY_SHARE - HEAD) {
        insert(s, key, hash);
    } else {
        s->refused++;
    }
}

static uint32_t halved(uint32_t count)
{
    return count / 2 + (count & 1);
}

/* A count is rounded up and what is certain down, so that both stay bounds. */
void hot_sketch_decay(struct hot_sketch *s)
{
    for (uint32_t b = s->lowest; b != NONE;) {
        uint32_t next = s->bucket[b].next;
        uint32_t below = s->bucket[b].prev;
        uint32_t was = s->bucket[b].count;
        uint32_t count = halved(was);
        bool merge = below != NONE && s->bucket[below].count == count;
        for (uint32_t c = s->bucket[b].first; c != NONE;) {
            struct hot_counter *counter = &s->counter[c];
            uint32_t following = counter->next;
            counter->error = count - (was - counter->error) / 2;
            if (merge) {
                bucket_put(s, below, c);
            }
            c = following;
        }
        s->bucket[b].count = count;
        if (merge) {
            bucket_free(s, b);
        }
        b = next;
    }
    s->floor = halved(s->floor);
    s->total = s->total / 2 + (s->total & 1);
}

/* ---- Looking ---- */

uint32_t hot_sketch_floor(const struct hot_sketch *s)
{
    return s->floor;
}

static struct hot_count look(const struct hot_sketch *s, uint32_t c)
{
    return (struct hot_count){
        .key = key_of(s, c),
        .hash = s->counter[c].hash,
        .count = s->bucket[s->counter[c].bucket].count,
        .error = s->counter[c].error,
    };
}

bool hot_sketch_find(const struct hot_sketch *s, struct bytes key, uint64_t hash,
                     struct hot_count *count_out)
{
    uint32_t c = s->index[index_find(s, key, hash)];
    if (c == NONE) {
        return false;
    }
    *count_out = look(s, c);
    return true;
}

bool hot_sketch_next(const struct hot_sketch *s, uint32_t *at, struct hot_count *count_out)
{
    uint32_t c;
    if (*at == HOT_FIRST) {
        c = s->highest == NONE ? NONE : s->bucket[s->highest].first;
    } else {
        c = s->counter[*at].next;
        uint32_t below = s->bucket[s->counter[*at].bucket].prev;
        c = c == NONE && below != NONE ? s->bucket[below].first : c;
    }
    if (c == NONE) {
        return false;
    }
    *at = c;
    *count_out = look(s, c);
    return true;
}

uint32_t hot_sketch_cut(const struct hot_sketch *s, uint32_t most)
{
    uint32_t at = HOT_FIRST;
    struct hot_count c;
    for (uint32_t i = 0; i <= most; i++) {
        if (!hot_sketch_next(s, &at, &c)) {
            return s->floor;
        }
    }
    return c.count;
}

static uint32_t check_bucket(const struct hot_sketch *s, uint32_t b, uint64_t *bytes)
{
    uint32_t n = 0;
    uint32_t prev = NONE;
    HK_ASSERT(s->bucket[b].first != NONE && s->bucket[b].count >= s->floor);
    for (uint32_t c = s->bucket[b].first; c != NONE; c = s->counter[c].next) {
        const struct hot_counter *counter = &s->counter[c];
        HK_ASSERT(counter->bucket == b && counter->prev == prev);
        HK_ASSERT(counter->error <= s->bucket[b].count);
        HK_ASSERT(s->index[index_find(s, key_of(s, c), counter->hash)] == c);
        HK_ASSERT(get_u32(s->log + counter->key_at - HEAD) == c);
        HK_ASSERT(get_u32(s->log + counter->key_at - HEAD + 4) == counter->key_n);
        *bytes += record_bytes(counter->key_n);
        prev = c;
        n++;
    }
    return n;
}

void hot_sketch_check(const struct hot_sketch *s)
{
    uint32_t n = 0;
    uint32_t indexed = 0;
    uint64_t bytes = 0;
    uint32_t below = NONE;
    for (uint32_t b = s->lowest; b != NONE; b = s->bucket[b].next) {
        HK_ASSERT(s->bucket[b].prev == below);
        HK_ASSERT(below == NONE || s->bucket[below].count < s->bucket[b].count);
        n += check_bucket(s, b, &bytes);
        below = b;
    }
    HK_ASSERT(s->highest == below && n == s->used && n <= s->counters);
    HK_ASSERT(bytes == s->live && s->live <= s->key_bytes && s->end <= 2 * s->key_bytes);
    for (uint32_t i = 0; i <= s->mask; i++) {
        indexed += s->index[i] != NONE;
    }
    HK_ASSERT(indexed == n);
}
