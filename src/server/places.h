/* Places in the order of keys, which SCAN tells as numbers in spaces whose keys have one: bounded
 * memory of this node, for all its clients. A scan has one entry, with its last two places, so that
 * the last call may be repeated; when room runs out, the scan that was silent the longest is
 * forgotten, and its number is found no more. Any thread. */
#ifndef HORKOS_SERVER_PLACES_H
#define HORKOS_SERVER_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "resp/out.h"

#define PLACES_MAX 1024u                       /* scans */
#define PLACES_BYTES_MAX (16u * 1024u * 1024u) /* of their places, all together */

struct places;

/* node: numbers of other nodes are not found here; random: nor those of an earlier process, most
 * likely. NULL: no memory. */
struct places *places_create(uint8_t node, uint64_t random) __attribute__((warn_unused_result));
void places_destroy(struct places *places);

/* As resp_host.place_keep and place_find. A place is at most 64 KiB and a few bytes. */
uint64_t places_keep(struct places *places, uint64_t number, struct bytes place);
bool places_find(struct places *places, uint64_t number, struct resp_out *place_out);

#endif
