#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "server/log.h"

#define TIME_BYTES 24u /* "2026-11-29T23:17:11.123Z" */

struct place {
    char folder[64];
    char file[96], moved[96];
};

static int make_place(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    assert_non_null(p);
    (void)snprintf(p->folder, sizeof p->folder, "/tmp/horkos-log-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    (void)snprintf(p->file, sizeof p->file, "%s/log", p->folder);
    (void)snprintf(p->moved, sizeof p->moved, "%s/log.1", p->folder);
    *state = p;
    return 0;
}

static int remove_place(void **state)
{
    struct place *p = *state;
    (void)unlink(p->file);
    (void)unlink(p->moved);
    int result = rmdir(p->folder);
    free(p);
    return result;
}

static char *read_all(const char *path)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &about), 0);
    char *text = calloc(1, (size_t)about.st_size + 1);
    assert_non_null(text);
    assert_int_equal(read(fd, text, (size_t)about.st_size), about.st_size);
    (void)close(fd);
    return text;
}

/* The file holds these lines, each behind a time. */
static void assert_lines(const char *path, const char *const *lines)
{
    char *text = read_all(path);
    char *at = text;
    for (; *lines != NULL; lines++) {
        char *end = strchr(at, '\n');
        assert_non_null(end);
        *end = '\0';
        assert_true((size_t)(end - at) > TIME_BYTES);
        for (uint32_t i = 0; i < TIME_BYTES; i++) {
            char like = "0000-00-00T00:00:00.000Z"[i];
            assert_true(like == '0' ? at[i] >= '0' && at[i] <= '9' : at[i] == like);
        }
        assert_string_equal(at + TIME_BYTES, *lines);
        at = end + 1;
    }
    assert_string_equal(at, "");
    free(text);
}

static void test_lines_and_levels(void **state)
{
    struct place *p = *state;
    struct log *log;
    assert_int_equal(log_open(p->file, LOG_INFO, &log), HK_OK);
    assert_int_equal(log_get_level(log), LOG_INFO);
    log_write(log, LOG_DEBUG, "not this");
    log_write(log, LOG_INFO, "node %d of %s", 1, "three");
    log_write(log, LOG_WARN, "w");
    log_set_level(log, LOG_ERROR);
    log_write(log, LOG_WARN, "nor this");
    log_write(log, LOG_ERROR, "e");
    log_set_level(log, LOG_DEBUG);
    log_write(log, LOG_DEBUG, "d");
    log_close(log);
    assert_lines(p->file, (const char *const[]){" INFO node 1 of three", " WARN w", " ERROR e",
                                                " DEBUG d", NULL});
    struct stat about;
    assert_int_equal(stat(p->file, &about), 0);
    assert_int_equal(about.st_mode & 0007, 0);

    /* A log goes on where it was. */
    assert_int_equal(log_open(p->file, LOG_INFO, &log), HK_OK);
    log_write(log, LOG_INFO, "again");
    log_close(log);
    assert_lines(p->file, (const char *const[]){" INFO node 1 of three", " WARN w", " ERROR e",
                                                " DEBUG d", " INFO again", NULL});
}

static void test_nothing_forges_a_line(void **state)
{
    struct place *p = *state;
    struct log *log;
    assert_int_equal(log_open(p->file, LOG_INFO, &log), HK_OK);
    errno = EXDEV;
    log_write(log, LOG_INFO, "from %s",
              "x\n2026-01-01T00:00:00.000Z ERROR fake\r\t\x1b[2J\\n\x7f\xff");
    assert_int_equal(errno, EXDEV);
    char *longest = malloc(10000);
    assert_non_null(longest);
    memset(longest, '\n', 9999);
    longest[9999] = '\0';
    log_write(log, LOG_INFO, "%s", longest);
    log_close(log);

    char *line = calloc(1, 10000);
    assert_non_null(line);
    strcpy(line, " INFO ");
    for (uint32_t i = 0; i < 2044; i++) {
        memcpy(line + 6 + (size_t)4 * i, "\\x0a", 4);
    }
    strcat(line, "...");
    assert_lines(p->file, (const char *const[]){" INFO from x\\x0a2026-01-01T00:00:00.000Z ERROR "
                                                "fake\\x0d\\x09\\x1b[2J\\\\n\\x7f\\xff",
                                                line, NULL});
    free(line);
    free(longest);
}

static void test_reopen(void **state)
{
    struct place *p = *state;
    struct log *log;
    assert_int_equal(log_open(p->file, LOG_INFO, &log), HK_OK);
    log_write(log, LOG_INFO, "one");
    assert_int_equal(rename(p->file, p->moved), 0);
    log_write(log, LOG_INFO, "two");
    log_reopen(log);
    log_write(log, LOG_INFO, "three");
    assert_lines(p->moved, (const char *const[]){" INFO one", " INFO two", NULL});
    assert_lines(p->file, (const char *const[]){" INFO three", NULL});

    /* What cannot be opened anew goes on, and says so. */
    assert_int_equal(unlink(p->moved), 0);
    assert_int_equal(rename(p->file, p->moved), 0);
    assert_int_equal(mkdir(p->file, 0700), 0);
    log_reopen(log);
    log_write(log, LOG_INFO, "four");
    char failed[256];
    (void)snprintf(failed, sizeof failed,
                   " ERROR cannot open the log %s anew: Is a directory; going on with the old file",
                   p->file);
    assert_lines(p->moved, (const char *const[]){" INFO three", failed, " INFO four", NULL});
    assert_int_equal(rmdir(p->file), 0);
    log_close(log);
}

static void test_cannot_be_opened(void **state)
{
    struct place *p = *state;
    struct log *log;
    errno = 0;
    assert_int_equal(log_open(p->folder, LOG_INFO, &log), HK_ERR_IO);
    assert_int_equal(errno, EISDIR);
    assert_int_equal(log_open("/nonexistent/log", LOG_INFO, &log), HK_ERR_IO);
    assert_int_equal(errno, ENOENT);
}

static void test_standard_error(void **state)
{
    struct place *p = *state;
    struct log *log;
    int kept = dup(STDERR_FILENO);
    int fd = open(p->file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(kept >= 0 && fd >= 0);
    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    int opened = log_open("", LOG_INFO, &log);
    log_write(log, LOG_INFO, "hello");
    log_reopen(log);
    log_close(log);
    opened |= log_open(NULL, LOG_INFO, &log);
    log_write(log, LOG_INFO, "still open");
    log_close(log);
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    (void)close(kept);
    (void)close(fd);
    assert_int_equal(opened, HK_OK);
    assert_lines(p->file, (const char *const[]){" INFO hello", " INFO still open", NULL});
}

#define WRITERS 4
#define LINES 500

struct writer {
    struct log *log;
    uint32_t id;
};

static void *write_lines(void *context)
{
    const struct writer *w = context;
    for (uint32_t i = 0; i < LINES; i++) {
        log_write(w->log, i % 2 == 0 ? LOG_INFO : LOG_WARN, "writer %u line %u of many", w->id, i);
        log_set_level(w->log, i % 3 == 0 ? LOG_DEBUG : LOG_INFO);
    }
    return NULL;
}

/* Lines come whole from several threads, and none is lost while the file is changed under them. */
static void test_threads(void **state)
{
    struct place *p = *state;
    struct log *log;
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    uint32_t next[WRITERS] = {0}, sum = 0;
    assert_int_equal(log_open(p->file, LOG_INFO, &log), HK_OK);
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){log, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &writers[i]), 0);
    }
    assert_int_equal(rename(p->file, p->moved), 0);
    for (uint32_t i = 0; i < 20; i++) {
        log_reopen(log);
    }
    for (uint32_t i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    log_close(log);
    for (uint32_t file = 0; file < 2; file++) {
        char *text = read_all(file == 0 ? p->moved : p->file);
        char *rest = NULL;
        for (char *line = strtok_r(text, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest)) {
            uint32_t id, i;
            int n = 0;
            assert_int_equal(
                sscanf(line + TIME_BYTES, " %*s writer %u line %u of many%n", &id, &i, &n), 2);
            sum += id < WRITERS && next[id] == i && line[TIME_BYTES + (size_t)n] == '\0';
            next[id]++;
        }
        free(text);
    }
    assert_int_equal(sum, WRITERS * LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines_and_levels, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_nothing_forges_a_line, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_reopen, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_cannot_be_opened, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_standard_error, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_threads, make_place, remove_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
