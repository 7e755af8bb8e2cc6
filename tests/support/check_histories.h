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

/* The operation with a deadline that may have been reached from not_before_us on. */
struct history_op op_until(struct history_op op, uint64_t deadline, uint64_t not_before_us);

/* What a key holds: deadline 0 is none, and an absent key has none. */
struct reg {
    int64_t value;
    uint64_t deadline;
};

/* Runs the operation against what a key holds, fills in out and ok, and deadline if it is a TTL;
 * returns what it holds afterwards. An ADD that does not fit changes nothing and has out ABSENT. An
 * RMW has an effect if the value is the expected one, and ok then. */
struct reg register_apply(struct history_op *op, struct reg before);

/* Tries every order of every choice of the unknown operations and of expiries, of at most 16
 * operations. */
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
    uint32_t deadline_ppm; /* how many of those that can set a deadline do; needed for EXPIRE */
};

/* Operations against a real register, each at a random moment between its begin and end: certainly
 * linearizable. ops has room for generate->ops; they come in order of effect. */
void generate_history(struct random *r, const struct generate *g, struct history_op *ops);

/* Changes an answer, an input, a time or a deadline of one operation; the result may well be
 * linearizable. */
void corrupt_history(struct random *r, const struct generate *g, struct history *history);

#endif
