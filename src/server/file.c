#include "server/file.h"

#include <errno.h>
#include <unistd.h>

bool file_write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return false;
        }
        bytes += written;
        n -= (size_t)written;
    }
    return true;
}
