/* The configuration of a node: one file in INI syntax, read by inih. Every option stands in one
 * table (config_table.c): section, name, type, default, bounds, text; docs/CONFIG.md is generated
 * from it and held against it by a test. An unknown section, an unknown option or a bad value is an
 * error that names the file and the line and says what would be right.
 *
 * Sections: [node] this process, [cluster] what all nodes must share, [peers] id = host:port for
 * every configured node (this one included; a single node needs no such section), [clients] the
 * Redis side, [user NAME] one a user with any number of `password` lines, [space N] one a space.
 *
 * Threads. struct config is plain memory that may be copied; nothing here locks. What a server lets
 * CONFIG SET change (the options whose row says so) is read and written under the server's lock, by
 * config_get, config_set, config_rewrite, config_auth and config_auth_required; all else never
 * changes after config_read and is read without one. Several options are set together by setting
 * them in a copy and taking the copy if none was refused. */
#ifndef HORKOS_SERVER_CONFIG_H
#define HORKOS_SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/nodeset.h"
#include "net/gate.h"
#include "net/loop.h"
#include "node/node.h"
#include "server/log.h"

#define CONFIG_LISTENS_MAX 8u
#define CONFIG_USERS_MAX 64u
#define CONFIG_PASSWORDS_MAX 8u
#define CONFIG_TEXT_MAX 512u
#define CONFIG_ERROR_MAX 1024u /* of an error message, all told */

struct config_user {
    char name[128];
    uint32_t passwords_n;
    /* BLAKE2b-256 of each (crypto_generichash): the clear text does not stay in memory. Written in
     * the file in clear, or as "blake2b:<64 hex digits>". */
    uint8_t passwords[CONFIG_PASSWORDS_MAX][32];
};

/* What a space of engine galene does beside having homes: [G]'s system and its two baselines. */
enum config_mode { CONFIG_CACHE, CONFIG_BASE, CONFIG_BASE_EREW };

struct config_space {
    bool exists;
    char engine[16]; /* "hermes" */
    enum config_mode mode;
    uint32_t cache_keys; /* keys of the hot set; 0: a thousandth of all */
    uint32_t hot_epoch_ms;
    uint32_t hot_sample; /* one operation in so many is counted */
    uint32_t misses_max; /* unanswered forwarded operations of a worker at a node */
    uint8_t degree;      /* replicas of an object; 0: 3, or minority + 1 */
    uint32_t quantum_us, quantum_most_us; /* how long a new owner keeps an object at least */
    uint32_t pingpong_us;                 /* an object that comes back this soon goes to and fro */
    uint32_t
        backoff_us;     /* the first pause after a request for ownership was refused; 0: by lease */
    uint32_t forget_ms; /* a deleted object, or row, is forgotten so much later */
    uint32_t repair_ms; /* one pass over all objects, for repair and forgetting */
    uint32_t moving_max; /* objects a worker on whose ownership something goes on */
    /* Of engine lotus: how transactions meet, and what a memory server keeps for them. */
    enum lock_policy cc;
    uint32_t txn_lease_ms; /* of one that is not prepared and says nothing */
    bool batch_inside, batch_across, one_trip;
    uint32_t hints_max; /* of a worker; 0: none */
    uint32_t txns_max;  /* of a memory server's worker */
    uint32_t locks_max, txn_locks_max;
    uint64_t near_max;   /* bytes of values that a home keeps; 0: all */
    bool async_reads;    /* [H]: reads confirmed by a majority, for clocks that cannot be trusted */
    bool ack_all;        /* O3: ACKs to all */
    uint64_t memory_max; /* bytes; 0: no limit */
    uint64_t keys_expected;
};

/* By enum node_role: "both", "compute", "memory". */
extern const char *const config_role_names[];

/* How workers of two nodes speak; shm falls back to tcp between hosts. */
enum config_transport { CONFIG_TCP, CONFIG_SHM };

struct config {
    char path[CONFIG_TEXT_MAX]; /* of the file; "" when made from text */

    /* [node] */
    uint8_t id;                       /* 0 .. 63 */
    uint32_t workers;                 /* default 1 */
    char state_file[CONFIG_TEXT_MAX]; /* default: "horkos-<id>.state" beside the file */
    char log_file[CONFIG_TEXT_MAX];   /* default: standard error */
    enum log_level log_level;         /* default info */
    enum loop_kind io;                /* auto, io_uring, epoll */
    enum config_transport peer_transport;
    enum node_role role;  /* of lotus: whether it has rows, and runs transactions */
    uint32_t spin_us;     /* how long an idle worker polls before it sleeps; 0 */
    uint32_t leave_ms;    /* SIGTERM: how long to wait for a graceful leave; 5000 */
    uint32_t handover_ms; /* before that: how long slots may take to go to other nodes; 60000 */

    /* [cluster] */
    char cluster[64]; /* name; its hash is the cluster's id */
    uint64_t cluster_id;
    char key_file[CONFIG_TEXT_MAX]; /* 64 hex digits, no group or other may read it */
    uint8_t key[CLUSTER_KEY_BYTES];
    uint32_t lease_ms;  /* 500; 50 .. 60000 */
    uint32_t drift_ppm; /* clocks' rates differ by at most this; 10000 */

    /* [peers] */
    nodeset nodes;
    struct gate_address peers[NODES_MAX];
    struct gate_address peer_listen; /* [node] peer_listen; default: this node's entry in [peers] */
    uint32_t peer_window;            /* [node] peer_window bytes; 4 MiB */
    uint64_t peer_queue_max;         /* [node] peer_queue_max; 256 MiB */

    /* [clients] */
    struct gate_address
        listens[CONFIG_LISTENS_MAX]; /* `listen`, repeatable; default 127.0.0.1:6379 */
    uint32_t listens_n;
    uint32_t clients_max;                       /* maxclients; 10000, of the node */
    uint64_t clients_memory_max;                /* buffers of all clients together; 1 GiB */
    uint32_t timeout_s;                         /* idle clients are closed; 0: never */
    uint32_t bulk_bytes_max;                    /* proto-max-bulk-len; 64 MiB */
    uint32_t arguments_max;                     /* 1048576 */
    uint32_t query_bytes_max;                   /* 128 MiB */
    uint32_t output_bytes_max;                  /* 256 MiB */
    int64_t slowlog_us;                         /* slowlog-log-slower-than; 10000 */
    uint32_t slowlog_max;                       /* slowlog-max-len; 128 */
    struct config_user users[CONFIG_USERS_MAX]; /* requirepass is user "default" */
    uint32_t users_n;

    bool guarded; /* `protected`: no start when others can reach a node without a password */

    struct config_space spaces[SPACES_MAX]; /* default: [space 0] engine = hermes */

    uint64_t changed; /* bit i: CONFIG SET changed row i of the table */
};

/* Reads and checks a file. On an error returns HK_ERR_INVALID (or HK_ERR_IO), and error_out (size
 * bytes) is one line: "FILE:LINE: what is wrong, what would be right". */
int config_read(const char *path, struct config *config_out, char *error_out, uint32_t size)
    __attribute__((warn_unused_result));
/* The same; key (CLUSTER_KEY_BYTES), if not NULL, is the key where no key file is named. */
int config_read_keyed(const char *path, const uint8_t *key, struct config *config_out,
                      char *error_out, uint32_t size) __attribute__((warn_unused_result));
/* The same from text; relative paths are taken as they stand. */
int config_parse(struct bytes text, const uint8_t *key, struct config *config_out, char *error_out,
                 uint32_t size) __attribute__((warn_unused_result));

/* How much of a lease its holder does not use, so that clocks whose rates differ by drift_ppm
 * cannot make it believe in a lease that its granters have forgotten: view_config.margin_us. */
uint32_t config_margin_us(const struct config *config);

/* Writes docs/CONFIG.md's tables, from the table of options (horkos server --options). */
void config_document(void (*line)(void *context, const char *text), void *context);

/* CONFIG GET, as glob patterns match without regard to case: Redis's names where the meaning is
 * the same ("maxclients", "maxmemory", "proto-max-bulk-len", "timeout",
 * "slowlog-log-slower-than", "slowlog-max-len", "requirepass", "loglevel", "save" (""),
 * "appendonly" ("no"), "databases", ...), ours as "section.name" and "space.N.name". Passwords
 * appear as their hashes. Returns how many were emitted. */
typedef void config_emit_fn(void *context, struct bytes name, struct bytes value);
uint32_t config_get(const struct config *config, struct bytes pattern, config_emit_fn *emit,
                    void *context);
/* CONFIG SET of one option that may change at run time: NULL, or why not (static text or good until
 * the next call on this thread). */
const char *config_set(struct config *config, struct bytes name, struct bytes value);
/* CONFIG REWRITE: writes what CONFIG SET changed into the file, in place of the lines it had (new
 * file, fsync, rename); comments stay. NULL, or why not. */
const char *config_rewrite(const struct config *config);

/* Whether secret is a password of user; "" means "default". Constant time for secrets of one
 * length, whether the user exists or not. User "default" without a password takes any, as in
 * Redis. */
bool config_auth(const struct config *config, struct bytes user, struct bytes secret);
/* Whether user "default" has a password. */
bool config_auth_required(const struct config *config);

#endif
