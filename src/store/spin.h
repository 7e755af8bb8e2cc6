/* A spin lock for sections of some tens of instructions, and the way to wait that every spinning
 * loop of the store shares. */
#ifndef HORKOS_STORE_SPIN_H
#define HORKOS_STORE_SPIN_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Turns before the processor is given away: the holder may be waiting for it. */
#define SPIN_TURNS 64u

/* One turn of a waiting loop; *turns starts at 0. */
static inline void spin_wait(uint32_t *turns)
{
    if (++*turns % SPIN_TURNS == 0) {
        sched_yield();
        return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

struct spin {
    _Atomic uint32_t held;
};

static inline void spin_init(struct spin *s)
{
    atomic_init(&s->held, 0);
}

static inline bool spin_try(struct spin *s)
{
    /* relaxed: only decides whether an exchange is worth its write. */
    if (atomic_load_explicit(&s->held, memory_order_relaxed) != 0) {
        return false;
    }
    /* acquire: pairs with the release in spin_unlock. */
    return atomic_exchange_explicit(&s->held, 1, memory_order_acquire) == 0;
}

static inline void spin_lock(struct spin *s)
{
    uint32_t turns = 0;
    while (!spin_try(s)) {
        spin_wait(&turns);
    }
}

static inline void spin_unlock(struct spin *s)
{
    /* release: pairs with the acquire in spin_try. */
    atomic_store_explicit(&s->held, 0, memory_order_release);
}

#endif
