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
    rig_expect(&admin.rig, "PING", "+PONG\r\n");
    rig_expect(&admin.rig, "ping hello", "$5\r\nhello\r\n");
    rig_expect(&admin.rig, "PING a b", "-ERR wrong number of arguments for 'ping' command\r\n");
    rig_expect(&admin.rig, "ECHO a", "$1\r\na\r\n");
    rig_expect(&admin.rig, "ECHO", "-ERR wrong number of arguments for 'echo' command\r\n");
    rig_expect(&admin.rig, "READONLY", OK);
    rig_expect(&admin.rig, "READWRITE", OK);
    rig_expect(&admin.rig, "READONLY x",
               "-ERR wrong number of arguments for 'readonly' command\r\n");
    rig_expect(&admin.rig, "HELLO 3", HELLO3);
    rig_expect(&admin.rig, "PING", "+PONG\r\n");
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
    rig_expect(&admin.rig, "SELECT 1", OK);
    rig_expect(&admin.rig, "HELLO 3", HELLO3);
    rig_expect(&admin.rig, "CLIENT ID", ":7\r\n");
    assert_memory_equal(rig_call(&admin.rig, "INFO persistence"), "=", 1);
    assert_memory_equal(rig_call(&admin.rig, "CONFIG GET save"), "%1", 2);
    admin_deinit(&admin);
}

static void quits(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, "sesame");
    rig_expect(&admin.rig, "QUIT", OK);
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
    rig_expect(&admin.rig, "HELLO", HELLO2);
    rig_expect(&admin.rig, "HELLO 3", HELLO3);
    rig_expect(&admin.rig, "HELLO", HELLO3);
    rig_expect(&admin.rig, "HELLO 2", HELLO2);
    rig_expect(&admin.rig, "hello 3 setname me", HELLO3);
    rig_expect(&admin.rig, "CLIENT GETNAME", "$2\r\nme\r\n");
    admin_deinit(&admin);
}

/* Every error leaves protocol, name and user as they were. */
static void greetings_that_fail_change_nothing(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    rig_expect(&admin.rig, "HELLO 3 SETNAME kept", HELLO3);
    rig_expect(&admin.rig, "HELLO 4", "-NOPROTO unsupported protocol version\r\n");
    rig_expect(&admin.rig, "HELLO 1", "-NOPROTO unsupported protocol version\r\n");
    rig_expect(&admin.rig, "HELLO x",
               "-ERR Protocol version is not an integer or out of range\r\n");
    rig_expect(&admin.rig, "HELLO 2 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'\r\n");
    rig_expect(&admin.rig, "HELLO 2 AUTH a", "-ERR Syntax error in HELLO option 'AUTH'\r\n");
    rig_expect(&admin.rig, "HELLO 2 SETNAME b foo", "-ERR Syntax error in HELLO option 'foo'\r\n");
    rig_expect(&admin.rig, "HELLO 2 SETNAME b\xc3", BAD_NAME);
    rig_expect(&admin.rig, "HELLO 2 SETNAME b AUTH default wrong", WRONG_PASSWORD);
    rig_expect(&admin.rig, "CLIENT GETNAME", "$4\r\nkept\r\n");
    rig_expect(&admin.rig, "HELLO", HELLO3);
    rig_expect(&admin.rig, "ACL WHOAMI", "$7\r\ndefault\r\n");
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
        rig_expect(&admin.rig, shut[i], NO_AUTH);
    }
    assert_int_equal(admin.shutdowns, 0);
    rig_expect(
        &admin.rig, "HELLO 3",
        "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time\r\n");
    rig_expect(&admin.rig, "AUTH wrong", WRONG_PASSWORD);
    rig_expect(&admin.rig, "AUTH nobody sesame", WRONG_PASSWORD);
    rig_expect(&admin.rig, "AUTH a b c", SYNTAX);
    rig_expect(&admin.rig, "AUTH", "-ERR wrong number of arguments for 'auth' command\r\n");
    rig_expect(&admin.rig, "HELLO 3 AUTH default wrong", WRONG_PASSWORD);
    rig_expect(&admin.rig, "PING", NO_AUTH);
    rig_expect(&admin.rig, "RESET", "+RESET\r\n");
    rig_expect(&admin.rig, "AUTH sesame", OK);
    rig_expect(&admin.rig, "PING", "+PONG\r\n");
    /* A wrong password afterwards leaves the connection as it is. */
    rig_expect(&admin.rig, "AUTH wrong", WRONG_PASSWORD);
    rig_expect(&admin.rig, "PING", "+PONG\r\n");
    rig_expect(&admin.rig, "RESET", "+RESET\r\n");
    rig_expect(&admin.rig, "PING", NO_AUTH);
    rig_expect(&admin.rig, "HELLO 3 AUTH default sesame SETNAME a", HELLO3);
    rig_expect(&admin.rig, "CLIENT GETNAME", "$1\r\na\r\n");
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
    rig_expect(&admin.rig, "PING", NO_AUTH);
    admin_deinit(&admin);
}

static void says_that_there_is_no_password(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    rig_expect(
        &admin.rig, "AUTH a",
        "-ERR AUTH <password> called without any password configured for the default user. Are "
        "you sure your configuration is correct?\r\n");
    rig_expect(&admin.rig, "AUTH a b", WRONG_PASSWORD);
    admin_deinit(&admin);
}

static void selects(void **state)
{
    (void)state;
    struct admin admin;
    const char *outside = "-ERR DB index is out of range: there is 0 (hermes), 1 (hermes), "
                          "2 (hermes), 3 (zeus)\r\n";
    admin_init(&admin, NULL);
    rig_expect(&admin.rig, "SET a 0", OK);
    rig_expect(&admin.rig, "SELECT 1", OK);
    rig_expect(&admin.rig, "GET a", "$-1\r\n");
    rig_expect(&admin.rig, "SELECT 4", outside);
    rig_expect(&admin.rig, "SELECT 32", outside);
    rig_expect(&admin.rig, "SELECT -1", outside);
    rig_expect(&admin.rig, "SELECT 4294967296", outside);
    rig_expect(&admin.rig, "SELECT x", "-ERR value is not an integer or out of range\r\n");
    rig_expect(&admin.rig, "SELECT", "-ERR wrong number of arguments for 'select' command\r\n");
    rig_expect(&admin.rig, "GET a", "$-1\r\n");
    rig_expect(&admin.rig, "SELECT 0", OK);
    rig_expect(&admin.rig, "GET a", "$1\r\n0\r\n");
    rig_expect(&admin.rig, "SELECT 3", OK);
    rig_expect(&admin.rig, "RESET", "+RESET\r\n");
    rig_expect(&admin.rig, "GET a", "$1\r\n0\r\n");
    admin_deinit(&admin);
}

static void names_itself(void **state)
{
    (void)state;
    struct admin admin;
    char words[400] = "CLIENT SETNAME ";
    admin_init(&admin, NULL);
    rig_expect(&admin.rig, "CLIENT GETNAME", "$-1\r\n");
    rig_expect(&admin.rig, "CLIENT SETNAME worker-1", OK);
    rig_expect(&admin.rig, "CLIENT GETNAME", "$8\r\nworker-1\r\n");
    const struct bytes blank[] = {bytes_of("CLIENT", 6), bytes_of("SETNAME", 7),
                                  bytes_of("a b", 3)};
    const struct bytes line[] = {bytes_of("CLIENT", 6), bytes_of("SETNAME", 7),
                                 bytes_of("a\nid=1", 6)};
    const struct bytes nul[] = {bytes_of("CLIENT", 6), bytes_of("SETNAME", 7), bytes_of("a\0", 2)};
    assert_string_equal(call_bytes(&admin, 3, blank), BAD_NAME);
    assert_string_equal(call_bytes(&admin, 3, line), BAD_NAME);
    assert_string_equal(call_bytes(&admin, 3, nul), BAD_NAME);
    memset(words + strlen(words), 'n', 129);
    rig_expect(&admin.rig, words, "-ERR Client names cannot be longer than 128 bytes\r\n");
    rig_expect(&admin.rig, "CLIENT GETNAME", "$8\r\nworker-1\r\n");
    words[strlen(words) - 1] = '\0';
    rig_expect(&admin.rig, words, OK);
    const struct bytes none[] = {bytes_of("CLIENT", 6), bytes_of("SETNAME", 7), bytes_of("", 0)};
    assert_string_equal(call_bytes(&admin, 3, none), OK);
    rig_expect(&admin.rig, "CLIENT GETNAME", "$-1\r\n");
    rig_expect(&admin.rig, "CLIENT SETINFO LIB-NAME redis-py", OK);
    rig_expect(&admin.rig, "CLIENT SETINFO lib-ver 5.0", OK);
    rig_expect(&admin.rig, "CLIENT SETINFO lib-size 5", "-ERR Unrecognized option 'lib-size'\r\n");
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
    rig_expect(&admin.rig, "CLIENT ID", ":7\r\n");
    line = rig_call(&admin.rig, "CLIENT INFO");
    assert_non_null(strstr(line,
                           "\r\nid=7 addr=127.0.0.1:50000 laddr=127.0.0.1:7001 fd=-1 name= age=5 "
                           "idle=0 flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=26 "
                           "qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 "
                           "tot-mem=26 events=r cmd=client|info user=default redir=-1 resp=2 "
                           "lib-name= lib-ver=\n\r\n"));
    rig_expect(&admin.rig, "CLIENT NO-EVICT on", OK);
    rig_expect(&admin.rig, "CLIENT NO-TOUCH on", OK);
    assert_non_null(strstr(rig_call(&admin.rig, "CLIENT INFO"), " flags=eT "));
    rig_expect(&admin.rig, "CLIENT NO-EVICT off", OK);
    rig_expect(&admin.rig, "CLIENT NO-TOUCH OFF", OK);
    rig_expect(&admin.rig, "CLIENT NO-EVICT maybe", SYNTAX);
    rig_expect(&admin.rig, "CLIENT NO-TOUCH maybe", SYNTAX);
    assert_non_null(strstr(rig_call(&admin.rig, "CLIENT INFO"), " flags=N "));

    admin.other = (struct resp_conn_info){.id = 9, .address = "127.0.0.1:9", .name = "other"};
    line = rig_call(&admin.rig, "CLIENT LIST");
    assert_non_null(strstr(line, "id=7 "));
    assert_non_null(strstr(line, "id=9 addr=127.0.0.1:9 laddr= fd=-1 name=other "));
    line = rig_call(&admin.rig, "CLIENT LIST ID 9 1");
    assert_null(strstr(line, "id=7 "));
    assert_non_null(strstr(line, "id=9 "));
    assert_non_null(strstr(rig_call(&admin.rig, "CLIENT LIST TYPE normal"), "id=9 "));
    rig_expect(&admin.rig, "CLIENT LIST TYPE pubsub", "$0\r\n\r\n");
    rig_expect(&admin.rig, "CLIENT LIST TYPE x", "-ERR Unknown client type 'x'\r\n");
    rig_expect(&admin.rig, "CLIENT LIST ID", SYNTAX);
    rig_expect(&admin.rig, "CLIENT LIST foo", SYNTAX);
    rig_expect(&admin.rig, "CLIENT LIST ID x", "-ERR Invalid client ID\r\n");
    rig_expect(&admin.rig, "CLIENT LIST ID -1", "-ERR Invalid client ID\r\n");
    rig_expect(&admin.rig, "CLIENT LIST ID 0", "$0\r\n\r\n");
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
    rig_expect(&admin.rig, "CLIENT KILL 127.0.0.1:10", "-ERR No such client\r\n");
    rig_expect(&admin.rig, "CLIENT KILL 127.0.0.1:9", OK);
    rig_expect(&admin.rig, "CLIENT KILL ID 9", ":1\r\n");
    rig_expect(&admin.rig, "CLIENT KILL ADDR 127.0.0.1:9 USER ann", ":1\r\n");
    rig_expect(&admin.rig, "CLIENT KILL ADDR 127.0.0.1:9 USER bob", ":0\r\n");
    rig_expect(&admin.rig, "CLIENT KILL TYPE normal ID 9", ":1\r\n");
    rig_expect(&admin.rig, "CLIENT KILL TYPE replica", ":0\r\n");
    rig_expect(&admin.rig, "CLIENT KILL MAXAGE 100", ":0\r\n");
    admin.rig.now_us += 100000000;
    rig_expect(&admin.rig, "CLIENT KILL MAXAGE 100", ":1\r\n");
    assert_int_equal(admin.kills, 5);
    assert_int_equal(admin.kill_skip, 7);
    rig_expect(&admin.rig, "CLIENT KILL ID x", "-ERR client-id should be greater than 0\r\n");
    rig_expect(&admin.rig, "CLIENT KILL ID 0", "-ERR client-id should be greater than 0\r\n");
    rig_expect(&admin.rig, "CLIENT KILL TYPE foo", "-ERR Unknown client type 'foo'\r\n");
    rig_expect(&admin.rig, "CLIENT KILL ADDR a SKIPME maybe", SYNTAX);
    rig_expect(&admin.rig, "CLIENT KILL ID 9 ADDR", SYNTAX);
    rig_expect(&admin.rig, "CLIENT KILL foo bar", SYNTAX);
    rig_expect(&admin.rig, "CLIENT KILL",
               "-ERR wrong number of arguments for 'client|kill' command\r\n");
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
    rig_expect(&admin.rig, "CLIENT KILL ID 7", ":0\r\n");
    assert_int_equal(admin.rig.last, RESP_INPUT);
    rig_expect(&admin.rig, "CLIENT KILL ID 7 SKIPME no", ":1\r\n");
    assert_int_equal(admin.rig.last, RESP_CLOSE);
    rig_reconnect(&admin.rig);
    rig_expect(&admin.rig, "CLIENT KILL 127.0.0.1:50000", OK);
    assert_int_equal(admin.rig.last, RESP_CLOSE);
    admin_deinit(&admin);
}

static void stops_replying(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    rig_expect(&admin.rig, "CLIENT REPLY OFF", "");
    rig_expect(&admin.rig, "PING", "");
    rig_expect(&admin.rig, "SET a 1", "");
    rig_expect(&admin.rig, "nosuch", "");
    rig_expect(&admin.rig, "CLIENT REPLY SKIP", "");
    rig_expect(&admin.rig, "CLIENT REPLY ON", OK);
    rig_expect(&admin.rig, "GET a", "$1\r\n1\r\n");
    rig_expect(&admin.rig, "CLIENT REPLY SKIP", "");
    rig_expect(&admin.rig, "GET a", "");
    rig_expect(&admin.rig, "GET a", "$1\r\n1\r\n");
    rig_expect(&admin.rig, "CLIENT REPLY SKIP", "");
    rig_expect(&admin.rig, "CLIENT REPLY ON", OK);
    rig_expect(&admin.rig, "CLIENT REPLY maybe", SYNTAX);
    rig_expect(&admin.rig, "CLIENT REPLY OFF", "");
    rig_expect(&admin.rig, "RESET", "+RESET\r\n");
    rig_expect(&admin.rig, "PING", "+PONG\r\n");
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
    rig_expect(&admin.rig, "RESET", "+RESET\r\n");
    rig_expect(&admin.rig, "CLIENT GETNAME", "$-1\r\n");
    assert_non_null(strstr(rig_call(&admin.rig, "CLIENT INFO"), " flags=N db=0 "));
    rig_expect(&admin.rig, "HELLO", HELLO2);
    admin_deinit(&admin);
}

static void does_not_track(void **state)
{
    (void)state;
    struct admin admin;
    admin_init(&admin, NULL);
    rig_expect(
        &admin.rig, "CLIENT TRACKING on",
        "-ERR 'client|tracking' is not supported: horkos does not track what clients cache\r\n");
    rig_expect(
        &admin.rig, "CLIENT CACHING yes",
        "-ERR 'client|caching' is not supported: horkos does not track what clients cache\r\n");
    rig_expect(&admin.rig, "CLIENT GETREDIR", ":-1\r\n");
    rig_expect(&admin.rig, "CLIENT TRACKINGINFO",
               "*6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n"
               "*0\r\n");
    rig_expect(&admin.rig, "CLIENT foo", "-ERR unknown subcommand 'foo'. Try CLIENT HELP.\r\n");
    rig_expect(&admin.rig, "CLIENT", "-ERR wrong number of arguments for 'client' command\r\n");
    rig_expect(&admin.rig, "CLIENT ID x",
               "-ERR wrong number of arguments for 'client|id' command\r\n");
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
