#include "support/node_player.h"

#include <string.h>

#include "base/assert.h"

static const char letters[PLAY_KEYS + 1] = "abcdefgh";

static struct bytes key_of(uint8_t key)
{
    return key == PLAY_KEYS ? bytes_of(NULL, 0) : bytes_of(&letters[key], 1);
}

static uint64_t value_of(const struct lotus_row *row)
{
    uint64_t value = 0;
    if ((row->flags & LOTUS_ROW_ABSENT) == 0) {
        HK_ASSERT(row->value.n >= sizeof(value));
        memcpy(&value, row->value.at, sizeof(value));
    }
    return value;
}

static bool is_scan(const struct play_step *s)
{
    return s->kind == PLAY_SCAN || s->kind == PLAY_SCAN_DELETE;
}

static void invent(struct player *p)
{
    struct random *r = p->random;
    p->play = (struct play){.steps_n = 1u + (uint32_t)random_below(r, PLAY_STEPS_MAX)};
    for (uint32_t i = 0; i < p->play.steps_n; i++) {
        uint8_t a = (uint8_t)random_below(r, PLAY_KEYS);
        uint8_t b = (uint8_t)(random_below(r, PLAY_KEYS) + 1u);
        uint64_t kind = random_below(r, 20);
        bool limited = random_below(r, 3) == 0;
        p->play.steps[i] =
            (struct play_step){.kind = kind < 4    ? PLAY_READ
                                       : kind < 10 ? PLAY_WRITE
                                       : kind < 13 ? PLAY_DELETE
                                       : kind < 19 ? PLAY_SCAN
                                                   : PLAY_SCAN_DELETE,
                               .key = a < b ? a : b,
                               .end = a < b ? b : a,
                               .limit = (uint8_t)(limited ? 1u + random_below(r, 3) : 0),
                               .reverse = random_below(r, 3) == 0};
    }
}

/* ---- What must be ---- */

static bool scan_is_right(const struct play_model *model, const struct play_step *s)
{
    uint32_t n = 0;
    for (uint32_t i = s->key; i < s->end; i++) {
        uint32_t key = s->reverse ? s->key + s->end - 1u - i : i;
        if (model->values[key] == 0 || (s->limit != 0 && n == s->limit)) {
            continue;
        }
        if (n == s->rows_n || s->keys[n] != key || s->values[n] != model->values[key]) {
            return false;
        }
        n++;
    }
    return n == s->rows_n;
}

bool play_is_right(const struct play_model *model, const struct play *play)
{
    bool right = true;
    for (uint32_t i = 0; i < play->steps_n; i++) {
        const struct play_step *s = &play->steps[i];
        right &= is_scan(s) ? scan_is_right(model, s) : s->values[0] == model->values[s->key];
    }
    return right;
}

/* What step number i writes to row number k of what it read; PLAY_KEYS: nothing more. */
static uint8_t written(const struct play *play, uint32_t i, uint32_t k, uint64_t *value_out)
{
    const struct play_step *s = &play->steps[i];
    *value_out = s->kind == PLAY_WRITE ? play->place * PLAY_STEPS_MAX + i : 0;
    if (s->kind == PLAY_SCAN_DELETE) {
        return k < s->rows_n ? s->keys[k] : PLAY_KEYS;
    }
    return k == 0 && (s->kind == PLAY_WRITE || s->kind == PLAY_DELETE) ? s->key : PLAY_KEYS;
}

void play_apply(struct play_model *model, const struct play *play)
{
    uint64_t value;
    for (uint32_t i = 0; i < play->steps_n; i++) {
        uint8_t key;
        for (uint32_t k = 0; (key = written(play, i, k, &value)) != PLAY_KEYS; k++) {
            model->values[key] = value;
        }
    }
}

/* ---- Playing ---- */

void player_stop(struct player *p)
{
    if (p->begun) {
        lotus_scan_end(&p->scan, p->thread);
        lotus_table_end(p->table, p->thread, &p->holder);
    }
    p->begun = false;
    p->state = PLAYER_RUNS;
}

static void scan_begin(struct player *p, struct play_step *s)
{
    s->rows_n = 0;
    p->scan = (struct lotus_scan){
        .item = {.mode = s->kind == PLAY_SCAN ? LOCK_S : LOCK_X,
                 .flags = (uint8_t)(LOTUS_ITEM_RANGE | (s->reverse ? LOTUS_ITEM_REVERSE : 0)),
                 .limit = s->limit,
                 .key = s->key == 0 ? bytes_of(NULL, 0) : key_of(s->key),
                 .end = key_of(s->end)}};
}

/* DONE and *ended_out false: there is more to scan. */
static enum table_word scan_on(struct player *p, struct play_step *s, bool *ended_out)
{
    struct lotus_row row;
    if (p->scan.item.flags == 0) {
        scan_begin(p, s);
    }
    bool more = true;
    enum table_word word = TABLE_DONE;
    /* A row at a time, or all at once. */
    bool one = random_below(p->random, 2) == 0;
    while (word == TABLE_DONE && more) {
        word = lotus_table_scan(p->table, p->thread, &p->holder, &p->scan, p->buffer, &row, &more);
        if (word == TABLE_DONE && more) {
            if (s->rows_n == PLAY_KEYS) {
                p->broken = "a scan meets more rows than there are";
                return TABLE_REFUSED;
            }
            s->keys[s->rows_n] = (uint8_t)(row.key.at[0] - 'a');
            s->values[s->rows_n++] = value_of(&row);
            if (one) {
                break;
            }
        }
    }
    *ended_out = word == TABLE_DONE && !more;
    if (*ended_out) {
        lotus_scan_end(&p->scan, p->thread);
        p->scan.item.flags = 0;
    }
    return word;
}

static enum table_word step(struct player *p, bool *ended_out)
{
    struct play_step *s = &p->play.steps[p->at];
    struct lotus_row row;
    if (is_scan(s)) {
        return scan_on(p, s, ended_out);
    }
    /* Every other key's ghosts have room for what is mostly written. */
    struct lotus_item item = {.mode = s->kind == PLAY_READ ? LOCK_S : LOCK_X,
                              .room = s->key % 2u * 40u,
                              .key = key_of(s->key)};
    enum table_word word =
        lotus_table_item(p->table, p->thread, &p->holder, &item, p->buffer, &row);
    s->values[0] = word == TABLE_DONE ? value_of(&row) : 0;
    *ended_out = word == TABLE_DONE;
    return word;
}

/* Of a size that is known before the place is. */
static enum table_word write_row(struct player *p, uint8_t key, uint32_t i, uint64_t value,
                                 bool reserve, uint64_t now_us)
{
    uint8_t bytes[64] = {0};
    uint32_t n = 8u + (uint32_t)((p->age * 7u + key * 13u + i * 5u) % 50u);
    bool absent = p->play.steps[i].kind != PLAY_WRITE;
    memcpy(bytes, &value, sizeof(value));
    struct lotus_row row = {.key = key_of(key),
                            .version = p->age,
                            .flags = absent ? LOTUS_ROW_ABSENT : 0,
                            .value = bytes_of(bytes, absent ? 0 : n)};
    return reserve ? lotus_table_reserve(p->table, p->thread, &p->holder, &row)
                   : lotus_table_write(p->table, p->thread, &p->holder, &row, now_us);
}

/* Writes all, or reserves for it: each row once, as its last step has it. */
static bool each_write(struct player *p, bool reserve, uint64_t now_us)
{
    bool done = true;
    uint32_t last[PLAY_KEYS] = {0};
    uint64_t values[PLAY_KEYS], value;
    for (uint32_t i = 0; i < p->play.steps_n; i++) {
        uint8_t key;
        for (uint32_t k = 0; (key = written(&p->play, i, k, &value)) != PLAY_KEYS; k++) {
            last[key] = i + 1u;
            values[key] = value;
        }
    }
    for (uint8_t key = 0; key < PLAY_KEYS; key++) {
        if (last[key] != 0) {
            done &= write_row(p, key, last[key] - 1u, values[key], reserve, now_us) == TABLE_DONE;
        }
    }
    return done;
}

static void begin(struct player *p, uint64_t age)
{
    if (!p->tried) {
        invent(p);
        p->age = age;
    }
    p->holder.age = (struct lock_age){.us = p->age, .who = p->age_who};
    lotus_table_begin(p->table, &p->holder);
    p->at = 0;
    p->begun = true;
    p->tried = true;
    p->scan = (struct lotus_scan){.found = 0};
}

void player_turn(struct player *p, uint64_t age)
{
    HK_ASSERT(p->state != PLAYER_PREPARED);
    if (!p->begun) {
        begin(p, age);
    }
    if (p->at == p->play.steps_n) {
        if (each_write(p, true, 0) && lotus_table_prepare(p->table, &p->holder)) {
            p->state = PLAYER_PREPARED;
        } else {
            player_stop(p);
        }
        return;
    }
    bool ended = false;
    enum table_word word = step(p, &ended);
    p->state = word == TABLE_WAITS ? PLAYER_WAITS : PLAYER_RUNS;
    p->at += ended;
    if (word != TABLE_DONE && word != TABLE_WAITS) {
        p->refused++;
        player_stop(p);
    }
}

void player_commit(struct player *p, uint64_t place, uint64_t now_us)
{
    HK_ASSERT(p->state == PLAYER_PREPARED);
    p->play.place = place;
    if (!each_write(p, false, now_us)) {
        p->broken = "a prepared write is refused";
    }
    p->tried = false;
    player_stop(p);
}
