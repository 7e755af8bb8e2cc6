/* Random transactions of several holders over few keys, a step at a time in random order: reads,
 * writes, insertions, deletions and scans, kills and the cleaner in between. They must be serial in
 * the order of their commits (support/node_player.h).
 *
 * Nobody may wait for ever either: if all wait and nobody was woken, that is found as well. In a
 * build with mutants, each rule that is switched off must let some seed find a violation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "support/node_player.h"
#include "support/node_table.h"

#define PLAYERS 4u
#define TURNS 1500u

struct world {
    struct table_rig rig;
    struct random random;
    struct play_model model;
    uint64_t ages;
    uint64_t commits;
    struct player players[PLAYERS];
    const char *broken;
};

static void take_turn(struct world *w, uint32_t number)
{
    struct player *p = &w->players[number];
    if (p->state == PLAYER_PREPARED) {
        player_commit(p, w->commits + 1u, w->rig.now_us);
        if (!play_is_right(&w->model, &p->play)) {
            w->broken = "what was read is not what the serial order gives";
        }
        play_apply(&w->model, &p->play);
        w->commits++;
    } else {
        w->rig.woken[number] = 0;
        player_turn(p, ++w->ages);
    }
    w->rig.holders[number] = p->holder;
    w->broken = w->broken != NULL ? w->broken : p->broken;
    store_quiescent(w->rig.thread);
}

/* One that may go on; PLAYERS: nobody. Now and then one that waits, for nothing. */
static uint32_t choose(struct world *w)
{
    uint32_t first = (uint32_t)random_below(&w->random, PLAYERS);
    if (random_below(&w->random, 20) == 0) {
        return first;
    }
    for (uint32_t i = 0; i < PLAYERS; i++) {
        uint32_t number = (first + i) % PLAYERS;
        if (w->players[number].state != PLAYER_WAITS || w->rig.woken[number] != 0) {
            return number;
        }
    }
    return PLAYERS;
}

static void turn(struct world *w)
{
    struct table_rig *rig = &w->rig;
    uint64_t what = random_below(&w->random, 100);
    rig->now_us += random_below(&w->random, 200);
    if (what < 20) {
        (void)lotus_table_clean(rig->table, rig->thread, rig->now_us, 2);
        return;
    }
    uint32_t number = choose(w);
    if (number == PLAYERS) {
        w->broken = "all wait, and nobody was woken";
    } else if (what == 99) {
        (void)lotus_table_wound(rig->table, number, rig->holders[number].generation);
    } else {
        take_turn(w, number);
    }
}

static const char *check_end(struct world *w)
{
    const char *broken = NULL;
    for (uint32_t i = 0; i < PLAY_KEYS && broken == NULL; i++) {
        const char key[2] = {(char)('a' + i), '\0'};
        bool there = table_get(&w->rig, key) != NULL;
        broken = there == (w->model.values[i] != 0) ? NULL : "in the end a row is wrong";
    }
    table_close(&w->rig);
    return broken;
}

/* NULL, or what was found. */
static const char *run(uint64_t seed, enum lock_policy policy, uint64_t rules_off,
                       uint64_t *commits)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->rig.lotus = (struct lotus_config){
        .lock.policy = (uint8_t)policy, .rules_off = rules_off, .grace_us = 500};
    table_open(&w->rig);
    random_init(&w->random, seed);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        w->players[i] = (struct player){.table = w->rig.table,
                                        .thread = w->rig.thread,
                                        .random = &w->random,
                                        .age_who = i + 1u,
                                        .holder.status = i};
    }
    for (uint32_t i = 0; i < TURNS && w->broken == NULL; i++) {
        turn(w);
        if (w->broken == NULL && i % 16 == 0) {
            w->broken = lotus_table_check(w->rig.table, w->rig.thread);
        }
    }
    const char *broken = w->broken;
    *commits += w->commits;
    if (broken == NULL) {
        for (uint32_t i = 0; i < PLAYERS; i++) {
            player_stop(&w->players[i]);
            w->rig.holders[i] = w->players[i].holder;
        }
        broken = check_end(w);
    } else {
        lotus_table_destroy(w->rig.table, w->rig.thread);
        store_thread_unregister(w->rig.thread);
        store_destroy(w->rig.store);
    }
    free(w);
    return broken;
}

static uint64_t first_seed = 1;

static void test_commits_are_serial(void **state)
{
    (void)state;
    for (uint32_t policy = 0; policy < LOCK_POLICIES; policy++) {
        uint64_t commits = 0;
        for (uint64_t seed = first_seed; seed < first_seed + 100; seed++) {
            const char *broken = run(seed, (enum lock_policy)policy, 0, &commits);
            if (broken != NULL) {
                fail_msg("%s, seed %llu: %s", lock_policy_names[policy], (unsigned long long)seed,
                         broken);
            }
        }
        print_message("%s: %llu commits\n", lock_policy_names[policy], (unsigned long long)commits);
        assert_true(commits > 5000);
    }
}

#ifdef HK_MUTANTS
static void test_mutants_are_found(void **state)
{
    (void)state;
    static const enum lotus_rule rules[] = {
        LOTUS_RULE_CLEANER,  LOTUS_RULE_AGAIN,    LOTUS_RULE_GAP_INSERT, LOTUS_RULE_GAP_OWN,
        LOTUS_RULE_GAP_SCAN, LOTUS_RULE_ROW_SCAN, LOTUS_RULE_READ_LOCK};
    for (uint32_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        const char *broken = NULL;
        uint64_t seed = first_seed, commits = 0;
        for (; seed < first_seed + 3000 && broken == NULL; seed++) {
            enum lock_policy policy = (enum lock_policy)(seed % LOCK_POLICIES);
            broken = run(seed, policy, UINT64_C(1) << rules[i], &commits);
        }
        print_message("%s: seed %llu: %s\n", lotus_rule_names[rules[i]],
                      (unsigned long long)(seed - 1), broken != NULL ? broken : "nothing");
        assert_non_null(broken);
    }
}
#endif

int main(int argc, char **argv)
{
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commits_are_serial),
#ifdef HK_MUTANTS
        cmocka_unit_test(test_mutants_are_found),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
