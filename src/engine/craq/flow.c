/* The flow machine: an update at its origin, and a read that asked the tail. Each ends by the first
 * word that reaches it: of the chain, of the view, or of the clock. */
#include "engine/craq/machine.h"

void craq_drop(struct effects *fx, enum engine_drop why)
{
    effects_add(fx, EFF_DROP)->code = (uint8_t)why;
}

bool craq_admitted(const struct event *event, struct effects *fx)
{
    const struct craq_config *config = event->config;
    uint32_t epoch = event->msg->epoch;
    if (event->from == NODE_NONE || !nodeset_has(event->view->live, event->from)) {
        craq_drop(fx, ENGINE_DROP_SENDER);
        return false;
    }
    if (epoch == event->view->epoch || !craq_rule_on(config, CRAQ_RULE_EPOCH)) {
        return true;
    }
    craq_drop(fx, epoch < event->view->epoch ? ENGINE_DROP_EPOCH_OLD : ENGINE_DROP_EPOCH_NEW);
    if (epoch < event->view->epoch) {
        effects_add(fx, EFF_BEHIND);
    }
    return false;
}

static void end(struct slot *mine, struct effects *fx, enum reply_code code)
{
    mine->deadline_us = 0;
    effects_add(fx, EFF_REPLY)->code = (uint8_t)code;
    effects_add(fx, EFF_CLOSE);
}

static void update_flow(struct slot *mine, const struct event *event, struct effects *fx)
{
    const struct craq_config *config = event->config;
    bool unknown = craq_rule_on(config, CRAQ_RULE_UNKNOWN);
    if (event->kind == EV_KEY && event->code == CRAQ_CODE_DONE) {
        mine->ts = event->ts;
        end(mine, fx, REPLY_DONE);
    } else if (event->kind == EV_VIEW) {
        /* Rule 11: its WRITE may be on its way, or repaired later; or it may be gone. */
        end(mine, fx, unknown ? REPLY_UNKNOWN : REPLY_LOST);
    } else if (event->kind == EV_TIMER) {
        end(mine, fx, REPLY_UNKNOWN);
    } else if (event->kind == EV_MSG) {
        if (event->msg->kind == CRAQ_LOST && event->from == craq_head(event->view)) {
            end(mine, fx, REPLY_LOST);
        } else {
            craq_drop(fx, ENGINE_DROP_SLOT);
        }
    }
}

static void ask_flow(struct slot *mine, const struct event *event, struct effects *fx)
{
    const struct craq_config *config = event->config;
    if (event->kind == EV_VIEW || event->kind == EV_TIMER) {
        end(mine, fx, REPLY_AGAIN);
    } else if (event->kind == EV_MSG) {
        if (event->msg->kind != CRAQ_ANSWER || event->from != craq_read_tail(event->view)) {
            craq_drop(fx, ENGINE_DROP_SLOT);
        } else if ((event->msg->flags & CRAQ_F_BUSY) != 0) {
            /* The tail has said that it is dirty: to ask at once again would only load it. */
            mine->deadline_us = event->now_us + config->retry_us;
        } else {
            end(mine, fx, REPLY_VALUE);
        }
    }
}

void craq_flow(struct slot *mine, const struct event *event, struct effects *fx)
{
    if (event->kind == EV_MSG && !craq_admitted(event, fx)) {
        return;
    }
    if (mine != NULL && mine->kind == CRAQ_FLOW_UPDATE) {
        update_flow(mine, event, fx);
    } else if (mine != NULL && mine->kind == CRAQ_FLOW_ASK) {
        ask_flow(mine, event, fx);
    } else if (event->kind == EV_MSG) {
        craq_drop(fx, ENGINE_DROP_SLOT);
    }
}
