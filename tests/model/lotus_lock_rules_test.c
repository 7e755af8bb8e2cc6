/* The executions of docs/protocols/lotus-locks.md on one lock, told in words:
 *
 *   2X granted          transaction 2 asks for X, and is granted it
 *   1X queued 3died     transaction 1 waits, and 3 died of it
 *   -2 1granted         transaction 2 releases, which grants 1's request
 *   p2                  transaction 2 prepares
 *   w2                  transaction 2 is wounded from elsewhere
 *
 * A lower number is older. After each step the invariants hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/lotus/lock.h"

#define TXNS 8u

struct rig {
    struct lock_config config;
    struct lock lock;
    struct lock_request requests[TXNS + 1];
    struct try_status statuses[TXNS + 1];
    uint64_t generation[TXNS + 1];
};

static struct lock_table table(struct rig *rig)
{
    return (struct lock_table){
        .config = &rig->config, .requests = rig->requests, .statuses = rig->statuses};
}

static void rig_init(struct rig *rig, enum lock_policy policy, uint64_t rules_off)
{
    memset(rig, 0, sizeof *rig);
    rig->config = (struct lock_config){.policy = (uint8_t)policy, .rules_off = rules_off};
    for (uint32_t i = 1; i <= TXNS; i++) {
        rig->generation[i] = try_begin(&rig->statuses[i]);
        rig->requests[i] =
            (struct lock_request){.age = {.us = i}, .status = i, .generation = rig->generation[i]};
    }
}

/* Appends " NUMBERwhat" for each of a chain, the lowest number first. */
static void tell(struct rig *rig, lock_chain chain, char *out, size_t bytes)
{
    for (uint32_t i = 1; i <= TXNS; i++) {
        for (uint32_t at = chain; at != 0; at = rig->requests[at].chain) {
            if (at == i) {
                size_t n = strlen(out);
                snprintf(out + n, bytes - n, " %u%s", i,
                         lock_answer_names[rig->requests[i].happened]);
            }
        }
    }
}

/* Does what the step's first word says; out: the step as it went. */
static void play(struct rig *rig, const char *word, char *out, size_t bytes)
{
    struct lock_table t = table(rig);
    lock_chain chain = 0;
    bool asks = word[0] >= '1' && word[0] <= '9';
    uint32_t number = (uint32_t)((asks ? word[0] : word[1]) - '0');
    snprintf(out, bytes, "%.2s", word);
    if (asks) {
        enum lock_mode mode = word[1] == 'X' ? LOCK_X : LOCK_S;
        enum lock_answer answer = lock_ask(&t, &rig->lock, number, mode, &chain);
        snprintf(out, bytes, "%.2s %s", word, lock_answer_names[answer]);
    } else if (word[0] == '-') {
        lock_release(&t, &rig->lock, number, &chain);
    } else {
        bool done = word[0] == 'p' ? try_prepare(&rig->statuses[number], rig->generation[number])
                                   : try_wound(&rig->statuses[number], rig->generation[number]);
        snprintf(out, bytes, "%.2s%s", word, done ? "" : " no");
    }
    tell(rig, chain, out, bytes);
}

/* The steps are parted by "; ". Whether all went as written, and no invariant broke; if not, says
 * where, unless quiet. */
static bool goes(enum lock_policy policy, uint64_t rules_off, const char *story, bool quiet)
{
    struct rig rig;
    rig_init(&rig, policy, rules_off);
    for (const char *at = story; at != NULL;) {
        const char *end = strstr(at, "; ");
        size_t n = end == NULL ? strlen(at) : (size_t)(end - at);
        char want[96];
        char got[96];
        snprintf(want, sizeof want, "%.*s", (int)n, at);
        play(&rig, at, got, sizeof got);
        struct lock_table t = table(&rig);
        const char *broken = lock_broken(&t, &rig.lock);
        if (strcmp(want, got) != 0 || broken != NULL) {
            if (!quiet) {
                print_error("%s: %s\n  expected \"%s\", got \"%s\"%s%s\n",
                            lock_policy_names[policy], story, want, got, broken == NULL ? "" : "; ",
                            broken == NULL ? "" : broken);
            }
            return false;
        }
        at = end == NULL ? NULL : end + 2;
    }
    return true;
}

/* What holds whatever the rules, and what a rule is there for. */
#define ANY LOCK_RULES
static const struct {
    enum lock_policy policy;
    enum lock_rule rule;
    const char *story;
} stories[] = {
    {LOCK_NO_WAIT, ANY, "2X granted; 1X died; 3S died; -2; 1X granted; -1"},
    {LOCK_NO_WAIT, ANY, "2S granted; 1S granted; 2X died; -1; 2X granted; 2S granted; -2"},
    {LOCK_NO_WAIT, ANY, "2S granted; 2S granted; 2X granted; 2X granted; -2; -2; 1X granted"},
    {LOCK_WAIT_DIE, ANY, "2X granted; 1X queued; 3S died; -2 1granted; -1"},
    {LOCK_WAIT_DIE, ANY, "3S granted; 2S granted; 1X queued; -3; -2 1granted"},
    {LOCK_WAIT_DIE, ANY, "5X granted; 2S queued; 3S queued; -5 2granted 3granted"},
    {LOCK_WAIT_DIE, ANY, "3X granted; 2S queued; 2X queued; -3 2granted; 1S queued; -2 1granted"},
    {LOCK_WAIT_DIE, ANY, "3X granted; 2X queued; -2; -3; 3S granted"},
    {LOCK_WAIT_DIE, ANY, "1S granted; 2S granted; 2X died; 1X queued; -2 1granted"},
    {LOCK_WAIT_DIE, ANY, "3S granted; 2S granted; 2X queued; 1S granted 2died; -3; -1; 2X granted"},
    {LOCK_WOUND_WAIT, ANY, "1X granted; 3S queued; 2S queued; -1 2granted 3granted"},
    {LOCK_WOUND_WAIT, ANY, "3S granted; 2S granted; 1X granted 2wounded 3wounded; -3; -2; -1"},
    {LOCK_WOUND_WAIT, ANY, "2S granted; 3X queued; 1S granted; -2; -1 3granted"},
    {LOCK_WOUND_WAIT, ANY, "1S granted; 2S granted; 2X queued; 1X granted 2wounded; -2; -1"},
    {LOCK_WOUND_WAIT, ANY, "1S granted; 2S granted; 2X queued; -1 2granted"},
    {LOCK_WOUND_WAIT, ANY, "2S granted; 1S granted; w1; 2X granted 1wounded"},
    /* L1 */
    {LOCK_WAIT_DIE, LOCK_RULE_WAITERS, "2S granted; 1X queued; 3S died; -2 1granted"},
    {LOCK_WOUND_WAIT, LOCK_RULE_WAITERS,
     "1S granted; 2X queued; 3S queued; -1 2granted; -2 3granted"},
    {LOCK_WAIT_DIE, LOCK_RULE_BEHIND, "4X granted; 2X queued; 3X died; -4 2granted"},
    /* L2 */
    {LOCK_WAIT_DIE, LOCK_RULE_KILL, "3X granted; 2X queued; 1X queued 2died; -3 1granted"},
    {LOCK_WAIT_DIE, LOCK_RULE_KILL, "3S granted; 2X queued; 1S granted 2died; -3; -1"},
    /* L3 */
    {LOCK_WOUND_WAIT, LOCK_RULE_OLDEST,
     "1X granted; 3X queued; 2X queued; -1 2granted; -2 3granted"},
    /* L4 */
    {LOCK_WOUND_WAIT, LOCK_RULE_IMMUNE, "2X granted; p2; 1X queued; -2 1granted"},
    {LOCK_WOUND_WAIT, LOCK_RULE_IMMUNE,
     "4S granted; 3S granted; p3; 2X queued 4wounded; w4 no; -4; -3 2granted"},
    {LOCK_NO_WAIT, LOCK_RULE_WOUNDED, "1X granted; w1; p1 no; 2S granted 1wounded; -1; -2"},
    {LOCK_WAIT_DIE, LOCK_RULE_WOUNDED, "1X granted; w1; 2X granted 1wounded; -1; -2"},
    /* L5 */
    {LOCK_WAIT_DIE, LOCK_RULE_UPGRADE, "2S granted; 1X queued; 2X granted; -2 1granted"},
    {LOCK_WOUND_WAIT, ANY,
     "2S granted; p2; 1S granted; 1X queued; -2 1granted; 3S queued; -1 3granted"},
    /* L6 */
    {LOCK_WOUND_WAIT, LOCK_RULE_PROMOTE, "1S granted; 2X queued; 3S queued; -2 3granted; -1; -3"},
};

static void test_stories(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        assert_true(goes(stories[i].policy, 0, stories[i].story, false));
    }
}

static void test_a_try_that_is_over_is_not_wounded(void **state)
{
    (void)state;
    struct try_status status = {0};
    uint64_t first = try_begin(&status);
    assert_int_equal(try_state(&status, first), TRY_RUNNING);
    assert_true(try_prepare(&status, first));
    assert_false(try_wound(&status, first));
    assert_false(try_prepare(&status, first));
    try_end(&status, first);
    uint64_t second = try_begin(&status);
    assert_int_not_equal(first, second);
    assert_int_equal(try_state(&status, first), TRY_FREE);
    assert_false(try_wound(&status, first));
    assert_int_equal(try_state(&status, second), TRY_RUNNING);
    assert_true(try_wound(&status, second));
    assert_false(try_prepare(&status, second));
    assert_int_equal(try_state(&status, second), TRY_WOUNDED);
}

/* Requests, releases, wounds and preparations at random: the invariants hold after each, all lists
 * end empty, and who waited was answered. */
static void test_at_random(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 300; seed++) {
        uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15);
        struct rig rig;
        rig_init(&rig, (enum lock_policy)(seed % LOCK_POLICIES), 0);
        struct lock_table t = table(&rig);
        for (uint32_t i = 0; i < 400; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            uint32_t number = (uint32_t)(random >> 33) % TXNS + 1;
            struct lock_request *r = &rig.requests[number];
            struct try_status *status = &rig.statuses[number];
            enum try_state is = try_state(status, rig.generation[number]);
            lock_chain chain = 0;
            uint32_t what = (uint32_t)(random >> 40) % 8;
            if (what < 5 && is == TRY_RUNNING && r->state != LOCK_WAITS) {
                (void)lock_ask(&t, &rig.lock, number, what < 3 ? LOCK_S : LOCK_X, &chain);
            } else if (what == 5 && is == TRY_RUNNING && r->state == LOCK_OWNS) {
                assert_true(try_prepare(status, rig.generation[number]));
            } else if (what == 6 && is == TRY_RUNNING && r->state == LOCK_IDLE) {
                assert_true(try_wound(status, rig.generation[number]));
            } else if (what == 7) {
                lock_release(&t, &rig.lock, number, &chain);
                try_end(status, rig.generation[number]);
                rig.generation[number] = try_begin(status);
                r->generation = rig.generation[number];
            }
            const char *broken = lock_broken(&t, &rig.lock);
            if (broken != NULL) {
                fail_msg("seed %u, step %u: %s", seed, i, broken);
            }
        }
        for (uint32_t number = 1; number <= TXNS; number++) {
            lock_chain chain;
            lock_release(&t, &rig.lock, number, &chain);
        }
        assert_int_equal(rig.lock.owners, 0);
        assert_int_equal(rig.lock.waiters, 0);
    }
}

#ifdef HK_MUTANTS
static void test_stories_need_their_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        uint64_t off = stories[i].rule == ANY ? 0 : UINT64_C(1) << stories[i].rule;
        if (stories[i].rule == LOCK_RULE_KILL) {
            off |= UINT64_C(1) << LOCK_RULE_KILL_LATE;
        }
        if (off != 0 && goes(stories[i].policy, off, stories[i].story, true)) {
            fail_msg("goes without %s: %s", lock_rule_names[stories[i].rule], stories[i].story);
        }
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stories),
        cmocka_unit_test(test_a_try_that_is_over_is_not_wounded),
        cmocka_unit_test(test_at_random),
#ifdef HK_MUTANTS
        cmocka_unit_test(test_stories_need_their_rules),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
