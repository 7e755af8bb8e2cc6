/* Where a transaction's objects and ranges are, and what is sent there. */
#include "node/lotus_run.h"

#include <string.h>

#include "base/assert.h"

#define KEPT_BYTES (64u * 1024u) /* of a buffer, from one transaction to the next */

/* ---- Memory ---- */

void run_reset(struct worker *w, struct lotus_run *r)
{
    rows_forget(w, r);
    struct buffer *buffers[] = {&r->placed, &r->spanned, &r->meetings,       &r->copy,
                                &r->values, &r->record,  &r->evaluation.met, &r->evaluation.memory};
    for (uint32_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        buffer_trim(buffers[i], KEPT_BYTES);
        buffers[i]->n = 0;
    }
    r->spans_n = r->met_n = 0;
    r->own_bytes = false;
}

void run_free(struct lotus_run *r)
{
    evaluation_free(&r->evaluation);
    buffer_free(&r->placed);
    buffer_free(&r->spanned);
    buffer_free(&r->meetings);
    buffer_free(&r->copy);
    buffer_free(&r->values);
    buffer_free(&r->record);
}

/* ---- Ranges of the request ---- */

static void add_span(struct lotus_run *r, const struct lotus_span *span)
{
    struct lotus_span *s = (void *)buffer_add(&r->spanned, (uint32_t)sizeof *s);
    *s = *span;
    r->spans_n++;
    r->spans = (void *)r->spanned.at;
}

static void find_spans(struct lotus_run *r)
{
    const struct txn_request *q = &r->evaluation.request;
    r->spanned.n = 0;
    r->spans_n = 0;
    for (uint32_t i = 0; i < q->ops_n; i++) {
        const struct op *op = &q->ops[i];
        if (op->kind < TXN_OP_RANGE) {
            continue;
        }
        struct lotus_span span = {
            .start = op->key,
            .end = op->arg,
            .need = txn_range_fetch(q, i),
            .reverse = (op->flags & TXN_OPF_REVERSE) != 0,
            .keys = op->kind != TXN_OP_RANGE || (op->flags & TXN_OPF_KEYS) != 0,
            .write = op->kind == TXN_OP_RANGE_DELETE,
        };
        add_span(r, &span);
    }
    for (uint32_t i = 0; i < q->watches_n; i++) {
        const struct txn_watch *watch = &q->watches[i];
        if (watch->range) {
            struct lotus_span span = {.start = watch->key,
                                      .end = watch->end,
                                      .need = watch->limit,
                                      .reverse = (watch->flags & TXN_OPF_REVERSE) != 0,
                                      .keys = true};
            add_span(r, &span);
        }
    }
}

/* Where the request's bytes are now. */
void ask_owned(struct lotus_run *r)
{
    const struct txn_request *q = &r->evaluation.request;
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->ops_n; i++) {
        if (q->ops[i].kind >= TXN_OP_RANGE) {
            r->spans[n].start = q->ops[i].key;
            r->spans[n++].end = q->ops[i].arg;
        }
    }
    for (uint32_t i = 0; i < q->watches_n; i++) {
        if (q->watches[i].range) {
            r->spans[n].start = q->watches[i].key;
            r->spans[n++].end = q->watches[i].end;
        }
    }
    HK_ASSERT(n == r->spans_n);
}

static void item_of_object(const struct lotus_run *r, uint32_t i, struct lotus_item *item)
{
    const struct lotus_place *p = &r->places[i];
    *item = (struct lotus_item){.mode = p->write ? LOCK_X : LOCK_S,
                                .room = p->write ? p->room : 0,
                                .hint = p->hint,
                                .key = r->evaluation.objects[i].key};
}

static void item_of_span(const struct lotus_span *s, struct lotus_item *item)
{
    *item = (struct lotus_item){
        .mode = s->write ? LOCK_X : LOCK_S,
        .flags = (uint8_t)(LOTUS_ITEM_RANGE | (s->reverse ? LOTUS_ITEM_REVERSE : 0) |
                           (s->keys ? LOTUS_ITEM_KEYS : 0)),
        .limit = s->limit,
        .key = s->start,
        .end = s->end,
    };
}

/* All of it may go to one server, in one message. */
static bool fits(const struct lotus_run *r)
{
    uint64_t bytes = LOTUS_HEAD_BYTES;
    struct lotus_item item;
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        item_of_object(r, i, &item);
        bytes += lotus_item_bytes(&item);
    }
    for (uint32_t i = 0; i < r->spans_n; i++) {
        item_of_span(&r->spans[i], &item);
        bytes += lotus_item_bytes(&item);
    }
    return bytes <= MSG_VALUE_MAX;
}

int ask_prepare(struct lotus_run *r)
{
    const struct evaluation *e = &r->evaluation;
    uint32_t bytes = e->objects_n * (uint32_t)sizeof *r->places;
    r->placed.n = 0;
    r->places = (void *)buffer_add(&r->placed, bytes);
    if (bytes > 0) {
        memset(r->places, 0, bytes);
    }
    for (uint32_t i = 0; i < e->request.ops_n; i++) {
        uint16_t key = e->index[2 * i], target = e->index[2 * i + 1];
        if (key != UINT16_MAX && evaluation_writes_key(&e->request.ops[i])) {
            uint32_t room = op_room(&e->request.ops[i]);
            r->places[key].write = true;
            r->places[key].room = room > r->places[key].room ? room : r->places[key].room;
        }
        if (target != UINT16_MAX) {
            r->places[target].write = true;
        }
    }
    find_spans(r);
    return fits(r) ? HK_OK : HK_ERR_TOOBIG;
}

/* ---- Places ---- */

/* C7: the map hears later than the view that a server is gone. */
static enum lotus_where where(const struct worker *w, const struct lotus_run *r, uint16_t slot,
                              uint8_t *home_out)
{
    enum lotus_where where = lotus_where(w, r->space, slot, home_out);
    bool gone = where == LOTUS_AT && !nodeset_has(w->view.live, *home_out);
    return gone ? LOTUS_WAIT : where;
}

static enum lotus_where place_spans(struct worker *w, struct lotus_run *r)
{
    r->map = 0;
    for (uint32_t i = 0; i < r->spans_n; i++) {
        struct lotus_span *s = &r->spans[i];
        uint32_t lost = UINT32_MAX;
        uint64_t before = r->map;
        uint16_t slot;
        uint8_t home = 0;
        bool all = lotus_servers(w, r->space, &s->homes, &r->map, &lost);
        if (before != 0 && r->map != before) {
            return LOTUS_WAIT; /* another map than for the ranges before */
        }
        if (lotus_range_slot(s->start, s->end, &slot)) {
            enum lotus_where at = where(w, r, slot, &home);
            if (at != LOTUS_AT) {
                r->lost = slot;
                return at;
            }
            s->homes = nodeset_of(home);
        } else if (!all || !nodeset_within(s->homes, w->view.live)) {
            r->lost = (uint16_t)lost;
            bool nobody = lotus_where(w, r->space, 0, &home) == LOTUS_NOBODY;
            return lost != UINT32_MAX ? LOTUS_LOST : nobody ? LOTUS_NOBODY : LOTUS_WAIT;
        }
        s->due = s->homes;
        s->asked = s->more = 0;
        s->limit = s->need;
        r->homes |= s->homes;
    }
    return LOTUS_AT;
}

enum lotus_where ask_place(struct worker *w, struct lotus_run *r)
{
    const struct evaluation *e = &r->evaluation;
    r->homes = r->begun = 0;
    for (uint32_t i = 0; i < e->objects_n; i++) {
        struct lotus_place *p = &r->places[i];
        uint16_t slot = slot_of_key(e->objects[i].key);
        enum lotus_where at = where(w, r, slot, &p->home);
        if (at != LOTUS_AT) {
            r->lost = slot;
            return at;
        }
        if (w->lotus->hints_memory[r->space] != NULL) {
            hints_prefetch(&w->lotus->hints[r->space], e->objects[i].hash);
        }
        p->due = true;
        p->asked = false;
        r->homes |= nodeset_of(p->home);
    }
    return place_spans(w, r);
}

/* At the server that has all of a request it is this server's own cache. */
static uint64_t hint_of(struct worker *w, const struct lotus_run *r, uint32_t object)
{
    struct lotuses *l = w->lotus;
    return l->hints_memory[r->space] == NULL
               ? 0
               : hints_find(&l->hints[r->space], r->evaluation.objects[object].hash);
}

nodeset ask_next(struct worker *w, struct lotus_run *r)
{
    const struct lotus_config *config = w->node->spaces[r->space].engine;
    nodeset to = 0;
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        struct lotus_place *p = &r->places[i];
        p->asked = p->due && (to == 0 || !config->one_at_a_time);
        p->due = p->due && !p->asked;
        if (p->asked) {
            p->hint = hint_of(w, r, i);
            to |= nodeset_of(p->home);
        }
    }
    for (uint32_t i = 0; i < r->spans_n; i++) {
        struct lotus_span *s = &r->spans[i];
        s->asked = to == 0 || !config->one_at_a_time ? s->due : 0;
        s->due &= ~s->asked;
        to |= s->asked;
    }
    return to;
}

/* ---- Messages ---- */

/* Outcomes of PREPAREs below it are known to all. */
static uint64_t done_of(const struct lotuses *l)
{
    if (list_empty(&l->open)) {
        return l->number + 1;
    }
    return list_entry(l->open.next, struct lotus_run, link)->number;
}

static void send(struct worker *w, struct lotus_run *r, uint8_t to, struct msg *m)
{
    m->space = r->space;
    m->slot = r->slot;
    m->gen = r->gen;
    m->epoch = w->view.epoch;
    m->ts = done_of(w->lotus);
    w->stats.lotus_requests++;
    output_message(w, to, (uint8_t)w->index, m);
}

static uint8_t *head(struct worker *w, struct lotus_run *r, uint32_t more)
{
    struct buffer *out = &w->lotus->out;
    struct lotus_head h = {.age = r->age, .map = r->map};
    out->n = 0;
    return lotus_head_put(buffer_add(out, LOTUS_HEAD_BYTES + more), &h);
}

bool ask_fits_whole(const struct lotus_run *r)
{
    return lotus_request_bytes(&r->evaluation.request) <= MSG_VALUE_MAX - LOTUS_HEAD_BYTES;
}

void ask_whole(struct worker *w, struct lotus_run *r, uint8_t to)
{
    const struct txn_request *q = &r->evaluation.request;
    (void)lotus_request_put(head(w, r, (uint32_t)lotus_request_bytes(q)), q);
    struct msg m = {.kind = LOTUS_MSG_WHOLE, .value = bytes_of(w->lotus->out.at, w->lotus->out.n)};
    w->stats.lotus_whole++;
    send(w, r, to, &m);
}

static void add_item(struct buffer *out, const struct lotus_item *item)
{
    (void)lotus_item_put(buffer_add(out, lotus_item_bytes(item)), item);
}

void ask_items(struct worker *w, const struct lotus_run *r, uint8_t to, struct buffer *out)
{
    struct lotus_item item;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        if (r->places[i].asked && r->places[i].home == to) {
            item_of_object(r, i, &item);
            add_item(out, &item);
            n++;
        }
    }
    for (uint32_t i = 0; i < r->spans_n; i++) {
        if (nodeset_has(r->spans[i].asked, to)) {
            item_of_span(&r->spans[i], &item);
            add_item(out, &item);
            n++;
        }
    }
    w->stats.lotus_items += r->here ? 0 : n;
}

void ask_execute(struct worker *w, struct lotus_run *r, uint8_t to)
{
    (void)head(w, r, 0);
    ask_items(w, r, to, &w->lotus->out);
    struct msg m = {.kind = LOTUS_MSG_EXECUTE,
                    .arg = nodeset_has(r->begun, to),
                    .value = bytes_of(w->lotus->out.at, w->lotus->out.n)};
    r->begun |= nodeset_of(to);
    send(w, r, to, &m);
}

void ask_request(struct worker *w, struct lotus_run *r, uint8_t to)
{
    if (r->machine.state == LOTUS_WHOLE) {
        ask_whole(w, r, to);
    } else {
        ask_execute(w, r, to);
    }
}

void ask_writes(struct worker *w, struct lotus_run *r, uint8_t to, enum lotus_kind kind,
                nodeset participants)
{
    struct buffer *out = &w->lotus->out;
    out->n = 0;
    if (participants != 0) {
        put_u64(buffer_add(out, 8), participants);
    }
    for (uint32_t i = 0; i < r->evaluation.objects_n + r->evaluation.scanned_n; i++) {
        const struct lotus_place *p = &r->places[i];
        if (p->record_n > 0 && p->home == to) {
            memcpy(buffer_add(out, p->record_n), r->record.at + p->record_at, p->record_n);
        }
    }
    struct msg m = {.kind = (uint8_t)kind,
                    .arg = participants != 0 ? r->number : 0,
                    .value = bytes_of(out->at, out->n)};
    send(w, r, to, &m);
}

void ask_plain(struct worker *w, struct lotus_run *r, uint8_t to, enum lotus_kind kind)
{
    struct msg m = {.kind = (uint8_t)kind};
    send(w, r, to, &m);
}
