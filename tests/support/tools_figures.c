#include "support/tools_figures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

static char folder[] = "/tmp/horkos-figures-XXXXXX";

int figures_setup(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? -1 : 0;
}

int figures_teardown(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) == 0 ? 0 : -1;
}

int figures_run(const char *arguments)
{
    char command[1024];
    const char *program = getenv("HORKOS_PROGRAM");
    assert_non_null(program);
    snprintf(command, sizeof command, "'%s' figures %s >%s/out 2>%s/err </dev/null", program,
             arguments, folder, folder);
    int status = system(command);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

void figures_make(const char *arguments, const char *sub)
{
    char all[512];
    snprintf(all, sizeof all, "--quick --out %s/%s %s", folder, sub, arguments);
    assert_int_equal(figures_run(all), 0);
}

char *figures_file(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    size_t n = fread(text, 1, 65535, file);
    assert_true(n > 0 && n < 65535);
    fclose(file);
    return text;
}

double figures_y(const char *csv, const char *series_and_x)
{
    char row[128];
    snprintf(row, sizeof row, "\n%s,", series_and_x);
    const char *at = strstr(csv, row);
    if (at == NULL) {
        print_error("there is no \"%s\"\n", series_and_x);
    }
    assert_non_null(at);
    return strtod(at + strlen(row), NULL);
}
