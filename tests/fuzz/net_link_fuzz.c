/* A link against a peer that has the keys and does what the input says: records of any kind with
 * the right MAC, frames and fragments right and wrong, credit that is true or a lie, bytes without
 * a MAC, in pieces of any size, while the target receives and sends now and then. Whatever the peer
 * does, the target holds no more memory than docs/NET.md allows, and what it hands out is a frame.
 *
 * Input: steps of an opcode byte and its operands (struct steps). */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include <sodium.h>

#include "base/assert.h"
#include "net/link_state.h"
#include "support/net_link.h"

#define WINDOW LINK_WINDOW_MIN
#define STEPS_MAX 300u
#define OUT_MAX (1024u * 1024u)

struct steps {
    const uint8_t *at;
    size_t left;
};

static uint8_t byte(struct steps *steps)
{
    if (steps->left == 0)
        return 0;
    steps->left--;
    return *steps->at++;
}

static uint32_t number(struct steps *steps)
{
    uint32_t n = byte(steps);

    n |= (uint32_t)byte(steps) << 8;
    return n | (uint32_t)byte(steps) << 16;
}

struct rig {
    struct link *link;
    struct net_forger forger;
    struct net_wire wire;
    uint8_t *room; /* for outputs and bodies */
    uint64_t arrived, id;
    uint32_t large, large_at; /* the frame that the peer is in the middle of */
    uint64_t sent;            /* counted bytes that the target has sent */
};

/* The first bytes of a frame; of the rest nobody asks here. */
static void put_frame(uint8_t *out, enum frame_kind kind, uint32_t bytes)
{
    memset(out, 0, FRAME_HEADER);
    put_u32(out + 8, FRAME_MAGIC);
    put_u16(out + 12, FRAME_VERSION);
    out[14] = (uint8_t)kind;
    put_u32(out + 24, bytes - FRAME_HEADER);
}

static void step_record(struct rig *rig, struct steps *steps)
{
    uint8_t kind = byte(steps) % 8;
    uint32_t n = number(steps) % (LINK_FRAGMENT + 2);

    for (uint32_t i = 0; i < 64 && i < n; i++)
        rig->room[i] = byte(steps);
    net_forge(&rig->forger, &rig->wire, kind, bytes_of(rig->room, n));
}

static void step_frames(struct rig *rig, struct steps *steps, enum frame_kind kind)
{
    uint32_t used = 0;

    for (uint32_t count = byte(steps) % 8u; count > 0; count--) {
        uint32_t n = FRAME_HEADER + number(steps) % 40000;

        if (used + n > LINK_FRAGMENT)
            break;
        put_frame(rig->room + used, kind, n);
        used += n;
    }
    net_forge(&rig->forger, &rig->wire, kind == FRAME_VIEW ? RECORD_VIEW : RECORD_FRAMES,
              bytes_of(rig->room, used));
}

static void step_fragment(struct rig *rig, struct steps *steps)
{
    if (rig->large_at == rig->large) {
        rig->large = LINK_FRAGMENT + 1 + number(steps) * 4u % FRAME_BODY_MAX;
        rig->large_at = LINK_FRAGMENT;
        put_frame(rig->room, FRAME_BATCH, rig->large);
        net_forge(&rig->forger, &rig->wire, RECORD_FIRST, bytes_of(rig->room, LINK_FRAGMENT));
        return;
    }
    uint32_t n = rig->large - rig->large_at;

    n = n < LINK_FRAGMENT ? n : LINK_FRAGMENT;
    net_forge(&rig->forger, &rig->wire, RECORD_NEXT, bytes_of(rig->room, n));
    rig->large_at += n;
}

static void step_bytes(struct rig *rig, struct steps *steps)
{
    uint32_t n = byte(steps) % 64u;

    for (uint32_t i = 0; i < n; i++)
        rig->room[i] = byte(steps);
    net_wire_add(&rig->wire, bytes_of(rig->room, n));
}

static void step_receive(struct rig *rig, uint32_t max)
{
    struct bytes frame;

    for (uint32_t i = 0; i < max && link_receive(rig->link, &frame); i++) {
        uint32_t length = 0;

        HK_ASSERT(frame_length(frame, &length) == FRAME_DROP_NONE && length == frame.n);
        /* All of it is there to be read. */
        HK_ASSERT(frame.at[frame.n - 1] <= UINT8_MAX);
    }
}

static void step_send(struct rig *rig, struct steps *steps)
{
    uint32_t n = FRAME_HEADER + number(steps) % 300000;

    if (link_outstanding(rig->link) + n < OUT_MAX)
        (void)net_send(rig->link, byte(steps) % 4 == 0 ? FRAME_VIEW : FRAME_BATCH, n, rig->id++);
}

/* What the target says, and what of it the peer may give thanks for. */
static void step_output(struct rig *rig)
{
    uint32_t n = link_output(rig->link, rig->room, LINK_OUTPUT_MIN);

    for (uint32_t at = 0; at < n;) {
        uint32_t body = get_u32(rig->room + at + RECORD_AT_BODY_BYTES);
        uint8_t kind = rig->room[at + RECORD_AT_KIND];

        if (kind == RECORD_FRAMES || kind == RECORD_FIRST || kind == RECORD_NEXT)
            rig->sent += body;
        at += RECORD_EXTRA + body;
    }
}

static void step_input(struct rig *rig, struct steps *steps)
{
    struct random random;
    uint32_t n = rig->wire.n;

    random_init(&random, byte(steps));
    /* What stands before a fault has arrived as well. */
    (void)net_wire_give(&rig->wire, rig->link, &random, 1 + number(steps));
    rig->arrived += n;
}

static void step(struct rig *rig, struct steps *steps)
{
    uint8_t op = byte(steps);

    switch (op % 16) {
    case 0:
        step_record(rig, steps);
        break;
    case 1:
    case 2:
        step_frames(rig, steps, FRAME_BATCH);
        break;
    case 3:
        step_frames(rig, steps, FRAME_VIEW);
        break;
    case 4:
    case 5:
        step_fragment(rig, steps);
        break;
    case 6:
        rig->forger.consumed = rig->sent;
        break;
    case 7:
        rig->forger.consumed += number(steps);
        break;
    case 8:
        step_bytes(rig, steps);
        break;
    case 9:
        step_receive(rig, byte(steps));
        break;
    case 10:
        step_send(rig, steps);
        break;
    case 11:
        step_output(rig);
        break;
    case 12:
        link_forget(rig->link);
        break;
    default:
        step_input(rig, steps);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rig rig = {.link = NULL};
    struct steps steps = {.at = data, .left = size};

    if (sodium_init() < 0)
        return 0;
    rig.link = net_link_open(1, WINDOW);
    rig.room = calloc(1, LINK_OUTPUT_MIN);
    HK_ASSERT(rig.room != NULL);
    net_forger_init(&rig.forger);
    if (size > 0 && data[0] != 0xff)
        net_forge_open(&rig.forger, &rig.wire, WINDOW);
    for (uint32_t i = 0; i < STEPS_MAX && steps.left > 0; i++) {
        step(&rig, &steps);
        /* Memory follows what has arrived, and has an end. */
        uint64_t held = link_bytes_held(rig.link);

        HK_ASSERT(held <= 2 * rig.arrived + 3 * OUT_MAX + 2 * WINDOW);
        HK_ASSERT(held <= 2 * (FRAME_HEADER + (uint64_t)FRAME_BODY_MAX) + 3 * OUT_MAX + 4 * WINDOW);
    }
    link_destroy(rig.link);
    net_wire_clear(&rig.wire);
    free(rig.room);
    return 0;
}
