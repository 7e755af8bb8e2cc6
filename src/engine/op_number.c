#include "engine/op_number.h"

#include <stddef.h>

#include "base/assert.h"
#include "base/err.h"

bool op_integer_parse(struct bytes text, int64_t *number_out)
{
    uint32_t i = 0;
    bool negative = text.n > 0 && text.at[0] == '-';

    if (negative)
        i = 1;
    if (i == text.n || text.n > OP_INTEGER_TEXT_MAX)
        return false;
    if (text.at[i] == '0' && text.n > 1)
        return false; /* a leading zero, or "-0" */

    /* The magnitude of INT64_MIN is one more than INT64_MAX. */
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    uint64_t magnitude = 0;

    for (; i < text.n; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(text.at[i] - '0');
        if (magnitude > (limit - digit) / 10)
            return false;
        magnitude = magnitude * 10 + digit;
    }
    if (negative)
        *number_out = -(int64_t)(magnitude - 1) - 1;
    else
        *number_out = (int64_t)magnitude;
    return true;
}

uint32_t op_integer_format(int64_t number, uint8_t *out)
{
    uint8_t digits[OP_INTEGER_TEXT_MAX];
    uint64_t magnitude = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    uint32_t n = 0;
    uint32_t written = 0;

    do {
        digits[n++] = (uint8_t)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude > 0);
    if (number < 0)
        out[written++] = '-';
    while (n > 0)
        out[written++] = digits[--n];
    return written;
}

/* Decimal fractions. A number is a sign and a magnitude in units of 2^-SCALE_BITS, kept in so many
 * limbs that no step below can overflow. Rounding to 64 significant bits, half to even, after
 * reading and after adding makes it the long double of x86-64; what that type can hold beside
 * (numbers below 2^-SCALE_BITS or from 1e309 on) cannot change 17 digits behind the point, or is
 * refused.
 *
 * The largest magnitude comes up while reading: OP_DECIMAL_TEXT_MAX digits (1,701 bits) shifted by
 * SCALE_BITS. While writing it is 2e309 (1,028 bits), scaled, times 10^17 (57 bits). */
#define LIMBS 64u
#define SCALE_LIMBS 7u
#define SCALE_BITS (SCALE_LIMBS * 32u)
#define MANTISSA_BITS 64u
_Static_assert(1701 + SCALE_BITS <= LIMBS * 32, "reading");
_Static_assert(1028 + SCALE_BITS + 57 <= LIMBS * 32, "writing");

/* Numbers below 10^-TINY_DIGITS count as zero: alone they are printed as zeros, and as summands
 * they are lost in the rounding unless the sum is printed as zero too. The rest have at least 88
 * bits above the unit, so that rounding to 64 bits sees what was cut off as a sticky last bit. */
#define TINY_DIGITS 40
_Static_assert(SCALE_BITS - 137 >= MANTISSA_BITS + 2, "10^-41 > 2^-137");

/* From about 1.8e-4951 down a long double is zero, and Redis refuses the text as out of range. */
#define UNDERFLOW_DIGITS 4949

#define FRACTION_DIGITS 17u

/* Powers of ten are applied in steps that fit a limb. */
#define STEP_DIGITS 9u
#define STEP 1000000000u

struct decimal {
    bool negative;
    uint32_t used;        /* limbs up to the highest that is not zero; 0: the number is zero */
    uint32_t limb[LIMBS]; /* the magnitude, lowest first; zero from used on */
};

static void trim(struct decimal *d)
{
    while (d->used > 0 && d->limb[d->used - 1] == 0)
        d->used--;
}

static void append(struct decimal *d, uint32_t limb)
{
    if (limb == 0)
        return;
    HK_ASSERT(d->used < LIMBS);
    d->limb[d->used++] = limb;
}

static void multiply_add(struct decimal *d, uint32_t factor, uint32_t summand)
{
    uint64_t sum = summand;

    for (uint32_t i = 0; i < d->used; i++) {
        sum += (uint64_t)d->limb[i] * factor;
        d->limb[i] = (uint32_t)sum;
        sum >>= 32;
    }
    append(d, (uint32_t)sum);
}

/* Returns the remainder. */
static uint32_t divide(struct decimal *d, uint32_t divisor)
{
    uint64_t rest = 0;

    for (uint32_t i = d->used; i-- > 0;) {
        rest = rest << 32 | d->limb[i];
        d->limb[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
    trim(d);
    return (uint32_t)rest;
}

/* Times 2^SCALE_BITS, and divided by it. */
static void scale_up(struct decimal *d)
{
    if (d->used == 0)
        return;
    HK_ASSERT(d->used + SCALE_LIMBS <= LIMBS);
    memmove(d->limb + SCALE_LIMBS, d->limb, d->used * sizeof(uint32_t));
    memset(d->limb, 0, SCALE_LIMBS * sizeof(uint32_t));
    d->used += SCALE_LIMBS;
}

static void scale_down(struct decimal *d)
{
    uint32_t left = d->used > SCALE_LIMBS ? d->used - SCALE_LIMBS : 0;

    memmove(d->limb, d->limb + SCALE_LIMBS, left * sizeof(uint32_t));
    memset(d->limb + left, 0, (d->used - left) * sizeof(uint32_t));
    d->used = left;
}

static bool has_bit(const struct decimal *d, uint32_t bit)
{
    return (d->limb[bit / 32] >> bit % 32 & 1) != 0;
}

/* Adds 2^bit, where no bit below it is set. */
static void increment(struct decimal *d, uint32_t bit)
{
    uint64_t carry = (uint64_t)1 << bit % 32;
    uint32_t i = bit / 32;

    for (; carry != 0 && i < LIMBS; i++) {
        carry += d->limb[i];
        d->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    HK_ASSERT(carry == 0);
    if (i > d->used)
        d->used = i;
}

/* Rounds to a multiple of 2^bits, half to even; bits > 0. */
static void round_at(struct decimal *d, uint32_t bits)
{
    bool half = has_bit(d, bits - 1);
    uint32_t below = d->limb[(bits - 1) / 32] & (((uint32_t)1 << (bits - 1) % 32) - 1);

    for (uint32_t i = 0; i < (bits - 1) / 32; i++)
        below |= d->limb[i];
    memset(d->limb, 0, bits / 32 * sizeof(uint32_t));
    d->limb[bits / 32] &= ~(((uint32_t)1 << bits % 32) - 1);
    if (half && (below != 0 || has_bit(d, bits)))
        increment(d, bits);
    trim(d);
}

static void round_to_mantissa(struct decimal *d)
{
    uint32_t bits = d->used * 32;

    if (d->used > 0)
        bits -= (uint32_t)__builtin_clz(d->limb[d->used - 1]);
    if (bits > MANTISSA_BITS)
        round_at(d, bits - MANTISSA_BITS);
}

static bool less(const struct decimal *a, const struct decimal *b)
{
    if (a->used != b->used)
        return a->used < b->used;
    for (uint32_t i = a->used; i-- > 0;) {
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i];
    }
    return false;
}

static void decimal_add(struct decimal *sum, const struct decimal *d)
{
    uint32_t used = sum->used > d->used ? sum->used : d->used;
    uint64_t carry = 0;

    if (sum->negative == d->negative) {
        for (uint32_t i = 0; i < used; i++) {
            carry += (uint64_t)sum->limb[i] + d->limb[i];
            sum->limb[i] = (uint32_t)carry;
            carry >>= 32;
        }
        sum->used = used;
        append(sum, (uint32_t)carry);
        return;
    }

    bool swap = less(sum, d);
    const struct decimal *from = swap ? d : sum;
    const struct decimal *take = swap ? sum : d;

    for (uint32_t i = 0; i < used; i++) {
        uint64_t rest = (uint64_t)from->limb[i] - take->limb[i] - carry;
        sum->limb[i] = (uint32_t)rest;
        carry = rest >> 63;
    }
    sum->used = used;
    trim(sum);
    if (swap)
        sum->negative = d->negative;
}

/* Where a text's parts are. The number is the digits, read as one integer, times 10^exponent. */
struct decimal_text {
    bool negative;
    struct bytes digits; /* may hold the point, which counts for nothing any more */
    uint32_t count;      /* digits from the first that is not zero on; 0: the number is zero */
    int32_t exponent;
};

/* The exponent behind the 'e' at text.at[i]. It is bounded where its size can no longer matter, so
 * that any number of digits can follow. */
static bool exponent_parse(struct bytes text, uint32_t i, int32_t *exponent_out)
{
    bool negative = false;
    int32_t exponent = 0;

    if (i < text.n && (text.at[i] == '+' || text.at[i] == '-'))
        negative = text.at[i++] == '-';
    if (i == text.n)
        return false;
    for (; i < text.n; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        if (exponent < 100000)
            exponent = exponent * 10 + (text.at[i] - '0');
    }
    *exponent_out = negative ? -exponent : exponent;
    return true;
}

static bool decimal_split(struct bytes text, struct decimal_text *t_out)
{
    struct decimal_text t = {0};
    uint32_t i = 0;
    bool any = false;
    bool point = false;
    int32_t behind = 0;

    if (text.n == 0 || text.n > OP_DECIMAL_TEXT_MAX)
        return false;
    if (text.at[0] == '+' || text.at[0] == '-')
        t.negative = text.at[i++] == '-';

    uint32_t first = i;

    for (; i < text.n; i++) {
        uint8_t c = text.at[i];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9')
            break;
        any = true;
        behind += point ? 1 : 0;
        if (c != '0' || t.count > 0)
            t.count++;
    }
    t.digits = (struct bytes){text.at + first, i - first};
    if (!any)
        return false;
    if (i < text.n) {
        if ((text.at[i] != 'e' && text.at[i] != 'E') || !exponent_parse(text, i + 1, &t.exponent))
            return false;
    }
    t.exponent -= behind;
    *t_out = t;
    return true;
}

/* Multiplies by 10^exponent and rounds what cannot be kept into a sticky lowest bit: dividing step
 * by step leaves the same quotient as dividing at once, and a remainder in any step is one of the
 * whole. */
static void shift_point(struct decimal *d, int32_t exponent)
{
    uint32_t rest = 0;

    for (; exponent >= (int32_t)STEP_DIGITS; exponent -= (int32_t)STEP_DIGITS)
        multiply_add(d, STEP, 0);
    for (; exponent > 0; exponent--)
        multiply_add(d, 10, 0);
    for (; exponent <= -(int32_t)STEP_DIGITS; exponent += (int32_t)STEP_DIGITS)
        rest |= divide(d, STEP);
    for (; exponent < 0; exponent++)
        rest |= divide(d, 10);
    d->limb[0] |= rest != 0 ? 1 : 0;
}

/* Reads the long double that is nearest to the text. */
static bool decimal_parse(struct bytes text, struct decimal *d_out)
{
    struct decimal_text t;

    if (!decimal_split(text, &t))
        return false;
    *d_out = (struct decimal){.negative = t.negative};
    if (t.count == 0)
        return true;

    /* 10^(magnitude - 1) <= number < 10^magnitude */
    int32_t magnitude = (int32_t)t.count + t.exponent;

    if (magnitude > (int32_t)OP_DECIMAL_DIGITS_MAX || magnitude < -UNDERFLOW_DIGITS)
        return false;
    if (magnitude < -TINY_DIGITS)
        return true;

    for (uint32_t i = 0; i < t.digits.n; i++) {
        if (t.digits.at[i] != '.')
            multiply_add(d_out, 10, (uint32_t)(t.digits.at[i] - '0'));
    }
    scale_up(d_out);
    shift_point(d_out, t.exponent);
    round_to_mantissa(d_out);
    return true;
}

/* Writes "%.17Lf" without zeros at its end. Takes d apart. */
static int decimal_format(struct decimal *d, uint8_t *out, uint32_t *written_out)
{
    uint8_t digits[OP_DECIMAL_SUM_MAX + STEP_DIGITS]; /* lowest first */
    uint32_t n = 0;
    uint32_t written = 0;
    uint32_t skip = 0;

    multiply_add(d, STEP, 0);
    multiply_add(d, STEP / 10, 0); /* together 10^FRACTION_DIGITS */
    round_at(d, SCALE_BITS);
    scale_down(d);

    while (d->used > 0) {
        uint32_t step = divide(d, STEP);
        HK_ASSERT(n + STEP_DIGITS <= sizeof digits);
        for (uint32_t i = 0; i < STEP_DIGITS; i++, step /= 10)
            digits[n++] = (uint8_t)('0' + step % 10);
    }
    while (n > 0 && digits[n - 1] == '0')
        n--;
    if (n > OP_DECIMAL_DIGITS_MAX + FRACTION_DIGITS)
        return HK_ERR_OVERFLOW;
    if (d->negative && n > 0)
        out[written++] = '-'; /* what was rounded to zero has no sign: Redis mends "-0" as well */
    while (n <= FRACTION_DIGITS)
        digits[n++] = '0';
    while (skip < FRACTION_DIGITS && digits[skip] == '0')
        skip++;
    for (uint32_t i = n; i-- > skip;) {
        if (i + 1 == FRACTION_DIGITS)
            out[written++] = '.';
        out[written++] = digits[i];
    }
    *written_out = written;
    return HK_OK;
}

int op_decimal_add(struct bytes a, struct bytes b, uint8_t *out, uint32_t *written_out)
{
    struct decimal sum;
    struct decimal summand;

    if (!decimal_parse(a, &sum) || !decimal_parse(b, &summand))
        return HK_ERR_TYPE;
    decimal_add(&sum, &summand);
    round_to_mantissa(&sum);
    return decimal_format(&sum, out, written_out);
}
