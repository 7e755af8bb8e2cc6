/* Inside of config: what is known while a file is read, above all which line said what. */
#ifndef HORKOS_SERVER_CONFIG_READING_H
#define HORKOS_SERVER_CONFIG_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "server/config_table.h"

struct config_reading {
    struct config *config;
    const char *file; /* as messages name it */
    const char *text; /* n bytes */
    uint32_t n, at;
    const uint8_t *key; /* CLUSTER_KEY_BYTES; NULL: a key_file is named where one is needed */
    char *error;        /* size bytes */
    uint32_t size;
    bool failed;

    uint32_t line; /* the one that is being read, from 1 */
    bool in_section;
    enum config_section section;
    uint32_t space;           /* of [space N] */
    struct config_user *user; /* of [user NAME] */

    /* The line of each thing; 0: it was not there. */
    uint32_t lines[CONFIG_OPTIONS_MAX];
    uint32_t section_lines[SECTIONS];
    uint32_t space_lines[SPACES_MAX];
    uint32_t space_option_lines[SPACES_MAX][CONFIG_OPTIONS_MAX];
    uint32_t user_lines[CONFIG_USERS_MAX];
    uint32_t peer_lines[NODES_MAX];
    uint32_t listen_lines[CONFIG_LISTENS_MAX];
};

/* Keeps the first message, "FILE:LINE: ..." (line 0: "FILE: ..."). Always false. */
bool config_reading_fail(struct config_reading *r, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* After the last line: what depends on several lines, derived defaults, paths, the key. */
bool config_reading_check(struct config_reading *r);

#endif
