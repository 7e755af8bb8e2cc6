#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/random.h"
#include "engine/op_number.h"
#include "support/engine_incrbyfloat.h"

static struct bytes text_of(const char *text)
{
    return bytes_of(text, (uint32_t)strlen(text));
}

static void assert_text(const uint8_t *at, uint32_t n, const char *expected)
{
    char text[1024];

    assert_true(n < sizeof text);
    memcpy(text, at, n);
    text[n] = '\0';
    assert_string_equal(text, expected);
}

static void assert_integer(int64_t number, const char *text)
{
    uint8_t out[OP_INTEGER_TEXT_MAX];
    int64_t back = ~number;

    assert_text(out, op_integer_format(number, out), text);
    assert_true(op_integer_parse(text_of(text), &back));
    assert_true(back == number);
}

static void integers_round_trip(void **state)
{
    struct random random;
    (void)state;

    assert_integer(0, "0");
    assert_integer(-1, "-1");
    assert_integer(10, "10");
    assert_integer(INT64_MAX, "9223372036854775807");
    assert_integer(INT64_MIN, "-9223372036854775808");
    random_init(&random, 1);
    for (int i = 0; i < 100000; i++) {
        char text[32];
        int64_t number = (int64_t)(random_next(&random) >> random_below(&random, 64));

        number = random_below(&random, 2) == 0 ? number : 0 - number;
        snprintf(text, sizeof text, "%lld", (long long)number);
        assert_integer(number, text);
    }
}

static void only_the_canonical_integer_is_taken(void **state)
{
    static const char *const refused[] = {
        "",
        "-",
        "+",
        "+1",
        " 1",
        "1 ",
        "1\n",
        "01",
        "00",
        "-0",
        "-01",
        "--1",
        "1-",
        "0x1",
        "1.0",
        "1e3",
        "a",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "18446744073709551617",
        "92233720368547758070",
        "-92233720368547758080",
        "99999999999999999999",
        "100000000000000000000000000000000000000",
    };
    int64_t number = 7;
    (void)state;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_false(op_integer_parse(text_of(refused[i]), &number));
    assert_false(op_integer_parse(bytes_of(NULL, 0), &number));
    assert_false(op_integer_parse(bytes_of("1\0", 2), &number));
    assert_int_equal(number, 7);
}

static void sums_are_those_of_redis(void **state)
{
    static const struct {
        const char *a, *b, *sum;
    } rows[] = {
        {"10.50", "0.1", "10.6"}, /* the first four are in Redis's documentation */
        {"10.6", "-5", "5.6"},
        {"5.0e3", "2.0e2", "5200"},
        {"3.0", "1.0", "4"},
        {"0.1", "0.2", "0.3"},
        {"0", "0", "0"},
        {"-0", "-0.0", "0"},
        {"1", "-1", "0"},
        {"-1.5", "0.25", "-1.25"},
        {"+1", "+.5", "1.5"},
        {"5.", "0", "5"},
        {"00012.3400", "0", "12.34"},
        {"1E2", "1e+2", "200"},
        {"1e-2", "1e-0002", "0.02"},
        {"0e99999999999999999999", "1", "1"},
        {"123456789012345678", "1", "123456789012345679"},
        {"18446744073709551615", "1", "18446744073709551616"},
        /* 64 bits of mantissa end here: half to even, then upwards. */
        {"18446744073709551616", "1", "18446744073709551616"},
        {"18446744073709551616", "3", "18446744073709551620"},
        {"1e20", "1", "100000000000000000000"},
        {"9007199254740993", "0.5", "9007199254740993.5"},
        /* From 128 on the mantissa's end shows in the 17 digits behind the point. */
        {"1000.1", "0.1", "1000.19999999999999996"},
        {"1234.56", "0.1", "1234.66000000000000003"},
        {"0.00000000000000001", "0", "0.00000000000000001"},
        {"0.000000000000000006", "0", "0.00000000000000001"},
        {"0.000000000000000004", "0", "0"},
        {"-0.000000000000000004", "0", "0"},
        {"-1e-300", "0", "0"},
        {"1e-4000", "1", "1"},
        {"0.99999999999999999", "0.000000000000000009", "1"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t out[OP_DECIMAL_SUM_MAX];
        uint32_t n = 0;

        assert_int_equal(op_decimal_add(text_of(rows[i].a), text_of(rows[i].b), out, &n), HK_OK);
        assert_text(out, n, rows[i].sum);
        assert_int_equal(op_decimal_add(text_of(rows[i].b), text_of(rows[i].a), out, &n), HK_OK);
        assert_text(out, n, rows[i].sum);
    }
}

static int add(const char *a, const char *b)
{
    uint8_t out[OP_DECIMAL_SUM_MAX];
    uint32_t n = 0;

    return op_decimal_add(text_of(a), text_of(b), out, &n);
}

static void what_is_no_decimal_is_refused(void **state)
{
    static const char *const refused[] = {
        "",
        ".",
        "-",
        "+",
        "-.",
        "e",
        "e5",
        ".e5",
        "1e",
        "1e+",
        "1e-",
        "1e5.0",
        "1e 5",
        " 1",
        "1 ",
        "1\n",
        "1.2.3",
        "--1",
        "+-1",
        "1-",
        "abc",
        "1a",
        "0x10",
        "inf",
        "-inf",
        "nan",
        "1,5",
        "1_000",
        "1e309",
        "1e+5000",
        "1e-5000",
        "1e99999999999999999999",
        "1e-99999999999999999999",
    };
    uint8_t out[OP_DECIMAL_SUM_MAX];
    uint32_t n = 7;
    (void)state;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(add(refused[i], "1"), HK_ERR_TYPE);
        assert_int_equal(add("1", refused[i]), HK_ERR_TYPE);
    }
    assert_int_equal(op_decimal_add(bytes_of(NULL, 0), text_of("1"), out, &n), HK_ERR_TYPE);
    assert_int_equal(op_decimal_add(bytes_of("1\0", 2), text_of("1"), out, &n), HK_ERR_TYPE);
    assert_int_equal(n, 7);
}

static void sizes_have_limits(void **state)
{
    char longest[OP_DECIMAL_TEXT_MAX + 2];
    uint8_t out[OP_DECIMAL_SUM_MAX];
    uint32_t n = 0;
    (void)state;

    /* As many digits as can be, all behind the point: the most that the limbs must hold. */
    memset(longest, '9', sizeof longest);
    longest[0] = '.';
    longest[OP_DECIMAL_TEXT_MAX] = '\0';
    assert_int_equal(op_decimal_add(text_of(longest), text_of("0"), out, &n), HK_OK);
    assert_text(out, n, "1");
    longest[OP_DECIMAL_TEXT_MAX] = '9';
    longest[OP_DECIMAL_TEXT_MAX + 1] = '\0';
    assert_int_equal(add(longest, "0"), HK_ERR_TYPE);

    /* The largest sums, and that what is written can be read again. */
    assert_int_equal(op_decimal_add(text_of("-4.9e308"), text_of("-5e308"), out, &n), HK_OK);
    assert_int_equal(n, 1 + OP_DECIMAL_DIGITS_MAX);

    uint8_t again[OP_DECIMAL_SUM_MAX];
    uint32_t again_n = 0;

    assert_int_equal(op_decimal_add(bytes_of(out, n), text_of("0"), again, &again_n), HK_OK);
    assert_true(bytes_equal(bytes_of(out, n), bytes_of(again, again_n)));
    assert_int_equal(add("5e308", "6e308"), HK_ERR_OVERFLOW);
    assert_int_equal(add("-9e308", "-9e308"), HK_ERR_OVERFLOW);
    assert_int_equal(add("9e308", "-9e308"), HK_OK);
}

/* A text of the grammar, mostly of sizes that people use; now and then of any size. */
static uint32_t random_decimal(struct random *random, char *out)
{
    uint64_t digits_max = random_below(random, 8) == 0 ? 200 : 12;
    uint64_t before = random_below(random, digits_max);
    uint64_t behind = random_below(random, 3) == 0 ? 0 : random_below(random, digits_max);
    uint32_t n = 0;

    if (random_below(random, 2) == 0)
        out[n++] = random_below(random, 8) == 0 ? '+' : '-';
    for (uint64_t i = 0; i < before; i++)
        out[n++] = (char)('0' + random_below(random, 10));
    if (behind > 0)
        out[n++] = '.';
    for (uint64_t i = 0; i < behind; i++)
        out[n++] = (char)('0' + random_below(random, 10));
    if (random_below(random, 4) == 0) {
        int64_t range = random_below(random, 4) == 0 ? 320 : 20;
        int64_t exponent = (int64_t)random_below(random, (uint64_t)(2 * range)) - range;
        n += (uint32_t)sprintf(out + n, "e%d", (int)exponent);
    }
    return n;
}

static void sums_are_those_of_the_c_library(void **state)
{
    struct random random;
    char a[512];
    char b[512];
    (void)state;

    if (!incrbyfloat_comparable())
        skip();
    random_init(&random, 2);
    for (int i = 0; i < 100000; i++) {
        struct bytes x = bytes_of(a, random_decimal(&random, a));
        struct bytes y = bytes_of(b, random_decimal(&random, b));
        incrbyfloat_compare(x, y);
    }
}

/* Numbers of 65 bits lie in the middle between two long doubles; beside them a rounding that
 * forgets its sticky bit goes the wrong way. */
static void ties_are_those_of_the_c_library(void **state)
{
    struct random random;
    (void)state;

    if (!incrbyfloat_comparable())
        skip();
    random_init(&random, 3);
    for (int i = 0; i < 4000; i++) {
        static const char *const last[] = {"5", "50000000000000000000000000001",
                                           "49999999999999999999999999999"};
        char fraction[128];
        char text[256];
        int before = (int)random_between(&random, 1, 64);
        int behind = 65 - before;
        uint64_t upper = random_next(&random) | (uint64_t)1 << 63;
        uint64_t lower = random_next(&random) >> (64 - behind) | 1;
        /* An odd number of 2^-behind has exactly that many digits, and its last one is a 5. */
        int n = snprintf(fraction, sizeof fraction, "%.*Lf", behind,
                         ldexpl((long double)lower, -behind));

        assert_int_equal(fraction[n - 1], '5');
        fraction[n - 1] = '\0';
        for (size_t j = 0; j < sizeof last / sizeof last[0]; j++) {
            n = snprintf(text, sizeof text, "%llu%s%s",
                         (unsigned long long)(upper >> (64 - before)), fraction + 1, last[j]);
            incrbyfloat_compare(bytes_of(text, (uint32_t)n), text_of("0"));
            incrbyfloat_compare(bytes_of(text, (uint32_t)n), text_of("-0.5"));
            incrbyfloat_compare(text_of("1e19"), bytes_of(text, (uint32_t)n));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_round_trip),
        cmocka_unit_test(only_the_canonical_integer_is_taken),
        cmocka_unit_test(sums_are_those_of_redis),
        cmocka_unit_test(what_is_no_decimal_is_refused),
        cmocka_unit_test(sizes_have_limits),
        cmocka_unit_test(sums_are_those_of_the_c_library),
        cmocka_unit_test(ties_are_those_of_the_c_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
