/* The parts of `horkos torture` that need no processes: plans, which faults may be risked, keys and
 * their histories, what replies mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/torture_faults.h"
#include "tools/torture_keys.h"
#include "tools/torture_net.h"
#include "tools/torture_ops.h"
#include "tools/torture_plan.h"

static struct torture_options options_of(uint64_t seed, uint32_t nodes)
{
    return (struct torture_options){.seed = seed,
                                    .seconds = 60,
                                    .nodes = nodes,
                                    .clients = 8,
                                    .keys = 6,
                                    .lease_ms = 500,
                                    .faults = TORTURE_FAULTS_ALL};
}

/* ---- Plans ---- */

static void check_fault(const struct torture_fault *f, nodeset all)
{
    assert_true(f->for_ms > 0 && f->for_ms <= 6 * 500);
    assert_true(nodeset_has(all, f->node));
    assert_true(nodeset_within(f->from | f->to, all));
    switch ((uint32_t)f->kind) {
    case TORTURE_ISOLATE:
        assert_int_equal(nodeset_count(f->from), 1);
        assert_int_equal(f->from ^ f->to, all);
        break;
    case TORTURE_SPLIT:
        assert_true(f->both && f->from != 0 && f->to != 0);
        assert_int_equal(f->from & f->to, 0);
        assert_int_equal(f->from | f->to, all);
        break;
    case TORTURE_BRIDGE:
        assert_true(f->both && f->from != 0 && f->to != 0);
        assert_int_equal(f->from & f->to, 0);
        assert_int_equal(f->from | f->to, all & ~nodeset_of(f->node));
        break;
    case TORTURE_ONE_WAY:
        assert_true(!f->both && f->from != 0 && f->to != 0 && (f->from & f->to) == 0);
        break;
    case TORTURE_RESET_PEERS:
        assert_true(f->to != 0 && !nodeset_has(f->to, f->node));
        break;
    default:
        break;
    }
}

static void plans_make_sense(void **state)
{
    uint32_t of_kind[TORTURE_KINDS] = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint32_t nodes = 3 + (uint32_t)(seed % 5);
        struct torture_options options = options_of(seed, nodes);
        struct torture_plan plan;
        assert_true(torture_plan_draw(&options, TORTURE_FAULTS_ALL, &plan));
        assert_true(plan.n > 5);
        for (uint32_t i = 0; i < plan.n; i++) {
            assert_true(i == 0 || plan.faults[i].at_ms >= plan.faults[i - 1].at_ms);
            assert_true(plan.faults[i].at_ms < options.seconds * 1000);
            check_fault(&plan.faults[i], ((nodeset)2 << nodes) - 2);
            of_kind[plan.faults[i].kind]++;
        }
        torture_plan_deinit(&plan);
    }
    for (uint32_t k = 0; k < TORTURE_KINDS; k++) {
        assert_true(of_kind[k] > 50);
    }
}

static void plans_hold_only_what_is_possible(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct torture_options options = options_of(seed, 3);
        struct torture_plan plan;
        assert_true(torture_plan_draw(&options, 1u << TORTURE_PAUSE, &plan));
        for (uint32_t i = 0; i < plan.n; i++) {
            assert_int_equal(plan.faults[i].kind, TORTURE_PAUSE);
        }
        assert_true(plan.n > 5);
        torture_plan_deinit(&plan);
        assert_true(torture_plan_draw(&options, 0, &plan));
        assert_int_equal(plan.n, 0);
        torture_plan_deinit(&plan);
    }
}

/* ---- Cuts ---- */

static void cuts_overlap(void **state)
{
    struct torture_net net = {.nodes = 3};
    nodeset one = nodeset_of(1);
    nodeset all = 14;
    (void)state;
    torture_net_cut(&net, one, all & ~one, true, true);
    torture_net_cut(&net, one, nodeset_of(2), false, true);
    assert_int_equal(net.cut[1][2], 2);
    assert_int_equal(net.cut[2][1], 1);
    assert_int_equal(net.cut[2][3], 0);
    torture_net_cut(&net, one, all & ~one, true, false);
    assert_int_equal(net.cut[1][2], 1);
    assert_int_equal(net.cut[2][1], 0);
    assert_int_equal(torture_net_disturbed(&net), one | nodeset_of(2));
    torture_net_cut(&net, one, nodeset_of(2), false, false);
    assert_int_equal(torture_net_disturbed(&net), 0);
    torture_net_cut(&net, all, all, true, true);
    for (uint32_t a = 1; a <= 3; a++) {
        for (uint32_t b = 1; b <= 3; b++) {
            assert_int_equal(net.cut[a][b], a == b ? 0 : 1);
        }
    }
}

/* ---- What may be risked ---- */

struct rig {
    struct torture_options options;
    struct torture_fault fault;
    struct torture_plan plan;
    struct torture_net net;
    struct torture_cluster cluster;
    struct torture_faults faults;
};

/* Three nodes without processes that just said that they serve; one fault befalls node 1. */
static void rig_init(struct rig *rig, enum torture_kind kind, uint64_t now_us)
{
    *rig = (struct rig){.options = options_of(1, 3)};
    rig->fault = (struct torture_fault){.at_ms = 10, .for_ms = 100, .kind = kind, .node = 1};
    rig->plan = (struct torture_plan){.faults = &rig->fault, .n = 1};
    rig->net = (struct torture_net){.nodes = 3};
    rig->cluster = (struct torture_cluster){.options = &rig->options, .net = &rig->net};
    rig->cluster.nodes = 14;
    for (uint32_t node = 1; node <= 3; node++) {
        struct torture_node *of = &rig->cluster.node[node];
        torture_stream_init(&of->probe);
        of->up = true;
        of->serves = true;
        of->epoch = 5;
        of->operational = 14;
        of->told_us = now_us;
    }
    assert_true(torture_faults_init(&rig->faults, &rig->plan, &rig->cluster, &rig->net));
    torture_faults_step(&rig->faults, now_us);
}

static bool befalls(struct rig *rig, uint64_t now_us)
{
    torture_faults_step(&rig->faults, now_us);
    return rig->faults.runs[0].state == FAULT_BEGUN;
}

static void a_kill_needs_a_sound_majority(void **state)
{
    const uint64_t begin_us = 1000000;
    const uint64_t due_us = begin_us + 20000;
    struct rig rig;
    (void)state;
    rig_init(&rig, TORTURE_KILL, begin_us);
    assert_false(befalls(&rig, begin_us + 5000)); /* not due */
    assert_true(befalls(&rig, due_us));
    assert_false(rig.cluster.node[1].up);
    torture_faults_deinit(&rig.faults);

    for (uint32_t lack = 0; lack < 7; lack++) {
        rig_init(&rig, TORTURE_KILL, begin_us);
        struct torture_node *other = &rig.cluster.node[2];
        other->serves = lack != 0;
        other->stopped = lack == 1;
        other->up = lack != 2;
        other->operational = lack == 3 ? 10 : 14;
        other->epoch = lack == 4 ? 4 : 5;
        other->told_us = lack == 5 ? begin_us - 400000 : begin_us;
        rig.net.cut[2][3] = lack == 6;
        assert_false(befalls(&rig, due_us));
        assert_true(rig.cluster.node[1].up && torture_faults_wait(&rig.faults));
        /* The plan's clock stands, and in the end the fault is skipped. */
        uint64_t clock_us = rig.faults.clock_us;
        assert_false(befalls(&rig, due_us + 14000000));
        assert_int_equal(rig.faults.clock_us, clock_us);
        assert_int_equal(rig.faults.runs[0].state, FAULT_TO_COME);
        assert_false(befalls(&rig, due_us + 15000001));
        assert_int_equal(rig.faults.runs[0].state, FAULT_SKIPPED);
        torture_faults_deinit(&rig.faults);
    }
}

/* A node that was cut off a moment ago may be about to be dropped, whatever it says. */
static void a_kill_needs_nodes_that_had_quiet(void **state)
{
    struct rig rig;
    (void)state;
    rig_init(&rig, TORTURE_KILL, 1000000);
    rig.net.cut[2][3] = 1;
    torture_faults_step(&rig.faults, 1010000);
    rig.net.cut[2][3] = 0;
    for (uint32_t node = 2; node <= 3; node++) {
        rig.cluster.node[node].told_us = 1500000;
    }
    assert_false(befalls(&rig, 1510000));
    for (uint32_t node = 2; node <= 3; node++) {
        rig.cluster.node[node].told_us = 1570000;
    }
    assert_true(befalls(&rig, 1580000));
    torture_faults_deinit(&rig.faults);
}

static void while_a_node_leaves_nothing_begins(void **state)
{
    struct rig rig;
    (void)state;
    rig_init(&rig, TORTURE_PAUSE, 1000000);
    rig.cluster.node[2].leaving = true;
    assert_false(befalls(&rig, 1020000));
    assert_false(befalls(&rig, 2020000));
    rig.cluster.node[2].leaving = false;
    assert_false(befalls(&rig, 2025000)); /* the plan's clock stood */
    assert_true(befalls(&rig, 2040000));
    torture_faults_deinit(&rig.faults);
}

/* A process that was just started would be ended by a SIGTERM, and not leave. */
static void who_leaves_has_answered_before(void **state)
{
    struct rig rig;
    (void)state;
    rig_init(&rig, TORTURE_LEAVE, 1000000);
    rig.cluster.node[1].told_us = 0;
    assert_false(befalls(&rig, 1020000));
    assert_false(rig.cluster.node[1].leaving);
    assert_int_equal(rig.faults.runs[0].state, FAULT_TO_COME);
    rig.cluster.node[1].told_us = 1025000;
    assert_true(befalls(&rig, 1030000));
    assert_true(rig.cluster.node[1].leaving);
    torture_faults_deinit(&rig.faults);
}

static void a_pause_needs_a_node_that_runs(void **state)
{
    struct rig rig;
    (void)state;
    rig_init(&rig, TORTURE_PAUSE, 1000000);
    rig.cluster.node[2].serves = false;
    assert_true(befalls(&rig, 1020000));
    assert_true(rig.cluster.node[1].stopped);
    torture_faults_step(&rig.faults, 1020000 + 100001);
    assert_int_equal(rig.faults.runs[0].state, FAULT_ENDED);
    assert_false(rig.cluster.node[1].stopped);
    torture_faults_deinit(&rig.faults);
    rig_init(&rig, TORTURE_PAUSE, 1000000);
    rig.cluster.node[1].up = false;
    assert_false(befalls(&rig, 1020000));
    assert_int_equal(rig.faults.runs[0].state, FAULT_SKIPPED);
    torture_faults_deinit(&rig.faults);
}

/* ---- Values ---- */

static void values_are_read_back(void **state)
{
    char text[TORTURE_VALUE_BYTES];
    uint32_t longest = 0;
    (void)state;
    for (int64_t number = 1; number < 400; number++) {
        for (uint32_t class = 0; class < TORTURE_CLASSES; class ++) {
            int64_t again = 0;
            struct bytes value =
                torture_value((enum torture_class) class, number * TORTURE_VALUE_GAP, text);
            assert_true(torture_value_parse((enum torture_class) class, value, &again));
            assert_int_equal(again, number * TORTURE_VALUE_GAP);
            longest = value.n > longest ? value.n : longest;
        }
    }
    assert_true(longest > 1000);
}

static void torn_values_are_refused(void **state)
{
    char one[TORTURE_VALUE_BYTES];
    char other[TORTURE_VALUE_BYTES];
    uint32_t torn = 0;
    (void)state;
    for (int64_t number = 1; number < 200; number++) {
        int64_t again = 0;
        struct bytes a = torture_value(TORTURE_REGISTER, number * TORTURE_VALUE_GAP, one);
        struct bytes b = torture_value(TORTURE_REGISTER, (number + 1) * TORTURE_VALUE_GAP, other);
        assert_false(torture_value_parse(TORTURE_REGISTER, bytes_of(a.at, a.n - 1), &again));
        if (a.n > 30 && b.n > 30) {
            memcpy(one + a.n - 10, other + b.n - 10, 10);
            assert_false(torture_value_parse(TORTURE_REGISTER, a, &again));
            torn++;
        }
    }
    int64_t number = 0;
    assert_true(torn > 0);
    assert_false(torture_value_parse(TORTURE_COUNTER, bytes_of("12x", 3), &number));
    assert_false(torture_value_parse(TORTURE_COUNTER, bytes_of("012", 3), &number));
    assert_false(torture_value_parse(TORTURE_COUNTER, bytes_of("", 0), &number));
    assert_true(torture_value_parse(TORTURE_COUNTER, bytes_of("-12", 3), &number));
    assert_int_equal(number, -12);
}

/* ---- Replies ---- */

struct said {
    enum history_kind kind;
    const char *reply;
    bool fits;
    enum history_outcome outcome;
    bool ok;
    int64_t out;
};

static void replies_mean_what_they_say(void **state)
{
    static const struct said table[] = {
        {HISTORY_READ, "$7\r\n1000000\r\n", true, HISTORY_OK, false, 1000000},
        {HISTORY_READ, "$-1\r\n", true, HISTORY_OK, false, HISTORY_ABSENT},
        {HISTORY_READ, "$2\r\nno\r\n", false, HISTORY_OK, false, 0},
        {HISTORY_READ, ":1\r\n", false, HISTORY_OK, false, 0},
        {HISTORY_READ, "-CLUSTERDOWN no lease\r\n", true, HISTORY_FAILED, false, 0},
        {HISTORY_READ, "-LOADING joins\r\n", true, HISTORY_FAILED, false, 0},
        {HISTORY_WRITE, "+OK\r\n", true, HISTORY_OK, false, 0},
        {HISTORY_WRITE, "$-1\r\n", false, HISTORY_OK, false, 0},
        {HISTORY_WRITE, "-UNKNOWN it may apply\r\n", true, HISTORY_UNKNOWN, false, 0},
        {HISTORY_WRITE, "-UNKNOWNS\r\n", false, HISTORY_UNKNOWN, false, 0},
        {HISTORY_WRITE, "-ERR syntax\r\n", false, HISTORY_UNKNOWN, false, 0},
        {HISTORY_WRITE, "-TRYAGAIN later\r\n", true, HISTORY_FAILED, false, 0},
        {HISTORY_WRITE, "-OOM full\r\n", true, HISTORY_FAILED, false, 0},
        {HISTORY_WRITE, "-LOSTSLOT 7\r\n", true, HISTORY_FAILED, false, 0},
        {HISTORY_SET_IF, "+OK\r\n", true, HISTORY_OK, true, 0},
        {HISTORY_SET_IF, "$-1\r\n", true, HISTORY_OK, false, 0},
        {HISTORY_SET_IF, "+NO\r\n", false, HISTORY_OK, false, 0},
        {HISTORY_SET_ABSENT, "$-1\r\n", true, HISTORY_OK, false, 0},
        {HISTORY_SET_PRESENT, "+OK\r\n", true, HISTORY_OK, true, 0},
        {HISTORY_DELETE_IF, ":1\r\n", true, HISTORY_OK, true, 0},
        {HISTORY_DELETE_PRESENT, ":0\r\n", true, HISTORY_OK, false, 0},
        {HISTORY_DELETE_PRESENT, ":2\r\n", false, HISTORY_OK, false, 0},
        {HISTORY_EXISTS, ":1\r\n", true, HISTORY_OK, true, 0},
        {HISTORY_GETDEL, "$1\r\n3\r\n", true, HISTORY_OK, false, 3},
        {HISTORY_GETSET, "$-1\r\n", true, HISTORY_OK, false, HISTORY_ABSENT},
        {HISTORY_ADD, ":17\r\n", true, HISTORY_OK, false, 17},
        {HISTORY_ADD, "+OK\r\n", false, HISTORY_OK, false, 0},
    };
    struct torture_key key = {.class = TORTURE_GENERAL};
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct resp_client_reply reply;
        struct history_op op;
        uint32_t used = 0;
        torture_op_read(&key, &op);
        op.kind = (uint8_t)table[i].kind;
        struct bytes text = bytes_of(table[i].reply, (uint32_t)strlen(table[i].reply));
        assert_int_equal(resp_client_parse(text, &reply, &used), 0);
        const char *wrong = torture_op_understand(&key, &op, &reply);
        if ((wrong == NULL) != table[i].fits) {
            fail_msg("%s: %s", table[i].reply, wrong == NULL ? "fits" : wrong);
        }
        assert_true(!table[i].fits || op.outcome == table[i].outcome);
        if (table[i].fits && op.outcome == HISTORY_OK) {
            bool has_out = table[i].out != 0;
            assert_int_equal(op.ok, table[i].ok);
            assert_true(!has_out || op.out == table[i].out);
        }
    }
}

static void drawn_operations_can_be_recorded(void **state)
{
    struct torture_keys keys;
    struct random random;
    uint32_t seen = 0;
    (void)state;
    random_init(&random, 5);
    assert_true(torture_keys_init(&keys, 6));
    for (uint32_t i = 0; i < 5000; i++) {
        struct history_op op;
        struct torture_key *key = torture_keys_pick(&keys, &random, i);
        key->seen_known = i % 3 != 0;
        key->seen = i % 5 == 0 ? HISTORY_ABSENT : (int64_t)i;
        torture_op_draw(&keys, key, &random, &op);
        op.outcome = HISTORY_UNKNOWN;
        assert_null(history_op_invalid(&op));
        seen |= 1u << op.kind;
        if (key->class == TORTURE_REGISTER) {
            assert_true(op.kind == HISTORY_READ || op.kind == HISTORY_WRITE);
        }
    }
    assert_true((seen & 1u << HISTORY_SET_IF) != 0 && (seen & 1u << HISTORY_GETDEL) != 0 &&
                (seen & 1u << HISTORY_SET_PRESENT) != 0 && (seen & 1u << HISTORY_ADD) != 0);
    torture_keys_deinit(&keys);
}

/* ---- The life of a key ---- */

static void write_one(struct torture_key *key, uint64_t at_us, int64_t value,
                      enum history_outcome outcome)
{
    struct history_op op;
    torture_op_read(key, &op);
    op.kind = HISTORY_WRITE;
    op.in = value;
    op.begin_us = at_us;
    op.end_us = at_us + 5;
    op.outcome = (uint8_t)outcome;
    assert_true(torture_key_record(key, &op));
    key->unknowns += outcome == HISTORY_UNKNOWN;
}

static void read_last(struct torture_key *key, uint64_t at_us, int64_t value)
{
    struct history_op op;
    torture_op_read(key, &op);
    op.out = value;
    op.begin_us = at_us;
    op.end_us = at_us + 5;
    assert_true(torture_key_record(key, &op));
    key->last_known = true;
    key->last = value;
    key->state = KEY_CLOSED;
}

static void keys_make_room(void **state)
{
    struct torture_keys keys;
    struct torture_key *closed = NULL;
    struct random random;
    (void)state;
    random_init(&random, 1);
    assert_true(torture_keys_init(&keys, 1));
    struct torture_key *first = torture_keys_pick(&keys, &random, 1000);
    assert_ptr_equal(torture_keys_pick(&keys, &random, 1001), first);
    write_one(first, 1002, 7, HISTORY_OK);
    first->under_way = 1;
    struct torture_key *second = torture_keys_pick(&keys, &random, 60000000);
    assert_ptr_not_equal(second, first);
    assert_int_equal(first->state, KEY_ENDING);
    assert_null(torture_keys_to_read(&keys, &closed));
    first->under_way = 0;
    assert_ptr_equal(torture_keys_to_read(&keys, &closed), first);
    assert_null(torture_keys_to_read(&keys, &closed));
    assert_null(closed);
    assert_false(torture_keys_all_closed(&keys));
    read_last(first, 1010, 7);
    torture_keys_end(&keys);
    /* A key that nobody used needs no reading. */
    assert_null(torture_keys_to_read(&keys, &closed));
    assert_ptr_equal(closed, second);
    assert_true(torture_keys_all_closed(&keys));
    torture_keys_judged(&keys, first);
    assert_null(first->ops);
    torture_keys_deinit(&keys);
}

static void a_key_in_doubt_keeps_its_history(void **state)
{
    struct torture_keys keys;
    (void)state;
    assert_true(torture_keys_init(&keys, 2));
    struct torture_key *key = keys.all[0];
    write_one(key, 100, 7, HISTORY_UNKNOWN);
    read_last(key, 200, 7);
    torture_keys_judged(&keys, key);
    assert_non_null(key->ops);
    assert_int_equal(keys.kept_ops, 2);
    torture_keys_deinit(&keys);
}

static bool holds_deletion(const struct torture_key *key, uint64_t begin_us)
{
    const struct history_op *last = &key->ops[key->n - 1];
    return last->kind == HISTORY_DELETE && last->outcome == HISTORY_UNKNOWN &&
           last->begin_us == begin_us;
}

static void emptied_keys_make_room(void **state)
{
    struct torture_keys keys;
    struct random random;
    (void)state;
    random_init(&random, 1);
    assert_true(torture_keys_init(&keys, 1));
    struct torture_key *used = torture_keys_pick(&keys, &random, 1000);
    write_one(used, 1002, 7, HISTORY_OK);
    assert_true(torture_keys_empty(&keys, 1500));
    assert_true(used->emptied && holds_deletion(used, 1500));
    struct torture_key *next = torture_keys_pick(&keys, &random, 2000);
    assert_ptr_not_equal(next, used);
    /* Nobody has used it, so there is nothing to tell. */
    assert_true(torture_keys_empty(&keys, 2500));
    assert_false(next->emptied);
    torture_keys_deinit(&keys);
}

static void closed_keys_are_told_in_the_end(void **state)
{
    struct torture_keys keys;
    (void)state;
    assert_true(torture_keys_init(&keys, 2));
    struct torture_key *doubtful = keys.all[0];
    struct torture_key *settled = keys.all[1];
    write_one(doubtful, 100, 7, HISTORY_UNKNOWN);
    read_last(doubtful, 200, 7);
    write_one(settled, 100, 8, HISTORY_OK);
    read_last(settled, 200, 8);
    torture_keys_judged(&keys, doubtful);
    torture_keys_judged(&keys, settled);
    assert_true(torture_keys_empty(&keys, 300) && torture_keys_empty(&keys, 400));
    assert_false(doubtful->emptied);
    assert_true(torture_keys_note_emptied(&keys));
    assert_true(doubtful->emptied && holds_deletion(doubtful, 300));
    assert_null(settled->ops);
    assert_int_equal(settled->emptied_us, 300);
    torture_keys_deinit(&keys);
}

static void a_planted_lie_is_refused(void **state)
{
    struct torture_keys keys;
    struct check_report report;
    (void)state;
    assert_true(torture_keys_init(&keys, 3));
    for (uint32_t class = 0; class < TORTURE_CLASSES; class += 2) {
        struct torture_key *key = keys.all[class];
        struct history history;
        write_one(key, 100, 7 * TORTURE_VALUE_GAP, HISTORY_OK);
        assert_false(torture_key_tamper(key));
        write_one(key, 200, 8 * TORTURE_VALUE_GAP, HISTORY_OK);
        read_last(key, 300, 8 * TORTURE_VALUE_GAP);
        history = (struct history){.ops = key->ops, .n = key->n};
        assert_int_equal(check_linearizable(&history, 0, &report), CHECK_ACCEPTED);
        assert_true(torture_key_tamper(key));
        assert_int_equal(check_linearizable(&history, 0, &report), CHECK_REFUSED);
        assert_int_equal(check_registers(&history, &report), CHECK_REFUSED);
    }
    torture_keys_deinit(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_make_sense),
        cmocka_unit_test(plans_hold_only_what_is_possible),
        cmocka_unit_test(cuts_overlap),
        cmocka_unit_test(a_kill_needs_a_sound_majority),
        cmocka_unit_test(a_kill_needs_nodes_that_had_quiet),
        cmocka_unit_test(while_a_node_leaves_nothing_begins),
        cmocka_unit_test(who_leaves_has_answered_before),
        cmocka_unit_test(a_pause_needs_a_node_that_runs),
        cmocka_unit_test(values_are_read_back),
        cmocka_unit_test(torn_values_are_refused),
        cmocka_unit_test(replies_mean_what_they_say),
        cmocka_unit_test(drawn_operations_can_be_recorded),
        cmocka_unit_test(keys_make_room),
        cmocka_unit_test(a_key_in_doubt_keeps_its_history),
        cmocka_unit_test(emptied_keys_make_room),
        cmocka_unit_test(closed_keys_are_told_in_the_end),
        cmocka_unit_test(a_planted_lie_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
