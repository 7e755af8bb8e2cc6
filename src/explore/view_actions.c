/* What may happen next, in every state. */
#include "explore/view_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* The search hands its model back as const; the model's scratch space is behind this pointer. */
static struct views_model *model_of(const void *self)
{
    struct views_model *model;
    memcpy(&model, self, sizeof model);
    return model;
}

static void emit(struct views_model *model, struct search *search, uint64_t action)
{
    views_settle(model);
    search_emit(search, &model->state, action, model->broken);
}

/* Begins a step that takes from the budget; false: nothing is left of it. */
static bool spend(struct views_model *model, const struct views_state *from,
                  enum views_budget budget)
{
    if (from->left[budget] == 0) {
        return false;
    }
    views_start(model, from);
    model->state.left[budget]--;
    return true;
}

/* The processes in the order of this number; false: there are no more orders. */
static bool order(uint32_t number, uint32_t n, uint8_t places_out[VIEWS_PROCESSES_MAX])
{
    uint8_t rest[VIEWS_PROCESSES_MAX];
    for (uint8_t i = 0; i < n; i++) {
        rest[i] = i;
    }
    for (uint32_t left = n; left > 0; left--) {
        uint32_t pick = number % left;
        number /= left;
        places_out[n - left] = rest[pick];
        memmove(&rest[pick], &rest[pick + 1], left - pick - 1);
    }
    return number == 0;
}

static void suspect_unreachable(struct views_model *model, uint32_t place)
{
    uint8_t cut = model->config->cut[model->state.process[place].node];
    for (nodeset rest = cut; rest != 0; rest &= rest - 1) {
        if (views_up(&model->state, place)) {
            views_event(
                model, place,
                (struct view_event){.kind = VIEW_EVENT_SUSPECT, .node = nodeset_first(rest)});
        }
    }
}

/* A tick of time: everybody who is not paused runs, in this order. */
static void tick(struct views_model *model, const uint8_t places[VIEWS_PROCESSES_MAX], uint8_t slow)
{
    bool in_time = model->config->in_time;
    uint32_t n = model->state.processes;

    views_age(&model->state, &model->times, slow);
    for (uint32_t i = 0; i < n; i++) {
        if (in_time) {
            suspect_unreachable(model, places[i]);
        }
        if (views_up(&model->state, places[i])) {
            views_tick(model, places[i]);
        }
        if (in_time) {
            views_settle(model);
        }
    }
}

/* The order matters where messages arrive at once. */
static void time_passes(struct views_model *model, const struct views_state *from,
                        struct search *search)
{
    uint8_t places[VIEWS_PROCESSES_MAX];
    uint32_t number = 0;

    while (order(number, from->processes, places) && spend(model, from, VIEWS_BUDGET_TICKS)) {
        tick(model, places, NODE_NONE);
        emit(model, search, views_action(VIEWS_ACTION_TIME, number, NODE_NONE));
        if (!model->config->in_time) {
            break;
        }
        number++;
    }
    (void)order(0, from->processes, places);
    for (uint8_t node = 0; node < model->config->nodes; node++) {
        if (from->left[VIEWS_BUDGET_TICKS] > 0 && spend(model, from, VIEWS_BUDGET_DRIFT)) {
            model->state.left[VIEWS_BUDGET_TICKS]--;
            tick(model, places, node);
            emit(model, search, views_action(VIEWS_ACTION_TIME, 0, node));
        }
    }
}

static void messages_arrive(struct views_model *model, const struct views_state *from,
                            struct search *search)
{
    for (uint32_t index = 0; index < from->messages; index++) {
        for (uint32_t place = 0; place < from->processes; place++) {
            if (from->process[place].node == from->message[index].to && views_up(from, place)) {
                views_start(model, from);
                views_deliver(model, index, place);
                emit(model, search, views_action(VIEWS_ACTION_DELIVER, place, index));
            }
        }
    }
}

/* One event for one process, within a budget. */
static void event_happens(struct views_model *model, const struct views_state *from,
                          struct search *search, enum views_budget budget, uint32_t place,
                          struct view_event event, uint64_t action)
{
    if (spend(model, from, budget)) {
        views_event(model, place, event);
        emit(model, search, action);
    }
}

static void about_others(struct views_model *model, const struct views_state *from, uint32_t place,
                         struct search *search)
{
    const struct views_config *config = model->config;
    const struct views_process *p = &from->process[place];
    uint32_t epoch = view_book_view(&model->book, p->view)->epoch;

    for (uint8_t node = 0; node < config->nodes; node++) {
        if (nodeset_has(config->suspects[p->node], node) && p->member[node].suspected == 0) {
            event_happens(model, from, search, VIEWS_BUDGET_SUSPECTS, place,
                          (struct view_event){.kind = VIEW_EVENT_SUSPECT, .node = node},
                          views_action(VIEWS_ACTION_SUSPECT, place, node));
        }
        bool behind = false;
        for (uint32_t i = 0; i < from->processes; i++) {
            behind |= from->process[i].node == node && from->process[i].fate == VIEWS_FATE_UP &&
                      view_book_view(&model->book, from->process[i].view)->epoch < epoch;
        }
        if (behind && node != p->node) {
            event_happens(model, from, search, VIEWS_BUDGET_HINTS, place,
                          (struct view_event){.kind = VIEW_EVENT_HINT, .node = node},
                          views_action(VIEWS_ACTION_HINT, place, node));
        }
    }
}

static void about_itself(struct views_model *model, const struct views_state *from, uint32_t place,
                         struct search *search)
{
    const struct views_config *config = model->config;
    const struct views_process *p = &from->process[place];
    uint32_t epoch = view_book_view(&model->book, p->view)->epoch;

    if (p->adopted < epoch && from->left[VIEWS_BUDGET_COPIES] > 0) {
        views_start(model, from);
        views_event(model, place, (struct view_event){.kind = VIEW_EVENT_ADOPTED, .epoch = epoch});
        emit(model, search, views_action(VIEWS_ACTION_ADOPTED, place, epoch));
    }
    if (nodeset_has(config->runs, p->node) && p->heartbeat == 0 &&
        spend(model, from, VIEWS_BUDGET_RUNS)) {
        views_tick(model, place);
        emit(model, search, views_action(VIEWS_ACTION_RUN, place, 0));
    }
    if (p->was_shadow && !p->copied) {
        event_happens(model, from, search, VIEWS_BUDGET_COPIES, place,
                      (struct view_event){.kind = VIEW_EVENT_COPIED},
                      views_action(VIEWS_ACTION_COPIED, place, 0));
    }
    if (nodeset_has(config->leaves, p->node) && !p->leaving) {
        event_happens(model, from, search, VIEWS_BUDGET_LEAVES, place,
                      (struct view_event){.kind = VIEW_EVENT_LEAVE},
                      views_action(VIEWS_ACTION_LEAVE, place, 0));
    }
    if (p->member_since != 0 && p->wanted == 0) {
        event_happens(
            model, from, search, VIEWS_BUDGET_CONFIGURES, place,
            (struct view_event){.kind = VIEW_EVENT_CONFIGURE, .configured = config->configured},
            views_action(VIEWS_ACTION_CONFIGURE, place, config->configured));
    }
}

static void fate_changes(struct views_model *model, const struct views_state *from,
                         struct search *search, uint32_t place)
{
    uint8_t fate = from->process[place].fate;

    if (fate == VIEWS_FATE_PAUSED) {
        views_start(model, from);
        model->state.process[place].fate = VIEWS_FATE_UP;
        emit(model, search, views_action(VIEWS_ACTION_RESUME, place, 0));
        return;
    }
    if (fate != VIEWS_FATE_UP) {
        return;
    }
    if (spend(model, from, VIEWS_BUDGET_CRASHES)) {
        views_crash(model, place);
        emit(model, search, views_action(VIEWS_ACTION_CRASH, place, 0));
    }
    if (spend(model, from, VIEWS_BUDGET_PAUSES)) {
        model->state.process[place].fate = VIEWS_FATE_PAUSED;
        emit(model, search, views_action(VIEWS_ACTION_PAUSE, place, 0));
    }
    if (!from->process[place].wedged && spend(model, from, VIEWS_BUDGET_WEDGES)) {
        model->state.process[place].wedged = 1;
        emit(model, search, views_action(VIEWS_ACTION_WEDGE, place, 0));
    }
}

/* A node whose process is over, or only paused, may start another one. */
static void processes_start(struct views_model *model, const struct views_state *from,
                            struct search *search)
{
    if (from->processes == VIEWS_PROCESSES_MAX) {
        return;
    }
    for (uint8_t node = 0; node < model->config->nodes; node++) {
        bool up = false;
        for (uint32_t i = 0; i < from->processes; i++) {
            up |= from->process[i].node == node && views_up(from, i);
        }
        views_start(model, from);
        if (!up && nodeset_has(model->config->faulty, node) &&
            spend(model, from, VIEWS_BUDGET_STARTS)) {
            (void)views_process_start(model, node);
            emit(model, search, views_action(VIEWS_ACTION_START, node, 0));
        }
    }
}

void views_expand(const void *self, const void *state, struct search *search)
{
    struct views_model *model = model_of(self);
    struct views_state from;

    memcpy(&from, state, sizeof from);
    time_passes(model, &from, search);
    messages_arrive(model, &from, search);
    for (uint32_t place = 0; place < from.processes; place++) {
        if (views_up(&from, place)) {
            about_others(model, &from, place, search);
            about_itself(model, &from, place, search);
        }
        if (nodeset_has(model->config->faulty, from.process[place].node)) {
            fate_changes(model, &from, search, place);
        }
    }
    processes_start(model, &from, search);
}

static void begin(const void *self, void *state_out)
{
    const struct views_model *model = model_of(self);
    memcpy(state_out, &model->begin, sizeof model->begin);
}

static const char *broken(const void *self, const void *state)
{
    struct views_model *model = model_of(self);
    struct views_state copy;
    memcpy(&copy, state, sizeof copy);
    return views_check_state(model, &copy);
}

static bool finished(const void *self, const void *state)
{
    struct views_model *model = model_of(self);
    struct views_state copy;
    memcpy(&copy, state, sizeof copy);
    return views_check_goal(model, &copy);
}

void views_explore(const struct views_config *config, const struct explore_request *request,
                   struct search_result *result_out)
{
    HK_ASSERT(config->nodes <= VIEWS_NODES_MAX && config->epochs_max < VIEWS_EPOCHS_MAX);
    struct views_model *model = calloc(1, sizeof *model);
    if (model == NULL) {
        *result_out = (struct search_result){.end = SEARCH_NOMEM};
        return;
    }
    model->config = config;
    model->rules_off = request->rules_off;
    model->altered = request->altered && request->rules_off == 0;
    model->configured = (uint8_t)((1u << config->nodes) - 1);
    model->times = (struct views_times){.lease_us = config->lease_ticks * VIEWS_TICK_US,
                                        .margin_us = config->margin_ticks * VIEWS_TICK_US,
                                        .suspect_us = config->lease_ticks * VIEWS_TICK_US - 1};
    model->handle = model;
    model->search = (struct search_model){.self = &model->handle,
                                          .state_bytes = sizeof(struct views_state),
                                          .begin = begin,
                                          .expand = views_expand,
                                          .broken = broken,
                                          .finished = finished,
                                          .describe = views_describe};
    view_book_init(&model->book);
    views_begin(model);
    search_run(&model->search, &request->bounds, request->progress, request->context, result_out);
    /* A message that found no room is one that the network lost, but then not all was explored. */
    if (model->overflows > 0 && result_out->end == SEARCH_COMPLETE) {
        result_out->end = SEARCH_BOUND;
    }
    free(model);
}

void views_config_print(const struct views_config *config, FILE *to)
{
    static const char *const names[VIEWS_BUDGETS] = {
        [VIEWS_BUDGET_TICKS] = "ticks",
        [VIEWS_BUDGET_SUSPECTS] = "suspicions",
        [VIEWS_BUDGET_CRASHES] = "crashes",
        [VIEWS_BUDGET_STARTS] = "restarts",
        [VIEWS_BUDGET_PAUSES] = "pauses",
        [VIEWS_BUDGET_COPIES] = "copies",
        [VIEWS_BUDGET_LEAVES] = "departures",
        [VIEWS_BUDGET_CONFIGURES] = "configurations",
        [VIEWS_BUDGET_HINTS] = "hints",
        [VIEWS_BUDGET_WEDGES] = "wedged workers",
        [VIEWS_BUDGET_RUNS] = "runs between ticks",
        [VIEWS_BUDGET_DRIFT] = "ticks of drift",
    };

    fprintf(to, "%u nodes, epochs up to %u, rounds up to %u, lease %u ticks, margin %u",
            config->nodes, config->epochs_max, config->rounds_max, config->lease_ticks,
            config->margin_ticks);
    for (uint32_t i = 0; i < VIEWS_BUDGETS; i++) {
        if (config->budget[i] > 0) {
            fprintf(to, ", %s %u", names[i], config->budget[i]);
        }
    }
}
