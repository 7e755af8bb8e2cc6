/* Frames that wait, in the order of their arrival: a list of chunks in which whole frames stand one
 * after another. What is appended stays where it is until it is taken. A chunk that was taken empty
 * is kept for the next one, so a queue that is filled and emptied again and again allocates
 * nothing. Each two neighbouring chunks hold more than one chunk's least size between them: the
 * queue's memory is at most about twice its bytes and one chunk. */
#ifndef HORKOS_NET_LINK_QUEUE_H
#define HORKOS_NET_LINK_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define LINK_CHUNK (16u * 1024u)

struct link_chunk {
    struct link_chunk *next;
    uint32_t capacity, used, taken;
    uint8_t bytes[];
};

struct link_queue {
    struct link_chunk *first, *last;
    struct link_chunk *spare; /* one of LINK_CHUNK bytes, or NULL */
    uint64_t bytes;           /* that wait */
    uint64_t held;            /* memory, all told */
};

/* A queue of zeros is empty. Frees all. */
void link_queue_clear(struct link_queue *queue);
/* Appends one or more whole frames, by copy. False: no memory, nothing changed. */
bool link_queue_append(struct link_queue *queue, struct bytes frames)
    __attribute__((warn_unused_result));
/* The frames that stand at the front in one piece; empty when none waits. Good until the next
 * link_queue_take. */
struct bytes link_queue_front(const struct link_queue *queue);
/* Forgets the first n bytes of the front; whoever does so no longer reads them. */
void link_queue_take(struct link_queue *queue, uint32_t n);

#endif
