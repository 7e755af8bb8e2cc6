/* Systems that lack what the loop would like best: a seccomp filter takes it away in a child. */
#include "support/net_loop.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"

/* From now on this system call fails with this error. */
static bool forbid(long number, int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In the child: 0 is success, the number of the check that failed otherwise. */
static int without_uring(long number, int error)
{
    struct loop *loop = NULL;
    if (!forbid(number, error)) {
        return 1;
    }
    errno = 0;
    if (loop_create(LOOP_URING, &loop) != HK_ERR_IO || errno != error || loop != NULL) {
        return 2;
    }
    if (loop_create(LOOP_AUTO, &loop) != HK_OK || loop_kind(loop) != LOOP_EPOLL) {
        return 3;
    }
    loop_wake(loop);
    (void)loop_poll(loop, UINT64_MAX);
    loop_destroy(loop);
    return 0;
}

/* Waits by whole milliseconds are rounded up: no spinning through the last one. */
static int without_pwait2(void)
{
    struct loop *loop = NULL;
    if (!forbid(SYS_epoll_pwait2, ENOSYS) || loop_create(LOOP_EPOLL, &loop) != HK_OK) {
        return 1;
    }
    const uint64_t timeouts_us[] = {1, 999, 1001, 20300};
    for (size_t i = 0; i < sizeof(timeouts_us) / sizeof(timeouts_us[0]); i++) {
        uint64_t start_us = clock_boot_us();
        (void)loop_poll(loop, timeouts_us[i]);
        if (clock_boot_us() - start_us + 1 < timeouts_us[i]) {
            return 2;
        }
    }
    loop_wake(loop);
    (void)loop_poll(loop, UINT64_MAX);
    loop_destroy(loop);
    return 0;
}

static void expect_success(pid_t child)
{
    int status = -1;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_auto_becomes_epoll(void **state)
{
    (void)state;
    const struct {
        long number;
        int error;
    } cases[] = {
        {SYS_io_uring_setup, ENOSYS},    /* no io_uring in this kernel */
        {SYS_io_uring_setup, EPERM},     /* kernel.io_uring_disabled, or a container's filter */
        {SYS_io_uring_register, EINVAL}, /* no rings of buffers: before 5.19 */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        pid_t child = fork();
        if (child == 0) {
            _exit(without_uring(cases[i].number, cases[i].error));
        }
        expect_success(child);
    }
}

/* A kernel that has everything by name and does nothing: the trial finds out. */
static void test_a_ring_that_does_not_work(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct loop *loop = NULL;
        bool good = forbid(SYS_io_uring_enter, ENOSYS) &&
                    loop_create(LOOP_URING, &loop) == HK_ERR_IO &&
                    loop_create(LOOP_AUTO, &loop) == HK_OK && loop_kind(loop) == LOOP_EPOLL;
        if (good) {
            loop_destroy(loop);
        }
        _exit(good ? 0 : 1);
    }
    expect_success(child);
}

static void test_coarse_waits(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        _exit(without_pwait2());
    }
    expect_success(child);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(loop_kind_name(LOOP_AUTO), "auto");
    assert_string_equal(loop_kind_name(LOOP_URING), "io_uring");
    assert_string_equal(loop_kind_name(LOOP_EPOLL), "epoll");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_auto_becomes_epoll),
        cmocka_unit_test(test_a_ring_that_does_not_work),
        cmocka_unit_test(test_coarse_waits),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
