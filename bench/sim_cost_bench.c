/* What this program's steps cost on this machine: the numbers of cost_measured in
 * src/sim/cost_machine.c. Real nodes in one thread, links in memory, polled in turn,
 * under many mixes of reads and writes, windows, numbers of nodes and
 * sizes of values. The CPU time of each run is then explained, by least squares without negative
 * terms, as a sum over what was counted: polls, frames, bytes, messages, reads, updates, steps. A
 * message's cost is measured by itself, because every step but the first comes with one.
 *
 * All of it twice: with few keys, which caches hold, and with a million, which they do not. The
 * difference, for reads and for steps, is what a miss costs.
 *
 *   sim_cost_bench [--engine hermes] [--keys 1000000] [--ops 200000] [--rounds 3]
 *
 * With --transactions the workloads of load/work.h run instead, with Zeus and with the statically
 * sharded baseline, on one node and on three, at several remote shares. What a poll, a frame and a
 * byte cost is taken from cost_measured then; the rest is explained by transactions, operations,
 * look-ups and messages, of both designs together. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/random.h"
#include "load/keys.h"
#include "load/work.h"
#include "node/engines.h"
#include "node/node.h"
#include "sim/cost_machine.h"
#include "wire/msg.h"

#define INBOX_BYTES (8u * 1024u * 1024u)
#define NODES_LIMIT 7u
#define WINDOW_LIMIT 64u
#define TRACE (1u << 20)
#define VALUE_LIMIT 1024u

struct inbox { /* frames one after another, each behind its length; emptied, then filled again */
    uint8_t *bytes;
    size_t head;
    size_t tail;
};

struct side {
    struct bench *bench;
    uint32_t index;
    struct node *node;
    struct inbox in;
    struct inbox next; /* what arrives while this node polls */
    uint32_t sessions[WINDOW_LIMIT];
    uint64_t keys[WINDOW_LIMIT];
    uint32_t idle[WINDOW_LIMIT];
    uint32_t idle_n;
    uint32_t offered;
    uint32_t at;           /* in the trace */
    struct work_txn *txns; /* where transactions run: one a session, ... */
    struct txn_request requests[WINDOW_LIMIT];
    uint64_t fill_next;
    uint64_t began, ops; /* ... how many of them have begun, with how many operations */
};

enum term {
    TERM_POLL,
    TERM_FRAME,
    TERM_BYTE,
    TERM_MESSAGE,
    TERM_READ,
    TERM_UPDATE,
    TERM_STEP,
    TERM_TXN,
    TERM_TXN_OP,
    TERM_LOOK,
    TERMS
};
static const char *const term_names[TERMS] = {"poll",   "frame", "byte", "message", "read",
                                              "update", "step",  "txn",  "txn_op",  "look"};

struct sample {
    double counts[TERMS];
    double ns;
};

struct bench {
    uint32_t nodes;
    uint32_t window;
    uint64_t keys;
    uint64_t issued;
    uint64_t wanted;
    uint64_t done;
    uint64_t failed;
    uint64_t polls;
    uint64_t now_us;
    uint32_t value_bytes;
    struct random random;
    uint32_t *trace;  /* keys, drawn beforehand */
    uint8_t *updates; /* whether the operation is one */
    uint8_t value[VALUE_LIMIT];
    struct work *work; /* NULL: single operations */
    bool filling;
    uint8_t degree;
    const struct engine_ops *engine;
    union engines_config engine_config;
    struct side sides[NODES_LIMIT];
};

static bool env_receive(void *context, uint32_t worker, struct bytes *frame_out)
{
    struct side *s = context;
    uint32_t n;
    (void)worker;
    if (s->in.head == s->in.tail) {
        s->in.head = s->in.tail = 0;
        struct inbox full = s->next;
        s->next = s->in;
        s->in = full;
        if (s->in.tail == 0) {
            return false;
        }
    }
    memcpy(&n, s->in.bytes + s->in.head, sizeof n);
    *frame_out = bytes_of(s->in.bytes + s->in.head + 8, n);
    s->in.head += 8 + ((n + 7u) & ~7u);
    return true;
}

static void env_send(void *context, uint32_t worker, uint8_t to, struct bytes frame)
{
    struct inbox *box = &((struct side *)context)->bench->sides[to].next;
    (void)worker;
    HK_ASSERT(box->tail + frame.n + 16 <= INBOX_BYTES);
    memcpy(box->bytes + box->tail, &frame.n, sizeof frame.n);
    memcpy(box->bytes + box->tail + 8, frame.at, frame.n);
    box->tail += 8 + ((frame.n + 7u) & ~7u);
}

/* False: all is filled in. */
static bool request_txn(struct side *s, uint32_t i, struct request *out)
{
    struct bench *b = s->bench;
    struct work_txn *t = &s->txns[i];
    bool any = !b->filling;
    while (!any && s->fill_next < work_fill_count(b->work)) {
        any = work_fill(b->work, s->index, s->fill_next++, t);
    }
    if (!any) {
        return false;
    }
    if (!b->filling) {
        work_draw(b->work, s->index, &b->random, t);
    }
    s->requests[i] = (struct txn_request){.ops = t->ops, .ops_n = t->ops_n, .flags = t->flags};
    *out = (struct request){.session = s->sessions[i], .tag = i, .txn = &s->requests[i]};
    s->began++;
    s->ops += t->ops_n;
    return true;
}

static bool env_request(void *context, uint32_t worker, struct request *request_out)
{
    struct side *s = context;
    struct bench *b = s->bench;
    (void)worker;
    if (s->offered == 0 || b->issued >= b->wanted) {
        return false;
    }
    uint32_t i = s->idle[s->idle_n - 1];
    if (b->work != NULL && !request_txn(s, i, request_out)) {
        return false;
    }
    s->idle_n--;
    s->offered--;
    b->issued++;
    if (b->work != NULL) {
        return true;
    }
    s->at = (s->at + 1) % TRACE;
    bool update = b->updates[s->at];
    s->keys[i] = b->trace[s->at];
    *request_out = (struct request){
        .session = s->sessions[i],
        .tag = i,
        .op = {.kind = update ? OP_SET : OP_GET, .key = bytes_of(&s->keys[i], sizeof s->keys[i])},
    };
    if (update) {
        request_out->op.value = bytes_of(b->value, b->value_bytes);
    }
    return true;
}

static void env_reply(void *context, uint32_t worker, const struct reply *reply)
{
    struct side *s = context;
    (void)worker;
    s->idle[s->idle_n++] = (uint32_t)reply->tag;
    s->bench->done++;
    if (s->bench->work != NULL && !s->bench->filling) {
        work_done(s->bench->work, s->index, &s->txns[reply->tag],
                  reply->answer.kind != ANSWER_ERROR);
    }
    s->bench->failed += reply->answer.kind == ANSWER_ERROR;
}

static void env_wake(void *context, uint32_t worker)
{
    (void)context;
    (void)worker;
}

static uint64_t env_wall_ms(void *context)
{
    (void)context;
    return 1;
}

static void env_persist(void *context, uint64_t generation, uint32_t epoch)
{
    (void)context;
    (void)generation;
    (void)epoch;
}

static void start(struct bench *b, uint32_t i)
{
    struct side *s = &b->sides[i];
    struct env env = {.context = s,
                      .receive = env_receive,
                      .send = env_send,
                      .request = env_request,
                      .reply = env_reply,
                      .wake = env_wake,
                      .wall_ms = env_wall_ms,
                      .persist = env_persist};
    struct node_config config = {
        .self = (uint8_t)i,
        .workers = 1,
        .cluster = 1,
        .seed = i,
        .sweep_us = 1000000000,
        .view = {.self = (uint8_t)i,
                 .nonce = i + 1,
                 .configured = nodeset_of((uint8_t)b->nodes) - 1,
                 .lease_us = 500000,
                 .margin_us = 50000,
                 .heartbeat_us = 100000,
                 .suspect_us = 300000,
                 .cids_per_member = 4,
                 .seed = i},
    };
    config.spaces[0] = (struct space_config){
        .ops = b->engine,
        .engine = &b->engine_config,
        .store = {.keys_expected = b->keys, .seed = i, .value_bytes_max = 4096}};
    s->bench = b;
    s->index = i;
    s->txns = calloc(WINDOW_LIMIT, sizeof *s->txns);
    s->fill_next = s->began = s->ops = 0;
    s->in.bytes = malloc(INBOX_BYTES);
    s->next.bytes = malloc(INBOX_BYTES);
    HK_ASSERT(s->in.bytes != NULL && s->next.bytes != NULL && s->txns != NULL);
    int err = node_create(&config, &env, b->now_us, &s->node);
    HK_ASSERT(err == HK_OK);
    for (uint32_t k = 0; k < WINDOW_LIMIT; k++) {
        err = worker_session_open(node_worker(s->node, 0), &s->sessions[k]);
        HK_ASSERT(err == HK_OK);
    }
}

static void stop(struct bench *b)
{
    for (uint32_t i = 0; i < b->nodes; i++) {
        b->sides[i].bench->wanted = 0;
        node_destroy(b->sides[i].node);
        free(b->sides[i].in.bytes);
        free(b->sides[i].next.bytes);
        free(b->sides[i].txns);
    }
    memset(b->sides, 0, sizeof b->sides);
}

static void step(struct bench *b)
{
    for (uint32_t i = 0; i < b->nodes; i++) {
        b->sides[i].offered = b->sides[i].idle_n;
        (void)worker_poll(node_worker(b->sides[i].node, 0), b->now_us, 64);
    }
    b->polls += b->nodes;
    b->now_us += 5;
}

static bool serving(const struct bench *b)
{
    for (uint32_t i = 0; i < b->nodes; i++) {
        struct node_status s;
        node_status(b->sides[i].node, b->now_us, &s);
        if (s.status != VIEW_STATUS_SERVING) {
            return false;
        }
    }
    return true;
}

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void counts_of(const struct bench *b, double counts[TERMS])
{
    memset(counts, 0, TERMS * sizeof *counts);
    counts[TERM_POLL] = (double)b->polls;
    for (uint32_t i = 0; i < b->nodes; i++) {
        const struct node_stats *s = worker_stats(node_worker(b->sides[i].node, 0));
        counts[TERM_FRAME] += (double)(s->frames_in + s->frames_out);
        counts[TERM_BYTE] += (double)(s->bytes_in + s->bytes_out);
        counts[TERM_MESSAGE] += (double)(s->messages_in + s->messages_out);
        counts[TERM_READ] += (double)s->reads;
        counts[TERM_UPDATE] += (double)s->updates;
        counts[TERM_STEP] += (double)(s->key_steps + s->flow_steps);
        counts[TERM_TXN] += (double)b->sides[i].began;
        counts[TERM_TXN_OP] += (double)b->sides[i].ops;
        counts[TERM_LOOK] += (double)worker_looks(node_worker(b->sides[i].node, 0), 0);
    }
}

/* Lets so many operations of the first so many nodes' clients run to their end. */
static void run(struct bench *b, uint32_t sides, uint64_t ops, uint32_t window,
                struct sample *sample_out)
{
    double before[TERMS];
    for (uint32_t i = 0; i < b->nodes; i++) {
        b->sides[i].idle_n = i < sides ? window : 0;
        for (uint32_t k = 0; k < window; k++) {
            b->sides[i].idle[k] = k;
        }
    }
    b->issued = b->done = 0;
    b->wanted = ops;
    counts_of(b, before);
    double begin = cpu_ns();
    while (b->done < ops) {
        step(b);
    }
    sample_out->ns = cpu_ns() - begin;
    counts_of(b, sample_out->counts);
    for (uint32_t t = 0; t < TERMS; t++) {
        sample_out->counts[t] -= before[t];
    }
    for (uint32_t i = 0; i < 20; i++) {
        step(b); /* what is still on its way */
    }
}

static void draw(struct bench *b, uint64_t keys, uint32_t writes_ppm)
{
    for (uint32_t i = 0; i < TRACE; i++) {
        b->trace[i] = (uint32_t)random_below(&b->random, keys);
        b->updates[i] = random_chance(&b->random, writes_ppm);
    }
}

static void preload(struct bench *b)
{
    struct sample ignored;
    for (uint32_t i = 0; i < TRACE; i++) {
        b->updates[i] = true;
    }
    for (uint64_t at = 0; at < b->keys; at += TRACE) {
        b->sides[0].at = TRACE - 1;
        for (uint32_t i = 0; i < TRACE; i++) {
            b->trace[i] = (uint32_t)((at + i) % b->keys);
        }
        run(b, 1, b->keys < TRACE ? b->keys : TRACE, 16, &ignored);
    }
}

/* Minimizes the sum of squared relative errors by one coefficient after the other. */
static void explain(const struct sample *samples, uint32_t n, double cost[TERMS],
                    const bool given[TERMS])
{
    for (uint32_t round = 0; round < 20000; round++) {
        for (uint32_t t = 0; t < TERMS; t++) {
            double up = 0;
            double down = 0;
            for (uint32_t i = 0; i < n && !given[t]; i++) {
                double rest = samples[i].ns;
                for (uint32_t k = 0; k < TERMS; k++) {
                    rest -= k == t ? 0 : cost[k] * samples[i].counts[k];
                }
                double weight = 1 / (samples[i].ns * samples[i].ns);
                up += weight * rest * samples[i].counts[t];
                down += weight * samples[i].counts[t] * samples[i].counts[t];
            }
            if (!given[t]) {
                cost[t] = up > 0 && down > 0 ? up / down : 0;
            }
        }
    }
}

static double worst_error(const struct sample *samples, uint32_t n, const double cost[TERMS],
                          double *mean_out)
{
    double worst = 0;
    *mean_out = 0;
    for (uint32_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint32_t t = 0; t < TERMS; t++) {
            sum += cost[t] * samples[i].counts[t];
        }
        double error = sum / samples[i].ns - 1;
        error = error < 0 ? -error : error;
        worst = error > worst ? error : worst;
        *mean_out += error / n;
    }
    return worst;
}

/* A message with a key of 8 and a value of 32 bytes written and read again, halved. */
static double message_ns(void)
{
    uint8_t out[256];
    uint8_t value[32] = {0};
    uint64_t key = 0;
    uint64_t sum = 0;
    struct msg msg = {.kind = 10, .ts = 1, .epoch = 1, .value = bytes_of(value, sizeof value)};
    double best = 1e9;
    for (uint32_t round = 0; round < 5; round++) {
        double begin = cpu_ns();
        for (uint32_t i = 0; i < 1000000; i++) {
            struct msg in;
            uint32_t used;
            key = i;
            msg.key = bytes_of(&key, sizeof key);
            msg_encode(&msg, out);
            int err = msg_decode(bytes_of(out, msg_size(&msg)), &in, &used);
            HK_ASSERT(err == HK_OK);
            sum += in.ts + in.key.at[0];
        }
        double ns = (cpu_ns() - begin) / 2000000;
        best = ns < best ? ns : best;
    }
    HK_ASSERT(sum > 0);
    return best;
}

struct options {
    uint64_t keys;
    uint64_t ops;
    uint32_t rounds;
};

static uint32_t measure(struct bench *b, const struct options *o, uint64_t hot,
                        struct sample *samples, double *read_only_out)
{
    static const uint32_t nodes[] = {1, 3, 5};
    static const uint32_t writes[] = {0, 20000, 200000, 1000000};
    static const uint32_t windows[] = {4, 16, 50};
    static const uint32_t values[] = {32, 512};
    uint32_t n = 0;
    double read_only = 1e9;
    for (uint32_t i = 0; i < 3; i++) {
        b->nodes = nodes[i];
        b->keys = hot;
        b->value_bytes = 32;
        for (uint32_t k = 0; k < b->nodes; k++) {
            start(b, k);
        }
        while (!serving(b)) {
            step(b);
        }
        preload(b);
        for (uint32_t v = 0; v < 2; v++) {
            b->value_bytes = values[v];
            for (uint32_t w = 0; w < 4; w++) {
                draw(b, hot, writes[w]);
                for (uint32_t k = 0; k < 3; k++) {
                    struct sample best = {.ns = 0};
                    run(b, b->nodes, o->ops / 4, windows[k], &best); /* warm */
                    for (uint32_t round = 0; round < o->rounds; round++) {
                        struct sample one;
                        run(b, b->nodes, o->ops, windows[k], &one);
                        best = round == 0 || one.ns < best.ns ? one : best;
                    }
                    samples[n++] = best;
                    double per_op = best.ns / (double)o->ops;
                    if (w == 0 && windows[k] == 50 && v == 0 && per_op < read_only) {
                        read_only = per_op;
                    }
                }
            }
        }
        stop(b);
    }
    *read_only_out = read_only;
    return n;
}

static void report(struct bench *b, const struct options *o, uint64_t hot)
{
    static struct sample samples[128];
    double cost[TERMS] = {0};
    bool given[TERMS] = {0};
    double read_only;
    double mean;
    cost[TERM_MESSAGE] = message_ns();
    given[TERM_MESSAGE] = true;
    uint32_t n = measure(b, o, hot, samples, &read_only);
    explain(samples, n, cost, given);
    double worst = worst_error(samples, n, cost, &mean);
    printf("%llu keys, %u runs: error %.0f %% on average, %.0f %% at most; a read in a window of "
           "50: %.1f ns\n",
           (unsigned long long)hot, n, 100 * mean, 100 * worst, read_only);
    for (uint32_t t = 0; t < TERMS; t++) {
        printf("  %-8s %7.2f ns\n", term_names[t], cost[t]);
    }
    fflush(stdout);
}

/* ---- Transactions ---- */

#define TXN_WINDOWS 3u

static uint64_t stored(const struct bench *b)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < b->nodes; i++) {
        struct store_stats stats;
        store_stats(node_store(b->sides[i].node, 0), &stats);
        sum += stats.keys;
    }
    return sum;
}

/* Everything is written at its home, and replicas are added until all have theirs. */
static void fill_in(struct bench *b)
{
    struct work_txn *txn = malloc(sizeof *txn);
    uint64_t objects = 0;
    HK_ASSERT(txn != NULL);
    for (uint32_t place = 0; place < b->nodes; place++) {
        for (uint64_t i = 0; i < work_fill_count(b->work); i++) {
            objects += work_fill(b->work, place, i, txn);
        }
    }
    free(txn);
    struct sample ignored;
    b->filling = true;
    run(b, b->nodes, objects, 16, &ignored);
    b->filling = false;
    while (stored(b) < objects * b->degree) {
        step(b);
        b->now_us += 100;
    }
}

static struct work *work_of(const struct bench *b, enum work_kind kind, double remote)
{
    static const uint32_t objects[WORK_KINDS] = {[WORK_HANDOVERS] = 20000,
                                                 [WORK_SMALLBANK] = 20000,
                                                 [WORK_TATP] = 3000,
                                                 [WORK_VOTER] = 20000,
                                                 [WORK_YCSB] = 5000};
    struct work_config config = work_defaults(kind);
    struct work *work = NULL;
    config.nodes = b->nodes;
    config.objects = objects[kind];
    config.remote = remote;
    int err = work_create(&config, &work);
    HK_ASSERT(err == HK_OK);
    return work;
}

/* One workload with one design on so many nodes; how many samples were added. */
static uint32_t measure_work(struct bench *b, const struct options *o, enum work_kind kind,
                             struct sample *samples)
{
    static const double remote[] = {0, 20, 100};
    static const uint32_t windows[TXN_WINDOWS] = {4, 16, 50};
    uint32_t n = 0;
    b->work = work_of(b, kind, 0);
    b->keys = 1000000;
    engines_configure(b->engine, &(struct engines_options){.mlt_us = 10000, .degree = b->degree},
                      &b->engine_config);
    for (uint32_t i = 0; i < b->nodes; i++) {
        start(b, i);
    }
    while (!serving(b)) {
        step(b);
    }
    fill_in(b);
    for (uint32_t r = 0; r < (b->nodes > 1 ? 3u : 1u); r++) {
        work_destroy(b->work);
        b->work = work_of(b, kind, remote[r]);
        for (uint32_t k = 0; k < TXN_WINDOWS; k++) {
            struct sample best = {.ns = 0};
            run(b, b->nodes, o->ops / 4, windows[k], &best);
            for (uint32_t round = 0; round < o->rounds; round++) {
                struct sample one;
                run(b, b->nodes, o->ops, windows[k], &one);
                best = round == 0 || one.ns < best.ns ? one : best;
            }
            samples[n++] = best;
            printf("  %-6s %-10s %u nodes %3.0f %% remote, window %2u: %.0f ns a transaction\n",
                   b->engine->name, work_kind_names[kind], b->nodes, remote[r], windows[k],
                   best.ns / (double)o->ops);
        }
    }
    stop(b);
    work_destroy(b->work);
    b->work = NULL;
    return n;
}

/* Explains the samples, beginning with what `cost` says. */
static void print_fit(const char *of, const struct sample *samples, uint32_t n, double cost[TERMS],
                      const bool given[TERMS])
{
    double mean, bias = 0;
    for (uint32_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint32_t t = 0; t < TERMS; t++) {
            sum += cost[t] * samples[i].counts[t];
        }
        bias += (sum / samples[i].ns - 1) / n;
    }
    printf("%s: %u runs; before, off by %+.0f %% in the mean\n", of, n, 100 * bias);
    explain(samples, n, cost, given);
    double worst = worst_error(samples, n, cost, &mean);
    printf("  error %.0f %% on average, %.0f %% at most\n", 100 * mean, 100 * worst);
    for (uint32_t t = 0; t < TERMS; t++) {
        printf("  %-8s %7.2f ns%s\n", term_names[t], cost[t], given[t] ? " (given)" : "");
    }
}

static void report_transactions(struct bench *b, const struct options *o)
{
    static struct sample samples[256];
    static const struct engine_ops *const engines[] = {&zeus_ops, &occ_ops};
    double cost[TERMS] = {[TERM_POLL] = cost_measured.poll,
                          [TERM_FRAME] = cost_measured.frame,
                          [TERM_BYTE] = cost_measured.byte};
    bool given[TERMS] = {[TERM_POLL] = true, [TERM_FRAME] = true,  [TERM_BYTE] = true,
                         [TERM_READ] = true, [TERM_UPDATE] = true, [TERM_STEP] = true};
    static uint32_t of[256];
    uint32_t n = 0;
    for (uint32_t kind = 0; kind < WORK_REMOTE_KINDS; kind++) {
        for (uint32_t e = 0; e < 2; e++) {
            for (uint32_t nodes = 1; nodes <= 3; nodes += 2) {
                b->engine = engines[e];
                b->nodes = nodes;
                b->degree = (uint8_t)nodes;
                uint32_t more = measure_work(b, o, (enum work_kind)kind, samples + n);
                for (uint32_t i = 0; i < more; i++) {
                    of[n++] = e;
                }
                fflush(stdout);
            }
        }
    }
    print_fit("both", samples, n, cost, given);
    for (uint32_t e = 0; e < 2; e++) {
        static struct sample apart[256];
        uint32_t m = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (of[i] == e) {
                apart[m++] = samples[i];
            }
        }
        print_fit(engines[e]->name, apart, m, cost, given);
    }
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct options o = {.keys = 1000000, .ops = 200000, .rounds = 3};
    const char *engine = "hermes";
    bool transactions = false;
    static const struct option options[] = {
        {"engine", required_argument, NULL, 'e'}, {"keys", required_argument, NULL, 'k'},
        {"ops", required_argument, NULL, 'o'},    {"rounds", required_argument, NULL, 'r'},
        {"transactions", no_argument, NULL, 't'}, {NULL, 0, NULL, 0}};
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'e':
            engine = optarg;
            break;
        case 'k':
            o.keys = strtoull(optarg, NULL, 10);
            break;
        case 'o':
            o.ops = strtoull(optarg, NULL, 10);
            break;
        case 't':
            transactions = true;
            break;
        case 'r':
            o.rounds = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        default:
            return 2;
        }
    }
    b.engine = engines_find(engine);
    b.trace = malloc(TRACE * sizeof *b.trace);
    b.updates = malloc(TRACE);
    if (b.engine == NULL || b.trace == NULL || b.updates == NULL || o.keys == 0 || o.ops == 0 ||
        o.rounds == 0) {
        fprintf(stderr, "usage: the head of bench/sim_cost_bench.c\n");
        return 2;
    }
    engines_configure(b.engine, &(struct engines_options){.mlt_us = 1000000, .grace_us = 100000000},
                      &b.engine_config);
    b.now_us = 1000000;
    random_init(&b.random, 1);
    if (transactions) {
        o.ops /= 10;
        report_transactions(&b, &o);
        return 0;
    }
    report(&b, &o, 1000);
    report(&b, &o, o.keys);
    return 0;
}
