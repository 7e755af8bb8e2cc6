#include "node/wheel.h"

#include "base/assert.h"

static uint64_t tick_after(uint64_t due_us)
{
    return (due_us + (1u << WHEEL_TICK_BITS) - 1) >> WHEEL_TICK_BITS;
}

void wheel_init(struct wheel *w, uint64_t now_us)
{
    w->tick = now_us >> WHEEL_TICK_BITS;
    list_init(&w->fired);
    for (uint32_t i = 0; i < WHEEL_SLOTS; i++) {
        list_init(&w->slots[i]);
    }
    for (uint32_t i = 0; i < WHEEL_SLOTS / 64; i++) {
        w->used[i] = 0;
    }
}

void timer_init(struct timer *t, uint8_t kind)
{
    list_init(&t->link);
    t->due_us = 0;
    t->place = TIMER_IDLE;
    t->kind = kind;
}

void wheel_arm(struct wheel *w, struct timer *t, uint64_t due_us)
{
    wheel_disarm(w, t);
    uint64_t tick = tick_after(due_us);
    if (tick <= w->tick) {
        tick = w->tick + 1;
    }
    if (tick >= w->tick + WHEEL_SLOTS) {
        /* Too far ahead: the last slot that the wheel reaches looks at it again. */
        tick = w->tick + WHEEL_SLOTS - 1;
    }
    t->due_us = due_us;
    t->place = (uint32_t)(tick % WHEEL_SLOTS);
    list_push_back(&w->slots[t->place], &t->link);
    w->used[t->place / 64] |= (uint64_t)1 << (t->place % 64);
}

void wheel_disarm(struct wheel *w, struct timer *t)
{
    if (t->place == TIMER_IDLE) {
        return;
    }
    list_remove(&t->link);
    if (t->place != TIMER_FIRED && list_empty(&w->slots[t->place])) {
        w->used[t->place / 64] &= ~((uint64_t)1 << (t->place % 64));
    }
    t->place = TIMER_IDLE;
}

/* Empties one slot: what is due has fired, what is not is armed again. */
static void fire_slot(struct wheel *w, uint32_t place, uint64_t now_us)
{
    struct list_link waiting;
    list_init(&waiting);
    list_append(&waiting, &w->slots[place]);
    w->used[place / 64] &= ~((uint64_t)1 << (place % 64));
    struct list_link *link;
    while ((link = list_pop_front(&waiting)) != NULL) {
        struct timer *t = list_entry(link, struct timer, link);
        if (t->due_us <= now_us) {
            t->place = TIMER_FIRED;
            list_push_back(&w->fired, &t->link);
        } else {
            t->place = TIMER_IDLE;
            wheel_arm(w, t, t->due_us);
        }
    }
}

void wheel_advance(struct wheel *w, uint64_t now_us)
{
    uint64_t until = now_us >> WHEEL_TICK_BITS;
    if (until <= w->tick) {
        return;
    }
    uint64_t from = w->tick + 1;
    uint64_t steps = until - w->tick;
    /* The wheel stands at its new place first, so that what is armed again lands ahead of it. */
    w->tick = until;
    if (steps > WHEEL_SLOTS) {
        steps = WHEEL_SLOTS;
    }
    for (uint64_t i = 0; i < steps; i++) {
        uint32_t place = (uint32_t)((from + i) % WHEEL_SLOTS);
        if ((w->used[place / 64] >> (place % 64) & 1) != 0) {
            fire_slot(w, place, now_us);
        }
    }
}

struct timer *wheel_take(struct wheel *w)
{
    struct list_link *link = list_pop_front(&w->fired);
    if (link == NULL) {
        return NULL;
    }
    struct timer *t = list_entry(link, struct timer, link);
    t->place = TIMER_IDLE;
    return t;
}

uint64_t wheel_deadline(const struct wheel *w)
{
    if (!list_empty(&w->fired)) {
        return w->tick << WHEEL_TICK_BITS;
    }
    for (uint32_t i = 1; i < WHEEL_SLOTS;) {
        uint32_t place = (uint32_t)((w->tick + i) % WHEEL_SLOTS);
        uint64_t word = w->used[place / 64] >> (place % 64);
        if (word == 0) {
            i += 64 - place % 64;
            continue;
        }
        i += (uint32_t)__builtin_ctzll(word);
        if (i >= WHEEL_SLOTS) {
            break;
        }
        return (w->tick + i) << WHEEL_TICK_BITS;
    }
    return UINT64_MAX;
}
