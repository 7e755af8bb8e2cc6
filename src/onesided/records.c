#include "onesided/records.h"

#include <stdatomic.h>
#include <stdlib.h>

#define FIRST 4096u /* bytes of a memory server below its records */
#define FILL 0.7
#define INSERT_BYTES                                                                               \
    128u /* of the tree: 16, in leaves that are half full, twice as much to spare */
#define HINT_BYTES 16u
#define HINTS_MIN 16u

remote one_record_at(uint32_t memories, uint32_t value_words, uint64_t i)
{
    uint64_t words = ONE_RECORD_HEAD + value_words;
    return remote_of((uint32_t)(i % memories), FIRST + i / memories * words * 8);
}

static bool open_runs(struct one_records *r, uint32_t memories, uint64_t n, uint32_t value_words,
                      uint32_t node_words, bool exposed, uint64_t each, uint64_t room)
{
    uint64_t words = ONE_RECORD_HEAD + value_words;
    uint64_t records = (n / memories + 1) * words * 8;
    uint64_t tree = n * 32 / memories + (1u << 20); /* generous: an entry has 16, in full leaves */
    uint64_t *keys = malloc(n * sizeof *keys), *at = malloc(n * sizeof *at);
    uint64_t bytes = (FIRST + records + tree + room) & ~UINT64_C(7);
    bool there = keys != NULL && at != NULL &&
                 (exposed ? memory_expose : memory_open)(&r->memory, memories, bytes);
    for (uint64_t i = 0; there && i < n; i++) {
        keys[i] = one_run_key(i / each, i % each);
        at[i] = one_record_at(memories, value_words, i);
        atomic_store_explicit(memory_word(&r->memory, at[i] + 8), keys[i], memory_order_relaxed);
    }
    if (there) {
        one_tree_build(&r->tree, &r->memory, node_words != 0 ? node_words : ONE_NODE_WORDS_MAX,
                       FIRST + records, keys, at, n, FILL);
    }
    free(keys);
    free(at);
    return there;
}

bool one_records_open(struct one_records *r, uint32_t memories, uint64_t n, uint32_t value_words,
                      uint32_t node_words, bool exposed)
{
    return open_runs(r, memories, n, value_words, node_words, exposed, n, 0);
}

bool one_records_open_runs(struct one_records *r, uint32_t memories, uint64_t n,
                           uint32_t value_words, uint32_t runs, uint64_t inserts)
{
    uint64_t bytes = 8u * (ONE_RECORD_HEAD + value_words) + INSERT_BYTES;
    return open_runs(r, memories, n, value_words, 0, true, n / runs,
                     (inserts / memories + NODES_MAX) * bytes);
}

void one_room_open(struct one_room *room, const struct one_records *r, uint32_t value_words,
                   uint64_t inserts)
{
    uint32_t nodes = r->tree.nodes;
    uint64_t each = (inserts + nodes - 1) / nodes;
    *room = (struct one_room){.record_bytes = 8u * (ONE_RECORD_HEAD + value_words), .nodes = nodes};
    for (uint32_t i = 0; i < nodes; i++) {
        room->next[i] = one_tree_take(&r->tree, &r->memory, i, each * room->record_bytes);
        room->end[i] = room->next[i] + each * room->record_bytes;
    }
}

void one_records_close(struct one_records *r)
{
    memory_close(&r->memory);
}

bool one_server_open(struct one_server *s, const struct one_records *r, double part)
{
    uint64_t nodes[ONE_LEVELS_MAX], all = 0, inner = 0;
    uint32_t levels = one_tree_count(&r->tree, &r->memory, nodes);
    uint64_t node_bytes = 8u * r->tree.node_words;
    for (uint32_t i = 0; i < levels; i++) {
        all += nodes[i];
        inner += i > 0 ? nodes[i] : 0;
    }
    uint64_t bytes = (uint64_t)(part * (double)(all * node_bytes));
    uint64_t copies = bytes / node_bytes < inner ? bytes / node_bytes : inner;
    uint64_t slots = HINTS_MIN / 2;
    while (slots * 2 * HINT_BYTES <= bytes - copies * node_bytes) {
        slots *= 2;
    }
    s->cache = one_cache_new(&r->tree, copies);
    return one_hints_open(&s->hints, slots < HINTS_MIN ? 0 : slots) && s->cache != NULL;
}

void one_server_close(struct one_server *s)
{
    one_cache_free(s->cache);
    one_hints_close(&s->hints);
    s->cache = NULL;
}

static bool drawn_before(const struct one_txn *t, uint32_t n, uint64_t key)
{
    for (uint32_t i = 0; i < n; i++) {
        if (t->requests[i].key == key) {
            return true;
        }
    }
    return false;
}

void one_txn_draw(struct one_txn *t, uint64_t age, uint32_t requests, uint32_t writes_ppm,
                  const struct keys *keys)
{
    for (uint32_t i = 0; i < requests; i++) {
        do {
            t->requests[i].key = keys_draw(keys, t->random);
        } while (drawn_before(t, i, t->requests[i].key));
        t->requests[i].write = random_chance(t->random, writes_ppm);
    }
    one_txn_begin(t, age, requests);
}
