/* resp_client_parse on hostile bytes: reply after reply until one is broken or needs more. */
#include "fuzz/fuzz.h"

#include "base/assert.h"
#include "base/err.h"
#include "tools/resp_client.h"

static void check_reply(const struct resp_client_reply *reply, struct bytes in, uint32_t used)
{
    struct resp_client_reply again;
    uint32_t ignored = 0;
    HK_ASSERT(used >= 3 && used <= in.n);
    HK_ASSERT(in.at[used - 2] == '\r' && in.at[used - 1] == '\n');
    HK_ASSERT(reply->text.n == 0 ||
              (reply->text.at > in.at && reply->text.at + reply->text.n == in.at + used - 2));
    HK_ASSERT(reply->kind == RESP_CLIENT_NUMBER || reply->number == 0);
    HK_ASSERT((reply->kind != RESP_CLIENT_NUMBER && reply->kind != RESP_CLIENT_NIL) ||
              reply->text.n == 0);
    /* Without its last byte it needs more, and never is another reply. */
    HK_ASSERT(resp_client_parse(bytes_of(in.at, used - 1), &again, &ignored) == HK_ERR_NOTFOUND);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 20) {
        return 0;
    }
    struct bytes rest = bytes_of(data, (uint32_t)size);
    for (;;) {
        struct resp_client_reply reply;
        uint32_t used = 0;
        int err = resp_client_parse(rest, &reply, &used);
        if (err != HK_OK) {
            HK_ASSERT(used == 0 && reply.text.n == 0);
            HK_ASSERT(err == HK_ERR_NOTFOUND || err == HK_ERR_CORRUPT || err == HK_ERR_TOOBIG ||
                      err == HK_ERR_TYPE);
            return 0;
        }
        check_reply(&reply, rest, used);
        rest = bytes_of(rest.at + used, rest.n - used);
    }
}
