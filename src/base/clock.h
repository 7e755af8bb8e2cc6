/* The two clocks of a process. Only the outermost shell reads them: everything else is given the
 * time, so that it can be simulated. */
#ifndef HORKOS_BASE_CLOCK_H
#define HORKOS_BASE_CLOCK_H

#include <stdint.h>

/* Microseconds since the machine started, time asleep included: it never goes back, and a
 * sleeping machine finds its leases expired when it wakes. For leases and timers; means nothing
 * elsewhere. */
uint64_t clock_boot_us(void);

/* Milliseconds since 1970 by the machine's calendar: may jump. For expiry times that users see. */
uint64_t clock_wall_ms(void);

#endif
