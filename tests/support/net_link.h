/* For the tests of links: sealed frames that can be told apart, two links that hold each other's
 * keys, the bytes between them, and a peer that has the keys and keeps no rule. */
#ifndef HORKOS_TESTS_NET_LINK_H
#define HORKOS_TESTS_NET_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/pieces.h"
#include "base/random.h"
#include "net/link.h"
#include "net/link_mac.h"
#include "wire/frame.h"

#define NET_CLUSTER 0x6e65745f74657374u
#define NET_QUEUE_MAX (256u * 1024u * 1024u)

/* A sealed frame of `bytes` bytes in all, from node 0 to node 1, with a body that follows from its
 * id. The caller frees it. */
uint8_t *net_frame_make(enum frame_kind kind, uint32_t bytes, uint64_t id);
/* The same between any nodes and workers. */
uint8_t *net_frame_between(enum frame_kind kind, uint32_t bytes, uint64_t id, uint8_t source,
                           uint8_t target, uint8_t target_worker);
uint64_t net_frame_id(struct bytes frame);
enum frame_kind net_frame_kind(struct bytes frame);
/* Whether it is, byte for byte, a frame that was made here. */
bool net_frame_intact(struct bytes frame);
/* Makes one, sends it, frees it. */
bool net_send(struct link *link, enum frame_kind kind, uint32_t bytes, uint64_t id);

/* The same in two pieces, of which the first has head_bytes; *held goes up, and down again when the
 * second is let go. */
bool net_give(struct link *link, uint32_t bytes, uint64_t id, uint32_t head_bytes, uint32_t *held);
struct pieces net_pieces(const uint8_t *frame, uint32_t bytes, uint32_t head_bytes, uint32_t *held);

struct link_config net_link_config(uint32_t end, uint32_t window);
struct link *net_link_open(uint32_t end, uint32_t window); /* end: 0 or 1 */

/* Bytes on their way. */
struct net_wire {
    uint8_t *at;
    uint32_t n, capacity;
};
void net_wire_add(struct net_wire *wire, struct bytes bytes);
/* Takes all that the link has to say now, in outputs of at most `capacity` bytes. */
void net_wire_take(struct net_wire *wire, struct link *from, uint32_t capacity);
/* Hands all over in pieces of random size up to piece_max, and is empty. */
enum link_fault net_wire_give(struct net_wire *wire, struct link *to, struct random *random,
                              uint32_t piece_max);
void net_wire_clear(struct net_wire *wire);
/* Lets both links talk until neither has anything to say. Neither receives meanwhile. */
void net_exchange(struct link *a, struct link *b);

/* Seals whatever it is told to, as the peer of end 1 would. */
struct net_forger {
    struct link_mac mac;
    uint64_t consumed;
};
void net_forger_init(struct net_forger *forger);
/* Appends a record to the wire. */
void net_forge(struct net_forger *forger, struct net_wire *wire, uint8_t kind, struct bytes body);
void net_forge_open(struct net_forger *forger, struct net_wire *wire, uint32_t window);

#endif
