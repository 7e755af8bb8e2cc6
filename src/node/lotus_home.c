/* Tries at a memory server: who they are, what their coordinators and the other participants say of
 * them, and how they end. What becomes of a try says its part (engine/lotus/commit.h); here it is
 * carried out. */
#include "node/lotus_home.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define KEPT_BYTES (64u * 1024u) /* buffers above it are given back */
#define WHOLE_SHORT 1024u        /* of a request that is prefetched */

/* ---- Making ---- */

static void set_defaults(struct lotus_config *c)
{
    c->hints_max = c->hints_max != 0 ? c->hints_max : 65536;
    c->tries_max = c->tries_max != 0 ? c->tries_max : 4096;
    c->locks_max = c->locks_max != 0 ? c->locks_max : 1u << 20;
    c->try_locks_max = c->try_locks_max != 0 ? c->try_locks_max : 65536;
    c->lease_us = c->lease_us != 0 ? c->lease_us : 5000000;
    c->far_min = c->far_min != 0 ? c->far_min : 64;
    c->grace_us = c->grace_us != 0 ? c->grace_us : 10000000;
}

static void table_woken(void *context, uint32_t status, uint64_t generation)
{
    const struct lotus_space *l = context;
    uint32_t tries_max = l->config.tries_max;
    struct worker *w = &l->node->workers[status / tries_max];
    struct home_space *s = w->lotus_home->spaces[l->space];
    (void)generation; /* the table is asked again */
    home_wake(w, s, &s->works[status % tries_max]);
}

/* Nobody needs a cell any more: the worker whose thread it is tells who has it. */
static void table_let_go(void *context, struct store_thread *thread, const struct lotus_far *far)
{
    const struct lotus_space *l = context;
    struct node *n = l->node;
    for (uint32_t i = 0; i < n->config.workers; i++) {
        struct worker *w = &n->workers[i];
        if (w->threads[l->space] == thread) {
            home_forget(w, l->space, far);
        }
    }
}

int lotus_tables_init(struct node *n, uint8_t space)
{
    struct space *sp = &n->spaces[space];
    struct store_thread *thread;
    struct lotus_space *l = sp->lotus = calloc(1, sizeof *l);
    if (l == NULL) {
        return HK_ERR_NOMEM;
    }
    l->node = n;
    l->space = space;
    if (sp->engine != NULL) {
        l->config = *(const struct lotus_config *)sp->engine;
    }
    set_defaults(&l->config);
    if ((uint64_t)l->config.tries_max * n->config.workers > UINT32_MAX / 2) {
        return HK_ERR_INVALID;
    }
    int err = store_thread_register(sp->store, &thread);
    if (err != HK_OK) {
        return err;
    }
    struct lotus_table_config config = {
        .lotus = &l->config,
        .store = sp->store,
        .statuses_n = l->config.tries_max * n->config.workers,
        .woken = table_woken,
        .let_go = table_let_go,
        .context = l,
    };
    err = lotus_table_create(&config, thread, &sp->table);
    store_thread_unregister(thread);
    return err;
}

void lotus_tables_deinit(struct node *n, uint8_t space)
{
    struct space *sp = &n->spaces[space];
    struct store_thread *thread;
    if (sp->table != NULL) {
        int err = store_thread_register(sp->store, &thread);
        HK_ASSERT(err == HK_OK); /* all workers' are gone */
        lotus_table_destroy(sp->table, thread);
        store_thread_unregister(thread);
        sp->table = NULL;
    }
    free(sp->lotus);
    sp->lotus = NULL;
}

/* Workers of a coordinator's node that speak to this one: those with its number, modulo how many
 * there are here. */
static uint32_t peers_of_node(const struct worker *w)
{
    return (WORKERS_MAX + w->node->config.workers - 1) / w->node->config.workers;
}

static struct home_peer *peer_of(const struct worker *w, const struct home_space *s, uint8_t node,
                                 uint32_t slot)
{
    uint32_t i = lotus_slot_worker(slot) / w->node->config.workers;
    HK_ASSERT(i < peers_of_node(w));
    return &s->peers[node * peers_of_node(w) + i];
}

static int make_space(struct worker *w, uint8_t space)
{
    const struct lotus_config *config = &w->node->spaces[space].lotus->config;
    struct home_space *s = calloc(1, sizeof *s);
    w->lotus_home->spaces[space] = s;
    if (s == NULL) {
        return HK_ERR_NOMEM;
    }
    s->config = config;
    s->table = w->node->spaces[space].table;
    s->space = space;
    list_init(&s->free);
    list_init(&s->leases);
    list_init(&s->behind);
    list_init(&s->tries);
    s->buckets_n = 64;
    while (s->buckets_n < 2 * config->tries_max && s->buckets_n < 1u << 30) {
        s->buckets_n *= 2;
    }
    s->works = calloc(config->tries_max, sizeof *s->works);
    s->buckets = calloc(s->buckets_n, sizeof(struct home_try *));
    s->peers = calloc(NODES_MAX * peers_of_node(w), sizeof *s->peers);
    if (s->works == NULL || s->buckets == NULL || s->peers == NULL) {
        return HK_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < NODES_MAX * peers_of_node(w); i++) {
        list_init(&s->peers[i].outcomes);
    }
    for (uint32_t i = 0; i < config->tries_max; i++) {
        s->works[i].holder.status = w->index * config->tries_max + i;
        list_init(&s->works[i].fetches);
        list_push_back(&s->free, &s->works[i].link);
    }
    return home_far_init(w, s);
}

static int make_home(struct lotus_home *home)
{
    list_init(&home->runs);
    list_init(&home->fetches);
    home->value = aligned_alloc(64, (LOTUS_NEXT_BYTES + 63u) / 64u * 64u);
    home->ops = calloc(TXN_OPS_MAX, sizeof *home->ops);
    home->watches = calloc(TXN_OBJECTS_MAX, sizeof *home->watches);
    bool made = home->value != NULL && home->ops != NULL && home->watches != NULL;
    return made ? HK_OK : HK_ERR_NOMEM;
}

int lotus_home_init(struct worker *w)
{
    const struct node *n = w->node;
    int err = HK_OK;
    for (uint32_t i = 0; i < SPACES_MAX && err == HK_OK; i++) {
        if (n->spaces[i].lotus == NULL) {
            continue;
        }
        if (w->lotus_home == NULL) {
            w->lotus_home = calloc(1, sizeof *w->lotus_home);
            if (w->lotus_home == NULL) {
                return HK_ERR_NOMEM;
            }
            err = make_home(w->lotus_home);
        }
        err = err != HK_OK ? err : make_space(w, (uint8_t)i);
    }
    return err;
}

static void free_space(struct worker *w, struct home_space *s)
{
    list_each_safe(link, following, &s->tries)
    {
        struct home_try *t = list_entry(link, struct home_try, link);
        if (t->work != NULL) {
            lotus_table_end(s->table, w->threads[s->space], &t->work->holder);
            home_work_give(w, s, t->work);
        }
        free(t);
    }
    home_far_deinit(w, s);
    for (uint32_t i = 0; s->works != NULL && i < s->config->tries_max; i++) {
        buffer_free(&s->works[i].items);
        buffer_free(&s->works[i].rows);
    }
    while (s->spare != NULL) {
        struct home_try *next = s->spare->next;
        free(s->spare);
        s->spare = next;
    }
    free(s->works);
    free(s->peers);
    free(s->buckets);
    free(s->walk_at);
    buffer_free(&s->late);
    free(s);
}

void lotus_home_deinit(struct worker *w)
{
    struct lotus_home *home = w->lotus_home;
    if (home == NULL) {
        return;
    }
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (home->spaces[i] != NULL) {
            free_space(w, home->spaces[i]);
        }
    }
    home_runs_free(w);
    free(home->all_fetches);
    buffer_free(&home->out);
    free(home->value);
    free(home->ops);
    free(home->watches);
    free(home);
    w->lotus_home = NULL;
}

/* ---- Works ---- */

struct home_work *home_work_take(struct home_space *s, struct lock_age age)
{
    struct list_link *link = list_pop_front(&s->free);
    if (link == NULL) {
        return NULL;
    }
    struct home_work *work = list_entry(link, struct home_work, link);
    work->holder = (struct lotus_holder){.age = age, .status = work->holder.status};
    work->doing = HOME_IDLE;
    work->open = work->kept = work->behind = false;
    work->items.n = work->rows.n = 0;
    work->awaited.id = 0;
    lotus_table_begin(s->table, &work->holder);
    return work;
}

void home_rows_clear(struct worker *w, struct home_work *work)
{
    struct lotus_home *home = w->lotus_home;
    home->read -= work->read;
    home->most = home->most != work ? home->most : NULL;
    work->read = 0;
    work->rows.n = 0;
    buffer_trim(&work->rows, KEPT_BYTES);
}

void home_work_give(struct worker *w, struct home_space *s, struct home_work *work)
{
    lotus_scan_end(&work->scan, w->threads[s->space]);
    work->scan = (struct lotus_scan){.found = 0};
    home_far_drop(w, work);
    work->t = NULL;
    if (work->run != NULL) {
        home_run_give(w, work->run);
        work->run = NULL;
    }
    buffer_trim(&work->items, KEPT_BYTES);
    home_rows_clear(w, work);
    work->behind = false;
    list_remove(&work->link);
    list_push_front(&s->free, &work->link);
}

void home_heard(struct worker *w, struct home_space *s, struct home_work *work)
{
    work->heard_us = w->now_us;
    list_remove(&work->link);
    list_push_back(&s->leases, &work->link);
}

void home_parked(struct worker *w, struct home_space *s, struct home_work *work)
{
    w->stats.home_waits += work->holder.waits != 0;
    list_remove(&work->link); /* who waits has no lease */
    if (work->behind) {
        list_push_back(&s->behind, &work->link);
    }
}

/* ---- Tries by name ---- */

static struct home_try **bucket_of(const struct home_space *s, const struct home_name *name)
{
    uint64_t h = (name->nonce + name->slot) * UINT64_C(0x9e3779b97f4a7c15);
    return &s->buckets[(h >> 32) & (s->buckets_n - 1)];
}

static bool same_slot(const struct home_name *a, const struct home_name *b)
{
    return a->node == b->node && a->slot == b->slot && a->nonce == b->nonce;
}

static struct home_try *find(const struct home_space *s, const struct home_name *name)
{
    struct home_try *t = *bucket_of(s, name);
    while (t != NULL && (t->name.gen != name->gen || !same_slot(&t->name, name))) {
        t = t->next;
    }
    return t;
}

static uint64_t nonce_of(const struct worker *w, uint8_t node)
{
    return node == w->node->config.self ? w->node->config.view.nonce : w->view.members[node].nonce;
}

static struct home_name name_of(const struct worker *w, const struct msg *msg, uint8_t from)
{
    return (struct home_name){
        .nonce = nonce_of(w, from), .slot = msg->slot, .gen = msg->gen, .node = from};
}

/* Gauges of the statistics. */
static void count_state(struct worker *w, struct home_try *t, uint8_t state)
{
    w->stats.home_doubts += state == PART_DOUBT;
    w->stats.home_doubts -= t->counted == PART_DOUBT;
    w->stats.home_outcomes += state == PART_COMMITTED;
    w->stats.home_outcomes -= t->counted == PART_COMMITTED;
    t->counted = state;
}

static void forget(struct worker *w, struct home_space *s, struct home_try *t)
{
    struct home_try **at = bucket_of(s, &t->name);
    while (*at != t) {
        at = &(*at)->next;
    }
    *at = t->next;
    HK_ASSERT(t->work == NULL);
    count_state(w, t, PART_FREE);
    list_remove(&t->link);
    list_remove(&t->outcome);
    t->next = s->spare;
    s->spare = t;
    s->tries_n--;
}

/* ---- What becomes of a try ---- */

void home_answer(struct worker *w, const struct home_space *s, const struct home_name *name,
                 enum lotus_kind kind, enum lotus_word word, struct bytes value)
{
    struct msg m = {
        .space = s->space,
        .kind = (uint8_t)kind,
        .slot = name->slot,
        .gen = name->gen,
        .epoch = w->view.epoch,
        .ts = word,
        .arg = kind == LOTUS_MSG_EXECUTED ? lotus_table_forgotten(s->table) : 0,
        .value = word == LOTUS_OK ? value : bytes_of(NULL, 0),
    };
    if (nonce_of(w, name->node) == name->nonce) {
        output_message(w, name->node, (uint8_t)lotus_slot_worker(name->slot), &m);
    }
}

/* Between participants: the coordinator's process is named in full. */
static void tell(struct worker *w, const struct home_space *s, const struct home_name *name,
                 nodeset to, enum lotus_kind kind, uint64_t ts)
{
    uint8_t nonce[8];
    put_u64(nonce, name->nonce);
    struct msg m = {
        .space = s->space,
        .kind = (uint8_t)kind,
        .slot = name->slot,
        .gen = name->gen,
        .epoch = w->view.epoch,
        .ts = ts,
        .arg = (uint64_t)name->node | (uint64_t)lotus_slot_worker(name->slot) << 8,
        .key = bytes_of(nonce, sizeof nonce),
    };
    for (; to != 0; to &= to - 1) {
        output_message(w, nodeset_first(to), (uint8_t)lotus_slot_worker(name->slot), &m);
    }
}

static void install(struct worker *w, struct home_space *s, struct home_try *t, struct bytes rows)
{
    struct lotus_row row;
    if (!lotus_rule_on(s->config, LOTUS_RULE_WRITE_FIRST) && rows.n > 0) {
        memcpy(buffer_add(&s->late, rows.n), rows.at, rows.n);
        return;
    }
    while (lotus_row_take(&rows, &row)) {
        enum table_word word =
            lotus_table_write(s->table, w->threads[s->space], &t->work->holder, &row, w->now_us);
        HK_ASSERT(word == TABLE_DONE); /* it has X on all of them, and memory was made sure of */
        w->stats.home_written++;
    }
}

/* P6 is off: what was released before it was written. */
static void write_late(struct worker *w, struct home_space *s)
{
    struct bytes rows = bytes_of(s->late.at, s->late.n);
    struct lotus_row row;
    while (lotus_row_take(&rows, &row)) {
        (void)lotus_table_put(s->table, w->threads[s->space], &row);
    }
    s->late.n = 0;
}

static void release(struct worker *w, struct home_space *s, struct home_try *t)
{
    if (t->work != NULL) {
        lotus_table_end(s->table, w->threads[s->space], &t->work->holder);
        home_work_give(w, s, t->work);
        t->work = NULL;
    }
}

/* False: the try is gone. */
static bool carry_out(struct worker *w, struct home_space *s, struct home_try *t,
                      const struct part_effect *e, const struct home_event *event)
{
    switch ((enum part_fx)e->kind) {
    case PART_FX_ANSWER:
        if (event->answer != 0) {
            home_answer(w, s, &t->name, (enum lotus_kind)event->answer, (enum lotus_word)e->code,
                        event->value);
        }
        break;
    case PART_FX_INSTALL:
        w->stats.home_commits++;
        install(w, s, t,
                event->given ? event->writes : bytes_of(t->work->rows.at, t->work->rows.n));
        break;
    case PART_FX_RELEASE:
        release(w, s, t);
        break;
    case PART_FX_ASK:
        tell(w, s, &t->name, e->to, LOTUS_MSG_ASK, 0);
        break;
    case PART_FX_RESOLVED:
        tell(w, s, &t->name, e->to, LOTUS_MSG_RESOLVED, e->code);
        break;
    case PART_FX_TOLD:
        tell(w, s, &t->name, nodeset_of(event->asker), LOTUS_MSG_TOLD, e->code);
        break;
    case PART_FX_FREE:
        if (t->link.next != NULL) {
            release(w, s, t);
            forget(w, s, t);
        }
        return false;
    }
    return true;
}

/* Kept by number, so that those that are known to all stand first. */
static void keep_outcome(struct worker *w, struct home_space *s, struct home_try *t)
{
    struct home_peer *peer = peer_of(w, s, t->name.node, t->name.slot);
    struct list_link *place = peer->outcomes.prev;
    struct part_effects fx = {.n = 0};
    while (place != &peer->outcomes &&
           list_entry(place, struct home_try, outcome)->part.number > t->part.number) {
        place = place->prev;
    }
    list_insert_after(place, &t->outcome);
    part_done(&t->part, s->config, peer->done, &fx);
    home_carry_out(w, s, t, &fx, &(struct home_event){.answer = 0});
}

void home_carry_out(struct worker *w, struct home_space *s, struct home_try *t,
                    const struct part_effects *fx, const struct home_event *event)
{
    for (uint32_t i = 0; i < fx->n; i++) {
        if (!carry_out(w, s, t, &fx->e[i], event)) {
            return;
        }
    }
    if (t->link.next == NULL) {
        return; /* not known here */
    }
    count_state(w, t, t->part.state);
    if (t->part.alone) {
        list_remove(&t->outcome);
    } else if (t->part.state == PART_COMMITTED && list_empty(&t->outcome)) {
        keep_outcome(w, s, t);
    }
}

/* RUNNING: it ends here. */
static void drop(struct worker *w, struct home_space *s, struct home_try *t)
{
    struct part_effects fx = {.n = 0};
    part_drop(&t->part, &fx);
    home_carry_out(w, s, t, &fx, &(struct home_event){.answer = 0});
}

void home_refuse(struct worker *w, struct home_space *s, struct home_try *t, enum lotus_kind kind,
                 enum lotus_word word)
{
    w->stats.home_refused[word]++;
    home_answer(w, s, &t->name, kind, word, bytes_of(NULL, 0));
    drop(w, s, t);
}

/* ---- EXECUTE, WHOLE ---- */

/* Another try of the slot, which runs: its coordinator has given it up. */
static void replace(struct worker *w, struct home_space *s, const struct home_name *name)
{
    struct home_try *next;
    for (struct home_try *t = *bucket_of(s, name); t != NULL; t = next) {
        next = t->next;
        if (t->part.state == PART_RUNNING && same_slot(&t->name, name)) {
            drop(w, s, t);
        }
    }
}

static enum lotus_word begin(struct worker *w, struct home_space *s, const struct home_name *name,
                             struct lock_age age, struct home_try **t_out)
{
    replace(w, s, name);
    lotus_saw(w, &age);
    if (list_empty(&s->free) ||
        s->tries_n >= (1 + HOME_OUTCOMES) * (uint64_t)s->config->tries_max) {
        return LOTUS_BUSY;
    }
    struct home_try *t = s->spare;
    if (t != NULL) {
        s->spare = t->next;
    } else if ((t = malloc(sizeof *t)) == NULL) {
        return LOTUS_NOMEM;
    }
    struct home_try **bucket = bucket_of(s, name);
    *t = (struct home_try){.name = *name,
                           .next = *bucket,
                           .work = home_work_take(s, age),
                           .admitted = w->view.members[name->node].admitted,
                           .began = node_map_version(w->node, s->space)};
    *bucket = t;
    t->work->t = t;
    list_init(&t->outcome);
    list_push_back(&s->tries, &t->link);
    s->tries_n++;
    part_begin(&t->part);
    *t_out = t;
    return LOTUS_OK;
}

/* Its items were gone on with. */
static void execute_went(struct worker *w, struct home_space *s, struct home_try *t, uint32_t word)
{
    struct home_work *work = t->work;
    if (word == LOTUS_WORDS) {
        home_parked(w, s, work);
    } else if (word != LOTUS_OK) {
        home_refuse(w, s, t, LOTUS_MSG_EXECUTED, (enum lotus_word)word);
    } else {
        work->doing = HOME_IDLE;
        home_answer(w, s, &t->name, LOTUS_MSG_EXECUTED, LOTUS_OK,
                    bytes_of(work->rows.at, work->rows.n));
        home_rows_clear(w, work);
        home_heard(w, s, work);
    }
}

static void take_whole(struct worker *w, struct home_space *s, const struct msg *msg,
                       const struct home_name *name)
{
    struct home_try *t = find(s, name);
    struct bytes rest = msg->value;
    struct lotus_head head;
    enum lotus_word word = LOTUS_REFUSED;
    lotus_head_take(&rest, &head);
    w->stats.home_wholes++;
    if (t == NULL) {
        word = begin(w, s, name, head.age, &t);
    }
    if (word != LOTUS_OK) {
        w->stats.home_refused[word]++;
        home_answer(w, s, name, LOTUS_MSG_DONE, word, bytes_of(NULL, 0));
        return;
    }
    t->work->doing = HOME_WHOLE;
    t->work->map = head.map;
    home_whole(w, s, t, rest);
}

static void take_execute(struct worker *w, struct home_space *s, const struct msg *msg,
                         const struct home_name *name)
{
    struct home_try *t = find(s, name);
    struct bytes rest = msg->value;
    struct lotus_head head;
    enum lotus_word word = LOTUS_OK;
    lotus_head_take(&rest, &head);
    w->stats.home_executes++;
    if (t == NULL) {
        bool first = msg->arg == 0 || !lotus_rule_on(s->config, LOTUS_RULE_GOES_ON);
        word = first ? begin(w, s, name, head.age, &t) : LOTUS_REFUSED;
    } else if (t->part.state != PART_RUNNING || t->work->doing != HOME_IDLE) {
        word = LOTUS_REFUSED; /* no coordinator asks so */
    }
    if (word != LOTUS_OK) {
        w->stats.home_refused[word]++;
        home_answer(w, s, name, LOTUS_MSG_EXECUTED, word, bytes_of(NULL, 0));
        return;
    }
    struct home_work *work = t->work;
    work->doing = HOME_EXECUTE;
    work->kept = false;
    work->rest = rest;
    work->map = head.map;
    work->rows.n = 0;
    execute_went(w, s, t, home_items(w, s, work));
}

/* ---- FINISH, PREPARE, COMMIT, ABORT ---- */

enum lotus_word home_reserve(struct worker *w, struct home_space *s, struct home_work *work,
                             struct bytes rows)
{
    struct lotus_row row;
    while (lotus_row_take(&rows, &row)) {
        enum table_word word =
            lotus_table_reserve(s->table, w->threads[s->space], &work->holder, &row);
        if (word != TABLE_DONE) {
            return (enum lotus_word)home_word(word);
        }
    }
    return LOTUS_OK;
}

/* RUNNING, waits for nothing, and can write the rows. Else it ends here. */
static bool may_end(struct worker *w, struct home_space *s, struct home_try *t, struct bytes rows,
                    enum lotus_kind kind)
{
    bool running = lotus_table_state(s->table, &t->work->holder) == TRY_RUNNING;
    enum lotus_word word =
        t->work->doing != HOME_IDLE ? LOTUS_REFUSED : home_reserve(w, s, t->work, rows);
    if (word == LOTUS_OK) {
        return true;
    }
    /* Who was wounded has lost its locks. Else no coordinator asks so. */
    w->stats.engine_drops[ENGINE_DROP_INVALID] += word == LOTUS_REFUSED && running;
    home_refuse(w, s, t, kind, word);
    return false;
}

static bool win(struct worker *w, struct home_space *s, struct home_try *t)
{
    bool won = lotus_rule_on(s->config, LOTUS_RULE_PREPARED)
                   ? lotus_table_prepare(s->table, &t->work->holder)
                   : lotus_table_state(s->table, &t->work->holder) == TRY_RUNNING;
    w->stats.home_refused[LOTUS_REFUSED] += !won;
    return won;
}

void home_finish(struct worker *w, struct home_space *s, struct home_try *t, struct bytes rows,
                 struct bytes answers)
{
    struct part_effects fx = {.n = 0};
    bool won = win(w, s, t);
    w->stats.home_commits_alone += won;
    part_finish(&t->part, won, &fx);
    home_carry_out(w, s, t, &fx,
                   &(struct home_event){
                       .given = true, .writes = rows, .value = answers, .answer = LOTUS_MSG_DONE});
}

static void take_finish(struct worker *w, struct home_space *s, const struct msg *msg,
                        const struct home_name *name)
{
    struct home_try *t = find(s, name);
    if (t == NULL || t->part.state != PART_RUNNING) {
        w->stats.home_refused[LOTUS_REFUSED]++;
        home_answer(w, s, name, LOTUS_MSG_DONE, LOTUS_REFUSED, bytes_of(NULL, 0));
    } else if (may_end(w, s, t, msg->value, LOTUS_MSG_DONE)) {
        home_finish(w, s, t, msg->value, bytes_of(NULL, 0));
    }
}

/* Those of the nodes whose processes have gone since that epoch. */
static nodeset gone_since(const struct worker *w, const struct home_space *s, nodeset nodes,
                          uint32_t epoch)
{
    bool processes = lotus_rule_on(s->config, LOTUS_RULE_PROCESS);
    nodeset gone = 0;
    for (; nodes != 0; nodes &= nodes - 1) {
        uint8_t node = nodeset_first(nodes);
        bool newer = processes && w->view.members[node].admitted > epoch;
        if (!nodeset_has(w->view.live, node) || newer) {
            gone |= nodeset_of(node);
        }
    }
    return gone;
}

static void take_prepare(struct worker *w, struct home_space *s, const struct msg *msg,
                         const struct home_name *name)
{
    struct home_try *t = find(s, name);
    uint8_t self = w->node->config.self;
    nodeset participants = get_u64(msg->value.at);
    struct bytes rows = bytes_of(msg->value.at + 8, msg->value.n - 8);
    struct part_effects fx = {.n = 0};
    bool won = true;
    w->stats.home_prepares++;
    if (t == NULL || !nodeset_has(participants, self)) {
        w->stats.home_refused[LOTUS_REFUSED]++;
        home_answer(w, s, name, LOTUS_MSG_PREPARED, LOTUS_REFUSED, bytes_of(NULL, 0));
        return;
    }
    if (t->part.state == PART_RUNNING) {
        struct home_work *work = t->work;
        if (!may_end(w, s, t, rows, LOTUS_MSG_PREPARED)) {
            return;
        }
        /* Kept before the status word says so (P5). */
        work->rows.n = 0;
        if (rows.n > 0) {
            memcpy(buffer_add(&work->rows, rows.n), rows.at, rows.n);
        }
        list_remove(&work->link); /* no lease any more (P1) */
        if (!lotus_rule_on(s->config, LOTUS_RULE_NO_TIMEOUT)) {
            home_heard(w, s, work);
        }
        t->epoch = msg->epoch;
        won = win(w, s, t);
    }
    participants &= ~gone_since(w, s, participants & ~nodeset_of(self), msg->epoch);
    part_prepare(&t->part, won, msg->arg, participants, self, &fx);
    home_carry_out(w, s, t, &fx, &(struct home_event){.answer = LOTUS_MSG_PREPARED});
}

/* A try of which nothing is known. */
static struct home_try nobody(const struct home_name *name)
{
    return (struct home_try){.name = *name};
}

static void take_commit(struct worker *w, struct home_space *s, const struct home_name *name)
{
    struct home_try unknown = nobody(name), *t = find(s, name);
    struct part_effects fx = {.n = 0};
    t = t != NULL ? t : &unknown;
    part_commit(&t->part, &fx);
    home_carry_out(w, s, t, &fx, &(struct home_event){.answer = LOTUS_MSG_COMMITTED});
}

static void take_abort(struct worker *w, struct home_space *s, const struct home_name *name)
{
    struct home_try *t = find(s, name);
    struct part_effects fx = {.n = 0};
    if (t != NULL) {
        part_abort(&t->part, &fx);
        home_carry_out(w, s, t, &fx, &(struct home_event){.answer = 0});
    }
}

/* ---- Outcomes ---- */

/* P2. */
static void take_done(struct worker *w, struct home_space *s, uint8_t from, uint32_t slot,
                      uint64_t done)
{
    struct home_peer *peer = peer_of(w, s, from, slot);
    if (peer->nonce != nonce_of(w, from)) {
        peer->nonce = nonce_of(w, from);
        peer->done = 0;
    }
    if (done <= peer->done) {
        return;
    }
    peer->done = done;
    list_each_safe(link, following, &peer->outcomes)
    {
        struct home_try *t = list_entry(link, struct home_try, outcome);
        struct part_effects fx = {.n = 0};
        if (t->part.number >= done) {
            break;
        }
        part_done(&t->part, s->config, done, &fx);
        home_carry_out(w, s, t, &fx, &(struct home_event){.answer = 0});
    }
}

/* ASK, TOLD, RESOLVED: of one epoch (P3). */
static void take_about(struct worker *w, struct home_space *s, const struct msg *msg, uint8_t from)
{
    struct home_name name = {.nonce = get_u64(msg->key.at),
                             .slot = msg->slot,
                             .gen = msg->gen,
                             .node = (uint8_t)msg->arg};
    struct home_try unknown = nobody(&name), *t = find(s, &name);
    struct part_effects fx = {.n = 0};
    bool strict = lotus_rule_on(s->config, LOTUS_RULE_EPOCH);
    if (msg->epoch != w->view.epoch && strict) {
        w->stats.engine_drops[ENGINE_DROP_EPOCH_OLD]++;
        return;
    }
    /* In one epoch all agree who is gone: nobody asks for the try of a process that is not. */
    bool lives = nonce_of(w, name.node) == name.nonce && name.nonce != 0;
    if (msg->arg >> 8 != lotus_slot_worker(msg->slot) || (lives && strict)) {
        w->stats.engine_drops[ENGINE_DROP_INVALID]++;
        return;
    }
    t = t != NULL ? t : &unknown;
    if (msg->kind == LOTUS_MSG_ASK) {
        part_asked(&t->part, &fx);
    } else if (msg->kind == LOTUS_MSG_RESOLVED) {
        part_resolved(&t->part, from, msg->ts == 1, &fx);
    } else if (t != &unknown) {
        part_told(&t->part, from, (enum lotus_told)msg->ts, &fx);
    }
    home_carry_out(w, s, t, &fx, &(struct home_event){.asker = from});
}

/* Of far rows: answers are for the asker, the rest for who has the cell. */
static void take_far(struct worker *w, struct home_space *s, const struct msg *msg, uint8_t from)
{
    bool answer = msg->kind == LOTUS_MSG_STORED || msg->kind == LOTUS_MSG_FETCHED;
    uint32_t worker = answer ? lotus_slot_worker(msg->slot) : lotus_cell_worker(msg->arg);
    bool here = worker < WORKERS_MAX && worker % w->node->config.workers == w->index;
    if (!here || (s->far == NULL && msg->kind != LOTUS_MSG_STORE) || from == w->node->config.self ||
        lanes_life(w, from) == 0) {
        w->stats.engine_drops[ENGINE_DROP_INVALID]++;
    } else if (answer || msg->kind == LOTUS_MSG_RECALL) {
        home_far_message(w, s, msg, from);
    } else {
        home_cells_message(w, s, msg, from);
    }
}

void lotus_home_message(struct worker *w, const struct msg *msg, uint8_t from)
{
    struct home_space *s = w->lotus_home->spaces[msg->space];
    if (from == NODE_NONE || msg->epoch > w->view.epoch) {
        w->stats.engine_drops[from == NODE_NONE ? ENGINE_DROP_SENDER : ENGINE_DROP_EPOCH_NEW]++;
        return;
    }
    if (msg->kind >= LOTUS_MSG_STORE) {
        take_far(w, s, msg, from);
        return;
    }
    uint32_t worker = lotus_slot_worker(msg->slot);
    if (worker >= WORKERS_MAX || worker % w->node->config.workers != w->index) {
        w->stats.engine_drops[ENGINE_DROP_INVALID]++;
        return;
    }
    struct home_name name = name_of(w, msg, from);
    if (msg->kind <= LOTUS_MSG_ABORT) {
        take_done(w, s, from, msg->slot, msg->ts);
    }
    switch (msg->kind) {
    case LOTUS_MSG_EXECUTE:
        take_execute(w, s, msg, &name);
        break;
    case LOTUS_MSG_WHOLE:
        take_whole(w, s, msg, &name);
        break;
    case LOTUS_MSG_FINISH:
        take_finish(w, s, msg, &name);
        break;
    case LOTUS_MSG_PREPARE:
        take_prepare(w, s, msg, &name);
        break;
    case LOTUS_MSG_COMMIT:
        take_commit(w, s, &name);
        break;
    case LOTUS_MSG_ABORT:
        take_abort(w, s, &name);
        break;
    case LOTUS_MSG_ASK:
    case LOTUS_MSG_TOLD:
    case LOTUS_MSG_RESOLVED:
        take_about(w, s, msg, from);
        break;
    default:
        break; /* a coordinator's */
    }
}

/* ---- Views ---- */

static bool coordinator_gone(const struct worker *w, const struct home_name *name,
                             uint32_t admitted)
{
    return name->node != w->node->config.self &&
           !(view_has(&w->view, name->node, name->nonce) &&
             w->view.members[name->node].admitted == admitted);
}

void lotus_home_adopt(struct worker *w)
{
    for (uint32_t i = 0; w->lotus_home != NULL && i < SPACES_MAX; i++) {
        struct home_space *s = w->lotus_home->spaces[i];
        if (s == NULL) {
            continue;
        }
        list_each_safe(link, following, &s->tries)
        {
            struct home_try *t = list_entry(link, struct home_try, link);
            struct part_effects fx = {.n = 0};
            part_adopt(&t->part, s->config, coordinator_gone(w, &t->name, t->admitted),
                       gone_since(w, s, t->part.others, t->epoch), &fx);
            home_carry_out(w, s, t, &fx, &(struct home_event){.answer = 0});
        }
        if (s->far != NULL) {
            home_far_adopt(w, s);
        }
    }
}

/* ---- Polls ---- */

static void go_on(struct worker *w, struct home_space *s, struct home_work *work)
{
    struct home_try *t = work->t;
    if (t == NULL || t->part.state != PART_RUNNING) {
        return; /* for nothing: it has ended meanwhile, or cannot be wounded */
    }
    bool wounded = lotus_table_state(s->table, &work->holder) == TRY_WOUNDED;
    if (wounded && !lotus_rule_on(s->config, LOTUS_RULE_WOUND_TOLD)) {
        return;
    }
    switch ((enum home_doing)work->doing) {
    case HOME_IDLE:
        if (wounded) {
            drop(w, s, t); /* P7; its coordinator hears with its next request */
        }
        break;
    case HOME_EXECUTE:
        execute_went(w, s, t, home_items(w, s, work));
        break;
    case HOME_WHOLE:
        home_whole_go_on(w, s, t);
        break;
    }
}

static void take_woken(struct worker *w, struct home_space *s)
{
    /* acquire: pairs with the release in home_wake. */
    struct home_work *work = atomic_exchange_explicit(&s->woken, NULL, memory_order_acquire);
    struct home_work *first = NULL;
    while (work != NULL) { /* the last that was pushed stands first */
        struct home_work *next = work->woken_next;
        work->woken_next = first;
        first = work;
        work = next;
    }
    for (work = first; work != NULL; work = first) {
        first = work->woken_next;
        /* From here on it may be woken again. acq_rel: what was done before is seen. */
        (void)atomic_exchange_explicit(&work->woken, false, memory_order_acq_rel);
        if (w->moved < MOVED_MAX) {
            go_on(w, s, work);
        } else {
            home_wake(w, s, work); /* the next poll; who has had his turn already goes first */
        }
    }
}

/* Works whose coordinators have consumed what was sent to them. */
static void wake_behind(struct worker *w, struct home_space *s)
{
    list_each_safe(link, following, &s->behind)
    {
        struct home_work *work = list_entry(link, struct home_work, link);
        if (!home_behind(w, work)) {
            list_remove(&work->link);
            work->behind = false;
            home_wake(w, s, work);
        }
    }
}

static uint64_t lease_due(const struct home_space *s)
{
    return list_empty(&s->leases)
               ? UINT64_MAX
               : list_entry(s->leases.next, struct home_work, link)->heard_us + s->config->lease_us;
}

static void end_leases(struct worker *w, struct home_space *s)
{
    while (lease_due(s) <= w->now_us) {
        struct home_try *t = list_entry(s->leases.next, struct home_work, link)->t;
        struct part_effects fx = {.n = 0};
        w->stats.home_leases++;
        if (t->part.state == PART_RUNNING) {
            part_drop(&t->part, &fx);
        } else {
            part_abort(&t->part, &fx); /* P1 is off */
        }
        home_carry_out(w, s, t, &fx, &(struct home_event){.answer = 0});
    }
}

void lotus_home_poll(struct worker *w)
{
    uint64_t most = 0;
    for (uint32_t i = 0; w->lotus_home != NULL && i < SPACES_MAX; i++) {
        struct home_space *s = w->lotus_home->spaces[i];
        if (s != NULL) {
            w->moved = 0; /* a measure of its own: nobody else's work stops it */
            wake_behind(w, s);
            take_woken(w, s);
            most = most > w->moved ? most : w->moved;
            end_leases(w, s);
            home_look_at_map(w, s);
            if (s->late.n > 0) {
                write_late(w, s);
            }
            if (w->index == 0) {
                home_walk(w, s);
            }
            if (s->far != NULL) {
                home_far_poll(w, s);
            }
        }
    }
    w->moved = most;
}

/* Of a request only if it is short: it is taken apart once more. */
static void prefetch_whole(const struct worker *w, const struct msg *msg, struct bytes rest)
{
    const struct lotus_home *home = w->lotus_home;
    struct txn_request q;
    if (rest.n > WHOLE_SHORT) {
        return;
    }
    lotus_request_take(rest, msg->space, home->ops, home->watches, &q);
    for (uint32_t i = 0; i < q.ops_n && i < BURST_MAX; i++) {
        if (q.ops[i].kind < TXN_OP_RANGE) {
            lotus_table_prefetch(w->node->spaces[msg->space].table, q.ops[i].key, 0, false);
        }
    }
}

void lotus_home_prefetch(const struct worker *w, const struct msg *msg)
{
    struct bytes rest = msg->value;
    struct lotus_head head;
    struct lotus_item item;
    if (msg->kind == LOTUS_MSG_WHOLE) {
        lotus_head_take(&rest, &head);
        prefetch_whole(w, msg, rest);
    }
    if (msg->kind != LOTUS_MSG_EXECUTE) {
        return;
    }
    lotus_head_take(&rest, &head);
    for (uint32_t i = 0; i < BURST_MAX && lotus_item_take(&rest, &item); i++) {
        if ((item.flags & LOTUS_ITEM_RANGE) == 0) {
            lotus_table_prefetch(w->node->spaces[msg->space].table, item.key, item.hint, false);
        }
    }
}

bool lotus_home_wanted(const struct worker *w)
{
    for (uint32_t i = 0; w->lotus_home != NULL && i < SPACES_MAX; i++) {
        const struct home_space *s = w->lotus_home->spaces[i];
        if (s != NULL && atomic_load_explicit(&s->woken, memory_order_acquire) != NULL) {
            return true;
        }
    }
    return false;
}

uint64_t lotus_home_deadline(const struct worker *w)
{
    uint64_t due = lotus_home_wanted(w) ? w->now_us : UINT64_MAX;
    for (uint32_t i = 0; w->lotus_home != NULL && i < SPACES_MAX; i++) {
        const struct home_space *s = w->lotus_home->spaces[i];
        if (s != NULL) {
            uint64_t lease = lease_due(s);
            uint64_t walk = w->index == 0 ? home_walk_due(s) : UINT64_MAX;
            due = lease < due ? lease : due;
            due = walk < due ? walk : due;
            if (s->far != NULL) {
                uint64_t far = home_far_due(w, s);
                due = far < due ? far : due;
            }
        }
    }
    return due;
}

/* ---- Checking ---- */

static uint32_t length(const struct list_link *list)
{
    uint32_t n = 0;
    list_each(link, list)
    {
        n++;
    }
    return n;
}

static void check_try(const struct home_space *s, const struct home_try *t)
{
    const struct home_work *work = t->work;
    part_check(&t->part);
    HK_ASSERT(t->part.state != PART_FREE && find(s, &t->name) == t);
    HK_ASSERT((work == NULL) == (t->part.state == PART_COMMITTED));
    HK_ASSERT(work == NULL || work->t == t);
    HK_ASSERT(list_empty(&t->outcome) == (t->part.state != PART_COMMITTED || t->part.alone));
    if (t->part.state == PART_RUNNING) {
        /* It waits, or has a lease. */
        HK_ASSERT((work->doing == HOME_IDLE || work->behind) == !list_empty(&work->link));
        HK_ASSERT(work->doing != HOME_EXECUTE || (work->open && work->kept));
    }
}

void lotus_home_check(const struct worker *w)
{
    uint64_t read = 0;
    for (uint32_t i = 0; w->lotus_home != NULL && i < SPACES_MAX; i++) {
        const struct home_space *s = w->lotus_home->spaces[i];
        uint32_t n = 0, works = 0;
        if (s == NULL) {
            continue;
        }
        list_each(link, &s->tries)
        {
            const struct home_try *t = list_entry(link, struct home_try, link);
            check_try(s, t);
            n++;
            works += t->work != NULL;
            read += t->work != NULL ? t->work->read : 0;
        }
        HK_ASSERT(n == s->tries_n && works + length(&s->free) == s->config->tries_max);
    }
    HK_ASSERT(w->lotus_home == NULL || w->lotus_home->read == read);
}
