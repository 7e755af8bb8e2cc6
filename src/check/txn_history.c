#include "check/txn_history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>

#define LIST_SHOWN_MAX 8u
#define OPS_SHOWN_MAX 12u

static const char *range_invalid(const struct txn_op *op)
{
    if (op->end < op->key) {
        return "a range ends before it begins";
    }
    if (op->limit != 0 && op->found_n > op->limit) {
        return "a range found more than it may";
    }
    for (uint32_t i = 0; i < op->found_n; i++) {
        const struct txn_found *found = &op->found[i];
        if (found->key < op->key || found->key >= op->end ||
            (i > 0 && found->key <= op->found[i - 1].key)) {
            return "a range found what is not in it, or not in order";
        }
        if (found->value == 0) {
            return "a range found a key without a value";
        }
    }
    return NULL;
}

static const char *op_invalid(const struct txn_op *op, const struct txn *txn,
                              enum txn_recording recording)
{
    if (op->kind == TXN_WRITE) {
        return op->value == 0 ? "a write has no number" : NULL;
    }
    if (op->kind == TXN_ERASE && recording == TXN_VERSIONS) {
        return op->value != 0 ? "an erasure has a number" : NULL;
    }
    if (op->kind == TXN_RANGE && recording == TXN_VERSIONS) {
        return txn->outcome == TXN_COMMITTED ? range_invalid(op) : NULL;
    }
    if (op->kind != TXN_READ) {
        return "the kind of an operation is out of range";
    }
    if (txn->outcome != TXN_COMMITTED) {
        return NULL;
    }
    if (recording == TXN_LISTS) {
        return op->list == NULL && op->list_n > 0 ? "a list is missing" : NULL;
    }
    return (op->value == 0) != (op->version == 0) ? "a read has a value without a version" : NULL;
}

const char *txn_invalid(const struct txn *txn, enum txn_recording recording)
{
    if (txn->outcome > TXN_UNKNOWN) {
        return "the outcome is out of range";
    }
    if (txn->begin_us >= UINT64_MAX - 1) {
        return "the time of the beginning is out of range";
    }
    if (txn->outcome == TXN_COMMITTED && txn->end_us < txn->begin_us) {
        return "it ends before it begins";
    }
    if (txn->outcome == TXN_COMMITTED && txn->end_us >= UINT64_MAX - 1) {
        return "the time of the end is out of range";
    }
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        const char *invalid = op_invalid(&txn->ops[i], txn, recording);
        if (invalid != NULL) {
            return invalid;
        }
    }
    return NULL;
}

static const char *const anomaly_names[] = {
    [TXN_NONE] = "none",
    [TXN_GARBAGE_READ] = "garbage read",
    [TXN_ABORTED_READ] = "G1a (aborted read)",
    [TXN_INTERMEDIATE_READ] = "G1b (intermediate read)",
    [TXN_INTERNAL] = "internal inconsistency",
    [TXN_DUPLICATE_ELEMENTS] = "duplicate elements",
    [TXN_INCOMPATIBLE_ORDER] = "incompatible order",
    [TXN_G0] = "G0",
    [TXN_G1C] = "G1c",
    [TXN_G_SINGLE] = "G-single",
    [TXN_G2] = "G2",
};

const char *txn_anomaly_name(enum txn_anomaly anomaly)
{
    size_t i = (size_t)anomaly;
    return i < sizeof anomaly_names / sizeof anomaly_names[0] ? anomaly_names[i] : "?";
}

/* A text that grows, and is cut where the room ends. */
struct text {
    char *to;
    size_t size;
    size_t n; /* the length that it would have */
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = text->n < text->size ? text->size - text->n : 0;
    int length = vsnprintf(room > 0 ? text->to + text->n : NULL, room, format, args);
    va_end(args);
    text->n += length < 0 ? 0 : (size_t)length;
}

static void add_list(struct text *text, const struct txn_op *op)
{
    uint32_t first = op->list_n > LIST_SHOWN_MAX ? op->list_n - LIST_SHOWN_MAX : 0;
    add(text, "[");
    if (first > 0) {
        add(text, "%" PRIu32 " more", first);
    }
    for (uint32_t i = first; i < op->list_n; i++) {
        add(text, "%s%" PRIu64, i > 0 ? " " : "", op->list[i]);
    }
    add(text, "]");
}

static void add_range(struct text *text, const struct txn_op *op, bool answered)
{
    add(text, "range %" PRIu64 "..%" PRIu64, op->key, op->end);
    if (op->limit != 0) {
        add(text, " %s %" PRIu32, op->reverse ? "last" : "first", op->limit);
    }
    add(text, answered ? " -> {" : "");
    for (uint32_t i = 0; answered && i < op->found_n; i++) {
        add(text, "%s%" PRIu64 "=%" PRIu64, i > 0 ? " " : "", op->found[i].key, op->found[i].value);
    }
    add(text, answered ? "}" : "");
}

static void add_op(struct text *text, const struct txn_op *op, bool answered,
                   enum txn_recording recording)
{
    bool lists = recording == TXN_LISTS;
    if (op->kind == TXN_RANGE) {
        add_range(text, op, answered);
        return;
    }
    if (op->kind == TXN_ERASE) {
        add(text, "erase %" PRIu64, op->key);
        return;
    }
    add(text, "%s %" PRIu64, op->kind == TXN_READ ? "read" : lists ? "append" : "write", op->key);
    if (op->kind == TXN_READ && !answered) {
        return;
    }
    if (op->kind == TXN_READ && lists) {
        add(text, " -> ");
        add_list(text, op);
        return;
    }
    if (op->kind == TXN_READ && op->value == 0) {
        add(text, " -> none");
        return;
    }
    add(text, "%s%" PRIu64, op->kind == TXN_READ ? " -> " : lists ? " " : " = ", op->value);
    if (!lists && op->version != 0) {
        add(text, " (version %" PRIu64 ")", op->version);
    }
}

size_t txn_print(const struct txn_history *history, size_t i, char *to, size_t size)
{
    const struct txn *txn = &history->txns[i];
    struct text text = {to, size, 0};
    if (txn->outcome == TXN_COMMITTED) {
        add(&text, "T%zu %" PRIu64 "..%" PRIu64, i, txn->begin_us, txn->end_us);
    } else {
        add(&text, "T%zu %" PRIu64 "..", i, txn->begin_us);
    }
    add(&text, " client %" PRIu32, txn->client);
    if (txn->outcome != TXN_COMMITTED) {
        add(&text, " (%s)", txn->outcome == TXN_ABORTED ? "aborted" : "outcome unknown");
    }
    for (uint32_t j = 0; j < txn->ops_n; j++) {
        add(&text, j == 0 ? ": " : ", ");
        if (j == OPS_SHOWN_MAX) {
            add(&text, "%" PRIu32 " more", txn->ops_n - j);
            break;
        }
        add_op(&text, &txn->ops[j], txn->outcome == TXN_COMMITTED, history->recording);
    }
    return text.n;
}

void txn_history_print(const struct txn_history *history, FILE *to)
{
    char line[1024];
    for (size_t i = 0; i < history->n; i++) {
        (void)txn_print(history, i, line, sizeof line);
        (void)fprintf(to, "%s\n", line);
    }
}
