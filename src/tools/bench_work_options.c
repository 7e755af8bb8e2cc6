#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench_work.h"
#include "tools/commands.h"
#include "tools/options.h"

static const char help[] =
    "usage: horkos bench --workload NAME [OPTION...]\n"
    "\n"
    "Runs a cluster inside this process under the transactions of a workload, with Zeus, with a\n"
    "store that is sharded statically (two-phase commit, optimistic validation), or with Lotus\n"
    "(locks at memory servers), and measures CPU time, messages, tries and latency of a\n"
    "transaction. docs/BENCH.md says how to read what it prints.\n"
    "Exit status: 0 measured, 1 transactions failed or the cluster did not start, 2 a wrong\n"
    "option.\n"
    "\n"
    "the workload\n"
    "  --workload NAME       handovers, smallbank, tatp, voter, ycsb, ycsb-a to ycsb-f or tpcc\n"
    "  --remote PERCENT      transactions with an object of another node; handovers: of the\n"
    "                        handovers (as the workload has it by nature)\n"
    "  --objects N           of each node: phones, accounts, subscribers, voters, records, items\n"
    "  --hot N               smallbank: accounts of a node that 90 % take (4000)\n"
    "  --handovers PERCENT   handovers: of service and release requests (5)\n"
    "  --shift N             voter: transactions of a worker until popularity moves on (200000)\n"
    "  --requests N          ycsb, ycsb-a to -f: of a transaction (16; ycsb-e 1)\n"
    "  --theta A             the same: exponent of the records' popularity (0.9)\n"
    "  --writes PERCENT      the same: of the requests (50; -b, -d and -e 5; -c 0)\n"
    "  --payload N           bytes: handovers' contexts (200), ycsb's records (1000); --value too\n"
    "  --columns N           ycsb-a to -f: a write is of one of them (10); 1: of the whole record\n"
    "  --neighbours          ycsb-a to -f: popular records are side by side, not scattered\n"
    "  --scan N              ycsb-e: records of a scan, at the most (100)\n"
    "  --warehouses N        tpcc: of each worker (2)\n"
    "  --customers N         tpcc: of a district (300)\n"
    "\n"
    "the cluster\n"
    "  --engine LIST         zeus, static, lotus (zeus; ranges: lotus): of several the clusters "
    "run\n"
    "                        in turn, and the first is compared with the others\n"
    "  --mode zeus|static    the same as --engine\n"
    "  --compare             the same as --engine zeus,static\n"
    "  --nodes N             nodes (3)\n"
    "  --workers N           workers of each node (1)\n"
    "  --replicas N          of each object (3); lotus: one\n"
    "  --port shm|tcp        links: rings in memory, or sockets over the loopback (shm)\n"
    "  --threads             a thread for each worker\n"
    "  --cooperative         one thread runs all workers in turn (default)\n"
    "  --in-flight N         transactions in flight at each worker (64; tpcc 4)\n"
    "\n"
    "lotus\n"
    "  --cc LIST             no_wait, wait_die, wound_wait: each is a cluster (wound_wait);\n"
    "                        ycsb-a to -d and -f also one_sided_no_wait, one_sided_wait_die:\n"
    "                        baselines on one-sided verbs in shared memory (docs/ONE_SIDED.md)\n"
    "  --overlap             one-sided: all requests of a transaction at once\n"
    "  --cache PERCENT       one-sided, dex: of the index that a compute server has room for (8);\n"
    "                        lotus with --partitioned: of its values\n"
    "  --memory N            so many of the nodes are memory servers, the others compute servers\n"
    "                        (0: all nodes are both)\n"
    "  --one-at-a-time       no batching inside a transaction: a request, then the next\n"
    "  --no-hints            rows are looked for in the index each time\n"
    "  --across              requests of several transactions share messages\n"
    "  --increments          four clusters for each of --cc: with none of these, with hints, with\n"
    "                        batching inside transactions, with batching across them\n"
    "\n"
    "co-partitioned memory\n"
    "  --partitioned         every node has its own records, and transactions of these; ycsb-a,\n"
    "                        -b, -c and -f, of 1 request and 8 bytes unless told. For lotus, "
    "which\n"
    "                        keeps values near (docs/LOTUS.md), and for --cc dex: a baseline, an\n"
    "                        index whose nodes are cached (docs/ONE_SIDED.md)\n"
    "\n"
    "the measurement\n"
    "  --seconds S           of each run (2)\n"
    "  --warmup S            before each run (0.5)\n"
    "  --runs N              runs; reported are median, least and most (5)\n"
    "  --seed N              of everything that is drawn (1)\n"
    "  --samples FILE        where the one thread was, about a thousand times a second, while it\n"
    "                        counts: of one cluster, without --threads (docs/BENCH.md)\n"
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
    OPTION_COLUMNS,
    OPTION_NEIGHBOURS,
    OPTION_SCAN,
    OPTION_WAREHOUSES,
    OPTION_CUSTOMERS,
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
    OPTION_CC,
    OPTION_MEMORY,
    OPTION_ONE_AT_A_TIME,
    OPTION_NO_HINTS,
    OPTION_ACROSS,
    OPTION_INCREMENTS,
    OPTION_OVERLAP,
    OPTION_CACHE,
    OPTION_PARTITIONED,
    OPTION_SECONDS,
    OPTION_WARMUP,
    OPTION_RUNS,
    OPTION_SEED,
    OPTION_SAMPLES,
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
    {"payload", required_argument, NULL, OPTION_VALUE},
    {"columns", required_argument, NULL, OPTION_COLUMNS},
    {"neighbours", no_argument, NULL, OPTION_NEIGHBOURS},
    {"scan", required_argument, NULL, OPTION_SCAN},
    {"warehouses", required_argument, NULL, OPTION_WAREHOUSES},
    {"customers", required_argument, NULL, OPTION_CUSTOMERS},
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
    {"cc", required_argument, NULL, OPTION_CC},
    {"memory", required_argument, NULL, OPTION_MEMORY},
    {"one-at-a-time", no_argument, NULL, OPTION_ONE_AT_A_TIME},
    {"no-hints", no_argument, NULL, OPTION_NO_HINTS},
    {"across", no_argument, NULL, OPTION_ACROSS},
    {"increments", no_argument, NULL, OPTION_INCREMENTS},
    {"overlap", no_argument, NULL, OPTION_OVERLAP},
    {"cache", required_argument, NULL, OPTION_CACHE},
    {"partitioned", no_argument, NULL, OPTION_PARTITIONED},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"runs", required_argument, NULL, OPTION_RUNS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"samples", required_argument, NULL, OPTION_SAMPLES},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

const char *const bench_protocol_names[BENCH_PROTOCOLS] = {[BENCH_ZEUS] = "zeus",
                                                           [BENCH_STATIC] = "static",
                                                           [BENCH_LOTUS] = "lotus",
                                                           [BENCH_ONE_SIDED] = "one-sided",
                                                           [BENCH_DEX] = "dex"};

const struct engine_ops *bench_protocol_engine(enum bench_protocol protocol)
{
    static const struct engine_ops *const engines[BENCH_PROTOCOLS] = {&zeus_ops, &occ_ops,
                                                                      &lotus_ops, NULL, NULL};
    return engines[protocol];
}

/* Single requests of small values, as co-partitioned memory is measured with ([L] 7.9). */
static void default_partitioned(int argc, char **argv, struct work_config *work)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--partitioned") == 0) {
            work->requests = 1;
            work->columns = 1;
            work->value_bytes = 8;
        }
    }
}

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
            default_partitioned(argc, argv, work);
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

/* Which of the names the list has; each once. */
static bool parse_list(const char *option, const char *text, const char *const *names, uint32_t n,
                       bool *has_out)
{
    memset(has_out, 0, n * sizeof *has_out);
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        uint32_t i = 0;
        while (i < n && (strlen(names[i]) != length || strncmp(names[i], at, length) != 0)) {
            i++;
        }
        if (i == n || has_out[i]) {
            fprintf(stderr, "horkos bench: %s: what does \"%s\" mean? There are", option, at);
            for (i = 0; i < n; i++) {
                fprintf(stderr, "%s %s", i > 0 ? "," : "", names[i]);
            }
            fprintf(stderr, "\n");
            return false;
        }
        has_out[i] = true;
        at += length;
        if (*at == '\0') {
            return true;
        }
    }
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
        return options_u32("bench", "--requests", text, 1, WORK_REQUESTS_MAX, &c->requests);
    case OPTION_THETA:
        return options_real("bench", "--theta", text, 0.0, 10.0, &c->theta);
    case OPTION_WRITES:
        return options_real("bench", "--writes", text, 0.0, 100.0, &c->writes);
    case OPTION_COLUMNS:
        return options_u32("bench", "--columns", text, 1, WORK_VALUE_BYTES_MAX, &c->columns);
    case OPTION_NEIGHBOURS:
        c->neighbours = true;
        return true;
    case OPTION_SCAN:
        return options_u32("bench", "--scan", text, 1, WORK_SCAN_MAX, &c->scan);
    case OPTION_WAREHOUSES:
        return options_u32("bench", "--warehouses", text, 1, WORK_WAREHOUSES_MAX, &c->warehouses);
    case OPTION_CUSTOMERS:
        return options_u32("bench", "--customers", text, 30, WORK_CUSTOMERS_MAX, &c->customers);
    default:
        return options_u32("bench", "--payload", text, 0, WORK_VALUE_BYTES_MAX, &c->value_bytes);
    }
}

static bool parse_cluster(int id, const char *text, struct bench_work_options *o)
{
    struct bench_config *c = &o->config;
    uint32_t index = 0;
    switch (id) {
    case OPTION_ENGINE:
        return parse_list("--engine", text, bench_protocol_names, BENCH_ONE_SIDED, o->protocols);
    case OPTION_MODE:
        return parse_list("--mode", text, bench_protocol_names, BENCH_LOTUS, o->protocols);
    case OPTION_COMPARE:
        return parse_list("--compare", "zeus,static", bench_protocol_names, BENCH_ONE_SIDED,
                          o->protocols);
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

static const char *policy_names[BENCH_POLICIES];

static void name_policies(void)
{
    memcpy(policy_names, lock_policy_names, sizeof lock_policy_names);
    memcpy(policy_names + LOCK_POLICIES, one_policy_names, sizeof one_policy_names);
    policy_names[BENCH_POLICY_DEX] = bench_protocol_names[BENCH_DEX];
}

static bool parse_lotus(int id, const char *text, struct bench_work_options *o)
{
    switch (id) {
    case OPTION_CC:
        return parse_list("--cc", text, policy_names, BENCH_POLICIES, o->policies);
    case OPTION_MEMORY:
        return options_u32("bench", "--memory", text, 0, BENCH_NODES_MAX, &o->config.memory);
    case OPTION_ONE_AT_A_TIME:
        o->lotus.one_at_a_time = true;
        return true;
    case OPTION_NO_HINTS:
        o->lotus.hints_off = true;
        return true;
    case OPTION_ACROSS:
        o->lotus.across = true;
        return true;
    case OPTION_OVERLAP:
        o->overlap = true;
        return true;
    case OPTION_CACHE:
        return options_real("bench", "--cache", text, 0.01, 1000.0, &o->cache);
    case OPTION_PARTITIONED:
        o->partitioned = true;
        return true;
    default:
        o->increments = true;
        return true;
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
    case OPTION_SAMPLES:
        o->samples = text;
        return true;
    case OPTION_JSON:
        o->json = true;
        return true;
    default:
        return id < OPTION_ENGINE ? parse_work(id, text, &o->work)
               : id < OPTION_CC   ? parse_cluster(id, text, o)
                                  : parse_lotus(id, text, o);
    }
}

/* ---- Designs ---- */

/* How many of --cc's names from `from` on, before `to`, were given. */
static uint32_t policies_asked(const struct bench_work_options *o, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++) {
        n += o->policies[i];
    }
    return n;
}

static void add_design(struct bench_work_options *o, enum bench_protocol protocol,
                       const struct lotus_config *lotus, const char *name)
{
    struct bench_design *d = &o->designs[o->designs_n++];
    d->protocol = protocol;
    d->lotus = *lotus;
    snprintf(d->name, sizeof d->name, "%s", name);
}

/* A policy's configurations: the one that was asked for, or from nothing to everything. */
static void add_lotus(struct bench_work_options *o, enum lock_policy policy, const char *name)
{
    static const char *const steps[] = {"vanilla", "hints", "inside", "across"};
    struct lotus_config config = o->lotus;
    char more[32];
    config.lock.policy = (uint8_t)policy;
    if (!o->increments) {
        add_design(o, BENCH_LOTUS, &config, name);
        return;
    }
    for (uint32_t i = 0; i < 4; i++) {
        config.hints_off = i < 1;
        config.one_at_a_time = i < 2;
        config.across = i == 3;
        snprintf(more, sizeof more, "%s-%s", name, steps[i]);
        add_design(o, BENCH_LOTUS, &config, more);
    }
}

/* Lotus first: it is what the others are compared with. */
static void make_designs(struct bench_work_options *o)
{
    uint32_t policies = policies_asked(o, 0, LOCK_POLICIES);
    o->designs_n = 0;
    for (uint32_t i = LOCK_POLICIES; o->protocols[BENCH_LOTUS] && i-- > 0;) {
        char name[24];
        snprintf(name, sizeof name, "lotus%s%s", policies > 1 ? "-" : "",
                 policies > 1 ? lock_policy_names[i] : "");
        if (o->policies[i]) {
            add_lotus(o, (enum lock_policy)i, name);
        }
    }
    for (uint32_t i = BENCH_ZEUS; i < BENCH_LOTUS; i++) {
        if (o->protocols[i]) {
            add_design(o, (enum bench_protocol)i, &o->lotus, bench_protocol_names[i]);
        }
    }
    for (uint32_t i = 0; i < ONE_POLICIES; i++) {
        if (o->policies[LOCK_POLICIES + i]) {
            add_design(o, BENCH_ONE_SIDED, &o->lotus, one_policy_names[i]);
            o->designs[o->designs_n - 1].one_sided = (uint8_t)i;
        }
    }
    if (o->policies[BENCH_POLICY_DEX]) {
        add_design(o, BENCH_DEX, &o->lotus, bench_protocol_names[BENCH_DEX]);
    }
}

static bool reads_and_writes(enum work_kind kind)
{
    return kind == WORK_YCSB_A || kind == WORK_YCSB_B || kind == WORK_YCSB_C || kind == WORK_YCSB_F;
}

/* The one-sided baselines have reads and writes of whole records, and nothing else. */
static bool fits_one_sided(const struct bench_work_options *o)
{
    bool asked = policies_asked(o, LOCK_POLICIES, BENCH_PARTITIONED_POLICIES) > 0;
    bool core = reads_and_writes(o->work.kind) || o->work.kind == WORK_YCSB_D;
    if (asked && (!core || o->config.threads || o->work.requests > ONE_REQUESTS_MAX)) {
        fprintf(stderr,
                "horkos bench: the one-sided baselines run ycsb-a to -d and -f, without "
                "--threads, with up to %u requests\n",
                ONE_REQUESTS_MAX);
        return false;
    }
    if (!asked && (o->overlap || o->cache > 0.0)) {
        fprintf(stderr, "horkos bench: %s is for the one-sided baselines of --cc\n",
                o->overlap ? "--overlap" : "--cache");
        return false;
    }
    if (o->lotus.hints_off && o->cache > 0.0) {
        fprintf(stderr, "horkos bench: one-sided, --no-hints is no cache: --cache has no say\n");
        return false;
    }
    return true;
}

/* Who may run with --partitioned: an index of words, without clusters, and with locks of its own.
 * What is no option of it is refused, not passed over. */
static bool fits_dex(const struct bench_work_options *o)
{
    const char *wrong = NULL;
    if (!reads_and_writes(o->work.kind)) {
        wrong = "runs ycsb-a, -b, -c and -f";
    } else if (o->work.value_bytes != 8 || o->work.columns != 1) {
        wrong = "has values of 8 bytes, which are written whole (--payload 8, --columns 1)";
    } else if (o->config.threads || o->config.port != BENCH_SHM) {
        wrong = "is run by one thread over shared memory (no --threads, --port tcp)";
    } else if (o->config.degree != 0) {
        wrong = "has no --replicas";
    } else if (o->overlap || o->increments || o->lotus.one_at_a_time || o->lotus.hints_off ||
               o->lotus.across) {
        wrong = "has nothing of --overlap, --increments, --one-at-a-time, --no-hints, --across";
    } else if (o->config.memory >= o->config.nodes) {
        wrong = "needs a compute server: --memory is less than --nodes";
    }
    if (wrong != NULL) {
        fprintf(stderr, "horkos bench: dex %s\n", wrong);
    }
    return wrong == NULL;
}

/* Values that are not near are at other nodes. */
static bool fits_far(const struct bench_work_options *o)
{
    const char *wrong = NULL;
    if (!reads_and_writes(o->work.kind)) {
        wrong = "runs ycsb-a, -b, -c and -f";
    } else if (o->config.nodes < 2 || o->config.memory >= o->config.nodes) {
        wrong = "needs a compute server, and another node";
    } else if (o->increments || o->overlap) {
        wrong = "has no --increments, and no --overlap";
    }
    if (wrong != NULL) {
        fprintf(stderr, "horkos bench: --partitioned %s\n", wrong);
    }
    return wrong == NULL;
}

/* Of --partitioned; a design that it shall have is let in here. */
static bool fits_partitioned(struct bench_work_options *o)
{
    bool dex = o->policies[BENCH_POLICY_DEX], ours = policies_asked(o, 0, LOCK_POLICIES) > 0;
    bool others = policies_asked(o, LOCK_POLICIES, BENCH_PARTITIONED_POLICIES) > 0 ||
                  o->protocols[BENCH_ZEUS] || o->protocols[BENCH_STATIC];
    ours = ours || o->protocols[BENCH_LOTUS];
    if (!o->partitioned || others || (!dex && !ours)) {
        fprintf(stderr, "horkos bench: --partitioned is for lotus and --cc dex, and dex is for "
                        "nothing else\n");
        return false;
    }
    o->protocols[BENCH_DEX] = dex;
    o->protocols[BENCH_LOTUS] = ours;
    o->policies[LOCK_WOUND_WAIT] =
        o->policies[LOCK_WOUND_WAIT] || (ours && policies_asked(o, 0, LOCK_POLICIES) == 0);
    o->work.partitioned = true;
    return (!ours || fits_far(o)) && (!dex || fits_dex(o));
}

static bool fits_protocols(struct bench_work_options *o)
{
    bool others = o->protocols[BENCH_ZEUS] || o->protocols[BENCH_STATIC];
    bool named = policies_asked(o, 0, LOCK_POLICIES) > 0;
    bool asked = named || o->increments || o->lotus.one_at_a_time || o->lotus.hints_off ||
                 o->lotus.across || o->config.memory > 0;
    bool one_sided = policies_asked(o, LOCK_POLICIES, BENCH_PARTITIONED_POLICIES) > 0;
    o->protocols[BENCH_ONE_SIDED] = one_sided;
    if (!o->protocols[BENCH_LOTUS] && !others && (asked || !one_sided)) {
        o->protocols[work_scans(o->work.kind) || asked ? BENCH_LOTUS : BENCH_ZEUS] = true;
        others = o->protocols[BENCH_ZEUS];
    }
    if (!fits_one_sided(o)) {
        return false;
    }
    if (others && work_scans(o->work.kind)) {
        fprintf(stderr, "horkos bench: %s reads ranges: only lotus has them\n",
                work_kind_names[o->work.kind]);
        return false;
    }
    if (asked && !o->protocols[BENCH_LOTUS]) {
        fprintf(stderr, "horkos bench: --cc and what stands below it are for --engine lotus\n");
        return false;
    }
    if (o->config.memory > 0 && (others || o->config.memory >= o->config.nodes)) {
        fprintf(stderr, "horkos bench: --memory leaves a compute server, and is for lotus alone\n");
        return false;
    }
    if (o->increments && (o->lotus.one_at_a_time || o->lotus.hints_off || o->lotus.across)) {
        fprintf(stderr, "horkos bench: --increments has these one after the other\n");
        return false;
    }
    if (o->protocols[BENCH_LOTUS] && !named) {
        o->policies[LOCK_WOUND_WAIT] = true;
    }
    return true;
}

static bool consistent(struct bench_work_options *o)
{
    o->work.nodes = o->config.nodes - o->config.memory;
    o->work.workers = o->config.workers;
    o->work.seed = o->config.seed;
    bool partitioned = o->partitioned || o->policies[BENCH_POLICY_DEX];
    if (!(partitioned ? fits_partitioned(o) : fits_protocols(o))) {
        return false;
    }
    make_designs(o);
    bool one_cluster = o->designs_n == 1 && bench_protocol_engine(o->designs[0].protocol) != NULL;
    if (o->samples != NULL && (!one_cluster || o->config.threads)) {
        fprintf(stderr, "horkos bench: --samples are of one cluster, without --threads\n");
        return false;
    }
    if (o->config.in_flight == 0) {
        o->config.in_flight = o->work.kind == WORK_TPCC ? 4 : 64;
    }
    if (o->config.degree == 0) {
        o->config.degree = (uint8_t)(o->config.nodes < 3 ? o->config.nodes : 3);
    }
    if (o->config.degree > o->config.nodes) {
        fprintf(stderr, "horkos bench: --replicas are more than --nodes\n");
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
                                      .seed = 1};
    o->seconds = 2.0;
    o->warmup = 0.5;
    o->runs = 5;
    name_policies();
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
