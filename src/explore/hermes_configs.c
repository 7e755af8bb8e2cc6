/* The configurations of the Hermes model. */
#include "explore/hermes_model.h"

#include <stdlib.h>

/* ---- Running ---- */

/* Rules without which a message might matter that the model would leave out (hermes_world.c). */
static bool may_leave_out(const struct explore_request *request)
{
    static const uint8_t needed[] = {
        HERMES_RULE_EPOCH,     HERMES_RULE_VAL_ANY_EPOCH, HERMES_RULE_ACK_TS,
        HERMES_RULE_ACK_SET,   HERMES_RULE_ACK_RESET,     HERMES_RULE_NO_STALE,
        HERMES_RULE_O3_WRITES, HERMES_RULE_O3_EPOCH,      HERMES_RULE_CID,
        HERMES_RULE_ALL_ACKS,  HERMES_RULE_VAL_TS,        HERMES_RULE_VAL_MEMBER,
        HERMES_RULE_CHECK,     HERMES_RULE_WRITE_VAL,     HERMES_RULE_CID_TRIGGER,
    };
    uint64_t off = 0;
    for (uint32_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        off |= UINT64_C(1) << needed[i];
    }
    return !request->altered && (request->rules_off & off) == 0;
}

static void run(const struct explore_config *config, const struct explore_request *request,
                struct search_result *result_out)
{
    const struct hermes_setup *setup = config->setup;
    struct hermes_work *work = calloc(1, sizeof *work);
    if (work == NULL) {
        *result_out = (struct search_result){.end = SEARCH_NOMEM};
        return;
    }
    struct hermes_model model = {
        .setup = setup,
        .config = {.mlt_us = 1000,
                   .grace_us = MODEL_GRACE_US,
                   .ack_to_all = setup->o3,
                   .rules_off = request->rules_off},
        .exact = may_leave_out(request),
        .work = work,
    };
    struct search_model searched = {.self = &model,
                                    .state_bytes = sizeof(struct model_world),
                                    .begin = hermes_begin,
                                    .expand = hermes_expand,
                                    .broken = hermes_broken,
                                    .finished = hermes_finished,
                                    .describe = hermes_describe};
    search_run(&searched, &request->bounds, request->progress, request->context, result_out);
    free(work->histories.at);
    free(work);
}

static void print_operations(const struct hermes_setup *setup, FILE *to)
{
    static const char *const words[] = {
        [TYPE_WRITE] = "write", [TYPE_RMW] = "RMW", [TYPE_DELETE] = "delete", [TYPE_READ] = "read"};
    for (uint32_t i = 0; i < MODEL_OPS && setup->ops[i] != TYPE_NONE; i++) {
        fprintf(to, "%s%s", i == 0 ? ", " : " ", words[setup->ops[i]]);
    }
}

static void print(const struct explore_config *config, FILE *to)
{
    const struct hermes_setup *setup = config->setup;
    fprintf(to, "%u nodes", setup->nodes);
    print_operations(setup, to);
    fprintf(to, ", %u dropped%s, %u admitted", setup->drops, setup->zombies ? " alive" : "",
            setup->admits);
    if (setup->replays == MODEL_UNLIMITED) {
        fputs(", any replays", to);
    } else {
        fprintf(to, ", %u replays", setup->replays);
    }
    if (setup->ticks > 0) {
        fprintf(to, ", %u graces", setup->ticks);
    }
    if (setup->tries > 1) {
        fprintf(to, ", %u tries", setup->tries);
    }
    fputs(setup->o3 ? ", O3" : "", to);
    fputs(setup->async ? ", asynchronous reads" : "", to);
}

#define SETUP(...)                                                                                 \
    &(const struct hermes_setup)                                                                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define HERMES(config_name, in_words, is_fast, ...)                                                \
    {                                                                                              \
        .name = config_name, .what = in_words, .family = EXPLORE_HERMES, .fast = is_fast,          \
        .setup = SETUP(__VA_ARGS__), .print = print, .run = run                                    \
    }
#define W TYPE_WRITE
#define R TYPE_RMW
#define D TYPE_DELETE
#define Q TYPE_READ
#define ANY MODEL_UNLIMITED

/* Sets of nodes. */
#define AT_A 1u
#define AT_B 2u
#define AT_C 4u

const struct explore_config explore_hermes_configs[] = {
    HERMES("two-writes", "two writes race", true, .nodes = 3, .ops = {W, W}, .replays = 1),
    HERMES("write-rmw", "a write and an RMW race", true, .nodes = 3, .ops = {W, R}, .replays = 1),
    HERMES("two-rmws", "two RMWs race", true, .nodes = 3, .ops = {R, R}, .replays = 1, .tries = 2),
    HERMES("w-w-rmw", "two writes and an RMW race", true, .nodes = 3, .ops = {W, W, R},
           .replays = 0),
    HERMES("first", "first updates race", true, .nodes = 3, .start = START_NOTHING, .ops = {W, W},
           .replays = 0, .tries = 2),
    HERMES("crash", "a write, a member dies", true, .nodes = 3, .ops = {W}, .drops = 1,
           .replays = ANY),
    HERMES("crash-rmw", "two RMWs, members die", true, .nodes = 3, .ops = {R, R}, .drops = 2,
           .live_min = 1, .replays = 1),
    HERMES("crash-trans", "a write is overtaken by that of a member that dies", true, .nodes = 3,
           .ops = {W, W}, .op_nodes = {AT_A, AT_B}, .drops = 1, .drop_nodes = AT_B, .replays = 1),
    HERMES("rejoin", "a member writes, dies, comes back and writes", true, .nodes = 3,
           .ops = {W, W}, .op_nodes = {AT_C, AT_C}, .drops = 1, .drop_nodes = AT_C, .admits = 1,
           .replays = 0),
    HERMES("join", "a write, a member joins", true, .nodes = 3, .ops = {W}, .shadow = 3,
           .replays = 1),
    HERMES("join-forget", "a first update, a member joins, a tombstone goes", true, .nodes = 3,
           .start = START_AGREED, .ops = {W}, .shadow = 3, .replays = 1, .tries = 2),
    HERMES("second-life", "a first update has the timestamp of one that was forgotten", true,
           .nodes = 4, .start = START_TWICE, .ops = {W}, .zombies = true, .replays = 0),
    HERMES("o3", "a write and an RMW, acknowledged to all", true, .nodes = 3, .ops = {W, R},
           .o3 = true, .replays = 0),
    HERMES("o3-rejoin", "a write acknowledged to all, a member dies and comes back", true,
           .nodes = 3, .ops = {W}, .op_nodes = {AT_A}, .drops = 1, .drop_nodes = AT_C, .admits = 1,
           .o3 = true, .replays = 0),
    HERMES("async", "a write and a read without leases, a member is left behind", true, .nodes = 3,
           .ops = {W, Q}, .drops = 1, .drop_nodes = AT_C, .zombies = true, .async = true,
           .replays = 0),
    HERMES("forgotten", "a first update where some have forgotten the tombstone", true, .nodes = 3,
           .start = START_AGREED, .ops = {W}, .replays = 1, .tries = 2),
    HERMES("join-forgotten", "a first update, a member joins, one has forgotten a tombstone", true,
           .nodes = 3, .start = START_PARTLY, .ops = {W}, .shadow = 3, .replays = 0, .tries = 2),
    HERMES("same-life", "a first update has the timestamp of the tombstone that goes", true,
           .nodes = 3, .start = START_PARTLY, .version = 2, .ops = {W}, .replays = 1, .tries = 2),
    HERMES("delete", "a delete, a tombstone that goes, a first update", true, .nodes = 3,
           .ops = {D, W}, .op_nodes = {AT_A, AT_A}, .ticks = 2, .replays = 0),
    HERMES("delete-join", "a first update while a tombstone goes and a member joins", true,
           .nodes = 3, .start = START_TOMBSTONE, .ops = {W}, .op_nodes = {AT_A}, .shadow = 3,
           .ticks = 1, .replays = 0),
    HERMES("delete-first", "a first update while a tombstone goes", false, .nodes = 3,
           .start = START_TOMBSTONE, .ops = {W}, .op_nodes = {AT_A}, .ticks = 1, .replays = 0,
           .tries = 2),
    HERMES("delete-replay", "a first update anywhere while a tombstone goes, with a replay", false,
           .nodes = 3, .start = START_TOMBSTONE, .ops = {W}, .ticks = 1, .replays = 1, .tries = 2),
    HERMES("forgotten-two", "two first updates where some have forgotten the tombstone", false,
           .nodes = 3, .start = START_AGREED, .ops = {W, W}, .replays = 0, .tries = 2),
    HERMES("lives", "a write and a delete where a tombstone of the same timestamps goes", false,
           .nodes = 3, .start = START_PARTLY, .version = 2, .ops = {W, D}, .replays = 0,
           .tries = 2),
    HERMES("delete-any", "a delete, a tombstone that goes, a first update, anywhere", false,
           .nodes = 3, .ops = {D, W}, .ticks = 2, .replays = 0),
    HERMES("reads", "two writes and two reads", false, .nodes = 3, .ops = {W, W, Q, Q},
           .replays = 0),
    HERMES("two-writes-replays", "two writes race, replayed twice", false, .nodes = 3,
           .ops = {W, W}, .replays = 2),
    HERMES("two-rmws-replays", "two RMWs race, replayed at any time", false, .nodes = 3,
           .ops = {R, R}, .replays = ANY),
    HERMES("three-rmws", "three RMWs race", false, .nodes = 3, .ops = {R, R, R}, .replays = 0,
           .tries = 2),
    HERMES("w-w-rmw-replay", "two writes and an RMW race, one is replayed", false, .nodes = 3,
           .ops = {W, W, R}, .replays = 1),
    HERMES("crash-writes", "two writes, a member dies", false, .nodes = 3, .ops = {W, W},
           .drops = 1, .replays = 1),
    HERMES("crash-write-rmw", "a write and an RMW, members die", false, .nodes = 3, .ops = {W, R},
           .drops = 2, .live_min = 1, .replays = 1),
    HERMES("views-apart", "a write and an RMW, a dropped member lives on", false, .nodes = 3,
           .ops = {W, R}, .drops = 1, .zombies = true, .replays = 1),
    HERMES("views-apart-rmws", "two RMWs, a dropped member lives on", false, .nodes = 3,
           .ops = {R, R}, .drops = 1, .zombies = true, .replays = 1),
    HERMES("rejoin-rmw", "a write and an RMW, a member dies and comes back", false, .nodes = 3,
           .ops = {W, R}, .drops = 1, .drop_nodes = AT_C, .admits = 1, .replays = 0),
    HERMES("o3-writes", "two writes, acknowledged to all", false, .nodes = 3, .ops = {W, W},
           .o3 = true, .replays = 0),
    HERMES("five", "a write and an RMW at five nodes", false, .nodes = 5, .ops = {W, R},
           .replays = 0),
    HERMES("five-crash", "a write at five nodes, two die", false, .nodes = 5, .ops = {W},
           .op_nodes = {AT_A}, .drops = 2, .replays = 0),
    {.name = NULL},
};
