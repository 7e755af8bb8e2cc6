#include "support/resp_rig.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/slot.h"
#include "engine/op_number.h"

/* ---- Keys ---- */

static struct bytes copy_bytes(struct bytes bytes)
{
    uint8_t *at = malloc(bytes.n + 1);

    assert_non_null(at);
    if (bytes.n > 0)
        memcpy(at, bytes.at, bytes.n);
    return bytes_of(at, bytes.n);
}

static void free_bytes(struct bytes bytes)
{
    free((void *)(uintptr_t)bytes.at);
}

static struct rig_key *find(struct rig_space *space, struct bytes key)
{
    for (uint32_t i = 0; i < space->n; i++) {
        if (bytes_equal(space->keys[i].key, key))
            return &space->keys[i];
    }
    return NULL;
}

static struct rig_key *find_or_add(struct rig_space *space, struct bytes key)
{
    struct rig_key *found = find(space, key);

    if (found != NULL)
        return found;
    if (space->n == space->capacity) {
        space->capacity = space->capacity == 0 ? 16 : space->capacity * 2;
        space->keys = realloc(space->keys, space->capacity * sizeof *space->keys);
        assert_non_null(space->keys);
    }
    space->keys[space->n] = (struct rig_key){.key = copy_bytes(key)};
    return &space->keys[space->n++];
}

static void replace(struct rig *rig, uint32_t space, struct bytes key, const struct op_state *next)
{
    struct rig_key *entry = find_or_add(&rig->spaces[space], key);
    struct bytes old = entry->state.value;

    entry->state = *next;
    entry->state.value = next->present ? copy_bytes(next->value) : (struct bytes){NULL, 0};
    entry->version = next->present ? ++rig->versions : 0;
    free_bytes(old);
}

void rig_set(struct rig *rig, uint32_t space, const char *key, const char *value)
{
    struct op_state next = {.present = value != NULL};

    if (value != NULL)
        next.value = bytes_of(value, (uint32_t)strlen(value));
    replace(rig, space, bytes_of(key, (uint32_t)strlen(key)), &next);
}

static uint64_t wall_ms(const struct rig *rig)
{
    return rig->wall_us / 1000;
}

/* What a node does with an operation, as far as its client can tell. */
static void evaluate(struct rig *rig, const struct op *op)
{
    struct rig_space *space = &rig->spaces[op->space];
    struct rig_key *entry = find(space, op->key);
    struct op_state old = entry != NULL ? entry->state : (struct op_state){.present = false};
    struct op_state next;
    struct answer answer = {.kind = ANSWER_ERROR};
    uint8_t *scratch = NULL;
    bool changed = false;
    int err = op_check(op, rig->value_max);

    rig->answered++;
    if (rig->answered == rig->fail_at)
        err = rig->fail_with;
    if (op_state_expired(&old, wall_ms(rig)))
        old = (struct op_state){.present = false};
    if (err == HK_OK && op_scratch_bytes(op, &old) > rig->value_max + OP_DECIMAL_SUM_MAX)
        err = HK_ERR_TOOBIG;
    if (err == HK_OK) {
        uint32_t bytes = (uint32_t)op_scratch_bytes(op, &old);

        scratch = malloc(bytes + 1);
        assert_non_null(scratch);
        err = op_evaluate(op, &old, wall_ms(rig), scratch, bytes, &next, &answer, &changed);
    }
    answer.number = err != HK_OK ? err : answer.number;
    answer.slot = err == HK_ERR_LOSTSLOT ? slot_of_key(op->key) : 0;
    if (err == HK_OK && changed && next.value.n > rig->value_max) {
        answer = (struct answer){.kind = ANSWER_ERROR, .number = HK_ERR_TOOBIG};
        changed = false;
    }
    resp_conn_answer(rig->conn, &answer, NULL, rig->now_us);
    if (changed)
        replace(rig, op->space, op->key, &next);
    free(scratch);
}

/* ---- Transactions ---- */

static uint64_t hash(const void *context, struct bytes key)
{
    uint64_t sum = 0;

    (void)context;
    for (uint32_t i = 0; i < key.n; i++)
        sum = sum * 31 + key.at[i];
    return sum;
}

static void load(const struct rig *rig, const struct rig_space *space, struct txn_object *object)
{
    const struct rig_key *entry = find((struct rig_space *)(uintptr_t)space, object->key);

    if (entry == NULL)
        return;
    object->state = entry->state;
    object->version = entry->version;
    object->expired = op_state_expired(&entry->state, wall_ms(rig));
}

/* Keys that ranges may meet. */
#define RIG_RANGE_MAX 4096u

/* The memory that a transaction is evaluated with. */
struct evaluation {
    struct txn_object objects[TXN_OBJECTS_MAX + RIG_RANGE_MAX];
    struct answer answers[TXN_OPS_MAX];
    uint64_t versions[TXN_OPS_MAX];
    uint16_t index[2 * TXN_OPS_MAX + TXN_OBJECTS_MAX];
    struct txn_memory memory;
};

static enum txn_verdict evaluate_objects(struct rig *rig, const struct rig_space *space,
                                         const struct txn_request *txn, struct evaluation *e,
                                         uint32_t n)
{
    for (;;) {
        enum txn_verdict verdict =
            txn_evaluate(txn, e->objects, n, e->index, wall_ms(rig), &e->memory, e->answers);

        if (verdict != TXN_NO_MEMORY)
            return verdict;
        e->memory.n = 2 * e->memory.used + 64;
        e->memory.at = realloc(e->memory.at, e->memory.n);
        assert_non_null(e->memory.at);
        for (uint32_t i = 0; i < n; i++)
            load(rig, space, &e->objects[i]);
    }
}

/* All keys of the space that a range may be about stand behind the `n` objects; how many then. */
static uint32_t add_met(struct rig *rig, const struct rig_space *space,
                        const struct txn_request *txn, struct evaluation *e, uint32_t n)
{
    uint32_t all = n;
    bool ranges = false;

    for (uint32_t i = 0; i < txn->ops_n; i++)
        ranges = ranges || txn->ops[i].kind >= TXN_OP_RANGE;
    for (uint32_t i = 0; ranges && i < space->n; i++) {
        bool there = false;

        for (uint32_t j = 0; j < n; j++)
            there = there || bytes_equal(e->objects[j].key, space->keys[i].key);
        if (!there && space->keys[i].state.present) {
            assert_true(all < n + RIG_RANGE_MAX);
            e->objects[all] = (struct txn_object){.key = space->keys[i].key};
            load(rig, space, &e->objects[all++]);
        }
    }
    return all;
}

static void tell_versions(struct evaluation *e, const struct txn_request *txn, uint64_t next)
{
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        if (e->index[2 * i] == UINT16_MAX)
            continue;
        const struct txn_object *object = &e->objects[e->index[2 * i]];

        e->versions[i] = object->changed   ? (object->state.present ? next : 0)
                         : object->expired ? 0
                                           : object->version;
    }
}

/* What a node does with a transaction, as far as its client can tell. */
static void evaluate_txn(struct rig *rig, uint32_t space, const struct txn_request *txn)
{
    struct evaluation *e = calloc(1, sizeof *e);
    struct answer answer = {.kind = ANSWER_ERROR, .number = txn_check(txn, rig->value_max)};
    const struct rig_space *keys = &rig->spaces[space];
    enum txn_verdict verdict = TXN_UNAPPLIED;
    uint32_t n = 0;

    assert_non_null(e);
    e->memory.value_bytes_max = rig->value_max;
    rig->answered++;
    if (rig->answered == rig->fail_at)
        answer.number = rig->fail_with;
    if (answer.number == HK_OK) {
        n = txn_objects(txn, hash, NULL, e->objects, TXN_OBJECTS_MAX, e->index);
        answer.number = n == UINT32_MAX ? HK_ERR_TOOBIG : HK_OK;
        n = n == UINT32_MAX ? 0 : n;
    }
    for (uint32_t i = 0; i < n; i++)
        load(rig, keys, &e->objects[i]);
    n = answer.number == HK_OK ? add_met(rig, keys, txn, e, n) : n;
    if (answer.number == HK_OK) {
        verdict = evaluate_objects(rig, keys, txn, e, n);
        answer.kind = verdict == TXN_DONE       ? ANSWER_OK
                      : verdict == TXN_CONFLICT ? ANSWER_NIL
                                                : ANSWER_NUMBER;
    }
    tell_versions(e, txn, rig->versions + 1);

    struct resp_results results = {e->answers, e->versions, txn->ops_n};
    bool answers = answer.kind == ANSWER_OK || answer.kind == ANSWER_NUMBER;

    resp_conn_answer(rig->conn, &answer, answers ? &results : NULL, rig->now_us);
    /* All of them have the version that was told. */
    uint64_t version = rig->versions;

    for (uint32_t i = 0; i < n && verdict == TXN_DONE; i++) {
        if (e->objects[i].changed) {
            struct bytes key = copy_bytes(e->objects[i].key);
            struct op_state next = e->objects[i].state;

            next.value = next.present ? copy_bytes(next.value) : (struct bytes){NULL, 0};
            e->objects[i].key = key;
            e->objects[i].state = next;
        }
    }
    for (uint32_t i = 0; i < n && verdict == TXN_DONE; i++) {
        if (e->objects[i].changed) {
            rig->versions = version;
            replace(rig, space, e->objects[i].key, &e->objects[i].state);
            free_bytes(e->objects[i].state.value);
            free_bytes(e->objects[i].key);
        }
    }
    free(e->memory.at);
    free(e);
}

static struct op copy_op(const struct op *op)
{
    struct op copy = *op;

    copy.key = copy_bytes(op->key);
    copy.value = copy_bytes(op->value);
    copy.arg = copy_bytes(op->arg);
    return copy;
}

static void free_op(const struct op *op)
{
    free_bytes(op->key);
    free_bytes(op->value);
    free_bytes(op->arg);
}

static bool same_op(const struct op *a, const struct op *b)
{
    return a->kind == b->kind && a->flags == b->flags && bytes_equal(a->key, b->key) &&
           bytes_equal(a->value, b->value) && bytes_equal(a->arg, b->arg);
}

static struct txn_request copy_txn(const struct txn_request *txn)
{
    struct op *ops = calloc(txn->ops_n + 1, sizeof *ops);
    struct txn_watch *watches = calloc(txn->watches_n + 1, sizeof *watches);
    struct txn_request copy = *txn;

    assert_non_null(ops);
    assert_non_null(watches);
    for (uint32_t i = 0; i < txn->ops_n; i++)
        ops[i] = copy_op(&txn->ops[i]);
    for (uint32_t i = 0; i < txn->watches_n; i++) {
        watches[i] = txn->watches[i];
        watches[i].key = copy_bytes(txn->watches[i].key);
        watches[i].end = copy_bytes(txn->watches[i].end);
    }
    copy.ops = ops;
    copy.watches = watches;
    return copy;
}

static void free_txn(const struct txn_request *txn)
{
    for (uint32_t i = 0; i < txn->ops_n; i++)
        free_op(&txn->ops[i]);
    for (uint32_t i = 0; i < txn->watches_n; i++) {
        free_bytes(txn->watches[i].key);
        free_bytes(txn->watches[i].end);
    }
    free((void *)(uintptr_t)txn->ops);
    free((void *)(uintptr_t)txn->watches);
}

static bool same_txn(const struct txn_request *a, const struct txn_request *b)
{
    bool same = a->ops_n == b->ops_n && a->watches_n == b->watches_n && a->flags == b->flags;

    for (uint32_t i = 0; same && i < a->ops_n; i++)
        same = same_op(&a->ops[i], &b->ops[i]);
    for (uint32_t i = 0; same && i < a->watches_n; i++) {
        same = a->watches[i].version == b->watches[i].version &&
               bytes_equal(a->watches[i].key, b->watches[i].key);
    }
    return same;
}

static void free_kept(const struct rig_op *kept)
{
    free_op(&kept->op);
    if (kept->seen_txn != NULL)
        free_txn(&kept->txn);
}

/* ---- Host ---- */

static uint64_t host_wall_us(void *context)
{
    return ((struct rig *)context)->wall_us;
}

static uint64_t host_random(void *context)
{
    struct rig *rig = context;

    rig->random = rig->random * 6364136223846793005u + 1442695040888963407u;
    return rig->random >> 33;
}

static const struct resp_limits *host_limits(void *context)
{
    return &((struct rig *)context)->limits;
}

static bool host_auth_required(void *context)
{
    return ((struct rig *)context)->password != NULL;
}

static enum resp_auth host_auth(void *context, struct bytes user, struct bytes secret)
{
    const char *password = ((struct rig *)context)->password;
    struct bytes name = bytes_of("default", 7);

    if (user.at != NULL && !bytes_equal(user, name))
        return RESP_AUTH_WRONG;
    return password != NULL && bytes_equal(secret, bytes_of(password, (uint32_t)strlen(password)))
               ? RESP_AUTH_OK
               : RESP_AUTH_WRONG;
}

static uint32_t host_spaces(void *context)
{
    (void)context;
    return (1u << RIG_SPACES) - 1;
}

static const char *host_engine(void *context, uint32_t space)
{
    bool ordered = ((struct rig *)context)->ordered;

    return space != RIG_ZEUS ? "hermes" : ordered ? "lotus" : "zeus";
}

static bool host_transactions(void *context, uint32_t space)
{
    (void)context;
    return space == RIG_ZEUS;
}

static bool host_ordered(void *context, uint32_t space)
{
    return space == RIG_ZEUS && ((struct rig *)context)->ordered;
}

static uint64_t host_place_keep(void *context, uint64_t cursor, struct bytes key)
{
    struct rig *rig = context;
    struct bytes *place = &rig->places[++rig->place_number % RIG_PLACES];

    (void)cursor;
    free_bytes(*place);
    *place = copy_bytes(key);
    return rig->place_number;
}

static bool host_place_find(void *context, uint64_t cursor, struct resp_out *key)
{
    struct rig *rig = context;

    if (cursor > rig->place_number || cursor + RIG_PLACES <= rig->place_number)
        return false;
    resp_out_raw(key, rig->places[cursor % RIG_PLACES]);
    return true;
}

/* In space 1 keys have one copy. */
static uint32_t host_replicas(void *context, uint32_t space)
{
    return space == 1 ? 0 : ((struct rig *)context)->replicas;
}

static int host_serving(void *context)
{
    return ((struct rig *)context)->serving;
}

static bool is_there(const struct rig *rig, const struct rig_key *key)
{
    return key->state.present && !op_state_expired(&key->state, wall_ms(rig));
}

/* One entry a step, so that slices are met with few keys. */
static uint64_t host_walk(void *context, uint32_t space, uint64_t cursor, resp_key_fn *emit,
                          void *emit_to)
{
    struct rig *rig = context;
    const struct rig_space *keys = &rig->spaces[space < RIG_SPACES ? space : 0];

    if (cursor >= keys->n || space >= RIG_SPACES)
        return 0;
    if (is_there(rig, &keys->keys[cursor]))
        emit(emit_to, keys->keys[cursor].key);
    return cursor + 1 < keys->n ? cursor + 1 : 0;
}

static uint64_t host_keys(void *context, uint32_t space)
{
    const struct rig *rig = context;
    uint64_t n = 0;

    for (uint32_t i = 0; i < rig->spaces[space].n; i++)
        n += is_there(rig, &rig->spaces[space].keys[i]) ? 1 : 0;
    return n;
}

/* ---- The rig ---- */

void rig_reconnect(struct rig *rig)
{
    resp_conn_destroy(rig->conn);
    rig->conn = NULL;
    for (; rig->ops_n > 0; rig->ops_n--) {
        free_kept(&rig->ops[rig->ops_at]);
        rig->ops_at = (rig->ops_at + 1) % RESP_IN_FLIGHT_MAX;
    }
    assert_int_equal(resp_conn_create(&rig->host, 7, "127.0.0.1:50000", "127.0.0.1:7001",
                                      rig->now_us, &rig->conn),
                     HK_OK);
}

void rig_init(struct rig *rig)
{
    *rig = (struct rig){
        .host = {.wall_us = host_wall_us,
                 .random = host_random,
                 .limits = host_limits,
                 .auth_required = host_auth_required,
                 .auth = host_auth,
                 .spaces = host_spaces,
                 .engine = host_engine,
                 .transactions = host_transactions,
                 .ordered = host_ordered,
                 .place_keep = host_place_keep,
                 .place_find = host_place_find,
                 .replicas = host_replicas,
                 .serving = host_serving,
                 .walk = host_walk,
                 .keys = host_keys},
        .limits = {.bulk_bytes_max = 4u << 20,
                   .arguments_max = 1024 * 1024,
                   .query_bytes_max = 16u << 20,
                   .output_bytes_max = 32u << 20},
        .now_us = 1000000,
        .wall_us = (uint64_t)RIG_WALL_MS * 1000,
        .updates = true,
        .serving = HK_OK,
        .replicas = 2,
        .value_max = 1u << 20,
    };
    rig->host.context = rig;
    rig_reconnect(rig);
}

void rig_deinit(struct rig *rig)
{
    rig_reconnect(rig);
    resp_conn_destroy(rig->conn);
    for (uint32_t i = 0; i < RIG_SPACES; i++) {
        for (uint32_t j = 0; j < rig->spaces[i].n; j++) {
            free_bytes(rig->spaces[i].keys[j].key);
            free_bytes(rig->spaces[i].keys[j].state.value);
        }
        free(rig->spaces[i].keys);
    }
    for (uint32_t i = 0; i < RIG_PLACES; i++)
        free_bytes(rig->places[i]);
    free(rig->output);
}

void rig_feed(struct rig *rig, struct bytes bytes)
{
    /* Of its own size, so that a sanitizer sees whoever reads on. */
    struct bytes copy = copy_bytes(bytes);

    rig->feeds++;
    assert_true(resp_conn_feed(rig->conn, copy));
    free_bytes(copy);
}

enum resp_next rig_next(struct rig *rig)
{
    struct op op;
    const struct txn_request *txn;

    rig->last = resp_conn_next(rig->conn, rig->now_us, rig->updates, &op, &txn);
    if (rig->last != RESP_OP)
        return rig->last;
    assert_true(rig->ops_n < RESP_IN_FLIGHT_MAX);
    assert_true(op.space < RIG_SPACES);
    assert_true(rig->updates || !(txn != NULL ? txn_updates(txn) : op_updates(&op)));
    assert_true(txn == NULL || op.space == RIG_ZEUS);
    for (uint32_t i = 0; txn != NULL && i < txn->ops_n; i++)
        assert_int_equal(txn->ops[i].space, op.space);

    struct rig_op *kept = &rig->ops[(rig->ops_at + rig->ops_n++) % RESP_IN_FLIGHT_MAX];

    kept->seen = op;
    kept->op = copy_op(&op);
    kept->seen_txn = txn;
    if (txn != NULL)
        kept->txn = copy_txn(txn);
    kept->feeds = rig->feeds;
    rig->handed_out++;
    assert_int_equal(resp_conn_in_flight(rig->conn), rig->ops_n);
    return rig->last;
}

void rig_answer(struct rig *rig)
{
    assert_true(rig->ops_n > 0);

    struct rig_op kept = rig->ops[rig->ops_at];

    rig->ops_at = (rig->ops_at + 1) % RESP_IN_FLIGHT_MAX;
    rig->ops_n--;
    if (kept.feeds == rig->feeds) {
        assert_true(same_op(&kept.seen, &kept.op));
        assert_true(kept.seen_txn == NULL || same_txn(kept.seen_txn, &kept.txn));
    }
    if (kept.seen_txn != NULL) {
        evaluate_txn(rig, kept.op.space, &kept.txn);
    } else {
        evaluate(rig, &kept.op);
    }
    free_kept(&kept);
}

void rig_take(struct rig *rig)
{
    struct bytes bytes = resp_conn_output(rig->conn);

    if (rig->output_n + bytes.n + 1 > rig->output_capacity) {
        rig->output_capacity = 2 * (rig->output_n + bytes.n + 1);
        rig->output = realloc(rig->output, rig->output_capacity);
        assert_non_null(rig->output);
    }
    if (bytes.n > 0)
        memcpy(rig->output + rig->output_n, bytes.at, bytes.n);
    rig->output_n += bytes.n;
    rig->output[rig->output_n] = '\0';
    resp_conn_sent(rig->conn, bytes.n);
}

enum resp_next rig_run(struct rig *rig)
{
    for (;;) {
        enum resp_next next = rig_next(rig);

        if (next == RESP_OP || next == RESP_AGAIN)
            continue;
        if (rig->ops_n > 0) {
            while (rig->ops_n > 0)
                rig_answer(rig);
            continue;
        }

        uint32_t before = rig->output_n;

        rig_take(rig);
        if (next != RESP_WAIT)
            return next;
        if (rig->output_n != before)
            continue;
        if (resp_conn_deadline(rig->conn) == UINT64_MAX || rig->awake)
            return next;
        rig->now_us = resp_conn_deadline(rig->conn);
    }
}

const char *rig_send_bytes(struct rig *rig, struct bytes input)
{
    rig->output_n = 0;
    rig_feed(rig, input);
    (void)rig_run(rig);
    return (const char *)rig->output;
}

const char *rig_send(struct rig *rig, const char *input)
{
    return rig_send_bytes(rig, bytes_of(input, (uint32_t)strlen(input)));
}

char *rig_multibulk(const char *words)
{
    size_t n = strlen(words), count = 1, used = 0;

    for (size_t i = 0; i < n; i++)
        count += words[i] == ' ' ? 1 : 0;

    size_t capacity = n + 32 * (count + 1);
    char *text = malloc(capacity);

    assert_non_null(text);
    used = (size_t)snprintf(text, capacity, "*%zu\r\n", count);
    for (const char *word = words; word != NULL;) {
        const char *end = strchr(word, ' ');
        size_t length = end != NULL ? (size_t)(end - word) : strlen(word);

        used += (size_t)snprintf(text + used, capacity - used, "$%zu\r\n%.*s\r\n", length,
                                 (int)length, word);
        word = end != NULL ? end + 1 : NULL;
    }
    return text;
}

const char *rig_call(struct rig *rig, const char *words)
{
    char *text = rig_multibulk(words);
    const char *reply = rig_send(rig, text);

    free(text);
    return reply;
}

void rig_call_rows(struct rig *rig, const struct rig_row *rows, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        rig_expect(rig, rows[i].command, rows[i].reply);
        assert_int_equal(rig->last, RESP_INPUT);
    }
}

void rig_expect(struct rig *rig, const char *words, const char *reply)
{
    const char *got = rig_call(rig, words);

    if (strcmp(got, reply) != 0)
        fail_msg("%s\ngot:    %s\nwanted: %s\n", words, got, reply);
}

void rig_expect_begin(struct rig *rig, const char *words, const char *reply)
{
    const char *got = rig_call(rig, words);

    if (strncmp(got, reply, strlen(reply)) != 0)
        fail_msg("%s\ngot:    %s\nwanted: %s...\n", words, got, reply);
}
