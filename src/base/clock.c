/* clock_gettime is POSIX, not C17. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "base/clock.h"

#include <time.h>

#include "base/assert.h"

static struct timespec clock_read(clockid_t clock)
{
    struct timespec t;
    /* Fails only for a clock that the kernel does not know. */
    HK_ASSERT(clock_gettime(clock, &t) == 0);
    return t;
}

uint64_t clock_boot_us(void)
{
    struct timespec t = clock_read(CLOCK_BOOTTIME);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

uint64_t clock_wall_ms(void)
{
    struct timespec t = clock_read(CLOCK_REALTIME);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}
