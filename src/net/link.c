#include "net/link.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "net/link_state.h"
#include "wire/frame.h"

const char *const link_fault_names[LINK_FAULTS] = {
    [LINK_OK] = "none",       [LINK_RECORD] = "record",
    [LINK_MAC] = "mac",       [LINK_FRAGMENT_FAULT] = "fragment",
    [LINK_CREDIT] = "credit", [LINK_FRAME] = "frame",
    [LINK_MEMORY] = "memory",
};

int link_create(const struct link_config *config, struct link **link_out)
{
    HK_ASSERT(config->window >= LINK_WINDOW_MIN && config->window <= LINK_WINDOW_MAX);
    HK_ASSERT(config->queue_max >= FRAME_HEADER + FRAME_BODY_MAX);

    struct link *link = calloc(1, sizeof(*link));

    if (link == NULL)
        return HK_ERR_NOMEM;
    link_mac_init(&link->out.mac, config->keys.send);
    link_mac_init(&link->in.mac, config->keys.receive);
    link->out.queue_max = config->queue_max;
    link->in.window = config->window;
    *link_out = link;
    return HK_OK;
}

void link_destroy(struct link *link)
{
    if (link == NULL)
        return;
    link_out_clear(&link->out);
    link_in_clear(&link->in);
    free(link);
}

uint64_t link_outstanding(const struct link *link)
{
    const struct link_out *out = &link->out;

    return out->view.bytes + out->small.bytes + out->large_bytes + (out->sent - out->acked);
}

bool link_large_under_way(const struct link *link)
{
    const struct link_out *out = &link->out;

    return out->large.first != NULL || out->acked + LINK_CREDIT_LAG < out->large_sent;
}

uint64_t link_bytes_held(const struct link *link)
{
    const struct link_out *out = &link->out;
    const struct link_in *in = &link->in;

    return sizeof(*link) + out->view.held + out->small.held + out->large_held + in->view.held +
           in->small.held + in->large_held + in->partial_capacity;
}

uint64_t link_dropped(const struct link *link)
{
    return link->in.dropped;
}

void link_larges_push(struct link_larges *larges, struct link_large *large)
{
    large->next = NULL;
    if (larges->first == NULL)
        larges->first = large;
    else
        larges->last->next = large;
    larges->last = large;
}

struct link_large *link_larges_pop(struct link_larges *larges)
{
    struct link_large *large = larges->first;

    if (large == NULL)
        return NULL;
    larges->first = large->next;
    if (larges->first == NULL)
        larges->last = NULL;
    return large;
}

void link_large_free(struct link_large *large, uint64_t *held)
{
    *held -= sizeof(*large) + large->capacity;
    pieces_free(&large->pieces);
    free(large);
}
