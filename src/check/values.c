#include "check/values.h"

#include <stdlib.h>

#include "base/assert.h"
#include "check/history.h"

#define VALUES_FIRST 32u

static uint32_t hash(int64_t number)
{
    uint64_t x = (uint64_t)number * 0x9e3779b97f4a7c15u;
    return (uint32_t)(x >> 32);
}

/* The slot that holds the value, or the empty one where it belongs. */
static uint32_t find_slot(const struct values *v, int64_t number)
{
    uint32_t slot = hash(number) & (v->slots_n - 1);
    while (v->slots[slot] != 0 && v->at[v->slots[slot] - 1].number != number) {
        slot = (slot + 1) & (v->slots_n - 1);
    }
    return slot;
}

/* Doubles both tables; the slots stay at most half full. */
static bool grow(struct values *v)
{
    HK_ASSERT(v->size <= UINT32_MAX / 8);
    uint32_t size = v->size == 0 ? VALUES_FIRST : 2 * v->size;
    struct value *at = realloc(v->at, size * sizeof *at);
    if (at == NULL) {
        return false;
    }
    v->at = at;
    uint32_t *slots = calloc(2 * (size_t)size, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    free(v->slots);
    v->slots = slots;
    v->slots_n = 2 * size;
    v->size = size;
    for (uint32_t i = 0; i < v->n; i++) {
        v->slots[find_slot(v, v->at[i].number)] = i + 1;
    }
    return true;
}

bool values_init(struct values *v)
{
    *v = (struct values){0};
    if (values_number(v, HISTORY_ABSENT) == VALUE_NONE) {
        values_deinit(v);
        return false;
    }
    return true;
}

void values_deinit(struct values *v)
{
    free(v->at);
    free(v->slots);
    *v = (struct values){0};
}

uint32_t values_number(struct values *v, int64_t number)
{
    if (v->n == v->size && !grow(v)) {
        return VALUE_NONE;
    }
    uint32_t slot = find_slot(v, number);
    if (v->slots[slot] == 0) {
        v->at[v->n] = (struct value){.number = number};
        v->slots[slot] = ++v->n;
    }
    return v->slots[slot] - 1;
}
