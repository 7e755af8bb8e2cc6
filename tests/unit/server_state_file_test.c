#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "server/state_file.h"

static char folder[64];
static char path[96], fresh[112], lock[112];

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/horkos-state-XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/s", folder);
    (void)snprintf(fresh, sizeof fresh, "%s.new", path);
    (void)snprintf(lock, sizeof lock, "%s.lock", path);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    (void)unlink(path);
    (void)unlink(fresh);
    (void)unlink(lock);
    return rmdir(folder);
}

static void put(const char *file, const void *bytes, size_t n)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    assert_int_equal(close(fd), 0);
}

static void assert_state(int expected, uint64_t generation, uint32_t epoch)
{
    uint64_t g = 77;
    uint32_t e = 77;
    assert_int_equal(state_file_read(path, &g, &e), expected);
    assert_int_equal(g, generation);
    assert_int_equal(e, epoch);
}

static void test_round_trip(void **state)
{
    (void)state;
    assert_state(HK_OK, 0, 0);
    assert_int_equal(state_file_write(path, 1, 1), HK_OK);
    assert_state(HK_OK, 1, 1);
    assert_int_equal(state_file_write(path, UINT64_MAX, UINT32_MAX), HK_OK);
    assert_state(HK_OK, UINT64_MAX, UINT32_MAX);
    assert_int_equal(state_file_write(path, 0, 0), HK_OK);
    assert_state(HK_OK, 0, 0);
    assert_int_equal(access(fresh, F_OK), -1);
}

/* What a process that died in the middle left is overwritten, and says nothing. */
static void test_left_over(void **state)
{
    (void)state;
    assert_int_equal(state_file_write(path, 5, 6), HK_OK);
    put(fresh, "horkos st", 9);
    assert_state(HK_OK, 5, 6);
    assert_int_equal(state_file_write(path, 5, 7), HK_OK);
    assert_state(HK_OK, 5, 7);
}

static void test_every_damage(void **state)
{
    (void)state;
    uint8_t text[256];
    assert_int_equal(state_file_write(path, 1234567890123, 42), HK_OK);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    assert_true(n > 0);
    for (ssize_t i = 0; i < n; i++) {
        /* Cut short, one bit turned, one byte more. */
        put(path, text, (size_t)i);
        assert_state(HK_ERR_CORRUPT, 0, 0);
        for (uint32_t bit = 0; bit < 8; bit++) {
            text[i] ^= (uint8_t)(1u << bit);
            put(path, text, (size_t)n);
            assert_state(HK_ERR_CORRUPT, 0, 0);
            text[i] ^= (uint8_t)(1u << bit);
        }
    }
    text[n] = '\n';
    put(path, text, (size_t)n + 1);
    assert_state(HK_ERR_CORRUPT, 0, 0);
    put(path, text, (size_t)n);
    assert_state(HK_OK, 1234567890123, 42);
    memset(text, 'x', sizeof text);
    put(path, text, sizeof text);
    assert_state(HK_ERR_CORRUPT, 0, 0);
}

static void test_errors(void **state)
{
    (void)state;
    uint64_t g;
    uint32_t e;
    int fd;
    assert_int_equal(state_file_write("/nonexistent/s", 1, 1), HK_ERR_IO);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(state_file_read("/nonexistent/s/t", &g, &e), HK_OK);
    assert_int_equal(state_file_read(folder, &g, &e), HK_ERR_IO);
    assert_int_equal(errno, EISDIR);
    assert_int_equal(state_file_lock("/nonexistent/s", &fd), HK_ERR_IO);
    /* The old state stays when the new one cannot be written. */
    assert_int_equal(state_file_write(path, 3, 3), HK_OK);
    assert_int_equal(mkdir(fresh, 0700), 0);
    assert_int_equal(state_file_write(path, 4, 4), HK_ERR_IO);
    assert_int_equal(rmdir(fresh), 0);
    assert_state(HK_OK, 3, 3);

    char *longest = malloc(8000);
    assert_non_null(longest);
    memset(longest, 'p', 7999);
    longest[7999] = '\0';
    assert_int_equal(state_file_write(longest, 1, 1), HK_ERR_IO);
    assert_int_equal(errno, ENAMETOOLONG);
    free(longest);
}

static int lock_in_child(void)
{
    int status, fd;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(-state_file_lock(path, &fd));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static void test_lock(void **state)
{
    (void)state;
    int fd, second;
    assert_int_equal(state_file_lock(path, &fd), HK_OK);
    assert_int_equal(lock_in_child(), HK_ERR_FULL);
    assert_int_equal(state_file_lock(path, &second), HK_ERR_FULL);
    /* The file of the state is replaced meanwhile; the lock is not. */
    assert_int_equal(state_file_write(path, 1, 1), HK_OK);
    assert_int_equal(lock_in_child(), HK_ERR_FULL);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(close(fd), 0);
    assert_int_equal(lock_in_child(), HK_OK);
    assert_int_equal(state_file_lock(path, &fd), HK_OK);
    assert_int_equal(close(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_left_over, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_every_damage, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_errors, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_lock, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
