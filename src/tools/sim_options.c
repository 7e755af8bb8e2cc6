#include "tools/sim_options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/engines.h"
#include "sim/death.h"
#include "sim/mutants.h"
#include "tools/commands.h"

static const char help[] =
    "usage: horkos sim [OPTION...]\n"
    "\n"
    "Runs real nodes under virtual time with clients and faults, all drawn from a seed, and "
    "checks\n"
    "what the clients saw, what the nodes hold, and that all is well again after the faults.\n"
    "Exit status: 0 no violation, 1 a violation, 2 a wrong option.\n"
    "\n"
    "  --engine NAME     the engine: hermes (default), craq, zab, galene, zeus, lotus\n"
    "  --cc POLICY       of lotus: no_wait, wait_die or wound_wait (drawn)\n"
    "  --near            of lotus: homes have room for hardly any values (near_max)\n"
    "  --nodes N         nodes of the cluster, 1 to 9 (3)\n"
    "  --workers N       workers of each node, 1 to 3 (drawn by the seed)\n"
    "  --seeds N         how many seeds (100)\n"
    "  --from S          the first seed (1)\n"
    "  --ops N           successful operations of each seed (drawn, 300 to 500)\n"
    "  --faults LIST     kinds of fault that may happen, or all (default), or none;\n"
    "                    -KIND takes one away: all,-crash\n"
    "  --o3, --no-o3     acknowledgements to all nodes (drawn)\n"
    "  --async, --no-async   reads are confirmed by a majority (drawn)\n"
    "  --replay S        runs seed S alone and says what it drew\n"
    "  --skip LIST       leaves out entries of the fault plan, by their numbers; all else is "
    "drawn\n"
    "                    as with them\n"
    "  --skip-faults LIST    the same with kinds of fault\n"
    "  --clients N, --keys N     at most so many of what the seed draws\n"
    "  --death CASE      the first process that is found in a state of zeus' tables dies there\n"
    "  --until STEP      ends each run before this step, and checks its history\n"
    "  --no-shrink       does not look for a smaller run that violates the same\n"
    "  --trace           with --replay: prints everything that happens\n"
    "  --json            reports as JSON\n"
    "  --progress        tells how far it is, even if standard error is no terminal\n"
#ifdef HK_MUTANTS
    "  --mutant NAME     switches one rule off, as view:wipe\n"
    "  --mutants[=NAME]  switches off each rule in turn whose name begins so, until a seed\n"
    "                    or a configuration of the explorer shows it\n"
    "  --records FILE    with --mutants: tries what FILE records, and nothing else\n"
    "  --jobs N          processes for --mutants (1)\n"
#endif
    "  --help            this text\n"
    "\n"
    "kinds of fault:";

enum option_id {
    OPTION_ENGINE = 256,
    OPTION_CC,
    OPTION_NODES,
    OPTION_WORKERS,
    OPTION_SEEDS,
    OPTION_FROM,
    OPTION_OPS,
    OPTION_FAULTS,
    OPTION_O3,
    OPTION_NO_O3,
    OPTION_ASYNC,
    OPTION_NO_ASYNC,
    OPTION_REPLAY,
    OPTION_SKIP,
    OPTION_SKIP_FAULTS,
    OPTION_CLIENTS,
    OPTION_KEYS,
    OPTION_DEATH,
    OPTION_UNTIL,
    OPTION_NO_SHRINK,
    OPTION_LANES,
    OPTION_NEAR,
    OPTION_TAMPER,
    OPTION_WAVER,
    OPTION_TRACE,
    OPTION_JSON,
    OPTION_PROGRESS,
    OPTION_MUTANT,
    OPTION_MUTANTS,
    OPTION_RECORDS,
    OPTION_JOBS,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"engine", required_argument, NULL, OPTION_ENGINE},
    {"cc", required_argument, NULL, OPTION_CC},
    {"nodes", required_argument, NULL, OPTION_NODES},
    {"workers", required_argument, NULL, OPTION_WORKERS},
    {"seeds", required_argument, NULL, OPTION_SEEDS},
    {"from", required_argument, NULL, OPTION_FROM},
    {"ops", required_argument, NULL, OPTION_OPS},
    {"faults", required_argument, NULL, OPTION_FAULTS},
    {"o3", no_argument, NULL, OPTION_O3},
    {"no-o3", no_argument, NULL, OPTION_NO_O3},
    {"async", no_argument, NULL, OPTION_ASYNC},
    {"no-async", no_argument, NULL, OPTION_NO_ASYNC},
    {"replay", required_argument, NULL, OPTION_REPLAY},
    {"skip", required_argument, NULL, OPTION_SKIP},
    {"skip-faults", required_argument, NULL, OPTION_SKIP_FAULTS},
    {"clients", required_argument, NULL, OPTION_CLIENTS},
    {"keys", required_argument, NULL, OPTION_KEYS},
    {"death", required_argument, NULL, OPTION_DEATH},
    {"until", required_argument, NULL, OPTION_UNTIL},
    {"no-shrink", no_argument, NULL, OPTION_NO_SHRINK},
    {"lanes", no_argument, NULL, OPTION_LANES},
    {"near", no_argument, NULL, OPTION_NEAR},
    {"tamper", no_argument, NULL, OPTION_TAMPER},
    {"waver", no_argument, NULL, OPTION_WAVER},
    {"trace", no_argument, NULL, OPTION_TRACE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"progress", no_argument, NULL, OPTION_PROGRESS},
    {"mutant", required_argument, NULL, OPTION_MUTANT},
    {"mutants", optional_argument, NULL, OPTION_MUTANTS},
    {"records", required_argument, NULL, OPTION_RECORDS},
    {"jobs", required_argument, NULL, OPTION_JOBS},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static void print_help(void)
{
    fputs(help, stdout);
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        printf("%s%s", i % 8 == 0 ? "\n  " : " ", sim_fault_names[i]);
    }
    printf("\n");
}

static bool parse_number(const char *name, const char *text, uint64_t low, uint64_t high,
                         uint64_t *number_out)
{
    char *end = NULL;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || number < low ||
        number > high) {
        fprintf(stderr, "horkos sim: --%s needs a number from %" PRIu64 " to %" PRIu64 ", not %s\n",
                name, low, high, text);
        return false;
    }
    *number_out = number;
    return true;
}

static bool parse_small(const char *name, const char *text, uint32_t low, uint32_t high,
                        uint32_t *number_out)
{
    uint64_t number = 0;
    if (!parse_number(name, text, low, high, &number)) {
        return false;
    }
    *number_out = (uint32_t)number;
    return true;
}

/* One word of the list of faults. */
static bool parse_fault(const char *word, size_t length, uint32_t *faults)
{
    bool away = length > 0 && word[0] == '-';
    const char *name = away ? word + 1 : word;
    size_t n = away ? length - 1 : length;
    uint32_t bits = 0;
    if (n == 3 && memcmp(name, "all", n) == 0) {
        bits = SIM_FAULTS_ALL;
    } else if (n == 4 && memcmp(name, "none", n) == 0) {
        *faults = 0;
        return true;
    } else {
        for (uint32_t i = 0; i < SIM_FAULTS; i++) {
            if (strlen(sim_fault_names[i]) == n && memcmp(name, sim_fault_names[i], n) == 0) {
                bits = 1u << i;
            }
        }
    }
    *faults = away ? *faults & ~bits : *faults | bits;
    return bits != 0;
}

static bool parse_faults(const char *list, uint32_t *faults_out)
{
    uint32_t faults = list[0] == '-' ? SIM_FAULTS_ALL : 0;
    for (const char *word = list;;) {
        size_t length = strcspn(word, ",");
        if (!parse_fault(word, length, &faults)) {
            fprintf(stderr, "horkos sim: there is no kind of fault \"%.*s\"\n", (int)length, word);
            return false;
        }
        if (word[length] == '\0') {
            break;
        }
        word += length + 1;
    }
    *faults_out = faults;
    return true;
}

/* Numbers apart by commas. */
static bool parse_skip(const char *list, uint64_t *skip)
{
    const char *at = list;
    for (;;) {
        char *end = NULL;
        unsigned long entry = strtoul(at, &end, 10);
        if (end == at || *at == '-' || entry >= SIM_PLAN_MAX || (*end != ',' && *end != '\0')) {
            fprintf(stderr, "horkos sim: --skip needs numbers below %u apart by commas, not %s\n",
                    SIM_PLAN_MAX, list);
            return false;
        }
        *skip |= UINT64_C(1) << entry;
        if (*end == '\0') {
            return true;
        }
        at = end + 1;
    }
}

static bool parse_engine(const char *name, struct sim_config *config)
{
    const struct engine_ops *ops = engines_find(name);
    if (ops == NULL) {
        fprintf(stderr, "horkos sim: there is no engine \"%s\"; known are:", name);
        for (uint32_t i = 0; engines_at(i) != NULL; i++) {
            fprintf(stderr, " %s", engines_at(i)->name);
        }
        fprintf(stderr, "\n");
        return false;
    }
    /* Nothing said and the first engine said are the same. */
    const char *engine = ops == engines_at(0) ? NULL : ops->name;
    if (config->engine_rules_off != 0 && engine != config->engine) {
        fprintf(stderr, "horkos sim: a rule of another engine than %s is switched off\n", name);
        return false;
    }
    config->engine = engine;
    return true;
}

static bool parse_policy(const char *name, uint32_t *policy_out)
{
    for (uint32_t i = 0; i < LOCK_POLICIES; i++) {
        if (strcmp(name, lock_policy_names[i]) == 0) {
            *policy_out = i + 1;
            return true;
        }
    }
    fprintf(stderr, "horkos sim: there is no policy \"%s\"; known are:", name);
    for (uint32_t i = 0; i < LOCK_POLICIES; i++) {
        fprintf(stderr, " %s", lock_policy_names[i]);
    }
    fprintf(stderr, "\n");
    return false;
}

static bool mutants_possible(void)
{
#ifdef HK_MUTANTS
    return true;
#else
    fprintf(stderr, "horkos sim: rules can be switched off only in horkos-mutants\n");
    return false;
#endif
}

static bool parse_mutant(const char *name, struct sim_config *config)
{
    uint32_t i = mutant_find(name);
    if (!mutants_possible()) {
        return false;
    }
    if (i == mutants_count()) {
        fprintf(stderr, "horkos sim: there is no rule \"%s\"; known are:\n", name);
        for (i = 0; i < mutants_count(); i++) {
            char known[MUTANT_NAME_BYTES];
            mutant_name(i, known);
            fprintf(stderr, "  %s\n", known);
        }
        return false;
    }
    const char *engine = mutant_engine(i);
    if (engine != NULL && config->engine == NULL && config->engine_rules_off == 0) {
        (void)parse_engine(engine, config);
    }
    if (engine != NULL &&
        strcmp(engine, config->engine != NULL ? config->engine : engines_at(0)->name) != 0) {
        fprintf(stderr, "horkos sim: %s is not of this engine\n", name);
        return false;
    }
    mutant_switch_off(i, config);
    return true;
}

static bool parse_death(const char *name, uint32_t *death_out)
{
    *death_out = death_find(name);
    if (*death_out != 0) {
        return true;
    }
    fprintf(stderr, "horkos sim: there is no case \"%s\"; known are:\n", name);
    for (uint32_t i = 1; i <= death_cases(); i++) {
        char known[DEATH_NAME_BYTES];
        death_name(i, known);
        fprintf(stderr, "  %s\n", known);
    }
    return false;
}

/* What is left out of runs; false: it is none of these options. */
static bool parse_smaller(int id, const char *text, struct sim_options *o, bool *good_out)
{
    struct sim_config *c = &o->config;
    *good_out = true;
    switch (id) {
    case OPTION_SKIP:
        *good_out = parse_skip(text, &c->plan_skip);
        return true;
    case OPTION_SKIP_FAULTS:
        *good_out = parse_faults(text, &c->faults_skip);
        return true;
    case OPTION_CLIENTS:
        *good_out = parse_small("clients", text, 1, 100, &c->clients_max);
        return true;
    case OPTION_KEYS:
        *good_out = parse_small("keys", text, 1, 100, &c->keys_max);
        return true;
    case OPTION_DEATH:
        *good_out = parse_death(text, &c->death);
        return true;
    case OPTION_UNTIL:
        *good_out = parse_number("until", text, 1, UINT64_C(1) << 62, &c->until);
        return true;
    case OPTION_NO_SHRINK:
        o->shrink = false;
        return true;
    case OPTION_LANES:
        c->lanes = true;
        return true;
    case OPTION_NEAR:
        c->near = true;
        return true;
    case OPTION_TAMPER:
        c->tamper = true;
        return true;
    case OPTION_WAVER:
        o->waver = true;
        return true;
    default:
        return false;
    }
}

static bool parse_one(int id, const char *text, struct sim_options *o)
{
    struct sim_config *c = &o->config;
    bool good = false;
    if (parse_smaller(id, text, o, &good)) {
        return good;
    }
    switch (id) {
    case OPTION_ENGINE:
        return parse_engine(text, c);
    case OPTION_CC:
        return parse_policy(text, &c->policy);
    case OPTION_NODES:
        return parse_small("nodes", text, 1, SIM_NODES_MAX, &c->nodes);
    case OPTION_WORKERS:
        return parse_small("workers", text, 1, SIM_WORKERS_MAX, &c->workers);
    case OPTION_SEEDS:
        return parse_number("seeds", text, 1, UINT64_C(1) << 40, &o->seeds);
    case OPTION_FROM:
        return parse_number("from", text, 0, UINT64_C(1) << 62, &o->from);
    case OPTION_OPS:
        return parse_small("ops", text, 1, 100000, &c->ops);
    case OPTION_FAULTS:
        return parse_faults(text, &c->faults);
    case OPTION_O3:
        c->o3 = SIM_ON;
        return true;
    case OPTION_NO_O3:
        c->o3 = SIM_OFF;
        return true;
    case OPTION_ASYNC:
        c->async = SIM_ON;
        return true;
    case OPTION_NO_ASYNC:
        c->async = SIM_OFF;
        return true;
    case OPTION_REPLAY:
        o->replay = true;
        return parse_number("replay", text, 0, UINT64_C(1) << 62, &o->from);
    case OPTION_TRACE:
        c->trace = stdout;
        return true;
    case OPTION_JSON:
        o->json = true;
        return true;
    case OPTION_PROGRESS:
        o->progress = true;
        return true;
    case OPTION_MUTANT:
        return parse_mutant(text, c);
    case OPTION_MUTANTS:
        o->all_mutants = true;
        o->mutants = text == NULL ? "" : text;
        return mutants_possible();
    case OPTION_RECORDS:
        o->records = text;
        return mutants_possible();
    case OPTION_JOBS:
        return parse_small("jobs", text, 1, 64, &o->jobs);
    default:
        fprintf(stderr, "see horkos sim --help\n");
        return false;
    }
}

int sim_options_parse(int argc, char **argv, struct sim_options *options_out, bool *help_out)
{
    struct sim_options *o = options_out;
    *o = (struct sim_options){.from = 1, .seeds = 100, .jobs = 1, .shrink = true};
    o->config = (struct sim_config){.nodes = 3, .faults = SIM_FAULTS_ALL};
    *help_out = false;
    optind = 1;
    for (int id; (id = getopt_long(argc, argv, "h", long_options, NULL)) != -1;) {
        if (id == OPTION_HELP || id == 'h') {
            print_help();
            *help_out = true;
            return STATUS_OK;
        }
        if (!parse_one(id, optarg, o)) {
            return STATUS_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "horkos sim: what does \"%s\" mean? See horkos sim --help\n", argv[optind]);
        return STATUS_USAGE;
    }
    if (o->config.engine != NULL && (o->config.o3 == SIM_ON || o->config.async == SIM_ON)) {
        fprintf(stderr, "horkos sim: --o3 and --async are for hermes\n");
        return STATUS_USAGE;
    }
    if (o->config.trace != NULL && !o->replay) {
        fprintf(stderr, "horkos sim: --trace needs --replay\n");
        return STATUS_USAGE;
    }
    if (o->records != NULL && !o->all_mutants) {
        fprintf(stderr, "horkos sim: --records needs --mutants\n");
        return STATUS_USAGE;
    }
    o->progress = o->progress || (!o->json && !o->replay && isatty(STDERR_FILENO));
    return STATUS_OK;
}
