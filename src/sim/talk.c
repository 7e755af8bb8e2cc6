#include "sim/talk.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/phrase.h"
#include "sim/redis.h"
#include "sim/understand.h"
#include "sim/world.h"

/* ---- Saying ---- */

bool talk_greet(struct resp_conn *conn, uint64_t now_us)
{
    static const char hello[] = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
    struct op op;
    const struct txn_request *txn;
    if (!resp_conn_feed(conn, bytes_of(hello, sizeof hello - 1)) ||
        resp_conn_next(conn, now_us, true, &op, &txn) != RESP_INPUT) {
        return false;
    }
    struct bytes reply = resp_conn_output(conn);
    bool map = reply.n > 0 && reply.at[0] == '%';
    resp_conn_sent(conn, reply.n);
    return map;
}

const char *talk_connect(struct machine *m, struct worker *w, struct client *c)
{
    uint64_t now_us = m->world->now_us;
    int err = worker_session_open(w, &c->session);
    if (err != HK_OK) {
        c->session = SESSION_NONE;
        return hk_err_name(err);
    }
    if (c->embedded) {
        return NULL;
    }
    err = resp_conn_create(&m->process->host, c->id + 1, "", "", now_us, &c->conn);
    if (err != HK_OK) {
        return hk_err_name(err);
    }
    /* Half of the clients speak RESP3. */
    return c->id % 2 == 0 || talk_greet(c->conn, now_us) ? NULL
                                                         : "HELLO 3 is not answered with a map";
}

const char *talk_say(struct world *world, struct client *c, uint32_t index)
{
    struct sim_op *op = &world->clients.ops[index];
    uint32_t first = (uint32_t)op->arrived_step % op->command_n;
    bool taken = resp_conn_feed(c->conn, bytes_of(op->command, first)) &&
                 resp_conn_feed(c->conn, bytes_of(op->command + first, op->command_n - first));
    free(op->command);
    op->command = NULL;
    for (uint32_t i = 0; i < op->parts; i++) {
        op[i].said = true;
    }
    return taken ? NULL : "the bytes of a command are not taken";
}

/* ---- Hearing ---- */

/* The replies of a quiet phrase follow from its row alone. */
static const char *hear_quiet(struct sim_op *op, struct bytes reply)
{
    const char *wanted = phrases[op->phrase].replies;
    uint32_t before = 0;
    for (const char *at = wanted; *at != '\0'; at++) {
        before += *at == ' ';
    }
    for (uint32_t skip = before + 1 - op->replies; skip > 0; skip--) {
        wanted = strchr(wanted, ' ') + 1;
    }
    uint32_t n = (uint32_t)strcspn(wanted, " ");
    op->replied = --op->replies == 0;
    return reply.n >= n && memcmp(reply.at, wanted, n) == 0 ? NULL : "another reply than is due";
}

/* The client hears of the part that failed first, and of no other. */
static const char *hear_error(struct sim_op *op, const struct sim_op *failed, struct bytes reply)
{
    struct answer answer;
    const char *wrong = redis_answer(reply, &answer);
    for (uint32_t i = 0; i < op->parts; i++) {
        op[i].hidden = &op[i] != failed;
    }
    if (wrong != NULL || answer.kind != ANSWER_ERROR) {
        return "no error, although its operation failed";
    }
    bool same = answer.number == failed->err ||
                (answer.number == HK_ERR_BUSY && failed->err == HK_ERR_FULL);
    return same ? NULL : "another error than its operation had";
}

static const char *hear_array(struct machine *m, struct sim_op *op, struct bytes reply)
{
    struct bytes items[PHRASE_PARTS_MAX];
    const char *wrong = redis_array(reply, op->parts, items);
    for (uint32_t i = 0; wrong == NULL && i < op->parts; i++) {
        struct answer answer;
        wrong = redis_answer(items[i], &answer);
        wrong = wrong == NULL ? understand(m, &op[i], &answer) : wrong;
    }
    return wrong;
}

/* What was deleted or found is counted over all keys; which ones, only the node knows. */
static const char *hear_sum(struct machine *m, struct sim_op *op, const struct answer *answer)
{
    int64_t sum = 0;
    const char *wrong = answer->kind == ANSWER_NUMBER ? NULL : "an answer that is no number";
    for (uint32_t i = 0; wrong == NULL && i < op->parts; i++) {
        const struct answer one = {.kind = ANSWER_NUMBER, .number = op[i].number};
        sum += one.number;
        wrong = understand(m, &op[i], &one);
    }
    return wrong == NULL && sum != answer->number ? "another sum than that of its parts" : wrong;
}

static const char *hear_answer(struct machine *m, struct sim_op *op, struct bytes reply)
{
    const struct phrase *phrase = &phrases[op->phrase];
    struct answer answer;
    if (phrase->several && phrase->hears == HEARS_VALUE) {
        return hear_array(m, op, reply);
    }
    const char *wrong = redis_answer(reply, &answer);
    if (wrong != NULL) {
        return wrong;
    }
    bool may_fail = phrase->hears == HEARS_UNTRACKED || phrase->hears == HEARS_RENAMED;
    if (answer.kind == ANSWER_ERROR && !may_fail) {
        return "an error, although its operation had none";
    }
    if (phrase->several && phrase->hears == HEARS_ONE) {
        return hear_sum(m, op, &answer);
    }
    for (uint32_t i = 0; wrong == NULL && i < op->parts; i++) {
        wrong = understand(m, &op[i], &answer);
    }
    return wrong;
}

const char *talk_hear(struct machine *m, struct sim_op *op, struct bytes reply, uint32_t carrier)
{
    const struct sim_op *failed = NULL;
    if (op->quiet) {
        op->carrier = NO_OP;
        return hear_quiet(op, reply);
    }
    HK_ASSERT(op->part == 0);
    for (uint32_t i = 0; i < op->parts; i++) {
        if (op[i].state != SIM_OP_ANSWERED) {
            return "a reply before all of the answers";
        }
        op[i].replied = true;
        op[i].carrier = carrier;
        failed = failed == NULL && op[i].err != HK_OK ? &op[i] : failed;
    }
    return failed != NULL ? hear_error(op, failed, reply) : hear_answer(m, op, reply);
}
