/* The configurations of Lotus's two-phase commit, and their traces in words. */
#include <stdlib.h>
#include <string.h>

#include "explore/lotus_commit_model.h"

static void run(const struct explore_config *config, const struct explore_request *request,
                struct search_result *result_out)
{
    struct phases_world *next = calloc(1, sizeof *next);
    if (next == NULL) {
        *result_out = (struct search_result){.end = SEARCH_NOMEM};
        return;
    }
    struct phases_model model = {
        .setup = config->setup, .config = {.rules_off = request->rules_off}, .next = next};
    struct search_model searched = {.self = &model,
                                    .state_bytes = sizeof(struct phases_world),
                                    .begin = phases_begin,
                                    .expand = phases_expand,
                                    .broken = phases_broken,
                                    .finished = phases_finished,
                                    .describe = phases_describe};
    search_run(&searched, &request->bounds, request->progress, request->context, result_out);
    free(next);
}

static void print(const struct explore_config *config, FILE *to)
{
    const struct phases_setup *s = config->setup;
    fprintf(to,
            "%u servers, %u transactions, %u tries, %u wounds, %u refusals, %u dropped, "
            "%u let in",
            s->nodes - 1u, s->txns, s->tries, s->wounds, s->refusals, s->drops, s->joins);
}

/* ---- Traces ---- */

/* The coordinator is A. */
#define LETTER(node) ((char)('A' + (node)))

static const char *message_name(uint8_t kind)
{
    static const char *const names[] = {
        [LOTUS_MSG_EXECUTE] = "EXECUTE",     [LOTUS_MSG_EXECUTED] = "EXECUTED",
        [LOTUS_MSG_PREPARE] = "PREPARE",     [LOTUS_MSG_PREPARED] = "PREPARED",
        [LOTUS_MSG_COMMIT] = "COMMIT",       [LOTUS_MSG_ABORT] = "ABORT",
        [LOTUS_MSG_COMMITTED] = "COMMITTED", [LOTUS_MSG_ASK] = "ASK",
        [LOTUS_MSG_TOLD] = "TOLD",           [LOTUS_MSG_RESOLVED] = "RESOLVED",
    };
    return names[kind];
}

static void print_message(const struct phases_message *m, bool refuse, FILE *to)
{
    static const char *const told[] = {"no", "prepared", "committed"};
    fprintf(to, "%c gets %s of %c for t%u, try %u", LETTER(m->to), message_name(m->kind),
            LETTER(m->from), m->txn + 1u, m->gen);
    if (m->kind == LOTUS_MSG_EXECUTED || m->kind == LOTUS_MSG_PREPARED) {
        fputs(m->ts == LOTUS_OK ? ": ok" : ": refused", to);
    } else if (m->kind == LOTUS_MSG_TOLD) {
        fprintf(to, ": %s", told[m->ts]);
    } else if (refuse) {
        fputs(", and refuses", to);
    }
}

static void print_action(const struct phases_world *before, uint64_t number, FILE *to)
{
    uint32_t a = (uint32_t)(number >> 8 & 0xff);
    uint32_t b = (uint32_t)(number & 0xff);
    switch ((enum phases_action_kind)(number >> 16)) {
    case PHASES_ACT_DELIVER:
        print_message(&before->messages[a], b != 0, to);
        break;
    case PHASES_ACT_BEGIN:
        fprintf(to, "t%u begins a try", a + 1);
        break;
    case PHASES_ACT_CANCEL:
        fprintf(to, "the client of t%u goes away", a + 1);
        break;
    case PHASES_ACT_WOUND:
        fprintf(to, "t%u is wounded at %c", b + 1, LETTER(a));
        break;
    case PHASES_ACT_TIMEOUT:
        fprintf(to, "t%u times out at %c", b + 1, LETTER(a));
        break;
    case PHASES_ACT_DROP:
        fprintf(to, "%c dies", LETTER(a));
        break;
    case PHASES_ACT_JOIN:
        fprintf(to, "a new process of %c is let in", LETTER(a));
        break;
    case PHASES_ACT_ADOPT:
        fprintf(to, "%c adopts view %u", LETTER(a), b);
        break;
    case PHASES_ACT_STUCK:
        fputs("nothing can happen", to);
        break;
    }
}

void phases_describe(const void *self, const void *before, const void *after, uint64_t number,
                     FILE *to)
{
    static const char *const told[] = {"nothing", "that it is done", "that nothing changed",
                                       "that nobody knows"};
    const struct phases_world *old = before;
    const struct phases_world *w = after;
    (void)self;
    print_action(old, number, to);
    for (uint8_t i = 0; i < PHASES_TXNS; i++) {
        const struct phases_txn *t = &w->txns[i];
        if (t->machine.state != old->txns[i].machine.state) {
            fprintf(to, "; t%u %s", i + 1u, lotus_state_names[t->machine.state]);
        }
        if (t->told != old->txns[i].told) {
            fprintf(to, "; its client hears %s", told[t->told]);
        }
        for (uint8_t node = 1; node < PHASES_NODES; node++) {
            const struct lotus_part *p = &w->parts[node][i].machine;
            if (p->state != old->parts[node][i].machine.state) {
                fprintf(to, "; t%u at %c %s", i + 1u, LETTER(node), part_state_names[p->state]);
            }
        }
    }
}

/* ---- The configurations ---- */

#define SETUP(...) (&(const struct phases_setup){__VA_ARGS__})
#define LOTUS(config_name, in_words, is_fast, ...)                                                 \
    {                                                                                              \
        .name = config_name, .what = in_words, .family = EXPLORE_LOTUS, .fast = is_fast,           \
        .setup = SETUP(__VA_ARGS__), .print = print, .run = run                                    \
    }
/* Sets of nodes: the coordinator, and the servers. */
#define AT_A 1u
#define AT_B 2u
#define BC 6u
#define BD 10u
#define BCD 14u
#define ABCD 15u

const struct explore_config explore_lotus_configs[] = {
    LOTUS("lotus-commit", "two servers that refuse, wound and lose their client", true, .nodes = 3,
          .txns = 1, .tries = 2, .homes = {BC}, .written = {BC}, .wounds = 1, .refusals = 1,
          .cancels = 1),
    LOTUS("lotus-reader", "two servers, one of which is only read at", true, .nodes = 3, .txns = 1,
          .tries = 2, .homes = {BC}, .written = {AT_B}, .wounds = 1, .refusals = 1),
    LOTUS("lotus-three", "three servers that refuse and wound", true, .nodes = 4, .txns = 1,
          .tries = 1, .homes = {BCD}, .written = {BC}, .wounds = 1, .refusals = 1),
    LOTUS("lotus-death", "two servers; the coordinator dies", true, .nodes = 3, .txns = 1,
          .tries = 2, .homes = {BC}, .written = {BC}, .wounds = 1, .drops = 1, .drop_nodes = AT_A),
    LOTUS("lotus-server", "two servers, of which one dies", true, .nodes = 3, .txns = 1, .tries = 2,
          .homes = {BC}, .written = {BC}, .wounds = 1, .drops = 1, .drop_nodes = AT_B),
    LOTUS("lotus-deaths", "three servers; the coordinator dies, and a server", true, .nodes = 4,
          .txns = 1, .tries = 1, .homes = {BCD}, .written = {BCD}, .wounds = 1, .drops = 2,
          .drop_nodes = AT_A | AT_B),
    LOTUS("lotus-two", "two transactions at two servers; the coordinator dies", true, .nodes = 3,
          .txns = 2, .tries = 1, .homes = {BC, BC}, .written = {BC, BC}, .drops = 1,
          .drop_nodes = AT_A),
    LOTUS("lotus-deaths-any", "three servers; any two nodes die", true, .nodes = 4, .txns = 1,
          .tries = 2, .homes = {BCD}, .written = {BD}, .wounds = 1, .drops = 2, .drop_nodes = ABCD),
    LOTUS("lotus-deaths-three", "three servers; any three nodes die", true, .nodes = 4, .txns = 1,
          .tries = 1, .homes = {BCD}, .written = {BCD}, .wounds = 1, .drops = 3,
          .drop_nodes = ABCD),
    LOTUS("lotus-two-deaths", "two transactions at two servers; any two nodes die", true,
          .nodes = 3, .txns = 2, .tries = 2, .homes = {BC, BC}, .written = {BC, AT_B}, .wounds = 1,
          .drops = 2, .drop_nodes = 7),
    LOTUS("lotus-joins", "two servers; the coordinator dies, a server dies and comes back", true,
          .nodes = 3, .txns = 1, .tries = 2, .homes = {BC}, .written = {BC}, .wounds = 1,
          .drops = 2, .drop_nodes = AT_A | AT_B, .joins = 1),
    LOTUS("lotus-joins-three", "three servers; any two nodes die, and one comes back", false,
          .nodes = 4, .txns = 1, .tries = 1, .homes = {BCD}, .written = {BCD}, .wounds = 1,
          .drops = 2, .drop_nodes = ABCD, .joins = 1),
    LOTUS("lotus-wounds", "three servers that refuse and wound; any three nodes die", false,
          .nodes = 4, .txns = 1, .tries = 2, .homes = {BCD}, .written = {BC}, .wounds = 2,
          .refusals = 1, .cancels = 1, .drops = 3, .drop_nodes = ABCD),
    LOTUS("lotus-side-by-side", "two transactions at three servers; any two nodes die", false,
          .nodes = 4, .txns = 2, .tries = 1, .homes = {BCD, BC}, .written = {BC, BC}, .drops = 2,
          .drop_nodes = ABCD),
    {.name = NULL},
};
