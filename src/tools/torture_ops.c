#include "tools/torture_ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* Of a thousand operations on a key of the class so many are of the kind. */
struct share {
    enum history_kind kind;
    uint32_t permille;
};

static const struct share shares[TORTURE_CLASSES][12] = {
    [TORTURE_REGISTER] = {{HISTORY_READ, 600}, {HISTORY_WRITE, 400}},
    [TORTURE_COUNTER] = {{HISTORY_READ, 450}, {HISTORY_ADD, 550}},
    [TORTURE_GENERAL] =
        {
            {HISTORY_READ, 260},
            {HISTORY_EXISTS, 40},
            {HISTORY_WRITE, 120},
            {HISTORY_SET_IF, 130},
            {HISTORY_SET_ABSENT, 80},
            {HISTORY_SET_PRESENT, 40},
            {HISTORY_DELETE_PRESENT, 70},
            {HISTORY_DELETE_IF, 60},
            {HISTORY_GETDEL, 30},
            {HISTORY_ADD, 90},
            {HISTORY_GETSET, 80},
        },
};

void torture_op_read(const struct torture_key *key, struct history_op *op_out)
{
    *op_out = (struct history_op){.key = key->id,
                                  .in = HISTORY_ABSENT,
                                  .expected = HISTORY_ABSENT,
                                  .out = HISTORY_ABSENT,
                                  .kind = HISTORY_READ};
}

static enum history_kind draw_kind(enum torture_class class, struct random *random)
{
    uint32_t at = (uint32_t)random_below(random, 1000);
    const struct share *share = shares[class];
    while (at >= share->permille) {
        at -= share->permille;
        share++;
    }
    return share->kind;
}

static int64_t new_value(struct torture_keys *keys)
{
    int64_t value = keys->next_value;
    keys->next_value += TORTURE_VALUE_GAP;
    return value;
}

void torture_op_draw(struct torture_keys *keys, const struct torture_key *key,
                     struct random *random, struct history_op *op_out)
{
    torture_op_read(key, op_out);
    op_out->kind = (uint8_t)draw_kind(key->class, random);
    bool has_value = key->seen_known && key->seen != HISTORY_ABSENT;
    if (!has_value && op_out->kind == HISTORY_SET_IF) {
        op_out->kind = HISTORY_SET_ABSENT;
    } else if (!has_value && op_out->kind == HISTORY_DELETE_IF) {
        op_out->kind = HISTORY_READ;
    }
    switch ((uint32_t)op_out->kind) {
    case HISTORY_SET_IF:
        op_out->expected = key->seen;
        op_out->in = new_value(keys);
        break;
    case HISTORY_DELETE_IF:
        op_out->expected = key->seen;
        break;
    case HISTORY_WRITE:
    case HISTORY_SET_ABSENT:
    case HISTORY_SET_PRESENT:
    case HISTORY_GETSET:
        op_out->in = new_value(keys);
        break;
    case HISTORY_ADD:
        /* Undecided additions of the same amount are alike to the checker, and cheap. */
        op_out->in = random_chance(random, 800000) ? 1 : (int64_t)random_between(random, 1, 3);
        break;
    default:
        break;
    }
}

static struct bytes word(const char *text)
{
    return bytes_of(text, (uint32_t)strlen(text));
}

bool torture_op_say(const struct torture_key *key, const struct history_op *op,
                    struct torture_stream *stream)
{
    char name[TORTURE_NAME_BYTES];
    char in[TORTURE_VALUE_BYTES];
    char expected[TORTURE_VALUE_BYTES];
    struct bytes args[6] = {word("GET"), torture_key_name(key, name),
                            torture_value(key->class, op->in, in)};
    uint32_t n = 3;
    switch ((uint32_t)op->kind) {
    case HISTORY_READ:
        n = 2;
        break;
    case HISTORY_WRITE:
        args[0] = word("SET");
        break;
    case HISTORY_EXISTS:
        args[0] = word("EXISTS");
        n = 2;
        break;
    case HISTORY_DELETE_PRESENT:
        args[0] = word("DEL");
        n = 2;
        break;
    case HISTORY_GETDEL:
        args[0] = word("GETDEL");
        n = 2;
        break;
    case HISTORY_DELETE_IF:
        args[0] = word("DELIFEQ");
        args[2] = torture_value(key->class, op->expected, expected);
        break;
    case HISTORY_SET_IF:
        args[0] = word("SET");
        args[n++] = word("IFEQ");
        args[n++] = torture_value(key->class, op->expected, expected);
        break;
    case HISTORY_SET_ABSENT:
        args[0] = word("SET");
        args[n++] = word("NX");
        break;
    case HISTORY_SET_PRESENT:
        args[0] = word("SET");
        args[n++] = word("XX");
        break;
    case HISTORY_ADD:
        args[0] = word("INCRBY");
        break;
    case HISTORY_GETSET:
        args[0] = word("GETSET");
        break;
    default:
        HK_ASSERT(false);
    }
    return torture_stream_say(stream, n, args);
}

/* Errors that say that nothing was changed. */
bool torture_op_refuses(struct bytes text)
{
    static const char *const words[] = {"CLUSTERDOWN ", "LOADING ",  "TRYAGAIN ",
                                        "OOM ",         "LOSTSLOT ", "LOST "};
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        uint32_t n = (uint32_t)strlen(words[i]);
        if (text.n >= n && memcmp(text.at, words[i], n) == 0) {
            return true;
        }
    }
    return false;
}

static const char *understand_error(struct history_op *op, struct bytes text)
{
    op->outcome = HISTORY_FAILED;
    if (torture_op_refuses(text)) {
        return NULL;
    }
    op->outcome = HISTORY_UNKNOWN;
    return text.n >= 8 && memcmp(text.at, "UNKNOWN ", 8) == 0 ? NULL
                                                              : "an error that fits no command";
}

static const char *understand_value(const struct torture_key *key, struct history_op *op,
                                    const struct resp_client_reply *reply)
{
    if (reply->kind == RESP_CLIENT_NIL) {
        op->out = HISTORY_ABSENT;
        return NULL;
    }
    return reply->kind == RESP_CLIENT_BULK && torture_value_parse(key->class, reply->text, &op->out)
               ? NULL
               : "a value that nobody wrote";
}

static bool is_ok(const struct resp_client_reply *reply)
{
    return reply->kind == RESP_CLIENT_LINE && bytes_equal(reply->text, bytes_of("OK", 2));
}

static bool is_bit(const struct resp_client_reply *reply)
{
    return reply->kind == RESP_CLIENT_NUMBER && (reply->number == 0 || reply->number == 1);
}

const char *torture_op_understand(const struct torture_key *key, struct history_op *op,
                                  const struct resp_client_reply *reply)
{
    bool fits = true;
    if (reply->kind == RESP_CLIENT_ERROR) {
        return understand_error(op, reply->text);
    }
    op->outcome = HISTORY_OK;
    switch ((uint32_t)op->kind) {
    case HISTORY_READ:
    case HISTORY_GETSET:
    case HISTORY_GETDEL:
        return understand_value(key, op, reply);
    case HISTORY_WRITE:
        fits = is_ok(reply);
        break;
    case HISTORY_SET_IF:
    case HISTORY_SET_ABSENT:
    case HISTORY_SET_PRESENT:
        op->ok = is_ok(reply);
        fits = op->ok || reply->kind == RESP_CLIENT_NIL;
        break;
    case HISTORY_EXISTS:
    case HISTORY_DELETE_PRESENT:
    case HISTORY_DELETE_IF:
        op->ok = reply->number == 1;
        fits = is_bit(reply);
        break;
    case HISTORY_ADD:
        op->out = reply->number;
        fits = reply->kind == RESP_CLIENT_NUMBER;
        break;
    default:
        HK_ASSERT(false);
    }
    return fits ? NULL : "a reply that does not fit its command";
}

bool torture_op_lost(const struct resp_client_reply *reply)
{
    return reply->kind == RESP_CLIENT_ERROR && reply->text.n >= 9 &&
           memcmp(reply->text.at, "LOSTSLOT ", 9) == 0;
}

bool torture_op_updates(const struct history_op *op)
{
    return op->kind != HISTORY_READ && op->kind != HISTORY_EXISTS;
}
