/* Random transactions of several holders over few keys, stepped one step at a time in random order,
 * against the table: reads, writes, insertions, deletions and scans, kills and the cleaner in
 * between. Under strict two-phase locking the order of commits is a serial order: when a
 * transaction commits, everything that it read must be what a sorted map, to which the committed
 * ones were applied in their order, holds at that moment.
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
#include "support/node_table.h"

#define KEYS 8u /* "a" to "h" */
#define WORKERS 4u
#define STEPS_MAX 5u
#define TURNS 1500u

enum step_kind { STEP_READ, STEP_WRITE, STEP_DELETE, STEP_SCAN, STEP_SCAN_DELETE, STEP_KINDS };

struct step {
    enum step_kind kind;
    uint8_t key;   /* or where a scan begins */
    uint8_t end;   /* of a scan; KEYS: no end */
    uint8_t limit; /* 0: none */
    bool reverse;
    /* What it read: a value for each key, 0 for absent; of a scan, keys in the order met. */
    uint32_t value;
    uint8_t rows_n;
    uint8_t keys[KEYS];
    uint32_t values[KEYS];
};

enum worker_state { WORKER_RUNS, WORKER_WAITS, WORKER_PREPARED };

struct worker {
    struct step steps[STEPS_MAX];
    uint32_t steps_n;
    uint32_t at;
    uint64_t age;
    enum worker_state state;
    bool begun;
    bool tried; /* keeps its program and its age */
    struct lotus_scan scan;
};

struct world {
    struct table_rig rig;
    struct random random;
    uint32_t model[KEYS]; /* by key; 0: absent */
    uint32_t values;      /* the last one written */
    uint64_t ages;
    uint64_t commits;
    uint64_t refused;
    struct worker workers[WORKERS];
    const char *broken;
};

static const char letters[KEYS + 1] = "abcdefgh";

static struct bytes key_of(uint8_t key)
{
    return key == KEYS ? bytes_of(NULL, 0) : bytes_of(&letters[key], 1);
}

static uint32_t value_of(const struct lotus_row *row)
{
    uint32_t value = 0;
    if ((row->flags & LOTUS_ROW_ABSENT) == 0) {
        memcpy(&value, row->value.at, sizeof(value));
    }
    return value;
}

/* ---- Programs ---- */

static void invent(struct world *w, struct worker *k)
{
    struct random *r = &w->random;
    k->steps_n = 1u + (uint32_t)random_below(r, STEPS_MAX);
    k->age = ++w->ages;
    for (uint32_t i = 0; i < k->steps_n; i++) {
        uint8_t a = (uint8_t)random_below(r, KEYS), b = (uint8_t)(random_below(r, KEYS) + 1u);
        uint64_t kind = random_below(r, 20);
        k->steps[i] =
            (struct step){.kind = kind < 4    ? STEP_READ
                                  : kind < 10 ? STEP_WRITE
                                  : kind < 13 ? STEP_DELETE
                                  : kind < 19 ? STEP_SCAN
                                              : STEP_SCAN_DELETE,
                          .key = a < b ? a : b,
                          .end = a < b ? b : a,
                          .limit = (uint8_t)(random_below(r, 3) == 0 ? 1u + random_below(r, 3) : 0),
                          .reverse = random_below(r, 3) == 0};
    }
}

static bool is_scan(const struct step *s)
{
    return s->kind == STEP_SCAN || s->kind == STEP_SCAN_DELETE;
}

/* ---- What must be: the model ---- */

static bool read_is_right(const struct world *w, const struct step *s)
{
    if (!is_scan(s)) {
        return s->value == w->model[s->key];
    }
    uint32_t n = 0;
    for (uint32_t i = s->key; i < s->end; i++) {
        uint32_t key = s->reverse ? s->key + s->end - 1u - i : i;
        if (w->model[key] == 0 || (s->limit != 0 && n == s->limit)) {
            continue;
        }
        if (n == s->rows_n || s->keys[n] != key || s->values[n] != w->model[key]) {
            return false;
        }
        n++;
    }
    return n == s->rows_n;
}

/* ---- Steps ---- */

static void give_up(struct world *w, uint32_t number)
{
    struct worker *k = &w->workers[number];
    lotus_scan_end(&k->scan, w->rig.thread);
    table_end(&w->rig, number);
    k->begun = false;
}

static enum table_word scan_on(struct world *w, uint32_t number, struct step *s)
{
    struct table_rig *rig = &w->rig;
    struct worker *k = &w->workers[number];
    if (k->scan.item.flags == 0) {
        s->rows_n = 0;
        k->scan = (struct lotus_scan){
            .item = {.mode = s->kind == STEP_SCAN ? LOCK_S : LOCK_X,
                     .flags = (uint8_t)(LOTUS_ITEM_RANGE | (s->reverse ? LOTUS_ITEM_REVERSE : 0)),
                     .limit = s->limit,
                     .key = s->key == 0 ? bytes_of(NULL, 0) : key_of(s->key),
                     .end = key_of(s->end)}};
    }
    bool more = true;
    enum table_word word = TABLE_DONE;
    /* A row at a time, or all at once. */
    bool one = random_below(&w->random, 2) == 0;
    while (word == TABLE_DONE && more) {
        word = lotus_table_scan(rig->table, rig->thread, &rig->holders[number], &k->scan,
                                rig->buffer, &rig->row, &more);
        if (word == TABLE_DONE && more) {
            if (s->rows_n == KEYS) {
                w->broken = "a scan meets more rows than there are";
                return TABLE_REFUSED;
            }
            s->keys[s->rows_n] = (uint8_t)(rig->row.key.at[0] - 'a');
            s->values[s->rows_n++] = value_of(&rig->row);
            if (one) {
                return TABLE_WAITS;
            }
        }
    }
    if (word == TABLE_DONE) {
        lotus_scan_end(&k->scan, rig->thread);
        k->scan.item.flags = 0;
    }
    return word;
}

static enum table_word step(struct world *w, uint32_t number)
{
    struct worker *k = &w->workers[number];
    struct table_rig *rig = &w->rig;
    struct step *s = &k->steps[k->at];
    if (is_scan(s)) {
        return scan_on(w, number, s);
    }
    enum table_word word =
        lotus_table_point(rig->table, rig->thread, &rig->holders[number], key_of(s->key), 0,
                          s->kind == STEP_READ ? LOCK_S : LOCK_X, true, rig->buffer, &rig->row);
    s->value = word == TABLE_DONE ? value_of(&rig->row) : 0;
    return word;
}

/* Each row that is written: calls write or reserve. */
static bool each_write(struct world *w, uint32_t number, bool reserve)
{
    struct worker *k = &w->workers[number];
    struct table_rig *rig = &w->rig;
    for (uint32_t i = 0; i < k->steps_n; i++) {
        struct step *s = &k->steps[i];
        uint32_t n = s->kind == STEP_SCAN_DELETE ? s->rows_n : 1u;
        for (uint32_t j = 0; j < n && s->kind != STEP_READ && s->kind != STEP_SCAN; j++) {
            uint8_t key = s->kind == STEP_SCAN_DELETE ? s->keys[j] : s->key;
            uint32_t value = s->kind == STEP_WRITE ? w->values + 1u : 0;
            uint8_t bytes[40] = {0};
            memcpy(bytes, &value, sizeof(value));
            struct lotus_row row = {.key = key_of(key),
                                    .version = rig->now_us,
                                    .flags = value == 0 ? LOTUS_ROW_ABSENT : 0,
                                    .value = bytes_of(bytes, value == 0 ? 0 : 4u + value % 37u)};
            enum table_word word =
                reserve ? lotus_table_reserve(rig->table, rig->thread, &rig->holders[number], &row)
                        : lotus_table_write(rig->table, rig->thread, &rig->holders[number], &row,
                                            rig->now_us);
            if (word != TABLE_DONE) {
                return false;
            }
            w->values += reserve ? 0 : 1u;
            w->model[key] = reserve ? w->model[key] : value;
        }
    }
    return true;
}

static void commit(struct world *w, uint32_t number)
{
    struct worker *k = &w->workers[number];
    for (uint32_t i = 0; i < k->steps_n; i++) {
        if (!read_is_right(w, &k->steps[i])) {
            w->broken = "what was read is not what the serial order gives";
            return;
        }
    }
    if (!each_write(w, number, false)) {
        w->broken = "a prepared write is refused";
        return;
    }
    w->commits++;
    k->tried = false;
    give_up(w, number);
}

static void take_turn(struct world *w, uint32_t number)
{
    struct worker *k = &w->workers[number];
    struct table_rig *rig = &w->rig;
    if (!k->begun) {
        if (!k->tried) {
            invent(w, k);
        }
        table_begin(rig, number, k->age);
        k->at = 0;
        k->begun = true;
        k->tried = true;
        k->state = WORKER_RUNS;
        k->scan = (struct lotus_scan){.found = 0};
    }
    if (k->state == WORKER_PREPARED) {
        commit(w, number);
        return;
    }
    if (k->at == k->steps_n) {
        if (each_write(w, number, true) && table_prepare(rig, number)) {
            k->state = WORKER_PREPARED;
        } else {
            give_up(w, number);
        }
        return;
    }
    rig->woken[number] = 0;
    enum table_word word = step(w, number);
    k->state = word == TABLE_WAITS && rig->holders[number].waits != 0 ? WORKER_WAITS : WORKER_RUNS;
    if (word == TABLE_DONE) {
        k->at++;
    } else if (word != TABLE_WAITS) {
        w->refused++;
        give_up(w, number);
    }
}

/* One that may go on; WORKERS: nobody. Now and then one that waits, for nothing. */
static uint32_t choose(struct world *w)
{
    uint32_t first = (uint32_t)random_below(&w->random, WORKERS);
    if (random_below(&w->random, 20) == 0) {
        return first;
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        uint32_t number = (first + i) % WORKERS;
        if (w->workers[number].state != WORKER_WAITS || w->rig.woken[number] != 0) {
            return number;
        }
    }
    return WORKERS;
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
    if (number == WORKERS) {
        w->broken = "all wait, and nobody was woken";
    } else if (what == 99) {
        (void)lotus_table_wound(rig->table, number, rig->holders[number].generation);
    } else {
        take_turn(w, number);
    }
}

/* NULL, or what was found. */
static const char *run(uint64_t seed, enum lock_policy policy, uint64_t rules_off,
                       uint64_t *commits_out)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->rig.lotus = (struct lotus_config){.lock.policy = (uint8_t)policy, .rules_off = rules_off};
    w->rig.lotus.grace_us = 500;
    table_open(&w->rig);
    random_init(&w->random, seed);
    for (uint32_t i = 0; i < TURNS && w->broken == NULL; i++) {
        turn(w);
        if (w->broken == NULL && i % 16 == 0) {
            w->broken = lotus_table_check(w->rig.table, w->rig.thread);
        }
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        if (w->workers[i].begun) {
            give_up(w, i);
        }
    }
    const char *broken = w->broken;
    *commits_out += w->commits;
    if (broken == NULL) {
        for (uint32_t i = 0; i < KEYS && broken == NULL; i++) {
            const char key[2] = {letters[i], '\0'};
            bool there = table_get(&w->rig, key) != NULL;
            broken = there == (w->model[i] != 0) ? NULL : "at the end a row is not as it must be";
        }
        table_close(&w->rig);
    } else {
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
