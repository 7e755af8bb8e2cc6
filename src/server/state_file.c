#include "server/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hash.h"
#include "server/file.h"

/* The whole file. What is read must be, byte for byte, what would be written for the same numbers,
 * so that a damaged file never passes for another state. */
#define STATE_TEXT_MAX 160u

static uint32_t state_text(uint64_t generation, uint32_t epoch, char text_out[STATE_TEXT_MAX])
{
    int n =
        snprintf(text_out, STATE_TEXT_MAX,
                 "horkos state 1\ngeneration %" PRIu64 "\nepoch %" PRIu32 "\n", generation, epoch);
    uint64_t check = XXH3_64bits(text_out, (size_t)n);
    n += snprintf(text_out + n, STATE_TEXT_MAX - (size_t)n, "check %016" PRIx64 "\n", check);
    return (uint32_t)n;
}

/* Fills at most size bytes; -1: errno says why. */
static ssize_t read_whole(int fd, char *to, size_t size)
{
    size_t n = 0;
    while (n < size) {
        ssize_t more = read(fd, to + n, size - n);
        if (more < 0 && errno == EINTR) {
            continue;
        }
        if (more < 0) {
            return -1;
        }
        if (more == 0) {
            break;
        }
        n += (size_t)more;
    }
    return (ssize_t)n;
}

static int parse(const char *text, uint32_t n, uint64_t *generation_out, uint32_t *epoch_out)
{
    char again[STATE_TEXT_MAX];
    uint64_t generation;
    uint32_t epoch;
    if (sscanf(text, "horkos state 1\ngeneration %" SCNu64 "\nepoch %" SCNu32 "\n", &generation,
               &epoch) != 2) {
        return HK_ERR_CORRUPT;
    }
    if (state_text(generation, epoch, again) != n || memcmp(text, again, n) != 0) {
        return HK_ERR_CORRUPT;
    }
    *generation_out = generation;
    *epoch_out = epoch;
    return HK_OK;
}

int state_file_read(const char *path, uint64_t *generation_out, uint32_t *epoch_out)
{
    char text[STATE_TEXT_MAX + 1];
    *generation_out = 0;
    *epoch_out = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? HK_OK : HK_ERR_IO;
    }
    ssize_t n = read_whole(fd, text, STATE_TEXT_MAX);
    int error = errno;
    (void)close(fd);
    errno = error;
    if (n < 0) {
        return HK_ERR_IO;
    }
    text[n] = '\0';
    return parse(text, (uint32_t)n, generation_out, epoch_out);
}

/* A rename lasts through a power cut only once its folder was synced. */
static int sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    if (n >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, path, n);
    (void)snprintf(folder + n, sizeof folder - n, "%s", n == 0 ? "." : "");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    int synced = fsync(fd);
    int error = errno;
    (void)close(fd);
    errno = error;
    return synced;
}

static bool path_with(const char *path, const char *suffix, char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s%s", path, suffix);
    if (n >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    return true;
}

int state_file_write(const char *path, uint64_t generation, uint32_t epoch)
{
    char text[STATE_TEXT_MAX];
    char fresh[PATH_MAX];
    uint32_t n = state_text(generation, epoch, text);
    if (!path_with(path, ".new", fresh)) {
        return HK_ERR_IO;
    }
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (fd < 0) {
        return HK_ERR_IO;
    }
    bool good = file_write_all(fd, text, n) && fsync(fd) == 0;
    int error = errno;
    (void)close(fd);
    if (!good) {
        (void)unlink(fresh);
        errno = error;
        return HK_ERR_IO;
    }
    return rename(fresh, path) == 0 && sync_folder(path) == 0 ? HK_OK : HK_ERR_IO;
}

int state_file_lock(const char *path, int *fd_out)
{
    char lock[PATH_MAX];
    if (!path_with(path, ".lock", lock)) {
        return HK_ERR_IO;
    }
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0) {
        return HK_ERR_IO;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int error = errno;
        (void)close(fd);
        errno = error;
        return error == EWOULDBLOCK ? HK_ERR_FULL : HK_ERR_IO;
    }
    *fd_out = fd;
    return HK_OK;
}
