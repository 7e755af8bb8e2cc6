/* Prints the key machine's table (engine/hermes/table.h) for docs/protocols/hermes.md. */
#ifndef HORKOS_TESTS_SUPPORT_HERMES_PRINT_H
#define HORKOS_TESTS_SUPPORT_HERMES_PRINT_H

#include <stdio.h>

#define HERMES_PRINT_BEGIN "<!-- table: begin -->"
#define HERMES_PRINT_END "<!-- table: end -->"

/* Both marks included. */
void hermes_print_table(FILE *out);

#endif
