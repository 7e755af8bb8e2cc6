/* Every cell of the table of docs/protocols/zeus-commit.md: each state of a pipeline, each event,
 * and which effects there are. The machine is stepped once for each cell. Node 0 coordinates, or in
 * the follower's columns this node is 1 and the other follower 2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/zeus/commit.h"

#define EPOCH 5u
#define N12 6u /* nodes 1 and 2 */

enum column {
    IDLE,
    SENT,   /* slot 1, to 1 and 2 */
    PART,   /* the same; 1 has ACKed */
    HELD,   /* slot 1 to 1; slot 2, of 2, is held */
    BEHIND, /* slot 1 to 1 and 2; slot 2 to 1, which has ACKed both */
    NONE,   /* a follower without anything */
    STORED, /* slot 1, of 1 and 2 */
    DONE,   /* slot 1 was stored */
    REPLAY, /* slot 1; the coordinator is dead */
    COLUMNS
};

static const char *const column_names[COLUMNS] = {"IDLE", "SENT",   "PART", "HELD",  "BEHIND",
                                                  "NONE", "STORED", "DONE", "REPLAY"};

enum row {
    COMMIT,       /* followers 1 and 2 */
    COMMIT_ALONE, /* no followers */
    INV,          /* of slot 1 */
    INV_NEXT,     /* of slot 2, first 1 */
    INV_LATER,    /* of slot 3, first 3 */
    INV_OLD,      /* of slot 1, an older epoch */
    INV_STRANGER, /* of slot 1, from a node that is no member */
    ACK_1,        /* from 1 (columns of the follower: 2), up to slot 1 */
    ACK_2,        /* from 2, up to slot 1 */
    ACK_2_NEXT,   /* from 2, up to slot 2 */
    ACK_OLD,      /* from 2, up to slot 1, an older epoch */
    ACK_FAR,      /* up to a slot that never was */
    VAL,          /* up to slot 1 */
    VAL_OLD,      /* the same, an older epoch */
    VAL_FAR,      /* up to slot 9 */
    VIEW,         /* the next, without node 3 */
    VIEW_DEAD,    /* the next, without the coordinator; its own columns: without node 2 */
    VIEW_NEW,     /* the next, node 2 is a new process */
    ROWS
};

static const char *const row_names[ROWS] = {
    "COMMIT",       "COMMIT_ALONE", "INV",     "INV_NEXT",   "INV_LATER", "INV_OLD",
    "INV_STRANGER", "ACK_1",        "ACK_2",   "ACK_2_NEXT", "ACK_OLD",   "ACK_FAR",
    "VAL",          "VAL_OLD",      "VAL_FAR", "VIEW",       "VIEW_DEAD", "VIEW_NEW"};

/* Effects in their order, as "INV1>12": of slot 1, to nodes 1 and 2. NULL: cannot be asked. */
static const char *const cells[ROWS][COLUMNS] = {
    [COMMIT] = {"INV1>12", "INV2>12", "INV2>12", "", "INV3>12", NULL, NULL, NULL, NULL},
    [COMMIT_ALONE] = {"DONE1", "", "", "", "", NULL, NULL, NULL, NULL},
    [INV] = {"", "", "", "", "", "APPLY1 ACK1>0", "ACK1>0", "ACK1>0", "ACK1>2"},
    [INV_NEXT] = {"", "", "", "", "", "APPLY2 ACK2>0", "APPLY2 ACK2>0", "APPLY2 ACK2>0",
                  "APPLY2 ACK2>2"},
    [INV_LATER] = {"", "", "", "", "", "APPLY3 ACK3>0", "DROP1 APPLY3 ACK3>0", "APPLY3 ACK3>0",
                   "DROP1 APPLY3 ACK3>2"},
    [INV_OLD] = {"BEHIND1>0", "BEHIND1>0", "BEHIND1>0", "BEHIND1>0", "BEHIND1>0", "BEHIND1>0",
                 "BEHIND1>0", "BEHIND1>0", "BEHIND1>2"},
    [INV_STRANGER] = {"", "", "", "", "", "", "", "", ""},
    [ACK_1] = {"", "", "", "DONE1 VAL1>1 INV2>2", "", "", "", "", "DONE1 VAL1>2"},
    [ACK_2] = {"", "", "DONE1 VAL1>12", "", "DONE1 DONE2 VAL2>12", "", "", "", "DONE1 VAL1>2"},
    [ACK_2_NEXT] = {"", "", "", "", "DONE1 DONE2 VAL2>12", "", "", "", ""},
    [ACK_OLD] = {"", "", "", "", "", "", "", "", ""},
    [ACK_FAR] = {"", "", "", "", "", "", "", "", ""},
    [VAL] = {"", "", "", "", "", "", "DROP1", "", "DROP1"},
    [VAL_OLD] = {"", "", "", "", "", "", "DROP1", "", "DROP1"},
    [VAL_FAR] = {"", "", "", "", "", "", "DROP1", "", "DROP1"},
    [VIEW] = {"", "INV1>12", "INV1>12", "INV1>1", "INV1>12 INV2>1", "", "", "", "INV1>2"},
    [VIEW_DEAD] = {"", "INV1>1", "INV1>1", "INV1>1", "INV1>1 INV2>1", "", "INV1>2", "", NULL},
    [VIEW_NEW] = {"", "INV1>1", "INV1>1", "INV1>1", "INV1>1 INV2>1", "", "", "", "DONE1"},
};

struct fixture {
    struct view view;
    struct commit_config config;
    struct commit_context cx;
    struct commit_pipe pipe;
    struct commit_effects fx;
};

static void begin(struct fixture *f, uint8_t self)
{
    memset(f, 0, sizeof(*f));
    f->view.epoch = EPOCH;
    for (uint8_t i = 0; i < 4; i++) {
        f->view.live |= nodeset_of(i);
        f->view.members[i].admitted = 1;
    }
    f->cx = (struct commit_context){.view = &f->view, .config = &f->config, .self = self};
    struct commit_name name = {.pipe = 7, .admitted = 1, .node = 0};
    commit_pipe_init(&f->pipe, &name);
}

static void next_view(struct fixture *f, uint8_t without)
{
    f->view.epoch++;
    f->view.live &= ~nodeset_of(without);
    f->view.members[without].admitted = 0;
    commit_view(&f->pipe, &f->cx, &f->fx);
}

static void new_process(struct fixture *f, uint8_t node)
{
    f->view.epoch++;
    f->view.members[node].admitted = f->view.epoch;
    commit_view(&f->pipe, &f->cx, &f->fx);
}

static bool inv(struct fixture *f, uint64_t slot, uint64_t first, uint8_t from, bool alive)
{
    struct commit_inv i = {.slot = slot, .first = first, .followers = N12};
    return commit_inv(&f->pipe, &f->cx, from, &i, alive, &f->fx);
}

static void ack(struct fixture *f, uint8_t from, uint64_t slot, bool alive)
{
    commit_ack(&f->pipe, &f->cx, from, slot, alive, &f->fx);
}

static void enter(struct fixture *f, enum column column)
{
    begin(f, column < NONE ? 0 : 1);
    switch (column) {
    case IDLE:
    case NONE:
        break;
    case SENT:
        (void)commit_begin(&f->pipe, &f->cx, N12, &f->fx);
        break;
    case PART:
        (void)commit_begin(&f->pipe, &f->cx, N12, &f->fx);
        ack(f, 1, 1, true);
        break;
    case HELD:
        (void)commit_begin(&f->pipe, &f->cx, nodeset_of(1), &f->fx);
        (void)commit_begin(&f->pipe, &f->cx, nodeset_of(2), &f->fx);
        break;
    case BEHIND:
        (void)commit_begin(&f->pipe, &f->cx, N12, &f->fx);
        (void)commit_begin(&f->pipe, &f->cx, nodeset_of(1), &f->fx);
        ack(f, 1, 2, true);
        break;
    case STORED:
        (void)inv(f, 1, 1, 0, true);
        break;
    case DONE:
        (void)inv(f, 1, 1, 0, true);
        commit_val(&f->pipe, &f->cx, 1, true, &f->fx);
        break;
    case REPLAY:
        (void)inv(f, 1, 1, 0, true);
        next_view(f, 0);
        break;
    case COLUMNS:
        break;
    }
    f->fx.n = 0;
}

/* False: the event cannot come in this state. */
static bool step(struct fixture *f, enum row row, enum column column)
{
    bool follows = column >= NONE;
    uint8_t sender = column == REPLAY ? 2 : 0;
    if (follows ? row <= COMMIT_ALONE || (column == REPLAY && row == VIEW_DEAD) : false) {
        return false;
    }
    switch (row) {
    case COMMIT:
        (void)commit_begin(&f->pipe, &f->cx, N12, &f->fx);
        break;
    case COMMIT_ALONE:
        (void)commit_begin(&f->pipe, &f->cx, 0, &f->fx);
        break;
    case INV:
        (void)inv(f, 1, 1, sender, true);
        break;
    case INV_NEXT:
        (void)inv(f, 2, 1, sender, true);
        break;
    case INV_LATER:
        (void)inv(f, 3, 3, sender, true);
        break;
    case INV_OLD:
        (void)inv(f, 1, 1, sender, false);
        break;
    case INV_STRANGER:
        (void)inv(f, 1, 1, 9, true);
        break;
    case ACK_1:
        ack(f, follows ? 2 : 1, 1, true);
        break;
    case ACK_2:
        ack(f, 2, 1, true);
        break;
    case ACK_2_NEXT:
        ack(f, 2, 2, true);
        break;
    case ACK_OLD:
        ack(f, 2, 1, false);
        break;
    case ACK_FAR:
        ack(f, 2, 99, true);
        break;
    case VAL:
        commit_val(&f->pipe, &f->cx, 1, true, &f->fx);
        break;
    case VAL_OLD:
        commit_val(&f->pipe, &f->cx, 1, false, &f->fx);
        break;
    case VAL_FAR:
        commit_val(&f->pipe, &f->cx, 9, true, &f->fx);
        break;
    case VIEW:
        next_view(f, 3);
        break;
    case VIEW_DEAD:
        next_view(f, follows ? 0 : 2);
        break;
    case VIEW_NEW:
        new_process(f, 2);
        break;
    case ROWS:
        break;
    }
    return true;
}

static void print_effects(const struct commit_effects *fx, char out[200])
{
    static const char *const names[] = {
        [COMMIT_FX_INV] = "INV",      [COMMIT_FX_ACK] = "ACK",     [COMMIT_FX_VAL] = "VAL",
        [COMMIT_FX_DONE] = "DONE",    [COMMIT_FX_APPLY] = "APPLY", [COMMIT_FX_DROP] = "DROP",
        [COMMIT_FX_BEHIND] = "BEHIND"};
    size_t n = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < fx->n; i++) {
        n +=
            (size_t)snprintf(out + n, 200 - n, "%s%s%llu%s", i > 0 ? " " : "", names[fx->e[i].kind],
                             (unsigned long long)fx->e[i].slot, fx->e[i].to != 0 ? ">" : "");
        for (nodeset rest = fx->e[i].to; rest != 0; rest &= rest - 1) {
            n += (size_t)snprintf(out + n, 200 - n, "%u", nodeset_first(rest));
        }
    }
}

static void every_cell(void **state)
{
    (void)state;
    static struct fixture f;
    uint32_t wrong = 0;
    for (uint32_t row = 0; row < ROWS; row++) {
        for (uint32_t column = 0; column < COLUMNS; column++) {
            char is[200];
            enter(&f, (enum column)column);
            if (!step(&f, (enum row)row, (enum column)column)) {
                assert_null(cells[row][column]);
                continue;
            }
            commit_check(&f.pipe, &f.cx);
            print_effects(&f.fx, is);
            if (cells[row][column] == NULL || strcmp(is, cells[row][column]) != 0) {
                print_error("%s in %s: \"%s\", should be \"%s\"\n", row_names[row],
                            column_names[column], is,
                            cells[row][column] != NULL ? cells[row][column] : "(impossible)");
                wrong++;
            }
        }
    }
    assert_int_equal(wrong, 0);
}

/* A pipeline has room for so many slots, and no more, until the first is done. */
static void room(void **state)
{
    (void)state;
    static struct fixture f;
    begin(&f, 0);
    for (uint32_t i = 1; i <= COMMIT_SLOTS; i++) {
        assert_true(commit_room(&f.pipe));
        f.fx.n = 0;
        assert_int_equal(commit_begin(&f.pipe, &f.cx, N12, &f.fx), i);
    }
    assert_false(commit_room(&f.pipe));
    ack(&f, 1, COMMIT_SLOTS, true);
    ack(&f, 2, 1, true);
    assert_true(commit_room(&f.pipe));
    f.fx.n = 0;
    ack(&f, 2, COMMIT_SLOTS, true);
    assert_int_equal(f.fx.n, COMMIT_SLOTS); /* DONE of all others, one VAL */
    assert_true(commit_pipe_empty(&f.pipe));
}

/* A follower that has missed R-VALs has room for what comes, because R-INVs say what is done. */
static void first_makes_room(void **state)
{
    (void)state;
    static struct fixture f;
    begin(&f, 1);
    for (uint64_t slot = 1; slot <= 3 * COMMIT_SLOTS; slot++) {
        f.fx.n = 0;
        uint64_t first = slot < COMMIT_SLOTS ? 1 : slot - COMMIT_SLOTS + 1;
        assert_true(inv(&f, slot, first, 0, true));
        commit_check(&f.pipe, &f.cx);
        assert_int_equal(f.fx.n, slot > COMMIT_SLOTS ? 3 : 2); /* DROP APPLY ACK */
    }
    f.fx.n = 0;
    assert_false(inv(&f, 4 * COMMIT_SLOTS, 3 * COMMIT_SLOTS, 0, true));
    assert_int_equal(f.fx.n, 0);
}

/* How a slot would go behind what is under way. */
static void fit(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, 0);
    struct commit_name name = {.pipe = 1, .admitted = 1, .node = 0};
    commit_pipe_init(&f.pipe, &name);
    assert_int_equal(commit_fit(&f.pipe, N12), COMMIT_FIT_FIRST);
    assert_int_equal(commit_begin(&f.pipe, &f.cx, N12, &f.fx), 1);
    assert_int_equal(commit_fit(&f.pipe, N12), COMMIT_FIT_SAME);
    assert_int_equal(commit_fit(&f.pipe, nodeset_of(1)), COMMIT_FIT_FEWER);
    assert_int_equal(commit_fit(&f.pipe, 0), COMMIT_FIT_FEWER);
    assert_int_equal(commit_fit(&f.pipe, N12 | nodeset_of(3)), COMMIT_FIT_HELD);
    assert_int_equal(commit_begin(&f.pipe, &f.cx, nodeset_of(3), &f.fx), 2);
    assert_int_equal(commit_fit(&f.pipe, N12), COMMIT_FIT_HELD); /* behind a slot that is */
    commit_ack(&f.pipe, &f.cx, 1, 1, true, &f.fx);
    commit_ack(&f.pipe, &f.cx, 2, 1, true, &f.fx);
    assert_int_equal(commit_fit(&f.pipe, nodeset_of(3)), COMMIT_FIT_SAME);
    assert_int_equal(commit_fit(&f.pipe, N12), COMMIT_FIT_HELD);
    commit_ack(&f.pipe, &f.cx, 3, 2, true, &f.fx);
    assert_int_equal(commit_fit(&f.pipe, N12), COMMIT_FIT_FIRST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell),
        cmocka_unit_test(room),
        cmocka_unit_test(fit),
        cmocka_unit_test(first_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
