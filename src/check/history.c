#include "check/history.h"

#include <inttypes.h>

static const char *const kind_names[] = {
    [HISTORY_READ] = "READ",     [HISTORY_WRITE] = "WRITE",
    [HISTORY_DELETE] = "DELETE", [HISTORY_DELETE_IF] = "DELETE_IF",
    [HISTORY_SET_IF] = "SET_IF", [HISTORY_SET_ABSENT] = "SET_ABSENT",
    [HISTORY_ADD] = "ADD",       [HISTORY_GETSET] = "GETSET",
};
#define KINDS (sizeof kind_names / sizeof kind_names[0])

/* Longest number with its sign and the NUL, or "absent". */
#define NUMBER_SIZE 24

const char *history_kind_name(uint8_t kind)
{
    return kind < KINDS ? kind_names[kind] : "?";
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
    switch ((enum history_kind)op->kind) {
    case HISTORY_WRITE:
    case HISTORY_SET_IF:
    case HISTORY_SET_ABSENT:
    case HISTORY_ADD:
    case HISTORY_GETSET:
        return op->in == HISTORY_ABSENT ? "the number to write or add stands for an absent key"
                                        : NULL;
    case HISTORY_DELETE_IF:
        return op->in != HISTORY_ABSENT && op->in != op->expected
                   ? "DELETE_IF compares with expected, and in says something else"
                   : NULL;
    case HISTORY_READ:
    case HISTORY_DELETE:
        break;
    }
    return NULL;
}

static const char *number_text(int64_t number, char to[NUMBER_SIZE])
{
    if (number == HISTORY_ABSENT) {
        return "absent";
    }
    (void)snprintf(to, NUMBER_SIZE, "%" PRId64, number);
    return to;
}

/* What was asked for, without the answer: "SET_IF 1 -> 2". */
static void print_call(const struct history_op *op, char *to, size_t size)
{
    char in[NUMBER_SIZE];
    char expected[NUMBER_SIZE];
    const char *name = history_kind_name(op->kind);
    switch ((enum history_kind)op->kind) {
    case HISTORY_SET_IF:
        (void)snprintf(to, size, "%s %s to %s", name, number_text(op->expected, expected),
                       number_text(op->in, in));
        return;
    case HISTORY_DELETE_IF:
        (void)snprintf(to, size, "%s %s", name, number_text(op->expected, expected));
        return;
    case HISTORY_WRITE:
    case HISTORY_SET_ABSENT:
    case HISTORY_ADD:
    case HISTORY_GETSET:
        (void)snprintf(to, size, "%s %s", name, number_text(op->in, in));
        return;
    case HISTORY_READ:
    case HISTORY_DELETE:
        break;
    }
    (void)snprintf(to, size, "%s", name);
}

/* The answer of an operation that returned: " -> 5", " -> true" or nothing. */
static void print_answer(const struct history_op *op, char *to, size_t size)
{
    char out[NUMBER_SIZE];
    switch ((enum history_kind)op->kind) {
    case HISTORY_READ:
    case HISTORY_ADD:
    case HISTORY_GETSET:
        (void)snprintf(to, size, " -> %s", number_text(op->out, out));
        return;
    case HISTORY_SET_IF:
    case HISTORY_DELETE_IF:
    case HISTORY_SET_ABSENT:
        (void)snprintf(to, size, " -> %s", op->ok ? "true" : "false");
        return;
    case HISTORY_WRITE:
    case HISTORY_DELETE:
        break;
    }
    (void)snprintf(to, size, "%s", "");
}

size_t history_op_print(const struct history_op *op, char *to, size_t size)
{
    char call[80];
    char answer[NUMBER_SIZE + 8];
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
