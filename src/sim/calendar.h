/* When calendars can have come to a moment: the bounds between which a deadline passes, in the
 * steps of a history. Nobody draws conclusions from how calendars are off; what they show is noted
 * whenever a worker is polled. */
#ifndef HORKOS_SIM_CALENDAR_H
#define HORKOS_SIM_CALENDAR_H

#include <stddef.h>
#include <stdint.h>

/* From this step on, and until the next entry, no calendar showed more than most_ms or less than
 * least_ms. */
struct calendar_entry {
    uint64_t step;
    uint64_t least_ms, most_ms;
};

struct calendar {
    struct calendar_entry *entries;
    size_t n, capacity;
};

void calendar_deinit(struct calendar *calendar);
/* Steps do not fall. */
void calendar_note(struct calendar *calendar, uint64_t step, uint64_t least_ms, uint64_t most_ms);
/* The first step at which some calendar showed at least deadline_ms; UINT64_MAX: none did. */
uint64_t calendar_earliest(const struct calendar *calendar, uint64_t deadline_ms);
/* The first step from which on all calendars showed at least deadline_ms for good; UINT64_MAX:
 * there is none. */
uint64_t calendar_latest(const struct calendar *calendar, uint64_t deadline_ms);

#endif
