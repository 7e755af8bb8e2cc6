/* Ranges: a range reads each key of the universe that lies in it. What is not in the universe
 * nobody ever wrote: it was absent in every order. */
#include <stdlib.h>

#include "check/serial.h"

static int compare_keys(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The keys that a transaction wrote, or its ranges found; counts them without `keys`. */
static size_t keys_of(const struct txn *txn, uint64_t *keys)
{
    size_t n = 0;
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        const struct txn_op *op = &txn->ops[i];
        if (op->kind == TXN_WRITE || op->kind == TXN_ERASE) {
            if (keys != NULL) {
                keys[n] = op->key;
            }
            n++;
        }
        for (uint32_t j = 0; op->kind == TXN_RANGE && j < op->found_n; j++) {
            if (keys != NULL) {
                keys[n] = op->found[j].key;
            }
            n++;
        }
    }
    return n;
}

static bool has_range(const struct txn_history *history)
{
    for (size_t i = 0; i < history->n; i++) {
        for (uint32_t j = 0; j < history->txns[i].ops_n; j++) {
            if (history->txns[i].ops[j].kind == TXN_RANGE) {
                return true;
            }
        }
    }
    return false;
}

bool serial_universe(struct serial *s)
{
    const struct txn_history *history = s->history;
    if (!has_range(history)) {
        return true;
    }
    size_t n = 0;
    for (size_t i = 0; i < history->n; i++) {
        n += keys_of(&history->txns[i], NULL);
    }
    s->universe = calloc(n + 1, sizeof *s->universe);
    if (s->universe == NULL) {
        return false;
    }
    n = 0;
    for (size_t i = 0; i < history->n; i++) {
        n += keys_of(&history->txns[i], s->universe + n);
    }
    qsort(s->universe, n, sizeof *s->universe, compare_keys);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || s->universe[i] != s->universe[s->universe_n - 1]) {
            s->universe[s->universe_n++] = s->universe[i];
        }
    }
    return true;
}

/* Index of the first key of the universe that is not less. */
static size_t first_from(const struct serial *s, uint64_t key)
{
    size_t low = 0;
    size_t high = s->universe_n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->universe[middle] < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A range that stopped at its limit has looked no further than at the last key that it found. */
size_t serial_range(struct serial *s, uint32_t txn, uint32_t index, bool append)
{
    const struct txn_op *op = &s->history->txns[txn].ops[index];
    if (s->history->txns[txn].outcome != TXN_COMMITTED) {
        return 0;
    }
    bool full = op->limit != 0 && op->found_n == op->limit;
    uint64_t from = full && op->reverse ? op->found[0].key : op->key;
    uint64_t end = full && !op->reverse ? op->found[op->found_n - 1].key + 1 : op->end;
    size_t first = first_from(s, from);
    size_t last = first_from(s, end);
    uint32_t next = 0;
    for (size_t i = first; append && i < last; i++) {
        bool found = next < op->found_n && op->found[next].key == s->universe[i];
        s->accesses[s->accesses_n++] =
            (struct access){s->universe[i], found ? op->found[next].value : 0, txn, index};
        next += found;
    }
    return last - first;
}
