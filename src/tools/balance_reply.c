/* Where replies end. Nothing is kept of them but the number that a header holds: they are passed on
 * as they come. */
#include "tools/balance.h"

#include <stdlib.h>
#include <string.h>

#define LEFT_MAX (UINT64_C(1) << 32)
#define BULK_MAX (UINT64_C(1) << 30)

/* A line has ended. False: no reply has such a one. */
static bool line_over(struct balance_reply *r)
{
    r->number[r->number_n] = '\0';
    int64_t n = strtoll(r->number, NULL, 10);
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
        if (n < -1 || n > (int64_t)BULK_MAX) {
            return false;
        }
        r->left--;
        r->skip = n >= 0 ? (uint64_t)n + 2 : 0;
        return true;
    case '%':
    case '|':
        n *= 2;
        break;
    default: /* '*', '~', '>' */
        break;
    }
    if (n < -1 || n > (int64_t)LEFT_MAX || r->left > LEFT_MAX) {
        return false;
    }
    r->left += n > 0 ? (uint64_t)n : 0;
    r->left -= r->kind != '|'; /* an attribute is in front of what it is about */
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
