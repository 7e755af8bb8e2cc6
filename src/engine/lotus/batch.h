/* Batches across transactions ([L] 6.2): requests of several transactions of one worker for one
 * memory server leave together. The transactions are the members of a group; the first whose
 * request opens a batch leads, for a few batches, and resigns when it is refused. A batch waits for
 * a time that follows from how batches did so far, and leaves earlier if nobody else can come: so
 * a group that meets conflicts, or of which few are about, sends each request alone. Pure. */
#ifndef HORKOS_ENGINE_LOTUS_BATCH_H
#define HORKOS_ENGINE_LOTUS_BATCH_H

#include <stdbool.h>
#include <stdint.h>

struct batch_config {
    uint32_t members_min;  /* fewer transactions in progress: none waits */
    uint32_t requests_max; /* of a batch */
    uint32_t wait_us_max;  /* so long the first request of a batch waits, at the most */
    uint32_t term;         /* batches that one leads before another does */
};
extern const struct batch_config batch_standard;

#define BATCH_ONE 1024u /* rates are parts of it */

struct batch {
    uint64_t due_us;   /* when the open batch leaves; UINT64_MAX: none is open */
    uint32_t leader;   /* 0: nobody */
    uint32_t term;     /* batches that it leads yet */
    uint32_t requests; /* of the open batch */
    uint32_t passed;   /* requests since a batch was tried although batches do badly */
    uint32_t success;  /* batches that several shared, */
    uint32_t timeout;  /* ... that left with one request when its time was over, */
    uint32_t conflict; /* ... transactions that were refused: moving averages */
};

enum batch_word {
    BATCH_ALONE, /* the request is sent at once, and no batch waits for it */
    BATCH_WAIT,  /* it waits with the batch */
    BATCH_SEND,  /* it is the last one: the batch leaves now (batch_left is due) */
};

void batch_init(struct batch *b);
/* A member (not 0) has a request; active: transactions in progress, it included. */
enum batch_word batch_add(struct batch *b, const struct batch_config *config, uint32_t active,
                          uint32_t member, uint64_t now_us);
/* The open batch has left. */
void batch_left(struct batch *b, uint64_t now_us);
/* A member's transaction has taken effect, or was refused and will be back later. */
void batch_done(struct batch *b);
void batch_refused(struct batch *b, uint32_t member);
/* How long a batch that is opened now would wait; 0: not at all. */
uint32_t batch_wait_us(const struct batch *b, const struct batch_config *config);

#endif
