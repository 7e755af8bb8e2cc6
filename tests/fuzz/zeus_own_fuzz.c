/* Messages of ownership on hostile bytes: what is taken for valid says the same when its body is
 * encoded again, and steps an arbiter, an owner, a requester and a newcomer, whatever nonsense it
 * says, without an assertion and without more effects than there is room for. Input: messages, as
 * docs/WIRE.md has them. */
#include "fuzz/fuzz.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/meta.h"
#include "engine/zeus/own.h"

#define EPOCH 3u
#define MEMBERS 4u

/* One object on node 0, which has the entry and owns, on node 1, which has the entry, on node 2,
 * which waits for an answer, and on node 3, which is new. */
struct member {
    struct own_entry entry;
    struct own_busy busy;
    struct own_data data;
    uint64_t clock, forgot;
    uint32_t seq;
};

struct world {
    struct view view;
    struct own_config config;
    struct member members[MEMBERS];
    uint64_t now_us;
};

static void step(struct world *w, uint8_t self, struct own_event *event)
{
    struct member *m = &w->members[self];
    struct own_effects fx;
    w->now_us += 50;
    event->self = self;
    event->recovered = event->settled = true;
    event->now_us = event->random = w->now_us;
    event->view = &w->view;
    event->directory = 0xb;
    event->drivers = 3;
    event->data = m->data;
    event->clock = &m->clock;
    event->forgot = &m->forgot;
    event->seq = &m->seq;
    event->config = &w->config;
    own_step(&m->entry, &m->busy, event, &fx);
    HK_ASSERT(fx.n <= OWN_EFFECTS_MAX);
    for (uint32_t i = 0; i < fx.n; i++) {
        const struct own_effect *e = &fx.e[i];
        HK_ASSERT(e->kind != OWN_FX_SEND || nodeset_within(e->to, w->view.live));
        HK_ASSERT(e->kind != OWN_FX_KEEP || own_msg_value(event->msg).n < UINT32_MAX);
        if (e->kind == OWN_FX_INSTALL && (!m->data.have || m->data.version < e->ts)) {
            m->data = (struct own_data){.version = e->ts, .have = true};
        } else if (e->kind == OWN_FX_DROP) {
            m->data = (struct own_data){.version = 0};
        }
    }
    if (own_idle(&m->busy)) {
        m->busy = (struct own_busy){.ts = 0};
    }
}

static void want(struct world *w, uint8_t self, enum own_type type)
{
    struct own_event event = {.kind = OWN_EV_WANT, .from = self, .alive = true};
    event.want = (struct own_request){.type = (uint8_t)type, .target = NODE_NONE, .create = true};
    step(w, self, &event);
}

static void begin(struct world *w)
{
    *w = (struct world){.view = {.epoch = EPOCH, .live = 15, .operational = 7}};
    w->config.backoff_us = 100;
    for (uint8_t i = 0; i < MEMBERS; i++) {
        w->view.members[i].admitted = i == 3 ? EPOCH : 1;
        if (i < 2) {
            w->members[i].entry = (struct own_entry){
                .ts = stamp_make(5, 1), .vector = {.readers = 2, .epoch = 2, .owner = 0}};
            w->members[i].data = (struct own_data){.version = stamp_make(7, 1), .have = true};
        }
    }
    want(w, 2, OWN_OWNER);
}

static void check_body(const struct msg *m)
{
    struct own_body body;
    uint8_t again[OWN_BODY_BYTES];
    own_body_decode(m, &body);
    own_body_encode(&body, again);
    HK_ASSERT(bytes_equal(bytes_of(again, OWN_BODY_BYTES), bytes_of(m->value.at, OWN_BODY_BYTES)));
    struct bytes value = own_msg_value(m);
    HK_ASSERT(value.n + OWN_BODY_BYTES == m->value.n && (body.value || value.n == 0));
    HK_ASSERT(body.request.type < OWN_TYPES && body.nack <= OWN_NACK_MOOT);
}

static void deliver(struct world *w, const struct msg *m)
{
    for (uint8_t to = 0; to < MEMBERS; to++) {
        struct own_event event = {.kind = OWN_EV_MSG,
                                  .from = (uint8_t)(m->ts % MEMBERS),
                                  .alive = m->epoch == EPOCH,
                                  .msg = m};
        step(w, to, &event);
        struct own_event timer = {.kind = OWN_EV_TIMER, .from = to, .alive = true};
        step(w, to, &timer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world w;
    struct msg m;
    uint32_t used;
    if (size > 1 << 20) {
        return 0;
    }
    begin(&w);
    for (struct bytes rest = bytes_of(data, (uint32_t)size);
         rest.n > 0 && msg_decode(rest, &m, &used) == HK_OK;
         rest = bytes_of(rest.at + used, rest.n - used)) {
        if (own_msg_invalid(&m) != NULL) {
            continue;
        }
        if (m.kind < OWN_MSG_RECOVERED) {
            check_body(&m);
        }
        if (m.kind < OWN_MSG_RECOVERED) {
            deliver(&w, &m);
        }
    }
    return 0;
}
