/* `horkos figures` as people run it, into a folder of the test's own. */
#ifndef HORKOS_TESTS_TOOLS_FIGURES_H
#define HORKOS_TESTS_TOOLS_FIGURES_H

/* A group's setup and teardown: the folder. */
int figures_setup(void **state);
int figures_teardown(void **state);

/* Runs it with these arguments; its exit status. What it printed is in the folder's file "out". */
int figures_run(const char *arguments);
/* Makes quick figures in a folder of the test's folder; asserts that all were made. */
void figures_make(const char *arguments, const char *sub);
/* A file of the folder, whole; to be freed. */
char *figures_file(const char *name);
/* y of a series at an x, "L5a,lotus wait_die,8", both as in the file; asserts that it is there. */
double figures_y(const char *csv, const char *series_and_x);

#endif
