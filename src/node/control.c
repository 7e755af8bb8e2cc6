/* The control worker (0) runs the view protocol: it feeds the machine with time, messages and what
 * the workers report, publishes views and the lease, and tells the machine when every worker has
 * adopted a view. All workers adopt here, between two of their steps. */
#include "node/lotus.h"
#include "node/own.h"

#include <string.h>

#include "base/assert.h"
#include "view/message.h"

/* ---- Publishing ---- */

static void publish_lock(struct node *n)
{
    /* acquire: pairs with the release in publish_unlock. Held for one copy of a view. */
    while (atomic_exchange_explicit(&n->publish_lock, true, memory_order_acquire)) {
    }
}

static void publish_unlock(struct node *n)
{
    atomic_store_explicit(&n->publish_lock, false, memory_order_release);
}

void control_published(struct node *n, struct view *view_out)
{
    publish_lock(n);
    *view_out = n->published;
    publish_unlock(n);
}

static void publish_view(struct worker *w)
{
    struct node *n = w->node;
    const struct view *view = view_current(&n->machine);
    publish_lock(n);
    n->published = *view;
    publish_unlock(n);
    atomic_fetch_and_explicit(&n->full, view->live, memory_order_relaxed);
    /* What was said of a node may not hit its successor. */
    atomic_store_explicit(&n->suspects, 0, memory_order_relaxed);
    /* release: pairs with the acquire in control_adopt. */
    atomic_store_explicit(&n->published_epoch, view->epoch, memory_order_release);
    for (uint32_t i = 0; i < n->config.workers; i++) {
        worker_poke(&n->workers[i]);
    }
}

static void publish_lease(struct worker *w)
{
    struct node *n = w->node;
    const struct view *view = view_current(&n->machine);
    /* release: whoever sees a lease also sees the view that it belongs to. */
    atomic_store_explicit(&n->lease_until_us, view_lease_until(&n->machine), memory_order_release);
    atomic_store_explicit(&n->confirms, view_confirms(&n->machine, view->epoch),
                          memory_order_release);
    atomic_store_explicit(&n->status, (uint32_t)view_status(&n->machine, w->now_us),
                          memory_order_release);
    w->lease_until_us = view_lease_until(&n->machine);
}

void control_event(struct worker *w, struct view_event *event)
{
    struct node *n = w->node;
    bool install = false;
    event->now_us = w->now_us;
    n->effects->n = 0;
    view_step(&n->machine, event, n->effects);
    if (view_lease_until(&n->machine) <
            atomic_load_explicit(&n->lease_until_us, memory_order_relaxed) ||
        !view_confirms(&n->machine, view_current(&n->machine)->epoch)) {
        /* A message of this step may let others decide a view without this node: no worker may
         * start a poll under the old lease, or confirm a read, once it has left. */
        publish_lease(w);
    }
    for (uint32_t i = 0; i < n->effects->n; i++) {
        const struct view_effect *e = &n->effects->e[i];
        switch (e->kind) {
        case VIEW_EFFECT_SEND:
            output_view(w, e->to, &e->msg);
            break;
        case VIEW_EFFECT_INSTALL:
            install = true;
            break;
        case VIEW_EFFECT_WIPE:
            n->wipe = true;
            break;
        case VIEW_EFFECT_LEFT:
            n->left = true;
            break;
        case VIEW_EFFECT_PERSIST: {
            const struct view *view = view_current(&n->machine);
            n->env.persist(n->env.context, view->generation, view->epoch);
            break;
        }
        }
    }
    if (install) {
        publish_view(w);
    }
    publish_lease(w);
#ifdef HK_DEBUG
    view_check(&n->machine);
#endif
}

void control_frame(struct worker *w, const struct frame *frame)
{
    struct view_msg msg;
    if (w->index != 0 || view_msg_decode(frame->body, &msg) != HK_OK) {
        w->stats.node_drops[NODE_DROP_MESSAGE]++;
        return;
    }
    struct view_event event = {
        .kind = VIEW_EVENT_MESSAGE,
        .node = frame->source,
        .nonce = frame->nonce,
        .generation = frame->generation,
        .msg = &msg,
    };
    control_event(w, &event);
    if (view_has(view_current(&w->node->machine), frame->source, frame->nonce)) {
        input_note_full(w, frame);
    }
}

/* ---- Health and reports ---- */

/* Heartbeats leave only while every worker makes progress: each is woken between two looks, and a
 * worker that has not polled since is wedged. */
static bool look_at_workers(struct worker *w)
{
    struct node *n = w->node;
    bool healthy = true;
    if (n->config.workers == 1) {
        return true;
    }
    if (w->now_us - n->pinged_us < n->config.view.heartbeat_us / 2) {
        return false; /* too early to tell: not since the last look */
    }
    n->pinged_us = w->now_us;
    for (uint32_t i = 1; i < n->config.workers; i++) {
        struct worker *other = &n->workers[i];
        uint64_t progress = atomic_load_explicit(&other->progress, memory_order_relaxed);
        if (progress == n->progress_seen[i]) {
            healthy = false;
        }
        n->progress_seen[i] = progress;
        atomic_store_explicit(&other->ping, true, memory_order_relaxed);
        worker_poke(other);
    }
    return healthy;
}

/* Past memory_max this node says so in every frame, and nobody takes a write that needs memory:
 * what one node applies, all do. Freed again a little below, or the answer would flicker. */
static void look_at_memory(struct worker *w)
{
    struct node *n = w->node;
    bool full = false;
    bool was = worker_full(w);
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        uint64_t most = n->config.spaces[i].store.memory_max;
        if (n->spaces[i].store != NULL && most != 0) {
            struct store_stats stats;
            struct store_stats entries = {.bytes_used = 0};
            store_stats(n->spaces[i].store, &stats);
            if (n->spaces[i].directory != NULL) {
                store_stats(n->spaces[i].directory, &entries);
            }
            full |= stats.bytes_used + entries.bytes_used >= (was ? most - most / 64 : most);
        }
    }
    if (full != was) {
        atomic_store_explicit(&n->out_of_memory, full, memory_order_relaxed);
    }
}

static void report(struct worker *w, _Atomic uint64_t *set, enum view_event_kind kind)
{
    if (atomic_load_explicit(set, memory_order_relaxed) == 0) {
        return;
    }
    nodeset nodes = atomic_exchange_explicit(set, 0, memory_order_relaxed);
    for (; nodes != 0; nodes &= nodes - 1) {
        struct view_event event = {.kind = kind, .node = nodeset_first(nodes)};
        control_event(w, &event);
    }
}

static bool all_adopted(const struct node *n, uint32_t epoch)
{
    const struct worker *control = &n->workers[0];
    if (view_has(&control->view, n->config.self, n->config.view.nonce) &&
        !ordered_all_ready(n, epoch)) {
        return false;
    }
    for (uint32_t i = 0; i < n->config.workers; i++) {
        /* acquire: pairs with the release in control_adopt; whatever that worker did in its old
         * epoch has happened. */
        if (atomic_load_explicit(&n->workers[i].adopted, memory_order_acquire) != epoch) {
            return false;
        }
    }
    return true;
}

bool control_wanted(const struct worker *w)
{
    struct node *n = w->node;
    uint32_t epoch = view_current(&n->machine)->epoch;
    return atomic_load_explicit(&n->hints, memory_order_relaxed) != 0 ||
           atomic_load_explicit(&n->suspects, memory_order_relaxed) != 0 ||
           (epoch != 0 && epoch != n->adopted_told && all_adopted(n, epoch));
}

static void tell_adopted(struct worker *w)
{
    struct node *n = w->node;
    uint32_t epoch = view_current(&n->machine)->epoch;
    if (epoch == n->adopted_told || epoch == 0 || !all_adopted(n, epoch)) {
        return;
    }
    n->adopted_told = epoch;
    atomic_store_explicit(&n->adopted, epoch, memory_order_release);
    struct view_event event = {.kind = VIEW_EVENT_ADOPTED, .epoch = epoch};
    control_event(w, &event);
}

void control_poll(struct worker *w)
{
    struct node *n = w->node;
    report(w, &n->suspects, VIEW_EVENT_SUSPECT);
    report(w, &n->hints, VIEW_EVENT_HINT);
    tell_adopted(w);
    /* In every poll: between two ticks a fast writer fills all the headroom. */
    look_at_memory(w);
    if (w->now_us >= view_deadline(&n->machine)) {
        struct view_event event = {
            .kind = VIEW_EVENT_TICK, .healthy = look_at_workers(w), .keeps = own_keeps_removed(w)};
        control_event(w, &event);
    }
}

uint64_t control_deadline(const struct worker *w)
{
    return view_deadline(&w->node->machine);
}

void worker_leave(struct worker *control)
{
    HK_ASSERT(control->index == 0);
    struct view_event event = {.kind = VIEW_EVENT_LEAVE};
    control_event(control, &event);
}

void worker_configure(struct worker *control, nodeset configured)
{
    HK_ASSERT(control->index == 0);
    struct view_event event = {.kind = VIEW_EVENT_CONFIGURE, .configured = configured};
    control_event(control, &event);
}

void worker_recover(struct worker *control, nodeset survivors)
{
    HK_ASSERT(control->index == 0);
    struct view_event event = {.kind = VIEW_EVENT_RECOVER, .configured = survivors};
    control_event(control, &event);
}

/* ---- Adopting ---- */

/* Pending updates are sent again in the order of their issue, before anything new. A step may close
 * other flows, so the list is noted down first. */
static void step_flows(struct worker *w)
{
    uint32_t n = 0;
    list_each(link, &w->flows)
    {
        const struct flow *f = list_entry(link, struct flow, link);
        w->adopt[n++] = (struct nudge){.ref = f->slot.ref, .gen = f->slot.gen};
    }
    for (uint32_t i = 0; i < n; i++) {
        struct flow *f = flow_of_ref(w, w->adopt[i].ref);
        if (f != NULL && f->slot.gen == w->adopt[i].gen) {
            if (f->call != NULL) {
                f->call->gated = false; /* its acknowledgements are discarded */
            }
            step_flow(w, f, EV_VIEW, 0, NULL, NODE_NONE);
        }
    }
}

void control_adopt(struct worker *w)
{
    struct node *n = w->node;
    /* acquire: pairs with the release in publish_view. */
    uint32_t epoch = atomic_load_explicit(&n->published_epoch, memory_order_acquire);
    if (epoch == w->view.epoch) {
        return;
    }
    /* What was decided in the old epoch leaves in the old epoch. */
    output_flush(w);
    control_published(n, &w->view);
    lanes_adopt(w);
    w->operational = view_operational(&w->view, n->config.self, n->config.view.nonce);
    if (w->index == 0) {
        if (n->portable_generation != w->view.generation) {
            n->portable_generation = w->view.generation;
            hash_secret_init(&n->portable, w->view.generation);
        }
        transfer_restart(w);
        sweep_restart(w);
    }
    forward_adopt(w);
    if (n->owned != 0) {
        own_adopt(w);
        txn_adopt(w);
    }
    occ_adopt(w);
    lotus_home_adopt(w);
    lotus_adopt(w);
    step_flows(w);
    if (w->index == 0) {
        ordered_view(w);
    }
    if (w->early_bytes > 0) {
        input_early(w);
    }
    lanes_drain(w);
    /* release: pairs with the acquire in tell_adopted. */
    atomic_store_explicit(&w->adopted, w->view.epoch, memory_order_release);
    if (w->index != 0) {
        worker_poke(&n->workers[0]);
    }
}
