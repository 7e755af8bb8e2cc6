/* What must hold. The engine's own assertions are made while it steps; here is what clients and
 * members must see:
 *
 *   agree    all that are readable hold the newest value that could be read
 *   fresh    a value that was replaced never comes back
 *   atomic   an RMW replaces exactly the value that it saw
 *   honest   an RMW that was called lost is never seen
 *   linear   the operations that ended, those that may still take effect and a read made now are
 *            linearizable (check_linearizable) */
#include "explore/galene_model.h"

#include "base/assert.h"
#include "check/history.h"

static void note_value(struct galene_shell *shell, uint8_t value)
{
    struct galene_world *w = shell->world;
    uint8_t op = (uint8_t)(value - GALENE_VALUE_START - 1);
    if (value == GALENE_VALUE_NONE) {
        shell->broken = "a key without a value can be read";
        return;
    }
    if (((uint32_t)w->seen >> value & 1u) != 0) {
        shell->broken = "a value that was replaced can be read again";
    } else if (((uint32_t)w->lost >> value & 1u) != 0) {
        shell->broken = "an update that was called lost can be read";
    } else if (shell->model->setup->ops[op] == OP_RMW && w->ops[op].out != w->last) {
        shell->broken = "an RMW replaced a value that it did not see";
    }
    w->seen |= (uint8_t)(1u << value);
    w->last = value;
}

void galene_note(struct galene_shell *shell)
{
    for (uint8_t i = 0; i < GALENE_NODES; i++) {
        uint8_t value = shell->world->nodes[i].value;
        if (shell->broken == NULL && galene_readable(shell->world, i) &&
            value != shell->world->last) {
            note_value(shell, value);
        }
    }
}

/* ---- Histories ---- */

#define TIME_NOW 1000u

/* What has ended before an operation begins is a set, and these sets are nested: the n-th smallest
 * gives the begin of all that have it the time 10 n. An operation ends just before the first begin
 * that counts it. */
static uint64_t begin_of(const struct galene_world *w, uint8_t op)
{
    uint64_t time = 10;
    for (uint32_t i = 0; i < GALENE_OPS; i++) {
        bool smaller = w->ops[i].phase != OP_WAITING && w->ops[i].before != w->ops[op].before &&
                       nodeset_within(w->ops[i].before, w->ops[op].before);
        time += smaller ? 10 : 0;
    }
    return time;
}

static uint64_t end_of(const struct galene_world *w, uint8_t op)
{
    uint64_t end = TIME_NOW - 10;
    for (uint8_t i = 0; i < GALENE_OPS; i++) {
        if (w->ops[i].phase != OP_WAITING && nodeset_has(w->ops[i].before, op)) {
            uint64_t begin = begin_of(w, i);
            end = begin - 1 < end ? begin - 1 : end;
        }
    }
    return end;
}

static struct history_op history_op(const struct galene_model *model, const struct galene_world *w,
                                    uint8_t i)
{
    static const uint8_t kinds[] = {
        [OP_WRITE] = HISTORY_WRITE, [OP_RMW] = HISTORY_GETSET, [OP_READ] = HISTORY_READ};
    const struct galene_op *op = &w->ops[i];
    uint8_t type = model->setup->ops[i];
    struct history_op h = {.kind = kinds[type],
                           .client = i,
                           .in = type == OP_READ ? HISTORY_ABSENT : galene_value_of(i),
                           .expected = HISTORY_ABSENT,
                           .out = HISTORY_ABSENT,
                           .outcome = HISTORY_UNKNOWN,
                           .begin_us = begin_of(w, i),
                           .end_us = begin_of(w, i)};
    if (op->phase == OP_OK) {
        h.outcome = HISTORY_OK;
        h.end_us = end_of(w, i);
        h.out = type == OP_WRITE ? HISTORY_ABSENT : op->out;
    } else if (op->phase == OP_FAILED) {
        h.outcome = HISTORY_FAILED;
    }
    return h;
}

static bool linear(const struct galene_model *model, const struct galene_world *w)
{
    struct history_op ops[GALENE_OPS + 2];
    struct history history = {.ops = ops};
    bool read = false;
    ops[history.n++] = (struct history_op){.kind = HISTORY_WRITE,
                                           .in = GALENE_VALUE_START,
                                           .expected = HISTORY_ABSENT,
                                           .out = HISTORY_ABSENT,
                                           .client = GALENE_OPS};
    for (uint8_t i = 0; i < GALENE_OPS; i++) {
        if (w->ops[i].phase != OP_WAITING) {
            ops[history.n++] = history_op(model, w, i);
        }
    }
    for (uint8_t i = 0; i < GALENE_NODES; i++) {
        read = read || galene_readable(w, i);
    }
    if (read) {
        ops[history.n++] = (struct history_op){.kind = HISTORY_READ,
                                               .begin_us = TIME_NOW,
                                               .end_us = TIME_NOW,
                                               .in = HISTORY_ABSENT,
                                               .expected = HISTORY_ABSENT,
                                               .out = w->last,
                                               .client = GALENE_OPS};
    }
    struct check_report report;
    enum check_result result = check_linearizable(&history, 0, &report);
    HK_ASSERT(result == CHECK_ACCEPTED || result == CHECK_REFUSED);
    return result == CHECK_ACCEPTED;
}

/* ---- States ---- */

const char *galene_broken(const void *self, const void *state)
{
    const struct galene_world *w = state;
    for (uint8_t i = 0; i < GALENE_NODES; i++) {
        if (galene_readable(w, i) && w->nodes[i].value != w->last) {
            return "somebody would answer a value that is not the newest";
        }
    }
    return linear(self, w) ? NULL : "what clients saw is not linearizable";
}

bool galene_at_rest(const struct galene_world *w)
{
    for (uint8_t i = 0; i < GALENE_NODES; i++) {
        uint8_t state = w->nodes[i].meta.state;
        if (galene_alive(w, i) && state != GALENE_NONE && state != GALENE_LOST &&
            (w->nodes[i].meta.flags & KEY_READABLE) == 0) {
            return false;
        }
        for (uint32_t k = 0; k < GALENE_SLOTS; k++) {
            uint8_t kind = w->nodes[i].slots[k].kind;
            if (kind != GALENE_FLOW_FREE && kind != GALENE_FLOW_LEAVE) {
                return false; /* a leave may be about to ask again */
            }
        }
    }
    return true;
}

bool galene_finished(const void *self, const void *state)
{
    const struct galene_model *model = self;
    const struct galene_world *w = state;
    for (uint32_t i = 0; i < GALENE_OPS; i++) {
        if (model->setup->ops[i] != OP_NONE &&
            (w->ops[i].phase == OP_WAITING || w->ops[i].phase == OP_ISSUED)) {
            return false;
        }
    }
    return galene_at_rest(w);
}
