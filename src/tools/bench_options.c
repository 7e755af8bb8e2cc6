#include "tools/bench_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/engines.h"
#include "tools/commands.h"
#include "tools/options.h"

static const char help[] =
    "usage: horkos bench [OPTION...]\n"
    "\n"
    "Runs a whole cluster inside this process and measures it: throughput, CPU time and messages\n"
    "for an operation, latencies. Nodes, engine and links are the real ones; the load is drawn by\n"
    "the nodes' workers themselves. docs/BENCH.md says how to read what it prints.\n"
    "Exit status: 0 measured, 1 operations failed or the cluster did not start, 2 a wrong option.\n"
    "Servers that run already are measured by horkos bench --resp; see horkos bench --resp "
    "--help.\n"
    "Transactions: horkos bench --workload; see horkos bench --workload --help.\n"
    "\n"
    "the cluster\n"
    "  --engine NAME         the protocol (hermes)\n"
    "  --compare A,B[,C]     several engines in turn, and the ratios of the first to the others\n"
    "  --nodes N             nodes (3)\n"
    "  --workers N           workers of each node (1)\n"
    "  --port shm|tcp        links: rings in memory, or sockets over the loopback (shm)\n"
    "  --threads             a thread for each worker (default if there are processors enough)\n"
    "  --cooperative         one thread runs all workers in turn: CPU time for an operation\n"
    "  --o3                  hermes: acknowledgements go to all nodes\n"
    "  --async-reads         a majority confirms reads, instead of a lease\n"
    "  --mode M              galene: cache (hot keys on all nodes), base, base-erew (one worker "
    "of\n"
    "                        the home touches a key), or uniform: base under uniform keys (cache)\n"
    "  --cache-keys N        galene: keys in the cache (a thousandth of the keys, at least 64)\n"
    "  --hot-epoch MS        galene: how often the hot set is chosen anew (1000)\n"
    "  --hot-sample N        galene: one operation in so many is counted for it (16)\n"
    "\n"
    "the load\n"
    "  --keys N              keys, all written before (1000000)\n"
    "  --key-bytes N         their length (8)\n"
    "  --value N             bytes of a value (32)\n"
    "  --writes PERCENT      of all operations (5)\n"
    "  --rmws PERCENT        read-modify-writes, of all operations (0)\n"
    "  --dist uniform|zipf:A popularity of the keys (uniform)\n"
    "  --no-scramble         popular keys are neighbours\n"
    "  --in-flight N         operations in flight at each worker (64)\n"
    "  --rate OPS            open loop: so many operations a second in all, latency from the\n"
    "                        moment that each was meant to begin (closed loop)\n"
    "  --even                they arrive at equal distances (as a Poisson process)\n"
    "  --read-path direct|node   reads on the caller's thread, or as requests to the node\n"
    "                        (direct, unless reads are asynchronous)\n"
    "\n"
    "the measurement\n"
    "  --seconds S           of each run (2)\n"
    "  --warmup S            before each run (0.5)\n"
    "  --runs N              runs; reported are median, least and most (5)\n"
    "  --seed N              of everything that is drawn (1)\n"
    "  --probe               also this machine's limits, on the same pages\n"
    "  --json                as JSON\n"
    "  --help                this text\n"
    "\n"
    "engines:";

enum option_id {
    OPTION_ENGINE = 256,
    OPTION_COMPARE,
    OPTION_NODES,
    OPTION_WORKERS,
    OPTION_PORT,
    OPTION_THREADS,
    OPTION_COOPERATIVE,
    OPTION_O3,
    OPTION_ASYNC_READS,
    OPTION_MODE,
    OPTION_CACHE_KEYS,
    OPTION_HOT_EPOCH,
    OPTION_HOT_SAMPLE,
    OPTION_KEYS,
    OPTION_KEY_BYTES,
    OPTION_VALUE,
    OPTION_WRITES,
    OPTION_RMWS,
    OPTION_DIST,
    OPTION_NO_SCRAMBLE,
    OPTION_IN_FLIGHT,
    OPTION_RATE,
    OPTION_EVEN,
    OPTION_READ_PATH,
    OPTION_SECONDS,
    OPTION_WARMUP,
    OPTION_RUNS,
    OPTION_SEED,
    OPTION_PROBE,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"engine", required_argument, NULL, OPTION_ENGINE},
    {"compare", required_argument, NULL, OPTION_COMPARE},
    {"nodes", required_argument, NULL, OPTION_NODES},
    {"workers", required_argument, NULL, OPTION_WORKERS},
    {"port", required_argument, NULL, OPTION_PORT},
    {"threads", no_argument, NULL, OPTION_THREADS},
    {"cooperative", no_argument, NULL, OPTION_COOPERATIVE},
    {"o3", no_argument, NULL, OPTION_O3},
    {"async-reads", no_argument, NULL, OPTION_ASYNC_READS},
    {"mode", required_argument, NULL, OPTION_MODE},
    {"cache-keys", required_argument, NULL, OPTION_CACHE_KEYS},
    {"hot-epoch", required_argument, NULL, OPTION_HOT_EPOCH},
    {"hot-sample", required_argument, NULL, OPTION_HOT_SAMPLE},
    {"keys", required_argument, NULL, OPTION_KEYS},
    {"key-bytes", required_argument, NULL, OPTION_KEY_BYTES},
    {"value", required_argument, NULL, OPTION_VALUE},
    {"writes", required_argument, NULL, OPTION_WRITES},
    {"rmws", required_argument, NULL, OPTION_RMWS},
    {"dist", required_argument, NULL, OPTION_DIST},
    {"no-scramble", no_argument, NULL, OPTION_NO_SCRAMBLE},
    {"in-flight", required_argument, NULL, OPTION_IN_FLIGHT},
    {"rate", required_argument, NULL, OPTION_RATE},
    {"even", no_argument, NULL, OPTION_EVEN},
    {"read-path", required_argument, NULL, OPTION_READ_PATH},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"runs", required_argument, NULL, OPTION_RUNS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"probe", no_argument, NULL, OPTION_PROBE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

/* What was left to be decided when all options are known. */
struct asked {
    bool threads, cooperative, direct, node, engine, compare;
    bool hot, dist, warmup; /* of the cache's options any; --dist; --warmup */
};

const char *const bench_mode_names[BENCH_MODES] = {
    [BENCH_MODE_CACHE] = "cache",
    [BENCH_MODE_BASE] = "base",
    [BENCH_MODE_BASE_EREW] = "base-erew",
    [BENCH_MODE_UNIFORM] = "uniform",
};

static void print_help(void)
{
    fputs(help, stdout);
    for (uint32_t i = 0; engines_at(i) != NULL; i++) {
        printf(" %s", engines_at(i)->name);
    }
    printf("\n");
}

static bool parse_port(const char *text, enum bench_port *port_out)
{
    for (uint32_t i = BENCH_SHM; i <= BENCH_TCP; i++) {
        if (strcmp(text, bench_port_names[i]) == 0) {
            *port_out = (enum bench_port)i;
            return true;
        }
    }
    fprintf(stderr, "horkos bench: --port is shm or tcp, not \"%s\"\n", text);
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

static bool parse_read_path(const char *text, struct asked *asked)
{
    asked->direct = strcmp(text, "direct") == 0;
    asked->node = strcmp(text, "node") == 0;
    if (!asked->direct && !asked->node) {
        fprintf(stderr, "horkos bench: --read-path is direct or node, not \"%s\"\n", text);
        return false;
    }
    return true;
}

static bool find_engine(const char *name, struct bench_options *o)
{
    const struct engine_ops *ops = engines_find(name);
    if (ops == NULL) {
        fprintf(stderr, "horkos bench: there is no engine \"%s\"; there are:", name);
        for (uint32_t i = 0; engines_at(i) != NULL; i++) {
            fprintf(stderr, " %s", engines_at(i)->name);
        }
        fprintf(stderr, "\n");
        return false;
    }
    for (uint32_t i = 0; i < o->engines_n; i++) {
        if (o->engines[i] == ops) {
            fprintf(stderr, "horkos bench: %s is named twice\n", name);
            return false;
        }
    }
    o->engines[o->engines_n++] = ops;
    return true;
}

static bool parse_compare(const char *list, struct bench_options *o)
{
    char name[32];
    o->engines_n = 0;
    for (const char *word = list;;) {
        size_t n = strcspn(word, ",");
        if (o->engines_n == BENCH_ENGINES_MAX) {
            fprintf(stderr, "horkos bench: --compare takes at most %u engines\n",
                    BENCH_ENGINES_MAX);
            return false;
        }
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), word);
        if (!find_engine(name, o)) {
            return false;
        }
        if (word[n] == '\0') {
            break;
        }
        word += n + 1;
    }
    if (o->engines_n < 2) {
        fprintf(stderr, "horkos bench: --compare needs two engines or more, as hermes,craq\n");
        return false;
    }
    return true;
}

static bool parse_mode(const char *text, struct bench_options *o)
{
    for (uint32_t i = 0; i < BENCH_MODES; i++) {
        if (strcmp(text, bench_mode_names[i]) == 0) {
            o->mode = (enum bench_mode)i;
            o->config.hot.off = i != BENCH_MODE_CACHE;
            o->config.hot.exclusive = i == BENCH_MODE_BASE_EREW;
            return true;
        }
    }
    fprintf(stderr, "horkos bench: --mode is cache, base, base-erew or uniform, not \"%s\"\n",
            text);
    return false;
}

static bool parse_hot(int id, const char *text, struct bench_options *o, struct asked *asked,
                      bool *good_out)
{
    struct hot_config *hot = &o->config.hot;
    uint32_t epoch_ms = 0;
    switch (id) {
    case OPTION_MODE:
        *good_out = parse_mode(text, o);
        break;
    case OPTION_CACHE_KEYS:
        *good_out = options_u32("bench", "--cache-keys", text, 1, BENCH_KEYS_MAX, &hot->cache_keys);
        break;
    case OPTION_HOT_EPOCH:
        *good_out = options_u32("bench", "--hot-epoch", text, 1, 3600000, &epoch_ms);
        hot->epoch_us = 1000u * (uint64_t)epoch_ms;
        break;
    case OPTION_HOT_SAMPLE:
        *good_out = options_u32("bench", "--hot-sample", text, 1, 1000000, &hot->sample);
        break;
    default:
        return false;
    }
    asked->hot = true;
    return true;
}

static bool parse_cluster(int id, const char *text, struct bench_options *o, struct asked *asked,
                          bool *good_out)
{
    struct bench_config *c = &o->config;
    *good_out = true;
    switch (id) {
    case OPTION_ENGINE:
        asked->engine = true;
        o->engines_n = 0;
        *good_out = find_engine(text, o);
        return true;
    case OPTION_COMPARE:
        asked->compare = true;
        *good_out = parse_compare(text, o);
        return true;
    case OPTION_NODES:
        *good_out = options_u32("bench", "--nodes", text, 1, BENCH_NODES_MAX, &c->nodes);
        return true;
    case OPTION_WORKERS:
        *good_out = options_u32("bench", "--workers", text, 1, BENCH_WORKERS_MAX, &c->workers);
        return true;
    case OPTION_PORT:
        *good_out = parse_port(text, &c->port);
        return true;
    case OPTION_THREADS:
        asked->threads = true;
        return true;
    case OPTION_COOPERATIVE:
        asked->cooperative = true;
        return true;
    case OPTION_O3:
        c->ack_to_all = true;
        return true;
    case OPTION_ASYNC_READS:
        c->async_reads = true;
        return true;
    default:
        return false;
    }
}

static bool parse_load(int id, const char *text, struct bench_options *o, struct asked *asked,
                       bool *good_out)
{
    struct bench_config *c = &o->config;
    *good_out = true;
    switch (id) {
    case OPTION_KEYS:
        *good_out = options_number("bench", "--keys", text, 1, BENCH_KEYS_MAX, &c->keys.n);
        return true;
    case OPTION_KEY_BYTES:
        *good_out = options_u32("bench", "--key-bytes", text, BENCH_KEY_BYTES_MIN,
                                BENCH_KEY_BYTES_MAX, &c->key_bytes);
        return true;
    case OPTION_VALUE:
        *good_out =
            options_u32("bench", "--value", text, 0, BENCH_VALUE_BYTES_MAX, &c->value_bytes);
        return true;
    case OPTION_WRITES:
        *good_out = options_real("bench", "--writes", text, 0.0, 100.0, &c->mix.writes);
        return true;
    case OPTION_RMWS:
        *good_out = options_real("bench", "--rmws", text, 0.0, 100.0, &c->mix.rmws);
        return true;
    case OPTION_DIST:
        asked->dist = true;
        *good_out = parse_dist(text, &c->keys);
        return true;
    case OPTION_NO_SCRAMBLE:
        c->keys.scramble = false;
        return true;
    case OPTION_IN_FLIGHT:
        *good_out =
            options_u32("bench", "--in-flight", text, 1, BENCH_IN_FLIGHT_MAX, &c->in_flight);
        return true;
    case OPTION_RATE:
        *good_out = options_real("bench", "--rate", text, 1.0, 1e9, &c->rate);
        return true;
    case OPTION_EVEN:
        c->even = true;
        return true;
    case OPTION_READ_PATH:
        *good_out = parse_read_path(text, asked);
        return true;
    default:
        return false;
    }
}

static bool parse_one(int id, const char *text, struct bench_options *o, struct asked *asked)
{
    bool good = false;
    if (parse_cluster(id, text, o, asked, &good) || parse_hot(id, text, o, asked, &good) ||
        parse_load(id, text, o, asked, &good)) {
        return good;
    }
    switch (id) {
    case OPTION_SECONDS:
        return options_real("bench", "--seconds", text, 0.01, 3600.0, &o->seconds);
    case OPTION_WARMUP:
        asked->warmup = true;
        return options_real("bench", "--warmup", text, 0.0, 3600.0, &o->warmup);
    case OPTION_RUNS:
        return options_u32("bench", "--runs", text, 1, BENCH_RUNS_MAX, &o->runs);
    case OPTION_SEED:
        return options_number("bench", "--seed", text, 0, UINT32_MAX, &o->config.seed);
    case OPTION_PROBE:
        o->probe = true;
        return true;
    case OPTION_JSON:
        o->json = true;
        return true;
    default:
        return false;
    }
}

/* All engines of a comparison read on the same path: the shorter one, if all of them can. */
static bool decide_read_path(struct bench_options *o, const struct asked *asked)
{
    bool direct = !asked->node;
    for (uint32_t i = 0; i < o->engines_n; i++) {
        struct bench_config config = o->config;
        config.engine = o->engines[i];
        if (bench_direct_possible(&config)) {
            continue;
        }
        if (asked->direct) {
            fprintf(stderr,
                    "horkos bench: reads of %s%s take more than a look at the store; leave "
                    "--read-path direct away\n",
                    o->engines[i]->name, o->config.async_reads ? " with --async-reads" : "");
            return false;
        }
        direct = false;
    }
    o->config.read_path = direct ? BENCH_READ_DIRECT : BENCH_READ_NODE;
    return true;
}

/* The hot set is chosen by what was counted in an epoch: so many are run before anything counts. */
#define WARM_EPOCHS 4.0
#define EPOCH_S 1.0

static bool decide_hot(struct bench_options *o, const struct asked *asked)
{
    struct bench_config *c = &o->config;
    bool any = false;
    for (uint32_t i = 0; i < o->engines_n; i++) {
        any = any || (o->engines[i]->traits & ENGINE_HOMED) != 0;
    }
    if (asked->hot && !any) {
        fprintf(stderr, "horkos bench: --mode, --cache-keys, --hot-epoch and --hot-sample are for "
                        "engines whose keys have homes: galene\n");
        return false;
    }
    if (o->mode == BENCH_MODE_UNIFORM && asked->dist && c->keys.exponent > 0.0) {
        fprintf(stderr, "horkos bench: --mode uniform and --dist zipf exclude each other\n");
        return false;
    }
    if (any && !c->hot.off && !asked->warmup) {
        double epoch = c->hot.epoch_us > 0 ? 1e-6 * (double)c->hot.epoch_us : EPOCH_S;
        o->warmup = WARM_EPOCHS * epoch;
    }
    return true;
}

static bool decide(struct bench_options *o, const struct asked *asked)
{
    struct bench_config *c = &o->config;
    if (asked->threads && asked->cooperative) {
        fprintf(stderr, "horkos bench: --threads and --cooperative exclude each other\n");
        return false;
    }
    if (asked->engine && asked->compare) {
        fprintf(stderr, "horkos bench: --engine and --compare exclude each other\n");
        return false;
    }
    if (c->mix.writes + c->mix.rmws > 100.0) {
        fprintf(stderr, "horkos bench: --writes and --rmws are more than 100 percent together\n");
        return false;
    }
    if (c->even && c->rate == 0.0) {
        fprintf(stderr, "horkos bench: --even is for an open loop; it needs --rate\n");
        return false;
    }
    c->threads = asked->threads || (!asked->cooperative &&
                                    (long)(c->nodes * c->workers) <= sysconf(_SC_NPROCESSORS_ONLN));
    return decide_hot(o, asked) && decide_read_path(o, asked);
}

int bench_options_parse(int argc, char **argv, struct bench_options *options_out, bool *help_out)
{
    struct bench_options *o = options_out;
    struct asked asked = {false};
    *help_out = false;
    *o = (struct bench_options){.seconds = 2.0, .warmup = 0.5, .runs = 5, .engines_n = 1};
    o->engines[0] = engines_at(0);
    o->config = (struct bench_config){
        .nodes = 3,
        .workers = 1,
        .port = BENCH_SHM,
        .keys = {.n = 1000000, .scramble = true},
        .mix = {.writes = 5.0},
        .key_bytes = 8,
        .value_bytes = 32,
        .in_flight = 64,
        .seed = 1,
    };
    optind = 0;
    for (int id; (id = options_next(argc, argv, ":h", long_options)) != -1;) {
        if (id == OPTION_HELP || id == 'h') {
            print_help();
            *help_out = true;
            return STATUS_OK;
        }
        if (id == '?' || id == ':') {
            options_complain("bench", id, argv, long_options);
            return STATUS_USAGE;
        }
        if (!parse_one(id, optarg, o, &asked)) {
            return STATUS_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "horkos bench: what does \"%s\" mean? See horkos bench --help\n",
                argv[optind]);
        return STATUS_USAGE;
    }
    return decide(o, &asked) ? STATUS_OK : STATUS_USAGE;
}
