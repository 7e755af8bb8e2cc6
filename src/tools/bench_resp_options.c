#include "tools/bench_resp_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/address.h"
#include "tools/commands.h"
#include "tools/options.h"

static const char help[] =
    "usage: horkos bench --resp HOST:PORT[,HOST:PORT...] [OPTION...]\n"
    "\n"
    "Measures servers that speak the Redis protocol (horkos, Redis) from outside: throughput,\n"
    "latencies, CPU time for a request. The server shall be the bottleneck; this program says\n"
    "what it needs itself, and warns if it was the limit.\n"
    "Exit status: 0 measured, 1 requests failed or no server was reached, 2 a wrong option.\n"
    "\n"
    "the servers\n"
    "  --resp ADDRESS,...    host:port or unix:/path; connections are spread over all\n"
    "  --pids PID,...        their processes, for their CPU time (on this host)\n"
    "\n"
    "the load\n"
    "  --connections N       in all (50)\n"
    "  --pipeline N          requests under way on each connection (1)\n"
    "  --threads N           of this program (1)\n"
    "  --keys N              keys, all written before (1000000)\n"
    "  --no-fill             but for this: they are there already\n"
    "  --value N             bytes of a value (32)\n"
    "  --writes PERCENT      SETs, of all requests; the others are GETs (5)\n"
    "  --wait REPLICAS       a WAIT for so many follows each SET, and counts with it\n"
    "  --dist uniform|zipf:A popularity of the keys (uniform)\n"
    "  --no-scramble         popular keys are neighbours\n"
    "  --rate REQUESTS       open loop: so many requests a second in all, latency from the moment\n"
    "                        that each was meant to start (closed loop)\n"
    "  --even                they start at equal distances (as a Poisson process)\n"
    "  --io auto|io_uring|epoll  how this program drives its sockets (auto)\n"
    "\n"
    "the measurement\n"
    "  --seconds S           of each run (2)\n"
    "  --warmup S            before each run (0.5)\n"
    "  --runs N              runs; reported are median, least and most (5)\n"
    "  --seed N              of everything that is drawn (1)\n"
    "  --json                as JSON\n"
    "  --help                this text\n";

enum option_id {
    OPTION_RESP = 256,
    OPTION_PIDS,
    OPTION_CONNECTIONS,
    OPTION_PIPELINE,
    OPTION_THREADS,
    OPTION_KEYS,
    OPTION_NO_FILL,
    OPTION_VALUE,
    OPTION_WRITES,
    OPTION_WAIT,
    OPTION_DIST,
    OPTION_NO_SCRAMBLE,
    OPTION_RATE,
    OPTION_EVEN,
    OPTION_IO,
    OPTION_SECONDS,
    OPTION_WARMUP,
    OPTION_RUNS,
    OPTION_SEED,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"resp", required_argument, NULL, OPTION_RESP},
    {"pids", required_argument, NULL, OPTION_PIDS},
    {"connections", required_argument, NULL, OPTION_CONNECTIONS},
    {"pipeline", required_argument, NULL, OPTION_PIPELINE},
    {"threads", required_argument, NULL, OPTION_THREADS},
    {"keys", required_argument, NULL, OPTION_KEYS},
    {"no-fill", no_argument, NULL, OPTION_NO_FILL},
    {"value", required_argument, NULL, OPTION_VALUE},
    {"writes", required_argument, NULL, OPTION_WRITES},
    {"wait", required_argument, NULL, OPTION_WAIT},
    {"dist", required_argument, NULL, OPTION_DIST},
    {"no-scramble", no_argument, NULL, OPTION_NO_SCRAMBLE},
    {"rate", required_argument, NULL, OPTION_RATE},
    {"even", no_argument, NULL, OPTION_EVEN},
    {"io", required_argument, NULL, OPTION_IO},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"runs", required_argument, NULL, OPTION_RUNS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static bool parse_servers(const char *text, struct bench_resp_options *o)
{
    struct address_parts parts;
    o->config.servers_n = 0;
    if (strlen(text) >= sizeof o->servers) {
        fprintf(stderr, "horkos bench: --resp is too long\n");
        return false;
    }
    memcpy(o->servers, text, strlen(text) + 1);
    char *rest = o->servers;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        const char *why = address_split(word, &parts);
        if (why != NULL || o->config.servers_n == RESP_LOAD_SERVERS_MAX) {
            fprintf(stderr,
                    "horkos bench: --resp needs 1 to %u addresses, as 127.0.0.1:6379; "
                    "\"%s\": %s\n",
                    RESP_LOAD_SERVERS_MAX, word, why != NULL ? why : "one too many");
            return false;
        }
        o->config.servers[o->config.servers_n++] = word;
    }
    return true;
}

static bool parse_pids(const char *text, struct resp_load_config *c)
{
    char word[16];
    c->pids_n = 0;
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        if (c->pids_n == RESP_LOAD_SERVERS_MAX) {
            fprintf(stderr, "horkos bench: --pids takes at most %u\n", RESP_LOAD_SERVERS_MAX);
            return false;
        }
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), at);
        if (!options_u32("bench", "--pids", word, 1, INT32_MAX, &c->pids[c->pids_n++])) {
            return false;
        }
        at += n;
        if (*at == '\0') {
            return true;
        }
    }
}

static bool parse_io(const char *text, enum loop_kind *kind_out)
{
    for (uint32_t i = LOOP_AUTO; i <= LOOP_EPOLL; i++) {
        if (strcmp(text, loop_kind_name((enum loop_kind)i)) == 0) {
            *kind_out = (enum loop_kind)i;
            return true;
        }
    }
    fprintf(stderr, "horkos bench: --io is auto, io_uring or epoll, not \"%s\"\n", text);
    return false;
}

static bool parse_dist(const char *text, struct keys_config *keys)
{
    if (!keys_parse(text, &keys->exponent)) {
        fprintf(stderr,
                "horkos bench: --dist is uniform or zipf:EXPONENT, as zipf:0.99, not \"%s\"\n",
                text);
        return false;
    }
    return true;
}

static bool parse_load(int id, const char *text, struct resp_load_config *c)
{
    switch (id) {
    case OPTION_CONNECTIONS:
        return options_u32("bench", "--connections", text, 1, RESP_LOAD_CONNECTIONS_MAX,
                           &c->connections);
    case OPTION_PIPELINE:
        return options_u32("bench", "--pipeline", text, 1, RESP_LOAD_PIPELINE_MAX, &c->pipeline);
    case OPTION_THREADS:
        return options_u32("bench", "--threads", text, 1, RESP_LOAD_THREADS_MAX, &c->threads);
    case OPTION_KEYS:
        return options_number("bench", "--keys", text, 1, 999999999999u, &c->keys.n);
    case OPTION_NO_FILL:
        c->fill = false;
        return true;
    case OPTION_VALUE:
        return options_u32("bench", "--value", text, 0, RESP_LOAD_VALUE_BYTES_MAX, &c->value_bytes);
    case OPTION_WRITES:
        return options_real("bench", "--writes", text, 0.0, 100.0, &c->mix.writes);
    case OPTION_WAIT:
        return options_u32("bench", "--wait", text, 1, 63, &c->wait_replicas);
    case OPTION_DIST:
        return parse_dist(text, &c->keys);
    case OPTION_NO_SCRAMBLE:
        c->keys.scramble = false;
        return true;
    case OPTION_RATE:
        return options_real("bench", "--rate", text, 1.0, 1e9, &c->rate);
    case OPTION_EVEN:
        c->even = true;
        return true;
    case OPTION_IO:
        return parse_io(text, &c->io);
    default:
        return false;
    }
}

static bool parse_one(int id, const char *text, struct bench_resp_options *o)
{
    switch (id) {
    case OPTION_RESP:
        return parse_servers(text, o);
    case OPTION_PIDS:
        return parse_pids(text, &o->config);
    case OPTION_SECONDS:
        return options_real("bench", "--seconds", text, 0.01, 3600.0, &o->seconds);
    case OPTION_WARMUP:
        return options_real("bench", "--warmup", text, 0.0, 3600.0, &o->warmup);
    case OPTION_RUNS:
        return options_u32("bench", "--runs", text, 1, BENCH_RESP_RUNS_MAX, &o->runs);
    case OPTION_SEED:
        return options_number("bench", "--seed", text, 0, UINT32_MAX, &o->config.seed);
    case OPTION_JSON:
        o->json = true;
        return true;
    default:
        return parse_load(id, text, &o->config);
    }
}

static bool consistent(const struct bench_resp_options *o)
{
    const struct resp_load_config *c = &o->config;
    if (c->servers_n == 0) {
        fprintf(stderr, "horkos bench: --resp names no server\n");
        return false;
    }
    if (c->threads > c->connections) {
        fprintf(stderr, "horkos bench: --threads are more than --connections\n");
        return false;
    }
    if (c->even && c->rate == 0.0) {
        fprintf(stderr, "horkos bench: --even is for an open loop; it needs --rate\n");
        return false;
    }
    return true;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            return true;
        }
    }
    return false;
}

int bench_resp_options_parse(int argc, char **argv, struct bench_resp_options *options_out,
                             bool *help_out)
{
    struct bench_resp_options *o = options_out;
    memset(o, 0, sizeof *o);
    o->config = (struct resp_load_config){
        .connections = 50,
        .pipeline = 1,
        .threads = 1,
        .keys = {.n = 1000000, .scramble = true},
        .mix = {.writes = 5.0},
        .value_bytes = 32,
        .seed = 1,
        .fill = true,
    };
    o->seconds = 2.0;
    o->warmup = 0.5;
    o->runs = 5;
    /* Also where a value is due: `horkos bench --resp --help`. */
    *help_out = asks_for_help(argc, argv);
    if (*help_out) {
        fputs(help, stdout);
        return STATUS_OK;
    }
    optind = 0;
    for (int id; (id = options_next(argc, argv, ":", long_options)) != -1;) {
        if (id == '?' || id == ':') {
            options_complain("bench", id, argv, long_options);
            return STATUS_USAGE;
        }
        if (!parse_one(id, optarg, o)) {
            return STATUS_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "horkos bench: \"%s\" is no option; all of them begin with --\n",
                argv[optind]);
        return STATUS_USAGE;
    }
    o->config.keys.seed = o->config.seed;
    return consistent(o) ? STATUS_OK : STATUS_USAGE;
}
