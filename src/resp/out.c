#include "resp/out.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/op_number.h"

#define OUT_FIRST 512u
#define OUT_KEPT 4096u

/* The longest text of resp_out_errorf; what is longer is cut. */
#define ERROR_MAX 1024u
#define LINE_MAX (1u + OP_INTEGER_TEXT_MAX + 2u)

void resp_out_init(struct resp_out *out, uint32_t max)
{
    *out = (struct resp_out){.max = max};
}

static void drop(struct resp_out *out)
{
    free(out->at);
    out->at = NULL;
    out->n = out->capacity = 0;
}

void resp_out_deinit(struct resp_out *out)
{
    drop(out);
}

void resp_out_reset(struct resp_out *out)
{
    out->n = 0;
    if (out->capacity > OUT_KEPT) {
        drop(out);
    }
}

void resp_out_rewind(struct resp_out *out, uint32_t mark)
{
    if (out->n > mark) {
        out->n = mark;
    }
}

static void fail(struct resp_out *out)
{
    drop(out);
    out->failed = true;
}

/* Room for n more bytes, or NULL. */
static uint8_t *reserve(struct resp_out *out, uint32_t n)
{
    if (out->failed) {
        return NULL;
    }
    if (out->at != NULL && n <= out->capacity - out->n) {
        return out->at + out->n;
    }

    uint64_t wanted = (uint64_t)out->n + n;
    uint64_t capacity = out->capacity == 0 ? OUT_FIRST : (uint64_t)out->capacity * 2;

    if (wanted > out->max) {
        fail(out);
        return NULL;
    }
    if (capacity < wanted) {
        capacity = wanted;
    }
    if (capacity > out->max) {
        capacity = out->max;
    }

    uint8_t *at = realloc(out->at, capacity);

    if (at == NULL) {
        fail(out);
        return NULL;
    }
    out->at = at;
    out->capacity = (uint32_t)capacity;
    return at + out->n;
}

void resp_out_raw(struct resp_out *out, struct bytes bytes)
{
    uint8_t *at = reserve(out, bytes.n);

    if (at == NULL || bytes.n == 0) {
        return;
    }
    memcpy(at, bytes.at, bytes.n);
    out->n += bytes.n;
}

static void raw_text(struct resp_out *out, const char *text)
{
    resp_out_raw(out, bytes_of(text, (uint32_t)strlen(text)));
}

/* A mark, a number and an end of line, as ":12\r\n"; at most LINE_MAX bytes. Most numbers have one
 * digit or two. */
static uint32_t put_line(uint8_t *at, char mark, int64_t number)
{
    uint32_t n = 1;

    at[0] = (uint8_t)mark;
    if (number >= 10 && number < 100) {
        at[n++] = (uint8_t)('0' + (uint32_t)number / 10);
        at[n++] = (uint8_t)('0' + (uint32_t)number % 10);
    } else if (number >= 0 && number < 10) {
        at[n++] = (uint8_t)('0' + (uint32_t)number);
    } else {
        n += op_integer_format(number, at + 1);
    }
    at[n++] = '\r';
    at[n++] = '\n';
    return n;
}

static void line(struct resp_out *out, char mark, int64_t number)
{
    uint8_t *at = reserve(out, LINE_MAX);

    if (at != NULL) {
        out->n += put_line(at, mark, number);
    }
}

void resp_out_simple(struct resp_out *out, const char *text)
{
    uint32_t n = (uint32_t)strlen(text);
    uint8_t *at = reserve(out, 1 + n + 2);

    if (at == NULL) {
        return;
    }
    *at = '+';
    memcpy(at + 1, text, n);
    at[1 + n] = '\r';
    at[2 + n] = '\n';
    out->n += 1 + n + 2;
}

void resp_out_error(struct resp_out *out, const char *text)
{
    uint32_t n = (uint32_t)strlen(text);

    /* As Redis does: those at the end go. */
    while (n > 0 && (text[n - 1] == '\r' || text[n - 1] == '\n')) {
        n--;
    }

    uint8_t *at = reserve(out, 1 + n + 2);

    if (at == NULL) {
        return;
    }
    *at++ = '-';
    for (uint32_t i = 0; i < n; i++) {
        *at++ = text[i] == '\r' || text[i] == '\n' ? ' ' : (uint8_t)text[i];
    }
    *at++ = '\r';
    *at++ = '\n';
    out->n += 1 + n + 2;
}

void resp_out_errorf(struct resp_out *out, const char *format, ...)
{
    char text[ERROR_MAX];
    va_list arguments;

    va_start(arguments, format);
    if (vsnprintf(text, sizeof text, format, arguments) < 0) {
        text[0] = '\0';
    }
    va_end(arguments);
    resp_out_error(out, text);
}

void resp_out_number(struct resp_out *out, int64_t number)
{
    line(out, ':', number);
}

/* A value of any length behind its header, in one reservation: this is the way of every GET. */
void resp_out_bulk(struct resp_out *out, struct bytes bytes)
{
    if (bytes.n > UINT32_MAX - LINE_MAX - 2) {
        fail(out);
        return;
    }

    uint8_t *at = reserve(out, LINE_MAX + bytes.n + 2);

    if (at == NULL) {
        return;
    }

    uint32_t n = put_line(at, '$', bytes.n);

    if (bytes.n > 0) {
        memcpy(at + n, bytes.at, bytes.n);
    }
    n += bytes.n;
    at[n++] = '\r';
    at[n++] = '\n';
    out->n += n;
}

void resp_out_text(struct resp_out *out, const char *text)
{
    resp_out_bulk(out, bytes_of(text, (uint32_t)strlen(text)));
}

void resp_out_verbatim(struct resp_out *out, struct bytes text)
{
    if (!out->resp3) {
        resp_out_bulk(out, text);
        return;
    }
    line(out, '=', (int64_t)text.n + 4);
    raw_text(out, "txt:");
    resp_out_raw(out, text);
    raw_text(out, "\r\n");
}

void resp_out_null(struct resp_out *out)
{
    raw_text(out, out->resp3 ? "_\r\n" : "$-1\r\n");
}

void resp_out_null_array(struct resp_out *out)
{
    raw_text(out, out->resp3 ? "_\r\n" : "*-1\r\n");
}

void resp_out_bool(struct resp_out *out, bool value)
{
    if (out->resp3) {
        raw_text(out, value ? "#t\r\n" : "#f\r\n");
    } else {
        resp_out_number(out, value ? 1 : 0);
    }
}

void resp_out_double(struct resp_out *out, double value)
{
    char text[64];
    const char *special = value != value                    ? "nan"
                          : value > 1.7976931348623157e308  ? "inf"
                          : value < -1.7976931348623157e308 ? "-inf"
                                                            : NULL;

    if (special != NULL) {
        (void)snprintf(text, sizeof text, "%s", special);
    } else {
        (void)snprintf(text, sizeof text, "%.17g", value);
    }
    if (!out->resp3) {
        resp_out_text(out, text);
        return;
    }
    raw_text(out, ",");
    raw_text(out, text);
    raw_text(out, "\r\n");
}

void resp_out_array(struct resp_out *out, uint32_t n)
{
    line(out, '*', n);
}

void resp_out_map(struct resp_out *out, uint32_t pairs)
{
    if (out->resp3) {
        line(out, '%', pairs);
    } else {
        line(out, '*', (int64_t)pairs * 2);
    }
}

void resp_out_set(struct resp_out *out, uint32_t n)
{
    line(out, out->resp3 ? '~' : '*', n);
}
