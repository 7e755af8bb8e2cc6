/* The configurations of ownership, and their traces in words. */
#include <stdlib.h>
#include <string.h>

#include "explore/own_model.h"

static void run(const struct explore_config *config, const struct explore_request *request,
                struct search_result *result_out)
{
    struct owns_work *work = calloc(1, sizeof *work);
    if (work == NULL) {
        *result_out = (struct search_result){.end = SEARCH_NOMEM};
        return;
    }
    struct owns_model model = {
        .setup = config->setup,
        .config = {.backoff_us = 1000, .rules_off = request->rules_off},
        .work = work,
    };
    struct search_model searched = {.self = &model,
                                    .state_bytes = sizeof(struct owns_world),
                                    .begin = owns_begin,
                                    .expand = owns_expand,
                                    .broken = owns_broken,
                                    .finished = owns_finished,
                                    .describe = owns_describe};
    search_run(&searched, &request->bounds, request->progress, request->context, result_out);
    free(work);
}

static const char *const type_words[OWN_TYPES] = {
    [OWN_NONE] = "",     [OWN_OWNER] = "owner",   [OWN_READER] = "reader",
    [OWN_TRIM] = "trim", [OWN_DEGREE] = "degree", [OWN_DESTROY] = "destroy"};

static void print(const struct explore_config *config, FILE *to)
{
    const struct owns_setup *setup = config->setup;
    const char *between = "";
    for (uint32_t i = 0; i < OWNS_WANTS && setup->wants[i].type != OWN_NONE; i++) {
        fprintf(to, "%s%s", between, type_words[setup->wants[i].type]);
        between = " ";
    }
    if (setup->commits > 0) {
        fprintf(to, ", %u commits", setup->commits);
    }
    if (setup->drops > 0) {
        fprintf(to, ", %u dropped", setup->drops);
    }
    if (setup->timers > 0) {
        fprintf(to, ", %u timers", setup->timers);
    }
}

/* ---- Traces ---- */

#define LETTER(node) ((char)((node) == NODE_NONE ? '-' : 'A' + (node)))

static void print_set(nodeset set, FILE *to)
{
    for (; set != 0; set &= set - 1) {
        fputc(LETTER(nodeset_first(set)), to);
    }
}

static void print_vector(const struct own_vector *v, FILE *to)
{
    fprintf(to, "%c+", LETTER(v->owner));
    print_set(v->readers, to);
}

static void print_ts(uint64_t ts, FILE *to)
{
    fprintf(to, "<%u,%c>", (unsigned)stamp_version(ts), LETTER(stamp_cid(ts)));
}

static void print_message(const struct owns_message *m, FILE *to)
{
    struct own_body body;
    struct msg msg = {.kind = m->kind, .value = bytes_of(m->body, OWN_BODY_BYTES)};
    own_body_decode(&msg, &body);
    fprintf(to, "%c gets %s of %c", LETTER(m->to), own_kind_names[m->kind], LETTER(m->from));
    if (m->ts != 0) {
        fputc(' ', to);
        print_ts(m->ts, to);
    }
    if (body.request.type != OWN_NONE) {
        fprintf(to, " (%s of %c, retry %u%s)", type_words[body.request.type],
                LETTER(body.request.requester), body.request.retry, body.replay ? ", replay" : "");
    }
}

static void print_action(const struct owns_model *model, const struct owns_world *before,
                         uint64_t number, FILE *to)
{
    uint32_t a = (uint32_t)(number >> 8 & 0xff);
    switch ((enum owns_action_kind)(number >> 16)) {
    case OWNS_ACT_DELIVER:
        print_message(&before->messages[owns_next(before, (uint8_t)a, (uint8_t)(number & 0xff))],
                      to);
        break;
    case OWNS_ACT_WANT:
        fprintf(to, "%c asks: %s", LETTER(model->setup->wants[a].node),
                type_words[model->setup->wants[a].type]);
        break;
    case OWNS_ACT_TIMER:
        fprintf(to, "%c's timer runs out", LETTER(a));
        break;
    case OWNS_ACT_DROP:
        fprintf(to, "%c dies", LETTER(a));
        break;
    case OWNS_ACT_ADOPT:
        fprintf(to, "%c adopts a view", LETTER(a));
        break;
    case OWNS_ACT_RECOVERED:
        fprintf(to, "%c says RECOVERED", LETTER(a));
        break;
    case OWNS_ACT_SETTLED:
        fprintf(to, "%c says SETTLED", LETTER(a));
        break;
    case OWNS_ACT_HEAR:
        fprintf(to, "%c hears that all have", LETTER(a));
        break;
    case OWNS_ACT_COMMIT:
        fprintf(to, "%c commits", LETTER(a));
        break;
    case OWNS_ACT_TAKE:
        fprintf(to, "%c takes the commit", LETTER(a));
        break;
    case OWNS_ACT_DONE:
        fputs("the commit is reliable", to);
        break;
    case OWNS_ACT_REPLAY:
        fputs("the dead owner's commit is finished or lost", to);
        break;
    case OWNS_ACT_STUCK:
        fputs("nothing can happen", to);
        break;
    }
}

static void print_change(uint8_t i, const struct owns_node *old, const struct owns_node *n,
                         FILE *to)
{
    if (memcmp(&old->entry, &n->entry, sizeof n->entry) != 0) {
        fprintf(to, "; %c: ", LETTER(i));
        print_ts(n->entry.ts, to);
        fputc(' ', to);
        print_vector(&n->entry.vector, to);
    }
    if (old->busy.ts != n->busy.ts || old->busy.state != n->busy.state) {
        fprintf(to, "; %c: %s", LETTER(i), own_state_names[n->busy.state]);
        if (n->busy.ts != 0) {
            fputc(' ', to);
            print_ts(n->busy.ts, to);
        }
    }
    if (old->have != n->have || old->value != n->value || old->state != n->state) {
        fprintf(to, n->have ? "; %c: value %u%s" : "; %c: no value", LETTER(i), n->value,
                n->state == ZEUS_VALID ? "" : " (not yet reliable)");
    }
}

void owns_describe(const void *self, const void *before, const void *after, uint64_t number,
                   FILE *to)
{
    const struct owns_model *model = self;
    const struct owns_world *old = before;
    const struct owns_world *w = after;
    print_action(model, old, number, to);
    for (uint8_t i = 0; i < OWNS_NODES; i++) {
        print_change(i, &old->nodes[i], &w->nodes[i], to);
    }
    for (uint8_t i = 0; i < OWNS_WANTS; i++) {
        if (w->phase[i] != old->phase[i] && w->phase[i] == WANT_ENDED) {
            fprintf(to, "; %c's request ends", LETTER(model->setup->wants[i].node));
        }
    }
}

/* ---- The configurations ---- */

#define SETUP(...) (&(const struct owns_setup){__VA_ARGS__})
#define OWN(config_name, in_words, is_fast, ...)                                                   \
    {                                                                                              \
        .name = config_name, .what = in_words, .family = EXPLORE_OWN, .fast = is_fast,             \
        .setup = SETUP(__VA_ARGS__), .print = print, .run = run                                    \
    }
enum { A, B, C, D };
/* Sets of nodes. */
#define AT_A 1u
#define AT_B 2u
#define AT_C 4u
#define AT_D 8u
#define OWNER(at)                                                                                  \
    {                                                                                              \
        .type = OWN_OWNER, .node = at                                                              \
    }
#define READER(at)                                                                                 \
    {                                                                                              \
        .type = OWN_READER, .node = at                                                             \
    }
#define DEGREE(at, replicas)                                                                       \
    {                                                                                              \
        .type = OWN_DEGREE, .node = at, .target = replicas                                         \
    }
#define DESTROY(at)                                                                                \
    {                                                                                              \
        .type = OWN_DESTROY, .node = at                                                            \
    }
#define TRIM(at, whom)                                                                             \
    {                                                                                              \
        .type = OWN_TRIM, .node = at, .target = whom                                               \
    }

const struct explore_config explore_own_configs[] = {
    OWN("own-race", "two nodes want to own an object of a third one", true, .nodes = 3,
        .directory = AT_A | AT_B, .owner = C, .wants = {OWNER(A), OWNER(B)}, .timers = 2),
    OWN("own-race-three", "the same, with three directory nodes", true, .nodes = 3,
        .directory = AT_A | AT_B | AT_C, .owner = C, .wants = {OWNER(A), OWNER(B)}, .timers = 1),
    OWN("own-commit", "an object moves while its owner commits", true, .nodes = 3,
        .directory = AT_A | AT_B, .owner = C, .readers = AT_B, .wants = {OWNER(A)}, .commits = 2,
        .commit_at = AT_A | AT_C, .timers = 1),
    OWN("own-create", "two nodes create an object", true, .nodes = 3, .directory = AT_A | AT_B,
        .owner = NODE_NONE, .wants = {OWNER(A), OWNER(C)}, .commits = 1, .commit_at = AT_A | AT_C,
        .timers = 2),
    OWN("own-create-death", "the same; one of them dies", true, .nodes = 3,
        .directory = AT_A | AT_B, .owner = NODE_NONE, .wants = {OWNER(A), OWNER(C)}, .drops = 1,
        .drop_nodes = AT_A | AT_C, .timers = 1),
    OWN("own-trim", "a reader is trimmed while another node wants to own", true, .nodes = 3,
        .directory = AT_A | AT_C, .owner = C, .readers = AT_B, .wants = {OWNER(A), TRIM(C, B)},
        .commits = 1, .commit_at = AT_C, .timers = 2),
    OWN("own-trim-far", "the same; the owner is no directory node", true, .nodes = 4,
        .directory = AT_A | AT_D, .owner = C, .readers = AT_B, .wants = {OWNER(D), TRIM(C, B)},
        .commits = 1, .commit_at = AT_C, .timers = 2),
    OWN("own-trim-target", "a reader is trimmed while it wants to own", true, .nodes = 3,
        .directory = AT_A | AT_C, .owner = C, .readers = AT_B, .wants = {OWNER(B), TRIM(C, B)},
        .commits = 2, .commit_at = AT_B | AT_C, .timers = 2),
    OWN("own-reader", "a node wants to read, another one to own; commits", true, .nodes = 3,
        .directory = AT_A | AT_B, .owner = C, .wants = {OWNER(A), READER(B)}, .commits = 2,
        .commit_at = AT_A | AT_C, .timers = 1),
    OWN("own-owner-death", "the owner dies while an object moves, a reader lives", true, .nodes = 3,
        .directory = AT_A | AT_B, .owner = C, .readers = AT_B, .wants = {OWNER(A)}, .commits = 1,
        .commit_at = AT_C, .drops = 1, .drop_nodes = AT_C, .timers = 1),
    OWN("own-lost", "the owner of the only replica dies while an object moves", true, .nodes = 3,
        .directory = AT_A | AT_B, .owner = C, .wants = {OWNER(A)}, .drops = 1, .drop_nodes = AT_C,
        .timers = 1),
    OWN("own-requester-death", "the requester dies while an object moves", true, .nodes = 3,
        .directory = AT_B | AT_C, .owner = C, .readers = AT_B, .wants = {OWNER(A)}, .commits = 1,
        .commit_at = AT_A | AT_C, .drops = 1, .drop_nodes = AT_A, .timers = 1),
    OWN("own-driver-death", "a driver dies while an object moves", true, .nodes = 3,
        .directory = AT_B | AT_C, .owner = C, .wants = {OWNER(A)}, .drops = 1, .drop_nodes = AT_B,
        .timers = 1),
    OWN("own-old-news", "the owner misses a VAL while the object goes on; the sender dies", true,
        .nodes = 3, .directory = AT_B, .owner = C, .wants = {OWNER(A), OWNER(B)}, .drops = 1,
        .drop_nodes = AT_A, .timers = 1),
    OWN("own-replicas-death", "an owner dies while it commits; a reader wants to own", true,
        .nodes = 3, .directory = AT_A | AT_B, .owner = C, .readers = AT_A | AT_B,
        .wants = {OWNER(A)}, .commits = 2, .commit_at = AT_A | AT_C, .drops = 1, .drop_nodes = AT_C,
        .timers = 0),
    OWN("own-born", "who creates an object dies; another node reads it", true, .nodes = 3,
        .directory = AT_A | AT_B, .owner = NODE_NONE, .wants = {OWNER(C), READER(A)}, .commits = 1,
        .commit_at = AT_C, .drops = 1, .drop_nodes = AT_A | AT_C, .timers = 1, .enough = true),
    OWN("own-degree", "a degree changes while an object moves", true, .nodes = 3,
        .directory = AT_A | AT_B, .owner = C, .readers = AT_B, .wants = {DEGREE(C, 2), OWNER(A)},
        .commits = 1, .commit_at = AT_A | AT_C, .timers = 1),
    OWN("own-degree-death", "the same; somebody dies", true, .nodes = 3, .directory = AT_A | AT_B,
        .owner = C, .readers = AT_B, .wants = {DEGREE(C, 2), OWNER(A)}, .drops = 1,
        .drop_nodes = AT_A | AT_B | AT_C, .timers = 1),
    OWN("own-destroy", "a tombstone is destroyed, or written, while others want it", true,
        .nodes = 3, .directory = AT_A | AT_B, .owner = C, .readers = AT_B, .deleted = true,
        .wants = {DESTROY(C), OWNER(A), OWNER(B)}, .commits = 2, .commit_at = AT_A | AT_B | AT_C,
        .timers = 1),
    OWN("own-destroy-death", "the same with one that wants it; somebody dies", true, .nodes = 3,
        .directory = AT_A | AT_B, .owner = C, .readers = AT_B, .deleted = true,
        .wants = {DESTROY(C), OWNER(A)}, .commits = 2, .commit_at = AT_A | AT_C, .drops = 1,
        .drop_nodes = AT_A | AT_B | AT_C, .timers = 0),
    OWN("own-destroy-far", "owner and reader of a tombstone are no directory nodes; a death", false,
        .nodes = 4, .directory = AT_A | AT_B, .owner = C, .readers = AT_D, .deleted = true,
        .wants = {DESTROY(C), OWNER(A)}, .commits = 0, .drops = 1, .drop_nodes = AT_C | AT_D,
        .timers = 0),
    OWN("own-bystander-death", "two nodes want to own; one that has nothing to do with it dies",
        false, .nodes = 4, .directory = AT_B | AT_C, .owner = C, .wants = {OWNER(A), OWNER(B)},
        .drops = 1, .drop_nodes = AT_D, .timers = 1),
    OWN("own-race-death", "two nodes want to own, somebody dies", false, .nodes = 3,
        .directory = AT_A | AT_B | AT_C, .owner = C, .readers = AT_B, .wants = {OWNER(A), OWNER(B)},
        .drops = 1, .drop_nodes = AT_A | AT_B | AT_C, .timers = 1),
    OWN("own-race-commit-death", "the same, with commits", false, .nodes = 3,
        .directory = AT_A | AT_B, .owner = C, .readers = AT_B, .wants = {OWNER(A), OWNER(B)},
        .commits = 2, .commit_at = AT_A | AT_B | AT_C, .drops = 1, .drop_nodes = AT_A | AT_B | AT_C,
        .timers = 0),
    OWN("own-two-deaths", "two of four die, one after the other", false, .nodes = 4,
        .directory = AT_A | AT_B | AT_D, .owner = C, .readers = AT_B, .wants = {OWNER(A)},
        .commits = 1, .commit_at = AT_A | AT_C, .drops = 2, .drop_nodes = AT_A | AT_C, .timers = 0),
    OWN("own-far", "requester and owner are no directory nodes; a death", false, .nodes = 4,
        .directory = AT_A | AT_B, .owner = C, .readers = AT_D, .wants = {OWNER(D)}, .commits = 2,
        .commit_at = AT_C | AT_D, .drops = 1, .drop_nodes = AT_A | AT_B | AT_C | AT_D, .timers = 1),
    {.name = NULL},
};
