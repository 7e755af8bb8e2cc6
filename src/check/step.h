/* The operations of one key as guarded steps: what each requires of the value and what it leaves
 * behind. Every kind and outcome becomes one of a few shapes, so the search knows no kinds. */
#ifndef HORKOS_CHECK_STEP_H
#define HORKOS_CHECK_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check/history.h"
#include "check/values.h"

/* What a key holds. An absent key has no deadline. */
struct held {
    uint32_t value;
    uint32_t deadline; /* index into steps.deadlines; DEADLINE_NONE: none */
};

#define DEADLINE_NONE 0u
#define DEADLINE_ANY UINT32_MAX         /* a guard: with or without */
#define DEADLINE_SOME (UINT32_MAX - 1u) /* a guard: any, but not without */
#define DEADLINE_KEEP UINT32_MAX        /* an effect: as before */

struct deadline {
    uint64_t name;          /* as the history has it */
    uint64_t not_before_us; /* of the expiry */
    uint64_t not_after_us;
};

/* The answer of a returned operation is part of its guard: READ -> 5 requires 5, a SET_IF that
 * said no forbids what it expected. An operation of unknown outcome has no answer; its guard says
 * when it has an effect, for one without may as well be left out. */
struct step {
    const struct history_op *op;
    uint64_t begin_us;
    uint64_t end_us;     /* UINT64_MAX if the outcome is unknown */
    uint32_t need;       /* the value that must be there; VALUE_NONE: any */
    uint32_t need_or;    /* another that does as well (ADD: absent counts as 0), or VALUE_NONE */
    uint32_t forbid;     /* the value that must not be there, or VALUE_NONE */
    uint32_t make;       /* the value afterwards; VALUE_NONE: as before, or sum */
    uint32_t like;       /* of unknown outcome: equal if the effects cannot be told apart */
    uint32_t until_need; /* the deadline that must be there: DEADLINE_NONE, _SOME, _ANY, or which */
    uint32_t until_make; /* the deadline afterwards: DEADLINE_NONE, _KEEP, or which */
    bool sum;            /* an ADD of unknown outcome: in is added to whatever is there */
    bool blind;          /* what it leaves depends on nothing, and it is allowed everywhere */
};

/* Steps of unknown outcome that nobody can tell apart. Whatever some of them can explain, the
 * earliest explain as well, so they are used in order: next is the first that is not used yet. */
struct step_class {
    uint32_t next;
    uint32_t end; /* index behind the last */
};

/* A family is the values that ADDs of unknown outcome may turn into each other; without such ADDs,
 * each value is one. To enter another family takes a step that says where it leads, so those that
 * can still do so are known. The counts are of steps that are not linearized. */
struct family {
    uint32_t asked;  /* steps that compare the key's value with one of the family, in any way */
    uint32_t needed; /* of them, those that must happen and can only happen in the family */
    uint32_t makers; /* steps that lead into the family from outside; for that of the absent key
                        also those that set a deadline */
};

struct steps {
    struct step *at; /* those that returned, by begin_us; then the classes, each by begin_us */
    uint32_t n;
    uint32_t returned_n;
    struct step_class *classes;
    uint32_t classes_n;
    struct family *families;
    struct deadline *deadlines; /* from index 1, by name */
    uint32_t deadlines_n;       /* 0: none in the history */
    uint32_t forbids;           /* steps with forbid that are not linearized */
    uint32_t untils;            /* the same: for which the key's deadline makes a difference */
    struct values values;
    const struct history_op *impossible; /* one whose answer no value can explain, or NULL */
};

/* ops are the n operations of one key, in any order; they stay the caller's and must outlive the
 * steps. FAILED ones and READs of unknown outcome are left out, and so are those of unknown
 * outcome that can explain nothing. False without memory; then nothing is held. */
bool steps_init(struct steps *s, const struct history_op *const *ops, size_t n);
void steps_deinit(struct steps *s);

/* Changes the counts of what is not linearized: leave when step i is linearized, enter when it is
 * taken back. */
void steps_leave(struct steps *s, uint32_t i);
void steps_enter(struct steps *s, uint32_t i);

/* Whether the step may happen when the key holds this. */
static inline bool step_allows(const struct steps *s, const struct step *step, struct held held)
{
    if (step->blind) {
        return true;
    }
    if (step->need != VALUE_NONE && step->need != held.value &&
        (step->need_or == VALUE_NONE || step->need_or != held.value)) {
        return false;
    }
    if (step->forbid != VALUE_NONE && step->forbid == held.value) {
        return false;
    }
    if (step->until_need != DEADLINE_ANY && step->until_need != held.deadline &&
        (step->until_need != DEADLINE_SOME || held.deadline == DEADLINE_NONE)) {
        return false;
    }
    return held.deadline == DEADLINE_NONE ||
           step->begin_us <= s->deadlines[held.deadline].not_after_us;
}

/* Whether the step, wherever it is allowed, changes nothing. */
static inline bool step_is_pure(const struct step *step)
{
    return step->make == VALUE_NONE && !step->sum && step->until_make == DEADLINE_KEEP;
}

/* The family of a value, until a value is numbered. */
static inline const struct family *steps_family(const struct steps *s, uint32_t value)
{
    return &s->families[s->values.at[value].family];
}

/* What the key holds after the step; its value is VALUE_NONE without memory. A sum that does not
 * fit leaves the value as it is, because the store refuses it. */
struct held steps_after(struct steps *s, uint32_t i, struct held before);

#endif
