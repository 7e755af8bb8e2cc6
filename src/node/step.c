/* Steps: a key machine under its bucket's lock, a flow machine on its worker, and what becomes of
 * their effects. */
#include "node/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

uint64_t portable_hash(struct worker *w, struct bytes key)
{
    struct node *n = w->node;
    return hash_bytes(&n->portable, key);
}

/* ---- Flows ---- */

struct flow *flow_reserve(struct worker *w)
{
    struct list_link *link = list_pop_front(&w->flows_free);
    return link == NULL ? NULL : list_entry(link, struct flow, link);
}

void flow_give_back(struct worker *w, struct flow *f)
{
    uint32_t ref = f->slot.ref;
    uint32_t gen = f->slot.gen;
    memset(&f->slot, 0, sizeof f->slot);
    f->slot.ref = ref;
    f->slot.gen = gen;
    list_push_front(&w->flows_free, &f->link);
}

static struct flow *flow_at(struct worker *w, uint32_t index)
{
    return index == 0 || index > w->node->config.flows_max ? NULL : &w->flows_memory[index];
}

struct flow *flow_of_ref(struct worker *w, uint32_t ref)
{
    struct flow *f = flow_at(w, slot_ref_index(ref));
    return f != NULL && slot_ref_worker(ref) == w->index && f->used ? f : NULL;
}

static void flow_arm(struct worker *w, struct flow *f)
{
    if (f->slot.deadline_us == 0) {
        wheel_disarm(&w->wheel, &f->timer);
    } else if (f->timer.place == TIMER_IDLE || f->timer.due_us != f->slot.deadline_us) {
        wheel_arm(&w->wheel, &f->timer, f->slot.deadline_us);
    }
}

/* A flow without a call owns its key: the call's bytes would not outlive it. */
void flow_copy_key(struct worker *w, struct flow *f, struct bytes key)
{
    f->key_memory = store_alloc(w->threads[f->space], key.n > 0 ? key.n : 1, true);
    f->key_heap = f->key_memory == NULL;
    if (f->key_heap) {
        /* A replay frees memory sooner than it costs any: it must not fail for lack of it. */
        f->key_memory = malloc(key.n > 0 ? key.n : 1);
        HK_ASSERT(f->key_memory != NULL);
    }
    if (key.n > 0) {
        memcpy(f->key_memory, key.at, key.n);
    }
    f->key = bytes_of(f->key_memory, key.n);
}

void flow_open(struct worker *w, struct flow *f, const struct step *s)
{
    f->used = true;
    f->space = s->space;
    f->hash = s->hash;
    f->waiting_us = w->now_us;
    f->key_memory = NULL;
    f->call = NULL;
    f->moves = s->moves;
    if (s->issued) {
        f->call = s->call;
        f->key = s->call->op.key;
        s->call->flow = f;
        s->call->state = CALL_ISSUED;
        s->call->ungated = false;
    } else if (s->asked) {
        call_ask(w, s->call, f);
    } else {
        flow_copy_key(w, f, s->key);
        w->stats.other_flows++;
    }
    list_push_back(&w->flows, &f->link);
    flow_arm(w, f);
}

static uint32_t gen_after(uint32_t gen)
{
    return gen + 1 != 0 ? gen + 1 : 1; /* 0 means "whatever its generation" */
}

/* Whether somebody has posted a mail to this flow that was not taken out yet. */
static bool flow_owed(struct flow *f, uint32_t gen)
{
    if (!f->claimed) {
        return false;
    }
    f->claimed = false;
    /* Pairs with flow_post: only one of the two finds the generation here. */
    return !atomic_compare_exchange_strong_explicit(&f->claim, &gen, 0, memory_order_acq_rel,
                                                    memory_order_acquire);
}

/* EFF_HOLD: the payload waits with the flow. False: there is no memory for it, and the update is to
 * be refused; from then on nothing may be, so what is stored in the end needs no permission. */
static bool hold(struct worker *w, struct flow *f, const struct step *s)
{
    uint32_t n = s->payload.n > 0 ? s->payload.n : 1;
    f->held = store_alloc(w->threads[s->space], n, s->force);
    if (f->held == NULL) {
        return false;
    }
    if (s->payload.n > 0) {
        memcpy(f->held, s->payload.at, s->payload.n);
    }
    f->held_n = s->payload.n;
    f->held_flags = s->payload_flags;
    return true;
}

static void release_held(struct worker *w, struct flow *f)
{
    if (f->held != NULL) {
        store_free(w->threads[f->space], f->held, f->held_n > 0 ? f->held_n : 1);
        f->held = NULL;
    }
}

void flow_close(struct worker *w, struct flow *f)
{
    HK_ASSERT(f->used && f->call == NULL && list_empty(&f->checking));
    if (f->moves) {
        move_done(w, f);
    }
    f->moves = false;
    release_held(w, f);
    wheel_disarm(&w->wheel, &f->timer);
    list_remove(&f->link);
    if (f->key_heap) {
        free(f->key_memory);
    } else if (f->key_memory != NULL) {
        store_free(w->threads[f->space], f->key_memory, f->key.n > 0 ? f->key.n : 1);
    }
    f->key_memory = NULL;
    f->key_heap = false;
    f->used = false;
    f->check = false;
    f->key = bytes_of(NULL, 0);
    /* Answers that are still under way to this slot name the old generation. */
    uint32_t gen = f->slot.gen;
    f->slot.gen = gen_after(gen);
    f->owed = flow_owed(f, gen);
    if (!f->owed) {
        flow_give_back(w, f);
    }
}

static void flow_reply(struct worker *w, struct flow *f, enum reply_code code,
                       const struct msg *msg)
{
    struct list_link *link;
    while ((link = list_pop_front(&f->checking)) != NULL) {
        struct call *c = list_entry(link, struct call, link);
        if (code == REPLY_VALUE) {
            call_value(w, c, msg);
        } else {
            call_outcome(w, c, code);
        }
    }
    if (f->call != NULL) {
        struct call *c = f->call;
        f->call = NULL;
        c->flow = NULL;
        c->version = f->slot.ts;
        call_outcome(w, c, code);
    }
}

/* ---- Effects that both machines have ---- */

/* ref: the locked object, if the value is what stands there. */
static void send_effect(struct worker *w, uint8_t space, const struct effect *e, struct bytes key,
                        struct bytes value, uint8_t vflags, const struct store_ref *ref)
{
    struct msg m = {
        .space = space,
        .kind = e->code,
        .flags = e->flags,
        .slot = e->slot,
        .gen = e->gen,
        .epoch = w->view.epoch,
        .ts = e->ts,
    };
    if ((e->with & EFF_NO_KEY) == 0) {
        m.key = key;
    }
    if ((e->with & (EFF_VALUE | EFF_PAYLOAD)) != 0) {
        m.value = value;
        m.vflags = vflags;
    }
    enum engine_route route = w->node->spaces[space].ops->route(&m);
    if (e->kind == EFF_SEND) {
        m.arg = e->set;
        uint8_t target = route == ROUTE_SLOT     ? slot_ref_worker(m.slot)
                         : route == ROUTE_WORKER ? 0
                                                 : (uint8_t)w->index;
        output_value(w, e->to, target, &m, ref);
        return;
    }
    m.arg = e->arg;
    output_values(w, e->set, route == ROUTE_WORKER ? 0 : (uint8_t)w->index, &m, ref);
}

void step_send(struct worker *w, uint8_t space, const struct effect *e, struct bytes key)
{
    send_effect(w, space, e, key, bytes_of(NULL, 0), 0, NULL);
}

void step_ignored(struct worker *w, const struct effect *e, uint8_t from)
{
    if (e->kind == EFF_DROP) {
        w->stats.engine_drops[e->code]++;
    } else if (e->kind == EFF_BEHIND && from < NODES_MAX) {
        atomic_fetch_or_explicit(&w->node->hints, nodeset_of(from), memory_order_relaxed);
    }
}

/* A member that left an update unacknowledged for a lease is suspected, heartbeats or not (a bridge
 * partition: it may hear us while we do not hear it). Not the member that issued the timestamp: it
 * may rightly leave a replay of its own pending RMW unanswered. */
static void suspect_silent(struct worker *w, const struct flow *f, const struct effect *e)
{
    uint64_t lease_us = w->node->config.view.lease_us;
    if (e->kind != EFF_BCAST || e->slot != f->slot.ref || w->now_us - f->waiting_us <= lease_us) {
        return;
    }
    nodeset silent = e->set & ~nodeset_of(w->node->config.self);
    uint8_t issuer = view_cid_owner(&w->view, stamp_cid(e->ts));
    if (issuer != NODE_NONE) {
        silent &= ~nodeset_of(issuer);
    }
    atomic_fetch_or_explicit(&w->node->suspects, silent, memory_order_relaxed);
}

/* Large values take long to arrive: to send them again meanwhile would only make it longer, and
 * nobody is silent who cannot have them yet. For a while; then what was sent counts as lost. */
static nodeset held_back(const struct worker *w, const struct flow *f, const struct effect *e,
                         uint32_t value_bytes)
{
    nodeset held = 0;
    if (e->kind != EFF_BCAST || (e->with & EFF_VALUE) == 0 ||
        w->now_us - f->waiting_us > HELD_LEASES * (uint64_t)w->node->config.view.lease_us) {
        return 0;
    }
    for (nodeset rest = e->set & ~nodeset_of(w->node->config.self); rest != 0; rest &= rest - 1) {
        uint8_t to = nodeset_first(rest);
        held |= output_under_way(w, to, value_bytes) ? nodeset_of(to) : 0;
    }
    return held;
}

/* ---- Key steps ---- */

void step_init(struct worker *w, struct step *s, uint8_t space, enum ev_kind kind)
{
    struct node *n = w->node;
    s->key = bytes_of(NULL, 0);
    s->hash = 0;
    s->space = space;
    s->mine = NULL;
    s->call = NULL;
    s->payload = bytes_of(NULL, 0);
    s->payload_flags = 0;
    s->force = false;
    s->err = HK_OK;
    s->parked = false;
    s->issued = false;
    s->asked = false;
    s->lost = false;
    s->later = false;
    s->begun = false;
    s->moves = false;
    s->event = (struct event){
        .kind = kind,
        .from = NODE_NONE,
        .self = n->config.self,
        .confirms =
            atomic_load_explicit(&n->confirms, memory_order_acquire) &&
            w->view.epoch == atomic_load_explicit(&n->published_epoch, memory_order_relaxed),
        .now_us = w->now_us,
        .random = random_next(&w->random),
        .view = &w->view,
        .config = n->spaces[space].engine,
        .worker = w->engine_state[space],
    };
}

/* Which kinds of effects there are, one bit each. */
static uint32_t effect_kinds(const struct effects *fx)
{
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < fx->n; i++) {
        kinds |= 1u << fx->e[i].kind;
    }
    return kinds;
}

static bool has_effect(uint32_t kinds, enum eff_kind kind)
{
    return (kinds >> kind & 1u) != 0;
}

/* Publishes what the machine decided; HK_OK, or what the store said. */
static int publish(struct step *s, struct store_ref *ref, uint32_t kinds, struct key_meta *meta,
                   const struct key_meta *before)
{
    if (has_effect(kinds, EFF_FORGET)) {
        store_remove(ref);
        return HK_OK;
    }
    if (has_effect(kinds, EFF_APPLY)) {
        meta->flags = (uint8_t)((meta->flags & ~KEY_VALUE_FLAGS) | s->payload_flags);
        return store_set(ref, meta, s->payload, s->force);
    }
    if (memcmp(meta, before, sizeof *meta) != 0) {
        HK_ASSERT(ref->object != NULL);
        store_set_meta(ref, meta);
    }
    return HK_OK;
}

/* Messages are written while the bucket is locked: the value that they carry is the one that
 * belongs to the timestamp. */
static void send_locked(struct worker *w, struct step *s, struct store_ref *ref,
                        const struct effects *fx, bool applied, const struct key_meta *meta)
{
    struct bytes value = s->payload;
    bool have = applied && value.n <= FRAME_GIVEN; /* of a large one, the store's own is sent */
    for (uint32_t i = 0; i < fx->n; i++) {
        struct effect e = fx->e[i];
        if (e.kind != EFF_SEND && e.kind != EFF_BCAST) {
            continue;
        }
        if ((e.with & EFF_PAYLOAD) != 0) {
            if (!applied) {
                send_effect(w, s->space, &e, s->key, s->payload, s->payload_flags, NULL);
                continue;
            }
            e.with |= EFF_VALUE; /* they are the same */
        }
        if ((e.with & EFF_VALUE) != 0 && !have) {
            HK_ASSERT(ref->object != NULL);
            value = store_value_of(ref, w->scratch, STORE_INLINE_MAX);
            have = true;
        }
        bool again = s->mine != NULL && s->event.kind == EV_FLOW &&
                     s->event.code != KEY_CODE_COMPLETE && !w->node->spaces[s->space].ordered;
        if (again) {
            e.set &= ~held_back(w, s->mine, &e, value.n);
        }
        send_effect(w, s->space, &e, s->key, value, (uint8_t)(meta->flags & KEY_VALUE_FLAGS), ref);
        if (again) {
            suspect_silent(w, s->mine, &e);
        }
    }
}

void wake_everywhere(struct worker *w, uint8_t space, uint64_t hash)
{
    call_wake(w, space, hash);
    struct mail mail = {.kind = MAIL_WAKE, .space = space, .hash = hash};
    for (uint32_t i = 0; i < w->node->config.workers; i++) {
        if (i != w->index) {
            worker_post(w, i, &mail);
        }
    }
}

static void flow_told(struct worker *w, struct flow *f, uint8_t code, uint64_t ts);

/* Mail for a flow that is named by its generation: at most one is in the mailbox, whatever peers
 * say, for only the first that finds the generation there may post. */
static void flow_post(struct worker *w, uint8_t space, uint8_t owner, const struct effect *e)
{
    const struct node_config *config = &w->node->config;
    uint32_t index = slot_ref_index(e->slot);
    if (owner >= config->workers || index == 0 || index > config->flows_max) {
        w->stats.engine_drops[ENGINE_DROP_SLOT]++;
        return;
    }
    struct flow *f = &w->node->workers[owner].flows_memory[index];
    uint32_t gen = e->gen;
    /* Pairs with flow_owed. */
    if (!atomic_compare_exchange_strong_explicit(&f->claim, &gen, 0, memory_order_acq_rel,
                                                 memory_order_relaxed)) {
        w->stats.engine_drops[ENGINE_DROP_SLOT]++;
        return;
    }
    struct mail mail = {.kind = MAIL_FLOW,
                        .space = space,
                        .ref = e->slot,
                        .gen = e->gen,
                        .code = e->code,
                        .ts = e->ts};
    worker_post(w, owner, &mail);
}

static void flow_from_key(struct worker *w, uint8_t space, const struct effect *e)
{
    uint8_t owner = slot_ref_worker(e->slot);
    if (owner != w->index && e->gen != 0) {
        flow_post(w, space, owner, e);
        return;
    }
    if (owner != w->index) {
        struct mail mail = {.kind = MAIL_FLOW, .ref = e->slot, .code = e->code, .ts = e->ts};
        worker_post(w, owner, &mail);
        return;
    }
    struct flow *f = flow_of_ref(w, e->slot);
    if (e->gen != 0 && (f == NULL || f->slot.gen != e->gen || f->space != space)) {
        w->stats.engine_drops[ENGINE_DROP_SLOT]++;
        return;
    }
    HK_ASSERT(f != NULL);
    flow_told(w, f, e->code, e->ts);
}

void step_mail(struct worker *w, const struct mail *mail)
{
    struct flow *f = flow_at(w, slot_ref_index(mail->ref));
    HK_ASSERT(f != NULL);
    if (f->owed) {
        f->owed = false;
        flow_give_back(w, f);
        return;
    }
    HK_ASSERT(f->used); /* a flow ends by this mail, or is owed it */
    if (mail->gen != 0) {
        /* This mail is out: there is room for the next word, and nothing is owed any more. */
        atomic_store_explicit(&f->claim, mail->gen, memory_order_release);
    }
    if (mail->gen == 0 || f->space == mail->space) {
        flow_told(w, f, mail->code, mail->ts);
    }
}

/* What remains when the bucket is unlocked again. */
static void after_unlock(struct worker *w, struct step *s, const struct effects *fx)
{
    for (uint32_t i = 0; i < fx->n; i++) {
        const struct effect *e = &fx->e[i];
        switch ((enum eff_kind)e->kind) {
        case EFF_PARK:
            s->parked = true;
            if (s->call != NULL) {
                call_park(w, s->call);
            }
            break;
        case EFF_WAKE:
            wake_everywhere(w, s->space, s->hash);
            break;
        case EFF_FLOW:
            flow_from_key(w, s->space, e);
            break;
        case EFF_DROP:
        case EFF_BEHIND:
            step_ignored(w, e, s->event.from);
            break;
        case EFF_SEND:
        case EFF_BCAST:
        case EFF_APPLY:
        case EFF_FORGET:
        case EFF_ISSUE:
        case EFF_ASK:
        case EFF_HOLD:
            break;
        case EFF_LATER:
            s->later = true;
            break;
        case EFF_LOST:
            s->lost = true;
            break;
        case EFF_KEY:
        case EFF_REPLY:
        case EFF_CLOSE:
        case EFF_KEEP:
        case EFF_TAKE:
        case EFF_TRIM:
        case EFF_SEND_KEPT:
        case EFF_HOME:
        case EFF_LEFT:
            HK_ASSERT(false && "an effect of flow machines");
        }
    }
}

static bool wants_spare(const struct step *s)
{
    return s->event.kind != EV_MSG;
}

void step_locked(struct worker *w, struct step *s, struct store_ref *ref)
{
    const struct engine_ops *ops = w->node->spaces[s->space].ops;
    struct flow *spare = wants_spare(s) ? flow_reserve(w) : NULL;
    struct key_meta meta = ref->object != NULL ? store_meta(ref) : ops->blank;
    struct key_meta before = meta;
    struct effects fx;
    fx.n = 0;
    w->stats.key_steps++;
    s->event.local_hash = s->hash;
    s->event.vflags = s->payload_flags;
    if ((ops->traits & ENGINE_HOMED) != 0) {
        s->event.home = homes_of(&w->node->spaces[s->space], s->key);
    }
    ops->key(&meta, NULL, s->mine != NULL ? &s->mine->slot : NULL,
             spare != NULL ? &spare->slot : NULL, &s->event, &fx);
    uint32_t kinds = effect_kinds(&fx);
    bool kept = !has_effect(kinds, EFF_HOLD) || hold(w, spare, s);
    s->err = kept ? publish(s, ref, kinds, &meta, &before) : HK_ERR_NOMEM;
    if (s->err != HK_OK) {
        /* Nothing of this step happened. Where messages are delivered once that would be final, and
         * only the operating system can say so: there is no honest way on. */
        HK_ASSERT(s->err != HK_ERR_NOMEM || (s->event.kind != EV_MSG && s->event.kind != EV_FLOW) ||
                  !w->node->spaces[s->space].ordered);
        store_unlock(ref);
        if (spare != NULL) {
            spare->space = s->space;
            release_held(w, spare);
            flow_give_back(w, spare);
        }
        w->stats.node_drops[NODE_DROP_MEMORY] += s->event.kind == EV_MSG;
        return;
    }
#ifdef HK_DEBUG
    if (ref->object != NULL) {
        ops->check(&meta, NULL);
    }
#endif
    bool issue = s->event.kind == EV_UPDATE && has_effect(kinds, EFF_ISSUE);
    if (issue) {
        /* Before anybody hears of the slot: a full frame leaves at once. */
        spare->claimed = true;
        atomic_store_explicit(&spare->claim, spare->slot.gen, memory_order_release);
    }
    if (has_effect(kinds, EFF_SEND) || has_effect(kinds, EFF_BCAST)) {
        send_locked(w, s, ref, &fx, has_effect(kinds, EFF_APPLY), &meta);
    }
    store_unlock(ref);
    /* A stalled update may have started a replay: that flow is not the update's. */
    s->issued = issue || (s->event.kind == EV_UPDATE &&
                          (has_effect(kinds, EFF_APPLY) || has_effect(kinds, EFF_HOLD)));
    s->asked = s->event.kind == EV_READ && has_effect(kinds, EFF_ASK);
    w->stats.asks += s->asked;
    if (spare != NULL) {
        s->begun = spare->slot.kind != 0;
        if (s->begun) {
            flow_open(w, spare, s);
        } else {
            flow_give_back(w, spare);
        }
    }
    after_unlock(w, s, &fx);
}

void step_key(struct worker *w, struct step *s)
{
    struct store_ref ref;
    store_lock(w->node->spaces[s->space].store, w->threads[s->space], s->key, s->hash, &ref);
    step_locked(w, s, &ref);
}

/* ---- Keys that come, go and move ---- */

static enum step_word step_task(struct worker *w, struct step *s, struct bytes key, uint64_t hash)
{
    /* The members that a flow asks are those of this worker's view; no other worker of this node
     * may still acknowledge anything in an older one (docs/protocols/galene.md, K5): so it must be
     * one that issues updates. */
    if (list_empty(&w->flows_free) || !ordered_issues(w, s->space)) {
        return STEP_LATER;
    }
    s->key = key;
    s->hash = hash;
    step_key(w, s);
    return s->begun ? STEP_BEGUN : s->later ? STEP_LATER : STEP_NOTHING;
}

enum step_word step_hot(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
                        enum hot_code code, uint64_t gen)
{
    struct step s;
    step_init(w, &s, space, EV_HOT);
    s.event.code = (uint8_t)code;
    s.event.ts = gen;
    return step_task(w, &s, key, hash);
}

enum step_word step_move(struct worker *w, uint8_t space, struct bytes key, uint64_t hash)
{
    struct step s;
    step_init(w, &s, space, EV_MOVE);
    s.moves = true;
    return step_task(w, &s, key, hash);
}

/* ---- Flow steps ---- */

static void key_from_flow(struct worker *w, struct flow *f, uint8_t code)
{
    if (code == KEY_CODE_COMPLETE && f->call != NULL && session_gates(w, f->call)) {
        f->call->gated = true;
        return;
    }
    struct step s;
    step_init(w, &s, f->space, EV_FLOW);
    s.event.code = code;
    s.key = f->key;
    s.hash = f->hash;
    s.mine = f;
    if (f->held != NULL) {
        s.payload = bytes_of(f->held, f->held_n);
        s.payload_flags = f->held_flags;
        s.force = true;
    }
    step_key(w, &s);
}

/* Carries out a flow's effects; f may be gone afterwards. */
static void flow_effects(struct worker *w, struct flow *f, const struct event *event,
                         const struct effects *fx)
{
    uint32_t gen = f->slot.gen;
    for (uint32_t i = 0; i < fx->n; i++) {
        const struct effect *e = &fx->e[i];
        switch ((enum eff_kind)e->kind) {
        case EFF_SEND:
        case EFF_BCAST:
            send_effect(w, f->space, e, f->key, bytes_of(NULL, 0), 0, NULL);
            break;
        case EFF_KEY:
            key_from_flow(w, f, e->code);
            if (!f->used || f->slot.gen != gen) {
                return; /* the key step's outcome has closed this flow */
            }
            break;
        case EFF_REPLY:
            flow_reply(w, f, (enum reply_code)e->code, event->msg);
            break;
        case EFF_CLOSE:
            flow_close(w, f);
            return;
        case EFF_DROP:
        case EFF_BEHIND:
            step_ignored(w, e, event->from);
            break;
        case EFF_APPLY:
        case EFF_FORGET:
        case EFF_PARK:
        case EFF_WAKE:
        case EFF_FLOW:
        case EFF_ISSUE:
        case EFF_ASK:
        case EFF_KEEP:
        case EFF_TAKE:
        case EFF_TRIM:
        case EFF_SEND_KEPT:
        case EFF_HOLD:
        case EFF_LATER:
        case EFF_LOST:
        case EFF_HOME:
        case EFF_LEFT:
            HK_ASSERT(false && "an effect of key machines");
        }
    }
    flow_arm(w, f);
}

static void flow_step(struct worker *w, struct flow *f, const struct event *event)
{
    struct effects fx;
    fx.n = 0;
    w->stats.flow_steps++;
    w->node->spaces[f->space].ops->flow(&f->slot, event, &fx);
    flow_effects(w, f, event, &fx);
}

void step_flow(struct worker *w, struct flow *f, enum ev_kind kind, uint8_t code,
               const struct msg *msg, uint8_t from)
{
    struct step s;
    step_init(w, &s, f->space, kind);
    s.event.code = code;
    s.event.msg = msg;
    s.event.from = from;
    if (kind == EV_VIEW) {
        f->waiting_us = w->now_us;
    }
    flow_step(w, f, &s.event);
}

/* A key step speaks to a flow. */
static void flow_told(struct worker *w, struct flow *f, uint8_t code, uint64_t ts)
{
    struct step s;
    step_init(w, &s, f->space, EV_KEY);
    s.event.code = code;
    s.event.ts = ts;
    flow_step(w, f, &s.event);
}

void flow_check_reads(struct worker *w)
{
    struct call *first = list_entry(w->checking.next, struct call, link);
    uint8_t space = first->op.space;
    struct flow *f = flow_reserve(w);
    if (f == NULL) {
        return; /* the next poll tries again */
    }
    f->used = true;
    f->check = true;
    f->moves = false;
    f->space = space;
    f->call = NULL;
    f->key = bytes_of(NULL, 0);
    f->key_memory = NULL;
    f->waiting_us = w->now_us;
    list_push_back(&w->flows, &f->link);
    list_each_safe(link, following, &w->checking)
    {
        struct call *c = list_entry(link, struct call, link);
        if (c->op.space == space) {
            list_remove(link);
            list_push_back(&f->checking, link);
        }
    }
    step_flow(w, f, EV_READ, 0, NULL, NODE_NONE);
}
