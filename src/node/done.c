/* The end of what step_hot has begun. */
#include "node/internal.h"

void hot_done(struct worker *w, const struct flow *f)
{
    (void)w;
    (void)f;
}
