/* Memory that processes of one user on one host share: a memfd, reached through /proc. It leaves no
 * file behind, the kernel sees to it that it never shrinks, and all its pages are taken at once, so
 * that none is missing later. docs/NET.md, "Segments". */
#ifndef HORKOS_NET_MEMFD_H
#define HORKOS_NET_MEMFD_H

#include <stdint.h>

#define MEMFD_NAME_MAX 32u

/* Zeroed. -1: the system refuses. */
int memfd_make(const char *name, uint64_t bytes);
/* Opens what another process says that it has, if it is one of that name, of this user, and can
 * never shrink; its size is looked at, not believed. -1: it is not, or is not reached. */
int memfd_find(uint32_t process, uint32_t descriptor, const char *name, uint64_t *bytes_out);

#endif
