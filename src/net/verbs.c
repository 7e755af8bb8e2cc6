#include "net/verbs.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "net/exposure.h"

const char *const verb_names[VERB_KINDS] = {
    [VERB_READ] = "READ", [VERB_WRITE] = "WRITE", [VERB_CAS] = "CAS", [VERB_FAA] = "FAA"};

static uint32_t post(struct posting *p, struct verb verb)
{
    HK_ASSERT(p->n < VERBS_MAX && (verb.at & 7u) == 0);
    p->verbs[p->n] = verb;
    return p->n++;
}

uint32_t post_read(struct posting *p, remote at, uint64_t *to, uint32_t words)
{
    return post(p, (struct verb){.kind = VERB_READ, .at = at, .local = to, .words = words});
}

uint32_t post_write(struct posting *p, remote at, uint64_t *from, uint32_t words)
{
    return post(p, (struct verb){.kind = VERB_WRITE, .at = at, .local = from, .words = words});
}

uint32_t post_cas(struct posting *p, remote at, uint64_t expect, uint64_t value)
{
    return post(p, (struct verb){.kind = VERB_CAS, .at = at, .expect = expect, .value = value});
}

uint32_t post_add(struct posting *p, remote at, uint64_t value)
{
    return post(p, (struct verb){.kind = VERB_FAA, .at = at, .value = value});
}

/* What the transport of InfiniBand puts into its headers: RETH 16 bytes, AtomicETH 28, an
 * acknowledgement's AETH 4, an atomic's answer 8 more. */
uint32_t verb_bytes_there(const struct verb *v)
{
    switch ((enum verb_kind)v->kind) {
    case VERB_READ:
        return 16;
    case VERB_WRITE:
        return 16 + 8 * (v->words + v->more);
    case VERB_CAS:
    case VERB_FAA:
    case VERB_KINDS:
        break;
    }
    return 28;
}

uint32_t verb_bytes_back(const struct verb *v)
{
    switch ((enum verb_kind)v->kind) {
    case VERB_READ:
        return 4 + 8 * (v->words + v->more);
    case VERB_WRITE:
        return 4;
    case VERB_CAS:
    case VERB_FAA:
    case VERB_KINDS:
        break;
    }
    return 12;
}

bool memory_open(struct memory *memory, uint32_t nodes, uint64_t bytes)
{
    HK_ASSERT(nodes > 0 && nodes <= NODES_MAX && (bytes & 7u) == 0);
    *memory = (struct memory){.nodes = nodes};
    for (uint32_t i = 0; i < nodes; i++) {
        void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) {
            memory_close(memory);
            return false;
        }
        memory->regions[i] = (struct region){.words = at, .bytes = bytes};
    }
    return true;
}

bool memory_expose(struct memory *memory, uint32_t nodes, uint64_t bytes)
{
    HK_ASSERT(nodes > 0 && nodes <= NODES_MAX);
    *memory = (struct memory){.nodes = nodes};
    for (uint32_t i = 0; i < nodes; i++) {
        memory->exposures[i] = exposure_create(bytes);
        if (memory->exposures[i] == NULL) {
            memory_close(memory);
            return false;
        }
        memory->regions[i] = exposure_region(memory->exposures[i]);
    }
    return true;
}

void memory_close(struct memory *memory)
{
    for (uint32_t i = 0; i < memory->nodes; i++) {
        if (memory->exposures[i] != NULL) {
            exposure_let_go(memory->exposures[i]);
        } else if (memory->regions[i].words != NULL) {
            (void)munmap((void *)memory->regions[i].words, memory->regions[i].bytes);
        }
    }
    *memory = (struct memory){.nodes = 0};
}

static _Atomic uint64_t *words_at(const struct memory *memory, remote at, uint32_t words)
{
    uint32_t node = remote_node(at);
    HK_ASSERT(node < memory->nodes);
    const struct region *r = &memory->regions[node];
    HK_ASSERT(remote_byte(at) + 8u * (uint64_t)words <= r->bytes);
    return r->words + remote_byte(at) / 8;
}

_Atomic uint64_t *memory_word(const struct memory *memory, remote at)
{
    return words_at(memory, at, 1);
}

/* A card writes a batch in order, and what a later READ of it returns is not older. */
static void move_word(_Atomic uint64_t *at, struct verb *v, uint32_t word)
{
    if (v->kind == VERB_READ) {
        v->local[word] = atomic_load_explicit(at + word, memory_order_acquire);
    } else {
        atomic_store_explicit(at + word, v->local[word], memory_order_release);
    }
}

void memory_apply_word(const struct memory *memory, struct verb *v, uint32_t word)
{
    HK_ASSERT(word < v->words);
    move_word(words_at(memory, v->at, v->words), v, word);
}

bool region_apply(const struct region *region, struct verb *v)
{
    bool moves = v->kind == VERB_READ || v->kind == VERB_WRITE;
    uint64_t byte = remote_byte(v->at), bytes = 8 * (uint64_t)(moves ? v->words : 1);
    if (v->kind >= VERB_KINDS || (byte & 7u) != 0 || byte > region->bytes ||
        bytes > region->bytes - byte) {
        return false;
    }
    _Atomic uint64_t *at = region->words + byte / 8;
    if (v->kind == VERB_CAS) {
        v->seen = v->expect;
        (void)atomic_compare_exchange_strong_explicit(at, &v->seen, v->value, memory_order_acq_rel,
                                                      memory_order_acquire);
    } else if (v->kind == VERB_FAA) {
        v->seen = atomic_fetch_add_explicit(at, v->value, memory_order_acq_rel);
    }
    for (uint32_t i = 0; moves && i < v->words; i++) {
        move_word(at, v, i);
    }
    return true;
}

void memory_apply(const struct memory *memory, struct verb *v)
{
    uint32_t node = remote_node(v->at);
    HK_ASSERT(node < memory->nodes);
    bool inside = region_apply(&memory->regions[node], v);
    HK_ASSERT(inside);
}
