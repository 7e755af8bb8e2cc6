/* Which erasure an absent key shows. Nobody tells: a read that found nothing saw the beginning or
 * one of the erasures, each of which is a place in the order of the key's writes. The places that
 * it can have seen are neighbours, for a read that cannot be so early cannot be earlier, and the
 * same of late. So two edges say all that is known: from the writer of the earliest place to the
 * read, and from the read to the writer behind the latest.
 *
 * Each pass takes places away: those whose erasure the read must come before, and those that end
 * with a write that must come before the read. A read with no place left has edges that make a
 * cycle. When nothing more is taken away and some reads have several places, an order is looked
 * for, transaction by transaction; one that is found explains all of them. If that gets stuck, one
 * of the reads is taken to have seen the earliest of its places, or else a later one, and so on. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "check/serial.h"

/* Nodes of a graph whose ways are all kept: a bit for each pair. */
#define NODES_MOST 40000u
#define GUESSES_MOST 64u
#define TRIES_MOST 200u

static bool is_absence(const struct serial *s, const struct key_part *key, uint32_t position)
{
    return position == 0 || s->writes[s->order[key->order + position - 1]].erases;
}

static uint32_t writer_at(const struct serial *s, const struct key_part *key, uint32_t position)
{
    return s->writes[s->order[key->order + position - 1]].txn;
}

static uint32_t absence_before(const struct serial *s, const struct key_part *key,
                               uint32_t position)
{
    while (!is_absence(s, key, position)) {
        position--;
    }
    return position;
}

/* UINT32_MAX: there is none. */
static uint32_t absence_behind(const struct serial *s, const struct key_part *key,
                               uint32_t position)
{
    do {
        if (++position > key->order_n) {
            return UINT32_MAX;
        }
    } while (!is_absence(s, key, position));
    return position;
}

/* A transaction that wrote the key as well saw what its write followed. */
void serial_absent_begin(struct serial *s, struct key_part *key)
{
    bool erased = absence_before(s, key, (uint32_t)key->order_n) > 0;
    uint32_t *own = erased ? calloc(s->history->n + 1, sizeof *own) : NULL;
    for (size_t i = 0; own != NULL && i < key->order_n; i++) {
        own[s->writes[s->order[key->order + i]].txn] = (uint32_t)i + 1;
    }
    for (size_t i = key->reads; i < key->reads + key->reads_n; i++) {
        struct saw *read = &s->reads[i];
        const struct txn *txn = &s->history->txns[read->txn];
        if (read->value != 0) {
            continue;
        }
        bool early = s->level == TXN_STRICT_SERIALIZABLE && txn->end_us < key->wild_us;
        read->idle = key->wild_us != UINT64_MAX && !early;
        read->latest = absence_before(s, key, (uint32_t)key->order_n);
        if (own != NULL && own[read->txn] != 0) {
            read->latest = absence_before(s, key, own[read->txn] - 1);
            read->position = read->latest;
        }
    }
    free(own);
}

/* All ways in the graph: whether one leads from node a to the main node b. */
struct ways {
    uint32_t *order; /* nodes; edges lead to later ones */
    uint64_t *bits;
    size_t words; /* of a node */
};

static bool is_way(const struct ways *ways, uint32_t a, uint32_t b)
{
    return (ways->bits[a * ways->words + b / 64] >> (b % 64) & 1) != 0;
}

static bool counts(const struct serial *s, const struct edge *edge)
{
    return ((SERIAL_DATA | serial_edges_of(s->level)) >> edge->kind & 1) != 0;
}

/* The graph has no cycle. */
static void sort_nodes(const struct serial *s, uint32_t *order, uint32_t *open)
{
    const struct graph *g = &s->graph;
    uint32_t done = 0;
    uint32_t n = 0;
    memset(open, 0, g->nodes_n * sizeof *open);
    for (size_t i = 0; i < g->edges_n; i++) {
        open[g->edges[i].to] += counts(s, &g->edges[i]);
    }
    for (uint32_t i = 0; i < g->nodes_n; i++) {
        if (open[i] == 0) {
            order[n++] = i;
        }
    }
    for (; done < n; done++) {
        for (size_t i = g->first[order[done]]; i < g->first[order[done] + 1]; i++) {
            const struct edge *edge = &g->edges[i];
            if (counts(s, edge) && --open[edge->to] == 0) {
                order[n++] = edge->to;
            }
        }
    }
    HK_ASSERT(n == g->nodes_n);
}

static void fill_ways(const struct serial *s, struct ways *ways)
{
    const struct graph *g = &s->graph;
    memset(ways->bits, 0, g->nodes_n * ways->words * sizeof *ways->bits);
    for (uint32_t i = g->nodes_n; i-- > 0;) {
        uint32_t node = ways->order[i];
        uint64_t *mine = &ways->bits[node * ways->words];
        for (size_t e = g->first[node]; e < g->first[node + 1]; e++) {
            const struct edge *edge = &g->edges[e];
            const uint64_t *its = &ways->bits[edge->to * ways->words];
            for (size_t w = 0; counts(s, edge) && w < ways->words; w++) {
                mine[w] |= its[w];
            }
            if (counts(s, edge) && edge->to < g->main_n) {
                mine[edge->to / 64] |= UINT64_C(1) << (edge->to % 64);
            }
        }
    }
}

/* True: a place was taken away. */
static bool narrow(const struct serial *s, const struct key_part *key, struct saw *read,
                   const struct ways *ways)
{
    uint32_t position = read->position;
    uint32_t latest = read->latest;
    while (latest > read->position && is_way(ways, read->txn, writer_at(s, key, latest))) {
        latest = absence_before(s, key, latest - 1);
    }
    while (position < key->order_n && position <= latest) {
        uint32_t end = writer_at(s, key, position + 1);
        uint32_t next = absence_behind(s, key, position);
        if (end == read->txn || !is_way(ways, end, read->txn) || next == UINT32_MAX) {
            break;
        }
        position = next;
    }
    bool taken = position != read->position || latest != read->latest;
    read->position = position;
    read->latest = latest;
    return taken;
}

static bool is_open(const struct saw *read)
{
    return !read->idle && read->value == 0 && read->position < read->latest;
}

static size_t open_reads(const struct serial *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->reads_n; i++) {
        n += s->history->recording == TXN_VERSIONS && is_open(&s->reads[i]);
    }
    return n;
}

static bool narrow_all(const struct serial *s, const struct ways *ways)
{
    bool taken = false;
    for (size_t k = 0; k < s->keys_n; k++) {
        const struct key_part *key = &s->keys[k];
        for (size_t i = key->reads; i < key->reads + key->reads_n; i++) {
            taken = (is_open(&s->reads[i]) && narrow(s, key, &s->reads[i], ways)) || taken;
        }
    }
    return taken;
}

/* ---- An order, step by step ---- */

struct attempt {
    uint32_t *open; /* node -> edges to it from nodes that are not in the order yet */
    bool *placed;
    uint32_t *at;  /* key -> the writes that are */
    size_t *first; /* transaction -> the first of its open reads in `reads`; one more at the end */
    size_t *reads; /* indices into serial.reads ... */
    uint32_t *key_of; /* ... and of each its key */
    size_t *wfirst;   /* transaction -> the same of its placed writes */
    uint32_t *wkeys;
    bool by_end; /* which transaction first */
};

static bool can_see(const struct serial *s, const struct attempt *a, uint32_t txn)
{
    for (size_t i = a->first[txn]; i < a->first[txn + 1]; i++) {
        const struct saw *read = &s->reads[a->reads[i]];
        uint32_t at = a->at[a->key_of[i]];
        if (!is_absence(s, &s->keys[a->key_of[i]], at) || at < read->position ||
            at > read->latest) {
            return false;
        }
    }
    return true;
}

static void place(const struct serial *s, struct attempt *a, uint32_t node)
{
    const struct graph *g = &s->graph;
    a->placed[node] = true;
    for (size_t i = g->first[node]; i < g->first[node + 1]; i++) {
        a->open[g->edges[i].to] -= counts(s, &g->edges[i]);
    }
    for (size_t i = node < g->main_n ? a->wfirst[node] : 0;
         node < g->main_n && i < a->wfirst[node + 1]; i++) {
        a->at[a->wkeys[i]]++;
    }
}

/* Rather one that changes nothing, then the one whose time is over first. */
static uint64_t rank(const struct serial *s, const struct attempt *a, uint32_t node)
{
    if (node >= s->graph.main_n || a->wfirst[node] == a->wfirst[node + 1]) {
        return 0;
    }
    const struct txn *txn = &s->history->txns[node];
    uint64_t when = a->by_end && txn->outcome == TXN_COMMITTED ? txn->end_us : txn->begin_us;
    return 1 + when;
}

static bool try_order(const struct serial *s, struct attempt *a)
{
    const struct graph *g = &s->graph;
    memset(a->open, 0, g->nodes_n * sizeof *a->open);
    memset(a->placed, 0, g->nodes_n * sizeof *a->placed);
    memset(a->at, 0, s->keys_n * sizeof *a->at);
    for (size_t i = 0; i < g->edges_n; i++) {
        a->open[g->edges[i].to] += counts(s, &g->edges[i]);
    }
    for (uint32_t done = 0; done < g->nodes_n; done++) {
        uint32_t best = UINT32_MAX;
        uint64_t least = UINT64_MAX;
        for (uint32_t i = 0; i < g->nodes_n && least > 0; i++) {
            bool ready = !a->placed[i] && a->open[i] == 0 && (i >= g->main_n || can_see(s, a, i));
            uint64_t its = ready ? rank(s, a, i) : UINT64_MAX;
            best = its < least ? i : best;
            least = its < least ? its : least;
        }
        if (best == UINT32_MAX) {
            return false;
        }
        place(s, a, best);
    }
    return true;
}

/* By transaction: counting sort. */
static void list_reads(const struct serial *s, struct attempt *a)
{
    for (int pass = 0; pass < 2; pass++) {
        for (size_t k = 0; k < s->keys_n; k++) {
            const struct key_part *key = &s->keys[k];
            for (size_t i = key->reads; i < key->reads + key->reads_n; i++) {
                if (!is_open(&s->reads[i])) {
                    continue;
                }
                size_t *at = &a->first[s->reads[i].txn + 1];
                if (pass == 1) {
                    a->reads[*at] = i;
                    a->key_of[*at] = (uint32_t)k;
                }
                (*at)++;
            }
            for (size_t i = 0; i < key->order_n; i++) {
                size_t *at = &a->wfirst[writer_at(s, key, (uint32_t)i + 1) + 1];
                if (pass == 1) {
                    a->wkeys[*at] = (uint32_t)k;
                }
                (*at)++;
            }
        }
        for (size_t i = s->history->n + 1; pass == 0 && i > 0; i--) {
            a->first[i] = a->first[i - 1];
            a->wfirst[i] = a->wfirst[i - 1];
        }
        for (size_t i = 1; pass == 0 && i < s->history->n + 2; i++) {
            a->first[i] += a->first[i - 1];
            a->wfirst[i] += a->wfirst[i - 1];
        }
    }
}

static enum check_result find_order(const struct serial *s, bool *found_out)
{
    size_t n = s->history->n;
    size_t open = open_reads(s);
    struct attempt a = {
        .open = calloc(s->graph.nodes_n + 1, sizeof *a.open),
        .placed = calloc(s->graph.nodes_n + 1, sizeof *a.placed),
        .at = calloc(s->keys_n + 1, sizeof *a.at),
        .first = calloc(n + 2, sizeof *a.first),
        .reads = calloc(open + 1, sizeof *a.reads),
        .key_of = calloc(open + 1, sizeof *a.key_of),
        .wfirst = calloc(n + 2, sizeof *a.wfirst),
        .wkeys = calloc(s->order_n + 1, sizeof *a.wkeys),
    };
    enum check_result result = CHECK_NOMEM;
    if (a.open != NULL && a.placed != NULL && a.at != NULL && a.first != NULL && a.reads != NULL &&
        a.key_of != NULL && a.wfirst != NULL && a.wkeys != NULL) {
        list_reads(s, &a);
        *found_out = try_order(s, &a);
        a.by_end = !*found_out;
        *found_out = *found_out || try_order(s, &a);
        result = CHECK_ACCEPTED;
    }
    free(a.open);
    free(a.placed);
    free(a.at);
    free(a.first);
    free(a.reads);
    free(a.key_of);
    free(a.wfirst);
    free(a.wkeys);
    return result;
}

/* ---- Guesses ---- */

/* An open read was taken to have seen the earliest of its places. */
struct guess {
    struct saw *before; /* what was known of all reads */
    size_t read;
};

struct search {
    struct ways ways;
    uint32_t *open;
    struct guess guesses[GUESSES_MOST];
    uint32_t guesses_n;
    uint32_t tries;
    bool cycle;
};

/* Until nothing more is taken away, or there is a cycle. */
static enum check_result settle(struct serial *s, struct search *search)
{
    unsigned kinds = SERIAL_DATA | serial_edges_of(s->level);
    for (;;) {
        enum check_result result = serial_connect(s);
        if (result != CHECK_ACCEPTED) {
            return result;
        }
        search->cycle = graph_has_cycle(&s->graph, kinds);
        if (search->cycle) {
            return CHECK_ACCEPTED;
        }
        sort_nodes(s, search->ways.order, search->open);
        fill_ways(s, &search->ways);
        if (!narrow_all(s, &search->ways)) {
            return CHECK_ACCEPTED;
        }
        s->narrowed = true;
    }
}

static bool guess(struct serial *s, struct search *search)
{
    struct guess *g = &search->guesses[search->guesses_n];
    g->before = calloc(s->reads_n, sizeof *g->before);
    if (g->before == NULL) {
        return false;
    }
    memcpy(g->before, s->reads, s->reads_n * sizeof *g->before);
    g->read = 0;
    while (!is_open(&s->reads[g->read])) {
        g->read++;
    }
    s->reads[g->read].latest = s->reads[g->read].position;
    search->guesses_n++;
    return true;
}

/* The last guess was wrong: it saw a later one. */
static void take_back(struct serial *s, struct search *search)
{
    struct guess *g = &search->guesses[--search->guesses_n];
    memcpy(s->reads, g->before, s->reads_n * sizeof *g->before);
    free(g->before);
    struct saw *read = &s->reads[g->read];
    size_t k = 0;
    while (g->read >= s->keys[k].reads + s->keys[k].reads_n) {
        k++;
    }
    read->position = absence_behind(s, &s->keys[k], read->position);
}

/* ACCEPTED: search->cycle says whether every guess leads to a cycle. */
static enum check_result search_absent(struct serial *s, struct search *search)
{
    for (;;) {
        enum check_result result = settle(s, search);
        size_t left = open_reads(s);
        if (result != CHECK_ACCEPTED) {
            return result;
        }
        if (search->cycle) {
            if (search->guesses_n == 0) {
                return CHECK_ACCEPTED;
            }
            take_back(s, search);
            continue;
        }
        bool found = false;
        if (left == 0 || (result = find_order(s, &found)) != CHECK_ACCEPTED || found) {
            return result;
        }
        if (search->guesses_n == GUESSES_MOST || search->tries++ == TRIES_MOST) {
            return serial_give_up(s, 0, "nothing tells which erasures %zu reads saw", left);
        }
        if (!guess(s, search)) {
            return CHECK_NOMEM;
        }
    }
}

enum check_result serial_absent(struct serial *s)
{
    size_t left = open_reads(s);
    size_t nodes = s->graph.nodes_n; /* the same in each pass */
    bool found = false;
    if (left == 0) {
        return CHECK_ACCEPTED;
    }
    if (nodes > NODES_MOST) {
        enum check_result result = find_order(s, &found);
        return result != CHECK_ACCEPTED || found
                   ? result
                   : serial_give_up(s, 0, "too many transactions to tell what %zu reads saw", left);
    }
    struct search *search = calloc(1, sizeof *search);
    enum check_result result = CHECK_NOMEM;
    if (search == NULL) {
        return result;
    }
    search->ways.words = (s->graph.main_n + 63) / 64;
    search->ways.order = calloc(nodes + 1, sizeof *search->ways.order);
    search->ways.bits = calloc(nodes * search->ways.words + 1, sizeof *search->ways.bits);
    search->open = calloc(nodes + 1, sizeof *search->open);
    if (search->ways.order != NULL && search->ways.bits != NULL && search->open != NULL) {
        result = search_absent(s, search);
    }
    while (search->guesses_n > 0) {
        free(search->guesses[--search->guesses_n].before);
    }
    free(search->ways.order);
    free(search->ways.bits);
    free(search->open);
    free(search);
    return result;
}
