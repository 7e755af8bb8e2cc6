/* Worker 0's duties around its polls: it tells the log what becomes of the node, carries out what
 * the operator orders, and takes the node out of the cluster when the process shall stop.
 * docs/SERVER.md has the states. */
#include "server/internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"

#define LOST_LOOK_US 500000u      /* how often it is looked whether slots are lost */
#define HAND_LOOK_US 50000u       /* how often a node that leaves looks at its slots ... */
#define HAND_TOLD_US 1000000u     /* ... and tells the log */
#define REFUSING_TOLD_US 1500000u /* how long a node looks for its cluster before it complains */

/* ---- Words for the log ---- */

static void text_of(nodeset nodes, char *text, size_t size)
{
    size_t n = 0;
    text[0] = '\0';
    for (; nodes != 0 && n + 8 < size; nodes &= nodes - 1) {
        n += (size_t)snprintf(text + n, size - n, "%s%u", n > 0 ? ", " : "", nodeset_first(nodes));
    }
}

static uint64_t keys_of(const struct server *s)
{
    uint64_t keys = 0;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        struct store_stats stats;
        if (node_space_stats(s->node, i, &stats)) {
            keys += stats.keys - stats.tombstones;
        }
    }
    return keys;
}

static void tell_view(struct server_worker *w)
{
    struct server *s = w->server;
    const struct view *view = &w->status.view;
    char live[200];
    char gone[200];
    if (view->epoch == s->told_epoch || view->epoch == 0) {
        return;
    }
    text_of(view->live, live, sizeof live);
    text_of(s->told_live & ~view->live, gone, sizeof gone);
    log_write(s->log, LOG_INFO, "epoch %" PRIu32 ": members are %s%s%s%s", view->epoch, live,
              gone[0] != '\0' ? "; gone: " : "", gone,
              nodeset_majority(view->live & ~nodeset_of(s->config.id), view->configured) ||
                      nodeset_count(view->configured) == 1
                  ? ""
                  : "; one more loss and the rest can serve no more");
    s->told_epoch = view->epoch;
    s->told_live = view->live;
}

static void tell_serving(struct server_worker *w)
{
    struct server *s = w->server;
    if (s->joining_us != 0 && s->told_any && s->told_status == VIEW_STATUS_JOINING) {
        uint64_t took_ms = (w->now_us - s->joining_us) / 1000u;
        log_write(s->log, LOG_INFO,
                  "serving in epoch %" PRIu32 ", after %" PRIu64 " keys were copied in %" PRIu64
                  ".%03" PRIu64 " s",
                  w->status.view.epoch, keys_of(s), took_ms / 1000u, took_ms % 1000u);
    } else {
        log_write(s->log, LOG_INFO, "serving in epoch %" PRIu32, w->status.view.epoch);
    }
    s->joining_us = 0;
}

static void tell_refusing(const struct server *s)
{
    if (s->kept_epoch == 0) {
        log_write(s->log, LOG_ERROR,
                  "this node is new, but another configured node has been part of a cluster that "
                  "nobody is a member of any more. Start all configured nodes, one of them with "
                  "--bootstrap: the cluster begins again, empty");
        return;
    }
    if (nodeset_count(s->config.nodes) == 1) {
        log_write(s->log, LOG_ERROR,
                  "this node was stopped, and as the only one of its cluster it took all data with "
                  "it. It serves nothing until that is understood: start it with --bootstrap, and "
                  "the cluster begins again, empty");
        return;
    }
    log_write(s->log, LOG_ERROR,
              "this node has been part of a cluster (its state file says: generation %" PRIx64
              ", epoch %" PRIu32 ") and finds nobody who still is. It serves nothing, since the "
              "others may hold newer data. Start the other nodes; if all of them have lost their "
              "memory, start one node with --bootstrap: the cluster begins again, empty",
              s->kept_generation, s->kept_epoch);
}

static void tell_lost(struct server_worker *w)
{
    char live[200];
    text_of(w->status.view.live, live, sizeof live);
    log_write(w->server->log, LOG_ERROR,
              "of the members (%s) too few can be heard: nothing is served. Bring the others back; "
              "if they are lost for good, `horkos recover` forms a new cluster of the rest and "
              "says what that may lose",
              live);
}

static void tell_status(struct server_worker *w)
{
    struct server *s = w->server;
    enum view_status status = w->status.status;
    if (status != VIEW_STATUS_REFUSING) {
        s->refusing_us = 0;
    } else if (s->refusing_us == 0) {
        s->refusing_us = w->now_us;
    }
    bool early = status == VIEW_STATUS_REFUSING && w->now_us - s->refusing_us < REFUSING_TOLD_US;
    if ((s->told_any && status == s->told_status) || early) {
        return; /* a restarted node refuses until it has heard of the others */
    }
    switch (status) {
    case VIEW_STATUS_FORMING:
        log_write(s->log, LOG_INFO, "forming a cluster: waits for all %u configured nodes",
                  nodeset_count(s->config.nodes));
        break;
    case VIEW_STATUS_REFUSING:
        tell_refusing(s);
        break;
    case VIEW_STATUS_JOINING:
        s->joining_us = w->now_us;
        log_write(s->log, LOG_INFO, "joining: waits to be let in, then copies all keys");
        break;
    case VIEW_STATUS_SERVING:
        tell_serving(w);
        break;
    case VIEW_STATUS_NO_LEASE:
        if (s->told_any && s->told_status == VIEW_STATUS_SERVING) {
            log_write(s->log, LOG_WARN,
                      "lost the lease: too few members answer in time; operations wait, then are "
                      "refused");
        }
        break; /* before the first lease it is only a matter of milliseconds */
    case VIEW_STATUS_LEAVING:
        log_write(s->log, LOG_INFO, "leaving: gave the lease up, waits to be dropped");
        break;
    case VIEW_STATUS_LOST:
        tell_lost(w);
        break;
    }
    s->told_status = status;
    s->told_any = true;
}

/* Slots of spaces whose keys have homes, of which a home has died. */
static void tell_lost_slots(struct server_worker *w)
{
    struct server *s = w->server;
    if (w->now_us - s->lost_look_us < LOST_LOOK_US || !server_any_mapped(s)) {
        return;
    }
    s->lost_look_us = w->now_us;
    uint32_t lost = server_slots_lost(s);
    if (lost > s->told_lost) {
        log_write(
            s->log, LOG_WARN,
            "%" PRIu32 " slots are lost with the node that was their home: operations on their "
            "keys are answered -LOSTSLOT. `horkos slots` lists them; with --empty-lost it gives "
            "up what they held, and their keys can be written again",
            lost);
    } else if (lost < s->told_lost && lost == 0) {
        log_write(s->log, LOG_INFO, "no slot is lost any more");
    }
    s->told_lost = lost;
}

/* Objects of spaces whose objects have owners, all of whose replicas are gone. Each is counted by
 * one node, so others may know of more. */
static void tell_lost_objects(struct server_worker *w)
{
    struct server *s = w->server;
    struct node_stats stats;
    if (w->now_us - s->lost_objects_look_us < LOST_LOOK_US || !server_any_owned(s)) {
        return;
    }
    s->lost_objects_look_us = w->now_us;
    node_stats(s->node, &stats);
    if (stats.own_lost > s->told_lost_objects) {
        log_write(s->log, LOG_WARN,
                  "this node knows of %" PRIu64 " keys that are lost with all nodes that had them: "
                  "operations on them are answered -LOST. HORKOS EMPTY-LOST gives them up, and "
                  "they can be written again",
                  stats.own_lost);
    } else if (stats.own_lost < s->told_lost_objects && stats.own_lost == 0) {
        log_write(s->log, LOG_INFO, "this node knows of no lost key any more");
    }
    s->told_lost_objects = stats.own_lost;
}

/* ---- Orders ---- */

void server_stop(struct server *s, bool now)
{
    if (now) {
        atomic_store_explicit(&s->stop_now, true, memory_order_release);
    }
    atomic_store_explicit(&s->stop_wanted, true, memory_order_release);
    if (s->workers != NULL && s->workers[0].loop != NULL) {
        loop_wake(s->workers[0].loop);
    }
}

static void recover(struct server_worker *w)
{
    struct server *s = w->server;
    if (atomic_load_explicit(&s->recover, memory_order_relaxed) == 0) {
        return;
    }
    nodeset survivors = atomic_exchange_explicit(&s->recover, 0, memory_order_acquire);
    char text[200];
    text_of(survivors, text, sizeof text);
    log_write(s->log, LOG_WARN,
              "recover: by the operator's word only nodes %s are left; they form a new generation, "
              "and what only the others knew is lost",
              text);
    worker_recover(w->node, survivors);
}

void server_empty_lost(struct server *s, uint32_t space)
{
    atomic_fetch_or_explicit(&s->empty_lost, 1u << space, memory_order_release);
    loop_wake(s->workers[0].loop);
}

static void empty_lost(struct server_worker *w)
{
    struct server *s = w->server;
    if (atomic_load_explicit(&s->empty_lost, memory_order_relaxed) == 0) {
        return;
    }
    uint32_t spaces = atomic_exchange_explicit(&s->empty_lost, 0, memory_order_acquire);
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if ((spaces >> i & 1) != 0) {
            log_write(s->log, LOG_WARN, "space %" PRIu32 ": by the operator's word %s forgotten", i,
                      server_space_owned(s, i) ? "its lost keys are"
                                               : "what its lost slots held is");
            worker_empty_lost(w->node, i);
        }
    }
}

/* A recovered cluster consists of the survivors that were named. Whom the configuration names
 * beyond them is asked for, so that it is let in when it calls. Sets only grow this way: who is
 * missing in one node's file may just not have been told yet. */
static void ask_for_missing(struct server_worker *w)
{
    struct server *s = w->server;
    const struct view *view = &w->status.view;
    nodeset missing = s->config.nodes & ~view->configured;
    if (missing == 0 || w->status.status != VIEW_STATUS_SERVING || view->configured_old != 0 ||
        view->epoch == s->asked_epoch) {
        return;
    }
    char text[200];
    text_of(missing, text, sizeof text);
    if (missing != s->asked_missing) {
        log_write(s->log, LOG_INFO,
                  "nodes %s stand in [peers] and are not configured in the cluster: it takes them "
                  "back when they call",
                  text);
    }
    s->asked_epoch = view->epoch;
    s->asked_missing = missing;
    worker_configure(w->node, view->configured | missing);
}

/* ---- Stopping ---- */

bool server_may_leave(const struct view *view, uint8_t self)
{
    nodeset rest = view->live & ~nodeset_of(self);
    return !nodeset_has(view->live, self) || rest == 0 ||
           (view_majority(view, rest) && (view->operational & rest) != 0);
}

/* All workers have seen that new updates wait, and none has an operation under way. */
static bool drained(const struct server *s)
{
    for (uint32_t i = 0; i < s->workers_n; i++) {
        /* acquire: pairs with the release in serve_round. */
        if (atomic_load_explicit(&s->workers[i].in_flight_told, memory_order_acquire) != 1) {
            return false;
        }
    }
    return true;
}

static void next_phase(struct server *s, enum server_phase phase)
{
    atomic_store_explicit(&s->phase, (uint32_t)phase, memory_order_release);
    server_wake_all(s);
}

/* Whether nobody can drop this node: looked at again as long as it waits for that, since others may
 * go meanwhile. */
static bool leave_is_futile(struct server_worker *w)
{
    struct server *s = w->server;
    const struct node_status *status = server_status(w);
    if (server_may_leave(&status->view, s->config.id) && status->status != VIEW_STATUS_LOST) {
        return false;
    }
    log_write(s->log, LOG_WARN,
              "the nodes that remain are no majority of those configured: they cannot drop this "
              "one, and stop serving when its lease has run out. They serve again once enough "
              "nodes are back; this stop counts as a crash, do not stop another one");
    return true;
}

static void begin_to_leave(struct server_worker *w)
{
    struct server *s = w->server;
    const struct view *view = &server_status(w)->view;
    s->leave_alone = nodeset_within(view->live, nodeset_of(s->config.id));
    s->leave_until_us = w->now_us + w->settings.leave_ms * 1000ull;
    worker_leave(w->node);
    next_phase(s, SERVER_LEAVING);
}

static void leave(struct server_worker *w, enum server_phase phase, uint32_t flags)
{
    struct server *s = w->server;
    bool late = w->now_us >= s->leave_until_us;
    if (phase == SERVER_DRAINING) {
        if (s->leave_until_us == UINT64_MAX) {
            s->leave_until_us = w->now_us + w->settings.leave_ms * 1000ull;
            s->drain_until_us = w->now_us + w->settings.leave_ms * 1000ull / 2u;
        }
        /* A member that is missing may be back in a moment: to leave now would end the service. */
        const struct node_status *status = server_status(w);
        bool may =
            status->status != VIEW_STATUS_SERVING || server_may_leave(&status->view, s->config.id);
        if ((may && (drained(s) || w->now_us >= s->drain_until_us)) || late) {
            begin_to_leave(w);
        }
        return;
    }
    if ((flags & POLL_LEFT) != 0) {
        log_write(s->log, LOG_INFO, "left%s",
                  s->leave_alone ? ": this was the only member, and its data is gone"
                                 : " the cluster, which serves on without this node");
    } else if (late) {
        log_write(s->log, LOG_WARN,
                  "was not dropped within %u ms (leave_ms); stops anyway, which counts as a crash",
                  w->settings.leave_ms);
    } else if (!leave_is_futile(w)) {
        return;
    }
    s->leave_until_us = UINT64_MAX;
    next_phase(s, SERVER_STOPPING);
}

static void tell_handed_over(struct server *s, uint32_t slots, const char *why_not)
{
    if (slots > 0 && why_not != NULL) {
        log_write(s->log, LOG_WARN,
                  "leaving: %" PRIu32 " slots were not handed over: %s; what they hold is lost",
                  slots, why_not);
    } else if (server_any_mapped(s)) {
        log_write(s->log, LOG_INFO, "leaving: all slots are handed over");
    }
    for (uint32_t i = 0; i < SPACES_MAX && why_not != NULL; i++) {
        struct lotus_table_stats table;
        if (node_table_stats(s->node, i, &table) && table.cells > 0) {
            log_write(s->log, LOG_WARN,
                      "leaving: %" PRIu64 " values of space %" PRIu32
                      " that are kept for other nodes were not handed over: %s; they are lost",
                      table.cells, i, why_not);
        }
    }
    if (server_any_owned(s) && why_not != NULL) {
        log_write(
            s->log, LOG_WARN,
            "leaving: the others may have fewer replicas of objects than they shall, or none: "
            "%s",
            why_not);
    } else if (server_any_owned(s)) {
        log_write(s->log, LOG_INFO, "leaving: the others have all objects");
    }
}

/* Where objects have owners nobody takes over from a node that cannot be dropped: the others would
 * be no majority. A member that is missing may be back in a moment, but there is an end to that. */
static bool is_futile(struct server_worker *w)
{
    struct server *s = w->server;
    const struct view *view = &server_status(w)->view;
    if (server_any_mapped(s) || server_may_leave(view, s->config.id)) {
        s->hand_able_us = w->now_us;
        return false;
    }
    uint64_t wait_us = nodeset_count(view->configured) < 3 ? 0 : w->settings.leave_ms * 1000ull;
    return w->now_us - s->hand_able_us >= wait_us && s->hand_look_us != UINT64_MAX;
}

/* Told to stop: serves on while the keys whose home it is go to other nodes, and others get
 * replicas of its objects. Who is alone, or serves nothing, can give nothing away. */
static void hand_over(struct server_worker *w)
{
    struct server *s = w->server;
    const struct node_status *status = server_status(w);
    bool others = (status->view.operational & ~nodeset_of(s->config.id)) != 0 &&
                  !node_nobody_stays(s->node) && !is_futile(w);
    if (s->hand_look_us == UINT64_MAX) {
        s->hand_until_us = w->now_us + w->settings.handover_ms * 1000ull;
        s->hand_able_us = w->now_us;
        s->hand_look_us = w->now_us;
        if (others) {
            worker_hand_over(w->node);
        }
    }
    if (w->now_us < s->hand_look_us) {
        return;
    }
    s->hand_look_us = w->now_us + HAND_LOOK_US;
    uint32_t left = server_slots_here(s);
    bool late = w->now_us >= s->hand_until_us;
    if (server_any_mapped(s) && left != s->hand_told &&
        w->now_us - s->hand_told_us >= HAND_TOLD_US) {
        log_write(s->log, LOG_INFO, "leaving: %" PRIu32 " slots to hand over", left);
        s->hand_told = left;
        s->hand_told_us = w->now_us;
    }
    if (!node_handed_over(s->node) && !late && others && status->status == VIEW_STATUS_SERVING) {
        return;
    }
    bool serves = status->status == VIEW_STATUS_SERVING;
    tell_handed_over(s, left,
                     node_handed_over(s->node) ? (left > 0 ? "no other node may have them" : NULL)
                     : late                    ? "handover_ms is over"
                     : !serves                 ? "this node does not serve"
                                               : "there is nobody to take them");
    s->hand_look_us = UINT64_MAX;
    next_phase(s, SERVER_DRAINING);
}

static void begin_to_stop(struct server *s)
{
    bool ordered = atomic_load_explicit(&s->stop_signals, memory_order_relaxed) == 0;
    log_write(s->log, LOG_INFO, "stopping%s: takes no more clients%s",
              ordered && !s->options.locals ? " by a client's order" : "",
              atomic_load(&s->stop_now) ? ", does not leave the cluster first" : "");
    gate_refuse_clients(s->gate);
    bool hands = server_any_mapped(s) || server_any_owned(s);
    next_phase(s, hands ? SERVER_HANDING : SERVER_DRAINING);
}

static void stop(struct server_worker *w, uint32_t flags)
{
    struct server *s = w->server;
    enum server_phase phase =
        (enum server_phase)atomic_load_explicit(&s->phase, memory_order_acquire);
    /* acquire: pairs with the release in server_stop. */
    if (phase == SERVER_RUNNING && atomic_load_explicit(&s->stop_wanted, memory_order_acquire)) {
        begin_to_stop(s);
        return;
    }
    if (phase == SERVER_RUNNING || phase == SERVER_STOPPING) {
        return;
    }
    if (atomic_load_explicit(&s->stop_now, memory_order_acquire)) {
        next_phase(s, SERVER_STOPPING);
        return;
    }
    if (phase == SERVER_HANDING) {
        hand_over(w);
    } else {
        leave(w, phase, flags);
    }
}

/* ---- The round ---- */

static void locals_tell_status(struct server_worker *w)
{
    struct server *s = w->server;
    if (s->locals_status != w->status.status) {
        s->locals_status = w->status.status;
        locals_tell(s);
    }
}

static void sample_speed(struct server_worker *w)
{
    struct server *s = w->server;
    uint64_t by = w->now_us - s->speed_us;
    if (by < SPEED_SAMPLE_US) {
        return;
    }
    uint64_t commands = server_commands(s);
    uint64_t speed = (commands - s->speed_commands) * 1000000u / by;
    atomic_store_explicit(&s->speed, speed, memory_order_relaxed);
    s->speed_us = w->now_us;
    s->speed_commands = commands;
}

void control_round(struct server_worker *w, uint32_t flags)
{
    struct server *s = w->server;
    if (w->status_fresh) {
        tell_view(w);
        tell_status(w);
        ask_for_missing(w);
        locals_tell_status(w);
        tell_lost_slots(w);
        tell_lost_objects(w);
    }
    locals_idle(w);
    sample_speed(w);
    recover(w);
    empty_lost(w);
    stop(w, flags);
    if ((flags & POLL_WIPE) != 0 &&
        atomic_load_explicit(&s->phase, memory_order_relaxed) != SERVER_STOPPING) {
        /* release: pairs with the acquire in serve_round. */
        atomic_store_explicit(&s->meeting, true, memory_order_release);
        server_wake_all(s);
    }
}
