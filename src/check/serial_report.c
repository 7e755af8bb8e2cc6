/* What is wrong with a history of transactions, for people. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "check/serial.h"

#define ELLIPSIS "...\n"

/* Adds a line; one that does not fit becomes "...", and nothing follows it. */
__attribute__((format(printf, 2, 3))) static void add_line(struct txn_report *report,
                                                           const char *format, ...)
{
    size_t n = strlen(report->text);
    size_t tail = sizeof ELLIPSIS - 1;
    if (n >= tail && strcmp(report->text + n - tail, ELLIPSIS) == 0) {
        return;
    }
    size_t room = sizeof report->text - n - sizeof ELLIPSIS - 1;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(report->text + n, room, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= room) {
        memcpy(report->text + n, ELLIPSIS, sizeof ELLIPSIS);
        return;
    }
    memcpy(report->text + n + length, "\n", 2);
}

static void add_txn(struct serial *s, size_t txn)
{
    struct txn_report *report = s->report;
    char line[512];
    size_t length = txn_print(s->history, txn, line, sizeof line);
    add_line(report, "  %s%s", line, length >= sizeof line ? "..." : "");
}

enum check_result serial_refuse(struct serial *s, enum txn_anomaly anomaly, uint64_t key,
                                uint32_t a, uint32_t b, const char *format, ...)
{
    struct txn_report *report = s->report;
    char what[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    report->anomaly = anomaly;
    report->key = key;
    report->cycle[report->cycle_n++] = a;
    if (b != SERIAL_NO_TXN) {
        report->cycle[report->cycle_n++] = b;
    }
    add_line(report, "%s: key %" PRIu64 ": %s:", txn_anomaly_name(anomaly), key, what);
    for (size_t i = 0; i < report->cycle_n; i++) {
        add_txn(s, report->cycle[i]);
    }
    return CHECK_REFUSED;
}

enum check_result serial_give_up(struct serial *s, uint64_t key, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    s->report->key = key;
    add_line(s->report, "key %" PRIu64 ": %s", key, what);
    return CHECK_TOO_HARD;
}

/* One edge between two main nodes, the auxiliary ones between them left out. */
struct dependency {
    uint32_t from;
    uint32_t to;
    uint64_t key;
    enum edge_kind kind;
};

/* The dependency that begins at edge *i of the cycle; *i moves behind it. A cycle may begin in the
 * midst of one: then its last edge is its beginning. */
static struct dependency next_dependency(const struct serial *s, const struct cycle *cycle,
                                         size_t *i)
{
    const struct edge *edge = &s->graph.edges[cycle->edges[(*i)++ % cycle->n]];
    struct dependency d = {edge->from, edge->to, edge->key, (enum edge_kind)edge->kind};
    while (d.to >= s->graph.main_n) {
        d.to = s->graph.edges[cycle->edges[(*i)++ % cycle->n]].to;
    }
    return d;
}

/* What is special about the cycle: names that people know it by. */
struct shape {
    size_t keyed;
    uint64_t key; /* of the first dependency that has one */
    bool one_key; /* all that have a key have this one */
    bool phantom; /* a range missed what another transaction put into it, or took out */
};

/* Whether the transaction read the key, or that it was absent, by ranges alone. */
static bool ranged(const struct txn *txn, uint64_t key)
{
    bool in = false;
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        const struct txn_op *op = &txn->ops[i];
        if (op->kind == TXN_READ && op->key == key) {
            return false;
        }
        in = in || (op->kind == TXN_RANGE && op->key <= key && key < op->end);
    }
    return in;
}

static const char *nickname(const struct shape *shape, enum txn_anomaly anomaly, size_t length)
{
    bool all = shape->keyed == length;
    if (shape->phantom && all && (anomaly == TXN_G_SINGLE || anomaly == TXN_G2)) {
        return " (phantom)";
    }
    switch (anomaly) {
    case TXN_G0:
        return " (dirty write)";
    case TXN_G1C:
        return " (circular information flow)";
    case TXN_G_SINGLE:
        if (shape->keyed < length) {
            return length == 2 ? " (stale read)" : "";
        }
        return length == 2 && shape->one_key ? " (lost update)" : " (read skew)";
    case TXN_G2:
        if (length != 2) {
            return "";
        }
        return shape->one_key ? " (lost update)" : " (write skew)";
    case TXN_NONE:
    case TXN_GARBAGE_READ:
    case TXN_ABORTED_READ:
    case TXN_INTERMEDIATE_READ:
    case TXN_INTERNAL:
    case TXN_DUPLICATE_ELEMENTS:
    case TXN_INCOMPATIBLE_ORDER:
        break;
    }
    return "";
}

static void add_dependency(struct serial *s, const struct dependency *d)
{
    struct txn_report *report = s->report;
    const struct txn *from = &s->history->txns[d->from];
    const struct txn *to = &s->history->txns[d->to];
    switch (d->kind) {
    case EDGE_WW:
        add_line(report, "T%" PRIu32 " wrote key %" PRIu64 " before T%" PRIu32 " did (ww)", d->from,
                 d->key, d->to);
        return;
    case EDGE_WR:
        add_line(report, "T%" PRIu32 " wrote what T%" PRIu32 " read of key %" PRIu64 " (wr)",
                 d->from, d->to, d->key);
        return;
    case EDGE_RW:
        add_line(report,
                 "T%" PRIu32 " read key %" PRIu64 " as it was before T%" PRIu32 " wrote it (rw)",
                 d->from, d->key, d->to);
        return;
    case EDGE_SESSION:
        add_line(report, "T%" PRIu32 " came before T%" PRIu32 " in the session of client %" PRIu32,
                 d->from, d->to, from->client);
        return;
    case EDGE_TIME:
        add_line(report, "T%" PRIu32 " ended at %" PRIu64 ", before T%" PRIu32 " began at %" PRIu64,
                 d->from, from->end_us, d->to, to->begin_us);
        return;
    case EDGE_TAIL:
        break;
    }
}

enum check_result serial_refuse_cycle(struct serial *s, enum txn_anomaly anomaly,
                                      enum txn_level needs, const struct cycle *cycle)
{
    static const char *const suffixes[] = {
        [TXN_SERIALIZABLE] = "",
        [TXN_SESSION_SERIALIZABLE] = "-process",
        [TXN_STRICT_SERIALIZABLE] = "-realtime",
    };
    struct txn_report *report = s->report;
    report->anomaly = anomaly;
    report->needs = needs;
    report->cycle_n = cycle->length;
    size_t start = 0;
    while (s->graph.edges[cycle->edges[start]].from >= s->graph.main_n) {
        start++;
    }
    struct shape shape = {.one_key = true};
    size_t n = 0;
    for (size_t i = start; i < start + cycle->n; n++) {
        struct dependency d = next_dependency(s, cycle, &i);
        if (n < TXN_CYCLE_MAX) {
            report->cycle[n] = d.from;
        }
        if (d.kind != EDGE_SESSION && d.kind != EDGE_TIME) {
            shape.key = shape.keyed == 0 ? d.key : shape.key;
            shape.one_key = shape.one_key && d.key == shape.key;
            shape.keyed++;
            shape.phantom =
                shape.phantom || (d.kind == EDGE_RW && ranged(&s->history->txns[d.from], d.key));
        }
    }
    add_line(report, "%s%s%s: a cycle of %zu transactions:", txn_anomaly_name(anomaly),
             suffixes[needs], nickname(&shape, anomaly, cycle->length), cycle->length);
    for (size_t i = 0; i < n && i < TXN_CYCLE_MAX; i++) {
        add_txn(s, report->cycle[i]);
    }
    for (size_t i = start; i < start + cycle->n;) {
        struct dependency d = next_dependency(s, cycle, &i);
        add_dependency(s, &d);
    }
    return CHECK_REFUSED;
}
