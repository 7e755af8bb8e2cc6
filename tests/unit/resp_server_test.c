/* The commands on the process: COMMAND, CONFIG, INFO, SLOWLOG and the rest, and what is refused, in
 * the words of redis-server 7.0 wherever it has some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "resp/command.h"
#include "support/resp_admin.h"

#define OK "+OK\r\n"
#define SYNTAX "-ERR syntax error\r\n"

/* ---- COMMAND ---- */

static void describes_commands(void **state)
{
    (void)state;
    struct admin admin;
    char count[32];
    admin_init(&admin, NULL);
    snprintf(count, sizeof count, ":%u\r\n", resp_command_count());
    rig_expect(&admin.rig, "COMMAND COUNT", count);
    snprintf(count, sizeof count, "*%u\r\n*10\r\n", resp_command_count());
    rig_expect_begin(&admin.rig, "COMMAND", count);
    rig_expect_begin(&admin.rig, "COMMAND INFO", count);
    rig_expect(&admin.rig, "COMMAND INFO get nosuch lpush",
               "*3\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"
               "*3\r\n+@read\r\n+@string\r\n+@fast\r\n*0\r\n"
               "*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n+access\r\n$12\r\nbegin_search\r\n*4\r\n"
               "$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n"
               "$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n*6\r\n"
               "$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0\r\n"
               "$-1\r\n$-1\r\n");
    (void)rig_call(&admin.rig, "HELLO 3");
    rig_expect(
        &admin.rig, "COMMAND INFO client|id nosuch",
        "*2\r\n*10\r\n$9\r\nclient|id\r\n:2\r\n~2\r\n+loading\r\n+stale\r\n:0\r\n:0\r\n:0\r\n"
        "~2\r\n+@slow\r\n+@connection\r\n~0\r\n~0\r\n~0\r\n_\r\n");
    rig_expect(&admin.rig, "COMMAND COUNT x",
               "-ERR wrong number of arguments for 'command|count' command\r\n");
    rig_expect(&admin.rig, "COMMAND foo", "-ERR unknown subcommand 'foo'. Try COMMAND HELP.\r\n");
    admin_deinit(&admin);
}

static void documents_commands(void **state)
{
    (void)state;
    struct admin admin;
    char count[32];
    admin_init(&admin, NULL);
    snprintf(count, sizeof count, "*%u\r\n$3\r\nacl\r\n", 2 * resp_command_count());
    rig_expect_begin(&admin.rig, "COMMAND DOCS", count);
    rig_expect(
        &admin.rig, "COMMAND DOCS nosuch get lpush",
        "*2\r\n$3\r\nget\r\n*10\r\n$7\r\nsummary\r\n$27\r\nAnswers the value of a key.\r\n"
        "$5\r\nsince\r\n$5\r\n1.0.0\r\n$5\r\ngroup\r\n$6\r\nstring\r\n"
        "$10\r\ncomplexity\r\n$4\r\nO(1)\r\n"
        "$9\r\narguments\r\n*1\r\n*6\r\n$4\r\nname\r\n$3\r\nkey\r\n$4\r\ntype\r\n$3\r\nkey\r\n"
        "$14\r\nkey_spec_index\r\n:0\r\n");
    rig_expect(&admin.rig, "COMMAND DOCS nosuch", "*0\r\n");
    (void)rig_call(&admin.rig, "HELLO 3");
    rig_expect(&admin.rig, "COMMAND DOCS nosuch", "%0\r\n");
    snprintf(count, sizeof count, "%%%u\r\n$3\r\nacl\r\n%%5\r\n", resp_command_count());
    rig_expect_begin(&admin.rig, "COMMAND DOCS", count);
    /* A client looks a subcommand's name up behind the bar. */
    rig_expect_begin(&admin.rig, "COMMAND DOCS object",
                     "%1\r\n$6\r\nobject\r\n%5\r\n$7\r\nsummary\r\n");
    assert_non_null(strstr(rig_call(&admin.rig, "COMMAND DOCS object"),
                           "$11\r\nsubcommands\r\n%5\r\n$15\r\nobject|encoding\r\n%5\r\n"));
    admin_deinit(&admin);
}

static void lists_commands(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    rig_expect(&admin.rig, "COMMAND LIST FILTERBY PATTERN g*T",
               "*2\r\n$3\r\nget\r\n$6\r\ngetset\r\n");
    rig_expect(&admin.rig, "command list filterby pattern client|set*",
               "*2\r\n$14\r\nclient|setinfo\r\n$14\r\nclient|setname\r\n");
    rig_expect(&admin.rig, "COMMAND LIST FILTERBY PATTERN *tracking", "*0\r\n");
    rig_expect(&admin.rig, "COMMAND LIST FILTERBY MODULE x", "*0\r\n");
    rig_expect(&admin.rig, "COMMAND LIST FILTERBY ACLCAT nosuch", "*0\r\n");
    rig_expect(&admin.rig, "COMMAND LIST FILTERBY foo x", SYNTAX);
    rig_expect(&admin.rig, "COMMAND LIST x", SYNTAX);
    assert_non_null(
        strstr(rig_call(&admin.rig, "COMMAND LIST FILTERBY ACLCAT STRING"), "$6\r\nappend\r\n"));
    assert_null(strstr(rig_call(&admin.rig, "COMMAND LIST FILTERBY ACLCAT string"), "\r\ndel\r\n"));
    assert_non_null(strstr(rig_call(&admin.rig, "COMMAND LIST"), "$11\r\nclient|kill\r\n"));
    admin_deinit(&admin);
}

static void finds_keys(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    rig_expect(&admin.rig, "COMMAND GETKEYS get a", "*1\r\n$1\r\na\r\n");
    rig_expect(&admin.rig, "COMMAND GETKEYS mset a 1 b 2", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    rig_expect(&admin.rig, "COMMAND GETKEYS mset a 1 b", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    rig_expect(&admin.rig, "COMMAND GETKEYS DEL a b c", "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
    rig_expect(&admin.rig, "COMMAND GETKEYS memory usage a", "*1\r\n$1\r\na\r\n");
    rig_expect(
        &admin.rig, "COMMAND GETKEYSANDFLAGS copy a b",
        "*2\r\n*2\r\n$1\r\na\r\n*2\r\n+RO\r\n+access\r\n*2\r\n$1\r\nb\r\n*2\r\n+OW\r\n+update\r\n");
    rig_expect(
        &admin.rig, "COMMAND GETKEYSANDFLAGS del a b",
        "*2\r\n*2\r\n$1\r\na\r\n*2\r\n+RM\r\n+delete\r\n*2\r\n$1\r\nb\r\n*2\r\n+RM\r\n+delete\r\n");
    rig_expect(&admin.rig, "COMMAND GETKEYS ping x", "-ERR The command has no key arguments\r\n");
    rig_expect(&admin.rig, "COMMAND GETKEYS nosuch x", "-ERR Invalid command specified\r\n");
    rig_expect(&admin.rig, "COMMAND GETKEYS lpush a b", "-ERR Invalid command specified\r\n");
    rig_expect(&admin.rig, "COMMAND GETKEYS memory foo a", "-ERR Invalid command specified\r\n");
    rig_expect(&admin.rig, "COMMAND GETKEYS get a b",
               "-ERR Invalid number of arguments specified for command\r\n");
    rig_expect(&admin.rig, "COMMAND GETKEYS get",
               "-ERR Invalid number of arguments specified for command\r\n");
    rig_expect(&admin.rig, "COMMAND GETKEYS",
               "-ERR wrong number of arguments for 'command|getkeys' command\r\n");
    admin_deinit(&admin);
}

/* Commands whose arguments pass the arity, of every number of words, whatever they are. */
static void finds_keys_of_any_command(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    for (uint32_t i = 0; i < resp_command_count(); i++) {
        const struct resp_command *command = resp_command_at(i);
        for (uint32_t j = 0; j <= command->subcommands_n; j++) {
            char words[400];
            size_t at = (size_t)snprintf(words, sizeof words, "COMMAND GETKEYSANDFLAGS %s%s%s",
                                         command->name, j > 0 ? " " : "",
                                         j > 0 ? command->subcommands[j - 1].name : "");
            for (uint32_t n = 0; n < 9; n++) {
                const char *got = rig_call(&admin.rig, words);
                assert_true(got[0] == '-' || (got[0] == '*' && got[1] != '0'));
                at += (size_t)snprintf(words + at, sizeof words - at, " k%u", n);
            }
        }
    }
    admin_deinit(&admin);
}

/* ---- CONFIG, INFO ---- */

static void reads_configuration(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    rig_expect(&admin.rig, "CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
    rig_expect(&admin.rig, "CONFIG GET nosuch", "*0\r\n");
    rig_expect(&admin.rig, "CONFIG GET s[a]ve appendonly",
               "*4\r\n$4\r\nsave\r\n$0\r\n\r\n$10\r\nappendonly\r\n$2\r\nno\r\n");
    /* An option that several patterns match comes once. */
    rig_expect(&admin.rig, "CONFIG GET save SA* save max* s*",
               "*6\r\n$4\r\nsave\r\n$0\r\n\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n"
               "$23\r\nslowlog-log-slower-than\r\n$5\r\n10000\r\n");
    (void)rig_call(&admin.rig, "HELLO 3");
    rig_expect(&admin.rig, "CONFIG GET save", "%1\r\n$4\r\nsave\r\n$0\r\n\r\n");
    rig_expect(&admin.rig, "CONFIG GET nosuch", "%0\r\n");
    rig_expect(&admin.rig, "CONFIG GET",
               "-ERR wrong number of arguments for 'config|get' command\r\n");
    admin_deinit(&admin);
}

static void changes_configuration(void **state)
{
    (void)state;
    struct admin admin;
    char many[3000] = "CONFIG SET";
    admin_init(&admin, NULL);
    rig_expect(&admin.rig, "CONFIG SET maxmemory 100mb", OK);
    rig_expect(&admin.rig, "CONFIG GET maxmemory", "*2\r\n$9\r\nmaxmemory\r\n$5\r\n100mb\r\n");
    rig_expect(&admin.rig, "CONFIG SET maxmemory 1 maxmemory 2", OK);
    assert_int_equal(admin.config_sets, 3);
    rig_expect(&admin.rig, "CONFIG SET maxmemory 5 nosuch 1", "-ERR Unknown option\r\n");
    rig_expect(&admin.rig, "CONFIG SET maxmemory 5 nosuch", SYNTAX);
    rig_expect(&admin.rig, "CONFIG SET maxmemory",
               "-ERR wrong number of arguments for 'config|set' command\r\n");
    rig_expect(&admin.rig, "CONFIG GET maxmemory", "*2\r\n$9\r\nmaxmemory\r\n$1\r\n2\r\n");
    for (uint32_t i = 0; i < 65; i++) {
        strcat(many, " maxmemory 1");
    }
    rig_expect(&admin.rig, many, "-ERR more than 64 options\r\n");
    rig_expect(&admin.rig, "CONFIG RESETSTAT", OK);
    assert_int_equal(admin.stat_resets, 1);
    rig_expect(&admin.rig, "CONFIG REWRITE", OK);
    rig_expect(&admin.rig, "CONFIG REWRITE",
               "-ERR The server is running without a config file\r\n");
    rig_expect(&admin.rig, "CONFIG foo", "-ERR unknown subcommand 'foo'. Try CONFIG HELP.\r\n");
    admin_deinit(&admin);
}

static void informs(void **state)
{
    (void)state;
    struct admin admin;
    const char *got;
    admin_init(&admin, NULL);
    got = rig_call(&admin.rig, "INFO");
    assert_non_null(strstr(got, "# Server\r\n"));
    assert_non_null(strstr(got, "\r\n\r\n# Clients\r\n"));
    assert_null(strstr(got, "# Commandstats"));
    assert_non_null(strstr(rig_call(&admin.rig, "INFO all"), "# Commandstats"));
    assert_non_null(strstr(rig_call(&admin.rig, "INFO everything"), "# Commandstats"));
    assert_null(strstr(rig_call(&admin.rig, "INFO default"), "# Commandstats"));
    rig_expect(&admin.rig, "INFO CLIENTS", "$32\r\n# Clients\r\nconnected_clients:1\r\n\r\n");
    /* Each section once, in its own order. */
    rig_expect(&admin.rig, "INFO persistence clients clients",
               "$60\r\n# Clients\r\nconnected_clients:1\r\n\r\n# Persistence\r\nloading:0\r\n\r\n");
    rig_expect(&admin.rig, "INFO nosuch", "$0\r\n\r\n");
    rig_expect(&admin.rig, "INFO nosuch clients",
               "$32\r\n# Clients\r\nconnected_clients:1\r\n\r\n");
    (void)rig_call(&admin.rig, "HELLO 3");
    rig_expect(&admin.rig, "INFO nosuch", "=4\r\ntxt:\r\n");
    rig_expect(&admin.rig, "INFO clients", "=36\r\ntxt:# Clients\r\nconnected_clients:1\r\n\r\n");
    admin_deinit(&admin);
}

static void tells_time_and_role(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    admin.rig.wall_us = UINT64_C(1700000000000042);
    rig_expect(&admin.rig, "TIME", "*2\r\n$10\r\n1700000000\r\n$2\r\n42\r\n");
    rig_expect(&admin.rig, "ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
    rig_expect(&admin.rig, "ACL WHOAMI", "$7\r\ndefault\r\n");
    rig_expect(&admin.rig, "ACL SETUSER a",
               "-ERR 'acl|setuser' is not supported: users are in the configuration file\r\n");
    rig_expect(&admin.rig, "HORKOS echo a", "$1\r\na\r\n");
    rig_expect(&admin.rig, "HORKOS foo", "-ERR unknown subcommand 'foo'. Try HORKOS HELP.\r\n");
    rig_expect(&admin.rig, "HORKOS 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17",
               "-ERR wrong number of arguments for 'horkos' command\r\n");
    admin_deinit(&admin);
}

static void shuts_down(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    rig_expect(&admin.rig, "SHUTDOWN foo", SYNTAX);
    rig_expect(&admin.rig, "SHUTDOWN SAVE NOSAVE", SYNTAX);
    rig_expect(&admin.rig, "SHUTDOWN ABORT NOW", SYNTAX);
    rig_expect(&admin.rig, "SHUTDOWN ABORT", "-ERR No shutdown in progress.\r\n");
    rig_expect_begin(&admin.rig, "SHUTDOWN SAVE", "-ERR SHUTDOWN SAVE is not supported");
    assert_int_equal(admin.shutdowns, 0);
    admin.shutdown_error = "the node is joining";
    rig_expect(&admin.rig, "SHUTDOWN", "-ERR the node is joining\r\n");
    assert_int_equal(admin.rig.last, RESP_INPUT);
    admin.shutdown_error = NULL;
    rig_expect(&admin.rig, "SHUTDOWN nosave", "");
    assert_int_equal(admin.rig.last, RESP_CLOSE);
    assert_int_equal(admin.shutdowns, 2);
    assert_false(admin.shutdown_now);
    rig_reconnect(&admin.rig);
    rig_expect(&admin.rig, "SHUTDOWN NOW FORCE", "");
    assert_true(admin.shutdown_now);
    admin_deinit(&admin);
}

/* ---- SLOWLOG ---- */

static void logs_slow_commands(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    admin.slow_threshold_us = 0;
    admin.rig.wall_us = UINT64_C(1700000000000000);
    rig_expect(&admin.rig, "ECHO 1", "$1\r\n1\r\n");
    admin.slow_threshold_us = -1;
    rig_expect(&admin.rig, "SLOWLOG LEN", ":1\r\n");
    rig_expect(&admin.rig, "SLOWLOG GET",
               "*1\r\n*6\r\n:0\r\n:1700000000\r\n:0\r\n*2\r\n$4\r\nECHO\r\n$1\r\n1\r\n"
               "$15\r\n127.0.0.1:50000\r\n$0\r\n\r\n");
    rig_expect(&admin.rig, "SLOWLOG GET 0", "*0\r\n");
    rig_expect_begin(&admin.rig, "SLOWLOG GET -1", "*1\r\n");
    rig_expect(&admin.rig, "SLOWLOG GET -2",
               "-ERR count should be greater than or equal to -1\r\n");
    rig_expect(&admin.rig, "SLOWLOG GET x", "-ERR count should be greater than or equal to -1\r\n");
    rig_expect(
        &admin.rig, "SLOWLOG GET 1 2",
        "-ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.\r\n");
    rig_expect(&admin.rig, "SLOWLOG RESET", OK);
    rig_expect(&admin.rig, "SLOWLOG LEN", ":0\r\n");
    admin_deinit(&admin);
}

/* 32 arguments at most, the last of which says how many are missing; 128 bytes of each. */
static void cuts_slow_commands(void **state)
{
    (void)state;
    struct admin admin;
    char words[600] = "CLIENT ";
    const char *got;
    admin_init(&admin, NULL);
    admin.slow_threshold_us = 0;
    memset(words + 7, 'x', 200);
    words[207] = '\0';
    for (uint32_t i = 0; i < 40; i++) {
        strcat(words, " k");
    }
    /* An unknown subcommand is a command like any other, here one with 42 words. */
    rig_expect_begin(&admin.rig, words, "-ERR unknown subcommand");
    admin.slow_threshold_us = -1;
    got = rig_call(&admin.rig, "SLOWLOG GET 1");
    assert_non_null(strstr(got, "\r\n*32\r\n$6\r\nCLIENT\r\n$147\r\nxxx"));
    assert_non_null(strstr(got, "xxx... (72 more bytes)\r\n$1\r\nk\r\n"));
    assert_non_null(strstr(got, "$1\r\nk\r\n$23\r\n... (11 more arguments)\r\n"));
    /* Of a command on keys only the beginning of its first key is left. */
    admin.slow_threshold_us = 0;
    (void)rig_call(&admin.rig, "GET 0123456789abcdef0123456789abcdefXYZ");
    (void)rig_call(&admin.rig, "GET 0123456789abcdef0123456789abcdef");
    admin.slow_threshold_us = -1;
    got = rig_call(&admin.rig, "SLOWLOG GET 2");
    assert_non_null(strstr(got, "\r\n$32\r\n0123456789abcdef0123456789abcdef\r\n"));
    assert_non_null(strstr(got, "0123456789abcdef... (3 more bytes)\r\n"));
    admin_deinit(&admin);
}

static void keeps_secrets(void **state)
{
    (void)state;
    static const char *const secret[] = {"AUTH hunter2",
                                         "AUTH default hunter2",
                                         "HELLO 3 AUTH default hunter2",
                                         "HELLO 2 AUTH hunter2",
                                         "CONFIG SET requirepass hunter2",
                                         "AUTH a b hunter2",
                                         "CONFIG sett requirepass hunter2",
                                         "ACL SETUSER worker >hunter2",
                                         "ACL nothing hunter2",
                                         "MIGRATE host 6379 key 0 100 AUTH hunter2",
                                         "CONFIG SET maxmemory hunter2"};
    struct admin admin;
    admin_init(&admin, "sesame");
    rig_expect(&admin.rig, "AUTH sesame", OK);
    admin.slow_threshold_us = 0;
    for (uint32_t i = 0; i < sizeof secret / sizeof secret[0]; i++) {
        (void)rig_call(&admin.rig, secret[i]);
    }
    admin.slow_threshold_us = -1;
    assert_int_equal(admin.slow_n, ADMIN_SLOW_MAX);
    assert_null(strstr(rig_call(&admin.rig, "SLOWLOG GET -1"), "hunter2"));
    assert_null(strstr(rig_call(&admin.rig, "CLIENT LIST"), "hunter2"));
    admin_deinit(&admin);
}

/* ---- What is not measured ---- */

static void answers_what_is_not_measured(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    rig_expect(&admin.rig, "LATENCY LATEST", "*0\r\n");
    rig_expect(&admin.rig, "LATENCY HISTOGRAM", "*0\r\n");
    rig_expect(&admin.rig, "LATENCY HISTOGRAM get set", "*0\r\n");
    rig_expect(&admin.rig, "LATENCY HISTORY command", "*0\r\n");
    rig_expect(&admin.rig, "LATENCY RESET", ":0\r\n");
    rig_expect(&admin.rig, "LATENCY GRAPH x", "-ERR No samples available for event 'x'\r\n");
    rig_expect_begin(&admin.rig, "LATENCY DOCTOR", "$");
    rig_expect_begin(&admin.rig, "MEMORY DOCTOR", "$");
    rig_expect_begin(&admin.rig, "MEMORY MALLOC-STATS", "$");
    rig_expect(&admin.rig, "MEMORY PURGE", OK);
    rig_expect(&admin.rig, "MEMORY STATS",
               "*6\r\n$11\r\nused_memory\r\n:1000\r\n$17\r\nused_memory_human\r\n$5\r\n1000B\r\n"
               "$9\r\nmaxmemory\r\n:0\r\n");
    (void)rig_call(&admin.rig, "HELLO 3");
    rig_expect(&admin.rig, "LATENCY HISTOGRAM", "%0\r\n");
    rig_expect_begin(&admin.rig, "MEMORY STATS", "%3\r\n$11\r\nused_memory\r\n:1000\r\n");
    rig_expect_begin(&admin.rig, "MEMORY DOCTOR", "=");
    admin_deinit(&admin);
}

/* ---- Errors ---- */

/* Each name is refused once with its reason, and the stream stays in step. */
static void refuses_in_step(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    admin.rig.awake = true;
    for (uint32_t i = 0; resp_refused_at(i) != NULL; i++) {
        const struct resp_command *command = resp_refused_at(i);
        char input[200];
        char wanted[300];
        snprintf(input, sizeof input,
                 "*4\r\n$%zu\r\n%s\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"
                 "*1\r\n$4\r\nPING\r\n",
                 strlen(command->name), command->name);
        const char *got = rig_send(&admin.rig, input);
        const char *end = strstr(got, "\r\n");
        assert_non_null(end);
        if (strcmp(command->name, "multi") == 0) {
            assert_string_equal(end + 2, "-ERR not run: the MULTI before it was refused\r\n");
            rig_expect(&admin.rig, "DISCARD", OK);
            continue;
        }
        assert_string_equal(end + 2, "+PONG\r\n");
        if (command->refusal != NULL) {
            snprintf(wanted, sizeof wanted, "-ERR %s\r\n+PONG\r\n", command->refusal);
            assert_string_equal(got, wanted);
        } else {
            assert_memory_equal(got, "-ERR ", 5);
        }
    }
    rig_expect(&admin.rig, "LPUSH a b",
               "-ERR 'lpush' is not supported: horkos keeps strings only\r\n");
    rig_expect(&admin.rig, "CLUSTER INFO", "-ERR This instance has cluster support disabled\r\n");
    rig_expect(&admin.rig, "CLUSTER", "-ERR This instance has cluster support disabled\r\n");
    admin_deinit(&admin);
}

static void has_no_transactions(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    admin.rig.awake = true;
    rig_expect(
        &admin.rig, "MULTI",
        "-ERR 'multi' is not supported in space 0 (engine hermes): transactions are for spaces of "
        "the engines zeus and lotus\r\n");
    rig_expect(&admin.rig, "DISCARD", OK);
    (void)rig_call(&admin.rig, "SELECT 2");
    rig_expect_begin(&admin.rig, "WATCH a",
                     "-ERR 'watch' is not supported in space 2 (engine hermes): ");
    rig_expect_begin(&admin.rig, "UNWATCH", "-ERR 'unwatch' is not supported in space 2");
    rig_expect(&admin.rig, "EXEC", "-ERR EXEC without MULTI\r\n");
    rig_expect(&admin.rig, "DISCARD", "-ERR DISCARD without MULTI\r\n");
    admin_deinit(&admin);
}

static void knows_its_limits(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    rig_expect(&admin.rig, "foo", "-ERR unknown command 'foo', with args beginning with: \r\n");
    rig_expect(&admin.rig, "foo a b",
               "-ERR unknown command 'foo', with args beginning with: 'a' 'b' \r\n");
    rig_expect(&admin.rig, "GET", "-ERR wrong number of arguments for 'get' command\r\n");
    rig_expect(&admin.rig, "DEBUG foo", "-ERR unknown subcommand 'foo'. Try DEBUG HELP.\r\n");
    rig_expect(&admin.rig, "DEBUG", "-ERR wrong number of arguments for 'debug' command\r\n");
    /* What the host does not offer. */
    admin.rig.host = (struct resp_host){
        .context = &admin.rig, .wall_us = admin.rig.host.wall_us, .random = admin.rig.host.random};
    rig_reconnect(&admin.rig);
    rig_expect(&admin.rig, "CONFIG GET a", "-ERR 'config|get' is not available here\r\n");
    rig_expect(&admin.rig, "CONFIG SET a b", "-ERR 'config|set' is not available here\r\n");
    rig_expect(&admin.rig, "CONFIG REWRITE", "-ERR 'config|rewrite' is not available here\r\n");
    rig_expect(&admin.rig, "CONFIG RESETSTAT", "-ERR 'config|resetstat' is not available here\r\n");
    rig_expect(&admin.rig, "INFO", "-ERR 'info' is not available here\r\n");
    rig_expect(&admin.rig, "MEMORY STATS", "-ERR 'memory|stats' is not available here\r\n");
    rig_expect(&admin.rig, "SLOWLOG GET", "-ERR 'slowlog|get' is not available here\r\n");
    rig_expect(&admin.rig, "SLOWLOG LEN", "-ERR 'slowlog|len' is not available here\r\n");
    rig_expect(&admin.rig, "SLOWLOG RESET", "-ERR 'slowlog|reset' is not available here\r\n");
    rig_expect(&admin.rig, "CLIENT LIST", "-ERR 'client|list' is not available here\r\n");
    rig_expect(&admin.rig, "CLIENT KILL ID 1", "-ERR 'client|kill' is not available here\r\n");
    rig_expect(&admin.rig, "SHUTDOWN", "-ERR 'shutdown' is not available here\r\n");
    rig_expect(&admin.rig, "HORKOS a", "-ERR 'horkos' is not available here\r\n");
    rig_expect(&admin.rig, "AUTH a b",
               "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    rig_expect(&admin.rig, "SELECT 0", OK);
    rig_expect(&admin.rig, "SELECT 1", "-ERR DB index is out of range: there is 0 (unknown)\r\n");
    rig_expect_begin(&admin.rig, "MULTI",
                     "-ERR 'multi' is not supported in space 0 (engine unknown)");
    admin_deinit(&admin);
}

/* A million words that are each looked up would keep everybody else waiting. */
static void bounds_its_work(void **state)
{
    (void)state;
    static const struct {
        const char *begin, *error;
    } rows[] = {
        {"INFO", "-ERR more than 1024 sections\r\n"},
        {"CONFIG GET", "-ERR more than 1024 patterns\r\n"},
        {"COMMAND INFO", "-ERR more than 1024 names\r\n"},
        {"COMMAND DOCS", "-ERR more than 1024 names\r\n"},
    };
    struct admin admin;
    char words[4000];
    admin_init(&admin, NULL);
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        strcpy(words, rows[i].begin);
        for (uint32_t j = 0; j < 1024; j++) {
            strcat(words, " x");
        }
        assert_int_not_equal(rig_call(&admin.rig, words)[0], '-');
        strcat(words, " x");
        rig_expect(&admin.rig, words, rows[i].error);
    }
    admin_deinit(&admin);
}

/* Every container's HELP, and that it names each subcommand that is served. */
static void helps(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    for (uint32_t i = 0; i < resp_command_count(); i++) {
        const struct resp_command *command = resp_command_at(i);
        char words[64];
        if (command->subcommands == NULL) {
            continue;
        }
        snprintf(words, sizeof words, "%s HELP", command->name);
        const char *got = rig_call(&admin.rig, words);
        assert_int_equal(got[0], '*');
        for (uint32_t j = 0; j < command->subcommands_n; j++) {
            const struct resp_command *sub = &command->subcommands[j];
            char line[64] = "\r\n+";
            size_t n = 3;
            for (uint32_t k = 0; sub->name[k] != '\0'; k++) {
                char c = sub->name[k];
                line[n++] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
            }
            /* A line that begins with the name, and not with a longer one. */
            const char *at = strstr(got, line);
            bool listed = at != NULL && strchr(" \r", at[n]) != NULL;
            if (listed == ((sub->flags & RESP_REFUSED) != 0)) {
                print_message("%s: %s\n", words, line);
                fail();
            }
        }
    }
    admin_deinit(&admin);
}

/* ---- HOTKEYS ---- */

static void lists_hot_keys(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    rig_expect(&admin.rig, "HOTKEYS 3",
               "*3\r\n*2\r\n$5\r\nhot:0\r\n:9223372036854775807\r\n"
               "*2\r\n$5\r\nhot:1\r\n:1000\r\n*2\r\n$5\r\nhot:2\r\n:100\r\n");
    rig_expect_begin(&admin.rig, "hotkeys", "*10\r\n*2\r\n$5\r\nhot:0\r\n");
    assert_int_equal(admin.hotkeys_count, 10);
    /* However many are asked for, no more than the bound. */
    rig_expect_begin(&admin.rig, "HOTKEYS 9223372036854775807", "*128\r\n*2\r\n");
    assert_int_equal(admin.hotkeys_count, RESP_HOTKEYS_MAX);
    rig_expect(&admin.rig, "HOTKEYS 0", "-ERR value is out of range, must be positive\r\n");
    rig_expect(&admin.rig, "HOTKEYS -1", "-ERR value is out of range, must be positive\r\n");
    rig_expect(&admin.rig, "HOTKEYS x", "-ERR value is not an integer or out of range\r\n");
    rig_expect(&admin.rig, "HOTKEYS 1 2", SYNTAX);
    rig_expect(&admin.rig, "SELECT 1", OK);
    rig_expect(&admin.rig, "HOTKEYS", "*0\r\n");
    rig_expect(&admin.rig, "SELECT 0", OK);
    (void)rig_call(&admin.rig, "HELLO 3");
    rig_expect(&admin.rig, "HOTKEYS 1", "*1\r\n*2\r\n$5\r\nhot:0\r\n:9223372036854775807\r\n");
    /* Also while the node joins: what it counted is no data. */
    admin.rig.serving = HK_ERR_LOADING;
    rig_expect_begin(&admin.rig, "HOTKEYS 1", "*1\r\n");
    admin.hotkeys_error = HK_ERR_NOMEM;
    rig_expect_begin(&admin.rig, "HOTKEYS 1", "-OOM ");
    admin.rig.host.hotkeys = NULL;
    rig_expect(&admin.rig, "HOTKEYS 1", "-ERR 'hotkeys' is not available here\r\n");
    admin_deinit(&admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes_commands),
        cmocka_unit_test(documents_commands),
        cmocka_unit_test(lists_commands),
        cmocka_unit_test(finds_keys),
        cmocka_unit_test(finds_keys_of_any_command),
        cmocka_unit_test(reads_configuration),
        cmocka_unit_test(changes_configuration),
        cmocka_unit_test(informs),
        cmocka_unit_test(tells_time_and_role),
        cmocka_unit_test(shuts_down),
        cmocka_unit_test(lists_hot_keys),
        cmocka_unit_test(logs_slow_commands),
        cmocka_unit_test(cuts_slow_commands),
        cmocka_unit_test(keeps_secrets),
        cmocka_unit_test(answers_what_is_not_measured),
        cmocka_unit_test(refuses_in_step),
        cmocka_unit_test(has_no_transactions),
        cmocka_unit_test(knows_its_limits),
        cmocka_unit_test(bounds_its_work),
        cmocka_unit_test(helps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
