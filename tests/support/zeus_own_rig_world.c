/* The world around the machines of the rig: views, who has said what of an epoch, what must hold,
 * and how it all ends. */
#include "support/zeus_own_rig.h"

#include <stdio.h>
#include <string.h>

const struct view *own_rig_newest(const struct own_rig *r)
{
    return &r->views[r->nviews - 1];
}

/* ---- Views ---- */

static struct view *next_view(struct own_rig *r)
{
    HK_ASSERT(r->nviews < OWN_RIG_VIEWS);
    struct view *view = &r->views[r->nviews++];
    *view = r->views[r->nviews - 2];
    view->epoch++;
    return view;
}

static void member_new(struct view *view, uint8_t node, bool operational)
{
    view->members[node] =
        (struct view_member){.nonce = 1,
                             .admitted = view->epoch,
                             .cid_first = view->next_cid,
                             .cid_count = 1,
                             .role = operational ? VIEW_ROLE_OPERATIONAL : VIEW_ROLE_SHADOW};
    view->next_cid++;
    view->live |= nodeset_of(node);
    view->operational |= operational ? nodeset_of(node) : 0;
}

void own_rig_crash(struct own_rig *r, uint8_t node)
{
    r->nodes[node].crashed = true;
}

void own_rig_drop(struct own_rig *r, uint8_t node)
{
    struct view *view = next_view(r);
    view->live &= ~nodeset_of(node);
    view->operational &= ~nodeset_of(node);
    view->members[node] = (struct view_member){.nonce = 0};
}

void own_rig_admit(struct own_rig *r, uint8_t node)
{
    struct view *view = next_view(r);
    struct own_rig_node *n = &r->nodes[node];
    member_new(view, node, false);
    *n = (struct own_rig_node){.view = *view};
    own_rig_epoch(r, node);
}

bool own_rig_promote(struct own_rig *r, uint8_t node)
{
    const struct view *newest = own_rig_newest(r);
    const struct own_rig_node *n = &r->nodes[node];
    if (n->crashed || own_rig_born(newest, node) != own_rig_born(&n->view, node) ||
        !nodeset_has(newest->live & ~newest->operational, node) || n->view.epoch != newest->epoch ||
        !nodeset_within(newest->live, n->pushed)) {
        return false;
    }
    struct view *view = next_view(r);
    view->operational |= nodeset_of(node);
    view->members[node].role = VIEW_ROLE_OPERATIONAL;
    return true;
}

/* Entries to who may not have them (R11), in every epoch that has shadows: when nothing is pending
 * here from before, else the VAL that ends it may be one of an older epoch, which the newcomer does
 * not get. */
static void push(struct own_rig *r, uint8_t node)
{
    struct own_rig_node *n = &r->nodes[node];
    if (n->view.live == n->view.operational) {
        return;
    }
    struct own_rig_message m = {.kind = OWN_MSG_ENTRY, .ts = n->entry.ts, .arg = n->clock};
    m.body.vector = own_masked(&n->entry.vector, &n->view);
    if (n->entry.ts != 0) {
        own_rig_send(r, node, own_pushes(&n->view, &n->view, r->hash, node, &m.body.vector), &m);
    }
    m = (struct own_rig_message){.kind = OWN_MSG_PUSHED, .ts = n->view.epoch};
    n->pushed |= nodeset_of(node);
    own_rig_send(r, node, n->view.live & ~nodeset_of(node), &m);
}

void own_rig_adopt(struct own_rig *r, uint8_t node)
{
    struct own_rig_node *n = &r->nodes[node];
    const struct view *view = own_rig_newest(r);
    uint32_t before = n->view.epoch;
    if (n->crashed || view->epoch <= before || !nodeset_has(view->live, node) ||
        own_rig_born(view, node) != own_rig_born(&n->view, node)) {
        return;
    }
    n->view = *view;
    n->recovered = 0;
    n->settled = 0;
    n->pushed = 0;
    struct own_event event = own_rig_event(r, node, OWN_EV_VIEW);
    own_rig_step(r, node, &event, NULL);
    own_rig_commit_view(r, node);
    own_rig_epoch(r, node);
    own_rig_check(r);
}

void own_rig_adopt_all(struct own_rig *r)
{
    for (uint8_t i = 0; i < r->n; i++) {
        own_rig_adopt(r, i);
    }
}

bool own_rig_serves(const struct own_rig *r, uint8_t node)
{
    const struct own_rig_node *n = &r->nodes[node];
    const struct view *newest = own_rig_newest(r);
    return !n->crashed && nodeset_has(newest->live, node) &&
           nodeset_has(n->view.operational, node) &&
           own_rig_born(newest, node) == own_rig_born(&n->view, node);
}

/* ---- RECOVERED, SETTLED ---- */

static void say(struct own_rig *r, uint8_t node, nodeset *heard, uint8_t kind)
{
    const struct own_rig_node *n = &r->nodes[node];
    struct own_rig_message m = {.kind = kind, .ts = n->view.epoch};
    *heard |= nodeset_of(node);
    own_rig_send(r, node, n->view.live & ~nodeset_of(node), &m);
}

static bool keeps_of_the_dead(const struct own_rig_node *n)
{
    for (uint32_t i = 0; i < n->stored_n; i++) {
        uint8_t node = n->stored[i].coordinator;
        if (!nodeset_has(n->view.live, node) || own_rig_born(&n->view, node) != n->stored[i].born) {
            return true;
        }
    }
    return false;
}

static bool go(struct own_rig *r, uint8_t node, nodeset heard, uint32_t *went)
{
    const struct own_rig_node *n = &r->nodes[node];
    if (!nodeset_within(n->view.live, heard) || *went == n->view.epoch) {
        return false;
    }
    *went = n->view.epoch;
    struct own_event event = own_rig_event(r, node, OWN_EV_GO);
    own_rig_step(r, node, &event, NULL);
    return true;
}

void own_rig_epoch(struct own_rig *r, uint8_t node)
{
    struct own_rig_node *n = &r->nodes[node];
    bool some = !n->crashed && n->view.epoch != 0;
    while (some) {
        if (!nodeset_has(n->recovered, node) && !keeps_of_the_dead(n)) {
            say(r, node, &n->recovered, OWN_MSG_RECOVERED);
        }
        if (!nodeset_has(n->settled, node) && n->busy.state == OWN_VALID) {
            push(r, node);
            say(r, node, &n->settled, OWN_MSG_SETTLED);
        }
        some = go(r, node, n->recovered, &n->went_recovered) ||
               go(r, node, n->settled, &n->went_settled);
    }
}

/* ---- What must hold at any time ---- */

static void check_owner(struct own_rig *r, uint8_t node)
{
    const struct own_rig_node *n = &r->nodes[node];
    struct own_vector v = own_masked(&n->entry.vector, &n->view);
    if (v.owner != node) {
        own_rig_wrong(r, "who owns is not the owner by its own entry");
    }
    if (n->version < r->reliable) {
        own_rig_wrong(r, "the owner lacks a version that was committed");
    }
    for (nodeset rest = v.readers; rest != 0; rest &= rest - 1) {
        uint8_t reader = nodeset_first(rest);
        if (own_rig_serves(r, reader) && !r->nodes[reader].have) {
            own_rig_wrong(r, "a reader without the data");
        }
    }
    for (uint8_t i = 0; i < r->n; i++) {
        const struct own_rig_node *other = &r->nodes[i];
        if (own_rig_serves(r, i) && other->have && other->state == ZEUS_VALID && !other->shut &&
            other->version > n->version) {
            own_rig_wrong(r, "a reader is ahead of the owner");
        }
    }
}

static void check_node(struct own_rig *r, uint8_t node)
{
    const struct own_rig_node *n = &r->nodes[node];
    if (n->owned) {
        check_owner(r, node);
    }
    if (n->have && n->state == ZEUS_VALID && !n->shut && n->version < r->reliable) {
        own_rig_wrong(r, "a stale read");
    }
    for (uint8_t i = 0; i < node; i++) {
        const struct own_rig_node *other = &r->nodes[i];
        if (own_rig_serves(r, i) && other->have && n->have && other->version == n->version &&
            other->value != n->value) {
            own_rig_wrong(r, "two values at one version");
        }
    }
}

void own_rig_check(struct own_rig *r)
{
    uint32_t owners = 0;
    for (uint8_t i = 0; i < r->n; i++) {
        if (own_rig_serves(r, i)) {
            owners += r->nodes[i].owned;
            check_node(r, i);
        }
    }
    if (owners > 1) {
        own_rig_wrong(r, "two owners");
    }
}

/* ---- How it ends ---- */

static const char *unsettled(const struct own_rig *r)
{
    for (nodeset rest = own_rig_newest(r)->live; rest != 0; rest &= rest - 1) {
        const struct own_rig_node *n = &r->nodes[nodeset_first(rest)];
        if (n->busy.state != OWN_VALID) {
            return "an arbitration that does not end";
        }
        if (n->busy.mine.type != OWN_NONE) {
            return "a request that does not end";
        }
        if (n->commits_n + n->stored_n > 0) {
            return "a commit that does not end";
        }
        if (n->went_settled != n->view.epoch || n->went_recovered != n->view.epoch) {
            return "an epoch that does not settle";
        }
    }
    return NULL;
}

/* Walks pass by. */
static void look(struct own_rig *r)
{
    for (nodeset rest = own_rig_newest(r)->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        struct own_event event = own_rig_event(r, node, OWN_EV_LOOK);
        own_rig_step(r, node, &event, NULL);
    }
}

static const char *directory_wrong(const struct own_rig *r)
{
    const struct view *view = own_rig_newest(r);
    nodeset drivers = own_drivers(view, r->hash);
    const struct own_entry *entry = &r->nodes[nodeset_first(drivers)].entry;
    struct own_vector v = own_masked(&entry->vector, view);
    nodeset replicas = arb_replicas(&v);
    for (nodeset rest = drivers; rest != 0; rest &= rest - 1) {
        const struct own_entry *other = &r->nodes[nodeset_first(rest)].entry;
        struct own_vector w = own_masked(&other->vector, view);
        if (other->ts != entry->ts || memcmp(&v, &w, sizeof v) != 0) {
            return "two directory nodes know different things";
        }
    }
    for (nodeset rest = view->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        const struct own_rig_node *n = &r->nodes[node];
        if (n->owned != (v.owner == node)) {
            return n->owned ? "an owner that nobody knows" : "an owner that does not know";
        }
        if (n->have != nodeset_has(replicas, node)) {
            return n->have ? "data that nobody knows" : "a replica without data";
        }
        if (n->have && (n->state != ZEUS_VALID || n->shut)) {
            return "data that cannot be read";
        }
        if (n->owned && n->entry.ts != entry->ts) {
            return "an owner with another entry";
        }
    }
    return NULL;
}

/* Where nobody drives requests, newcomers have to serve. */
static void serve(struct own_rig *r)
{
    const struct view *view = own_rig_newest(r);
    nodeset rest = own_drivers(view, r->hash) == 0 ? view->live & ~view->operational : 0;
    for (; rest != 0 && r->nviews < OWN_RIG_VIEWS; rest &= rest - 1) {
        if (own_rig_promote(r, nodeset_first(rest))) {
            own_rig_adopt_all(r);
            own_rig_run(r);
        }
    }
}

const char *own_rig_settle(struct own_rig *r)
{
    const char *why = NULL;
    for (uint8_t i = 0; i < r->n; i++) {
        r->nodes[i].recordless = false;
        if (!nodeset_has(own_rig_newest(r)->live, i)) {
            own_rig_crash(r, i); /* it was dropped and ends, or has ended */
        } else if (r->nodes[i].locked) {
            own_rig_lock(r, i, false);
        }
    }
    own_rig_adopt_all(r);
    for (uint32_t round = 0; round < 200; round++) {
        own_rig_run(r);
        serve(r);
        why = unsettled(r);
        if (why == NULL) {
            look(r);
            return directory_wrong(r);
        }
        (void)own_rig_timers(r);
    }
    return why;
}

const char *own_rig_verdict(struct own_rig *r)
{
    const char *why = own_rig_settle(r);
    return r->wrong != NULL ? r->wrong : why;
}

/* ---- Beginning, printing ---- */

/* The first hash that makes nodes 0, 1, 2 the directory. */
static uint64_t usual_hash(const struct view *view)
{
    nodeset wanted = view->configured & 7u;
    uint64_t hash = 1;
    while (own_directory(view, hash) != wanted) {
        hash++;
    }
    return hash;
}

void own_rig_init(struct own_rig *r, uint8_t n, uint64_t hash, uint64_t rules_off, uint64_t seed)
{
    HK_ASSERT(n <= OWN_RIG_NODES);
    memset(r, 0, sizeof *r);
    r->n = n;
    r->now_us = 1000000;
    /* Here whoever owns an object may write it alone: it is never as if it had not been (R17). */
    r->config = (struct own_config){.degree = 1, .backoff_us = 100, .rules_off = rules_off};
    random_init(&r->random, seed);
    struct view *view = &r->views[0];
    r->nviews = 1;
    view->epoch = 1;
    view->next_cid = 1;
    for (uint8_t i = 0; i < n; i++) {
        member_new(view, i, true);
        view->configured |= nodeset_of(i);
    }
    r->hash = hash != 0 ? hash : usual_hash(view);
    for (uint8_t i = 0; i < n; i++) {
        r->nodes[i].view = *view;
    }
    for (uint8_t i = 0; i < n; i++) {
        own_rig_epoch(r, i);
    }
    own_rig_run(r);
}

static void print_vector(const struct own_vector *v)
{
    printf("{owner %d readers %llx epoch %u}", v->owner == NODE_NONE ? -1 : v->owner,
           (unsigned long long)v->readers, v->epoch);
}

static void print_lane(const struct own_rig *r, uint8_t from, uint8_t to, uint8_t which)
{
    const struct own_rig_lane *lane = &r->lanes[from][to][which];
    for (uint32_t i = 0; i < lane->n; i++) {
        const struct own_rig_message *m = &lane->messages[(lane->first + i) % OWN_RIG_LANE];
        printf("  %u -> %u: %s ts %llu epoch %u\n", from, to,
               m->kind < OWN_MSG_END ? own_kind_names[m->kind] : "(commit)",
               (unsigned long long)stamp_version(m->ts), m->epoch);
    }
}

void own_rig_print(const struct own_rig *r)
{
    const struct view *view = own_rig_newest(r);
    printf("view %u live %llx operational %llx directory %llx reliable %llu: %s\n", view->epoch,
           (unsigned long long)view->live, (unsigned long long)view->operational,
           (unsigned long long)own_directory(view, r->hash),
           (unsigned long long)stamp_version(r->reliable), r->wrong == NULL ? "" : r->wrong);
    for (uint8_t i = 0; i < r->n; i++) {
        const struct own_rig_node *n = &r->nodes[i];
        printf("node %u%s view %u entry %llu.%u ", i, n->crashed ? " (crashed)" : "", n->view.epoch,
               (unsigned long long)stamp_version(n->entry.ts), stamp_cid(n->entry.ts));
        print_vector(&n->entry.vector);
        printf(" %s %llu.%u by %u seq %u ", own_state_names[n->busy.state],
               (unsigned long long)stamp_version(n->busy.ts), stamp_cid(n->busy.ts),
               n->busy.request.requester, n->busy.request.seq);
        print_vector(&n->busy.before);
        printf("%s%s%s mine %u seq %u retry %u%s acked %llx; %s%s%s v%llu state %u commits %u "
               "stored %u "
               "recovered %llx settled %llx forgot %llu clock %llu\n",
               n->busy.owes ? " owes" : "", n->busy.replays ? " replays" : "",
               n->busy.stale ? " stale" : "", n->busy.mine.type, n->busy.mine.seq,
               n->busy.mine.retry, n->busy.waits ? " waits" : "",
               (unsigned long long)n->busy.mine_acked, n->have ? "have" : "none",
               n->owned ? " OWNED" : "", n->shut ? " shut" : "",
               (unsigned long long)stamp_version(n->version), n->state, n->commits_n, n->stored_n,
               (unsigned long long)n->recovered, (unsigned long long)n->settled,
               (unsigned long long)n->forgot, (unsigned long long)n->clock);
    }
    for (uint32_t i = 0; i < (uint32_t)r->n * r->n * OWN_RIG_LANES; i++) {
        print_lane(r, (uint8_t)(i / OWN_RIG_LANES / r->n), (uint8_t)(i / OWN_RIG_LANES % r->n),
                   (uint8_t)(i % OWN_RIG_LANES));
    }
}
