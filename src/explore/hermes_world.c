#include "explore/hermes_model.h"

#include <string.h>

/* ---- Small helpers ---- */

uint16_t ts_small(uint64_t ts)
{
    uint64_t version = stamp_version(ts);
    uint32_t cid = stamp_cid(ts);
    HK_ASSERT(version < 1u << 12 && cid < 1u << 4);
    return (uint16_t)(version << 4 | cid);
}

uint64_t ts_large(uint16_t ts)
{
    return stamp_make((uint64_t)ts >> 4, ts & 15u);
}

uint8_t value_op(uint8_t value)
{
    HK_ASSERT(value > VALUE_START && value < VALUES);
    return (uint8_t)((value - VALUE_START - 1u) / MODEL_TRIES);
}

bool value_is_nil(const struct hermes_model *model, uint8_t value)
{
    if (value > VALUE_START) {
        return model->setup->ops[value_op(value)] == TYPE_DELETE;
    }
    return value == VALUE_NONE || model->setup->start != START_VALUE;
}

bool op_ended(const struct model_op *op)
{
    return op->phase >= PHASE_OK;
}

const struct model_view *world_newest(const struct model_world *w)
{
    return &w->views[w->nviews - 1];
}

const struct model_view *world_view_of(const struct model_world *w, uint8_t node)
{
    HK_ASSERT(w->nodes[node].born != 0);
    return &w->views[w->nodes[node].epoch - 1];
}

bool world_readable(const struct model_world *w, uint8_t node)
{
    return w->nodes[node].born != 0 && (w->nodes[node].meta.flags & KEY_READABLE) != 0;
}

bool world_leased(const struct model_world *w, uint8_t node)
{
    const struct model_view *newest = world_newest(w);
    uint8_t born = w->nodes[node].born;
    return born != 0 && nodeset_has(newest->operational, node) && newest->born[node] == born &&
           nodeset_has(world_view_of(w, node)->operational, node);
}

bool world_serves(const struct hermes_model *model, const struct model_world *w, uint8_t node)
{
    if (!model->setup->async) {
        return world_leased(w, node);
    }
    return w->nodes[node].born != 0 && nodeset_has(world_view_of(w, node)->operational, node);
}

/* ---- Processes and views ---- */

static void blank_node(struct model_node *n)
{
    memset(n, 0, sizeof *n);
    n->meta = hermes_ops.blank;
    for (uint32_t i = 0; i < MODEL_SLOTS; i++) {
        n->slots[i].ref = slot_ref(0, i + 1);
        n->slots[i].gen = 1;
    }
}

void world_new_process(const struct hermes_model *model, struct model_world *w, uint8_t node)
{
    (void)model;
    struct model_node *n = &w->nodes[node];
    blank_node(n);
    n->born = world_newest(w)->born[node];
    n->epoch = w->nviews;
    n->confirms = 1;
}

void world_abandon(struct model_world *w, uint8_t node)
{
    for (uint32_t i = 0; i < MODEL_OPS; i++) {
        struct model_op *op = &w->ops[i];
        if (op->phase != PHASE_WAITING && !op_ended(op) && op->node == node) {
            op->phase = PHASE_UNKNOWN;
        }
    }
}

void world_kill(struct model_world *w, uint8_t node)
{
    world_abandon(w, node);
    memset(&w->nodes[node], 0, sizeof w->nodes[node]);
}

struct model_view *world_next_view(struct model_world *w)
{
    if (w->nviews == MODEL_VIEWS) {
        return NULL;
    }
    struct model_view *view = &w->views[w->nviews++];
    *view = w->views[w->nviews - 2];
    return view;
}

/* ---- The beginning ---- */

static void start_key(const struct hermes_model *model, const struct model_world *w,
                      struct model_node *n)
{
    uint8_t start = model->setup->start;
    bool first = n == w->nodes;
    if (start == START_NOTHING || start == START_TWICE || (start == START_PARTLY && first)) {
        return;
    }
    n->value = VALUE_START;
    n->meta.ts = stamp_make(model->setup->version == 0 ? 4 : model->setup->version, 1);
    n->meta.flags = KEY_READABLE;
    if (start != START_VALUE) {
        n->meta.flags |= KEY_TOMBSTONE;
        /* Long before the first moment (shell.c), which is a thousand ticks after zero. */
        n->meta.aux = 1;
    }
    if (start == START_PARTLY) {
        n->meta.flags |= KEY_REPORTED;
    }
    if (start == START_AGREED) {
        n->meta.flags |= KEY_REPORTED | KEY_AGREED;
    }
}

/* What a long execution leads to: A's first update <2,A> was replayed by the last node, which was
 * paused when only the acknowledgement of B was left to be taken up, and dropped. The others went
 * on; the key was deleted and forgotten. */
static void start_twice(const struct hermes_model *model, struct model_world *w)
{
    uint8_t last = (uint8_t)(model->setup->nodes - 1);
    struct model_node *n = &w->nodes[last];
    struct model_view *view = world_next_view(w);
    HK_ASSERT(view != NULL);
    view->live &= (uint8_t)~nodeset_of(last);
    view->operational = view->live;
    view->born[last] = 0;
    view->cid[last] = 0;
    for (uint8_t i = 0; i < last; i++) {
        w->nodes[i].epoch = w->nviews;
    }
    n->meta = (struct key_meta){.ts = stamp_make(2, 1), .state = HERMES_REPLAY, .flags = KEY_FIRST};
    n->value = VALUE_START;
    n->slots[0].kind = FLOW_REPLAY;
    n->slots[0].ts = n->meta.ts;
    n->slots[0].epoch = 1;
    n->slots[0].acked = w->views[0].live & ~nodeset_of(last) & ~nodeset_of(1);
    w->messages[w->nmessages++] = (struct model_message){.ts = ts_small(n->meta.ts),
                                                         .kind = HERMES_ACK,
                                                         .from = 1,
                                                         .to = last,
                                                         .from_born = 1,
                                                         .to_born = 1,
                                                         .epoch = 1,
                                                         .slot = 1,
                                                         .gen = 1};
}

void hermes_begin(const void *self, void *state_out)
{
    const struct hermes_model *model = self;
    struct model_world *w = state_out;
    const struct hermes_setup *setup = model->setup;
    memset(w, 0, sizeof *w);
    w->nviews = 1;
    struct model_view *view = &w->views[0];
    for (uint8_t i = 0; i < setup->nodes; i++) {
        view->live |= (uint8_t)nodeset_of(i);
        view->born[i] = 1;
        view->cid[i] = (uint8_t)(i + 1);
    }
    view->operational = view->live;
    if (setup->shadow != 0) {
        view->operational &= (uint8_t)~nodeset_of((uint8_t)(setup->shadow - 1));
    }
    for (uint8_t i = 0; i < setup->nodes; i++) {
        world_new_process(model, w, i);
        if (nodeset_has(view->operational, i)) {
            start_key(model, w, &w->nodes[i]);
        }
    }
    if (setup->start == START_TWICE) {
        start_twice(model, w);
    }
    w->last = w->nodes[1].value;
    w->seen = 1u << w->last;
    world_normalise(model, w);
}

/* ---- Messages ---- */

static bool to_slot_of_receiver(uint8_t kind)
{
    return kind == HERMES_ACK || kind == HERMES_CHECK_OK || kind == HERMES_FORGET_REPORT;
}

static int compare_messages(const struct model_message *a, const struct model_message *b)
{
    return memcmp(a, b, sizeof *a);
}

void world_send(struct shell *shell, const struct model_message *message)
{
    struct model_world *w = shell->world;
    uint32_t at = 0;
    while (at < w->nmessages && compare_messages(&w->messages[at], message) < 0) {
        at++;
    }
    if (at < w->nmessages && compare_messages(&w->messages[at], message) == 0) {
        return;
    }
    if (w->nmessages == MODEL_MESSAGES) {
        shell->broken = "the model has no room for a message: MODEL_MESSAGES is too small";
        return;
    }
    memmove(&w->messages[at + 1], &w->messages[at], (w->nmessages - at) * sizeof w->messages[0]);
    w->messages[at] = *message;
    w->nmessages++;
}

/* Whether a message about this ts has nothing new to say to the node. Not where tombstones are
 * forgotten: then timestamps come back. */
static bool says_nothing(const struct hermes_model *model, const struct model_node *n,
                         const struct model_message *m)
{
    const struct hermes_setup *setup = model->setup;
    bool forgetting = setup->ticks > 0 || setup->start != START_VALUE;
    if (forgetting) {
        return false;
    }
    uint64_t ts = ts_large(m->ts);
    bool known = ts < n->meta.ts || (ts == n->meta.ts && n->meta.state == HERMES_VALID);
    switch (m->kind) {
    case HERMES_VAL:
    case HERMES_ACK_ALL:
        return known;
    case HERMES_INV:
        return known && (m->flags & HERMES_F_ANSWER) != 0;
    default:
        return false;
    }
}

/* The slot that the message names, or NULL if it is not in use by what the message is about. */
static const struct slot *named_slot(const struct model_world *w, const struct model_message *m)
{
    bool receiver = to_slot_of_receiver(m->kind);
    const struct model_node *n = &w->nodes[receiver ? m->to : m->from];
    uint8_t born = receiver ? m->to_born : m->from_born;
    if (m->slot == 0 || n->born != born) {
        return NULL;
    }
    const struct slot *slot = &n->slots[m->slot - 1];
    return slot->kind != FLOW_FREE && (uint8_t)slot->gen == m->gen ? slot : NULL;
}

/* Nobody ever takes it up, whatever happens. */
static bool is_dead(const struct hermes_model *model, const struct model_world *w,
                    const struct model_message *m)
{
    const struct model_node *to = &w->nodes[m->to];
    if (to->born != m->to_born) {
        return true;
    }
    if (m->kind == MESSAGE_EMPTY || m->kind == HERMES_ITEM) {
        if (to->copied || m->epoch < to->epoch) {
            return true;
        }
    }
    const struct slot *slot = NULL;
    if (to_slot_of_receiver(m->kind)) {
        slot = named_slot(w, m);
        if (slot == NULL) {
            return true;
        }
    }
    if (!model->exact) {
        return false;
    }
    const struct model_view *view = world_view_of(w, m->to);
    bool stranger = !nodeset_has(view->live, m->from) || view->born[m->from] != m->from_born;
    if ((m->kind != HERMES_VAL && m->epoch < to->epoch) ||
        (stranger && m->from_born <= to->epoch)) {
        return true;
    }
    if (slot != NULL && nodeset_has(slot->acked, m->from)) {
        return true;
    }
    return says_nothing(model, to, m);
}

/* ---- The one form ---- */

static void drop_dead(const struct hermes_model *model, struct model_world *w)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->nmessages; i++) {
        if (!is_dead(model, w, &w->messages[i])) {
            w->messages[kept++] = w->messages[i];
        }
    }
    memset(&w->messages[kept], 0, (w->nmessages - kept) * sizeof w->messages[0]);
    w->nmessages = (uint16_t)kept;
}

/* Generations count on for ever; all that matters is which messages are about the slot's present
 * use. */
static void renumber(struct model_world *w)
{
    bool changed = false;
    for (uint32_t i = 0; i < w->nmessages; i++) {
        struct model_message *m = &w->messages[i];
        uint8_t gen = named_slot(w, m) != NULL ? 1 : 0;
        changed = changed || gen != m->gen;
        m->gen = gen;
    }
    for (uint32_t i = 0; i < MODEL_NODES; i++) {
        for (uint32_t k = 0; k < MODEL_SLOTS && w->nodes[i].born != 0; k++) {
            w->nodes[i].slots[k].gen = 1;
        }
    }
    if (!changed) {
        return;
    }
    /* Sorted again, without what has become the same. */
    for (uint32_t i = 1; i < w->nmessages; i++) {
        struct model_message m = w->messages[i];
        uint32_t at = i;
        while (at > 0 && compare_messages(&w->messages[at - 1], &m) > 0) {
            w->messages[at] = w->messages[at - 1];
            at--;
        }
        w->messages[at] = m;
    }
    uint32_t kept = w->nmessages > 0 ? 1 : 0;
    for (uint32_t i = 1; i < w->nmessages; i++) {
        if (compare_messages(&w->messages[i], &w->messages[kept - 1]) != 0) {
            w->messages[kept++] = w->messages[i];
        }
    }
    memset(&w->messages[kept], 0, (w->nmessages - kept) * sizeof w->messages[0]);
    w->nmessages = (uint16_t)kept;
}

/* A replay that the key is no longer in: any step of it only closes the slot. */
static bool is_over(const struct model_node *n, const struct slot *slot)
{
    return slot->kind == FLOW_REPLAY && (n->meta.state != HERMES_REPLAY || n->meta.ts != slot->ts);
}

static bool counts_acks(const struct hermes_model *model)
{
    uint64_t off = UINT64_C(1) << HERMES_RULE_ACK_SET | UINT64_C(1) << HERMES_RULE_NO_STALE;
    return (model->config.rules_off & off) != 0;
}

static void normalise_slot(const struct hermes_model *model, struct model_node *n, uint32_t k)
{
    struct slot *slot = &n->slots[k];
    if (slot->kind == FLOW_FREE || is_over(n, slot)) {
        /* Whoever still names the old use must not meet the next one. */
        uint32_t gen = slot->kind == FLOW_FREE ? slot->gen : slot->gen + 1;
        *slot = (struct slot){.ref = slot_ref(0, k + 1), .gen = gen};
        return;
    }
    slot->deadline_us = 0;
    slot->tries = 0;
    if (!model->setup->o3) {
        slot->flags = 0;
    }
    if (!counts_acks(model)) {
        memset(slot->aux, 0, sizeof slot->aux);
    }
}

static void normalise_node(const struct hermes_model *model, struct model_node *n)
{
    n->meta.flags &= (uint8_t)~KEY_WAITERS;
    for (uint32_t k = 0; k < MODEL_SLOTS; k++) {
        normalise_slot(model, n, k);
    }
    uint64_t early = ts_large(n->early_ts);
    bool taken = early < n->meta.ts || (early == n->meta.ts && n->meta.state == HERMES_VALID);
    if (model->exact && (taken || n->early_epoch != n->epoch)) {
        n->early_ts = 0;
        n->early_from = 0;
        n->early_epoch = 0;
    }
}

void world_normalise(const struct hermes_model *model, struct model_world *w)
{
    for (uint32_t i = 0; i < MODEL_NODES; i++) {
        if (w->nodes[i].born != 0) {
            normalise_node(model, &w->nodes[i]);
        }
    }
    drop_dead(model, w);
    renumber(w);
}
