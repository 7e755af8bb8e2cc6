#include "resp/transaction.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* So many watched keys are compared with a new one; more would be slow, and a key that is watched
 * twice does no harm. */
#define WATCHED_COMPARED 64u

/* Room for one more item of `bytes` bytes: the array as it is, or a larger one; NULL: no memory. */
static void *room(void *items, uint32_t n, uint32_t *capacity, size_t bytes)
{
    if (n < *capacity) {
        return items;
    }

    uint32_t more = *capacity == 0 ? 4 : *capacity * 2;
    void *moved = more > n ? realloc(items, more * bytes) : NULL;

    if (moved != NULL) {
        *capacity = more;
    }
    return moved;
}

/* Where the copy is; UINT32_MAX: no memory. */
static uint32_t bytes_add(struct txn_bytes *bytes, struct bytes added)
{
    uint64_t wanted = (uint64_t)bytes->n + added.n;
    uint64_t capacity = bytes->capacity == 0 ? 256 : (uint64_t)bytes->capacity * 2;
    uint32_t at = bytes->n;

    if (wanted >= UINT32_MAX) {
        return UINT32_MAX;
    }
    if (wanted > bytes->capacity) {
        capacity = capacity < wanted ? wanted : capacity;
        capacity = capacity < UINT32_MAX ? capacity : UINT32_MAX - 1;

        uint8_t *moved = realloc(bytes->at, capacity);

        if (moved == NULL) {
            return UINT32_MAX;
        }
        bytes->at = moved;
        bytes->capacity = (uint32_t)capacity;
    }
    if (added.n > 0) {
        memcpy(bytes->at + at, added.at, added.n);
    }
    bytes->n += added.n;
    return at;
}

/* ---- What was watched ---- */

bool txn_watches_add(struct txn_watches *watches, struct bytes key, uint64_t version)
{
    struct txn_watched *watched =
        room(watches->watched, watches->n, &watches->capacity, sizeof *watched);

    if (watched == NULL) {
        return false;
    }
    watches->watched = watched;

    uint32_t at = bytes_add(&watches->keys, key);

    if (at == UINT32_MAX) {
        return false;
    }
    watched[watches->n++] = (struct txn_watched){.at = at, .n = key.n, .version = version};
    return true;
}

static struct bytes watched_key(const struct txn_watches *watches, uint32_t index)
{
    const struct txn_watched *watched = &watches->watched[index];

    return bytes_of(watches->keys.at + watched->at, watched->n);
}

bool txn_watches_have(const struct txn_watches *watches, struct bytes key)
{
    for (uint32_t i = 0; i < watches->n && i < WATCHED_COMPARED; i++) {
        if (bytes_equal(watched_key(watches, i), key)) {
            return true;
        }
    }
    return false;
}

void txn_watches_clear(struct txn_watches *watches)
{
    free(watches->watched);
    free(watches->keys.at);
    *watches = (struct txn_watches){.n = 0};
}

uint64_t txn_watches_bytes(const struct txn_watches *watches)
{
    return watches->keys.capacity + (uint64_t)watches->capacity * sizeof watches->watched[0];
}

/* ---- Transactions ---- */

struct conn_txn *conn_txn_create(enum txn_kind kind)
{
    struct conn_txn *txn = calloc(1, sizeof *txn);

    if (txn != NULL) {
        txn->kind = kind;
        resp_out_init(&txn->texts, UINT32_MAX / 2);
    }
    return txn;
}

void conn_txn_destroy(struct conn_txn *txn)
{
    if (txn == NULL) {
        return;
    }
    txn_watches_clear(&txn->watched);
    resp_out_deinit(&txn->texts);
    free(txn->bytes.at);
    free(txn->words);
    free(txn->commands);
    free(txn->ops);
    free(txn->watches);
    free(txn);
}

uint64_t conn_txn_bytes(const struct conn_txn *txn)
{
    return sizeof *txn + txn->bytes.capacity + txn->texts.capacity +
           (uint64_t)txn->words_capacity * sizeof txn->words[0] +
           (uint64_t)txn->commands_capacity * sizeof txn->commands[0] +
           (uint64_t)txn->ops_capacity * sizeof txn->ops[0] +
           (uint64_t)txn->request.watches_n * sizeof txn->watches[0] +
           txn_watches_bytes(&txn->watched);
}

struct txn_command *conn_txn_command(struct conn_txn *txn, const struct resp_command *command)
{
    struct txn_command *commands =
        room(txn->commands, txn->commands_n, &txn->commands_capacity, sizeof *commands);

    if (commands == NULL) {
        return NULL;
    }
    txn->commands = commands;
    commands[txn->commands_n] = (struct txn_command){.command = command, .words_at = txn->words_n};
    return &commands[txn->commands_n++];
}

bool conn_txn_queue(struct conn_txn *txn, const struct resp_conn *conn)
{
    struct txn_command *command = conn_txn_command(txn, conn->command);

    if (command == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < conn_arguments(conn); i++) {
        struct conn_word *words =
            room(txn->words, txn->words_n, &txn->words_capacity, sizeof *words);
        struct bytes argument = conn_argument(conn, i);

        if (words == NULL) {
            return false;
        }
        txn->words = words;

        uint32_t at = bytes_add(&txn->bytes, argument);

        if (at == UINT32_MAX || bytes_add(&txn->bytes, bytes_of("", 1)) == UINT32_MAX) {
            return false;
        }
        words[txn->words_n++] = (struct conn_word){.at = at, .n = argument.n};
        command->words_n++;
    }
    return true;
}

bool conn_txn_add(struct conn_txn *txn, const struct op *op)
{
    if (txn->ops_n == TXN_OPS_MAX) {
        return false;
    }

    struct op *ops = room(txn->ops, txn->ops_n, &txn->ops_capacity, sizeof *ops);

    if (ops == NULL) {
        return false;
    }
    HK_ASSERT(txn->commands_n > 0);
    if (txn->ops_n == 0) {
        txn->op_kind = op->kind;
    }
    txn->ops = ops;
    txn->ops[txn->ops_n++] = *op;
    txn->values = txn->values || conn_answers_value(op);
    txn->updates = txn->updates || conn_op_updates(op);
    return true;
}

uint32_t conn_txn_keep(struct conn_txn *txn, struct bytes bytes)
{
    return bytes_add(&txn->bytes, bytes);
}

bool conn_txn_watch(struct conn_txn *txn, struct txn_watches *watches)
{
    if (watches->n == 0) {
        return true;
    }
    txn->watches = malloc(watches->n * sizeof txn->watches[0]);
    if (txn->watches == NULL) {
        return false;
    }
    txn->watched = *watches;
    *watches = (struct txn_watches){.n = 0};
    for (uint32_t i = 0; i < txn->watched.n; i++) {
        txn->watches[i] = (struct txn_watch){.key = watched_key(&txn->watched, i),
                                             .version = txn->watched.watched[i].version};
    }
    return true;
}

void conn_txn_seal(struct conn_txn *txn)
{
    txn->request = (struct txn_request){
        .ops = txn->ops,
        .watches = txn->watches,
        .ops_n = txn->ops_n,
        .watches_n = txn->watched.n,
        .flags = txn->kind == TXN_WATCH ? TXN_ABSENCE : 0,
    };
}

struct conn_words conn_txn_words(const struct conn_txn *txn, const struct txn_command *command)
{
    return (struct conn_words){
        .base = txn->bytes.at, .words = txn->words + command->words_at, .n = command->words_n};
}
