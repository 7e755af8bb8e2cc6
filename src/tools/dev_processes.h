/* The nodes of `horkos dev` as processes: starting them, knowing them again by their pid files,
 * ending them.
 *
 * A process is known by its id and the moment when it started, so that another process which later
 * gets the same id is never taken for it, nor hit by a signal. The first line of a pid file is the
 * id alone; the second one says when it started. */
#ifndef HORKOS_TOOLS_DEV_PROCESSES_H
#define HORKOS_TOOLS_DEV_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"

#define DEV_BOOT_MAX 64u

struct dev_process {
    pid_t pid;               /* 0: none */
    uint64_t started;        /* in ticks since the machine started ... */
    char boot[DEV_BOOT_MAX]; /* ... which is known by this name */
};

struct dev_program {
    const char *path;
    char *const *argv;
    const char *log; /* standard output and error are appended there */
    int end_signal;  /* it gets this one when the process that starts it is gone; 0: none */
};

/* Starts a program in a session of its own, with no other open file than its log. False after an
 * error, which was printed; a program that cannot be executed says so in its log and ends. */
bool dev_process_start(const struct dev_program *program, struct dev_process *process_out);

/* Whether it runs. If it was our child and has ended, it is reaped, and how_out (80 bytes) says how
 * it ended, "" if that cannot be known. */
bool dev_process_runs(const struct dev_process *process, char how_out[80]);
/* Does nothing to a process that has ended. */
void dev_process_signal(const struct dev_process *process, int signal);

/* The text of a pid file, at most 160 bytes; and back: false if it makes no sense. Pure. */
uint32_t dev_process_write(const struct dev_process *process, char text_out[160]);
bool dev_process_parse(struct bytes text, struct dev_process *process_out);
bool dev_process_save(const struct dev_process *process, const char *path);
/* No process, if there is no such file or it makes no sense. */
void dev_process_load(const char *path, struct dev_process *process_out);

#endif
