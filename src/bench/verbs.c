#include "bench/verbs.h"

#include "base/assert.h"
#include "base/err.h"
#include "net/hub.h"
#include "net/shm.h"
#include "wire/frame.h"

static void lost(void *context, uint8_t node, uint8_t remote_worker, uint8_t local_worker,
                 const char *why)
{
    (void)context, (void)node, (void)remote_worker, (void)local_worker, (void)why;
}

int bench_verbs_open(struct bench_verbs *b, const struct memory *memory, uint32_t computes)
{
    HK_ASSERT(memory->nodes + computes <= NODES_MAX);
    *b = (struct bench_verbs){.memories = memory->nodes, .computes = computes};
    int err = loop_create(LOOP_EPOLL, &b->loop);
    err = err == HK_OK ? hub_create(SHM_RING_MIN, &b->hub) : err;
    for (uint32_t i = 0; err == HK_OK && i < memory->nodes + computes; i++) {
        struct port_config config = {.self = (uint8_t)i,
                                     .workers = 1,
                                     .hub = b->hub,
                                     .queue_max = FRAME_HEADER + FRAME_BODY_MAX,
                                     .congested_at = FRAME_BODY_MAX,
                                     .lost = lost};
        err = port_create(&config, b->loop, &b->ports[i]);
        if (err == HK_OK && i < memory->nodes) {
            port_expose(b->ports[i], memory->exposures[i]);
        }
    }
    for (uint32_t i = 0; err == HK_OK && i < memory->nodes + computes; i++) {
        port_adopt(b->ports[i]);
    }
    return err;
}

void bench_verbs_close(struct bench_verbs *b)
{
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        port_destroy(b->ports[i]);
    }
    hub_destroy(b->hub);
    if (b->loop != NULL) {
        loop_destroy(b->loop);
    }
    *b = (struct bench_verbs){.loop = NULL};
}

void bench_verbs_run(struct bench_verbs *b, uint32_t compute, struct posting *p,
                     struct bench_verbs_count *count)
{
    struct port *port = b->ports[b->memories + compute];
    struct port_batch batches[NODES_MAX];
    nodeset nodes = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        nodes |= nodeset_of((uint8_t)remote_node(p->verbs[i].at));
    }
    for (nodeset left = nodes; left != 0; left &= left - 1) {
        uint8_t node = nodeset_first(left);
        batches[node] = (struct port_batch){.posting = p, .node = node};
        port_post(port, &batches[node]);
    }
    port_flush(port);
    for (struct port_batch *batch; (batch = port_completed(port)) != NULL;) {
        HK_ASSERT(batch->end == BATCH_DONE);
        nodes &= ~nodeset_of(batch->node);
    }
    HK_ASSERT(nodes == 0);
    if (count != NULL) {
        count->batches++;
    }
    for (uint32_t i = 0; count != NULL && i < p->n; i++) {
        count->verbs[p->verbs[i].kind]++;
        count->bytes += verb_bytes_there(&p->verbs[i]) + verb_bytes_back(&p->verbs[i]);
    }
}
