/* Wing and Gong's search, "Testing and Verifying Concurrent Objects" (1993), section 4, with the
 * set of visited states of Lowe, "Testing for Linearizability" (2017), section 3.
 *
 * The search builds one order from the front. At any moment the operations that may come next are
 * those whose begin stands before the first end of an operation that is not yet in the order. It
 * takes one that the key's value allows, removes its begin and end from the list and goes on; where
 * nothing fits it takes the last choice back. A state is the set of operations in the order, and
 * the value; what was reached before is not tried again.
 *
 * A value with a deadline may also expire: that is a choice like the others, open once the
 * deadline's not_before_us is not after the first end. It needs no memory, as there is nothing left
 * to expire until another step sets a deadline. Below, "unknown step" includes an expiry, as
 * neither must ever happen.
 *
 * What makes it fast on the histories of a store, each with the reason why no order is missed:
 *
 * R1. A step that changes nothing (a read, a condition that did not hold) is taken at once where it
 *     is allowed: any order of the rest that has it later has it here as well. So is a blind write
 *     of a value nobody asks for, onto another such value, if no forbid is left that it might
 *     serve, neither has a deadline, and no step is left that asks for one or keeps it.
 * R2. A step of unknown outcome is taken only where the very next step can use its value, and only
 *     such a step follows. In an order with the fewest unknown steps the next one is no blind
 *     write, for that would need no unknown step before it; so it has a guard, adds, or is an
 *     expiry.
 * R3. Of unknown steps that are alike, the one that began first is taken first (step_class).
 * R4. A family of values (step.h) must not be left while a step that needs it is outside the order
 *     and none that leads into it is. A deadline, that of the key or one yet to be set, leads into
 *     the family of the absent key.
 * R5. Values whose family no step outside the order asks for are one value to the set of visited
 *     states; and so are their deadlines, if nobody asks for the absent key or a deadline.
 * R6. A state is not tried if one that differs only in having used fewer unknown steps was: what is
 *     not used yet need never be (seen.h). docs/CHECKERS.md says why R2 and R6 agree.
 *
 * Invariants: I1. the list holds exactly the begins and ends of the returned steps outside the
 * order, ends after begins of the same time. I2. frames are the order. I3. the counts in steps are
 * of the steps outside the order. I4. sum and used are of the steps in it. */
#include "check/search.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "check/report.h"
#include "check/seen.h"
#include "check/step.h"

#define STATES_MAX_DEFAULT 50000000u
#define CLASS_NONE UINT32_MAX
#define CLASS_EXPIRY (UINT32_MAX - 1u)
#define STEP_NONE UINT32_MAX
/* How far a report looks for operations that wait for a value; it is for people, not for proof. */
#define LATER_LOOK_MAX 256u

/* The list: entry 0 is its head, 2i + 1 the begin and 2i + 2 the end of returned step i. */
#define HEAD 0u

struct frame {
    uint32_t step;
    uint32_t class;     /* of a step of unknown outcome; CLASS_NONE: it returned; CLASS_EXPIRY */
    struct held before; /* what it was taken at */
    bool forced;        /* by R1: not a choice, so there is nothing else to try */
};

/* Where the search for the next choice goes on. */
struct cursor {
    uint32_t entry;
    uint32_t class;
    bool expired; /* an expiry was tried */
};

struct choice {
    uint32_t step;  /* STEP_NONE: an expiry */
    uint32_t class; /* as in struct frame */
};

struct search {
    struct steps steps;
    uint32_t *next;
    uint32_t *prev;
    struct frame *frames;
    uint32_t frames_n;
    uint32_t left; /* returned steps outside the order */
    struct held held;
    struct fingerprint sum; /* of the returned steps in the order */
    uint64_t *used;         /* bits, of the unknown steps in the order */
    struct seen seen;
    uint64_t looks;
    bool stuck_set;
    struct report_stuck stuck;
};

/* What the steps that may come next wait for; made anew for each look, as values move. */
struct look {
    uint64_t first_end_us;
    bool others; /* one waits for more than a certain value, or adds to any */
};

static bool is_begin(uint32_t entry)
{
    return entry % 2 == 1;
}

static uint32_t step_of_entry(uint32_t entry)
{
    return (entry - 1) / 2;
}

struct event {
    uint64_t at_us;
    uint32_t entry;
};

/* Begins stand before ends of the same time, which makes them concurrent. */
static int compare_events(const void *left, const void *right)
{
    const struct event *a = left;
    const struct event *b = right;
    if (a->at_us != b->at_us) {
        return a->at_us < b->at_us ? -1 : 1;
    }
    if (is_begin(a->entry) != is_begin(b->entry)) {
        return is_begin(a->entry) ? -1 : 1;
    }
    return (a->entry > b->entry) - (a->entry < b->entry);
}

static bool make_list(struct search *s)
{
    size_t n = 2 * (size_t)s->steps.returned_n;
    struct event *events = calloc(n + 1, sizeof *events);
    if (events == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < s->steps.returned_n; i++) {
        events[2 * i] = (struct event){s->steps.at[i].begin_us, 2 * i + 1};
        events[2 * i + 1] = (struct event){s->steps.at[i].end_us, 2 * i + 2};
    }
    qsort(events, n, sizeof *events, compare_events);
    uint32_t last = HEAD;
    for (size_t i = 0; i < n; i++) {
        s->next[last] = events[i].entry;
        s->prev[events[i].entry] = last;
        last = events[i].entry;
    }
    s->next[last] = HEAD;
    s->prev[HEAD] = last;
    free(events);
    return true;
}

static void search_deinit(struct search *s)
{
    steps_deinit(&s->steps);
    free(s->next);
    free(s->prev);
    free(s->frames);
    free(s->used);
    seen_deinit(&s->seen);
}

static bool search_init(struct search *s, const struct history_op *const *ops, size_t n)
{
    *s = (struct search){.held = {VALUE_ABSENT, DEADLINE_NONE}};
    if (!steps_init(&s->steps, ops, n)) {
        return false;
    }
    s->left = s->steps.returned_n;
    size_t words = ((size_t)s->steps.n - s->steps.returned_n + 63) / 64;
    seen_init(&s->seen, words);
    size_t entries = 2 * (size_t)s->steps.returned_n + 1;
    s->next = calloc(entries, sizeof *s->next);
    s->prev = calloc(entries, sizeof *s->prev);
    /* Each step may be followed by the expiry of what it left. */
    s->frames = calloc(2 * (size_t)s->steps.n + 1, sizeof *s->frames);
    s->used = calloc(words + 1, sizeof *s->used);
    if (s->next == NULL || s->prev == NULL || s->frames == NULL || s->used == NULL ||
        !make_list(s)) {
        search_deinit(s);
        return false;
    }
    return true;
}

static void list_remove(struct search *s, uint32_t entry)
{
    s->next[s->prev[entry]] = s->next[entry];
    s->prev[s->next[entry]] = s->prev[entry];
}

/* Undoes the latest list_remove that is not undone yet; the entry still knows its neighbours. */
static void list_restore(struct search *s, uint32_t entry)
{
    s->next[s->prev[entry]] = entry;
    s->prev[s->next[entry]] = entry;
}

/* Enters a step of unknown outcome into the set of those used, or removes it. */
static void flip_used(struct search *s, uint32_t step)
{
    uint32_t bit = step - s->steps.returned_n;
    s->used[bit / 64] ^= (uint64_t)1 << bit % 64;
}

/* Takes a step into the order. */
static void take(struct search *s, struct choice choice, struct held after, bool forced)
{
    HK_ASSERT(after.value != VALUE_ABSENT || after.deadline == DEADLINE_NONE);
    s->frames[s->frames_n++] = (struct frame){choice.step, choice.class, s->held, forced};
    s->held = after;
    if (choice.class == CLASS_EXPIRY) {
        return;
    }
    steps_leave(&s->steps, choice.step);
    if (choice.class == CLASS_NONE) {
        s->sum = fingerprint_xor(s->sum, fingerprint_of(choice.step));
        list_remove(s, 2 * choice.step + 1);
        list_remove(s, 2 * choice.step + 2);
        s->left--;
    } else {
        flip_used(s, choice.step);
        s->steps.classes[choice.class].next++;
    }
}

/* Takes the last step of the order back. */
static struct frame take_back(struct search *s)
{
    struct frame f = s->frames[--s->frames_n];
    s->held = f.before;
    if (f.class == CLASS_EXPIRY) {
        return f;
    }
    if (f.class == CLASS_NONE) {
        s->sum = fingerprint_xor(s->sum, fingerprint_of(f.step));
        s->left++;
        list_restore(s, 2 * f.step + 2);
        list_restore(s, 2 * f.step + 1);
    } else {
        s->steps.classes[f.class].next--;
        flip_used(s, f.step);
    }
    steps_enter(&s->steps, f.step);
    return f;
}

static const struct value *value_at(const struct search *s, uint32_t value)
{
    return &s->steps.values.at[value];
}

/* Whether a step outside the order asks for the value's family. */
static bool is_asked(const struct search *s, uint32_t value)
{
    return steps_family(&s->steps, value)->asked > 0;
}

/* R1. */
static bool is_free(const struct search *s, uint32_t i)
{
    const struct step *step = &s->steps.at[i];
    if (step_is_pure(step)) {
        return step_allows(&s->steps, step, s->held);
    }
    bool timeless = s->held.deadline == DEADLINE_NONE && s->steps.untils == 0 &&
                    (step->until_make == DEADLINE_NONE || s->steps.deadlines_n == 0);
    return step->blind && s->steps.forbids == 0 && timeless && !is_asked(s, s->held.value) &&
           !is_asked(s, step->make);
}

/* Takes all that R1 gives. Taking one can move the first end, and make another value unasked. */
static void settle(struct search *s)
{
    bool again = true;
    while (again) {
        again = false;
        uint32_t entry = s->next[HEAD];
        while (is_begin(entry)) {
            uint32_t i = step_of_entry(entry);
            if (!is_free(s, i)) {
                entry = s->next[entry];
                continue;
            }
            uint32_t before = s->prev[entry];
            take(s, (struct choice){i, CLASS_NONE}, steps_after(&s->steps, i, s->held), true);
            entry = s->next[before];
            again = true;
        }
    }
}

/* R4, after a step left what was there before. */
static bool is_lost(const struct search *s, uint32_t before)
{
    const struct family *left = steps_family(&s->steps, before);
    bool may_expire =
        left == steps_family(&s->steps, VALUE_ABSENT) && s->held.deadline != DEADLINE_NONE;
    return left != steps_family(&s->steps, s->held.value) && left->needed > 0 &&
           left->makers == 0 && !may_expire;
}

static void want(struct search *s, uint32_t value)
{
    if (value != VALUE_NONE) {
        s->steps.values.at[value].wanted_at = s->looks;
    }
}

static bool class_is_open(const struct search *s, uint32_t class, uint64_t first_end_us)
{
    const struct step_class *c = &s->steps.classes[class];
    return c->next < c->end && s->steps.at[c->next].begin_us <= first_end_us;
}

static void look_at(struct search *s, const struct step *step, struct look *look)
{
    want(s, step->need);
    want(s, step->need_or);
    bool keeps = step->until_make == DEADLINE_KEEP && !step_is_pure(step);
    look->others = look->others || step->forbid != VALUE_NONE || step->sum ||
                   step->until_need != DEADLINE_ANY || (keeps && s->steps.deadlines_n > 0);
}

/* Marks the values that the steps which may come next wait for. */
static struct look look_around(struct search *s)
{
    struct look look = {0};
    s->looks++;
    uint32_t entry = s->next[HEAD];
    for (; is_begin(entry); entry = s->next[entry]) {
        look_at(s, &s->steps.at[step_of_entry(entry)], &look);
    }
    HK_ASSERT(entry != HEAD);
    look.first_end_us = s->steps.at[step_of_entry(entry)].end_us;
    for (uint32_t class = 0; class < s->steps.classes_n; class ++) {
        if (class_is_open(s, class, look.first_end_us)) {
            look_at(s, &s->steps.at[s->steps.classes[class].next], &look);
        }
    }
    return look;
}

static bool may_expire(const struct search *s, uint32_t deadline, uint64_t first_end_us)
{
    return deadline != DEADLINE_NONE && s->steps.deadlines[deadline].not_before_us <= first_end_us;
}

/* R2: whether the very next step can use what an unknown step leaves. */
static bool is_useful(const struct search *s, const struct look *look, struct held after)
{
    bool expires = may_expire(s, after.deadline, look->first_end_us);
    if (s->steps.forbids == 0 && s->steps.untils == 0 && !is_asked(s, after.value) &&
        !(after.deadline != DEADLINE_NONE && is_asked(s, VALUE_ABSENT))) {
        return false;
    }
    return look->others || expires || value_at(s, after.value)->wanted_at == s->looks;
}

/* R2: the last step is of unknown outcome, and nothing has used its value yet. */
static bool must_be_guarded(const struct search *s)
{
    return s->frames_n > 0 && s->frames[s->frames_n - 1].class != CLASS_NONE;
}

static bool same_held(struct held a, struct held b)
{
    return a.value == b.value && a.deadline == b.deadline;
}

/* The expiry, if it was not tried, then the next step of unknown outcome that R2 admits. */
static enum check_result next_unknown(struct search *s, struct cursor *cursor,
                                      struct choice *choice_out, struct held *after_out)
{
    bool expiry = !cursor->expired && s->held.deadline != DEADLINE_NONE;
    if (!expiry && cursor->class >= s->steps.classes_n) {
        return CHECK_REFUSED;
    }
    struct look look = look_around(s);
    const struct held absent = {VALUE_ABSENT, DEADLINE_NONE};
    cursor->expired = true;
    if (expiry && may_expire(s, s->held.deadline, look.first_end_us) &&
        is_useful(s, &look, absent)) {
        *choice_out = (struct choice){STEP_NONE, CLASS_EXPIRY};
        *after_out = absent;
        return CHECK_ACCEPTED;
    }
    bool guarded = must_be_guarded(s);
    while (cursor->class < s->steps.classes_n) {
        uint32_t class = cursor->class ++;
        uint32_t i = s->steps.classes[class].next;
        if (!class_is_open(s, class, look.first_end_us) ||
            !step_allows(&s->steps, &s->steps.at[i], s->held) ||
            (guarded && s->steps.at[i].blind)) {
            continue;
        }
        struct held after = steps_after(&s->steps, i, s->held);
        if (after.value == VALUE_NONE) {
            return CHECK_NOMEM;
        }
        if (!same_held(after, s->held) && is_useful(s, &look, after)) {
            *choice_out = (struct choice){i, class};
            *after_out = after;
            return CHECK_ACCEPTED;
        }
    }
    return CHECK_REFUSED;
}

/* The next choice from the cursor on: CHECK_ACCEPTED, or CHECK_REFUSED if there is none. Those that
 * returned come first: most unknown steps never happened, and one too early costs a subtree. */
static enum check_result next_choice(struct search *s, struct cursor *cursor,
                                     struct choice *choice_out, struct held *after_out)
{
    bool guarded = must_be_guarded(s);
    while (is_begin(cursor->entry)) {
        uint32_t i = step_of_entry(cursor->entry);
        cursor->entry = s->next[cursor->entry];
        if (step_allows(&s->steps, &s->steps.at[i], s->held) &&
            !(guarded && s->steps.at[i].blind)) {
            *choice_out = (struct choice){i, CLASS_NONE};
            *after_out = steps_after(&s->steps, i, s->held);
            return CHECK_ACCEPTED;
        }
    }
    return next_unknown(s, cursor, choice_out, after_out);
}

/* Takes back the last choice and all that it forced; the cursor is behind it. False if there was
 * no choice. */
static bool backtrack(struct search *s, struct cursor *cursor_out)
{
    while (s->frames_n > 0) {
        struct frame f = take_back(s);
        if (f.forced) {
            continue;
        }
        *cursor_out = (struct cursor){.entry = HEAD, .expired = true};
        if (f.class == CLASS_NONE) {
            *cursor_out = (struct cursor){.entry = s->next[2 * f.step + 1]};
        } else if (f.class != CLASS_EXPIRY) {
            cursor_out->class = f.class + 1;
        }
        return true;
    }
    return false;
}

/* Adds the state to those visited. What the key holds enters by R5. */
static enum seen_result visit(struct search *s)
{
    bool asked = is_asked(s, s->held.value);
    uint64_t value = (uint64_t)1 << 32 | (asked ? s->held.value : VALUE_NONE);
    struct fingerprint sum = fingerprint_xor(s->sum, fingerprint_of(value));
    if (asked || s->steps.untils > 0 || is_asked(s, VALUE_ABSENT)) {
        sum = fingerprint_xor(sum, fingerprint_of((uint64_t)1 << 33 | s->held.deadline));
    }
    return seen_add(&s->seen, sum, s->used);
}

/* The steps that changed the value last, oldest first. */
static void note_before(struct search *s)
{
    uint32_t changes[REPORT_BEFORE_MAX];
    uint32_t n = 0;
    struct held after = s->held;
    for (uint32_t i = s->frames_n; i-- > 0 && n < REPORT_BEFORE_MAX;) {
        if (!same_held(s->frames[i].before, after)) {
            changes[n++] = s->frames[i].step;
        }
        after = s->frames[i].before;
    }
    s->stuck.before_n = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t step = changes[n - 1 - i];
        s->stuck.before[i] = step == STEP_NONE ? NULL : s->steps.at[step].op;
    }
}

/* Keeps the dead end that has the most operations in the order, for the report. */
static void note_stuck(struct search *s)
{
    uint32_t done = s->steps.returned_n - s->left;
    if (s->stuck_set && done <= s->stuck.done) {
        return;
    }
    s->stuck_set = true;
    s->stuck = (struct report_stuck){
        .done = done,
        .total = s->steps.returned_n,
        .value = value_at(s, s->held.value)->number,
        .deadline = s->steps.deadlines[s->held.deadline].name,
    };
    note_before(s);
    uint32_t entry = s->next[HEAD];
    for (; is_begin(entry) && s->stuck.next_n < REPORT_NEXT_MAX; entry = s->next[entry]) {
        s->stuck.next[s->stuck.next_n++] = s->steps.at[step_of_entry(entry)].op;
    }
    if (steps_family(&s->steps, s->held.value)->makers > 0) {
        return;
    }
    uint32_t look = 0;
    for (entry = s->next[HEAD]; entry != HEAD && look < LATER_LOOK_MAX; entry = s->next[entry]) {
        const struct step *step = &s->steps.at[step_of_entry(entry)];
        if (is_begin(entry) && step->need == s->held.value && s->stuck.later_n < REPORT_LATER_MAX) {
            s->stuck.later[s->stuck.later_n++] = step->op;
        }
        look++;
    }
}

/* Searches from the empty order; adds the states visited to *states. */
static enum check_result run(struct search *s, uint64_t states_max, uint64_t *states)
{
    bool fresh = true; /* the order grew, and the state is not yet known to be new */
    struct cursor cursor = {.entry = HEAD};
    for (;;) {
        if (fresh) {
            settle(s);
            if (s->left == 0) {
                return CHECK_ACCEPTED;
            }
            enum seen_result seen = visit(s);
            if (seen == SEEN_NOMEM) {
                return CHECK_NOMEM;
            }
            if (seen == SEEN_NEW && s->seen.records_n > states_max) {
                return CHECK_TOO_HARD;
            }
            *states += seen == SEEN_NEW;
            cursor = (struct cursor){.entry = s->next[HEAD]};
            if (seen == SEEN_BEFORE && !backtrack(s, &cursor)) {
                return CHECK_REFUSED;
            }
            fresh = false;
        }
        struct choice choice;
        struct held after;
        switch (next_choice(s, &cursor, &choice, &after)) {
        case CHECK_ACCEPTED:
            take(s, choice, after, false);
            if (is_lost(s, s->frames[s->frames_n - 1].before.value)) {
                (void)take_back(s);
                break;
            }
            fresh = true;
            break;
        case CHECK_REFUSED:
            note_stuck(s);
            if (!backtrack(s, &cursor)) {
                return CHECK_REFUSED;
            }
            break;
        case CHECK_NOMEM:
            return CHECK_NOMEM;
        case CHECK_TOO_HARD:
            HK_ASSERT(false);
        }
    }
}

/* An operation that saw a value which is not the first one and which no operation makes. */
static const struct history_op *find_unmade(const struct search *s)
{
    const struct family *first = steps_family(&s->steps, VALUE_ABSENT);
    for (uint32_t i = 0; i < s->steps.returned_n; i++) {
        const struct step *step = &s->steps.at[i];
        if (step->need == VALUE_NONE || step->need_or != VALUE_NONE) {
            continue;
        }
        const struct family *family = steps_family(&s->steps, step->need);
        if (family != first && family->makers == 0) {
            return step->op;
        }
    }
    return NULL;
}

enum check_result search_key(const struct history_op *const *ops, size_t n, uint64_t states_max,
                             struct check_report *report)
{
    HK_ASSERT(n > 0);
    uint64_t key = ops[0]->key;
    struct search s;
    if (!search_init(&s, ops, n)) {
        report_begin(report, key, "key %" PRIu64 ": no memory", key);
        return CHECK_NOMEM;
    }
    const struct history_op *unmade =
        s.steps.impossible != NULL ? s.steps.impossible : find_unmade(&s);
    enum check_result result = CHECK_REFUSED;
    if (unmade != NULL) {
        report_begin(report, key, "key %" PRIu64 ": no operation leaves what this one saw:", key);
        report_op(report, unmade);
        goto out;
    }
    result = run(&s, states_max == 0 ? STATES_MAX_DEFAULT : states_max, &report->states);
    if (result == CHECK_REFUSED) {
        report_stuck(report, key, &s.stuck);
    } else if (result == CHECK_TOO_HARD) {
        report_begin(report, key, "key %" PRIu64 ": gave up after %" PRIu64 " states", key,
                     (uint64_t)s.seen.records_n - 1);
    } else if (result == CHECK_NOMEM) {
        report_begin(report, key, "key %" PRIu64 ": no memory", key);
    }
out:
    search_deinit(&s);
    return result;
}
