#include "engine/hermes/table.h"

#define V (1u << HERMES_VALID)
#define I (1u << HERMES_INVALID)
#define W (1u << HERMES_WRITE)
#define T (1u << HERMES_TRANS)
#define R (1u << HERMES_REPLAY)

const struct hermes_state_row hermes_state_table[HERMES_STATES] = {
    [HERMES_VALID] = {"Valid", I | W},       [HERMES_INVALID] = {"Invalid", V | I | R},
    [HERMES_WRITE] = {"Write", V | I | T},   [HERMES_TRANS] = {"Trans", V | I | T | R},
    [HERMES_REPLAY] = {"Replay", V | I | T},
};
