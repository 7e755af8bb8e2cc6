/* The configurations of the view model. Nodes 0, 1, 2, .. are A, B, C, ..; processes 0, 1, 2, ..
 * are their first ones, later processes follow in the order in which they start. */
#include "explore/explore.h"
#include "explore/view_model.h"

#define A 0x01u
#define B 0x02u
#define C 0x04u
#define D 0x08u
#define E 0x10u

#define BEATS VIEWS_KIND(HEARTBEAT)
#define ANSWERS (VIEWS_KIND(REFUSE) | VIEWS_KIND(ASK))
#define USUAL .nodes = 3, .lease_ticks = 2, .margin_ticks = 1

#define MOVE(kind, a, b, kinds)                                                                    \
    {                                                                                              \
        VIEWS_MOVE_##kind, a, b, (uint16_t)(kinds)                                                 \
    }
#define TIME(n) MOVE(TIME, n, 0, 0)
#define TICK(p) MOVE(TICK, p, 0, 0)
#define DELIVER(from, to, kinds) MOVE(DELIVER, from, to, kinds)
#define SUSPECT(p, node) MOVE(SUSPECT, p, node, 0)
#define HINT(p, node) MOVE(HINT, p, node, 0)
#define START(node) MOVE(START, node, 0, 0)
#define PAUSE(p) MOVE(PAUSE, p, 0, 0)
#define CRASH(p) MOVE(CRASH, p, 0, 0)
#define COPIED(p) MOVE(COPIED, p, 0, 0)
#define CONFIGURE(p, set) MOVE(CONFIGURE, p, set, 0)
#define LOSE MOVE(LOSE, 0, 0, 0)
#define END MOVE(END, 0, 0, 0)

/* Proposer and acceptor decide what the proposer has begun, the proposer learns it. */
#define PHASE_ONE(proposer, acceptor)                                                              \
    DELIVER(proposer, acceptor, VIEWS_KIND(PREPARE)),                                              \
        DELIVER(acceptor, proposer, VIEWS_KIND(PROMISE))
#define DECIDE(proposer, acceptor)                                                                 \
    PHASE_ONE(proposer, acceptor), DELIVER(proposer, acceptor, VIEWS_KIND(ACCEPT)),                \
        DELIVER(acceptor, proposer, VIEWS_KIND(ACCEPTED))
/* A view that the sender holds reaches a process of the node. */
#define TELL(from, node, to) HINT(from, node), DELIVER(from, to, VIEWS_KIND(VIEW))

/* Process 3, of node B, replaces process 1 in view 2, decided by A and C; A and B2 know. */
#define REPLACE_B                                                                                  \
    START(1), TELL(0, 1, 3), TICK(3), DELIVER(3, 0, BEATS), SUSPECT(0, 1), DECIDE(0, 2),           \
        DELIVER(0, 3, VIEWS_KIND(VIEW))

static const struct views_config drop = {
    USUAL,
    .epochs_max = 2,
    .rounds_max = 1,
    .beats = {[2] = A | B},
    .suspects = {[0] = C},
    .lost = ANSWERS,
    .prompt = VIEWS_KIND(GRANT),
    .budget = {[VIEWS_BUDGET_TICKS] = 4, [VIEWS_BUDGET_SUSPECTS] = 2},
    .goal = VIEWS_GOAL_DECIDED,
};

/* The clock of some node misses a tick of a lease's two: as much as the margin allows. */
static const struct views_config drift = {
    USUAL,
    .epochs_max = 2,
    .rounds_max = 1,
    .beats = {[2] = A | B},
    .suspects = {[0] = C},
    .lost = ANSWERS | VIEWS_KIND(VIEW),
    .prompt = VIEWS_KIND(GRANT),
    .budget = {[VIEWS_BUDGET_TICKS] = 4, [VIEWS_BUDGET_SUSPECTS] = 2, [VIEWS_BUDGET_DRIFT] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

static const struct views_config rounds = {
    USUAL,
    .epochs_max = 2,
    .rounds_max = 2,
    .beats = {[0] = B, [2] = B},
    .suspects = {[0] = C, [2] = A},
    .cut = {[0] = C, [2] = A},
    .lost = VIEWS_KIND(VIEW),
    .prompt = VIEWS_KIND(GRANT) | ANSWERS,
    .budget = {[VIEWS_BUDGET_TICKS] = 3, [VIEWS_BUDGET_SUSPECTS] = 2},
    .goal = VIEWS_GOAL_DECIDED,
};

static const struct views_config rounds_long = {
    USUAL,
    .epochs_max = 2,
    .rounds_max = 3,
    .beats = {[0] = B, [2] = B},
    .suspects = {[0] = C, [2] = A},
    .cut = {[0] = C, [2] = A},
    .lost = VIEWS_KIND(VIEW),
    .prompt = VIEWS_KIND(GRANT) | ANSWERS,
    .budget = {[VIEWS_BUDGET_TICKS] = 4, [VIEWS_BUDGET_SUSPECTS] = 3},
    .goal = VIEWS_GOAL_DECIDED,
};

static const struct views_config amnesia = {
    USUAL,
    .epochs_max = 2,
    .rounds_max = 1,
    .beats = {[2] = B},
    .suspects = {[0] = C, [2] = A},
    .lost = ANSWERS,
    .prompt = VIEWS_KIND(GRANT),
    .faulty = B,
    .budget = {[VIEWS_BUDGET_TICKS] = 2,
               [VIEWS_BUDGET_SUSPECTS] = 2,
               [VIEWS_BUDGET_CRASHES] = 1,
               [VIEWS_BUDGET_STARTS] = 1,
               [VIEWS_BUDGET_HINTS] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

/* C holds a lease by B, which has crashed, and A has begun to replace it. */
static const struct views_move replacing[] = {TICK(2),
                                              DELIVER(2, 1, BEATS),
                                              DELIVER(1, 2, VIEWS_KIND(GRANT)),
                                              LOSE,
                                              CRASH(1),
                                              START(1),
                                              TELL(0, 1, 3),
                                              TICK(3),
                                              DELIVER(3, 0, BEATS),
                                              SUSPECT(0, 1),
                                              END};
static const struct views_config admission = {
    .nodes = 3,
    .lease_ticks = 3,
    .margin_ticks = 1,
    .moves = replacing,
    .epochs_max = 3,
    .rounds_max = 2,
    .beats = {[2] = B},
    .suspects = {[0] = C},
    .lost = ANSWERS,
    .prompt = VIEWS_KIND(GRANT),
    .budget = {[VIEWS_BUDGET_TICKS] = 3, [VIEWS_BUDGET_SUSPECTS] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

static const struct views_config admission_free = {
    USUAL,
    .epochs_max = 3,
    .rounds_max = 2,
    .beats = {[1] = A, [2] = B},
    .suspects = {[0] = B | C},
    .lost = ANSWERS,
    .prompt = VIEWS_KIND(GRANT),
    .faulty = B,
    .runs = B,
    .budget = {[VIEWS_BUDGET_TICKS] = 1,
               [VIEWS_BUDGET_SUSPECTS] = 2,
               [VIEWS_BUDGET_CRASHES] = 1,
               [VIEWS_BUDGET_STARTS] = 1,
               [VIEWS_BUDGET_RUNS] = 1,
               [VIEWS_BUDGET_HINTS] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

static const struct views_move zombie_moves[] = {PAUSE(1), REPLACE_B, LOSE, TIME(3), END};
static const struct views_config zombie = {
    USUAL,
    .moves = zombie_moves,
    .epochs_max = 3,
    .rounds_max = 2,
    .beats = {[2] = B},
    .suspects = {[0] = C},
    .lost = ANSWERS | VIEWS_KIND(VIEW),
    .prompt = VIEWS_KIND(GRANT),
    .faulty = B,
    .budget = {[VIEWS_BUDGET_TICKS] = 2, [VIEWS_BUDGET_SUSPECTS] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

static const struct views_config zombie_long = {
    USUAL,
    .moves = zombie_moves,
    .epochs_max = 3,
    .rounds_max = 2,
    .beats = {[2] = B},
    .suspects = {[0] = C},
    .lost = ANSWERS,
    .prompt = VIEWS_KIND(GRANT),
    .faulty = B,
    .budget = {[VIEWS_BUDGET_TICKS] = 3, [VIEWS_BUDGET_SUSPECTS] = 2},
    .goal = VIEWS_GOAL_DECIDED,
};

static const struct views_move zombie_known_moves[] = {
    PAUSE(1), REPLACE_B, DELIVER(0, 2, VIEWS_KIND(VIEW)), LOSE, TIME(3), END};
static const struct views_config zombie_known = {
    USUAL,
    .moves = zombie_known_moves,
    .epochs_max = 3,
    .rounds_max = 2,
    .beats = {[2] = B},
    .suspects = {[0] = C},
    .lost = ANSWERS,
    .prompt = VIEWS_KIND(GRANT),
    .faulty = B,
    .budget = {[VIEWS_BUDGET_TICKS] = 2, [VIEWS_BUDGET_SUSPECTS] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

/* Process 3 replaces process 2, of node C, and is promoted, decided by B and the old process; A
 * knows the first view only. */
static const struct views_move successor_moves[] = {START(2),
                                                    TELL(1, 2, 3),
                                                    TICK(3),
                                                    DELIVER(3, 1, BEATS),
                                                    SUSPECT(1, 2),
                                                    TIME(1),
                                                    TICK(1),
                                                    PHASE_ONE(1, 0),
                                                    DECIDE(1, 2),
                                                    TELL(1, 2, 3),
                                                    COPIED(3),
                                                    TICK(3),
                                                    DELIVER(3, 1, BEATS),
                                                    TIME(1),
                                                    TICK(1),
                                                    DECIDE(1, 3),
                                                    TELL(1, 2, 3),
                                                    LOSE,
                                                    TIME(3),
                                                    END};
static const struct views_config successor = {
    USUAL,
    .moves = successor_moves,
    .epochs_max = 4,
    .rounds_max = 4,
    .beats = {[2] = A},
    .suspects = {[1] = C},
    .lost = ANSWERS,
    .budget = {[VIEWS_BUDGET_TICKS] = 2, [VIEWS_BUDGET_SUSPECTS] = 1, [VIEWS_BUDGET_HINTS] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

/* Everybody has heard everybody, so A has begun a ballot for the first view. */
static const struct views_move met[] = {TICK(0),
                                        TICK(1),
                                        TICK(2),
                                        DELIVER(1, 2, BEATS),
                                        DELIVER(2, 1, BEATS),
                                        DELIVER(0, 1, BEATS),
                                        DELIVER(0, 2, BEATS),
                                        DELIVER(1, 0, BEATS),
                                        DELIVER(2, 0, BEATS),
                                        END};
static const struct views_config boot = {
    USUAL,
    .boots = true,
    .moves = met,
    .epochs_max = 1,
    .rounds_max = 1,
    .beats = {[1] = C},
    .lost = ANSWERS,
    .faulty = B,
    .budget = {[VIEWS_BUDGET_TICKS] = 3, [VIEWS_BUDGET_CRASHES] = 1, [VIEWS_BUDGET_STARTS] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

static const struct views_config boot_decided = {
    USUAL,
    .boots = true,
    .moves = met,
    .epochs_max = 1,
    .rounds_max = 2,
    .beats = {[0] = B | C, [1] = C},
    .prompt = ANSWERS,
    .faulty = A,
    .budget = {[VIEWS_BUDGET_TICKS] = 3, [VIEWS_BUDGET_CRASHES] = 1, [VIEWS_BUDGET_STARTS] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

static const struct views_config kept = {
    USUAL,
    .boots = true,
    .kept_epoch = 4,
    .epochs_max = 1,
    .rounds_max = 1,
    .beats = {A | B | C, A | B | C, A | B | C},
    .prompt = UINT16_MAX,
    .faulty = B,
    .budget = {[VIEWS_BUDGET_TICKS] = 4, [VIEWS_BUDGET_CRASHES] = 1, [VIEWS_BUDGET_STARTS] = 1},
};

/* Five nodes become three: A holds a lease by A, B and C in the view of five; view 2, which names
 * both sets, is known to all but A. */
static const struct views_move joint_moves[] = {TICK(0),
                                                DELIVER(0, 1, BEATS),
                                                DELIVER(1, 0, VIEWS_KIND(GRANT)),
                                                DELIVER(0, 2, BEATS),
                                                DELIVER(2, 0, VIEWS_KIND(GRANT)),
                                                CONFIGURE(3, C | D | E),
                                                PHASE_ONE(3, 4),
                                                PHASE_ONE(3, 2),
                                                DELIVER(3, 4, VIEWS_KIND(ACCEPT)),
                                                DELIVER(3, 2, VIEWS_KIND(ACCEPT)),
                                                DELIVER(4, 3, VIEWS_KIND(ACCEPTED)),
                                                DELIVER(2, 3, VIEWS_KIND(ACCEPTED)),
                                                DELIVER(3, 1, VIEWS_KIND(VIEW)),
                                                DELIVER(3, 2, VIEWS_KIND(VIEW)),
                                                DELIVER(3, 4, VIEWS_KIND(VIEW)),
                                                LOSE,
                                                END};
static const struct views_config joint = {
    .nodes = 5,
    .lease_ticks = 3,
    .margin_ticks = 1,
    .moves = joint_moves,
    .epochs_max = 3,
    .rounds_max = 2,
    .suspects = {[2] = A},
    .lost = ANSWERS | VIEWS_KIND(VIEW),
    .budget = {[VIEWS_BUDGET_TICKS] = 1, [VIEWS_BUDGET_SUSPECTS] = 1},
};

static const struct views_config joint_long = {
    .nodes = 5,
    .lease_ticks = 3,
    .margin_ticks = 1,
    .moves = joint_moves,
    .epochs_max = 3,
    .rounds_max = 2,
    .suspects = {[2] = A},
    .lost = ANSWERS | VIEWS_KIND(VIEW),
    .budget = {[VIEWS_BUDGET_TICKS] = 4, [VIEWS_BUDGET_SUSPECTS] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

/* View 2 names both sets, and the operator wants yet another one: it must wait. */
static const struct views_config joint_again = {
    .nodes = 5,
    .lease_ticks = 3,
    .margin_ticks = 1,
    .moves = joint_moves,
    .epochs_max = 3,
    .rounds_max = 2,
    .configured = B | C | D | E,
    .lost = ANSWERS | VIEWS_KIND(VIEW),
    .budget = {[VIEWS_BUDGET_TICKS] = 2, [VIEWS_BUDGET_CONFIGURES] = 1},
};

/* C is dropped, and nobody may be dropped any more. */
static const struct views_move pair_moves[] = {
    SUSPECT(0, 2), DECIDE(0, 1), DELIVER(0, 1, VIEWS_KIND(VIEW)), LOSE, CRASH(2), TIME(3), END};
static const struct views_config pair = {
    USUAL,
    .moves = pair_moves,
    .epochs_max = 3,
    .rounds_max = 3,
    .beats = {B, A},
    .suspects = {[0] = B, [1] = A},
    .prompt = VIEWS_KIND(GRANT) | ANSWERS,
    .budget = {[VIEWS_BUDGET_TICKS] = 4, [VIEWS_BUDGET_SUSPECTS] = 2},
};

/* C is dropped and does not know; its last heartbeat is on its way to A. */
static const struct views_move dropped_moves[] = {TICK(2), SUSPECT(0, 2), DECIDE(0, 1),
                                                  DELIVER(0, 1, VIEWS_KIND(VIEW)), END};
static const struct views_config dropped = {
    USUAL,
    .moves = dropped_moves,
    .epochs_max = 3,
    .rounds_max = 2,
    .beats = {[1] = A, [2] = A},
    .prompt = VIEWS_KIND(GRANT) | ANSWERS,
    .faulty = C,
    .budget = {[VIEWS_BUDGET_TICKS] = 2, [VIEWS_BUDGET_STARTS] = 1, [VIEWS_BUDGET_HINTS] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

/* B2 is a shadow, as all know; its workers have yet to adopt the view. */
static const struct views_move shadow_moves[] = {
    CRASH(1), REPLACE_B, DELIVER(0, 2, VIEWS_KIND(VIEW)), LOSE, TIME(3), END};
static const struct views_config shadow = {
    USUAL,
    .moves = shadow_moves,
    .epochs_max = 3,
    .rounds_max = 2,
    .beats = {[1] = A},
    .prompt = VIEWS_KIND(GRANT) | ANSWERS,
    .runs = B,
    .budget = {[VIEWS_BUDGET_TICKS] = 2, [VIEWS_BUDGET_COPIES] = 1, [VIEWS_BUDGET_RUNS] = 1},
    .goal = VIEWS_GOAL_PROMOTED,
};

static const struct views_config wedge = {
    USUAL,
    .epochs_max = 2,
    .rounds_max = 1,
    .beats = {[1] = A | C},
    .suspects = {[0] = B},
    .lost = ANSWERS | VIEWS_KIND(VIEW),
    .prompt = VIEWS_KIND(GRANT),
    .faulty = B,
    .budget = {[VIEWS_BUDGET_TICKS] = 3, [VIEWS_BUDGET_SUSPECTS] = 1, [VIEWS_BUDGET_WEDGES] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

static const struct views_config bridge = {
    USUAL,
    .in_time = true,
    .epochs_max = 2,
    .rounds_max = 6,
    .beats = {B, A | C, B},
    .cut = {[0] = C, [2] = A},
    .prompt = UINT16_MAX,
    .budget = {[VIEWS_BUDGET_TICKS] = 10},
    .goal = VIEWS_GOAL_DECIDED,
};

static const struct views_config leave = {
    USUAL,
    .epochs_max = 2,
    .rounds_max = 1,
    .beats = {[2] = A | B},
    .leaves = C,
    .lost = ANSWERS,
    .prompt = VIEWS_KIND(GRANT),
    .budget = {[VIEWS_BUDGET_TICKS] = 3, [VIEWS_BUDGET_LEAVES] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

/* Three nodes become two. */
static const struct views_config configure = {
    USUAL,
    .epochs_max = 3,
    .rounds_max = 2,
    .beats = {[1] = A, [2] = A | B},
    .configured = A | B,
    .lost = ANSWERS,
    .prompt = VIEWS_KIND(GRANT),
    .budget = {[VIEWS_BUDGET_TICKS] = 3, [VIEWS_BUDGET_CONFIGURES] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

/* Two nodes become three: C asks to join. */
static const struct views_move asking[] = {TELL(0, 2, 2),
                                           TICK(2),
                                           DELIVER(2, 0, BEATS),
                                           DELIVER(2, 1, BEATS),
                                           LOSE,
                                           TIME(1),
                                           TICK(1),
                                           DELIVER(1, 0, BEATS),
                                           LOSE,
                                           TIME(3),
                                           END};
static const struct views_config add = {
    USUAL,
    .formed = A | B,
    .moves = asking,
    .epochs_max = 3,
    .rounds_max = 2,
    .beats = {[1] = A, [2] = A},
    .configured = A | B | C,
    .lost = ANSWERS,
    .prompt = VIEWS_KIND(GRANT),
    .runs = C,
    .budget = {[VIEWS_BUDGET_TICKS] = 2,
               [VIEWS_BUDGET_CONFIGURES] = 1,
               [VIEWS_BUDGET_COPIES] = 1,
               [VIEWS_BUDGET_RUNS] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

/* Whatever can happen to B, with heartbeats that arrive wherever both processes are up. */
static const struct views_config churn = {
    USUAL,
    .epochs_max = 2,
    .rounds_max = 2,
    .beats = {B | C, A | C, A | B},
    .suspects = {[0] = B, [2] = A},
    .prompt = BEATS | VIEWS_KIND(GRANT) | ANSWERS | VIEWS_KIND(VIEW),
    .faulty = B,
    .budget = {[VIEWS_BUDGET_TICKS] = 2,
               [VIEWS_BUDGET_SUSPECTS] = 2,
               [VIEWS_BUDGET_CRASHES] = 1,
               [VIEWS_BUDGET_STARTS] = 1},
    .goal = VIEWS_GOAL_SERVES,
};

static const struct views_config churn_long = {
    USUAL,
    .epochs_max = 2,
    .rounds_max = 2,
    .beats = {B | C, A | C, A | B},
    .suspects = {[0] = B, [2] = A},
    .prompt = BEATS | VIEWS_KIND(GRANT) | ANSWERS | VIEWS_KIND(VIEW),
    .faulty = B,
    .budget = {[VIEWS_BUDGET_TICKS] = 2,
               [VIEWS_BUDGET_SUSPECTS] = 2,
               [VIEWS_BUDGET_CRASHES] = 1,
               [VIEWS_BUDGET_STARTS] = 1,
               [VIEWS_BUDGET_PAUSES] = 1},
    .goal = VIEWS_GOAL_SERVES,
};

static const struct views_config five = {
    .nodes = 5,
    .lease_ticks = 2,
    .margin_ticks = 1,
    .epochs_max = 2,
    .rounds_max = 1,
    .beats = {[4] = A | B | C | D},
    .suspects = {[0] = E},
    .lost = ANSWERS | VIEWS_KIND(VIEW),
    .prompt = VIEWS_KIND(GRANT),
    .budget = {[VIEWS_BUDGET_TICKS] = 2, [VIEWS_BUDGET_SUSPECTS] = 1},
    .goal = VIEWS_GOAL_DECIDED,
};

static void print(const struct explore_config *config, FILE *to)
{
    views_config_print(config->setup, to);
}

static void run(const struct explore_config *config, const struct explore_request *request,
                struct search_result *result_out)
{
    views_explore(config->setup, request, result_out);
}

#define ROW(name, what, fast, setup)                                                               \
    {                                                                                              \
        name, what, EXPLORE_VIEW, fast, setup, print, run                                          \
    }

const struct explore_config explore_view_configs[] = {
    ROW("view-drop", "A and B drop C, which renews its lease", true, &drop),
    ROW("view-drift", "the same, and a clock is slow, within the margin", true, &drift),
    ROW("view-rounds", "A would drop C, C would drop A, and both reach only B", true, &rounds),
    ROW("view-rounds-long", "the same, for longer", false, &rounds_long),
    ROW("view-amnesia", "B restarts without memory; A would drop C, and C would drop A", false,
        &amnesia),
    ROW("view-admission", "B granted C and restarted; B2 is let in and helps to drop C", true,
        &admission),
    ROW("view-admission-free", "the same, with B's crash at any moment", false, &admission_free),
    ROW("view-zombie", "B1 resumes in an old view; C accepted B2, but does not know", true,
        &zombie),
    ROW("view-zombie-long", "the same, and C may learn of B2", false, &zombie_long),
    ROW("view-zombie-known", "B1 resumes in an old view; C knows of B2", true, &zombie_known),
    ROW("view-successor", "A would grant C1, and C2 is a member where A has not looked yet", true,
        &successor),
    ROW("view-boot", "a first view, while B restarts", true, &boot),
    ROW("view-boot-decided", "a first view that only A knows, which restarts", false,
        &boot_decided),
    ROW("view-kept", "all nodes restart with kept state: they form nothing", true, &kept),
    ROW("view-joint", "five nodes become three, which would drop A at once", true, &joint),
    ROW("view-joint-long", "the same, until A's lease has run out", false, &joint_long),
    ROW("view-joint-again", "five nodes become three, and another order comes", true, &joint_again),
    ROW("view-pair", "two of three are left, and suspect each other", true, &pair),
    ROW("view-dropped", "C was dropped unawares, and its last heartbeat is under way", true,
        &dropped),
    ROW("view-shadow", "B2 copies and adopts its view, and is promoted", true, &shadow),
    ROW("view-wedge", "a worker of B makes no progress any more", true, &wedge),
    ROW("view-bridge", "A and C talk only through B: one of them is dropped in time", true,
        &bridge),
    ROW("view-leave", "C leaves while it is leased", true, &leave),
    ROW("view-configure", "three nodes become two, while C renews its lease", false, &configure),
    ROW("view-configure-add", "two nodes become three", false, &add),
    ROW("view-five", "five nodes drop one that renews its lease", false, &five),
    ROW("view-churn", "B crashes and restarts; A would drop B, and C would drop A", true, &churn),
    ROW("view-churn-long", "the same, and B is paused", false, &churn_long),
    {.name = NULL},
};
