/* Every number has its source in docs/GALENE_MODEL.md. */
#include "sim/galene_model.h"

#include <math.h>

#include "base/assert.h"
#include "base/hash.h"
#include "load/zipf.h"

/* ---- The equations ---- */

static double remote(const struct galene_model *m)
{
    HK_ASSERT(m->nodes > 0);
    return 1.0 - 1.0 / m->nodes;
}

static double limited_by(const struct galene_model *m, double traffic)
{
    return traffic > 0.0 ? m->nodes * m->bytes_per_s / traffic : INFINITY;
}

double galene_miss_traffic(const struct galene_model *m)
{
    return (1.0 - m->hit_rate) * remote(m) * m->request_reply_bytes;
}

double galene_write_traffic(const struct galene_model *m)
{
    return m->hit_rate * m->write_ratio * (m->nodes - 1.0) * m->write_bytes;
}

double galene_throughput(const struct galene_model *m)
{
    return limited_by(m, galene_miss_traffic(m) + galene_write_traffic(m));
}

double galene_uniform_traffic(const struct galene_model *m)
{
    return remote(m) * m->request_reply_bytes;
}

double galene_uniform_throughput(const struct galene_model *m)
{
    return limited_by(m, galene_uniform_traffic(m));
}

double galene_break_even(const struct galene_model *m)
{
    HK_ASSERT(m->nodes > 0 && m->write_bytes > 0.0);
    return m->request_reply_bytes / (m->nodes * m->write_bytes);
}

double galene_writes_at(const struct galene_model *m, double throughput)
{
    HK_ASSERT(throughput > 0.0);
    double each = m->hit_rate * (m->nodes - 1.0) * m->write_bytes;
    double room = m->nodes * m->bytes_per_s / throughput - galene_miss_traffic(m);
    return each > 0.0 ? room / each : INFINITY;
}

/* ---- Sizes ---- */

double galene_request_reply_bytes(const struct galene_sizes *s)
{
    return 2.0 * s->header + s->key + s->value;
}

static double invalidation(const struct galene_sizes *s)
{
    return s->header + s->key + s->timestamp;
}

static double update(const struct galene_sizes *s)
{
    return invalidation(s) + s->value;
}

double galene_write_bytes(const struct galene_sizes *s)
{
    return 2.0 * invalidation(s) + update(s); /* an ACK is as long as an INV */
}

/* ---- Two limits ---- */

/* The hottest server is asked for `hottest` of what the others miss, and asks for what the others
 * hold of its own misses. */
static struct galene_passes passes(const struct galene_load *l, const struct galene_sizes *s,
                                   bool out)
{
    HK_ASSERT(l->nodes > 0 && l->coalesced >= 1.0);
    double n = l->nodes;
    double miss = 1.0 - l->hit_rate;
    double asked = miss * (1.0 - 1.0 / n) * l->hottest;
    double asks = miss * (1.0 - l->hottest) / n;
    double request = s->key + l->write_ratio * s->value;
    double reply = (1.0 - l->write_ratio) * s->value;
    double writes = l->hit_rate * l->write_ratio * (n - 1.0) / n;
    return (struct galene_passes){
        .packets = (asked + asks) / l->coalesced + 3.0 * writes,
        .miss_headers = (asked + asks) / l->coalesced * s->header,
        .miss_payload = out ? asked * reply + asks * request : asked * request + asks * reply,
        .inv = writes * invalidation(s),
        .ack = writes * invalidation(s),
        .upd = writes * update(s),
    };
}

struct galene_passes galene_out(const struct galene_load *l, const struct galene_sizes *s)
{
    return passes(l, s, true);
}

struct galene_passes galene_in(const struct galene_load *l, const struct galene_sizes *s)
{
    return passes(l, s, false);
}

double galene_bytes(const struct galene_passes *p)
{
    return p->miss_headers + p->miss_payload + p->inv + p->ack + p->upd;
}

double galene_limited(const struct galene_load *l, const struct galene_sizes *s,
                      const struct galene_network *n, bool *by_packets_out)
{
    struct galene_passes out = galene_out(l, s);
    struct galene_passes in = galene_in(l, s);
    double bytes = fmax(galene_bytes(&out), galene_bytes(&in)) / n->bytes_per_s;
    double packets = out.packets / n->packets_per_s;
    double seconds = fmax(bytes, packets);
    if (by_packets_out != NULL) {
        *by_packets_out = packets > bytes;
    }
    return seconds > 0.0 ? 1.0 / seconds : INFINITY;
}

/* ---- Where keys lie ---- */

void galene_shares(uint64_t keys, uint64_t placed, double exponent, uint64_t seed, uint32_t parts,
                   double *shares_out)
{
    HK_ASSERT(parts > 0 && placed > 0 && placed <= keys);
    struct hash_secret secret;
    double all = zipf_harmonic(keys, exponent);
    double rest = (all - zipf_harmonic(placed, exponent)) / all;
    hash_secret_init(&secret, seed);
    for (uint32_t i = 0; i < parts; i++) {
        shares_out[i] = 0.0;
    }
    for (uint64_t rank = placed; rank > 0; rank--) { /* the small ones first */
        uint8_t key[8];
        put_u64(key, rank);
        shares_out[hash_bytes(&secret, bytes_of(key, sizeof key)) % parts] +=
            exp(-exponent * log((double)rank));
    }
    for (uint32_t i = 0; i < parts; i++) {
        shares_out[i] = shares_out[i] / all + (placed < keys ? rest / parts : 0.0);
    }
}

double galene_most(const double *shares, uint32_t n)
{
    double most = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        most = fmax(most, shares[i]);
    }
    return most;
}

/* ---- The cluster of thesis 3.7 ---- */

const struct galene_sizes galene_paper_sizes = {
    .header = 34, .key = 8, .value = 40, .timestamp = 5};

double galene_paper_hit_rate(double exponent)
{
    static const double stated[][2] = {{0.90, 0.46}, {0.99, 0.65}, {1.01, 0.69}};
    for (uint32_t i = 0; i < sizeof stated / sizeof stated[0]; i++) {
        if (fabs(stated[i][0] - exponent) < 1e-9) {
            return stated[i][1];
        }
    }
    return zipf_hit_rate(GALENE_PAPER_CACHED, GALENE_PAPER_KEYS, exponent);
}

uint64_t galene_paper_cached(double exponent)
{
    double wanted = galene_paper_hit_rate(exponent);
    uint64_t low = 0, high = GALENE_PAPER_KEYS; /* below `high` it is too few */
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (zipf_hit_rate(middle, GALENE_PAPER_KEYS, exponent) < wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct galene_network galene_paper_network(void)
{
    double packet = galene_request_reply_bytes(&galene_paper_sizes) / 2.0;
    return (struct galene_network){
        .bytes_per_s = GALENE_PAPER_BYTES_PER_S,
        .packets_per_s = GALENE_PAPER_SMALL_BYTES_PER_S / packet,
    };
}
