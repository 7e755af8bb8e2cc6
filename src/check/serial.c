/* Serializability by dependencies: Adya, "Weak Consistency" (1999), chapters 3 and 4, for the graph
 * and its anomalies; Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental
 * Observations" (VLDB 2020), for what lists tell and for edges of time.
 *
 * If an order of the transactions explains the history, all edges point forward in it, so there is
 * no cycle. If there is no cycle, take any order in which all edges point forward. The writes of a
 * key stand in their order in it (ww), and each read stands behind the write that it saw (wr) and
 * before the next one (rw). So the order explains the history. Lists that nobody read to the end
 * leave the order of their last elements open; these stand behind all others and behind all reads,
 * and any order of them will do. */
#include "check/serial.h"

#include <stdlib.h>

#include "base/assert.h"

unsigned serial_edges_of(enum txn_level level)
{
    switch (level) {
    case TXN_SERIALIZABLE:
        break;
    case TXN_SESSION_SERIALIZABLE:
        return EDGES(EDGE_SESSION);
    case TXN_STRICT_SERIALIZABLE:
        return EDGES(EDGE_TIME) | EDGES(EDGE_TAIL);
    }
    return 0;
}

/* The worst of the anomalies that the graph has at this level. */
static bool refuse_at(struct serial *s, enum txn_level needs, struct cycle *cycle)
{
    static const struct {
        enum txn_anomaly anomaly;
        unsigned kinds;
        bool one_rw;
    } classes[] = {
        {TXN_G0, EDGES(EDGE_WW), false},
        {TXN_G1C, EDGES(EDGE_WW) | EDGES(EDGE_WR), false},
        {TXN_G_SINGLE, SERIAL_DATA, true},
        {TXN_G2, SERIAL_DATA, false},
    };
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        unsigned kinds = classes[i].kinds | serial_edges_of(needs);
        if (graph_find_cycle(&s->graph, kinds, classes[i].one_rw, cycle)) {
            (void)serial_refuse_cycle(s, classes[i].anomaly, needs, cycle);
            return true;
        }
    }
    return false;
}

/* When a transaction that the node stands for ended first; UINT64_MAX: not known. */
static void fill_ends(const struct serial *s, uint64_t *ends)
{
    const struct graph *g = &s->graph;
    for (uint32_t i = 0; i < g->nodes_n; i++) {
        bool committed = i < g->main_n && s->history->txns[i].outcome == TXN_COMMITTED;
        ends[i] = committed ? s->history->txns[i].end_us : UINT64_MAX;
    }
    for (size_t i = 0; i < g->edges_n; i++) {
        const struct edge *edge = &g->edges[i];
        if (edge->kind == EDGE_TAIL && edge->to < g->main_n && ends[edge->to] < ends[edge->from]) {
            ends[edge->from] = ends[edge->to];
        }
    }
}

/* Two transactions of which one must come first, though it began after the other had ended, tell
 * more than any longer cycle, and one look at each edge finds them. */
static bool refuse_pair(struct serial *s, struct cycle *cycle)
{
    static const struct {
        enum edge_kind kind;
        enum txn_anomaly anomaly;
    } classes[] = {{EDGE_WW, TXN_G0}, {EDGE_WR, TXN_G1C}, {EDGE_RW, TXN_G_SINGLE}};
    const struct graph *g = &s->graph;
    uint64_t *ends = calloc((size_t)g->nodes_n + 1, sizeof *ends);
    if (ends == NULL) {
        return false;
    }
    fill_ends(s, ends);
    bool found = false;
    for (size_t class = 0; class < sizeof classes / sizeof classes[0] && !found; class ++) {
        for (size_t i = 0; i < g->edges_n && !found; i++) {
            const struct edge *edge = &g->edges[i];
            found =
                edge->kind == classes[class].kind &&
                ends[edge->to] < s->history->txns[edge->from].begin_us &&
                graph_close_cycle(&s->graph, i, serial_edges_of(TXN_STRICT_SERIALIZABLE), cycle);
        }
        if (found) {
            (void)serial_refuse_cycle(s, classes[class].anomaly, TXN_STRICT_SERIALIZABLE, cycle);
        }
    }
    free(ends);
    return found;
}

/* There is a cycle: says which. */
static enum check_result explain(struct serial *s)
{
    struct cycle cycle = {0};
    cycle.edges = calloc((size_t)s->graph.nodes_n + 1, sizeof *cycle.edges);
    if (cycle.edges == NULL) {
        return CHECK_NOMEM;
    }
    /* What time took away of the places of absent keys is not known without it. */
    bool timeless = s->level == TXN_SERIALIZABLE || !s->narrowed;
    bool found = (timeless && refuse_at(s, TXN_SERIALIZABLE, &cycle)) ||
                 (s->level == TXN_STRICT_SERIALIZABLE && refuse_pair(s, &cycle)) ||
                 (s->level != TXN_SERIALIZABLE && refuse_at(s, s->level, &cycle));
    HK_ASSERT(found);
    free(cycle.edges);
    return CHECK_REFUSED;
}

static enum check_result order_keys(struct serial *s)
{
    bool lists = s->history->recording == TXN_LISTS;
    enum check_result result = CHECK_ACCEPTED;
    for (size_t i = 0; i < s->keys_n && result == CHECK_ACCEPTED; i++) {
        struct key_part *key = &s->keys[i];
        result = lists ? serial_resolve_lists(s, key) : serial_resolve_versions(s, key);
    }
    for (size_t i = 0; i < s->keys_n && result == CHECK_ACCEPTED && !lists; i++) {
        result = serial_order_versions(s, &s->keys[i]);
        serial_absent_begin(s, &s->keys[i]);
    }
    return result;
}

static enum check_result check(struct serial *s)
{
    enum check_result result = serial_read(s);
    result = result == CHECK_ACCEPTED ? order_keys(s) : result;
    result = result == CHECK_ACCEPTED ? serial_connect(s) : result;
    if (result != CHECK_ACCEPTED) {
        return result;
    }
    unsigned kinds = SERIAL_DATA | serial_edges_of(s->level);
    bool cycle = graph_has_cycle(&s->graph, kinds);
    result = cycle ? CHECK_ACCEPTED : serial_absent(s);
    s->report->nodes = s->graph.nodes_n;
    s->report->edges = s->graph.edges_n;
    if (result != CHECK_ACCEPTED) {
        return result;
    }
    return cycle || graph_has_cycle(&s->graph, kinds) ? explain(s) : CHECK_ACCEPTED;
}

enum check_result check_transactions(const struct txn_history *history, enum txn_level level,
                                     struct txn_report *report)
{
    *report = (struct txn_report){.needs = TXN_SERIALIZABLE};
    struct serial s = {.history = history, .level = level, .report = report};
    enum check_result result = check(&s);
    free(s.accesses);
    free(s.writes);
    free(s.reads);
    free(s.order);
    free(s.keys);
    free(s.live);
    free(s.universe);
    graph_deinit(&s.graph);
    if (result == CHECK_REFUSED && s.narrowed && level != TXN_SERIALIZABLE) {
        struct txn_report weaker;
        if (check_transactions(history, TXN_SERIALIZABLE, &weaker) == CHECK_REFUSED) {
            *report = weaker;
        }
    }
    if (result == CHECK_NOMEM) {
        (void)snprintf(report->text, sizeof report->text, "no memory\n");
    }
    return result;
}
