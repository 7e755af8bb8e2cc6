#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tools/torture.h"

const char *const torture_verdict_names[3] = {"sound", "violation", "not run to the end"};

/* What the numbers of a run come down to. */
struct sums {
    double seconds; /* from the first fault's possible beginning until all clients got on */
    double per_second;
    uint32_t begun[TORTURE_KINDS];
    uint32_t skipped[TORTURE_KINDS];
    uint32_t begun_all, skipped_all;
};

static void add_up(const struct torture *t, struct sums *sums_out)
{
    uint64_t end_us = t->got_on_us != 0 ? t->got_on_us : t->watched_us;
    *sums_out = (struct sums){.seconds = 0};
    if (t->began_us != 0 && end_us > t->began_us) {
        sums_out->seconds = (double)(end_us - t->began_us) / 1e6;
        sums_out->per_second = (double)t->crowd.ok / sums_out->seconds;
    }
    for (uint32_t i = 0; t->faults.runs != NULL && i < t->plan.n; i++) {
        enum torture_kind kind = t->plan.faults[i].kind;
        bool begun = t->faults.runs[i].began_us != 0;
        bool skipped = t->faults.runs[i].state == FAULT_SKIPPED;
        sums_out->begun[kind] += begun;
        sums_out->skipped[kind] += skipped;
        sums_out->begun_all += begun;
        sums_out->skipped_all += skipped;
    }
}

static uint64_t after_us(uint64_t at_us, uint64_t from_us)
{
    return at_us > from_us && from_us != 0 ? at_us - from_us : 0;
}

static int by_begin(const void *a, const void *b)
{
    const struct history_op *x = a;
    const struct history_op *y = b;
    return x->begin_us < y->begin_us ? -1 : x->begin_us > y->begin_us;
}

bool torture_report_history(const struct torture_key *key, const char *path)
{
    FILE *to = fopen(path, "we");
    if (to == NULL) {
        return false;
    }
    struct history history = {.ops = key->ops, .n = key->n};
    if (key->n > 0) {
        qsort(key->ops, key->n, sizeof *key->ops, by_begin);
    }
    history_print(&history, to);
    return fclose(to) == 0;
}

static void text_faults(const struct sums *sums, FILE *to)
{
    fprintf(to, "faults: %u", sums->begun_all);
    const char *before = " (";
    for (uint32_t k = 0; k < TORTURE_KINDS; k++) {
        if (sums->begun[k] > 0) {
            fprintf(to, "%s%s %u", before, torture_kind_names[k], sums->begun[k]);
            before = ", ";
        }
    }
    fprintf(to, "%s, %u skipped\n", before[0] == ',' ? ")" : "", sums->skipped_all);
}

static void text_clients(const struct torture *t, const struct sums *sums, FILE *to)
{
    const struct torture_crowd *crowd = &t->crowd;
    fprintf(to,
            "operations: %" PRIu64 " ok, %" PRIu64 " refused, %" PRIu64
            " of unknown outcome; %.0f ok a second\n",
            crowd->ok, crowd->failed, crowd->unknown, sums->per_second);
    fprintf(to,
            "longest time without a success: %.0f ms, %.1f s after the beginning; of an update: "
            "%.0f ms, %.1f s\n",
            (double)crowd->gap.longest_us / 1e3,
            (double)after_us(crowd->gap.longest_at_us, t->began_us) / 1e6,
            (double)crowd->update_gap.longest_us / 1e3,
            (double)after_us(crowd->update_gap.longest_at_us, t->began_us) / 1e6);
}

static void text_violation(const struct torture *t, FILE *to)
{
    fprintf(to, "%s\n", t->why);
    if (t->verdict != TORTURE_VIOLATION) {
        return;
    }
    fprintf(to, "faults until then, with the times when they began and ended:\n");
    for (uint32_t i = 0; i < t->faults.next; i++) {
        const struct torture_fault_run *run = &t->faults.runs[i];
        char text[200];
        torture_fault_print(&t->plan.faults[i], text, sizeof text);
        if (run->began_us != 0) {
            fprintf(to, "  %" PRIu64 "..%" PRIu64 " us: %s\n", run->began_us, run->end_us, text);
        }
    }
    torture_cluster_tell(&t->cluster, to);
    if (t->history_path[0] != '\0') {
        fprintf(to, "history of the key: %s\n", t->history_path);
    }
}

void torture_report_text(const struct torture *t, FILE *to)
{
    struct sums sums;
    add_up(t, &sums);
    text_faults(&sums, to);
    text_clients(t, &sums, to);
    fprintf(to, "judged: %" PRIu64 " keys, %" PRIu64 " of them undecided; %" PRIu64 " states\n",
            t->judged, t->undecided, t->states);
    if (t->bank.n > 0) {
        fprintf(to,
                "bank: %" PRIu64 " transfers acknowledged, %" PRIu64 " found a change, %" PRIu64
                " refused, %" PRIu64 " of unknown outcome; %" PRIu64 " audits\n",
                t->bank.done, t->bank.conflicts, t->bank.refused, t->bank.unknown, t->bank.audits);
    }
    if (torture_homed(&t->options)) {
        fprintf(to, "orders to give lost slots up: %" PRIu64 "\n", t->slots.orders);
    }
    if (t->got_on_us != 0) {
        fprintf(to,
                "after the faults: all nodes served after %.0f ms, all clients got on after %.0f "
                "ms\n",
                (double)after_us(t->served_us, t->calm_us) / 1e3,
                (double)after_us(t->got_on_us, t->calm_us) / 1e3);
    }
    if (t->final.over) {
        fprintf(to, "in the end: %zu keys read on %u nodes, %s\n", t->keys.n, t->options.nodes,
                t->final.wrong[0] == '\0' ? "equal" : "not equal");
    }
    if (t->bank.n > 0 && t->bank.over) {
        fprintf(to, "in the end: %zu transfers looked up on %u nodes; the accounts %s\n",
                t->bank.transfers_n, t->options.nodes,
                t->bank.wrong[0] == '\0' ? "hold what they left" : "do not hold what they left");
    }
    fprintf(to, "seed %" PRIu64 ": %s\n", t->options.seed, torture_verdict_names[t->verdict]);
    if (t->verdict != TORTURE_SOUND) {
        text_violation(t, to);
    }
}

/* ---- JSON ---- */

static void set_number(json_t *object, const char *name, uint64_t number)
{
    json_object_set_new(object, name, json_integer((json_int_t)number));
}

static void set_ms(json_t *object, const char *name, uint64_t us)
{
    json_object_set_new(object, name, json_real((double)us / 1e3));
}

static json_t *json_setup(const struct torture *t)
{
    const struct torture_options *o = &t->options;
    json_t *json = json_object();
    set_number(json, "seed", o->seed);
    set_number(json, "seconds", o->seconds);
    set_number(json, "nodes", o->nodes);
    set_number(json, "clients", o->clients);
    set_number(json, "keys", o->keys);
    set_number(json, "lease_ms", o->lease_ms);
    set_number(json, "workers", t->plan.workers);
    json_object_set_new(json, "engine", json_string(torture_engine_names[o->engine]));
    if (torture_homed(o)) {
        set_number(json, "orders", t->slots.orders);
    }
    if (o->engine == TORTURE_GALENE) {
        set_number(json, "cache_keys", t->plan.cache_keys);
        set_number(json, "epoch_ms", t->plan.epoch_ms);
    } else if (o->engine == TORTURE_LOTUS) {
        json_object_set_new(json, "cc", json_string(t->plan.cc));
        set_number(json, "compute", nodeset_count(t->plan.compute));
    } else if (o->engine == TORTURE_HERMES) {
        json_object_set_new(json, "ack_all", json_boolean(t->plan.ack_all));
        json_object_set_new(json, "async_reads", json_boolean(t->plan.async_reads));
    }
    json_object_set_new(json, "partitions", json_boolean(t->net.separate));
    if (!t->net.separate) {
        json_object_set_new(json, "no_partitions_because", json_string(t->net.why));
    }
    return json;
}

static json_t *json_plan(const struct torture *t)
{
    static const char *const states[] = {"to come", "begun", "ended", "skipped"};
    json_t *array = torture_plan_json(&t->plan);
    for (uint32_t i = 0; t->faults.runs != NULL && i < t->plan.n; i++) {
        const struct torture_fault_run *run = &t->faults.runs[i];
        json_t *entry = json_array_get(array, i);
        json_object_set_new(entry, "state", json_string(states[run->state]));
        if (run->began_us != 0) {
            set_number(entry, "began_us", run->began_us);
            set_number(entry, "ended_us", run->end_us);
        }
    }
    return array;
}

static json_t *json_faults(const struct sums *sums)
{
    json_t *json = json_object();
    for (uint32_t k = 0; k < TORTURE_KINDS; k++) {
        json_t *kind = json_object();
        set_number(kind, "begun", sums->begun[k]);
        set_number(kind, "skipped", sums->skipped[k]);
        json_object_set_new(json, torture_kind_names[k], kind);
    }
    return json;
}

static json_t *json_operations(const struct torture *t, const struct sums *sums)
{
    const struct torture_crowd *crowd = &t->crowd;
    json_t *json = json_object();
    json_t *kinds = json_object();
    set_number(json, "ok", crowd->ok);
    set_number(json, "refused", crowd->failed);
    set_number(json, "unknown", crowd->unknown);
    json_object_set_new(json, "ok_per_second", json_real(sums->per_second));
    for (uint32_t k = 0; k < TORTURE_HISTORY_KINDS; k++) {
        if (crowd->ok_of[k] > 0) {
            set_number(kinds, history_kind_name((uint8_t)k), crowd->ok_of[k]);
        }
    }
    json_object_set_new(json, "ok_by_kind", kinds);
    set_number(json, "reconnects", crowd->moves);
    set_ms(json, "longest_gap_ms", crowd->gap.longest_us);
    set_ms(json, "longest_gap_at_ms", after_us(crowd->gap.longest_at_us, t->began_us));
    set_ms(json, "longest_update_gap_ms", crowd->update_gap.longest_us);
    set_ms(json, "longest_update_gap_at_ms",
           after_us(crowd->update_gap.longest_at_us, t->began_us));
    return json;
}

static json_t *json_judged(const struct torture *t)
{
    json_t *json = json_object();
    set_number(json, "keys", t->judged);
    set_number(json, "undecided", t->undecided);
    set_number(json, "states", t->states);
    return json;
}

/* What the nodes said last. */
static json_t *json_nodes(const struct torture *t)
{
    json_t *array = json_array();
    for (uint32_t node = 1; node <= t->options.nodes; node++) {
        json_array_append_new(array, json_string(t->cluster.node[node].said));
    }
    return array;
}

static json_t *json_final(const struct torture *t)
{
    json_t *json = json_object();
    json_object_set_new(json, "healed", json_boolean(t->got_on_us != 0));
    set_ms(json, "all_served_after_ms", after_us(t->served_us, t->calm_us));
    set_ms(json, "all_got_on_after_ms", after_us(t->got_on_us, t->calm_us));
    set_number(json, "keys", t->final.over ? t->keys.n : 0);
    set_number(json, "reads", t->final.reads);
    set_number(json, "histories_forgotten", t->keys.forgotten);
    json_object_set_new(json, "equal", json_boolean(t->final.over && t->final.wrong[0] == '\0'));
    return json;
}

static json_t *json_bank(const struct torture_bank *bank)
{
    json_t *json = json_object();
    set_number(json, "clients", bank->n);
    set_number(json, "transfers", bank->transfers_n);
    set_number(json, "acknowledged", bank->done);
    set_number(json, "conflicts", bank->conflicts);
    set_number(json, "refused", bank->refused);
    set_number(json, "unknown", bank->unknown);
    set_number(json, "audits", bank->audits);
    set_number(json, "audits_by_range", bank->ranges);
    json_object_set_new(json, "agrees", json_boolean(bank->over && bank->wrong[0] == '\0'));
    return json;
}

bool torture_report_json(const struct torture *t, FILE *to)
{
    struct sums sums;
    add_up(t, &sums);
    json_t *json = json_setup(t);
    json_object_set_new(json, "result", json_string(torture_verdict_names[t->verdict]));
    json_object_set_new(json, "ran_seconds", json_real(sums.seconds));
    json_object_set_new(json, "operations", json_operations(t, &sums));
    json_object_set_new(json, "judged", json_judged(t));
    json_object_set_new(json, "faults", json_faults(&sums));
    json_object_set_new(json, "end", json_final(t));
    if (t->bank.n > 0) {
        json_object_set_new(json, "bank", json_bank(&t->bank));
    }
    if (t->verdict != TORTURE_SOUND) {
        json_object_set_new(json, "why", json_string(t->why));
        json_object_set_new(json, "folder", json_string(t->cluster.dir));
        json_object_set_new(json, "said_last", json_nodes(t));
    }
    if (t->verdict == TORTURE_VIOLATION) {
        json_object_set_new(json, "violation", json_string(t->what));
    }
    if (t->has_key) {
        set_number(json, "key", t->key);
        json_object_set_new(json, "history", json_string(t->history_path));
    }
    json_object_set_new(json, "plan", json_plan(t));
    bool good = json_dumpf(json, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0;
    fputc('\n', to);
    json_decref(json);
    return good;
}
