#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench_work.h"
#include "tools/commands.h"
#include "tools/options.h"

static const char help[] =
    "usage: horkos bench --workload NAME [OPTION...]\n"
    "\n"
    "Runs a cluster inside this process under the transactions of a workload, with Zeus or with a\n"
    "store that is sharded statically (two-phase commit, optimistic validation), and measures CPU\n"
    "time, messages and moves for a transaction. docs/BENCH.md says how to read what it prints.\n"
    "Exit status: 0 measured, 1 transactions failed or the cluster did not start, 2 a wrong\n"
    "option.\n"
    "\n"
    "the workload\n"
    "  --workload NAME       handovers, smallbank, tatp, voter, ycsb, ycsb-a to ycsb-f or tpcc\n"
    "  --remote PERCENT      transactions with an object of another node; handovers: of the\n"
    "                        handovers (as the workload has it by nature)\n"
    "  --objects N           of each node: phones, accounts, subscribers, voters, records\n"
    "  --hot N               smallbank: accounts of a node that 90 % take (4000)\n"
    "  --handovers PERCENT   handovers: of service and release requests (5)\n"
    "  --shift N             voter: transactions of a worker until popularity moves on (200000)\n"
    "  --requests N          ycsb: of a transaction (16)\n"
    "  --theta A             ycsb: exponent of the records' popularity (0.9)\n"
    "  --writes PERCENT      ycsb: of the requests (50)\n"
    "  --value N             bytes: handovers' contexts (200), ycsb's records (1000)\n"
    "\n"
    "the cluster\n"
    "  --engine zeus         the protocol (zeus)\n"
    "  --mode zeus|static    objects move to transactions, or transactions go to objects (zeus)\n"
    "  --compare             both in turn, and their ratios\n"
    "  --nodes N             nodes (3)\n"
    "  --workers N           workers of each node (1)\n"
    "  --replicas N          of each object (3)\n"
    "  --port shm|tcp        links: rings in memory, or sockets over the loopback (shm)\n"
    "  --threads             a thread for each worker\n"
    "  --cooperative         one thread runs all workers in turn (default)\n"
    "  --in-flight N         transactions in flight at each worker (64)\n"
    "\n"
    "the measurement\n"
    "  --seconds S           of each run (2)\n"
    "  --warmup S            before each run (0.5)\n"
    "  --runs N              runs; reported are median, least and most (5)\n"
    "  --seed N              of everything that is drawn (1)\n"
    "  --json                as JSON\n"
    "  --help                this text\n";

enum option_id {
    OPTION_WORKLOAD = 256,
    OPTION_REMOTE,
    OPTION_OBJECTS,
    OPTION_HOT,
    OPTION_HANDOVERS,
    OPTION_SHIFT,
    OPTION_REQUESTS,
    OPTION_THETA,
    OPTION_WRITES,
    OPTION_VALUE,
    OPTION_ENGINE,
    OPTION_MODE,
    OPTION_COMPARE,
    OPTION_NODES,
    OPTION_WORKERS,
    OPTION_REPLICAS,
    OPTION_PORT,
    OPTION_THREADS,
    OPTION_COOPERATIVE,
    OPTION_IN_FLIGHT,
    OPTION_SECONDS,
    OPTION_WARMUP,
    OPTION_RUNS,
    OPTION_SEED,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"workload", required_argument, NULL, OPTION_WORKLOAD},
    {"remote", required_argument, NULL, OPTION_REMOTE},
    {"objects", required_argument, NULL, OPTION_OBJECTS},
    {"hot", required_argument, NULL, OPTION_HOT},
    {"handovers", required_argument, NULL, OPTION_HANDOVERS},
    {"shift", required_argument, NULL, OPTION_SHIFT},
    {"requests", required_argument, NULL, OPTION_REQUESTS},
    {"theta", required_argument, NULL, OPTION_THETA},
    {"writes", required_argument, NULL, OPTION_WRITES},
    {"value", required_argument, NULL, OPTION_VALUE},
    {"engine", required_argument, NULL, OPTION_ENGINE},
    {"mode", required_argument, NULL, OPTION_MODE},
    {"compare", no_argument, NULL, OPTION_COMPARE},
    {"nodes", required_argument, NULL, OPTION_NODES},
    {"workers", required_argument, NULL, OPTION_WORKERS},
    {"replicas", required_argument, NULL, OPTION_REPLICAS},
    {"port", required_argument, NULL, OPTION_PORT},
    {"threads", no_argument, NULL, OPTION_THREADS},
    {"cooperative", no_argument, NULL, OPTION_COOPERATIVE},
    {"in-flight", required_argument, NULL, OPTION_IN_FLIGHT},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"runs", required_argument, NULL, OPTION_RUNS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

const char *const bench_design_names[BENCH_DESIGNS] = {
    [BENCH_DESIGN_ZEUS] = "zeus", [BENCH_DESIGN_STATIC] = "static"};

/* The workload is known before its options are: they change its defaults. */
static bool find_workload(int argc, char **argv, struct work_config *work)
{
    const char *name = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--workload") == 0 && i + 1 < argc) {
            name = argv[i + 1];
        } else if (strncmp(argv[i], "--workload=", 11) == 0) {
            name = argv[i] + 11;
        }
    }
    for (uint32_t i = 0; i < WORK_KINDS && name != NULL; i++) {
        if (strcmp(name, work_kind_names[i]) == 0) {
            *work = work_defaults((enum work_kind)i);
            return true;
        }
    }
    fprintf(stderr,
            "horkos bench: --workload is handovers, smallbank, tatp, voter, ycsb, ycsb-a to "
            "ycsb-f or tpcc\n");
    return false;
}

static bool parse_name(const char *option, const char *text, const char *const *names, uint32_t n,
                       uint32_t *index_out)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(text, names[i]) == 0) {
            *index_out = i;
            return true;
        }
    }
    fprintf(stderr, "horkos bench: %s is %s or %s, not \"%s\"\n", option, names[0], names[1], text);
    return false;
}

static bool parse_work(int id, const char *text, struct work_config *c)
{
    switch (id) {
    case OPTION_WORKLOAD:
        return true;
    case OPTION_REMOTE:
        return options_real("bench", "--remote", text, 0.0, 100.0, &c->remote);
    case OPTION_OBJECTS:
        return options_u32("bench", "--objects", text, 64, WORK_OBJECTS_MAX, &c->objects);
    case OPTION_HOT:
        return options_u32("bench", "--hot", text, 2, WORK_OBJECTS_MAX, &c->hot);
    case OPTION_HANDOVERS:
        return options_real("bench", "--handovers", text, 0.0, 100.0, &c->handovers);
    case OPTION_SHIFT:
        return options_u32("bench", "--shift", text, 0, UINT32_MAX, &c->shift);
    case OPTION_REQUESTS:
        return options_u32("bench", "--requests", text, 1, WORK_OPS_MAX, &c->requests);
    case OPTION_THETA:
        return options_real("bench", "--theta", text, 0.0, 10.0, &c->theta);
    case OPTION_WRITES:
        return options_real("bench", "--writes", text, 0.0, 100.0, &c->writes);
    default:
        return options_u32("bench", "--value", text, 0, WORK_VALUE_BYTES_MAX, &c->value_bytes);
    }
}

static bool parse_cluster(int id, const char *text, struct bench_work_options *o)
{
    struct bench_config *c = &o->config;
    uint32_t index = 0;
    switch (id) {
    case OPTION_ENGINE:
        if (strcmp(text, "zeus") != 0) {
            fprintf(stderr, "horkos bench: workloads are for --engine zeus, not \"%s\"\n", text);
            return false;
        }
        return true;
    case OPTION_MODE:
        if (!parse_name("--mode", text, bench_design_names, BENCH_DESIGNS, &index)) {
            return false;
        }
        o->designs[0] = (enum bench_design)index;
        return true;
    case OPTION_COMPARE:
        o->designs_n = BENCH_DESIGNS;
        return true;
    case OPTION_NODES:
        return options_u32("bench", "--nodes", text, 1, BENCH_NODES_MAX, &c->nodes);
    case OPTION_WORKERS:
        return options_u32("bench", "--workers", text, 1, BENCH_WORKERS_MAX, &c->workers);
    case OPTION_REPLICAS:
        if (!options_u32("bench", "--replicas", text, 1, BENCH_NODES_MAX, &index)) {
            return false;
        }
        c->degree = (uint8_t)index;
        return true;
    case OPTION_PORT:
        if (!parse_name("--port", text, bench_port_names, 2, &index)) {
            return false;
        }
        c->port = (enum bench_port)index;
        return true;
    case OPTION_THREADS:
    case OPTION_COOPERATIVE:
        c->threads = id == OPTION_THREADS;
        return true;
    default:
        return options_u32("bench", "--in-flight", text, 1, BENCH_IN_FLIGHT_MAX, &c->in_flight);
    }
}

static bool parse_one(int id, const char *text, struct bench_work_options *o)
{
    switch (id) {
    case OPTION_SECONDS:
        return options_real("bench", "--seconds", text, 0.01, 3600.0, &o->seconds);
    case OPTION_WARMUP:
        return options_real("bench", "--warmup", text, 0.0, 3600.0, &o->warmup);
    case OPTION_RUNS:
        return options_u32("bench", "--runs", text, 1, BENCH_WORK_RUNS_MAX, &o->runs);
    case OPTION_SEED:
        return options_number("bench", "--seed", text, 0, UINT32_MAX, &o->config.seed);
    case OPTION_JSON:
        o->json = true;
        return true;
    default:
        return id < OPTION_ENGINE ? parse_work(id, text, &o->work) : parse_cluster(id, text, o);
    }
}

static bool consistent(struct bench_work_options *o)
{
    o->work.nodes = o->config.nodes;
    o->work.workers = o->config.workers;
    o->work.seed = o->config.seed;
    if (o->designs_n == BENCH_DESIGNS) {
        o->designs[0] = BENCH_DESIGN_ZEUS;
        o->designs[1] = BENCH_DESIGN_STATIC;
    }
    if (o->config.degree == 0) {
        o->config.degree = (uint8_t)(o->config.nodes < 3 ? o->config.nodes : 3);
    }
    if (o->config.degree > o->config.nodes) {
        fprintf(stderr, "horkos bench: --replicas are more than --nodes\n");
        return false;
    }
    if (work_scans(o->work.kind)) {
        fprintf(stderr,
                "horkos bench: %s reads ranges, which no store of objects without an order "
                "has\n",
                work_kind_names[o->work.kind]);
        return false;
    }
    if (work_config_wrong(&o->work) != NULL) {
        fprintf(stderr, "horkos bench: %s\n", work_config_wrong(&o->work));
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

int bench_work_options_parse(int argc, char **argv, struct bench_work_options *o, bool *help_out)
{
    memset(o, 0, sizeof *o);
    o->config = (struct bench_config){.nodes = 3,
                                      .workers = 1,
                                      .read_path = BENCH_READ_NODE,
                                      .keys = {.n = 1},
                                      .key_bytes = WORK_KEY_BYTES,
                                      .in_flight = 64,
                                      .seed = 1};
    o->designs_n = 1;
    o->seconds = 2.0;
    o->warmup = 0.5;
    o->runs = 5;
    /* Also where a value is due: `horkos bench --workload --help`. */
    *help_out = asks_for_help(argc, argv);
    if (*help_out) {
        fputs(help, stdout);
        return STATUS_OK;
    }
    if (!find_workload(argc, argv, &o->work)) {
        return STATUS_USAGE;
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
    return consistent(o) ? STATUS_OK : STATUS_USAGE;
}
