/* Requests that came to a driver while another one is pending there: instead of refusing them it
 * keeps some back, the oldest of them, and lets the oldest come first when that one has ended
 * (R19). To the machine they are messages that were longer on their way. Who is kept back has no
 * other request about the object open, so nothing of it passes this one; a change of view, after
 * which all ask anew, forgets them. */
#include "node/own_internal.h"

#include "base/assert.h"

uint64_t own_since(const struct worker *w, const struct own_request *q)
{
    uint64_t waited_us = (uint64_t)q->waited * OWN_WAITED_US;
    return w->now_us > waited_us ? w->now_us - waited_us : 0;
}

uint16_t own_waited(const struct worker *w, uint64_t since_us)
{
    uint64_t units = since_us < w->now_us ? (w->now_us - since_us) / OWN_WAITED_US : 0;
    return units < UINT16_MAX ? (uint16_t)units : UINT16_MAX;
}

/* The machine hears of it now. */
static void hand(struct worker *w, struct own_record *r, const struct own_kept_req *kept)
{
    uint8_t bytes[OWN_BODY_BYTES];
    struct own_body body = {.request = kept->request, .vector = {.owner = NODE_NONE}};
    body.request.waited = own_waited(w, kept->since_us);
    own_body_encode(&body, bytes);
    struct msg msg = {
        .space = r->space,
        .kind = OWN_MSG_REQ,
        .epoch = w->view.epoch,
        .arg = kept->clock,
        .key = r->key,
        .value = bytes_of(bytes, sizeof bytes),
    };
    struct own_step s;
    own_step_init(w, &s, r->space, OWN_EV_MSG, r->key, r->hash);
    s.event.msg = &msg;
    s.event.from = kept->request.requester;
    s.event.alive = true;
    s.record = r;
    own_step_one(w, &s);
}

static void take_out(struct own_record *r, uint32_t i)
{
    r->queue[i] = r->queue[--r->queue_n];
}

/* Of the kept requests the one that has waited longest, or (false) shortest. */
static uint32_t extreme(const struct own_record *r, bool longest)
{
    uint32_t found = 0;
    for (uint32_t i = 1; i < r->queue_n; i++) {
        bool longer = r->queue[i].since_us < r->queue[found].since_us;
        found = longer == longest ? i : found;
    }
    return found;
}

/* Whether this member would drive it, if nothing else were pending. */
static bool may_wait(const struct worker *w, const struct own_record *r, const struct own_step *s,
                     const struct own_request *q)
{
    const struct own_event *event = &s->event;
    const struct own_request *pending = &r->busy.request;
    bool same = pending->requester == q->requester && pending->seq == q->seq &&
                pending->admitted == q->admitted;
    return event->alive && q->requester == event->from && event->settled && event->recovered &&
           r->busy.state != OWN_VALID && !same && nodeset_has(event->drivers, event->self) &&
           w->view.members[q->requester].admitted == q->admitted;
}

bool own_queue_take(struct worker *w, struct own_record *r, const struct own_step *s)
{
    struct own_body body;
    own_body_decode(s->event.msg, &body);
    if (!may_wait(w, r, s, &body.request)) {
        return false;
    }
    struct own_kept_req kept = {.request = body.request,
                                .since_us = own_since(w, &body.request),
                                .clock = s->event.msg->arg};
    for (uint32_t i = 0; i < r->queue_n; i++) {
        if (r->queue[i].request.requester == kept.request.requester) {
            take_out(r, i); /* it has asked anew */
        }
    }
    if (r->queue_n == OWN_QUEUE_MAX) {
        uint32_t i = extreme(r, false);
        if (r->queue[i].since_us <= kept.since_us) {
            return false;
        }
        struct own_kept_req younger = r->queue[i];
        r->queue[i] = kept;
        hand(w, r, &younger); /* which refuses it, since one is pending */
    } else {
        r->queue[r->queue_n++] = kept;
    }
    w->stats.own_queued++;
    return true;
}

void own_queue_next(struct worker *w, struct own_record *r)
{
    while (r->busy.state == OWN_VALID && r->queue_n > 0) {
        uint32_t i = extreme(r, true);
        struct own_kept_req kept = r->queue[i];
        take_out(r, i);
        hand(w, r, &kept);
    }
}
