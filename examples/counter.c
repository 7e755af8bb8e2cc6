/* A counter that survives the loss of a node: three nodes in this process, a thread at each that
 * counts, and one node that is taken down and brought back meanwhile. In a real program the nodes
 * would be three processes on three machines. */
#include <horkos.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster.h"

#define COUNTS 2000

struct counting {
    struct hk_node *node;
    pthread_t thread;
    int64_t counted; /* acknowledged */
    int64_t unknown; /* may have been counted, or not */
};

static void *count(void *argument)
{
    struct counting *c = argument;
    struct hk_session *session;
    check(hk_session_open(c->node, NULL, &session), "open a session");
    while (c->counted < COUNTS) {
        int err = hk_add(session, hk_text("visits"), 1, NULL);
        if (err == HK_OK) {
            c->counted++;
        } else if (err == HK_ERR_UNKNOWN) {
            c->unknown++; /* to count again might count twice: a real program decides */
        } else if (err != HK_ERR_UNAVAILABLE && err != HK_ERR_BUSY) {
            check(err, "count");
        }
    }
    hk_session_close(session);
    return NULL;
}

static int64_t read_counter(struct hk_node *node)
{
    struct hk_session *session;
    int64_t sum = 0;
    check(hk_session_open(node, NULL, &session), "open a session");
    check(hk_add(session, hk_text("visits"), 0, &sum), "read the counter");
    hk_session_close(session);
    return sum;
}

int main(void)
{
    struct cluster cluster;
    struct counting counting[2] = {{0}};
    int64_t counted = 0;
    int64_t unknown = 0;
    cluster_open(&cluster);
    for (int i = 0; i < 2; i++) {
        counting[i].node = cluster.nodes[i];
        if (pthread_create(&counting[i].thread, NULL, count, &counting[i]) != 0) {
            perror("pthread_create");
            return 1;
        }
    }
    /* The third node goes without a word, and comes back with nothing: it copies all. */
    hk_close_now(cluster.nodes[2]);
    cluster_start(&cluster, 2);
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(counting[i].thread, NULL);
        counted += counting[i].counted;
        unknown += counting[i].unknown;
    }
    check(hk_wait_serving(cluster.nodes[2], 60000), "come back");
    int64_t sum = read_counter(cluster.nodes[2]);
    printf("counted %lld, the returned node says %lld\n", (long long)counted, (long long)sum);
    cluster_close(&cluster);
    return sum >= counted && sum <= counted + unknown ? 0 : 1;
}
