/* What memory servers have sent of a transaction's rows, and what becomes of them. */
#include "node/lotus_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define VALUES_MAX (1u << 30)          /* bytes that one try may bring here */
#define BROUGHT_MAX (256u << 20)       /* ... and all of a worker; what comes beyond is BUSY */
#define MET_MAX (4u * TXN_SCANNED_MAX) /* rows that its ranges may meet, over and over */

/* ---- What comes ---- */

void rows_forget(struct worker *w, struct lotus_run *r)
{
    struct lotuses *l = w->lotus;
    l->brought -= r->values.n;
    l->most = l->most != r ? l->most : NULL;
    r->values.n = 0;
}

static uint32_t keep(struct worker *w, struct lotus_run *r, struct bytes b)
{
    uint32_t at = r->values.n;
    if (b.n > 0) {
        memcpy(buffer_add(&r->values, b.n), b.at, b.n);
    }
    w->lotus->brought += b.n;
    return at;
}

/* Of all that have brought too much one may go on, and so comes to an end. */
static int room(struct worker *w, struct lotus_run *r, uint64_t n)
{
    struct lotuses *l = w->lotus;
    if (n > VALUES_MAX - r->values.n) {
        return HK_ERR_TOOBIG;
    }
    if (l->brought + n > BROUGHT_MAX && l->most == NULL) {
        l->most = r;
    }
    return l->brought + n <= BROUGHT_MAX || l->most == r ? HK_OK : HK_ERR_BUSY;
}

static void note_hint(struct worker *w, struct lotus_run *r, uint32_t i, uint64_t hint)
{
    struct lotuses *l = w->lotus;
    struct lotus_place *p = &r->places[i];
    if (l->hints_memory[r->space] == NULL) {
        return;
    }
    w->stats.lotus_hints += p->hint != 0;
    w->stats.lotus_hints_good += p->hint != 0 && p->hint == hint;
    if (p->hint != hint) {
        hints_set(&l->hints[r->space], r->evaluation.objects[i].hash, hint);
        p->hint = hint;
    }
}

/* One row, and the item's end. */
static bool take_point(struct worker *w, struct lotus_run *r, uint32_t i, struct bytes *rest,
                       int *err_out)
{
    struct lotus_place *p = &r->places[i];
    struct lotus_row row, end;
    if (!lotus_row_take(rest, &row) || (row.flags & LOTUS_ROW_END) != 0 ||
        !lotus_row_take(rest, &end) || (end.flags & LOTUS_ROW_END) == 0) {
        return false;
    }
    int err = room(w, r, row.value.n);
    if (err == HK_OK) {
        p->value_at = keep(w, r, row.value);
        p->value_n = row.value.n;
    } else {
        *err_out = err;
    }
    p->version = row.version;
    p->flags = row.flags;
    note_hint(w, r, i, row.hint);
    return true;
}

static bool take_met(struct worker *w, struct lotus_run *r, uint32_t span, uint8_t from,
                     const struct lotus_row *row, int *err_out)
{
    struct lotus_met met = {.version = row->version,
                            .key_n = row->key.n,
                            .value_n = row->value.n,
                            .span = (uint16_t)span,
                            .home = from,
                            .flags = row->flags,
                            .keys = r->spans[span].keys,
                            .write = r->spans[span].write};
    if ((row->flags & LOTUS_ROW_ABSENT) != 0) {
        return false;
    }
    int err = r->met_n == MET_MAX ? HK_ERR_TOOBIG : room(w, r, (uint64_t)row->key.n + row->value.n);
    if (err != HK_OK) {
        *err_out = err;
        return true;
    }
    met.key_at = keep(w, r, row->key);
    met.value_at = keep(w, r, row->value);
    memcpy(buffer_add(&r->meetings, (uint32_t)sizeof met), &met, sizeof met);
    r->met = (void *)r->meetings.at;
    r->met_n++;
    return true;
}

static bool take_span(struct worker *w, struct lotus_run *r, uint32_t span, uint8_t from,
                      struct bytes *rest, int *err_out)
{
    struct lotus_span *s = &r->spans[span];
    struct lotus_row row;
    uint32_t n = 0;
    for (;;) {
        if (!lotus_row_take(rest, &row)) {
            return false;
        }
        if ((row.flags & LOTUS_ROW_END) != 0) {
            break;
        }
        if (!take_met(w, r, span, from, &row, err_out)) {
            return false;
        }
        n++;
    }
    s->more |= s->limit != 0 && n >= s->limit ? nodeset_of(from) : 0;
    return true;
}

bool rows_take(struct worker *w, struct lotus_run *r, uint8_t from, struct bytes rest, int *err_out)
{
    *err_out = HK_OK;
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        const struct lotus_place *p = &r->places[i];
        if (p->asked && p->home == from && !take_point(w, r, i, &rest, err_out)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < r->spans_n; i++) {
        if (nodeset_has(r->spans[i].asked, from) && !take_span(w, r, i, from, &rest, err_out)) {
            return false;
        }
    }
    return rest.n == 0;
}

/* ---- Whether it is enough ---- */

static bool expired(const struct lotus_run *r, uint8_t flags, uint32_t value_at, uint32_t value_n)
{
    return (flags & KEY_DEADLINE) != 0 && value_n >= 8 &&
           get_u64(r->values.at + value_at) <= r->wall_ms;
}

/* What a range has met is forgotten: all of it is asked for again. */
static void ask_again(struct lotus_run *r, uint32_t span)
{
    struct lotus_span *s = &r->spans[span];
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->met_n; i++) {
        if (r->met[i].span != span) {
            r->met[n++] = r->met[i];
        }
    }
    r->met_n = n;
    r->meetings.n = n * (uint32_t)sizeof *r->met;
    s->more = 0;
    s->due = s->homes;
}

/* A row whose deadline has passed is absent for whoever reads it here; so that nobody finds it
 * later, whose calendar is behind, it is deleted, which takes X. */
static bool span_more(struct lotus_run *r, uint32_t span)
{
    struct lotus_span *s = &r->spans[span];
    uint64_t present = 0, gone = 0;
    for (uint32_t i = 0; i < r->met_n; i++) {
        const struct lotus_met *m = &r->met[i];
        bool dead = m->span == span && expired(r, m->flags, m->value_at, m->value_n);
        gone += dead;
        present += m->span == span && !dead;
    }
    bool enough = s->more == 0 || present >= s->need;
    if (enough && (gone == 0 || s->write)) {
        return false;
    }
    if (!enough) {
        uint64_t limit = 2 * (uint64_t)s->limit + gone;
        s->limit = limit < UINT32_MAX ? (uint32_t)limit : 0;
    }
    s->write = s->write || gone > 0;
    ask_again(r, span);
    return true;
}

int rows_more(struct worker *w, struct lotus_run *r, bool *more_out)
{
    bool more = false;
    r->wall_ms = w->wall_ms;
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        struct lotus_place *p = &r->places[i];
        if (!p->due && !p->write && expired(r, p->flags, p->value_at, p->value_n)) {
            p->write = true;
            p->due = true;
        }
        more = more || p->due;
    }
    for (uint32_t i = 0; i < r->spans_n; i++) {
        more = (r->spans[i].due == 0 && span_more(r, i)) || more;
        more = more || r->spans[i].due != 0;
    }
    *more_out = more;
    return r->values.n < VALUES_MAX ? HK_OK : HK_ERR_TOOBIG;
}

/* ---- What ranges have met becomes objects ---- */

/* A row in the order of keys; of the same the one with its value first. */
struct entry {
    struct bytes key;
    uint32_t met;
    bool keys;
    bool drop;
};

static int compare_keys(struct bytes a, struct bytes b)
{
    uint32_t n = a.n < b.n ? a.n : b.n;
    int c = n > 0 ? memcmp(a.at, b.at, n) : 0;
    return c != 0 ? c : (a.n > b.n) - (a.n < b.n);
}

static int compare(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int c = compare_keys(a->key, b->key);
    return c != 0               ? c
           : a->keys != b->keys ? a->keys - b->keys
                                : (a->met > b->met) - (a->met < b->met);
}

static uint32_t first_at(const struct entry *entries, uint32_t n, struct bytes key)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_keys(entries[middle].key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* What the request mentions by itself stands among the objects already. */
static void drop_mentioned(struct lotus_run *r, struct entry *entries, uint32_t n)
{
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        struct bytes key = r->evaluation.objects[i].key;
        for (uint32_t k = first_at(entries, n, key); k < n && bytes_equal(entries[k].key, key);
             k++) {
            r->places[i].write = r->places[i].write || r->met[entries[k].met].write;
            entries[k].drop = true;
        }
    }
}

static int add_scanned(struct lotus_run *r, const struct entry *e)
{
    const struct lotus_met *m = &r->met[e->met];
    struct lotus_place place = {.version = m->version,
                                .value_at = m->value_at,
                                .value_n = m->value_n,
                                .home = m->home,
                                .flags = m->flags,
                                .write = m->write};
    if (evaluation_scanned(&r->evaluation, e->key) == NULL) {
        return HK_ERR_TOOBIG;
    }
    memcpy(buffer_add(&r->placed, (uint32_t)sizeof place), &place, sizeof place);
    r->places = (void *)r->placed.at;
    return HK_OK;
}

static int add_all_scanned(struct lotus_run *r, const struct entry *entries, uint32_t n)
{
    int err = HK_OK;
    for (uint32_t i = 0; i < n && err == HK_OK; i++) {
        if (i > 0 && bytes_equal(entries[i].key, entries[i - 1].key)) {
            r->places[r->evaluation.objects_n + r->evaluation.scanned_n - 1].write |=
                !entries[i].drop && r->met[entries[i].met].write;
        } else if (!entries[i].drop) {
            err = add_scanned(r, &entries[i]);
        }
    }
    return err;
}

static int merge(struct worker *w, struct lotus_run *r)
{
    evaluation_rescan(&r->evaluation);
    r->placed.n = r->evaluation.objects_n * (uint32_t)sizeof *r->places;
    if (r->met_n == 0) {
        return HK_OK;
    }
    struct buffer *out = &w->lotus->out;
    out->n = 0;
    struct entry *entries = (void *)buffer_add(out, r->met_n * (uint32_t)sizeof *entries);
    for (uint32_t i = 0; i < r->met_n; i++) {
        const struct lotus_met *m = &r->met[i];
        entries[i] = (struct entry){
            .key = bytes_of(r->values.at + m->key_at, m->key_n), .met = i, .keys = m->keys};
    }
    qsort(entries, r->met_n, sizeof *entries, compare);
    drop_mentioned(r, entries, r->met_n);
    return add_all_scanned(r, entries, r->met_n);
}

/* ---- Evaluation ---- */

static int fill(void *context)
{
    struct lotus_run *r = context;
    int err = HK_OK;
    for (uint32_t i = 0; i < r->evaluation.objects_n + r->evaluation.scanned_n && err == HK_OK;
         i++) {
        const struct lotus_place *p = &r->places[i];
        err = evaluation_fill(&r->evaluation.objects[i], (p->flags & LOTUS_ROW_ABSENT) != 0,
                              p->version, p->flags,
                              bytes_within(r->values.at, p->value_at, p->value_n), r->wall_ms);
    }
    return err;
}

int rows_evaluate(struct worker *w, struct lotus_run *r)
{
    int err = merge(w, r);
    return err != HK_OK ? err
                        : evaluation_run(&r->evaluation,
                                         w->node->config.spaces[r->space].store.value_bytes_max,
                                         r->wall_ms, fill, r);
}

static void put_record(struct worker *w, struct lotus_run *r, uint32_t i)
{
    struct txn_object *object = &r->evaluation.objects[i];
    struct lotus_place *p = &r->places[i];
    struct lotus_row row = {.version = lotus_version(w, p->version), .key = object->key};
    if (!object->state.present) {
        row.flags = LOTUS_ROW_ABSENT;
    } else if (object->state.deadline_ms == 0) {
        row.value = object->state.value;
    } else {
        uint32_t n = op_state_store(&object->state, w->evaluated, &row.flags);
        row.value = bytes_of(w->evaluated, n);
    }
    object->version = object->state.present ? row.version : 0;
    object->absence = object->state.present ? 0 : row.version;
    p->record_at = r->record.n;
    p->record_n = lotus_row_bytes(&row);
    (void)lotus_row_put(buffer_add(&r->record, p->record_n), &row);
}

int rows_record(struct worker *w, struct lotus_run *r, nodeset *written_out)
{
    uint64_t bytes[NODES_MAX] = {0};
    r->record.n = 0;
    *written_out = 0;
    for (uint32_t i = 0; i < r->evaluation.objects_n + r->evaluation.scanned_n; i++) {
        struct lotus_place *p = &r->places[i];
        const struct op_state *state = &r->evaluation.objects[i].state;
        p->record_n = 0;
        if (!r->evaluation.objects[i].changed) {
            continue;
        }
        HK_ASSERT(p->write);
        uint64_t n = 64u + r->evaluation.objects[i].key.n + op_state_stored_bytes(state);
        bytes[p->home] += n;
        if (bytes[p->home] > MSG_VALUE_MAX || r->record.n + n > VALUES_MAX) {
            return HK_ERR_TOOBIG;
        }
        put_record(w, r, i);
        *written_out |= nodeset_of(p->home);
    }
    return HK_OK;
}

bool rows_answers(struct worker *w, struct lotus_run *r, struct bytes rest)
{
    struct evaluation *e = &r->evaluation;
    rows_forget(w, r);
    uint32_t at = keep(w, r, rest); /* it has taken effect: there is room for it */
    return lotus_answers_take(bytes_of(r->values.at + at, rest.n), e->request.ops_n, &e->verdict,
                              e->answers, e->versions);
}
