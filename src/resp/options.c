#include "resp/options.h"

#include "engine/op_number.h"
#include "resp/commands.h"

int64_t conn_wall_ms(const struct resp_conn *conn)
{
    return (int64_t)(conn->host->wall_us(conn->host->context) / 1000u);
}

bool conn_argument_is(const struct resp_conn *conn, uint32_t index, const char *word)
{
    return bytes_are(conn_argument(conn, index), word);
}

bool conn_integer(struct resp_conn *conn, uint32_t index, int64_t *number_out)
{
    if (op_integer_parse(conn_argument(conn, index), number_out)) {
        return true;
    }
    resp_out_error(&conn->out, "ERR value is not an integer or out of range");
    return false;
}

/* ---- Deadlines ---- */

enum deadline_read deadline_read_expire(const struct resp_conn *conn, struct bytes text,
                                        enum deadline_from from, enum deadline_unit unit,
                                        int64_t *deadline_ms_out)
{
    int64_t base_ms = from == DEADLINE_RELATIVE ? conn_wall_ms(conn) : 0;
    int64_t ms = 0;

    if (!op_integer_parse(text, &ms)) {
        return DEADLINE_NO_INTEGER;
    }
    if ((unit == DEADLINE_SECONDS && __builtin_mul_overflow(ms, 1000, &ms)) ||
        __builtin_add_overflow(ms, base_ms, &ms)) {
        return DEADLINE_INVALID;
    }
    *deadline_ms_out = ms;
    return DEADLINE_OK;
}

enum deadline_read deadline_read(const struct resp_conn *conn, struct bytes text,
                                 enum deadline_from from, enum deadline_unit unit,
                                 int64_t *deadline_ms_out)
{
    int64_t given = 0;

    if (!op_integer_parse(text, &given)) {
        return DEADLINE_NO_INTEGER;
    }
    if (given <= 0) {
        return DEADLINE_INVALID;
    }
    return deadline_read_expire(conn, text, from, unit, deadline_ms_out);
}

void deadline_error(struct resp_out *out, enum deadline_read read, const char *name)
{
    if (read == DEADLINE_NO_INTEGER) {
        resp_out_error(out, "ERR value is not an integer or out of range");
    } else {
        resp_out_errorf(out, "ERR invalid expire time in '%s' command", name);
    }
}

/* ---- SET, GETEX ---- */

/* Options that exclude each other; the same one twice is allowed, as in Redis. */
enum lifetime { LIFE_NONE, LIFE_KEEPTTL, LIFE_PERSIST, LIFE_EX, LIFE_PX, LIFE_EXAT, LIFE_PXAT };

static const struct {
    const char *word;
    enum lifetime lifetime;
    bool set, getex;
    bool time; /* an argument follows */
    enum deadline_from from;
    enum deadline_unit unit;
} lifetimes[] = {
    {"keepttl", LIFE_KEEPTTL, true, false, false, DEADLINE_RELATIVE, DEADLINE_MS},
    {"persist", LIFE_PERSIST, false, true, false, DEADLINE_RELATIVE, DEADLINE_MS},
    {"ex", LIFE_EX, true, true, true, DEADLINE_RELATIVE, DEADLINE_SECONDS},
    {"px", LIFE_PX, true, true, true, DEADLINE_RELATIVE, DEADLINE_MS},
    {"exat", LIFE_EXAT, true, true, true, DEADLINE_ABSOLUTE, DEADLINE_SECONDS},
    {"pxat", LIFE_PXAT, true, true, true, DEADLINE_ABSOLUTE, DEADLINE_MS},
};

/* The options as they are read, argument by argument. */
struct option_reader {
    struct resp_conn *conn;
    uint32_t at;
    enum set_options_of of;
    enum lifetime lifetime;
    struct set_options *options;
};

static bool read_lifetime(struct option_reader *r)
{
    for (uint32_t i = 0; i < sizeof lifetimes / sizeof lifetimes[0]; i++) {
        if (!conn_argument_is(r->conn, r->at, lifetimes[i].word) ||
            !(r->of == OPTIONS_SET ? lifetimes[i].set : lifetimes[i].getex)) {
            continue;
        }
        if (r->lifetime != LIFE_NONE && r->lifetime != lifetimes[i].lifetime) {
            return false;
        }
        r->lifetime = lifetimes[i].lifetime;
        r->options->persist = r->lifetime == LIFE_PERSIST;
        if (r->lifetime == LIFE_KEEPTTL) {
            r->options->flags |= OPF_KEEPTTL;
        }
        if (!lifetimes[i].time) {
            return true;
        }
        if (++r->at == conn_arguments(r->conn)) {
            return false;
        }
        r->options->flags |= OPF_DEADLINE;
        r->options->deadline = conn_argument(r->conn, r->at);
        r->options->from = lifetimes[i].from;
        r->options->unit = lifetimes[i].unit;
        return true;
    }
    return false;
}

/* NX, XX and IFEQ exclude each other. */
static bool read_condition(struct option_reader *r, uint16_t flag)
{
    uint16_t others = (uint16_t)((OPF_NX | OPF_XX | OPF_IFEQ) & ~flag);

    if ((r->options->flags & others) != 0) {
        return false;
    }
    r->options->flags |= flag;
    if (flag == OPF_IFEQ) {
        if (++r->at == conn_arguments(r->conn)) {
            return false;
        }
        r->options->ifeq = conn_argument(r->conn, r->at);
    }
    return true;
}

static bool read_option(struct option_reader *r)
{
    if (r->of == OPTIONS_SET) {
        if (conn_argument_is(r->conn, r->at, "nx")) {
            return read_condition(r, OPF_NX);
        }
        if (conn_argument_is(r->conn, r->at, "xx")) {
            return read_condition(r, OPF_XX);
        }
        if (conn_argument_is(r->conn, r->at, "ifeq")) {
            return read_condition(r, OPF_IFEQ);
        }
        if (conn_argument_is(r->conn, r->at, "get")) {
            r->options->flags |= OPF_GET;
            return true;
        }
    }
    return read_lifetime(r);
}

bool set_options_read(struct resp_conn *conn, uint32_t first, enum set_options_of of,
                      struct set_options *options_out)
{
    struct option_reader r = {.conn = conn, .at = first, .of = of, .options = options_out};

    *options_out = (struct set_options){.flags = 0};
    for (; r.at < conn_arguments(conn); r.at++) {
        if (!read_option(&r)) {
            conn_syntax_error(conn);
            return false;
        }
    }
    return true;
}

/* ---- EXPIRE ---- */

bool expire_options_read(struct resp_conn *conn, uint32_t first, uint16_t *flags_out)
{
    static const struct {
        const char *word;
        uint16_t flag;
    } options[] = {{"nx", OPF_NX}, {"xx", OPF_XX}, {"gt", OPF_GT}, {"lt", OPF_LT}};
    uint16_t flags = 0;

    for (uint32_t i = first; i < conn_arguments(conn); i++) {
        struct bytes word = conn_argument(conn, i);
        uint16_t flag = 0;

        for (uint32_t j = 0; j < sizeof options / sizeof options[0]; j++) {
            flag |= bytes_are(word, options[j].word) ? options[j].flag : 0;
        }
        if (flag == 0) {
            word = command_printable(word, COMMAND_WORD_MAX);
            resp_out_errorf(&conn->out, "ERR Unsupported option %.*s", (int)word.n,
                            (const char *)word.at);
            return false;
        }
        flags |= flag;
    }
    if ((flags & OPF_NX) != 0 && (flags & (OPF_XX | OPF_GT | OPF_LT)) != 0) {
        resp_out_error(&conn->out,
                       "ERR NX and XX, GT or LT options at the same time are not compatible");
        return false;
    }
    if ((flags & OPF_GT) != 0 && (flags & OPF_LT) != 0) {
        resp_out_error(&conn->out, "ERR GT and LT options at the same time are not compatible");
        return false;
    }
    *flags_out = flags;
    return true;
}
