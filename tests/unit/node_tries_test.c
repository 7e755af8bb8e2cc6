/* Tries at a memory server (docs/protocols/lotus.md, "Memory server: a try"): every line of its
 * table, and what no coordinator says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/slot.h"
#include "support/node_tries.h"

#define SECOND 1000000u
#define PAIR (nodeset_of(0) | nodeset_of(2)) /* participants: this node and another */
#define TRIO (nodeset_of(0) | nodeset_of(2) | nodeset_of(3))
#define ALL (nodeset_of(TRIES_NODES) - 1)

static const struct lotus_config wait_die = {.lock = {.policy = LOCK_WAIT_DIE}},
                                 wound_wait = {.lock = {.policy = LOCK_WOUND_WAIT}};

static const struct tries_try old = {.node = 1, .slot = 1, .gen = 7, .age = 10},
                              middle = {.node = 2, .slot = 1, .gen = 3, .age = 20},
                              young = {.node = 1, .slot = 2, .gen = 9, .age = 30};

static void store(struct tries *t, const char *items, const char *rows)
{
    static struct tries_try who = {.node = 3, .slot = 77, .gen = 1, .age = 1};
    who.gen++;
    tries_execute(t, &who, false, items);
    assert_int_equal(tries_hears(t, 3, LOTUS_MSG_EXECUTED, &who), LOTUS_OK);
    tries_finish(t, &who, rows);
    tries_hears_word(t, &who, LOTUS_MSG_DONE, LOTUS_OK);
}

/* a and b are there. */
static void start(struct tries *t, const struct lotus_config *config, uint32_t workers)
{
    tries_start(t, config, workers);
    store(t, "Xa Xb", "a=1 b=2");
}

static void stop(struct tries *t)
{
    tries_silent(t);
    tries_idle(t, 0);
    tries_stop(t);
}

/* ---- The ways through ---- */

static void executes_and_finishes(void **state)
{
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    tries_execute(&t, &old, false, "Xa Sb Sc");
    tries_hears_rows(&t, &old, "1 . 2 . - .");
    tries_execute(&t, &old, true, "Xd");
    tries_hears_rows(&t, &old, "- .");
    tries_finish(&t, &old, "a=7 d=8");
    tries_hears_word(&t, &old, LOTUS_MSG_DONE, LOTUS_OK);
    tries_holds(&t, "a", "7");
    tries_holds(&t, "b", "2");
    tries_holds(&t, "d", "8");
    stop(&t);
}

static void prepares_and_commits(void **state)
{
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    tries_execute(&t, &old, false, "Xa Xb");
    tries_hears_rows(&t, &old, "1 . 2 .");
    for (uint32_t i = 0; i < 2; i++) { /* and again */
        tries_prepare(&t, &old, 5, PAIR, "a=7 b!");
        tries_hears_word(&t, &old, LOTUS_MSG_PREPARED, LOTUS_OK);
        tries_holds(&t, "a", "1");
    }
    for (uint32_t i = 0; i < 2; i++) {
        tries_plain(&t, &old, LOTUS_MSG_COMMIT, 5);
        tries_hears_word(&t, &old, LOTUS_MSG_COMMITTED, LOTUS_OK);
        tries_holds(&t, "a", "7");
        tries_holds(&t, "b", "-");
    }
    tries_prepare(&t, &old, 5, PAIR, "a=9");
    tries_hears_word(&t, &old, LOTUS_MSG_PREPARED, LOTUS_OK);
    tries_holds(&t, "a", "7");
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 5);
    tries_holds(&t, "a", "7");
    tries_idle(&t, 1); /* its outcome is kept, its locks are not */
    tries_plain(&t, &young, LOTUS_MSG_ABORT, 6);
    stop(&t);
}

static void aborts_release(void **state)
{
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    tries_execute(&t, &old, false, "Xa");
    tries_hears_rows(&t, &old, "1 .");
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
    tries_idle(&t, 0);
    tries_execute(&t, &old, false, "Xa");
    tries_hears_rows(&t, &old, "1 .");
    tries_prepare(&t, &old, 5, PAIR, "a=7");
    tries_hears_word(&t, &old, LOTUS_MSG_PREPARED, LOTUS_OK);
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
    tries_holds(&t, "a", "1");
    stop(&t);
}

static void another_try_of_the_slot_replaces_one_that_runs(void **state)
{
    struct tries_try next = old;
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    tries_execute(&t, &old, false, "Xa");
    tries_hears_rows(&t, &old, "1 .");
    next.gen++;
    tries_execute(&t, &next, false, "Xb");
    tries_hears_rows(&t, &next, "2 .");
    tries_execute(&t, &young, false, "Xa");
    tries_hears_rows(&t, &young, "1 .");
    tries_plain(&t, &young, LOTUS_MSG_ABORT, 0);
    tries_plain(&t, &next, LOTUS_MSG_ABORT, 0);
    stop(&t);
}

static void ranges_are_grouped_by_item(void **state)
{
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    tries_execute(&t, &old, false, "Ra-b Sb R-");
    tries_hears_rows(&t, &old, "a=1 . 2 . a=1 b=2 .");
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
    stop(&t);
}

/* ---- Waiting ---- */

/* P8: neither the rest of a frame nor a later message of the same coordinator waits behind it. */
static void a_parked_request_holds_nothing_back(void **state)
{
    struct tries_try other = {.node = 1, .slot = 9, .gen = 1, .age = 5};
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    tries_execute(&t, &young, false, "Xa");
    tries_hears_rows(&t, &young, "1 .");
    tries_execute(&t, &old, false, "Sb Xa Xc");
    tries_silent(&t);
    tries_execute(&t, &other, false, "Sb");
    tries_hears_rows(&t, &other, "2 .");
    tries_plain(&t, &other, LOTUS_MSG_ABORT, 0);
    tries_finish(&t, &young, "a=3");
    tries_hears_word(&t, &young, LOTUS_MSG_DONE, LOTUS_OK);
    tries_silent(&t);
    tries_poll(&t, 0);
    tries_hears_rows(&t, &old, "2 . 3 . - .");
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
    stop(&t);
}

/* The lock is let go by another worker, which wakes this one. */
static void other_workers_wake(void **state)
{
    struct tries_try there = {.node = 2, .worker = 1, .slot = 4, .gen = 2, .age = 50};
    struct tries t;
    (void)state;
    start(&t, &wait_die, 2);
    tries_execute(&t, &there, false, "Xa");
    tries_hears_rows(&t, &there, "1 .");
    tries_execute(&t, &old, false, "Xa Xb");
    tries_silent(&t);
    assert_false(lotus_home_wanted(tries_worker(&t, 0)));
    assert_true(worker_sleep(tries_worker(&t, 0)));
    tries_finish(&t, &there, "a=3");
    tries_hears_word(&t, &there, LOTUS_MSG_DONE, LOTUS_OK);
    assert_true(lotus_home_wanted(tries_worker(&t, 0)));
    assert_true(lotus_home_deadline(tries_worker(&t, 0)) <= t.now_us);
    assert_true(t.woken[0]);
    worker_awake(tries_worker(&t, 0));
    tries_poll(&t, 0);
    tries_hears_rows(&t, &old, "3 . 2 .");
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
    stop(&t);
}

static void the_younger_dies(void **state)
{
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    tries_execute(&t, &old, false, "Xa");
    tries_hears_rows(&t, &old, "1 .");
    tries_execute(&t, &young, false, "Xb Xa");
    tries_hears_word(&t, &young, LOTUS_MSG_EXECUTED, LOTUS_REFUSED);
    /* Nothing of it is left: b can be had. */
    tries_execute(&t, &middle, false, "Xb");
    tries_hears_rows(&t, &middle, "2 .");
    tries_plain(&t, &middle, LOTUS_MSG_ABORT, 0);
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
    stop(&t);
}

/* ---- Wounds ---- */

/* P7. */
static void a_parked_request_of_a_wounded_try_is_answered(void **state)
{
    struct tries t;
    (void)state;
    start(&t, &wound_wait, 1);
    tries_execute(&t, &middle, false, "Xa");
    tries_hears_rows(&t, &middle, "1 .");
    tries_execute(&t, &young, false, "Xb Xa");
    tries_silent(&t);
    tries_execute(&t, &old, false, "Xb");
    tries_hears_rows(&t, &old, "2 .");
    tries_poll(&t, 0);
    tries_hears_word(&t, &young, LOTUS_MSG_EXECUTED, LOTUS_REFUSED);
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
    tries_plain(&t, &middle, LOTUS_MSG_ABORT, 0);
    stop(&t);
}

/* P7, P9: its locks fall when its worker hears; what it asks later is refused. */
static void a_wounded_try_is_refused_later(void **state)
{
    struct tries t;
    (void)state;
    for (uint32_t how = 0; how < 6; how++) {
        start(&t, &wound_wait, 1);
        tries_execute(&t, &young, false, "Xa Xb");
        tries_hears_rows(&t, &young, "1 . 2 .");
        tries_execute(&t, &old, false, "Xb");
        tries_hears_rows(&t, &old, "2 .");
        if (how % 2 == 0) {
            tries_poll(&t, 0);
            tries_execute(&t, &middle, false, "Xa");
            tries_hears_rows(&t, &middle, "1 .");
            tries_plain(&t, &middle, LOTUS_MSG_ABORT, 0);
        }
        if (how / 2 == 0) {
            tries_execute(&t, &young, true, "Xc");
            tries_hears_word(&t, &young, LOTUS_MSG_EXECUTED, LOTUS_REFUSED);
        } else if (how / 2 == 1) {
            tries_prepare(&t, &young, 4, PAIR, "a=9");
            tries_hears_word(&t, &young, LOTUS_MSG_PREPARED, LOTUS_REFUSED);
        } else {
            tries_finish(&t, &young, "a=9");
            tries_hears_word(&t, &young, LOTUS_MSG_DONE, LOTUS_REFUSED);
        }
        tries_holds(&t, "a", "1");
        tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
        tries_poll(&t, 0);
        stop(&t);
    }
}

static void a_prepared_try_is_not_wounded(void **state)
{
    struct tries t;
    (void)state;
    start(&t, &wound_wait, 1);
    tries_execute(&t, &young, false, "Xa");
    tries_hears_rows(&t, &young, "1 .");
    tries_prepare(&t, &young, 4, PAIR, "a=9");
    tries_hears_word(&t, &young, LOTUS_MSG_PREPARED, LOTUS_OK);
    tries_execute(&t, &old, false, "Xa");
    tries_poll(&t, 100 * SECOND); /* P1: nor does it end by time */
    tries_silent(&t);
    tries_plain(&t, &young, LOTUS_MSG_COMMIT, 0);
    tries_hears_word(&t, &young, LOTUS_MSG_COMMITTED, LOTUS_OK);
    tries_poll(&t, 0);
    tries_hears_rows(&t, &old, "9 .");
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 5);
    stop(&t);
}

/* ---- Leases and KILL ---- */

static void leases_end(void **state)
{
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    tries_execute(&t, &young, false, "Xa");
    tries_hears_rows(&t, &young, "1 .");
    tries_poll(&t, 4 * SECOND);
    tries_execute(&t, &young, true, "Sb"); /* heard of */
    tries_hears_rows(&t, &young, "2 .");
    assert_int_equal(lotus_home_deadline(tries_worker(&t, 0)) <= t.now_us + 5 * SECOND, 1);
    tries_poll(&t, 4 * SECOND);
    tries_execute(&t, &old, false, "Xa"); /* waits, which has no lease */
    tries_silent(&t);
    tries_poll(&t, 2 * SECOND);
    tries_hears_rows(&t, &old, "1 .");
    tries_execute(&t, &young, true, "Xc");
    tries_hears_word(&t, &young, LOTUS_MSG_EXECUTED, LOTUS_REFUSED);
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
    assert_int_equal(tries_worker(&t, 0)->stats.home_leases, 1);
    stop(&t);
}

struct found {
    uint64_t owner, waiter;
    uint32_t n;
};

static void look(void *context, const struct node_lock *lock)
{
    struct found *f = context;
    assert_false(lock->gap);
    assert_true(bytes_equal(lock->key, bytes_of("a", 1)));
    assert_int_equal(lock->mode, LOCK_X);
    assert_int_equal(lock->coordinator, 1);
    assert_int_equal(lock->worker, 0);
    assert_int_equal(lock->try_state, TRY_RUNNING);
    if (lock->state == LOCK_OWNS) {
        f->owner = lock->id;
        assert_int_equal(lock->age.us, young.age);
    } else {
        f->waiter = lock->id;
        assert_int_equal(lock->state, LOCK_WAITS);
        assert_int_equal(lock->age.us, old.age);
    }
    f->n++;
}

static void kill_ends_whom_locks_names(void **state)
{
    struct found f = {.n = 0};
    struct tries t;
    (void)state;
    start(&t, &wait_die, 2);
    tries_execute(&t, &young, false, "Xa");
    tries_hears_rows(&t, &young, "1 .");
    tries_execute(&t, &old, false, "Xa");
    assert_int_equal(node_locks(t.node, 0, 100, look, &f), HK_OK);
    assert_int_equal(f.n, 2);
    assert_int_equal(node_locks(t.node, 1, 100, look, &f), HK_ERR_INVALID);
    /* Who waits is answered at once, ... */
    assert_int_equal(node_kill(t.node, 0, f.waiter), HK_OK);
    tries_poll(&t, 0);
    tries_hears_word(&t, &old, LOTUS_MSG_EXECUTED, LOTUS_REFUSED);
    assert_int_equal(node_kill(t.node, 0, f.waiter), HK_ERR_NOTFOUND);
    /* ... who does not hears it with its next request. */
    assert_int_equal(node_kill(t.node, 0, f.owner), HK_OK);
    tries_poll(&t, 0);
    tries_idle(&t, 0);
    tries_prepare(&t, &young, 1, PAIR, "a=2");
    tries_hears_word(&t, &young, LOTUS_MSG_PREPARED, LOTUS_REFUSED);
    assert_int_equal(node_kill(t.node, 1, f.owner), HK_ERR_INVALID);
    /* Not who is prepared. */
    tries_execute(&t, &young, false, "Xa");
    tries_hears_rows(&t, &young, "1 .");
    assert_int_equal(node_locks(t.node, 0, 100, look, &f), HK_OK);
    tries_prepare(&t, &young, 1, PAIR, "a=2");
    tries_hears_word(&t, &young, LOTUS_MSG_PREPARED, LOTUS_OK);
    assert_int_equal(node_kill(t.node, 0, f.owner), HK_ERR_CONDITION);
    tries_plain(&t, &young, LOTUS_MSG_ABORT, 0);
    stop(&t);
}

/* ---- Coordinators that are gone ---- */

static void without_its_coordinator_a_running_try_ends(void **state)
{
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    tries_execute(&t, &young, false, "Xa");
    tries_hears_rows(&t, &young, "1 .");
    tries_execute(&t, &old, false, "Xb Xa"); /* waits */
    tries_view(&t, ALL & ~nodeset_of(1));
    tries_poll(&t, 0);
    tries_silent(&t);
    tries_idle(&t, 0);
    /* Nor does another process of the node hear of it. */
    tries_view(&t, ALL);
    tries_execute(&t, &young, true, "Xa");
    tries_hears_word(&t, &young, LOTUS_MSG_EXECUTED, LOTUS_REFUSED);
    stop(&t);
}

static void prepare(struct tries *t, nodeset participants)
{
    start(t, &wait_die, 1);
    tries_execute(t, &old, false, "Xa");
    tries_hears_rows(t, &old, "1 .");
    tries_prepare(t, &old, 5, participants, "a=7");
    tries_hears_word(t, &old, LOTUS_MSG_PREPARED, LOTUS_OK);
}

static void in_doubt_all_prepared_commit(void **state)
{
    struct tries_try gone = old;
    struct tries t;
    (void)state;
    prepare(&t, TRIO);
    tries_view(&t, ALL & ~nodeset_of(1));
    assert_int_equal(tries_hears(&t, 2, LOTUS_MSG_ASK, &gone), 0);
    assert_int_equal(tries_hears(&t, 3, LOTUS_MSG_ASK, &gone), 0);
    assert_int_equal(tries_worker(&t, 0)->stats.home_doubts, 1);
    tries_about(&t, 2, &gone, LOTUS_MSG_TOLD, LOTUS_TOLD_PREPARED);
    tries_holds(&t, "a", "1");
    tries_silent(&t);
    tries_about(&t, 3, &gone, LOTUS_MSG_TOLD, LOTUS_TOLD_PREPARED);
    tries_holds(&t, "a", "7");
    assert_int_equal(tries_hears(&t, 2, LOTUS_MSG_RESOLVED, &gone), 0);
    assert_int_equal(tries_hears(&t, 3, LOTUS_MSG_RESOLVED, &gone), 0);
    /* Kept until all others have it. */
    tries_idle(&t, 1);
    tries_about(&t, 2, &gone, LOTUS_MSG_ASK, 0);
    assert_int_equal(tries_hears(&t, 2, LOTUS_MSG_TOLD, &gone), LOTUS_TOLD_COMMITTED);
    tries_about(&t, 2, &gone, LOTUS_MSG_RESOLVED, 1);
    tries_about(&t, 3, &gone, LOTUS_MSG_RESOLVED, 0);
    assert_int_equal(tries_hears(&t, 3, LOTUS_MSG_RESOLVED, &gone), 1);
    assert_int_equal(tries_worker(&t, 0)->stats.home_doubts, 0);
    assert_int_equal(tries_worker(&t, 0)->stats.home_outcomes, 0);
    stop(&t);
}

static void in_doubt_one_that_is_not_aborts(void **state)
{
    struct tries t;
    (void)state;
    prepare(&t, TRIO);
    tries_view(&t, ALL & ~nodeset_of(1));
    (void)tries_hears(&t, 2, LOTUS_MSG_ASK, &old);
    (void)tries_hears(&t, 3, LOTUS_MSG_ASK, &old);
    tries_about(&t, 2, &old, LOTUS_MSG_TOLD, LOTUS_TOLD_PREPARED);
    tries_about(&t, 3, &old, LOTUS_MSG_TOLD, LOTUS_TOLD_NO);
    tries_holds(&t, "a", "1");
    tries_idle(&t, 0);
    /* Of an unknown one: no. */
    tries_about(&t, 2, &old, LOTUS_MSG_ASK, 0);
    assert_int_equal(tries_hears(&t, 2, LOTUS_MSG_TOLD, &old), LOTUS_TOLD_NO);
    stop(&t);
}

static void in_doubt_one_that_has_committed_is_enough(void **state)
{
    struct tries t;
    (void)state;
    for (uint32_t resolved = 0; resolved < 2; resolved++) {
        prepare(&t, TRIO);
        tries_view(&t, ALL & ~nodeset_of(1));
        (void)tries_hears(&t, 2, LOTUS_MSG_ASK, &old);
        (void)tries_hears(&t, 3, LOTUS_MSG_ASK, &old);
        if (resolved != 0) {
            tries_about(&t, 2, &old, LOTUS_MSG_RESOLVED, 0);
            assert_int_equal(tries_hears(&t, 2, LOTUS_MSG_RESOLVED, &old), 1);
        } else {
            tries_about(&t, 2, &old, LOTUS_MSG_TOLD, LOTUS_TOLD_COMMITTED);
        }
        tries_holds(&t, "a", "7");
        assert_int_equal(tries_hears(&t, 3, LOTUS_MSG_RESOLVED, &old), 0);
        tries_about(&t, 3, &old, LOTUS_MSG_RESOLVED, 1);
        stop(&t);
    }
}

/* P4: what the dead had is lost, and says nothing. A node that came back is another process. */
static void in_doubt_alone_it_commits(void **state)
{
    struct tries t;
    (void)state;
    prepare(&t, PAIR);
    tries_view(&t, ALL & ~nodeset_of(2));
    tries_silent(&t);
    tries_view(&t, ALL);
    tries_view(&t, ALL & ~nodeset_of(1));
    tries_holds(&t, "a", "7");
    stop(&t);
}

/* P3: asked again in the next epoch; what was said in an earlier one is not heard. */
static void what_is_told_counts_in_one_epoch(void **state)
{
    struct msg m = {.kind = LOTUS_MSG_TOLD, .slot = 1, .gen = 7, .ts = LOTUS_TOLD_NO, .arg = 1};
    uint8_t nonce[8];
    struct tries t;
    (void)state;
    prepare(&t, PAIR);
    put_u64(nonce, t.view.members[1].nonce);
    m.key = bytes_of(nonce, sizeof nonce);
    tries_view(&t, ALL & ~nodeset_of(1));
    (void)tries_hears(&t, 2, LOTUS_MSG_ASK, &old);
    m.epoch = t.view.epoch;
    tries_view(&t, ALL & ~nodeset_of(1) & ~nodeset_of(4));
    (void)tries_hears(&t, 2, LOTUS_MSG_ASK, &old);
    tries_say(&t, 0, 2, &m);
    tries_holds(&t, "a", "1");
    tries_about(&t, 2, &old, LOTUS_MSG_TOLD, LOTUS_TOLD_PREPARED);
    tries_holds(&t, "a", "7");
    assert_int_equal(tries_hears(&t, 2, LOTUS_MSG_RESOLVED, &old), 0);
    tries_about(&t, 2, &old, LOTUS_MSG_RESOLVED, 1);
    stop(&t);
}

/* P2. */
static void outcomes_are_kept_until_all_know(void **state)
{
    struct tries t;
    (void)state;
    prepare(&t, PAIR);
    tries_plain(&t, &old, LOTUS_MSG_COMMIT, 5);
    tries_hears_word(&t, &old, LOTUS_MSG_COMMITTED, LOTUS_OK);
    tries_view(&t, ALL & ~nodeset_of(1));
    assert_int_equal(tries_hears(&t, 2, LOTUS_MSG_RESOLVED, &old), 0);
    tries_about(&t, 2, &old, LOTUS_MSG_ASK, 0);
    assert_int_equal(tries_hears(&t, 2, LOTUS_MSG_TOLD, &old), LOTUS_TOLD_COMMITTED);
    tries_about(&t, 2, &old, LOTUS_MSG_RESOLVED, 1);
    stop(&t);
}

static void outcomes_go_in_the_order_of_numbers(void **state)
{
    struct tries_try who[4];
    static const uint64_t numbers[] = {3, 1, 4, 2};
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    for (uint32_t i = 0; i < 4; i++) {
        who[i] = (struct tries_try){.node = 1, .slot = 10 + i, .gen = 1, .age = 10 + i};
        tries_execute(&t, &who[i], false, "Xa");
        assert_int_equal(tries_hears(&t, 1, LOTUS_MSG_EXECUTED, &who[i]), LOTUS_OK);
        tries_prepare(&t, &who[i], numbers[i], PAIR, "");
        tries_hears_word(&t, &who[i], LOTUS_MSG_PREPARED, LOTUS_OK);
        tries_plain(&t, &who[i], LOTUS_MSG_COMMIT, 1);
        tries_hears_word(&t, &who[i], LOTUS_MSG_COMMITTED, LOTUS_OK);
    }
    tries_idle(&t, 4);
    for (uint64_t done = 1; done <= 5; done++) {
        tries_plain(&t, &old, LOTUS_MSG_ABORT, done);
        tries_idle(&t, 5 - done);
    }
    stop(&t);
}

/* ---- WHOLE ---- */

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static void answers_of(struct tries *t, uint32_t n, struct answer *answers)
{
    uint64_t versions[8];
    uint8_t verdict;
    assert_true(n <= 8);
    assert_true(lotus_answers_take(tries_last(t)->value, n, &verdict, answers, versions));
    assert_int_equal(verdict, TXN_DONE);
}

static const struct op add_and_get[] = {
    {.kind = OP_ADD, .key = {(const uint8_t *)"a", 1}, .number = 5},
    {.kind = OP_GET, .key = {(const uint8_t *)"b", 1}},
    {.kind = OP_SET, .key = {(const uint8_t *)"new", 3}, .value = {(const uint8_t *)"x", 1}},
    {.kind = TXN_OP_RANGE_COUNT}};

static void a_whole_request_in_one_message(void **state)
{
    struct answer answers[4];
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    tries_whole(&t, &old, add_and_get, 4);
    tries_hears_word(&t, &old, LOTUS_MSG_DONE, LOTUS_OK);
    answers_of(&t, 4, answers);
    assert_int_equal(answers[0].number, 6);
    assert_true(bytes_equal(answers[1].value, text("2")));
    assert_int_equal(answers[3].number, 3);
    tries_holds(&t, "a", "6");
    tries_holds(&t, "new", "x");
    assert_int_equal(tries_worker(&t, 0)->stats.home_commits_alone, 2);
    stop(&t);
}

/* It waits twice, then is executed on what it finds; its message is long gone. */
static void a_whole_request_waits(void **state)
{
    struct answer answers[4];
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    tries_execute(&t, &young, false, "Xa");
    tries_hears_rows(&t, &young, "1 .");
    tries_execute(&t, &middle, false, "Xb");
    tries_hears_rows(&t, &middle, "2 .");
    tries_whole(&t, &old, add_and_get, 4);
    tries_finish(&t, &young, "a=7");
    tries_hears_word(&t, &young, LOTUS_MSG_DONE, LOTUS_OK);
    tries_poll(&t, 0);
    tries_silent(&t);
    tries_finish(&t, &middle, "b=8");
    tries_hears_word(&t, &middle, LOTUS_MSG_DONE, LOTUS_OK);
    tries_poll(&t, 0);
    tries_hears_word(&t, &old, LOTUS_MSG_DONE, LOTUS_OK);
    answers_of(&t, 4, answers);
    assert_int_equal(answers[0].number, 12);
    assert_true(bytes_equal(answers[1].value, text("8")));
    assert_int_equal(answers[3].number, 3);
    stop(&t);
}

static void a_whole_request_that_waits_ends(void **state)
{
    struct tries_try other = {.node = 3, .slot = 8, .gen = 1, .age = 1};
    struct tries t;
    (void)state;
    for (uint32_t how = 0; how < 4; how++) {
        start(&t, &wound_wait, 1);
        tries_execute(&t, &old, false, "Xb");
        tries_hears_rows(&t, &old, "2 .");
        tries_whole(&t, &young, add_and_get, 4);
        tries_silent(&t);
        if (how == 0) {
            tries_plain(&t, &young, LOTUS_MSG_ABORT, 0);
        } else if (how == 1) { /* wounded */
            tries_execute(&t, &other, false, "Xa");
            tries_hears_rows(&t, &other, "1 .");
            tries_poll(&t, 0);
            tries_hears_word(&t, &young, LOTUS_MSG_DONE, LOTUS_REFUSED);
            tries_plain(&t, &other, LOTUS_MSG_ABORT, 0);
        } else if (how == 2) { /* no coordinator asks so */
            tries_whole(&t, &young, add_and_get, 1);
            tries_hears_word(&t, &young, LOTUS_MSG_DONE, LOTUS_REFUSED);
            tries_finish(&t, &young, "a=3");
            tries_hears_word(&t, &young, LOTUS_MSG_DONE, LOTUS_REFUSED);
        }
        tries_holds(&t, "a", "1");
        tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
        if (how == 3) {
            tries_view(&t, ALL & ~nodeset_of(1));
        }
        tries_poll(&t, 0);
        stop(&t);
    }
}

/* ---- Slots that move ---- */

static void a_slot_that_moves_is_not_here(void **state)
{
    struct op get = {.kind = OP_GET, .key = text("a")};
    uint32_t slot = slot_of_key(text("a"));
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    tries_execute(&t, &young, false, "Xb Xa");
    tries_hears_rows(&t, &young, "2 . 1 .");
    tries_execute(&t, &old, false, "Xc Xa");
    tries_silent(&t);
    tries_move(&t, slot, true);
    /* Who waits learns it when it goes on; who has its locks keeps them. */
    tries_finish(&t, &young, "a=3");
    tries_hears_word(&t, &young, LOTUS_MSG_DONE, LOTUS_OK);
    tries_poll(&t, 0);
    tries_hears_word(&t, &old, LOTUS_MSG_EXECUTED, LOTUS_MOVED);
    tries_execute(&t, &old, false, "Sb Sa");
    tries_hears_word(&t, &old, LOTUS_MSG_EXECUTED, LOTUS_MOVED);
    tries_whole(&t, &old, &get, 1);
    tries_hears_word(&t, &old, LOTUS_MSG_DONE, LOTUS_MOVED);
    tries_idle(&t, 0);
    struct lotus_table_stats stats;
    lotus_table_stats(t.node->spaces[0].table, &stats);
    assert_int_equal(stats.requests, 0);
    /* No range while a slot moves, unless it is of another slot alone. */
    store(&t, "X{t}a X{t}b", "{t}a=5 {t}b=6");
    tries_execute(&t, &old, false, "R{t}-{t}z");
    tries_hears_rows(&t, &old, "{t}a=5 {t}b=6 .");
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
    store(&t, "X{t}a X{t}b", "{t}a! {t}b!");
    tries_execute(&t, &old, false, "Sb R-");
    tries_hears_word(&t, &old, LOTUS_MSG_EXECUTED, LOTUS_MOVED);
    tries_move(&t, slot, false);
    tries_execute(&t, &old, false, "Sa R-");
    tries_hears_rows(&t, &old, "3 . a=3 b=2 .");
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
    /* Nor by another map. */
    t.map++;
    tries_execute(&t, &old, false, "Sa R-");
    tries_hears_word(&t, &old, LOTUS_MSG_EXECUTED, LOTUS_MOVED);
    stop(&t);
}

/* ---- Ghosts, and rows that expire ---- */

static uint64_t entries(struct tries *t)
{
    struct lotus_table_stats stats;
    lotus_table_stats(t->node->spaces[0].table, &stats);
    return stats.rows + stats.ghosts;
}

static void ghosts_are_cleaned_away(void **state)
{
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    tries_execute(&t, &old, false, "Xc");
    tries_hears_rows(&t, &old, "- .");
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
    store(&t, "Xa", "a!");
    assert_int_equal(entries(&t), 3);
    tries_poll(&t, 5 * SECOND);
    assert_int_equal(entries(&t), 3);
    for (uint32_t i = 0; i < 10; i++) {
        tries_poll(&t, SECOND);
    }
    assert_int_equal(entries(&t), 1);
    tries_holds(&t, "b", "2");
    stop(&t);
}

static void expired_rows_are_deleted(void **state)
{
    struct tries t;
    (void)state;
    start(&t, &wound_wait, 2);
    struct op expire = {.kind = OP_EXPIRE, .key = text("a"), .number = (int64_t)t.wall_ms + 20000};
    tries_whole(&t, &old, &expire, 1);
    tries_hears_word(&t, &old, LOTUS_MSG_DONE, LOTUS_OK);
    for (uint32_t i = 0; i < 15; i++) {
        tries_poll(&t, SECOND);
    }
    assert_int_equal(tries_worker(&t, 0)->stats.home_expired, 0);
    /* It waits for nobody, and wounds nobody. */
    tries_execute(&t, &young, false, "Sa");
    assert_int_equal(tries_hears(&t, 1, LOTUS_MSG_EXECUTED, &young), LOTUS_OK);
    tries_prepare(&t, &young, 1, PAIR, "");
    tries_hears_word(&t, &young, LOTUS_MSG_PREPARED, LOTUS_OK);
    for (uint32_t i = 0; i < 20; i++) {
        tries_poll(&t, SECOND);
    }
    assert_int_equal(tries_worker(&t, 0)->stats.home_expired, 0);
    tries_plain(&t, &young, LOTUS_MSG_COMMIT, 1);
    tries_hears_word(&t, &young, LOTUS_MSG_COMMITTED, LOTUS_OK);
    for (uint32_t i = 0; i < 11; i++) {
        tries_poll(&t, SECOND);
    }
    assert_int_equal(tries_worker(&t, 0)->stats.home_expired, 1);
    tries_holds(&t, "a", "-");
    tries_plain(&t, &young, LOTUS_MSG_ABORT, 2);
    stop(&t);
}

/* ---- What no coordinator says ---- */

static void nonsense_does_no_harm(void **state)
{
    struct tries_try strange = {.node = 4, .slot = 99, .gen = 99, .age = 3};
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    /* Of a try that is not known. */
    tries_plain(&t, &strange, LOTUS_MSG_COMMIT, 0);
    tries_hears_word(&t, &strange, LOTUS_MSG_COMMITTED, LOTUS_OK);
    tries_plain(&t, &strange, LOTUS_MSG_ABORT, 0);
    tries_prepare(&t, &strange, 1, PAIR, "a=9");
    tries_hears_word(&t, &strange, LOTUS_MSG_PREPARED, LOTUS_REFUSED);
    tries_finish(&t, &strange, "a=9");
    tries_hears_word(&t, &strange, LOTUS_MSG_DONE, LOTUS_REFUSED);
    tries_about(&t, 2, &strange, LOTUS_MSG_TOLD, LOTUS_TOLD_COMMITTED);
    tries_about(&t, 2, &strange, LOTUS_MSG_RESOLVED, 1);
    tries_idle(&t, 0);
    /* Rows that it has no X on. */
    static const char *const rows[] = {"b=9", "c=9", "a=8 b!", "zz!"};
    for (uint32_t i = 0; i < 4; i++) {
        tries_execute(&t, &strange, false, "Xa Sb");
        tries_hears_rows(&t, &strange, "1 . 2 .");
        tries_prepare(&t, &strange, 1, PAIR, rows[i]);
        tries_hears_word(&t, &strange, LOTUS_MSG_PREPARED, LOTUS_REFUSED);
        tries_idle(&t, 0);
        tries_execute(&t, &strange, false, "Xa Sb");
        tries_hears_rows(&t, &strange, "1 . 2 .");
        tries_finish(&t, &strange, rows[i]);
        tries_hears_word(&t, &strange, LOTUS_MSG_DONE, LOTUS_REFUSED);
        tries_idle(&t, 0);
    }
    /* Participants without this server. */
    tries_execute(&t, &strange, false, "Xa");
    tries_hears_rows(&t, &strange, "1 .");
    tries_prepare(&t, &strange, 1, nodeset_of(2) | nodeset_of(3), "a=9");
    tries_hears_word(&t, &strange, LOTUS_MSG_PREPARED, LOTUS_REFUSED);
    tries_plain(&t, &strange, LOTUS_MSG_COMMIT, 0); /* not prepared */
    tries_plain(&t, &strange, LOTUS_MSG_ABORT, 0);
    tries_holds(&t, "a", "1");
    tries_holds(&t, "b", "2");
    stop(&t);
}

/* More of a try whose request waits, or which is prepared. */
static void nothing_more_is_asked_of_who_waits(void **state)
{
    struct tries t;
    (void)state;
    for (uint32_t how = 0; how < 4; how++) {
        start(&t, &wait_die, 1);
        tries_execute(&t, &young, false, "Xa");
        tries_hears_rows(&t, &young, "1 .");
        tries_execute(&t, &old, false, "Xb Xa");
        tries_silent(&t);
        if (how == 0) {
            tries_prepare(&t, &old, 1, PAIR, "b=9");
            tries_hears_word(&t, &old, LOTUS_MSG_PREPARED, LOTUS_REFUSED);
        } else if (how == 1) {
            tries_finish(&t, &old, "b=9");
            tries_hears_word(&t, &old, LOTUS_MSG_DONE, LOTUS_REFUSED);
        } else if (how == 2) {
            tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
        } else {
            tries_execute(&t, &old, true, "Xc");
            tries_hears_word(&t, &old, LOTUS_MSG_EXECUTED, LOTUS_REFUSED);
            tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
        }
        tries_prepare(&t, &young, 1, PAIR, "a=9");
        tries_hears_word(&t, &young, LOTUS_MSG_PREPARED, LOTUS_OK);
        tries_execute(&t, &young, true, "Xc");
        tries_hears_word(&t, &young, LOTUS_MSG_EXECUTED, LOTUS_REFUSED);
        tries_finish(&t, &young, "a=8");
        tries_hears_word(&t, &young, LOTUS_MSG_DONE, LOTUS_REFUSED);
        tries_plain(&t, &young, LOTUS_MSG_COMMIT, 0);
        tries_hears_word(&t, &young, LOTUS_MSG_COMMITTED, LOTUS_OK);
        tries_holds(&t, "a", "9");
        tries_plain(&t, &young, LOTUS_MSG_ABORT, 2);
        tries_poll(&t, 0);
        stop(&t);
    }
}

/* Whoever is not a member is not heard, nor who is ahead. */
static void strangers_are_not_heard(void **state)
{
    struct tries t;
    (void)state;
    start(&t, &wait_die, 1);
    struct msg m = {.kind = LOTUS_MSG_COMMIT, .slot = 1, .gen = 1, .epoch = t.view.epoch};
    tries_say(&t, 0, NODE_NONE, &m);
    m.epoch++;
    tries_say(&t, 0, 1, &m);
    stop(&t);
}

/* ---- Whatever is said ---- */

static void words(struct random *r, char *out, size_t room, const char *const *shapes,
                  uint32_t shapes_n)
{
    uint32_t n = 1 + (uint32_t)random_below(r, 4);
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        char key = (char)('a' + random_below(r, 6));
        char other = (char)('a' + random_below(r, 6));
        const char *shape = shapes[random_below(r, shapes_n)];
        int used = snprintf(out + at, room - at, shape, i > 0 ? " " : "", key, other);
        at += (size_t)used;
    }
}

static void one_id(void *context, const struct node_lock *lock)
{
    *(uint64_t *)context = lock->id;
}

static void say_something(struct tries *t, struct random *r, const struct tries_try *who)
{
    static const char *const items[] = {"%sX%c", "%sS%c", "%sX%c", "%sS%c", "%sR%c-%c"};
    static const char *const rows[] = {"%s%c=%c", "%s%c!"};
    static const enum lotus_kind about[] = {LOTUS_MSG_ASK, LOTUS_MSG_TOLD, LOTUS_MSG_RESOLVED};
    nodeset others = random_next(r) & ALL;
    uint64_t number = random_below(r, 50), often = random_below(r, 3);
    uint8_t from = (uint8_t)(1 + random_below(r, 4));
    char out[64];
    switch (random_below(r, 12)) {
    case 0:
    case 1:
    case 2:
        words(r, out, sizeof out, items, 5);
        tries_execute(t, who, often == 0, out);
        break;
    case 3:
        words(r, out, sizeof out, rows, 2);
        tries_finish(t, who, often == 0 ? "" : out);
        break;
    case 4:
    case 5:
        words(r, out, sizeof out, rows, 2);
        others |= often == 0 ? 0 : nodeset_of(0);
        others |= nodeset_count(others) < 2 ? nodeset_of(1) | nodeset_of(2) : 0;
        tries_prepare(t, who, 1 + number, others, number % 2 == 0 ? "" : out);
        break;
    case 6:
    case 7:
        tries_plain(t, who, LOTUS_MSG_COMMIT, number);
        break;
    case 8:
        tries_plain(t, who, LOTUS_MSG_ABORT, number);
        break;
    case 9:
        tries_whole(t, who, add_and_get, 1 + (uint32_t)number % 4);
        break;
    default: {
        enum lotus_kind kind = about[often];
        uint64_t most = kind == LOTUS_MSG_TOLD ? 3 : kind == LOTUS_MSG_RESOLVED ? 2 : 1;
        tries_about(t, from, who, kind, number % most);
    }
    }
}

static void step(struct tries *t, struct random *r)
{
    uint64_t id = 0, any = random_next(r);
    struct tries_try who = {.node = (uint8_t)(any % TRIES_NODES),
                            .worker = (uint8_t)(any >> 8) % 2,
                            .slot = 1 + (uint32_t)(any >> 16) % 3,
                            .gen = 1 + (uint32_t)(any >> 32) % 3,
                            .age = 1 + (any >> 40) % 20};
    tries_forget(t);
    switch (random_below(r, 60)) {
    case 0:
        tries_view(t, nodeset_of(0) | (random_next(r) & ALL));
        break;
    case 1:
        tries_poll(t, random_below(r, 2 * SECOND));
        break;
    case 2:
        assert_int_equal(node_locks(t->node, 0, 1 + (uint32_t)any % 4, one_id, &id), HK_OK);
        id = any % 8 == 0 ? any : id;
        assert_int_not_equal(node_kill(t->node, 0, id), HK_ERR_INVALID);
        break;
    case 3:
        tries_move(t, (uint32_t)slot_of_key(bytes_of("a", 1)), random_below(r, 2) == 0);
        break;
    default:
        if (nodeset_has(t->view.live, who.node)) {
            say_something(t, r, &who);
        }
        if (random_below(r, 3) == 0) {
            tries_poll(t, random_below(r, 100));
        }
    }
}

static void nothing_that_is_said_breaks_it(void **state)
{
    (void)state;
    for (uint32_t policy = 0; policy < LOCK_POLICIES; policy++) {
        struct lotus_config config = {.lock = {.policy = (uint8_t)policy},
                                      .tries_max = 8,
                                      .locks_max = 64,
                                      .try_locks_max = 8,
                                      .lease_us = 100000};
        struct random r;
        struct tries t;
        random_init(&r, 11 + policy);
        tries_start(&t, &config, 2);
        for (uint32_t i = 0; i < 20000; i++) {
            step(&t, &r);
        }
        /* Everybody else is gone: of nobody's try anything is left. */
        tries_view(&t, nodeset_of(0));
        struct tries_try self = {.node = 0};
        for (self.worker = 0; self.worker < 2; self.worker++) {
            for (self.slot = 1; self.slot <= 3; self.slot++) {
                for (self.gen = 1; self.gen <= 3; self.gen++) {
                    tries_forget(&t);
                    tries_plain(&t, &self, LOTUS_MSG_ABORT, 100);
                }
            }
        }
        tries_poll(&t, SECOND);
        tries_idle(&t, 0);
        tries_stop(&t);
    }
}

/* ---- Bounds ---- */

static void too_many_tries_are_busy(void **state)
{
    struct lotus_config config = wait_die;
    struct tries t;
    (void)state;
    config.tries_max = 2;
    start(&t, &config, 1);
    tries_execute(&t, &old, false, "Xa");
    tries_hears_rows(&t, &old, "1 .");
    tries_execute(&t, &middle, false, "Xb");
    tries_hears_rows(&t, &middle, "2 .");
    tries_execute(&t, &young, false, "Xc");
    tries_hears_word(&t, &young, LOTUS_MSG_EXECUTED, LOTUS_BUSY);
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 0);
    tries_execute(&t, &young, false, "Xc");
    tries_hears_rows(&t, &young, "- .");
    tries_plain(&t, &young, LOTUS_MSG_ABORT, 0);
    tries_plain(&t, &middle, LOTUS_MSG_ABORT, 0);
    /* Outcomes that are kept take a try's place only when there are many. */
    for (uint32_t i = 0; i < 2 * (1 + HOME_OUTCOMES); i++) {
        struct tries_try who = {.node = 1, .slot = 20 + i, .gen = 1, .age = 10 + i};
        tries_execute(&t, &who, false, "Xa");
        tries_hears_rows(&t, &who, "1 .");
        tries_prepare(&t, &who, 1 + i, PAIR, "");
        tries_hears_word(&t, &who, LOTUS_MSG_PREPARED, LOTUS_OK);
        tries_plain(&t, &who, LOTUS_MSG_COMMIT, 0);
        tries_hears_word(&t, &who, LOTUS_MSG_COMMITTED, LOTUS_OK);
    }
    tries_execute(&t, &young, false, "Xc");
    tries_hears_word(&t, &young, LOTUS_MSG_EXECUTED, LOTUS_BUSY);
    tries_plain(&t, &old, LOTUS_MSG_ABORT, 1000);
    stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(executes_and_finishes),
        cmocka_unit_test(prepares_and_commits),
        cmocka_unit_test(aborts_release),
        cmocka_unit_test(another_try_of_the_slot_replaces_one_that_runs),
        cmocka_unit_test(ranges_are_grouped_by_item),
        cmocka_unit_test(a_parked_request_holds_nothing_back),
        cmocka_unit_test(other_workers_wake),
        cmocka_unit_test(the_younger_dies),
        cmocka_unit_test(a_parked_request_of_a_wounded_try_is_answered),
        cmocka_unit_test(a_wounded_try_is_refused_later),
        cmocka_unit_test(a_prepared_try_is_not_wounded),
        cmocka_unit_test(leases_end),
        cmocka_unit_test(kill_ends_whom_locks_names),
        cmocka_unit_test(without_its_coordinator_a_running_try_ends),
        cmocka_unit_test(in_doubt_all_prepared_commit),
        cmocka_unit_test(in_doubt_one_that_is_not_aborts),
        cmocka_unit_test(in_doubt_one_that_has_committed_is_enough),
        cmocka_unit_test(in_doubt_alone_it_commits),
        cmocka_unit_test(what_is_told_counts_in_one_epoch),
        cmocka_unit_test(outcomes_are_kept_until_all_know),
        cmocka_unit_test(outcomes_go_in_the_order_of_numbers),
        cmocka_unit_test(a_whole_request_in_one_message),
        cmocka_unit_test(a_whole_request_waits),
        cmocka_unit_test(a_whole_request_that_waits_ends),
        cmocka_unit_test(a_slot_that_moves_is_not_here),
        cmocka_unit_test(ghosts_are_cleaned_away),
        cmocka_unit_test(expired_rows_are_deleted),
        cmocka_unit_test(nonsense_does_no_harm),
        cmocka_unit_test(nothing_more_is_asked_of_who_waits),
        cmocka_unit_test(strangers_are_not_heard),
        cmocka_unit_test(nothing_that_is_said_breaks_it),
        cmocka_unit_test(too_many_tries_are_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
