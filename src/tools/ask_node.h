/* What the commands that give a node an order have in common: asking first, and giving it. Their
 * messages begin with "horkos NAME: ". */
#ifndef HORKOS_TOOLS_ASK_NODE_H
#define HORKOS_TOOLS_ASK_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "tools/node_report.h"

#define ASK_ANSWER_MS 5000u

/* STATUS_OK: go on; STATUS_FAILED: the answer was no; STATUS_USAGE: nobody is there to be asked. */
int ask_confirm(const char *name, bool yes);

/* Prints why a node cannot be asked. STATUS_USAGE. */
int ask_unreachable(const char *name, enum node_report_result result, const char *why);

/* Gives an order of n words: STATUS_OK when the node took it, or after the error was printed
 * STATUS_FAILED, or STATUS_USAGE if the node was not reached. */
int ask_order(const char *name, const struct node_address *address, uint32_t n,
              const struct bytes *args);

#endif
