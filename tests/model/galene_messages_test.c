/* Which messages of Galene a correct member never sends: each kind as it is sent, and spoilt in
 * every field that it does not use or must use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/galene/machine.h"

static struct msg good(enum galene_kind kind)
{
    uint64_t ts = stamp_make(7, 3);
    struct msg m = {.kind = (uint8_t)kind, .epoch = 2};
    bool key = galene_route(&m) == ROUTE_KEY;
    if (key) {
        m.key = bytes_of("k", 1);
    }
    if (kind != GALENE_UPD) {
        m.slot = slot_ref(1, 5);
        m.gen = 9;
    }
    if (key && kind != GALENE_ITEM) {
        m.arg = 4;
    }
    if (kind == GALENE_INV || kind == GALENE_UPD || kind == GALENE_ENTER || kind == GALENE_ITEM ||
        kind == GALENE_QUERY || kind == GALENE_REPORT) {
        m.ts = ts;
    }
    if (kind == GALENE_UPD || kind == GALENE_ITEM) {
        m.value = bytes_of("value of some length", 20);
    }
    return m;
}

static void test_every_kind_is_valid_as_it_is_sent(void **state)
{
    (void)state;
    for (uint32_t k = GALENE_INV; k < GALENE_KEY_END; k++) {
        struct msg m = good((enum galene_kind)k);
        assert_null(galene_msg_invalid(&m));
    }
}

static void test_flags(void **state)
{
    (void)state;
    static const struct {
        uint8_t kind, flags;
    } known[] = {{GALENE_INV, GALENE_F_RMW},
                 {GALENE_ACK, GALENE_F_HIGHER},
                 {GALENE_NOPE, GALENE_F_HIGHER},
                 {GALENE_NOPE, GALENE_F_ABSENT},
                 {GALENE_ITEM, GALENE_F_LOST}};
    for (uint32_t k = GALENE_INV; k < GALENE_KEY_END; k++) {
        for (uint32_t bit = 0; bit < 8; bit++) {
            struct msg m = good((enum galene_kind)k);
            m.flags = (uint8_t)(1u << bit);
            bool may = false;
            for (uint32_t i = 0; i < sizeof known / sizeof known[0]; i++) {
                may = may || (known[i].kind == k && known[i].flags == m.flags);
            }
            if (may && m.flags == GALENE_F_LOST) {
                assert_non_null(galene_msg_invalid(&m)); /* what is lost has no value */
                m.value = bytes_of(NULL, 0);
            } else if (may && m.flags == GALENE_F_HIGHER) {
                assert_non_null(galene_msg_invalid(&m)); /* higher than nothing */
                m.ts = stamp_make(9, 1);
            }
            assert_int_equal(galene_msg_invalid(&m) == NULL, may);
        }
    }
}

static void refused(struct msg m)
{
    assert_non_null(galene_msg_invalid(&m));
}

static void test_spoilt_fields(void **state)
{
    (void)state;
    for (uint32_t k = GALENE_INV; k < GALENE_KEY_END; k++) {
        struct msg m = good((enum galene_kind)k);
        struct msg bad = m;
        bad.epoch = 0;
        refused(bad);
        bad = m;
        bad.slot = m.slot == 0 ? 1 : 0;
        refused(bad);
        bad = m;
        bad.gen = m.gen == 0 ? 1 : 0;
        refused(bad);
        bad = m;
        bad.arg = m.arg == 0 ? 1 : 0;
        refused(bad);
        bad.arg = UINT16_MAX + 1u;
        refused(bad);
        bad = m;
        bad.ts = m.ts == 0 ? stamp_make(0, 1) : stamp_make(5, 0);
        refused(bad);
        bad.ts = stamp_make(GALENE_VERSION_MAX + 1, 1);
        refused(bad);
        bad = m;
        bad.vflags = KEY_WAITERS;
        refused(bad);
        bad = m;
        if (m.value.n == 0) {
            bad.value = bytes_of("v", 1);
            refused(bad);
        } else {
            bad.vflags = KEY_TOMBSTONE;
            refused(bad);
            bad.vflags = KEY_DEADLINE;
            bad.value.n = 7;
            refused(bad);
        }
        if (m.key.n == 0) {
            bad = m;
            bad.key = bytes_of("k", 1);
            refused(bad);
        }
    }
    struct msg item = good(GALENE_ITEM);
    item.vflags = KEY_TOMBSTONE;
    item.value = bytes_of(NULL, 0);
    refused(item);
}

static void test_unknown_kinds(void **state)
{
    (void)state;
    for (uint32_t k = 0; k <= UINT8_MAX; k++) {
        struct msg m = {.kind = (uint8_t)k, .epoch = 1};
        bool known = (k >= GALENE_INV && k < GALENE_KEY_END) ||
                     (k >= GALENE_HOMES_FIRST && k < GALENE_HOMES_END);
        if (!known) {
            refused(m);
        }
    }
}

/* Whatever its fields, a message is refused or is a correct member's; never an assertion. */
static void test_random_messages(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 11);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        uint64_t bits = random_next(&random);
        struct msg m = {.kind = (uint8_t)(bits % GALENE_KEY_END),
                        .flags = (uint8_t)(bits >> 8 & 15 & (bits >> 12)),
                        .vflags = (uint8_t)(bits >> 16 & 7 & (bits >> 20)),
                        .slot = (uint32_t)(bits >> 24 & 3),
                        .gen = (uint32_t)(bits >> 26 & 3),
                        .epoch = (uint32_t)(bits >> 28 & 3),
                        .ts =
                            (bits >> 30 & 1) != 0 ? stamp_make(bits >> 31 & 7, bits >> 34 & 7) : 0,
                        .arg = bits >> 37 & 1};
        m.key = bytes_of("k", bits >> 38 & 1);
        m.value = bytes_of("0123456789", (uint32_t)(bits >> 39 & 1) * 10);
        taken += galene_msg_invalid(&m) == NULL;
    }
    assert_true(taken > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_is_valid_as_it_is_sent),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_spoilt_fields),
        cmocka_unit_test(test_unknown_kinds),
        cmocka_unit_test(test_random_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
