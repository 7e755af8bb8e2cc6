#include "tools/mutant_trial.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/flips.h"
#include "sim/mutants.h"
#include "tools/commands.h"
#include "tools/sim_runs.h"

/* Processor time. A run takes a fraction of a second, a search a minute at most. */
#define SEED_SECONDS_MAX 10
#define SEARCH_SECONDS_MAX 240
/* So many runs may show nothing before no more are tried. */
#define UNCOUNTED_MAX 10u

const char *const mutant_end_names[MUTANT_ENDS] = {
    [MUTANT_MISSED] = "missed",       [MUTANT_HISTORY] = "history",
    [MUTANT_INVARIANT] = "invariant", [MUTANT_ASSERTION] = "assertion",
    [MUTANT_LIVENESS] = "liveness",   [MUTANT_LOOP] = "endless loop",
    [MUTANT_TEST] = "test",           [MUTANT_CRASH] = "crash",
};

bool mutant_noticed(enum mutant_end end)
{
    return end != MUTANT_MISSED && end != MUTANT_CRASH;
}

/* Beyond the number of tests in a program: it could not be run. */
#define STATUS_NO_TEST 126

/* What the process that runs tells the one that waits. */
struct shared {
    struct mutant_outcome outcome;
    uint64_t next; /* seed */
    bool done;
};

/* ---- In the process that runs ---- */

static void bound(int seconds)
{
    struct itimerval timer = {.it_value = {.tv_sec = seconds}};
    (void)setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Whether this is about a promise of progress. */
static bool is_progress(const char *violated)
{
    static const char *const progress[] = {
        /* the simulator's words */
        "faults ended",
        "all was well",
        "node %u leaves an operation unanswered",
        "node %u worker %u runs in circles",
        "more than %u polls",
        /* the explorer's */
        "nothing can happen any more",
        "nobody is dropped, for ever",
    };
    for (size_t i = 0; i < sizeof progress / sizeof progress[0]; i++) {
        if (begins(violated, progress[i])) {
            return true;
        }
    }
    return false;
}

static enum mutant_end end_of(const struct sim_result *result)
{
    if (result->refused.n > 0) {
        return MUTANT_HISTORY;
    }
    return is_progress(result->rule) ? MUTANT_LIVENESS : MUTANT_INVARIANT;
}

/* The report's first line that is a sentence about what is wrong, without its prefix. */
static void say_how(const struct sim_result *result, char how[MUTANT_HOW_BYTES])
{
    const char *text = text_string(&result->report);
    snprintf(how, MUTANT_HOW_BYTES, "%.*s", (int)strcspn(text, "\n"), text);
}

static void run_seeds(const struct mutant_trial *trial, struct shared *shared)
{
    struct mutant_outcome *outcome = &shared->outcome;
    struct sim_config config = trial->sim;
    if (trial->mutant < mutants_count()) {
        mutant_switch_off(trial->mutant, &config);
    }
    while (shared->next < trial->from + trial->seeds) {
        struct sim_result result;
        outcome->seed = shared->next++;
        bound(SEED_SECONDS_MAX);
        sim_run(&config, outcome->seed, &result);
        outcome->ran++;
        outcome->stranded += result.verdict != SIM_SOUND && result.verdict != SIM_VIOLATION;
        if (result.verdict == SIM_VIOLATION) {
            outcome->end = end_of(&result);
            say_how(&result, outcome->how);
        }
        sim_result_deinit(&result);
        if (outcome->end != MUTANT_MISSED) {
            break;
        }
    }
}

static void search(const struct mutant_trial *trial, struct shared *shared)
{
    struct mutant_outcome *outcome = &shared->outcome;
    enum explore_family family = trial->explore->family;
    struct sim_config off = {.nodes = 0, .engine = explore_engine(family)};
    struct search_result result;
    if (trial->mutant < mutants_count()) {
        mutant_switch_off(trial->mutant, &off);
    }
    struct explore_request request = {
        .rules_off = explore_rules(family, off.engine_rules_off, off.view_rules_off),
        /* The code as it is goes through the very same model. */
        .altered = true,
        .bounds = {.states_max = trial->states_max},
    };
#ifdef HK_MUTANTS
    hk_flips_on = off.flips_on;
#endif
    bound(SEARCH_SECONDS_MAX);
    explore_run(trial->explore, &request, &result);
    outcome->ran = result.states;
    outcome->depth = result.depth + 1;
    if (result.end == SEARCH_VIOLATION) {
        outcome->end = is_progress(result.broken) ? MUTANT_LIVENESS : MUTANT_INVARIANT;
        snprintf(outcome->how, sizeof outcome->how, "%s", result.broken);
    }
    search_result_deinit(&result);
}

/* Programs of tests flip what the environment names (scripts/flips), and lie beside this one. */
static _Noreturn void run_test(const struct mutant_trial *trial)
{
    char name[MUTANT_NAME_BYTES];
    char path[512];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof trial->test - 8);
    if (n > 0) {
        path[n] = '\0';
        snprintf(strrchr(path, '/'), sizeof trial->test + 8, "/tests/%s", trial->test);
        if (trial->mutant < mutants_count()) {
            mutant_name(trial->mutant, name);
            (void)setenv("HORKOS_FLIP", strchr(name, ':') + 1, 1);
        }
        execl(path, path, (char *)NULL);
    }
    _exit(STATUS_NO_TEST);
}

static _Noreturn void run_child(const struct mutant_trial *trial, struct shared *shared,
                                FILE *words)
{
    if (dup2(fileno(words), STDERR_FILENO) < 0) {
        _exit(STATUS_FAILED);
    }
    sim_end_with_parent();
    sim_prepare_process();
    if (trial->test[0] != '\0') {
        (void)dup2(fileno(words), STDOUT_FILENO);
        run_test(trial);
    } else if (trial->explore != NULL) {
        search(trial, shared);
    } else {
        run_seeds(trial, shared);
    }
    shared->done = true;
    _exit(STATUS_OK);
}

/* ---- In the process that waits ---- */

/* Whether the file that an assertion names belongs to what checks, not to what is checked. The
 * path may lead to the source tree, or begin with the folder. */
static bool checks(const char *line)
{
    static const char *const folders[] = {"sim/", "explore/", "check/", "tools/"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char inside[32];
        snprintf(inside, sizeof inside, "src/%s", folders[i]);
        if (strstr(line, inside) != NULL || begins(line, folders[i])) {
            return true;
        }
    }
    return false;
}

/* cmocka's programs exit with the number of tests that failed, and name them. A signal is a failure
 * for cmocka, but shows nothing. */
static void note_test(int wait_status, FILE *words, struct mutant_outcome *outcome)
{
    char line[MUTANT_HOW_BYTES];
    int status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : STATUS_NO_TEST;
    outcome->end = status == 0               ? MUTANT_MISSED
                   : status < STATUS_NO_TEST ? MUTANT_TEST
                                             : MUTANT_CRASH;
    snprintf(outcome->how, sizeof outcome->how, "%s", status == STATUS_NO_TEST ? "no test" : "");
    rewind(words);
    while (fgets(line, sizeof line, words) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strstr(line, "Test failed with exception") != NULL) {
            outcome->end = MUTANT_CRASH;
        }
        if (begins(line, "[  FAILED  ]") && outcome->how[0] == '\0') {
            snprintf(outcome->how, sizeof outcome->how, "%s", line + strlen("[  FAILED  ] "));
        }
    }
}

static void note_death(int wait_status, FILE *words, struct mutant_outcome *outcome)
{
    static const char failed[] = "horkos: assertion failed at ";
    char line[MUTANT_HOW_BYTES] = "";
    rewind(words);
    if (fgets(line, sizeof line, words) == NULL) {
        line[0] = '\0';
    }
    line[strcspn(line, "\n")] = '\0';
    if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGABRT && begins(line, failed)) {
        const char *at = line + sizeof failed - 1;
        outcome->end = checks(at) ? MUTANT_CRASH : MUTANT_ASSERTION;
        const char *name = strstr(at, "src/");
        snprintf(outcome->how, sizeof outcome->how, "%s", name == NULL ? at : name + 4);
        return;
    }
    bool alarmed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGVTALRM;
    outcome->end = alarmed ? MUTANT_LOOP : MUTANT_CRASH;
    sim_describe_end(wait_status, outcome->how, sizeof outcome->how);
}

/* Once, until it comes to an end or dies. */
static bool run_apart(const struct mutant_trial *trial, struct shared *shared, FILE *words)
{
    int end = 0;
    rewind(words);
    if (ftruncate(fileno(words), 0) != 0) {
        return false;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        run_child(trial, shared, words);
    }
    if (child < 0 || waitpid(child, &end, 0) != child) {
        return false;
    }
    if (trial->test[0] != '\0') {
        note_test(end, words, &shared->outcome);
    } else if (!shared->done) {
        note_death(end, words, &shared->outcome);
    }
    return true;
}

bool mutant_try(const struct mutant_trial *trial, struct mutant_outcome *outcome_out)
{
    struct shared *shared = sim_share(sizeof *shared);
    FILE *words = tmpfile();
    bool good = shared != NULL && words != NULL;
    if (good) {
        struct mutant_outcome *outcome = &shared->outcome;
        shared->next = trial->from;
        for (;;) {
            good = run_apart(trial, shared, words);
            if (!good || outcome->end == MUTANT_MISSED || mutant_noticed(outcome->end)) {
                break;
            }
            outcome->uncounted++;
            if (trial->test[0] != '\0' || trial->explore != NULL ||
                outcome->uncounted == UNCOUNTED_MAX || shared->next == trial->from + trial->seeds) {
                break;
            }
            outcome->end = MUTANT_MISSED;
        }
        *outcome_out = *outcome;
    }
    if (!good) {
        perror("horkos sim");
    }
    if (words != NULL) {
        fclose(words);
    }
    sim_unshare(shared, sizeof *shared);
    return good;
}
