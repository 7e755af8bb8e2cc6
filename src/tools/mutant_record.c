#include "tools/mutant_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/mutants.h"
#include "sim/shrink.h"
#include "tools/commands.h"
#include "tools/sim_options.h"

#define LINE_BYTES 512u
#define WORDS_MAX 24u
#define RECORDS_MAX 512u
/* Configurations that are recorded without a number end within so many states. */
#define STATES_DEFAULT 300000u

/* Splits the line in place; more words than fit are an error, which 0 stands for. */
static int split(char *line, char *words[WORDS_MAX])
{
    int n = 0;
    line[strcspn(line, "#\n")] = '\0';
    for (char *rest = NULL, *word = strtok_r(line, " \t", &rest); word != NULL;
         word = strtok_r(NULL, " \t", &rest)) {
        if (n == WORDS_MAX) {
            return 0;
        }
        words[n++] = word;
    }
    return n;
}

/* The words behind "sim", as the command line of `horkos sim` takes them. */
static bool parse_sim(char *words[], int n, struct mutant_trial *trial)
{
    char *arguments[WORDS_MAX + 4] = {"sim", "--nodes", words[0], "--from", words[1]};
    struct sim_options options;
    bool help = false;
    if (n < 2) {
        return false;
    }
    memcpy(arguments + 5, words + 2, (size_t)(n - 2) * sizeof *words);
    if (sim_options_parse(n + 3, arguments, &options, &help) != STATUS_OK || help) {
        return false;
    }
    trial->sim = options.config;
    trial->from = options.from;
    trial->seeds = 1;
    return true;
}

static bool parse_explore(char *words[], int n, struct mutant_trial *trial)
{
    char *end = NULL;
    if (n < 1 || n > 2 || (trial->explore = explore_find(words[0])) == NULL) {
        return false;
    }
    trial->states_max = STATES_DEFAULT;
    if (n == 2) {
        trial->states_max = strtoull(words[1], &end, 10);
        return *end == '\0' && trial->states_max > 0;
    }
    return true;
}

static bool parse_test(char *words[], int n, struct mutant_trial *trial)
{
    if (n != 1 || strlen(words[0]) >= sizeof trial->test || strchr(words[0], '/') != NULL) {
        return false;
    }
    snprintf(trial->test, sizeof trial->test, "%s", words[0]);
    return true;
}

static bool parse(char *words[], int n, struct mutant_trial *trial)
{
    *trial = (struct mutant_trial){.mutant = mutant_find(words[0])};
    if (n < 2 || trial->mutant == mutants_count()) {
        return false;
    }
    if (strcmp(words[1], "sim") == 0) {
        return parse_sim(words + 2, n - 2, trial);
    }
    if (strcmp(words[1], "test") == 0) {
        return parse_test(words + 2, n - 2, trial) && strncmp(words[0], "flip:", 5) == 0;
    }
    return strcmp(words[1], "explore") == 0 && parse_explore(words + 2, n - 2, trial);
}

static int read_lines(FILE *file, const char *path, struct mutant_trial *trials, uint32_t *n_out)
{
    char line[LINE_BYTES];
    for (uint32_t number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        char *words[WORDS_MAX];
        bool empty = line[strspn(line, " \t")] == '#' || line[strspn(line, " \t")] == '\n';
        int n = split(line, words);
        if (empty) {
            continue;
        }
        if (n == 0 || *n_out == RECORDS_MAX || !parse(words, n, &trials[*n_out])) {
            fprintf(stderr, "horkos sim: %s:%" PRIu32 " is no record of a mutant of this build\n",
                    path, number);
            return STATUS_USAGE;
        }
        ++*n_out;
    }
    return STATUS_OK;
}

int mutant_records_read(const char *path, struct mutant_trial **trials_out, uint32_t *n_out)
{
    FILE *file = fopen(path, "r");
    *n_out = 0;
    *trials_out = calloc(RECORDS_MAX, sizeof **trials_out);
    int status = STATUS_USAGE;
    if (file == NULL || *trials_out == NULL) {
        fprintf(stderr, "horkos sim: cannot read %s\n", path);
    } else {
        status = read_lines(file, path, *trials_out, n_out);
    }
    if (file != NULL) {
        fclose(file);
    }
    if (status != STATUS_OK) {
        free(*trials_out);
        *trials_out = NULL;
    }
    return status;
}

void mutant_record_write(const struct mutant_trial *trial, const struct mutant_outcome *outcome,
                         struct text *to)
{
    char name[MUTANT_NAME_BYTES];
    mutant_name(trial->mutant, name);
    if (trial->test[0] != '\0') {
        text_add(to, "%s test %s", name, trial->test);
        return;
    }
    if (trial->explore != NULL) {
        text_add(to, "%s explore %s", name, trial->explore->name);
        if (outcome->ran > STATES_DEFAULT) {
            text_add(to, " %" PRIu64, outcome->ran + 1);
        }
        return;
    }
    struct sim_config config = trial->sim;
    text_add(to, "%s sim %" PRIu32 " %" PRIu64, name, config.nodes, outcome->seed);
    config.nodes = 0;
    shrink_options(&config, to);
}
