#include "net/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "net/loop_internal.h"

#define SLOTS_MIN 64u

const char *loop_kind_name(enum loop_kind kind)
{
    switch (kind) {
    case LOOP_AUTO:
        return "auto";
    case LOOP_URING:
        return "io_uring";
    case LOOP_EPOLL:
        return "epoll";
    }
    return "?";
}

int loop_create_backend(const struct loop_backend *backend, struct loop **loop_out)
{
    size_t bytes = (backend->loop_bytes + LOOP_LINE - 1) / LOOP_LINE * LOOP_LINE;
    struct loop *loop = (struct loop *)aligned_alloc(LOOP_LINE, bytes);
    if (loop == NULL) {
        return HK_ERR_NOMEM;
    }
    memset(loop, 0, bytes);
    loop->backend = backend;
    loop->slot_free = STREAM_SLOT_NONE;
    list_init(&loop->streams);
    list_init(&loop->touched);
    list_init(&loop->drained);
    list_init(&loop->broken);
    list_init(&loop->finishing);
    list_init(&loop->sleepers);
    loop->deadline_us = UINT64_MAX;
    atomic_init(&loop->sleeping, false);
    atomic_init(&loop->woken, false);
    int error = backend->init(loop);
    if (error != 0) {
        free(loop);
        errno = error;
        return error == ENOMEM ? HK_ERR_NOMEM : HK_ERR_IO;
    }
    *loop_out = loop;
    return HK_OK;
}

int loop_create(enum loop_kind kind, struct loop **loop_out)
{
    if (kind == LOOP_EPOLL) {
        return loop_create_backend(&loop_backend_epoll, loop_out);
    }
    int err = loop_create_backend(&loop_backend_uring, loop_out);
    if (err != HK_OK && kind == LOOP_AUTO) {
        /* Whatever io_uring lacks, even memory that it may lock: epoll needs it not. */
        err = loop_create_backend(&loop_backend_epoll, loop_out);
    }
    return err;
}

void loop_destroy(struct loop *loop)
{
    HK_ASSERT(!loop->polling);
    list_each_safe(link, following, &loop->streams)
    {
        stream_close(list_entry(link, struct stream, link));
    }
    loop->backend->deinit(loop);
    HK_ASSERT(list_empty(&loop->streams));
    loop_free_spares(loop);
    free(loop->slots);
    free(loop);
}

enum loop_kind loop_kind(const struct loop *loop)
{
    return loop->backend->kind;
}

/* ---- Sleeping and waking ---- */

static bool loop_take_wake(struct loop *loop)
{
    /* The exchange, not a store: it makes what every waker wrote before visible here, also that of
     * one that found the flag set. */
    return atomic_load(&loop->woken) && atomic_exchange(&loop->woken, false);
}

void loop_add_sleeper(struct loop *loop, struct loop_sleeper *sleeper)
{
    HK_ASSERT(!loop->polling);
    list_push_back(&loop->sleepers, &sleeper->link);
}

void loop_remove_sleeper(struct loop_sleeper *sleeper)
{
    list_remove(&sleeper->link);
}

/* Those before `end` are awake again. */
static void loop_rouse(struct loop *loop, const struct list_link *end)
{
    for (struct list_link *link = loop->sleepers.next; link != end; link = link->next) {
        struct loop_sleeper *sleeper = list_entry(link, struct loop_sleeper, link);
        sleeper->awake(sleeper->context);
    }
}

/* Whether nobody has work. Comes after the store to `sleeping`: whom a sleeper has told that it
 * sleeps calls loop_wake, which must not take the loop to be awake. */
static bool loop_lull(struct loop *loop)
{
    list_each(link, &loop->sleepers)
    {
        struct loop_sleeper *sleeper = list_entry(link, struct loop_sleeper, link);
        if (!sleeper->sleep(sleeper->context)) {
            loop_rouse(loop, link);
            return false;
        }
    }
    return true;
}

bool loop_sleep_begin(struct loop *loop)
{
    /* Pairs with loop_wake: our store comes before our look at woken, its exchange of woken before
     * its look at sleeping. */
    atomic_store(&loop->sleeping, true);
    if (loop_take_wake(loop) || !loop_lull(loop)) {
        atomic_store(&loop->sleeping, false);
        return false;
    }
    return true;
}

void loop_sleep_end(struct loop *loop)
{
    loop_rouse(loop, &loop->sleepers);
    /* relaxed: a waker that still sees true writes to wake_fd for nothing, which ends a later wait
     * early and does no harm. */
    atomic_store_explicit(&loop->sleeping, false, memory_order_relaxed);
    (void)loop_take_wake(loop);
}

void loop_wake(struct loop *loop)
{
    /* Pairs with loop_sleep_begin. */
    atomic_exchange(&loop->woken, true);
    /* Of many wakers one does the work. */
    if (atomic_load(&loop->sleeping) && atomic_exchange(&loop->sleeping, false)) {
        uint64_t one = 1;
        /* It cannot fail: the counter is far from full, and nobody else has this descriptor. */
        ssize_t n = write(loop->wake_fd, &one, sizeof(one));
        HK_ASSERT(n == (ssize_t)sizeof(one));
    }
}

/* ---- Slots ---- */

static bool slots_grow(struct loop *loop)
{
    uint32_t count = loop->slots_count == 0 ? SLOTS_MIN : 2 * loop->slots_count;
    if (count > STREAM_SLOTS_MAX) {
        return false;
    }
    struct stream_slot *slots =
        (struct stream_slot *)realloc(loop->slots, count * sizeof(struct stream_slot));
    if (slots == NULL) {
        return false;
    }
    for (uint32_t i = count; i-- > loop->slots_count;) {
        slots[i] = (struct stream_slot){.next_free = loop->slot_free};
        loop->slot_free = i;
    }
    loop->slots = slots;
    loop->slots_count = count;
    return true;
}

struct stream *loop_stream(const struct loop *loop, uint32_t slot, uint32_t generation)
{
    if (slot >= loop->slots_count || loop->slots[slot].generation != generation) {
        return NULL;
    }
    return loop->slots[slot].stream;
}

/* ---- Opening and closing ---- */

int stream_open(struct loop *loop, int fd, const struct stream_ops *ops, void *owner,
                struct stream **stream_out)
{
    if (loop->slot_free == STREAM_SLOT_NONE && !slots_grow(loop)) {
        return HK_ERR_NOMEM;
    }
    struct stream *s = (struct stream *)calloc(1, sizeof(*s));
    if (s == NULL) {
        return HK_ERR_NOMEM;
    }
    s->loop = loop;
    s->ops = ops;
    s->owner = owner;
    s->fd = fd;
    s->slot = loop->slot_free;
    s->state = STREAM_OPEN;
    list_init(&s->link);
    list_init(&s->touched);
    list_init(&s->news);
    list_init(&s->finishing);
    struct stream_slot *slot = &loop->slots[s->slot];
    slot->stream = s;
    int error = loop->backend->attach(s);
    if (error != 0) {
        slot->stream = NULL;
        list_remove(&s->touched);
        free(s);
        errno = error;
        return error == ENOMEM ? HK_ERR_NOMEM : HK_ERR_IO;
    }
    loop->slot_free = slot->next_free;
    list_push_back(&loop->streams, &s->link);
    *stream_out = s;
    return HK_OK;
}

void stream_release(struct stream *s)
{
    struct loop *loop = s->loop;
    struct stream_slot *slot = &loop->slots[s->slot];
    HK_ASSERT(s->state == STREAM_GONE && slot->stream == s);
    slot->stream = NULL;
    slot->generation++;
    slot->next_free = loop->slot_free;
    loop->slot_free = s->slot;
    stream_drop_output(s);
    list_remove(&s->link);
    list_remove(&s->touched);
    (void)close(s->fd);
    free(s);
}

static void stream_make_gone(struct stream *s)
{
    s->state = STREAM_GONE;
    list_remove(&s->touched);
    list_remove(&s->news);
    list_remove(&s->finishing);
}

void stream_close(struct stream *s)
{
    /* GONE: from within its own closed callback. */
    if (s->state != STREAM_GONE) {
        stream_make_gone(s);
        s->loop->backend->detach(s);
    }
}

static void stream_linger(struct stream *s, uint64_t linger_us)
{
    struct loop *loop = s->loop;
    uint64_t now_us = clock_boot_us();
    s->state = STREAM_FINISHING;
    s->owed = true;
    s->deadline_us = linger_us < UINT64_MAX - now_us ? now_us + linger_us : UINT64_MAX;
    if (s->deadline_us < loop->deadline_us) {
        loop->deadline_us = s->deadline_us;
    }
    list_push_back(&loop->finishing, &s->finishing);
    if (stream_queued(s) == 0 && list_empty(&s->news)) {
        list_push_back(&loop->drained, &s->news);
    }
    stream_touch(s);
}

void stream_finish(struct stream *s, uint64_t linger_us)
{
    HK_ASSERT(s->state == STREAM_OPEN);
    if (s->error != 0) {
        stream_close(s);
    } else {
        stream_linger(s, linger_us);
    }
}

/* Closes those that have had their time. */
static void loop_expire(struct loop *loop)
{
    uint64_t now_us = clock_boot_us();
    if (now_us < loop->deadline_us) {
        return;
    }
    loop->deadline_us = UINT64_MAX;
    list_each_safe(link, following, &loop->finishing)
    {
        struct stream *s = list_entry(link, struct stream, finishing);
        if (s->deadline_us <= now_us) {
            stream_close(s);
        } else if (s->deadline_us < loop->deadline_us) {
            loop->deadline_us = s->deadline_us;
        }
    }
}

/* ---- Receiving ---- */

void stream_touch(struct stream *s)
{
    if (list_empty(&s->touched)) {
        list_push_back(&s->loop->touched, &s->touched);
    }
}

bool stream_wants_input(const struct stream *s)
{
    return s->state != STREAM_GONE && !s->ended && s->error == 0 &&
           (s->state != STREAM_OPEN || !s->paused);
}

void stream_pause(struct stream *s)
{
    HK_ASSERT(s->state == STREAM_OPEN);
    s->paused = true;
    stream_touch(s);
}

void stream_resume(struct stream *s)
{
    HK_ASSERT(s->state == STREAM_OPEN);
    s->paused = false;
    stream_touch(s);
}

int stream_fd(const struct stream *s)
{
    return s->fd;
}

void stream_arrived(struct stream *s, struct bytes bytes)
{
    if (s->state == STREAM_OPEN) {
        s->loop->callbacks++;
        s->ops->received(s->owner, bytes);
    }
}

/* Whether the stream is the owner's or nobody's after this call: true also if the owner has closed
 * or finished it meanwhile. */
static bool stream_call_ended(struct stream *s)
{
    if (s->ops->ended == NULL) {
        return false;
    }
    struct loop *loop = s->loop;
    uint32_t slot = s->slot, generation = stream_generation(s);
    /* Else the socket would report its end again and again. */
    stream_touch(s);
    loop->callbacks++;
    if (s->ops->ended(s->owner)) {
        return true;
    }
    s = loop_stream(loop, slot, generation);
    return s == NULL || s->state != STREAM_OPEN;
}

void stream_ended(struct stream *s, int error)
{
    struct loop *loop = s->loop;
    s->ended = true;
    if (error == 0) {
        /* After a reset that a send has met, the rest looks like an orderly end. */
        error = s->error;
    }
    if (s->state == STREAM_FINISHING && error == 0) {
        stream_touch(s);
    } else if (s->state == STREAM_FINISHING || s->state == STREAM_DRAINING) {
        stream_close(s);
    } else if (s->state == STREAM_OPEN && (error != 0 || !stream_call_ended(s))) {
        const struct stream_ops *ops = s->ops;
        void *owner = s->owner;
        bool lingers = error == 0 && stream_queued(s) > 0;
        if (lingers) {
            stream_linger(s, LOOP_END_LINGER_US);
        } else {
            stream_make_gone(s);
        }
        loop->callbacks++;
        ops->closed(owner, error);
        if (!lingers) {
            loop->backend->detach(s);
        }
    }
}

/* ---- What sending brought about ---- */

void stream_failed(struct stream *s, int error)
{
    HK_ASSERT(error != 0);
    s->error = error;
    list_remove(&s->news);
    list_push_back(&s->loop->broken, &s->news);
}

/* All output of a FINISHING stream is with the kernel. */
static void stream_shut(struct stream *s)
{
    if (s->ended || shutdown(s->fd, SHUT_WR) != 0) {
        stream_close(s);
    } else {
        s->state = STREAM_DRAINING;
    }
}

void loop_report_drained(struct loop *loop)
{
    struct list_link *link;
    while ((link = list_pop_front(&loop->drained)) != NULL) {
        struct stream *s = list_entry(link, struct stream, news);
        s->owed = false;
        if (s->state == STREAM_FINISHING) {
            stream_shut(s);
        } else if (s->ops->drained != NULL) {
            loop->callbacks++;
            s->ops->drained(s->owner);
        }
    }
}

static void loop_report_broken(struct loop *loop)
{
    struct list_link *link;
    while ((link = list_pop_front(&loop->broken)) != NULL) {
        struct stream *s = list_entry(link, struct stream, news);
        stream_ended(s, s->error);
    }
}

uint32_t loop_poll(struct loop *loop, uint64_t timeout_us)
{
    HK_ASSERT(!loop->polling);
    loop->polling = true;
    loop->callbacks = 0;
    uint64_t wait_us = timeout_us;
    if (!list_empty(&loop->drained) || !list_empty(&loop->broken)) {
        wait_us = 0;
    } else if (wait_us > 0 && !list_empty(&loop->finishing)) {
        uint64_t now_us = clock_boot_us();
        uint64_t left_us = loop->deadline_us > now_us ? loop->deadline_us - now_us : 0;
        wait_us = left_us < wait_us ? left_us : wait_us;
    }
    loop->backend->poll(loop, wait_us);
    loop_report_drained(loop);
    loop_report_broken(loop);
    if (!list_empty(&loop->finishing)) {
        loop_expire(loop);
    }
    loop->polling = false;
    return loop->callbacks;
}
