#include "bench/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static void read_model(char *to, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(to, size, "unknown");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            snprintf(to, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
            to[strcspn(to, "\n")] = '\0';
            break;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

void bench_machine_read(struct bench_machine *m)
{
    struct utsname name;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    read_model(m->model, sizeof m->model);
    m->cores = cores > 0 ? (uint32_t)cores : 1;
    snprintf(m->kernel, sizeof m->kernel, "unknown");
    if (uname(&name) == 0) {
        snprintf(m->kernel, sizeof m->kernel, "%.60s %.60s", name.sysname, name.release);
    }
}
