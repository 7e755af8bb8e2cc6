/* frame_open and frame_length on hostile bytes.
 *
 * Input: one byte that chooses how the rest is treated, then the frame. Random bytes hardly ever
 * have the right checksum, so bit 0 asks for it to be set right; bits 1 and 2 set magic, version
 * and length right as well. Without them the checks themselves are on trial. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/assert.h"
#include "base/nodeset.h"
#include "wire/frame.h"

#define CLUSTER 0x3131313131313131u
#define SELF 1
#define NONCE 0x3232323232323232u

enum mend {
    MEND_CHECKSUM = 1,
    MEND_MAGIC = 2,
    MEND_LENGTH = 4,
};

/* Offsets of docs/WIRE.md. */
static void mend(uint8_t *frame, uint32_t n, uint8_t how)
{
    if ((how & MEND_MAGIC) != 0) {
        put_u32(frame + 8, FRAME_MAGIC);
        put_u16(frame + 12, FRAME_VERSION);
    }
    if ((how & MEND_LENGTH) != 0)
        put_u32(frame + 24, n - FRAME_HEADER);
    if ((how & MEND_CHECKSUM) != 0)
        put_u64(frame, XXH3_64bits(frame + 8, n - 8));
}

/* What was let through is what this receiver may act on, and seals into the same bytes again. */
static void check_opened(const struct frame *f, const uint8_t *frame, uint32_t n)
{
    HK_ASSERT(f->version >= 1 && f->version <= FRAME_VERSION_MAX);
    HK_ASSERT(f->kind == FRAME_VIEW || f->kind == FRAME_BATCH || f->kind == FRAME_LANE);
    HK_ASSERT(f->source < NODES_MAX && f->source != SELF);
    HK_ASSERT(f->target == SELF);
    HK_ASSERT(f->cluster == CLUSTER);
    HK_ASSERT(f->nonce != 0);
    HK_ASSERT(f->target_nonce == NONCE || (f->target_nonce == 0 && f->kind == FRAME_VIEW));
    HK_ASSERT(f->body.at == frame + FRAME_HEADER && f->body.n == n - FRAME_HEADER);

    uint8_t *again = malloc(n);

    HK_ASSERT(again != NULL);
    memset(again, 0xee, FRAME_HEADER);
    if (f->body.n > 0)
        memcpy(again + FRAME_HEADER, f->body.at, f->body.n);
    HK_ASSERT(frame_seal(f, again) == n);
    HK_ASSERT(memcmp(again, frame, n) == 0);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame f;
    uint32_t length = 0;

    if (size < 1 || size > 1 << 20)
        return 0;

    uint32_t n = (uint32_t)size - 1;
    uint8_t *frame = malloc(n + (n == 0)); /* exactly, so that the sanitizer sees reads past it */

    HK_ASSERT(frame != NULL);
    memcpy(frame, data + 1, n);
    if (n >= FRAME_HEADER)
        mend(frame, n, data[0]);

    enum frame_drop first = frame_length(bytes_of(frame, n), &length);
    enum frame_drop drop = frame_open(bytes_of(frame, n), CLUSTER, SELF, NONCE, &f);

    HK_ASSERT(drop < FRAME_DROPS);
    if (first != FRAME_DROP_NONE)
        HK_ASSERT(drop == first);
    else if (length != n)
        HK_ASSERT(drop == (n < length ? FRAME_DROP_SHORT : FRAME_DROP_LENGTH));
    if (drop == FRAME_DROP_NONE)
        check_opened(&f, frame, n);
    free(frame);
    return 0;
}
