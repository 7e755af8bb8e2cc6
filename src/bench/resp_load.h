/* Load for a server that speaks RESP2, measured from outside: many connections on few threads, each
 * with a loop (net/loop.h) of its own. Keys are "key:" and 12 digits.
 *
 * A closed loop sends `pipeline` requests over each connection, waits for all their replies, and
 * sends the next. An open loop starts requests when a schedule says so, over the next connection
 * that has fewer than `pipeline` under way; a request that finds none waits, and its latency counts
 * from the moment at which it was meant to start.
 *
 * Threads. All functions are called from one thread. */
#ifndef HORKOS_BENCH_RESP_LOAD_H
#define HORKOS_BENCH_RESP_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "load/keys.h"
#include "load/mix.h"
#include "net/loop.h"

#define RESP_LOAD_SERVERS_MAX 16u
#define RESP_LOAD_CONNECTIONS_MAX 10000u
#define RESP_LOAD_PIPELINE_MAX 1024u
#define RESP_LOAD_THREADS_MAX 64u
#define RESP_LOAD_VALUE_BYTES_MAX (1u << 20)
#define RESP_LOAD_KEY_BYTES 16u

struct resp_load_config {
    const char *servers[RESP_LOAD_SERVERS_MAX]; /* host:port or unix:/path; taken in turn */
    uint32_t servers_n;
    uint32_t connections, pipeline, threads;
    struct keys_config keys;
    struct mix mix; /* reads are GETs, writes SETs; no read-modify-writes */
    uint32_t value_bytes;
    uint32_t wait_replicas; /* a WAIT for so many follows each SET and belongs to it; 0: none */
    double rate;            /* requests a second of an open loop, all threads; 0: closed loop */
    bool even;              /* of the open loop: at equal distances instead of Poisson's */
    enum loop_kind io;
    uint64_t seed;
    bool fill; /* write every key first */
    uint32_t pids[RESP_LOAD_SERVERS_MAX],
        pids_n; /* of the servers on this host, for their CPU time */
    void (*progress)(void *context, uint64_t done, uint64_t all); /* of filling; may be NULL */
    void *context;
};

struct resp_load;

/* Connects and fills. HK_ERR_NOMEM, HK_ERR_IO; why_out (size bytes) says more. */
int resp_load_create(const struct resp_load_config *config, char *why_out, uint32_t size,
                     struct resp_load **load_out) __attribute__((warn_unused_result));
void resp_load_destroy(struct resp_load *load);

struct resp_run {
    double seconds;
    double client_cpu_seconds;  /* of this process */
    double servers_cpu_seconds; /* NAN: no pids */
    uint64_t ops[LOAD_KINDS];
    uint64_t failed;  /* errors, and replies that cannot be right; counted in ops as well */
    uint64_t missing; /* reads that found no key */
    struct histogram latency_ns[LOAD_KINDS];
};

/* Loads the servers for so long and then lets all replies come in; the first warmup_seconds do not
 * count. HK_ERR_IO: a connection broke, a server said nothing for 10 seconds, or a process is gone;
 * why_out says which. */
int resp_load_run(struct resp_load *load, double warmup_seconds, double seconds,
                  struct resp_run *run_out, char *why_out, uint32_t size)
    __attribute__((warn_unused_result));
/* The first error that a server answered with; "": none. */
const char *resp_load_error(const struct resp_load *load);

#endif
