/* The messages of Galene about keys: which fields of struct msg each kind uses, and what makes one
 * invalid. The kinds and flags are bytes on the wire: they keep their numbers. */
#ifndef HORKOS_ENGINE_GALENE_MESSAGES_H
#define HORKOS_ENGINE_GALENE_MESSAGES_H

#include "engine/galene/galene.h"
#include "engine/homes/homes.h"

/* Every message carries the epoch of its sender; "slot" is the pair slot and gen of a flow, echoed
 * by what answers it; arg is the generation of the key's stay in the hot set. */
enum galene_kind {
    GALENE_INV = 1, /* key, ts, slot, arg */
    GALENE_ACK,     /* slot: answers INV, with its ts, and ENTER, DROP, ITEM; with GALENE_F_HIGHER
                       to an INV ts: the higher one of the key there */
    GALENE_UPD,     /* key, value, ts, arg */
    GALENE_ENTER,   /* key, ts, slot, arg */
    GALENE_LEAVE,   /* key, slot, arg */
    GALENE_REPORT,  /* slot; ts: of the key, 0: nothing that matters here */
    GALENE_DROP,    /* key, slot, arg */
    GALENE_ITEM,    /* key, value, ts, slot: a key that moves to a new home; with GALENE_F_LOST
                       there is no value: it is lost */
    GALENE_QUERY,   /* key, ts, slot, arg: "are you Valid at ts?" */
    GALENE_NOPE,    /* slot; with GALENE_F_HIGHER ts: the higher one that is known there */
    GALENE_KEY_END,
};

/* The slot map's kinds (engine/homes). */
enum { GALENE_HOMES_FIRST = 32, GALENE_HOMES_END = GALENE_HOMES_FIRST + HOMES_KINDS };

enum galene_msg_flag {
    GALENE_F_RMW = 1 << 0,    /* INV */
    GALENE_F_HIGHER = 1 << 1, /* ACK, NOPE */
    GALENE_F_LOST = 1 << 2,   /* ITEM */
    GALENE_F_ABSENT = 1 << 3, /* NOPE: there is no entry of this stay */
};

#define GALENE_VERSION_MAX ((1ull << (64u - STAMP_CID_BITS)) - 8u)

extern const char *const galene_kind_names[GALENE_KEY_END];

/* engine_ops.route and engine_ops.msg_invalid. */
enum engine_route galene_route(const struct msg *msg);
const char *galene_msg_invalid(const struct msg *msg);

#endif
