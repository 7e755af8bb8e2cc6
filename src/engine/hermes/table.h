/* The transition table of the key machine as data: hermes_set_state checks changes of state
 * against it, the model test steps the machine through every cell and compares, and the table in
 * docs/protocols/hermes.md is printed from it. */
#ifndef HORKOS_ENGINE_HERMES_TABLE_H
#define HORKOS_ENGINE_HERMES_TABLE_H

#include <stdint.h>

#include "engine/hermes/hermes.h"

struct hermes_state_row {
    const char *name;
    uint8_t next; /* bit per enum hermes_state: what set_state may change it to */
};
extern const struct hermes_state_row hermes_state_table[HERMES_STATES];

#endif
