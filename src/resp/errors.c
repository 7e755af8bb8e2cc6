/* What clients are told when something goes wrong: in Redis's words where it has some, because
 * client libraries look at the first one and people search the web for the rest. */
#include "resp/commands.h"

#include <stdio.h>

#include "base/err.h"

bool bytes_are(struct bytes text, const char *word)
{
    uint32_t i = 0;

    for (; i < text.n && word[i] != '\0'; i++) {
        uint8_t c = text.at[i];

        if (c >= 'A' && c <= 'Z') {
            c = (uint8_t)(c - 'A' + 'a');
        }
        if (c != (uint8_t)word[i]) {
            return false;
        }
    }
    return i == text.n && word[i] == '\0';
}

void conn_syntax_error(struct resp_conn *conn)
{
    resp_out_error(&conn->out, "ERR syntax error");
}

const char *conn_command_name(struct resp_conn *conn, const struct resp_command *command)
{
    if (command->parent == NULL) {
        return command->name;
    }
    (void)snprintf(conn->command_name, sizeof conn->command_name, "%s|%s", command->parent->name,
                   command->name);
    return conn->command_name;
}

void conn_arity_error(struct resp_conn *conn)
{
    resp_out_errorf(&conn->out, "ERR wrong number of arguments for '%s' command",
                    conn_command_name(conn, conn->command));
}

struct bytes command_printable(struct bytes word, uint32_t max)
{
    uint32_t n = word.n < max ? word.n : max;
    const uint8_t *zero = n > 0 ? memchr(word.at, '\0', n) : NULL;

    return bytes_of(word.n > 0 ? (const void *)word.at : "",
                    zero != NULL ? (uint32_t)(zero - word.at) : n);
}

void conn_subcommand_error(struct resp_conn *conn)
{
    struct bytes name = command_printable(conn_argument(conn, 1), COMMAND_WORD_MAX);
    const struct resp_command *parent =
        conn->command->parent != NULL ? conn->command->parent : conn->command;
    char upper[32];
    uint32_t n = 0;

    for (; parent->name[n] != '\0' && n < sizeof upper - 1; n++) {
        char c = parent->name[n];

        upper[n] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    upper[n] = '\0';
    resp_out_errorf(&conn->out, "ERR unknown subcommand '%.*s'. Try %s HELP.", (int)name.n,
                    (const char *)name.at, upper);
}

void conn_unknown_error(struct resp_conn *conn)
{
    char arguments[2 * COMMAND_WORD_MAX] = "";
    uint32_t n = 0;
    struct bytes name = command_printable(conn_argument(conn, 0), COMMAND_WORD_MAX);

    for (uint32_t i = 1; i < conn_arguments(conn) && n < COMMAND_WORD_MAX; i++) {
        struct bytes argument = command_printable(conn_argument(conn, i), COMMAND_WORD_MAX - n);
        int wrote = snprintf(arguments + n, sizeof arguments - n, "'%.*s' ", (int)argument.n,
                             (const char *)argument.at);

        if (wrote < 0) {
            break;
        }
        n += (uint32_t)wrote;
    }
    resp_out_errorf(&conn->out, "ERR unknown command '%.*s', with args beginning with: %s",
                    (int)name.n, (const char *)name.at, arguments);
}

void conn_unavailable_error(struct resp_conn *conn)
{
    resp_out_errorf(&conn->out, "ERR '%s' is not available here",
                    conn_command_name(conn, conn->command));
}

void conn_several_keys_error(struct resp_conn *conn)
{
    resp_out_errorf(&conn->out,
                    "ERR '%s' over several keys would not be atomic in space %u (engine %s); "
                    "that is for spaces of the engines zeus and lotus; nothing changed",
                    conn_command_name(conn, conn->command), conn->space,
                    command_engine(conn, conn->space));
}

void conn_no_order_error(struct resp_conn *conn)
{
    resp_out_errorf(&conn->out,
                    "ERR '%s' is not supported in space %u (engine %s): keys have an order in "
                    "spaces of the engine lotus",
                    conn_command_name(conn, conn->command), conn->space,
                    command_engine(conn, conn->space));
}

#define PARTLY " (for one key; others of the command may be changed)"

/* Redis's own texts all mean that nothing changed. */
#define TOO_WIDE                                                                                   \
    "ERR the range is too large for one step, which meets at most 65535 keys and 64 MiB, "         \
    "counting "                                                                                    \
    "up to LIMIT at each memory server: give a LIMIT, or a smaller one; nothing changed"

static const char *operation_text(int error, uint8_t op_kind)
{
    switch (error) {
    case HK_ERR_NOMEM:
        return "OOM command not allowed when used memory > 'maxmemory'.";
    case HK_ERR_TYPE:
        return op_kind == OP_ADD_FLOAT ? "ERR value is not a valid float"
                                       : "ERR value is not an integer or out of range";
    case HK_ERR_OVERFLOW:
        return op_kind == OP_ADD_FLOAT ? "ERR increment would produce NaN or Infinity"
                                       : "ERR increment or decrement would overflow";
    case HK_ERR_TOOBIG:
        return op_kind >= TXN_OP_RANGE
                   ? TOO_WIDE
                   : "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    case HK_ERR_UNAVAILABLE:
        return "CLUSTERDOWN this node has no majority behind it; nothing changed";
    case HK_ERR_LOADING:
        return "LOADING this node is joining and copies the data set; nothing changed";
    case HK_ERR_UNKNOWN:
        return "UNKNOWN the outcome is not known: the change may or may not have been made";
    case HK_ERR_BUSY:
        return "TRYAGAIN others changed this key all the time; nothing changed";
    case HK_ERR_LOST:
        return "LOST all nodes that had this object are gone, and it with them; nothing changed";
    case HK_ERR_ROLE:
        return "NOROLE this node has the role memory and runs no transactions, or no node has the "
               "role memory or both; nothing changed";
    case HK_ERR_FULL:
        return "TRYAGAIN this node has too much to do; nothing changed";
    default:
        return NULL;
    }
}

void conn_operation_error(struct resp_out *out, int error, uint8_t op_kind, bool partly)
{
    const char *text = operation_text(error, op_kind);
    const char *partly_text = partly ? PARTLY : "";

    if (text != NULL) {
        resp_out_errorf(out, "%s%s", text, partly_text);
    } else {
        resp_out_errorf(out, "ERR %s; nothing changed%s", hk_err_text(error), partly_text);
    }
}

void conn_answer_error(struct resp_conn *conn, const struct answer *answer, uint8_t op_kind,
                       bool partly)
{
    struct resp_out *out = &conn->out;

    if (answer->number == HK_ERR_NOTFOUND && op_kind == TXN_OP_RENAME) {
        resp_out_error(out, "ERR no such key");
    } else if (answer->number == HK_ERR_LOSTSLOT && conn_has_transactions(conn) &&
               !conn_is_ordered(conn, conn->space)) {
        resp_out_errorf(out,
                        "LOST the nodes that had this key are gone, and the key with them; nothing "
                        "changed%s",
                        partly ? PARTLY : "");
    } else if (answer->number == HK_ERR_LOSTSLOT) {
        resp_out_errorf(out,
                        "LOSTSLOT %u the node that had the keys of this slot is gone, and the keys "
                        "with it; nothing changed%s",
                        answer->slot, partly ? PARTLY : "");
    } else if (answer->number == HK_ERR_INVALID && conn_is_ordered(conn, conn->space)) {
        resp_out_errorf(out,
                        "ERR keys of this space (engine lotus) have at least one byte; nothing "
                        "changed");
    } else {
        conn_operation_error(out, (int)answer->number, op_kind, partly);
    }
}

int command_serving(const struct resp_conn *conn)
{
    return conn->host->serving != NULL ? conn->host->serving(conn->host->context) : HK_OK;
}

bool command_may_look(struct resp_conn *conn)
{
    int error = command_serving(conn);
    if (error != HK_OK) {
        conn_operation_error(&conn->out, error, OP_GET, false);
    }
    return error == HK_OK;
}
