/* Slots of a space of tables move between real nodes: what was put at their old homes is at their
 * new ones, once, whoever joins, leaves or dies meanwhile. Rows are put and looked at by hand;
 * locks are those of tries that the test holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/slot.h"
#include "node/lotus_home.h"
#include "support/node_cluster.h"

#define BOUND_US 30000000u
#define ROWS 3000u
#define NODES 4u

static struct lotus_config lotus;
static uint8_t roles[CLUSTER_NODES_MAX];

static void adjust(struct node_config *config, uint32_t node)
{
    config->role = roles[node];
}

static struct cluster *cluster_of(uint32_t nodes)
{
    struct cluster_config config = {.nodes = nodes,
                                    .workers = {2, 1, 1, 1},
                                    .ops = &lotus_ops,
                                    .engine = &lotus,
                                    .hot = {.off = true},
                                    .adjust = adjust,
                                    .seed = 11};
    lotus = (struct lotus_config){.tries_max = 64, .locks_max = 4096};
    memset(roles, NODE_ROLE_BOTH, sizeof roles);
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, BOUND_US);
    return c;
}

static struct worker *worker_of(struct cluster *c, uint32_t node)
{
    return node_worker(cluster_node(c, node), 0);
}

static struct space *space_of(struct cluster *c, uint32_t node)
{
    return &cluster_node(c, node)->spaces[0];
}

/* ---- Time ---- */

static bool settled(struct cluster *c, void *context)
{
    nodeset live = *(const nodeset *)context;
    uint64_t map = 0;
    for (nodeset rest = live; rest != 0; rest &= rest - 1) {
        uint32_t node = nodeset_first(rest);
        nodeset servers;
        uint64_t version = 0;
        uint32_t lost = 0;
        if (!lotus_servers(worker_of(c, node), 0, &servers, &version, &lost) ||
            (map != 0 && version != map) || (servers & ~live) != 0) {
            return false;
        }
        for (uint32_t i = 0; i < HASH_SLOTS; i++) {
            struct slot_home home = node_home(cluster_node(c, node), 0, i);
            if (home.state != HOME_STABLE) {
                return false;
            }
        }
        map = version;
    }
    return true;
}

/* No slot moves, is lost, or is left anywhere, by the maps of these. */
static void settle(struct cluster *c, nodeset live)
{
    cluster_until(c, settled, &live, BOUND_US);
}

struct wait {
    enum home_state state;
    uint8_t home;
    uint32_t node, slots;
};

static bool has_slots(struct cluster *c, void *context)
{
    const struct wait *wait = context;
    uint32_t n = 0;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home home = node_home(cluster_node(c, wait->node), 0, i);
        n += home.state == wait->state && home.home == wait->home;
    }
    return n >= wait->slots;
}

/* By node's map at least so many slots of that home are in that state. */
static void until(struct cluster *c, uint32_t node, enum home_state state, uint8_t home,
                  uint32_t slots)
{
    struct wait wait = {.state = state, .home = home, .node = node, .slots = slots};
    cluster_until(c, has_slots, &wait, BOUND_US);
}

/* ---- Rows ---- */

/* Row i: its key, its value, a deadline now and then; every 7th is a ghost, which stays behind when
 * its slot moves; one is large. */
struct expected {
    char key[32];
    struct lotus_row row;
    uint8_t *value;
};
static struct expected rows[ROWS];

static void make_rows(void)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        struct expected *e = &rows[i];
        uint32_t n = i == 77 ? 300000 : 8 + i % 100;
        int length = snprintf(e->key, sizeof e->key, "row:%u", i);
        bool ghost = i % 7 == 3;
        e->value = malloc(n);
        assert_non_null(e->value);
        memset(e->value, (int)(i & 0xff), n);
        e->row = (struct lotus_row){
            .flags = ghost        ? LOTUS_ROW_ABSENT
                     : i % 5 == 1 ? KEY_DEADLINE
                                  : 0,
            .version = stamp_make(i + 1, 3),
            .key = bytes_of(e->key, (uint32_t)length),
            .value = ghost ? bytes_of(NULL, 0) : bytes_of(e->value, n),
        };
        if (i % 5 == 1 && !ghost) {
            put_u64(e->value, UINT64_MAX / 2);
        }
    }
}

static void free_rows(void)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        free(rows[i].value);
    }
}

static uint8_t home_of(struct cluster *c, uint32_t node, struct bytes key)
{
    return node_home(cluster_node(c, node), 0, slot_of_key(key)).home;
}

/* Each at its home. */
static void fill(struct cluster *c, uint32_t by)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        uint8_t home = home_of(c, by, rows[i].row.key);
        assert_int_equal(
            lotus_table_put(space_of(c, home)->table, worker_of(c, home)->threads[0], &rows[i].row),
            TABLE_DONE);
    }
}

static struct expected *row_of(struct bytes key)
{
    uint32_t i = 0;
    assert_true(key.n > 4 && key.n < 12);
    for (uint32_t at = 4; at < key.n; at++) {
        i = i * 10 + (key.at[at] - '0');
    }
    assert_true(i < ROWS);
    return &rows[i];
}

/* Every row whose slot is not in `gone` is at its home, as it was, and nowhere else. */
static void check(struct cluster *c, nodeset live, const bool *gone)
{
    static bool met[ROWS];
    memset(met, 0, sizeof met);
    for (nodeset rest = live; rest != 0; rest &= rest - 1) {
        uint32_t node = nodeset_first(rest);
        _Alignas(8) uint8_t buffer[LOTUS_NEXT_BYTES];
        char after[32];
        uint32_t after_n = 0;
        struct lotus_row row;
        while (lotus_table_next(space_of(c, node)->table, worker_of(c, node)->threads[0],
                                bytes_of(after, after_n), after_n == 0, buffer, &row)) {
            const struct expected *e = row_of(row.key);
            memcpy(after, row.key.at, row.key.n);
            after_n = row.key.n;
            assert_int_equal(home_of(c, node, row.key), node);
            if ((row.flags & LOTUS_ROW_ABSENT) != 0) {
                assert_int_equal((e - rows) % 7, 3);
                continue;
            }
            assert_false(met[e - rows]);
            met[e - rows] = true;
            assert_int_equal(row.version, e->row.version);
            assert_int_equal(row.flags, e->row.flags);
            assert_true(bytes_equal(row.value, e->row.value));
        }
        assert_null(lotus_table_check(space_of(c, node)->table, worker_of(c, node)->threads[0]));
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        bool lost = gone != NULL && gone[slot_of_key(rows[i].row.key)];
        assert_int_equal(met[i], !lost && i % 7 != 3);
    }
}

/* ---- Tests ---- */

#define ALL(n) (nodeset_of(n) - 1)

/* Four nodes, of which the last is gone, and all rows at the others. */
static struct cluster *three_and_rows(void)
{
    make_rows();
    struct cluster *c = cluster_of(NODES);
    settle(c, ALL(4));
    cluster_kill(c, 3); /* nothing is in its slots yet */
    until(c, 0, HOME_LOST, 3, HASH_SLOTS / 4);
    worker_empty_lost(worker_of(c, 0), 0);
    settle(c, ALL(3));
    fill(c, 0);
    check(c, ALL(3), NULL);
    return c;
}

static void end(struct cluster *c)
{
    cluster_destroy(c);
    free_rows();
}

static void joins_get_their_share(void **state)
{
    (void)state;
    struct cluster *c = three_and_rows();
    cluster_restart(c, 3);
    until(c, 0, HOME_STABLE, 3, HASH_SLOTS / 4);
    settle(c, ALL(4));
    check(c, ALL(4), NULL);
    struct node_stats stats;
    node_stats(cluster_node(c, 0), &stats);
    assert_true(stats.moves > ROWS / 20 && stats.moves <= ROWS / 2);
    end(c);
}

static void who_leaves_gives_all_away(void **state)
{
    (void)state;
    make_rows();
    struct cluster *c = cluster_of(NODES);
    settle(c, ALL(4));
    fill(c, 0);
    worker_hand_over(worker_of(c, 2));
    assert_false(node_handed_over(cluster_node(c, 2)));
    for (uint32_t i = 0; i < 1000000 && !node_handed_over(cluster_node(c, 2)); i++) {
        cluster_step(c, 50);
    }
    assert_true(node_handed_over(cluster_node(c, 2)));
    settle(c, ALL(4));
    check(c, ALL(4), NULL);
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        assert_int_not_equal(node_home(cluster_node(c, 0), 0, i).home, 2);
    }
    cluster_destroy(c);
    free_rows();
}

/* Slots of which somebody's map says that the node has them, or had. */
static void note_homes(struct cluster *c, nodeset nodes, uint8_t home, bool *of)
{
    for (nodeset rest = nodes; rest != 0; rest &= rest - 1) {
        for (uint32_t i = 0; i < HASH_SLOTS; i++) {
            of[i] = of[i] || node_home(cluster_node(c, nodeset_first(rest)), 0, i).home == home;
        }
    }
}

/* The lost slots by node 0's map, which are of those, and are given up; how many. */
static uint32_t give_up(struct cluster *c, const bool *of, bool *lost)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        lost[i] = node_home(cluster_node(c, 0), 0, i).state == HOME_LOST;
        assert_true(!lost[i] || of[i]);
        n += lost[i];
    }
    worker_empty_lost(worker_of(c, 0), 0);
    return n;
}

static bool dropped(struct cluster *c, void *context)
{
    uint8_t node = *(const uint8_t *)context;
    struct node_status status;
    node_status(cluster_node(c, 0), cluster_now(c), &status);
    return !nodeset_has(status.view.live, node) && status.epoch_adopted == status.view.epoch &&
           node_map_version(cluster_node(c, 0), 0) >> 32 == status.view.epoch;
}

/* Node 3 joins, and so much later a node dies: what only that one has is lost, all else is there.
 * How many slots were lost. */
static uint32_t dies_while_slots_move(uint8_t node, uint64_t after_us)
{
    static bool of[HASH_SLOTS], lost[HASH_SLOTS];
    nodeset live = ALL(4) & ~nodeset_of(node);
    struct cluster *c = three_and_rows();
    cluster_restart(c, 3);
    until(c, 0, HOME_MOVING, 0, 1);
    for (uint64_t us = 0; us < after_us; us += 50) {
        cluster_step(c, 50);
    }
    memset(of, 0, sizeof of);
    note_homes(c, ALL(4), node, of);
    cluster_kill(c, node);
    uint64_t version = 0;
    for (uint32_t i = 0; i < 1000000 && !dropped(c, &node); i++) {
        if (node_map_version(cluster_node(c, 0), 0) != version) {
            version = node_map_version(cluster_node(c, 0), 0);
            note_homes(c, nodeset_of(0), node, of); /* what was on its way to it, too */
        }
        cluster_step(c, 50);
    }
    assert_true(dropped(c, &node));
    uint32_t n = give_up(c, of, lost);
    settle(c, live);
    check(c, live, lost);
    end(c);
    return n;
}

static void the_next_home_dies(void **state)
{
    (void)state;
    uint32_t none = 0;
    uint32_t some = 0;
    for (uint64_t us = 0; us < 8000; us += us < 500 ? 50 : 1500) {
        uint32_t n = dies_while_slots_move(3, us);
        none += n == 0;
        some += n > 0;
    }
    print_message("died before it had a slot %u times, and %u times after\n", none, some);
    assert_true(none > 3 && some > 0);
}

static void the_old_home_dies(void **state)
{
    (void)state;
    for (uint64_t us = 0; us < 4000; us += 800) {
        uint32_t n = dies_while_slots_move(1, us);
        assert_true(n >= HASH_SLOTS / 4 && n <= HASH_SLOTS / 3 + 1);
    }
}

/* ---- The asked server dies ---- */

static struct bytes key_of(struct cluster *c, uint32_t by, uint8_t home, char *buffer, size_t n)
{
    for (uint32_t i = 0;; i++) {
        int length = snprintf(buffer, n, "asked:%u", i);
        struct bytes key = bytes_of(buffer, (uint32_t)length);
        if (home_of(c, by, key) == home) {
            return key;
        }
    }
}

static bool nothing_at_3(struct cluster *c, void *context)
{
    (void)context;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home home = node_home(cluster_node(c, 1), 0, i);
        if (home.state != HOME_STABLE || home.home == 3) {
            return false;
        }
    }
    return true;
}

/* Node 1, which only computes, asks node 3 for a key, which holds 5; node 3 does not hear it. It
 * dies, after its slots have moved on or before. What is answered: to a read of the key alone, or
 * to a transaction that adds 1 to it and to one of node 0. once_out: the key is 5, or 6, then. */
static struct cluster_answer asked_dies(bool moved, bool adds, bool *once_out)
{
    lotus = (struct lotus_config){.tries_max = 64, .locks_max = 4096};
    memset(roles, NODE_ROLE_BOTH, sizeof roles);
    roles[1] = NODE_ROLE_COMPUTE;
    struct cluster *c = cluster_create(&(struct cluster_config){.nodes = NODES,
                                                                .workers = {1, 1, 1, 1},
                                                                .ops = &lotus_ops,
                                                                .engine = &lotus,
                                                                .hot = {.off = true},
                                                                .adjust = adjust,
                                                                .seed = 12});
    char names[2][32];
    cluster_until(c, cluster_serving, NULL, BOUND_US);
    settle(c, ALL(4));
    struct bytes key = key_of(c, 1, 3, names[0], sizeof names[0]);
    struct bytes other = key_of(c, 1, 0, names[1], sizeof names[1]);
    struct op put = {.kind = OP_SET, .key = key, .value = bytes_of("5", 1)};
    assert_int_equal(cluster_call(c, 1, &put).kind, ANSWER_OK);
    struct op ops[2] = {{.kind = OP_ADD, .key = key, .number = 1},
                        {.kind = OP_ADD, .key = other, .number = 1}};
    struct op get = {.kind = OP_GET, .key = key};
    struct txn_request txn = {.ops = ops, .ops_n = 2};
    cluster_cut(c, 1, 3, true);
    cluster_begin(c, 1, 0, &get, adds ? &txn : NULL);
    cluster_step(c, 50);
    if (moved) {
        worker_hand_over(worker_of(c, 3));
        cluster_until(c, nothing_at_3, NULL, BOUND_US);
    }
    cluster_kill(c, 3);
    struct cluster_answer a = cluster_end(c);
    struct cluster_answer after = cluster_call(c, 1, &get);
    *once_out = after.kind == ANSWER_VALUE && after.n == 1 && after.value[0] == (adds ? '6' : '5');
    cluster_destroy(c);
    return a;
}

/* What was lost was lost by the map, not because the coordinator knew an older one (C8). */
static void the_asked_server_dies(void **state)
{
    (void)state;
    bool once = false;
    for (uint32_t adds = 0; adds < 2; adds++) {
        struct cluster_answer a = asked_dies(true, adds == 1, &once);
        assert_int_not_equal(a.kind, ANSWER_ERROR);
        assert_true(once);
        a = asked_dies(false, adds == 1, &once);
        assert_int_equal(a.kind, ANSWER_ERROR);
        assert_int_equal(a.number, HK_ERR_LOSTSLOT);
        assert_false(once);
    }
}

/* ---- Tries: what their coordinator, worker 0 of node 1, says to node 0 ---- */

static void say(struct cluster *c, uint32_t try_slot, uint8_t kind, uint64_t arg,
                struct bytes value)
{
    struct worker *w = worker_of(c, 0);
    struct msg m = {
        .kind = kind,
        .slot = try_slot,
        .gen = 1,
        .epoch = w->view.epoch,
        .arg = arg,
        .value = value,
    };
    assert_null(lotus_msg_invalid(&m));
    lotus_home_message(w, &m, 1);
}

/* Asks for all that begins with "{tag}", where nothing is, of a slot of node 0. */
static void scan_tag(struct cluster *c, uint32_t try_slot, const char *from, const char *to)
{
    static uint8_t value[256];
    uint64_t version;
    nodeset servers;
    uint32_t lost;
    assert_true(lotus_servers(worker_of(c, 0), 0, &servers, &version, &lost));
    struct lotus_head head = {.age = {.us = 1000 + try_slot, .who = try_slot}, .map = version};
    struct lotus_item item = {
        .mode = LOCK_S,
        .flags = LOTUS_ITEM_RANGE,
        .key = bytes_of(from, (uint32_t)strlen(from)),
        .end = bytes_of(to, (uint32_t)strlen(to)),
    };
    uint8_t *at = lotus_item_put(lotus_head_put(value, &head), &item);
    say(c, try_slot, LOTUS_MSG_EXECUTE, 0, bytes_of(value, (uint32_t)(at - value)));
}

static uint64_t moved_rows(struct cluster *c, uint32_t node)
{
    struct node_stats stats;
    node_stats(cluster_node(c, node), &stats);
    return stats.moves;
}

static uint64_t refused_moved(struct cluster *c)
{
    struct node_stats stats;
    node_stats(cluster_node(c, 0), &stats);
    return stats.home_refused[LOTUS_MOVED];
}

static void pass_time(struct cluster *c, uint64_t us)
{
    for (uint64_t end = cluster_now(c) + us; cluster_now(c) < end;) {
        cluster_step(c, 100);
    }
}

/* M2: a try that has scanned before keeps all that moves from here, although no lock of it is of a
 * slot that moves. When it has ended the rows go. */
static void rows_wait_for_tries(void **state)
{
    (void)state;
    struct cluster *c = three_and_rows();
    scan_tag(c, 1, "{b}1", "{b}9");
    cluster_restart(c, 3);
    until(c, 0, HOME_MOVING, 0, 1);
    pass_time(c, 500000);
    assert_int_equal(moved_rows(c, 0), 0);
    until(c, 0, HOME_STABLE, 3, 1); /* others have given theirs */
    assert_true(moved_rows(c, 1) > 0);
    /* New ones are told at once that it moves: M1, R1. */
    uint64_t before = refused_moved(c);
    static const struct lotus_head head = {.age = {.us = 5000, .who = 9}};
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        if (node_home(cluster_node(c, 0), 0, i).state == HOME_MOVING) {
            assert_false(lotus_here(worker_of(c, 0), 0, i));
        }
    }
    uint8_t value[128];
    struct lotus_item all = {.mode = LOCK_S, .flags = LOTUS_ITEM_RANGE};
    uint8_t *at = lotus_item_put(lotus_head_put(value, &head), &all);
    say(c, 2, LOTUS_MSG_EXECUTE, 0, bytes_of(value, (uint32_t)(at - value)));
    pass_time(c, 200);
    assert_int_equal(refused_moved(c), before + 1);
    say(c, 1, LOTUS_MSG_ABORT, 0, bytes_of(NULL, 0));
    settle(c, ALL(4));
    assert_true(moved_rows(c, 0) > 0);
    check(c, ALL(4), NULL);
    end(c);
}

/* Who says nothing is wounded after a second, long before its lease is over; who is prepared is
 * not: its outcome ends it. */
static void tries_that_stay(void **state)
{
    (void)state;
    struct cluster *c = three_and_rows();
    scan_tag(c, 1, "{b}1", "{b}9");
    cluster_restart(c, 3);
    until(c, 0, HOME_MOVING, 0, 1);
    pass_time(c, 900000);
    assert_int_equal(moved_rows(c, 0), 0);
    pass_time(c, 300000);
    assert_true(moved_rows(c, 0) > 0);
    settle(c, ALL(4));
    check(c, ALL(4), NULL);

    uint8_t participants[8];
    put_u64(participants, nodeset_of(0) | nodeset_of(1));
    scan_tag(c, 3, "{b}1", "{b}9");
    say(c, 3, LOTUS_MSG_PREPARE, 1, bytes_of(participants, 8));
    worker_hand_over(worker_of(c, 2)); /* nothing of node 0's moves ... */
    for (uint32_t i = 0; i < 1000000 && !node_handed_over(cluster_node(c, 2)); i++) {
        cluster_step(c, 50);
    }
    uint64_t moves = moved_rows(c, 0);
    worker_hand_over(worker_of(c, 0)); /* ... and now all */
    until(c, 0, HOME_MOVING, 0, 1);
    pass_time(c, 3000000);
    assert_int_equal(moved_rows(c, 0), moves);
    say(c, 3, LOTUS_MSG_COMMIT, 0, bytes_of(NULL, 0));
    for (uint32_t i = 0; i < 1000000 && !node_handed_over(cluster_node(c, 0)); i++) {
        cluster_step(c, 50);
    }
    assert_true(node_handed_over(cluster_node(c, 0)));
    settle(c, ALL(4));
    check(c, ALL(4), NULL);
    end(c);
}

/* M5: what is left waits for who has its row; and while anything is left of what
 * has gone, its old home answers no range. */
static void locks_of_others(void **state)
{
    (void)state;
    struct cluster *c = three_and_rows();
    struct lotus_table *table = space_of(c, 0)->table;
    struct store_thread *thread = worker_of(c, 0)->threads[0];
    struct lotus_holder holder = {.status = 5}; /* of no try that anybody knows */
    struct lotus_row row;
    _Alignas(8) uint8_t buffer[LOTUS_NEXT_BYTES];
    uint32_t i = 0;
    while (home_of(c, 0, rows[i].row.key) != 0 || i % 7 == 3) {
        i++;
    }
    holder.age = (struct lock_age){.us = 7, .who = 7};
    lotus_table_begin(table, &holder);
    assert_int_equal(
        lotus_table_point(table, thread, &holder, rows[i].row.key, 0, LOCK_S, true, buffer, &row),
        TABLE_DONE);
    worker_hand_over(worker_of(c, 0));
    pass_time(c, 2000000);
    nodeset servers;
    uint64_t version;
    uint32_t lost;
    assert_false(lotus_servers(worker_of(c, 0), 0, &servers, &version, &lost));
    assert_true(lotus_servers(worker_of(c, 1), 0, &servers, &version, &lost));
    lotus_table_end(table, thread, &holder);
    settle(c, ALL(3));
    check(c, ALL(3), NULL);
    end(c);
}

/* The row that node 0 has, gives to node 3 when that joins, and gets back when that leaves. Where
 * slots go follows from who has how many. */
static uint32_t goes_and_comes_back(void)
{
    static bool went[ROWS];
    struct cluster *c = three_and_rows();
    uint32_t i = 0;
    for (uint32_t k = 0; k < ROWS; k++) {
        went[k] = home_of(c, 0, rows[k].row.key) == 0 && k % 7 != 3;
    }
    cluster_restart(c, 3);
    until(c, 0, HOME_STABLE, 3, HASH_SLOTS / 4);
    settle(c, ALL(4));
    for (uint32_t k = 0; k < ROWS; k++) {
        went[k] = went[k] && home_of(c, 0, rows[k].row.key) == 3;
    }
    worker_hand_over(worker_of(c, 3));
    until(c, 0, HOME_STABLE, 0, HASH_SLOTS / 3);
    settle(c, ALL(4));
    while (i < ROWS && !(went[i] && home_of(c, 0, rows[i].row.key) == 0)) {
        i++;
    }
    assert_true(i < ROWS);
    end(c);
    return i;
}

/* M6: a slot does not come back to node 0 before what is left of it there has been removed, which
 * waits for who owns the gap before its row, and the row alone could be put. */
static void not_back_over_what_is_left(void **state)
{
    (void)state;
    uint32_t i = goes_and_comes_back();
    struct cluster *c = three_and_rows();
    struct lotus_table *table = space_of(c, 0)->table;
    struct store_thread *thread = worker_of(c, 0)->threads[0];
    struct lotus_holder holder = {.status = 5, .age = {.us = 7, .who = 7}}; /* nobody's try */
    struct lotus_row row;
    _Alignas(8) uint8_t buffer[LOTUS_NEXT_BYTES];
    bool more = true;
    char before[sizeof rows[i].key + 1];
    snprintf(before, sizeof before, "%s~", rows[i].key);
    before[rows[i].row.key.n - 1]--; /* no row is behind this and before that one */
    struct lotus_scan scan = {.item = {.mode = LOCK_S,
                                       .flags = LOTUS_ITEM_RANGE,
                                       .key = bytes_of(before, rows[i].row.key.n + 1),
                                       .end = rows[i].row.key}};
    lotus_table_begin(table, &holder);
    assert_int_equal(lotus_table_scan(table, thread, &holder, &scan, buffer, &row, &more),
                     TABLE_DONE);
    lotus_scan_end(&scan, thread);
    cluster_restart(c, 3);
    until(c, 0, HOME_STABLE, 3, HASH_SLOTS / 4);
    assert_int_equal(home_of(c, 0, rows[i].row.key), 3);
    worker_hand_over(worker_of(c, 3));
    pass_time(c, 2000000);
    assert_int_equal(home_of(c, 0, rows[i].row.key), 3); /* still on its way */
    lotus_table_end(table, thread, &holder);
    settle(c, ALL(4));
    assert_int_equal(home_of(c, 0, rows[i].row.key), 0);
    check(c, ALL(4), NULL);
    end(c);
}

/* What no member says, and what one says too late, or twice. */
static void strange_messages(void **state)
{
    (void)state;
    struct cluster *c = three_and_rows();
    uint8_t value[256];
    uint32_t i = 0;
    while (home_of(c, 0, rows[i].row.key) != 0) {
        i++;
    }
    struct lotus_row row = {.version = 99, .key = rows[i].row.key, .value = bytes_of("no", 2)};
    uint8_t *at = lotus_row_put(value, &row);
    struct msg rows_of = {.kind = LOTUS_MSG_ROWS,
                          .epoch = worker_of(c, 0)->view.epoch,
                          .arg = 1,
                          .value = bytes_of(value, (uint32_t)(at - value))};
    struct msg taken = {.kind = LOTUS_MSG_TAKEN, .slot = UINT32_MAX, .arg = 1};
    for (uint32_t from = 0; from <= NODES_MAX; from++) {
        lotus_move_message(worker_of(c, 0), &rows_of,
                           from == NODES_MAX ? NODE_NONE : (uint8_t)from);
        lotus_move_message(worker_of(c, 0), &taken, from == NODES_MAX ? NODE_NONE : (uint8_t)from);
    }
    check(c, ALL(3), NULL);
    cluster_restart(c, 3);
    until(c, 0, HOME_MOVING, 0, 1);
    for (uint32_t k = 0; k < 2000; k++) {
        taken.arg = k % 8;
        taken.slot = k % 2 == 0 ? UINT32_MAX : 1;
        lotus_move_message(worker_of(c, 0), &taken, 2); /* to which nothing goes */
        cluster_step(c, 50);
    }
    settle(c, ALL(4));
    check(c, ALL(4), NULL);
    end(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_get_their_share), cmocka_unit_test(who_leaves_gives_all_away),
        cmocka_unit_test(the_next_home_dies),    cmocka_unit_test(the_asked_server_dies),
        cmocka_unit_test(the_old_home_dies),     cmocka_unit_test(rows_wait_for_tries),
        cmocka_unit_test(tries_that_stay),       cmocka_unit_test(locks_of_others),
        cmocka_unit_test(strange_messages),      cmocka_unit_test(not_back_over_what_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
