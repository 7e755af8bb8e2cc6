/* What must hold. The engine's own assertions are made while it steps; here is what clients and
 * members must see:
 *
 *   agree    all that may serve and are readable hold the newest value that could be read
 *   same     members that hold the same timestamp hold the same value
 *   fresh    a value that was replaced never comes back
 *   atomic   an RMW replaces exactly the value that it saw
 *   honest   an update that was called lost is never seen
 *   linear   the operations that ended, those that may still take effect and a read made now are
 *            linearizable (check_linearizable)
 *   settled  when nothing more can happen, all that was begun has ended and all hold the same */
#include "explore/hermes_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "check/history.h"

#define HISTORIES_FIRST 4096u

static bool same(const struct hermes_model *model, uint8_t a, uint8_t b)
{
    return a == b || (value_is_nil(model, a) && value_is_nil(model, b));
}

/* ---- What could be read, in its order ---- */

static void note_value(struct shell *shell, uint8_t value)
{
    struct model_world *w = shell->world;
    if ((w->seen >> value & 1u) != 0) {
        shell->broken = "a value that was replaced can be read again";
    } else if ((w->lost >> value & 1u) != 0) {
        shell->broken = "an update that was called lost can be read";
    } else if (value > VALUE_START && shell->model->setup->ops[value_op(value)] == TYPE_RMW &&
               !same(shell->model, w->ops[value_op(value)].out, w->last)) {
        shell->broken = "an RMW replaced a value that it did not see";
    }
    w->seen |= 1u << value;
    w->last = value;
}

void judge_note(struct shell *shell)
{
    const struct model_world *w = shell->world;
    for (uint8_t i = 0; i < shell->model->setup->nodes; i++) {
        uint8_t value = w->nodes[i].value;
        if (shell->broken == NULL && world_readable(w, i) && value != VALUE_NONE &&
            value != w->last && world_leased(w, i)) {
            note_value(shell, value);
        }
    }
}

/* ---- Histories ---- */

static uint64_t *find_cell(uint64_t *at, uint64_t max, uint64_t hash)
{
    uint64_t i = hash & (max - 1);
    while (at[i] != 0 && at[i] != hash) {
        i = (i + 1) & (max - 1);
    }
    return &at[i];
}

/* Without memory nothing is remembered, and checked again. */
static void remember(struct histories *h, uint64_t hash)
{
    if (2 * (h->n + 1) > h->max) {
        uint64_t max = h->max == 0 ? HISTORIES_FIRST : 2 * h->max;
        uint64_t *at = calloc(max, sizeof *at);
        if (at == NULL) {
            return;
        }
        for (uint64_t i = 0; i < h->max; i++) {
            if (h->at[i] != 0) {
                *find_cell(at, max, h->at[i]) = h->at[i];
            }
        }
        free(h->at);
        h->at = at;
        h->max = max;
    }
    *find_cell(h->at, h->max, hash) = hash;
    h->n++;
}

static bool remembered(const struct histories *h, uint64_t hash)
{
    return h->max != 0 && *find_cell(h->at, h->max, hash) == hash;
}

static int64_t number_of(const struct hermes_model *model, uint8_t value)
{
    return value_is_nil(model, value) ? HISTORY_ABSENT : value;
}

/* What has ended before an operation begins is a set, and these sets are nested: the n-th smallest
 * gives the begin of all that have it the time 10 n. An operation ends just before the first begin
 * that counts it. */
static uint64_t begin_of(const struct model_world *w, uint8_t op)
{
    uint64_t time = 10;
    for (uint32_t i = 0; i < MODEL_OPS; i++) {
        bool smaller = w->ops[i].phase != PHASE_WAITING && w->ops[i].before != w->ops[op].before &&
                       nodeset_within(w->ops[i].before, w->ops[op].before);
        time += smaller ? 10 : 0;
    }
    return time;
}

#define TIME_NOW 1000u

static uint64_t end_of(const struct model_world *w, uint8_t op)
{
    uint64_t end = TIME_NOW - 10;
    for (uint8_t i = 0; i < MODEL_OPS; i++) {
        if (w->ops[i].phase != PHASE_WAITING && nodeset_has(w->ops[i].before, op)) {
            uint64_t begin = begin_of(w, i);
            end = begin - 1 < end ? begin - 1 : end;
        }
    }
    return end;
}

static bool history_op(const struct hermes_model *model, const struct model_world *w, uint8_t i,
                       struct history_op *op_out)
{
    const struct model_op *op = &w->ops[i];
    uint8_t type = model->setup->ops[i];
    if (type == TYPE_NONE || op->phase == PHASE_WAITING ||
        (type == TYPE_READ && op->phase != PHASE_OK)) {
        return false;
    }
    static const uint8_t kinds[] = {[TYPE_WRITE] = HISTORY_WRITE,
                                    [TYPE_RMW] = HISTORY_GETSET,
                                    [TYPE_DELETE] = HISTORY_DELETE,
                                    [TYPE_READ] = HISTORY_READ};
    *op_out = (struct history_op){.kind = kinds[type],
                                  .client = i,
                                  .in = HISTORY_ABSENT,
                                  .expected = HISTORY_ABSENT,
                                  .out = HISTORY_ABSENT,
                                  .outcome = HISTORY_UNKNOWN};
    op_out->begin_us = begin_of(w, i);
    op_out->end_us = op_out->begin_us;
    if (type == TYPE_WRITE || type == TYPE_RMW) {
        op_out->in = op->value;
    }
    if (op->phase == PHASE_OK) {
        op_out->outcome = HISTORY_OK;
        op_out->end_us = end_of(w, i);
        op_out->out = number_of(model, op->out);
    } else if (op->phase == PHASE_FAILED) {
        op_out->outcome = HISTORY_FAILED;
    }
    return true;
}

static bool anybody_reads(const struct hermes_model *model, const struct model_world *w)
{
    for (uint8_t i = 0; i < model->setup->nodes; i++) {
        if (world_readable(w, i) && world_leased(w, i)) {
            return true;
        }
    }
    return false;
}

static bool check_history(const struct hermes_model *model, const struct model_world *w, bool read)
{
    struct history_op ops[MODEL_OPS + 2];
    struct history history = {.ops = ops};
    if (!value_is_nil(model, VALUE_START)) {
        ops[history.n++] = (struct history_op){.kind = HISTORY_WRITE,
                                               .in = VALUE_START,
                                               .expected = HISTORY_ABSENT,
                                               .out = HISTORY_ABSENT,
                                               .client = MODEL_OPS};
    }
    for (uint8_t i = 0; i < MODEL_OPS; i++) {
        history.n += history_op(model, w, i, &ops[history.n]);
    }
    if (read) {
        ops[history.n++] = (struct history_op){.kind = HISTORY_READ,
                                               .begin_us = TIME_NOW,
                                               .end_us = TIME_NOW,
                                               .in = HISTORY_ABSENT,
                                               .expected = HISTORY_ABSENT,
                                               .out = number_of(model, w->last),
                                               .client = MODEL_OPS};
    }
    struct check_report report;
    enum check_result result = check_linearizable(&history, 0, &report);
    HK_ASSERT(result == CHECK_ACCEPTED || result == CHECK_REFUSED);
    return result == CHECK_ACCEPTED;
}

/* The same few histories come again and again. */
static bool linear(const struct hermes_model *model, const struct model_world *w)
{
    struct {
        struct model_op ops[MODEL_OPS];
        uint8_t last;
        uint8_t read;
    } key;
    bool read = anybody_reads(model, w);
    memset(&key, 0, sizeof key);
    memcpy(key.ops, w->ops, sizeof key.ops);
    for (uint32_t i = 0; i < MODEL_OPS; i++) {
        key.ops[i].node = 0;
    }
    key.last = read ? w->last : 0;
    key.read = read;
    uint64_t hash = XXH3_64bits(&key, sizeof key) | 1u;
    struct histories *histories = &model->work->histories;
    if (remembered(histories, hash)) {
        return true;
    }
    bool accepted = check_history(model, w, read);
    if (accepted) {
        remember(histories, hash);
    }
    return accepted;
}

/* ---- States ---- */

static bool agree(const struct hermes_model *model, const struct model_world *w)
{
    for (uint8_t i = 0; i < model->setup->nodes; i++) {
        if (world_readable(w, i) && world_leased(w, i) &&
            !same(model, w->nodes[i].value, w->last)) {
            return false;
        }
    }
    return true;
}

static bool is_member(const struct model_world *w, uint8_t node)
{
    const struct model_view *newest = world_newest(w);
    return w->nodes[node].born != 0 && nodeset_has(newest->live, node) &&
           newest->born[node] == w->nodes[node].born;
}

static bool same_at_same_ts(const struct hermes_model *model, const struct model_world *w)
{
    for (uint8_t i = 0; i < model->setup->nodes; i++) {
        for (uint8_t j = 0; j < i; j++) {
            const struct model_node *a = &w->nodes[i];
            const struct model_node *b = &w->nodes[j];
            /* A reported tombstone may stand beside the key's next life. */
            bool reported = ((a->meta.flags | b->meta.flags) & KEY_REPORTED) != 0;
            if (is_member(w, i) && is_member(w, j) && a->meta.ts == b->meta.ts &&
                a->value != b->value && !reported) {
                return false;
            }
        }
    }
    return true;
}

const char *hermes_broken(const void *self, const void *state)
{
    const struct hermes_model *model = self;
    const struct model_world *w = state;
    if (!agree(model, w)) {
        return "two members that may serve would answer different values";
    }
    if (!same_at_same_ts(model, w)) {
        return "two members hold different values at one timestamp";
    }
    return linear(model, w) ? NULL : "what clients saw is not linearizable";
}

bool hermes_finished(const void *self, const void *state)
{
    const struct hermes_model *model = self;
    const struct model_world *w = state;
    for (uint32_t i = 0; i < MODEL_OPS; i++) {
        if (model->setup->ops[i] != TYPE_NONE && !op_ended(&w->ops[i])) {
            return false;
        }
    }
    return true;
}

bool judge_settled(const struct hermes_model *model, const struct model_world *w)
{
    for (uint32_t i = 0; i < MODEL_OPS; i++) {
        if (w->ops[i].phase != PHASE_WAITING && !op_ended(&w->ops[i])) {
            return false;
        }
    }
    for (uint8_t i = 0; i < model->setup->nodes; i++) {
        const struct model_node *n = &w->nodes[i];
        bool serves = is_member(w, i) && nodeset_has(world_newest(w)->operational, i);
        if (serves && (n->meta.state != HERMES_VALID || !same(model, n->value, w->last))) {
            return false;
        }
    }
    return true;
}
