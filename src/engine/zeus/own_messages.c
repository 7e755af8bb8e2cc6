/* The messages of ownership: their bytes, and what no correct member sends. */
#include "engine/zeus/own_machine.h"

#include <stddef.h>
#include <string.h>

/* Offsets inside the body; docs/WIRE.md has none of an engine's. */
enum {
    AT_READERS = 0,
    AT_VECTOR_EPOCH = 8,
    AT_OWNER = 12,
    AT_DEGREE = 13,
    AT_SEQ = 16,
    AT_RETRY = 20,
    AT_TYPE = 24,
    AT_REQUESTER = 25,
    AT_TARGET = 26,
    AT_REQUEST_DEGREE = 27,
    AT_REQUEST_FLAGS = 28,
    AT_WAITED = 30,
    AT_ADMITTED = 32,
    AT_VERSION = 40,
    AT_NACK = 48,
    AT_FLAGS = 49,
    AT_VFLAGS = 50,
};
enum { Q_HAS_DATA = 1, Q_CREATE = 2 };
enum { B_VALUE = 1, B_REPLAY = 2, B_OWNER = 4, B_DATA = 8 };

/* What a kind carries. */
struct shape {
    bool node_wide;
    bool ts;
    uint8_t types; /* bits of the enum own_type that its request may have */
    uint8_t flags; /* B_... that may be set */
    bool vector;
};
#define TYPES_ALL 0x3eu
#define TYPES_MOVE 0x06u

static const struct shape shapes[OWN_MSG_END] = {
    [OWN_MSG_REQ] = {.types = TYPES_ALL},
    [OWN_MSG_INV] = {.ts = true, .types = TYPES_ALL, .flags = B_REPLAY, .vector = true},
    [OWN_MSG_ACK] = {.ts = true,
                     .types = TYPES_ALL,
                     .flags = B_VALUE | B_REPLAY | B_OWNER | B_DATA,
                     .vector = true},
    [OWN_MSG_NACK] = {.types = TYPES_ALL, .flags = B_REPLAY},
    [OWN_MSG_VAL] = {.ts = true, .types = TYPES_ALL | 1u, .vector = true},
    [OWN_MSG_RESP] = {.ts = true, .types = TYPES_ALL, .flags = B_VALUE, .vector = true},
    [OWN_MSG_INVITE] = {.types = TYPES_MOVE},
    [OWN_MSG_ENTRY] = {.ts = true, .types = 1u, .vector = true},
    [OWN_MSG_RECOVERED] = {.node_wide = true},
    [OWN_MSG_SETTLED] = {.node_wide = true},
    [OWN_MSG_PUSHED] = {.node_wide = true},
};

void own_body_encode(const struct own_body *body, uint8_t out[OWN_BODY_BYTES])
{
    const struct own_request *q = &body->request;
    memset(out, 0, OWN_BODY_BYTES);
    put_u64(out + AT_READERS, body->vector.readers);
    put_u32(out + AT_VECTOR_EPOCH, body->vector.epoch);
    out[AT_OWNER] = body->vector.owner;
    out[AT_DEGREE] = body->vector.degree;
    put_u32(out + AT_SEQ, q->seq);
    put_u32(out + AT_RETRY, q->retry);
    out[AT_TYPE] = q->type;
    out[AT_REQUESTER] = q->requester;
    out[AT_TARGET] = q->target;
    out[AT_REQUEST_DEGREE] = q->degree;
    out[AT_REQUEST_FLAGS] = (uint8_t)((q->has_data ? Q_HAS_DATA : 0) | (q->create ? Q_CREATE : 0));
    put_u16(out + AT_WAITED, q->waited);
    put_u32(out + AT_ADMITTED, q->admitted);
    put_u64(out + AT_VERSION, body->version);
    out[AT_NACK] = body->nack;
    out[AT_FLAGS] = (uint8_t)((body->value ? B_VALUE : 0) | (body->replay ? B_REPLAY : 0) |
                              (body->owner ? B_OWNER : 0) | (body->data ? B_DATA : 0));
    out[AT_VFLAGS] = body->vflags;
}

static void decode(const uint8_t *at, struct own_body *out)
{
    uint8_t asked = at[AT_REQUEST_FLAGS];
    uint8_t flags = at[AT_FLAGS];
    *out = (struct own_body){
        .vector = {.readers = get_u64(at + AT_READERS),
                   .epoch = get_u32(at + AT_VECTOR_EPOCH),
                   .owner = at[AT_OWNER],
                   .degree = at[AT_DEGREE]},
        .request = {.seq = get_u32(at + AT_SEQ),
                    .retry = get_u32(at + AT_RETRY),
                    .type = at[AT_TYPE],
                    .requester = at[AT_REQUESTER],
                    .target = at[AT_TARGET],
                    .degree = at[AT_REQUEST_DEGREE],
                    .has_data = (asked & Q_HAS_DATA) != 0,
                    .create = (asked & Q_CREATE) != 0,
                    .waited = get_u16(at + AT_WAITED),
                    .admitted = get_u32(at + AT_ADMITTED)},
        .version = get_u64(at + AT_VERSION),
        .nack = at[AT_NACK],
        .value = (flags & B_VALUE) != 0,
        .replay = (flags & B_REPLAY) != 0,
        .owner = (flags & B_OWNER) != 0,
        .data = (flags & B_DATA) != 0,
        .vflags = at[AT_VFLAGS],
    };
}

void own_body_decode(const struct msg *msg, struct own_body *body_out)
{
    HK_ASSERT(msg->value.n >= OWN_BODY_BYTES);
    decode(msg->value.at, body_out);
}

struct bytes own_msg_value(const struct msg *msg)
{
    HK_ASSERT(msg->value.n >= OWN_BODY_BYTES);
    return bytes_of(msg->value.at + OWN_BODY_BYTES, msg->value.n - OWN_BODY_BYTES);
}

/* ---- What is wrong with it ---- */

static const char *request_invalid(const struct shape *shape, const struct own_request *q,
                                   uint32_t epoch)
{
    static const struct own_request nothing;
    if (q->type >= OWN_TYPES || (shape->types >> q->type & 1) == 0) {
        return "a request of a type that this kind does not have";
    }
    if (q->type == OWN_NONE) {
        return memcmp(q, &nothing, sizeof nothing) == 0 ? NULL : "a request without a type";
    }
    if (q->requester >= NODES_MAX || q->admitted == 0 || q->admitted > epoch) {
        return "no such requester";
    }
    if (q->type == OWN_TRIM ? q->target >= NODES_MAX || q->target == q->requester
                            : q->target != NODE_NONE) {
        return "a target that cannot be";
    }
    if (q->type == OWN_DEGREE ? q->degree > NODES_MAX : q->degree != 0) {
        return "a degree that cannot be";
    }
    return q->create && q->type != OWN_OWNER ? "only an owner creates" : NULL;
}

static const char *vector_invalid(const struct shape *shape, const struct own_vector *v,
                                  uint32_t epoch)
{
    if (v->owner != NODE_NONE && (v->owner >= NODES_MAX || nodeset_has(v->readers, v->owner))) {
        return "an owner that cannot be";
    }
    if (shape->vector
            ? v->epoch == 0 || v->epoch > epoch || own_degree_of(v) > NODES_MAX ||
                  ((v->degree & OWN_FRESH) != 0 && v->readers != 0)
            : v->epoch != 0 || v->readers != 0 || v->degree != 0 || v->owner != NODE_NONE) {
        return shape->vector ? "a vector of no epoch" : "a vector where none belongs";
    }
    return NULL;
}

static const char *value_invalid(const struct own_body *body, uint32_t n)
{
    uint8_t flags = body->vflags;
    if (!body->value) {
        return n == 0 && flags == 0 ? NULL : "a value where none belongs";
    }
    if ((flags & ~KEY_VALUE_FLAGS) != 0) {
        return "unknown value flags";
    }
    if ((flags & KEY_TOMBSTONE) != 0 && (n != 0 || flags != KEY_TOMBSTONE)) {
        return "a tombstone with a value";
    }
    return (flags & KEY_DEADLINE) != 0 && n < 8 ? "a value too short for its deadline" : NULL;
}

static const char *body_invalid(const struct shape *shape, const struct msg *m)
{
    struct own_body body;
    uint8_t again[OWN_BODY_BYTES];
    if (m->value.n < OWN_BODY_BYTES) {
        return "a body is cut";
    }
    decode(m->value.at, &body);
    own_body_encode(&body, again);
    if (memcmp(again, m->value.at, OWN_BODY_BYTES) != 0) {
        return "bits that mean nothing";
    }
    if ((m->value.at[AT_FLAGS] & ~shape->flags) != 0) {
        return "flags that this kind does not have";
    }
    if (m->kind == OWN_MSG_NACK ? body.nack == 0 || body.nack > OWN_NACK_MOOT : body.nack != 0) {
        return "a reason that cannot be";
    }
    bool present = body.value || body.data;
    if (stamp_version(body.version) > OWN_VERSION_MAX || present != (body.version != 0)) {
        return "a data version that cannot be";
    }
    if (m->kind == OWN_MSG_ACK && body.value && !body.data) {
        return "a value of who has none";
    }
    const char *why = vector_invalid(shape, &body.vector, m->epoch);
    why = why != NULL ? why : request_invalid(shape, &body.request, m->epoch);
    return why != NULL ? why : value_invalid(&body, m->value.n - OWN_BODY_BYTES);
}

const char *own_msg_invalid(const struct msg *msg)
{
    if (msg->epoch == 0) {
        return "from a sender without a view";
    }
    if (msg->kind == 0 || msg->kind >= OWN_MSG_END) {
        return "unknown kind";
    }
    const struct shape *shape = &shapes[msg->kind];
    if (msg->flags != 0 || msg->vflags != 0 || msg->slot != 0 || msg->gen != 0) {
        return "flags or a slot where none belong";
    }
    if (msg->arg > OWN_VERSION_MAX) {
        return "a clock out of range";
    }
    if (shape->node_wide) {
        bool bare = msg->key.n == 0 && msg->value.n == 0;
        return !bare                                  ? "a key or a value where none belongs"
               : msg->ts == 0 || msg->ts > UINT32_MAX ? "no epoch"
                                                      : NULL;
    }
    bool stamped = msg->ts != 0;
    if (msg->kind != OWN_MSG_NACK && stamped != shape->ts) {
        return shape->ts ? "no timestamp" : "a timestamp where none belongs";
    }
    if (stamped && (stamp_version(msg->ts) == 0 || stamp_version(msg->ts) > OWN_VERSION_MAX ||
                    stamp_cid(msg->ts) >= NODES_MAX)) {
        return "a timestamp that nobody gives";
    }
    return body_invalid(shape, msg);
}
