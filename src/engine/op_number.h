/* Numbers in values: the texts that Redis takes for integers and for decimal fractions, and the
 * texts that it writes. By hand, because the C library's functions depend on the locale and are not
 * pure, and because long double differs between machines while a cluster may mix them. */
#ifndef HORKOS_ENGINE_OP_NUMBER_H
#define HORKOS_ENGINE_OP_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/* "-9223372036854775808" */
#define OP_INTEGER_TEXT_MAX 20u

/* Whether text is exactly what op_integer_format writes for some number: no spaces, no plus, no
 * leading zeros, no "-0". */
bool op_integer_parse(struct bytes text, int64_t *number_out) __attribute__((warn_unused_result));

/* Writes at most OP_INTEGER_TEXT_MAX bytes, returns how many. */
uint32_t op_integer_format(int64_t number, uint8_t *out);

/* Longest text that is taken for a decimal fraction, and the most digits before its point. */
#define OP_DECIMAL_TEXT_MAX 512u
#define OP_DECIMAL_DIGITS_MAX 309u
/* A sign, the digits, the point and 17 more digits. */
#define OP_DECIMAL_SUM_MAX (1u + OP_DECIMAL_DIGITS_MAX + 1u + 17u)

/* The sum of two decimal texts as Redis's INCRBYFLOAT gives it on x86-64, where it adds long
 * doubles of 64 bits of mantissa and prints "%.17Lf" without the zeros at its end: the same bytes,
 * on every machine.
 *
 * Texts: optional sign, digits with at most one point, at least one digit, optional exponent. What
 * Redis takes beyond that is refused: hexadecimal, "inf", more than OP_DECIMAL_TEXT_MAX bytes,
 * numbers of 1e309 and more (over OP_DECIMAL_DIGITS_MAX digits), those below 1e-4950 but zero.
 *
 * HK_ERR_TYPE when a text is no such number, HK_ERR_OVERFLOW when the sum reaches 1e309. Writes at
 * most OP_DECIMAL_SUM_MAX bytes to out. */
int op_decimal_add(struct bytes a, struct bytes b, uint8_t *out, uint32_t *written_out)
    __attribute__((warn_unused_result));

#endif
