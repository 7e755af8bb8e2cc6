/* A store with one ordered index, and the short way to use it. All functions fail the test on an
 * unexpected error. */
#ifndef HORKOS_TESTS_SUPPORT_STORE_TREE_H
#define HORKOS_TESTS_SUPPORT_STORE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/tree.h"
#include "support/store_fixture.h"

struct grove {
    struct fixture fixture;
    struct store_thread *thread;
    struct tree *tree;
};

void grove_open(struct grove *g, const struct store_config *config);
/* Checks the tree, takes it apart, and looks whether all memory came back. */
void grove_close(struct grove *g);

void plant(struct grove *g, struct bytes key, uint64_t hint);
void uproot(struct grove *g, struct bytes key, uint64_t hint);
void expect_hint(struct grove *g, struct bytes key, uint64_t hint);
void expect_no_hint(struct grove *g, struct bytes key);
void expect_sound(struct grove *g);
struct tree_stats grove_stats(struct grove *g);

/* An eight-byte key in numerical order. */
struct bytes number_key(uint8_t *space, uint64_t i);

#endif
