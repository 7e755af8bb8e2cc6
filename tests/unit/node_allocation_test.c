/* Nothing is allocated on the operation path: once buffers have their size, reads, writes, adds and
 * deletes of existing and of new keys call neither malloc nor its relatives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/node_cluster.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS 0 /* the sanitizers bring an allocator of their own */
#else
#define COUNTS 1

/* The C library's own names, so that ours can stand in front of them. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *at, size_t n);

static unsigned long allocations;

void *malloc(size_t n)
{
    allocations += cluster_in_node;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
    allocations += cluster_in_node;
    return __libc_calloc(n, m);
}

void *realloc(void *at, size_t n)
{
    allocations += cluster_in_node;
    return __libc_realloc(at, n);
}
#endif

static void operations(struct cluster *c, uint32_t round)
{
    static char value[STORE_INLINE_MAX];
    for (uint32_t i = 0; i < 400; i++) {
        char key[32];
        int n = snprintf(key, sizeof key, "key-%u", i % 40);
        struct op op = {.key = bytes_of(key, (uint32_t)n), .value = bytes_of(value, 1 + i)};
        static const uint8_t kinds[] = {OP_SET, OP_GET, OP_DELETE, OP_SET, OP_GETSET, OP_APPEND};
        op.kind = kinds[(i + round) % 6];
        if (op.kind == OP_GET || op.kind == OP_DELETE) {
            op.value = bytes_of(NULL, 0);
        }
        (void)cluster_call(c, i % 3, &op);
    }
}

static void operations_allocate_nothing(void **state)
{
    (void)state;
    struct cluster_config config = {.nodes = 3,
                                    .workers = {1, 2, 1},
                                    .hermes = {.mlt_us = 10000, .grace_us = 500000},
                                    .seed = 2};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    operations(c, 0);
#if COUNTS
    /* The counter counts: the first round had buffers to make. */
    assert_true(allocations > 0);
    allocations = 0;
#endif
    for (uint32_t round = 1; round < 6; round++) {
        operations(c, round);
    }
#if COUNTS
    assert_int_equal(allocations, 0);
#endif
    cluster_destroy(c);
    if (!COUNTS) {
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
