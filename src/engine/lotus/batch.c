#include "engine/lotus/batch.h"

#include "base/assert.h"

#define WEIGHT 8u       /* of a moving average: the newest counts one in so many */
#define PROBE_EVERY 64u /* of requests that pass, one tries a batch again */

const struct batch_config batch_standard = {
    .members_min = 4, .requests_max = 32, .wait_us_max = 10, .term = 16};

static void average(uint32_t *rate, bool is)
{
    *rate += is ? (BATCH_ONE - *rate + WEIGHT - 1) / WEIGHT : 0;
    *rate -= is ? 0 : (*rate + WEIGHT - 1) / WEIGHT;
}

static void close_batch(struct batch *b)
{
    b->due_us = UINT64_MAX;
    b->requests = 0;
}

void batch_init(struct batch *b)
{
    *b = (struct batch){.due_us = UINT64_MAX, .success = BATCH_ONE};
}

uint32_t batch_wait_us(const struct batch *b, const struct batch_config *config)
{
    uint64_t wait = (uint64_t)config->wait_us_max * b->success / BATCH_ONE;
    wait = wait * (BATCH_ONE - b->timeout) / BATCH_ONE;
    return (uint32_t)(wait * (BATCH_ONE - b->conflict) / BATCH_ONE);
}

/* Whether to open a batch, and how long it waits; now and then although batches do badly: else
 * nobody would learn that they would do well by now. */
static uint32_t opening_us(struct batch *b, const struct batch_config *config)
{
    uint32_t wait_us = batch_wait_us(b, config);
    if (wait_us == 0 && ++b->passed >= PROBE_EVERY) {
        wait_us = 1;
    }
    b->passed = wait_us > 0 ? 0 : b->passed;
    return wait_us;
}

static void lead(struct batch *b, const struct batch_config *config, uint32_t member)
{
    if (b->leader == 0 || b->term == 0) {
        b->leader = member;
        b->term = config->term;
    }
    b->term--;
}

enum batch_word batch_add(struct batch *b, const struct batch_config *config, uint32_t active,
                          uint32_t member, uint64_t now_us)
{
    HK_ASSERT(member != 0);
    if (b->due_us == UINT64_MAX) {
        uint32_t wait_us = active < config->members_min ? 0 : opening_us(b, config);
        if (wait_us == 0) {
            return BATCH_ALONE;
        }
        lead(b, config, member);
        b->due_us = now_us + wait_us;
    }
    b->requests++;
    bool all = b->requests >= active || b->requests >= config->requests_max;
    return all ? BATCH_SEND : BATCH_WAIT;
}

void batch_left(struct batch *b, uint64_t now_us)
{
    HK_ASSERT(b->due_us != UINT64_MAX && b->requests > 0);
    average(&b->success, b->requests > 1);
    average(&b->timeout, b->requests == 1 && now_us >= b->due_us);
    close_batch(b);
}

void batch_done(struct batch *b)
{
    average(&b->conflict, false);
}

void batch_refused(struct batch *b, uint32_t member)
{
    average(&b->conflict, true);
    if (b->leader == member) {
        b->leader = 0;
    }
}
