/* `horkos explore --mutants`: each rule of Hermes and of the views, and each flipped operator, is
 * looked for in one configuration after another until one shows it. Each search runs in a process
 * of its own: an assertion of the code may fail first, and shows the mutant as well. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/flips.h"
#include "sim/mutants.h"
#include "tools/commands.h"
#include "tools/explore_options.h"
#include "tools/sim_runs.h"

/* Most mutants show after a few thousand states, so all configurations are tried with few before
 * any is tried with many. */
#define STATES_FEW 30000u
#define STATES_DEFAULT 1000000u
#define TRACE_BYTES 32768u

/* Shared with the process that searches. */
struct finding {
    bool done;
    bool violation;
    uint64_t states;
    uint32_t depth;
    char how[160];
    char trace[TRACE_BYTES];
};

struct hunt {
    const struct explore_options *options;
    struct finding *finding;
    json_t *list;
    uint32_t caught;
    uint32_t survived;
    uint32_t unexpected; /* survivors that nothing excuses */
};

/* Why no configuration need show it; NULL if one must. */
static const char *excuse(const char *name)
{
    if (strncmp(name, "flip:", 5) == 0) {
        return "what shows a flipped operator may be the simulator, or a test";
    }
    return mutant_survives(mutant_find(name));
}

/* ---- One search ---- */

static void search(const struct explore_options *mutated, const struct explore_config *config,
                   struct finding *finding)
{
    struct search_result result;
    struct explore_request request = {.rules_off = mutated->rules_off[config->family],
                                      .altered = mutated->flips_on != 0,
                                      .bounds = mutated->bounds};
#ifdef HK_MUTANTS
    hk_flips_on = mutated->flips_on;
#endif
    explore_run(config, &request, &result);
    finding->violation = result.end == SEARCH_VIOLATION;
    finding->states = result.states;
    finding->depth = result.depth + 1;
    if (finding->violation) {
        snprintf(finding->how, sizeof finding->how, "%s", result.broken);
        snprintf(finding->trace, sizeof finding->trace, "%s",
                 result.trace == NULL ? "" : result.trace);
    }
    search_result_deinit(&result);
    finding->done = true;
}

/* False: no process was to be had. */
static bool search_apart(const struct explore_options *mutated, const struct explore_config *config,
                         struct finding *finding)
{
    memset(finding, 0, sizeof *finding);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        /* An assertion that fails is what is looked for, not what anybody wants to read. */
        if (freopen("/dev/null", "w", stderr) == NULL) {
            _exit(STATUS_FAILED);
        }
        search(mutated, config, finding);
        _exit(STATUS_OK);
    }
    int end = 0;
    if (child < 0 || waitpid(child, &end, 0) != child) {
        perror("horkos explore");
        return false;
    }
    if (!finding->done) {
        finding->violation = true;
        sim_describe_end(end, finding->how, sizeof finding->how);
    }
    return true;
}

/* ---- One mutant ---- */

static bool fits(const struct explore_options *mutated, const struct explore_config *config,
                 const char *name)
{
    if (!explore_options_want(mutated, config)) {
        return false;
    }
    if (mutated->flips_on != 0) {
        static const char *const sources[EXPLORE_FAMILIES] = {
            [EXPLORE_HERMES] = "hermes/",   [EXPLORE_GALENE] = "galene/",
            [EXPLORE_OWN] = "zeus/own",     [EXPLORE_COMMIT] = "zeus/commit",
            [EXPLORE_LOCKS] = "lotus/lock", [EXPLORE_LOTUS] = "lotus/commit",
            [EXPLORE_VIEW] = "view/"};
        return strstr(name, sources[config->family]) != NULL;
    }
    return mutated->rules_off[config->family] != 0;
}

static void report(struct hunt *hunt, const char *name, const struct explore_config *by,
                   uint64_t states, uint64_t started_us)
{
    const struct finding *finding = hunt->finding;
    double seconds = (double)(clock_boot_us() - started_us) / 1e6;
    const char *why = excuse(name);
    if (hunt->list != NULL) {
        json_t *one = json_object();
        json_object_set_new(one, "rule", json_string(name));
        json_object_set_new(one, "caught", json_boolean(by != NULL));
        json_object_set_new(one, "states", json_integer((json_int_t)states));
        json_object_set_new(one, "seconds", json_real(seconds));
        if (by != NULL) {
            json_object_set_new(one, "config", json_string(by->name));
            json_object_set_new(one, "depth", json_integer(finding->depth));
            json_object_set_new(one, "how", json_string(finding->how));
        } else if (why != NULL) {
            json_object_set_new(one, "expected_because", json_string(why));
        }
        json_array_append_new(hunt->list, one);
        return;
    }
    if (by != NULL && finding->depth == 0) {
        /* The process ended: how deep it was nobody knows. */
        printf("%-30s caught by %s (%.1f s): %s\n", name, by->name, seconds, finding->how);
    } else if (by != NULL) {
        printf("%-30s caught by %s in %u steps (%" PRIu64 " states, %.1f s): %s\n", name, by->name,
               finding->depth, states, seconds, finding->how);
        if (hunt->options->trace) {
            fputs(finding->trace, stdout);
        }
    } else {
        printf("%-30s survives %" PRIu64 " states, %.1f s%s%s\n", name, states, seconds,
               why == NULL ? "" : ": ", why == NULL ? "" : why);
    }
    fflush(stdout);
}

/* Searches each configuration up to so many states until one shows the mutant. */
static bool hunt_within(struct hunt *hunt, const struct explore_options *mutated, const char *name,
                        const struct explore_config **by_out, uint64_t *states)
{
    for (uint32_t i = 0; i < explore_count() && *by_out == NULL; i++) {
        const struct explore_config *config = explore_at(i);
        if (!fits(mutated, config, name)) {
            continue;
        }
        if (!search_apart(mutated, config, hunt->finding)) {
            return false;
        }
        *states += hunt->finding->states;
        *by_out = hunt->finding->violation ? config : NULL;
    }
    return true;
}

static bool hunt_one(struct hunt *hunt, const struct explore_options *mutated, const char *name)
{
    uint64_t started_us = clock_boot_us();
    const struct explore_config *by = NULL;
    uint64_t states = 0;
    struct explore_options few = *mutated;
    if (few.bounds.states_max > STATES_FEW) {
        few.bounds.states_max = STATES_FEW;
    }
    if (!hunt_within(hunt, &few, name, &by, &states) ||
        (by == NULL && few.bounds.states_max < mutated->bounds.states_max &&
         !hunt_within(hunt, mutated, name, &by, &states))) {
        return false;
    }
    report(hunt, name, by, states, started_us);
    hunt->caught += by != NULL;
    hunt->survived += by == NULL;
    hunt->unexpected += by == NULL && excuse(name) == NULL;
    return true;
}

static bool hunt_all(struct hunt *hunt)
{
    for (uint32_t i = 0; i < mutants_count(); i++) {
        char name[MUTANT_NAME_BYTES];
        struct explore_options mutated = *hunt->options;
        mutant_name(i, name);
        if (strncmp(name, hunt->options->mutants, strlen(hunt->options->mutants)) != 0 ||
            !explore_options_mutate(i, &mutated)) {
            continue;
        }
        if (mutated.bounds.states_max == 0) {
            mutated.bounds.states_max = STATES_DEFAULT;
        }
        if (!hunt_one(hunt, &mutated, name)) {
            return false;
        }
    }
    return true;
}

static void print_totals(const struct hunt *hunt, uint64_t started_us)
{
    if (hunt->list == NULL) {
        printf("%u caught, %u survive, of which %u unexpectedly\n", hunt->caught, hunt->survived,
               hunt->unexpected);
        return;
    }
    json_t *json = json_object();
    json_object_set(json, "mutants", hunt->list);
    json_object_set_new(json, "caught", json_integer(hunt->caught));
    json_object_set_new(json, "survived", json_integer(hunt->survived));
    json_object_set_new(json, "wrong", json_integer(hunt->unexpected));
    json_object_set_new(json, "wall_seconds",
                        json_real((double)(clock_boot_us() - started_us) / 1e6));
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    fputc('\n', stdout);
    json_decref(json);
}

int explore_mutants_command(const struct explore_options *options)
{
    struct hunt hunt = {.options = options};
    uint64_t started_us = clock_boot_us();
    int status = STATUS_FAILED;
    hunt.finding = sim_share(sizeof *hunt.finding);
    hunt.list = options->json ? json_array() : NULL;
    if (hunt.finding == NULL) {
        perror("horkos explore");
    } else if (hunt_all(&hunt)) {
        print_totals(&hunt, started_us);
        status = hunt.unexpected == 0 ? STATUS_OK : STATUS_FAILED;
    }
    json_decref(hunt.list);
    sim_unshare(hunt.finding, sizeof *hunt.finding);
    return status;
}
