#include "sim/redis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"

/* ---- Commands ---- */

#define ARGUMENTS_MAX 8u

struct command {
    struct bytes args[ARGUMENTS_MAX];
    uint32_t n;
    char number[24];
};

static void add(struct command *c, struct bytes bytes)
{
    HK_ASSERT(c->n < ARGUMENTS_MAX);
    c->args[c->n++] = bytes;
}

static void add_text(struct command *c, const char *text)
{
    add(c, bytes_of(text, (uint32_t)strlen(text)));
}

static void add_number(struct command *c, int64_t number)
{
    int n = snprintf(c->number, sizeof c->number, "%" PRId64, number);
    HK_ASSERT(n > 0);
    add(c, bytes_of(c->number, (uint32_t)n));
}

static void add_set(struct command *c, const struct op *op)
{
    add(c, op->value);
    if ((op->flags & OPF_NX) != 0) {
        add_text(c, "NX");
    }
    if ((op->flags & OPF_XX) != 0) {
        add_text(c, "XX");
    }
    if ((op->flags & OPF_IFEQ) != 0) {
        add_text(c, "IFEQ");
        add(c, op->arg);
    }
    if ((op->flags & OPF_GET) != 0) {
        add_text(c, "GET");
    }
    if ((op->flags & OPF_KEEPTTL) != 0) {
        add_text(c, "KEEPTTL");
    }
    if ((op->flags & OPF_DEADLINE) != 0) {
        add_text(c, "PXAT");
        add_number(c, op->number);
    }
}

static void add_getex(struct command *c, const struct op *op)
{
    if (op->number == 0) {
        add_text(c, "PERSIST");
    } else {
        add_text(c, "PXAT");
        add_number(c, op->number);
    }
}

static const char *const names[OP_KINDS] = {
    [OP_GET] = "GET",
    [OP_EXISTS] = "EXISTS",
    [OP_SET] = "SET",
    [OP_DELETE] = "DEL",
    [OP_DELETE_IF] = "DELIFEQ",
    [OP_ADD] = "INCRBY",
    [OP_ADD_FLOAT] = "INCRBYFLOAT",
    [OP_APPEND] = "APPEND",
    [OP_SETRANGE] = "SETRANGE",
    [OP_EXPIRE] = "PEXPIREAT",
    [OP_PERSIST] = "PERSIST",
    [OP_GETSET] = "GETSET",
    [OP_GETDEL] = "GETDEL",
    [OP_GETEX] = "GETEX",
    [OP_STRLEN] = "STRLEN",
    [OP_DEADLINE] = "PEXPIRETIME",
};

bool redis_can_say(const struct op *op)
{
    return op->kind < OP_KINDS && names[op->kind] != NULL &&
           (op->kind != OP_DELETE || (op->flags & OPF_BLIND) == 0);
}

static void arguments(struct command *c, const struct op *op)
{
    add_text(c, names[op->kind]);
    add(c, op->key);
    switch (op->kind) {
    case OP_SET:
        add_set(c, op);
        break;
    case OP_ADD:
    case OP_EXPIRE:
        add_number(c, op->number);
        break;
    case OP_DELETE_IF:
    case OP_ADD_FLOAT:
        add(c, op->arg);
        break;
    case OP_SETRANGE:
        add_number(c, op->number);
        add(c, op->value);
        break;
    case OP_APPEND:
    case OP_GETSET:
        add(c, op->value);
        break;
    case OP_GETEX:
        add_getex(c, op);
        break;
    default:
        break;
    }
}

uint32_t redis_command(const struct op *op, uint8_t **out)
{
    HK_ASSERT(redis_can_say(op));
    struct command c = {.n = 0};
    arguments(&c, op);
    size_t room = 16;
    for (uint32_t i = 0; i < c.n; i++) {
        room += c.args[i].n + 16u;
    }
    uint8_t *at = malloc(room);
    HK_ASSERT(at != NULL);
    size_t used = (size_t)sprintf((char *)at, "*%" PRIu32 "\r\n", c.n);
    for (uint32_t i = 0; i < c.n; i++) {
        used += (size_t)sprintf((char *)at + used, "$%" PRIu32 "\r\n", c.args[i].n);
        if (c.args[i].n > 0) {
            memcpy(at + used, c.args[i].at, c.args[i].n);
        }
        memcpy(at + used + c.args[i].n, "\r\n", 2);
        used += c.args[i].n + 2u;
    }
    HK_ASSERT(used <= room);
    *out = at;
    return (uint32_t)used;
}

/* ---- Replies ---- */

static const struct {
    const char *prefix;
    int err;
} errors[] = {
    {"-OOM ", HK_ERR_NOMEM},
    {"-CLUSTERDOWN ", HK_ERR_UNAVAILABLE},
    {"-LOADING ", HK_ERR_LOADING},
    {"-UNKNOWN ", HK_ERR_UNKNOWN},
    {"-TRYAGAIN ", HK_ERR_BUSY},
    {"-ERR value is not", HK_ERR_TYPE},
    {"-ERR increment or decrement would overflow", HK_ERR_OVERFLOW},
    {"-ERR increment would produce", HK_ERR_OVERFLOW},
    {"-ERR string exceeds maximum allowed size", HK_ERR_TOOBIG},
};

static const char *answer_error(struct bytes reply, struct answer *answer_out)
{
    for (uint32_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        size_t n = strlen(errors[i].prefix);
        if (reply.n >= n && memcmp(reply.at, errors[i].prefix, n) == 0) {
            *answer_out = (struct answer){.kind = ANSWER_ERROR, .number = errors[i].err};
            return NULL;
        }
    }
    return "an error that does not fit";
}

/* The number behind the reply's first byte, and where its line ends. */
static bool line_number(struct bytes reply, int64_t *number_out, uint32_t *end_out)
{
    char text[24] = "";
    uint32_t n = 0;
    while (1 + n < reply.n && reply.at[1 + n] != '\r') {
        if (n + 1 >= sizeof text) {
            return false;
        }
        text[n] = (char)reply.at[1 + n];
        n++;
    }
    int used = 0;
    *end_out = n + 3;
    return reply.n >= n + 3 && reply.at[n + 2] == '\n' &&
           sscanf(text, "%" SCNd64 "%n", number_out, &used) == 1 && (uint32_t)used == n;
}

static const char *answer_bulk(struct bytes reply, struct answer *answer_out)
{
    int64_t length;
    uint32_t begin;
    if (!line_number(reply, &length, &begin) || length < -1) {
        return "a bulk without a length";
    }
    if (length == -1) {
        *answer_out = (struct answer){.kind = ANSWER_NIL};
        return reply.n == begin ? NULL : "more than one reply";
    }
    if ((uint64_t)length + begin + 2 != reply.n || memcmp(reply.at + reply.n - 2, "\r\n", 2) != 0) {
        return "a bulk of another length than it says";
    }
    *answer_out = (struct answer){
        .kind = ANSWER_VALUE,
        .value = bytes_of(reply.at + begin, (uint32_t)length),
    };
    return NULL;
}

const char *redis_answer(struct bytes reply, struct answer *answer_out)
{
    int64_t number;
    uint32_t end;
    if (reply.n < 3 || memcmp(reply.at + reply.n - 2, "\r\n", 2) != 0) {
        return "no whole reply";
    }
    switch (reply.at[0]) {
    case '+':
        *answer_out = (struct answer){.kind = ANSWER_OK};
        return reply.n == 5 && memcmp(reply.at, "+OK", 3) == 0 ? NULL : "a status that is not OK";
    case ':':
        if (!line_number(reply, &number, &end) || end != reply.n) {
            return "no number";
        }
        *answer_out = (struct answer){.kind = ANSWER_NUMBER, .number = number};
        return NULL;
    case '_':
        *answer_out = (struct answer){.kind = ANSWER_NIL};
        return reply.n == 3 ? NULL : "more than one reply";
    case '$':
        return answer_bulk(reply, answer_out);
    case '-':
        return answer_error(reply, answer_out);
    default:
        return "a reply of no kind that is known";
    }
}

/* ---- The process ---- */

static uint64_t host_random(void *context)
{
    (void)context;
    return 0; /* no command that clients send here asks for it */
}

static const struct resp_limits *host_limits(void *context)
{
    static const struct resp_limits limits = {
        .bulk_bytes_max = 1u << 20,
        .arguments_max = 1024,
        .query_bytes_max = 4u << 20,
        .output_bytes_max = 4u << 20,
    };
    (void)context;
    return &limits;
}

void redis_host_init(struct resp_host *host, uint64_t (*wall_us)(void *context), void *context)
{
    *host = (struct resp_host){
        .context = context,
        .wall_us = wall_us,
        .random = host_random,
        .limits = host_limits,
    };
}
