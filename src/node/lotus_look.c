/* What somebody who may look at all of a memory server at once can say of its table. */
#include <string.h>

#include "base/slot.h"
#include "node/lotus.h"

const char *node_table_check(struct node *n, uint32_t space, struct store_thread *thread)
{
    _Alignas(8) uint8_t buffer[LOTUS_NEXT_BYTES];
    const struct space *s = &n->spaces[space];
    struct lotus_table_stats stats;
    struct lotus_row row = {.flags = 0};
    uint8_t last[STORE_KEY_MAX];
    struct bytes after = bytes_of(NULL, 0);
    if (s->table == NULL) {
        return NULL;
    }
    lotus_table_stats(s->table, &stats);
    const char *broken = lotus_table_check(s->table, thread);
    if (broken == NULL && stats.requests > 0) {
        broken = "somebody owns a lock, or waits for one";
    }
    while (broken == NULL &&
           lotus_table_next(s->table, thread, after, after.n == 0, buffer, &row)) {
        struct slot_home home = node_home(n, space, slot_of_key(row.key));
        if (!slot_home_is(home, n->config.self)) {
            broken = "a row of a slot whose home is elsewhere";
        }
        memcpy(last, row.key.at, row.key.n);
        after = bytes_of(last, row.key.n);
    }
    return broken;
}
