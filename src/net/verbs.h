/* One-sided operations on the memory of another node, as an RDMA card offers them: READ, WRITE,
 * compare-and-swap and fetch-and-add, executed there without its processor. The baselines that
 * Lotus is compared with are made of them (docs/ONE_SIDED.md). A machine posts a batch of verbs and
 * goes on when all are done; those of one batch to one node are executed in their order, as one
 * queue pair does it. READ and WRITE are not atomic: only each word of 8 bytes is.
 *
 * Who executes a posting: a port (port_verbs.h); the cost model, when it arrives in virtual time;
 * a test, word by word in whichever order. */
#ifndef HORKOS_NET_VERBS_H
#define HORKOS_NET_VERBS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"

enum verb_kind { VERB_READ, VERB_WRITE, VERB_CAS, VERB_FAA, VERB_KINDS };
extern const char *const verb_names[VERB_KINDS];

/* Where a word is: the node in the upper 16 bits, the byte (a multiple of 8) below. 0 is nowhere.
 */
typedef uint64_t remote;
#define REMOTE_NODE_SHIFT 48u
static inline remote remote_of(uint32_t node, uint64_t byte)
{
    return (uint64_t)node << REMOTE_NODE_SHIFT | byte;
}
static inline uint32_t remote_node(remote at)
{
    return (uint32_t)(at >> REMOTE_NODE_SHIFT);
}
static inline uint64_t remote_byte(remote at)
{
    return at & ((UINT64_C(1) << REMOTE_NODE_SHIFT) - 1);
}

struct verb {
    remote at;
    uint64_t *local; /* READ: the words come here; WRITE: they are here until the posting is done */
    uint64_t expect; /* CAS */
    uint64_t value;  /* CAS: the new word; FAA: what is added */
    uint64_t seen;   /* CAS, FAA: out: the word before */
    uint32_t words;  /* READ, WRITE */
    uint32_t more;   /* words that travel besides: of a value of which a model keeps less */
    uint8_t kind;    /* enum verb_kind */
};

#define VERBS_MAX 256u
struct posting {
    uint32_t n;
    uint64_t delay_ns; /* it is posted so much later: a poll, a back-off */
    struct verb verbs[VERBS_MAX];
};

/* Each appends a verb and returns its number. Assert that there is room. */
uint32_t post_read(struct posting *p, remote at, uint64_t *to, uint32_t words);
uint32_t post_write(struct posting *p, remote at, uint64_t *from, uint32_t words);
uint32_t post_cas(struct posting *p, remote at, uint64_t expect, uint64_t value);
uint32_t post_add(struct posting *p, remote at, uint64_t value);

/* Bytes that travel there and back for a verb, without headers of packets. */
uint32_t verb_bytes_there(const struct verb *v);
uint32_t verb_bytes_back(const struct verb *v);

/* ---- Memory ---- */

struct region {
    _Atomic uint64_t *words;
    uint64_t bytes;
};
/* Executes a verb, whichever node it names. False: it does not lie inside, or is none; then nothing
 * was done. */
bool region_apply(const struct region *region, struct verb *v);

struct exposure;
struct memory {
    struct region regions[NODES_MAX];
    struct exposure *exposures[NODES_MAX]; /* NULL: a region that nobody exposes */
    uint32_t nodes;
};

/* Shared, zeroed memory of that size at each node; false: there is not so much. */
bool memory_open(struct memory *memory, uint32_t nodes, uint64_t bytes);
/* The same in regions that ports can expose (exposure.h). */
bool memory_expose(struct memory *memory, uint32_t nodes, uint64_t bytes);
void memory_close(struct memory *memory);
/* Executes a verb, or word i of a READ or WRITE. Asserts that it lies inside a region. */
void memory_apply(const struct memory *memory, struct verb *v);
void memory_apply_word(const struct memory *memory, struct verb *v, uint32_t word);
/* A word, as who fills the memory before anything runs sees it. */
_Atomic uint64_t *memory_word(const struct memory *memory, remote at);

#endif
