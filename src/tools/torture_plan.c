#include "tools/torture_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define QUIET_MS 700u /* at the beginning */
#define GAP_LEAST_MS 200u
#define GAP_MOST_MS 2000u
#define FAULTS_WANTED 10u /* on average at least, however short the run is */
#define THINK_MOST_US 6000u

const char *const torture_kind_names[TORTURE_KINDS] = {
    [TORTURE_KILL] = "kill",
    [TORTURE_PAUSE] = "pause",
    [TORTURE_LEAVE] = "leave",
    [TORTURE_ISOLATE] = "isolate",
    [TORTURE_ONE_WAY] = "one-way",
    [TORTURE_SPLIT] = "split",
    [TORTURE_BRIDGE] = "bridge",
    [TORTURE_SHATTER] = "shatter",
    [TORTURE_RESET_PEERS] = "reset-peers",
    [TORTURE_RESET_CLIENTS] = "reset-clients",
};

struct drawing {
    const struct torture_options *options;
    struct random random;
    nodeset all;
    uint32_t weight[TORTURE_KINDS]; /* how often a kind is drawn, beside the others */
    uint32_t weights;
};

static uint32_t between(struct drawing *d, uint32_t low, uint32_t high)
{
    return (uint32_t)random_between(&d->random, low, high);
}

/* Nodes are numbered from 1. */
static uint8_t draw_node(struct drawing *d)
{
    return (uint8_t)between(d, 1, d->options->nodes);
}

/* Some of `of`, neither none nor all; all of it if that is one. */
static nodeset draw_part(struct drawing *d, nodeset of)
{
    nodeset part = 0;
    while (nodeset_count(of) > 1 && (part == 0 || part == of)) {
        part = random_next(&d->random) & of;
    }
    return part == 0 ? of : part;
}

/* Much depends on how a time compares with the lease: far below it, below it, about it, above. */
static uint32_t draw_length(struct drawing *d)
{
    uint32_t lease = d->options->lease_ms;
    switch (between(d, 0, 5)) {
    case 0:
        return between(d, 1, lease / 5 + 1);
    case 1:
        return between(d, lease / 5, lease);
    case 2:
    case 3:
        return between(d, lease * 4 / 5, lease * 2);
    default:
        return between(d, lease * 3 / 2, lease * 6);
    }
}

/* Each seed has kinds of its own that it prefers, and some that it leaves out. */
static void draw_weights(struct drawing *d, uint32_t kinds)
{
    while (kinds != 0 && d->weights == 0) {
        for (uint32_t k = 0; k < TORTURE_KINDS; k++) {
            uint32_t weight = between(d, 0, 3) == 0 ? 0 : between(d, 1, 10);
            d->weight[k] = (kinds >> k & 1) != 0 ? weight : 0;
            d->weights += d->weight[k];
        }
    }
}

static enum torture_kind draw_kind(struct drawing *d)
{
    uint32_t at = (uint32_t)random_below(&d->random, d->weights);
    uint32_t k = 0;
    while (at >= d->weight[k]) {
        at -= d->weight[k++];
    }
    return (enum torture_kind)k;
}

static void draw_cut(struct drawing *d, struct torture_fault *f)
{
    nodeset node = nodeset_of(f->node);
    nodeset others = d->all & ~node;
    f->both = true;
    switch ((uint32_t)f->kind) {
    case TORTURE_ISOLATE:
        f->from = node;
        f->to = others;
        break;
    case TORTURE_SPLIT:
        f->from = draw_part(d, d->all);
        f->to = d->all & ~f->from;
        break;
    case TORTURE_BRIDGE:
        f->from = draw_part(d, others);
        f->to = others & ~f->from;
        break;
    case TORTURE_SHATTER:
        f->from = d->all;
        f->to = d->all;
        break;
    default:
        /* One node is not heard or does not hear, by all or by some. */
        f->both = false;
        others = between(d, 0, 1) == 0 ? others : draw_part(d, others);
        f->from = between(d, 0, 1) == 0 ? node : others;
        f->to = f->from == node ? others : node;
    }
}

static void draw_fault(struct drawing *d, struct torture_fault *f)
{
    f->kind = draw_kind(d);
    f->node = draw_node(d);
    f->for_ms = draw_length(d);
    if ((TORTURE_FAULTS_NETWORK >> f->kind & 1) == 0) {
        return;
    }
    if (f->kind == TORTURE_RESET_PEERS || f->kind == TORTURE_RESET_CLIENTS) {
        /* A reset is a moment; now and then it is a wall. */
        f->for_ms = between(d, 0, 3) == 0 ? f->for_ms : between(d, 1, 60);
        f->to = d->all & ~nodeset_of(f->node);
        f->to = between(d, 0, 1) == 0 ? f->to : draw_part(d, f->to);
        return;
    }
    draw_cut(d, f);
}

/* Chance of its own: what is drawn for hermes stays as it is. */
static void draw_hot_set(const struct torture_options *options, struct torture_plan *plan)
{
    struct random random;
    random_init(&random, options->seed ^ UINT64_C(0x67616c656e65));
    plan->cache_keys = (uint32_t)random_between(&random, 1, options->keys);
    plan->epoch_ms = (uint32_t)random_between(&random, 50, 1000);
}

/* Likewise. At least two nodes keep rows. */
static void draw_lotus(const struct torture_options *options, struct torture_plan *plan)
{
    static const char *const policies[] = {"wound_wait", "wound_wait", "wait_die", "wait_die",
                                           "no_wait"};
    struct random random;
    random_init(&random, options->seed ^ UINT64_C(0x6c6f747573));
    plan->cc = policies[random_below(&random, sizeof policies / sizeof policies[0])];
    if (options->engine == TORTURE_LOTUS && options->nodes > 2 && random_chance(&random, 400000)) {
        plan->compute = nodeset_of((uint8_t)random_between(&random, 1, options->nodes));
    }
}

bool torture_plan_draw(const struct torture_options *options, uint32_t kinds,
                       struct torture_plan *plan_out)
{
    struct drawing d = {.options = options, .all = ((nodeset)2 << options->nodes) - 2};
    struct torture_plan plan = {.n = 0};
    uint32_t end_ms = options->seconds * 1000;
    random_init(&d.random, options->seed);
    uint32_t gap_ms = end_ms / FAULTS_WANTED > GAP_LEAST_MS ? end_ms / FAULTS_WANTED : GAP_LEAST_MS;
    plan.gap_ms = between(&d, GAP_LEAST_MS, gap_ms < GAP_MOST_MS ? gap_ms : GAP_MOST_MS);
    plan.think_us = between(&d, 0, THINK_MOST_US);
    plan.workers = between(&d, 1, 2);
    plan.ack_all = between(&d, 0, 1) == 0;
    plan.async_reads = between(&d, 0, 3) == 0;
    draw_hot_set(options, &plan);
    draw_lotus(options, &plan);
    draw_weights(&d, kinds);
    uint32_t capacity = end_ms / GAP_LEAST_MS * 4 + 16;
    plan.faults = calloc(capacity, sizeof *plan.faults);
    if (plan.faults == NULL) {
        return false;
    }
    uint32_t at_ms = QUIET_MS;
    while (d.weights > 0 && plan.n < capacity) {
        /* Often a pause, and now and then two at almost the same time. */
        at_ms += between(&d, 0, 3) == 0 ? between(&d, 0, 30) : between(&d, 0, plan.gap_ms * 8 / 3);
        if (at_ms >= end_ms) {
            break;
        }
        plan.faults[plan.n].at_ms = at_ms;
        draw_fault(&d, &plan.faults[plan.n++]);
    }
    *plan_out = plan;
    return true;
}

void torture_plan_deinit(struct torture_plan *plan)
{
    free(plan->faults);
    *plan = (struct torture_plan){.n = 0};
}

static void print_set(nodeset set, char *to, size_t size)
{
    size_t n = 0;
    to[0] = '\0';
    for (; set != 0 && n < size; set &= set - 1) {
        n += (size_t)snprintf(to + n, size - n, "%s%u", n == 0 ? "" : ",", nodeset_first(set));
    }
}

void torture_fault_print(const struct torture_fault *f, char *to, size_t size)
{
    char from[4 * TORTURE_NODES_MAX];
    char others[4 * TORTURE_NODES_MAX];
    const char *name = torture_kind_names[f->kind];
    print_set(f->from, from, sizeof from);
    print_set(f->to, others, sizeof others);
    switch ((uint32_t)f->kind) {
    case TORTURE_KILL:
    case TORTURE_PAUSE:
    case TORTURE_LEAVE:
    case TORTURE_RESET_CLIENTS:
        snprintf(to, size, "%u ms: %s %u for %u ms", f->at_ms, name, f->node, f->for_ms);
        break;
    case TORTURE_RESET_PEERS:
        snprintf(to, size, "%u ms: %s %u with %s for %u ms", f->at_ms, name, f->node, others,
                 f->for_ms);
        break;
    case TORTURE_BRIDGE:
        snprintf(to, size, "%u ms: %s %u between %s and %s for %u ms", f->at_ms, name, f->node,
                 from, others, f->for_ms);
        break;
    case TORTURE_SHATTER:
        snprintf(to, size, "%u ms: %s for %u ms", f->at_ms, name, f->for_ms);
        break;
    default:
        snprintf(to, size, "%u ms: %s %s %s %s for %u ms", f->at_ms, name, from,
                 f->both ? "|" : "-/->", others, f->for_ms);
    }
}

void torture_plan_print(const struct torture_plan *plan, const struct torture_options *options,
                        FILE *to)
{
    fprintf(to, "workers %u, ", plan->workers);
    switch (options->engine) {
    case TORTURE_GALENE:
        fprintf(to, "galene, cache_keys %u, epochs of %u ms", plan->cache_keys, plan->epoch_ms);
        break;
    case TORTURE_ZEUS:
        fprintf(to, "zeus");
        break;
    case TORTURE_LOTUS:
        fprintf(to, "lotus, %s, %u of them only compute", plan->cc, nodeset_count(plan->compute));
        break;
    case TORTURE_HERMES:
    case TORTURE_ENGINES:
        fprintf(to, "ack_all %s, async_reads %s", plan->ack_all ? "yes" : "no",
                plan->async_reads ? "yes" : "no");
        break;
    }
    fprintf(to, ", clients think for up to %u us\n", plan->think_us);
    fprintf(to, "%u faults:\n", plan->n);
    for (uint32_t i = 0; i < plan->n; i++) {
        char text[200];
        torture_fault_print(&plan->faults[i], text, sizeof text);
        fprintf(to, "%s\n", text);
    }
}

static json_t *set_json(nodeset set)
{
    json_t *array = json_array();
    for (; set != 0; set &= set - 1) {
        json_array_append_new(array, json_integer(nodeset_first(set)));
    }
    return array;
}

json_t *torture_plan_json(const struct torture_plan *plan)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < plan->n; i++) {
        const struct torture_fault *f = &plan->faults[i];
        json_t *entry = json_object();
        json_object_set_new(entry, "at_ms", json_integer(f->at_ms));
        json_object_set_new(entry, "for_ms", json_integer(f->for_ms));
        json_object_set_new(entry, "kind", json_string(torture_kind_names[f->kind]));
        if (f->kind != TORTURE_SHATTER && f->kind != TORTURE_SPLIT && f->kind != TORTURE_ISOLATE &&
            f->kind != TORTURE_ONE_WAY) {
            json_object_set_new(entry, "node", json_integer(f->node));
        }
        if (f->from != 0) {
            json_object_set_new(entry, "from", set_json(f->from));
            json_object_set_new(entry, "both", json_boolean(f->both));
        }
        if (f->to != 0) {
            json_object_set_new(entry, "to", set_json(f->to));
        }
        json_array_append_new(array, entry);
    }
    return array;
}
