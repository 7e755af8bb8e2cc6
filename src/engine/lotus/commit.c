/* Two-phase commit: the coordinator's machine, then the participant's. The tables are in
 * docs/protocols/lotus.md; what is empty in them is ignored. */
#include "engine/lotus/commit.h"

#include "base/assert.h"
#include "base/err.h"

const char *const lotus_state_names[LOTUS_STATES] = {
    [LOTUS_IDLE] = "Idle",       [LOTUS_WHOLE] = "Whole",   [LOTUS_EXECUTE] = "Execute",
    [LOTUS_PREPARE] = "Prepare", [LOTUS_COMMIT] = "Commit",
};
const char *const part_state_names[PART_STATES] = {
    [PART_FREE] = "Free",   [PART_RUNNING] = "Running",     [PART_PREPARED] = "Prepared",
    [PART_DOUBT] = "Doubt", [PART_COMMITTED] = "Committed",
};

/* ---- The coordinator ---- */

static struct lotus_effect *say(struct lotus_effects *fx, enum lotus_fx kind, nodeset to)
{
    HK_ASSERT(fx->n < LOTUS_EFFECTS_MAX);
    fx->e[fx->n] = (struct lotus_effect){.kind = (uint8_t)kind, .to = to};
    return &fx->e[fx->n++];
}

static void say_to(struct lotus_effects *fx, enum lotus_fx kind, nodeset to)
{
    if (to != 0) {
        (void)say(fx, kind, to);
    }
}

/* The only writer of the state. */
static void enter(struct lotus_txn *t, enum lotus_state state, nodeset waits)
{
    t->state = (uint8_t)state;
    t->waits = waits;
    t->word = LOTUS_OK;
}

int lotus_error(const struct lotus_txn *t, const struct lotus_config *config, int err)
{
    return t->unsure != 0 && lotus_rule_on(config, LOTUS_RULE_UNSURE) ? HK_ERR_UNKNOWN : err;
}

/* The try has not taken effect. err: HK_OK: it is done once more. */
static void call_off(struct lotus_txn *t, const struct lotus_config *config, int err,
                     struct lotus_effects *fx)
{
    bool all = lotus_rule_on(config, LOTUS_RULE_ABORT_ALL);
    if (t->state == LOTUS_EXECUTE || t->state == LOTUS_PREPARE) {
        say_to(fx, LOTUS_FX_ABORT, all ? t->homes : t->homes & -t->homes);
    }
    if (t->state == LOTUS_PREPARE) {
        t->unsure |= t->homes & t->written;
    }
    enum lotus_word word = (enum lotus_word)t->word;
    enter(t, LOTUS_IDLE, 0);
    t->word = (uint8_t)word;
    if (t->orphan) {
        (void)say(fx, LOTUS_FX_END, 0);
    } else if (err == HK_OK) {
        (void)say(fx, LOTUS_FX_AGAIN, 0);
    } else {
        say(fx, LOTUS_FX_FAIL, 0)->err = (int8_t)lotus_error(t, config, err);
    }
}

static void refused(struct lotus_txn *t, const struct lotus_config *config,
                    struct lotus_effects *fx)
{
    call_off(t, config,
             t->word == LOTUS_TOOBIG  ? HK_ERR_TOOBIG
             : t->word == LOTUS_NOMEM ? HK_ERR_NOMEM
                                      : HK_OK,
             fx);
}

/* It has taken effect, or will everywhere. */
static void answer(const struct lotus_txn *t, struct lotus_effects *fx)
{
    if (!t->orphan) {
        (void)say(fx, LOTUS_FX_ANSWER, 0);
    }
}

static void end(struct lotus_txn *t, struct lotus_effects *fx)
{
    enter(t, LOTUS_IDLE, 0);
    (void)say(fx, LOTUS_FX_END, 0);
}

/* participants: all homes, but for C1. */
static nodeset participants_of(const struct lotus_txn *t, const struct lotus_config *config)
{
    return lotus_rule_on(config, LOTUS_RULE_PREPARE_READ) ? t->homes : t->written;
}

static void decided(struct lotus_txn *t, const struct lotus_config *config,
                    struct lotus_effects *fx)
{
    nodeset participants = participants_of(t, config);
    answer(t, fx);
    enter(t, LOTUS_COMMIT, participants);
    say_to(fx, LOTUS_FX_COMMIT, participants);
    say_to(fx, LOTUS_FX_ABORT, t->homes & ~participants);
    t->homes = participants;
    if (participants == 0) {
        end(t, fx);
    }
}

static void begin(struct lotus_txn *t)
{
    HK_ASSERT(t->state == LOTUS_IDLE);
    *t = (struct lotus_txn){.unsure = t->unsure};
}

void lotus_whole(struct lotus_txn *t, uint8_t home, bool writes, struct lotus_effects *fx)
{
    begin(t);
    t->homes = nodeset_of(home);
    t->writes = writes;
    enter(t, LOTUS_WHOLE, t->homes);
    (void)say(fx, LOTUS_FX_WHOLE, t->homes);
}

void lotus_ask(struct lotus_txn *t, nodeset to, struct lotus_effects *fx)
{
    HK_ASSERT(to != 0 && t->waits == 0);
    if (t->state != LOTUS_EXECUTE) {
        begin(t);
    }
    t->homes |= to;
    enter(t, LOTUS_EXECUTE, to);
    (void)say(fx, LOTUS_FX_EXECUTE, to);
}

/* All answers of the round are here. */
static void answered_all(struct lotus_txn *t, const struct lotus_config *config,
                         struct lotus_effects *fx)
{
    switch ((enum lotus_state)t->state) {
    case LOTUS_WHOLE:
        answer(t, fx);
        end(t, fx);
        break;
    case LOTUS_EXECUTE:
        (void)say(fx, LOTUS_FX_NEXT, 0);
        break;
    case LOTUS_PREPARE:
        decided(t, config, fx);
        break;
    case LOTUS_COMMIT:
        end(t, fx);
        break;
    case LOTUS_IDLE:
    case LOTUS_STATES:
        HK_ASSERT(false);
    }
}

void lotus_answered(struct lotus_txn *t, const struct lotus_config *config, enum lotus_state phase,
                    uint8_t from, enum lotus_word word, struct lotus_effects *fx)
{
    if (t->state != phase || !nodeset_has(t->waits, from)) {
        return;
    }
    t->waits &= ~nodeset_of(from);
    t->unsure &= ~nodeset_of(from);
    if (phase == LOTUS_COMMIT) {
        word = LOTUS_OK; /* nobody refuses what was decided */
    }
    if (word != LOTUS_OK) {
        t->homes &= ~nodeset_of(from);
        t->word = t->word == LOTUS_OK ? (uint8_t)word : t->word;
    }
    bool first = !lotus_rule_on(config, LOTUS_RULE_ALL_PREPARED) && phase == LOTUS_PREPARE;
    if (t->waits != 0 && !(first && word == LOTUS_OK)) {
        return;
    }
    if (t->word != LOTUS_OK) {
        refused(t, config, fx);
    } else {
        answered_all(t, config, fx);
    }
}

void lotus_evaluated(struct lotus_txn *t, const struct lotus_config *config, nodeset written,
                     struct lotus_effects *fx)
{
    HK_ASSERT(t->state == LOTUS_EXECUTE && t->waits == 0 && nodeset_within(written, t->homes));
    t->written = written;
    if (nodeset_count(t->homes) == 1) {
        t->writes = written != 0;
        enter(t, LOTUS_WHOLE, t->homes);
        (void)say(fx, LOTUS_FX_FINISH, t->homes);
        return;
    }
    nodeset participants = participants_of(t, config);
    if (participants == 0) {
        decided(t, config, fx);
        return;
    }
    enter(t, LOTUS_PREPARE, participants);
    (void)say(fx, LOTUS_FX_PREPARE, participants);
}

void lotus_give_up(struct lotus_txn *t, const struct lotus_config *config, int err,
                   struct lotus_effects *fx)
{
    HK_ASSERT(t->state == LOTUS_EXECUTE && t->waits == 0 && err < HK_OK);
    call_off(t, config, err, fx);
}

void lotus_gone(struct lotus_txn *t, const struct lotus_config *config, nodeset gone,
                struct lotus_effects *fx)
{
    bool hit = (t->homes & gone) != 0;
    t->unsure &= ~gone; /* what they had is lost, and says so */
    if (!hit || t->state == LOTUS_IDLE) {
        return;
    }
    t->homes &= ~gone;
    t->waits &= ~gone;
    if (t->state == LOTUS_WHOLE) {
        call_off(t, config, t->writes ? HK_ERR_UNKNOWN : HK_ERR_LOSTSLOT, fx);
    } else if (t->state != LOTUS_COMMIT) {
        call_off(t, config, HK_ERR_LOSTSLOT, fx);
    } else if (t->waits == 0) {
        end(t, fx);
    }
}

bool lotus_cancel(struct lotus_txn *t, struct lotus_effects *fx)
{
    if (t->state == LOTUS_EXECUTE) {
        say_to(fx, LOTUS_FX_ABORT, t->homes);
        enter(t, LOTUS_IDLE, 0);
    }
    t->orphan = t->state != LOTUS_IDLE;
    return !t->orphan;
}

void lotus_txn_check(const struct lotus_txn *t)
{
    HK_ASSERT(t->state < LOTUS_STATES && t->word < LOTUS_WORDS);
    HK_ASSERT(nodeset_within(t->waits, t->homes));
    HK_ASSERT(t->state == LOTUS_EXECUTE || (t->waits == 0) == (t->state == LOTUS_IDLE));
    HK_ASSERT(t->state != LOTUS_WHOLE || nodeset_count(t->homes) == 1);
    HK_ASSERT(!t->orphan || t->state != LOTUS_EXECUTE);
}

/* ---- A try at a memory server ---- */

static void add(struct part_effects *fx, enum part_fx kind, uint32_t code, nodeset to)
{
    HK_ASSERT(fx->n < PART_EFFECTS_MAX);
    fx->e[fx->n++] = (struct part_effect){.kind = (uint8_t)kind, .code = (uint8_t)code, .to = to};
}

/* The only writer of the state. */
static void become(struct lotus_part *p, enum part_state state)
{
    p->state = (uint8_t)state;
}

static void forget(struct lotus_part *p, struct part_effects *fx)
{
    *p = (struct lotus_part){.state = PART_FREE};
    add(fx, PART_FX_FREE, 0, 0);
}

static void let_go(struct lotus_part *p, struct part_effects *fx)
{
    add(fx, PART_FX_RELEASE, 0, 0);
    forget(p, fx);
}

/* P6. */
static void install(struct part_effects *fx)
{
    add(fx, PART_FX_INSTALL, 0, 0);
    add(fx, PART_FX_RELEASE, 0, 0);
}

void part_begin(struct lotus_part *p)
{
    HK_ASSERT(p->state == PART_FREE);
    *p = (struct lotus_part){.state = PART_RUNNING};
}

void part_drop(struct lotus_part *p, struct part_effects *fx)
{
    HK_ASSERT(p->state == PART_RUNNING);
    let_go(p, fx);
}

void part_finish(struct lotus_part *p, bool won, struct part_effects *fx)
{
    HK_ASSERT(p->state == PART_RUNNING);
    if (won) {
        install(fx);
    } else {
        add(fx, PART_FX_RELEASE, 0, 0);
    }
    add(fx, PART_FX_ANSWER, won ? LOTUS_OK : LOTUS_REFUSED, 0);
    forget(p, fx);
}

void part_prepare(struct lotus_part *p, bool won, uint64_t number, nodeset participants,
                  uint8_t self, struct part_effects *fx)
{
    bool running = p->state == PART_RUNNING;
    if (p->state == PART_DOUBT) {
        return;
    }
    if (p->state == PART_FREE || (running && !won)) {
        if (running) {
            add(fx, PART_FX_RELEASE, 0, 0);
        }
        add(fx, PART_FX_ANSWER, LOTUS_REFUSED, 0);
        if (running) {
            forget(p, fx);
        }
        return;
    }
    if (running) {
        p->number = number;
        p->others = participants & ~nodeset_of(self);
        become(p, PART_PREPARED);
    }
    add(fx, PART_FX_ANSWER, LOTUS_OK, 0);
}

/* Its coordinator is gone. Those who are not known to have the outcome hear it; when all have it,
 * nobody will ask. */
static void tell_outcome(struct lotus_part *p, nodeset to, struct part_effects *fx)
{
    p->waits = to;
    if (to == 0) {
        forget(p, fx);
    } else {
        add(fx, PART_FX_RESOLVED, 0, to);
    }
}

/* In doubt no more. told_by: has it; NODE_NONE: all that live were prepared. */
static void resolve(struct lotus_part *p, uint8_t told_by, struct part_effects *fx)
{
    nodeset known = told_by == NODE_NONE ? 0 : nodeset_of(told_by);
    install(fx);
    become(p, PART_COMMITTED);
    tell_outcome(p, p->others & ~known, fx);
}

void part_commit(struct lotus_part *p, struct part_effects *fx)
{
    if (p->state == PART_RUNNING || p->state == PART_DOUBT) {
        return;
    }
    if (p->state == PART_PREPARED) {
        install(fx);
        become(p, PART_COMMITTED);
    }
    add(fx, PART_FX_ANSWER, LOTUS_OK, 0);
}

void part_abort(struct lotus_part *p, struct part_effects *fx)
{
    if (p->state == PART_RUNNING || p->state == PART_PREPARED) {
        let_go(p, fx);
    }
}

/* P4: all others are asked, and again in each view, since what they say counts in one. */
static void doubt(struct lotus_part *p, const struct lotus_config *config, struct part_effects *fx)
{
    bool all = lotus_rule_on(config, LOTUS_RULE_DOUBT_ALL);
    become(p, PART_DOUBT);
    p->waits = all ? p->others : p->others & -p->others;
    if (!lotus_rule_on(config, LOTUS_RULE_DOUBT)) {
        let_go(p, fx);
    } else if (p->waits == 0) {
        resolve(p, NODE_NONE, fx);
    } else {
        add(fx, PART_FX_ASK, 0, p->waits);
    }
}

void part_adopt(struct lotus_part *p, const struct lotus_config *config, bool alone, nodeset gone,
                struct part_effects *fx)
{
    p->others &= ~gone;
    p->waits &= ~gone;
    bool before = p->alone;
    /* A RESOLVED says that the coordinator is gone, too, and what it says stays said. */
    if (!(alone || before) || !lotus_rule_on(config, LOTUS_RULE_GONE)) {
        return;
    }
    switch ((enum part_state)p->state) {
    case PART_FREE:
        return;
    case PART_RUNNING:
        let_go(p, fx);
        return;
    case PART_PREPARED:
    case PART_DOUBT:
        p->alone = true;
        doubt(p, config, fx);
        return;
    case PART_COMMITTED:
        p->alone = true;
        if (!lotus_rule_on(config, LOTUS_RULE_OUTCOMES)) {
            forget(p, fx);
        } else {
            tell_outcome(p, before ? p->waits : p->others, fx);
        }
        return;
    case PART_STATES:
        break;
    }
    HK_ASSERT(false);
}

void part_done(struct lotus_part *p, const struct lotus_config *config, uint64_t done,
               struct part_effects *fx)
{
    bool known = p->number < done || !lotus_rule_on(config, LOTUS_RULE_OUTCOMES);
    if (p->state == PART_COMMITTED && known) {
        forget(p, fx);
    }
}

void part_asked(struct lotus_part *p, struct part_effects *fx)
{
    bool prepared = p->state == PART_PREPARED || p->state == PART_DOUBT;
    add(fx, PART_FX_TOLD,
        prepared                     ? LOTUS_TOLD_PREPARED
        : p->state == PART_COMMITTED ? LOTUS_TOLD_COMMITTED
                                     : LOTUS_TOLD_NO,
        0);
}

void part_told(struct lotus_part *p, uint8_t from, enum lotus_told told, struct part_effects *fx)
{
    if (p->state != PART_DOUBT || !nodeset_has(p->waits, from)) {
        return;
    }
    if (told == LOTUS_TOLD_NO) {
        let_go(p, fx);
        return;
    }
    p->waits &= ~nodeset_of(from);
    if (told == LOTUS_TOLD_COMMITTED) {
        resolve(p, from, fx);
    } else if (p->waits == 0) {
        resolve(p, NODE_NONE, fx);
    }
}

void part_resolved(struct lotus_part *p, uint8_t from, bool answer, struct part_effects *fx)
{
    if (p->state == PART_RUNNING) {
        return;
    }
    if (!answer) {
        add(fx, PART_FX_RESOLVED, 1, nodeset_of(from));
    }
    if (p->state == PART_PREPARED || p->state == PART_DOUBT) {
        p->alone = true;
        resolve(p, from, fx);
    } else if (p->state == PART_COMMITTED) {
        p->waits &= ~nodeset_of(from);
        if (p->alone && p->waits == 0) {
            forget(p, fx);
        }
    }
}

void part_check(const struct lotus_part *p)
{
    HK_ASSERT(p->state < PART_STATES);
    HK_ASSERT(p->state >= PART_PREPARED || (p->others == 0 && p->number == 0));
    HK_ASSERT(nodeset_within(p->waits, p->others));
    HK_ASSERT(!p->alone ||
              ((p->state == PART_DOUBT || p->state == PART_COMMITTED) && p->waits != 0));
    HK_ASSERT(p->alone || (p->state != PART_DOUBT && p->waits == 0));
}
