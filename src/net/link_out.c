/* The sending half of a link: what goes into the next records, and in which order. View frames come
 * first; then small and large frames take turns, a record each, as far as the peer's credit
 * reaches. Whose turn it is waits for credit even if the other could go: else a stream of small
 * frames would eat all credit before a fragment ever fits. Both need at most LINK_FRAGMENT, a
 * quarter of the smallest window, so the wait ends as soon as the peer takes what it has. */
#include <stdlib.h>

#include "base/assert.h"
#include "net/link.h"
#include "net/link_state.h"
#include "wire/frame.h"

enum turn { TURN_NONE, TURN_SMALL, TURN_LARGE };

/* Frames in our own queues were checked when they were queued. */
static uint32_t queued_length(const uint8_t *frame)
{
    uint32_t length = 0;
    enum frame_drop drop = frame_length(bytes_of(frame, FRAME_HEADER), &length);

    HK_ASSERT(drop == FRAME_DROP_NONE);
    return length;
}

static bool may_queue(const struct link *link, struct bytes front, uint32_t bytes)
{
    const struct link_out *out = &link->out;

    HK_ASSERT(front.n >= FRAME_HEADER && queued_length(front.at) == bytes);
    return link->fault == LINK_OK &&
           out->view.bytes + out->small.bytes + out->large_bytes + bytes <= out->queue_max;
}

/* The pieces are the link's from here on, or false. */
static bool queue_large(struct link_out *out, const struct pieces *frame)
{
    struct link_large *large = calloc(1, sizeof(*large));

    if (large == NULL)
        return false;
    large->pieces = *frame;
    large->bytes = frame->head_bytes + frame->tail.n;
    large->capacity = large->bytes;
    link_larges_push(&out->large, large);
    out->large_bytes += large->bytes;
    out->large_held += sizeof(*large) + large->capacity;
    return true;
}

static bool send_large(struct link_out *out, struct bytes frame)
{
    struct pieces copy = {.head = malloc(frame.n), .head_bytes = frame.n};

    if (copy.head == NULL)
        return false;
    memcpy(copy.head, frame.at, frame.n);
    if (queue_large(out, &copy))
        return true;
    pieces_free(&copy);
    return false;
}

bool link_give(struct link *link, struct pieces *frame)
{
    uint32_t bytes = frame->head_bytes + frame->tail.n;

    HK_ASSERT(bytes > LINK_FRAGMENT);
    if (may_queue(link, bytes_of(frame->head, frame->head_bytes), bytes) &&
        queue_large(&link->out, frame))
        return true;
    pieces_free(frame);
    return false;
}

bool link_send(struct link *link, struct bytes frame)
{
    struct link_out *out = &link->out;

    if (!may_queue(link, frame, frame.n))
        return false;
    if (frame.n > LINK_FRAGMENT)
        return send_large(out, frame);
    if (frame.at[FRAME_AT_KIND] == FRAME_VIEW)
        return link_queue_append(&out->view, frame);
    return link_queue_append(&out->small, frame);
}

void link_forget(struct link *link)
{
    struct link_out *out = &link->out;
    struct link_large *started = NULL;

    link_queue_clear(&out->small);
    /* The receiver waits for the rest of what was begun. */
    if (out->large.first != NULL && out->large.first->done > 0)
        started = link_larges_pop(&out->large);
    for (struct link_large *large; (large = link_larges_pop(&out->large)) != NULL;) {
        out->large_bytes -= large->bytes;
        link_large_free(large, &out->large_held);
    }
    if (started != NULL)
        link_larges_push(&out->large, started);
}

enum link_fault link_out_credit(struct link_out *out, uint64_t consumed)
{
    if (consumed < out->acked || consumed > out->sent)
        return LINK_CREDIT;
    out->acked = consumed;
    return LINK_OK;
}

/* Counted bytes that may go out. */
static uint64_t credit(const struct link_out *out)
{
    return out->window - (out->sent - out->acked);
}

static uint32_t fragment_bytes(const struct link_large *large)
{
    uint32_t left = large->bytes - large->done;

    return left < LINK_FRAGMENT ? left : LINK_FRAGMENT;
}

static enum turn next_turn(const struct link_out *out)
{
    bool small = out->small.bytes > 0;
    bool large = out->large.first != NULL;

    if (out->window == 0 || (!small && !large))
        return TURN_NONE;
    if (large && (out->turn_large || !small))
        return fragment_bytes(out->large.first) <= credit(out) ? TURN_LARGE : TURN_NONE;
    return queued_length(link_queue_front(&out->small).at) <= credit(out) ? TURN_SMALL : TURN_NONE;
}

static bool credit_due(const struct link_in *in)
{
    return in->consumed - in->reported >= LINK_CREDIT_LAG;
}

/* Neighbouring records of small frames hold more than RECORD_BODY_MAX between them, and so do, on
 * average, the fragments of one frame. */
static uint64_t with_headers(uint64_t bytes)
{
    return bytes + RECORD_EXTRA * (2 * bytes / RECORD_BODY_MAX + 3);
}

uint32_t link_output_ready(const struct link *link)
{
    const struct link_out *out = &link->out;
    uint64_t n = 0;

    if (link->fault != LINK_OK)
        return 0;
    if (!out->opened)
        n += RECORD_EXTRA + RECORD_OPEN_BODY;
    if (out->view.bytes > 0)
        n += with_headers(out->view.bytes);
    if (next_turn(out) != TURN_NONE) {
        uint64_t waiting = out->small.bytes + out->large_bytes;

        n += with_headers(waiting < credit(out) ? waiting : credit(out));
    }
    if (n == 0 && credit_due(&link->in))
        n = RECORD_EXTRA;
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Writes header and MAC around the body that stands at out + RECORD_HEADER. Every record carries
 * the credit. */
static uint32_t seal(struct link *link, enum record_kind kind, uint32_t body_bytes, uint8_t *out)
{
    uint32_t covered = RECORD_HEADER + body_bytes;

    memset(out, 0, RECORD_HEADER);
    put_u32(out + RECORD_AT_BODY_BYTES, body_bytes);
    out[RECORD_AT_KIND] = (uint8_t)kind;
    put_u64(out + RECORD_AT_CONSUMED, link->in.consumed);
    link->in.reported = link->in.consumed;
    link_mac_seal(&link->out.mac, bytes_of(out, covered), out + covered);
    return covered + LINK_MAC_BYTES;
}

static uint32_t output_open(struct link *link, uint8_t *out, uint32_t room)
{
    if (room < RECORD_EXTRA + RECORD_OPEN_BODY)
        return 0;
    put_u32(out + RECORD_HEADER, link->in.window);
    link->out.opened = true;
    return seal(link, RECORD_OPEN, RECORD_OPEN_BODY, out);
}

/* As many frames from the front as fit into one record and into `budget`. */
static uint32_t fill(struct link_queue *queue, uint8_t *body, uint64_t budget)
{
    uint32_t used = 0;

    while (queue->bytes > 0) {
        struct bytes front = link_queue_front(queue);
        uint32_t run = 0;

        while (run < front.n) {
            uint32_t length = queued_length(front.at + run);

            if (used + run + length > budget)
                break;
            run += length;
        }
        if (run == 0)
            break;
        memcpy(body + used, front.at, run);
        used += run;
        link_queue_take(queue, run);
    }
    return used;
}

static uint32_t output_frames(struct link *link, enum record_kind kind, uint8_t *out, uint32_t room)
{
    struct link_queue *queue = kind == RECORD_VIEW ? &link->out.view : &link->out.small;
    uint64_t budget = RECORD_BODY_MAX;

    if (room <= RECORD_EXTRA)
        return 0;
    if (room - RECORD_EXTRA < budget)
        budget = room - RECORD_EXTRA;
    if (kind == RECORD_FRAMES && credit(&link->out) < budget)
        budget = credit(&link->out);

    uint32_t body_bytes = fill(queue, out + RECORD_HEADER, budget);

    if (body_bytes == 0)
        return 0;
    if (kind == RECORD_FRAMES) {
        link->out.sent += body_bytes;
        link->out.turn_large = true;
    }
    return seal(link, kind, body_bytes, out);
}

static uint32_t output_fragment(struct link *link, uint8_t *out, uint32_t room)
{
    struct link_out *o = &link->out;
    struct link_large *large = o->large.first;
    uint32_t n = fragment_bytes(large);
    enum record_kind kind = large->done == 0 ? RECORD_FIRST : RECORD_NEXT;

    if (room < RECORD_EXTRA + n)
        return 0;
    pieces_copy(&large->pieces, large->done, out + RECORD_HEADER, n);
    large->done += n;
    o->large_bytes -= n;
    o->sent += n;
    o->turn_large = false;
    if (large->done == large->bytes) {
        o->large_sent = o->sent;
        link_large_free(link_larges_pop(&o->large), &o->large_held);
    }
    return seal(link, kind, n, out);
}

static uint32_t output_record(struct link *link, uint8_t *out, uint32_t room)
{
    if (!link->out.opened)
        return output_open(link, out, room);
    if (link->out.view.bytes > 0)
        return output_frames(link, RECORD_VIEW, out, room);
    switch (next_turn(&link->out)) {
    case TURN_SMALL:
        return output_frames(link, RECORD_FRAMES, out, room);
    case TURN_LARGE:
        return output_fragment(link, out, room);
    case TURN_NONE:
        break;
    }
    if (credit_due(&link->in) && room >= RECORD_EXTRA)
        return seal(link, RECORD_CREDIT, 0, out);
    return 0;
}

uint32_t link_output(struct link *link, uint8_t *out, uint32_t capacity)
{
    uint32_t used = 0;

    if (link->fault != LINK_OK)
        return 0;
    for (;;) {
        uint32_t n = output_record(link, out + used, capacity - used);

        if (n == 0)
            return used;
        used += n;
    }
}

void link_out_clear(struct link_out *out)
{
    link_mac_wipe(&out->mac);
    link_queue_clear(&out->view);
    link_queue_clear(&out->small);
    for (struct link_large *large; (large = link_larges_pop(&out->large)) != NULL;)
        link_large_free(large, &out->large_held);
    HK_ASSERT(out->large_held == 0);
}
