/* A member's list of its hottest keys, as it travels to the leader: some of it in each message
 * (docs/WIRE.md, Hot sets). Pure. */
#ifndef HORKOS_NODE_HOT_LIST_H
#define HORKOS_NODE_HOT_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "hot/tally.h"

#define HOT_LIST_BYTES (24u * 1024u) /* of a message's value, unless its first key is longer */

/* Packs ranked entries from number *at on as far as they fit; room has HOT_LIST_BYTES and a key's
 * length more. Moves *at behind the last one; returns the bytes. */
uint32_t hot_list_pack(const struct hot_tally *t, uint32_t ranked, uint32_t *at, uint8_t *room);

/* The next key of such a value, which moves on; false at its end, or where it makes no sense. */
bool hot_list_next(struct bytes *value, struct bytes *key_out, double *rate_out);

#endif
