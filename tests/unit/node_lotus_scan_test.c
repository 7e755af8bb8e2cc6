/* Scans, insertions, ghosts and their cleaner, rule by rule (N1 to N6 of docs/protocols/lotus.md):
 * each test is an execution that lets a phantom in without the rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/node_table.h"

static void open_with(struct table_rig *rig, enum lock_policy policy, const char *keys)
{
    *rig = (struct table_rig){.lotus.lock.policy = (uint8_t)policy};
    table_open(rig);
    for (const char *k = keys; *k != '\0'; k++) {
        char key[2] = {*k, '\0'}, value[3] = {*k, *k, '\0'};
        table_set(rig, key, value);
    }
}

static void assert_scan(struct table_rig *rig, uint32_t holder, const char *from, const char *to,
                        uint32_t limit, bool reverse, const char *rows)
{
    struct table_scan scan;
    table_scan_init(&scan, from, to, limit, reverse);
    assert_int_equal(table_scan(rig, holder, &scan), TABLE_DONE);
    assert_string_equal(scan.rows, rows);
    table_scan_end(rig, &scan);
}

static void commit(struct table_rig *rig, uint32_t holder, const char *key, const char *value)
{
    assert_true(table_prepare(rig, holder));
    table_write(rig, holder, key, value);
    table_end(rig, holder);
}

/* A try of its own that wants to write the key, younger than all. */
static enum table_word intrude(struct table_rig *rig, uint32_t holder, const char *key)
{
    table_begin(rig, holder, 1000 + holder);
    return table_take(rig, holder, key);
}

static void assert_kept_out(struct table_rig *rig, const char *keys)
{
    for (const char *k = keys; *k != '\0'; k++) {
        char key[2] = {*k, '\0'};
        assert_int_equal(intrude(rig, 9, key), TABLE_REFUSED);
        table_end(rig, 9);
    }
}

static void assert_let_in(struct table_rig *rig, const char *keys)
{
    for (const char *k = keys; *k != '\0'; k++) {
        char key[2] = {*k, '\0'};
        assert_int_equal(intrude(rig, 9, key), TABLE_DONE);
        table_end(rig, 9);
    }
}

/* ---- What scans give ---- */

static void test_ranges(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "bdfhx");
    table_set(&rig, "x", NULL);
    table_begin(&rig, 1, 1);
    assert_scan(&rig, 1, "", "", 0, false, "b=bb d=dd f=ff h=hh ");
    assert_scan(&rig, 1, "", "", 0, true, "h=hh f=ff d=dd b=bb ");
    assert_scan(&rig, 1, "d", "h", 0, false, "d=dd f=ff ");
    assert_scan(&rig, 1, "d", "h", 0, true, "f=ff d=dd ");
    assert_scan(&rig, 1, "c", "g", 0, false, "d=dd f=ff ");
    assert_scan(&rig, 1, "c", "g", 0, true, "f=ff d=dd ");
    assert_scan(&rig, 1, "c", "", 2, false, "d=dd f=ff ");
    assert_scan(&rig, 1, "", "g", 2, true, "f=ff d=dd ");
    assert_scan(&rig, 1, "i", "z", 0, false, "");
    assert_scan(&rig, 1, "i", "z", 0, true, "");
    assert_scan(&rig, 1, "f", "c", 0, false, "");
    assert_scan(&rig, 1, "f", "c", 0, true, "");
    assert_scan(&rig, 1, "d", "d", 0, false, "");
    table_end(&rig, 1);
    table_close(&rig);
}

static void test_an_empty_table_is_scanned(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "");
    table_begin(&rig, 1, 1);
    assert_scan(&rig, 1, "", "", 0, false, "");
    assert_scan(&rig, 1, "a", "b", 0, true, "");
    assert_kept_out(&rig, "abz");
    table_end(&rig, 1);
    assert_let_in(&rig, "abz");
    table_close(&rig);
}

/* Keys that do not fit the cursor or the lock, and values out of line. */
static void test_long_keys_are_scanned(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "");
    char keys[3][301];
    for (uint32_t i = 0; i < 3; i++) {
        memset(keys[i], 'k', 300);
        keys[i][290] = (char)('a' + i);
        keys[i][300] = '\0';
        table_set(&rig, keys[i], "v");
    }
    for (uint32_t reverse = 0; reverse < 2; reverse++) {
        struct table_scan scan;
        bool more;
        table_scan_init(&scan, "", "", 0, reverse != 0);
        table_begin(&rig, 1, 1);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(lotus_table_scan(rig.table, rig.thread, &rig.holders[1], &scan.scan,
                                              rig.buffer, &rig.row, &more),
                             TABLE_DONE);
            assert_true(more && rig.row.key.n == 300);
            assert_memory_equal(rig.row.key.at, keys[reverse != 0 ? 2 - i : i], 300);
        }
        assert_int_equal(table_scan(&rig, 1, &scan), TABLE_DONE);
        assert_string_equal(scan.rows, "");
        table_scan_end(&rig, &scan);
        table_end(&rig, 1);
    }
    table_close(&rig);
}

/* ---- Phantoms ---- */

/* N4: all that a scan met, and what lies between; not what lies beyond. */
static void test_a_scan_guards_its_range(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "bdfhj");
    table_begin(&rig, 1, 1);
    assert_scan(&rig, 1, "d", "g", 0, false, "d=dd f=ff ");
    assert_kept_out(&rig, "defgd");
    assert_let_in(&rig, "abhijk");
    table_end(&rig, 1);
    table_begin(&rig, 1, 1);
    assert_scan(&rig, 1, "d", "g", 0, true, "f=ff d=dd ");
    assert_kept_out(&rig, "defg");
    assert_let_in(&rig, "abhijk");
    table_end(&rig, 1);
    table_close(&rig);
}

/* With a limit, up to the last result and no further. */
static void test_a_limited_scan_guards_what_it_saw(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "bdfh");
    table_begin(&rig, 1, 1);
    assert_scan(&rig, 1, "c", "", 1, false, "d=dd ");
    assert_kept_out(&rig, "cd");
    assert_let_in(&rig, "befgh");
    table_end(&rig, 1);
    table_close(&rig);
    open_with(&rig, LOCK_NO_WAIT, "bdfh");
    table_begin(&rig, 1, 1);
    assert_scan(&rig, 1, "", "g", 1, true, "f=ff ");
    assert_kept_out(&rig, "fg");
    assert_let_in(&rig, "bceh");
    table_end(&rig, 1);
    table_close(&rig);
}

static void test_the_gap_behind_the_last_key(void **state)
{
    (void)state;
    struct table_rig rig;
    for (uint32_t reverse = 0; reverse < 2; reverse++) {
        open_with(&rig, LOCK_NO_WAIT, "b");
        table_begin(&rig, 1, 1);
        assert_scan(&rig, 1, "c", "", 0, reverse != 0, "");
        assert_kept_out(&rig, "cz");
        assert_let_in(&rig, "ab");
        table_end(&rig, 1);
        table_close(&rig);
    }
}

/* A writer has the row: the scan waits for it, and then sees what became of it. */
static void test_a_scan_waits_for_a_row(void **state)
{
    (void)state;
    struct table_rig rig;
    for (uint32_t reverse = 0; reverse < 2; reverse++) {
        struct table_scan scan;
        open_with(&rig, LOCK_WAIT_DIE, "bdf");
        table_begin(&rig, 1, 5);
        assert_int_equal(table_take(&rig, 1, "d"), TABLE_DONE);
        table_begin(&rig, 2, 2);
        table_scan_init(&scan, "", "", 0, reverse != 0);
        assert_int_equal(table_scan(&rig, 2, &scan), TABLE_WAITS);
        assert_string_equal(scan.rows, reverse != 0 ? "f=ff " : "b=bb ");
        commit(&rig, 1, "d", "new");
        assert_int_equal(rig.woken[2], 1);
        assert_int_equal(table_scan(&rig, 2, &scan), TABLE_DONE);
        assert_string_equal(scan.rows, reverse != 0 ? "f=ff d=new b=bb " : "b=bb d=new f=ff ");
        table_scan_end(&rig, &scan);
        table_end(&rig, 2);
        table_close(&rig);
    }
}

/* N2: while the scan waits for a row, another one comes before it. */
static void test_a_scan_looks_again(void **state)
{
    (void)state;
    struct table_rig rig;
    struct table_scan scan;
    open_with(&rig, LOCK_WAIT_DIE, "bf");
    table_begin(&rig, 1, 5);
    assert_int_equal(table_take(&rig, 1, "f"), TABLE_DONE);
    table_begin(&rig, 2, 2);
    table_scan_init(&scan, "", "", 0, false);
    assert_int_equal(table_scan(&rig, 2, &scan), TABLE_WAITS);
    table_begin(&rig, 3, 6);
    assert_int_equal(table_take(&rig, 3, "d"), TABLE_DONE);
    commit(&rig, 3, "d", "dd");
    table_end(&rig, 1);
    assert_int_equal(table_scan(&rig, 2, &scan), TABLE_DONE);
    assert_string_equal(scan.rows, "b=bb d=dd f=ff ");
    assert_kept_out(&rig, "acdeg");
    table_scan_end(&rig, &scan);
    table_end(&rig, 2);
    table_close(&rig);
}

/* N2: a scan goes on in what it saw of the index when it began, and something has come there. */
static void test_a_scan_goes_on(void **state)
{
    (void)state;
    struct table_rig rig;
    for (uint32_t reverse = 0; reverse < 2; reverse++) {
        struct table_scan scan;
        bool more;
        open_with(&rig, LOCK_NO_WAIT, "dh");
        table_begin(&rig, 1, 1);
        table_scan_init(&scan, "", "", 0, reverse != 0);
        assert_int_equal(lotus_table_scan(rig.table, rig.thread, &rig.holders[1], &scan.scan,
                                          rig.buffer, &rig.row, &more),
                         TABLE_DONE);
        assert_true(more && rig.row.key.at[0] == (reverse != 0 ? 'h' : 'd'));
        table_set(&rig, reverse != 0 ? "b" : "f", "new");
        table_set(&rig, reverse != 0 ? "a" : "j", "new");
        assert_int_equal(table_scan(&rig, 1, &scan), TABLE_DONE);
        assert_string_equal(scan.rows, reverse != 0 ? "d=dd b=new a=new " : "f=new h=hh j=new ");
        table_scan_end(&rig, &scan);
        table_end(&rig, 1);
        table_close(&rig);
    }
}

/* N3: the gap is held no longer than the ghost takes to stand: two insert into one gap. */
static void test_two_insert_into_one_gap(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "bz");
    table_begin(&rig, 1, 1);
    table_begin(&rig, 2, 2);
    assert_int_equal(table_take(&rig, 1, "d"), TABLE_DONE);
    assert_int_equal(table_take(&rig, 2, "c"), TABLE_DONE);
    assert_int_equal(table_take(&rig, 1, "e"), TABLE_DONE);
    assert_int_equal(rig.holders[1].locks, 2);
    assert_string_equal(table_entries(&rig), "b=bb c(0) d(0) e(0) z=zz ");
    commit(&rig, 1, "d", "dd");
    commit(&rig, 2, "c", "cc");
    table_close(&rig);
}

static void scan_between(struct table_rig *rig)
{
    table_begin(rig, 3, 1);
    assert_scan(rig, 3, "c", "y", 0, false, "");
}

/* An insertion wounds the gap's younger scanner, and an older scan comes as soon as a latch is
 * free. Whether what that has seen empty may be inserted into. */
static bool insertion_in_two_steps(uint64_t rules_off)
{
    struct table_rig rig = {.lotus = {.lock.policy = LOCK_WOUND_WAIT, .rules_off = rules_off}};
    table_open(&rig);
    table_set(&rig, "b", "bb");
    table_set(&rig, "z", "zz");
    table_begin(&rig, 1, 9);
    assert_scan(&rig, 1, "c", "y", 0, false, "");
    table_begin(&rig, 2, 5);
    rig.between = scan_between;
    assert_int_equal(table_take(&rig, 2, "m"), TABLE_DONE);
    assert_null(rig.between);
    /* The scan has wounded it: because of the gap, or of the ghost. */
    assert_int_equal(rig.woken[2], 1);
    assert_false(table_prepare(&rig, 2));
    table_end(&rig, 2);
    table_end(&rig, 1);
    enum table_word word = intrude(&rig, 9, "d");
    assert_true(word == TABLE_DONE || word == TABLE_WAITS);
    table_end(&rig, 9);
    table_end(&rig, 3);
    table_close(&rig);
    return word == TABLE_DONE;
}

/* N3: that the gap is the insertion's and the ghost are one step. */
static void test_an_insertion_is_one_step(void **state)
{
    (void)state;
    assert_false(insertion_in_two_steps(0));
#ifdef HK_MUTANTS
    assert_true(insertion_in_two_steps(UINT64_C(1) << LOTUS_RULE_GAP_STEP));
#endif
}

/* N3: who has scanned a gap and inserts into it guards both halves. */
static void test_an_insertion_into_a_gap_of_its_own(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "bz");
    table_begin(&rig, 1, 1);
    assert_scan(&rig, 1, "c", "y", 0, false, "");
    assert_int_equal(table_take(&rig, 1, "m"), TABLE_DONE);
    assert_kept_out(&rig, "cmn");
    assert_int_equal(table_take(&rig, 1, "p"), TABLE_DONE);
    assert_kept_out(&rig, "cdmnopqy");
    assert_let_in(&rig, "ab");
    table_end(&rig, 1);
    table_close(&rig);
}

/* An insertion waits until the gap's scanner ends; then it has the gap for as long as it takes. */
static void test_an_insertion_waits_for_a_scan(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WAIT_DIE, "bz");
    table_begin(&rig, 1, 5);
    assert_scan(&rig, 1, "c", "y", 0, false, "");
    table_begin(&rig, 2, 2);
    assert_int_equal(table_take(&rig, 2, "m"), TABLE_WAITS);
    assert_int_equal(table_take(&rig, 2, "m"), TABLE_WAITS);
    table_end(&rig, 1);
    assert_int_equal(rig.woken[2], 1);
    assert_int_equal(table_take(&rig, 2, "m"), TABLE_DONE);
    assert_int_equal(rig.holders[2].locks, 1);
    assert_let_in(&rig, "ly");
    commit(&rig, 2, "m", "mm");
    table_close(&rig);
}

/* The same, but while nobody looked its gap was halved: the gap that it got is let go. */
static void test_an_insertion_gets_the_wrong_gap(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WOUND_WAIT, "bz");
    /* 1 has scanned (b, z); 2 and 3, younger, wait to insert there. */
    table_begin(&rig, 1, 1);
    assert_scan(&rig, 1, "c", "y", 0, false, "");
    table_begin(&rig, 2, 2);
    table_begin(&rig, 3, 3);
    assert_int_equal(table_take(&rig, 2, "m"), TABLE_WAITS);
    assert_int_equal(table_take(&rig, 3, "d"), TABLE_WAITS);
    table_end(&rig, 1);
    /* 2 owns the gap; when it has inserted, 3 does, but the gap of d is that of m now. */
    assert_int_equal(rig.woken[2], 1);
    assert_int_equal(table_take(&rig, 2, "m"), TABLE_DONE);
    assert_int_equal(rig.woken[3], 1);
    assert_int_equal(table_take(&rig, 3, "d"), TABLE_DONE);
    assert_int_equal(rig.holders[3].locks, 1);
    assert_string_equal(table_entries(&rig), "b=bb d(0) m(0) z=zz ");
    table_end(&rig, 2);
    table_end(&rig, 3);
    table_close(&rig);
}

/* Two have scanned a gap; each wants to insert there. The one that goes on guards both halves. */
static void test_two_scanners_insert(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WOUND_WAIT, "bz");
    table_begin(&rig, 1, 1);
    table_begin(&rig, 2, 2);
    assert_scan(&rig, 1, "c", "y", 0, false, "");
    assert_scan(&rig, 2, "c", "y", 0, false, "");
    assert_int_equal(table_take(&rig, 2, "m"), TABLE_WAITS);
    assert_int_equal(table_take(&rig, 1, "n"), TABLE_DONE);
    assert_int_equal(rig.woken[2], 1);
    assert_int_equal(table_take(&rig, 2, "m"), TABLE_REFUSED);
    table_end(&rig, 2);
    table_begin(&rig, 3, 3);
    assert_int_equal(table_take(&rig, 3, "m"), TABLE_WAITS);
    table_begin(&rig, 4, 4);
    assert_int_equal(table_take(&rig, 4, "o"), TABLE_WAITS);
    commit(&rig, 1, "n", "nn");
    assert_int_equal(table_take(&rig, 3, "m"), TABLE_DONE);
    assert_int_equal(table_take(&rig, 4, "o"), TABLE_DONE);
    table_end(&rig, 3);
    table_end(&rig, 4);
    table_close(&rig);
}

/* ---- Ghosts ---- */

/* N5, N1: an insertion is given up, and its ghost stays: the gap below it has been scanned. */
static void test_an_aborted_insertion_leaves_a_ghost(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "bz");
    table_begin(&rig, 1, 1);
    assert_int_equal(table_take(&rig, 1, "m"), TABLE_DONE);
    table_begin(&rig, 2, 2);
    assert_scan(&rig, 2, "c", "d", 0, false, "");
    table_end(&rig, 1);
    assert_string_equal(table_entries(&rig), "b=bb m(0) z=zz ");
    /* Long due, but the gap below it is guarded. */
    rig.now_us += 1000000;
    (void)lotus_table_clean(rig.table, rig.thread, rig.now_us, 10);
    rig.now_us += 1000000;
    (void)lotus_table_clean(rig.table, rig.thread, rig.now_us, 10);
    assert_string_equal(table_entries(&rig), "b=bb m(0) z=zz ");
    assert_kept_out(&rig, "cd");
    assert_let_in(&rig, "n");
    table_end(&rig, 2);
    table_close(&rig);
}

/* A ghost is met, locked, and no result: who made it may commit. */
static void test_a_scan_locks_ghosts(void **state)
{
    (void)state;
    struct table_rig rig;
    struct table_scan scan;
    open_with(&rig, LOCK_WAIT_DIE, "bz");
    table_begin(&rig, 1, 5);
    assert_int_equal(table_take(&rig, 1, "m"), TABLE_DONE);
    table_begin(&rig, 2, 2);
    table_scan_init(&scan, "c", "", 0, false);
    assert_int_equal(table_scan(&rig, 2, &scan), TABLE_WAITS);
    commit(&rig, 1, "m", "mm");
    assert_int_equal(table_scan(&rig, 2, &scan), TABLE_DONE);
    assert_string_equal(scan.rows, "m=mm z=zz ");
    table_scan_end(&rig, &scan);
    table_end(&rig, 2);
    /* Nobody's ghost is guarded as well: it may be written. */
    table_set(&rig, "m", NULL);
    table_begin(&rig, 2, 2);
    assert_scan(&rig, 2, "c", "", 0, false, "z=zz ");
    assert_kept_out(&rig, "m");
    table_end(&rig, 2);
    table_close(&rig);
}

/* Deletion and insertion under a scan's gap: the gap stays what it was. */
static void test_a_deletion_merges_no_gaps(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "bmz");
    table_begin(&rig, 1, 1);
    assert_scan(&rig, 1, "c", "d", 0, false, "");
    table_begin(&rig, 2, 2);
    assert_int_equal(table_take(&rig, 2, "m"), TABLE_DONE);
    commit(&rig, 2, "m", NULL);
    assert_kept_out(&rig, "cd");
    table_end(&rig, 1);
    table_close(&rig);
}

static void test_the_cleaner(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "bmz");
    assert_int_equal(lotus_table_clean_due(rig.table), UINT64_MAX);
    uint64_t grace = rig.lotus.grace_us;
    table_set(&rig, "m", NULL);
    uint64_t since = rig.now_us;
    assert_true(lotus_table_clean_due(rig.table) <= since + grace);
    assert_false(lotus_table_clean(rig.table, rig.thread, since + grace - 1, 10));
    assert_string_equal(table_entries(&rig) + 5, "m(1000004) z=zz ");
    assert_int_equal(lotus_table_clean_due(rig.table), since + grace);
    /* Somebody reads that it is absent. */
    table_begin(&rig, 1, 1);
    assert_int_equal(table_read(&rig, 1, "m"), TABLE_DONE);
    assert_false(lotus_table_clean(rig.table, rig.thread, since + grace, 10));
    assert_string_equal(table_entries(&rig) + 5, "m(1000004) z=zz ");
    table_end(&rig, 1);
    assert_int_equal(lotus_table_clean_due(rig.table), since + 2 * grace);
    assert_false(lotus_table_clean(rig.table, rig.thread, since + 2 * grace, 10));
    assert_string_equal(table_entries(&rig), "b=bb z=zz ");
    assert_int_equal(lotus_table_clean_due(rig.table), UINT64_MAX);
    table_close(&rig);
}

/* A row that came again stays, and is queued again when it goes again. */
static void test_the_cleaner_spares_rows(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "m");
    for (uint32_t i = 0; i < 3; i++) {
        table_set(&rig, "m", NULL);
        table_set(&rig, "m", "again");
    }
    (void)lotus_table_clean(rig.table, rig.thread, rig.now_us, 10);
    rig.now_us += 2 * rig.lotus.grace_us;
    assert_false(lotus_table_clean(rig.table, rig.thread, rig.now_us, 10));
    assert_string_equal(table_entries(&rig), "m=again ");
    assert_int_equal(lotus_table_clean_due(rig.table), UINT64_MAX);
    table_set(&rig, "m", NULL);
    (void)lotus_table_clean(rig.table, rig.thread, rig.now_us, 10);
    rig.now_us += 2 * rig.lotus.grace_us;
    assert_false(lotus_table_clean(rig.table, rig.thread, rig.now_us, 10));
    assert_string_equal(table_entries(&rig), "");
    table_close(&rig);
}

/* No more than asked for at a time. */
static void test_the_cleaner_is_bounded(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "abcde");
    for (const char *k = "abcde"; *k != '\0'; k++) {
        char key[2] = {*k, '\0'};
        table_set(&rig, key, NULL);
    }
    (void)lotus_table_clean(rig.table, rig.thread, rig.now_us, 10);
    rig.now_us += 2 * rig.lotus.grace_us;
    assert_true(lotus_table_clean(rig.table, rig.thread, rig.now_us, 2));
    struct lotus_table_stats stats;
    lotus_table_stats(rig.table, &stats);
    assert_int_equal(stats.ghosts, 3);
    assert_false(lotus_table_clean(rig.table, rig.thread, rig.now_us, 4));
    table_close(&rig);
}

/* ---- Rows that move ---- */

static enum table_word put(struct table_rig *rig, const char *key, const char *value)
{
    struct lotus_row row = {.key = bytes_of(key, (uint32_t)strlen(key)),
                            .version = 5,
                            .value = bytes_of(value, (uint32_t)strlen(value))};
    return lotus_table_put(rig->table, rig->thread, &row);
}

static void test_rows_come_and_go(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "bz");
    assert_int_equal(put(&rig, "m", "new"), TABLE_DONE);
    assert_int_equal(put(&rig, "b", "other"), TABLE_DONE);
    assert_string_equal(table_entries(&rig), "b=other m=new z=zz ");
    assert_int_equal(lotus_table_remove(rig.table, rig.thread, bytes_of("m", 1)), TABLE_DONE);
    assert_int_equal(lotus_table_remove(rig.table, rig.thread, bytes_of("m", 1)), TABLE_DONE);
    table_set(&rig, "b", NULL);
    assert_int_equal(lotus_table_remove(rig.table, rig.thread, bytes_of("b", 1)), TABLE_DONE);
    assert_string_equal(table_entries(&rig), "z=zz ");
    table_close(&rig);
}

/* A row that comes halves no gap that somebody has scanned; one that goes merges none. */
static void test_rows_wait_for_scans(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT, "bdz");
    table_begin(&rig, 1, 1);
    assert_scan(&rig, 1, "e", "f", 0, false, "");
    assert_int_equal(put(&rig, "y", "new"), TABLE_WAITS);
    assert_int_equal(put(&rig, "c", "new"), TABLE_DONE);
    assert_int_equal(lotus_table_remove(rig.table, rig.thread, bytes_of("z", 1)), TABLE_WAITS);
    assert_int_equal(lotus_table_remove(rig.table, rig.thread, bytes_of("d", 1)), TABLE_DONE);
    table_end(&rig, 1);
    assert_int_equal(put(&rig, "y", "new"), TABLE_DONE);
    assert_int_equal(lotus_table_remove(rig.table, rig.thread, bytes_of("z", 1)), TABLE_DONE);
    assert_string_equal(table_entries(&rig), "b=bb c=new y=new ");
    table_close(&rig);
}

/* ---- Who has what ---- */

struct listing {
    char text[1024];
};

static void list(void *context, const struct lotus_lock_row *row)
{
    struct listing *l = context;
    size_t n = strlen(l->text);
    snprintf(l->text + n, sizeof(l->text) - n, "%s%.*s:%u%s%s ", row->gap ? "<" : "",
             row->infinite ? 3 : (int)row->key.n, row->infinite ? "inf" : (const char *)row->key.at,
             row->status, row->mode == LOCK_X ? "X" : "S", row->state == LOCK_OWNS ? "" : "?");
}

static void assert_listed(struct table_rig *rig, uint32_t most, const char *each, bool listed)
{
    struct listing l = {.text = ""};
    lotus_table_locks(rig->table, most, list, &l);
    assert_true((strstr(l.text, each) != NULL) == listed);
}

static void test_locks_are_listed(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WAIT_DIE, "b");
    table_begin(&rig, 1, 5);
    assert_scan(&rig, 1, "", "", 0, false, "b=bb ");
    table_begin(&rig, 2, 2);
    assert_int_equal(table_take(&rig, 2, "b"), TABLE_WAITS);
    table_begin(&rig, 3, 3);
    assert_int_equal(table_take(&rig, 3, "z"), TABLE_WAITS);
    assert_listed(&rig, 100, "b:1S b:2X? ", true);
    assert_listed(&rig, 100, "<inf:1S <inf:3X? ", true);
    assert_listed(&rig, 100, "<b:1S ", true);
    assert_listed(&rig, 100, "z:3X ", true);
    assert_listed(&rig, 0, ":", false);
    struct lotus_table_stats stats;
    lotus_table_stats(rig.table, &stats);
    assert_int_equal(stats.locks, 4);
    assert_int_equal(stats.requests, 6);
    table_check(&rig);
    table_end(&rig, 1);
    table_end(&rig, 2);
    table_end(&rig, 3);
    table_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_an_empty_table_is_scanned),
        cmocka_unit_test(test_long_keys_are_scanned),
        cmocka_unit_test(test_a_scan_guards_its_range),
        cmocka_unit_test(test_a_limited_scan_guards_what_it_saw),
        cmocka_unit_test(test_the_gap_behind_the_last_key),
        cmocka_unit_test(test_a_scan_waits_for_a_row),
        cmocka_unit_test(test_a_scan_looks_again),
        cmocka_unit_test(test_a_scan_goes_on),
        cmocka_unit_test(test_an_insertion_waits_for_a_scan),
        cmocka_unit_test(test_an_insertion_gets_the_wrong_gap),
        cmocka_unit_test(test_two_insert_into_one_gap),
        cmocka_unit_test(test_an_insertion_is_one_step),
        cmocka_unit_test(test_an_insertion_into_a_gap_of_its_own),
        cmocka_unit_test(test_two_scanners_insert),
        cmocka_unit_test(test_an_aborted_insertion_leaves_a_ghost),
        cmocka_unit_test(test_a_scan_locks_ghosts),
        cmocka_unit_test(test_a_deletion_merges_no_gaps),
        cmocka_unit_test(test_the_cleaner),
        cmocka_unit_test(test_the_cleaner_spares_rows),
        cmocka_unit_test(test_the_cleaner_is_bounded),
        cmocka_unit_test(test_rows_come_and_go),
        cmocka_unit_test(test_rows_wait_for_scans),
        cmocka_unit_test(test_locks_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
