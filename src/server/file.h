/* Files, as far as more than one part of the program needs it. */
#ifndef HORKOS_SERVER_FILE_H
#define HORKOS_SERVER_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes all n bytes, in as many calls as it takes. False: errno says why; some may be written. */
bool file_write_all(int fd, const char *bytes, size_t n) __attribute__((warn_unused_result));

#endif
