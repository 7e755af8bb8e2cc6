#include "load/mix.h"

#include <math.h>

#include "base/assert.h"

const char *const load_kind_names[LOAD_KINDS] = {
    [LOAD_READ] = "read", [LOAD_WRITE] = "write", [LOAD_RMW] = "rmw"};

/* 53 random bits: in (0, 1]. */
static double draw(struct random *random)
{
    return (double)((random_next(random) >> 11) + 1) * 0x1p-53;
}

enum load_kind mix_draw(const struct mix *mix, struct random *random)
{
    if (mix->writes <= 0.0 && mix->rmws <= 0.0) {
        return LOAD_READ;
    }
    double percent = draw(random) * 100.0;
    return percent <= mix->writes               ? LOAD_WRITE
           : percent <= mix->writes + mix->rmws ? LOAD_RMW
                                                : LOAD_READ;
}

void schedule_init(struct schedule *s, double rate, bool even, uint64_t from_ns,
                   struct random *random)
{
    HK_ASSERT(rate > 0.0);
    s->gap_ns = 1e9 / rate;
    s->next_ns = (double)from_ns;
    s->even = even;
    schedule_advance(s, random);
}

uint64_t schedule_due_ns(const struct schedule *s)
{
    return (uint64_t)s->next_ns;
}

void schedule_advance(struct schedule *s, struct random *random)
{
    s->next_ns += s->even ? s->gap_ns : -log(draw(random)) * s->gap_ns;
}
