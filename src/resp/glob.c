#include "resp/glob.h"

#include <stdint.h>

static uint8_t fold(uint8_t c, bool any_case)
{
    return any_case && c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

/* A class, p being behind its bracket: whether c is in it. A class that is not closed ends with the
 * pattern. *p_out: behind the class. */
static bool class_holds(struct bytes pattern, uint32_t p, uint8_t c, bool any_case, uint32_t *p_out)
{
    bool inverted = p < pattern.n && pattern.at[p] == '^';
    bool found = false;

    if (inverted) {
        p++;
    }
    c = fold(c, any_case);
    while (p < pattern.n && pattern.at[p] != ']') {
        if (pattern.at[p] == '\\' && p + 1 < pattern.n) {
            p++;
            found = found || fold(pattern.at[p], any_case) == c;
        } else if (p + 2 < pattern.n && pattern.at[p + 1] == '-') {
            uint8_t low = fold(pattern.at[p], any_case);
            uint8_t high = fold(pattern.at[p + 2], any_case);

            found = found || (low <= high ? c >= low && c <= high : c >= high && c <= low);
            p += 2;
        } else {
            found = found || fold(pattern.at[p], any_case) == c;
        }
        p++;
    }
    *p_out = p < pattern.n ? p + 1 : p;
    return found != inverted;
}

/* Whether the one token at p, which is no star, takes c; *p_out: behind the token. */
static bool token_takes(struct bytes pattern, uint32_t p, uint8_t c, bool any_case, uint32_t *p_out)
{
    uint8_t token = pattern.at[p];

    if (token == '[') {
        return class_holds(pattern, p + 1, c, any_case, p_out);
    }
    if (token == '\\' && p + 1 < pattern.n) {
        token = pattern.at[++p];
    } else if (token == '?') {
        *p_out = p + 1;
        return true;
    }
    *p_out = p + 1;
    return fold(token, any_case) == fold(c, any_case);
}

/* Every token but the star takes exactly one byte, so when something does not fit it is enough to
 * let the last star take one byte more: what stands before it fits already, and the more bytes are
 * left for what is behind, the better. No recursion, no exponential patterns. */
bool resp_glob_match(struct bytes pattern, struct bytes text, bool any_case)
{
    uint32_t p = 0, t = 0;
    uint32_t star_p = UINT32_MAX, star_t = 0; /* behind the last star, and where its rest starts */

    while (t < text.n) {
        uint32_t next = 0;

        if (p < pattern.n && pattern.at[p] == '*') {
            star_p = ++p;
            star_t = t;
            if (p == pattern.n) {
                return true;
            }
            continue;
        }
        if (p < pattern.n && token_takes(pattern, p, text.at[t], any_case, &next)) {
            p = next;
            t++;
            continue;
        }
        if (star_p == UINT32_MAX) {
            return false;
        }
        p = star_p;
        t = ++star_t;
    }
    while (p < pattern.n && pattern.at[p] == '*') {
        p++;
    }
    return p == pattern.n;
}
