#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/meta.h"
#include "base/slot.h"
#include "engine/homes/homes.h"
#include "engine/lotus/lotus.h"

#define ROOM 65536u

/* A message under construction; where its value may be cut off without being wrong. */
struct draft {
    struct msg msg;
    uint8_t value[ROOM];
    uint8_t *at;
    uint32_t whole[16];
    uint32_t whole_n;
};

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static void begin(struct draft *d, uint8_t kind)
{
    d->msg = (struct msg){.kind = kind, .slot = 7, .gen = 9, .epoch = 3};
    d->at = d->value;
    d->whole_n = 0;
}

static const char *judge(struct draft *d)
{
    d->msg.value = bytes_of(d->value, (uint32_t)(d->at - d->value));
    return lotus_msg_invalid(&d->msg);
}

static void good(struct draft *d)
{
    const char *why = judge(d);
    if (why != NULL) {
        fail_msg("kind %u: %s", (unsigned)d->msg.kind, why);
    }
}

static void bad(struct draft *d, const char *why)
{
    const char *said = judge(d);
    assert_non_null(said);
    assert_string_equal(said, why);
}

static void may_end_here(struct draft *d)
{
    d->whole[d->whole_n++] = (uint32_t)(d->at - d->value);
}

/* Cut anywhere else it is refused; the whole is good. The bytes stand at the end of memory of just
 * their number, for the address sanitizer. */
static void refuses_truncations(struct draft *d)
{
    good(d);
    uint32_t n = d->msg.value.n, next = 0;
    for (uint32_t cut = 0; cut < n; cut++) {
        uint8_t *copy = malloc(cut + 1u);
        assert_non_null(copy);
        if (cut > 0) {
            memcpy(copy + 1, d->value, cut);
        }
        d->msg.value = bytes_of(copy + 1, cut);
        bool whole = next < d->whole_n && d->whole[next] == cut;
        next += whole ? 1u : 0u;
        assert_int_equal(lotus_msg_invalid(&d->msg) == NULL, whole);
        free(copy);
    }
    d->msg.value = bytes_of(d->value, n);
}

static const struct lotus_head head = {.age = {.us = UINT64_C(1) << 50, .who = 77}, .map = 5};

/* ---- Ranges ---- */

static void ranges_of_one_tag_are_of_one_slot(void **state)
{
    static const char *const one[][2] = {{"{a}", "{a}x"},
                                         {"{a}b", "{a}"},
                                         {"x{a}b", "x{a~"},
                                         {"{ab}", "{ab}z"},
                                         {"{a}b{c}", "{a}z"}};
    static const char *const several[][2] = {
        {"", ""},         {"a", "b"},    {"{a}", ""},      {"{a}", "{b}"}, {"{}a", "{}b"},
        {"x{a}", "y{a}"}, {"{a", "{a}"}, {"{a}b", "{a~b"}, {"{a}b", "{a"}, {"x{a}b", "{a}z"}};
    (void)state;
    for (uint32_t i = 0; i < sizeof one / sizeof one[0]; i++) {
        uint16_t slot = HASH_SLOTS;
        assert_true(lotus_range_slot(text(one[i][0]), text(one[i][1]), &slot));
        assert_int_equal(slot, slot_of_key(text(one[i][0])));
    }
    for (uint32_t i = 0; i < sizeof several / sizeof several[0]; i++) {
        uint16_t slot;
        assert_false(lotus_range_slot(text(several[i][0]), text(several[i][1]), &slot));
    }
}

/* ---- EXECUTE ---- */

static void test_items(void **state)
{
    (void)state;
    const struct lotus_item items[] = {
        {.mode = LOCK_S, .hint = UINT64_MAX, .key = text("a key")},
        {.mode = LOCK_X, .room = UINT32_MAX, .key = text("")},
        {.mode = LOCK_S, .flags = LOTUS_ITEM_KEYS, .key = text("b")},
        {.mode = LOCK_S,
         .flags = LOTUS_ITEM_RANGE | LOTUS_ITEM_REVERSE | LOTUS_ITEM_KEYS,
         .limit = UINT32_MAX,
         .key = text("from"),
         .end = text("to")},
        {.mode = LOCK_X, .flags = LOTUS_ITEM_RANGE},
    };
    struct draft d;
    begin(&d, LOTUS_MSG_EXECUTE);
    d.at = lotus_head_put(d.at, &head);
    for (uint32_t i = 0; i < 5; i++) {
        uint8_t *before = d.at;
        d.at = lotus_item_put(d.at, &items[i]);
        assert_int_equal(d.at - before, lotus_item_bytes(&items[i]));
        may_end_here(&d);
    }
    refuses_truncations(&d);
    struct bytes rest = d.msg.value;
    struct lotus_head h;
    struct lotus_item item;
    lotus_head_take(&rest, &h);
    assert_memory_equal(&h, &head, sizeof h);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(lotus_item_take(&rest, &item));
        assert_int_equal(item.mode, items[i].mode);
        assert_int_equal(item.flags, items[i].flags);
        assert_int_equal(item.limit, items[i].limit);
        assert_int_equal(item.room, items[i].room);
        assert_int_equal(item.hint, items[i].hint);
        assert_true(bytes_equal(item.key, items[i].key));
        assert_true(bytes_equal(item.end, items[i].end));
    }
    assert_false(lotus_item_take(&rest, &item));
}

static void refuses_item(const struct lotus_item *item, const char *why)
{
    struct draft d;
    begin(&d, LOTUS_MSG_EXECUTE);
    d.at = lotus_item_put(lotus_head_put(d.at, &head), item);
    bad(&d, why);
}

static void test_items_that_mean_nothing(void **state)
{
    (void)state;
    struct draft d;
    begin(&d, LOTUS_MSG_EXECUTE);
    d.at = lotus_head_put(d.at, &head);
    bad(&d, "no items");
    refuses_item(&(struct lotus_item){.mode = 0}, "an item has no mode");
    refuses_item(&(struct lotus_item){.mode = 3}, "an item has no mode");
    refuses_item(&(struct lotus_item){.mode = LOCK_S, .flags = 8}, "an item's flags mean nothing");
    refuses_item(&(struct lotus_item){.mode = LOCK_S, .flags = LOTUS_ITEM_REVERSE},
                 "an item's flags mean nothing");
    refuses_item(&(struct lotus_item){.mode = LOCK_S, .room = 1},
                 "a point has room and is only read");
    refuses_item(&(struct lotus_item){.mode = LOCK_S, .end = text("e")}, "a point has an end");
    refuses_item(&(struct lotus_item){.mode = LOCK_S, .flags = LOTUS_ITEM_RANGE, .hint = 1},
                 "a range has a hint");
}

static void test_items_at_their_most(void **state)
{
    (void)state;
    static struct draft d;
    static uint8_t key[MSG_KEY_MAX + 1];
    const struct lotus_item item = {.mode = LOCK_S};
    begin(&d, LOTUS_MSG_EXECUTE);
    d.at = lotus_head_put(d.at, &head);
    _Static_assert((LOTUS_ITEMS_MAX + 1) * 20 + LOTUS_HEAD_BYTES <= ROOM, "they fit");
    for (uint32_t i = 0; i < LOTUS_ITEMS_MAX; i++) {
        d.at = lotus_item_put(d.at, &item);
    }
    good(&d);
    d.at = lotus_item_put(d.at, &item);
    bad(&d, "too many items");

    uint8_t *value = malloc(2 * ROOM);
    assert_non_null(value);
    for (uint32_t n = MSG_KEY_MAX; n <= MSG_KEY_MAX + 1; n++) {
        const struct lotus_item longest = {.mode = LOCK_S, .key = bytes_of(key, n)};
        uint8_t *at = lotus_item_put(lotus_head_put(value, &head), &longest);
        d.msg.value = bytes_of(value, (uint32_t)(at - value));
        assert_int_equal(lotus_msg_invalid(&d.msg) == NULL, n == MSG_KEY_MAX);
    }
    free(value);
}

/* ---- Rows ---- */

static const struct lotus_row rows[] = {
    {.version = 1 << 20 | 2, .hint = 3, .value = {(const uint8_t *)"value", 5}},
    {.flags = LOTUS_ROW_END},
    {.flags = LOTUS_ROW_ABSENT},
    {.flags = LOTUS_ROW_END},
    {.flags = KEY_DEADLINE,
     .version = TXN_ABSENT - 1,
     .key = {(const uint8_t *)"k", 1},
     .value = {(const uint8_t *)"12345678", 8}},
    {.flags = LOTUS_ROW_ABSENT, .version = 1, .key = {(const uint8_t *)"gone", 4}},
    {.flags = LOTUS_ROW_END},
};

/* Whoever took it would give versions above it, which nobody accepts. */
static void test_a_forgotten_version_is_one(void **state)
{
    (void)state;
    struct draft d;
    begin(&d, LOTUS_MSG_EXECUTED);
    d.at = lotus_row_put(d.at, &(struct lotus_row){.flags = LOTUS_ROW_END});
    d.msg.arg = TXN_ABSENT - 1;
    good(&d);
    d.msg.arg = TXN_ABSENT;
    bad(&d, "a version that nobody gives");
    d.at = d.value;
    d.msg.ts = LOTUS_REFUSED;
    bad(&d, "a version that nobody gives");
}

static void test_rows_read(void **state)
{
    (void)state;
    struct draft d;
    begin(&d, LOTUS_MSG_EXECUTED);
    for (uint32_t i = 0; i < 7; i++) {
        uint8_t *before = d.at;
        d.at = lotus_row_put(d.at, &rows[i]);
        assert_int_equal(d.at - before, lotus_row_bytes(&rows[i]));
        if (rows[i].flags == LOTUS_ROW_END) {
            may_end_here(&d);
        }
    }
    refuses_truncations(&d);
    struct bytes rest = d.msg.value;
    struct lotus_row row;
    for (uint32_t i = 0; i < 7; i++) {
        assert_true(lotus_row_take(&rest, &row));
        assert_int_equal(row.flags, rows[i].flags);
        assert_int_equal(row.version, rows[i].version);
        assert_int_equal(row.hint, rows[i].hint);
        assert_true(bytes_equal(row.key, rows[i].key));
        assert_true(bytes_equal(row.value, rows[i].value));
    }
    assert_false(lotus_row_take(&rest, &row));
    d.msg.ts = LOTUS_REFUSED;
    bad(&d, "refused, and has rows");
    d.at = d.value;
    good(&d);
    d.msg.ts = LOTUS_OK;
    bad(&d, "an item without an end");
    d.msg.ts = LOTUS_WORDS;
    bad(&d, "more than the message is about");
}

static void test_rows_written(void **state)
{
    (void)state;
    struct draft d;
    for (uint32_t prepare = 0; prepare < 2; prepare++) {
        begin(&d, prepare != 0 ? LOTUS_MSG_PREPARE : LOTUS_MSG_FINISH);
        if (prepare != 0) {
            d.msg.arg = 1;
            put_u64(d.at, 6);
            d.at += 8;
        }
        may_end_here(&d);
        for (uint32_t i = 4; i < 6; i++) {
            d.at = lotus_row_put(d.at, &rows[i]);
            may_end_here(&d);
        }
        refuses_truncations(&d);
        d.at = lotus_row_put(d.at, &rows[6]);
        bad(&d, "the end of an item where none belongs");
    }
}

static void refuses_row(const struct lotus_row *row, uint8_t kind, const char *why)
{
    struct draft d;
    begin(&d, kind);
    d.at = lotus_row_put(d.at, row);
    bad(&d, why);
}

static void test_rows_that_mean_nothing(void **state)
{
    (void)state;
    const struct lotus_row wrong[] = {
        {.flags = KEY_TOMBSTONE, .version = 1},
        {.flags = LOTUS_ROW_ABSENT, .version = 1, .value = text("v")},
        {.flags = LOTUS_ROW_ABSENT | KEY_DEADLINE, .version = 1},
        {.flags = KEY_DEADLINE, .version = 1, .value = text("1234567")},
        {.version = TXN_ABSENT},
        {.version = 0},
    };
    const char *const why[] = {"a row's flags mean nothing",  "an absent row has a value",
                               "an absent row has a value",   "a deadline is cut off",
                               "a version that nobody gives", "a version that nobody gives"};
    for (uint32_t i = 0; i < 6; i++) {
        refuses_row(&wrong[i], LOTUS_MSG_EXECUTED, why[i]);
        refuses_row(&wrong[i], LOTUS_MSG_FINISH, why[i]);
    }
    refuses_row(&rows[2], LOTUS_MSG_FINISH, "a version that nobody gives");
    refuses_row(&(struct lotus_row){.flags = LOTUS_ROW_END | 1}, LOTUS_MSG_EXECUTED,
                "the end of an item where none belongs");
}

static void test_prepare(void **state)
{
    (void)state;
    struct draft d;
    begin(&d, LOTUS_MSG_PREPARE);
    put_u64(d.at, 1);
    d.at += 8;
    bad(&d, "a PREPARE without a number");
    d.msg.arg = 1;
    bad(&d, "too few participants");
    put_u64(d.value, UINT64_MAX);
    good(&d);
}

/* ---- WHOLE and DONE ---- */

static void make_request(struct op *ops, struct txn_watch *watches, struct txn_request *request)
{
    ops[0] = (struct op){
        .kind = OP_SET, .space = 4, .flags = OPF_NX, .key = text("k"), .value = text("v")};
    ops[1] = (struct op){.kind = TXN_OP_RENAME, .space = 4, .key = text("k"), .arg = text("t")};
    ops[2] = (struct op){
        .kind = TXN_OP_RANGE, .space = 4, .flags = TXN_OPF_REVERSE, .arg = text("z"), .number = -1};
    watches[0] = (struct txn_watch){.key = text("w"), .version = UINT64_MAX};
    watches[1] = (struct txn_watch){.key = text("a"),
                                    .version = 8,
                                    .range = true,
                                    .flags = TXN_OPF_REVERSE,
                                    .limit = 6,
                                    .end = text("b")};
    *request = (struct txn_request){
        .ops = ops, .ops_n = 3, .watches = watches, .watches_n = 2, .flags = TXN_STOP};
}

static void test_requests(void **state)
{
    (void)state;
    struct op ops[3], taken[3];
    struct txn_watch watches[2], seen[2];
    struct txn_request request, r;
    struct draft d;
    make_request(ops, watches, &request);
    begin(&d, LOTUS_MSG_WHOLE);
    d.at = lotus_head_put(d.at, &head);
    uint8_t *before = d.at;
    d.at = lotus_request_put(d.at, &request);
    assert_int_equal(d.at - before, lotus_request_bytes(&request));
    refuses_truncations(&d);
    struct bytes rest = d.msg.value;
    struct lotus_head h;
    lotus_head_take(&rest, &h);
    lotus_request_take(rest, 4, taken, seen, &r);
    assert_int_equal(r.ops_n, 3);
    assert_int_equal(r.watches_n, 2);
    assert_int_equal(r.flags, TXN_STOP);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(taken[i].kind, ops[i].kind);
        assert_int_equal(taken[i].space, 4);
        assert_int_equal(taken[i].flags, ops[i].flags);
        assert_int_equal(taken[i].number, ops[i].number);
        assert_true(bytes_equal(taken[i].key, ops[i].key));
        assert_true(bytes_equal(taken[i].value, ops[i].value));
        assert_true(bytes_equal(taken[i].arg, ops[i].arg));
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(seen[i].version, watches[i].version);
        assert_int_equal(seen[i].range, watches[i].range);
        assert_int_equal(seen[i].flags, watches[i].flags);
        assert_int_equal(seen[i].limit, watches[i].limit);
        assert_true(bytes_equal(seen[i].key, watches[i].key));
        assert_true(bytes_equal(seen[i].end, watches[i].end));
    }
    *d.at++ = 0;
    bad(&d, "bytes behind a request");
}

static void refuses_request(uint32_t ops_n, uint32_t watches_n, uint32_t flags, uint8_t kind,
                            const char *why)
{
    const struct op op = {.kind = kind};
    struct draft d;
    begin(&d, LOTUS_MSG_WHOLE);
    d.at = lotus_head_put(d.at, &head);
    uint8_t *counts = d.at;
    d.at = lotus_request_put(d.at, &(struct txn_request){.ops = &op, .ops_n = 1});
    put_u32(counts, ops_n);
    put_u32(counts + 4, watches_n);
    put_u32(counts + 8, flags);
    bad(&d, why);
}

static void test_requests_that_mean_nothing(void **state)
{
    (void)state;
    const char *begins = "what a request begins with is wrong";
    refuses_request(0, 0, 0, OP_GET, begins);
    refuses_request(TXN_OPS_MAX + 1, 0, 0, OP_GET, begins);
    refuses_request(1, TXN_OBJECTS_MAX + 1, 0, OP_GET, begins);
    refuses_request(1, 0, TXN_ACQUIRE, OP_GET, begins);
    refuses_request(1, 0, UINT32_C(1) << 31, OP_GET, begins);
    refuses_request(2, 0, 0, OP_GET, "an operation is cut off, or no client's");
    refuses_request(1, 1, 0, OP_GET, "a watch is cut off, or none");
    refuses_request(1, 0, 0, TXN_OP_END, "an operation is cut off, or no client's");
    refuses_request(1, 0, 0, OP_EXPIRED, "an operation is cut off, or no client's");
}

static const uint8_t two_pairs[] = {1, 0, 0, 0, 2, 0, 0, 0, 'k', 'v', 'w', 0, 0, 0, 0, 0, 0, 0, 0};

static const struct answer answers[] = {
    {.kind = ANSWER_OK, .applied = true},
    {.kind = ANSWER_NIL},
    {.kind = ANSWER_VALUE, .value = {(const uint8_t *)"value", 5}},
    {.kind = ANSWER_NUMBER, .number = INT64_MIN},
    {.kind = ANSWER_ERROR, .number = HK_ERR_LOSTSLOT, .slot = HASH_SLOTS - 1},
    {.kind = ANSWER_PAIRS, .number = 2, .value = {two_pairs, sizeof two_pairs}},
};
#define ANSWERS ((uint32_t)(sizeof answers / sizeof answers[0]))

static void test_answers(void **state)
{
    (void)state;
    const uint64_t versions[ANSWERS] = {1, TXN_ABSENT | 2, 3, 0, 5, UINT64_MAX};
    struct answer taken[ANSWERS];
    uint64_t seen[ANSWERS];
    uint8_t verdict;
    struct draft d;
    begin(&d, LOTUS_MSG_DONE);
    good(&d);
    may_end_here(&d);
    for (uint32_t n = 0; n <= ANSWERS; n++) {
        d.at = lotus_answers_put(d.value, TXN_UNAPPLIED, answers, versions, n);
        assert_int_equal(d.at - d.value, lotus_answers_bytes(TXN_UNAPPLIED, answers, n));
        if (n < ANSWERS) {
            may_end_here(&d);
        }
    }
    refuses_truncations(&d);
    assert_true(lotus_answers_take(d.msg.value, ANSWERS, &verdict, taken, seen));
    assert_int_equal(verdict, TXN_UNAPPLIED);
    assert_memory_equal(seen, versions, sizeof seen);
    for (uint32_t i = 0; i < ANSWERS; i++) {
        assert_int_equal(taken[i].kind, answers[i].kind);
        assert_int_equal(taken[i].applied, answers[i].applied);
        assert_int_equal(taken[i].slot, answers[i].slot);
        assert_int_equal(taken[i].number, answers[i].number);
        assert_true(bytes_equal(taken[i].value, answers[i].value));
    }
    assert_false(lotus_answers_take(d.msg.value, ANSWERS - 1, &verdict, taken, seen));
    d.msg.value.n = 0;
    assert_false(lotus_answers_take(d.msg.value, 0, &verdict, taken, seen));
    d.msg.ts = LOTUS_MOVED;
    bad(&d, "refused, and has answers");
}

static void test_answers_to_a_conflict(void **state)
{
    (void)state;
    struct answer taken[2];
    uint64_t seen[2];
    uint8_t verdict;
    struct draft d;
    begin(&d, LOTUS_MSG_DONE);
    d.at = lotus_answers_put(d.value, TXN_CONFLICT, NULL, NULL, 2);
    assert_int_equal(d.at - d.value, lotus_answers_bytes(TXN_CONFLICT, NULL, 2));
    good(&d);
    assert_true(lotus_answers_take(d.msg.value, 2, &verdict, taken, seen));
    assert_int_equal(verdict, TXN_CONFLICT);
    assert_int_equal(taken[1].kind, ANSWER_NIL);
    assert_int_equal(seen[1], 0);
    *d.at++ = 0;
    bad(&d, "too many answers");
    d.value[0] = TXN_NO_MEMORY;
    bad(&d, "no verdict");
}

static void test_answers_that_mean_nothing(void **state)
{
    (void)state;
    const struct answer wrong[] = {
        {.kind = ANSWER_PAIRS + 1},
        {.kind = ANSWER_NUMBER, .slot = 1},
        {.kind = ANSWER_VALUE, .slot = 1},
        {.kind = ANSWER_ERROR},
        {.kind = ANSWER_ERROR, .number = HK_ERR_ABORTED - 1},
        {.kind = ANSWER_ERROR, .number = HK_ERR_TYPE, .applied = true},
        {.kind = ANSWER_ERROR, .number = HK_ERR_LOSTSLOT, .slot = HASH_SLOTS},
        {.kind = ANSWER_PAIRS, .number = 1, .value = bytes_of(two_pairs, sizeof two_pairs)},
        {.kind = ANSWER_PAIRS, .number = 2, .value = bytes_of(two_pairs, sizeof two_pairs - 1)},
    };
    const uint64_t version = 0;
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct draft d;
        begin(&d, LOTUS_MSG_DONE);
        d.at = lotus_answers_put(d.value, TXN_DONE, &wrong[i], &version, 1);
        bad(&d, "an answer is cut off, or none");
    }
}

/* ---- What has no value ---- */

static void test_fixed_fields(void **state)
{
    (void)state;
    static const uint8_t bare[] = {LOTUS_MSG_PREPARED, LOTUS_MSG_COMMIT, LOTUS_MSG_ABORT,
                                   LOTUS_MSG_COMMITTED};
    struct draft d;
    for (uint32_t i = 0; i < sizeof bare; i++) {
        begin(&d, bare[i]);
        good(&d);
        d.msg.arg = 1;
        bad(&d, "more than the message is about");
        d.msg.arg = 0;
        d.msg.key = text("k");
        bad(&d, "more than the message is about");
        d.msg.key.n = 0;
        *d.at++ = 0;
        bad(&d, "more than the message is about");
        d.at--;
        d.msg.flags = 1;
        bad(&d, "flags");
        d.msg.flags = 0;
        d.msg.ts = LOTUS_WORDS;
        bool done = bare[i] == LOTUS_MSG_COMMIT || bare[i] == LOTUS_MSG_ABORT;
        assert_int_equal(judge(&d) == NULL, done);
    }
    begin(&d, LOTUS_MSG_COMMITTED);
    d.msg.ts = LOTUS_REFUSED;
    bad(&d, "more than the message is about");
    for (uint32_t kind = 0; kind < 256; kind++) {
        begin(&d, (uint8_t)kind);
        bool of_map = kind >= LOTUS_MSG_MAP && kind < LOTUS_MSG_MAP + HOMES_KINDS;
        bool moves = kind == LOTUS_MSG_ROWS || kind == LOTUS_MSG_TAKEN;
        bool far = kind >= LOTUS_MSG_STORE && kind < LOTUS_MSG_END;
        if (kind == 0 || (kind >= LOTUS_MSG_MAP && !of_map && !moves && !far)) {
            bad(&d, "unknown kind");
        }
    }
}

/* Those of the map are refused by its own rules; rows that move are rows that are written. */
static void test_map_and_moves(void **state)
{
    (void)state;
    struct draft d;
    begin(&d, LOTUS_MSG_MAP + HOMES_STATE);
    bad(&d, "a run where none belongs");
    d.msg = (struct msg){.kind = LOTUS_MSG_MAP + HOMES_STATE, .epoch = 3, .flags = 0};
    good(&d);
    d.msg.flags = HOMES_F_COMPUTE;
    good(&d);
    d.msg.flags = HOMES_F_NOBODY;
    bad(&d, "flags that this kind does not have");
    begin(&d, LOTUS_MSG_MAP + HOMES_MAP);
    d.msg.ts = (uint64_t)d.msg.epoch << 32;
    d.msg.slot = 7 | 3 << 14;
    d.msg.gen = slot_home_pack((struct slot_home){.home = 2, .to = NODE_NONE, .state = HOME_LOST});
    d.msg.flags = HOMES_F_NOBODY;
    bad(&d, "says who takes slots before the map is complete");
    d.msg.flags |= HOMES_F_LAST;
    good(&d);
    const struct lotus_row row = {.version = 4, .key = text("k"), .value = text("v")};
    begin(&d, LOTUS_MSG_ROWS);
    for (uint32_t i = 0; i < 3; i++) {
        may_end_here(&d);
        d.at = lotus_row_put(d.at, &row);
    }
    refuses_truncations(&d);
    const struct lotus_row none = {.version = 0, .key = text("k"), .flags = LOTUS_ROW_ABSENT};
    d.at = lotus_row_put(d.at, &none);
    bad(&d, "a version that nobody gives");
    begin(&d, LOTUS_MSG_ROWS); /* none but what was forgotten */
    good(&d);
    d.msg.gen = UINT32_MAX;
    bad(&d, "a version that nobody gives");
    begin(&d, LOTUS_MSG_TAKEN);
    d.msg.arg = 7;
    good(&d);
    *d.at++ = 0;
    bad(&d, "more than the message is about");
}

static void test_cells(void **state)
{
    (void)state;
    static const uint64_t ts_max[] = {0, LOTUS_STOREDS - 1, 0, 1, 0, 0};
    struct draft d;
    for (uint8_t kind = LOTUS_MSG_STORE; kind < LOTUS_MSG_END; kind++) {
        bool named = kind != LOTUS_MSG_RECALL;
        begin(&d, kind);
        d.msg.slot = 7;
        d.msg.gen = 9;
        if (named) {
            bad(&d, "a cell without a name");
            d.msg.arg = lotus_cell_id(3, 0);
            bad(&d, "a cell without a name");
            d.msg.arg = lotus_cell_id(3, 1);
        }
        good(&d);
        d.msg.ts = ts_max[kind - LOTUS_MSG_STORE] + 1;
        bad(&d, "more than the message is about");
        d.msg.ts = 0;
        d.msg.key = text("k");
        bad(&d, "more than the message is about");
        d.msg.key.n = 0;
        *d.at++ = 'v';
        if (kind != LOTUS_MSG_STORE && kind != LOTUS_MSG_FETCHED) {
            bad(&d, "more than the message is about");
            continue;
        }
        good(&d);
        d.msg.ts = ts_max[kind - LOTUS_MSG_STORE];
        if (kind == LOTUS_MSG_FETCHED) {
            bad(&d, "no cell, and its bytes");
        }
    }
    begin(&d, LOTUS_MSG_MAP + HOMES_LOSE);
    d.msg = (struct msg){.kind = LOTUS_MSG_MAP + HOMES_LOSE, .epoch = 3, .slot = HASH_SLOTS - 1};
    good(&d);
    d.msg.slot = HASH_SLOTS;
    bad(&d, "no such slot");
    d.msg.slot = 0;
    d.msg.ts = UINT64_C(3) << 32;
    bad(&d, "a version where none belongs");
}

static void test_between_participants(void **state)
{
    (void)state;
    static const uint64_t ts_max[] = {0, LOTUS_TOLDS - 1, 1};
    struct draft d;
    for (uint8_t kind = LOTUS_MSG_ASK; kind <= LOTUS_MSG_RESOLVED; kind++) {
        begin(&d, kind);
        bad(&d, "no nonce");
        d.msg.key = text("8 bytes.");
        d.msg.ts = ts_max[kind - LOTUS_MSG_ASK];
        good(&d);
        d.msg.arg = 63 | 255u << 8;
        good(&d);
        d.msg.ts++;
        bad(&d, "more than the message is about");
        d.msg.ts = 0;
        d.msg.arg = 64;
        bad(&d, "no such coordinator");
        d.msg.arg = UINT64_C(1) << 16;
        bad(&d, "no such coordinator");
    }
}

static void test_rules_have_names(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < LOTUS_RULES; i++) {
        assert_non_null(lotus_rule_names[i]);
    }
    const struct msg about_a_try = {.kind = LOTUS_MSG_ABORT}, map = {.kind = LOTUS_MSG_MAP};
    assert_int_equal(lotus_ops.route(&about_a_try), ROUTE_ANY);
    assert_int_equal(lotus_ops.route(&map), ROUTE_WORKER);
    assert_int_equal(lotus_ops.traits, ENGINE_TABLES | ENGINE_WORKER_FLOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_of_one_tag_are_of_one_slot),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_items_that_mean_nothing),
        cmocka_unit_test(test_items_at_their_most),
        cmocka_unit_test(test_rows_read),
        cmocka_unit_test(test_a_forgotten_version_is_one),
        cmocka_unit_test(test_rows_written),
        cmocka_unit_test(test_rows_that_mean_nothing),
        cmocka_unit_test(test_prepare),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_requests_that_mean_nothing),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_answers_to_a_conflict),
        cmocka_unit_test(test_answers_that_mean_nothing),
        cmocka_unit_test(test_fixed_fields),
        cmocka_unit_test(test_map_and_moves),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_between_participants),
        cmocka_unit_test(test_rules_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
