/* Histories to check: short ways to write one down, random ones, and a judge that knows nothing of
 * the checkers. */
#ifndef HORKOS_TEST_CHECK_HISTORIES_H
#define HORKOS_TEST_CHECK_HISTORIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "check/history.h"

#define ABSENT HISTORY_ABSENT

struct history_op op_of(enum history_kind kind, uint64_t begin_us, uint64_t end_us, int64_t in,
                        int64_t expected, int64_t out, bool ok);
/* Of client 1, key 1; begin and end come first, the answer last. */
struct history_op op_read(uint64_t begin_us, uint64_t end_us, int64_t out);
struct history_op op_write(uint64_t begin_us, uint64_t end_us, int64_t in);
struct history_op op_delete(uint64_t begin_us, uint64_t end_us);
struct history_op op_delete_if(uint64_t begin_us, uint64_t end_us, int64_t expected, bool ok);
struct history_op op_set_if(uint64_t begin_us, uint64_t end_us, int64_t expected, int64_t in,
                            bool ok);
struct history_op op_set_absent(uint64_t begin_us, uint64_t end_us, int64_t in, bool ok);
struct history_op op_add(uint64_t begin_us, uint64_t end_us, int64_t in, int64_t out);
struct history_op op_getset(uint64_t begin_us, uint64_t end_us, int64_t in, int64_t out);
/* The same operation with its answer lost, or certainly without effect. */
struct history_op op_unknown(struct history_op op);
struct history_op op_failed(struct history_op op);
struct history_op op_of_key(struct history_op op, uint64_t key);

/* Runs the operation against a value, fills in out and ok; returns the value afterwards. An ADD
 * that does not fit changes nothing and has out ABSENT. */
int64_t register_apply(struct history_op *op, int64_t value);

/* Tries every order of every choice of the unknown operations, of at most 16 operations. */
bool brute_accepts(const struct history *history);

struct generate {
    uint32_t ops;
    uint32_t clients; /* each has one operation at a time, unless one's answer is lost */
    uint32_t keys;
    int64_t values;     /* inputs are below this; 0: every input is a value of its own */
    int64_t value_gap;  /* values other than the deltas of ADD are multiples of it; 0 is 1 */
    uint32_t kinds;     /* bit i stands for kind i */
    uint32_t length_us; /* operations take up to this long, and clients pause as long */
    uint32_t unknown_ppm;
    uint32_t failed_ppm;
};

/* Operations against a real register, each at a random moment between its begin and end: certainly
 * linearizable. ops has room for generate->ops; they come in order of effect. */
void generate_history(struct random *r, const struct generate *g, struct history_op *ops);

/* Changes an answer, an input or a time of one operation; the result may well be linearizable. */
void corrupt_history(struct random *r, const struct generate *g, struct history *history);

#endif
