/* On what a figure was measured. */
#ifndef HORKOS_BENCH_MACHINE_H
#define HORKOS_BENCH_MACHINE_H

#include <stdint.h>

struct bench_machine {
    char model[128];  /* of the processor */
    uint32_t cores;   /* that this system has online */
    char kernel[128]; /* name and release */
};

/* What cannot be found out is "unknown". */
void bench_machine_read(struct bench_machine *machine_out);

#endif
