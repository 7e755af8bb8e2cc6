/* Replies of RESP2, as bytes: see resp_client.h. */
#include "tools/resp_client.h"

#include <stddef.h>

#include "base/err.h"

/* Finds the end of the line that begins at `from`. HK_OK: end_out is where "\r\n" stands. */
static int line_end(struct bytes in, uint32_t from, uint32_t *end_out)
{
    const uint8_t *at = in.n > from ? memchr(in.at + from, '\r', in.n - from) : NULL;
    uint32_t end = at == NULL ? in.n : (uint32_t)(at - in.at);
    if (end - from > RESP_CLIENT_LINE_MAX) {
        return HK_ERR_TOOBIG;
    }
    if (end + 1 >= in.n) {
        return HK_ERR_NOTFOUND;
    }
    if (in.at[end + 1] != '\n') {
        return HK_ERR_CORRUPT;
    }
    *end_out = end;
    return HK_OK;
}

/* A decimal number that fits, with at most a minus sign before it and nothing around it. */
static int parse_number(struct bytes text, int64_t *number_out)
{
    bool negative = text.n > 0 && text.at[0] == '-';
    uint32_t i = negative ? 1 : 0;
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t number = 0;
    if (i == text.n) {
        return HK_ERR_CORRUPT;
    }
    for (; i < text.n; i++) {
        uint32_t digit = (uint32_t)text.at[i] - '0';
        if (digit > 9 || number > (limit - digit) / 10) {
            return HK_ERR_CORRUPT;
        }
        number = number * 10 + digit;
    }
    *number_out = negative ? (int64_t)(0 - number) : (int64_t)number;
    return HK_OK;
}

static int parse_bulk(struct bytes in, uint32_t at, int64_t length,
                      struct resp_client_reply *reply_out, uint32_t *used_out)
{
    if (length == -1) {
        reply_out->kind = RESP_CLIENT_NIL;
        *used_out = at;
        return HK_OK;
    }
    if (length < 0) {
        return HK_ERR_CORRUPT;
    }
    if (length > (int64_t)RESP_CLIENT_BULK_MAX) {
        return HK_ERR_TOOBIG;
    }
    uint32_t n = (uint32_t)length;
    if (in.n - at < n + 2) {
        return HK_ERR_NOTFOUND;
    }
    if (in.at[at + n] != '\r' || in.at[at + n + 1] != '\n') {
        return HK_ERR_CORRUPT;
    }
    reply_out->text = bytes_of(in.at + at, n);
    *used_out = at + n + 2;
    return HK_OK;
}

int resp_client_parse(struct bytes in, struct resp_client_reply *reply_out, uint32_t *used_out)
{
    static const struct {
        char sign;
        enum resp_client_kind kind;
    } kinds[] = {
        {'+', RESP_CLIENT_LINE},
        {'-', RESP_CLIENT_ERROR},
        {':', RESP_CLIENT_NUMBER},
        {'$', RESP_CLIENT_BULK},
    };
    uint32_t end = 0;
    *reply_out = (struct resp_client_reply){0};
    *used_out = 0;
    if (in.n == 0) {
        return HK_ERR_NOTFOUND;
    }
    uint32_t k = 0;
    while (k < sizeof kinds / sizeof kinds[0] && kinds[k].sign != (char)in.at[0]) {
        k++;
    }
    if (k == sizeof kinds / sizeof kinds[0]) {
        return in.at[0] == '*' ? HK_ERR_TYPE : HK_ERR_CORRUPT;
    }
    int err = line_end(in, 1, &end);
    if (err != HK_OK) {
        return err;
    }
    struct resp_client_reply reply = {.kind = kinds[k].kind};
    struct bytes line = bytes_of(in.at + 1, end - 1);
    uint32_t used = end + 2;
    if (reply.kind == RESP_CLIENT_LINE || reply.kind == RESP_CLIENT_ERROR) {
        reply.text = line;
    } else {
        int64_t number = 0;
        err = parse_number(line, &number);
        if (err == HK_OK && reply.kind == RESP_CLIENT_NUMBER) {
            reply.number = number;
        } else if (err == HK_OK) {
            err = parse_bulk(in, used, number, &reply, &used);
        }
    }
    if (err == HK_OK) {
        *reply_out = reply;
        *used_out = used;
    }
    return err;
}
