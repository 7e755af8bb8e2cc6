/* From the history to the reads and writes of each key. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "check/serial.h"

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* By key, then as in the history. */
static int compare_accesses(const void *left, const void *right)
{
    const struct access *a = left;
    const struct access *b = right;
    int order = compare_u64(a->key, b->key);
    order = order != 0 ? order : compare_u64(a->txn, b->txn);
    return order != 0 ? order : compare_u64(a->op, b->op);
}

static int compare_writes(const void *left, const void *right)
{
    const struct written *a = left;
    const struct written *b = right;
    int order = compare_u64(a->value, b->value);
    return order != 0 ? order : compare_u64(a->txn, b->txn);
}

static bool is_write(const struct txn_op *op)
{
    return op->kind == TXN_WRITE || op->kind == TXN_ERASE;
}

static bool allocate(struct serial *s)
{
    size_t n = s->history->n;
    size_t accesses = 0;
    HK_ASSERT(n < UINT32_MAX / 4);
    for (size_t i = 0; i < n; i++) {
        HK_ASSERT(txn_invalid(&s->history->txns[i], s->history->recording) == NULL);
        accesses += s->history->txns[i].ops_n;
    }
    if (!serial_universe(s)) {
        return false;
    }
    for (size_t i = 0; s->universe != NULL && i < n; i++) {
        const struct txn *txn = &s->history->txns[i];
        for (uint32_t j = 0; j < txn->ops_n; j++) {
            accesses += txn->ops[j].kind == TXN_RANGE ? serial_range(s, (uint32_t)i, j, false) : 0;
        }
    }
    HK_ASSERT(accesses < UINT32_MAX);
    s->accesses = calloc(accesses + 1, sizeof *s->accesses);
    s->writes = calloc(accesses + 1, sizeof *s->writes);
    s->reads = calloc(accesses + 1, sizeof *s->reads);
    s->order = calloc(accesses + 1, sizeof *s->order);
    s->keys = calloc(accesses + 1, sizeof *s->keys);
    s->live = calloc(n + 1, sizeof *s->live);
    return s->accesses != NULL && s->writes != NULL && s->reads != NULL && s->order != NULL &&
           s->keys != NULL && s->live != NULL;
}

static void list_accesses(struct serial *s)
{
    for (size_t i = 0; i < s->history->n; i++) {
        const struct txn *txn = &s->history->txns[i];
        s->live[i] = txn->outcome == TXN_COMMITTED;
        for (uint32_t j = 0; j < txn->ops_n; j++) {
            const struct txn_op *op = &txn->ops[j];
            if (op->kind == TXN_RANGE && s->live[i]) {
                (void)serial_range(s, (uint32_t)i, j, true);
            } else if (op->kind != TXN_RANGE && (s->live[i] || is_write(op))) {
                s->accesses[s->accesses_n++] = (struct access){op->key, op->value, (uint32_t)i, j};
            }
        }
    }
    qsort(s->accesses, s->accesses_n, sizeof *s->accesses, compare_accesses);
    for (size_t i = 0; i < s->accesses_n; i++) {
        if (i == 0 || s->accesses[i].key != s->accesses[i - 1].key) {
            s->keys[s->keys_n++] = (struct key_part){.key = s->accesses[i].key, .accesses = i};
        }
        s->keys[s->keys_n - 1].accesses_n++;
    }
}

/* What a transaction did to a key so far. */
struct own {
    struct saw *saw; /* of the others' writes, or NULL */
    size_t writes;   /* its first write, an index into serial.writes */
};

static void note_saw(struct serial *s, struct own *own, struct saw saw)
{
    own->saw = &s->reads[s->reads_n++];
    *own->saw = saw;
}

static const struct txn_op *op_of(const struct serial *s, const struct access *a)
{
    return &s->history->txns[a->txn].ops[a->op];
}

static enum check_result refuse_internal(struct serial *s, const struct access *a)
{
    return serial_refuse(s, TXN_INTERNAL, a->key, a->txn, SERIAL_NO_TXN,
                         "a transaction contradicts its own reads and writes");
}

/* A read after own writes sees the last of them, one after another read sees the same. */
static enum check_result read_version(struct serial *s, const struct access *a, struct own *own)
{
    const struct txn_op *op = op_of(s, a);
    size_t writes_n = s->writes_n - own->writes;
    if (writes_n > 0) {
        return a->value == s->writes[s->writes_n - 1].value ? CHECK_ACCEPTED
                                                            : refuse_internal(s, a);
    }
    uint64_t version = op->kind == TXN_RANGE ? 0 : op->version;
    if (own->saw == NULL) {
        note_saw(s, own, (struct saw){.value = a->value, .version = version, .txn = a->txn});
        return CHECK_ACCEPTED;
    }
    if (a->value != own->saw->value ||
        (version != 0 && own->saw->version != 0 && version != own->saw->version)) {
        return refuse_internal(s, a);
    }
    own->saw->version = version != 0 ? version : own->saw->version;
    return CHECK_ACCEPTED;
}

static struct written written_of(const struct serial *s, const struct access *a,
                                 const struct own *own)
{
    const struct txn_op *op = op_of(s, a);
    bool erases = op->kind == TXN_ERASE;
    return (struct written){.value = erases ? 0 : op->value,
                            .version = op->version,
                            .txn = a->txn,
                            .erases = erases,
                            .after = erases && own->saw != NULL ? own->saw->value : 0};
}

/* What the transaction leaves of the key is its last write of it. Nothing is left of a row that it
 * made and erased. */
static enum check_result end_run(struct serial *s, const struct access *a, const struct own *own)
{
    if (s->writes_n == own->writes) {
        return CHECK_ACCEPTED;
    }
    struct written *last = &s->writes[s->writes_n - 1];
    bool absent = own->saw != NULL && own->saw->value == 0;
    last->last = !last->erases || last->version != 0 || !absent;
    bool placed = last->version != 0 || (last->erases && (absent || last->after != 0));
    if (s->history->recording == TXN_VERSIONS && s->live[a->txn] && !placed) {
        return serial_give_up(s, a->key, "T%" PRIu32 " committed a write of no version", a->txn);
    }
    return CHECK_ACCEPTED;
}

/* A list ends with the own elements; what stands before them is the same in every read. */
static enum check_result read_list(struct serial *s, const struct access *a, struct own *own)
{
    const struct txn_op *op = op_of(s, a);
    size_t writes_n = s->writes_n - own->writes;
    if (op->list_n < writes_n) {
        return refuse_internal(s, a);
    }
    uint32_t others_n = op->list_n - (uint32_t)writes_n;
    for (size_t i = 0; i < writes_n; i++) {
        if (op->list[others_n + i] != s->writes[own->writes + i].value) {
            return refuse_internal(s, a);
        }
    }
    if (own->saw == NULL) {
        note_saw(s, own, (struct saw){.op = op, .txn = a->txn, .list_n = others_n});
        return CHECK_ACCEPTED;
    }
    size_t bytes = others_n * sizeof *op->list;
    if (others_n != own->saw->list_n ||
        (bytes > 0 && memcmp(op->list, own->saw->op->list, bytes) != 0)) {
        return refuse_internal(s, a);
    }
    own->saw->op = op;
    return CHECK_ACCEPTED;
}

/* The accesses of one transaction to one key, of which there are n. */
static enum check_result read_run(struct serial *s, const struct access *a, size_t n)
{
    struct own own = {.writes = s->writes_n};
    for (size_t i = 0; i < n; i++) {
        const struct txn_op *op = op_of(s, &a[i]);
        if (is_write(op)) {
            s->writes[s->writes_n] = written_of(s, &a[i], &own);
            s->writes_n++;
            continue;
        }
        enum check_result result = s->history->recording == TXN_LISTS
                                       ? read_list(s, &a[i], &own)
                                       : read_version(s, &a[i], &own);
        if (result != CHECK_ACCEPTED) {
            return result;
        }
    }
    return end_run(s, a, &own);
}

static enum check_result read_key(struct serial *s, struct key_part *key)
{
    key->writes = s->writes_n;
    key->reads = s->reads_n;
    for (size_t first = 0, end; first < key->accesses_n; first = end) {
        const struct access *a = &s->accesses[key->accesses + first];
        for (end = first; end < key->accesses_n && a[end - first].txn == a->txn;) {
            end++;
        }
        enum check_result result = read_run(s, a, end - first);
        if (result != CHECK_ACCEPTED) {
            return result;
        }
    }
    key->writes_n = s->writes_n - key->writes;
    key->reads_n = s->reads_n - key->reads;
    struct written *writes = &s->writes[key->writes];
    qsort(writes, key->writes_n, sizeof *writes, compare_writes);
    for (size_t i = 1; i < key->writes_n; i++) {
        if (writes[i].value == writes[i - 1].value && writes[i].value != 0) {
            return serial_give_up(s, key->key, "%" PRIu64 " is written twice", writes[i].value);
        }
    }
    return CHECK_ACCEPTED;
}

enum check_result serial_read(struct serial *s)
{
    if (!allocate(s)) {
        return CHECK_NOMEM;
    }
    list_accesses(s);
    enum check_result result = CHECK_ACCEPTED;
    for (size_t i = 0; i < s->keys_n && result == CHECK_ACCEPTED; i++) {
        result = read_key(s, &s->keys[i]);
    }
    return result;
}

struct written *serial_find(const struct serial *s, const struct key_part *key, uint64_t value)
{
    const struct written wanted = {.value = value};
    struct written *writes = &s->writes[key->writes];
    size_t low = 0;
    size_t high = key->writes_n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (writes[middle].value < wanted.value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < key->writes_n && writes[low].value == value ? &writes[low] : NULL;
}

enum check_result serial_check_seen(struct serial *s, const struct key_part *key, uint32_t reader,
                                    const struct written *write, uint64_t value)
{
    if (write == NULL) {
        return serial_refuse(s, TXN_GARBAGE_READ, key->key, reader, SERIAL_NO_TXN,
                             "nobody wrote %" PRIu64, value);
    }
    if (write->txn == reader) {
        return serial_refuse(s, TXN_INTERNAL, key->key, reader, SERIAL_NO_TXN,
                             "%" PRIu64 " was read before its own transaction wrote it", value);
    }
    if (s->history->txns[write->txn].outcome == TXN_ABORTED) {
        return serial_refuse(s, TXN_ABORTED_READ, key->key, reader, write->txn,
                             "T%" PRIu32 " read %" PRIu64 " of T%" PRIu32 ", which aborted", reader,
                             value, write->txn);
    }
    return CHECK_ACCEPTED;
}
