/* Bytes that are handed on without a copy. */
#ifndef HORKOS_BASE_PIECES_H
#define HORKOS_BASE_PIECES_H

#include <stdint.h>

#include "base/bytes.h"

/* Bytes in two pieces that belong together and are handed from one owner to the next. head is
 * malloc's memory. tail is a piece of somebody else's that stays as it is until release(kept); with
 * no tail there may be no release. */
struct pieces {
    uint8_t *head;
    uint32_t head_bytes;
    struct bytes tail;
    void (*release)(void *kept);
    void *kept;
};
/* Copies n bytes from place `at` on. */
void pieces_copy(const struct pieces *pieces, uint32_t at, uint8_t *out, uint32_t n);
void pieces_free(struct pieces *pieces);

#endif
