/* A history is refused if it is not linearizable. A step from H to a shorter H' is allowed if every
 * order that explains H gives one that explains H':
 *
 * S1  end early: operations that begin after a moment are left out, and those that have not ended
 *     by then become unknown. What was decided by that moment stays as it was.
 * S2  leave out an operation that changes nothing: the others are as good without it.
 * S3  leave out a write of a value that no other operation can have met: in every order nothing but
 *     a blind write can follow it, and that may follow anything.
 * S4  begin late: when a read overlaps no operation that has ended, the key had its value then,
 *     whatever happened before. Operations that ended earlier are left out; who left that value
 *     becomes a plain write of it, or the read does if there are several.
 * S5  forget deadlines that no calendar has reached: nothing has expired, so what is about
 *     deadlines alone says only whether the key was there.
 *
 * With deadlines, S3 asks in addition that nobody can have met the key absent if the value may have
 * expired, and S4 that the deadline at the read is known.
 * Whether H' is still refused is for the checker to say. */
#include "sim/shrink_history.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* States that one check may visit: what is this hard is no help to people. */
#define STATES_MAX 200000u

struct shrinking {
    struct history *history;
    struct history_op *tried; /* room for a history to try */
    uint64_t last;            /* when the last operation ended or began */
    uint32_t checks, checks_max;
};

static bool is_refused(struct shrinking *s, const struct history *history)
{
    struct check_report report = {0};
    if (s->checks == s->checks_max) {
        return false;
    }
    s->checks++;
    return check_linearizable(history, STATES_MAX, &report) == CHECK_REFUSED;
}

/* Takes the n operations that were tried if they are refused. */
static bool take_if_refused(struct shrinking *s, size_t n)
{
    const struct history tried = {.ops = s->tried, .n = n};
    if (!is_refused(s, &tried)) {
        return false;
    }
    memcpy(s->history->ops, s->tried, n * sizeof *s->tried);
    s->history->n = n;
    return true;
}

/* ---- S1 ---- */

static size_t end_at(const struct shrinking *s, uint64_t moment)
{
    size_t n = 0;
    for (size_t i = 0; i < s->history->n; i++) {
        struct history_op op = s->history->ops[i];
        if (op.begin_us > moment) {
            continue;
        }
        if (op.outcome == HISTORY_OK && op.end_us > moment) {
            op.outcome = HISTORY_UNKNOWN;
            op.out = HISTORY_ABSENT;
            op.ok = false;
            op.deadline = op.kind == HISTORY_TTL ? 0 : op.deadline;
        }
        s->tried[n++] = op;
    }
    return n;
}

static int compare_u64(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* A longer part of a history is refused if a shorter one is: the shortest is found by halving. */
static void end_early(struct shrinking *s)
{
    size_t n = 0;
    uint64_t *ends = calloc(s->history->n + 1, sizeof *ends);
    HK_ASSERT(ends != NULL);
    for (size_t i = 0; i < s->history->n; i++) {
        if (s->history->ops[i].outcome == HISTORY_OK) {
            ends[n++] = s->history->ops[i].end_us;
        }
    }
    qsort(ends, n, sizeof *ends, compare_u64);
    size_t low = 0;
    size_t high = n; /* the whole is refused */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct history tried = {.ops = s->tried, .n = end_at(s, ends[middle])};
        if (is_refused(s, &tried)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (high < n) {
        (void)take_if_refused(s, end_at(s, ends[high]));
    }
    free(ends);
}

static void note_last(struct shrinking *s)
{
    s->last = 0;
    for (size_t i = 0; i < s->history->n; i++) {
        const struct history_op *op = &s->history->ops[i];
        uint64_t end = op->outcome == HISTORY_OK ? op->end_us : op->begin_us;
        s->last = end > s->last ? end : s->last;
    }
}

/* ---- S5 ---- */

static bool has_deadlines(const struct history *history)
{
    for (size_t i = 0; i < history->n; i++) {
        const struct history_op *op = &history->ops[i];
        bool about = op->kind == HISTORY_TTL || op->kind == HISTORY_EXPIRE ||
                     op->kind == HISTORY_PERSIST || op->kind == HISTORY_GETEX;
        if (about || op->deadline != 0) {
            return true;
        }
    }
    return false;
}

/* The operation without its deadline; false: nothing is left of it. */
static bool without_deadline(struct history_op *op)
{
    bool ok = op->outcome == HISTORY_OK;
    op->deadline = op->not_before_us = op->not_after_us = 0;
    if (op->kind == HISTORY_TTL) {
        op->ok = op->out != HISTORY_ABSENT;
        op->kind = HISTORY_EXISTS;
    } else if (op->kind == HISTORY_EXPIRE) {
        op->kind = HISTORY_EXISTS;
    } else if (op->kind == HISTORY_GETEX) {
        op->kind = HISTORY_READ;
    } else if (op->kind == HISTORY_PERSIST) {
        ok = ok && op->ok;
        op->kind = HISTORY_EXISTS;
    } else {
        return true;
    }
    op->in = op->expected = HISTORY_ABSENT;
    op->out = op->kind == HISTORY_READ ? op->out : HISTORY_ABSENT;
    return ok;
}

static void forget_deadlines(struct shrinking *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->history->n; i++) {
        const struct history_op *op = &s->history->ops[i];
        bool sets = op->kind != HISTORY_TTL && op->deadline != 0 && op->deadline != HISTORY_KEEP;
        if (sets && op->not_before_us <= s->last) {
            return;
        }
        s->tried[n] = *op;
        n += without_deadline(&s->tried[n]);
    }
    (void)take_if_refused(s, n);
}

/* ---- S2 ---- */

static bool changes_nothing(const struct history_op *op)
{
    bool no = op->outcome == HISTORY_OK && !op->ok;
    switch ((enum history_kind)op->kind) {
    case HISTORY_READ:
    case HISTORY_EXISTS:
    case HISTORY_TTL:
        return true;
    case HISTORY_GETDEL:
    case HISTORY_GETEX:
        return op->outcome == HISTORY_FAILED ||
               (op->outcome == HISTORY_OK && op->out == HISTORY_ABSENT);
    case HISTORY_DELETE_IF:
    case HISTORY_SET_IF:
    case HISTORY_SET_ABSENT:
    case HISTORY_SET_PRESENT:
    case HISTORY_DELETE_PRESENT:
    case HISTORY_EXPIRE:
    case HISTORY_PERSIST:
        return op->outcome == HISTORY_FAILED || no;
    case HISTORY_WRITE:
    case HISTORY_DELETE:
    case HISTORY_ADD:
    case HISTORY_GETSET:
    case HISTORY_RMW:
        return op->outcome == HISTORY_FAILED;
    }
    return false;
}

/* Leaves out those among n operations from `first` on that change nothing. */
static size_t without_reads(const struct shrinking *s, size_t first, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->history->n; i++) {
        bool here = i >= first && i < first + n;
        if (!here || !changes_nothing(&s->history->ops[i])) {
            s->tried[kept++] = s->history->ops[i];
        }
    }
    return kept;
}

static void drop_reads(struct shrinking *s)
{
    for (size_t n = s->history->n; n > 0; n /= 2) {
        for (size_t first = 0; first < s->history->n;) {
            size_t kept = without_reads(s, first, n);
            size_t dropped = s->history->n - kept;
            if (dropped == 0 || !take_if_refused(s, kept)) {
                first += n;
            } else {
                first += n - dropped;
            }
        }
    }
}

/* ---- S4 ---- */

static bool stands_alone(const struct history *history, size_t read)
{
    const struct history_op *r = &history->ops[read];
    for (size_t i = 0; i < history->n; i++) {
        const struct history_op *op = &history->ops[i];
        if (i != read && op->outcome == HISTORY_OK && op->begin_us <= r->end_us &&
            op->end_us >= r->begin_us) {
            return false;
        }
    }
    return true;
}

/* Whether people would ask where the value came from that this operation met. */
static bool needs(const struct history_op *op, int64_t value)
{
    bool ok = op->outcome == HISTORY_OK;
    switch ((enum history_kind)op->kind) {
    case HISTORY_READ:
    case HISTORY_GETSET:
    case HISTORY_GETDEL:
        return ok && op->out == value;
    case HISTORY_SET_IF:
    case HISTORY_DELETE_IF:
        return ok && op->ok && op->expected == value;
    case HISTORY_RMW:
        return ok && op->expected == value;
    case HISTORY_ADD:
        return ok && op->out - op->in == value;
    case HISTORY_WRITE:
    case HISTORY_DELETE:
    case HISTORY_SET_ABSENT:
    case HISTORY_SET_PRESENT:
    case HISTORY_DELETE_PRESENT:
    case HISTORY_EXISTS:
    case HISTORY_EXPIRE:
    case HISTORY_PERSIST:
    case HISTORY_GETEX:
    case HISTORY_TTL:
        break;
    }
    return false;
}

/* The value that the operation leaves; false if it leaves none, or one that depends on the value
 * before. */
static bool leaves(const struct history_op *op, int64_t *value_out)
{
    bool deletes = op->kind == HISTORY_DELETE || op->kind == HISTORY_DELETE_IF ||
                   op->kind == HISTORY_DELETE_PRESENT || op->kind == HISTORY_GETDEL;
    bool adds = op->kind == HISTORY_ADD;
    bool deadline = op->kind == HISTORY_EXPIRE || op->kind == HISTORY_PERSIST ||
                    op->kind == HISTORY_GETEX; /* the value stays, whichever it is */
    *value_out = deletes ? HISTORY_ABSENT : adds ? op->out : op->in;
    return !changes_nothing(op) && !deadline && (!adds || op->outcome == HISTORY_OK);
}

/* The same effect without a condition. */
static struct history_op as_write(const struct history_op *op, int64_t value)
{
    struct history_op write = *op;
    write.kind = value == HISTORY_ABSENT ? HISTORY_DELETE : HISTORY_WRITE;
    write.in = value;
    write.expected = write.out = HISTORY_ABSENT;
    write.ok = true;
    if (write.deadline == HISTORY_KEEP || value == HISTORY_ABSENT) {
        write.deadline = write.not_before_us = write.not_after_us = 0;
    }
    return write;
}

/* Whether something that the new history holds needs the value. */
static bool is_needed(const struct history *history, const struct history_op *read, int64_t value)
{
    for (size_t i = 0; i < history->n; i++) {
        const struct history_op *op = &history->ops[i];
        if (op->begin_us > read->end_us && needs(op, value)) {
            return true;
        }
    }
    return false;
}

/* Whether exactly one operation can have left the value. */
static bool is_unique(const struct history *history, int64_t value)
{
    size_t n = 0;
    for (size_t i = 0; i < history->n; i++) {
        int64_t left = 0;
        const struct history_op *op = &history->ops[i];
        bool sums = op->kind == HISTORY_ADD && op->outcome == HISTORY_UNKNOWN;
        n += sums ? 2 : leaves(op, &left) && left == value;
    }
    return value != HISTORY_ABSENT && n == 1;
}

/* If one operation alone can have left what was read, it was the last before the read; it stays,
 * and the read stays a read. Writes of values that somebody meets later stay for the sake of
 * people. */
static size_t begin_at(const struct shrinking *s, size_t read)
{
    const struct history_op *r = &s->history->ops[read];
    bool unique = is_unique(s->history, r->out);
    size_t n = 0;
    for (size_t i = 0; i < s->history->n; i++) {
        const struct history_op *op = &s->history->ops[i];
        int64_t value = 0;
        bool left = leaves(op, &value);
        bool before = op->outcome == HISTORY_OK && op->begin_us <= r->end_us;
        if (i == read) {
            s->tried[n++] = unique ? *op : as_write(op, op->out);
        } else if (left && unique && value == r->out) {
            s->tried[n++] = as_write(op, value);
        } else if (!before) {
            s->tried[n++] = *op;
        } else if (left && value != HISTORY_ABSENT && is_needed(s->history, r, value)) {
            s->tried[n++] = as_write(op, value);
        }
    }
    return n;
}

/* Whether the key's deadline at the read is surely that of the operation that left its value, or
 * none. */
static bool keeps_deadline(const struct history *history, const struct history_op *read)
{
    if (!has_deadlines(history)) {
        return true;
    }
    const struct history_op *writer = NULL;
    for (size_t i = 0; i < history->n; i++) {
        int64_t value = 0;
        if (leaves(&history->ops[i], &value) && value == read->out) {
            writer = &history->ops[i];
        }
    }
    if (writer == NULL || !is_unique(history, read->out) || writer->kind == HISTORY_ADD ||
        writer->deadline == HISTORY_KEEP) {
        return false;
    }
    for (size_t i = 0; i < history->n; i++) {
        const struct history_op *op = &history->ops[i];
        bool about =
            op->kind == HISTORY_EXPIRE || op->kind == HISTORY_PERSIST || op->kind == HISTORY_GETEX;
        bool earlier = op->outcome == HISTORY_OK && op->end_us < writer->begin_us;
        if (about && !earlier && op->begin_us <= read->end_us) {
            return false;
        }
    }
    return true;
}

static void begin_late(struct shrinking *s)
{
    for (size_t i = s->history->n; i > 0; i--) {
        const struct history_op *op = &s->history->ops[i - 1];
        if (op->kind == HISTORY_READ && op->outcome == HISTORY_OK &&
            stands_alone(s->history, i - 1) && keeps_deadline(s->history, op) &&
            take_if_refused(s, begin_at(s, i - 1))) {
            return;
        }
    }
}

/* ---- S3 ---- */

static bool is_blind(const struct history_op *op)
{
    bool unknown = op->outcome == HISTORY_UNKNOWN;
    bool writes = op->kind == HISTORY_WRITE || op->kind == HISTORY_DELETE;
    return op->deadline != HISTORY_KEEP &&
           (writes || (unknown && (op->kind == HISTORY_GETSET || op->kind == HISTORY_GETDEL)));
}

/* Whether the operation, wherever an order puts it, cannot meet the value: it is a blind write, or
 * its answer or its condition says that the key had another one. */
static bool misses(const struct history_op *op, int64_t value)
{
    bool ok = op->outcome == HISTORY_OK;
    bool absent = value == HISTORY_ABSENT;
    if (op->outcome == HISTORY_FAILED || is_blind(op)) {
        return true;
    }
    switch ((enum history_kind)op->kind) {
    case HISTORY_READ:
    case HISTORY_GETSET:
    case HISTORY_GETDEL:
    case HISTORY_GETEX:
        return ok && op->out != value;
    case HISTORY_SET_IF:
    case HISTORY_DELETE_IF:
        return (op->ok || !ok) && op->expected != value;
    case HISTORY_RMW:
        return op->expected != value;
    case HISTORY_SET_ABSENT:
        return absent ? ok && !op->ok : op->ok || !ok;
    case HISTORY_SET_PRESENT:
    case HISTORY_DELETE_PRESENT:
    case HISTORY_EXISTS:
    case HISTORY_EXPIRE:
        return ok && op->ok == absent;
    case HISTORY_PERSIST:
        return ok && op->ok && absent;
    case HISTORY_TTL:
        return ok && (op->out == HISTORY_ABSENT) != absent;
    case HISTORY_ADD:
        return ok && op->out - op->in != value && (op->out != op->in || !absent);
    case HISTORY_WRITE:
    case HISTORY_DELETE:
        break;
    }
    return false;
}

/* Whether only blind writes can follow an operation that leaves this value, and what becomes of it
 * when its deadline passes. */
static bool is_unseen(const struct shrinking *s, size_t write, int64_t value)
{
    const struct history_op *w = &s->history->ops[write];
    bool vanishes = w->deadline != 0 && w->deadline != HISTORY_KEEP && w->not_before_us <= s->last;
    for (size_t i = 0; i < s->history->n; i++) {
        const struct history_op *op = &s->history->ops[i];
        if (i != write && (!misses(op, value) || (vanishes && !misses(op, HISTORY_ABSENT)))) {
            return false;
        }
    }
    return true;
}

static void drop_writes(struct shrinking *s)
{
    for (size_t i = 0; i < s->history->n;) {
        const struct history_op *op = &s->history->ops[i];
        int64_t value = 0;
        bool unseen = leaves(op, &value) && is_unseen(s, i, value);
        size_t n = 0;
        for (size_t j = 0; j < s->history->n; j++) {
            if (j != i) {
                s->tried[n++] = s->history->ops[j];
            }
        }
        if (!unseen || !take_if_refused(s, n)) {
            i++;
        }
    }
}

uint32_t shrink_history(struct history *history, uint32_t checks_max)
{
    struct shrinking s = {.history = history, .checks_max = checks_max};
    s.tried = calloc(history->n + 1, sizeof *s.tried);
    HK_ASSERT(s.tried != NULL);
    end_early(&s);
    note_last(&s);
    forget_deadlines(&s);
    begin_late(&s);
    for (size_t before = history->n + 1; history->n < before;) {
        before = history->n;
        drop_reads(&s);
        drop_writes(&s);
    }
    free(s.tried);
    return s.checks;
}
