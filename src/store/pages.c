/* Anonymous mappings and advice are not in C17 nor in POSIX. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif

#include "store/pages.h"

#include <stdint.h>
#include <sys/mman.h>

#include "base/assert.h"

void *pages_map(size_t bytes, size_t align, bool huge)
{
    HK_ASSERT(bytes > 0 && bytes % PAGES_SMALL_BYTES == 0);
    HK_ASSERT(align >= PAGES_SMALL_BYTES && (align & (align - 1)) == 0);

    /* mmap aligns to small pages only: ask for enough to cut an aligned part out. */
    size_t extra = align - PAGES_SMALL_BYTES;
    if (bytes + extra < bytes) {
        return NULL;
    }
    uint8_t *at = mmap(NULL, bytes + extra, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        return NULL;
    }
    size_t before = (align - ((uintptr_t)at & (align - 1))) & (align - 1);
    if (before > 0) {
        (void)munmap(at, before);
    }
    if (extra > before) {
        (void)munmap(at + before + bytes, extra - before);
    }
    at += before;
    if (((uintptr_t)at + bytes - 1) >> PAGES_ADDRESS_BITS != 0) {
        (void)munmap(at, bytes);
        return NULL;
    }
    if (huge) {
        /* Only advice: a kernel without huge pages refuses it, and nothing is lost. */
        (void)madvise(at, bytes, MADV_HUGEPAGE);
    }
    return at;
}

void pages_unmap(void *at, size_t bytes)
{
    HK_ASSERT(munmap(at, bytes) == 0);
}
