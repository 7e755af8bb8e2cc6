#include "sim/understand.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/phrase.h"
#include "sim/world.h"

/* docs/RESP.md: what MEMORY USAGE adds to the bytes of key and value. */
#define USAGE_BYTES 64

static bool is_text(struct bytes bytes, const char *text)
{
    return bytes.n == strlen(text) && memcmp(bytes.at, text, bytes.n) == 0;
}

static bool begins(struct bytes bytes, const char *text)
{
    size_t n = strlen(text);
    return bytes.n >= n && memcmp(bytes.at, text, n) == 0;
}

/* From now on it is an operation without inputs. */
static void turn_into(struct sim_op *op, enum history_kind kind)
{
    op->h.kind = (uint8_t)kind;
    op->h.in = op->h.expected = HISTORY_ABSENT;
    op->h.deadline = 0;
}

static const char *understand_value(const struct world *world, struct sim_op *op,
                                    const struct answer *answer)
{
    if (answer->kind == ANSWER_NIL) {
        op->h.out = HISTORY_ABSENT;
        return NULL;
    }
    if (answer->kind != ANSWER_VALUE) {
        return "an answer that is no value";
    }
    enum key_class class = world->clients.keys[op->key].class;
    if (class != KEY_EXTRA &&
        !value_decode(class, world->setup.value_profile, answer->value, &op->h.out)) {
        return "a value that nobody wrote";
    }
    return NULL;
}

/* A part of the value from its beginning; an empty one says that there is none. */
static const char *understand_part(const struct world *world, struct sim_op *op,
                                   const struct answer *answer)
{
    if (answer->kind != ANSWER_VALUE) {
        return "an answer that is no part of a value";
    }
    if (answer->value.n == 0) {
        op->h.out = HISTORY_ABSENT;
        return NULL;
    }
    if (phrases[op->phrase].hears == HEARS_RANGE) {
        return understand_value(world, op, answer);
    }
    op->h.out = answer->value.n == 8 ? (int64_t)get_u64(answer->value.at) : 0;
    return answer->value.n == 8 ? NULL : "a part of another length than was asked for";
}

static const char *understand_decimal(struct sim_op *op, const struct answer *answer)
{
    char text[64] = "";
    int used = 0;
    if (answer->kind != ANSWER_VALUE || answer->value.n == 0 || answer->value.n >= sizeof text) {
        return "an answer that is no decimal number";
    }
    memcpy(text, answer->value.at, answer->value.n);
    if (op->extra) {
        return NULL;
    }
    return sscanf(text, "%" SCNd64 "%n", &op->h.out, &used) == 1 &&
                   (uint32_t)used == answer->value.n
               ? NULL
               : "a sum that is no whole number";
}

/* Whether a condition held: said by OK and nil, or by 1 and 0. */
static const char *understand_ok(struct sim_op *op, const struct answer *answer)
{
    bool number = answer->kind == ANSWER_NUMBER;
    op->h.ok = number ? answer->number == 1 : answer->kind == ANSWER_OK;
    if (phrases[op->phrase].hears == HEARS_HELD || !op->said) {
        bool plain = answer->kind == ANSWER_OK || answer->kind == ANSWER_NIL;
        if (plain || phrases[op->phrase].hears == HEARS_HELD) {
            return plain ? NULL : "an answer that is neither OK nor nil";
        }
    }
    return number && (answer->number == 0 || answer->number == 1) ? NULL
                                                                  : "an answer that is not 0 or 1";
}

/* SET with GET and a condition: the value before tells whether it held. */
static const char *understand_before(const struct world *world, struct sim_op *op,
                                     const struct answer *answer)
{
    enum hears hears = (enum hears)phrases[op->phrase].hears;
    const char *wrong = understand_value(world, op, answer);
    int64_t before = op->h.out;
    bool there = answer->kind == ANSWER_VALUE;
    if (hears == HEARS_SET && there) {
        op->h.kind = HISTORY_GETSET;
    } else if (hears == HEARS_UNSET && !there) {
        op->h.ok = true;
    } else if (hears == HEARS_COMPARED && there && before == op->h.expected) {
        op->h.ok = true;
    } else {
        turn_into(op, HISTORY_READ);
    }
    if (op->h.kind == HISTORY_SET_ABSENT || op->h.kind == HISTORY_SET_IF) {
        op->h.out = HISTORY_ABSENT;
    }
    return wrong;
}

static const char *understand_length(struct sim_op *op, const struct answer *answer)
{
    if (answer->kind != ANSWER_NUMBER || answer->number < 0) {
        return "an answer that is no length";
    }
    if (op->h.kind == HISTORY_EXISTS) {
        op->h.ok = answer->number > 0;
        return NULL;
    }
    op->h.out = answer->number == 0 ? HISTORY_ABSENT : answer->number;
    return NULL;
}

/* SETRANGE leaves a value that was longer as long as it was. */
static const char *understand_end(struct sim_op *op, const struct answer *answer)
{
    if (answer->kind != ANSWER_NUMBER) {
        return "an answer that is no length";
    }
    if (answer->number < op->h.in) {
        return "a value that is shorter than what was written";
    }
    if (answer->number > op->h.in) {
        turn_into(op, HISTORY_READ);
        op->h.out = answer->number;
    }
    return NULL;
}

/* EXPIRE on a condition that did not hold. Without XX it says too little: the key is absent, or has
 * some deadline, or none. */
static const char *understand_unexpired(struct sim_op *op, const struct answer *answer)
{
    const char *wrong = understand_ok(op, answer);
    if (!op->h.ok && phrases[op->phrase].hears == HEARS_ONE_XX) {
        turn_into(op, HISTORY_PERSIST);
    } else if (!op->h.ok) {
        op->weak = true;
    }
    return wrong;
}

/* TTL and its kin. A deadline counts as known only if the answer gives it to the millisecond. */
static const char *understand_deadline(const struct machine *m, struct sim_op *op,
                                       const struct answer *answer)
{
    enum hears hears = (enum hears)phrases[op->phrase].hears;
    if (answer->kind != ANSWER_NUMBER || answer->number < -2) {
        return "an answer that is no deadline";
    }
    op->h.out = answer->number == -2 ? HISTORY_ABSENT : answer->number == -1 ? 0 : 1;
    if (answer->number > 0 && hears == HEARS_DEADLINE) {
        op->h.deadline = (uint64_t)answer->number;
    } else if (answer->number > 0 && hears == HEARS_PTTL) {
        op->h.deadline = (uint64_t)answer->number + machine_wall_ms(m);
    }
    return NULL;
}

/* Commands whose reply says in its own way that the key is there. */
static const char *understand_there(struct sim_op *op, const struct answer *answer)
{
    struct bytes value = answer->value;
    bool nil = answer->kind == ANSWER_NIL;
    bool text = answer->kind == ANSWER_VALUE;
    bool number = answer->kind == ANSWER_NUMBER;
    bool error = answer->kind == ANSWER_ERROR;
    bool there = false;
    bool absent = nil;
    switch (phrases[op->phrase].hears) {
    case HEARS_TYPE:
        there = text && is_text(value, "string");
        absent = text && is_text(value, "none");
        break;
    case HEARS_REFERENCE:
        there = number && answer->number == 1;
        break;
    case HEARS_ENCODING:
        there =
            text && (is_text(value, "int") || is_text(value, "embstr") || is_text(value, "raw"));
        break;
    case HEARS_UNTRACKED:
        there = error && (begins(value, "-ERR An LFU ") || begins(value, "-ERR idle times "));
        break;
    case HEARS_RENAMED:
        there = answer->kind == ANSWER_OK || (number && answer->number == 0);
        absent = error && begins(value, "-ERR no such key");
        break;
    default:
        break;
    }
    op->h.ok = there;
    return there || absent ? NULL : "an answer that does not fit the question";
}

static const char *understand_usage(const struct world *world, struct sim_op *op,
                                    const struct answer *answer)
{
    int64_t beside = (int64_t)world->clients.keys[op->key].n + USAGE_BYTES;
    if (answer->kind == ANSWER_NIL) {
        op->h.ok = false;
        op->h.out = HISTORY_ABSENT;
        return NULL;
    }
    op->h.ok = true;
    op->h.out = op->h.kind == HISTORY_READ ? answer->number - beside : HISTORY_ABSENT;
    return answer->kind == ANSWER_NUMBER && answer->number >= beside ? NULL
                                                                     : "too little memory in use";
}

const char *understand(struct machine *m, struct sim_op *op, const struct answer *answer)
{
    switch ((enum hears)phrases[op->phrase].hears) {
    case HEARS_OK:
        return answer->kind == ANSWER_OK ? NULL : "an answer that is not OK";
    case HEARS_VALUE:
        return understand_value(m->world, op, answer);
    case HEARS_SUM:
        op->h.out = answer->number;
        return answer->kind == ANSWER_NUMBER ? NULL : "an answer that is no number";
    case HEARS_DECIMAL:
        return understand_decimal(op, answer);
    case HEARS_HELD:
    case HEARS_ONE:
        return understand_ok(op, answer);
    case HEARS_UNSET:
    case HEARS_SET:
    case HEARS_COMPARED:
        return understand_before(m->world, op, answer);
    case HEARS_LENGTH:
        return understand_length(op, answer);
    case HEARS_END:
        return understand_end(op, answer);
    case HEARS_ONE_NX:
    case HEARS_ONE_XX:
        return understand_unexpired(op, answer);
    case HEARS_DEADLINE:
    case HEARS_PTTL:
    case HEARS_SECONDS:
        return understand_deadline(m, op, answer);
    case HEARS_TYPE:
    case HEARS_REFERENCE:
    case HEARS_ENCODING:
    case HEARS_UNTRACKED:
    case HEARS_RENAMED:
        return understand_there(op, answer);
    case HEARS_RANGE:
    case HEARS_HEAD:
        return understand_part(m->world, op, answer);
    case HEARS_USAGE:
        return understand_usage(m->world, op, answer);
    case HEARS_ANYTHING:
        return answer->kind == ANSWER_ERROR ? "an error" : NULL;
    case HEARS_SPOKEN:
    case HEARS_TEXT:
        break;
    }
    return "an answer to what nobody asks";
}
