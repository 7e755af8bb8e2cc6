/* view_msg_decode and view_decode on hostile bytes. What decodes is valid, and encodes to the very
 * bytes it came from; one byte less never decodes. */
#include "fuzz/fuzz.h"

#include "base/assert.h"
#include "base/err.h"
#include "view/message.h"

static void check_message(struct bytes in)
{
    struct view_msg msg;
    uint8_t again[VIEW_MSG_ENCODED_MAX];

    if (view_msg_decode(in, &msg) != HK_OK) {
        return;
    }
    HK_ASSERT(view_msg_invalid(&msg) == NULL);
    HK_ASSERT(in.n <= VIEW_MSG_ENCODED_MAX);
    HK_ASSERT(view_msg_encode(&msg, again) == in.n);
    HK_ASSERT(memcmp(again, in.at, in.n) == 0);
    HK_ASSERT(view_msg_decode(bytes_of(in.at, in.n - 1), &msg) == HK_ERR_CORRUPT);
}

static void check_view(struct bytes in)
{
    struct view view;
    uint8_t again[VIEW_ENCODED_MAX];
    uint32_t used = 0;

    if (view_decode(in, &view, &used) != HK_OK) {
        return;
    }
    HK_ASSERT(used <= in.n && used <= VIEW_ENCODED_MAX);
    HK_ASSERT(view_invalid(&view) == NULL);
    HK_ASSERT(view_encode(&view, again) == used);
    HK_ASSERT(memcmp(again, in.at, used) == 0);
    for (nodeset rest = view.live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        HK_ASSERT(view_cid_owner(&view, view.members[node].cid_first) == node);
    }
    HK_ASSERT(view_cid_owner(&view, view.next_cid) == NODE_NONE);
    HK_ASSERT(view_decode(bytes_of(in.at, used - 1), &view, &used) == HK_ERR_CORRUPT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= UINT16_MAX) {
        struct bytes in = bytes_of(data, (uint32_t)size);
        check_message(in);
        check_view(in);
    }
    return 0;
}
