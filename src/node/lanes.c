/* The lanes of one worker (lane.h): messages of spaces that need order are gathered in the open
 * frame of their lane, sealed at the end of a poll, kept, and sent again until the peer has
 * consumed them; what comes in is delivered in its order.
 *
 * A lane ends when the view changes so that the pair of processes is no more: then no message of it
 * means anything to anybody. Until then none is lost, so an engine may rely on it. What is kept is
 * bounded by the updates in progress, since those are bounded and engines with lanes send nothing
 * again by themselves; besides, no new update begins while a lane keeps more than LANE_KEPT_MAX. */
#include "node/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

_Static_assert(LANE_WORKERS == WORKERS_MAX, "a lane a worker");

/* The lanes between this worker and one process. */
struct lane_peer {
    uint64_t nonce;
    uint32_t life;                     /* of the pair, as in struct lane_head */
    struct lane_out *out[WORKERS_MAX]; /* by target worker */
    struct lane_in *in[WORKERS_MAX];   /* by source worker; lists */
};

void lanes_init(struct worker *w)
{
    list_init(&w->lanes.open);
    list_init(&w->lanes.owing);
}

uint32_t lanes_life(const struct worker *w, uint8_t node)
{
    uint8_t self = w->node->config.self;
    const struct view *view = &w->view;
    if (!nodeset_has(view->live, node) || !view_has(view, self, w->node->config.view.nonce)) {
        return 0;
    }
    uint32_t a = view->members[node].admitted;
    uint32_t b = view->members[self].admitted;
    return a > b ? a : b;
}

static struct lane_peer *peer_of(struct worker *w, uint8_t node)
{
    struct lane_peer *peer = w->lanes.peers[node];
    if (peer == NULL && lanes_life(w, node) != 0) {
        peer = calloc(1, sizeof *peer);
        HK_ASSERT(peer != NULL);
        peer->nonce = w->view.members[node].nonce;
        peer->life = lanes_life(w, node);
        w->lanes.peers[node] = peer;
    }
    return peer;
}

static struct lane_out *out_of(struct worker *w, uint8_t to, uint8_t target_worker)
{
    struct lane_peer *peer = peer_of(w, to);
    if (peer == NULL) {
        return NULL;
    }
    struct lane_out *lane = peer->out[target_worker];
    if (lane == NULL) {
        lane = malloc(sizeof *lane);
        HK_ASSERT(lane != NULL);
        lane_out_init(lane, to, target_worker, TIMER_LANE_OUT);
        peer->out[target_worker] = lane;
    }
    return lane;
}

/* The lane that frame f came by. */
static struct lane_in *in_of(struct worker *w, const struct frame *f)
{
    struct lane_in **list = &w->lanes.peers[f->source]->in[f->source_worker];
    for (struct lane_in *lane = *list; lane != NULL; lane = lane->next) {
        if (lane->lane == f->target_worker) {
            return lane;
        }
    }
    struct lane_in *lane = malloc(sizeof *lane);
    HK_ASSERT(lane != NULL);
    lane_in_init(lane, f->source, f->source_worker, f->target_worker, TIMER_LANE_IN);
    lane->next = *list;
    *list = lane;
    return lane;
}

/* ---- Sending ---- */

static void acked(struct worker *w, struct lane_in *lane)
{
    lane_in_acked(lane);
    list_remove(&lane->pending);
    wheel_disarm(&w->wheel, &lane->timer);
}

/* What a frame to that worker says of what came from there. */
static void acknowledge(struct worker *w, uint8_t to, uint8_t worker, struct lane_head *head)
{
    struct lane_in *lane = w->lanes.peers[to]->in[worker];
    while (lane != NULL && lane->next != NULL && lane->owed == 0 && !lane->at_once) {
        lane = lane->next;
    }
    if (lane == NULL) {
        return;
    }
    head->acks = true;
    head->acked = lane->delivered;
    head->acked_lane = lane->lane;
    head->gap = lane_in_gap(lane);
    acked(w, lane);
}

static void transmit(struct worker *w, uint8_t to, struct bytes frame)
{
    const struct env *env = &w->node->env;
    w->stats.frames_out++;
    w->stats.bytes_out += frame.n;
    if (frame.n > FRAME_GIVEN && env->give != NULL) {
        /* The lane keeps its own. */
        struct pieces whole = {.head = malloc(frame.n), .head_bytes = frame.n};
        HK_ASSERT(whole.head != NULL);
        memcpy(whole.head, frame.at, frame.n);
        env->give(env->context, w->index, to, &whole);
        return;
    }
    env->send(env->context, w->index, to, frame);
}

/* Seals a kept frame, anew with what is to be acknowledged now, and sends it. */
static void send_kept(struct worker *w, struct lane_out *lane, uint64_t sequence)
{
    const struct lane_peer *peer = w->lanes.peers[lane->to];
    const struct lane_kept *kept = lane_out_kept(lane, sequence);
    uint8_t *at = lane_out_frame(lane, kept);
    struct lane_head head = {.sequence = sequence, .life = peer->life};
    acknowledge(w, lane->to, lane->target_worker, &head);
    lane_head_encode(&head, at + FRAME_HEADER);
    struct frame f;
    output_frame(w, &f, FRAME_LANE, lane->to);
    f.target_worker = lane->target_worker;
    f.target_nonce = peer->nonce;
    f.epoch = kept->epoch;
    f.body.n = kept->bytes - FRAME_HEADER;
    uint32_t n = frame_seal(&f, at);
    w->stats.lane_again += kept->again;
    if (lane->timer.place == TIMER_IDLE) {
        wheel_arm(&w->wheel, &lane->timer, lane_out_due(lane));
    }
    transmit(w, lane->to, bytes_of(at, n));
}

static void note_kept(struct worker *w, uint64_t before, uint64_t after)
{
    w->lanes.clogged += after > LANE_KEPT_MAX && before <= LANE_KEPT_MAX;
    w->lanes.clogged -= after <= LANE_KEPT_MAX && before > LANE_KEPT_MAX;
}

static void close_frame(struct worker *w, struct lane_out *lane)
{
    uint64_t before = lane->bytes;
    if (lane->open_bytes == 0) {
        return;
    }
    list_remove(&lane->pending);
    uint64_t sequence = lane_out_close(lane, w->view.epoch, w->now_us);
    note_kept(w, before, lane->bytes);
    send_kept(w, lane, sequence);
}

/* A message, or one that stands encoded in a log and gets another kind. */
struct item {
    const struct msg *msg; /* NULL: it is encoded */
    struct bytes encoded;
    uint8_t kind;
};

static void write_item(const struct worker *w, const struct item *item, uint8_t *out)
{
    if (item->msg != NULL) {
        msg_encode(item->msg, out);
        return;
    }
    memcpy(out, item->encoded.at, item->encoded.n);
    msg_readdress(out, item->kind, w->view.epoch);
}

static void send_large(struct worker *w, struct lane_out *lane, const struct item *item, uint32_t n)
{
    close_frame(w, lane);
    uint64_t before = lane->bytes;
    uint8_t *room;
    uint64_t sequence = lane_out_large(lane, n, w->view.epoch, w->now_us, &room);
    write_item(w, item, room);
    note_kept(w, before, lane->bytes);
    send_kept(w, lane, sequence);
}

static void send_item(struct worker *w, uint8_t to, uint8_t target_worker, const struct item *item,
                      uint32_t n)
{
    struct lane_out *lane = out_of(w, to, target_worker);
    if (lane == NULL) {
        return; /* this process is no member any more */
    }
    if (n > LANE_FRAME_FULL) {
        send_large(w, lane, item, n);
        return;
    }
    if (lane_out_full(lane, n)) {
        close_frame(w, lane);
    }
    if (lane->open_bytes == 0) {
        list_push_back(&w->lanes.open, &lane->pending);
    }
    write_item(w, item, lane_out_room(lane, n));
}

void lanes_message(struct worker *w, uint8_t to, uint8_t target_worker, const struct msg *msg)
{
    struct item item = {.msg = msg};
    send_item(w, to, target_worker, &item, msg_size(msg));
}

void lanes_encoded(struct worker *w, uint8_t to, uint8_t target_worker, struct bytes encoded,
                   uint8_t kind)
{
    struct item item = {.encoded = encoded, .kind = kind};
    send_item(w, to, target_worker, &item, encoded.n);
}

/* An acknowledgement that found no frame to ride on. */
static void acknowledge_alone(struct worker *w, struct lane_in *lane)
{
    const struct lane_peer *peer = w->lanes.peers[lane->from];
    uint8_t out[LANE_FRAME_HEAD];
    struct lane_head head = {.life = peer->life,
                             .acks = true,
                             .acked = lane->delivered,
                             .acked_lane = lane->lane,
                             .gap = lane_in_gap(lane)};
    lane_head_encode(&head, out + FRAME_HEADER);
    acked(w, lane);
    struct frame f;
    output_frame(w, &f, FRAME_LANE, lane->from);
    f.target_worker = lane->source_worker;
    f.target_nonce = peer->nonce;
    f.body.n = LANE_HEAD;
    transmit(w, lane->from, bytes_of(out, frame_seal(&f, out)));
}

void lanes_flush(struct worker *w)
{
    list_each_safe(link, following, &w->lanes.open)
    {
        close_frame(w, list_entry(link, struct lane_out, pending));
    }
    list_each_safe(link, following, &w->lanes.owing)
    {
        struct lane_in *lane = list_entry(link, struct lane_in, pending);
        if (lane_in_urgent(lane)) {
            acknowledge_alone(w, lane);
        } else {
            list_remove(&lane->pending);
            if (lane->timer.place == TIMER_IDLE) {
                wheel_arm(&w->wheel, &lane->timer, w->now_us + LANE_ACK_US);
            }
        }
    }
}

bool lanes_clogged(const struct worker *w)
{
    return w->lanes.clogged > 0;
}

uint64_t lanes_kept(const struct worker *w, uint8_t to, uint8_t target_worker)
{
    const struct lane_peer *peer = w->lanes.peers[to];
    const struct lane_out *lane = peer != NULL ? peer->out[target_worker] : NULL;
    return lane != NULL ? lane->bytes : 0;
}

/* ---- Time ---- */

/* A large frame takes long to arrive, and what was sent behind it longer. For a while; then it
 * counts as lost. */
static bool held(const struct worker *w, const struct lane_out *lane)
{
    const struct env *env = &w->node->env;
    uint64_t most_us = HELD_LEASES * (uint64_t)w->node->config.view.lease_us;
    return env->under_way != NULL && w->now_us - lane->progress_us <= most_us &&
           env->under_way(env->context, w->index, lane->to);
}

/* A process that consumes nothing for a lease is suspected, heartbeats or not: it may be heard
 * without hearing. */
static void suspect_deaf(struct worker *w, const struct lane_out *lane)
{
    if (w->now_us - lane->progress_us > w->node->config.view.lease_us) {
        atomic_fetch_or_explicit(&w->node->suspects, nodeset_of(lane->to), memory_order_relaxed);
    }
}

static void send_again(struct worker *w, struct lane_out *lane)
{
    uint64_t sequence;
    while ((sequence = lane_out_again(lane, w->now_us)) != 0) {
        send_kept(w, lane, sequence);
    }
}

/* Several times within a lease: else one who was not asked again would seem to be deaf. */
static void limit_rto(const struct worker *w, struct lane_out *lane)
{
    uint32_t most_us = (uint32_t)w->node->config.view.lease_us / 8;
    most_us = most_us > LANE_RTO_MIN_US ? most_us : LANE_RTO_MIN_US;
    lane->rto_us = lane->rto_us < most_us ? lane->rto_us : most_us;
}

static void out_timer(struct worker *w, struct lane_out *lane)
{
    uint64_t due_us = lane_out_due(lane);
    if (due_us == UINT64_MAX) {
        return;
    }
    if (due_us <= w->now_us) {
        if (!held(w, lane)) {
            suspect_deaf(w, lane);
            lane_out_timeout(lane);
            limit_rto(w, lane);
            send_again(w, lane);
        }
        due_us = w->now_us + lane->rto_us;
    }
    wheel_arm(&w->wheel, &lane->timer, due_us);
}

void lanes_timer(struct worker *w, struct timer *timer)
{
    if (timer->kind == TIMER_LANE_OUT) {
        out_timer(w, list_entry(timer, struct lane_out, timer));
        return;
    }
    struct lane_in *lane = list_entry(timer, struct lane_in, timer);
    lane->at_once = true;
    if (list_empty(&lane->pending)) {
        list_push_back(&w->lanes.owing, &lane->pending);
    }
}

/* ---- Receiving ---- */

static void owe(struct worker *w, struct lane_in *lane)
{
    if (list_empty(&lane->pending)) {
        list_push_back(&w->lanes.owing, &lane->pending);
    }
}

/* Delivers what was kept because something before it, or its view, was missing. */
static void drain(struct worker *w, struct lane_in *lane)
{
    struct bytes messages;
    while (lane_in_next(lane, w->view.epoch, &messages)) {
        input_batch(w, messages, lane->from);
        lane_in_done(lane, messages.n);
        owe(w, lane);
    }
}

static void take_ack(struct worker *w, const struct frame *f, const struct lane_head *head)
{
    struct lane_out *lane = w->lanes.peers[f->source]->out[head->acked_lane];
    uint64_t before = lane != NULL ? lane->bytes : 0;
    if (lane == NULL || !lane_out_ack(lane, head->acked, w->now_us)) {
        w->stats.node_drops[NODE_DROP_LANE] += lane != NULL || head->acked != 0;
        return;
    }
    note_kept(w, before, lane->bytes);
    uint64_t missing = head->gap && head->acked == lane->acked ? lane_out_gap(lane, w->now_us) : 0;
    if (missing != 0) {
        send_kept(w, lane, missing);
    }
    send_again(w, lane);
}

static void take_messages(struct worker *w, const struct frame *f, uint64_t sequence,
                          struct bytes messages)
{
    struct lane_in *lane = in_of(w, f);
    owe(w, lane);
    switch (lane_in_take(lane, sequence, f->epoch, w->view.epoch, messages)) {
    case LANE_DELIVER:
        input_batch(w, messages, f->source);
        lane_in_done(lane, messages.n);
        owe(w, lane); /* a large answer may have left at once, with what was owed before */
        drain(w, lane);
        break;
    case LANE_KEPT:
        w->stats.lane_early++;
        break;
    case LANE_DUPLICATE:
        w->stats.lane_duplicates++;
        break;
    case LANE_AHEAD:
        w->stats.node_drops[NODE_DROP_AHEAD]++;
        break;
    }
}

void lanes_frame(struct worker *w, const struct frame *f)
{
    struct lane_head head;
    const struct lane_peer *peer = peer_of(w, f->source);
    if (peer == NULL || f->source_worker >= WORKERS_MAX || f->target_worker >= WORKERS_MAX ||
        lane_head_decode(f->body, &head) != NULL || head.life != peer->life) {
        w->stats.node_drops[NODE_DROP_LANE]++;
        return;
    }
    input_note_full(w, f);
    if (head.acks) {
        take_ack(w, f, &head);
    }
    if (head.sequence != 0) {
        take_messages(w, f, head.sequence, bytes_of(f->body.at + LANE_HEAD, f->body.n - LANE_HEAD));
    }
}

/* ---- Views ---- */

static void end_in(struct worker *w, struct lane_in *lane)
{
    list_remove(&lane->pending);
    wheel_disarm(&w->wheel, &lane->timer);
    lane_in_deinit(lane);
    free(lane);
}

static void end_out(struct worker *w, struct lane_out *lane)
{
    note_kept(w, lane->bytes, 0);
    list_remove(&lane->pending);
    wheel_disarm(&w->wheel, &lane->timer);
    lane_out_deinit(lane);
    free(lane);
}

static void end_peer(struct worker *w, uint8_t node)
{
    struct lane_peer *peer = w->lanes.peers[node];
    for (uint32_t i = 0; i < WORKERS_MAX; i++) {
        if (peer->out[i] != NULL) {
            end_out(w, peer->out[i]);
        }
        while (peer->in[i] != NULL) {
            struct lane_in *lane = peer->in[i];
            peer->in[i] = lane->next;
            end_in(w, lane);
        }
    }
    free(peer);
    w->lanes.peers[node] = NULL;
}

void lanes_adopt(struct worker *w)
{
    for (uint8_t i = 0; i < NODES_MAX; i++) {
        const struct lane_peer *peer = w->lanes.peers[i];
        if (peer != NULL &&
            (!view_has(&w->view, i, peer->nonce) || lanes_life(w, i) != peer->life)) {
            end_peer(w, i);
        }
    }
}

void lanes_drain(struct worker *w)
{
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        for (uint32_t k = 0; w->lanes.peers[i] != NULL && k < WORKERS_MAX; k++) {
            for (struct lane_in *lane = w->lanes.peers[i]->in[k]; lane != NULL; lane = lane->next) {
                drain(w, lane);
            }
        }
    }
}

void lanes_deinit(struct worker *w)
{
    for (uint8_t i = 0; i < NODES_MAX; i++) {
        if (w->lanes.peers[i] != NULL) {
            end_peer(w, i);
        }
    }
}

void lanes_check(const struct worker *w)
{
    uint32_t clogged = 0;
    for (uint8_t i = 0; i < NODES_MAX; i++) {
        const struct lane_peer *peer = w->lanes.peers[i];
        for (uint32_t k = 0; peer != NULL && k < WORKERS_MAX; k++) {
            if (peer->out[k] != NULL) {
                lane_out_check(peer->out[k]);
                clogged += peer->out[k]->bytes > LANE_KEPT_MAX;
            }
            for (const struct lane_in *lane = peer->in[k]; lane != NULL; lane = lane->next) {
                lane_in_check(lane);
            }
        }
        HK_ASSERT(peer == NULL || view_has(&w->view, i, peer->nonce));
    }
    HK_ASSERT(clogged == w->lanes.clogged);
}
