#include "tools/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_COMPARED 32u
/* Two slips of the finger are forgiven. */
#define DISTANCE_MAX 2u

bool options_number(const char *command, const char *option, const char *text, uint64_t low,
                    uint64_t high, uint64_t *number_out)
{
    char *end = NULL;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    /* strtoull would take blanks and signs. */
    if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || number < low ||
        number > high) {
        fprintf(stderr,
                "horkos %s: %s needs a number from %" PRIu64 " to %" PRIu64 ", not \"%s\"\n",
                command, option, low, high, text);
        return false;
    }
    *number_out = number;
    return true;
}

int options_next(int argc, char **argv, const char *short_options, const struct option *options)
{
    opterr = 0;
    return getopt_long(argc, argv, short_options, options, NULL);
}

static uint32_t smallest(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Levenshtein's distance: insertions, deletions and replacements that make one word the other. */
static uint32_t distance(const char *a, uint32_t a_n, const char *b, uint32_t b_n)
{
    uint32_t row[NAME_MAX_COMPARED + 1];
    for (uint32_t j = 0; j <= b_n; j++) {
        row[j] = j;
    }
    for (uint32_t i = 1; i <= a_n; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (uint32_t j = 1; j <= b_n; j++) {
            uint32_t above = row[j];
            row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_n];
}

const char *options_nearest(const char *name, const struct option *options)
{
    const char *best = NULL;
    uint32_t best_distance = DISTANCE_MAX + 1;
    uint32_t n = (uint32_t)strcspn(name, "=");
    if (n > NAME_MAX_COMPARED) {
        return NULL;
    }
    for (const struct option *o = options; o->name != NULL; o++) {
        uint32_t length = (uint32_t)strlen(o->name);
        if (length > NAME_MAX_COMPARED) {
            continue;
        }
        uint32_t found = distance(name, n, o->name, length);
        if (found < best_distance) {
            best_distance = found;
            best = o->name;
        }
    }
    return best;
}

void options_complain(const char *command, int id, char **argv, const struct option *options)
{
    /* A short option in the middle of a word leaves optind at that word. */
    const char *word = optopt != 0 && optopt < 256 ? NULL : argv[optind - 1];
    if (id == ':') {
        fprintf(stderr, "horkos %s: %s needs a value; see horkos %s --help\n", command,
                argv[optind - 1], command);
        return;
    }
    if (word == NULL) {
        fprintf(stderr, "horkos %s: there is no option -%c; see horkos %s --help\n", command,
                optopt, command);
        return;
    }
    if (optopt != 0) {
        fprintf(stderr, "horkos %s: %.*s takes no value; see horkos %s --help\n", command,
                (int)strcspn(word, "="), word, command);
        return;
    }
    const char *nearest = options_nearest(word + 2, options);
    fprintf(stderr, "horkos %s: there is no option %.*s", command, (int)strcspn(word, "="), word);
    if (nearest != NULL) {
        fprintf(stderr, " (--%s?)", nearest);
    }
    fprintf(stderr, "; see horkos %s --help\n", command);
}

bool options_u32(const char *command, const char *option, const char *text, uint32_t low,
                 uint32_t high, uint32_t *number_out)
{
    uint64_t number = 0;
    if (!options_number(command, option, text, low, high, &number)) {
        return false;
    }
    *number_out = (uint32_t)number;
    return true;
}

bool options_real(const char *command, const char *option, const char *text, double low,
                  double high, double *number_out)
{
    char *end = NULL;
    double number = strtod(text, &end);
    /* strtod would take blanks, signs, hexadecimal numbers and words. */
    if (*text == '\0' || strspn(text, "0123456789.e") != strlen(text) || *end != '\0' ||
        !(number >= low && number <= high)) {
        fprintf(stderr, "horkos %s: %s needs a number from %g to %g, not \"%s\"\n", command, option,
                low, high, text);
        return false;
    }
    *number_out = number;
    return true;
}

bool options_password(const char *command, const char *path, char password_out[PASSWORD_MAX])
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "horkos %s: %s: %s\n", command, path, strerror(errno));
        return false;
    }
    bool read = fgets(password_out, PASSWORD_MAX, file) != NULL;
    bool whole = read && (strchr(password_out, '\n') != NULL || feof(file));
    fclose(file);
    password_out[read ? strcspn(password_out, "\r\n") : 0] = '\0';
    if (!whole || password_out[0] == '\0') {
        fprintf(stderr, "horkos %s: %s: its first line is no password of 1 to %u bytes\n", command,
                path, PASSWORD_MAX - 2);
        return false;
    }
    return true;
}
