/* The messages of ZAB: which fields of struct msg each kind uses, and what makes one invalid. The
 * kinds and flags are bytes on the wire: they keep their numbers. */
#ifndef HORKOS_ENGINE_ZAB_MESSAGES_H
#define HORKOS_ENGINE_ZAB_MESSAGES_H

#include "engine/engine.h"
#include "engine/zab/zab.h"

/* Every message carries the epoch of its sender, and all but ITEM rely on ordered lanes. "Slot" is
 * the pair slot and gen of the update's origin. */
enum zab_kind {
    ZAB_FORWARD = 1, /* to the leader. key, value, slot; arg: the origin worker's round; ts: for an
                        RMW, the entry up to which its old value was complete for its key */
    ZAB_PROPOSE,     /* ts: number of the entry; flags: its origin; key, value, slot. The kind of an
                        entry in the log */
    ZAB_ACK,         /* to the leader. ts: logged up to there; arg: taken up to there */
    ZAB_COMMIT,      /* ts: committed up to there; slot: so many entries below are still needed */
    ZAB_REFUSED,     /* slot: the update was not and will not be proposed */
    ZAB_STATE,       /* to a new leader. ts: logged; arg: taken; gen: the epoch in which the sender
                        was level last */
    ZAB_FETCH,       /* of a new leader: send your entries from ts to arg */
    ZAB_START,       /* your log begins behind ts */
    ZAB_SYNCED,      /* the log of this epoch's beginning ends at ts, and you were sent it all */
    ZAB_ITEM,        /* key, value, ts: a stored item, copied by a joining node */
    ZAB_KIND_END,
};

enum zab_msg_flag {
    ZAB_F_RMW = 1 << 0,   /* FORWARD: only if ts still holds */
    ZAB_F_FRESH = 1 << 1, /* STATE: the sender has no log yet */
    ZAB_F_ROUND = 1 << 2, /* REFUSED: there was no room; the origin's worker begins a new round */
};

/* Numbers of entries that come from the network: far beyond what any log reaches. */
#define ZAB_ENTRY_MAX ((1ull << 44) - (1ull << 24))
/* What a stored key's ts has for a c_id: the entry alone orders them. */
#define ZAB_CID 1u
/* Workers of an origin, as the leader tells them apart. */
#define ZAB_WORKERS_MAX 64u

extern const char *const zab_kind_names[ZAB_KIND_END];

/* engine_ops.route and engine_ops.msg_invalid. */
enum engine_route zab_route(const struct msg *msg);
const char *zab_msg_invalid(const struct msg *msg);

#endif
