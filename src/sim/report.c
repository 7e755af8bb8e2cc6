#include "sim/report.h"

#include <inttypes.h>

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/assert.h"
#include "sim/phrase.h"
#include "sim/setup.h"

void sim_report_init(struct sim_report *report, const struct sim_config *config, uint64_t from)
{
    *report = (struct sim_report){
        .config = *config,
        .from = from,
        .least_ops_ok = UINT64_MAX,
        .least_fault_kinds = UINT64_MAX,
    };
}

void sim_shrunk_deinit(struct sim_shrunk *shrunk)
{
    text_deinit(&shrunk->command);
    text_deinit(&shrunk->report);
    free(shrunk->history.ops);
    *shrunk = (struct sim_shrunk){.runs = 0};
}

void sim_report_deinit(struct sim_report *report)
{
    for (uint32_t i = 0; i < report->findings_n; i++) {
        text_deinit(&report->findings[i].text);
        sim_shrunk_deinit(&report->findings[i].shrunk);
    }
}

static void add_stats(struct sim_stats *sum, const struct sim_stats *stats)
{
    sum->virtual_us += stats->virtual_us;
    sum->ops += stats->ops;
    sum->ops_ok += stats->ops_ok;
    sum->ops_failed += stats->ops_failed;
    sum->ops_unknown += stats->ops_unknown;
    sum->ops_extra += stats->ops_extra;
    sum->reads_ok += stats->reads_ok;
    sum->deals += stats->deals;
    sum->deals_ok += stats->deals_ok;
    sum->deals_aborted += stats->deals_aborted;
    sum->deals_unknown += stats->deals_unknown;
    sum->deals_spoken += stats->deals_spoken;
    sum->audits += stats->audits;
    sum->ranges += stats->ranges;
    sum->tries += stats->tries;
    sum->tries_again += stats->tries_again;
    sum->tries_most = stats->tries_most > sum->tries_most ? stats->tries_most : sum->tries_most;
    sum->deaths += stats->deaths;
    sum->polls += stats->polls;
    sum->frames += stats->frames;
    sum->messages += stats->messages;
    sum->bytes += stats->bytes;
    sum->views += stats->views;
    sum->view_changes += stats->view_changes;
    sum->incarnations += stats->incarnations;
    sum->wipes += stats->wipes;
    sum->states += stats->states;
    sum->faults_skipped += stats->faults_skipped;
    sum->fault_kinds += stats->fault_kinds;
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        sum->faults[i] += stats->faults[i];
    }
    for (uint32_t i = 0; i < SIM_PHRASES_MAX; i++) {
        sum->phrases[i] += stats->phrases[i];
    }
}

static struct sim_finding *add_finding(struct sim_report *report, uint64_t seed,
                                       enum sim_verdict verdict)
{
    uint32_t at = report->findings_n;
    if (at == REPORT_FINDINGS_MAX) {
        at = 0;
        while (at < REPORT_FINDINGS_MAX && report->findings[at].verdict == SIM_VIOLATION) {
            at++;
        }
        if (verdict != SIM_VIOLATION || at == REPORT_FINDINGS_MAX) {
            return NULL;
        }
        text_deinit(&report->findings[at].text);
    } else {
        report->findings_n++;
    }
    struct sim_finding *finding = &report->findings[at];
    report->latest = at;
    *finding = (struct sim_finding){.seed = seed, .verdict = verdict};
    return finding;
}

void sim_report_add(struct sim_report *report, uint64_t seed, const struct sim_result *result)
{
    const struct sim_stats *stats = &result->stats;
    report->seeds++;
    report->verdicts[result->verdict]++;
    report->hash = (report->hash ^ result->hash) * 0x9e3779b97f4a7c15u;
    add_stats(&report->sum, stats);
    if (result->verdict == SIM_SOUND) {
        report->least_ops_ok =
            stats->ops_ok < report->least_ops_ok ? stats->ops_ok : report->least_ops_ok;
        report->least_fault_kinds = stats->fault_kinds < report->least_fault_kinds
                                        ? stats->fault_kinds
                                        : report->least_fault_kinds;
        return;
    }
    struct sim_finding *finding = add_finding(report, seed, result->verdict);
    if (finding != NULL) {
        text_add(&finding->text, "%s", text_string(&result->report));
    }
}

void sim_report_add_death(struct sim_report *report, uint64_t seed, const char *how)
{
    struct setup setup;
    report->seeds++;
    report->verdicts[SIM_VIOLATION]++;
    struct sim_finding *finding = add_finding(report, seed, SIM_VIOLATION);
    if (finding != NULL) {
        text_add(&finding->text, "the run died: %s (see standard error)\n", how);
        setup_draw(&report->config, seed, &setup);
        setup_print(&setup, &finding->text);
    }
}

void sim_report_add_shrunk(struct sim_report *report, struct sim_shrunk *shrunk)
{
    HK_ASSERT(report->findings_n > 0);
    struct sim_finding *finding = &report->findings[report->latest];
    sim_shrunk_deinit(&finding->shrunk);
    finding->shrunk = *shrunk;
    *shrunk = (struct sim_shrunk){.runs = 0};
}

void sim_report_add_twice(struct sim_report *report, uint64_t seed, bool same)
{
    report->twice++;
    if (same) {
        return;
    }
    report->twice_other++;
    struct sim_finding *finding = add_finding(report, seed, SIM_VIOLATION);
    if (finding != NULL) {
        text_add(&finding->text,
                 "ran twice, and the two runs have different hashes: something that "
                 "does not follow from the seed has a say\n");
    }
}

bool sim_report_sound(const struct sim_report *report)
{
    return report->verdicts[SIM_VIOLATION] == 0 && report->twice_other == 0;
}

/* How often each command was said: the phrases of one command follow in no order. */
static void count_commands(const struct sim_report *report, json_t *json)
{
    for (uint32_t i = 0; i < phrases_n; i++) {
        char name[PHRASE_COMMAND_BYTES];
        phrase_command(i, name);
        if (name[0] != '\0') {
            json_int_t before = json_integer_value(json_object_get(json, name));
            json_object_set_new(json, name,
                                json_integer(before + (json_int_t)report->sum.phrases[i]));
        }
    }
}

static double per_seed(const struct sim_report *report, uint64_t sum)
{
    return report->seeds == 0 ? 0 : (double)sum / (double)report->seeds;
}

static uint64_t least(uint64_t value)
{
    return value == UINT64_MAX ? 0 : value;
}

static double ratio(const struct sim_report *report, double wall_seconds)
{
    return wall_seconds > 0 ? (double)report->sum.virtual_us / 1e6 / wall_seconds : 0;
}

#define LINE_BYTES 400u

/* An operation, and between which steps the deadline passes that it sets. */
static void print_op(const struct history_op *op, char to[LINE_BYTES])
{
    size_t n = history_op_print(op, to, LINE_BYTES);
    bool sets = op->deadline != 0 && op->deadline != HISTORY_KEEP && op->kind != HISTORY_TTL;
    if (!sets || n >= LINE_BYTES) {
        return;
    }
    if (op->not_after_us == 0) {
        snprintf(to + n, LINE_BYTES - n, " (passes from %" PRIu64 " on)", op->not_before_us);
    } else {
        snprintf(to + n, LINE_BYTES - n, " (passes between %" PRIu64 " and %" PRIu64 ")",
                 op->not_before_us, op->not_after_us);
    }
}

static void shrunk_text(const struct sim_shrunk *shrunk, FILE *to)
{
    if (shrunk->runs == 0) {
        return;
    }
    fprintf(to, "shrunk in %" PRIu32 " runs to\n  %s\n%s", shrunk->runs,
            text_string(&shrunk->command), text_string(&shrunk->report));
    if (shrunk->history.n > 0) {
        fprintf(to, "the shortest history that is refused (%zu operations):\n", shrunk->history.n);
        for (size_t i = 0; i < shrunk->history.n; i++) {
            char line[LINE_BYTES];
            print_op(&shrunk->history.ops[i], line);
            fprintf(to, "%s\n", line);
        }
    }
    fputc('\n', to);
}

void sim_report_text(const struct sim_report *report, double wall_seconds, FILE *to)
{
    const struct sim_stats *s = &report->sum;
    for (uint32_t i = 0; i < report->findings_n; i++) {
        const struct sim_finding *f = &report->findings[i];
        fprintf(to, "seed %" PRIu64 ": %s\n%s\n", f->seed, sim_verdict_names[f->verdict],
                text_string(&f->text));
        shrunk_text(&f->shrunk, to);
    }
    fprintf(to, "%" PRIu64 " seeds from %" PRIu64 ", %" PRIu32 " nodes:", report->seeds,
            report->from, report->config.nodes);
    for (uint32_t i = 0; i < SIM_VERDICTS; i++) {
        fprintf(to, " %" PRIu64 " %s%s", report->verdicts[i], sim_verdict_names[i],
                i + 1 < SIM_VERDICTS ? "," : "\n");
    }
    fprintf(to,
            "operations: %" PRIu64 " (%" PRIu64 " ok, %" PRIu64 " failed, %" PRIu64
            " unknown), at least %" PRIu64 " ok a seed; of %" PRIu64
            " others only the form was checked\n",
            s->ops, s->ops_ok, s->ops_failed, s->ops_unknown, least(report->least_ops_ok),
            s->ops_extra);
    if (s->deals > 0) {
        fprintf(to,
                "transactions: %" PRIu64 " (%" PRIu64 " committed, of these by commands %" PRIu64
                ", %" PRIu64 " without effect, %" PRIu64 " unknown); audits: %" PRIu64 "\n",
                s->deals, s->deals_ok, s->deals_spoken, s->deals_aborted, s->deals_unknown,
                s->audits);
    }
    if (s->tries > 0) {
        fprintf(to,
                "tries: %" PRIu64 "; retries of a transaction: %.3f, at most %" PRIu64
                "; ranges: %" PRIu64 "\n",
                s->tries, (double)s->tries_again / (double)(s->tries - s->tries_again),
                s->tries_most - 1, s->ranges);
    }
    fprintf(to,
            "views: %.2f changes a seed; processes: %" PRIu64 ", of these after a wipe: %" PRIu64
            "\n",
            per_seed(report, s->view_changes), s->incarnations, s->wipes);
    fprintf(to, "faults (kinds a seed: %.1f, at least %" PRIu64 "; skipped %" PRIu64 "):",
            per_seed(report, s->fault_kinds), least(report->least_fault_kinds), s->faults_skipped);
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        fprintf(to, " %s %" PRIu64, sim_fault_names[i], s->faults[i]);
    }
    fprintf(to,
            "\nmessages: %" PRIu64 " in %" PRIu64 " frames; polls: %" PRIu64
            "; checker states: %" PRIu64 "\n",
            s->messages, s->frames, s->polls, s->states);
    if (report->twice > 0) {
        fprintf(to, "ran twice: %" PRIu64 " seeds, %s\n", report->twice,
                report->twice_other == 0 ? "all identical" : "NOT all identical");
    }
    fprintf(to, "virtual %.1f s in %.2f s (x %.1f), %.1f seeds a second; hash %016" PRIx64 "\n",
            (double)s->virtual_us / 1e6, wall_seconds, ratio(report, wall_seconds),
            wall_seconds > 0 ? (double)report->seeds / wall_seconds : 0, report->hash);
}

static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *operations_json(const struct sim_report *report)
{
    const struct sim_stats *s = &report->sum;
    json_t *json = json_object();
    json_object_set_new(json, "all", number(s->ops));
    json_object_set_new(json, "ok", number(s->ops_ok));
    json_object_set_new(json, "reads_ok", number(s->reads_ok));
    json_object_set_new(json, "failed", number(s->ops_failed));
    json_object_set_new(json, "unknown", number(s->ops_unknown));
    json_object_set_new(json, "form_only", number(s->ops_extra));
    json_object_set_new(json, "least_ok_a_seed", number(least(report->least_ops_ok)));
    return json;
}

static json_t *transactions_json(const struct sim_report *report)
{
    const struct sim_stats *s = &report->sum;
    json_t *json = json_object();
    json_object_set_new(json, "all", number(s->deals));
    json_object_set_new(json, "committed", number(s->deals_ok));
    json_object_set_new(json, "by_commands", number(s->deals_spoken));
    json_object_set_new(json, "without_effect", number(s->deals_aborted));
    json_object_set_new(json, "unknown_outcome", number(s->deals_unknown));
    json_object_set_new(json, "audits", number(s->audits));
    json_object_set_new(json, "ranges", number(s->ranges));
    json_object_set_new(json, "tries", number(s->tries));
    json_object_set_new(json, "retries", number(s->tries_again));
    json_object_set_new(json, "retries_most", number(s->tries_most > 0 ? s->tries_most - 1 : 0));
    return json;
}

static json_t *faults_json(const struct sim_report *report)
{
    json_t *json = json_object();
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        json_object_set_new(json, sim_fault_names[i], number(report->sum.faults[i]));
    }
    return json;
}

static json_t *shrunk_json(const struct sim_shrunk *shrunk)
{
    json_t *json = json_object();
    json_t *history = json_array();
    for (size_t i = 0; i < shrunk->history.n; i++) {
        char line[LINE_BYTES];
        print_op(&shrunk->history.ops[i], line);
        json_array_append_new(history, json_string(line));
    }
    json_object_set_new(json, "runs", number(shrunk->runs));
    json_object_set_new(json, "command", json_string_nocheck(text_string(&shrunk->command)));
    json_object_set_new(json, "report", json_string_nocheck(text_string(&shrunk->report)));
    json_object_set_new(json, "history", history);
    return json;
}

static json_t *findings_json(const struct sim_report *report)
{
    json_t *json = json_array();
    for (uint32_t i = 0; i < report->findings_n; i++) {
        const struct sim_finding *f = &report->findings[i];
        json_t *one = json_object();
        json_object_set_new(one, "seed", number(f->seed));
        json_object_set_new(one, "verdict", json_string(sim_verdict_names[f->verdict]));
        json_object_set_new(one, "report", json_string_nocheck(text_string(&f->text)));
        if (f->shrunk.runs > 0) {
            json_object_set_new(one, "shrunk", shrunk_json(&f->shrunk));
        }
        json_array_append_new(json, one);
    }
    return json;
}

static void set_totals(const struct sim_report *report, json_t *json)
{
    const struct sim_stats *s = &report->sum;
    json_t *commands = json_object();
    json_object_set_new(json, "operations", operations_json(report));
    count_commands(report, commands);
    json_object_set_new(json, "commands", commands);
    if (report->sum.deals > 0) {
        json_object_set_new(json, "transactions", transactions_json(report));
    }
    json_object_set_new(json, "faults", faults_json(report));
    json_object_set_new(json, "faults_skipped", number(s->faults_skipped));
    json_object_set_new(json, "fault_kinds_a_seed", json_real(per_seed(report, s->fault_kinds)));
    json_object_set_new(json, "fault_kinds_least", number(least(report->least_fault_kinds)));
    json_object_set_new(json, "view_changes", number(s->view_changes));
    json_object_set_new(json, "view_changes_a_seed", json_real(per_seed(report, s->view_changes)));
    json_object_set_new(json, "processes", number(s->incarnations));
    json_object_set_new(json, "wipes", number(s->wipes));
    json_object_set_new(json, "messages", number(s->messages));
    json_object_set_new(json, "frames", number(s->frames));
    json_object_set_new(json, "bytes", number(s->bytes));
    json_object_set_new(json, "polls", number(s->polls));
    json_object_set_new(json, "checker_states", number(s->states));
}

void sim_report_json(const struct sim_report *report, double wall_seconds, FILE *to)
{
    char hash[17];
    json_t *json = json_object();
    json_object_set_new(
        json, "engine",
        json_string(report->config.engine != NULL ? report->config.engine : "hermes"));
    json_object_set_new(json, "nodes", number(report->config.nodes));
    json_object_set_new(json, "from", number(report->from));
    json_object_set_new(json, "seeds", number(report->seeds));
    json_t *verdicts = json_object();
    for (uint32_t i = 0; i < SIM_VERDICTS; i++) {
        json_object_set_new(verdicts, sim_verdict_names[i], number(report->verdicts[i]));
    }
    json_object_set_new(json, "verdicts", verdicts);
    json_object_set_new(json, "ran_twice", number(report->twice));
    json_object_set_new(json, "ran_twice_differ", number(report->twice_other));
    json_object_set_new(json, "findings", findings_json(report));
    set_totals(report, json);
    snprintf(hash, sizeof hash, "%016" PRIx64, report->hash);
    json_object_set_new(json, "hash", json_string(hash));
    json_object_set_new(json, "virtual_seconds", json_real((double)report->sum.virtual_us / 1e6));
    json_object_set_new(json, "wall_seconds", json_real(wall_seconds));
    json_object_set_new(json, "simulated_to_real", json_real(ratio(report, wall_seconds)));
    json_dumpf(json, to, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    fputc('\n', to);
    json_decref(json);
}
