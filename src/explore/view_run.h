/* What the files of the view model call in each other. */
#ifndef HORKOS_EXPLORE_VIEW_RUN_H
#define HORKOS_EXPLORE_VIEW_RUN_H

#include "explore/view_model.h"

#define VIEWS_PROMPT_MAX 64u

struct views_model {
    struct search_model search;
    struct views_model *handle; /* what the search passes back: a pointer to this */
    const struct views_config *config;
    uint64_t rules_off;
    bool altered; /* the code is: no message is taken for useless */
    struct views_times times;
    uint8_t configured; /* the configuration file's nodes */
    uint64_t overflows; /* messages and accepted ballots that found no room */
    struct views_state begin;
    struct view_book book;

    /* The step that is being taken. */
    struct views_state state;
    const char *broken; /* by the step itself; NULL: nothing */
    bool by_hand;       /* while the moves to the beginning are made: nothing is prompt or lost */
    uint32_t prompts;
    struct views_message prompt[VIEWS_PROMPT_MAX];
    struct view_machine machine;
    struct view_effects fx;
};

/* Steps (view_run.c): each changes model->state. */
void views_start(struct views_model *model, const struct views_state *from);
/* Everything that follows at once, and the canonical form. */
void views_settle(struct views_model *model);
void views_event(struct views_model *model, uint32_t place, struct view_event event);
void views_tick(struct views_model *model, uint32_t place);
/* Message number `index` reaches the process at this place. */
void views_deliver(struct views_model *model, uint32_t index, uint32_t place);
void views_lose(struct views_model *model, uint32_t index);
/* A new process of the node; gives its place. */
uint32_t views_process_start(struct views_model *model, uint8_t node);
void views_crash(struct views_model *model, uint32_t place);
bool views_up(const struct views_state *state, uint32_t place);

/* Checks (view_check.c). The machine is the one that just stepped, not packed yet. */
void views_check_step(struct views_model *model, uint32_t place, const struct view_machine *m);
const char *views_check_state(const struct views_model *model, const struct views_state *state);
bool views_check_goal(const struct views_model *model, const struct views_state *state);
void views_decided(struct views_model *model, const struct view *view);
bool views_leased(const struct views_state *state, uint32_t place);

/* The initial state (view_begin.c). */
void views_begin(struct views_model *model);

/* Actions (view_actions.c). */
void views_expand(const void *self, const void *state, struct search *search);

/* Words (view_words.c). */
void views_describe(const void *self, const void *before, const void *after, uint64_t action,
                    FILE *to);

/* Actions are numbered by kind, process, and what else there is. */
enum views_action {
    VIEWS_ACTION_TIME,    /* processes run in order number a */
    VIEWS_ACTION_DELIVER, /* to process a message number b */
    VIEWS_ACTION_SUSPECT, /* process a suspects node b */
    VIEWS_ACTION_HINT,
    VIEWS_ACTION_CRASH,
    VIEWS_ACTION_START, /* a new process of node a */
    VIEWS_ACTION_PAUSE,
    VIEWS_ACTION_RESUME,
    VIEWS_ACTION_ADOPTED,
    VIEWS_ACTION_COPIED,
    VIEWS_ACTION_LEAVE,
    VIEWS_ACTION_CONFIGURE,
    VIEWS_ACTION_WEDGE,
    VIEWS_ACTION_RUN,
};

static inline uint64_t views_action(enum views_action kind, uint32_t a, uint32_t b)
{
    return (uint64_t)kind << 32 | (uint64_t)a << 16 | b;
}

#endif
