/* Gibbons and Korach, "Testing Shared Memories" (1997), section 3: when every write of a register
 * writes its own value, the write and the reads of a value stand together in any order. Such a
 * cluster must come before another if one of its operations ends before one of the other's begins,
 * that is if its first end is before the other's last begin. The history is linearizable if no read
 * ends before its write begins and no two clusters must each come before the other.
 *
 * The zone of a cluster lies between its first end and its last begin. It is forward if the first
 * end is the earlier: then the value must be there throughout the zone. Otherwise all operations
 * of the cluster overlap in it, and any one moment of the zone will do. Two clusters must each come
 * before the other exactly if two forward zones overlap, or a backward one is inside a forward one.
 * Zones that only touch do neither, as equal times are concurrent. */
#include "check/history.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "check/report.h"

struct zone {
    uint64_t low; /* times plus one: 0 is before all of them, UINT64_MAX after */
    uint64_t high;
    int64_t value;
    const struct history_op *write; /* NULL for the first value, absent */
    const struct history_op *first; /* whose end is the first; NULL as write */
    const struct history_op *last;  /* whose begin is the last */
    bool forward;
};

static bool is_register(const struct history_op *op)
{
    return op->kind == HISTORY_READ || (op->kind == HISTORY_WRITE && op->deadline == 0);
}

static int64_t value_of(const struct history_op *op)
{
    return op->kind == HISTORY_READ ? op->out : op->in;
}

static uint64_t begin_of(const struct history_op *op)
{
    return op->begin_us + 1;
}

static uint64_t end_of(const struct history_op *op)
{
    return op->outcome == HISTORY_UNKNOWN ? UINT64_MAX : op->end_us + 1;
}

/* By key, then value; the write of a value before its reads. */
static int compare_ops(const void *left, const void *right)
{
    const struct history_op *a = *(const struct history_op *const *)left;
    const struct history_op *b = *(const struct history_op *const *)right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    if (value_of(a) != value_of(b)) {
        return value_of(a) < value_of(b) ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind > b->kind ? -1 : 1;
    }
    return (a > b) - (a < b);
}
_Static_assert(HISTORY_READ < HISTORY_WRITE, "compare_ops puts the write first");

/* Forward zones first, in the order of time. */
static int compare_zones(const void *left, const void *right)
{
    const struct zone *a = left;
    const struct zone *b = right;
    if (a->forward != b->forward) {
        return a->forward ? -1 : 1;
    }
    if (a->low != b->low) {
        return a->low < b->low ? -1 : 1;
    }
    return (a->value > b->value) - (a->value < b->value);
}

static void report_cluster(struct check_report *report, const struct zone *zone)
{
    if (zone->write == NULL) {
        report_line(report, "absent, the first value:");
    } else {
        report_line(report, "value %" PRId64 ":", zone->value);
        report_op(report, zone->write);
    }
    if (zone->first != NULL && zone->first != zone->write) {
        report_op(report, zone->first);
    }
    if (zone->last != zone->write && zone->last != zone->first) {
        report_op(report, zone->last);
    }
}

static enum check_result refuse_pair(struct check_report *report, uint64_t key,
                                     const struct zone *a, const struct zone *b)
{
    report_begin(report, key,
                 "key %" PRIu64 ": two values must each be there before the other is:", key);
    report_cluster(report, a);
    report_cluster(report, b);
    return CHECK_REFUSED;
}

static enum check_result refuse_read(struct check_report *report, const struct history_op *read,
                                     const struct history_op *write)
{
    report_begin(report, read->key, "key %" PRIu64 ": %s:", read->key,
                 write == NULL ? "no operation leaves what this one saw"
                               : "read before it was written");
    report_op(report, read);
    if (write != NULL) {
        report_op(report, write);
    }
    return CHECK_REFUSED;
}

/* The zone of the n operations of one value. An unknown write that nobody read needs no exception:
 * it may end after everything, so its zone is inside no other. */
static enum check_result make_zone(const struct history_op *const *ops, size_t n, struct zone *zone,
                                   struct check_report *report)
{
    const struct history_op *write = ops[0]->kind == HISTORY_WRITE ? ops[0] : NULL;
    int64_t value = value_of(ops[0]);
    if (write == NULL && value != HISTORY_ABSENT) {
        return refuse_read(report, ops[0], NULL);
    }
    /* Nobody writes the first value: it is there before anything begins. */
    uint64_t first_end = write == NULL ? 0 : end_of(write);
    uint64_t last_begin = write == NULL ? 0 : begin_of(write);
    *zone = (struct zone){.value = value, .write = write, .first = write, .last = write};
    for (size_t i = write == NULL ? 0 : 1; i < n; i++) {
        if (write != NULL && end_of(ops[i]) < begin_of(write)) {
            return refuse_read(report, ops[i], write);
        }
        if (end_of(ops[i]) < first_end) {
            first_end = end_of(ops[i]);
            zone->first = ops[i];
        }
        if (begin_of(ops[i]) > last_begin) {
            last_begin = begin_of(ops[i]);
            zone->last = ops[i];
        }
    }
    zone->forward = first_end < last_begin;
    zone->low = zone->forward ? first_end : last_begin;
    zone->high = zone->forward ? last_begin : first_end;
    return CHECK_ACCEPTED;
}

/* The last of n forward zones that begins before the time, or NULL; they are in order. */
static const struct zone *last_before(const struct zone *forward, size_t n, uint64_t time)
{
    size_t low = 0;
    size_t high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (forward[middle].low < time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? NULL : &forward[low - 1];
}

static enum check_result compare_all(struct zone *zones, size_t n, uint64_t key,
                                     struct check_report *report)
{
    qsort(zones, n, sizeof *zones, compare_zones);
    size_t forward_n = 0;
    while (forward_n < n && zones[forward_n].forward) {
        forward_n++;
    }
    for (size_t i = 1; i < forward_n; i++) {
        /* None before overlapped, so the one just before has the last end of all. */
        if (zones[i].low < zones[i - 1].high) {
            return refuse_pair(report, key, &zones[i - 1], &zones[i]);
        }
    }
    for (size_t i = forward_n; i < n; i++) {
        /* Forward zones do not overlap, so of those that begin before, the last ends last. */
        const struct zone *around = last_before(zones, forward_n, zones[i].low);
        if (around != NULL && zones[i].high < around->high) {
            return refuse_pair(report, key, around, &zones[i]);
        }
    }
    return CHECK_ACCEPTED;
}

static enum check_result too_hard(struct check_report *report, const char *reason,
                                  const struct history_op *op)
{
    report_begin(report, op->key, "key %" PRIu64 ": %s:", op->key, reason);
    report_op(report, op);
    return CHECK_TOO_HARD;
}

/* The operations of one key, sorted; zones has room for n. */
static enum check_result check_key(const struct history_op *const *ops, size_t n,
                                   struct zone *zones, struct check_report *report)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_register(ops[i])) {
            return too_hard(report, "neither a read nor a write", ops[i]);
        }
        if (i > 0 && ops[i]->kind == HISTORY_WRITE && value_of(ops[i - 1]) == ops[i]->in) {
            return too_hard(report, "the value is written twice", ops[i]);
        }
    }
    size_t zones_n = 0;
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && value_of(ops[end]) == value_of(ops[first]);) {
            end++;
        }
        enum check_result result = make_zone(ops + first, end - first, &zones[zones_n++], report);
        if (result != CHECK_ACCEPTED) {
            return result;
        }
    }
    return compare_all(zones, zones_n, ops[0]->key, report);
}

enum check_result check_registers(const struct history *history, struct check_report *report)
{
    report_clear(report);
    const struct history_op **ops = calloc(history->n + 1, sizeof *ops);
    struct zone *zones = calloc(history->n + 1, sizeof *zones);
    enum check_result result = CHECK_NOMEM;
    if (ops == NULL || zones == NULL) {
        goto out;
    }
    size_t n = 0;
    for (size_t i = 0; i < history->n; i++) {
        const struct history_op *op = &history->ops[i];
        HK_ASSERT(history_op_invalid(op) == NULL);
        bool says_nothing = op->kind == HISTORY_READ && op->outcome == HISTORY_UNKNOWN;
        if (op->outcome != HISTORY_FAILED && !says_nothing) {
            ops[n++] = op;
        }
    }
    qsort(ops, n, sizeof *ops, compare_ops);

    /* One key refused is the answer; a key too hard is one only if no other is refused. */
    result = CHECK_ACCEPTED;
    struct check_report key_report;
    for (size_t first = 0, end; first < n && result != CHECK_REFUSED; first = end) {
        for (end = first; end < n && ops[end]->key == ops[first]->key;) {
            end++;
        }
        report_clear(&key_report);
        enum check_result key_result = check_key(ops + first, end - first, zones, &key_report);
        if (key_result == CHECK_REFUSED ||
            (key_result != CHECK_ACCEPTED && result == CHECK_ACCEPTED)) {
            *report = key_report;
            result = key_result;
        }
    }
out:
    free(ops);
    free(zones);
    return result;
}
