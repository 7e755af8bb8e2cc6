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

static void replace(struct rig_space *space, struct bytes key, const struct op_state *next)
{
    struct rig_key *entry = find_or_add(space, key);
    struct bytes old = entry->state.value;

    entry->state = *next;
    entry->state.value = next->present ? copy_bytes(next->value) : (struct bytes){NULL, 0};
    free_bytes(old);
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
    resp_conn_answer(rig->conn, &answer, rig->now_us);
    if (changed)
        replace(space, op->key, &next);
    free(scratch);
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
    (void)context;
    (void)space;
    return "hermes";
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
        struct rig_op *op = &rig->ops[rig->ops_at];

        free_bytes(op->op.key);
        free_bytes(op->op.value);
        free_bytes(op->op.arg);
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

    rig->last = resp_conn_next(rig->conn, rig->now_us, rig->updates, &op);
    if (rig->last != RESP_OP)
        return rig->last;
    assert_true(rig->ops_n < RESP_IN_FLIGHT_MAX);
    assert_true(op.space < RIG_SPACES);
    assert_true(rig->updates || !op_updates(&op));

    struct rig_op *kept = &rig->ops[(rig->ops_at + rig->ops_n++) % RESP_IN_FLIGHT_MAX];

    kept->seen = kept->op = op;
    kept->op.key = copy_bytes(op.key);
    kept->op.value = copy_bytes(op.value);
    kept->op.arg = copy_bytes(op.arg);
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
        assert_true(bytes_equal(kept.seen.key, kept.op.key));
        assert_true(bytes_equal(kept.seen.value, kept.op.value));
        assert_true(bytes_equal(kept.seen.arg, kept.op.arg));
    }
    evaluate(rig, &kept.op);
    free_bytes(kept.op.key);
    free_bytes(kept.op.value);
    free_bytes(kept.op.arg);
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
