#include "net/link_mac.h"

#include <sodium.h>

#include "net/link.h"

_Static_assert(LINK_MAC_BYTES == crypto_onetimeauth_poly1305_BYTES, "docs/NET.md");
_Static_assert(SESSION_KEY_BYTES == crypto_stream_chacha20_KEYBYTES, "docs/NET.md");
_Static_assert(sizeof(((struct link_mac *)NULL)->once[0]) == crypto_onetimeauth_poly1305_KEYBYTES,
               "docs/NET.md");

void link_mac_init(struct link_mac *mac, const uint8_t key[SESSION_KEY_BYTES])
{
    mac->sequence = 0;
    memcpy(mac->key, key, SESSION_KEY_BYTES);
}

void link_mac_wipe(struct link_mac *mac)
{
    sodium_memzero(mac, sizeof(*mac));
}

/* Each sequence number has its own 32 bytes of key stream, and each is asked for once. */
static const uint8_t *next_key(struct link_mac *mac)
{
    uint32_t index = (uint32_t)(mac->sequence % LINK_MAC_BATCH);

    if (index == 0) {
        uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];

        put_u64(nonce, mac->sequence / LINK_MAC_BATCH);
        (void)crypto_stream_chacha20(&mac->once[0][0], sizeof(mac->once), nonce, mac->key);
    }
    mac->sequence++;
    return mac->once[index];
}

void link_mac_seal(struct link_mac *mac, struct bytes record, uint8_t *tag_out)
{
    (void)crypto_onetimeauth_poly1305(tag_out, record.at, record.n, next_key(mac));
}

bool link_mac_open(struct link_mac *mac, struct bytes record, const uint8_t *tag)
{
    return crypto_onetimeauth_poly1305_verify(tag, record.at, record.n, next_key(mac)) == 0;
}
