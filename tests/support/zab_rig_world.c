/* The rig's world: processes, views, chunks, and schedules at random. */
#include <string.h>

#include "support/zab_rig.h"

/* ---- Processes and views ---- */

static void fresh_process(struct rig *r, uint8_t node, uint32_t epoch)
{
    struct rig_node *n = &r->nodes[node];
    for (uint32_t w = 0; w < RIG_WORKERS; w++) {
        memset(&n->workers[w], 0, sizeof n->workers[w]);
        for (uint32_t i = 0; i < RIG_SLOTS; i++) {
            n->workers[w].slots[i].ref = slot_ref((uint8_t)w, i + 1);
            n->workers[w].slots[i].gen = 1;
        }
    }
    for (uint32_t k = 0; k < RIG_KEYS; k++) {
        n->keys[k].meta = zab_ops.blank;
        n->keys[k].value = 0;
    }
    n->first = 1;
    n->last = 0;
    n->taken = 0;
    n->ready_epoch = 0;
    n->born = epoch;
    n->copied = 0;
    n->crashed = false;
    n->serves = false;
}

void rig_init_cold(struct rig *r, uint8_t n, uint64_t rules_off, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    random_init(&r->random, seed);
    r->config.rules_off = rules_off;
    r->n = n;
    struct view *view = &r->views[0];
    view->generation = 7;
    view->epoch = 1;
    view->configured = ((nodeset)1 << n) - 1;
    view->live = view->configured;
    view->operational = view->configured;
    for (uint8_t i = 0; i < n; i++) {
        view->members[i] =
            (struct view_member){.nonce = i + 1u, .admitted = 1, .role = VIEW_ROLE_OPERATIONAL};
        fresh_process(r, i, 1);
    }
    r->nviews = 1;
}

void rig_init(struct rig *r, uint8_t n, uint64_t rules_off, uint64_t seed)
{
    rig_init_cold(r, n, rules_off, seed);
    rig_run(r);
}

bool rig_may_drop(const struct rig *r, nodeset drops)
{
    const struct view *view = rig_newest(r);
    nodeset rest = view->live & ~drops;
    return view_majority(view, rest) && (view->operational & rest) != 0;
}

void rig_view(struct rig *r, nodeset drops, nodeset admits, nodeset promotes)
{
    HK_ASSERT(r->nviews < RIG_VIEWS && rig_may_drop(r, drops));
    struct view *next = &r->views[r->nviews];
    *next = *rig_newest(r);
    r->nviews++;
    next->epoch++;
    next->live &= ~drops;
    next->operational &= ~drops;
    for (nodeset rest = drops; rest != 0; rest &= rest - 1) {
        memset(&next->members[nodeset_first(rest)], 0, sizeof next->members[0]);
    }
    for (nodeset rest = admits & ~next->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        next->members[node] = (struct view_member){
            .nonce = 100u + next->epoch, .admitted = next->epoch, .role = VIEW_ROLE_SHADOW};
        next->live |= nodeset_of(node);
        fresh_process(r, node, next->epoch);
    }
    for (nodeset rest = promotes & next->live; rest != 0; rest &= rest - 1) {
        next->members[nodeset_first(rest)].role = VIEW_ROLE_OPERATIONAL;
        next->operational |= nodeset_of(nodeset_first(rest));
    }
}

void rig_crash(struct rig *r, uint8_t node)
{
    r->nodes[node].crashed = true;
}

void rig_adopt_worker(struct rig *r, uint8_t node, uint8_t worker)
{
    struct rig_node *n = &r->nodes[node];
    struct rig_worker *w = &n->workers[worker];
    const struct view *view = rig_newest(r);
    if (!rig_alive(r, node) || w->view.epoch == view->epoch) {
        return;
    }
    if (!nodeset_has(view->live, node) || view->members[node].admitted != n->born) {
        rig_crash(r, node); /* it learns that it was dropped, and wipes itself */
        return;
    }
    w->view = *view;
    rig_step_slots_view(r, node, worker);
    if (worker == 0) {
        rig_step_view(r, node);
    }
}

void rig_adopt(struct rig *r, uint8_t node)
{
    for (uint8_t w = 0; w < RIG_WORKERS; w++) {
        rig_adopt_worker(r, node, w);
    }
}

/* As may_donate and is_shadow in node/transfer.c: both are in the epoch. */
bool rig_chunk(struct rig *r, uint8_t donor, uint8_t shadow, uint8_t key)
{
    struct rig_node *from = &r->nodes[donor];
    struct rig_node *to = &r->nodes[shadow];
    const struct view *view = &from->workers[0].view;
    if (!rig_alive(r, donor) || !rig_alive(r, shadow) || !nodeset_has(view->operational, donor) ||
        from->ready_epoch != view->epoch || to->ready_epoch != view->epoch ||
        to->workers[0].view.epoch != view->epoch || nodeset_has(view->operational, shadow)) {
        return false;
    }
    if (from->keys[key].meta.ts == 0) {
        to->copied |= 1u << key; /* the chunk has nothing of it */
        return true;
    }
    struct msg m = {.epoch = view->epoch,
                    .ts = from->keys[key].meta.ts,
                    .key = bytes_of(rig_key_name(key), 1),
                    .vflags = from->keys[key].meta.flags & KEY_VALUE_FLAGS,
                    .value = bytes_of("v", from->keys[key].value != 0 ? 1 : 0)};
    zab_ops.item(&from->keys[key].meta, &m);
    rig_put_item(r, donor, shadow, &m, from->keys[key].value);
    return true;
}

/* ---- Schedules ---- */

static bool deliver_all(struct rig *r)
{
    bool any = false;
    for (uint8_t from = 0; from < r->n; from++) {
        for (uint8_t to = 0; to < r->n; to++) {
            for (uint8_t i = 0; i < RIG_WORKERS * RIG_WORKERS; i++) {
                while (r->violation == NULL &&
                       rig_deliver(r, from, i / RIG_WORKERS, to, i % RIG_WORKERS)) {
                    any = true;
                }
            }
        }
    }
    return any;
}

static bool tell_all(struct rig *r)
{
    bool any = false;
    for (uint8_t i = 0; i < r->n; i++) {
        for (uint8_t w = 0; w < RIG_WORKERS; w++) {
            while (rig_mail(r, i, w)) {
                any = true;
            }
            any |= rig_tell(r, i, w);
        }
    }
    return any;
}

static void flush_all(struct rig *r)
{
    for (uint8_t i = 0; i < r->n && r->violation == NULL; i++) {
        rig_flush(r, i);
    }
}

void rig_exchange(struct rig *r, uint32_t rounds)
{
    for (; rounds > 0 && r->violation == NULL; rounds--) {
        (void)deliver_all(r);
        flush_all(r);
        (void)tell_all(r);
    }
}

static uint32_t open_updates(const struct rig *r)
{
    uint32_t n = 0;
    for (uint8_t i = 0; i < r->n; i++) {
        for (uint32_t k = 0; rig_alive(r, i) && k < RIG_WORKERS * RIG_SESSIONS; k++) {
            n += r->nodes[i].workers[k / RIG_SESSIONS].sessions[k % RIG_SESSIONS].n;
        }
    }
    return n;
}

void rig_run(struct rig *r)
{
    uint32_t quiet = 0;
    for (uint32_t round = 0; round < 2000 && quiet < 4 && r->violation == NULL; round++) {
        for (uint8_t i = 0; i < r->n; i++) {
            rig_adopt(r, i);
        }
        bool any = deliver_all(r);
        flush_all(r);
        any |= tell_all(r);
        for (uint8_t i = 0; i < r->n; i++) {
            for (uint8_t w = 0; w < RIG_WORKERS; w++) {
                rig_issue(r, i, w);
            }
        }
        quiet = any ? 0 : quiet + 1;
    }
}

bool rig_settle(struct rig *r)
{
    rig_run(r);
    const struct view *view = rig_newest(r);
    if (r->violation != NULL || open_updates(r) > 0) {
        return false;
    }
    for (nodeset rest = view->live; rest != 0; rest &= rest - 1) {
        const struct rig_node *n = &r->nodes[nodeset_first(rest)];
        bool serves = nodeset_has(view->operational, nodeset_first(rest));
        if (n->crashed || n->ready_epoch != view->epoch || n->taken != r->norder) {
            return false;
        }
        for (uint32_t k = 0; serves && k < RIG_KEYS; k++) {
            if (n->keys[k].value != r->values[r->norder][k]) {
                return false;
            }
        }
    }
    return true;
}

bool rig_stands_still(const struct rig *r)
{
    const struct view *view = rig_newest(r);
    const struct zab_worker *w = &r->nodes[zab_leader(view)].workers[0].zab;
    return w->epoch == view->epoch && w->phase == ZAB_GATHER &&
           nodeset_within(view->live, w->heard);
}

static uint8_t any_node(struct rig *r)
{
    return (uint8_t)random_below(&r->random, r->n);
}

static uint8_t any_worker(struct rig *r)
{
    return (uint8_t)random_below(&r->random, RIG_WORKERS);
}

static void random_client(struct rig *r)
{
    uint8_t node = any_node(r);
    uint8_t worker = any_worker(r);
    uint8_t session = (uint8_t)random_below(&r->random, RIG_SESSIONS);
    uint8_t key = (uint8_t)random_below(&r->random, RIG_KEYS);
    switch (random_below(&r->random, 6)) {
    case 0:
        (void)rig_update(r, node, worker, session, RIG_RMW, key);
        break;
    case 1:
        (void)rig_update(r, node, worker, session, RIG_DELETE, key);
        break;
    case 2:
    case 3:
        (void)rig_update(r, node, worker, session, RIG_WRITE, key);
        break;
    default:
        (void)rig_read(r, node, worker, session, key);
        break;
    }
}

/* What a shadow has, and whether it may be promoted. */
static nodeset promotable(const struct rig *r)
{
    const struct view *view = rig_newest(r);
    nodeset set = 0;
    for (nodeset rest = view->live & ~view->operational; rest != 0; rest &= rest - 1) {
        const struct rig_node *n = &r->nodes[nodeset_first(rest)];
        bool ready = n->ready_epoch == view->epoch && n->workers[1].view.epoch == view->epoch;
        if (!n->crashed && ready && n->copied == (1u << RIG_KEYS) - 1) {
            set |= nodeset_of(nodeset_first(rest));
        }
    }
    return set;
}

/* Members whose process is gone. */
static nodeset gone(const struct rig *r)
{
    const struct view *view = rig_newest(r);
    nodeset set = 0;
    for (nodeset rest = view->live; rest != 0; rest &= rest - 1) {
        set |= rig_alive(r, nodeset_first(rest)) ? 0 : nodeset_of(nodeset_first(rest));
    }
    return set;
}

void rig_end_faults(struct rig *r)
{
    nodeset drops = gone(r);
    if (drops != 0) {
        rig_view(r, drops, 0, 0);
    }
}

static void random_view(struct rig *r)
{
    const struct view *view = rig_newest(r);
    nodeset drops = gone(r);
    nodeset admits = 0;
    for (uint8_t i = 0; i < r->n; i++) {
        bool live = nodeset_has(view->live, i);
        if (live && random_below(&r->random, 12) == 0 && rig_may_drop(r, drops | nodeset_of(i))) {
            drops |= nodeset_of(i);
        } else if (!live && random_below(&r->random, 2) == 0) {
            admits |= nodeset_of(i);
        }
    }
    nodeset promotes = promotable(r) & ~drops;
    if ((drops | admits | promotes) != 0 && r->nviews < RIG_VIEWS - 4) {
        rig_view(r, drops, admits, promotes);
    }
}

static void random_fault(struct rig *r)
{
    uint8_t node = any_node(r);
    switch (random_below(&r->random, 4)) {
    case 0:
        /* A majority stays, or no view could be decided any more. */
        if (rig_alive(r, node) && rig_may_drop(r, gone(r) | nodeset_of(node))) {
            rig_crash(r, node);
        }
        break;
    default:
        random_view(r);
        break;
    }
}

static void random_network(struct rig *r)
{
    for (uint32_t tries = 0; tries < 16; tries++) {
        uint8_t from = any_node(r);
        uint8_t to = any_node(r);
        uint8_t from_worker = any_worker(r);
        uint8_t to_worker = any_worker(r);
        uint64_t n = 1 + random_below(&r->random, 4);
        if (rig_deliver(r, from, from_worker, to, to_worker)) {
            while (--n > 0 && rig_deliver(r, from, from_worker, to, to_worker)) {
            }
            return;
        }
    }
}

void rig_random_step(struct rig *r, bool faults)
{
    uint8_t node = any_node(r);
    uint8_t worker = any_worker(r);
    switch (random_below(&r->random, 16)) {
    case 0:
        random_client(r);
        break;
    case 1:
        (void)rig_read(r, node, worker, (uint8_t)random_below(&r->random, RIG_SESSIONS),
                       (uint8_t)random_below(&r->random, RIG_KEYS));
        break;
    case 2:
    case 3:
        rig_flush(r, node);
        break;
    case 4:
        (void)rig_mail(r, node, worker);
        (void)rig_tell(r, node, worker);
        break;
    case 5:
        rig_issue(r, node, worker);
        break;
    case 6:
        rig_adopt_worker(r, node, worker);
        break;
    case 7:
        (void)rig_chunk(r, node, any_node(r), (uint8_t)random_below(&r->random, RIG_KEYS));
        rig_sweep(r, node, (uint8_t)random_below(&r->random, RIG_KEYS));
        break;
    case 8:
        if (faults && random_below(&r->random, 40) == 0) {
            random_fault(r);
        }
        break;
    default:
        random_network(r);
        break;
    }
}
