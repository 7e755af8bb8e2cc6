/* The public API on a node alone: what each operation answers, and what wrong use answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "embed/internal.h"
#include "support/embed_cluster.h"

static struct embed_cluster one;
static struct hk_session *s;

static int open_one(void **state)
{
    (void)state;
    embed_cluster_open(&one, 1, 2);
    s = embed_cluster_session(&one, 0);
    return 0;
}

static int close_one(void **state)
{
    (void)state;
    hk_session_close(s);
    embed_cluster_close(&one);
    return 0;
}

static void assert_get(const char *key, const char *value)
{
    char buffer[256];
    size_t n = 99;
    assert_int_equal(hk_get(s, hk_text(key), buffer, sizeof buffer, &n), HK_OK);
    assert_int_equal(n, strlen(value));
    assert_memory_equal(buffer, value, n);
}

static int put(const char *key, const char *value)
{
    return hk_put(s, hk_text(key), hk_text(value), NULL);
}

static void values_come_back(void **state)
{
    (void)state;
    char buffer[8];
    size_t n = 99;
    assert_int_equal(hk_get(s, hk_text("a"), buffer, sizeof buffer, &n), HK_ERR_NOTFOUND);
    assert_int_equal(n, 0);
    assert_int_equal(put("a", "1"), HK_OK);
    assert_get("a", "1");
    assert_int_equal(put("a", "a longer value"), HK_OK);
    assert_get("a", "a longer value");
    assert_int_equal(hk_get(s, hk_text("a"), buffer, sizeof buffer, &n), HK_ERR_TOOBIG);
    assert_int_equal(n, 14);
    assert_int_equal(hk_get(s, hk_text("a"), NULL, 0, &n), HK_ERR_TOOBIG);
    assert_int_equal(hk_get(s, hk_text("a"), buffer, sizeof buffer, NULL), HK_ERR_TOOBIG);
    assert_int_equal(put("a", ""), HK_OK);
    assert_int_equal(hk_get(s, hk_text("a"), NULL, 0, &n), HK_OK);
    assert_int_equal(n, 0);
    assert_int_equal(hk_delete(s, hk_text("a")), HK_OK);
    assert_int_equal(hk_delete(s, hk_text("a")), HK_ERR_NOTFOUND);
    assert_int_equal(hk_get(s, hk_text("a"), NULL, 0, NULL), HK_ERR_NOTFOUND);
    assert_int_equal(hk_put(s, hk_bytes(NULL, 0), hk_text("the empty key"), NULL), HK_OK);
    assert_get("", "the empty key");
}

static void large_values_come_back(void **state)
{
    (void)state;
    size_t size = 3000000;
    char *value = malloc(size);
    char *back = malloc(size);
    size_t n = 0;
    assert_non_null(value);
    assert_non_null(back);
    for (size_t i = 0; i < size; i++) {
        value[i] = (char)(i * 31 % 251);
    }
    assert_int_equal(hk_put(s, hk_text("large"), hk_bytes(value, size), NULL), HK_OK);
    assert_int_equal(hk_get(s, hk_text("large"), back, size, &n), HK_OK);
    assert_int_equal(n, size);
    assert_memory_equal(back, value, size);
    assert_int_equal(hk_get(s, hk_text("large"), back, size - 1, &n), HK_ERR_TOOBIG);
    assert_int_equal(n, size);
    free(value);
    free(back);
}

static void conditions_are_kept(void **state)
{
    (void)state;
    struct hk_put_options absent = {.flags = HK_PUT_IF_ABSENT};
    struct hk_put_options present = {.flags = HK_PUT_IF_PRESENT};
    assert_int_equal(hk_put(s, hk_text("c"), hk_text("x"), &present), HK_ERR_CONDITION);
    assert_int_equal(hk_put(s, hk_text("c"), hk_text("1"), &absent), HK_OK);
    assert_int_equal(hk_put(s, hk_text("c"), hk_text("x"), &absent), HK_ERR_CONDITION);
    assert_get("c", "1");
    assert_int_equal(hk_put(s, hk_text("c"), hk_text("2"), &present), HK_OK);
    assert_get("c", "2");
    assert_int_equal(hk_compare_and_set(s, hk_text("c"), hk_text("1"), hk_text("3"), NULL),
                     HK_ERR_CONDITION);
    assert_int_equal(hk_compare_and_set(s, hk_text("c"), hk_text("2"), hk_text("3"), NULL), HK_OK);
    assert_get("c", "3");
    assert_int_equal(hk_compare_and_set(s, hk_text("none"), hk_text(""), hk_text("3"), NULL),
                     HK_ERR_CONDITION);
    assert_int_equal(hk_compare_and_delete(s, hk_text("c"), hk_text("2")), HK_ERR_CONDITION);
    assert_int_equal(hk_compare_and_delete(s, hk_text("c"), hk_text("3")), HK_OK);
    assert_int_equal(hk_compare_and_delete(s, hk_text("c"), hk_text("3")), HK_ERR_CONDITION);
    assert_int_equal(hk_get(s, hk_text("c"), NULL, 0, NULL), HK_ERR_NOTFOUND);
}

static void numbers_are_added(void **state)
{
    (void)state;
    int64_t sum = 0;
    assert_int_equal(hk_add(s, hk_text("n"), 5, &sum), HK_OK);
    assert_int_equal(sum, 5);
    assert_int_equal(hk_add(s, hk_text("n"), -7, &sum), HK_OK);
    assert_int_equal(sum, -2);
    assert_get("n", "-2");
    assert_int_equal(hk_add(s, hk_text("n"), 1, NULL), HK_OK);
    assert_int_equal(put("n", "9223372036854775807"), HK_OK);
    sum = 77;
    assert_int_equal(hk_add(s, hk_text("n"), 1, &sum), HK_ERR_OVERFLOW);
    assert_int_equal(sum, 77);
    assert_int_equal(put("n", "word"), HK_OK);
    assert_int_equal(hk_add(s, hk_text("n"), 1, &sum), HK_ERR_TYPE);
}

/* Waits, by asking, until the key is gone: no longer than the test may take. */
static void until_gone(const char *key)
{
    while (hk_get(s, hk_text(key), NULL, 0, NULL) != HK_ERR_NOTFOUND) {
    }
}

static void keys_expire(void **state)
{
    (void)state;
    struct hk_put_options soon = {.ttl_ms = 30};
    struct hk_put_options late = {.ttl_ms = 3600000};
    struct hk_put_options keep = {.flags = HK_PUT_KEEP_TTL};
    assert_int_equal(hk_put(s, hk_text("e"), hk_text("1"), &late), HK_OK);
    assert_get("e", "1");
    assert_int_equal(hk_put(s, hk_text("e"), hk_text("2"), &soon), HK_OK);
    assert_int_equal(hk_put(s, hk_text("e"), hk_text("3"), &keep), HK_OK);
    until_gone("e");
    assert_int_equal(hk_put(s, hk_text("e"), hk_text("1"), NULL), HK_OK);
    assert_int_equal(hk_compare_and_set(s, hk_text("e"), hk_text("1"), hk_text("2"), &soon), HK_OK);
    until_gone("e");
}

#define MANY 300u

static void batches_read_any_number(void **state)
{
    (void)state;
    static char keys[MANY][16];
    static char values[MANY][32];
    static struct hk_read reads[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof keys[i], "batch%u", i);
        if (i % 3 != 0) {
            assert_int_equal(put(keys[i], keys[i]), HK_OK);
        }
    }
    for (uint32_t n = 0; n <= MANY; n += n < 70 ? 1 : 23) {
        for (uint32_t i = 0; i < n; i++) {
            reads[i] = (struct hk_read){
                .key = hk_text(keys[i]), .value = values[i], .capacity = sizeof values[i]};
            memset(values[i], 0, sizeof values[i]);
        }
        assert_int_equal(hk_get_batch(s, reads, n), HK_OK);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(reads[i].err, i % 3 != 0 ? HK_OK : HK_ERR_NOTFOUND);
            assert_int_equal(reads[i].n, i % 3 != 0 ? strlen(keys[i]) : 0);
            assert_string_equal(values[i], i % 3 != 0 ? keys[i] : "");
        }
    }
    /* Errors of one key leave the others alone. */
    reads[1].capacity = 2;
    reads[5].key = hk_bytes(NULL, 4);
    reads[200].capacity = 0;
    assert_int_equal(hk_get_batch(s, reads, MANY), HK_ERR_TOOBIG);
    assert_int_equal(reads[1].err, HK_ERR_TOOBIG);
    assert_int_equal(reads[1].n, strlen(keys[1]));
    assert_int_equal(reads[5].err, HK_ERR_INVALID);
    assert_int_equal(reads[200].err, HK_ERR_TOOBIG);
    assert_int_equal(reads[2].err, HK_OK);
    assert_int_equal(reads[299].err, HK_OK);
}

/* ---- Operations that do not wait ---- */

struct heard {
    uint32_t n;
    struct hk_result last;
    int64_t sum;
};

static void hear(void *context, const struct hk_result *result)
{
    struct heard *h = context;
    h->n++;
    h->last = *result;
    h->sum = result->err == HK_OK ? result->number : h->sum;
}

static void poll_all(void)
{
    while (hk_session_in_flight(s) > 0) {
        assert_int_equal(hk_session_wait(s, EMBED_BOUND_MS), HK_OK);
        assert_true(hk_session_poll(s, UINT32_MAX) > 0);
    }
    assert_int_equal(hk_session_wait(s, 0), HK_ERR_NOTFOUND);
    assert_int_equal(hk_session_poll(s, 1), 0);
}

static void updates_in_flight_take_effect_in_order(void **state)
{
    (void)state;
    struct heard h = {0};
    char key[16];
    char value[16];
    size_t n;
    snprintf(key, sizeof key, "async");
    assert_int_equal(hk_put(s, hk_text(key), hk_text("0"), NULL), HK_OK);
    for (uint32_t i = 0; i < 1000; i++) {
        int err = hk_add_async(s, hk_text(key), 1, hear, &h);
        if (err == HK_ERR_FULL) {
            assert_int_equal(hk_session_in_flight(s), 64);
            assert_int_equal(hk_session_wait(s, EMBED_BOUND_MS), HK_OK);
            (void)hk_session_poll(s, 16);
            i--;
            continue;
        }
        assert_int_equal(err, HK_OK);
        if (i % 100 == 50) {
            /* A read behind them sees them all, completed or not. */
            snprintf(value, sizeof value, "%u", i + 1);
            char back[16] = "";
            assert_int_equal(hk_get(s, hk_text(key), back, sizeof back, &n), HK_OK);
            assert_string_equal(back, value);
            struct hk_read read = {.key = hk_text(key), .value = back, .capacity = sizeof back};
            assert_int_equal(hk_get_batch(s, &read, 1), HK_OK);
            assert_string_equal(back, value);
        }
    }
    poll_all();
    assert_int_equal(h.n, 1000);
    assert_int_equal(h.sum, 1000);
}

static uint64_t version_read(const char *key)
{
    struct hk_read read = {.key = hk_text(key)};
    int err = hk_get_batch(s, &read, 1);
    assert_true(err == HK_OK || err == HK_ERR_TOOBIG);
    return read.version;
}

static void versions_grow(void **state)
{
    (void)state;
    struct heard h = {0};
    char back[16];
    uint64_t last = version_read("versions");
    assert_true(last == 0);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(hk_put_async(s, hk_text("versions"), hk_text("v"), NULL, hear, &h), HK_OK);
        poll_all();
        uint64_t written = h.last.version;
        assert_true(written > last);
        assert_true(version_read("versions") == written);
        assert_int_equal(hk_get_async(s, hk_text("versions"), back, sizeof back, hear, &h), HK_OK);
        poll_all();
        assert_true(h.last.version == written);
        last = written;
    }
    /* By a worker, behind an update of this session. */
    assert_int_equal(hk_put_async(s, hk_text("versions"), hk_text("v"), NULL, NULL, NULL), HK_OK);
    assert_true(version_read("versions") > last);
    poll_all();
}

static void every_kind_has_a_form_that_does_not_wait(void **state)
{
    (void)state;
    struct heard h = {0};
    char buffer[16];
    char key[8] = "kind"; /* written over after each call: the bytes were copied */
    struct hk_put_options absent = {.flags = HK_PUT_IF_ABSENT};
#define RUN(call, expected)                                                                        \
    do {                                                                                           \
        memcpy(key, "kind", 5);                                                                    \
        assert_int_equal(call, HK_OK);                                                             \
        memset(key, '?', sizeof key);                                                              \
        poll_all();                                                                                \
        assert_int_equal(h.last.err, expected);                                                    \
    } while (0)
    RUN(hk_get_async(s, hk_text(key), buffer, sizeof buffer, hear, &h), HK_ERR_NOTFOUND);
    RUN(hk_put_async(s, hk_text(key), hk_text("one"), NULL, hear, &h), HK_OK);
    RUN(hk_put_async(s, hk_text(key), hk_text("two"), &absent, hear, &h), HK_ERR_CONDITION);
    RUN(hk_get_async(s, hk_text(key), buffer, sizeof buffer, hear, &h), HK_OK);
    assert_int_equal(h.last.n, 3);
    assert_memory_equal(buffer, "one", 3);
    RUN(hk_get_async(s, hk_text(key), buffer, 1, hear, &h), HK_ERR_TOOBIG);
    assert_int_equal(h.last.n, 3);
    RUN(hk_compare_and_set_async(s, hk_text(key), hk_text("one"), hk_text("2"), NULL, hear, &h),
        HK_OK);
    RUN(hk_compare_and_set_async(s, hk_text(key), hk_text("one"), hk_text("3"), NULL, hear, &h),
        HK_ERR_CONDITION);
    RUN(hk_add_async(s, hk_text(key), 40, hear, &h), HK_OK);
    assert_int_equal(h.last.number, 42);
    RUN(hk_compare_and_delete_async(s, hk_text(key), hk_text("2"), hear, &h), HK_ERR_CONDITION);
    RUN(hk_compare_and_delete_async(s, hk_text(key), hk_text("42"), hear, &h), HK_OK);
    RUN(hk_delete_async(s, hk_text(key), hear, &h), HK_ERR_NOTFOUND);
    assert_int_equal(h.n, 11);
#undef RUN
    assert_int_equal(hk_put_async(s, hk_text("kind"), hk_text("silent"), NULL, NULL, NULL), HK_OK);
    char back[16];
    assert_int_equal(hk_get_async(s, hk_text("kind"), back, sizeof back, hear, &h), HK_OK);
    poll_all();
    assert_int_equal(h.last.n, 6); /* it saw the put before it */
}

struct chain {
    uint32_t left;
    uint32_t waited;
};

/* A callback may begin operations, and wait for one. */
static void next_of_chain(void *context, const struct hk_result *result)
{
    struct chain *c = context;
    assert_int_equal(result->err, HK_OK);
    if (c->left > 0) {
        c->left--;
        assert_int_equal(hk_add_async(s, hk_text("chain"), 1, next_of_chain, c), HK_OK);
    }
    if (c->left % 10 == 5) {
        assert_int_equal(hk_add(s, hk_text("chain"), 1, NULL), HK_OK);
        c->waited++;
    }
}

static void callbacks_use_the_session(void **state)
{
    (void)state;
    struct chain c = {.left = 99};
    int64_t sum = 0;
    assert_int_equal(hk_add_async(s, hk_text("chain"), 1, next_of_chain, &c), HK_OK);
    poll_all();
    assert_int_equal(hk_add(s, hk_text("chain"), 0, &sum), HK_OK);
    assert_true(c.waited >= 10);
    assert_int_equal(sum, 100 + c.waited);
}

/* ---- Wrong use ---- */

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    static char big[HK_KEY_MAX + 1];
    struct hk_put_options both = {.flags = HK_PUT_IF_ABSENT | HK_PUT_IF_PRESENT};
    struct hk_put_options strange = {.flags = 64};
    struct hk_put_options forever = {.ttl_ms = UINT64_MAX};
    struct hk_put_options absent = {.flags = HK_PUT_IF_ABSENT};
    struct hk_session_options many = {.in_flight_max = HK_IN_FLIGHT_MAX + 1};
    struct hk_session *other = NULL;
    struct hk_bytes none = {NULL, 3};
    memset(big, 'k', sizeof big);
    assert_int_equal(hk_get(NULL, hk_text("a"), NULL, 0, NULL), HK_ERR_INVALID);
    assert_int_equal(hk_get(s, none, NULL, 0, NULL), HK_ERR_INVALID);
    assert_int_equal(hk_get(s, hk_text("a"), NULL, 5, NULL), HK_ERR_INVALID);
    assert_int_equal(hk_get(s, hk_bytes(big, sizeof big), NULL, 0, NULL), HK_ERR_TOOBIG);
    assert_int_equal(hk_get_batch(s, NULL, 1), HK_ERR_INVALID);
    assert_int_equal(hk_get_batch(NULL, NULL, 0), HK_ERR_INVALID);
    assert_int_equal(hk_get_async(s, none, NULL, 0, NULL, NULL), HK_ERR_INVALID);
    assert_int_equal(hk_put(NULL, hk_text("a"), hk_text("b"), NULL), HK_ERR_INVALID);
    assert_int_equal(hk_put(s, none, hk_text("b"), NULL), HK_ERR_INVALID);
    assert_int_equal(hk_put(s, hk_text("a"), none, NULL), HK_ERR_INVALID);
    assert_int_equal(hk_put(s, hk_bytes(big, sizeof big), hk_text("b"), NULL), HK_ERR_TOOBIG);
    assert_int_equal(hk_put(s, hk_text("a"), hk_bytes(big, HK_VALUE_MAX + 1u), NULL),
                     HK_ERR_TOOBIG);
    assert_int_equal(hk_put(s, hk_text("a"), hk_text("b"), &both), HK_ERR_INVALID);
    assert_int_equal(hk_put(s, hk_text("a"), hk_text("b"), &strange), HK_ERR_INVALID);
    assert_int_equal(hk_put(s, hk_text("a"), hk_text("b"), &forever), HK_ERR_INVALID);
    assert_int_equal(hk_compare_and_set(s, hk_text("a"), none, hk_text("b"), NULL), HK_ERR_INVALID);
    assert_int_equal(hk_compare_and_set(s, hk_text("a"), hk_text("b"), hk_text("c"), &absent),
                     HK_ERR_INVALID);
    assert_int_equal(hk_delete(s, none), HK_ERR_INVALID);
    assert_int_equal(hk_delete(NULL, hk_text("a")), HK_ERR_INVALID);
    assert_int_equal(hk_add(NULL, hk_text("a"), 1, NULL), HK_ERR_INVALID);
    assert_int_equal(hk_session_open(NULL, NULL, &other), HK_ERR_INVALID);
    assert_int_equal(hk_session_open(one.nodes[0], NULL, NULL), HK_ERR_INVALID);
    assert_int_equal(hk_session_open(one.nodes[0], &many, &other), HK_ERR_INVALID);
    assert_int_equal(hk_session_wait(NULL, 0), HK_ERR_INVALID);
    assert_int_equal(hk_session_poll(NULL, 1), 0);
    assert_int_equal(hk_wait_serving(NULL, 0), HK_ERR_INVALID);
    hk_session_close(NULL);
    hk_close(NULL);
    assert_int_equal(hk_session_in_flight(s), 0);
}

static void a_space_that_does_not_exist_is_refused(void **state)
{
    (void)state;
    static const uint32_t spaces[] = {1, 15, 16, 1000, UINT32_MAX};
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
        struct hk_read read = {.key = hk_text("a")};
        hk_session_space(s, spaces[i]);
        assert_int_equal(hk_get(s, hk_text("a"), NULL, 0, NULL), HK_ERR_INVALID);
        assert_int_equal(hk_put(s, hk_text("a"), hk_text("b"), NULL), HK_ERR_INVALID);
        assert_int_equal(hk_get_batch(s, &read, 1), HK_ERR_INVALID);
    }
    hk_session_space(s, 0);
    assert_int_equal(put("a", "1"), HK_OK);
}

static void there_is_a_bound_of_sessions(void **state)
{
    (void)state;
    struct hk_session *more[HK_SESSIONS_MAX];
    struct hk_session *last;
    struct hk_status status;
    uint32_t n = 0;
    while (n < HK_SESSIONS_MAX - 1) {
        assert_int_equal(hk_session_open(one.nodes[0], NULL, &more[n]), HK_OK);
        assert_int_equal(hk_get(more[n], hk_text("nobody"), NULL, 0, NULL), HK_ERR_NOTFOUND);
        assert_int_equal(hk_put(more[n++], hk_text("bound"), hk_text("x"), NULL), HK_OK);
    }
    hk_status(one.nodes[0], &status);
    assert_int_equal(status.sessions, HK_SESSIONS_MAX);
    assert_int_equal(hk_session_open(one.nodes[0], NULL, &last), HK_ERR_FULL);
    while (n > 0) {
        hk_session_close(more[--n]);
    }
    assert_int_equal(hk_session_open(one.nodes[0], NULL, &last), HK_OK);
    assert_int_equal(hk_put(last, hk_text("bound"), hk_text("x"), NULL), HK_OK);
    hk_session_close(last);
    assert_get("bound", "x");
}

static void the_status_says_what_is(void **state)
{
    (void)state;
    struct hk_status status;
    hk_status(one.nodes[0], &status);
    assert_int_equal(status.state, HK_STATE_SERVING);
    assert_string_equal(hk_state_name(status.state), "serving");
    assert_true(status.member && status.operational);
    assert_true(status.epoch > 0 && status.lease_left_us > 0);
    assert_true(status.keys > MANY / 2 && status.bytes > 0);
    assert_int_equal(status.members, 1);
    assert_int_equal(status.configured, 1);
    assert_int_equal(status.sessions, 1);
    assert_string_equal(status.version, HK_VERSION);
    assert_string_equal(hk_version(), HK_VERSION);
    assert_string_equal(hk_state_name((enum hk_state)99), "?");
}

static void the_key_goes_with_a_file_or_a_text(void **state)
{
    (void)state;
    static const char text[] = "[node]\nid = 0\n[peers]\n0 = 127.0.0.1:7\n1 = 127.0.0.1:9\n";
    static const uint8_t key[HK_KEY_BYTES] = {4, 5, 6};
    char path[128];
    char error[CONFIG_ERROR_MAX];
    struct config *config = malloc(sizeof *config);
    snprintf(path, sizeof path, "%s/horkos.conf", one.folder);
    FILE *file = fopen(path, "w");
    assert_true(config != NULL && file != NULL);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
    const struct hk_config from[] = {{.file = path, .key = key}, {.text = text, .key = key}};
    for (size_t i = 0; i < 2; i++) {
        int err = embed_config(&from[i], config, error, sizeof error);
        if (err != HK_OK) {
            fail_msg("%s", error);
        }
        assert_memory_equal(config->key, key, sizeof key);
    }
    struct hk_config without = {.file = path};
    assert_int_equal(embed_config(&without, config, error, sizeof error), HK_ERR_INVALID);
    free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_back),
        cmocka_unit_test(large_values_come_back),
        cmocka_unit_test(conditions_are_kept),
        cmocka_unit_test(numbers_are_added),
        cmocka_unit_test(keys_expire),
        cmocka_unit_test(batches_read_any_number),
        cmocka_unit_test(updates_in_flight_take_effect_in_order),
        cmocka_unit_test(versions_grow),
        cmocka_unit_test(every_kind_has_a_form_that_does_not_wait),
        cmocka_unit_test(callbacks_use_the_session),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(a_space_that_does_not_exist_is_refused),
        cmocka_unit_test(there_is_a_bound_of_sessions),
        cmocka_unit_test(the_status_says_what_is),
        cmocka_unit_test(the_key_goes_with_a_file_or_a_text),
    };
    return cmocka_run_group_tests(tests, open_one, close_one);
}
