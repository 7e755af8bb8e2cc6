/* What a reader is: for read.c and commit_here.c. */
#ifndef HORKOS_NODE_READ_INTERNAL_H
#define HORKOS_NODE_READ_INTERNAL_H

#include "node/internal.h"
#include "node/read.h"

/* Inline values are copied here. One more line than they need between two buffers, or the first
 * lines of all would fall into the same few sets of a cache. */
#define BUFFER_BYTES (STORE_INLINE_MAX + 64u)

struct node_reader {
    struct node *node;
    struct store_thread *threads[SPACES_MAX];
    struct store_thread *entries[SPACES_MAX]; /* of directories, once it has a caller */
    struct hot_sampler *hot[SPACES_MAX];
    bool follows;
    uint32_t worker;           /* node_reader_worker */
    struct txn_caller *caller; /* its transactions'; NULL: a worker does them all */
    struct view view;          /* the published one, when last looked at */
    bool early;                /* of the call: node_read_early */
    uint8_t *memory;           /* NODE_READ_MAX times BUFFER_BYTES */

    /* Of a batch. */
    void *buffers[NODE_READ_MAX]; /* in memory */
    struct bytes keys[NODE_READ_MAX];
    uint64_t hashes[NODE_READ_MAX];
    struct store_value values[NODE_READ_MAX];
    int errs[NODE_READ_MAX];
};

/* Whether this node may answer by itself at that time. */
bool node_reader_leased(const struct node_reader *r, uint64_t now_us);

/* ---- commit_here.c ---- */
/* The reader has a pipeline of its own from here on, if the worker has one to give. */
void commit_here_open(struct node_reader *r);
void commit_here_close(struct node_reader *r);

#endif
