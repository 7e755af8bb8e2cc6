#include "load/zipf.h"

#include <math.h>

#include "base/assert.h"

/* (exp(x) - 1) / x and log(1 + x) / x, also where x is next to nothing: then the exponent 1 needs
 * no case of its own. */
static double exp_part(double x)
{
    return fabs(x) > 1e-8 ? expm1(x) / x : 1.0 + x / 2.0 * (1.0 + x / 3.0);
}

static double log_part(double x)
{
    return fabs(x) > 1e-8 ? log1p(x) / x : 1.0 - x * (0.5 - x / 3.0);
}

/* The hat, its integral from 1, and the inverse of that. */
static double hat(const struct zipf *z, double x)
{
    return exp(-z->exponent * log(x));
}

static double integral(const struct zipf *z, double x)
{
    double log_x = log(x);
    return exp_part((1.0 - z->exponent) * log_x) * log_x;
}

static double inverse(const struct zipf *z, double y)
{
    double t = y * (1.0 - z->exponent);
    /* Rounding may carry it past the end of what there is. */
    t = t < -1.0 ? -1.0 : t;
    return exp(log_part(t) * y);
}

void zipf_init(struct zipf *z, uint64_t n, double exponent)
{
    HK_ASSERT(n > 0 && exponent > 0.0);
    z->n = n;
    z->exponent = exponent;
    z->first = integral(z, 1.5) - 1.0;
    z->last = integral(z, (double)n + 0.5);
    z->accept = 2.0 - inverse(z, integral(z, 2.5) - hat(z, 2.0));
}

uint64_t zipf_draw(const struct zipf *z, struct random *random)
{
    for (;;) {
        /* 53 random bits: in [0, 1). */
        double u = (double)(random_next(random) >> 11) * 0x1p-53;
        double y = z->last + u * (z->first - z->last);
        double x = inverse(z, y);
        double k = floor(x + 0.5);
        k = k < 1.0 ? 1.0 : k > (double)z->n ? (double)z->n : k;
        if (k - x <= z->accept || y >= integral(z, k + 0.5) - hat(z, k)) {
            return (uint64_t)k;
        }
    }
}

double zipf_probability(const struct zipf *z, uint64_t rank, double sum)
{
    HK_ASSERT(rank > 0 && rank <= z->n);
    return hat(z, (double)rank) / sum;
}

double zipf_sum(const struct zipf *z)
{
    double sum = 0.0;
    /* The small ones first: their sum is not lost in that of the large ones. */
    for (uint64_t k = z->n; k > 0; k--) {
        sum += hat(z, (double)k);
    }
    return sum;
}

/* Beyond so many terms the first correction that is left out is below 1e-20. */
#define TERMS 1024u

/* The first and the third derivative of x^-a. */
static double slope(double a, double x)
{
    return -a * pow(x, -a - 1.0);
}

static double third(double a, double x)
{
    return -a * (a + 1.0) * (a + 2.0) * pow(x, -a - 3.0);
}

double zipf_harmonic(uint64_t n, double exponent)
{
    HK_ASSERT(exponent > 0.0);
    struct zipf z = {.exponent = exponent};
    uint64_t from = n < TERMS ? n : TERMS;
    double sum = 0.0;
    for (uint64_t k = from; k > 0; k--) {
        sum += hat(&z, (double)k);
    }
    if (n > from) {
        double low = (double)from, high = (double)n;
        sum += integral(&z, high) - integral(&z, low);
        sum += (hat(&z, high) - hat(&z, low)) / 2.0;
        sum += (slope(exponent, high) - slope(exponent, low)) / 12.0;
        sum -= (third(exponent, high) - third(exponent, low)) / 720.0;
    }
    return sum;
}

double zipf_hit_rate(uint64_t cached, uint64_t n, double exponent)
{
    HK_ASSERT(n > 0 && cached <= n);
    return zipf_harmonic(cached, exponent) / zipf_harmonic(n, exponent);
}
