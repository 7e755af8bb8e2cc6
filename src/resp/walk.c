#include "resp/walk.h"

#include <string.h>

#include "base/err.h"
#include "engine/txn.h"
#include "resp/commands.h"
#include "resp/glob.h"
#include "resp/multi.h"

/* RANDOMKEY takes one of so many keys behind a place. */
#define RANDOM_KEYS 16u

bool walk_possible(struct resp_conn *conn)
{
    if (conn->host->walk == NULL && !conn_is_ordered(conn, conn->space)) {
        conn_unavailable_error(conn);
        return false;
    }
    return command_may_look(conn);
}

void walk_forget(struct resp_conn *conn)
{
    struct conn_work *work = &conn->work;

    resp_out_deinit(&work->keys);
    resp_out_deinit(&work->place);
    resp_out_deinit(&work->piece);
    multi_free(conn, work->txn);
    work->txn = NULL;
}

static struct bytes written(const struct resp_out *out)
{
    return bytes_of(out->at, out->n);
}

/* ---- Asking for keys ---- */

/* The bounds of a range, in the transaction's bytes. */
struct bounds {
    struct bytes from, to;
};

/* A transaction of the space that is walked, with a copy of the place in it, and of the end; NULL:
 * no memory. */
static struct conn_txn *begin(struct resp_conn *conn, struct bytes end, struct bounds *bounds_out)
{
    struct conn_txn *txn = conn_txn_create(TXN_SINGLE);
    uint32_t n = conn->work.place.n;

    if (txn != NULL && (conn_txn_command(txn, conn->command) == NULL ||
                        conn_txn_keep(txn, written(&conn->work.place)) == UINT32_MAX ||
                        conn_txn_keep(txn, end) == UINT32_MAX)) {
        conn_txn_destroy(txn);
        txn = NULL;
    }
    if (txn != NULL) {
        *bounds_out = (struct bounds){bytes_of(txn->bytes.at, n),
                                      bytes_of(end.n > 0 ? txn->bytes.at + n : NULL, end.n)};
    }
    return txn;
}

static bool add_range(struct resp_conn *conn, struct conn_txn *txn, enum txn_pair_kind kind,
                      const struct bounds *bounds, uint16_t flags)
{
    struct op op = {.kind = (uint8_t)kind,
                    .space = (uint8_t)conn->work.space,
                    .flags = flags,
                    .key = bounds->from,
                    .arg = bounds->to,
                    .number = conn->work.asked};

    return conn_txn_add(txn, &op);
}

/* The request is handed out, unless it must wait. */
static enum conn_step ask(struct resp_conn *conn, struct conn_txn *txn)
{
    if (txn == NULL) {
        conn->out.failed = true;
        return STEP_AGAIN;
    }
    conn_txn_seal(txn);
    multi_count(conn, txn);
    conn->work.txn = txn;
    return STEP_TRANSACTION;
}

/* What every key that the pattern matches begins with; and the least key above all that do: the
 * same with its last byte raised, in `end`. Returns the bytes of that; 0: there is none. */
static uint32_t ends_of_pattern(struct bytes pattern, struct bytes *prefix_out,
                                uint8_t end[RESP_GLOB_MAX])
{
    uint32_t n = 0;

    while (n < pattern.n && n < RESP_GLOB_MAX && strchr("*?[\\", pattern.at[n]) == NULL) {
        end[n] = pattern.at[n];
        n++;
    }
    *prefix_out = bytes_of(pattern.at, n);
    while (n > 0 && end[n - 1] == UINT8_MAX) {
        n--;
    }
    if (n > 0) {
        end[n - 1]++;
    }
    return n;
}

/* Where the walk may begin, and end, for the pattern's sake. */
static struct bytes narrow(struct conn_work *work, uint8_t end[RESP_GLOB_MAX])
{
    struct bytes prefix;
    uint32_t n = ends_of_pattern(work->any ? bytes_of(NULL, 0) : work->pattern, &prefix, end);

    if (bytes_compare(written(&work->place), prefix) < 0) {
        resp_out_reset(&work->place);
        resp_out_raw(&work->place, prefix);
    }
    return bytes_of(end, n);
}

/* The next keys from work.place on; if they are to be deleted (work.deletes) in the same step. */
static enum conn_step ask_next(struct resp_conn *conn)
{
    struct conn_work *work = &conn->work;
    uint8_t last[RESP_GLOB_MAX];
    struct bytes end = narrow(work, last);
    struct bounds bounds;
    struct conn_txn *txn = begin(conn, end, &bounds);

    if (work->asked == 0) {
        work->asked = work->limit > 0 && work->limit < WALK_PIECE_MAX ? (uint32_t)work->limit
                                                                      : WALK_PIECE_MAX;
    }
    if (txn != NULL &&
        (!add_range(conn, txn, TXN_OP_RANGE, &bounds, TXN_OPF_KEYS) ||
         (work->deletes && !add_range(conn, txn, TXN_OP_RANGE_DELETE, &bounds, 0)))) {
        conn_txn_destroy(txn);
        txn = NULL;
    }
    return ask(conn, txn);
}

/* What every slice of an ordered walk begins with: true if the answer is there. */
static bool answered(struct resp_conn *conn, bool partly, enum conn_step *step_out)
{
    struct conn_work *work = &conn->work;

    if (work->error != HK_OK) {
        struct answer failed = {
            .kind = ANSWER_ERROR, .number = work->error, .slot = work->error_slot};

        conn_answer_error(conn, &failed, work->deletes ? OP_DELETE : OP_GET, partly);
        *step_out = STEP_DONE;
        return false;
    }
    if (work->piece.failed || work->place.failed) {
        conn->out.failed = true;
        *step_out = STEP_AGAIN;
        return false;
    }
    if (conn->in_flight > 0 || (work->deletes && !conn->may_update)) {
        *step_out = STEP_WAIT;
        return false;
    }
    if (!work->fetched && conn->over != NULL) {
        *step_out = STEP_AGAIN; /* others first; and the last request's memory goes */
        return false;
    }
    return work->fetched;
}

bool walk_ready(struct resp_conn *conn, bool partly, enum conn_step *step_out)
{
    *step_out = STEP_TRANSACTION;
    if (!conn_is_ordered(conn, conn->work.space) || conn->work.ending) {
        return true;
    }
    if (answered(conn, partly, step_out)) {
        return true;
    }
    if (*step_out == STEP_TRANSACTION) {
        *step_out = ask_next(conn);
    }
    return false;
}

void walk_answered(struct resp_conn *conn, const struct answer *answer,
                   const struct resp_results *results)
{
    struct conn_work *work = &conn->work;

    if (answer->kind == ANSWER_ERROR && answer->number == HK_ERR_TOOBIG && work->asked > 1) {
        work->asked /= 2; /* their keys are long */
        return;
    }
    if (answer->kind != ANSWER_ERROR && results != NULL && results->n > 0 &&
        results->answers[0].kind == ANSWER_ERROR) {
        answer = &results->answers[0];
    }
    if (answer->kind == ANSWER_ERROR) {
        work->error = (int)answer->number;
        work->error_slot = answer->slot;
        return;
    }
    resp_out_reset(&work->piece);
    for (uint32_t i = 0; results != NULL && i < results->n; i++) {
        if (results->answers[i].kind == ANSWER_PAIRS) {
            resp_out_raw(&work->piece, results->answers[i].value);
        }
    }
    work->fetched = true;
}

/* ---- Stepping ---- */

static void step_ordered(struct resp_conn *conn, resp_key_fn *emit)
{
    struct conn_work *work = &conn->work;
    struct bytes rest = written(&work->piece);
    struct bytes key, value, last = {NULL, 0};
    uint32_t n = 0;

    while (txn_pair_take(&rest, &key, &value)) {
        emit(conn, key);
        last = key;
        n++;
    }
    if (n > 0) {
        resp_out_reset(&work->place);
        resp_out_raw(&work->place, last);
        resp_out_raw(&work->place, bytes_of("", 1)); /* the key right behind it */
    }
    work->ending = n < work->asked;
    work->fetched = false;
}

void walk_step(struct resp_conn *conn, resp_key_fn *emit)
{
    struct conn_work *work = &conn->work;

    work->steps++;
    if (conn_is_ordered(conn, work->space)) {
        step_ordered(conn, emit);
        return;
    }
    work->cursor = conn->host->walk(conn->host->context, work->space, work->cursor, emit, conn);
    work->ending = work->cursor == 0;
}

/* ---- A key by chance ---- */

/* A place between two keys: what they begin with alike, a byte between those in which they differ,
 * and a few more. */
static void place_between(struct resp_conn *conn, struct bytes first, struct bytes last)
{
    struct resp_out *place = &conn->work.place;
    uint64_t random = conn->host->random(conn->host->context);
    uint32_t same = 0;
    uint8_t bytes[4];

    while (same < first.n && same < last.n && first.at[same] == last.at[same]) {
        same++;
    }

    uint32_t from = same < first.n ? first.at[same] : 0;
    uint32_t to = same < last.n ? last.at[same] : 0;

    for (uint32_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(random >> (8 * i));
    }
    bytes[0] = (uint8_t)(from + (to >= from ? random % (to - from + 1) : 0));
    resp_out_reset(place);
    resp_out_raw(place, bytes_of(first.at, same));
    resp_out_raw(place, bytes_of(bytes, sizeof bytes));
}

static enum conn_step ask_ends(struct resp_conn *conn)
{
    struct bounds bounds;
    struct conn_txn *txn = begin(conn, bytes_of(NULL, 0), &bounds);

    conn->work.asked = 1;
    if (txn != NULL && (!add_range(conn, txn, TXN_OP_RANGE, &bounds, TXN_OPF_KEYS) ||
                        !add_range(conn, txn, TXN_OP_RANGE, &bounds,
                                   (uint16_t)(TXN_OPF_KEYS | TXN_OPF_REVERSE)))) {
        conn_txn_destroy(txn);
        txn = NULL;
    }
    return ask(conn, txn);
}

/* First the first and the last key, then those behind a place between them: keys behind a gap are
 * likelier than others, as in Redis. */
enum conn_step walk_random(struct resp_conn *conn, struct op *op_out)
{
    struct conn_work *work = &conn->work;
    enum conn_step step = STEP_TRANSACTION;
    struct bytes rest, key, value, last;
    uint64_t n = 0;

    (void)op_out;
    if (!answered(conn, false, &step)) {
        return step != STEP_TRANSACTION ? step : work->wrapped ? ask_next(conn) : ask_ends(conn);
    }
    rest = written(&work->piece);
    if (!txn_pair_take(&rest, &key, &value)) {
        if (work->wrapped && work->place.n > 0) {
            resp_out_reset(&work->place); /* they are gone meanwhile: from the first on */
            work->fetched = false;
            return STEP_AGAIN;
        }
        resp_out_null(&conn->out);
        return STEP_DONE;
    }
    if (!work->wrapped) {
        last = key;
        (void)txn_pair_take(&rest, &last, &value);
        place_between(conn, key, last);
        work->wrapped = true;
        work->fetched = false;
        work->asked = RANDOM_KEYS;
        return STEP_AGAIN;
    }
    for (last = key, n = 1; txn_pair_take(&rest, &key, &value);) {
        n++;
        last = conn->host->random(conn->host->context) % n == 0 ? key : last;
    }
    resp_out_bulk(&conn->out, last);
    return STEP_DONE;
}
