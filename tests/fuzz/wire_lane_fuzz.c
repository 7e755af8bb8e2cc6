/* lane_head_decode on hostile bytes: what it takes encodes into the same bytes again. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "base/assert.h"
#include "wire/lane.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 16) {
        return 0;
    }
    uint32_t n = (uint32_t)size;
    uint8_t *body = malloc(n + (n == 0)); /* exactly, so that the sanitizer sees reads past it */
    struct lane_head head;
    HK_ASSERT(body != NULL);
    if (n > 0) {
        memcpy(body, data, n);
    }
    if (lane_head_decode(bytes_of(body, n), &head) == NULL) {
        uint8_t again[LANE_HEAD];
        HK_ASSERT(n >= LANE_HEAD && (head.sequence == 0) == (n == LANE_HEAD));
        HK_ASSERT(head.life != 0 && head.acked_lane < LANE_WORKERS);
        lane_head_encode(&head, again);
        HK_ASSERT(memcmp(again, body, LANE_HEAD) == 0);
    }
    free(body);
    return 0;
}
