/* Memory from the operating system: the store's only system calls. */
#ifndef HORKOS_STORE_PAGES_H
#define HORKOS_STORE_PAGES_H

#include <stdbool.h>
#include <stddef.h>

#define PAGES_SMALL_BYTES 4096u
#define PAGES_HUGE_BYTES (2u * 1024u * 1024u)
/* Index entries keep addresses in 48 bits. */
#define PAGES_ADDRESS_BITS 48u

/* Zeroed memory, not resident until touched. bytes is a multiple of PAGES_SMALL_BYTES, align a
 * power of two of at least that. huge asks for huge pages; without them the memory is as good, only
 * slower. NULL when it cannot be had, or lies above PAGES_ADDRESS_BITS. */
void *pages_map(size_t bytes, size_t align, bool huge);

void pages_unmap(void *at, size_t bytes);

#endif
