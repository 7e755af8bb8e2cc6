/* Runs programs of the system, such as ip and nft, for the torture. */
#ifndef HORKOS_TOOLS_TORTURE_EXEC_H
#define HORKOS_TOOLS_TORTURE_EXEC_H

#include <stdbool.h>
#include <stddef.h>

/* Runs a program to its end with `text` as its standard input, in the network namespace `namespace`
 * (a descriptor; -1: ours). False if it cannot be executed, fails, or takes longer than ten
 * seconds; then why_out says it, with the first line of what the program said. */
bool torture_exec(char *const *argv, const char *text, int namespace, char *why_out, size_t size);

#endif
