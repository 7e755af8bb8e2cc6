/* Commands that go through all keys of a space: KEYS, SCAN, RANDOMKEY, FLUSHDB, FLUSHALL. They work
 * in slices, so that others get their turn, and see keys as the walk finds them: what comes or goes
 * meanwhile may be met or missed. */
#include "resp/commands.h"
#include "resp/glob.h"
#include "resp/internal.h"
#include "resp/serve_data.h"
#include "resp/walk.h"

#include "base/err.h"

/* Steps of a walk in one slice: a few buckets each. */
#define STEPS_A_SLICE 64u
/* A slice also ends when its keys and the pattern are so long that matching them may have taken
 * this many steps, about a millisecond. */
#define COMPARED_A_SLICE (1024u * 1024u)
/* As in Redis: SCAN gives up looking for COUNT keys after so many steps for each. */
#define STEPS_A_KEY 10u
#define SCAN_COUNT 10u

/* ---- KEYS, SCAN ---- */

static void emit_match(void *context, struct bytes key)
{
    struct resp_conn *conn = context;
    struct conn_work *work = &conn->work;

    work->count++;
    work->compared += (uint64_t)key.n * work->pattern.n;
    if (work->none || (!work->any && !resp_glob_match(work->pattern, key, false))) {
        return;
    }
    resp_out_bulk(&work->keys, key);
    work->found++;
}

/* Whether the keys that were found can be answered; there is an error in their place if not. */
static bool keys_fit(struct resp_conn *conn)
{
    const struct resp_out *keys = &conn->work.keys;
    uint32_t free_bytes = conn->out.max > conn->out.n ? conn->out.max - conn->out.n : 0;

    if (!keys->failed && keys->n < free_bytes && free_bytes - keys->n > 64) {
        return true;
    }
    resp_out_error(&conn->out, "ERR the keys do not fit into one reply; use SCAN");
    return false;
}

static void write_keys(struct resp_conn *conn)
{
    struct conn_work *work = &conn->work;

    resp_out_array(&conn->out, work->found);
    resp_out_raw(&conn->out, bytes_of(work->keys.at, work->keys.n));
}

static bool read_pattern(struct resp_conn *conn, uint32_t index)
{
    if (conn_argument(conn, index).n <= RESP_GLOB_MAX) {
        return true;
    }
    resp_out_errorf(&conn->out, "ERR the pattern is longer than %u bytes", RESP_GLOB_MAX);
    return false;
}

static enum conn_step step_keys(struct resp_conn *conn, struct op *op_out)
{
    struct conn_work *work = &conn->work;
    enum conn_step step;

    (void)op_out;
    if (!command_may_look(conn)) {
        return STEP_DONE;
    }
    work->pattern = conn_argument(conn, 1);
    work->compared = 0;
    for (uint32_t i = 0; i < STEPS_A_SLICE && work->compared < COMPARED_A_SLICE && !work->ending &&
                         !work->keys.failed;
         i++) {
        if (!walk_ready(conn, false, &step)) {
            return step;
        }
        walk_step(conn, emit_match);
    }
    if (!work->ending && !work->keys.failed) {
        return STEP_AGAIN;
    }
    if (keys_fit(conn)) {
        write_keys(conn);
    }
    return STEP_DONE;
}

void serve_keys(struct resp_conn *conn)
{
    if (!walk_possible(conn) || !read_pattern(conn, 1)) {
        return;
    }
    conn_work(conn, step_keys);
    conn->work.answered = walk_answered;
    conn->work.space = conn->space;
    conn->work.any = conn_argument_is(conn, 1, "*");
}

static bool read_cursor(struct bytes text, uint64_t *cursor_out)
{
    uint64_t cursor = 0;

    for (uint32_t i = 0; i < text.n; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' ||
            __builtin_mul_overflow(cursor, (uint64_t)10, &cursor) ||
            __builtin_add_overflow(cursor, (uint64_t)(text.at[i] - '0'), &cursor)) {
            return false;
        }
    }
    *cursor_out = cursor;
    return text.n > 0;
}

static void write_cursor(struct resp_conn *conn, uint64_t cursor)
{
    char text[20];
    uint32_t at = sizeof text;

    do {
        text[--at] = (char)('0' + cursor % 10u);
        cursor /= 10u;
    } while (cursor > 0);
    resp_out_bulk(&conn->out, bytes_of(text + at, (uint32_t)sizeof text - at));
}

/* Where the next call goes on. */
static void write_next(struct resp_conn *conn)
{
    const struct resp_host *host = conn->host;
    struct conn_work *work = &conn->work;
    uint64_t cursor = work->cursor;

    if (conn_is_ordered(conn, work->space)) {
        struct bytes place = bytes_of(work->place.at, work->place.n);

        cursor = work->ending ? 0 : host->place_keep(host->context, cursor, place);
        conn->out.failed = conn->out.failed || (cursor == 0 && !work->ending);
    }
    write_cursor(conn, cursor);
}

static enum conn_step step_scan(struct resp_conn *conn, struct op *op_out)
{
    struct conn_work *work = &conn->work;
    enum conn_step step;

    (void)op_out;
    if (!command_may_look(conn)) {
        return STEP_DONE;
    }
    if (work->at > 0) {
        work->pattern = conn_argument(conn, work->at);
    }
    work->compared = 0;
    for (uint32_t i = 0; i < STEPS_A_SLICE && work->compared < COMPARED_A_SLICE; i++) {
        if (work->ending || work->keys.failed || work->count >= work->limit ||
            work->steps / STEPS_A_KEY >= work->limit) {
            if (!keys_fit(conn)) {
                return STEP_DONE;
            }
            resp_out_array(&conn->out, 2);
            write_next(conn);
            write_keys(conn);
            return STEP_DONE;
        }
        if (!walk_ready(conn, false, &step)) {
            return step;
        }
        walk_step(conn, emit_match);
    }
    return STEP_AGAIN;
}

/* The options of SCAN. work.at becomes the argument that is the pattern. */
static bool read_scan_options(struct resp_conn *conn, struct conn_work *options)
{
    int64_t count = 0;

    for (uint32_t i = 2; i < conn_arguments(conn); i += 2) {
        bool pair = i + 1 < conn_arguments(conn);

        if (pair && conn_argument_is(conn, i, "count")) {
            if (!conn_integer(conn, i + 1, &count)) {
                return false;
            }
            if (count < 1) {
                conn_syntax_error(conn);
                return false;
            }
            options->limit = (uint64_t)count;
        } else if (pair && conn_argument_is(conn, i, "match")) {
            if (!read_pattern(conn, i + 1)) {
                return false;
            }
            options->at = i + 1;
            options->any = conn_argument_is(conn, i + 1, "*");
        } else if (pair && conn_argument_is(conn, i, "type")) {
            options->none = !conn_argument_is(conn, i + 1, "string");
        } else {
            conn_syntax_error(conn);
            return false;
        }
    }
    return true;
}

/* The reply is written. */
static enum conn_step step_done(struct resp_conn *conn, struct op *op_out)
{
    (void)conn, (void)op_out;
    return STEP_DONE;
}

/* SCAN in a space whose keys have an order goes on where its cursor's place is. */
static void find_place(struct resp_conn *conn)
{
    const struct resp_host *host = conn->host;
    struct conn_work *work = &conn->work;

    if (host->place_keep == NULL || host->place_find == NULL) {
        conn_unavailable_error(conn);
    } else if (work->cursor == 0 || host->place_find(host->context, work->cursor, &work->place)) {
        return;
    } else {
        resp_out_error(&conn->out, "ERR this cursor is not known here (any more): cursors of this "
                                   "space are good at the node that told them, for a while; "
                                   "begin with 0");
    }
    work->step = step_done;
}

void serve_scan(struct resp_conn *conn)
{
    struct conn_work options = {.limit = SCAN_COUNT, .any = true};

    if (!walk_possible(conn)) {
        return;
    }
    if (!read_cursor(conn_argument(conn, 1), &options.cursor)) {
        resp_out_error(&conn->out, "ERR invalid cursor");
        return;
    }
    if (!read_scan_options(conn, &options)) {
        return;
    }
    conn_work(conn, step_scan);
    conn->work.answered = walk_answered;
    conn->work.space = conn->space;
    conn->work.cursor = options.cursor;
    conn->work.limit = options.limit;
    conn->work.at = options.at;
    conn->work.any = options.any;
    conn->work.none = options.none;
    if (conn_is_ordered(conn, conn->space)) {
        find_place(conn);
    }
}

/* ---- RANDOMKEY ---- */

/* Keeps each of the keys of one step with the same chance. */
static void emit_random(void *context, struct bytes key)
{
    struct resp_conn *conn = context;
    struct conn_work *work = &conn->work;

    work->count++;
    if (conn->host->random(conn->host->context) % work->count != 0) {
        return;
    }
    resp_out_reset(&work->keys);
    resp_out_bulk(&work->keys, key);
}

/* Starts anywhere; behind the end it goes through everything once, so that a key is found if there
 * is one. Keys behind a gap are likelier than others, as in Redis. */
static enum conn_step step_randomkey(struct resp_conn *conn, struct op *op_out)
{
    struct conn_work *work = &conn->work;

    (void)op_out;
    if (!command_may_look(conn)) {
        return STEP_DONE;
    }
    for (uint32_t i = 0; i < STEPS_A_SLICE; i++) {
        walk_step(conn, emit_random);
        if (work->count > 0) {
            if (keys_fit(conn)) {
                resp_out_raw(&conn->out, bytes_of(work->keys.at, work->keys.n));
            }
            return STEP_DONE;
        }
        if (work->ending && work->wrapped) {
            resp_out_null(&conn->out);
            return STEP_DONE;
        }
        work->wrapped = work->wrapped || work->ending;
    }
    return STEP_AGAIN;
}

void serve_randomkey(struct resp_conn *conn)
{
    if (!walk_possible(conn)) {
        return;
    }
    conn_work(conn, conn_is_ordered(conn, conn->space) ? walk_random : step_randomkey);
    conn->work.answered = walk_answered;
    conn->work.space = conn->space;
    conn->work.cursor = conn->host->random(conn->host->context);
}

/* ---- FLUSHDB, FLUSHALL ---- */

/* Keys are put down with their length in front, in the order of this machine. */
static void emit_deleted(void *context, struct bytes key)
{
    struct resp_conn *conn = context;
    struct conn_work *work = &conn->work;

    resp_out_raw(&work->keys, bytes_of(&key.n, sizeof key.n));
    resp_out_raw(&work->keys, key);
    work->found++;
}

static void emit_nothing(void *context, struct bytes key)
{
    (void)context, (void)key;
}

static struct bytes next_deleted(struct conn_work *work)
{
    uint32_t n = 0;

    memcpy(&n, work->keys.at + work->at, sizeof n);
    work->at += (uint32_t)sizeof n;

    struct bytes key = bytes_of(work->keys.at + work->at, n);

    work->at += n;
    return key;
}

static void flush_answered(struct resp_conn *conn, const struct answer *answer,
                           const struct resp_results *results)
{
    if (conn->work.txn != NULL) {
        walk_answered(conn, answer, results);
        return;
    }
    if (answer->kind == ANSWER_ERROR && conn->work.error == HK_OK) {
        conn->work.error = (int)answer->number;
        conn->work.error_slot = answer->slot;
    }
}

/* Also called when there is none any more. */
static void next_space(struct resp_conn *conn)
{
    struct conn_work *work = &conn->work;
    uint32_t spaces = command_spaces(conn);

    while (work->space <= work->to) {
        work->space++;
        if (work->space <= work->to && (spaces >> work->space & 1) != 0) {
            break;
        }
    }
    work->ending = work->space > work->to;
    resp_out_reset(&work->place);
}

/* Deletes what the last steps found, and looks for more once all of it is answered: the bytes of
 * the keys stay where they are until then. */
static enum conn_step step_flush(struct resp_conn *conn, struct op *op_out)
{
    struct conn_work *work = &conn->work;
    enum conn_step step;

    if (work->keys.failed && work->error == HK_OK) {
        work->error = HK_ERR_NOMEM;
    }
    if (work->at < work->keys.n && work->error == HK_OK) {
        if (!conn_has_room(conn) || !conn->may_update) {
            return STEP_WAIT;
        }
        *op_out = (struct op){.kind = OP_DELETE,
                              .space = (uint8_t)work->space,
                              .flags = OPF_BLIND,
                              .key = next_deleted(work)};
        return STEP_OPERATION;
    }
    if (conn->in_flight > 0) {
        return STEP_WAIT;
    }
    if (work->error == HK_OK) {
        work->error = command_serving(conn);
    }
    if (work->error != HK_OK) {
        struct answer failed = {
            .kind = ANSWER_ERROR, .number = work->error, .slot = work->error_slot};
        conn_answer_error(conn, &failed, OP_DELETE, true);
        return STEP_DONE;
    }
    resp_out_reset(&work->keys);
    work->at = work->found = 0;
    for (uint32_t i = 0; i < STEPS_A_SLICE && work->found < RESP_IN_FLIGHT_MAX; i++) {
        /* What was found is deleted before the space changes. */
        if (work->ending && work->found > 0) {
            break;
        }
        if (work->ending) {
            next_space(conn);
        }
        if (work->space > work->to) {
            break;
        }
        /* In an ordered space what is met is deleted in the same step. */
        if (conn_is_ordered(conn, work->space) && !walk_ready(conn, true, &step)) {
            return step;
        }
        walk_step(conn, conn_is_ordered(conn, work->space) ? emit_nothing : emit_deleted);
    }
    if (work->space <= work->to || work->found > 0) {
        return STEP_AGAIN;
    }
    resp_out_simple(&conn->out, "OK");
    return STEP_DONE;
}

static void flush(struct resp_conn *conn, uint32_t space, uint32_t to)
{
    if (conn_arguments(conn) > 2 ||
        (conn_arguments(conn) == 2 && !conn_argument_is(conn, 1, "async") &&
         !conn_argument_is(conn, 1, "sync"))) {
        conn_syntax_error(conn);
        return;
    }
    if (!walk_possible(conn)) {
        return;
    }
    conn_work(conn, step_flush);
    conn->work.answered = flush_answered;
    conn->work.deletes = true;
    conn->work.space = space;
    conn->work.to = to;
}

void serve_flushdb(struct resp_conn *conn)
{
    flush(conn, conn->space, conn->space);
}

void serve_flushall(struct resp_conn *conn)
{
    /* A space 0 that does not exist has no keys. */
    flush(conn, 0, 31);
}
