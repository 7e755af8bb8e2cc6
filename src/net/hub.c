/* Ports of one process that meet, and their connections: a channel for each pair of workers of
 * different nodes, with an end (shm.h) at either side.
 *
 * Waking. An end whose flush or receive says that the other side sleeps rings that side's bell,
 * which knows the loop for as long as its port exists. Locks: a hub's before a port's. */
#include "net/hub.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "net/exposure.h"
#include "net/port_internal.h"
#include "wire/frame.h"

struct hub {
    pthread_mutex_t mutex;
    struct list_link ports; /* under mutex */
    uint32_t ring_bytes;
};

struct hub_channel {
    _Atomic uint32_t references;
    uint32_t ring_bytes;
    struct hub_bell *bells[2];
    struct shm_area *area;
    /* What the sides expose, a reference each: release by that side's port; pairs with acquire by
     * the other's. NULL: nothing. */
    struct exposure *_Atomic exposures[2];
};

int hub_create(uint32_t ring_bytes, struct hub **hub_out)
{
    HK_ASSERT(ring_bytes >= SHM_RING_MIN && ring_bytes <= SHM_RING_MAX);
    HK_ASSERT((ring_bytes & (ring_bytes - 1)) == 0);
    struct hub *hub = calloc(1, sizeof(*hub));
    if (hub == NULL || pthread_mutex_init(&hub->mutex, NULL) != 0) {
        free(hub);
        return HK_ERR_NOMEM;
    }
    list_init(&hub->ports);
    hub->ring_bytes = ring_bytes;
    *hub_out = hub;
    return HK_OK;
}

void hub_destroy(struct hub *hub)
{
    if (hub == NULL) {
        return;
    }
    HK_ASSERT(list_empty(&hub->ports));
    (void)pthread_mutex_destroy(&hub->mutex);
    free(hub);
}

/* ---- Bells ---- */

static struct hub_bell *bell_make(struct loop *loop)
{
    struct hub_bell *bell = calloc(1, sizeof(*bell));
    if (bell == NULL || pthread_mutex_init(&bell->mutex, NULL) != 0) {
        free(bell);
        return NULL;
    }
    atomic_init(&bell->references, 1);
    bell->loop = loop;
    return bell;
}

static bool last_reference(_Atomic uint32_t *references)
{
    /* What others did before they let go comes before what the last one does. */
    return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

static void bell_let_go(struct hub_bell *bell)
{
    if (last_reference(&bell->references)) {
        (void)pthread_mutex_destroy(&bell->mutex);
        free(bell);
    }
}

static void bell_ring(struct hub_bell *bell)
{
    (void)pthread_mutex_lock(&bell->mutex);
    if (bell->loop != NULL) {
        loop_wake(bell->loop);
    }
    (void)pthread_mutex_unlock(&bell->mutex);
}

/* ---- Channels ---- */

static struct hub_channel *channel_make(uint32_t ring_bytes, struct hub_bell *a, struct hub_bell *b)
{
    struct hub_channel *channel = calloc(1, sizeof(*channel));
    if (channel == NULL) {
        return NULL;
    }
    channel->area = aligned_alloc(SHM_LINE, shm_area_bytes(ring_bytes));
    if (channel->area == NULL) {
        free(channel);
        return NULL;
    }
    shm_area_init(channel->area);
    atomic_init(&channel->references, 2);
    channel->ring_bytes = ring_bytes;
    channel->bells[0] = a;
    channel->bells[1] = b;
    /* relaxed: whoever passes the bell on holds a reference. */
    atomic_fetch_add_explicit(&a->references, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&b->references, 1, memory_order_relaxed);
    return channel;
}

static void channel_let_go(struct hub_channel *channel)
{
    if (last_reference(&channel->references)) {
        bell_let_go(channel->bells[0]);
        bell_let_go(channel->bells[1]);
        exposure_let_go(atomic_load_explicit(&channel->exposures[0], memory_order_acquire));
        exposure_let_go(atomic_load_explicit(&channel->exposures[1], memory_order_acquire));
        free(channel->area);
        free(channel);
    }
}

static int end_init(struct shm *shm, const struct hub_channel *channel, uint32_t side,
                    uint64_t queue_max)
{
    struct shm_config config = {.ring_bytes = channel->ring_bytes, .queue_max = queue_max};
    return shm_init(shm, &config, channel->area, side);
}

void hub_refuse(struct hub_channel *channel, uint32_t side)
{
    struct shm shm;
    int err = end_init(&shm, channel, side, FRAME_HEADER + FRAME_BODY_MAX);
    HK_ASSERT(err == HK_OK); /* nothing is allocated for memory of one's own */
    if (shm_end(&shm)) {
        bell_ring(channel->bells[1 - side]);
    }
    shm_deinit(&shm);
    channel_let_go(channel);
}

/* ---- Coming and going ---- */

static struct offer *offer_make(struct hub_channel *channel, uint32_t side, const struct port *self,
                                const struct port *other)
{
    struct offer *offer = calloc(1, sizeof(*offer));
    if (offer == NULL) {
        return NULL;
    }
    *offer = (struct offer){
        .fd = -1,
        .channel = channel,
        .side = side,
        .peer =
            {
                .node = other->config.self,
                .workers = other->config.workers,
                .worker = other->config.worker,
                .local_worker = self->config.worker,
                .version = FRAME_VERSION,
            },
    };
    return offer;
}

/* Offers of one channel to both ports. */
static int pair_make(struct hub *hub, const struct port *a, const struct port *b,
                     struct offer *pair_out[2])
{
    struct hub_channel *channel = channel_make(hub->ring_bytes, a->bell, b->bell);
    if (channel == NULL) {
        return HK_ERR_NOMEM;
    }
    pair_out[0] = offer_make(channel, 0, a, b);
    pair_out[1] = offer_make(channel, 1, b, a);
    if (pair_out[0] != NULL && pair_out[1] != NULL) {
        return HK_OK;
    }
    free(pair_out[0]);
    free(pair_out[1]);
    channel_let_go(channel);
    channel_let_go(channel);
    return HK_ERR_NOMEM;
}

/* Under the hub's mutex, under which ports also leave. */
static int meet_all(struct hub *hub, struct port *port)
{
    list_each(link, &hub->ports)
    {
        struct port *other = list_entry(link, struct port, in_hub);
        struct offer *pair[2];
        if (other->config.self == port->config.self) {
            HK_ASSERT(other->config.worker != port->config.worker);
            continue;
        }
        if (pair_make(hub, port, other, pair) != HK_OK) {
            return HK_ERR_NOMEM; /* those that have met us already are told when we leave */
        }
        port_add_offer(other, pair[1]);
        port_add_offer(port, pair[0]);
    }
    list_push_back(&hub->ports, &port->in_hub);
    return HK_OK;
}

int hub_enter(struct port *port)
{
    struct hub *hub = port->config.hub;
    HK_ASSERT(port->config.workers <= HANDSHAKE_WORKERS_MAX);
    HK_ASSERT(port->config.worker < port->config.workers);
    port->bell = bell_make(port->loop);
    if (port->bell == NULL) {
        return HK_ERR_NOMEM;
    }
    (void)pthread_mutex_lock(&hub->mutex);
    int err = meet_all(hub, port);
    (void)pthread_mutex_unlock(&hub->mutex);
    return err;
}

void hub_leave(struct port *port)
{
    struct hub *hub = port->config.hub;
    if (hub == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&hub->mutex);
    list_remove(&port->in_hub);
    (void)pthread_mutex_unlock(&hub->mutex);
}

void hub_forget(struct port *port)
{
    if (port->bell == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&port->bell->mutex);
    port->bell->loop = NULL;
    (void)pthread_mutex_unlock(&port->bell->mutex);
    bell_let_go(port->bell);
    port->bell = NULL;
}

int hub_open(struct conn *conn, const struct offer *offer)
{
    int err = end_init(&conn->shm, offer->channel, offer->side, conn->port->config.queue_max);
    if (err == HK_OK) {
        conn->transport = &transport_rings;
        conn->channel = offer->channel;
        conn->side = offer->side;
    }
    return err;
}

void hub_ring(const struct conn *conn)
{
    bell_ring(conn->channel->bells[1 - conn->side]);
}

void hub_let_go(struct conn *conn)
{
    channel_let_go(conn->channel);
}

void hub_expose(const struct conn *conn, struct exposure *exposure)
{
    exposure_hold(exposure);
    atomic_store_explicit(&conn->channel->exposures[conn->side], exposure, memory_order_release);
}

struct exposure *hub_exposed(const struct conn *conn)
{
    struct exposure *exposure =
        atomic_load_explicit(&conn->channel->exposures[1 - conn->side], memory_order_acquire);
    if (exposure != NULL) {
        exposure_hold(exposure);
    }
    return exposure;
}
