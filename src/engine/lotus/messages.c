/* What Lotus's messages carry, and what no correct member says. Fixed parts stand first, then the
 * bytes that they give the lengths of; a key's length takes three bytes, for MSG_KEY_MAX is just
 * too long for two.
 *
 * head     age 16, version of the map 8
 * item     hint 8, limit or room 4, length of key 3, of end 3, mode 1, flags 1; key, end
 * row      flags 1 (END: nothing more), length of key 3, of value 4, version 8, hint 8; key, value
 * request  operations 4, watches 4, flags 4; the operations, the watches
 * op       kind 1, zero 1, flags 2, lengths of key 4, value 4, argument 4, number 8; the three
 * watch    version 8, lengths of key 4, end 4, limit 4, flags 2, whether it is a range 1, zero 1;
 *          key, end
 * answers  verdict 1; answers
 * answer   kind 1, applied 1, slot 2, length of value 4, number 8, version 8; value */
#include "engine/lotus/lotus.h"

#include <stddef.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/meta.h"
#include "base/slot.h"
#include "engine/lotus/map.h"

#define ITEM_BYTES 20u
#define ROW_BYTES 24u
#define END_BYTES 1u
#define REQUEST_BYTES 12u
#define OP_BYTES 24u
#define WATCH_BYTES 24u
#define ANSWER_BYTES 24u
#define NONCE_BYTES 8u
#define PARTICIPANTS_BYTES 8u

static const char version_of_nobody[] = "a version that nobody gives";

/* ---- Pieces ---- */

static void put_u24(uint8_t *at, uint32_t v)
{
    put_u16(at, (uint16_t)v);
    at[2] = (uint8_t)(v >> 16);
}

static uint32_t get_u24(const uint8_t *at)
{
    return get_u16(at) | (uint32_t)at[2] << 16;
}

static uint8_t *put_bytes(uint8_t *at, struct bytes b)
{
    if (b.n > 0) {
        memcpy(at, b.at, b.n);
    }
    return at + b.n;
}

/* The next n bytes of `rest`; false: there are not so many. */
static bool cut(struct bytes *rest, uint32_t n, struct bytes *out)
{
    if (n > rest->n) {
        return false;
    }
    *out = bytes_of(rest->at, n);
    rest->at += n;
    rest->n -= n;
    return true;
}

static bool cut_key(struct bytes *rest, uint32_t n, struct bytes *out)
{
    return n <= MSG_KEY_MAX && cut(rest, n, out);
}

/* ---- Ranges ---- */

bool lotus_range_slot(struct bytes start, struct bytes end, uint16_t *slot_out)
{
    const uint8_t *open = start.n > 0 ? memchr(start.at, '{', start.n) : NULL;
    if (open == NULL) {
        return false;
    }
    size_t before = (size_t)(open - start.at) + 1;
    const uint8_t *close = memchr(open + 1, '}', start.n - before);
    if (close == NULL || close == open + 1) {
        return false;
    }
    uint32_t n = (uint32_t)(close - start.at) + 1;
    *slot_out = slot_of_key(bytes_of(start.at, n));
    if (end.n < n || memcmp(end.at, start.at, n - 1) != 0) {
        return false;
    }
    /* Or the end is the first key that does not begin so. */
    return end.at[n - 1] == '}' || (end.n == n && end.at[n - 1] == '}' + 1);
}

/* ---- Heads ---- */

uint8_t *lotus_head_put(uint8_t *at, const struct lotus_head *head)
{
    put_u64(at, head->age.us);
    put_u64(at + 8, head->age.who);
    put_u64(at + 16, head->map);
    return at + LOTUS_HEAD_BYTES;
}

static bool take_head(struct bytes *rest, struct lotus_head *head)
{
    struct bytes b;
    if (!cut(rest, LOTUS_HEAD_BYTES, &b)) {
        return false;
    }
    *head = (struct lotus_head){.age = {.us = get_u64(b.at), .who = get_u64(b.at + 8)},
                                .map = get_u64(b.at + 16)};
    return true;
}

void lotus_head_take(struct bytes *rest, struct lotus_head *head_out)
{
    HK_ASSERT(take_head(rest, head_out));
}

/* ---- Items ---- */

uint32_t lotus_item_bytes(const struct lotus_item *item)
{
    return ITEM_BYTES + item->key.n + item->end.n;
}

uint8_t *lotus_item_put(uint8_t *at, const struct lotus_item *item)
{
    put_u64(at, item->hint);
    put_u32(at + 8, (item->flags & LOTUS_ITEM_RANGE) != 0 ? item->limit : item->room);
    put_u24(at + 12, item->key.n);
    put_u24(at + 15, item->end.n);
    at[18] = item->mode;
    at[19] = item->flags;
    return put_bytes(put_bytes(at + ITEM_BYTES, item->key), item->end);
}

static bool take_item(struct bytes *rest, struct lotus_item *item)
{
    struct bytes b;
    if (!cut(rest, ITEM_BYTES, &b)) {
        return false;
    }
    *item = (struct lotus_item){.mode = b.at[18], .flags = b.at[19], .hint = get_u64(b.at)};
    *((item->flags & LOTUS_ITEM_RANGE) != 0 ? &item->limit : &item->room) = get_u32(b.at + 8);
    return cut_key(rest, get_u24(b.at + 12), &item->key) &&
           cut_key(rest, get_u24(b.at + 15), &item->end);
}

bool lotus_item_take(struct bytes *rest, struct lotus_item *item_out)
{
    bool more = rest->n > 0;
    HK_ASSERT(!more || take_item(rest, item_out));
    return more;
}

static const char *item_invalid(const struct lotus_item *item)
{
    const uint8_t flags = LOTUS_ITEM_RANGE | LOTUS_ITEM_REVERSE | LOTUS_ITEM_KEYS;
    bool range = (item->flags & LOTUS_ITEM_RANGE) != 0;
    if (item->mode != LOCK_S && item->mode != LOCK_X) {
        return "an item has no mode";
    }
    if ((item->flags & ~flags) != 0 || (!range && (item->flags & LOTUS_ITEM_REVERSE) != 0)) {
        return "an item's flags mean nothing";
    }
    if (!range && item->end.n > 0) {
        return "a point has an end";
    }
    if (item->room != 0 && item->mode != LOCK_X) {
        return "a point has room and is only read";
    }
    return range && item->hint != 0 ? "a range has a hint" : NULL;
}

static const char *items_invalid(struct bytes rest)
{
    struct lotus_item item;
    const char *why = NULL;
    uint32_t n = 0;
    for (; rest.n > 0 && why == NULL; n++) {
        why = n == LOTUS_ITEMS_MAX       ? "too many items"
              : !take_item(&rest, &item) ? "an item is cut off"
                                         : item_invalid(&item);
    }
    return n == 0 ? "no items" : why;
}

/* ---- Rows ---- */

uint32_t lotus_row_bytes(const struct lotus_row *row)
{
    return (row->flags & LOTUS_ROW_END) != 0 ? END_BYTES : ROW_BYTES + row->key.n + row->value.n;
}

uint8_t *lotus_row_put(uint8_t *at, const struct lotus_row *row)
{
    at[0] = row->flags;
    if ((row->flags & LOTUS_ROW_END) != 0) {
        return at + END_BYTES;
    }
    put_u24(at + 1, row->key.n);
    put_u32(at + 4, row->value.n);
    put_u64(at + 8, row->version);
    put_u64(at + 16, row->hint);
    return put_bytes(put_bytes(at + ROW_BYTES, row->key), row->value);
}

static bool take_row(struct bytes *rest, struct lotus_row *row)
{
    struct bytes b;
    if (rest->n > 0 && (rest->at[0] & LOTUS_ROW_END) != 0) {
        *row = (struct lotus_row){.flags = rest->at[0]};
        return cut(rest, END_BYTES, &b);
    }
    if (!cut(rest, ROW_BYTES, &b)) {
        return false;
    }
    *row = (struct lotus_row){
        .flags = b.at[0], .version = get_u64(b.at + 8), .hint = get_u64(b.at + 16)};
    return cut_key(rest, get_u24(b.at + 1), &row->key) && cut(rest, get_u32(b.at + 4), &row->value);
}

bool lotus_row_take(struct bytes *rest, struct lotus_row *row_out)
{
    bool more = rest->n > 0;
    HK_ASSERT(!more || take_row(rest, row_out));
    return more;
}

static const char *row_invalid(const struct lotus_row *row, bool written)
{
    bool absent = (row->flags & LOTUS_ROW_ABSENT) != 0;
    if ((row->flags & LOTUS_ROW_END) != 0) {
        return written || row->flags != LOTUS_ROW_END ? "the end of an item where none belongs"
                                                      : NULL;
    }
    if ((row->flags & ~(KEY_DEADLINE | LOTUS_ROW_ABSENT)) != 0) {
        return "a row's flags mean nothing";
    }
    if (row->version >= TXN_ABSENT || (row->version == 0 && (written || !absent))) {
        return version_of_nobody;
    }
    if (absent && (row->value.n > 0 || (row->flags & KEY_DEADLINE) != 0)) {
        return "an absent row has a value";
    }
    return (row->flags & KEY_DEADLINE) != 0 && row->value.n < 8 ? "a deadline is cut off" : NULL;
}

/* written: of FINISH and PREPARE; else read, and the last one is an END. */
static const char *rows_invalid(struct bytes rest, bool written)
{
    struct lotus_row row = {.flags = 0};
    const char *why = NULL;
    for (uint32_t n = 0; rest.n > 0 && why == NULL; n++) {
        why = written && n == LOTUS_WRITES_MAX ? "too many rows"
              : !take_row(&rest, &row)         ? "a row is cut off"
                                               : row_invalid(&row, written);
    }
    if (why == NULL && !written && (row.flags & LOTUS_ROW_END) == 0) {
        return "an item without an end";
    }
    return why;
}

/* ---- Requests ---- */

uint64_t lotus_request_bytes(const struct txn_request *request)
{
    uint64_t bytes = REQUEST_BYTES + (uint64_t)request->ops_n * OP_BYTES +
                     (uint64_t)request->watches_n * WATCH_BYTES;
    for (uint32_t i = 0; i < request->ops_n; i++) {
        const struct op *op = &request->ops[i];
        bytes += (uint64_t)op->key.n + op->value.n + op->arg.n;
    }
    for (uint32_t i = 0; i < request->watches_n; i++) {
        bytes += (uint64_t)request->watches[i].key.n + request->watches[i].end.n;
    }
    return bytes;
}

static uint8_t *put_op(uint8_t *at, const struct op *op)
{
    at[0] = op->kind;
    at[1] = 0;
    put_u16(at + 2, op->flags);
    put_u32(at + 4, op->key.n);
    put_u32(at + 8, op->value.n);
    put_u32(at + 12, op->arg.n);
    put_u64(at + 16, (uint64_t)op->number);
    return put_bytes(put_bytes(put_bytes(at + OP_BYTES, op->key), op->value), op->arg);
}

static bool take_op(struct bytes *rest, struct op *op)
{
    struct bytes b;
    if (!cut(rest, OP_BYTES, &b) || b.at[1] != 0) {
        return false;
    }
    *op = (struct op){
        .kind = b.at[0], .flags = get_u16(b.at + 2), .number = (int64_t)get_u64(b.at + 16)};
    return cut_key(rest, get_u32(b.at + 4), &op->key) && cut(rest, get_u32(b.at + 8), &op->value) &&
           cut(rest, get_u32(b.at + 12), &op->arg) && op->kind < TXN_OP_END &&
           op->kind != OP_EXPIRED;
}

static uint8_t *put_watch(uint8_t *at, const struct txn_watch *watch)
{
    put_u64(at, watch->version);
    put_u32(at + 8, watch->key.n);
    put_u32(at + 12, watch->end.n);
    put_u32(at + 16, watch->limit);
    put_u16(at + 20, watch->flags);
    at[22] = watch->range;
    at[23] = 0;
    return put_bytes(put_bytes(at + WATCH_BYTES, watch->key), watch->end);
}

static bool take_watch(struct bytes *rest, struct txn_watch *watch)
{
    struct bytes b;
    if (!cut(rest, WATCH_BYTES, &b) || b.at[22] > 1 || b.at[23] != 0) {
        return false;
    }
    *watch = (struct txn_watch){.version = get_u64(b.at),
                                .range = b.at[22] != 0,
                                .flags = get_u16(b.at + 20),
                                .limit = get_u32(b.at + 16)};
    return cut_key(rest, get_u32(b.at + 8), &watch->key) &&
           cut_key(rest, get_u32(b.at + 12), &watch->end);
}

uint8_t *lotus_request_put(uint8_t *at, const struct txn_request *request)
{
    put_u32(at, request->ops_n);
    put_u32(at + 4, request->watches_n);
    put_u32(at + 8, request->flags);
    at += REQUEST_BYTES;
    for (uint32_t i = 0; i < request->ops_n; i++) {
        at = put_op(at, &request->ops[i]);
    }
    for (uint32_t i = 0; i < request->watches_n; i++) {
        at = put_watch(at, &request->watches[i]);
    }
    return at;
}

/* What stands in front of operations and watches; false: it says what no request may. */
static bool take_request(struct bytes *rest, struct txn_request *request)
{
    struct bytes b;
    if (!cut(rest, REQUEST_BYTES, &b)) {
        return false;
    }
    *request = (struct txn_request){
        .ops_n = get_u32(b.at), .watches_n = get_u32(b.at + 4), .flags = get_u32(b.at + 8)};
    return request->ops_n <= TXN_OPS_MAX && request->watches_n <= TXN_OBJECTS_MAX &&
           request->ops_n + request->watches_n > 0 &&
           (request->flags & ~(uint32_t)(TXN_ALL | TXN_STOP | TXN_ABSENCE)) == 0;
}

void lotus_request_take(struct bytes rest, uint8_t space, struct op *ops, struct txn_watch *watches,
                        struct txn_request *request_out)
{
    HK_ASSERT(take_request(&rest, request_out));
    request_out->ops = ops;
    request_out->watches = watches;
    for (uint32_t i = 0; i < request_out->ops_n; i++) {
        HK_ASSERT(take_op(&rest, &ops[i]));
        ops[i].space = space;
    }
    for (uint32_t i = 0; i < request_out->watches_n; i++) {
        HK_ASSERT(take_watch(&rest, &watches[i]));
    }
    HK_ASSERT(rest.n == 0);
}

static const char *request_invalid(struct bytes rest)
{
    struct txn_request request;
    struct op op;
    struct txn_watch watch;
    if (!take_request(&rest, &request)) {
        return "what a request begins with is wrong";
    }
    for (uint32_t i = 0; i < request.ops_n; i++) {
        if (!take_op(&rest, &op)) {
            return "an operation is cut off, or no client's";
        }
    }
    for (uint32_t i = 0; i < request.watches_n; i++) {
        if (!take_watch(&rest, &watch)) {
            return "a watch is cut off, or none";
        }
    }
    return rest.n > 0 ? "bytes behind a request" : NULL;
}

/* ---- Answers ---- */

static struct bytes answer_bytes(const struct answer *answer)
{
    bool has = answer->kind == ANSWER_VALUE || answer->kind == ANSWER_PAIRS;
    return has ? answer->value : bytes_of(NULL, 0);
}

uint64_t lotus_answers_bytes(enum txn_verdict verdict, const struct answer *answers, uint32_t n)
{
    uint64_t bytes = 1;
    for (uint32_t i = 0; i < n && verdict != TXN_CONFLICT; i++) {
        bytes += ANSWER_BYTES + answer_bytes(&answers[i]).n;
    }
    return bytes;
}

uint8_t *lotus_answers_put(uint8_t *at, enum txn_verdict verdict, const struct answer *answers,
                           const uint64_t *versions, uint32_t n)
{
    *at++ = (uint8_t)verdict;
    for (uint32_t i = 0; i < n && verdict != TXN_CONFLICT; i++) {
        struct bytes value = answer_bytes(&answers[i]);
        at[0] = answers[i].kind;
        at[1] = answers[i].applied;
        put_u16(at + 2, answers[i].slot);
        put_u32(at + 4, value.n);
        put_u64(at + 8, (uint64_t)answers[i].number);
        put_u64(at + 16, versions[i]);
        at = put_bytes(at + ANSWER_BYTES, value);
    }
    return at;
}

static bool are_pairs(struct bytes rest, int64_t n)
{
    struct bytes key, value;
    int64_t pairs = 0;
    while (txn_pair_take(&rest, &key, &value)) {
        pairs++;
    }
    return rest.n == 0 && pairs == n;
}

static bool answer_is_one(const struct answer *answer)
{
    switch ((enum answer_kind)answer->kind) {
    case ANSWER_OK:
    case ANSWER_NIL:
    case ANSWER_NUMBER:
        return answer->value.n == 0 && answer->slot == 0;
    case ANSWER_VALUE:
        return answer->slot == 0;
    case ANSWER_ERROR:
        return answer->value.n == 0 && answer->slot < HASH_SLOTS && answer->number < 0 &&
               answer->number >= HK_ERR_ABORTED && !answer->applied;
    case ANSWER_PAIRS:
        return answer->slot == 0 && are_pairs(answer->value, answer->number);
    }
    return false;
}

/* False: it is cut off, or nobody answers so. */
static bool take_answer(struct bytes *rest, struct answer *answer, uint64_t *version)
{
    struct bytes b;
    if (!cut(rest, ANSWER_BYTES, &b) || b.at[1] > 1) {
        return false;
    }
    *answer = (struct answer){.kind = b.at[0],
                              .applied = b.at[1] != 0,
                              .slot = get_u16(b.at + 2),
                              .number = (int64_t)get_u64(b.at + 8)};
    *version = get_u64(b.at + 16);
    return cut(rest, get_u32(b.at + 4), &answer->value) && answer_is_one(answer);
}

static bool take_verdict(struct bytes *rest, uint8_t *verdict)
{
    struct bytes b;
    if (!cut(rest, 1, &b)) {
        return false;
    }
    *verdict = b.at[0];
    return *verdict == TXN_DONE || *verdict == TXN_CONFLICT || *verdict == TXN_UNAPPLIED;
}

bool lotus_answers_take(struct bytes rest, uint32_t n, uint8_t *verdict_out,
                        struct answer *answers_out, uint64_t *versions_out)
{
    if (!take_verdict(&rest, verdict_out)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        answers_out[i] = (struct answer){.kind = ANSWER_NIL};
        versions_out[i] = 0;
        if (*verdict_out != TXN_CONFLICT &&
            !take_answer(&rest, &answers_out[i], &versions_out[i])) {
            return false;
        }
    }
    return rest.n == 0;
}

static const char *answers_invalid(struct bytes rest)
{
    struct answer answer;
    uint64_t version;
    uint8_t verdict;
    if (!take_verdict(&rest, &verdict)) {
        return "no verdict";
    }
    for (uint32_t n = 0; rest.n > 0; n++) {
        if (verdict == TXN_CONFLICT || n == TXN_OPS_MAX) {
            return "too many answers";
        }
        if (!take_answer(&rest, &answer, &version)) {
            return "an answer is cut off, or none";
        }
    }
    return NULL;
}

/* ---- Messages ---- */

/* What of the fixed fields a kind may use; its value is looked at further. */
struct shape {
    bool known;
    bool arg, key, value;
    uint64_t ts_max;
};

#define KINDS LOTUS_MSG_END

static const struct shape shapes[KINDS] = {
    [LOTUS_MSG_EXECUTE] = {.known = true, .arg = true, .value = true, .ts_max = UINT64_MAX},
    [LOTUS_MSG_EXECUTED] = {.known = true, .arg = true, .value = true, .ts_max = LOTUS_WORDS - 1},
    [LOTUS_MSG_WHOLE] = {.known = true, .value = true, .ts_max = UINT64_MAX},
    [LOTUS_MSG_FINISH] = {.known = true, .value = true, .ts_max = UINT64_MAX},
    [LOTUS_MSG_DONE] = {.known = true, .value = true, .ts_max = LOTUS_WORDS - 1},
    [LOTUS_MSG_PREPARE] = {.known = true, .arg = true, .value = true, .ts_max = UINT64_MAX},
    [LOTUS_MSG_PREPARED] = {.known = true, .ts_max = LOTUS_WORDS - 1},
    [LOTUS_MSG_COMMIT] = {.known = true, .ts_max = UINT64_MAX},
    [LOTUS_MSG_ABORT] = {.known = true, .ts_max = UINT64_MAX},
    [LOTUS_MSG_COMMITTED] = {.known = true, .ts_max = LOTUS_OK},
    [LOTUS_MSG_ASK] = {.known = true, .arg = true, .key = true},
    [LOTUS_MSG_TOLD] = {.known = true, .arg = true, .key = true, .ts_max = LOTUS_TOLDS - 1},
    [LOTUS_MSG_RESOLVED] = {.known = true, .arg = true, .key = true, .ts_max = 1},
    [LOTUS_MSG_ROWS] = {.known = true, .arg = true, .value = true, .ts_max = UINT64_MAX},
    [LOTUS_MSG_TAKEN] = {.known = true, .arg = true},
    [LOTUS_MSG_STORE] = {.known = true, .arg = true, .value = true},
    [LOTUS_MSG_STORED] = {.known = true, .arg = true, .ts_max = LOTUS_STOREDS - 1},
    [LOTUS_MSG_FETCH] = {.known = true, .arg = true},
    [LOTUS_MSG_FETCHED] = {.known = true, .arg = true, .value = true, .ts_max = 1},
    [LOTUS_MSG_FORGET] = {.known = true, .arg = true},
    [LOTUS_MSG_RECALL] = {.known = true},
};

static const char *prepare_invalid(const struct msg *msg)
{
    struct bytes rest = msg->value, participants;
    if (msg->arg == 0) {
        return "a PREPARE without a number";
    }
    if (!cut(&rest, PARTICIPANTS_BYTES, &participants) ||
        nodeset_count(get_u64(participants.at)) < 2) {
        return "too few participants";
    }
    return rows_invalid(rest, true);
}

/* Whom ASK, TOLD and RESOLVED are about. */
static const char *about_invalid(const struct msg *msg)
{
    if (msg->key.n != NONCE_BYTES) {
        return "no nonce";
    }
    return msg->arg > UINT16_MAX || (uint8_t)msg->arg >= NODES_MAX ? "no such coordinator" : NULL;
}

static const char *cell_invalid(const struct msg *msg)
{
    return msg->arg << 8 != 0 ? NULL : "a cell without a name";
}

static const char *value_invalid(const struct msg *msg)
{
    struct bytes rest = msg->value;
    struct lotus_head head;
    switch (msg->kind) {
    case LOTUS_MSG_EXECUTE:
        return take_head(&rest, &head) ? items_invalid(rest) : "a head is cut off";
    case LOTUS_MSG_WHOLE:
        return take_head(&rest, &head) ? request_invalid(rest) : "a head is cut off";
    case LOTUS_MSG_EXECUTED:
        return msg->arg >= TXN_ABSENT ? version_of_nobody
               : msg->ts == LOTUS_OK  ? rows_invalid(rest, false)
               : rest.n > 0           ? "refused, and has rows"
                                      : NULL;
    case LOTUS_MSG_DONE:
        return msg->ts == LOTUS_OK && rest.n > 0 ? answers_invalid(rest)
               : rest.n > 0                      ? "refused, and has answers"
                                                 : NULL;
    case LOTUS_MSG_FINISH:
        return rows_invalid(rest, true);
    case LOTUS_MSG_ROWS:
        return ((uint64_t)msg->gen << 32 | msg->slot) >= TXN_ABSENT ? version_of_nobody
                                                                    : rows_invalid(rest, true);
    case LOTUS_MSG_PREPARE:
        return prepare_invalid(msg);
    case LOTUS_MSG_ASK:
    case LOTUS_MSG_TOLD:
    case LOTUS_MSG_RESOLVED:
        return about_invalid(msg);
    case LOTUS_MSG_STORE:
    case LOTUS_MSG_STORED:
    case LOTUS_MSG_FETCH:
    case LOTUS_MSG_FORGET:
        return cell_invalid(msg);
    case LOTUS_MSG_FETCHED:
        return msg->ts != 0 && rest.n > 0 ? "no cell, and its bytes" : cell_invalid(msg);
    default:
        return NULL;
    }
}

const char *lotus_msg_invalid(const struct msg *msg)
{
    if (msg->kind >= LOTUS_MSG_MAP && msg->kind < LOTUS_MSG_ROWS) {
        return lotus_map_msg_invalid(msg);
    }
    if (msg->kind >= KINDS || !shapes[msg->kind].known) {
        return "unknown kind";
    }
    const struct shape *may = &shapes[msg->kind];
    if (msg->flags != 0 || msg->vflags != 0) {
        return "flags";
    }
    if (msg->kind == LOTUS_MSG_EXECUTE && msg->arg > 1) {
        return "neither its try's first here nor another";
    }
    if ((msg->arg != 0 && !may->arg) || (msg->key.n > 0 && !may->key) ||
        (msg->value.n > 0 && !may->value) || msg->ts > may->ts_max) {
        return "more than the message is about";
    }
    return value_invalid(msg);
}
