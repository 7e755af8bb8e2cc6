#include "check/seen.h"

#include <stdlib.h>

#define SEEN_FIRST 64u

void seen_init(struct seen *s)
{
    *s = (struct seen){0};
}

void seen_deinit(struct seen *s)
{
    free(s->slots);
    *s = (struct seen){0};
}

static bool is_empty(struct fingerprint f)
{
    return f.low == 0 && f.high == 0;
}

/* The slot that holds f, or the empty one where it belongs. */
static struct fingerprint *find_slot(const struct seen *s, struct fingerprint f)
{
    size_t slot = (size_t)f.low & (s->slots_n - 1);
    while (!is_empty(s->slots[slot]) &&
           (s->slots[slot].low != f.low || s->slots[slot].high != f.high)) {
        slot = (slot + 1) & (s->slots_n - 1);
    }
    return &s->slots[slot];
}

/* Keeps the table at most three quarters full. */
static bool make_room(struct seen *s)
{
    if (s->n < s->slots_n / 4 * 3) {
        return true;
    }
    struct seen bigger = {.slots_n = s->slots_n == 0 ? SEEN_FIRST : 2 * s->slots_n, .n = s->n};
    bigger.slots = calloc(bigger.slots_n, sizeof *bigger.slots);
    if (bigger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < s->slots_n; i++) {
        if (!is_empty(s->slots[i])) {
            *find_slot(&bigger, s->slots[i]) = s->slots[i];
        }
    }
    free(s->slots);
    *s = bigger;
    return true;
}

enum seen_result seen_add(struct seen *s, struct fingerprint f)
{
    if (is_empty(f)) {
        f.high = 1;
    }
    if (!make_room(s)) {
        return SEEN_NOMEM;
    }
    struct fingerprint *slot = find_slot(s, f);
    if (!is_empty(*slot)) {
        return SEEN_BEFORE;
    }
    *slot = f;
    s->n++;
    return SEEN_NEW;
}
