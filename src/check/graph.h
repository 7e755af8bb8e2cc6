/* A directed graph whose edges have kinds, and its cycles. The main nodes, numbered first, are what
 * the graph is about; the others stand between them only to save edges, so that a path's length is
 * the number of main nodes that it enters. */
#ifndef HORKOS_CHECK_GRAPH_H
#define HORKOS_CHECK_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum edge_kind {
    EDGE_WW,      /* wrote the version before */
    EDGE_WR,      /* wrote what the other read */
    EDGE_RW,      /* read a version before the one that the other wrote */
    EDGE_SESSION, /* the client's earlier one */
    EDGE_TIME,    /* ended before the other began */
    EDGE_TAIL,    /* from an auxiliary node on; part of the edge that leads to it */
};

#define EDGES(kind) (1u << (kind))

struct edge {
    uint32_t from;
    uint32_t to;
    uint64_t key; /* of WW, WR and RW */
    uint8_t kind; /* enum edge_kind */
};

struct graph {
    uint32_t main_n;
    uint32_t nodes_n;
    struct edge *edges; /* by their beginnings, once sealed */
    size_t edges_n;
    size_t edges_size;
    size_t *first;        /* node -> its first edge; one more at the end */
    uint32_t *component;  /* of graph_components; equal: each can reach the other */
    uint32_t *size;       /* component -> its nodes */
    struct visit *visits; /* for one search at a time; see graph.c */
    uint32_t *stack;
};

/* A cycle as edges, each from where the last one led. */
struct cycle {
    size_t *edges;
    size_t n;
    size_t length; /* main nodes */
};

void graph_init(struct graph *g, uint32_t main_n);
void graph_deinit(struct graph *g);

/* A new auxiliary node; graph not sealed. */
uint32_t graph_node(struct graph *g);
/* False without memory. An edge from a node to itself is left out. */
bool graph_add(struct graph *g, struct edge edge) __attribute__((warn_unused_result));
/* Ends the building. False without memory. */
bool graph_seal(struct graph *g) __attribute__((warn_unused_result));

/* Whether there is a cycle of edges of these kinds (bits EDGES(kind)). Tarjan, "Depth-first search
 * and linear graph algorithms" (1972); fills in component and size. */
bool graph_has_cycle(struct graph *g, unsigned kinds);

/* The shortest cycle of these kinds, or one that is as short as a bounded search finds; with
 * exactly one RW if one_rw. False if there is none, or, with one_rw, none was found within the
 * bound. *out, whose edges have room for nodes_n + 1, is left alone then. */
bool graph_find_cycle(struct graph *g, unsigned kinds, bool one_rw, struct cycle *out);

/* The same for the shortest cycle of one edge and others of these kinds; exact. */
bool graph_close_cycle(struct graph *g, size_t edge, unsigned kinds, struct cycle *out);

#endif
