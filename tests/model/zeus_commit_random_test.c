/* Reliable commit under random schedules: several pipelines over several objects, with crashes of
 * coordinators and followers at any moment, views that workers adopt one by one, new processes, and
 * objects that move, are taken over and get new readers. In the end everything has come to rest,
 * and the judge of the rig finds nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/zeus_commit_rig.h"

#define TXNS_MOST 350u
#define VIEWS_MOST (CRIG_VIEWS - CRIG_NODES - 2u)

static struct crig rig;

struct profile {
    uint8_t nodes;
    uint8_t degree; /* replicas of an object at first */
    uint32_t steps;
    bool faults;
    uint32_t deliver; /* of 100 steps */
};

struct sums {
    uint64_t txns, told, views, replays, moves, takeovers;
};

static uint32_t below(struct crig *r, uint32_t n)
{
    return (uint32_t)random_below(&r->random, n);
}

/* Whether each object has a live replica without the node. */
static bool can_spare(const struct crig *r, uint8_t node)
{
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        bool other = false;
        for (nodeset rest = crig_holders(r, o) & ~nodeset_of(node); rest != 0; rest &= rest - 1) {
            other = other || crig_live(r, nodeset_first(rest));
        }
        if (!other) {
            return false;
        }
    }
    return nodeset_count(crig_newest(r)->live) > 2;
}

/* A transaction over objects that the node owns. */
static void write_some(struct crig *r, uint8_t node)
{
    uint32_t owned = 0;
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        owned |= r->vectors[o].owner == node ? 1u << o : 0;
    }
    uint32_t writes = owned & below(r, 1u << CRIG_OBJECTS);
    if (writes != 0 && r->ntxns < TXNS_MOST) {
        (void)crig_commit(r, node, (uint8_t)below(r, CRIG_WORKERS), writes,
                          owned & below(r, 1u << CRIG_OBJECTS));
    }
}

static void client(struct crig *r)
{
    uint8_t node = (uint8_t)below(r, r->n);
    uint32_t objects = below(r, 1u << CRIG_OBJECTS);
    if (below(r, 4) != 0) {
        write_some(r, node);
    } else if (objects != 0 && r->ntxns < TXNS_MOST) {
        (void)crig_read(r, node, objects);
    }
}

/* A node crashes in the midst of its work, and part of what it has sent is lost; or others merely
 * take it for dead. */
static void fault(struct crig *r)
{
    uint8_t node = (uint8_t)below(r, r->n);
    if (!crig_live(r, node) || !can_spare(r, node)) {
        return;
    }
    if (below(r, 4) == 0) {
        crig_drop(r, node);
        return;
    }
    for (uint32_t i = below(r, 6); i > 0; i--) {
        write_some(r, node);
        for (uint32_t j = below(r, 4); j > 0; j--) {
            (void)crig_deliver(r, node, (uint8_t)below(r, r->n), (uint8_t)below(r, CRIG_WORKERS));
        }
    }
    crig_crash(r, node);
    for (uint8_t to = 0; to < r->n; to++) {
        for (uint8_t w = 0; w < CRIG_WORKERS; w++) {
            crig_lose(r, node, to, w, below(r, r->lanes[node][to][w].n + 1));
        }
    }
}

static void change_view(struct crig *r)
{
    uint8_t node = (uint8_t)below(r, r->n);
    bool member = nodeset_has(crig_newest(r)->live, node);
    if (r->nviews >= VIEWS_MOST) {
        return;
    }
    if (member && r->nodes[node].crashed) {
        crig_drop(r, node);
    } else if (!member) {
        crig_admit(r, node);
    }
}

static void ownership(struct crig *r)
{
    uint32_t object = below(r, CRIG_OBJECTS);
    uint8_t node = (uint8_t)below(r, r->n);
    switch (below(r, 3)) {
    case 0:
        (void)crig_move(r, object, node);
        break;
    case 1:
        (void)crig_take_over(r, object, node);
        break;
    default:
        (void)crig_add_reader(r, object, node);
        break;
    }
}

static void step(struct crig *r, const struct profile *p)
{
    uint32_t dice = below(r, 1000);
    uint8_t node = (uint8_t)below(r, r->n);
    uint8_t worker = (uint8_t)below(r, CRIG_WORKERS);
    if (dice < p->deliver * 10) {
        (void)crig_run_one(r);
    } else if (dice < 850) {
        client(r);
    } else if (dice < 920) {
        ownership(r);
    } else if (dice < 960) {
        crig_adopt(r, node, worker);
    } else if (dice < 965) {
        crig_forget(r, node, worker);
    } else if (p->faults && dice < 980) {
        change_view(r);
    } else if (p->faults && dice < 990 && r->nviews < VIEWS_MOST) {
        fault(r);
    }
}

static void run(const struct profile *p, uint64_t seed, struct sums *sums)
{
    struct crig *r = &rig;
    crig_init(r, p->nodes, 0, seed);
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        uint8_t owner = (uint8_t)below(r, r->n);
        nodeset readers = 0;
        while (nodeset_count(readers) + 1 < p->degree) {
            readers |= nodeset_of((uint8_t)below(r, r->n)) & ~nodeset_of(owner);
        }
        crig_place(r, o, owner, readers);
    }
    for (uint32_t i = 0; i < p->steps; i++) {
        step(r, p);
    }
    const char *why = crig_settle(r);
    if (why != NULL) {
        print_error("seed %llu: %s\n", (unsigned long long)seed, why);
        crig_print(r);
    }
    assert_null(why);
    sums->txns += r->ntxns;
    sums->told += r->told;
    sums->views += r->nviews;
    sums->replays += r->replays;
    sums->moves += r->moves;
    sums->takeovers += r->takeovers;
}

static struct sums runs(const struct profile *p, uint64_t seeds)
{
    const char *more = getenv("HORKOS_ZEUS_SEEDS");
    seeds = more != NULL ? strtoull(more, NULL, 10) : seeds;
    struct sums sums = {0};
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run(p, seed, &sums);
    }
    print_message("%llu transactions, %llu told, %llu views, %llu R-INVs replayed, %llu moves, "
                  "%llu taken over\n",
                  (unsigned long long)sums.txns, (unsigned long long)sums.told,
                  (unsigned long long)sums.views, (unsigned long long)sums.replays,
                  (unsigned long long)sums.moves, (unsigned long long)sums.takeovers);
    return sums;
}

static void without_faults(void **state)
{
    (void)state;
    struct profile p = {.nodes = 3, .degree = 2, .steps = 2500, .deliver = 70};
    struct sums sums = runs(&p, 200);
    assert_true(sums.told > 10000 && sums.moves > 1000);
    assert_int_equal(sums.replays, 0);
}

static void with_faults(void **state)
{
    (void)state;
    struct profile p = {.nodes = 3, .degree = 3, .steps = 2500, .faults = true, .deliver = 70};
    struct sums sums = runs(&p, 600);
    assert_true(sums.told > 10000 && sums.replays > 300 && sums.takeovers > 300);
}

/* Objects of a transaction have different readers: followers see a part of the pipelines. */
static void partial_followers(void **state)
{
    (void)state;
    struct profile p = {.nodes = 5, .degree = 3, .steps = 4000, .faults = true, .deliver = 75};
    struct sums sums = runs(&p, 600);
    assert_true(sums.told > 10000 && sums.replays > 500 && sums.takeovers > 100);
}

/* Little is delivered: pipelines are long when their coordinator dies. */
static void long_pipelines(void **state)
{
    (void)state;
    struct profile p = {.nodes = 4, .degree = 3, .steps = 2500, .faults = true, .deliver = 30};
    struct sums sums = runs(&p, 600);
    assert_true(sums.replays > 1500 && sums.takeovers > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_faults),
        cmocka_unit_test(with_faults),
        cmocka_unit_test(partial_followers),
        cmocka_unit_test(long_pipelines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
