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

static uint32_t put_all(uint8_t *bytes, const struct occ_object *objects, uint32_t n)
{
    uint8_t *at = bytes;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *end = occ_object_put(at, &objects[i]);
        assert_int_equal(end - at, occ_object_bytes(&objects[i]));
        at = end;
    }
    return (uint32_t)(at - bytes);
}

static void objects_in_messages(void **state)
{
    (void)state;
    static uint8_t bytes[3 * 16 + MSG_KEY_MAX + 64];
    static uint8_t large[MSG_KEY_MAX];
    memset(large, 'k', sizeof large);
    struct occ_object objects[] = {
        {.key = bytes_of("ab", 2), .flags = OCC_ABSENT, .version = 7},
        {.key = bytes_of("", 0), .value = bytes_of("value", 5), .version = 9},
        {.key = bytes_of(large, sizeof large), .value = bytes_of("v", 1), .version = 1},
    };
    uint32_t n = put_all(bytes, objects, 3);
    struct bytes rest = bytes_of(bytes, n);
    for (uint32_t i = 0; i < 3; i++) {
        struct occ_object o;
        assert_true(occ_object_take(&rest, &o));
        assert_true(bytes_equal(o.key, objects[i].key) && bytes_equal(o.value, objects[i].value));
        assert_int_equal(o.version, objects[i].version);
        assert_int_equal(o.flags, objects[i].flags);
    }
    assert_false(occ_object_take(&rest, &objects[0]));
    struct msg m = {.kind = OCC_MSG_REPLICATE, .value = bytes_of(bytes, n)};
    assert_null(occ_msg_invalid(&m));
    for (uint32_t cut = 1; cut < n; cut++) {
        bool whole = cut == 18 || cut == 18 + 21;
        m.value.n = cut;
        assert_int_equal(occ_msg_invalid(&m) == NULL, whole);
    }
    m.value.n = 0;
    assert_non_null(occ_msg_invalid(&m));
    m.value.n = n;
    bytes[18 + 21 + 8] = 1; /* the length of the last one's key: one more than there may be */
    assert_non_null(occ_msg_invalid(&m));
}

/* Whether a message of that kind with that one object is valid. */
static bool takes(enum occ_kind kind, struct occ_object o)
{
    uint8_t bytes[64];
    uint32_t n = put_all(bytes, &o, 1);
    bool named = kind == OCC_MSG_EXECUTE || kind == OCC_MSG_COMMIT || kind == OCC_MSG_UNLOCK;
    struct msg m = {.kind = (uint8_t)kind,
                    .ts = kind == OCC_MSG_EXECUTED,
                    .arg = named ? 5 : 0,
                    .value = bytes_of(bytes, n)};
    bool valid = occ_msg_invalid(&m) == NULL;
    if (named) {
        m.arg = 0;
        assert_non_null(occ_msg_invalid(&m)); /* nobody locks */
        m.arg = UINT64_C(1) << 32;
        assert_non_null(occ_msg_invalid(&m));
    }
    return valid;
}

static void what_a_message_may_say_of_an_object(void **state)
{
    (void)state;
    const struct bytes key = bytes_of("k", 1), value = bytes_of("12345678", 8), none = {NULL, 0};
    const uint64_t last = OCC_VERSION_MAX << STAMP_CID_BITS;
    const struct occ_object asked = {.key = key}, locked = {.key = key, .flags = OCC_LOCK};
    const struct occ_object seen = {.key = key, .version = 7};
    const struct occ_object set = {key, value, last, KEY_DEADLINE};
    const struct occ_object gone = {key, none, 7, OCC_ABSENT};
    const struct occ_object found = {none, value, 7, KEY_DEADLINE}, missed = {.flags = OCC_ABSENT};
    assert_true(takes(OCC_MSG_EXECUTE, asked) && takes(OCC_MSG_EXECUTE, locked));
    assert_true(takes(OCC_MSG_VALIDATE, asked) && takes(OCC_MSG_VALIDATE, seen));
    assert_true(takes(OCC_MSG_UNLOCK, asked));
    assert_true(takes(OCC_MSG_EXECUTED, found) && takes(OCC_MSG_EXECUTED, missed));
    assert_true(takes(OCC_MSG_REPLICATE, set) && takes(OCC_MSG_REPLICATE, gone));
    assert_true(takes(OCC_MSG_COMMIT, set) && takes(OCC_MSG_COMMIT, locked));
    assert_false(takes(OCC_MSG_EXECUTE, seen) || takes(OCC_MSG_EXECUTE, gone));
    assert_false(takes(OCC_MSG_EXECUTED, set) || takes(OCC_MSG_EXECUTED, locked));
    assert_false(takes(OCC_MSG_VALIDATE, locked) || takes(OCC_MSG_VALIDATE, set));
    assert_false(takes(OCC_MSG_UNLOCK, locked) || takes(OCC_MSG_UNLOCK, seen));
    assert_false(takes(OCC_MSG_REPLICATE, asked)); /* without a version: it would be no update */
    assert_false(takes(OCC_MSG_REPLICATE, locked));
    const struct occ_object wrong[] = {
        {key, value, last + (1 << STAMP_CID_BITS), 0}, /* nobody could go on from there */
        {key, bytes_of("1234567", 7), 7, KEY_DEADLINE},
        {key, value, 7, OCC_ABSENT},
        {key, none, 7, OCC_ABSENT | KEY_DEADLINE},
        {key, none, 7, KEY_TOMBSTONE}, /* here ABSENT says so */
        {key, value, 7, KEY_READABLE},
        {key, value, 7, OCC_LOCK},
        {key, none, 0, OCC_LOCK | OCC_ABSENT},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(takes(OCC_MSG_COMMIT, wrong[i]) || takes(OCC_MSG_REPLICATE, wrong[i]));
    }
}

static void answers(void **state)
{
    (void)state;
    struct msg m = {.kind = OCC_MSG_EXECUTED};
    assert_null(occ_msg_invalid(&m));
    m.ts = 1;
    assert_non_null(occ_msg_invalid(&m)); /* good, and no objects */
    m = (struct msg){.kind = OCC_MSG_EXECUTED, .value = bytes_of("0123456789abcdef", 16)};
    assert_non_null(occ_msg_invalid(&m)); /* refused, and objects */
    m = (struct msg){.kind = OCC_MSG_VALIDATED, .ts = 1};
    assert_null(occ_msg_invalid(&m));
    m.ts = 2;
    assert_non_null(occ_msg_invalid(&m));
    m = (struct msg){.kind = OCC_MSG_REPLICATED, .ts = 1};
    assert_null(occ_msg_invalid(&m));
    m.ts = 0; /* what is decided cannot be refused */
    assert_non_null(occ_msg_invalid(&m));
    m = (struct msg){.kind = OCC_MSG_END};
    assert_non_null(occ_msg_invalid(&m));
    m = (struct msg){.kind = OCC_MSG_VALIDATED, .key = bytes_of("k", 1)};
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
        cmocka_unit_test(objects_in_messages),
        cmocka_unit_test(what_a_message_may_say_of_an_object),
        cmocka_unit_test(answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
