/* "Absent" must be true (docs/STORE.md, S4): readers ask without pause for keys that are there all
 * along, while exactly these keys are moved, by packing of their chain in one test and by the split
 * of their bucket in the other. Bounded in the movers' work. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/random.h"
#include "store/state.h"
#include "store/store.h"
#include "support/store_fixture.h"

#define READERS 2u

struct scene {
    struct fixture f;
    struct store_thread *readers[READERS];
    _Atomic uint32_t ready;
    _Atomic uint32_t done;
    _Atomic uint64_t victims_n; /* of the second test: how many are in */
};

static struct scene scene;

static bool is_there(struct store_thread *thread, uint64_t key)
{
    uint64_t buffer[STORE_INLINE_MAX / 8];
    struct bytes k = bytes_of(&key, 8);
    struct store_value v;
    int err = store_read(scene.f.store, thread, k, store_hash(scene.f.store, k), buffer,
                         sizeof(buffer), &v);
    HK_ASSERT(err == HK_OK);
    HK_ASSERT(!v.found || (v.value.n == 8 && buffer[0] == key));
    return v.found;
}

static void insert(uint64_t key)
{
    must_put(&scene.f, bytes_of(&key, 8), 1, bytes_of(&key, 8));
}

static void start(pthread_t *threads, void *(*body)(void *))
{
    struct store_config config = {.seed = 99};
    fixture_open(&scene.f, &config);
    /* Only the mover's own registration takes part in reclamation here. */
    store_offline(scene.f.threads[1]);
    store_offline(scene.f.threads[2]);
    atomic_store(&scene.ready, 0);
    atomic_store(&scene.done, 0);
    for (uint32_t i = 0; i < READERS; i++) {
        assert_int_equal(store_thread_register(scene.f.store, &scene.readers[i]), HK_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, body, (void *)(uintptr_t)i), 0);
    }
}

static void finish(pthread_t *threads)
{
    atomic_store(&scene.done, 1);
    for (uint32_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        store_thread_unregister(scene.readers[i]);
    }
    fixture_close(&scene.f);
}

/* ---- Packing ---- */

#define CHAIN 28u
#define ROUNDS 60000u

static uint64_t chain[CHAIN];
static _Atomic uint64_t lives[CHAIN]; /* even: the key is there, and stays until this changes */

/* Keys that share their bucket for as long as this test runs. */
static void find_chain(const struct store *store)
{
    for (uint64_t i = 1, n = 0; n < CHAIN; i++) {
        if ((store_hash(store, bytes_of(&i, 8)) & 0xfff) == 0x123) {
            chain[n++] = i;
        }
    }
}

static void *ask_for_the_living(void *number)
{
    struct store_thread *thread = scene.readers[(uintptr_t)number];
    while (atomic_load(&scene.ready) == 0) {
        sched_yield();
    }
    while (atomic_load_explicit(&scene.done, memory_order_acquire) == 0) {
        for (uint32_t i = 0; i < CHAIN; i++) {
            uint64_t before = atomic_load_explicit(&lives[i], memory_order_acquire);
            bool found = is_there(thread, chain[i]);
            bool lived =
                before % 2 == 0 && atomic_load_explicit(&lives[i], memory_order_acquire) == before;
            HK_ASSERT(found || !lived);
        }
        store_quiescent(thread);
    }
    return NULL;
}

static void test_keys_that_packing_moves(void **state)
{
    (void)state;
    pthread_t threads[READERS];
    struct random r;
    random_init(&r, 1);
    start(threads, ask_for_the_living);
    find_chain(scene.f.store);
    for (uint32_t i = 0; i < CHAIN; i++) {
        insert(chain[i]);
    }
    atomic_store(&scene.ready, 1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        /* Taking one key away moves the last of the chain to its place. */
        uint32_t i = (uint32_t)random_below(&r, CHAIN);
        uint64_t life = atomic_load_explicit(&lives[i], memory_order_relaxed);
        atomic_store_explicit(&lives[i], life + 1, memory_order_release);
        drop(&scene.f, bytes_of(&chain[i], 8));
        insert(chain[i]);
        atomic_store_explicit(&lives[i], life + 2, memory_order_release);
        store_quiescent(scene.f.thread);
    }
    finish(threads);
}

/* ---- Splits ---- */

#define SPLITS 6000u
#define REPEATS 6u

static uint64_t victims[INDEX_BUCKETS_MIN + SPLITS];

/* Victim i is a key that the split of bucket i's origin moves to bucket i. */
static void find_victims(const struct store *store)
{
    uint32_t missing = SPLITS;
    for (uint32_t i = 0; i < INDEX_BUCKETS_MIN + SPLITS; i++) {
        victims[i] = 0;
    }
    for (uint64_t key = 1; missing > 0; key++) {
        uint64_t hash = store_hash(store, bytes_of(&key, 8));
        /* The largest number of buckets first, as each smaller one would do, too. */
        for (uint64_t mask = 0x1fff; mask > INDEX_BUCKETS_MIN; mask >>= 1) {
            uint64_t i = hash & mask;
            if (i > mask / 2 && i >= INDEX_BUCKETS_MIN && i < INDEX_BUCKETS_MIN + SPLITS &&
                victims[i] == 0) {
                victims[i] = key;
                missing--;
                break;
            }
        }
    }
}

static void *ask_for_next_to_move(void *number)
{
    struct store_thread *thread = scene.readers[(uintptr_t)number];
    while (atomic_load(&scene.ready) == 0) {
        sched_yield();
    }
    while (atomic_load_explicit(&scene.done, memory_order_acquire) == 0) {
        uint64_t n = index_buckets(&scene.f.store->index);
        for (uint64_t i = n; i < n + 3; i++) {
            if (i < atomic_load_explicit(&scene.victims_n, memory_order_acquire)) {
                HK_ASSERT(is_there(thread, victims[i]));
            }
        }
        store_quiescent(thread);
    }
    return NULL;
}

static void test_keys_that_splits_move(void **state)
{
    (void)state;
    for (uint32_t repeat = 0; repeat < REPEATS; repeat++) {
        pthread_t threads[READERS];
        atomic_store(&scene.victims_n, 0);
        start(threads, ask_for_next_to_move);
        find_victims(scene.f.store);
        atomic_store(&scene.ready, 1);
        uint64_t victim = INDEX_BUCKETS_MIN, other = (uint64_t)1 << 40;
        while (victim < INDEX_BUCKETS_MIN + SPLITS) {
            /* A few victims ahead of growth, and other keys to drive it. */
            if (victim < index_buckets(&scene.f.store->index) + 20) {
                insert(victims[victim++]);
                atomic_store_explicit(&scene.victims_n, victim, memory_order_release);
            } else {
                insert(other++);
            }
            store_quiescent(scene.f.thread);
        }
        finish(threads);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_that_packing_moves),
        cmocka_unit_test(test_keys_that_splits_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
