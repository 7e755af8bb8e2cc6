#include "tools/torture_exec.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/file.h"

#define EXEC_MS 10000

/* In the child, where nothing but system calls is left to do. */
_Noreturn static void become(char *const *argv, int in, int out, int namespace)
{
    /* A user's path often lacks the folders where these programs are; what they say is quoted. */
    static const char *const folders[] = {"/usr/sbin", "/usr/bin", "/sbin", "/bin"};
    char language[] = "LC_ALL=C";
    char *const environment[] = {language, NULL};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if ((namespace < 0 || setns(namespace, CLONE_NEWNET) == 0) && dup2(in, STDIN_FILENO) >= 0 &&
        dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0) {
        for (uint32_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
            char path[64];
            snprintf(path, sizeof path, "%s/%s", folders[i], argv[0]);
            execve(path, argv, environment);
        }
    }
    _exit(127);
}

static int wait_for(pid_t pid)
{
    int status = -1;
    int fd = pidfd_open(pid, 0);
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    int n = fd < 0 ? 1 : poll(&waited, 1, EXEC_MS);
    while (n < 0 && errno == EINTR) {
        n = poll(&waited, 1, EXEC_MS);
    }
    if (n <= 0) {
        (void)kill(pid, SIGKILL);
    }
    if (fd >= 0) {
        close(fd);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

static void say_why(const char *program, int status, int out, char *why_out, size_t size)
{
    char said[200];
    ssize_t n = pread(out, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = '\0';
    said[strcspn(said, "\n")] = '\0';
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        snprintf(why_out, size, "there is no program %s", program);
    } else if (!WIFEXITED(status)) {
        snprintf(why_out, size, "%s did not end", program);
    } else {
        snprintf(why_out, size, "%s failed: %s", program, said);
    }
}

bool torture_exec(char *const *argv, const char *text, int namespace, char *why_out, size_t size)
{
    int in = memfd_create("torture-in", MFD_CLOEXEC);
    int out = memfd_create("torture-out", MFD_CLOEXEC);
    pid_t pid = -1;
    if (in >= 0 && out >= 0 && file_write_all(in, text, strlen(text)) &&
        lseek(in, 0, SEEK_SET) == 0) {
        fflush(NULL);
        pid = fork();
        if (pid == 0) {
            become(argv, in, out, namespace);
        }
    }
    bool done = false;
    if (pid < 0) {
        snprintf(why_out, size, "%s cannot be run: %s", argv[0], strerror(errno));
    } else {
        int status = wait_for(pid);
        done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!done) {
            say_why(argv[0], status, out, why_out, size);
        }
    }
    if (in >= 0) {
        close(in);
    }
    if (out >= 0) {
        close(out);
    }
    return done;
}
