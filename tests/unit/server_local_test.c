/* The workers' side of sessions of this process: what a worker draws from its ring, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/internal.h"
#include "server/local_internal.h"

#define SLOTS 4u

struct rig {
    struct server *server;
    struct server_worker *worker;
    struct local_session *session;
};

static int make(void **state)
{
    struct rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->server = calloc(1, sizeof *r->server);
    r->worker = calloc(1, sizeof *r->worker);
    r->session = aligned_alloc(64, sizeof *r->session);
    assert_true(r->server != NULL && r->worker != NULL && r->session != NULL);
    r->server->workers = r->worker;
    r->server->workers_n = 1;
    r->server->node_config.sessions_max = 1;
    r->worker->server = r->server;
    r->worker->updates = true;
    assert_int_equal(locals_create(r->server), HK_OK);
    memset(r->session, 0, sizeof *r->session);
    r->session->slots_n = SLOTS;
    r->session->slots = calloc(SLOTS, sizeof *r->session->slots);
    assert_non_null(r->session->slots);
    for (uint32_t i = 0; i < SLOTS; i++) {
        list_init(&r->session->slots[i].held);
        r->session->slots[i].op = (struct op){.kind = OP_GET};
    }
    list_init(&r->session->holds);
    list_init(&r->session->held);
    *state = r;
    return 0;
}

static int unmake(void **state)
{
    struct rig *r = *state;
    locals_release(r->server->locals);
    free(r->worker->local_by_session);
    free(r->session->slots);
    free(r->session);
    free(r->worker);
    free(r->server);
    free(r);
    return 0;
}

static void ask(struct rig *r, uint32_t slot)
{
    struct local_ref ref = {.session = r->session, .slot = slot};
    assert_true(ring_mpsc_push(&r->worker->local_inbox->ring, &ref));
}

static void assert_drawn(struct rig *r, uint32_t slot)
{
    struct request request;
    assert_true(locals_request(r->worker, &request));
    assert_int_equal(request.tag, slot);
}

static void assert_none_drawn(struct rig *r)
{
    struct request request;
    assert_false(locals_request(r->worker, &request));
}

/* The worker reads the clock, stands still, its lease runs out, another node's write commits
 * without it, and only then a thread asks: by the worker's clock the lease is valid still, but the
 * old value would be wrong. */
static void who_asks_after_the_clock_was_read_waits(void **state)
{
    struct rig *r = *state;
    ask(r, 0);
    ask(r, 1);
    assert_true(locals_look(r->worker));
    assert_drawn(r, 0);
    ask(r, 2); /* the clock was read before this one */
    assert_drawn(r, 1);
    assert_none_drawn(r);
    assert_true(locals_waiting(r->worker)); /* so the worker will not sleep */
    assert_true(locals_look(r->worker));
    assert_drawn(r, 2);
    assert_none_drawn(r);
    assert_false(locals_waiting(r->worker));
    assert_false(locals_look(r->worker));
}

/* An update that is held has its place before what its session asks later. */
static void what_is_held_comes_first(void **state)
{
    struct rig *r = *state;
    r->session->slots[0].op.kind = OP_SET;
    r->worker->updates = false;
    ask(r, 0);
    ask(r, 1);
    assert_true(locals_look(r->worker));
    assert_none_drawn(r);
    assert_false(locals_waiting(r->worker)); /* as long as updates are not taken */
    r->worker->updates = true;
    assert_true(locals_waiting(r->worker));
    assert_drawn(r, 0);
    assert_drawn(r, 1);
    assert_none_drawn(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_asks_after_the_clock_was_read_waits, make, unmake),
        cmocka_unit_test_setup_teardown(what_is_held_comes_first, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
