/* A connection of resp with everything that it needs around it: a host that can be bent by the
 * test, and spaces of keys on which its operations are evaluated by op_evaluate, and in one of them
 * its transactions by txn_evaluate. */
#ifndef HORKOS_TESTS_SUPPORT_RESP_RIG_H
#define HORKOS_TESTS_SUPPORT_RESP_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "engine/op.h"
#include "engine/txn.h"
#include "resp/conn.h"
#include "resp/host.h"

#define RIG_SPACES 4u
#define RIG_ZEUS 3u /* the space that has transactions; if the rig is `ordered`, ranges too */
#define RIG_PLACES 8u
#define RIG_WALL_MS INT64_C(1700000000000)

struct rig_key {
    struct bytes key;
    struct op_state state; /* absent: a tombstone, so that walks stay in step */
    uint64_t version;      /* of the state; 0: absent */
};

struct rig_space {
    struct rig_key *keys;
    uint32_t n, capacity;
};

/* An operation that was handed out and is not answered. */
struct rig_op {
    struct op op;           /* with bytes of its own */
    struct op seen;         /* as it was handed out: its bytes must stand until the next feed */
    struct txn_request txn; /* the same of a transaction, with memory of its own */
    const struct txn_request *seen_txn; /* NULL: it is none */
    uint64_t feeds;
};

struct rig {
    struct resp_host host; /* context is the rig; the test may replace any callback */
    struct resp_limits limits;
    struct resp_conn *conn;
    struct rig_space spaces[RIG_SPACES];
    uint64_t now_us, wall_us, random;
    bool awake;            /* rig_run waits for no deadline */
    bool updates;          /* given to resp_conn_next */
    bool ordered;          /* space RIG_ZEUS is one of engine lotus */
    uint64_t place_number; /* of the last place that was kept; the newest RIG_PLACES are found */
    struct bytes places[RIG_PLACES];
    int serving;          /* answered by the host */
    const char *password; /* NULL: none is required */
    uint32_t replicas;
    uint32_t value_max; /* larger values are refused with HK_ERR_TOOBIG */
    uint64_t versions;  /* that were given to keys */

    uint64_t fail_at; /* the operation with this number, counted from 1, fails; 0: none */
    int fail_with;
    uint64_t handed_out, answered, feeds;
    struct rig_op ops[RESP_IN_FLIGHT_MAX];
    uint32_t ops_at, ops_n;

    enum resp_next last; /* what resp_conn_next said */
    uint8_t *output;     /* bytes that have left; a zero byte follows them */
    uint32_t output_n, output_capacity;
};

/* Makes host and connection. Both ends of it in cmocka's terms: failures end the test. */
void rig_init(struct rig *rig);
/* A new connection in place of the old one, as after a change of host or password. */
void rig_reconnect(struct rig *rig);
void rig_deinit(struct rig *rig);

void rig_feed(struct rig *rig, struct bytes bytes);
/* Somebody else sets a key, or deletes it (value NULL). */
void rig_set(struct rig *rig, uint32_t space, const char *key, const char *value);
/* One call of resp_conn_next; keeps the operation that it hands out. */
enum resp_next rig_next(struct rig *rig);
/* Answers the oldest operation, by evaluating it now. */
void rig_answer(struct rig *rig);
/* Takes all output that may leave. */
void rig_take(struct rig *rig);
/* Goes on until nothing more happens: answers all operations, takes output, sleeps till deadlines.
 * Ends in RESP_INPUT, RESP_CLOSE, or, if updates are held back or a deadline is left, RESP_WAIT. */
enum resp_next rig_run(struct rig *rig);

/* Feeds, runs and returns the output of it as a C string (with length output_n), good until the
 * next call. */
const char *rig_send(struct rig *rig, const char *input);
const char *rig_send_bytes(struct rig *rig, struct bytes input);
/* The same for one command, its words separated by single blanks: "SET key value". */
const char *rig_call(struct rig *rig, const char *words);
/* Commands and their replies, one after another on one connection. */
struct rig_row {
    const char *command, *reply;
};
void rig_call_rows(struct rig *rig, const struct rig_row *rows, uint32_t n);
/* The body of a test that is nothing but rows. */
#define RIG_ROWS(rows_)                                                                            \
    struct rig rig;                                                                                \
    (void)state;                                                                                   \
    rig_init(&rig);                                                                                \
    rig_call_rows(&rig, (rows_), (uint32_t)(sizeof(rows_) / sizeof(rows_)[0]));                    \
    rig_deinit(&rig)
/* The reply of one command; rig_expect_begin: how it begins. */
void rig_expect(struct rig *rig, const char *words, const char *reply);
void rig_expect_begin(struct rig *rig, const char *words, const char *reply);
/* The command of words separated by single blanks as a multibulk; to be freed. */
char *rig_multibulk(const char *words);

#endif
