/* How two nodes prove to each other, at connect, that they hold the cluster's key, agree on a
 * version of the frames and say who they are. Pure: bytes in, bytes out. Three messages of fixed
 * length (docs/NET.md): the initiator's HELLO, the responder's ANSWER, the initiator's PROOF, each
 * with a proof of the key. Keys of the session follow from the key and all three messages, nonces
 * included, so nothing recorded from another session is ever accepted. The key and what was said
 * are wiped from struct handshake as soon as the handshake is over.
 *
 * Keyed BLAKE2b comes from libsodium: the process calls sodium_init once, at its start. */
#ifndef HORKOS_NET_HANDSHAKE_H
#define HORKOS_NET_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define CLUSTER_KEY_BYTES 32u
#define HANDSHAKE_NONCE_BYTES 32u
#define SESSION_KEY_BYTES 32u
#define HANDSHAKE_MESSAGE_MAX 128u
#define HANDSHAKE_WORKERS_MAX 64u /* of one node */

/* The order of the checks. The first two can be forged by anybody, and so can the third on a HELLO;
 * the last two are said by somebody who holds the key. */
enum handshake_refusal {
    HANDSHAKE_OK,
    HANDSHAKE_MAGIC,   /* these are not a node's bytes, or not the message that is due */
    HANDSHAKE_VERSION, /* no version of the frames that both know */
    HANDSHAKE_CLUSTER, /* another cluster */
    HANDSHAKE_PROOF,   /* it does not know the key */
    HANDSHAKE_NODE, /* a node id that is not configured, not the one that was called, or our own */
    HANDSHAKE_WORKER, /* a worker or a number of workers that cannot be */
    HANDSHAKE_REFUSALS
};
extern const char *const handshake_refusal_names[HANDSHAKE_REFUSALS];

/* Who speaks. */
struct handshake_self {
    uint64_t cluster;
    uint8_t node;
    uint8_t workers; /* how many this node has: 1 .. HANDSHAKE_WORKERS_MAX */
    bool shm;        /* it would rather speak through shared memory */
    uint8_t key[CLUSTER_KEY_BYTES];
};

/* What a finished handshake has agreed upon. */
struct session_keys {
    uint8_t send[SESSION_KEY_BYTES];
    uint8_t receive[SESSION_KEY_BYTES];
};
struct handshake_peer {
    uint8_t node;
    uint8_t workers;      /* how many the peer has */
    uint8_t worker;       /* of the peer, at the other end of this connection */
    uint8_t local_worker; /* ours at this end */
    uint16_t version;     /* of the frames */
    bool caller;          /* we have called */
    bool shm;             /* both would rather speak through shared memory */
    struct session_keys keys;
};

enum handshake_state { HANDSHAKE_RUNNING, HANDSHAKE_DONE, HANDSHAKE_REFUSED };

struct handshake {
    struct handshake_self self;
    enum handshake_state state;
    enum handshake_refusal refusal;
    struct handshake_peer peer;
    bool initiator;
    uint8_t step;
    uint64_t nodes; /* responder: the nodes that may call (nodeset) */
    uint8_t nonce[HANDSHAKE_NONCE_BYTES];
    uint8_t transcript[3u * HANDSHAKE_MESSAGE_MAX];
    uint32_t transcript_bytes;
};

/* The initiator calls worker `worker` of node `node` for its own worker local_worker. nonce: fresh
 * random bytes. out: HANDSHAKE_MESSAGE_MAX bytes for the first message; returns its length. */
uint32_t handshake_call(struct handshake *h, const struct handshake_self *self,
                        const uint8_t nonce[HANDSHAKE_NONCE_BYTES], uint8_t node, uint8_t worker,
                        uint8_t local_worker, uint8_t *out);
/* The responder waits for a HELLO of one of `nodes`. */
void handshake_listen(struct handshake *h, const struct handshake_self *self,
                      const uint8_t nonce[HANDSHAKE_NONCE_BYTES], uint64_t nodes);
/* How many bytes the next message has; nothing beyond may be read before it was handed over. 0: the
 * handshake is over. */
uint32_t handshake_wants(const struct handshake *h);
/* The next message, whole. Writes what is to be sent back (up to HANDSHAKE_MESSAGE_MAX bytes) to
 * out and returns its length. The state says how it ended; a refusal sends nothing. */
uint32_t handshake_input(struct handshake *h, const uint8_t *message, uint8_t *out);

#endif
