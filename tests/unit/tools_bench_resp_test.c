/* The command line of `horkos bench --resp`. */
#include "tools/bench_resp_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tools/bench_resp.h"
#include "tools/commands.h"

static struct bench_resp_options o;

static int split(const char *line, char text[512], char *argv[40])
{
    int argc = 0;
    snprintf(text, 512, "bench %s", line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    return argc;
}

static int parse(const char *line)
{
    static char text[512];
    char *argv[40];
    bool help = false;
    int argc = split(line, text, argv);
    return bench_resp_options_parse(argc, argv, &o, &help);
}

static bool asked(const char *line)
{
    char text[512];
    char *argv[40];
    int argc = split(line, text, argv);
    return bench_resp_asked(argc, argv);
}

static void test_when_it_is_meant(void **state)
{
    (void)state;
    assert_true(asked("--resp a:1"));
    assert_true(asked("--keys 7 --resp=a:1"));
    assert_false(asked("--keys 7"));
    assert_false(asked("--response"));
}

static void test_defaults(void **state)
{
    (void)state;
    assert_int_equal(parse("--resp 127.0.0.1:6379"), STATUS_OK);
    assert_int_equal(o.config.servers_n, 1);
    assert_string_equal(o.config.servers[0], "127.0.0.1:6379");
    assert_int_equal(o.config.connections, 50);
    assert_int_equal(o.config.pipeline, 1);
    assert_int_equal(o.config.threads, 1);
    assert_int_equal(o.config.keys.n, 1000000);
    assert_int_equal(o.config.value_bytes, 32);
    assert_int_equal(o.config.wait_replicas, 0);
    assert_true(o.config.mix.writes == 5.0 && o.config.rate == 0.0);
    assert_true(o.config.fill && o.config.keys.scramble && !o.json);
    assert_int_equal(o.runs, 5);
}

static void test_all_options(void **state)
{
    (void)state;
    assert_int_equal(parse("--resp a:1,unix:/x,[::1]:2 --pids 1,23,456 --connections 8 "
                           "--pipeline 16 --threads 2 --keys 100 --no-fill --value 9 --writes 12.5 "
                           "--wait 2 --dist zipf:0.9 --no-scramble --rate 1e4 --even --io epoll "
                           "--seconds 0.5 --warmup 0 --runs 3 --seed 4 --json"),
                     STATUS_OK);
    const struct resp_load_config *c = &o.config;
    assert_int_equal(c->servers_n, 3);
    assert_string_equal(c->servers[2], "[::1]:2");
    assert_int_equal(c->pids_n, 3);
    assert_true(c->pids[0] == 1 && c->pids[1] == 23 && c->pids[2] == 456);
    assert_true(c->connections == 8 && c->pipeline == 16 && c->threads == 2);
    assert_true(c->keys.n == 100 && c->keys.exponent == 0.9 && !c->keys.scramble && !c->fill);
    assert_true(c->value_bytes == 9 && c->mix.writes == 12.5 && c->wait_replicas == 2);
    assert_true(c->rate == 1e4 && c->even && c->io == LOOP_EPOLL && c->seed == 4);
    assert_true(o.seconds == 0.5 && o.warmup == 0.0 && o.runs == 3 && o.json);
}

static void test_help(void **state)
{
    (void)state;
    char text[512];
    char *argv[40];
    bool help = false;
    int argc = split("--resp --help", text, argv);
    assert_int_equal(bench_resp_options_parse(argc, argv, &o, &help), STATUS_OK);
    assert_true(help);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "--resp nonsense",
        "--resp a:1,",
        "--resp a:1,b",
        "--resp a:1 --pids 0",
        "--resp a:1 --pids 1,,2",
        "--resp a:1 --pids 1,x",
        "--resp a:1 --connections 0",
        "--resp a:1 --pipeline 1025",
        "--resp a:1 --threads 51",
        "--resp a:1 --even",
        "--resp a:1 --writes 101",
        "--resp a:1 --writes -1",
        "--resp a:1 --rate 0",
        "--resp a:1 --dist normal",
        "--resp a:1 --io poll",
        "--resp a:1 --nodes 3",
        "--resp a:1 more",
        "--resp",
        "",
        "--resp a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1",
        "--resp a:1 --pids 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(parse(wrong[i]), STATUS_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_it_is_meant), cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_all_options),      cmocka_unit_test(test_help),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
