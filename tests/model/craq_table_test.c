/* The table of docs/protocols/craq.md, cell by cell: one machine, one event, what it emits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/craq/machine.h"

/* What a key is before: its columns, and late as a fourth. */
enum before { CLEAN, DIRTY, LEFT, LATE, BEFORES };
static const char *const before_names[BEFORES] = {"clean", "dirty", "left over", "late"};

enum place { HEAD, MIDDLE, END, PLACES };

/* What it is afterwards. */
enum after { SAME, IS_CLEAN, IS_DIRTY, IS_LEFT };

enum input {
    IN_READ,
    IN_BLIND,
    IN_RMW,
    IN_FORWARD,
    IN_FORWARD_RMW,
    IN_FORWARD_FAILS,
    IN_WRITE_ABOVE,
    IN_WRITE_EQUAL,
    IN_WRITE_BELOW,
    IN_ACK_EQUAL,
    IN_ACK_BELOW,
    IN_ACK_HOP,
    IN_QUERY,
    IN_REPAIR_ABOVE,
    IN_REPAIR_EQUAL,
    IN_REPAIR_BELOW,
    IN_AGAIN_EQUAL,
    IN_AGAIN_BELOW,
    IN_ITEM_ABOVE,
    IN_ITEM_DIRTY,
    IN_ITEM_EQUAL,
    IN_SWEEP,
    IN_SWEEP_SEEN,
    IN_WAITED,
    IN_OLD,
    IN_STRANGER,
    INPUTS
};

/* What is emitted: the message kinds by their letter, effects by theirs, in order.
 * F FORWARD, W WRITE, A ACK, L LOST, Q QUERY, R ANSWER, B busy ANSWER, P REPAIR;
 * s store, i issue, k ask, p park, w wake, o the origin's slot is told, d drop. */
struct cell {
    enum input in;
    enum place place;
    const char *emits[BEFORES]; /* NULL: this does not happen */
    enum after after[BEFORES];
};

static const struct cell cells[] = {
    {IN_READ, HEAD, {NULL, "kQ", "Wp", "kQ"}, {SAME, SAME, IS_DIRTY, SAME}},
    {IN_READ, MIDDLE, {NULL, "kQ", "Pp", "kQ"}, {SAME, SAME, IS_DIRTY, SAME}},
    {IN_READ, END, {NULL, "p", "Pp", "p"}, {SAME, SAME, IS_DIRTY, SAME}},
    {IN_BLIND, HEAD, {"isW", "isW", "isW", ""}, {IS_DIRTY, IS_DIRTY, IS_DIRTY, SAME}},
    {IN_BLIND, MIDDLE, {"iF", "iF", "iF", ""}, {SAME, SAME, SAME, SAME}},
    {IN_BLIND, END, {"iF", "iF", "iF", ""}, {SAME, SAME, SAME, SAME}},
    {IN_RMW, HEAD, {"isW", "p", "Wp", "p"}, {IS_DIRTY, SAME, IS_DIRTY, SAME}},
    {IN_RMW, MIDDLE, {"iF", "p", "Pp", "p"}, {SAME, SAME, IS_DIRTY, SAME}},
    {IN_FORWARD, HEAD, {"sW", "sW", "sW", "L"}, {IS_DIRTY, IS_DIRTY, IS_DIRTY, SAME}},
    {IN_FORWARD, MIDDLE, {"d", "d", "d", "d"}, {SAME, SAME, SAME, SAME}},
    {IN_FORWARD_RMW, HEAD, {"sW", "sW", "sW", "L"}, {IS_DIRTY, IS_DIRTY, IS_DIRTY, SAME}},
    {IN_FORWARD_FAILS, HEAD, {"L", "L", "L", "L"}, {SAME, SAME, SAME, SAME}},
    {IN_WRITE_ABOVE, MIDDLE, {"sW", "sW", "sW", "d"}, {IS_DIRTY, IS_DIRTY, IS_DIRTY, SAME}},
    {IN_WRITE_ABOVE, END, {"sAo", "swAo", "swAo", "d"}, {IS_CLEAN, IS_CLEAN, IS_CLEAN, SAME}},
    {IN_WRITE_EQUAL, MIDDLE, {"W", "W", "W", "d"}, {SAME, SAME, IS_DIRTY, SAME}},
    {IN_WRITE_EQUAL, END, {"Ao", "wAo", "wAo", "d"}, {SAME, IS_CLEAN, IS_CLEAN, SAME}},
    {IN_WRITE_BELOW, MIDDLE, {"W", "W", "W", "d"}, {SAME, SAME, SAME, SAME}},
    {IN_WRITE_BELOW, END, {"Ao", "Ao", "Ao", "d"}, {SAME, SAME, SAME, SAME}},
    {IN_WRITE_ABOVE, HEAD, {"d", "d", "d", "d"}, {SAME, SAME, SAME, SAME}},
    {IN_ACK_EQUAL, HEAD, {"o", "wo", "wo", NULL}, {SAME, IS_CLEAN, IS_CLEAN, SAME}},
    {IN_ACK_EQUAL, MIDDLE, {"Ao", "wAo", "wAo", NULL}, {SAME, IS_CLEAN, IS_CLEAN, SAME}},
    {IN_ACK_EQUAL, END, {"d", "d", "d", NULL}, {SAME, SAME, SAME, SAME}},
    {IN_ACK_BELOW, MIDDLE, {"Ao", "Ao", "Ao", "Ao"}, {SAME, SAME, SAME, SAME}},
    {IN_ACK_HOP, END, {"", "w", "w", NULL}, {SAME, IS_CLEAN, IS_CLEAN, SAME}},
    {IN_QUERY, END, {"R", "B", "BP", "B"}, {SAME, SAME, IS_DIRTY, SAME}},
    {IN_REPAIR_ABOVE, HEAD, {"sW", "sW", "sW", NULL}, {IS_DIRTY, IS_DIRTY, IS_DIRTY, SAME}},
    {IN_REPAIR_ABOVE, MIDDLE, {"d", "d", "d", NULL}, {SAME, SAME, SAME, SAME}},
    {IN_REPAIR_EQUAL, HEAD, {"A", "", "W", NULL}, {SAME, SAME, IS_DIRTY, SAME}},
    {IN_REPAIR_BELOW, HEAD, {"", "", "W", ""}, {SAME, SAME, IS_DIRTY, SAME}},
    {IN_AGAIN_EQUAL, HEAD, {"A", "W", "W", NULL}, {SAME, IS_DIRTY, IS_DIRTY, SAME}},
    {IN_AGAIN_BELOW, HEAD, {"W", "W", "W", ""}, {SAME, IS_DIRTY, IS_DIRTY, SAME}},
    {IN_ITEM_ABOVE, END, {"s", "sw", "sw", NULL}, {IS_CLEAN, IS_CLEAN, IS_CLEAN, SAME}},
    {IN_ITEM_DIRTY, END, {"s", "s", "s", NULL}, {IS_LEFT, IS_LEFT, IS_LEFT, SAME}},
    {IN_ITEM_EQUAL, END, {"", "w", "w", NULL}, {SAME, IS_CLEAN, IS_CLEAN, SAME}},
    {IN_SWEEP, MIDDLE, {"", "", "P", ""}, {SAME, SAME, IS_DIRTY, SAME}},
    {IN_SWEEP, HEAD, {"", "", "W", ""}, {SAME, SAME, IS_DIRTY, SAME}},
    {IN_SWEEP_SEEN, MIDDLE, {NULL, "P", "P", ""}, {SAME, IS_DIRTY, IS_DIRTY, SAME}},
    {IN_SWEEP_SEEN, HEAD, {NULL, "W", "W", ""}, {SAME, IS_DIRTY, IS_DIRTY, SAME}},
    {IN_WAITED, MIDDLE, {"w", "", "P", ""}, {SAME, SAME, IS_DIRTY, SAME}},
    {IN_OLD, MIDDLE, {"d", "d", "d", "d"}, {SAME, SAME, SAME, SAME}},
    {IN_STRANGER, MIDDLE, {"d", "d", "d", "d"}, {SAME, SAME, SAME, SAME}},
};

#define EPOCH 7u

static struct key_meta meta_of(enum before before)
{
    struct key_meta meta = {.ts = craq_ts(EPOCH - 1, 5), .aux = EPOCH, .state = CRAQ_DIRTY};
    switch (before) {
    case CLEAN:
        meta.state = CRAQ_CLEAN;
        meta.flags = KEY_READABLE;
        break;
    case DIRTY:
        meta.flags = KEY_WAITERS;
        break;
    case LEFT:
        meta.flags = KEY_WAITERS;
        meta.aux = EPOCH - 1;
        break;
    case LATE:
        meta.ts = craq_ts(EPOCH + 1, 1);
        meta.aux = EPOCH + 1;
        break;
    case BEFORES:
        break;
    }
    return meta;
}

/* The message of an input, from whom it comes; false: it is no message. */
static bool message_of(enum input in, enum place place, uint64_t ts, struct msg *m, uint8_t *from)
{
    uint8_t self = (uint8_t)place;
    *m = (struct msg){
        .epoch = EPOCH, .key = bytes_of("k", 1), .slot = slot_ref(0, 3), .gen = 9, .arg = self};
    *from = (uint8_t)(self == 0 ? 2 : self - 1);
    bool update = in == IN_FORWARD || in == IN_FORWARD_RMW || in == IN_FORWARD_FAILS;
    bool ack = in == IN_ACK_EQUAL || in == IN_ACK_BELOW;
    bool above =
        in == IN_WRITE_ABOVE || in == IN_REPAIR_ABOVE || in == IN_ITEM_ABOVE || in == IN_ITEM_DIRTY;
    bool below = in == IN_WRITE_BELOW || in == IN_REPAIR_BELOW || in == IN_AGAIN_BELOW ||
                 in == IN_ACK_BELOW || in == IN_FORWARD_FAILS;
    m->ts = above ? ts + 1 : below ? craq_ts(1, 1) : ts;
    if (update) {
        *from = (uint8_t)(self == 2 ? 1 : 2);
        m->kind = CRAQ_FORWARD;
        m->arg = 0;
        m->flags = in == IN_FORWARD ? 0 : CRAQ_F_RMW;
        m->ts = in == IN_FORWARD ? 0 : m->ts;
    } else if (in >= IN_WRITE_ABOVE && in <= IN_WRITE_BELOW) {
        m->kind = CRAQ_WRITE;
    } else if (in == IN_OLD || in == IN_STRANGER) {
        m->kind = CRAQ_WRITE;
        m->ts = craq_ts(1, 1);
        m->epoch = in == IN_OLD ? EPOCH - 1 : EPOCH;
        *from = in == IN_OLD ? *from : NODE_NONE;
    } else if (ack) {
        m->kind = CRAQ_ACK;
        *from = (uint8_t)(self + 1 < 3 ? self + 1 : 1);
    } else if (in == IN_ACK_HOP) {
        *m = (struct msg){.kind = CRAQ_ACK, .flags = CRAQ_F_HOP, .epoch = EPOCH, .ts = ts};
        *from = 0;
    } else if (in == IN_QUERY) {
        m->kind = CRAQ_QUERY;
        m->ts = 0;
        m->arg = 0;
    } else if (in >= IN_REPAIR_ABOVE && in <= IN_AGAIN_BELOW) {
        m->kind = CRAQ_REPAIR;
        m->flags = in == IN_AGAIN_EQUAL || in == IN_AGAIN_BELOW ? CRAQ_F_AGAIN : 0;
        m->slot = m->gen = 0;
        m->arg = 0;
    } else if (in >= IN_ITEM_ABOVE && in <= IN_ITEM_EQUAL) {
        m->kind = CRAQ_ITEM;
        m->flags = in == IN_ITEM_DIRTY ? 0 : CRAQ_F_CLEAN;
        m->slot = m->gen = 0;
        m->arg = 0;
    } else {
        return false;
    }
    if (m->epoch >= craq_ts_epoch(m->ts)) {
        assert_null(craq_ops.msg_invalid(m));
    }
    return true;
}

static enum ev_kind event_of(enum input in)
{
    switch ((int)in) {
    case IN_READ:
        return EV_READ;
    case IN_BLIND:
    case IN_RMW:
        return EV_UPDATE;
    case IN_SWEEP:
    case IN_SWEEP_SEEN:
        return EV_SWEEP;
    case IN_WAITED:
        return EV_TIMER;
    default:
        return EV_MSG;
    }
}

static char letter(const struct effect *e)
{
    static const char kinds[CRAQ_KIND_END + 1] = "?FWALQRP?";
    switch ((int)e->kind) {
    case EFF_SEND:
        return e->code == CRAQ_ANSWER && (e->flags & CRAQ_F_BUSY) != 0 ? 'B' : kinds[e->code];
    case EFF_APPLY:
        return 's';
    case EFF_ISSUE:
        return 'i';
    case EFF_ASK:
        return 'k';
    case EFF_PARK:
        return 'p';
    case EFF_WAKE:
        return 'w';
    case EFF_FLOW:
        return 'o';
    case EFF_DROP:
        return 'd';
    default:
        return e->kind == EFF_BEHIND ? 0 : '?';
    }
}

static void walk(const struct cell *cell, enum before before)
{
    struct view view = {.epoch = EPOCH, .live = 7, .operational = 7};
    struct craq_config config = {.retry_us = 1, .give_up_us = 1};
    struct slot spare = {.ref = slot_ref(0, 3), .gen = 9};
    struct key_meta meta = meta_of(before);
    meta.flags |= cell->in == IN_SWEEP_SEEN ? KEY_SEEN : 0;
    struct key_meta old = meta;
    struct msg m;
    struct event event = {.kind = event_of(cell->in),
                          .self = (uint8_t)cell->place,
                          .from = NODE_NONE,
                          .rmw = cell->in == IN_RMW,
                          .view = &view,
                          .config = &config};
    if (message_of(cell->in, cell->place, meta.ts, &m, &event.from)) {
        event.msg = &m;
    }
    struct effects fx = {.n = 0};
    craq_ops.key(&meta, NULL, NULL, event.kind == EV_MSG ? NULL : &spare, &event, &fx);
    craq_ops.check(&meta, NULL);
    char emitted[EFFECTS_MAX + 1] = "";
    uint32_t n = 0;
    for (uint32_t i = 0; i < fx.n; i++) {
        char c = letter(&fx.e[i]);
        if (c != 0) {
            emitted[n++] = c;
        }
    }
    if (strcmp(emitted, cell->emits[before]) != 0) {
        print_error("input %d at place %d, %s: \"%s\" instead of \"%s\"\n", cell->in, cell->place,
                    before_names[before], emitted, cell->emits[before]);
    }
    assert_string_equal(emitted, cell->emits[before]);
    switch (cell->after[before]) {
    case SAME:
        assert_int_equal(meta.state, old.state);
        assert_int_equal(meta.ts, old.ts);
        assert_int_equal(meta.aux, old.aux);
        break;
    case IS_CLEAN:
        assert_int_equal(meta.state, CRAQ_CLEAN);
        break;
    case IS_DIRTY:
        assert_int_equal(meta.state, CRAQ_DIRTY);
        assert_int_equal(meta.aux, EPOCH);
        break;
    case IS_LEFT:
        assert_int_equal(meta.state, CRAQ_DIRTY);
        assert_int_equal(meta.aux, EPOCH - 1);
        break;
    }
}

static void test_cells(void **state)
{
    (void)state;
    bool met[INPUTS] = {false};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        met[cells[i].in] = true;
        for (enum before before = CLEAN; before < BEFORES; before++) {
            if (cells[i].emits[before] != NULL) {
                walk(&cells[i], before);
            }
        }
    }
    for (uint32_t in = 0; in < INPUTS; in++) {
        assert_true(met[in]);
    }
}

/* The chain: operational members by id, then shadows by id. */
static void test_chain(void **state)
{
    (void)state;
    struct view view = {.epoch = 1, .live = 0x2f, .operational = 0x2a}; /* 1 3 5, then 0 2 */
    static const uint8_t chain[] = {1, 3, 5, 0, 2};
    assert_int_equal(craq_head(&view), 1);
    assert_int_equal(craq_read_tail(&view), 5);
    assert_int_equal(craq_last(&view), 2);
    assert_int_equal(craq_previous(&view, 1), NODE_NONE);
    for (uint32_t i = 0; i + 1 < sizeof chain; i++) {
        assert_int_equal(craq_next(&view, chain[i]), chain[i + 1]);
        assert_int_equal(craq_previous(&view, chain[i + 1]), chain[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
