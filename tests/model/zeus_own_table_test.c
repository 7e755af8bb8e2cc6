/* Every cell of the table of docs/protocols/zeus.md: each state of an object at a member, each
 * event, the state after it and the effects. The machine is stepped once for each cell. Then the
 * messages of requests without faults are counted.
 *
 * Nodes 0, 1, 2 are the directory, 3 is the owner, 4 reads; epoch 5, in which all have RECOVERED
 * and SETTLED. The pending request is node 5's, which wants to own, at version 12, over an entry of
 * version 10. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/zeus_own_rig.h"

#define EPOCH 5u
#define NODES 6u

enum column {
    NOTHING, /* node 1, no entry */
    VALID,   /* node 1 */
    INVALID, /* node 1; node 0 drives */
    DRIVE,   /* node 1 */
    LEFT,    /* node 1: Invalid from before the view, in which not all have RECOVERED */
    REPLAY,  /* node 1 replays; all but node 2 have ACKed */
    OWNER,   /* node 3 */
    BUSY,    /* node 3, Valid; a transaction holds the object */
    OWING,   /* node 3, Invalid; the same */
    READER,  /* node 4 */
    REQUEST, /* node 5: the REQ is out, nobody has ACKed */
    ALMOST,  /* node 5: all but node 2 have ACKed */
    BACKOFF, /* node 5: NACKed */
    COLUMNS
};

static const char *const column_names[COLUMNS] = {"NOTHING", "VALID",  "INVALID", "DRIVE", "LEFT",
                                                  "REPLAY",  "OWNER",  "BUSY",    "OWING", "READER",
                                                  "REQUEST", "ALMOST", "BACKOFF"};

enum row {
    WANT_OWNER,
    WANT_READER,
    WANT_TRIM, /* of node 4 */
    WANT_DESTROY,
    REQ,        /* node 4 wants to own */
    REQ_RETRY,  /* the pending request's next */
    REQ_READER, /* node 4 wants to read, and is a reader */
    INV_HIGHER, /* version 14, node 4 wants to own, driven by node 2 */
    INV_TRIM,   /* version 14, node 3 trims node 4 */
    INV_SAME,
    INV_BETWEEN, /* version 11 */
    INV_APPLIED, /* version 10 */
    INV_OLDER,   /* version 9 */
    INV_EPOCH,   /* version 14, of an epoch before */
    INV_REPLAY,  /* version 12, from node 2 */
    VAL_SAME,    /* node 5 owns */
    VAL_HIGHER,  /* node 4 owns, version 14 */
    VAL_OLD,     /* version 9 */
    VAL_EPOCH,   /* version 12, of an epoch before */
    ACK_OWNER,   /* of the request, from node 3, with the value */
    ACK_LAST,    /* from node 2 */
    NACK_BUSY,
    NACK_NONE,
    RESP,        /* with the value */
    REPLAY_ACK,  /* from node 2 */
    REPLAY_NACK, /* EPOCH, from node 2 */
    INVITE,
    ENTRY_HIGHER, /* version 11, node 4 owns */
    ENTRY_OLD,
    FREE,
    VIEW, /* the next; nobody is gone */
    RECOVERED,
    SETTLED,
    TIMER,
    ROWS
};

static const char *const row_names[ROWS] = {
    "WANT_OWNER", "WANT_READER", "WANT_TRIM",  "WANT_DESTROY", "REQ",         "REQ_RETRY",
    "REQ_READER", "INV_HIGHER",  "INV_TRIM",   "INV_SAME",     "INV_BETWEEN", "INV_APPLIED",
    "INV_OLDER",  "INV_EPOCH",   "INV_REPLAY", "VAL_SAME",     "VAL_HIGHER",  "VAL_OLD",
    "VAL_EPOCH",  "ACK_OWNER",   "ACK_LAST",   "NACK_BUSY",    "NACK_NONE",   "RESP",
    "REPLAY_ACK", "REPLAY_NACK", "INVITE",     "ENTRY_HIGHER", "ENTRY_OLD",   "FREE",
    "VIEW",       "RECOVERED",   "SETTLED",    "TIMER"};

/* The state after it (V, I, D; o: an ACK is owed; w: the own request waits), then the effects in
 * their order: messages with those that they go to (v: with a value, r: of a replay). */
static const char *const cells[ROWS][COLUMNS] = {
    [WANT_OWNER] = {"V REQ>1", "V REQ>1", "I REQ>1", "D REQ>1", "Iw", "I REQ>1", "V DONE0",
                    "V DONE0", "Io REQ>0", "V REQ>0", "V", "V", "Vw"},
    [WANT_READER] = {"V REQ>1", "V REQ>1", "I REQ>1", "D REQ>1", "Iw", "I REQ>1", "V DONE0",
                     "V DONE0", "Io REQ>0", "V DONE0", "V", "V", "Vw"},
    [WANT_TRIM] = {"V DONE5", "V DONE5", "I DONE5", "D DONE5", "I DONE5", "I DONE5", "V REQ>0",
                   "V REQ>0", "Io REQ>0", "V DONE5", "V", "V", "Vw"},
    [WANT_DESTROY] = {"V REQ>1", "V DONE5", "I DONE5", "D DONE5", "I DONE5", "I DONE5",
                      "V REVOKE REQ>0", "V DONE5", "Io DONE5", "V DONE5", "V", "V", "Vw"},
    [REQ] = {"D INV>02 ACK>4", "D INV>023 ACK>4", "I NACK>4", "D NACK>4", "I NACK>4", "I NACK>4",
             "V NACK>4", "V NACK>4", "Io NACK>4", "V NACK>4", "V NACK>4", "V NACK>4", "Vw NACK>4"},
    [REQ_RETRY] = {"D INV>02 ACK>5", "D INV>023 ACK>5", "D INV>023 ACK>5", "D INV>023 ACK>5",
                   "I NACK>5", "I NACK>5", "V NACK>5", "V NACK>5", "Io NACK>5", "V NACK>5",
                   "V NACK>5", "V NACK>5", "Vw NACK>5"},
    [REQ_READER] = {"V NACK>4", "V NACK>4", "I NACK>4", "D NACK>4", "I NACK>4", "I NACK>4",
                    "V NACK>4", "V NACK>4", "Io NACK>4", "V NACK>4", "V NACK>4", "V NACK>4",
                    "Vw NACK>4"},
    [INV_HIGHER] = {"I ACK>4", "I ACK>4", "I ACK>4", "I NACK>5 ACK>4", "I ACK>4", "I ACK>4",
                    "I REVOKE ACKv>4", "Io REVOKE", "Io REVOKE", "I ACK>4", "I ACK>4", "I ACK>4",
                    "Iw ACK>4"},
    [INV_TRIM] = {"I ACK>3", "I ACK>3", "I ACK>3", "I NACK>5 ACK>3", "I ACK>3", "I ACK>3",
                  "I ACK>3", "I ACK>3", "I ACK>3", "I SHUT ACK>3", "I ACK>3", "I ACK>3",
                  "Iw ACK>3"},
    [INV_SAME] = {"I ACK>5", "I ACK>5", "I ACK>5", "D ACK>5", "I ACK>5", "I ACK>5",
                  "I REVOKE ACKv>5", "Io REVOKE", "Io", "I ACK>5", "I ACK>5", "I ACK>5",
                  "Iw ACK>5"},
    [INV_BETWEEN] = {"I ACK>4", "I ACK>4", "I", "D", "I", "I", "I REVOKE ACKv>4", "Io REVOKE", "Io",
                     "I ACK>4", "I ACK>4", "I ACK>4", "Iw ACK>4"},
    [INV_APPLIED] = {"I ACK>4", "V VAL>2", "I VAL>2", "D VAL>2", "I VAL>2", "I VAL>2", "V VAL>2",
                     "V VAL>2", "Io VAL>2", "V VAL>2", "I ACK>4", "I ACK>4", "Iw ACK>4"},
    [INV_OLDER] = {"I ACK>4", "V VAL>2", "I VAL>2", "D VAL>2", "I VAL>2", "I VAL>2", "V VAL>2",
                   "V VAL>2", "Io VAL>2", "V VAL>2", "I ACK>4", "I ACK>4", "Iw ACK>4"},
    [INV_EPOCH] = {"V BEHIND", "V BEHIND", "I BEHIND", "D BEHIND", "I BEHIND", "I BEHIND",
                   "V BEHIND", "V BEHIND", "Io BEHIND", "V BEHIND", "V BEHIND", "V BEHIND",
                   "Vw BEHIND"},
    [INV_REPLAY] = {"I ACKr>2", "I ACKr>2", "I ACKr>2", "D ACKr>2", "I ACKr>2", "I ACKr>2",
                    "I REVOKE ACKvr>2", "Io REVOKE", "Io", "I ACKr>2", "I ACKr>2", "I ACKr>2",
                    "Iw ACKr>2"},
    [VAL_SAME] = {"V", "V", "V", "V", "V", "V", "V GRANT2", "V GRANT2", "V GRANT2", "V GRANT2", "V",
                  "V", "Vw"},
    [VAL_HIGHER] = {"V", "V", "V", "V NACK>5", "V", "V", "V GRANT2", "V GRANT2", "V GRANT2",
                    "V GRANT1", "V", "V", "Vw"},
    [VAL_OLD] = {"V", "V", "I", "D", "I", "I", "V", "V", "Io", "V", "V", "V", "Vw"},
    [VAL_EPOCH] = {"V", "V", "V", "V", "V", "V", "V GRANT2", "V GRANT2", "V GRANT2", "V GRANT2",
                   "V", "V", "Vw"},
    [ACK_OWNER] = {"V", "V", "I", "D", "I", "I", "V", "V", "Io", "V", "V KEEP", "V", "Vw"},
    [ACK_LAST] = {"V", "V", "I", "D", "I", "I", "V", "V", "Io", "V", "V",
                  "V INSTALL GRANT1 VAL>0123 DONE0", "Vw"},
    [NACK_BUSY] = {"V", "V", "I", "D", "I", "I", "V", "V", "Io", "V", "Vw", "Vw", "Vw"},
    [NACK_NONE] = {"V", "V", "I", "D", "I", "I", "V", "V", "Io", "V", "V DONE3", "V DONE3", "Vw"},
    [RESP] = {"V", "V", "I", "D", "I", "I", "V", "V", "Io", "V",
              "V KEEP INSTALL GRANT1 VAL>0123 DONE0", "V KEEP INSTALL GRANT1 VAL>0123 DONE0",
              "V KEEP INSTALL GRANT1 VAL>0123 DONE0"},
    [REPLAY_ACK] = {"V", "V", "I", "D", "I", "I RESP>5", "V", "V", "Io", "V", "V", "V", "Vw"},
    [REPLAY_NACK] = {"V", "V", "I", "D", "I", "V", "V", "V", "Io", "V", "V", "V", "Vw"},
    [INVITE] = {"V REQ>1", "V REQ>1", "I REQ>1", "D REQ>1", "Iw", "I REQ>1", "V DONE0", "V DONE0",
                "Io REQ>0", "V DONE0", "V", "V", "Vw"},
    [ENTRY_HIGHER] = {"V", "V", "I", "D", "I", "I", "V GRANT2", "V GRANT2", "Io", "V GRANT1", "V",
                      "V", "Vw"},
    [ENTRY_OLD] = {"V", "V", "I", "D", "I", "I", "V", "V", "Io", "V", "V", "V", "Vw"},
    [FREE] = {"V", "V", "I", "D", "I", "I", "V", "V", "I ACKv>5", "V", "V", "V", "Vw"},
    [VIEW] = {"V", "V", "I", "I", "I", "I", "V", "V", "I", "V", "Vw", "Vw", "Vw"},
    [RECOVERED] = {"V", "V", "I", "D", "I INVr>023 ACKr>1", "I", "V", "V", "Io", "V", "V", "V",
                   "Vw"},
    [SETTLED] = {"V", "V", "I", "D", "I INVr>023 ACKr>1", "I", "V", "V", "Io", "V", "V", "V",
                 "V REQ>0"},
    [TIMER] = {"V", "V", "I", "D", "I", "I", "V", "V", "Io", "V", "V", "V", "V REQ>0"},
};

struct fixture {
    struct view view;
    struct own_config config;
    struct own_entry entry;
    struct own_busy busy;
    struct own_event event;
    struct own_effects fx;
    struct msg msg;
    uint8_t bytes[OWN_BODY_BYTES + 8];
    uint64_t clock, forgot;
    uint32_t seq;
};

static const struct own_vector before = {.readers = 1u << 4, .epoch = 4, .owner = 3, .degree = 0};

static struct own_request request_of(uint8_t node, enum own_type type)
{
    return (struct own_request){.seq = 7,
                                .type = (uint8_t)type,
                                .requester = node,
                                .target = type == OWN_TRIM ? 4 : NODE_NONE,
                                .create = type == OWN_OWNER,
                                .admitted = 1};
}

static void set_pending(struct fixture *f, enum own_state state, uint8_t driver)
{
    f->busy.ts = stamp_make(12, driver);
    f->busy.before = before;
    f->busy.request = request_of(5, OWN_OWNER);
    f->busy.state = (uint8_t)state;
    f->busy.epoch = EPOCH;
}

static void set_mine(struct fixture *f, nodeset acked)
{
    f->busy.mine = request_of(5, OWN_OWNER);
    f->busy.mine_epoch = EPOCH;
    f->busy.driver = 0;
    f->busy.mine_acked = acked;
    if (acked != 0) {
        f->busy.mine_ts = stamp_make(12, 0);
        f->busy.mine_before = before;
        f->busy.mine_data = nodeset_of(3);
        f->busy.mine_best = stamp_make(20, 1);
        f->busy.best_owner = true;
    }
}

static void set_column(struct fixture *f, enum column column)
{
    static const uint8_t self[COLUMNS] = {1, 1, 1, 1, 1, 1, 3, 3, 3, 4, 5, 5, 5};
    struct own_event *e = &f->event;
    memset(f, 0, sizeof *f);
    f->view.epoch = EPOCH;
    for (uint8_t i = 0; i < NODES; i++) {
        f->view.live |= nodeset_of(i);
        f->view.members[i].admitted = 1;
    }
    f->view.operational = f->view.configured = f->view.live;
    f->config.backoff_us = 100;
    f->clock = 12;
    f->seq = 6;
    *e = (struct own_event){.self = self[column],
                            .recovered = column != LEFT,
                            .settled = column != LEFT,
                            .alive = true,
                            .now_us = 1000,
                            .view = &f->view,
                            .directory = 7,
                            .drivers = 7,
                            .clock = &f->clock,
                            .forgot = &f->forgot,
                            .seq = &f->seq,
                            .config = &f->config};
    if (column != NOTHING && column < REQUEST) {
        f->entry = (struct own_entry){.ts = stamp_make(10, 0), .vector = before};
    }
    e->data.have = e->self == 3 || e->self == 4;
    e->data.version = e->data.have ? stamp_make(20, 1) : 0;
    e->data.busy = column == BUSY || column == OWING;
    switch (column) {
    case INVALID:
        set_pending(f, OWN_INVALID, 0);
        break;
    case DRIVE:
        set_pending(f, OWN_DRIVE, 1);
        break;
    case LEFT:
        set_pending(f, OWN_INVALID, 0);
        f->busy.stale = true;
        f->busy.epoch = EPOCH - 1;
        break;
    case REPLAY:
        set_pending(f, OWN_INVALID, 0);
        f->busy.stale = f->busy.replays = true;
        f->busy.acked = 0xb;
        break;
    case OWING:
        set_pending(f, OWN_INVALID, 0);
        f->busy.owes = true;
        f->busy.to = 5;
        break;
    case REQUEST:
        set_mine(f, 0);
        break;
    case ALMOST:
        set_mine(f, 0xb);
        break;
    case BACKOFF:
        set_mine(f, 0);
        f->busy.waits = true;
        f->busy.mine_due_us = 5000;
        break;
    case NOTHING:
    case VALID:
    case OWNER:
    case BUSY:
    case READER:
    case COLUMNS:
        break;
    }
}

static void set_message(struct fixture *f, uint8_t from, enum own_kind kind, uint64_t ts,
                        struct own_body body)
{
    bool vectored = kind == OWN_MSG_INV || kind == OWN_MSG_ACK || kind == OWN_MSG_RESP;
    if (vectored) {
        body.vector = before;
    } else if (kind != OWN_MSG_VAL && kind != OWN_MSG_ENTRY) {
        body.vector.owner = NODE_NONE;
    }
    body.version = body.value ? stamp_make(20, 1) : 0;
    body.data = body.value && kind == OWN_MSG_ACK;
    own_body_encode(&body, f->bytes);
    f->event.kind = OWN_EV_MSG;
    f->event.from = from;
    f->event.msg = &f->msg;
    f->msg = (struct msg){.kind = (uint8_t)kind,
                          .epoch = f->event.alive ? EPOCH : EPOCH - 1,
                          .ts = ts,
                          .arg = 12,
                          .key = bytes_of("k", 1),
                          .value = bytes_of(f->bytes, OWN_BODY_BYTES + (body.value ? 8u : 0u))};
    assert_null(own_msg_invalid(&f->msg));
}

static struct own_vector owned_by(uint8_t owner)
{
    return (struct own_vector){
        .readers = 0x38u & ~(nodeset)(1u << owner), .epoch = 4, .owner = owner};
}

/* The o_ts of what is pending here, or would be. */
static uint64_t pending_ts(const struct fixture *f)
{
    return f->busy.ts != 0 ? f->busy.ts : stamp_make(12, 0);
}

static void set_want(struct fixture *f, enum own_type type)
{
    f->event.kind = OWN_EV_WANT;
    f->event.want = request_of(f->event.self, type);
    f->event.data.tombstone = type == OWN_DESTROY;
}

static void set_inv(struct fixture *f, enum row row)
{
    struct own_request other = request_of(4, OWN_OWNER);
    struct own_request pending = request_of(5, OWN_OWNER);
    struct own_body body = {.request = other};
    uint64_t ts = stamp_make(14, 2);
    if (row == INV_TRIM) {
        body.request = request_of(3, OWN_TRIM);
    } else if (row == INV_SAME || row == INV_REPLAY) {
        body.request = pending;
        body.replay = row == INV_REPLAY;
        ts = pending_ts(f);
    } else if (row == INV_BETWEEN) {
        ts = stamp_make(11, 2);
    } else if (row == INV_APPLIED) {
        ts = stamp_make(10, 0);
    } else if (row == INV_OLDER) {
        ts = stamp_make(9, 2);
    }
    f->event.alive = row != INV_EPOCH;
    set_message(f, row == INV_SAME ? 0 : 2, OWN_MSG_INV, ts, body);
}

static void set_answer(struct fixture *f, enum row row)
{
    static const uint8_t kinds[] = {OWN_MSG_ACK,  OWN_MSG_ACK, OWN_MSG_NACK, OWN_MSG_NACK,
                                    OWN_MSG_RESP, OWN_MSG_ACK, OWN_MSG_NACK};
    static const uint8_t from[] = {3, 2, 0, 0, 2, 2, 2};
    struct own_body body = {.request = request_of(5, OWN_OWNER)};
    enum own_kind kind = (enum own_kind)kinds[row - ACK_OWNER];
    body.owner = row == ACK_OWNER;
    body.value = row == ACK_OWNER || row == RESP;
    body.replay = row == REPLAY_ACK || row == REPLAY_NACK;
    if (kind == OWN_MSG_NACK) {
        body.nack = row == NACK_BUSY   ? OWN_NACK_BUSY
                    : row == NACK_NONE ? OWN_NACK_NONE
                                       : OWN_NACK_EPOCH;
    }
    bool stamped = kind != OWN_MSG_NACK || row == REPLAY_NACK;
    set_message(f, from[row - ACK_OWNER], kind, stamped ? pending_ts(f) : 0, body);
}

static void set_told(struct fixture *f, enum row row)
{
    struct own_body body = {.vector = owned_by(row == VAL_SAME || row == VAL_EPOCH ? 5 : 4)};
    uint64_t ts = row == VAL_SAME || row == VAL_EPOCH ? pending_ts(f)
                  : row == VAL_HIGHER                 ? stamp_make(14, 2)
                  : row == ENTRY_HIGHER               ? stamp_make(11, 2)
                                                      : stamp_make(9, 2);
    f->event.alive = row != VAL_EPOCH;
    set_message(f, 5, row < ACK_OWNER ? OWN_MSG_VAL : OWN_MSG_ENTRY, ts, body);
}

static void set_row(struct fixture *f, enum row row)
{
    static const enum own_ev events[] = {OWN_EV_FREE, OWN_EV_VIEW, OWN_EV_GO, OWN_EV_GO,
                                         OWN_EV_TIMER};
    struct own_body body = {.request = request_of(4, row == REQ ? OWN_OWNER : OWN_READER)};
    if (row <= WANT_DESTROY) {
        static const enum own_type types[] = {OWN_OWNER, OWN_READER, OWN_TRIM, OWN_DESTROY};
        set_want(f, types[row]);
    } else if (row == REQ || row == REQ_READER) {
        set_message(f, 4, OWN_MSG_REQ, 0, body);
    } else if (row == REQ_RETRY) {
        body.request = request_of(5, OWN_OWNER);
        body.request.retry = 1;
        set_message(f, 5, OWN_MSG_REQ, 0, body);
    } else if (row <= INV_REPLAY) {
        set_inv(f, row);
    } else if (row <= VAL_EPOCH || row == ENTRY_HIGHER || row == ENTRY_OLD) {
        set_told(f, row);
    } else if (row <= REPLAY_NACK) {
        set_answer(f, row);
    } else if (row == INVITE) {
        body.request.seq = 0;
        set_message(f, 3, OWN_MSG_INVITE, 0, body);
    } else {
        f->event.kind = events[row - FREE];
        f->event.data.busy = f->event.data.busy && row != FREE;
        f->event.recovered = row == RECOVERED || row == SETTLED || row == TIMER;
        f->event.settled = row == SETTLED || row == TIMER;
        f->event.now_us = row == TIMER || row == SETTLED ? 6000 : 1000;
        f->view.epoch += row == VIEW;
    }
}

/* ---- What came of it ---- */

static void say_nodes(char *out, size_t n, nodeset set)
{
    for (; set != 0; set &= set - 1) {
        size_t used = strlen(out);
        (void)snprintf(out + used, n - used, "%u", nodeset_first(set));
    }
}

static void say_effect(char *out, size_t n, const struct own_effect *e)
{
    static const char *const names[] = {"",        "REVOKE", "GRANT", "SHUT",   "OPEN", "KEEP",
                                        "INSTALL", "DROP",   "DONE",  "BEHIND", ""};
    size_t used = strlen(out);
    if (e->kind == OWN_FX_COUNT) {
        return;
    }
    if (e->kind != OWN_FX_SEND) {
        bool coded = e->kind == OWN_FX_GRANT || e->kind == OWN_FX_DONE;
        (void)snprintf(out + used, n - used, coded ? " %s%u" : " %s", names[e->kind], e->code);
        return;
    }
    (void)snprintf(out + used, n - used, " %s%s%s>", own_kind_names[e->code],
                   e->body.value ? "v" : "", e->body.replay ? "r" : "");
    say_nodes(out, n, e->to);
}

static void say(char *out, size_t n, const struct fixture *f)
{
    static const char states[] = "VID";
    (void)snprintf(out, n, "%c%s%s", states[f->busy.state], f->busy.owes ? "o" : "",
                   f->busy.waits ? "w" : "");
    for (uint32_t i = 0; i < f->fx.n; i++) {
        say_effect(out, n, &f->fx.e[i]);
    }
}

static void test_table(void **state)
{
    uint32_t wrong = 0;
    (void)state;
    for (uint32_t row = 0; row < ROWS; row++) {
        for (uint32_t column = 0; column < COLUMNS; column++) {
            struct fixture f;
            char got[128];
            set_column(&f, (enum column)column);
            set_row(&f, (enum row)row);
            own_step(&f.entry, &f.busy, &f.event, &f.fx);
            say(got, sizeof got, &f);
            const char *want = cells[row][column];
            if (want == NULL || strcmp(got, want) != 0) {
                print_error("%s in %s: \"%s\", not \"%s\"\n", row_names[row], column_names[column],
                            got, want == NULL ? "" : want);
                wrong++;
            }
        }
    }
    assert_int_equal(wrong, 0);
}

/* ---- Numbers of messages ---- */

static struct own_rig rig;

static uint64_t messages(uint8_t node, enum own_type type, uint8_t target)
{
    uint64_t sent = rig.sent;
    uint32_t dones = rig.nodes[node].dones;
    own_rig_want(&rig, node, type, target);
    own_rig_run(&rig);
    assert_int_equal(rig.nodes[node].dones, dones + 1);
    assert_int_equal(rig.nodes[node].code, 0);
    return rig.sent - sent;
}

/* d = 3 directory nodes. */
static void test_messages(void **state)
{
    (void)state;
    own_rig_init(&rig, 5, 0, 0, 1);
    /* Created by who is no directory node: nobody owns it yet. */
    assert_int_equal(messages(3, OWN_OWNER, NODE_NONE), 9);
    /* The owner and the requester are no directory nodes: 3 d + 3. */
    assert_int_equal(messages(4, OWN_OWNER, NODE_NONE), 12);
    assert_int_equal(messages(3, OWN_OWNER, NODE_NONE), 12);
    /* The requester drives: its REQ and its own ACK do not travel, nor its VAL to itself. */
    assert_int_equal(messages(0, OWN_OWNER, NODE_NONE), 9);
    /* A directory node takes from a directory node. */
    assert_int_equal(messages(1, OWN_OWNER, NODE_NONE), 6);
    assert_int_equal(messages(4, OWN_OWNER, NODE_NONE), 9);
    assert_int_equal(messages(4, OWN_TRIM, 3), 13);
    assert_null(own_rig_verdict(&rig));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
