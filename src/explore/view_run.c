/* Taking a step: an event for one process, and what it sends put on its way. */
#include "explore/view_run.h"

#include <string.h>

#include "base/assert.h"

#define CHAIN_MAX 10000u /* prompt messages that follow from one step */

bool views_up(const struct views_state *state, uint32_t place)
{
    return place < state->processes && state->process[place].fate == VIEWS_FATE_UP;
}

static bool alive(const struct views_process *p)
{
    return p->fate == VIEWS_FATE_UP || p->fate == VIEWS_FATE_PAUSED;
}

void views_start(struct views_model *model, const struct views_state *from)
{
    memcpy(&model->state, from, sizeof model->state);
    model->broken = NULL;
    model->prompts = 0;
}

/* Nothing is left of a process that will not step again but who it was. */
void views_crash(struct views_model *model, uint32_t place)
{
    struct views_process *p = &model->state.process[place];
    uint8_t node = p->node;
    memset(p, 0, sizeof *p);
    p->fate = VIEWS_FATE_OVER;
    p->node = node;
}

uint32_t views_process_start(struct views_model *model, uint8_t node)
{
    struct views_state *state = &model->state;
    struct view_config config;

    HK_ASSERT(state->processes < VIEWS_PROCESSES_MAX);
    uint32_t place = state->processes++;
    struct views_process *p = &state->process[place];
    p->fate = VIEWS_FATE_UP;
    p->node = node;
    p->kept_generation = state->kept_generation[node];
    p->kept_epoch = state->kept_epoch[node];
    views_config_fill(state, place, model->configured, &model->times, &model->book, &config);
    view_init(&model->machine, &config, VIEWS_NOW_US);
    views_pack(&model->machine, &model->book, p);
    return place;
}

/* ---- Messages ---- */

void views_lose(struct views_model *model, uint32_t index)
{
    struct views_state *state = &model->state;
    HK_ASSERT(index < state->messages);
    state->messages--;
    memmove(&state->message[index], &state->message[index + 1],
            (state->messages - index) * sizeof state->message[0]);
    memset(&state->message[state->messages], 0, sizeof state->message[0]);
}

/* Whether the new message stands for the old one: the same, a heartbeat or grant that is newer, or
 * the same view from somebody else. */
static bool replaces(const struct views_message *new, const struct views_message *old)
{
    if (new->kind != old->kind || new->to != old->to) {
        return false;
    }
    if (new->kind == VIEW_MSG_VIEW) {
        return new->view == old->view;
    }
    if (new->kind == VIEW_MSG_HEARTBEAT || new->kind == VIEW_MSG_GRANT) {
        return new->from == old->from &&new->holder == old->holder;
    }
    return memcmp(new, old, sizeof *new) == 0;
}

static void put(struct views_model *model, const struct views_message *message)
{
    struct views_state *state = &model->state;

    for (uint32_t i = 0; i < state->messages; i++) {
        if (replaces(message, &state->message[i])) {
            memcpy(&state->message[i], message, sizeof *message);
            return;
        }
    }
    if (state->messages == VIEWS_MESSAGES_MAX) {
        model->overflows++;
        return;
    }
    memcpy(&state->message[state->messages++], message, sizeof *message);
}

/* Whether the configuration lets it travel at all. */
static bool travels(const struct views_model *model, const struct views_message *message)
{
    const struct views_config *config = model->config;
    uint8_t node = model->state.process[message->from].node;
    bool request = message->kind == VIEW_MSG_PREPARE || message->kind == VIEW_MSG_ACCEPT;

    if (model->by_hand) {
        return true;
    }
    if ((config->lost >> message->kind & 1) != 0 || nodeset_has(config->cut[node], message->to)) {
        return false;
    }
    if (message->kind == VIEW_MSG_HEARTBEAT) {
        return nodeset_has(config->beats[node], message->to);
    }
    return !request ||
           (message->instance <= config->epochs_max && message->ballot.round <= config->rounds_max);
}

static void transmit(struct views_model *model, uint32_t place, const struct view_effect *effect,
                     uint8_t generation)
{
    struct views_message message;

    /* views_check_step complains of what no peer takes. */
    if (effect->to >= model->config->nodes || view_msg_invalid(&effect->msg) != NULL) {
        return;
    }
    views_message_pack(&effect->msg, place, effect->to, generation, &model->book, &message);
    if (!travels(model, &message)) {
        return;
    }
    if (!model->by_hand && (model->config->prompt >> message.kind & 1) != 0) {
        HK_ASSERT(model->prompts < VIEWS_PROMPT_MAX);
        memcpy(&model->prompt[model->prompts++], &message, sizeof message);
        return;
    }
    put(model, &message);
}

/* ---- Events ---- */

static void effects_apply(struct views_model *model, uint32_t place, uint8_t generation)
{
    struct views_state *state = &model->state;
    uint8_t node = state->process[place].node;
    const struct view *view = &model->machine.view;
    bool over = false;

    for (uint32_t i = 0; i < model->fx.n; i++) {
        const struct view_effect *effect = &model->fx.e[i];
        switch (effect->kind) {
        case VIEW_EFFECT_SEND:
            transmit(model, place, effect, generation);
            break;
        case VIEW_EFFECT_INSTALL:
            views_decided(model, view);
            break;
        case VIEW_EFFECT_PERSIST:
            state->kept_generation[node] = view_book_generation(&model->book, view->generation);
            state->kept_epoch[node] = (uint8_t)view->epoch;
            break;
        case VIEW_EFFECT_WIPE:
        case VIEW_EFFECT_LEFT:
            over = true;
            break;
        }
    }
    if (over) {
        views_crash(model, place);
    }
}

void views_event(struct views_model *model, uint32_t place, struct view_event event)
{
    struct views_process *p = &model->state.process[place];
    struct view_machine *m = &model->machine;
    struct view_config config;

    HK_ASSERT(p->fate == VIEWS_FATE_UP);
    views_config_fill(&model->state, place, model->configured, &model->times, &model->book,
                      &config);
    views_unpack(&model->state, place, &config, model->rules_off, &model->book, m);
    event.now_us = VIEWS_NOW_US;
    model->fx.n = 0;
    view_step(m, &event, &model->fx);
    views_pack(m, &model->book, p);
    views_check_step(model, place, m);
    effects_apply(model, place, view_book_generation(&model->book, m->view.generation));
}

void views_tick(struct views_model *model, uint32_t place)
{
    bool healthy = !model->state.process[place].wedged;
    views_event(model, place, (struct view_event){.kind = VIEW_EVENT_TICK, .healthy = healthy});
}

static void give(struct views_model *model, const struct views_message *message, uint32_t place)
{
    struct view_msg msg;
    views_message_unpack(&model->state, message, &model->times, &model->book, &msg);
    views_event(model, place,
                (struct view_event){.kind = VIEW_EVENT_MESSAGE,
                                    .node = model->state.process[message->from].node,
                                    .nonce = views_nonce(message->from),
                                    .generation = model->book.generation[message->generation],
                                    .msg = &msg});
}

void views_deliver(struct views_model *model, uint32_t index, uint32_t place)
{
    struct views_message message = model->state.message[index];
    if (model->by_hand || message.kind == VIEW_MSG_HEARTBEAT || message.kind == VIEW_MSG_GRANT) {
        views_lose(model, index);
    }
    give(model, &message, place);
}

static void prompts_give(struct views_model *model)
{
    for (uint32_t n = 0; model->prompts > 0; n++) {
        struct views_message message = model->prompt[0];
        HK_ASSERT(n < CHAIN_MAX);
        model->prompts--;
        memmove(&model->prompt[0], &model->prompt[1], model->prompts * sizeof message);
        for (uint32_t place = 0; place < model->state.processes; place++) {
            if (model->state.process[place].node == message.to && views_up(&model->state, place)) {
                give(model, &message, place);
            }
        }
    }
}

/* ---- The canonical form ---- */

static bool same_ballot(struct views_ballot a, struct views_ballot b)
{
    return a.round == b.round && a.process == b.process;
}

static int ballot_order(const struct views_state *state, struct views_ballot a,
                        struct views_ballot b)
{
    if (a.round != b.round || a.round == 0) {
        return (int)a.round - (int)b.round;
    }
    uint8_t one = state->process[a.process - 1].node, two = state->process[b.process - 1].node;
    return one != two ? (int)one - (int)two : (int)a.process - (int)b.process;
}

static uint32_t epoch_of(const struct views_model *model, const struct views_process *p)
{
    return view_book_view(&model->book, p->view)->epoch;
}

/* Whether a request, or a view, may still change something in this process. */
static bool receives(const struct views_model *model, const struct views_message *message,
                     const struct views_process *p)
{
    if (message->kind == VIEW_MSG_VIEW) {
        return epoch_of(model, p) < view_book_view(&model->book, message->view)->epoch;
    }
    int order = ballot_order(&model->state, message->ballot, p->promised);
    if (epoch_of(model, p) >= message->instance) {
        return false;
    }
    if (message->kind == VIEW_MSG_PREPARE) {
        return order > 0;
    }
    return order >= 0 && !same_ballot(p->accepted, message->ballot) &&
           !same_ballot(p->held, message->ballot);
}

/* ... or in some process of its node, or one that may yet be started there. */
static bool received(const struct views_model *model, const struct views_message *message)
{
    const struct views_state *state = &model->state;
    bool any = false;

    for (uint32_t i = 0; i < state->processes; i++) {
        const struct views_process *p = &state->process[i];
        if (p->node == message->to && alive(p)) {
            any = true;
            if (receives(model, message, p)) {
                return true;
            }
        }
    }
    return !any && nodeset_has(model->config->faulty, message->to) &&
           state->left[VIEWS_BUDGET_STARTS] > 0 && state->processes < VIEWS_PROCESSES_MAX;
}

/* Whether some process may still make use of the message: if not, it is as good as lost. Answers
 * are for one ballot; a ballot that is over never comes back. */
static bool useful(const struct views_model *model, const struct views_message *message)
{
    const struct views_process *proposer =
        message->ballot.process == 0 ? NULL : &model->state.process[message->ballot.process - 1];
    bool answers = proposer != NULL && alive(proposer) &&
                   same_ballot(proposer->ballot, message->ballot) &&
                   epoch_of(model, proposer) + 1 == message->instance;

    switch ((enum view_msg_kind)message->kind) {
    case VIEW_MSG_HEARTBEAT:
    case VIEW_MSG_ASK:
        return true;
    case VIEW_MSG_GRANT:
        return message->age < (model->times.lease_us - model->times.margin_us) / VIEWS_TICK_US;
    case VIEW_MSG_VIEW:
    case VIEW_MSG_PREPARE:
    case VIEW_MSG_ACCEPT:
        return received(model, message);
    case VIEW_MSG_PROMISE:
        return answers && proposer->phase == VIEW_PHASE_PREPARE;
    case VIEW_MSG_ACCEPTED:
    case VIEW_MSG_REFUSE:
        return answers;
    }
    return false;
}

static void sort(void *items, uint32_t n, size_t bytes)
{
    uint8_t *at = items;
    uint8_t kept[64];

    HK_ASSERT(bytes <= sizeof kept);
    for (uint32_t i = 1; i < n; i++) {
        uint32_t j = i;
        memcpy(kept, at + i * bytes, bytes);
        while (j > 0 && memcmp(at + (j - 1) * bytes, kept, bytes) > 0) {
            memcpy(at + j * bytes, at + (j - 1) * bytes, bytes);
            j--;
        }
        memcpy(at + j * bytes, kept, bytes);
    }
}

/* Ballots that nobody can add an acceptance to, or that only say again what is decided. */
static void accepts_prune(struct views_model *model)
{
    struct views_state *state = &model->state;
    uint32_t least = UINT32_MAX;
    uint32_t n = 0;

    for (uint32_t i = 0; i < state->processes; i++) {
        if (alive(&state->process[i])) {
            uint32_t epoch = epoch_of(model, &state->process[i]);
            least = epoch < least ? epoch : least;
        }
    }
    for (uint32_t i = 0; i < state->accepts; i++) {
        struct views_accept entry = state->accept[i];
        uint32_t epoch = view_book_view(&model->book, entry.view)->epoch;
        if (epoch > least && entry.view != state->decided[epoch]) {
            memcpy(&state->accept[n++], &entry, sizeof entry);
        }
    }
    memset(&state->accept[n], 0, (state->accepts - n) * sizeof state->accept[0]);
    state->accepts = (uint8_t)n;
}

void views_settle(struct views_model *model)
{
    struct views_state *state = &model->state;

    prompts_give(model);
    for (uint32_t i = state->messages; i > 0; i--) {
        if (!model->altered && !useful(model, &state->message[i - 1])) {
            views_lose(model, i - 1);
        }
    }
    accepts_prune(model);
    sort(state->message, state->messages, sizeof state->message[0]);
    sort(state->accept, state->accepts, sizeof state->accept[0]);
}
