/* Text in memory (open_memstream) is POSIX. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "explore/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/hash.h"
#include "explore/states.h"

#define MEMORY_DEFAULT (UINT64_C(4) << 30)
#define PARENT_NONE UINT32_MAX
#define SLOTS_FIRST (UINT64_C(1) << 16)
#define LOOK_EVERY 256u /* expansions between two looks at the clock */
#define PROGRESS_US 1000000u
#define STEPS_MAX 100000u /* of a trace */

const char *const search_end_names[4] = {
    [SEARCH_COMPLETE] = "complete",
    [SEARCH_VIOLATION] = "violation",
    [SEARCH_BOUND] = "bound",
    [SEARCH_NOMEM] = "out of memory",
};

/* A visited state. Its number is its place, and numbers follow the order in which states are found,
 * so the states of one depth are neighbours. */
struct visited {
    uint64_t low;
    uint64_t high;
    uint32_t parent;
    uint32_t successor; /* which of the parent's, counted from 0 */
};
_Static_assert(sizeof(struct visited) == 24, "there are many");

enum mode { MODE_SEARCH, MODE_SEEK };

struct search {
    const struct search_model *model;
    struct search_bounds bounds;
    struct search_result *result;
    enum mode mode;
    bool stopped;

    struct visited *visited;
    uint64_t visited_max;
    uint32_t *slots;   /* open addressing: the number of a visited state plus 1, or 0 */
    uint64_t slots_n;  /* a power of two, at least twice as many as states */
    struct states now; /* of the depth that is being expanded */
    struct states next;

    /* While a state is expanded. */
    uint32_t parent;
    uint32_t successors;

    /* MODE_SEEK: successor number `wanted` is copied to found. */
    uint32_t wanted;
    uint64_t found_action;
    void *found;
    bool found_any;

    /* The violation: a step from a visited state; without a parent the initial state itself. */
    uint32_t broken_parent;
    uint32_t broken_successor;
};

/* ---- The visited set ---- */

static bool grow_visited(struct search *s)
{
    uint64_t max = s->visited_max == 0 ? SLOTS_FIRST / 2 : s->visited_max * 2;
    struct visited *visited = realloc(s->visited, max * sizeof *visited);
    if (visited == NULL) {
        return false;
    }
    s->visited = visited;
    s->visited_max = max;
    return true;
}

static void insert_slot(uint32_t *slots, uint64_t slots_n, uint64_t low, uint32_t number)
{
    uint64_t at = low & (slots_n - 1);
    while (slots[at] != 0) {
        at = (at + 1) & (slots_n - 1);
    }
    slots[at] = number + 1;
}

static bool grow_slots(struct search *s)
{
    uint64_t slots_n = s->slots_n == 0 ? SLOTS_FIRST : s->slots_n * 2;
    uint32_t *slots = calloc(slots_n, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < s->result->states; i++) {
        insert_slot(slots, slots_n, s->visited[i].low, (uint32_t)i);
    }
    free(s->slots);
    s->slots = slots;
    s->slots_n = slots_n;
    return true;
}

static uint64_t memory_used(const struct search *s)
{
    return s->visited_max * sizeof *s->visited + s->slots_n * sizeof *s->slots + s->now.bytes +
           s->next.bytes;
}

/* Room for one more state; false if memory or its bound does not allow it. */
static bool reserve(struct search *s)
{
    uint64_t n = s->result->states;
    uint64_t more = 0;
    if (n == s->visited_max) {
        more += s->visited_max * sizeof *s->visited;
    }
    if (2 * (n + 1) > s->slots_n) {
        more += 2 * s->slots_n * sizeof *s->slots;
    }
    if (memory_used(s) + more > s->bounds.memory_max || n == UINT32_MAX - 1) {
        s->result->end = SEARCH_BOUND;
        return false;
    }
    if ((n == s->visited_max && !grow_visited(s)) || (2 * (n + 1) > s->slots_n && !grow_slots(s))) {
        s->result->end = SEARCH_NOMEM;
        return false;
    }
    return true;
}

static bool is_visited(const struct search *s, XXH128_hash_t hash)
{
    if (s->slots_n == 0) {
        return false;
    }
    uint64_t at = hash.low64 & (s->slots_n - 1);
    for (; s->slots[at] != 0; at = (at + 1) & (s->slots_n - 1)) {
        const struct visited *v = &s->visited[s->slots[at] - 1];
        if (v->low == hash.low64 && v->high == hash.high64) {
            return true;
        }
    }
    return false;
}

static void violation(struct search *s, const char *broken)
{
    s->result->end = SEARCH_VIOLATION;
    s->result->broken = broken;
    s->broken_parent = s->parent;
    s->broken_successor = s->successors;
    s->stopped = true;
}

/* Takes up a state that follows s->parent as its successor number s->successors. */
static void visit(struct search *s, const void *state)
{
    const struct search_model *model = s->model;
    struct search_result *result = s->result;
    XXH128_hash_t hash = XXH3_128bits(state, model->state_bytes);
    if (is_visited(s, hash)) {
        return;
    }
    const char *broken = model->broken == NULL ? NULL : model->broken(model->self, state);
    if (broken != NULL) {
        violation(s, broken);
        return;
    }
    if (s->bounds.states_max != 0 && result->states >= s->bounds.states_max) {
        result->end = SEARCH_BOUND;
        s->stopped = true;
        return;
    }
    if (!reserve(s)) {
        s->stopped = true;
        return;
    }
    if (!states_put(&s->next, state)) {
        result->end = SEARCH_NOMEM;
        s->stopped = true;
        return;
    }
    uint32_t number = (uint32_t)result->states++;
    s->visited[number] = (struct visited){
        .low = hash.low64, .high = hash.high64, .parent = s->parent, .successor = s->successors};
    insert_slot(s->slots, s->slots_n, hash.low64, number);
    if (model->finished != NULL && model->finished(model->self, state)) {
        result->finished++;
    }
}

void search_emit(struct search *s, const void *state, uint64_t action, const char *broken)
{
    if (s->mode == MODE_SEEK) {
        if (s->successors == s->wanted) {
            memcpy(s->found, state, s->model->state_bytes);
            s->found_action = action;
            s->found_any = true;
        }
        s->successors++;
        return;
    }
    if (s->stopped) {
        return;
    }
    s->result->steps++;
    if (broken != NULL) {
        violation(s, broken);
        return;
    }
    visit(s, state);
    s->successors++;
}

/* ---- Traces ---- */

/* One step of the trace: from `before`, which it becomes the successor of. */
static bool trace_step(struct search *s, uint32_t line, uint32_t successor, void *before, FILE *to)
{
    const struct search_model *model = s->model;
    s->mode = MODE_SEEK;
    s->wanted = successor;
    s->successors = 0;
    s->found_any = false;
    model->expand(model->self, before, s);
    if (!s->found_any) {
        return false;
    }
    fprintf(to, "%3u  ", line);
    model->describe(model->self, before, s->found, s->found_action, to);
    fputc('\n', to);
    memcpy(before, s->found, model->state_bytes);
    return true;
}

static void trace_path(struct search *s, const uint32_t *path, uint32_t n, void *before, FILE *to)
{
    s->model->begin(s->model->self, before);
    for (uint32_t i = 0; i < n; i++) {
        if (!trace_step(s, i + 1, path[n - 1 - i], before, to)) {
            fprintf(to,
                    "%3u  (a step that could not be repeated: the model is not deterministic)\n",
                    i + 1);
            break;
        }
    }
    fprintf(to, "     %s\n", s->result->broken);
}

/* Successor numbers from the violation back to the beginning; how many. */
static uint32_t path_back(const struct search *s, uint32_t *path)
{
    uint32_t n = 0;
    if (s->broken_parent == PARENT_NONE) {
        return 0; /* the initial state is broken */
    }
    path[n++] = s->broken_successor;
    for (uint32_t at = s->broken_parent; s->visited[at].parent != PARENT_NONE && n < STEPS_MAX;
         at = s->visited[at].parent) {
        path[n++] = s->visited[at].successor;
    }
    return n;
}

static void write_trace(struct search *s)
{
    size_t bytes = 0;
    uint32_t *path = malloc(STEPS_MAX * sizeof *path);
    void *before = calloc(1, s->model->state_bytes);
    FILE *to = open_memstream(&s->result->trace, &bytes);
    if (path != NULL && before != NULL && to != NULL) {
        trace_path(s, path, path_back(s, path), before, to);
    }
    if (to != NULL && fclose(to) != 0) {
        s->result->trace = NULL;
    }
    free(before);
    free(path);
}

/* ---- The search ---- */

struct watch {
    void (*progress)(const struct search_result *so_far, void *context);
    void *context;
    uint64_t started_us;
    uint64_t told_us;
    uint32_t expansions;
};

static void look(struct search *s, struct watch *watch)
{
    if (watch->expansions++ % LOOK_EVERY != 0) {
        return;
    }
    uint64_t now_us = clock_boot_us();
    s->result->seconds = (double)(now_us - watch->started_us) / 1e6;
    s->result->frontier = s->now.n + s->next.n;
    if (s->bounds.seconds_max != 0 &&
        now_us - watch->started_us >= s->bounds.seconds_max * 1000000u) {
        s->result->end = SEARCH_BOUND;
        s->stopped = true;
    }
    if (watch->progress != NULL && now_us - watch->told_us >= PROGRESS_US) {
        watch->told_us = now_us;
        watch->progress(s->result, watch->context);
    }
}

/* Expands all states of one depth, which s->next holds; the first has the given number. */
static void expand_depth(struct search *s, uint32_t first, void *state, struct watch *watch)
{
    const struct search_model *model = s->model;
    struct states emptied = s->now;
    s->now = s->next;
    s->next = emptied;
    for (uint32_t number = first; s->now.n > 0 && !s->stopped; number++) {
        look(s, watch);
        if (s->stopped) {
            return;
        }
        states_take(&s->now, state);
        s->parent = number;
        s->successors = 0;
        model->expand(model->self, state, s);
    }
}

static void run(struct search *s, void *state, struct watch *watch)
{
    struct search_result *result = s->result;
    s->parent = PARENT_NONE;
    s->model->begin(s->model->self, state);
    visit(s, state);
    uint32_t first = 0;
    for (uint32_t depth = 0; s->next.n > 0 && !s->stopped; depth++) {
        if (s->bounds.depth_max != 0 && depth >= s->bounds.depth_max) {
            result->end = SEARCH_BOUND;
            return;
        }
        uint32_t following = (uint32_t)result->states;
        result->depth = depth;
        expand_depth(s, first, state, watch);
        first = following;
    }
}

void search_run(const struct search_model *model, const struct search_bounds *bounds,
                void (*progress)(const struct search_result *so_far, void *context), void *context,
                struct search_result *result_out)
{
    struct search s = {.model = model, .bounds = *bounds, .result = result_out};
    struct watch watch = {.progress = progress, .context = context};
    *result_out = (struct search_result){.end = SEARCH_COMPLETE};
    if (s.bounds.memory_max == 0) {
        s.bounds.memory_max = MEMORY_DEFAULT;
    }
    states_init(&s.now, model->state_bytes);
    states_init(&s.next, model->state_bytes);
    watch.started_us = clock_boot_us();
    watch.told_us = watch.started_us;
    void *state = calloc(1, model->state_bytes);
    s.found = calloc(1, model->state_bytes);
    if (state == NULL || s.found == NULL) {
        result_out->end = SEARCH_NOMEM;
    } else {
        run(&s, state, &watch);
        result_out->frontier = s.now.n + s.next.n;
        if (result_out->end == SEARCH_VIOLATION) {
            write_trace(&s);
        }
    }
    result_out->seconds = (double)(clock_boot_us() - watch.started_us) / 1e6;
    free(s.found);
    free(state);
    free(s.slots);
    free(s.visited);
    states_deinit(&s.now);
    states_deinit(&s.next);
}

void search_result_deinit(struct search_result *result)
{
    free(result->trace);
    result->trace = NULL;
}
