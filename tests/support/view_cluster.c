#include "support/view_cluster.h"

#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "view/steps.h"

void view_cluster_init(struct view_cluster *c, uint32_t nodes, uint64_t seed)
{
    memset(c, 0, offsetof(struct view_cluster, message));
    memset((char *)c + offsetof(struct view_cluster, heap), 0,
           sizeof *c - offsetof(struct view_cluster, heap));
    HK_ASSERT(nodes <= CLUSTER_NODES_MAX);
    c->nodes = nodes;
    random_init(&c->random, seed);
    for (uint32_t i = 0; i < CLUSTER_MESSAGES_MAX; i++) {
        c->message[i].used = false;
        c->free[c->free_n++] = CLUSTER_MESSAGES_MAX - 1 - i;
    }
    c->now = 1000000;
    c->nonce_next = 1;
    c->config = (struct view_config){
        .configured = ((nodeset)1 << nodes) - 1,
        .lease_us = 100000,
        .margin_us = 5000,
        .heartbeat_us = 15000,
        .suspect_us = 60000,
        .cids_per_member = 4,
        .seed = seed,
    };
    c->delay_us_max = 500;
    c->adopt_us_max = 1000;
    c->copy_us_max = 20000;
    c->return_us_max = 5000;
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        c->node[i].restart_at = UINT64_MAX;
    }
}

uint64_t view_cluster_clock(const struct view_cluster *c, uint8_t node)
{
    const struct cluster_node *n = &c->node[node];
    int64_t now = (int64_t)c->now;
    return (uint64_t)(now + n->clock_offset_us + now * n->clock_rate_ppm / 1000000);
}

/* The first true time at which the node's clock shows `local`. */
static uint64_t true_time(const struct view_cluster *c, uint8_t node, uint64_t local)
{
    uint64_t clock = view_cluster_clock(c, node);
    if (local == UINT64_MAX) {
        return UINT64_MAX;
    }
    /* A little early by rounding at most; then the process is simply ticked once more. */
    uint64_t rate = (uint64_t)(1000000 + c->node[node].clock_rate_ppm);
    return local <= clock ? c->now : c->now + (local - clock) * 1000000 / rate + 1;
}

bool view_cluster_leased(const struct view_cluster *c, uint32_t process)
{
    const struct cluster_process *p = &c->process[process];
    return p->alive && view_cluster_clock(c, p->node) < view_lease_until(&p->machine);
}

struct view_machine *view_cluster_machine(struct view_cluster *c, uint8_t node)
{
    return &c->process[c->node[node].current].machine;
}

const struct view *view_cluster_decided(const struct view_cluster *c, uint32_t epoch)
{
    for (uint32_t i = c->decided_n; i > 0; i--) {
        if (c->decided[i - 1].epoch == epoch) {
            return &c->decided[i - 1];
        }
    }
    return NULL;
}

static void fault(struct view_cluster *c, uint32_t process, const char *what)
{
    if (c->violation == NULL) {
        c->violation = what;
        c->violation_process = process;
    }
}

static bool is_member(const struct view *view, const struct view_machine *m)
{
    return view_has(view, m->config.self, m->config.nonce) &&
           view->members[m->config.self].admitted == m->view.members[m->config.self].admitted;
}

/* No process holds a lease while a later view without it is decided. */
static void check_lease(struct view_cluster *c, uint32_t process)
{
    const struct view_machine *m = &c->process[process].machine;
    if (!view_cluster_leased(c, process)) {
        return;
    }
    for (uint32_t i = c->decided_n; i > 0; i--) {
        const struct view *view = &c->decided[i - 1];
        if (view->generation == m->view.generation && view->epoch > m->view.epoch &&
            !is_member(view, m)) {
            fault(c, process, "a lease beside a later view without its holder");
        }
    }
}

/* Rule 7: once a view is decided, no majority confirms the one before it. */
static void check_confirms(struct view_cluster *c, uint32_t process, const struct view *decided)
{
    const struct view *before = NULL;
    nodeset confirm = 0;
    for (uint32_t i = 0; i < c->processes; i++) {
        const struct cluster_process *p = &c->process[i];
        const struct view *view = &p->machine.view;
        if (p->alive && view->generation == decided->generation &&
            view->epoch + 1 == decided->epoch && view_confirms(&p->machine, view->epoch)) {
            confirm |= nodeset_of(p->node);
            before = view;
        }
    }
    if (before != NULL && view_majority(before, confirm)) {
        fault(c, process, "a majority confirms a view that is over");
    }
}

/* What a process may never experience: to go on after it was dropped, to come back with its old
 * store, to serve before its workers had adopted the view in which it copied, to renew its
 * lease with a wedged worker. */
static void check_life(struct view_cluster *c, uint32_t process)
{
    struct cluster_process *p = &c->process[process];
    const struct view_machine *m = &p->machine;
    if (!p->alive) {
        return;
    }
    uint32_t admitted = view_self_member(m) ? m->view.members[p->node].admitted : 0;
    if (p->admitted != 0 && admitted == 0) {
        fault(c, process, "a dropped process lives on");
    } else if (p->admitted != 0 && admitted != p->admitted) {
        fault(c, process, "a process was dropped and let in again unawares");
    }
    bool shadow = admitted != 0 && !nodeset_has(m->view.operational, p->node);
    if (p->shadow && admitted != 0 && !shadow && m->adopted < p->epoch) {
        fault(c, process, "a shadow was promoted before it had adopted its view");
    }
    p->admitted = admitted;
    p->shadow = shadow;
    p->epoch = m->view.epoch;
    /* One heartbeat may tell of progress that was made before. */
    p->wedged_beats += p->wedged && !m->leaving && p->beat_us != m->heartbeat_sent_us;
    p->beat_us = m->heartbeat_sent_us;
    if (p->wedged_beats > 1) {
        fault(c, process, "heartbeats with a wedged worker");
    }
}

/* One view an epoch in each generation, and one first generation. What `recover` forms is outside
 * of the old generation's agreement: that is what the operator vouches for. */
static void decided_add(struct view_cluster *c, uint32_t process, const struct view *view)
{
    for (uint32_t i = 0; i < c->decided_n; i++) {
        const struct view *other = &c->decided[i];
        bool same_line = other->generation == view->generation ||
                         (view->generation_old == 0 && other->generation_old == 0);
        if (other->epoch == view->epoch && same_line) {
            if (memcmp(other, view, sizeof *view) != 0) {
                fault(c, process, "two views of one epoch");
            }
            return;
        }
    }
    HK_ASSERT(c->decided_n < CLUSTER_DECIDED_MAX);
    c->decided_at[c->decided_n] = c->now;
    c->decided[c->decided_n++] = *view;
    if (!view_majority(view, view->live)) {
        fault(c, process, "live members without a majority");
    }
    for (uint32_t i = 0; i < c->processes; i++) {
        check_lease(c, i);
    }
    check_confirms(c, process, view);
}

/* Counts the acceptance, and knows of the decision before any process does. */
static void accepted_note(struct view_cluster *c, uint32_t process)
{
    const struct view_machine *m = &c->process[process].machine;
    const struct view_acceptor *a = &m->acceptor;
    struct cluster_accept *entry = NULL;

    if (view_ballot_none(&a->accepted)) {
        return;
    }
    uint32_t kept = c->accepts_n < CLUSTER_ACCEPTS_MAX ? c->accepts_n : CLUSTER_ACCEPTS_MAX;
    for (uint32_t i = 0; i < kept && entry == NULL; i++) {
        struct cluster_accept *e = &c->accepts[i];
        if (e->generation == m->view.generation && e->view.epoch == a->accepted_view.epoch &&
            view_ballot_compare(&e->ballot, &a->accepted) == 0) {
            entry = e;
        }
    }
    if (entry == NULL) {
        entry = &c->accepts[c->accepts_n++ % CLUSTER_ACCEPTS_MAX];
        *entry = (struct cluster_accept){
            .generation = m->view.generation, .ballot = a->accepted, .view = a->accepted_view};
    }
    if (nodeset_has(entry->by, m->config.self)) {
        return;
    }
    entry->by |= nodeset_of(m->config.self);
    bool enough;
    if (m->view.epoch == 0) {
        enough = view_rule(m, VIEW_RULE_FIRST_VIEW_ALL)
                     ? nodeset_within(entry->view.configured, entry->by)
                     : nodeset_majority(entry->by, entry->view.configured);
    } else if (entry->view.generation != m->view.generation) {
        enough = nodeset_within(entry->view.configured, entry->by);
    } else {
        enough = view_quorum(m, &m->view, entry->by);
    }
    if (enough) {
        decided_add(c, process, &entry->view);
    }
}

static bool heap_before(const struct view_cluster *c, uint32_t a, uint32_t b)
{
    const struct cluster_message *x = &c->message[a], *y = &c->message[b];
    return x->at != y->at ? x->at < y->at : x->sequence < y->sequence;
}

static void heap_push(struct view_cluster *c, uint32_t index)
{
    uint32_t i = c->heap_n++;
    while (i > 0 && heap_before(c, index, c->heap[(i - 1) / 2])) {
        c->heap[i] = c->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    c->heap[i] = index;
}

static uint32_t heap_pop(struct view_cluster *c)
{
    uint32_t top = c->heap[0];
    uint32_t last = c->heap[--c->heap_n];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= c->heap_n) {
            break;
        }
        if (child + 1 < c->heap_n && heap_before(c, c->heap[child + 1], c->heap[child])) {
            child++;
        }
        if (!heap_before(c, c->heap[child], last)) {
            break;
        }
        c->heap[i] = c->heap[child];
        i = child;
    }
    c->heap[i] = last;
    return top;
}

static void post(struct view_cluster *c, uint32_t from, uint64_t generation, uint8_t to,
                 const struct view_msg *msg, uint64_t at)
{
    if (c->free_n == 0) {
        c->lost_room++;
        return;
    }
    uint32_t index = c->free[--c->free_n];
    struct cluster_message *m = &c->message[index];
    m->at = at;
    m->sequence = c->sequence++;
    m->nonce = c->process[from].machine.config.nonce;
    m->generation = generation;
    m->from = from;
    m->to = to;
    m->used = true;
    m->msg = *msg;
    if (!c->manual) {
        heap_push(c, index);
    }
}

static void message_free(struct view_cluster *c, uint32_t index)
{
    c->message[index].used = false;
    c->free[c->free_n++] = index;
}

static void transmit(struct view_cluster *c, uint32_t from, uint8_t to, const struct view_msg *msg)
{
    uint64_t generation = c->process[from].machine.view.generation;
    uint8_t node = c->process[from].node;
    HK_ASSERT(view_msg_invalid(msg) == NULL);
    if (c->manual) {
        post(c, from, generation, to, msg, 0);
        return;
    }
    if (to >= c->nodes || nodeset_has(c->cut[node], to)) {
        return;
    }
    uint32_t copies = random_chance(&c->random, c->twice_ppm) ? 2 : 1;
    for (uint32_t i = 0; i < copies; i++) {
        if (random_chance(&c->random, c->loss_ppm)) {
            continue;
        }
        uint64_t delay = random_between(&c->random, 1, c->delay_us_max);
        if (random_chance(&c->random, c->slow_ppm)) {
            delay += random_below(&c->random, c->slow_us_max + 1);
        }
        post(c, from, generation, to, msg, c->now + delay);
    }
}

static void effects_apply(struct view_cluster *c, uint32_t process)
{
    struct cluster_process *p = &c->process[process];
    const struct view_machine *m = &p->machine;

    for (uint32_t i = 0; i < c->fx.n; i++) {
        const struct view_effect *effect = &c->fx.e[i];
        switch (effect->kind) {
        case VIEW_EFFECT_SEND:
            transmit(c, process, effect->to, &effect->msg);
            break;
        case VIEW_EFFECT_INSTALL:
            p->installs++;
            p->adopt_at = c->now + random_below(&c->random, c->adopt_us_max + 1);
            if (view_has(&m->view, p->node, m->config.nonce) &&
                !view_operational(&m->view, p->node, m->config.nonce) &&
                p->copied_at == UINT64_MAX) {
                p->copied_at = p->adopt_at + random_below(&c->random, c->copy_us_max + 1);
            }
            decided_add(c, process, &m->view);
            break;
        case VIEW_EFFECT_PERSIST:
            c->node[p->node].kept_generation = m->view.generation;
            c->node[p->node].kept_epoch = m->view.epoch;
            break;
        case VIEW_EFFECT_WIPE:
        case VIEW_EFFECT_LEFT:
            p->wiped = effect->kind == VIEW_EFFECT_WIPE;
            p->left = !p->wiped;
            p->alive = false;
            if (p->wiped && c->node[p->node].current == process) {
                c->node[p->node].restart_at =
                    c->now + random_below(&c->random, c->return_us_max + 1);
            }
            break;
        }
    }
}

void view_cluster_event(struct view_cluster *c, uint32_t process, struct view_event event)
{
    struct cluster_process *p = &c->process[process];
    if (!p->alive || p->paused) {
        return;
    }
    event.now_us = view_cluster_clock(c, p->node);
    c->fx.n = 0;
    c->steps++;
    view_step(&p->machine, &event, &c->fx);
    view_check(&p->machine);
    accepted_note(c, process);
    effects_apply(c, process);
    check_lease(c, process);
    check_life(c, process);
    p->tick_at = true_time(c, p->node, view_deadline(&p->machine));
}

void view_cluster_tick(struct view_cluster *c, uint32_t process)
{
    bool healthy = !c->process[process].wedged;
    view_cluster_event(c, process,
                       (struct view_event){.kind = VIEW_EVENT_TICK, .healthy = healthy});
}

uint32_t view_cluster_start(struct view_cluster *c, uint8_t node)
{
    HK_ASSERT(c->processes < CLUSTER_PROCESSES_MAX);
    uint32_t index = c->processes++;
    struct cluster_process *p = &c->process[index];
    struct view_config config = c->config;

    memset(p, 0, sizeof *p);
    config.self = node;
    config.nonce = (c->nonce_next++ << 8 | node) * 0x9e3779b97f4a7c15u;
    config.kept_generation = c->node[node].kept_generation;
    config.kept_epoch = c->node[node].kept_epoch;
    p->node = node;
    p->alive = true;
    p->adopt_at = UINT64_MAX;
    p->copied_at = UINT64_MAX;
    p->tick_at = c->now;
    view_init(&p->machine, &config, view_cluster_clock(c, node));
    p->machine.rules_off = c->rules_off;
    c->node[node].current = index;
    c->node[node].restart_at = UINT64_MAX;
    c->node[node].started = true;
    return index;
}

void view_cluster_wedge(struct view_cluster *c, uint32_t process, bool wedged)
{
    c->process[process].wedged = wedged;
    c->process[process].wedged_beats = 0;
}

void view_cluster_crash(struct view_cluster *c, uint32_t process)
{
    c->process[process].alive = false;
}

void view_cluster_cut(struct view_cluster *c, uint8_t a, uint8_t b, bool cut)
{
    if (cut) {
        c->cut[a] |= nodeset_of(b);
        c->cut[b] |= nodeset_of(a);
    } else {
        c->cut[a] &= ~nodeset_of(b);
        c->cut[b] &= ~nodeset_of(a);
    }
}

void view_cluster_mend(struct view_cluster *c)
{
    memset(c->cut, 0, sizeof c->cut);
}

static void message_give(struct view_cluster *c, const struct cluster_message *message,
                         uint32_t process)
{
    struct view_msg msg = message->msg;
    view_cluster_event(c, process,
                       (struct view_event){.kind = VIEW_EVENT_MESSAGE,
                                           .node = c->process[message->from].node,
                                           .nonce = message->nonce,
                                           .generation = message->generation,
                                           .msg = &msg});
}

/* The oldest message by hand that matches; CLUSTER_MESSAGES_MAX: none. */
static uint32_t message_find(const struct view_cluster *c, uint32_t from, uint32_t to,
                             uint32_t kinds, uint64_t before)
{
    uint32_t found = CLUSTER_MESSAGES_MAX;
    for (uint32_t i = 0; i < CLUSTER_MESSAGES_MAX; i++) {
        const struct cluster_message *m = &c->message[i];
        if (!m->used || m->sequence >= before || (kinds >> m->msg.kind & 1) == 0 ||
            (from != CLUSTER_ALL && m->from != from) ||
            (to != CLUSTER_ALL && m->to != c->process[to].node)) {
            continue;
        }
        if (found == CLUSTER_MESSAGES_MAX || m->sequence < c->message[found].sequence) {
            found = i;
        }
    }
    return found;
}

void view_cluster_by_hand(struct view_cluster *c)
{
    c->manual = true;
    while (c->heap_n > 0) {
        message_free(c, c->heap[--c->heap_n]);
    }
}

uint32_t view_cluster_deliver(struct view_cluster *c, uint32_t from, uint32_t to, uint32_t kinds)
{
    uint64_t before = c->sequence;
    uint32_t n = 0;
    for (;;) {
        uint32_t i = message_find(c, from, to, kinds, before);
        if (i == CLUSTER_MESSAGES_MAX) {
            return n;
        }
        message_give(c, &c->message[i], to);
        message_free(c, i);
        n++;
    }
}

uint32_t view_cluster_lose(struct view_cluster *c, uint32_t from, uint32_t to, uint32_t kinds)
{
    uint32_t n = 0;
    for (;;) {
        uint32_t i = message_find(c, from, to, kinds, UINT64_MAX);
        if (i == CLUSTER_MESSAGES_MAX) {
            return n;
        }
        message_free(c, i);
        n++;
    }
}

static uint64_t earliest(const struct view_cluster *c)
{
    uint64_t at = c->heap_n > 0 ? c->message[c->heap[0]].at : UINT64_MAX;
    for (uint32_t i = 0; i < c->processes; i++) {
        const struct cluster_process *p = &c->process[i];
        if (p->alive && !p->paused) {
            at = p->tick_at < at ? p->tick_at : at;
            at = p->adopt_at < at ? p->adopt_at : at;
            at = p->copied_at < at ? p->copied_at : at;
        }
    }
    for (uint32_t i = 0; i < c->nodes; i++) {
        at = c->node[i].restart_at < at ? c->node[i].restart_at : at;
    }
    return at;
}

static void timers_run(struct view_cluster *c)
{
    for (uint32_t i = 0; i < c->processes; i++) {
        struct cluster_process *p = &c->process[i];
        if (p->alive && !p->paused && p->adopt_at <= c->now) {
            p->adopt_at = UINT64_MAX;
            if (!p->stuck) {
                view_cluster_event(c, i,
                                   (struct view_event){.kind = VIEW_EVENT_ADOPTED,
                                                       .epoch = p->machine.view.epoch});
            }
        }
        if (p->alive && !p->paused && p->copied_at <= c->now) {
            p->copied_at = UINT64_MAX;
            view_cluster_event(c, i, (struct view_event){.kind = VIEW_EVENT_COPIED});
        }
        if (p->alive && !p->paused && p->tick_at <= c->now) {
            view_cluster_tick(c, i);
        }
    }
    for (uint8_t i = 0; i < c->nodes; i++) {
        if (c->node[i].restart_at <= c->now) {
            (void)view_cluster_start(c, i);
        }
    }
}

void view_cluster_run(struct view_cluster *c, uint64_t until)
{
    while (c->violation == NULL) {
        uint64_t at = earliest(c);
        if (at > until) {
            break;
        }
        c->now = at > c->now ? at : c->now;
        while (c->heap_n > 0 && c->message[c->heap[0]].at <= c->now) {
            uint32_t index = heap_pop(c);
            uint8_t to = c->message[index].to;
            for (uint32_t i = 0; i < c->processes; i++) {
                if (c->process[i].node == to) {
                    message_give(c, &c->message[index], i);
                }
            }
            message_free(c, index);
        }
        timers_run(c);
    }
    c->now = c->now > until ? c->now : until;
}

bool view_cluster_settled(const struct view_cluster *c)
{
    const struct view *view = NULL;
    for (uint8_t i = 0; i < c->nodes; i++) {
        if (!c->node[i].started) {
            continue;
        }
        if (c->node[i].restart_at != UINT64_MAX) {
            return false;
        }
        const struct cluster_process *p = &c->process[c->node[i].current];
        const struct view_machine *m = &p->machine;
        if (!p->alive || p->paused || !view_operational(&m->view, i, m->config.nonce) ||
            !view_cluster_leased(c, c->node[i].current)) {
            return false;
        }
        if (view != NULL && memcmp(view, &m->view, sizeof *view) != 0) {
            return false;
        }
        view = &m->view;
    }
    return view != NULL;
}
