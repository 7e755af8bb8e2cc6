/* ZAB, an update at its origin ([H] 4.4.2 "a client can issue a write to any node, which in turn
 * propagates the write to the leader"), and what an entry of the log does to its key. */
#include "engine/zab/machine.h"

#include <string.h>

/* ---- The flow of an update ---- */

static void reply(struct slot *mine, struct effects *fx, enum reply_code code)
{
    effects_add(fx, EFF_REPLY)->code = (uint8_t)code;
    mine->kind = ZAB_FLOW_FREE;
    effects_add(fx, EFF_CLOSE);
}

static void end(struct slot *mine, const struct event *event, struct effects *fx,
                enum reply_code code)
{
    struct zab_worker *worker = event->worker;
    HK_ASSERT(worker->open > 0);
    worker->open--;
    if (mine->acked != worker->round && worker->stale > 0) {
        worker->stale--;
    }
    reply(mine, fx, code);
}

/* Rule 9: the leader has no room. Whatever else this worker has forwarded in this round it refuses
 * too, so that what is tried again keeps its order; and nothing is forwarded in the next round
 * before the last one is over. */
static void refused(struct slot *mine, const struct event *event, struct effects *fx)
{
    struct zab_worker *worker = event->worker;
    if ((event->msg->flags & ZAB_F_ROUND) != 0 && mine->acked == worker->round) {
        worker->round++;
        worker->stale = worker->open;
    }
    end(mine, event, fx, REPLY_LOST);
}

static void flow_told(struct slot *mine, const struct event *event, struct effects *fx)
{
    switch (event->code) {
    case ZAB_CODE_DONE:
        mine->ts = event->ts;
        end(mine, event, fx, REPLY_DONE);
        break;
    case FLOW_CODE_READY:
        /* Rule 7. What was proposed before this epoch has been taken here: this one was not. */
        if (mine->epoch != event->view->epoch) {
            end(mine, event, fx, REPLY_LOST);
        }
        break;
    case FLOW_CODE_NUDGE:
        break;
    default:
        HK_ASSERT(false && "a code that no key machine sends");
    }
}

void zab_slot_flow(struct slot *mine, const struct event *event, struct effects *fx)
{
    switch (event->kind) {
    case EV_MSG:
        if (!zab_admitted(event, fx)) {
            return;
        }
        if (event->msg->kind != ZAB_REFUSED || event->from != zab_leader(event->view) ||
            mine->epoch != event->view->epoch) {
            zab_drop(fx, ENGINE_DROP_SLOT);
            return;
        }
        refused(mine, event, fx);
        break;
    case EV_KEY:
        flow_told(mine, event, fx);
        break;
    case EV_VIEW:
        if (!zab_rule_on(event->config, ZAB_RULE_LOST_READY)) {
            end(mine, event, fx, REPLY_LOST); /* the fault to be shown: it may have been proposed */
        }
        break;
    case EV_READ:
        /* Reads are local and not linearizable: no majority has to confirm them. */
        mine->kind = ZAB_FLOW_UPDATE;
        reply(mine, fx, REPLY_DONE);
        break;
    case EV_TIMER:
        break; /* lanes lose nothing inside an epoch */
    case EV_UPDATE:
    case EV_FLOW:
    case EV_SWEEP:
    case EV_FLUSH:
    case EV_HOT:
    case EV_MOVE:
    case EV_SLOTS:
        HK_ASSERT(false && "an event of keys");
    }
}

/* ---- Keys ---- */

/* Rule 8: up to which entry the old value was complete for this key: all that this node had taken,
 * and the stored value's own, which may be ahead of that while worker 0 takes. */
static uint64_t condition(const struct key_meta *meta, const struct event *event)
{
    return zab_higher(stamp_version(meta->ts), event->taken);
}

static void key_update(struct key_meta *meta, struct slot *spare, const struct event *event,
                       struct effects *fx)
{
    struct zab_worker *worker = event->worker;
    HK_ASSERT(spare != NULL && spare->kind == ZAB_FLOW_FREE);
    if (worker->round_epoch != event->view->epoch) {
        worker->round_epoch = event->view->epoch;
        worker->round = 0;
        worker->stale = 0;
    }
    if (worker->stale > 0 && zab_rule_on(event->config, ZAB_RULE_ROUND)) {
        return; /* rule 9: not yet */
    }
    worker->open++;
    spare->kind = ZAB_FLOW_UPDATE;
    spare->epoch = event->view->epoch;
    spare->acked = worker->round;
    spare->ts = 0;
    spare->deadline_us = 0;
    effects_add(fx, EFF_ISSUE);
    struct effect *e = effects_add(fx, EFF_SEND);
    e->code = ZAB_FORWARD;
    e->to = zab_leader(event->view);
    e->with = EFF_PAYLOAD;
    e->slot = spare->ref;
    e->gen = spare->gen;
    e->set = worker->round;
    if (event->rmw) {
        e->flags = ZAB_F_RMW;
        e->ts = condition(meta, event);
    }
}

/* An entry's value becomes the key's. A shadow keeps what is deleted (rule 12): the older value may
 * still be on its way in a chunk. */
static void store(struct key_meta *meta, const struct event *event, struct effects *fx)
{
    const struct msg *msg = event->msg;
    bool shadow = !nodeset_has(event->view->operational, event->self) &&
                  zab_rule_on(event->config, ZAB_RULE_TOMBSTONES);
    if ((msg->vflags & KEY_TOMBSTONE) != 0 && !shadow) {
        if (meta->ts != 0) {
            effects_add(fx, EFF_FORGET);
        }
        return;
    }
    meta->ts = msg->kind == ZAB_ITEM ? msg->ts : stamp_make(msg->ts, ZAB_CID);
    meta->flags |= KEY_READABLE;
    effects_add(fx, EFF_APPLY);
}

/* An entry of the log is taken. A chunk may have brought a newer value of its key. */
static void key_take(struct key_meta *meta, const struct event *event, struct effects *fx)
{
    const struct msg *msg = event->msg;
    if (msg->ts > stamp_version(meta->ts)) {
        store(meta, event, fx);
    }
    if (msg->flags == event->self) {
        struct effect *e = effects_add(fx, EFF_FLOW);
        e->code = ZAB_CODE_DONE;
        e->slot = msg->slot;
        e->gen = msg->gen;
        e->ts = stamp_make(msg->ts, ZAB_CID);
    }
}

static void key_item(struct key_meta *meta, const struct event *event, struct effects *fx)
{
    if (!zab_admitted(event, fx)) {
        return;
    }
    if (event->msg->ts > meta->ts || !zab_rule_on(event->config, ZAB_RULE_ITEM_NEWER)) {
        store(meta, event, fx);
    } else {
        zab_drop(fx, ENGINE_DROP_STALE);
    }
}

void zab_key(struct key_meta *meta, void *ext, struct slot *mine, struct slot *spare,
             const struct event *event, struct effects *fx)
{
    (void)ext;
    (void)mine;
    switch (event->kind) {
    case EV_UPDATE:
        key_update(meta, spare, event, fx);
        break;
    case EV_MSG:
        if (event->msg->kind == ZAB_PROPOSE) {
            key_take(meta, event, fx);
        } else {
            HK_ASSERT(event->msg->kind == ZAB_ITEM);
            key_item(meta, event, fx);
        }
        break;
    case EV_SWEEP:
        /* Rule 12: nobody sends chunks to this node any more. */
        if ((meta->flags & KEY_TOMBSTONE) != 0 && meta->ts != 0 &&
            nodeset_has(event->view->operational, event->self)) {
            effects_add(fx, EFF_FORGET);
        }
        break;
    case EV_TIMER:
        break;
    case EV_READ:
    case EV_FLOW:
        HK_ASSERT(false && "every key is readable, and no flow steps one");
        break;
    case EV_VIEW:
    case EV_KEY:
    case EV_FLUSH:
    case EV_HOT:
    case EV_MOVE:
    case EV_SLOTS:
        HK_ASSERT(false && "an event of flows");
    }
}
