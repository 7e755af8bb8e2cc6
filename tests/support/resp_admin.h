/* A rig whose host answers everything that a server's does: sections of INFO, options, slow
 * commands, clients, SHUTDOWN and HORKOS, all kept in plain memory that a test can look at. */
#ifndef HORKOS_TESTS_SUPPORT_RESP_ADMIN_H
#define HORKOS_TESTS_SUPPORT_RESP_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "resp_rig.h"

#define ADMIN_SLOW_MAX 8u
#define ADMIN_OPTION_MAX 64u

/* One slow command, copied. */
struct admin_slow {
    struct resp_slow slow;
    struct bytes args[RESP_SLOW_ARGUMENTS];
    uint8_t bytes[RESP_SLOW_ARGUMENTS * RESP_SLOW_WORD_MAX];
};

struct admin {
    struct rig rig; /* first: the host's context is the rig */
    char maxmemory[ADMIN_OPTION_MAX], slower_than[ADMIN_OPTION_MAX];
    uint32_t config_sets, stat_resets, rewrites;
    struct admin_slow slow[ADMIN_SLOW_MAX]; /* the oldest first */
    uint32_t slow_n;
    uint64_t slow_id;
    int64_t slow_threshold_us;
    uint32_t hotkeys_count; /* that the last HOTKEYS asked for */
    int hotkeys_error;
    uint32_t shutdowns;
    bool shutdown_now;
    const char *shutdown_error;
    /* Another client, and how often it was told to close. */
    struct resp_conn_info other;
    uint32_t kills;
    uint64_t kill_skip; /* of the last CLIENT KILL */
    uint32_t changes;
};

/* password: NULL for none. */
void admin_init(struct admin *admin, const char *password);
void admin_deinit(struct admin *admin);

#endif
