/* Operators of the protocols that a test can flip at run time. Only the build `mutants` has them:
 * scripts/flips picks the places, writes the code with both forms, and makes the definitions of
 * what is declared here. docs/TESTING.md tells how. */
#ifndef HORKOS_BASE_FLIPS_H
#define HORKOS_BASE_FLIPS_H

#ifdef HK_MUTANTS

#include <stdint.h>

/* Bit i: operator i is flipped. The one variable that machines without state of their own can see;
 * a process switches it before it starts a machine. */
extern uint64_t hk_flips_on;
extern const uint32_t hk_flips;           /* how many there are, at most 64 */
extern const char *const hk_flip_names[]; /* file:function:number:operator */

#endif
#endif
