#include "resp/parse.h"

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/op_number.h"

#define ARGS_FIRST 8u
#define ARGS_KEPT 64u

/* A stranger who announces more than he may is told that he is one, unless nobody may send it. */
#define STRANGER_BULK_MAX (512 * 1024 * 1024)

const struct resp_limits resp_limits_stranger = {
    .bulk_bytes_max = 16 * 1024,
    .arguments_max = 10,
    .query_bytes_max = 256 * 1024,
    .output_bytes_max = 64 * 1024,
};

void resp_parser_init(struct resp_parser *parser)
{
    *parser = (struct resp_parser){.expected = -1, .bulk = -1};
}

void resp_parser_deinit(struct resp_parser *parser)
{
    free(parser->args);
    parser->args = NULL;
    parser->capacity = parser->n = 0;
}

void resp_parser_reset(struct resp_parser *parser)
{
    if (parser->capacity > ARGS_KEPT) {
        resp_parser_deinit(parser);
    }
    parser->offset = parser->scanned = 0;
    parser->expected = parser->bulk = -1;
    parser->n = 0;
    parser->need = 0;
    parser->error[0] = '\0';
}

static enum resp_parsed malformed(struct resp_parser *parser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static enum resp_parsed malformed(struct resp_parser *parser, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (vsnprintf(parser->error, sizeof parser->error, format, arguments) < 0) {
        parser->error[0] = '\0';
    }
    va_end(arguments);
    parser->need = 0;
    return RESP_MALFORMED;
}

/* Grows with the arguments that came, not with those that are announced. */
static bool add_argument(struct resp_parser *parser, uint32_t at, uint32_t n)
{
    if (parser->n == parser->capacity) {
        uint32_t capacity = parser->capacity == 0 ? ARGS_FIRST : parser->capacity * 2;
        void *args = realloc(parser->args, capacity * sizeof parser->args[0]);

        if (args == NULL) {
            return false;
        }
        parser->args = args;
        parser->capacity = capacity;
    }
    parser->args[parser->n].at = at;
    parser->args[parser->n].n = n;
    parser->n++;
    return true;
}

/* Where the line that starts at parser->offset ends: the place of `end`; n if it has not come. */
static uint32_t find_end(struct resp_parser *parser, const uint8_t *input, uint32_t n, uint8_t end)
{
    uint32_t from = parser->scanned > parser->offset ? parser->scanned : parser->offset;
    const uint8_t *at = from < n ? memchr(input + from, end, n - from) : NULL;

    if (at != NULL) {
        return (uint32_t)(at - input);
    }
    parser->scanned = n;
    return n;
}

/* ---- Multibulk ---- */

/* A whole line of a mark and one digit or two, which nearly all headers are. Returns its length, 0
 * if it is something else. */
static inline uint32_t read_usual_header(const uint8_t *at, uint32_t n, uint32_t *number_out)
{
    if (n < 5) {
        return 0;
    }

    uint32_t first = (uint8_t)(at[1] - '0'), second = (uint8_t)(at[2] - '0');

    if (first < 10 && at[2] == '\r') {
        *number_out = first;
        return 4;
    }
    if (first - 1 < 9 && second < 10 && at[3] == '\r') {
        *number_out = first * 10 + second;
        return 5;
    }
    return 0;
}

/* The same with up to nine digits. */
static uint32_t read_short_header(const uint8_t *at, uint32_t n, int64_t *number_out)
{
    uint32_t i = 1, number = 0;

    for (; i < n && i < 10 && (uint8_t)(at[i] - '0') < 10; i++) {
        number = number * 10 + (uint32_t)(at[i] - '0');
    }
    if (i == 1 || i + 2 > n || at[i] != '\r' || (at[1] == '0' && i > 2)) {
        return 0;
    }
    *number_out = number;
    return i + 2;
}

/* Reads the number of a header line behind its mark, and steps over the line. */
enum header { HEADER_READ, HEADER_PARTIAL, HEADER_TOO_LONG, HEADER_NO_NUMBER };
static enum header read_header(struct resp_parser *parser, const uint8_t *input, uint32_t n,
                               int64_t *number_out)
{
    uint32_t length = read_short_header(input + parser->offset, n - parser->offset, number_out);

    if (length > 0) {
        parser->offset += length;
        return HEADER_READ;
    }

    uint32_t end = find_end(parser, input, n, '\r');

    /* Also when the end is there: the answer must not depend on how the stream was cut. */
    if (end - parser->offset > RESP_INLINE_MAX) {
        return HEADER_TOO_LONG;
    }
    if (end + 2 > n) {
        parser->need = n + 1;
        return HEADER_PARTIAL;
    }

    struct bytes text = bytes_of(input + parser->offset + 1, end - parser->offset - 1);

    if (!op_integer_parse(text, number_out)) {
        return HEADER_NO_NUMBER;
    }
    parser->offset = end + 2;
    return HEADER_READ;
}

static enum resp_parsed read_count(struct resp_parser *parser, const struct resp_limits *limits,
                                   const uint8_t *input, uint32_t n)
{
    int64_t count = 0;

    switch (read_header(parser, input, n, &count)) {
    case HEADER_PARTIAL:
        return RESP_PARTIAL;
    case HEADER_TOO_LONG:
        return malformed(parser, "Protocol error: too big mbulk count string");
    case HEADER_NO_NUMBER:
        return malformed(parser, "Protocol error: invalid multibulk length");
    case HEADER_READ:
        break;
    }
    if (count > (int64_t)limits->arguments_max) {
        if (limits == &resp_limits_stranger && count <= INT_MAX) {
            return malformed(parser, "Protocol error: unauthenticated multibulk length");
        }
        return malformed(parser, "Protocol error: invalid multibulk length");
    }
    parser->expected = count > 0 ? count : 0;
    return RESP_PARSED;
}

static enum resp_parsed read_bulk_header(struct resp_parser *parser,
                                         const struct resp_limits *limits, const uint8_t *input,
                                         uint32_t n)
{
    int64_t bulk = 0;
    uint32_t start = parser->offset;
    enum header header = read_header(parser, input, n, &bulk);

    if (header == HEADER_PARTIAL) {
        return RESP_PARTIAL;
    }
    if (header == HEADER_TOO_LONG) {
        return malformed(parser, "Protocol error: too big bulk count string");
    }
    /* Looked at once the line is whole, as in Redis. */
    if (input[start] != '$') {
        return malformed(parser, "Protocol error: expected '$', got '%c'", input[start]);
    }
    if (header == HEADER_NO_NUMBER) {
        return malformed(parser, "Protocol error: invalid bulk length");
    }
    if (bulk < 0 || bulk > (int64_t)limits->bulk_bytes_max) {
        if (limits == &resp_limits_stranger && bulk >= 0 && bulk <= STRANGER_BULK_MAX) {
            return malformed(parser, "Protocol error: unauthenticated bulk length");
        }
        return malformed(parser, "Protocol error: invalid bulk length");
    }
    parser->bulk = bulk;
    return RESP_PARSED;
}

static enum resp_parsed parse_multibulk(struct resp_parser *parser,
                                        const struct resp_limits *limits, const uint8_t *input,
                                        uint32_t n)
{
    uint32_t length = 0, number = 0;

    if (parser->expected < 0) {
        length = read_usual_header(input, n, &number);
        if (length > 0 && number <= limits->arguments_max) {
            parser->offset = length;
            parser->expected = number;
        } else {
            enum resp_parsed parsed = read_count(parser, limits, input, n);

            if (parsed != RESP_PARSED) {
                return parsed;
            }
        }
    }
    while (parser->n < parser->expected) {
        const uint8_t *at = input + parser->offset;

        if (parser->bulk < 0 && n > parser->offset && *at == '$' &&
            (length = read_usual_header(at, n - parser->offset, &number)) > 0 &&
            number <= limits->bulk_bytes_max) {
            parser->offset += length;
            parser->bulk = number;
        } else if (parser->bulk < 0) {
            enum resp_parsed parsed = read_bulk_header(parser, limits, input, n);

            if (parsed != RESP_PARSED) {
                return parsed;
            }
        }

        uint64_t end = (uint64_t)parser->offset + (uint64_t)parser->bulk + 2;

        if (end > limits->query_bytes_max) {
            return malformed(parser, "Protocol error: too big query");
        }
        if (end > n) {
            parser->need = (uint32_t)end;
            return RESP_PARTIAL;
        }
        if (!add_argument(parser, parser->offset, (uint32_t)parser->bulk)) {
            return malformed(parser, "Protocol error: no memory for the arguments");
        }
        /* The two bytes behind an argument are not looked at, as in Redis. */
        parser->offset = (uint32_t)end;
        parser->bulk = -1;
    }
    return RESP_PARSED;
}

/* ---- Inline ---- */

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

/* A line that is split into arguments. What was unescaped is written at `to`, never past `at`. */
struct split {
    uint8_t *line;
    uint32_t n, at, to;
};

/* Behind a backslash between double quotes. */
static void unescape(struct split *s)
{
    uint8_t c = s->line[s->at];

    if (c == 'x' && s->at + 2 < s->n && hex_digit(s->line[s->at + 1]) >= 0 &&
        hex_digit(s->line[s->at + 2]) >= 0) {
        s->line[s->to++] =
            (uint8_t)(hex_digit(s->line[s->at + 1]) * 16 + hex_digit(s->line[s->at + 2]));
        s->at += 3;
        return;
    }
    switch (c) {
    case 'n':
        c = '\n';
        break;
    case 'r':
        c = '\r';
        break;
    case 't':
        c = '\t';
        break;
    case 'b':
        c = '\b';
        break;
    case 'a':
        c = '\a';
        break;
    default:
        break;
    }
    s->line[s->to++] = c;
    s->at++;
}

/* From behind the opening quote to behind the closing one, which ends the argument. */
static bool split_quoted(struct split *s, uint8_t quote)
{
    while (s->at < s->n) {
        uint8_t c = s->line[s->at];

        if (c == quote) {
            s->at++;
            return s->at == s->n || is_space(s->line[s->at]);
        }
        if (c == '\\' && s->at + 1 < s->n && quote == '"') {
            s->at++;
            unescape(s);
            continue;
        }
        if (c == '\\' && s->at + 1 < s->n && s->line[s->at + 1] == '\'') {
            s->at++;
        }
        s->line[s->to++] = s->line[s->at++];
    }
    return false;
}

/* One argument, from its first byte on. False: quotes are not balanced. */
static bool split_argument(struct split *s)
{
    while (s->at < s->n) {
        uint8_t c = s->line[s->at];

        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            return true;
        }
        if (c == '"' || c == '\'') {
            s->at++;
            return split_quoted(s, c);
        }
        s->line[s->to++] = c;
        s->at++;
    }
    return true;
}

static enum resp_parsed parse_inline(struct resp_parser *parser, const struct resp_limits *limits,
                                     uint8_t *input, uint32_t n)
{
    uint32_t end = find_end(parser, input, n, '\n');

    if (end > RESP_INLINE_MAX) {
        return malformed(parser, "Protocol error: too big inline request");
    }
    if (end == n) {
        parser->need = n + 1;
        return RESP_PARTIAL;
    }
    parser->offset = end + 1;

    struct split s = {.line = input, .n = end};

    if (s.n > 0 && s.line[s.n - 1] == '\r') {
        s.n--;
    }

    for (;;) {
        while (s.at < s.n && is_space(s.line[s.at])) {
            s.at++;
        }
        if (s.at == s.n) {
            return RESP_PARSED;
        }

        uint32_t start = s.at;

        s.to = start;
        if (!split_argument(&s)) {
            return malformed(parser, "Protocol error: unbalanced quotes in request");
        }
        if (parser->n >= limits->arguments_max) {
            return malformed(parser, limits == &resp_limits_stranger
                                         ? "Protocol error: unauthenticated multibulk length"
                                         : "Protocol error: too big inline request");
        }
        if (!add_argument(parser, start, s.to - start)) {
            return malformed(parser, "Protocol error: no memory for the arguments");
        }
    }
}

enum resp_parsed resp_parse(struct resp_parser *parser, const struct resp_limits *limits,
                            uint8_t *input, uint32_t n, uint32_t *used_out)
{
    enum resp_parsed parsed = RESP_PARTIAL;

    if (n == 0) {
        parser->need = 1;
        return RESP_PARTIAL;
    }
    if (input[0] == '*') {
        parsed = parse_multibulk(parser, limits, input, n);
    } else {
        parsed = parse_inline(parser, limits, input, n);
    }
    if (parsed == RESP_PARSED) {
        *used_out = parser->offset;
        parser->need = 0;
    }
    return parsed;
}
