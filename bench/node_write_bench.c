/* CPU time of one replicated write, all nodes together: real nodes in one thread, links in memory,
 * polled in turn, so that nothing spins and no system call is counted. 8-byte keys, 32-byte values,
 * uniform, over keys that exist.
 *
 *   node_write_bench [--nodes 3] [--keys 1000000] [--writes 2000000] [--sessions 16] */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/random.h"
#include "engine/hermes/hermes.h"
#include "node/node.h"

#define INBOX_BYTES (8u * 1024u * 1024u)
#define NODES_LIMIT 7u

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
    uint32_t *sessions;
    bool *busy;
    uint64_t *keys; /* of the requests in flight, by session */
    uint32_t turn;
};

struct bench {
    uint32_t nodes;
    uint32_t sessions;
    uint64_t keys;
    uint64_t wanted;
    uint64_t issued;
    uint64_t done;
    uint64_t failed;
    bool preload;
    uint64_t now_us;
    struct random random;
    uint8_t value[32];
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

static bool env_request(void *context, uint32_t worker, struct request *request_out)
{
    struct side *s = context;
    struct bench *b = s->bench;
    (void)worker;
    if (b->issued == b->wanted) {
        return false;
    }
    for (uint32_t tried = 0; tried < b->sessions; tried++) {
        uint32_t i = s->turn++ % b->sessions;
        if (!s->busy[i]) {
            s->keys[i] = b->preload ? b->issued : random_below(&b->random, b->keys);
            b->issued++;
            s->busy[i] = true;
            *request_out = (struct request){
                .session = s->sessions[i],
                .tag = i,
                .op = {.kind = OP_SET,
                       .key = bytes_of(&s->keys[i], sizeof s->keys[i]),
                       .value = bytes_of(b->value, sizeof b->value)},
            };
            return true;
        }
    }
    return false;
}

static void env_reply(void *context, uint32_t worker, const struct reply *reply)
{
    struct side *s = context;
    (void)worker;
    s->busy[reply->tag] = false;
    s->bench->done++;
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

static const struct hermes_config hermes = {.mlt_us = 1000000, .grace_us = 100000000};

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
        .ops = &hermes_ops,
        .engine = &hermes,
        .store = {.keys_expected = b->keys, .seed = i, .value_bytes_max = 65536}};
    s->bench = b;
    s->index = i;
    s->in.bytes = malloc(INBOX_BYTES);
    s->next.bytes = malloc(INBOX_BYTES);
    s->sessions = calloc(b->sessions, sizeof *s->sessions);
    s->busy = calloc(b->sessions, sizeof *s->busy);
    s->keys = calloc(b->sessions, sizeof *s->keys);
    HK_ASSERT(s->in.bytes != NULL && s->keys != NULL && s->next.bytes != NULL &&
              s->sessions != NULL && s->busy != NULL);
    int err = node_create(&config, &env, b->now_us, &s->node);
    HK_ASSERT(err == HK_OK);
    for (uint32_t k = 0; k < b->sessions; k++) {
        err = worker_session_open(node_worker(s->node, 0), &s->sessions[k]);
        HK_ASSERT(err == HK_OK);
    }
}

static void step(struct bench *b)
{
    for (uint32_t i = 0; i < b->nodes; i++) {
        (void)worker_poll(node_worker(b->sides[i].node, 0), b->now_us, 64);
    }
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

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double run(struct bench *b, uint64_t writes)
{
    b->issued = b->done = 0;
    b->wanted = writes;
    double begin = cpu_seconds();
    while (b->done < writes) {
        step(b);
    }
    return cpu_seconds() - begin;
}

static void usage(void)
{
    puts("CPU time of one replicated write, all nodes in one thread.\n"
         "  --nodes N     replicas (3)\n"
         "  --keys N      keys that exist (1000000)\n"
         "  --writes N    writes that are measured (2000000)\n"
         "  --sessions N  writes in flight at each node (16)");
}

int main(int argc, char **argv)
{
    static struct bench b = {.nodes = 3, .keys = 1000000, .sessions = 16};
    uint64_t writes = 2000000;
    static const struct option options[] = {
        {"nodes", required_argument, NULL, 'n'},  {"keys", required_argument, NULL, 'k'},
        {"writes", required_argument, NULL, 'w'}, {"sessions", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    int o;
    while ((o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        uint64_t value = optarg != NULL ? strtoull(optarg, NULL, 10) : 0;
        switch (o) {
        case 'n':
            b.nodes = (uint32_t)value;
            break;
        case 'k':
            b.keys = value;
            break;
        case 'w':
            writes = value;
            break;
        case 's':
            b.sessions = (uint32_t)value;
            break;
        default:
            usage();
            return o == 'h' ? 0 : 2;
        }
    }
    if (b.nodes < 1 || b.nodes > NODES_LIMIT || b.keys == 0 || writes == 0 || b.sessions == 0 ||
        b.sessions > 1000) {
        usage();
        return 2;
    }
    b.now_us = 1000000;
    random_init(&b.random, 1);
    for (uint32_t i = 0; i < b.nodes; i++) {
        start(&b, i);
    }
    while (!serving(&b)) {
        step(&b);
    }
    b.preload = true;
    (void)run(&b, b.keys);
    b.preload = false;
    (void)run(&b, writes / 10);
    struct node_stats before;
    struct node_stats after;
    node_stats(b.sides[0].node, &before);
    double seconds = run(&b, writes);
    node_stats(b.sides[0].node, &after);
    printf("nodes %u, keys %llu, in flight %u a node\n", b.nodes, (unsigned long long)b.keys,
           b.sessions);
    printf("cpu_ns_per_write %.0f (all nodes)\n", 1e9 * seconds / (double)writes);
    printf("node 0: messages_out_per_write %.2f, bytes_out_per_write %.0f, messages a frame %.1f\n",
           (double)(after.messages_out - before.messages_out) / (double)writes,
           (double)(after.bytes_out - before.bytes_out) / (double)writes,
           (double)(after.messages_out - before.messages_out) /
               (double)(after.frames_out - before.frames_out));
    printf("failed %llu\n", (unsigned long long)b.failed);
    for (uint32_t i = 0; i < b.nodes; i++) {
        node_destroy(b.sides[i].node);
        free(b.sides[i].in.bytes);
        free(b.sides[i].next.bytes);
        free(b.sides[i].sessions);
        free(b.sides[i].busy);
        free(b.sides[i].keys);
    }
    return b.failed == 0 ? 0 : 1;
}
