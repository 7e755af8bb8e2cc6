/* The configurations of Galene, and their traces in words. */
#include "explore/galene_model.h"

#include <stdlib.h>
#include <string.h>

static void run(const struct explore_config *config, const struct explore_request *request,
                struct search_result *result_out)
{
    struct galene_work *work = calloc(1, sizeof *work);
    if (work == NULL) {
        *result_out = (struct search_result){.end = SEARCH_NOMEM};
        return;
    }
    struct galene_model model = {
        .setup = config->setup,
        .config = {.retry_us = 1000, .rescue_us = 1000, .rules_off = request->rules_off},
        .work = work,
    };
    struct search_model searched = {.self = &model,
                                    .state_bytes = sizeof(struct galene_world),
                                    .begin = galene_begin,
                                    .expand = galene_expand,
                                    .broken = galene_broken,
                                    .finished = galene_finished,
                                    .describe = galene_describe};
    search_run(&searched, &request->bounds, request->progress, request->context, result_out);
    free(work);
}

static const char *const op_words[] = {
    [OP_NONE] = "", [OP_WRITE] = "write", [OP_RMW] = "RMW", [OP_READ] = "read"};

static void print(const struct explore_config *config, FILE *to)
{
    const struct galene_setup *setup = config->setup;
    uint32_t orders = 0;
    for (uint32_t i = 0; i < GALENE_OPS && setup->ops[i] != OP_NONE; i++) {
        fprintf(to, "%s%s", i == 0 ? "" : " ", op_words[setup->ops[i]]);
    }
    for (uint32_t i = 0; i < GALENE_ORDERS; i++) {
        orders += setup->orders[i].generation != 0;
    }
    if (orders > 0) {
        fprintf(to, ", %u orders", orders);
    }
    if (setup->drops > 0) {
        fprintf(to, ", %u dropped", setup->drops);
    }
    if (setup->joins) {
        fputs(", 1 joins", to);
    }
}

/* ---- Traces ---- */

#define LETTER(node) ((char)('A' + (node)))

static void print_ts(uint64_t ts, FILE *to)
{
    fprintf(to, "%u.%u", (unsigned)stamp_version(ts), stamp_cid(ts));
}

static void print_action(const struct galene_model *model, const struct galene_world *before,
                         uint64_t number, FILE *to)
{
    uint32_t a = (uint32_t)(number >> 8 & 0xff);
    uint32_t b = (uint32_t)(number & 0xff);
    switch ((enum galene_action_kind)(number >> 16)) {
    case GALENE_ACT_DELIVER: {
        const struct galene_message *m = &before->messages[a];
        fprintf(to, "%c gets %s of %c", LETTER(m->to), galene_kind_names[m->kind], LETTER(m->from));
        if (m->ts != 0) {
            fprintf(to, " %u.%u", m->ts >> 4, m->ts & 15u);
        }
        if (m->flags != 0) {
            fprintf(to, " (flags %u)", m->flags);
        }
        break;
    }
    case GALENE_ACT_BEGIN:
        fprintf(to, "%c begins %s %u", LETTER(b), op_words[model->setup->ops[a]], a);
        break;
    case GALENE_ACT_TIMER:
        fprintf(to, "%c's flow %u asks again", LETTER(a), b);
        break;
    case GALENE_ACT_SWEEP:
        fprintf(to, "%c sweeps", LETTER(a));
        break;
    case GALENE_ACT_ORDER: {
        const struct galene_order *o = &model->setup->orders[before->orders];
        fprintf(to, "A is told that the key shall %s, generation %u", o->leave ? "leave" : "enter",
                o->generation);
        break;
    }
    case GALENE_ACT_DROP:
        fprintf(to, "%c dies", LETTER(a));
        break;
    case GALENE_ACT_JOIN:
        fprintf(to, "%c joins", LETTER(a));
        break;
    case GALENE_ACT_ADOPT:
        fprintf(to, "%c adopts a view", LETTER(a));
        break;
    }
}

void galene_describe(const void *self, const void *before, const void *after, uint64_t number,
                     FILE *to)
{
    const struct galene_model *model = self;
    const struct galene_world *old = before;
    const struct galene_world *w = after;
    print_action(model, old, number, to);
    for (uint8_t i = 0; i < GALENE_NODES; i++) {
        const struct galene_node *n = &w->nodes[i];
        if (memcmp(&n->meta, &old->nodes[i].meta, sizeof n->meta) != 0) {
            fprintf(to, "; %c: %s", LETTER(i), galene_state_names[n->meta.state]);
            if (n->meta.state != GALENE_NONE) {
                fputs(" at ", to);
                print_ts(n->meta.ts, to);
                fprintf(to, ", value %u", n->value);
            }
        }
    }
    for (uint8_t i = 0; i < GALENE_OPS; i++) {
        static const char *const words[] = {"waits", "is under way", "is done", "is lost",
                                            "ends unknown"};
        if (w->ops[i].phase != old->ops[i].phase) {
            fprintf(to, "; %s %u %s", op_words[model->setup->ops[i]], i, words[w->ops[i].phase]);
            if (w->ops[i].out != GALENE_VALUE_NONE) {
                fprintf(to, ", saw %u", w->ops[i].out);
            }
        }
    }
}

/* ---- The configurations ---- */

#define SETUP(...) (&(const struct galene_setup){__VA_ARGS__})
#define GALENE(config_name, in_words, is_fast, ...)                                                \
    {                                                                                              \
        .name = config_name, .what = in_words, .family = EXPLORE_GALENE, .fast = is_fast,          \
        .setup = SETUP(__VA_ARGS__), .print = print, .run = run                                    \
    }
#define W OP_WRITE
#define R OP_RMW
#define Q OP_READ
#define ENTER(g)                                                                                   \
    {                                                                                              \
        .generation = g, .leave = false                                                            \
    }
#define LEAVE(g)                                                                                   \
    {                                                                                              \
        .generation = g, .leave = true                                                             \
    }
/* Sets of nodes. */
#define AT_A 1u
#define AT_B 2u
#define AT_C 4u

const struct explore_config explore_galene_configs[] = {
    GALENE("galene-writes", "two writes of a cached key race", true, .ops = {W, W}, .cached = true),
    GALENE("galene-rmws", "two RMWs of a cached key race", true, .ops = {R, R}, .cached = true),
    GALENE("galene-write-rmw", "a write and an RMW of a cached key race", true, .ops = {W, R},
           .cached = true),
    GALENE("galene-hot", "a key enters and leaves during a write and a read", true, .ops = {W, Q},
           .orders = {ENTER(1), LEAVE(1)}),
    GALENE("galene-death", "two writes of a cached key, a member dies", true, .ops = {W, W},
           .op_nodes = {AT_B, AT_C}, .cached = true, .drops = 1, .drop_nodes = AT_C),
    GALENE("galene-home-death", "a key enters while its home dies; a write", true, .ops = {W},
           .orders = {ENTER(1)}, .drops = 1, .drop_nodes = AT_A),
    GALENE("galene-join", "a member joins and gets a cached key; a write", true, .ops = {W},
           .orders = {ENTER(2), ENTER(2)}, .cached = true, .joins = true),
    GALENE("galene-w-w-rmw", "two writes and an RMW of a cached key race", false, .ops = {W, W, R},
           .cached = true),
    GALENE("galene-hot-writes", "a key enters and leaves during two writes and a read", false,
           .ops = {W, W, Q}, .orders = {ENTER(1), LEAVE(1)}),
    GALENE("galene-hot-rmw", "a key enters and leaves during a write and an RMW", false,
           .ops = {W, R}, .orders = {ENTER(1), LEAVE(1)}),
    GALENE("galene-again", "a key leaves and enters again during two writes", false, .ops = {W, W},
           .op_nodes = {AT_B, AT_C}, .orders = {LEAVE(1), ENTER(2)}, .cached = true),
    GALENE("galene-death-rmw", "a write and an RMW of a cached key, a member dies", false,
           .ops = {W, R}, .cached = true, .drops = 1, .drop_nodes = AT_C),
    GALENE("galene-leave-death", "a key leaves while a member or the home dies; a write", false,
           .ops = {W}, .orders = {LEAVE(1)}, .cached = true, .drops = 1, .drop_nodes = AT_A | AT_C),
    {.name = NULL},
};
