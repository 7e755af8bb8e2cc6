/* The transition table of the key machine as data: hermes_set_state checks changes of state
 * against it, the model test steps the machine through every cell and compares, and the table in
 * docs/protocols/hermes.md is printed from it (scripts/hermes-table). */
#ifndef HORKOS_ENGINE_HERMES_TABLE_H
#define HORKOS_ENGINE_HERMES_TABLE_H

#include <stdint.h>

#include "engine/hermes/hermes.h"

struct hermes_state_row {
    const char *name;
    uint8_t next; /* bit per enum hermes_state: what hermes_set_state may change it to */
};
extern const struct hermes_state_row hermes_state_table[HERMES_STATES];

/* What happens to a key. "Above", "equal" and "below" compare a message's ts with the key's, which
 * counts as 0 where a first update meets a reported tombstone (rule 12). */
enum hermes_input {
    HERMES_IN_READ,
    HERMES_IN_UPDATE,
    HERMES_IN_WAITED,
    HERMES_IN_SWEEP,
    HERMES_IN_INV_ABOVE,
    HERMES_IN_INV_EQUAL,
    HERMES_IN_INV_BELOW,
    HERMES_IN_ANSWER_ABOVE,
    HERMES_IN_ANSWER_EQUAL,
    HERMES_IN_ANSWER_BELOW,
    HERMES_IN_ACK_ALL_ABOVE,
    HERMES_IN_ACK_ALL_EQUAL,
    HERMES_IN_ACK_ALL_BELOW,
    HERMES_IN_VAL_EQUAL,
    HERMES_IN_VAL_OTHER,
    HERMES_IN_ITEM_NEWER,
    HERMES_IN_ITEM_NOT_NEWER,
    HERMES_IN_ASK_EQUAL,
    HERMES_IN_ASK_OTHER,
    HERMES_IN_ASK_EMPTY,
    HERMES_IN_FORGET_EQUAL,
    HERMES_IN_FORGET_OTHER,
    HERMES_IN_OTHER_EPOCH,
    HERMES_IN_UPDATE_ACKED,
    HERMES_IN_UPDATE_TIMER,
    HERMES_IN_UPDATE_VIEW,
    HERMES_IN_REPLAY_ACKED,
    HERMES_IN_REPLAY_AGAIN,
    HERMES_IN_COLLECT_ACKED,
    HERMES_INPUTS
};
extern const char *const hermes_input_names[HERMES_INPUTS];

/* Bits of hermes_row.when and unless. */
enum hermes_condition {
    HERMES_IF_SPECIAL,   /* the pending update is an RMW or a first update */
    HERMES_IF_STORED,    /* the stored one is */
    HERMES_IF_ORPHAN,    /* no live member owns the stored ts's c_id */
    HERMES_IF_ALONE,     /* there is no other live member */
    HERMES_IF_SPARE,     /* a slot is free */
    HERMES_IF_VALID,     /* the message's sender is Valid at its ts */
    HERMES_IF_O3,        /* the INV asks for ACKs to all, of a plain write that is no first one */
    HERMES_IF_ALL_SEEN,  /* with this message, every live member's ACK has been seen here (O3) */
    HERMES_IF_MINE,      /* the key still waits for the slot that it is stepped for */
    HERMES_IF_ACKED,     /* that slot's ACK set is complete in the current epoch */
    HERMES_IF_RESENT,    /* its INV was sent more than once */
    HERMES_IF_TOMBSTONE, /* the stored value is a tombstone */
    HERMES_IF_OLD,       /* ... a grace has passed since something was sent about it */
    HERMES_IF_ASKER,     /* ... and it is this node's turn to ask about it */
    HERMES_IF_REPORTED,
    HERMES_IF_AGREED,
    HERMES_IF_SHADOW, /* the view has a shadow */
    HERMES_IF_OLDER,  /* the message's epoch is below the receiver's */
    HERMES_CONDITIONS
};
extern const char *const hermes_condition_names[HERMES_CONDITIONS];

/* Bits of hermes_row.effects. Two more follow from the change of state and are not listed: turning
 * Valid ends the pending update (done if it is plain or at this ts, else lost) and wakes those who
 * wait. */
enum hermes_effect {
    HERMES_DO_PARK,
    HERMES_DO_APPLY,
    HERMES_DO_INV,      /* to every other live member, for a new slot */
    HERMES_DO_INV_REST, /* to those whose ACK is missing */
    HERMES_DO_ANSWER,   /* an answering INV to the sender */
    HERMES_DO_ACK,
    HERMES_DO_ACK_ALL,
    HERMES_DO_VAL,
    HERMES_DO_DONE, /* the pending update ends although the key does not turn Valid */
    HERMES_DO_NUDGE,
    HERMES_DO_GONE, /* the slot that the key was stepped for is closed */
    HERMES_DO_FORGET_ASK,
    HERMES_DO_FORGET_REPORT,
    HERMES_DO_FORGET_ALL, /* FORGET to every other live member */
    HERMES_DO_FORGET,     /* the entry is removed */
    HERMES_DO_DROP,
    HERMES_DO_BEHIND,
    HERMES_EFFECTS
};
extern const char *const hermes_effect_names[HERMES_EFFECTS];

/* Beside the states, what hermes_row.next may be. */
enum {
    HERMES_NEXT_SAME = HERMES_STATES,
    HERMES_NEXT_INVALID, /* Trans if an own plain write is pending below the new ts, else Invalid */
};

struct hermes_row {
    uint8_t input;  /* enum hermes_input */
    uint8_t states; /* bit per enum hermes_state */
    uint8_t next;
    uint32_t when;   /* all of these hold ... */
    uint32_t unless; /* ... and none of these */
    uint32_t effects;
    const char *note; /* why, where it is not plain; may be NULL */
};
extern const struct hermes_row hermes_rows[];
extern const uint32_t hermes_rows_n;

#endif
