/* CONFIG, INFO, TIME, ROLE, SHUTDOWN, SLOWLOG, HORKOS and ACL: what the host knows. */
#include "resp/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "engine/op_number.h"
#include "resp/serve_admin.h"

/* Pairs of one CONFIG SET, words of one HORKOS. */
#define PAIRS_MAX 64u
#define WORDS_MAX 16u
#define SLOW_DEFAULT 10

bool command_words_fit(struct resp_conn *conn, uint32_t first, const char *what)
{
    if (conn_arguments(conn) <= first + COMMAND_WORDS_MAX) {
        return true;
    }
    resp_out_errorf(&conn->out, "ERR more than %u %s", COMMAND_WORDS_MAX, what);
    return false;
}

void command_help(struct resp_conn *conn, const char *const *lines)
{
    char first[96];
    uint32_t n = 0;
    while (lines[n] != NULL) {
        n++;
    }
    resp_out_array(&conn->out, n + 2);
    snprintf(first, sizeof first,
             "%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", lines[0]);
    resp_out_simple(&conn->out, first);
    for (uint32_t i = 1; i < n; i++) {
        resp_out_simple(&conn->out, lines[i]);
    }
    resp_out_simple(&conn->out, "HELP");
    resp_out_simple(&conn->out, "    Prints this help.");
}

void command_text_reply(struct resp_conn *conn, struct resp_out *text)
{
    if (text->failed) {
        conn_operation_error(&conn->out, HK_ERR_NOMEM, 0, false);
    } else {
        resp_out_verbatim(&conn->out, bytes_of(text->at, text->n));
    }
    resp_out_deinit(text);
}

/* The host's verdict on a command that changes something: NULL, or why not. */
static void reply_verdict(struct resp_conn *conn, const char *error)
{
    if (error == NULL) {
        resp_out_simple(&conn->out, "OK");
    } else {
        resp_out_errorf(&conn->out, "ERR %s", error);
    }
}

void serve_acl_help(struct resp_conn *conn)
{
    static const char *const lines[] = {"ACL", "WHOAMI",
                                        "    Answers the name of the connection's user.", NULL};
    command_help(conn, lines);
}

void serve_acl_whoami(struct resp_conn *conn)
{
    resp_out_text(&conn->out, conn->user);
}

void serve_config_help(struct resp_conn *conn)
{
    static const char *const lines[] = {
        "CONFIG",
        "GET <pattern> [<pattern> ...]",
        "    Answers the options whose names match, and their values.",
        "SET <option> <value> [<option> <value> ...]",
        "    Changes all of these options, or none.",
        "RESETSTAT",
        "    Sets the counters of INFO to 0.",
        "REWRITE",
        "    Writes the options in force to the configuration file.",
        NULL};
    command_help(conn, lines);
}

/* The options that matched so far: pairs of bulk strings, ready to be sent. */
struct found {
    struct resp_out pairs;
    uint32_t n;
};

/* Whether the name is among the pairs already. They are read back as they were written: headers of
 * "$n\r\n" before each name and value. */
static bool is_found(const struct found *found, struct bytes name)
{
    const uint8_t *at = found->pairs.at;
    for (uint32_t i = 0; i < found->n * 2; i++) {
        uint32_t n = 0;
        for (at++; *at != '\r'; at++) {
            n = n * 10 + (uint32_t)(*at - '0');
        }
        at += 2;
        if (i % 2 == 0 && bytes_equal(name, bytes_of(at, n))) {
            return true;
        }
        at += n + 2;
    }
    return false;
}

static void add_option(void *context, struct bytes name, struct bytes value)
{
    struct found *found = context;
    if (found->pairs.failed || is_found(found, name)) {
        return;
    }
    resp_out_bulk(&found->pairs, name);
    resp_out_bulk(&found->pairs, value);
    found->n++;
}

/* An option that several patterns match is answered once. */
void serve_config_get(struct resp_conn *conn)
{
    const struct resp_host *host = conn->host;
    struct found found = {.n = 0};
    uint32_t n = conn_arguments(conn);
    if (host->config_get == NULL) {
        conn_unavailable_error(conn);
        return;
    }
    if (!command_words_fit(conn, 2, "patterns")) {
        return;
    }
    resp_out_init(&found.pairs, conn->out.max);
    for (uint32_t i = 2; i < n; i++) {
        (void)host->config_get(host->context, conn_argument(conn, i), add_option, &found);
    }
    if (found.pairs.failed) {
        conn_operation_error(&conn->out, HK_ERR_NOMEM, 0, false);
    } else {
        resp_out_map(&conn->out, found.n);
        resp_out_raw(&conn->out, bytes_of(found.pairs.at, found.pairs.n));
    }
    resp_out_deinit(&found.pairs);
}

void serve_config_set(struct resp_conn *conn)
{
    const struct resp_host *host = conn->host;
    struct bytes names[PAIRS_MAX];
    struct bytes values[PAIRS_MAX];
    uint32_t n = (conn_arguments(conn) - 2) / 2;
    if (conn_arguments(conn) % 2 != 0) {
        conn_syntax_error(conn);
        return;
    }
    if (host->config_set == NULL) {
        conn_unavailable_error(conn);
        return;
    }
    if (n > PAIRS_MAX) {
        resp_out_errorf(&conn->out, "ERR more than %u options", PAIRS_MAX);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        names[i] = conn_argument(conn, 2 + 2 * i);
        values[i] = conn_argument(conn, 3 + 2 * i);
    }
    reply_verdict(conn, host->config_set(host->context, n, names, values));
}

void serve_config_resetstat(struct resp_conn *conn)
{
    if (conn->host->reset_stats == NULL) {
        conn_unavailable_error(conn);
        return;
    }
    conn->host->reset_stats(conn->host->context);
    resp_out_simple(&conn->out, "OK");
}

void serve_config_rewrite(struct resp_conn *conn)
{
    if (conn->host->config_rewrite == NULL) {
        conn_unavailable_error(conn);
        return;
    }
    reply_verdict(conn, conn->host->config_rewrite(conn->host->context));
}

static bool is_listed(const char *section, const char *const *sections)
{
    for (uint32_t i = 0; sections[i] != NULL; i++) {
        if (strcmp(section, sections[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether INFO's arguments ask for a section; without arguments those of the default. */
static bool is_asked(const struct resp_conn *conn, const char *section, const char *const *usual)
{
    uint32_t n = conn_arguments(conn);
    for (uint32_t i = 1; i < n; i++) {
        if (conn_argument_is(conn, i, section) || conn_argument_is(conn, i, "all") ||
            conn_argument_is(conn, i, "everything") ||
            (conn_argument_is(conn, i, "default") && is_listed(section, usual))) {
            return true;
        }
    }
    return n == 1 && is_listed(section, usual);
}

/* Each section once, in its fixed order, whatever the order of the arguments; unknown ones are
 * empty. */
void serve_info(struct resp_conn *conn)
{
    const struct resp_host *host = conn->host;
    struct resp_out text;
    if (host->info == NULL || host->info_sections == NULL) {
        conn_unavailable_error(conn);
        return;
    }
    if (!command_words_fit(conn, 1, "sections")) {
        return;
    }
    const char *const *sections = host->info_sections(host->context, true);
    const char *const *usual = host->info_sections(host->context, false);
    resp_out_init(&text, conn->out.max);
    for (uint32_t i = 0; sections[i] != NULL; i++) {
        if (is_asked(conn, sections[i], usual)) {
            uint32_t mark = text.n;
            if (mark > 0) {
                resp_out_raw(&text, bytes_of("\r\n", 2));
            }
            if (!host->info(host->context, sections[i], &text)) {
                resp_out_rewind(&text, mark);
            }
        }
    }
    command_text_reply(conn, &text);
}

void serve_time(struct resp_conn *conn)
{
    char digits[24];
    uint64_t now_us = conn->host->wall_us(conn->host->context);
    resp_out_array(&conn->out, 2);
    snprintf(digits, sizeof digits, "%" PRIu64, now_us / 1000000);
    resp_out_text(&conn->out, digits);
    snprintf(digits, sizeof digits, "%" PRIu64, now_us % 1000000);
    resp_out_text(&conn->out, digits);
}

/* There is no stream of replication that a client could follow: offset 0, and no replicas of it. */
void serve_role(struct resp_conn *conn)
{
    resp_out_array(&conn->out, 3);
    resp_out_text(&conn->out, "master");
    resp_out_number(&conn->out, 0);
    resp_out_array(&conn->out, 0);
}

/* As in Redis, who succeeds hears nothing: the connection ends. */
void serve_shutdown(struct resp_conn *conn)
{
    static const char *const words[] = {"nosave", "save", "now", "force", "abort"};
    enum { NOSAVE, SAVE, NOW, FORCE, ABORT, WORDS };
    bool given[WORDS] = {false};
    const struct resp_host *host = conn->host;
    uint32_t n = conn_arguments(conn);
    for (uint32_t i = 1; i < n; i++) {
        uint32_t word = 0;
        while (word < WORDS && !conn_argument_is(conn, i, words[word])) {
            word++;
        }
        if (word == WORDS) {
            conn_syntax_error(conn);
            return;
        }
        given[word] = true;
    }
    if ((given[ABORT] && n > 2) || (given[SAVE] && given[NOSAVE])) {
        conn_syntax_error(conn);
    } else if (given[ABORT]) {
        resp_out_error(&conn->out, "ERR No shutdown in progress.");
    } else if (given[SAVE]) {
        resp_out_error(&conn->out, "ERR SHUTDOWN SAVE is not supported: there are no backups, all "
                                   "data is in the memory of the replicas");
    } else if (host->shutdown == NULL) {
        conn_unavailable_error(conn);
    } else {
        const char *error = host->shutdown(host->context, given[NOW]);
        if (error != NULL) {
            reply_verdict(conn, error);
        } else {
            conn->close = true;
        }
    }
}

void serve_slowlog_help(struct resp_conn *conn)
{
    static const char *const lines[] = {
        "SLOWLOG",
        "GET [<count>]",
        "    Answers the newest slow commands (default: 10; -1: all). Each is an array of",
        "    number, time in seconds since 1970, duration in microseconds, arguments,",
        "    address of the client, name of the client.",
        "LEN",
        "    Answers how many slow commands are kept.",
        "RESET",
        "    Forgets them.",
        NULL};
    command_help(conn, lines);
}

void serve_slowlog_get(struct resp_conn *conn)
{
    int64_t n = SLOW_DEFAULT;
    if (conn_arguments(conn) > 3) {
        resp_out_error(&conn->out, "ERR unknown subcommand or wrong number of arguments for 'GET'. "
                                   "Try SLOWLOG HELP.");
        return;
    }
    if (conn_arguments(conn) == 3 &&
        (!op_integer_parse(conn_argument(conn, 2), &n) || n < -1 || n > INT32_MAX)) {
        resp_out_error(&conn->out, "ERR count should be greater than or equal to -1");
        return;
    }
    if (conn->host->slow_get == NULL) {
        conn_unavailable_error(conn);
        return;
    }
    conn->host->slow_get(conn->host->context, n, &conn->out);
}

void serve_slowlog_len(struct resp_conn *conn)
{
    if (conn->host->slow_length == NULL) {
        conn_unavailable_error(conn);
        return;
    }
    resp_out_number(&conn->out, (int64_t)conn->host->slow_length(conn->host->context));
}

void serve_slowlog_reset(struct resp_conn *conn)
{
    if (conn->host->slow_reset == NULL) {
        conn_unavailable_error(conn);
        return;
    }
    conn->host->slow_reset(conn->host->context);
    resp_out_simple(&conn->out, "OK");
}

void serve_horkos(struct resp_conn *conn)
{
    struct bytes args[WORDS_MAX];
    uint32_t n = conn_arguments(conn) - 1;
    if (conn->host->horkos == NULL) {
        conn_unavailable_error(conn);
        return;
    }
    if (n > WORDS_MAX) {
        conn_arity_error(conn);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        args[i] = conn_argument(conn, i + 1);
    }
    if (!conn->host->horkos(conn->host->context, conn->space, n, args, &conn->out)) {
        conn_subcommand_error(conn);
    }
}
