#include "support/node_tries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/slot.h"

#define TEXT_MAX 4096u

/* ---- The world around it ---- */

static uint64_t env_wall_ms(void *context)
{
    return ((struct tries *)context)->wall_ms;
}

static void env_wake(void *context, uint32_t worker)
{
    ((struct tries *)context)->woken[worker] = true;
}

static void hear(struct tries *t, uint32_t worker, uint8_t to, struct bytes body)
{
    while (body.n > 0) {
        assert_true(t->heard_n < TRIES_HEARD_MAX);
        struct tries_heard *h = &t->heard[t->heard_n++];
        uint32_t used;
        h->bytes = malloc(body.n);
        assert_non_null(h->bytes);
        memcpy(h->bytes, body.at, body.n);
        assert_int_equal(msg_decode(bytes_of(h->bytes, body.n), &h->msg, &used), HK_OK);
        assert_null(lotus_msg_invalid(&h->msg));
        assert_int_equal(h->msg.epoch, t->view.epoch);
        h->to = to;
        h->worker = worker;
        body.at += used;
        body.n -= used;
    }
}

static void env_send(void *context, uint32_t worker, uint8_t to, struct bytes frame)
{
    hear(context, worker, to, bytes_of(frame.at + FRAME_HEADER, frame.n - FRAME_HEADER));
}

struct worker *tries_worker(struct tries *t, uint32_t worker)
{
    return node_worker(t->node, worker);
}

struct home_space *tries_home(struct tries *t, uint32_t worker)
{
    return tries_worker(t, worker)->lotus_home->spaces[0];
}

static uint64_t nonce_of(const struct tries *t, uint8_t node)
{
    return t->view.members[node].nonce;
}

static void set_slots(struct tries *t, uint32_t first, uint32_t n, bool moves)
{
    struct slot_home here = {
        .home = 0, .to = moves ? 2 : NODE_NONE, .state = moves ? HOME_MOVING : HOME_STABLE};
    struct effect e = {
        .kind = EFF_HOME, .gen = first, .slot = n, .ts = ++t->map, .set = slot_home_pack(here)};
    homes_set(tries_worker(t, 0), 0, &e);
}

void tries_move(struct tries *t, uint32_t slot, bool moves)
{
    set_slots(t, slot, 1, moves);
}

void tries_start(struct tries *t, const struct lotus_config *config, uint32_t workers)
{
    memset(t, 0, sizeof *t);
    t->config = *config;
    t->workers = workers;
    t->now_us = 1000000;
    t->wall_ms = 1700000000000u;
    struct node_config nc = {
        .self = 0,
        .workers = workers,
        .cluster = 77,
        .seed = 5,
        .calls_max = 16,
        .flows_max = 16,
        .view = {.self = 0,
                 .nonce = 1000,
                 .configured = nodeset_of(TRIES_NODES) - 1,
                 .lease_us = 200000,
                 .margin_us = 20000,
                 .heartbeat_us = 40000,
                 .suspect_us = 120000,
                 .cids_per_member = 4,
                 .seed = 3},
    };
    nc.spaces[0] = (struct space_config){
        .ops = &lotus_ops,
        .engine = &t->config,
        .store = {.value_bytes_max = 1u << 20, .seed = 9},
    };
    t->env = (struct env){.context = t,
                          .send = env_send,
                          .wake = env_wake,
                          .wall_ms = env_wall_ms,
                          .ordered = true,
                          .intact = true};
    assert_int_equal(node_create(&nc, &t->env, t->now_us, &t->node), HK_OK);
    t->view.generation = 1;
    t->view.members[0].nonce = 1000;
    set_slots(t, 0, HASH_SLOTS, false);
    atomic_store(&t->node->spaces[0].serves, true);
    tries_view(t, nc.view.configured);
}

void tries_stop(struct tries *t)
{
    node_destroy(t->node);
    tries_forget(t);
}

/* ---- Saying ---- */

/* What it says leaves, and is heard. */
static void flush(struct tries *t, struct worker *w)
{
    if (w->self.body > 0) {
        hear(t, w->index, 0, bytes_of(w->self.at + FRAME_HEADER, w->self.body));
        w->self.body = 0;
    }
    output_flush(w);
    lotus_home_check(w);
    store_quiescent(w->threads[0]);
}

/* The bytes are gone afterwards, as a frame's are. */
void tries_say(struct tries *t, uint32_t worker, uint8_t from, struct msg *msg)
{
    struct worker *w = tries_worker(t, worker);
    uint8_t *bytes = malloc(msg_size(msg));
    struct msg m;
    uint32_t used;
    assert_non_null(bytes);
    assert_null(lotus_msg_invalid(msg));
    msg_encode(msg, bytes);
    assert_int_equal(msg_decode(bytes_of(bytes, msg_size(msg)), &m, &used), HK_OK);
    w->now_us = t->now_us;
    w->wall_ms = t->wall_ms;
    lotus_home_message(w, &m, from);
    memset(bytes, 0xee, used);
    free(bytes);
    flush(t, w);
}

static void say(struct tries *t, const struct tries_try *who, struct msg *m)
{
    m->slot = lotus_slot(who->worker, who->slot);
    m->gen = who->gen;
    m->epoch = t->view.epoch;
    tries_say(t, who->worker, who->node, m);
}

static struct bytes text_of(const char *at, const char *end)
{
    return bytes_of(at, (uint32_t)(end - at));
}

static uint8_t *put_item(uint8_t *at, const char *word, const char *end)
{
    struct lotus_item item = {.mode = word[0] == 'X' ? LOCK_X : LOCK_S,
                              .key = text_of(word + 1, end)};
    if (word[0] == 'R') {
        const char *dash = memchr(word, '-', (size_t)(end - word));
        assert_non_null(dash);
        item.flags = LOTUS_ITEM_RANGE;
        item.key = text_of(word + 1, dash);
        item.end = text_of(dash + 1, end);
    }
    return lotus_item_put(at, &item);
}

/* Versions of what is written count on. */
static uint8_t *put_row(uint8_t *at, const char *word, const char *end)
{
    static uint64_t version = 1u << 20;
    const char *is = memchr(word, '=', (size_t)(end - word));
    struct lotus_row row = {.version = ++version};
    if (is != NULL) {
        row.key = text_of(word, is);
        row.value = text_of(is + 1, end);
    } else {
        row.key = text_of(word, end - 1);
        row.flags = LOTUS_ROW_ABSENT;
    }
    return lotus_row_put(at, &row);
}

static uint8_t *put_words(uint8_t *at, const char *text,
                          uint8_t *(*put)(uint8_t *at, const char *word, const char *end))
{
    while (*text != '\0') {
        const char *end = strchr(text, ' ');
        end = end != NULL ? end : text + strlen(text);
        at = put(at, text, end);
        text = *end == ' ' ? end + 1 : end;
    }
    return at;
}

static struct lotus_head head_of(const struct tries *t, const struct tries_try *who)
{
    return (struct lotus_head){
        .age = {.us = who->age, .who = lotus_who(who->node, who->worker, who->slot)},
        .map = t->map};
}

void tries_execute(struct tries *t, const struct tries_try *who, bool more, const char *items)
{
    uint8_t value[TEXT_MAX];
    struct lotus_head head = head_of(t, who);
    uint8_t *end = put_words(lotus_head_put(value, &head), items, put_item);
    struct msg m = {
        .kind = LOTUS_MSG_EXECUTE, .arg = more, .value = bytes_of(value, (uint32_t)(end - value))};
    say(t, who, &m);
}

void tries_finish(struct tries *t, const struct tries_try *who, const char *rows)
{
    uint8_t value[TEXT_MAX];
    uint8_t *end = put_words(value, rows, put_row);
    struct msg m = {.kind = LOTUS_MSG_FINISH, .value = bytes_of(value, (uint32_t)(end - value))};
    say(t, who, &m);
}

void tries_prepare(struct tries *t, const struct tries_try *who, uint64_t number,
                   nodeset participants, const char *rows)
{
    uint8_t value[TEXT_MAX];
    put_u64(value, participants);
    uint8_t *end = put_words(value + 8, rows, put_row);
    struct msg m = {.kind = LOTUS_MSG_PREPARE,
                    .arg = number,
                    .value = bytes_of(value, (uint32_t)(end - value))};
    say(t, who, &m);
}

void tries_whole(struct tries *t, const struct tries_try *who, const struct op *ops, uint32_t n)
{
    uint8_t value[TEXT_MAX];
    struct lotus_head head = head_of(t, who);
    struct txn_request request = {.ops = ops, .ops_n = n};
    uint8_t *end = lotus_request_put(lotus_head_put(value, &head), &request);
    struct msg m = {.kind = LOTUS_MSG_WHOLE, .value = bytes_of(value, (uint32_t)(end - value))};
    say(t, who, &m);
}

void tries_plain(struct tries *t, const struct tries_try *who, enum lotus_kind kind, uint64_t done)
{
    struct msg m = {.kind = (uint8_t)kind, .ts = done};
    say(t, who, &m);
}

void tries_about(struct tries *t, uint8_t from, const struct tries_try *who, enum lotus_kind kind,
                 uint64_t ts)
{
    uint8_t nonce[8];
    put_u64(nonce, nonce_of(t, who->node));
    struct msg m = {.kind = (uint8_t)kind,
                    .slot = lotus_slot(who->worker, who->slot),
                    .gen = who->gen,
                    .epoch = t->view.epoch,
                    .ts = ts,
                    .arg = (uint64_t)who->node | (uint64_t)who->worker << 8,
                    .key = bytes_of(nonce, sizeof nonce)};
    tries_say(t, who->worker, from, &m);
}

/* ---- Hearing ---- */

static const struct msg *next(struct tries *t, uint8_t node, enum lotus_kind kind,
                              const struct tries_try *who)
{
    assert_true(t->read < t->heard_n);
    const struct tries_heard *h = &t->heard[t->read++];
    assert_int_equal(h->msg.kind, kind);
    assert_int_equal(h->to, node);
    assert_int_equal(h->worker, who->worker);
    assert_int_equal(h->msg.slot, lotus_slot(who->worker, who->slot));
    assert_int_equal(h->msg.gen, who->gen);
    return &h->msg;
}

uint64_t tries_hears(struct tries *t, uint8_t node, enum lotus_kind kind,
                     const struct tries_try *who)
{
    return next(t, node, kind, who)->ts;
}

void tries_hears_word(struct tries *t, const struct tries_try *who, enum lotus_kind kind,
                      enum lotus_word word)
{
    assert_int_equal(tries_hears(t, who->node, kind, who), word);
}

void tries_hears_rows(struct tries *t, const struct tries_try *who, const char *rows)
{
    const struct msg *m = next(t, who->node, LOTUS_MSG_EXECUTED, who);
    char text[TEXT_MAX];
    size_t n = 0;
    struct lotus_row row;
    struct bytes rest = m->value;
    assert_int_equal(m->ts, LOTUS_OK);
    while (lotus_row_take(&rest, &row)) {
        const char *between = n > 0 ? " " : "";
        if ((row.flags & LOTUS_ROW_END) != 0) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s.", between);
            continue;
        }
        bool absent = (row.flags & LOTUS_ROW_ABSENT) != 0;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s%s%.*s", between, (int)row.key.n,
                              (const char *)row.key.at, row.key.n > 0 ? "=" : "",
                              absent ? 1 : (int)row.value.n,
                              absent ? "-" : (const char *)row.value.at);
    }
    text[n] = '\0';
    assert_string_equal(text, rows);
}

const struct msg *tries_last(const struct tries *t)
{
    assert_true(t->read > 0);
    return &t->heard[t->read - 1].msg;
}

void tries_forget(struct tries *t)
{
    for (uint32_t i = 0; i < t->heard_n; i++) {
        free(t->heard[i].bytes);
    }
    t->heard_n = t->read = 0;
}

void tries_silent(struct tries *t)
{
    assert_int_equal(t->read, t->heard_n);
}

/* ---- Time and views ---- */

void tries_poll(struct tries *t, uint64_t us)
{
    bool again = true;
    t->now_us += us;
    t->wall_ms += us / 1000;
    for (uint32_t rounds = 0; again; rounds++) {
        assert_true(rounds < 1000);
        again = false;
        for (uint32_t i = 0; i < t->workers; i++) {
            struct worker *w = tries_worker(t, i);
            w->now_us = t->now_us;
            w->wall_ms = t->wall_ms;
            lotus_home_poll(w);
            flush(t, w);
        }
        for (uint32_t i = 0; i < t->workers; i++) {
            again = again || lotus_home_wanted(tries_worker(t, i));
        }
    }
}

void tries_view(struct tries *t, nodeset live)
{
    nodeset new = live & ~t->view.live;
    t->view.epoch++;
    for (; new != 0; new &= new - 1) {
        struct view_member *m = &t->view.members[nodeset_first(new)];
        m->admitted = t->view.epoch;
        m->nonce = nodeset_first(new) == 0 ? 1000 : 1000 * t->view.epoch + nodeset_first(new);
    }
    t->view.live = t->view.operational = live;
    atomic_store(&t->node->published_epoch, t->view.epoch);
    for (uint32_t i = 0; i < t->workers; i++) {
        struct worker *w = tries_worker(t, i);
        w->view = t->view;
        for (uint8_t k = 0; k < NODES_MAX; k++) {
            if (!nodeset_has(live, k)) {
                w->view.members[k] = (struct view_member){.nonce = 0};
            }
        }
        w->operational = true;
        lotus_home_adopt(w);
        flush(t, w);
    }
}

void tries_holds(struct tries *t, const char *key, const char *value)
{
    struct lotus_row row;
    _Alignas(8) uint8_t buffer[LOTUS_NEXT_BYTES];
    struct bytes k = bytes_of(key, (uint32_t)strlen(key));
    bool found = lotus_table_next(t->node->spaces[0].table, tries_worker(t, 0)->threads[0], k, true,
                                  buffer, &row);
    bool here = found && bytes_equal(row.key, k) && (row.flags & LOTUS_ROW_ABSENT) == 0;
    assert_int_equal(here, strcmp(value, "-") != 0);
    if (here) {
        assert_int_equal(row.value.n, strlen(value));
        assert_memory_equal(row.value.at, value, row.value.n);
    }
}

void tries_idle(struct tries *t, uint64_t outcomes)
{
    struct lotus_table_stats stats;
    uint64_t known = 0;
    lotus_table_stats(t->node->spaces[0].table, &stats);
    assert_int_equal(stats.requests, 0);
    for (uint32_t i = 0; i < t->workers; i++) {
        known += tries_home(t, i)->tries_n;
    }
    assert_int_equal(known, outcomes);
    assert_null(lotus_table_check(t->node->spaces[0].table, tries_worker(t, 0)->threads[0]));
}
