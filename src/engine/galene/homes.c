#include "engine/galene/homes.h"

static void adopt(struct galene_homes *h, const struct view *view)
{
    uint32_t members = nodeset_count(view->operational);
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home home = slot_home_unpack(h->map[i]);
        if (h->version == 0) {
            nodeset rest = view->operational;
            for (uint32_t skip = i * members / HASH_SLOTS; skip > 0; skip--) {
                rest &= rest - 1;
            }
            home = (struct slot_home){
                .home = nodeset_first(rest), .to = NODE_NONE, .state = HOME_STABLE};
        } else if (!nodeset_has(view->live, home.home)) {
            home.state = HOME_LOST;
        }
        h->map[i] = slot_home_pack(home);
    }
    h->version = (uint64_t)view->epoch << 32;
    h->epoch = view->epoch;
    h->told = 0;
}

void galene_homes_step(struct galene_homes *h, const struct event *event, uint64_t rules_off,
                       struct effects *fx)
{
    (void)rules_off;
    if (event->kind == EV_VIEW && event->view->operational != 0) {
        adopt(h, event->view);
    }
    while (h->version != 0 && h->told < HASH_SLOTS && fx->n < EFFECTS_MAX) {
        uint32_t n = 1;
        while (h->told + n < HASH_SLOTS && h->map[h->told + n] == h->map[h->told]) {
            n++;
        }
        struct effect *e = effects_add(fx, EFF_HOME);
        e->slot = n;
        e->gen = h->told;
        e->set = h->map[h->told];
        e->ts = h->version;
        h->told += n;
    }
}

const char *galene_homes_invalid(const struct msg *msg)
{
    (void)msg;
    return "nobody speaks of slots";
}

bool galene_homes_ready(const struct galene_homes *h)
{
    return h->version != 0 && h->told == HASH_SLOTS;
}
