#include "check/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#define ELLIPSIS "...\n"

void report_clear(struct check_report *report)
{
    report->key = 0;
    report->states = 0;
    report->text[0] = '\0';
}

static bool is_cut(const struct check_report *report, size_t n)
{
    size_t tail = sizeof ELLIPSIS - 1;
    return n >= tail && strcmp(report->text + n - tail, ELLIPSIS) == 0;
}

static void add_line(struct check_report *report, const char *format, va_list args)
{
    size_t n = strlen(report->text);
    if (is_cut(report, n)) {
        return;
    }
    /* Room is kept for the newline and, should the next line not fit, for the mark that says so. */
    size_t room = sizeof report->text - n - sizeof ELLIPSIS - 1;
    int length = vsnprintf(report->text + n, room, format, args);
    if (length < 0 || (size_t)length >= room) {
        memcpy(report->text + n, ELLIPSIS, sizeof ELLIPSIS);
        return;
    }
    memcpy(report->text + n + length, "\n", 2);
}

void report_begin(struct check_report *report, uint64_t key, const char *format, ...)
{
    report->key = key;
    report->text[0] = '\0';
    va_list args;
    va_start(args, format);
    add_line(report, format, args);
    va_end(args);
}

void report_line(struct check_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_line(report, format, args);
    va_end(args);
}

void report_op(struct check_report *report, const struct history_op *op)
{
    char line[256];
    (void)history_op_print(op, line, sizeof line);
    report_line(report, "  %s", line);
}

static void add_ops(struct check_report *report, const char *title,
                    const struct history_op *const *ops, uint32_t n)
{
    if (n == 0) {
        return;
    }
    report_line(report, "%s", title);
    for (uint32_t i = 0; i < n; i++) {
        if (ops[i] == NULL) {
            report_line(report, "  the value expired");
        } else {
            report_op(report, ops[i]);
        }
    }
}

void report_stuck(struct check_report *report, uint64_t key, const struct report_stuck *stuck)
{
    report_begin(report, key,
                 "key %" PRIu64 ": no order explains all of the %" PRIu64 " operations; the best "
                 "places %" PRIu64,
                 key, stuck->total, stuck->done);
    add_ops(report, "the last that changed the value:", stuck->before, stuck->before_n);
    if (stuck->value == HISTORY_ABSENT) {
        report_line(report, "then the key is absent");
    } else if (stuck->deadline != 0) {
        report_line(report, "then the value is %" PRId64 " until %" PRIu64, stuck->value,
                    stuck->deadline);
    } else {
        report_line(report, "then the value is %" PRId64, stuck->value);
    }
    add_ops(report, "still to see this value, which none can restore:", stuck->later,
            stuck->later_n);
    add_ops(report, "and none of these can be next:", stuck->next, stuck->next_n);
}
