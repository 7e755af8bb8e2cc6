/* Verbs over ports: what they do to a peer's region, within one process and between two, and how a
 * batch ends that cannot be done. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/hub.h"
#include "net/port_verbs.h"
#include "support/net_port.h"
#include "wire/frame.h"

#define BOUND_US 60000000u
#define WORDS 64u
#define EACH 4000u /* additions of a poster */

/* ---- Ports of one process ---- */

static void lost(void *context, uint8_t node, uint8_t remote_worker, uint8_t local_worker,
                 const char *why)
{
    (void)context, (void)node, (void)remote_worker, (void)local_worker, (void)why;
}

static struct port *port_in(struct hub *hub, struct loop *loop, uint8_t node)
{
    struct port *port = NULL;
    struct port_config config = {.self = node,
                                 .workers = 1,
                                 .hub = hub,
                                 .queue_max = FRAME_HEADER + FRAME_BODY_MAX,
                                 .congested_at = 1024 * 1024,
                                 .lost = lost};
    assert_int_equal(port_create(&config, loop, &port), 0);
    return port;
}

struct rig {
    struct loop *loop;
    struct hub *hub;
    struct port *owner, *poster; /* nodes 0 and 1 */
    struct exposure *exposure;
    _Atomic uint64_t *words;
};

static void rig_open(struct rig *rig, bool exposes)
{
    *rig = (struct rig){.loop = NULL};
    assert_int_equal(loop_create(LOOP_EPOLL, &rig->loop), 0);
    assert_int_equal(hub_create(HUB_RING_DEFAULT, &rig->hub), 0);
    rig->exposure = exposure_create(8 * WORDS);
    assert_non_null(rig->exposure);
    rig->words = exposure_region(rig->exposure).words;
    rig->owner = port_in(rig->hub, rig->loop, 0);
    rig->poster = port_in(rig->hub, rig->loop, 1);
    port_adopt(rig->owner);
    port_adopt(rig->poster);
    if (exposes) {
        port_expose(rig->owner, rig->exposure);
    }
}

static void rig_close(struct rig *rig)
{
    port_destroy(rig->poster);
    port_destroy(rig->owner);
    exposure_let_go(rig->exposure);
    hub_destroy(rig->hub);
    loop_destroy(rig->loop);
}

static enum batch_end run(struct port *port, struct posting *posting)
{
    struct port_batch batch = {.posting = posting};
    port_post(port, &batch);
    port_flush(port);
    assert_ptr_equal(port_completed(port), &batch);
    assert_null(port_completed(port));
    return batch.end;
}

static void verbs_do_what_they_say(void **state)
{
    struct rig rig;
    struct posting p = {.n = 0};
    uint64_t out[3] = {11, 12, 13}, in[4] = {0};
    (void)state;
    rig_open(&rig, true);
    (void)post_write(&p, remote_of(0, 8), out, 3);
    uint32_t cas = post_cas(&p, remote_of(0, 16), 12, 112);
    uint32_t failing = post_cas(&p, remote_of(0, 24), 12, 113);
    uint32_t add = post_add(&p, remote_of(0, 8 * WORDS - 8), 7);
    (void)post_write(&p, remote_of(2, 0), out, 1); /* another node's: not of this batch */
    (void)post_read(&p, remote_of(0, 8), in, 4);
    struct port_batch batch = {.posting = &p};
    port_post(rig.poster, &batch);
    assert_null(port_completed(rig.poster));
    assert_int_equal(rig.words[1], 0);
    port_flush(rig.poster);
    assert_ptr_equal(port_completed(rig.poster), &batch);
    assert_int_equal(batch.end, BATCH_DONE);
    assert_int_equal(p.verbs[cas].seen, 12);
    assert_int_equal(p.verbs[failing].seen, 13);
    assert_int_equal(p.verbs[add].seen, 0);
    assert_int_equal(in[0], 11);
    assert_int_equal(in[1], 112);
    assert_int_equal(in[2], 13);
    assert_int_equal(in[3], 0);
    assert_int_equal(rig.words[0], 0);
    assert_int_equal(rig.words[WORDS - 1], 7);
    rig_close(&rig);
}

static void addresses_outside_end_the_batch(void **state)
{
    static const struct {
        uint64_t byte;
        uint32_t words;
        uint8_t kind;
    } wrong[] = {
        {8 * WORDS, 1, VERB_READ},
        {8 * WORDS - 8, 2, VERB_READ},
        {8 * WORDS - 8, 2, VERB_WRITE},
        {0, WORDS + 1, VERB_WRITE},
        {0, UINT32_MAX, VERB_READ},
        {8, UINT32_MAX, VERB_WRITE},
        {8 * WORDS + 8, 0, VERB_READ},
        {8 * WORDS, 0, VERB_CAS},
        {8 * WORDS, 0, VERB_FAA},
        {(UINT64_C(1) << REMOTE_NODE_SHIFT) - 8, 1, VERB_READ},
        {(UINT64_C(1) << REMOTE_NODE_SHIFT) - 8, UINT32_MAX, VERB_WRITE},
        {(UINT64_C(1) << REMOTE_NODE_SHIFT) - 8, 0, VERB_FAA},
        {4, 1, VERB_READ},
        {12, 0, VERB_FAA},
        {7, 0, VERB_CAS},
        {0, 1, VERB_KINDS},
        {0, 1, 255},
    };
    struct rig rig;
    (void)state;
    rig_open(&rig, true);
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct posting p = {.n = 0};
        uint64_t one = i + 1, local[2] = {99, 99};
        (void)post_write(&p, remote_of(0, 8), &one, 1);
        p.verbs[p.n++] = (struct verb){.at = remote_of(0, wrong[i].byte),
                                       .local = local,
                                       .value = 99,
                                       .words = wrong[i].words,
                                       .kind = wrong[i].kind};
        (void)post_add(&p, remote_of(0, 16), 1);
        assert_int_equal(run(rig.poster, &p), BATCH_ADDRESS);
        assert_int_equal(rig.words[1], i + 1); /* before it: done; after it: not */
        assert_int_equal(rig.words[2], 0);
        assert_int_equal(rig.words[0], 0);
        assert_int_equal(rig.words[WORDS - 1], 0);
        assert_int_equal(local[0], 99);
    }
    struct posting p = {.n = 0};
    (void)post_add(&p, remote_of(0, 16), 1); /* the connection is as good as before */
    assert_int_equal(run(rig.poster, &p), BATCH_DONE);
    rig_close(&rig);
}

static void what_cannot_be_reached(void **state)
{
    struct rig rig;
    struct net_port a, b;
    struct posting p = {.n = 0};
    (void)state;
    rig_open(&rig, false);
    (void)post_add(&p, remote_of(0, 0), 1);
    assert_int_equal(run(rig.poster, &p), BATCH_NOT_EXPOSED);
    port_expose(rig.owner, rig.exposure); /* to those that stand, too */
    assert_int_equal(run(rig.poster, &p), BATCH_DONE);
    struct port_batch nobody = {.posting = &p, .node = 5};
    port_post(rig.poster, &nobody);
    assert_ptr_equal(port_completed(rig.poster), &nobody);
    assert_int_equal(nobody.end, BATCH_UNCONNECTED);

    net_port_open(&a, rig.loop, 0, 0, 1);
    net_port_open(&b, rig.loop, 1, 0, 1);
    port_expose(a.port, rig.exposure);
    net_port_join(&a, &b, 1);
    assert_int_equal(run(b.port, &p), BATCH_NOT_SHARED);
    net_port_close(&a);
    net_port_close(&b);
    assert_int_equal(rig.words[0], 1);
    rig_close(&rig);
}

static void an_owner_that_leaves_ends_what_is_posted(void **state)
{
    struct rig rig;
    struct posting p = {.n = 0}, late = {.n = 0};
    struct port_batch batch = {.posting = &p};
    (void)state;
    rig_open(&rig, true);
    (void)post_add(&p, remote_of(0, 0), 1);
    assert_int_equal(run(rig.poster, &p), BATCH_DONE);
    port_post(rig.poster, &batch);
    port_destroy(rig.owner);
    rig.owner = NULL;
    struct bytes frame;
    (void)port_receive(rig.poster, &frame); /* finds the end */
    port_adopt(rig.poster);
    assert_ptr_equal(port_completed(rig.poster), &batch);
    assert_int_equal(batch.end, BATCH_UNCONNECTED);
    port_flush(rig.poster);
    assert_int_equal(rig.words[0], 1);
    (void)post_add(&late, remote_of(0, 0), 1);
    assert_int_equal(run(rig.poster, &late), BATCH_UNCONNECTED);
    rig_close(&rig);
}

/* ---- Two posters at once ---- */

/* Word 0 is added to; word 2 is added to by who has the lock in word 1, by a READ and a WRITE. */
static void poster_adds(struct port *port, uint64_t name)
{
    for (uint32_t i = 0; i < EACH; i++) {
        struct posting p = {.n = 0};
        uint64_t sum = 0, free_again = 0;
        (void)post_add(&p, remote_of(0, 0), 1);
        uint32_t lock = post_cas(&p, remote_of(0, 8), 0, name);
        for (;;) {
            assert_int_equal(run(port, &p), BATCH_DONE);
            if (p.verbs[lock].seen == 0) {
                break;
            }
            p.n = 0;
            lock = post_cas(&p, remote_of(0, 8), 0, name);
        }
        p.n = 0;
        (void)post_read(&p, remote_of(0, 16), &sum, 1);
        assert_int_equal(run(port, &p), BATCH_DONE);
        sum++;
        p.n = 0;
        (void)post_write(&p, remote_of(0, 16), &sum, 1);
        (void)post_write(&p, remote_of(0, 8), &free_again, 1);
        assert_int_equal(run(port, &p), BATCH_DONE);
    }
}

struct poster {
    struct hub *hub;
    pthread_t thread;
    atomic_bool over;
    uint8_t node;
};

static void *poster_main(void *context)
{
    struct poster *poster = context;
    struct loop *loop;
    assert_int_equal(loop_create(LOOP_EPOLL, &loop), 0);
    struct port *port = port_in(poster->hub, loop, poster->node);
    uint64_t until_us = clock_boot_us() + BOUND_US;
    struct posting nothing = {.n = 0};
    do { /* the owner says what it exposes when it adopts the connection */
        assert_true(clock_boot_us() < until_us);
        (void)loop_poll(loop, 1000);
        port_adopt(port);
    } while (run(port, &nothing) != BATCH_DONE);
    poster_adds(port, poster->node);
    port_destroy(port);
    loop_destroy(loop);
    atomic_store_explicit(&poster->over, true, memory_order_release);
    return NULL;
}

static void two_threads_lose_nothing(void **state)
{
    struct rig rig;
    struct poster posters[2];
    (void)state;
    rig_open(&rig, true);
    for (uint8_t i = 0; i < 2; i++) {
        posters[i] = (struct poster){.hub = rig.hub, .node = (uint8_t)(2 + i)};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, poster_main, &posters[i]), 0);
    }
    uint64_t until_us = clock_boot_us() + BOUND_US;
    while (!atomic_load_explicit(&posters[0].over, memory_order_acquire) ||
           !atomic_load_explicit(&posters[1].over, memory_order_acquire)) {
        assert_true(clock_boot_us() < until_us);
        (void)loop_poll(rig.loop, 1000);
        port_adopt(rig.owner);
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(posters[i].thread, NULL), 0);
    }
    assert_int_equal(rig.words[0], 2 * EACH);
    assert_int_equal(rig.words[2], 2 * EACH);
    rig_close(&rig);
}

/* ---- Two processes ---- */

struct pair {
    struct loop *loop;
    struct net_port self;
    pid_t child;
    uint64_t until_us;
};

static void pair_round(struct pair *pair)
{
    assert_true(clock_boot_us() < pair->until_us);
    port_flush(pair->self.port);
    (void)loop_poll(pair->loop, 1000);
    port_adopt(pair->self.port);
}

static void pair_stand(struct pair *pair, bool child, int fd)
{
    struct net_port other = {.node = child ? 1 : 0, .workers = 1};
    pair->until_us = clock_boot_us() + BOUND_US;
    assert_int_equal(loop_create(LOOP_EPOLL, &pair->loop), 0);
    net_port_open(&pair->self, pair->loop, child ? 0 : 1, 0, 1);
    struct handshake_peer peer = child ? net_port_peer(&pair->self, &other, false, 1)
                                       : net_port_peer(&other, &pair->self, true, 1);
    peer.shm = true;
    peer.caller = child;
    port_offer(pair->self.port, fd, &peer);
    port_adopt(pair->self.port);
    while (port_connected(pair->self.port) == 0) {
        pair_round(pair);
    }
}

/* Node 0: exposes a region and adds to it with its own processor, until it is ended or the other
 * node leaves. Word 8 says that it has begun. */
static void child_main(int fd)
{
    struct pair pair = {.child = 0};
    struct exposure *exposure = exposure_create(8 * WORDS);
    assert_non_null(exposure);
    _Atomic uint64_t *words = exposure_region(exposure).words;
    pair_stand(&pair, true, fd);
    port_expose(pair.self.port, exposure);
    for (uint32_t i = 0; i < EACH; i++) {
        (void)atomic_fetch_add_explicit(&words[0], 1, memory_order_acq_rel);
        atomic_store_explicit(&words[8], 1, memory_order_release);
    }
    atomic_store_explicit(&words[9], 1, memory_order_release);
    while (pair.self.lost == 0) {
        pair_round(&pair);
    }
    _exit(0);
}

static void pair_open(struct pair *pair)
{
    int fds[2];
    net_socket_pair(fds);
    pair->child = fork();
    assert_true(pair->child >= 0);
    if (pair->child == 0) {
        (void)close(fds[1]);
        child_main(fds[0]);
    }
    (void)close(fds[0]);
    pair_stand(pair, false, fds[1]);
}

static uint64_t word_of_peer(struct pair *pair, uint32_t word)
{
    struct posting p = {.n = 0};
    uint64_t seen = 0;
    (void)post_read(&p, remote_of(0, 8 * word), &seen, 1);
    assert_int_equal(run(pair->self.port, &p), BATCH_DONE);
    return seen;
}

static void pair_wait_exposed(struct pair *pair)
{
    struct posting nothing = {.n = 0};
    while (run(pair->self.port, &nothing) != BATCH_DONE) {
        pair_round(pair);
    }
}

static void two_processes_lose_nothing(void **state)
{
    struct pair pair;
    int status;
    (void)state;
    pair_open(&pair);
    pair_wait_exposed(&pair);
    for (uint32_t i = 0; i < EACH; i++) {
        struct posting p = {.n = 0};
        (void)post_add(&p, remote_of(0, 0), 1);
        assert_int_equal(run(pair.self.port, &p), BATCH_DONE);
    }
    while (word_of_peer(&pair, 9) == 0) {
        pair_round(&pair);
    }
    assert_int_equal(word_of_peer(&pair, 0), 2 * EACH);
    struct posting wrong = {.n = 0};
    (void)post_add(&wrong, remote_of(0, 8 * WORDS), 1);
    assert_int_equal(run(pair.self.port, &wrong), BATCH_ADDRESS);
    net_port_close(&pair.self);
    loop_destroy(pair.loop);
    assert_int_equal(waitpid(pair.child, &status, 0), pair.child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_death_ends_what_is_posted(void **state)
{
    struct pair pair;
    struct posting p = {.n = 0};
    struct port_batch batch = {.posting = &p};
    (void)state;
    pair_open(&pair);
    pair_wait_exposed(&pair);
    (void)post_add(&p, remote_of(0, 0), 1);
    port_post(pair.self.port, &batch);
    assert_int_equal(kill(pair.child, SIGKILL), 0);
    assert_int_equal(waitpid(pair.child, &(int){0}, 0), pair.child);
    while (pair.self.lost == 0) {
        assert_true(clock_boot_us() < pair.until_us);
        (void)loop_poll(pair.loop, 1000); /* and no port_flush, which would execute it */
        port_adopt(pair.self.port);
    }
    assert_ptr_equal(port_completed(pair.self.port), &batch);
    assert_int_equal(batch.end, BATCH_UNCONNECTED);
    assert_int_equal(run(pair.self.port, &p), BATCH_UNCONNECTED);
    net_port_close(&pair.self);
    loop_destroy(pair.loop);
}

/* ---- Places that say what is not so ---- */

static void places_are_not_believed(void **state)
{
    struct exposure *exposure = exposure_create(8 * WORDS);
    struct exposure_place good = {.there = 0}, wrong;
    (void)state;
    assert_non_null(exposure);
    assert_null(exposure_find(&good));
    exposure_say(exposure, &good);
    struct exposure *found = exposure_find(&good);
    assert_non_null(found);
    assert_int_equal(exposure_region(found).bytes, 8 * WORDS);
    exposure_region(found).words[3] = 5;
    assert_int_equal(exposure_region(exposure).words[3], 5);
    exposure_let_go(found);
    memcpy(&wrong, &good, sizeof wrong);
    wrong.token[5] ^= 1;
    assert_null(exposure_find(&wrong));
    memcpy(&wrong, &good, sizeof wrong);
    wrong.descriptor = 0; /* something else */
    assert_null(exposure_find(&wrong));
    wrong.descriptor = UINT32_MAX;
    assert_null(exposure_find(&wrong));
    memcpy(&wrong, &good, sizeof wrong);
    wrong.there = 2;
    assert_null(exposure_find(&wrong));
    exposure_let_go(exposure);
    assert_null(exposure_find(&good));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs_do_what_they_say),
        cmocka_unit_test(addresses_outside_end_the_batch),
        cmocka_unit_test(what_cannot_be_reached),
        cmocka_unit_test(an_owner_that_leaves_ends_what_is_posted),
        cmocka_unit_test(two_threads_lose_nothing),
        cmocka_unit_test(two_processes_lose_nothing),
        cmocka_unit_test(a_death_ends_what_is_posted),
        cmocka_unit_test(places_are_not_believed),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
