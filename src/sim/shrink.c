#include "sim/shrink.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/death.h"
#include "sim/mutants.h"
#include "sim/setup.h"

struct trying {
    struct shrink *shrink;
    shrink_run_fn *run;
    bool (*enough)(void *context);
    void *context;
    uint32_t runs_max;
};

void shrink_note(const struct sim_result *result, struct shrink_outcome *outcome_out)
{
    *outcome_out = (struct shrink_outcome){
        .violates = result->verdict == SIM_VIOLATION,
        .history = result->refused.n > 0,
        .steps = result->steps,
        .plan_n = result->plan_n,
        .drawn = result->drawn,
    };
    if (outcome_out->violates) {
        snprintf(outcome_out->rule, sizeof outcome_out->rule, "%s", result->rule);
    }
}

static bool may_try(const struct trying *t)
{
    return t->shrink->runs < t->runs_max && (t->enough == NULL || !t->enough(t->context));
}

/* Keeps the configuration if its run violates the same. */
static bool try_config(struct trying *t, const struct sim_config *config)
{
    struct shrink_outcome outcome = {.violates = false};
    struct shrink *s = t->shrink;
    if (!may_try(t)) {
        return false;
    }
    s->runs++;
    t->run(t->context, config, s->seed, &outcome);
    if (!outcome.violates || strcmp(outcome.rule, s->first.rule) != 0) {
        return false;
    }
    s->config = *config;
    s->outcome = outcome;
    return true;
}

/* All kinds at once, then one by one. */
static bool drop_kinds(struct trying *t)
{
    struct shrink *s = t->shrink;
    struct sim_config config = s->config;
    bool any = false;
    config.faults_skip |= s->outcome.drawn;
    if (s->outcome.drawn == 0 || try_config(t, &config)) {
        return s->outcome.drawn != 0;
    }
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        config = s->config;
        config.faults_skip |= 1u << i;
        if ((s->outcome.drawn >> i & 1u) != 0 && try_config(t, &config)) {
            any = true;
        }
    }
    return any;
}

/* Only entries that are still in force. */
static bool drop_entries(struct trying *t)
{
    struct shrink *s = t->shrink;
    bool any = false;
    for (uint32_t i = s->outcome.plan_n; i > 0; i--) {
        struct setup setup;
        struct sim_config config = s->config;
        setup_draw(&config, s->seed, &setup);
        if (i > setup.plan_n || setup.plan[i - 1].off) {
            continue;
        }
        config.plan_skip |= UINT64_C(1) << (i - 1);
        any = try_config(t, &config) || any;
    }
    return any;
}

/* The smallest of a few numbers that does. */
static void lower(struct trying *t, size_t offset, uint32_t now)
{
    static const uint32_t numbers[] = {1, 2, 3, 4, 6, 9, 14, 20, 40, 80, 150};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && numbers[i] < now; i++) {
        struct sim_config config = t->shrink->config;
        memcpy((char *)&config + offset, &numbers[i], sizeof numbers[i]);
        if (try_config(t, &config)) {
            return;
        }
    }
}

static void drop_clients(struct trying *t)
{
    struct setup setup;
    setup_draw(&t->shrink->config, t->shrink->seed, &setup);
    lower(t, offsetof(struct sim_config, clients_max), setup.clients);
    lower(t, offsetof(struct sim_config, keys_max), setup.keys);
    lower(t, offsetof(struct sim_config, ops), setup.ops);
}

/* A history that is refused stays so if the run goes on: the shortest is found by halving. */
static void end_early(struct trying *t)
{
    struct shrink *s = t->shrink;
    if (!s->outcome.history) {
        return;
    }
    uint64_t low = 1;
    uint64_t high = s->outcome.steps + 1;
    while (low < high && may_try(t)) {
        struct sim_config config = s->config;
        config.until = low + (high - low) / 2;
        if (try_config(t, &config)) {
            high = config.until;
        } else {
            low = config.until + 1;
        }
    }
}

bool shrink_run(struct shrink *s, const struct sim_config *config, uint64_t seed,
                shrink_run_fn *run, bool (*enough)(void *context), void *context, uint32_t runs_max)
{
    struct trying t = {s, run, enough, context, runs_max};
    *s = (struct shrink){.config = *config, .seed = seed, .runs = 1};
    run(context, config, seed, &s->first);
    s->outcome = s->first;
    if (!s->first.violates) {
        return false;
    }
    /* The last runs are for the end, which makes histories shortest. */
    t.runs_max = runs_max > 30 ? runs_max - 25 : runs_max;
    for (bool again = true; again && may_try(&t);) {
        again = drop_kinds(&t);
        again = drop_entries(&t) && again;
    }
    drop_clients(&t);
    (void)drop_kinds(&t);
    (void)drop_entries(&t);
    t.runs_max = runs_max;
    t.enough = NULL;
    end_early(&t);
    return true;
}

/* ---- Options ---- */

static void add_kinds(uint32_t kinds, struct text *to)
{
    const char *comma = "";
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        if ((kinds >> i & 1u) != 0) {
            text_add(to, "%s%s", comma, sim_fault_names[i]);
            comma = ",";
        }
    }
}

static void add_number(const char *option, uint64_t number, struct text *to)
{
    if (number != 0) {
        text_add(to, " %s %" PRIu64, option, number);
    }
}

/* Names of mutants may hold what means something to a shell. */
static void add_mutants(const struct sim_config *config, struct text *to)
{
    for (uint32_t i = 0; i < mutants_count(); i++) {
        struct sim_config one = {.engine = config->engine};
        char name[MUTANT_NAME_BYTES];
        mutant_switch_off(i, &one);
        if ((one.view_rules_off & config->view_rules_off) != 0 ||
            (one.engine_rules_off & config->engine_rules_off) != 0 ||
            (one.node_rules_off & config->node_rules_off) != 0 ||
            (one.flips_on & config->flips_on) != 0) {
            mutant_name(i, name);
            text_add(to, " --mutant '%s'", name);
        }
    }
}

static void add_choice(const char *name, enum sim_choice choice, struct text *to)
{
    if (choice != SIM_DRAWN) {
        text_add(to, " --%s%s", choice == SIM_ON ? "" : "no-", name);
    }
}

void shrink_options(const struct sim_config *config, struct text *to)
{
    if (config->engine != NULL) {
        text_add(to, " --engine %s", config->engine);
    }
    add_number("--nodes", config->nodes, to);
    add_number("--workers", config->workers, to);
    add_number("--ops", config->ops, to);
    if (config->faults != SIM_FAULTS_ALL) {
        text_add(to, " --faults ");
        add_kinds(config->faults, to);
        text_add(to, "%s", config->faults == 0 ? "none" : "");
    }
    if (config->policy != 0) {
        text_add(to, " --cc %s", lock_policy_names[config->policy - 1]);
    }
    add_choice("o3", config->o3, to);
    add_choice("async", config->async, to);
    add_mutants(config, to);
    if (config->faults_skip != 0) {
        text_add(to, " --skip-faults ");
        add_kinds(config->faults_skip, to);
    }
    const char *before = " --skip ";
    for (uint32_t i = 0; i < SIM_PLAN_MAX; i++) {
        if ((config->plan_skip >> i & 1u) != 0) {
            text_add(to, "%s%" PRIu32, before, i);
            before = ",";
        }
    }
    add_number("--clients", config->clients_max, to);
    add_number("--keys", config->keys_max, to);
    if (config->death != 0) {
        char name[DEATH_NAME_BYTES];
        death_name(config->death, name);
        text_add(to, " --death '%s'", name);
    }
    add_number("--until", config->until, to);
    text_add(to, "%s%s", config->lanes ? " --lanes" : "", config->tamper ? " --tamper" : "");
}
