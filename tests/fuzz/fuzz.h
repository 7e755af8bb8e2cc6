#ifndef HORKOS_TESTS_FUZZ_H
#define HORKOS_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Every fuzz target defines this function; libFuzzer and replay_main.c call it. It returns 0 and
 * tells of a fault by aborting. `data` may be anything and is only valid during the call. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
