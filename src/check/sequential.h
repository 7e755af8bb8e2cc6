/* Histories of a store that is sequentially consistent by a log that is known: every update that
 * took effect has a number, and every answer names the update whose value it shows. Each session
 * reads its own prefix of the log, which only grows (docs/CHECKERS.md). Exact, and no search. */
#ifndef HORKOS_CHECK_SEQUENTIAL_H
#define HORKOS_CHECK_SEQUENTIAL_H

#include "check/history.h"

/* An operation, and what its answer named. Deadlines may be set, but none may pass during the
 * history: what expires has no operation and no number here. */
struct sequential_op {
    struct history_op h;
    uint64_t version; /* OK: of what it wrote, or of what it saw; 0: nothing was there */
    uint32_t session; /* operations of a session are in its order in the array */
    bool perhaps;     /* a READ that may have been an update: it left the value that it shows */
};

struct sequential_history {
    struct sequential_op *ops;
    size_t n;
};

/* CHECK_REFUSED unless there is an order of the updates and, for each session, a way through it
 * that explains every answer. */
enum check_result check_sequential(const struct sequential_history *history,
                                   struct check_report *report);

#endif
