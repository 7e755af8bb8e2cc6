#include "support/node_homed.h"

#include <stddef.h>

#include "base/assert.h"

enum { FLOW_CODE_STORED = CODE_ENGINE_FIRST };

/* Worker 0's state. */
struct told {
    uint64_t version;
    uint64_t next; /* slot; HASH_SLOTS: all of that version were told */
};

static enum engine_route route(const struct msg *msg)
{
    (void)msg;
    return ROUTE_KEY;
}

static void update(struct key_meta *meta, struct slot *spare, const struct event *event,
                   struct effects *fx)
{
    const struct homed_config *config = event->config;
    meta->ts = stamp_make(stamp_version(meta->ts) + 1, event->self);
    meta->flags |= KEY_READABLE;
    meta->state = 1;
    (void)effects_add(fx, EFF_APPLY);
    spare->kind = 1;
    spare->ts = meta->ts;
    if (config->delay_us != 0) {
        spare->deadline_us = event->now_us + config->delay_us;
        return;
    }
    struct effect *e = effects_add(fx, EFF_FLOW);
    e->code = FLOW_CODE_STORED;
    e->slot = spare->ref;
}

static void key(struct key_meta *meta, void *ext, struct slot *mine, struct slot *spare,
                const struct event *event, struct effects *fx)
{
    (void)ext;
    (void)mine;
    if (event->kind != EV_UPDATE) {
        return;
    }
    /* An entry is written where it stands; a new one only where a home may act. */
    bool may = (meta->flags & KEY_READABLE) != 0 || event->handed ||
               slot_home_is(event->home, event->self);
    HK_ASSERT(may);
    update(meta, spare, event, fx);
}

static void tell_map(const struct event *event, struct effects *fx)
{
    const struct homed_map *map = &((const struct homed_config *)event->config)->maps[event->self];
    struct told *told = event->worker;
    if (told->version != map->version) {
        told->version = map->version;
        told->next = 0;
    }
    while (told->next < HASH_SLOTS && fx->n < EFFECTS_MAX && map->version != 0) {
        uint32_t from = (uint32_t)told->next;
        uint32_t home = slot_home_pack(map->slots[from]);
        while (told->next < HASH_SLOTS && slot_home_pack(map->slots[told->next]) == home) {
            told->next++;
        }
        struct effect *e = effects_add(fx, EFF_HOME);
        e->gen = from;
        e->slot = (uint32_t)told->next - from;
        e->set = home;
        e->ts = map->version;
    }
}

static void flow(struct slot *mine, const struct event *event, struct effects *fx)
{
    if (mine == NULL) {
        if (event->kind == EV_FLUSH) {
            tell_map(event, fx);
        }
        return;
    }
    if (event->kind == EV_KEY || event->kind == EV_TIMER) {
        effects_add(fx, EFF_REPLY)->code = REPLY_DONE;
        (void)effects_add(fx, EFF_CLOSE);
    }
}

static const char *msg_invalid(const struct msg *msg)
{
    (void)msg;
    return "this engine sends nothing";
}

static void check(const struct key_meta *meta, const void *ext)
{
    (void)ext;
    HK_ASSERT(meta->ts != 0);
}

static void item(const struct key_meta *meta, struct msg *msg_out)
{
    (void)meta;
    (void)msg_out;
}

const struct engine_ops homed_ops = {
    .name = "homed",
    .port_needs = PORT_ORDERED,
    .traits = ENGINE_WORKER_FLOW | ENGINE_HOMED,
    .worker_bytes = sizeof(struct told),
    .route = route,
    .key = key,
    .flow = flow,
    .msg_invalid = msg_invalid,
    .check = check,
    .item = item,
};

void homed_even(struct homed_config *config, uint32_t nodes)
{
    for (uint32_t n = 0; n < nodes; n++) {
        struct homed_map *map = &config->maps[n];
        map->version++;
        for (uint32_t i = 0; i < HASH_SLOTS; i++) {
            map->slots[i] = (struct slot_home){
                .home = (uint8_t)(i * nodes / HASH_SLOTS), .to = UINT8_MAX, .state = HOME_STABLE};
        }
    }
}

void homed_all(struct homed_config *config, uint32_t node, struct slot_home home)
{
    struct homed_map *map = &config->maps[node];
    map->version++;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        map->slots[i] = home;
    }
}
