/* `horkos figures`: see figures_options.c for its command line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/err.h"
#include "tools/commands.h"
#include "tools/figures.h"

static bool made_folder(const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) {
        return true;
    }
    fprintf(stderr, "horkos figures: %s: %s\n", path, strerror(errno));
    return false;
}

static const char *const kind_words[] = {
    [CLAIM_VALUE] = "", [CLAIM_LEAST] = "at least ", [CLAIM_MOST] = "at most "};

/* ---- As text, and as tables for a document ---- */

static void print_claims(const struct figure_run *run)
{
    for (const struct claim *c = claims; c->figure != NULL; c++) {
        double ours;
        if (strcmp(c->figure, run->figure->id) != 0) {
            continue;
        }
        if (claim_ours(c, run, &ours)) {
            printf("  %-66s %s%.4g, ours %.4g: %+.0f %%\n", c->what, kind_words[c->kind], c->paper,
                   ours, 100 * (ours / c->paper - 1));
        } else {
            printf("  %-66s %s%.4g, not played\n", c->what, kind_words[c->kind], c->paper);
        }
    }
}

/* ---- What the papers say little of in numbers, as [L] of all but its table, is a table of its
 * points, a row for each series ---- */

#define COLUMNS_MAX 16u
#define CLAIMS_FEW 1u

static uint32_t claims_of(const struct figure *figure)
{
    uint32_t n = 0;
    for (const struct claim *c = claims; c->figure != NULL; c++) {
        n += strcmp(c->figure, figure->id) == 0;
    }
    return n;
}

static bool was_before(const struct figure_run *run, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (strcmp(run->points[k].series, run->points[i].series) == 0) {
            return true;
        }
    }
    return false;
}

static void markdown_row(const struct figure_run *run, const char *series, const double *xs,
                         size_t n)
{
    double y;
    bool any = false;
    for (size_t k = 0; k < n; k++) {
        any = any || figure_find(run, series, xs[k], &y);
    }
    if (!any) {
        return; /* its x are its own: the files have it */
    }
    printf("| %s |", series[0] == '=' ? series + 2 : series);
    for (size_t k = 0; k < n; k++) {
        if (figure_find(run, series, xs[k], &y)) {
            printf(" %.4g |", y);
        } else {
            printf(" |");
        }
    }
    putchar('\n');
}

/* Columns are the first series' x. */
static void markdown_points(const struct figure_run *run)
{
    double xs[COLUMNS_MAX];
    size_t n = 0;
    printf("| %s |", run->figure->x);
    for (size_t i = 0; i < run->points_n && n < COLUMNS_MAX; i++) {
        if (strcmp(run->points[i].series, run->points[0].series) == 0) {
            xs[n++] = run->points[i].x;
            printf(" %g |", run->points[i].x);
        }
    }
    printf("\n|---|");
    for (size_t i = 0; i < n; i++) {
        printf("---|");
    }
    putchar('\n');
    for (size_t i = 0; i < run->points_n; i++) {
        if (!was_before(run, i)) {
            markdown_row(run, run->points[i].series, xs, n);
        }
    }
}

static void markdown_claims(const struct figure_run *run, double seconds)
{
    printf("\n### Figure %s: %s\n\n", run->figure->id, run->figure->title);
    printf("%s%sMade in %.0f s%s.\n\n", run->note, run->note[0] != '\0' ? " " : "", seconds,
           run->options->quick ? " (quick)" : "");
    if (claims_of(run->figure) <= CLAIMS_FEW || run->figure->id[0] == 'L') {
        markdown_points(run);
        putchar('\n');
    }
    if (claims_of(run->figure) == 0) {
        return;
    }
    printf("| | paper | ours | ours / paper | deviation |\n|---|---|---|---|---|\n");
    for (const struct claim *c = claims; c->figure != NULL; c++) {
        double ours;
        if (strcmp(c->figure, run->figure->id) != 0) {
            continue;
        }
        if (claim_ours(c, run, &ours)) {
            printf("| %s | %s%.4g | %.4g | %.2f | %+.0f %% |\n", c->what, kind_words[c->kind],
                   c->paper, ours, ours / c->paper, 100 * (ours / c->paper - 1));
        } else {
            printf("| %s | %s%.4g | not played | | |\n", c->what, kind_words[c->kind], c->paper);
        }
    }
}

/* ---- As JSON ---- */

static json_t *claims_json(const struct figure_run *run)
{
    json_t *list = json_array();
    for (const struct claim *c = claims; c->figure != NULL; c++) {
        double ours;
        if (strcmp(c->figure, run->figure->id) != 0) {
            continue;
        }
        json_t *one = json_object();
        json_object_set_new(one, "what", json_string(c->what));
        json_object_set_new(one, "paper", json_real(c->paper));
        if (claim_ours(c, run, &ours)) {
            json_object_set_new(one, "ours", json_real(ours));
            json_object_set_new(one, "ratio", json_real(ours / c->paper));
        }
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *figure_json(const struct figure_run *run, double seconds, bool drawn)
{
    json_t *points = json_array();
    for (size_t i = 0; i < run->points_n; i++) {
        const struct figure_point *p = &run->points[i];
        json_t *one = json_object();
        json_object_set_new(one, "series",
                            json_string(p->series[0] == '=' ? p->series + 2 : p->series));
        json_object_set_new(one, "x", json_real(p->x));
        json_object_set_new(one, "y", json_real(p->y));
        json_array_append_new(points, one);
    }
    json_t *figure = json_object();
    json_object_set_new(figure, "id", json_string(run->figure->id));
    json_object_set_new(figure, "title", json_string(run->figure->title));
    json_object_set_new(figure, "note", json_string(run->note));
    json_object_set_new(figure, "seconds", json_real(seconds));
    json_object_set_new(figure, "svg", json_boolean(drawn));
    json_object_set_new(figure, "points", points);
    json_object_set_new(figure, "paper", claims_json(run));
    return figure;
}

/* ---- The command ---- */

static bool make(const struct figures_options *options, const struct figure *figure, json_t *list,
                 bool *drawn_out)
{
    struct figure_run run = {.options = options, .figure = figure, .err = HK_OK};
    uint64_t begin_us = clock_boot_us();
    *drawn_out = true;
    figure->make(&run);
    if (run.err == HK_OK) {
        run.err = figure_write_csv(&run);
    }
    if (run.err == HK_OK) {
        run.err = figure_write_svg(&run, drawn_out);
    }
    double seconds = (double)(clock_boot_us() - begin_us) * 1e-6;
    if (options->progress) {
        fputs("\r\033[K", stderr);
    }
    if (run.err != HK_OK) {
        fprintf(stderr, "horkos figures: figure %s: %s\n", figure->id, hk_err_text(run.err));
    } else if (options->json) {
        json_array_append_new(list, figure_json(&run, seconds, *drawn_out));
    } else if (options->markdown) {
        markdown_claims(&run, seconds);
    } else {
        printf("figure %-5s %s (%.1f s)\n", figure->id, figure->title, seconds);
        print_claims(&run);
        fflush(stdout);
    }
    free(run.points);
    return run.err == HK_OK;
}

static void list_figures(void)
{
    for (const struct figure *f = figures; f->id != NULL; f++) {
        printf("%-5s %s\n", f->id, f->title);
    }
}

int figures_command(int argc, char **argv)
{
    struct figures_options options;
    bool help = false;
    bool all_drawn = true;
    int status = figures_options_parse(argc, argv, &options, &help);
    if (status != STATUS_OK || help) {
        return status;
    }
    if (options.list) {
        list_figures();
        return STATUS_OK;
    }
    if (!made_folder(options.out)) {
        return STATUS_FAILED;
    }
    json_t *list = json_array();
    for (const struct figure *f = figures; f->id != NULL; f++) {
        bool drawn;
        if (!figures_wants(&options, f)) {
            continue;
        }
        status = make(&options, f, list, &drawn) ? status : STATUS_FAILED;
        all_drawn = all_drawn && drawn;
    }
    if (options.json) {
        json_t *root = json_pack("{s:b,s:I,s:O}", "quick", (int)options.quick, "seed",
                                 (json_int_t)options.seed, "figures", list);
        json_dumpf(root, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(root);
    }
    json_decref(list);
    if (!all_drawn) {
        fprintf(stderr, "horkos figures: gnuplot is not installed: no SVG was drawn; the .gp "
                        "files are there for it\n");
    }
    return status;
}
