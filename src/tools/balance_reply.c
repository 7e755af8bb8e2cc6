/* Where replies end. Nothing is kept of them but the number that a header holds: they are passed on
 * as they come. */
#include "tools/balance.h"

#include <stdlib.h>
#include <string.h>

#define LEFT_MAX (UINT64_C(1) << 32)
#define BULK_MAX (UINT64_C(1) << 30)

/* The number of a header. False: there is none, or a far too large one. */
static bool number(const struct balance_reply *r, int64_t *n_out)
{
    char *end;
    if (r->number_n == 0 || r->number_n + 1u == sizeof r->number ||
        strspn(r->number, "-0123456789") != r->number_n) {
        return false;
    }
    *n_out = strtoll(r->number, &end, 10);
    int64_t least = r->kind == '$' || r->kind == '*' ? -1 : 0; /* -1: nil */
    return *end == '\0' && *n_out >= least && *n_out <= (int64_t)LEFT_MAX;
}

/* A line has ended. False: no reply has such a one. */
static bool line_over(struct balance_reply *r)
{
    int64_t n = 0;
    r->number[r->number_n] = '\0';
    switch (r->kind) {
    case '+':
    case '-':
    case ':':
    case '_':
    case '#':
    case ',':
    case '(':
        r->left--;
        return true;
    case '$':
    case '=':
    case '!':
        if (!number(r, &n) || n > (int64_t)BULK_MAX) {
            return false;
        }
        r->left--;
        r->skip = n >= 0 ? (uint64_t)n + 2 : 0;
        return true;
    default: /* '*', '~', '>', '%', '|' */
        break;
    }
    if (!number(r, &n) || r->left > LEFT_MAX) {
        return false;
    }
    bool pairs = r->kind == '%' || r->kind == '|';
    r->left += n > 0 ? (uint64_t)n * (pairs ? 2 : 1) : 0;
    /* An attribute is in front of what it is about, and a push in front of any reply. */
    r->left -= r->kind != '|' && r->kind != '>';
    return true;
}

static bool line_begins(struct balance_reply *r, uint8_t kind)
{
    r->left += r->left == 0;
    r->kind = kind;
    r->in_line = true;
    r->number_n = 0;
    return kind != 0 && strchr("+-:_#,($=!%|*~>", kind) != NULL;
}

enum balance_fed balance_reply_feed(struct balance_reply *r, struct bytes in, uint32_t *used_out)
{
    uint32_t i = 0;
    while (i < in.n) {
        if (r->skip > 0) {
            uint64_t some = r->skip < in.n - i ? r->skip : in.n - i;
            r->skip -= some;
            i += (uint32_t)some;
        } else if (!r->in_line) {
            if (!line_begins(r, in.at[i++])) {
                return BALANCE_BROKEN;
            }
        } else {
            uint8_t byte = in.at[i++];
            if (byte == '\n') {
                r->in_line = false;
                if (!line_over(r)) {
                    return BALANCE_BROKEN;
                }
            } else if (byte != '\r' && r->number_n + 1u < sizeof r->number) {
                r->number[r->number_n++] = (char)byte;
            }
        }
        if (r->left == 0 && r->skip == 0 && !r->in_line) {
            *used_out = i;
            return BALANCE_WHOLE;
        }
    }
    *used_out = i;
    return BALANCE_MORE;
}
