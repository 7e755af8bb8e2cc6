/* A view machine that hears anything at all: whatever peers and workers say, in whatever order, the
 * machine asserts nothing and sends only messages that are valid.
 *
 * The input is a row of steps: kind of event (1 byte), node (1), milliseconds since the last step
 * (1), and for a message its length (2, little-endian) and its bytes. Messages come from the
 * process of the node that the first view names, or with bit 7 of the node from a successor. */
#include "fuzz/fuzz.h"

#include "base/assert.h"
#include "base/err.h"
#include "view/machine_state.h"

#define NODES 5u
#define EVENT_KINDS (VIEW_EVENT_HINT + 1u)

static struct view_effects effects;

static uint64_t nonce_of(uint8_t node, bool successor)
{
    return 100u + node + (successor ? 1000u : 0u);
}

static void step(struct view_machine *m, const struct view_event *event)
{
    effects.n = 0;
    view_step(m, event, &effects);
    view_check(m);
    HK_ASSERT(effects.n <= VIEW_EFFECTS_MAX);
    for (uint32_t i = 0; i < effects.n; i++) {
        const struct view_effect *effect = &effects.e[i];
        HK_ASSERT(effect->kind != VIEW_EFFECT_SEND ||
                  (effect->to != m->config.self && view_msg_invalid(&effect->msg) == NULL));
    }
}

/* Node 0 of five, which holds the first view: what a peer tells it makes it a member. */
static void start(struct view_machine *m)
{
    struct view_config config = {
        .self = 0,
        .nonce = nonce_of(0, false),
        .configured = ((nodeset)1 << NODES) - 1,
        .lease_us = 100000,
        .margin_us = 5000,
        .heartbeat_us = 10000,
        .suspect_us = 60000,
        .cids_per_member = 4,
        .seed = 1,
    };
    struct view_msg msg = {.kind = VIEW_MSG_VIEW, .epoch = 1};
    msg.view = (struct view){.generation = 9,
                             .epoch = 1,
                             .next_cid = 1,
                             .configured = config.configured,
                             .live = config.configured,
                             .operational = config.configured};
    for (uint8_t node = 0; node < NODES; node++) {
        msg.view.members[node] = (struct view_member){.nonce = nonce_of(node, false),
                                                      .admitted = 1,
                                                      .cid_first = msg.view.next_cid,
                                                      .cid_count = 4,
                                                      .role = VIEW_ROLE_OPERATIONAL};
        msg.view.next_cid += 4;
    }
    view_init(m, &config, 1000);
    step(m, &(struct view_event){.kind = VIEW_EVENT_MESSAGE,
                                 .now_us = 1000,
                                 .node = 1,
                                 .nonce = nonce_of(1, false),
                                 .generation = 9,
                                 .msg = &msg});
    HK_ASSERT(view_current(m)->epoch == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct view_machine m;
    uint64_t now = 1000;

    start(&m);
    while (size >= 3) {
        struct view_msg msg;
        struct view_event event = {.kind = (enum view_event_kind)(data[0] % EVENT_KINDS),
                                   .node = data[1] & 0x7f,
                                   .healthy = true,
                                   .epoch = data[1],
                                   .configured = data[1]};
        now += 1000u * data[2];
        event.now_us = now;
        data += 3;
        size -= 3;
        if (event.kind == VIEW_EVENT_MESSAGE) {
            uint32_t length = size >= 2 ? get_u16(data) : 0;
            if (size < 2 || length > size - 2 ||
                view_msg_decode(bytes_of(data + 2, length), &msg) != HK_OK) {
                return 0;
            }
            event.nonce = nonce_of(event.node, (event.epoch & 0x80) != 0);
            event.generation = msg.epoch == 0 ? 0 : view_current(&m)->generation;
            event.msg = &msg;
            data += 2 + length;
            size -= 2 + length;
        }
        step(&m, &event);
    }
    return 0;
}
