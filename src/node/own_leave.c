/* Members that go: those that were told to leave, and those that are configured no more
 * (docs/protocols/zeus.md, R18). What they have is no replica that counts: owners look for others,
 * on their walks, and each member says for which of them nothing is left to do (SPARED). One that
 * was told to leave may go when all have said so of it. */
#include "node/own_internal.h"

#include "base/assert.h"

static uint8_t lowest(uint32_t spaces)
{
    return (uint8_t)__builtin_ctz(spaces);
}

/* Those that may go now, the lowest id first: a majority stays that serves, and so has every entry.
 * The others wait until these are back. */
static nodeset first_of(const struct view *view, nodeset told)
{
    nodeset first = 0;
    for (nodeset rest = told & view->live; rest != 0; rest &= rest - 1) {
        nodeset more = first | nodeset_of(nodeset_first(rest));
        first = view_majority(view, view->operational & ~more) ? more : first;
    }
    return first;
}

nodeset own_going_in(const struct node *node, const struct view *view)
{
    /* seq_cst: pairs with own_trims_begin's; else who trims may not know of it, and who asks
     * whether anybody trims may not see that. */
    nodeset told = atomic_load_explicit(&node->going, memory_order_seq_cst);
    nodeset removed = view->configured_old != 0 ? view->live & ~view->configured : 0;
    return told == 0 ? removed : removed | first_of(view, told);
}

nodeset own_going(const struct worker *w)
{
    return own_going_in(w->node, &w->view);
}

static void say(struct worker *w, enum msg_node_kind kind, nodeset nodes)
{
    struct msg m = {.space = lowest(w->node->owned),
                    .kind = (uint8_t)kind,
                    .epoch = w->view.epoch,
                    .arg = nodes};
    output_values(w, w->view.live, 0, &m, NULL);
}

/* ---- Worker 0 ---- */

/* All are told to stop: nobody is left to whom anything could be given. */
static void look_who_stays(struct worker *w)
{
    nodeset told = atomic_load_explicit(&w->node->going, memory_order_relaxed);
    bool none = w->own->leave.wanted && nodeset_within(w->view.live, told);
    atomic_store_explicit(&w->node->nobody_stays, none, memory_order_relaxed);
}

bool node_nobody_stays(const struct node *node)
{
    return atomic_load_explicit(&node->nobody_stays, memory_order_relaxed);
}

static void tell_going(struct worker *w)
{
    if (w->own->leave.wanted && nodeset_has(w->view.live, w->node->config.self)) {
        say(w, MSG_OWN_LEAVE, 0);
    }
}

void own_leave(struct worker *w)
{
    HK_ASSERT(w->index == 0);
    w->own->leave.wanted = true;
    tell_going(w);
}

void own_leave_adopt(struct worker *w)
{
    struct own_leave *l = &w->own->leave;
    nodeset going = atomic_load_explicit(&w->node->going, memory_order_relaxed) & w->view.live;
    for (nodeset rest = going; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        going &=
            w->view.members[node].admitted == l->admitted[node] ? ~(nodeset)0 : ~nodeset_of(node);
    }
    atomic_store_explicit(&w->node->going, going, memory_order_seq_cst);
    l->spared_by = 0;
    l->without_by = 0;
    l->said = 0;
    atomic_store_explicit(&w->node->spared, false, memory_order_relaxed);
    look_who_stays(w);
    tell_going(w);
}

void own_leave_message(struct worker *w, const struct msg *msg, uint8_t from)
{
    struct own_leave *l = &w->own->leave;
    const struct node *n = w->node;
    if (w->index != 0 || msg->epoch != w->view.epoch || !nodeset_has(w->view.live, from)) {
        w->stats.engine_drops[ENGINE_DROP_EPOCH_OLD]++;
        return;
    }
    if (msg->kind == MSG_OWN_SPARED) {
        nodeset removed = w->view.configured_old != 0 ? w->view.live & ~w->view.configured : 0;
        l->spared_by |= nodeset_has(msg->arg, n->config.self) ? nodeset_of(from) : 0;
        l->without_by |= nodeset_within(removed, msg->arg) ? nodeset_of(from) : 0;
        bool all = nodeset_within(w->view.operational, l->spared_by);
        /* release: pairs with the acquire in node_handed_over. */
        atomic_store_explicit(&w->node->spared, l->wanted && all, memory_order_release);
        return;
    }
    nodeset going = atomic_load_explicit(&n->going, memory_order_relaxed);
    if (!nodeset_has(going, from)) {
        l->admitted[from] = w->view.members[from].admitted;
        atomic_store_explicit(&w->node->going, going | nodeset_of(from), memory_order_seq_cst);
        own_walk_restart(w);
        look_who_stays(w);
    }
}

static bool anybody_trims(const struct worker *w)
{
    const struct node *n = w->node;
    for (uint32_t i = 0; i < n->config.workers; i++) {
        if (atomic_load_explicit(&n->workers[i].own->trims, memory_order_seq_cst) != 0) {
            return true;
        }
    }
    return false;
}

void own_leave_walked(struct worker *w, nodeset going)
{
    struct own_leave *l = &w->own->leave;
    if (going == 0 || going != own_going(w) || l->said == going || anybody_trims(w)) {
        return;
    }
    l->said = going;
    say(w, MSG_OWN_SPARED, going);
}

bool own_keeps_removed(const struct worker *w)
{
    const struct view *newest = view_current(&w->node->machine);
    if (w->node->owned == 0 || newest->configured_old == 0 ||
        nodeset_within(newest->live, newest->configured)) {
        return false;
    }
    return newest->epoch != w->view.epoch ||
           !nodeset_within(w->view.operational, w->own->leave.without_by);
}

/* ---- Any worker ---- */

bool own_trims_begin(struct worker *w, nodeset going)
{
    atomic_fetch_add_explicit(&w->own->trims, 1, memory_order_seq_cst);
    if (own_going(w) == going) {
        return true;
    }
    own_trims_end(w);
    return false;
}

void own_trims_end(struct worker *w)
{
    atomic_fetch_sub_explicit(&w->own->trims, 1, memory_order_seq_cst);
}
