#include "net/memfd.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"

int memfd_make(const char *name, uint64_t bytes)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return -1;
    }
    if (fchmod(fd, 0600) == 0 && ftruncate(fd, (off_t)bytes) == 0 &&
        fallocate(fd, 0, 0, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
        return fd;
    }
    (void)close(fd);
    return -1;
}

/* Whether the file is what an honest process would offer. */
static bool fits(int fd, uint64_t *bytes_out)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
                st.st_size > 0 && seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
    *bytes_out = good ? (uint64_t)st.st_size : 0;
    return good;
}

int memfd_find(uint32_t process, uint32_t descriptor, const char *name, uint64_t *bytes_out)
{
    char path[64], wanted[MEMFD_NAME_MAX + 32], found[MEMFD_NAME_MAX + 32];
    HK_ASSERT(strlen(name) <= MEMFD_NAME_MAX);
    (void)snprintf(path, sizeof(path), "/proc/%u/fd/%u", process, descriptor);
    size_t length = (size_t)snprintf(wanted, sizeof(wanted), "/memfd:%s (deleted)", name);
    /* Nothing else shall be opened, which might have effects: a device, a pipe. */
    ssize_t n = readlink(path, found, sizeof(found));
    if (n != (ssize_t)length || memcmp(found, wanted, length) != 0) {
        return -1;
    }
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && !fits(fd, bytes_out)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}
