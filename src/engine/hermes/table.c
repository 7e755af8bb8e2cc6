#include "engine/hermes/table.h"

#include <stddef.h>

#define V (1u << HERMES_VALID)
#define I (1u << HERMES_INVALID)
#define W (1u << HERMES_WRITE)
#define T (1u << HERMES_TRANS)
#define R (1u << HERMES_REPLAY)
#define ANY (V | I | W | T | R)

#define IF(condition) (1u << HERMES_IF_##condition)
#define DO(effect) (1u << HERMES_DO_##effect)
#define TO(state) HERMES_##state
#define SAME HERMES_NEXT_SAME

const struct hermes_state_row hermes_state_table[HERMES_STATES] = {
    [HERMES_VALID] = {"Valid", I | W},       [HERMES_INVALID] = {"Invalid", V | I | R},
    [HERMES_WRITE] = {"Write", V | I | T},   [HERMES_TRANS] = {"Trans", V | I | T | R},
    [HERMES_REPLAY] = {"Replay", V | I | T},
};

const char *const hermes_input_names[HERMES_INPUTS] = {
    [HERMES_IN_READ] = "local read",
    [HERMES_IN_UPDATE] = "local write or RMW",
    [HERMES_IN_WAITED] = "a parked operation waited mlt",
    [HERMES_IN_SWEEP] = "background sweep",
    [HERMES_IN_INV_ABOVE] = "INV, ts above",
    [HERMES_IN_INV_EQUAL] = "INV, ts equal",
    [HERMES_IN_INV_BELOW] = "INV, ts below",
    [HERMES_IN_ANSWER_ABOVE] = "answering INV, ts above",
    [HERMES_IN_ANSWER_EQUAL] = "answering INV, ts equal",
    [HERMES_IN_ANSWER_BELOW] = "answering INV, ts below",
    [HERMES_IN_ACK_ALL_ABOVE] = "ACK_ALL, ts above",
    [HERMES_IN_ACK_ALL_EQUAL] = "ACK_ALL, ts equal",
    [HERMES_IN_ACK_ALL_BELOW] = "ACK_ALL, ts below",
    [HERMES_IN_VAL_EQUAL] = "VAL, ts equal",
    [HERMES_IN_VAL_OTHER] = "VAL, another ts",
    [HERMES_IN_ITEM_NEWER] = "ITEM, newer",
    [HERMES_IN_ITEM_NOT_NEWER] = "ITEM, not newer",
    [HERMES_IN_ASK_EQUAL] = "FORGET_ASK, ts equal",
    [HERMES_IN_ASK_OTHER] = "FORGET_ASK, another ts",
    [HERMES_IN_ASK_EMPTY] = "FORGET_ASK, no entry",
    [HERMES_IN_FORGET_EQUAL] = "FORGET, ts equal",
    [HERMES_IN_FORGET_OTHER] = "FORGET, another ts",
    [HERMES_IN_OTHER_EPOCH] = "any of these but VAL, of another epoch",
    [HERMES_IN_UPDATE_ACKED] = "last ACK of the pending update",
    [HERMES_IN_UPDATE_TIMER] = "timer of the pending update",
    [HERMES_IN_UPDATE_VIEW] = "new view, for the pending update",
    [HERMES_IN_REPLAY_ACKED] = "last ACK of a replay",
    [HERMES_IN_REPLAY_AGAIN] = "timer of a replay, or new view",
    [HERMES_IN_COLLECT_ACKED] = "last FORGET_REPORT",
};

const char *const hermes_condition_names[HERMES_CONDITIONS] = {
    [HERMES_IF_SPECIAL] = "special pending",
    [HERMES_IF_STORED] = "stored is special",
    [HERMES_IF_ORPHAN] = "orphaned",
    [HERMES_IF_ALONE] = "alone",
    [HERMES_IF_SPARE] = "slot free",
    [HERMES_IF_VALID] = "sender Valid",
    [HERMES_IF_O3] = "to all",
    [HERMES_IF_ALL_SEEN] = "all seen",
    [HERMES_IF_MINE] = "current",
    [HERMES_IF_ACKED] = "all ACKed",
    [HERMES_IF_RESENT] = "sent again",
    [HERMES_IF_TOMBSTONE] = "tombstone",
    [HERMES_IF_OLD] = "grace over",
    [HERMES_IF_ASKER] = "asker",
    [HERMES_IF_REPORTED] = "reported",
    [HERMES_IF_AGREED] = "agreed",
    [HERMES_IF_SHADOW] = "shadow in view",
    [HERMES_IF_OLDER] = "older",
};

const char *const hermes_effect_names[HERMES_EFFECTS] = {
    [HERMES_DO_PARK] = "park",
    [HERMES_DO_APPLY] = "apply",
    [HERMES_DO_INV] = "INV to all",
    [HERMES_DO_INV_REST] = "INV to the missing",
    [HERMES_DO_ANSWER] = "answer INV",
    [HERMES_DO_ACK] = "ACK",
    [HERMES_DO_ACK_ALL] = "ACK_ALL",
    [HERMES_DO_VAL] = "VAL to all",
    [HERMES_DO_DONE] = "DONE",
    [HERMES_DO_NUDGE] = "nudge",
    [HERMES_DO_GONE] = "close slot",
    [HERMES_DO_FORGET_ASK] = "FORGET_ASK to all",
    [HERMES_DO_FORGET_REPORT] = "FORGET_REPORT",
    [HERMES_DO_FORGET_ALL] = "FORGET to all",
    [HERMES_DO_FORGET] = "forget",
    [HERMES_DO_DROP] = "drop",
    [HERMES_DO_BEHIND] = "tell view",
};

/* The three ways in which a replay is tried. */
#define REPLAY_ROWS(input, condition, before)                                                      \
    {input, I | T, TO(VALID), (condition) | IF(ALONE), 0, before, NULL},                           \
        {input, I | T, TO(REPLAY), (condition) | IF(SPARE), IF(ALONE), (before) | DO(INV), NULL},  \
    {                                                                                              \
        input, I | T, SAME, condition, IF(ALONE) | IF(SPARE), before, "a later timer tries again"  \
    }

const struct hermes_row hermes_rows[] = {
    {HERMES_IN_READ, I | T, SAME, 0, IF(ORPHAN), DO(PARK), NULL},
    REPLAY_ROWS(HERMES_IN_READ, IF(ORPHAN), DO(PARK)),
    {HERMES_IN_READ, W | R, SAME, 0, 0, DO(PARK), NULL},

    {HERMES_IN_UPDATE, V, TO(WRITE), 0, IF(ALONE), DO(APPLY) | DO(INV), "C_TS, C_INV"},
    {HERMES_IN_UPDATE, V, TO(VALID), IF(ALONE), 0, DO(APPLY), "complete at once"},
    {HERMES_IN_UPDATE, I | T, SAME, 0, IF(ORPHAN), DO(PARK), NULL},
    REPLAY_ROWS(HERMES_IN_UPDATE, IF(ORPHAN), DO(PARK)),
    {HERMES_IN_UPDATE, W | R, SAME, 0, 0, DO(PARK), NULL},

    {HERMES_IN_WAITED, V | W | R, SAME, 0, 0, 0, NULL},
    REPLAY_ROWS(HERMES_IN_WAITED, 0, 0),

    {HERMES_IN_SWEEP, V, SAME, 0, IF(TOMBSTONE), 0, NULL},
    {HERMES_IN_SWEEP, V, SAME, IF(TOMBSTONE), IF(OLD), 0, "stamped if it was not"},
    {HERMES_IN_SWEEP, V, SAME, IF(TOMBSTONE) | IF(OLD) | IF(SHADOW), 0, 0, NULL},
    {HERMES_IN_SWEEP, V, TO(VALID), IF(TOMBSTONE) | IF(OLD) | IF(AGREED), IF(SHADOW), DO(FORGET),
     "the second grace is over"},
    {HERMES_IN_SWEEP, V, SAME, IF(TOMBSTONE) | IF(OLD), IF(AGREED) | IF(SHADOW) | IF(ASKER), 0,
     NULL},
    {HERMES_IN_SWEEP, V, SAME, IF(TOMBSTONE) | IF(OLD) | IF(ASKER) | IF(ALONE),
     IF(AGREED) | IF(SHADOW), 0, "reported and agreed at once"},
    {HERMES_IN_SWEEP, V, SAME, IF(TOMBSTONE) | IF(OLD) | IF(ASKER) | IF(SPARE),
     IF(AGREED) | IF(SHADOW) | IF(ALONE), DO(FORGET_ASK), "reported"},
    {HERMES_IN_SWEEP, V, SAME, IF(TOMBSTONE) | IF(OLD) | IF(ASKER),
     IF(AGREED) | IF(SHADOW) | IF(ALONE) | IF(SPARE), 0, "a later sweep asks"},
    {HERMES_IN_SWEEP, I | T, SAME, 0, IF(ORPHAN) | IF(TOMBSTONE), 0, NULL},
    REPLAY_ROWS(HERMES_IN_SWEEP, IF(ORPHAN), 0),
    {HERMES_IN_SWEEP, I | T, TO(VALID), IF(TOMBSTONE) | IF(ALONE), IF(ORPHAN), 0, NULL},
    {HERMES_IN_SWEEP, I | T, TO(REPLAY), IF(TOMBSTONE) | IF(SPARE), IF(ORPHAN) | IF(ALONE), DO(INV),
     "its VAL was lost, perhaps; nobody reads it"},
    {HERMES_IN_SWEEP, I | T, SAME, IF(TOMBSTONE), IF(ORPHAN) | IF(ALONE) | IF(SPARE), 0,
     "a later sweep tries again"},
    {HERMES_IN_SWEEP, W | R, SAME, 0, 0, 0, NULL},

    {HERMES_IN_INV_ABOVE, ANY, HERMES_NEXT_INVALID, 0, IF(O3), DO(APPLY) | DO(ACK), "F_INV, F_ACK"},
    {HERMES_IN_INV_ABOVE, ANY, HERMES_NEXT_INVALID, IF(O3), IF(ALL_SEEN),
     DO(APPLY) | DO(ACK) | DO(ACK_ALL), "O3"},
    {HERMES_IN_INV_ABOVE, ANY, TO(VALID), IF(O3) | IF(ALL_SEEN), 0,
     DO(APPLY) | DO(ACK) | DO(ACK_ALL), "O3: all others' ACKs came before the INV"},

    {HERMES_IN_INV_EQUAL, V, SAME, 0, IF(O3), DO(ACK), NULL},
    {HERMES_IN_INV_EQUAL, V, SAME, IF(O3), 0, DO(ACK) | DO(ACK_ALL), NULL},
    {HERMES_IN_INV_EQUAL, W, SAME, 0, IF(SPECIAL), DO(ACK), "a follower's timer replays it"},
    {HERMES_IN_INV_EQUAL, W, SAME, IF(SPECIAL), 0, DO(DROP),
     "6c: an ACK could commit it behind our back"},
    {HERMES_IN_INV_EQUAL, I | T | R, SAME, 0, IF(O3), DO(ACK), NULL},
    {HERMES_IN_INV_EQUAL, I | T | R, SAME, IF(O3), IF(ALL_SEEN), DO(ACK) | DO(ACK_ALL), NULL},
    {HERMES_IN_INV_EQUAL, I | T | R, TO(VALID), IF(O3) | IF(ALL_SEEN), 0, DO(ACK) | DO(ACK_ALL),
     NULL},

    {HERMES_IN_INV_BELOW, V | I | T, SAME, 0, 0, DO(ANSWER), "4: never acknowledged"},
    {HERMES_IN_INV_BELOW, W | R, SAME, 0, 0, DO(DROP),
     "the INV of the local ts is on its way to this sender, and sent again until acknowledged"},

    {HERMES_IN_ANSWER_ABOVE, ANY, HERMES_NEXT_INVALID, 0, IF(VALID), DO(APPLY), NULL},
    {HERMES_IN_ANSWER_ABOVE, ANY, TO(VALID), IF(VALID), 0, DO(APPLY), "11"},
    {HERMES_IN_ANSWER_EQUAL, V, SAME, 0, 0, DO(DROP), NULL},
    {HERMES_IN_ANSWER_EQUAL, I | W | T | R, TO(VALID), IF(VALID), 0, 0, "11"},
    {HERMES_IN_ANSWER_EQUAL, I | W | T | R, SAME, 0, IF(VALID), DO(DROP), NULL},
    {HERMES_IN_ANSWER_BELOW, ANY, SAME, 0, 0, DO(DROP), NULL},

    {HERMES_IN_ACK_ALL_ABOVE, ANY, SAME, 0, 0, 0, "kept until its INV comes"},
    {HERMES_IN_ACK_ALL_EQUAL, V | W, SAME, 0, 0, DO(DROP), NULL},
    {HERMES_IN_ACK_ALL_EQUAL, I | T | R, SAME, IF(STORED), 0, DO(DROP), "7"},
    {HERMES_IN_ACK_ALL_EQUAL, I | T | R, SAME, 0, IF(STORED) | IF(ALL_SEEN), 0, NULL},
    {HERMES_IN_ACK_ALL_EQUAL, I | T | R, TO(VALID), IF(ALL_SEEN), IF(STORED), 0, NULL},
    {HERMES_IN_ACK_ALL_BELOW, ANY, SAME, 0, 0, DO(DROP), NULL},

    {HERMES_IN_VAL_EQUAL, V, SAME, 0, 0, DO(DROP), NULL},
    {HERMES_IN_VAL_EQUAL, I | W | T | R, TO(VALID), 0, 0, 0, "F_VAL; in any epoch"},
    {HERMES_IN_VAL_OTHER, ANY, SAME, 0, 0, DO(DROP), NULL},

    {HERMES_IN_ITEM_NEWER, ANY, TO(VALID), IF(VALID), 0, DO(APPLY), "9"},
    {HERMES_IN_ITEM_NEWER, ANY, HERMES_NEXT_INVALID, 0, IF(VALID), DO(APPLY), "9"},
    {HERMES_IN_ITEM_NOT_NEWER, ANY, SAME, 0, 0, DO(DROP), "9"},

    {HERMES_IN_ASK_EQUAL, V, SAME, IF(SHADOW), 0, DO(DROP), NULL},
    {HERMES_IN_ASK_EQUAL, V, SAME, 0, IF(SHADOW) | IF(OLD) | IF(REPORTED), 0,
     "too young; stamped if it was not"},
    {HERMES_IN_ASK_EQUAL, V, SAME, IF(OLD), IF(SHADOW) | IF(REPORTED), DO(FORGET_REPORT),
     "reported"},
    {HERMES_IN_ASK_EQUAL, V, SAME, IF(REPORTED), IF(SHADOW), DO(FORGET_REPORT), NULL},
    {HERMES_IN_ASK_EQUAL, I | W | T | R, SAME, 0, 0, DO(DROP),
     "no VAL: this may be the ts of the key's next life"},
    {HERMES_IN_ASK_OTHER, ANY, SAME, 0, 0, DO(DROP), NULL},
    {HERMES_IN_ASK_EMPTY, V, SAME, 0, 0, DO(FORGET_REPORT), "forgotten before"},
    {HERMES_IN_FORGET_EQUAL, V, SAME, IF(REPORTED), IF(AGREED), 0, "agreed"},
    {HERMES_IN_FORGET_EQUAL, V, SAME, IF(REPORTED) | IF(AGREED), 0, DO(DROP), NULL},
    {HERMES_IN_FORGET_EQUAL, V, SAME, 0, IF(REPORTED), DO(DROP), NULL},
    {HERMES_IN_FORGET_EQUAL, I | W | T | R, SAME, 0, 0, DO(DROP), NULL},
    {HERMES_IN_FORGET_OTHER, ANY, SAME, 0, 0, DO(DROP), NULL},

    {HERMES_IN_OTHER_EPOCH, ANY, SAME, IF(OLDER), 0, DO(DROP) | DO(BEHIND), "2"},
    {HERMES_IN_OTHER_EPOCH, ANY, SAME, 0, IF(OLDER), DO(DROP), "2"},

    {HERMES_IN_UPDATE_ACKED, ANY, SAME, 0, IF(MINE), 0, "its outcome is on its way to the slot"},
    {HERMES_IN_UPDATE_ACKED, I | W | T | R, SAME, IF(MINE), IF(ACKED), 0, NULL},
    {HERMES_IN_UPDATE_ACKED, W, TO(VALID), IF(MINE) | IF(ACKED), IF(O3), DO(VAL), "C_ACK, C_VAL"},
    {HERMES_IN_UPDATE_ACKED, W, TO(VALID), IF(MINE) | IF(ACKED) | IF(O3), IF(RESENT), 0,
     "O3: the followers know"},
    {HERMES_IN_UPDATE_ACKED, W, TO(VALID), IF(MINE) | IF(ACKED) | IF(O3) | IF(RESENT), 0, DO(VAL),
     NULL},
    {HERMES_IN_UPDATE_ACKED, T, TO(INVALID), IF(MINE) | IF(ACKED), 0, DO(DONE), "O2: no VAL"},
    {HERMES_IN_UPDATE_ACKED, R, SAME, IF(MINE) | IF(ACKED), IF(SPECIAL), DO(DONE), NULL},
    {HERMES_IN_UPDATE_ACKED, I | R, SAME, IF(MINE) | IF(ACKED) | IF(SPECIAL), 0, 0,
     "6b: ACKs never complete a lost update"},

    {HERMES_IN_UPDATE_TIMER, ANY, SAME, 0, IF(MINE), 0, NULL},
    {HERMES_IN_UPDATE_TIMER, W, SAME, IF(MINE), IF(ACKED), DO(INV_REST), NULL},
    {HERMES_IN_UPDATE_TIMER, W, SAME, IF(MINE) | IF(ACKED), 0, DO(NUDGE),
     "the node held the completion back"},
    REPLAY_ROWS(HERMES_IN_UPDATE_TIMER, IF(MINE), 0),
    {HERMES_IN_UPDATE_TIMER, R, SAME, IF(MINE), 0, 0, "the replay has its own timer"},

    {HERMES_IN_UPDATE_VIEW, ANY, SAME, 0, IF(MINE), 0, NULL},
    {HERMES_IN_UPDATE_VIEW, W, SAME, IF(MINE), IF(ACKED), DO(INV_REST), "C_RMW-replay: 5"},
    {HERMES_IN_UPDATE_VIEW, W, SAME, IF(MINE) | IF(ACKED), 0, DO(NUDGE), "alone"},
    {HERMES_IN_UPDATE_VIEW, I | T, TO(VALID), IF(MINE) | IF(ALONE), 0, 0, NULL},
    {HERMES_IN_UPDATE_VIEW, I | T, TO(REPLAY), IF(MINE) | IF(ORPHAN) | IF(SPARE), IF(ALONE),
     DO(INV), "5: the local ts, not the overtaken one"},
    {HERMES_IN_UPDATE_VIEW, I | T, SAME, IF(MINE) | IF(ORPHAN), IF(ALONE) | IF(SPARE), 0, NULL},
    {HERMES_IN_UPDATE_VIEW, I | T, SAME, IF(MINE), IF(ALONE) | IF(ORPHAN), 0, NULL},
    {HERMES_IN_UPDATE_VIEW, R, SAME, IF(MINE), 0, 0, NULL},

    {HERMES_IN_REPLAY_ACKED, ANY, SAME, 0, IF(MINE), DO(GONE), NULL},
    {HERMES_IN_REPLAY_ACKED, R, TO(VALID), IF(MINE) | IF(ACKED), 0, DO(VAL) | DO(GONE), NULL},
    {HERMES_IN_REPLAY_ACKED, R, SAME, IF(MINE), IF(ACKED), 0, NULL},
    {HERMES_IN_REPLAY_AGAIN, ANY, SAME, 0, IF(MINE), DO(GONE), NULL},
    {HERMES_IN_REPLAY_AGAIN, R, SAME, IF(MINE), IF(ACKED), DO(INV_REST), NULL},
    {HERMES_IN_REPLAY_AGAIN, R, SAME, IF(MINE) | IF(ACKED), 0, DO(NUDGE), NULL},

    {HERMES_IN_COLLECT_ACKED, ANY, SAME, 0, IF(MINE), DO(GONE), "the tombstone was overwritten"},
    {HERMES_IN_COLLECT_ACKED, V, SAME, IF(MINE), IF(ACKED), DO(GONE), NULL},
    {HERMES_IN_COLLECT_ACKED, V, SAME, IF(MINE) | IF(ACKED), 0, DO(FORGET_ALL) | DO(GONE),
     "agreed"},
};
const uint32_t hermes_rows_n = sizeof hermes_rows / sizeof hermes_rows[0];
