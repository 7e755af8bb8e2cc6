/* Hermes, the key machine: how a tombstone is forgotten (rule 12). No member forgets alone.
 *
 *   1. A tombstone that was Valid for a grace, during which this node sent nothing about it, is
 *      *reported*: its holder sets KEY_REPORTED and from then on a first update, which proves that
 *      its sender has forgotten the tombstone, may overwrite it although its ts is lower.
 *   2. One member asks the others (FORGET_ASK). Each that holds the tombstone reported, or holds
 *      nothing (then it has forgotten it before), answers FORGET_REPORT. When all members of one
 *      epoch have answered in that epoch the tombstone is *agreed*, and FORGET says so.
 *   3. Whoever holds it agreed and Valid forgets it after a second grace.
 *
 * Nobody reports or forgets in a view with a shadow: its chunks are under way.
 * docs/protocols/hermes.md has the argument, in particular for members that forget at different
 * times, and for joins between.
 *
 * A tombstone's age is kept in key_meta.aux as a coarse stamp, in sixteenths of a grace; 0: not
 * stamped yet. Stamps come round after 4,096 graces: then a tombstone looks younger than it is,
 * never older. */
#include "engine/hermes/machine.h"

#define UNITS 16u /* in a grace */
#define STAMPS 65535u
#define ASKER_GRACES 1u  /* the lowest operational node asks after one grace ... */
#define BACKUP_GRACES 4u /* ... and any other after four, should that one have forgotten alone */

static uint16_t stamp_now(const struct key_step *s)
{
    uint64_t unit = s->config->grace_us / UNITS;
    return (uint16_t)(1 + s->event->now_us / (unit > 0 ? unit : 1) % STAMPS);
}

/* Whether at least so many graces have passed since the tombstone was stamped. */
static bool waited(const struct key_step *s, uint32_t graces)
{
    uint32_t units = (stamp_now(s) + STAMPS - s->meta->aux) % STAMPS;
    return s->meta->aux != 0 && units > graces * UNITS;
}

static bool resting(const struct key_meta *meta)
{
    return meta->state == HERMES_VALID && meta->owner == 0 && meta->ts != 0 &&
           (meta->flags & KEY_TOMBSTONE) != 0;
}

static bool shadow_forbids(const struct key_step *s)
{
    return has_shadow(s->view) && rule_on(s->config, HERMES_RULE_SHADOW_FORGET);
}

bool hermes_forgettable(const struct key_step *s, const struct msg *msg)
{
    return (msg->flags & HERMES_F_FIRST) != 0 && resting(s->meta) &&
           (s->meta->flags & KEY_REPORTED) != 0;
}

static void forget(struct key_step *s)
{
    effects_add(s->fx, EFF_FORGET);
    *s->meta = HERMES_BLANK;
}

static void agree(struct key_step *s)
{
    s->meta->flags |= KEY_AGREED;
    s->meta->aux = stamp_now(s); /* the second grace */
}

static void ask(struct key_step *s)
{
    if (others_of(s->event) == 0) {
        s->meta->flags |= KEY_REPORTED;
        agree(s);
        return;
    }
    if (s->spare == NULL || s->spare->kind != FLOW_FREE || s->worker->collects >= COLLECTS_MAX) {
        return; /* a later sweep asks */
    }
    s->meta->flags |= KEY_REPORTED;
    s->meta->aux = stamp_now(s); /* without an answer it asks again after as long */
    hermes_slot_open(s->spare, FLOW_COLLECT, s->meta->ts, s->event);
    s->worker->collects++;
    struct effect *e = effects_add(s->fx, EFF_BCAST);
    e->code = HERMES_FORGET_ASK;
    e->set = others_of(s->event);
    e->slot = s->spare->ref;
    e->gen = s->spare->gen;
    e->ts = s->meta->ts;
}

void hermes_forget_sweep(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    if (!resting(meta)) {
        return;
    }
    if (meta->aux == 0) {
        meta->aux = stamp_now(s);
    }
    if (!waited(s, 1) || shadow_forbids(s)) {
        return;
    }
    if (agreed(meta) || !rule_on(s->config, HERMES_RULE_AGREED_FORGET)) {
        forget(s);
        return;
    }
    bool asker = nodeset_first(s->view->operational) == s->event->self;
    if (waited(s, asker ? ASKER_GRACES : BACKUP_GRACES)) {
        ask(s);
    }
}

/* A member that has no entry has forgotten the tombstone: everybody stored it before anybody was
 * Valid at it. The question is no VAL, although its sender is Valid at this ts: some may have
 * forgotten the tombstone, and what a member holds Invalid may be the same ts of the key's next
 * life. Who missed the VAL of a tombstone replays it in its next sweep. */
static void asked(struct key_step *s)
{
    const struct msg *msg = s->event->msg;
    struct key_meta *meta = s->meta;
    if (meta->ts != 0) {
        if (meta->ts != msg->ts || !resting(meta) || shadow_forbids(s)) {
            hermes_drop(s->fx, ENGINE_DROP_STALE);
            return;
        }
        if (meta->aux == 0) {
            meta->aux = stamp_now(s);
        }
        if (!waited(s, 1) && (meta->flags & KEY_REPORTED) == 0) {
            return; /* too young; the asker asks again */
        }
        meta->flags |= KEY_REPORTED;
    }
    struct effect *e = effects_add(s->fx, EFF_SEND);
    e->code = HERMES_FORGET_REPORT;
    e->to = s->event->from;
    e->with = EFF_NO_KEY;
    e->slot = msg->slot;
    e->gen = msg->gen;
    e->ts = msg->ts;
}

void hermes_forget_message(struct key_step *s)
{
    if (!hermes_admitted(s->event, s->fx)) {
        return;
    }
    if (s->event->msg->kind == HERMES_FORGET_ASK) {
        asked(s);
        return;
    }
    struct key_meta *meta = s->meta;
    if (meta->ts == s->event->msg->ts && resting(meta) && (meta->flags & KEY_REPORTED) != 0 &&
        !agreed(meta)) {
        agree(s);
    } else {
        hermes_drop(s->fx, ENGINE_DROP_STALE);
    }
}

void hermes_forget_flow(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    bool current = resting(meta) && meta->ts == s->mine->ts && (meta->flags & KEY_REPORTED) != 0;
    if (current && s->event->code == KEY_CODE_COMPLETE && hermes_acks_complete(s->mine, s->event)) {
        agree(s);
        struct effect *e = effects_add(s->fx, EFF_BCAST);
        e->code = HERMES_FORGET;
        e->set = others_of(s->event);
        e->ts = meta->ts;
    }
    hermes_tell_mine(s, FLOW_CODE_GONE);
}
