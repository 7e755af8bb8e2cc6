/* The initial state: processes without a view, or a cluster formed by hand, and then the moves of
 * the configuration, which are steps of the same machines. */
#include "explore/view_run.h"

#include <string.h>

#include "base/assert.h"

#define FIRST_GENERATION 7u
#define KEPT_GENERATION 77u

static void tell(struct views_model *model, uint32_t from, uint32_t to, const struct view *view)
{
    struct view_msg msg;
    memset(&msg, 0, sizeof msg);
    msg.kind = VIEW_MSG_VIEW;
    msg.epoch = view->epoch;
    msg.view = *view;
    views_event(model, to,
                (struct view_event){.kind = VIEW_EVENT_MESSAGE,
                                    .node = model->state.process[from].node,
                                    .nonce = views_nonce(from),
                                    .generation = view->generation,
                                    .msg = &msg});
}

/* The first view, known to all of its members. */
static void form(struct views_model *model)
{
    uint8_t formed = model->config->formed != 0 ? model->config->formed : model->configured;
    struct view view;

    memset(&view, 0, sizeof view);
    view.generation = FIRST_GENERATION;
    view.epoch = 1;
    view.next_cid = 1;
    view.configured = formed;
    view.live = formed;
    view.operational = formed;
    for (nodeset rest = formed; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        view.members[node] = (struct view_member){.nonce = views_nonce(node),
                                                  .admitted = 1,
                                                  .cid_first = view.next_cid++,
                                                  .cid_count = 1,
                                                  .role = VIEW_ROLE_OPERATIONAL};
    }
    for (nodeset rest = formed; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        tell(model, node == 0 ? 1 : 0, node, &view);
        views_event(model, node, (struct view_event){.kind = VIEW_EVENT_ADOPTED, .epoch = 1});
    }
}

static void lose_all(struct views_model *model)
{
    while (model->state.messages > 0) {
        views_lose(model, 0);
    }
}

/* What `from` had sent to the process at `to` when this began, in the order in which it lies. */
static void deliver(struct views_model *model, uint32_t from, uint32_t to, uint32_t kinds)
{
    struct views_state *state = &model->state;
    struct views_message due[VIEWS_MESSAGES_MAX];
    uint32_t n = 0;

    for (uint32_t i = 0; i < state->messages; i++) {
        const struct views_message *message = &state->message[i];
        if (message->from == from && message->to == state->process[to].node &&
            (kinds >> message->kind & 1) != 0) {
            memcpy(&due[n++], message, sizeof *message);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t at = 0; at < state->messages; at++) {
            if (memcmp(&state->message[at], &due[i], sizeof due[i]) == 0) {
                views_deliver(model, at, to);
                break;
            }
        }
    }
}

/* Everybody hears everybody, and says so; then the grants given meanwhile run out. */
static void become_acquainted(struct views_model *model)
{
    struct views_state *state = &model->state;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < state->processes; i++) {
            views_tick(model, i);
        }
        for (uint32_t i = 0; i < state->processes; i++) {
            for (uint32_t j = 0; j < state->processes; j++) {
                deliver(model, i, j, VIEWS_KIND(HEARTBEAT));
            }
        }
        views_age(state, &model->times, NODE_NONE);
    }
    for (uint32_t i = 0; i < model->config->lease_ticks; i++) {
        views_age(state, &model->times, NODE_NONE);
    }
    lose_all(model);
}

static void copied(struct views_model *model, uint32_t place)
{
    uint32_t epoch = view_book_view(&model->book, model->state.process[place].view)->epoch;
    views_event(model, place, (struct view_event){.kind = VIEW_EVENT_ADOPTED, .epoch = epoch});
    views_event(model, place, (struct view_event){.kind = VIEW_EVENT_COPIED});
}

static void move(struct views_model *model, const struct views_move *move)
{
    struct views_state *state = &model->state;
    switch ((enum views_move_kind)move->kind) {
    case VIEWS_MOVE_END:
        return;
    case VIEWS_MOVE_TIME:
        for (uint32_t i = 0; i < move->a; i++) {
            views_age(state, &model->times, NODE_NONE);
        }
        return;
    case VIEWS_MOVE_TICK:
        views_tick(model, move->a);
        return;
    case VIEWS_MOVE_DELIVER:
        deliver(model, move->a, move->b, move->kinds);
        return;
    case VIEWS_MOVE_SUSPECT:
        views_event(model, move->a,
                    (struct view_event){.kind = VIEW_EVENT_SUSPECT, .node = move->b});
        return;
    case VIEWS_MOVE_HINT:
        views_event(model, move->a, (struct view_event){.kind = VIEW_EVENT_HINT, .node = move->b});
        return;
    case VIEWS_MOVE_START:
        (void)views_process_start(model, move->a);
        return;
    case VIEWS_MOVE_PAUSE:
        state->process[move->a].fate = VIEWS_FATE_PAUSED;
        return;
    case VIEWS_MOVE_CRASH:
        views_crash(model, move->a);
        return;
    case VIEWS_MOVE_COPIED:
        copied(model, move->a);
        return;
    case VIEWS_MOVE_CONFIGURE:
        views_event(model, move->a,
                    (struct view_event){.kind = VIEW_EVENT_CONFIGURE, .configured = move->b});
        return;
    case VIEWS_MOVE_LOSE:
        lose_all(model);
        return;
    }
}

void views_begin(struct views_model *model)
{
    const struct views_config *config = model->config;
    struct views_state *state = &model->state;

    memset(state, 0, sizeof *state);
    model->broken = NULL;
    model->prompts = 0;
    model->by_hand = true;
    for (uint8_t node = 0; node < config->nodes; node++) {
        if (config->kept_epoch != 0) {
            state->kept_generation[node] = view_book_generation(&model->book, KEPT_GENERATION);
            state->kept_epoch[node] = config->kept_epoch;
        }
        (void)views_process_start(model, node);
    }
    if (!config->boots) {
        form(model);
        become_acquainted(model);
    }
    for (const struct views_move *m = config->moves; m != NULL && m->kind != VIEWS_MOVE_END; m++) {
        move(model, m);
    }
    model->by_hand = false;
    memcpy(state->left, config->budget, sizeof state->left);
    views_settle(model);
    memcpy(&model->begin, state, sizeof model->begin);
}
