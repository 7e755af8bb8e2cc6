/* Ranges of a transaction.
 * A pair of a range's answer: lengths of key and value, 4 bytes each; key, value. */
#include "engine/txn.h"

#include "wire/msg.h"

#define PAIR_HEADER 8u

bool txn_pair_take(struct bytes *rest, struct bytes *key_out, struct bytes *value_out)
{
    if (rest->n < PAIR_HEADER) {
        return false;
    }
    uint32_t key_n = get_u32(rest->at), value_n = get_u32(rest->at + 4);
    uint64_t bytes = PAIR_HEADER + (uint64_t)key_n + value_n;
    if (key_n > MSG_KEY_MAX || bytes > rest->n) {
        return false;
    }
    *key_out = bytes_of(rest->at + PAIR_HEADER, key_n);
    *value_out = bytes_of(rest->at + PAIR_HEADER + key_n, value_n);
    rest->at += bytes;
    rest->n -= (uint32_t)bytes;
    return true;
}
