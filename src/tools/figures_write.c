/* A figure's files: the points, a script for gnuplot, and the picture that it draws. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "tools/figures.h"

#define PATH_BYTES 4096u

static FILE *create(const struct figure_run *run, const char *ending, char path_out[PATH_BYTES])
{
    int n = snprintf(path_out, PATH_BYTES, "%s/figure-%s.%s", run->options->out, run->figure->id,
                     ending);
    FILE *file = n > 0 && (unsigned)n < PATH_BYTES ? fopen(path_out, "we") : NULL;
    if (file == NULL) {
        fprintf(stderr, "horkos figures: %s: %s\n", path_out, strerror(errno));
    }
    return file;
}

static int finish(FILE *file, const char *path)
{
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        fprintf(stderr, "horkos figures: %s: %s\n", path, strerror(errno));
        return HK_ERR_IO;
    }
    return HK_OK;
}

static const char *series_name(const struct figure_point *p)
{
    return p->series[0] == '=' ? p->series + 2 : p->series;
}

int figure_write_csv(const struct figure_run *run)
{
    char path[PATH_BYTES];
    FILE *file = create(run, "csv", path);
    if (file == NULL) {
        return HK_ERR_IO;
    }
    fputs("figure,series,x,y\n", file);
    for (size_t i = 0; i < run->points_n; i++) {
        const struct figure_point *p = &run->points[i];
        fprintf(file, "%s,%s,%.6g,%.6g\n", run->figure->id, series_name(p), p->x, p->y);
    }
    return finish(file, path);
}

/* The index of the first point of the same series. */
static size_t first_of(const struct figure_run *run, size_t i)
{
    size_t k = 0;
    while (strcmp(run->points[k].series, run->points[i].series) != 0) {
        k++;
    }
    return k;
}

static void write_curves(const struct figure_run *run, FILE *file)
{
    const char *separator = "plot ";
    for (size_t i = 0; i < run->points_n; i++) {
        if (first_of(run, i) == i && run->points[i].series[0] != '=') {
            fprintf(file, "%s'-' using 1:2 with linespoints title \"%s\"", separator,
                    run->points[i].series);
            separator = ", \\\n     ";
        }
    }
    fputs("\n", file);
    for (size_t i = 0; i < run->points_n; i++) {
        if (first_of(run, i) != i || run->points[i].series[0] == '=') {
            continue;
        }
        for (size_t k = i; k < run->points_n; k++) {
            if (first_of(run, k) == i) {
                fprintf(file, "%.6g %.6g\n", run->points[k].x, run->points[k].y);
            }
        }
        fputs("e\n", file);
    }
}

static int write_script(const struct figure_run *run, char path_out[PATH_BYTES])
{
    const struct figure *f = run->figure;
    FILE *file = create(run, "gp", path_out);
    if (file == NULL) {
        return HK_ERR_IO;
    }
    fprintf(file,
            "set terminal svg size 800,500 dynamic background rgb 'white'\n"
            "set output '%s/figure-%s.svg'\n"
            "set title \"Figure %s, by %s: %s%s\\n%s\"\n"
            "set xlabel \"%s\"\nset ylabel \"%s\"\nset key outside right\nset grid\n%s%s",
            run->options->out, f->id, f->id, f->by, f->title, run->options->quick ? " (quick)" : "",
            run->note, f->x, f->y, f->x_log ? "set logscale x 2\n" : "",
            f->y_log ? "set logscale y\n" : "set yrange [0:*]\n");
    write_curves(run, file);
    return finish(file, path_out);
}

int figure_write_svg(const struct figure_run *run, bool *drawn_out)
{
    char path[PATH_BYTES];
    int status = -1;
    *drawn_out = false;
    int err = write_script(run, path);
    if (err != HK_OK) {
        return err;
    }
    pid_t pid = fork();
    if (pid == 0) {
        execlp("gnuplot", "gnuplot", path, (char *)NULL);
        _exit(errno == ENOENT ? 127 : 126);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
        return HK_ERR_IO;
    }
    *drawn_out = WEXITSTATUS(status) == 0;
    return *drawn_out || WEXITSTATUS(status) == 127 ? HK_OK : HK_ERR_IO;
}
