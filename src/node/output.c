/* What goes out: messages are gathered in one buffer a peer and leave as sealed frames when a frame
 * is full or the poll ends. No timer fills a batch. */
#include "node/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "view/message.h"

#define OUTBOX_FIRST (80u * 1024u) /* a full frame and one more small message */
#define OUTBOX_KEEP (256u * 1024u) /* larger buffers go back after the flush */

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

static void frame_from(const struct worker *w, struct frame *f, uint8_t kind, uint8_t to)
{
    const struct node *n = w->node;
    *f = (struct frame){
        .version = FRAME_VERSION,
        .kind = kind,
        .source = n->config.self,
        .target = to,
        .source_worker = (uint8_t)w->index,
        .epoch = w->view.epoch,
        .cluster = n->config.cluster,
        .generation = w->view.generation,
        .nonce = n->config.view.nonce,
        .full = worker_full(w),
    };
}

static void send_box(struct worker *w, uint8_t to, struct outbox *box)
{
    struct frame f;
    if (box->body == 0) {
        return;
    }
    frame_from(w, &f, FRAME_BATCH, to);
    f.target_worker = box->target_worker;
    f.target_nonce = w->view.members[to].nonce;
    f.body.n = box->body;
    uint32_t n = frame_seal(&f, box->at);
    box->body = 0;
    w->stats.frames_out++;
    w->stats.bytes_out += n;
    w->node->env.send(w->node->env.context, w->index, to, bytes_of(box->at, n));
}

static void box_add(struct outbox *box, const struct msg *msg)
{
    uint32_t at = FRAME_HEADER + box->body;
    box_reserve(box, at + msg_size(msg));
    msg_encode(msg, box->at + at);
    box->body += msg_size(msg);
}

void output_message(struct worker *w, uint8_t to, uint8_t target_worker, const struct msg *msg)
{
    w->stats.messages_out++;
    if (to == w->node->config.self) {
        HK_ASSERT(target_worker == w->index);
        box_add(&w->self, msg);
        return;
    }
    if (!nodeset_has(w->view.live, to)) {
        return; /* it left the view while this was decided */
    }
    struct outbox *box = &w->out[to];
    if (box->body > 0 &&
        (box->target_worker != target_worker || box->body + msg_size(msg) > FRAME_FULL)) {
        send_box(w, to, box);
    }
    box->target_worker = target_worker;
    box_add(box, msg);
    w->out_pending |= nodeset_of(to);
}

void output_flush(struct worker *w)
{
    for (nodeset rest = w->out_pending; rest != 0; rest &= rest - 1) {
        uint8_t to = nodeset_first(rest);
        struct outbox *box = &w->out[to];
        send_box(w, to, box);
        if (box->capacity > OUTBOX_KEEP) {
            free(box->at);
            *box = (struct outbox){.at = NULL};
        }
    }
    w->out_pending = 0;
}

void output_view(struct worker *w, uint8_t to, const struct view_msg *msg)
{
    uint8_t out[FRAME_HEADER + VIEW_MSG_ENCODED_MAX];
    const struct view *view = view_current(&w->node->machine);
    struct frame f;
    frame_from(w, &f, FRAME_VIEW, to);
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
