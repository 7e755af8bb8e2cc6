/* `horkos explore`: its command line, its exit statuses, what it prints. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

#include "tools/commands.h"
#include "tools/explore_options.h"

#define ARGS_MAX 16
#define TEXT_MAX 65536

/* What the command printed, both to standard output and to standard error. */
static char printed[TEXT_MAX];

static int run(const char *line)
{
    static char words[512];
    char *argv[ARGS_MAX] = {NULL};
    int argc = 0;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        assert_true(argc < ARGS_MAX - 1);
        argv[argc++] = word;
    }
    fflush(stdout);
    fflush(stderr);
    FILE *file = tmpfile();
    assert_non_null(file);
    int out = dup(STDOUT_FILENO);
    int err = dup(STDERR_FILENO);
    assert_true(out >= 0 && err >= 0);
    dup2(fileno(file), STDOUT_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    int status = explore_command(argc, argv);
    fflush(stdout);
    fflush(stderr);
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

static void test_help_and_list(void **state)
{
    (void)state;
    assert_int_equal(run("explore --help"), STATUS_OK);
    assert_non_null(strstr(printed, "usage: horkos explore"));
    assert_int_equal(run("explore --list"), STATUS_OK);
    for (uint32_t i = 0; i < explore_count(); i++) {
        assert_non_null(strstr(printed, explore_at(i)->name));
    }
}

static void test_one_engine(void **state)
{
    (void)state;
    assert_int_equal(run("explore --engine hermes --config two-writes --states-max 50"),
                     STATUS_BOUND);
    assert_non_null(strstr(printed, "two-writes"));
    (void)run("explore --engine lotus-locks --config two-writes --states-max 50");
    assert_null(strstr(printed, "two-writes"));
}

static void test_wrong_options(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "explore --config nothing", "explore --states-max 0",
        "explore --memory x",       "explore --seconds",
        "explore --stats",          "explore more",
        "explore --trace",          "explore --engine locks",
#ifndef HK_MUTANTS
        "explore --mutants",        "explore --mutant hermes:epoch",
#else
        "explore --mutant hermes:no_such_rule", "explore --mutant node:lease",
#endif
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(run(lines[i]), STATUS_USAGE);
        assert_non_null(strstr(printed, "horkos explore:"));
    }
}

static void test_complete(void **state)
{
    (void)state;
    assert_int_equal(run("explore --config second-life"), STATUS_OK);
    assert_non_null(strstr(printed, "second-life"));
    assert_non_null(strstr(printed, "complete"));
    assert_non_null(strstr(printed, "4 nodes, write, 0 dropped alive, 0 admitted, 0 replays"));
}

static void test_bound(void **state)
{
    (void)state;
    assert_int_equal(run("explore --config two-writes --states-max 50"), STATUS_BOUND);
    assert_non_null(strstr(printed, "bound"));
}

static void test_json(void **state)
{
    (void)state;
    assert_int_equal(run("explore --config second-life --json"), STATUS_OK);
    json_t *json = json_loads(printed, 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_integer_value(json_object_get(json, "violations")), 0);
    json_t *one = json_array_get(json_object_get(json, "configs"), 0);
    assert_string_equal(json_string_value(json_object_get(one, "config")), "second-life");
    assert_string_equal(json_string_value(json_object_get(one, "family")), "hermes");
    assert_string_equal(json_string_value(json_object_get(one, "end")), "complete");
    assert_true(json_integer_value(json_object_get(one, "states")) > 50);
    assert_null(json_object_get(one, "trace"));
    json_decref(json);
}

#ifdef HK_MUTANTS
static void test_mutant(void **state)
{
    (void)state;
    assert_int_equal(run("explore --config two-writes --mutant hermes:all_acks"), STATUS_FAILED);
    assert_non_null(strstr(printed, "violation"));
    assert_non_null(strstr(printed, "  1  A takes up w1"));
    assert_int_equal(run("explore --config two-writes --mutant hermes:all_acks --json"),
                     STATUS_FAILED);
    json_t *json = json_loads(printed, 0, NULL);
    assert_non_null(json);
    json_t *one = json_array_get(json_object_get(json, "configs"), 0);
    assert_int_equal(json_array_size(json_object_get(one, "trace")), 4);
    json_decref(json);
}

static void test_mutants(void **state)
{
    (void)state;
    assert_int_equal(run("explore --mutants=hermes:all_acks --trace"), STATUS_OK);
    assert_non_null(strstr(printed, "caught by two-writes in 3 steps"));
    assert_non_null(strstr(printed, "  1  A takes up w1"));
    assert_non_null(strstr(printed, "1 caught, 0 survive"));
    /* A hunt that may not look far enough says so, and by its status too. */
    assert_int_equal(run("explore --mutants=hermes:ack_same --states-max 10 --json"),
                     STATUS_FAILED);
    json_t *json = json_loads(printed, 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_integer_value(json_object_get(json, "wrong")), 1);
    json_decref(json);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help_and_list), cmocka_unit_test(test_one_engine),
        cmocka_unit_test(test_wrong_options), cmocka_unit_test(test_complete),
        cmocka_unit_test(test_bound),         cmocka_unit_test(test_json),
#ifdef HK_MUTANTS
        cmocka_unit_test(test_mutant),        cmocka_unit_test(test_mutants),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
