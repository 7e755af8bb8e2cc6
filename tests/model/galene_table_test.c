/* Every cell of the tables of docs/protocols/galene.md: each state of a key, each event, what
 * becomes of the state and which effects there are. The machine is stepped once for each cell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/galene/machine.h"

#define SELF 0u
#define OTHER 1u
#define CID_SELF 1u
#define CID_OTHER 4u
#define CID_DEAD 7u /* of a member that is gone */
#define VERSION 10u
#define GENERATION 5u

/* Columns: a state of the key, with what else matters. */
enum column {
    NONE,     /* another node is the home */
    ABSENT,   /* no entry, at the home */
    HOME,     /* at the home, like all that say so */
    ENTERING, /* at the home */
    KEEPER,   /* Valid, at the home */
    VALID,    /* at another node than the home, like all that follow but Dropping and Moving */
    BUSY,     /* Valid; an overtaken write of ours is pending */
    LEAVING,  /* Valid, and has reported */
    INVALID,  /* at a living member's timestamp */
    ORPHAN,   /* Invalid, at a dead member's */
    WRITE,
    DROPPING,    /* at the home */
    MOVING,      /* at the home */
    LOST,        /* cached */
    LOST_HOME,   /* no longer cached, at the home */
    LOST_KEEPER, /* cached, at the home */
    BUSY_KEEPER, /* as Busy, at the home */
    COLUMNS
};

static const char *const column_names[COLUMNS] = {
    "NONE",   "ABSENT",  "HOME",      "ENTERING",    "KEEPER",     "VALID",
    "BUSY",   "LEAVING", "INVALID",   "ORPHAN",      "WRITE",      "DROPPING",
    "MOVING", "LOST",    "LOST_HOME", "LOST_KEEPER", "BUSY_KEEPER"};

/* Rows: an event. */
enum row {
    READ,
    BLIND, /* a write */
    DELETION,
    RMW,
    HANDED, /* a write that the old home sent on */
    INV_HIGHER,
    INV_LOWER,
    INV_LOWER_RMW,
    INV_OTHER, /* of another generation, higher */
    UPD,
    UPD_OTHER_TS,
    UPD_OTHER, /* of another generation */
    ENTER,
    ENTER_OTHER,
    LEAVE,
    LEAVE_OTHER,
    DROP,
    DROP_OTHER,
    ITEM,
    QUERY,
    QUERY_LOWER,
    QUERY_HIGHER,
    QUERY_OTHER,
    HOT_IN,     /* the generation that it has */
    HOT_IN_NEW, /* a newer one */
    HOT_OUT,
    MOVE,
    EMPTY,
    SWEEP,
    TIMER,
    ROWS
};

static const char *const row_names[ROWS] = {
    "READ",       "BLIND",         "DELETION",    "RMW",          "HANDED",       "INV_HIGHER",
    "INV_LOWER",  "INV_LOWER_RMW", "INV_OTHER",   "UPD",          "UPD_OTHER_TS", "UPD_OTHER",
    "ENTER",      "ENTER_OTHER",   "LEAVE",       "LEAVE_OTHER",  "DROP",         "DROP_OTHER",
    "ITEM",       "QUERY",         "QUERY_LOWER", "QUERY_HIGHER", "QUERY_OTHER",  "HOT_IN",
    "HOT_IN_NEW", "HOT_OUT",       "MOVE",        "EMPTY",        "SWEEP",        "TIMER"};

/* A cell: the next state's letter (as in `letters`, or '=': the same), then the effects in their
 * order: P parks, A stores, F forgets, H holds aside, I issues, L later, X -LOSTSLOT, W wakes,
 * D ignores, f tells the flow that it ends, and messages: k ACK, n ACK that names a higher
 * timestamp, r REPORT, o NOPE, w NOPE that does, u UPD to one, U to all, v INV, e ENTER, l LEAVE,
 * q QUERY, m ITEM. */
static const char letters[GALENE_STATES] = {
    [GALENE_NONE] = '.',     [GALENE_HOME] = 'h',    [GALENE_ENTERING] = 'e',
    [GALENE_VALID] = 'v',    [GALENE_INVALID] = 'i', [GALENE_WRITE] = 'w',
    [GALENE_DROPPING] = 'd', [GALENE_MOVING] = 'm',  [GALENE_LOST] = 'l'};

static const char *const cells[ROWS][COLUMNS] = {
    [READ] = {"=", "/", "/", "=P", "/", "/", "/", "/", "=P", "=Pq", "=P", "=P", "=P", "=X", "=X",
              "=X", "/"},
    [BLIND] = {"=", "hIfA", "=IfA", "=P", "wHv", "wHv", "=P", "=P", "=P", "=Pq", "=P", "=P", "=P",
               "wHv", "hIfAW", "wHv", "=P"},
    [DELETION] = {"=", "=If", ".IfF", "=P", "wHv", "wHv", "=P", "=P", "=P", "=Pq", "=P", "=P", "=P",
                  "wHv", ".IfF", "wHv", "=P"},
    [RMW] = {"=", "hIfA", "=IfA", "=P", "wHv", "wHv", "=P", "=P", "=P", "=Pq", "=P", "=P", "=P",
             "=X", "=X", "=X", "=P"},
    [HANDED] = {"hIfA", "hIfA", "=IfA", "=P", "wHv", "wHv", "=P", "=P", "=P", "=Pq", "=P", "=P",
                "=P", "wHv", "hIfAW", "wHv", "=P"},
    [INV_HIGHER] = {"=k", "=k", "=k", "=k", "ik", "ik", "ik", "ik", "=k", "=k", "ik", "=k", "=k",
                    "ik", "=k", "ik", "ik"},
    [INV_LOWER] = {"=k", "=k", "=k", "=k", "=n", "=n", "=n", "=n", "=n", "=n", "=n", "=k", "=k",
                   "=n", "=k", "=n", "=n"},
    [INV_LOWER_RMW] = {"=k", "=k", "=k", "=k", "=n", "=n", "=n", "=n", "=n", "=n", "=n", "=k", "=k",
                       "=n", "=k", "=n", "=n"},
    [INV_OTHER] = {"=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k",
                   "=k", "=k", "=k", "=k"},
    [UPD] = {"=D", "=D", "=D", "=D", "=D", "=D", "=D", "=D", "vAW", "vAW", "=D", "=D", "=D", "vAW",
             "=D", "vAW", "=D"},
    [UPD_OTHER_TS] = {"=D", "=D", "=D", "=D", "=D", "=D", "=D", "=D", "=D", "=D", "=D", "=D", "=D",
                      "=D", "=D", "=D", "=D"},
    [UPD_OTHER] = {"=D", "=D", "=D", "=D", "=D", "=D", "=D", "=D", "=D", "=D", "=D", "=D", "=D",
                   "=D", "=D", "=D", "=D"},
    [ENTER] = {"iAk", "iAk", "=D", "=D", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=D", "=D", "=k",
               "=D", "=k", "=k"},
    [ENTER_OTHER] = {"iAk", "iAk", "=D", "=D", "iAk", "iAk", "ifAk", "iAk", "=Ak", "=Ak", "ifAk",
                     "=D", "=D", "iAk", "=D", "iAk", "ifAk"},
    [LEAVE] = {"=r", "=r", "=r", "=r", "=r", "=r", "=", "=r", "=", "=", "=", "=r", "=r", "=r", "=r",
               "=r", "="},
    [LEAVE_OTHER] = {"=r", "=r", "=r", "=r", "=r", "=r", "=r", "=r", "=r", "=r", "=r", "=r", "=r",
                     "=r", "=r", "=r", "=r"},
    [DROP] = {"=k", "=k", "=k", "=k", ".Fk", ".Fk", ".fFk", ".Fk", ".WFk", ".WFk", ".fWFk", "=k",
              "=k", ".WFk", "=k", ".WFk", ".fFk"},
    [DROP_OTHER] = {"=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k",
                    "=k", "=k", "=k", "=k"},
    [ITEM] = {"hAk", "hAk", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k", "=k",
              "=k", "=k", "=k"},
    [QUERY] = {"=o", "=o", "=o", "=", "=u", "=u", "=u", "=u", "=o", "=o", "=", "=u", "=o", "=o",
               "=o", "=o", "=u"},
    [QUERY_LOWER] = {"=o", "=o", "=o", "=w", "=w", "=w", "=w", "=w", "=w", "=w", "=w", "=w", "=o",
                     "=w", "=o", "=w", "=w"},
    [QUERY_HIGHER] = {"=o", "=o", "=o", "=o", "=o", "=o", "=o", "=o", "=o", "=o", "=o", "=o", "=o",
                      "=o", "=o", "=o", "=o"},
    [QUERY_OTHER] = {"=o", "=o", "=o", "=o", "=o", "=o", "=o", "=o", "=o", "=o", "=o", "=o", "=o",
                     "=o", "=o", "=o", "=o"},
    [HOT_IN] = {"=", "=", "ee", "=L", "=", "=", "=", "=", "=", "=", "=", "=L", "=L", "=", "=", "=",
                "="},
    [HOT_IN_NEW] = {"=", "=", "ee", "=L", "=l", "=", "=", "=", "=", "=", "=", "=L", "=L", "=", "=",
                    "=", "=L"},
    [HOT_OUT] = {"=", "=", "=", "=L", "=l", "=", "=", "=", "=", "=", "=", "=L", "=L", "=", "=",
                 "=l", "=L"},
    [MOVE] = {"=", "=", "mm", "=L", "=l", "=", "=", "=", "=L", "=L", "=L", "=L", "=L", "=", "mm",
              "=l", "=L"},
    [EMPTY] = {"=", "=", ".F", "=L", ".F", ".F", ".fF", ".F", ".WF", ".WF", ".fWF", ".fWF", "=L",
               ".WF", ".WF", ".WF", ".fF"},
    [SWEEP] = {"=", "=", "=", "=", "=", "=", "=", "=", "=q", "=q", "=", "=", "=", "=q", "=", "=q",
               "="},
    [TIMER] = {"=W", "=W", "=W", "=", "=W", "=W", "=", "=", "=q", "=q", "=", "=", "=", "=W", "=W",
               "=W", "="},
};

struct bench {
    struct view view;
    struct galene_config config;
    struct key_meta meta;
    struct slot spare;
    struct event event;
    struct msg msg;
    struct effects fx;
};

static void set_view(struct bench *b)
{
    b->view = (struct view){.epoch = 9, .next_cid = 10, .live = 7, .operational = 7};
    for (uint8_t i = 0; i < 3; i++) {
        b->view.members[i] =
            (struct view_member){.admitted = 1, .cid_first = 1u + 3u * i, .cid_count = 3};
    }
    b->view.members[2].cid_first = 10; /* its incarnation before had 7 to 9 */
    b->view.next_cid = 13;
}

static void set_state(struct bench *b, enum galene_state state, uint32_t cid, uint8_t flags)
{
    bool readable = state == GALENE_HOME || state == GALENE_VALID;
    bool owned = state == GALENE_ENTERING || state == GALENE_WRITE || state == GALENE_DROPPING ||
                 state == GALENE_MOVING;
    bool plain = state == GALENE_NONE || state == GALENE_HOME || state == GALENE_MOVING;
    b->meta = (struct key_meta){.ts = state == GALENE_NONE ? 0 : stamp_make(VERSION, cid),
                                .owner = owned ? slot_ref(0, 3) : 0,
                                .state = (uint8_t)state,
                                .aux = plain ? 0 : GENERATION,
                                .flags = (uint8_t)(flags | (readable ? KEY_READABLE : 0))};
    if (!readable && state != GALENE_NONE) {
        b->meta.flags |= KEY_WAITERS;
    }
}

static void set_column(struct bench *b, enum column column)
{
    static const uint8_t states[COLUMNS] = {
        [NONE] = GALENE_NONE,         [ABSENT] = GALENE_NONE,      [HOME] = GALENE_HOME,
        [ENTERING] = GALENE_ENTERING, [KEEPER] = GALENE_VALID,     [VALID] = GALENE_VALID,
        [BUSY] = GALENE_VALID,        [LEAVING] = GALENE_VALID,    [INVALID] = GALENE_INVALID,
        [ORPHAN] = GALENE_INVALID,    [WRITE] = GALENE_WRITE,      [DROPPING] = GALENE_DROPPING,
        [MOVING] = GALENE_MOVING,     [LOST] = GALENE_LOST,        [LOST_HOME] = GALENE_LOST,
        [LOST_KEEPER] = GALENE_LOST,  [BUSY_KEEPER] = GALENE_VALID};
    bool home = column == LOST_KEEPER || column == BUSY_KEEPER || column == ABSENT ||
                column == HOME || column == ENTERING || column == KEEPER || column == DROPPING ||
                column == MOVING || column == LOST_HOME;
    bool keeper = column == ENTERING || column == KEEPER || column == DROPPING ||
                  column == LOST_KEEPER || column == BUSY_KEEPER;
    bool leaving = column == LEAVING || column == DROPPING;
    uint32_t cid = column == WRITE ? CID_SELF : column == ORPHAN ? CID_DEAD : CID_OTHER;
    set_state(b, (enum galene_state)states[column], cid,
              (uint8_t)((keeper ? KEY_KEEPER : 0) | (leaving ? KEY_LEAVING : 0)));
    if (column == BUSY || column == BUSY_KEEPER) {
        b->meta.owner = slot_ref(0, 3);
    }
    if (column == LOST_HOME) {
        b->meta.aux = 0;
    }
    b->event.home =
        (struct slot_home){.home = home ? SELF : OTHER, .to = NODE_NONE, .state = HOME_STABLE};
    if (column == MOVING) {
        b->event.home = (struct slot_home){.home = SELF, .to = OTHER, .state = HOME_MOVING};
    }
}

static void set_msg(struct bench *b, enum galene_kind kind, uint64_t version, uint64_t generation)
{
    bool value = kind == GALENE_UPD || kind == GALENE_ITEM;
    /* Another c_id than that of any column, or that of the column for the same timestamp. */
    uint64_t ts = version == VERSION ? b->meta.ts : stamp_make(version, CID_OTHER);
    ts = ts == 0 ? stamp_make(version, CID_OTHER) : ts;
    b->msg = (struct msg){.kind = (uint8_t)kind, .epoch = 9, .key = bytes_of("k", 1)};
    b->msg.ts = kind == GALENE_LEAVE || kind == GALENE_DROP ? 0 : ts;
    b->msg.arg = kind == GALENE_ITEM ? 0 : generation;
    if (kind != GALENE_UPD) {
        b->msg.slot = slot_ref(0, 8);
        b->msg.gen = 2;
    }
    if (value) {
        b->msg.value = bytes_of("v", 1);
    }
    b->event.kind = EV_MSG;
    b->event.from = OTHER;
    b->event.msg = &b->msg;
}

static void set_update(struct bench *b, enum row row)
{
    b->event.kind = row == READ ? EV_READ : EV_UPDATE;
    b->event.rmw = row == RMW;
    b->event.handed = row == HANDED;
    b->event.vflags = row == DELETION ? KEY_TOMBSTONE : 0;
}

static void set_hot(struct bench *b, enum row row)
{
    b->event.kind = EV_HOT;
    b->event.code = row == HOT_OUT ? HOT_LEAVE : HOT_ENTER;
    b->event.ts = row == HOT_IN ? GENERATION - 1 : GENERATION;
}

static void set_row(struct bench *b, enum row row)
{
    static const struct {
        uint8_t kind;
        uint8_t version;
        uint8_t generation;
        uint8_t flags;
    } messages[ROWS] = {
        [INV_HIGHER] = {GALENE_INV, VERSION + 2, GENERATION, 0},
        [INV_LOWER] = {GALENE_INV, VERSION - 1, GENERATION, 0},
        [INV_LOWER_RMW] = {GALENE_INV, VERSION - 1, GENERATION, GALENE_F_RMW},
        [INV_OTHER] = {GALENE_INV, VERSION + 2, GENERATION + 1, 0},
        [UPD] = {GALENE_UPD, VERSION, GENERATION, 0},
        [UPD_OTHER_TS] = {GALENE_UPD, VERSION + 1, GENERATION, 0},
        [UPD_OTHER] = {GALENE_UPD, VERSION, GENERATION + 1, 0},
        [ENTER] = {GALENE_ENTER, VERSION, GENERATION, 0},
        [ENTER_OTHER] = {GALENE_ENTER, VERSION, GENERATION + 1, 0},
        [LEAVE] = {GALENE_LEAVE, VERSION, GENERATION, 0},
        [LEAVE_OTHER] = {GALENE_LEAVE, VERSION, GENERATION + 1, 0},
        [DROP] = {GALENE_DROP, VERSION, GENERATION, 0},
        [DROP_OTHER] = {GALENE_DROP, VERSION, GENERATION + 1, 0},
        [ITEM] = {GALENE_ITEM, VERSION + 1, 0, 0},
        [QUERY] = {GALENE_QUERY, VERSION, GENERATION, 0},
        [QUERY_LOWER] = {GALENE_QUERY, VERSION - 1, GENERATION, 0},
        [QUERY_HIGHER] = {GALENE_QUERY, VERSION + 1, GENERATION, 0},
        [QUERY_OTHER] = {GALENE_QUERY, VERSION, GENERATION + 1, 0},
    };
    if (messages[row].kind != 0) {
        set_msg(b, (enum galene_kind)messages[row].kind, messages[row].version,
                messages[row].generation);
        b->msg.flags = messages[row].flags;
        assert_null(galene_msg_invalid(&b->msg));
    } else if (row <= HANDED) {
        set_update(b, row);
    } else if (row <= HOT_OUT) {
        set_hot(b, row);
    } else if (row == MOVE || row == EMPTY) {
        b->event.kind = EV_MOVE;
        b->event.home = (struct slot_home){.home = SELF, .to = OTHER, .state = HOME_MOVING};
        if (row == EMPTY) {
            b->event.home = (struct slot_home){.home = 3, .to = NODE_NONE, .state = HOME_EMPTYING};
        }
    } else {
        b->event.kind = row == SWEEP ? EV_SWEEP : EV_TIMER;
    }
}

static char message_letter(const struct effect *e)
{
    switch ((enum galene_kind)e->code) {
    case GALENE_ACK:
        return (e->flags & GALENE_F_HIGHER) != 0 ? 'n' : 'k';
    case GALENE_NOPE:
        return (e->flags & GALENE_F_HIGHER) != 0 ? 'w' : 'o';
    case GALENE_UPD:
        return e->kind == EFF_SEND ? 'u' : 'U';
    case GALENE_REPORT:
        return 'r';
    case GALENE_INV:
        return 'v';
    case GALENE_ENTER:
        return 'e';
    case GALENE_LEAVE:
        return 'l';
    case GALENE_QUERY:
        return 'q';
    case GALENE_ITEM:
        return 'm';
    case GALENE_DROP:
    case GALENE_KEY_END:
        break;
    }
    return '?';
}

static char effect_letter(const struct effect *e)
{
    static const char names[] = {
        [EFF_APPLY] = 'A', [EFF_FORGET] = 'F', [EFF_PARK] = 'P',  [EFF_WAKE] = 'W',
        [EFF_FLOW] = 'f',  [EFF_DROP] = 'D',   [EFF_ISSUE] = 'I', [EFF_HOLD] = 'H',
        [EFF_LATER] = 'L', [EFF_LOST] = 'X'};
    if (e->kind == EFF_SEND || e->kind == EFF_BCAST) {
        return message_letter(e);
    }
    return e->kind < sizeof names && names[e->kind] != 0 ? names[e->kind] : '?';
}

static void step(struct bench *b, enum row row, enum column column, char text_out[EFFECTS_MAX + 2])
{
    memset(b, 0, sizeof *b);
    set_view(b);
    b->config = (struct galene_config){.retry_us = 10, .rescue_us = 10};
    b->spare = (struct slot){.ref = slot_ref(0, 4), .gen = 1};
    b->event.self = SELF;
    b->event.view = &b->view;
    b->event.config = &b->config;
    set_column(b, column);
    set_row(b, row);
    struct key_meta before = b->meta;
    galene_key(&b->meta, NULL, NULL, b->event.kind == EV_MSG ? NULL : &b->spare, &b->event, &b->fx);
    uint32_t n = 0;
    bool forgotten = false;
    for (uint32_t i = 0; i < b->fx.n; i++) {
        forgotten = forgotten || b->fx.e[i].kind == EFF_FORGET;
    }
    char next = forgotten ? '.' : letters[b->meta.state];
    text_out[n++] = next == letters[before.state] ? '=' : next;
    for (uint32_t i = 0; i < b->fx.n; i++) {
        text_out[n++] = effect_letter(&b->fx.e[i]);
    }
    text_out[n] = 0;
    if (!forgotten && b->meta.state != GALENE_NONE) {
        galene_ops.check(&b->meta, NULL);
    }
}

/* A read of a readable key never comes to the machine; nor a computed update of another one. */
static bool cannot_be(enum row row, enum column column)
{
    static struct bench b;
    memset(&b, 0, sizeof b);
    set_column(&b, column);
    bool readable = (b.meta.flags & KEY_READABLE) != 0 || column == ABSENT;
    return row == READ && readable;
}

static void test_every_cell(void **state)
{
    (void)state;
    static struct bench b;
    uint32_t wrong = 0;
    for (uint32_t row = 0; row < ROWS; row++) {
        for (uint32_t column = 0; column < COLUMNS; column++) {
            char text[EFFECTS_MAX + 2];
            const char *cell = cells[row][column];
            if (cannot_be((enum row)row, (enum column)column)) {
                assert_string_equal(cell, "/");
                continue;
            }
            step(&b, (enum row)row, (enum column)column, text);
            if (cell == NULL || strcmp(cell, text) != 0) {
                wrong++;
                print_message("%s in %s: %s, not %s\n", row_names[row], column_names[column], text,
                              cell != NULL ? cell : "nothing at all");
            }
        }
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
