#include "check/history.h"

#include <inttypes.h>

/* What an operation of the kind has besides its times; the rest of struct history_op is unused. */
enum field {
    FIELD_IN = 1 << 0,
    FIELD_EXPECTED = 1 << 1,
    FIELD_OUT = 1 << 2,
    FIELD_OK = 1 << 3,
    FIELD_DEADLINE = 1 << 4, /* a new one, or none, or HISTORY_KEEP */
};

struct kind {
    const char *name;
    unsigned fields; /* enum field */
};

static const struct kind kinds[] = {
    [HISTORY_READ] = {"READ", FIELD_OUT},
    [HISTORY_WRITE] = {"WRITE", FIELD_IN | FIELD_DEADLINE},
    [HISTORY_DELETE] = {"DELETE", 0},
    [HISTORY_DELETE_IF] = {"DELETE_IF", FIELD_EXPECTED | FIELD_OK},
    [HISTORY_SET_IF] = {"SET_IF", FIELD_EXPECTED | FIELD_IN | FIELD_OK | FIELD_DEADLINE},
    [HISTORY_SET_ABSENT] = {"SET_ABSENT", FIELD_IN | FIELD_OK | FIELD_DEADLINE},
    [HISTORY_ADD] = {"ADD", FIELD_IN | FIELD_OUT},
    [HISTORY_GETSET] = {"GETSET", FIELD_IN | FIELD_OUT | FIELD_DEADLINE},
    [HISTORY_SET_PRESENT] = {"SET_PRESENT", FIELD_IN | FIELD_OK | FIELD_DEADLINE},
    [HISTORY_DELETE_PRESENT] = {"DELETE_PRESENT", FIELD_OK},
    [HISTORY_GETDEL] = {"GETDEL", FIELD_OUT},
    [HISTORY_EXISTS] = {"EXISTS", FIELD_OK},
    [HISTORY_RMW] = {"RMW", FIELD_EXPECTED | FIELD_IN | FIELD_DEADLINE},
    [HISTORY_EXPIRE] = {"EXPIRE", FIELD_OK | FIELD_DEADLINE},
    [HISTORY_PERSIST] = {"PERSIST", FIELD_OK},
    [HISTORY_GETEX] = {"GETEX", FIELD_OUT | FIELD_DEADLINE},
    [HISTORY_TTL] = {"TTL", FIELD_OUT},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* Longest number with its sign and the NUL, or "absent". */
#define NUMBER_SIZE 24

static bool has(const struct history_op *op, enum field field)
{
    return (kinds[op->kind].fields & field) != 0;
}

const char *history_kind_name(uint8_t kind)
{
    return kind < KINDS ? kinds[kind].name : "?";
}

static const char *deadline_invalid(const struct history_op *op)
{
    if (op->kind == HISTORY_TTL) {
        return op->outcome == HISTORY_OK && op->deadline != 0 &&
                       (op->out == HISTORY_ABSENT || op->out == 0)
                   ? "TTL saw no deadline, and names one"
                   : NULL;
    }
    if (op->deadline == 0) {
        return op->kind == HISTORY_EXPIRE ? "EXPIRE sets no deadline" : NULL;
    }
    if (!has(op, FIELD_DEADLINE)) {
        return "the kind sets no deadline";
    }
    if (op->deadline == HISTORY_KEEP) {
        return op->kind == HISTORY_EXPIRE ? "EXPIRE sets no deadline" : NULL;
    }
    return op->not_after_us != 0 && op->not_after_us < op->not_before_us
               ? "the deadline must be reached before it can be"
               : NULL;
}

const char *history_op_invalid(const struct history_op *op)
{
    if (op->kind >= KINDS) {
        return "the kind is out of range";
    }
    if (op->outcome > HISTORY_UNKNOWN) {
        return "the outcome is out of range";
    }
    if (op->begin_us >= UINT64_MAX - 1) {
        return "the time of the beginning is out of range";
    }
    if (op->outcome == HISTORY_OK && op->end_us < op->begin_us) {
        return "it ends before it begins";
    }
    if (op->outcome == HISTORY_OK && op->end_us >= UINT64_MAX - 1) {
        return "the time of the end is out of range";
    }
    if (has(op, FIELD_IN) && op->in == HISTORY_ABSENT) {
        return "the number to write or add stands for an absent key";
    }
    if (op->kind == HISTORY_DELETE_IF && op->in != HISTORY_ABSENT && op->in != op->expected) {
        return "DELETE_IF compares with expected, and in says something else";
    }
    return deadline_invalid(op);
}

static const char *number_text(int64_t number, char to[NUMBER_SIZE])
{
    if (number == HISTORY_ABSENT) {
        return "absent";
    }
    (void)snprintf(to, NUMBER_SIZE, "%" PRId64, number);
    return to;
}

/* What was asked for, without the answer: "SET_IF 1 to 2 until 70". */
static void print_call(const struct history_op *op, char *to, size_t size)
{
    char in[NUMBER_SIZE];
    char expected[NUMBER_SIZE];
    char deadline[NUMBER_SIZE + 8] = "";
    bool both = has(op, FIELD_IN) && has(op, FIELD_EXPECTED);
    if (has(op, FIELD_DEADLINE) && op->deadline == HISTORY_KEEP) {
        (void)snprintf(deadline, sizeof deadline, " keeping");
    } else if (has(op, FIELD_DEADLINE) && op->deadline != 0) {
        (void)snprintf(deadline, sizeof deadline, " until %" PRIu64, op->deadline);
    }
    (void)snprintf(
        to, size, "%s%s%s%s%s%s%s", kinds[op->kind].name, has(op, FIELD_EXPECTED) ? " " : "",
        has(op, FIELD_EXPECTED) ? number_text(op->expected, expected) : "", both ? " to" : "",
        has(op, FIELD_IN) ? " " : "", has(op, FIELD_IN) ? number_text(op->in, in) : "", deadline);
}

/* The answer of an operation that returned: " -> 5", " -> true" or nothing. */
static void print_answer(const struct history_op *op, char *to, size_t size)
{
    char out[NUMBER_SIZE];
    if (op->kind == HISTORY_TTL && op->out != HISTORY_ABSENT && op->out != 0) {
        if (op->deadline == 0) {
            (void)snprintf(to, size, " -> some");
        } else {
            (void)snprintf(to, size, " -> until %" PRIu64, op->deadline);
        }
    } else if (op->kind == HISTORY_TTL && op->out == 0) {
        (void)snprintf(to, size, " -> none");
    } else if (has(op, FIELD_OUT)) {
        (void)snprintf(to, size, " -> %s", number_text(op->out, out));
    } else if (has(op, FIELD_OK)) {
        (void)snprintf(to, size, " -> %s", op->ok ? "true" : "false");
    } else {
        (void)snprintf(to, size, "%s", "");
    }
}

size_t history_op_print(const struct history_op *op, char *to, size_t size)
{
    char call[120];
    char answer[NUMBER_SIZE + 16];
    print_call(op, call, sizeof call);
    int n;
    if (op->outcome == HISTORY_OK) {
        print_answer(op, answer, sizeof answer);
        n = snprintf(to, size, "%" PRIu64 "..%" PRIu64 " client %" PRIu32 " key %" PRIu64 ": %s%s",
                     op->begin_us, op->end_us, op->client, op->key, call, answer);
    } else {
        n = snprintf(to, size, "%" PRIu64 ".. client %" PRIu32 " key %" PRIu64 ": %s (%s)",
                     op->begin_us, op->client, op->key, call,
                     op->outcome == HISTORY_FAILED ? "failed" : "outcome unknown");
    }
    return n < 0 ? 0 : (size_t)n;
}

void history_print(const struct history *history, FILE *to)
{
    char line[256];
    for (size_t i = 0; i < history->n; i++) {
        (void)history_op_print(&history->ops[i], line, sizeof line);
        (void)fprintf(to, "%s\n", line);
    }
}
