#include "tools/torture_keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"

#define KEY_OPS_MAX 1500u
#define KEY_AGE_US 3000000u
#define KEY_UNKNOWNS_MAX 8u
#define KEY_TRIES_MAX 200u
#define KEPT_OPS_MAX 4000000u

static struct torture_key *add_key(struct torture_keys *keys)
{
    if (keys->n == keys->capacity) {
        size_t capacity = keys->capacity == 0 ? 256 : 2 * keys->capacity;
        struct torture_key **all = realloc(keys->all, capacity * sizeof *all);
        if (all == NULL) {
            return NULL;
        }
        keys->all = all;
        keys->capacity = capacity;
    }
    struct torture_key *key = calloc(1, sizeof *key);
    if (key != NULL) {
        key->id = keys->n;
        key->class = (enum torture_class)(key->id % TORTURE_CLASSES);
        keys->all[keys->n++] = key;
    }
    return key;
}

bool torture_keys_init(struct torture_keys *keys, uint32_t open)
{
    *keys = (struct torture_keys){.next_value = TORTURE_VALUE_GAP};
    for (; keys->open_n < open; keys->open_n++) {
        struct torture_key *key = add_key(keys);
        if (key == NULL) {
            return false;
        }
        keys->open[keys->open_n] = key->id;
    }
    return true;
}

void torture_keys_deinit(struct torture_keys *keys)
{
    for (size_t i = 0; i < keys->n; i++) {
        free(keys->all[i]->ops);
        free(keys->all[i]->text);
        free(keys->all[i]);
    }
    free(keys->all);
    *keys = (struct torture_keys){.n = 0};
}

static bool had_enough(const struct torture_key *key, uint64_t now_us)
{
    return key->emptied || key->n + key->under_way >= KEY_OPS_MAX ||
           key->unknowns >= KEY_UNKNOWNS_MAX || (key->n > 0 && now_us > key->born_us + KEY_AGE_US);
}

struct torture_key *torture_keys_pick(struct torture_keys *keys, struct random *random,
                                      uint64_t now_us)
{
    uint64_t a = random_below(random, keys->open_n);
    uint64_t b = random_below(random, keys->open_n);
    uint64_t at = a < b ? a : b;
    struct torture_key *key = keys->all[keys->open[at]];
    if (key->born_us == 0) {
        key->born_us = now_us;
    }
    if (had_enough(key, now_us)) {
        key->state = KEY_ENDING;
        key = add_key(keys);
        if (key == NULL) {
            return NULL;
        }
        key->born_us = now_us;
        keys->open[at] = key->id;
    }
    return key;
}

void torture_keys_end(struct torture_keys *keys)
{
    for (uint32_t i = 0; i < keys->open_n; i++) {
        keys->all[keys->open[i]]->state = KEY_ENDING;
    }
    keys->open_n = 0;
}

struct torture_key *torture_keys_to_read(struct torture_keys *keys, struct torture_key **closed_out)
{
    *closed_out = NULL;
    while (keys->first_unclosed < keys->n && keys->all[keys->first_unclosed]->state == KEY_CLOSED) {
        keys->first_unclosed++;
    }
    for (size_t i = keys->first_unclosed; i < keys->n; i++) {
        struct torture_key *key = keys->all[i];
        if (key->state != KEY_ENDING || key->under_way > 0) {
            continue;
        }
        if (key->n == 0 || key->tries > KEY_TRIES_MAX) {
            key->state = KEY_CLOSED;
            *closed_out = key;
            return NULL;
        }
        key->state = KEY_READING;
        return key;
    }
    return NULL;
}

bool torture_keys_all_closed(const struct torture_keys *keys)
{
    for (size_t i = keys->first_unclosed; i < keys->n; i++) {
        if (keys->all[i]->state != KEY_CLOSED) {
            return false;
        }
    }
    return true;
}

bool torture_key_record(struct torture_key *key, const struct history_op *op)
{
    if (key->n == key->capacity) {
        size_t capacity = key->capacity == 0 ? 64 : 2 * key->capacity;
        struct history_op *ops = realloc(key->ops, capacity * sizeof *ops);
        if (ops == NULL) {
            return false;
        }
        key->ops = ops;
        key->capacity = capacity;
    }
    key->ops[key->n++] = *op;
    return true;
}

static bool record_deletion(struct torture_key *key, uint64_t begin_us)
{
    const struct history_op deletion = {
        .begin_us = begin_us,
        .key = key->id,
        .in = HISTORY_ABSENT,
        .expected = HISTORY_ABSENT,
        .out = HISTORY_ABSENT,
        .client = TORTURE_CLIENTS_MAX,
        .kind = HISTORY_DELETE,
        .outcome = HISTORY_UNKNOWN,
    };
    key->emptied = true;
    return torture_key_record(key, &deletion);
}

bool torture_keys_empty(struct torture_keys *keys, uint64_t now_us)
{
    bool good = true;
    for (size_t i = 0; i < keys->n; i++) {
        struct torture_key *key = keys->all[i];
        bool used = key->n > 0 || key->under_way > 0;
        if (key->state != KEY_CLOSED && used) {
            good = record_deletion(key, now_us) && good;
        }
        if ((key->state == KEY_CLOSED || key->state == KEY_READING) && key->emptied_us == 0) {
            key->emptied_us = now_us;
        }
    }
    return good;
}

bool torture_keys_note_emptied(struct torture_keys *keys)
{
    bool good = true;
    for (size_t i = 0; i < keys->n; i++) {
        struct torture_key *key = keys->all[i];
        HK_ASSERT(key->state == KEY_CLOSED);
        if (key->emptied_us != 0 && key->ops != NULL) {
            good = record_deletion(key, key->emptied_us) && good;
        }
    }
    return good;
}

static void drop_history(struct torture_keys *keys, struct torture_key *key)
{
    keys->kept_ops -= key->n;
    free(key->ops);
    key->ops = NULL;
    key->n = key->capacity = 0;
}

void torture_keys_judged(struct torture_keys *keys, struct torture_key *key)
{
    HK_ASSERT(key->state == KEY_CLOSED);
    if (key->judged) {
        return; /* once more, with the last reads */
    }
    key->judged = true;
    keys->kept_ops += key->n;
    if (key->last_known && key->unknowns == 0) {
        drop_history(keys, key);
    }
    for (; keys->kept_ops > KEPT_OPS_MAX && keys->kept_first < keys->n; keys->kept_first++) {
        struct torture_key *oldest = keys->all[keys->kept_first];
        if (!oldest->judged) {
            break; /* it is open, or with the judge */
        }
        if (oldest->ops != NULL) {
            drop_history(keys, oldest);
            keys->forgotten++;
        }
    }
}

bool torture_key_tamper(struct torture_key *key)
{
    struct history_op *last = key->n == 0 ? NULL : &key->ops[key->n - 1];
    if (!key->last_known || last->kind != HISTORY_READ || last->out != key->last) {
        return false;
    }
    for (size_t i = 0; i < key->n; i++) {
        for (size_t k = i + 1; k < key->n; k++) {
            const struct history_op *a = &key->ops[i];
            const struct history_op *b = &key->ops[k];
            if (a->kind == HISTORY_WRITE && b->kind == HISTORY_WRITE && a->outcome == HISTORY_OK &&
                b->outcome == HISTORY_OK && a->end_us < b->begin_us) {
                last->out = a->in;
                return true;
            }
        }
    }
    return false;
}

/* ---- Names and values ---- */

struct bytes torture_key_name(const struct torture_key *key, char name[TORTURE_NAME_BYTES])
{
    static const char *const names[] = {"register", "counter", "general"};
    int n = snprintf(name, TORTURE_NAME_BYTES, "%s-%" PRIu64, names[key->class], key->id);
    return bytes_of(name, (uint32_t)n);
}

/* Mostly short, now and then some kilobytes: longer than a read of a torn value would hide. */
static uint32_t value_length(uint64_t number)
{
    uint64_t x = number * 0x9e3779b97f4a7c15u;
    return (uint32_t)(x >> 60 == 0 ? x >> 20 & 4095 : x >> 20 & 63);
}

struct bytes torture_value(enum torture_class class, int64_t number, char to[TORTURE_VALUE_BYTES])
{
    uint32_t n = (uint32_t)snprintf(to, TORTURE_VALUE_BYTES, "%" PRId64, number);
    if (class == TORTURE_REGISTER) {
        /* Every byte behind the number follows from it, so that a mixture of two is noticed. */
        uint64_t x = (uint64_t)number;
        to[n++] = ':';
        for (uint32_t end = n + value_length(x); n < end; n++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            to[n] = (char)('a' + (x >> 33) % 26);
        }
    }
    return bytes_of(to, n);
}

bool torture_value_parse(enum torture_class class, struct bytes value, int64_t *number_out)
{
    char text[32];
    char again[TORTURE_VALUE_BYTES];
    uint32_t n = value.n < sizeof text - 1 ? value.n : (uint32_t)sizeof text - 1;
    if (n > 0) {
        memcpy(text, value.at, n);
    }
    text[n] = '\0';
    *number_out = strtoll(text, NULL, 10);
    /* Nothing but what would be written counts. */
    return n > 0 && bytes_equal(torture_value(class, *number_out, again), value);
}
