/* What reliable commit says on the wire; docs/protocols/zeus-commit.md, Messages. */
#include "base/assert.h"
#include "base/meta.h"
#include "engine/txn.h"
#include "engine/zeus/commit.h"

#define OBJECT_HEAD 20u /* version 8, key's length 4, value's length 4, flags 1, zero 3 */

const char *const commit_kind_names[COMMIT_MSG_END - COMMIT_MSG_INV] = {
    [COMMIT_MSG_INV - COMMIT_MSG_INV] = "R-INV",
    [COMMIT_MSG_ACK - COMMIT_MSG_INV] = "R-ACK",
    [COMMIT_MSG_VAL - COMMIT_MSG_INV] = "R-VAL",
};

/* ---- Objects ---- */

uint32_t commit_object_bytes(const struct commit_object *object)
{
    return OBJECT_HEAD + object->key.n + object->value.n;
}

static uint8_t *append(uint8_t *at, struct bytes b)
{
    if (b.n > 0) {
        memcpy(at, b.at, b.n);
    }
    return at + b.n;
}

uint8_t *commit_object_put(uint8_t *at, const struct commit_object *object)
{
    put_u64(at, object->version);
    put_u32(at + 8, object->key.n);
    put_u32(at + 12, object->value.n);
    put_u32(at + 16, object->vflags);
    return append(append(at + OBJECT_HEAD, object->key), object->value);
}

bool commit_object_take(struct bytes *rest, struct commit_object *object_out)
{
    if (rest->n < OBJECT_HEAD) {
        return false;
    }
    const uint8_t *at = rest->at;
    uint32_t key = get_u32(at + 8);
    uint32_t value = get_u32(at + 12);
    uint32_t left = rest->n - OBJECT_HEAD;
    if (key > left || value > left - key) {
        return false;
    }
    *object_out = (struct commit_object){
        .key = bytes_of(at + OBJECT_HEAD, key),
        .value = bytes_of(at + OBJECT_HEAD + key, value),
        .version = get_u64(at),
        .vflags = at[16],
    };
    uint32_t used = OBJECT_HEAD + key + value;
    *rest = bytes_of(at + used, rest->n - used);
    return true;
}

static const char *object_invalid(const struct commit_object *object, const uint8_t *flags)
{
    if (object->key.n > MSG_KEY_MAX) {
        return "a key that is too long";
    }
    if (stamp_version(object->version) == 0 || stamp_cid(object->version) == 0) {
        return "an object without a version";
    }
    if ((object->vflags & ~KEY_VALUE_FLAGS) != 0 || flags[1] != 0 || get_u16(flags + 2) != 0) {
        return "unknown value flags";
    }
    if ((object->vflags & KEY_TOMBSTONE) != 0 &&
        (object->value.n != 0 || object->vflags != KEY_TOMBSTONE)) {
        return "a tombstone with a value";
    }
    return (object->vflags & KEY_DEADLINE) != 0 && object->value.n < 8
               ? "a value too short for its deadline"
               : NULL;
}

static const char *objects_invalid(struct bytes rest)
{
    uint32_t n = 0;
    while (rest.n > 0) {
        struct commit_object object;
        const uint8_t *at = rest.at;
        if (!commit_object_take(&rest, &object)) {
            return "an object is cut";
        }
        const char *why = object_invalid(&object, at + 16);
        if (why != NULL) {
            return why;
        }
        n++;
    }
    if (n == 0) {
        return "a transaction that wrote nothing";
    }
    return n > TXN_OBJECTS_MAX ? "too many objects" : NULL;
}

/* ---- Messages ---- */

void commit_msg_make(enum commit_kind kind, const struct commit_name *name, uint64_t slot,
                     uint64_t first, struct msg *msg_out)
{
    HK_ASSERT(slot >= 1 && slot <= COMMIT_SLOT_MAX && first <= slot);
    *msg_out = (struct msg){
        .kind = (uint8_t)kind,
        .slot = name->pipe,
        .gen = name->admitted,
        .ts = slot,
        .arg = name->node | first << 8,
    };
}

static uint64_t first_of(const struct msg *msg)
{
    return msg->arg >> 8;
}

static const char *inv_invalid(const struct msg *msg)
{
    uint64_t first = first_of(msg);
    if (first == 0 || first > msg->ts || msg->ts - first >= COMMIT_SLOTS) {
        return "a slot that the pipeline has no room for";
    }
    if (msg->value.n < COMMIT_INV_HEAD || get_u64(msg->value.at) == 0) {
        return "nobody follows";
    }
    return objects_invalid(commit_msg_objects(msg));
}

const char *commit_msg_invalid(const struct msg *msg)
{
    if (msg->kind < COMMIT_MSG_INV || msg->kind >= COMMIT_MSG_END) {
        return "unknown kind";
    }
    if (msg->epoch == 0) {
        return "from a sender without a view";
    }
    if (msg->flags != 0 || msg->vflags != 0 || msg->key.n != 0) {
        return "flags, or a key, where none belong";
    }
    if (msg->ts == 0 || msg->ts > COMMIT_SLOT_MAX) {
        return "a slot out of range";
    }
    if ((uint8_t)msg->arg >= NODES_MAX || msg->gen == 0) {
        return "a coordinator that cannot be";
    }
    if (msg->kind == COMMIT_MSG_INV) {
        return inv_invalid(msg);
    }
    return msg->value.n != 0 || first_of(msg) != 0 ? "a value where none belongs" : NULL;
}

struct commit_name commit_msg_name(const struct msg *msg)
{
    return (struct commit_name){.pipe = msg->slot, .admitted = msg->gen, .node = (uint8_t)msg->arg};
}

struct commit_inv commit_msg_inv(const struct msg *msg)
{
    return (struct commit_inv){
        .slot = msg->ts, .first = first_of(msg), .followers = get_u64(msg->value.at)};
}

struct bytes commit_msg_objects(const struct msg *msg)
{
    return bytes_of(msg->value.at + COMMIT_INV_HEAD, msg->value.n - COMMIT_INV_HEAD);
}
