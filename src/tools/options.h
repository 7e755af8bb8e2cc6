/* What the commands' command lines have in common: numbers with bounds, and a clear word about an
 * option that does not exist. */
#ifndef HORKOS_TOOLS_OPTIONS_H
#define HORKOS_TOOLS_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

/* Reads a decimal number from low to high; false after an error, which was printed. */
bool options_number(const char *command, const char *option, const char *text, uint64_t low,
                    uint64_t high, uint64_t *number_out);

/* The next option for getopt_long, whose messages stay off: `?` and `:` are left to
 * options_complain. `short_options` as getopt has them, ":" in front. Before the first call for a
 * command line the caller sets optind to 0. */
int options_next(int argc, char **argv, const char *short_options, const struct option *options);

/* Prints what is wrong with the option that options_next has just returned `?` or `:` for, with the
 * option that was probably meant. */
void options_complain(const char *command, int id, char **argv, const struct option *options);

/* The name that differs least from the given one, or NULL if all differ too much. */
const char *options_nearest(const char *name, const struct option *options);

/* The same for 32 bits, and for a number with a fraction (digits, a point, an exponent). */
bool options_u32(const char *command, const char *option, const char *text, uint32_t low,
                 uint32_t high, uint32_t *number_out);
bool options_real(const char *command, const char *option, const char *text, double low,
                  double high, double *number_out);

#define PASSWORD_MAX 512u
/* The first line of a file; false after an error, which was printed. */
bool options_password(const char *command, const char *path, char password_out[PASSWORD_MAX]);

#endif
