#include "server/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"

/* A longer message is cut, with log_cut at its end. */
#define LOG_MESSAGE_MAX 2048u
#define LOG_PREFIX_MAX 40u
#define LOG_LINE_MAX (LOG_PREFIX_MAX + 4u * LOG_MESSAGE_MAX + 1u)
static const char log_cut[] = "...";

const char *const log_level_names[LOG_LEVELS] = {
    [LOG_DEBUG] = "debug",
    [LOG_INFO] = "info",
    [LOG_WARN] = "warn",
    [LOG_ERROR] = "error",
};
static const char *const log_level_marks[LOG_LEVELS] = {
    [LOG_DEBUG] = "DEBUG",
    [LOG_INFO] = "INFO",
    [LOG_WARN] = "WARN",
    [LOG_ERROR] = "ERROR",
};

struct log {
    char *path; /* NULL: standard error */
    /* The number never changes, so that writers need no lock: log_reopen puts the new file behind
     * the same number, which the kernel does in one step. */
    int fd;
    _Atomic int level; /* set and read alone: relaxed, it orders nothing */
};

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

int log_open(const char *path, enum log_level level, struct log **log_out)
{
    HK_ASSERT((uint32_t)level < LOG_LEVELS);
    struct log *log = calloc(1, sizeof *log);
    if (log == NULL) {
        return HK_ERR_NOMEM;
    }
    log->fd = STDERR_FILENO;
    atomic_init(&log->level, (int)level);
    if (path != NULL && path[0] != '\0') {
        log->path = strdup(path);
        if (log->path == NULL) {
            free(log);
            return HK_ERR_NOMEM;
        }
        log->fd = open_file(path);
        if (log->fd < 0) {
            int error = errno;
            free(log->path);
            free(log);
            errno = error;
            return HK_ERR_IO;
        }
    }
    *log_out = log;
    return HK_OK;
}

void log_close(struct log *log)
{
    if (log == NULL) {
        return;
    }
    if (log->path != NULL) {
        (void)close(log->fd);
        free(log->path);
    }
    free(log);
}

void log_reopen(struct log *log)
{
    if (log->path == NULL) {
        return;
    }
    int fd = open_file(log->path);
    if (fd < 0 || dup3(fd, log->fd, O_CLOEXEC) < 0) {
        log_write(log, LOG_ERROR, "cannot open the log %s anew: %s; going on with the old file",
                  log->path, strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

void log_set_level(struct log *log, enum log_level level)
{
    HK_ASSERT((uint32_t)level < LOG_LEVELS);
    atomic_store_explicit(&log->level, (int)level, memory_order_relaxed);
}

enum log_level log_get_level(const struct log *log)
{
    return (enum log_level)atomic_load_explicit(&log->level, memory_order_relaxed);
}

static size_t write_prefix(char *line, enum log_level level)
{
    uint64_t ms = clock_wall_ms();
    time_t seconds = (time_t)(ms / 1000u);
    struct tm t;
    char date[24] = "";
    if (gmtime_r(&seconds, &t) != NULL) {
        (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &t);
    }
    int n = snprintf(line, LOG_PREFIX_MAX, "%s.%03uZ %s ", date, (unsigned)(ms % 1000u),
                     log_level_marks[level]);
    return (size_t)n;
}

/* Everything but printable ASCII becomes \xNN, and the backslash becomes two: what came from
 * outside can neither begin a line nor pass for an escape. */
static size_t escape(const char *message, char *out)
{
    size_t n = 0;
    for (const char *p = message; *p != '\0'; p++) {
        uint8_t c = (uint8_t)*p;
        if (c == '\\') {
            out[n++] = '\\';
            out[n++] = '\\';
        } else if (c >= 0x20 && c < 0x7f) {
            out[n++] = (char)c;
        } else {
            static const char digits[] = "0123456789abcdef";
            out[n++] = '\\';
            out[n++] = 'x';
            out[n++] = digits[c >> 4];
            out[n++] = digits[c & 15u];
        }
    }
    return n;
}

void log_write(struct log *log, enum log_level level, const char *format, ...)
{
    HK_ASSERT((uint32_t)level < LOG_LEVELS);
    if (level < log_get_level(log)) {
        return;
    }
    int error = errno; /* callers often log before they look at it */
    char message[LOG_MESSAGE_MAX];
    char line[LOG_LINE_MAX];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (length < 0) {
        message[0] = '\0';
    } else if ((size_t)length >= sizeof message) {
        memcpy(message + sizeof message - sizeof log_cut, log_cut, sizeof log_cut);
    }
    size_t n = write_prefix(line, level);
    n += escape(message, line + n);
    line[n++] = '\n';
    ssize_t written;
    do {
        written = write(log->fd, line, n);
    } while (written < 0 && errno == EINTR);
    /* A full disk loses log lines, never the node. */
    errno = error;
}
