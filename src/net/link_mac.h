/* The MAC of records: Poly1305 under a key that is used once, for one record at one place of the
 * stream. The keys are ChaCha20's key stream under the direction's session key, 32 bytes a record;
 * sixteen are made at a time (docs/NET.md says why this one). */
#ifndef HORKOS_NET_LINK_MAC_H
#define HORKOS_NET_LINK_MAC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "net/handshake.h"

#define LINK_MAC_BATCH 16u

struct link_mac {
    uint64_t sequence; /* of the next record */
    uint8_t key[SESSION_KEY_BYTES];
    uint8_t once[LINK_MAC_BATCH][32];
};

void link_mac_init(struct link_mac *mac, const uint8_t key[SESSION_KEY_BYTES]);
void link_mac_wipe(struct link_mac *mac);
/* The tag of the next record; LINK_MAC_BYTES bytes. */
void link_mac_seal(struct link_mac *mac, struct bytes record, uint8_t *tag_out);
/* Whether the tag is that of the next record. False: nothing may be accepted any more. */
bool link_mac_open(struct link_mac *mac, struct bytes record, const uint8_t *tag)
    __attribute__((warn_unused_result));

#endif
