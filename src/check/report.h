/* Turns what a checker knows at the moment it gives up into a text for people. */
#ifndef HORKOS_CHECK_REPORT_H
#define HORKOS_CHECK_REPORT_H

#include <stdint.h>

#include "check/history.h"

#define REPORT_BEFORE_MAX 3u
#define REPORT_NEXT_MAX 6u
#define REPORT_LATER_MAX 2u

/* The furthest point that a search reached: the most operations in one order that is possible. */
struct report_stuck {
    uint64_t done; /* operations that returned and have their place in the order */
    uint64_t total;
    int64_t value;                                      /* of the key after them */
    uint64_t deadline;                                  /* of the value; 0: none */
    const struct history_op *before[REPORT_BEFORE_MAX]; /* the last that changed it, oldest first;
                                                           NULL: the value expired */
    const struct history_op *next[REPORT_NEXT_MAX];     /* one must be next, and none can */
    const struct history_op *later[REPORT_LATER_MAX];   /* must still see value; none restores it */
    uint32_t before_n;
    uint32_t next_n;
    uint32_t later_n;
};

/* Empties the report. */
void report_clear(struct check_report *report);

/* Starts the text with a line made as by printf, and sets the key. */
__attribute__((format(printf, 3, 4))) void report_begin(struct check_report *report, uint64_t key,
                                                        const char *format, ...);
/* Adds a line made as by printf. A line that does not fit becomes "..."; nothing follows it. */
__attribute__((format(printf, 2, 3))) void report_line(struct check_report *report,
                                                       const char *format, ...);
/* Adds a line, indented, for an operation. */
void report_op(struct check_report *report, const struct history_op *op);

void report_stuck(struct check_report *report, uint64_t key, const struct report_stuck *stuck);

#endif
