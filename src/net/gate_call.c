/* Calls: whom, when, and how often.
 *
 * The state of a pair of workers (local, remote):
 *
 *   WAITS -> CALLING [call]; CALLING -> STANDS [stands]; CALLING -> WAITS [failed];
 *   STANDS -> WAITS [lost]
 *
 * After a failure the whole node waits, twice as long each time, with jitter, and then one call
 * tries alone; once it stands the rest follow. A connection that breaks soon after it was made (the
 * other side took it and then threw it away) delays its own pair in the same way. */
#include "net/gate_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"

int gate_calls_init(struct gate *gate)
{
    const struct gate_config *config = &gate->config;
    for (uint8_t node = (uint8_t)(config->self.node + 1); node < NODES_MAX; node++) {
        struct gate_callee *callee = &gate->callees[node];
        if (!nodeset_has(config->nodes, node)) {
            continue;
        }
        callee->pairs =
            calloc((size_t)config->self.workers * HANDSHAKE_WORKERS_MAX, sizeof *callee->pairs);
        if (callee->pairs == NULL) {
            return HK_ERR_NOMEM;
        }
    }
    return HK_OK;
}

void gate_calls_deinit(struct gate *gate)
{
    for (uint32_t node = 0; node < NODES_MAX; node++) {
        if (gate->callees[node].lookup != NULL) {
            gate_lookup_abandon(gate->callees[node].lookup);
        }
        free(gate->callees[node].pairs);
    }
}

static uint64_t grown(const struct gate *gate, uint64_t backoff_us)
{
    uint64_t max_us = gate->config.backoff_max_us;
    if (backoff_us == 0) {
        return gate->config.backoff_min_us;
    }
    return backoff_us * 2 < max_us ? backoff_us * 2 : max_us;
}

/* Between half of it and all, so that nodes that fail together do not try together. */
static uint64_t jittered(struct gate *gate, uint64_t backoff_us)
{
    return random_between(&gate->random, backoff_us / 2, backoff_us);
}

static void node_failed(struct gate *gate, uint8_t node, const char *why, uint64_t now_us)
{
    struct gate_callee *callee = &gate->callees[node];
    gate_count(&gate->count.calls_failed);
    callee->backoff_us = grown(gate, callee->backoff_us);
    callee->next_us = now_us + jittered(gate, callee->backoff_us);
    if (now_us - callee->known_us >= GATE_LOOKUP_US) {
        callee->known = false; /* perhaps the name means another address now */
    }
    if (callee->failures++ == 0) {
        callee->failing_us = now_us;
    }
    if (callee->failures >= GATE_REPORT_FAILURES && !callee->reported &&
        now_us - callee->failing_us >= GATE_REPORT_US) {
        callee->reported = true;
        gate_report(gate,
                    "node %u at %s cannot be reached: %s; is it running, and is its address in "
                    "[peers] right? This node goes on trying",
                    node, gate->config.peers[node].text, why);
    }
}

static void node_answered(struct gate *gate, uint8_t node)
{
    struct gate_callee *callee = &gate->callees[node];
    callee->failures = 0;
    callee->backoff_us = 0;
    callee->next_us = 0;
    if (callee->reported) {
        callee->reported = false;
        gate_report(gate, "node %u at %s is reached again", node, gate->config.peers[node].text);
    }
}

void gate_call_ended(struct gate *gate, uint8_t node, uint32_t pair, const char *why,
                     uint32_t workers, uint64_t now_us)
{
    struct gate_callee *callee = &gate->callees[node];
    HK_ASSERT(callee->calling > 0 && callee->pairs[pair].state == PAIR_CALLING);
    callee->calling--;
    if (why != NULL) {
        callee->pairs[pair].state = PAIR_WAITS;
        node_failed(gate, node, why, now_us);
        return;
    }
    callee->pairs[pair].state = PAIR_STANDS;
    callee->pairs[pair].since_us = now_us;
    callee->remote_workers = workers;
    node_answered(gate, node);
}

static void pair_lost(struct gate *gate, struct gate_pair *pair, uint64_t now_us)
{
    if (pair->state != PAIR_STANDS) {
        return;
    }
    pair->state = PAIR_WAITS;
    if (now_us - pair->since_us >= gate->config.backoff_max_us) {
        pair->backoff_us = 0;
        pair->next_us = 0;
    } else {
        pair->backoff_us = grown(gate, pair->backoff_us);
        pair->next_us = now_us + jittered(gate, pair->backoff_us);
    }
}

void gate_calls_lost(struct gate *gate, uint64_t now_us)
{
    uint32_t local_workers = gate->config.self.workers;
    for (uint32_t node = 0; node < NODES_MAX; node++) {
        struct gate_callee *callee = &gate->callees[node];
        for (uint32_t l = 0; callee->pairs != NULL && l < local_workers; l++) {
            _Atomic uint64_t *lost = &gate->lost[node * HANDSHAKE_WORKERS_MAX + l];
            uint64_t bits = atomic_exchange_explicit(lost, 0, memory_order_relaxed);
            for (; bits != 0; bits &= bits - 1) {
                uint32_t r = (uint32_t)__builtin_ctzll(bits);
                pair_lost(gate, &callee->pairs[r * local_workers + l], now_us);
            }
        }
    }
}

/* 0, or errno. On success the session lives on. */
static int call(struct gate *gate, uint8_t node, uint32_t index, uint64_t now_us)
{
    struct gate_callee *callee = &gate->callees[node];
    uint8_t nonce[HANDSHAKE_NONCE_BYTES];
    uint32_t local_workers = gate->config.self.workers;
    int yes = 1;
    int fd = socket(callee->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(fd, (const struct sockaddr *)&callee->at, callee->at_n) != 0 &&
        errno != EINPROGRESS) {
        int error = errno;
        (void)close(fd);
        return error;
    }
    struct gate_session *session =
        gate_session_create(gate, fd, gate->config.peers[node].text, now_us);
    if (session == NULL) {
        (void)close(fd);
        return ENOMEM;
    }
    randombytes_buf(nonce, sizeof nonce);
    session->calls = true;
    session->connecting = true;
    session->node = node;
    session->pair = index;
    session->out_n = handshake_call(&session->handshake, &gate->config.self, nonce, node,
                                    (uint8_t)(index / local_workers),
                                    (uint8_t)(index % local_workers), session->out);
    list_push_back(&gate->callers, &session->link);
    if (!gate_session_watch(gate, session)) {
        int error = errno;
        gate_session_destroy(gate, session);
        return error;
    }
    callee->calling++;
    callee->pairs[index].state = PAIR_CALLING;
    return 0;
}

/* Whether the address is known. *why_out: not, and asking again now is no use. */
static bool find_address(struct gate *gate, uint8_t node, uint64_t now_us, const char **why_out)
{
    struct gate_callee *callee = &gate->callees[node];
    const char *text = gate->config.peers[node].text;
    *why_out = NULL;
    if (callee->known) {
        return true;
    }
    if (callee->lookup == NULL) {
        callee->known_us = now_us;
        if (address_numeric(text, &callee->at, &callee->at_n)) {
            callee->known = true;
            return true;
        }
        callee->lookup = gate_lookup_begin(text, gate->wake_fd);
        if (callee->lookup == NULL) {
            *why_out = "no thread to look its name up";
        }
        return false;
    }
    if (gate_lookup_end(callee->lookup, &callee->at, &callee->at_n, why_out)) {
        callee->lookup = NULL;
        callee->known = *why_out == NULL;
    }
    return callee->known;
}

/* The next pair that may be called now, or UINT32_MAX and when one may. */
static uint32_t find_pair(struct gate *gate, struct gate_callee *callee, uint64_t now_us,
                          uint64_t *next_us)
{
    /* Before the number of the peer's workers is known, worker 0 calls worker 0. */
    uint32_t n =
        callee->remote_workers == 0 ? 1 : callee->remote_workers * gate->config.self.workers;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t index = (callee->cursor + i) % n;
        const struct gate_pair *pair = &callee->pairs[index];
        if (pair->state != PAIR_WAITS) {
            continue;
        }
        if (pair->next_us <= now_us) {
            callee->cursor = index + 1;
            return index;
        }
        *next_us = pair->next_us < *next_us ? pair->next_us : *next_us;
    }
    return UINT32_MAX;
}

static uint64_t call_node(struct gate *gate, uint8_t node, uint64_t now_us)
{
    struct gate_callee *callee = &gate->callees[node];
    uint64_t next_us = UINT64_MAX;
    for (;;) {
        const char *why;
        bool alone = callee->failures > 0 || callee->remote_workers == 0;
        if (callee->calling >= (alone ? 1 : GATE_CALLS_MAX)) {
            return UINT64_MAX; /* the end of a call comes back here */
        }
        if (now_us < callee->next_us) {
            return callee->next_us;
        }
        uint32_t index = find_pair(gate, callee, now_us, &next_us);
        if (index == UINT32_MAX) {
            return next_us;
        }
        bool found = find_address(gate, node, now_us, &why);
        if (!found && why == NULL) {
            return UINT64_MAX; /* the look-up wakes the gate */
        }
        gate_count(&gate->count.calls);
        int error = found ? call(gate, node, index, now_us) : 0;
        if (!found || error != 0) {
            node_failed(gate, node, found ? strerror(error) : why, now_us);
        }
    }
}

uint64_t gate_calls_begin(struct gate *gate, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;
    for (uint8_t node = 0; node < NODES_MAX; node++) {
        if (gate->callees[node].pairs != NULL) {
            uint64_t at_us = call_node(gate, node, now_us);
            next_us = at_us < next_us ? at_us : next_us;
        }
    }
    return next_us;
}
