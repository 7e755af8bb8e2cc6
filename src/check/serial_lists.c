/* Lists that are appended to and read as a whole: the longest that was read is the order. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check/serial.h"

/* Whether every element of a list may be there. Numbers the elements, whose positions are 0. */
static enum check_result check_elements(struct serial *s, const struct key_part *key,
                                        const struct saw *read)
{
    for (uint32_t i = 0; i < read->op->list_n; i++) {
        uint64_t value = read->op->list[i];
        struct written *write = serial_find(s, key, value);
        enum check_result result = CHECK_ACCEPTED;
        if (i < read->list_n) {
            result = serial_check_seen(s, key, read->txn, write, value);
        }
        if (result != CHECK_ACCEPTED) {
            return result;
        }
        if (write->position != 0) {
            return serial_refuse(s, TXN_DUPLICATE_ELEMENTS, key->key, read->txn, SERIAL_NO_TXN,
                                 "T%" PRIu32 " read %" PRIu64 " twice in a list", read->txn, value);
        }
        write->position = i + 1;
    }
    return CHECK_ACCEPTED;
}

/* The read contradicts the longest list. If it is wrong in itself, that says more. */
static enum check_result refuse_prefix(struct serial *s, const struct key_part *key,
                                       const struct saw *read, const struct saw *longest)
{
    for (size_t i = key->writes; i < key->writes + key->writes_n; i++) {
        s->writes[i].position = 0;
    }
    enum check_result result = check_elements(s, key, read);
    if (result != CHECK_ACCEPTED) {
        return result;
    }
    return serial_refuse(s, TXN_INCOMPATIBLE_ORDER, key->key, read->txn, longest->txn,
                         "neither of two lists begins with the other");
}

static enum check_result resolve_read(struct serial *s, const struct key_part *key,
                                      struct saw *read, const struct saw *longest)
{
    size_t bytes = read->op->list_n * sizeof *read->op->list;
    if (bytes > 0 && memcmp(read->op->list, longest->op->list, bytes) != 0) {
        return refuse_prefix(s, key, read, longest);
    }
    for (uint32_t i = 0; i < read->list_n; i++) {
        const struct written *write = &s->writes[s->order[key->order + i]];
        if (write->txn == read->txn) {
            return serial_check_seen(s, key, read->txn, write, write->value);
        }
    }
    if (read->list_n == 0) {
        return CHECK_ACCEPTED;
    }
    const struct written *last = &s->writes[s->order[key->order + read->list_n - 1]];
    if (!last->last) {
        return serial_refuse(s, TXN_INTERMEDIATE_READ, key->key, read->txn, last->txn,
                             "T%" PRIu32 " read up to %" PRIu64 ", after which T%" PRIu32
                             " appended more",
                             read->txn, last->value, last->txn);
    }
    read->position = read->list_n;
    read->latest = read->position;
    return CHECK_ACCEPTED;
}

static enum check_result set_order(struct serial *s, struct key_part *key,
                                   const struct saw *longest)
{
    key->order = s->order_n;
    enum check_result result = check_elements(s, key, longest);
    if (result != CHECK_ACCEPTED) {
        return result;
    }
    for (uint32_t i = 0; i < longest->op->list_n; i++) {
        const struct written *write = serial_find(s, key, longest->op->list[i]);
        s->order[s->order_n++] = (size_t)(write - s->writes);
        s->live[write->txn] = true;
    }
    key->order_n = longest->op->list_n;
    return CHECK_ACCEPTED;
}

enum check_result serial_resolve_lists(struct serial *s, struct key_part *key)
{
    const struct saw *longest = NULL;
    for (size_t i = 0; i < key->reads_n; i++) {
        const struct saw *read = &s->reads[key->reads + i];
        if (longest == NULL || read->op->list_n > longest->op->list_n) {
            longest = read;
        }
    }
    key->order = s->order_n;
    enum check_result result = longest == NULL ? CHECK_ACCEPTED : set_order(s, key, longest);
    for (size_t i = 0; i < key->reads_n && result == CHECK_ACCEPTED; i++) {
        result = resolve_read(s, key, &s->reads[key->reads + i], longest);
    }
    return result;
}
