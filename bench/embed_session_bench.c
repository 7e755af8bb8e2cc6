/* The public API in one process: reads one by one and in batches, uniform and Zipf 0.99, and puts,
 * each waited for or many under way. Times are of this thread's processor for reads, of the clock
 * for puts.
 *
 * Usage: embed_session_bench [--nodes N] [--keys N] [--spin US] */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/histogram.h"
#include "base/random.h"
#include "horkos.h"

#define NODES_MOST 7u
#define SAMPLES (1u << 20)
#define VALUE_BYTES 32u
#define PUTS 20000u
#define BATCH_MOST 64u

struct rig {
    uint32_t nodes_n;
    uint32_t keys;
    uint32_t spin_us;
    char folder[64];
    char addresses[NODES_MOST][32];
    struct hk_peer peers[NODES_MOST];
    struct hk_node *nodes[NODES_MOST];
    struct hk_session *session; /* at node 0 */
    uint64_t *samples;
};

static void must(int err, const char *what)
{
    if (err != HK_OK) {
        fprintf(stderr, "%s: %s\n", what, hk_err_text(err));
        exit(1);
    }
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)(void *)&a, n) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)&a, &n) != 0) {
        perror("no port");
        exit(1);
    }
    (void)close(fd);
    return ntohs(a.sin_port);
}

static void open_nodes(struct rig *r)
{
    static const uint8_t key[HK_KEY_BYTES] = {1};
    char error[512] = "";
    (void)snprintf(r->folder, sizeof r->folder, "/tmp/horkos-bench-XXXXXX");
    if (mkdtemp(r->folder) == NULL) {
        perror("no folder");
        exit(1);
    }
    for (uint32_t i = 0; i < r->nodes_n; i++) {
        (void)snprintf(r->addresses[i], sizeof r->addresses[i], "127.0.0.1:%d", free_port());
        r->peers[i] = (struct hk_peer){.id = i, .address = r->addresses[i]};
    }
    for (uint32_t i = 0; i < r->nodes_n; i++) {
        struct hk_config config = {.id = i,
                                   .peers = r->peers,
                                   .peers_n = r->nodes_n > 1 ? r->nodes_n : 0,
                                   .key = key,
                                   .dir = r->folder,
                                   .keys_expected = r->keys,
                                   .spin_us = r->spin_us,
                                   .error = error,
                                   .error_bytes = sizeof error};
        if (hk_open(&config, &r->nodes[i]) != HK_OK) {
            fprintf(stderr, "node %u: %s\n", i, error);
            exit(1);
        }
    }
    for (uint32_t i = 0; i < r->nodes_n; i++) {
        must(hk_wait_serving(r->nodes[i], 60000), "serve");
    }
    must(hk_session_open(r->nodes[0], NULL, &r->session), "session");
}

static void close_nodes(struct rig *r)
{
    char path[128];
    hk_session_close(r->session);
    for (uint32_t i = 0; i < r->nodes_n; i++) {
        hk_close_now(r->nodes[i]);
        (void)snprintf(path, sizeof path, "%s/horkos-%u.state", r->folder, i);
        (void)unlink(path);
        (void)snprintf(path, sizeof path, "%s/horkos-%u.state.lock", r->folder, i);
        (void)unlink(path);
    }
    (void)rmdir(r->folder);
}

static void finish(struct rig *r)
{
    while (hk_session_in_flight(r->session) > 0) {
        (void)hk_session_wait(r->session, 10000);
        (void)hk_session_poll(r->session, UINT32_MAX);
    }
}

static void put_many(struct rig *r, uint64_t n, const char *what)
{
    static const char value[VALUE_BYTES] = "a value of thirty-two bytes";
    uint64_t began = now_ns(CLOCK_MONOTONIC);
    uint64_t cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t key = i;
        int err;
        while ((err = hk_put_async(r->session, hk_bytes(&key, sizeof key),
                                   hk_bytes(value, sizeof value), NULL, NULL, NULL)) ==
               HK_ERR_FULL) {
            (void)hk_session_wait(r->session, 10000);
            (void)hk_session_poll(r->session, UINT32_MAX);
        }
        must(err, "put");
    }
    finish(r);
    printf("%-34s %8.0f ns each, %8.0f ns of all processors\n", what,
           (double)(now_ns(CLOCK_MONOTONIC) - began) / (double)n,
           (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (double)n);
}

static void put_one_by_one(struct rig *r)
{
    static const char value[VALUE_BYTES] = "another value";
    struct histogram *latency = malloc(sizeof *latency);
    if (latency == NULL) {
        exit(1);
    }
    histogram_init(latency);
    for (uint64_t i = 0; i < PUTS; i++) {
        uint64_t began = now_ns(CLOCK_MONOTONIC);
        must(hk_put(r->session, hk_bytes(&i, sizeof i), hk_bytes(value, sizeof value), NULL),
             "put");
        histogram_record(latency, now_ns(CLOCK_MONOTONIC) - began);
    }
    printf("%-34s %8.1f us p50, %8.1f us p99\n", "put, waited for",
           (double)histogram_percentile(latency, 500000) / 1000,
           (double)histogram_percentile(latency, 990000) / 1000);
    free(latency);
}

/* Keys in an order that is drawn ahead: what is measured is the reads. */
static void draw(struct rig *r, double alpha)
{
    struct random random;
    double *sums = malloc(r->keys * sizeof *sums);
    double sum = 0;
    if (sums == NULL) {
        exit(1);
    }
    random_init(&random, 7);
    for (uint32_t i = 0; i < r->keys; i++) {
        sum += pow(i + 1, -alpha);
        sums[i] = sum;
    }
    for (uint32_t i = 0; i < SAMPLES; i++) {
        double at = (double)(random_next(&random) >> 11) / 9007199254740992.0 * sum;
        uint32_t low = 0;
        uint32_t high = r->keys - 1;
        while (low < high) {
            uint32_t middle = (low + high) / 2;
            if (sums[middle] < at) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        /* Popular keys are not neighbours. */
        r->samples[i] = low * UINT64_C(2654435761) % r->keys;
    }
    free(sums);
}

static void read_samples(struct rig *r, uint32_t batch, const char *what)
{
    static char values[BATCH_MOST][VALUE_BYTES];
    struct hk_read reads[BATCH_MOST];
    uint64_t found = 0;
    uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (uint32_t i = 0; i + batch <= SAMPLES; i += batch) {
        if (batch == 1) {
            found += hk_get(r->session, hk_bytes(&r->samples[i], 8), values[0], VALUE_BYTES,
                            NULL) == HK_OK;
            continue;
        }
        for (uint32_t k = 0; k < batch; k++) {
            reads[k].key = hk_bytes(&r->samples[i + k], 8);
            reads[k].value = values[k];
            reads[k].capacity = VALUE_BYTES;
        }
        found += hk_get_batch(r->session, reads, batch) == HK_OK ? batch : 0;
    }
    uint64_t ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    printf("%-8s %2u at a time %14s %8.1f ns each, %6.2f M/s%s\n", what, batch, "",
           (double)ns / (double)SAMPLES, (double)SAMPLES / (double)ns * 1000,
           found >= SAMPLES - batch ? "" : "  (not all found)");
}

static void read_all(struct rig *r)
{
    static const struct {
        const char *name;
        double alpha;
    } kinds[] = {{"uniform", 0}, {"zipf", 0.99}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        draw(r, kinds[i].alpha);
        for (uint32_t batch = 1; batch <= BATCH_MOST; batch *= 4) {
            read_samples(r, batch, kinds[i].name);
        }
    }
}

int main(int argc, char **argv)
{
    static struct rig r = {.nodes_n = 1, .keys = 1000000};
    for (int i = 1; i + 1 < argc; i += 2) {
        uint32_t n = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--nodes") == 0 && n >= 1 && n <= NODES_MOST) {
            r.nodes_n = n;
        } else if (strcmp(argv[i], "--keys") == 0 && n >= 100000) {
            r.keys = n;
        } else if (strcmp(argv[i], "--spin") == 0) {
            r.spin_us = n;
        } else {
            fprintf(stderr, "embed_session_bench: --nodes 1 to 7, --keys 100000 and more, --spin "
                            "US\n");
            return 2;
        }
    }
    r.samples = malloc(SAMPLES * sizeof *r.samples);
    if (r.samples == NULL) {
        return 1;
    }
    open_nodes(&r);
    put_many(&r, r.keys, "put, 64 under way, new keys");
    put_many(&r, r.keys / 4, "put, 64 under way");
    put_one_by_one(&r);
    read_all(&r);
    close_nodes(&r);
    free(r.samples);
    return 0;
}
