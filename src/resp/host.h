/* What a connection asks of the process that it is served by. The server fills this in with its
 * clients, configuration and figures, the simulator with as little as its clients need. Callbacks
 * run on the connection's own thread, inside resp_conn_next or resp_conn_answer, and never block.
 * A callback that is NULL makes its commands answer that they are not available here. */
#ifndef HORKOS_RESP_HOST_H
#define HORKOS_RESP_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "resp/out.h"
#include "resp/parse.h"

/* The version of Redis whose commands and replies clients may count on: what HELLO tells, and INFO
 * has to as redis_version. */
#define RESP_REDIS_VERSION "7.2.0"

struct resp_conn;
struct resp_conn_info; /* resp/conn.h */

/* As many arguments of a slow command are kept, and so many bytes of each; with the words about
 * what is missing, an argument is at most RESP_SLOW_WORD_MAX bytes. */
#define RESP_SLOW_ARGUMENTS 32u
#define RESP_SLOW_ARGUMENT_BYTES 128u
#define RESP_SLOW_WORD_MAX (RESP_SLOW_ARGUMENT_BYTES + 32u)

/* One slow command, for SLOWLOG. */
struct resp_slow {
    uint64_t id; /* given by the host */
    uint64_t started_s;
    uint64_t took_us;
    uint32_t arguments;       /* of the whole command */
    const struct bytes *args; /* the first of them, by resp_slow_word; secret ones: "(redacted)" */
    uint32_t args_n;
    const char *address, *name;
};

/* CLIENT KILL's and CLIENT LIST's filters; what is 0 or NULL does not count. */
struct resp_client_filter {
    const uint64_t *ids;
    uint32_t ids_n;
    const char *address, *local, *user;
    uint64_t maxage_s;
    uint64_t skip; /* a connection that is not meant; 0: none */
};

typedef void resp_emit_fn(void *context, struct bytes name, struct bytes value);
/* A key that exists. */
typedef void resp_key_fn(void *context, struct bytes key);

#define RESP_HOTKEYS_MAX 128u
typedef void resp_hotkey_fn(void *context, struct bytes key, uint64_t rate);

enum resp_auth { RESP_AUTH_OK, RESP_AUTH_WRONG };

struct resp_host {
    void *context;
    /* Wall clock in us since 1970. Not NULL. */
    uint64_t (*wall_us)(void *context);
    uint64_t (*random)(void *context); /* not NULL */
    /* The limits of ordinary (authenticated) connections, as configured at the moment. */
    const struct resp_limits *(*limits)(void *context);

    /* Users. `required`: whether a new connection must authenticate. user NULL: "default".
     * secret: compared in constant time by the host. */
    bool (*auth_required)(void *context);
    enum resp_auth (*auth)(void *context, struct bytes user, struct bytes secret);

    /* Which spaces exist (bit n: SELECT n works), and the name of the engine of one. */
    uint32_t (*spaces)(void *context);
    const char *(*engine)(void *context, uint32_t space);
    /* Whether that engine has transactions: then txn_request is understood there. NULL: none. */
    bool (*transactions)(void *context, uint32_t space);
    /* Whether its keys have an order, so that transactions there may have ranges. Then they are
     * walked by ranges instead of `walk`. NULL: none. */
    bool (*ordered)(void *context, uint32_t space);
    /* Places in that order that SCAN tells as numbers. keep: a number for the place behind `key`,
     * from 1 to 2^53 - 1 (clients take it for a double), instead of `cursor`'s (0: a new one);
     * 0: no memory. find: writes the key of a number that was given here and is not forgotten to
     * `key`, false: there is none. Who scans on is remembered longer than who does not. */
    uint64_t (*place_keep)(void *context, uint64_t cursor, struct bytes key);
    bool (*place_find)(void *context, uint64_t cursor, struct resp_out *key);
    /* Number of this node, or -1; on how many other nodes every acknowledged write of a space is:
     * its live replicas less one, or 0 where a key has but one copy. */
    int (*node)(void *context);
    uint32_t (*replicas)(void *context, uint32_t space);
    /* HK_OK if this node serves at the moment, or the error that its operations would get. */
    int (*serving)(void *context);

    /* Appends INFO's section (lower case, as "server"; the section header included) as text lines
     * to out with resp_out_raw; false if there is no such section. */
    bool (*info)(void *context, const char *section, struct resp_out *text);
    /* The sections in their order, NULL at the end: those of a plain INFO, or of INFO all. */
    const char *const *(*info_sections)(void *context, bool all);

    /* Emits what matches a glob pattern; how many. */
    uint32_t (*config_get)(void *context, struct bytes pattern, resp_emit_fn *emit, void *emit_to);
    /* NULL, or an error text (without "ERR "), good until the next call. All of n pairs or none. */
    const char *(*config_set)(void *context, uint32_t n, const struct bytes *names,
                              const struct bytes *values);
    const char *(*config_rewrite)(void *context);
    void (*reset_stats)(void *context);

    /* CLIENT LIST: lines by resp_client_line; CLIENT KILL: how many were told to close. The caller
     * is always `skip` of client_kill: it closes itself after its reply if it is meant. */
    void (*client_list)(void *context, const struct resp_client_filter *filter,
                        struct resp_out *text);
    uint32_t (*client_kill)(void *context, const struct resp_client_filter *filter);

    void (*slow_add)(void *context, const struct resp_slow *slow);
    int64_t (*slow_threshold_us)(void *context); /* negative: off */
    /* Newest first; writes an array of at most n (-1: all) entries to out by resp_slow_write. */
    void (*slow_get)(void *context, int64_t n, struct resp_out *out);
    uint64_t (*slow_length)(void *context);
    void (*slow_reset)(void *context);

    /* Keys of a space: calls back for those that exist and are found at `cursor` (a few), returns
     * the next cursor, 0 at the end (0 is also the start). A client may give any cursor
     * (SCAN, RANDOMKEY): the walk goes on somewhere or ends. Every key that exists during a whole
     * walk is emitted at least once. */
    uint64_t (*walk)(void *context, uint32_t space, uint64_t cursor, resp_key_fn *emit,
                     void *emit_to);
    uint64_t (*keys)(void *context, uint32_t space); /* about how many there are */

    /* HOTKEYS: emits the keys of a space that this node's clients ask for the most, at most count
     * (1 to RESP_HOTKEYS_MAX), the hottest first, with operations a second. HK_OK, or why not. */
    int (*hotkeys)(void *context, uint32_t space, uint32_t count, resp_hotkey_fn *emit,
                   void *emit_to);

    /* SHUTDOWN: save is 0, `now` skips leaving. NULL, or an error text. */
    const char *(*shutdown)(void *context, bool now);
    /* HORKOS <subcommand> ...: writes its reply. space: the connection's. False: no such
     * subcommand. */
    bool (*horkos)(void *context, uint32_t space, uint32_t n, const struct bytes *args,
                   struct resp_out *out);
    /* The connection's name, user, database, ... changed: for CLIENT LIST of others. */
    void (*changed)(void *context, const struct resp_conn *conn);
};

/* An argument of n bytes as SLOWLOG shows it, "abc... (N more bytes)" if it is longer than what it
 * keeps or than `head`, the part of it that there is. Points to head or to text. */
struct bytes resp_slow_word(struct bytes head, uint32_t n, char text[RESP_SLOW_WORD_MAX]);
/* Writes one entry of SLOWLOG GET. */
void resp_slow_write(const struct resp_slow *slow, struct resp_out *out);

/* Appends a connection's line of CLIENT LIST, its line break included. CLIENT INFO uses
 * it, and a host should for client_list, so that both have the same fields. */
void resp_client_line(const struct resp_conn_info *info, uint64_t now_us, struct resp_out *text);
/* Whether a connection is meant by a filter. */
bool resp_client_matches(const struct resp_client_filter *filter, const struct resp_conn_info *info,
                         uint64_t now_us);

#endif
