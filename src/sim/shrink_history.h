/* Makes a history that is not linearizable as short as it can, so that people see what is wrong
 * with it. Each step keeps this: if the shorter history is refused, the longer one must be, too
 * (docs/SIMULATOR.md, Shrinking, has the reasons). So what is left explains the refusal by
 * itself. */
#ifndef HORKOS_SIM_SHRINK_HISTORY_H
#define HORKOS_SIM_SHRINK_HISTORY_H

#include <stdint.h>

#include "check/history.h"

/* Shrinks a refused history of one key in place; the number of operations only falls. At most
 * checks_max histories are checked. Returns how many were. */
uint32_t shrink_history(struct history *history, uint32_t checks_max);

#endif
