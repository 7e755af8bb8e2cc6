/* Ownership on real nodes: objects move, are repaired, forgotten, pushed to who joins, and survive
 * crashes. There are no transactions here: the tests ask for levels, and change values at an owner
 * and its readers by hand, all at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/random.h"
#include "node/own_internal.h"
#include "support/node_cluster.h"

#define KEYS 24u
#define STEP_US 50u
#define BOUND_US 20000000u

static const struct zeus_config zeus = {.own = {.backoff_us = 200}};

static const struct zeus_config zeus_alone = {.own = {.backoff_us = 200, .degree = 1}};
static const struct zeus_config zeus_pair = {.own = {.backoff_us = 200, .degree = 2}};

struct rig {
    struct cluster *cluster;
    uint32_t nodes;
    uint32_t degree;
    struct random random;
    uint64_t committed[KEYS]; /* version; 0: never */
};

static struct bytes key_of(uint32_t i)
{
    static _Thread_local char text[48];
    int n =
        snprintf(text, sizeof text, "%s-%u", i % 3 == 0 ? "an object with a long name" : "o", i);
    return bytes_of(text, (uint32_t)n);
}

/* ---- An object at a node ---- */

struct look {
    struct key_meta meta;
    bool found;
    bool owned;
};

static struct look look_at(struct rig *rig, uint32_t node, struct bytes key)
{
    struct node *n = cluster_node(rig->cluster, node);
    struct store *store = node_store(n, 0);
    struct store_ref ref;
    struct look look = {.found = false};
    store_lock(store, worker_store_thread(node_worker(n, 0), 0), key, store_hash(store, key), &ref);
    if (ref.object != NULL) {
        look.found = true;
        look.meta = store_meta(&ref);
        look.owned = (look.meta.flags & ZEUS_OWNED) != 0;
    }
    store_unlock(&ref);
    return look;
}

static struct own_entry entry_at(struct rig *rig, uint32_t node, struct bytes key)
{
    struct node *n = cluster_node(rig->cluster, node);
    struct store *store = n->spaces[0].directory;
    struct own_entry entry = {.ts = 0};
    struct store_ref ref;
    store_lock(store, n->workers[0].directories[0], key, store_hash(store, key), &ref);
    if (ref.object != NULL) {
        struct bytes value = store_value_of(&ref, NULL, 0);
        entry.ts = store_meta(&ref).ts;
        entry.vector.readers = get_u64(value.at);
        entry.vector.epoch = get_u32(value.at + 8);
        entry.vector.owner = value.at[12];
    }
    store_unlock(&ref);
    return entry;
}

static uint32_t owner_of(struct rig *rig, uint32_t key)
{
    uint32_t owner = NODE_NONE;
    for (uint32_t i = 0; i < rig->nodes; i++) {
        if (cluster_alive(rig->cluster, i) && look_at(rig, i, key_of(key)).owned) {
            assert_int_equal(owner, NODE_NONE);
            owner = i;
        }
    }
    return owner;
}

static uint32_t replicas_of(struct rig *rig, uint32_t key)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < rig->nodes; i++) {
        n += cluster_alive(rig->cluster, i) && look_at(rig, i, key_of(key)).found;
    }
    return n;
}

static void want(struct rig *rig, uint32_t node, uint32_t worker, uint32_t key, enum own_type type)
{
    struct node *n = cluster_node(rig->cluster, node);
    struct own_waiter waiter = {.worker = worker};
    struct bytes bytes = key_of(key);
    own_want(node_worker(n, worker), 0, bytes, store_hash(node_store(n, 0), bytes), type, waiter);
}

/* Writes a version at one node, as a commit would. */
static void write_at(struct rig *rig, uint32_t node, uint32_t key, uint64_t version, bool tombstone)
{
    struct node *n = cluster_node(rig->cluster, node);
    struct store *store = node_store(n, 0);
    struct bytes bytes = key_of(key);
    uint64_t value = version;
    struct store_ref ref;
    store_lock(store, worker_store_thread(node_worker(n, 0), 0), bytes, store_hash(store, bytes),
               &ref);
    assert_non_null(ref.object);
    struct key_meta meta = store_meta(&ref);
    meta.ts = stamp_make(version, 1);
    meta.flags = (uint8_t)((meta.flags & ~KEY_VALUE_FLAGS) | (tombstone ? KEY_TOMBSTONE : 0));
    struct bytes stored = bytes_of((const uint8_t *)&value, tombstone ? 0 : sizeof value);
    assert_int_equal(store_set(&ref, &meta, stored, true), HK_OK);
    store_unlock(&ref);
}

/* Whoever owns the object writes it, if it may: everywhere at once. */
static void commit(struct rig *rig, uint32_t key, bool tombstone)
{
    uint32_t owner = owner_of(rig, key);
    if (owner == NODE_NONE) {
        return;
    }
    struct node *n = cluster_node(rig->cluster, owner);
    struct bytes bytes = key_of(key);
    uint64_t before = stamp_version(look_at(rig, owner, bytes).meta.ts);
    assert_true(before >= rig->committed[key]);
    nodeset readers = own_readers(node_worker(n, 0), 0, bytes, store_hash(node_store(n, 0), bytes));
    for (nodeset rest = readers; rest != 0; rest &= rest - 1) {
        uint32_t node = nodeset_first(rest);
        if (cluster_alive(rig->cluster, node) && look_at(rig, node, bytes).found) {
            write_at(rig, node, key, before + 1, tombstone);
        }
    }
    write_at(rig, owner, key, before + 1, tombstone);
    rig->committed[key] = before + 1;
}

/* ---- The rig ---- */

static void adjust(struct node_config *config, uint32_t node)
{
    (void)node;
    config->spaces[0].owned.walk_us = 20000;
    config->spaces[0].owned.grace_us = 200000;
}

static void adjust_tiny(struct node_config *config, uint32_t node)
{
    adjust(config, node);
    config->spaces[0].owned.busy_max = 8;
}

/* Three nodes at first. */
static void adjust_three(struct node_config *config, uint32_t node)
{
    adjust(config, node);
    config->view.configured = node < 3 ? 7 : 31;
}

static struct rig start(uint32_t nodes, bool ordered, const struct zeus_config *engine,
                        void (*adjusts)(struct node_config *, uint32_t))
{
    struct rig rig = {.nodes = nodes, .degree = engine->own.degree > 0 ? engine->own.degree : 3};
    struct cluster_config config = {
        .nodes = nodes,
        .workers = {1, 2, 1, 3, 2},
        .ordered = ordered,
        .ops = &zeus_ops,
        .engine = engine,
        .adjust = adjusts,
        .seed = 7,
    };
    random_init(&rig.random, 11 + nodes);
    rig.cluster = cluster_create(&config);
    if (adjusts == adjust_three) {
        cluster_kill(rig.cluster, 3);
        cluster_kill(rig.cluster, 4);
    }
    cluster_until(rig.cluster, cluster_serving, NULL, BOUND_US);
    return rig;
}

static void check_all(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->nodes; i++) {
        struct node *n = cluster_alive(rig->cluster, i) ? cluster_node(rig->cluster, i) : NULL;
        for (uint32_t k = 0; n != NULL && k < n->config.workers; k++) {
            worker_check(node_worker(n, k));
        }
    }
}

static void run(struct rig *rig, uint64_t us)
{
    for (uint64_t past = 0; past < us; past += STEP_US) {
        cluster_step(rig->cluster, STEP_US);
    }
    check_all(rig);
}

static uint64_t sum(struct rig *rig, size_t offset)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < rig->nodes; i++) {
        if (cluster_alive(rig->cluster, i)) {
            struct node_stats stats;
            node_stats(cluster_node(rig->cluster, i), &stats);
            total += *(const uint64_t *)(const void *)((const char *)&stats + offset);
        }
    }
    return total;
}
#define SUM(rig, field) sum(rig, offsetof(struct node_stats, field))

struct wish {
    struct rig *rig;
    uint32_t key, node;
};

static bool is_owner(struct cluster *c, void *context)
{
    struct wish *wish = context;
    (void)c;
    return owner_of(wish->rig, wish->key) == wish->node;
}

static void bring(struct rig *rig, uint32_t node, uint32_t key)
{
    struct wish wish = {rig, key, node};
    struct node *n = cluster_node(rig->cluster, node);
    want(rig, node, (uint32_t)random_below(&rig->random, n->config.workers), key, OWN_OWNER);
    cluster_until(rig->cluster, is_owner, &wish, BOUND_US);
}

static bool all_whole(struct cluster *c, void *context)
{
    struct rig *rig = context;
    uint32_t live = 0;
    for (uint32_t i = 0; i < rig->nodes; i++) {
        live += cluster_alive(c, i);
    }
    uint32_t shall = live < rig->degree ? live : rig->degree;
    for (uint32_t i = 0; i < KEYS; i++) {
        if (owner_of(rig, i) == NODE_NONE || replicas_of(rig, i) != shall) {
            return false;
        }
    }
    return true;
}

/* ---- Tests ---- */

static void move_about(uint32_t nodes, bool ordered)
{
    struct rig rig = start(nodes, ordered, &zeus, adjust);
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(&rig, (uint32_t)random_below(&rig.random, nodes), i);
        commit(&rig, i, false);
    }
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t key = (uint32_t)random_below(&rig.random, KEYS);
        uint32_t node = (uint32_t)random_below(&rig.random, nodes);
        bring(&rig, node, key);
        assert_int_equal(stamp_version(look_at(&rig, node, key_of(key)).meta.ts),
                         rig.committed[key]);
        commit(&rig, key, false);
    }
    cluster_until(rig.cluster, all_whole, &rig, BOUND_US);
    run(&rig, 100000);
    assert_true(all_whole(rig.cluster, &rig));
    assert_int_equal(SUM(&rig, own_records), 0);
    assert_true(SUM(&rig, own_counts[OWN_MOVES]) >= KEYS + 100);
    cluster_destroy(rig.cluster);
}

static void objects_move_between_three(void **state)
{
    (void)state;
    move_about(3, false);
    move_about(3, true);
}

static void objects_move_between_five(void **state)
{
    (void)state;
    move_about(5, false);
    move_about(5, true);
}

static void adjust_idle(struct node_config *config, uint32_t node)
{
    adjust(config, node);
    config->spaces[0].owned.walk_us = 1000000000;
}

static uint64_t messages(struct rig *rig)
{
    uint64_t n = 0;
    for (uint32_t kind = OWN_MSG_REQ; kind < OWN_MSG_RECOVERED; kind++) {
        n += SUM(rig, owned_messages[kind]);
    }
    return n;
}

/* REQ, three INVs (two more directory nodes and the owner), four ACKs, four VALs. */
static void a_move_takes_twelve_messages(void **state)
{
    (void)state;
    struct rig rig = start(5, true, &zeus_alone, adjust_idle);
    struct node *n = cluster_node(rig.cluster, 0);
    run(&rig, 10000); /* a pass without a pause follows a change of view */
    for (uint32_t i = 0; i < KEYS; i++) {
        nodeset directory =
            own_directory(&n->workers[0].view, hash_bytes(&n->placement, key_of(i)));
        nodeset others = 31 & ~directory;
        uint8_t first = nodeset_first(others);
        uint8_t second = nodeset_first(others & (others - 1));
        assert_int_equal(nodeset_count(directory), 3);
        bring(&rig, first, i);
        run(&rig, 2000);
        uint64_t before = messages(&rig);
        bring(&rig, second, i);
        run(&rig, 2000);
        assert_int_equal(messages(&rig) - before, 12);
        /* Back again, to who has the value already: as many. */
        before = messages(&rig);
        bring(&rig, first, i);
        run(&rig, 2000);
        assert_int_equal(messages(&rig) - before, 12);
    }
    cluster_destroy(rig.cluster);
}

/* All want the same few objects at once: each gets them in the end, one at a time. */
static void many_want_one(void **state)
{
    (void)state;
    struct rig rig = start(5, true, &zeus, adjust);
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t node = 0; node < 5; node++) {
            struct node *n = cluster_node(rig.cluster, node);
            for (uint32_t worker = 0; worker < n->config.workers; worker++) {
                want(&rig, node, worker, round % 2, OWN_OWNER);
            }
        }
        for (uint32_t i = 0; i < 40; i++) {
            cluster_step(rig.cluster, STEP_US);
            commit(&rig, round % 2, false);
        }
    }
    run(&rig, 500000);
    assert_int_equal(SUM(&rig, own_records), 0);
    assert_true(SUM(&rig, own_counts[OWN_NACKS]) > 0);
    assert_true(SUM(&rig, own_counts[OWN_DEFERRED]) > 0);
    assert_true(SUM(&rig, own_held) > 0);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t owner = owner_of(&rig, i);
        assert_true(owner != NODE_NONE);
        assert_int_equal(stamp_version(look_at(&rig, owner, key_of(i)).meta.ts), rig.committed[i]);
    }
    cluster_destroy(rig.cluster);
}

/* Two nodes want the same object all the time: each keeps it for a while, longer and longer up to a
 * bound, so that something is done at each stop. */
static void what_goes_back_and_forth_is_kept_longer(void **state)
{
    (void)state;
    struct rig rig = start(3, true, &zeus, adjust);
    uint32_t stays[2] = {0};
    uint64_t moves = 0;
    for (uint32_t half = 0; half < 2; half++) {
        for (uint32_t i = 0; i < 500000 / STEP_US; i++) {
            uint32_t owner = owner_of(&rig, 0);
            if (i % 4 == 0 && owner != 0) {
                want(&rig, 0, 0, 0, OWN_OWNER);
            }
            if (i % 4 == 0 && owner != 2) {
                want(&rig, 2, 0, 0, OWN_OWNER);
            }
            stays[0] += owner == 0;
            stays[1] += owner == 2;
            cluster_step(rig.cluster, STEP_US);
        }
        moves = SUM(&rig, own_counts[OWN_MOVES]) - moves;
    }
    /* Half a second, in quanta of 3.2 ms and a hop or two; 200 us would make a thousand. */
    assert_true(moves > 50 && moves < 250);
    assert_true(stays[0] > 2000 && stays[1] > 2000);
    cluster_destroy(rig.cluster);
}

/* A node dies while everybody moves objects about; what was committed stays, all get owners and
 * replicas again, and who comes back knows what the others know. */
static void crash(uint32_t nodes, bool ordered, uint64_t seed,
                  void (*adjusts)(struct node_config *, uint32_t))
{
    struct rig rig = start(nodes, ordered, &zeus, adjusts);
    random_init(&rig.random, seed);
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(&rig, (uint32_t)random_below(&rig.random, nodes), i);
        commit(&rig, i, false);
    }
    cluster_until(rig.cluster, all_whole, &rig, BOUND_US);
    for (uint32_t round = 0; round < 3; round++) {
        uint32_t victim = (uint32_t)random_below(&rig.random, nodes);
        uint64_t when = random_below(&rig.random, 40);
        for (uint32_t i = 0; i < 400; i++) {
            uint32_t node = (uint32_t)random_below(&rig.random, nodes);
            uint32_t key = (uint32_t)random_below(&rig.random, KEYS);
            if (i == when) {
                cluster_kill(rig.cluster, victim);
            }
            if (cluster_alive(rig.cluster, node)) {
                want(&rig, node, 0, key,
                     random_below(&rig.random, 4) == 0 ? OWN_READER : OWN_OWNER);
            }
            commit(&rig, key, false);
            cluster_step(rig.cluster, STEP_US * 20);
        }
        cluster_until(rig.cluster, all_whole, &rig, BOUND_US);
        cluster_restart(rig.cluster, victim);
        cluster_until(rig.cluster, cluster_serving, NULL, BOUND_US);
        cluster_until(rig.cluster, all_whole, &rig, BOUND_US);
        run(&rig, 200000);
        for (uint32_t i = 0; i < KEYS; i++) {
            uint32_t owner = owner_of(&rig, i);
            struct own_entry there = entry_at(&rig, owner, key_of(i));
            struct own_entry here = entry_at(&rig, victim, key_of(i));
            struct node *n = cluster_node(rig.cluster, victim);
            nodeset directory =
                own_directory(&n->workers[0].view, hash_bytes(&n->placement, key_of(i)));
            assert_true(stamp_version(look_at(&rig, owner, key_of(i)).meta.ts) == rig.committed[i]);
            if (nodeset_has(directory, (uint8_t)victim)) {
                assert_int_equal(here.ts, there.ts);
                assert_int_equal(here.vector.owner, owner);
            }
        }
    }
    assert_int_equal(SUM(&rig, own_records), 0);
    assert_true(SUM(&rig, own_pushed) > 0 && SUM(&rig, own_invites) > 0);
    cluster_destroy(rig.cluster);
}

static void crashes_lose_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        crash(3, seed % 2 == 0, seed, adjust);
        crash(5, seed % 2 == 0, seed, adjust);
    }
    /* Records are short: what is left Invalid everywhere is replayed all the same. */
    crash(3, true, 5, adjust_tiny);
    crash(5, false, 6, adjust_tiny);
}

/* ---- Forgetting ---- */

static bool all_gone(struct cluster *c, void *context)
{
    struct rig *rig = context;
    for (uint32_t i = 0; i < rig->nodes; i++) {
        struct store_stats data;
        struct store_stats entries;
        store_stats(node_store(cluster_node(c, i), 0), &data);
        store_stats(cluster_node(c, i)->spaces[0].directory, &entries);
        if (data.keys != 0 || entries.keys != 0) {
            return false;
        }
    }
    return true;
}

static void tombstones_are_forgotten(void **state)
{
    (void)state;
    struct rig rig = start(5, true, &zeus, adjust);
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(&rig, i % 5, i);
        commit(&rig, i, false);
    }
    cluster_until(rig.cluster, all_whole, &rig, BOUND_US);
    run(&rig, 400000);
    assert_true(all_whole(rig.cluster, &rig));
    for (uint32_t i = 0; i < KEYS; i++) {
        commit(&rig, i, true);
    }
    run(&rig, 100000);
    assert_false(all_gone(rig.cluster, &rig)); /* there is a grace */
    cluster_until(rig.cluster, all_gone, &rig, BOUND_US);
    assert_int_equal(SUM(&rig, own_destroyed), KEYS);
    /* What comes to be again starts above all that it was before. */
    for (uint32_t i = 0; i < KEYS; i++) {
        uint32_t node = (i + 2) % 5;
        bring(&rig, node, i);
        assert_true(stamp_version(look_at(&rig, node, key_of(i)).meta.ts) > rig.committed[i]);
        commit(&rig, i, false);
    }
    cluster_destroy(rig.cluster);
}

/* ---- Degrees, and what is lost ---- */

static void replicas_are_trimmed(void **state)
{
    (void)state;
    struct rig rig = start(5, false, &zeus_pair, adjust);
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(&rig, i % 5, i);
        commit(&rig, i, false);
    }
    cluster_until(rig.cluster, all_whole, &rig, BOUND_US);
    for (uint32_t round = 1; round < 4; round++) {
        for (uint32_t i = 0; i < KEYS; i++) {
            bring(&rig, (i + round) % 5, i);
            commit(&rig, i, false);
        }
    }
    cluster_until(rig.cluster, all_whole, &rig, BOUND_US);
    run(&rig, 100000);
    assert_true(SUM(&rig, own_trims) > 0);
    assert_int_equal(SUM(&rig, own_records), 0);
    cluster_destroy(rig.cluster);
}

static bool nothing_lost(struct cluster *c, void *context)
{
    (void)c;
    return SUM((struct rig *)context, own_lost) == 0;
}

static void lost_objects_wait_for_the_operator(void **state)
{
    (void)state;
    struct rig rig = start(5, true, &zeus_alone, adjust);
    uint32_t lost = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(&rig, i % 5, i);
        commit(&rig, i, false);
        lost += i % 5 == 2;
    }
    cluster_kill(rig.cluster, 2);
    run(&rig, 2000000);
    assert_int_equal(SUM(&rig, own_lost), lost);
    for (uint32_t i = 2; i < KEYS; i += 5) {
        want(&rig, 1, 0, i, OWN_OWNER);
    }
    run(&rig, 100000);
    for (uint32_t i = 2; i < KEYS; i += 5) {
        assert_int_equal(owner_of(&rig, i), NODE_NONE);
    }
    assert_int_equal(SUM(&rig, own_records), 0); /* nobody waits: they were told */
    cluster_restart(rig.cluster, 2);
    cluster_until(rig.cluster, cluster_serving, NULL, BOUND_US);
    run(&rig, 500000);
    assert_int_equal(SUM(&rig, own_lost), lost);
    worker_empty_lost(node_worker(cluster_node(rig.cluster, 3), 0), 0);
    cluster_until(rig.cluster, nothing_lost, &rig, BOUND_US);
    for (uint32_t i = 0; i < KEYS; i++) {
        uint32_t node = i % 5 == 2 ? 4 : i % 5;
        bring(&rig, node, i);
        uint64_t version = stamp_version(look_at(&rig, node, key_of(i)).meta.ts);
        assert_true(i % 5 == 2 ? version > rig.committed[i] : version == rig.committed[i]);
    }
    cluster_destroy(rig.cluster);
}

/* ---- Other nodes ---- */

struct sets {
    nodeset configured;
};

static bool has_settled(struct cluster *c, void *context)
{
    const struct sets *sets = context;
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        struct node_status s;
        if (!nodeset_has(sets->configured, (uint8_t)i)) {
            continue;
        }
        node_status(cluster_node(c, i), cluster_now(c), &s);
        if (s.view.configured != sets->configured || s.view.configured_old != 0 ||
            s.view.operational != sets->configured ||
            cluster_node(c, i)->spaces[0].settled_epoch != s.view.epoch) {
            return false;
        }
    }
    return true;
}

static void configure(struct rig *rig, uint32_t by, nodeset configured)
{
    struct sets sets = {configured};
    worker_configure(node_worker(cluster_node(rig->cluster, by), 0), configured);
    cluster_until(rig->cluster, has_settled, &sets, BOUND_US);
}

/* Whoever is a directory node of an object by the configured set has its entry. */
static void directories_know(struct rig *rig, uint32_t by)
{
    for (uint32_t i = 0; i < KEYS; i++) {
        struct node *n = cluster_node(rig->cluster, by);
        nodeset directory =
            own_directory(&n->workers[0].view, hash_bytes(&n->placement, key_of(i)));
        for (nodeset rest = directory; rest != 0; rest &= rest - 1) {
            struct own_entry entry = entry_at(rig, nodeset_first(rest), key_of(i));
            assert_int_equal(entry.vector.owner, owner_of(rig, i));
            assert_true(entry.ts != 0);
        }
    }
}

static void directories_move_with_the_configured_set(void **state)
{
    (void)state;
    struct rig rig = start(5, true, &zeus, adjust_three);
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(&rig, i % 3, i);
        commit(&rig, i, false);
    }
    cluster_restart(rig.cluster, 3);
    cluster_restart(rig.cluster, 4);
    configure(&rig, 0, 31);
    cluster_until(rig.cluster, all_whole, &rig, BOUND_US);
    directories_know(&rig, 3);
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(&rig, i % 5, i);
        assert_int_equal(stamp_version(look_at(&rig, i % 5, key_of(i)).meta.ts), rig.committed[i]);
        commit(&rig, i, false);
    }
    cluster_until(rig.cluster, all_whole, &rig, BOUND_US);
    /* All that are left have been there all the while: nobody joins. */
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(&rig, 2 + i % 3, i);
        commit(&rig, i, false);
    }
    cluster_until(rig.cluster, all_whole, &rig, BOUND_US);
    configure(&rig, 4, 28);
    cluster_kill(rig.cluster, 0);
    cluster_kill(rig.cluster, 1);
    cluster_until(rig.cluster, all_whole, &rig, BOUND_US);
    directories_know(&rig, 4);
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(&rig, 2 + (i + 1) % 3, i);
        assert_int_equal(stamp_version(look_at(&rig, 2 + (i + 1) % 3, key_of(i)).meta.ts),
                         rig.committed[i]);
        commit(&rig, i, false);
    }
    cluster_destroy(rig.cluster);
}

/* Who says that it has all entries has this one. */
static void driver_knows(struct rig *rig, uint32_t node, uint32_t key)
{
    if (!cluster_alive(rig->cluster, node)) {
        return;
    }
    struct node *n = cluster_node(rig->cluster, node);
    struct bytes bytes = key_of(key);
    struct worker *w = &n->workers[own_worker(&n->workers[0], own_portable(&n->workers[0], bytes))];
    struct own_step s;
    own_step_init(w, &s, 0, OWN_EV_GO, bytes, store_hash(node_store(n, 0), bytes));
    if (cluster_alive(rig->cluster, node) && nodeset_has(s.event.drivers, (uint8_t)node)) {
        assert_true(entry_at(rig, node, bytes).ts != 0);
    }
}

static bool is_configured(struct rig *rig, uint32_t node, nodeset configured)
{
    const struct view *view = &cluster_node(rig->cluster, node)->workers[0].view;
    return view->configured == configured && view->configured_old == 0;
}

static bool is_dropped(struct cluster *c, void *context)
{
    const struct node *n = cluster_node(c, 4);
    const struct view *view = &n->workers[0].view;
    (void)context;
    return !nodeset_has(view->live, 0) && n->spaces[0].settled_epoch == view->epoch;
}

/* The old set and the new one hold together for an epoch that never settles, since a worker stands
 * still, so no entries are sent in it. Until they are, who is a directory node by the new set alone
 * does not drive, nor say that an object is forgotten: it would be believed. */
static void only_who_has_entries_drives(void **state)
{
    (void)state;
    struct rig rig = start(5, true, &zeus_pair, adjust);
    struct sets sets = {30};
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(&rig, 2 + i % 2, i);
        commit(&rig, i, false);
    }
    cluster_until(rig.cluster, all_whole, &rig, BOUND_US);
    /* If it lived, the change would wait for what it has. */
    cluster_kill(rig.cluster, 0);
    cluster_until(rig.cluster, is_dropped, &rig, BOUND_US);
    cluster_until(rig.cluster, all_whole, &rig, BOUND_US);
    uint32_t before = cluster_node(rig.cluster, 4)->workers[0].view.epoch;
    worker_configure(node_worker(cluster_node(rig.cluster, 4), 0), sets.configured);
    cluster_stall(rig.cluster, 4, 1, true);
    bool stalls = true;
    while (!has_settled(rig.cluster, &sets)) {
        cluster_step(rig.cluster, STEP_US);
        assert_true(cluster_now(rig.cluster) < BOUND_US);
        for (uint32_t i = 0; i < 5 * KEYS; i++) {
            driver_knows(&rig, i % 5, i / 5);
        }
        if (stalls && is_configured(&rig, 4, sets.configured)) {
            assert_int_equal(cluster_node(rig.cluster, 4)->spaces[0].settled_epoch, before);
            cluster_stall(rig.cluster, 4, 1, false);
            stalls = false;
        }
    }
    assert_false(stalls);
    directories_know(&rig, 4);
    cluster_destroy(rig.cluster);
}

/* ---- Who goes ---- */

static void all_as_committed(struct rig *rig, uint32_t node)
{
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(rig, node, i);
        assert_int_equal(stamp_version(look_at(rig, node, key_of(i)).meta.ts), rig->committed[i]);
        commit(rig, i, false);
    }
}

struct leaver {
    struct rig *rig;
    uint32_t node;
};

static bool has_handed_over(struct cluster *c, void *context)
{
    const struct leaver *l = context;
    return node_handed_over(cluster_node(c, l->node));
}

static bool has_left(struct cluster *c, void *context)
{
    const struct leaver *l = context;
    return !cluster_alive(c, l->node);
}

/* Each object has one replica. All nodes leave and come back one after the other, two told at once
 * wait for each other. */
static void who_leaves_takes_nothing_along(void **state)
{
    (void)state;
    struct rig rig = start(3, true, &zeus_alone, adjust);
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(&rig, i % 3, i);
        commit(&rig, i, false);
    }
    for (uint32_t node = 0; node < 3; node++) {
        struct leaver leaver = {&rig, node};
        worker_hand_over(node_worker(cluster_node(rig.cluster, node), 0));
        if (node == 0) {
            worker_hand_over(node_worker(cluster_node(rig.cluster, 1), 0));
        }
        cluster_until(rig.cluster, has_handed_over, &leaver, BOUND_US);
        assert_true(node != 0 || !node_handed_over(cluster_node(rig.cluster, 1)));
        for (uint32_t i = 0; i < KEYS; i++) {
            bool here = look_at(&rig, node, key_of(i)).found;
            assert_true(replicas_of(&rig, i) > (here ? 1u : 0u));
        }
        worker_leave(node_worker(cluster_node(rig.cluster, node), 0));
        cluster_until(rig.cluster, has_left, &leaver, BOUND_US);
        cluster_restart(rig.cluster, node);
        cluster_until(rig.cluster, cluster_serving, NULL, BOUND_US);
    }
    all_as_committed(&rig, 1);
    cluster_destroy(rig.cluster);
}

/* Nobody joins, so nothing but what they hold keeps those that are configured no more. */
static void whom_a_change_removes_takes_nothing_along(void **state)
{
    (void)state;
    struct rig rig = start(5, true, &zeus_alone, adjust);
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(&rig, i % 5, i);
        commit(&rig, i, false);
    }
    configure(&rig, 4, 28);
    cluster_kill(rig.cluster, 0);
    cluster_kill(rig.cluster, 1);
    all_as_committed(&rig, 3);
    assert_int_equal(SUM(&rig, own_lost), 0);
    cluster_destroy(rig.cluster);
}

/* ---- Bounds ---- */

static void records_are_bounded(void **state)
{
    (void)state;
    struct rig rig = start(3, true, &zeus, adjust_tiny);
    for (uint32_t i = 0; i < 400; i++) {
        want(&rig, i % 3, 0, i % KEYS, OWN_OWNER);
        if (i % 16 == 0) {
            cluster_step(rig.cluster, STEP_US);
        }
    }
    assert_true(SUM(&rig, own_refused) > 0);
    run(&rig, 500000);
    for (uint32_t i = 0; i < 3; i++) {
        struct node_stats stats;
        node_stats(cluster_node(rig.cluster, i), &stats);
        assert_true(stats.own_records_most <= 8 * (1 + 3) * 2);
        assert_int_equal(stats.own_records, 0);
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        bring(&rig, i % 3, i);
    }
    cluster_destroy(rig.cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_move_between_three),
        cmocka_unit_test(objects_move_between_five),
        cmocka_unit_test(a_move_takes_twelve_messages),
        cmocka_unit_test(many_want_one),
        cmocka_unit_test(what_goes_back_and_forth_is_kept_longer),
        cmocka_unit_test(crashes_lose_nothing),
        cmocka_unit_test(tombstones_are_forgotten),
        cmocka_unit_test(replicas_are_trimmed),
        cmocka_unit_test(lost_objects_wait_for_the_operator),
        cmocka_unit_test(directories_move_with_the_configured_set),
        cmocka_unit_test(only_who_has_entries_drives),
        cmocka_unit_test(who_leaves_takes_nothing_along),
        cmocka_unit_test(whom_a_change_removes_takes_nothing_along),
        cmocka_unit_test(records_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
