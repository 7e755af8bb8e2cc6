/* The coordinator of the baseline, row by row of docs/protocols/occ.md's table; placement;
 * messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/meta.h"
#include "base/random.h"
#include "base/slot.h"
#include "engine/occ/occ.h"

#define SET(a, b, c) ((nodeset)(a) | (nodeset)(b) << 1 | (nodeset)(c) << 2)

static struct occ_effects none(void)
{
    return (struct occ_effects){.n = 0};
}

static void is(const struct occ_effects *fx, uint32_t i, enum occ_fx kind, nodeset to)
{
    assert_true(i < fx->n);
    assert_int_equal(fx->e[i].kind, kind);
    assert_int_equal(fx->e[i].to, to);
}

static void a_local_transaction(void **state)
{
    (void)state;
    struct occ_txn t = {0};
    struct occ_effects fx = none();
    occ_begin(&t, 0, 0, 0, &fx);
    assert_int_equal(fx.n, 1);
    is(&fx, 0, OCC_FX_EVALUATE, 0);
    /* It only reads: no message. */
    fx = none();
    struct occ_txn reads = t;
    occ_evaluated(&reads, true, false, 0, 0, &fx);
    assert_int_equal(fx.n, 2);
    is(&fx, 0, OCC_FX_UNLOCK, 0);
    is(&fx, 1, OCC_FX_DONE, 0);
    /* One replica: it commits at once. */
    fx = none();
    struct occ_txn single = t;
    occ_evaluated(&single, true, true, 0, 0, &fx);
    is(&fx, 0, OCC_FX_COMMIT, 0);
    is(&fx, 1, OCC_FX_UNLOCK, 0);
    is(&fx, 2, OCC_FX_DONE, 0);
    /* Backups first. */
    fx = none();
    occ_evaluated(&t, true, true, 0, SET(0, 1, 1), &fx);
    assert_int_equal(fx.n, 1);
    is(&fx, 0, OCC_FX_REPLICATE, SET(0, 1, 1));
    assert_int_equal(t.state, OCC_REPLICATE);
    fx = none();
    occ_answered(&t, OCC_REPLICATE, 1, true, &fx);
    occ_answered(&t, OCC_REPLICATE, 1, true, &fx); /* twice is once */
    occ_answered(&t, OCC_EXECUTE, 2, true, &fx);   /* nobody waits for this */
    assert_int_equal(fx.n, 0);
    occ_check(&t);
    occ_answered(&t, OCC_REPLICATE, 2, true, &fx);
    is(&fx, 0, OCC_FX_COMMIT, 0);
    is(&fx, 2, OCC_FX_DONE, 0);
    assert_int_equal(t.state, OCC_IDLE);
}

static void one_refuses(void **state)
{
    (void)state;
    struct occ_txn t = {0};
    struct occ_effects fx = none();
    occ_begin(&t, SET(0, 1, 1), SET(0, 1, 1), 0, &fx);
    is(&fx, 0, OCC_FX_EXECUTE, SET(0, 1, 1));
    fx = none();
    occ_answered(&t, OCC_EXECUTE, 1, false, &fx);
    assert_int_equal(fx.n, 0); /* the other may have locked: its answer comes first */
    occ_answered(&t, OCC_EXECUTE, 2, true, &fx);
    assert_int_equal(fx.n, 2);
    is(&fx, 0, OCC_FX_UNLOCK, SET(0, 0, 1));
    is(&fx, 1, OCC_FX_AGAIN, 0);
    assert_int_equal(t.state, OCC_IDLE);
    /* And once more. */
    fx = none();
    occ_begin(&t, SET(0, 1, 1), SET(0, 1, 1), 0, &fx);
    is(&fx, 0, OCC_FX_EXECUTE, SET(0, 1, 1));
}

static void reads_at_two_homes_are_validated(void **state)
{
    (void)state;
    struct occ_txn t = {0};
    struct occ_effects fx = none();
    occ_begin(&t, SET(0, 1, 1), SET(0, 1, 0), SET(0, 0, 1), &fx);
    fx = none();
    occ_answered(&t, OCC_EXECUTE, 2, true, &fx);
    occ_answered(&t, OCC_EXECUTE, 1, true, &fx);
    assert_int_equal(fx.n, 1);
    is(&fx, 0, OCC_FX_EVALUATE, 0);
    assert_int_equal(t.locked, SET(0, 1, 0));
    fx = none();
    occ_evaluated(&t, true, true, SET(0, 1, 0), SET(0, 0, 1), &fx);
    is(&fx, 0, OCC_FX_VALIDATE, SET(0, 0, 1));
    struct occ_txn refused = t;
    fx = none();
    occ_answered(&refused, OCC_VALIDATE, 2, false, &fx);
    is(&fx, 0, OCC_FX_UNLOCK, SET(0, 1, 0));
    is(&fx, 1, OCC_FX_AGAIN, 0);
    fx = none();
    occ_answered(&t, OCC_VALIDATE, 2, true, &fx);
    is(&fx, 0, OCC_FX_REPLICATE, SET(0, 0, 1));
    fx = none();
    occ_answered(&t, OCC_REPLICATE, 2, true, &fx);
    is(&fx, 0, OCC_FX_COMMIT, SET(0, 1, 0));
    is(&fx, 1, OCC_FX_UNLOCK, 0);
    is(&fx, 2, OCC_FX_DONE, 0);
}

static void reads_at_one_home_are_not(void **state)
{
    (void)state;
    struct occ_txn t = {0};
    struct occ_effects fx = none();
    occ_begin(&t, SET(0, 1, 0), 0, SET(0, 1, 0), &fx);
    fx = none();
    occ_answered(&t, OCC_EXECUTE, 1, true, &fx);
    is(&fx, 0, OCC_FX_EVALUATE, 0);
    /* But what was read here meanwhile is looked at again. */
    struct occ_txn changed = t;
    fx = none();
    occ_evaluated(&changed, false, false, 0, 0, &fx);
    is(&fx, 1, OCC_FX_AGAIN, 0);
    fx = none();
    occ_evaluated(&t, true, false, 0, 0, &fx);
    is(&fx, 1, OCC_FX_DONE, 0);
}

static void locked_but_not_written(void **state)
{
    (void)state;
    struct occ_txn t = {0};
    struct occ_effects fx = none();
    occ_begin(&t, SET(0, 1, 1), SET(0, 1, 1), 0, &fx);
    fx = none();
    occ_answered(&t, OCC_EXECUTE, 1, true, &fx);
    occ_answered(&t, OCC_EXECUTE, 2, true, &fx);
    fx = none();
    occ_evaluated(&t, true, true, SET(0, 1, 0), 0, &fx);
    is(&fx, 0, OCC_FX_COMMIT, SET(0, 1, 0));
    is(&fx, 1, OCC_FX_UNLOCK, SET(0, 0, 1));
}

/* Whatever the answers, and in whichever order: it ends, and what was locked is committed or let go
 * exactly once. */
static void every_lock_is_let_go(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, 1);
    for (uint32_t i = 0; i < 200000; i++) {
        nodeset homes = random_below(&r, 16) << 1, locks = homes & random_below(&r, 32);
        nodeset reads = (homes & ~locks) | (locks & random_below(&r, 32));
        nodeset locked = 0, freed = 0;
        struct occ_txn t = {0};
        struct occ_effects fx = none(), next;
        bool ended = false;
        occ_begin(&t, homes, locks, reads, &fx);
        while (!ended) {
            next = none();
            bool evaluate = false;
            for (uint32_t k = 0; k < fx.n; k++) {
                evaluate = evaluate || fx.e[k].kind == OCC_FX_EVALUATE;
                if (fx.e[k].kind == OCC_FX_COMMIT || fx.e[k].kind == OCC_FX_UNLOCK) {
                    assert_int_equal(freed & fx.e[k].to, 0);
                    freed |= fx.e[k].to;
                }
                ended = ended || fx.e[k].kind == OCC_FX_DONE || fx.e[k].kind == OCC_FX_AGAIN;
            }
            if (evaluate) {
                bool writes = random_below(&r, 4) != 0;
                nodeset written = writes ? t.locked & random_below(&r, 32) : 0;
                occ_evaluated(&t, random_below(&r, 8) != 0, writes, written,
                              writes ? random_below(&r, 16) << 1 : 0, &next);
            } else if (!ended) {
                uint8_t from = (uint8_t)random_below(&r, 5);
                bool good = t.state == OCC_REPLICATE || random_below(&r, 6) != 0;
                if (nodeset_has(t.waits, from) && t.state == OCC_EXECUTE && good) {
                    locked |= locks & nodeset_of(from);
                }
                occ_answered(&t, (enum occ_state)t.state, from, good, &next);
            }
            occ_check(&t);
            fx = next;
        }
        assert_int_equal(t.state, OCC_IDLE);
        assert_int_equal(freed, locked);
    }
}

static void placement(void **state)
{
    (void)state;
    nodeset nodes = SET(1, 0, 1) | (nodeset)1 << 5 | (nodeset)1 << 9;
    struct occ_config config = {.degree = 3};
    uint32_t homes[10] = {0};
    for (uint32_t slot = 0; slot < HASH_SLOTS; slot++) {
        uint8_t home = occ_home(nodes, (uint16_t)slot);
        assert_true(nodeset_has(nodes, home));
        homes[home]++;
        nodeset backups = occ_backups(nodes, home, &config);
        assert_int_equal(nodeset_count(backups), 2);
        assert_false(nodeset_has(backups, home));
        assert_true(nodeset_within(backups, nodes));
    }
    assert_int_equal(homes[0], HASH_SLOTS / 4);
    assert_int_equal(homes[9], HASH_SLOTS / 4);
    assert_int_equal(occ_backups(nodes, 9, &config), SET(1, 0, 1));
    config.degree = 1;
    assert_int_equal(occ_backups(nodes, 2, &config), 0);
    config.degree = 9;
    assert_int_equal(occ_backups(nodes, 2, &config), nodes & ~nodeset_of(2));
}

static void messages(void **state)
{
    (void)state;
    uint8_t bytes[256], *at = bytes;
    struct occ_object objects[] = {
        {.key = bytes_of("ab", 2), .version = 7, .flags = OCC_LOCK},
        {.key = bytes_of("", 0), .value = bytes_of("value", 5), .version = 9},
        {.key = bytes_of("c", 1), .flags = OCC_ABSENT},
    };
    for (uint32_t i = 0; i < 3; i++) {
        at = occ_object_put(at, &objects[i]);
        assert_int_equal(at - bytes, i == 0   ? occ_object_bytes(&objects[0])
                                     : i == 1 ? 18 + occ_object_bytes(&objects[1])
                                              : at - bytes);
    }
    uint32_t n = (uint32_t)(at - bytes);
    struct bytes rest = bytes_of(bytes, n);
    for (uint32_t i = 0; i < 3; i++) {
        struct occ_object o;
        assert_true(occ_object_take(&rest, &o));
        assert_true(bytes_equal(o.key, objects[i].key) && bytes_equal(o.value, objects[i].value));
        assert_int_equal(o.version, objects[i].version);
        assert_int_equal(o.flags, objects[i].flags);
    }
    assert_false(occ_object_take(&rest, &objects[0]));
    struct msg m = {.kind = OCC_MSG_EXECUTE, .arg = 5, .value = bytes_of(bytes, n)};
    assert_null(occ_msg_invalid(&m));
    for (uint32_t cut = 1; cut < n; cut++) {
        bool whole = cut == 18 || cut == 18 + 21;
        m.value.n = cut;
        assert_int_equal(occ_msg_invalid(&m) == NULL, whole);
    }
    m.value.n = 0;
    assert_non_null(occ_msg_invalid(&m));
    m.value.n = n;
    m.arg = 0;
    assert_non_null(occ_msg_invalid(&m)); /* nobody locks */
    m = (struct msg){.kind = OCC_MSG_EXECUTED, .ts = 1, .value = bytes_of(bytes, n)};
    assert_non_null(occ_msg_invalid(&m)); /* answers name no keys */
    m.value = bytes_of(bytes + 18, 21);
    assert_null(occ_msg_invalid(&m));
    m.ts = 0;
    assert_non_null(occ_msg_invalid(&m));
    m = (struct msg){.kind = OCC_MSG_VALIDATED, .ts = 2};
    assert_non_null(occ_msg_invalid(&m));
    m = (struct msg){.kind = OCC_MSG_REPLICATED};
    assert_null(occ_msg_invalid(&m));
    m.kind = OCC_MSG_END;
    assert_non_null(occ_msg_invalid(&m));
    bytes[10] |= KEY_DEADLINE; /* of a value without bytes */
    m = (struct msg){.kind = OCC_MSG_REPLICATE, .value = bytes_of(bytes, n)};
    assert_non_null(occ_msg_invalid(&m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_local_transaction),
        cmocka_unit_test(one_refuses),
        cmocka_unit_test(reads_at_two_homes_are_validated),
        cmocka_unit_test(reads_at_one_home_are_not),
        cmocka_unit_test(locked_but_not_written),
        cmocka_unit_test(every_lock_is_let_go),
        cmocka_unit_test(placement),
        cmocka_unit_test(messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
