/* Two-phase commit, row by row of the tables in docs/protocols/lotus.md. What a step says is
 * compared as text: "ABORT{1,2} AGAIN". */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "engine/lotus/commit.h"

static const struct lotus_config plain;

static const char *const fx_names[] = {
    [LOTUS_FX_WHOLE] = "WHOLE",   [LOTUS_FX_EXECUTE] = "EXECUTE", [LOTUS_FX_NEXT] = "NEXT",
    [LOTUS_FX_FINISH] = "FINISH", [LOTUS_FX_PREPARE] = "PREPARE", [LOTUS_FX_ANSWER] = "ANSWER",
    [LOTUS_FX_COMMIT] = "COMMIT", [LOTUS_FX_ABORT] = "ABORT",     [LOTUS_FX_AGAIN] = "AGAIN",
    [LOTUS_FX_FAIL] = "FAIL",     [LOTUS_FX_END] = "END",
};
static const char *const part_fx_names[] = {
    [PART_FX_ANSWER] = "ANSWER", [PART_FX_INSTALL] = "INSTALL",   [PART_FX_RELEASE] = "RELEASE",
    [PART_FX_ASK] = "ASK",       [PART_FX_RESOLVED] = "RESOLVED", [PART_FX_TOLD] = "TOLD",
    [PART_FX_FREE] = "FREE",
};

struct line {
    char at[256];
    size_t n;
};

static void write_text(struct line *l, const char *s)
{
    size_t n = strlen(s);
    assert_true(l->n + n < sizeof l->at);
    memcpy(l->at + l->n, s, n + 1);
    l->n += n;
}

static void write_set(struct line *l, nodeset set)
{
    char number[8];
    write_text(l, "{");
    for (bool first = true; set != 0; first = false, set &= set - 1) {
        (void)snprintf(number, sizeof number, "%s%u", first ? "" : ",",
                       (unsigned)nodeset_first(set));
        write_text(l, number);
    }
    write_text(l, "}");
}

static void write_name(struct line *l, const char *name, nodeset to)
{
    write_text(l, l->n > 0 ? " " : "");
    write_text(l, name);
    if (to != 0) {
        write_set(l, to);
    }
}

/* ---- The coordinator ---- */

struct coordinator {
    struct lotus_txn t;
    struct lotus_effects fx;
};

static void says(struct coordinator *c, enum lotus_state state, const char *expected)
{
    struct line l = {.n = 0};
    for (uint32_t i = 0; i < c->fx.n; i++) {
        const struct lotus_effect *e = &c->fx.e[i];
        write_name(&l, fx_names[e->kind], e->to);
        if (e->kind == LOTUS_FX_FAIL) {
            write_name(&l, hk_err_name(e->err), 0);
        }
    }
    assert_string_equal(l.at, expected);
    assert_string_equal(lotus_state_names[c->t.state], lotus_state_names[state]);
    lotus_txn_check(&c->t);
    c->fx.n = 0;
}

static void answered(struct coordinator *c, enum lotus_state phase, uint8_t from,
                     enum lotus_word word)
{
    lotus_answered(&c->t, &plain, phase, from, word, &c->fx);
}

/* EXECUTE went to nodes 1 and 2, ... */
static void ask(struct coordinator *c)
{
    *c = (struct coordinator){.fx = {.n = 0}};
    lotus_ask(&c->t, 0x6, &c->fx);
    c->fx.n = 0;
}

/* ... both have executed, PREPARE went to both, node 2 writes, ... */
static void prepare(struct coordinator *c)
{
    ask(c);
    answered(c, LOTUS_EXECUTE, 1, LOTUS_OK);
    answered(c, LOTUS_EXECUTE, 2, LOTUS_OK);
    c->fx.n = 0;
    lotus_evaluated(&c->t, &plain, 0x4, &c->fx);
    says(c, LOTUS_PREPARE, "PREPARE{1,2}");
}

/* ... and both are prepared. */
static void decide(struct coordinator *c)
{
    prepare(c);
    answered(c, LOTUS_PREPARE, 1, LOTUS_OK);
    says(c, LOTUS_PREPARE, "");
    answered(c, LOTUS_PREPARE, 2, LOTUS_OK);
    says(c, LOTUS_COMMIT, "ANSWER COMMIT{1,2}");
}

static void whole(struct coordinator *c, bool writes)
{
    *c = (struct coordinator){.fx = {.n = 0}};
    lotus_whole(&c->t, 3, writes, &c->fx);
    says(c, LOTUS_WHOLE, "WHOLE{3}");
}

static void test_begin_one_server_has_all(void **state)
{
    (void)state;
    struct coordinator c;
    whole(&c, true);
    answered(&c, LOTUS_EXECUTE, 3, LOTUS_OK);
    answered(&c, LOTUS_WHOLE, 2, LOTUS_OK);
    says(&c, LOTUS_WHOLE, "");
    answered(&c, LOTUS_WHOLE, 3, LOTUS_OK);
    says(&c, LOTUS_IDLE, "ANSWER END");
    answered(&c, LOTUS_WHOLE, 3, LOTUS_OK);
    says(&c, LOTUS_IDLE, "");
}

static void test_whole_is_refused(void **state)
{
    (void)state;
    struct coordinator c;
    whole(&c, true);
    answered(&c, LOTUS_WHOLE, 3, LOTUS_MOVED);
    says(&c, LOTUS_IDLE, "AGAIN");
    assert_int_equal(c.t.word, LOTUS_MOVED);
}

static void test_begin_several(void **state)
{
    (void)state;
    struct coordinator c = {.fx = {.n = 0}};
    lotus_ask(&c.t, 0x6, &c.fx);
    says(&c, LOTUS_EXECUTE, "EXECUTE{1,2}");
}

static void test_executed(void **state)
{
    (void)state;
    struct coordinator c;
    ask(&c);
    answered(&c, LOTUS_EXECUTE, 1, LOTUS_OK);
    says(&c, LOTUS_EXECUTE, "");
    answered(&c, LOTUS_EXECUTE, 1, LOTUS_REFUSED); /* twice */
    says(&c, LOTUS_EXECUTE, "");
    answered(&c, LOTUS_EXECUTE, 2, LOTUS_OK);
    says(&c, LOTUS_EXECUTE, "NEXT");
    lotus_ask(&c.t, 0x9, &c.fx);
    says(&c, LOTUS_EXECUTE, "EXECUTE{0,3}");
    answered(&c, LOTUS_EXECUTE, 0, LOTUS_OK);
    answered(&c, LOTUS_EXECUTE, 3, LOTUS_OK);
    says(&c, LOTUS_EXECUTE, "NEXT");
    lotus_evaluated(&c.t, &plain, 0, &c.fx);
    says(&c, LOTUS_PREPARE, "PREPARE{0,1,2,3}");
}

static void test_executed_one_refused(void **state)
{
    (void)state;
    struct coordinator c;
    ask(&c);
    answered(&c, LOTUS_EXECUTE, 1, LOTUS_REFUSED);
    says(&c, LOTUS_EXECUTE, "");
    answered(&c, LOTUS_EXECUTE, 2, LOTUS_OK);
    says(&c, LOTUS_IDLE, "ABORT{2} AGAIN");
    assert_int_equal(c.t.word, LOTUS_REFUSED);

    ask(&c);
    answered(&c, LOTUS_EXECUTE, 1, LOTUS_OK);
    answered(&c, LOTUS_EXECUTE, 2, LOTUS_MOVED);
    says(&c, LOTUS_IDLE, "ABORT{1} AGAIN");

    ask(&c);
    answered(&c, LOTUS_EXECUTE, 1, LOTUS_BUSY);
    answered(&c, LOTUS_EXECUTE, 2, LOTUS_REFUSED);
    says(&c, LOTUS_IDLE, "AGAIN");
    assert_int_equal(c.t.word, LOTUS_BUSY);
}

/* C3: a server of an earlier round is told as well. */
static void test_abort_goes_to_earlier_rounds(void **state)
{
    (void)state;
    struct coordinator c;
    ask(&c);
    answered(&c, LOTUS_EXECUTE, 1, LOTUS_OK);
    answered(&c, LOTUS_EXECUTE, 2, LOTUS_OK);
    lotus_ask(&c.t, 0x8, &c.fx);
    c.fx.n = 0;
    answered(&c, LOTUS_EXECUTE, 3, LOTUS_REFUSED);
    says(&c, LOTUS_IDLE, "ABORT{1,2} AGAIN");
}

static void test_too_big_and_no_memory_fail(void **state)
{
    (void)state;
    struct coordinator c;
    whole(&c, true);
    answered(&c, LOTUS_WHOLE, 3, LOTUS_TOOBIG);
    says(&c, LOTUS_IDLE, "FAIL HK_ERR_TOOBIG");
    ask(&c);
    answered(&c, LOTUS_EXECUTE, 2, LOTUS_OK);
    answered(&c, LOTUS_EXECUTE, 1, LOTUS_NOMEM);
    says(&c, LOTUS_IDLE, "ABORT{2} FAIL HK_ERR_NOMEM");
}

static void test_prepared_one_refused(void **state)
{
    (void)state;
    struct coordinator c;
    prepare(&c);
    answered(&c, LOTUS_PREPARE, 2, LOTUS_REFUSED);
    says(&c, LOTUS_PREPARE, "");
    answered(&c, LOTUS_PREPARE, 1, LOTUS_OK);
    says(&c, LOTUS_IDLE, "ABORT{1} AGAIN");
}

static void test_evaluated_one_server_in_the_try(void **state)
{
    (void)state;
    struct coordinator c = {.fx = {.n = 0}};
    lotus_ask(&c.t, 0x2, &c.fx);
    answered(&c, LOTUS_EXECUTE, 1, LOTUS_OK);
    says(&c, LOTUS_EXECUTE, "EXECUTE{1} NEXT");
    lotus_evaluated(&c.t, &plain, 0x2, &c.fx);
    says(&c, LOTUS_WHOLE, "FINISH{1}");
    answered(&c, LOTUS_WHOLE, 1, LOTUS_OK);
    says(&c, LOTUS_IDLE, "ANSWER END");
}

/* C1: node 1 is only read at. */
static void test_evaluated_several(void **state)
{
    (void)state;
    struct coordinator c;
    prepare(&c);
}

static void test_prepared_last_all_well(void **state)
{
    (void)state;
    struct coordinator c;
    decide(&c);
}

static void test_committed(void **state)
{
    (void)state;
    struct coordinator c;
    decide(&c);
    answered(&c, LOTUS_COMMIT, 2, LOTUS_OK);
    says(&c, LOTUS_COMMIT, "");
    answered(&c, LOTUS_COMMIT, 1, LOTUS_OK);
    says(&c, LOTUS_IDLE, "END");
}

static void test_gone_whole(void **state)
{
    (void)state;
    struct coordinator c;
    whole(&c, true);
    lotus_gone(&c.t, &plain, 0x7, &c.fx);
    says(&c, LOTUS_WHOLE, "");
    lotus_gone(&c.t, &plain, 0x8, &c.fx);
    says(&c, LOTUS_IDLE, "FAIL HK_ERR_UNKNOWN");
    whole(&c, false);
    lotus_gone(&c.t, &plain, 0x8, &c.fx);
    says(&c, LOTUS_IDLE, "FAIL HK_ERR_LOSTSLOT");
}

static void test_gone_execute(void **state)
{
    (void)state;
    struct coordinator c;
    ask(&c);
    lotus_gone(&c.t, &plain, 0x4, &c.fx);
    says(&c, LOTUS_IDLE, "ABORT{1} FAIL HK_ERR_LOSTSLOT");
}

static void test_gone_prepare(void **state)
{
    (void)state;
    struct coordinator c;
    prepare(&c);
    lotus_gone(&c.t, &plain, 0x4, &c.fx); /* the one that writes: nobody else can commit */
    says(&c, LOTUS_IDLE, "ABORT{1} FAIL HK_ERR_LOSTSLOT");
    prepare(&c);
    lotus_gone(&c.t, &plain, 0x2, &c.fx);
    says(&c, LOTUS_IDLE, "ABORT{2} FAIL HK_ERR_UNKNOWN"); /* C6 */
}

static void test_gone_commit(void **state)
{
    (void)state;
    struct coordinator c;
    decide(&c);
    lotus_gone(&c.t, &plain, 0x2, &c.fx);
    says(&c, LOTUS_COMMIT, "");
    answered(&c, LOTUS_COMMIT, 2, LOTUS_OK);
    says(&c, LOTUS_IDLE, "END");
    decide(&c);
    lotus_gone(&c.t, &plain, 0x6, &c.fx);
    says(&c, LOTUS_IDLE, "END");
}

/* C6: until the server that was to write has been heard of, in whatever state. */
static void test_unsure_until_heard(void **state)
{
    (void)state;
    struct coordinator c;
    prepare(&c);
    answered(&c, LOTUS_PREPARE, 1, LOTUS_REFUSED);
    answered(&c, LOTUS_PREPARE, 2, LOTUS_OK);
    says(&c, LOTUS_IDLE, "ABORT{2} AGAIN");
    assert_int_equal(lotus_error(&c.t, &plain, HK_ERR_BUSY), HK_ERR_UNKNOWN);
    struct coordinator gone = c;
    lotus_gone(&gone.t, &plain, 0x4, &gone.fx);
    says(&gone, LOTUS_IDLE, "");
    assert_int_equal(lotus_error(&gone.t, &plain, HK_ERR_BUSY), HK_ERR_BUSY);
    lotus_ask(&c.t, 0x6, &c.fx);
    answered(&c, LOTUS_EXECUTE, 1, LOTUS_OK);
    assert_int_equal(lotus_error(&c.t, &plain, HK_ERR_BUSY), HK_ERR_UNKNOWN);
    answered(&c, LOTUS_EXECUTE, 2, LOTUS_REFUSED);
    says(&c, LOTUS_IDLE, "EXECUTE{1,2} ABORT{1} AGAIN");
    assert_int_equal(lotus_error(&c.t, &plain, HK_ERR_BUSY), HK_ERR_BUSY);
}

static void test_give_up(void **state)
{
    (void)state;
    struct coordinator c;
    ask(&c);
    answered(&c, LOTUS_EXECUTE, 1, LOTUS_OK);
    answered(&c, LOTUS_EXECUTE, 2, LOTUS_OK);
    lotus_give_up(&c.t, &plain, HK_ERR_NOMEM, &c.fx);
    says(&c, LOTUS_IDLE, "NEXT ABORT{1,2} FAIL HK_ERR_NOMEM");
}

static void test_cancelled(void **state)
{
    (void)state;
    struct coordinator c;
    ask(&c);
    assert_true(lotus_cancel(&c.t, &c.fx));
    says(&c, LOTUS_IDLE, "ABORT{1,2}");
    assert_true(lotus_cancel(&c.t, &c.fx));
    says(&c, LOTUS_IDLE, "");

    whole(&c, true);
    assert_false(lotus_cancel(&c.t, &c.fx));
    answered(&c, LOTUS_WHOLE, 3, LOTUS_OK);
    says(&c, LOTUS_IDLE, "END");
    whole(&c, true);
    assert_false(lotus_cancel(&c.t, &c.fx));
    answered(&c, LOTUS_WHOLE, 3, LOTUS_REFUSED);
    says(&c, LOTUS_IDLE, "END");

    prepare(&c);
    assert_false(lotus_cancel(&c.t, &c.fx));
    answered(&c, LOTUS_PREPARE, 1, LOTUS_OK);
    answered(&c, LOTUS_PREPARE, 2, LOTUS_OK);
    says(&c, LOTUS_COMMIT, "COMMIT{1,2}");
    answered(&c, LOTUS_COMMIT, 1, LOTUS_OK);
    answered(&c, LOTUS_COMMIT, 2, LOTUS_OK);
    says(&c, LOTUS_IDLE, "END");

    prepare(&c);
    assert_false(lotus_cancel(&c.t, &c.fx));
    lotus_gone(&c.t, &plain, 0x2, &c.fx);
    says(&c, LOTUS_IDLE, "ABORT{2} END");

    decide(&c);
    assert_false(lotus_cancel(&c.t, &c.fx));
    lotus_gone(&c.t, &plain, 0x6, &c.fx);
    says(&c, LOTUS_IDLE, "END");
}

/* ---- A try at a memory server: node 1, of participants 1, 2 and 3 ---- */

#define SELF 1u
#define NUMBER 5u

struct participant {
    struct lotus_part p;
    struct part_effects fx;
};

static void does(struct participant *m, enum part_state state, const char *expected)
{
    static const char *const words[] = {"ok", "refused"};
    static const char *const told[] = {"no", "prepared", "committed"};
    static const char *const resolved[] = {"resolved", "answer"};
    struct line l = {.n = 0};
    for (uint32_t i = 0; i < m->fx.n; i++) {
        const struct part_effect *e = &m->fx.e[i];
        write_name(&l, part_fx_names[e->kind], e->to);
        if (e->kind == PART_FX_ANSWER || e->kind == PART_FX_TOLD || e->kind == PART_FX_RESOLVED) {
            write_text(&l, ":");
            write_text(&l, (e->kind == PART_FX_ANSWER ? words
                            : e->kind == PART_FX_TOLD ? told
                                                      : resolved)[e->code]);
        }
    }
    assert_string_equal(l.at, expected);
    assert_string_equal(part_state_names[m->p.state], part_state_names[state]);
    part_check(&m->p);
    m->fx.n = 0;
}

static void to_free(struct participant *m)
{
    *m = (struct participant){.fx = {.n = 0}};
}

static void to_running(struct participant *m)
{
    to_free(m);
    part_begin(&m->p);
}

static void to_prepared(struct participant *m)
{
    to_running(m);
    part_prepare(&m->p, true, NUMBER, 0xe, SELF, &m->fx);
    m->fx.n = 0;
}

static void to_doubt(struct participant *m)
{
    to_prepared(m);
    part_adopt(&m->p, &plain, true, 0, &m->fx);
    m->fx.n = 0;
}

static void to_committed(struct participant *m)
{
    to_prepared(m);
    part_commit(&m->p, &m->fx);
    m->fx.n = 0;
}

static void test_execute(void **state)
{
    (void)state;
    struct participant m;
    to_running(&m);
    does(&m, PART_RUNNING, "");
}

static void test_whole_and_finish(void **state)
{
    (void)state;
    struct participant m;
    to_running(&m);
    part_finish(&m.p, true, &m.fx);
    does(&m, PART_FREE, "INSTALL RELEASE ANSWER:ok FREE");
    to_running(&m);
    part_finish(&m.p, false, &m.fx);
    does(&m, PART_FREE, "RELEASE ANSWER:refused FREE");
}

static void test_prepare(void **state)
{
    (void)state;
    struct participant m;
    to_free(&m);
    part_prepare(&m.p, false, NUMBER, 0xe, SELF, &m.fx);
    does(&m, PART_FREE, "ANSWER:refused");
    to_running(&m);
    part_prepare(&m.p, false, NUMBER, 0xe, SELF, &m.fx);
    does(&m, PART_FREE, "RELEASE ANSWER:refused FREE");
    to_running(&m);
    part_prepare(&m.p, true, NUMBER, 0xe, SELF, &m.fx);
    does(&m, PART_PREPARED, "ANSWER:ok");
    assert_int_equal(m.p.number, NUMBER);
    assert_int_equal(m.p.others, 0xc);
    part_prepare(&m.p, false, NUMBER, 0xe, SELF, &m.fx);
    does(&m, PART_PREPARED, "ANSWER:ok");
    to_doubt(&m);
    part_prepare(&m.p, false, NUMBER, 0xe, SELF, &m.fx);
    does(&m, PART_DOUBT, "");
    to_committed(&m);
    part_prepare(&m.p, false, NUMBER, 0xe, SELF, &m.fx);
    does(&m, PART_COMMITTED, "ANSWER:ok");
}

static void test_commit(void **state)
{
    (void)state;
    struct participant m;
    to_free(&m);
    part_commit(&m.p, &m.fx);
    does(&m, PART_FREE, "ANSWER:ok");
    to_running(&m);
    part_commit(&m.p, &m.fx);
    does(&m, PART_RUNNING, "");
    to_prepared(&m);
    part_commit(&m.p, &m.fx);
    does(&m, PART_COMMITTED, "INSTALL RELEASE ANSWER:ok");
    part_commit(&m.p, &m.fx);
    does(&m, PART_COMMITTED, "ANSWER:ok");
    to_doubt(&m);
    part_commit(&m.p, &m.fx);
    does(&m, PART_DOUBT, "");
}

static void test_abort(void **state)
{
    (void)state;
    struct participant m;
    to_free(&m);
    part_abort(&m.p, &m.fx);
    does(&m, PART_FREE, "");
    to_running(&m);
    part_abort(&m.p, &m.fx);
    does(&m, PART_FREE, "RELEASE FREE");
    to_prepared(&m);
    part_abort(&m.p, &m.fx);
    does(&m, PART_FREE, "RELEASE FREE");
    to_doubt(&m);
    part_abort(&m.p, &m.fx);
    does(&m, PART_DOUBT, "");
    to_committed(&m);
    part_abort(&m.p, &m.fx);
    does(&m, PART_COMMITTED, "");
}

static void test_coordinator_left(void **state)
{
    (void)state;
    struct participant m;
    to_free(&m);
    part_adopt(&m.p, &plain, true, 0, &m.fx);
    does(&m, PART_FREE, "");
    to_running(&m);
    part_adopt(&m.p, &plain, true, 0, &m.fx);
    does(&m, PART_FREE, "RELEASE FREE");
    to_prepared(&m);
    part_adopt(&m.p, &plain, true, 0, &m.fx);
    does(&m, PART_DOUBT, "ASK{2,3}");
    to_prepared(&m);
    part_adopt(&m.p, &plain, true, 0xc, &m.fx);
    does(&m, PART_FREE, "INSTALL RELEASE FREE");
    to_committed(&m);
    part_adopt(&m.p, &plain, true, 0, &m.fx);
    does(&m, PART_COMMITTED, "RESOLVED{2,3}:resolved");
    to_committed(&m);
    part_adopt(&m.p, &plain, true, 0xc, &m.fx);
    does(&m, PART_FREE, "FREE");
}

/* What was said in the view before counts no more: who has said "prepared" is asked again. */
static void test_coordinator_left_and_another_view(void **state)
{
    (void)state;
    struct participant m;
    to_doubt(&m);
    part_told(&m.p, 2, LOTUS_TOLD_PREPARED, &m.fx);
    part_adopt(&m.p, &plain, true, 0, &m.fx);
    does(&m, PART_DOUBT, "ASK{2,3}");
    part_adopt(&m.p, &plain, true, 0x4, &m.fx);
    does(&m, PART_DOUBT, "ASK{3}");
    part_adopt(&m.p, &plain, true, 0x8, &m.fx);
    does(&m, PART_FREE, "INSTALL RELEASE FREE");
    to_committed(&m);
    part_adopt(&m.p, &plain, true, 0, &m.fx);
    part_resolved(&m.p, 2, true, &m.fx);
    m.fx.n = 0;
    part_adopt(&m.p, &plain, true, 0, &m.fx);
    does(&m, PART_COMMITTED, "RESOLVED{3}:resolved");
}

static void test_participant_left(void **state)
{
    (void)state;
    struct participant m;
    to_prepared(&m);
    part_adopt(&m.p, &plain, false, 0x4, &m.fx);
    does(&m, PART_PREPARED, "");
    part_adopt(&m.p, &plain, true, 0x4, &m.fx);
    does(&m, PART_DOUBT, "ASK{3}");
    to_committed(&m);
    part_adopt(&m.p, &plain, false, 0x8, &m.fx);
    part_adopt(&m.p, &plain, true, 0x8, &m.fx);
    does(&m, PART_COMMITTED, "RESOLVED{2}:resolved");
}

static void test_ask(void **state)
{
    (void)state;
    struct participant m;
    to_free(&m);
    part_asked(&m.p, &m.fx);
    does(&m, PART_FREE, "TOLD:no");
    to_running(&m);
    part_asked(&m.p, &m.fx);
    does(&m, PART_RUNNING, "TOLD:no");
    to_prepared(&m);
    part_asked(&m.p, &m.fx);
    does(&m, PART_PREPARED, "TOLD:prepared");
    to_doubt(&m);
    part_asked(&m.p, &m.fx);
    does(&m, PART_DOUBT, "TOLD:prepared");
    to_committed(&m);
    part_asked(&m.p, &m.fx);
    does(&m, PART_COMMITTED, "TOLD:committed");
}

static void test_told_no(void **state)
{
    (void)state;
    struct participant m;
    to_doubt(&m);
    part_told(&m.p, 3, LOTUS_TOLD_NO, &m.fx);
    does(&m, PART_FREE, "RELEASE FREE");
    to_prepared(&m);
    part_told(&m.p, 3, LOTUS_TOLD_NO, &m.fx);
    does(&m, PART_PREPARED, "");
}

static void test_told_committed(void **state)
{
    (void)state;
    struct participant m;
    to_doubt(&m);
    part_told(&m.p, 3, LOTUS_TOLD_COMMITTED, &m.fx);
    does(&m, PART_COMMITTED, "INSTALL RELEASE RESOLVED{2}:resolved");
    to_prepared(&m);
    part_adopt(&m.p, &plain, true, 0x4, &m.fx);
    m.fx.n = 0;
    part_told(&m.p, 3, LOTUS_TOLD_COMMITTED, &m.fx);
    does(&m, PART_FREE, "INSTALL RELEASE FREE");
}

static void test_told_prepared(void **state)
{
    (void)state;
    struct participant m;
    to_doubt(&m);
    part_told(&m.p, 3, LOTUS_TOLD_PREPARED, &m.fx);
    part_told(&m.p, 3, LOTUS_TOLD_PREPARED, &m.fx);
    part_told(&m.p, 3, LOTUS_TOLD_NO, &m.fx); /* it has answered */
    does(&m, PART_DOUBT, "");
    part_told(&m.p, 2, LOTUS_TOLD_PREPARED, &m.fx);
    does(&m, PART_COMMITTED, "INSTALL RELEASE RESOLVED{2,3}:resolved");
}

static void test_resolved(void **state)
{
    (void)state;
    struct participant m;
    to_free(&m);
    part_resolved(&m.p, 2, false, &m.fx);
    does(&m, PART_FREE, "RESOLVED{2}:answer");
    part_resolved(&m.p, 2, true, &m.fx);
    does(&m, PART_FREE, "");
    to_doubt(&m);
    part_resolved(&m.p, 2, false, &m.fx);
    does(&m, PART_COMMITTED, "RESOLVED{2}:answer INSTALL RELEASE RESOLVED{3}:resolved");
    part_resolved(&m.p, 3, false, &m.fx);
    does(&m, PART_FREE, "RESOLVED{3}:answer FREE");
    to_committed(&m);
    part_adopt(&m.p, &plain, true, 0, &m.fx);
    m.fx.n = 0;
    part_resolved(&m.p, 3, true, &m.fx);
    does(&m, PART_COMMITTED, "");
    part_resolved(&m.p, 2, true, &m.fx);
    does(&m, PART_FREE, "FREE");
    /* Too early, which no correct member says: it is believed, and ends with the next view. */
    to_prepared(&m);
    part_resolved(&m.p, 2, true, &m.fx);
    does(&m, PART_COMMITTED, "INSTALL RELEASE RESOLVED{3}:resolved");
    part_adopt(&m.p, &plain, false, 0x8, &m.fx);
    does(&m, PART_FREE, "FREE");
}

/* P2: not before the coordinator knows that all know. */
static void test_done(void **state)
{
    (void)state;
    struct participant m;
    to_committed(&m);
    part_done(&m.p, &plain, NUMBER, &m.fx);
    does(&m, PART_COMMITTED, "");
    part_done(&m.p, &plain, NUMBER + 1, &m.fx);
    does(&m, PART_FREE, "FREE");
    to_prepared(&m);
    part_done(&m.p, &plain, NUMBER + 1, &m.fx);
    does(&m, PART_PREPARED, "");
}

static void test_lease_over(void **state)
{
    (void)state;
    struct participant m;
    to_running(&m);
    part_drop(&m.p, &m.fx);
    does(&m, PART_FREE, "RELEASE FREE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begin_one_server_has_all),
        cmocka_unit_test(test_whole_is_refused),
        cmocka_unit_test(test_begin_several),
        cmocka_unit_test(test_executed),
        cmocka_unit_test(test_executed_one_refused),
        cmocka_unit_test(test_abort_goes_to_earlier_rounds),
        cmocka_unit_test(test_too_big_and_no_memory_fail),
        cmocka_unit_test(test_prepared_one_refused),
        cmocka_unit_test(test_evaluated_one_server_in_the_try),
        cmocka_unit_test(test_evaluated_several),
        cmocka_unit_test(test_prepared_last_all_well),
        cmocka_unit_test(test_committed),
        cmocka_unit_test(test_gone_whole),
        cmocka_unit_test(test_gone_execute),
        cmocka_unit_test(test_gone_prepare),
        cmocka_unit_test(test_gone_commit),
        cmocka_unit_test(test_unsure_until_heard),
        cmocka_unit_test(test_give_up),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_execute),
        cmocka_unit_test(test_whole_and_finish),
        cmocka_unit_test(test_prepare),
        cmocka_unit_test(test_commit),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_coordinator_left),
        cmocka_unit_test(test_coordinator_left_and_another_view),
        cmocka_unit_test(test_participant_left),
        cmocka_unit_test(test_ask),
        cmocka_unit_test(test_told_no),
        cmocka_unit_test(test_told_committed),
        cmocka_unit_test(test_told_prepared),
        cmocka_unit_test(test_resolved),
        cmocka_unit_test(test_done),
        cmocka_unit_test(test_lease_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
