/* One table of a memory server on one thread, and holders that step by hand: what every test of the
 * table begins with. Keys and values are texts. */
#ifndef HORKOS_TESTS_SUPPORT_NODE_TABLE_H
#define HORKOS_TESTS_SUPPORT_NODE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "node/lotus_table.h"

#define TABLE_HOLDERS 40u

struct table_rig {
    struct lotus_config lotus; /* set before table_open; what is 0 gets a default */
    struct store_config memory;
    struct store *store;
    struct store_thread *thread;
    struct lotus_table *table;
    struct lotus_holder holders[TABLE_HOLDERS];
    uint32_t woken[TABLE_HOLDERS]; /* how often, since the holder's last table_begin */
    /* Another worker's turn, once, as soon as anybody is woken, which is when a latch has been let
     * go: in the middle of somebody's step. NULL: nobody's. */
    void (*between)(struct table_rig *rig);
    uint64_t now_us;
    uint64_t buffer[LOTUS_NEXT_BYTES / 8u];
    struct lotus_row row; /* of the last step */
};

void table_open(struct table_rig *rig);
/* Checks all invariants; no holder may be at work. */
void table_close(struct table_rig *rig);
void table_check(struct table_rig *rig);

/* A try of that age: less is older. */
void table_begin(struct table_rig *rig, uint32_t holder, uint64_t age);
enum table_word table_read(struct table_rig *rig, uint32_t holder, const char *key);
/* X on it. */
enum table_word table_take(struct table_rig *rig, uint32_t holder, const char *key);
/* Prepares; false: wounded. */
bool table_prepare(struct table_rig *rig, uint32_t holder);
/* Of a holder that is prepared; value NULL: deletes. */
void table_write(struct table_rig *rig, uint32_t holder, const char *key, const char *value);
void table_end(struct table_rig *rig, uint32_t holder);

/* A whole transaction of holder 0, which must go through; value NULL: deletes. */
void table_set(struct table_rig *rig, const char *key, const char *value);
/* "value", or NULL for an absent row, of a transaction of its own. */
const char *table_get(struct table_rig *rig, const char *key);

/* A scan's rows as "a=1 b=2 ", and what ended it. The scan may go on when it waited. */
struct table_scan {
    struct lotus_scan scan;
    char rows[512];
};
void table_scan_init(struct table_scan *scan, const char *from, const char *to, uint32_t limit,
                     bool reverse);
enum table_word table_scan(struct table_rig *rig, uint32_t holder, struct table_scan *scan);
void table_scan_end(struct table_rig *rig, struct table_scan *scan);

/* All entries as "a=1 b(2) ", ghosts with their version in brackets. */
const char *table_entries(struct table_rig *rig);

#endif
