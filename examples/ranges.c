/* Journals in an ordered space, written by three nodes at once. Whoever appends to a journal looks
 * for its last entry and writes the next number, in one transaction: so numbers have no gaps, and
 * none comes twice, although no counter is kept. A reader gets a journal in its order, and old
 * entries are deleted as one range. */
#include <horkos.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

#define JOURNALS 4
#define APPENDED 100 /* by each node */

/* Numbers of fixed width are in the order of their digits. '/' + 1 is '0': everything that begins
 * with "journal:3/" lies between "journal:3/" and "journal:30". */
static void bounds_of(int journal, char start[32], char end[32])
{
    (void)snprintf(start, 32, "journal:%d/", journal);
    (void)snprintf(end, 32, "journal:%d0", journal);
}

static int take_number(void *context, struct hk_bytes key, struct hk_bytes value)
{
    uint64_t *number = context;
    char text[64];
    (void)value;
    (void)snprintf(text, sizeof text, "%.*s", (int)key.n, (const char *)key.at);
    *number = strtoull(strchr(text, '/') + 1, NULL, 10);
    return HK_OK;
}

struct entry {
    int journal;
    const char *text;
};

/* May run several times, each time from the beginning. */
static int append(struct hk_txn *txn, void *context)
{
    const struct entry *entry = context;
    const struct hk_range_options last = {.flags = HK_RANGE_REVERSE | HK_RANGE_KEYS, .limit = 1};
    char start[32], end[32], key[64];
    uint64_t number = 0;
    bounds_of(entry->journal, start, end);
    int err = hk_txn_range(txn, hk_text(start), hk_text(end), &last, take_number, &number);
    (void)snprintf(key, sizeof key, "%s%012" PRIu64, start, number + 1);
    return err == HK_OK ? hk_txn_put(txn, hk_text(key), hk_text(entry->text), NULL) : err;
}

struct writer {
    struct hk_node *node;
    pthread_t thread;
    int number;
    int unknown; /* appended or not */
};

static void *work(void *argument)
{
    struct writer *w = argument;
    const struct hk_session_options space = {.space = HK_SPACE_ORDERED};
    const struct hk_txn_options options = {.timeout_ms = 60000};
    struct hk_session *session;
    char text[64];
    check(hk_session_open(w->node, &space, &session), "open a session");
    for (int i = 0; i < APPENDED; i++) {
        struct entry entry = {.journal = i % JOURNALS, .text = text};
        (void)snprintf(text, sizeof text, "entry %d of node %d", i, w->number);
        int err = hk_txn_run(session, &options, append, &entry);
        w->unknown += err == HK_ERR_UNKNOWN;
        if (err != HK_ERR_UNKNOWN) {
            check(err, "append");
        }
    }
    hk_session_close(session);
    return NULL;
}

struct reading {
    uint64_t entries, wrong;
};

/* Each is the one behind the last. */
static int follow(void *context, struct hk_bytes key, struct hk_bytes value)
{
    struct reading *r = context;
    uint64_t number;
    (void)take_number(&number, key, value);
    r->entries++;
    r->wrong += number != r->entries;
    return HK_OK;
}

int main(void)
{
    const struct hk_session_options space = {.space = HK_SPACE_ORDERED};
    struct cluster cluster;
    struct writer writers[CLUSTER_NODES];
    struct hk_session *session;
    struct reading all = {.entries = 0};
    char start[32], end[32];
    uint64_t deleted = 0, left = 0;
    int unknown = 0;
    cluster_open_ordered(&cluster);
    for (int i = 0; i < CLUSTER_NODES; i++) {
        writers[i] = (struct writer){.node = cluster.nodes[i], .number = i};
        if (pthread_create(&writers[i].thread, NULL, work, &writers[i]) != 0) {
            perror("pthread_create");
            return 1;
        }
    }
    for (int i = 0; i < CLUSTER_NODES; i++) {
        (void)pthread_join(writers[i].thread, NULL);
        unknown += writers[i].unknown;
    }
    check(hk_session_open(cluster.nodes[0], &space, &session), "open a session");
    for (int i = 0; i < JOURNALS; i++) {
        struct reading one = {.entries = 0};
        bounds_of(i, start, end);
        check(hk_range(session, hk_text(start), hk_text(end), NULL, follow, &one), "read");
        all.entries += one.entries;
        all.wrong += one.wrong;
    }
    bounds_of(0, start, end);
    check(hk_range_delete(session, hk_text(start), hk_text(end), 10, &deleted), "delete");
    check(hk_range_count(session, hk_text("journal:"), hk_text("journal;"), &left), "count");
    hk_session_close(session);
    printf("%" PRIu64 " entries in %d journals, %" PRIu64 " out of place; %" PRIu64
           " deleted, %" PRIu64 " left\n",
           all.entries, JOURNALS, all.wrong, deleted, left);
    cluster_close(&cluster);
    return all.wrong == 0 && all.entries + (uint64_t)unknown >= CLUSTER_NODES * APPENDED &&
                   left + deleted == all.entries
               ? 0
               : 1;
}
