#include "tools/dev_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/dev_folder.h"

/* The whole of a small file as text; "" if it cannot be read. */
static size_t read_text(const char *path, char *text_out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text_out, size - 1);
    if (fd >= 0) {
        close(fd);
    }
    text_out[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static void boot_name(char name_out[DEV_BOOT_MAX])
{
    (void)read_text("/proc/sys/kernel/random/boot_id", name_out, DEV_BOOT_MAX);
    name_out[strcspn(name_out, " \n")] = '\0';
    if (name_out[0] == '\0') {
        snprintf(name_out, DEV_BOOT_MAX, "unknown");
    }
}

/* When a process started, in ticks; false if none has this id, or it only waits to be reaped. */
static bool started_at(pid_t pid, uint64_t *ticks_out)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    (void)read_text(path, text, sizeof text);
    /* Field 2 is the name in parentheses, which may hold anything; the state is field 3, the start
     * field 22 (proc(5)). */
    const char *at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X') {
        return false;
    }
    for (uint32_t field = 2; field < 22; field++) {
        at = strchr(at, ' ');
        if (at == NULL) {
            return false;
        }
        at++;
    }
    *ticks_out = strtoull(at, NULL, 10);
    return true;
}

/* In the child, where nothing but system calls is left to do. */
_Noreturn static void become(const struct dev_program *program, int log, pid_t parent)
{
    static const char failed[] = "horkos dev: the program cannot be executed\n";
    sigset_t none;
    sigemptyset(&none);
    setsid();
    if (program->end_signal != 0) {
        prctl(PR_SET_PDEATHSIG, program->end_signal);
        if (getppid() != parent) {
            _exit(1);
        }
    }
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0) {
        _exit(126);
    }
    /* Whoever waits for the end of a pipe that we were given must not wait for the nodes. */
    (void)close_range(STDERR_FILENO + 1, UINT32_MAX, 0);
    for (int s = 1; s < NSIG; s++) {
        signal(s, SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, &none, NULL);
    execv(program->path, program->argv);
    ssize_t ignored = write(STDERR_FILENO, failed, sizeof failed - 1);
    (void)ignored;
    _exit(127);
}

bool dev_process_start(const struct dev_program *program, struct dev_process *process_out)
{
    *process_out = (struct dev_process){.pid = 0};
    int log = open(program->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0) {
        fprintf(stderr, "horkos dev: %s: %s\n", program->log, strerror(errno));
        return false;
    }
    fflush(NULL);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        become(program, log, parent);
    }
    close(log);
    if (pid < 0) {
        fprintf(stderr, "horkos dev: fork: %s\n", strerror(errno));
        return false;
    }
    process_out->pid = pid;
    boot_name(process_out->boot);
    /* A child that has already ended has no start any more, and is known as one that has ended. */
    (void)started_at(pid, &process_out->started);
    return true;
}

bool dev_process_runs(const struct dev_process *process, char how_out[80])
{
    char boot[DEV_BOOT_MAX];
    uint64_t started = 0;
    int status = 0;
    how_out[0] = '\0';
    if (process->pid <= 0) {
        return false;
    }
    if (started_at(process->pid, &started)) {
        boot_name(boot);
        return started == process->started && strcmp(boot, process->boot) == 0;
    }
    pid_t ended = waitpid(process->pid, &status, WNOHANG);
    if (ended == 0) {
        return true; /* our child: its first thread has ended, and others have not yet */
    }
    if (ended == process->pid) {
        if (WIFSIGNALED(status)) {
            snprintf(how_out, 80, "%s", strsignal(WTERMSIG(status)));
        } else {
            snprintf(how_out, 80, "exit status %d", WEXITSTATUS(status));
        }
    }
    return false;
}

void dev_process_signal(const struct dev_process *process, int signal)
{
    char how[80];
    /* The descriptor stands for the process that has the id now. If that is ours, a later one with
     * the same id cannot be hit. */
    int fd = process->pid > 0 ? pidfd_open(process->pid, 0) : -1;
    bool lacks = fd < 0 && (errno == ENOSYS || errno == EPERM);
    if (dev_process_runs(process, how)) {
        if (fd >= 0) {
            (void)pidfd_send_signal(fd, signal, NULL, 0);
        } else if (lacks) {
            (void)kill(process->pid, signal);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

uint32_t dev_process_write(const struct dev_process *process, char text_out[160])
{
    int n = snprintf(text_out, 160, "%d\nstarted %" PRIu64 " %s\n", (int)process->pid,
                     process->started, process->boot);
    return (uint32_t)n;
}

bool dev_process_parse(struct bytes text, struct dev_process *process_out)
{
    char copy[160];
    char again[160];
    struct dev_process process = {.pid = 0};
    int pid = 0;
    if (text.n == 0 || text.n >= sizeof copy) {
        return false;
    }
    memcpy(copy, text.at, text.n);
    copy[text.n] = '\0';
    if (sscanf(copy, "%9d started %19" SCNu64 " %63s", &pid, &process.started, process.boot) != 3 ||
        pid <= 0) {
        return false;
    }
    process.pid = pid;
    /* Nothing but what would be written counts. */
    if (dev_process_write(&process, again) != text.n || memcmp(again, copy, text.n) != 0) {
        return false;
    }
    *process_out = process;
    return true;
}

bool dev_process_save(const struct dev_process *process, const char *path)
{
    char text[160];
    uint32_t n = dev_process_write(process, text);
    return dev_write_file(path, text, n, 0600);
}

void dev_process_load(const char *path, struct dev_process *process_out)
{
    char text[200];
    size_t n = read_text(path, text, sizeof text);
    if (!dev_process_parse(bytes_of(text, (uint32_t)n), process_out)) {
        *process_out = (struct dev_process){.pid = 0};
    }
}
