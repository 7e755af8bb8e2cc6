#include "wire/lane.h"

#include <stddef.h>

#include "base/assert.h"

/* docs/WIRE.md holds the same table. */
struct lane_layout {
    uint64_t sequence;
    uint64_t acked;
    uint32_t life;
    uint8_t acked_lane;
    uint8_t flags;
    uint8_t reserved[2];
};
_Static_assert(offsetof(struct lane_layout, sequence) == 0, "docs/WIRE.md");
_Static_assert(offsetof(struct lane_layout, acked) == 8, "docs/WIRE.md");
_Static_assert(offsetof(struct lane_layout, life) == 16, "docs/WIRE.md");
_Static_assert(offsetof(struct lane_layout, acked_lane) == 20, "docs/WIRE.md");
_Static_assert(offsetof(struct lane_layout, flags) == 21, "docs/WIRE.md");
_Static_assert(offsetof(struct lane_layout, reserved) == 22, "docs/WIRE.md");
_Static_assert(sizeof(struct lane_layout) == LANE_HEAD, "docs/WIRE.md");

#define AT(field) offsetof(struct lane_layout, field)
#define FLAG_ACKS 1u
#define FLAG_GAP 2u

void lane_head_encode(const struct lane_head *head, uint8_t out[LANE_HEAD])
{
    HK_ASSERT(head->life != 0 && head->acked_lane < LANE_WORKERS);
    HK_ASSERT(head->acks || (!head->gap && head->acked == 0 && head->acked_lane == 0));
    HK_ASSERT(head->acks || head->sequence != 0);
    put_u64(out + AT(sequence), head->sequence);
    put_u64(out + AT(acked), head->acked);
    put_u32(out + AT(life), head->life);
    out[AT(acked_lane)] = head->acked_lane;
    out[AT(flags)] = (uint8_t)((head->acks ? FLAG_ACKS : 0) | (head->gap ? FLAG_GAP : 0));
    out[AT(reserved)] = 0;
    out[AT(reserved) + 1] = 0;
}

static const char *refusal(const struct lane_head *head, uint8_t flags, uint32_t body_bytes)
{
    if ((flags & ~(FLAG_ACKS | FLAG_GAP)) != 0) {
        return "unknown flags";
    }
    if (head->life == 0) {
        return "no life";
    }
    if (head->acked_lane >= LANE_WORKERS) {
        return "acknowledges a lane that cannot be";
    }
    if (!head->acks && (head->gap || head->acked != 0 || head->acked_lane != 0)) {
        return "an acknowledgement that is none";
    }
    if ((head->sequence == 0) != (body_bytes == LANE_HEAD)) {
        return "messages without a sequence, or a sequence without messages";
    }
    if (head->sequence == 0 && !head->acks) {
        return "says nothing";
    }
    return NULL;
}

const char *lane_head_decode(struct bytes body, struct lane_head *head_out)
{
    if (body.n < LANE_HEAD) {
        return "shorter than its head";
    }
    if ((body.at[AT(reserved)] | body.at[AT(reserved) + 1]) != 0) {
        return "reserved bytes";
    }
    uint8_t flags = body.at[AT(flags)];
    struct lane_head head = {
        .sequence = get_u64(body.at + AT(sequence)),
        .acked = get_u64(body.at + AT(acked)),
        .life = get_u32(body.at + AT(life)),
        .acked_lane = body.at[AT(acked_lane)],
        .acks = (flags & FLAG_ACKS) != 0,
        .gap = (flags & FLAG_GAP) != 0,
    };
    const char *why = refusal(&head, flags, body.n);
    if (why == NULL) {
        *head_out = head;
    }
    return why;
}
