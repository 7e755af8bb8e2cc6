/* Wing and Gong's search, "Testing and Verifying Concurrent Objects" (1993), section 4, with the
 * set of visited states of Lowe, "Testing for Linearizability" (2017), section 3.
 *
 * The search builds one order from the front. At any moment the operations that may come next are
 * those whose begin stands before the first end of an operation that is not yet in the order. It
 * takes one that the key's value allows, removes its begin and end from the list and goes on; where
 * nothing fits it takes the last choice back. A state is the set of operations in the order, and
 * the value; what was reached before is not tried again.
 *
 * What makes it fast on the histories of a store, each with the reason why no order is missed:
 *
 * R1. A step that changes nothing (a read, a condition that did not hold) is taken at once where it
 *     is allowed: any order of the rest that has it later has it here as well. So is a blind write
 *     of a value nobody asks for, onto another such value, if no forbid is left that it might
 *     serve.
 * R2. A step of unknown outcome is taken only where the very next step can use its value, and only
 *     such a step follows. In an order with the fewest unknown steps the next one is no blind
 *     write, for that would need no unknown step before it; so it has a guard, or adds.
 * R3. Of unknown steps that are alike, the one that began first is taken first (step_class).
 * R4. A family of values (step.h) must not be left while a step that needs it is outside the order
 *     and none that leads into it is.
 * R5. Values whose family no step outside the order asks for are one value to the set of visited
 *     states.
 * R6. A state is not tried if one that differs only in having used fewer unknown steps was: what is
 *     not used yet need never be (seen.h). docs/CHECKERS.md says why R2 and R6 agree.
 *
 * Invariants: I1. the list holds exactly the begins and ends of the returned steps outside the
 * order, ends after begins of the same time. I2. frames are the order. I3. counts in steps.values
 * and steps.forbids are of the steps outside the order. I4. sum and used are of the steps in it. */
#include "check/search.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "check/report.h"
#include "check/seen.h"
#include "check/step.h"

#define STATES_MAX_DEFAULT 50000000u
#define CLASS_NONE UINT32_MAX
/* How far a report looks for operations that wait for a value; it is for people, not for proof. */
#define LATER_LOOK_MAX 256u

/* The list: entry 0 is its head, 2i + 1 the begin and 2i + 2 the end of returned step i. */
#define HEAD 0u

struct frame {
    uint32_t step;
    uint32_t class;  /* of a step of unknown outcome; CLASS_NONE: it returned */
    uint32_t before; /* the value it was taken at */
    bool forced;     /* by R1: not a choice, so there is nothing else to try */
};

/* Where the search for the next choice goes on. */
struct cursor {
    uint32_t entry;
    uint32_t class;
};

struct choice {
    uint32_t step;
    uint32_t class;
};

struct search {
    struct steps steps;
    uint32_t *next;
    uint32_t *prev;
    struct frame *frames;
    uint32_t frames_n;
    uint32_t left; /* returned steps outside the order */
    uint32_t value;
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
    bool forbids; /* one waits for any other value than the present */
    bool sums;    /* one of unknown outcome can add to any value */
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
    *s = (struct search){.value = VALUE_ABSENT};
    if (!steps_init(&s->steps, ops, n)) {
        return false;
    }
    s->left = s->steps.returned_n;
    size_t words = ((size_t)s->steps.n - s->steps.returned_n + 63) / 64;
    seen_init(&s->seen, words);
    size_t entries = 2 * (size_t)s->steps.returned_n + 1;
    s->next = calloc(entries, sizeof *s->next);
    s->prev = calloc(entries, sizeof *s->prev);
    s->frames = calloc((size_t)s->steps.n + 1, sizeof *s->frames);
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
static void take(struct search *s, struct choice choice, uint32_t after, bool forced)
{
    s->frames[s->frames_n++] = (struct frame){choice.step, choice.class, s->value, forced};
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
    s->value = after;
}

/* Takes the last step of the order back. */
static struct frame take_back(struct search *s)
{
    struct frame f = s->frames[--s->frames_n];
    s->value = f.before;
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

/* R1. */
static bool is_free(const struct search *s, uint32_t i)
{
    const struct step *step = &s->steps.at[i];
    if (step_is_pure(step)) {
        return step_allows(step, s->value);
    }
    return step->need == VALUE_NONE && s->steps.forbids == 0 &&
           steps_family(&s->steps, s->value)->asked == 0 &&
           steps_family(&s->steps, step->make)->asked == 0;
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
            uint32_t make = s->steps.at[i].make;
            take(s, (struct choice){i, CLASS_NONE}, make == VALUE_NONE ? s->value : make, true);
            entry = s->next[before];
            again = true;
        }
    }
}

/* R4, after a step left the value before. */
static bool is_lost(const struct search *s, uint32_t before)
{
    const struct family *left = steps_family(&s->steps, before);
    return left != steps_family(&s->steps, s->value) && left->needed > 0 && left->makers == 0;
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

/* Marks the values that the steps which may come next wait for. */
static struct look look_around(struct search *s)
{
    struct look look = {0};
    s->looks++;
    uint32_t entry = s->next[HEAD];
    for (; is_begin(entry); entry = s->next[entry]) {
        const struct step *step = &s->steps.at[step_of_entry(entry)];
        want(s, step->need);
        want(s, step->need_or);
        look.forbids = look.forbids || step->forbid != VALUE_NONE;
    }
    HK_ASSERT(entry != HEAD);
    look.first_end_us = s->steps.at[step_of_entry(entry)].end_us;
    for (uint32_t class = 0; class < s->steps.classes_n; class ++) {
        if (class_is_open(s, class, look.first_end_us)) {
            const struct step *step = &s->steps.at[s->steps.classes[class].next];
            want(s, step->need);
            look.sums = look.sums || step->sum;
        }
    }
    return look;
}

/* Whether the step is allowed at every value, and leaves its own. */
static bool is_blind(const struct step *step)
{
    return step->need == VALUE_NONE && step->forbid == VALUE_NONE && !step->sum;
}

/* R2: the last step is of unknown outcome, and nothing has used its value yet. */
static bool must_be_guarded(const struct search *s)
{
    return s->frames_n > 0 && s->frames[s->frames_n - 1].class != CLASS_NONE;
}

/* The next step of unknown outcome that R2 admits, from cursor->class on. */
static enum check_result next_unknown(struct search *s, struct cursor *cursor,
                                      struct choice *choice_out, uint32_t *after_out)
{
    if (cursor->class >= s->steps.classes_n) {
        return CHECK_REFUSED;
    }
    struct look look = look_around(s);
    bool guarded = must_be_guarded(s);
    while (cursor->class < s->steps.classes_n) {
        uint32_t class = cursor->class ++;
        uint32_t i = s->steps.classes[class].next;
        if (!class_is_open(s, class, look.first_end_us) ||
            !step_allows(&s->steps.at[i], s->value) || (guarded && is_blind(&s->steps.at[i]))) {
            continue;
        }
        uint32_t after = steps_after(&s->steps, i, s->value);
        if (after == VALUE_NONE) {
            return CHECK_NOMEM;
        }
        bool useful = s->steps.forbids > 0 || steps_family(&s->steps, after)->asked > 0;
        if (after != s->value && useful &&
            (look.forbids || look.sums || value_at(s, after)->wanted_at == s->looks)) {
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
                                     struct choice *choice_out, uint32_t *after_out)
{
    bool guarded = must_be_guarded(s);
    while (is_begin(cursor->entry)) {
        uint32_t i = step_of_entry(cursor->entry);
        cursor->entry = s->next[cursor->entry];
        if (step_allows(&s->steps.at[i], s->value) && !(guarded && is_blind(&s->steps.at[i]))) {
            *choice_out = (struct choice){i, CLASS_NONE};
            *after_out = steps_after(&s->steps, i, s->value);
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
        *cursor_out = f.class == CLASS_NONE ? (struct cursor){s->next[2 * f.step + 1], 0}
                                            : (struct cursor){HEAD, f.class + 1};
        return true;
    }
    return false;
}

/* Adds the state to those visited. The value enters by R5. */
static enum seen_result visit(struct search *s)
{
    bool asked = steps_family(&s->steps, s->value)->asked > 0;
    uint64_t value = (uint64_t)1 << 32 | (asked ? s->value : VALUE_NONE);
    return seen_add(&s->seen, fingerprint_xor(s->sum, fingerprint_of(value)), s->used);
}

/* The steps that changed the value last, oldest first. */
static void note_before(struct search *s)
{
    uint32_t changes[REPORT_BEFORE_MAX];
    uint32_t n = 0;
    uint32_t after = s->value;
    for (uint32_t i = s->frames_n; i-- > 0 && n < REPORT_BEFORE_MAX;) {
        if (s->frames[i].before != after) {
            changes[n++] = s->frames[i].step;
        }
        after = s->frames[i].before;
    }
    s->stuck.before_n = n;
    for (uint32_t i = 0; i < n; i++) {
        s->stuck.before[i] = s->steps.at[changes[n - 1 - i]].op;
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
        .value = value_at(s, s->value)->number,
    };
    note_before(s);
    uint32_t entry = s->next[HEAD];
    for (; is_begin(entry) && s->stuck.next_n < REPORT_NEXT_MAX; entry = s->next[entry]) {
        s->stuck.next[s->stuck.next_n++] = s->steps.at[step_of_entry(entry)].op;
    }
    if (steps_family(&s->steps, s->value)->makers > 0) {
        return;
    }
    uint32_t look = 0;
    for (entry = s->next[HEAD]; entry != HEAD && look < LATER_LOOK_MAX; entry = s->next[entry]) {
        const struct step *step = &s->steps.at[step_of_entry(entry)];
        if (is_begin(entry) && step->need == s->value && s->stuck.later_n < REPORT_LATER_MAX) {
            s->stuck.later[s->stuck.later_n++] = step->op;
        }
        look++;
    }
}

/* Searches from the empty order; adds the states visited to *states. */
static enum check_result run(struct search *s, uint64_t states_max, uint64_t *states)
{
    bool fresh = true; /* the order grew, and the state is not yet known to be new */
    struct cursor cursor = {0};
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
            cursor = (struct cursor){s->next[HEAD], 0};
            if (seen == SEEN_BEFORE && !backtrack(s, &cursor)) {
                return CHECK_REFUSED;
            }
            fresh = false;
        }
        struct choice choice;
        uint32_t after;
        switch (next_choice(s, &cursor, &choice, &after)) {
        case CHECK_ACCEPTED:
            take(s, choice, after, false);
            if (is_lost(s, s->frames[s->frames_n - 1].before)) {
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
