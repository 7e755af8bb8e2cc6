/* The messages of Hermes: which fields of struct msg each kind uses, and what makes one invalid.
 * The kinds and flags are bytes on the wire: they keep their numbers. */
#ifndef HORKOS_ENGINE_HERMES_MESSAGES_H
#define HORKOS_ENGINE_HERMES_MESSAGES_H

#include "engine/engine.h"
#include "engine/hermes/hermes.h"

/* Every message carries the epoch of its sender. "slot" is the pair slot and gen. */
enum hermes_kind {
    HERMES_INV = 1,       /* key, ts, flags, value, slot: "this is the newest update that I know".
                            Asks for an ACK, unless it is an answer (HERMES_F_ANSWER, no slot) */
    HERMES_ACK,           /* ts, slot: "my ts was exactly this one, in this epoch" */
    HERMES_ACK_ALL,       /* key, ts: the same, to everybody but the coordinator ([H] O3) */
    HERMES_VAL,           /* key, ts: "every member of my view had this ts" */
    HERMES_CHECK,         /* slot: "are you in this epoch?" ([H] 4.3.6) */
    HERMES_CHECK_OK,      /* slot: yes, and no other view is being accepted */
    HERMES_ITEM,          /* key, ts, flags, value: a stored item, copied by a joining node */
    HERMES_FORGET_ASK,    /* key, ts, slot: "this tombstone is Valid here; may it go?" */
    HERMES_FORGET_REPORT, /* ts, slot: "Valid or forgotten here, and nothing of it is under way" */
    HERMES_FORGET,        /* key, ts: "all members reported: forget it after another grace" */
    HERMES_KIND_END,
};

enum hermes_msg_flag {
    HERMES_F_RMW = 1 << 0,      /* the value is a read-modify-write's */
    HERMES_F_FIRST = 1 << 1,    /* ... was issued where no entry existed */
    HERMES_F_ANSWER = 1 << 2,   /* INV: answers an INV below it, asks for nothing */
    HERMES_F_VALID = 1 << 3,    /* answering INV, ITEM: the sender is Valid at this ts */
    HERMES_F_ACK_ALL = 1 << 4,  /* INV: acknowledge to everybody ([H] O3) */
    HERMES_F_REPORTED = 1 << 5, /* ITEM: a tombstone that its holder has reported */
};

/* Of the version of a timestamp that comes from the network: far beyond what any key can reach, far
 * enough from 2^44 that no local update overflows. */
#define HERMES_VERSION_MAX ((1ull << 44) - (1ull << 24))

extern const char *const hermes_kind_names[HERMES_KIND_END];

/* engine_ops.route and engine_ops.msg_invalid. */
enum engine_route hermes_route(const struct msg *msg);
const char *hermes_msg_invalid(const struct msg *msg);

#endif
