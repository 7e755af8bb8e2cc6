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
        step->until_make = DEADLINE_KEEP;
    } else {
        step->need = value;
        step->make = number_of(v, make, &made);
    }
    return made ? STEP_MADE : STEP_NOMEM;
}

/* Whether operations of this kind set or remove a deadline, as `deadline` says. */
static bool sets_deadline(const struct history_op *op)
{
    return op->outcome != HISTORY_FAILED && op->kind != HISTORY_TTL && op->deadline != 0 &&
           op->deadline != HISTORY_KEEP;
}

/* The index of a deadline by its name; DEADLINE_ANY if no operation sets it. */
static uint32_t find_deadline(const struct steps *s, uint64_t name)
{
    uint32_t low = 1;
    uint32_t high = s->deadlines_n + 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->deadlines[middle].name < name) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low <= s->deadlines_n && s->deadlines[low].name == name ? low : DEADLINE_ANY;
}

static uint32_t new_deadline(const struct steps *s, const struct history_op *op)
{
    if (op->deadline == HISTORY_KEEP || op->kind == HISTORY_ADD) {
        return DEADLINE_KEEP;
    }
    return op->deadline == 0 ? DEADLINE_NONE : find_deadline(s, op->deadline);
}

/* One that only takes place if the key is present; else it changes nothing. */
static enum step_result set_present(struct values *v, const struct history_op *op, int64_t make,
                                    struct step *step)
{
    bool made = true;
    if (op->outcome == HISTORY_OK && !op->ok) {
        step->need = VALUE_ABSENT;
        step->until_make = DEADLINE_KEEP;
    } else {
        step->forbid = VALUE_ABSENT;
        step->make = number_of(v, make, &made);
    }
    return made ? STEP_MADE : STEP_NOMEM;
}

static enum step_result set_ttl(const struct steps *s, const struct history_op *op,
                                struct step *step)
{
    step->until_make = DEADLINE_KEEP;
    if (op->out == HISTORY_ABSENT) {
        step->need = VALUE_ABSENT;
    } else if (op->out == 0) {
        step->forbid = VALUE_ABSENT;
        step->until_need = DEADLINE_NONE;
    } else {
        step->until_need = op->deadline == 0 ? DEADLINE_SOME : find_deadline(s, op->deadline);
        if (s->deadlines_n == 0 || step->until_need == DEADLINE_ANY) {
            return STEP_IMPOSSIBLE;
        }
    }
    return STEP_MADE;
}

/* The kinds that are about deadlines alone. */
static enum step_result set_deadline_kind(struct steps *s, const struct history_op *op,
                                          struct step *step)
{
    bool returned = op->outcome == HISTORY_OK;
    bool made = true;
    if (op->kind == HISTORY_TTL) {
        return returned ? set_ttl(s, op, step) : STEP_DROPPED;
    }
    if (op->kind == HISTORY_PERSIST) {
        bool none = returned && !op->ok;
        step->until_need = none ? DEADLINE_NONE : DEADLINE_SOME;
        step->until_make = none ? DEADLINE_KEEP : DEADLINE_NONE;
        return returned && op->ok && s->deadlines_n == 0 ? STEP_IMPOSSIBLE : STEP_MADE;
    }
    if (op->kind == HISTORY_GETEX && returned) {
        step->need = number_of(&s->values, op->out, &made);
        if (op->out == HISTORY_ABSENT) {
            step->until_make = DEADLINE_KEEP;
        }
        return made ? STEP_MADE : STEP_NOMEM;
    }
    if (returned && !op->ok) {
        step->need = VALUE_ABSENT;
        step->until_make = DEADLINE_KEEP;
    } else {
        step->forbid = VALUE_ABSENT;
    }
    return STEP_MADE;
}

static enum step_result set_kind(struct steps *s, const struct history_op *op, struct step *step)
{
    struct values *v = &s->values;
    bool returned = op->outcome == HISTORY_OK;
    bool made = true;
    switch ((enum history_kind)op->kind) {
    case HISTORY_READ:
        if (!returned) {
            return STEP_DROPPED;
        }
        step->need = number_of(v, op->out, &made);
        step->until_make = DEADLINE_KEEP;
        break;
    case HISTORY_EXISTS:
        if (!returned) {
            return STEP_DROPPED;
        }
        step->need = op->ok ? VALUE_NONE : VALUE_ABSENT;
        step->forbid = op->ok ? VALUE_ABSENT : VALUE_NONE;
        step->until_make = DEADLINE_KEEP;
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
    case HISTORY_RMW:
        step->need = number_of(v, op->expected, &made);
        step->make = number_of(v, op->in, &made);
        break;
    case HISTORY_SET_PRESENT:
        return set_present(v, op, op->in, step);
    case HISTORY_DELETE_PRESENT:
        return set_present(v, op, HISTORY_ABSENT, step);
    case HISTORY_GETDEL:
        if (returned) {
            step->need = number_of(v, op->out, &made);
        }
        step->make = VALUE_ABSENT;
        break;
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
    case HISTORY_EXPIRE:
    case HISTORY_PERSIST:
    case HISTORY_GETEX:
    case HISTORY_TTL:
        return set_deadline_kind(s, op, step);
    }
    return made ? STEP_MADE : STEP_NOMEM;
}

/* Says what follows from the guards and effects of a step. Without deadlines in the history they
 * are left out of all of them. */
static enum step_result simplify(const struct steps *s, struct step *step)
{
    if (s->deadlines_n == 0) {
        step->until_need = DEADLINE_ANY;
        step->until_make = DEADLINE_KEEP;
    } else if (step->make == VALUE_ABSENT) {
        step->until_make = DEADLINE_NONE;
    }
    if (step->make != VALUE_NONE && step->make == step->need && step->need_or == VALUE_NONE &&
        (step->until_make == DEADLINE_KEEP || step->make == VALUE_ABSENT)) {
        /* It writes what it requires, so it is a read. */
        step->make = VALUE_NONE;
        step->until_make = DEADLINE_KEEP;
    }
    step->blind = step->make != VALUE_NONE && step->need == VALUE_NONE &&
                  step->forbid == VALUE_NONE && step->until_need == DEADLINE_ANY &&
                  (step->until_make != DEADLINE_KEEP || s->deadlines_n == 0);
    bool unknown = step->end_us == UINT64_MAX;
    return unknown && step_is_pure(step) ? STEP_DROPPED : STEP_MADE;
}

static enum step_result make_step(struct steps *s, const struct history_op *op, struct step *step)
{
    HK_ASSERT(history_op_invalid(op) == NULL);
    if (op->outcome == HISTORY_FAILED) {
        return STEP_DROPPED;
    }
    *step = (struct step){
        .op = op,
        .begin_us = op->begin_us,
        .end_us = op->outcome == HISTORY_OK ? op->end_us : UINT64_MAX,
        .need = VALUE_NONE,
        .need_or = VALUE_NONE,
        .forbid = VALUE_NONE,
        .make = VALUE_NONE,
        .like = VALUE_NONE,
        .until_need = DEADLINE_ANY,
        .until_make = new_deadline(s, op),
    };
    enum step_result result = set_kind(s, op, step);
    return result == STEP_MADE ? simplify(s, step) : result;
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
        order = compare_u64(a->forbid, b->forbid);
    }
    if (order == 0) {
        order = compare_u64(a->like, b->like);
    }
    if (order == 0) {
        order = compare_u64(a->until_need, b->until_need);
    }
    if (order == 0) {
        order = compare_u64(a->until_make, b->until_make);
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

static void count_deadline(struct steps *s, const struct step *step, uint32_t add)
{
    if (s->deadlines_n == 0) {
        return;
    }
    bool keeps = step->until_make == DEADLINE_KEEP;
    if (step->until_need != DEADLINE_ANY || (keeps && !step_is_pure(step))) {
        s->untils += add;
    }
    if (!keeps && step->until_make != DEADLINE_NONE) {
        s->families[family_of(s, VALUE_ABSENT)].makers += add;
    }
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
    count_deadline(s, step, add);
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
 * from the value it forbids, and a deadline could be what somebody asks for, or what makes the key
 * absent. Leaving one out can make another useless. */
static void drop_useless(struct steps *s)
{
    bool again = s->forbids == 0 && s->untils == 0;
    while (again) {
        again = false;
        for (uint32_t i = s->n; i-- > 0;) {
            const struct step *step = &s->at[i];
            if (step->end_us == UINT64_MAX && step->make != VALUE_NONE &&
                (step->until_make == DEADLINE_NONE || step->until_make == DEADLINE_KEEP) &&
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
        if (step->end_us != UINT64_MAX || step->make == VALUE_NONE) {
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
        switch (make_step(s, ops[i], &s->at[s->n])) {
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

static int compare_deadlines(const void *left, const void *right)
{
    const struct deadline *a = left;
    const struct deadline *b = right;
    return compare_u64(a->name, b->name);
}

/* Of deadlines with one name the widest bounds count. */
static bool make_deadlines(struct steps *s, const struct history_op *const *ops, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        found += sets_deadline(ops[i]);
    }
    s->deadlines = calloc(found + 1, sizeof *s->deadlines);
    if (s->deadlines == NULL) {
        return false;
    }
    struct deadline *all = s->deadlines + 1;
    found = 0;
    for (size_t i = 0; i < n; i++) {
        const struct history_op *op = ops[i];
        if (sets_deadline(op)) {
            uint64_t last = op->not_after_us == 0 ? UINT64_MAX : op->not_after_us;
            all[found++] = (struct deadline){op->deadline, op->not_before_us, last};
        }
    }
    qsort(all, found, sizeof *all, compare_deadlines);
    for (size_t i = 0; i < found; i++) {
        struct deadline *last = &s->deadlines[s->deadlines_n];
        if (s->deadlines_n == 0 || last->name != all[i].name) {
            s->deadlines[++s->deadlines_n] = all[i];
            continue;
        }
        if (all[i].not_before_us < last->not_before_us) {
            last->not_before_us = all[i].not_before_us;
        }
        if (all[i].not_after_us > last->not_after_us) {
            last->not_after_us = all[i].not_after_us;
        }
    }
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
    if (s->at == NULL || s->classes == NULL || !make_deadlines(s, ops, n) ||
        !make_steps(s, ops, n) || !make_families(s)) {
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
    free(s->deadlines);
    values_deinit(&s->values);
    *s = (struct steps){0};
}

/* The sum of the value and what an ADD of unknown outcome adds; VALUE_NONE without memory. */
static uint32_t sum_after(struct steps *s, const struct step *step, uint32_t value)
{
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

struct held steps_after(struct steps *s, uint32_t i, struct held before)
{
    const struct step *step = &s->at[i];
    struct held after = before;
    if (step->sum) {
        after.value = sum_after(s, step, before.value);
    } else if (step->make != VALUE_NONE) {
        after.value = step->make;
    }
    if (step->until_make != DEADLINE_KEEP) {
        after.deadline = step->until_make;
    }
    return after;
}
