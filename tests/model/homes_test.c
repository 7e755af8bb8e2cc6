/* The slot map: even shares, messages that are refused, and whole clusters under random
 * schedules, crashes, joins and leaves: nobody answers as the home of a slot without holding what
 * was written there last, and in the end all maps are equal and even. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/homes_rig.h"

static struct homes_rig rig;

static const char *run_on(struct homes_rig *r)
{
    for (uint32_t i = 0; i < 6000 && r->violation == NULL; i++) {
        homes_rig_step(r);
    }
    if (r->violation == NULL) {
        homes_rig_settle(r);
    }
    if (r->violation == NULL) {
        homes_rig_empty(r);
    }
    return r->violation;
}

static const char *run(uint64_t rules_off, uint64_t seed)
{
    homes_rig_init(&rig, 0, rules_off, seed);
    return run_on(&rig);
}

/* Slots move as wholes, and some members only compute; now and then all. */
static const char *run_whole(uint64_t rules_off, uint64_t seed)
{
    homes_rig_init(&rig, 0, rules_off, seed);
    rig.whole = true;
    rig.computers = seed % 3 == 0 ? 0 : seed % 32;
    return run_on(&rig);
}

static uint64_t seeds(uint64_t usual)
{
    const char *more = getenv("HORKOS_HOMES_SEEDS");
    return more != NULL ? strtoull(more, NULL, 10) : usual;
}

static void judge_clusters(const char *(*cluster)(uint64_t rules_off, uint64_t seed), bool whole)
{
    uint64_t moves = 0;
    uint64_t lost = 0;
    uint64_t handed = 0;
    uint64_t empties = 0;
    uint64_t leaves = 0;
    uint64_t writes = 0;
    for (uint64_t seed = 1; seed <= seeds(150); seed++) {
        if (cluster(0, seed) != NULL) {
            print_error("seed %llu: %s\n", (unsigned long long)seed, rig.violation);
        }
        assert_null(rig.violation);
        moves += rig.moves;
        lost += rig.lost;
        handed += rig.handed;
        empties += rig.empties;
        leaves += rig.leaves;
        writes += rig.writes;
    }
    print_message(
        "%llu slots moved, %llu lost, %llu operations handed on, %llu slots emptied, %llu "
        "members left, %llu writes\n",
        (unsigned long long)moves, (unsigned long long)lost, (unsigned long long)handed,
        (unsigned long long)empties, (unsigned long long)leaves, (unsigned long long)writes);
    assert_true(moves > 100000 && lost > 10000 && (handed > 100) != whole && empties > 10000 &&
                leaves > 10 && writes > 10000);
}

static void clusters(void **state)
{
    (void)state;
    judge_clusters(run, false);
}

static void clusters_of_wholes(void **state)
{
    (void)state;
    judge_clusters(run_whole, true);
}

/* ---- Shares ---- */

static uint32_t map[HASH_SLOTS];

static void deal(uint32_t n)
{
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        map[i] = slot_home_pack((struct slot_home){
            .home = (uint8_t)(i * n / HASH_SLOTS), .to = NODE_NONE, .state = HOME_STABLE});
    }
}

/* Ends all moves; how many there were. */
static uint32_t end_moves(uint32_t *has, uint32_t nodes)
{
    uint32_t moves = 0;
    memset(has, 0, nodes * sizeof *has);
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home h = slot_home_unpack(map[i]);
        if (h.state == HOME_MOVING) {
            h = (struct slot_home){.home = h.to, .to = NODE_NONE, .state = HOME_STABLE};
            moves++;
        }
        map[i] = slot_home_pack(h);
        has[h.home]++;
    }
    return moves;
}

static void even_shares(void **state)
{
    (void)state;
    uint32_t has[4];
    deal(3);
    assert_false(homes_even(map, 7));
    assert_true(homes_even(map, 15)); /* a fourth node joins */
    assert_int_equal(end_moves(has, 4), HASH_SLOTS / 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(has[i], HASH_SLOTS / 4);
    }
    assert_false(homes_even(map, 15));

    /* One leaves: not more than so many of its slots at a time. */
    uint32_t moves = 0;
    uint32_t steps = 0;
    while (homes_even(map, 13)) {
        uint32_t n = end_moves(has, 4);
        assert_true(n <= HOMES_MOVES_MAX);
        moves += n;
        steps++;
    }
    assert_int_equal(moves, HASH_SLOTS / 4);
    assert_int_equal(steps, 2);
    assert_int_equal(has[1], 0);
    assert_int_equal(has[0] + has[2] + has[3], HASH_SLOTS);
    assert_true(has[0] - HASH_SLOTS / 3 <= 1 && has[2] - HASH_SLOTS / 3 <= 1);
    assert_false(homes_even(map, 0));
}

/* ---- Messages ---- */

static const struct homes_config keys = {.first_kind = 32};

static void hostile_messages(void **state)
{
    (void)state;
    uint32_t stable =
        slot_home_pack((struct slot_home){.home = 1, .to = NODE_NONE, .state = HOME_STABLE});
    const struct msg good = {.kind = 32 + HOMES_MAP,
                             .flags = HOMES_F_LAST,
                             .slot = 5 | 9 << 14, /* slots 5 to 14 */
                             .gen = stable,
                             .epoch = 3,
                             .ts = (uint64_t)3 << 32 | 7};
    assert_null(homes_msg_invalid(&good, &keys));
    struct msg m = good;
    m.slot = (HASH_SLOTS - 1) | 1 << 14; /* beyond the last */
    assert_non_null(homes_msg_invalid(&m, &keys));
    m.slot = 5 | 1u << 28;
    assert_non_null(homes_msg_invalid(&m, &keys));
    m = good;
    m.ts = (uint64_t)4 << 32; /* of an epoch to come */
    assert_non_null(homes_msg_invalid(&m, &keys));
    m = good;
    m.gen = slot_home_pack((struct slot_home){.home = 64, .to = NODE_NONE, .state = HOME_STABLE});
    assert_non_null(homes_msg_invalid(&m, &keys));
    m.gen = slot_home_pack((struct slot_home){.home = 1, .to = 1, .state = HOME_MOVING});
    assert_non_null(homes_msg_invalid(&m, &keys));
    m.gen = slot_home_pack((struct slot_home){.home = 1, .to = 2, .state = HOME_STABLE});
    assert_non_null(homes_msg_invalid(&m, &keys));
    m.gen = stable | 1u << 24;
    assert_non_null(homes_msg_invalid(&m, &keys));
    m.gen = 0;
    assert_non_null(homes_msg_invalid(&m, &keys));
    m = good;
    m.kind = 32 + HOMES_RUN; /* carries maps of earlier epochs only */
    assert_non_null(homes_msg_invalid(&m, &keys));
    m = good;
    m.arg = 1;
    assert_non_null(homes_msg_invalid(&m, &keys));
    m = good;
    m.flags = HOMES_F_LAST | HOMES_F_NOBODY;
    assert_null(homes_msg_invalid(&m, &keys));
    m.flags = HOMES_F_NOBODY; /* said once, with the last run */
    assert_non_null(homes_msg_invalid(&m, &keys));
    m = good;
    m.kind = 32 + HOMES_RUN;
    m.ts = (uint64_t)2 << 32;
    assert_null(homes_msg_invalid(&m, &keys));
    m.flags |= HOMES_F_NOBODY; /* no leader's */
    assert_non_null(homes_msg_invalid(&m, &keys));
    m = (struct msg){.kind = 32 + HOMES_WISH, .epoch = 1};
    assert_non_null(homes_msg_invalid(&m, &keys));
    m.flags = HOMES_F_EMPTY;
    assert_null(homes_msg_invalid(&m, &keys));
    m = (struct msg){.kind = 32 + HOMES_GO, .epoch = 1, .ts = (uint64_t)1 << 32 | 1};
    assert_non_null(homes_msg_invalid(&m, &keys));
    m = (struct msg){.kind = 32 + HOMES_STATE, .epoch = 1};
    assert_null(homes_msg_invalid(&m, &keys));
    m.kind = 32 + HOMES_HAVE;
    assert_non_null(homes_msg_invalid(&m, &keys));
    m = (struct msg){.kind = 32 + HOMES_KINDS, .epoch = 1, .ts = (uint64_t)1 << 32};
    assert_non_null(homes_msg_invalid(&m, &keys));
}

/* Any message that passes the check, from anybody, in any phase: nothing asserts, and a map that
 * was taken is whole. */
static void hostile_members(void **state)
{
    (void)state;
    struct homes_rig *r = &rig;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        homes_rig_init(r, 0, 0, seed);
        struct random random;
        random_init(&random, seed);
        for (uint32_t i = 0; i < 4000; i++) {
            homes_rig_step(r);
            uint8_t to = (uint8_t)random_below(&random, HOMES_NODES);
            struct homes_node *n = &r->nodes[to];
            uint32_t epoch = n->view.epoch;
            struct msg m = {
                .kind = (uint8_t)random_between(&random, 32, 32 + HOMES_KINDS),
                .flags = (uint8_t)random_below(&random, 8),
                .slot = (uint32_t)random_next(&random) >> random_below(&random, 32),
                .gen = (uint32_t)random_below(&random, 4) << 16 |
                       (uint32_t)random_below(&random, 4) << 8 | (uint32_t)random_below(&random, 4),
                .epoch = epoch + (uint32_t)random_below(&random, 2),
                .ts = (uint64_t)(epoch - random_below(&random, 2)) << 32 | random_below(&random, 5),
            };
            if (epoch == 0 || homes_msg_invalid(&m, &keys) != NULL) {
                continue;
            }
            struct event event = {.kind = EV_MSG,
                                  .from = (uint8_t)random_below(&random, HOMES_NODES),
                                  .self = to,
                                  .msg = &m,
                                  .view = &n->view};
            struct effects fx;
            fx.n = 0;
            homes_step(&n->homes, &event, &keys, &fx);
            for (uint32_t slot = 0; slot < HASH_SLOTS && n->homes.version != 0; slot += 1001) {
                assert_int_not_equal(slot_home_unpack(n->homes.map[slot]).state, HOME_NONE);
            }
        }
    }
}

/* ---- Rules ---- */

#ifdef HK_MUTANTS
#define OFF(rule) ((uint64_t)1 << HOMES_RULE_##rule)
#endif

static void write_all(struct homes_rig *r)
{
    for (uint8_t node = 0; node < HOMES_NODES; node++) {
        homes_rig_write(r, node);
    }
}

static uint64_t announced(const struct homes_rig *r)
{
    return r->nodes[0].homes.announced;
}

/* Everybody talks to the leader, node 0, and acts, until it announces that version; what it says
 * then is still to be delivered. */
static void until_announced(struct homes_rig *r, uint64_t version, bool movers)
{
    for (uint32_t i = 0; i < 1000 && announced(r) != version; i++) {
        (void)homes_rig_flush(r, 0, 1);
        for (uint8_t node = 0; node < HOMES_NODES; node++) {
            homes_rig_adopt(r, node);
            while (announced(r) != version && homes_rig_deliver(r, 0, node)) {
            }
            if (announced(r) != version) {
                (void)homes_rig_flush(r, node, 1);
                (void)(movers && homes_rig_move(r, node, HASH_SLOTS));
            }
            while (announced(r) != version && homes_rig_deliver(r, node, 0)) {
            }
        }
    }
    assert_int_equal(announced(r), version);
}

static void without_movers(struct homes_rig *r)
{
    for (uint32_t i = 0; i < 100; i++) {
        for (uint8_t node = 0; node < 4; node++) {
            (void)homes_rig_flush(r, node, 64);
            (void)homes_rig_deliver(r, 0, node);
            (void)homes_rig_deliver(r, node, 0);
        }
    }
}

/* Node 4 joins four others whose slots are all written, and serves from the newest view on. */
static void join(struct homes_rig *r, uint64_t rules_off)
{
    homes_rig_init(r, 4, rules_off, 1);
    homes_rig_exhaust(r);
    write_all(r);
    homes_rig_view(r, 0, nodeset_of(4), 0);
    homes_rig_exhaust(r);
    homes_rig_view(r, 0, 0, nodeset_of(4));
}

/* S5: of a change that begins several moves 2 gets all but the last run, and the leader dies. */
static const char *partial_map(uint64_t rules_off)
{
    struct homes_rig *r = &rig;
    join(r, rules_off);
    until_announced(r, ((uint64_t)3 << 32) + 1, true);
    (void)homes_rig_flush(r, 0, 64);
    struct homes_lane *lane = &r->lanes[0][2];
    while (lane->tail - lane->head > 1) { /* the last run stays behind */
        (void)homes_rig_deliver(r, 0, 2);
    }
    (void)homes_rig_flush(r, 2, 64);
    (void)homes_rig_move(r, 2, HASH_SLOTS);
    homes_rig_view(r, nodeset_of(0), 0, 0);
    for (uint32_t i = 0; i < 100 && r->nodes[2].map_version != (uint64_t)4 << 32; i++) {
        for (uint8_t node = 1; node < HOMES_NODES; node++) {
            homes_rig_adopt(r, node);
            (void)homes_rig_deliver(r, 1, node);
            (void)homes_rig_deliver(r, node, 1);
            (void)homes_rig_flush(r, node, 1);
        }
    }
    homes_rig_write(r, 2); /* whatever the next leader says that it is the home of */
    homes_rig_settle(r);
    return r->violation;
}

/* S8: 1 is the new home of an emptied slot; only 0 and 1 know; 1 takes an update; both die. */
static const char *emptied_home(uint64_t rules_off)
{
    struct homes_rig *r = &rig;
    homes_rig_init(r, 5, rules_off, 1);
    homes_rig_exhaust(r);
    write_all(r);
    homes_rig_view(r, nodeset_of(4), 0, 0);
    homes_rig_view(r, 0, nodeset_of(4), 0);
    homes_rig_exhaust(r);
    homes_rig_view(r, 0, 0, nodeset_of(4));
    homes_rig_exhaust(r);
    uint64_t version = r->nodes[0].homes.version;
    homes_rig_say(r, 0, SLOTS_EMPTY, 0);
    until_announced(r, version + 2, true);
    (void)homes_rig_flush(r, 0, 64);
    while (homes_rig_deliver(r, 0, 1)) {
    }
    (void)homes_rig_flush(r, 1, 64);
    homes_rig_write(r, 1);
    homes_rig_view(r, nodeset_of(0) | nodeset_of(1), 0, 0);
    homes_rig_settle(r);
    return r->violation;
}

/* S8: slots were moving to 4, which dies; their old homes still have the keys when the operator
 * gives the slots up, and are slow to purge them. */
static const char *not_purged(uint64_t rules_off)
{
    struct homes_rig *r = &rig;
    join(r, rules_off);
    until_announced(r, ((uint64_t)3 << 32) + 1, true);
    homes_rig_view(r, nodeset_of(4), 0, 0);
    uint64_t version = (uint64_t)4 << 32;
    until_announced(r, version, false);
    homes_rig_say(r, 0, SLOTS_EMPTY, 0);
    until_announced(r, version + 1, false);
    without_movers(r);
    homes_rig_settle(r);
    return r->violation;
}

/* S9: 1 leaves; when the second part of its slots begins to move it says again that nothing is left
 * of the first. */
static const char *late_moved(uint64_t rules_off)
{
    struct homes_rig *r = &rig;
    homes_rig_init(r, 4, rules_off, 1);
    homes_rig_exhaust(r);
    write_all(r);
    homes_rig_say(r, 1, SLOTS_LEAVE, 0);
    uint64_t version = r->nodes[0].homes.version;
    until_announced(r, version + 2, true);
    homes_rig_say(r, 1, SLOTS_MOVED, version + 1);
    without_movers(r);
    homes_rig_settle(r);
    return r->violation;
}

static void scenarios(void **state)
{
    (void)state;
    assert_null(partial_map(0));
    assert_null(emptied_home(0));
    assert_null(not_purged(0));
    assert_null(late_moved(0));
#ifdef HK_MUTANTS
    assert_non_null(partial_map(OFF(WHOLE)));
    assert_non_null(emptied_home(OFF(NAMED)));
    assert_non_null(not_purged(OFF(PURGED)));
    assert_non_null(late_moved(OFF(MOVED)));
#endif
}

/* All slots are in this state; whose, by everybody's table who lives. */
static void assert_slots(const struct homes_rig *r, enum home_state state, uint8_t home)
{
    for (uint8_t node = 0; node < HOMES_NODES; node++) {
        for (uint32_t i = 0; r->nodes[node].alive && i < HASH_SLOTS; i++) {
            struct slot_home h = slot_home_unpack(r->nodes[node].table[i]);
            assert_int_equal(h.state, state);
            assert_int_equal(h.home, home);
        }
    }
}

/* S16: what the maps of the first members say. */
static void assert_nobody(const struct homes_rig *r, uint32_t members, bool nobody)
{
    for (uint32_t node = 0; node < members; node++) {
        assert_int_equal(r->nodes[node].homes.nobody, nobody);
    }
}

/* S13: 3 has everything, as the others only compute, and dies. The operator gives its slots up in
 * vain until 4 is there, who may be a home; then he does it again. */
static void lost_while_all_compute(void **state)
{
    (void)state;
    struct homes_rig *r = &rig;
    homes_rig_init(r, 4, 0, 1);
    r->whole = true;
    r->computers = 1 | 2 | 4;
    homes_rig_exhaust(r);
    write_all(r);
    assert_slots(r, HOME_STABLE, 3);
    assert_nobody(r, 4, false);
    homes_rig_view(r, nodeset_of(3), 0, 0);
    homes_rig_exhaust(r);
    assert_slots(r, HOME_LOST, 3);
    assert_nobody(r, 3, true);
    uint64_t version = r->nodes[0].homes.version;
    homes_rig_say(r, 1, SLOTS_EMPTY, 0);
    homes_rig_exhaust(r);
    assert_slots(r, HOME_LOST, 3);
    assert_int_equal(r->nodes[0].homes.version, version);

    homes_rig_view(r, 0, nodeset_of(4), 0);
    homes_rig_exhaust(r);
    homes_rig_view(r, 0, 0, nodeset_of(4));
    homes_rig_exhaust(r);
    assert_slots(r, HOME_LOST, 3);
    assert_nobody(r, 3, false);
    homes_rig_say(r, 1, SLOTS_EMPTY, 0);
    homes_rig_exhaust(r);
    assert_slots(r, HOME_STABLE, 4);
    homes_rig_settle(r);
    assert_null(r->violation);
}

#ifdef HK_MUTANTS
/* With a rule off some run shows the fault. */
static void rules(void **state)
{
    (void)state;
    for (uint32_t rule = 0; rule < HOMES_RULES; rule++) {
        uint64_t rare = OFF(WHOLE) | OFF(NAMED) | OFF(PURGED) | OFF(MOVED);
        if ((rare >> rule & 1) != 0) {
            continue; /* see scenarios */
        }
        bool common = rule < HOMES_RULES_COMMON;
        const char *seen = NULL;
        uint64_t seed = 0;
        while (seen == NULL && seed < seeds(1000)) {
            seen =
                common ? run((uint64_t)1 << rule, ++seed) : run_whole((uint64_t)1 << rule, ++seed);
        }
        print_message("%s: seed %llu: %s\n", homes_rule_names[rule], (unsigned long long)seed,
                      seen != NULL ? seen : "nothing");
        assert_non_null(seen);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_shares),
        cmocka_unit_test(hostile_messages),
        cmocka_unit_test(hostile_members),
        cmocka_unit_test(scenarios),
        cmocka_unit_test(clusters),
        cmocka_unit_test(clusters_of_wholes),
        cmocka_unit_test(lost_while_all_compute),
#ifdef HK_MUTANTS
        cmocka_unit_test(rules),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
