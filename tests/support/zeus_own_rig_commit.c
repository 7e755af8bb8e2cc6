/* The rig's reliable commit: one object, slots in order, acknowledged by all followers, replayed by
 * who has stored a dead coordinator's. */
#include "support/zeus_own_rig.h"

#include <stdio.h>
#include <string.h>

static void send_commit(struct own_rig *r, uint8_t node, nodeset to, uint8_t kind,
                        const struct own_rig_commit *c)
{
    struct own_rig_message m = {.kind = kind, .commit = *c, .value = c->value};
    own_rig_send(r, node, to & ~nodeset_of(node), &m);
}

static void take_first(struct own_rig_commit *list, uint32_t *n)
{
    --*n;
    memmove(&list[0], &list[1], *n * sizeof list[0]);
}

static bool same_name(const struct own_rig_commit *a, const struct own_rig_commit *b)
{
    return a->coordinator == b->coordinator && a->born == b->born && a->version == b->version;
}

static void forget_stored(struct own_rig_node *n, uint32_t i)
{
    n->past[n->stored[i].coordinator] = n->stored[i];
    n->stored_n--;
    memmove(&n->stored[i], &n->stored[i + 1], (n->stored_n - i) * sizeof n->stored[0]);
}

static void validate(struct own_rig_node *n, const struct own_rig_commit *c)
{
    if (n->have && n->version == c->version) {
        n->state = ZEUS_VALID;
    }
}

static void reliable(struct own_rig *r, const struct own_rig_commit *c)
{
    r->reliable = c->version > r->reliable ? c->version : r->reliable;
}

static nodeset still(const struct view *view, const struct own_rig_commit *c)
{
    nodeset set = 0;
    for (nodeset rest = c->followers & view->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        set |= own_rig_born(view, node) <= c->epoch ? nodeset_of(node) : 0;
    }
    return set;
}

static bool acked(const struct own_rig_node *n, uint8_t self, const struct own_rig_commit *c)
{
    return nodeset_within(still(&n->view, c) & ~nodeset_of(self), c->acked);
}

/* What is done at the head of the own pipeline, and of those replayed here. */
static void finish(struct own_rig *r, uint8_t node)
{
    struct own_rig_node *n = &r->nodes[node];
    bool freed = false;
    while (n->commits_n > 0 && acked(n, node, &n->commits[0])) {
        struct own_rig_commit c = n->commits[0];
        take_first(n->commits, &n->commits_n);
        validate(n, &c);
        if (c.answered) {
            reliable(r, &c);
        }
        send_commit(r, node, c.followers, OWN_RIG_R_VAL, &c);
        freed = n->commits_n == 0;
    }
    for (uint32_t i = 0; i < n->stored_n;) {
        struct own_rig_commit c = n->stored[i];
        if (!c.replays || !acked(n, node, &c)) {
            i++;
            continue;
        }
        forget_stored(n, i);
        validate(n, &c);
        send_commit(r, node, c.followers, OWN_RIG_R_VAL, &c);
    }
    if (freed && !n->locked) {
        struct own_event event = own_rig_event(r, node, OWN_EV_FREE);
        own_rig_step(r, node, &event, NULL);
    }
}

/* Two commits from one version: one of them is lost, unless the first died with its owner. */
static void check_base(struct own_rig *r, uint8_t node, uint64_t version)
{
    uint32_t born = own_rig_born(&r->nodes[node].view, node);
    for (uint32_t i = 1; i < r->values; i++) {
        const struct own_rig_base *b = &r->bases[i];
        if (b->version == version && b->node != node && own_rig_serves(r, b->node) &&
            own_rig_born(&r->nodes[b->node].view, b->node) == b->born) {
            own_rig_wrong(r, "two commits from one version");
        }
    }
    r->bases[r->values] = (struct own_rig_base){.version = version, .born = born, .node = node};
}

uint32_t own_rig_commit(struct own_rig *r, uint8_t node, bool deletion)
{
    struct own_rig_node *n = &r->nodes[node];
    if ((!n->owned && !n->locked) || !n->have || !own_rig_serves(r, node) ||
        n->commits_n == OWN_RIG_COMMITS || r->values + 1 == OWN_RIG_VALUES) {
        return 0;
    }
    struct own_vector v = own_masked(&n->entry.vector, &n->view);
    bool waits = (r->config.rules_off >> OWN_RULE_ENOUGH & 1) == 0;
    r->values++;
    check_base(r, node, n->version);
    n->locked = false;
    n->version = stamp_make(stamp_version(n->version) + 1, n->view.members[node].cid_first);
    n->value = deletion ? 0 : r->values;
    n->state = ZEUS_WRITE;
    struct own_rig_commit *c = &n->commits[n->commits_n++];
    *c = (struct own_rig_commit){.version = n->version,
                                 .value = n->value,
                                 .born = own_rig_born(&n->view, node),
                                 .epoch = n->view.epoch,
                                 .followers = v.readers & ~nodeset_of(node),
                                 .answered = !waits || (n->entry.vector.degree & OWN_FRESH) == 0,
                                 .coordinator = node};
    if (r->trace) {
        printf("node %u commits v%llu to %llx\n", node,
               (unsigned long long)stamp_version(c->version), (unsigned long long)c->followers);
    }
    send_commit(r, node, c->followers, OWN_RIG_R_INV, c);
    finish(r, node);
    own_rig_check(r);
    return r->values;
}

void own_rig_lock(struct own_rig *r, uint8_t node, bool locked)
{
    struct own_rig_node *n = &r->nodes[node];
    n->locked = locked && n->owned;
    if (!n->locked && n->commits_n == 0) {
        struct own_event event = own_rig_event(r, node, OWN_EV_FREE);
        own_rig_step(r, node, &event, NULL);
    }
}

static void r_inv(struct own_rig *r, uint8_t node, uint8_t from, const struct own_rig_message *m)
{
    struct own_rig_node *n = &r->nodes[node];
    const struct own_rig_commit *c = &m->commit;
    const struct own_rig_commit *past = &n->past[c->coordinator];
    bool known = past->born == c->born && c->version <= past->version;
    if (m->epoch != n->view.epoch) {
        return;
    }
    for (uint32_t i = 0; i < n->stored_n; i++) {
        known = known || same_name(&n->stored[i], c);
    }
    if (!known) {
        if (n->stored_n == OWN_RIG_STORED) {
            own_rig_wrong(r, "more commits under way than an owner begins");
            return;
        }
        n->stored[n->stored_n] = *c;
        n->stored[n->stored_n].replays = false;
        n->stored[n->stored_n++].acked = 0;
        if (n->have && n->version < c->version) {
            n->version = c->version;
            n->value = m->value;
            n->state = ZEUS_INVALID;
        }
    }
    send_commit(r, node, nodeset_of(from), OWN_RIG_R_ACK, c);
}

static void r_ack(struct own_rig *r, uint8_t node, uint8_t from, const struct own_rig_message *m)
{
    struct own_rig_node *n = &r->nodes[node];
    if (m->epoch != n->view.epoch) {
        return;
    }
    for (uint32_t i = 0; i < n->commits_n; i++) {
        if (same_name(&n->commits[i], &m->commit)) {
            n->commits[i].acked |= nodeset_of(from);
        }
    }
    for (uint32_t i = 0; i < n->stored_n; i++) {
        if (same_name(&n->stored[i], &m->commit) && n->stored[i].replays) {
            n->stored[i].acked |= nodeset_of(from);
        }
    }
    finish(r, node);
}

static void r_val(struct own_rig *r, uint8_t node, const struct own_rig_message *m)
{
    struct own_rig_node *n = &r->nodes[node];
    for (uint32_t i = 0; i < n->stored_n; i++) {
        if (same_name(&n->stored[i], &m->commit)) {
            validate(n, &m->commit);
            forget_stored(n, i);
            return;
        }
    }
}

void own_rig_commit_message(struct own_rig *r, uint8_t node, uint8_t from,
                            const struct own_rig_message *m)
{
    if (m->kind == OWN_RIG_R_INV) {
        r_inv(r, node, from, m);
    } else if (m->kind == OWN_RIG_R_ACK) {
        r_ack(r, node, from, m);
    } else {
        r_val(r, node, m);
    }
    own_rig_check(r);
}

void own_rig_commit_view(struct own_rig *r, uint8_t node)
{
    struct own_rig_node *n = &r->nodes[node];
    for (uint32_t i = 0; i < n->commits_n; i++) {
        struct own_rig_commit *c = &n->commits[i];
        c->followers = still(&n->view, c);
        c->epoch = n->view.epoch;
        c->acked = 0;
        send_commit(r, node, c->followers, OWN_RIG_R_INV, c);
    }
    for (uint32_t i = 0; i < n->stored_n; i++) {
        struct own_rig_commit *c = &n->stored[i];
        bool lives = nodeset_has(n->view.live, c->coordinator) &&
                     own_rig_born(&n->view, c->coordinator) == c->born;
        c->replays = !lives;
        c->acked = 0;
        if (!lives) {
            c->followers = still(&n->view, c);
            c->epoch = n->view.epoch;
            send_commit(r, node, c->followers, OWN_RIG_R_INV, c);
        }
    }
    finish(r, node);
}
