/* HORKOS LOCKS: what a node tells of its locks, as JSON. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "server/locks.h"

static struct node_lock lock_of(const char *key, uint64_t id, enum lock_mode mode,
                                enum lock_state state)
{
    return (struct node_lock){
        .infinite = key == NULL,
        .gap = key == NULL,
        .key = bytes_of(key, key != NULL ? (uint32_t)strlen(key) : 0),
        .mode = (uint8_t)mode,
        .state = (uint8_t)state,
        .try_state = TRY_RUNNING,
        .coordinator = 2,
        .worker = 1,
        .age = {.us = 1000000 + id * 1000, .who = id},
        .id = id,
    };
}

static json_t *told(const struct node_lock *list, uint32_t n)
{
    struct locks locks = {.n = 0};
    for (uint32_t i = 0; i < n; i++) {
        locks_add(&locks, &list[i]);
    }
    json_t *j = locks_json(&locks, 3000000);
    locks_deinit(&locks);
    return j;
}

static void expect(const struct node_lock *list, uint32_t n, const char *expected)
{
    json_t *j = told(list, n);
    char *text = json_dumps(j, JSON_COMPACT);
    assert_string_equal(text, expected);
    free(text);
    json_decref(j);
}

static void test_none(void **state)
{
    (void)state;
    expect(NULL, 0, "{\"more\":false,\"locks\":[]}");
}

static void test_rows_and_gaps(void **state)
{
    struct node_lock list[] = {
        lock_of("a\"\\\x01\xff", 1, LOCK_X, LOCK_OWNS),
        lock_of(NULL, 2, LOCK_S, LOCK_OWNS),
    };
    (void)state;
    list[0].try_state = TRY_PREPARED;
    list[1].try_state = TRY_WOUNDED;
    expect(list, 2,
           "{\"more\":false,\"locks\":[{\"lock\":\"row\",\"key\":\"a\\\"\\\\x5c\\\\x01\\\\xff\","
           "\"owners\":[{\"id\":\"0000000000000001\",\"mode\":\"exclusive\",\"state\":\"prepared\","
           "\"node\":2,\"worker\":1,\"age_ms\":1999}],\"waiters\":[]},"
           "{\"lock\":\"gap\",\"key\":null,\"owners\":[{\"id\":\"0000000000000002\","
           "\"mode\":\"shared\",\"state\":\"wounded\",\"node\":2,\"worker\":1,\"age_ms\":1998}],"
           "\"waiters\":[]}]}");
}

/* The ids that waiter `i` of the only lock waits for, and nothing else. */
static void expect_waits(json_t *j, size_t i, const char *ids)
{
    json_t *lock = json_array_get(json_object_get(j, "locks"), 0);
    json_t *waiter = json_array_get(json_object_get(lock, "waiters"), i);
    char *text = json_dumps(json_object_get(waiter, "waits_for"), JSON_COMPACT);
    assert_string_equal(text, ids);
    free(text);
}

#define ID(n_) "\"000000000000000" #n_ "\""

static void test_who_waits_for_whom(void **state)
{
    struct node_lock list[] = {
        lock_of("k", 1, LOCK_S, LOCK_OWNS),  lock_of("k", 2, LOCK_S, LOCK_UPGRADES),
        lock_of("k", 3, LOCK_S, LOCK_WAITS), lock_of("k", 4, LOCK_X, LOCK_WAITS),
        lock_of("k", 5, LOCK_S, LOCK_WAITS),
    };
    (void)state;
    json_t *j = told(list, 5);
    json_t *lock = json_array_get(json_object_get(j, "locks"), 0);
    assert_int_equal(json_array_size(json_object_get(lock, "owners")), 2);
    assert_int_equal(json_array_size(json_object_get(lock, "waiters")), 4);
    expect_waits(j, 0, "[" ID(1) "]"); /* who upgrades waits for the other owner */
    expect_waits(j, 1, "[" ID(2) "]");
    expect_waits(j, 2, "[" ID(1) "," ID(2) "," ID(3) "]");
    expect_waits(j, 3, "[" ID(2) "," ID(4) "]");
    json_decref(j);
}

static void test_bounds(void **state)
{
    struct node_lock lock = lock_of("k", 1, LOCK_S, LOCK_OWNS);
    struct locks locks = {.n = 0};
    char key[LOCKS_KEY_MAX + 2] = "";
    (void)state;
    memset(key, 'x', sizeof key - 1);
    lock.key = bytes_of(key, sizeof key - 1);
    for (uint32_t i = 0; i < 2 * LOCKS_REQUESTS_MAX; i++) {
        lock.id = i;
        locks_add(&locks, &lock);
    }
    assert_true(locks.more);
    assert_in_range(locks.n, LOCKS_REQUESTS_MAX, 2 * LOCKS_REQUESTS_MAX - 1);
    locks.n = 1;
    json_t *j = locks_json(&locks, 0);
    const char *told_key =
        json_string_value(json_object_get(json_array_get(json_object_get(j, "locks"), 0), "key"));
    assert_int_equal(strlen(told_key), LOCKS_KEY_MAX + 3);
    assert_string_equal(told_key + LOCKS_KEY_MAX, "...");
    json_decref(j);
    locks_deinit(&locks);
}

static void test_ids(void **state)
{
    uint64_t id = 0;
    char text[17];
    (void)state;
    locks_id_text(UINT64_C(0x0123456789abcdef), text);
    assert_string_equal(text, "0123456789abcdef");
    assert_true(locks_id_parse(bytes_of("0123456789ABCDEF", 16), &id));
    assert_true(id == UINT64_C(0x0123456789abcdef));
    assert_false(locks_id_parse(bytes_of("", 0), &id));
    assert_false(locks_id_parse(bytes_of("0123456789abcde", 15), &id));
    assert_false(locks_id_parse(bytes_of("0123456789abcdef0", 17), &id));
    assert_false(locks_id_parse(bytes_of("0123456789abcde\0", 16), &id));
    assert_false(locks_id_parse(bytes_of("0123456789abcdeg", 16), &id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_rows_and_gaps),
        cmocka_unit_test(test_who_waits_for_whom),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
