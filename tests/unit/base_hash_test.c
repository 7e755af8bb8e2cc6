#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

static void test_depends_on_secret_and_bytes_only(void **state)
{
    (void)state;
    struct hash_secret a, same, other;
    hash_secret_init(&a, 1);
    hash_secret_init(&same, 1);
    hash_secret_init(&other, 2);
    uint8_t *bytes = malloc(70000);
    assert_non_null(bytes);
    struct random r;
    random_init(&r, 3);
    for (uint32_t i = 0; i < 70000; i++) {
        bytes[i] = (uint8_t)random_next(&r);
    }
    uint64_t last = 0;
    for (uint32_t n = 0; n <= 65536; n += n < 300 ? 1 : 999) {
        uint64_t hash = hash_bytes(&a, bytes_of(bytes, n));
        assert_int_equal(hash, hash_bytes(&same, bytes_of(bytes, n)));
        assert_int_not_equal(hash, hash_bytes(&other, bytes_of(bytes, n)));
        assert_int_not_equal(hash, last);
        last = hash;
        /* Wherever the bytes lie. */
        memmove(bytes + 1, bytes, n);
        assert_int_equal(hash, hash_bytes(&a, bytes_of(bytes + 1, n)));
        memmove(bytes, bytes + 1, n);
    }
    free(bytes);
}

static void test_is_the_same_on_every_machine(void **state)
{
    (void)state;
    struct hash_secret secret;
    hash_secret_init(&secret, 12345);
    assert_int_equal(hash_bytes(&secret, bytes_of(NULL, 0)), 0x998030117cc81c23u);
    assert_int_equal(hash_bytes(&secret, bytes_of("horkos00", 8)), 0x5cbfa4896a62ae2eu);
    assert_int_equal(hash_bytes(&secret, bytes_of("a key of more than 16 bytes", 27)),
                     0x04b3765e8e53a998u);
}

/* Lower bits number buckets and upper bits make tags: both must spread counting keys. */
static void test_bits_spread_counting_keys(void **state)
{
    (void)state;
    struct hash_secret secret;
    static uint32_t low[1024], high[1024];
    hash_secret_init(&secret, 9);
    for (uint64_t i = 0; i < 102400; i++) {
        uint64_t hash = hash_bytes(&secret, bytes_of(&i, 8));
        low[hash % 1024]++;
        high[hash >> 54]++;
    }
    for (uint32_t i = 0; i < 1024; i++) {
        /* 100 each; six standard deviations. */
        assert_true(low[i] > 40 && low[i] < 160);
        assert_true(high[i] > 40 && high[i] < 160);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_depends_on_secret_and_bytes_only),
        cmocka_unit_test(test_is_the_same_on_every_machine),
        cmocka_unit_test(test_bits_spread_counting_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
