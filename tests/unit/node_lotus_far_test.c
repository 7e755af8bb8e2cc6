/* Lotus where homes have little room: values of rows go to memory servers and come back, and no
 * client sees a difference, whatever moves, leaves or dies; but slots of lost rows are LOST. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/random.h"
#include "base/slot.h"
#include "node/lotus_home.h"
#include "support/node_cluster.h"

#define BOUND_US 30000000u
#define SPAN 64u /* of commands between two looks at everything */

static struct lotus_config lotus;
static uint8_t roles[CLUSTER_NODES_MAX];

static void adjust(struct node_config *config, uint32_t node)
{
    config->role = roles[node];
}

static struct cluster *start(uint32_t nodes, uint32_t workers, uint64_t near_max)
{
    struct cluster_config config = {.nodes = nodes,
                                    .ops = &lotus_ops,
                                    .engine = &lotus,
                                    .adjust = adjust,
                                    .hot = {.off = true},
                                    .seed = 3 + nodes + workers};
    for (uint32_t i = 0; i < nodes; i++) {
        config.workers[i] = workers;
    }
    lotus = (struct lotus_config){.tries_max = 64, .locks_max = 4096, .near_max = near_max};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, BOUND_US);
    return c;
}

static struct space *space_of(struct cluster *c, uint32_t node)
{
    return &cluster_node(c, node)->spaces[0];
}

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static uint64_t sum_stats(struct cluster *c, uint32_t nodes, size_t offset)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        struct node_stats s;
        if (cluster_alive(c, i)) {
            node_stats(cluster_node(c, i), &s);
            sum += *(const uint64_t *)(const void *)((const char *)&s + offset);
        }
    }
    return sum;
}
#define STATS(c, nodes, name) sum_stats(c, nodes, offsetof(struct node_stats, name))

/* ---- A model: keys and values that are text ---- */

#define KEYS 48u
struct model {
    char key[KEYS][16];
    char value[KEYS][600]; /* empty: absent */
    uint32_t deaths;       /* LOSTSLOT was answered */
};

static void model_init(struct model *m)
{
    memset(m, 0, sizeof *m);
    for (uint32_t k = 0; k < KEYS; k++) {
        (void)snprintf(m->key[k], sizeof m->key[k], "key-%02u", k);
    }
}

static void make_value(char *out, uint32_t n, uint32_t number)
{
    int head = snprintf(out, 600, "%u:", number);
    memset(out + head, 'a' + (int)(number % 26), n - (uint32_t)head);
    out[n] = 0;
}

static void check(struct cluster *c, struct model *m, uint32_t node, uint32_t k)
{
    struct op get = {.kind = OP_GET, .key = text(m->key[k])};
    struct cluster_answer a = cluster_call(c, node, &get);
    if (a.kind == ANSWER_ERROR && a.number == HK_ERR_LOSTSLOT) {
        m->deaths++;
        return;
    }
    if (m->value[k][0] == 0) {
        assert_int_equal(a.kind, ANSWER_NIL);
        return;
    }
    assert_int_equal(a.kind, ANSWER_VALUE);
    assert_int_equal(a.n, strlen(m->value[k]));
    assert_memory_equal(a.value, m->value[k], a.n);
}

static void check_all(struct cluster *c, struct model *m, uint32_t node)
{
    for (uint32_t k = 0; k < KEYS; k++) {
        check(c, m, node, k);
    }
}

static void set(struct cluster *c, struct model *m, uint32_t node, uint32_t k, uint32_t number)
{
    make_value(m->value[k], 100 + number * 37 % 400, number);
    struct op op = {.kind = OP_SET, .key = text(m->key[k]), .value = text(m->value[k])};
    assert_int_equal(cluster_call(c, node, &op).kind, ANSWER_OK);
}

/* What a worker's table says of itself, on every live node that is at rest. */
static void check_tables(struct cluster *c, uint32_t nodes)
{
    for (uint32_t i = 0; i < nodes; i++) {
        if (cluster_alive(c, i)) {
            struct worker *w = node_worker(cluster_node(c, i), 0);
            const char *broken = lotus_table_check(space_of(c, i)->table, w->threads[0]);
            assert_null(broken);
        }
    }
}

static bool has_room(struct cluster *c, void *context)
{
    uint32_t nodes = *(const uint32_t *)context;
    for (uint32_t i = 0; i < nodes; i++) {
        const struct space *sp = cluster_alive(c, i) ? space_of(c, i) : NULL;
        if (sp != NULL && (lotus_table_near_bytes(sp->table) > lotus.near_max ||
                           atomic_load(&sp->lotus->storing) != 0)) {
            return false;
        }
    }
    return true;
}

static void until_room(struct cluster *c, uint32_t nodes)
{
    cluster_until(c, has_room, &nodes, BOUND_US);
}

/* Cells are those that rows name. */
static void check_cells(struct cluster *c, uint32_t nodes)
{
    uint64_t cells = 0, named = 0;
    for (uint32_t i = 0; i < 200; i++) {
        cluster_step(c, 1000);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        struct worker *w = node_worker(cluster_node(c, i), 0);
        _Alignas(8) uint8_t buffers[2][LOTUS_NEXT_BYTES];
        struct bytes after = bytes_of(NULL, 0);
        struct lotus_row row;
        struct lotus_far far;
        bool near;
        cells += atomic_load(&space_of(c, i)->lotus->cells);
        for (uint32_t k = 0; lotus_table_next_far(space_of(c, i)->table, w->threads[0], after,
                                                  after.n == 0, buffers[k % 2], &row, &far, &near);
             k++) {
            named += far.id != 0;
            after = row.key;
        }
    }
    assert_int_equal(cells, named);
}

/* ---- What nothing happens to ---- */

static void values_go_and_come_back(void **state)
{
    (void)state;
    memset(roles, NODE_ROLE_BOTH, sizeof roles);
    struct model m;
    struct cluster *c = start(3, 2, 1000);
    model_init(&m);
    for (uint32_t k = 0; k < KEYS; k++) {
        set(c, &m, k % 3, k, k);
    }
    until_room(c, 3);
    assert_true(STATS(c, 3, far_stores) >= KEYS / 2);
    uint64_t cells = 0;
    for (uint32_t i = 0; i < 3; i++) {
        cells += atomic_load(&space_of(c, i)->lotus->cells);
        assert_true(lotus_table_near_bytes(space_of(c, i)->table) <= 1000);
    }
    assert_true(cells >= KEYS / 2);
    for (uint32_t i = 0; i < 3; i++) {
        check_all(c, &m, i);
    }
    assert_true(STATS(c, 3, far_fetches) > 0);
    assert_true(STATS(c, 3, far_clean) > 0); /* what was only read goes without a word */
    check_tables(c, 3);
    for (uint32_t k = 0; k < KEYS; k++) {
        struct op gone = {.kind = OP_DELETE, .key = text(m.key[k])};
        assert_int_equal(cluster_call(c, k % 3, &gone).number, 1);
    }
    /* Nobody needs their cells any more. */
    for (uint32_t i = 0; i < 100; i++) {
        cluster_step(c, 1000);
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(atomic_load(&space_of(c, i)->lotus->cells), 0);
        assert_int_equal(lotus_table_near_bytes(space_of(c, i)->table), 0);
    }
    cluster_destroy(c);
}

/* Random commands, one after the other; whoever is asked, the answers are the model's. */
static void random_commands(struct cluster *c, struct model *m, struct random *r, uint32_t nodes,
                            uint32_t commands)
{
    for (uint32_t i = 0; i < commands; i++) {
        uint32_t node = (uint32_t)random_below(r, nodes), k = (uint32_t)random_below(r, KEYS);
        struct op op = {.kind = OP_DELETE, .key = text(m->key[k])};
        if (!cluster_alive(c, node) || roles[node] == NODE_ROLE_MEMORY) {
            continue;
        }
        switch (random_below(r, 6)) {
        case 0:
            assert_int_equal(cluster_call(c, node, &op).number, m->value[k][0] != 0);
            m->value[k][0] = 0;
            break;
        case 1:
            op = (struct op){.kind = OP_APPEND, .key = text(m->key[k]), .value = text("+")};
            if (strlen(m->value[k]) < 590) {
                strcat(m->value[k], "+");
                assert_int_equal(cluster_call(c, node, &op).number, strlen(m->value[k]));
            }
            break;
        case 2:
        case 3:
            set(c, m, node, k, (uint32_t)random_below(r, 100000));
            break;
        default:
            check(c, m, node, k);
            break;
        }
    }
}

static void commands_give_what_they_do_elsewhere(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 6; seed++) {
        struct random r;
        struct model m;
        uint32_t nodes = 2 + seed % 3;
        random_init(&r, seed);
        memset(roles, NODE_ROLE_BOTH, sizeof roles);
        struct cluster *c = start(nodes, 1 + seed % 2, seed % 2 != 0 ? 1 : 3000);
        model_init(&m);
        for (uint32_t i = 0; i < 10; i++) {
            random_commands(c, &m, &r, nodes, SPAN);
            check_tables(c, nodes);
        }
        check_all(c, &m, 0);
        assert_int_equal(m.deaths, 0);
        assert_true(STATS(c, nodes, far_fetches) > 0);
        check_cells(c, nodes);
        cluster_destroy(c);
    }
}

/* Of a range's answer; what fits into the answer of it. */
static void first_is(const struct cluster_op_answer *a, const struct model *m, uint32_t k)
{
    struct bytes rest = bytes_of(a->value, a->n < sizeof a->value ? a->n : sizeof a->value);
    struct bytes key, value;
    assert_true(txn_pair_take(&rest, &key, &value));
    assert_true(bytes_equal(key, text(m->key[k])));
    assert_true(bytes_equal(value, text(m->value[k])));
}

/* Ranges of all rows, forwards and backwards, with and without values, in one step with writes. */
static void ranges_and_transactions(void **state)
{
    (void)state;
    memset(roles, NODE_ROLE_BOTH, sizeof roles);
    struct model m;
    struct cluster *c = start(3, 1, 1);
    model_init(&m);
    for (uint32_t k = 0; k < KEYS; k++) {
        set(c, &m, k % 3, k, k);
    }
    until_room(c, 3);
    for (uint32_t round = 0; round < 6; round++) {
        struct op ops[4] = {
            {.kind = OP_APPEND, .key = text(m.key[round]), .value = text("!")},
            {.kind = TXN_OP_RANGE, .key = text("key-"), .arg = text("key-99")},
            {.kind = TXN_OP_RANGE, .number = 2, .flags = TXN_OPF_REVERSE},
            {.kind = OP_STRLEN, .key = text(m.key[round + 20])},
        };
        uint32_t last = KEYS - 1;
        struct txn_request txn = {.ops = ops, .ops_n = 4};
        struct cluster_txn_answer a = cluster_transact(c, round % 3, 0, &txn);
        strcat(m.value[round], "!");
        assert_int_equal(a.n, 4);
        assert_int_equal(a.answers[1].number, KEYS);
        first_is(&a.answers[1], &m, 0);
        assert_int_equal(a.answers[2].number, 2);
        first_is(&a.answers[2], &m, last);
        assert_int_equal(a.answers[3].number, strlen(m.value[round + 20]));
    }
    check_all(c, &m, 1);
    check_tables(c, 3);
    cluster_destroy(c);
}

/* ---- Roles ---- */

static void computers_own_and_memory_keeps(void **state)
{
    (void)state;
    struct model m;
    static const uint8_t parts[] = {NODE_ROLE_COMPUTE, NODE_ROLE_COMPUTE, NODE_ROLE_MEMORY,
                                    NODE_ROLE_MEMORY};
    memcpy(roles, parts, sizeof parts);
    struct cluster *c = start(4, 1, 500);
    model_init(&m);
    for (uint32_t k = 0; k < KEYS; k++) {
        set(c, &m, k % 2, k, k);
    }
    until_room(c, 4);
    for (uint32_t i = 0; i < 4; i++) {
        struct lotus_table_stats stats;
        uint64_t cells = atomic_load(&space_of(c, i)->lotus->cells);
        lotus_table_stats(space_of(c, i)->table, &stats);
        assert_int_equal(cells > 0, i >= 2);
        assert_int_equal(stats.rows > 0, i < 2);
    }
    check_all(c, &m, 0);
    check_all(c, &m, 1);
    cluster_destroy(c);
}

/* ---- Who leaves, and who dies ---- */

static bool handed_over(struct cluster *c, void *context)
{
    return node_handed_over(cluster_node(c, *(const uint32_t *)context));
}

/* Whoever leaves, owner or memory server, takes nothing with it. */
static void who_leaves_takes_nothing(void **state)
{
    (void)state;
    for (uint32_t leaver = 0; leaver < 3; leaver++) {
        struct model m;
        memset(roles, NODE_ROLE_BOTH, sizeof roles);
        struct cluster *c = start(3, 1 + leaver % 2, 600);
        model_init(&m);
        for (uint32_t k = 0; k < KEYS; k++) {
            set(c, &m, k % 3, k, k);
        }
        until_room(c, 3);
        worker_hand_over(node_worker(cluster_node(c, leaver), 0));
        cluster_until(c, handed_over, &leaver, BOUND_US);
        assert_int_equal(atomic_load(&space_of(c, leaver)->lotus->cells), 0);
        cluster_kill(c, leaver);
        check_all(c, &m, (leaver + 1) % 3);
        check_all(c, &m, (leaver + 2) % 3);
        assert_int_equal(m.deaths, 0);
        cluster_destroy(c);
    }
}

/* A memory server dies with cells: their slots are LOST, and nothing else changes. */
static void a_dead_memory_server_loses_slots(void **state)
{
    (void)state;
    struct model m;
    static const uint8_t parts[] = {NODE_ROLE_COMPUTE, NODE_ROLE_COMPUTE, NODE_ROLE_MEMORY,
                                    NODE_ROLE_MEMORY};
    memcpy(roles, parts, sizeof parts);
    struct cluster *c = start(4, 1, 4000);
    model_init(&m);
    for (uint32_t k = 0; k < KEYS; k++) {
        set(c, &m, k % 2, k, k);
    }
    until_room(c, 4);
    uint64_t cells = atomic_load(&space_of(c, 3)->lotus->cells);
    assert_true(cells > 0 && cells < KEYS / 2);
    cluster_kill(c, 3);
    check_all(c, &m, 0);
    assert_int_equal(m.deaths, cells);
    /* Nobody has read anything there: the map says so all the same. */
    uint32_t lost = 0;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        lost += node_home(cluster_node(c, 1), 0, i).state == HOME_LOST;
    }
    assert_int_equal(lost, cells);
    cluster_destroy(c);
}

static bool all_lost(struct cluster *c, void *context)
{
    const uint32_t *want = context;
    uint32_t lost = 0;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        lost += node_home(cluster_node(c, 1), 0, i).state == HOME_LOST;
    }
    return lost == *want;
}

static void nobody_has_to_ask_for_what_is_lost(void **state)
{
    (void)state;
    struct model m;
    static const uint8_t parts[] = {NODE_ROLE_COMPUTE, NODE_ROLE_COMPUTE, NODE_ROLE_MEMORY,
                                    NODE_ROLE_MEMORY};
    memcpy(roles, parts, sizeof parts);
    struct cluster *c = start(4, 2, 1);
    model_init(&m);
    for (uint32_t k = 0; k < KEYS; k++) {
        set(c, &m, k % 2, k, k);
    }
    until_room(c, 4);
    uint32_t cells = (uint32_t)atomic_load(&space_of(c, 2)->lotus->cells);
    cluster_kill(c, 2);
    cluster_until(c, all_lost, &cells, BOUND_US);
    check_all(c, &m, 1);
    assert_int_equal(m.deaths, cells);
    cluster_destroy(c);
}

/* ---- A worker that is behind ---- */

static bool no_debt(struct cluster *c, void *context)
{
    (void)c;
    return (*(const struct home_far **)context)->later.n == 0;
}

/* The row names a cell of a life that its reader's view does not have yet, as if another worker had
 * adopted the next view and let it go there (F4): it is not lost, and who writes it owes FORGET. */
static void who_is_behind_waits(void **state)
{
    (void)state;
    memset(roles, NODE_ROLE_BOTH, sizeof roles);
    struct model m;
    struct cluster *c = start(3, 1, 100000);
    model_init(&m);
    set(c, &m, 0, 0, 5);
    struct bytes key = text(m.key[0]), value = text(m.value[0]);
    uint32_t home = node_home(cluster_node(c, 0), 0, slot_of_key(key)).home;
    struct worker *w = node_worker(cluster_node(c, home), 0);
    struct lotus_table *table = space_of(c, home)->table;
    _Alignas(8) uint8_t buffer[LOTUS_NEXT_BYTES];
    struct lotus_row row;
    assert_true(lotus_table_next(table, w->threads[0], key, true, buffer, &row));
    struct lotus_far far = {.id = lotus_cell_id(0, 999),
                            .life = w->view.epoch + 1,
                            .bytes = value.n,
                            .node = (uint8_t)((home + 1) % 3)};
    assert_int_equal(lotus_table_let_go(table, w->threads[0], key, row.version, &far), TABLE_DONE);
    struct op get = {.kind = OP_GET, .key = key};
    cluster_begin(c, home, 0, &get, NULL);
    for (uint32_t i = 0; i < 300; i++) {
        cluster_step(c, 1000);
    }
    assert_int_equal(node_home(cluster_node(c, home), 0, slot_of_key(key)).state, HOME_STABLE);
    enum table_word word = TABLE_WAITS;
    for (uint32_t i = 0; i < 1000 && word == TABLE_WAITS; i++) {
        word = lotus_table_home(table, w->threads[0], key, &far, value);
        cluster_step(c, 50);
    }
    assert_int_equal(word, TABLE_DONE);
    struct cluster_answer a = cluster_end(c);
    assert_int_equal(a.kind, ANSWER_VALUE);
    assert_int_equal(a.n, value.n);
    struct home_far *of = w->lotus_home->spaces[0]->far;
    assert_int_equal(of->later.n, sizeof far);
    cluster_kill(c, far.node);
    cluster_restart(c, far.node);
    cluster_until(c, no_debt, &of, BOUND_US);
    cluster_destroy(c);
}

/* ---- What no correct member says ---- */

static void say_anything(struct cluster *c, struct random *r, uint32_t workers)
{
    static const uint8_t value[300] = {1};
    uint32_t to = (uint32_t)random_below(r, 2), worker = (uint32_t)random_below(r, workers);
    struct worker *w = node_worker(cluster_node(c, to), worker);
    bool any = random_chance(r, 100000);
    struct msg m = {
        .kind = (uint8_t)(LOTUS_MSG_STORE + random_below(r, LOTUS_MSG_END - LOTUS_MSG_STORE)),
        .slot = any ? (uint32_t)random_next(r)
                    : lotus_slot((uint32_t)random_below(r, 3), (uint32_t)random_below(r, 70)),
        .gen = (uint32_t)random_below(r, 3),
        .epoch = w->view.epoch - (uint32_t)random_below(r, 2),
        .arg = any ? random_next(r)
                   : lotus_cell_id((uint32_t)random_below(r, 3), 1 + random_below(r, 90)),
        .ts = random_below(r, 3),
    };
    if (m.kind == LOTUS_MSG_STORE || (m.kind == LOTUS_MSG_FETCHED && m.ts == 0)) {
        m.value = bytes_of(value, (uint32_t)random_below(r, sizeof value));
    }
    m.arg = m.kind == LOTUS_MSG_RECALL ? 0 : m.arg;
    m.ts = m.kind == LOTUS_MSG_STORED ? m.ts : m.kind == LOTUS_MSG_FETCHED ? m.ts % 2 : 0;
    /* FETCHED in the name of a fetch that there is, with bytes, would be believed: of it only what
     * nobody asked for. */
    m.gen = m.kind == LOTUS_MSG_FETCHED ? UINT32_MAX : m.gen;
    if (lotus_msg_invalid(&m) == NULL) {
        uint32_t from = (uint32_t)random_below(r, 5);
        lotus_home_message(w, &m, from == 4 ? NODE_NONE : (uint8_t)from);
    }
}

/* Whatever it says: the other node and this one go on, and no answer is wrong; cells that a member
 * gives up in another's name are lost, and are said to be. */
static void a_member_says_anything(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 4; seed++) {
        struct random r;
        struct model m;
        random_init(&r, seed);
        memset(roles, NODE_ROLE_BOTH, sizeof roles);
        struct cluster *c = start(2, 2, 800);
        model_init(&m);
        for (uint32_t k = 0; k < KEYS; k++) {
            set(c, &m, k % 2, k, k);
        }
        for (uint32_t i = 0; i < 3000; i++) {
            say_anything(c, &r, 2);
            if (i % 50 == 0) {
                check(c, &m, i % 2, (uint32_t)random_below(&r, KEYS));
            }
        }
        check_all(c, &m, 0);
        check_all(c, &m, 1);
        check_tables(c, 2);
        cluster_destroy(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_go_and_come_back),
        cmocka_unit_test(commands_give_what_they_do_elsewhere),
        cmocka_unit_test(ranges_and_transactions),
        cmocka_unit_test(computers_own_and_memory_keeps),
        cmocka_unit_test(who_leaves_takes_nothing),
        cmocka_unit_test(a_dead_memory_server_loses_slots),
        cmocka_unit_test(nobody_has_to_ask_for_what_is_lost),
        cmocka_unit_test(who_is_behind_waits),
        cmocka_unit_test(a_member_says_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
