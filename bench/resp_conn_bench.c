/* What the Redis protocol costs by itself: pipelines of GET or SET go through one connection, whose
 * operations are answered at once with nothing looked up. Prints one line of JSON a kind: CPU time
 * of a command. Under `valgrind --tool=callgrind --toggle-collect=turn` it counts instructions:
 * divide by --commands.
 *
 *   resp_conn_bench [--kind get|set] [--pipeline 16] [--commands 1000000] [--value 32] */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/err.h"
#include "resp/conn.h"

#define VALUE_MAX (1024u * 1024u)
#define PIPELINE_MAX 1000u

struct bench {
    bool set;
    uint32_t pipeline, value;
    uint64_t commands, now_us;
    uint8_t *input, *bytes;
    uint32_t input_n;
    struct resp_host host;
    struct resp_conn *conn;
};

static uint64_t wall_us(void *context)
{
    (void)context;
    return UINT64_C(1700000000000000);
}

static uint64_t draw(void *context)
{
    (void)context;
    return 0;
}

static int64_t threshold_us(void *context)
{
    (void)context;
    return 10000;
}

static void slow_add(void *context, const struct resp_slow *slow)
{
    (void)context;
    (void)slow;
}

static int serving(void *context)
{
    (void)context;
    return HK_OK;
}

static void *allocate(size_t bytes)
{
    void *at = malloc(bytes);

    if (at == NULL) {
        fprintf(stderr, "resp_conn_bench: out of memory\n");
        exit(1);
    }
    return at;
}

/* The bytes of one pipeline. */
static void fill(struct bench *b)
{
    b->bytes = allocate(b->value + 1);
    memset(b->bytes, 'x', b->value);
    b->input = allocate((size_t)b->pipeline * (b->value + 128));
    b->input_n = 0;
    for (uint32_t i = 0; i < b->pipeline; i++) {
        char *at = (char *)b->input + b->input_n;
        int n = b->set ? sprintf(at, "*3\r\n$3\r\nSET\r\n$16\r\nkey:%012u\r\n$%u\r\n", i, b->value)
                       : sprintf(at, "*2\r\n$3\r\nGET\r\n$16\r\nkey:%012u\r\n", i);

        b->input_n += (uint32_t)n;
        if (b->set) {
            memcpy(b->input + b->input_n, b->bytes, b->value);
            memcpy(b->input + b->input_n + b->value, "\r\n", 2);
            b->input_n += b->value + 2;
        }
    }
}

/* One pipeline, from its bytes to the last reply; returns how many operations it was. Not inlined:
 * it is what a profiler is asked for. */
static uint32_t __attribute__((noinline)) turn(struct bench *b)
{
    struct answer answer = {.kind = b->set ? ANSWER_OK : ANSWER_VALUE};
    const struct txn_request *txn;
    struct op op;
    uint32_t handed_out = 0, answered = 0;

    answer.value = bytes_of(b->bytes, b->set ? 0 : b->value);
    HK_ASSERT(resp_conn_feed(b->conn, bytes_of(b->input, b->input_n)));
    for (;;) {
        enum resp_next next = resp_conn_next(b->conn, b->now_us++, true, &op, &txn);

        if (next == RESP_OP) {
            handed_out++;
            continue;
        }
        for (; answered < handed_out; answered++)
            resp_conn_answer(b->conn, &answer, NULL, b->now_us);
        if (next == RESP_INPUT)
            break;
        HK_ASSERT(next == RESP_AGAIN || next == RESP_WAIT);
        resp_conn_sent(b->conn, resp_conn_output(b->conn).n);
    }
    resp_conn_sent(b->conn, resp_conn_output(b->conn).n);
    return handed_out;
}

static double cpu_ns(void)
{
    struct timespec t;

    HK_ASSERT(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void measure(struct bench *b)
{
    uint64_t done = 0;

    b->host = (struct resp_host){.wall_us = wall_us,
                                 .random = draw,
                                 .serving = serving,
                                 .slow_add = slow_add,
                                 .slow_threshold_us = threshold_us};
    HK_ASSERT(resp_conn_create(&b->host, 1, "", "", 0, &b->conn) == HK_OK);
    fill(b);

    double from = cpu_ns();

    while (done < b->commands)
        done += turn(b);
    printf("{\"bench\":\"resp_conn\",\"kind\":\"%s\",\"pipeline\":%u,\"value\":%u,\"commands\":"
           "%" PRIu64 ",\"ns\":%.1f}\n",
           b->set ? "set" : "get", b->pipeline, b->value, done, (cpu_ns() - from) / (double)done);
    resp_conn_destroy(b->conn);
    free(b->input);
    free(b->bytes);
}

static void usage(void)
{
    fprintf(stderr,
            "resp_conn_bench [--kind get|set] [--pipeline 1..%u] [--commands N] "
            "[--value 0..%u]\n",
            PIPELINE_MAX, VALUE_MAX);
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"kind", required_argument, NULL, 'k'},
                                          {"pipeline", required_argument, NULL, 'p'},
                                          {"commands", required_argument, NULL, 'c'},
                                          {"value", required_argument, NULL, 'v'},
                                          {NULL, 0, NULL, 0}};
    struct bench b = {.pipeline = 16, .commands = 1000000, .value = 32};
    const char *kind = NULL;
    int c;

    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 'k' && (strcmp(optarg, "get") == 0 || strcmp(optarg, "set") == 0))
            kind = optarg;
        else if (c == 'p')
            b.pipeline = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 'c')
            b.commands = strtoull(optarg, NULL, 10);
        else if (c == 'v')
            b.value = (uint32_t)strtoul(optarg, NULL, 10);
        else
            usage();
    }
    if (optind != argc || b.pipeline == 0 || b.pipeline > PIPELINE_MAX || b.value > VALUE_MAX ||
        b.commands == 0)
        usage();
    for (int set = 0; set < 2; set++) {
        if (kind != NULL && (strcmp(kind, "set") == 0) != (set == 1))
            continue;
        b.set = set == 1;
        measure(&b);
    }
    return 0;
}
