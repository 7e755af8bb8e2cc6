#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "tools/commands.h"
#include "tools/figures.h"
#include "tools/options.h"

static const char help[] =
    "usage: horkos figures --out DIR [OPTION...]\n"
    "\n"
    "Draws the papers' figures again: those of Galene's chapter by its equations\n"
    "(docs/GALENE_MODEL.md), the others by the cost model, which plays their clusters with this\n"
    "program's own nodes (docs/COST_MODEL.md). Compares what the papers say in numbers.\n"
    "Writes figure-ID.csv, figure-ID.gp and, where gnuplot is installed, figure-ID.svg.\n"
    "Exit status: 0 all figures were made, 1 some were not, 2 a wrong option.\n"
    "\n"
    "  --out DIR     where the files go; made if need be\n"
    "  --only IDS    these figures, such as 4.5 or L5a,L6a; L5 is all whose ID is that and a "
    "letter\n"
    "  --quick       few keys, workers and microseconds: shows that it works, not how fast\n"
    "  --seed S      of the clients (1); the same seed gives the same files\n"
    "  --markdown    prints the comparison as tables for a document\n"
    "  --json        reports as JSON\n"
    "  --list        names the figures\n"
    "  --progress    tells how far it is, even if standard error is no terminal\n"
    "  --help        this text\n";

enum option_id {
    OPTION_OUT = 256,
    OPTION_ONLY,
    OPTION_QUICK,
    OPTION_SEED,
    OPTION_MARKDOWN,
    OPTION_JSON,
    OPTION_LIST,
    OPTION_PROGRESS,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"out", required_argument, NULL, OPTION_OUT},
    {"only", required_argument, NULL, OPTION_ONLY},
    {"quick", no_argument, NULL, OPTION_QUICK},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"markdown", no_argument, NULL, OPTION_MARKDOWN},
    {"json", no_argument, NULL, OPTION_JSON},
    {"list", no_argument, NULL, OPTION_LIST},
    {"progress", no_argument, NULL, OPTION_PROGRESS},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static bool names(const char *id, size_t n, const struct figure *f)
{
    return n > 0 && strncmp(f->id, id, n) == 0 &&
           (f->id[n] == '\0' || (f->id[n] >= 'a' && f->id[n] <= 'z' && f->id[n + 1] == '\0'));
}

bool figures_wants(const struct figures_options *o, const struct figure *f)
{
    bool wants = o->only == NULL;
    for (const char *id = o->only; id != NULL && !wants; id = strchr(id, ',')) {
        id += *id == ',' ? 1 : 0;
        wants = names(id, strcspn(id, ","), f);
    }
    return wants;
}

static bool exists(const char *id, size_t n)
{
    for (const struct figure *f = figures; f->id != NULL; f++) {
        if (names(id, n, f)) {
            return true;
        }
    }
    return false;
}

static bool parse_only(const char *ids, struct figures_options *o)
{
    o->only = ids;
    for (const char *id = ids; id != NULL; id = strchr(id, ',')) {
        id += *id == ',' ? 1 : 0;
        int n = (int)strcspn(id, ",");
        if (!exists(id, (size_t)n)) {
            fprintf(stderr,
                    "horkos figures: there is no figure \"%.*s\"; see horkos figures --list\n", n,
                    id);
            return false;
        }
    }
    return true;
}

static bool parse_one(int id, const char *text, struct figures_options *o)
{
    switch (id) {
    case OPTION_OUT:
        o->out = text;
        return true;
    case OPTION_ONLY:
        return parse_only(text, o);
    case OPTION_QUICK:
        o->quick = true;
        return true;
    case OPTION_SEED:
        return options_number("figures", "--seed", text, 0, UINT64_MAX, &o->seed);
    case OPTION_MARKDOWN:
        o->markdown = true;
        return true;
    case OPTION_JSON:
        o->json = true;
        return true;
    case OPTION_LIST:
        o->list = true;
        return true;
    case OPTION_PROGRESS:
        o->progress = true;
        return true;
    default:
        return false;
    }
}

int figures_options_parse(int argc, char **argv, struct figures_options *options_out,
                          bool *help_out)
{
    struct figures_options *o = options_out;
    *o = (struct figures_options){.seed = 1};
    *help_out = false;
    optind = 0;
    for (int id; (id = options_next(argc, argv, ":h", long_options)) != -1;) {
        if (id == OPTION_HELP || id == 'h') {
            fputs(help, stdout);
            *help_out = true;
            return STATUS_OK;
        }
        if (id == '?' || id == ':') {
            options_complain("figures", id, argv, long_options);
            return STATUS_USAGE;
        }
        if (!parse_one(id, optarg, o)) {
            return STATUS_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "horkos figures: what does \"%s\" mean? See horkos figures --help\n",
                argv[optind]);
        return STATUS_USAGE;
    }
    if (o->out == NULL && !o->list) {
        fprintf(stderr, "horkos figures: --out DIR says where the files shall go\n");
        return STATUS_USAGE;
    }
    if (o->json && o->markdown) {
        fprintf(stderr, "horkos figures: --json and --markdown exclude each other\n");
        return STATUS_USAGE;
    }
    o->progress = o->progress || isatty(STDERR_FILENO);
    return STATUS_OK;
}
