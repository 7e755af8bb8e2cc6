/* Where the balancer finds replies to end, on hostile bytes: the same however they are cut, within
 * the bytes there are, and never elsewhere than a reader that goes down into each reply says. */
#include "fuzz/fuzz.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tools/balance.h"

#define DEPTH_MAX 64u
#define REPLIES_MAX 4096u

/* The end of the line at `at`, behind its line feed; 0: it does not end. */
static uint32_t line_end(struct bytes in, uint32_t at)
{
    const uint8_t *lf = at < in.n ? memchr(in.at + at, '\n', in.n - at) : NULL;
    return lf == NULL ? 0 : (uint32_t)(lf - in.at) + 1;
}

/* As RESP has it, written with care for one thing: to be another way of finding the end. Returns
 * where the reply at `at` ends, 0: it does not end, or is not one that this reader knows. */
static uint32_t reply_end(struct bytes in, uint32_t at, uint32_t depth)
{
    uint32_t end = line_end(in, at);
    if (end == 0 || end - at < 3 || in.at[end - 2] != '\r' || depth > DEPTH_MAX) {
        return 0;
    }
    uint8_t kind = in.at[at];
    if (kind == 0 || strchr("+-:_#,(", kind) != NULL) {
        end = kind == 0 ? 0 : end;
        return end;
    }
    char text[12] = {0};
    if (end - at - 3 == 0 || end - at - 3 >= sizeof text || strchr("$=!*~%|>", kind) == NULL) {
        return 0;
    }
    memcpy(text, in.at + at + 1, end - at - 3);
    char *stop;
    long n = strtol(text, &stop, 10);
    if (stop != text + (end - at - 3) || strchr("-0123456789", text[0]) == NULL || n < -1 ||
        (n < 0 && kind != '$' && kind != '*')) {
        return 0;
    }
    if (strchr("$=!", kind) != NULL) {
        return n < 0 ? end : (uint64_t)n + 2 > in.n - end ? 0 : end + (uint32_t)n + 2;
    }
    n *= kind == '%' || kind == '|' ? 2 : 1;
    n += kind == '|' || kind == '>'; /* and what stands behind it */
    for (; n > 0 && end != 0; n--) {
        end = reply_end(in, end, depth + 1);
    }
    return end;
}

/* Feeds pieces of `piece` bytes; where replies end, and how many do. */
static uint32_t ends_of(struct bytes in, uint32_t piece, uint32_t *ends, enum balance_fed *last_out)
{
    struct balance_reply r = {.left = 0};
    enum balance_fed fed = BALANCE_MORE;
    uint32_t n = 0;
    for (uint32_t at = 0; at < in.n && fed != BALANCE_BROKEN && n < REPLIES_MAX;) {
        uint32_t used = UINT32_MAX;
        uint32_t some = piece < in.n - at ? piece : in.n - at;
        fed = balance_reply_feed(&r, bytes_of(in.at + at, some), &used);
        if (fed != BALANCE_BROKEN) {
            HK_ASSERT(used > 0 && used <= some && (fed == BALANCE_WHOLE || used == some));
            at += used;
        }
        if (fed == BALANCE_WHOLE) {
            HK_ASSERT(r.left == 0 && r.skip == 0 && !r.in_line);
            ends[n++] = at;
        }
    }
    *last_out = fed;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint32_t whole[REPLIES_MAX], cut[REPLIES_MAX];
    enum balance_fed last, again;
    if (size < 1 || size > 1 << 16) {
        return 0;
    }
    /* The first byte says how the rest is cut. */
    struct bytes in = bytes_of(data + 1, (uint32_t)size - 1);
    uint32_t n = ends_of(in, UINT32_MAX, whole, &last);
    HK_ASSERT(n == ends_of(in, data[0] % 32u + 1, cut, &again));
    HK_ASSERT((last == BALANCE_BROKEN) == (again == BALANCE_BROKEN));
    HK_ASSERT(memcmp(whole, cut, n * sizeof *whole) == 0);
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t end = reply_end(in, at, 0);
        HK_ASSERT(end == 0 || end == whole[i]);
        at = whole[i];
    }
    if (n < REPLIES_MAX) {
        HK_ASSERT(reply_end(in, at, 0) == 0); /* what it knows as whole was found whole */
    }
    return 0;
}
