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
        uint64_t value = read->op->value;
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
        if (write->version != 0 && write->version != read->op->version) {
            return refuse_order(s, key, read->txn, write->txn, read->op->version);
        }
        write->version = read->op->version;
        s->live[write->txn] = true;
    }
    return CHECK_ACCEPTED;
}

struct place {
    uint64_t version;
    size_t write;
};

static int compare_places(const void *left, const void *right)
{
    const struct place *a = left;
    const struct place *b = right;
    if (a->version != b->version) {
        return a->version < b->version ? -1 : 1;
    }
    return (a->write > b->write) - (a->write < b->write);
}

enum check_result serial_order_versions(struct serial *s, struct key_part *key)
{
    struct place *places = calloc(key->writes_n + 1, sizeof *places);
    if (places == NULL) {
        return CHECK_NOMEM;
    }
    size_t n = 0;
    for (size_t i = key->writes; i < key->writes + key->writes_n; i++) {
        const struct written *write = &s->writes[i];
        if (write->last && write->version != 0 && s->live[write->txn]) {
            places[n++] = (struct place){write->version, i};
        }
    }
    qsort(places, n, sizeof *places, compare_places);
    key->order = s->order_n;
    key->order_n = n;
    enum check_result result = CHECK_ACCEPTED;
    for (size_t i = 0; i < n && result == CHECK_ACCEPTED; i++) {
        if (i > 0 && places[i].version == places[i - 1].version) {
            result = refuse_order(s, key, s->writes[places[i - 1].write].txn,
                                  s->writes[places[i].write].txn, places[i].version);
        }
        s->writes[places[i].write].position = (uint32_t)i + 1;
        s->order[s->order_n++] = places[i].write;
    }
    free(places);
    for (size_t i = 0; i < key->reads_n && result == CHECK_ACCEPTED; i++) {
        struct saw *read = &s->reads[key->reads + i];
        if (read->op->value != 0) {
            read->position = serial_find(s, key, read->op->value)->position;
        }
    }
    return result;
}
