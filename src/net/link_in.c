/* The receiving half of a link: records out of a byte stream, frames out of records. Nothing in a
 * record is acted upon before its MAC was verified, but for its length, which is bounded.
 *
 * Large frames and credit. A fragment is consumed, so its credit returns, as soon as it stands in
 * its frame, or a frame that is larger than the window would never end. That holds while nobody
 * fails to take what is complete: the last fragment of a frame, and all fragments that arrive while
 * a complete large frame waits, are consumed when that frame is taken. So the large frames that a
 * receiver holds are one, and what the window lets in beyond it. */
#include <stdlib.h>

#include "base/assert.h"
#include "net/link.h"
#include "net/link_state.h"
#include "wire/frame.h"

/* What can be said of a header alone; its bytes are not yet known to be the peer's. */
static enum link_fault check_header(const uint8_t *header)
{
    uint32_t n = get_u32(header + RECORD_AT_BODY_BYTES);
    uint8_t reserved = header[RECORD_AT_RESERVED] | header[RECORD_AT_RESERVED + 1] |
                       header[RECORD_AT_RESERVED + 2];
    bool fits = false;

    if (reserved != 0)
        return LINK_RECORD;
    switch ((enum record_kind)header[RECORD_AT_KIND]) {
    case RECORD_OPEN:
        fits = n == RECORD_OPEN_BODY;
        break;
    case RECORD_FRAMES:
    case RECORD_VIEW:
        fits = n >= FRAME_HEADER && n <= RECORD_BODY_MAX;
        break;
    case RECORD_FIRST:
        fits = n == LINK_FRAGMENT;
        break;
    case RECORD_NEXT:
        fits = n >= 1 && n <= LINK_FRAGMENT;
        break;
    case RECORD_CREDIT:
        fits = n == 0;
        break;
    }
    return fits ? LINK_OK : LINK_RECORD;
}

static enum link_fault take_open(struct link *link, struct bytes body)
{
    uint32_t window = get_u32(body.at);

    if (link->in.opened || window < LINK_WINDOW_MIN || window > LINK_WINDOW_MAX)
        return LINK_RECORD;
    link->in.opened = true;
    link->out.window = window;
    return LINK_OK;
}

/* Whether the body is one whole frame after another, all of the right kind. */
static enum link_fault check_frames(struct bytes body, bool view, uint32_t *count_out)
{
    uint32_t at = 0;

    *count_out = 0;
    while (at < body.n) {
        struct bytes rest = bytes_of(body.at + at, body.n - at);
        uint32_t length = 0;

        if (frame_length(rest, &length) != FRAME_DROP_NONE || length > rest.n)
            return LINK_FRAME;
        if ((rest.at[FRAME_AT_KIND] == FRAME_VIEW) != view)
            return LINK_FRAME;
        at += length;
        (*count_out)++;
    }
    return LINK_OK;
}

static enum link_fault count_received(struct link_in *in, uint32_t n)
{
    if (in->received + n - in->consumed > in->window)
        return LINK_CREDIT;
    in->received += n;
    return LINK_OK;
}

static enum link_fault take_frames(struct link_in *in, struct bytes body)
{
    uint32_t count = 0;
    enum link_fault fault = check_frames(body, false, &count);

    if (fault == LINK_OK)
        fault = count_received(in, body.n);
    if (fault != LINK_OK)
        return fault;
    if (!link_queue_append(&in->small, body))
        return LINK_MEMORY;
    in->small_in += body.n;
    return LINK_OK;
}

/* They have no credit, so they have a bound at which they are dropped: a later heartbeat says all
 * that the dropped one would have said. */
static enum link_fault take_view(struct link_in *in, struct bytes body)
{
    uint32_t count = 0;
    enum link_fault fault = check_frames(body, true, &count);

    if (fault != LINK_OK)
        return fault;
    if (in->view.bytes + body.n > in->window / 4 || !link_queue_append(&in->view, body))
        in->dropped += count;
    return LINK_OK;
}

static bool large_grow(struct link_in *in, struct link_large *large, uint32_t needed)
{
    if (needed <= large->capacity)
        return true;

    uint64_t capacity = 2u * (uint64_t)needed;

    if (capacity > large->bytes)
        capacity = large->bytes;

    uint8_t *at = realloc(large->pieces.head, capacity);

    if (at == NULL)
        return false;
    in->large_held += capacity - large->capacity;
    large->pieces.head = at;
    large->capacity = (uint32_t)capacity;
    return true;
}

static enum link_fault take_fragment(struct link_in *in, struct bytes body)
{
    struct link_large *large = in->building;
    uint32_t left = large->bytes - large->done;

    if (body.n != (left < LINK_FRAGMENT ? left : LINK_FRAGMENT))
        return LINK_FRAGMENT_FAULT;

    enum link_fault fault = count_received(in, body.n);

    if (fault != LINK_OK)
        return fault;
    if (!large_grow(in, large, large->done + body.n))
        return LINK_MEMORY;
    memcpy(large->pieces.head + large->done, body.at, body.n);
    large->done += body.n;
    if (body.n == left || in->ready.first != NULL)
        large->uncredited += body.n;
    else
        in->consumed += body.n;
    if (body.n == left) {
        large->after = in->small_in;
        in->building = NULL;
        link_larges_push(&in->ready, large);
    }
    return LINK_OK;
}

static enum link_fault take_first(struct link_in *in, struct bytes body)
{
    uint32_t length = 0;

    if (in->building != NULL)
        return LINK_FRAGMENT_FAULT;
    if (frame_length(body, &length) != FRAME_DROP_NONE)
        return LINK_FRAME;
    if (length <= LINK_FRAGMENT)
        return LINK_FRAGMENT_FAULT;

    struct link_large *large = calloc(1, sizeof(*large));

    if (large == NULL)
        return LINK_MEMORY;
    large->bytes = length;
    in->building = large;
    in->large_held += sizeof(*large);
    return take_fragment(in, body);
}

static enum link_fault take_record(struct link *link, const uint8_t *record, uint32_t body_bytes)
{
    struct link_in *in = &link->in;
    struct bytes body = bytes_of(record + RECORD_HEADER, body_bytes);
    enum record_kind kind = (enum record_kind)record[RECORD_AT_KIND];
    uint32_t covered = RECORD_HEADER + body_bytes;

    if (!link_mac_open(&in->mac, bytes_of(record, covered), record + covered))
        return LINK_MAC;
    if (!in->opened && kind != RECORD_OPEN)
        return LINK_RECORD;

    enum link_fault fault = link_out_credit(&link->out, get_u64(record + RECORD_AT_CONSUMED));

    if (fault != LINK_OK)
        return fault;
    switch (kind) {
    case RECORD_OPEN:
        return take_open(link, body);
    case RECORD_FRAMES:
        return take_frames(in, body);
    case RECORD_VIEW:
        return take_view(in, body);
    case RECORD_FIRST:
        return take_first(in, body);
    case RECORD_NEXT:
        return in->building == NULL ? LINK_FRAGMENT_FAULT : take_fragment(in, body);
    case RECORD_CREDIT:
        break;
    }
    return LINK_OK;
}

static bool partial_grow(struct link_in *in, uint32_t needed)
{
    if (needed <= in->partial_capacity)
        return true;

    uint32_t capacity = needed < LINK_CHUNK ? LINK_CHUNK : RECORD_MAX;
    uint8_t *partial = realloc(in->partial, capacity);

    if (partial == NULL)
        return false;
    in->partial = partial;
    in->partial_capacity = capacity;
    return true;
}

/* Moves up to what is missing to `wanted` bytes of a record from the input to the partial record;
 * *whole_out says whether they are all there now. */
static enum link_fault gather(struct link_in *in, struct bytes *input, uint32_t wanted,
                              bool *whole_out)
{
    uint32_t missing = in->partial_used < wanted ? wanted - in->partial_used : 0;
    uint32_t n = missing < input->n ? missing : input->n;

    if (!partial_grow(in, wanted))
        return LINK_MEMORY;
    if (n > 0)
        memcpy(in->partial + in->partial_used, input->at, n);
    in->partial_used += n;
    *input = bytes_of(input->at + n, input->n - n);
    *whole_out = n == missing;
    return LINK_OK;
}

/* Goes on with a record that had begun in an earlier input. */
static enum link_fault resume(struct link *link, struct bytes *input)
{
    struct link_in *in = &link->in;
    bool whole = false;
    enum link_fault fault = gather(in, input, RECORD_HEADER, &whole);

    if (fault != LINK_OK || !whole)
        return fault;
    fault = check_header(in->partial);
    if (fault != LINK_OK)
        return fault;

    uint32_t body_bytes = get_u32(in->partial + RECORD_AT_BODY_BYTES);

    fault = gather(in, input, RECORD_EXTRA + body_bytes, &whole);
    if (fault != LINK_OK || !whole)
        return fault;
    in->partial_used = 0;
    return take_record(link, in->partial, body_bytes);
}

static enum link_fault input(struct link *link, struct bytes bytes)
{
    while (bytes.n > 0) {
        enum link_fault fault = LINK_OK;

        if (link->in.partial_used > 0 || bytes.n < RECORD_HEADER) {
            fault = resume(link, &bytes);
        } else {
            fault = check_header(bytes.at);
            if (fault != LINK_OK)
                return fault;

            uint32_t body_bytes = get_u32(bytes.at + RECORD_AT_BODY_BYTES);
            uint32_t record_bytes = RECORD_EXTRA + body_bytes;

            if (bytes.n < record_bytes) {
                fault = resume(link, &bytes);
            } else {
                fault = take_record(link, bytes.at, body_bytes);
                bytes = bytes_of(bytes.at + record_bytes, bytes.n - record_bytes);
            }
        }
        if (fault != LINK_OK)
            return fault;
    }
    return LINK_OK;
}

/* Lets go of what link_receive handed out. */
static void settle(struct link_in *in)
{
    switch (in->taken) {
    case TAKEN_NOTHING:
        break;
    case TAKEN_VIEW:
        link_queue_take(&in->view, in->lent_bytes);
        break;
    case TAKEN_SMALL:
        link_queue_take(&in->small, in->lent_bytes);
        break;
    case TAKEN_LARGE:
        link_large_free(in->lent, &in->large_held);
        in->lent = NULL;
        break;
    }
    in->taken = TAKEN_NOTHING;
}

enum link_fault link_input(struct link *link, struct bytes bytes)
{
    if (link->fault == LINK_OK) {
        settle(&link->in);
        link->fault = input(link, bytes);
    }
    return link->fault;
}

/* The first frame of a queue; its length was checked when it came. */
static struct bytes front_frame(const struct link_queue *queue)
{
    struct bytes front = link_queue_front(queue);
    uint32_t length = 0;
    enum frame_drop drop = frame_length(front, &length);

    HK_ASSERT(drop == FRAME_DROP_NONE && length <= front.n);
    return bytes_of(front.at, length);
}

static struct bytes lend_small(struct link_in *in, enum link_taken taken)
{
    struct bytes frame = front_frame(taken == TAKEN_VIEW ? &in->view : &in->small);

    in->taken = taken;
    in->lent_bytes = frame.n;
    if (taken == TAKEN_SMALL) {
        in->small_out += frame.n;
        in->consumed += frame.n;
    }
    return frame;
}

static struct bytes lend_large(struct link_in *in)
{
    struct link_large *large = link_larges_pop(&in->ready);

    in->taken = TAKEN_LARGE;
    in->lent = large;
    in->consumed += large->uncredited;
    if (in->ready.first == NULL && in->building != NULL) {
        in->consumed += in->building->uncredited;
        in->building->uncredited = 0;
    }
    return bytes_of(large->pieces.head, large->bytes);
}

bool link_receive(struct link *link, struct bytes *frame_out)
{
    struct link_in *in = &link->in;

    if (link->fault != LINK_OK)
        return false;
    settle(in);
    if (in->view.bytes > 0) {
        *frame_out = lend_small(in, TAKEN_VIEW);
        return true;
    }
    /* In the order of arrival: a large frame goes when the small ones before it have gone. */
    if (in->ready.first != NULL && in->small_out >= in->ready.first->after) {
        *frame_out = lend_large(in);
        return true;
    }
    if (in->small.bytes > 0) {
        *frame_out = lend_small(in, TAKEN_SMALL);
        return true;
    }
    /* Idle: only what every link needs is kept. */
    if (in->partial_used == 0 && in->partial_capacity > LINK_CHUNK) {
        free(in->partial);
        in->partial = NULL;
        in->partial_capacity = 0;
    }
    return false;
}

void link_in_clear(struct link_in *in)
{
    settle(in);
    link_mac_wipe(&in->mac);
    link_queue_clear(&in->view);
    link_queue_clear(&in->small);
    for (struct link_large *large; (large = link_larges_pop(&in->ready)) != NULL;)
        link_large_free(large, &in->large_held);
    if (in->building != NULL)
        link_large_free(in->building, &in->large_held);
    free(in->partial);
    HK_ASSERT(in->large_held == 0);
}
