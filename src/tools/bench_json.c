#include <jansson.h>
#include <math.h>

#include "base/err.h"
#include "tools/bench_report.h"

/* JSON has no NAN. */
static json_t *number(double x)
{
    return isnan(x) || isinf(x) ? json_null() : json_real(x);
}

static json_t *spread(struct bench_spread x)
{
    return json_pack("{s:o, s:o, s:o}", "median", number(x.median), "min", number(x.min), "max",
                     number(x.max));
}

static json_t *config_json(const struct bench_options *o)
{
    const struct bench_config *c = &o->config;
    json_t *config = json_pack(
        "{s:i, s:i, s:s, s:b, s:s, s:I, s:i, s:i, s:f, s:f, s:f, s:b, s:i}", "nodes", (int)c->nodes,
        "workers", (int)c->workers, "port", bench_port_names[c->port], "threads", c->threads,
        "read_path", bench_read_path_names[c->read_path], "keys", (json_int_t)c->keys.n,
        "key_bytes", (int)c->key_bytes, "value_bytes", (int)c->value_bytes, "writes_percent",
        c->mix.writes, "rmws_percent", c->mix.rmws, "zipf_exponent", c->keys.exponent, "scrambled",
        c->keys.scramble, "in_flight", (int)c->in_flight);
    if (config == NULL) {
        return NULL;
    }
    json_t *more =
        json_pack("{s:o, s:b, s:b, s:b, s:f, s:f, s:i, s:I}", "rate",
                  c->rate > 0.0 ? json_real(c->rate) : json_null(), "even", c->even, "o3",
                  c->ack_to_all, "async_reads", c->async_reads, "seconds", o->seconds,
                  "warmup_seconds", o->warmup, "runs", (int)o->runs, "seed", (json_int_t)c->seed);
    (void)json_object_update(config, more);
    json_decref(more);
    return config;
}

/* The medians by their names; min and max of all runs under "spread". */
static json_t *series_json(const struct bench_options *o, const struct engine_ops *engine,
                           const struct bench_series *s)
{
    json_t *series = json_object();
    json_t *spreads = json_object();
    for (uint32_t i = 0; i < BENCH_FIGURES; i++) {
        struct bench_spread x = bench_spread_of(s->figures[i], o->runs);
        (void)json_object_set_new(series, bench_figure_name(i), number(x.median));
        (void)json_object_set_new(spreads, bench_figure_name(i), spread(x));
    }
    struct bench_config config = o->config;
    config.engine = engine;
    double best = bench_hit_rate(&config);
    if (!isnan(best)) {
        (void)json_object_set_new(series, "mode", json_string(bench_mode_names[o->mode]));
        (void)json_object_set_new(series, "cache_keys",
                                  json_integer((json_int_t)bench_cache_keys(&config)));
        (void)json_object_set_new(series, "hit_rate_computed", json_real(best));
    }
    (void)json_object_set_new(series, "ops", json_integer((json_int_t)s->ops));
    (void)json_object_set_new(series, "failed", json_integer((json_int_t)s->failed));
    (void)json_object_set_new(series, "refused", json_integer((json_int_t)s->refused));
    (void)json_object_set_new(series, "frames_dropped",
                              json_integer((json_int_t)s->frames_dropped));
    (void)json_object_set_new(series, "view_changes", json_integer((json_int_t)s->view_changes));
    (void)json_object_set_new(series, "spread", spreads);
    return series;
}

static json_t *ratios_json(const struct bench_report *r)
{
    json_t *ratios = json_object();
    for (uint32_t i = 1; i < r->options->engines_n; i++) {
        json_t *one = json_object();
        for (uint32_t f = 0; f < BENCH_FIGURES; f++) {
            struct bench_spread x =
                bench_ratio_of(r->series[0].figures[f], r->series[i].figures[f], r->options->runs);
            (void)json_object_set_new(one, bench_figure_name(f), spread(x));
        }
        (void)json_object_set_new(ratios, r->options->engines[i]->name, one);
    }
    return ratios;
}

static json_t *probe_json(const struct bench_probe *p)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "dependent_pair_reads_per_s",
                     number(p->uniform.dependent_pairs), "dependent_pair_reads_per_s_load",
                     number(p->load.dependent_pairs), "direct_reads_per_s",
                     number(p->uniform.direct), "direct_reads_per_s_load", number(p->load.direct),
                     "ring_round_trip_ns", number(p->ring_round_trip_ns),
                     "ring_round_trip_alone_ns", number(p->ring_round_trip_alone_ns),
                     "loopback_round_trip_ns", number(p->loopback_round_trip_ns), "system_call_ns",
                     number(p->system_call_ns), "clock_read_ns", number(p->clock_read_ns));
}

static json_t *machine_json(const struct bench_machine *m)
{
    return json_pack("{s:s, s:i, s:s}", "model", m->model, "cores", (int)m->cores, "kernel",
                     m->kernel);
}

/* One engine: its figures are at the top. Several: each has an object of its own. */
static json_t *report_json(const struct bench_report *r)
{
    const struct bench_options *o = r->options;
    json_t *all = json_object();
    (void)json_object_set_new(all, "machine", machine_json(r->machine));
    (void)json_object_set_new(all, "config", config_json(o));
    if (o->engines_n == 1) {
        json_t *series = series_json(o, o->engines[0], &r->series[0]);
        (void)json_object_set_new(all, "engine", json_string(o->engines[0]->name));
        (void)json_object_update(all, series);
        json_decref(series);
    } else {
        json_t *engines = json_object();
        for (uint32_t i = 0; i < o->engines_n; i++) {
            (void)json_object_set_new(engines, o->engines[i]->name,
                                      series_json(o, o->engines[i], &r->series[i]));
        }
        (void)json_object_set_new(all, "engines", engines);
        (void)json_object_set_new(all, "compared_with", json_string(o->engines[0]->name));
        (void)json_object_set_new(all, "ratios", ratios_json(r));
    }
    if (r->probe != NULL) {
        (void)json_object_set_new(all, "probe", probe_json(r->probe));
    }
    return all;
}

int bench_report_json(const struct bench_report *r, FILE *to)
{
    json_t *all = report_json(r);
    int failed = all == NULL || json_dumpf(all, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0;
    json_decref(all);
    fputc('\n', to);
    return failed ? HK_ERR_NOMEM : HK_OK;
}
