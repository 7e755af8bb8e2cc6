/* The command line of `horkos bench`. */
#include "tools/bench_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tools/commands.h"

static struct bench_options o;

static int parse(const char *line)
{
    static char text[512];
    char *argv[64];
    int argc = 0;
    bool help = false;
    snprintf(text, sizeof text, "bench %s", line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    return bench_options_parse(argc, argv, &o, &help);
}

static void test_defaults(void **state)
{
    (void)state;
    assert_int_equal(parse(""), STATUS_OK);
    assert_int_equal(o.engines_n, 1);
    assert_string_equal(o.engines[0]->name, "hermes");
    assert_int_equal(o.config.nodes, 3);
    assert_int_equal(o.config.keys.n, 1000000);
    assert_true(o.config.mix.writes == 5.0 && o.config.mix.rmws == 0.0);
    assert_int_equal(o.config.read_path, BENCH_READ_DIRECT);
    assert_true(o.config.keys.scramble);
    assert_true(o.config.rate == 0.0);
    assert_false(o.json || o.probe);
}

static void test_all_options(void **state)
{
    (void)state;
    assert_int_equal(parse("--engine hermes --nodes 5 --workers 2 --port tcp --threads --o3 "
                           "--keys 1000 --key-bytes 16 --value 100 --writes 20 --rmws 0.5 "
                           "--dist zipf:0.99 --no-scramble --in-flight 10 --rate 2e6 --even "
                           "--read-path node --seconds 0.5 --warmup 0 --runs 7 --seed 9 --probe "
                           "--json"),
                     STATUS_OK);
    const struct bench_config *c = &o.config;
    assert_int_equal(c->nodes, 5);
    assert_int_equal(c->workers, 2);
    assert_int_equal(c->port, BENCH_TCP);
    assert_true(c->threads && c->ack_to_all && c->even && !c->async_reads);
    assert_int_equal(c->keys.n, 1000);
    assert_int_equal(c->key_bytes, 16);
    assert_int_equal(c->value_bytes, 100);
    assert_true(c->mix.writes == 20.0 && c->mix.rmws == 0.5);
    assert_true(c->keys.exponent == 0.99 && !c->keys.scramble);
    assert_int_equal(c->in_flight, 10);
    assert_true(c->rate == 2e6);
    assert_int_equal(c->read_path, BENCH_READ_NODE);
    assert_true(o.seconds == 0.5 && o.warmup == 0.0);
    assert_int_equal(o.runs, 7);
    assert_int_equal(c->seed, 9);
    assert_true(o.probe && o.json);
    assert_int_equal(parse("--cooperative"), STATUS_OK);
    assert_false(o.config.threads);
}

/* What a majority has to confirm cannot be read on the caller's thread. */
static void test_the_read_path_follows(void **state)
{
    (void)state;
    assert_int_equal(parse("--async-reads"), STATUS_OK);
    assert_int_equal(o.config.read_path, BENCH_READ_NODE);
    assert_int_equal(parse("--async-reads --read-path direct"), STATUS_USAGE);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "--engine nothing",
        "--compare hermes",
        "--compare hermes,hermes",
        "--compare hermes,",
        "--engine hermes --compare hermes,nothing",
        "--nodes 0",
        "--nodes 10",
        "--workers 33",
        "--port udp",
        "--threads --cooperative",
        "--keys 0",
        "--keys 1073741825",
        "--key-bytes 7",
        "--value 65537",
        "--writes 101",
        "--writes -1",
        "--writes x",
        "--writes 60 --rmws 50",
        "--dist zipf",
        "--dist zipf:0",
        "--in-flight 0",
        "--in-flight 1025",
        "--rate 0",
        "--rate nan",
        "--even",
        "--read-path fast",
        "--seconds 0",
        "--runs 0",
        "--runs 1001",
        "--writes",
        "--nothing",
        "word",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (parse(lines[i]) != STATUS_USAGE) {
            fail_msg("not refused: %s", lines[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_all_options),
        cmocka_unit_test(test_the_read_path_follows),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
