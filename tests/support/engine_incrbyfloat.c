#include "support/engine_incrbyfloat.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "engine/op_number.h"

/* Longest text that Redis takes (MAX_LONG_DOUBLE_CHARS). */
#define TEXT_MAX (5 * 1024)

bool incrbyfloat_comparable(void)
{
    return LDBL_MANT_DIG == 64 && FLT_RADIX == 2;
}

/* Redis's string2ld. */
static bool parse(struct bytes text, long double *number_out)
{
    char buffer[TEXT_MAX];
    char *end = NULL;

    if (text.n == 0 || text.n >= sizeof buffer)
        return false;
    memcpy(buffer, text.at, text.n);
    buffer[text.n] = '\0';
    errno = 0;
    *number_out = strtold(buffer, &end);
    if (end != buffer + text.n || isnan(*number_out))
        return false;
    return errno != ERANGE || (!isinf(*number_out) && fpclassify(*number_out) != FP_ZERO);
}

/* Redis's ld2string with LD_STR_HUMAN. */
static uint32_t format(long double number, char *out)
{
    int n = snprintf(out, TEXT_MAX, "%.17Lf", number);

    while (out[n - 1] == '0')
        n--;
    if (out[n - 1] == '.')
        n--;
    if (n == 2 && memcmp(out, "-0", 2) == 0) {
        out[0] = '0';
        n = 1;
    }
    return (uint32_t)n;
}

/* Whether op_number.h says that this number, which Redis takes, is refused. Down there long doubles
 * lie 3.6e-4951 apart, so a text below 1e-4950 may read as a little more. */
static bool refused(struct bytes text, long double number)
{
    return text.n > OP_DECIMAL_TEXT_MAX || fabsl(number) >= 1e309L ||
           (fabsl(number) < 2e-4950L && number != 0);
}

void incrbyfloat_compare(struct bytes a, struct bytes b)
{
    uint8_t text[OP_DECIMAL_SUM_MAX];
    char expected[TEXT_MAX];
    long double x = 0;
    long double y = 0;
    uint32_t n = 0;
    int err = op_decimal_add(a, b, text, &n);

    if (!parse(a, &x) || !parse(b, &y)) {
        HK_ASSERT(err == HK_ERR_TYPE);
        return;
    }
    if (err == HK_ERR_TYPE) {
        HK_ASSERT(refused(a, x) || refused(b, y));
        return;
    }
    if (err == HK_ERR_OVERFLOW) {
        HK_ASSERT(fabsl(x + y) >= 1e309L);
        return;
    }
    HK_ASSERT(err == HK_OK);
    HK_ASSERT(n <= sizeof text);
    HK_ASSERT(n == format(x + y, expected));
    HK_ASSERT(memcmp(text, expected, n) == 0);
}
