/* A cluster of ports within this process for what is made of one-sided verbs: memory servers that
 * expose their regions and do nothing else, and compute servers that post to them. One thread. */
#ifndef HORKOS_BENCH_VERBS_H
#define HORKOS_BENCH_VERBS_H

#include "net/port_verbs.h"

struct bench_verbs {
    struct loop *loop;
    struct hub *hub;
    struct port *ports[NODES_MAX]; /* memory servers, then compute servers */
    uint32_t memories, computes;
};

struct bench_verbs_count {
    uint64_t verbs[VERB_KINDS], batches; /* batches: postings, to however many memory servers */
    uint64_t bytes; /* both ways, with what InfiniBand's transport says, without packets' headers */
};

/* memory: exposed (memory_expose); memory->nodes and computes are together up to NODES_MAX.
 * HK_ERR_NOMEM, HK_ERR_IO. bench_verbs_close in any case. */
int bench_verbs_open(struct bench_verbs *verbs, const struct memory *memory, uint32_t computes)
    __attribute__((warn_unused_result));
void bench_verbs_close(struct bench_verbs *verbs);
/* Posts what a compute server's machine has posted, and sees its end: asserts that it was done.
 * count: added to; or NULL. */
void bench_verbs_run(struct bench_verbs *verbs, uint32_t compute, struct posting *posting,
                     struct bench_verbs_count *count);

#endif
