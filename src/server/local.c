/* The side of the workers. */
#include "server/local.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/assert.h"
#include "base/clock.h"
#include "server/local_internal.h"

#define IDLE_US 100000u /* between two looks for sessions whose threads do not call */
#define RING_CELLS (LOCAL_SESSIONS_MAX * LOCAL_SLOTS_MAX)
_Static_assert((RING_CELLS & (RING_CELLS - 1)) == 0, "a ring's capacity is a power of two");
_Static_assert(LOCAL_SLOTS_MAX <= RESP_IN_FLIGHT_MAX, "the node takes as many of a session");

static const struct answer gone = {.kind = ANSWER_ERROR, .number = HK_ERR_UNAVAILABLE};
static const struct answer unknown = {.kind = ANSWER_ERROR, .number = HK_ERR_UNKNOWN};

/* ---- Making and unmaking ---- */

static void destroy(struct locals *l)
{
    for (uint32_t i = 0; l->inboxes != NULL && i < l->workers_n; i++) {
        free(l->inboxes[i].cells);
    }
    free(l->inboxes);
    (void)pthread_cond_destroy(&l->changed);
    (void)pthread_mutex_destroy(&l->lock);
    free(l);
}

void locals_release(struct locals *l)
{
    (void)pthread_mutex_lock(&l->lock);
    bool last = --l->refs == 0;
    (void)pthread_mutex_unlock(&l->lock);
    if (last) {
        destroy(l);
    }
}

static bool init_lock(struct locals *l)
{
    pthread_condattr_t monotonic;
    bool good = pthread_condattr_init(&monotonic) == 0 &&
                pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
                pthread_cond_init(&l->changed, &monotonic) == 0;
    (void)pthread_condattr_destroy(&monotonic);
    return good && pthread_mutex_init(&l->lock, NULL) == 0;
}

static int make_inboxes(struct server *s, struct locals *l)
{
    l->inboxes = aligned_alloc(64, s->workers_n * sizeof *l->inboxes);
    if (l->inboxes == NULL) {
        return HK_ERR_NOMEM;
    }
    memset(l->inboxes, 0, s->workers_n * sizeof *l->inboxes);
    l->workers_n = s->workers_n;
    for (uint32_t i = 0; i < s->workers_n; i++) {
        struct local_inbox *inbox = &l->inboxes[i];
        inbox->worker = &s->workers[i];
        inbox->cells = calloc(RING_CELLS, RING_MPSC_CELL_BYTES(sizeof(struct local_ref)));
        if (inbox->cells == NULL) {
            return HK_ERR_NOMEM;
        }
        ring_mpsc_init(&inbox->ring, inbox->cells, RING_CELLS, sizeof(struct local_ref));
    }
    return HK_OK;
}

int locals_create(struct server *s)
{
    struct locals *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return HK_ERR_NOMEM;
    }
    if (!init_lock(l)) {
        free(l);
        return HK_ERR_NOMEM;
    }
    l->refs = 1;
    l->node = s->node;
    l->spin_us = s->config.spin_us;
    int err = make_inboxes(s, l);
    for (uint32_t i = 0; i < s->workers_n && err == HK_OK; i++) {
        struct server_worker *w = &s->workers[i];
        w->local_inbox = &l->inboxes[i];
        w->local_by_session = calloc(s->node_config.sessions_max, sizeof(struct local_session *));
        err = w->local_by_session != NULL ? HK_OK : HK_ERR_NOMEM;
        list_init(&w->locals);
        list_init(&w->locals_touched);
        list_init(&w->locals_held);
    }
    if (err != HK_OK) {
        destroy(l);
        return err;
    }
    s->locals = l;
    return HK_OK;
}

/* ---- Parking, under the lock ---- */

static bool park(struct local_session *s, uint64_t state)
{
    /* acq_rel: acquire pairs with the release in local_leave; release with enter_fast's acquire,
     * although that fails and goes through the lock. */
    return atomic_compare_exchange_strong_explicit(&s->state, &state, state | LOCAL_PARKED,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

static bool is_call(uint64_t state, enum local_call call)
{
    return (state & 3u) == call;
}

static void park_all(struct locals *l)
{
    for (uint32_t i = 0; i < LOCAL_SESSIONS_MAX; i++) {
        struct local_session *s = l->sessions[i];
        if (s == NULL) {
            continue;
        }
        for (;;) {
            uint64_t state = atomic_load_explicit(&s->state, memory_order_relaxed);
            if (is_call(state, LOCAL_PARKED) || (is_call(state, LOCAL_OUT) && park(s, state))) {
                break;
            }
            (void)sched_yield(); /* it is in, and waits for nobody */
        }
        if (s->reader != NULL) {
            node_reader_close(s->reader);
            s->reader = NULL;
        }
    }
}

/* Worker 0: who has not called since the last look goes offline. */
void locals_idle(struct server_worker *w)
{
    struct locals *l = w->server->locals;
    if (l == NULL || w->now_us - w->locals_idle_us < IDLE_US) {
        return;
    }
    w->locals_idle_us = w->now_us;
    (void)pthread_mutex_lock(&l->lock);
    for (uint32_t i = 0; i < LOCAL_SESSIONS_MAX && l->sessions_n > 0; i++) {
        struct local_session *s = l->sessions[i];
        if (s == NULL) {
            continue;
        }
        uint64_t state = atomic_load_explicit(&s->state, memory_order_relaxed);
        if (is_call(state, LOCAL_OUT) && state == s->state_seen && park(s, state)) {
            node_reader_offline(s->reader);
        }
        s->state_seen = state;
    }
    (void)pthread_mutex_unlock(&l->lock);
}

void locals_detach(struct server *s, bool end)
{
    struct locals *l = s->locals;
    if (l == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&l->lock);
    l->node = NULL;
    l->ended = l->ended || end;
    park_all(l);
    (void)pthread_cond_broadcast(&l->changed);
    (void)pthread_mutex_unlock(&l->lock);
}

void locals_attach(struct server *s)
{
    struct locals *l = s->locals;
    if (l != NULL) {
        (void)pthread_mutex_lock(&l->lock);
        l->node = s->node;
        (void)pthread_mutex_unlock(&l->lock);
    }
}

void locals_tell(struct server *s)
{
    struct locals *l = s->locals;
    if (l != NULL) {
        (void)pthread_mutex_lock(&l->lock);
        (void)pthread_cond_broadcast(&l->changed);
        (void)pthread_mutex_unlock(&l->lock);
    }
}

/* ---- Sessions come and go ---- */

static void open_session(struct server_worker *w, struct local_session *s)
{
    s->stage = LOCAL_CLOSED;
    if (w->node != NULL && worker_session_open(w->node, &s->session) == HK_OK) {
        w->local_by_session[s->session] = s;
        list_push_back(&w->locals, &s->link);
        s->stage = LOCAL_OPEN;
    }
}

static void close_session(struct server_worker *w, struct local_session *s)
{
    if (!list_empty(&s->link)) {
        if (w->node != NULL) {
            w->local_by_session[s->session] = NULL;
            worker_session_close(w->node, s->session);
        }
        list_remove(&s->link);
        list_remove(&s->touched);
    }
    s->stage = LOCAL_CLOSED;
}

/* Under the lock. */
static void take_arrivals(struct server_worker *w)
{
    struct local_inbox *inbox = w->local_inbox;
    atomic_store_explicit(&inbox->arrived, false, memory_order_relaxed);
    struct local_session *s = inbox->arrivals;
    inbox->arrivals = NULL;
    while (s != NULL) {
        struct local_session *next = s->next;
        if (s->stage == LOCAL_OPENING) {
            open_session(w, s);
        } else {
            close_session(w, s);
        }
        s = next;
    }
    (void)pthread_cond_broadcast(&w->server->locals->changed);
}

void locals_adopt(struct server_worker *w)
{
    struct locals *l = w->server->locals;
    /* acquire: pairs with the release in tell_worker. */
    if (l == NULL || !atomic_load_explicit(&w->local_inbox->arrived, memory_order_acquire)) {
        return;
    }
    (void)pthread_mutex_lock(&l->lock);
    take_arrivals(w);
    (void)pthread_mutex_unlock(&l->lock);
}

/* ---- Requests and replies: inside worker_poll ---- */

/* It has taken effect here: it is never held. */
static bool is_committed(const struct local_slot *slot)
{
    return slot->committed.nonce != 0;
}

static bool updates(const struct local_slot *slot)
{
    if (is_committed(slot)) {
        return false;
    }
    return slot->txn != NULL ? txn_updates(slot->txn) : op_updates(&slot->op);
}

static void hand_out(struct server_worker *w, struct local_session *s, uint32_t slot,
                     struct request *request_out)
{
    const struct local_slot *from = &s->slots[slot];
    *request_out = (struct request){.session = s->session,
                                    .tag = slot,
                                    .since_us = from->since_us,
                                    .op = from->op,
                                    .txn = from->txn,
                                    .committed = is_committed(from) ? &from->committed : NULL};
    w->in_flight++;
    w->handed_bytes += server_request_bytes(request_out);
    /* Whether peers lag is known only once what was handed out is on its way to them. */
    w->updates = w->updates && w->handed_bytes < ROUND_BYTES_MAX;
}

static bool take_held(struct server_worker *w, struct request *request_out)
{
    if (!w->updates || list_empty(&w->locals_held)) {
        return false;
    }
    struct local_session *s = list_entry(w->locals_held.next, struct local_session, holds);
    struct local_slot *slot = list_entry(list_pop_front(&s->held), struct local_slot, held);
    list_remove(&s->holds);
    if (!list_empty(&s->held)) {
        list_push_back(&w->locals_held, &s->holds); /* the next one's turn */
    }
    hand_out(w, s, (uint32_t)(slot - s->slots), request_out);
    return true;
}

static void hold(struct server_worker *w, struct local_session *s, uint32_t slot)
{
    if (list_empty(&s->held)) {
        list_push_back(&w->locals_held, &s->holds);
    }
    list_push_back(&s->held, &s->slots[slot].held);
}

bool locals_look(struct server_worker *w)
{
    if (w->local_inbox == NULL) {
        return false;
    }
    uint32_t until = ring_mpsc_claimed(&w->local_inbox->ring);
    bool more = until != w->locals_until;
    w->locals_until = until;
    return more;
}

/* The next that the last look has seen. */
static bool take_seen(struct server_worker *w, struct local_ref *ref_out)
{
    struct ring_mpsc *ring = &w->local_inbox->ring;
    return ring_mpsc_next(ring) != w->locals_until && ring_mpsc_pop(ring, ref_out);
}

bool locals_request(struct server_worker *w, struct request *request_out)
{
    struct local_ref ref;
    if (w->local_inbox == NULL) {
        return false;
    }
    if (take_held(w, request_out)) {
        return true;
    }
    while (take_seen(w, &ref)) {
        bool update = updates(&ref.session->slots[ref.slot]);
        /* What comes behind a held request keeps its place. */
        if ((update && !w->updates) || !list_empty(&ref.session->held)) {
            hold(w, ref.session, ref.slot);
        } else {
            hand_out(w, ref.session, ref.slot, request_out);
            return true;
        }
    }
    return false;
}

bool locals_waiting(const struct server_worker *w)
{
    return w->local_inbox != NULL && (!ring_mpsc_empty(&w->local_inbox->ring) ||
                                      (w->updates && !list_empty(&w->locals_held)));
}

static void answer(struct server_worker *w, struct local_session *s, uint32_t index,
                   const struct answer *answer, uint64_t version)
{
    struct local_slot *slot = &s->slots[index];
    slot->version = version;
    slot->answer = *answer;
    slot->answer.value.at = NULL;
    if (answer->value.n > 0 && answer->value.n <= slot->capacity) {
        memcpy(slot->buffer, answer->value.at, answer->value.n);
        slot->answer.value.at = slot->buffer;
    }
    bool pushed = ring_spsc_push(&s->done, &index);
    HK_ASSERT(pushed); /* room for all slots */
    if (list_empty(&s->touched)) {
        list_push_back(&w->locals_touched, &s->touched);
    }
}

bool locals_reply(struct server_worker *w, const struct reply *reply)
{
    struct local_session *s = w->local_inbox != NULL ? w->local_by_session[reply->session] : NULL;
    if (s == NULL) {
        return false;
    }
    w->in_flight--;
    /* Of a transaction that was done or not, what its operation answered; of an error there is no
     * such thing. */
    bool single = s->slots[reply->tag].single && reply->answers_n == 1;
    answer(w, s, (uint32_t)reply->tag, single ? &reply->answers[0] : &reply->answer,
           single ? reply->versions[0] : reply->version);
    return true;
}

/* ---- Around the polls ---- */

void locals_flush(struct server_worker *w)
{
    struct list_link *link;
    while (w->local_inbox != NULL && (link = list_pop_front(&w->locals_touched)) != NULL) {
        struct local_session *s = list_entry(link, struct local_session, touched);
        /* acq_rel: pairs with the exchange in local_wait. */
        if (atomic_exchange_explicit(&s->sleeping, 0, memory_order_acq_rel) != 0) {
            (void)syscall(SYS_futex, &s->sleeping, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        }
    }
}

void locals_reopen(struct server_worker *w)
{
    if (w->local_inbox == NULL) {
        return;
    }
    memset(w->local_by_session, 0,
           w->server->node_config.sessions_max * sizeof *w->local_by_session);
    list_each(link, &w->locals)
    {
        struct local_session *s = list_entry(link, struct local_session, link);
        int err = worker_session_open(w->node, &s->session);
        HK_ASSERT(err == HK_OK); /* as many as there were */
        w->local_by_session[s->session] = s;
    }
    locals_flush(w);
}

void locals_refuse(struct server_worker *w)
{
    struct local_ref ref;
    if (w->local_inbox == NULL) {
        return;
    }
    struct list_link *link;
    while ((link = list_pop_front(&w->locals_held)) != NULL) {
        struct local_session *s = list_entry(link, struct local_session, holds);
        while ((link = list_pop_front(&s->held)) != NULL) {
            struct local_slot *slot = list_entry(link, struct local_slot, held);
            answer(w, s, (uint32_t)(slot - s->slots), &gone, 0);
        }
    }
    while (ring_mpsc_pop(&w->local_inbox->ring, &ref)) {
        bool committed = is_committed(&ref.session->slots[ref.slot]);
        answer(w, ref.session, ref.slot, committed ? &unknown : &gone, 0);
    }
    locals_flush(w);
    struct locals *l = w->server->locals;
    (void)pthread_mutex_lock(&l->lock);
    take_arrivals(w);
    w->local_inbox->over = true;
    (void)pthread_mutex_unlock(&l->lock);
}

/* ---- What the program may know; any thread ---- */

static void look_at_spaces(struct node *node, struct server_look *look)
{
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        struct store_stats stats;
        if (node_space_stats(node, i, &stats)) {
            look->keys += stats.keys - stats.tombstones;
            look->bytes += stats.bytes_used;
        }
    }
}

/* Under the lock, which keeps the node from being destroyed. */
static void look(struct locals *l, struct server_look *look_out, bool spaces)
{
    memset(look_out, 0, sizeof *look_out);
    look_out->stopped = l->ended;
    look_out->away = l->node == NULL;
    look_out->now_us = clock_boot_us();
    look_out->sessions = l->sessions_n;
    if (l->node != NULL) {
        node_status(l->node, look_out->now_us, &look_out->status);
        if (spaces) {
            look_at_spaces(l->node, look_out);
        }
    }
}

void server_look(struct server *s, struct server_look *look_out)
{
    struct locals *l = s->locals;
    (void)pthread_mutex_lock(&l->lock);
    look(l, look_out, true);
    (void)pthread_mutex_unlock(&l->lock);
}

int server_wait_serving(struct server *s, uint64_t timeout_us)
{
    struct locals *l = s->locals;
    struct timespec until;
    struct server_look now;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + timeout_us % 1000000u * 1000u;
    until.tv_sec += (time_t)(timeout_us / 1000000u + ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    int waited = 0;
    (void)pthread_mutex_lock(&l->lock);
    look(l, &now, false);
    while (!now.stopped && (now.away || now.status.status != VIEW_STATUS_SERVING) && waited == 0) {
        waited = pthread_cond_timedwait(&l->changed, &l->lock, &until);
        look(l, &now, false);
    }
    (void)pthread_mutex_unlock(&l->lock);
    if (now.stopped) {
        return HK_ERR_UNAVAILABLE;
    }
    return !now.away && now.status.status == VIEW_STATUS_SERVING ? HK_OK : HK_ERR_TIMEOUT;
}
