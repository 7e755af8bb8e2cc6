/* What goes out: messages are gathered in one buffer a peer and leave as sealed frames when a frame
 * is full or the poll ends. No timer fills a batch. */
#include "node/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "view/message.h"

#define OUTBOX_FIRST (80u * 1024u) /* a full frame and one more small message */

static void box_reserve(struct outbox *box, uint32_t bytes)
{
    if (bytes <= box->capacity) {
        return;
    }
    uint32_t capacity = bytes > OUTBOX_FIRST ? bytes : OUTBOX_FIRST;
    uint8_t *at = realloc(box->at, capacity);
    /* The largest message is bounded; a process without so much memory cannot go on honestly. */
    HK_ASSERT(at != NULL);
    box->at = at;
    box->capacity = capacity;
}

static uint16_t version_towards(const struct worker *w, uint8_t to)
{
    const struct env *env = &w->node->env;
    return env->version == NULL ? FRAME_VERSION : env->version(env->context, w->index, to);
}

void output_frame(const struct worker *w, struct frame *f, uint8_t kind, uint8_t to)
{
    const struct node *n = w->node;
    *f = (struct frame){
        .version = version_towards(w, to),
        .kind = kind,
        .source = n->config.self,
        .target = to,
        .source_worker = (uint8_t)w->index,
        .epoch = w->view.epoch,
        .cluster = n->config.cluster,
        .generation = w->view.generation,
        .nonce = n->config.view.nonce,
        .full = worker_full(w),
        .bare = n->env.intact,
    };
}

static void frame_to(const struct worker *w, struct frame *f, uint8_t to, uint8_t target_worker,
                     uint32_t body_bytes)
{
    output_frame(w, f, FRAME_BATCH, to);
    f->target_worker = target_worker;
    f->target_nonce = w->view.members[to].nonce;
    f->body.n = body_bytes;
}

static void send_box(struct worker *w, uint8_t to, struct outbox *box)
{
    struct frame f;
    if (box->body == 0) {
        return;
    }
    frame_to(w, &f, to, box->target_worker, box->body);
    uint32_t n = frame_seal(&f, box->at);
    box->body = 0;
    box->messages = 0;
    w->stats.frames_out++;
    w->stats.bytes_out += n;
    if (n > FRAME_GIVEN && w->node->env.give != NULL) {
        struct pieces whole = {.head = box->at, .head_bytes = n};
        *box = (struct outbox){.at = NULL};
        w->node->env.give(w->node->env.context, w->index, to, &whole);
        return;
    }
    w->node->env.send(w->node->env.context, w->index, to, bytes_of(box->at, n));
}

void output_box_add(struct outbox *box, const struct msg *msg)
{
    uint32_t at = FRAME_HEADER + box->body;
    box_reserve(box, at + msg_size(msg));
    msg_encode(msg, box->at + at);
    box->body += msg_size(msg);
}

/* A value that the store keeps leaves in a frame of its own and is not copied: a worker that copies
 * 64 MiB for every peer says nothing else meanwhile, and is taken for dead. */
static bool give_value(struct worker *w, uint8_t to, uint8_t target_worker, const struct msg *msg,
                       const struct store_ref *ref)
{
    const struct env *env = &w->node->env;
    if (ref == NULL || msg->value.n <= FRAME_GIVEN || env->give == NULL) {
        return false;
    }
    void *kept = store_hold(ref);
    if (kept == NULL) {
        return false;
    }
    send_box(w, to, &w->out[to]);
    struct pieces pieces = {.head_bytes = FRAME_HEADER + msg_size(msg) - msg->value.n,
                            .tail = msg->value,
                            .release = store_release,
                            .kept = kept};
    pieces.head = malloc(pieces.head_bytes);
    HK_ASSERT(pieces.head != NULL); /* as in box_reserve */
    msg_encode_head(msg, pieces.head + FRAME_HEADER);
    struct frame f;
    frame_to(w, &f, to, target_worker, msg_size(msg));
    w->stats.frames_out++;
    w->stats.bytes_out += frame_seal_pieces(&f, pieces.head, msg->value);
    env->give(env->context, w->index, to, &pieces);
    return true;
}

void output_message(struct worker *w, uint8_t to, uint8_t target_worker, const struct msg *msg)
{
    output_value(w, to, target_worker, msg, NULL);
}

static bool box_full(const struct worker *w, const struct outbox *box, uint32_t bytes)
{
    uint32_t most = w->node->config.frame_messages_max;
    return box->body + bytes > FRAME_FULL || (most > 0 && box->messages >= most);
}

/* Adds `bytes` bytes to the open frame and says where they stand. */
static uint8_t *box_room(struct worker *w, uint8_t to, uint8_t target_worker, uint32_t bytes)
{
    struct outbox *box = &w->out[to];
    if (box->body > 0 && (box->target_worker != target_worker || box_full(w, box, bytes))) {
        send_box(w, to, box);
    }
    box->target_worker = target_worker;
    box->messages++;
    uint32_t at = FRAME_HEADER + box->body;
    box_reserve(box, at + bytes);
    box->body += bytes;
    w->out_pending |= nodeset_of(to);
    return box->at + at;
}

/* What an engine sends, and calls and answers, which the coherence of a space rests on as well, and
 * what is said of hot sets and lost objects. Chunks find their way by themselves. */
static bool in_lane(const struct worker *w, const struct msg *msg)
{
    bool ours = msg->kind >= MSG_CALL && msg->kind <= MSG_OWN_SPARED;
    bool lane = msg->kind < MSG_NODE_FIRST || ours;
    return lane && w->node->spaces[msg->space].lanes;
}

/* Of spaces whose keys have homes it is counted who says how much. */
static void count_homed(struct worker *w, const struct msg *msg)
{
    struct node_stats *stats = &w->stats;
    uint32_t bytes = msg_size(msg);
    if (!w->node->spaces[msg->space].homed) {
        return;
    }
    if (msg->kind == MSG_CALL) {
        stats->call_messages++;
        stats->call_bytes += bytes;
    } else if (msg->kind == MSG_ANSWER) {
        stats->answer_messages++;
        stats->answer_bytes += bytes;
    } else if (msg->kind < MSG_NODE_FIRST) {
        uint32_t kind = msg->kind < HOMED_KINDS ? msg->kind : HOMED_KINDS - 1;
        stats->homed_messages[kind]++;
        stats->homed_bytes[kind] += bytes;
    }
}

void output_value(struct worker *w, uint8_t to, uint8_t target_worker, const struct msg *msg,
                  const struct store_ref *ref)
{
    w->stats.messages_out++;
    w->moved += msg_size(msg);
    if (to == w->node->config.self) {
        if (target_worker == w->index) {
            output_box_add(&w->self, msg);
        } else {
            aside_add(w, target_worker, msg);
        }
        return;
    }
    if (!nodeset_has(w->view.live, to)) {
        return; /* it left the view while this was decided */
    }
    count_homed(w, msg);
    if (in_lane(w, msg)) {
        lanes_message(w, to, target_worker, msg);
        return;
    }
    if (give_value(w, to, target_worker, msg, ref)) {
        return;
    }
    msg_encode(msg, box_room(w, to, target_worker, msg_size(msg)));
}

/* Small messages are the same bytes for everybody: the second copy costs less than encoding. */
void output_values(struct worker *w, nodeset set, uint8_t target_worker, const struct msg *msg,
                   const struct store_ref *ref)
{
    uint32_t bytes = msg_size(msg);
    const uint8_t *encoded = NULL;
    bool plain = bytes <= FRAME_FULL && !w->node->spaces[msg->space].lanes;
    for (nodeset rest = set; rest != 0; rest &= rest - 1) {
        uint8_t to = nodeset_first(rest);
        if (!plain || !nodeset_has(w->view.live, to) || to == w->node->config.self) {
            output_value(w, to, target_worker, msg, ref);
            continue;
        }
        w->stats.messages_out++;
        w->moved += bytes;
        count_homed(w, msg);
        uint8_t *at = box_room(w, to, target_worker, bytes);
        if (encoded == NULL) {
            msg_encode(msg, at);
        } else {
            memcpy(at, encoded, bytes);
        }
        encoded = at;
    }
}

void output_kept(struct worker *w, uint8_t space, uint8_t to, struct bytes entry, uint8_t kind)
{
    w->stats.messages_out++;
    w->moved += entry.n;
    if (!nodeset_has(w->view.live, to)) {
        return;
    }
    if (w->node->spaces[space].lanes) {
        lanes_encoded(w, to, 0, entry, kind);
        return;
    }
    uint8_t *at = box_room(w, to, 0, entry.n);
    memcpy(at, entry.at, entry.n);
    msg_readdress(at, kind, w->view.epoch);
}

bool output_under_way(const struct worker *w, uint8_t to, uint32_t value_bytes)
{
    const struct env *env = &w->node->env;
    return value_bytes > FRAME_GIVEN && env->under_way != NULL &&
           env->under_way(env->context, w->index, to);
}

void output_flush(struct worker *w)
{
    for (nodeset rest = w->out_pending; rest != 0; rest &= rest - 1) {
        uint8_t to = nodeset_first(rest);
        struct outbox *box = &w->out[to];
        send_box(w, to, box);
        if (box->capacity > FRAME_GIVEN) {
            free(box->at);
            *box = (struct outbox){.at = NULL};
        }
    }
    w->out_pending = 0;
    lanes_flush(w);
    if (w->aside_pending != 0) {
        aside_flush(w);
    }
}

void output_view(struct worker *w, uint8_t to, const struct view_msg *msg)
{
    uint8_t out[FRAME_HEADER + VIEW_MSG_ENCODED_MAX];
    const struct view *view = view_current(&w->node->machine);
    struct frame f;
    output_frame(w, &f, FRAME_VIEW, to);
    f.epoch = view->epoch;
    f.generation = view->generation;
    f.body.n = view_msg_encode(msg, out + FRAME_HEADER);
    uint32_t n = frame_seal(&f, out);
    w->stats.frames_out++;
    w->stats.bytes_out += n;
    w->node->env.send(w->node->env.context, w->index, to, bytes_of(out, n));
}

void output_deinit(struct worker *w)
{
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        free(w->out[i].at);
    }
    free(w->self.at);
}
