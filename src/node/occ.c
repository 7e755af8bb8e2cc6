/* Transactions over statically sharded objects, at their coordinator: effects of the machine
 * (engine/occ) turned into locks, messages and answers. Local objects are locked and read on the
 * spot; every phase sends one message to each node that it concerns. */
#include "node/occ.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/slot.h"

#define BACK_OFF_US 4u        /* the first pause after a conflict, at most */
#define BACK_OFF_SHIFT_MAX 8u /* it doubles so often */

/* ---- Making ---- */

int occ_init(struct worker *w)
{
    const struct node *n = w->node;
    bool any = false;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        any = any || (n->spaces[i].ops != NULL && n->spaces[i].sharded);
    }
    if (!any) {
        return HK_OK;
    }
    struct occs *occs = w->occs = calloc(1, sizeof *occs);
    if (occs == NULL || n->config.calls_max >= 1u << 20) {
        return HK_ERR_NOMEM;
    }
    occs->runs = calloc(n->config.calls_max, sizeof *occs->runs);
    occs->objects = calloc(TXN_OBJECTS_MAX + 1, sizeof *occs->objects);
    occs->hashes = calloc(TXN_OBJECTS_MAX + 1, sizeof *occs->hashes);
    if (occs->runs == NULL || occs->objects == NULL || occs->hashes == NULL) {
        return HK_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n->config.calls_max; i++) {
        occs->runs[i].locker = (uint32_t)n->config.self << 26 | w->index << 20 | (i + 1);
    }
    return HK_OK;
}

static void free_run(struct occ_run *r)
{
    evaluation_free(&r->evaluation);
    buffer_free(&r->placed);
    buffer_free(&r->copy);
    buffer_free(&r->values);
    buffer_free(&r->record);
}

void occ_deinit(struct worker *w)
{
    struct occs *occs = w->occs;
    if (occs == NULL) {
        return;
    }
    for (uint32_t i = 0; occs->runs != NULL && i < w->node->config.calls_max; i++) {
        free_run(&occs->runs[i]);
    }
    free(occs->runs);
    free(occs->objects);
    free(occs->hashes);
    buffer_free(&occs->out);
    buffer_free(&occs->values);
    free(occs);
}

/* ---- Beginning ---- */

static struct occ_run *run_of(const struct worker *w, const struct call *c)
{
    return &w->occs->runs[c - w->calls_memory];
}

static void make_places(struct occ_run *r)
{
    uint32_t bytes = r->evaluation.objects_n * (uint32_t)sizeof *r->places;
    r->placed.n = 0;
    r->places = (struct occ_place *)(void *)buffer_add(&r->placed, bytes);
    memset(r->places, 0, bytes);
}

/* What is to be locked: what an operation may write. */
static void mark_locks(struct occ_run *r)
{
    const struct evaluation *e = &r->evaluation;
    for (uint32_t i = 0; i < e->request.ops_n; i++) {
        if (evaluation_writes_key(&e->request.ops[i])) {
            r->places[e->index[2 * i]].lock = true;
        }
        if (e->index[2 * i + 1] != UINT16_MAX) {
            r->places[e->index[2 * i + 1]].lock = true;
        }
    }
}

static void place_all(struct worker *w, struct occ_run *r)
{
    const struct occ_config *config = w->node->spaces[r->call->op.space].engine;
    uint8_t self = w->node->config.self;
    r->homes = r->locks = r->reads = 0;
    const struct evaluation *e = &r->evaluation;
    for (uint32_t i = 0; i < e->objects_n; i++) {
        struct occ_place *p = &r->places[i];
        p->home = occ_home(w->view.configured, slot_of_key(e->objects[i].key));
        p->backups = occ_backups(w->view.configured, p->home, config);
        if (p->home != self) {
            r->homes |= nodeset_of(p->home);
            r->locks |= p->lock ? nodeset_of(p->home) : 0;
            r->reads |= p->lock ? 0 : nodeset_of(p->home);
        }
    }
}

static int occ_take(struct worker *w, struct call *c, const struct txn_request *request)
{
    struct occ_run *r = run_of(w, c);
    HK_ASSERT(r->call == NULL);
    r->call = c;
    c->brought = &occ_brought;
    r->machine = (struct occ_txn){.state = OCC_IDLE};
    r->own_bytes = false;
    r->done = false;
    r->tries = 0;
    int err = evaluation_begin(&r->evaluation, request, &c->op, w->node->spaces[c->op.space].store);
    if (err != HK_OK) {
        return err;
    }
    make_places(r);
    mark_locks(r);
    place_all(w, r);
    c->update = r->locks != 0;
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        c->update = c->update || r->places[i].lock;
    }
    return HK_OK;
}

static void occ_own(struct worker *w, struct call *c)
{
    struct occ_run *r = run_of(w, c);
    if (!r->own_bytes) {
        evaluation_own(&r->evaluation, &r->copy);
        r->own_bytes = true;
    }
}

/* ---- Sending ---- */

static void send_objects(struct worker *w, struct occ_run *r, uint8_t to, enum occ_kind kind)
{
    struct buffer *out = &w->occs->out;
    struct msg m = {
        .space = r->call->op.space,
        .kind = (uint8_t)kind,
        .slot = (uint32_t)(r - w->occs->runs) + 1,
        .gen = r->gen,
        .epoch = w->view.epoch,
        .arg = r->locker,
    };
    out->n = 0;
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        const struct occ_place *p = &r->places[i];
        bool to_backup = kind == OCC_MSG_REPLICATE;
        if (to_backup ? !nodeset_has(p->backups, to) : p->home != to) {
            continue;
        }
        if (to_backup || kind == OCC_MSG_COMMIT) {
            if (p->record_n > 0) {
                memcpy(buffer_add(out, p->record_n), r->record.at + p->record_at, p->record_n);
            } else if (!to_backup && p->lock) {
                struct occ_object o = {.key = r->evaluation.objects[i].key, .flags = OCC_LOCK};
                (void)occ_object_put(buffer_add(out, occ_object_bytes(&o)), &o);
            }
        } else if (kind == OCC_MSG_EXECUTE || p->lock == (kind == OCC_MSG_UNLOCK)) {
            struct occ_object o = {.key = r->evaluation.objects[i].key,
                                   .version = kind == OCC_MSG_VALIDATE ? p->version : 0,
                                   .flags = kind == OCC_MSG_EXECUTE && p->lock ? OCC_LOCK : 0};
            (void)occ_object_put(buffer_add(out, occ_object_bytes(&o)), &o);
        }
    }
    m.value = bytes_of(out->at, out->n);
    output_message(w, to, (uint8_t)w->index, &m);
}

static void send_all(struct worker *w, struct occ_run *r, nodeset to, enum occ_kind kind)
{
    for (; to != 0; to &= to - 1) {
        send_objects(w, r, nodeset_first(to), kind);
    }
}

/* ---- Here ---- */

static void unlock_here(struct worker *w, struct occ_run *r)
{
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        if (r->places[i].locked) {
            occ_unlock(w, r->call->op.space, r->evaluation.objects[i].key,
                       r->evaluation.objects[i].hash, r->locker);
            r->places[i].locked = false;
        }
    }
}

static void note(struct occ_run *r, uint32_t i, const struct occ_object *o)
{
    struct occ_place *p = &r->places[i];
    p->version = o->version;
    p->flags = o->flags;
    p->value_n = o->value.n;
    p->value_at = r->values.n - o->value.n;
}

/* Locks, then reads, of objects whose home this node is. False: one is locked by another. */
static bool execute_here(struct worker *w, struct occ_run *r)
{
    uint8_t space = r->call->op.space, self = w->node->config.self;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
            struct occ_place *p = &r->places[i];
            struct occ_object o = {.version = 0};
            if (p->home != self || p->lock != (pass == 0)) {
                continue;
            }
            struct bytes key = r->evaluation.objects[i].key;
            uint64_t hash = r->evaluation.objects[i].hash;
            if (p->lock ? !occ_lock(w, space, key, hash, r->locker, &r->values, &o)
                        : !occ_read(w, space, key, hash, &r->values, &o)) {
                return false;
            }
            p->locked = p->lock;
            note(r, i, &o);
        }
    }
    return true;
}

/* Whether what was only read here is as it was: with one object, and nothing elsewhere, there is
 * nothing to ask. */
static bool holds_here(struct worker *w, struct occ_run *r)
{
    if (r->evaluation.objects_n == 1) {
        return true;
    }
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        const struct occ_place *p = &r->places[i];
        if (p->home == w->node->config.self && !p->lock &&
            !occ_holds(w, r->call->op.space, r->evaluation.objects[i].key,
                       r->evaluation.objects[i].hash, p->version)) {
            return false;
        }
    }
    return true;
}

/* A client that goes in the midst of it leaves nothing locked, perhaps a backup that is ahead. */
static void occ_end(struct worker *w, struct call *c)
{
    struct occ_run *r = run_of(w, c);
    if (r->machine.state != OCC_IDLE) {
        send_all(w, r, r->machine.locks, OCC_MSG_UNLOCK);
        unlock_here(w, r);
        r->machine = (struct occ_txn){.state = OCC_IDLE};
    }
    r->gen++;
    r->call = NULL;
}

/* ---- Evaluation ---- */

static int fill_objects(void *context)
{
    struct occ_run *r = context;
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        const struct occ_place *p = &r->places[i];
        struct bytes stored = bytes_within(r->values.at, p->value_at, p->value_n);
        int err = evaluation_fill(&r->evaluation.objects[i], (p->flags & OCC_ABSENT) != 0,
                                  p->version, p->flags, stored, r->wall_ms);
        if (err != HK_OK) {
            return err;
        }
    }
    return HK_OK;
}

/* What changes, packed once: the same bytes go to backups and homes. */
static bool make_record(struct worker *w, struct occ_run *r, nodeset *written_out,
                        nodeset *backups_out)
{
    bool writes = false;
    r->record.n = 0;
    *written_out = *backups_out = 0;
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        struct txn_object *object = &r->evaluation.objects[i];
        struct occ_place *p = &r->places[i];
        p->record_n = 0;
        if (r->evaluation.verdict != TXN_DONE || !object->changed) {
            continue;
        }
        uint32_t cid = (uint32_t)w->node->config.self << 6 | w->index;
        struct occ_object o = {.key = object->key,
                               .version = stamp_make(++w->occs->clock, cid),
                               .flags = object->state.present ? 0 : OCC_ABSENT};
        o.value.n = op_state_stored_bytes(&object->state);
        p->record_at = r->record.n;
        p->record_n = occ_object_bytes(&o);
        uint8_t *at = buffer_add(&r->record, p->record_n);
        uint8_t *value = at + p->record_n - o.value.n;
        uint8_t vflags = 0;
        if (object->state.present) {
            (void)op_state_store(&object->state, value, &vflags);
            o.flags = vflags;
        }
        o.value.at = NULL;
        uint32_t value_n = o.value.n;
        o.value.n = 0;
        (void)occ_object_put(at, &o);
        put_u32(at + 12, value_n);
        object->version = object->state.present ? o.version : 0;
        writes = true;
        *backups_out |= p->backups;
        *written_out |= nodeset_of(p->home);
    }
    *written_out &= ~nodeset_of(w->node->config.self);
    *backups_out &= ~nodeset_of(w->node->config.self);
    return writes;
}

/* Stores what changes here: as backup (before the others' answers) or as home (after them). */
static void store_here(struct worker *w, struct occ_run *r, bool as_home)
{
    uint8_t self = w->node->config.self;
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        struct occ_place *p = &r->places[i];
        struct occ_object o;
        bool here = as_home ? p->home == self : nodeset_has(p->backups, self);
        if (p->record_n == 0 || !here) {
            continue;
        }
        struct bytes rest = bytes_of(r->record.at + p->record_at, p->record_n);
        bool whole = occ_object_take(&rest, &o);
        HK_ASSERT(whole);
        occ_store(w, r->call->op.space, &o, r->evaluation.objects[i].hash);
        p->locked = as_home ? false : p->locked;
    }
}

/* ---- Ends ---- */

static void finish(struct worker *w, struct occ_run *r)
{
    struct answer answer;
    evaluation_versions(&r->evaluation);
    evaluation_answer(&r->evaluation, &answer, &r->call->version);
    r->done = true;
    call_finish(w, r->call, &answer);
}

static void occ_fill(struct worker *w, const struct call *c, struct reply *reply)
{
    const struct occ_run *r = run_of(w, c);
    if (r->done) {
        evaluation_reply(&r->evaluation, reply);
    }
}

/* Somebody else holds something: all is let go already. */
static void again(struct worker *w, struct occ_run *r)
{
    struct call *c = r->call;
    uint32_t shift = r->tries < BACK_OFF_SHIFT_MAX ? r->tries : BACK_OFF_SHIFT_MAX;
    w->stats.txn_aborts++;
    r->tries++;
    r->gen++;
    occ_own(w, c);
    call_delay(w, c, w->now_us + random_below(&w->random, (uint64_t)BACK_OFF_US << shift));
}

/* ---- Effects ---- */

static void carry_out(struct worker *w, struct occ_run *r, const struct occ_effects *fx);

static void evaluated(struct worker *w, struct occ_run *r)
{
    struct occ_effects fx = {.n = 0};
    nodeset written, backups;
    uint32_t most = w->node->config.spaces[r->call->op.space].store.value_bytes_max;
    r->wall_ms = w->wall_ms;
    int err = evaluation_run(&r->evaluation, most, w->wall_ms, fill_objects, r);
    if (err != HK_OK) {
        send_all(w, r, r->machine.locked, OCC_MSG_UNLOCK);
        r->machine = (struct occ_txn){.state = OCC_IDLE};
        unlock_here(w, r);
        call_fail(w, r->call, err);
        return;
    }
    bool writes = make_record(w, r, &written, &backups);
    occ_evaluated(&r->machine, holds_here(w, r), writes, written, backups, &fx);
    carry_out(w, r, &fx);
}

static void wait(struct worker *w, struct occ_run *r)
{
    occ_own(w, r->call);
    list_remove(&r->call->link);
    r->call->state = CALL_WAITING;
}

static void carry_out(struct worker *w, struct occ_run *r, const struct occ_effects *fx)
{
    for (uint32_t i = 0; i < fx->n; i++) {
        nodeset to = fx->e[i].to;
        switch ((enum occ_fx)fx->e[i].kind) {
        case OCC_FX_EXECUTE:
            wait(w, r);
            send_all(w, r, to, OCC_MSG_EXECUTE);
            break;
        case OCC_FX_EVALUATE:
            evaluated(w, r); /* always the last */
            return;
        case OCC_FX_VALIDATE:
            wait(w, r);
            send_all(w, r, to, OCC_MSG_VALIDATE);
            break;
        case OCC_FX_REPLICATE:
            wait(w, r);
            store_here(w, r, false);
            send_all(w, r, to, OCC_MSG_REPLICATE);
            break;
        case OCC_FX_COMMIT:
            if (r->machine.backups == 0) {
                store_here(w, r, false); /* this node is the only backup, if there is one */
            }
            store_here(w, r, true);
            send_all(w, r, to, OCC_MSG_COMMIT);
            break;
        case OCC_FX_UNLOCK:
            send_all(w, r, to, OCC_MSG_UNLOCK);
            unlock_here(w, r);
            break;
        case OCC_FX_DONE:
            finish(w, r);
            return;
        case OCC_FX_AGAIN:
            again(w, r);
            return;
        }
    }
}

static void occ_run(struct worker *w, struct call *c)
{
    struct occ_run *r = run_of(w, c);
    struct occ_effects fx = {.n = 0};
    r->values.n = 0;
    if (!execute_here(w, r)) {
        unlock_here(w, r);
        again(w, r);
        return;
    }
    occ_begin(&r->machine, r->homes, r->locks, r->reads, &fx);
    carry_out(w, r, &fx);
}

const struct brought_ops occ_brought = {
    .take = occ_take,
    .own = occ_own,
    .run = occ_run,
    .fill = occ_fill,
    .end = occ_end,
};

/* ---- Messages ---- */

/* The objects of a home, in the order in which they were asked for. False: there are others. */
static bool take_values(struct occ_run *r, const struct msg *msg, uint8_t from)
{
    struct bytes rest = msg->value;
    struct occ_object o;
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        if (r->places[i].home != from) {
            continue;
        }
        if (!occ_object_take(&rest, &o)) {
            return false;
        }
        if (o.value.n > 0) {
            memcpy(buffer_add(&r->values, o.value.n), o.value.at, o.value.n);
        }
        note(r, i, &o);
    }
    return rest.n == 0;
}

void occ_answer_message(struct worker *w, const struct msg *msg, uint8_t from)
{
    static const uint8_t phases[OCC_MSG_END] = {[OCC_MSG_EXECUTED] = OCC_EXECUTE,
                                                [OCC_MSG_VALIDATED] = OCC_VALIDATE,
                                                [OCC_MSG_REPLICATED] = OCC_REPLICATE};
    struct occ_effects fx = {.n = 0};
    if (msg->slot == 0 || msg->slot > w->node->config.calls_max) {
        w->stats.engine_drops[ENGINE_DROP_SLOT]++;
        return;
    }
    struct occ_run *r = &w->occs->runs[msg->slot - 1];
    enum occ_state phase = (enum occ_state)phases[msg->kind];
    if (r->call == NULL || r->gen != msg->gen || r->machine.state != phase ||
        !nodeset_has(r->machine.waits, from)) {
        w->stats.engine_drops[ENGINE_DROP_SLOT]++;
        return;
    }
    bool good = msg->ts == 1;
    if (phase == OCC_EXECUTE && good && !take_values(r, msg, from)) {
        w->stats.engine_drops[ENGINE_DROP_INVALID]++;
        good = false;
    }
    uint64_t newest = 0;
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        newest = r->places[i].version > newest ? r->places[i].version : newest;
    }
    w->occs->clock =
        stamp_version(newest) > w->occs->clock ? stamp_version(newest) : w->occs->clock;
    occ_answered(&r->machine, phase, from, good, &fx);
    carry_out(w, r, &fx);
}

void occ_message(struct worker *w, const struct msg *msg, uint8_t from)
{
    if (from == NODE_NONE || msg->epoch != w->view.epoch) {
        w->stats.engine_drops[from == NODE_NONE ? ENGINE_DROP_SENDER : ENGINE_DROP_EPOCH_OLD]++;
    } else if (msg->kind == OCC_MSG_EXECUTED || msg->kind == OCC_MSG_VALIDATED ||
               msg->kind == OCC_MSG_REPLICATED) {
        occ_answer_message(w, msg, from);
    } else {
        occ_home_message(w, msg, from);
    }
}

/* What was under way may or may not have happened; nobody finishes it. */
void occ_adopt(struct worker *w)
{
    for (uint32_t i = 0; w->occs != NULL && i < w->node->config.calls_max; i++) {
        struct occ_run *r = &w->occs->runs[i];
        if (r->call != NULL && r->machine.state != OCC_IDLE) {
            r->machine = (struct occ_txn){.state = OCC_IDLE};
            unlock_here(w, r);
            call_fail(w, r->call, HK_ERR_UNKNOWN);
        }
    }
}
