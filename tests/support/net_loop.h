/* For tests of the loop: each runs on every backend, against plain sockets. */
#ifndef HORKOS_TESTS_NET_LOOP_H
#define HORKOS_TESTS_NET_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"
#include "net/loop_internal.h"

/* How long anything may take before a test gives up. */
#define NET_LOOP_PATIENCE_US 60000000u

struct net_loop_case {
    const char *name;
    void (*run)(void **state);
};
/* Runs each case on each backend. Returns the number of failures. */
int net_loop_run(const char *group, const struct net_loop_case *cases, size_t count);
/* The loop for a case's state. Skips the case if this system lacks io_uring altogether; where it
 * has a kernel that should do, a backend that refuses is a failure. */
struct loop *net_loop_create(void **state);

/* Connected stream sockets, non-blocking. buffer: bytes of each side, 0: as the system has it. */
void net_loop_pair_unix(int fds_out[2], int buffer);
void net_loop_pair_tcp(int fds_out[2], int buffer);
/* Closes so that the other side gets a reset. */
void net_loop_reset(int fd);
/* How many of these descriptors this process may have; raises the limit if it is allowed to. */
bool net_loop_descriptors(uint32_t count);

/* The stream that all tests send, from byte number `at` on: it repeats itself only after a prime
 * number of bytes, so it shows loss, repetition and disorder. */
void net_loop_fill(uint8_t *to, uint64_t at, size_t n);
bool net_loop_matches(const uint8_t *from, uint64_t at, size_t n);

/* The side without a loop: reads what is there (at most `most` bytes) and holds it against the
 * stream. True: the other side has closed. Counts in *at. */
bool net_loop_read(int fd, uint64_t *at, size_t most);
/* Writes what the kernel takes of the bytes up to `end`. */
void net_loop_write(int fd, uint64_t *at, uint64_t end, size_t most);

/* An owner that counts. */
struct net_loop_conn {
    struct loop *loop;
    struct stream *stream; /* NULL: closed */
    uint64_t received;     /* all of it was as it should be */
    uint64_t written;
    uint32_t drained, ended, closed;
    int error;
    bool echo;                                       /* writes back what it receives */
    void (*on_received)(struct net_loop_conn *conn); /* after counting; may be NULL */
    void (*on_drained)(struct net_loop_conn *conn);
    void (*on_closed)(struct net_loop_conn *conn);
    bool (*on_ended)(struct net_loop_conn *conn); /* NULL: does not go on */
};
extern const struct stream_ops net_loop_ops;
void net_loop_open(struct net_loop_conn *conn, struct loop *loop, int fd);
/* Queues the next n bytes of the stream. */
void net_loop_queue(struct net_loop_conn *conn, uint32_t n);

/* Does its body and polls, in turn, until the condition holds. */
#define NET_LOOP_UNTIL(loop, condition) NET_LOOP_UNTIL_AT(loop, condition, __LINE__)
#define NET_LOOP_UNTIL_AT(loop, condition, line) NET_LOOP_UNTIL_NAMED(loop, condition, line)
/* Each has a variable of its own, so one may stand within another. */
#define NET_LOOP_UNTIL_NAMED(loop, condition, line)                                                \
    for (uint64_t until_us_##line = clock_boot_us() + NET_LOOP_PATIENCE_US; !(condition);          \
         assert_true(clock_boot_us() < until_us_##line), (void)loop_poll(loop, 1000))

#endif
