#include "net/handshake.h"

#include <stddef.h>

#include <sodium.h>

#include "base/assert.h"
#include "base/nodeset.h"
#include "wire/frame.h"

/* The messages as they lie on the wire (docs/NET.md). All begin with the same 8 bytes, HELLO and
 * ANSWER share their layout. */
#define MAGIC 0x48534b48u /* "HKSH" in little-endian order */
#define HELLO_BYTES 96u
#define ANSWER_BYTES 96u
#define PROOF_BYTES 48u
#define TAG_BYTES 32u

enum message_type { TYPE_HELLO = 1, TYPE_ANSWER = 2, TYPE_PROOF = 3 };

enum {
    AT_MAGIC = 0,
    AT_TYPE = 4,
    AT_WORKERS = 5,
    AT_SOURCE = 6,
    AT_TARGET = 7,
    AT_SOURCE_WORKER = 8,
    AT_TARGET_WORKER = 9,
    AT_VERSION_MIN = 10,
    AT_VERSION_MAX = 12,
    AT_WISHES = 14,
    AT_RESERVED = 15,
    AT_CLUSTER = 16,
    AT_RESERVED_MORE = 24,
    AT_NONCE = 32,
    AT_TAG = 64,
    AT_PROOF_RESERVED = 5,
    AT_PROOF_TAG = 16,
};
_Static_assert(AT_NONCE + HANDSHAKE_NONCE_BYTES == AT_TAG, "docs/NET.md");
_Static_assert(AT_TAG + TAG_BYTES == HELLO_BYTES && HELLO_BYTES == ANSWER_BYTES, "docs/NET.md");
_Static_assert(AT_PROOF_TAG + TAG_BYTES == PROOF_BYTES, "docs/NET.md");
_Static_assert(HELLO_BYTES <= HANDSHAKE_MESSAGE_MAX, "out has this much room");

/* The versions of the frames that this code speaks. */
#define VERSION_MIN FRAME_VERSION
#define VERSION_MAX FRAME_VERSION

/* Wishes. A node that knows none of them takes them for reserved bytes and refuses, so only those
 * are said that an operator has asked for. */
#define WISH_SHM 1u

enum step { STEP_HELLO, STEP_ANSWER, STEP_PROOF, STEP_OVER };

const char *const handshake_refusal_names[HANDSHAKE_REFUSALS] = {
    [HANDSHAKE_OK] = "none",         [HANDSHAKE_MAGIC] = "magic", [HANDSHAKE_VERSION] = "version",
    [HANDSHAKE_CLUSTER] = "cluster", [HANDSHAKE_PROOF] = "proof", [HANDSHAKE_NODE] = "node",
    [HANDSHAKE_WORKER] = "worker",
};

/* What a hash is for. Labels have one length, so none is the beginning of another's input, and each
 * direction has its own: what one side said proves nothing when it is said to it. */
#define LABEL_BYTES 24u
static const char label_hello[LABEL_BYTES] = "horkos 1 hello";
static const char label_answer[LABEL_BYTES] = "horkos 1 answer";
static const char label_proof[LABEL_BYTES] = "horkos 1 proof";
static const char label_forth[LABEL_BYTES] = "horkos 1 keys forth";
static const char label_back[LABEL_BYTES] = "horkos 1 keys back";

/* Keyed BLAKE2b over the label, all that was said so far, and `more`. */
static void keyed_hash(const struct handshake *h, const char label[LABEL_BYTES], struct bytes more,
                       uint8_t out[TAG_BYTES])
{
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, h->self.key, CLUSTER_KEY_BYTES, TAG_BYTES);
    (void)crypto_generichash_update(&state, (const uint8_t *)label, LABEL_BYTES);
    (void)crypto_generichash_update(&state, h->transcript, h->transcript_bytes);
    (void)crypto_generichash_update(&state, more.at, more.n);
    (void)crypto_generichash_final(&state, out, TAG_BYTES);
    sodium_memzero(&state, sizeof(state));
}

static bool proves(const struct handshake *h, const char label[LABEL_BYTES], const uint8_t *message,
                   uint32_t covered)
{
    uint8_t tag[TAG_BYTES];

    keyed_hash(h, label, bytes_of(message, covered), tag);
    return sodium_memcmp(tag, message + covered, TAG_BYTES) == 0;
}

static void remember(struct handshake *h, const uint8_t *message, uint32_t bytes)
{
    HK_ASSERT(h->transcript_bytes + bytes <= sizeof(h->transcript));
    memcpy(h->transcript + h->transcript_bytes, message, bytes);
    h->transcript_bytes += bytes;
}

static void wipe(struct handshake *h)
{
    sodium_memzero(h->self.key, sizeof(h->self.key));
    sodium_memzero(h->transcript, sizeof(h->transcript));
    h->transcript_bytes = 0;
    h->step = STEP_OVER;
}

static uint32_t refuse(struct handshake *h, enum handshake_refusal refusal)
{
    wipe(h);
    h->state = HANDSHAKE_REFUSED;
    h->refusal = refusal;
    return 0;
}

static void finish(struct handshake *h)
{
    struct session_keys *keys = &h->peer.keys;

    keyed_hash(h, label_forth, bytes_of(NULL, 0), h->initiator ? keys->send : keys->receive);
    keyed_hash(h, label_back, bytes_of(NULL, 0), h->initiator ? keys->receive : keys->send);
    wipe(h);
    h->state = HANDSHAKE_DONE;
}

/* The part that HELLO and ANSWER share, of the versions min .. max. */
static void write_who(const struct handshake *h, enum message_type type, uint16_t min, uint16_t max,
                      uint8_t *out)
{
    memset(out, 0, HELLO_BYTES);
    put_u32(out + AT_MAGIC, MAGIC);
    out[AT_TYPE] = (uint8_t)type;
    out[AT_WORKERS] = h->self.workers;
    out[AT_SOURCE] = h->self.node;
    out[AT_TARGET] = h->peer.node;
    out[AT_SOURCE_WORKER] = h->peer.local_worker;
    out[AT_TARGET_WORKER] = h->peer.worker;
    put_u16(out + AT_VERSION_MIN, min);
    put_u16(out + AT_VERSION_MAX, max);
    /* The responder says what both wish. */
    out[AT_WISHES] = type == TYPE_HELLO ? h->self.shm : h->peer.shm;
    put_u64(out + AT_CLUSTER, h->self.cluster);
    memcpy(out + AT_NONCE, h->nonce, HANDSHAKE_NONCE_BYTES);
}

static bool zero(const uint8_t *at, uint32_t n)
{
    uint8_t any = 0;

    for (uint32_t i = 0; i < n; i++) {
        any |= at[i];
    }
    return any == 0;
}

/* The checks that HELLO and ANSWER share, up to the proof; *version_out is the highest version that
 * both know. */
static enum handshake_refusal check_who(const struct handshake *h, enum message_type type,
                                        const char label[LABEL_BYTES], const uint8_t *message,
                                        uint16_t *version_out)
{
    if (get_u32(message + AT_MAGIC) != MAGIC || message[AT_TYPE] != type) {
        return HANDSHAKE_MAGIC;
    }

    uint16_t min = get_u16(message + AT_VERSION_MIN);
    uint16_t max = get_u16(message + AT_VERSION_MAX);

    if (min > max || min > VERSION_MAX || max < VERSION_MIN) {
        return HANDSHAKE_VERSION;
    }
    if (get_u64(message + AT_CLUSTER) != h->self.cluster) {
        return HANDSHAKE_CLUSTER;
    }
    if (!proves(h, label, message, AT_TAG)) {
        return HANDSHAKE_PROOF;
    }
    if ((message[AT_WISHES] & ~WISH_SHM) != 0 ||
        !zero(message + AT_RESERVED, AT_CLUSTER - AT_RESERVED) ||
        !zero(message + AT_RESERVED_MORE, AT_NONCE - AT_RESERVED_MORE)) {
        return HANDSHAKE_MAGIC;
    }
    *version_out = max < VERSION_MAX ? max : (uint16_t)VERSION_MAX;
    return HANDSHAKE_OK;
}

static bool workers_possible(const uint8_t *message)
{
    return message[AT_WORKERS] >= 1 && message[AT_WORKERS] <= HANDSHAKE_WORKERS_MAX &&
           message[AT_SOURCE_WORKER] < message[AT_WORKERS];
}

static uint32_t input_hello(struct handshake *h, const uint8_t *message, uint8_t *out)
{
    enum handshake_refusal refusal =
        check_who(h, TYPE_HELLO, label_hello, message, &h->peer.version);

    if (refusal != HANDSHAKE_OK) {
        return refuse(h, refusal);
    }

    uint8_t source = message[AT_SOURCE];

    if (message[AT_TARGET] != h->self.node || source == h->self.node ||
        !nodeset_has(h->nodes, source)) {
        return refuse(h, HANDSHAKE_NODE);
    }
    if (!workers_possible(message) || message[AT_TARGET_WORKER] >= h->self.workers) {
        return refuse(h, HANDSHAKE_WORKER);
    }
    h->peer.node = source;
    h->peer.workers = message[AT_WORKERS];
    h->peer.worker = message[AT_SOURCE_WORKER];
    h->peer.local_worker = message[AT_TARGET_WORKER];
    h->peer.shm = h->self.shm && (message[AT_WISHES] & WISH_SHM) != 0;
    remember(h, message, HELLO_BYTES);

    write_who(h, TYPE_ANSWER, h->peer.version, h->peer.version, out);
    keyed_hash(h, label_answer, bytes_of(out, AT_TAG), out + AT_TAG);
    remember(h, out, ANSWER_BYTES);
    h->step = STEP_PROOF;
    return ANSWER_BYTES;
}

static uint32_t input_answer(struct handshake *h, const uint8_t *message, uint8_t *out)
{
    enum handshake_refusal refusal =
        check_who(h, TYPE_ANSWER, label_answer, message, &h->peer.version);

    if (refusal != HANDSHAKE_OK) {
        return refuse(h, refusal);
    }
    if (message[AT_SOURCE] != h->peer.node || message[AT_TARGET] != h->self.node) {
        return refuse(h, HANDSHAKE_NODE);
    }
    if (!workers_possible(message) || message[AT_SOURCE_WORKER] != h->peer.worker ||
        message[AT_TARGET_WORKER] != h->peer.local_worker) {
        return refuse(h, HANDSHAKE_WORKER);
    }
    /* The responder chooses one version, it does not offer a range. */
    if (get_u16(message + AT_VERSION_MIN) != get_u16(message + AT_VERSION_MAX)) {
        return refuse(h, HANDSHAKE_VERSION);
    }
    h->peer.workers = message[AT_WORKERS];
    h->peer.shm = h->self.shm && (message[AT_WISHES] & WISH_SHM) != 0;
    remember(h, message, ANSWER_BYTES);

    memset(out, 0, PROOF_BYTES);
    put_u32(out + AT_MAGIC, MAGIC);
    out[AT_TYPE] = TYPE_PROOF;
    keyed_hash(h, label_proof, bytes_of(out, AT_PROOF_TAG), out + AT_PROOF_TAG);
    remember(h, out, PROOF_BYTES);
    finish(h);
    return PROOF_BYTES;
}

static uint32_t input_proof(struct handshake *h, const uint8_t *message)
{
    if (get_u32(message + AT_MAGIC) != MAGIC || message[AT_TYPE] != TYPE_PROOF) {
        return refuse(h, HANDSHAKE_MAGIC);
    }
    if (!proves(h, label_proof, message, AT_PROOF_TAG)) {
        return refuse(h, HANDSHAKE_PROOF);
    }
    if (!zero(message + AT_PROOF_RESERVED, AT_PROOF_TAG - AT_PROOF_RESERVED)) {
        return refuse(h, HANDSHAKE_MAGIC);
    }
    remember(h, message, PROOF_BYTES);
    finish(h);
    return 0;
}

static void begin(struct handshake *h, const struct handshake_self *self,
                  const uint8_t nonce[HANDSHAKE_NONCE_BYTES])
{
    HK_ASSERT(self->node < NODES_MAX);
    HK_ASSERT(self->workers >= 1 && self->workers <= HANDSHAKE_WORKERS_MAX);
    memset(h, 0, sizeof(*h));
    h->self = *self;
    memcpy(h->nonce, nonce, HANDSHAKE_NONCE_BYTES);
}

uint32_t handshake_call(struct handshake *h, const struct handshake_self *self,
                        const uint8_t nonce[HANDSHAKE_NONCE_BYTES], uint8_t node, uint8_t worker,
                        uint8_t local_worker, uint8_t *out)
{
    HK_ASSERT(node < NODES_MAX && node != self->node && local_worker < self->workers);
    begin(h, self, nonce);
    h->initiator = true;
    h->peer.caller = true;
    h->peer.node = node;
    h->peer.worker = worker;
    h->peer.local_worker = local_worker;
    write_who(h, TYPE_HELLO, VERSION_MIN, VERSION_MAX, out);
    keyed_hash(h, label_hello, bytes_of(out, AT_TAG), out + AT_TAG);
    remember(h, out, HELLO_BYTES);
    h->step = STEP_ANSWER;
    return HELLO_BYTES;
}

void handshake_listen(struct handshake *h, const struct handshake_self *self,
                      const uint8_t nonce[HANDSHAKE_NONCE_BYTES], uint64_t nodes)
{
    begin(h, self, nonce);
    h->nodes = nodes;
    h->step = STEP_HELLO;
}

uint32_t handshake_wants(const struct handshake *h)
{
    switch ((enum step)h->step) {
    case STEP_HELLO:
        return HELLO_BYTES;
    case STEP_ANSWER:
        return ANSWER_BYTES;
    case STEP_PROOF:
        return PROOF_BYTES;
    case STEP_OVER:
        break;
    }
    return 0;
}

uint32_t handshake_input(struct handshake *h, const uint8_t *message, uint8_t *out)
{
    switch ((enum step)h->step) {
    case STEP_HELLO:
        return input_hello(h, message, out);
    case STEP_ANSWER:
        return input_answer(h, message, out);
    case STEP_PROOF:
        return input_proof(h, message);
    case STEP_OVER:
        break;
    }
    return 0;
}
