/* Steps in words, for traces: what happened, and how it shows in the processes. */
#include "explore/view_run.h"

#include <string.h>

static const struct views_model *model_of(const void *self)
{
    const struct views_model *model;
    memcpy(&model, self, sizeof model);
    return model;
}

/* "B2": the second process of node 1. */
static void process_print(const struct views_state *state, uint32_t place, FILE *to)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < place; i++) {
        count += state->process[i].node == state->process[place].node;
    }
    fprintf(to, "%c%u", 'A' + state->process[place].node, count);
}

static void nodes_print(nodeset nodes, FILE *to)
{
    fprintf(to, "{");
    for (; nodes != 0; nodes &= nodes - 1) {
        fprintf(to, "%c", 'A' + nodeset_first(nodes));
    }
    fprintf(to, "}");
}

/* "2{A1 B2*}": epoch and members; shadows have a star. */
static void view_print(const struct views_model *model, const struct views_state *state,
                       uint16_t number, FILE *to)
{
    const struct view *view = view_book_view(&model->book, number);
    const char *space = "";

    fprintf(to, "%u{", view->epoch);
    for (nodeset rest = view->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        fprintf(to, "%s", space);
        process_print(state, (uint32_t)view->members[node].nonce - 1, to);
        fprintf(to, "%s", nodeset_has(view->operational, node) ? "" : "*");
        space = " ";
    }
    fprintf(to, "}");
    if (view->configured_old != 0) {
        fprintf(to, " of ");
        nodes_print(view->configured, to);
        fprintf(to, " and ");
        nodes_print(view->configured_old, to);
    }
}

static void ballot_print(const struct views_state *state, struct views_ballot ballot, FILE *to)
{
    fprintf(to, "%u of ", ballot.round);
    process_print(state, ballot.process - 1u, to);
}

static void message_print(const struct views_model *model, const struct views_state *state,
                          const struct views_message *message, FILE *to)
{
    fprintf(to, "%s of ", view_msg_name(message->kind));
    process_print(state, message->from, to);
    switch ((enum view_msg_kind)message->kind) {
    case VIEW_MSG_HEARTBEAT:
        fprintf(to, " in epoch %u, %u old", message->epoch, message->age);
        break;
    case VIEW_MSG_GRANT:
        fprintf(to, " for ");
        process_print(state, message->holder - 1u, to);
        fprintf(to, ", %u old", message->age);
        break;
    case VIEW_MSG_VIEW:
        fprintf(to, " ");
        view_print(model, state, message->view, to);
        break;
    case VIEW_MSG_ASK:
        break;
    case VIEW_MSG_PREPARE:
        fprintf(to, ": instance %u, ballot ", message->instance);
        ballot_print(state, message->ballot, to);
        fprintf(to, ", drops ");
        nodes_print(message->drops, to);
        break;
    case VIEW_MSG_PROMISE:
    case VIEW_MSG_ACCEPT:
        fprintf(to, ": instance %u, ballot ", message->instance);
        ballot_print(state, message->ballot, to);
        if (message->view != 0) {
            fprintf(to, message->kind == VIEW_MSG_ACCEPT ? ", " : ", accepted ");
            view_print(model, state, message->view, to);
        }
        break;
    case VIEW_MSG_ACCEPTED:
    case VIEW_MSG_REFUSE:
        fprintf(to, ": instance %u, ballot ", message->instance);
        ballot_print(state, message->ballot, to);
        break;
    }
}

static void action_print(const struct views_model *model, const struct views_state *before,
                         const struct views_state *after, uint64_t action, FILE *to)
{
    static const char *const verbs[] = {
        [VIEWS_ACTION_TIME] = "a tick passes",
        [VIEWS_ACTION_DELIVER] = " gets ",
        [VIEWS_ACTION_SUSPECT] = " suspects ",
        [VIEWS_ACTION_HINT] = " tells its view to ",
        [VIEWS_ACTION_CRASH] = " crashes",
        [VIEWS_ACTION_START] = " starts",
        [VIEWS_ACTION_PAUSE] = " is paused",
        [VIEWS_ACTION_RESUME] = " resumes",
        [VIEWS_ACTION_ADOPTED] = "'s workers adopt epoch ",
        [VIEWS_ACTION_COPIED] = " has copied everything",
        [VIEWS_ACTION_LEAVE] = " is to leave",
        [VIEWS_ACTION_CONFIGURE] = " is told to configure ",
        [VIEWS_ACTION_WEDGE] = " has a wedged worker",
        [VIEWS_ACTION_RUN] = " runs",
    };
    enum views_action kind = (enum views_action)(action >> 32);
    uint32_t a = action >> 16 & UINT16_MAX, b = action & UINT16_MAX;

    if (kind == VIEWS_ACTION_START) {
        process_print(after, after->processes - 1u, to);
    } else if (kind != VIEWS_ACTION_TIME) {
        process_print(before, a, to);
    }
    fprintf(to, "%s", verbs[kind]);
    if (kind == VIEWS_ACTION_DELIVER) {
        message_print(model, before, &before->message[b], to);
    } else if (kind == VIEWS_ACTION_SUSPECT || kind == VIEWS_ACTION_HINT) {
        fprintf(to, "%c", 'A' + (int)b);
    } else if (kind == VIEWS_ACTION_TIME && b != NODE_NONE) {
        fprintf(to, ", but not on %c's clock", 'A' + (int)b);
    } else if (kind == VIEWS_ACTION_ADOPTED) {
        fprintf(to, "%u", b);
    } else if (kind == VIEWS_ACTION_CONFIGURE) {
        nodes_print(b, to);
    }
}

/* What others could notice in this process, or rely on. */
static void change_print(const struct views_model *model, const struct views_state *before,
                         const struct views_state *after, uint32_t place, FILE *to)
{
    const struct views_process *was = &before->process[place], *now = &after->process[place];

    if (was->fate != VIEWS_FATE_NONE && was->fate != VIEWS_FATE_OVER &&
        now->fate == VIEWS_FATE_OVER) {
        fprintf(to, "; ");
        process_print(after, place, to);
        fprintf(to, " is over");
        return;
    }
    bool views = was->view != now->view, accepts = was->accepted_view != now->accepted_view;
    bool holds = was->held_view != now->held_view && now->held_view != 0;
    bool leases = (was->lease > 0) != (now->lease > 0);
    if (!views && !(accepts && now->accepted_view != 0) && !holds && !leases) {
        return;
    }
    fprintf(to, "; ");
    process_print(after, place, to);
    if (views) {
        fprintf(to, " is in view ");
        view_print(model, after, now->view, to);
    }
    if (accepts && now->accepted_view != 0) {
        fprintf(to, "%s accepts ", views ? "," : "");
        view_print(model, after, now->accepted_view, to);
    }
    if (holds) {
        fprintf(to, " waits to accept ");
        view_print(model, after, now->held_view, to);
    }
    if (leases) {
        fprintf(to, now->lease > 0 ? " holds a lease" : " holds no lease any more");
    }
}

void views_describe(const void *self, const void *before, const void *after, uint64_t action,
                    FILE *to)
{
    const struct views_model *model = model_of(self);
    struct views_state was, now;

    memcpy(&was, before, sizeof was);
    memcpy(&now, after, sizeof now);
    action_print(model, &was, &now, action, to);
    for (uint32_t place = 0; place < now.processes; place++) {
        change_print(model, &was, &now, place, to);
    }
    for (uint32_t epoch = 1; epoch <= VIEWS_EPOCHS_MAX; epoch++) {
        if (now.decided[epoch] != was.decided[epoch]) {
            fprintf(to, "; view ");
            view_print(model, &now, now.decided[epoch], to);
            fprintf(to, " is decided");
        }
    }
}
