/* `horkos sim --mutants`: switches each rule off in turn and looks for the first seed that shows
 * it; and shows that no seed complains while all rules are on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "sim/mutants.h"
#include "tools/commands.h"
#include "tools/sim_runs.h"

/* A run takes milliseconds; one that takes so long is caught in an endless loop. */
#define SEED_SECONDS_MAX 30u

/* Entry mutants_count() stands for the code with all rules on. */
struct hunt {
    const struct sim_options *options;
    struct sim_watch *watch;
    bool *unsound; /* shared: seeds, from options->from, that complain while all rules are on */
    pid_t *children;
    char (*how)[80]; /* how the rule was noticed */
    uint32_t n;
    uint64_t started_us;
};

static void search(const struct hunt *hunt, uint32_t i)
{
    const struct sim_options *options = hunt->options;
    struct sim_watch *watch = &hunt->watch[i];
    struct sim_config config = options->config;
    if (i < mutants_count()) {
        mutant_switch_off(i, &config);
    }
    for (uint64_t seed = watch->next; seed < options->from + options->seeds; seed++) {
        struct sim_result result;
        if (i < mutants_count() && hunt->unsound[seed - options->from]) {
            continue; /* it shows nothing about this rule */
        }
        watch->seed = seed;
        watch->next = seed + 1;
        alarm(SEED_SECONDS_MAX);
        sim_run(&config, seed, &result);
        bool found = result.verdict == SIM_VIOLATION;
        sim_result_deinit(&result);
        watch->ran++;
        if (found && !watch->found) {
            watch->found = true;
            watch->caught = seed;
        }
        if (found && i < mutants_count()) {
            break;
        }
        hunt->unsound[seed - options->from] = found;
    }
    watch->done = true;
}

static void start(struct hunt *hunt, uint32_t i)
{
    fflush(stdout);
    hunt->children[i] = fork();
    if (hunt->children[i] == 0) {
        /* Assertions that fail are what is looked for, not what anybody wants to read. */
        if (freopen("/dev/null", "w", stderr) == NULL) {
            _exit(STATUS_FAILED);
        }
        sim_prepare_process();
        search(hunt, i);
        _exit(STATUS_OK);
    }
}

static void note_end(struct hunt *hunt, uint32_t i, int end)
{
    struct sim_watch *watch = &hunt->watch[i];
    if (!watch->done) {
        watch->caught = watch->found ? watch->caught : watch->seed;
        watch->found = true;
        sim_describe_end(end, hunt->how[i], sizeof hunt->how[i]);
    } else if (watch->found) {
        snprintf(hunt->how[i], sizeof hunt->how[i], "violation");
    }
}

static bool is_wanted(const struct hunt *hunt, uint32_t i)
{
    char name[MUTANT_NAME_BYTES];
    const char *prefix = hunt->options->mutants;
    mutant_name(i, name);
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static void name_of(uint32_t i, char name[MUTANT_NAME_BYTES])
{
    if (i < mutants_count()) {
        mutant_name(i, name);
    } else {
        snprintf(name, MUTANT_NAME_BYTES, "all rules on");
    }
}

static void print_end(const struct hunt *hunt, uint32_t i, FILE *to)
{
    char name[MUTANT_NAME_BYTES];
    const struct sim_watch *watch = &hunt->watch[i];
    name_of(i, name);
    if (watch->found) {
        fprintf(to, "%-28s caught by seed %" PRIu64 " (%s)\n", name, watch->caught, hunt->how[i]);
    } else {
        const char *why = i < mutants_count() ? mutant_survives(i) : "as it must";
        fprintf(to, "%-28s survives %" PRIu64 " seeds%s%s\n", name, watch->ran,
                why == NULL ? "" : ": ", why == NULL ? "" : why);
    }
}

static void show_end(const struct hunt *hunt, uint32_t i)
{
    if (!hunt->options->json || hunt->options->progress) {
        print_end(hunt, i, hunt->options->json ? stderr : stdout);
    }
}

/* The code with all rules on goes through all seeds, whatever happens: the mutants then leave out
 * what it stumbles over. */
static bool hunt_sound(struct hunt *hunt)
{
    uint32_t i = mutants_count();
    struct sim_watch *watch = &hunt->watch[i];
    while (!watch->done) {
        int end = 0;
        start(hunt, i);
        if (hunt->children[i] < 0 || waitpid(hunt->children[i], &end, 0) < 0) {
            perror("horkos sim");
            return false;
        }
        if (!watch->done) {
            hunt->unsound[watch->seed - hunt->options->from] = true;
        }
        note_end(hunt, i, end);
    }
    show_end(hunt, i);
    return true;
}

static bool hunt_mutants(struct hunt *hunt)
{
    uint32_t n = mutants_count();
    uint32_t next = 0;
    uint32_t running = 0;
    for (;;) {
        for (; next < n && running < hunt->options->jobs; next++) {
            if (!is_wanted(hunt, next)) {
                continue;
            }
            start(hunt, next);
            if (hunt->children[next] < 0) {
                perror("horkos sim");
                return false;
            }
            running++;
        }
        if (running == 0) {
            return true;
        }
        int end = 0;
        pid_t child = wait(&end);
        for (uint32_t i = 0; i < next; i++) {
            if (hunt->children[i] == child) {
                note_end(hunt, i, end);
                show_end(hunt, i);
            }
        }
        running--;
    }
}

/* A rule whose absence is never noticed, or rules that are on and are called a violation. */
static bool is_wrong(const struct hunt *hunt, uint32_t i)
{
    if (i == mutants_count()) {
        return hunt->watch[i].found;
    }
    return is_wanted(hunt, i) && !hunt->watch[i].found && mutant_survives(i) == NULL;
}

static void print_json(const struct hunt *hunt, uint32_t caught, uint32_t wrong)
{
    json_t *json = json_object();
    json_t *list = json_array();
    const struct sim_options *options = hunt->options;
    for (uint32_t i = 0; i < hunt->n; i++) {
        const struct sim_watch *watch = &hunt->watch[i];
        char name[MUTANT_NAME_BYTES];
        if (i < mutants_count() && !is_wanted(hunt, i)) {
            continue;
        }
        json_t *one = json_object();
        name_of(i, name);
        json_object_set_new(one, "rule", json_string(name));
        json_object_set_new(one, "caught", json_boolean(watch->found));
        json_object_set_new(one, "seeds", json_integer((json_int_t)watch->ran));
        if (watch->found) {
            json_object_set_new(one, "seed", json_integer((json_int_t)watch->caught));
            json_object_set_new(one, "how", json_string(hunt->how[i]));
        } else if (i < mutants_count() && mutant_survives(i) != NULL) {
            json_object_set_new(one, "expected_because", json_string(mutant_survives(i)));
        }
        json_array_append_new(list, one);
    }
    json_object_set_new(json, "nodes", json_integer(options->config.nodes));
    json_object_set_new(json, "from", json_integer((json_int_t)options->from));
    json_object_set_new(json, "seeds", json_integer((json_int_t)options->seeds));
    json_object_set_new(json, "mutants", list);
    json_object_set_new(json, "caught", json_integer(caught));
    json_object_set_new(json, "wrong", json_integer(wrong));
    json_object_set_new(json, "wall_seconds",
                        json_real((double)(clock_boot_us() - hunt->started_us) / 1e6));
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    fputc('\n', stdout);
    json_decref(json);
}

int sim_mutants_command(const struct sim_options *options)
{
    uint32_t n = mutants_count() + 1;
    struct hunt hunt = {.options = options, .n = n, .started_us = clock_boot_us()};
    hunt.watch = sim_share(n * sizeof *hunt.watch);
    hunt.unsound = sim_share(options->seeds * sizeof *hunt.unsound);
    hunt.children = calloc(n, sizeof *hunt.children);
    hunt.how = calloc(n, sizeof *hunt.how);
    int status = STATUS_FAILED;
    if (hunt.watch == NULL || hunt.unsound == NULL || hunt.children == NULL || hunt.how == NULL) {
        perror("horkos sim");
        goto out;
    }
    for (uint32_t i = 0; i < n; i++) {
        hunt.watch[i].next = options->from;
    }
    if (!hunt_sound(&hunt) || !hunt_mutants(&hunt)) {
        goto out;
    }
    uint32_t caught = 0;
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < n; i++) {
        caught += i < mutants_count() && hunt.watch[i].found;
        wrong += is_wrong(&hunt, i);
    }
    if (options->json) {
        print_json(&hunt, caught, wrong);
    } else {
        printf("%u of %u rules caught, %u wrong\n", caught, mutants_count(), wrong);
    }
    status = wrong == 0 ? STATUS_OK : STATUS_FAILED;
out:
    free(hunt.how);
    free(hunt.children);
    sim_unshare(hunt.unsound, options->seeds * sizeof *hunt.unsound);
    sim_unshare(hunt.watch, n * sizeof *hunt.watch);
    return status;
}
