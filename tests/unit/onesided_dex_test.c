/* The index in co-partitioned memory beside a plain array: many operations at once, verbs executed
 * a word at a time in a random order, a cache of hardly any nodes; and what was changed arrives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "onesided/dex.h"

#define FLIGHTS_MAX 12u
#define KEYS 24000u
#define BUILT 1200u
#define MEMORIES 2u
#define FIRST 64u
#define BYTES (4u << 20)

struct flight {
    struct dex_op op;
    struct posting posting;
    uint32_t verb, word; /* what is executed next */
    bool runs;
};

struct rig {
    struct memory memory;
    struct one_tree tree;
    struct dex dex;
    struct random random;
    uint64_t model[KEYS]; /* 0: absent */
    struct flight flights[FLIGHTS_MAX];
    uint32_t flights_n;
    uint64_t gets, puts, fulls;
};

static void rig_open(struct rig *rig, uint64_t seed, uint32_t flights, uint32_t places,
                     uint64_t room)
{
    static uint64_t keys[BUILT], values[BUILT];
    memset(rig, 0, sizeof *rig);
    random_init(&rig->random, seed);
    rig->flights_n = flights;
    assert_true(memory_open(&rig->memory, MEMORIES, BYTES));
    for (uint32_t i = 0; i < BUILT; i++) {
        keys[i] = (uint64_t)i * (KEYS / BUILT);
        rig->model[keys[i]] = values[i] = 1 + i;
    }
    one_tree_build(&rig->tree, &rig->memory, ONE_NODE_WORDS_MAX, FIRST, keys, values, BUILT, 0.7);
    assert_true(dex_open(&rig->dex, &rig->tree, &rig->memory, room, places * DEX_COPY_BYTES));
}

static void rig_close(struct rig *rig)
{
    dex_close(&rig->dex);
    memory_close(&rig->memory);
}

/* A key of this flight's alone, so that what it has to find is known. */
static void begin(struct rig *rig, uint32_t number)
{
    struct flight *f = &rig->flights[number];
    uint64_t key = random_below(&rig->random, KEYS / rig->flights_n) * rig->flights_n + number;
    if (random_chance(&rig->random, 300000)) {
        key = number; /* some are popular */
    }
    bool put = random_chance(&rig->random, 500000);
    dex_begin(&f->op, &rig->dex, put ? DEX_PUT : DEX_GET, key,
              put ? 1 + random_below(&rig->random, UINT32_MAX) : 0);
    f->posting.n = 0;
    f->verb = f->word = 0;
    f->runs = true;
}

static void judge(struct rig *rig, struct flight *f)
{
    uint64_t *expected = &rig->model[f->op.key];
    assert_int_equal(f->op.found, *expected != 0);
    if (f->op.kind == DEX_GET) {
        assert_int_equal(f->op.value, *expected);
        rig->gets++;
    } else if (f->op.full) {
        rig->fulls++;
    } else {
        *expected = f->op.value;
        rig->puts++;
    }
    f->runs = false;
}

/* A word of a flight's posting, or, if all of it is done, a step. */
static void turn(struct rig *rig, struct flight *f)
{
    if (f->verb < f->posting.n) {
        memory_apply_word(&rig->memory, &f->posting.verbs[f->verb], f->word);
        if (++f->word == f->posting.verbs[f->verb].words) {
            f->word = 0;
            f->verb++;
        }
        return;
    }
    f->posting.n = f->verb = 0;
    if (dex_step(&f->op, &f->posting)) {
        judge(rig, f);
    }
}

static void run(struct rig *rig, uint32_t operations)
{
    uint32_t begun = 0, running = 0;
    for (uint64_t turns = 0; begun < operations || running > 0; turns++) {
        assert_true(turns < (uint64_t)operations * 200000);
        uint32_t i = (uint32_t)random_below(&rig->random, rig->flights_n);
        struct flight *f = &rig->flights[i];
        if (!f->runs && begun == operations) {
            continue;
        }
        if (!f->runs) {
            begin(rig, i);
            begun++;
            running++;
        }
        /* Some words, so that what is slow is as long under way as anything else. */
        for (uint32_t n = 1 + (uint32_t)random_below(&rig->random, 150); n > 0 && f->runs; n--) {
            turn(rig, f);
        }
        running -= !f->runs;
    }
}

/* Everything is written; then memory alone says what the model says. */
static void judge_memory(struct rig *rig)
{
    static struct posting p;
    static struct dex_op op;
    bool none;
    do {
        p.n = 0;
        none = dex_flush(&rig->dex, &p);
        for (uint32_t i = 0; i < p.n; i++) {
            memory_apply(&rig->memory, &p.verbs[i]);
        }
    } while (!none);
    memset(rig->dex.nodes, 0xee, rig->dex.ways.sets * WAYS * DEX_NODE_BYTES);
    memset(rig->dex.ways.places, 0, rig->dex.ways.sets * WAYS * sizeof *rig->dex.ways.places);
    for (uint32_t key = 0; key < KEYS; key++) {
        dex_begin(&op, &rig->dex, DEX_GET, key, 0);
        p.n = 0;
        while (!dex_step(&op, &p)) {
            for (uint32_t i = 0; i < p.n; i++) {
                memory_apply(&rig->memory, &p.verbs[i]);
            }
            p.n = 0;
        }
        assert_int_equal(op.value, rig->model[key]);
    }
}

/* In memory, once everything is written. */
static uint32_t levels(const struct rig *rig)
{
    uint64_t shape;
    struct verb v = {
        .kind = VERB_READ, .at = rig->dex.root + 8u * ONE_SHAPE, .local = &shape, .words = 1};
    memory_apply(&rig->memory, &v);
    return 1 + (uint32_t)(shape >> 32);
}

static void as_an_array(void **state)
{
    static struct rig rig;
    static const struct {
        uint32_t flights, places;
    } shapes[] = {{1, 8}, {12, 8}, {12, 16}, {4, 24}, {12, 64}, {12, 1024}};
    (void)state;
    for (uint32_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (uint64_t seed = 1; seed <= 2; seed++) {
            print_message("flights %u, places %u, seed %u\n", shapes[i].flights, shapes[i].places,
                          (uint32_t)seed);
            rig_open(&rig, seed, shapes[i].flights, shapes[i].places, 1u << 20);
            run(&rig, 12000);
            assert_true(rig.gets > 4000 && rig.puts > 4000);
            assert_int_equal(rig.fulls, 0);
            assert_true(rig.dex.stats.misses > 0);
            assert_true(shapes[i].places == 1024 || rig.dex.stats.written_back > 100);
            judge_memory(&rig);
            assert_int_equal(levels(&rig), 3); /* the root has split */
            rig_close(&rig);
        }
    }
}

static void without_room_it_says_so(void **state)
{
    static struct rig rig;
    (void)state;
    rig_open(&rig, 3, FLIGHTS_MAX, 16, DEX_NODE_BYTES);
    run(&rig, 4000);
    assert_true(rig.fulls > 0);
    judge_memory(&rig);
    rig_close(&rig);
}

/* One place in eight is left to those that are not busy; if none is, nothing leaves. */
static void busy_ones_stay(void **state)
{
    struct ways ways;
    struct way left, *way = NULL;
    (void)state;
    assert_true(ways_open(&ways, 1));
    for (uint64_t id = 0; id < WAYS; id++) {
        way = ways_admit(&ways, id, true, &left);
        assert_non_null(way);
        assert_int_equal(left.id, 0);
        way->busy = id != 3;
    }
    assert_non_null(ways_admit(&ways, 100, false, &left));
    assert_int_equal(left.id, 4);
    assert_true(left.dirty);
    assert_null(ways_look(&ways, 3));
    way = ways_look(&ways, 100);
    assert_non_null(way);
    way->busy = true;
    assert_null(ways_admit(&ways, 101, false, &left));
    assert_non_null(ways_look(&ways, 7));
    ways_close(&ways);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_an_array),
        cmocka_unit_test(without_room_it_says_so),
        cmocka_unit_test(busy_ones_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
