/* Requests and answers of the usual size cost no memory: once a connection has worked, neither
 * receiving nor sending calls malloc or its relatives; and an idle connection holds no buffer. */
#include "support/net_loop.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

static uint64_t allocations;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS false /* the sanitizers bring an allocator of their own */
#else
#define COUNTS true

/* The C library's own names, so that ours can stand in front of them. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t n);
void *__libc_realloc(void *at, size_t n);
void *malloc(size_t n);
void *calloc(size_t count, size_t n);
void *realloc(void *at, size_t n);

void *malloc(size_t n)
{
    allocations++;
    return __libc_malloc(n);
}

void *calloc(size_t count, size_t n)
{
    allocations++;
    return __libc_calloc(count, n);
}

void *realloc(void *at, size_t n)
{
    allocations++;
    return __libc_realloc(at, n);
}
#endif

#define STREAMS 100u

static void test_no_allocation(void **state)
{
    struct loop *loop = net_loop_create(state);
    static struct net_loop_conn conns[STREAMS];
    int fds[STREAMS][2];
    uint64_t sent[STREAMS] = {0}, back[STREAMS] = {0};
    for (uint32_t i = 0; i < STREAMS; i++) {
        net_loop_pair_tcp(fds[i], 0);
        net_loop_open(&conns[i], loop, fds[i][0]);
        conns[i].echo = true;
    }
    uint64_t before = 0;
    for (uint32_t round = 0; round < 50; round++) {
        if (round == 10) {
            before = allocations;
        }
        uint32_t done = 0;
        for (uint32_t i = 0; i < STREAMS; i++) {
            net_loop_write(fds[i][1], &sent[i], (round + 1) * 2000u, 2000);
        }
        NET_LOOP_UNTIL(loop, done == STREAMS)
        {
            done = 0;
            for (uint32_t i = 0; i < STREAMS; i++) {
                assert_false(net_loop_read(fds[i][1], &back[i], 100000));
                done += back[i] == sent[i];
            }
        }
        (void)loop_poll(loop, 0);
        for (uint32_t i = 0; i < STREAMS; i++) {
            struct stream *s = conns[i].stream;
            assert_int_equal(s->filling.capacity + s->sending.capacity, 0);
        }
    }
    assert_int_equal(allocations, before);
    assert_int_equal(before > 0, COUNTS);
    assert_in_range(loop->spare_bytes, OUTPUT_MIN, LOOP_SPARE_MAX);
    loop_destroy(loop);
    for (uint32_t i = 0; i < STREAMS; i++) {
        assert_int_equal(close(fds[i][1]), 0);
    }
}

int main(void)
{
    static const struct net_loop_case cases[] = {{"no allocation", test_no_allocation}};
    return net_loop_run("net_loop_allocation", cases, 1);
}
