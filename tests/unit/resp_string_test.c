/* Commands on strings, row by row on one connection: what is sent and what comes back. The rows of
 * commands that Redis 7.0 has were compared with it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "support/resp_rig.h"

#define SYNTAX "-ERR syntax error\r\n"
#define NO_INTEGER "-ERR value is not an integer or out of range\r\n"
#define INVALID(name) "-ERR invalid expire time in '" name "' command\r\n"
#define ARITY(name) "-ERR wrong number of arguments for '" name "' command\r\n"
#define OK "+OK\r\n"
#define NIL "$-1\r\n"

static void test_set(void **state)
{
    static const struct rig_row rows[] = {
        {"SET a 1", OK},
        {"set a 2 nx", NIL},
        {"SET b 2 XX", NIL},
        {"SET a 2 XX", OK},
        {"SET a 3 GET", "$1\r\n2\r\n"},
        {"SET c 3 GET", NIL},
        {"SET a 4 NX GET", "$1\r\n3\r\n"},
        {"SET a 4 NX NX", NIL},
        {"SET a 4 NX XX", SYNTAX},
        {"SET a 4 XX NX", SYNTAX},
        {"SET a 4 FOO", SYNTAX},
        {"SET a 4 EX", SYNTAX},
        {"SET a 4 EX 10 PX 10", SYNTAX},
        {"SET a 4 EX 10 KEEPTTL", SYNTAX},
        {"SET a 4 PERSIST", SYNTAX},
        {"SET a 4 EX x", NO_INTEGER},
        {"SET a 4 EX 0", INVALID("set")},
        {"SET a 4 PX -1", INVALID("set")},
        {"SET a 4 EX 9223372036854775807", INVALID("set")},
        {"SET a 4 EX 9223372036854775", INVALID("set")},
        {"SET a 4 PX 9223372036854775807", INVALID("set")},
        {"SET a 4 PXAT 9223372036854775807", OK},
        {"SET a 4 EX 9 EX 10", OK},
        {"PTTL a", ":10000\r\n"},
        {"SET a 5 KEEPTTL", OK},
        {"PTTL a", ":10000\r\n"},
        {"SET a 6", OK},
        {"PTTL a", ":-1\r\n"},
        {"SET a 6 PX 1500", OK},
        {"PTTL a", ":1500\r\n"},
        {"SET a 6 EXAT 1700000005", OK},
        {"PTTL a", ":5000\r\n"},
        {"SET a 6 PXAT 1700000000007 get", "$1\r\n6\r\n"},
        {"PTTL a", ":7\r\n"},
        {"SET a 6 EXAT 1", OK},
        {"GET a", NIL},
        {"SET a", ARITY("set")},
    };
    RIG_ROWS(rows);
}

/* Redis 7.0 has neither. */
static void test_ifeq(void **state)
{
    static const struct rig_row rows[] = {
        {"SET a 1 IFEQ 1", NIL},
        {"SET a 1", OK},
        {"SET a 2 IFEQ 0", NIL},
        {"SET a 2 IFEQ", SYNTAX},
        {"SET a 2 IFEQ 1 NX", SYNTAX},
        {"SET a 2 XX IFEQ 1", SYNTAX},
        {"SET a 2 IFEQ 1 EX 10", OK},
        {"PTTL a", ":10000\r\n"},
        {"SET a 3 GET IFEQ 1", "$1\r\n2\r\n"},
        {"GET a", "$1\r\n2\r\n"},
        {"SET a 3 IFEQ 2 KEEPTTL GET", "$1\r\n2\r\n"},
        {"GET a", "$1\r\n3\r\n"},
        {"PTTL a", ":10000\r\n"},
        {"DELIFEQ a 2", ":0\r\n"},
        {"DELIFEQ a 3", ":1\r\n"},
        {"DELIFEQ a 3", ":0\r\n"},
        {"DELIFEQ a", ARITY("delifeq")},
    };
    RIG_ROWS(rows);
}

static void test_set_kin(void **state)
{
    static const struct rig_row rows[] = {
        {"SETEX a 10 v", OK},
        {"PTTL a", ":10000\r\n"},
        {"PSETEX a 10 v", OK},
        {"PTTL a", ":10\r\n"},
        {"SETEX a 0 v", INVALID("setex")},
        {"PSETEX a -1 v", INVALID("psetex")},
        {"SETEX a x v", NO_INTEGER},
        {"SETNX a w", ":0\r\n"},
        {"SETNX b w", ":1\r\n"},
        {"GETSET b x", "$1\r\nw\r\n"},
        {"GETSET c x", NIL},
        {"GETDEL c", "$1\r\nx\r\n"},
        {"GETDEL c", NIL},
        {"MSET a 1 b 2 a 3", OK},
        {"MGET a b c a", "*4\r\n$1\r\n3\r\n$1\r\n2\r\n$-1\r\n$1\r\n3\r\n"},
        {"MSET a 1 b", ARITY("mset")},
        {"MSET", ARITY("mset")},
        {"MSETNX a 1", ":0\r\n"},
        {"MSETNX new 1", ":1\r\n"},
        {"MSETNX a 1 b", ARITY("msetnx")},
        {"MSETNX x 1 y 2",
         "-ERR 'msetnx' over several keys would not be atomic in space 0 (engine hermes); that "
         "is for spaces of the engines zeus and lotus; nothing changed\r\n"},
        {"EXISTS x y", ":0\r\n"},
    };
    RIG_ROWS(rows);
}

static void test_getex(void **state)
{
    static const struct rig_row rows[] = {
        {"GETEX a", NIL},
        {"GETEX a EX 0", NIL}, /* Redis looks at the time only if there is a key */
        {"GETEX a EX x", NIL},
        {"GETEX a EX", SYNTAX},
        {"SET a v", OK},
        {"GETEX a", "$1\r\nv\r\n"},
        {"GETEX a EX 0", INVALID("getex")},
        {"GETEX a EX x", NO_INTEGER},
        {"GETEX a NX", SYNTAX},
        {"GETEX a KEEPTTL", SYNTAX},
        {"GETEX a EX 10 PERSIST", SYNTAX},
        {"GETEX a EX 10", "$1\r\nv\r\n"},
        {"PTTL a", ":10000\r\n"},
        {"GETEX a", "$1\r\nv\r\n"},
        {"PTTL a", ":10000\r\n"},
        {"GETEX a PERSIST", "$1\r\nv\r\n"},
        {"PTTL a", ":-1\r\n"},
        {"GETEX a PXAT 1700000000500", "$1\r\nv\r\n"},
        {"PTTL a", ":500\r\n"},
        {"GETEX a EXAT 5", "$1\r\nv\r\n"},
        {"EXISTS a", ":0\r\n"},
    };
    RIG_ROWS(rows);
}

static void test_numbers(void **state)
{
    static const struct rig_row rows[] = {
        {"INCR a", ":1\r\n"},
        {"INCRBY a 10", ":11\r\n"},
        {"DECR a", ":10\r\n"},
        {"DECRBY a 20", ":-10\r\n"},
        {"INCRBY a x", NO_INTEGER},
        {"INCRBY a 1.5", NO_INTEGER},
        {"INCRBY a 9223372036854775808", NO_INTEGER},
        {"DECRBY a -9223372036854775808", "-ERR decrement would overflow\r\n"},
        {"SET a 9223372036854775807", OK},
        {"INCR a", "-ERR increment or decrement would overflow\r\n"},
        {"SET a text", OK},
        {"INCR a", NO_INTEGER},
        {"INCRBYFLOAT a 1", "-ERR value is not a valid float\r\n"},
        {"SET a 10.50", OK},
        {"INCRBYFLOAT a 0.1", "$4\r\n10.6\r\n"},
        {"INCRBYFLOAT b 5e3", "$4\r\n5000\r\n"},
        {"INCRBYFLOAT b x", "-ERR value is not a valid float\r\n"},
        {"INCRBYFLOAT b", ARITY("incrbyfloat")},
    };
    RIG_ROWS(rows);
}

static void test_ranges(void **state)
{
    static const struct rig_row rows[] = {
        {"APPEND a Hello", ":5\r\n"},
        {"APPEND a -World", ":11\r\n"},
        {"STRLEN a", ":11\r\n"},
        {"STRLEN b", ":0\r\n"},
        {"GETRANGE a 0 4", "$5\r\nHello\r\n"},
        {"SUBSTR a -5 -1", "$5\r\nWorld\r\n"},
        {"GETRANGE a -1 -5", "$0\r\n\r\n"},
        {"GETRANGE a 5 2", "$0\r\n\r\n"},
        {"GETRANGE a -100 1", "$2\r\nHe\r\n"},
        {"GETRANGE a 9 100", "$2\r\nld\r\n"},
        {"GETRANGE a 11 100", "$0\r\n\r\n"},
        {"GETRANGE a -9223372036854775808 9223372036854775807", "$11\r\nHello-World\r\n"},
        {"GETRANGE b 0 -1", "$0\r\n\r\n"},
        {"GETRANGE a x 1", NO_INTEGER},
        {"GETRANGE a 1 x", NO_INTEGER},
        {"SETRANGE a 6 Redis", ":11\r\n"},
        {"GET a", "$11\r\nHello-Redis\r\n"},
        {"SETRANGE a -1 x", "-ERR offset is out of range\r\n"},
        {"SETRANGE a x x", NO_INTEGER},
        {"SETRANGE a 9223372036854775807 x",
         "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"},
        {"SETRANGE b 1048576 x",
         "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"},
        {"EXISTS b", ":0\r\n"},
    };
    RIG_ROWS(rows);
}

/* Bytes of any kind, and RESP3's null. */
static void test_bytes(void **state)
{
    static const char input[] = "*3\r\n$3\r\nSET\r\n$3\r\n\0\r\n\r\n$4\r\n\r\n\0\xff\r\n"
                                "*2\r\n$3\r\nGET\r\n$3\r\n\0\r\n\r\n";
    static const char wanted[] = "+OK\r\n$4\r\n\r\n\0\xff\r\n";
    struct rig rig;

    (void)state;
    rig_init(&rig);
    (void)rig_send_bytes(&rig, bytes_of(input, sizeof input - 1));
    assert_int_equal(rig.output_n, sizeof wanted - 1);
    assert_memory_equal(rig.output, wanted, sizeof wanted - 1);
    (void)rig_call(&rig, "HELLO 3");
    assert_string_equal(rig_send(&rig, "GET x\r\nMGET x y\r\nSET x 1 XX\r\nGETRANGE x 0 1\r\n"),
                        "_\r\n*2\r\n_\r\n_\r\n_\r\n$0\r\n\r\n");
    rig_deinit(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),     cmocka_unit_test(test_ifeq),
        cmocka_unit_test(test_set_kin), cmocka_unit_test(test_getex),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
