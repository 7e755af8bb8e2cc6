/* COMMAND: what the table of commands says about itself, in the shapes that Redis 7 gives it. */
#include "resp/commands.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "resp/glob.h"
#include "resp/serve_admin.h"

#define FULL_NAME_MAX 64u

/* "client|list", or "client". */
static struct bytes full_name(const struct resp_command *command, char storage[FULL_NAME_MAX])
{
    int n = command->parent == NULL
                ? snprintf(storage, FULL_NAME_MAX, "%s", command->name)
                : snprintf(storage, FULL_NAME_MAX, "%s|%s", command->parent->name, command->name);
    return bytes_of(storage, (uint32_t)n);
}

static bool is_refused(const struct resp_command *command)
{
    return (command->flags & RESP_REFUSED) != 0;
}

static uint32_t served_subcommands(const struct resp_command *command)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < command->subcommands_n; i++) {
        n += is_refused(&command->subcommands[i]) ? 0 : 1;
    }
    return n;
}

static void write_words(struct resp_out *out, const char *const *words, uint32_t n)
{
    resp_out_set(out, n);
    for (uint32_t i = 0; i < n; i++) {
        resp_out_simple(out, words[i]);
    }
}

/* One key specification: where the keys begin, and how far they go. */
static void write_key_spec(struct resp_out *out, uint16_t flags, int begin, int last, int step)
{
    const char *words[RESP_WORDS_MAX];
    resp_out_map(out, 3);
    resp_out_text(out, "flags");
    write_words(out, words, resp_key_flag_words(flags, words));
    resp_out_text(out, "begin_search");
    resp_out_map(out, 2);
    resp_out_text(out, "type");
    resp_out_text(out, "index");
    resp_out_text(out, "spec");
    resp_out_map(out, 1);
    resp_out_text(out, "index");
    resp_out_number(out, begin);
    resp_out_text(out, "find_keys");
    resp_out_map(out, 2);
    resp_out_text(out, "type");
    resp_out_text(out, "range");
    resp_out_text(out, "spec");
    resp_out_map(out, 3);
    resp_out_text(out, "lastkey");
    resp_out_number(out, last);
    resp_out_text(out, "keystep");
    resp_out_number(out, step);
    resp_out_text(out, "limit");
    resp_out_number(out, 0);
}

static void write_key_specs(struct resp_out *out, const struct resp_command *command)
{
    if (command->first_key == 0) {
        resp_out_set(out, 0);
    } else if (command->key_flags[1] == 0) {
        int last =
            command->last_key < 0 ? command->last_key : command->last_key - command->first_key;
        resp_out_set(out, 1);
        write_key_spec(out, command->key_flags[0], command->first_key, last, command->key_step);
    } else {
        resp_out_set(out, 2);
        write_key_spec(out, command->key_flags[0], command->first_key, 0, 1);
        write_key_spec(out, command->key_flags[1], command->last_key, 0, 1);
    }
}

static void write_info(struct resp_out *out, const struct resp_command *command)
{
    const char *words[RESP_WORDS_MAX];
    char name[FULL_NAME_MAX];
    resp_out_array(out, 10);
    resp_out_bulk(out, full_name(command, name));
    resp_out_number(out, command->arity);
    write_words(out, words, resp_command_flag_words(command, words));
    resp_out_number(out, command->first_key);
    resp_out_number(out, command->last_key);
    resp_out_number(out, command->key_step);
    write_words(out, words, resp_command_category_words(command, words));
    resp_out_set(out, 0); /* tips are for proxies in front of several servers */
    write_key_specs(out, command);
    /* In RESP3 Redis's answer is a set only where there are none. */
    if (served_subcommands(command) == 0) {
        resp_out_set(out, 0);
    } else {
        resp_out_array(out, served_subcommands(command));
    }
    for (uint32_t i = 0; i < command->subcommands_n; i++) {
        if (!is_refused(&command->subcommands[i])) {
            write_info(out, &command->subcommands[i]);
        }
    }
}

static void write_docs(struct resp_out *out, const struct resp_command *command)
{
    uint32_t subcommands = served_subcommands(command);
    char name[FULL_NAME_MAX];
    resp_out_bulk(out, full_name(command, name));
    resp_out_map(out, 4u + (command->arguments != NULL) + (subcommands > 0));
    resp_out_text(out, "summary");
    resp_out_text(out, command->summary);
    resp_out_text(out, "since");
    resp_out_text(out, command->since);
    resp_out_text(out, "group");
    resp_out_text(out, command->group);
    resp_out_text(out, "complexity");
    resp_out_text(out, command->complexity);
    if (command->arguments != NULL) {
        resp_out_text(out, "arguments");
        uint32_t written = resp_arguments_write(command->arguments, out);
        HK_ASSERT(written > 0);
    }
    if (subcommands > 0) {
        resp_out_text(out, "subcommands");
        resp_out_map(out, subcommands);
        for (uint32_t i = 0; i < command->subcommands_n; i++) {
            if (!is_refused(&command->subcommands[i])) {
                write_docs(out, &command->subcommands[i]);
            }
        }
    }
}

void serve_command(struct resp_conn *conn)
{
    resp_out_array(&conn->out, resp_command_count());
    for (uint32_t i = 0; i < resp_command_count(); i++) {
        write_info(&conn->out, resp_command_at(i));
    }
}

void serve_command_count(struct resp_conn *conn)
{
    resp_out_number(&conn->out, resp_command_count());
}

/* Unknown names are null, so that the answer has a place for each argument. */
void serve_command_info(struct resp_conn *conn)
{
    uint32_t n = conn_arguments(conn);
    if (n == 2) {
        serve_command(conn);
        return;
    }
    if (!command_words_fit(conn, 2, "names")) {
        return;
    }
    resp_out_array(&conn->out, n - 2);
    for (uint32_t i = 2; i < n && !conn->out.failed; i++) {
        const struct resp_command *command = resp_command_find_full(conn_argument(conn, i));
        if (command == NULL) {
            resp_out_null(&conn->out);
        } else {
            write_info(&conn->out, command);
        }
    }
}

/* Unknown names are left out: the answer is a map. */
void serve_command_docs(struct resp_conn *conn)
{
    uint32_t n = conn_arguments(conn);
    if (n == 2) {
        resp_out_map(&conn->out, resp_command_count());
        for (uint32_t i = 0; i < resp_command_count(); i++) {
            write_docs(&conn->out, resp_command_at(i));
        }
        return;
    }
    if (!command_words_fit(conn, 2, "names")) {
        return;
    }
    uint32_t known = 0;
    for (uint32_t i = 2; i < n; i++) {
        known += resp_command_find_full(conn_argument(conn, i)) != NULL ? 1 : 0;
    }
    resp_out_map(&conn->out, known);
    for (uint32_t i = 2; i < n && !conn->out.failed; i++) {
        const struct resp_command *command = resp_command_find_full(conn_argument(conn, i));
        if (command != NULL) {
            write_docs(&conn->out, command);
        }
    }
}

/* What COMMAND LIST lets through. */
struct names_filter {
    bool category, pattern, nothing;
    struct bytes text;
};

static bool passes(const struct names_filter *filter, const struct resp_command *command,
                   struct bytes name)
{
    const char *words[RESP_WORDS_MAX];
    if (is_refused(command) || filter->nothing) {
        return false;
    }
    if (filter->pattern) {
        return resp_glob_match(filter->text, name, true);
    }
    if (filter->category) {
        uint32_t n = resp_command_category_words(command, words);
        for (uint32_t i = 0; i < n; i++) {
            if (bytes_are(filter->text, words[i] + 1)) {
                return true;
            }
        }
        return false;
    }
    return true;
}

/* Writes the names that pass; without out only counts them. */
static uint32_t list_names(const struct names_filter *filter, struct resp_out *out)
{
    char storage[FULL_NAME_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < resp_command_count(); i++) {
        const struct resp_command *command = resp_command_at(i);
        for (uint32_t j = 0; j <= command->subcommands_n; j++) {
            const struct resp_command *row = j == 0 ? command : &command->subcommands[j - 1];
            struct bytes name = full_name(row, storage);
            if (passes(filter, row, name)) {
                n++;
                if (out != NULL) {
                    resp_out_bulk(out, name);
                }
            }
        }
    }
    return n;
}

void serve_command_list(struct resp_conn *conn)
{
    struct names_filter filter = {.nothing = false};
    uint32_t n = conn_arguments(conn);
    if (n > 2) {
        if (n != 5 || !conn_argument_is(conn, 2, "filterby")) {
            conn_syntax_error(conn);
            return;
        }
        filter.text = conn_argument(conn, 4);
        if (conn_argument_is(conn, 3, "module")) {
            filter.nothing = true;
        } else if (conn_argument_is(conn, 3, "aclcat")) {
            filter.category = true;
        } else if (conn_argument_is(conn, 3, "pattern") && filter.text.n <= RESP_GLOB_MAX) {
            filter.pattern = true;
        } else {
            conn_syntax_error(conn);
            return;
        }
    }
    resp_out_array(&conn->out, list_names(&filter, NULL));
    (void)list_names(&filter, &conn->out);
}

void serve_command_help(struct resp_conn *conn)
{
    static const char *const lines[] = {
        "COMMAND",
        "(no subcommand)",
        "    Answers what INFO answers, of all commands.",
        "COUNT",
        "    Answers how many commands there are.",
        "DOCS [<command-name> ...]",
        "    Answers summary, group and syntax of the commands, or of all.",
        "GETKEYS <full-command>",
        "    Answers the keys of a whole command.",
        "GETKEYSANDFLAGS <full-command>",
        "    Answers the keys of a whole command and what it does to each.",
        "INFO [<command-name> ...]",
        "    Answers arity, flags and key positions of the commands, or of all.",
        "LIST [FILTERBY (MODULE <module-name>|ACLCAT <category>|PATTERN <pattern>)]",
        "    Answers the names of the commands.",
        NULL};
    command_help(conn, lines);
}

/* The command that the arguments from number 2 on make; NULL after an error. */
static const struct resp_command *asked_command(struct resp_conn *conn)
{
    uint32_t n = conn_arguments(conn) - 2;
    const struct resp_command *command = resp_command_find(conn_argument(conn, 2));
    if (command != NULL && command->subcommands != NULL && n > 1) {
        command = resp_subcommand_find(command, conn_argument(conn, 3));
    }
    if (command == NULL || is_refused(command)) {
        resp_out_error(&conn->out, "ERR Invalid command specified");
        return NULL;
    }
    if (command->first_key == 0) {
        resp_out_error(&conn->out, "ERR The command has no key arguments");
        return NULL;
    }
    if (!resp_command_arity_fits(command, n)) {
        resp_out_error(&conn->out, "ERR Invalid number of arguments specified for command");
        return NULL;
    }
    return command;
}

static void write_keys(struct resp_conn *conn, bool with_flags)
{
    const char *words[RESP_WORDS_MAX];
    const struct resp_command *command = asked_command(conn);
    if (command == NULL) {
        return;
    }
    uint32_t n = conn_arguments(conn) - 2;
    uint32_t first = (uint32_t)command->first_key;
    uint32_t step = (uint32_t)command->key_step;
    uint32_t last =
        command->last_key < 0 ? n - (uint32_t)-command->last_key : (uint32_t)command->last_key;
    resp_out_array(&conn->out, (last - first) / step + 1);
    for (uint32_t at = first; at <= last; at += step) {
        uint16_t flags = command->key_flags[at > first && command->key_flags[1] != 0 ? 1 : 0];
        if (with_flags) {
            resp_out_array(&conn->out, 2);
        }
        resp_out_bulk(&conn->out, conn_argument(conn, at + 2));
        if (with_flags) {
            write_words(&conn->out, words, resp_key_flag_words(flags, words));
        }
    }
}

void serve_command_getkeys(struct resp_conn *conn)
{
    write_keys(conn, false);
}

void serve_command_getkeysandflags(struct resp_conn *conn)
{
    write_keys(conn, true);
}
