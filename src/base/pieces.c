#include "base/pieces.h"

#include <stdlib.h>
#include <string.h>

void pieces_copy(const struct pieces *pieces, uint32_t at, uint8_t *out, uint32_t n)
{
    uint32_t first = at < pieces->head_bytes ? pieces->head_bytes - at : 0;
    first = first < n ? first : n;
    if (first > 0) {
        memcpy(out, pieces->head + at, first);
    }
    if (n > first) {
        memcpy(out + first, pieces->tail.at + (at + first - pieces->head_bytes), n - first);
    }
}

void pieces_free(struct pieces *pieces)
{
    free(pieces->head);
    if (pieces->release != NULL) {
        pieces->release(pieces->kept);
    }
    *pieces = (struct pieces){.head = NULL};
}
