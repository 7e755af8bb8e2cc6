#include "sim/teller.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/redis.h"
#include "sim/talk.h"
#include "sim/world.h"

/* ---- The connection ---- */

const char *teller_connect(struct machine *m, struct trader *t)
{
    uint64_t now_us = m->world->now_us;
    int err =
        resp_conn_create(&m->process->trading, CLIENTS_MAX + 1 + t->id, "", "", now_us, &t->conn);
    if (err != HK_OK) {
        return hk_err_name(err);
    }
    t->waits = t->watches = false;
    bool third = (t->id & 2) != 0; /* protocol */
    return !third || talk_greet(t->conn, now_us) ? NULL : "HELLO 3 is not answered with a map";
}

void teller_hang_up(struct world *world, struct trader *t)
{
    crowd_close(world, t->conn, t->machine, t->worker);
    t->conn = NULL;
    t->waits = t->watches = false;
}

/* ---- Saying ---- */

#define WORDS_MAX (2 * DEAL_OPS_MAX + 1)

struct speech {
    uint8_t *at;
    uint32_t n;
    uint32_t commands;
};

static struct bytes word(const char *text)
{
    return bytes_of(text, (uint32_t)strlen(text));
}

static void add_command(struct speech *speech, const struct bytes *words, uint32_t n)
{
    uint8_t *command;
    uint32_t bytes = redis_command(words, n, &command);
    speech->at = realloc(speech->at, speech->n + bytes);
    HK_ASSERT(speech->at != NULL);
    memcpy(speech->at + speech->n, command, bytes);
    free(command);
    speech->n += bytes;
    speech->commands++;
}

static void add_word(struct speech *speech, const char *text)
{
    const struct bytes words[1] = {word(text)};
    add_command(speech, words, 1);
}

/* One command over all keys, with their values or without. */
static void add_over_all(struct speech *speech, const char *name, const struct deal *deal,
                         bool values)
{
    struct bytes words[WORDS_MAX] = {word(name)};
    uint32_t n = 1;
    for (uint32_t i = 0; i < deal->request.ops_n; i++) {
        words[n++] = deal->ops[i].key;
        if (values) {
            words[n++] = deal->ops[i].value;
        }
    }
    add_command(speech, words, n);
}

static void add_op(struct speech *speech, const struct op *op)
{
    char text[24];
    struct bytes words[3] = {word("GET"), op->key};
    uint32_t n = 2;
    switch (op->kind) {
    case OP_GET:
        break;
    case OP_SET:
        words[0] = word("SET");
        words[n++] = op->value;
        break;
    case OP_ADD:
        (void)snprintf(text, sizeof text, "%" PRId64, op->number);
        words[0] = word("INCRBY");
        words[n++] = word(text);
        break;
    case OP_DELETE:
        words[0] = word("DEL");
        break;
    case TXN_OP_RENAME:
        words[0] = word("RENAMENX");
        words[n++] = op->arg;
        break;
    default:
        HK_ASSERT(false);
    }
    add_command(speech, words, n);
}

static bool only_reads(const struct deal *deal)
{
    return deal->kind == DEAL_READ || deal->kind == DEAL_LOOK || deal->kind == DEAL_PEEK ||
           deal->kind == DEAL_AUDIT;
}

static void add_deal(struct speech *speech, struct deal *deal)
{
    bool looks = deal->kind == DEAL_LOOK || deal->kind == DEAL_PEEK;
    bool queued = deal->index % 2 == 0 && !looks;
    if (looks) {
        add_over_all(speech, "WATCH", deal, false);
    }
    deal->ahead = looks;
    deal->alone = deal->kind == DEAL_GET || deal->kind == DEAL_SET ||
                  (only_reads(deal) && !queued && deal->request.ops_n == 1);
    deal->row = deal->kind == DEAL_CLAIM || deal->kind == DEAL_OPEN;
    if (deal->alone || deal->kind == DEAL_RENAME) {
        add_op(speech, &deal->ops[0]);
    } else if (deal->row) {
        add_over_all(speech, "MSETNX", deal, true);
    } else if (only_reads(deal) && !queued) {
        add_over_all(speech, "MGET", deal, false);
    } else {
        add_word(speech, "MULTI");
        for (uint32_t i = 0; i < deal->request.ops_n; i++) {
            add_op(speech, &deal->ops[i]);
        }
        add_word(speech, "EXEC");
    }
}

const char *teller_say(struct world *world, struct trader *t, struct deal *deal)
{
    struct speech speech = {.at = NULL};
    bool follows = deal->kind == DEAL_SWAP || deal->kind == DEAL_MOVE;
    resp_conn_sent(t->conn, resp_conn_output(t->conn).n);
    if (t->watches && !follows) {
        add_word(&speech, "UNWATCH"); /* what it had watched came to nothing */
    }
    t->watches = t->watches && follows;
    add_deal(&speech, deal);
    deal->said = true;
    deal->lines = speech.commands - 1;
    uint32_t first = (uint32_t)world->step % speech.n;
    bool taken = resp_conn_feed(t->conn, bytes_of(speech.at, first)) &&
                 resp_conn_feed(t->conn, bytes_of(speech.at + first, speech.n - first));
    free(speech.at);
    return taken ? NULL : "the bytes of a transaction are not taken";
}

/* ---- Asking ---- */

static bool same_op(const struct op *made, const struct op *wanted)
{
    return made->kind == wanted->kind && bytes_equal(made->key, wanted->key) &&
           bytes_equal(made->value, wanted->value) && bytes_equal(made->arg, wanted->arg) &&
           made->number == wanted->number;
}

static bool same_request(const struct deal *deal, const struct op *op,
                         const struct txn_request *txn)
{
    const struct txn_request *wanted = &deal->request;
    if (deal->alone) {
        return txn == NULL && same_op(op, &deal->ops[0]);
    }
    if (txn == NULL || txn->ops_n != wanted->ops_n || txn->watches_n != wanted->watches_n) {
        return false;
    }
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        if (!same_op(&txn->ops[i], &wanted->ops[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < txn->watches_n; i++) {
        if (!bytes_equal(txn->watches[i].key, wanted->watches[i].key)) {
            return false;
        }
    }
    return true;
}

bool teller_request(struct machine *m, struct trader *t, struct deal *deal,
                    struct request *request_out, bool *ahead_out, const char **wrong_out)
{
    const struct txn_request *txn = NULL;
    struct op op;
    *wrong_out = NULL;
    if (!deal->said || t->waits) {
        return false;
    }
    enum resp_next next = resp_conn_next(t->conn, m->world->now_us, true, &op, &txn);
    if (next == RESP_AGAIN) {
        machine_notice(m, t->worker);
        return false;
    }
    if (next == RESP_WAIT && resp_conn_in_flight(t->conn) > 0) {
        t->waits = true;
        return false;
    }
    bool made = next == RESP_OP &&
                (deal->ahead ? txn != NULL && txn->watches_n == 0 : same_request(deal, &op, txn));
    if (!made) {
        *wrong_out = next == RESP_OP ? "another request" : "no request";
        return false;
    }
    *ahead_out = deal->ahead;
    deal->ahead = false;
    for (uint32_t i = 0; !*ahead_out && i < deal->request.watches_n; i++) {
        uint64_t version = txn->watches[i].version;
        deal->seen[i] = (version & TXN_ABSENT) != 0 ? 0 : version; /* as of a read */
    }
    *request_out = (struct request){.session = t->session, .op = op, .txn = txn};
    return true;
}

/* ---- Hearing ---- */

static void hand_answer(struct world *world, struct trader *t, const struct reply *reply)
{
    const struct resp_results results = {reply->answers, reply->versions, reply->answers_n};
    resp_conn_answer(t->conn, &reply->answer, reply->answers != NULL ? &results : NULL,
                     world->now_us);
    t->waits = false;
}

void teller_ahead(struct world *world, struct trader *t, const struct reply *reply)
{
    hand_answer(world, t, reply);
    t->watches = reply->answer.kind != ANSWER_ERROR;
}

static bool is_line(struct bytes reply, const char *text)
{
    return bytes_equal(reply, word(text));
}

static bool is_error(struct bytes reply)
{
    return reply.n > 0 && reply.at[0] == '-';
}

/* Whether a reply says what the node answered. An error has other words. */
static const char *compare(struct bytes reply, const struct answer *wanted)
{
    struct answer answer;
    const char *wrong = redis_answer(reply, &answer);
    if (wrong != NULL) {
        return wrong;
    }
    if (wanted->kind == ANSWER_ERROR) {
        return answer.kind == ANSWER_ERROR ? NULL : "no error, although an operation failed";
    }
    /* OK, or the number of what was deleted: which of them, the command says. */
    bool same = answer.kind == wanted->kind &&
                (answer.kind != ANSWER_NUMBER || answer.number == wanted->number) &&
                (answer.kind != ANSWER_VALUE || bytes_equal(answer.value, wanted->value));
    return same ? NULL : "another value than the node's";
}

static const char *hear_error(struct bytes reply, const struct answer *wanted)
{
    struct answer answer;
    const char *wrong = redis_answer(reply, &answer);
    if (wrong != NULL || answer.kind != ANSWER_ERROR) {
        return "no error, although its transaction failed";
    }
    bool same = answer.number == wanted->number ||
                (answer.number == HK_ERR_BUSY && wanted->number == HK_ERR_FULL);
    return same ? NULL : "another error than its transaction had";
}

static const char *hear_array(const struct deal *deal, struct bytes reply_bytes,
                              const struct reply *reply)
{
    struct bytes parts[DEAL_OPS_MAX];
    const char *wrong = redis_array(reply_bytes, deal->request.ops_n, parts);
    for (uint32_t i = 0; wrong == NULL && i < deal->request.ops_n; i++) {
        wrong = compare(parts[i], &reply->answers[i]);
    }
    return wrong;
}

/* That it committed says that nothing changed from WATCH on, so what was read since then is what
 * WATCH saw. */
static const char *compare_watches(const struct deal *deal)
{
    for (uint32_t i = 0; i < deal->request.watches_n; i++) {
        if (deal->seen[i] != deal->watches[i].version) {
            return "EXEC for keys that have changed since WATCH";
        }
    }
    return NULL;
}

static const char *hear_last(const struct deal *deal, struct bytes last, const struct reply *reply)
{
    const struct answer *answer = &reply->answer;
    if (answer->kind == ANSWER_ERROR) {
        return hear_error(last, answer);
    }
    if (deal->alone) {
        return compare(last, answer);
    }
    if (deal->kind == DEAL_RENAME) {
        return compare(last, &reply->answers[0]);
    }
    if (deal->row) {
        return is_line(last, deal->outcome == TXN_COMMITTED ? ":1\r\n" : ":0\r\n")
                   ? NULL
                   : "another number than whether it was done";
    }
    if (answer->kind == ANSWER_NIL) {
        return is_line(last, "*-1\r\n") || is_line(last, "_\r\n") ? NULL : "no nil for nothing";
    }
    const char *wrong = compare_watches(deal);
    return wrong != NULL ? wrong : hear_array(deal, last, reply);
}

const char *teller_hear(struct world *world, struct trader *t, const struct deal *deal,
                        const struct reply *reply)
{
    hand_answer(world, t, reply);
    struct bytes rest = resp_conn_output(t->conn);
    const char *wrong = NULL;
    for (uint32_t i = 0; i <= deal->lines && wrong == NULL; i++) {
        struct bytes one = bytes_of(rest.at, redis_reply_bytes(rest));
        bool ahead = i == 0 && is_error(one); /* of WATCH */
        if (one.n == 0) {
            return "fewer replies than commands";
        }
        if (i < deal->lines) {
            bool fits = is_line(one, "+OK\r\n") || is_line(one, "+QUEUED\r\n");
            wrong = fits || (ahead && !t->watches) ? NULL : "another reply to a queued command";
        } else {
            wrong = hear_last(deal, one, reply);
        }
        rest = bytes_of(rest.at + one.n, rest.n - one.n);
    }
    bool exec = deal->kind == DEAL_SWAP || deal->kind == DEAL_MOVE;
    t->watches = t->watches && !exec;
    return wrong == NULL && rest.n > 0 ? "more replies than commands" : wrong;
}
