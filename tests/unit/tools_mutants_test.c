/* `horkos sim --mutants`: what it makes of records, and its exit statuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/commands.h"

#define TEXT_MAX 16384

/* What the command printed, both to standard output and to standard error. */
static char printed[TEXT_MAX];

static int run(int argc, char **argv)
{
    fflush(NULL);
    FILE *file = tmpfile();
    assert_non_null(file);
    int out = dup(STDOUT_FILENO);
    int err = dup(STDERR_FILENO);
    assert_true(out >= 0 && err >= 0);
    dup2(fileno(file), STDOUT_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    int status = sim_command(argc, argv);
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    rewind(file);
    size_t n = fread(printed, 1, TEXT_MAX - 1, file);
    printed[n] = '\0';
    fclose(file);
    return status;
}

/* The exit status for a file of records, of the mutants whose names begin so. */
static int records(const char *mutants, const char *text)
{
    char path[] = "/tmp/horkos-records-XXXXXX";
    char wanted[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    snprintf(wanted, sizeof wanted, "--mutants=%s", mutants);
    char *argv[] = {"sim", wanted, "--records", path, "--jobs", "2", NULL};
    int status = run(6, argv);
    unlink(path);
    return status;
}

#ifdef HK_MUTANTS

static void test_caught(void **state)
{
    (void)state;
    assert_int_equal(records("hermes:all_acks", "# a comment\n\n"
                                                "hermes:all_acks explore two-writes # early\n"
                                                "hermes:all_acks sim 3 1 --no-o3\n"),
                     STATUS_OK);
    assert_non_null(strstr(printed, "caught   hermes:all_acks explore two-writes: invariant: "));
    assert_non_null(strstr(printed, "caught   hermes:all_acks sim 3 1 --no-o3: "));
    assert_non_null(strstr(printed, "1 mutants: 1 caught (1 by the simulator, 1 by the explorer)"));
}

static void test_not_shown(void **state)
{
    (void)state;
    /* Too few states. */
    assert_int_equal(records("hermes:first", "hermes:first explore join-forget 5\n"),
                     STATUS_FAILED);
    assert_non_null(strstr(printed, "MISSED   hermes:first"));
    /* One record of two. */
    assert_int_equal(records("hermes:all_acks", "hermes:all_acks explore two-writes\n"
                                                "hermes:all_acks explore crash 2\n"),
                     STATUS_FAILED);
    /* No such test. */
    assert_int_equal(
        records("flip:view/acceptor.c:busy", "flip:view/acceptor.c:busy:2:|| test no_such_test\n"),
        STATUS_FAILED);
}

static void test_excuses(void **state)
{
    (void)state;
    assert_int_equal(records("hermes:ack_ts", "# nothing\n"), STATUS_OK);
    assert_non_null(strstr(printed, "1 survive as expected, 0 wrong"));
    assert_int_equal(records("hermes:all_acks", "# nothing\n"), STATUS_FAILED);
    assert_non_null(strstr(printed, "hermes:all_acks is neither excused nor recorded"));
    assert_int_equal(records("hermes:ack_ts", "hermes:ack_ts explore crash 10\n"), STATUS_FAILED);
    assert_non_null(strstr(printed, "hermes:ack_ts is excused and recorded"));
}

static void test_wrong_records(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "hermes:no_such_rule sim 3 1",
        "hermes:all_acks",
        "hermes:all_acks sim 3",
        "hermes:all_acks sim 3 1 --no-such-option",
        "hermes:all_acks explore",
        "hermes:all_acks explore no-such-config",
        "hermes:all_acks explore crash none",
        "hermes:all_acks explore crash 10 20",
        "hermes:all_acks test some_test",
        "hermes:all_acks guess",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(records("", lines[i]), STATUS_USAGE);
        assert_non_null(strstr(printed, ":1 is no record of a mutant of this build"));
    }
    char *argv[] = {"sim", "--mutants", "--records", "/no/such/file", NULL};
    assert_int_equal(run(4, argv), STATUS_USAGE);
    char *alone[] = {"sim", "--records", "/dev/null", NULL};
    assert_int_equal(run(3, alone), STATUS_USAGE);
}

/* Looking for what shows a mutant ends with a record of it. */
static void test_hunt(void **state)
{
    (void)state;
    char *argv[] = {"sim", "--mutants=view:grants-first", "--seeds", "1", "--json", NULL};
    assert_int_equal(run(5, argv), STATUS_OK);
    assert_non_null(strstr(printed, "\"record\": \"view:grants-first explore view-drop\""));
    assert_non_null(strstr(printed, "\"wrong\": 0"));
}

#else

static void test_other_builds(void **state)
{
    (void)state;
    assert_int_equal(records("", "hermes:all_acks sim 3 1\n"), STATUS_USAGE);
    assert_non_null(strstr(printed, "only in horkos-mutants"));
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef HK_MUTANTS
        cmocka_unit_test(test_caught),  cmocka_unit_test(test_not_shown),
        cmocka_unit_test(test_excuses), cmocka_unit_test(test_wrong_records),
        cmocka_unit_test(test_hunt),
#else
        cmocka_unit_test(test_other_builds),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
