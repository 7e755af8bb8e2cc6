/* Recorded versions: each read says which write it saw, and the versions are the order. */
#include <inttypes.h>
#include <stdlib.h>

#include "check/serial.h"

static enum check_result refuse_order(struct serial *s, const struct key_part *key, uint32_t a,
                                      uint32_t b, uint64_t version)
{
    return serial_refuse(s, TXN_INCOMPATIBLE_ORDER, key->key, a, b,
                         "version %" PRIu64 " is not the same everywhere", version);
}

enum check_result serial_resolve_versions(struct serial *s, struct key_part *key)
{
    for (size_t i = 0; i < key->reads_n; i++) {
        struct saw *read = &s->reads[key->reads + i];
        uint64_t value = read->value;
        if (value == 0) {
            continue;
        }
        struct written *write = serial_find(s, key, value);
        enum check_result result = serial_check_seen(s, key, read->txn, write, value);
        if (result != CHECK_ACCEPTED) {
            return result;
        }
        if (!write->last) {
            return serial_refuse(s, TXN_INTERMEDIATE_READ, key->key, read->txn, write->txn,
                                 "T%" PRIu32 " read %" PRIu64 ", which T%" PRIu32 " wrote over",
                                 read->txn, value, write->txn);
        }
        if (write->version != 0 && read->version != 0 && write->version != read->version) {
            return refuse_order(s, key, read->txn, write->txn, read->version);
        }
        write->version = read->version != 0 ? read->version : write->version;
        s->live[write->txn] = true;
    }
    return CHECK_ACCEPTED;
}

struct place {
    uint64_t version;
    bool behind; /* an erasure of the write of that version */
    size_t write;
};

static int compare_places(const void *left, const void *right)
{
    const struct place *a = left;
    const struct place *b = right;
    if (a->version != b->version) {
        return a->version < b->version ? -1 : 1;
    }
    if (a->behind != b->behind) {
        return a->behind ? 1 : -1;
    }
    return (a->write > b->write) - (a->write < b->write);
}

/* Where in the order of the key's writes it belongs; version 0: nobody knows. */
static struct place place_of(const struct serial *s, const struct key_part *key, size_t i)
{
    const struct written *write = &s->writes[i];
    if (write->version == 0 && write->after != 0) {
        const struct written *erased = serial_find(s, key, write->after);
        return (struct place){erased->version, true, i};
    }
    return (struct place){write->version, false, i};
}

static void note_wild(const struct serial *s, struct key_part *key, const struct written *write)
{
    const struct txn *txn = &s->history->txns[write->txn];
    if (write->erases && write->last && txn->outcome != TXN_ABORTED &&
        txn->begin_us < key->wild_us) {
        key->wild_us = txn->begin_us;
    }
}

enum check_result serial_order_versions(struct serial *s, struct key_part *key)
{
    struct place *places = calloc(key->writes_n + 1, sizeof *places);
    if (places == NULL) {
        return CHECK_NOMEM;
    }
    size_t n = 0;
    key->wild_us = UINT64_MAX;
    for (size_t i = key->writes; i < key->writes + key->writes_n; i++) {
        const struct written *write = &s->writes[i];
        struct place place = place_of(s, key, i);
        if (write->last && place.version != 0 && s->live[write->txn]) {
            places[n++] = place;
        } else {
            note_wild(s, key, write);
        }
    }
    qsort(places, n, sizeof *places, compare_places);
    key->order = s->order_n;
    key->order_n = n;
    enum check_result result = CHECK_ACCEPTED;
    for (size_t i = 0; i < n && result == CHECK_ACCEPTED; i++) {
        if (i > 0 && places[i].version == places[i - 1].version && !places[i].behind) {
            result = refuse_order(s, key, s->writes[places[i - 1].write].txn,
                                  s->writes[places[i].write].txn, places[i].version);
        }
        s->writes[places[i].write].position = (uint32_t)i + 1;
        s->order[s->order_n++] = places[i].write;
    }
    free(places);
    for (size_t i = 0; i < key->reads_n && result == CHECK_ACCEPTED; i++) {
        struct saw *read = &s->reads[key->reads + i];
        if (read->value != 0) {
            read->position = serial_find(s, key, read->value)->position;
        }
        read->latest = read->position;
    }
    return result;
}
