#include "support/node_desk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "node/read.h"

#define BOUND_US 20000000u

static bool give_request(void *context, uint32_t node, uint32_t worker, struct request *out)
{
    struct desk *desk = context;
    for (uint32_t i = 0; worker == 0 && i < desk->n; i++) {
        if (!desk->given[i] && desk->nodes[i] == node) {
            desk->given[i] = true;
            *out = desk->waiting[i];
            return true;
        }
    }
    return false;
}

static void take_reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct desk *desk = context;
    assert_true(worker == 0 && reply->tag < desk->n && desk->nodes[reply->tag] == node);
    assert_false(desk->answered[reply->tag]);
    desk->answers[reply->tag] = reply->answer;
    desk->answered[reply->tag] = true;
    desk->order[desk->order_n++] = (uint32_t)reply->tag;
}

void desk_start(struct desk *desk, struct cluster_config *config)
{
    memset(desk, 0, sizeof *desk);
    config->client = (struct cluster_client){desk, give_request, take_reply};
    desk->cluster = cluster_create(config);
    cluster_until(desk->cluster, cluster_serving, NULL, BOUND_US);
    for (uint32_t i = 0; i < config->nodes; i++) {
        desk->sessions[i] = desk_session(desk, i);
    }
}

uint32_t desk_session(struct desk *desk, uint32_t node)
{
    uint32_t session;
    struct worker *w = node_worker(cluster_node(desk->cluster, node), 0);
    assert_int_equal(worker_session_open(w, &session), HK_OK);
    return session;
}

uint32_t desk_hand(struct desk *desk, uint32_t node, uint32_t session,
                   const struct request *request)
{
    assert_true(desk->n < DESK_TAGS);
    desk->waiting[desk->n] = *request;
    desk->waiting[desk->n].session = session;
    desk->waiting[desk->n].tag = desk->n;
    desk->nodes[desk->n] = (uint8_t)node;
    return desk->n++;
}

struct awaited {
    struct desk *desk;
    uint32_t tag;
};

static bool is_answered(struct cluster *c, void *context)
{
    const struct awaited *a = context;
    (void)c;
    return a->desk->answered[a->tag];
}

struct answer desk_answer(struct desk *desk, uint32_t tag)
{
    struct awaited a = {desk, tag};
    cluster_until(desk->cluster, is_answered, &a, BOUND_US);
    return desk->answers[tag];
}

struct bytes desk_text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

struct op desk_set(const char *key, const char *value)
{
    return (struct op){.kind = OP_SET, .key = desk_text(key), .value = desk_text(value)};
}

/* value NULL: any. */
static bool finds(struct desk *desk, uint32_t node, const char *key, const char *value,
                  bool *owned_out)
{
    struct node_reader *reader = NULL;
    struct node_read read = {.key = desk_text(key)};
    assert_int_equal(node_reader_open(cluster_node(desk->cluster, node), &reader), HK_OK);
    node_read(reader, 0, cluster_now(desk->cluster), 1, &read);
    bool found = read.answer == NODE_READ_FOUND;
    if (found && value != NULL) {
        found = read.value.n == strlen(value) && memcmp(read.value.at, value, read.value.n) == 0;
    }
    node_reader_close(reader);
    *owned_out = read.owned;
    return found;
}

bool desk_holds(struct desk *desk, uint32_t node, const char *key, const char *value)
{
    bool owned;
    return finds(desk, node, key, value, &owned);
}

void desk_until(struct desk *desk, uint32_t node, const char *key, const char *value)
{
    for (uint32_t i = 0; i < 2000 && !desk_holds(desk, node, key, value); i++) {
        cluster_step(desk->cluster, 1000);
    }
    assert_true(desk_holds(desk, node, key, value));
}

bool desk_owns(struct desk *desk, uint32_t node, const char *key)
{
    bool owned;
    return finds(desk, node, key, NULL, &owned) && owned;
}
