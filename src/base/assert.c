#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void hk_assert_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "horkos: assertion failed at %s:%d: %s\n", file, line, condition);
    fflush(stderr);
    abort();
}
