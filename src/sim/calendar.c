#include "sim/calendar.h"

#include <stdlib.h>

#include "base/assert.h"

void calendar_deinit(struct calendar *calendar)
{
    free(calendar->entries);
    *calendar = (struct calendar){0};
}

void calendar_note(struct calendar *calendar, uint64_t step, uint64_t least_ms, uint64_t most_ms)
{
    struct calendar_entry *last = calendar->n == 0 ? NULL : &calendar->entries[calendar->n - 1];
    HK_ASSERT(least_ms <= most_ms && (last == NULL || last->step <= step));
    if (last != NULL && last->least_ms == least_ms && last->most_ms == most_ms) {
        return;
    }
    if (calendar->n == calendar->capacity) {
        calendar->capacity = calendar->capacity == 0 ? 1024 : 2 * calendar->capacity;
        calendar->entries =
            realloc(calendar->entries, calendar->capacity * sizeof *calendar->entries);
        HK_ASSERT(calendar->entries != NULL);
    }
    calendar->entries[calendar->n++] = (struct calendar_entry){step, least_ms, most_ms};
}

uint64_t calendar_earliest(const struct calendar *calendar, uint64_t deadline_ms)
{
    for (size_t i = 0; i < calendar->n; i++) {
        if (calendar->entries[i].most_ms >= deadline_ms) {
            return calendar->entries[i].step;
        }
    }
    return UINT64_MAX;
}

uint64_t calendar_latest(const struct calendar *calendar, uint64_t deadline_ms)
{
    uint64_t step = UINT64_MAX;
    for (size_t i = calendar->n; i > 0 && calendar->entries[i - 1].least_ms >= deadline_ms; i--) {
        step = calendar->entries[i - 1].step;
    }
    return step;
}
