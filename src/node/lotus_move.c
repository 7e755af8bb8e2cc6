/* The mover of worker 0 where slots move as wholes (docs/protocols/lotus.md, "Moving partitions"):
 * walks over the index, sends rows of slots that go elsewhere, removes those of slots that are at
 * home elsewhere, and tells the map machine when nothing is left of either, with the version of the
 * map under which it began.
 *
 *   begin -> [no try is left that began before (M2)] -> walk -> all TAKEN -> finish -> begin ... */
#include "node/lotus_move.h"
#include "node/lotus_home.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define STEP_US 200u               /* between two steps, at the least */
#define PATIENCE_US 1000000u       /* so long tries may keep a slot from moving */
#define STEP_ENTRIES 256u          /* that one step looks at */
#define AGAIN_US 2000u             /* what is not possible now is tried again after this */
#define PARCEL_BYTES (64u * 1024u) /* of rows in one message, but for a row that is larger */
#define PARCEL_ROWS 512u

static struct slot_home home_of(const struct space *space, uint32_t slot)
{
    return slot_home_unpack(atomic_load_explicit(&space->homes[slot], memory_order_relaxed));
}

static uint64_t version_of(const struct space *space)
{
    return atomic_load_explicit(&space->map_version, memory_order_relaxed);
}

static bool rule_on(const struct space *space, enum lotus_rule rule)
{
    return lotus_rule_on(space->engine, rule);
}

/* Whether the map has anything to do for this node that it has not said to be done. */
static bool wanted(const struct worker *w, uint8_t index)
{
    const struct space *space = &w->node->spaces[index];
    return space->moves != NULL && ordered_issues(w, index) &&
           (space->moves->passing || version_of(space) != space->moves->done_version);
}

/* ---- Parcels ---- */

static void parcel_clear(struct lotus_parcel *p)
{
    p->n = 0;
    p->rows_n = 0;
    p->sent = false;
    p->wait_us = 0;
    p->told = 0;
}

static void parcel_send(struct worker *w, uint8_t index, uint8_t to)
{
    struct lotus_moves *m = w->node->spaces[index].moves;
    struct lotus_parcel *p = m->parcels[to];
    uint64_t forgotten = lotus_table_forgotten(w->node->spaces[index].table);
    struct msg msg = {
        .space = index,
        .kind = LOTUS_MSG_ROWS,
        .slot = (uint32_t)forgotten,
        .gen = (uint32_t)(forgotten >> 32),
        .epoch = w->view.epoch,
        .ts = m->pass_version,
        .arg = ++m->numbers,
        .value = bytes_of(p->rows, p->n),
    };
    p->sent = true;
    p->told = m->walked ? m->pass_version : p->told;
    p->number = m->numbers;
    output_message(w, to, 0, &msg);
}

/* The parcel for a node; NULL: there is no memory. What was for another process, which had that
 * node's number, is of a move that is over. */
static struct lotus_parcel *parcel_for(struct worker *w, uint8_t index, uint8_t to)
{
    struct lotus_moves *m = w->node->spaces[index].moves;
    uint64_t nonce = w->view.members[to].nonce;
    if (m->parcels[to] == NULL) {
        m->parcels[to] = calloc(1, sizeof *m->parcels[to]);
    }
    struct lotus_parcel *p = m->parcels[to];
    if (p != NULL && p->nonce != nonce) {
        parcel_clear(p);
        p->nonce = nonce;
    }
    return p;
}

enum add_word { ADD_DONE, ADD_FULL, ADD_NOMEM };

static enum add_word parcel_add(struct lotus_parcel *p, const struct lotus_row *row)
{
    uint32_t bytes = lotus_row_bytes(row);
    if (p->sent || p->rows_n == PARCEL_ROWS || (p->n > 0 && p->n + bytes > PARCEL_BYTES)) {
        return ADD_FULL;
    }
    uint32_t need = p->n + bytes;
    uint32_t capacity = need > PARCEL_BYTES ? need : PARCEL_BYTES;
    if (capacity > p->capacity) {
        uint8_t *rows = realloc(p->rows, capacity);
        if (rows == NULL) {
            return ADD_NOMEM;
        }
        p->rows = rows;
        p->capacity = capacity;
    }
    (void)lotus_row_put(p->rows + p->n, row);
    p->n = need;
    p->rows_n++;
    return ADD_DONE;
}

/* Sends what may leave now. Whether nothing is on its way, or to be sent. */
static bool parcels_flush(struct worker *w, uint8_t index)
{
    const struct space *space = &w->node->spaces[index];
    bool empty = true;
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        struct lotus_moves *m = space->moves;
        bool awaited = nodeset_has(m->targets & w->view.live, (uint8_t)i);
        struct lotus_parcel *p =
            awaited || m->parcels[i] != NULL ? parcel_for(w, index, (uint8_t)i) : NULL;
        /* The last one goes even if it has no rows: ghosts stay here. */
        bool last = p != NULL && awaited && m->walked && p->told != m->pass_version;
        if (p == NULL || (p->n == 0 && !last && !(awaited && p->sent))) {
            empty = empty && !(awaited && p == NULL);
            continue;
        }
        empty = false;
        if (!p->sent && w->now_us >= p->wait_us && !(space->lanes && lanes_clogged(w))) {
            parcel_send(w, index, (uint8_t)i);
        }
    }
    return empty;
}

void lotus_move_deinit(struct lotus_moves *m)
{
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        if (m->parcels[i] != NULL) {
            free(m->parcels[i]->rows);
        }
        free(m->parcels[i]);
    }
    free(m->at);
}

/* ---- A pass ---- */

static void begin(struct worker *w, struct space *space)
{
    struct lotus_moves *m = space->moves;
    m->moving = false;
    m->emptying = false;
    m->going = (struct lotus_slots){.n = 0};
    m->targets = 0;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home home = home_of(space, i);
        m->emptying = m->emptying || home.state == HOME_EMPTYING;
        if (home.state == HOME_MOVING && home.home == w->node->config.self) {
            m->moving = true;
            if (!lotus_slots_has(&m->sent, i)) {
                m->targets |= nodeset_of(home.to);
                lotus_slots_add(&m->going, i);
            }
        }
    }
    m->purge = m->foreign;
    m->pass_version = version_of(space);
    m->passing = true;
    m->since_us = w->now_us;
    m->again = false;
    m->begun = false;
    m->walked = m->going.n + m->purge.n == 0;
}

/* M2. Workers that sleep are woken to say what they know. */
static bool tries_ended(struct worker *w, uint8_t index)
{
    const struct space *space = &w->node->spaces[index];
    struct lotus_moves *m = space->moves;
    bool all = true;
    if (w->now_us - m->since_us >= PATIENCE_US) {
        atomic_store_explicit(&m->wounds, m->pass_version, memory_order_relaxed);
    }
    bool asked = m->going.n > 0 && rule_on(space, LOTUS_RULE_MOVE_TRIES);
    for (uint32_t i = 0; i < w->node->config.workers && asked; i++) {
        struct worker *other = &w->node->workers[i];
        if (lotus_home_oldest(other, index) < m->pass_version) {
            all = false;
            worker_poke(other);
        }
    }
    return all;
}

static void finish(struct worker *w, uint8_t index)
{
    struct lotus_moves *m = w->node->spaces[index].moves;
    m->passing = false;
    w->stats.move_passes++;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        if (lotus_slots_has(&m->going, i)) {
            lotus_slots_add(&m->sent, i);
        }
        if (lotus_slots_has(&m->purge, i) && !m->again) {
            lotus_slots_drop(&m->foreign, i);
        }
    }
    atomic_store_explicit(&m->foreign_any, m->foreign.n > 0, memory_order_release);
    if (w->lotus_home->spaces[index]->far != NULL) {
        home_far_tell_lost(w, index); /* before MOVED, which gives them to others */
    }
    if (m->moving && m->said_version != m->pass_version) {
        m->said_version = m->pass_version;
        ordered_slots(w, index, SLOTS_MOVED, m->pass_version);
    }
    if (m->again) {
        m->due_us = w->now_us + AGAIN_US;
        return;
    }
    m->done_version = m->pass_version;
    if (m->emptying) {
        ordered_slots(w, index, SLOTS_PURGED, m->pass_version);
    }
}

uint64_t lotus_move_wounds(const struct worker *w, uint8_t space)
{
    return atomic_load_explicit(&w->node->spaces[space].moves->wounds, memory_order_relaxed);
}

/* The walk goes on behind that key; false: there is no memory to remember it. */
static bool remember(struct lotus_moves *m, struct bytes key)
{
    if (key.n > m->at_capacity || m->at == NULL) {
        uint8_t *at = realloc(m->at, key.n > 64 ? key.n : 64);
        if (at == NULL) {
            return false;
        }
        m->at = at;
        m->at_capacity = key.n > 64 ? key.n : 64;
    }
    if (key.n > 0) {
        memcpy(m->at, key.at, key.n);
    }
    m->at_n = key.n;
    m->begun = true;
    return true;
}

/* Whether the walk may go on to the next entry. */
static bool visit(struct worker *w, uint8_t index, struct lotus_row *row,
                  const struct lotus_far *far)
{
    struct space *space = &w->node->spaces[index];
    struct lotus_moves *m = space->moves;
    uint32_t slot = slot_of_key(row->key);
    if (lotus_slots_has(&m->purge, slot)) {
        if (lotus_table_remove(space->table, w->threads[index], row->key) == TABLE_DONE) {
            w->stats.purged++;
        } else {
            m->again = true;
        }
        return true;
    }
    if (!lotus_slots_has(&m->going, slot)) {
        return true;
    }
    if ((row->flags & LOTUS_ROW_ABSENT) != 0) {
        lotus_table_forget(space->table, row->version);
        return true;
    }
    uint8_t to = home_of(space, slot).to;
    struct lotus_parcel *p = parcel_for(w, index, to);
    row->hint = 0;
    row->flags &= KEY_DEADLINE;
    if (far != NULL && rule_on(space, LOTUS_RULE_FAR_MOVED)) {
        enum far_word word = home_far_value(w, index, row->key, far, &row->value);
        if (word != FAR_HERE) {
            return word == FAR_LOST; /* and its slot with it (F7) */
        }
    }
    if (p == NULL || parcel_add(p, row) != ADD_DONE) {
        return false;
    }
    w->stats.moves++;
    if (far != NULL) {
        home_far_moved(w, index, far);
    }
    if (!rule_on(space, LOTUS_RULE_MOVE_KEPT)) {
        (void)lotus_table_remove(space->table, w->threads[index], row->key);
    }
    return true;
}

static void walk(struct worker *w, uint8_t index)
{
    struct space *space = &w->node->spaces[index];
    struct lotus_moves *m = space->moves;
    _Alignas(8) uint8_t buffer[LOTUS_NEXT_BYTES];
    struct lotus_row row;
    struct lotus_far far;
    bool near;
    for (uint32_t i = 0; i < STEP_ENTRIES; i++) {
        struct bytes after = m->begun ? bytes_of(m->at, m->at_n) : bytes_of(NULL, 0);
        if (!lotus_table_next_far(space->table, w->threads[index], after, !m->begun, buffer, &row,
                                  &far, &near)) {
            m->walked = true;
            home_far_moved(w, index, NULL);
            return;
        }
        /* The key of an entry that is removed stays readable until this thread is quiescent. */
        if (!visit(w, index, &row, near ? NULL : &far) || !remember(m, row.key)) {
            return;
        }
    }
}

static void step(struct worker *w, uint8_t index)
{
    struct space *space = &w->node->spaces[index];
    struct lotus_moves *m = space->moves;
    m->due_us = w->now_us + STEP_US;
    if (!m->passing) {
        begin(w, space);
    }
    if (!m->begun && !tries_ended(w, index)) {
        m->due_us = w->now_us + AGAIN_US;
        return;
    }
    if (!m->walked) {
        walk(w, index);
    }
    if (parcels_flush(w, index) && m->walked) {
        finish(w, index);
    }
}

void lotus_move_poll(struct worker *w)
{
    for (uint8_t i = 0; i < SPACES_MAX; i++) {
        if (wanted(w, i) && w->now_us >= w->node->spaces[i].moves->due_us) {
            step(w, i);
        }
    }
}

uint64_t lotus_move_deadline(const struct worker *w)
{
    uint64_t due = UINT64_MAX;
    for (uint8_t i = 0; i < SPACES_MAX; i++) {
        if (wanted(w, i) && w->node->spaces[i].moves->due_us < due) {
            due = w->node->spaces[i].moves->due_us;
        }
    }
    return due;
}

/* ---- Messages ---- */

/* Whether a row of the slot may come from that node: M6. */
static bool may_come(const struct worker *w, const struct space *space, uint32_t slot, uint8_t from)
{
    struct slot_home home = home_of(space, slot);
    return home.state == HOME_MOVING && home.home == from && home.to == w->node->config.self &&
           (!lotus_slots_has(&space->moves->foreign, slot) ||
            !rule_on(space, LOTUS_RULE_MOVE_BACK));
}

static void take_rows(struct worker *w, const struct msg *msg, uint8_t from)
{
    struct space *space = &w->node->spaces[msg->space];
    struct bytes rest = msg->value;
    struct lotus_row row;
    struct msg answer = {
        .space = msg->space,
        .kind = LOTUS_MSG_TAKEN,
        .epoch = w->view.epoch,
        .arg = msg->arg,
    };
    lotus_table_forget(space->table, (uint64_t)msg->gen << 32 | msg->slot);
    while (lotus_row_take(&rest, &row) && may_come(w, space, slot_of_key(row.key), from) &&
           lotus_table_put(space->table, w->threads[msg->space], &row) == TABLE_DONE) {
        answer.slot++;
    }
    output_message(w, from, 0, &answer);
}

static void rows_taken(struct worker *w, const struct msg *msg, uint8_t from)
{
    struct lotus_moves *m = w->node->spaces[msg->space].moves;
    struct lotus_parcel *p = m->parcels[from];
    if (p == NULL || !p->sent || p->number != msg->arg || msg->slot > p->rows_n) {
        w->stats.engine_drops[ENGINE_DROP_STALE]++;
        return;
    }
    struct bytes rest = bytes_of(p->rows, p->n);
    struct lotus_row row;
    for (uint32_t i = 0; i < msg->slot; i++) {
        bool more = lotus_row_take(&rest, &row);
        HK_ASSERT(more);
    }
    if (rest.n > 0) {
        memmove(p->rows, rest.at, rest.n);
    }
    p->n = rest.n;
    p->rows_n -= msg->slot;
    p->sent = false;
    p->wait_us = p->n > 0 ? w->now_us + AGAIN_US : 0;
    m->due_us = p->n > 0 ? p->wait_us : w->now_us;
}

void lotus_move_message(struct worker *w, const struct msg *msg, uint8_t from)
{
    if (from >= NODES_MAX || !nodeset_has(w->view.live, from) || from == w->node->config.self) {
        w->stats.engine_drops[ENGINE_DROP_SENDER]++;
    } else if (msg->kind == LOTUS_MSG_ROWS) {
        take_rows(w, msg, from);
    } else {
        rows_taken(w, msg, from);
    }
}
