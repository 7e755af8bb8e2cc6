#include "check/seen.h"

#include <stdlib.h>
#include <string.h>

#define SEEN_FIRST 64u
/* Records looked at before a state counts as new. A longer look would find a few more that were
 * visited; not finding them costs time and nothing else. */
#define SEEN_LOOK_MAX 32u

void seen_init(struct seen *s, size_t words)
{
    *s = (struct seen){.words = words};
}

void seen_deinit(struct seen *s)
{
    free(s->slots);
    free(s->records);
    *s = (struct seen){0};
}

/* The slot that holds f, or the empty one where it belongs. */
static struct seen_slot *find_slot(const struct seen *s, struct fingerprint f)
{
    size_t slot = (size_t)f.low & (s->slots_n - 1);
    while (s->slots[slot].head != 0 &&
           (s->slots[slot].low != f.low || s->slots[slot].high != f.high)) {
        slot = (slot + 1) & (s->slots_n - 1);
    }
    return &s->slots[slot];
}

/* Keeps the slots at most three quarters full. */
static bool make_slot(struct seen *s)
{
    if (s->slots_used < s->slots_n / 4 * 3) {
        return true;
    }
    struct seen bigger = {.slots_n = s->slots_n == 0 ? SEEN_FIRST : 2 * s->slots_n};
    bigger.slots = calloc(bigger.slots_n, sizeof *bigger.slots);
    if (bigger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < s->slots_n; i++) {
        struct seen_slot slot = s->slots[i];
        if (slot.head != 0) {
            *find_slot(&bigger, (struct fingerprint){slot.low, slot.high}) = slot;
        }
    }
    free(s->slots);
    s->slots = bigger.slots;
    s->slots_n = bigger.slots_n;
    return true;
}

static bool make_record(struct seen *s)
{
    if (s->records_n < s->records_max) {
        return true;
    }
    if (s->records_max > UINT32_MAX / 2) {
        return false; /* a slot could not name the next one */
    }
    size_t max = s->records_max == 0 ? SEEN_FIRST : 2 * s->records_max;
    uint64_t *records = realloc(s->records, max * (s->words + 1) * sizeof *records);
    if (records == NULL) {
        return false;
    }
    s->records = records;
    s->records_max = max;
    return true;
}

static uint64_t *record_at(const struct seen *s, uint64_t number)
{
    return s->records + (number - 1) * (s->words + 1);
}

static bool is_subset(const uint64_t *inner, const uint64_t *outer, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        if ((inner[i] & ~outer[i]) != 0) {
            return false;
        }
    }
    return true;
}

/* Whether a record of the list says that the state was visited. It moves to the front, where the
 * next state like it finds it soon. */
static bool find_record(const struct seen *s, struct seen_slot *slot, const uint64_t *used)
{
    uint64_t head = slot->head;
    uint64_t *link = &head;
    for (uint32_t look = 0; *link != 0 && look < SEEN_LOOK_MAX; look++) {
        uint64_t number = *link;
        uint64_t *record = record_at(s, number);
        if (is_subset(record + 1, used, s->words)) {
            *link = record[0];
            record[0] = head;
            slot->head = (uint32_t)number;
            return true;
        }
        link = record;
    }
    return false;
}

enum seen_result seen_add(struct seen *s, struct fingerprint f, const uint64_t *used)
{
    if (!make_slot(s) || !make_record(s)) {
        return SEEN_NOMEM;
    }
    struct seen_slot *slot = find_slot(s, f);
    if (find_record(s, slot, used)) {
        return SEEN_BEFORE;
    }
    s->slots_used += slot->head == 0;
    uint64_t *record = record_at(s, ++s->records_n);
    record[0] = slot->head;
    memcpy(record + 1, used, s->words * sizeof *used);
    *slot = (struct seen_slot){f.low, f.high, (uint32_t)s->records_n};
    return SEEN_NEW;
}
