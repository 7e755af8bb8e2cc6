/* A step in words: what happened, and what changed by it. */
#include "explore/hermes_model.h"

#include <string.h>

#define LETTER(node) ((char)('A' + (node)))

static const char *const type_letters[] = {
    [TYPE_NONE] = "?", [TYPE_WRITE] = "w", [TYPE_RMW] = "r", [TYPE_DELETE] = "d", [TYPE_READ] = "q",
};

static const char *const phase_words[] = {
    [PHASE_WAITING] = "has not begun",
    [PHASE_ISSUED] = "is under way",
    [PHASE_AGAIN] = "will be tried again",
    [PHASE_CHECKING] = "asks a majority",
    [PHASE_CONFIRM] = "took effect and has to be confirmed",
    [PHASE_OK] = "is answered",
    [PHASE_FAILED] = "is answered: lost",
    [PHASE_UNKNOWN] = "ends unknown",
};

/* Operations by letter and number: w1 and r2 are the first operation, a write, and the second, an
 * RMW. */
static void print_op(const struct hermes_model *model, uint8_t op, FILE *to)
{
    fprintf(to, "%s%u", type_letters[model->setup->ops[op]], op + 1u);
}

static void print_value(const struct hermes_model *model, uint8_t value, FILE *to)
{
    if (value == VALUE_NONE) {
        fputs("nothing", to);
    } else if (value == VALUE_START) {
        fputs(model->setup->start == START_VALUE ? "v" : "tombstone", to);
    } else {
        uint8_t op = value_op(value);
        print_op(model, op, to);
        for (uint32_t i = VALUE_START + 1u + op * MODEL_TRIES; i < value; i++) {
            fputc('\'', to);
        }
    }
}

/* A c_id by the member that has it, with a stroke for each incarnation that was not there at first.
 */
static void print_ts(const struct model_world *w, uint64_t ts, FILE *to)
{
    for (uint32_t e = 0; e < w->nviews && ts != 0; e++) {
        for (uint32_t i = 0; i < MODEL_NODES; i++) {
            const struct model_view *view = &w->views[e];
            if (view->cid[i] != 0 && view->cid[i] == stamp_cid(ts)) {
                fprintf(to, "<%u,%c%s>", (unsigned)stamp_version(ts), LETTER(i),
                        view->born[i] > 1 ? "'" : "");
                return;
            }
        }
    }
    fprintf(to, "<%u,%u>", (unsigned)stamp_version(ts), stamp_cid(ts));
}

static void print_kind(const struct model_message *m, FILE *to)
{
    if (m->kind == MESSAGE_EMPTY) {
        fputs("an empty chunk", to);
        return;
    }
    fputs(hermes_kind_names[m->kind], to);
    if ((m->flags & HERMES_F_ANSWER) != 0) {
        fputs(" (answer", to);
        fputs((m->flags & HERMES_F_VALID) != 0 ? ", Valid)" : ")", to);
    } else if (m->kind == HERMES_ITEM && (m->flags & HERMES_F_VALID) != 0) {
        fputs((m->flags & HERMES_F_REPORTED) != 0 ? " (Valid, reported)" : " (Valid)", to);
    }
}

static void print_message(const struct hermes_model *model, const struct model_world *w,
                          const struct model_message *m, FILE *to)
{
    print_kind(m, to);
    if (m->ts != 0) {
        fputc(' ', to);
        print_ts(w, ts_large(m->ts), to);
    }
    if (m->kind == HERMES_INV || m->kind == HERMES_ITEM) {
        fputs(" = ", to);
        print_value(model, m->value, to);
    }
}

/* ---- What happened ---- */

static void print_deliver(const struct hermes_model *model, const struct model_world *before,
                          uint8_t number, FILE *to)
{
    const struct model_message *m = &before->messages[number];
    fprintf(to, "%c receives ", LETTER(m->to));
    print_message(model, before, m, to);
    fprintf(to, " of %c", LETTER(m->from));
    if (before->nodes[m->from].born != m->from_born) {
        fputs(" (a process that is gone)", to);
    }
    if (m->epoch != before->nodes[m->to].epoch) {
        fprintf(to, ", sent in epoch %u", m->epoch);
    }
}

static void print_operation(const struct hermes_model *model, const struct action *action,
                            const struct model_world *before, FILE *to)
{
    if (action->kind == ACTION_BEGIN) {
        fprintf(to, "%c takes up ", LETTER(action->b));
        print_op(model, action->a, to);
        return;
    }
    fprintf(to, "%c ", LETTER(before->ops[action->a].node));
    fputs(action->kind == ACTION_AGAIN ? "tries again " : "asks about ", to);
    print_op(model, action->a, to);
}

static void print_timer(const struct action *action, const struct model_world *before, FILE *to)
{
    static const char *const flows[] = {
        [FLOW_FREE] = "nothing",
        [FLOW_UPDATE] = "its pending update",
        [FLOW_REPLAY] = "its replay",
        [FLOW_CHECK] = "its question to a majority",
        [FLOW_COLLECT] = "its question about the tombstone",
    };
    const struct slot *slot = &before->nodes[action->a].slots[action->b - 1];
    fprintf(to, "a timer of %c: %s", LETTER(action->a), flows[slot->kind]);
}

static void print_action(const struct hermes_model *model, const struct action *action,
                         const struct model_world *before, const struct model_world *after,
                         FILE *to)
{
    char node = LETTER(action->a);
    switch ((enum action_kind)action->kind) {
    case ACTION_DELIVER:
        print_deliver(model, before, action->a, to);
        break;
    case ACTION_BEGIN:
    case ACTION_AGAIN:
    case ACTION_CONFIRM:
        print_operation(model, action, before, to);
        break;
    case ACTION_TIMER:
        print_timer(action, before, to);
        break;
    case ACTION_WAITED:
        fprintf(to, "an operation has waited long at %c", node);
        break;
    case ACTION_PARK:
        fprintf(to, "an operation comes to %c and has to wait", node);
        break;
    case ACTION_SWEEP:
        fprintf(to, "the background sweep of %c", node);
        break;
    case ACTION_TICK:
        fputs("a grace passes", to);
        break;
    case ACTION_DROP:
        fprintf(to, "epoch %u is decided, without %c", after->nviews, node);
        fputs(after->nodes[action->a].born == 0 ? ", which is dead" : ", which does not know", to);
        break;
    case ACTION_ADMIT:
        fprintf(to, "epoch %u is decided: a new process of %c is a shadow", after->nviews, node);
        break;
    case ACTION_PROMOTE:
        fprintf(to, "epoch %u is decided: %c is operational", after->nviews, node);
        break;
    case ACTION_ADOPT:
        fprintf(to, "%c learns epoch %u", node, action->b);
        break;
    case ACTION_CHUNK:
        fprintf(to, "%c sends a chunk to %c", node, LETTER(action->b));
        break;
    case ACTION_ACCEPT:
        fprintf(to, "%c accepts a view after epoch %u", node, before->nodes[action->a].epoch);
        break;
    case ACTION_NONE:
        fputs("(the end)", to);
        break;
    }
}

/* ---- What changed ---- */

static void print_key(const struct hermes_model *model, const struct model_world *w, uint8_t node,
                      FILE *to)
{
    const struct model_node *n = &w->nodes[node];
    fputs(hermes_state_names[n->meta.state], to);
    if (n->meta.ts != 0) {
        fputc(' ', to);
        print_ts(w, n->meta.ts, to);
    }
    fputs(" = ", to);
    print_value(model, n->value, to);
    if (n->meta.owner == 0 && (n->meta.flags & KEY_AGREED) != 0) {
        fputs(" (agreed)", to);
    } else if ((n->meta.flags & KEY_REPORTED) != 0) {
        fputs(" (reported)", to);
    }
}

static void print_nodes(const struct hermes_model *model, const struct model_world *before,
                        const struct model_world *after, FILE *to)
{
    for (uint8_t i = 0; i < model->setup->nodes; i++) {
        const struct key_meta *a = &before->nodes[i].meta;
        const struct key_meta *b = &after->nodes[i].meta;
        uint8_t mask = KEY_REPORTED | KEY_AGREED;
        bool changed = a->ts != b->ts || a->state != b->state ||
                       before->nodes[i].value != after->nodes[i].value ||
                       (a->owner == 0 && b->owner == 0 && ((a->flags ^ b->flags) & mask) != 0);
        if (after->nodes[i].born != 0 && changed) {
            fprintf(to, "; %c is ", LETTER(i));
            print_key(model, after, i, to);
        }
    }
}

/* Whether the world has the message, its slot in use or not. */
static bool holds(const struct model_world *w, const struct model_message *m)
{
    for (uint32_t i = 0; i < w->nmessages; i++) {
        struct model_message other = w->messages[i];
        other.gen = m->gen;
        if (memcmp(&other, m, sizeof other) == 0) {
            return true;
        }
    }
    return false;
}

/* New messages; those that differ by their receiver only are told together. */
static void print_sent(const struct hermes_model *model, const struct model_world *before,
                       const struct model_world *after, FILE *to)
{
    bool said[MODEL_MESSAGES] = {false};
    for (uint32_t i = 0; i < after->nmessages; i++) {
        const struct model_message *m = &after->messages[i];
        if (said[i] || holds(before, m)) {
            continue;
        }
        fprintf(to, "; %c sends ", LETTER(m->from));
        print_message(model, after, m, to);
        fputs(" to", to);
        for (uint32_t k = i; k < after->nmessages; k++) {
            struct model_message other = after->messages[k];
            uint8_t receiver = other.to;
            bool new = !holds(before, &other);
            other.to = m->to;
            other.to_born = m->to_born;
            if (new &&memcmp(&other, m, sizeof other) == 0) {
                said[k] = true;
                fprintf(to, " %c", LETTER(receiver));
            }
        }
    }
}

static void print_operations(const struct hermes_model *model, const struct model_world *before,
                             const struct model_world *after, FILE *to)
{
    for (uint8_t i = 0; i < MODEL_OPS; i++) {
        const struct model_op *op = &after->ops[i];
        bool begun = before->ops[i].phase == PHASE_WAITING && op->phase == PHASE_ISSUED;
        if (op->phase != before->ops[i].phase && !begun) {
            fputs("; ", to);
            print_op(model, i, to);
            fprintf(to, " %s", phase_words[op->phase]);
        }
        uint8_t type = model->setup->ops[i];
        bool saw = type == TYPE_READ && op->phase == PHASE_OK;
        if ((begun && type == TYPE_RMW) || (saw && before->ops[i].phase != PHASE_OK)) {
            fputs(saw ? ": " : "; it sees ", to);
            print_value(model, op->out, to);
        }
    }
}

void hermes_describe(const void *self, const void *before, const void *after, uint64_t number,
                     FILE *to)
{
    const struct hermes_model *model = self;
    struct action action = action_of(number);
    print_action(model, &action, before, after, to);
    print_operations(model, before, after, to);
    print_nodes(model, before, after, to);
    print_sent(model, before, after, to);
}
