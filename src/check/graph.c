#include "check/graph.h"

#include <stdlib.h>

#include "base/assert.h"

#define EDGES_FIRST 64u
/* Edges that the search for the shortest cycle looks at before it is content with what it has. */
#define LOOKS_MAX 20000000u
#define NODE_NONE UINT32_MAX

/* Of a node, in one search. */
struct visit {
    size_t edge;    /* Tarjan: the next to follow; shortest path: the one that led here */
    uint32_t index; /* Tarjan: the order of discovery; shortest path: the search that came here */
    uint32_t low;
};

void graph_init(struct graph *g, uint32_t main_n)
{
    *g = (struct graph){.main_n = main_n, .nodes_n = main_n};
}

void graph_deinit(struct graph *g)
{
    free(g->edges);
    free(g->first);
    free(g->component);
    free(g->size);
    free(g->visits);
    free(g->stack);
    *g = (struct graph){0};
}

uint32_t graph_node(struct graph *g)
{
    HK_ASSERT(g->first == NULL && g->nodes_n < UINT32_MAX / 2);
    return g->nodes_n++;
}

bool graph_add(struct graph *g, struct edge edge)
{
    HK_ASSERT(g->first == NULL && edge.from < g->nodes_n && edge.to < g->nodes_n);
    if (edge.from == edge.to) {
        return true;
    }
    if (g->edges_n == g->edges_size) {
        size_t size = g->edges_size == 0 ? EDGES_FIRST : 2 * g->edges_size;
        struct edge *edges = realloc(g->edges, size * sizeof *edges);
        if (edges == NULL) {
            return false;
        }
        g->edges = edges;
        g->edges_size = size;
    }
    g->edges[g->edges_n++] = edge;
    return true;
}

bool graph_seal(struct graph *g)
{
    size_t n = g->nodes_n;
    struct edge *sorted = calloc(g->edges_n + 1, sizeof *sorted);
    g->first = calloc(n + 2, sizeof *g->first);
    g->component = calloc(n + 1, sizeof *g->component);
    g->size = calloc(n + 1, sizeof *g->size);
    g->visits = calloc(n + 1, sizeof *g->visits);
    g->stack = calloc(2 * n + 2, sizeof *g->stack);
    if (sorted == NULL || g->first == NULL || g->component == NULL || g->size == NULL ||
        g->visits == NULL || g->stack == NULL) {
        free(sorted);
        return false;
    }
    /* Counting sort; first[node + 2] counts, then first[node + 1] is where the next one goes. */
    for (size_t i = 0; i < g->edges_n; i++) {
        g->first[g->edges[i].from + 2]++;
    }
    for (size_t i = 2; i < n + 2; i++) {
        g->first[i] += g->first[i - 1];
    }
    for (size_t i = 0; i < g->edges_n; i++) {
        sorted[g->first[g->edges[i].from + 1]++] = g->edges[i];
    }
    free(g->edges);
    g->edges = sorted;
    g->edges_size = g->edges_n + 1;
    return true;
}

static bool is_kind(const struct edge *edge, unsigned kinds)
{
    return (kinds >> edge->kind & 1) != 0;
}

/* The stacks of Tarjan's algorithm: the nodes being visited grow from the front, those whose
 * component is open from the middle. */
struct tarjan {
    uint32_t *calls;
    uint32_t *open;
    uint32_t calls_n;
    uint32_t open_n;
    uint32_t index;
    uint32_t components;
    bool cyclic;
};

static void enter(struct graph *g, struct tarjan *t, uint32_t node)
{
    t->index++;
    g->visits[node] = (struct visit){g->first[node], t->index, t->index};
    t->calls[t->calls_n++] = node;
    t->open[t->open_n++] = node;
}

/* All edges of the node were followed. */
static void leave(struct graph *g, struct tarjan *t, uint32_t node)
{
    struct visit *v = &g->visits[node];
    t->calls_n--;
    if (t->calls_n > 0) {
        struct visit *caller = &g->visits[t->calls[t->calls_n - 1]];
        caller->low = v->low < caller->low ? v->low : caller->low;
    }
    if (v->low != v->index) {
        return;
    }
    uint32_t size = 0;
    uint32_t member;
    do {
        member = t->open[--t->open_n];
        g->component[member] = t->components;
        size++;
    } while (member != node);
    g->size[t->components++] = size;
    t->cyclic = t->cyclic || size > 1;
}

bool graph_has_cycle(struct graph *g, unsigned kinds)
{
    struct tarjan t = {.calls = g->stack, .open = g->stack + g->nodes_n + 1};
    for (uint32_t i = 0; i < g->nodes_n; i++) {
        g->visits[i] = (struct visit){0};
        g->component[i] = NODE_NONE;
    }
    for (uint32_t root = 0; root < g->nodes_n; root++) {
        if (g->visits[root].index != 0) {
            continue;
        }
        enter(g, &t, root);
        while (t.calls_n > 0) {
            uint32_t node = t.calls[t.calls_n - 1];
            struct visit *v = &g->visits[node];
            if (v->edge == g->first[node + 1]) {
                leave(g, &t, node);
                continue;
            }
            const struct edge *edge = &g->edges[v->edge++];
            if (!is_kind(edge, kinds)) {
                continue;
            }
            const struct visit *to = &g->visits[edge->to];
            if (to->index == 0) {
                enter(g, &t, edge->to);
            } else if (g->component[edge->to] == NODE_NONE && to->index < v->low) {
                v->low = to->index;
            }
        }
    }
    return t.cyclic;
}

/* The search for a shortest path goes by layers: those at one distance, then those at the next. An
 * edge to an auxiliary node costs nothing, so all edges to a node cost the same, and the first that
 * leads to it is the best. */
struct layers {
    uint32_t *now;
    uint32_t *later;
    size_t now_n;
    size_t later_n;
};

/* Looks for a path inside the component of from, by edges of these kinds, that is shorter than
 * length_max; takes what it looks at off *looks. Returns its length, or 0. */
static size_t find_path(struct graph *g, uint32_t from, uint32_t to, unsigned kinds,
                        uint32_t search, size_t length_max, size_t *looks)
{
    struct layers l = {.now = g->stack, .later = g->stack + g->nodes_n + 1};
    l.now[l.now_n++] = from;
    for (size_t length = 1; l.now_n > 0 && length < length_max; length++) {
        while (l.now_n > 0) {
            uint32_t node = l.now[--l.now_n];
            for (size_t i = g->first[node]; i < g->first[node + 1]; i++) {
                const struct edge *edge = &g->edges[i];
                *looks -= *looks > 0;
                if (!is_kind(edge, kinds) || g->component[edge->to] != g->component[from] ||
                    g->visits[edge->to].index == search) {
                    continue;
                }
                g->visits[edge->to] = (struct visit){.edge = i, .index = search};
                if (edge->to == to) {
                    return length;
                }
                if (edge->to < g->main_n) {
                    l.later[l.later_n++] = edge->to;
                } else {
                    l.now[l.now_n++] = edge->to;
                }
            }
        }
        l = (struct layers){l.later, l.now, l.later_n, 0};
    }
    return 0;
}

/* Writes the path that find_path found, then the edge behind it if there is one. */
static void note_cycle(const struct graph *g, uint32_t from, uint32_t to, const size_t *closing,
                       size_t length, struct cycle *out)
{
    size_t n = 0;
    uint32_t node = to;
    do {
        size_t edge = g->visits[node].edge;
        out->edges[n++] = edge;
        node = g->edges[edge].from;
    } while (node != from);
    for (size_t i = 0; i < n / 2; i++) {
        size_t other = out->edges[n - 1 - i];
        out->edges[n - 1 - i] = out->edges[i];
        out->edges[i] = other;
    }
    if (closing != NULL) {
        out->edges[n++] = *closing;
    }
    out->n = n;
    out->length = length;
}

/* A cycle with one RW is such an edge, and a path of other kinds from its end to its beginning. */
static bool find_one_rw(struct graph *g, unsigned kinds, struct cycle *out)
{
    size_t looks = LOOKS_MAX;
    size_t best = SIZE_MAX;
    uint32_t search = 0;
    for (size_t i = 0; i < g->edges_n && looks > 0 && best > 2; i++) {
        const struct edge *edge = &g->edges[i];
        if (edge->kind != EDGE_RW || g->component[edge->from] != g->component[edge->to]) {
            continue;
        }
        size_t enters = edge->to < g->main_n;
        size_t length = find_path(g, edge->to, edge->from, kinds & ~EDGES(EDGE_RW), ++search,
                                  best == SIZE_MAX ? best : best - enters, &looks);
        if (length > 0) {
            best = length + enters;
            note_cycle(g, edge->to, edge->from, &i, best, out);
        }
    }
    return best != SIZE_MAX;
}

static bool find_any(struct graph *g, unsigned kinds, struct cycle *out)
{
    size_t looks = LOOKS_MAX;
    size_t best = SIZE_MAX;
    uint32_t search = 0;
    for (uint32_t node = 0; node < g->main_n && looks > 0 && best > 2; node++) {
        if (g->size[g->component[node]] == 1) {
            continue;
        }
        size_t length = find_path(g, node, node, kinds, ++search, best, &looks);
        if (length > 0) {
            best = length;
            note_cycle(g, node, node, NULL, best, out);
        }
    }
    return best != SIZE_MAX;
}

static void clear_visits(struct graph *g)
{
    for (uint32_t i = 0; i < g->nodes_n; i++) {
        g->visits[i] = (struct visit){0};
    }
}

bool graph_find_cycle(struct graph *g, unsigned kinds, bool one_rw, struct cycle *out)
{
    if (!graph_has_cycle(g, kinds)) {
        return false;
    }
    clear_visits(g);
    return one_rw ? find_one_rw(g, kinds, out) : find_any(g, kinds, out);
}

bool graph_close_cycle(struct graph *g, size_t edge, unsigned kinds, struct cycle *out)
{
    const struct edge *first = &g->edges[edge];
    if (!graph_has_cycle(g, kinds | EDGES(first->kind)) ||
        g->component[first->from] != g->component[first->to]) {
        return false;
    }
    clear_visits(g);
    size_t looks = SIZE_MAX;
    size_t length = find_path(g, first->to, first->from, kinds, 1, SIZE_MAX, &looks);
    if (length > 0) {
        size_t enters = first->to < g->main_n;
        note_cycle(g, first->to, first->from, &edge, length + enters, out);
    }
    return length > 0;
}
