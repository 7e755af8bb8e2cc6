/* msg_decode on hostile bytes: the body of a frame, message after message until one is corrupt. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/meta.h"
#include "wire/msg.h"

/* Every byte short is corrupt: a message says itself how long it is. A few lengths will do. */
static void check_truncated(struct bytes in, uint32_t used)
{
    struct msg m;
    uint32_t ignored = 0;

    HK_ASSERT(msg_decode(bytes_of(in.at, used - 1), &m, &ignored) == HK_ERR_CORRUPT);
    HK_ASSERT(msg_decode(bytes_of(in.at, used / 2), &m, &ignored) == HK_ERR_CORRUPT);
    HK_ASSERT(msg_decode(bytes_of(in.at, MSG_HEADER - 1), &m, &ignored) == HK_ERR_CORRUPT);
}

static void check_decoded(const struct msg *m, struct bytes in, uint32_t used)
{
    HK_ASSERT(used >= MSG_HEADER && used <= in.n && used == msg_size(m));
    HK_ASSERT(m->key.n <= MSG_KEY_MAX && m->value.n <= MSG_VALUE_MAX);
    HK_ASSERT(m->key.at == in.at + MSG_HEADER);
    HK_ASSERT(m->value.at == m->key.at + m->key.n);
    HK_ASSERT((m->vflags & ~KEY_VALUE_FLAGS) == 0);
    HK_ASSERT((m->vflags & KEY_TOMBSTONE) == 0 || m->value.n == 0);
    HK_ASSERT((m->vflags & KEY_DEADLINE) == 0 || m->value.n >= 8);

    uint8_t *again = malloc(used);

    HK_ASSERT(again != NULL);
    msg_encode(m, again);
    HK_ASSERT(memcmp(again, in.at, used) == 0);
    free(again);
    check_truncated(in, used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 20)
        return 0;

    struct bytes rest = bytes_of(data, (uint32_t)size);

    while (rest.n > 0) {
        struct msg m;
        uint32_t used = 0;

        if (msg_decode(rest, &m, &used) != HK_OK)
            break;
        check_decoded(&m, rest, used);
        rest = bytes_of(rest.at + used, rest.n - used);
    }
    return 0;
}
