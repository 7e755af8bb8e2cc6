/* `horkos sim --mutants`: looks for something that shows each mutant in turn, a seed of the
 * simulator or a configuration of the explorer; or tries what a file records. What shows a mutant
 * must call the code as it is sound. */
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
#include "tools/mutant_record.h"
#include "tools/mutant_trial.h"
#include "tools/sim_runs.h"

/* Most mutants show in a few seeds or after a few thousand states: these come first. */
#define SEEDS_FEW 100u
#define STATES_FEW 30000u
#define STATES_MANY 300000u
#define RECORD_BYTES 320u

/* A mutant that is looked for, or a record that is tried; shared with the process that does it. */
enum by { BY_SIMULATOR, BY_EXPLORER, BY_TEST, BYS };
static const char *const by_names[BYS] = {"simulator", "explorer", "test"};

struct job {
    uint32_t mutant;
    const struct mutant_trial *recorded; /* NULL: look for it */
    pid_t child;
    bool done;
    bool caught;
    bool unsound; /* something called the code as it is a violation ... */
    uint64_t seeds;
    uint64_t states;
    uint32_t uncounted;
    enum by by; /* caught: what did */
    struct mutant_outcome outcome;
    char record[RECORD_BYTES]; /* ... this did; else what caught the mutant */
};

struct hunt {
    const struct sim_options *options;
    struct job *jobs; /* shared */
    uint32_t n;
    uint64_t *sound; /* shared: up to how many states each configuration is known to be sound */
    uint64_t started_us;
};

/* ---- In the process of one job ---- */

/* Whether the code as it is passes what showed the mutant. A run that is stranded, or too hard to
 * judge, passes nothing. */
static bool is_sound(const struct hunt *hunt, const struct mutant_trial *trial,
                     const struct mutant_outcome *outcome, bool *sound_out)
{
    struct mutant_trial as_it_is = *trial;
    struct mutant_outcome result;
    uint64_t *known = NULL;
    as_it_is.mutant = mutants_count();
    as_it_is.from = outcome->seed;
    as_it_is.seeds = 1;
    as_it_is.states_max = outcome->ran + STATES_FEW;
    for (uint32_t i = 0; trial->explore != NULL && i < explore_count(); i++) {
        known = explore_at(i) == trial->explore ? &hunt->sound[i] : known;
    }
    if (known != NULL && *known >= as_it_is.states_max) {
        *sound_out = true;
        return true;
    }
    if (!mutant_try(&as_it_is, &result)) {
        return false;
    }
    *sound_out = result.end == MUTANT_MISSED && result.stranded == 0;
    if (*sound_out && known != NULL) {
        *known = as_it_is.states_max;
    }
    return true;
}

/* False: no process was to be had. */
static bool try_one(const struct hunt *hunt, struct job *job, struct mutant_trial trial)
{
    uint64_t end = trial.from + trial.seeds;
    for (;;) {
        bool sound = false;
        struct text record = {.at = NULL};
        trial.mutant = job->mutant;
        if (!mutant_try(&trial, &job->outcome)) {
            return false;
        }
        *(trial.explore != NULL ? &job->states : &job->seeds) += job->outcome.ran;
        job->uncounted += job->outcome.uncounted;
        if (!mutant_noticed(job->outcome.end)) {
            return true;
        }
        if (!is_sound(hunt, &trial, &job->outcome, &sound)) {
            return false;
        }
        job->caught = sound;
        job->by = trial.test[0] != '\0'   ? BY_TEST
                  : trial.explore != NULL ? BY_EXPLORER
                                          : BY_SIMULATOR;
        if (sound || !job->unsound) {
            mutant_record_write(&trial, &job->outcome, &record);
            snprintf(job->record, sizeof job->record, "%s", text_string(&record));
            text_deinit(&record);
        }
        job->unsound = job->unsound || !sound;
        trial.from = job->outcome.seed + 1;
        trial.seeds = end - trial.from;
        if (sound || job->by != BY_SIMULATOR || trial.seeds == 0) {
            return true;
        }
    }
}

static bool try_seeds(const struct hunt *hunt, struct job *job, uint32_t nodes, uint64_t first,
                      uint64_t n)
{
    const struct sim_options *options = hunt->options;
    const struct mutant_hint *hint = mutant_hint(job->mutant);
    struct mutant_trial trial = {.sim = options->config, .from = options->from + first, .seeds = n};
    trial.sim.nodes = nodes;
    const char *engine = mutant_engine(job->mutant);
    if (engine != NULL && strcmp(engine, "hermes") != 0) {
        trial.sim.engine = engine;
    }
    if (hint != NULL) {
        trial.sim.o3 = hint->o3 == SIM_DRAWN ? trial.sim.o3 : hint->o3;
        trial.sim.async = hint->async == SIM_DRAWN ? trial.sim.async : hint->async;
        trial.sim.faults = hint->faults == 0 ? trial.sim.faults : hint->faults;
    }
    return n == 0 || try_one(hunt, job, trial);
}

/* Whether a configuration runs the code that the mutant changes. */
static bool fits(uint32_t mutant, const struct explore_config *config)
{
    static const char *const begin[EXPLORE_FAMILIES][2] = {
        [EXPLORE_HERMES] = {"hermes:", "flip:engine/hermes/"},
        [EXPLORE_GALENE] = {"galene:", "flip:engine/galene/"},
        [EXPLORE_OWN] = {"zeus:own:", "flip:engine/zeus/own"},
        [EXPLORE_COMMIT] = {"zeus:commit:", "flip:engine/zeus/commit"},
        [EXPLORE_LOCKS] = {"lotus:lock:", "flip:engine/lotus/lock"},
        [EXPLORE_LOTUS] = {"lotus:", "flip:engine/lotus/commit"},
        [EXPLORE_VIEW] = {"view:", "flip:view/"},
    };
    char name[MUTANT_NAME_BYTES];
    mutant_name(mutant, name);
    for (size_t i = 0; i < 2; i++) {
        if (strncmp(name, begin[config->family][i], strlen(begin[config->family][i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool try_explorer(const struct hunt *hunt, struct job *job, uint64_t states)
{
    for (uint32_t i = 0; i < explore_count() && !job->caught; i++) {
        struct mutant_trial trial = {.explore = explore_at(i), .states_max = states};
        if (fits(job->mutant, trial.explore) && !try_one(hunt, job, trial)) {
            return false;
        }
    }
    return true;
}

static bool try_hint(const struct hunt *hunt, struct job *job)
{
    const struct mutant_hint *hint = mutant_hint(job->mutant);
    if (hint == NULL || hint->explore == NULL) {
        return true;
    }
    struct mutant_trial trial = {.explore = explore_find(hint->explore),
                                 .states_max = hint->states == 0 ? STATES_MANY : hint->states};
    return trial.explore == NULL || try_one(hunt, job, trial);
}

/* From what is quick to what is not. Where nobody expects to find anything, the longest part is
 * left out. */
static bool look_for(const struct hunt *hunt, struct job *job)
{
    const struct sim_options *options = hunt->options;
    uint32_t nodes = options->config.nodes;
    uint64_t few = options->seeds < SEEDS_FEW ? options->seeds : SEEDS_FEW;
    uint32_t others = nodes == 3 ? 5 : 3;
    return try_hint(hunt, job) && (job->caught || try_seeds(hunt, job, nodes, 0, few)) &&
           (job->caught || try_explorer(hunt, job, STATES_FEW)) &&
           (job->caught || try_seeds(hunt, job, nodes, few, options->seeds - few)) &&
           (job->caught || try_seeds(hunt, job, others, 0, options->seeds)) &&
           (job->caught || mutant_survives(job->mutant) != NULL ||
            try_explorer(hunt, job, STATES_MANY));
}

static bool start(const struct hunt *hunt, struct job *job)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        sim_end_with_parent();
        bool good =
            job->recorded != NULL ? try_one(hunt, job, *job->recorded) : look_for(hunt, job);
        job->done = good;
        _exit(good ? STATUS_OK : STATUS_FAILED);
    }
    if (child < 0) {
        perror("horkos sim");
        return false;
    }
    job->child = child;
    return true;
}

/* ---- In the parent ---- */

static void print_job(const struct job *job, FILE *to)
{
    char name[MUTANT_NAME_BYTES];
    const char *why = mutant_survives(job->mutant);
    mutant_name(job->mutant, name);
    if (job->unsound) {
        fprintf(to, "UNSOUND  all rules on: %s\n", job->record);
    }
    if (job->caught) {
        fprintf(to, "caught   %s: %s: %s\n", job->record, mutant_end_names[job->outcome.end],
                job->outcome.how);
    } else if (job->recorded != NULL) {
        fprintf(to, "MISSED   %s: what is on record shows it no more (%s%s%s)\n", name,
                mutant_end_names[job->outcome.end], job->outcome.how[0] == '\0' ? "" : ": ",
                job->outcome.how);
    } else {
        fprintf(to, "%s %s: %" PRIu64 " seeds, %" PRIu64 " states%s%s\n",
                why == NULL ? "SURVIVES" : "survives", name, job->seeds, job->states,
                why == NULL ? "" : ": ", why == NULL ? "" : why);
    }
    if (job->uncounted > 0) {
        fprintf(to, "         %s: %" PRIu32 " runs crashed, which shows nothing\n", name,
                job->uncounted);
    }
}

static void show(const struct hunt *hunt, const struct job *job)
{
    if (!hunt->options->json || hunt->options->progress) {
        print_job(job, hunt->options->json ? stderr : stdout);
        fflush(stdout);
    }
}

/* Waits for one of those that run. */
static bool wait_for_one(const struct hunt *hunt)
{
    pid_t child = wait(NULL);
    for (uint32_t i = 0; i < hunt->n; i++) {
        struct job *job = &hunt->jobs[i];
        if (job->child == child && child > 0) {
            job->child = 0;
            show(hunt, job);
            return job->done;
        }
    }
    return false;
}

static bool run_jobs(const struct hunt *hunt)
{
    uint32_t running = 0;
    bool good = true;
    for (uint32_t next = 0; good && next < hunt->n; next++) {
        good = start(hunt, &hunt->jobs[next]);
        running += good;
        if (running == hunt->options->jobs) {
            good = wait_for_one(hunt) && good;
            running--;
        }
    }
    for (; running > 0; running--) {
        good = wait_for_one(hunt) && good;
    }
    return good;
}

struct totals {
    uint32_t mutants; /* looked at */
    uint32_t caught;  /* by the simulator or the explorer, or both */
    uint32_t by[BYS]; /* a test: and by nothing else */
    uint32_t survive; /* nothing shows them, as it was expected */
    uint32_t wrong;
};

static bool is_wanted(const struct hunt *hunt, uint32_t mutant)
{
    char name[MUTANT_NAME_BYTES];
    mutant_name(mutant, name);
    return strncmp(name, hunt->options->mutants, strlen(hunt->options->mutants)) == 0;
}

/* A mutant must be caught, by every record that there is of it, or excused, but not both; with
 * nothing switched off nothing may be found. */
static void add_up(const struct hunt *hunt, uint32_t mutant, struct totals *totals)
{
    bool by[BYS] = {false};
    bool excused = mutant_survives(mutant) != NULL;
    bool recorded = false;
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < hunt->n; i++) {
        const struct job *job = &hunt->jobs[i];
        if (job->mutant != mutant) {
            continue;
        }
        by[job->by] = by[job->by] || job->caught;
        recorded = recorded || job->recorded != NULL;
        wrong += job->unsound || (job->recorded != NULL && !job->caught);
    }
    bool caught = by[BY_SIMULATOR] || by[BY_EXPLORER];
    bool shown = caught || by[BY_TEST];
    totals->mutants++;
    totals->caught += caught;
    totals->by[BY_SIMULATOR] += by[BY_SIMULATOR];
    totals->by[BY_EXPLORER] += by[BY_EXPLORER];
    totals->by[BY_TEST] += shown && !caught;
    totals->survive += !shown && excused;
    totals->wrong += wrong > 0 || (!shown && !excused) || (recorded && excused);
    if (recorded && excused) {
        char name[MUTANT_NAME_BYTES];
        mutant_name(mutant, name);
        fprintf(stderr, "horkos sim: %s is excused and recorded\n", name);
    } else if (!shown && !excused && hunt->options->records != NULL && !recorded) {
        char name[MUTANT_NAME_BYTES];
        mutant_name(mutant, name);
        fprintf(stderr, "horkos sim: %s is neither excused nor recorded\n", name);
    }
}

static json_t *job_json(const struct job *job)
{
    json_t *one = json_object();
    char name[MUTANT_NAME_BYTES];
    mutant_name(job->mutant, name);
    json_object_set_new(one, "rule", json_string(name));
    json_object_set_new(one, "caught", json_boolean(job->caught));
    json_object_set_new(one, "seeds", json_integer((json_int_t)job->seeds));
    json_object_set_new(one, "states", json_integer((json_int_t)job->states));
    json_object_set_new(one, "uncounted", json_integer(job->uncounted));
    if (job->caught) {
        json_object_set_new(one, "by", json_string(by_names[job->by]));
        json_object_set_new(one, "record", json_string(job->record));
        json_object_set_new(one, "end", json_string(mutant_end_names[job->outcome.end]));
        json_object_set_new(one, "how", json_string(job->outcome.how));
        if (job->by == BY_EXPLORER) {
            json_object_set_new(one, "depth", json_integer(job->outcome.depth));
        } else if (job->by == BY_SIMULATOR) {
            json_object_set_new(one, "seed", json_integer((json_int_t)job->outcome.seed));
        }
    } else if (mutant_survives(job->mutant) != NULL) {
        json_object_set_new(one, "expected_because", json_string(mutant_survives(job->mutant)));
    }
    if (job->unsound) {
        json_object_set_new(one, "unsound", json_string(job->record));
    }
    return one;
}

static void print_json(const struct hunt *hunt, const struct totals *totals)
{
    json_t *json = json_object();
    json_t *list = json_array();
    for (uint32_t i = 0; i < hunt->n; i++) {
        json_array_append_new(list, job_json(&hunt->jobs[i]));
    }
    json_object_set_new(json, "tried", list);
    json_object_set_new(json, "mutants", json_integer(totals->mutants));
    json_object_set_new(json, "caught", json_integer(totals->caught));
    json_object_set_new(json, "by_simulator", json_integer(totals->by[BY_SIMULATOR]));
    json_object_set_new(json, "by_explorer", json_integer(totals->by[BY_EXPLORER]));
    json_object_set_new(json, "by_test_alone", json_integer(totals->by[BY_TEST]));
    json_object_set_new(json, "survive", json_integer(totals->survive));
    json_object_set_new(json, "wrong", json_integer(totals->wrong));
    json_object_set_new(json, "wall_seconds",
                        json_real((double)(clock_boot_us() - hunt->started_us) / 1e6));
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    fputc('\n', stdout);
    json_decref(json);
}

static int conclude(const struct hunt *hunt)
{
    struct totals totals = {.mutants = 0};
    for (uint32_t mutant = 0; mutant < mutants_count(); mutant++) {
        if (is_wanted(hunt, mutant)) {
            add_up(hunt, mutant, &totals);
        }
    }
    if (hunt->options->json) {
        print_json(hunt, &totals);
    } else {
        printf("%" PRIu32 " mutants: %" PRIu32 " caught (%" PRIu32 " by the simulator, %" PRIu32
               " by the explorer), %" PRIu32 " shown by a test alone, %" PRIu32
               " survive as expected, %" PRIu32 " wrong, %.0f s\n",
               totals.mutants, totals.caught, totals.by[BY_SIMULATOR], totals.by[BY_EXPLORER],
               totals.by[BY_TEST], totals.survive, totals.wrong,
               (double)(clock_boot_us() - hunt->started_us) / 1e6);
    }
    return totals.wrong == 0 ? STATUS_OK : STATUS_FAILED;
}

/* One job for each record, or for each mutant. */
static void make_jobs(struct hunt *hunt, const struct mutant_trial *records, uint32_t records_n)
{
    if (records != NULL) {
        for (uint32_t i = 0; i < records_n; i++) {
            if (is_wanted(hunt, records[i].mutant)) {
                hunt->jobs[hunt->n++] =
                    (struct job){.mutant = records[i].mutant, .recorded = &records[i]};
            }
        }
        return;
    }
    for (uint32_t i = 0; i < mutants_count(); i++) {
        if (is_wanted(hunt, i)) {
            hunt->jobs[hunt->n++] = (struct job){.mutant = i};
        }
    }
}

int sim_mutants_command(const struct sim_options *options)
{
    struct hunt hunt = {.options = options, .started_us = clock_boot_us()};
    struct mutant_trial *records = NULL;
    uint32_t records_n = 0;
    int status = STATUS_OK;
    if (options->records != NULL) {
        status = mutant_records_read(options->records, &records, &records_n);
    }
    if (status != STATUS_OK) {
        return status;
    }
    size_t jobs_bytes = (mutants_count() + records_n) * sizeof *hunt.jobs;
    size_t sound_bytes = explore_count() * sizeof *hunt.sound;
    hunt.jobs = sim_share(jobs_bytes);
    hunt.sound = sim_share(sound_bytes);
    status = STATUS_FAILED;
    if (hunt.jobs == NULL || hunt.sound == NULL) {
        perror("horkos sim");
    } else {
        make_jobs(&hunt, records, records_n);
        if (run_jobs(&hunt)) {
            status = conclude(&hunt);
        }
    }
    sim_unshare(hunt.sound, sound_bytes);
    sim_unshare(hunt.jobs, jobs_bytes);
    free(records);
    return status;
}
