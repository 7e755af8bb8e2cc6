#include "wire/frame.h"

#include <stddef.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/assert.h"
#include "base/nodeset.h"
#include "wire/msg.h"

/* The header as it lies on the wire, as in msg.c: naturally aligned, only its offsets are used. The
 * checksum comes first, so that what it covers is one piece and one call: all bytes behind it,
 * body included. docs/WIRE.md holds the same table. */
struct frame_layout {
    uint64_t checksum;
    uint32_t magic;
    uint16_t version;
    uint8_t kind;
    uint8_t source;
    uint8_t target;
    uint8_t source_worker;
    uint8_t target_worker;
    uint8_t flags;
    uint8_t reserved[4];
    uint32_t body_bytes;
    uint32_t epoch;
    uint64_t cluster;
    uint64_t generation;
    uint64_t nonce;
    uint64_t target_nonce;
};
_Static_assert(offsetof(struct frame_layout, checksum) == 0, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, magic) == 8, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, version) == 12, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, kind) == 14, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, source) == 15, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, target) == 16, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, source_worker) == 17, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, target_worker) == 18, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, flags) == 19, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, reserved) == 20, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, body_bytes) == 24, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, epoch) == 28, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, cluster) == 32, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, generation) == 40, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, nonce) == 48, "docs/WIRE.md");
_Static_assert(offsetof(struct frame_layout, target_nonce) == 56, "docs/WIRE.md");
_Static_assert(sizeof(struct frame_layout) == FRAME_HEADER, "docs/WIRE.md");

#define AT(field) offsetof(struct frame_layout, field)
#define FLAG_FULL 1u /* of the flags byte; its other bits are reserved */
#define RESERVED_BYTES sizeof(((struct frame_layout *)NULL)->reserved)

/* What the checksum covers starts right behind it. */
#define COVERED_AT (AT(checksum) + sizeof(uint64_t))

_Static_assert((uint64_t)FRAME_HEADER + FRAME_BODY_MAX <= UINT32_MAX, "lengths are 32 bits");
_Static_assert((uint64_t)MSG_HEADER + MSG_KEY_MAX + MSG_VALUE_MAX <= FRAME_BODY_MAX,
               "the largest message fits one frame");

const char *const frame_drop_names[FRAME_DROPS] = {
    [FRAME_DROP_NONE] = "none",         [FRAME_DROP_SHORT] = "short",
    [FRAME_DROP_MAGIC] = "magic",       [FRAME_DROP_VERSION] = "version",
    [FRAME_DROP_KIND] = "kind",         [FRAME_DROP_LENGTH] = "length",
    [FRAME_DROP_CHECKSUM] = "checksum", [FRAME_DROP_CLUSTER] = "cluster",
    [FRAME_DROP_TARGET] = "target",     [FRAME_DROP_SOURCE] = "source",
    [FRAME_DROP_RESERVED] = "reserved",
};

static uint64_t frame_checksum(const uint8_t *frame, uint32_t frame_bytes)
{
    return XXH3_64bits(frame + COVERED_AT, frame_bytes - COVERED_AT);
}

static uint64_t pieces_checksum(const uint8_t *frame, uint32_t first_bytes, struct bytes tail)
{
    XXH3_state_t state;

    XXH3_INITSTATE(&state);
    (void)XXH3_64bits_reset(&state);
    (void)XXH3_64bits_update(&state, frame + COVERED_AT, first_bytes - COVERED_AT);
    (void)XXH3_64bits_update(&state, tail.at, tail.n);
    return XXH3_64bits_digest(&state);
}

static bool version_known(uint16_t version)
{
    return version >= FRAME_VERSION && version <= FRAME_VERSION_MAX;
}

static bool kind_known(uint8_t kind)
{
    return kind == FRAME_VIEW || kind == FRAME_BATCH || kind == FRAME_LANE;
}

/* Only the view protocol speaks with processes that it does not know yet. Messages always name the
 * incarnation: what was meant for a process that died must not reach its successor. */
static bool nonces_named(uint8_t kind, uint64_t nonce, uint64_t target_nonce)
{
    return nonce != 0 && (kind == FRAME_VIEW || target_nonce != 0);
}

static void put_header(const struct frame *f, uint8_t *out)
{
    HK_ASSERT(f->body.n <= FRAME_BODY_MAX);
    HK_ASSERT(version_known(f->version));
    HK_ASSERT(kind_known(f->kind));
    HK_ASSERT(f->source < NODES_MAX && f->target < NODES_MAX && f->source != f->target);
    HK_ASSERT(nonces_named(f->kind, f->nonce, f->target_nonce));

    put_u32(out + AT(magic), FRAME_MAGIC);
    put_u16(out + AT(version), f->version);
    out[AT(kind)] = f->kind;
    out[AT(source)] = f->source;
    out[AT(target)] = f->target;
    out[AT(source_worker)] = f->source_worker;
    out[AT(target_worker)] = f->target_worker;
    out[AT(flags)] = f->full ? FLAG_FULL : 0;
    memset(out + AT(reserved), 0, RESERVED_BYTES);
    put_u32(out + AT(body_bytes), f->body.n);
    put_u32(out + AT(epoch), f->epoch);
    put_u64(out + AT(cluster), f->cluster);
    put_u64(out + AT(generation), f->generation);
    put_u64(out + AT(nonce), f->nonce);
    put_u64(out + AT(target_nonce), f->target_nonce);
}

uint32_t frame_seal(const struct frame *f, uint8_t *out)
{
    uint32_t frame_bytes = FRAME_HEADER + f->body.n;

    put_header(f, out);

    put_u64(out + AT(checksum), f->bare ? 0 : frame_checksum(out, frame_bytes));
    return frame_bytes;
}

uint32_t frame_seal_pieces(const struct frame *f, uint8_t *out, struct bytes tail)
{
    HK_ASSERT(tail.n <= f->body.n);

    uint32_t frame_bytes = FRAME_HEADER + f->body.n;

    put_header(f, out);
    put_u64(out + AT(checksum), f->bare ? 0 : pieces_checksum(out, frame_bytes - tail.n, tail));
    return frame_bytes;
}

enum frame_drop frame_length(struct bytes header, uint32_t *length_out)
{
    if (header.n < FRAME_HEADER)
        return FRAME_DROP_SHORT;
    if (get_u32(header.at + AT(magic)) != FRAME_MAGIC)
        return FRAME_DROP_MAGIC;
    /* Everything behind the version may look different in another one, so nothing is read before
     * it is known. */
    if (!version_known(get_u16(header.at + AT(version))))
        return FRAME_DROP_VERSION;

    uint32_t body_bytes = get_u32(header.at + AT(body_bytes));

    if (body_bytes > FRAME_BODY_MAX)
        return FRAME_DROP_LENGTH;
    *length_out = FRAME_HEADER + body_bytes;
    return FRAME_DROP_NONE;
}

static bool reserved_zero(const uint8_t *frame)
{
    uint8_t any = (uint8_t)(frame[AT(flags)] & ~FLAG_FULL);

    for (size_t i = 0; i < RESERVED_BYTES; i++)
        any |= frame[AT(reserved) + i];
    return any == 0;
}

/* What an intact frame of our version says, held against who receives it. Checked after the
 * checksum, so that damage on the way is never taken for a peer that is wrong. */
static enum frame_drop frame_refused(const struct frame *f, uint64_t cluster, uint8_t self,
                                     uint64_t nonce)
{
    if (!kind_known(f->kind))
        return FRAME_DROP_KIND;
    if (f->cluster != cluster)
        return FRAME_DROP_CLUSTER;
    if (f->source >= NODES_MAX || f->source == self || f->nonce == 0)
        return FRAME_DROP_SOURCE;
    if (f->target != self || !nonces_named(f->kind, f->nonce, f->target_nonce))
        return FRAME_DROP_TARGET;
    if (f->target_nonce != 0 && f->target_nonce != nonce)
        return FRAME_DROP_TARGET;
    return FRAME_DROP_NONE;
}

static enum frame_drop frame_open_any(struct bytes in, uint64_t cluster, uint8_t self,
                                      uint64_t nonce, bool checked, struct frame *f_out)
{
    uint32_t frame_bytes = 0;
    enum frame_drop drop = frame_length(in, &frame_bytes);

    if (drop != FRAME_DROP_NONE)
        return drop;
    if (in.n < frame_bytes)
        return FRAME_DROP_SHORT;
    if (in.n > frame_bytes)
        return FRAME_DROP_LENGTH;
    if (checked && get_u64(in.at + AT(checksum)) != frame_checksum(in.at, frame_bytes))
        return FRAME_DROP_CHECKSUM;
    if (!reserved_zero(in.at))
        return FRAME_DROP_RESERVED;

    struct frame f = {
        .version = get_u16(in.at + AT(version)),
        .kind = in.at[AT(kind)],
        .source = in.at[AT(source)],
        .target = in.at[AT(target)],
        .source_worker = in.at[AT(source_worker)],
        .target_worker = in.at[AT(target_worker)],
        .full = (in.at[AT(flags)] & FLAG_FULL) != 0,
        .epoch = get_u32(in.at + AT(epoch)),
        .cluster = get_u64(in.at + AT(cluster)),
        .generation = get_u64(in.at + AT(generation)),
        .nonce = get_u64(in.at + AT(nonce)),
        .target_nonce = get_u64(in.at + AT(target_nonce)),
        .body = bytes_of(in.at + FRAME_HEADER, frame_bytes - FRAME_HEADER),
    };

    drop = frame_refused(&f, cluster, self, nonce);
    if (drop == FRAME_DROP_NONE)
        *f_out = f;
    return drop;
}

enum frame_drop frame_open(struct bytes in, uint64_t cluster, uint8_t self, uint64_t nonce,
                           struct frame *f_out)
{
    return frame_open_any(in, cluster, self, nonce, true, f_out);
}

enum frame_drop frame_open_bare(struct bytes in, uint64_t cluster, uint8_t self, uint64_t nonce,
                                struct frame *f_out)
{
    return frame_open_any(in, cluster, self, nonce, false, f_out);
}
