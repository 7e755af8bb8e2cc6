/* The log of a process: one line an event, to standard error or a file, with time, level and what
 * happened. Any thread. Lines are written with one system call each; bytes that are not printable
 * are escaped, so that a client's bytes cannot forge a line. */
#ifndef HORKOS_SERVER_LOG_H
#define HORKOS_SERVER_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVELS };
extern const char *const log_level_names[LOG_LEVELS]; /* "debug", "info", "warn", "error" */

struct log;

/* path NULL or "": standard error. HK_ERR_IO: errno says why. HK_ERR_NOMEM. */
int log_open(const char *path, enum log_level level, struct log **log_out)
    __attribute__((warn_unused_result));
void log_close(struct log *log);
/* Opens the file anew (after it was moved away: SIGHUP). Goes on with the old one if that fails. */
void log_reopen(struct log *log);
void log_set_level(struct log *log, enum log_level level);
enum log_level log_get_level(const struct log *log);

void log_write(struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
