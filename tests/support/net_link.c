#include "support/net_link.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "net/link_state.h"

#define SOURCE_NONCE 0x51u
#define TARGET_NONCE 0x52u

uint8_t *net_frame_between(enum frame_kind kind, uint32_t bytes, uint64_t id, uint8_t source,
                           uint8_t target, uint8_t target_worker)
{
    HK_ASSERT(bytes >= FRAME_HEADER);

    uint8_t *out = malloc(bytes);
    uint32_t body_bytes = bytes - FRAME_HEADER;

    HK_ASSERT(out != NULL);
    /* Neighbouring bytes and neighbouring ids differ. */
    for (uint32_t i = 0; i < body_bytes; i++)
        out[FRAME_HEADER + i] = (uint8_t)(i * 131u + (i >> 8) + id * 29u);

    struct frame f = {
        .version = FRAME_VERSION,
        .kind = (uint8_t)kind,
        .source = source,
        .target = target,
        .target_worker = target_worker,
        .cluster = NET_CLUSTER,
        .generation = id,
        .nonce = SOURCE_NONCE,
        .target_nonce = TARGET_NONCE,
        .body = bytes_of(NULL, body_bytes),
    };

    HK_ASSERT(frame_seal(&f, out) == bytes);
    return out;
}

uint8_t *net_frame_make(enum frame_kind kind, uint32_t bytes, uint64_t id)
{
    return net_frame_between(kind, bytes, id, 0, 1, 0);
}

/* Offsets of docs/WIRE.md. */
uint64_t net_frame_id(struct bytes frame)
{
    return get_u64(frame.at + 40);
}

enum frame_kind net_frame_kind(struct bytes frame)
{
    return (enum frame_kind)frame.at[14];
}

bool net_frame_intact(struct bytes frame)
{
    struct frame f;

    if (frame.n < FRAME_HEADER ||
        frame_open(frame, NET_CLUSTER, frame.at[16], TARGET_NONCE, &f) != FRAME_DROP_NONE)
        return false;
    for (uint32_t i = 0; i < f.body.n; i++)
        if (f.body.at[i] != (uint8_t)(i * 131u + (i >> 8) + f.generation * 29u))
            return false;
    return true;
}

bool net_send(struct link *link, enum frame_kind kind, uint32_t bytes, uint64_t id)
{
    uint8_t *frame = net_frame_make(kind, bytes, id);
    bool sent = link_send(link, bytes_of(frame, bytes));

    free(frame);
    return sent;
}

struct held {
    uint32_t *count;
    uint8_t bytes[];
};

static void let_go(void *kept)
{
    struct held *held = kept;

    (*held->count)--;
    free(held);
}

struct pieces net_pieces(const uint8_t *frame, uint32_t bytes, uint32_t head_bytes, uint32_t *count)
{
    struct held *held = malloc(sizeof(*held) + bytes - head_bytes);
    struct pieces pieces = {
        .head = malloc(head_bytes), .head_bytes = head_bytes, .release = let_go, .kept = held};

    if (held == NULL || pieces.head == NULL)
        abort();
    held->count = count;
    pieces.tail = bytes_of(held->bytes, bytes - head_bytes);
    memcpy(pieces.head, frame, head_bytes);
    memcpy(held->bytes, frame + head_bytes, bytes - head_bytes);
    (*count)++;
    return pieces;
}

bool net_give(struct link *link, uint32_t bytes, uint64_t id, uint32_t head_bytes, uint32_t *count)
{
    uint8_t *frame = net_frame_make(FRAME_BATCH, bytes, id);
    struct pieces pieces = net_pieces(frame, bytes, head_bytes, count);
    bool sent = link_give(link, &pieces);

    free(frame);
    return sent;
}

struct link_config net_link_config(uint32_t end, uint32_t window)
{
    struct link_config config = {.window = window, .queue_max = NET_QUEUE_MAX};

    memset(config.keys.send, end == 0 ? 0xa0 : 0xb1, SESSION_KEY_BYTES);
    memset(config.keys.receive, end == 0 ? 0xb1 : 0xa0, SESSION_KEY_BYTES);
    return config;
}

struct link *net_link_open(uint32_t end, uint32_t window)
{
    struct link_config config = net_link_config(end, window);
    struct link *link = NULL;

    HK_ASSERT(link_create(&config, &link) == HK_OK);
    return link;
}

static void wire_room(struct net_wire *wire, uint32_t n)
{
    if (wire->capacity - wire->n >= n)
        return;
    wire->capacity = 2 * wire->capacity + n;
    wire->at = realloc(wire->at, wire->capacity);
    HK_ASSERT(wire->at != NULL);
}

void net_wire_add(struct net_wire *wire, struct bytes bytes)
{
    wire_room(wire, bytes.n);
    if (bytes.n > 0)
        memcpy(wire->at + wire->n, bytes.at, bytes.n);
    wire->n += bytes.n;
}

void net_wire_take(struct net_wire *wire, struct link *from, uint32_t capacity)
{
    for (uint32_t ready; (ready = link_output_ready(from)) > 0;) {
        uint32_t room = ready < capacity ? ready : capacity;

        wire_room(wire, room);

        uint32_t n = link_output(from, wire->at + wire->n, room);

        HK_ASSERT(n > 0 && n <= room);
        wire->n += n;
    }
}

enum link_fault net_wire_give(struct net_wire *wire, struct link *to, struct random *random,
                              uint32_t piece_max)
{
    enum link_fault fault = LINK_OK;
    uint32_t at = 0;

    while (at < wire->n && fault == LINK_OK) {
        uint32_t piece = (uint32_t)random_between(random, 1, piece_max);

        if (piece > wire->n - at)
            piece = wire->n - at;

        /* A block of its own, so that the address sanitizer sees a read past the piece. */
        uint8_t *copy = malloc(piece);

        HK_ASSERT(copy != NULL);
        memcpy(copy, wire->at + at, piece);
        fault = link_input(to, bytes_of(copy, piece));
        free(copy);
        at += piece;
    }
    wire->n = 0;
    return fault;
}

void net_wire_clear(struct net_wire *wire)
{
    free(wire->at);
    *wire = (struct net_wire){0};
}

void net_exchange(struct link *a, struct link *b)
{
    struct net_wire wire = {0};
    struct random random;

    random_init(&random, 1);
    while (link_output_ready(a) > 0 || link_output_ready(b) > 0) {
        net_wire_take(&wire, a, LINK_OUTPUT_MIN);
        HK_ASSERT(net_wire_give(&wire, b, &random, 64 * 1024) == LINK_OK);
        net_wire_take(&wire, b, LINK_OUTPUT_MIN);
        HK_ASSERT(net_wire_give(&wire, a, &random, 64 * 1024) == LINK_OK);
    }
    net_wire_clear(&wire);
}

void net_forger_init(struct net_forger *forger)
{
    struct link_config config = net_link_config(0, LINK_WINDOW_MIN);

    link_mac_init(&forger->mac, config.keys.send);
    forger->consumed = 0;
}

void net_forge(struct net_forger *forger, struct net_wire *wire, uint8_t kind, struct bytes body)
{
    uint32_t covered = RECORD_HEADER + body.n;

    wire_room(wire, covered + LINK_MAC_BYTES);

    uint8_t *out = wire->at + wire->n;

    memset(out, 0, RECORD_HEADER);
    put_u32(out + RECORD_AT_BODY_BYTES, body.n);
    out[RECORD_AT_KIND] = kind;
    put_u64(out + RECORD_AT_CONSUMED, forger->consumed);
    if (body.n > 0)
        memcpy(out + RECORD_HEADER, body.at, body.n);
    link_mac_seal(&forger->mac, bytes_of(out, covered), out + covered);
    wire->n += covered + LINK_MAC_BYTES;
}

void net_forge_open(struct net_forger *forger, struct net_wire *wire, uint32_t window)
{
    uint8_t body[RECORD_OPEN_BODY];

    put_u32(body, window);
    net_forge(forger, wire, RECORD_OPEN, bytes_of(body, sizeof(body)));
}
