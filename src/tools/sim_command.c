/* `horkos sim`: see sim_options.c for its command line. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sim/report.h"
#include "sim/shrink.h"
#include "tools/commands.h"
#include "tools/sim_runs.h"

void *sim_share(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void sim_unshare(void *at, size_t bytes)
{
    if (at != NULL) {
        munmap(at, bytes);
    }
}

void sim_prepare_process(void)
{
    /* Each process of a run starts with empty stores; clearing huge pages for them would take a
     * good part of the time. */
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

void sim_end_with_parent(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

void sim_describe_end(int wait_status, char *to, size_t size)
{
    if (WIFSIGNALED(wait_status)) {
        snprintf(to, size, "%s", strsignal(WTERMSIG(wait_status)));
    } else {
        snprintf(to, size, "exit status %d", WEXITSTATUS(wait_status));
    }
}

static void show_progress(const struct sim_report *report, const struct sim_options *options,
                          uint64_t *shown_us)
{
    uint64_t now_us = clock_boot_us();
    if (!options->progress || now_us - *shown_us < 200000) {
        return;
    }
    *shown_us = now_us;
    fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " seeds, %" PRIu64 " violations ", report->seeds,
            options->seeds, report->verdicts[SIM_VIOLATION]);
}

static void print_report(const struct sim_report *report, const struct sim_options *options,
                         uint64_t started_us)
{
    double seconds = (double)(clock_boot_us() - started_us) / 1e6;
    if (options->progress) {
        fprintf(stderr, "\r%60s\r", "");
    }
    if (options->json) {
        sim_report_json(report, seconds, stdout);
    } else {
        sim_report_text(report, seconds, stdout);
    }
    fflush(stdout);
}

/* Shrinking takes its time: it is for the first findings. */
#define SHRUNK_MAX 3u
/* One seed of so many runs twice. */
#define TWICE_EVERY 1000u

static void shrink_last(const struct sim_options *options, uint64_t seed, struct sim_report *report)
{
    struct sim_shrunk shrunk;
    if (options->shrink && report->verdicts[SIM_VIOLATION] <= SHRUNK_MAX &&
        sim_shrink(&options->config, seed, &shrunk)) {
        sim_report_add_shrunk(report, &shrunk);
    }
}

/* Nothing but the seed may decide what happens. */
static void run_again(const struct sim_options *options, uint64_t seed, uint64_t hash,
                      struct sim_report *report)
{
    struct sim_config config = options->config;
    struct sim_result result;
    config.waver = options->waver;
    sim_run(&config, seed, &result);
    sim_report_add_twice(report, seed, result.hash == hash);
    sim_result_deinit(&result);
}

static int run_seeds(const struct sim_options *options, struct sim_watch *watch,
                     uint64_t started_us)
{
    struct sim_report report;
    uint64_t shown_us = started_us;
    sim_report_init(&report, &options->config, options->from);
    for (uint64_t seed = options->from; seed < options->from + options->seeds; seed++) {
        struct sim_result result;
        watch->seed = seed;
        sim_run(&options->config, seed, &result);
        sim_report_add(&report, seed, &result);
        if (result.verdict == SIM_VIOLATION) {
            shrink_last(options, seed, &report);
        }
        if (seed % TWICE_EVERY == 0) {
            run_again(options, seed, result.hash, &report);
        }
        sim_result_deinit(&result);
        show_progress(&report, options, &shown_us);
    }
    print_report(&report, options, started_us);
    int status = sim_report_sound(&report) ? STATUS_OK : STATUS_FAILED;
    sim_report_deinit(&report);
    watch->done = true;
    return status;
}

/* The runs happen in a child; if it dies, its parent still knows the seed. */
static int run_watched(const struct sim_options *options)
{
    uint64_t started_us = clock_boot_us();
    struct sim_watch *watch = sim_share(sizeof *watch);
    pid_t child = watch == NULL ? -1 : fork();
    if (child == 0) {
        sim_end_with_parent();
        sim_prepare_process();
        _exit(run_seeds(options, watch, started_us));
    }
    int end = 0;
    if (child < 0 || waitpid(child, &end, 0) != child) {
        perror("horkos sim");
        return STATUS_FAILED;
    }
    int status = WIFEXITED(end) ? WEXITSTATUS(end) : STATUS_FAILED;
    if (!watch->done) {
        char how[80];
        struct sim_report report;
        sim_describe_end(end, how, sizeof how);
        sim_report_init(&report, &options->config, options->from);
        report.seeds = watch->seed - options->from;
        sim_report_add_death(&report, watch->seed, how);
        shrink_last(options, watch->seed, &report);
        print_report(&report, options, started_us);
        sim_report_deinit(&report);
        status = STATUS_FAILED;
    }
    sim_unshare(watch, sizeof *watch);
    return status;
}

/* In this very process, so that a debugger finds everything where it expects it. */
static int replay(const struct sim_options *options)
{
    struct sim_result result;
    if (options->config.trace != NULL) {
        /* What was traced before an assertion fails must not be lost. */
        setvbuf(stdout, NULL, _IOLBF, 1 << 16);
    }
    uint64_t started_us = clock_boot_us();
    sim_run(&options->config, options->from, &result);
    if (options->config.trace == NULL && !options->json) {
        fputs(text_string(&result.plan), stdout);
    }
    struct sim_report report;
    sim_report_init(&report, &options->config, options->from);
    sim_report_add(&report, options->from, &result);
    if (result.refused.n > 0 && options->shrink) {
        struct sim_shrunk shrunk = {.runs = 1};
        text_add(&shrunk.command, "horkos sim --replay %" PRIu64, options->from);
        shrink_options(&options->config, &shrunk.command);
        sim_shrink_history(&result, &shrunk);
        sim_report_add_shrunk(&report, &shrunk);
    }
    if (options->config.trace != NULL) {
        /* The same bytes each time: nothing of the real clock. */
        printf("%s, hash %016" PRIx64 "\n%s", sim_verdict_names[result.verdict], result.hash,
               text_string(&result.report));
    } else {
        print_report(&report, options, started_us);
    }
    int status = sim_report_sound(&report) ? STATUS_OK : STATUS_FAILED;
    sim_report_deinit(&report);
    sim_result_deinit(&result);
    return status;
}

int sim_command(int argc, char **argv)
{
    struct sim_options options;
    bool help = false;
    int status = sim_options_parse(argc, argv, &options, &help);
    if (status != STATUS_OK || help) {
        return status;
    }
    if (options.all_mutants) {
        return sim_mutants_command(&options);
    }
    return options.replay ? replay(&options) : run_watched(&options);
}
