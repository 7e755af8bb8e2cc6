/* `horkos explore`: see explore_options.c for its command line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/flips.h"
#include "tools/commands.h"
#include "tools/explore_options.h"

static char *bounds_text(const struct explore_config *config)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    if (to != NULL) {
        config->print(config, to);
        fclose(to);
    }
    return text;
}

static void list_configs(void)
{
    for (uint32_t i = 0; i < explore_count(); i++) {
        const struct explore_config *config = explore_at(i);
        char *bounds = bounds_text(config);
        printf("%-20s %-11s %-5s %s\n%39s%s\n", config->name, explore_family_names[config->family],
               config->fast ? "fast" : "long", config->what, "", bounds == NULL ? "" : bounds);
        free(bounds);
    }
}

static void show_progress(const struct search_result *so_far, void *context)
{
    const struct explore_config *config = context;
    fprintf(stderr, "\r%s: %" PRIu64 " states, depth %u, %" PRIu64 " to expand, %.0f s   ",
            config->name, so_far->states, so_far->depth, so_far->frontier, so_far->seconds);
}

static json_t *trace_lines(const char *trace)
{
    json_t *lines = json_array();
    for (const char *line = trace; line != NULL && *line != '\0';) {
        size_t n = strcspn(line, "\n");
        json_array_append_new(lines, json_stringn(line, n));
        line += n + (line[n] == '\n');
    }
    return lines;
}

static void add_json(json_t *list, const struct explore_config *config,
                     const struct search_result *result)
{
    json_t *one = json_object();
    char *bounds = bounds_text(config);
    json_object_set_new(one, "config", json_string(config->name));
    json_object_set_new(one, "family", json_string(explore_family_names[config->family]));
    json_object_set_new(one, "bounds", json_string(bounds == NULL ? "" : bounds));
    json_object_set_new(one, "end", json_string(search_end_names[result->end]));
    json_object_set_new(one, "states", json_integer((json_int_t)result->states));
    json_object_set_new(one, "steps", json_integer((json_int_t)result->steps));
    json_object_set_new(one, "finished", json_integer((json_int_t)result->finished));
    json_object_set_new(one, "frontier", json_integer((json_int_t)result->frontier));
    json_object_set_new(one, "depth", json_integer(result->depth));
    json_object_set_new(one, "seconds", json_real(result->seconds));
    if (result->end == SEARCH_VIOLATION) {
        json_object_set_new(one, "broken", json_string(result->broken));
        json_object_set_new(one, "trace", trace_lines(result->trace));
    }
    json_array_append_new(list, one);
    free(bounds);
}

static void print_result(const struct explore_config *config, const struct search_result *result)
{
    char *bounds = bounds_text(config);
    printf("%-20s %-9s %9" PRIu64 " states %10" PRIu64 " steps  depth %3u %7.1f s  %s\n",
           config->name, search_end_names[result->end], result->states, result->steps,
           result->depth, result->seconds, bounds == NULL ? "" : bounds);
    if (result->trace != NULL) {
        fputs(result->trace, stdout);
    }
    fflush(stdout);
    free(bounds);
}

struct totals {
    uint32_t violations;
    uint32_t bounds;
};

static void run_one(const struct explore_options *options, const struct explore_config *config,
                    json_t *list, struct totals *totals)
{
    struct search_result result;
    struct explore_request request = {.rules_off = options->rules_off[config->family],
                                      .altered = options->flips_on != 0,
                                      .bounds = options->bounds,
                                      .progress = options->progress ? show_progress : NULL,
                                      .context = (void *)(uintptr_t)config};
    explore_run(config, &request, &result);
    if (options->progress) {
        fprintf(stderr, "\r%79s\r", "");
    }
    if (list != NULL) {
        add_json(list, config, &result);
    } else {
        print_result(config, &result);
    }
    totals->violations += result.end == SEARCH_VIOLATION;
    totals->bounds += result.end == SEARCH_BOUND || result.end == SEARCH_NOMEM;
    search_result_deinit(&result);
}

static int run_wanted(const struct explore_options *options)
{
    struct totals totals = {.violations = 0};
    json_t *list = options->json ? json_array() : NULL;
    for (uint32_t i = 0; i < explore_count(); i++) {
        if (explore_options_want(options, explore_at(i))) {
            run_one(options, explore_at(i), list, &totals);
        }
    }
    if (list != NULL) {
        json_t *json = json_object();
        json_object_set_new(json, "configs", list);
        json_object_set_new(json, "violations", json_integer(totals.violations));
        json_object_set_new(json, "bounds_reached", json_integer(totals.bounds));
        json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        fputc('\n', stdout);
        json_decref(json);
    }
    if (totals.violations > 0) {
        return STATUS_FAILED;
    }
    return totals.bounds > 0 ? STATUS_BOUND : STATUS_OK;
}

int explore_command(int argc, char **argv)
{
    struct explore_options options;
    bool help = false;
    int status = explore_options_parse(argc, argv, &options, &help);
    if (status != STATUS_OK || help) {
        return status;
    }
    if (options.list) {
        list_configs();
        return STATUS_OK;
    }
    if (options.all_mutants) {
        return explore_mutants_command(&options);
    }
#ifdef HK_MUTANTS
    hk_flips_on = options.flips_on;
#endif
    return run_wanted(&options);
}
