#include "tools/torture_crowd.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "tools/torture_ops.h"

#define CONNECT_US 1000000u
#define BACKOFF_LEAST_US 3000u
#define BACKOFF_MOST_US 60000u

void torture_crowd_init(struct torture_crowd *crowd, const struct torture_options *options,
                        uint32_t think_us, struct torture_cluster *cluster,
                        struct torture_keys *keys, struct torture_judge *judge)
{
    *crowd = (struct torture_crowd){
        .options = options,
        .cluster = cluster,
        .keys = keys,
        .judge = judge,
        .think_us = think_us,
        .n = options->clients,
    };
    random_init(&crowd->random, options->seed ^ UINT64_C(0x636c69656e7473));
    for (uint32_t i = 0; i < crowd->n; i++) {
        struct torture_client *c = &crowd->at[i];
        *c = (struct torture_client){.id = i, .node = 1 + i % options->nodes, .window = 1};
        c->reader = random_chance(&crowd->random, 250000);
        if (random_chance(&crowd->random, 300000)) {
            c->window = (uint32_t)random_between(&crowd->random, 2, TORTURE_WINDOW_MAX);
        }
        torture_stream_init(&c->stream);
    }
}

void torture_crowd_deinit(struct torture_crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->n; i++) {
        torture_stream_deinit(&crowd->at[i].stream);
    }
}

static void count_gap(struct torture_gap *gap, uint64_t now_us)
{
    if (gap->last_us != 0 && now_us > gap->last_us && now_us - gap->last_us > gap->longest_us) {
        gap->longest_us = now_us - gap->last_us;
        gap->longest_at_us = gap->last_us;
    }
    gap->last_us = now_us;
}

void torture_crowd_end_gaps(struct torture_crowd *crowd, uint64_t now_us)
{
    count_gap(&crowd->gap, now_us);
    count_gap(&crowd->update_gap, now_us);
}

void torture_crowd_calm(struct torture_crowd *crowd)
{
    crowd->calm = true;
    for (uint32_t i = 0; i < crowd->n; i++) {
        crowd->at[i].ok_calm = 0;
    }
}

uint64_t torture_crowd_least_calm(const struct torture_crowd *crowd)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < crowd->n; i++) {
        least = crowd->at[i].ok_calm < least ? crowd->at[i].ok_calm : least;
    }
    return least;
}

bool torture_crowd_idle(const struct torture_crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->n; i++) {
        if (crowd->at[i].n > 0) {
            return false;
        }
    }
    return true;
}

/* ---- Outcomes ---- */

static void learn(struct torture_key *key, const struct history_op *h)
{
    bool set = h->kind == HISTORY_WRITE || h->kind == HISTORY_GETSET ||
               ((h->kind == HISTORY_SET_IF || h->kind == HISTORY_SET_ABSENT ||
                 h->kind == HISTORY_SET_PRESENT) &&
                h->ok);
    bool gone = h->kind == HISTORY_GETDEL || h->kind == HISTORY_DELETE_PRESENT ||
                (h->kind == HISTORY_DELETE_IF && h->ok);
    bool told = h->kind == HISTORY_READ || h->kind == HISTORY_ADD;
    if (set || gone || told) {
        key->seen_known = true;
        key->seen = set ? h->in : gone ? HISTORY_ABSENT : h->out;
    }
}

static void count(struct torture_crowd *crowd, struct torture_client *c, const struct history_op *h)
{
    crowd->failed += h->outcome == HISTORY_FAILED;
    crowd->unknown += h->outcome == HISTORY_UNKNOWN;
    if (h->outcome == HISTORY_OK) {
        HK_ASSERT(h->kind < TORTURE_HISTORY_KINDS);
        crowd->ok++;
        crowd->ok_of[h->kind]++;
        c->ok_calm++;
        count_gap(&crowd->gap, h->end_us);
        if (torture_op_updates(h)) {
            count_gap(&crowd->update_gap, h->end_us);
        }
    }
}

static void close_key(struct torture_crowd *crowd, struct torture_key *key)
{
    key->state = KEY_CLOSED;
    if (crowd->options->tamper == TORTURE_TAMPER_READ && !crowd->tampered) {
        crowd->tampered = torture_key_tamper(key);
    }
    torture_judge_give(crowd->judge, key);
}

/* The operation is over, with its outcome in h. */
static void finish(struct torture_crowd *crowd, struct torture_client *c, struct torture_call *call)
{
    struct torture_key *key = call->key;
    struct history_op *h = &call->h;
    bool ok = h->outcome == HISTORY_OK;
    count(crowd, c, h);
    HK_ASSERT(key->under_way > 0);
    key->under_way--;
    /* A read that failed says nothing. */
    if ((ok || torture_op_updates(h)) && !torture_key_record(key, h)) {
        crowd->no_memory = true;
    }
    key->unknowns += h->outcome == HISTORY_UNKNOWN && torture_op_updates(h);
    if (ok) {
        learn(key, h);
    }
    if (call->closing) {
        key->last_known = ok;
        key->last = h->out;
        key->tries += !ok;
        key->state = KEY_ENDING;
        if (ok) {
            close_key(crowd, key);
        }
    }
}

static void back_off(struct torture_crowd *crowd, struct torture_client *c, uint64_t now_us)
{
    c->act_us = now_us + random_between(&crowd->random, BACKOFF_LEAST_US, BACKOFF_MOST_US);
}

/* The connection is lost, or given up: nobody knows what became of updates under way. */
static void hang_up(struct torture_crowd *crowd, struct torture_client *c, uint64_t now_us)
{
    torture_stream_close(&c->stream, random_chance(&crowd->random, 500000));
    for (; c->n > 0; c->n--) {
        struct torture_call *call = &c->ring[c->first];
        c->first = (c->first + 1) % TORTURE_WINDOW_MAX;
        call->h.outcome = torture_op_updates(&call->h) ? HISTORY_UNKNOWN : HISTORY_FAILED;
        finish(crowd, c, call);
    }
    if (random_chance(&crowd->random, 700000)) {
        c->node = (uint32_t)random_between(&crowd->random, 1, crowd->options->nodes);
    }
    crowd->moves++;
    back_off(crowd, c, now_us);
}

static void complain(struct torture_crowd *crowd, const struct torture_client *c,
                     const struct torture_call *call, const char *what, struct bytes reply)
{
    char op[200];
    history_op_print(&call->h, op, sizeof op);
    uint32_t n = reply.n < 100 ? reply.n : 100;
    snprintf(crowd->wrong, sizeof crowd->wrong, "node %u answers %s: %.*s; to %s", c->node, what,
             (int)n, n == 0 ? "" : (const char *)reply.at, op);
    crowd->wrong_has_key = true;
    crowd->wrong_key = call->key->id;
}

/* One reply; whether the client is still content with its node. */
static bool take(struct torture_crowd *crowd, struct torture_client *c,
                 const struct resp_client_reply *reply, uint64_t end_us)
{
    if (c->n == 0) {
        if (crowd->wrong[0] == '\0') {
            snprintf(crowd->wrong, sizeof crowd->wrong, "node %u answers what nobody asked",
                     c->node);
        }
        return false;
    }
    struct torture_call *call = &c->ring[c->first];
    c->first = (c->first + 1) % TORTURE_WINDOW_MAX;
    c->n--;
    call->h.end_us = end_us;
    const char *wrong = torture_op_understand(call->key, &call->h, reply);
    if (wrong != NULL && crowd->wrong[0] == '\0') {
        complain(crowd, c, call, wrong, reply->text);
    }
    finish(crowd, c, call);
    return call->h.outcome == HISTORY_OK;
}

/* ---- Acting ---- */

static bool add_call(struct torture_crowd *crowd, struct torture_client *c, uint64_t now_us)
{
    struct torture_key *closed = NULL;
    struct torture_key *key = torture_keys_to_read(crowd->keys, &closed);
    struct torture_call *call = &c->ring[(c->first + c->n) % TORTURE_WINDOW_MAX];
    if (closed != NULL) {
        torture_judge_give(crowd->judge, closed);
    }
    *call = (struct torture_call){.closing = key != NULL};
    if (key != NULL) {
        torture_op_read(key, &call->h);
    } else if (crowd->drains || (!crowd->calm && torture_judge_behind(crowd->judge))) {
        /* After the faults everybody must get on, and that is bounded by --heal. */
        return false;
    } else {
        key = torture_keys_pick(crowd->keys, &crowd->random, now_us);
        if (key == NULL) {
            crowd->no_memory = true;
            return false;
        }
        if (c->reader) {
            torture_op_read(key, &call->h);
        } else {
            torture_op_draw(crowd->keys, key, &crowd->random, &call->h);
        }
    }
    call->key = key;
    call->h.client = c->id;
    key->under_way++;
    c->n++;
    crowd->no_memory |= !torture_op_say(key, &call->h, &c->stream);
    return true;
}

static void ask(struct torture_crowd *crowd, struct torture_client *c, uint64_t now_us)
{
    uint64_t calls = c->window == 1 ? 1 : random_between(&crowd->random, 1, c->window);
    while (c->n < calls && add_call(crowd, c, now_us)) {
    }
    if (c->n == 0) {
        back_off(crowd, c, now_us);
        return;
    }
    /* Most wait for long; a few hang up in the middle. */
    c->deadline_us = now_us + (random_chance(&crowd->random, 2000)
                                   ? random_between(&crowd->random, 200, 10000)
                                   : random_between(&crowd->random, 1000000, 8000000));
    uint64_t begin_us = clock_boot_us();
    for (uint32_t i = 0; i < c->n; i++) {
        c->ring[(c->first + i) % TORTURE_WINDOW_MAX].h.begin_us = begin_us;
    }
    if (!torture_stream_flush(&c->stream)) {
        hang_up(crowd, c, begin_us);
    }
}

static void act(struct torture_crowd *crowd, struct torture_client *c, uint64_t now_us)
{
    if (c->stream.state == STREAM_CLOSED) {
        const struct torture_node *node = &crowd->cluster->node[c->node];
        c->deadline_us = now_us + CONNECT_US;
        if (!torture_stream_connect(&c->stream, &node->address)) {
            hang_up(crowd, c, now_us);
        }
    }
    if (c->stream.state == STREAM_OPEN && c->n == 0) {
        ask(crowd, c, now_us);
    }
}

uint64_t torture_crowd_step(struct torture_crowd *crowd, uint64_t now_us)
{
    uint64_t next_us = now_us + 10000;
    for (uint32_t i = 0; i < crowd->n; i++) {
        struct torture_client *c = &crowd->at[i];
        bool waits = c->n > 0 || c->stream.state == STREAM_CONNECTING;
        if (waits && now_us >= c->deadline_us) {
            hang_up(crowd, c, now_us);
            waits = false;
        }
        if (!waits && now_us >= c->act_us) {
            act(crowd, c, now_us);
        }
        waits = c->n > 0 || c->stream.state == STREAM_CONNECTING;
        uint64_t at_us = waits ? c->deadline_us : c->act_us;
        next_us = at_us < next_us ? at_us : next_us;
    }
    return next_us;
}

void torture_crowd_poll_set(const struct torture_crowd *crowd, struct pollfd *set_out)
{
    for (uint32_t i = 0; i < crowd->n; i++) {
        const struct torture_stream *stream = &crowd->at[i].stream;
        set_out[i] = (struct pollfd){.fd = stream->fd, .events = torture_stream_events(stream)};
    }
}

static void hear(struct torture_crowd *crowd, struct torture_client *c)
{
    struct resp_client_reply reply;
    bool content = true;
    uint32_t before = c->n;
    bool connected = c->stream.state == STREAM_OPEN;
    bool good = torture_stream_flush(&c->stream) && torture_stream_receive(&c->stream);
    /* A part of a microsecond counts as a whole one, so that no end is recorded too early. */
    uint64_t end_us = clock_boot_us() + 1;
    int err = HK_OK;
    while ((err = torture_stream_reply(&c->stream, &reply)) == HK_OK) {
        content = take(crowd, c, &reply, end_us) && content;
    }
    if (err != HK_ERR_NOTFOUND && crowd->wrong[0] == '\0') {
        snprintf(crowd->wrong, sizeof crowd->wrong, "node %u does not answer in the Redis protocol",
                 c->node);
    }
    if (!good || err != HK_ERR_NOTFOUND || (!content && random_chance(&crowd->random, 500000))) {
        hang_up(crowd, c, end_us);
    } else if (!content) {
        back_off(crowd, c, end_us);
    } else if (c->n == 0 && (before > 0 || !connected)) {
        c->act_us =
            end_us + (crowd->think_us == 0 ? 0 : random_below(&crowd->random, crowd->think_us));
    }
}

void torture_crowd_polled(struct torture_crowd *crowd, const struct pollfd *set)
{
    for (uint32_t i = 0; i < crowd->n; i++) {
        if (set[i].revents != 0 && set[i].fd == crowd->at[i].stream.fd) {
            hear(crowd, &crowd->at[i]);
        }
    }
}
