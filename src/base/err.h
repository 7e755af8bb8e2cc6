/* Error codes. They are public, so the table stands where the public header finds it. */
#ifndef HORKOS_BASE_ERR_H
#define HORKOS_BASE_ERR_H

#include "horkos_err.h"

#endif
