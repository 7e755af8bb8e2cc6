/* Insertion: a key that is not in the index gets a ghost, in a gap that is the holder's alone (N2,
 * N3). That it is, that the gap is the one, and the ghost itself are one step under the gap's
 * latch: a holder that was wounded between them would put a ghost into a gap which somebody else
 * has scanned, and halve it. Where nobody else owns the gap, it is the holder's for that step
 * without a request. */
#include "node/lotus_table_state.h"

struct insertion {
    struct lotus_table *t;
    struct store_thread *thread;
    struct lotus_holder *h;
    struct bytes key;
    uint64_t hint; /* of the ghost's record */
    bool lower;    /* S of the part of the gap below the key is the holder's */
    bool stands;
};

static bool look(const struct insertion *i, struct tree_cursor *c, struct bytes *next_out)
{
    uint64_t hint;
    tree_seek(i->t->tree, i->thread, i->key, false, TREE_FORWARDS, c);
    *next_out = bytes_of(NULL, 0);
    return tree_next(c, next_out, &hint);
}

static bool others_own(const struct lotus_table *t, const struct naming *s)
{
    for (uint32_t i = s->lock != NULL ? s->lock->lock.owners : 0; i != 0;
         i = t->locks.requests[i].next) {
        if (i != s->mine) {
            return true;
        }
    }
    return false;
}

static enum table_word stand(struct insertion *i)
{
    int err = tree_insert(i->t->tree, i->thread, i->key, i->hint, NULL);
    i->stands = err == HK_OK;
    return err == HK_OK || err == HK_ERR_CONDITION ? TABLE_DONE : TABLE_NOMEM;
}

/* Whether next is still the next key. Mostly its leaf is as it was. */
static bool look_holds(const struct insertion *i, const struct tree_cursor *c, struct bytes next)
{
    struct tree_cursor again;
    struct bytes now;
    if (!lotus_rule_on(&i->t->lotus, LOTUS_RULE_AGAIN) || tree_holds(c)) {
        return true;
    }
    (void)look(i, &again, &now);
    return bytes_equal(now, next);
}

/* Under the latch of a gap that nobody else owns. */
static enum table_word stand_if(struct insertion *i, const struct tree_cursor *c, struct bytes next)
{
    if (!look_holds(i, c, next)) {
        holder_count(i->t, i->h, COUNT_LOOKED_AGAIN, 1);
        return TABLE_DONE;
    }
    return stand(i);
}

/* DONE and not i->stands: look again. */
static enum table_word into_gap(struct insertion *i, const struct tree_cursor *c, struct bytes next)
{
    struct lotus_table *t = i->t;
    struct lotus_holder *h = i->h;
    struct lotus_name name = lotus_name(t, true, next);
    struct naming s;
    naming_begin(t, h, &s, &name);
    if (h->gap != 0 && h->gap != s.mine) {
        naming_end(t, &s);
        lotus_let_go(t, i->thread, h, h->gap);
        return TABLE_DONE;
    }
    bool scanned = s.mine != 0 && s.mine != h->gap;
    if (scanned && !i->lower && lotus_rule_on(&t->lotus, LOTUS_RULE_GAP_OWN)) {
        naming_end(t, &s);
        enum table_word word = lotus_lock(t, i->thread, h, true, i->key, LOCK_S, NULL);
        i->lower = word == TABLE_DONE;
        return word;
    }
    enum table_word word = TABLE_DONE;
    if (others_own(t, &s)) {
        word = naming_ask(t, i->thread, h, &s, LOCK_X);
        h->gap = scanned || (word != TABLE_DONE && word != TABLE_WAITS) ? h->gap : s.mine;
    }
    if (word == TABLE_DONE && !lotus_rule_on(&t->lotus, LOTUS_RULE_GAP_STEP)) {
        naming_end(t, &s);
        naming_begin(t, h, &s, &name);
    }
    if (word == TABLE_DONE) {
        word = stand_if(i, c, next);
    }
    if (i->stands && h->gap != 0 && h->gap == s.mine) {
        naming_release(t, i->thread, h, &s);
    }
    naming_end(t, &s);
    return word;
}

/* Until the ghost stands, or the key has an entry. */
static enum table_word insert(struct insertion *i)
{
    struct tree_cursor c;
    struct bytes next;
    enum table_word word = TABLE_DONE;
    if (!lotus_rule_on(&i->t->lotus, LOTUS_RULE_GAP_INSERT) ||
        (!lotus_rule_on(&i->t->lotus, LOTUS_RULE_AGAIN) && i->h->gap != 0)) {
        word = stand(i);
    }
    while (word == TABLE_DONE && !i->stands) {
        if (look(i, &c, &next) && bytes_equal(next, i->key)) {
            break;
        }
        word = into_gap(i, &c, next);
    }
    if (word == TABLE_DONE && i->h->gap != 0) {
        lotus_let_go(i->t, i->thread, i->h, i->h->gap);
    }
    return word;
}

enum table_word lotus_insert(struct lotus_table *t, struct store_thread *thread,
                             struct lotus_holder *h, uint32_t number, const struct lotus_item *item,
                             struct row_read *read_out)
{
    struct bytes key = item->key;
    struct insertion i = {.t = t, .thread = thread, .h = h, .key = key};
    struct ghost *ghost = ghost_create(thread, key);
    if (ghost == NULL || ghost_record(t, thread, item, &i.hint) != HK_OK) {
        ghost_destroy(thread, ghost);
        return TABLE_NOMEM;
    }
    enum table_word word = insert(&i);
    if (!i.stands) {
        record_drop(t->records, thread, i.hint);
        ghost_destroy(thread, ghost);
        uint64_t buffer[STORE_INLINE_MAX / 8u];
        if (word == TABLE_DONE && !row_find(t, thread, key, 0, false, buffer, read_out)) {
            /* Taken out again meanwhile: X on the row is not the holder's any more. */
            word = TABLE_REFUSED;
        }
        return word;
    }
    t->held[number].ghost = ghost;
    atomic_fetch_add_explicit(&t->ghosts, 1, memory_order_relaxed);
    *read_out = (struct row_read){.head.flags = LOTUS_ROW_ABSENT | ROW_QUEUED, .hint = i.hint};
    return TABLE_DONE;
}
