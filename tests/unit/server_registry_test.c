#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "server/registry.h"

#define NOW_US UINT64_C(100000000)

/* Real connections, whose host passes on what changes. */
struct place {
    struct registry *registry;
    struct resp_host host;
    struct resp_limits limits;
};

static uint64_t wall_us(void *context)
{
    (void)context;
    return NOW_US;
}

static uint64_t random_of(void *context)
{
    (void)context;
    return 4;
}

static const struct resp_limits *limits(void *context)
{
    return &((struct place *)context)->limits;
}

static uint32_t spaces(void *context)
{
    (void)context;
    return 3;
}

static void changed(void *context, const struct resp_conn *conn)
{
    registry_update(((struct place *)context)->registry, conn);
}

static int make(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    assert_non_null(p);
    assert_int_equal(registry_create(&p->registry), HK_OK);
    p->limits = (struct resp_limits){65536, 1024, 1 << 20, 1 << 20};
    p->host = (struct resp_host){.context = p,
                                 .wall_us = wall_us,
                                 .random = random_of,
                                 .limits = limits,
                                 .spaces = spaces,
                                 .changed = changed};
    *state = p;
    return 0;
}

static int unmake(void **state)
{
    struct place *p = *state;
    registry_destroy(p->registry);
    free(p);
    return 0;
}

struct guest {
    struct resp_conn *conn;
    struct registry_entry *entry;
};

static struct guest arrive(struct place *p, uint64_t id, uint32_t worker, uint64_t at_us)
{
    struct guest g;
    char address[64];
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", 5000 + (unsigned)id);
    assert_int_equal(resp_conn_create(&p->host, id, address, "127.0.0.1:7001", at_us, &g.conn),
                     HK_OK);
    assert_int_equal(registry_add(p->registry, g.conn, worker, &g.entry), HK_OK);
    return g;
}

static void leave(struct place *p, struct guest *g)
{
    registry_remove(p->registry, g->entry);
    resp_conn_destroy(g->conn);
}

/* Serves a line that needs no key; its reply is thrown away. */
static void say(struct guest *g, const char *line, uint64_t now_us)
{
    struct op op;
    const struct txn_request *txn;
    enum resp_next next;
    assert_true(resp_conn_feed(g->conn, bytes_of(line, (uint32_t)strlen(line))));
    do {
        next = resp_conn_next(g->conn, now_us, true, &op, &txn);
    } while (next == RESP_AGAIN);
    assert_int_equal(next, RESP_INPUT);
    struct bytes out = resp_conn_output(g->conn);
    assert_true(out.n > 0 && out.at[0] != '-');
    resp_conn_sent(g->conn, out.n);
    registry_touch(g->entry, g->conn);
}

static void assert_list(struct place *p, const struct resp_client_filter *filter,
                        const char *expected)
{
    struct resp_out text;
    resp_out_init(&text, 1 << 20);
    registry_list(p->registry, filter, NOW_US, &text);
    resp_out_raw(&text, bytes_of("", 1));
    assert_string_equal((const char *)text.at, expected);
    resp_out_deinit(&text);
}

/* The ids of the clients that the filter lets through, in their order: "1 2 ". */
static void assert_ids(struct place *p, const struct resp_client_filter *filter,
                       const char *expected)
{
    struct resp_out text;
    char ids[256] = "";
    resp_out_init(&text, 1 << 20);
    registry_list(p->registry, filter, NOW_US, &text);
    resp_out_raw(&text, bytes_of("", 1));
    char *rest = NULL;
    for (char *line = strtok_r((char *)text.at, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        size_t n = strlen(ids);
        (void)snprintf(ids + n, sizeof ids - n, "%d ", atoi(line + strlen("id=")));
    }
    assert_string_equal(ids, expected);
    resp_out_deinit(&text);
}

static void test_list(void **state)
{
    struct place *p = *state;
    struct resp_client_filter all = {.ids_n = 0};
    assert_list(p, &all, "");
    struct guest a = arrive(p, 1, 0, NOW_US - 9000000), b = arrive(p, 2, 1, NOW_US - 3000000);
    say(&a, "CLIENT SETNAME ann\r\n", NOW_US - 8000000);
    say(&a, "SELECT 1\r\n", NOW_US - 7000000);
    say(&b, "CLIENT SETINFO lib-name tester\r\nCLIENT NO-TOUCH ON\r\n", NOW_US);

    /* As the connection would tell of itself. */
    struct resp_out text;
    struct resp_conn_info info;
    resp_out_init(&text, 1 << 20);
    resp_conn_info(a.conn, &info);
    assert_string_equal(info.name, "ann");
    assert_int_equal(info.space, 1);
    resp_client_line(&info, NOW_US, &text);
    resp_conn_info(b.conn, &info);
    resp_client_line(&info, NOW_US, &text);
    resp_out_raw(&text, bytes_of("", 1));
    assert_list(p, &all, (const char *)text.at);
    assert_non_null(strstr((const char *)text.at, " name=ann age=9 idle=7 "));
    assert_non_null(strstr((const char *)text.at, " lib-name=tester "));
    assert_non_null(strstr((const char *)text.at, " cmd=client|no-touch "));
    resp_out_deinit(&text);

    leave(p, &a);
    assert_ids(p, &all, "2 ");
    leave(p, &b);
    assert_list(p, &all, "");
}

static void test_filters(void **state)
{
    struct place *p = *state;
    struct guest g[4];
    for (uint32_t i = 0; i < 4; i++) {
        g[i] = arrive(p, i + 1, i, NOW_US - i * UINT64_C(10000000));
    }
    static const uint64_t ids[] = {4, 2, 99};
    assert_ids(p, &(struct resp_client_filter){.ids = ids, .ids_n = 3}, "2 4 ");
    assert_ids(p, &(struct resp_client_filter){.skip = 3}, "1 2 4 ");
    assert_ids(p, &(struct resp_client_filter){.address = "127.0.0.1:5003"}, "3 ");
    assert_ids(p, &(struct resp_client_filter){.local = "127.0.0.1:7001"}, "1 2 3 4 ");
    assert_ids(p, &(struct resp_client_filter){.local = "127.0.0.1:7002"}, "");
    assert_ids(p, &(struct resp_client_filter){.user = "nobody"}, "");
    assert_ids(p, &(struct resp_client_filter){.maxage_s = 20}, "3 4 ");
    for (uint32_t i = 0; i < 4; i++) {
        leave(p, &g[i]);
    }
}

static void test_kill(void **state)
{
    struct place *p = *state;
    struct guest g[3];
    for (uint32_t i = 0; i < 3; i++) {
        g[i] = arrive(p, i + 1, i == 2 ? 63 : 0, NOW_US);
    }
    assert_false(registry_kills(p->registry, 0));
    assert_int_equal(
        registry_kill(p->registry, &(struct resp_client_filter){.address = "nowhere:1"}, NOW_US),
        0);
    assert_false(registry_kills(p->registry, 0));
    assert_int_equal(registry_kill(p->registry, &(struct resp_client_filter){.skip = 1}, NOW_US),
                     2);
    /* Told once; killed for ever. */
    assert_int_equal(registry_kill(p->registry, &(struct resp_client_filter){.skip = 1}, NOW_US),
                     0);
    assert_false(registry_killed(g[0].entry));
    assert_true(registry_killed(g[1].entry));
    assert_true(registry_killed(g[2].entry));
    assert_true(registry_kills(p->registry, 0));
    assert_false(registry_kills(p->registry, 0));
    assert_false(registry_kills(p->registry, 62));
    assert_true(registry_kills(p->registry, 63));
    for (uint32_t i = 0; i < 3; i++) {
        leave(p, &g[i]);
    }
}

/* More ids than there are buckets, so that some share one. */
static void test_many(void **state)
{
    struct place *p = *state;
    enum { N = 6000 };
    struct guest *g = calloc(N, sizeof *g);
    assert_non_null(g);
    for (uint32_t i = 0; i < N; i++) {
        g[i] = arrive(p, i + 1, i % 64, NOW_US);
    }
    say(&g[5], "CLIENT SETNAME five\r\n", NOW_US);
    say(&g[5 + 4096], "CLIENT SETNAME other\r\n", NOW_US);
    for (uint32_t i = 0; i < N; i++) {
        if (i != 5 && i != 5 + 4096) {
            leave(p, &g[i]);
        }
    }
    struct resp_out text;
    resp_out_init(&text, 1 << 20);
    registry_list(p->registry, &(struct resp_client_filter){.ids_n = 0}, NOW_US, &text);
    resp_out_raw(&text, bytes_of("", 1));
    assert_non_null(strstr((const char *)text.at, "id=6 "));
    assert_non_null(strstr((const char *)text.at, "name=five"));
    assert_non_null(strstr((const char *)text.at, "id=4102 "));
    assert_non_null(strstr((const char *)text.at, "name=other"));
    resp_out_deinit(&text);
    leave(p, &g[5]);
    leave(p, &g[5 + 4096]);
    free(g);
}

/* ---- Threads ---- */

struct owner {
    struct place *place;
    uint32_t worker;
    atomic_bool *end;
    uint64_t rounds, killed;
};

/* Commands of different lengths, so that a torn name shows. */
static void *own(void *context)
{
    struct owner *o = context;
    uint64_t id = 1000 * (uint64_t)(o->worker + 1);
    while (!atomic_load(o->end)) {
        struct guest g = arrive(o->place, id++, o->worker, NOW_US);
        for (uint32_t i = 0; i < 20; i++) {
            say(&g, "CLIENT SETNAME somebody-with-a-name\r\n", NOW_US);
            say(&g, "PING\r\n", NOW_US);
            say(&g, "CLIENT NO-TOUCH ON\r\n", NOW_US);
            say(&g, "CLIENT SETNAME x\r\n", NOW_US);
            o->killed += registry_kills(o->place->registry, o->worker) && registry_killed(g.entry);
        }
        leave(o->place, &g);
        o->rounds++;
    }
    return NULL;
}

static bool one_of(const char *line, const char *field, const char *const *values)
{
    const char *at = strstr(line, field);
    for (; at != NULL && *values != NULL; values++) {
        size_t n = strlen(*values);
        if (strncmp(at + strlen(field), *values, n) == 0 && at[strlen(field) + n] == ' ') {
            return true;
        }
    }
    return false;
}

static void check_lines(char *lines)
{
    static const char *const commands[] = {"NULL", "client|setname", "ping", "client|no-touch",
                                           NULL};
    static const char *const names[] = {"", "somebody-with-a-name", "x", NULL};
    char *rest = NULL;
    for (char *line = strtok_r(lines, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (!one_of(line, " cmd=", commands) || !one_of(line, " name=", names)) {
            fail_msg("%s", line);
        }
    }
}

static void test_threads(void **state)
{
    struct place *p = *state;
    atomic_bool end = false;
    struct owner owners[2];
    pthread_t threads[2];
    for (uint32_t i = 0; i < 2; i++) {
        owners[i] = (struct owner){p, i, &end, 0, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, own, &owners[i]), 0);
    }
    for (uint32_t i = 0; i < 2000; i++) {
        struct resp_out text;
        resp_out_init(&text, 1 << 20);
        registry_list(p->registry, &(struct resp_client_filter){.ids_n = 0}, NOW_US, &text);
        resp_out_raw(&text, bytes_of("", 1));
        check_lines((char *)text.at);
        resp_out_deinit(&text);
        (void)registry_kill(p->registry, &(struct resp_client_filter){.ids_n = 0}, NOW_US);
    }
    atomic_store(&end, true);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_list, make, unmake),
        cmocka_unit_test_setup_teardown(test_filters, make, unmake),
        cmocka_unit_test_setup_teardown(test_kill, make, unmake),
        cmocka_unit_test_setup_teardown(test_many, make, unmake),
        cmocka_unit_test_setup_teardown(test_threads, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
