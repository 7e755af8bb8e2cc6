/* Waking a loop from other threads: no wake-up is lost, and what the waker wrote before is seen.
 * The loop waits for ever each time, so one lost wake-up hangs the test; a watch ends it then. */
#include "support/net_loop.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"

#define WAKERS 3u
#define LETTERS 20000u /* of each waker */
#define PATIENCE_S 120u

struct waker {
    struct loop *loop;
    pthread_t thread;
    uint64_t number;
    _Atomic uint64_t posted; /* by the waker, release; the loop's thread acquires */
    _Atomic uint64_t taken;  /* the other way round */
    uint64_t notes[LETTERS]; /* plain: a letter publishes its own */
    uint32_t window;         /* letters that may be under way */
};

static void *post(void *argument)
{
    struct waker *w = (struct waker *)argument;
    struct random r;
    random_init(&r, w->number);
    for (uint64_t i = 0; i < LETTERS; i++) {
        while (i - atomic_load_explicit(&w->taken, memory_order_acquire) >= w->window) {
            sched_yield();
        }
        w->notes[i] = i * 3 + w->number;
        atomic_store_explicit(&w->posted, i + 1, memory_order_release);
        loop_wake(w->loop);
        for (uint64_t turn = random_below(&r, 4); turn > 0; turn--) {
            sched_yield();
        }
    }
    return NULL;
}

static void take_all(struct loop *loop, struct waker *wakers, uint32_t count, bool polls_between)
{
    uint64_t taken = 0;
    uint64_t waits = 0;
    while (taken < (uint64_t)count * LETTERS) {
        (void)loop_poll(loop, UINT64_MAX);
        waits++;
        for (uint32_t i = 0; i < count; i++) {
            struct waker *w = &wakers[i];
            uint64_t posted = atomic_load_explicit(&w->posted, memory_order_acquire);
            uint64_t next = atomic_load_explicit(&w->taken, memory_order_relaxed);
            for (; next < posted; next++) {
                assert_int_equal(w->notes[next], next * 3 + w->number);
                taken++;
            }
            atomic_store_explicit(&w->taken, next, memory_order_release);
        }
        if (polls_between) {
            (void)loop_poll(loop, 0);
        }
    }
    assert_true(waits > 0);
}

static void run(void **state, uint32_t count, uint32_t window, bool polls_between)
{
    struct loop *loop = net_loop_create(state);
    struct waker *wakers = calloc(count, sizeof(*wakers));
    assert_non_null(wakers);
    alarm(PATIENCE_S);
    for (uint32_t i = 0; i < count; i++) {
        wakers[i].loop = loop;
        wakers[i].number = i + 1;
        wakers[i].window = window;
        assert_int_equal(pthread_create(&wakers[i].thread, NULL, post, &wakers[i]), 0);
    }
    take_all(loop, wakers, count, polls_between);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pthread_join(wakers[i].thread, NULL), 0);
    }
    alarm(0);
    loop_destroy(loop);
    free(wakers);
}

/* One letter at a time: the loop sleeps before nearly each. */
static void test_one_by_one(void **state)
{
    run(state, 1, 1, false);
}

static void test_many_wakers(void **state)
{
    run(state, WAKERS, 1, false);
    run(state, WAKERS, 100, false);
}

static void test_polls_between(void **state)
{
    run(state, WAKERS, 1, true);
}

struct baton {
    struct loop *loop;
    uint64_t note; /* plain: only the wake-up publishes it */
    bool waits;    /* until the other thread sleeps */
};

static void *pass(void *argument)
{
    struct baton *b = (struct baton *)argument;
    /* relaxed: says when, and publishes nothing. */
    while (b->waits && !atomic_load_explicit(&b->loop->sleeping, memory_order_relaxed)) {
        sched_yield();
    }
    b->note = 42;
    loop_wake(b->loop);
    return NULL;
}

/* The note is read because the wait ended and for no other reason, so the thread sanitizer can
 * judge. A loop that is new has no wake-up of the past. */
static void test_a_wake_up_publishes(void **state)
{
    alarm(PATIENCE_S);
    for (uint32_t i = 0; i < 200; i++) {
        struct baton b = {.loop = net_loop_create(state), .waits = i % 2 == 0};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, pass, &b), 0);
        (void)loop_poll(b.loop, UINT64_MAX);
        assert_int_equal(b.note, 42);
        assert_int_equal(pthread_join(thread, NULL), 0);
        loop_destroy(b.loop);
    }
    alarm(0);
}

/* Bytes and wake-ups at once: neither hides the other. */
static void test_wakes_and_bytes(void **state)
{
    struct loop *loop = net_loop_create(state);
    struct waker *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    struct net_loop_conn conn;
    int fds[2];
    uint64_t sent = 0, back = 0, taken = 0;
    const uint64_t total = 2000000;
    net_loop_pair_tcp(fds, 0);
    net_loop_open(&conn, loop, fds[0]);
    conn.echo = true;
    *w = (struct waker){.loop = loop, .number = 1, .window = 8};
    alarm(PATIENCE_S);
    assert_int_equal(pthread_create(&w->thread, NULL, post, w), 0);
    while (taken < LETTERS || back < total) {
        net_loop_write(fds[1], &sent, total, 700);
        assert_false(net_loop_read(fds[1], &back, total));
        /* Waits for ever only while a letter is sure to come. */
        (void)loop_poll(loop, taken < LETTERS ? UINT64_MAX : 1000);
        taken = atomic_load_explicit(&w->posted, memory_order_acquire);
        atomic_store_explicit(&w->taken, taken, memory_order_release);
    }
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    alarm(0);
    loop_destroy(loop);
    assert_int_equal(close(fds[1]), 0);
    free(w);
}

int main(void)
{
    static const struct net_loop_case cases[] = {
        {"one by one", test_one_by_one},
        {"many wakers", test_many_wakers},
        {"polls between", test_polls_between},
        {"a wake-up publishes", test_a_wake_up_publishes},
        {"wakes and bytes", test_wakes_and_bytes},
    };
    return net_loop_run("net_loop_wake", cases, sizeof(cases) / sizeof(cases[0]));
}
