/* The side of a session's thread. */
#include "server/local.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/assert.h"
#include "base/clock.h"
#include "server/local_internal.h"

#define WAIT_MAX_US 1000000u

/* ---- Entering ---- */

static bool enter_fast(struct local_session *s)
{
    uint64_t out = local_state(s->turn, LOCAL_OUT);
    /* acquire: pairs with the release of a parker's unlock or of our own local_leave. */
    return atomic_compare_exchange_strong_explicit(&s->state, &out, local_state(s->turn, LOCAL_IN),
                                                   memory_order_acquire, memory_order_relaxed);
}

/* The session is parked: nobody else changes it while we hold the lock. */
static bool enter_slowly(struct local_session *s)
{
    struct locals *l = s->locals;
    bool in = false;
    (void)pthread_mutex_lock(&l->lock);
    if (!l->ended && l->node != NULL) {
        if (s->reader != NULL) {
            node_reader_online(s->reader);
            in = true;
        } else {
            in = node_reader_open(l->node, &s->reader) == HK_OK;
            if (in) {
                node_reader_worker(s->reader, s->worker->index);
            }
        }
    }
    if (in) {
        atomic_store_explicit(&s->state, local_state(s->turn, LOCAL_IN), memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return in;
}

struct node_reader *local_enter(struct local_session *s)
{
    return enter_fast(s) || enter_slowly(s) ? s->reader : NULL;
}

void local_leave(struct local_session *s)
{
    s->turn++;
    /* release: pairs with the acquire of a parker; all that was read here was read before. */
    atomic_store_explicit(&s->state, local_state(s->turn, LOCAL_OUT), memory_order_release);
}

/* ---- Requests and answers ---- */

static void post(struct local_session *s, uint32_t slot)
{
    struct local_ref ref = {.session = s, .slot = slot};
    /* Room for every slot of every session: it cannot be full. */
    bool pushed = ring_mpsc_push(&s->inbox->ring, &ref);
    HK_ASSERT(pushed);
    loop_wake(s->worker->loop);
}

int local_submit(struct local_session *s, uint32_t slot)
{
    HK_ASSERT(slot < s->slots_n);
    if (local_enter(s) != NULL) {
        post(s, slot);
        local_leave(s);
        return HK_OK;
    }
    int err = HK_ERR_UNAVAILABLE;
    (void)pthread_mutex_lock(&s->locals->lock);
    if (!s->locals->ended) {
        post(s, slot); /* the worker takes it when there is a node again */
        err = HK_OK;
    }
    (void)pthread_mutex_unlock(&s->locals->lock);
    return err;
}

enum node_commit_answer local_commit(struct local_session *s, uint32_t slot, uint64_t now_us,
                                     uint32_t n, struct node_commit_key *keys)
{
    HK_ASSERT(slot < s->slots_n);
    struct local_slot *mine = &s->slots[slot];
    struct node_reader *reader = local_enter(s);
    if (reader == NULL) {
        return NODE_COMMIT_ASK;
    }
    enum node_commit_answer result =
        node_commit(reader, mine->op.space, now_us, n, keys, &mine->committed);
    if (result == NODE_COMMIT_SLOT) {
        post(s, slot);
    }
    local_leave(s);
    return result;
}

bool local_take(struct local_session *s, uint32_t *slot_out)
{
    return ring_spsc_pop(&s->done, slot_out);
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value, uint64_t us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1000000u),
                         .tv_nsec = (long)(us % 1000000u) * 1000};
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &t, NULL, 0);
}

static bool spin(struct local_session *s, uint64_t until_us)
{
    while (ring_spsc_empty(&s->done)) {
        if (clock_boot_us() >= until_us) {
            return false;
        }
    }
    return true;
}

bool local_wait(struct local_session *s, uint64_t wait_us)
{
    if (!ring_spsc_empty(&s->done)) {
        return true;
    }
    uint64_t began_us = clock_boot_us();
    uint64_t spin_us = s->locals->spin_us;
    if (spin_us > 0 && spin(s, began_us + (spin_us < wait_us ? spin_us : wait_us))) {
        return true;
    }
    for (;;) {
        /* acq_rel: pairs with the exchange in locals_flush. Of the two exchanges one comes first:
         * if it is ours, the other finds the sleeper; if not, we see what was pushed before it. */
        (void)atomic_exchange_explicit(&s->sleeping, 1, memory_order_acq_rel);
        uint64_t passed_us = clock_boot_us() - began_us;
        bool found = !ring_spsc_empty(&s->done);
        if (found || passed_us >= wait_us) {
            atomic_store_explicit(&s->sleeping, 0, memory_order_relaxed);
            return found;
        }
        uint64_t left_us = wait_us - passed_us;
        sleep_on(&s->sleeping, 1, left_us < WAIT_MAX_US ? left_us : WAIT_MAX_US);
    }
}

struct local_slot *local_slot(struct local_session *s, uint32_t index)
{
    HK_ASSERT(index < s->slots_n);
    return &s->slots[index];
}

/* ---- Coming and going ---- */

static void free_session(struct local_session *s)
{
    free(s->done_cells);
    free(s->slots);
    free(s);
}

static struct local_session *make_session(struct locals *l, uint32_t slots_n)
{
    struct local_session *s = aligned_alloc(64, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    memset(s, 0, sizeof *s);
    s->locals = l;
    s->slots_n = slots_n;
    s->slots = calloc(slots_n, sizeof *s->slots);
    s->done_cells = calloc(LOCAL_SLOTS_MAX, sizeof(uint32_t));
    if (s->slots == NULL || s->done_cells == NULL) {
        free_session(s);
        return NULL;
    }
    for (uint32_t i = 0; i < slots_n; i++) {
        list_init(&s->slots[i].held);
    }
    ring_spsc_init(&s->done, s->done_cells, LOCAL_SLOTS_MAX, sizeof(uint32_t));
    atomic_init(&s->state, local_state(0, LOCAL_PARKED));
    list_init(&s->link);
    list_init(&s->touched);
    list_init(&s->holds);
    list_init(&s->held);
    return s;
}

/* Under the lock: shows the session to its worker, and waits until that has seen it. */
static void tell_worker(struct local_session *s, enum local_stage stage)
{
    struct locals *l = s->locals;
    s->stage = stage;
    s->next = s->inbox->arrivals;
    s->inbox->arrivals = s;
    /* release: pairs with the acquire in locals_adopt. */
    atomic_store_explicit(&s->inbox->arrived, true, memory_order_release);
    loop_wake(s->worker->loop);
    while (s->stage == stage) {
        (void)pthread_cond_wait(&l->changed, &l->lock);
    }
}

/* Under the lock. */
static int place(struct local_session *s)
{
    struct locals *l = s->locals;
    uint32_t index = 0;
    if (l->ended) {
        return HK_ERR_UNAVAILABLE;
    }
    while (index < LOCAL_SESSIONS_MAX && l->sessions[index] != NULL) {
        index++;
    }
    if (index == LOCAL_SESSIONS_MAX) {
        return HK_ERR_FULL;
    }
    uint32_t best = 0;
    for (uint32_t i = 1; i < l->workers_n; i++) {
        best = l->inboxes[i].sessions_n < l->inboxes[best].sessions_n ? i : best;
    }
    s->index = index;
    s->inbox = &l->inboxes[best];
    s->worker = s->inbox->worker;
    s->inbox->sessions_n++;
    l->sessions[index] = s;
    l->sessions_n++;
    l->refs++;
    return HK_OK;
}

int local_open(struct locals *l, uint32_t slots_n, struct local_session **session_out)
{
    HK_ASSERT(slots_n > 0 && slots_n <= LOCAL_SLOTS_MAX);
    struct local_session *s = make_session(l, slots_n);
    if (s == NULL) {
        return HK_ERR_NOMEM;
    }
    (void)pthread_mutex_lock(&l->lock);
    int err = place(s);
    if (err == HK_OK) {
        tell_worker(s, LOCAL_OPENING);
        err = s->stage == LOCAL_OPEN ? HK_OK : HK_ERR_UNAVAILABLE;
    }
    (void)pthread_mutex_unlock(&l->lock);
    if (err == HK_OK) {
        *session_out = s;
    } else if (s->inbox != NULL) {
        local_close(s);
    } else {
        free_session(s);
    }
    return err;
}

void local_close(struct local_session *s)
{
    struct locals *l = s->locals;
    (void)pthread_mutex_lock(&l->lock);
    if (!s->inbox->over) {
        tell_worker(s, LOCAL_CLOSING);
    }
    /* Neither the worker nor a parker knows it from here on. */
    l->sessions[s->index] = NULL;
    l->sessions_n--;
    s->inbox->sessions_n--;
    if (s->reader != NULL) {
        node_reader_close(s->reader);
    }
    (void)pthread_mutex_unlock(&l->lock);
    free_session(s);
    locals_release(l);
}
