/* The analytical model of Galene (thesis 3.8.6, equations 3.1 to 3.5), and what of its figures can
 * be had by sums alone: docs/GALENE_MODEL.md derives every line. Pure functions of doubles.
 *
 * Throughputs are requests a second of the whole cluster; bandwidths are those of one server in one
 * direction. A system without traffic (one server, or all hits and no writes) has no limit here:
 * its throughput is INFINITY. */
#ifndef HORKOS_SIM_GALENE_MODEL_H
#define HORKOS_SIM_GALENE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* ---- The equations ---- */

struct galene_model {
    uint32_t nodes;             /* N, at least 1 */
    double hit_rate;            /* h, 0 .. 1 */
    double write_ratio;         /* w, 0 .. 1 */
    double request_reply_bytes; /* B_RR: a request and its reply */
    double write_bytes;         /* B_G: an INV, an ACK and an UPD */
    double bytes_per_s;         /* BW */
};

/* TR_M, equation 3.1: bytes of misses a request. */
double galene_miss_traffic(const struct galene_model *m);
/* TR_C, equation 3.2: bytes of consistency actions a request. */
double galene_write_traffic(const struct galene_model *m);
/* T_ccKVS, equation 3.3. */
double galene_throughput(const struct galene_model *m);
/* TR_U, equation 3.4: bytes a request in Uniform, which has no cache. */
double galene_uniform_traffic(const struct galene_model *m);
/* T_U, equation 3.5. */
double galene_uniform_throughput(const struct galene_model *m);
/* The write ratio at which ccKVS is as fast as Uniform, and slower beyond: B_RR / (N B_G), whatever
 * the hit rate is. It may be above 1: then ccKVS is never slower. */
double galene_break_even(const struct galene_model *m);
/* The write ratio at which ccKVS makes `throughput` requests a second; below 0: it never does;
 * INFINITY: writes cost nothing (one server, or no hits). */
double galene_writes_at(const struct galene_model *m, double throughput);

/* ---- Sizes ---- */

struct galene_sizes {
    double header; /* of a packet */
    double key, value, timestamp;
};
double galene_request_reply_bytes(const struct galene_sizes *s);
double galene_write_bytes(const struct galene_sizes *s);

/* ---- Two limits, coalescing, a hottest server: beyond the thesis' equations ---- */

struct galene_network { /* of one server, each direction */
    double bytes_per_s;
    double packets_per_s;
};

struct galene_load {
    uint32_t nodes;
    double hit_rate; /* 0: no cache */
    double write_ratio;
    double hottest;   /* share of the misses whose home is the hottest server; 1 / nodes: even */
    double coalesced; /* requests, or replies, that travel in one packet; at least 1 */
};

/* What the hottest server passes in one direction for one request of the whole cluster. */
struct galene_passes {
    double packets;
    double miss_headers, miss_payload; /* bytes */
    double inv, ack, upd;              /* bytes, headers included */
};
struct galene_passes galene_out(const struct galene_load *l, const struct galene_sizes *s);
struct galene_passes galene_in(const struct galene_load *l, const struct galene_sizes *s);
double galene_bytes(const struct galene_passes *p);

/* Requests a second until a limit of the hottest server is reached. by_packets_out (may be NULL):
 * it is that of packets. */
double galene_limited(const struct galene_load *l, const struct galene_sizes *s,
                      const struct galene_network *n, bool *by_packets_out);

/* ---- Where keys lie ---- */

/* Which part of the requests each of `parts` servers (or cores) gets when `keys` keys, drawn by
 * Zipf's law, lie where a hash of their rank with this seed says. The `placed` most popular are
 * placed one by one, the rest of the probability is spread evenly. 1 <= placed <= keys. */
void galene_shares(uint64_t keys, uint64_t placed, double exponent, uint64_t seed, uint32_t parts,
                   double *shares_out);
double galene_most(const double *shares, uint32_t n);

/* ---- The cluster of thesis 3.7 ---- */

extern const struct galene_sizes galene_paper_sizes; /* of 8 + 40 bytes */
#define GALENE_PAPER_NODES 9u
#define GALENE_PAPER_KEYS 250000000u
#define GALENE_PAPER_CACHED 250000u
#define GALENE_PAPER_SMALL_BYTES_PER_S (21.5e9 / 8)
#define GALENE_PAPER_BYTES_PER_S (54e9 / 8)
#define GALENE_PAPER_PACKET_BYTES 4096.0
/* Hit rates that thesis 3.7 gives for 0.90, 0.99 and 1.01; other exponents: what sums say. */
double galene_paper_hit_rate(double exponent);
/* As many of the most popular keys of all of the thesis' as take that part of the requests. */
uint64_t galene_paper_cached(double exponent);
/* Links of 54 Gb/s, and as many packets of Uniform's average size as 21.5 Gb/s hold. */
struct galene_network galene_paper_network(void);

#endif
