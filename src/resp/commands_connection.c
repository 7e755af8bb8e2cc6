/* PING, ECHO, QUIT, RESET, HELLO, AUTH, SELECT, READONLY and READWRITE. */
#include "resp/commands.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "engine/op_number.h"
#include "resp/serve_admin.h"

#define DEFAULT_USER "default"

static const char wrong_password[] =
    "WRONGPASS invalid username-password pair or user is disabled.";

void serve_ping(struct resp_conn *conn)
{
    if (conn_arguments(conn) > 2) {
        conn_arity_error(conn);
    } else if (conn_arguments(conn) == 2) {
        resp_out_bulk(&conn->out, conn_argument(conn, 1));
    } else {
        resp_out_simple(&conn->out, "PONG");
    }
}

void serve_echo(struct resp_conn *conn)
{
    resp_out_bulk(&conn->out, conn_argument(conn, 1));
}

void serve_ok(struct resp_conn *conn)
{
    resp_out_simple(&conn->out, "OK");
}

void serve_quit(struct resp_conn *conn)
{
    conn->multi_refused = false;
    conn_end_multi(conn);
    resp_out_simple(&conn->out, "OK");
    conn->close = true;
}

void command_changed(struct resp_conn *conn)
{
    if (conn->host->changed != NULL) {
        conn->host->changed(conn->host->context, conn);
    }
}

bool command_auth_required(const struct resp_conn *conn)
{
    return conn->host->auth_required != NULL && conn->host->auth_required(conn->host->context);
}

void serve_reset(struct resp_conn *conn)
{
    conn->out.resp3 = false;
    conn->space = 0;
    conn->name[0] = '\0';
    snprintf(conn->user, sizeof conn->user, "%s", DEFAULT_USER);
    conn->authenticated = !command_auth_required(conn);
    conn->reply_off = conn->reply_skip = conn->silent = false;
    conn->multi_refused = false;
    conn_end_multi(conn);
    conn->since_us = 0;
    conn->no_evict = conn->no_touch = false;
    command_changed(conn);
    resp_out_simple(&conn->out, "RESET");
}

/* A NUL would let a longer name pass for the shorter one that the rest of the process sees. */
bool command_text(struct bytes bytes, char *text_out, uint32_t capacity)
{
    if (bytes.n >= capacity || (bytes.n > 0 && memchr(bytes.at, '\0', bytes.n) != NULL)) {
        return false;
    }
    if (bytes.n > 0) {
        memcpy(text_out, bytes.at, bytes.n);
    }
    text_out[bytes.n] = '\0';
    return true;
}

/* Whether the pair is right; changes nothing. */
static bool proves(struct resp_conn *conn, struct bytes user, struct bytes secret,
                   char name_out[RESP_USER_MAX + 1])
{
    return command_text(user, name_out, RESP_USER_MAX + 1) && conn->host->auth != NULL &&
           conn->host->auth(conn->host->context, user, secret) == RESP_AUTH_OK;
}

void serve_auth(struct resp_conn *conn)
{
    char name[RESP_USER_MAX + 1];
    uint32_t n = conn_arguments(conn);
    struct bytes user = bytes_of(DEFAULT_USER, sizeof DEFAULT_USER - 1);
    if (n > 3) {
        conn_syntax_error(conn);
        return;
    }
    if (n == 2 && !command_auth_required(conn)) {
        resp_out_error(&conn->out, "ERR AUTH <password> called without any password configured for "
                                   "the default user. Are you sure your configuration is correct?");
        return;
    }
    if (n == 3) {
        user = conn_argument(conn, 1);
    }
    if (!proves(conn, user, conn_argument(conn, n - 1), name)) {
        resp_out_error(&conn->out, wrong_password);
        return;
    }
    conn->authenticated = true;
    memcpy(conn->user, name, sizeof name);
    command_changed(conn);
    resp_out_simple(&conn->out, "OK");
}

bool command_name_fits(struct resp_conn *conn, struct bytes name, const char *what)
{
    for (uint32_t i = 0; i < name.n; i++) {
        if (name.at[i] < '!' || name.at[i] > '~') {
            resp_out_errorf(&conn->out,
                            "ERR %s cannot contain spaces, newlines or special characters.", what);
            return false;
        }
    }
    if (name.n > RESP_NAME_MAX) {
        resp_out_errorf(&conn->out, "ERR %s cannot be longer than %u bytes", what, RESP_NAME_MAX);
        return false;
    }
    return true;
}

void command_set_name(char name_out[RESP_NAME_MAX + 1], struct bytes name)
{
    bool fits = command_text(name, name_out, RESP_NAME_MAX + 1);
    HK_ASSERT(fits);
}

/* What a HELLO asks for, before any of it is done. */
struct hello {
    bool resp3;
    bool auth, rename;
    struct bytes user, secret, name;
};

static bool hello_version(struct resp_conn *conn, struct hello *hello)
{
    int64_t version;
    if (!op_integer_parse(conn_argument(conn, 1), &version)) {
        resp_out_error(&conn->out, "ERR Protocol version is not an integer or out of range");
        return false;
    }
    if (version != 2 && version != 3) {
        resp_out_error(&conn->out, "NOPROTO unsupported protocol version");
        return false;
    }
    hello->resp3 = version == 3;
    return true;
}

static bool hello_options(struct resp_conn *conn, struct hello *hello)
{
    uint32_t n = conn_arguments(conn);
    for (uint32_t i = 2; i < n; i++) {
        if (conn_argument_is(conn, i, "auth") && i + 2 < n) {
            hello->auth = true;
            hello->user = conn_argument(conn, i + 1);
            hello->secret = conn_argument(conn, i + 2);
            i += 2;
        } else if (conn_argument_is(conn, i, "setname") && i + 1 < n) {
            hello->rename = true;
            hello->name = conn_argument(conn, i + 1);
            if (!command_name_fits(conn, hello->name, "Client names")) {
                return false;
            }
            i++;
        } else {
            struct bytes option = command_printable(conn_argument(conn, i), COMMAND_WORD_MAX);
            resp_out_errorf(&conn->out, "ERR Syntax error in HELLO option '%.*s'", (int)option.n,
                            (const char *)option.at);
            return false;
        }
    }
    return true;
}

static void hello_reply(struct resp_conn *conn)
{
    struct resp_out *out = &conn->out;
    resp_out_map(out, 7);
    resp_out_text(out, "server");
    resp_out_text(out, "redis");
    resp_out_text(out, "version");
    resp_out_text(out, RESP_REDIS_VERSION);
    resp_out_text(out, "proto");
    resp_out_number(out, out->resp3 ? 3 : 2);
    resp_out_text(out, "id");
    resp_out_number(out, (int64_t)conn->id);
    resp_out_text(out, "mode");
    resp_out_text(out, "standalone");
    resp_out_text(out, "role");
    resp_out_text(out, "master");
    resp_out_text(out, "modules");
    resp_out_array(out, 0);
}

/* All is checked before anything changes. */
void serve_hello(struct resp_conn *conn)
{
    char user[RESP_USER_MAX + 1];
    struct hello hello = {.resp3 = conn->out.resp3};
    if (conn_arguments(conn) > 1 &&
        (!hello_version(conn, &hello) || !hello_options(conn, &hello))) {
        return;
    }
    if (hello.auth && !proves(conn, hello.user, hello.secret, user)) {
        resp_out_error(&conn->out, wrong_password);
        return;
    }
    if (!hello.auth && !conn->authenticated && command_auth_required(conn)) {
        resp_out_error(
            &conn->out,
            "NOAUTH HELLO must be called with the client already authenticated, otherwise "
            "the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the "
            "client and select the RESP protocol version at the same time");
        return;
    }
    if (hello.auth) {
        conn->authenticated = true;
        memcpy(conn->user, user, sizeof user);
    }
    if (hello.rename) {
        command_set_name(conn->name, hello.name);
    }
    conn->out.resp3 = hello.resp3;
    command_changed(conn);
    hello_reply(conn);
}

/* "0 (hermes), 1 (zeus)" */
static void list_spaces(const struct resp_conn *conn, char *text, size_t capacity)
{
    uint32_t spaces = command_spaces(conn);
    size_t n = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < 32 && n < capacity; i++) {
        if ((spaces >> i & 1u) != 0) {
            int more = snprintf(text + n, capacity - n, "%s%u (%s)", n > 0 ? ", " : "", i,
                                command_engine(conn, i));
            n += more > 0 ? (size_t)more : 0;
        }
    }
}

uint32_t command_spaces(const struct resp_conn *conn)
{
    return conn->host->spaces != NULL ? conn->host->spaces(conn->host->context) : 1;
}

const char *command_engine(const struct resp_conn *conn, uint32_t space)
{
    const struct resp_host *host = conn->host;
    const char *engine = host->engine != NULL ? host->engine(host->context, space) : NULL;
    return engine != NULL ? engine : "unknown";
}

void serve_select(struct resp_conn *conn)
{
    int64_t space;
    char spaces[512];
    if (!conn_integer(conn, 1, &space)) {
        return;
    }
    if (space < 0 || space >= 32 || (command_spaces(conn) >> space & 1u) == 0) {
        list_spaces(conn, spaces, sizeof spaces);
        resp_out_errorf(&conn->out, "ERR DB index is out of range: there is %s", spaces);
        return;
    }
    conn->space = (uint32_t)space;
    command_changed(conn);
    resp_out_simple(&conn->out, "OK");
}
