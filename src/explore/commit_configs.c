/* The configurations of reliable commit, and their traces in words. */
#include <stdlib.h>
#include <string.h>

#include "explore/commit_model.h"

static void run(const struct explore_config *config, const struct explore_request *request,
                struct search_result *result_out)
{
    struct commits_work *work = calloc(1, sizeof *work);
    if (work == NULL) {
        *result_out = (struct search_result){.end = SEARCH_NOMEM};
        return;
    }
    struct commits_model model = {
        .setup = config->setup,
        .config = {.rules_off = request->rules_off},
        .work = work,
    };
    struct search_model searched = {.self = &model,
                                    .state_bytes = sizeof(struct commits_world),
                                    .begin = commits_begin,
                                    .expand = commits_expand,
                                    .broken = commits_broken,
                                    .finished = commits_finished,
                                    .describe = commits_describe};
    search_run(&searched, &request->bounds, request->progress, request->context, result_out);
    free(work);
}

static void print(const struct explore_config *config, FILE *to)
{
    const struct commits_setup *setup = config->setup;
    fprintf(to, "%u transactions, %u pipelines", setup->txs, setup->pipes);
    if (setup->drops > 0) {
        fprintf(to, ", %u dropped", setup->drops);
    }
}

/* ---- Traces ---- */

#define LETTER(node) ((char)('A' + (node)))

static void print_objects(uint8_t objects, FILE *to)
{
    for (uint8_t i = 0; i < COMMITS_OBJECTS; i++) {
        if ((objects >> i & 1) != 0) {
            fprintf(to, " o%u", i + 1u);
        }
    }
}

static void print_action(const struct commits_world *before, uint64_t number, FILE *to)
{
    uint32_t a = (uint32_t)(number >> 8 & 0xff);
    uint32_t b = (uint32_t)(number & 0xff);
    switch ((enum commits_action_kind)(number >> 16)) {
    case COMMITS_ACT_DELIVER: {
        const struct commits_message *m = &before->messages[a];
        fprintf(to, "%c gets %s of %c, pipe %u slot %u", LETTER(m->to),
                commit_kind_names[m->kind - COMMIT_MSG_INV], LETTER(m->from), m->pipe, m->slot);
        break;
    }
    case COMMITS_ACT_BEGIN:
        fprintf(to, "%c commits in pipe %u:", LETTER(a >> 4), a & 15u);
        print_objects((uint8_t)b, to);
        break;
    case COMMITS_ACT_DROP:
        fprintf(to, "%c dies", LETTER(a));
        break;
    case COMMITS_ACT_ADOPT:
        fprintf(to, "%c adopts a view", LETTER(a));
        break;
    case COMMITS_ACT_RECOVERED:
        fprintf(to, "%c says RECOVERED", LETTER(a));
        break;
    case COMMITS_ACT_TAKE_OVER:
        fprintf(to, "%c takes o%u over", LETTER(a), b + 1);
        break;
    case COMMITS_ACT_STUCK:
        fputs("nothing can happen", to);
        break;
    }
}

void commits_describe(const void *self, const void *before, const void *after, uint64_t number,
                      FILE *to)
{
    static const char *const words[] = {
        [ZEUS_VALID] = "Valid", [ZEUS_WRITE] = "Write", [ZEUS_INVALID] = "Invalid"};
    const struct commits_world *old = before;
    const struct commits_world *w = after;
    (void)self;
    print_action(old, number, to);
    for (uint8_t i = 0; i < COMMITS_NODES; i++) {
        for (uint8_t k = 0; k < COMMITS_OBJECTS; k++) {
            const struct commits_object *o = &w->nodes[i].objects[k];
            if (o->have && memcmp(o, &old->nodes[i].objects[k], sizeof *o) != 0) {
                fprintf(to, "; %c: o%u %s, version %u", LETTER(i), k + 1u, words[o->state],
                        o->version);
            }
        }
    }
    for (uint8_t i = 0; i < COMMITS_TXS; i++) {
        if (w->txs[i].done != old->txs[i].done) {
            fprintf(to, "; transaction %u is done", i + 1u);
        }
    }
}

/* ---- The configurations ---- */

#define SETUP(...) (&(const struct commits_setup){__VA_ARGS__})
#define COMMIT(config_name, in_words, is_fast, ...)                                                \
    {                                                                                              \
        .name = config_name, .what = in_words, .family = EXPLORE_COMMIT, .fast = is_fast,          \
        .setup = SETUP(__VA_ARGS__), .print = print, .run = run                                    \
    }
/* Sets of nodes. */
#define AT_A 1u
#define AT_B 2u
#define AT_C 4u
#define AT_D 8u
#define AB (AT_A | AT_B)
#define AC (AT_A | AT_C)
#define ABC (AT_A | AT_B | AT_C)
#define ACD (AT_A | AT_C | AT_D)
/* Sets of objects that are written. */
#define ONE 2u
#define TWO 4u
#define BOTH 8u

const struct explore_config explore_commit_configs[] = {
    COMMIT("commit-partial", "three transactions of a pipeline, whose followers differ", true,
           .nodes = 3, .replicas = {AB, AC}, .pipes = 1, .txs = 3, .shapes = ONE | TWO | BOTH),
    COMMIT("commit-death", "two transactions, whose followers differ; the coordinator dies", true,
           .nodes = 3, .replicas = {AB, AC}, .pipes = 1, .txs = 2, .shapes = ONE | TWO | BOTH,
           .drops = 1, .drop_nodes = AT_A),
    COMMIT("commit-replicas", "two transactions on objects that all have; the coordinator dies",
           true, .nodes = 3, .replicas = {ABC, ABC}, .pipes = 1, .txs = 2,
           .shapes = ONE | TWO | BOTH, .drops = 1, .drop_nodes = AT_A),
    COMMIT("commit-follower", "two transactions; a follower dies", true, .nodes = 3,
           .replicas = {ABC, ABC}, .pipes = 1, .txs = 2, .shapes = ONE | BOTH, .drops = 1,
           .drop_nodes = AT_C),
    COMMIT("commit-pipes", "two pipelines that read what the other one writes", true, .nodes = 3,
           .replicas = {AB, AC}, .pipes = 2, .txs = 3, .shapes = ONE | TWO),
    COMMIT("commit-pipes-death", "the same; the coordinator dies", true, .nodes = 3,
           .replicas = {ABC, AC}, .pipes = 2, .txs = 2, .shapes = ONE | TWO | BOTH, .drops = 1,
           .drop_nodes = AT_A),
    COMMIT("commit-takeover", "the coordinator dies, and others commit to what it owned", true,
           .nodes = 3, .replicas = {ABC, AB}, .pipes = 1, .txs = 2, .shapes = ONE | TWO, .drops = 1,
           .drop_nodes = AT_A, .takes_over = true),
    COMMIT("commit-again", "four nodes: a replay that comes late; the coordinator dies", false,
           .nodes = 4, .replicas = {ACD, ABC}, .pipes = 1, .txs = 2, .shapes = ONE | TWO,
           .drops = 1, .drop_nodes = AT_A),
    COMMIT("commit-two-deaths", "two transactions; two of three die, one after the other", false,
           .nodes = 3, .replicas = {ABC, ABC}, .pipes = 1, .txs = 2, .shapes = ONE | TWO | BOTH,
           .drops = 2, .drop_nodes = ABC),
    COMMIT("commit-three-death", "three transactions in two pipelines; the coordinator dies", false,
           .nodes = 3, .replicas = {ABC, AC}, .pipes = 2, .txs = 3, .shapes = ONE | TWO | BOTH,
           .drops = 1, .drop_nodes = AT_A, .takes_over = true),
    {.name = NULL},
};
