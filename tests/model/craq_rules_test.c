/* Each rule of docs/protocols/craq.md by the execution that breaks without it: machines driven by
 * hand, message by message. With the rule nothing may go wrong; in a build with HK_MUTANTS the same
 * execution with the rule switched off must show the fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/craq_rig.h"

static struct rig rig;

static struct rig *begin(uint8_t n, uint8_t workers, uint64_t rules_off)
{
    rig_init(&rig, n, workers, false, rules_off, 1);
    return &rig;
}

/* NULL, or what went wrong. */
static const char *verdict(struct rig *r)
{
    if (!rig_sound(r)) {
        return "not linearizable";
    }
    if (!rig_settle(r)) {
        return "not settled";
    }
    for (nodeset rest = rig_newest(r)->operational; rest != 0; rest &= rest - 1) {
        (void)rig_do(r, nodeset_first(rest), 0, RIG_READ);
    }
    return rig_sound(r) ? NULL : "not linearizable in the end";
}

/* The node ends and joins anew, as a shadow; all know it. */
static void rejoin(struct rig *r, uint8_t node)
{
    rig_crash(r, node);
    rig_drop(r, node);
    rig_admit(r, node);
    rig_adopt_all(r);
}

static void copy(struct rig *r, uint8_t donor, uint8_t shadow)
{
    (void)rig_chunk(r, donor, shadow);
    rig_pass(r, donor, shadow, CRAQ_ITEM);
}

/* The chain is 1, 2, and 0 as a shadow that has everything. */
static struct rig *head_joins(uint8_t workers, uint64_t rules_off)
{
    struct rig *r = begin(3, workers, rules_off);
    rejoin(r, 0);
    copy(r, 1, 0);
    return r;
}

static void promote(struct rig *r, uint8_t node)
{
    bool promoted = rig_promote(r, node);
    assert_true(promoted);
    rig_adopt_all(r);
}

/* ---- The executions ---- */

/* A WRITE of the old chain arrives when its receiver has become the end of a new one. */
static const char *run_epoch(uint64_t off)
{
    struct rig *r = head_joins(1, off);
    (void)rig_do(r, 1, 0, RIG_WRITE);
    promote(r, 0);
    rig_pass(r, 1, 2, CRAQ_WRITE);
    (void)rig_do(r, 2, 0, RIG_READ);
    (void)rig_do(r, 0, 0, RIG_READ);
    return verdict(r);
}

/* The last operational member has it, the shadow behind it has not. */
static const char *run_end(uint64_t off)
{
    struct rig *r = begin(3, 1, off);
    rejoin(r, 2);
    copy(r, 0, 2);
    (void)rig_do(r, 0, 0, RIG_WRITE);
    rig_pass(r, 0, 1, CRAQ_WRITE);
    (void)rig_do(r, 1, 0, RIG_READ);
    promote(r, 2);
    (void)rig_do(r, 2, 0, RIG_READ);
    return verdict(r);
}

/* The ACK of an older update meets a newer one. */
static const char *run_ack_ts(uint64_t off)
{
    struct rig *r = begin(3, 1, off);
    (void)rig_do(r, 0, 0, RIG_WRITE);
    (void)rig_do(r, 0, 0, RIG_WRITE);
    rig_pass(r, 0, 1, CRAQ_WRITE);
    rig_pass(r, 1, 2, CRAQ_WRITE);
    rig_pass(r, 2, 1, CRAQ_ACK);
    rig_pass(r, 1, 0, CRAQ_ACK);
    (void)rig_do(r, 0, 0, RIG_READ);
    (void)rig_do(r, 2, 0, RIG_READ);
    return verdict(r);
}

/* The new tail has it from the old chain; the new head, promoted before it, has not. */
static const char *run_not_declared(uint64_t off)
{
    struct rig *r = head_joins(1, off);
    (void)rig_do(r, 1, 0, RIG_WRITE);
    rig_pass(r, 1, 2, CRAQ_WRITE);
    promote(r, 0);
    uint32_t read = rig_do(r, 2, 0, RIG_READ);
    rig_prod(r, read);
    (void)rig_do(r, 0, 0, RIG_READ);
    return verdict(r);
}

/* The rest of the chain died with the WRITE under way: nobody writes the key again. */
static const char *run_repair(uint64_t off)
{
    struct rig *r = begin(3, 1, off);
    (void)rig_do(r, 0, 0, RIG_WRITE);
    rig_pass(r, 0, 1, CRAQ_WRITE);
    rig_crash(r, 2);
    rig_drop(r, 2);
    return verdict(r);
}

/* A question meets a tail that is dirty since the old chain; then all who have that value die. */
static const char *run_query_clean(uint64_t off)
{
    struct rig *r = head_joins(1, off);
    (void)rig_do(r, 1, 0, RIG_WRITE);
    rig_pass(r, 1, 2, CRAQ_WRITE);
    promote(r, 0);
    (void)rig_do(r, 1, 0, RIG_READ); /* parks: it is left over, and the head is told */
    (void)rig_do(r, 1, 0, RIG_READ); /* asks the tail */
    while (rig_deliver(r, 1, 0, 2, 0)) {
    }
    while (rig_deliver(r, 2, 0, 1, 0)) {
    }
    rig_crash(r, 1);
    rig_crash(r, 2);
    rig_drop(r, 1);
    rig_drop(r, 2);
    rig_adopt_all(r);
    (void)rig_do(r, 0, 0, RIG_READ);
    return verdict(r);
}

static const char *run_read_clean(uint64_t off)
{
    struct rig *r = begin(3, 1, off);
    (void)rig_do(r, 0, 0, RIG_WRITE);
    (void)rig_do(r, 0, 0, RIG_READ);
    (void)rig_do(r, 2, 0, RIG_READ);
    return verdict(r);
}

/* Two RMWs were computed on the same value. */
static const char *run_condition(uint64_t off)
{
    struct rig *r = begin(3, 1, off);
    (void)rig_do(r, 1, 0, RIG_RMW);
    (void)rig_do(r, 2, 0, RIG_RMW);
    rig_pass(r, 1, 0, CRAQ_FORWARD);
    rig_pass(r, 2, 0, CRAQ_FORWARD);
    return verdict(r);
}

/* Two workers' lanes: the newer WRITE is faster. */
static const char *run_higher(uint64_t off)
{
    struct rig *r = begin(3, 2, off);
    (void)rig_do(r, 0, 0, RIG_WRITE);
    (void)rig_do(r, 0, 1, RIG_WRITE);
    assert_true(rig_deliver(r, 0, 1, 1, 1));
    assert_true(rig_deliver(r, 0, 0, 1, 0));
    return verdict(r);
}

/* An RMW was ordered by the old head, another on the same value by the new one. */
static const char *run_ts_epoch(uint64_t off)
{
    struct rig *r = head_joins(1, off);
    (void)rig_do(r, 1, 0, RIG_RMW);
    promote(r, 0);
    (void)rig_do(r, 0, 0, RIG_RMW);
    return verdict(r);
}

/* The same, and some workers still are in the old chain, where all deliver. */
static const char *run_late_write(uint64_t off)
{
    struct rig *r = head_joins(2, off);
    (void)rig_do(r, 1, 0, RIG_RMW);
    bool promoted = rig_promote(r, 0);
    assert_true(promoted);
    rig_adopt(r, 0, 1);
    (void)rig_do(r, 0, 1, RIG_RMW);
    rig_pass(r, 1, 2, CRAQ_WRITE);
    rig_pass(r, 2, 0, CRAQ_WRITE);
    while (rig_deliver(r, 0, 0, 2, 0)) {
    }
    while (rig_deliver(r, 2, 0, 1, 0)) {
    }
    return verdict(r);
}

/* One worker of the head is in the new epoch, the other still orders in the old one. */
static const char *run_late_head(uint64_t off)
{
    struct rig *r = begin(3, 2, off);
    rig_crash(r, 2);
    rig_drop(r, 2);
    rig_adopt(r, 0, 1);
    rig_adopt(r, 1, 0);
    rig_adopt(r, 1, 1);
    (void)rig_do(r, 0, 1, RIG_WRITE);
    rig_run(r);
    (void)rig_do(r, 0, 0, RIG_WRITE);
    return verdict(r);
}

/* Two members repair the same update, and between that a newer one commits. */
static const char *run_repair_ts(uint64_t off)
{
    struct rig *r = head_joins(1, off);
    (void)rig_do(r, 1, 0, RIG_WRITE);
    rig_pass(r, 1, 2, CRAQ_WRITE);
    promote(r, 0);
    (void)rig_deliver(r, 2, 0, 0, 0); /* the WRITE of the old epoch */
    rig_sweep(r, 1);
    rig_sweep(r, 2);
    rig_pass(r, 1, 0, CRAQ_REPAIR);
    for (int i = 0; i < 2; i++) {
        rig_pass(r, 0, 1, CRAQ_WRITE);
        rig_pass(r, 1, 2, CRAQ_WRITE);
        rig_pass(r, 2, 1, CRAQ_ACK);
        rig_pass(r, 1, 0, CRAQ_ACK);
        (void)rig_do(r, 0, 0, RIG_READ);
        if (i == 0) {
            (void)rig_do(r, 0, 0, RIG_WRITE);
        }
    }
    rig_pass(r, 2, 0, CRAQ_REPAIR);
    return verdict(r);
}

/* An interrupted update is repaired, overwritten, and tried again. */
static const char *run_unknown(uint64_t off)
{
    struct rig *r = begin(3, 1, off);
    uint32_t w = rig_do(r, 1, 0, RIG_WRITE);
    rig_pass(r, 1, 0, CRAQ_FORWARD);
    rig_crash(r, 2);
    rig_drop(r, 2);
    rig_adopt_all(r);
    rig_sweep(r, 0);
    rig_run(r);
    (void)rig_do(r, 0, 0, RIG_READ);
    (void)rig_do(r, 0, 0, RIG_WRITE);
    rig_run(r);
    (void)rig_do(r, 0, 0, RIG_READ);
    rig_prod(r, w);
    return verdict(r);
}

/* A chunk that was packed before an update arrives after it. */
static const char *run_chunk_higher(uint64_t off)
{
    struct rig *r = begin(3, 1, off);
    rejoin(r, 2);
    (void)rig_chunk(r, 0, 2);
    (void)rig_do(r, 0, 0, RIG_WRITE);
    rig_pass(r, 0, 1, CRAQ_WRITE);
    rig_pass(r, 1, 2, CRAQ_WRITE);
    rig_pass(r, 0, 2, CRAQ_ITEM);
    return verdict(r);
}

/* A chunk has a value that the members before the joiner have not got. */
static const char *run_chunk_state(uint64_t off)
{
    struct rig *r = begin(3, 1, off);
    rejoin(r, 2);
    (void)rig_do(r, 0, 0, RIG_WRITE);
    copy(r, 0, 2);
    promote(r, 2);
    (void)rig_do(r, 2, 0, RIG_READ);
    (void)rig_do(r, 1, 0, RIG_READ);
    return verdict(r);
}

/* Memory refuses a WRITE: lanes do not bring it a second time. */
static const char *run_again(uint64_t off)
{
    struct rig *r = begin(3, 1, off);
    (void)rig_do(r, 0, 0, RIG_WRITE);
    r->nodes[1].refuses = true;
    rig_pass(r, 0, 1, CRAQ_WRITE);
    assert_int_equal(r->refused, 1);
    r->nodes[1].refuses = false;
    return verdict(r);
}

static void judge(enum craq_rule rule, const char *(*run)(uint64_t))
{
    const char *wrong = run(0);
    if (wrong != NULL) {
        print_error("%s: %s\n", craq_rule_names[rule], wrong);
        rig_print(&rig);
    }
    assert_null(wrong);
#ifdef HK_MUTANTS
    assert_non_null(run(1ull << rule));
#endif
}

#define TEST(name, rule)                                                                           \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        judge(rule, run_##name);                                                                   \
    }

TEST(epoch, CRAQ_RULE_EPOCH)
TEST(end, CRAQ_RULE_END)
TEST(ack_ts, CRAQ_RULE_ACK_TS)
TEST(not_declared, CRAQ_RULE_NOT_DECLARED)
TEST(repair, CRAQ_RULE_REPAIR)
TEST(query_clean, CRAQ_RULE_QUERY_CLEAN)
TEST(read_clean, CRAQ_RULE_READ_CLEAN)
TEST(condition, CRAQ_RULE_CONDITION)
TEST(higher, CRAQ_RULE_HIGHER)
TEST(ts_epoch, CRAQ_RULE_TS_EPOCH)
TEST(late_write, CRAQ_RULE_LATE_WRITE)
TEST(late_head, CRAQ_RULE_LATE_HEAD)
TEST(repair_ts, CRAQ_RULE_REPAIR_TS)
TEST(unknown, CRAQ_RULE_UNKNOWN)
TEST(chunk_higher, CRAQ_RULE_CHUNK_HIGHER)
TEST(chunk_state, CRAQ_RULE_CHUNK_STATE)
TEST(again, CRAQ_RULE_AGAIN)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epoch),        cmocka_unit_test(test_end),
        cmocka_unit_test(test_ack_ts),       cmocka_unit_test(test_not_declared),
        cmocka_unit_test(test_repair),       cmocka_unit_test(test_query_clean),
        cmocka_unit_test(test_read_clean),   cmocka_unit_test(test_condition),
        cmocka_unit_test(test_higher),       cmocka_unit_test(test_ts_epoch),
        cmocka_unit_test(test_late_write),   cmocka_unit_test(test_late_head),
        cmocka_unit_test(test_repair_ts),    cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_chunk_higher), cmocka_unit_test(test_chunk_state),
        cmocka_unit_test(test_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
