/* The commands on the connection itself, in the words of redis-server 7.0 wherever it has some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "support/resp_admin.h"

#define OK "+OK\r\n"
#define WRONG_PASSWORD "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
#define NO_AUTH "-NOAUTH Authentication required.\r\n"
#define SYNTAX "-ERR syntax error\r\n"
#define BAD_NAME "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"
#define HELLO2                                                                                     \
    "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n$5\r\nproto\r\n:2\r\n"  \
    "$2\r\nid\r\n:7\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"          \
    "$7\r\nmodules\r\n*0\r\n"
#define HELLO3                                                                                     \
    "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n$5\r\nproto\r\n:3\r\n"   \
    "$2\r\nid\r\n:7\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"          \
    "$7\r\nmodules\r\n*0\r\n"

static void expect(struct admin *admin, const char *words, const char *reply)
{
    const char *got = rig_call(&admin->rig, words);
    if (strcmp(got, reply) != 0) {
        print_message("%s\ngot:    %s\nwanted: %s\n", words, got, reply);
        fail();
    }
}

/* One command of arguments with any bytes. */
static const char *call_bytes(struct admin *admin, uint32_t n, const struct bytes *args)
{
    char input[4096];
    uint32_t at = (uint32_t)snprintf(input, sizeof input, "*%u\r\n", n);
    for (uint32_t i = 0; i < n; i++) {
        at += (uint32_t)snprintf(input + at, sizeof input - at, "$%u\r\n", args[i].n);
        assert_true(at + args[i].n + 2 < sizeof input);
        memcpy(input + at, args[i].at, args[i].n);
        at += args[i].n;
        memcpy(input + at, "\r\n", 2);
        at += 2;
    }
    return rig_send_bytes(&admin->rig, bytes_of(input, at));
}

static void pings_and_echoes(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    expect(&admin, "PING", "+PONG\r\n");
    expect(&admin, "ping hello", "$5\r\nhello\r\n");
    expect(&admin, "PING a b", "-ERR wrong number of arguments for 'ping' command\r\n");
    expect(&admin, "ECHO a", "$1\r\na\r\n");
    expect(&admin, "ECHO", "-ERR wrong number of arguments for 'echo' command\r\n");
    expect(&admin, "READONLY", OK);
    expect(&admin, "READWRITE", OK);
    expect(&admin, "READONLY x", "-ERR wrong number of arguments for 'readonly' command\r\n");
    expect(&admin, "HELLO 3", HELLO3);
    expect(&admin, "PING", "+PONG\r\n");
    assert_string_equal(rig_send(&admin.rig, "PING\r\n"), "+PONG\r\n");
    admin_deinit(&admin);
}

static void joining_nodes_say_so(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    admin.rig.serving = HK_ERR_LOADING;
    assert_memory_equal(rig_call(&admin.rig, "PING"), "-LOADING ", 9);
    assert_memory_equal(rig_call(&admin.rig, "DBSIZE"), "-LOADING ", 9);
    expect(&admin, "SELECT 1", OK);
    expect(&admin, "HELLO 3", HELLO3);
    expect(&admin, "CLIENT ID", ":7\r\n");
    assert_memory_equal(rig_call(&admin.rig, "INFO persistence"), "=", 1);
    assert_memory_equal(rig_call(&admin.rig, "CONFIG GET save"), "%1", 2);
    admin_deinit(&admin);
}

static void quits(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, "sesame");
    expect(&admin, "QUIT", OK);
    assert_int_equal(admin.rig.last, RESP_CLOSE);
    rig_reconnect(&admin.rig);
    /* What comes behind it is not served. */
    assert_string_equal(rig_send(&admin.rig, "QUIT\r\nQUIT\r\n"), OK);
    assert_int_equal(admin.rig.last, RESP_CLOSE);
    admin_deinit(&admin);
}

static void greets(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    expect(&admin, "HELLO", HELLO2);
    expect(&admin, "HELLO 3", HELLO3);
    expect(&admin, "HELLO", HELLO3);
    expect(&admin, "HELLO 2", HELLO2);
    expect(&admin, "hello 3 setname me", HELLO3);
    expect(&admin, "CLIENT GETNAME", "$2\r\nme\r\n");
    admin_deinit(&admin);
}

/* Every error leaves protocol, name and user as they were. */
static void greetings_that_fail_change_nothing(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    expect(&admin, "HELLO 3 SETNAME kept", HELLO3);
    expect(&admin, "HELLO 4", "-NOPROTO unsupported protocol version\r\n");
    expect(&admin, "HELLO 1", "-NOPROTO unsupported protocol version\r\n");
    expect(&admin, "HELLO x", "-ERR Protocol version is not an integer or out of range\r\n");
    expect(&admin, "HELLO 2 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'\r\n");
    expect(&admin, "HELLO 2 AUTH a", "-ERR Syntax error in HELLO option 'AUTH'\r\n");
    expect(&admin, "HELLO 2 SETNAME b foo", "-ERR Syntax error in HELLO option 'foo'\r\n");
    expect(&admin, "HELLO 2 SETNAME b\xc3", BAD_NAME);
    expect(&admin, "HELLO 2 SETNAME b AUTH default wrong", WRONG_PASSWORD);
    expect(&admin, "CLIENT GETNAME", "$4\r\nkept\r\n");
    expect(&admin, "HELLO", HELLO3);
    expect(&admin, "ACL WHOAMI", "$7\r\ndefault\r\n");
    admin_deinit(&admin);
}

static void guards_itself(void **state)
{
    (void)state;
    static const char *const shut[] = {"PING",         "GET a",
                                       "SET a b",      "CLIENT ID",
                                       "INFO",         "SELECT 0",
                                       "COMMAND",      "CONFIG GET *",
                                       "ECHO a",       "ACL WHOAMI",
                                       "MULTI",        "LPUSH a b",
                                       "CLUSTER INFO", "CLIENT TRACKING on",
                                       "SHUTDOWN",     "FLUSHALL",
                                       "KEYS *",       "HORKOS echo a",
                                       "SLOWLOG GET"};
    struct admin admin;
    admin_init(&admin, "sesame");
    for (uint32_t i = 0; i < sizeof shut / sizeof shut[0]; i++) {
        expect(&admin, shut[i], NO_AUTH);
    }
    assert_int_equal(admin.shutdowns, 0);
    expect(
        &admin, "HELLO 3",
        "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time\r\n");
    expect(&admin, "AUTH wrong", WRONG_PASSWORD);
    expect(&admin, "AUTH nobody sesame", WRONG_PASSWORD);
    expect(&admin, "AUTH a b c", SYNTAX);
    expect(&admin, "AUTH", "-ERR wrong number of arguments for 'auth' command\r\n");
    expect(&admin, "HELLO 3 AUTH default wrong", WRONG_PASSWORD);
    expect(&admin, "PING", NO_AUTH);
    expect(&admin, "RESET", "+RESET\r\n");
    expect(&admin, "AUTH sesame", OK);
    expect(&admin, "PING", "+PONG\r\n");
    /* A wrong password afterwards leaves the connection as it is. */
    expect(&admin, "AUTH wrong", WRONG_PASSWORD);
    expect(&admin, "PING", "+PONG\r\n");
    expect(&admin, "RESET", "+RESET\r\n");
    expect(&admin, "PING", NO_AUTH);
    expect(&admin, "HELLO 3 AUTH default sesame SETNAME a", HELLO3);
    expect(&admin, "CLIENT GETNAME", "$1\r\na\r\n");
    admin_deinit(&admin);
}

static void takes_no_user_that_ends_early(void **state)
{
    (void)state;
    struct admin admin;
    char longest[200];
    memset(longest, 'u', sizeof longest);
    const struct bytes with_nul[] = {bytes_of("AUTH", 4), bytes_of("default\0x", 9),
                                     bytes_of("sesame", 6)};
    const struct bytes too_long[] = {bytes_of("AUTH", 4), bytes_of(longest, sizeof longest),
                                     bytes_of("sesame", 6)};
    const struct bytes empty[] = {bytes_of("AUTH", 4), bytes_of("", 0), bytes_of("", 0)};
    admin_init(&admin, "sesame");
    assert_string_equal(call_bytes(&admin, 3, with_nul), WRONG_PASSWORD);
    assert_string_equal(call_bytes(&admin, 3, too_long), WRONG_PASSWORD);
    assert_string_equal(call_bytes(&admin, 3, empty), WRONG_PASSWORD);
    expect(&admin, "PING", NO_AUTH);
    admin_deinit(&admin);
}

static void says_that_there_is_no_password(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    expect(&admin, "AUTH a",
           "-ERR AUTH <password> called without any password configured for the default user. Are "
           "you sure your configuration is correct?\r\n");
    expect(&admin, "AUTH a b", WRONG_PASSWORD);
    admin_deinit(&admin);
}

static void selects(void **state)
{
    (void)state;
    struct admin admin;
    const char *outside = "-ERR DB index is out of range: there is 0 (hermes), 1 (hermes), "
                          "2 (hermes), 3 (hermes)\r\n";
    admin_init(&admin, NULL);
    expect(&admin, "SET a 0", OK);
    expect(&admin, "SELECT 1", OK);
    expect(&admin, "GET a", "$-1\r\n");
    expect(&admin, "SELECT 4", outside);
    expect(&admin, "SELECT 32", outside);
    expect(&admin, "SELECT -1", outside);
    expect(&admin, "SELECT 4294967296", outside);
    expect(&admin, "SELECT x", "-ERR value is not an integer or out of range\r\n");
    expect(&admin, "SELECT", "-ERR wrong number of arguments for 'select' command\r\n");
    expect(&admin, "GET a", "$-1\r\n");
    expect(&admin, "SELECT 0", OK);
    expect(&admin, "GET a", "$1\r\n0\r\n");
    expect(&admin, "SELECT 3", OK);
    expect(&admin, "RESET", "+RESET\r\n");
    expect(&admin, "GET a", "$1\r\n0\r\n");
    admin_deinit(&admin);
}

static void names_itself(void **state)
{
    (void)state;
    struct admin admin;
    char words[400] = "CLIENT SETNAME ";
    admin_init(&admin, NULL);
    expect(&admin, "CLIENT GETNAME", "$-1\r\n");
    expect(&admin, "CLIENT SETNAME worker-1", OK);
    expect(&admin, "CLIENT GETNAME", "$8\r\nworker-1\r\n");
    const struct bytes blank[] = {bytes_of("CLIENT", 6), bytes_of("SETNAME", 7),
                                  bytes_of("a b", 3)};
    const struct bytes line[] = {bytes_of("CLIENT", 6), bytes_of("SETNAME", 7),
                                 bytes_of("a\nid=1", 6)};
    const struct bytes nul[] = {bytes_of("CLIENT", 6), bytes_of("SETNAME", 7), bytes_of("a\0", 2)};
    assert_string_equal(call_bytes(&admin, 3, blank), BAD_NAME);
    assert_string_equal(call_bytes(&admin, 3, line), BAD_NAME);
    assert_string_equal(call_bytes(&admin, 3, nul), BAD_NAME);
    memset(words + strlen(words), 'n', 129);
    expect(&admin, words, "-ERR Client names cannot be longer than 128 bytes\r\n");
    expect(&admin, "CLIENT GETNAME", "$8\r\nworker-1\r\n");
    words[strlen(words) - 1] = '\0';
    expect(&admin, words, OK);
    const struct bytes none[] = {bytes_of("CLIENT", 6), bytes_of("SETNAME", 7), bytes_of("", 0)};
    assert_string_equal(call_bytes(&admin, 3, none), OK);
    expect(&admin, "CLIENT GETNAME", "$-1\r\n");
    expect(&admin, "CLIENT SETINFO LIB-NAME redis-py", OK);
    expect(&admin, "CLIENT SETINFO lib-ver 5.0", OK);
    expect(&admin, "CLIENT SETINFO lib-size 5", "-ERR Unrecognized option 'lib-size'\r\n");
    assert_non_null(
        strstr(rig_call(&admin.rig, "CLIENT INFO"), " lib-name=redis-py lib-ver=5.0\n"));
    const struct bytes library[] = {bytes_of("CLIENT", 6), bytes_of("SETINFO", 7),
                                    bytes_of("lib-ver", 7), bytes_of("a b", 3)};
    assert_string_equal(call_bytes(&admin, 4, library),
                        "-ERR lib-ver cannot contain spaces, newlines or special characters.\r\n");
    /* Other connections see each change through the host. */
    assert_int_equal(admin.changes, 5);
    admin_deinit(&admin);
}

static void shows_clients(void **state)
{
    (void)state;
    struct admin admin;
    const char *line;
    admin_init(&admin, NULL);
    admin.rig.now_us += 5000000;
    expect(&admin, "CLIENT ID", ":7\r\n");
    line = rig_call(&admin.rig, "CLIENT INFO");
    assert_non_null(strstr(line,
                           "\r\nid=7 addr=127.0.0.1:50000 laddr=127.0.0.1:7001 fd=-1 name= age=5 "
                           "idle=0 flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=26 "
                           "qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 "
                           "tot-mem=26 events=r cmd=client|info user=default redir=-1 resp=2 "
                           "lib-name= lib-ver=\n\r\n"));
    expect(&admin, "CLIENT NO-EVICT on", OK);
    expect(&admin, "CLIENT NO-TOUCH on", OK);
    assert_non_null(strstr(rig_call(&admin.rig, "CLIENT INFO"), " flags=eT "));
    expect(&admin, "CLIENT NO-EVICT off", OK);
    expect(&admin, "CLIENT NO-TOUCH OFF", OK);
    expect(&admin, "CLIENT NO-EVICT maybe", SYNTAX);
    expect(&admin, "CLIENT NO-TOUCH maybe", SYNTAX);
    assert_non_null(strstr(rig_call(&admin.rig, "CLIENT INFO"), " flags=N "));

    admin.other = (struct resp_conn_info){.id = 9, .address = "127.0.0.1:9", .name = "other"};
    line = rig_call(&admin.rig, "CLIENT LIST");
    assert_non_null(strstr(line, "id=7 "));
    assert_non_null(strstr(line, "id=9 addr=127.0.0.1:9 laddr= fd=-1 name=other "));
    line = rig_call(&admin.rig, "CLIENT LIST ID 9 1");
    assert_null(strstr(line, "id=7 "));
    assert_non_null(strstr(line, "id=9 "));
    assert_non_null(strstr(rig_call(&admin.rig, "CLIENT LIST TYPE normal"), "id=9 "));
    expect(&admin, "CLIENT LIST TYPE pubsub", "$0\r\n\r\n");
    expect(&admin, "CLIENT LIST TYPE x", "-ERR Unknown client type 'x'\r\n");
    expect(&admin, "CLIENT LIST ID", SYNTAX);
    expect(&admin, "CLIENT LIST foo", SYNTAX);
    expect(&admin, "CLIENT LIST ID x", "-ERR Invalid client ID\r\n");
    expect(&admin, "CLIENT LIST ID -1", "-ERR Invalid client ID\r\n");
    expect(&admin, "CLIENT LIST ID 0", "$0\r\n\r\n");
    (void)rig_call(&admin.rig, "HELLO 3");
    assert_memory_equal(rig_call(&admin.rig, "CLIENT LIST ID 9"), "=", 1);
    admin_deinit(&admin);
}

static void kills_others(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    admin.other = (struct resp_conn_info){.id = 9, .address = "127.0.0.1:9", .user = "ann"};
    expect(&admin, "CLIENT KILL 127.0.0.1:10", "-ERR No such client\r\n");
    expect(&admin, "CLIENT KILL 127.0.0.1:9", OK);
    expect(&admin, "CLIENT KILL ID 9", ":1\r\n");
    expect(&admin, "CLIENT KILL ADDR 127.0.0.1:9 USER ann", ":1\r\n");
    expect(&admin, "CLIENT KILL ADDR 127.0.0.1:9 USER bob", ":0\r\n");
    expect(&admin, "CLIENT KILL TYPE normal ID 9", ":1\r\n");
    expect(&admin, "CLIENT KILL TYPE replica", ":0\r\n");
    expect(&admin, "CLIENT KILL MAXAGE 100", ":0\r\n");
    admin.rig.now_us += 100000000;
    expect(&admin, "CLIENT KILL MAXAGE 100", ":1\r\n");
    assert_int_equal(admin.kills, 5);
    assert_int_equal(admin.kill_skip, 7);
    expect(&admin, "CLIENT KILL ID x", "-ERR client-id should be greater than 0\r\n");
    expect(&admin, "CLIENT KILL ID 0", "-ERR client-id should be greater than 0\r\n");
    expect(&admin, "CLIENT KILL TYPE foo", "-ERR Unknown client type 'foo'\r\n");
    expect(&admin, "CLIENT KILL ADDR a SKIPME maybe", SYNTAX);
    expect(&admin, "CLIENT KILL ID 9 ADDR", SYNTAX);
    expect(&admin, "CLIENT KILL foo bar", SYNTAX);
    expect(&admin, "CLIENT KILL", "-ERR wrong number of arguments for 'client|kill' command\r\n");
    const struct bytes nul[] = {bytes_of("CLIENT", 6), bytes_of("KILL", 4), bytes_of("ADDR", 4),
                                bytes_of("127.0.0.1:9\0", 12)};
    assert_string_equal(call_bytes(&admin, 4, nul), ":0\r\n");
    assert_int_equal(admin.kills, 5);
    admin_deinit(&admin);
}

/* The reply leaves before the connection closes. */
static void kills_itself_if_told_to(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    expect(&admin, "CLIENT KILL ID 7", ":0\r\n");
    assert_int_equal(admin.rig.last, RESP_INPUT);
    expect(&admin, "CLIENT KILL ID 7 SKIPME no", ":1\r\n");
    assert_int_equal(admin.rig.last, RESP_CLOSE);
    rig_reconnect(&admin.rig);
    expect(&admin, "CLIENT KILL 127.0.0.1:50000", OK);
    assert_int_equal(admin.rig.last, RESP_CLOSE);
    admin_deinit(&admin);
}

static void stops_replying(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    expect(&admin, "CLIENT REPLY OFF", "");
    expect(&admin, "PING", "");
    expect(&admin, "SET a 1", "");
    expect(&admin, "nosuch", "");
    expect(&admin, "CLIENT REPLY SKIP", "");
    expect(&admin, "CLIENT REPLY ON", OK);
    expect(&admin, "GET a", "$1\r\n1\r\n");
    expect(&admin, "CLIENT REPLY SKIP", "");
    expect(&admin, "GET a", "");
    expect(&admin, "GET a", "$1\r\n1\r\n");
    expect(&admin, "CLIENT REPLY SKIP", "");
    expect(&admin, "CLIENT REPLY ON", OK);
    expect(&admin, "CLIENT REPLY maybe", SYNTAX);
    expect(&admin, "CLIENT REPLY OFF", "");
    expect(&admin, "RESET", "+RESET\r\n");
    expect(&admin, "PING", "+PONG\r\n");
    admin_deinit(&admin);
}

static void resets_all(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    (void)rig_call(&admin.rig, "HELLO 3 SETNAME me");
    (void)rig_call(&admin.rig, "SELECT 2");
    (void)rig_call(&admin.rig, "CLIENT NO-EVICT on");
    expect(&admin, "RESET", "+RESET\r\n");
    expect(&admin, "CLIENT GETNAME", "$-1\r\n");
    assert_non_null(strstr(rig_call(&admin.rig, "CLIENT INFO"), " flags=N db=0 "));
    expect(&admin, "HELLO", HELLO2);
    admin_deinit(&admin);
}

static void does_not_track(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    expect(&admin, "CLIENT TRACKING on",
           "-ERR 'client|tracking' is not supported: horkos does not track what clients cache\r\n");
    expect(&admin, "CLIENT CACHING yes",
           "-ERR 'client|caching' is not supported: horkos does not track what clients cache\r\n");
    expect(&admin, "CLIENT GETREDIR", ":-1\r\n");
    expect(&admin, "CLIENT TRACKINGINFO",
           "*6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n"
           "*0\r\n");
    expect(&admin, "CLIENT foo", "-ERR unknown subcommand 'foo'. Try CLIENT HELP.\r\n");
    expect(&admin, "CLIENT", "-ERR wrong number of arguments for 'client' command\r\n");
    expect(&admin, "CLIENT ID x", "-ERR wrong number of arguments for 'client|id' command\r\n");
    admin_deinit(&admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pings_and_echoes),
        cmocka_unit_test(joining_nodes_say_so),
        cmocka_unit_test(quits),
        cmocka_unit_test(greets),
        cmocka_unit_test(greetings_that_fail_change_nothing),
        cmocka_unit_test(guards_itself),
        cmocka_unit_test(takes_no_user_that_ends_early),
        cmocka_unit_test(says_that_there_is_no_password),
        cmocka_unit_test(selects),
        cmocka_unit_test(names_itself),
        cmocka_unit_test(shows_clients),
        cmocka_unit_test(kills_others),
        cmocka_unit_test(kills_itself_if_told_to),
        cmocka_unit_test(stops_replying),
        cmocka_unit_test(resets_all),
        cmocka_unit_test(does_not_track),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
