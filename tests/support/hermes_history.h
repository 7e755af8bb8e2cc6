/* The history that the rig keeps and judges: the properties of the specification. */
#ifndef HORKOS_TESTS_SUPPORT_HERMES_HISTORY_H
#define HORKOS_TESTS_SUPPORT_HERMES_HISTORY_H

#include "support/hermes_rig.h"

/* The node's key was stepped: what can be read there now. */
void history_step(struct rig *r, uint8_t node);
/* A client heard "done", or "certainly not". */
void history_done(struct rig *r, uint8_t node, uint32_t update);
void history_aborted(struct rig *r, uint8_t node, uint32_t update);
/* Sets violation to the first property that does not hold. */
void history_check(struct rig *r);

#endif
