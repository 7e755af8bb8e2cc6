/* What must come before what: from the orders of the keys, the clients and the clock. */
#include <stdlib.h>

#include "check/serial.h"

static bool connect(struct serial *s, uint32_t from, uint32_t to, enum edge_kind kind, uint64_t key)
{
    return graph_add(&s->graph, (struct edge){from, to, key, (uint8_t)kind});
}

static uint32_t writer(const struct serial *s, const struct key_part *key, size_t position)
{
    return s->writes[s->order[key->order + position - 1]].txn;
}

/* Elements that were appended, but that no list shows: they come after all that lists show, and
 * after the reads of it. Those reads times these elements would be too many edges, so an auxiliary
 * node stands between them. */
struct tail {
    uint32_t node;
    uint32_t *marks; /* transaction -> the last key whose tail it is in, plus one */
    uint32_t mark;   /* this key */
    uint32_t both;   /* the first transaction that read up to the tail and is in it */
    bool empty;
};

static bool is_in_tail(const struct serial *s, const struct written *write)
{
    return write->position == 0 && s->live[write->txn];
}

/* A transaction that read up to the tail and is in it cannot go by way of the node, for that leads
 * back to it. If there are two of them, each must come before the other, and that is all that the
 * graph needs to say of the second. */
static bool connect_both(struct serial *s, const struct key_part *key, uint32_t txn,
                         struct tail *tail)
{
    if (tail->both != SERIAL_NO_TXN) {
        return connect(s, txn, tail->both, EDGE_RW, key->key);
    }
    tail->both = txn;
    for (size_t i = key->writes; i < key->writes + key->writes_n; i++) {
        const struct written *write = &s->writes[i];
        if (is_in_tail(s, write) && !connect(s, txn, write->txn, EDGE_RW, key->key)) {
            return false;
        }
    }
    return true;
}

static bool connect_tail(struct serial *s, const struct key_part *key, struct tail *tail)
{
    tail->empty = true;
    tail->both = SERIAL_NO_TXN;
    for (size_t i = key->writes; i < key->writes + key->writes_n; i++) {
        const struct written *write = &s->writes[i];
        if (!is_in_tail(s, write)) {
            continue;
        }
        if (tail->empty) {
            tail->empty = false;
            tail->node = graph_node(&s->graph);
        }
        tail->marks[write->txn] = tail->mark;
        if (!connect(s, tail->node, write->txn, EDGE_TAIL, key->key) ||
            (key->order_n > 0 &&
             !connect(s, writer(s, key, key->order_n), write->txn, EDGE_WW, key->key))) {
            return false;
        }
    }
    return true;
}

static bool connect_read(struct serial *s, const struct key_part *key, const struct saw *read,
                         struct tail *tail)
{
    if (read->idle) {
        return true;
    }
    if (read->position == 0 && read->value != 0) {
        /* What stands in no order is before nobody's write. */
        const struct written *write = serial_find(s, key, read->value);
        return connect(s, write->txn, read->txn, EDGE_WR, key->key);
    }
    if (read->position > 0 &&
        !connect(s, writer(s, key, read->position), read->txn, EDGE_WR, key->key)) {
        return false;
    }
    if (read->latest < key->order_n) {
        return connect(s, read->txn, writer(s, key, read->latest + 1), EDGE_RW, key->key);
    }
    if (tail->empty) {
        return true;
    }
    return tail->marks[read->txn] == tail->mark
               ? connect_both(s, key, read->txn, tail)
               : connect(s, read->txn, tail->node, EDGE_RW, key->key);
}

static bool connect_key(struct serial *s, const struct key_part *key, struct tail *tail)
{
    for (size_t i = 1; i < key->order_n; i++) {
        if (!connect(s, writer(s, key, i), writer(s, key, i + 1), EDGE_WW, key->key)) {
            return false;
        }
    }
    tail->empty = true;
    if (s->history->recording == TXN_LISTS && !connect_tail(s, key, tail)) {
        return false;
    }
    for (size_t i = key->reads; i < key->reads + key->reads_n; i++) {
        if (!connect_read(s, key, &s->reads[i], tail)) {
            return false;
        }
    }
    return true;
}

static bool connect_keys(struct serial *s)
{
    struct tail tail = {0};
    tail.marks = calloc(s->history->n + 1, sizeof *tail.marks);
    bool made = tail.marks != NULL;
    for (size_t i = 0; i < s->keys_n && made; i++) {
        tail.mark = (uint32_t)i + 1;
        made = connect_key(s, &s->keys[i], &tail);
    }
    free(tail.marks);
    return made;
}

/* A transaction and what it is sorted by; at equal places as in the history. */
struct sorted {
    uint64_t first;
    uint64_t second;
    uint32_t txn;
};

static int compare_sorted(const void *left, const void *right)
{
    const struct sorted *a = left;
    const struct sorted *b = right;
    if (a->first != b->first) {
        return a->first < b->first ? -1 : 1;
    }
    if (a->second != b->second) {
        return a->second < b->second ? -1 : 1;
    }
    return (a->txn > b->txn) - (a->txn < b->txn);
}

/* Of unknown outcome: may take effect long after the client went on. */
static bool connect_sessions(struct serial *s, struct sorted *sorted)
{
    size_t n = 0;
    for (size_t i = 0; i < s->history->n; i++) {
        const struct txn *txn = &s->history->txns[i];
        if (s->live[i]) {
            sorted[n++] = (struct sorted){txn->client, txn->begin_us, (uint32_t)i};
        }
    }
    qsort(sorted, n, sizeof *sorted, compare_sorted);
    uint32_t last = SERIAL_NO_TXN;
    for (size_t i = 0; i < n; i++) {
        uint32_t txn = sorted[i].txn;
        last = i > 0 && sorted[i].first != sorted[i - 1].first ? SERIAL_NO_TXN : last;
        if (last != SERIAL_NO_TXN && !connect(s, last, txn, EDGE_SESSION, 0)) {
            return false;
        }
        last = s->history->txns[txn].outcome == TXN_COMMITTED ? txn : last;
    }
    return true;
}

/* The last of n ends, in their order, that is before a moment; SIZE_MAX: none is. */
static size_t last_before(const struct sorted *ends, size_t n, uint64_t moment_us)
{
    size_t low = 0;
    size_t high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ends[middle].first < moment_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? SIZE_MAX : low - 1;
}

/* Each end has an auxiliary node, which leads to that of the next end and to those that begin
 * between the two: a few edges for each transaction instead of one for each pair. */
static bool connect_times(struct serial *s, struct sorted *ends)
{
    size_t n = 0;
    for (size_t i = 0; i < s->history->n; i++) {
        const struct txn *txn = &s->history->txns[i];
        if (s->live[i] && txn->outcome == TXN_COMMITTED) {
            ends[n++] = (struct sorted){txn->end_us, 0, (uint32_t)i};
        }
    }
    qsort(ends, n, sizeof *ends, compare_sorted);
    uint32_t first = s->graph.nodes_n;
    for (size_t i = 0; i < n; i++) {
        uint32_t node = graph_node(&s->graph);
        if (!connect(s, ends[i].txn, node, EDGE_TIME, 0) ||
            (i > 0 && !connect(s, node - 1, node, EDGE_TAIL, 0))) {
            return false;
        }
    }
    for (size_t i = 0; i < s->history->n; i++) {
        size_t before = last_before(ends, n, s->history->txns[i].begin_us);
        if (s->live[i] && before != SIZE_MAX &&
            !connect(s, first + (uint32_t)before, (uint32_t)i, EDGE_TAIL, 0)) {
            return false;
        }
    }
    return true;
}

enum check_result serial_connect(struct serial *s)
{
    graph_deinit(&s->graph);
    graph_init(&s->graph, (uint32_t)s->history->n);
    struct sorted *sorted = calloc(s->history->n + 1, sizeof *sorted);
    bool made = sorted != NULL && connect_keys(s);
    if (made && s->level == TXN_SESSION_SERIALIZABLE) {
        made = connect_sessions(s, sorted);
    } else if (made && s->level == TXN_STRICT_SERIALIZABLE) {
        made = connect_times(s, sorted);
    }
    free(sorted);
    return made && graph_seal(&s->graph) ? CHECK_ACCEPTED : CHECK_NOMEM;
}
