/* handshake_input on hostile bytes, as either side.
 *
 * Input: one byte that chooses what happens, then bytes that become the messages. Bit 0: the target
 * calls, else it is called. Bit 1: the bytes are laid over (exclusive or) what a peer with the key
 * would say, so that one field can be wrong at a time. Bit 2: the tag is set right afterwards, as a
 * peer with the key that lies would do. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include <sodium.h>

#include "base/assert.h"
#include "base/nodeset.h"
#include "net/handshake.h"

enum { MODE_CALLS = 1, MODE_OVERLAY = 2, MODE_TAG = 4 };

#define SELF 1
#define PEER 2
#define NODES (nodeset_of(SELF) | nodeset_of(PEER) | nodeset_of(40))

struct said {
    uint8_t bytes[3 * HANDSHAKE_MESSAGE_MAX];
    uint32_t n;
};

static void say(struct said *said, const uint8_t *message, uint32_t n)
{
    memcpy(said->bytes + said->n, message, n);
    said->n += n;
}

static struct handshake_self self_of(uint8_t node)
{
    struct handshake_self self = {.cluster = 77, .node = node, .workers = 4};

    memset(self.key, 9, sizeof(self.key));
    return self;
}

/* The label says which message it is; docs/NET.md. */
static void set_tag(uint8_t *message, uint32_t n, const struct said *said, bool to_caller)
{
    static const char labels[3][24] = {"horkos 1 hello", "horkos 1 answer", "horkos 1 proof"};
    const char *label = to_caller ? labels[1] : said->n == 0 ? labels[0] : labels[2];
    struct handshake_self self = self_of(SELF);
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, self.key, CLUSTER_KEY_BYTES, 32);
    (void)crypto_generichash_update(&state, (const uint8_t *)label, 24);
    (void)crypto_generichash_update(&state, said->bytes, said->n);
    (void)crypto_generichash_update(&state, message, n - 32);
    (void)crypto_generichash_final(&state, message + n - 32, 32);
}

/* A handshake that is done says only what can be. */
static void check_done(const struct handshake *h)
{
    HK_ASSERT(h->peer.node < NODES_MAX && h->peer.node != SELF);
    HK_ASSERT(nodeset_has(NODES, h->peer.node));
    HK_ASSERT(h->peer.workers >= 1 && h->peer.workers <= HANDSHAKE_WORKERS_MAX);
    HK_ASSERT(h->peer.worker < h->peer.workers && h->peer.local_worker < 4);
    HK_ASSERT(h->peer.version == 1);
    HK_ASSERT(memcmp(h->peer.keys.send, h->peer.keys.receive, SESSION_KEY_BYTES) != 0);
}

static void check_state(const struct handshake *h, uint32_t answered, bool honest)
{
    switch (h->state) {
    case HANDSHAKE_RUNNING:
        HK_ASSERT(honest && h->refusal == HANDSHAKE_OK && handshake_wants(h) > 0 && answered > 0);
        break;
    case HANDSHAKE_DONE:
        HK_ASSERT(honest && h->refusal == HANDSHAKE_OK && handshake_wants(h) == 0);
        check_done(h);
        break;
    case HANDSHAKE_REFUSED:
        HK_ASSERT(h->refusal > HANDSHAKE_OK && h->refusal < HANDSHAKE_REFUSALS);
        HK_ASSERT(handshake_wants(h) == 0 && answered == 0);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || sodium_init() < 0)
        return 0;

    uint8_t mode = data[0];
    bool calls = (mode & MODE_CALLS) != 0;
    struct handshake_self self = self_of(SELF), other_self = self_of(PEER);
    uint8_t nonces[2][HANDSHAKE_NONCE_BYTES] = {{1}, {2}};
    uint8_t due[HANDSHAKE_MESSAGE_MAX] = {0}, out[HANDSHAKE_MESSAGE_MAX];
    struct handshake h, other;
    struct said said = {.n = 0};
    size_t at = 1;

    if (calls) {
        say(&said, out, handshake_call(&h, &self, nonces[0], PEER, 2, 3, out));
        handshake_listen(&other, &other_self, nonces[1], NODES);
        (void)handshake_input(&other, out, due);
    } else {
        handshake_listen(&h, &self, nonces[0], NODES);
        (void)handshake_call(&other, &other_self, nonces[1], SELF, 2, 3, due);
    }
    for (uint32_t n; (n = handshake_wants(&h)) > 0;) {
        uint8_t *message = malloc(n); /* exactly, so that the sanitizer sees reads past it */
        bool changed = false;

        HK_ASSERT(message != NULL);
        for (uint32_t i = 0; i < n; i++, at++) {
            uint8_t byte = at < size ? data[at] : 0;

            message[i] = (mode & MODE_OVERLAY) != 0 ? due[i] ^ byte : byte;
        }
        if ((mode & MODE_TAG) != 0)
            set_tag(message, n, &said, calls);
        changed = memcmp(message, due, n) != 0;

        uint32_t answered = handshake_input(&h, message, out);

        check_state(&h, answered, (mode & MODE_TAG) != 0 || !changed);
        say(&said, message, n);
        say(&said, out, answered);
        if (handshake_wants(&other) > 0 && answered > 0)
            (void)handshake_input(&other, out, due);
        free(message);
    }
    HK_ASSERT(handshake_input(&h, due, out) == 0);
    return 0;
}
