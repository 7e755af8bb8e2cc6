#include "support/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

void fixture_open(struct fixture *f, const struct store_config *config)
{
    memset(f, 0, sizeof(*f));
    assert_int_equal(store_create(config, &f->store), HK_OK);
    for (uint32_t i = 0; i < FIXTURE_THREADS; i++) {
        assert_int_equal(store_thread_register(f->store, &f->threads[i]), HK_OK);
    }
    f->thread = f->threads[0];
}

void fixture_close(struct fixture *f)
{
    for (uint32_t i = 0; i < FIXTURE_THREADS; i++) {
        store_thread_unregister(f->threads[i]);
    }
    store_destroy(f->store);
}

struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

struct key_meta stamp(uint64_t ts)
{
    return (struct key_meta){.ts = ts, .flags = KEY_READABLE};
}

int put(struct fixture *f, struct bytes key, uint64_t ts, struct bytes value, bool force)
{
    struct key_meta meta = stamp(ts);
    struct store_ref ref;
    store_lock(f->store, f->thread, key, store_hash(f->store, key), &ref);
    int err = store_set(&ref, &meta, value, force);
    store_unlock(&ref);
    return err;
}

void must_put(struct fixture *f, struct bytes key, uint64_t ts, struct bytes value)
{
    assert_int_equal(put(f, key, ts, value, false), HK_OK);
}

void drop(struct fixture *f, struct bytes key)
{
    struct store_ref ref;
    store_lock(f->store, f->thread, key, store_hash(f->store, key), &ref);
    store_remove(&ref);
    assert_null(ref.object);
    store_unlock(&ref);
}

struct store_value get(struct fixture *f, struct bytes key)
{
    struct store_value value;
    assert_int_equal(store_read(f->store, f->thread, key, store_hash(f->store, key), f->buffer,
                                sizeof(f->buffer), &value),
                     HK_OK);
    return value;
}

void expect(struct fixture *f, struct bytes key, uint64_t ts, struct bytes value)
{
    struct store_value v = get(f, key);
    assert_true(v.found);
    assert_int_equal(v.meta.ts, ts);
    assert_true(bytes_equal(v.value, value));
}

void expect_absent(struct fixture *f, struct bytes key)
{
    assert_false(get(f, key).found);
}

struct store_stats stats_of(struct fixture *f)
{
    struct store_stats stats;
    store_stats(f->store, &stats);
    return stats;
}

void settle(struct fixture *f)
{
    for (uint32_t round = 0; round < 10000 && (round < 4 || stats_of(f).retired_bytes > 0);
         round++) {
        for (uint32_t i = 0; i < FIXTURE_THREADS; i++) {
            store_quiescent(f->threads[i]);
        }
    }
}
