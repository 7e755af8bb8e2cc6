#include "wire/msg.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/meta.h"

/* The header as it lies in a frame: every field stands at a multiple of its size, so there is no
 * padding and offsetof is the layout. Only its offsets are used; the bytes are read and written
 * one field at a time, because nothing aligns a message inside a frame and because the order of
 * bytes is the wire's, not the machine's. docs/WIRE.md holds the same table. */
struct msg_layout {
    uint8_t space;
    uint8_t kind;
    uint8_t flags;
    uint8_t vflags;
    uint32_t slot;
    uint32_t gen;
    uint32_t epoch;
    uint64_t ts;
    uint64_t arg;
    uint32_t key_bytes;
    uint32_t value_bytes;
};
_Static_assert(offsetof(struct msg_layout, space) == 0, "docs/WIRE.md");
_Static_assert(offsetof(struct msg_layout, kind) == 1, "docs/WIRE.md");
_Static_assert(offsetof(struct msg_layout, flags) == 2, "docs/WIRE.md");
_Static_assert(offsetof(struct msg_layout, vflags) == 3, "docs/WIRE.md");
_Static_assert(offsetof(struct msg_layout, slot) == 4, "docs/WIRE.md");
_Static_assert(offsetof(struct msg_layout, gen) == 8, "docs/WIRE.md");
_Static_assert(offsetof(struct msg_layout, epoch) == 12, "docs/WIRE.md");
_Static_assert(offsetof(struct msg_layout, ts) == 16, "docs/WIRE.md");
_Static_assert(offsetof(struct msg_layout, arg) == 24, "docs/WIRE.md");
_Static_assert(offsetof(struct msg_layout, key_bytes) == 32, "docs/WIRE.md");
_Static_assert(offsetof(struct msg_layout, value_bytes) == 36, "docs/WIRE.md");
_Static_assert(sizeof(struct msg_layout) == MSG_HEADER, "docs/WIRE.md");

#define AT(field) offsetof(struct msg_layout, field)

/* msg_size counts in 32 bits. */
_Static_assert((uint64_t)MSG_HEADER + MSG_KEY_MAX + MSG_VALUE_MAX <= UINT32_MAX, "no overflow");

/* The flags go straight into key_meta.flags when the value is applied: a stray bit there would
 * make a key readable, and a short value with a deadline would be read past its end. */
static bool vflags_fit(uint8_t vflags, uint32_t value_bytes)
{
    if ((vflags & ~KEY_VALUE_FLAGS) != 0)
        return false;
    if ((vflags & KEY_TOMBSTONE) != 0)
        return vflags == KEY_TOMBSTONE && value_bytes == 0;
    return (vflags & KEY_DEADLINE) == 0 || value_bytes >= sizeof(uint64_t);
}

void msg_encode_head(const struct msg *m, uint8_t *out)
{
    HK_ASSERT(m->key.n <= MSG_KEY_MAX);
    HK_ASSERT(m->value.n <= MSG_VALUE_MAX);
    HK_ASSERT(vflags_fit(m->vflags, m->value.n));

    out[AT(space)] = m->space;
    out[AT(kind)] = m->kind;
    out[AT(flags)] = m->flags;
    out[AT(vflags)] = m->vflags;
    put_u32(out + AT(slot), m->slot);
    put_u32(out + AT(gen), m->gen);
    put_u32(out + AT(epoch), m->epoch);
    put_u64(out + AT(ts), m->ts);
    put_u64(out + AT(arg), m->arg);
    put_u32(out + AT(key_bytes), m->key.n);
    put_u32(out + AT(value_bytes), m->value.n);

    /* A slice of no bytes may have no address, which memcpy must not see. */
    if (m->key.n > 0)
        memcpy(out + MSG_HEADER, m->key.at, m->key.n);
}

void msg_encode(const struct msg *m, uint8_t *out)
{
    uint8_t *value = out + MSG_HEADER + m->key.n;

    msg_encode_head(m, out);
    if (m->value.n > 0 && m->value.at != value)
        memcpy(value, m->value.at, m->value.n);
}

void msg_readdress(uint8_t *encoded, uint8_t kind, uint32_t epoch)
{
    encoded[AT(kind)] = kind;
    put_u32(encoded + AT(epoch), epoch);
}

int msg_decode(struct bytes in, struct msg *m_out, uint32_t *used_out)
{
    if (in.n < MSG_HEADER)
        return HK_ERR_CORRUPT;

    const uint8_t *at = in.at;
    uint32_t key_bytes = get_u32(at + AT(key_bytes));
    uint32_t value_bytes = get_u32(at + AT(value_bytes));
    uint32_t rest = in.n - MSG_HEADER;

    /* Each length is held against what is left after the one before it, so no sum can wrap. */
    if (key_bytes > MSG_KEY_MAX || key_bytes > rest)
        return HK_ERR_CORRUPT;
    rest -= key_bytes;
    if (value_bytes > MSG_VALUE_MAX || value_bytes > rest)
        return HK_ERR_CORRUPT;
    if (!vflags_fit(at[AT(vflags)], value_bytes))
        return HK_ERR_CORRUPT;

    *m_out = (struct msg){
        .space = at[AT(space)],
        .kind = at[AT(kind)],
        .flags = at[AT(flags)],
        .vflags = at[AT(vflags)],
        .slot = get_u32(at + AT(slot)),
        .gen = get_u32(at + AT(gen)),
        .epoch = get_u32(at + AT(epoch)),
        .ts = get_u64(at + AT(ts)),
        .arg = get_u64(at + AT(arg)),
        .key = bytes_of(at + MSG_HEADER, key_bytes),
        .value = bytes_of(at + MSG_HEADER + key_bytes, value_bytes),
    };
    *used_out = MSG_HEADER + key_bytes + value_bytes;
    return HK_OK;
}
