#include "tools/torture_options.h"

#include <stdio.h>
#include <string.h>

#include "tools/commands.h"
#include "tools/options.h"
#include "tools/torture_plan.h"

enum {
    OPTION_HELP = 256,
    OPTION_SECONDS,
    OPTION_SEED,
    OPTION_NODES,
    OPTION_CLIENTS,
    OPTION_KEYS,
    OPTION_LEASE,
    OPTION_ENGINE,
    OPTION_FAULTS,
    OPTION_HEAL,
    OPTION_DIR,
    OPTION_KEEP,
    OPTION_PROGRAM,
    OPTION_LOOPBACK,
    OPTION_PLAN,
    OPTION_JSON,
    OPTION_TAMPER,
};

static const struct option long_options[] = {
    {"help", no_argument, NULL, OPTION_HELP},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"nodes", required_argument, NULL, OPTION_NODES},
    {"clients", required_argument, NULL, OPTION_CLIENTS},
    {"keys", required_argument, NULL, OPTION_KEYS},
    {"lease", required_argument, NULL, OPTION_LEASE},
    {"engine", required_argument, NULL, OPTION_ENGINE},
    {"faults", required_argument, NULL, OPTION_FAULTS},
    {"heal", required_argument, NULL, OPTION_HEAL},
    {"dir", required_argument, NULL, OPTION_DIR},
    {"keep", no_argument, NULL, OPTION_KEEP},
    {"program", required_argument, NULL, OPTION_PROGRAM},
    {"loopback", no_argument, NULL, OPTION_LOOPBACK},
    {"plan", no_argument, NULL, OPTION_PLAN},
    {"json", no_argument, NULL, OPTION_JSON},
    {"tamper", required_argument, NULL, OPTION_TAMPER},
    {NULL, 0, NULL, 0},
};

const char *const torture_engine_names[TORTURE_ENGINES] = {
    [TORTURE_HERMES] = "hermes",
    [TORTURE_GALENE] = "galene",
    [TORTURE_ZEUS] = "zeus",
    [TORTURE_LOTUS] = "lotus",
};

static const char help[] =
    "usage: horkos torture [OPTION...]\n"
    "\n"
    "Runs a cluster of real processes, befalls it with faults by a plan that is drawn from a\n"
    "seed, lets clients work on it meanwhile, and judges all that they saw.\n"
    "\n"
    "  --seconds N      how long faults go on, 1 to 86400 (default 30)\n"
    "  --seed S         the same seed and options give the same plan (default 1)\n"
    "  --nodes N        1 to 9 (default 3)\n"
    "  --clients N      1 to 256 (default 24)\n"
    "  --keys N         in use at the same time, 1 to 256 (default 12)\n"
    "  --lease MS       length of leases, 50 to 60000 (default 500)\n"
    "  --engine NAME    of the space: hermes, galene, zeus or lotus (default hermes)\n"
    "  --faults LIST    kinds, with commas between; a minus takes one away; all, none, or of\n"
    "                   kill, pause, leave, isolate, one-way, split, bridge, shatter,\n"
    "                   reset-peers, reset-clients (default all)\n"
    "  --heal S         how long the cluster may take, after the faults, until all nodes serve\n"
    "                   and all clients get on (default 60)\n"
    "  --dir D          where the nodes' files are (default a new folder for temporary files)\n"
    "  --keep           leaves the files there; a violation leaves them in any case\n"
    "  --program PATH   what the nodes run (default this very program)\n"
    "  --loopback       no network namespaces, so no partitions\n"
    "  --plan           prints the plan, and runs nothing\n"
    "  --json           the report as JSON\n"
    "  --tamper WHAT    for tests of the checkers: plants a lie, which must be found; read,\n"
    "                   replica, or, with engine zeus or lotus, transfer, with lotus order\n"
    "\n"
    "Exit status: 0 all is well, 1 a violation, 2 wrong option, 3 it could not be run to the end.\n"
    "docs/TORTURE.md tells more.\n";

static bool parse_number(const char *option, const char *text, uint32_t low, uint32_t high,
                         uint32_t *number_out)
{
    uint64_t number = 0;
    if (!options_number("torture", option, text, low, high, &number)) {
        return false;
    }
    *number_out = (uint32_t)number;
    return true;
}

static bool parse_fault(const char *word, size_t n, uint32_t *faults)
{
    bool minus = n > 0 && word[0] == '-';
    uint32_t bits = 0;
    word += minus ? 1 : 0;
    n -= minus ? 1 : 0;
    if (n == 4 && memcmp(word, "none", 4) == 0) {
        return true;
    }
    if (n == 3 && memcmp(word, "all", 3) == 0) {
        bits = TORTURE_FAULTS_ALL;
    }
    for (uint32_t k = 0; k < TORTURE_KINDS; k++) {
        if (strlen(torture_kind_names[k]) == n && memcmp(word, torture_kind_names[k], n) == 0) {
            bits = 1u << k;
        }
    }
    *faults = minus ? *faults & ~bits : *faults | bits;
    return bits != 0;
}

static bool parse_faults(const char *list, uint32_t *faults_out)
{
    uint32_t faults = list[0] == '-' ? TORTURE_FAULTS_ALL : 0;
    for (const char *word = list;; word++) {
        size_t n = strcspn(word, ",");
        if (!parse_fault(word, n, &faults)) {
            fprintf(stderr, "horkos torture: there is no kind of fault \"%.*s\"\n", (int)n, word);
            return false;
        }
        word += n;
        if (*word == '\0') {
            *faults_out = faults;
            return true;
        }
    }
}

static bool parse_path(const char *option, const char *text, char path_out[DEV_DIR_MAX])
{
    if (text[0] == '\0' || strlen(text) >= DEV_DIR_MAX) {
        fprintf(stderr, "horkos torture: %s needs a path of 1 to %u bytes\n", option,
                DEV_DIR_MAX - 1);
        return false;
    }
    memcpy(path_out, text, strlen(text) + 1);
    return true;
}

bool torture_homed(const struct torture_options *options)
{
    return options->engine == TORTURE_GALENE || options->engine == TORTURE_LOTUS;
}

bool torture_transacts(const struct torture_options *options)
{
    return options->engine == TORTURE_ZEUS || options->engine == TORTURE_LOTUS;
}

static bool parse_engine(const char *text, struct torture_options *o)
{
    for (uint32_t i = 0; i < TORTURE_ENGINES; i++) {
        if (strcmp(text, torture_engine_names[i]) == 0) {
            o->engine = (enum torture_engine)i;
            return true;
        }
    }
    fprintf(stderr, "horkos torture: --engine takes hermes, galene, zeus or lotus, not \"%s\"\n",
            text);
    return false;
}

static bool parse_tamper(const char *text, enum torture_tamper *tamper_out)
{
    static const char *const names[] = {
        [TORTURE_TAMPER_READ] = "read",
        [TORTURE_TAMPER_REPLICA] = "replica",
        [TORTURE_TAMPER_TRANSFER] = "transfer",
        [TORTURE_TAMPER_ORDER] = "order",
    };
    for (uint32_t i = TORTURE_TAMPER_READ; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *tamper_out = (enum torture_tamper)i;
            return true;
        }
    }
    fprintf(stderr, "horkos torture: --tamper takes read, replica, transfer or order, not \"%s\"\n",
            text);
    return false;
}

static bool parse_one(int id, const char *text, struct torture_options *o)
{
    switch (id) {
    case OPTION_SECONDS:
        return parse_number("--seconds", text, 1, 86400, &o->seconds);
    case OPTION_SEED:
        return options_number("torture", "--seed", text, 0, UINT64_MAX, &o->seed);
    case OPTION_NODES:
        return parse_number("--nodes", text, 1, TORTURE_NODES_MAX, &o->nodes);
    case OPTION_CLIENTS:
        return parse_number("--clients", text, 1, TORTURE_CLIENTS_MAX, &o->clients);
    case OPTION_KEYS:
        return parse_number("--keys", text, 1, TORTURE_KEYS_MAX, &o->keys);
    case OPTION_LEASE:
        return parse_number("--lease", text, 50, 60000, &o->lease_ms);
    case OPTION_ENGINE:
        return parse_engine(text, o);
    case OPTION_FAULTS:
        return parse_faults(text, &o->faults);
    case OPTION_HEAL:
        return parse_number("--heal", text, 1, 86400, &o->heal_s);
    case OPTION_DIR:
        return parse_path("--dir", text, o->dir);
    case OPTION_PROGRAM:
        return parse_path("--program", text, o->program);
    case OPTION_TAMPER:
        return parse_tamper(text, &o->tamper);
    case OPTION_KEEP:
        o->keep = true;
        return true;
    case OPTION_LOOPBACK:
        o->loopback = true;
        return true;
    case OPTION_PLAN:
        o->plan = true;
        return true;
    case OPTION_JSON:
        o->json = true;
        return true;
    default:
        return false;
    }
}

int torture_options_parse(int argc, char **argv, struct torture_options *options_out,
                          bool *help_out)
{
    struct torture_options *o = options_out;
    *o = (struct torture_options){
        .seed = 1,
        .seconds = 30,
        .nodes = 3,
        .clients = 24,
        .keys = 12,
        .lease_ms = 500,
        .heal_s = 60,
        .faults = TORTURE_FAULTS_ALL,
        .program = "/proc/self/exe",
    };
    *help_out = false;
    optind = 0;
    for (int id; (id = options_next(argc, argv, ":h", long_options)) != -1;) {
        if (id == OPTION_HELP || id == 'h') {
            fputs(help, stdout);
            *help_out = true;
            return STATUS_OK;
        }
        if (id == '?' || id == ':') {
            options_complain("torture", id, argv, long_options);
            return STATUS_USAGE;
        }
        if (!parse_one(id, optarg, o)) {
            return STATUS_USAGE;
        }
    }
    if (o->tamper == TORTURE_TAMPER_ORDER && o->engine != TORTURE_LOTUS) {
        fprintf(stderr, "horkos torture: --tamper order needs --engine lotus\n");
        return false;
    }
    if (o->tamper == TORTURE_TAMPER_TRANSFER && !torture_transacts(o)) {
        fprintf(stderr, "horkos torture: --tamper transfer needs --engine zeus or lotus\n");
        return STATUS_USAGE;
    }
    if (optind < argc) {
        fprintf(stderr, "horkos torture: what does \"%s\" mean? See horkos torture --help\n",
                argv[optind]);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}
