#include "tools/explore_options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/mutants.h"
#include "tools/commands.h"
#include "tools/options.h"

static const char help[] =
    "usage: horkos explore [OPTION...]\n"
    "\n"
    "Visits every state that a model of a few nodes can reach, breadth first, with the real code\n"
    "of the protocols: messages in any order, any number of times or never, timers at any moment,\n"
    "crashes, views that members learn at different times. A violation prints the shortest\n"
    "execution that leads to it.\n"
    "Exit status: 0 all states were visited and none is broken, 1 a violation, 2 a wrong option,\n"
    "3 a bound was reached first.\n"
    "\n"
    "  --config NAME     one configuration, or fast (default), or all\n"
    "  --engine NAME     those of one engine alone, as --list names it; all, without --config\n"
    "  --list            lists the configurations\n"
    "  --states-max N    stops each after so many states\n"
    "  --memory MB       ... after so much memory (4096)\n"
    "  --seconds N       ... after so much time\n"
    "  --json            reports as JSON\n"
    "  --progress        tells how far it is, even if standard error is no terminal\n"
#ifdef HK_MUTANTS
    "  --mutant NAME     switches one rule off, as hermes:epoch\n"
    "  --mutants[=NAME]  switches off each rule in turn whose name begins so, until a\n"
    "                    configuration shows it\n"
    "  --trace           with --mutants: prints each execution\n"
#endif
    "  --help            this text\n";

enum option_id {
    OPTION_CONFIG = 256,
    OPTION_ENGINE,
    OPTION_LIST,
    OPTION_STATES_MAX,
    OPTION_MEMORY,
    OPTION_SECONDS,
    OPTION_JSON,
    OPTION_PROGRESS,
    OPTION_MUTANT,
    OPTION_MUTANTS,
    OPTION_TRACE,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"engine", required_argument, NULL, OPTION_ENGINE},
    {"list", no_argument, NULL, OPTION_LIST},
    {"states-max", required_argument, NULL, OPTION_STATES_MAX},
    {"memory", required_argument, NULL, OPTION_MEMORY},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"json", no_argument, NULL, OPTION_JSON},
    {"progress", no_argument, NULL, OPTION_PROGRESS},
    {"mutant", required_argument, NULL, OPTION_MUTANT},
    {"mutants", optional_argument, NULL, OPTION_MUTANTS},
    {"trace", no_argument, NULL, OPTION_TRACE},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

bool explore_options_want(const struct explore_options *options,
                          const struct explore_config *config)
{
    if (options->engine != NULL &&
        strcmp(options->engine, explore_family_names[config->family]) != 0) {
        return false;
    }
    if (strcmp(options->config, "all") == 0) {
        return true;
    }
    if (strcmp(options->config, "fast") == 0) {
        return config->fast;
    }
    return strcmp(options->config, config->name) == 0;
}

bool explore_options_mutate(uint32_t i, struct explore_options *options)
{
    bool any = false;
    for (uint32_t at = 0; at < EXPLORE_FAMILIES; at++) {
        enum explore_family family = (enum explore_family)at;
        struct sim_config config = {.nodes = 0, .engine = explore_engine(family)};
        mutant_switch_off(i, &config);
        uint64_t rules = explore_rules(family, config.engine_rules_off, config.view_rules_off);
        options->rules_off[family] |= rules;
        options->flips_on |= config.flips_on;
        any = any || (rules | config.flips_on) != 0;
    }
    return any;
}

static bool mutants_possible(void)
{
#ifdef HK_MUTANTS
    return true;
#else
    fprintf(stderr, "horkos explore: rules can be switched off only in horkos-mutants\n");
    return false;
#endif
}

static bool parse_mutant(const char *name, struct explore_options *o)
{
    if (!mutants_possible()) {
        return false;
    }
    uint32_t i = mutant_find(name);
    if (i == mutants_count() || !explore_options_mutate(i, o)) {
        fprintf(stderr, "horkos explore: there is no rule \"%s\" here; known are:\n", name);
        for (i = 0; i < mutants_count(); i++) {
            char known[MUTANT_NAME_BYTES];
            struct explore_options unused = {.config = ""};
            mutant_name(i, known);
            if (explore_options_mutate(i, &unused)) {
                fprintf(stderr, "  %s\n", known);
            }
        }
        return false;
    }
    return true;
}

static bool parse_config(const char *name, struct explore_options *o)
{
    o->config = name;
    if (strcmp(name, "all") == 0 || strcmp(name, "fast") == 0 || explore_find(name) != NULL) {
        return true;
    }
    fprintf(stderr, "horkos explore: there is no configuration \"%s\"; see horkos explore --list\n",
            name);
    return false;
}

static bool parse_engine(const char *name, struct explore_options *o)
{
    for (uint32_t i = 0; i < EXPLORE_FAMILIES; i++) {
        if (strcmp(name, explore_family_names[i]) == 0) {
            o->engine = name;
            return true;
        }
    }
    fprintf(stderr, "horkos explore: there is no engine \"%s\"; there are", name);
    for (uint32_t i = 0; i < EXPLORE_FAMILIES; i++) {
        fprintf(stderr, "%s %s", i > 0 ? "," : "", explore_family_names[i]);
    }
    fprintf(stderr, "\n");
    return false;
}

static bool parse_one(int id, const char *text, struct explore_options *o)
{
    switch (id) {
    case OPTION_CONFIG:
        return parse_config(text, o);
    case OPTION_ENGINE:
        return parse_engine(text, o);
    case OPTION_LIST:
        o->list = true;
        return true;
    case OPTION_STATES_MAX:
        return options_number("explore", "--states-max", text, 1, UINT32_MAX,
                              &o->bounds.states_max);
    case OPTION_MEMORY:
        if (!options_number("explore", "--memory", text, 1, 1 << 20, &o->bounds.memory_max)) {
            return false;
        }
        o->bounds.memory_max <<= 20;
        return true;
    case OPTION_SECONDS:
        return options_number("explore", "--seconds", text, 1, 1000000, &o->bounds.seconds_max);
    case OPTION_JSON:
        o->json = true;
        return true;
    case OPTION_PROGRESS:
        o->progress = true;
        return true;
    case OPTION_MUTANT:
        return parse_mutant(text, o);
    case OPTION_MUTANTS:
        o->all_mutants = true;
        o->mutants = text == NULL ? "" : text;
        return mutants_possible();
    case OPTION_TRACE:
        o->trace = true;
        return true;
    default:
        return false;
    }
}

int explore_options_parse(int argc, char **argv, struct explore_options *options_out,
                          bool *help_out)
{
    struct explore_options *o = options_out;
    *o = (struct explore_options){.config = NULL};
    *help_out = false;
    optind = 0;
    for (int id; (id = options_next(argc, argv, ":h", long_options)) != -1;) {
        if (id == OPTION_HELP || id == 'h') {
            fputs(help, stdout);
            *help_out = true;
            return STATUS_OK;
        }
        if (id == '?' || id == ':') {
            options_complain("explore", id, argv, long_options);
            return STATUS_USAGE;
        }
        if (!parse_one(id, optarg, o)) {
            return STATUS_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "horkos explore: what does \"%s\" mean? See horkos explore --help\n",
                argv[optind]);
        return STATUS_USAGE;
    }
    if (o->trace && !o->all_mutants) {
        fprintf(stderr, "horkos explore: --trace needs --mutants; a violation is always traced\n");
        return STATUS_USAGE;
    }
    if (o->config == NULL) {
        o->config = o->all_mutants || o->engine != NULL ? "all" : "fast";
    }
    o->progress = o->progress || (!o->json && isatty(STDERR_FILENO));
    return STATUS_OK;
}
