/* The table of names that are refused, sorted. */
#ifndef HORKOS_RESP_COMMAND_REFUSED_H
#define HORKOS_RESP_COMMAND_REFUSED_H

#include "resp/command.h"

extern const struct resp_command resp_refused[];
extern const uint32_t resp_refused_n;

#endif
