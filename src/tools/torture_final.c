#include "tools/torture_final.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "tools/torture_ops.h"

#define ROUNDS_MAX 5u        /* an update that nobody waits for may still be on its way */
#define ROUND_US 500000u     /* between two of them */
#define RETRY_US 50000u      /* after a refusal or a broken connection */
#define PATIENCE_US 5000000u /* with one read */
/* Instead of a value: the last one died with its writer, and nobody can say what it was. */
#define VALUE_LOST (HISTORY_ABSENT + 1)

bool torture_final_init(struct torture_final *f, const struct torture_options *options,
                        struct torture_cluster *cluster, struct torture_keys *keys)
{
    bool good = torture_keys_note_emptied(keys);
    *f = (struct torture_final){.options = options, .cluster = cluster, .keys = keys};
    for (uint32_t node = 0; node <= TORTURE_NODES_MAX; node++) {
        torture_stream_init(&f->reader[node].stream);
    }
    for (uint32_t node = 1; node <= options->nodes; node++) {
        f->reader[node].values = calloc(keys->n + 1, sizeof *f->reader[node].values);
        good = good && f->reader[node].values != NULL;
    }
    return good;
}

void torture_final_deinit(struct torture_final *f)
{
    for (uint32_t node = 1; node <= f->options->nodes; node++) {
        torture_stream_deinit(&f->reader[node].stream);
        free(f->reader[node].values);
        f->reader[node].values = NULL;
    }
}

/* The reads under way are asked again later. */
static void start_over(struct torture_reader *r, uint64_t now_us)
{
    torture_stream_close(&r->stream, false);
    r->next -= r->n;
    r->n = 0;
    r->act_us = now_us + RETRY_US;
}

static void ask(struct torture_final *f, struct torture_reader *r)
{
    while (r->n < TORTURE_READS_MAX && r->next < f->keys->n) {
        struct history_op read;
        torture_op_read(f->keys->all[r->next], &read);
        if (!torture_op_say(f->keys->all[r->next], &read, &r->stream)) {
            f->no_memory = true;
            return;
        }
        r->begun_us[(r->first + r->n) % TORTURE_READS_MAX] = clock_boot_us();
        r->n++;
        r->next++;
    }
    if (!torture_stream_flush(&r->stream)) {
        start_over(r, clock_boot_us());
    }
}

static bool settled(const struct torture_key *key)
{
    return key->last_known && key->unknowns == 0;
}

/* Whether the reader may go on on this connection. */
static bool take(struct torture_final *f, uint32_t node, const struct resp_client_reply *reply,
                 uint64_t end_us)
{
    struct torture_reader *r = &f->reader[node];
    struct torture_key *key = f->keys->all[r->next - r->n];
    struct history_op read;
    torture_op_read(key, &read);
    const char *wrong = torture_op_understand(key, &read, reply);
    if (wrong != NULL && f->wrong[0] == '\0') {
        snprintf(f->wrong, sizeof f->wrong, "in the end node %u answers %s: %.*s", node, wrong,
                 (int)(reply->text.n < 100 ? reply->text.n : 100),
                 reply->text.n == 0 ? "" : (const char *)reply->text.at);
        f->wrong_key = key->id;
    }
    bool lost = torture_op_lost(reply) && !settled(key);
    if (read.outcome != HISTORY_OK && !lost) {
        return false;
    }
    r->values[r->next - r->n] = lost ? VALUE_LOST : read.out;
    read.begin_us = r->begun_us[r->first];
    read.end_us = end_us;
    read.client = TORTURE_CLIENTS_MAX + node;
    /* Of other keys no history is kept. */
    if (key->ops != NULL && !lost && !torture_key_record(key, &read)) {
        f->no_memory = true;
    }
    r->first = (r->first + 1) % TORTURE_READS_MAX;
    r->n--;
    f->reads++;
    return true;
}

static void hear(struct torture_final *f, uint32_t node)
{
    struct torture_reader *r = &f->reader[node];
    struct resp_client_reply reply;
    bool good = torture_stream_flush(&r->stream) && torture_stream_receive(&r->stream);
    uint64_t end_us = clock_boot_us() + 1;
    int err = HK_ERR_NOTFOUND;
    while (r->n > 0 && (err = torture_stream_reply(&r->stream, &reply)) == HK_OK) {
        if (!take(f, node, &reply, end_us)) {
            good = false;
            break;
        }
    }
    if (!good || (err != HK_OK && err != HK_ERR_NOTFOUND)) {
        start_over(r, end_us);
    } else if (r->stream.state == STREAM_OPEN) {
        ask(f, r);
    }
}

static void complain(struct torture_final *f, const struct torture_key *key)
{
    char name[TORTURE_NAME_BYTES];
    size_t n = 0;
    (void)torture_key_name(key, name);
    n = (size_t)snprintf(f->wrong, sizeof f->wrong, "in the end key %s", name);
    for (uint32_t node = 1; node <= f->options->nodes; node++) {
        int64_t value = f->reader[node].values[key->id];
        char text[32] = "absent";
        if (value == VALUE_LOST) {
            snprintf(text, sizeof text, "lost");
        } else if (value != HISTORY_ABSENT) {
            snprintf(text, sizeof text, "%" PRId64, value);
        }
        n += (size_t)snprintf(f->wrong + n, sizeof f->wrong - n, "%s node %u: %s",
                              node == 1 ? " is on" : ",", node, text);
    }
    if (settled(key)) {
        char text[32] = "absent";
        if (key->last != HISTORY_ABSENT) {
            snprintf(text, sizeof text, "%" PRId64, key->last);
        }
        snprintf(f->wrong + n, sizeof f->wrong - n,
                 "; after its last update had returned it was read as %s", text);
    }
    f->wrong_key = key->id;
}

/* Whether all nodes show of the key what they must. */
static bool agree(const struct torture_final *f, const struct torture_key *key)
{
    int64_t first = f->reader[1].values[key->id];
    /* An order takes a while to be carried out everywhere: where it came in a key's life it may
     * still have been to come when that was read for the last time, out of the caches. */
    bool emptied = (key->emptied || key->emptied_us != 0) && first == HISTORY_ABSENT;
    int64_t value = settled(key) && !emptied ? key->last : first;
    for (uint32_t node = 1; node <= f->options->nodes; node++) {
        if (f->reader[node].values[key->id] != value) {
            return false;
        }
    }
    return true;
}

/* Of a settled key a reading is final; of another one it may be too early. */
static void compare(struct torture_final *f, uint64_t now_us)
{
    const struct torture_key *differs = NULL;
    f->rounds++;
    if (f->options->tamper == TORTURE_TAMPER_REPLICA) {
        f->reader[1].values[0] = -1;
    }
    for (size_t i = 0; i < f->keys->n; i++) {
        const struct torture_key *key = f->keys->all[i];
        if (!agree(f, key) && (differs == NULL || settled(key))) {
            differs = key;
        }
    }
    if (differs == NULL) {
        f->over = true;
    } else if (settled(differs) || f->rounds == ROUNDS_MAX) {
        complain(f, differs);
        f->over = true;
    }
    for (uint32_t node = 1; !f->over && node <= f->options->nodes; node++) {
        f->reader[node].next = 0;
        f->reader[node].act_us = now_us + ROUND_US;
    }
}

void torture_final_step(struct torture_final *f, uint64_t now_us)
{
    bool all = true;
    for (uint32_t node = 1; node <= f->options->nodes; node++) {
        struct torture_reader *r = &f->reader[node];
        if (r->n > 0 && now_us > r->begun_us[r->first] + PATIENCE_US) {
            start_over(r, now_us);
        }
        if (r->stream.state == STREAM_CLOSED && now_us >= r->act_us) {
            r->act_us = now_us + RETRY_US;
            (void)torture_stream_connect(&r->stream, &f->cluster->node[node].address);
        }
        if (r->stream.state == STREAM_OPEN && r->n == 0 && now_us >= r->act_us) {
            ask(f, r);
        }
        all = all && r->n == 0 && r->next == f->keys->n;
    }
    if (all && !f->over) {
        compare(f, now_us);
    }
}

void torture_final_poll_set(const struct torture_final *f, struct pollfd *set_out)
{
    for (uint32_t node = 1; node <= f->options->nodes; node++) {
        const struct torture_stream *stream = &f->reader[node].stream;
        set_out[node - 1] =
            (struct pollfd){.fd = stream->fd, .events = torture_stream_events(stream)};
    }
}

void torture_final_polled(struct torture_final *f, const struct pollfd *set)
{
    for (uint32_t node = 1; node <= f->options->nodes; node++) {
        if (set[node - 1].revents != 0 && set[node - 1].fd == f->reader[node].stream.fd) {
            hear(f, node);
        }
    }
}

void torture_final_judge(struct torture_final *f, struct torture_judge *judge)
{
    for (size_t i = 0; i < f->keys->n; i++) {
        if (f->keys->all[i]->ops != NULL) {
            torture_judge_give(judge, f->keys->all[i]);
        }
    }
}
