/* A connection's life and its two buffers. What it does is in step.c. */
#include "resp/conn.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "resp/multi.h"
#include "resp/walk.h"

/* So much unparsed input is enough for a while. */
#define INPUT_ENOUGH (1024u * 1024u)
#define INPUT_FIRST 512u
/* What an idle connection may keep for its next command, and what a busy one may. */
#define INPUT_KEPT_IDLE (16u * 1024u)
#define INPUT_KEPT_BUSY (1024u * 1024u)
/* Output that has left is cut off when there is this much of it and no more than that behind it. */
#define OUTPUT_CUT (64u * 1024u)

static char *copy_text(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = malloc(n);

    if (copy != NULL) {
        memcpy(copy, text, n);
    }
    return copy;
}

int resp_conn_create(const struct resp_host *host, uint64_t id, const char *address,
                     const char *local, uint64_t now_us, struct resp_conn **conn_out)
{
    struct resp_conn *conn = calloc(1, sizeof *conn);

    if (conn == NULL) {
        return HK_ERR_NOMEM;
    }
    conn->host = host;
    conn->id = id;
    conn->created_us = conn->last_us = conn->now_us = now_us;
    conn->state = CONN_READY;
    conn->authenticated = host->auth_required == NULL || !host->auth_required(host->context);
    memcpy(conn->user, "default", sizeof "default");
    conn_expect_any(conn);
    resp_parser_init(&conn->parser);
    resp_out_init(&conn->out, resp_limits_stranger.output_bytes_max);
    conn->address = copy_text(address);
    conn->local = copy_text(local);
    if (conn->address == NULL || conn->local == NULL) {
        resp_conn_destroy(conn);
        return HK_ERR_NOMEM;
    }
    *conn_out = conn;
    return HK_OK;
}

void resp_conn_destroy(struct resp_conn *conn)
{
    if (conn == NULL) {
        return;
    }
    resp_parser_deinit(&conn->parser);
    resp_out_deinit(&conn->out);
    walk_forget(conn);
    for (uint32_t i = 0; i < conn->flights_n; i++) {
        uint32_t at = (conn->flights_at + i) & (conn->flights_capacity - 1);

        multi_free(conn, conn->flights[at].txn);
    }
    multi_forget(conn);
    conn_end_multi(conn);
    free(conn->watches);
    free(conn->input);
    free(conn->flights);
    free(conn->address);
    free(conn->local);
    free(conn);
}

/* ---- Input ---- */

/* The operation that is held back points into the input: where its bytes are, as offsets. */
struct places {
    uint32_t key, value, arg;
};

static uint32_t place_of(const struct resp_conn *conn, struct bytes bytes)
{
    return bytes.n == 0 ? 0 : (uint32_t)(bytes.at - conn->input);
}

static struct places note_places(const struct resp_conn *conn)
{
    const struct op *op = &conn->op;

    if (!conn->op_made) {
        return (struct places){0, 0, 0};
    }
    return (struct places){place_of(conn, op->key), place_of(conn, op->value),
                           place_of(conn, op->arg)};
}

static void restore_places(struct resp_conn *conn, struct places places, uint32_t moved)
{
    struct op *op = &conn->op;

    if (!conn->op_made) {
        return;
    }
    if (op->key.n > 0) {
        op->key.at = conn->input + places.key - moved;
    }
    if (op->value.n > 0) {
        op->value.at = conn->input + places.value - moved;
    }
    if (op->arg.n > 0) {
        op->arg.at = conn->input + places.arg - moved;
    }
}

/* Moves what is still needed to the front, if that is no more than what is in front of it: so each
 * byte is moved about once, however it arrives. */
static void compact(struct resp_conn *conn)
{
    uint32_t kept = conn->input_n - conn->at;
    struct places places = note_places(conn);

    if (conn->at == 0 || conn->at < kept) {
        return;
    }
    memmove(conn->input, conn->input + conn->at, kept);
    restore_places(conn, places, conn->at);
    conn->input_n = kept;
    conn->at = 0;
}

/* Grows with what arrived, at most twofold, but not beyond the command that comes in: so a value of
 * 64 MiB costs a few copies and no more memory than it needs, and one that was only announced costs
 * nothing. */
static bool grow(struct resp_conn *conn, uint32_t n)
{
    uint64_t wanted = (uint64_t)conn->input_n + n;
    uint64_t whole = (uint64_t)conn->at + conn->parser.need;
    uint64_t capacity = (uint64_t)conn->input_capacity * 2;
    struct places places = note_places(conn);

    if (wanted <= conn->input_capacity) {
        return true;
    }
    if (wanted > UINT32_MAX) {
        return false;
    }
    if (capacity < INPUT_FIRST) {
        capacity = INPUT_FIRST;
    }
    if (capacity > whole && whole >= wanted) {
        capacity = whole;
    }
    if (capacity < wanted) {
        capacity = wanted;
    }
    if (capacity > UINT32_MAX) {
        capacity = UINT32_MAX;
    }

    uint8_t *input = realloc(conn->input, capacity);

    if (input == NULL) {
        return false;
    }
    conn->input = input;
    conn->input_capacity = (uint32_t)capacity;
    restore_places(conn, places, 0);
    return true;
}

/* Gives memory back that large commands before this one took, once it is several times what is
 * needed. */
static void shrink(struct resp_conn *conn, uint32_t n)
{
    uint64_t needed = (uint64_t)conn->input_n + n;
    struct places places = note_places(conn);

    if (needed < (uint64_t)conn->at + conn->parser.need) {
        needed = (uint64_t)conn->at + conn->parser.need;
    }
    if (needed < INPUT_KEPT_BUSY) {
        needed = INPUT_KEPT_BUSY;
    }
    if (conn->input_capacity / 4 < needed) {
        return;
    }

    uint8_t *input = realloc(conn->input, needed);

    if (input == NULL) {
        return;
    }
    conn->input = input;
    conn->input_capacity = (uint32_t)needed;
    restore_places(conn, places, 0);
}

/* Nothing in the input is needed any more. */
static void empty_input(struct resp_conn *conn, uint32_t kept)
{
    conn->at = conn->input_n = 0;
    if (conn->input_capacity > kept) {
        free(conn->input);
        conn->input = NULL;
        conn->input_capacity = 0;
    }
}

static uint32_t input_max(const struct resp_conn *conn)
{
    uint32_t max = conn_limits(conn)->query_bytes_max;

    return max > INPUT_ENOUGH ? max : INPUT_ENOUGH;
}

bool resp_conn_feed(struct resp_conn *conn, struct bytes bytes)
{
    multi_forget(conn);
    if (conn->out.failed || conn->state == CONN_CLOSING || bytes.n == 0) {
        return true;
    }
    if (conn->input_n - conn->at > input_max(conn)) {
        return false;
    }
    if (conn->at == conn->input_n) {
        empty_input(conn, INPUT_KEPT_BUSY);
    } else {
        compact(conn);
        shrink(conn, bytes.n);
    }
    if (!grow(conn, bytes.n)) {
        return false;
    }
    memcpy(conn->input + conn->input_n, bytes.at, bytes.n);
    conn->input_n += bytes.n;
    return true;
}

bool resp_conn_hungry(const struct resp_conn *conn)
{
    uint32_t unparsed = conn->input_n - conn->at;

    if (conn->out.failed || conn->state == CONN_CLOSING) {
        return false;
    }
    return unparsed < INPUT_ENOUGH || conn->parser.need > unparsed;
}

/* ---- Output ---- */

struct bytes resp_conn_output(const struct resp_conn *conn)
{
    if (conn->out.failed || conn->ready == conn->sent) {
        return bytes_of(NULL, 0);
    }
    return bytes_of(conn->out.at + conn->sent, conn->ready - conn->sent);
}

void conn_empty_output(struct resp_conn *conn)
{
    resp_out_reset(&conn->out);
    conn->sent = conn->ready = 0;
}

void resp_conn_sent(struct resp_conn *conn, uint32_t bytes)
{
    struct resp_out *out = &conn->out;

    if (out->failed) {
        return;
    }
    HK_ASSERT(bytes <= conn->ready - conn->sent);
    conn->sent += bytes;
    if (conn->sent == out->n) {
        conn_empty_output(conn);
    } else if (conn->sent >= OUTPUT_CUT && conn->sent >= out->n - conn->sent) {
        memmove(out->at, out->at + conn->sent, out->n - conn->sent);
        out->n -= conn->sent;
        conn->ready -= conn->sent;
        conn->sent = 0;
    }
    if (conn->in_flight > 0) {
        return;
    }
    if (conn->at == conn->input_n && conn->state == CONN_READY) {
        empty_input(conn, INPUT_KEPT_IDLE);
    } else if (conn->input_capacity > INPUT_KEPT_BUSY) {
        compact(conn);
        shrink(conn, 0);
    }
}

/* ---- What others see ---- */

uint32_t resp_conn_in_flight(const struct resp_conn *conn)
{
    return conn->in_flight;
}

uint64_t resp_conn_bytes_held(const struct resp_conn *conn)
{
    return sizeof *conn + conn->input_capacity + conn->out.capacity + conn->work.keys.capacity +
           conn->work.place.capacity + conn->work.piece.capacity +
           conn->parser.capacity * sizeof conn->parser.args[0] +
           conn->flights_capacity * sizeof conn->flights[0] + strlen(conn->address) +
           strlen(conn->local) + 2 + conn->txn_bytes +
           (conn->watches != NULL ? sizeof *conn->watches + txn_watches_bytes(conn->watches) : 0);
}

void resp_conn_info(const struct resp_conn *conn, struct resp_conn_info *info_out)
{
    const struct resp_command *command = conn->command;

    *info_out = (struct resp_conn_info){
        .id = conn->id,
        .created_us = conn->created_us,
        .last_us = conn->last_us,
        .address = conn->address,
        .local = conn->local,
        .name = conn->name,
        .user = conn->user,
        .library = conn->library,
        .library_version = conn->library_version,
        .command = command == NULL           ? "NULL"
                   : command->parent == NULL ? command->name
                                             : conn->command_name,
        .space = conn->space,
        .resp = conn->out.resp3 ? 3 : 2,
        .commands = conn->commands,
        .input_bytes = conn->input_n - conn->at,
        .output_bytes = conn->out.n - conn->sent,
        .queued = conn->multi != NULL ? (int64_t)conn->multi->commands_n : -1,
        .no_evict = conn->no_evict,
        .no_touch = conn->no_touch,
    };
}
