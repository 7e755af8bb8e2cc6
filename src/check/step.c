#include "check/step.h"

#include <stdlib.h>

#include "base/assert.h"

enum step_result {
    STEP_MADE,
    STEP_DROPPED, /* takes no part: it failed, or has no effect */
    STEP_IMPOSSIBLE,
    STEP_NOMEM,
};

/* a + b, if the store would accept it as a number that is not HISTORY_ABSENT. */
static bool add_fits(int64_t a, int64_t b, int64_t *sum_out)
{
    if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b)) {
        return false;
    }
    *sum_out = a + b;
    return *sum_out != HISTORY_ABSENT;
}

/* Numbers a value for a step, and remembers in *made when there was no memory for it. */
static uint32_t number_of(struct values *v, int64_t number, bool *made)
{
    uint32_t value = values_number(v, number);
    *made = *made && value != VALUE_NONE;
    return value;
}

/* An ADD that returned out was at out - in, which was perhaps no key at all. */
static enum step_result set_add(struct values *v, const struct history_op *op, struct step *step)
{
    bool made = true;
    int64_t before;
    /* -in would overflow for the least number, but that is HISTORY_ABSENT and no delta. */
    if (op->out == HISTORY_ABSENT || !add_fits(op->out, -op->in, &before)) {
        return STEP_IMPOSSIBLE;
    }
    step->need = number_of(v, before, &made);
    step->make = number_of(v, op->out, &made);
    if (before == 0) {
        step->need_or = VALUE_ABSENT;
    }
    return made ? STEP_MADE : STEP_NOMEM;
}

/* A conditional write that requires expected and then leaves make. */
static enum step_result set_conditional(struct values *v, const struct history_op *op,
                                        int64_t expected, int64_t make, struct step *step)
{
    bool made = true;
    uint32_t value = number_of(v, expected, &made);
    if (op->outcome == HISTORY_OK && !op->ok) {
        step->forbid = value;
    } else {
        step->need = value;
        step->make = number_of(v, make, &made);
    }
    return made ? STEP_MADE : STEP_NOMEM;
}

static enum step_result set_kind(struct values *v, const struct history_op *op, struct step *step)
{
    bool returned = op->outcome == HISTORY_OK;
    bool made = true;
    switch ((enum history_kind)op->kind) {
    case HISTORY_READ:
        if (!returned) {
            return STEP_DROPPED;
        }
        step->need = number_of(v, op->out, &made);
        break;
    case HISTORY_WRITE:
        step->make = number_of(v, op->in, &made);
        break;
    case HISTORY_DELETE:
        step->make = VALUE_ABSENT;
        break;
    case HISTORY_DELETE_IF:
        return set_conditional(v, op, op->expected, HISTORY_ABSENT, step);
    case HISTORY_SET_IF:
        return set_conditional(v, op, op->expected, op->in, step);
    case HISTORY_SET_ABSENT:
        return set_conditional(v, op, HISTORY_ABSENT, op->in, step);
    case HISTORY_ADD:
        if (returned) {
            return set_add(v, op, step);
        }
        step->sum = true;
        break;
    case HISTORY_GETSET:
        if (returned) {
            step->need = number_of(v, op->out, &made);
        }
        step->make = number_of(v, op->in, &made);
        break;
    }
    return made ? STEP_MADE : STEP_NOMEM;
}

static enum step_result make_step(struct values *v, const struct history_op *op, struct step *step)
{
    HK_ASSERT(history_op_invalid(op) == NULL);
    if (op->outcome == HISTORY_FAILED) {
        return STEP_DROPPED;
    }
    bool returned = op->outcome == HISTORY_OK;
    *step = (struct step){
        .op = op,
        .begin_us = op->begin_us,
        .end_us = returned ? op->end_us : UINT64_MAX,
        .need = VALUE_NONE,
        .need_or = VALUE_NONE,
        .forbid = VALUE_NONE,
        .make = VALUE_NONE,
        .like = VALUE_NONE,
    };
    enum step_result result = set_kind(v, op, step);
    if (result != STEP_MADE) {
        return result;
    }
    if (step->make != VALUE_NONE && step->make == step->need && step->need_or == VALUE_NONE) {
        /* It writes what it requires, so it is a read. */
        step->make = VALUE_NONE;
        return returned ? STEP_MADE : STEP_DROPPED;
    }
    return STEP_MADE;
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Nonzero unless two steps of unknown outcome can stand for each other. */
static int compare_effect(const struct step *a, const struct step *b)
{
    int order = compare_u64(a->need, b->need);
    if (order == 0) {
        order = compare_u64(a->like, b->like);
    }
    if (order == 0) {
        order = compare_u64(a->sum, b->sum);
    }
    if (order == 0 && a->sum) {
        order = (a->op->in > b->op->in) - (a->op->in < b->op->in);
    }
    return order;
}

static int compare_steps(const void *left, const void *right)
{
    const struct step *a = left;
    const struct step *b = right;
    bool a_unknown = a->end_us == UINT64_MAX;
    bool b_unknown = b->end_us == UINT64_MAX;
    if (a_unknown != b_unknown) {
        return a_unknown ? 1 : -1;
    }
    int order = a_unknown ? compare_effect(a, b) : 0;
    if (order == 0) {
        order = compare_u64(a->begin_us, b->begin_us);
    }
    /* The addresses make the order, and so the report, the same with every qsort. */
    return order != 0 ? order : compare_u64((uintptr_t)a->op, (uintptr_t)b->op);
}

static uint32_t family_of(const struct steps *s, uint32_t value)
{
    return value == VALUE_NONE ? VALUE_NONE : s->values.at[value].family;
}

/* add is 1 or UINT32_MAX, which subtracts one. */
static void count(struct steps *s, uint32_t i, uint32_t add)
{
    const struct step *step = &s->at[i];
    uint32_t need = family_of(s, step->need);
    uint32_t need_or = family_of(s, step->need_or);
    uint32_t make = family_of(s, step->make);
    bool needs_one = need != VALUE_NONE && (need_or == VALUE_NONE || need_or == need);
    if (need != VALUE_NONE) {
        s->families[need].asked += add;
    }
    if (need_or != VALUE_NONE) {
        s->families[need_or].asked += add;
    }
    if (needs_one && step->end_us != UINT64_MAX) {
        s->families[need].needed += add;
    }
    if (step->forbid != VALUE_NONE) {
        s->families[family_of(s, step->forbid)].asked += add;
        s->forbids += add;
    }
    if (make != VALUE_NONE && !(needs_one && need == make)) {
        s->families[make].makers += add;
    }
}

void steps_leave(struct steps *s, uint32_t i)
{
    count(s, i, UINT32_MAX);
}

void steps_enter(struct steps *s, uint32_t i)
{
    count(s, i, 1);
}

/* Leaves out the steps of unknown outcome whose value nobody asks for: whatever follows one must
 * overwrite it blindly, and does so without it as well. A forbid could still need it to get away
 * from the value it forbids. Leaving one out can make another useless. */
static void drop_useless(struct steps *s)
{
    bool again = s->forbids == 0;
    while (again) {
        again = false;
        for (uint32_t i = s->n; i-- > 0;) {
            const struct step *step = &s->at[i];
            if (step->end_us == UINT64_MAX && !step->sum &&
                steps_family(s, step->make)->asked == 0) {
                steps_leave(s, i);
                s->at[i] = s->at[--s->n];
                again = true;
            }
        }
    }
}

/* All values that nobody asks for are alike. */
static void set_like(struct steps *s)
{
    uint32_t unasked = VALUE_NONE;
    for (uint32_t i = 0; i < s->n; i++) {
        struct step *step = &s->at[i];
        if (step->end_us != UINT64_MAX || step->sum) {
            continue;
        }
        step->like = step->make;
        if (steps_family(s, step->make)->asked == 0) {
            unasked = unasked == VALUE_NONE ? step->make : unasked;
            step->like = unasked;
        }
    }
}

static void make_classes(struct steps *s)
{
    for (uint32_t i = s->returned_n; i < s->n; i++) {
        if (i == s->returned_n || compare_effect(&s->at[i - 1], &s->at[i]) != 0) {
            s->classes[s->classes_n++] = (struct step_class){.next = i};
        }
        s->classes[s->classes_n - 1].end = i + 1;
    }
}

static bool make_steps(struct steps *s, const struct history_op *const *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        switch (make_step(&s->values, ops[i], &s->at[s->n])) {
        case STEP_MADE:
            s->returned_n += s->at[s->n++].end_us != UINT64_MAX;
            break;
        case STEP_DROPPED:
            break;
        case STEP_IMPOSSIBLE:
            s->impossible = ops[i];
            break;
        case STEP_NOMEM:
            return false;
        }
    }
    return true;
}

struct member {
    int64_t number; /* that ADD takes the value for */
    uint32_t value;
};

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left;
    const struct member *b = right;
    if (a->number != b->number) {
        return a->number < b->number ? -1 : 1;
    }
    return (a->value > b->value) - (a->value < b->value);
}

/* How far all ADDs of unknown outcome together can move a value up and down: the distance of the
 * two furthest points. Saturates. */
static uint64_t reach_of_sums(const struct steps *s)
{
    uint64_t reach = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->at[i].sum) {
            int64_t in = s->at[i].op->in;
            uint64_t distance = in < 0 ? (uint64_t)-in : (uint64_t)in;
            reach = reach > UINT64_MAX - distance ? UINT64_MAX : reach + distance;
        }
    }
    return reach;
}

/* Sorts the values and parts them where the gap is more than what ADDs of unknown outcome can
 * bridge; so what they make from members of two families does not meet either. */
static bool make_families(struct steps *s)
{
    uint32_t n = s->values.n;
    bool sums = false;
    for (uint32_t i = 0; i < s->n; i++) {
        sums = sums || s->at[i].sum;
    }
    uint64_t reach = reach_of_sums(s);
    struct member *members = calloc(n, sizeof *members);
    s->families = calloc(n, sizeof *s->families);
    if (members == NULL || s->families == NULL) {
        free(members);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        bool as_zero = sums && i == VALUE_ABSENT;
        members[i] = (struct member){as_zero ? 0 : s->values.at[i].number, i};
    }
    qsort(members, n, sizeof *members, compare_members);
    uint32_t family = 0;
    for (uint32_t i = 0; i < n; i++) {
        /* The difference of two numbers in order fits, whatever their signs. */
        if (i > 0 && (uint64_t)members[i].number - (uint64_t)members[i - 1].number > reach) {
            family++;
        }
        s->values.at[members[i].value].family = family;
    }
    free(members);
    return true;
}

bool steps_init(struct steps *s, const struct history_op *const *ops, size_t n)
{
    HK_ASSERT(n < UINT32_MAX / 4);
    *s = (struct steps){0};
    if (!values_init(&s->values)) {
        return false;
    }
    s->at = calloc(n + 1, sizeof *s->at);
    s->classes = calloc(n + 1, sizeof *s->classes);
    if (s->at == NULL || s->classes == NULL || !make_steps(s, ops, n) || !make_families(s)) {
        steps_deinit(s);
        return false;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        steps_enter(s, i);
    }
    drop_useless(s);
    set_like(s);
    qsort(s->at, s->n, sizeof *s->at, compare_steps);
    make_classes(s);
    return true;
}

void steps_deinit(struct steps *s)
{
    free(s->at);
    free(s->classes);
    free(s->families);
    values_deinit(&s->values);
    *s = (struct steps){0};
}

uint32_t steps_after(struct steps *s, uint32_t i, uint32_t value)
{
    const struct step *step = &s->at[i];
    if (!step->sum) {
        return step->make == VALUE_NONE ? value : step->make;
    }
    int64_t before = value == VALUE_ABSENT ? 0 : s->values.at[value].number;
    uint32_t family = s->values.at[value].family;
    uint32_t known = s->values.n;
    int64_t sum;
    if (!add_fits(before, step->op->in, &sum)) {
        return value;
    }
    uint32_t after = values_number(&s->values, sum);
    if (after != VALUE_NONE && after >= known) {
        s->values.at[after].family = family;
    }
    return after;
}
