#include "onesided/txn.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define POLL_NS 2000u
#define BACK_OFF_NS 16000u
#define BACK_OFF_SHIFTS 8u

const char *const one_policy_names[ONE_POLICIES] = {
    [ONE_NO_WAIT] = "one_sided_no_wait", [ONE_WAIT_DIE] = "one_sided_wait_die"};

enum request_state {
    REQUEST_IDLE,
    REQUEST_WALK,
    REQUEST_LOCK,  /* exclusive: compare-and-swap and read are under way */
    REQUEST_SHARE, /* the same with fetch-and-add */
    REQUEST_AGE,   /* WAIT_DIE: shared; its age is being written there */
    REQUEST_POLL,  /* WAIT_DIE: the lock word is looked at again after a while */
    REQUEST_UNDO,  /* the record was another's */
    REQUEST_PUT,   /* a ghost, locked by this one, goes into the tree */
    REQUEST_HELD,
};

/* ---- Hints ---- */

bool one_hints_open(struct one_hints *h, uint64_t slots)
{
    *h = (struct one_hints){.n = slots};
    HK_ASSERT((slots & (slots - 1)) == 0);
    h->slots = slots == 0 ? NULL : calloc(slots, sizeof *h->slots);
    return slots == 0 || h->slots != NULL;
}

void one_hints_close(struct one_hints *h)
{
    free(h->slots);
    *h = (struct one_hints){.n = 0};
}

static uint64_t hint_slot(const struct one_hints *h, uint64_t key)
{
    return (key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (h->n - 1);
}

static remote hint(struct one_hints *h, uint64_t key)
{
    if (h->n == 0) {
        return 0;
    }
    uint64_t i = hint_slot(h, key);
    bool there = h->slots[i].at != 0 && h->slots[i].key == key;
    h->absent += !there;
    return there ? h->slots[i].at : 0;
}

static void keep_hint(struct one_hints *h, uint64_t key, remote at)
{
    if (h->n > 0) {
        uint64_t i = hint_slot(h, key);
        h->slots[i].key = key;
        h->slots[i].at = at;
    }
}

/* ---- One request ---- */

static void post_lock(struct one_txn *t, struct one_request *r, struct posting *p)
{
    uint32_t words = ONE_RECORD_HEAD + t->config->value_words;
    if (r->write) {
        r->held = ONE_LOCK_X | t->age;
        r->first = post_cas(p, r->at, r->guess, r->held);
        r->state = REQUEST_LOCK;
    } else {
        r->held = ONE_LOCK_S;
        r->first = post_add(p, r->at, ONE_LOCK_S);
        r->state = REQUEST_SHARE;
    }
    p->verbs[post_read(p, r->at, r->record, words)].more = t->config->value_more;
}

static void begin_walk(struct one_txn *t, struct one_request *r, struct posting *p)
{
    one_walk_begin(&r->walk, r->key, 0);
    r->hinted = false;
    r->guess = 0;
    r->state = REQUEST_WALK;
    (void)one_walk_step(&r->walk, t->tree, t->cache, p);
}

static void begin_request(struct one_txn *t, struct one_request *r, struct posting *p)
{
    r->at = hint(t->hints, r->key);
    r->hinted = r->at != 0;
    r->guess = 0;
    r->held = 0;
    r->ghost = false;
    if (r->hinted) {
        post_lock(t, r, p);
        return;
    }
    begin_walk(t, r, p);
}

/* ---- Keys without a record (docs/ONE_SIDED.md, G1 to G4) ---- */

static remote take_room(struct one_room *room)
{
    for (uint32_t i = 0; i < room->nodes; i++) {
        uint32_t node = room->turn++ % room->nodes;
        if (room->next[node] < room->end[node]) {
            room->next[node] += room->record_bytes;
            return room->next[node] - room->record_bytes;
        }
    }
    return 0;
}

static void put_ghost(struct one_txn *t, struct one_request *r, struct posting *p)
{
    if (r->fresh == 0) {
        r->fresh = take_room(t->room);
    }
    if (r->fresh == 0) {
        t->full = true;
        t->dies = true;
        r->state = REQUEST_IDLE;
        return;
    }
    memset(r->record, 0, sizeof r->record);
    r->record[0] = (r->write ? ONE_LOCK_X : ONE_LOCK_S) | t->age;
    r->record[1] = r->key | ONE_GHOST;
    (void)post_write(p, r->fresh, r->record, ONE_RECORD_HEAD);
    one_insert_begin(&r->insert, r->key, r->fresh);
    r->state = REQUEST_PUT;
    (void)one_insert_step(&r->insert, t->tree, t->cache, NULL, p); /* begins to walk */
}

static void put_on(struct one_txn *t, struct one_request *r, const struct posting *done,
                   struct posting *p)
{
    if (!one_insert_step(&r->insert, t->tree, t->cache, done, p)) {
        return;
    }
    if (!r->insert.exists) {
        r->at = r->fresh;
        r->fresh = 0;
        r->held = r->write ? ONE_LOCK_X | t->age : ONE_LOCK_S;
        r->ghost = true;
        keep_hint(t->hints, r->key, r->at);
        r->state = REQUEST_HELD;
    } else if (t->dies) {
        r->state = REQUEST_IDLE;
    } else {
        begin_walk(t, r, p);
    }
}

static void walk_on(struct one_txn *t, struct one_request *r, struct posting *p)
{
    if (!one_walk_step(&r->walk, t->tree, t->cache, p)) {
        return;
    }
    if (!r->walk.found && t->room == NULL) {
        t->absent = true;
        t->dies = true;
    }
    if (t->dies) {
        r->state = REQUEST_IDLE;
        return;
    }
    if (!r->walk.found) {
        put_ghost(t, r, p);
        return;
    }
    r->at = r->walk.value;
    keep_hint(t->hints, r->key, r->at);
    post_lock(t, r, p);
}

static bool others_lack(const struct one_txn *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->requests[i].state != REQUEST_HELD) {
            return true;
        }
    }
    return false;
}

/* WAIT_DIE: the lock's word, which this request shares, names an age that no owner is older than.
 * Who is older than that says so before it waits for anything else: else somebody between them in
 * age waits for it, and it for that one. Who is the first to share says so as well, if that works
 * at once: what it finds there may be older than all, and then others die the sooner. */
static void say_age(struct one_txn *t, struct one_request *r, uint64_t word, struct posting *p)
{
    bool first = (word & ~ONE_LOCK_AGE) == ONE_LOCK_S, older = t->age < (word & ONE_LOCK_AGE);
    r->state = REQUEST_HELD;
    if (t->config->policy != ONE_WAIT_DIE || !(first || older) || !others_lack(t)) {
        return;
    }
    r->guess = word;
    r->first = post_cas(p, r->at, word, (word & ~ONE_LOCK_AGE) | t->age);
    r->state = older ? REQUEST_AGE : REQUEST_HELD;
}

static void age_answered(struct one_txn *t, struct one_request *r, const struct posting *done,
                         struct posting *p)
{
    uint64_t seen = done->verbs[r->first].seen;
    r->state = REQUEST_HELD;
    if (seen != r->guess && t->age < (seen & ONE_LOCK_AGE)) {
        say_age(t, r, seen, p);
    }
}

static void let_go(struct one_request *r, struct posting *p);

/* It is locked and read, if it is the right record. */
static void got(struct one_txn *t, struct one_request *r, uint64_t seen, struct posting *p)
{
    if ((r->record[1] & ~ONE_GHOST) == r->key) {
        r->ghost = r->record[1] != r->key;
        t->hints->good += r->hinted;
        r->state = REQUEST_HELD;
        if (!r->write) {
            say_age(t, r, seen + ONE_LOCK_S, p);
        }
        return;
    }
    HK_ASSERT(r->hinted); /* records that the tree leads to stay where they are */
    t->hints->stale++;
    let_go(r, p);
    r->state = REQUEST_UNDO;
}

/* Another owns it: dies, or looks again after a while. */
static void conflicts(struct one_txn *t, struct one_request *r, uint64_t seen, struct posting *p)
{
    if (t->config->policy == ONE_NO_WAIT || t->age > (seen & ONE_LOCK_AGE)) {
        t->dies = true;
        r->state = REQUEST_IDLE;
        return;
    }
    p->delay_ns = t->config->poll_ns != 0 ? t->config->poll_ns : POLL_NS;
    (void)post_read(p, r->at, r->record, 1);
    r->state = REQUEST_POLL;
}

static bool in_the_way(const struct one_request *r, uint64_t word)
{
    return (word & (r->write ? ~ONE_LOCK_AGE : ONE_LOCK_X)) != 0;
}

static void lock_answered(struct one_txn *t, struct one_request *r, const struct posting *done,
                          struct posting *p)
{
    uint64_t seen = done->verbs[r->first].seen;
    if (!r->write && !in_the_way(r, seen)) {
        got(t, r, seen, p);
        return;
    }
    if (r->write && seen == r->guess) {
        got(t, r, seen, p);
        return;
    }
    if (!r->write) {
        let_go(r, p);
    }
    r->held = 0;
    if (t->dies) {
        r->state = REQUEST_IDLE;
    } else if (in_the_way(r, seen)) {
        conflicts(t, r, seen, p);
    } else {
        r->guess = seen; /* free, with an age that was left behind */
        post_lock(t, r, p);
    }
}

static void polled(struct one_txn *t, struct one_request *r, struct posting *p)
{
    uint64_t seen = r->record[0];
    if (t->dies) {
        r->state = REQUEST_IDLE;
    } else if (in_the_way(r, seen)) {
        conflicts(t, r, seen, p);
    } else {
        r->guess = seen;
        post_lock(t, r, p);
    }
}

static void request_step(struct one_txn *t, struct one_request *r, const struct posting *done,
                         struct posting *p)
{
    switch ((enum request_state)r->state) {
    case REQUEST_IDLE:
        begin_request(t, r, p);
        break;
    case REQUEST_WALK:
        walk_on(t, r, p);
        break;
    case REQUEST_LOCK:
    case REQUEST_SHARE:
        lock_answered(t, r, done, p);
        break;
    case REQUEST_AGE:
        age_answered(t, r, done, p);
        break;
    case REQUEST_POLL:
        polled(t, r, p);
        break;
    case REQUEST_UNDO: /* a stale hint: by the tree now */
        begin_walk(t, r, p);
        break;
    case REQUEST_PUT:
        put_on(t, r, done, p);
        break;
    case REQUEST_HELD:
        break;
    }
}

/* ---- The transaction ---- */

void one_txn_begin(struct one_txn *t, uint64_t age, uint32_t n)
{
    HK_ASSERT(n > 0 && n <= ONE_REQUESTS_MAX && age > 0 && age <= ONE_LOCK_AGE);
    t->age = age;
    t->n = n;
    t->tries = 0;
    t->state = ONE_TXN_RUN;
    t->dies = false;
    t->absent = false;
    t->full = false;
    for (uint32_t i = 0; i < n; i++) {
        t->requests[i].state = REQUEST_IDLE;
        t->requests[i].held = 0;
    }
}

/* By fetch-and-add, never by a write: somebody may have added its share for a moment. */
static void let_go(struct one_request *r, struct posting *p)
{
    if (r->held != 0) {
        (void)post_add(p, r->at, (r->held & ONE_LOCK_X) != 0 ? 0 - r->held : 0 - ONE_LOCK_S);
        r->held = 0;
    }
}

static enum one_step run(struct one_txn *t, const struct posting *done, struct posting *p)
{
    uint32_t before = p->n;
    bool all = true;
    for (uint32_t i = 0; i < t->n; i++) {
        struct one_request *r = &t->requests[i];
        if (r->state != REQUEST_HELD && !(t->dies && r->state == REQUEST_IDLE)) {
            request_step(t, r, done, p);
        }
        all = all && r->state == REQUEST_HELD;
        if (!t->config->overlap && r->state != REQUEST_HELD) {
            break;
        }
    }
    if (p->n > before) {
        return ONE_POSTED;
    }
    if (all) {
        t->state = ONE_TXN_READY;
        return ONE_READY;
    }
    HK_ASSERT(t->dies);
    for (uint32_t i = 0; i < t->n; i++) {
        let_go(&t->requests[i], p);
    }
    t->state = ONE_TXN_ABORT;
    if (p->n == before) {
        return ONE_FINISHED; /* told apart by one_txn_step */
    }
    return ONE_POSTED;
}

static void begin_again(struct one_txn *t, struct posting *p)
{
    const struct one_config *c = t->config;
    uint64_t most = c->back_off_ns != 0 ? c->back_off_ns : BACK_OFF_NS;
    uint32_t shifts = c->back_off_shifts != 0 ? c->back_off_shifts : BACK_OFF_SHIFTS;
    shifts = t->tries < shifts ? t->tries : shifts;
    t->tries++;
    t->dies = false;
    t->state = ONE_TXN_RUN;
    for (uint32_t i = 0; i < t->n; i++) {
        t->requests[i].state = REQUEST_IDLE;
    }
    p->delay_ns = 1 + random_below(t->random, most << shifts);
}

/* Values first, then the locks: in one batch, whose order holds at each node. */
static enum one_step commit(struct one_txn *t, struct posting *p)
{
    for (uint32_t i = 0; i < t->n; i++) {
        struct one_request *r = &t->requests[i];
        if (r->write) {
            uint32_t from = r->ghost ? 1 : ONE_RECORD_HEAD; /* a ghost becomes a record */
            r->record[1] = r->key;
            uint32_t v = post_write(p, r->at + 8u * from, r->record + from,
                                    ONE_RECORD_HEAD - from + t->config->value_words);
            p->verbs[v].more = t->config->value_more;
        }
        let_go(r, p);
    }
    t->state = ONE_TXN_COMMIT;
    return ONE_POSTED;
}

enum one_step one_txn_step(struct one_txn *t, const struct posting *done, struct posting *p)
{
    if (t->state == ONE_TXN_READY) {
        return commit(t, p);
    }
    if (t->state == ONE_TXN_COMMIT) {
        t->state = ONE_TXN_OVER;
        return ONE_FINISHED;
    }
    if (t->state == ONE_TXN_RUN) {
        enum one_step step = run(t, done, p);
        if (step != ONE_FINISHED) {
            return step;
        }
    }
    HK_ASSERT(t->state == ONE_TXN_ABORT);
    if (t->absent || t->full) {
        t->state = ONE_TXN_OVER;
        return ONE_FINISHED;
    }
    begin_again(t, p);
    return run(t, done, p);
}
