/* Objects in messages: 16 bytes (version 8, key length 2, flags 1, key length 1: its upper byte,
 * value length 4), key, value. */
#include "engine/occ/occ.h"

#include "base/meta.h"
#include "engine/txn.h"

#define OBJECT_HEADER 16u

const char *const occ_kind_names[OCC_MSG_END] = {
    [OCC_MSG_EXECUTE] = "EXECUTE",     [OCC_MSG_EXECUTED] = "EXECUTED",
    [OCC_MSG_VALIDATE] = "VALIDATE",   [OCC_MSG_VALIDATED] = "VALIDATED",
    [OCC_MSG_REPLICATE] = "REPLICATE", [OCC_MSG_REPLICATED] = "REPLICATED",
    [OCC_MSG_COMMIT] = "COMMIT",       [OCC_MSG_UNLOCK] = "UNLOCK",
};

uint32_t occ_object_bytes(const struct occ_object *o)
{
    return OBJECT_HEADER + o->key.n + o->value.n;
}

uint8_t *occ_object_put(uint8_t *at, const struct occ_object *o)
{
    put_u64(at, o->version);
    put_u16(at + 8, (uint16_t)o->key.n);
    at[10] = o->flags;
    at[11] = (uint8_t)(o->key.n >> 16);
    put_u32(at + 12, o->value.n);
    at += OBJECT_HEADER;
    if (o->key.n > 0) {
        memcpy(at, o->key.at, o->key.n);
    }
    if (o->value.n > 0) {
        memcpy(at + o->key.n, o->value.at, o->value.n);
    }
    return at + o->key.n + o->value.n;
}

static bool take(struct bytes *rest, struct occ_object *o)
{
    if (rest->n < OBJECT_HEADER) {
        return false;
    }
    const uint8_t *at = rest->at;
    uint32_t key_n = get_u16(at + 8) | (uint32_t)at[11] << 16, value_n = get_u32(at + 12);
    if (key_n > MSG_KEY_MAX || value_n > MSG_VALUE_MAX ||
        (uint64_t)key_n + value_n > rest->n - OBJECT_HEADER) {
        return false;
    }
    *o = (struct occ_object){.version = get_u64(at),
                             .flags = at[10],
                             .key = bytes_of(at + OBJECT_HEADER, key_n),
                             .value = bytes_of(at + OBJECT_HEADER + key_n, value_n)};
    rest->at += OBJECT_HEADER + key_n + value_n;
    rest->n -= OBJECT_HEADER + key_n + value_n;
    return true;
}

bool occ_object_take(struct bytes *rest, struct occ_object *object_out)
{
    return rest->n > 0 && take(rest, object_out);
}

/* What an object of a message may be, by the message's kind. */
struct allowed {
    uint8_t flags;
    bool key, value, version;
    bool stored; /* it has a version, or is only there to be unlocked */
};

static const struct allowed allowed[OCC_MSG_END] = {
    [OCC_MSG_EXECUTE] = {.flags = OCC_LOCK, .key = true},
    [OCC_MSG_EXECUTED] = {.flags = KEY_DEADLINE | OCC_ABSENT, .value = true, .version = true},
    [OCC_MSG_VALIDATE] = {.key = true, .version = true},
    [OCC_MSG_REPLICATE] = {.flags = KEY_DEADLINE | OCC_ABSENT,
                           .key = true,
                           .value = true,
                           .version = true,
                           .stored = true},
    [OCC_MSG_COMMIT] = {.flags = KEY_DEADLINE | OCC_ABSENT | OCC_LOCK,
                        .key = true,
                        .value = true,
                        .version = true,
                        .stored = true},
    [OCC_MSG_UNLOCK] = {.key = true},
};

static const char *object_invalid(const struct occ_object *o, const struct allowed *may)
{
    if ((o->flags & ~may->flags) != 0) {
        return "flags that do not belong to the message";
    }
    if (stamp_version(o->version) > OCC_VERSION_MAX || (!may->version && o->version != 0)) {
        return "a version that nobody gives";
    }
    if ((!may->key && o->key.n > 0) || (!may->value && o->value.n > 0)) {
        return "more of an object than the message is about";
    }
    if ((o->flags & OCC_ABSENT) != 0 && (o->value.n > 0 || (o->flags & KEY_DEADLINE) != 0)) {
        return "an absent object has a value";
    }
    if ((o->flags & KEY_DEADLINE) != 0 && o->value.n < 8) {
        return "a deadline is cut off";
    }
    if (may->stored && (o->flags & OCC_LOCK) != 0) {
        return o->flags != OCC_LOCK || o->version != 0 || o->value.n > 0
                   ? "an object to be unlocked has a value"
                   : NULL;
    }
    return may->stored && o->version == 0 ? "an object to be stored has no version" : NULL;
}

static const char *objects_invalid(struct bytes rest, enum occ_kind kind)
{
    struct occ_object o;
    uint32_t n = 0;
    while (rest.n > 0) {
        if (!take(&rest, &o)) {
            return "an object is cut off";
        }
        if (++n > TXN_OBJECTS_MAX) {
            return "too many objects";
        }
        const char *why = object_invalid(&o, &allowed[kind]);
        if (why != NULL) {
            return why;
        }
    }
    return n == 0 ? "no objects" : NULL;
}

const char *occ_msg_invalid(const struct msg *msg)
{
    if (msg->key.n > 0) {
        return "a key";
    }
    switch (msg->kind) {
    case OCC_MSG_EXECUTED:
        return msg->ts == 0 && msg->value.n == 0 ? NULL
               : msg->ts != 1                    ? "neither good nor refused"
                                                 : objects_invalid(msg->value, OCC_MSG_EXECUTED);
    case OCC_MSG_VALIDATED:
        return msg->ts > 1 || msg->value.n > 0 ? "neither good nor refused" : NULL;
    case OCC_MSG_REPLICATED:
        return msg->ts != 1 || msg->value.n > 0 ? "a backup that refuses, or a value" : NULL;
    case OCC_MSG_EXECUTE:
    case OCC_MSG_COMMIT:
    case OCC_MSG_UNLOCK:
        return msg->arg == 0 || msg->arg > UINT32_MAX
                   ? "no locker"
                   : objects_invalid(msg->value, (enum occ_kind)msg->kind);
    case OCC_MSG_VALIDATE:
    case OCC_MSG_REPLICATE:
        return objects_invalid(msg->value, (enum occ_kind)msg->kind);
    default:
        return "unknown kind";
    }
}
