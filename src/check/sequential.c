/* The rules, and the functions that hold them:
 *
 *   Q1  an update that returned has a number of its own                    [index_writes]
 *   Q2  an answer that names a number without a known update shows an update of unknown outcome:
 *       one of that key whose effect fits, each of them at most once       [adopt_unknown]
 *   Q3  an update found the key as the one of that key before it left it   [check_before]
 *   Q4  an answer shows what its update left, and nobody what had not begun
 *                                                                          [check_seen]
 *   Q5  updates keep the order of time                                     [check_time]
 *   Q6  a session has a position in the log, at first 0. An update moves it to its own number,
 *       which is higher. An answer of version v (or what may be an update and names v) moves it
 *       to v if that is higher, and no update of that key may stand between v and the position
 *                                                                          [check_sessions]
 *
 * Taking the least position that an answer allows is no loss: whatever a higher one allows later,
 * the lower one allows as well.
 *
 * Some answers do not say whether there was an update (a deletion of what was absent, an EXPIRE).
 * These count as updates if nobody else has their number, else as answers. An answer of version 0
 * shows the key absent: at the beginning, or after a deletion whose tombstone was forgotten. */
#include "check/sequential.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "check/report.h"

/* What a key holds where nobody can say it. */
#define ANYTHING (INT64_MIN + 1)

struct write {
    uint64_t key;
    uint64_t version;
    const struct sequential_op *op; /* NULL: an update of unknown outcome that somebody saw */
    const struct sequential_op *seen_by;
    uint64_t begin_us;
    int64_t leaves; /* HISTORY_ABSENT, ANYTHING, or a value */
};

struct unknown {
    const struct sequential_op *op;
    bool used;
};

struct checker {
    const struct sequential_history *history;
    struct check_report *report;
    struct write *writes; /* by key, then version */
    size_t writes_n;
    struct unknown *unknown; /* by key */
    size_t unknown_n;
    uint64_t *positions; /* by session */
    uint32_t sessions;
};

/* ---- What operations do ---- */

enum effect { EFFECT_NONE, EFFECT_PERHAPS, EFFECT_SURE };

static enum effect effect_of(const struct sequential_op *op)
{
    const struct history_op *h = &op->h;
    switch ((enum history_kind)h->kind) {
    case HISTORY_READ:
        return op->perhaps ? EFFECT_PERHAPS : EFFECT_NONE;
    case HISTORY_EXISTS:
    case HISTORY_TTL:
        return EFFECT_NONE;
    case HISTORY_WRITE:
    case HISTORY_ADD:
    case HISTORY_GETSET:
        return EFFECT_SURE;
    case HISTORY_DELETE:
        return EFFECT_PERHAPS;
    case HISTORY_SET_IF:
    case HISTORY_SET_ABSENT:
    case HISTORY_SET_PRESENT:
    case HISTORY_DELETE_IF:
    case HISTORY_DELETE_PRESENT:
        return h->ok ? EFFECT_SURE : EFFECT_NONE;
    case HISTORY_GETDEL:
        return h->out != HISTORY_ABSENT ? EFFECT_SURE : EFFECT_NONE;
    case HISTORY_RMW:
        return h->in != h->expected ? EFFECT_SURE : EFFECT_PERHAPS;
    case HISTORY_EXPIRE:
    case HISTORY_PERSIST:
        return h->ok ? EFFECT_PERHAPS : EFFECT_NONE;
    case HISTORY_GETEX:
        return h->out != HISTORY_ABSENT ? EFFECT_PERHAPS : EFFECT_NONE;
    }
    return EFFECT_NONE;
}

/* What the key holds after the update; ANYTHING: what it held before. */
static int64_t leaves(const struct history_op *h)
{
    switch ((enum history_kind)h->kind) {
    case HISTORY_WRITE:
    case HISTORY_GETSET:
    case HISTORY_SET_IF:
    case HISTORY_SET_ABSENT:
    case HISTORY_SET_PRESENT:
    case HISTORY_RMW:
        return h->in;
    case HISTORY_ADD:
        return h->outcome == HISTORY_OK ? h->out : ANYTHING;
    case HISTORY_GETEX:
    case HISTORY_READ:
        return h->outcome == HISTORY_OK ? h->out : ANYTHING;
    case HISTORY_DELETE:
    case HISTORY_DELETE_IF:
    case HISTORY_DELETE_PRESENT:
    case HISTORY_GETDEL:
        return HISTORY_ABSENT;
    case HISTORY_EXISTS:
    case HISTORY_TTL:
    case HISTORY_EXPIRE:
    case HISTORY_PERSIST:
        break;
    }
    return ANYTHING;
}

/* Whether the operation may have found the key so. */
static bool may_find(const struct history_op *h, int64_t value)
{
    bool absent = value == HISTORY_ABSENT;
    if (value == ANYTHING) {
        return true;
    }
    switch ((enum history_kind)h->kind) {
    case HISTORY_READ:
    case HISTORY_GETSET:
    case HISTORY_GETDEL:
    case HISTORY_GETEX:
        return h->out == value;
    case HISTORY_ADD:
        return (absent ? 0 : value) == (int64_t)((uint64_t)h->out - (uint64_t)h->in);
    case HISTORY_SET_IF:
    case HISTORY_DELETE_IF:
        return h->ok == (h->expected == value);
    case HISTORY_RMW:
        return h->expected == value;
    case HISTORY_SET_ABSENT:
        return h->ok == absent;
    case HISTORY_SET_PRESENT:
    case HISTORY_DELETE_PRESENT:
    case HISTORY_EXISTS:
    case HISTORY_EXPIRE:
        return h->ok == !absent;
    case HISTORY_PERSIST:
        return !h->ok || !absent;
    case HISTORY_TTL:
        return (h->out == HISTORY_ABSENT) == absent;
    case HISTORY_WRITE:
    case HISTORY_DELETE:
        break;
    }
    return true;
}

/* ---- Writes ---- */

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_version(const void *left, const void *right)
{
    const struct write *a = left;
    const struct write *b = right;
    return compare_u64(a->version, b->version);
}

static int by_key(const void *left, const void *right)
{
    const struct write *a = left;
    const struct write *b = right;
    return a->key != b->key ? compare_u64(a->key, b->key) : compare_u64(a->version, b->version);
}

static int unknown_by_key(const void *left, const void *right)
{
    const struct unknown *a = left;
    const struct unknown *b = right;
    int order = compare_u64(a->op->h.key, b->op->h.key);
    return order != 0 ? order : (a->op > b->op) - (a->op < b->op);
}

/* How many of the n sorted writes are before {key, version}. */
static size_t lower(const struct checker *c, uint64_t key, uint64_t version)
{
    size_t low = 0;
    size_t high = c->writes_n;
    struct write wanted = {.key = key, .version = version};
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_key(&c->writes[middle], &wanted) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static const struct write *write_at(const struct checker *c, uint64_t key, uint64_t version)
{
    size_t i = lower(c, key, version);
    return i < c->writes_n && c->writes[i].key == key && c->writes[i].version == version
               ? &c->writes[i]
               : NULL;
}

/* The last update of the key before the version, or NULL. */
static const struct write *write_before(const struct checker *c, uint64_t key, uint64_t version)
{
    size_t i = lower(c, key, version);
    return i > 0 && c->writes[i - 1].key == key ? &c->writes[i - 1] : NULL;
}

static bool refuse(const struct checker *c, const char *why, const struct sequential_op *op,
                   const struct sequential_op *other)
{
    report_begin(c->report, op->h.key, "%s", why);
    report_line(c->report, "  version %" PRIu64 ", session %" PRIu32 ":", op->version, op->session);
    report_op(c->report, &op->h);
    if (other != NULL) {
        report_line(c->report, "  version %" PRIu64 ", session %" PRIu32 ":", other->version,
                    other->session);
        report_op(c->report, &other->h);
    }
    return false;
}

static void add_write(struct checker *c, const struct sequential_op *op)
{
    c->writes[c->writes_n++] = (struct write){.key = op->h.key,
                                              .version = op->version,
                                              .op = op,
                                              .begin_us = effect_of(op) == EFFECT_SURE
                                                              ? op->h.begin_us
                                                              : 0, /* whoever made it began then */
                                              .leaves = leaves(&op->h)};
}

/* Q1, first for those that say that they are updates. */
static bool index_writes(struct checker *c)
{
    for (size_t i = 0; i < c->history->n; i++) {
        const struct sequential_op *op = &c->history->ops[i];
        if (op->h.outcome != HISTORY_OK || effect_of(op) != EFFECT_SURE) {
            continue;
        }
        if (op->version == 0) {
            return refuse(c, "an update that returned has no number:", op, NULL);
        }
        add_write(c, op);
    }
    qsort(c->writes, c->writes_n, sizeof *c->writes, by_version);
    for (size_t i = 1; i < c->writes_n; i++) {
        if (c->writes[i].version == c->writes[i - 1].version) {
            return refuse(c, "two updates have one number:", c->writes[i].op, c->writes[i - 1].op);
        }
    }
    return true;
}

static bool has_version(const struct write *writes, size_t n, uint64_t version)
{
    struct write wanted = {.version = version};
    return bsearch(&wanted, writes, n, sizeof *writes, by_version) != NULL;
}

/* ... then for those that may be. */
static void index_perhaps(struct checker *c)
{
    size_t sure = c->writes_n;
    for (size_t i = 0; i < c->history->n; i++) {
        const struct sequential_op *op = &c->history->ops[i];
        if (op->h.outcome == HISTORY_OK && effect_of(op) == EFFECT_PERHAPS && op->version != 0 &&
            !has_version(c->writes, sure, op->version)) {
            add_write(c, op);
        }
    }
    /* Of several that may be one update any will do, since each saw it. */
    qsort(c->writes, c->writes_n, sizeof *c->writes, by_key);
    size_t n = 0;
    for (size_t i = 0; i < c->writes_n; i++) {
        if (n == 0 || by_key(&c->writes[i], &c->writes[n - 1]) != 0) {
            c->writes[n++] = c->writes[i];
        }
    }
    c->writes_n = n;
}

/* ---- Updates of unknown outcome ---- */

static void index_unknown(struct checker *c)
{
    for (size_t i = 0; i < c->history->n; i++) {
        const struct sequential_op *op = &c->history->ops[i];
        if (op->h.outcome == HISTORY_UNKNOWN) {
            c->unknown[c->unknown_n++] = (struct unknown){.op = op};
        }
    }
    qsort(c->unknown, c->unknown_n, sizeof *c->unknown, unknown_by_key);
}

static size_t unknown_from(const struct checker *c, uint64_t key)
{
    size_t i = 0;
    while (i < c->unknown_n && c->unknown[i].op->h.key < key) {
        i++;
    }
    return i;
}

/* The unknown update, not used yet, that may have left the value; those that can have left nothing
 * else are preferred. */
static struct unknown *find_unknown(const struct checker *c, uint64_t key, int64_t value,
                                    uint64_t end_us)
{
    struct unknown *loose = NULL;
    for (size_t i = unknown_from(c, key); i < c->unknown_n && c->unknown[i].op->h.key == key; i++) {
        struct unknown *u = &c->unknown[i];
        int64_t left = leaves(&u->op->h);
        if (u->used || u->op->h.begin_us > end_us) {
            continue;
        }
        if (left == value && value != ANYTHING) {
            return u;
        }
        loose = left == ANYTHING || value == ANYTHING ? u : loose;
    }
    return loose;
}

/* The value that an answer shows; ANYTHING: it does not say. */
static int64_t shown(const struct history_op *h)
{
    switch ((enum history_kind)h->kind) {
    case HISTORY_READ:
    case HISTORY_GETDEL:
    case HISTORY_GETEX:
        return h->out;
    case HISTORY_EXISTS:
    case HISTORY_SET_PRESENT:
    case HISTORY_DELETE_PRESENT:
    case HISTORY_EXPIRE:
        return h->ok ? ANYTHING : HISTORY_ABSENT;
    case HISTORY_TTL:
        return h->out == HISTORY_ABSENT ? HISTORY_ABSENT : ANYTHING;
    case HISTORY_DELETE:
        return HISTORY_ABSENT;
    case HISTORY_WRITE:
    case HISTORY_DELETE_IF:
    case HISTORY_SET_IF:
    case HISTORY_SET_ABSENT:
    case HISTORY_ADD:
    case HISTORY_GETSET:
    case HISTORY_RMW:
    case HISTORY_PERSIST:
        break;
    }
    return ANYTHING;
}

/* Whether the operation is an answer only: it wrote nothing. */
static bool is_answer(const struct checker *c, const struct sequential_op *op)
{
    if (op->h.outcome != HISTORY_OK || effect_of(op) == EFFECT_SURE) {
        return false;
    }
    const struct write *w = write_at(c, op->h.key, op->version);
    return w == NULL || w->op != op;
}

static bool versions_differ(const struct checker *c)
{
    struct write *sorted = malloc((c->writes_n + 1) * sizeof *sorted);
    HK_ASSERT(sorted != NULL);
    for (size_t i = 0; i < c->writes_n; i++) {
        sorted[i] = c->writes[i];
    }
    qsort(sorted, c->writes_n, sizeof *sorted, by_version);
    bool good = true;
    for (size_t i = 1; i < c->writes_n && good; i++) {
        const struct write *a = &sorted[i - 1];
        const struct write *b = &sorted[i];
        if (a->version == b->version) {
            good = refuse(c, "two keys have an update of one number:",
                          b->op != NULL ? b->op : b->seen_by, a->op != NULL ? a->op : a->seen_by);
        }
    }
    free(sorted);
    return good;
}

static bool adopt(struct checker *c, const struct sequential_op *op)
{
    struct unknown *u = find_unknown(c, op->h.key, shown(&op->h), op->h.end_us);
    if (u == NULL) {
        return refuse(c, "an answer shows an update that nobody asked for:", op, NULL);
    }
    u->used = true;
    c->writes[c->writes_n++] = (struct write){.key = op->h.key,
                                              .version = op->version,
                                              .seen_by = op,
                                              .begin_us = u->op->h.begin_us,
                                              .leaves = shown(&op->h)};
    qsort(c->writes, c->writes_n, sizeof *c->writes, by_key);
    return true;
}

/* Q2. Answers that show the value go first: what they fix, the others must fit. */
static bool adopt_unknown(struct checker *c)
{
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < c->history->n; i++) {
            const struct sequential_op *op = &c->history->ops[i];
            bool says = shown(&op->h) != ANYTHING;
            if (says != (pass == 0) || op->version == 0 || !is_answer(c, op) ||
                write_at(c, op->h.key, op->version) != NULL) {
                continue;
            }
            if (!adopt(c, op)) {
                return false;
            }
        }
    }
    return versions_differ(c);
}

/* ---- What updates found, and what answers show ---- */

/* Whether the key may have held such a value, left by an update of unknown outcome that nobody has
 * seen otherwise, so that `op` found it. */
static bool unseen_explains(const struct checker *c, const struct sequential_op *op)
{
    for (size_t i = unknown_from(c, op->h.key);
         i < c->unknown_n && c->unknown[i].op->h.key == op->h.key; i++) {
        const struct unknown *u = &c->unknown[i];
        if (!u->used && u->op->h.begin_us <= op->h.end_us && may_find(&op->h, leaves(&u->op->h))) {
            return true;
        }
    }
    return false;
}

/* Q3. What keeps a value takes over what was there. */
static bool check_before(struct checker *c)
{
    for (size_t i = 0; i < c->writes_n; i++) {
        struct write *w = &c->writes[i];
        bool first = i == 0 || c->writes[i - 1].key != w->key;
        int64_t before = first ? HISTORY_ABSENT : c->writes[i - 1].leaves;
        if (w->op == NULL) {
            continue;
        }
        if (!may_find(&w->op->h, before) && !unseen_explains(c, w->op)) {
            return refuse(c, "an update did not find what the one before it left:", w->op,
                          first || c->writes[i - 1].op == NULL ? NULL : c->writes[i - 1].op);
        }
        bool keeps = w->op->h.kind == HISTORY_EXPIRE || w->op->h.kind == HISTORY_PERSIST;
        if (keeps && find_unknown(c, w->key, ANYTHING, UINT64_MAX) == NULL) {
            w->leaves = before;
        }
    }
    return true;
}

/* Q4. */
static bool check_seen(const struct checker *c)
{
    for (size_t i = 0; i < c->history->n; i++) {
        const struct sequential_op *op = &c->history->ops[i];
        if (!is_answer(c, op)) {
            continue;
        }
        const struct write *w = write_at(c, op->h.key, op->version);
        if (op->version == 0 ? !may_find(&op->h, HISTORY_ABSENT) : !may_find(&op->h, w->leaves)) {
            return refuse(c, "an answer does not show what its update left:", op,
                          w == NULL ? NULL : w->op);
        }
        if (w != NULL && w->begin_us > op->h.end_us) {
            return refuse(c, "an answer shows what had not begun:", op, w->op);
        }
    }
    return true;
}

/* ---- Time ---- */

static int by_begin(const void *left, const void *right)
{
    const struct write *a = left;
    const struct write *b = right;
    return compare_u64(a->begin_us, b->begin_us);
}

static int by_end(const void *left, const void *right)
{
    const struct write *a = left;
    const struct write *b = right;
    return compare_u64(a->op->h.end_us, b->op->h.end_us);
}

/* Q5. */
static bool check_time(const struct checker *c)
{
    struct write *begins = malloc((c->writes_n + 1) * sizeof *begins);
    struct write *ends = malloc((c->writes_n + 1) * sizeof *ends);
    HK_ASSERT(begins != NULL && ends != NULL);
    size_t n = 0;
    for (size_t i = 0; i < c->writes_n; i++) {
        if (c->writes[i].op != NULL) {
            begins[n] = ends[n] = c->writes[i];
            n++;
        }
    }
    qsort(begins, n, sizeof *begins, by_begin);
    qsort(ends, n, sizeof *ends, by_end);
    const struct write *highest = NULL;
    bool good = true;
    for (size_t i = 0, ended = 0; i < n && good; i++) {
        for (; ended < n && ends[ended].op->h.end_us < begins[i].begin_us; ended++) {
            if (highest == NULL || ends[ended].version > highest->version) {
                highest = &ends[ended];
            }
        }
        if (highest != NULL && highest->version > begins[i].version) {
            good = refuse(c, "an update has a lower number than one that returned before it began:",
                          begins[i].op, highest->op);
        }
    }
    free(begins);
    free(ends);
    return good;
}

/* ---- Sessions ---- */

/* The least position, not below `from`, at which the key is absent by what is known; UINT64_MAX:
 * there is none. An update of unknown outcome may have deleted it. */
static uint64_t absent_from(const struct checker *c, uint64_t key, uint64_t from)
{
    const struct write *before = write_before(c, key, from + 1);
    if (before == NULL || before->leaves == HISTORY_ABSENT || before->leaves == ANYTHING) {
        return from;
    }
    for (size_t i = unknown_from(c, key); i < c->unknown_n && c->unknown[i].op->h.key == key; i++) {
        if (!c->unknown[i].used && leaves(&c->unknown[i].op->h) == HISTORY_ABSENT) {
            return from;
        }
    }
    for (size_t i = lower(c, key, from + 1); i < c->writes_n && c->writes[i].key == key; i++) {
        if (c->writes[i].leaves == HISTORY_ABSENT || c->writes[i].leaves == ANYTHING) {
            return c->writes[i].version;
        }
    }
    return UINT64_MAX;
}

static bool session_answer(const struct checker *c, const struct sequential_op *op,
                           uint64_t *position)
{
    if (op->version == 0) {
        uint64_t at = absent_from(c, op->h.key, *position);
        if (at == UINT64_MAX) {
            return refuse(c, "a session finds a key absent that is not any more:", op, NULL);
        }
        *position = at;
        return true;
    }
    *position = op->version > *position ? op->version : *position;
    const struct write *newest = write_before(c, op->h.key, *position + 1);
    if (newest != NULL && newest->version > op->version) {
        report_begin(c->report, op->h.key,
                     "a session that has come to %" PRIu64 " sees version %" PRIu64 ", and %" PRIu64
                     " has followed:",
                     *position, op->version, newest->version);
        report_op(c->report, &op->h);
        if (newest->op != NULL) {
            report_op(c->report, &newest->op->h);
        }
        return false;
    }
    return true;
}

/* Q6. */
static bool check_sessions(const struct checker *c)
{
    for (size_t i = 0; i < c->history->n; i++) {
        const struct sequential_op *op = &c->history->ops[i];
        uint64_t *position = &c->positions[op->session];
        if (op->h.outcome != HISTORY_OK) {
            continue;
        }
        if (effect_of(op) != EFFECT_SURE) {
            if (!session_answer(c, op, position)) {
                return false;
            }
            continue;
        }
        if (op->version <= *position) {
            report_begin(c->report, op->h.key,
                         "a session that has come to %" PRIu64 " writes version %" PRIu64 ":",
                         *position, op->version);
            report_op(c->report, &op->h);
            return false;
        }
        *position = op->version;
    }
    return true;
}

static bool explain(struct checker *c)
{
    index_unknown(c);
    if (!index_writes(c)) {
        return false;
    }
    index_perhaps(c);
    return adopt_unknown(c) && check_before(c) && check_seen(c) && check_time(c) &&
           check_sessions(c);
}

enum check_result check_sequential(const struct sequential_history *history,
                                   struct check_report *report)
{
    struct checker c = {.history = history, .report = report};
    enum check_result result = CHECK_NOMEM;
    report_clear(report);
    for (size_t i = 0; i < history->n; i++) {
        HK_ASSERT(history_op_invalid(&history->ops[i].h) == NULL);
        c.sessions =
            history->ops[i].session >= c.sessions ? history->ops[i].session + 1 : c.sessions;
    }
    c.writes = malloc((history->n + 1) * sizeof *c.writes);
    c.unknown = malloc((history->n + 1) * sizeof *c.unknown);
    c.positions = calloc((size_t)c.sessions + 1, sizeof *c.positions);
    if (c.writes != NULL && c.unknown != NULL && c.positions != NULL) {
        result = explain(&c) ? CHECK_ACCEPTED : CHECK_REFUSED;
        report->states = history->n;
    }
    free(c.writes);
    free(c.unknown);
    free(c.positions);
    return result;
}
