/* Looks for smaller runs that violate the same as one did. Each is run by a process of its own,
 * which may die of a failed assertion, or be caught in an endless loop. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sim/setup.h"
#include "sim/shrink.h"
#include "sim/shrink_history.h"
#include "tools/sim_runs.h"

#define RUNS_MAX 150u
#define CHECKS_MAX 4000u
#define SECONDS_MAX 20u
/* A run takes a fraction of a second. Counted in time of the processor, so that a busy machine ends
 * no run that is not in an endless loop. */
#define RUN_SECONDS_MAX 10

struct attempt {
    struct shrink_outcome *shared; /* with the process that runs */
    FILE *words;                   /* what it says on standard error */
    uint64_t ends_us;
    uint32_t lost; /* runs without a process */
};

/* The first line that a failed assertion printed. */
static void first_line(FILE *words, char *to, size_t size)
{
    rewind(words);
    if (fgets(to, (int)size, words) == NULL) {
        to[0] = '\0';
    }
    to[strcspn(to, "\n")] = '\0';
}

static void run_child(const struct attempt *attempt, const struct sim_config *config, uint64_t seed)
{
    struct sim_result result;
    struct shrink_outcome outcome;
    sim_end_with_parent();
    sim_prepare_process();
    if (dup2(fileno(attempt->words), STDERR_FILENO) < 0) {
        _exit(1);
    }
    const struct itimerval bound = {.it_value = {.tv_sec = RUN_SECONDS_MAX}};
    if (setitimer(ITIMER_PROF, &bound, NULL) != 0) {
        _exit(1);
    }
    sim_run(config, seed, &result);
    shrink_note(&result, &outcome);
    *attempt->shared = outcome;
    _exit(0);
}

/* shrink_run_fn */
static void run_apart(void *context, const struct sim_config *config, uint64_t seed,
                      struct shrink_outcome *outcome_out)
{
    struct attempt *attempt = context;
    int end = 0;
    *attempt->shared = (struct shrink_outcome){.violates = false};
    *outcome_out = *attempt->shared;
    rewind(attempt->words);
    if (ftruncate(fileno(attempt->words), 0) != 0) {
        attempt->lost++;
        return;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        run_child(attempt, config, seed);
    }
    if (child < 0 || waitpid(child, &end, 0) != child) {
        attempt->lost++;
        return;
    }
    *outcome_out = *attempt->shared;
    if (!WIFEXITED(end) || WEXITSTATUS(end) != 0) {
        struct setup setup;
        char how[60];
        char line[100];
        sim_describe_end(end, how, sizeof how);
        first_line(attempt->words, line, sizeof line);
        setup_draw(config, seed, &setup);
        outcome_out->violates = true;
        outcome_out->plan_n = setup.plan_n;
        outcome_out->drawn = setup.drawn;
        snprintf(outcome_out->rule, sizeof outcome_out->rule, "the run died: %s: %s", how, line);
    }
}

static bool is_late(void *context)
{
    const struct attempt *attempt = context;
    return clock_boot_us() > attempt->ends_us;
}

/* A run that may die is described by what it draws; any other runs once more. */
static void describe(const struct shrink *shrink, struct sim_shrunk *shrunk)
{
    if (shrink->outcome.steps == 0) {
        struct setup setup;
        text_add(&shrunk->report, "%s\n", shrink->outcome.rule);
        setup_draw(&shrink->config, shrink->seed, &setup);
        setup_print(&setup, &shrunk->report);
        return;
    }
    struct sim_result result;
    sim_run(&shrink->config, shrink->seed, &result);
    text_add(&shrunk->report, "%s", text_string(&result.report));
    sim_shrink_history(&result, shrunk);
    sim_result_deinit(&result);
}

void sim_shrink_history(struct sim_result *result, struct sim_shrunk *shrunk)
{
    if (result->refused.n > 0) {
        shrunk->history = result->refused;
        result->refused = (struct history){.n = 0};
        (void)shrink_history(&shrunk->history, CHECKS_MAX);
    }
}

bool sim_shrink(const struct sim_config *config, uint64_t seed, struct sim_shrunk *shrunk_out)
{
    struct shrink shrink;
    struct attempt attempt = {
        .shared = sim_share(sizeof *attempt.shared),
        .words = tmpfile(),
        .ends_us = clock_boot_us() + SECONDS_MAX * UINT64_C(1000000),
    };
    *shrunk_out = (struct sim_shrunk){.runs = 0};
    bool found = attempt.shared != NULL && attempt.words != NULL &&
                 shrink_run(&shrink, config, seed, run_apart, is_late, &attempt, RUNS_MAX);
    if (found) {
        shrunk_out->runs = shrink.runs;
        text_add(&shrunk_out->command, "horkos sim --replay %" PRIu64, seed);
        shrink_options(&shrink.config, &shrunk_out->command);
        describe(&shrink, shrunk_out);
    }
    if (attempt.words != NULL) {
        fclose(attempt.words);
    }
    sim_unshare(attempt.shared, sizeof *attempt.shared);
    return found;
}
