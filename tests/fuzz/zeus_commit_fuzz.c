/* Messages of reliable commit on hostile bytes: what is taken for valid says the same when it is
 * made again, points into the message, and steps a follower that has stored something, and a
 * coordinator, without breaking their invariants. Input: messages, as docs/WIRE.md has them. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/meta.h"
#include "engine/txn.h"
#include "engine/zeus/commit.h"

#define EPOCH 3u

static void check_objects(const struct msg *m)
{
    struct bytes rest = commit_msg_objects(m);
    uint8_t *again = malloc(rest.n);
    uint8_t *at = again;
    uint32_t n = 0;
    struct commit_object object;
    HK_ASSERT(again != NULL);
    while (commit_object_take(&rest, &object)) {
        HK_ASSERT(object.key.at >= m->value.at && object.value.at >= object.key.at);
        HK_ASSERT(object.value.at + object.value.n <= m->value.at + m->value.n);
        HK_ASSERT((object.vflags & ~KEY_VALUE_FLAGS) == 0 && object.version != 0);
        HK_ASSERT(at + commit_object_bytes(&object) <= again + commit_msg_objects(m).n);
        at = commit_object_put(at, &object);
        n++;
    }
    struct bytes objects = bytes_of(again, (uint32_t)(at - again));
    HK_ASSERT(rest.n == 0 && n >= 1 && n <= TXN_OBJECTS_MAX);
    HK_ASSERT(bytes_equal(objects, commit_msg_objects(m)));
    free(again);
}

static void check_made(const struct msg *m)
{
    struct commit_name name = commit_msg_name(m);
    uint64_t first = 0;
    struct msg again;
    HK_ASSERT(name.node < NODES_MAX && name.admitted != 0);
    if (m->kind == COMMIT_MSG_INV) {
        struct commit_inv inv = commit_msg_inv(m);
        HK_ASSERT(inv.first >= 1 && inv.slot - inv.first < COMMIT_SLOTS && inv.followers != 0);
        first = inv.first;
        check_objects(m);
    }
    commit_msg_make((enum commit_kind)m->kind, &name, m->ts, first, &again);
    HK_ASSERT(again.kind == m->kind && again.slot == m->slot && again.gen == m->gen &&
              again.ts == m->ts && again.arg == m->arg);
}

/* Two pipelines of this node, 1: its own, and node 0's, which it follows. */
struct rig {
    struct view view;
    struct commit_config config;
    struct commit_pipe own, followed;
    struct commit_effects fx;
};

static void begin(struct rig *r, const struct commit_context *cx)
{
    struct commit_name mine = {.pipe = 0, .admitted = 1, .node = 1};
    struct commit_name others = {.pipe = 0, .admitted = 1, .node = 0};
    *r = (struct rig){.view = {.epoch = EPOCH, .live = 7}};
    for (uint8_t i = 0; i < 3; i++) {
        r->view.members[i].admitted = 1;
    }
    commit_pipe_init(&r->own, &mine);
    commit_pipe_init(&r->followed, &others);
    for (uint32_t i = 0; i < 4; i++) {
        r->fx.n = 0;
        (void)commit_begin(&r->own, cx, 5, &r->fx);
    }
}

static void step(struct rig *r, struct commit_context *cx, const struct msg *m)
{
    uint8_t from = r->followed.dead ? 2 : 0;
    bool alive = m->epoch == EPOCH;
    struct commit_inv inv;
    r->fx.n = 0;
    switch (m->kind) {
    case COMMIT_MSG_INV:
        inv = commit_msg_inv(m);
        (void)commit_inv(&r->followed, cx, from, &inv, alive, &r->fx);
        break;
    case COMMIT_MSG_ACK:
        commit_ack(&r->own, cx, 2, m->ts, alive, &r->fx);
        r->fx.n = 0;
        commit_ack(&r->own, cx, 0, m->ts, alive, &r->fx);
        break;
    default:
        commit_val(&r->followed, cx, m->ts, alive, &r->fx);
        break;
    }
    commit_check(&r->own, cx);
    commit_check(&r->followed, cx);
    if ((m->slot & 15) == 15) { /* the coordinator dies */
        r->fx.n = 0;
        r->view.live = 6;
        r->view.members[0].admitted = 0;
        commit_view(&r->own, cx, &r->fx);
        r->fx.n = 0;
        commit_view(&r->followed, cx, &r->fx);
        commit_check(&r->own, cx);
        commit_check(&r->followed, cx);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rig r;
    struct commit_context cx = {.view = &r.view, .config = &r.config, .self = 1};
    struct msg m;
    uint32_t used;
    if (size > 1 << 20) {
        return 0;
    }
    begin(&r, &cx);
    for (struct bytes rest = bytes_of(data, (uint32_t)size);
         rest.n > 0 && msg_decode(rest, &m, &used) == HK_OK;
         rest = bytes_of(rest.at + used, rest.n - used)) {
        if (commit_msg_invalid(&m) == NULL) {
            check_made(&m);
            step(&r, &cx, &m);
        }
    }
    return 0;
}
