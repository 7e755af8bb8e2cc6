/* Meetings: all workers' threads stand still between two rounds while worker 0's destroys the node,
 * and, unless the server stops, makes a new one. A process that was dropped from the view must come
 * back as another one (docs/protocols/view.md, rule 8); sockets, clients and connections with the
 * peers stay what they are. */
#include "server/internal.h"

#include "base/assert.h"
#include "base/clock.h"

static void renew(struct server *s)
{
    uint64_t began_us = clock_boot_us();
    log_write(s->log, LOG_WARN,
              "this node was dropped from the view: it forgets all its keys and joins anew");
    locals_detach(s, false);
    node_destroy(s->node);
    s->node = NULL;
    /* The operator's word was for the process that was started, not for its successors. */
    s->node_config.view.bootstrap = false;
    server_setup_incarnation(s);
    int err = node_create(&s->node_config, &s->env, clock_boot_us(), &s->node);
    if (err != HK_OK) {
        log_write(s->log, LOG_ERROR,
                  "cannot make the node anew: %s. Stopping; start it again when there is memory",
                  hk_err_text(err));
        s->node = NULL;
        atomic_store_explicit(&s->broken, true, memory_order_relaxed);
        atomic_store_explicit(&s->phase, (uint32_t)SERVER_STOPPING, memory_order_release);
        atomic_store_explicit(&s->meeting, false, memory_order_release);
        return;
    }
    locals_attach(s);
    s->told_any = false;
    s->asked_epoch = 0;
    atomic_fetch_add_explicit(&s->wipes, 1, memory_order_relaxed);
    log_write(s->log, LOG_INFO, "wiped in %llu ms; generation and epoch are kept",
              (unsigned long long)((clock_boot_us() - began_us) / 1000u));
    /* release: pairs with the acquire in serve_round; the barrier orders the rest. */
    atomic_store_explicit(&s->meeting, false, memory_order_release);
}

void server_meet(struct server_worker *w)
{
    struct server *s = w->server;
    (void)pthread_barrier_wait(&s->meet);
    if (w->index == 0) {
        renew(s);
    }
    (void)pthread_barrier_wait(&s->meet);
    if (s->node == NULL) {
        w->node = NULL;
        return;
    }
    w->node = node_worker(s->node, w->index);
    w->status_us = 0;
    w->epoch_seen = 0;
    clients_reopen(w);
    locals_reopen(w);
}

void server_end_node(struct server_worker *w)
{
    struct server *s = w->server;
    (void)pthread_barrier_wait(&s->meet);
    if (w->index == 0) {
        locals_detach(s, true);
        if (s->node != NULL) {
            node_destroy(s->node);
            s->node = NULL;
        }
    }
    (void)pthread_barrier_wait(&s->meet);
    w->node = NULL;
    clients_refuse(w);
    locals_refuse(w);
}
