/* Linearizability is local (Herlihy and Wing 1990, theorem 1): a history is linearizable if the
 * operations of each key alone are. */
#include "check/history.h"

#include <stdlib.h>

#include "check/report.h"
#include "check/search.h"

static int compare_keys(const void *left, const void *right)
{
    const struct history_op *a = *(const struct history_op *const *)left;
    const struct history_op *b = *(const struct history_op *const *)right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return (a > b) - (a < b);
}

enum check_result check_linearizable(const struct history *history, uint64_t states_max,
                                     struct check_report *report)
{
    report_clear(report);
    const struct history_op **ops = calloc(history->n + 1, sizeof *ops);
    if (ops == NULL) {
        return CHECK_NOMEM;
    }
    for (size_t i = 0; i < history->n; i++) {
        ops[i] = &history->ops[i];
    }
    qsort(ops, history->n, sizeof *ops, compare_keys);

    /* One key refused is the answer; a key too hard is one only if no other is refused. */
    enum check_result result = CHECK_ACCEPTED;
    struct check_report key_report;
    for (size_t first = 0, end; first < history->n && result != CHECK_REFUSED; first = end) {
        for (end = first; end < history->n && ops[end]->key == ops[first]->key;) {
            end++;
        }
        report_clear(&key_report);
        enum check_result key_result =
            search_key(ops + first, end - first, states_max, &key_report);
        key_report.states += report->states;
        report->states = key_report.states;
        if (key_result == CHECK_REFUSED ||
            (key_result != CHECK_ACCEPTED && result == CHECK_ACCEPTED)) {
            *report = key_report;
            result = key_result;
        }
    }
    free(ops);
    return result;
}
