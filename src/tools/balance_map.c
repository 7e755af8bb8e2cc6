/* Which node works on which keys. The mapping is a string of BALANCE_GROUPS bytes, a letter a
 * group; whoever changes it says what it was before (SET with IFEQ), so balancers do not undo each
 * other's moves. Its key names the nodes: balancers with other nodes do not share it. */
#include "tools/balance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/nodeset.h"
#include "tools/resp_client.h"

#define CALL_MS 1000u
#define MOVES_MOST 16u
#define LETTER '0'     /* of node 0; nodes have the 64 from there on */
#define FEW 64u        /* commands between two looks that are no load */
#define MUCH_MORE 125u /* per cent of the mean: so much and groups move away */

/* ---- Keys ---- */

struct bytes balance_tag(struct bytes key)
{
    const uint8_t *open = key.n > 0 ? memchr(key.at, '{', key.n) : NULL;
    if (open == NULL) {
        return key;
    }
    uint32_t left = key.n - (uint32_t)(open - key.at) - 1;
    const uint8_t *close = left > 0 ? memchr(open + 1, '}', left) : NULL;
    if (close == NULL || close == open + 1) {
        return key;
    }
    return bytes_of(open + 1, (uint32_t)(close - open) - 1);
}

uint32_t balance_group(struct bytes key)
{
    struct bytes tag = balance_tag(key);
    return (uint32_t)(XXH3_64bits(tag.at, tag.n) % BALANCE_GROUPS);
}

/* ---- Nodes ---- */

uint32_t balance_any(struct balance *b, struct random *random)
{
    uint32_t start = (uint32_t)random_below(random, b->nodes_n);
    for (uint32_t i = 0; i < b->nodes_n; i++) {
        uint32_t node = (start + i) % b->nodes_n;
        if (!atomic_load_explicit(&b->nodes[node].down, memory_order_relaxed)) {
            return node;
        }
    }
    return start;
}

uint32_t balance_route(struct balance *b, uint32_t group, struct random *random)
{
    uint8_t node = atomic_load_explicit(&b->groups[group], memory_order_relaxed);
    atomic_fetch_add_explicit(&b->counted[group], 1, memory_order_relaxed);
    if (node >= b->nodes_n || atomic_load_explicit(&b->nodes[node].down, memory_order_relaxed)) {
        return balance_any(b, random);
    }
    return node;
}

/* ---- Planning ---- */

static uint32_t pick_up(uint32_t nodes_n, uint64_t down, struct random *random)
{
    uint32_t node;
    do {
        node = (uint32_t)random_below(random, nodes_n);
    } while ((down >> node & 1) != 0);
    return node;
}

/* The group of `from` with the most load that is no more than half of what `from` has more than
 * `to`; BALANCE_GROUPS: there is none. */
static uint32_t best_group(const uint8_t *groups, const uint64_t *load, uint32_t from,
                           uint64_t more)
{
    uint32_t best = BALANCE_GROUPS;
    for (uint32_t g = 0; g < BALANCE_GROUPS; g++) {
        bool helps = groups[g] == from && load[g] > 0 && load[g] <= more / 2;
        if (helps && (best == BALANCE_GROUPS || load[g] > load[best])) {
            best = g;
        }
    }
    return best;
}

uint32_t balance_plan(uint8_t groups[BALANCE_GROUPS], const uint64_t load[BALANCE_GROUPS],
                      uint32_t nodes_n, uint64_t down, uint32_t most, struct random *random)
{
    uint64_t sums[BALANCE_NODES_MAX] = {0};
    uint64_t total = 0;
    uint32_t up = 0;
    uint32_t moved = 0;
    for (uint32_t i = 0; i < nodes_n; i++) {
        up += (down >> i & 1) == 0;
    }
    if (up == 0) {
        return 0;
    }
    for (uint32_t g = 0; g < BALANCE_GROUPS; g++) {
        if (groups[g] >= nodes_n || (down >> groups[g] & 1) != 0) {
            groups[g] = (uint8_t)pick_up(nodes_n, down, random);
            moved++;
        }
        sums[groups[g]] += load[g];
        total += load[g];
    }
    for (uint32_t i = 0; i < most; i++) {
        uint32_t high = NODE_NONE;
        uint32_t low = NODE_NONE;
        for (uint32_t n = 0; n < nodes_n; n++) {
            if ((down >> n & 1) == 0) {
                high = high == NODE_NONE || sums[n] > sums[high] ? n : high;
                low = low == NODE_NONE || sums[n] < sums[low] ? n : low;
            }
        }
        uint64_t more = sums[high] - sums[low];
        uint32_t g = more > FEW && sums[high] * 100 * up > total * MUCH_MORE
                         ? best_group(groups, load, high, more)
                         : BALANCE_GROUPS;
        if (g == BALANCE_GROUPS) {
            break;
        }
        groups[g] = (uint8_t)low;
        sums[high] -= load[g];
        sums[low] += load[g];
        moved++;
    }
    return moved;
}

/* ---- The mapping in the cluster ---- */

struct keeper {
    struct balance *b;
    struct resp_client clients[BALANCE_NODES_MAX];
    struct random random;
    char key[64];
    char stored[BALANCE_GROUPS]; /* as it was read last */
    bool has_stored;
    uint64_t before[BALANCE_GROUPS]; /* counted at the last look */
    bool told[BALANCE_NODES_MAX];    /* why the node does not take this balancer */
};

/* Connects, in the mapping's space. What a node says against it is told once. */
static bool connect_to(struct keeper *k, uint32_t node)
{
    struct balance_node *to = &k->b->nodes[node];
    struct resp_client *client = &k->clients[node];
    struct node_address address = k->b->address;
    struct resp_client_reply reply;
    char why[400];
    char space[16];
    address.target = (struct resp_client_target){.host = to->host, .port = to->port};
    (void)snprintf(space, sizeof space, "%u", k->b->space);
    struct bytes select[2] = {bytes_of("SELECT", 6), bytes_of(space, (uint32_t)strlen(space))};
    enum node_report_result result = node_connect(client, &address, CALL_MS, why, sizeof why);
    if (result == NODE_REPORT_OK) {
        result = node_ask(client, 2, select, CALL_MS, &reply, why, sizeof why);
    }
    if (result == NODE_REPORT_OK) {
        return true;
    }
    resp_client_deinit(client);
    resp_client_init(client);
    if (result != NODE_REPORT_UNREACHABLE && !k->told[node]) {
        k->told[node] = true;
        fprintf(stderr, "horkos balance: %s%s\n", why,
                result == NODE_REPORT_DENIED ? "; give --password-file" : "");
    }
    return false;
}

/* One command at one node. */
static bool call(struct keeper *k, uint32_t node, uint32_t n, const struct bytes *args,
                 struct resp_client_reply *reply_out)
{
    struct resp_client *client = &k->clients[node];
    return (client->fd >= 0 || connect_to(k, node)) &&
           resp_client_call(client, n, args, CALL_MS, reply_out) == HK_OK;
}

/* Reads the mapping at that node: that is the test whether it serves as well. */
static bool read_mapping(struct keeper *k, uint32_t node)
{
    struct bytes get[2] = {bytes_of("GET", 3), bytes_of(k->key, (uint32_t)strlen(k->key))};
    struct resp_client_reply reply;
    if (!call(k, node, 2, get, &reply) ||
        (reply.kind != RESP_CLIENT_BULK && reply.kind != RESP_CLIENT_NIL)) {
        return false;
    }
    k->has_stored = reply.kind == RESP_CLIENT_BULK && reply.text.n == BALANCE_GROUPS;
    if (k->has_stored) {
        memcpy(k->stored, reply.text.at, BALANCE_GROUPS);
    }
    return true;
}

static bool write_mapping(struct keeper *k, uint32_t node, const uint8_t *groups)
{
    char value[BALANCE_GROUPS];
    struct resp_client_reply reply;
    for (uint32_t g = 0; g < BALANCE_GROUPS; g++) {
        value[g] = (char)(LETTER + groups[g]);
    }
    struct bytes set[5] = {bytes_of("SET", 3), bytes_of(k->key, (uint32_t)strlen(k->key)),
                           bytes_of(value, BALANCE_GROUPS),
                           k->has_stored ? bytes_of("IFEQ", 4) : bytes_of("NX", 2),
                           bytes_of(k->stored, BALANCE_GROUPS)};
    return call(k, node, k->has_stored ? 5 : 4, set, &reply) && reply.kind == RESP_CLIENT_LINE;
}

static void publish(struct keeper *k)
{
    for (uint32_t g = 0; g < BALANCE_GROUPS; g++) {
        uint8_t node = (uint8_t)(k->stored[g] - LETTER);
        atomic_store_explicit(&k->b->groups[g], node < k->b->nodes_n ? node : BALANCE_NOBODY,
                              memory_order_relaxed);
    }
    atomic_store_explicit(&k->b->mapped, k->has_stored, memory_order_relaxed);
}

static void look(struct keeper *k)
{
    uint8_t groups[BALANCE_GROUPS];
    uint64_t load[BALANCE_GROUPS];
    uint64_t down = 0;
    uint32_t serving = BALANCE_NOBODY;
    for (uint32_t i = 0; i < k->b->nodes_n; i++) {
        bool up = read_mapping(k, i);
        down |= up ? 0 : UINT64_C(1) << i;
        serving = up ? i : serving;
        atomic_store_explicit(&k->b->nodes[i].down, !up, memory_order_relaxed);
    }
    if (serving == BALANCE_NOBODY) {
        return;
    }
    for (uint32_t g = 0; g < BALANCE_GROUPS; g++) {
        uint64_t counted = atomic_load_explicit(&k->b->counted[g], memory_order_relaxed);
        load[g] = counted - k->before[g];
        k->before[g] = counted;
        groups[g] = k->has_stored ? (uint8_t)(k->stored[g] - LETTER) : BALANCE_NOBODY;
    }
    uint32_t moved = balance_plan(groups, load, k->b->nodes_n, down, MOVES_MOST, &k->random);
    if (moved > 0 && write_mapping(k, serving, groups)) {
        atomic_fetch_add_explicit(&k->b->moves, k->has_stored ? moved : 0, memory_order_relaxed);
    }
    if (moved == 0 || read_mapping(k, serving)) {
        publish(k);
    }
}

void *balance_keep(void *balance)
{
    struct keeper *k = calloc(1, sizeof *k);
    struct balance *b = balance;
    uint64_t names = 0;
    if (k == NULL) {
        return NULL; /* commands go to nodes at random */
    }
    k->b = b;
    for (uint32_t i = 0; i < b->nodes_n; i++) {
        resp_client_init(&k->clients[i]);
        names = names * 31 + XXH3_64bits(b->nodes[i].name, strlen(b->nodes[i].name));
    }
    (void)snprintf(k->key, sizeof k->key, "horkos:balance:%016llx", (unsigned long long)names);
    random_init(&k->random, names ^ (uint64_t)time(NULL));
    while (!atomic_load_explicit(&b->stop, memory_order_relaxed)) {
        struct timespec t = {.tv_sec = b->period_ms / 1000,
                             .tv_nsec = (long)(b->period_ms % 1000) * 1000000};
        look(k);
        (void)nanosleep(&t, NULL);
    }
    for (uint32_t i = 0; i < b->nodes_n; i++) {
        resp_client_deinit(&k->clients[i]);
    }
    free(k);
    return NULL;
}
