/* Decides whether the operations of one key are linearizable: is there one order of them, in
 * which no operation comes after one that began when it had already returned, that explains every
 * answer? */
#ifndef HORKOS_CHECK_SEARCH_H
#define HORKOS_CHECK_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "check/history.h"

/* ops are the n operations of one key, in any order. Adds the states visited to report->states;
 * sets key and text unless the result is CHECK_ACCEPTED. */
enum check_result search_key(const struct history_op *const *ops, size_t n, uint64_t states_max,
                             struct check_report *report);

#endif
