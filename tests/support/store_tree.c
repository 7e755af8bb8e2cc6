#include "support/store_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

void grove_open(struct grove *g, const struct store_config *config)
{
    fixture_open(&g->fixture, config);
    g->thread = g->fixture.thread;
    assert_int_equal(tree_create(g->fixture.store, g->thread, &g->tree), HK_OK);
}

void grove_close(struct grove *g)
{
    expect_sound(g);
    settle(&g->fixture);
    tree_destroy(g->tree, g->thread);
    struct store_stats stats = stats_of(&g->fixture);
    assert_int_equal(stats.bytes_used, stats.buckets * 64u);
    assert_int_equal(stats.retired_bytes, 0);
    fixture_close(&g->fixture);
}

void plant(struct grove *g, struct bytes key, uint64_t hint)
{
    assert_int_equal(tree_insert(g->tree, g->thread, key, hint, NULL), HK_OK);
}

void uproot(struct grove *g, struct bytes key, uint64_t hint)
{
    uint64_t old = ~hint;
    assert_int_equal(tree_delete(g->tree, g->thread, key, &old), HK_OK);
    assert_int_equal(old, hint);
}

void expect_hint(struct grove *g, struct bytes key, uint64_t hint)
{
    uint64_t found = ~hint;
    assert_int_equal(tree_find(g->tree, g->thread, key, &found), HK_OK);
    assert_int_equal(found, hint);
}

void expect_no_hint(struct grove *g, struct bytes key)
{
    uint64_t found;
    assert_int_equal(tree_find(g->tree, g->thread, key, &found), HK_ERR_NOTFOUND);
}

void expect_sound(struct grove *g)
{
    const char *broken = tree_check(g->tree);
    if (broken != NULL) {
        fail_msg("%s", broken);
    }
}

struct tree_stats grove_stats(struct grove *g)
{
    struct tree_stats stats;
    tree_stats(g->tree, &stats);
    return stats;
}

struct bytes number_key(uint8_t *space, uint64_t i)
{
    for (uint32_t j = 0; j < 8; j++) {
        space[j] = (uint8_t)(i >> (56u - 8u * j));
    }
    return bytes_of(space, 8);
}
