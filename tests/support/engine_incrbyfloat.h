/* Redis's own arithmetic for INCRBYFLOAT, with the C library: what op_decimal_add is held against
 * on machines where long double has the 64 bits of mantissa that Redis has on x86-64. */
#ifndef HORKOS_TESTS_ENGINE_INCRBYFLOAT_H
#define HORKOS_TESTS_ENGINE_INCRBYFLOAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/* Whether this machine's long double can judge. */
bool incrbyfloat_comparable(void);

/* Adds a and b with op_decimal_add, again as Redis does, and asserts that both give the same, or
 * that op_number.h says why they differ. The texts hold nothing but digits, signs, points and the
 * letters e and E, so that strtold sees neither hexadecimal nor "inf". */
void incrbyfloat_compare(struct bytes a, struct bytes b);

#endif
