/* op_decimal_add against the C library where its long double is Redis's, and op_integer_parse
 * against op_integer_format. Input: two texts, the first up to the first line feed. */
#include "fuzz/fuzz.h"

#include "base/assert.h"
#include "engine/op_number.h"
#include "support/engine_incrbyfloat.h"

static void check_integer(struct bytes text)
{
    uint8_t again[OP_INTEGER_TEXT_MAX];
    int64_t number = 0;

    if (!op_integer_parse(text, &number))
        return;

    uint32_t n = op_integer_format(number, again);

    HK_ASSERT(bytes_equal(bytes_of(again, n), text));
}

/* The library's parser takes more than the grammar: hexadecimal, "inf", blanks in front. */
static bool only_decimal(struct bytes text)
{
    for (uint32_t i = 0; i < text.n; i++) {
        uint8_t c = text.at[i];
        if ((c < '0' || c > '9') && c != '+' && c != '-' && c != '.' && c != 'e' && c != 'E')
            return false;
    }
    return true;
}

/* What was written can be read, and the order of the summands does not matter. */
static void check_sum(struct bytes a, struct bytes b)
{
    static const uint8_t zero[] = {'0'};
    uint8_t sum[OP_DECIMAL_SUM_MAX];
    uint8_t again[OP_DECIMAL_SUM_MAX];
    uint32_t n = 0;
    uint32_t m = 0;

    if (op_decimal_add(a, b, sum, &n) != 0)
        return;
    HK_ASSERT(n > 0 && n <= sizeof sum && only_decimal(bytes_of(sum, n)));
    HK_ASSERT(op_decimal_add(bytes_of(sum, n), bytes_of(zero, 1), again, &m) == 0);
    HK_ASSERT(m <= sizeof again);
    HK_ASSERT(op_decimal_add(b, a, again, &m) == 0);
    HK_ASSERT(bytes_equal(bytes_of(sum, n), bytes_of(again, m)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4096)
        return 0;

    const uint8_t *end = size == 0 ? NULL : memchr(data, '\n', size);
    uint32_t n = end == NULL ? (uint32_t)size : (uint32_t)(end - data);
    struct bytes a = bytes_of(data, n);
    struct bytes b = bytes_of(data + n, (uint32_t)size - n);

    if (b.n > 0)
        b = bytes_of(b.at + 1, b.n - 1);
    check_integer(a);
    check_integer(b);
    check_sum(a, b);
    if (incrbyfloat_comparable() && only_decimal(a) && only_decimal(b))
        incrbyfloat_compare(a, b);
    return 0;
}
